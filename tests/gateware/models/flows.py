"""Sources of flows as they are after their first round trip."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.interface.description import C

from tests.gateware.models.drive import drive
from tests.gateware.models.link import route_word


def numbers_of(gate):
    """The memory of a FlowGate that counts incarnations and says whether they are sure."""
    return next(
        special
        for special in gate._fragment.specials
        if isinstance(special, Memory) and special.name_override == "numbers"
    )


def sure(table, number=0):
    """Make each flow of a FlowTable sure, with its count at `number`. Then no answer of its target
    is needed.
    """
    for lane in range(C.LANES):
        numbers_of(getattr(table, f"gate{lane}")).init = [1 << 8 | number] * C.NODES


def acked_of(table):
    """The last PSN acknowledged of each flow of a FlowTable, by number: signals, where its own
    lookups say one at a time.
    """
    signals = []
    for lane in range(C.LANES):
        gate = getattr(table, f"gate{lane}")
        for node in range(C.NODES):
            signal = Signal(16)
            port = gate.ackeds.get_port(async_read=True)
            table.specials += port
            table.comb += [
                port.adr.eq(node),
                signal.eq(Mux(gate.started[node], port.dat_r, 0xFFFF)),
            ]
            signals.append(signal)
    return signals


def flow_bit(event):
    """The event of a flow in this cycle, as the flow's bit, or 0."""
    return (yield event.strobe) << (yield event.flow)


def opened(receiver):
    """Have a PacketReceiver take it that every node has asked it: their first packets start their
    flows.
    """
    for lane in receiver.lanes:
        lane.sequencer.opened.reset = Constant(2**C.NODES - 1)


def opened_receiver(design, *args):
    """design(*args), a PacketReceiver, of which that holds."""
    receiver = design(*args)
    opened(receiver)
    return receiver


def sure_transmitter(design, *args):
    """design(*args), a PacketTransmitter, with such flows; and what is acknowledged of them."""
    transmitter = design(*args)
    sure(transmitter.flows)
    transmitter.acked = acked_of(transmitter.flows)
    return transmitter


def any_ways(random, nodes=8):
    """{node: turns}, of no switch to three."""
    return {node: [random.randrange(16) for _ in range(node % 4)] for node in range(nodes)}


def write_ways(transmitter, ways):
    """Write the route table of a PacketTransmitter."""
    for node, turns in ways.items():
        yield from drive(transmitter.route, strobe=1, node=node, route=route_word(turns))
        yield
    yield transmitter.route.strobe.eq(0)
