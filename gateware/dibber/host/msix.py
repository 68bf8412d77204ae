"""Queue entries for host memory, and the MSI-X interrupts after them."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface import C
from dibber.interface.registers import line_port
from dibber.layouts import post_layout, write_layout

# MSI-X Table --------------------------------------------------------------------------------------

class MSIXTable(LiteXModule):
    """MSI-X table and pending bits behind a line port (PCI Local Bus 3.0, 6.8.2).

    The table starts at line 0 of the port, the pending bits at MSIX_PBA_BASE - MSIX_TABLE_BASE
    bytes; all other lines read as 0. Mask bits are 1 after reset.

    Attributes
    ----------
    port    : line_port(data_width)
    mask    : Signal(VECTORS), out
    pending : Signal(VECTORS), in
    adr     : Signal, in                  table line for the sender
    dat_r   : Signal(data_width), out     its content one cycle later, if `ready` was 1
    ready   : Signal, out                 0: the host accesses the table in this cycle
    """
    def __init__(self, data_width):
        line_bytes   = data_width//8
        entry_lines  = 16//line_bytes
        depth        = C.VECTORS*entry_lines
        self.port    = port = line_port(data_width)
        self.mask    = Signal(C.VECTORS, reset=2**C.VECTORS - 1)
        self.pending = Signal(C.VECTORS)
        self.adr     = Signal(max=depth)
        self.dat_r   = Signal(data_width)
        self.ready   = Signal()

        # # #

        control    = 96 % data_width  # bit of Vector Control in the last line of an entry
        # The host's writes block the sender's reads: a read during a write is undefined in block
        # RAM.
        table      = Memory(data_width, depth, name="block_vectors")
        enter      = table.get_port(write_capable=True, we_granularity=8, mode=READ_FIRST)
        look       = table.get_port(mode=READ_FIRST)
        self.specials += table, enter, look
        in_table   = Signal()
        is_table   = Signal()
        is_pending = Signal()
        is_control = Signal()
        masked     = Signal()
        self.comb += [
            in_table.eq(port.adr < depth),
            enter.adr.eq(port.adr),
            enter.dat_w.eq(port.dat_w),
            If(port.we & in_table, enter.we.eq(port.be)),
            look.adr.eq(Mux(port.re, port.adr, self.adr)),
            self.dat_r.eq(look.dat_r),
            self.ready.eq(~(port.re | port.we)),
        ]
        vector = port.adr[log2_int(entry_lines):][:log2_int(C.VECTORS)]
        self.sync += [
            is_table.eq(in_table & port.re),
            is_control.eq(port.adr[0] if entry_lines == 2 else 1),
            masked.eq((self.mask >> vector)[0]),
            is_pending.eq(
                port.re & (port.adr == (C.MSIX_PBA_BASE - C.MSIX_TABLE_BASE)//line_bytes)),
            port.dat_r.eq(0),
            If(is_table,
                port.dat_r.eq(look.dat_r),
                # The mask bits are registers, because all of them are needed at once, and reset.
                If(is_control, port.dat_r[control:control + 32].eq(masked)),
            ).Elif(is_pending,
                port.dat_r.eq(self.pending)
            )
        ]
        for n in range(C.VECTORS):
            line = n*entry_lines + entry_lines - 1
            self.sync += If(port.we & (port.adr == line) & port.be[control//8],
                self.mask[n].eq(port.dat_w[control]))

# MSI-X --------------------------------------------------------------------------------------------

def vector_open_layout():
    return [("strobe", 1), ("vector", log2_int(C.VECTORS))]

class MSIX(LiteXModule):
    """Write queue entries to host memory and raise their interrupts.

    A post is one 32-byte write; its interrupt, if any, is the next write. If the vector is masked,
    or MSI-X is disabled, the vector's pending bit is set instead, and the interrupt is sent later.
    A vector beyond the table raises no interrupt. With narrow addresses, neither does a vector
    whose message address is beyond the card's addresses.

    A halt of the control program raises each vector that was opened since the last halt, once. A
    process that sleeps on a vector would not notice the halt otherwise. A halt waits for no post.

    Parameters
    ----------
    data_width : 64 or 128
    address_bits : 64 or 32

    Attributes
    ----------
    sink        : Endpoint(post_layout), in      `address` is a multiple of 32
    source      : Endpoint(write_layout), out
    port        : line_port(data_width)          see MSIXTable
    enable      : Signal, in                     MSI-X Enable of the function; 1 if not driven
    open        : Record(vector_open_layout), in a queue was opened with this vector
    halted      : Signal, in                     one cycle: the control program was halted
    posted      : Signal, out                    one pulse for each entry sent
    interrupted : Signal, out                    one pulse for each message sent

    Cycles: 1 to the source; 4 for a post at 64 bits, 2 at 128; an interrupt takes 5 or 3 more, plus
    the cycles in which the host accesses the table. A held-back interrupt is sent 1 cycle after its
    release.
    """
    def __init__(self, data_width, address_bits=64):
        entry_lines = 128//data_width
        post_lines  = 256//data_width
        self.table  = table = MSIXTable(data_width)
        # One waiting post is enough: the next one is made meanwhile.
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

        post        = pipe.source
        pending     = table.pending
        vector      = Signal(max=C.VECTORS)
        line        = Signal(max=post_lines)
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
        self.comb += [
            held_next.eq(held | (opened & Replicate(self.halted, C.VECTORS))),
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
                # Masked, perhaps just now: no message may leave after the host has masked it.
                held.eq(1 << vector),
                NextState("IDLE")
            )
        ]
        if entry_lines == 1:
            fsm.act("TAKE",
                NextValue(message.address, table.dat_r[:64]),
                *(
                    [NextValue(unreachable, table.dat_r[address_bits:64] != 0)] if address_bits < 64
                    else []),
                NextValue(message.data, table.dat_r[64:96]),
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
