"""Dibber's gateware.

The folders are layers. A file imports only from its own folder and from folders that stand before
it in LAYERS; tests/gateware/test_rooms.py checks this.
"""

# SPDX-License-Identifier: BSD-2-Clause

LAYERS = (
    "interface",  # the description that hardware, firmware and host software share
    "layouts",    # types of the streams between layers
    "common",     # blocks and helpers of no layer: CRC, FIFOs, arbiter, shared memory
    "debug",      # the debugger's way to the control program
    "link",       # words on the cable: training, flow control, slack buffer
    "packet",     # packets: headers, sequence numbers, acknowledgements
    "fabric",     # between cards: the switch
    "host",       # PCIe: TLPs, BAR 0, queue entries, interrupts
    "deposit",    # host memory: regions, page tables, gather and scatter engines
    "endpoint",   # command slots, doorbells, queues, arrivals
    "fastpath",   # commands and requests that hardware completes
    "window",     # the remote window: stores and loads that become commands of an endpoint
    "mcp",        # the control program's processor and registers
    "bridge",     # a host made of gateware, for boards without PCIe
    "phy",        # vendors' transceivers and pins
    "core",       # the whole card
)
