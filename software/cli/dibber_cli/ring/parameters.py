"""The parameter file of a ring: what it may say, and what it says.

docs/ring-model.md explains each key. A file is TOML; all keys are checked before anything runs.
"""

# SPDX-License-Identifier: BSD-2-Clause

import copy
import dataclasses
import os
import tomllib
from collections.abc import Mapping
from typing import Any

from dibber_cli import files
from dibber_cli.errors import CommandError
from dibber_cli.ring.keys import Choice, Flag, Key, Lengths, Nodes, Number, Whole, table

MOST_BYTES = 1 << 20  # of a file
NODES = (2, 64)
CHANNELS = 4
MOST_WORKLOADS = 16
MOST_PACKETS = 65_536  # of a block

KEYS: dict[str, dict[str, Key]] = {
    "ring": {
        "nodes": Whole(*NODES),
        "rings": Whole(1, 2, default=1),
        "choose": Choice("shortest", "packet", "flow", "front", default="shortest"),
        "symbol_bytes": Whole(1, 64),
        "symbol_mhz": Number(0.1, 100_000),
        "wire_m": Lengths(0, 10_000),
        "wire_ns_per_m": Number(0, 100, default=5.0),
        "go_bits": Flag(default=True),
        "housekeeping_symbols": Whole(16, 1_000_000, default=None),
    },
    "node": {
        "pass_symbols": Number(1, 10_000),
        "launch_symbols": Number(0, 100_000, default=0),
        "take_symbols": Number(-1_000, 10_000, default=0),
        "retry_symbols": Number(0, 100_000, default=0),
    },
    "packet": {
        "payload_bytes": Whole(1, 65_536),
        "overhead_symbols": Whole(1, 1_000),
        "echo_symbols": Whole(1, 1_000),
        "separator_symbols": Whole(0, 1_000, default=1),
        "checked_bytes": Whole(1, 65_536, default=None),
    },
    "buffers": {
        "channels": Whole(1, CHANNELS),
        "send": Whole(1, 1_024),
        "receive": Number(1, 1_024),
        "largest_bytes": Whole(1, 1 << 20, default=None),
        "reservation": Choice("retry", "grant", "none", default="retry"),
    },
    "client": {
        "send_mbps": Number(0.001, 1e9, default=None),
        "send_ns": Number(0, 1e9, default=0),
        "receive_mbps": Number(0.001, 1e9, default=None),
        "receive_ns": Number(0, 1e9, default=0),
        "answer_ns": Number(0, 1e9, default=0),
    },
    "limit": {
        "each": Choice("flow", "channel", default="flow"),
        "least": Whole(1, 1_024, default=1),
        "most": Whole(1, 1_024),
        "raise_after": Whole(1, 1_000_000, default=8),
    },
    "run": {
        "warmup_us": Number(0, 1e7),
        "measure_us": Number(0.001, 1e7),
        "seed": Whole(0, (1 << 64) - 1, default=1),
    },
}
WORKLOAD: dict[str, Key] = {
    "kind": Choice("message", "read", "write"),
    "pattern": Choice("uniform", "hot-receiver", "next", "opposite", default="uniform"),
    "sources": Nodes(default="all"),
    "targets": Nodes(default="all"),
    "hot_node": Whole(0, NODES[1] - 1, default=0),
    "hot_share": Number(0, 1, default=1.0),
    "block_bytes": Whole(0, 1 << 26),
    "least_bytes": Whole(0, 1 << 26, default=None),
    "short_share": Number(0, 1, default=0.0),
    "outstanding": Whole(1, 4_096, default=None),
    "offered_mbps": Number(1e-6, 1e9, default=None),
    "spacing": Choice("poisson", "uniform", default="poisson"),
    "channel": Whole(0, CHANNELS - 1, default=0),
    "answer_channel": Whole(0, CHANNELS - 1, default=None),
}
OPTIONAL = ("client", "limit")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """A checked parameter file.

    Attributes
    ----------
    name     : for tables and charts
    ring, node, packet, buffers, client, run : {key: value}, as in KEYS; `ring["wire_m"]` is a list
               with the length of the link from each node to the next one, in metres
    limit    : the same, or None when the file has no [limit]
    workloads: a {key: value} for each [[workload]], as in WORKLOAD; lists of node numbers in
               `sources` and `targets`
    raw      : the file as TOML gives it
    """

    name: str
    ring: dict[str, Any]
    node: dict[str, Any]
    packet: dict[str, Any]
    buffers: dict[str, Any]
    client: dict[str, Any]
    limit: dict[str, Any] | None
    run: dict[str, Any]
    workloads: list[dict[str, Any]]
    raw: dict[str, Any]

    @property
    def symbol_ps(self) -> int:
        """Picoseconds of a symbol on a link."""
        return round(1e6 / self.ring["symbol_mhz"])

    @property
    def link_mbps(self) -> float:
        """Megabytes that a link carries in a second, idles and headers included."""
        return self.ring["symbol_bytes"] * self.ring["symbol_mhz"]

    @property
    def hop_ps(self) -> list[int]:
        """For each node: from a symbol at its output to the same symbol at the next output."""
        passing = self.node["pass_symbols"] * self.symbol_ps
        per_metre = self.ring["wire_ns_per_m"] * 1e3
        return [round(passing + length * per_metre) for length in self.ring["wire_m"]]

    def symbols(self, payload: int) -> int:
        """Symbols of a send packet with so many bytes of payload, without its separator."""
        checks = -(-payload // self.packet["checked_bytes"]) if self.packet["checked_bytes"] else 0
        data = -(-payload // self.ring["symbol_bytes"])
        return self.packet["overhead_symbols"] + data + checks

    def changed(self, changes: dict[str, Any]) -> "Parameters":
        """The same with other values: {"table.key": value}. "workload.key" changes each workload.
        Raises ValueError as `checked` does.
        """
        raw = copy.deepcopy(self.raw)
        for path, value in changes.items():
            section, _, key = path.partition(".")
            if not key:
                raise ValueError(f"'{path}' is not TABLE.KEY")
            if section != "workload" and section not in KEYS:
                raise ValueError(
                    f"unknown table '{section}': there are {', '.join(KEYS)}, workload"
                )
            tables = raw[section] if section == "workload" else [raw.setdefault(section, {})]
            for one in tables:
                one[key] = value
        return checked(raw)


def checked(raw: dict[str, Any]) -> Parameters:
    """The Parameters of a parsed file. Raises ValueError, which names the key that is wrong."""
    known = {"name", "workload", *KEYS}
    for section in raw:
        if section not in known:
            raise ValueError(f"unknown key '{section}': there are {', '.join(sorted(known))}")
    name = raw.get("name")
    if not isinstance(name, str) or not 1 <= len(name) <= 64 or not name.isprintable():
        raise ValueError("'name' must be 1 … 64 printable characters")
    values: dict[str, Any] = {}
    for section, keys in KEYS.items():
        if section in raw or section not in OPTIONAL:
            if section not in raw:
                raise ValueError(f"table '[{section}]' is missing")
            values[section] = table(section, raw[section], keys)
    values.setdefault("client", table("client", {}, KEYS["client"]))
    values.setdefault("limit", None)
    workloads = raw.get("workload")
    if not isinstance(workloads, list) or not 1 <= len(workloads) <= MOST_WORKLOADS:
        raise ValueError(f"the file must have 1 … {MOST_WORKLOADS} tables '[[workload]]'")
    values["workloads"] = [
        table(f"workload[{n}]", content, WORKLOAD) for n, content in enumerate(workloads)
    ]
    _check_sizes(values)
    for n, workload in enumerate(values["workloads"]):
        _check_workload(f"workload[{n}]", workload, values)
    return Parameters(name=name, raw=copy.deepcopy(raw), **values)


def _check_sizes(values: Mapping[str, Any]) -> None:
    """What one table alone cannot say."""
    ring, node, packet, limit = (values[t] for t in ("ring", "node", "packet", "limit"))
    if not isinstance(ring["wire_m"], list):
        ring["wire_m"] = [ring["wire_m"]] * ring["nodes"]
    if len(ring["wire_m"]) != ring["nodes"]:
        raise ValueError(
            f"'ring.wire_m' has {len(ring['wire_m'])} lengths, and the ring {ring['nodes']} links"
        )
    if ring["rings"] == 1 and ring["choose"] != "shortest":
        raise ValueError(f"'ring.choose' = {ring['choose']!r} needs 'ring.rings' = 2")
    if packet["echo_symbols"] > packet["overhead_symbols"]:
        raise ValueError(
            f"'packet.echo_symbols' = {packet['echo_symbols']} is above 'packet.overhead_symbols': "
            "an echo takes the place of its packet's last symbols"
        )
    if -node["take_symbols"] > min(packet["overhead_symbols"], node["pass_symbols"]):
        raise ValueError(
            "'node.take_symbols' would give a packet to the client before its last symbol came"
        )
    if ring["go_bits"] and packet["separator_symbols"] < 1:
        raise ValueError("'packet.separator_symbols' must be 1 or more: it carries the go bit")
    if values["buffers"]["reservation"] == "grant" and node["retry_symbols"]:
        raise ValueError("'node.retry_symbols' is not for 'buffers.reservation' = 'grant'")
    if limit and limit["least"] > limit["most"]:
        raise ValueError("'limit.least' is above 'limit.most'")


def _check_workload(path: str, workload: dict[str, Any], values: Mapping[str, Any]) -> None:
    nodes, channels = values["ring"]["nodes"], values["buffers"]["channels"]
    for key in ("sources", "targets"):
        if workload[key] == "all":
            workload[key] = list(range(nodes))
        for n, node in enumerate(workload[key]):
            if not 0 <= node < nodes:
                raise ValueError(f"'{path}.{key}[{n}]' = {node} is outside 0 … {nodes - 1}")
    if workload["hot_node"] >= nodes:
        raise ValueError(f"'{path}.hot_node' = {workload['hot_node']} is outside 0 … {nodes - 1}")
    if (workload["outstanding"] is None) == (workload["offered_mbps"] is None):
        raise ValueError(f"'{path}' must have one of 'outstanding' and 'offered_mbps'")
    if workload["answer_channel"] is None:
        workload["answer_channel"] = min(workload["channel"] + 1, channels - 1)
    for key in ("channel", "answer_channel"):
        if workload[key] >= channels:
            raise ValueError(f"'{path}.{key}' = {workload[key]} is outside 0 … {channels - 1}")
    if workload["kind"] != "message":
        if workload["short_share"]:
            raise ValueError(f"'{path}.short_share' is only for messages")
        if workload["block_bytes"] < 1:
            raise ValueError(f"'{path}.block_bytes' must be 1 or more")
    least = workload["least_bytes"]
    if least is not None and least > workload["block_bytes"]:
        raise ValueError(f"'{path}.least_bytes' is above '{path}.block_bytes'")
    if workload["block_bytes"] > MOST_PACKETS * values["packet"]["payload_bytes"]:
        raise ValueError(f"'{path}.block_bytes' is more than {MOST_PACKETS} packets")
    if workload["offered_mbps"] is not None and not mean_bytes(workload):
        raise ValueError(f"'{path}.offered_mbps' counts payload, and no message has any")
    for source in workload["sources"]:
        if not targets_of(workload, source, nodes):
            raise ValueError(f"'{path}': node {source} has no target besides itself")


def mean_bytes(workload: dict[str, Any]) -> float:
    """Mean payload of a block."""
    most, least = workload["block_bytes"], workload["least_bytes"]
    mean = most if least is None else (most + least) / 2
    return mean * (1 - workload["short_share"])


def targets_of(workload: dict[str, Any], source: int, nodes: int) -> list[int]:
    """The nodes that a source may choose as targets: never itself."""
    if workload["pattern"] == "next":
        return [(source + 1) % nodes]
    if workload["pattern"] == "opposite":
        return [(source + nodes // 2) % nodes]
    others = [node for node in workload["targets"] if node != source]
    if workload["pattern"] == "hot-receiver" and workload["hot_share"] == 1:
        return [workload["hot_node"]] if workload["hot_node"] != source else []
    return others


def load(path: str | os.PathLike[str]) -> Parameters:
    """The Parameters of a file. Raises CommandError: it cannot be read, or a key is wrong."""
    data = files.read(path, most=MOST_BYTES)
    try:
        return checked(tomllib.loads(data.decode()))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: {error}", "docs/ring-model.md explains each key") from None
