"""The run folder has a predictable name. So only this user may use it, and links in it are not
followed.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import stat

import pytest
from dibber_cli import paths, profile, simulator
from dibber_cli.errors import CommandError
from dibber_cli.fw import images
from dibber_cli.main import main

pytestmark = pytest.mark.fault

STRANGER = 12345  # number of another user
root = pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's files")


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A folder for temporary files, as /tmp is, without XDG_RUNTIME_DIR; and a simulator that
    starts at once.
    """
    temporary = tmp_path / "t"
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    fake = tmp_path / "dibber-sim-fake"
    fake.write_text("#!/bin/sh\necho ready\nwhile :; do sleep 0.1; done\n")
    fake.chmod(0o700)
    monkeypatch.setattr(paths, "simulator", lambda _: fake)
    yield temporary
    try:
        if simulator.running():
            simulator.stop()
    except CommandError:
        pass


def _prepared(base, how):
    """The run folder as an attacker may have made it; a victim file that its links lead to."""
    folder, victim = paths.run_directory(), base.parent / "victim"
    victim.write_text("precious")
    elsewhere = base.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if how == "link":
        folder.symlink_to(elsewhere)
    elif how == "file":
        folder.write_text("")
    elif how == "dangling":
        folder.symlink_to(base.parent / "nowhere")
    else:
        folder.mkdir(mode=0o700)
        for name in ("log", "pid", "profile", "card0.sock", images._name("sim:x")):
            (folder / name).symlink_to(victim)
        if how == "open":
            folder.chmod(0o755)
        if how == "stranger":
            os.chown(folder, STRANGER, STRANGER)
    return folder, victim, elsewhere


@pytest.mark.parametrize(
    "how", ["link", "dangling", "file", "open", pytest.param("stranger", marks=root)]
)
def test_a_folder_that_is_not_ones_own_is_refused_by_name_and_left_alone(base, capsys, how):
    folder, victim, elsewhere = _prepared(base, how)
    before = sorted(os.listdir(folder)) if folder.is_dir() else None
    image = base.parent / "image"
    image.write_bytes(b"image")
    for call in (
        lambda: simulator.start(profile.load("gen2x4"), participants=0, seed=1),
        lambda: images.remember("sim:x", image),
        lambda: images.last("sim:x").__enter__(),
    ):
        with pytest.raises(CommandError, match=str(folder)):
            call()
    for command in ("start", "status", "stop"):
        assert main(["sim", command]) == 1
        assert str(folder) in capsys.readouterr().err
    assert (
        victim.read_text() == "precious"
        and os.listdir(elsewhere) == []
        and not (base.parent / "nowhere").exists()
    )
    assert before is None or sorted(os.listdir(folder)) == before


def test_links_in_ones_own_folder_are_not_followed(base):
    folder, victim, _ = _prepared(base, "own")
    image = base.parent / "image"
    image.write_bytes(b"image")
    images.remember("sim:x", image)
    with pytest.raises(CommandError, match="/pid"):
        simulator.start(profile.load("gen2x4"), participants=0, seed=1)
    (folder / "pid").unlink()
    assert simulator.start(profile.load("gen2x4"), participants=0, seed=1)
    assert victim.read_text() == "precious"
    for name in ("log", "pid", "profile", images._name("sim:x")):
        found = os.lstat(folder / name)
        assert stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
    with images.last("sim:x") as (path, shown):
        assert path.read_bytes() == b"image" and shown.parent == folder


def test_a_link_or_a_pipe_in_place_of_a_file_is_not_read(base):
    folder, victim, _ = _prepared(base, "own")
    with pytest.raises(CommandError, match="image-"):
        with images.last("sim:x"):
            pass
    os.unlink(folder / "pid")
    os.mkfifo(folder / "pid")
    with pytest.raises(CommandError, match="pid is not a plain file"):
        simulator.running()


def test_the_image_that_was_checked_is_the_one_that_is_loaded(base):
    image = base.parent / "image"
    image.write_bytes(b"image")
    images.remember("sim:x", image)
    with images.last("sim:x") as (path, shown):
        shown.unlink()
        shown.write_bytes(b"another")
        assert path.read_bytes() == b"image"


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda place: None, "No such file"),
        (lambda place: place.write_text(""), "not a folder"),
        (lambda place: (place.mkdir(), place.chmod(0o777)), "another user"),
        pytest.param(
            lambda place: (place.mkdir(), os.chown(place, STRANGER, STRANGER)),
            "another user",
            marks=root,
        ),
    ],
)
def test_an_xdg_runtime_dir_that_cannot_be_used_is_named(base, monkeypatch, capsys, make, reason):
    place = base.parent / "xdg"
    make(place)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    for command in ("start", "status", "stop"):
        assert main(["sim", command]) == 1
        said = capsys.readouterr().err
        assert "XDG_RUNTIME_DIR" in said and str(place) in said and reason in said


def test_a_new_folder_is_closed_to_others_whatever_the_umask(base):
    before = os.umask(0)
    try:
        simulator.start(profile.load("gen2x4"), participants=0, seed=1)
    finally:
        os.umask(before)
    folder = paths.run_directory()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(
        stat.S_IMODE(os.lstat(folder / name).st_mode) == 0o600 for name in os.listdir(folder)
    )
