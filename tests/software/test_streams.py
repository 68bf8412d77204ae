"""Standard streams that are closed, full, not blocking, or in another encoding than UTF-8."""

# SPDX-License-Identifier: BSD-2-Clause

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import pytest
from dibber_cli import streams

pytestmark = pytest.mark.fault

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-P", "-m", "dibber_cli"]

# No UTF-8 anywhere: not for streams, not for files.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LOCALES = [
    ASCII,
    {"LC_ALL": "POSIX"},
    {"LC_ALL": "C"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"PYTHONIOENCODING": "iso-8859-1"},
    {"PYTHONIOENCODING": "koi8-r"},
]


def shell(line, **environment):
    """Run a line of sh in which "$@" is the command; returns the ended process."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=300,
    )


# Encodings ----------------------------------------------------------------------------------------


def _texts():
    """All characters beyond ASCII in the text of the commands."""
    found = set()
    for file in (ROOT / "software" / "cli").rglob("*.py"):
        found |= {
            character for character in file.read_text(encoding="utf-8") if ord(character) > 127
        }
    return found


def test_every_character_that_a_command_prints_has_ascii_that_means_the_same():
    for character in _texts():
        assert character in streams.PLAIN, (
            f"{character!r} (U+{ord(character):04x}) would become '?'"
        )
    for text in streams.PLAIN.values():
        assert text.isascii() and text


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "cp1252", "koi8-r", "utf-8"])
def test_what_an_encoding_does_not_have_becomes_ascii_and_the_bytes_of_file_names_stay(encoding):
    for text in (*streams.PLAIN, "日本", "a…b─c"):
        text.encode(encoding, streams.HANDLER).decode(encoding)
    assert "1 … 2 µs ≥ 3 ─ ×".encode("ascii", streams.HANDLER) == b"1 ... 2 us >= 3 - x"
    assert "\udcfe".encode("utf-8", streams.HANDLER) == b"\xfe"


@pytest.mark.parametrize("environment", LOCALES, ids=str)
def test_a_command_speaks_in_every_locale(serve, environment):
    uri = serve().uri
    for line in (f'"$@" info {uri}', f'"$@" info --json {uri}'):
        done = shell(line, **environment)
        assert done.returncode == 0 and done.stdout and done.stderr == b""
        if environment == ASCII or "ascii" in str(environment):
            assert done.stdout.isascii()
    assert json.loads(done.stdout.decode("ascii"))["counters"]


# A command of each group, each with characters beyond ASCII in its output; and one whose words are
# no characters.
@pytest.mark.parametrize(
    "words, code",
    [
        ("link test --ber 2", 2),
        ("--help", 0),
        ("link test --help", 0),
        ("bench stride --help", 0),
        ("info sim:/nöwhere", 1),
        ("fw load $(printf '\\377') sim:/nowhere", 1),
        ("bench compare $(printf '\\377') b", 1),
        ("info $(printf 'sim:\\377')", 1),
        ("monitor sim:/ö --interval x", 2),
    ],
)
def test_help_and_errors_are_no_traceback_in_a_locale_without_utf_8(words, code):
    done = shell(f'"$@" {words}', **ASCII)
    assert done.returncode == code and b"Traceback" not in done.stderr and done.stdout.isascii()


def test_files_are_utf_8_in_every_locale(tmp_path):
    result = {
        "test": "rate",
        "profile": "gen2x4",
        "seed": 1,
        "versions": {},
        "command": "µ",
        "points": [
            {
                "series": "µ",
                "x": 1,
                "x_unit": "B",
                "value": 1.0,
                "unit": "MB/s",
                "bound": 2.0,
                "bound_by": "link",
                "limit": None,
                "limited_by": None,
                "cycles": 1,
                "cpu_percent": 1.0,
            }
        ],
    }
    text = (
        "import json, pathlib, sys; from dibber_cli.bench import report\n"
        "report.chart.draw = lambda *_: None\n"
        "report.write(json.loads(sys.argv[1]), [], pathlib.Path(sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", text, json.dumps(result), str(tmp_path)],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, **ASCII},
    )
    assert done.returncode == 0, done.stderr
    assert "µ" in (tmp_path / "rate-gen2x4.csv").read_text(encoding="utf-8")
    for file in (ROOT / "software" / "cli").rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        for call in (".write_text(", ".read_text(", "text=True"):
            for part in source.split(call)[1:]:
                assert "encoding=" in part[:300].split("\n\n")[0], (
                    f"{file}: {call} without an encoding"
                )


# Closed and full ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&-", "<&- 2>&-", "<&- >&- 2>&-"]
)
def test_a_closed_stream_changes_nothing_else(serve, image, closed):
    mock = serve()
    done = shell(f'"$@" info {mock.uri} {closed}')
    assert (
        done.returncode == 0
        and done.stderr == b""
        and bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))
    )
    done = shell(f'"$@" fw load {image()} {mock.uri} {closed}')
    assert done.returncode == 0 and mock.device.get("MCP_IDENTITY")
    done = shell(f'"$@" info sim:/nowhere {closed}')
    assert (
        done.returncode == 1 and done.stdout == b"" and bool(done.stderr) == ("2>&-" not in closed)
    )
    assert shell(f'"$@" monitor {closed}').returncode == 2
    assert shell(f'"$@" --help {closed}').returncode == 0


def test_a_result_is_written_though_all_streams_are_closed(serve, tmp_path, image):
    mock = serve()
    assert shell(f'"$@" fw load {image()} {mock.uri}').returncode == 0
    done = shell(f'"$@" fw coredump {tmp_path}/core {mock.uri} <&- >&- 2>&-')
    assert done.returncode == 0 and (tmp_path / "core").stat().st_size > 1000


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "info --help",
        "info {uri}",
        "completion bash",
        "sim status",
        "monitor --once --interval 0 {uri}",
    ],
)
def test_a_full_disk_is_one_error(serve, words):
    for unbuffered in ("", "1"):
        done = shell(
            f'"$@" {words.format(uri=serve().uri)} >/dev/full', PYTHONUNBUFFERED=unbuffered
        )
        assert (
            done.returncode == 1
            and done.stderr
            == b"dibber: the standard output cannot be written: No space left on device\n"
        )


def test_a_full_disk_under_json_is_one_error_in_json(serve):
    done = shell(f'"$@" info --json {serve().uri} >/dev/full')
    assert done.returncode == 1 and json.loads(done.stderr)["error"]["name"] == "OUTPUT"


def test_a_stdout_that_can_only_be_read_is_an_error_and_a_stderr_that_cannot_be_written_is_none(
    serve,
):
    uri = serve().uri
    done = shell(f'"$@" info {uri} 1</dev/null')
    assert done.returncode == 1 and b"Bad file descriptor" in done.stderr
    for other in ("2</dev/null", "2>/dev/full"):
        done = shell(f'"$@" info {uri} {other}')
        assert done.returncode == 0 and done.stdout
        assert shell(f'"$@" info sim:/nowhere {other}').returncode == 1
        assert shell(f'"$@" info foo {other}').returncode == 2


def test_a_pipe_that_does_not_block_gets_all_of_the_output():
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    program = subprocess.Popen(
        [*COMMAND, "completion", "bash"], stdout=writes, stderr=subprocess.PIPE, cwd=ROOT
    )
    os.close(writes)
    found = b""
    time.sleep(0.5)
    while more := os.read(reads, 512):
        found += more
    os.close(reads)
    assert (program.wait(), program.stderr.read()) == (0, b"")
    program.stderr.close()
    assert found == shell('"$@" completion bash').stdout


def test_the_wrapper_takes_a_folder_as_a_stream(tmp_path):
    """The script that install.sh writes."""
    text = (
        (ROOT / "install.sh")
        .read_text()
        .split('cat >"$VENV/bin/dibber" <<-END\n')[1]
        .split("\tEND\n")[0]
    )
    text = text.replace("\t", "").replace(
        '"$PWD/$VENV/bin/python" -P -s -m dibber_cli "\\$@"', "echo started"
    )
    script = tmp_path / "dibber"
    script.write_text(text)
    script.chmod(stat.S_IRWXU)
    run = lambda line: subprocess.run(
        ["sh", "-c", f"{script} {line}"], capture_output=True, text=True
    )
    assert [run(line).stdout for line in ("</", "2</", "<&- 2>&-")] == ["started\n"] * 3
    done = run("1</")
    assert done.returncode == 1 and done.stderr == "dibber: the standard output is a folder\n"


def test_streams_that_python_code_has_replaced_are_left_alone(capsys):
    from dibber_cli.pipe import quiet

    assert quiet(lambda: print("x") or 3) == 3 and capsys.readouterr().out == "x\n"


# Signals ------------------------------------------------------------------------------------------


def _leftovers(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir())


# A program in which a pair of simulated cards runs; argument: its work then.
PAIR = """
import pathlib, signal, sys, time
from dibber_cli import paths, profile, simulator
from dibber_cli.pipe import quiet
paths.simulator = lambda _: pathlib.Path({simulator!r})
def main():
    with simulator.Pair(profile.load("gen2x4")) as pair:
        {inside}
