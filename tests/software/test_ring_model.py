"""The model of a ring moves packets as the rules of a ring say, and matches what is known."""

# SPDX-License-Identifier: BSD-2-Clause

import copy
import dataclasses
import json
import os

import pytest
from dibber_cli.ring import commands, rtl, validate
from dibber_cli.ring.clock import Clock
from dibber_cli.ring.figures import NodeCount
from dibber_cli.ring.items import ACCEPTED, BUSY_A, BUSY_B, ORDER, Echo, Grant, Packet
from dibber_cli.ring.model import Model
from dibber_cli.ring.parameters import checked, load
from dibber_cli.ring.reservation import Ages, Grants, Room
from dibber_cli.ring.sender import Sender
from hypothesis import given, settings
from hypothesis import strategies as st

SCI, GIGARING, DIBBER = (
    load(commands.FILES / f"{name}.toml") for name in ("sci", "gigaring", "dibber")
)


def figures(parameters, **changes):
    """Of a run; a key is written table__key."""
    named = {key.replace("__", "."): value for key, value in changes.items()}
    return Model(parameters.changed(named)).run()


# Times by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [2, 5, 64])
def test_an_unloaded_packet_takes_its_own_symbols_and_the_hops_to_its_target(nodes):
    alone = {"workload__sources": [0], "workload__outstanding": 1, "workload__short_share": 0.0}
    run = figures(SCI, ring__nodes=nodes, workload__pattern="opposite", **alone)
    hops = nodes // 2
    assert run["total"]["latency"]["mean_ns"] == 2 * (40 + 4 * hops)
    # The echo takes the place of the packet's last four symbols, so its end goes on where they end.
    assert run["total"]["round_trip"]["mean_ns"] == 2 * 4 * nodes


def test_each_metre_of_wire_adds_its_delay_to_the_links_that_a_packet_crosses():
    lengths = [10.0, 0.0, 30.0, 0.0]
    alone = {"workload__sources": [0], "workload__outstanding": 1, "workload__short_share": 0.0}
    run = figures(SCI, ring__wire_m=lengths, workload__pattern="opposite", **alone)
    assert run["total"]["latency"]["mean_ns"] == 2 * (40 + 4 * 2) + 50
    assert run["total"]["round_trip"]["mean_ns"] == 2 * 4 * 4 + 200


@pytest.mark.parametrize("parameters, packet", [(SCI, 41), (DIBBER, 76)])
def test_a_node_alone_has_the_whole_ring(parameters, packet):
    run = figures(
        parameters,
        workload__sources=[0],
        workload__pattern="next",
        workload__outstanding=16,
        workload__short_share=0.0,
        buffers__send=64,  # those of a card are too few for a ring of 8: they wait for echoes
        limit__most=64,
    )
    payload = parameters.packet["payload_bytes"] / packet * parameters.ring["symbol_mhz"]
    assert run["total"]["mbps"] == pytest.approx(payload, rel=0.01)


# Rules of a ring ----------------------------------------------------------------------------------


@st.composite
def rings(draw):
    """Parameters of any small ring under any load."""
    raw = copy.deepcopy(draw(st.sampled_from([SCI, DIBBER])).raw)
    nodes = draw(st.integers(2, 7))
    raw["ring"]["nodes"] = nodes
    raw["ring"]["rings"] = draw(st.integers(1, 2))
    if raw["ring"]["rings"] == 2:
        raw["ring"]["choose"] = draw(st.sampled_from(["shortest", "packet", "flow"]))
    raw["ring"]["wire_m"] = [
        draw(st.sampled_from([0.0, 0.3, 1.0, 7.0, 50.0])) for _ in range(nodes)
    ]
    raw["node"] = {"pass_symbols": draw(st.sampled_from([1, 2.5, 4, 20.5]))}
    if draw(st.booleans()):
        raw["ring"]["housekeeping_symbols"] = 100
    raw["buffers"]["channels"] = 4
    raw["buffers"]["send"] = draw(st.integers(1, 6))
    raw["buffers"]["receive"] = draw(st.integers(1, 4))
    raw["buffers"]["reservation"] = draw(st.sampled_from(["retry", "grant"]))
    raw["client"] = {"receive_ns": draw(st.sampled_from([0, 10, 1000]))}
    if draw(st.booleans()):
        raw["limit"] = {
            "most": draw(st.integers(1, 6)),
            "each": draw(st.sampled_from(["flow", "channel"])),
        }
    kind = draw(st.sampled_from(["message", "read", "write"]))
    raw["workload"] = [
        {
            "kind": kind,
            "pattern": draw(st.sampled_from(["uniform", "hot-receiver", "next", "opposite"])),
            "sources": list(range(1, nodes)),
            "block_bytes": draw(st.sampled_from([1, 64, 300, 2000])),
            "outstanding": draw(st.integers(1, 12)),
            "channel": draw(st.integers(0, 3)),
            "answer_channel": draw(st.integers(0, 3)),
        }
    ]
    raw["run"] = {"warmup_us": 50.0, "measure_us": 100.0, "seed": draw(st.integers(0, 1000))}
    return checked(raw)


