# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The bound: what no card behind this PCIe and this cable can pass, in payload bytes a second.

    bound = min(link, PCIe up, PCIe down, engine)

It is a function of the profile and the transfer alone. The link's framing is fixed at 48 bytes a packet of 4096 and the
engine at one small TLP in 2 cycles (128 bits) or 3 (64 bits), so that no term becomes better or worse with our design.
"""

from dataclasses import dataclass

PACKET_PAYLOAD  = 4096    # bytes …
PACKET_OVERHEAD = 48      # … and what the bound grants a packet for framing, header and check
PAGE            = 4096    # no TLP crosses it: PCIe Base 3.0, 2.2.7
COMPLETION_HEADER = 12    # PCIe Base 3.0, 2.2.9: always 3 DW
DW              = 4
SMALL_TLP_CYCLES = {64: 3, 128: 2}


@dataclass(frozen=True)
class Side:
    """One side of a transfer as the bound sees it: `count` blocks of `block` bytes, `stride` bytes apart.

    address : of the first block; above 4 GiB TLP headers are 4 DW
    """
    block   : int
    count   : int = 1
    stride  : int = 0
    address : int = 0

    @property
    def length(self):
        return self.block*self.count

    @property
    def header(self):
        """Bytes of a request's header: PCIe Base 3.0, 2.2.4.1."""
        return 16 if self.address >= 1 << 32 else 12

    def pieces(self):
        """Contiguous pieces as (address, length); blocks without a gap between them are one piece."""
        if self.stride == self.block or self.count == 1:
            return [(self.address, self.length)]
        return [(self.address + i*self.stride, self.block) for i in range(self.count)]


@dataclass(frozen=True)
class Cost:
    """What one side costs: bytes of PCIe in each direction, cycles of the card in each direction."""
    up          : int = 0
    down        : int = 0
    up_cycles   : int = 0
    down_cycles : int = 0


@dataclass(frozen=True)
class Bound:
    """Payload bytes a second of each term; `value` is the least, `name` its name."""
    link      : float
    pcie_up   : float
    pcie_down : float
    engine    : float

    @property
    def value(self):
        return min(self.link, self.pcie_up, self.pcie_down, self.engine)

    @property
    def name(self):
        return min(("link", "pcie_up", "pcie_down", "engine"), key=lambda n: getattr(self, n))


def _split(address, length, limit, boundary=PAGE):
    """Cut [address, address + length), rounded out to dwords, at `boundary` and into `limit` bytes: lengths."""
    begin, end = address//DW*DW, -(-(address + length)//DW)*DW
    while begin < end:
        step = min(end - begin, limit, boundary - begin % boundary)
        yield step
        begin += step


def _cycles(profile, payload_bytes):
    """Of a TLP with a 3-DW header in the engine: a beat a cycle, but never less than a small TLP's."""
    return max(SMALL_TLP_CYCLES[profile.data_width], -(-(12 + payload_bytes)*8//profile.data_width))


def write_cost(profile, side):
    """Deposit: memory writes upstream."""
    up = cycles = 0
    for address, length in side.pieces():
        for payload in _split(address, length, profile.max_payload):
            up     += side.header + payload + profile.framing
            cycles += _cycles(profile, payload)
    return Cost(up=up, up_cycles=cycles)


def _read_pieces(profile, header, pieces):
    up = down = up_cycles = down_cycles = 0
    for address, length in pieces:
        at = address//DW*DW
        for request in _split(address, length, profile.max_read_request):
            up        += header + profile.framing
            up_cycles += SMALL_TLP_CYCLES[profile.data_width]
            # "random" splits in expectation no better than "maximum": the bound takes that.
            boundary = profile.read_completion_boundary if profile.completion_split == "boundary" else PAGE
            for payload in _split(at, request, profile.max_payload, boundary):
                down        += COMPLETION_HEADER + payload + profile.framing
                down_cycles += _cycles(profile, payload)
            at += request
    return Cost(up, down, up_cycles, down_cycles)


def _covering(profile, side):
    """The lines that the pieces touch, each once, as pieces; lines that follow each other are one."""
    lines = sorted({line for address, length in side.pieces()
                    for line in range(address//profile.line, -(-(address + length)//profile.line))})
    pieces = []
    for line in lines:
        if pieces and pieces[-1][0] + pieces[-1][1] == line*profile.line:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + profile.line)
        else:
            pieces.append((line*profile.line, profile.line))
    return pieces


def read_costs(profile, side):
    """Fetch: one request a piece, or covering whole lines."""
    return (_read_pieces(profile, side.header, side.pieces()),
            _read_pieces(profile, side.header, _covering(profile, side)))


def _rate(length, units, units_per_second):
    return length*units_per_second/units if units else float("inf")


def bound(profile, source, target, both_ways=False):
    """The bound of a transfer from `source` on one host to `target` on the other; for each direction when
    `both_ways`, both cards then doing the same."""
    length = source.length
    write  = write_cost(profile, target)
    link   = profile.link_bytes*PACKET_PAYLOAD/(PACKET_PAYLOAD + PACKET_OVERHEAD)
    best   = None
    for read in read_costs(profile, source):
        # One way, the reading and the writing host are two; both ways, requests and writes share one upstream.
        up = read.up + write.up if both_ways else max(read.up, write.up)
        candidate = Bound(
            link      = link,
            pcie_up   = _rate(length, up, profile.pcie_bytes),
            pcie_down = _rate(length, read.down, profile.pcie_bytes),
            engine    = _rate(length, max(write.up_cycles, read.up_cycles, read.down_cycles), profile.clock_hz))
        if best is None or candidate.value > best.value:
            best = candidate
    return best
