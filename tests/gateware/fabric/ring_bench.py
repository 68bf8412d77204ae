"""A ring of bare nodes in Verilator, or a pair of rings: build it, run it, and read its result.

python tests/gateware/fabric/ring_bench.py nodes=8 pattern=uniform
python tests/gateware/fabric/ring_bench.py pair nodes=8 cut=cable
"""

# SPDX-License-Identifier: BSD-2-Clause

import fcntl
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[2] / "build" / "tests"

# nodes    2 to 16
# delay    words on each cable: 17 are both transceivers and 0 m at 125 MHz
# words    longest packet, without its ring words; BULK takes up to 1088, the others 64
# least_words   shortest packet, at least 3
# channels bits of the channels that send: CONTROL 1, EXPRESS 2, BULK 4, spare 8
# pattern  uniform, next, half (the node across), hot (all to node 0), sender (node 0 at full load,
#          the others at `load`), single (node 0 alone)
# answers  1: each packet is answered on CONTROL with 8 words, as an acknowledgement is
# load     words a cycle that each node offers; 1 or more is as much as it can
# take     chance that a layer above takes a word in a cycle
# stall    chance that a transmitter takes no word in a cycle
# errors   chance that a word on a cable has a code error
# cuts     chance in each cycle that a cable is cut, for at most 400 cycles
# warmup, cycles, drain   cycles before, in and after the measurement
DEFAULTS = dict(
    nodes=4,
    delay=17,
    words=72,
    least_words=72,
    channels=4,
    pattern="uniform",
    answers=0,
    load=1,
    take=1,
    stall=0,
    errors=0,
    cuts=0,
    warmup=5000,
    cycles=50000,
    drain=5000,
    seed=1,
)

# A pair has three parts of `cycles` each: before the cut, while it lasts, and after it.
# cut      none; ring (a lane of ring 0), cable (both lanes of a cable) or card (all its lanes)
# settle   cycles after a cut and after its end that are not measured
# cuts     chance in each cycle of a cut of any of these kinds, for at most 20,000 cycles
# seed, words and all others as above; EXPRESS and spare take up to 128 words too
PAIR_DEFAULTS = {**DEFAULTS, "cut": "none", "settle": 20000, "cycles": 30000}


def _run(*command, **options):
    result = subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)
    assert result.returncode == 0, result.stdout + result.stderr


def _text(path):
    """Without comments, which hold a date."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if not line.startswith("//")]


def _build(folder, name):
    top = f"{name}_node"
    old, program = _text(folder / f"{top}.v"), folder / "obj" / f"V{top}"
    _run(sys.executable, "-P", HERE / "ring_node.py", folder, name)
    bench = HERE / f"{name}_bench.cc"
    changed = max(path.stat().st_mtime for path in (bench, HERE / "ring_traffic.h"))
    if program.exists() and old == _text(folder / f"{top}.v") and changed < program.stat().st_mtime:
        return program
    program.unlink(missing_ok=True)
    _run(
        *["verilator-cli", "--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast"],
        *["--no-assert", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-COMBDLY"],
        *["--top-module", top, "--Mdir", folder / "obj", "-f", folder / f"{top}.f"],
        cwd=folder,
    )
    root = subprocess.check_output(
        ["verilator-cli", "--getenv", "VERILATOR_ROOT"], text=True
    ).strip()
    sources = [
        *sorted((folder / "obj").glob("*.cpp")),
        bench,
        *[
            pathlib.Path(root, "include", f"{name}.cpp")
            for name in ["verilated", "verilated_threads"]
        ],
    ]
    includes = ["-I", folder / "obj", "-I", f"{root}/include", "-I", f"{root}/include/vltstd"]
    objects = []
    for n, source in enumerate(sources):
        objects.append(folder / "obj" / f"{n}.o")
        # Code that runs once is not worth the compiler's time.
        level = "-O0" if source.stem.endswith("Slow") else "-O1"
        _run("g++", "-std=gnu++20", level, "-w", *includes, "-c", "-o", objects[-1], source)
    _run("g++", "-o", program, *objects, "-pthread", "-latomic")
    return program


def build(name="ring"):
    """The bench program of `ring` or `ring_pair`. It is built again only if something changed."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _build(folder, name)


def run(program=None, defaults=DEFAULTS, **options):
    """dict of one run, or RuntimeError if it could not run. `failed` says whether a packet came
    twice, in the wrong order or changed, or is missing without a report.

    Throughputs are in words of packets a cycle, without ring words; latencies in cycles, from the
    last word into a sink to the last word out of a source; `send_to_echo` from START to the slot.
    """
    unknown = options.keys() - defaults.keys()
    if unknown:
        raise ValueError(f"unknown options: {', '.join(sorted(unknown))}")
    words = [f"{name}={value}" for name, value in {**defaults, **options}.items()]
    result = subprocess.run([program or build(), *words], capture_output=True, text=True)
    if result.returncode not in (0, 1):
        raise RuntimeError(result.stderr)
    return json.loads(result.stdout)


