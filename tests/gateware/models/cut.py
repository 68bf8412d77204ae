# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""How a transfer is cut into packets: at multiples of PACKET_PAYLOAD, and a long one at PACKET_HEAD too."""

from dibber.interface.description import C


def whole(packets):
    """Bytes in the first `packets` packets of a transfer that has more."""
    return (0, C.PACKET_HEAD)[packets] if packets < 2 else (packets - 1)*C.PACKET_PAYLOAD


def packets_of(length):
    """Packets of a transfer; one without bytes has one."""
    return max(1, -(-length//C.PACKET_PAYLOAD)) + (length > 2*C.PACKET_HEAD)


def cut(length, skip=0):
    """(place, bytes) of the packets of a transfer, from the one at `skip` on."""
    ends   = [0] + [whole(n) for n in range(1, packets_of(length))] + [length]
    return [(begin, end - begin) for begin, end in zip(ends, ends[1:]) if begin >= skip]
