"""Completion checker: each completion must agree with what the read of its tag still owes."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host import tlp
from dibber.layouts import FLAW_LENGTH, FLAW_POISON, FLAW_STATUS, completion_layout, raw_completion_layout, read_layout

# Bytes: a completion ends at a multiple of this, or at its read's end (PCIe Base 3.0, 2.3.1.1).
BOUNDARY = 64

REASONS = {
    "COMPLETION_BAD_REQUESTER" : "its requester ID is not the one that the read was sent with",
    "COMPLETION_BAD_COUNT"     : "its byte count is not what the read still owes",
    "COMPLETION_BAD_ADDRESS"   : "its lower address is not that of the next byte",
    "COMPLETION_BAD_LENGTH"    : "its length contradicts its byte count, its payload, or the "
                                 "boundary where it must end",
    "COMPLETION_BAD_STATUS"    : "success without data, or data without success",
    "COMPLETION_POISONED"      : "its data are poisoned",
}

# Completion Checker -------------------------------------------------------------------------------

class CompletionChecker(LiteXModule):
    """Check the host's completions, between the host and all readers; pass on those that are
    correct.

    For each tag it keeps the number of bytes that its read still owes, the address of the next one,
    and the read's `tag_phase`. A completion with data passes if its requester ID, byte count, lower
    address and length agree with these. A completion with an error status ends its read, whatever
    its count and address are, because hosts differ there.

    Every other completion is dropped, and the reader gets one beat with an error status and
    `failed` instead: its read has failed, and it keeps the tag in quarantine. Later completions of
    a failed read are dropped too. When all of its bytes have come in correct completions, the host
    owes nothing more. Then the reader gets a last beat with an error status and without `failed`,
    which frees the tag.

    Everything that PCIe allows passes: every split at multiples of 64 bytes (read completion
    boundary 64 or 128), byte count 0 for 4096, and a modified byte count (BCM: the count is that of
    this completion alone, PCIe Base 3.0, 2.2.9). The requester ID is compared with the one at the
    time of the read, because software may change the card's bus number. Attributes and traffic
    class are ignored: a host may set ID-based ordering in completions on its own (2.2.6.4).

    A reader may have taken a tag anew while its request has not come here yet. The completions of
    the tag are checked against the former read until then. They carry that read's `tag_phase`, so
    the reader's `Tags` does not know them.

    Parameters
    ----------
    data_width : 64, 128 or 256
    tags       : tags 0 to `tags` - 1 are in use; a completion for another tag is unexpected

    Attributes
    ----------
    id       : Signal(16), in   requester ID of the reads that are sent in this cycle
    reads    : Endpoint(read_layout), in
    requests : Endpoint(read_layout), out     the same, to the host
    sink     : Endpoint(raw_completion_layout), in    valid only
    source   : Endpoint(completion_layout), out       valid only
    pulses   : dict counter name -> Signal(): COMPLETION_UNEXPECTED for a completion without a read,
               and the names in REASONS, one pulse for each read that failed

    Cycles: 0 for reads, 1 for completions. After a reset the first read must come only after as
    many cycles as there are tags.
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

        # The present ID and the previous one. A read stores the epoch of its ID.
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

        # Requests write what was asked for, and completions write the progress, because distributed
        # RAM has one write port. The progress is valid for the present read if both have the same
        # phase.
        depth    = max(tags, 2)
        asked    = Memory(13 + 7 + 3, depth, name="completion_asked")
        progress = Memory(13 + 7 + 2, depth, name="completion_progress")
        phases   = Memory(1, depth, name="completion_phases")
        ask, asked_of       = asked.get_port(write_capable=True), asked.get_port(async_read=True)
        note        = progress.get_port(write_capable=True)
        progress_of = progress.get_port(async_read=True)
        turn, phase_of      = phases.get_port(write_capable=True), phases.get_port(async_read=True)
        self.specials += asked, ask, asked_of, progress, note, progress_of, phases, turn, phase_of
        # A reset does not clear the memories. They are cleared here, before `Tags` gives out a
        # tag; nothing is owed until then.
        wiping = Signal(reset=1)
        wiped  = Signal(max=depth)
        self.sync += If(wiping, wiped.eq(wiped + 1), wiping.eq(wiped != depth - 1))
        self.comb += [
            phase_of.adr.eq(reads.tag),
            ask.adr.eq(Mux(wiping, wiped, reads.tag)),
            ask.we.eq(sent | wiping),
            ask.dat_w.eq(
                Mux(
                    wiping, 0,
                    Cat(
                        reads.length, reads.address[:7], epoch ^ change, reads.tag_phase,
                        ~phase_of.dat_r))),
        ]

        # Look-up ----------------------------------------------------------------------------------

        # Register 1: the line, and the state of its tag.
        line         = stream.Endpoint(raw_completion_layout(data_width))
        first        = Signal(reset=1)  # `line` is the first one of its completion
        head         = Signal()
        owed         = Signal(13)       # bytes; 0: there is no read with this tag
        next_address = Signal(7)        # lower address of the next byte
        failed       = Signal()
        phase        = Signal()
        tag_phase    = Signal()
        older        = Signal()         # the read was sent before the last change of the ID
        renewed      = Signal()         # a new read was sent with this tag during the look-up
        aligned      = Signal()         # the completion ends at a multiple of BOUNDARY
        by_own, by_former = Signal(), Signal()

        asked_length, asked_lower = Signal(13), Signal(7)
        asked_epoch, asked_phase  = Signal(), Signal()
        asked_tag_phase           = Signal()
        noted_owed, noted_next    = Signal(13), Signal(7)
        noted_failed, noted_phase = Signal(), Signal()
        owed_then, next_then, failed_then = Signal(13), Signal(7), Signal()  # after `line`
        tag_valid   = Signal()
        is_new_read = Signal()
        same_tag    = Signal()
        updates     = Signal()
        self.comb += [
            asked_of.adr.eq(sink.tag),
            progress_of.adr.eq(sink.tag),
            Cat(asked_length, asked_lower, asked_epoch, asked_tag_phase, asked_phase).eq(
                asked_of.dat_r),
            Cat(noted_owed, noted_next, noted_failed, noted_phase).eq(progress_of.dat_r),
            tag_valid.eq(sink.tag < tags if tags < 256 else 1),
            is_new_read.eq(asked_phase != noted_phase),
            same_tag.eq(updates & (line.tag == sink.tag)),
        ]
        self.sync += [
            line.valid.eq(sink.valid),
            line.last.eq(sink.last),
            *[getattr(line, name).eq(getattr(sink, name)) for name, *_ in
                sink.description.payload_layout + sink.description.param_layout],
            If(line.valid, first.eq(line.last)),
            If(same_tag,
                owed.eq(owed_then),
                next_address.eq(next_then),
                failed.eq(failed_then)
            ).Elif(is_new_read,
                owed.eq(asked_length),
                next_address.eq(asked_lower),
                failed.eq(0)
            ).Else(
                owed.eq(noted_owed),
                next_address.eq(noted_next),
                failed.eq(noted_failed)
            ),
            If(~tag_valid | wiping, owed.eq(0)),
            phase.eq(asked_phase),
            tag_phase.eq(asked_tag_phase),
            older.eq(asked_epoch ^ epoch ^ change),
            renewed.eq(sent & (reads.tag == sink.tag)),
            aligned.eq((sink.lower + sink.bytes)[:log2_int(BOUNDARY)] == 0),
            by_own.eq(sink.requester == Mux(change, self.id, own)),
            by_former.eq(sink.requester == Mux(change, own, former)),
        ]

        # Judgement --------------------------------------------------------------------------------

        known, requester_ok, count_ok, address_ok, length_ok = (
            Signal(name=name) for name in ("known", "mine", "counts", "follows", "fits"))
        is_complete = Signal()   # the completion has all bytes that were owed
        agrees      = Signal()
        refused     = Signal()   # the host says that there are no data
        fails       = Signal()
        self.comb += [
            head.eq(line.valid & first),
            known.eq((owed != 0) & ~renewed & ~(sent & (reads.tag == line.tag))),
            requester_ok.eq(Mux(older, by_former, by_own)),
            is_complete.eq(line.bytes == owed),
            count_ok.eq(Mux(line.modified, line.count == line.bytes, line.count == owed)),
            address_ok.eq(line.lower == next_address),
            length_ok.eq(is_complete | (aligned & (line.bytes < owed))),
            agrees.eq(
                (line.flaw == 0) & (
                    line.status == tlp.STATUS_SUCCESS) & requester_ok & count_ok & address_ok &
                length_ok),
            refused.eq((line.flaw == 0) & (line.status != tlp.STATUS_SUCCESS) & requester_ok),
            fails.eq(head & known & ~failed & ~agrees & ~refused),
        ]

        # The read's state after this completion.
        self.comb += [
            owed_then.eq(owed),
            next_then.eq(next_address),
            failed_then.eq(failed | fails),
            If(agrees,
                owed_then.eq(owed - line.bytes),
                next_then.eq(line.lower + line.bytes)
            ).Elif(refused & ~failed,
                owed_then.eq(0)
            ),
            updates.eq(head & known),
            note.adr.eq(Mux(wiping, wiped, line.tag)),
            note.we.eq(updates | wiping),
            note.dat_w.eq(Mux(wiping, 0, Cat(owed_then, next_then, failed_then, phase))),
            turn.adr.eq(note.adr),
            turn.we.eq(note.we),
            turn.dat_w.eq(Mux(wiping, 0, phase)),
        ]

        # Output -----------------------------------------------------------------------------------

        passing   = Signal()   # the completion's first line has passed
        owed_held = Signal(13)
        # A new read may be sent with this tag while the lines of a completion pass. All lines of a
        # completion have the phase of its first line.
        tag_phase_held = Signal()
        passes    = Signal()
        closes    = Signal()   # a failed read owes nothing more
        self.comb += [
            passes.eq(known & ~failed & (agrees | refused)),
            closes.eq(head & known & failed & agrees & is_complete),
            line.connect(
                source,
                omit={
                    "valid", "ready", "last", "count", "status", "requester", "modified", "flaw"}),
            source.valid.eq(line.valid & Mux(first, passes | fails | closes, passing)),
            source.last.eq(line.last | fails | closes),
            source.status.eq(Mux(fails | closes, tlp.STATUS_UNSUPPORTED, line.status)),
            source.count.eq(Mux(first, owed, owed_held)),
            source.failed.eq(fails),
            source.tag_phase.eq(Mux(first, tag_phase, tag_phase_held)),
        ]
        self.sync += [
            If(head,
                passing.eq(passes),
                owed_held.eq(owed),
                tag_phase_held.eq(tag_phase)
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
            ).Elif(~requester_ok,
                reason["COMPLETION_BAD_REQUESTER"].eq(1)
            ).Elif(~count_ok,
                reason["COMPLETION_BAD_COUNT"].eq(1)
            ).Elif(~address_ok,
                reason["COMPLETION_BAD_ADDRESS"].eq(1)
            ).Else(
                reason["COMPLETION_BAD_LENGTH"].eq(1)
            )
        ]
        self.sync += [
            pulses["COMPLETION_UNEXPECTED"].eq(head & ~known),
            *[pulses[name].eq(fails & reason[name]) for name in REASONS],
        ]
