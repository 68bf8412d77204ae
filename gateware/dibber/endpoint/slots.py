"""The slots: commands of all endpoints, messages to be sent, messages that came."""

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
    """A memory of slots: the host writes those of the endpoints, the card's engines and its
    processor read all.

    One memory port belongs to the host alone, so that its writes never wait; the other is lent to
    the card's readers and writers by turns. A slot is read while it is being written only by a host
    that breaks its own rules (it rings the doorbell too early), and then it harms only its own
    command.

    Parameters
    ----------
    data_width : bits of a line
    readers, writers : how many ports of the card
    endpoints  : sets that the host reaches at most, a power of two
    sets, slots : geometry
    favourite  : the reader who has the grant when nobody asks
    late       : see Arbiter; the writers are behind the readers
    present    : of the first `endpoints` sets those that there are, a power of two; all if None.
                 The card has to leave others alone

    Attributes
    ----------
    port    : line_port(data_width)             the host's, from the first line of the first slot;
              beyond the
                                                endpoints' sets that there are writes are ignored
                                                and reads give 0
    readers : list of slot_port(data_width), in
    writers : list of slot_write_port(data_width), in

    Cycles: one access a cycle in each direction; `dat_r` 2 cycles after the accepted address. A
    port that comes when nobody else asks is served in the next cycle, and then in every cycle; the
    favourite's at once, 2 cycles behind whoever was served last.
    """
    def __init__(self, data_width, readers, writers, endpoints=C.ENDPOINTS, sets=C.SLOT_SETS, slots=C.SLOTS, favourite=0, late=(), present=None):
        self.port    = port    = line_port(data_width)
        self.readers = readers = [slot_port(data_width) for _ in range(readers)]
        self.writers = writers = [slot_write_port(data_width) for _ in range(writers)]

        # # #

        lines  = slots*C.SLOT_BYTES//(data_width//8)
        there  = (present or endpoints)*lines
        memory = Memory(data_width, there + (sets - endpoints)*lines, name="slot_memory")
        host   = memory.get_port(write_capable=True, we_granularity=8, mode=NO_CHANGE)
        card   = memory.get_port(write_capable=True, we_granularity=8, mode=NO_CHANGE)
        self.specials += memory, host, card

        # Host -------------------------------------------------------------------------------------

        beyond = Signal()
        hidden = Signal()
        self.comb += [
            beyond.eq(port.adr[log2_int(there):] != 0),
            host.adr.eq(port.adr),
            host.dat_w.eq(port.dat_w),
            If(port.we & ~beyond, host.we.eq(port.be)),
        ]
        self.sync += [
            hidden.eq(beyond),
            port.dat_r.eq(Mux(hidden, 0, host.dat_r)),
        ]

        # Card -------------------------------------------------------------------------------------

        def place(adr):
            """In the memory: the bits that tell a set that there is not are left out."""
            return adr if there == endpoints*lines else Cat(adr[:log2_int(there)], adr[log2_int(endpoints*lines):])

        # The grant was registered in the cycle before; whoever holds it may use it now.
        clients   = readers + writers
        self.turn = turn = Arbiter(len(clients), favourite, late)
        dat_r     = Signal(data_width)
        self.comb += [
            turn.request.eq(Cat(*[client.valid for client in clients])),
            card.adr.eq(reduce(or_, [Mux(turn.grant[n], place(client.adr), 0) for n, client in enumerate(clients)])),
            *[client.ready.eq(turn.grant[n]) for n, client in enumerate(clients)],
        ]
        self.sync += dat_r.eq(card.dat_r)
        self.comb += [reader.dat_r.eq(dat_r) for reader in readers]
        turns = [(turn.grant[n], writer) for n, writer in enumerate(writers, start=len(readers))]
        self.comb += [
            card.dat_w.eq(reduce(or_, [Mux(granted, writer.dat_w, 0) for granted, writer in turns], Constant(0))),
            card.we.eq(reduce(or_, [Mux(granted & writer.valid, writer.be, 0) for granted, writer in turns], Constant(0))),
        ]
