"""Cards, switches and cables as a file says, and what a script does to them.

The card is ScratchCard and the switch is Relay, both of hw/sim/devices. A card sends a word, each
relay takes one digit of it for the route, and the last card writes the rest to memory.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import struct
import subprocess

import pytest
from dibber_cli import topology

from tests.system.host_model.test_resident import GROWTH, grown
from tests.system.host_model.vfio_client import Client

NS = 1000  # picoseconds
HIGH = 0x1_0000_0000
THREAD = 1
SEND, TARGET = 0x80040, 0x80050  # of ScratchCard
PROFILES = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles"
SHAPES = ("pair", "pairs:3", "star:5", "line:3", "tree:7", "ring-of-switches:4", "torus:2x3")
RINGS = ("ring:2", "ring:4", "ring-pair:2", "ring-pair:8")  # need cards of their own


@pytest.fixture
def network(simulator, tmp_path):
    """network("star:4", "--threads", 1) starts one; a text with a line end is a file's."""

    def start(shape, *arguments):
        path = tmp_path / "topology.toml"
        path.write_text(shape if "\n" in shape else topology.text_of(shape)[0])
        return simulator("--topology", path, *arguments)

    return start


class Card:
    """A card with memory where words arrive."""

    def __init__(self, client):
        self.client = client
        client.bus_master()
        self.memory = client.map_shared(HIGH, 4096)
        client.write(TARGET, struct.pack("<Q", HIGH))

    def send(self, value):
        self.client.write(SEND, struct.pack("<I", value))

    def word(self):
        return struct.unpack("<I", self.memory[:4])[0]


class Cards(list):
    """All cards of a simulator, in the hands of one thread of the clock."""

    def __init__(self, sim, count):
        clients = [Client(sim.path(number), join=(), timeout=60) for number in range(count)]
        for client in clients:
            client.clock("JOIN", thread=THREAD)
        super().__init__(Card(client) for client in clients)

    def let_pass(self, nanoseconds):
        """Let time go by."""
        self[0].client.clock("WAIT", deadline=nanoseconds * NS, thread=THREAD)

    def flight(self, source, target, word):
        """Send a word: (what came, nanoseconds from the call to memory)."""
        client = self[target].client
        before = client.clock("NOW", thread=THREAD).now
        self[source].send(word)
        after = client.clock("WAIT", watch=HIGH, length=4, deadline=50_000 * NS, thread=THREAD).now
        return self[target].word(), (after - before) / NS

    def close(self):
        """All clients go."""
        for card in self:
            card.client.close()


# Ways ---------------------------------------------------------------------------------------------

# From the call to memory without the cables: 200 ns and one beat to the card, two beats and 200 ns
# back.
ENDS_NS = 200 + 8 * 3 + 200
CABLE_NS = 160  # 155 ns in whole cycles
RELAY_NS = 8


@pytest.mark.parametrize("switches", [0, 1, 3])
def test_a_word_takes_all_cables_and_switches_of_its_way(network, switches):
    cards = Cards(network(f"line:{switches}"), 2)
    cards.let_pass(4000)
    word = 0x5
    for _ in range(switches):
        word = word << 4 | 1
    came, taken = cards.flight(0, 1, word)
    assert came == 0x5
    assert taken == ENDS_NS + (switches + 1) * CABLE_NS + switches * RELAY_NS


def test_each_cable_has_its_own_length(network):
    text = """
        cards = 3
        [[switch]]
        name = "hub"
        ports = 4
        [[cable]]
        ends = ["card0", "hub:0"]
        [[cable]]
        ends = ["hub:1", "card1"]
        length_m = 0
        [[cable]]
        ends = ["card2:0", "hub:3"]
        length_m = 50.0
    """
    cards = Cards(network(text), 3)
    cards.let_pass(4000)
    # 0 m: 140 ns are 18 cycles. 50 m: 390 ns are 49 cycles.
    for target, turn, cycles in ((1, 1, 18), (2, 3, 49)):
        came, taken = cards.flight(0, target, 0x70 | turn)
        assert (came, taken) == (7, ENDS_NS + CABLE_NS + RELAY_NS + 8 * cycles)


