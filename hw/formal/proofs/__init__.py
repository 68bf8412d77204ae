"""The proofs, one file for each block. docs/proofs.md explains each of them."""

# SPDX-License-Identifier: BSD-2-Clause

from importlib import import_module

FILES = (
    "slack",
    "flow_state",
    "interleave",
    "two_links",
    "bonding",
    "deposits",
    "flows",
    "tags",
    "completions",
    "walker_skip",
    "walker_place",
    "walker_listed",
    "walker_order",
    "walker_runs",
    "walker_pieces",
    "pages",
    "contexts",
    "fast_commands",
    "turns",
    "crossbar",
    "switch_buffer",
    "ethernet",
    "pairs",
    "dma_writes",
    "ring",
    "ring_pair",
    "window",
    "teller",
    "link_turns",
    "hold_off",
    "lines",
)

def properties():
    """[(file, Property)] of all of them."""
    return [(name, p) for name in FILES for p in import_module(f"proofs.{name}").PROPERTIES]
