"""The PCIe block of UltraScale and UltraScale+ at its four streams, with a host behind it.

Descriptors are those of cocotbext-pcie, which is not ours. Of the order the model keeps what PG156
and PG213 promise, and no more:

    RQ : requests leave in their order, late; then their sequence numbers are reported
    CC : completions leave in their order, and do not wait for requests
    RC : a completion begins when each posted request before it has left on CQ
"""

# SPDX-License-Identifier: BSD-2-Clause

from cocotbext.pcie.core.tlp import CplStatus, TlpType
from cocotbext.pcie.xilinx.us.interface import UsPcieFrame
from cocotbext.pcie.xilinx.us.tlp import ErrorCode, Tlp_us
from migen import passive

POSTED = {TlpType.MEM_WRITE, TlpType.MEM_WRITE_64}
COMPLETIONS = {TlpType.CPL, TlpType.CPL_DATA}


def frame_beats(frame, stream, lanes):
    """A frame of the block as fields of its beats."""
    beats = []
    for n in range(0, len(frame.data), lanes):
        part = frame.data[n : n + lanes]
        enables = sum(be << 4 * i for i, be in enumerate(frame.byte_en[n : n + lanes]))
        last = n + lanes >= len(frame.data)
        if stream == "cq":
            user = enables << 8 | (n == 0) << 40 | (frame.discontinue and last) << 41
            user |= (frame.first_be | frame.last_be << 4) if n == 0 else 0
        else:
            user = enables | (n == 0) << 32 | (frame.discontinue and last) << 42
        rubbish = [0xDEADBEEF] * (lanes - len(part))
        beats.append(
            {
                "data": sum(dw << 32 * i for i, dw in enumerate(part + rubbish)),
                "keep": (1 << len(part)) - 1,
                "user": user,
                "last": last,
            }
        )
    return beats


class Shown:
    """A stream that the block shows: CQ or RC."""

    def __init__(self, name, endpoint, random, gap):
        self.name, self.endpoint, self.random, self.gap = name, endpoint, random, gap
        self.lanes = len(endpoint.keep)
        self.packets = []  # (number in the order of the link, beats)
        self.offered = False

    def step(self, may_begin):
        """A cycle. Returns the number of the packet whose last beat was taken, or None."""
        ended = None
        if self.offered and (yield self.endpoint.ready):
            number, beats = self.packets[0]
            beats.pop(0)
            self.begun = bool(beats)
            self.offered = False
            if not beats:
                self.packets.pop(0)
                ended = number
        if not self.offered:
            show = self.packets and self.random.random() >= self.gap
            if show and (getattr(self, "begun", False) or may_begin(self.packets[0][0])):
                self.offered = True
                for name, value in self.packets[0][1][0].items():
                    yield getattr(self.endpoint, name).eq(value)
            yield self.endpoint.valid.eq(self.offered)
        return ended


class Taken:
    """A stream that the block takes: RQ or CC."""

    def __init__(self, name, endpoint, random, stall):
        self.name, self.endpoint, self.random, self.stall = name, endpoint, random, stall
        self.ready = 0
        self.frame = None
        self.beats = 0

    def step(self):
        """A cycle. Returns the frame that ended, or None."""
        ended, endpoint = None, self.endpoint
        valid = yield endpoint.valid
        assert valid or self.frame is None, f"{self.name}: a gap in a packet"
        if valid and self.ready:
            keep, last = (yield endpoint.keep), (yield endpoint.last)
            data, user = (yield endpoint.data), (yield endpoint.user)
            lanes = len(endpoint.keep)
            used = keep.bit_length()
            assert keep == (1 << used) - 1 and used and (last or used == lanes)
            if self.frame is None:
                self.frame = UsPcieFrame()
                if self.name == "rq":
                    self.frame.first_be, self.frame.last_be = user & 0xF, user >> 4 & 0xF
                    self.frame.seq_num = user >> 24 & 0xF
                    assert user & ~0xF0000FF == 0
                else:
                    assert user == 0
            self.frame.data += [data >> 32 * n & 0xFFFFFFFF for n in range(used)]
            if last:
                ended, self.frame = self.frame, None
        if self.ready != (self.random.random() >= self.stall):
            self.ready = 1 - self.ready
            yield endpoint.ready.eq(self.ready)
        return ended


class PCIeBlock:
    """
    departure, arrival : gateware; `take(tlp)` is called for each TLP that reaches the host, and
                         `host()` in each cycle
    delay              : most cycles that a request is in the block
    gap, stall         : shares of cycles without a beat, both ways
    """

    def __init__(self, departure, arrival, random, take, host, delay=60, gap=0.2, stall=0.2):
        self.departure, self.random, self.delay = departure, random, delay
        self.take, self.host = take, host
        self.cq = Shown("cq", arrival.cq, random, gap)
        self.rc = Shown("rc", arrival.rc, random, gap)
        self.rq = Taken("rq", departure.rq, random, stall)
        self.cc = Taken("cc", departure.cc, random, stall)
        self.number = 0
        self.posted = set()  # numbers of posted requests that have not left on CQ
        self.cycle = 0
        self.inside = {"rq": [], "cc": []}  # (cycle in which it leaves at the earliest, TLP)
        self.reports = []  # (cycle, number)
        self.quiet = False  # it reports nothing

    def send(self, tlp, error=None, discontinue=False):
        """To the card. `error`: of a completion; by itself it is that of its status."""
        tlp = Tlp_us(tlp)
        tlp.discontinue = discontinue
        stream = self.rc if tlp.fmt_type in COMPLETIONS else self.cq
        if stream is self.rc:
            status = ErrorCode.NORMAL_TERMINATION
            if tlp.status != CplStatus.SC:
                status = ErrorCode.BAD_STATUS
            tlp.error_code = status if error is None else error
            frame = tlp.pack_us_rc()
        else:
            frame = tlp.pack_us_cq()
        self.send_frame(stream, frame, tlp.fmt_type in POSTED)

    def send_frame(self, stream, frame, posted=False):
        if posted:
            self.posted.add(self.number)
        stream.packets.append((self.number, frame_beats(frame, stream.name, stream.lanes)))
        self.number += 1

    @property
    def waiting(self):
        return self.cq.packets or self.rc.packets

    def receive(self, name, frame):
        tlp = (Tlp_us.unpack_us_rq if name == "rq" else Tlp_us.unpack_us_cc)(frame)
        if name == "rq":
            assert not tlp.requester_id_enable and frame.first_be
            assert bool(frame.seq_num) == (tlp.fmt_type in POSTED)
        assert tlp.check()
        inside = self.inside[name]
        leaves = self.cycle + self.random.randrange(self.delay if name == "rq" else 4)
        inside.append((max([leaves, *[cycle for cycle, _ in inside]]), tlp))

    @passive
    def run(self):
        while True:
            yield
            self.cycle += 1
            self.host()
            ended = yield from self.cq.step(lambda number: True)
            self.posted.discard(ended)
            yield from self.rc.step(lambda number: all(other > number for other in self.posted))
            for stream in (self.rq, self.cc):
                frame = yield from stream.step()
                if frame:
                    self.receive(stream.name, frame)
            for name, inside in self.inside.items():
                while inside and inside[0][0] <= self.cycle:
                    tlp = inside.pop(0)[1]
                    self.take(tlp)
                    if name == "rq":
                        self.reports.append(tlp.seq_num)
            for report in self.departure.reports:
                now = self.reports and not self.quiet and self.random.random() < 0.7
                yield report.valid.eq(1 if now else 0)
                if now:
                    yield report.number.eq(self.reports.pop(0))
