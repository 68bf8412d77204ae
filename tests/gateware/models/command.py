"""A command slot's bytes, from the interface description."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import C, COMMAND, WALK


def put_member(data, struct, base, name, value, index=0):
    member = struct[name]
    size = member.size // member.count
    at = base + member.offset + size * index
    data[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")


def command(source, target, length, node=1, flags=0, endpoint=0, cookie=0, notice=0):
    """128 bytes; `source` and `target` are (key, offset, block, strides, counts), and behind that
    (offset, key) of an index list.
    """
    data = bytearray(COMMAND.size)
    levels = [len(walk[3]) + (C.LIST if walk[5:] else 0) for walk in (source, target)]
    for name, value in dict(
        opcode=1,
        flags=flags,
        levels=levels[0] | levels[1] << 4,
        endpoint=endpoint,
        node=node,
        length=length,
        cookie=cookie,
        notice=notice,
    ).items():
        put_member(data, COMMAND, 0, name, value)
    for name, (key, offset, block, strides, counts, *listed) in (
        ("source", source),
        ("target", target),
    ):
        base = COMMAND[name].offset
        put_member(data, WALK, base, "key", key)
        put_member(data, WALK, base, "block", block)
        put_member(data, WALK, base, "offset", offset)
        for i, (stride, count) in enumerate(zip(strides, counts)):
            put_member(data, WALK, base, "stride", stride, 2 * i)
            put_member(data, WALK, base, "stride", stride >> 32, 2 * i + 1)
            put_member(data, WALK, base, "count", count, i)
        for place, list_key in listed:
            put_member(data, WALK, base, "stride", place, 4)
            put_member(data, WALK, base, "stride", place >> 32, 5)
            put_member(data, WALK, base, "count", list_key, 2)
    return bytes(data)
