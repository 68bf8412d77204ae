"""Golden model of a switch: docs/design/switch.md, in plain Python.

`verdict` says what becomes of a packet. `Crossbar` is one channel of a switch, cycle by cycle.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dataclasses import dataclass, field

from dibber.interface.description import C, PACKET, SWITCH_DROP
from tests.gateware.models.link import prefix_word, prefix_words
from tests.gateware.models import packet as wire

LIMIT_TICKS = 8  # from the grant to the last word
WAIT_TICKS = 9  # for the grant


@dataclass(frozen=True)
class Verdict:
    """`output` is a port, or None for a packet that is dropped for `reason` (enum switch_drop)."""

    output: int = None
    reason: int = None


def verdict(ports, number, prefix, words):
    """What the switch makes of a packet that came whole, if the output is UP and not blocked.

    number : port where it came in
    prefix : number of prefix words that START announced
    words  : the packet with its prefix words
    """
    if len(words) == 1 and prefix:
        return Verdict(reason=SWITCH_DROP.PREFIX)
    if not prefix:
        return Verdict(reason=SWITCH_DROP.PREFIX if len(words) == 1 else SWITCH_DROP.ROUTE_END)
    turn = words[0] & 15
    if words[0] != prefix_word(turn, prefix - 1):
        return Verdict(reason=SWITCH_DROP.PREFIX)
    return Verdict(output=(number + turn) % ports)


def order_word(prefix, word):
    """What the prefix check makes of a packet's first word: turn, hops left, fault."""
    turn, behind = word & 15, word >> 8 & 7
    if not prefix:
        fault = 1
    else:
        fault = 0 if word == prefix_word(word & 15, prefix - 1) else 2
    return turn | behind << 4 | fault << 7


# Scouts -------------------------------------------------------------------------------------------


def scout(source, question, back=(), number=0):
    """The words of a scout to whatever is at the end of its route.

    question : constants SWITCH_ASK_WORD and SWITCH_ASK_WRITE, and the written value above
    back     : turns of the answer's way
    number   : bits 15:11 of the scout's number
    """
    way = len(back) | sum(turn << 4 * (n + 1) for n, turn in enumerate(back))
    return wire.encode(
        wire.Packet(C.ANYBODY, source, PACKET.SCOUT, key=question | number << 11, offset=way)
    )


def question_of(words, bad=False):
    """(word of the bank, written value or None, turns of the way back) of a scout whose route ends
    at the switch; None for what is no good scout.
    """
    if len(words) != C.HEADER_WORDS + 1 or bad:
        return None
    key, way = words[3], words[4]
    if way >> 3 & 1 or words != wire.encode(
        wire.Packet(C.ANYBODY, words[0] >> 16, PACKET.SCOUT, key=key, offset=way)
    ):
        return None
    turns = [way >> 4 * (n + 1) & 15 for n in range(way & 7)]
    written = key >> 16 if key & C.SWITCH_ASK_WRITE else None
    return key & C.SWITCH_ASK_WORD, written, turns


def answer(words, value):
    """(number of prefix words, words) of the answer to a good scout, at the port where it came."""
    source, key = words[0] >> 16, words[3]
    _, _, turns = question_of(words)
    reply = wire.encode(wire.Packet(source, source, PACKET.SCOUT_REPLY, key=key, offset=value))
    return len(turns), prefix_words(turns) + reply


# Crossbar -----------------------------------------------------------------------------------------


@dataclass
class Word:
    data: int
    first: bool
    last: bool
    bad: bool
    prefix: int = 0


@dataclass
class Packet:
    """A packet at the head of an input. `dropped`: the rest of it is discarded."""

    target: int
    behind: int
    fault: int
    ticks: int = 0  # since it came to the head, or since its grant
    held: bool = False  # it had the grant in the cycle before
    dropped: bool = False


@dataclass
class Output:
    holder: int = None  # input whose packet passes
    last_holder: int = None
    register: Word = None
    begun: bool = False  # a word of the packet came, and its last word did not
    cutting: bool = False  # a bad last word must come before anything else
    stuck: bool = False


@dataclass
class Events:
    """What is counted in a cycle: the inputs of packets that passed or were bad, (input, reason) of
    dropped ones, and the outputs of packets that left.
    """

    passed: set = field(default_factory=set)
    bad: set = field(default_factory=set)
    dropped: set = field(default_factory=set)
    sent: set = field(default_factory=set)


