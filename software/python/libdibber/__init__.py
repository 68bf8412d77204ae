"""Python access to libdibber: cards, endpoints, regions and puts, with NumPy arrays as walks.

    card     = libdibber.Card("sim:run/card0.sock")
    card.load_firmware("build/firmware/mcp.dibfw")
    endpoint = card.endpoint(1)
    matrix   = libdibber.alloc(64*32*8).view("f8").reshape(64, 32)
    region   = endpoint.register(matrix)
    column   = matrix[:, 3]
    endpoint.put_array(key, column, node=1)                                        # to 64 in a row
    endpoint.put_array(Walk(key, block=8, levels=((64, 256),)), column, node=1)    # to a column
    endpoint.put_array(key, endpoint.indexed(matrix, [7, 3, 20]), node=1)          # three rows
    endpoint.wait(); endpoint.poll()

Rights, flags and statuses are the enumerations `Right`, `Flag` and `Status`: `Right.LOCAL_READ |
Right.REMOTE_WRITE`, `Status(completion.status)`.

Every error of the library is a `DibberError` with its code and reason. Arguments are checked before
anything is sent: `TypeError` for a wrong type, `ValueError` for a value outside its range, for
memory that is not contiguous, and for read-only memory that the call would write. Memory
that a card can reach lives until it is unregistered or the card is closed. The rules on threads,
ordering and ownership are those of dibber/dibber.h; the calls here add nothing to a transfer's cost
in simulated time.
"""

# SPDX-License-Identifier: BSD-2-Clause

from libdibber.binding import DibberError, library_path, version
from libdibber.card import Card, circle_of, routes_to
from libdibber.endpoint import Endpoint
from libdibber.enums import Flag, Opcode, Right, Status
from libdibber.exchange import Exchange, ExchangeError
from libdibber.mailbox import Mailbox, PeerError
from libdibber.memory import Indexed, PagedRegion, Region, alloc
from libdibber.walk import List, Walk
from libdibber.window import Window

__all__ = [
    "Card",
    "DibberError",
    "Endpoint",
    "Exchange",
    "ExchangeError",
    "Flag",
    "Indexed",
    "List",
    "Mailbox",
    "Opcode",
    "PagedRegion",
    "PeerError",
    "Region",
    "Right",
    "Status",
    "Walk",
    "Window",
    "alloc",
    "library_path",
    "circle_of",
    "routes_to",
    "version",
]
