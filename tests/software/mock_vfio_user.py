"""A vfio-user server in Python: the other end of libdibber's socket, for tests that need no
simulator.
"""

# SPDX-License-Identifier: BSD-2-Clause

import errno
import json
import mmap
import os
import socket
import struct
import threading

VERSION, DMA_MAP, DMA_UNMAP, REGION_INFO, SET_IRQS = 1, 2, 3, 5, 8
REGION_READ, REGION_WRITE, DMA_READ, DMA_WRITE = 9, 10, 11, 12
REPLY, NO_REPLY, ERROR = 0x1, 0x10, 0x20
HEADER = struct.Struct("<HHIII")


class Closed(Exception):
    """The client has gone."""


class Mapping:
    """Memory of the client: shared by descriptor, or reached by message."""

    def __init__(self, address, size, fd, offset):
        self.address, self.size = address, size
        self.shared = None
        if fd is not None:
            self.shared = mmap.mmap(fd, size, offset=offset)
            os.close(fd)


class Server:
    """Serves one client after the other on a socket, in a thread of its own.

    `device` has config (bytearray), bar_read(offset, length), bar_write(offset, data), vectors (a
    dictionary of eventfds), clock(payload, wants_answer) → bytes or an errno, reset() for the next
    client, and gets `server` set. If it has `aperture_bytes`, the size of BAR 2, it also has
    aperture_read() and aperture_write().

    Attributes for tests
    --------------------
    tamper   : called with (command, reply payload) before a reply leaves; returns what to send as
               the whole message instead, or None
    messages : (command, payload) of all received messages
    """

    def __init__(self, path, device, bar_size, clock_message, offers_clock=True):
        self.path, self.device, self.bar_size = path, device, bar_size
        self.clock_message, self.offers_clock = clock_message, offers_clock
        self.tamper, self.messages = None, []
        self.mappings, self.waiting, self.next_id = [], [], 0
        device.server = self
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.connection = None
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.disconnect()
        self.thread.join(10)
        self.listener.close()

    def disconnect(self):
        """Close the connection, as a simulator that dies does."""
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass

    # The client's memory --------------------------------------------------------------------------

    def read_memory(self, address, length):
        m = self._find(address, length)
        if m.shared:
            return bytes(m.shared[address - m.address : address - m.address + length])
        error, payload = self._ask(DMA_READ, struct.pack("<QQ", address, length))
        if error:
            raise OSError(error, "DMA_READ")
        return payload[16:]

    def write_memory(self, address, data):
        m = self._find(address, len(data))
        if m.shared:
            m.shared[address - m.address : address - m.address + len(data)] = data
            return
        error, _ = self._ask(DMA_WRITE, struct.pack("<QQ", address, len(data)) + data)
        if error:
            raise OSError(error, "DMA_WRITE")

    def _find(self, address, length):
        for m in self.mappings:
            if m.address <= address and address + length <= m.address + m.size:
                return m
        raise OSError(errno.EFAULT, f"0x{address:x} is not mapped")

    # Messages -------------------------------------------------------------------------------------

    def send(self, data):
        try:
            self.connection.sendall(data)
        except OSError:
            raise Closed from None

    def _receive(self):
        head, fds, *_ = socket.recv_fds(self.connection, HEADER.size, 4, socket.MSG_WAITALL)
        if len(head) < HEADER.size:
            raise Closed
        ident, command, size, flags, error = HEADER.unpack(head)
        payload = b""
        while len(payload) < size - HEADER.size:
            more = self.connection.recv(size - HEADER.size - len(payload))
            if not more:
                raise Closed
            payload += more
        return ident, command, flags, error, payload, fds

    def _ask(self, command, payload):
        self.next_id += 1
        self.send(HEADER.pack(self.next_id, command, HEADER.size + len(payload), 0, 0) + payload)
        while True:
            message = self._receive()
            if message[2] & REPLY:
                return message[3] if message[2] & ERROR else 0, message[4]
            self.waiting.append(message)

    def _answer(self, ident, command, payload, error=0):
        message = HEADER.pack(
            ident, command, HEADER.size + len(payload), REPLY | (ERROR if error else 0), error
        )
        message += payload
        changed = self.tamper(command, message) if self.tamper else None
        self.send(message if changed is None else changed)

    def _serve(self):
        while True:
            try:
                self.connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                while True:
                    self._handle(*(self.waiting.pop(0) if self.waiting else self._receive()))
            except (Closed, OSError):
                self.mappings, self.waiting = [], []
                self.device.reset()
                self.connection.close()

    def _handle(self, ident, command, flags, _, payload, fds):
        self.messages.append((command, payload))
        result, error = b"", 0
        if command == VERSION:
            capabilities = {"max_data_xfer_size": 1 << 20}
            if self.offers_clock:
                capabilities["dibber_clock"] = 1
            result = payload[:4] + json.dumps({"capabilities": capabilities}).encode() + b"\0"
        elif command == DMA_MAP:
            _, _, offset, address, size = struct.unpack("<IIQQQ", payload)
            self.mappings.append(Mapping(address, size, fds[0] if fds else None, offset))
        elif command == DMA_UNMAP:
            _, _, address, size = struct.unpack("<IIQQ", payload)
            self.mappings = [m for m in self.mappings if (m.address, m.size) != (address, size)]
            result = payload
        elif command == REGION_INFO:
            size = self.device.aperture_bytes if payload[8] == 2 else self.bar_size
            result = payload[:16] + struct.pack("<QQ", size, 0)
        elif command == SET_IRQS:
            self.device.vectors[struct.unpack_from("<IIIII", payload)[3]] = fds[0]
        elif command in (REGION_READ, REGION_WRITE):
            offset, region, count = struct.unpack_from("<QII", payload)
            data = payload[16:]
            if command == REGION_WRITE:
                if region == 7:
                    self.device.config[offset : offset + count] = data
                elif region == 2:
                    self.device.aperture_write(offset, data)
                else:
                    self.device.bar_write(offset, data)
                result = payload[:16]
            elif region == 7:
                result = payload[:16] + bytes(self.device.config[offset : offset + count])
            elif region == 2:
                result = payload[:16] + self.device.aperture_read(offset, count)
            else:
                result = payload[:16] + self.device.bar_read(offset, count)
        elif command == self.clock_message:
            answer = self.device.clock(payload, not flags & NO_REPLY)
            result, error = (b"", answer) if isinstance(answer, int) else (answer, 0)
        else:
            error = errno.ENOSYS
        if not flags & NO_REPLY:
            self._answer(ident, command, result, error)
