"""The current folder and PYTHONPATH do not change the modules that our programs run."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tools import files

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
DIBBER = ROOT / "build" / "venv" / "bin" / "dibber"

pytestmark = pytest.mark.fault


@pytest.fixture
def hostile(tmp_path):
    """A folder with modules of the standard library's names and ours. Each leaves a mark when it
    runs.
    """
    folder, mark = tmp_path / "hostile", tmp_path / "mark"
    folder.mkdir()
    # `sys` and similar modules are built in and cannot be replaced. `site` and `encodings` run
    # before any folder is searched.
    names = [name for name in sys.stdlib_module_names if name not in sys.builtin_module_names]
    for name in [
        *names,
        "numpy",
        "libdibber",
        "dibber",
        "dibber_cli",
        "matplotlib",
        "pytest",
        "migen",
        "boards",
        "sitecustomize",
        "usercustomize",
        "flow",
        "table",
    ]:
        (folder / f"{name}.py").write_text(
            f"open({str(mark)!r}, 'a').write({name!r} + '\\n')\nraise ImportError('hostile ' + "
            f"__name__)\n"
        )
    return folder, mark


def started(command, folder, **variables):
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


COMMANDS = {
    "dibber --help": ([DIBBER, "--help"], 0),
    "dibber sim status": ([DIBBER, "sim", "status"], 0),
    "dibber completion": ([DIBBER, "completion", "bash"], 0),
    "dibber info": ([DIBBER, "info", "sim:/nowhere"], 1),
    "dibber bench": ([DIBBER, "bench", "stride", "--profile", "none"], 2),
    "generate": ([PYTHON, "-P", "-m", "dibber.interface.generate", "out"], 0),
    "boards": ([PYTHON, "-P", "-m", "boards", "--help"], 0),
    "pytest": ([PYTHON, "-P", "-m", "pytest", "--version"], 0),
    "build.py": ([PYTHON, ROOT / "hw" / "sim" / "build.py", "--help"], 0),
    "an example": ([PYTHON, ROOT / "examples" / "transpose.py", "--help"], 0),
    "the soak test": ([PYTHON, ROOT / "tests" / "soak" / "transfers.py", "--help"], 0),
    "a board": ([PYTHON, ROOT / "boards" / "ecpix5.py", "--help"], 0),
    "figures": ([PYTHON, ROOT / "tests" / "figures.py", "--help"], 0),
    "proofs": ([PYTHON, ROOT / "hw" / "formal" / "prove.py", "--help"], 0),
    "sizes": ([PYTHON, ROOT / "hw" / "synthesis" / "sizes.py", "--help"], 0),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_module_of_the_current_folder_is_run(hostile, name):
    folder, mark = hostile
    command, code = COMMANDS[name]
    done = started(command, folder, XDG_RUNTIME_DIR=str(folder.parent))
    assert not mark.exists(), mark.read_text()
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("path", ["", ":", ".", "HOSTILE"])
@pytest.mark.parametrize("name", ["dibber --help", "dibber info"])
def test_pythonpath_does_not_say_which_modules_dibber_runs(hostile, name, path):
    folder, mark = hostile
    command, code = COMMANDS[name]
    done = started(
        command,
        folder,
        PYTHONPATH=path.replace("HOSTILE", str(folder)),
        PYTHONHOME="/nowhere" if path else "",
    )
    assert not mark.exists(), mark.read_text()
    assert done.returncode == code, done.stderr


def test_make_starts_no_module_of_the_current_folder(hostile):
    folder, mark = hostile
    done = started(["make", "-s", "-C", ROOT, "help"], folder, PYTHONPATH=str(folder))
    assert done.returncode == 0 and not mark.exists()
    done = started(
        [
            "make",
            "-s",
            "-C",
            ROOT / "software" / "lib",
            f"PYTHON={PYTHON}",
            f"BUILD={folder.parent / 'build'}",
            "-n",
        ],
        folder,
    )
    assert done.returncode == 0 and not mark.exists()


def test_every_module_that_is_started_by_name_is_started_without_the_current_folder():
    """In make files, scripts, tests and pages: `python -m` looks for modules in the current folder
    first, `-P` keeps it away.
    """
    listed, wrong = files.names(), []
    for name in listed:
        if name.endswith(("Makefile", ".sh", ".py", ".md")) and name not in (
            "tests/software/test_start.py",
            "docs/faults.md",
        ):
            text = (ROOT / name).read_text()
            wrong += [
                f"{name}: {found[0]}"
                for found in re.finditer(
                    r"(\$\(PYTHON\)|sys\.executable,|venv/bin/python|\"\$VENV/bin/python\"|"
                    r"[^.\w/]python3) +(-m|\"-m\")[^\n]{,40}",
                    text,
                )
            ]
    assert len(listed) > 500 and wrong == []


def test_a_command_that_only_looks_imports_no_numpy():
    """The import took nearly half of the CPU time of a command (libdibber/late.py)."""
    text = (
        "import sys, libdibber, dibber_cli.main\n"
        "from libdibber.late import np\n"
        "assert dibber_cli.main.main(['list']) == 0 and 'numpy' not in sys.modules\n"
        "assert np.arange(3).sum() == 3 and np.ndarray is sys.modules['numpy'].ndarray\n"
        "assert 'arange' in vars(np)\n"
    )
    done = subprocess.run([PYTHON, "-P", "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
