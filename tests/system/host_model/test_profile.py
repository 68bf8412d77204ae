"""A wrong profile or command line is refused by name."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import socket
import subprocess

import dibber_cli.profile
import pytest

PROFILES = pathlib.Path(__file__).resolve().parents[3] / "hw" / "sim" / "profiles"


def line_of(text):
    """The number of the first line of gen2x4.toml with a text."""
    lines = (PROFILES / "gen2x4.toml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture
def refused(programs, tmp_path_factory):
    """Start the simulator in the expectation that it does not; its message."""

    def run(*arguments, profile=PROFILES / "gen2x4.toml", status=1, directory=None):
        directory = directory or tmp_path_factory.mktemp("sim")
        result = subprocess.run(
            [
                programs / "dibber-sim-test",
                "--profile",
                profile,
                "--socket-dir",
                directory,
                *map(str, arguments),
            ],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert result.returncode == status and result.stdout == ""
        assert (
            not list(pathlib.Path(directory).glob("*.sock"))
            if pathlib.Path(directory).is_dir()
            else True
        )
        return result.stderr

    return run


@pytest.fixture
def changed(tmp_path):
    """A copy of gen2x4.toml with one text replaced by another."""

    def write(old, new):
        text = (PROFILES / "gen2x4.toml").read_text()
        assert old in text
        path = tmp_path / "changed.toml"
        path.write_text(text.replace(old, new, 1))
        return path

    return write


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("lanes ", "lanez ", "key 'pcie.lanes' is missing"),
        ("max_payload ", "spare = 1\nmax_payload ", "unknown key 'pcie.spare'"),
        ("[cpu]", "[memories]\nx = 1\n[cpu]", "unknown key 'memories'"),
        ("[cpu]", "[memories]\n[cpu]", "unknown key 'memories'"),
        ("[benchmark]", "[benchmark]\ncopy_lines_ns = 1", "unknown key 'benchmark.copy_lines_ns'"),
        ('"gen2x4"', '"../gen2x4"', "'name' must be a word"),
        ("= 125.0", "= nan ", "'card.clock_mhz' = nan is outside 1 … 1000"),
        ("= 125.0", "= inf ", "'card.clock_mhz' = inf is outside 1 … 1000"),
        ("= 125.0", "= 1e400 ", f"line {line_of('= 125.0')}: "),
        ("name =", "title = 1\nname =", "unknown key 'title'"),
        ("= 4\n", "= 3\n", "'pcie.lanes' = 3 is not a power of two"),
        ("= 4\n", '= "4"\n', "'pcie.lanes' must be a whole number"),
        ("= 125.0", "= true ", "'card.clock_mhz' must be a number"),
        ("= 125.0", "= 0.5 ", "'card.clock_mhz' = 0.5 is outside 1 … 1000"),
        ("= true ", "= 1 ", "'pcie.extended_tags' must be true or false"),
        ('= "boundary"', '= "sometimes"', "'pcie.completion_split' must be"),
        ("data_width = 128", "data_width 128", f"line {line_of('data_width = 128')}: "),
        (
            "rate_gbps                = 5.0    # on the wire",
            "rate_gbps = 10.0 #",
            "more than four symbols a clock",
        ),
        (
            "posted_up_ns             = 200.0",
            "posted_up_ns = 4.0",
            "a PCIe latency is below one clock",
        ),
    ],
)
def test_a_wrong_profile_is_refused_with_file_and_key(refused, changed, old, new, message):
    error = refused(profile=changed(old, new))
    assert error.startswith("dibber-sim: profile ") and message in error


def test_a_profile_that_is_not_there_is_named(refused, tmp_path):
    assert "profile none.toml: no such file" in refused(profile=tmp_path / "none.toml")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--set", "pcie.lanez=2"], "unknown key 'pcie.lanez'"),
        (["--set", "pcie.lanes"], "override 'pcie.lanes' is not table.key=value"),
        (["--set", "pcie.lanes=[["], "override 'pcie.lanes=[['"),
        (["--set", "pcie.lanes=4\nmore=1"], "is more than one key"),
        (["--set", "link.length_m=-5"], "'link.length_m' = -5 is outside 0 … 10000"),
        (["--set", "link.length_m=nan"], "'link.length_m' = nan is outside 0 … 10000"),
        (["--ber", "nan"], "--ber: 'nan' is not a number"),
        (["--ber", "inf"], "--ber: 'inf' is not a number"),
        (["--ber", "2"], "--ber: '2' is not a number"),
        (["--ber", "1e400"], "--ber: '1e400' is not a number"),
        (["--seed", "-1"], "--seed: '-1' is not a number"),
        (["--seed", "18446744073709551616"], "--seed: '18446744073709551616' is not a number"),
        (["--fault", "noise:nan:5"], "--fault: 'noise:nan:5': 'nan' is no time"),
        (["--fault", "noise:0:inf"], "--fault: 'noise:0:inf': 'inf' is no time"),
        (["--fault", "noise:-1:5"], "--fault: 'noise:-1:5': '-1' is no time"),
        (["--ber", "0.05x"], "--ber: '0.05x' is not a number"),
        (["--cards", "3"], "--cards: '3' is not a number in its range"),
        (["--fault", "unplugged:5"], "--fault: 'unplugged:5' is not KIND"),
        (["--fault", "worn"], "--fault: 'worn' is not KIND"),
        (["--fault", "noise:1:x"], "--fault: 'noise:1:x': 'x' is no time"),
        (["--fault", "stop:1:2:2"], "--fault: 'stop:1:2:2': the direction is 0 or 1"),
        (["--fault", "loopback:1:2"], "--fault: 'loopback:1:2': a loopback is for the whole run"),
        (["--fault", "noise:9:5"], "--fault: 'noise:9:5': it ends before it begins"),
        (["--seed"], "--seed needs a value"),
        (["--nonsense"], "unknown option --nonsense"),
        (["more"], "unexpected argument more"),
        (["--device", "toaster"], "device 'toaster' is not known here"),
        (["--tlp-trace", "/none/x"], "trace /none/x: No such file or directory"),
    ],
)
def test_a_wrong_command_line_is_refused(refused, arguments, message):
    usage = "--set" in arguments or message.startswith(("--", "unknown option", "unexpected"))
    assert message in refused(*arguments, status=2 if usage else 1)


@pytest.mark.fault
@pytest.mark.parametrize("path", dibber_cli.profile.RANGES)
def test_the_simulator_and_the_benchmarks_have_the_same_range_for_each_number_of_a_profile(
    refused, path
):
    low, high = dibber_cli.profile.RANGES[path]
    assert f"'{path}' = {2 * high:g} is outside {low:g} … {high:g}" in refused(
        "--set", f"{path}={2 * high}", status=2
    )
    error = refused("--set", f"{path}={low - 0.5}", status=2)
    assert (
        "must be a whole number" in error
        if path in dibber_cli.profile.KINDS
        else f"is outside {low:g} … {high:g}" in error
    )


def test_a_socket_directory_that_is_not_there_is_named(refused):
    assert "socket /none/card0.sock: No such file or directory" in refused(directory="/none")


def test_a_socket_path_that_is_too_long_is_named(refused, tmp_path):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    assert "the path is longer than 107 bytes" in refused(directory=long)


def test_a_socket_in_use_is_named_and_a_stale_one_replaced(refused, simulator, programs):
    running = simulator()
    result = subprocess.run(
        [
            programs / "dibber-sim-test",
            "--profile",
            PROFILES / "gen2x4.toml",
            "--socket-dir",
            running.directory,
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 1 and "card0.sock: in use by another program" in result.stderr
    running.process.kill()
    running.process.wait()
    with socket.socket(socket.AF_UNIX) as stale, pytest.raises(ConnectionRefusedError):
        stale.connect(str(running.path(0)))
    with subprocess.Popen(
        [
            programs / "dibber-sim-test",
            "--profile",
            PROFILES / "gen2x4.toml",
            "--socket-dir",
            running.directory,
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as again:
        assert again.stdout.readline() == "ready\n"
        again.terminate()
        assert again.wait(600) == 0
    assert not running.path(0).exists()
