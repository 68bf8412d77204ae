"""What a simulated card is built from, as its profile says."""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import tomllib
import typing

PROFILES = pathlib.Path(__file__).resolve().parent / "profiles"


class Shape(typing.NamedTuple):
    """What the card of a profile is built from.

    width  : of the data path, bits
    clock  : MHz
    mtu    : bytes of payload of a frame over Ethernet, or 0
    peers  : other cards that a link over Ethernet may have
    fabric : what a serial link is a part of: direct, two-links, ring, ring-pair, bonded
    bulk_width : bits of a word of channel BULK, 32 or, over Ethernet, 64
    """

    width: int
    clock: float
    mtu: int
    peers: int
    fabric: str
    bulk_width: int

    @property
    def name(self):
        return (
            f"{self.width}"
            + ("" if self.clock == 125 else f"-{self.clock:g}")
            + (f"-mtu{self.mtu}" if self.mtu else "")
            + (f"-peers{self.peers}" if self.peers > 1 else "")
            + ("" if self.bulk_width == 32 else f"-bulk{self.bulk_width}")
            + ("" if self.fabric == "direct" else f"-{self.fabric}")
        )


def card_of(profile, fabric=""):
    """The Shape of a profile's card; `fabric` is in place of the profile's."""
    values = tomllib.loads((PROFILES / f"{profile}.toml").read_text())
    card, link = values["card"], values["link"]
    return Shape(
        card["data_width"],
        card["clock_mhz"],
        link.get("mtu", 0),
        link.get("peers", 1),
        fabric or link.get("fabric", "direct"),
        link.get("bulk_width", 32),
    )
