"""Frames of a link over Ethernet. `description.py` makes them part of the whole."""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.schema import Member, enum, struct

ETHERNET_CONSTANTS = (
    ("ETHERNET_TYPE",        0x88b5,
        "EtherType of the card's frames: local experimental EtherType 1 (IEEE 802, 9.2.3)"),
    ("ETHERNET_TAG",         0x8100, "EtherType of a VLAN tag (IEEE 802.1Q, 9.4)"),
    ("ETHERNET_UNIT_BYTES",  8,      "bytes of a unit: payload, positions and credits count units"),
    ("ETHERNET_CREDIT_MAX",  4096,
        "units that a credit may be ahead of the words sent; a larger credit is not believed"),
)

ETHERNET_KIND = enum("ethernet_kind", 3, "what a frame of the card is: bits 7:5 of `control`",
    ("DATA",   "a packet, or a fragment of one, of one channel"),
    ("STATUS", "an ethernet_status: hello, keep-alive and credits of all channels"),
)

ETHERNET_CONTROL = enum("ethernet_control", 8, "bits of ethernet_header.control above the channel",
    ("FIRST", 4,  "the packet starts with this frame"),
    ("LAST",  8,  "the packet ends with this frame"),
    ("BAD",   16, "with LAST: the packet must be dropped"),
)

ETHERNET_LENGTH = enum("ethernet_length", 16, "bits of ethernet_header.length",
    ("UNITS",  0x0fff, "units of payload"),
    ("HALF",   0x1000, "of the last unit only the first four bytes are the packet's"),
    ("CREDIT", 0xc000, "the channel of `credit`"),
)

ETHERNET_STATE = enum("ethernet_state", 8, "bits of ethernet_status.state",
    ("HEARD", 1, "`heard` and the header's `session` are those of the receiver of this frame"),
    ("PING",  2, "`ping` asks for a PONG"),
    ("PONG",  4, "`pong` is the number of the last PING"),
    ("BEGUN", 8, "the sender is UP with the receiver of this frame"),
    ("NUMBER", 0xf0, "of a port with several peers: node number of the sender, modulo 16"),
)

ETHERNET_COUNTER = enum("ethernet_counter", 4, "counters of a port's frames",
    ("FRAMES_SENT",     "frames sent"),
    ("FRAMES_RECEIVED", "DATA and STATUS frames of the peer that were accepted"),
    ("FRAMES_FOREIGN",  "frames dropped: not of this EtherType, or not for this address"),
    ("FRAMES_STRANGER",
        "frames dropped: from another address, for another session, or DATA before the port is UP"),
    ("FRAMES_BAD",      "frames dropped: wrong FCS, too short, or a header that is no header"),
    ("FRAMES_GAP",      "frames accepted behind a gap: what lay between is lost"),
    ("FRAMES_LATE",     "frames dropped: a later one of the channel came before, or it came twice"),
    ("FRAMES_NO_ROOM",
        "frames dropped: the channel's buffer was full; and, of a port with several peers, packets "
        "whose peer gave no credit for 8 ms"),
)

ETHERNET_HEADER = struct("ethernet_header", 8,
    "follows the EtherType of a frame over Ethernet. The payload follows it, in units of 8 bytes",
    Member("control",  "u8",  "channel in bits 1:0, enum ethernet_control in 4:2, enum "
                              "ethernet_kind in 7:5"),
    Member("session",  "u8",  "of the receiver, from its last STATUS frame; 0 if none came"),
    Member("length",   "u16", "enum ethernet_length"),
    Member("position", "u16",
        "number of a unit among those of the channel in this session. DATA: of its first unit. "
        "STATUS: of the channel's next unit; units before it that did not come are lost"),
    Member("credit",   "u16",
        "DATA: units of the credit's channel that may be sent, counted from the start of the "
        "session"),
)

ETHERNET_STATUS = struct("ethernet_status", 16, "payload of a STATUS frame",
    Member("nonce",   "u16", "of the sender: LINK_NONCE"),
    Member("session", "u8",  "of the sender; another one after each time that it left UP"),
    Member("state",   "u8",  "enum ethernet_state"),
    Member("heard",   "u16", "with HEARD: nonce of the receiver of this frame"),
    Member("ping",    "u8",  "number of a ping"),
    Member("pong",    "u8",  "number of the ping that is answered"),
    Member("credit",  "u16", "as in the header, for each channel", count=4),
)

ETHERNET_ENUMS   = (ETHERNET_KIND, ETHERNET_CONTROL, ETHERNET_LENGTH, ETHERNET_STATE,
                    ETHERNET_COUNTER)
ETHERNET_STRUCTS = (ETHERNET_HEADER, ETHERNET_STATUS)
