"""Profiles: the machine and link of a figure (hw/sim/profiles/NAME.toml)."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from dibber_cli import files, paths
from dibber_cli.errors import CommandError, ProfileError

MOST_BYTES = 1 << 20  # of a file


@dataclasses.dataclass(frozen=True)
class Profile:
    """The values of a profile that the benchmarks need. The simulator reads and checks the rest.

    Attributes
    ----------
    name, path          : of the file
    clock_hz, data_width: of the card; Hz, bits
    lanes, pcie_rate    : rate of a lane on the wire, bits a second
    overhead            : share of PCIe for DLLPs and skip ordered sets, 0…1
    framing             : bytes that frame a TLP
    max_payload, max_read_request, read_completion_boundary : bytes
    completion_split    : "boundary", "maximum" or "random"
    line                : bytes of a line of host memory
    posted_up_ns, posted_down_ns : idle delay of a write by the card, and by the CPU
    link_rate           : on the wire, 10 bits per symbol, or of frames; bits per second. That of
                          each lane of a bonded link
    mtu                 : bytes of payload of a frame, if the link is Ethernet; 0: it is serial
    peers               : other cards that a link over Ethernet may have
    bulk_width          : of a link over Ethernet: bits of a word of channel BULK, 32 or 64
    fabric              : of FABRICS: what a serial link is a part of
    cable_ns            : delay through both transceivers and the cable
    copy_element_ns, copy_line_ns, copy_far_load_ns, copy_far_store_ns : constants of a CPU's copy
    (bench/cpu.py)
    combining_buffers, combining_line_ns : of the CPU's stores to a remote window: how many lines
                          are collected at once, and the least time between two that leave
    read_latency_ns     : of a read by the card, idle
    window              : the cards have a remote window; no file says so
    """

    name: str
    path: str
    clock_hz: float
    data_width: int
    lanes: int
    pcie_rate: float
    overhead: float
    framing: int
    max_payload: int
    max_read_request: int
    read_completion_boundary: int
    completion_split: str
    line: int
    posted_up_ns: float
    posted_down_ns: float
    link_rate: float
    mtu: int
    peers: int
    fabric: str
    cable_ns: float
    copy_element_ns: float
    copy_line_ns: float
    copy_far_load_ns: float
    copy_far_store_ns: float
    combining_buffers: int = 10
    combining_line_ns: float = 16.0
    read_latency_ns: float = 0.0
    bulk_width: int = 32
    window: bool = False

    @property
    def pcie_bytes(self) -> float:
        """PCIe's bytes per second in one direction, after the code of the wire, DLLPs and skip
        ordered sets. The code is 8b/10b up to 5 GT/s and 128b/130b above (PCIe Base 3.0, 4.2).
        """
        code = 8 / 10 if self.pcie_rate <= 5e9 else 128 / 130
        return self.lanes * self.pcie_rate * code / 8 * (1 - self.overhead)

    @property
    def link_bytes(self) -> float:
        """The cable's bytes per second, after 8b/10b, or after 64b/66b on four bonded lanes. Over
        Ethernet, a card's words may be slower than the cable.
        """
        if self.fabric == "bonded":
            return 4 * self.link_rate / 66 * 8
        return min(self.link_rate / 8, self.card_bytes) if self.mtu else self.link_rate / 10

    @property
    def card_bytes(self) -> float:
        """Bytes per second of the card's words in front of a port over Ethernet."""
        return self.bulk_width / 8 * self.clock_hz


