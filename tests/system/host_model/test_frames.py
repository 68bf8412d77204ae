"""The cable that carries frames, and the Ethernet switch, by themselves."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess

import pytest

PROFILE = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles" / "eth10g.toml"
OVERHEAD = 8 + 4 + 12  # preamble, FCS, gap
DELAY = (60 + 3 * 5 + 80) / 6.4  # cycles


@pytest.fixture
def bench(programs):
    def run(*arguments, status=0):
        done = subprocess.run(
            [programs / "frames-bench", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout) if status == 0 else done.stderr

    return run


@pytest.fixture
def carry(bench):
    return lambda size, cycles, *more: bench("carry", PROFILE, cycles, 1, size, *more)


@pytest.mark.parametrize("size", [14, 60, 61, 64, 1514, 9014])
def test_frames_come_whole_in_order_and_at_the_rate_of_the_line(carry, size):
    found = carry(size, 60000)
    assert found["came"] == list(range(len(found["came"])))
    # At the end some are on their way.
    assert found["errors"] == 0 and 0 <= found["sent"] - len(found["came"]) <= 3
    wire = max(size, 60) + OVERHEAD
    assert (60000 - DELAY) * 8 / wire == pytest.approx(len(found["came"]), abs=1.5)
    # Preamble and the first word pass before the word comes.
    assert found["began"][0] == pytest.approx(DELAY + 16 / 8, abs=2)
    assert 0 <= found["captured"] - len(found["came"]) <= 3


def test_lost_and_overtaken_frames_are_the_share_that_was_asked_for(carry):
    lost = carry(100, 200000, "link.frame_loss=0.05")
    assert sorted(lost["came"]) == lost["came"] and lost["errors"] == 0
    assert 1 - len(lost["came"]) / lost["sent"] == pytest.approx(0.05, abs=0.01)
    late = carry(100, 200000, "link.frame_late=0.05")
    came = late["came"]
    assert late["errors"] == 0 and len(set(came)) == len(came) >= late["sent"] - 3
    overtaken = sum(number > following for number, following in zip(came, came[1:]))
    assert overtaken / late["sent"] == pytest.approx(0.05, abs=0.01)


def test_a_frame_with_a_bit_error_comes_with_an_error(carry):
    found = carry(1000, 200000, "link.bit_error_rate=1e-5")
    whole = len(found["came"]) / (found["errors"] + len(found["came"]))
    assert whole == pytest.approx((1 - 1e-5) ** 8000, abs=0.05)


def test_a_pulled_cable_carries_nothing_and_no_signal(carry):
    found = carry(100, 100000, "fault=unplugged:100:300")
    assert found["dark"] == pytest.approx(200 / 6.4e-3 + DELAY, abs=40)
    assert len(found["came"]) == pytest.approx(found["sent"] * (1 - 200 / 640), rel=0.02)


def test_noise_makes_each_frame_wrong(carry):
    found = carry(100, 100000, "fault=noise:100:300")
    assert found["errors"] == pytest.approx(found["sent"] * 200 / 640, rel=0.02)
    assert len(found["came"]) + found["errors"] >= found["sent"] - 3


def test_faults_of_symbols_are_refused(bench):
    error = bench("carry", PROFILE, 10, 1, 100, "fault=stop:1:2", status=1)
    assert "its faults are unplugged, noise and loopback" in error


def test_a_switch_forwards_to_the_port_that_has_the_address(bench):
    found = bench("switch", 4, 1 << 20, 500, 20, 1)
    assert found["came"] == [0, 20, 0, 0] and found["dropped"] == 0
    # The first frame's target was not known yet: it went to all ports but its own.
    assert found["elsewhere"] == [0, 1, 1, 1] and found["whole"] and found["ordered"]


def test_a_switch_whose_queue_is_full_drops_whole_frames_at_its_tail(bench):
    found = bench("switch", 4, 9300, 1000, 50, 3)
    assert found["whole"] and found["ordered"]
    assert sum(found["came"]) + found["dropped"] == 150 and found["dropped"] > 50
    # None is dropped if there is room for all.
    assert bench("switch", 4, 1 << 20, 1000, 50, 3)["dropped"] == 0
