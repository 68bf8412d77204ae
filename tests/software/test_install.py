"""`make -C software/lib install` installs all that a program, its linker and its author need."""

# SPDX-License-Identifier: BSD-2-Clause

import os
import pathlib
import re
import subprocess
import sys

import pytest
from libdibber import binding

LIB = pathlib.Path(__file__).resolve().parents[2] / "software" / "lib"
EXAMPLE = LIB / "examples" / "put_strided.c"
SOURCE = LIB / "include" / "dibber" / "dibber.h"

sys.path.insert(0, str(LIB / "man"))

from header import Header  # noqa: E402

HEADER = Header(SOURCE)
EXCHANGE = Header(SOURCE.with_name("exchange.h"), HEADER.errors)
WINDOW = Header(SOURCE.with_name("window.h"), HEADER.errors)
FUNCTIONS = {*HEADER.functions, *EXCHANGE.functions, *WINDOW.functions}


@pytest.fixture(scope="module")
def prefix(built_library, tmp_path_factory):
    """A prefix with the library in it."""
    path = tmp_path_factory.mktemp("prefix")
    subprocess.run(
        ["make", "-s", "-C", LIB, f"PYTHON={sys.executable}", "install", f"PREFIX={path}"],
        check=True,
    )
    return path


def pkg_config(prefix, *arguments):
    return subprocess.run(
        ["pkg-config", *arguments, "dibber"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")},
    ).stdout.split()


@pytest.mark.parametrize("static", [False, True])
def test_an_example_is_built_with_what_pkg_config_says(prefix, tmp_path, static):
    options = pkg_config(prefix, "--cflags", "--libs", *(["--static"] if static else []))
    how = ["-static"] if static else [f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(
        [
            "cc",
            "-std=c11",
            "-Wall",
            "-Werror",
            "-D_POSIX_C_SOURCE=200809L",
            "-o",
            tmp_path / "put",
            EXAMPLE,
            *options,
            *how,
        ],
        check=True,
    )
    done = subprocess.run(
        [tmp_path / "put", "none", "sim:/a", "sim:/b"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "no simulator at /a" in done.stderr


def test_its_version_is_the_librarys(prefix):
    assert pkg_config(prefix, "--modversion") == re.findall(
        r'#define DIB_VERSION "(\S+)"', (LIB / "include" / "dibber" / "dibber.h").read_text()
    )


def test_a_destdir_stands_before_the_prefix(built_library, tmp_path):
    subprocess.run(
        [
            "make",
            "-s",
            "-C",
            LIB,
            f"PYTHON={sys.executable}",
            "install",
            f"DESTDIR={tmp_path}",
            "PREFIX=/opt/dibber",
        ],
        check=True,
    )
    root = tmp_path / "opt" / "dibber"
    assert "prefix=/opt/dibber\n" in (root / "lib" / "pkgconfig" / "dibber.pc").read_text()
    assert (root / "lib" / "libdibber.so").resolve() == root / "lib" / "libdibber.so.0"


def test_only_documented_functions_are_exported_each_with_a_version(prefix):
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", prefix / "lib" / "libdibber.so"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    headers = ("dibber.h", "exchange.h", "window.h")
    text = "".join(SOURCE.with_name(name).read_text() for name in headers)
    declared = set(re.findall(r"^(?:[\w ]+?[ *])(dib_\w+)\(", text, re.MULTILINE))
    assert set(re.findall(r" T (\w+)@@DIBBER_0\.\d", symbols)) == declared == FUNCTIONS


# Manual -------------------------------------------------------------------------------------------


def test_each_call_has_a_page_that_the_linter_of_manuals_finds_nothing_in(prefix):
    man = prefix / "share" / "man"
    pages = sorted([*(man / "man3").iterdir(), *(man / "man7").iterdir()])
    assert {page.name for page in pages} == {f"{name}.3" for name in FUNCTIONS} | {"dibber.7"}
    found = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True
    )
    assert found.stdout == "" and found.returncode == 0


def test_a_page_says_what_the_header_says(prefix):
    text = subprocess.run(
        ["mandoc", "-T", "ascii", prefix / "share" / "man" / "man3" / "dib_put_strided.3"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    text = re.sub(r".\x08", "", text)
    for words in (
        "dib_put_strided - deposit from one walk to another",
        "struct dib_walk {",
        "int64_t stride[DIBBER_LEVELS];",
        "DIB_ERR_AGAIN",
        "dibber(7)",
    ):
        assert words in text, words
    for error, meaning in HEADER.functions["dib_put_strided"].errors.items():
        flat = " ".join(text.split())
        assert f"DIB_ERR_{error} {meaning or HEADER.errors[error]}" in flat


def test_the_errors_of_the_manual_are_those_of_the_binding():
    assert tuple(HEADER.errors) == binding.ERRORS


def test_a_call_that_does_not_say_its_errors_is_refused(tmp_path):
    broken = tmp_path / "dibber.h"
    broken.write_text(SOURCE.read_text().replace(" * Errors: ARGUMENT, NO_MEMORY.\n", ""))
    with pytest.raises(ValueError, match=r"dib_alloc\(\) does not say"):
        Header(broken)


# The builder's settings ---------------------------------------------------------------------------


@pytest.mark.fault
def test_everybody_can_read_what_root_installed_under_a_narrow_umask(built_library, tmp_path):
    subprocess.run(
        [
            "sh",
            "-c",
            'umask 077; exec "$@"',
            "-",
            "make",
            "-s",
            "-C",
            LIB,
            f"PYTHON={sys.executable}",
            "install",
            f"DESTDIR={tmp_path}",
            "PREFIX=/opt/dibber",
        ],
        check=True,
    )
    installed = sorted((tmp_path / "opt").rglob("*"))
    assert any(path.name == "dibber.pc" for path in installed) and any(
        path.suffix == ".3" for path in installed
    )
    for path in installed:
        mode = path.stat().st_mode & 0o777
        assert mode == (0o755 if path.is_dir() or ".so" in path.name else 0o644), (
            f"{path}: {mode:o}"
        )


@pytest.mark.fault
def test_the_builders_tools_flags_and_folders_are_used(built_library, tmp_path):
    archiver = tmp_path / "archiver"
    archiver.write_text(f'#!/bin/sh\necho used >>{tmp_path}/archived\nexec ar "$@"\n')
    archiver.chmod(0o755)
    printed = subprocess.run(
        [
            "make",
            "-C",
            LIB,
            f"PYTHON={sys.executable}",
            f"BUILD={tmp_path}/build",
            f"GENERATED={tmp_path}/generated",
            f"AR={archiver}",
            "CFLAGS=-O0 -DIN_CFLAGS",
            "CPPFLAGS=-DIN_CPPFLAGS",
            "LDFLAGS=-Wl,-z,now",
            "LDLIBS=-lm",
            "libdir=/usr/lib/x86_64-linux-gnu",
            f"DESTDIR={tmp_path}/root",
            "PREFIX=/usr",
            "install",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert (tmp_path / "archived").exists()
    commands = printed.replace("\\\n", "").splitlines()
    compiled = [line for line in commands if " -c " in line]
    linked = [line for line in commands if " -shared " in line]
    assert compiled and all("-DIN_CFLAGS" in line and "-DIN_CPPFLAGS" in line for line in compiled)
    assert len(linked) == 1 and "-Wl,-z,now" in linked[0] and linked[0].endswith("-lm")
    folder = tmp_path / "root/usr/lib/x86_64-linux-gnu"
    assert {"libdibber.a", "libdibber.so.0", "libdibber.so"} <= {
        path.name for path in folder.iterdir()
    }
    assert "libdir=/usr/lib/x86_64-linux-gnu\n" in (folder / "pkgconfig" / "dibber.pc").read_text()
