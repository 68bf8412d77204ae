"""`dibber reg` and `dibber counters`: registers by name, and what was counted since a base."""

# SPDX-License-Identifier: BSD-2-Clause

import json

import pytest
from dibber.interface.description import COUNTERS, HOST, LINK_STATE
from dibber_cli import counters

# Registers ----------------------------------------------------------------------------------------


def link_status(state, others=0):
    field = next(f for f in HOST["LINK_STATUS"].fields if f.name == "state")
    return state << field.lsb | others


def test_registers_and_fields_are_read_by_name(serve, run):
    mock = serve()
    mock.device.registers[HOST["CLOCK_HZ"].offset] = 125_000_000
    mock.device.registers[HOST["LINK_STATUS"].offset] = link_status(LINK_STATE.UP, 1 << 31)
    code, out, _ = run("reg", "read", mock.uri, "clock_hz", "LINK_STATUS.state", "BOARD[1]")
    assert code == 0 and "0x7735940" in out and "(UP)" in out and "BOARD[1]" in out
    read = json.loads(run("reg", "read", "--json", mock.uri, "CLOCK_HZ", "LINK_STATUS.state")[1])
    assert [r["value"] for r in read] == [125_000_000, LINK_STATE.UP]
    assert read[0]["offset"] == HOST["CLOCK_HZ"].offset


def test_a_register_is_written_and_read_back(serve, run):
    mock = serve()
    code, out, _ = run("reg", "write", mock.uri, "SCRATCH", "0x1234")
    assert code == 0 and "0x1234 was read back" in out
    assert mock.device.registers[HOST["SCRATCH"].offset] == 0x1234


def test_writing_a_field_keeps_its_neighbours(serve, run):
    mock = serve()
    register = next(r for r in HOST.registers if r.access == "rw" and len(r.fields) > 1)
    field = register.fields[1]
    mock.device.registers[register.offset] = before = (1 << field.lsb) - 1
    assert run("reg", "write", mock.uri, f"{register.name}.{field.name}", "1")[0] == 0
    assert mock.device.registers[register.offset] == before | 1 << field.lsb


def test_a_dump_has_every_register_that_can_be_read(serve, run):
    dump = json.loads(run("reg", "dump", "--json", serve().uri)[1])
    readable = [r for r in HOST.registers if r.access not in ("wo", "wk")]
    assert len(dump) == sum(r.count for r in readable)
    assert {r.name for r in readable} == {d["name"].split("[")[0] for d in dump}


def test_a_doorbell_page_is_read_beside_its_owner(serve, run):
    mock = serve()
    code, out, _ = run("reg", "read", mock.uri, "--endpoint", "2", "COMMAND_HEAD", "PROGRAM")
    assert code == 0 and "COMMAND_HEAD" in out and "PROGRAM" in out


def test_the_names_need_no_card(run):
    names = {r["name"] for r in json.loads(run("reg", "list", "--json")[1])}
    assert names == {r.name for r in HOST.registers}
    assert "COMMAND_PRODUCER" in run("reg", "list", "--doorbell")[1]


@pytest.mark.parametrize(
    "words, reason",
    [
        (("read", "URI", "LINK_STAT"), "LINK_STATUS"),
        (("read", "URI", "CLOCK_HZ[1]"), "has 1 registers"),
        (("read", "URI", "LINK_STATUS.stat"), "its fields: "),
        (("read", "URI", "LINK_COMMAND"), "can only be written"),
        (("read", "URI", "a b"), "no register 'a b'"),
        (("read", "URI", "--endpoint", "2", "CLOCK_HZ"), "bank doorbell"),
        (("write", "URI", "CLOCK_HZ", "1"), "can only be read"),
        (("write", "URI", "MCP_CONTROL.run", "2"), "has 1 bits"),
        (("write", "URI", "SCRATCH", "4294967296"), "not a whole number"),
        (("write", "URI", "SCRATCH", "-1"), ""),
        (("write", "URI", "SCRATCH", "x"), "'x'"),
    ],
)
def test_a_wrong_name_or_value_is_refused_before_the_card_is_asked(serve, run, words, reason):
    mock = serve()
    code, out, err = run("reg", *(mock.uri if word == "URI" else word for word in words))
    assert (code, out) == (2, "") and reason in err


# Counters -----------------------------------------------------------------------------------------


@pytest.fixture
def counting(serve):
    mock = serve()

    def count(name, value):
        mock.device.registers[HOST[f"COUNT_{name}"].offset] = value

    mock.count = count
    return mock


def test_counters_since_the_reset_and_since_a_base(counting, run):
    counting.count("POSTS", 12)
    assert "12" in run("counters", counting.uri)[1]
    assert run("counters", "--clear-base", counting.uri)[0] == 0
    assert "nothing was counted since the base" in run("counters", counting.uri)[1]
    counting.count("POSTS", 15)
    found = json.loads(run("counters", "--json", counting.uri)[1])
    assert found["since"]["changes"]["posts"] == 3 and found["counters"]["posts"] == 15
    assert "15" in run("counters", "--absolute", counting.uri)[1]


def test_counters_since_a_file_that_this_command_or_info_wrote(counting, run, tmp_path):
    for n, command in enumerate((("counters", "--json"), ("info", "--json"))):
        counting.count("POSTS", 10)
        file = tmp_path / f"{n}.json"
        file.write_text(run(*command, counting.uri)[1])
        counting.count("POSTS", 14)
        found = json.loads(run("counters", "--json", "--since", file, counting.uri)[1])
        assert found["since"]["changes"]["posts"] == 4


def test_a_reset_after_the_base_is_told():
    names = [name.lower() for name, _ in COUNTERS]
    before = dict.fromkeys(names, 100)
    now = dict.fromkeys(names, 7)
    assert counters.counted(now, 500, (before, 1000)) == (now, 500, True)
    wrapped = {**before, names[0]: 0xFFFFFFFF}
    after = {**before, names[0]: 4}
    changes, cycles, reset = counters.counted(after, 1 << 20, (wrapped, 1000))
    assert (changes[names[0]], cycles, reset) == (5, (1 << 20) - 1000, False)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("{", "has no counters"),
        ("[]", "has no counters"),
        ('{"counters": {}}', "has no counters"),
        ('{"counters": [], "cycles": 1}', "has no counters"),
        ('{"counters": {"posts": "1"}, "cycles": 1}', "not a whole number"),
        ('{"counters": {"posts": 1}, "cycles": null}', "not a whole number"),
    ],
)
def test_a_base_that_makes_no_sense_is_refused(counting, run, tmp_path, text, reason):
    (tmp_path / "base.json").write_text(text)
    code, out, err = run("counters", "--since", tmp_path / "base.json", counting.uri)
    assert (code, out) == (1, "") and reason in err
    assert run("counters", "--since", tmp_path / "none.json", counting.uri)[0] == 1
