"""Cards on a ring: each operation, a cable that is pulled, a card that loses its power, and what
the commands say. `make test-ring` builds the card.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import os
import subprocess
import xml.dom.minidom

import libdibber
import numpy as np
import pytest
from dibber.interface.description import RIGHT, STATUS
from dibber_cli import paths, topology
from dibber_cli.link import status
from dibber_cli.main import main
from libdibber.mailbox import MESSAGE, ROOM

from tests.system.network import completions, opened, put_blocks, register

NARROW = "gen2x1"  # the card is built at 64 bits
PART = 1 << 14  # bytes that each card puts into each other one
EVERYTHING = RIGHT.LOCAL_READ | RIGHT.LOCAL_WRITE | RIGHT.REMOTE_READ | RIGHT.REMOTE_WRITE
MESSAGES = (0, 8, 57, 505, 3000)  # bytes


@pytest.fixture
def ring(seed):
    """ring(nodes, options) opens cards on a ring, which know their routes."""

    def open_ring(nodes, *options):
        return opened(f"ring:{nodes}", seed=seed, options=options, profile_name=NARROW)

    return open_ring


def payload(seed, source, target, length=PART):
    return np.random.default_rng((seed, source, target)).integers(0, 256, length, np.uint8)


def own(side):
    """A step: read the card's link."""
    return status.read(side.card)


# Operations ---------------------------------------------------------------------------------------


def memory_for(cards, seed):
    """A step: memory with a part for each other card to read, one to write, and words; its key."""

    def step(side):
        memory = libdibber.alloc((2 * cards + 1) * PART)
        memory[:] = 0xEE
        for other in range(cards):
            memory[other * PART : (other + 1) * PART] = payload(seed, side.node, other)
        memory[2 * cards * PART :] = 0
        side.region = side.endpoint.register(memory, EVERYTHING)
        return side.region.key

    return step


