"""`dibber monitor` and `dibber info`: rates by the card's own clock, and the control program's
counts.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import struct

import pytest
from dibber.interface.description import (
    COUNTERS,
    HANDLER,
    HOST,
    INTERFACE,
    LINK_STATE,
    MCP_STATE,
    SHARED,
    TRAP,
    C,
)
from dibber_cli import monitor
from dibber_cli.main import main


def sampled(cycles, **counters):
    return {
        "cycles": cycles,
        "link": "UP",
        "control_program": "IDLE",
        "counters": {name.lower(): counters.get(name.lower(), 0) for name, _ in COUNTERS},
    }


def test_rates_are_of_the_cards_own_time():
    rates = monitor.between(
        sampled(1000, bytes_sent=10, packets_sent=5),
        sampled(1000 + 125_000, bytes_sent=10 + 25_000, packets_sent=105, stopped_cycles=12_500),
        125e6,
    )
    assert rates["seconds"] == pytest.approx(1e-3)
    assert rates["sent_mb_per_s"] == pytest.approx(100) and rates[
        "packets_sent_per_s"
    ] == pytest.approx(100_000)
    assert rates["stopped_percent"] == pytest.approx(10) and rates["errors"] == 0


def test_a_counter_that_wraps_goes_on():
    rates = monitor.between(
        sampled(0, packets_sent=0xFFFFFFFF), sampled(125_000_000, packets_sent=4), 125e6
    )
    assert rates["packets_sent_per_s"] == pytest.approx(5)


@pytest.mark.parametrize(
    "name",
    ["code_errors", "payload_crc_error", "slack_overflow", "link_lost", "completion_timeout"],
)
def test_each_kind_of_error_is_counted(name):
    assert monitor.between(sampled(0), sampled(100, **{name: 2}), 125e6)["errors"] == 2


def test_traffic_is_no_error():
    names = (
        "packets_sent",
        "stops_sent",
        "doorbells",
        "acks_sent",
        "words_received",
        "packet_duplicate",
        "link_trained",
    )
    assert (
        monitor.between(sampled(0), sampled(100, **{name: 9 for name in names}), 125e6)["errors"]
        == 0
    )


@pytest.fixture
def moving(serve):
    """A mock card of which a counter moves with each look."""

    def start(name, step):
        mock, offset = serve(), HOST[f"COUNT_{name}"].offset
        read = mock.device.bar_read

        def bar_read(at, length):
            if at == offset:
                mock.device.registers[offset] = mock.device.registers.get(offset, 0) + step
            return read(at, length)

        mock.device.bar_read = bar_read
        return mock.uri

    return start


def test_a_line_for_people_and_one_of_json_for_programs(moving, capsys):
    uri = moving("PACKETS_SENT", 1000)
    assert main(["monitor", "--count", "2", "--interval", "0.01", uri]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "sent pkt/s" in lines[0] and lines[1].split()[0] == "UP"
    assert main(["monitor", "--once", "--json", "--interval", "0.01", uri]) == 0
    rates = json.loads(capsys.readouterr().out)
    assert rates["changes"]["packets_sent"] == 1000 and rates["packets_sent_per_s"] > 0


def test_all_counters_that_moved_are_shown(moving, capsys):
    assert main(["monitor", "--once", "--all", "--interval", "0.01", moving("POSTS", 7)]) == 0
    rows = {
        line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if line
    }
    assert rows["posts"][0] == "21" and "doorbells" not in rows


def test_it_ends_with_1_when_an_error_was_counted(moving):
    assert main(["monitor", "--once", "--interval", "0.01", moving("CODE_ERRORS", 1)]) == 1


# info ---------------------------------------------------------------------------------------------


def shared(card, name, *words):
    at = len(card.sram) - C.SHARED_FROM_END + SHARED[name].offset
    card.sram[at : at + 4 * len(words)] = struct.pack(f"<{len(words)}I", *words)


def test_info_says_what_a_running_control_program_did(serve, capsys):
    mock = serve()
    mock.device.registers[HOST["MCP_STATE"].offset] = MCP_STATE.IDLE
    shared(mock.device, "commands", 12)
    shared(mock.device, "handler", *[0] * (HANDLER.size // 4 * MCP_STATE.COMMAND), 4, 400, 200, 150)
    assert main(["info", "--json", mock.uri]) == 0
    program = json.loads(capsys.readouterr().out)["control_program"]
    assert (
        program["commands"] == 12 and program["stopped"] is None and program["image_bytes"] is None
    )
    assert program["handlers"] == {
        "command": {"calls": 4, "cycles": 400, "instructions": 200, "longest": 150}
    }
    assert main(["info", mock.uri]) == 0
    out = capsys.readouterr().out
    assert (
        "4 calls, 100 cycles each, 150 at most" in out
        and "SRAM 128 KiB, image at most 65536 bytes\n" in out
    )


def test_info_says_how_much_of_its_memory_an_image_leaves(serve, capsys):
    mock = serve()
    mock.device.registers[HOST["MCP_STATE"].offset] = MCP_STATE.IDLE
    for name, word in (
        ("version", INTERFACE.version_word),
        ("hash", INTERFACE.hash),
        ("image_bytes", 30_000),
    ):
        shared(mock.device, name, word)
    assert main(["info", mock.uri]) == 0
    assert (
        "SRAM 128 KiB, image at most 65536 bytes: it has 30000, 35536 are left"
        in capsys.readouterr().out
    )
    assert main(["info", "--json", mock.uri]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["sram_bytes"], told["image_limit"], told["control_program"]["image_bytes"]) == (
        131072,
        65536,
        30000,
    )


def test_info_says_what_stopped_it(serve, capsys):
    mock = serve()
    mock.device.registers[HOST["MCP_STATE"].offset] = MCP_STATE.TRAP
    shared(mock.device, "trap", 5, 0x1234, 0xBAD0, 0x1800, *[0] * (TRAP.size // 4 - 4))
    assert main(["info", mock.uri]) == 0
    assert "a load from where nothing is (address 0xbad0), pc 0x1234" in capsys.readouterr().out


def test_info_of_a_card_in_reset_says_why_the_link_is_down(serve, capsys):
    mock = serve()
    # reason NO_SIGNAL
    mock.device.registers[HOST["LINK_STATUS"].offset] = LINK_STATE.DOWN | 1 << 9
    assert main(["info", "--json", mock.uri]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["link"]["reason"] == "NO_SIGNAL" and found["control_program"] is None
    assert main(["info", mock.uri]) == 0
    assert "is the cable plugged in" in capsys.readouterr().out


def test_info_of_a_build_without_a_transceiver_says_that_there_is_no_link(serve, capsys):
    mock = serve()
    status = HOST["LINK_STATUS"]
    absent = next(field for field in status.fields if field.name == "absent")
    mock.device.registers[status.offset] = LINK_STATE.DOWN | 1 << 9 | 1 << absent.lsb
    assert main(["info", mock.uri]) == 0
    assert "no link: this build has PHY loopback only" in capsys.readouterr().out
    assert main(["link", "status", mock.uri]) == 1
    assert "no link: this build has PHY loopback only" in capsys.readouterr().out
