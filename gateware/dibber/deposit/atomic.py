"""Atomic operations on host memory, for gets of other nodes with an atomic opcode."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import ATOMIC, C, COMMAND, MESSAGE, OPCODE, REPLY, RIGHT, STATUS
from dibber.layouts import completion_layout, read_layout, request_layout, slot_write_port, write_layout

from dibber.deposit.departures import Departures
from dibber.deposit.fetch import Fetch
from dibber.deposit.finder import finder_port
from dibber.deposit.pages import SHIFT_LEAST, is_paged
from dibber.deposit.regions import lookup_port
from dibber.deposit.tags import Tags

# Atomic Unit --------------------------------------------------------------------------------------

class AtomicUnit(LiteXModule):
    """Execute one atomic command at a time: fetch, look up, read, modify, write, store the reply.

    All atomics of the card pass through this unit. Each one starts after the previous one's write
    was handed to the PHY, and on PCIe no read passes a write (PCIe Base 3.0, 2.4.1). So they are
    atomic against each other, but not against the host's own operations. A compare that fails
    writes nothing.

    The command is in a slot of the INBOX. Its struct reply (value before the operation, enum
    status) replaces it there. These statuses come without an access to memory: REMOTE_BAD_HEADER
    (the opcode is no atomic), REMOTE_BAD_KEY, REMOTE_NOT_PERMITTED (REMOTE_READ and REMOTE_WRITE
    are both needed), REMOTE_BOUNDS and REMOTE_ALIGNMENT. With REMOTE_READ_ERROR nothing was
    written. It also comes while all tags are in quarantine, because the host still owes answers to
    reads that were abandoned.

    Parameters
    ----------
    data_width : 64, 128 or 256
    tags       : tags of the reads; one is in use, the others are spares for tags in quarantine
    base       : number of tags without extended tags
    timeout, quarantine : cycles, see `Tags`
    address_bits : 64 or 32

    Attributes
    ----------
    sink        : Endpoint(request_layout), in       execute the command in this slot
    forget      : Signal(), in      the requester is gone: end without reply and `done`
    slot        : slot_port(data_width)
    reply       : slot_write_port(data_width)
    lookup      : lookup_port(), to the region table
    pages       : finder_port(), to the page finder
    reads       : Endpoint(read_layout), out
    completions : Endpoint(completion_layout), in    always ready
    extended_tags : Signal(), in
    writes      : Endpoint(write_layout), out
    marked      : Signal(), in      the PHY has taken the write
    done        : Endpoint(request_layout), out      the reply is in this slot
    departures  : Departures of operations
    pulses      : ATOMICS, and those of `Gather`

    Cycles: 14 at 64 bits, 12 at 128 from `sink` to the read; 5 from its answer to the write; 4 from
    `marked` to `done` at 64 bits, 3 at 128, if the slot port grants in the second cycle.
    """
    def __init__(self, data_width, tags=1, base=1, timeout=6250, quarantine=2**23, address_bits=64):
        self.sink        = sink   = stream.Endpoint(request_layout())
        self.forget      = Signal()
        self.lookup      = lookup = lookup_port()
        self.reads       = reads  = stream.Endpoint(read_layout())
        self.completions = answer = stream.Endpoint(completion_layout(data_width))
        self.writes      = writes = stream.Endpoint(write_layout(data_width))
        self.marked      = Signal()
        self.reply       = reply  = slot_write_port(data_width)
        self.done        = done   = stream.Endpoint(request_layout())
        self.pulses      = pulses = {name: Signal(name=f"atomic_{name.lower()}") for name in (
            "ATOMICS", "COMPLETION_UNEXPECTED", "COMPLETION_ERROR", "COMPLETION_TIMEOUT")}

        # # #

        # Command ----------------------------------------------------------------------------------

        def span(struct, name):
            return struct[name].offset, struct[name].offset + struct[name].size

        def member(struct, name):
            return fetch.bytes(struct[name].offset, struct[name].size)

        self.fetch = fetch = Fetch(data_width, [span(ATOMIC, "key")] +
            [span(ATOMIC, name) for name in ("offset", "operand", "compare", "mask")] +
            [span(COMMAND, name) for name in ("length", "opcode")], least=3)
        self.slot  = fetch.port
        opcode     = member(COMMAND, "opcode")
        bytes_     = member(COMMAND, "length")
        operand    = member(ATOMIC, "operand")
        compare    = member(ATOMIC, "compare")
        mask       = member(ATOMIC, "mask")
        is_8_bytes = Signal()  # otherwise 4
        self.comb += [
            fetch.start.eq(sink.valid & sink.ready),
            fetch.slot.eq(Cat(done.slot, Constant(C.INBOX, bits_for(C.INBOX)))),
            lookup.key.eq(member(ATOMIC, "key")),
            is_8_bytes.eq(bytes_[3]),
        ]
        self.sync += If(fetch.start,
            done.node.eq(sink.node),
            done.slot.eq(sink.slot),
            done.word.eq(Cat(Constant(MESSAGE.ATOMIC_REPLY, 8), sink.word[8:])),
        )

        # Region and Checks ------------------------------------------------------------------------

        found          = Signal()
        permitted      = Signal()
        region_base    = Signal(address_bits)
        region_length  = Signal(address_bits)
        region_address = Signal(address_bits)  # of the operand, before page translation
        address        = Signal(address_bits)  # bus address
        # Bytes from the operand to the region's end; negative if its highest bit is set.
        to_end      = Signal(address_bits + 1)
        status      = Signal(8)
        reason      = Signal(8)
        offset      = member(ATOMIC, "offset")
        both_rights = RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
        self.sync += [
            If(lookup.done,
                found.eq(lookup.found),
                permitted.eq((lookup.rights & both_rights) == both_rights),
                region_base.eq(lookup.base),
                region_length.eq(lookup.length),
            ),
            region_address.eq(region_base + offset),
            to_end.eq(region_length - offset),
        ]
        if address_bits < 64:
            self.sync += If(offset[address_bits:] != 0, to_end[address_bits].eq(1))
        self.comb += [
            reason.eq(STATUS.OK),
            If(to_end[address_bits] |
               ((to_end[3:address_bits] == 0) & (is_8_bytes | (to_end[:3] < 4))),
                reason.eq(STATUS.REMOTE_BOUNDS)),
            If(((bytes_ != 4) & (bytes_ != 8)) | (region_address[:2] != 0) |
               (is_8_bytes & region_address[2]),
                reason.eq(STATUS.REMOTE_ALIGNMENT)),
            If(~permitted,
                reason.eq(STATUS.REMOTE_NOT_PERMITTED)),
            If(~found,
                reason.eq(STATUS.REMOTE_BAD_KEY)),
            If((opcode < OPCODE.FETCH_ADD) | (opcode > OPCODE.MASKED_SWAP),
                reason.eq(STATUS.REMOTE_BAD_HEADER)),
        ]

        self.pages = pages = finder_port(address_bits)
        self.comb += pages.address.eq(region_address)

        # Read -------------------------------------------------------------------------------------

        # The answer is one line: a naturally aligned operand lies in one.
        self.tags = tags = Tags(tags, timeout, quarantine, base)
        self.extended_tags = tags.extended
        answered           = Signal()
        mine      = Signal()   # it answers the read under way; the others timed out or failed
        line               = Signal(data_width)
        before             = Signal(64)
        self.comb += [
            answer.ready.eq(1),
            answered.eq(answer.valid & answer.last),
            mine.eq(answered & tags.live),
            tags.answered.eq(answer.tag),
            tags.answered_phase.eq(answer.tag_phase),
            tags.release.eq(answered & ~answer.failed),
            tags.fail.eq(answered & answer.failed),
            reads.last.eq(1),
            reads.address.eq(address),
            reads.length.eq(Mux(is_8_bytes, 8, 4)),
        ]
        self.sync += [
            If(mine, line.eq(answer.dat)),
            pulses["COMPLETION_UNEXPECTED"].eq(answered & ~tags.known),
            pulses["COMPLETION_ERROR"].eq(mine & (answer.status != 0) & ~answer.failed),
            pulses["COMPLETION_TIMEOUT"].eq(tags.expire),
        ]

        # Modify -----------------------------------------------------------------------------------

        # The operand is moved to the low bits; 4 bytes are extended by zeros.
        words        = [line[32*n:32*n + 32] for n in range(data_width//32)]
        word_in_line = address[2:2 + log2_int(len(words))]
        low          = Array(words)[word_in_line]
        high         = Array(words[1::2])[word_in_line[1:]] if len(words) > 2 else words[1]
        operand_mask = Signal(64)
        differ       = Signal()
        total        = Signal(64)
        after        = Signal(64)
        self.comb += operand_mask.eq(Cat(Replicate(1, 32), Replicate(is_8_bytes, 32)))
        self.sync += [
            before.eq(Cat(low, Mux(is_8_bytes, high, 0))),
            total.eq(before + operand),
            differ.eq(((before ^ compare) & operand_mask) != 0),
            Case(opcode[:2], {
                OPCODE.FETCH_ADD    & 3 : after.eq(total),
                OPCODE.MASKED_SWAP  & 3 : after.eq((before & ~mask) | (operand & mask)),
                "default"               : after.eq(operand)}),
        ]

        # Write ------------------------------------------------------------------------------------

        self.comb += [
            writes.last.eq(1),
            writes.address.eq(address),
            writes.length.eq(Mux(is_8_bytes, 8, 4)),
            writes.mark.eq(1),
            writes.dat.eq(
                Replicate(Mux(is_8_bytes, after, Replicate(after[:32], 2)), data_width//64)),
        ]

        # Reply ------------------------------------------------------------------------------------

        # struct reply: the value, then the status. One line at 128 bits, two lines at 64. At 256 bits
        # it is the low half of a line.
        whole     = Signal(128)
        lines     = max(1, 128//data_width)
        line      = Signal(max=max(lines, 2))
        line_bits = [line] if lines > 1 else []
        assert (REPLY["value"].offset, REPLY["status"].offset) == (0, 8)
        self.comb += [
            whole.eq(Cat(Mux(status == STATUS.OK, before, 0), status)),
            reply.adr.eq(
                Cat(
                    *line_bits, Constant(0, log2_int(C.SLOT_BYTES//max(16, data_width//8))), done.slot,
                    Constant(C.INBOX, 4))),
            reply.dat_w.eq(Mux(line == 0, whole[:data_width], whole[-min(data_width, 128):])),
            reply.be.eq(2**min(data_width//8, 16) - 1),
        ]

        # Control ----------------------------------------------------------------------------------

        self.fsm  = fsm = FSM(reset_state="IDLE")
        forgotten = Signal()
        self.sync += [
            If(fsm.ongoing("IDLE"),
                forgotten.eq(0)
            ).Elif(self.forget,
                forgotten.eq(1)
            )
        ]
        fsm.act("IDLE",
            sink.ready.eq(1),
            If(sink.valid, NextState("FETCH"))
        )
        fsm.act("FETCH",
            lookup.valid.eq(fetch.first),
            If(fetch.done, NextState("JUDGE"))
        )
        fsm.act("JUDGE",
            NextValue(status, reason),
            NextValue(address, region_address),
            If(reason != STATUS.OK,
                NextState("REPLY")
            ).Elif(is_paged(region_address),
                NextState("PAGE")
            ).Else(
                NextState("TAG")
            )
        )
        fsm.act("PAGE",
            pages.valid.eq(1),
            NextValue(address[SHIFT_LEAST:], pages.page),
            If(pages.done,
                NextState("TAG"),
                If(pages.fault,
                    NextValue(status, STATUS.REMOTE_READ_ERROR),
                    NextState("REPLY")
                )
            )
        )
        fsm.act("TAG",
            tags.source.ready.eq(1),
            NextValue(reads.tag, tags.source.tag),
            NextValue(reads.tag_phase, tags.source.phase),
            If(tags.source.valid,
                NextState("READ")
            ).Elif(tags.exhausted,
                NextValue(status, STATUS.REMOTE_READ_ERROR),
                NextState("REPLY")
            )
        )
        fsm.act("READ",
            reads.valid.eq(1),
            If(reads.ready, NextState("WAIT"))
        )
        fsm.act("WAIT",
            If(mine,
                If(answer.status == 0,
                    NextState("TURN")
                ).Else(
                    NextValue(status, STATUS.REMOTE_READ_ERROR),
                    NextState("REPLY")
                )
            ).Elif((tags.expired >> reads.tag)[0],
                NextValue(status, STATUS.REMOTE_READ_ERROR),
                NextState("REPLY")
            )
        )
        fsm.act("TURN",
            NextState("MODIFY")
        )
        fsm.act("MODIFY",
            NextState("CHOOSE")
        )
        fsm.act("CHOOSE",
            If((opcode == OPCODE.COMPARE_SWAP) & differ,
                NextState("REPLY")
            ).Else(
                NextState("WRITE")
            )
        )
        fsm.act("WRITE",
            writes.valid.eq(1),
            If(writes.ready, NextState("MARKED"))
        )
        fsm.act("MARKED",
            If(self.marked, NextState("REPLY"))
        )
        fsm.act("REPLY",
            reply.valid.eq(~forgotten),
            If(reply.ready | forgotten,
                NextValue(line, line + 1),
                If(line == lines - 1,
                    NextValue(line, 0),
                    NextState("DONE")
                )
            )
        )
        fsm.act("DONE",
            done.valid.eq(~forgotten),
            If(done.ready | forgotten,
                pulses["ATOMICS"].eq(status == STATUS.OK),
                NextState("IDLE")
            )
        )
        self.departures = Departures(sink.valid & sink.ready,
            [fsm.ongoing("DONE") & (done.ready | forgotten)], 1)
        self.comb += done.last.eq(1)
