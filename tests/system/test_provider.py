"""The libfabric provider on two simulated cards, under programs that know nothing of Dibber."""

# SPDX-License-Identifier: BSD-2-Clause

import functools
import os
import pathlib
import subprocess
import sys
import time

import pytest
from dibber_cli import fabric, paths, profile
from dibber_cli.bench import mpi as mpi_bench
from dibber_cli.simulator import Pair

from tests.system import mpi_faults
from tests.system.pair import PRELOAD

SECONDS = 120  # until a program that hangs is ended
LONGER = 600  # the same of programs that do much


@pytest.fixture
def pair(seed):
    """Two cards that wait for no program: those of libfabric meet before they open a card."""
    with Pair(profile.load("gen2x4"), participants=0, seed=seed, options=PRELOAD) as pair:
        yield pair


def run(arguments, uris, seconds=SECONDS):
    return subprocess.run(
        arguments, env=fabric.environment(uris), timeout=seconds, capture_output=True, text=True
    )


def test_fi_info_shows_what_the_provider_offers():
    done = run(["fi_info", "-p", "dibber", "-v"], ["sim:/nowhere"])
    assert done.returncode == 0, done.stderr
    assert "prov_name: dibber" in done.stdout
    for name in ("FI_MSG", "FI_TAGGED", "FI_RMA", "FI_ATOMIC", "FI_MULTI_RECV", "FI_DIRECTED_RECV"):
        assert name in done.stdout
    for name in ("FI_RMA_EVENT", "FI_HMEM", "FI_FENCE", "FI_TRIGGER", "FI_PROGRESS_AUTO"):
        assert name not in done.stdout


def test_without_a_named_card_there_is_no_provider():
    assert run(["fi_info", "-p", "dibber"], []).returncode != 0


def wait_until_listening(port):
    """proc(5): /proc/net/tcp has the port in hexadecimal digits, and state 0A for LISTEN."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{port:04X}") and fields[3] == "0A":
                return
        time.sleep(0.05)
    raise AssertionError("the server does not listen")


@pytest.mark.parametrize(
    "kind, size", [("tagged", 8), ("msg", 64), ("tagged", 4096), ("msg", 20000)]
)
def test_fi_pingpong_sends_right_bytes_both_ways(pair, port, kind, size):
    command = ["fi_pingpong", "-p", "dibber", "-e", "rdm", "-m", kind]
    command += ["-I", "3", "-S", str(size), "-c"]
    server = subprocess.Popen(
        [*command, "-B", str(port)],
        env=fabric.environment(pair.uris),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until_listening(port)
        client = run([*command, "-P", str(port), "127.0.0.1"], pair.uris)
        assert client.returncode == 0, client.stdout + client.stderr
        said, _ = server.communicate(timeout=SECONDS)
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 0, said


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """build(NAME, COMPILER, LIBRARY…): compile tests/system/provider/NAME.c once; the program."""
    folder = tmp_path_factory.mktemp("programs")

    @functools.cache
    def built(name, compiler, *libraries):
        source = pathlib.Path(__file__).parent / "provider" / f"{name}.c"
        command = [compiler, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o", folder / name]
        subprocess.run([*command, source, *libraries], check=True)
        return folder / name

    return built


@pytest.mark.parametrize("keys", ["keys of the provider", "keys of the program"])
def test_random_messages_transfers_and_atomics_end_right(pair, build, seed, keys):
    program = build("traffic", "cc", "-lfabric")
    done = run([program, str(seed), "20", str(int(keys == "keys of the provider"))], pair.uris)
    assert done.returncode == 0, done.stderr


def test_a_kept_registration_is_dropped_when_its_memory_goes_away(pair, build):
    program = build("cache", "cc", "-lfabric")
    done = run([program], pair.uris)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("keys", ["keys of the provider", "keys of the program"])
def test_runs_of_short_transfers_become_strided_commands_and_end_right(
    pair, build, seed, keys, monkeypatch
):
    program = build("strides", "cc", "-lfabric")
    # The CPU takes as long for each transfer with both settings.
    monkeypatch.setenv("FI_DIBBER_CHARGE", "0")
    taken = {}
    for coalesce in ("1", "0"):
        monkeypatch.setenv("FI_DIBBER_COALESCE", coalesce)
        rounds = "6" if coalesce == "1" else "1"
        words = [program, str(seed), rounds, str(int(keys == "keys of the provider"))]
        done = run(words, pair.uris)
        assert done.returncode == 0, done.stderr
        taken[coalesce] = int(done.stdout)
    # 8,000 bytes in blocks of 8 to a target with gaps, and by single commands.
    assert taken["1"] < taken["0"] / 3, taken


def mpirun(ranks, *program, seconds=SECONDS):
    """`dibber mpirun`, as a user starts it. Options of it may stand before the program."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "dibber_cli", "mpirun", "-n", str(ranks), *map(str, program)],
        timeout=seconds,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def mpi(build):
    return build("mpi", "mpicc")