def test_a_star_joins_each_card_with_each(network):
    cards = Cards(network("star:4"), 4)
    cards.let_pass(4000)
    for source in range(4):
        for target in range(4):
            if target != source:
                word = 0x100 + 16 * source + target
                turn = (target - source) % 4
                assert cards.flight(source, target, word << 4 | turn)[0] == word


def test_pairs_do_not_hear_one_another(network):
    cards = Cards(network("pairs:2"), 4)
    cards.let_pass(4000)
    assert cards.flight(2, 3, 9)[0] == 9
    assert [card.word() for card in cards] == [0, 0, 0, 9]


def test_a_cable_with_one_end_leads_nowhere_and_a_port_without_a_cable_hears_nothing(network):
    text = 'cards = 2\n[[cable]]\nends = ["card0"]\n'
    cards = Cards(network(text), 2)
    for card in cards:
        card.send(3)
    cards.let_pass(10_000)
    assert [card.word() for card in cards] == [0, 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_starts_and_offers_its_cards(network, shape):
    sim = network(shape, "--participants", 0)
    cards = topology.text_of(shape)[1]
    assert sorted(path.name for path in sim.directory.glob("*.sock")) == [
        f"card{n}.sock" for n in range(cards)
    ]
    statistics = sim.stop()
    assert len(statistics["cards"]) == cards
    assert len(statistics["cables"]) == len(topology.named(shape).cables)


def test_a_pair_from_a_file_is_the_pair_without_one(simulator, network):
    def run(sim):
        cards = Cards(sim, 2)
        cards.let_pass(4000)
        times = [cards.flight(0, 1, word)[1] for word in (1, 2, 3)]
        cards.close()
        statistics = sim.ended()
        del statistics["wall_seconds"], statistics["cpu_seconds"]
        del statistics["cycles_per_second_per_card"]
        return times, statistics

    options = ("--ber", "1e-4", "--exit-when-done")
    times, statistics = run(network("pair", *options))
    assert [cable["name"] for cable in statistics.pop("cables")] == ["cable0"]
    assert (times, statistics) == run(simulator(*options))
    assert statistics["cards"][0]["cable"]["bit_errors"] > 0


# Threads ------------------------------------------------------------------------------------------

SCRIPT = """
    5    errors cable0 1e-3     # a card's cable
    20   pull   cable6          # between two switches
    30   power  card1
    40   off    switch2
    55   plug   cable6
    70   on     switch2
    75   errors cable0 0
"""


def run_with(network, tmp_path, threads):
    """Words around a ring under a script: what came and when, and the statistics of the cables."""
    script = tmp_path / "script.txt"
    script.write_text(SCRIPT)
    options = ("--threads", threads, "--script", script, "--exit-when-done")
    sim = network("ring-of-switches:4", *options)
    cards = Cards(sim, 4)
    came = []
    for round_ in range(12):
        for number, card in enumerate(cards):
            # To the next switch by port 1, and there from port 2 to the card.
            card.send(((round_ * 4 + number + 1) << 4 | 2) << 4 | 1)
        cards.let_pass(8000)
        came.append([card.word() for card in cards])
    cards.close()
    statistics = sim.ended()
    return came, statistics["cycles"], statistics["cards"], statistics["cables"]


def test_results_do_not_depend_on_the_number_of_threads(network, tmp_path):
    one = run_with(network, tmp_path, 1)
    assert run_with(network, tmp_path, 2) == run_with(network, tmp_path, 7) == one
    came, _, _, cables = one
    assert came[0] != came[1] and cables[0]["ends"][0]["bit_errors"] > 0


@pytest.mark.fault
def test_a_network_takes_no_memory_as_time_goes_on(network):
    """A ring of switches with an open port each, one of them without power, one cable pulled."""
    events = ("--at", "1 off switch1", "--at", "1 pull cable6")
    sim = network("ring-of-switches:4", "--participants", 1, *events)
    client = Client(sim.path(0), timeout=60)
    assert grown(sim, lambda: client.wait(deadline=3_000_000 * NS)) <= GROWTH


# Scripts ------------------------------------------------------------------------------------------


def test_a_cable_that_is_pulled_carries_nothing_until_it_is_plugged(network):
    events = ("--at", "20 pull cable1", "--at", "40 plug cable1")
    cards = Cards(network("line:1", *events), 2)
    cards.let_pass(25_000)
    cards[0].send(0x61)
    cards.let_pass(5_000)
    assert cards[1].word() != 6
    cards.let_pass(15_000)
    assert cards.flight(0, 1, 0x71)[0] == 7


def test_a_switch_without_power_passes_nothing_and_comes_back_as_new(network):
    events = ("--at", "20 off switch0", "--at", "40 on switch0")
    sim = network("line:1", *events)
    cards = Cards(sim, 2)
    cards.let_pass(25_000)
    cards[0].send(0x61)
    cards.let_pass(5_000)
    assert cards[1].word() != 6
    cards.let_pass(15_000)
    assert cards.flight(0, 1, 0x71)[0] == 7


def test_a_card_without_power_answers_with_ones_and_has_forgotten_all(network):
    events = ("--at", "20 off card1", "--at", "60 on card1", "--at", "100 power card1")
    cards = Cards(network("pair", *events), 2)
    cards[1].client.write(0x100, b"kept")
    assert cards[1].client.read(0x100, 4) == b"kept"
    cards.let_pass(25_000)
    assert cards[1].client.read(0x100, 4) == b"\xff" * 4
    cards[1].client.write(0x100, b"lost")
    cards.let_pass(40_000)
    assert cards[1].client.read(0x100, 4) == bytes(4)
    cards[1].client.write(0x100, b"anew")
    assert cards[1].client.read(0x100, 4) == b"anew"
    cards.let_pass(40_000)
    assert cards[1].client.read(0x100, 4) == bytes(4)


def test_bit_errors_begin_and_end_at_their_times_on_one_cable(network):
    events = ("--at", "10 errors cable1 1e-2", "--at", "20 errors cable1 0")
    sim = network("pairs:2", *events, "--exit-when-done")
    cards = Cards(sim, 4)
    cards.let_pass(100_000)
    cards.close()
    one, other = sim.ended()["cables"]
    assert [end["bit_errors"] for end in one["ends"]] == [0, 0]
    # 1,250 words of 40 bits: 500 errors expected.
    for end in other["ends"]:
        assert end["bit_errors"] == pytest.approx(500, abs=120)


def test_a_fault_may_name_its_cable(network):
    sim = network("pairs:2", "--fault", "cable1=noise:10:20:0", "--exit-when-done")
    cards = Cards(sim, 4)
    cards.let_pass(50_000)
    cards.close()
    errors = [card["cable"]["code_errors"] for card in sim.ended()["cards"]]
    assert errors[2] > 1000 and errors[0] == errors[1] == errors[3] == 0


# Mistakes -----------------------------------------------------------------------------------------


@pytest.fixture
def refused(programs, tmp_path):
    """The message of a simulator that does not start."""

    def run(text, *arguments):
        path = tmp_path / "bad.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        result = subprocess.run(
            [
                *(programs / "dibber-sim-test", "--profile", PROFILES / "gen2x4.toml"),
                *("--socket-dir", tmp_path, "--topology", path),
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode in (1, 2) and result.stdout == ""
        assert not list(tmp_path.glob("*.sock"))
        return result.stderr

    return run


CABLE = "cards = 2\n[[cable]]\n"
SWITCH = "cards = 2\n[[switch]]\n"
HUB = 'cards = 3\n[[switch]]\nname = "hub"\nports = 4\n[[cable]]\n'


@pytest.mark.fault
@pytest.mark.parametrize(
    "text, message",
    [
        ("", "key 'cards' is missing"),
        ("cards = 0\n", "line 1: 'cards' = 0 is outside 1 … 16"),
        ("cards = 17\n", "line 1: 'cards' = 17 is outside 1 … 16"),
        ("cards = 2.0\n", "line 1: 'cards' must be a whole number"),
        ("cards = true\n", "line 1: 'cards' must be a whole number"),
        ("cards = 2\nspare = 1\n", "line 2: unknown key 'spare'"),
        ("cards = 2\nswitch = 3\n", "line 2: 'switch' must be tables: [[switch]]"),
        ("cards = 2\n[cable]\nends = []\n", "line 2: 'cable' must be tables: [[cable]]"),
        ("cards = \n", "topology bad.toml: line 1: "),
        (b"cards = 2 # \xff\n", "topology bad.toml: line 1: "),
        (SWITCH, "line 2: switch 'switch0': key 'ports' is missing"),
        (SWITCH + "ports = 5\n", "line 3: switch 'switch0': a switch has 4, 8 or 16 ports"),
        (SWITCH + "ports = 1000\n", "line 3: 'ports' = 1000 is outside 4 … 16"),
        (SWITCH + 'ports = 4\nname = "card1"\n', "line 2: the name 'card1' is used twice"),
        (SWITCH + 'ports = 4\nname = "a b"\n', "line 4: 'name' must be a word"),
        (SWITCH + f'ports = 4\nname = "{"a" * 33}"\n', "line 4: 'name' must be a word"),
        (SWITCH + "ports = 4\nport = 4\n", "line 4: unknown key 'port' of a switch"),
        ("cards = 1\n" + "[[switch]]\nports = 4\n" * 65, "line 130: more than 64 switches"),
        (CABLE, "line 2: cable 'cable0': key 'ends' is missing"),
        (
            CABLE + 'ends = ["card0", "card1"]\none_way = true\n',
            "line 4: cable 'cable0': one way is",
        ),
        (CABLE + 'ends = ["card0", "card1"]\none_way = 1\n', "must be true or false"),
        (CABLE + "ends = []\n", "line 3: cable 'cable0': 'ends' must be one or two of"),
        (CABLE + 'ends = ["card0", "card1", "card1"]\n', "'ends' must be one or two of"),
        (CABLE + "ends = [0, 1]\n", 'an end must be "UNIT" or "UNIT:PORT"'),
        (CABLE + 'ends = ["card0", "card2"]\n', "there is no card or switch 'card2'"),
        (CABLE + 'ends = ["card0", "card1:1"]\n', "'card1:1': card1 has the ports 0 … 0"),
        (CABLE + 'ends = ["card0", "card0"]\n', "port 0 of card0 has cable 'cable0' already"),
        (
            CABLE + 'ends = ["card0", "card1"]\nlength_m = -1\n',
            "line 4: 'length_m' = -1 is outside",
        ),
        (CABLE + 'ends = ["card0", "card1"]\nlength_m = nan\n', "line 4: 'length_m' = nan is"),
        (CABLE + 'ends = ["card0", "card1"]\nbit_error_rate = "x"\n', "must be a number"),
        (CABLE + 'ends = ["card0", "card1"]\nbit_error_rate = 0.5\n', "is outside 0 … 0.1"),
        (HUB + 'ends = ["card0", "hub"]\n', "'hub' has 4 ports: say which, as in 'hub:0'"),
        (HUB + 'ends = ["card0", "hub:4"]\n', "'hub:4': hub has the ports 0 … 3"),
        (HUB + 'ends = ["card0", "hub:-1"]\n', "'hub:-1': hub has the ports 0 … 3"),
        (HUB + 'ends = ["card0", "hub:99999999999"]\n', "hub has the ports 0 … 3"),
        (HUB + 'ends = ["card0", "hub:"]\n', "'hub:': hub has the ports 0 … 3"),
        (
            HUB + 'ends = ["card0", "hub:1"]\n[[cable]]\nends = ["card1", "hub:1"]\n',
            "line 8: cable 'cable1': port 1 of hub has cable 'cable0' already",
        ),
        (
            HUB + 'ends = ["card0", "hub:1"]\n[[cable]]\nname = "cable0"\nends = ["card1"]\n',
            "line 7: the name 'cable0' is used twice",
        ),
    ],
)
def test_a_wrong_topology_is_refused_with_line_and_name(refused, text, message):
    error = refused(text)
    assert error.startswith("dibber-sim: topology bad.toml: ") and message in error


PAIR = topology.text_of("pair")[0]


@pytest.mark.fault
@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--cards", "2"), "--cards and --topology exclude each other"),
        (("--fault", "cable1=noise"), "--fault: there is no cable 'cable1'"),
        (("--fault", "=noise"), "names no cable before '='"),
        (("--fault", "cable0=worn"), "--fault: 'worn' is not KIND"),
        (("--at", ""), "--at '': '' is no time in microseconds"),
        (("--at", "x pull cable0"), "'x' is no time in microseconds"),
        (("--at", "-1 pull cable0"), "'-1' is no time in microseconds"),
        (("--at", "nan pull cable0"), "'nan' is no time in microseconds"),
        (("--at", "1e13 pull cable0"), "'1e13' is no time in microseconds"),
        (("--at", "1 cut cable0"), "'cut' is not pull, plug, errors, off, on or power"),
        (("--at", "1 pull"), "pull of which cable, card or switch?"),
        (("--at", "1 pull cable7"), "--at '1 pull cable7': there is no cable 'cable7'"),
        (("--at", "1 pull card0"), "there is no cable 'card0'"),
        (("--at", "1 off cable0"), "there is no card or switch 'cable0'"),
        (("--at", "1 plug cable0"), "'cable0' is plugged already"),
        (("--at", "1 pull cable0", "--at", "2 pull cable0"), "'cable0' is pulled already"),
        (("--at", "1 on card0"), "'card0' is on already"),
        (("--at", "1 off card0", "--at", "2 power card0"), "'card0' is off already"),
        (("--at", "1 errors cable0"), "'' is no bit error rate, 0 … 0.1"),
        (("--at", "1 errors cable0 2"), "'2' is no bit error rate"),
        (("--at", "1 pull cable0 now"), "'now' is too much"),
        (("--at", "1 errors cable0 0 now"), "'now' is too much"),
        (("--script", "/none/x"), "script /none/x: No such file or directory"),
        (("--script", "/"), "script /: Is a directory"),
    ],
)
def test_a_wrong_event_is_refused_with_its_text(refused, arguments, message):
    assert message in refused(PAIR, *arguments)


