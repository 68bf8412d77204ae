"""Command slots of all endpoints, and the slots of messages: OUTBOX and INBOX."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.common.arbiter import Arbiter
from dibber.interface.description import C
from dibber.interface.register_bank import line_port
from dibber.layouts import slot_port, slot_write_port

# Slots --------------------------------------------------------------------------------------------

class Slots(LiteXModule):
    """The memory of all slots. The host writes those of the endpoints; the card's blocks and its
    processor read all of them.

    One memory port belongs to the host, so that its writes never wait. The other port is shared by
    the card's readers and writers through an arbiter. A slot is read and written at the same time
    only if the host rings the doorbell too early. Then the host harms only its own command.

    Parameters
    ----------
    data_width : bits of a line
    readers, writers : how many ports of the card
    endpoints  : the largest number of sets that the host reaches, a power of two
    sets, slots : geometry
    favourite  : the reader that holds the grant when no port requests
    late       : see Arbiter; the writers count on behind the readers
    present    : how many of the first `endpoints` sets exist, a power of two; all if None. The card
                 must not use the others

    Attributes
    ----------
    port    : line_port(data_width)    the host's; line 0 is the first line of the first slot. In
              sets that do not exist writes are ignored and reads give 0
    readers : list of slot_port(data_width), in
    writers : list of slot_write_port(data_width), in

    Cycles: one access a cycle in each direction; `dat_r` 2 cycles after the accepted address. A
    port that requests alone is served in the next cycle, and then in every cycle. The favourite is
    served at once, from 2 cycles after the last access of another port.
    """
    def __init__(self, data_width, readers, writers, endpoints=C.ENDPOINTS, sets=C.SLOT_SETS, slots=C.SLOTS, favourite=0, late=(), present=None):
        self.port    = port    = line_port(data_width)
        self.readers = readers = [slot_port(data_width) for _ in range(readers)]
        self.writers = writers = [slot_write_port(data_width) for _ in range(writers)]

        # # #

        lines  = slots*C.SLOT_BYTES//(data_width//8)
        seen   = (present or endpoints)*lines  # lines of the sets that the host reaches
        memory = Memory(data_width, seen + (sets - endpoints)*lines, name="slot_memory")
        host   = memory.get_port(write_capable=True, we_granularity=8, mode=NO_CHANGE)
        card   = memory.get_port(write_capable=True, we_granularity=8, mode=NO_CHANGE)
        self.specials += memory, host, card

        # Host -------------------------------------------------------------------------------------

        absent = Signal()  # the host's address lies in a set that does not exist
        hidden = Signal()
        self.comb += [
            absent.eq(port.adr[log2_int(seen):] != 0),
            host.adr.eq(port.adr),
            host.dat_w.eq(port.dat_w),
            If(port.we & ~absent, host.we.eq(port.be)),
        ]
        self.sync += [
            hidden.eq(absent),
            port.dat_r.eq(Mux(hidden, 0, host.dat_r)),
        ]

        # Card -------------------------------------------------------------------------------------

        def place(adr):
            """Line of the memory: address bits of sets that do not exist are left out."""
            return adr if seen == endpoints*lines else Cat(adr[:log2_int(seen)], adr[log2_int(endpoints*lines):])

        clients      = readers + writers
        self.arbiter = arbiter = Arbiter(len(clients), favourite, late)
        dat_r        = Signal(data_width)
        self.comb += [
            arbiter.request.eq(Cat(*[client.valid for client in clients])),
            card.adr.eq(reduce(or_, [Mux(arbiter.grant[n], place(client.adr), 0) for n, client in enumerate(clients)])),
            *[client.ready.eq(arbiter.grant[n]) for n, client in enumerate(clients)],
        ]
        self.sync += dat_r.eq(card.dat_r)
        self.comb += [reader.dat_r.eq(dat_r) for reader in readers]
        grants = [(arbiter.grant[n], writer) for n, writer in enumerate(writers, start=len(readers))]
        self.comb += [
            card.dat_w.eq(reduce(or_, [Mux(granted, writer.dat_w, 0) for granted, writer in grants], Constant(0))),
            card.we.eq(reduce(or_, [Mux(granted & writer.valid, writer.be, 0) for granted, writer in grants], Constant(0))),
        ]
