# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Atomic operations on host memory."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import ATOMIC, C, COMMAND, OPCODE, RIGHT, STATUS
from dibber.layouts import completion_layout, read_layout, write_layout

from dibber.deposit.departures import Departures
from dibber.deposit.fetch import Fetch
from dibber.deposit.finder import finder_port
from dibber.deposit.pages import SHIFT_LEAST, is_paged
from dibber.deposit.regions import lookup_port
from dibber.deposit.tags import Tags

# Layout -------------------------------------------------------------------------------------------

def atomic_done_layout():
    """The end of an atomic operation: `status` as enum status; `value` is what was there before it."""
    return stream.EndpointDescription([("status", 8), ("value", 64)])

# Atomic Unit --------------------------------------------------------------------------------------

class AtomicUnit(LiteXModule):
    """Execute one atomic command at a time: fetch, look up, read, modify, write.

    All atomics of the card pass here, each after the write of the one before was handed to the PHY, and
    PCIe lets no read pass a write (PCIe Base 3.0, 2.4.1). So they are atomic among the card's operations;
    of the host's own they know nothing. A compare that fails writes nothing.

    Ends other than OK, without an access: BAD_OPCODE, REMOTE_BAD_KEY, REMOTE_NOT_PERMITTED (it takes both
    REMOTE_READ and REMOTE_WRITE), REMOTE_BOUNDS, REMOTE_ALIGNMENT; and REMOTE_READ_ERROR, nothing was
    written. While the host still owes the answer to a read that was given up, all others fail so, too.

    Parameters
    ----------
    data_width : 64 or 128
    timeout, quarantine : cycles, see `Tags`

    Attributes
    ----------
    sink        : Endpoint([("slot", 8)]), in        execute what is in this slot of the INBOX
    forget      : Signal(), in      who asked is gone: the operation under way ends without `done`
    slot        : slot_port(data_width)
    lookup      : lookup_port(), to the region table
    pages       : finder_port(), to the page finder
    reads       : Endpoint(read_layout), out         tag 0 only
    completions : Endpoint(completion_layout), in    always ready
    writes      : Endpoint(write_layout), out
    marked      : Signal(), in      the write was taken by the PHY
    done        : Endpoint(atomic_done_layout), out
    departures  : Departures of operations
    pulses      : ATOMICS, and as `Gather`'s

    Cycles: 14 at 64 bits, 12 at 128 from `sink` to the read; 5 from its answer to the write.
    """
    def __init__(self, data_width, timeout=6250, quarantine=2**23):
        self.sink        = sink   = stream.Endpoint([("slot", 8)])
        self.forget      = Signal()
        self.lookup      = lookup = lookup_port()
        self.reads       = reads  = stream.Endpoint(read_layout())
        self.completions = answer = stream.Endpoint(completion_layout(data_width))
        self.writes      = writes = stream.Endpoint(write_layout(data_width))
        self.marked      = Signal()
        self.done        = done   = stream.Endpoint(atomic_done_layout())
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
            [span(COMMAND, name) for name in ("length", "opcode")])
        self.slot = fetch.port
        opcode  = member(COMMAND, "opcode")
        bytes_  = member(COMMAND, "length")
        operand = member(ATOMIC, "operand")
        compare = member(ATOMIC, "compare")
        mask    = member(ATOMIC, "mask")
        wide    = Signal()  # 8 bytes
        slot    = Signal(max=C.SLOTS)
        self.comb += [
            fetch.start.eq(sink.valid & sink.ready),
            fetch.slot.eq(Cat(slot, Constant(C.INBOX, bits_for(C.INBOX)))),
            lookup.key.eq(member(ATOMIC, "key")),
            wide.eq(bytes_[3]),
        ]
        self.sync += If(fetch.start, slot.eq(sink.slot))

        # Region and Checks ------------------------------------------------------------------------

        found     = Signal()
        permitted = Signal()
        base      = Signal(64)
        size      = Signal(64)
        virtual   = Signal(64)  # as the region has it
        address   = Signal(64)  # as the host has it
        room      = Signal(65)  # from the operand to the region's end; bit 64: less than none
        status    = Signal(8)
        reason    = Signal(8)
        both      = RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
        self.sync += [
            If(lookup.done,
                found.eq(lookup.found),
                permitted.eq((lookup.rights & both) == both),
                base.eq(lookup.base),
                size.eq(lookup.length),
            ),
            virtual.eq(base + member(ATOMIC, "offset")),
            room.eq(size - member(ATOMIC, "offset")),
        ]
        self.comb += [
            reason.eq(STATUS.OK),
            If(room[64] | ((room[3:64] == 0) & (wide | (room[:3] < 4))),
                reason.eq(STATUS.REMOTE_BOUNDS)),
            If(((bytes_ != 4) & (bytes_ != 8)) | (virtual[:2] != 0) | (wide & virtual[2]),
                reason.eq(STATUS.REMOTE_ALIGNMENT)),
            If(~permitted,
                reason.eq(STATUS.REMOTE_NOT_PERMITTED)),
            If(~found,
                reason.eq(STATUS.REMOTE_BAD_KEY)),
            If((opcode < OPCODE.FETCH_ADD) | (opcode > OPCODE.MASKED_SWAP),
                reason.eq(STATUS.BAD_OPCODE)),
        ]

        self.pages = pages = finder_port()
        self.comb += pages.address.eq(virtual)

        # Read -------------------------------------------------------------------------------------

        # The answer is one line: a naturally aligned operand lies in one.
        self.tags = tags = Tags(1, timeout, quarantine)
        answered  = Signal()
        line      = Signal(data_width)
        before    = Signal(64)
        self.comb += [
            answer.ready.eq(1),
            answered.eq(answer.valid & answer.last),
            tags.release.eq(answered),
            reads.last.eq(1),
            reads.address.eq(address),
            reads.length.eq(Mux(wide, 8, 4)),
        ]
        self.sync += [
            If(answered, line.eq(answer.dat)),
            pulses["COMPLETION_UNEXPECTED"].eq(answered & ~tags.known),
            pulses["COMPLETION_ERROR"].eq(answered & tags.live & (answer.status != 0)),
            pulses["COMPLETION_TIMEOUT"].eq(tags.expire),
        ]

        # Modify -----------------------------------------------------------------------------------

        # The line is turned so that the operand comes to lie in the low bits; 4 bytes are extended by zeros.
        words  = [line[32*n:32*n + 32] for n in range(data_width//32)]
        place  = address[2:2 + log2_int(len(words))]
        low    = Array(words)[place]
        high   = Array(words[1::2])[place[1:]] if len(words) > 2 else words[1]
        ones   = Signal(64)
        differ = Signal()
        total  = Signal(64)
        after  = Signal(64)
        self.comb += ones.eq(Cat(Replicate(1, 32), Replicate(wide, 32)))
        self.sync += [
            before.eq(Cat(low, Mux(wide, high, 0))),
            total.eq(before + operand),
            differ.eq(((before ^ compare) & ones) != 0),
            Case(opcode[:2], {
                OPCODE.FETCH_ADD    & 3 : after.eq(total),
                OPCODE.MASKED_SWAP  & 3 : after.eq((before & ~mask) | (operand & mask)),
                "default"               : after.eq(operand)}),
        ]

        # Write ------------------------------------------------------------------------------------

        self.comb += [
            writes.last.eq(1),
            writes.address.eq(address),
            writes.length.eq(Mux(wide, 8, 4)),
            writes.mark.eq(1),
            writes.dat.eq(Replicate(Mux(wide, after, Replicate(after[:32], 2)), data_width//64)),
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
            NextValue(address, virtual),
            If(reason != STATUS.OK,
                NextState("DONE")
            ).Elif(is_paged(virtual),
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
                    NextState("DONE")
                )
            )
        )
        fsm.act("TAG",
            tags.source.ready.eq(1),
            If(tags.source.valid,
                NextState("READ")
            ).Elif(tags.expired[0],
                NextValue(status, STATUS.REMOTE_READ_ERROR),
                NextState("DONE")
            )
        )
        fsm.act("READ",
            reads.valid.eq(1),
            If(reads.ready, NextState("WAIT"))
        )
        fsm.act("WAIT",
            If(answered,
                If(answer.status == 0,
                    NextState("TURN")
                ).Else(
                    NextValue(status, STATUS.REMOTE_READ_ERROR),
                    NextState("DONE")
                )
            ).Elif(tags.expired[0],
                NextValue(status, STATUS.REMOTE_READ_ERROR),
                NextState("DONE")
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
                NextState("DONE")
            ).Else(
                NextState("WRITE")
            )
        )
        fsm.act("WRITE",
            writes.valid.eq(1),
            If(writes.ready, NextState("MARKED"))
        )
        fsm.act("MARKED",
            If(self.marked, NextState("DONE"))
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
        self.comb += [
            done.last.eq(1),
            done.status.eq(status),
            done.value.eq(Mux(status == STATUS.OK, before, 0)),
        ]
