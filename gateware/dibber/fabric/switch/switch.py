"""The whole switch without its PHYs."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.common.pulses import Pulses
from dibber.fabric.switch.buffer import BUFFER_WORDS, InputBuffer, headroom_words
from dibber.fabric.switch.crossbar import Crossbar
from dibber.fabric.switch.input import LIMIT_TICKS
from dibber.fabric.switch.registers import SwitchRegisters
from dibber.fabric.switch.teller import Teller
from dibber.interface.description import C, CHANNEL, SWITCH_DROP
from dibber.interface.register_bank import line_port
from dibber.link.port import LinkPort

CHANNELS = 4

# Longest cable, with one STOP lost.
CABLE_METERS = 50

# Limit --------------------------------------------------------------------------------------------

class LimitTicks(LiteXModule):
    """Pulse LIMIT_TICKS times in `limit` units of SWITCH_LIMIT_UNIT cycles.

    Attributes
    ----------
    limit : Signal(16), in   0: no pulses
    tick  : Signal(), out
    """
    def __init__(self):
        self.limit = Signal(16)
        self.tick  = Signal()

        # # #

        cycles = Signal(max=C.SWITCH_LIMIT_UNIT//LIMIT_TICKS)
        units  = Signal(16)
        self.sync += [
            self.tick.eq(0),
            cycles.eq(cycles + 1),
            If(cycles == C.SWITCH_LIMIT_UNIT//LIMIT_TICKS - 1,
                cycles.eq(0),
                units.eq(units + 1),
                # Also after a change to a smaller limit.
                If(units + 1 >= self.limit,
                    units.eq(0),
                    self.tick.eq(self.limit != 0)
                ),
            ),
        ]

# Switch -------------------------------------------------------------------------------------------

class SwitchPort(LinkPort):
    """A link port that receives packets with a prefix, into buffers for a cable of this length."""
    routed = True

    def __init__(self, cable_meters, clock_hz):
        self.headroom = headroom_words(cable_meters, clock_hz)
        LinkPort.__init__(self, CHANNELS, BUFFER_WORDS)

    def make_buffers(self, depths):
        return {n: InputBuffer(words, self.headroom) for n, words in depths.items()}

class Switch(LiteXModule):
    """A source-routed cut-through switch: docs/design/switch.md.

    Parameters
    ----------
    ports        : 4, 8 or 16
    clock_hz     : frequency of `sys`
    cable_meters : longest cable at a port; ValueError if the buffers are too small for it

    Attributes
    ----------
    ports     : list of LinkPort. Their `serial_tx`, `serial_rx` and `signal` are the PHYs'. `signal`
                has no driver here
    signals   : Signal(ports), in   bit n: the PHY of port n detects a signal
    identity  : Signal(32), in      a number that differs for each switch
    port      : line_port(32), to the registers, for a bus beside the cables; it goes first
    registers : SwitchRegisters
    teller    : Teller, which answers scouts
    crossbars : list of Crossbar, by channel

    Cycles: 7 from a header word on `serial_rx` to the same word on `serial_tx`, if the output is
    free and the lanes are aligned.
    """
    def __init__(self, ports, clock_hz, cable_meters=CABLE_METERS):
        assert ports in (2, 4, 8, 16)
        self.ports     = links = [SwitchPort(cable_meters, clock_hz) for _ in range(ports)]
        self.crossbars = crossbars = [
            Crossbar(ports, guest=channel == CHANNEL.CONTROL) for channel in range(CHANNELS)]
        control        = crossbars[CHANNEL.CONTROL]
        self.teller    = teller = Teller(control.inputs[:ports])
        self.port      = port = line_port(32)
        self.signals   = Signal(ports)
        self.identity  = Signal(32)
        for n, link in enumerate(links):
            self.add_module(f"port{n}", link)
        for n, crossbar in enumerate(crossbars):
            self.add_module(f"crossbar{n}", crossbar)

        # # #

        self.registers = registers = SwitchRegisters(
            [self.port_counters(n) for n in range(ports)], CHANNELS, BUFFER_WORDS, clock_hz)
        self.limit     = limit = LimitTicks()
        down = Signal(ports)
        self.comb += [
            down.eq(Cat(*[~link.up for link in links])),
            limit.limit.eq(registers.limit),
            registers.identity.eq(self.identity),
        ]

        # Packets ----------------------------------------------------------------------------------

        for channel, crossbar in enumerate(crossbars):
            self.comb += [
                crossbar.down.eq(down),
                crossbar.disabled.eq(~registers.enable),
                crossbar.tick.eq(limit.tick),
                *[link.sources[channel].connect(sink)
                    for link, sink in zip(links, crossbar.sinks)],
                *[source.connect(link.sinks[channel])
                    for link, source in zip(links, crossbar.sources)],
            ]

        # Registers --------------------------------------------------------------------------------

        # The bus waits for nothing, so a scout waits for the bus.
        by_bus = Signal()
        asked  = Signal(2)  # the bus read in the cycle before, two cycles before
        self.sync += asked.eq(Cat(port.re & ~port.we, asked[0]))
        self.comb += [
            by_bus.eq(port.re | port.we),
            teller.granted.eq(~by_bus),
            *[getattr(registers.port, name).eq(
                    Mux(by_bus, getattr(port, name), getattr(teller.port, name)))
                for name in ["adr", "dat_w", "be", "we", "re"]],
            teller.port.dat_r.eq(registers.port.dat_r),
            If(asked[1], port.dat_r.eq(registers.port.dat_r)),
            registers.asked_at.eq(teller.at),
            teller.source.connect(control.sinks[ports]),
        ]

        # Ports ------------------------------------------------------------------------------------

        for n, (link, shown) in enumerate(zip(links, registers.shown)):
            self.comb += [
                # The other end sees that a disabled port does not hear it.
                link.signal.eq(self.signals[n] & registers.enable[n]),
                link.retrain.eq(registers.retrain[n]),
                link.ping.eq(registers.ping[n]),
                # No two ports of one switch have the same nonce, so a cable between them comes up.
                link.nonce.eq(Cat(Constant(n, 4), self.identity[:12])),
                *[getattr(shown, name).eq(getattr(link, name))
                    for name in ["state", "reason", "stopped", "peer", "peer_known", "round_trip"]],
                shown.signal.eq(self.signals[n]),
                shown.slack_high.eq(Cat(*link.slack_high)),
                shown.stuck.eq(Cat(*[crossbar.stuck[n] for crossbar in crossbars])),
            ]

    # Counters -------------------------------------------------------------------------------------

    def port_counters(self, number):
        """The pulses of one port by counter name. Each channel may have one in the same cycle."""
        inputs  = [crossbar.inputs[number] for crossbar in self.crossbars]
        outputs = [crossbar.outputs[number] for crossbar in self.crossbars]
        teller  = self.teller
        guest   = self.crossbars[CHANNEL.CONTROL].inputs[-1]
        here    = teller.at == number
        # What becomes of packets whose route ends here is known when a scout was answered or not.
        ending  = {
            CHANNEL.CONTROL: [teller.refused[number], teller.busy[number]],
            **{n: [one.drop.strobe & (one.drop.reason == SWITCH_DROP.ROUTE_END)]
                for n, one in enumerate(inputs) if n != CHANNEL.CONTROL},
        }
        events  = {
            "ASKED":          [guest.passed & here],
            "PACKETS_PASSED": [one.passed for one in inputs],
            "PACKETS_BAD":    [one.bad for one in inputs],
            "PACKETS_SENT":   [one.sent for one in outputs],
            **{f"DROPPED_{name}": [
                    *[one.drop.strobe & (one.drop.reason == value) for one in inputs],
                    guest.drop.strobe & (guest.drop.reason == value) & here]
                for name, value, _ in SWITCH_DROP.values if value != SWITCH_DROP.ROUTE_END},
            "DROPPED_ROUTE_END": [one for of_channel in ending.values() for one in of_channel],
        }
        pulses  = {name: pulse for name, pulse in self.ports[number].counters.items()
            if name != "PACKET_MISROUTED"}
        for name, events_of_name in events.items():
            counted = Pulses(*events_of_name)
            self.add_module(f"{name.lower()}{number}", counted)
            pulses[name] = counted.pulse
        return pulses
