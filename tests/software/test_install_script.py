"""install.sh in unusual folders and under the user's own settings.

The environment is a real one, with one small package from a folder in place of those of
requirements.txt.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import shutil
import subprocess
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def checkout(folder, packages="probe==1.0\n"):
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "install.sh", folder)
    for name in ("requirements.txt", "constraints.txt"):
        (folder / name).write_text(packages)
    return folder


def wheel(folder, text, name="probe", program=None):
    """A wheel of a package whose module has this text, and which has this program, by its name."""
    folder.mkdir(exist_ok=True)
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", text)
        if program:
            script = zipfile.ZipInfo(f"{name}-1.0.data/scripts/{name}")
            script.external_attr = 0o100755 << 16  # a file that can be run
            archive.writestr(script, program)
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return folder


def install(folder, **environment):
    return subprocess.run(
        ["./install.sh"], cwd=folder, capture_output=True, text=True, env=os.environ | environment
    )


@pytest.mark.fault
@pytest.mark.parametrize(
    "name", ["with space", "co:lon", "quo'te", 'quo"te', "döt", "dollar$", "x" * 200]
)
def test_a_checkout_that_cannot_be_built_is_named_before_anything_is_installed(tmp_path, name):
    folder = checkout(tmp_path / name)
    done = install(folder)
    assert done.returncode == 1 and done.stdout == ""
    assert (
        done.stderr.startswith("install: the path of this checkout ") and str(folder) in done.stderr
    )
    assert done.stderr.count("\n") == 1 and not (folder / "build").exists()


@pytest.mark.fault
def test_packages_go_into_the_environment_whatever_the_users_settings_are(tmp_path):
    folder = checkout(tmp_path / "checkout")
    settings = tmp_path / "pip.conf"
    settings.write_text(
        f"[global]\nno-index = true\n[install]\nuser = true\ntarget = {tmp_path}/target\n"
    )
    done = install(
        folder,
        PIP_CONFIG_FILE=str(settings),
        PIP_FIND_LINKS=str(wheel(tmp_path / "wheels", "here = __file__\n")),
        PIP_PREFIX=str(tmp_path / "prefix"),
        PYTHONUSERBASE=str(tmp_path / "base"),
        PYTHONPATH=str(tmp_path / "path"),
        PYTHONHOME=str(tmp_path / "home"),
    )
    assert done.returncode == 0, done.stderr
    venv = folder / "build" / "venv"
    where = subprocess.run(
        [venv / "bin" / "python", "-I", "-c", "import probe; print(probe.here)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert where.startswith(str(venv)) and (venv / ".made-from").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"checkout", "pip.conf", "wheels"}


@pytest.mark.fault
def test_an_environment_that_a_package_cannot_be_imported_from_is_not_called_done(tmp_path):
    folder = checkout(tmp_path / "checkout")
    done = install(
        folder,
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(wheel(tmp_path / "wheels", "import absent_module\n")),
    )
    assert done.returncode == 1 and "absent_module" in done.stderr
    assert not (folder / "build" / "venv" / ".made-from").exists()


@pytest.mark.fault
def test_uv_gets_the_places_of_packages_alone_and_pip_goes_on_where_it_fails(tmp_path):
    folder = checkout(tmp_path / "checkout", "uv==1.0\nprobe==1.0\n")
    wheels = wheel(tmp_path / "wheels", "")
    wheel(
        wheels, "", "uv", f'#!/bin/sh\necho "$@" >{tmp_path}/words\nenv >{tmp_path}/env\nexit 2\n'
    )
    done = install(
        folder,
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=f"{wheels} {tmp_path}",
        PIP_TRUSTED_HOST="one two",
        PIP_TARGET=str(tmp_path / "target"),
        UV_TARGET=str(tmp_path / "target"),
        UV_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    words = (tmp_path / "words").read_text().split()
    assert words[:2] == ["pip", "install"] and {"--no-config", "--no-index"} < set(words)
    told = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert {name: text for name, text in told.items() if name.startswith("UV_")} == {
        "UV_FIND_LINKS": f"{wheels},{tmp_path}",
        "UV_INSECURE_HOST": "one two",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    } | ({"UV_HTTP_TIMEOUT": told["PIP_DEFAULT_TIMEOUT"]} if "PIP_DEFAULT_TIMEOUT" in told else {})
    assert not (tmp_path / "target").exists()
    assert (folder / "build" / "venv" / ".made-from").exists()