@settings(max_examples=40)
@given(rings())
def test_on_any_ring_each_source_goes_on_and_no_link_carries_more_than_it_can(parameters):
    model = Model(parameters)
    run = model.run()
    longest = max(parameters.symbols(size) for size in (0, parameters.packet["payload_bytes"]))
    separator = parameters.packet["separator_symbols"]
    room = (longest + separator) * parameters.symbol_ps / 1e3
    for link in run["by_link"]:
        assert link["use"] <= 1.0 + 0.001
        # The bypass FIFO holds what comes while the node sends its own largest packet.
        assert link["bypass_ns"] <= room
    for count, node in zip(model.nodes, run["by_node"]):
        if node["node"]:
            assert len(count.count.until_echo) > 0, "a source starves"
    accepted = sum(sum(node.count.sent_bytes) for node in model.nodes)
    delivered = sum(sum(node.count.received_bytes) for node in model.nodes)
    under_way = len(model.nodes) * 4 * parameters.buffers["send"] * parameters.ring["rings"]
    assert abs(delivered - accepted) <= under_way * parameters.packet["payload_bytes"]


def test_packets_of_many_sizes_have_the_mean_that_is_offered():
    sizes = {"workload__least_bytes": 4, "workload__block_bytes": 252}
    raw = copy.deepcopy(DIBBER.raw)
    del raw["workload"][0]["outstanding"]
    raw["workload"][0] |= {"offered_mbps": 20.0, "spacing": "uniform"}
    run = figures(checked(raw), run__measure_us=5_000.0, **sizes)
    assert run["total"]["mbps"] == pytest.approx(8 * 20, rel=0.05)
    size = run["total"]["mbps"] * 5_000 / run["total"]["packets"]
    assert size == pytest.approx(128, rel=0.05)


def test_housekeeping_goes_round_and_takes_two_words_in_each_period():
    idle = {"workload__sources": [1], "workload__outstanding": 1, "run__measure_us": 5000.0}
    run = figures(DIBBER, ring__housekeeping_symbols=100, **idle)
    for link in run["by_link"]:
        if link["node"] not in (1, 2):
            assert link["echoes"] >= 0.02


@pytest.mark.parametrize("reservation", ["retry", "grant"])
def test_a_slow_hot_receiver_takes_from_all_and_refuses_none_for_ever(reservation):
    run = figures(
        DIBBER,
        buffers__reservation=reservation,
        workload__pattern="hot-receiver",
        workload__sources=[1, 2, 3, 4, 5, 6, 7],
        client__receive_ns=2000.0,
        run__measure_us=2000.0,
    )
    assert run["total"]["refused"] > 100
    # A source waits for at most two packets of each other one, so shares may differ by two.
    assert run["total"]["jain"] > 0.9
    most = max(node["most_tries"] for node in run["by_node"])
    # With a grant a packet goes again once. A packet behind it may have gone twice with ORDER.
    assert most <= (4 if reservation == "grant" else 200)


def test_without_reservation_a_hot_receiver_refuses_some_far_more_often():
    slow = {
        "workload__pattern": "hot-receiver",
        "workload__sources": [1, 2, 3, 4, 5, 6, 7],
        "client__receive_ns": 2000.0,
    }
    free = figures(DIBBER, buffers__reservation="none", **slow)
    held = figures(DIBBER, buffers__reservation="grant", **slow)
    assert free["total"]["refused"] > 2 * held["total"]["refused"]


def test_a_grant_leaves_after_the_echo_of_the_packet_that_was_refused():
    granted = []
    grants = Grants(Room(1), 4, granted.append)
    assert grants.answer(packet(1), True) == ACCEPTED
    grants.echoed()
    assert grants.answer(packet(3), True) == BUSY_A
    grants.free(packet(0))
    assert granted == []
    grants.echoed()
    assert granted == [3]


