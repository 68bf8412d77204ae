"""A card with two links in plain Python: what its splitter does, and the rate of two flows.

`PYTHONPATH=tests build/venv/bin/python -P -m gateware.models.two_links` prints the table of
docs/design/two-links.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

import itertools

from dibber.interface.description import C

# Cycles of a packet of PACKET_PAYLOAD bytes in a card of 64 bits. The engine makes and takes a line
# a cycle, and needs 2 cycles between packets (Packetizer). On the link a packet has its payload, a
# CRC for each block, the header and its CRC, START and END.
ENGINE = C.PACKET_PAYLOAD // 8 + 2
LINK = C.PACKET_PAYLOAD // 4 + C.PACKET_PAYLOAD // C.BLOCK_BYTES + C.HEADER_WORDS + 1 + 2
READ = 200  # from a job to its first line: 19 in the engine, the rest in the host


def split(packets, lines):
    """By link, what a splitter gives on: [packets], [lines]. `packets` are (link, name, number of
    lines), and `lines` are those of all packets in order.
    """
    lines = iter(lines)
    packets_of, lines_of = ([], []), ([], [])
    for link, name, count in packets:
        packets_of[link].append(name)
        lines_of[link].extend(itertools.islice(lines, count))
    return packets_of, lines_of


def sent(job, cut, places, packets=2000, links=2):
    """Packets a cycle that `links` links carry, by a model in steps of packets.

    A program sends jobs of `job` packets, to the first link's node and to the second one's in
    turn. With `cut`, the engine takes one packet of a job of each link in turn, and only when a
    place of `places` in the link's buffer is free. Otherwise it takes the jobs one by one, and its
    next packet waits for such a place.
    """
    engine = 0.0  # free from this cycle on
    ends = [[0.0] * places for _ in range(links)]  # of the last packets of each link
    last = 0
    for number in range(packets):
        link = number % links if cut else number // job % links
        if cut:
            # The link whose place is free first; of equal ones, the one whose turn it is.
            link = min(range(links), key=lambda n: (max(engine, ends[n][-places]), n != link))
        free = ends[link][-places]
        # With `cut`, a packet's reads are sent when its place is free. Without, they were sent long
        # before, and its lines wait in front of the buffer.
        begins = max(engine, free + READ) if cut else max(engine, free)
        engine = begins + ENGINE
        end = max(ends[link][-1], begins) + LINK
        ends[link].append(end)
        last = max(last, end)
    return packets / last


def received(places, packets=1000, slack=384):
    """Packets a cycle that two links bring in. A receiver holds `places` whole packets; in front of
    it `slack` words wait. The joiner takes whole packets in turn.
    """
    ends = ([0.0] * places, [0.0] * places)  # when the joiner has taken the packets of a link
    came = [0.0, 0.0]
    joiner = 0.0
    for number in range(packets):
        link = number % 2
        # The words go on into the buffer when the joiner begins to take the packet before, because
        # it takes them twice as fast as they come.
        free = ends[link][-places] - ENGINE - slack
        came[link] = max(came[link], free) + LINK
        joiner = max(joiner, came[link]) + ENGINE
        ends[link].append(joiner)
    return packets / joiner


def main():
    one = sent(job=1, cut=False, places=2, links=1)
    print(
        "packets of a job   jobs in order   a packet of each link in turn   (rate of one link: 1)"
    )
    for job in (1, 2, 4, 16, 256):
        rates = [sent(job, cut, 2) / one for cut in (False, True)]
        print(f"{job:16}   {rates[0]:13.2f}   {rates[1]:29.2f}")
    for places in (1, 2):
        print(f"received, buffers of {places} packets: {received(places) * LINK:.2f}")


if __name__ == "__main__":
    main()