def run_pair(program=None, **options):
    """As `run`, of a pair; `throughput`, `mean_latency`, `used0`, `used1` (shares of the links of
    ring 0 and 1) and `jain` are lists by part. `resumed` has, of each flow, the cycles from the cut
    to the first word of a packet that began after the cut. `balanced_after` has the cycles from the
    end of the cut until no ring is cut or folded.
    """
    return run(program or build("ring_pair"), PAIR_DEFAULTS, **options)


# A pair under full load that is cut, and healed. In so many cycles each flow has a packet, and the
# time in which a flow is held is over. The first ones are in `make test`, all in `make soak`.
CUTS = [
    dict(nodes=nodes, channels=12 if nodes == 2 else 4, cut=cut, cycles=cycles)
    for nodes, cut, cycles in [
        *[(2, "ring", 30000), (4, "cable", 30000)],
        *[(2, "cable", 30000), (4, "ring", 30000), (8, "ring", 50000), (8, "cable", 50000)],
    ]
]
CUTS_OF_A_TEST = CUTS[:2]

MILLISECOND = 125_000  # cycles


def cut_faults(options, result):
    """List of str: what is wrong with a run of CUTS."""
    nodes, cut, channels = options["nodes"], options["cut"], options["channels"].bit_count()
    before, cut_off, after = result["throughput"]
    flows, resumed = nodes * (nodes - 1) * channels, result["resumed"]
    folds = cut == "cable"
    wanted = {
        "no packet came twice, changed or in a wrong order, or is missing without a report": (
            not result["failed"]
        ),
        "no packet came to a wrong card": not result["strayed"],
        "no bypass FIFO overflowed": not result["overflows"],
        "each flow goes on within a millisecond": (
            resumed["count"] == flows and resumed["most"] <= MILLISECOND
        ),
        "while it is cut, there is 0.3 of the throughput": cut_off > 0.3 * before,
        "afterwards there is 0.95 of the throughput": after > 0.95 * before,
        # 4 packets of each channel and ring.
        "only what was on its way is missing": result["missing"] <= 2 * 2 * 4 * nodes * channels,
        "both rings are there within a millisecond": 0 < result["balanced_after"] < MILLISECOND,
        "both rings are used again": all(
            result[ring][2] > 0.9 * result[ring][0] for ring in ("used0", "used1")
        ),
        "the rings are folded if a cable is cut": result["folded"] == folds,
        "the port stays UP if one ring is cut": (result["port_lost"] == 0) == (not folds),
    }
    return [f"not true: {name}" for name, is_true in wanted.items() if not is_true]


def faulty(random):
    """Options of a run with stalls, errors and cuts, from a random.Random."""
    words = random.choice((16, 64, 64, 300, 1047))
    return dict(
        seed=random.randrange(1 << 30),
        nodes=random.randrange(2, 17),
        delay=random.randrange(1, 60),
        words=words,
        least_words=random.choice((3, words)),
        channels=4 if words > 64 else random.randrange(1, 16),
        pattern=random.choice(("uniform", "next", "half", "hot", "sender")),
        load=random.choice((0.01, 0.1, 1)),
        take=random.choice((1, 1, 0.5, 0.1)),
        stall=random.choice((0, 0, 0.0001, 0.01)),
        errors=random.choice((0, 0, 1e-5, 1e-4, 1e-3)),
        cuts=random.choice((0, 0, 1e-4, 1e-3)),
        cycles=20000,
    )


def faulty_pair(random):
    """Options of a pair's run with stalls, errors and cuts."""
    words = random.choice((16, 64, 120, 300))
    return dict(
        seed=random.randrange(1 << 30),
        nodes=random.choice((2, 2, 3, 4, 5, 8)),
        delay=random.randrange(1, 60),
        words=words,
        least_words=random.choice((3, words)),
        channels=4 if words > 120 else 12 if words > 64 else random.randrange(1, 16),
        pattern=random.choice(("uniform", "next", "half", "hot")),
        load=random.choice((0.01, 0.1, 1)),
        take=random.choice((1, 1, 0.5, 0.1)),
        stall=random.choice((0, 0, 0.0001, 0.01)),
        errors=random.choice((0, 0, 1e-5, 1e-4)),
        cuts=random.choice((0, 1e-5, 1e-4, 1e-3)),
        cycles=60000,
    )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    runs = run_pair if arguments[:1] == ["pair"] else run
    given = dict(word.split("=", 1) for word in arguments[runs is run_pair :])
    print(json.dumps(runs(**given), indent=1))
