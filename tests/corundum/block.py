"""The block for Corundum as a program: generated, and built with its bench."""

# SPDX-License-Identifier: BSD-2-Clause

import importlib.util
import sys

from dibber.interface.description import HOST, C

from tests.gateware.mcp.card import ROOT, run, simulator, verilated

CORUNDUM = ROOT / "hw" / "corundum"
BUILD = ROOT / "build" / "tests" / "corundum"
HERE = ROOT / "tests" / "corundum"


def generator():
    spec = importlib.util.spec_from_file_location("corundum_files", CORUNDUM / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def generated():
    """The folder of all files for PCIe of 256 bits. Written anew when a source is younger."""
    folder = BUILD / "256"
    sources = [*CORUNDUM.rglob("*.py"), *CORUNDUM.rglob("*.v"), *(ROOT / "gateware").rglob("*.py")]
    block = folder / "mqnic_app_block.v"
    with simulator().alone_in(folder):
        young = lambda path: path.stat().st_mtime > block.stat().st_mtime
        if not block.exists() or any(map(young, sources)):
            # A process of its own: Migen's names depend on what was elaborated before in one.
            run(sys.executable, CORUNDUM / "generate.py", "--pcie", 256, "--output", folder)
    return folder


def program():
    """The path of the bench program; see block.cc."""
    folder = generated()
    bench, listing = folder / "block.cc", folder / "block.f"
    names = ("MAGIC", "LINK_STATUS", "LINK_NONCE", "LINK_PEER")
    text = "".join(f"#define AT_{name} {C.HOST_BASE + HOST[name].offset}\n" for name in names)
    text += f'#include "{HERE / "block.cc"}"\n'
    if not bench.exists() or bench.read_text(encoding="utf-8") != text:
        bench.write_text(text, encoding="utf-8")
    lines = ["-Wno-TIMESCALEMOD", "-GPTP_TS_WIDTH=16", f"-GAPP_ID={generator().APP_ID}"]
    lines += [str(path) for path in sorted(folder.glob("*.v"))]
    if not listing.exists() or listing.read_text(encoding="utf-8") != "\n".join(lines):
        listing.write_text("\n".join(lines), encoding="utf-8")
    sources = [HERE / "block.cc", HERE / "engines.h"]
    return verilated(folder, "mqnic_app_block", listing, bench, included=sources)
