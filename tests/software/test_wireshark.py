"""Wireshark's dissector shows what frames over Ethernet carry."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
from random import Random

import pytest
from dibber.interface.description import CHANNEL, PACKET

from tests.gateware.models import packet
from tests.gateware.models.ethernet import Frame, fragments, status_frame

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARDS = b"\x02DIB\0\0", b"\x02DIB\0\1"


# Since 4.4, Wireshark loads no script for root.
NOBODY = 65534
USER = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.fixture(scope="module")
def dissect():
    """Rows of fields that tshark shows of frames."""
    with tempfile.TemporaryDirectory(prefix="dibber-wireshark-") as folder:
        os.chmod(folder, 0o755)
        yield dissector(pathlib.Path(folder))


def dissector(folder):
    generate = ROOT / "software" / "wireshark" / "generate.py"
    subprocess.run([sys.executable, generate, folder], check=True)

    def run(frames, *fields):
        capture = folder / "frames.pcap"
        # As hw/sim/cable/pcap.cc writes it.
        data = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        for n, frame in enumerate(frames):
            data += struct.pack("<IIII", 0, n, len(frame), len(frame)) + frame
        capture.write_bytes(data)
        shown = subprocess.run(
            ["tshark", "-r", capture, "-X", f"lua_script:{folder / 'dibber.lua'}"]
            + ["-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
            + [word for field in fields for word in ("-e", field)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "HOME": str(folder)},
            **USER,
        )
        return [line.split("|") for line in shown.stdout.splitlines()]

    return run


def test_headers_of_data_frames_are_shown_by_their_names(seed, dissect):
    random = Random(seed)
    frames = []
    for channel in range(4):
        packets = [
            (
                [random.getrandbits(32) for _ in range(random.randrange(1, 60))],
                random.random() < 0.5,
            )
            for _ in range(5)
        ]
        frames += fragments(
            packets,
            channel,
            8,
            random.getrandbits(16),
            destination=CARDS[1],
            source=CARDS[0],
            session=random.getrandbits(8),
            credit=(random.randrange(4), random.getrandbits(16)),
        )
    names = "channel first last bad units half frame.position credit_channel frame.credit"
    rows = dissect(
        [frame.encode() for frame in frames], *[f"dibber.{name}" for name in names.split()]
    )
    number = lambda text: int(text) if text.isdigit() else {"True": 1, "False": 0}[text]
    assert [[number(value) for value in row] for row in rows] == [
        [
            frame.channel,
            frame.starts,
            frame.ends,
            frame.bad,
            frame.units,
            len(frame.words) % 2,
            frame.position,
            *frame.credit,
        ]
        for frame in frames
    ]


def test_a_status_frame_shows_who_is_heard_and_all_credits(dissect):
    frame = status_frame(CARDS[0], 0x1234, 7, (0x5678, 9, CARDS[1]), credits=(1, 22, 333, 4444))
    names = "kind frame.session status.nonce status.session status.heard heard"
    names += " status.credit0 status.credit1 status.credit2 status.credit3"
    row = dissect([frame.encode()], "_ws.col.Protocol", *[f"dibber.{n}" for n in names.split()])[0]
    assert row[0] == "Dibber"
    assert row[1:6] == ["1", "9", str(0x1234), "7", str(0x5678)]
    assert row[6] in ("1", "True") and row[7:] == ["1", "22", "333", "4444"]


def test_the_header_of_a_put_is_shown_in_its_first_frame_also_with_a_tag(dissect):
    put = packet.Packet(target=5, source=3, psn=77, key=0xABCD, payload=bytes(8))
    words = packet.encode(put)
    common = dict(destination=CARDS[1], source=CARDS[0])
    frames = fragments([(words, False)], CHANNEL.EXPRESS, 4, **common)
    frames += fragments([(words, False)], CHANNEL.EXPRESS, 100, vlan=12, **common)
    names = ("kind", "source", "target", "psn", "key")
    rows = dissect(
        [frame.encode() for frame in frames], *[f"dibber.packet.{n}" for n in names], "_ws.col.Info"
    )
    header = [str(PACKET.DEPOSIT), "3", "5", "77", str(0xABCD)]
    assert rows[0][:5] == rows[-1][:5] == header
    assert all(row[:5] == [""] * 5 for row in rows[1:-1]) and len(rows) > 2
    assert rows[0][5] == "DATA EXPRESS at 0, 4 units: DEPOSIT psn 77, node 3 to 5"


def test_frames_of_others_and_short_ones_are_left_alone(dissect):
    frames = [
        Frame(destination=CARDS[1], source=CARDS[0], words=[1]).encode()[:18],
        CARDS[1] + CARDS[0] + b"\x08\x06" + bytes(46),
    ]
    assert all(row != ["Dibber"] for row in dissect(frames, "_ws.col.Protocol"))