def test_a_pair_of_rings_carries_twice_as_much_between_two_nodes():
    fast = {"ring__nodes": 2, "client__receive_mbps": 1000.0, "workload__outstanding": 16}
    one = figures(DIBBER, **fast)["total"]["mbps"]
    two = figures(DIBBER, ring__rings=2, ring__choose="packet", **fast)["total"]["mbps"]
    assert two == pytest.approx(2 * one, rel=0.01)


def test_a_pair_of_rings_takes_the_shorter_way():
    pair = figures(DIBBER, ring__rings=2, workload__pattern="next", ring__choose="flow")
    assert [ring["packets"] > 0 for ring in pair["by_ring"]] == [True, False]


def test_a_flow_between_two_nodes_changes_its_ring_only_while_it_is_empty():
    busy = {"ring__nodes": 2, "ring__rings": 2, "workload__sources": [0]}
    by_flow = figures(DIBBER, ring__choose="flow", **busy)
    assert sorted(ring["packets"] > 0 for ring in by_flow["by_ring"]) == [False, True]
    by_packet = figures(DIBBER, ring__choose="packet", **busy)
    assert [ring["packets"] > 0 for ring in by_packet["by_ring"]] == [True, True]
    assert by_packet["total"]["mbps"] > by_flow["total"]["mbps"]


def test_a_refusal_halves_the_limit_and_eight_acceptances_raise_it():
    sender = Sender(Clock(), DIBBER.changed({"limit.most": 8, "buffers.send": 8}), NodeCount(0, 4))

    def answered(answer):
        sender.add(Packet(3, 0, 2, 64, 100, None))
        sender.clock.env.run(sender.clock.env.now + 10**6)
        one = sender.take()
        sender.echoed(Echo(one, 1, answer))
        if answer == BUSY_A:
            sender.granted(Grant(0, 1, 3, 2))
            sender.echoed(Echo(sender.take(), 1, ACCEPTED))

    answered(BUSY_A)
    assert sender.limits == {2: 4}
    answered(BUSY_A)
    answered(BUSY_A)
    answered(BUSY_A)
    assert sender.limits == {2: 1}
    for _ in range(7):
        answered(ACCEPTED)
    assert sender.limits == {2: 2}
    for _ in range(100):
        answered(ACCEPTED)
    assert sender.limits == {2: 8}


def test_equal_seeds_give_equal_figures_and_other_seeds_others():
    def run(seed):
        found = figures(SCI, run__seed=seed, run__measure_us=20.0)
        return {**found, "seconds": 0, "events_per_second": 0, "seed": 0}

    assert run(1) == run(1) != run(2)


# Reservation --------------------------------------------------------------------------------------


def packet(source, label=None):
    one = Packet(0, source, 0, 64, 1, None)
    one.label = label
    return one


def test_two_ages_serve_each_generation_before_the_next():
    ages = Ages(Room(1))
    assert ages.answer(packet(1), True) == ACCEPTED
    assert ages.answer(packet(2), True) == BUSY_A
    assert ages.answer(packet(3), True) == BUSY_B
    ages.free(packet(0))
    assert ages.answer(packet(4), True) == BUSY_B  # there is room, but age A waits for it
    assert ages.answer(packet(3, BUSY_B), True) == BUSY_B
    assert ages.answer(packet(2, BUSY_A), True) == ACCEPTED
    ages.free(packet(0))
    assert ages.answer(packet(5), True) == BUSY_A
    assert ages.answer(packet(4, BUSY_B), True) == ACCEPTED
    ages.free(packet(0))
    assert ages.answer(packet(5, BUSY_A), True) == BUSY_A
    assert ages.answer(packet(3, BUSY_B), True) == ACCEPTED
    ages.free(packet(0))
    assert ages.answer(packet(5, BUSY_A), True) == ACCEPTED
    ages.free(packet(0))
    assert ages.answer(packet(6), True) == ACCEPTED


def test_a_grant_keeps_room_for_its_source_alone():
    granted = []
    grants = Grants(Room(1), 4, granted.append)

    def answer(source, in_order=True):
        said = grants.answer(packet(source), in_order)
        grants.echoed()
        return said

    assert answer(1) == ACCEPTED
    assert answer(3) == BUSY_A
    assert answer(2) == BUSY_B
    assert answer(3, in_order=False) == ORDER
    grants.free(packet(0))
    assert granted == [3]
    assert answer(4) == BUSY_B
    assert answer(2) == BUSY_B
    assert answer(3) == ACCEPTED
    grants.free(packet(0))
    assert granted == [3, 2]  # of 2 and 4, no one is at or above address 5 of this turn


