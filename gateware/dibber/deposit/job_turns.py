"""Jobs of a card with two links: a packet of each link's jobs in turn. docs/design/two-links.md."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.common.places import BlockFIFO
from dibber.interface.description import C, STATUS
from dibber.layouts import job_end_layout, job_layout
from dibber.packet.split import LINKS

def part_layout():
    """A part of a job: one packet. `skip` is where it starts, and `length` where it ends in the
    transfer. `more`: other parts follow, so its packet has not the flags of the job's end.
    """
    return stream.EndpointDescription(
        [*job_layout().payload_layout, ("more", 1), ("link", log2_int(LINKS))])

# Job Turns ----------------------------------------------------------------------------------------

class JobTurns(LiteXModule):
    """Cut jobs into parts of one packet, and give the engine a part of each link in turn.

    A part goes to the engine when its packet has a place in the splitter. So a link that is stopped
    has nothing in the engine that waits, and its jobs stop no job of the other link.

    A job has one part in the engine at a time. If it fails, no packet behind the failed one was
    made, and the job ends with the status and the PSN of this part.

    Example: a job of 9000 bytes with PSN 7 has the parts (skip 0, length 4096, PSN 7), (4096, 8192,
    8) and (8192, 9000, 9); the first two have `more`.

    Parameters
    ----------
    waiting : jobs of a link that can wait. The next one of this link makes the sink wait

    Attributes
    ----------
    sink    : Endpoint(job_layout), in
    homes   : Signal(NODES), in   by node: the link of its route
    parts   : Endpoint(part_layout), out   to the engine
    ends    : Endpoint(job_end_layout), in    of the parts, in their order
    done    : Endpoint(job_end_layout), out   of the jobs: `checksum` of all bytes of their parts
    room, reserve, cancel : Signal(2)   to and from PacketSplitter, by link
    came    : Signal(2), in   pulse: a packet of this link has come to the splitter; in the cycle
              before the end of its part or earlier

    Cycles: 3 from the sink to the first part, 2 between parts of both links. From the end of a part
    to the job's next one 2.
    """
    def __init__(self, waiting=16):
        self.sink    = sink  = stream.Endpoint(job_layout())
        self.homes   = Signal(C.NODES)
        self.parts   = parts = stream.Endpoint(part_layout())
        self.ends    = ends  = stream.Endpoint(job_end_layout())
        self.done    = done  = stream.Endpoint(job_end_layout())
        self.room    = Signal(LINKS)
        self.reserve = Signal(LINKS)
        self.cancel  = Signal(LINKS)
        self.came    = Signal(LINKS)

        # # #

        rows = [BlockFIFO(job_layout(), waiting) for _ in range(LINKS)]
        self.submodules += rows
        self.order = order = stream.SyncFIFO([("link", log2_int(LINKS))], LINKS)
        names = [name for name, *_ in job_layout().payload_layout if name not in (
            "skip", "length", "psn")]

        # Rows -------------------------------------------------------------------------------------
        homes = Array(self.homes[node] for node in range(C.NODES))
        home  = Signal()
        self.comb += [
            home.eq(homes[sink.node[:log2_int(C.NODES)]]),
            *[sink.connect(row.sink, omit={"valid", "ready"}) for row in rows],
            *[row.sink.valid.eq(sink.valid & (home == n)) for n, row in enumerate(rows)],
            sink.ready.eq(Mux(home, rows[1].sink.ready, rows[0].sink.ready)),
        ]

        # Turns ------------------------------------------------------------------------------------
        busy   = Signal()       # a part is offered
        link   = Signal()       # its link, or that of the last part
        offers = Signal(LINKS)  # a part can go
        flying = Signal(LINKS)  # a part is in the engine, or offered
        chosen = Signal(LINKS)
        sent   = Signal()
        self.comb += [
            chosen.eq(Mux(busy, 0, Mux(offers[0] & (~offers[1] | link), 0b01, offers & 0b10))),
            self.reserve.eq(chosen),
            sent.eq(parts.valid & parts.ready),
            parts.valid.eq(busy & order.sink.ready),
            parts.link.eq(link),
            order.sink.valid.eq(sent),
            order.sink.link.eq(link),
        ]
        self.sync += [
            If(chosen != 0, busy.eq(1), link.eq(chosen[1])),
            If(sent, busy.eq(0)),
        ]

        # Ends -------------------------------------------------------------------------------------
        ended = Signal(LINKS)  # a part ends
        final = Signal(LINKS)  # it would be its job's last one
        sums  = [Signal(16, name=f"sum{n}") for n in range(LINKS)]  # of the parts before
        carry = Signal(17)
        total = Signal(16)
        is_end = Signal()      # the job ends with this part
        which  = order.source.link
        self.comb += [
            is_end.eq(Mux(which, final[1], final[0]) | (ends.status != STATUS.OK)),
            # RFC 1071: a one's complement sum, and its complement at the end. Each part but the
            # last one has an even number of bytes.
            carry.eq(Mux(which, sums[1], sums[0]) + (ends.checksum ^ 0xffff)),
            total.eq(carry[:16] + carry[16]),
            ends.connect(done, omit={"valid", "ready", "checksum"}),
            done.checksum.eq(~total),
            done.valid.eq(ends.valid & order.source.valid & is_end),
            ends.ready.eq(order.source.valid & (done.ready | ~is_end)),
            order.source.ready.eq(ends.valid & ends.ready),
            ended.eq(Mux(order.source.valid & order.source.ready, 1 << which, 0)),
        ]

        # Parts ------------------------------------------------------------------------------------
        for n, row in enumerate(rows):
            job     = row.source
            begun   = Signal(name=f"begun{n}")    # a part of this job has ended
            skip    = Signal(32, name=f"skip{n}")
            psn     = Signal(16, name=f"psn{n}")
            present = Signal(name=f"present{n}")  # the packet of the part has come
            at      = Signal(32, name=f"at{n}")   # where the next part starts
            left    = Signal(32, name=f"left{n}")
            self.comb += [
                offers[n].eq(job.valid & ~flying[n] & self.room[n]),
                at.eq(Mux(begun, skip, job.skip)),
                left.eq(job.length - at),
                # A job that starts behind its end goes to the engine as it is, which refuses it.
                final[n].eq((at >= job.length) | (left <= C.PACKET_PAYLOAD)),
                job.ready.eq(ended[n] & is_end),
                self.cancel[n].eq(ended[n] & ~present & ~self.came[n]),
                If(link == n,
                    *[getattr(parts, name).eq(getattr(job, name)) for name in names],
                    parts.skip.eq(at),
                    parts.psn.eq(Mux(begun, psn, job.psn)),
                    parts.more.eq(~final[n]),
                    parts.length.eq(Mux(final[n], job.length, at + C.PACKET_PAYLOAD))
                ),
            ]
            self.sync += [
                If(chosen[n], flying[n].eq(1), present.eq(0)).Elif(self.came[n], present.eq(1)),
                If(ended[n],
                    flying[n].eq(0),
                    begun.eq(~is_end),
                    skip.eq(at + C.PACKET_PAYLOAD),
                    psn.eq(ends.psn),
                    sums[n].eq(Mux(is_end, 0, total))
                ),
            ]