@pytest.mark.fault
def test_a_wrong_line_of_a_script_is_named(refused, tmp_path):
    script = tmp_path / "script"
    script.write_text("# a comment\n\n1 pull cable0 # and one more\n2 push cable0\n")
    assert f"script {script}: line 4: 'push' is not pull" in refused(PAIR, "--script", script)


@pytest.mark.fault
def test_a_file_that_is_not_there_is_named(refused, tmp_path):
    assert "topology none: no such file" in refused(PAIR, "--topology", tmp_path / "none")
    assert ": not a plain file" in refused(PAIR, "--topology", tmp_path)


RING = ("--set", 'link.fabric="ring"')
ONE_WAY = 'cards = 2\n[[cable]]\none_way = true\nends = ["card0", "card1"]\n'


@pytest.mark.fault
@pytest.mark.parametrize(
    "text, arguments, message",
    [
        (ONE_WAY.replace(', "card1"', ""), (), "a cable that goes one way has two ends"),
        (
            ONE_WAY + '[[cable]]\none_way = true\nends = ["card0", "card0"]\n',
            (),
            "line 7: cable 'cable1': port 0 of card0 has cable 'cable0' already",
        ),
        (
            ONE_WAY + '[[cable]]\nends = ["card1"]\n',
            (),
            "port 0 of card1 has cable 'cable0' already",
        ),
        (ONE_WAY + "[[switch]]\nports = 4\n", (), "a switch has no port for such a link"),
        (ONE_WAY, ("--fault", "loopback"), "cable 'cable0' goes one way: it has direction 0 alone"),
        (ONE_WAY, ("--fault", "noise:0:1:1"), "cable 'cable0' goes one way"),
    ],
)
def test_a_ring_that_makes_no_sense_is_refused(refused, text, arguments, message):
    assert message in refused(text, *RING, *arguments)


