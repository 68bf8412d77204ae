"""Wiring of a port over Ethernet to its MAC and to the host registers LINK_*."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

def attach_mac(link, mac, identity):
    """Connect a port to the frame streams of a MAC, and both to the host registers LINK_*.

    There is no test equipment, because bits on the wire are the MAC's matter. While LINK_CONTROL
    asks for a test, the port is in TEST. LINK_PRBS_* stay 0.

    Parameters
    ----------
    link     : EthernetPort
    mac      : `sink` and `source` (frame_layout), `signal`, 1 while the MAC can send and receive,
               and `address` (Signal(48)), the station's address, byte 0 of the wire in bits 7:0
    identity : HostRegisters

    Returns a list of statements.
    """
    command, shown = identity.link_command, identity.link
    return [
        link.frame_tx.connect(mac.sink),
        mac.source.connect(link.frame_rx),
        link.signal.eq(mac.signal),
        link.mac.eq(mac.address),

        link.test.eq(identity.link_test),
        link.retrain.eq(command.retrain),
        link.ping.eq(command.ping),
        link.nonce.eq(identity.link_nonce),
        *[getattr(shown, name).eq(getattr(link, name))
            for name in [
                "state", "reason", "signal", "stopped", "peer", "peer_known", "round_trip"]],
        shown.slack_high.eq(Cat(*link.slack_high)),
    ]
