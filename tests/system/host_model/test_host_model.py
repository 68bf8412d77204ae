"""The host model allows a card what the arithmetic of its profile says, and no more.

The card is a bare TLP generator without limits of its own.
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import tomllib

import pytest

PROFILES = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles"

NAMES = sorted(file.stem for file in PROFILES.glob("*.toml"))


class Arithmetic:
    """What a profile allows, written down a second time and independently of the simulator."""

    def __init__(self, name, **settings):
        self.values = tomllib.loads((PROFILES / f"{name}.toml").read_text())
        for key, value in settings.items():
            table, key = key.split(".")
            self.values[table][key] = value
        self.pcie, self.card = self.values["pcie"], self.values["card"]

    def link(self):
        """Bytes a second of one direction after the code and the overhead. The code is 8b/10b up to
        5 GT/s and 128b/130b above (PCIe Base 3.0, 4.2).
        """
        return (
            self.pcie["lanes"]
            * self.pcie["rate_gbps"]
            * 1e9
            / (10 if self.pcie["rate_gbps"] <= 5 else 8 * 130 / 128)
            * (1 - self.pcie["overhead_percent"] / 100)
        )

    def stream(self, tlp_bytes):
        """TLPs a second that the stream can carry."""
        beat = self.card["data_width"] // 8
        return self.card["clock_mhz"] * 1e6 / -(-tlp_bytes // beat)

    def write(self, size, wide=False):
        """Payload bytes a second of writes that never wait for credit."""
        tlp = (16 if wide else 12) + size
        return size * min(self.link() / (tlp + self.pcie["framing_bytes"]), self.stream(tlp))

    def read(self, size):
        """Payload bytes a second of reads of whole lines with enough in flight, 64 bytes a
        completion.
        """
        piece = self.pcie["read_completion_boundary"]
        tlp = 12 + piece
        return piece * min(self.link() / (tlp + self.pcie["framing_bytes"]), self.stream(tlp))


WIDE = 0x1_0000_0000

# Rates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [8, 64, 256])
@pytest.mark.parametrize("address", [0, WIDE])
def test_writes_reach_the_arithmetic_and_never_exceed_it(bench, figure, name, size, address):
    expected = Arithmetic(name).write(size, address == WIDE)
    result = bench(name, "write", size, 4000, address=address)
    assert result["bytes_wrong"] == 0
    assert result["cards"][0]["faults"] == {}
    ratio = result["bytes_per_second"] / expected
    if size == 8 and name == "gen2x4" and address == WIDE:
        figure(
            "host_model_8_byte_writes", ratio, "of the arithmetic", at_least=0.99, at_most=1.0000001
        )
    assert 0.99 <= ratio <= 1.0000001


def test_the_link_and_not_the_stream_limits_8_byte_writes_when_the_card_is_fast(bench):
    result = bench("gen2x4", "write", 8, 4000, **{"card.clock_mhz": 250.0})
    # PCIe Gen2 x4: 2 GB/s less 1 %, 28 bytes a TLP.
    assert result["bytes_per_second"] == pytest.approx(2e9 * 0.99 * 8 / 28, rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_reads_reach_the_arithmetic_and_never_exceed_it(bench, name):
    result = bench(name, "read", 512, 400, in_flight=32)
    assert result["good"]
    assert 0.98 <= result["bytes_per_second"] / Arithmetic(name).read(512) <= 1.0000001


# Latency ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [8, 64, 512])
def test_one_read_in_flight_takes_the_latency_of_the_profile(bench, figure, name, size):
    arithmetic = Arithmetic(name)
    cycles = arithmetic.pcie["read_latency_ns"] * arithmetic.card["clock_mhz"] / 1e3
    result = bench(name, "read", size, 20)
    assert result["good"]
    if size == 8 and name == "gen2x4":
        figure(
            "host_model_read_latency",
            result["first_latency_cycles"],
            "cycles",
            cycles - 2,
            cycles + 2,
        )
    assert abs(result["first_latency_cycles"] - cycles) <= 2
    assert abs(result["longest_latency_cycles"] - cycles) <= 2


def test_a_read_is_answered_while_the_cpu_writes_more_than_the_link_takes(bench):
    """Each 64-byte write takes the link for 42.4 ns, and one comes each 40 ns. Each completion goes
    behind the writes that came before it. The card gives a read up after 50 us.
    """
    result = bench("gen2x4", "read", 8, 20, cpu=40)
    assert result["finished"] and result["good"]
    assert result["longest_latency_cycles"] < 5 * 125


@pytest.mark.parametrize("latency_ns", [100.0, 200.0, 400.0])
def test_a_write_is_in_memory_after_the_latency_of_the_profile(bench, latency_ns):
    result = bench("gen2x4", "write", 8, 1, **{"pcie.posted_up_ns": latency_ns})
    # Two beats: the second leaves a cycle after the first.
    assert result["first_latency_ns"] == pytest.approx(latency_ns + 8)


# Each parameter -----------------------------------------------------------------------------------


def credit_bound(headers, size, round_trip_ns):
    return headers * size / (round_trip_ns * 1e-9)


@pytest.mark.parametrize(
    "key, name, size, values",
    [
        ("pcie.lanes", "gen2x4", 256, [2, 4, 8]),
        ("pcie.rate_gbps", "gen2x1", 8, [1.25, 2.5, 5.0]),
        ("pcie.overhead_percent", "gen2x1", 8, [0.5, 1.0, 2.0]),
        ("pcie.framing_bytes", "gen2x1", 8, [4, 8, 16]),
    ],
)
def test_link_parameter_changes_the_write_rate_as_predicted(bench, key, name, size, values):
    for value in values:
        result = bench(name, "write", size, 3000, **{key: value})
        expected = Arithmetic(name, **{key: value}).write(size)
        assert result["bytes_per_second"] == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize("clock_mhz", [62.5, 125.0, 250.0])
def test_the_clock_changes_what_the_stream_carries(bench, clock_mhz):
    result = bench(
        "gen2x4",
        "write",
        8,
        3000,
        **{
            "card.clock_mhz": clock_mhz,
            "link.rate_gbps": 2.5,
            "pcie.lanes": 8,
            "pcie.posted_headers": 128,
        },
    )
    assert result["bytes_per_second"] == pytest.approx(clock_mhz * 1e6 / 2 * 8, rel=0.01)


@pytest.mark.parametrize("width, beats", [(64, 3), (128, 2)])
def test_the_data_width_changes_what_the_stream_carries(bench, width, beats):
    result = bench("gen2x4", "write", 8, 3000, **{"card.data_width": width})
    assert result["bytes_per_second"] == pytest.approx(125e6 / beats * 8, rel=0.01)


@pytest.mark.parametrize("headers", [4, 8, 16])
def test_posted_header_credits_limit_small_writes(bench, headers):
    # A credit is away for the 200 ns to memory and the 200 ns back.
    result = bench("gen2x4", "write", 8, 3000, **{"pcie.posted_headers": headers})
    assert result["bytes_per_second"] == pytest.approx(credit_bound(headers, 8, 400), rel=0.01)


@pytest.mark.parametrize("units", [32, 64, 128])
def test_posted_data_credits_limit_large_writes(bench, units):
    slow = {"pcie.credit_return_ns": 3000.0}
    result = bench("gen2x4", "write", 256, 3000, **{"pcie.posted_data": units}, **slow)
    assert result["bytes_per_second"] == pytest.approx(
        credit_bound(units // 16, 256, 3200), rel=0.01
    )


@pytest.mark.parametrize("return_ns", [100.0, 200.0, 400.0])
def test_the_return_of_credits_limits_small_writes(bench, return_ns):
    few = {"pcie.posted_headers": 8}
    result = bench("gen2x4", "write", 8, 3000, **{"pcie.credit_return_ns": return_ns}, **few)
    assert result["bytes_per_second"] == pytest.approx(
        credit_bound(8, 8, 200 + return_ns), rel=0.01
    )


@pytest.mark.parametrize("headers", [1, 2, 4])
def test_nonposted_credits_limit_reads(bench, headers):
    result = bench("gen2x4", "read", 64, 500, in_flight=32, **{"pcie.nonposted_headers": headers})
    # A credit is away for half the read latency and the 200 ns back.
    assert result["bytes_per_second"] == pytest.approx(credit_bound(headers, 64, 400), rel=0.02)


@pytest.mark.parametrize("latency_ns", [200.0, 400.0, 800.0])
def test_the_read_latency_is_seen_by_a_read(bench, latency_ns):
    result = bench("gen2x4", "read", 8, 1, **{"pcie.read_latency_ns": latency_ns})
    assert abs(result["first_latency_cycles"] - latency_ns / 8) <= 2


@pytest.mark.parametrize("max_payload, fault", [(128, {"payload_size": 100}), (256, {}), (512, {})])
def test_a_write_beyond_the_maximum_payload_is_illegal(bench, max_payload, fault):
    result = bench("gen2x4", "write", 256, 100, **{"pcie.max_payload": max_payload})
    assert result["cards"][0]["faults"] == fault


@pytest.mark.parametrize("max_request, fault", [(256, {"request_size": 50}), (512, {}), (1024, {})])
def test_a_read_beyond_the_maximum_request_is_illegal(bench, max_request, fault):
    result = bench("gen2x4", "read", 512, 50, **{"pcie.max_read_request": max_request})
    assert result["cards"][0]["faults"] == fault
    assert result["good"] == (not fault)


@pytest.mark.parametrize("boundary, completions", [(64, 8), (128, 4)])
def test_completions_end_at_the_read_completion_boundary(bench, boundary, completions):
    result = bench("gen2x4", "read", 512, 10, **{"pcie.read_completion_boundary": boundary})
    assert result["good"] and result["completions"] == 10 * completions


@pytest.mark.parametrize("max_payload, completions", [(128, 4), (256, 2), (512, 1)])
def test_completions_fill_the_maximum_payload_when_told_to(bench, max_payload, completions):
    result = bench(
        "gen2x4",
        "read",
        512,
        10,
        **{"pcie.max_payload": max_payload, "pcie.completion_split": "maximum"},
    )
    assert result["good"] and result["completions"] == 10 * completions


def test_completions_are_split_at_random_and_by_the_seed(bench):
    def counts(seed):
        return bench("gen2x4", "read", 512, 50, seed=seed, **{"pcie.completion_split": "random"})

    first, again, other = counts(1), counts(1), counts(2)
    assert first["good"] and other["good"]
    assert 2 * 50 < first["completions"] < 8 * 50
    assert first["completions"] == again["completions"] != other["completions"]


@pytest.mark.parametrize("reorder_ns", [0.0, 300.0, 600.0])
def test_completions_overtake_each_other_when_told_to(bench, reorder_ns):
    result = bench(
        "gen2x4", "read", 128, 300, in_flight=16, **{"pcie.completion_reorder_ns": reorder_ns}
    )
    assert result["good"]
    assert result["overtaken"] == (reorder_ns > 0)
    assert result["longest_latency_cycles"] > 50 + 0.5 * reorder_ns / 8


@pytest.mark.parametrize("extended, fault", [(True, {}), (False, {"tag": 32})])
def test_only_extended_tags_allow_more_than_32_reads(bench, extended, fault):
    result = bench("gen2x4", "read", 64, 64, in_flight=64, **{"pcie.extended_tags": extended})
    assert result["cards"][0]["faults"] == fault


@pytest.mark.parametrize("partial_ns", [20.0, 40.0, 80.0])
def test_partial_lines_keep_memory_busy(bench, partial_ns):
    result = bench("gen2x4", "write", 8, 3000, stride=64, **{"memory.partial_line_ns": partial_ns})
    assert result["bytes_per_second"] == pytest.approx(8 / (partial_ns * 1e-9), rel=0.01)


def test_whole_lines_do_not_keep_memory_busy(bench):
    result = bench("gen2x4", "write", 64, 3000, **{"memory.partial_line_ns": 80.0})
    assert result["bytes_per_second"] == pytest.approx(Arithmetic("gen2x4").write(64), rel=0.01)


@pytest.mark.parametrize("line, busy_lines", [(32, 0), (64, 0), (128, 1), (256, 1)])
def test_the_line_says_what_is_partial(bench, line, busy_lines):
    slow = {"memory.partial_line_ns": 200.0}
    result = bench("gen2x4", "write", 64, 2000, **{"memory.line_bytes": line}, **slow)
    expected = 64 / 200e-9 if busy_lines else Arithmetic("gen2x4").write(64)
    assert result["bytes_per_second"] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("tlps", [4, 8, 16])
def test_the_transmit_buffer_lowers_ready_when_it_is_full_of_tlps(bench, tlps):
    # One credit for a long time: what is taken before `ready` falls is the buffer and the one that
    # left.
    result = bench(
        "gen2x4",
        "write",
        8,
        tlps + 1,
        **{
            "pcie.transmit_buffer_tlps": tlps,
            "pcie.posted_headers": 1,
            "pcie.credit_return_ns": 9000.0,
        },
    )
    assert result["cards"][0]["from_card"]["not_ready_cycles"] == 0
    result = bench(
        "gen2x4",
        "write",
        8,
        tlps + 2,
        **{
            "pcie.transmit_buffer_tlps": tlps,
            "pcie.posted_headers": 1,
            "pcie.credit_return_ns": 9000.0,
        },
    )
    assert result["cards"][0]["from_card"]["not_ready_cycles"] > 500


@pytest.mark.parametrize("size_bytes, tlps", [(1024, 3), (2048, 7), (4096, 15)])
def test_the_transmit_buffer_lowers_ready_when_it_is_full_of_bytes(bench, size_bytes, tlps):
    hold = {
        "pcie.transmit_buffer_bytes": size_bytes,
        "pcie.posted_headers": 1,
        "pcie.credit_return_ns": 9000.0,
    }
    assert (
        bench("gen2x4", "write", 256, tlps + 1, **hold)["cards"][0]["from_card"]["not_ready_cycles"]
        == 0
    )
    assert (
        bench("gen2x4", "write", 256, tlps + 2, **hold)["cards"][0]["from_card"]["not_ready_cycles"]
        > 500
    )


# Bus master ---------------------------------------------------------------------------------------


def test_without_bus_master_nothing_is_written_and_reads_are_refused(bench):
    result = bench("gen2x4", "write", 8, 100, master=0)
    assert result["cards"][0]["faults"] == {"not_bus_master": 100}
    assert result["cards"][0]["from_card"]["writes"] == 0
    result = bench("gen2x4", "read", 8, 100, master=0)
    assert result["cards"][0]["faults"] == {"not_bus_master": 100}
    assert result["finished"] and not result["good"]


def test_tlps_that_cross_4_kib_are_illegal(bench):
    result = bench("gen2x4", "write", 64, 100, address=32)
    # The hundred of them end before the second boundary.
    assert result["cards"][0]["faults"] == {"page_crossing": 1}