RING_PAIR = ("--set", 'link.fabric="ring-pair"')
TWO_WAYS = 'cards = 2\n[[cable]]\nends = ["card0:0", "card1:1"]\n'


@pytest.mark.fault
@pytest.mark.parametrize(
    "text, message",
    [
        (TWO_WAYS.replace("card0:0", "card0"), "'card0' has 2 ports: say which, as in 'card0:0'"),
        (TWO_WAYS.replace("card0:0", "card0:2"), "card0 has the ports 0 … 1"),
        (TWO_WAYS + '[[cable]]\nends = ["card1:1"]\n', "port 1 of card1 has cable 'cable0'"),
        (TWO_WAYS + "[[switch]]\nports = 4\n", "a switch has no port for such a link"),
        (TWO_WAYS + "one_way = true\n", "one way is for a ring"),
    ],
)
def test_a_pair_of_rings_that_makes_no_sense_is_refused(refused, text, message):
    assert message in refused(text, *RING_PAIR)


def test_the_fabric_of_a_file_is_what_its_cables_say():
    of = lambda name: topology.fabric_of(topology.text_of(name)[0])
    assert (of("ring:4"), of("ring-pair:4"), of("star:4")) == ("ring", "ring-pair", None)
    for ends in ('"card0:1"', "1", "[1, {}]", '["card0:10"]'):
        assert topology.fabric_of(f"[[cable]]\nends = {ends}\n") is None


