"""LitePCIe's DMA, as released, reaches on the host model what TLP arithmetic says: trust in the
model.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import subprocess
import tomllib

import pytest

from tests.system import tlp_checker
from tests.system.reference import arithmetic

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROFILE = "gen2x1"  # 64 bits, the width at which LitePCIe's DMA is exact
BYTES = 256 * 1024
TOLERANCE = 0.05


def measure(program, seed, direction, trace=None, **pcie):
    """(result of the run, profile with the changes)"""
    path = ROOT / "hw" / "sim" / "profiles" / f"{PROFILE}.toml"
    profile = tomllib.loads(path.read_text())
    profile["pcie"].update(pcie)
    command = [
        program,
        path,
        direction,
        str(BYTES),
        f"seed={seed}",
        *(f"pcie.{key}={json.dumps(value)}" for key, value in pcie.items()),
    ]
    if trace:
        command.append(f"trace={trace}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    card = result["cards"][0]
    assert result["finished"], done.stdout
    assert (
        card["faults"] == {} and card["stream_errors"] == 0 and card["byte_enable_errors"] == 0
    ), done.stderr
    assert result["words_wrong"] == 0
    return result, profile


def check(figure, name, result, expected):
    """The rate within the tolerance of what was expected, and recorded as a share of it."""
    share = result["bytes_per_second"] / expected
    figure(
        name,
        round(result["bytes_per_second"] / 1e6, 1),
        "MB/s",
        at_least=round(expected / 1e6 * (1 - TOLERANCE), 1),
        at_most=round(expected / 1e6 * (1 + TOLERANCE), 1),
        profile=PROFILE,
    )
    assert abs(share - 1) <= TOLERANCE, (
        f"{result['bytes_per_second'] / 1e6:.1f} MB/s, expected {expected / 1e6:.1f}"
    )


@pytest.mark.parametrize("payload", [128, 256])
def test_writer(litepcie_rate, seed, figure, tmp_path, payload):
    result, profile = measure(litepcie_rate, seed, "write", tmp_path / "trace", max_payload=payload)
    check(figure, f"litepcie-writer-mps-{payload}", result, arithmetic.writer(profile))
    checker = tlp_checker.check(tmp_path / "trace", max_payload=payload)[0]
    assert checker.errors == []
    assert checker.counts["from card", "MEM_WRITE"] == BYTES // payload


@pytest.mark.parametrize("payload", [128, 256])
@pytest.mark.parametrize("split", ["boundary", "maximum"])
def test_reader(litepcie_rate, seed, figure, tmp_path, payload, split):
    result, profile = measure(
        litepcie_rate, seed, "read", tmp_path / "trace", max_payload=payload, completion_split=split
    )
    check(figure, f"litepcie-reader-mps-{payload}-{split}", result, arithmetic.reader(profile))
    checker = tlp_checker.check(tmp_path / "trace", max_payload=payload)[0]
    assert checker.errors == []
    assert checker.most_in_flight == arithmetic.TAGS


def test_reader_limited_by_its_tags(litepcie_rate, seed, figure):
    """With a latency far beyond what 8 tags cover, the tags limit the rate, not the wire."""
    result, profile = measure(litepcie_rate, seed, "read", read_latency_ns=20000.0)
    assert arithmetic.reader(profile) == arithmetic.by_tags(profile)
    check(figure, "litepcie-reader-by-tags", result, arithmetic.by_tags(profile))


@pytest.mark.parametrize("lanes", [2, 4])
def test_stream_limits_the_writer(litepcie_rate, seed, figure, lanes):
    """With two lanes the wire limits, with four the stream of 64 bits at 125 MHz."""
    result, profile = measure(litepcie_rate, seed, "write", lanes=lanes)
    check(figure, f"litepcie-writer-x{lanes}", result, arithmetic.writer(profile))


@pytest.mark.parametrize("split", ["boundary", "maximum"])
def test_stream_limits_the_reader(litepcie_rate, seed, figure, split):
    """The same for completions; LitePCIe loses two cycles for each."""
    result, profile = measure(litepcie_rate, seed, "read", lanes=4, completion_split=split)
    assert arithmetic.reader(profile) < arithmetic.wire(
        profile["pcie"], arithmetic.completion(profile["pcie"])
    )
    check(figure, f"litepcie-reader-x4-{split}", result, arithmetic.reader(profile))
