"""Two cards over Ethernet: puts, strides, the bench, lost and late frames, a capture."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import struct
import subprocess
import sys
from collections import Counter

import pytest
from dibber.interface.description import LINK_REASON, LINK_STATE, STATUS, C
from dibber.interface.ethernet import ETHERNET_KIND
from dibber_cli import main, paths, profile
from dibber_cli.bench import session, stride
from dibber_cli.link import status as link_status

from tests.gateware.models.ethernet import decode
from tests.soak import ethernet
from tests.system.pair import SECOND, Pair, Side

PROFILE = "eth10g"
SIZE = 64 * 1024
STRIDES = (1, 2, 64)
ELEMENTS = 4 * stride.ELEMENTS


@pytest.fixture(scope="module", autouse=True)
def built():
    """The simulated card over Ethernet."""
    script = paths.ROOT / "hw" / "sim" / "build.py"
    done = subprocess.run(
        [sys.executable, script, "--profile", PROFILE], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def status(side):
    value = side.card.read_register("LINK_STATUS")
    return value & 15, value >> 9 & 15


def put_all(side, key):
    """Puts of many kinds: contiguous, strided at one end or both, with odd lengths and places."""
    own = side.regions["memory"].key
    walks = [
        ((own, SIZE, 0), (key, SIZE, 0)),
        ((own, 8, 0, ((512, 24),)), (key, 8, 8, ((512, 40),))),
        ((own, 13, 3, ((100, 61),)), (key, 1300, 777)),
        ((own, 4096, 1), (key, 64, 5, ((8, 100), (8, 900)))),
    ]
    return [STATUS.name_of(side.put_strided(*walk)) for walk in walks]


def expected(source):
    """The memory of the target after put_all."""
    memory = bytearray(source)
    for n in range(512):
        memory[8 + 40 * n : 16 + 40 * n] = source[24 * n : 24 * n + 8]
    memory[777 : 777 + 1300] = b"".join(source[3 + 61 * n : 16 + 61 * n] for n in range(100))
    stream = source[1:4097]
    for n in range(64):
        at = 5 + 100 * (n % 8) + 900 * (n // 8)
        memory[at : at + 64] = stream[64 * n : 64 * n + 64]
    return bytes(memory)


def puts(pair, rounds=1):
    """put_all from card 0 to card 1, several times; the bytes are compared."""
    pair.together((Side.register, "memory", SIZE), (Side.register, "target", SIZE))
    key = pair.second(key_of_target)
    pair.first(Side.fill, "memory", 1)
    for _ in range(rounds):
        pair.second(Side.fill, "target", None, 0xEE)
        assert pair.first(put_all, key) == ["OK"] * 4
        sent, got = pair.together((Side.read, "memory"), (Side.read, "target"))
        assert got == expected(sent)


def key_of_target(side):
    return side.regions["target"].key


def test_puts_of_each_kind_arrive_and_the_link_says_that_it_is_up():
    with Pair(PROFILE) as pair:
        puts(pair)
        assert pair.together((status,), (status,)) == [(LINK_STATE.UP, LINK_REASON.NONE)] * 2
        counters = pair.second(Side.info)["counters"]
        assert counters["link_trained"] == 1
        assert counters["code_errors"] == counters["slack_overflow"] == counters["link_lost"] == 0


def test_lost_and_late_frames_cost_time_and_no_byte():
    options = ["--set", "link.frame_loss=0.1", "--set", "link.frame_late=0.1"]
    with Pair(PROFILE, options=options) as pair:
        puts(pair, rounds=3)
        counters = pair.second(Side.info)["counters"]
        assert counters["packet_gap"] + counters["packet_duplicate"] > 0
        assert counters["link_lost"] == 0


def test_bit_errors_drop_frames_and_make_no_wrong_byte():
    with Pair(PROFILE, options=["--ber", "1e-5"]) as pair:
        puts(pair)
        pair.first(Side.fill, "memory", 2)
        assert pair.first(put_packets, pair.second(key_of_target), 200) == {"OK": 200}
        sent, got = pair.together((Side.read, "memory"), (Side.read, "target"))
        assert sent == got
        assert pair.second(Side.info)["counters"]["code_errors"] > 0


def put_packets(side, key, count):
    """Puts of a packet each, 8 under way: how many ended with each status."""
    own, ended, sent = side.regions["memory"].key, Counter(), 0
    while ended.total() < count:
        while sent < min(count, ended.total() + 8):
            place = sent * C.PACKET_PAYLOAD % SIZE
            side.endpoint.put(own, place, key, place, C.PACKET_PAYLOAD, node=1)
            sent += 1
        entries = side.endpoint.poll()
        ended.update(STATUS.name_of(entry.status) for entry in entries)
        assert entries or side.endpoint.wait(SECOND)
    return dict(ended)


def test_a_cable_that_is_pulled_under_a_put_ends_the_link_and_then_the_put():
    with Pair(PROFILE, options=["--fault", "unplugged:900:1300"]) as pair:
        puts(pair)

        pair.first(sleep_until, 890)
        assert pair.first(put_many, pair.second(key_of_target)) == ["OK"] * 8
        assert pair.second(Side.info)["counters"]["link_lost"] >= 1


def sleep_until(side, microseconds):
    left = microseconds * 1000 - side.endpoint.clock().now_ps // 1000
    if left > 0:
        side.endpoint.wait(left)


def put_many(side, key):
    own = side.regions["memory"].key
    return [STATUS.name_of(side.put_strided((own, SIZE, 0), (key, SIZE, 0))) for _ in range(8)]


def test_a_capture_has_the_frames_of_a_put(tmp_path):
    file = tmp_path / "frames.pcap"
    with Pair(PROFILE, options=["--pcap", str(file)]) as pair:
        puts(pair)
    data = file.read_bytes()
    assert struct.unpack("<IHHIIII", data[:24]) == (0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    at, times, frames = 24, [], []
    while at < len(data):
        seconds, nanoseconds, kept, length = struct.unpack("<IIII", data[at : at + 16])
        assert kept == length
        times.append((seconds, nanoseconds))
        frames.append(data[at + 16 : at + 16 + kept])
        at += 16 + kept
    assert at == len(data) and times == sorted(times)
    found = [decode(frame, frame[:6]) for frame in frames]
    assert all(not isinstance(frame, str) for frame in found)
    longest = max(len(frame.words) for frame in found if frame.kind == ETHERNET_KIND.DATA)
    # A packet of 4096 bytes is one frame: header, CRCs and payload without START and END.
    assert 1047 <= longest <= 1060
    assert {frame.source for frame in found} == {b"\x02DIB\0\0", b"\x02DIB\0\1"}
    assert any(frame.kind == ETHERNET_KIND.STATUS for frame in found)
    assert C.ETHERNET_TYPE == 0x88B5


def test_pcap_of_a_serial_link_is_refused(tmp_path):
    program, serial = paths.simulator(profile.load(PROFILE)), profile.load("gen2x4")
    done = subprocess.run(
        [program, "--profile", serial.path, "--socket-dir", tmp_path, "--pcap", tmp_path / "file"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "is serial" in done.stderr


STAR = """
cards = 2
[[switch]]
name  = "hub"
ports = 4
[[cable]]
name = "left"
ends = ["card0", "hub:3"]
[[cable]]
name = "right"
ends = ["card1", "hub:1"]
"""


def test_puts_pass_an_ethernet_switch_that_loses_frames(tmp_path):
    file = tmp_path / "star.toml"
    file.write_text(STAR)
    options = ["--topology", str(file), "--set", "link.frame_loss=0.01"]
    with Pair(PROFILE, options=options) as pair:
        puts(pair, rounds=2)
        assert pair.second(Side.info)["counters"]["link_lost"] == 0


@pytest.mark.parametrize("loss, late", [(0.01, 0.01), (0.05, 0)])
def test_many_small_puts_end_right_when_frames_are_lost_and_overtaken(seed, loss, late):
    """A sample of the campaign of `make soak`."""
    report = ethernet.run(1000, seed, loss, late)
    assert report["failed"] == report["bytes_wrong"] == report["link_lost"] == 0
    assert report["packets_behind_a_gap"] > 0


def frames(side):
    return link_status.read_frames(side.card)


def test_host_registers_count_frames_and_link_status_shows_them():
    options = ["--set", "link.frame_loss=0.1"]
    with Pair(PROFILE, options=options) as pair:
        puts(pair)
        sent, came = pair.together((frames,), (frames,))
        shown = dict(link_status.rows(pair.second(whole_status)))
    assert 0.7 * sent["frames_sent"] < came["frames_received"] < sent["frames_sent"]
    assert came["frames_gap"] > 0 and came["frames_bad"] == came["frames_no_room"] == 0
    assert shown["frames_gap"] >= came["frames_gap"] and "frames_bad" not in shown


def whole_status(side):
    return link_status.read(side.card)


def test_link_commands_say_what_applies_to_ethernet(capsys):
    words = ["--profile", PROFILE, "--json"]
    assert main.main(["link", "test", "--megabytes", "1", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pass"] and "bit_errors" not in found and "metres" not in found
    assert found["verdict"].startswith("Good: ") and "over Ethernet" in found["verdict"]
    assert main.main(["link", "prbs", "--profile", PROFILE]) != 0
    assert "has no bit sequences" in capsys.readouterr().err


def test_bench_stride_reaches_its_bound(request, figure, litepcie_rate):
    """Contiguous and strided puts, in shares of the bound. They are long, because what a put takes
    before its first and after its last frame is no matter of the rate.
    """
    chosen = profile.load(PROFILE)
    points = stride.points(stride.OURS, STRIDES, ELEMENTS)
    report = session.run(stride, chosen, request.config.getoption("--seed"), "test", points)
    assert report["bytes_wrong"] == 0
    shares = {
        (p["series"], p["x"]): 100 * p["value"] / p["bound"] for p in report["points"] if p["bound"]
    }
    for key, share in sorted(shares.items()):
        print(*key, f"{share:.1f} %")
    worst = min(share for (series, _), share in shares.items() if series in stride.OURS)
    assert figure("ethernet-stride-of-bound", round(worst, 1), "%", at_least=95, profile=PROFILE)
