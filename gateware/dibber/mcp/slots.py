# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The command slots of all endpoints."""

from migen import *
from migen.genlib.roundrobin import RoundRobin, SP_CE

from litex.gen import *

from dibber.interface.description import C
from dibber.interface.registers import line_port
from dibber.layouts import slot_port

# Command Slots ------------------------------------------------------------------------------------

class CommandSlots(LiteXModule):
    """A memory of commands: the host writes, the card's engines and its processor read.

    One memory port belongs to the host alone, so that its writes never wait; the other is lent to the
    readers by turns. A slot is read while it is being written only by a host that breaks its own
    rules (it rings the doorbell too early), and then it harms only its own command.

    Parameters
    ----------
    data_width : bits of a line
    readers    : how many read ports
    endpoints, slots : geometry

    Attributes
    ----------
    port    : line_port(data_width)             the host's, from the first line of the first slot
    readers : list of slot_port(data_width), in

    Cycles: one access a cycle in each direction; `dat_r` 2 cycles after the accepted address.
    """
    def __init__(self, data_width, readers=3, endpoints=C.ENDPOINTS, slots=C.SLOTS):
        self.port    = port    = line_port(data_width)
        self.readers = readers = [slot_port(data_width) for _ in range(readers)]

        # # #

        depth  = endpoints*slots*C.SLOT_BYTES//(data_width//8)
        memory = Memory(data_width, depth, name="command_slots")
        host   = memory.get_port(write_capable=True, we_granularity=8, mode=NO_CHANGE)
        card   = memory.get_port()
        self.specials += memory, host, card
        self.comb += [
            host.adr.eq(port.adr),
            host.dat_w.eq(port.dat_w),
            If(port.we, host.we.eq(port.be)),
        ]
        self.sync += port.dat_r.eq(host.dat_r)

        self.turn = turn = RoundRobin(len(readers), SP_CE)
        self.comb += turn.ce.eq(1)
        # RoundRobin's grant was registered in the cycle before; whoever holds it may use it now.
        dat_r = Signal(data_width)
        self.sync += dat_r.eq(card.dat_r)
        self.comb += Case(turn.grant, {n: card.adr.eq(r.adr) for n, r in enumerate(readers)})
        for n, r in enumerate(readers):
            self.comb += [
                turn.request[n].eq(r.valid),
                r.ready.eq(turn.grant == n),
                r.dat_r.eq(dat_r),
            ]
