"""The command slots behind `layouts.slot_port`, as a generator for Migen's simulator."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.description import C, COMMAND, WALK


def target_slot(packet, length=0):
    """A command slot (bytes) from which `packet` (models.packet.Packet) takes its header."""
    slot = bytearray(C.SLOT_BYTES)

    def put(value, size, *path):
        offset = COMMAND[path[0]].offset + (WALK[path[1]].offset if len(path) > 1 else 0)
        slot[offset : offset + size] = (value % (1 << 8 * size)).to_bytes(size, "little")

    put(packet.key, 4, "target", "key")
    put(packet.block, 4, "target", "block")
    put(packet.offset, 8, "target", "offset")
    stride = b"".join((s % (1 << 64)).to_bytes(8, "little") for s, _ in packet.levels)
    count = b"".join(c.to_bytes(4, "little") for _, c in packet.levels)
    if packet.listed is not None:
        offset, key = packet.listed
        stride = stride.ljust(16, b"\0") + offset.to_bytes(8, "little")
        count = count.ljust(8, b"\0") + key.to_bytes(4, "little")
    put(int.from_bytes(stride, "little"), 24, "target", "stride")
    put(int.from_bytes(count, "little"), 12, "target", "count")
    if packet.notice is not None:
        value, length, endpoint = packet.notice
        put(value, 4, "notice")
        put(endpoint, 1, "endpoint")
        put(length, 4, "length")
    return bytes(slot)


@passive
def serve_slots(port, data_width, slots, random, busy=1.0):
    """`slots`: dict (endpoint, slot) -> bytes. `busy`: share of cycles in which the port is
    ready.
    """
    lines, pipe = C.SLOT_BYTES * 8 // data_width, [0, 0]
    while True:
        yield port.ready.eq(int(random.random() < busy))
        yield port.dat_r.eq(pipe.pop(0))
        yield
        value = random.getrandbits(data_width)
        if (yield port.valid) and (yield port.ready):
            address = yield port.adr
            number, line = divmod(address, lines)
            slot = slots[divmod(number, C.SLOTS)]
            size = data_width // 8
            value = int.from_bytes(slot[line * size : line * size + size], "little")
        pipe.append(value)


@passive
def write_slots(port, data_width, slots, random, busy=1.0):
    """What the engine writes, into `slots`: dict (endpoint, slot) -> bytes."""
    lines, size = C.SLOT_BYTES * 8 // data_width, data_width // 8
    while True:
        yield port.ready.eq(int(random.random() < busy))
        yield
        if (yield port.valid) and (yield port.ready):
            number, line = divmod((yield port.adr), lines)
            # A line is written as a whole; at 256 bits also its first 16 bytes, a reply.
            used = (yield port.be).bit_length()
            assert (yield port.be) == 2**used - 1 and (used == size or used == 16 < size)
            slot = slots[divmod(number, C.SLOTS)]
            value = (yield port.dat_w) & (1 << 8 * used) - 1
            slots[divmod(number, C.SLOTS)] = (
                slot[: line * size] + value.to_bytes(used, "little") + slot[line * size + used :]
            )
