"""The puts and gets of a timeline, and the stages of one of them."""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
from collections.abc import Callable, Sequence

from dibber.interface.description import PACKET_FLAG, C

from dibber_cli.errors import CommandError
from dibber_cli.timeline.trace import Event, read

BAR = 0xD0000000  # bus address of BAR 0 in the simulator (hw/sim/host/root_complex.h)
PUTS, GETS = ("PUT", "PUT_INLINE"), ("GET",)
AFTER = 20_000_000  # picoseconds behind a completion in which its program looks at it
BEFORE = 10_000_000  # before a doorbell: its call

Mark = tuple[str, int | None, int]  # stage that ends, its card (None: the cable), picoseconds
Spans = tuple[str, list[tuple[int, int]]]  # name, and (from, until) in picoseconds


@dataclasses.dataclass
class Transfer:
    """A put or get, from its doorbell to its completion in memory. Times are in picoseconds.

    alone : nothing else was under way when it began, and nothing of the other card before its end
    """

    card: int
    endpoint: int
    command: str
    cookie: int
    node: int
    length: int
    begin: int
    end: int
    alone: bool = False


@dataclasses.dataclass
class Stage:
    """A part of a transfer.

    card : where it happens; None: on the cable
    """

    name: str
    card: int | None
    begin: int
    end: int

    @property
    def nanoseconds(self) -> float:
        return (self.end - self.begin) / 1000


# Which there are ----------------------------------------------------------------------------------


def transfers(path: str) -> list[Transfer]:
    """All puts and gets that completed, in order of their doorbells."""
    under_way: dict[tuple[int, int, int], Transfer] = {}
    found: list[Transfer] = []
    for event in read(path):
        told = event.arguments
        if event.name == "doorbell" and told.get("command") in PUTS + GETS:
            key = event.card, told["endpoint"], told["cookie"]
            under_way[key] = Transfer(
                *(event.card, told["endpoint"], told["command"], told["cookie"], told["node"]),
                *(told["length"], event.at, event.at),
            )
        elif event.name == "completion" and event.row.startswith("queue"):
            done = under_way.pop((event.card, told["endpoint"], told["cookie"]), None)
            if done:
                done.end = event.at
                found.append(done)
    found.sort(key=lambda one: one.begin)
    _mark_alone(found)
    return found


def _mark_alone(found: Sequence[Transfer]) -> None:
    """O(n²) only where transfers overlap."""
    latest = -1  # end of all that began before
    for n, one in enumerate(found):
        later = next((m for m in range(n + 1, len(found)) if found[m].begin >= one.end), len(found))
        others = any(other.card != one.card for other in found[n + 1 : later])
        one.alone = latest <= one.begin and not others
        latest = max(latest, one.end)


def chosen(path: str, number: int) -> tuple[Transfer, int]:
    """The transfer with a number, from 1 on, among those that ran alone; 0: the last. Also how many
    there are. Raises CommandError.
    """
    alone = [one for one in transfers(path) if one.alone]
    if not alone:
        raise CommandError(
            f"{path} has no put or get that began alone and completed",
            "record a benchmark of single transfers, as 'dibber bench latency --timeline FILE'",
        )
    if number > len(alone):
        raise CommandError(f"{path} has {len(alone)} transfers that began alone, not {number}")
    return alone[number - 1], len(alone)


# One of them --------------------------------------------------------------------------------------


class Scene:
    """The events around a transfer."""

    def __init__(self, path: str, transfer: Transfer) -> None:
        self.transfer = transfer
        first, last = transfer.begin - BEFORE, transfer.end + AFTER
        self.events = [e for e in read(path) if e.until >= first and e.at <= last]
        self.events.sort(key=lambda e: (e.at, e.until))

    def first(
        self,
        since: int,
        *,
        card: int,
        row: str = "",
        names: Sequence[str] = (),
        until: int | None = None,
        where: Callable[[Event], bool] = lambda _: True,
    ) -> Event | None:
        """The first event of a row from a time on; None."""
        for event in self.events:
            if (
                event.at >= since
                and (until is None or event.at <= until)
                and event.card == card
                and event.row.startswith(row)
                and (not names or event.name in names)
                and where(event)
            ):
                return event
        return None


def stages(scene: Scene) -> list[Stage]:
    """The stages of a transfer, one after the other, from the call to the program that wakes."""
    transfer = scene.transfer
    marks = _call(scene)
    if transfer.command in PUTS:
        marks += _data(scene, transfer.card, transfer.node, marks[-1][2])
        marks += _acknowledged(scene, marks[-1][2])
    else:
        marks += _asked(scene, marks[-1][2])
        marks += _data(scene, transfer.node, transfer.card, marks[-1][2])
    marks += _completed(scene, marks[-1][2])
    begin = marks[0][2]
    found = []
    for name, card, end in marks[1:]:
        if end > begin:
            found.append(Stage(name, card, begin, end))
            begin = end
    return found


def _missing(what: str, scene: Scene) -> CommandError:
    return CommandError(
        f"the transfer at {scene.transfer.begin / 1e6:.3f} µs has no {what} in the file"
    )


