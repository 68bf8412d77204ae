"""Golden model of the link's words: docs/design/link.md, in plain Python.

A word is (data, k), the first symbol in bits 7:0; with a third member that is true it has an
erroneous symbol.
"""

# SPDX-License-Identifier: BSD-2-Clause

# K28.5 K27.7 K23.7 K29.7 K30.7
K_COMMA, K_START, K_RESUME, K_END, K_END_BAD = 0xBC, 0xFB, 0xF7, 0xFD, 0xFE
K_NONCE, K_PING, K_PONG = 0x1C, 0x5C, 0x7C  # K28.0 K28.2 K28.3
FLOW_FILL = 0xB5  # D21.5

# Words --------------------------------------------------------------------------------------------


def crc8(data):
    """CRC-8 with polynomial 0x07."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = ((crc << 1) ^ (0x07 if crc & 0x80 else 0)) & 0xFF
    return crc


def control(*symbols):
    return int.from_bytes(bytes(symbols), "little"), 1


def flow_word(flow):
    """Bit n of `flow`: STOP channel n; bit 7: "I hear you"."""
    return control(K_COMMA, flow, flow ^ 0xFF, FLOW_FILL)


def start_word(channel, prefix=0):
    """`prefix`: how many prefix words follow."""
    byte = channel | prefix << 4
    return control(K_START, byte, crc8([byte]), 0)


def prefix_word(turn, behind):
    """What a switch takes off: its turn, and how many hops come after it."""
    return int.from_bytes(bytes([turn, behind, 0, crc8([turn, behind, 0])]), "little")


def route_word(turns):
    """An entry of the route table (constant ROUTE_HOPS): the turns of a packet at the switches on
    its way.
    """
    return len(turns) | sum(turn << 4 * (n + 1) for n, turn in enumerate(turns))


def prefix_words(turns):
    """What stands in front of a packet that takes this way."""
    return [prefix_word(turn, len(turns) - 1 - n) for n, turn in enumerate(turns)]


def resume_word(channel):
    return control(K_RESUME, channel, crc8([channel]), 0)


def nonce_word(nonce):
    return control(K_NONCE, nonce & 0xFF, nonce >> 8, crc8([nonce & 0xFF, nonce >> 8]))


def ping_word(number):
    return control(K_PING, number, number ^ 0xFF, 0)


def pong_word(number):
    return control(K_PONG, number, number ^ 0xFF, 0)


END_WORD, END_BAD_WORD = control(K_END, 0, 0, 0), control(K_END_BAD, 0, 0, 0)


def meaning(word, channels=4):
    """What a word is: (kind, value), where kind is "wrong" for what is none of ours. The value of a
    START has its
    prefix words in bits 6:4."""
    (data, k), second, both = word[:2], word[0] >> 8 & 0xFF, word[0] >> 8 & 0xFFFF
    if len(word) > 2 and word[2]:
        return "wrong", None
    if k == 0:
        return "data", data
    if (
        second & 15 < channels
        and second < 128
        and (data, k) == start_word(second & 15, second >> 4)
    ):
        return "start", second
    for kind, make, value, limit in (
        ("flow", flow_word, second, 256),
        ("resume", resume_word, second, channels),
        ("nonce", nonce_word, both, 65536),
        ("ping", ping_word, second, 256),
        ("pong", pong_word, second, 256),
    ):
        if value < limit and (data, k) == make(value):
            return kind, value
    return {END_WORD: ("end", True), END_BAD_WORD: ("end", False)}.get((data, k), ("wrong", None))


# Packets ------------------------------------------------------------------------------------------


def frame(words, channel, bad=False):
    """A packet from start to end, undivided."""
    return (
        [start_word(channel)] + [(word, 0) for word in words] + [END_BAD_WORD if bad else END_WORD]
    )


def interleave(random, packets, fill=lambda: []):
    """Words of packets, all channels at once, which change at random places.

    packets : {channel: list of (words, bad)}
    fill    : () -> words that stand before the next one
    """
    waiting = {
        channel: [frame(words, channel, bad) for words, bad in queue]
        for channel, queue in packets.items()
    }
    on, out = None, []
    while any(waiting.values()):
        channel = random.choice([channel for channel, queue in waiting.items() if queue])
        begun = waiting[channel][0][0] != start_word(channel)
        if on != channel and begun:
            out.append(resume_word(channel))
        for _ in range(random.randrange(1, 12)):
            out += fill()
            out.append(waiting[channel][0].pop(0))
            if not waiting[channel][0]:
                waiting[channel].pop(0)
                channel = None
                break
        on = channel
    return out


class Receiver:
    """What comes out of the words of a link that is UP.

    `packets` is a list for each channel of (words, good), as they end, without those of which no
    word came. With `routed`, packets with a prefix are received too, and `packets` has (number of
    prefix words, words, good).
    """

    def __init__(self, channels=4, routed=False):
        self.packets = [[] for _ in range(channels)]
        self.routed = routed
        self.begun = {}  # channel -> words
        self.prefix = {}  # channel -> number of prefix words
        self.on = None
        self.wrongs = 0  # words that ended what was begun
        self.misrouted = 0  # packets whose route did not end here

    def _end(self, channel, good):
        words = self.begun.pop(channel)
        if words:
            packet = (self.prefix[channel], words, good) if self.routed else (words, good)
            self.packets[channel].append(packet)

    def fail(self):
        """Anything that cannot stand where it does, or the loss of the link."""
        self.wrongs += 1
        for channel in list(self.begun):
            self._end(channel, False)
        self.on = None

    def take(self, word):
        kind, value = meaning(word, len(self.packets))
        inside = self.on in self.begun
        if kind == "wrong" or (kind in ("data", "end") and self.on is None and self.begun):
            self.fail()
        elif kind == "start":
            channel, prefix = value & 15, value >> 4
            if channel in self.begun:
                self.fail()
            if prefix and not self.routed:
                self.misrouted += 1
            else:
                self.begun[channel] = []
                self.prefix[channel] = prefix
            self.on = channel
        elif kind == "resume":
            self.on = value
        elif kind == "data" and inside:
            self.begun[self.on].append(value)
        elif kind == "end":
            if inside:
                self._end(self.on, value)
            self.on = None


def receive(words, channels=4):
    """A Receiver that has taken these words."""
    receiver = Receiver(channels)
    for word in words:
        receiver.take(word)
    return receiver
