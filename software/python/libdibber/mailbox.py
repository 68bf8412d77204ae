# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Mailboxes: messages that are sent at any time and wait where they arrive.

    ours = endpoint.mailbox()
    ours.connect(theirs.address())    # which the other program told; it does the same
    ours.send(b"a message")
    data, peer = ours.receive()       # None when there is none
"""

import ctypes

import numpy as np

from libdibber.binding import DibberError, MailboxAddress, MailboxOptions, Message, check, library

FOR_EVER = (1 << 64) - 1

MESSAGE, ROOM = 1, 2    # enum dib_mailbox_news


class PeerError(DibberError):
    """What happened to a peer, told by receive().

    Attributes
    ----------
    peer : which one
    """


class Mailbox:
    """The mailbox of an endpoint; made by Endpoint.mailbox(). May be used in a `with` statement.

    peers, slots, slot_bytes, max_length : as in struct dib_mailbox_options, 0 for the default
    """

    def __init__(self, endpoint, peers=0, slots=0, slot_bytes=0, max_length=0):
        self._handle = ctypes.c_void_p()
        check(library().dib_mailbox_open(endpoint._handle, MailboxOptions(peers, slots, slot_bytes, max_length),
                                         ctypes.byref(self._handle)))
        self._room = np.empty(self._address(0).max_length, dtype=np.uint8)

    def close(self):
        """Tell the peers, and close."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        library().dib_mailbox_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _address(self, peer):
        address = MailboxAddress()
        check(library().dib_mailbox_address(self._handle, peer, address))
        return address

    def address(self, peer=0):
        """What the other program must know to be `peer` of this mailbox, as bytes. A new one when the peer was given up."""
        return bytes(self._address(peer))

    def connect(self, address, peer=0):
        """Connect `peer` with what address() is at the other end; or connect one anew whose error was raised."""
        check(library().dib_mailbox_connect(self._handle, peer, MailboxAddress.from_buffer_copy(address)))

    def send(self, data, peer=0):
        """Send bytes, or a contiguous array. False when there is no room: wait for ROOM, or receive."""
        view = np.frombuffer(data, dtype=np.uint8)
        try:
            check(library().dib_mailbox_send(self._handle, peer, view.ctypes.data if len(view) else None, len(view)))
        except DibberError as error:
            if error.name != "AGAIN":
                raise
            return False
        return True

    def receive_into(self, array):
        """Take the next message into a contiguous array of bytes: (its length, peer), or None.

        Raises PeerError for what happened to a peer.
        """
        message = Message(peer=0xffffffff)
        try:
            taken = check(library().dib_mailbox_receive(self._handle, array.ctypes.data, len(array), message))
        except DibberError as error:
            if message.peer != 0xffffffff:
                error.__class__ = PeerError
                error.peer = message.peer
            raise
        return (message.length, message.peer) if taken else None

    def receive(self):
        """Take the next message: (bytes, peer), or None."""
        taken = self.receive_into(self._room)
        return taken and (bytes(self._room[:taken[0]]), taken[1])

    def wait(self, news=MESSAGE, timeout_ns=FOR_EVER):
        """Sleep until there is a MESSAGE (or an error to be told), or ROOM; False when the time is over.

        For ever, it raises the error of a peer when all were given up."""
        return check(library().dib_mailbox_wait(self._handle, news, timeout_ns)) == 1
