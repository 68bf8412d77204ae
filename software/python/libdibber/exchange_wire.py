"""What goes over the connections of an exchange: sizes, frames, and bytes that never block."""

# SPDX-License-Identifier: BSD-2-Clause

import selectors
import socket
import struct
from collections.abc import Iterable

MAGIC = 0x58424944  # "DIBX", read as a little-endian word
VERSION = 1
MOST_PARTIES = 64
NAME_BYTES = 63  # of a published name, UTF-8
DATA_BYTES = 1 << 20  # of one published value
ENTRIES = 4096  # that a party may publish
TOKEN_BYTES = 64

HELLO = struct.Struct("<IIII64s")  # magic, version, party, parties, token
REPLY = struct.Struct("<III116s")  # magic, version, error (index of REFUSALS), reason in UTF-8
FRAME = struct.Struct("<IIII")  # kind, party, bytes of the name, bytes of data
PUBLISH, ARRIVED, RELEASED, GONE = range(1, 5)  # kinds of FRAME

REFUSALS = ("", "VERSION", "DENIED", "ARGUMENT", "IN_USE")


class ExchangeError(Exception):
    """An exchange failed.

    name : "TIMEOUT" a party did not answer in time; "LOST" a party has left; "VERSION" the other
           side speaks another version; "DENIED" it does not accept the token; "IN_USE" the name,
           the party's number or the port is taken; "PROTOCOL" the other side is no party of an
           exchange, or broke the protocol; "ARGUMENT" an argument makes no sense; "CLOSED" the
           exchange was closed
    """

    def __init__(self, name: str, text: str):
        super().__init__(text)
        self.name = name


class Link:
    """A connection with its bytes on both ways, none of which ever blocks.

    party : number of the other end; -1 until it is known
    name  : its address, in messages
    lost  : why it is gone, or None
    """

    def __init__(self, connection: socket.socket, party: int = -1):
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection, self.party = connection, party
        self.lost: str | None = None
        self.name = ""
        self.received, self.unsent = bytearray(), bytearray()

    def move(self) -> None:
        """Send and receive what goes without waiting."""
        try:
            while self.unsent:
                del self.unsent[: self.connection.send(self.unsent)]
        except BlockingIOError:
            pass
        except OSError as error:
            self.lost = self.lost or error.strerror
        try:
            while data := self.connection.recv(1 << 16):
                self.received += data
                if len(self.received) > 4 * DATA_BYTES:
                    return
            self.lost = self.lost or "it closed the connection"
        except BlockingIOError:
            pass
        except OSError as error:
            self.lost = self.lost or error.strerror

    def take(self, size: int) -> bytes | None:
        """The first `size` bytes that came, or None when there are fewer."""
        if len(self.received) < size:
            return None
        taken = bytes(self.received[:size])
        del self.received[:size]
        return taken

    def frame(self) -> tuple[int, int, str, bytes] | None:
        """The next whole message: (kind, party, name, data), or None. Raises ExchangeError."""
        if len(self.received) < FRAME.size:
            return None
        kind, party, name_bytes, data_bytes = FRAME.unpack_from(self.received)
        if not PUBLISH <= kind <= GONE or name_bytes > NAME_BYTES or data_bytes > DATA_BYTES:
            raise ExchangeError("PROTOCOL", f"party {self.party} sent no message of an exchange")
        whole = self.take(FRAME.size + name_bytes + data_bytes)
        if whole is None:
            return None
        name = whole[FRAME.size : FRAME.size + name_bytes].decode(errors="replace")
        return kind, party, name, whole[FRAME.size + name_bytes :]

    def send(self, kind: int, party: int, name: str = "", data: bytes = b"") -> None:
        encoded = name.encode()
        self.unsent += FRAME.pack(kind, party, len(encoded), len(data)) + encoded + data
        self.move()


def padded_token(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > TOKEN_BYTES or b"\0" in encoded:
        raise ExchangeError("ARGUMENT", f"a token has at most {TOKEN_BYTES} bytes, none of them 0")
    return encoded.ljust(TOKEN_BYTES, b"\0")


def sleep_on(links: Iterable[Link], seconds: float) -> None:
    """Sleep until a link can receive, or send what waits, for at most so many seconds."""
    with selectors.DefaultSelector() as selector:
        for link in links:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.unsent else 0)
            selector.register(link.connection, events)
        selector.select(max(min(seconds, 0.5), 0))
