"""Begin and end of a program: its streams, the signals that end it, and a reader that stops
reading, as `head` does.
"""

# SPDX-License-Identifier: BSD-2-Clause

import select
import signal
import sys
from collections.abc import Callable

from dibber_cli import errors, signals, streams


def unread() -> bool:
    """Whether stdout is a pipe without a reader."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def quiet(main: Callable[[], int | None]) -> int:
    """The exit code of main().

    If its output has no reader any more, the program ends silently, with a shell's code for that.
    If stdout cannot be written, the program reports it and ends with 1, or with the code of main().
    SIGTERM and SIGHUP end it as Ctrl-C does.
    """
    streams.prepare()
    signals.install()
    code = 0
    try:
        try:
            code = main() or 0
            return code
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not unread():
            raise
        streams.give_up()
        return 128 + signal.SIGPIPE
    except streams.OutputError as error:
        streams.give_up()
        errors.report(
            error.strerror or str(error), name="OUTPUT", as_json=errors.wants_json(sys.argv[1:])
        )
        # A closed terminal cannot be written. Its signal (SIGHUP) has ended main().
        return code or 1
    except KeyboardInterrupt as interrupt:
        errors.report(
            "interrupted",
            name="INTERRUPTED",
            code=signals.code_of(interrupt),
            as_json=errors.wants_json(sys.argv[1:]),
        )
        return signals.code_of(interrupt)
