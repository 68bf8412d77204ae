"""Queue entries for host memory, and the MSI-X interrupts after them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host.hold_off import HoldOff
from dibber.host.msix_table import MSIXTable
from dibber.interface import C
from dibber.layouts import post_layout, write_layout

# Post Writer --------------------------------------------------------------------------------------

def vector_open_layout():
    return [("strobe", 1), ("vector", log2_int(C.VECTORS))]

class PostWriter(LiteXModule):
    """Write queue entries to host memory and raise their interrupts.

    A post is one 32-byte write; its interrupt, if any, is the next write. If the vector is masked,
    or MSI-X is disabled, the vector's pending bit is set instead, and the interrupt is sent later.
    A vector beyond the table raises no interrupt. With narrow addresses, neither does a vector
    whose message address is beyond the card's addresses.

    A halt of the control program raises each vector that was opened since the last halt, once. A
    process that sleeps on a vector would not notice the halt otherwise. A halt waits for no post.

    Parameters
    ----------
    data_width : 64, 128 or 256
    address_bits : 64 or 32
    hold_off   : interrupts can be held, see HoldOff. A halt is not held

    Attributes
    ----------
    sink        : Endpoint(post_layout), in      `address` is a multiple of 32
    source      : Endpoint(write_layout), out
    port        : line_port(data_width)          see MSIXTable
    enable      : Signal, in                     MSI-X Enable of the function; 1 if not driven
    open        : Record(vector_open_layout), in a queue was opened with this vector
    halted      : Signal, in                     one cycle: the control program was halted
    hold        : HoldOff or None                its `set` is to be driven
    posted      : Signal, out                    one pulse for each entry sent
    interrupted : Signal, out                    one pulse for each message sent

    Cycles: 1 to the source; 4 for a post at 64 bits, 2 at 128, 1 at 256; an interrupt takes 5 or 3
    more, plus the cycles in which the host accesses the table, and 1 with hold-off. A held-back
    interrupt is sent 1 cycle after its release.
    """
    def __init__(self, data_width, address_bits=64, hold_off=False):
        entry_lines = max(1, 128//data_width)
        post_lines  = 256//data_width
        line_entries = max(1, data_width//128)
        self.table  = table = MSIXTable(data_width)
        # One waiting post is enough: the next one is made meanwhile.
        self.pipe   = pipe  = stream.PipeValid(post_layout())
        self.sink        = pipe.sink
        self.source      = source = stream.Endpoint(write_layout(data_width))
        self.port        = table.port
        self.enable      = Signal(reset=1)
        self.open        = Record(vector_open_layout())
        self.halted      = Signal()
        self.hold        = hold = HoldOff() if hold_off else None
        self.posted      = Signal()
        self.interrupted = Signal()

        # # #

        post        = pipe.source
        pending     = table.pending
        vector      = Signal(max=C.VECTORS)
        line        = Signal(max=max(post_lines, 2))
        allowed     = Signal(C.VECTORS)  # vectors that may be sent
        held_next   = Signal(C.VECTORS)  # vectors that are held back from the next cycle on
        waiting     = Signal(C.VECTORS)  # pending vectors, except the one that is being sent
        due         = Signal(C.VECTORS)  # held-back vectors that may be sent now
        any_due     = Signal()
        candidate   = Signal(max=C.VECTORS)
        held        = Signal(C.VECTORS)
        sent        = Signal(C.VECTORS)
        opened      = Signal(C.VECTORS)
        message     = Record([("address", address_bits), ("data", 32)])
        unreachable = Signal()  # the message address is beyond the card's addresses
        raised      = held | (opened & Replicate(self.halted, C.VECTORS))
        self.comb += [
            held_next.eq(raised | hold.due if hold_off else raised),
            allowed.eq(~table.mask & Replicate(self.enable, C.VECTORS)),
            [If(due[n], candidate.eq(n)) for n in reversed(range(C.VECTORS))],
        ]
        self.sync += [
            pending.eq((pending & ~sent) | held_next),
            # Held-back vectors precede posts. `due` uses the masks of the previous cycle; TAKE
            # checks the mask again. `due` is not used while a message is being sent.
            due.eq(waiting & allowed),
            any_due.eq((waiting & allowed) != 0),
            opened.eq(
                (opened & ~Replicate(self.halted, C.VECTORS)) |
                (self.open.strobe << self.open.vector)),
        ]

        if hold_off:
            self.comb += [
                hold.open.eq(self.open),
                hold.vector.eq(vector),
            ]

        posts = [
            NextState("POST"),
            source.valid.eq(1),
            source.last.eq(line == post_lines - 1),
            source.address.eq(Cat(Constant(0, 5), post.address[5:])),
            source.length.eq(32),
            Case(line, {n: source.dat.eq(post.dat[data_width*n:data_width*(n + 1)])
                for n in range(post_lines)}),
            NextValue(vector, post.vector),
            If(source.ready,
                NextValue(line, line + 1),
                If(source.last,
                    NextValue(line, 0),
                    post.ready.eq(1),
                    self.posted.eq(1),
                    If(post.interrupt & (post.vector < C.VECTORS),
                        NextState("JUDGE" if hold_off else "FETCH")
                    ).Else(
                        NextState("IDLE")
                    )
                )
            ),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        self.comb += waiting.eq((pending & ~Mux(fsm.ongoing("SEND"), 1 << vector, 0)) | held_next)
        fsm.act("IDLE",
            If(any_due,
                NextValue(vector, candidate),
                NextState("FETCH")
            ).Elif(post.valid,
                *posts
            )
        )
        fsm.act("POST", *posts)
        if hold_off:
            # A state of its own, because `source.ready` comes late in the cycle.
            fsm.act("JUDGE",
                hold.request.eq(1),
                If(hold.keep, NextState("IDLE")).Else(NextState("FETCH"))
            )
        fsm.act("FETCH",
            table.adr.eq(Cat(line[0], vector) if entry_lines == 2 else vector if line_entries == 1 else
                vector[log2_int(line_entries):]),
            If(table.ready,
                NextValue(line, line + 1),
                NextState("TAKE")
            )
        )
        last_take = [
            NextValue(line, 0),
            If((allowed >> vector)[0],
                NextState("SEND")
            ).Else(
                # Masked, perhaps just now: no message may leave after the host has masked it.
                held.eq(1 << vector),
                NextState("IDLE")
            )
        ]
        if entry_lines == 1:
            entry = table.dat_r
            if line_entries > 1:
                entry = Signal(128)
                self.comb += Case(vector[:log2_int(line_entries)],
                    {n: entry.eq(table.dat_r[128*n:128*(n + 1)]) for n in range(line_entries)})
            fsm.act("TAKE",
                NextValue(message.address, entry[:64]),
                *(
                    [NextValue(unreachable, entry[address_bits:64] != 0)] if address_bits < 64
                    else []),
                NextValue(message.data, entry[64:96]),
                *last_take
            )
        else:
            fsm.act("TAKE",
                If(line == 1,
                    NextValue(message.address, table.dat_r),
                    *(
                        [
                            NextValue(
                                unreachable, table.dat_r[address_bits:] != 0)] if address_bits < 64
                        else []),
                    NextState("FETCH"),
                ).Else(
                    NextValue(message.data, table.dat_r[:32]),
                    *last_take
                )
            )
        fsm.act("SEND",
            source.valid.eq(~unreachable),
            source.last.eq(1),
            source.address.eq(Cat(Constant(0, 2), message.address[2:])),
            source.length.eq(4),
            source.dat.eq(Cat(*[message.data]*(data_width//32))),
            If(source.ready | unreachable,
                sent.eq(1 << vector),
                self.interrupted.eq(~unreachable),
                NextState("IDLE")
            )
        )
