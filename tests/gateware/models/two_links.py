"""A card with two links in plain Python: what its splitter does, and the rate of two flows.

`PYTHONPATH=tests build/venv/bin/python -P -m gateware.models.two_links` prints the table of
docs/design/two-links.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

import itertools

from dibber.interface.description import C

# Cycles of a packet of PACKET_PAYLOAD bytes. The engine makes and takes a line a cycle, and needs 2
# cycles between packets (Packetizer). On the link a packet has its payload, a CRC for each block,
# the header and its CRC, START and END.
ENGINE = {bits: C.PACKET_PAYLOAD * 8 // bits + 2 for bits in (64, 128)}
LINK = C.PACKET_PAYLOAD // 4 + C.PACKET_PAYLOAD // C.BLOCK_BYTES + C.HEADER_WORDS + 1 + 2
READ = 200  # from a job to its first line: 19 in the engine, the rest in the host
END = 12  # from a part's last line to its job's next part: 10 (Packetizer), 2 (JobTurns)


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


def sent(job, cut, bits, places=2, packets=2000, links=2):
    """Packets a cycle that `links` links carry, by a model in steps of packets.

    A program sends jobs of `job` packets, to the first link's node and to the second one's in
    turn. With `cut`, the engine takes one packet of a job of each link in turn (JobTurns): when a
    place of `places` in the link's buffer is free, and the link's part before has ended. Otherwise
    it takes the jobs one by one, and its next packet waits for such a place.
    """
    engine = 0.0  # free from this cycle on
    ends = [[0.0] * places for _ in range(links)]  # of the last packets of each link
    parts = [0.0] * links  # ends of the last parts
    for number in range(packets):
        link = number // job % links
        begins = max(engine, ends[link][-places])
        if cut:
            link = number % links
            # The reads are sent when the part begins. Without `cut`, they were sent long before,
            # and the lines wait in front of the buffer.
            begins = max(engine, max(ends[link][-places], parts[link]) + READ)
        engine = begins + ENGINE[bits]
        parts[link] = engine + END
        ends[link].append(max(ends[link][-1], begins) + LINK)
    return packets / max(end[-1] for end in ends)


def received(bits, places=1, packets=1000, slack=384):
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
        free = ends[link][-places] - ENGINE[bits] - slack
        came[link] = max(came[link], free) + LINK
        joiner = max(joiner, came[link]) + ENGINE[bits]
        ends[link].append(joiner)
    return packets / joiner


def main():
    one = {bits: sent(1, False, bits, links=1) for bits in ENGINE}
    print("packets of a job   in order, 64 bits   128 bits   cut, 64 bits   128 bits")
    for job in (1, 2, 4, 16, 256):
        rates = [sent(job, cut, bits) / one[bits] for cut in (False, True) for bits in ENGINE]
        print("{:16}   {:17.2f}   {:8.2f}   {:12.2f}   {:8.2f}".format(job, *rates))
    print("received: " + ", ".join(f"{received(n) * LINK:.2f} at {n} bits" for n in ENGINE))


if __name__ == "__main__":
    main()
