"""Sites for the block RAMs of an ECP5 that has few left.

nextpnr's static placer finds good places for all cells together, then takes its block RAMs to
sites, each to a random one of those around that are free, and the logic follows them. Where nine in
ten RAMs are in use that is half again of all wire. So the netlist is placed twice. At first each
RAM is a carry chain, which is logic and goes where its nets want it. Then each RAM gets a site, for
as little wire as can be found when all else stays where it is: by simulated annealing (Kirkpatrick,
Gelatt and Vecchi, "Optimization by Simulated Annealing", Science 220, 1983) of the nets' half
perimeters. The second time they are there from the beginning.
"""

# SPDX-License-Identifier: BSD-2-Clause

import collections
import math
import random

import design

TYPE = "DP16KD"
CLOCKS = ("CLKA", "CLKB")
SOFT = "soft"

# Tiles of the first of four RAMs in a row, and rows: LFE5U(M)-85F, from the database of Project
# Trellis.
COLUMNS, ROWS = (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114), (22, 46, 70, 82)
SITES = {
    (column + 2 * n, row): f"X{column + 2 * n}/Y{row}/EBR{n}"
    for column in COLUMNS
    for n in range(4)
    for row in ROWS
}
FOURS = {
    (column + 2 * n, row): (column, row) for column in COLUMNS for n in range(4) for row in ROWS
}

# tiles of wire that a move may cost at first; moves, and how often is told how it goes
HOT, MOVES, ROUNDS = 300, 60_000, 10

# Where RAMs with many nets stand side by side, there are more of these than wires to take them
# there. What four RAMs in a row have above COMFORT nets counts by its square, CROWDED tiles of wire
# each.
COMFORT, CROWDED = 240, 0.1

# Chains -------------------------------------------------------------------------------------------

INPUTS, OUTPUTS = ("A0", "B0", "C0", "D0", "A1", "B1", "C1", "D1"), ("S0", "S1")


def soften(module):
    """Put a chain of CCU2C in the place of each RAM of `module`, that of Yosys' JSON. It does
    nothing but to hold the RAM's nets together.

    What drives nets comes first in the chain, and nothing goes into it: no path leads from a RAM's
    inputs to its outputs, as none does in the RAM.
    """
    free = design.first_free_bit(module)
    wanted = {
        bit
        for cell in module["cells"].values()
        for port, bits in cell["connections"].items()
        if cell["port_directions"].get(port) != "output"
        for bit in bits
    }
    for name in [name for name, cell in module["cells"].items() if cell["type"] == TYPE]:
        ram = module["cells"].pop(name)
        ports = {"input": set(), "output": set()}
        for port, bits in ram["connections"].items():
            if port not in CLOCKS:
                ports[ram["port_directions"][port]] |= {
                    bit for bit in bits if isinstance(bit, int) and bit in wanted
                }
        heads = [dict(zip(OUTPUTS, pair)) for pair in cut(sorted(ports["output"]), len(OUTPUTS))]
        tails = [dict(zip(INPUTS, bits)) for bits in cut(sorted(ports["input"]), len(INPUTS))]
        carry = "0"
        for n, pins in enumerate(heads + tails):
            links = {"CIN": carry, "COUT": free, **dict.fromkeys(INPUTS, "0"), **pins}
            module["cells"][f"{SOFT}:{name}:{n}"] = {
                "hide_name": 0,
                "type": "CCU2C",
                "attributes": {},
                "parameters": {
                    "INIT0": 16 * "0",
                    "INIT1": 16 * "0",
                    "INJECT1_0": "NO",
                    "INJECT1_1": "NO",
                },
                "port_directions": {
                    pin: "output" if pin in (*OUTPUTS, "COUT") else "input" for pin in links
                },
                "connections": {pin: [bit] for pin, bit in links.items()},
            }
            module["netnames"][f"{SOFT}:{name}:{n}"] = {
                "hide_name": 0,
                "bits": [free],
                "attributes": {},
            }
            carry, free = free, free + 1


def cut(items, length):
    return [items[n : n + length] for n in range(0, len(items), length)]


# Sites --------------------------------------------------------------------------------------------


