"""The stage that is named as the limit, and its rate, from counters."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses

import pytest
from dibber.interface.description import HANDLER, MCP_STATE, SHARED, C
from dibber_cli import profile
from dibber_cli.bench import session, stages
from dibber_cli.bench.pattern import Pattern
from dibber_cli.bench.point import Point


def busy(**cycles):
    """Counters of one card over a point, all else being idle."""
    return {**dict.fromkeys((*stages.STAGES, *stages.HANDLERS), 0), **cycles}


@pytest.mark.parametrize(
    "sender, receiver, expected",
    [
        (dict(link=950), dict(), ("link", 0.95)),
        (dict(link=950, packet=990), dict(), ("packet", 0.99)),
        # alike: the last one
        (dict(link=980, packet=990, request=999), dict(scatter=100), ("link", 0.98)),
        (dict(link=985), dict(scatter=990, pcie=985), ("pcie", 0.985)),
        (dict(request=960, pcie=950), dict(), ("pcie", 0.95)),
        (dict(link=899), dict(write=880), ("latency", None)),
    ],
)
def test_the_limit_is_the_last_among_the_busiest(sender, receiver, expected):
    assert stages.limit(busy(**sender), busy(**receiver), 1000) == expected


@pytest.mark.parametrize(
    "sender, receiver, expected",
    [
        (dict(COMMAND=400, ACK=250), dict(ARRIVAL=100), ("control program", 0.65)),
        (dict(COMMAND=100), dict(ARRIVAL=700, SEND_DONE=1), ("control program", 0.701)),
        (dict(COMMAND=400), dict(ARRIVAL=400), ("latency", None)),
    ],
)
def test_the_control_program_of_one_card_can_be_the_limit(sender, receiver, expected):
    assert stages.limit(busy(**sender), busy(**receiver), 1000) == expected


def test_what_has_no_counter_is_computed_and_comes_after_what_has():
    idle = busy(), busy(), 1000
    assert stages.limit(*idle, 800, ("pcie_down", 0.95)) == ("pcie_down", 0.95)
    assert stages.limit(*idle, 800, ("pcie_down", 0.85)) == ("gather", 0.8)
    assert stages.limit(*idle, 700, ("pcie_down", 0.85)) == ("latency", None)
    assert stages.limit(busy(link=910), busy(), 1000, 990, ("pcie_down", 0.99)) == ("link", 0.91)


def test_counters_are_modulo():
    assert stages.between({"a": 0xFFFF_FFF0, "b": 5}, {"a": 0x10, "b": 7}) == {"a": 0x20, "b": 2}


class FakeCard:
    """Registers and the control program's memory, from a seed of their own names."""

    def __init__(self):
        self.sram_bytes = 0x10000
        self.memory = bytearray(self.sram_bytes)
        at = self.sram_bytes - C.SHARED_FROM_END + SHARED["handler"].offset
        for name in stages.HANDLERS:
            entry = at + HANDLER.size * getattr(MCP_STATE, name)
            for member, value in (("calls", 3), ("cycles", 1000 + getattr(MCP_STATE, name))):
                begin = entry + HANDLER[member].offset
                self.memory[begin : begin + 4] = value.to_bytes(4, "little")

    def read_register(self, name):
        return len(name)

    def read_firmware(self, offset, length):
        return bytes(self.memory[offset : offset + length])


def test_every_stage_and_handler_is_read():
    counted = stages.read(FakeCard())
    assert counted["scatter"] == len("COUNT_BUSY_SCATTER") and counted["pcie"] == len(
        "COUNT_BUSY_PCIE"
    )
    assert counted["ACK"] == 1000 + MCP_STATE.ACK and counted["ACK calls"] == 3
    assert set(stages.SENDER + stages.RECEIVER + stages.HANDLERS) < set(counted)


@pytest.fixture
def result():
    """1000 elements of 8 bytes in 2500 cycles, the link busy in 2400 of them."""
    point = Point("s", 2, Pattern.strided(8, 500, 16, 2), Pattern.contiguous(4000, 2), 2)
    return {
        "point": point,
        "answers": [{"elapsed_ps": 2500 * 8000, "cpu_ps": 0}, {}],
        "busy": [busy(link=2400), busy()],
    }


def test_the_limit_is_the_payload_in_the_busy_time(result):
    row = session.evaluate(profile.load("gen2x4"), result, "elements")
    assert (row["value"], row["limited_by"], row["limit"]) == (
        400.0,
        "link",
        round(8000 / (2400 * 8e-9) / 1e6, 1),
    )


def test_a_get_is_timed_where_it_was_asked_for_and_limited_from_where_it_came(result):
    result["point"] = dataclasses.replace(result["point"], operation="get")
    result["answers"] = [{}, {"elapsed_ps": 5000 * 8000, "cpu_ps": 0}]
    result["busy"] = [busy(request=4800), busy(scatter=3000)]
    row = session.evaluate(profile.load("gen2x4"), result, "elements")
    assert (row["value"], row["limited_by"]) == (200.0, "request")


def test_nothing_busy_has_no_limit(result):
    result["busy"] = [busy(), busy()]
    result["answers"][0]["elapsed_ps"] *= 2
    row = session.evaluate(profile.load("gen2x4"), result, "elements")
    assert (row["limited_by"], row["limit"]) == ("latency", None)
