# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Profiles: the machine and link that a figure was taken with (hw/sim/profiles/NAME.toml)."""

import dataclasses
import tomllib

from dibber_cli import paths
from dibber_cli.errors import ProfileError


@dataclasses.dataclass(frozen=True)
class Profile:
    """The values of a profile that the benchmarks need; the simulator reads, and checks, the rest.

    Attributes
    ----------
    name, path          : of the file
    clock_hz, data_width: of the card; Hz, bits
    lanes, pcie_rate    : rate of a lane on the wire, bits a second
    overhead            : share of PCIe that DLLPs and skip ordered sets take, 0…1
    framing             : bytes that frame a TLP
    max_payload, max_read_request, read_completion_boundary : bytes
    completion_split    : "boundary", "maximum" or "random"
    line                : bytes of a line of host memory
    posted_up_ns, posted_down_ns : of a write by the card, of one by the CPU; idle
    link_rate           : on the wire, 10 bits a symbol; bits a second
    cable_ns            : through both transceivers and the cable
    copy_element_ns, copy_line_ns, copy_far_load_ns, copy_far_store_ns : of the CPU that copies (bench/cpu.py)
    """
    name             : str
    path             : str
    clock_hz         : float
    data_width       : int
    lanes            : int
    pcie_rate        : float
    overhead         : float
    framing          : int
    max_payload      : int
    max_read_request : int
    read_completion_boundary : int
    completion_split : str
    line             : int
    posted_up_ns     : float
    posted_down_ns   : float
    link_rate        : float
    cable_ns         : float
    copy_element_ns  : float
    copy_line_ns     : float
    copy_far_load_ns : float
    copy_far_store_ns : float

    @property
    def pcie_bytes(self):
        """PCIe's bytes a second in one direction, after 8b/10b, DLLPs and skip ordered sets."""
        return self.lanes*self.pcie_rate*8/10/8*(1 - self.overhead)

    @property
    def link_bytes(self):
        """The cable's bytes a second, after 8b/10b."""
        return self.link_rate/10


def names():
    """The profiles that there are."""
    return sorted(p.stem for p in paths.PROFILES.glob("*.toml"))


def load(name):
    """The profile called `name`, or in the file `name`. Raises ProfileError."""
    path = paths.PROFILES/f"{name}.toml" if "/" not in name and not name.endswith(".toml") else paths.Path(name)
    try:
        with open(path, "rb") as f:
            raw = tomllib.load(f)
    except FileNotFoundError:
        raise ProfileError(f"no profile '{name}'", f"there are: {', '.join(names())}; or give a file NAME.toml")
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"profile {path}: {error}")
    try:
        card, pcie, memory, link, benchmark = (raw[table] for table in ("card", "pcie", "memory", "link", "benchmark"))
        return Profile(
            name             = raw["name"],
            path             = str(path),
            clock_hz         = card["clock_mhz"]*1e6,
            data_width       = card["data_width"],
            lanes            = pcie["lanes"],
            pcie_rate        = pcie["rate_gbps"]*1e9,
            overhead         = pcie["overhead_percent"]/100,
            framing          = pcie["framing_bytes"],
            max_payload      = pcie["max_payload"],
            max_read_request = pcie["max_read_request"],
            read_completion_boundary = pcie["read_completion_boundary"],
            completion_split = pcie["completion_split"],
            line             = memory["line_bytes"],
            posted_up_ns     = pcie["posted_up_ns"],
            posted_down_ns   = pcie["posted_down_ns"],
            link_rate        = link["rate_gbps"]*1e9,
            cable_ns         = link["transmit_ns"] + link["length_m"]*link["delay_ns_per_m"] + link["receive_ns"],
            copy_element_ns  = benchmark["copy_element_ns"],
            copy_line_ns     = benchmark["copy_line_ns"],
            copy_far_load_ns = benchmark["copy_far_load_ns"],
            copy_far_store_ns = benchmark["copy_far_store_ns"])
    except KeyError as error:
        raise ProfileError(f"profile {path}: key {error} is missing", "compare it with hw/sim/profiles/gen2x4.toml")
    except TypeError as error:
        raise ProfileError(f"profile {path}: {error}", "compare it with hw/sim/profiles/gen2x4.toml")
