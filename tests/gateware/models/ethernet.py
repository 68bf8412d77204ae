"""Golden model of frames over Ethernet: docs/design/ethernet.md, in plain Python.

A frame is its bytes from the destination address on, without FCS. Words are integers, byte 0 of the
wire in bits 7:0.
"""

# SPDX-License-Identifier: BSD-2-Clause

import struct
from dataclasses import dataclass, field

from dibber.interface.description import C
from dibber.interface.ethernet import (
    ETHERNET_CONTROL,
    ETHERNET_HEADER,
    ETHERNET_KIND,
    ETHERNET_LENGTH,
    ETHERNET_STATE,
    ETHERNET_STATUS,
)

BROADCAST = b"\xff" * 6
MINIMUM = 60  # bytes without FCS; a MAC pads shorter frames (IEEE 802.3, 4.2.3.3)

# Bytes --------------------------------------------------------------------------------------------


def _format(layout):
    kinds = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
    return "<" + "".join(kinds[m.kind] * m.count for m in layout.members)


def pack(layout, **values):
    """A structure of the description as bytes; members that are not named are 0."""
    flat = []
    for member in layout.members:
        value = values.pop(member.name, 0 if member.count == 1 else (0,) * member.count)
        flat += [value] if member.count == 1 else list(value)
    assert not values, values
    return struct.pack(_format(layout), *flat)


def unpack(layout, data):
    values = iter(struct.unpack(_format(layout), data[: layout.size]))
    return {
        m.name: next(values) if m.count == 1 else tuple(next(values) for _ in range(m.count))
        for m in layout.members
    }


# Frames -------------------------------------------------------------------------------------------


@dataclass
class Frame:
    """A frame of ours, each field by its name; `words` of DATA, `status` of STATUS."""

    destination: bytes = BROADCAST
    source: bytes = b"\x02" + bytes(5)
    vlan: int = None
    kind: int = ETHERNET_KIND.DATA
    channel: int = 0
    session: int = 0
    position: int = 0
    starts: bool = False
    ends: bool = False
    bad: bool = False
    credit: tuple = (0, 0)  # channel, position
    words: list = field(default_factory=list)
    status: dict = field(default_factory=dict)  # members of ethernet_status
    short: bool = False  # it ends before its payload does

    @property
    def units(self):
        return (
            (len(self.words) + 1) // 2
            if self.kind == ETHERNET_KIND.DATA
            else ETHERNET_STATUS.size // C.ETHERNET_UNIT_BYTES
        )

    def head(self):
        """The bytes before the header."""
        tag = b"" if self.vlan is None else struct.pack(">HH", C.ETHERNET_TAG, self.vlan)
        return self.destination + self.source + tag + struct.pack(">H", C.ETHERNET_TYPE)

    def encode(self):
        payload = b"".join(struct.pack("<I", word) for word in self.words)
        payload += bytes(-len(payload) % C.ETHERNET_UNIT_BYTES)
        if self.kind == ETHERNET_KIND.STATUS:
            payload = pack(ETHERNET_STATUS, **self.status)
        control = self.channel | self.kind << 5
        for name in ("starts", "ends", "bad"):
            bit = {"starts": "FIRST", "ends": "LAST", "bad": "BAD"}[name]
            control |= getattr(ETHERNET_CONTROL, bit) if getattr(self, name) else 0
        half = ETHERNET_LENGTH.HALF if len(self.words) % 2 else 0
        header = pack(
            ETHERNET_HEADER,
            control=control,
            session=self.session,
            length=self.units | half | self.credit[0] << 14,
            position=self.position,
            credit=self.credit[1],
        )
        return self.head() + header + payload


def decode(data, mac, vlan=None, error=False):
    """The Frame of these bytes, or why it is dropped: "foreign" or "bad"."""
    lead = Frame(mac, data[6:12], vlan).head()
    size = len(lead)
    type_at = 12
    # A frame that ends with the word before the header's is not looked at.
    words = 2 if vlan is None else 3
    if len(data) <= 8 * words or data[:6] not in (mac, BROADCAST):
        return "foreign"
    if vlan is not None:
        tag = struct.unpack(">H", data[14:16])[0] & 0xFFF
        if data[12:14] != lead[12:14] or tag != vlan:
            return "foreign"
        type_at = 16
    if data[type_at : type_at + 2] != lead[-2:]:
        return "foreign"
    if error or len(data) <= size + ETHERNET_HEADER.size:
        return "bad"
    header = unpack(ETHERNET_HEADER, data[size:])
    rest = data[size + ETHERNET_HEADER.size :]
    control, length = header["control"], header["length"]
    units = length & ETHERNET_LENGTH.UNITS
    frame = Frame(
        data[:6],
        data[6:12],
        vlan,
        control >> 5,
        control & 3,
        header["session"],
        header["position"],
        *[bool(control & bit) for bit in (4, 8, 16)],
        (length >> 14, header["credit"]),
    )
    half = bool(length & ETHERNET_LENGTH.HALF)
    if frame.kind == ETHERNET_KIND.DATA:
        if not units or (half or frame.bad) and not frame.ends:
            return "bad"
    elif frame.kind != ETHERNET_KIND.STATUS or units != 2:
        return "bad"
    if len(rest) < units * C.ETHERNET_UNIT_BYTES:
        frame.short = True
    elif frame.kind == ETHERNET_KIND.STATUS:
        frame.status = unpack(ETHERNET_STATUS, rest)
    else:
        frame.words = list(struct.unpack(f"<{2 * units}I", rest[: 8 * units]))[: 2 * units - half]
    return frame


