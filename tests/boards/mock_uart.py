"""A bridge in Python behind a pseudo-terminal: the other end of libdibber's serial port, with the
mock card of tests/software.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pty
import struct
import threading
import tty

from dibber.interface.description import BRIDGE, C

from tests.boards import frames

MEMORY_BYTES = 64 * 1024
CHUNK = MEMORY_BYTES // C.BRIDGED_CHUNKS


class Bridge:
    """Serves one port in a thread of its own. `device` has bar_read(offset, length) and
    bar_write(offset, data), and gets `server` set: this bridge, through which it reaches the
    memory.

    Attributes for tests
    --------------------
    uri, port : to be opened
    hasty     : the same with a short timeout, for tests without an answer
    memory    : bytearray
    requests  : received whole and good frames
    answered  : called with (frame, reply) before a reply leaves; returns the bytes to be sent
                instead, or None
    magic     : of the bank `bridge`
    size      : reported size of the memory
    looked    : called when CHANGED is read
    """

    def __init__(self, device):
        self.device, self.memory = device, bytearray(os.urandom(MEMORY_BYTES))
        self.changed, self.hold, self.number, self.bad = [0] * 8, 0, None, 0
        self.requests, self.answered = [], lambda frame, reply: None
        self.magic, self.size, self.looked = C.BRIDGE_SIGNATURE, MEMORY_BYTES, lambda: None
        device.server = self
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.port = os.ttyname(self.slave)
        self.uri, self.hasty = (
            f"uart:{self.port}?timeout={milliseconds}" for milliseconds in (60_000, 300)
        )
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def unplug(self):
        """Like an unplugged USB adapter: the port disappears."""
        for end in (self.slave, self.master):
            if end is not None:
                os.close(end)
        self.slave = self.master = None

    # The card's side ------------------------------------------------------------------------------

    def write_memory(self, address, data):
        at = address - C.BRIDGED_MEMORY
        self.memory[at : at + len(data)] = data
        for chunk in range(at // CHUNK, (at + len(data) - 1) // CHUNK + 1):
            self.changed[chunk // 32] |= 1 << chunk % 32

    def read_memory(self, address, length):
        return bytes(self.memory[address - C.BRIDGED_MEMORY :][:length])

    # The bus --------------------------------------------------------------------------------------

    def _read(self, address, length):
        if address >= C.BRIDGE_BASE:
            if address - C.BRIDGE_BASE == BRIDGE["CHANGED"].offset:
                self.looked()
            bank = {
                BRIDGE["MAGIC"].offset: self.magic,
                BRIDGE["MEMORY"].offset: self.size,
                BRIDGE["BAD_FRAMES"].offset: self.bad,
                BRIDGE["HOLD"].offset: self.hold,
                **{BRIDGE["CHANGED"].offset + 4 * n: word for n, word in enumerate(self.changed)},
            }
            return b"".join(
                struct.pack("<I", bank.get(address - C.BRIDGE_BASE + at, 0))
                for at in range(0, length, 4)
            )
        if address >= C.BRIDGED_MEMORY:
            return self.read_memory(address, length)
        return self.device.bar_read(address, length)

    def _write(self, address, data):
        if address >= C.BRIDGE_BASE:
            offset = address - C.BRIDGE_BASE
            if offset == BRIDGE["HOLD"].offset:
                self.hold = data[0] & 1
            elif offset == BRIDGE["CHANGED"].offset:
                self.changed = [
                    old & ~clear for old, clear in zip(self.changed, frames.words(data))
                ]
        elif address >= C.BRIDGED_MEMORY:
            self.memory[address - C.BRIDGED_MEMORY : address - C.BRIDGED_MEMORY + len(data)] = data
        else:
            self.device.bar_write(address, data)

    # The line -------------------------------------------------------------------------------------

    def _serve(self):
        heard = b""
        try:
            while data := os.read(self.master, 4096):
                heard = self._take(heard + data)
        except (OSError, TypeError):
            pass

    def _take(self, heard):
        """Answer whole frames; what is left over."""
        while heard:
            if heard[0] != C.FRAME_REQUEST:
                heard = heard[1:]
                continue
            length = frames.REQUEST_BYTES + 4
            if len(heard) >= 4 and heard[2]:
                length += 4 * heard[3]
            if len(heard) < length:
                return heard
            frame, heard = heard[:length], heard[length:]
            if frames.sealed(frame[:-4]) == frame:
                self._execute(frame)
            else:
                self.bad += 1
        return b""

    def _execute(self, frame):
        address, found = struct.unpack_from("<I", frame, 4)[0], ()
        self.requests.append(frame)
        if frame[2] and frame[1] != self.number:
            self._write(address, frame[8:-4])
        if not frame[2]:
            found = frames.words(self._read(address, 4 * frame[3]))
        self.number = frame[1]
        answer = frames.reply(frame, found)
        changed = self.answered(frame, answer)
        os.write(self.master, answer if changed is None else changed)
