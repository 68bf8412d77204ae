"""The bound, which no card behind this PCIe and this cable can exceed, in payload bytes per second.

    bound = min(link, PCIe up, PCIe down, engine)

It is a function of the profile and the transfer alone. The link's framing is fixed at 48 bytes for
a packet of 4096, and the engine at one beat of the PCIe stream per cycle. Over Ethernet each frame
takes 46 bytes more. So no term depends on our design, but one: 32-bit words of a profile that has
them may be slower than a cable with frames. TLPs do not share beats: with 8 bytes of payload a TLP
takes 2 cycles at 128 bits and 3 at 64, and with 4 bytes one less.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dibber_cli.profile import Profile

PACKET_PAYLOAD = 4096  # bytes …
PACKET_OVERHEAD = 48  # … and the bound's allowance for framing, header and CRCs
# Bytes of a frame besides packets, and of its payload those that are no packet: preamble,
# addresses, type, header, FCS, gap (IEEE 802.3-2018, 3.1 and 4.2).
FRAME_OVERHEAD, FRAME_HEADER = 8 + 12 + 2 + 8 + 4 + 12, 8
MESSAGE_OVERHEAD = 40  # the same for a short packet: as many as ours takes, which is less
PAGE = 4096  # no TLP crosses it: PCIe Base 3.0, 2.2.7
COMPLETION_HEADER = 12  # PCIe Base 3.0, 2.2.9: always 3 DW
DW = 4
LIST_ENTRY = 8  # bytes of an entry of an index list
# reading over a longer gap costs more bytes and cycles of completions than it saves
COVER = 40


@dataclass(frozen=True)
class Side:
    """One side of a transfer for the bound: blocks of `block` bytes.

    levels  : ((count, stride in bytes), …), innermost first
    address : of the first block, bytes; above 4 GiB headers of requests are 4 DW
    entries : of an index list, bytes that are added to `address`; () without a list
    """

    block: int
    levels: tuple = ()
    address: int = 0
    entries: tuple = ()

    @property
    def length(self) -> int:
        return self.block * math.prod(count for count, _ in self.levels) * max(1, len(self.entries))

    @property
    def list(self) -> "Side | None":
        """Place of the list itself, which is read on the host whose memory it names; None without a
        list.
        """
        return (
            Side(LIST_ENTRY * len(self.entries), address=self.address // PAGE * PAGE)
            if self.entries
            else None
        )

    @property
    def header(self) -> int:
        """Bytes of a request's header: PCIe Base 3.0, 2.2.4.1."""
        return 16 if self.address >= 1 << 32 else 12

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Contiguous pieces as (address, length); adjacent blocks without a gap are one piece."""
        blocks = [self.address]
        for count, stride in self.levels:
            blocks = [address + i * stride for i in range(count) for address in blocks]
        if self.entries:
            blocks = [entry + address for entry in self.entries for address in blocks]
        pieces = [(blocks[0], self.block)]
        for address in blocks[1:]:
            begin, length = pieces[-1]
            if address == begin + length:
                pieces[-1] = (begin, length + self.block)
            else:
                pieces.append((address, self.block))
        return pieces


@dataclass(frozen=True)
class Cost:
    """The cost of one side: bytes of PCIe and cycles of the card, in each direction."""

    up: int = 0
    down: int = 0
    up_cycles: int = 0
    down_cycles: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


@dataclass(frozen=True)
class Bound:
    """Payload bytes per second of each term; `value` is the smallest, `name` its name."""

    link: float
    pcie_up: float
    pcie_down: float
    engine: float

    @property
    def value(self) -> float:
        return min(self.link, self.pcie_up, self.pcie_down, self.engine)

    @property
    def name(self) -> str:
        return min(("link", "pcie_up", "pcie_down", "engine"), key=lambda n: getattr(self, n))


def _split(address: int, length: int, limit: int, boundary: int = PAGE) -> Iterator[int]:
    """Cut [address, address + length), rounded out to dwords, at `boundary` and into `limit` bytes:
    lengths.
    """
    begin, end = address // DW * DW, -(-(address + length) // DW) * DW
    while begin < end:
        step = min(end - begin, limit, boundary - begin % boundary)
        yield step
        begin += step


def _beats(profile: Profile, header: int, payload: int = 0) -> int:
    """Cycles of a TLP on the PCIe stream; bytes."""
    return -(-(header + payload) * 8 // profile.data_width)


def write_cost(profile: Profile, side: Side) -> Cost:
    """Deposit: memory writes upstream."""
    up = cycles = 0
    for address, length in side.pieces():
        for payload in _split(address, length, profile.max_payload):
            up += side.header + payload + profile.framing
            cycles += _beats(profile, side.header, payload)
    return Cost(up=up, up_cycles=cycles)


def _read_pieces(profile: Profile, header: int, pieces: Iterable[tuple[int, int]]) -> Cost:
    up = down = up_cycles = down_cycles = 0
    for address, length in pieces:
        at = address // DW * DW
        for request in _split(address, length, profile.max_read_request):
            up += header + profile.framing
            up_cycles += _beats(profile, header)
            # "random" splits in expectation no better than "maximum": the bound takes that.
            boundary = (
                profile.read_completion_boundary if profile.completion_split == "boundary" else PAGE
            )
            for payload in _split(at, request, profile.max_payload, boundary):
                down += COMPLETION_HEADER + payload + profile.framing
                down_cycles += _beats(profile, COMPLETION_HEADER, payload)
            at += request
    return Cost(up, down, up_cycles, down_cycles)


def _ascending(side: Side) -> list[list[int]]:
    """The pieces by address; pieces that overlap or touch become one, because the reader may choose
    the order.
    """
    runs: list[list[int]] = []
    for address, length in sorted(side.pieces()):
        if runs and address <= runs[-1][1]:
            runs[-1][1] = max(runs[-1][1], address + length)
        else:
            runs.append([address, address + length])
    return runs


def _joined(
    profile: Profile, runs: Iterable[Sequence[int]], within: float, across: float
) -> list[tuple[int, int]]:
    """Runs as pieces. One request covers several over gaps of up to `within` bytes where
    completions are not cut, and of `across` bytes where they are.
    """
    unit = profile.read_completion_boundary
    pieces: list[list[int]] = []
    for begin, end in runs:
        last = pieces[-1] if pieces else None
        if last is not None:
            gap = within if (last[1] - 1) // unit == begin // unit else across
            if begin - last[1] <= gap and end - last[0] <= profile.max_read_request:
                last[1] = end
                continue
        pieces.append([begin, end])
    return [(begin, end - begin) for begin, end in pieces]


def read_costs(profile: Profile, side: Side, cover: float = math.inf) -> list[Cost]:
    """Fetch: a request for each piece, or for several with gaps of up to `cover` bytes between
    them. Returns one Cost for each way to choose.
    """
    runs = _ascending(side)
    gaps = sorted(
        {
            gap
            for before, following in zip(runs, runs[1:])
            if (gap := following[0] - before[1]) <= cover
        }
    )
    ways = [(within, across) for within in (0, *gaps) for across in (0, *gaps) if across <= within]
    return [_read_pieces(profile, side.header, _joined(profile, runs, *way)) for way in ways]


def list_cost(profile: Profile, side: Side) -> Cost:
    """The card's reads to know the places of a side: its list, once, in its order, with the longest
    requests.
    """
    return read_costs(profile, side.list)[0] if side.list else Cost()


def _rate(length: float, units: float, units_per_second: float) -> float:
    return length * units_per_second / units if units else float("inf")


def _mixtures(profile: Profile, one: Cost, other: Cost, write: Cost) -> Iterator[Cost]:
    """The cost of a mixture of two ways to read, `one` and `other`. Upstream also carries the cost
    `write`. The mixture makes upstream as busy as downstream, or as the engine for completions.
    """
    yield one
    for down, rate in (("down", profile.pcie_bytes), ("down_cycles", profile.clock_hz)):
        before, after = (
            (way.up + write.up) / profile.pcie_bytes
            - (getattr(way, down) + getattr(write, down)) / rate
            for way in (one, other)
        )
        if before > 0 > after:
            share = before / (before - after)
            yield Cost(
                *(
                    a + share * (b - a)
                    for a, b in zip(dataclasses.astuple(one), dataclasses.astuple(other))
                )
            )


def link_bound(profile: Profile) -> float:
    """Payload bytes per second of packets of 4096 bytes on the link."""
    packet = PACKET_PAYLOAD + PACKET_OVERHEAD
    if not profile.mtu:
        return profile.link_bytes * PACKET_PAYLOAD / packet
    frames = -(-packet // (profile.mtu - FRAME_HEADER))
    wire = packet + FRAME_OVERHEAD * frames
    return PACKET_PAYLOAD * min(profile.link_rate / 8 / wire, profile.card_bytes / packet)


def bound(profile: Profile, source: Side, target: Side, both_ways: bool = False) -> Bound:
    """The bound of a transfer from `source` on one host to `target` on the other. With `both_ways`,
    both cards do the same, and it is the bound of each direction."""
    length = source.length
    write = write_cost(profile, target) + list_cost(profile, target)
    link = link_bound(profile)

    def limits(read: Cost) -> Bound:
        # In one direction, the reading and the writing host differ. In both, requests and writes
        # share one upstream.
        host = [read + write] if both_ways else [read, write]
        return Bound(
            link=link,
            pcie_up=_rate(length, max(cost.up for cost in host), profile.pcie_bytes),
            pcie_down=_rate(length, max(cost.down for cost in host), profile.pcie_bytes),
            engine=_rate(
                length,
                max(max(cost.up_cycles, cost.down_cycles) for cost in (read, write)),
                profile.clock_hz,
            ),
        )

    # Requests never have more bytes than their completions. So in one direction only completions
    # are worth saving.
    ways = [
        way + list_cost(profile, source)
        for way in read_costs(profile, source, math.inf if both_ways else COVER)
    ]
    if both_ways:
        ways = [
            mixture
            for one in ways
            for other in ways
            for mixture in _mixtures(profile, one, other, write)
        ]
    return max((limits(read) for read in ways), key=lambda b: b.value)


def bound_of_writes(profile: Profile, target: Side) -> Bound:
    """The bound of a card that only writes, without a cable and a source."""
    cost = write_cost(profile, target)
    free = float("inf")
    return Bound(
        link=free,
        pcie_up=_rate(target.length, cost.up, profile.pcie_bytes),
        pcie_down=free,
        engine=_rate(target.length, cost.up_cycles, profile.clock_hz),
    )


# Remote window ------------------------------------------------------------------------------------

STORE = 8  # bytes of a processor's store, and of a TLP of a line that is not full
LINE = 64  # bytes of a write-combining buffer, and of the card's stream buffer
WIDE_HEADER = 16  # bytes: BAR 2 lies above 4 GiB


@dataclass(frozen=True)
class StoreBound:
    """Payload bytes per second of each term, as Bound."""

    link: float
    pcie_down: float
    cpu: float

    @property
    def value(self) -> float:
        return min(self.link, self.pcie_down, self.cpu)

    @property
    def name(self) -> str:
        return min(("link", "pcie_down", "cpu"), key=lambda n: getattr(self, n))


def stores(profile: Profile, length: int, stride: int = 0) -> StoreBound:
    """The bound of `length` bytes that a processor stores through a remote window, 8 at a time with
    `stride` bytes from one to the next; 0: contiguous.

    A whole line is a packet, and so is each run of bytes of another line. Lines leave the
    processor's write-combining buffers one at a time.
    """
    if stride == 0:
        lines = -(-length // LINE)
        return StoreBound(
            link=_rate(length, length + lines * MESSAGE_OVERHEAD, profile.link_bytes),
            pcie_down=_rate(
                length, length + lines * (WIDE_HEADER + profile.framing), profile.pcie_bytes
            ),
            cpu=_rate(length, lines * profile.combining_line_ns, 1e9),
        )
    count = length // STORE
    lines = -(-count * min(stride, LINE) // LINE)
    return StoreBound(
        link=_rate(length, count * (STORE + MESSAGE_OVERHEAD), profile.link_bytes),
        pcie_down=_rate(
            length, count * (STORE + WIDE_HEADER + profile.framing), profile.pcie_bytes
        ),
        cpu=_rate(length, lines * profile.combining_line_ns, 1e9),
    )


def answer_seconds(profile: Profile, reads: bool) -> float:
    """Seconds from a processor's 8-byte store to the answer of the barrier behind it, or (`reads`)
    from its load to the value, without any card.

    Both cross the cable twice, with a packet of overhead alone for what has no payload, and reach
    the card and come back by PCIe once. A load also reads the other host's memory.
    """
    there, back = (MESSAGE_OVERHEAD, STORE + MESSAGE_OVERHEAD)
    if not reads:
        there, back = back, there
    tlp = WIDE_HEADER + profile.framing
    pcie = (tlp if reads else tlp + STORE) + COMPLETION_HEADER + STORE + profile.framing
    return (
        pcie / profile.pcie_bytes
        + (there + back) / profile.link_bytes
        + 1e-9
        * (
            profile.posted_down_ns
            + 2 * profile.cable_ns
            + profile.posted_up_ns
            + (profile.read_latency_ns if reads else 0)
        )
    )


# Messages -----------------------------------------------------------------------------------------


def _message_bytes(profile: Profile, length: int) -> tuple[int, int]:
    """The cost of one message, which is one packet: bytes of PCIe on each host, of the cable."""
    return Side(length).header + length + profile.framing, length + MESSAGE_OVERHEAD


def messages(profile: Profile, length: int) -> tuple[float, str]:
    """(messages per second, name of the term) of distinct puts whose bytes the CPU writes into the
    card.
    """
    pcie, cable = _message_bytes(profile, length)
    return min((profile.link_bytes / cable, "link"), (profile.pcie_bytes / pcie, "pcie_down"))


def message_seconds(profile: Profile, length: int) -> float:
    """Seconds from the CPU's write to the bytes in the other host's memory, without any card."""
    pcie, cable = _message_bytes(profile, length)
    return (
        2 * pcie / profile.pcie_bytes
        + cable / profile.link_bytes
        + 1e-9 * (profile.posted_down_ns + profile.cable_ns + profile.posted_up_ns)
    )
