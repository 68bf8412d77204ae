"""The simulator with a card in C++ instead of the Verilated core, built once and started for each
test.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "sim"
PROFILES = ROOT / "hw" / "sim" / "profiles"


@pytest.fixture(scope="session")
def programs():
    """Directory of dibber-sim-test and of the benches of single parts."""
    subprocess.run(
        [sys.executable, ROOT / "hw" / "sim" / "build.py", "--test"], check=True, timeout=3600
    )
    return BUILD


@pytest.fixture
def bench(programs):
    """bench("gen2x4", "write", 8, 1000, **{"pcie.lanes": 2}): the JSON of host-model-bench."""

    def run(profile, kind, size, count, **settings):
        text = lambda v: json.dumps(v) if isinstance(v, (bool, str)) else repr(v)
        arguments = [f"{key}={text(value)}" for key, value in settings.items()]
        result = subprocess.run(
            [
                programs / "host-model-bench",
                PROFILES / f"{profile}.toml",
                kind,
                str(size),
                str(count),
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run


class Simulator:
    """A running dibber-sim-test; `path(n)` is card n's socket."""

    def __init__(self, program, directory, arguments, profile):
        self.directory = directory
        self.statistics_file = directory / "statistics.json"
        self.errors = open(directory / "errors.txt", "w+")
        self.process = subprocess.Popen(
            [
                program,
                "--profile",
                PROFILES / f"{profile}.toml",
                "--socket-dir",
                directory,
                "--stats",
                self.statistics_file,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n", self.error_text()

    def path(self, card):
        return self.directory / f"card{card}.sock"

    def error_text(self):
        self.errors.seek(0)
        return self.errors.read()

    def stop(self):
        """End it as a user does; its statistics."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self):
        """Wait until it has ended by itself; its statistics."""
        assert self.process.wait(timeout=600) == 0, self.error_text()
        return json.loads(self.statistics_file.read_text())


@pytest.fixture
def simulator(programs, tmp_path_factory):
    """simulator("--participants", "1", profile="gen2x1") starts one, which ends with the test."""
    started = []

    def start(*arguments, profile="gen2x4"):
        # A socket's path has at most 107 bytes: not below the test's own, long directory.
        directory = tmp_path_factory.mktemp("sim")
        started.append(
            Simulator(programs / "dibber-sim-test", directory, [str(a) for a in arguments], profile)
        )
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()
        each.process.stdout.close()
        each.errors.close()