# Parameter files ----------------------------------------------------------------------------------

TEXT = (commands.FILES / "dibber.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("nodes        = 8", "nodes = 65", "'ring.nodes' = 65 is outside 2 … 64"),
        ("nodes        = 8", "nodes = 1", "outside 2 … 64"),
        ("nodes        = 8", "nodes = 8.0", "'ring.nodes' must be a whole number"),
        ("nodes        = 8", "nodes = true", "'ring.nodes' must be a whole number"),
        ("nodes        = 8", "node = 8", "unknown key 'ring.node'"),
        ("nodes        = 8", "", "key 'ring.nodes' is missing"),
        ("wire_m       = 1.0", "wire_m = [1, 2]", "'ring.wire_m' has 2 lengths"),
        ("wire_m       = 1.0", "wire_m = [1, 'x']", "'ring.wire_m[1]' must be a number"),
        ("wire_m       = 1.0", "wire_m = nan", "'ring.wire_m' = nan is outside"),
        ("symbol_mhz   = 125.0", "symbol_mhz = inf", "'ring.symbol_mhz' = inf is outside"),
        ('"grant"', '"wish"', "'buffers.reservation' must be retry or grant or none"),
        ("[packet]", "[pakket]", "unknown key 'pakket'"),
        ("send          = 4", "send = 0", "'buffers.send' = 0 is outside"),
        ('"message"', '"massage"', "'workload[0].kind' must be message or read or write"),
        ("outstanding = 8", "", "one of 'outstanding' and 'offered_mbps'"),
        ("outstanding = 8", "outstanding = 8\noffered_mbps = 1", "one of 'outstanding'"),
        ("block_bytes = 256", "block_bytes = 256\nleast_bytes = 257", "least_bytes' is above"),
        ("block_bytes = 256", "block_bytes = 16777472", "more than 65536 packets"),
        ("channel     = 2", "channel = 4", "'workload[0].channel' = 4 is outside"),
        (
            "block_bytes = 256",
            "block_bytes = 256\nsources = [8]",
            "sources[0]' = 8 is outside 0 … 7",
        ),
        ("block_bytes = 256", "block_bytes = 256\nsources = [1, 1]", "has a node twice"),
        ("block_bytes = 256", "block_bytes = 256\nsources = []", "a list of nodes"),
        ("block_bytes = 256", "block_bytes = 256\ntargets = [0]", "node 0 has no target"),
        ("block_bytes = 256", 'block_bytes = 256\npattern = "hot-receiver"', "no target"),
        ("echo_symbols     = 2", "echo_symbols = 12", "'packet.echo_symbols' = 12 is above"),
        ("take_symbols   = -2", "take_symbols = -30", "before its last symbol came"),
        ("[[workload]]", "[workload]", "1 … 16 tables '[[workload]]'"),
        ("[run]", "[run", "line"),
        ('name = "dibber"', "name = 3", "'name' must be"),
        ("measure_us = 500.0", "measure_us = 0", "'run.measure_us' = 0 is outside"),
    ],
)
def test_a_wrong_parameter_file_is_refused_with_the_key_that_is_wrong(
    tmp_path, run, old, new, said
):
    file = tmp_path / "ring.toml"
    assert old in TEXT
    file.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    code, out, err = run("ring", "model", file)
    assert (code, out) == (1, "") and said in err, err
    assert str(file) in err


def test_what_is_no_parameter_file_is_refused(tmp_path, run):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000, encoding="utf-8")
    (tmp_path / "big.toml").write_text("#" * (1 << 20) + "#", encoding="utf-8")
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("bytes", "deep", "big", "folder", "pipe", "none"):
        code, out, err = run("ring", "model", tmp_path / f"{name}.toml")
        assert code == 1 and f"{name}.toml" in err


# Command ------------------------------------------------------------------------------------------


def test_the_command_prints_tables_of_channels_rings_nodes_and_links(run):
    code, out, err = run("ring", "model", "dibber", "--set", "run.measure_us=50")
    assert (code, err) == (0, "")
    for word in ("Packets", "Workloads", "Channels", "Rings", "Nodes", "Links", "events a second"):
        assert word in out