def test_an_mpi_program_gets_right_bytes_by_messages_collectives_and_windows(mpi):
    done = mpirun(2, mpi, 65536, 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all is well\n"


def test_derived_types_of_puts_and_gets_are_strided_commands_with_the_right_bytes(
    build, seed, monkeypatch
):
    program = build("types", "mpicc")
    monkeypatch.setenv("FI_DIBBER_COALESCE", "0")
    taken = {}
    for options, count in ((["--strided"], 60), ([], 1)):
        done = mpirun(2, *options, program, seed, count)
        assert done.returncode == 0, done.stdout + done.stderr
        taken[bool(options)] = int(done.stdout)
    # 4,096 elements by one command, and by a put each.
    assert taken[True] < taken[False] / 4, taken


def test_pieces_of_types_are_cut_and_paired_byte_by_byte(build, seed):
    """The cards have no part in this."""
    source = paths.ROOT / "software" / "ofi" / "pmpi" / "piece.c"
    include = [f"-I{paths.ROOT}/software/lib/include", f"-I{paths.BUILD}/generated"]
    program = build("pieces", "cc", source, *include)
    done = subprocess.run([program, str(seed), "4000"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2000


@pytest.mark.parametrize("ranks, count", [(2, 24), (3, 12)])
def test_typed_messages_of_all_calls_have_the_bytes_of_the_engine(build, seed, ranks, count):
    program = build("typed", "mpicc")
    done = mpirun(ranks, "--strided", program, seed, count, seconds=LONGER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 0, "the cards have moved no message"


@pytest.fixture(scope="module")
def typed_cases(build):
    return build("typed_cases", "mpicc", "-pthread")


@pytest.mark.parametrize("options", [["--strided"], []], ids=["by the card", "by the engine"])
def test_typed_messages_at_the_edges_end_as_mpi_says(typed_cases, options):
    """Truncated, cancelled, to nobody, to oneself, between groups, data that looks like an offer,
    freed while under way, more than the card has regions, of unknown types, with room for 8 GiB."""
    done = mpirun(2, *options, typed_cases, seconds=LONGER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all is well\n"


def test_typed_messages_of_two_threads_at_once_arrive(typed_cases):
    done = mpirun(2, "--strided", typed_cases, "threads", seconds=LONGER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all is well\n"


def test_the_benchmarks_of_mpi_print_plausible_values_and_no_wrong_byte(seed):
    tests = ["restricted=8,65536", "postal=4096", "barrier", "reduce=64", "alltoall=4096"]
    tests += ["aapc=4096", "simple=4096", "cumulative=4096", "random=64", "put=1,4", "typed=1"]
    # Free, because the engine makes a call for each element of a put, whatever the provider joins.
    words = [*tests, "b_eff=8192,1,1"]
    done = mpirun(2, "--free-cpu", mpi_bench.PROGRAM, seed, *words, seconds=LONGER)
    assert done.returncode == 0, done.stdout + done.stderr
    values, compared, wrong = mpi_bench.parse(done.stdout)
    assert compared > 500_000 and wrong == 0
    found = {(series, x): value for series, x, value in values}
    chosen = profile.load("gen2x4")
    for (series, x), value in found.items():
        name = f"{series}-2" if series in ("reduce", "alltoall") else series
        name = f"{series}-engine" if series.startswith("typed") else name
        most, _ = mpi_bench.limit(chosen, "put-engine" if series == "put" else name, x, 2)
        times = series in mpi_bench.TIMES
        assert value > most if times else 0 < value < most, (series, x, value, most)
    assert found["put", 4] > 0.8 * found["put", 1], "the provider joins what the engine takes apart"


@pytest.mark.parametrize(
    "words, why",
    [
        (["restricted=8"], "give a seed"),
        (["x", "restricted=8"], "give a seed"),
        (["1", "nonsense=8"], "no such test"),
        (["1", "aapc"], "not the numbers"),
        (["1", "restricted=8,x"], "not the numbers"),
        (["1", "b_eff=1024,1,1"], "less than 4096 bytes"),
        (["1", "put=0"], "too small"),
        (["1", "typed=9"], "too small or too large"),
    ],
)
def test_the_benchmarks_of_mpi_refuse_words_that_make_no_sense(words, why):
    launcher = ["mpirun", "-n", "2", "--oversubscribe", str(mpi_bench.PROGRAM), *words]
    settings = {**os.environ, **fabric.mpirun_environment()}
    done = subprocess.run(launcher, env=settings, timeout=60, capture_output=True, text=True)
    assert done.returncode and why in done.stderr and "compared" not in done.stdout


def test_four_ranks_behind_a_switch_get_right_bytes(mpi):
    done = mpirun(4, mpi, 20000, 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all is well\n"


def test_cards_without_a_file_of_routes_find_each_other(build, seed):
    program = build("mpi", "mpicc")
    with fabric.cards("gen2x4", "star:3", seed) as network:
        settings = {**fabric.environment(network.uris), **fabric.mpirun_environment()}
        del settings["FI_DIBBER_ROUTES"]
        command = fabric.mpirun_command(3, [str(program), "64"])
        done = subprocess.run(
            command, env=settings, timeout=SECONDS, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stdout + done.stderr


def test_more_ranks_than_cards_are_refused(mpi):
    done = mpirun(3, "--topology", "pair", mpi)
    assert done.returncode == 2
    assert "a card serves one process" in done.stderr


@pytest.mark.parametrize(
    "text, said", [(None, "cannot be read"), ("0 1 0 nonsense\n", "a line is not four numbers")]
)
def test_a_wrong_file_of_routes_is_named(pair, tmp_path, text, said, build):
    path = tmp_path / "routes"
    if text:
        path.write_text(text, encoding="utf-8")
    program = build("traffic", "cc", "-lfabric")
    settings = {**fabric.environment(pair.uris), "FI_DIBBER_ROUTES": str(path)}
    settings["FI_LOG_LEVEL"] = "warn"
    done = subprocess.run(
        [program, "1", "1", "1"], env=settings, timeout=SECONDS, capture_output=True, text=True
    )
    assert done.returncode and f"{path}: {said}" in done.stderr


def test_an_engine_whose_instructions_are_not_known_is_named(pair, build):
    program = build("traffic", "cc", "-lfabric")
    settings = {**fabric.environment(pair.uris), "FI_DIBBER_ENGINE": "nonsense"}
    settings["FI_LOG_LEVEL"] = "warn"
    done = subprocess.run(
        [program, "1", "1", "1"], env=settings, timeout=SECONDS, capture_output=True, text=True
    )
    assert done.returncode and "FI_DIBBER_ENGINE: nonsense is not known" in done.stderr


def test_a_rank_that_is_killed_ends_the_other_one_s_receive_with_an_error(pair, build):
    """No launcher has a part in this: it would end the other rank itself."""
    program = build("killed", "cc", "-lfabric")
    done = run([program], pair.uris, seconds=1200)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_alltoall_is_late_and_whole_after_a_cable_was_away_for_ten_milliseconds(build):
    program = build("cable", "mpicc")
    # MPI_Init() is charged some milliseconds of CPU time at most.
    events = ["--at", "3000 pull cable0", "--at", "13000 plug cable0"]
    done = mpirun(2, *events, program, 13_500, seconds=LONGER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 10_000 < int(done.stdout) < 12_000


def test_an_alltoall_ends_with_an_error_when_a_cable_stays_away_or_a_card_is_reset(build, seed):
    case = mpi_faults.one_of(mpi_faults.ENDS, seed)
    mpi_faults.an_alltoall_ends(build("cable", "mpicc"), case)


def test_time_goes_on_for_a_program_that_does_nothing_but_ask_for_it(build):
    done = mpirun(2, build("spin", "mpicc"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert 20 < int(done.stdout) < 20_000


def test_a_rank_that_waits_does_not_lose_one_that_floods_it_with_short_puts(seed, monkeypatch):
    """8,192 puts of 8 bytes, three times, while the other rank waits in a barrier."""
    monkeypatch.setenv("FI_DIBBER_COALESCE", "0")
    done = mpirun(2, mpi_bench.PROGRAM, seed, "put=2", seconds=LONGER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert mpi_bench.parse(done.stdout)[2] == 0


def test_mpi_wtime_is_simulated_time_and_eight_bytes_take_at_most_two_microseconds(build, figure):
    program = build("latency", "mpicc")
    done = mpirun(2, program)
    assert done.returncode == 0, done.stdout + done.stderr
    half = min(float(line) for line in done.stdout.split())
    assert figure("mpi-gen2x4-half-round-trip", half, "µs", at_most=2.0, profile="gen2x4")
    assert half > 1.0, "less than a put takes: this is no simulated time"
    done = mpirun(2, "--free-cpu", program)
    assert done.returncode == 0, done.stdout + done.stderr
    free = min(float(line) for line in done.stdout.split())
    assert figure("mpi-gen2x4-half-round-trip-free-cpu", free, "µs", profile="gen2x4")
    # Of a send, a receive and two looks: more than a thousand instructions.
    assert free < half - 0.25, "the CPU is charged"
