"""Standard streams as a command needs them, for any state in which the caller left them.

A closed stream becomes /dev/null. Otherwise the next file or socket would get its number, and then
the command's text. Text that the caller's encoding does not have becomes ASCII. docs/cli.md has the
rules.
"""

# SPDX-License-Identifier: BSD-2-Clause

import codecs
import io
import os
import select
import sys
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# ASCII for characters that the commands print. Others become "?".
PLAIN = {
    "─": "-",
    "━": "=",
    "╌": "-",
    "│": "|",
    "├": "+",
    "└": "+",
    "–": "-",
    "—": "-",
    "…": "...",
    "≥": ">=",
    "≤": "<=",
    "×": "x",
    "·": ".",
    "µ": "u",
    "±": "+-",
    "³": "^3",
    "²": "^2",
    "½": "1/2",
    "⁻": "-",
    "°": " degrees",
    "→": "->",
    "←": "<-",
    "’": "'",
    "‘": "'",
    "“": '"',
    "”": '"',
    "Δ": "delta",
    "█": "#",
    "•": "*",
}
HANDLER = "dibber-plain"  # the name of plain() among Python's error handlers


class OutputError(OSError):
    """Printed text cannot be written to stdout."""


def plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """An error handler of codecs: ASCII in place of characters that an encoding does not have.

    A byte of a file's name that was no character when Python read it becomes this byte again (PEP
    383).
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if 0xDC80 <= ord(character) <= 0xDCFF:
        return bytes([ord(character) - 0xDC00]), error.start + 1
    return PLAIN.get(character, "?"), error.start + 1


codecs.register_error(HANDLER, plain)


class _Raw(io.FileIO):
    """A stream that waits while a non-blocking descriptor takes nothing.

    Python handles a signal after any call. If the handler raises an exception between the system's
    write() and the end of our write(), the buffer above assumes that the bytes were not written,
    and writes them again. So our write() keeps such an exception. raise_late() raises it when the
    buffer knows what was written.

    lenient : bytes that cannot be written are dropped
    """

    def __init__(self, descriptor: int, lenient: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._lenient = lenient
        self._late: BaseException | None = None

    def write(self, data: "ReadableBuffer") -> int:
        self.raise_late()
        written: list[int | None] = []
        try:
            while True:
                # One call of C writes and keeps the count, so no signal is handled between the two.
                written.extend(map(super().write, (data,)))
                if written[0] is not None:
                    return written[0]
                written.clear()
                select.select([], [self], [])
        except OSError as error:
            if self._lenient:
                return len(memoryview(data))
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputError(
                error.errno, f"the standard output cannot be written: {error.strerror}"
            ) from None
        except BaseException as error:
            if not written or written[0] is None:
                raise
            self._late = error
            return written[0]

    def raise_late(self) -> None:
        """Raise the exception that came after bytes had been written."""
        late, self._late = self._late, None
        if late is not None:
            raise late


class _Text(io.TextIOWrapper):
    """A text stream over a _Raw. Its calls end with the exception that _Raw has kept."""

    def __init__(self, raw: _Raw, **how: Any) -> None:
        super().__init__(io.BufferedWriter(raw), **how)
        self._raw = raw

    def write(self, text: str) -> int:
        count = super().write(text)
        self._raw.raise_late()
        return count

    def flush(self) -> None:
        super().flush()
        self._raw.raise_late()


def _occupy() -> None:
    """Open /dev/null in place of each closed standard stream."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free: all below it are open.
            opened = os.open(os.devnull, os.O_WRONLY if descriptor else os.O_RDONLY)
            os.set_inheritable(opened, True)


def _text(descriptor: int, old: io.TextIOWrapper | None, lenient: bool) -> _Text:
    """The text stream of a descriptor, with the encoding of `old`, or UTF-8 if Python found the
    stream closed.
    """
    raw = _Raw(descriptor, lenient)
    if old is None:
        return _Text(raw, encoding="utf-8", errors=HANDLER, line_buffering=lenient)
    return _Text(
        raw,
        encoding=old.encoding,
        errors=HANDLER,
        line_buffering=lenient or old.line_buffering,
        write_through=old.write_through,
    )


def prepare() -> None:
    """Prepare stdin, stdout and stderr when a program begins. A stream that Python code has
    replaced is left alone.
    """
    _occupy()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)
    if sys.stdout is sys.__stdout__:
        sys.stdout = sys.__stdout__ = _text(1, cast("io.TextIOWrapper", sys.stdout), False)  # type: ignore[misc]
    if sys.stderr is sys.__stderr__:
        sys.stderr = sys.__stderr__ = _text(2, cast("io.TextIOWrapper", sys.stderr), True)  # type: ignore[misc]


def give_up() -> None:
    """Drop the text that stdout has not written, because Python tries again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
