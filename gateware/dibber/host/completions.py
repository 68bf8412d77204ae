"""The check of completions: each must agree with what the read of its tag still owes."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host import tlp
from dibber.layouts import FLAW_LENGTH, FLAW_POISON, FLAW_STATUS, completion_layout, raw_completion_layout, read_layout

# bytes: a completion that is not the last of its read ends at a multiple (PCIe Base 3.0, 2.3.1.1)
BOUNDARY = 64

REASONS = {
    "COMPLETION_BAD_REQUESTER" : "its requester ID is not the one that the read was sent with",
    "COMPLETION_BAD_COUNT"     : "its byte count is not what the read still owes",
    "COMPLETION_BAD_ADDRESS"   : "its lower address is not that of the next byte",
    "COMPLETION_BAD_LENGTH"    : "its length contradicts its byte count, its payload, or the boundary where it must end",
    "COMPLETION_BAD_STATUS"    : "success without data, or data without success",
    "COMPLETION_POISONED"      : "its data are poisoned",
}

# Completion Checker -------------------------------------------------------------------------------

class CompletionChecker(LiteXModule):
    """Stand between the host and all readers, and pass on what agrees with their reads.

    For each tag the checker keeps how many bytes its read still owes, and where the next one lies.
    A completion with data passes when its requester ID, byte count, lower address and length agree
    with that. A completion with an error status ends its read, whatever its count and address say:
    hosts differ there.

    Any other completion is swallowed. In its place the reader gets one beat with an error status
    and `failed`: the read has failed, and the reader keeps the tag in quarantine. What comes for a
    failed read is swallowed too. When the completions that agree with the read have all come, the
    host owes nothing more: the reader gets a last beat with an error status and without `failed`,
    which frees the tag.

    What a legal host may do passes: any split at multiples of 64 bytes (a read completion boundary
    of 64 or of 128 bytes), byte count 0 for 4096, and a modified byte count (BCM: the count is that
    of this completion alone, PCIe Base 3.0, 2.2.9). The requester ID is that of the moment in which
    the read was sent, because software may give the card another bus number. Attributes and traffic
    class are not looked at: a host may set ID-based ordering in completions on its own (2.2.6.4).

    Parameters
    ----------
    data_width : 64 or 128
    tags       : tags from 0 to `tags - 1` are in use; a completion for another one is unexpected

    Attributes
    ----------
    id       : Signal(16), in   requester ID of the reads that are sent in this cycle
    reads    : Endpoint(read_layout), in
    requests : Endpoint(read_layout), out     the same, to the host
    sink     : Endpoint(raw_completion_layout), in    valid only
    source   : Endpoint(completion_layout), out       valid only
    pulses   : dict counter name -> Signal(): COMPLETION_UNEXPECTED for a completion of no read, and
               the names in REASONS, one pulse for each read that failed

    Cycles: 0 for reads, 1 for completions. After reset no read may come for as many cycles as there
    are tags.
    """
    def __init__(self, data_width, tags=256):
        self.id       = Signal(16)
        self.reads    = reads    = stream.Endpoint(read_layout())
        self.requests = requests = stream.Endpoint(read_layout())
        self.sink     = sink     = stream.Endpoint(raw_completion_layout(data_width))
        self.source   = source   = stream.Endpoint(completion_layout(data_width))
        self.pulses   = pulses   = {name: Signal(name=f"checker_{name.lower()}")
            for name in ("COMPLETION_UNEXPECTED", *REASONS)}

        # # #

        # Requests ---------------------------------------------------------------------------------

        # The ID of now and the one before: a read knows by its epoch which of them it was sent
        # with.
        own    = Signal(16)
        former = Signal(16)
        epoch  = Signal()
        change = Signal()
        sent   = Signal()
        self.comb += [
            reads.connect(requests),
            sent.eq(reads.valid & reads.ready),
            change.eq(self.id != own),
        ]
        self.sync += If(change, own.eq(self.id), former.eq(own), epoch.eq(~epoch))

        # What was asked for is written by requests, and how far it came by completions, because
        # distributed RAM has one write port. A tag's progress is of its present read when both have
        # the same phase.
        depth    = max(tags, 2)
        asked    = Memory(13 + 7 + 2, depth, name="completion_asked")
        progress = Memory(13 + 7 + 2, depth, name="completion_progress")
        phases   = Memory(1, depth, name="completion_phases")
        ask, asked_of       = asked.get_port(write_capable=True), asked.get_port(async_read=True)
        note, progress_of   = progress.get_port(write_capable=True), progress.get_port(async_read=True)
        turn, phase_of      = phases.get_port(write_capable=True), phases.get_port(async_read=True)
        self.specials += asked, ask, asked_of, progress, note, progress_of, phases, turn, phase_of
        # A reset leaves what was in memory. It is cleared before `Tags` hands out a tag, and
        # nothing is owed until then.
        wiping = Signal(reset=1)
        wiped  = Signal(max=depth)
        self.sync += If(wiping, wiped.eq(wiped + 1), wiping.eq(wiped != depth - 1))
        self.comb += [
            phase_of.adr.eq(reads.tag),
            ask.adr.eq(Mux(wiping, wiped, reads.tag)),
            ask.we.eq(sent | wiping),
            ask.dat_w.eq(Mux(wiping, 0, Cat(reads.length, reads.address[:7], epoch ^ change, ~phase_of.dat_r))),
        ]

        # Look-up ----------------------------------------------------------------------------------

        # Register 1: the line, and what its tag owes.
        line    = stream.Endpoint(raw_completion_layout(data_width))
        first   = Signal(reset=1)  # `line` is the first one of its completion
        head    = Signal()
        owed    = Signal(13)       # bytes; 0: there is no such read
        next_   = Signal(7)        # lower address of the next byte
        failed  = Signal()
        phase   = Signal()
        older   = Signal()         # the read was sent before the last change of the ID
        renewed = Signal()         # a new read was sent with this tag during the look-up
        aligned = Signal()         # the completion ends at a multiple of BOUNDARY
        by_own, by_former = Signal(), Signal()

        asked_length, asked_lower, asked_epoch, asked_phase = Signal(13), Signal(7), Signal(), Signal()
        noted_owed, noted_next, noted_failed, noted_phase   = Signal(13), Signal(7), Signal(), Signal()
        owed_then, next_then, failed_then = Signal(13), Signal(7), Signal()  # after `line`
        within  = Signal()
        fresh   = Signal()
        forward = Signal()
        noting  = Signal()
        self.comb += [
            asked_of.adr.eq(sink.tag),
            progress_of.adr.eq(sink.tag),
            Cat(asked_length, asked_lower, asked_epoch, asked_phase).eq(asked_of.dat_r),
            Cat(noted_owed, noted_next, noted_failed, noted_phase).eq(progress_of.dat_r),
            within.eq(sink.tag < tags if tags < 256 else 1),
            fresh.eq(asked_phase != noted_phase),
            forward.eq(noting & (line.tag == sink.tag)),
        ]
        self.sync += [
            line.valid.eq(sink.valid),
            line.last.eq(sink.last),
            *[getattr(line, name).eq(getattr(sink, name)) for name, *_ in
                sink.description.payload_layout + sink.description.param_layout],
            If(line.valid, first.eq(line.last)),
            If(forward,
                owed.eq(owed_then),
                next_.eq(next_then),
                failed.eq(failed_then)
            ).Elif(fresh,
                owed.eq(asked_length),
                next_.eq(asked_lower),
                failed.eq(0)
            ).Else(
                owed.eq(noted_owed),
                next_.eq(noted_next),
                failed.eq(noted_failed)
            ),
            If(~within | wiping, owed.eq(0)),
            phase.eq(asked_phase),
            older.eq(asked_epoch ^ epoch ^ change),
            renewed.eq(sent & (reads.tag == sink.tag)),
            aligned.eq((sink.lower + sink.bytes)[:log2_int(BOUNDARY)] == 0),
            by_own.eq(sink.requester == Mux(change, self.id, own)),
            by_former.eq(sink.requester == Mux(change, own, former)),
        ]

        # Judgement --------------------------------------------------------------------------------

        known, mine, counts, follows, fits = (Signal(name=name) for name in ("known", "mine", "counts", "follows", "fits"))
        whole   = Signal()   # all that was owed
        agrees  = Signal()
        refused = Signal()   # the host says that there are no data
        fails   = Signal()
        self.comb += [
            head.eq(line.valid & first),
            known.eq((owed != 0) & ~renewed & ~(sent & (reads.tag == line.tag))),
            mine.eq(Mux(older, by_former, by_own)),
            whole.eq(line.bytes == owed),
            counts.eq(Mux(line.modified, line.count == line.bytes, line.count == owed)),
            follows.eq(line.lower == next_),
            fits.eq(whole | (aligned & (line.bytes < owed))),
            agrees.eq((line.flaw == 0) & (line.status == tlp.STATUS_SUCCESS) & mine & counts & follows & fits),
            refused.eq((line.flaw == 0) & (line.status != tlp.STATUS_SUCCESS) & mine),
            fails.eq(head & known & ~failed & ~agrees & ~refused),
        ]

        # What the read owes then.
        self.comb += [
            owed_then.eq(owed),
            next_then.eq(next_),
            failed_then.eq(failed | fails),
            If(agrees,
                owed_then.eq(owed - line.bytes),
                next_then.eq(line.lower + line.bytes)
            ).Elif(refused & ~failed,
                owed_then.eq(0)
            ),
            noting.eq(head & known),
            note.adr.eq(Mux(wiping, wiped, line.tag)),
            note.we.eq(noting | wiping),
            note.dat_w.eq(Mux(wiping, 0, Cat(owed_then, next_then, failed_then, phase))),
            turn.adr.eq(note.adr),
            turn.we.eq(note.we),
            turn.dat_w.eq(Mux(wiping, 0, phase)),
        ]

        # Output -----------------------------------------------------------------------------------

        passing = Signal()   # the completion whose first line has passed
        held    = Signal(13)
        passes  = Signal()
        closes  = Signal()   # a failed read owes nothing more
        self.comb += [
            passes.eq(known & ~failed & (agrees | refused)),
            closes.eq(head & known & failed & agrees & whole),
            line.connect(source, omit={"valid", "ready", "last", "count", "status", "requester", "modified", "flaw"}),
            source.valid.eq(line.valid & Mux(first, passes | fails | closes, passing)),
            source.last.eq(line.last | fails | closes),
            source.status.eq(Mux(fails | closes, tlp.STATUS_UNSUPPORTED, line.status)),
            source.count.eq(Mux(first, owed, held)),
            source.failed.eq(fails),
        ]
        self.sync += [
            If(head,
                passing.eq(passes),
                held.eq(owed)
            )
        ]

        # Counters ---------------------------------------------------------------------------------

        reason = {name: Signal(name=f"is_{name.lower()}") for name in REASONS}
        self.comb += [
            If(line.flaw == FLAW_POISON,
                reason["COMPLETION_POISONED"].eq(1)
            ).Elif(line.flaw == FLAW_STATUS,
                reason["COMPLETION_BAD_STATUS"].eq(1)
            ).Elif(line.flaw == FLAW_LENGTH,
                reason["COMPLETION_BAD_LENGTH"].eq(1)
            ).Elif(~mine,
                reason["COMPLETION_BAD_REQUESTER"].eq(1)
            ).Elif(~counts,
                reason["COMPLETION_BAD_COUNT"].eq(1)
            ).Elif(~follows,
                reason["COMPLETION_BAD_ADDRESS"].eq(1)
            ).Else(
                reason["COMPLETION_BAD_LENGTH"].eq(1)
            )
        ]
        self.sync += [
            pulses["COMPLETION_UNEXPECTED"].eq(head & ~known),
            *[pulses[name].eq(fails & reason[name]) for name in REASONS],
        ]
