"""A soak: rounds of random commands on both sides of a simulated pair, each compared with the
model.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dibber.interface.description import STATUS

from dibber_cli import profile as profiles
from dibber_cli.bench import session
from dibber_cli.bench.hosts import Cards
from dibber_cli.simulator import Pair
from dibber_cli.soak import distant, plan
from dibber_cli.soak.commands import Command
from dibber_cli.soak.memory import Memory
from dibber_cli.soak.player import Ended
from dibber_cli.soak.program import Counters, Show, Soldier

ROUND = 40  # commands of each side
# Completions of host reads are cut and ordered at random.
RANDOM = ["--set", 'pcie.completion_split="random"', "--set", "pcie.completion_reorder_ns=300.0"]


def name_of(number: int, side: int, index: int, command: Command) -> str:
    """A command as text."""
    how = ", ".join(f"{k}={v}" for k, v in command.options.items() if v is not False)
    return (
        f"round {number}, card {side}, command {index}: endpoint {command.endpoint} {command.kind} "
        f"{command.source} -> {command.target} {command.atomic or ''} {how} {command.mistake}"
    )


def check_ends(commands: Sequence[Command], ended: Ended) -> Iterator[tuple[int, str]]:
    """Wrong statuses and values: (index, sentence)."""
    for index, command in enumerate(commands):
        if index not in ended:
            yield index, "did not end"
            continue
        status, value = ended[index]
        if status != command.status:
            yield index, f"ended with {STATUS.name_of(status)} for {STATUS.name_of(command.status)}"
        elif command.value is not None and value != command.value:
            yield index, f"value {value:#x} for {command.value:#x}"


def is_chain(before: int, added: Mapping[int, int], ended: Ended) -> bool:
    """Whether the old values of the additions belong to one order of them."""
    left = {ended[index][1]: operand for index, operand in added.items() if index in ended}
    for _ in added:
        if before not in left:
            return False
        before = (before + left.pop(before)) % (1 << 64)
    return True


def owner_of(commands: Sequence[Sequence[Command]], node: int, place: int) -> list[tuple[int, int]]:
    """Indices of the commands (side, index) that may write a place."""
    return [
        (side, index)
        for side in range(2)
        for index, command in enumerate(commands[side])
        if command.written
        and command.written[0] == node
        and place in set(command.written[1].bytes().tolist())
    ]


class Soak:
    """A run of so many transfers, in a `with` statement; or all of it by run(). Counts are its
    results.

    Attributes
    ----------
    transfers, bytes : so far
    compared, wrong_bytes : bytes of memory, gaps and guards included
    operations : number of each kind
    elapsed_ps : of simulated time in which commands were under way; busy_ps: CPU time charged in it
                 to both sides
    trouble    : sentences, the first of them
    versions   : of gateware, control program and library
    """

    def __init__(
        self,
        count: int,
        seed: int = 1,
        profile: str = "gen2x4",
        options: Sequence[str] = (),
        rounds: tuple[int, int] | None = None,
        show: Callable[[str], None] | None = None,
        cards: Cards | None = None,
    ) -> None:
        """cards : hosts.Cards in place of a simulated pair"""
        self.cards = cards
        self.count, self.seed, self.profile, self.options = (
            count,
            seed,
            profile,
            [*RANDOM, *options],
        )
        self.number, self.last = rounds or (0, 1 << 30)
        self.show = show or (lambda text: None)
        self.transfers = self.bytes = self.wrong_bytes = self.compared = 0
        self.elapsed_ps = self.busy_ps = 0
        self.operations: collections.Counter[str] = collections.Counter()
        self.trouble: list[str] = []

    def __enter__(self) -> "Soak":
        with contextlib.ExitStack() as stack:
            chosen = profiles.load(self.profile)
            pair = self.cards or Pair(chosen, seed=self.seed, options=self.options)
            stack.enter_context(pair)
            self.workers = stack.enter_context(session.Workers(pair, Soldier, self.seed, ()))
            opened = self.workers.receive()
            if self.cards:
                self.cards.opened = opened
                self.cards.fitted(chosen)
            self.keys = [answer["keys"] for answer in opened]
            self.versions = session.versions_of(
                *(opened[0][name] for name in ("build", "identity", "interface", "hash"))
            )
            self.memory = Memory(self.seed)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *how: Any) -> None:
        if not kind:
            self.workers.finish()
        self._stack.__exit__(kind, *how)

    def run(self) -> "Soak":
        """All of it."""
        with self:
            self.go_on(self.count)
        return self

    def go_on(self, count: int) -> None:
        """Run rounds until so many transfers were made in total, or until a fault."""
        while self.transfers < count and self.number < self.last and not self.trouble:
            self._round(min(ROUND, -(-(count - self.transfers) // 2)))
            self.number += 1
            self.show(f"{self.transfers} of {self.count} transfers, {self.bytes / 1e6:.1f} MB")

    def counters_of_cards(self) -> dict[str, int]:
        """Sums of both cards' counters, by name."""
        found = self.workers.do(Counters(), self.keys)
        return {
            name: sum(side["counters"][name] for side in found) for name in found[0]["counters"]
        }

    def _round(self, size: int) -> None:
        self.memory.begin(self.number)
        before = [self.memory.word(node, plan.COUNTER, 8) for node in range(2)]
        todo, turn = distant.turn_of(self.seed, self.number, self.memory, self.keys, size)
        for pipe in self.workers.pipes:
            if isinstance(pipe, distant.Server):
                pipe.keys, pipe.size = self.keys, size
        played = self.workers.do(turn, self.keys)
        found = self.workers.do(Show(), self.keys)
        self.elapsed_ps += max(p["end_ps"] for p in played) - min(p["begin_ps"] for p in played)
        self.busy_ps += sum(p["cpu_ps"] for p in played)
        for side in range(2):
            self._judge(todo, side, played[side], before[1 - side])
        for node in range(2):
            self._compare(todo, node, found[node])
        if self.trouble:
            self.trouble.append(f"round {self.number}: depth {todo.depth}")

    def _judge(self, todo: plan.Round, side: int, played: Mapping[str, Any], before: int) -> None:
        """The results of a side's commands."""
        number, commands = self.number, todo.commands[side]
        self.trouble += [f"round {number}, card {side}: {text}" for text in played["trouble"]]
        self.trouble += [
            f"{name_of(number, side, index, commands[index])}: {text}"
            for index, text in check_ends(commands, played["ended"])
        ]
        if not is_chain(before, todo.added[1 - side], played["ended"]):
            self.trouble.append(
                f"round {number}, card {side}: values before of its additions are no sequence"
            )
        for command in commands:
            self.operations[f"{command.kind}, wrong" if command.mistake else command.kind] += 1
            self.operations.update(
                option
                for option in ("fence", "checksum", "notice")
                if option in command.options and command.options[option] is not False
            )
            self.operations.update(f"{side} list" for side in command.lists)
            self.transfers += 1
            self.bytes += command.length if command.status == STATUS.OK else 0

    def _compare(self, todo: plan.Round, node: int, found: Mapping[str, Any]) -> None:
        """The memory of a side, all of it."""
        if "memory" in found:
            wrong = self.memory.wrong(node, found["memory"])
            count, compared = len(wrong), len(found["memory"])
        else:
            wrong, count, compared = found["places"], found["wrong"], found["compared"]
        self.compared += compared
        self.wrong_bytes += count
        if not count:
            return
        place = int(wrong[0])
        self.trouble.append(
            f"round {self.number}, card {node}: {count} bytes wrong, places {place} to {wrong[-1]}"
        )
        owners = owner_of(todo.commands, node, place)
        self.trouble += [
            f"  {name_of(self.number, *owner, todo.commands[owner[0]][owner[1]])}"
            for owner in owners
        ]
        if not owners:
            self.trouble.append("  which nobody may write")

    def report(self) -> dict[str, Any]:
        return {
            "transfers": self.transfers,
            "bytes": self.bytes,
            "bytes_compared": self.compared,
            "bytes_wrong": self.wrong_bytes,
            "operations": dict(sorted(self.operations.items())),
            "seed": self.seed,
            "profile": self.profile,
            "trouble": self.trouble,
        }