def _call(scene: Scene) -> list[Mark]:
    """The call, and the doorbell's way. Marks are (stage that ends, card, time)."""
    one = scene.transfer
    call = [
        event
        for event in scene.events
        if event.card == one.card and event.row.startswith("calls") and event.until == one.begin
    ]
    page = BAR + C.ENDPOINT_BASE + one.endpoint * C.ENDPOINT_STRIDE + C.DOORBELL_OFFSET
    rung = scene.first(
        one.begin,
        card=one.card,
        row="TLPs taken",
        names=("write",),
        where=lambda e: e.arguments["address"] == hex(page),
    )
    if not rung:
        raise _missing("doorbell at the card", scene)
    begin = max((event.at for event in call), default=one.begin)
    return [
        ("", one.card, begin),
        ("call", one.card, one.begin),
        ("doorbell on PCIe", one.card, rung.at),
    ]


def _asked(scene: Scene, since: int) -> list[Mark]:
    """A get's request, up to its end at the other card."""
    one = scene.transfer
    asked = scene.first(since, card=one.card, row="sends on EXPRESS", names=("MESSAGE",))
    heard = asked and scene.first(
        asked.at, card=one.node, row="receives on EXPRESS", names=("MESSAGE",)
    )
    if not asked or not heard:
        raise _missing("request", scene)
    return [
        ("request waits for the link", one.card, asked.at),
        ("request on the link and cable", None, heard.until),
    ]


def _data(scene: Scene, source: int, target: int, since: int) -> list[Mark]:
    """Bytes from the memory of card `source` to card `target`: up to the end of the last packet."""
    packet = scene.first(since, card=source, row="sends on", names=("DEPOSIT",))
    if not packet:
        raise _missing("packet", scene)
    marks: list[Mark] = []
    read = scene.first(since, card=source, names=("read of host memory",), until=packet.at)
    if read:
        completion = scene.first(read.at, card=source, row="TLPs taken", names=("completion",))
        marks = [
            ("prepares the read", source, read.at),
            ("reads host memory", source, completion.at if completion else read.at),
        ]
    last = scene.first(
        packet.at,
        card=source,
        row=packet.row,
        names=("DEPOSIT",),
        where=lambda e: bool(e.arguments["flags"] & PACKET_FLAG.LAST),
    )
    arrived = last and scene.first(
        last.at,
        card=target,
        row=f"receives on {last.arguments['channel']}",
        names=("DEPOSIT",),
        where=lambda e: e.arguments["psn"] == last.arguments["psn"],
    )
    if not last or not arrived:
        raise _missing("last packet at the other card", scene)
    return [
        *marks,
        ("makes the packet", source, packet.at),
        ("packets on the link", source, last.until),
        ("packet on the cable", None, arrived.until),
    ]


def _acknowledged(scene: Scene, since: int) -> list[Mark]:
    """The acknowledgement of a put. It may begin while its last packet still arrives."""
    one = scene.transfer
    heard = scene.first(
        scene.transfer.begin,
        card=one.card,
        row="receives on CONTROL",
        names=("ACK",),
        where=lambda e: e.until > since,
    )
    sent = heard and [
        e
        for e in scene.events
        if e.card == one.node
        and e.row == "sends on CONTROL"
        and e.name == "ACK"
        and e.arguments["ack"] == heard.arguments["ack"]
        and e.until <= heard.until
    ]
    if not heard or not sent:
        raise _missing("acknowledgement", scene)
    return [
        ("checks, writes, acknowledges", one.node, sent[-1].until),
        ("acknowledgement on the cable", None, heard.until),
    ]


def _completed(scene: Scene, since: int) -> list[Mark]:
    one = scene.transfer
    entry = [
        e
        for e in scene.events
        if e.card == one.card
        and e.row.startswith("PCIe link from")
        and e.name == "write"
        and e.arguments["length"] == C.QUEUE_ENTRY_BYTES
        and since <= e.at <= one.end
    ]
    marks: list[Mark] = [("makes the completion", one.card, entry[-1].at)] if entry else []
    marks.append(("completion on PCIe, in memory", one.card, one.end))
    woken = next(
        (
            e
            for e in scene.events
            if e.card == one.card
            and e.row.startswith("calls")
            and e.name == "wait"
            and e.until >= one.end
            and e.at <= one.end
        ),
        None,
    )
    if woken and woken.until - one.end < AFTER:
        marks.append(("program wakes", one.card, woken.until))
    return marks


# What happens beside the stages -------------------------------------------------------------------

BESIDE = (
    # row, what it is called; {} is the card
    ("PCIe link to the card", "card {}: PCIe to the card"),
    ("PCIe link from the card", "card {}: PCIe from the card"),
    ("sends on", "card {}: link"),
    ("wait: writes for credit", "card {}: no credit for writes"),
    ("wait: reads for credit", "card {}: no credit for reads"),
    ("wait: the card until", "card {}: PCIe block not ready"),
    ("wait: a TLP until", "card {}: TLP not taken"),
    ("wait: STOP", "card {}: STOP"),
)


TICKS = 300  # an instant is drawn as wide as this part of the transfer


def beside(scene: Scene, begin: int, end: int) -> list[Spans]:
    """Spans of both cards between two times: (name, [(from, until)]), only where there are any."""
    found = []
    for card in (scene.transfer.card, scene.transfer.node):
        for row, name in BESIDE:
            spans = [
                (max(e.at, begin), min(e.until, end))
                for e in scene.events
                if e.card == card
                and e.phase == "X"
                and e.row.startswith(row)
                and e.until > begin
                and e.at < end
            ]
            if spans:
                found.append((name.format(card), spans))
        ticks = [
            (e.at, e.at + (end - begin) // TICKS)
            for e in scene.events
            if e.card == card and e.row == "control program" and begin <= e.at < end
        ]
        if ticks:
            found.append((f"card {card}: events of the control program", ticks))
    return found
