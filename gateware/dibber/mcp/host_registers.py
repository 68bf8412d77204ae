"""Bank `host`: the card's identity, its control registers, and its counters."""

# SPDX-License-Identifier: BSD-2-Clause

import struct
from functools import reduce
from operator import or_

from migen import *

from litex.gen import *

from dibber.common.code_identity import code_crc
from dibber.common.counters import Counters
from dibber.host.hold_off import hold_off_layout
from dibber.interface.description import C, COUNTERS, HOST, INTERFACE, LINK_COUNTERS, MCP_STATE
from dibber.interface.ethernet import ETHERNET_COUNTER
from dibber.interface.register_bank import RegisterBank, line_port
from dibber.layouts import SHOWN, shown_layout
from dibber.mcp.processor import SRAM_BYTES, image_bytes

# Counters -----------------------------------------------------------------------------------------

def collect_counters(*sources):
    """The pulses of all layers in one dict. Each counter of the description has exactly one source,
    else ValueError is raised.

    Parameters
    ----------
    sources : dicts of counter name -> Signal: how many events happen in this cycle
    """
    pulses = {}
    for source in sources:
        for name, pulse in source.items():
            if name in pulses:
                raise ValueError(f"counter {name} has two sources")
            pulses[name] = pulse
    known = {name for name, _ in COUNTERS}
    if pulses.keys() != known:
        raise ValueError(f"counters without a source: {sorted(known - pulses.keys())}; "
                         f"not described: {sorted(pulses.keys() - known)}")
    return pulses

# Host Registers -----------------------------------------------------------------------------------