def put_to_all(cards, keys):
    """A step: a part to each other card, strided at the target for every second one."""

    def step(side):
        others = [(side.node + n) % cards for n in range(1, cards)]
        for other in others:
            there = (cards + side.node) * PART
            if other % 2:
                side.endpoint.put(
                    side.region.key, other * PART, keys[other], there, PART, node=other
                )
            else:
                # Blocks of 24 bytes go on to where those of a stride of 48 end, and begin again.
                for half in range(2):
                    source = libdibber.Walk(
                        side.region.key, 24, other * PART + 24 * half, ((PART // 48, 48),)
                    )
                    target = libdibber.Walk(keys[other], 24, there + 24 * half, ((PART // 48, 48),))
                    side.endpoint.put_strided(source, target, node=other)
        return completions(side, sum(1 if other % 2 else 2 for other in others))

    return step


def get_from_all(cards, keys):
    """A step: read back what this card put to each other one, behind the words."""

    def step(side):
        side.back = libdibber.alloc(cards * PART)
        region = side.endpoint.register(side.back, RIGHT.LOCAL_WRITE)
        for n in range(1, cards):
            other = (side.node + n) % cards
            side.endpoint.get(
                keys[other],
                (cards + side.node) * PART,
                region.key,
                other * PART,
                PART,
                node=other,
            )
        return completions(side, cards - 1)

    return step


def add_everywhere(cards, keys, times):
    """A step: add the node's number and one to a word of each other card."""

    def step(side):
        found = []
        for _ in range(times):
            for n in range(1, cards):
                other = (side.node + n) % cards
                side.endpoint.fetch_add(keys[other], 2 * cards * PART, side.node + 1, node=other)
            found += completions(side, cards - 1)
        return found

    return step


def open_mailbox(cards):
    """A step: a mailbox with a place for each card; its addresses."""

    def step(side):
        side.mailbox = side.endpoint.mailbox(peers=cards, slots=4, slot_bytes=512, max_length=4096)
        return [side.mailbox.address(peer) for peer in range(cards)]

    return step


def connect(cards, addresses):
    def step(side):
        for other in range(cards):
            if other != side.node:
                side.mailbox.connect(addresses[other][side.node], other)

    return step


def exchange(cards, seed):
    """A step: messages to all others, while theirs come; those that came, by sender."""

    def step(side):
        others = [n for n in range(cards) if n != side.node]
        left = {
            other: [payload(seed, side.node, other, n).tobytes() for n in MESSAGES]
            for other in others
        }
        came = {other: [] for other in others}
        while any(left.values()) or any(len(got) < len(MESSAGES) for got in came.values()):
            busy = False
            for other, data in left.items():
                if data and side.mailbox.send(data[0], other):
                    data.pop(0)
                    busy = True
            if message := side.mailbox.receive():
                came[message[1]].append(message[0])
                busy = True
            if not busy:
                side.mailbox.wait(MESSAGE | ROOM, 100_000)
        return came

    return step


@pytest.mark.parametrize("nodes", [2, 4])
def test_puts_gets_atomics_and_messages_between_all_cards_of_a_ring_arrive_whole(ring, nodes, seed):
    cards = nodes
    with ring(nodes) as network:
        for found in network.map():
            assert found["hosts"] == list(range(cards))
            assert sorted(found["ring"]["order"]) == list(range(cards))
        keys = network.together(memory_for(cards, seed))
        for answers in network.together(put_to_all(cards, keys)):
            assert set(answers) == {STATUS.OK}
        for answers in network.together(get_from_all(cards, keys)):
            assert answers == [STATUS.OK] * (cards - 1)
        for answers in network.together(add_everywhere(cards, keys, 5)):
            assert answers == [STATUS.OK] * (5 * (cards - 1))

        def compare(side):
            memory = side.region.memory
            for other in range(cards):
                written = memory[(cards + other) * PART : (cards + other + 1) * PART]
                if other == side.node:
                    assert (written == 0xEE).all()
                    continue
                # A strided put leaves what is behind its last whole block.
                whole = PART if side.node % 2 else PART // 48 * 48
                assert (written[:whole] == payload(seed, other, side.node)[:whole]).all()
                assert (written[whole:] == 0xEE).all()
                back = side.back[other * PART : (other + 1) * PART]
                whole = PART if other % 2 else PART // 48 * 48
                assert (back[:whole] == payload(seed, side.node, other)[:whole]).all()
            word = int(memory[2 * cards * PART :][:8].view(np.uint64)[0])
            assert word == 5 * sum(n + 1 for n in range(cards) if n != side.node)

        network.together(compare)
        addresses = network.together(open_mailbox(cards))
        network.together(connect(cards, addresses))
        for node, came in enumerate(network.together(exchange(cards, seed))):
            for other, messages in came.items():
                assert messages == [payload(seed, other, node, n).tobytes() for n in MESSAGES]
        network.together(lambda side: side.mailbox.close())

        links = network.together(own)
        assert sorted(link["ring"]["address"] for link in links) == list(range(nodes))
        assert sum(link["ring"]["scrubber"] for link in links) == 1
        assert all(link["state"] == "UP" and link["ring"]["nodes"] == nodes for link in links)
        counters = network.together(lambda side: side.card.info()["counters"])
        assert all(
            c["link_lost"] == c["code_errors"] == c["packet_misrouted"] == 0 for c in counters
        )


def put_much(cards, keys):
    """A step: a part to each other card, all at once."""

    def step(side):
        others = [(side.node + n) % cards for n in range(1, cards)]
        for other in others:
            there = (cards + side.node) * PART
            side.endpoint.put(side.region.key, other * PART, keys[other], there, PART, node=other)
        return completions(side, len(others))

    return step


def test_eight_cards_that_all_send_to_all_rewind_no_flow(ring, seed):
    """Packets wait in the cards for longer than 100 µs. They have not left, so nothing is sent
    again."""
    cards = 8
    with ring(cards) as network:
        network.map()
        keys = network.together(memory_for(cards, seed))
        for statuses in network.together(put_much(cards, keys)):
            assert statuses == [STATUS.OK] * (cards - 1)
        for counters in network.together(lambda side: side.card.info()["counters"]):
            assert counters["packets_withdrawn"] == counters["packet_duplicate"] == 0

        def compare(side):
            for other in set(range(cards)) - {side.node}:
                written = side.region.memory[(cards + other) * PART :][:PART]
                assert (written == payload(seed, other, side.node)).all()

        network.together(compare)


# Faults -------------------------------------------------------------------------------------------

HALF = 1 << 14
PULLED_US = 3000
QUICK_US = 10_000  # of a cable that is back before the replay gives up, after 40 ms
LONG_US = 46_000  # the replay gives up after 40 ms


def fill(seed):
    def step(side):
        side.memory[:HALF] = payload(seed, side.node, 0, HALF)
        side.memory[HALF:] = 0xEE

    return step


def circle(network, keys, until_us):
    """All cards put to the next one, again and again; the statuses of each."""
    steps = [
        put_blocks((n + 1) % network.cards, keys[(n + 1) % network.cards], 4096, until_us * 1000)
        for n in range(network.cards)
    ]
    return [(set(statuses), longest) for statuses, longest, _ in network.together(*steps)]


def compare_circle(network, seed):
    for node in range(network.cards):
        wanted = payload(seed, node, 0, HALF)
        there = network.on({(node + 1) % network.cards: lambda side: side.memory[HALF:].copy()})
        assert (there[(node + 1) % network.cards] == wanted).all()


@pytest.mark.parametrize("nodes", [2, 4])
def test_a_cable_of_the_ring_that_is_pulled_for_10_ms_loses_no_byte(ring, nodes, seed):
    options = ["--at", f"{PULLED_US} pull cable1", "--at", f"{PULLED_US + QUICK_US} plug cable1"]
    with ring(nodes, *options) as network:
        network.map()
        keys = network.together(register(2 * HALF))
        network.together(fill(seed))
        for statuses, longest in circle(network, keys, PULLED_US + QUICK_US + 500):
            assert statuses == {STATUS.OK} and longest > QUICK_US * 1000 * 0.9
        compare_circle(network, seed)
        # Each card leaves UP, whichever cable is pulled.
        for link in network.together(own):
            assert link["counters"]["link_lost"] >= 1 and link["state"] == "UP"


def test_a_cable_that_is_pulled_for_46_ms_gives_timeout_and_then_the_ring_works_again(ring, seed):
    options = ["--at", f"{PULLED_US} pull cable0", "--at", f"{PULLED_US + LONG_US} plug cable0"]
    with ring(2, *options) as network:
        network.map()
        keys = network.together(register(2 * HALF))
        network.together(fill(seed))
        network.together(lambda side: side.sleep(max(1, PULLED_US * 1000 + 100_000 - side.now())))
        for link in network.together(own):
            assert link["state"] != "UP" and link["ring"]["nodes"] in (0, 2)
        steps = [put_once(1 - n, keys[1 - n]) for n in range(2)]
        assert network.together(*steps) == [[STATUS.TIMEOUT]] * 2

        network.together(
            lambda side: side.sleep(max(1, (PULLED_US + LONG_US) * 1000 + 200_000 - side.now()))
        )
        # A flow that was given up begins again with the first put after its end.
        assert network.together(*steps) == [[STATUS.OK]] * 2
        sent = [payload(seed, node, 0, HALF)[:4096] for node in range(2)]
        for node, memory in enumerate(network.together(lambda side: side.memory[HALF:].copy())):
            assert (memory[:4096] == sent[1 - node]).all() and (memory[4096:] == 0xEE).all()


def put_once(node, key):
    """A step: put 4096 bytes; its status."""

    def step(side):
        side.endpoint.put(side.region.key, 0, key, HALF, 4096, node=node)
        return completions(side, 1)

    return step


def test_a_card_that_loses_its_power_leaves_the_ring_and_the_others_go_on(ring, seed):
    """Card 2 is off for a moment and comes back without a host, and so without a nonce."""
    off_us, on_us = PULLED_US, PULLED_US + 2000
    options = ["--at", f"{off_us} off card2", "--at", f"{on_us} on card2"]
    with ring(4, *options) as network:
        before = {found["own"]: found["ring"]["order"] for found in network.map()}
        keys = network.together(register(2 * HALF))
        network.together(fill(seed))

        until = (on_us + 1000) * 1000
        targets = {0: 1, 1: 3, 3: 0}
        answers = network.on(
            {
                source: put_blocks(target, keys[target], 4096, until)
                for source, target in targets.items()
            }
        )
        for statuses, longest, _ in answers.values():
            assert set(statuses) == {STATUS.OK} and longest > 1_900_000
        memories = network.on(dict.fromkeys(targets, lambda side: side.memory[HALF:].copy()))
        for source, target in targets.items():
            assert (memories[target] == payload(seed, source, 0, HALF)).all()
        links = network.on(dict.fromkeys(targets, own))
        # The lowest nonce of the others makes the scrubber, if it was card 2.
        assert sum(link["ring"]["scrubber"] for link in links.values()) == 1
        assert all(link["ring"]["nodes"] == 4 for link in links.values())
        assert before[0] == before[1] == before[3]


# Commands -----------------------------------------------------------------------------------------


def write_profile(folder, fabric):
    """A file in `folder`: the profile NARROW with its cards on this fabric; its name."""
    text = (paths.PROFILES / f"{NARROW}.toml").read_text(encoding="utf-8")
    path = folder / f"narrow-{fabric}.toml"
    path.write_text(
        text.replace(f'name = "{NARROW}"', f'name = "narrow-{fabric}"').replace(
            "[link]\n", f'[link]\nfabric = "{fabric}"\n'
        ),
        encoding="utf-8",
    )
    return str(path)


@pytest.fixture
def profile_file(tmp_path):
    """The profile NARROW with its cards on a ring."""
    return write_profile(tmp_path, "ring")


def test_the_map_of_a_ring_is_told_as_a_circle_of_nodes_and_drawn(
    capsys, tmp_path, monkeypatch, seed
):
    # Graphviz need not be here: a script keeps the graph.
    (tmp_path / "dot").write_text("#!/bin/sh\necho \"<svg>$(grep -c -- '->')</svg>\"\n")
    (tmp_path / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    words = ["map", "--profile", NARROW, "--topology", "ring:3", "--seed", str(seed)]
    assert main([*words, "--svg", str(tmp_path / "ring.svg")]) == 0
    text = capsys.readouterr().out
    assert "by a ring of 3 nodes" in text and "switch" not in text
    circle = next(line for line in text.splitlines() if " → node" in line).split(" → ")
    assert circle[0] == circle[-1] and sorted(circle[1:]) == ["node 0", "node 1", "node 2"]
    picture = xml.dom.minidom.parse(str(tmp_path / "ring.svg"))
    assert picture.documentElement.firstChild.data == "3"


def test_the_link_test_of_a_ring_measures_both_cables_and_speaks_of_a_ring(
    capsys, profile_file, seed
):
    words = ["link", "test", "--profile", profile_file, "--seed", str(seed)]
    assert main([*words, "--megabytes", "1", "--milliseconds", "0.1", "--length", "20"]) == 0
    text = capsys.readouterr().out
    assert "up, a ring of 2 nodes" in text and "way round" in text and "STOP" not in text
    said = next(line for line in text.splitlines() if line.startswith("cables, mean"))
    assert round(abs(float(said.split()[2]) - 20), 1) <= 0.8
    assert "Good: " in text


def test_prbs_on_a_ring_finds_the_cable_that_is_bad(capsys, profile_file, seed):
    """cable1 leads from card 1 to card 0."""
    words = ["link", "prbs", "--profile", profile_file, "--milliseconds", "0.1", "--json"]
    words += ["--seed", str(seed)]

    def found(code, *more):
        assert main([*words, *more]) == code
        return json.loads(capsys.readouterr().out)["cards"]

    assert [(card["locked"], card["errors"]) for card in found(0)] == [(True, 0)] * 2
    assert [card["locked"] for card in found(1, "--fault", "cable1=noise")] == [False, True]
    assert main([*words, "--loopback", "phy"]) == 1
    assert "does not know its own words" in capsys.readouterr().err


def test_the_link_bench_refuses_a_ring(capsys, profile_file):
    assert main(["bench", "link", "--profile", profile_file]) == 1
    assert "which has no STOP" in capsys.readouterr().err


def test_a_simulator_refuses_cards_and_topologies_that_do_not_fit(tmp_path):
    program = paths.BUILD / "sim" / "dibber-sim-64-ring"
    (tmp_path / "ring.toml").write_text(topology.text_of("ring:2")[0])

    def refusal(*options):
        command = [program, "--profile", paths.PROFILES / f"{NARROW}.toml"]
        done = subprocess.run(
            [*command, "--socket-dir", tmp_path, *options], capture_output=True, text=True
        )
        assert done.returncode != 0
        return done.stderr

    assert "fabric ring in place of direct" in refusal()
    assert "one way is for a ring" in refusal("--topology", tmp_path / "ring.toml")
    assert '"ring", "ring-pair" or "bonded"' in refusal("--set", 'link.fabric="star"')
    star = tmp_path / "star.toml"
    star.write_text(topology.text_of("star:2")[0])
    assert "a switch has no port for such a link" in refusal(
        "--set", 'link.fabric="ring"', "--topology", star
    )
    looped = ["--set", 'link.fabric="ring"', "--fault", "loopback"]
    assert "goes one way: it has direction 0 alone" in refusal(*looped)
