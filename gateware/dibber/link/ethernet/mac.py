"""Wiring of a port over Ethernet to its MAC."""

# SPDX-License-Identifier: BSD-2-Clause

def attach_mac(link, mac):
    """Connect a port to the frame streams of a MAC.

    There is no test equipment, because bits on the wire are the MAC's matter.

    Parameters
    ----------
    link : EthernetPort, or a sibling. With `paused` (Signal(8)), it begins no frame of a priority
           whose bit is 1: `mac` has such an output, too, if it reads frames of priority-based flow
           control
    mac  : `sink` and `source` (frame_layout), `signal`, 1 while the MAC can send and receive, and
           `address` (Signal(48)), the station's address, byte 0 of the wire in bits 7:0

    Returns a list of statements.
    """
    return [
        link.frame_tx.connect(mac.sink),
        mac.source.connect(link.frame_rx),
        link.signal.eq(mac.signal),
        link.mac.eq(mac.address),
        *([link.paused.eq(mac.paused)] if hasattr(link, "paused") else []),
    ]