def status_frame(source, nonce, session, heard=None, credits=(0,) * 4, **fields):
    """A STATUS frame; `heard` is (nonce, session, address) of the port that it is for."""
    known = heard or (0, 0, BROADCAST)
    return Frame(
        known[2],
        source,
        kind=ETHERNET_KIND.STATUS,
        session=known[1],
        status=dict(
            nonce=nonce,
            session=session,
            state=ETHERNET_STATE.HEARD if heard else 0,
            heard=known[0],
            credit=credits,
        ),
        **fields,
    )


# Sending ------------------------------------------------------------------------------------------


def fragments(packets, channel, limit, position=0, **fields):
    """DATA frames of the packets [(words, bad)] of a channel, with up to `limit` units each."""
    frames = []
    for words, bad in packets:
        for at in range(0, len(words), 2 * limit):
            part = words[at : at + 2 * limit]
            ends = at + 2 * limit >= len(words)
            frame = Frame(
                channel=channel,
                position=position % 65536,
                starts=at == 0,
                ends=ends,
                bad=bool(bad and ends),
                words=part,
                **fields,
            )
            position += frame.units
            frames.append(frame)
    return frames


# Receiving ----------------------------------------------------------------------------------------


class Receiver:
    """What comes out of the DATA frames of one session.

    `packets` is a list for each channel of (words, good). A packet that was cut off comes out as
    bad when the next one of the channel begins, or by `down`.

    whole : of a packet that was cut off, nothing comes out. A frame that ends a begun packet does
            so even if it proves bad
    """

    def __init__(self, mac, peer, session, channels=4, vlan=None, whole=False):
        self.mac, self.peer, self.session, self.vlan = mac, peer, session, vlan
        self.whole = whole
        self.packets = [[] for _ in range(channels)]
        self.begun = [None] * channels  # words of a packet that may go on
        self.cut = [None] * channels  # words of a packet that has no end
        self.expected = [0] * channels
        self.counts = dict.fromkeys(("foreign", "bad", "stranger", "gap", "late", "taken"), 0)

    def take(self, data, error=False):
        if self.whole:
            self._forget(decode(data, self.mac, self.vlan))
        frame = decode(data, self.mac, self.vlan, error)
        if isinstance(frame, str):
            self.counts[frame] += 1
        elif frame.kind == ETHERNET_KIND.DATA:
            if (frame.source, frame.session) != (self.peer, self.session):
                self.counts["stranger"] += 1
            elif frame.short:
                self.counts["bad"] += 1
            else:
                self._data(frame)
        elif frame.short:
            self.counts["bad"] += 1
        elif frame.source != self.peer:
            self.counts["stranger"] += 1
        elif frame.session == self.session and frame.status["state"] & ETHERNET_STATE.HEARD:
            self._told(frame)

    def is_ours(self, frame):
        """It is DATA of this session."""
        return (
            isinstance(frame, Frame)
            and frame.kind == ETHERNET_KIND.DATA
            and (frame.source, frame.session) == (self.peer, self.session)
        )

    def ahead(self, frame):
        return (frame.position - self.expected[frame.channel]) % 65536

    def _forget(self, frame):
        """Such a frame has begun: a packet that it does not continue is forgotten."""
        if self.is_ours(frame) and self.ahead(frame) < 32768:
            if frame.starts or self.ahead(frame):
                self.begun[frame.channel] = None

    def _data(self, frame):
        n = frame.channel
        ahead = self.ahead(frame)
        if ahead >= 32768:
            self.counts["late"] += 1
            return
        self.counts["taken"] += 1
        self.counts["gap"] += ahead != 0
        self.expected[n] = (frame.position + frame.units) % 65536
        if frame.starts or ahead:
            if self.begun[n] is not None:
                self.cut[n], self.begun[n] = self.begun[n], None
        if frame.starts:
            self._end(n)
            self.begun[n] = []
        if self.begun[n] is not None:
            self.begun[n] += frame.words
            if frame.ends:
                self.packets[n].append((self.begun[n], not frame.bad))
                self.begun[n] = None

    def _told(self, frame):
        """STATUS tells where its channel goes on: what did not come until there is lost."""
        n, ahead = frame.channel, self.ahead(frame)
        if 0 < ahead < 32768:
            self.counts["gap"] += 1
            self.expected[n] = frame.position
            if self.begun[n] is not None:
                self.cut[n], self.begun[n] = self.begun[n], None

    def _end(self, channel):
        """The packet that was cut off comes out."""
        if self.cut[channel] is not None:
            self.packets[channel].append((self.cut[channel], False))
            self.cut[channel] = None

    def down(self):
        """The port leaves UP."""
        for n, words in enumerate(self.begun):
            if words is not None:
                self.cut[n], self.begun[n] = words, None
            self._end(n)
