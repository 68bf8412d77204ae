"""`dibber completion`: it completes every command and option of the parser, run in bash."""

# SPDX-License-Identifier: BSD-2-Clause

import shlex
import socket
import subprocess

import pytest
from dibber_cli import paths, profile
from dibber_cli.completion import SHELLS
from dibber_cli.completion.tree import leaves
from dibber_cli.main import main, parser


@pytest.fixture
def complete(tmp_path, capsys, monkeypatch):
    """complete(line) → bash's completions at the end of the line."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    main(["completion", "bash"])
    script = tmp_path / "dibber.bash"
    script.write_text(capsys.readouterr().out)

    def offers(line):
        # As readline does with COMP_WORDBREAKS of an interactive bash: ':' and '=' are words of
        # their own.
        words = line.replace(":", " : ").replace("=", " = ").split() + [""] * line.endswith(" ")
        run = (
            f"source {script}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); "
            f"COMP_CWORD={len(words) - 1}; _dibber; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", run], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert not done.stderr
        return done.stdout.split()

    return offers


@pytest.mark.parametrize(
    "line, some",
    [
        ("dibber ", {"info", "bench", "selftest", "completion"}),
        ("dibber be", {"bench"}),
        ("dibber bench ", {"stride", "all", "report", "compare"}),
        ("dibber bench stride --pro", {"--profile"}),
        ("dibber bench stride --profile ", {"gen2x4", "gen2x1", "gen1x1"}),
        ("dibber bench stride --seed 7 -", {"--profile", "--series", "--json"}),
        ("dibber sim ", {"start", "stop", "status", "--speed"}),
        ("dibber link prbs --sequence prbs2", {"prbs23"}),
        ("dibber completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_offers_what_can_stand_there(complete, line, some):
    assert some <= set(complete(line))


def test_bash_offers_only_what_begins_as_the_word_does(complete):
    assert complete("dibber bench str") == ["stride"]
    assert complete("dibber sim start --profile gen1") == ["gen1x1"]
    assert complete("dibber bench stride --nothing") == []


def test_bash_offers_files_where_a_folder_is_wanted(complete, tmp_path):
    (tmp_path / "measured").mkdir()
    assert complete("dibber bench report mea") == ["measured"]
    assert complete("dibber bench stride --out mea") == ["measured"]
    assert complete("dibber bench compare measured mea") == ["measured"]


def test_bash_offers_the_sockets_of_the_simulator_as_uris(complete, folder, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    run = paths.run_directory()
    run.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(run / "card0.sock"))
        assert complete("dibber info ") == [f"sim:{run}/card0.sock"]
        # bash has taken "sim:" for itself
        assert complete(f"dibber info sim:{run}/ca") == [f"{run}/card0.sock"]
        assert complete(f"dibber selftest sim:{run}/card0.sock ") == [f"sim:{run}/card0.sock"]


# All shells ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_has_every_command_and_every_option(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    places = leaves(parser())
    assert len(places) > 20
    for place in places:
        assert f"'{place.path}'" in script or f'"{place.path}"' in script
        for name in (n for option in place.options for n in option.names):
            assert name.lstrip("-") in script
    assert all(name in script for name in profile.names())


def test_another_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["completion", "tcsh"])
    assert ended.value.code == 2 and "bash" in capsys.readouterr().err


def test_every_command_has_help_with_its_exit_codes(capsys):
    for place in leaves(parser()):
        if place.commands:
            continue
        with pytest.raises(SystemExit) as ended:
            main([*place.path.split()[1:], "--help"])
        assert ended.value.code == 0 and "Ends with 0" in capsys.readouterr().out
