"""How a transfer is cut into packets: at multiples of PACKET_PAYLOAD."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.description import C


def packets_of(length):
    """Packets of a transfer; one without bytes has one."""
    return max(1, -(-length // C.PACKET_PAYLOAD))


def cut(length, skip=0):
    """(place, bytes) of the packets of a transfer, from the one at `skip` on."""
    return [
        (begin, min(C.PACKET_PAYLOAD, length - begin))
        for begin in range(0, max(length, 1), C.PACKET_PAYLOAD)
        if begin >= skip
    ]


def whole(packets):
    """Bytes of a transfer of so many packets."""
    return packets * C.PACKET_PAYLOAD