class Crossbar:
    """One channel of a switch.

    A cycle is: `shown`, what each output offers; `cycle`, with what happens in it.
    """

    def __init__(self, ports):
        self.ports = ports
        self.packets = [None] * ports  # at the heads of the inputs
        self.outputs = [Output() for _ in range(ports)]

    @property
    def shown(self):
        return [output.register for output in self.outputs]

    def cycle(self, offers, ready, down, disabled, tick):
        """Returns (inputs whose word was taken, Events).

        offers   : for each input a Word or None; the first word of a packet is an order
        ready    : for each output, whether its word is taken
        down, disabled : sets of outputs
        tick     : an eighth of the limit went by
        """
        events = Events()
        free = [o.register is None or r for o, r in zip(self.outputs, ready)]
        for n, output in enumerate(self.outputs):
            if output.register and ready[n] and output.register.last:
                events.sent.add(n)
        taken, passes, cuts, wants = set(), {}, set(), {n: set() for n in range(self.ports)}
        after = list(self.packets)
        for n, (packet, word) in enumerate(zip(self.packets, offers)):
            if packet is None:
                after[n] = self._order(n, word, taken, events)
            elif packet.dropped:
                if word:
                    taken.add(n)
                    after[n] = None if word.last else packet
            else:
                output = self.outputs[packet.target]
                holds = output.holder == n
                reason = self._reason(packet, holds, free, down, disabled)
                if reason is not None:
                    events.dropped.add((n, reason))
                    packet.dropped = True
                    if holds:
                        cuts.add(packet.target)
                elif not holds:
                    wants[packet.target].add(n)
                elif word and free[packet.target]:
                    taken.add(n)
                    passes[packet.target] = Word(
                        word.data, not output.begun, word.last, word.bad, packet.behind
                    )
                    if word.last:
                        (events.bad if word.bad else events.passed).add(n)
                        after[n] = None
        for n, packet in enumerate(self.packets):
            if packet is not None:
                holds = self.outputs[packet.target].holder == n
                packet.ticks = 0 if holds and not packet.held else packet.ticks + tick
                packet.held = holds
        self.packets = after
        for n, output in enumerate(self.outputs):
            self._advance(output, free[n], passes.get(n), n in cuts, wants[n])
        return taken, events

    def _order(self, n, word, taken, events):
        """The packet that an order begins, if there is one."""
        if not word:
            return None
        taken.add(n)
        if word.last:
            if word.bad:
                events.bad.add(n)
            else:
                events.dropped.add((n, SWITCH_DROP.PREFIX))
            return None
        turn, behind, fault = word.data & 15, word.data >> 4 & 7, word.data >> 7 & 3
        return Packet((n + turn) % self.ports, behind, fault)

    def _reason(self, packet, holds, free, down, disabled):
        """Why the packet must be dropped now; None if it need not."""
        if packet.fault == 1:
            return SWITCH_DROP.ROUTE_END
        if packet.fault == 2:
            return SWITCH_DROP.PREFIX
        if packet.target in down:
            return SWITCH_DROP.DISABLED if packet.target in disabled else SWITCH_DROP.DOWN
        if holds:
            if not packet.held or packet.ticks < LIMIT_TICKS:
                return None
            return SWITCH_DROP.LATE if free[packet.target] else SWITCH_DROP.BLOCKED
        stuck = self.outputs[packet.target].stuck
        return SWITCH_DROP.BLOCKED if stuck or packet.ticks >= WAIT_TICKS else None

    def _advance(self, output, free, word, cut, wants):
        if free:
            output.stuck = False
            if output.cutting:
                output.register = Word(0, False, True, True)
                output.begun = output.cutting = False
            else:
                output.register = word
                if word:
                    output.begun = not word.last
        if cut:
            output.cutting = output.begun
            output.stuck = not free
        if cut or (word and word.last):
            output.holder = None
        if output.holder is None and not cut and wants:
            # Round robin: the next input behind the last holder.
            last = -1 if output.last_holder is None else output.last_holder
            output.holder = min(wants, key=lambda n: (n <= last, n))
            output.last_holder = output.holder
