"""The two parameters of a whole build: its nodes, and the endpoints of a card.

Gateware, control program, library and driver have to agree on them. INTERFACE_HASH, which covers
both numbers, tells if they do not.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib

# Nodes --------------------------------------------------------------------------------------------

NODES_CHOICES = (16, 64)

def nodes_of(text):
    """NODES as the environment variable DIBBER_NODES has it; ValueError for anything else."""
    if text not in map(str, NODES_CHOICES):
        raise ValueError(
            f"DIBBER_NODES={text!r}: a build is for {' or '.join(map(str, NODES_CHOICES))} nodes")
    return int(text)

NODES       = nodes_of(os.environ.get("DIBBER_NODES", "16"))
MORE_NODES  = NODES > 16
NODE_BITS   = (NODES - 1).bit_length()
FLOW_WORDS  = 2*NODES//32  # words of a register with a bit for each flow

# Endpoints ----------------------------------------------------------------------------------------

ENDPOINTS_CHOICES = (8, 16)

def endpoints_of(text, nodes):
    """ENDPOINTS as the environment variable DIBBER_ENDPOINTS has it; ValueError for anything else.
    """
    if text not in map(str, ENDPOINTS_CHOICES):
        raise ValueError(
            f"DIBBER_ENDPOINTS={text!r}: a card has {' or '.join(map(str, ENDPOINTS_CHOICES))}")
    if int(text) > 8 and nodes > 16:
        raise ValueError(
            f"DIBBER_ENDPOINTS={text} and DIBBER_NODES={nodes}: EVENTS has no bits for both")
    return int(text)

# A card may have fewer, see GEOMETRY in description.py.
ENDPOINTS      = endpoints_of(os.environ.get("DIBBER_ENDPOINTS", "8"), NODES)
MORE_ENDPOINTS = ENDPOINTS > 8
ENDPOINT_BITS  = (ENDPOINTS - 1).bit_length()

# Folder -------------------------------------------------------------------------------------------

# Below build/: a build with other sizes than the usual ones has a folder of its own. tools/place.mk
# says the same to make.
PLACE = pathlib.Path(
    "" if NODES == 16 else f"nodes-{NODES}",
    "" if ENDPOINTS == 8 else f"endpoints-{ENDPOINTS}")