sys.exit(quiet(main))
"""
WORKERS = """
        from dibber_cli.bench import program, session
        with session.Workers(pair, program.Program, 1, ()) as workers:
            print("ready", flush=True)
            workers.receive()
"""


@pytest.fixture
def start(folder, tmp_path):
    """start(inside, **how) → (process, folder for temporary files) of a program with a pair that
    does `inside`.
    """
    started = []

    def begin(inside, ready="echo ready", **how):
        fake = tmp_path / "dibber-sim-fake"
        fake.write_text(f"#!/bin/sh\ntrap 'exit 0' TERM\n{ready}\nwhile :; do sleep 0.05; done\n")
        fake.chmod(0o700)
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        text = PAIR.format(simulator=str(fake), inside=inside)
        program = subprocess.Popen(
            [sys.executable, "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
            start_new_session=True,
            **how,
        )
        started.append(program)
        return program, temporary

    yield begin
    for program in started:
        if program.poll() is None:
            program.kill()
        program.communicate()


CODES = [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]


@pytest.mark.parametrize("group", [False, True], ids=["the process", "its group"])
@pytest.mark.parametrize("number, code", CODES)
def test_a_signal_ends_a_pair_and_its_workers_and_leaves_nothing(start, number, code, group):
    program, temporary = start(WORKERS.strip())
    assert program.stdout.readline() == "ready\n" and _leftovers(temporary)
    (os.killpg if group else os.kill)(program.pid, number)
    out, said = program.communicate(timeout=120)
    assert program.returncode == code and said == "dibber: interrupted\n" and out == ""
    assert _leftovers(temporary) == []
    with pytest.raises(ProcessLookupError):
        # No process of the group is left.
        for _ in range(100):
            os.killpg(program.pid, 0)
            time.sleep(0.1)


@pytest.mark.parametrize("number, code", CODES)
def test_a_signal_before_the_simulator_listens_leaves_nothing(start, number, code):
    program, temporary = start("pass", ready=": > $0.started; sleep 1000 & wait")
    while not (temporary.parent / "dibber-sim-fake.started").exists():
        time.sleep(0.05)
        assert program.poll() is None
    os.kill(program.pid, number)
    program.communicate(timeout=120)
    assert program.returncode == code and _leftovers(temporary) == []


def test_a_second_signal_at_once_does_not_stop_the_cleaning_up(start):
    program, temporary = start("print('ready', flush=True); time.sleep(1000)")
    assert program.stdout.readline() == "ready\n"
    for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
        os.kill(program.pid, number)
    program.communicate(timeout=120)
    assert program.returncode in (129, 143) and _leftovers(temporary) == []


def test_signals_that_the_caller_ignores_stay_ignored(start):
    program, temporary = start(
        "print('ready', flush=True); time.sleep(2)",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert program.stdout.readline() == "ready\n"
    os.kill(program.pid, signal.SIGHUP)
    program.communicate(timeout=120)
    assert program.returncode == 0 and _leftovers(temporary) == []


# A signal comes at the call of stdout's code that the argument counts, before or after it. The
# profiler is called where Python handles signals, and also at `return`, where Python does not.
AT_A_CALL = """
import os, signal, sys
from dibber_cli import streams
from dibber_cli.pipe import quiet
left = int(sys.argv[1])
def count(frame, event, _):
    global left
    if event != "return" and frame.f_code.co_filename == streams.__file__:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGHUP)
