# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""How a transfer is cut into packets: at multiples of PACKET_PAYLOAD, and near the start of one that is not long."""

from dibber.interface.description import C


def cuts(length):
    """Where a transfer is cut."""
    places = range(C.PACKET_PAYLOAD, length, C.PACKET_PAYLOAD)
    if length > C.HEAD_LENGTH:
        return list(places)
    return [C.PACKET_HEAD]*(length > 2*C.PACKET_HEAD) + [C.PACKET_NEXT]*(length > 3*C.PACKET_NEXT//2) + list(places)


def packets_of(length):
    """Packets of a transfer; one without bytes has one."""
    return len(cuts(length)) + 1


def cut(length, skip=0):
    """(place, bytes) of the packets of a transfer, from the one at `skip` on."""
    ends = [0, *cuts(length), length]
    return [(begin, end - begin) for begin, end in zip(ends, ends[1:]) if begin >= skip]


def whole(packets):
    """Bytes of a transfer of so many packets; of one that is no longer than HEAD_LENGTH, where that packet begins."""
    if packets < 3:
        return (0, C.PACKET_HEAD, C.PACKET_NEXT)[packets]
    length = (packets - 2)*C.PACKET_PAYLOAD
    return length if length <= C.HEAD_LENGTH else packets*C.PACKET_PAYLOAD
