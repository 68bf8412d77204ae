"""Test equipment between a link port and its serial PHY: PRBS, loopbacks, a single bit error."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.interface.description import PRBS
from dibber.layouts import serial_rx_layout, serial_tx_layout
from dibber.link.prbs import PRBSChecker, PRBSGenerator
from dibber.link.symbols import FIRST_IS_K, flow_word

class LinkEquipment(LiteXModule):
    """Pass words through, with no cycle of delay, unless a test is on.

        port.serial_tx ─▶ PRBS ─▶ far ─▶ error ─▶ PHY      PHY ─▶ near ─▶ port.serial_rx, checker

    The near-end loopback returns the words to the port in front of the PHY; they also go to the
    PHY. The far-end loopback sends the words that the PHY receives, with their K flags. If it has
    none, as after its start, it sends a flow word with state 0. Its FIFO drops words when it is
    full; with equal clocks it never is.

    Attributes
    ----------
    port_tx  : Endpoint(serial_tx_layout), in
    port_rx  : Endpoint(serial_rx_layout), out
    phy_tx   : Endpoint(serial_tx_layout), out
    phy_rx   : Endpoint(serial_rx_layout), in
    transmit : Signal(3), in    enum prbs: sequence that is sent instead of the port's words
    check    : Signal(3), in    enum prbs: sequence that is expected
    near     : Signal(), in     near-end loopback
    far      : Signal(), in     far-end loopback
    error    : Signal(), in     one cycle: invert one bit of the next word
    locked, words, wrong : of the PRBSChecker

    Cycles: 0; near-end loopback 1, far-end loopback 3.
    """
    def __init__(self):
        self.port_tx  = port_tx = stream.Endpoint(serial_tx_layout())
        self.port_rx  = port_rx = stream.Endpoint(serial_rx_layout())
        self.phy_tx   = phy_tx  = stream.Endpoint(serial_tx_layout())
        self.phy_rx   = phy_rx  = stream.Endpoint(serial_rx_layout())
        self.transmit = Signal(3)
        self.check    = Signal(3)
        self.near     = Signal()
        self.far      = Signal()
        self.error    = Signal()

        # # #

        self.generator = generator = PRBSGenerator()
        self.checker   = checker   = PRBSChecker()
        self.echo      = echo      = stream.SyncFIFO(serial_tx_layout(), 8, buffered=True)
        self.locked, self.words, self.wrong = checker.locked, checker.words, checker.wrong

        # Transmit ---------------------------------------------------------------------------------

        taken   = Signal()
        pending = Signal()
        word    = Signal(32)  # before the bit error
        self.comb += [
            taken.eq(phy_tx.valid & phy_tx.ready),
            generator.select.eq(self.transmit),
            generator.step.eq(taken & ~self.far & (self.transmit != PRBS.OFF)),
            echo.sink.valid.eq(phy_rx.valid & self.far),
            echo.sink.data.eq(phy_rx.data),
            echo.sink.k.eq(phy_rx.k),
            If(self.far,
                phy_tx.valid.eq(1),
                word.eq(flow_word(Constant(0, 8))),
                phy_tx.k.eq(FIRST_IS_K),
                If(echo.source.valid,
                    word.eq(echo.source.data),
                    phy_tx.k.eq(echo.source.k),
                    echo.source.ready.eq(phy_tx.ready)
                ),
                port_tx.ready.eq(1)
            ).Elif(self.transmit != PRBS.OFF,
                echo.source.ready.eq(1),
                phy_tx.valid.eq(1),
                word.eq(generator.word),
                port_tx.ready.eq(1)
            ).Else(
                echo.source.ready.eq(1),
                port_tx.connect(phy_tx, omit={"data"}),
                word.eq(port_tx.data)
            ),
            # The error is in the second symbol, because the K code of a control word is the first.
            phy_tx.data.eq(word ^ (pending << 8)),
        ]
        self.sync += If(self.error, pending.eq(1)).Elif(taken, pending.eq(0))

        # Receive ----------------------------------------------------------------------------------

        turned = stream.Endpoint(serial_rx_layout())  # near-end loopback: the word just sent
        self.sync += [
            turned.valid.eq(taken),
            turned.data.eq(phy_tx.data),
            turned.k.eq(phy_tx.k),
        ]
        self.comb += [
            phy_rx.ready.eq(1),
            If(self.near,
                port_rx.valid.eq(turned.valid),
                port_rx.data.eq(turned.data),
                port_rx.k.eq(turned.k)
            ).Else(
                phy_rx.connect(port_rx, omit={"ready"})
            ),
            checker.select.eq(self.check),
            checker.valid.eq(port_rx.valid),
            checker.word.eq(port_rx.data),
            checker.errors.eq(port_rx.code_error | port_rx.k),
        ]

# Wiring -------------------------------------------------------------------------------------------

def attach_port(link, identity):
    """Connect a port (docs/design/port.md) with the host registers LINK_*. Returns a list of
    statements.

    Parameters
    ----------
    link     : LinkPort or a sibling. A node of a ring has `address`, `size` and `scrubber`
    identity : HostRegisters
    """
    shown = identity.link
    place = ["address", "size", "scrubber"] if hasattr(link, "scrubber") else []
    return [
        link.test.eq(identity.link_test),
        *attach_state(link, identity.link_command, shown, identity.link_nonce),
        *[getattr(shown, name).eq(getattr(link, name)) for name in place],
    ]

def attach_state(link, command, shown, nonce):
    """Connect what each port has with the host registers of link 0 or link 1.

    command : Record, the fields of LINK_COMMAND or LINK1_COMMAND
    shown   : Record, the values of LINK_* or LINK1_*
    nonce   : Signal(16)
    """
    return [
        link.retrain.eq(command.retrain),
        link.ping.eq(command.ping),
        link.nonce.eq(nonce),
        *[getattr(shown, name).eq(getattr(link, name))
            for name in ["state", "reason", "signal", "stopped", "peer", "peer_known", "round_trip"]],
        shown.slack_high.eq(Cat(*link.slack_high)),
    ]

def attach_equipment(link, equipment, serial, identity):
    """Connect the equipment between a link and its serial PHY, and both to the host registers
    LINK_*.

    Parameters
    ----------
    link      : LinkPort, or a sibling with `serial_tx` and `serial_rx`
    equipment : LinkEquipment
    serial    : serial PHY, as for DibberCore; with `absent` if there is none (phy/absent.py)
    identity  : HostRegisters

    Returns a list of statements.
    """
    shown = identity.link
    statements = [
        *attach_cable(link, equipment, serial, identity),
        *attach_port(link, identity),
        shown.prbs.eq(equipment.locked),
        shown.prbs_words.eq(equipment.words),
        shown.prbs_errors.eq(equipment.wrong),
    ]
    if getattr(serial, "absent", False):
        statements.append(shown.absent.eq(1))
    return statements

def attach_pair(link, equipments, serials, identity):
    """The same for a pair of rings: `link` has two `cables`, each with equipment and a PHY.

    LINK_CABLE chooses the cable at which LINK_CONTROL and LINK_COMMAND.error work. A test is on for
    the whole port: neither ring carries packets meanwhile.
    """
    shown, cables, previous = identity.link, identity.link_cables, identity.link_previous
    following = Signal()
    return [
        following.eq(~previous),
        *[statement
            for chosen, ends in zip(
                (following, previous), zip(link.cables, equipments, serials))
            for statement in attach_cable(*ends, identity, chosen)],
        *attach_port(link, identity),
        *[getattr(shown, name).eq(Mux(previous, getattr(equipments[1], field), getattr(equipments[0], field)))
            for name, field in [
                ("prbs", "locked"), ("prbs_words", "words"), ("prbs_errors", "wrong")]],
        *[getattr(cables, f"{side}_{name}").eq(getattr(cable, name))
            for side, cable in zip(("next", "previous"), link.cables)
            for name in ("signal", "alive", "whole", "folded")],
        cables.ring0.eq(link.nodes[0].up),
        cables.ring1.eq(link.nodes[1].up),
        cables.folded.eq(link.folded),
    ]

def attach_cable(end, equipment, serial, identity, chosen=1):
    """Connect one cable's equipment with the words of its end, its PHY, and LINK_CONTROL.

    end    : has `serial_tx`, `serial_rx`, `signal`
    chosen : Signal(), or 1: LINK_CONTROL and LINK_COMMAND.error are for this equipment
    """
    control, command = identity.link_control, identity.link_command
    gated = lambda signal: signal if isinstance(chosen, int) else Mux(chosen, signal, 0)
    statements = [
        end.serial_tx.connect(equipment.port_tx),
        equipment.port_rx.connect(end.serial_rx),
        equipment.phy_tx.connect(serial.sink),
        serial.source.connect(equipment.phy_rx),
        end.signal.eq(serial.signal),
        *[getattr(equipment, name).eq(gated(getattr(control, name)))
            for name in ["transmit", "check", "near", "far"]],
        equipment.error.eq(gated(command.error)),
    ]
    if hasattr(serial, "loopback"):
        statements.append(serial.loopback.eq(gated(control.phy)))
    return statements

def attach_second(link, serial, identity):
    """Connect link 1 of a card with two links with its PHY, which it has to itself, and with the
    host registers LINK1_*.

    Its LINK_NONCE is that of link 0: a cable between both links is a loopback.
    """
    return [
        link.serial_tx.connect(serial.sink),
        serial.source.connect(link.serial_rx),
        link.signal.eq(serial.signal),
        *attach_state(link, identity.link1_command, identity.link1, identity.link_nonce),
    ]
