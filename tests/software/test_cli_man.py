"""Manual pages of section 1: one for each command, with its options, without an error of mandoc."""

# SPDX-License-Identifier: BSD-2-Clause

import subprocess

import pytest
from dibber_cli import main, man
from dibber_cli.completion.tree import leaves


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    man.main(folder)
    return {path.stem: path for path in (folder / "man1").glob("*.1")}


def test_every_command_has_a_page(made):
    places = leaves(main.parser())
    assert set(made) == {place.path.replace(" ", "-") for place in places}
    assert {"dibber", "dibber-info", "dibber-sim-start", "dibber-bench-stride"} <= set(made)


def test_a_page_has_every_option_of_its_command(made):
    for place in leaves(main.parser()):
        text = made[place.path.replace(" ", "-")].read_text()
        for option in place.options:
            assert man.roff(option.names[0]) in text, (place.path, option.names)


def test_mandoc_finds_nothing_to_mend(made):
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "error", *sorted(made.values())],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_a_page_has_the_examples_of_help_as_they_stand(made):
    done = subprocess.run(
        ["mandoc", "-T", "ascii", made["dibber-bench-stride"]], capture_output=True, text=True
    )
    assert done.returncode == 0 and "dibber bench stride --profile gen2x1 --seed 7" in done.stdout


def test_pages_of_former_commands_go(tmp_path):
    (tmp_path / "man1").mkdir()
    (tmp_path / "man1/dibber-gone.1").write_text("")
    man.main(tmp_path)
    assert not (tmp_path / "man1/dibber-gone.1").exists()


def test_a_line_that_begins_with_a_dot_is_text():
    assert man.roff(".TH\n'x") == "\\&.TH\n\\&'x"