class Sites:
    """The nets of RAMs, and where these are.

    Parameters
    ----------
    module : that of the JSON that nextpnr writes of a softened netlist, placed. Of its nets, those
             on the clocks' network do not count

    Attributes
    ----------
    places : dict of RAM -> (x, y), a site that is near to its chain and free
    crowds : dict of the first site of four -> how many nets its RAMs have
    nets   : list of ((least x, greatest x, least y, greatest y) of all that is no RAM, or None; its
             RAMs)
    """

    def __init__(self, module):
        aside = {
            bit
            for name, net in module["netnames"].items()
            if "$glbnet$" in name or name.startswith("promoted")
            for bit in net["bits"]
        }
        boxes, users, chains = {}, {}, {}
        for name, cell in module["cells"].items():
            place = design.tile(cell)
            if place is None:
                continue
            x, y = place
            bits = {
                bit for bits in cell["connections"].values() for bit in bits if isinstance(bit, int)
            } - aside
            if name.startswith(f"{SOFT}:"):
                ram = name.split(":")[1]
                chains.setdefault(ram, []).append((x, y))
                for bit in bits:
                    users.setdefault(bit, set()).add(ram)
            else:
                for bit in bits:
                    box = boxes.get(bit, (x, x, y, y))
                    boxes[bit] = min(box[0], x), max(box[1], x), min(box[2], y), max(box[3], y)
        self.nets = [
            (boxes.get(bit), sorted(rams))
            for bit, rams in users.items()
            if bit in boxes or len(rams) > 1
        ]
        self.nets_of = {ram: set() for ram in chains}
        for n, (_, rams) in enumerate(self.nets):
            for ram in rams:
                self.nets_of[ram].add(n)
        if len(chains) > len(SITES):
            raise ValueError(f"{len(chains)} block RAMs, and {len(SITES)} sites")
        self.places = {}
        left = set(SITES)
        for ram in sorted(chains):
            x, y = (sum(axis) / len(chains[ram]) for axis in zip(*chains[ram]))
            self.places[ram] = min(
                sorted(left), key=lambda site: abs(site[0] - x) + abs(site[1] - y)
            )
            left.remove(self.places[ram])
        self.crowds = collections.Counter()
        for ram, place in self.places.items():
            self.crowds[FOURS[place]] += len(self.nets_of[ram])

    def length(self, n):
        """Half perimeter of a net, in tiles."""
        box, rams = self.nets[n]
        xs, ys = zip(*[self.places[ram] for ram in rams])
        if box:
            xs, ys = xs + box[:2], ys + box[2:]
        return max(xs) - min(xs) + max(ys) - min(ys)

    def crowd(self, four):
        """What it costs that four sites have so many nets, in tiles."""
        return CROWDED * max(0, self.crowds[four] - COMFORT) ** 2

    def anneal(self, seed, moves=MOVES, watch=lambda done, length: None):
        """Move each RAM to a site for as little length of all nets as can be found; the length, in
        tiles.

        watch : called ROUNDS times with the part that is done, 0 to 1, and the length
        """
        chance = random.Random(seed)
        rams = sorted(self.places)
        sites = sorted(SITES)
        there = {place: ram for ram, place in self.places.items()}
        lengths = [self.length(n) for n in range(len(self.nets))]
        for move in range(moves):
            left = 1 - move / moves
            heat = HOT * left**3 if left > 0.05 else 0
            ram = chance.choice(rams)
            here = self.places[ram]
            place = chance.choice(sites)
            while place == here or abs(place[0] - here[0]) > max(8, 120 * left):
                place = chance.choice(sites)
            other = there.get(place)
            nets = self.nets_of[ram] | (self.nets_of[other] if other else set())
            fours = {FOURS[here], FOURS[place]}
            worse = -sum(lengths[n] for n in nets) - sum(map(self.crowd, fours))
            self.move(ram, place, other, here)
            after = {n: self.length(n) for n in nets}
            worse += sum(after.values()) + sum(map(self.crowd, fours))
            if worse <= 0 or (heat and chance.random() < math.exp(-worse / heat)):
                del there[here]
                there[place] = ram
                if other:
                    there[here] = other
                for n, length in after.items():
                    lengths[n] = length
            else:
                self.move(ram, here, other, place)
            if move % (moves // ROUNDS) == 0:
                watch(move / moves, sum(lengths))
        return sum(lengths)

    def move(self, ram, place, other, here):
        """Put `ram` from `here` to `place`, and what is there, `other` or None, to `here`."""
        for one, to, off in ((ram, place, here), (other, here, place)):
            if one:
                self.places[one] = to
                self.crowds[FOURS[to]] += len(self.nets_of[one])
                self.crowds[FOURS[off]] -= len(self.nets_of[one])

    def fix(self, module):
        """Tell nextpnr, in `module` of Yosys' JSON, where each RAM is."""
        for ram, place in self.places.items():
            module["cells"][ram]["attributes"]["BEL"] = SITES[place]
