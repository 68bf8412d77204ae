"""A small vfio-user client with the clock extension, for testing the simulator without libdibber.

Numbers are those of the vfio-user protocol specification (QEMU, docs/interop/vfio-user.rst).
"""

# SPDX-License-Identifier: BSD-2-Clause

import array
import json
import mmap
import os
import socket
import struct

from dibber.interface.description import INTERFACE

VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO, GET_IRQ_INFO = 1, 2, 3, 4, 5, 7
SET_IRQS, REGION_READ, REGION_WRITE, DMA_READ, DMA_WRITE, DEVICE_RESET = 8, 9, 10, 11, 12, 13
CLOCK = dict((name, value) for name, value, _ in INTERFACE.constants)["CLOCK_MESSAGE"]

OPS = {name: value for e in INTERFACE.enums if e.name == "clock_op" for name, value, _ in e.values}
CALLS = {name: value for e in INTERFACE.enums if e.name == "call" for name, value, _ in e.values}

REPLY, NO_REPLY, ERROR = 1, 0x10, 0x20
NEVER = 2**64 - 1


class Refused(Exception):
    """The server answered with an errno, in `errno`."""

    def __init__(self, command, errno):
        super().__init__(f"command {command}: {os.strerror(errno)}")
        self.errno = errno


class ClockReply:
    def __init__(self, payload):
        self.now, self.woken, self.error, self.cpu, self.free, _ = struct.unpack("<QIIQII", payload)


class Client:
    """One connection. `clock` asks for the clock extension; `join` lists the endpoints that join at
    once.

    The connection ends with close(), or with the last reference to the client: a test may leave a
    client behind.
    """

    def __init__(self, path, clock=True, join=(0,), timeout=600):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.next_id = 0
        self.messages = {}  # address: bytearray, memory that goes by message
        self.log = []  # what the server asked of that memory
        self.acknowledge = True
        capabilities = {"max_msg_fds": 8}
        if clock:
            capabilities["dibber_clock"] = 1
        self.capabilities = self.version(capabilities)
        for endpoint in join if clock else ():
            self.clock("JOIN", endpoint)

    # Messages -------------------------------------------------------------------------------------

    def send(self, command, payload=b"", fds=(), flags=0, size=None, message_id=None):
        if message_id is None:
            message_id = self.next_id = (self.next_id + 1) & 0xFFFF
        header = struct.pack("<HHIII", message_id, command, size or 16 + len(payload), flags, 0)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([header + payload], rights)
        return message_id

    def receive_exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.socket.recv(n - len(data))
            if not piece:
                raise ConnectionError("closed by the simulator")
            data += piece
        return data

    def receive(self):
        """The next reply; serves the server's own requests on the way."""
        while True:
            message_id, command, size, flags, error = struct.unpack(
                "<HHIII", self.receive_exactly(16)
            )
            payload = self.receive_exactly(size - 16)
            if flags & 0xF == REPLY:
                return message_id, command, flags, error, payload
            self.serve(message_id, command, payload)

    def serve(self, message_id, command, payload):
        address, count = struct.unpack_from("<QQ", payload)
        base = next(
            b for b, m in self.messages.items() if b <= address and address + count <= b + len(m)
        )
        memory = self.messages[base]
        self.log.append(("read" if command == DMA_READ else "write", address, count))
        answer = payload[:16]
        if command == DMA_READ:
            answer += bytes(memory[address - base : address - base + count])
        else:
            memory[address - base : address - base + count] = payload[16:]
        if self.acknowledge:
            self.send(command, answer, flags=REPLY, message_id=message_id)

    def request(self, command, payload=b"", fds=(), **kwargs):
        message_id = self.send(command, payload, fds, **kwargs)
        return self.answer(message_id)

    def answer(self, message_id):
        answered, command, flags, error, payload = self.receive()
        assert answered == message_id
        if flags & ERROR:
            raise Refused(command, error)
        return payload

    # The protocol ---------------------------------------------------------------------------------

    def version(self, capabilities):
        text = json.dumps({"capabilities": capabilities}).encode() + b"\0"
        payload = self.request(VERSION, struct.pack("<HH", 0, 1) + text)
        assert len(payload) <= 4 + len(text), "QEMU's buffer holds no more than it sent"
        assert struct.unpack_from("<HH", payload) == (0, 1)
        return json.loads(payload[4:].rstrip(b"\0"))["capabilities"]

    def map(self, address, size, fd=None, offset=0, flags=3):
        self.request(
            DMA_MAP,
            struct.pack("<IIQQQ", 32, flags, offset, address, size),
            () if fd is None else (fd,),
        )

    def map_shared(self, address, size):
        """Memory of a memfd, mapped by descriptor; returns our view of it."""
        fd = os.memfd_create("dma")
        os.ftruncate(fd, size)
        self.map(address, size, fd)
        view = mmap.mmap(fd, size)
        os.close(fd)
        return view

    def map_message(self, address, size):
        self.messages[address] = bytearray(size)
        self.map(address, size)
        return self.messages[address]

    def unmap(self, address, size):
        return self.request(DMA_UNMAP, struct.pack("<IIQQ", 24, 0, address, size))

    def read(self, offset, count, region=0):
        payload = self.request(REGION_READ, struct.pack("<QII", offset, region, count))
        assert struct.unpack_from("<QII", payload) == (offset, region, count)
        return payload[16:]

    def write(self, offset, data, region=0, posted=True):
        payload = struct.pack("<QII", offset, region, len(data)) + data
        if posted:
            self.send(REGION_WRITE, payload, flags=NO_REPLY)
        else:
            self.request(REGION_WRITE, payload)

    def config(self, offset, count):
        return int.from_bytes(self.read(offset, count, 7), "little")

    def bus_master(self, on=True):
        self.write(4, struct.pack("<H", 6 if on else 2), 7, posted=False)

    def set_irqs(self, fds, index=2, start=0, flags=4 | 32):
        self.request(SET_IRQS, struct.pack("<IIIII", 20, flags, index, start, len(fds)), fds)

    # The clock ------------------------------------------------------------------------------------

    def send_clock(
        self, op, endpoint=0, call=0, count=0, watch=0, length=0, deadline=NEVER, thread=0
    ):
        return self.send(
            CLOCK,
            struct.pack(
                "<IIIIQQQQ", OPS[op], endpoint, call, count, watch, length, deadline, thread
            ),
        )

    def clock(self, op, endpoint=0, **kwargs):
        reply = ClockReply(self.answer(self.send_clock(op, endpoint, **kwargs)))
        if reply.error:
            raise Refused(op, reply.error)
        return reply

    def charge(self, call, count=1, endpoint=0):
        return self.clock("CHARGE", endpoint, call=CALLS[call], count=count)

    def wait(self, watch=0, length=0, deadline=NEVER, endpoint=0):
        return self.clock("WAIT", endpoint, watch=watch, length=length, deadline=deadline)

    def close(self):
        self.socket.close()

    def __del__(self):
        # A socket that the garbage collector closes gives a ResourceWarning in whatever runs then.
        self.close()
