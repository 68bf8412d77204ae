# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re

import pytest

GATEWARE = pathlib.Path(__file__).resolve().parents[2] / "gateware" / "dibber"

# PHY modules are the one place in gateware/ where a vendor's primitive may stand: below phy/, or in
# a file whose name ends with it.
SOURCES = sorted(
    p
    for p in GATEWARE.rglob("*.py")
    if not p.stem.endswith("phy") and "phy" not in p.relative_to(GATEWARE).parts
)

# An Instance of a primitive, or a module of LiteX or LiteICLink that holds one.
PRIMITIVE = re.compile(
    r"\bInstance\s*\("
    r"|\b(?:GT[PXHY]E\d\w*|IBUFDS\w*|BUFG\w*|MMCME\d\w*|PLLE\d\w*|RAMB\d+\w*|DSP48\w*|DCUA|EXTREFB|EHXPLLL|DP16KD)\b"
    r"|\bfrom\s+(?:liteiclink\.serdes|litex\.soc\.cores\.clock|litex\.build\.(?:xilinx|lattice|altera|gowin))"
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(GATEWARE)))
def test_gateware_outside_the_phys_names_no_vendor_primitive(path):
    found = [
        f"{path.name}:{n}: {line.strip()}"
        for n, line in enumerate(path.read_text().splitlines(), 1)
        if PRIMITIVE.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_pattern_finds_what_it_is_for():
    for line in [
        'Instance("GTPE2_CHANNEL",',
        "from liteiclink.serdes.gtp_7series import GTP",
        "self.pll = S7PLL; PLLE2_ADV",
    ]:
        assert PRIMITIVE.search(line)
    assert not PRIMITIVE.search("self.specials += Memory(32, 64)")