# Range of each number of a profile. `int` stands for whole numbers, POWER for powers of two among
# them. hw/sim/profile.cc has the same, and a test compares them.
POWER = "power of two"
# Keys of the table `cpu`: nanoseconds of a call of the library.
CALLS = (
    "put_ns",
    "put_strided_ns",
    "poll_empty_ns",
    "poll_entry_ns",
    "mailbox_send_ns",
    "mailbox_receive_ns",
    "mailbox_empty_ns",
)
RANGES = {
    "card.clock_mhz": (1, 1000),
    "card.data_width": (64, 256),
    "pcie.lanes": (1, 16),
    "pcie.rate_gbps": (0.1, 8),
    "pcie.overhead_percent": (0, 50),
    "pcie.framing_bytes": (0, 64),
    "pcie.max_payload": (128, 512),
    "pcie.max_read_request": (128, 4096),
    "pcie.read_completion_boundary": (64, 128),
    "pcie.read_latency_ns": (1, 1e6),
    "pcie.posted_up_ns": (1, 1e6),
    "pcie.posted_down_ns": (1, 1e6),
    "pcie.posted_headers": (1, 2047),
    "pcie.posted_data": (32, 2047),
    "pcie.nonposted_headers": (1, 2047),
    "pcie.credit_return_ns": (1, 1e6),
    "pcie.transmit_buffer_tlps": (1, 1024),
    "pcie.transmit_buffer_bytes": (1024, 65536),
    "pcie.completion_timeout_us": (1, 1e6),
    "pcie.completion_reorder_ns": (0, 1e6),
    "memory.partial_line_ns": (0, 1e6),
    "memory.line_bytes": (16, 256),
    "link.rate_gbps": (0.1, 40),
    "link.length_m": (0, 10000),
    "link.delay_ns_per_m": (0, 100),
    "link.transmit_ns": (0, 1e6),
    "link.receive_ns": (0, 1e6),
    "link.bit_error_rate": (0, 0.1),
    **{f"cpu.{name}": (0, 1e6) for name in CALLS},
    **{
        f"benchmark.copy_{name}_ns": (0, 1e6)
        for name in ("element", "line", "far_load", "far_store")
    },
}
# The same of numbers that a profile may leave out.
OPTIONAL = {
    "link.mtu": (72, 9216),
    "link.peers": (1, 15),
    "link.bulk_width": (32, 64),
    "link.frame_loss": (0, 1),
    "link.frame_late": (0, 1),
    "link.switch_queue_bytes": (9300, 1 << 24),
    "link.skew_ns": (0, 1e6),
    "window.combining_buffers": (1, 64),
    "window.line_ns": (0, 1e6),
    "window.store_ns": (0, 1e6),
}
KINDS = {
    **{
        f"pcie.{name}": POWER
        for name in ("lanes", "max_payload", "max_read_request", "read_completion_boundary")
    },
    **{
        f"pcie.{name}": int
        for name in (
            "framing_bytes",
            "posted_headers",
            "posted_data",
            "nonposted_headers",
            "transmit_buffer_tlps",
            "transmit_buffer_bytes",
        )
    },
    "card.data_width": POWER,
    "link.mtu": int,
    "link.peers": int,
    "link.bulk_width": POWER,
    "link.switch_queue_bytes": int,
    "window.combining_buffers": int,
    "memory.line_bytes": POWER,
}
NAME = r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,63}"  # it becomes part of the names of results
SPLITS = ("boundary", "maximum", "random")
# Cables or switches, one or two; rings; a cable of four lanes.
FABRICS = ("direct", "two-links", "ring", "ring-pair", "bonded")


def _check(raw: dict[str, Any]) -> None:
    """Raise ValueError, which names the key, if a key of a profile is missing, unknown or has a
    wrong value.
    """
    name = raw.get("name")
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise ValueError(f"'name' = {name!r} must be a word of letters, digits and . _ + -")
    known = {*RANGES, "pcie.extended_tags", "pcie.completion_split"}
    missing = [
        path for path in sorted(known) if path.split(".")[1] not in _table(raw, path.split(".")[0])
    ]
    if missing:
        raise ValueError(f"key '{missing[0]}' is missing")
    for table, content in raw.items():
        if table == "name":
            continue
        if not isinstance(content, dict) or not any(
            key.startswith(f"{table}.") for key in (*known, *OPTIONAL)
        ):
            raise ValueError(f"unknown key '{table}'")
        for key, value in content.items():
            path = f"{table}.{key}"
            if path == "link.fabric":
                if value not in FABRICS:
                    raise ValueError(f"'{path}' must be {' or '.join(FABRICS)}")
            elif path in OPTIONAL:
                _check_number(path, value, *OPTIONAL[path], KINDS.get(path))
            elif path not in known:
                raise ValueError(f"unknown key '{path}'")
    for path in known:
        table, key = path.split(".")
        value = raw[table][key]
        if path in RANGES:
            _check_number(path, value, *RANGES[path], KINDS.get(path))
        elif path == "pcie.extended_tags" and not isinstance(value, bool):
            raise ValueError(f"'{path}' must be true or false")
        elif path == "pcie.completion_split" and value not in SPLITS:
            raise ValueError(f"'{path}' must be {', '.join(SPLITS)}")