class HostRegisters(LiteXModule):
    """Identity, host control and counters.

    Counters keep counting while the control program is held in reset, and wrap.

    Parameters
    ----------
    data_width : bits of a line, and of the data path
    clock_hz   : frequency of `sys`
    counters   : dict of counter name -> Signal(), from `collect_counters`
    board      : name of the board, at most 16 characters of ASCII
    flash      : FlashPort or None; its registers are connected here
    endpoints  : of the card, shown to the host
    sram_bytes : of the control program's SRAM, shown to the host
    window     : the card has the remote window, shown to the host
    frames     : dict of the names of enum ethernet_counter -> Signal(), if the link is Ethernet; else
                 None, and these registers are 0
    ring       : the link is a ring, shown to the host
    hold_off   : interrupts can be held, shown to the host
    pair       : the link is a pair of rings with two cables, shown to the host
    link1      : dict of LINK_COUNTERS -> Signal(), of the second link; None: there is none

    Attributes
    ----------
    port         : line_port(data_width), from HOST_BASE
    cycles       : Signal(64), out   the card's clock, from power-up
    run          : Signal(), out     MCP_CONTROL.run, and no `bite` since it was written
    bite         : Signal(), in      halt the control program: by the watchdog, or because of `lost`
    lost         : Signal(), in      the host has not allowed requests to its memory for too long
    fast_path    : Record, out       the fields of FAST_PATH
    node_id      : Signal(16), out
    shown        : Record(shown_layout()), `index` in   the host registers that the control program
                   reads
    mcp_state    : Signal(8), in
    mcp_identity : Signal(32), in
    max_payload, max_request : Signal(16), in   bytes
    link         : Record, in        values of LINK_*: `state`, `reason`, `signal`, `stopped`,
                   `prbs` (found), `absent`, `peer`, `peer_known`, `round_trip`, `prbs_words`,
                   `prbs_errors`, `slack_high`; with `ring` also `address`, `size`, `scrubber`
    link_control : Record, out       the fields of LINK_CONTROL
    link_test    : Signal(), out     any of them
    link_command : Record, out       the fields of LINK_COMMAND, each for one cycle
    link_nonce   : Signal(16), out
    link_previous : Signal(), out    LINK_CABLE.previous; None without `pair`
    link_cables  : Record, in        the fields of LINK_CABLES; None without `pair`
    link1        : Record, in        values of LINK1_*, as `link`; only with `link1`
    link1_command : Record, out      the fields of LINK1_COMMAND, each for one cycle
    key_draw     : Record, out       `strobe` for one cycle: KEY_DRAW is written with `value`
    key_next, keys_left : Signal(32), in
    hold_off     : Record(hold_off_layout()), out   register HOLD_OFF is written; None without
                   hold-off
    """
    def __init__(self, data_width, clock_hz, counters, board="", flash=None, endpoints=C.ENDPOINTS, sram_bytes=SRAM_BYTES,
                 window=False, frames=None, ring=False, hold_off=False, pair=False, link1=None):
        self.cycles       = Signal(64)
        self.run          = Signal()
        self.bite         = Signal()
        self.lost         = Signal()
        self.fast_path    = Record([(f.name, f.bits) for f in HOST["FAST_PATH"].fields])
        self.node_id      = Signal(16)
        self.shown        = Record(shown_layout())
        self.mcp_state    = Signal(8)
        self.mcp_identity = Signal(32)
        self.max_payload  = Signal(16)
        self.max_request  = Signal(16)
        self.link         = Record([
            ("state", 4), ("reason", 4), ("signal", 1), ("stopped", 4), ("prbs", 1), ("absent", 1),
            ("peer", 16), ("peer_known", 1), ("round_trip", 32), ("prbs_words", 32), ("prbs_errors", 32), ("slack_high", 32),
            ("address", 4), ("size", 5), ("scrubber", 1)])
        self.link_control = Record([(f.name, f.bits) for f in HOST["LINK_CONTROL"].fields])
        self.link_test    = Signal()
        self.link_command = Record([(f.name, f.bits) for f in HOST["LINK_COMMAND"].fields])
        self.link_nonce   = Signal(16)
        self.link_previous = Signal() if pair else None
        self.link_cables  = Record([(f.name, f.bits) for f in HOST["LINK_CABLES"].fields]) if pair else None
        self.key_draw     = Record([("strobe", 1), ("value", 32)])
        self.key_next     = Signal(32)
        self.keys_left    = Signal(32)
        self.hold_off     = Record(hold_off_layout()) if hold_off else None
        self.link1        = Record([
            ("state", 4), ("reason", 4), ("signal", 1), ("stopped", 4), ("peer", 16), ("peer_known", 1),
            ("round_trip", 32), ("slack_high", 32)])
        self.link1_command = Record([(f.name, f.bits) for f in HOST["LINK1_COMMAND"].fields])

        # # #

        counted    = {f"COUNT_{name}": pulse for name, pulse in counters.items()}
        counted1   = [f"LINK1_{name}" for name in LINK_COUNTERS]
        absent     = [
            *([] if hold_off else ["HOLD_OFF"]),
            *([] if pair else ["LINK_CABLE", "LINK_CABLES"]),
            *([] if link1 else [
                "LINK1_STATUS", "LINK1_COMMAND", "LINK1_PEER", "LINK1_ROUND_TRIP", "LINK1_SLACK_HIGH"])]
        omitted    = [*counted, *counted1, *absent, *(name for name, _, _ in ETHERNET_COUNTER.values)]
        self.bank  = bank = RegisterBank(HOST, data_width, omit=omitted, readback=True)
        self.port  = port = line_port(data_width)
        status     = bank.status
        storage    = {name: signals[0] for name, signals in bank.storage.items()}
        index, value = bank.readback.look_up([HOST[name].offset//4 for name in SHOWN])
        self.comb += [
            index.eq(self.shown.index),
            self.shown.value.eq(value),
            self.shown.clock_hz.eq(int(clock_hz)),
        ]

        # Identity ---------------------------------------------------------------------------------

        # One number, not field by field: Verilog never runs a process that reads only constants.
        features = dict(flash=flash is not None, window=window, ethernet=frames is not None, ring=ring, hold_off=hold_off, pair=pair,
            two_links=link1 is not None)
        memory   = dict(size=sram_bytes >> 10, image=image_bytes(sram_bytes) >> 10)
        geometry = dict(endpoints=endpoints, slots=C.SLOTS, regions=C.REGIONS, nodes=C.NODES)
        self.comb += [
            status["MAGIC"][0].eq(C.MAGIC),
            status["INTERFACE_VERSION"][0].eq(INTERFACE.version_word),
            status["INTERFACE_HASH"][0].eq(INTERFACE.hash),
            status["FEATURES"][0].eq(sum(features[f.name] << f.lsb for f in HOST["FEATURES"].fields)),
            status["BUILD"][0].eq(code_crc()),
            status["CLOCK_HZ"][0].eq(int(clock_hz)),
            status["GEOMETRY"][0].eq(sum(geometry[f.name] << f.lsb for f in HOST["GEOMETRY"].fields)),
            status["DATA_WIDTH"][0].eq(data_width),
            status["SRAM"][0].eq(sum(memory[f.name] << f.lsb for f in HOST["SRAM"].fields)),
            *[word.eq(value) for word, value in zip(status["BOARD"], struct.unpack("<4I", board.encode().ljust(16, b"\0")), strict=True)],
        ]

        # Control ----------------------------------------------------------------------------------

        pcie   = bank.fields(HOST, "PCIE_STATUS")
        asked  = storage["MCP_CONTROL"][0]
        bitten = Signal()
        why    = Signal(8)
        self.sync += [
            If(~asked, bitten.eq(0)).Elif(self.bite, bitten.eq(1)),
            # A program that reached its trap handler has set its state, and made the watchdog bite
            # at once.
            If(~bitten,
                why.eq(Mux(self.lost, MCP_STATE.BUS_MASTER,
                    Mux(self.mcp_state == MCP_STATE.TRAP, MCP_STATE.TRAP, MCP_STATE.WATCHDOG)))
            ),
        ]
        self.comb += [
            self.run.eq(asked & ~bitten),
            *[getattr(self.fast_path, name).eq(bit) for name, bit in bank.fields(HOST, "FAST_PATH").items()],
            self.node_id.eq(storage["NODE_ID"]),
            status["MCP_STATE"][0].eq(Mux(asked, Mux(bitten, why, self.mcp_state), MCP_STATE.RESET)),
            status["MCP_IDENTITY"][0].eq(Mux(self.run, self.mcp_identity, 0)),
            pcie["max_payload"].eq(self.max_payload),
            pcie["max_request"].eq(self.max_request),
        ]

        # Link -------------------------------------------------------------------------------------

        shown   = bank.fields(HOST, "LINK_STATUS")
        control = bank.fields(HOST, "LINK_CONTROL")
        command = bank.fields(HOST, "LINK_COMMAND")
        self.comb += [
            *[field.eq(getattr(self.link, name)) for name, field in shown.items()],
            status["LINK_PEER"][0].eq(Cat(self.link.peer, self.link.peer_known,
                *([self.link.address, self.link.size, self.link.scrubber] if ring else []))),
            status["LINK_ROUND_TRIP"][0].eq(self.link.round_trip),
            status["LINK_PRBS_WORDS"][0].eq(self.link.prbs_words),
            status["LINK_PRBS_ERRORS"][0].eq(self.link.prbs_errors),
            status["LINK_SLACK_HIGH"][0].eq(self.link.slack_high),
            *[getattr(self.link_control, name).eq(field) for name, field in control.items()],
            self.link_test.eq(self.link_control.raw_bits() != 0),
            *[getattr(self.link_command, name).eq(bank.strobe["LINK_COMMAND"][0] & field)
                for name, field in command.items()],
            self.link_nonce.eq(storage["LINK_NONCE"]),
        ]

        # Cables of a Pair -------------------------------------------------------------------------

        if pair:
            cables = bank.fields(HOST, "LINK_CABLES")
            previous = Signal()
            self.sync += previous.eq(self.link_previous)
            self.comb += [
                # In the same cycle, so that a LINK_CONTROL written behind it finds the new cable.
                self.link_previous.eq(Mux(bank.strobe["LINK_CABLE"][0], bank.written["LINK_CABLE"][0][0], previous)),
                *[field.eq(getattr(self.link_cables, name)) for name, field in cables.items() if name != "previous"],
                cables["previous"].eq(self.link_previous),
            ]

        # Second Link ------------------------------------------------------------------------------

        if link1 is not None:
            command = bank.fields(HOST, "LINK1_COMMAND")
            self.comb += [
                *[field.eq(getattr(self.link1, name))
                    for name, field in bank.fields(HOST, "LINK1_STATUS").items()],
                status["LINK1_PEER"][0].eq(Cat(self.link1.peer, self.link1.peer_known)),
                status["LINK1_ROUND_TRIP"][0].eq(self.link1.round_trip),
                status["LINK1_SLACK_HIGH"][0].eq(self.link1.slack_high),
                *[getattr(self.link1_command, name).eq(bank.strobe["LINK1_COMMAND"][0] & field)
                    for name, field in command.items()],
            ]

        # Keys -------------------------------------------------------------------------------------

        self.comb += [
            self.key_draw.strobe.eq(bank.strobe["KEY_DRAW"][0]),
            self.key_draw.value.eq(bank.written["KEY_DRAW"][0]),
            status["KEY_NEXT"][0].eq(self.key_next),
            status["KEYS_LEFT"][0].eq(self.keys_left),
        ]

        # Hold-off ---------------------------------------------------------------------------------

        if hold_off:
            self.comb += [
                self.hold_off.strobe.eq(bank.strobe["HOLD_OFF"][0]),
                *[getattr(self.hold_off, name).eq(field) for name, field in bank.fields(HOST, "HOLD_OFF").items()],
            ]

        # Flash ------------------------------------------------------------------------------------

        if flash is not None:
            self.comb += [
                flash.transfer.strobe.eq(bank.strobe["FLASH_TRANSFER"][0]),
                *[getattr(flash.transfer, name).eq(field) for name, field in bank.fields(HOST, "FLASH_TRANSFER").items()],
                flash.unlock.strobe.eq(bank.strobe["FLASH_UNLOCK"][0]),
                flash.unlock.key.eq(bank.written["FLASH_UNLOCK"][0]),
                *[field.eq(getattr(flash.status, name)) for name, field in bank.fields(HOST, "FLASH_STATUS").items()],
            ]

        # Clock ------------------------------------------------------------------------------------

        self.comb += status["CYCLES_LOW"][0].eq(self.cycles[:32])
        self.sync += [
            self.cycles.eq(self.cycles + 1),
            If(bank.read["CYCLES_LOW"][0], status["CYCLES_HIGH"][0].eq(self.cycles[32:])),
        ]

        # Counters ---------------------------------------------------------------------------------

        self.counts, statements = self.make_counters(counted, data_width)
        answers = [bank.port.dat_r, self.counts.dat_r]
        if frames is not None:
            self.frame_counts, more = self.make_counters(frames, data_width)
            statements += more
            answers.append(self.frame_counts.dat_r)
        if link1 is not None:
            self.link1_counts, more = self.make_counters(
                {f"LINK1_{name}": link1[name] for name in LINK_COUNTERS}, data_width)
            statements += more
            answers.append(self.link1_counts.dat_r)
        self.comb += [
            *[getattr(bank.port, name).eq(getattr(port, name)) for name in ["adr", "dat_w", "be", "we", "re"]],
            *statements,
            # Each of them is 0 while another one is read.
            port.dat_r.eq(reduce(or_, answers)),
        ]

    def make_counters(self, pulses, data_width):
        """Counters that are read by `port`, and the statements that connect them with it.

        pulses : dict of register name -> Signal, events in this cycle. The registers are
                 consecutive
        """
        port  = self.port
        lanes = data_width//32
        # A pulse is late in its cycle, so it counts in the next one.
        words  = {
            HOST[name].offset//4: Signal(value_bits_sign(pulse)[0], name=f"came_{name.lower()}")
            for name, pulse in pulses.items()}
        counts = Counters(words, data_width)
        self.sync += [came.eq(pulse) for came, pulse in zip(words.values(), pulses.values())]
        return counts, [
            counts.adr.eq(port.adr[:len(counts.adr)]),
            counts.re.eq(port.re & ~port.we),
            counts.here.eq((port.adr >= min(words)//lanes) & (port.adr <= max(words)//lanes)),
        ]