def main():
    sys.setprofile(count)
    print("ready", flush=True)
    sys.setprofile(None)
    print("came to its end")
sys.exit(quiet(main))
"""


def test_a_signal_at_any_call_while_printing_prints_nothing_twice_and_ends_the_program():
    for call in range(1, 1000):
        ended = subprocess.run(
            [sys.executable, "-c", AT_A_CALL, str(call)], capture_output=True, text=True
        )
        if ended.returncode == 0:
            break
        assert ended.returncode == 129 and "ready\n".startswith(ended.stdout), (call, ended.stdout)
    assert ended.stdout == "ready\ncame to its end\n" and call > 10


def test_a_terminal_that_is_gone_does_not_change_the_code_of_its_signal():
    """Printed text stays in a buffer, and cannot be written at the end."""
    text = (
        "import os, signal, sys; from dibber_cli.pipe import quiet\n"
        "def main():\n"
        "    print('x')\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGHUP)\n"
        "    except KeyboardInterrupt as interrupt:\n"
        "        return 128 + interrupt.number\n"
        "sys.exit(quiet(main))"
    )
    assert (
        subprocess.run(
            ["sh", "-c", '"$@" >/dev/full', "sh", sys.executable, "-c", text], capture_output=True
        ).returncode
        == 129
    )


@pytest.mark.parametrize("number, code", CODES)
@pytest.mark.parametrize("json_", [False, True])
def test_a_command_that_looks_ends_with_the_code_of_the_signal(serve, number, code, json_):
    program = subprocess.Popen(
        [*COMMAND, "monitor", "--interval", "0.05", serve().uri, *(["--json"] if json_ else [])],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout.readline()
    os.kill(program.pid, number)
    out, said = program.communicate(timeout=60)
    if number == signal.SIGINT:
        # Ctrl-C is its normal end.
        assert program.returncode == 0 and said == ""
    else:
        assert program.returncode == code
        assert (
            json.loads(said)["error"]["exit_code"] == code
            if json_
            else said == "dibber: interrupted\n"
        )
    if json_:
        for line in out.splitlines():
            json.loads(line)


def test_the_program_of_a_benchmark_ends_without_a_word_when_the_other_end_of_its_pipe_is_gone(
    capfd,
):
    import multiprocessing

    from dibber_cli.bench import program

    ours, theirs = multiprocessing.Pipe()
    ours.close()
    program.main(theirs, program.Program, "sim:/nowhere", 0, "none", 1, ())
    assert capfd.readouterr() == ("", "")
