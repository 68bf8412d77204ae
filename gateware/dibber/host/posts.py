"""Queue entries for host memory, and the interrupts behind them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.host.msix_table import MSIXTable
from dibber.interface import C
from dibber.layouts import post_layout, write_layout

# Post Writer --------------------------------------------------------------------------------------

def vector_open_layout():
    return [("strobe", 1), ("vector", log2_int(C.VECTORS))]

class PostWriter(LiteXModule):
    """Write queue entries to host memory and raise interrupts behind them.

    A post is one 32-byte write; its interrupt, if it has one, is the write that follows. An
    interrupt whose vector is masked, or that comes while MSI-X is off, sets the vector's pending
    bit and is sent when it may be. A vector that the table does not have raises nothing.

    Where addresses are narrow, one whose message would go elsewhere raises nothing either.

    A halt of the control program raises each vector that was opened since the last one, once:
    whoever sleeps on it learns of that from nobody else. It waits for nothing here.

    Parameters
    ----------
    data_width : 64 or 128
    address_bits : 64 or 32

    Attributes
    ----------
    sink        : Endpoint(post_layout), in      `address` is a multiple of 32
    source      : Endpoint(write_layout), out
    port        : line_port(data_width)          see MSIXTable
    enable      : Signal, in                     MSI-X Enable of the function; 1 where nothing
                  drives it
    open        : Record(vector_open_layout), in a queue was opened with this vector
    halted      : Signal, in                     one cycle: the control program was halted
    posted      : Signal, out                    pulses for each entry sent
    interrupted : Signal, out                    pulses for each message sent

    Cycles: 1 to the source; 4 a post with 64 bits, 2 with 128; with an interrupt 5 or 3 more, and
    those in which the host is at the table. What was held back follows 1 later than it may.
    """
    def __init__(self, data_width, address_bits=64):
        entry_lines = 128//data_width
        post_lines  = 256//data_width
        self.table  = table = MSIXTable(data_width)
        # One that waits is enough: the next one is made meanwhile.
        self.pipe   = pipe  = stream.PipeValid(post_layout())
        self.sink        = pipe.sink
        self.source      = source = stream.Endpoint(write_layout(data_width))
        self.port        = table.port
        self.enable      = Signal(reset=1)
        self.open        = Record(vector_open_layout())
        self.halted      = Signal()
        self.posted      = Signal()
        self.interrupted = Signal()

        # # #

        post    = pipe.source
        pending = table.pending
        vector  = Signal(max=C.VECTORS)
        line    = Signal(max=post_lines)
        allowed = Signal(C.VECTORS)  # vectors that may be sent
        comes   = Signal(C.VECTORS)  # vectors that are held back from the next cycle on
        waits   = Signal(C.VECTORS)  # those that wait, but for the one that is being sent
        due     = Signal(C.VECTORS)  # vectors that were held back and may be sent now
        any_due = Signal()
        candidate = Signal(max=C.VECTORS)
        held    = Signal(C.VECTORS)
        sent    = Signal(C.VECTORS)
        opened  = Signal(C.VECTORS)
        message = Record([("address", address_bits), ("data", 32)])
        far     = Signal()  # the message goes where no address of the card leads
        self.comb += [
            comes.eq(held | (opened & Replicate(self.halted, C.VECTORS))),
            allowed.eq(~table.mask & Replicate(self.enable, C.VECTORS)),
            [If(due[n], candidate.eq(n)) for n in reversed(range(C.VECTORS))],
        ]
        self.sync += [
            pending.eq((pending & ~sent) | comes),
            # A post waits for these. The masks are those of a cycle before; who sends looks at them
            # again. While one is being sent nobody looks here.
            due.eq(waits & allowed),
            any_due.eq((waits & allowed) != 0),
            opened.eq((opened & ~Replicate(self.halted, C.VECTORS)) | (self.open.strobe << self.open.vector)),
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
                        NextState("FETCH")
                    ).Else(
                        NextState("IDLE")
                    )
                )
            ),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        self.comb += waits.eq((pending & ~Mux(fsm.ongoing("SEND"), 1 << vector, 0)) | comes)
        fsm.act("IDLE",
            If(any_due,
                NextValue(vector, candidate),
                NextState("FETCH")
            ).Elif(post.valid,
                *posts
            )
        )
        fsm.act("POST", *posts)
        fsm.act("FETCH",
            table.adr.eq(vector if entry_lines == 1 else Cat(line[0], vector)),
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
                # Masked, perhaps a moment ago: nothing may leave after the host has masked it.
                held.eq(1 << vector),
                NextState("IDLE")
            )
        ]
        if entry_lines == 1:
            fsm.act("TAKE",
                NextValue(message.address, table.dat_r[:64]),
                *([NextValue(far, table.dat_r[address_bits:64] != 0)] if address_bits < 64 else []),
                NextValue(message.data, table.dat_r[64:96]),
                *last_take
            )
        else:
            fsm.act("TAKE",
                If(line == 1,
                    NextValue(message.address, table.dat_r),
                    *([NextValue(far, table.dat_r[address_bits:] != 0)] if address_bits < 64 else []),
                    NextState("FETCH"),
                ).Else(
                    NextValue(message.data, table.dat_r[:32]),
                    *last_take
                )
            )
        fsm.act("SEND",
            source.valid.eq(~far),
            source.last.eq(1),
            source.address.eq(Cat(Constant(0, 2), message.address[2:])),
            source.length.eq(4),
            source.dat.eq(Cat(*[message.data]*(data_width//32))),
            If(source.ready | far,
                sent.eq(1 << vector),
                self.interrupted.eq(~far),
                NextState("IDLE")
            )
        )
