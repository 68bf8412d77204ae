"""Mailboxes: messages that are sent at any time and wait where they arrive.

ours = endpoint.mailbox()
ours.connect(theirs.address())    # sent by the other program, which does the same
ours.send(b"a message")
data, peer = ours.receive()       # None when there is none
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import ctypes
from typing import Any, SupportsIndex

from libdibber.arguments import Memory, address, contiguous, whole, writeable
from libdibber.background import FOR_EVER
from libdibber.binding import DibberError, MailboxAddress, MailboxOptions, Message, check, library
from libdibber.late import np

MESSAGE, ROOM = 1, 2  # enum dib_mailbox_news

STEP_NS = 20_000_000  # of simulated time: dib_mailbox_wait() cuts a wait into such steps
NOBODY = 0xFFFFFFFF  # no peer has this number


class PeerError(DibberError):
    """A fault of a peer, raised by receive().

    Attributes
    ----------
    peer : its number
    """

    peer: int


class Mailbox:
    """The mailbox of an endpoint; made by Endpoint.mailbox(). May be used in a `with` statement.

    peers, slots, slot_bytes, max_length : as in struct dib_mailbox_options, 0 for the default
    """

    def __init__(
        self,
        endpoint: Any,
        peers: SupportsIndex = 0,
        slots: SupportsIndex = 0,
        slot_bytes: SupportsIndex = 0,
        max_length: SupportsIndex = 0,
    ) -> None:
        options = MailboxOptions(
            whole("peers", peers),
            whole("slots", slots),
            whole("slot_bytes", slot_bytes),
            whole("max_length", max_length),
        )
        handle = self._handle = ctypes.c_void_p()
        self._endpoint, self._caller = endpoint, endpoint._caller
        self._caller.long(
            lambda: check(
                library().dib_mailbox_open(endpoint._handle, options, ctypes.byref(handle))
            ),
            undo=lambda _: library().dib_mailbox_close(handle),
        )
        self._room = np.empty(self._address(0).max_length, dtype=np.uint8)
        self._left: list[
            tuple[bytes, int]
        ] = []  # (bytes, peer) taken by a call that a signal ended

    def close(self) -> None:
        """Tell the peers, and close the mailbox."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        self._caller.long(lambda: library().dib_mailbox_close(handle))

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _address(self, peer: SupportsIndex) -> MailboxAddress:
        found = MailboxAddress()
        self._caller.now(library().dib_mailbox_address, self._handle, whole("peer", peer), found)
        return found

    def address(self, peer: SupportsIndex = 0) -> bytes:
        """The address for the program that will be `peer` of this mailbox, as bytes. It is a new
        one if the peer was given up.
        """
        return bytes(self._address(peer))

    def connect(self, address: Memory, peer: SupportsIndex = 0) -> None:
        """Connect `peer`, with the address() of the other end. Also connects a peer again whose
        error was raised.
        """
        told = contiguous("address", address)
        if len(told) != ctypes.sizeof(MailboxAddress):
            raise ValueError(
                f"address has {len(told)} bytes; what address() gives has "
                f"{ctypes.sizeof(MailboxAddress)}"
            )
        self._caller.now(
            library().dib_mailbox_connect,
            self._handle,
            whole("peer", peer),
            MailboxAddress.from_buffer_copy(told.tobytes()),
        )

    def send(self, data: Memory, peer: SupportsIndex = 0) -> bool:
        """Send the bytes of an object. False if there is no room: wait for ROOM, or receive.

        data : bytes, bytearray, memoryview, array.array, a contiguous NumPy array of any shape …;
               it may be changed after the call
        """
        found = contiguous("data", data)
        length = whole("length of data", len(found), 0, NOBODY)
        try:
            self._caller.now(
                library().dib_mailbox_send,
                self._handle,
                whole("peer", peer),
                address(found) if length else None,
                length,
            )
        except DibberError as error:
            if error.name != "AGAIN":
                raise
            return False
        return True

    def receive_into(self, array: Memory) -> tuple[int, int] | None:
        """Take the next message into writeable, contiguous memory: (its length in bytes, peer), or
        None.

        array : bytearray, memoryview, array.array, NumPy array of any shape …; its room is all of
                its bytes

        Raises ValueError for memory that is read-only or not contiguous, TypeError for an object
        without bytes, and PeerError for a fault of a peer.
        """
        return self._take(writeable("array", array))

    def _take(self, room: np.ndarray) -> tuple[int, int] | None:
        if self._left:
            data, peer = self._left[0]
            if len(data) > len(room):
                raise ValueError(
                    f"array has {len(room)} bytes, and the message of peer {peer} has {len(data)}"
                )
            room[: len(data)] = np.frombuffer(data, dtype=np.uint8)
            del self._left[0]
            return len(data), peer
        message, handle, length = Message(peer=NOBODY), self._handle, min(len(room), NOBODY)

        def receive() -> int:
            return check(library().dib_mailbox_receive(handle, address(room), length, message))

        def keep(taken: int) -> None:
            if taken:
                self._left.append((room[: message.length].tobytes(), message.peer))

        try:
            taken = self._caller.look(receive, undo=keep)
        except DibberError as error:
            if message.peer != NOBODY:
                error.__class__ = PeerError
                error.peer = message.peer  # type: ignore[attr-defined]
            raise
        return (message.length, message.peer) if taken else None

    def receive(self) -> tuple[bytes, int] | None:
        """Take the next message: (bytes, peer), or None."""
        taken = self._take(self._room)
        return taken and (bytes(self._room[: taken[0]]), taken[1])

    def wait(self, news: SupportsIndex = MESSAGE, timeout_ns: SupportsIndex = FOR_EVER) -> bool:
        """Sleep until there is a MESSAGE (or an error to report), or ROOM; False if the time has
        passed.

        If all peers were given up, raises the error of one, because no message can come any more.
        """
        if self._left and whole("news", news) & MESSAGE:
            return True
        news, timeout_ns, handle = (
            whole("news", news),
            whole("timeout_ns", timeout_ns),
            self._handle,
        )
        return self._caller.wait(
            lambda ns: check(library().dib_mailbox_wait(handle, news, ns)) == 1, timeout_ns, STEP_NS
        )
