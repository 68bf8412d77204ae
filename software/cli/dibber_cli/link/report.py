"""The whole test of a cable, step by step, and its verdict."""

# SPDX-License-Identifier: BSD-2-Clause

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dibber_cli import counts
from dibber_cli.errors import CommandError
from dibber_cli.link import causes, measure, pairs, status
from dibber_cli.link.end import End
from dibber_cli.link.side import Ends
from dibber_cli.link.tasks import Task

MEGA = 1_000_000
STOP_NS = 100_000  # no working card stops an idle link for so long
SELF_NS = 50_000  # of bit sequence through a card's own transceiver


class Tester:
    """Runs the steps and keeps their results in `result`; `say` gets the name of each step.

    ends : side.Ends. link : the profile's table of that name. seed : of the nonces
    """

    def __init__(
        self, ends: Ends, link: Mapping[str, Any], seed: int, say: Callable[[str], None]
    ) -> None:
        self.ends, self.link, self.say = ends, link, say
        self.random = random.Random(seed)
        self.result: dict[str, Any] = {
            "verdict": "",
            "pass": False,
            "ring": any(s.ring for s in ends.sides),
        }
        # Its MAC measures bit errors, and switches may stand between.
        self.ethernet = any(side.ethernet for side in ends.sides)
        # Its packets wait for room, and its cables are measured together.
        self.ring = any(side.ring for side in ends.sides)
        self.doubts = 1  # error of the length in half cycles: of the round trip

    def run(self, megabytes: int, prbs_ms: float) -> dict[str, Any]:
        if self.training() and self.flow():
            if not self.ethernet:
                # On a ring a card in loopback is TEST, and does not tell its own words.
                if not self.ring:
                    self.transceivers()
                self.length()
                self.bit_errors(prbs_ms)
            if not self.ends.testers:
                self.rate(megabytes)
            self.judge()
        return self.result

    # Steps ----------------------------------------------------------------------------------------

    def training(self) -> bool:
        self.say("training")
        nonces = (
            pairs.nonces(self.random) if self.ring else self.random.sample(range(1, 1 << 16), 2)
        )
        self.ends.both(
            *[lambda side, n=n: side.card.write_register("LINK_NONCE", n) for n in nonces]
        )
        found = self.ends.both(measure.train)
        self.result["links"] = [link for link, _ in found]
        times = [time for _, time in found]
        self.result["train_ns"] = max(times) if None not in times else None
        sizes = [link["ring"]["nodes"] for link in self.result["links"] if link["ring"]]
        if self.ring and (len(sizes) != len(found) or max(sizes) > 2):
            raise CommandError(
                f"the cards are nodes of a ring of {max(sizes)}: this test is for a ring of two",
                "'dibber link status' and 'dibber map' say what they see of a larger ring",
            )
        if self.result["train_ns"] is None:
            self.result["verdict"] = (
                "No link. " + self.sentences(time is None for _, time in found) + self.each_alone()
            )
            return False
        return True

    def each_alone(self) -> str:
        """Advice where to look, from a transceiver in loopback, without the cable."""
        if (
            self.ethernet
            or self.ring
            or any(link["reason"] == "LOOPBACK" for link in self.result["links"])
        ):
            return ""
        self.say("each card alone")
        found = measure.prbs(self.ends, measure.sequence_of("PRBS31"), SELF_NS, loopback="phy")
        self.result["phy_loopback"] = found
        if None in found:
            return ""
        bad = [n for n, e in enumerate(found) if e and (not e["locked"] or e["errors"])]
        if not bad:
            return (
                " Inside its transceiver each card hears itself without error: look at the "
                "cable and its plugs."
            )
        return "".join(
            f" Card {n} does not hear even itself without error: look at its transceiver."
            for n in bad
        )

    def flow(self) -> bool:
        """Check STOP: the other end may say STOP for a moment, and no card sends yet."""
        self.say("flow")

        def stopped(side: End) -> tuple[dict[str, Any], dict[str, Any]]:
            first = status.read(side.card)
            side.sleep(STOP_NS)
            return first, status.read(side.card)

        found = self.ends.both(stopped)
        self.result["links"] = [link for _, link in found]
        held = [set(first["stopped"]) & set(link["stopped"]) for first, link in found]
        if any(held):
            self.result["verdict"] = "No flow. " + self.sentences(held)
        return not any(held)

    def sentences(self, chosen: Iterable[object]) -> str:
        """The link's state at the chosen cards."""
        said = [
            f"Card {n}: {status.sentence(link)}"
            for n, (link, yes) in enumerate(zip(self.result["links"], chosen))
            if yes
        ]
        return " ".join(s if s[-1] in "?." else s + "." for s in said)

    def transceivers(self) -> None:
        """Measure the transceivers' own times. If the profile's times differ, the measured times
        count.
        """
        self.say("transceivers")
        found = self.ends.both(measure.transceiver_delay)
        self.ends.both(measure.wait_up)
        self.result["transceivers_ns"] = [None if f is None else round(f[0], 1) for f in found]
        stated = self.link["transmit_ns"] + self.link["receive_ns"]
        if None not in found and any(abs(time - stated) > doubt for time, doubt in found):
            # The round trip passes both transmitters and both receivers.
            self.link = {
                **self.link,
                "transmit_ns": sum(time for time, _ in found) / 2,
                "receive_ns": 0,
            }
            self.doubts = 2  # and of the transceivers' measured times

    def cuts(self) -> list[str]:
        """Sentences about the cables of a pair of rings that are not good at their cards."""
        return [
            f"card {n}, cable {connector}: {pairs.cable_sentence(cable)}"
            for n, link in enumerate(self.result["links"])
            if link["pair"]
            for connector, cable in link["pair"]["cables"].items()
            if not cable["whole"]
        ]

    def length(self) -> None:
        self.say("length")
        # On a folded ring a word passes one cable twice, and each card.
        times = [None, None] if self.cuts() else self.ends.both(measure.round_trip)
        self.result["round_trip_ns"] = times
        measured = measure.ring_length if self.ring else measure.cable_length
        lengths = [
            None if t is None else measured(t, self.link, side.clock_hz)
            for t, side in zip(times, self.ends.sides)
        ]
        self.result["metres"] = [None if l is None else round(l[0], 1) for l in lengths]
        self.result["metres_doubt"] = max(
            (round(self.doubts * l[1], 1) for l in lengths if l), default=None
        )

    def bit_errors(self, milliseconds: float) -> None:
        self.say("bit errors")
        self.result["bit_errors"] = measure.prbs_cables(
            self.ends, measure.sequence_of("PRBS31"), int(milliseconds * 1e6)
        )
        self.ends.both(measure.wait_up)

    def rate(self, megabytes: int) -> None:
        before = self.ends.both(measure.counters)
        rates = []
        # First contiguous, then byte by byte with gaps. The target's PCIe cannot keep up with the
        # gaps, so it says STOP.
        for name, block, total in (
            ("rate", 0, megabytes * MEGA),
            ("rate with STOP/GO", 1, megabytes * MEGA // 8),
        ):
            self.say(name)
            _, key = self.ends.both(lambda side: None, measure.offer)
            (rate, bad), _ = self.ends.both(
                Task(measure.send, key, total, block), lambda side: None
            )
            _, wrong = self.ends.both(lambda side: None, Task(measure.wrong_bytes, block))
            rates.append({"mb_per_s": round(rate, 1), "failed": bad, "bytes_wrong": wrong})
        after = self.ends.both(measure.counters)
        self.result["reset"] = [
            counts.was_reset(b["counters"], a["counters"], b["cycles"], a["cycles"])
            for b, a in zip(before, after)
        ]
        change = [
            counts.changes(b["counters"], a["counters"], reset)
            for b, a, reset in zip(before, after, self.result["reset"])
        ]
        self.result["rate"], self.result["rate_stop"] = rates
        self.result["packets_sent"] = change[0]["packets_sent"] - change[0]["acks_sent"]
        self.result["packets_received"] = change[1]["packets_received"] - change[0]["acks_sent"]
        self.result["packets_missing"] = change[1]["packet_gap"]
        self.result["stops"] = change[1]["stops_sent"]
        self.result["stopped_ns"] = change[0]["stopped_cycles"] * 1e9 / self.ends.sides[0].clock_hz
        self.result["counters"] = change

    # Verdict --------------------------------------------------------------------------------------

    def judge(self) -> None:
        r = self.result
        faults = []
        if self.ethernet:
            faults += self.packet_faults()
            r["pass"] = not faults
            r["verdict"] = (
                f"Not good: {'; '.join(faults)}."
                if faults
                else f"Good: {r['rate']['mb_per_s']:g} MB/s over Ethernet, "
                f"{r['rate_stop']['mb_per_s']:g} waiting for credit, "
                f"0 of {r['packets_sent']} packets lost."
            )
            return
        if cuts := self.cuts():
            faults += cuts
        elif None in r["metres"]:
            faults.append("no answer to a ping")
        for e in r["bit_errors"]:
            if not e["locked"]:
                faults.append(f"card {measure.place(e)} did not find the bit sequence")
            elif e["errors"]:
                faults.append(
                    f"card {measure.place(e)}: {e['errors']} bit errors in "
                    f"{e['bits']:.2g} bits ({e['rate']:.1e})"
                )
        if not self.ends.testers:
            faults += self.packet_faults()
        r["pass"] = not faults
        if faults:
            r["verdict"] = "Not good: " + "; ".join(faults) + "."
        else:
            bits, below = (
                sum(e["bits"] for e in r["bit_errors"]),
                max(e["rate_below"] for e in r["bit_errors"]),
            )
            r["verdict"] = (
                f"Good: {r['metres'][0]:g} m, no bit error in {bits:.2g} bits (rate below "
                f"{below:.1e} with 95 % confidence)"
            )
            if self.ends.testers:
                r["verdict"] += (
                    ". A link tester carries no packets: their rate and loss are the whole card's "
                    "to tell."
                )
            else:
                r["verdict"] += (
                    f", {r['rate']['mb_per_s']:g} MB/s, {r['rate_stop']['mb_per_s']:g} under "
                    f"{'BUSY and grants' if self.ring else 'STOP/GO'}, "
                    f"0 of {r['packets_sent']} packets lost."
                )

    def packet_faults(self) -> list[str]:
        """Results of the transfers of rate(), each as text."""
        r, faults = self.result, []
        for name in ("rate", "rate_stop"):
            if r[name]["failed"]:
                faults.append(f"transfers failed: {', '.join(sorted(set(r[name]['failed'])))}")
            if r[name]["bytes_wrong"]:
                faults.append(f"{r[name]['bytes_wrong']} bytes are wrong")
        faults += [
            f"card {n} was reset during the test" for n, reset in enumerate(r["reset"]) if reset
        ]
        metres = [length for length in r.get("metres", []) if length is not None]
        faults += causes.sentences(
            r["counters"], metres[0] if metres else None, self.ethernet, self.ring
        )
        return faults


def rows(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """For output.table()."""
    found = []
    if result.get("train_ns") is not None:
        found.append(("trained in", f"{result['train_ns'] / 1000:.1f} µs"))
    for n, link in enumerate(result["links"]):
        found.append((f"card {n}", status.sentence(link)))
    if "metres" in result:
        if None not in result.get("transceivers_ns", [None]):
            found.append(
                ("transceivers", ", ".join(f"{t:.0f} ns" for t in result["transceivers_ns"]))
            )
        found.append(
            (
                "way round" if result.get("ring") else "round trip",
                ", ".join("none" if t is None else f"{t:.0f} ns" for t in result["round_trip_ns"]),
            )
        )
        found.append(
            (
                "cables, mean" if result.get("ring") else "cable",
                ", ".join("?" if m is None else f"{m:g} m" for m in result["metres"])
                + (f", ± {result['metres_doubt']:g} m" if result["metres_doubt"] else ""),
            )
        )
        for e in result["bit_errors"]:
            found.append(
                (
                    f"PRBS31 at card {measure.place(e)}",
                    f"{e['errors']} errors in {e['bits']:.2g} bits, rate below "
                    f"{e['rate_below']:.1e}"
                    if e["locked"]
                    else "not found",
                )
            )
    if "rate" in result:
        found.append(("rate", f"{result['rate']['mb_per_s']:g} MB/s"))
        found.append(
            (
                "under BUSY and grants" if result.get("ring") else "under STOP/GO",
                f"{result['rate_stop']['mb_per_s']:g} MB/s; {result['stops']} "
                f"{'refusals' if result.get('ring') else 'STOPs'}, a packet waited "
                f"{result['stopped_ns'] / 1000:.0f} µs in all",
            )
        )
        found.append(
            (
                "packets",
                f"{result['packets_sent']} sent, {result['packets_received']} received, "
                f"{result['packets_missing']} times one was missing",
            )
        )
    return found
