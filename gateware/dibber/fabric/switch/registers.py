"""Register bank `switch`: identity, the ports' state and control, and their counters."""

# SPDX-License-Identifier: BSD-2-Clause

from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.common.code_identity import code_crc
from dibber.common.counters import Counters
from dibber.interface.description import C, INTERFACE, SWITCH, SWITCH_COUNTER
from dibber.interface.register_bank import RegisterBank, line_port

def shown_layout():
    """What a port shows; the fields are those of the registers PORT_*."""
    return [
        ("state", 4), ("signal", 1), ("stopped", 4), ("reason", 4), ("stuck", 4), ("peer", 16),
        ("peer_known", 1), ("round_trip", 32), ("slack_high", 32)]

# Switch Registers ---------------------------------------------------------------------------------

class SwitchRegisters(LiteXModule):
    """Identity, control, state and counters of a switch.

    Parameters
    ----------
    counters     : for each port, dict of counter name -> Signal() that is 1 for each cycle that
                   counts; the names are those of enum switch_counter
    channels     : number of virtual channels
    buffer_words : depth of each slack buffer
    clock_hz     : frequency of `sys`

    Attributes
    ----------
    port     : line_port(32), from the bank's first byte
    identity : Signal(32), in       a number that differs for each switch
    asked_at : Signal(8), in        as register ASKED_AT
    shown    : list of Record(shown_layout()), in, by port
    enable   : Signal(ports), out
    limit    : Signal(16), out      as register LIMIT
    retrain  : Signal(ports), out   one cycle for each write
    ping     : Signal(ports), out   one cycle for each write
    """
    def __init__(self, counters, channels, buffer_words, clock_hz):
        ports = len(counters)
        self.port     = port = line_port(32)
        self.identity = Signal(32)
        self.asked_at = Signal(8)
        self.shown    = [Record(shown_layout()) for _ in range(ports)]
        self.enable   = Signal(ports)
        self.limit    = Signal(16)
        self.retrain  = Signal(ports)
        self.ping     = Signal(ports)

        # # #

        self.bank = bank = RegisterBank(SWITCH, 32, omit=("COUNTERS",))
        status    = bank.status
        self.comb += [
            getattr(bank.port, name).eq(getattr(port, name))
            for name in ["adr", "dat_w", "be", "we", "re"]]

        # Identity ---------------------------------------------------------------------------------

        geometry = dict(ports=ports, channels=channels, buffer=buffer_words)
        self.comb += [
            status["MAGIC"][0].eq(C.SWITCH_SIGNATURE),
            status["INTERFACE_VERSION"][0].eq(INTERFACE.version_word),
            status["INTERFACE_HASH"][0].eq(INTERFACE.hash),
            status["BUILD"][0].eq(code_crc()),
            status["CLOCK_HZ"][0].eq(int(clock_hz)),
            status["IDENTITY"][0].eq(self.identity),
            status["ASKED_AT"][0].eq(self.asked_at),
            status["GEOMETRY"][0].eq(
                sum(geometry[f.name] << f.lsb for f in SWITCH["GEOMETRY"].fields)),
        ]

        # Ports ------------------------------------------------------------------------------------

        strobe = lambda name: Replicate(bank.strobe[name][0], ports) & bank.written[name][0]
        self.comb += [
            self.enable.eq(bank.storage["ENABLE"][0]),
            self.limit.eq(bank.storage["LIMIT"][0]),
            self.retrain.eq(strobe("RETRAIN")),
            self.ping.eq(strobe("PING")),
        ]
        for n, shown in enumerate(self.shown):
            fields = bank.fields(SWITCH, "PORT_STATUS", n)
            self.comb += [
                *[fields[name].eq(getattr(shown, name))
                    for name in ["state", "signal", "stopped", "reason", "stuck"]],
                fields["enabled"].eq(self.enable[n]),
                status["PORT_PEER"][n].eq(Cat(shown.peer, shown.peer_known)),
                status["PORT_ROUND_TRIP"][n].eq(shown.round_trip),
                status["PORT_SLACK_HIGH"][n].eq(shown.slack_high),
            ]

        # Counters ---------------------------------------------------------------------------------

        # One block of counters for each port, because such a block has at most 60 lines.
        number = {name: value for name, value, _ in SWITCH_COUNTER.values}
        answers = [bank.port.dat_r]
        for n, pulses in enumerate(counters):
            if pulses.keys() != number.keys():
                raise ValueError(f"counters of port {n}: {sorted(pulses.keys() ^ number.keys())} "
                                 "are missing or not described")
            block = Counters({number[name]: pulse for name, pulse in pulses.items()}, 32)
            self.add_module(f"counters{n}", block)
            line  = Signal(20, name=f"line{n}")  # within the words of this port
            first = SWITCH["COUNTERS"].offset//4 + C.SWITCH_COUNTER_WORDS*n
            self.comb += [
                line.eq(port.adr - first),
                block.adr.eq(line),
                block.re.eq(port.re & ~port.we),
                block.here.eq(line < len(number)),
            ]
            answers.append(block.dat_r)
        self.comb += port.dat_r.eq(reduce(or_, answers))