def _table(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = raw.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"'{name}' must be a table")
    return table


def _check_number(path: str, value: Any, low: float, high: float, kind: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"'{path}' must be a number")
    if kind and not isinstance(value, int):
        raise ValueError(f"'{path}' must be a whole number")
    if not low <= value <= high:  # NaN is in no range
        raise ValueError(f"'{path}' = {str(value)[:30]} is outside {low:g} … {high:g}")
    if kind == POWER and isinstance(value, int) and value & (value - 1):
        raise ValueError(f"'{path}' = {value} is not a power of two")


def names() -> list[str]:
    """Names of the profiles."""
    return sorted(p.stem for p in paths.PROFILES.glob("*.toml"))


def load(name: str) -> Profile:
    """The profile called `name`, or in the file `name`. Raises ProfileError."""
    path = (
        paths.PROFILES / f"{name}.toml"
        if "/" not in name and not name.endswith(".toml")
        else paths.Path(name)
    )
    if not os.path.exists(path):
        raise ProfileError(
            f"no profile '{name}'",
            f"there are: {', '.join(names())}; or give a file NAME.toml",
            code=2,
        )
    try:
        raw = tomllib.loads(files.read(path, "profile", MOST_BYTES).decode())
    except CommandError as error:
        raise ProfileError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"profile {path}: {error}") from error
    try:
        _check(raw)
        card, pcie, memory, link, benchmark = (
            raw[table] for table in ("card", "pcie", "memory", "link", "benchmark")
        )
        stores = raw.get("window", {})
        return Profile(
            name=raw["name"],
            path=str(path),
            clock_hz=card["clock_mhz"] * 1e6,
            data_width=card["data_width"],
            lanes=pcie["lanes"],
            pcie_rate=pcie["rate_gbps"] * 1e9,
            overhead=pcie["overhead_percent"] / 100,
            framing=pcie["framing_bytes"],
            max_payload=pcie["max_payload"],
            max_read_request=pcie["max_read_request"],
            read_completion_boundary=pcie["read_completion_boundary"],
            completion_split=pcie["completion_split"],
            line=memory["line_bytes"],
            posted_up_ns=pcie["posted_up_ns"],
            posted_down_ns=pcie["posted_down_ns"],
            link_rate=link["rate_gbps"] * 1e9,
            mtu=link.get("mtu", 0),
            peers=link.get("peers", 1),
            fabric=link.get("fabric", "direct"),
            cable_ns=link["transmit_ns"]
            + link["length_m"] * link["delay_ns_per_m"]
            + link["receive_ns"],
            copy_element_ns=benchmark["copy_element_ns"],
            copy_line_ns=benchmark["copy_line_ns"],
            copy_far_load_ns=benchmark["copy_far_load_ns"],
            copy_far_store_ns=benchmark["copy_far_store_ns"],
            combining_buffers=stores.get("combining_buffers", 10),
            read_latency_ns=pcie["read_latency_ns"],
            bulk_width=link.get("bulk_width", 32),
            combining_line_ns=stores.get("line_ns", 16.0),
        )
    except ValueError as error:
        raise ProfileError(
            f"profile {path}: {error}", "compare it with hw/sim/profiles/gen2x4.toml"
        ) from error
