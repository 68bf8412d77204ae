# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Random transfers between two simulated cards, compared with a model byte by byte.

    python tests/soak/transfers.py --count 20000 --seed 1 --profile gen2x4

Completions of host reads are cut and ordered at random. Exit code 1 when anything was wrong: the report then names
the round, and `--rounds 17:18` runs that one alone.
"""

import argparse
import collections
import json
import sys
import time

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT/"tests"/"soak"), str(ROOT/"tests"/"system")]

from dibber.interface.description import STATUS

import plan
import player

from memory import Memory
from pair import Pair

ROUND   = 40     # commands of each side
RANDOM  = ["--set", 'pcie.completion_split="random"', "--set", "pcie.completion_reorder_ns=300.0"]
REPORTS = 10     # of a round


def name_of(number, side, index, command):
    """A command in words."""
    how = ", ".join(f"{k}={v}" for k, v in command.options.items() if v is not False)
    return (f"round {number}, card {side}, command {index}: endpoint {command.endpoint} {command.kind} "
            f"{command.source} -> {command.target} {command.atomic or ''} {how} {command.mistake}")


def check_ends(commands, ended):
    """Statuses and values that are not as they must be: (index, sentence)."""
    for index, command in enumerate(commands):
        if index not in ended:
            yield index, "did not end"
            continue
        status, value = ended[index]
        if status != command.status:
            yield index, f"ended with {STATUS.name_of(status)} for {STATUS.name_of(command.status)}"
        elif command.value is not None and value != command.value:
            yield index, f"value {value:#x} for {command.value:#x}"


def is_chain(before, added, ended):
    """Whether the values that additions found are those of one order of them."""
    left = {ended[index][1]: operand for index, operand in added.items() if index in ended}
    for _ in added:
        if before not in left:
            return False
        before = (before + left.pop(before)) % (1 << 64)
    return True


def owner_of(commands, node, place):
    """Indices of the commands (side, index) that may write a place."""
    return [(side, index) for side in range(2) for index, command in enumerate(commands[side])
            if command.written and command.written[0] == node and place in set(command.written[1].bytes().tolist())]


class Soak:
    """A run of so many transfers; the counts are its results.

    Attributes
    ----------
    transfers, bytes, wrong_bytes : so far
    operations : how many of each kind
    trouble    : sentences, the first of them
    """

    def __init__(self, count, seed=1, profile="gen2x4", options=(), rounds=None, show=None):
        self.count, self.seed, self.profile, self.options = count, seed, profile, [*RANDOM, *options]
        self.rounds     = rounds or (0, 1 << 30)
        self.show       = show or (lambda text: None)
        self.transfers  = self.bytes = self.wrong_bytes = self.compared = 0
        self.operations = collections.Counter()
        self.trouble    = []

    def run(self):
        with Pair(self.profile, seed=self.seed, options=self.options) as pair:
            keys   = pair.together((player.prepare, self.seed, 0), (player.prepare, self.seed, 1))
            memory = Memory(self.seed)
            number = self.rounds[0]
            while self.transfers < self.count and number < self.rounds[1] and not self.trouble:
                self._round(pair, memory, keys, number)
                number += 1
                self.show(f"{self.transfers} of {self.count} transfers, {self.bytes/1e6:.1f} MB")
        return self

    def _round(self, pair, memory, keys, number):
        memory.begin(number)
        before = [memory.word(node, plan.COUNTER, 8) for node in range(2)]
        todo   = plan.Round(self.seed, number, memory, keys, min(ROUND, -(-(self.count - self.transfers)//2)))
        pair.together(*((player.begin, self.seed, number, node) for node in range(2)))
        played = pair.together(*(
            (player.play, todo.commands[side], todo.notices[side], todo.depth) for side in range(2)))
        found  = pair.together((player.collect,), (player.collect,))

        for side, (ended, trouble) in enumerate(played):
            self.trouble += [f"round {number}, card {side}: {text}" for text in trouble]
            self.trouble += [f"{name_of(number, side, index, todo.commands[side][index])}: {text}"
                             for index, text in check_ends(todo.commands[side], ended)]
            if not is_chain(before[1 - side], todo.added[1 - side], ended):
                self.trouble.append(f"round {number}, card {side}: values before of its additions are no sequence")
            for command in todo.commands[side]:
                self.operations[f"{command.kind}, wrong" if command.mistake else command.kind] += 1
                self.operations.update(option for option in ("fence", "checksum", "notice") if option in command.options
                                       and command.options[option] is not False)
                self.transfers += 1
                self.bytes     += command.length if command.status == STATUS.OK else 0
        for node in range(2):
            wrong = memory.wrong(node, found[node])
            self.compared    += len(found[node])
            self.wrong_bytes += len(wrong)
            if len(wrong):
                place = int(wrong[0])
                self.trouble.append(
                    f"round {number}, card {node}: {len(wrong)} bytes wrong, places {place} to {wrong[-1]}")
                owners = owner_of(todo.commands, node, place)
                self.trouble += [f"  {name_of(number, *owner, todo.commands[owner[0]][owner[1]])}" for owner in owners]
                if not owners:
                    self.trouble.append("  which nobody may write")
        if self.trouble:
            self.trouble.append(f"round {number}: depth {todo.depth}")

    def report(self):
        return {"transfers": self.transfers, "bytes": self.bytes, "bytes_compared": self.compared,
                "bytes_wrong": self.wrong_bytes, "operations": dict(sorted(self.operations.items())),
                "seed": self.seed, "profile": self.profile, "trouble": self.trouble}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="transfers (default 20,000)")
    parser.add_argument("--seed", type=int, default=1, help="of every random choice (default 1)")
    parser.add_argument("--profile", default="gen2x4", help="of hw/sim/profiles (default gen2x4)")
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="change the profile")
    parser.add_argument("--ber", type=float, default=0.0, help="bit error rate of the cable")
    parser.add_argument("--rounds", metavar="A:B", help="only these rounds, from A to before B")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    arguments = parser.parse_args()

    options = [word for change in arguments.set for word in ("--set", change)]
    if arguments.ber:
        options += ["--ber", str(arguments.ber)]
    started = time.monotonic()
    shown   = lambda text: print(f"\r{text}, {time.monotonic() - started:.0f} s ", end="", file=sys.stderr, flush=True)
    rounds  = tuple(map(int, arguments.rounds.split(":"))) if arguments.rounds else None
    soak    = Soak(arguments.count, arguments.seed, arguments.profile, options, rounds, shown).run()
    print(file=sys.stderr)

    report = soak.report()
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        for key, value in report.items():
            if key not in ("operations", "trouble"):
                print(f"{key.replace('_', ' '):16}{value}")
        print(f"{'operations':16}{', '.join(f'{n} {kind}' for kind, n in report['operations'].items())}")
        for text in report["trouble"][:REPORTS]:
            print(text)
    return 1 if report["trouble"] else 0


if __name__ == "__main__":
    sys.exit(main())
