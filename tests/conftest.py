"""Fixtures for all tests: the seed, and records of measured figures."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import os
import pathlib
import signal
import socket
import sys

import hypothesis
import hypothesis.configuration
import pytest
from dibber.common.elaboration import elaborate_quickly

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "build" / "figures"

# Tools of the Python environment are found even if it is not active.
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"

# A shell ignores SIGINT in what it starts with `&`. Programs that tests start would inherit that,
# and tests of Ctrl-C would fail.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` ignores SIGHUP in the same way. With a handler the tests still survive a hang-up, and
# programs that they start have the default action.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

# The same examples in every run, so a failure repeats. The time to make examples depends on the
# machine, so it has no limit.
hypothesis.configuration.set_hypothesis_home_dir(ROOT / "build" / "hypothesis")
hypothesis.settings.register_profile(
    "dibber",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("dibber")


elaborate_quickly()


def pytest_addoption(parser):
    parser.addoption(
        "--seed", type=int, default=1, help="seed of every random choice in the tests (default 1)"
    )


# Files that take long, the longest first. They start first, so all workers end at about the same
# time. A junit file that make leaves in build/ tells how long each takes.
LONG = (
    "test_driver",
    "test_provider",
    "test_bench_hosts",
    "test_mpi_faults",
    "test_changed_only",
    "test_bench",
    "test_ethernet",
    "test_peer_restart",
    "test_ethernet_star",
    "test_shmem",
    "test_mpi_examples",
    "test_soak_program_faults",
    "test_pair_way_back",
    "test_one_thread",
    "test_live_load",
    "test_timeline",
    "test_link",
    "test_pair_lives",
    "test_vfio",
    "test_pair_pages",
    "test_soak_faults",
    "test_recipes",
    "test_bus_master",
    "test_pair_tlps",
    "test_pair_stride",
    "test_mpi4py",
    "test_selftest",
    "test_spread",
    "test_streams",
    "test_same",
    "test_completions",
    "test_bridged_card",
    "test_deposit_path",
    "test_rams",
    "test_layer",
    "test_card",
    "test_card_engines",
    "test_paged_path",
    "test_formal",
    "test_block",
    "test_engines",
    "test_frame_path",
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


@pytest.fixture(autouse=True)
def forgotten_designs():
    """Migen's tracer keeps every module, to number the modules of a class. By the last test this
    would be gigabytes.
    """
    yield
    if tracer := sys.modules.get("migen.fhdl.tracer"):
        tracer.classname_to_objs.clear()


@pytest.fixture
def seed(request):
    """Seed of the run, for `random.Random(seed)` and the simulator's `--seed`."""
    return request.config.getoption("--seed")


@pytest.fixture
def port():
    """A TCP port of 127.0.0.1 at which no program listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def figure(request, seed):
    """Record a measured value for `make figures`; return whether it meets its target.

    figure(name, value, unit, at_least=, at_most=, profile=): one of the two limits or both. The
    test still asserts.
    """

    def record(name, value, unit, at_least=None, at_most=None, profile=""):
        limits = [
            (sign, limit)
            for sign, limit in ((">=", at_least), ("<=", at_most))
            if limit is not None
        ]
        passed = all(value >= limit if sign == ">=" else value <= limit for sign, limit in limits)
        FIGURES.mkdir(parents=True, exist_ok=True)
        (FIGURES / f"{name}.json").write_text(
            json.dumps(
                {
                    "id": name,
                    "value": value,
                    "unit": unit,
                    "target": " and ".join(f"{sign} {limit:.9g}" for sign, limit in limits),
                    "pass": passed,
                    "command": f"build/venv/bin/python -P -m pytest --seed {seed} "
                    f"'{request.node.nodeid}'",
                    "profile": profile,
                    "seed": seed,
                },
                indent=2,
            )
            + "\n"
        )
        return passed

    return record


# Skipped tests ------------------------------------------------------------------------------------


def skipped_tests(config):
    return len(config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped", []))


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.write_line(f"tests skipped: {skipped_tests(config)}")


def pytest_sessionfinish(session):
    # Workers of pytest-xdist have no terminal reporter; only the process that collects them
    # decides.
    if hasattr(session.config, "workerinput"):
        return
    if os.environ.get("CI") == "true" and skipped_tests(session.config) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