def test_each_cable_of_a_ring_goes_one_way_and_has_its_own_length_and_faults(network):
    text = ONE_WAY + '[[cable]]\none_way = true\nlength_m = 23\nends = ["card1", "card0"]\n'
    cards = Cards(network(text, *RING, "--at", "100 pull cable1"), 2)
    cards.let_pass(4000)
    assert cards.flight(0, 1, 5)[1] == ENDS_NS + CABLE_NS
    # 20 m more, at 5 ns a metre, in whole cycles.
    came, taken = cards.flight(1, 0, 6)
    assert came == 6 and 96 <= taken - (ENDS_NS + CABLE_NS) <= 104
    cards.let_pass(200_000)
    assert cards.flight(0, 1, 7)[0] == 7
    assert cards.flight(1, 0, 8)[0] == 6


def test_the_command_prints_each_shape_as_toml_and_json(capsys):
    from dibber_cli.main import main

    for shape in (*SHAPES, *RINGS):
        assert main(["sim", "topology", shape]) == 0
        assert capsys.readouterr().out == topology.text_of(shape)[0]
        assert main(["sim", "topology", shape, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["cards"] == topology.named(shape).cards


@pytest.mark.fault
@pytest.mark.parametrize(
    "word, message",
    [
        ("star", "is not star:N with whole numbers"),
        ("star:x", "is not star:N with whole numbers"),
        ("star:17", "17 is outside 2 … 16"),
        ("ring:1", "1 is outside 2 … 16"),
        ("star:99999", "is not star:N"),
        ("torus:4", "is not torus:WxH"),
        ("torus:8x8", "has 64 cards; there are at most 16 nodes"),
        ("mesh:4", "no topology 'mesh:4'"),
    ],
)
def test_a_shape_that_is_none_is_refused(capsys, word, message):
    from dibber_cli.main import main

    assert main(["sim", "topology", word]) == 2
    assert message in capsys.readouterr().err
