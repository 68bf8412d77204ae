"""What a run counts, and the figures made of it. What happens in the warm-up is not counted."""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Sequence
from typing import Any

from dibber_cli.ring.items import ACCEPTED, ORDER, Item, Packet

PERCENTILES = (50, 95, 99)


class LinkCount:
    """The link behind one output.

    begin : time from which is counted, in picoseconds
    """

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.own = self.passing = self.echoes = 0  # picoseconds of symbols
        self.packets = 0
        self.stalls: list[int] = []
        self.waits: list[int] = []  # in the bypass FIFO, of those that waited

    def sent(self, item: Item, start: int) -> None:
        """An item of the node leaves."""
        if start >= self.begin:
            if type(item) is Packet:
                self.own += item.length
                self.packets += 1
            else:
                self.echoes += item.length

    def passed(self, item: Item, start: int, waited: int) -> None:
        if start >= self.begin:
            if type(item) is Packet:
                self.passing += item.length
            else:
                self.echoes += item.length
            if waited:
                self.waits.append(waited)

    def stalled(self, now: int, time: int) -> None:
        """A packet began `time` picoseconds after the first chance, for want of a go bit."""
        if now >= self.begin:
            self.stalls.append(time)

    def figures(self, span: int) -> dict[str, Any]:
        """
        Parameters
        ----------
        span : picoseconds that were counted
        """
        return {
            "use": (self.own + self.passing + self.echoes) / span,
            "own": self.own / span,
            "passing": self.passing / span,
            "echoes": self.echoes / span,
            "go_stalls": len(self.stalls),
            "go_stall_ns": _mean(self.stalls) / 1e3,
            "bypass_ns": max(self.waits, default=0) / 1e3,
        }


class NodeCount:
    """One node's packets of all rings."""

    def __init__(self, begin: int, channels: int) -> None:
        self.begin = begin
        self.sent_bytes = [0] * channels  # accepted, by channel
        self.received_bytes = [0] * channels
        self.received = [0] * channels
        self.latencies: list[list[int]] = [[] for _ in range(channels)]  # ready to delivered
        self.crossings: list[int] = []  # whole in its send buffer to delivered
        self.round_trips: list[int] = []  # last symbol sent to the echo's last symbol
        self.until_echo: list[int] = []  # ready to the echo's last symbol
        self.refused = [0] * channels  # echoes BUSY
        self.ordered = [0] * channels  # echoes ORDER
        self.most_tries = 0

    def echoed(self, packet: Packet, answer: str, now: int) -> None:
        """The last symbol of an echo came back."""
        if now < self.begin:
            return
        if answer == ACCEPTED:
            self.sent_bytes[packet.channel] += packet.bytes
            self.round_trips.append(now - packet.left)
            self.until_echo.append(now - packet.ready)
            self.most_tries = max(self.most_tries, packet.tries)
        elif answer == ORDER:
            self.ordered[packet.channel] += 1
        else:
            self.refused[packet.channel] += 1

    def delivered(self, packet: Packet, now: int) -> None:
        """The client has the whole packet."""
        if now >= self.begin:
            self.received[packet.channel] += 1
            self.received_bytes[packet.channel] += packet.bytes
            self.latencies[packet.channel].append(now - packet.ready)
            self.crossings.append(now - packet.written)


class WorkCount:
    """The blocks of one workload."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.bytes = 0
        self.latencies: list[int] = []

    def done(self, size: int, began: int, now: int) -> None:
        if now >= self.begin:
            self.bytes += size
            self.latencies.append(now - began)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def distribution(values: list[int]) -> dict[str, float]:
    """Mean, percentiles and highest of times in picoseconds; in nanoseconds. Zeros if empty."""
    ordered = sorted(values)
    found = {"mean_ns": _mean(ordered) / 1e3}
    for share in PERCENTILES:
        at = min(len(ordered) - 1, len(ordered) * share // 100)
        found[f"p{share}_ns"] = ordered[at] / 1e3 if ordered else 0.0
    found["max_ns"] = ordered[-1] / 1e3 if ordered else 0.0
    return found


def jain(shares: list[float]) -> float:
    """Jain's index of fairness: 1 if all shares are equal, 1 / n if one node has all (R. Jain,
    D. Chiu, W. Hawe, DEC TR-301, 1984).
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
