"""The other end of a link, in plain Python, a word a cycle: it trains, stops channels, sends and
receives packets.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections import deque

from tests.gateware.models.link import (
    END_BAD_WORD,
    END_WORD,
    Receiver,
    flow_word,
    meaning,
    nonce_word,
    pong_word,
    resume_word,
    start_word,
)

CHANNELS = 4
HEAR = 0x80


class FarEnd:
    """A card or another switch, as a port sees it.

    nonce  : its own
    delay  : words on the cable, each way
    random : chooses the channel of the next word, if `ordered` is not set
    ordered: send lower channels first, as a link transmitter does

    Attributes
    ----------
    queues   : for each channel, packets to send: (number of prefix words, words, bad)
    receiver : its `packets` are what came
    stop     : bits of the channels that this end stops; set it at any time
    plugged  : without it nothing passes in either direction
    noise    : share of its words that come to the port with an erroneous symbol
    lost_stops : number of changes to STOP that are lost on their way to this end
    up       : packets may be sent
    late     : for each channel, words that came after this end said STOP
    heard    : (cycle, kind, value) of each word that came, if it is a list
    """

    def __init__(self, nonce, random, delay=4, ordered=False):
        self.nonce, self.random, self.ordered = nonce, random, ordered
        self.queues = [[] for _ in range(CHANNELS)]
        self.receiver = Receiver(CHANNELS, routed=True)
        self.stop = 0
        self.plugged = True
        self.noise = 0.0
        self.lost_stops = 0
        self.late = [0] * CHANNELS
        self.most_late = 0
        self.heard = None
        self.cycle = 0
        self.set_delay(delay)
        self.reset()

    def set_delay(self, delay):
        """Words on the cable, each way. What is on it is lost."""
        self.way_in, self.way_out = deque([None] * delay), deque([None] * delay)

    def reset(self):
        self.up = False
        self.peer = None
        self.flows = 0  # flow words that came
        self.stopped = 0
        self.said = None  # flow state in the last flow word
        self.age = 0
        self.words = 0
        self.ping = None  # number of a ping that has no answer yet
        self.on = None
        self.begun = {}  # channel -> (words that are left, bad)

    # Words that come ------------------------------------------------------------------------------

    def take(self, word):
        kind, value = meaning(word, CHANNELS)
        if self.heard is not None:
            self.heard.append((self.cycle, kind, value))
        if kind == "flow":
            self.flows += 1
            if value & 15 & ~self.stopped and self.lost_stops:
                self.lost_stops -= 1
                return
            self.stopped = value & 15
            if not value & HEAR and self.up:
                self.lose()
            self.up = bool(self.up or (value & HEAR and self.hears()))
        elif kind == "nonce":
            self.peer = value
        elif kind == "ping":
            self.ping = value
        if not self.up:
            return
        if kind == "data" and self.receiver.on is not None:
            channel = self.receiver.on
            if self.said is not None and self.said >> channel & 1:
                self.late[channel] += 1
                self.most_late = max(self.most_late, self.late[channel])
        self.receiver.take(word)

    def hears(self):
        return self.peer is not None and self.peer != self.nonce and self.flows >= 4

    def lose(self):
        """The link is lost: begun packets of both directions end."""
        self.receiver.fail()
        for channel in list(self.begun):
            del self.begun[channel]
        self.reset()

    # Words that leave -----------------------------------------------------------------------------

    def flow(self):
        return self.stop | (HEAR if self.hears() else 0)

    def give(self):
        """The next word to send."""
        self.words += 1
        state = self.flow()
        if state != self.said or self.age >= 200:
            for channel in range(CHANNELS):
                if not (self.said or 0) >> channel & 1:
                    self.late[channel] = 0
            self.said, self.age = state, 0
            return flow_word(state)
        self.age += 1
        if self.ping is not None:
            number, self.ping = self.ping, None
            return pong_word(number)
        if not self.up:
            return nonce_word(self.nonce) if self.words % 16 == 0 else flow_word(state)
        return self.packet_word() or flow_word(state)

    def packet_word(self):
        """A word of a packet, or None if no channel may send one."""
        ready = [
            n
            for n in range(CHANNELS)
            if not self.stopped >> n & 1 and (n in self.begun or self.queues[n])
        ]
        if self.on in self.begun and not self.begun[self.on][0]:
            channel = self.on  # END follows the last word at once
        elif not ready:
            return None
        elif self.ordered:
            channel = ready[0]
        elif self.on in ready and self.random.random() < 0.9:
            channel = self.on
        else:
            channel = self.random.choice(ready)
        if channel not in self.begun:
            prefix, words, bad = self.queues[channel].pop(0)
            self.begun[channel] = (list(words), bad)
            self.on = channel
            return start_word(channel, prefix)
        if self.on != channel:
            self.on = channel
            return resume_word(channel)
        words, bad = self.begun[channel]
        if words:
            return words.pop(0), 0
        del self.begun[channel]
        self.on = None
        return END_BAD_WORD if bad else END_WORD

    # A cycle --------------------------------------------------------------------------------------

    def step(self, word):
        """Take what the port sent, or None; give what it receives, or None: (data, k, whether a
        symbol is erroneous).
        """
        self.cycle += 1
        self.way_in.append(word if self.plugged else None)
        self.way_out.append(self.give() if self.plugged else None)
        came = self.way_in.popleft()
        if came is not None:
            self.take(came)
        gone = self.way_out.popleft()
        return gone and (*gone, self.random.random() < self.noise)

    def idle(self):
        """Whether all packets to send have left."""
        return not self.begun and not any(self.queues)

    def pull(self):
        """Pull the cable: what is on it is lost."""
        self.plugged = False
        for way in (self.way_in, self.way_out):
            for n in range(len(way)):
                way[n] = None
        self.lose()

    def plug(self):
        self.plugged = True