def test_json_of_a_run_is_one_document_with_all_figures(run):
    code, out, _ = run("ring", "model", "sci", "--json", "--set", "run.measure_us=20")
    found = json.loads(out)
    assert code == 0 and found["nodes"] == 4
    assert len(found["by_node"]) == len(found["by_link"]) == 4
    assert sum(n["received_mbps"] for n in found["by_node"]) == pytest.approx(
        found["total"]["mbps"]
    )


def test_a_sweep_runs_each_combination_and_draws_the_same_chart_twice(run, tmp_path):
    words = ("ring", "model", "sci", "--set", "run.measure_us=10", "--sweep", "ring.nodes=2,4,8")
    words += ("--sweep", "ring.go_bits=true,false")
    charts = []
    for name in ("a.svg", "b.svg"):
        code, out, _ = run(*words, "--chart", tmp_path / name, "--json")
        charts.append((tmp_path / name).read_bytes())
    found = json.loads(out)
    assert code == 0 and charts[0] == charts[1]
    assert [one["at"]["ring.nodes"] for one in found] == [2, 2, 4, 4, 8, 8]
    code, out, _ = run(*words)
    assert code == 0 and len(out.splitlines()) == 2 + 6


def test_one_run_is_drawn_as_png(run, tmp_path):
    file = tmp_path / "one.png"
    code, _, _ = run("ring", "model", "gigaring", "--set", "run.measure_us=20", "--chart", file)
    assert code == 0 and file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words, said",
    [
        (("nothing",), "no ring 'nothing'"),
        ((), "give a parameter file"),
        (("sci", "--set", "x"), "is not TABLE.KEY=VALUE"),
        (("sci", "--set", "ring.nodes=["), "is not a value"),
        (("sci", "--set", "ring.nodes=99"), "outside 2 … 64"),
        (("sci", "--sweep", "ring.nodes=2,99"), "outside 2 … 64"),
        (("sci", "--sweep", "ring.nodes=2,2"), "has a value twice"),
        (("sci", "--sweep", "ring.nodes=2", "--sweep", "ring.nodes=4"), "swept twice"),
        (("sci", "--set", "ring.kind=2"), "unknown key 'ring.kind'"),
        (("sci", "--set", "run.x.y=2"), "unknown key 'run.x.y'"),
        (("sci", "--set", "name.x=2"), "unknown table 'name'"),
        (("sci", "--chart", "a.pdf"), "must end with .svg or .png"),
        (("sci", "--validate"), "--validate stands alone"),
    ],
)
def test_a_command_line_that_makes_no_sense_ends_with_2(run, words, said):
    code, out, err = run("ring", "model", *words)
    assert (code, out) == (2, "") and said in err, err


# Validation ---------------------------------------------------------------------------------------


def test_the_model_matches_a_sample_of_published_figures_and_of_the_gateware():
    found = validate.rows(quick=True)
    assert len(found) >= 14
    assert [row for row in found if not row.good] == []


def test_validation_says_when_the_bench_of_ring_nodes_cannot_run(run, monkeypatch, tmp_path):
    monkeypatch.setattr(validate, "sci", lambda quick: [])
    monkeypatch.setattr(validate, "gigaring", lambda quick: [])
    monkeypatch.setattr(rtl, "BENCH", tmp_path / "none.py")
    code, _, err = run("ring", "model", "--validate")
    assert code == 1 and "needs the whole tree" in err
    for text, said in (("raise SystemExit('no compiler')", "no compiler"), ("", "it said nothing")):
        (tmp_path / "none.py").write_text(text, encoding="utf-8")
        code, _, err = run("ring", "model", "--validate")
        assert code == 1 and said in err


def test_validation_ends_with_1_if_a_row_is_outside(run, monkeypatch):
    good = validate.Row("a", 104.0, 100.0, "MB/s")
    wrong = dataclasses.replace(good, value=106.0)
    monkeypatch.setattr(validate, "rows", lambda: [good])
    assert run("ring", "model", "--validate")[0] == 0
    monkeypatch.setattr(validate, "rows", lambda: [good, wrong])
    code, out, _ = run("ring", "model", "--validate")
    assert code == 1 and "2 rows, 1 wrong" in out
    code, out, _ = run("ring", "model", "--validate", "--json")
    assert code == 1 and [row["good"] for row in json.loads(out)["rows"]] == [True, False]


def test_the_bound_of_a_ring_is_the_closed_form():
    # 64 bytes in 41 symbols, and an echo of 5: 2 · 64 / 46 bytes in 2 ns.
    assert validate.bound(SCI, 1.0) == pytest.approx(2 * 64 / 46 * 500)
