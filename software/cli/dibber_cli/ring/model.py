"""A ring, or a pair of counter-rotating rings, with its clients: built, run and counted."""

# SPDX-License-Identifier: BSD-2-Clause

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dibber_cli.ring import figures
from dibber_cli.ring.client import Block, Work
from dibber_cli.ring.clock import Clock, Event
from dibber_cli.ring.figures import LinkCount, NodeCount, WorkCount
from dibber_cli.ring.items import ACCEPTED, Grant, Housekeeping, Packet
from dibber_cli.ring.parameters import Parameters
from dibber_cli.ring.reservation import Ages, Grants, Room
from dibber_cli.ring.sender import Sender
from dibber_cli.ring.station import Station


class Node:
    """What a node's rings share: the receive buffers, the client's port, and the choice of a ring.

    Attributes
    ----------
    senders, stations : one for each ring
    """

    def __init__(self, number: int, clock: Clock, parameters: Parameters, begin: int) -> None:
        self.number, self.clock, self.parameters = number, clock, parameters
        buffers, rings = parameters.buffers, parameters.ring["rings"]
        self.count = NodeCount(begin, buffers["channels"])
        self.senders = [Sender(clock, parameters, self.count) for _ in range(rings)]
        self.stations: list[Station] = []
        self.expected: dict[tuple, int] = {}  # number of the next packet, by flow
        self.port_free = 0
        self.flows: dict[tuple[int, int], int] = {}  # ring, by target and channel
        # With `front`: packets of a channel in front of both rings, and whether one is written.
        self.fronts: list[deque[Packet]] = [deque() for _ in range(buffers["channels"])]
        self.writes = [False for _ in range(buffers["channels"])]
        self.in_front = rings == 2 and parameters.ring["choose"] == "front"
        if self.in_front:
            for sender in self.senders:
                sender.written, sender.freed = self._written, self._freed
        self.buffers = [
            [self._buffer(ring, channel) for channel in range(buffers["channels"])]
            for ring in range(rings)
        ]

    def _buffer(self, ring: int, channel: int) -> Ages | Grants:
        kind = self.parameters.buffers["reservation"]
        buffers = self.parameters.buffers
        room = Room(buffers["receive"], buffers["largest_bytes"])
        if kind != "grant":
            return Ages(room, kind == "retry")
        length = self.parameters.packet["echo_symbols"] * self.parameters.symbol_ps

        def grant(source: int) -> None:
            self.stations[ring].put(Grant(source, length, self.number, channel))

        return Grants(room, self.parameters.ring["nodes"], grant)

    # Receive --------------------------------------------------------------------------------------

    def accept(self, ring: int) -> Callable[[Packet, int, int], str]:
        """The function that says what the echo of a packet on this ring says."""
        client = self.parameters.client
        fixed = round(1e3 * client["receive_ns"])
        rate = 1e6 / client["receive_mbps"] if client["receive_mbps"] else 0
        late = round(self.parameters.node["take_symbols"] * self.parameters.symbol_ps)

        def answer(packet: Packet, first: int, last: int) -> str:
            flow = packet.source, packet.channel, ring
            buffer = self.buffers[ring][packet.channel]
            in_order = packet.number == self.expected.get(flow, 0)
            said = buffer.answer(packet, in_order)
            if said == ACCEPTED:
                self.expected[flow] = packet.number + 1
                begin = max(first, self.port_free)
                self.port_free = begin + fixed + round(rate * packet.bytes)
                end = max(last, self.port_free) + late
                self.clock.after(end - self.clock.env.now, self._taken, (packet, buffer))
            return said

        return answer

    def echoed(self, ring: int) -> Callable[[Packet], None]:
        """The function that hears that the echo of a packet on this ring leaves."""
        return lambda packet: self.buffers[ring][packet.channel].echoed()

    def _taken(self, event: Event) -> None:
        packet, buffer = event._value
        buffer.free(packet)
        self.count.delivered(packet, self.clock.env.now)
        packet.block.work.arrived(packet.block)

    # Send -----------------------------------------------------------------------------------------

    def send(self, block: Block, to: int, channel: int, size: int) -> None:
        """Give the packets of a block's part to the senders."""
        most, symbol = self.parameters.packet["payload_bytes"], self.parameters.symbol_ps
        sizes = [most] * (size // most) + ([size % most] if size % most or not size else [])
        block.missing = len(sizes)
        for payload in sizes:
            length = self.parameters.symbols(payload) * symbol
            packet = Packet(to, self.number, channel, payload, length, block)
            packet.ready = self.clock.env.now
            if self.in_front:
                self.fronts[channel].append(packet)
            else:
                self.senders[self._ring(to, channel)].add(packet)
        if self.in_front:
            self._feed(channel)

    def _feed(self, channel: int) -> None:
        """Let the client write the channel's first packet, if its ring has a free send buffer."""
        front = self.fronts[channel]
        while front and not self.writes[channel]:
            ring = self._front_ring(front[0].to, channel)
            if ring is None or self.senders[ring].full(channel):
                return
            self.writes[channel] = True
            self.senders[ring].add(front.popleft())
            if not self.senders[ring].filling[channel]:
                self.writes[channel] = False

    def _written(self, channel: int) -> None:
        self.writes[channel] = False
        self._feed(channel)

    def _freed(self) -> None:
        for channel in range(len(self.fronts)):
            self._feed(channel)

    def _front_ring(self, to: int, channel: int) -> int | None:
        """As `flow`, but loads are packets, and a flow leaves its ring for an idle one. None: its
        packet waits until the flow's others are done.
        """
        nodes, flow = self.parameters.ring["nodes"], (to, channel)
        ahead = (to - self.number) % nodes
        if 2 * ahead != nodes:
            return int(2 * ahead > nodes)
        loads = [sum(sender.live.values()) for sender in self.senders]
        for ring, sender in enumerate(self.senders):
            mine = sender.live.get(flow, 0)
            if mine:
                return None if not loads[1 - ring] and loads[ring] > mine else ring
        return channel % 2 if loads[0] == loads[1] else int(loads[1] < loads[0])

    def _ring(self, to: int, channel: int) -> int:
        """The ring for a packet: 0 goes to the next node, 1 to the one before."""
        if len(self.senders) == 1:
            return 0
        nodes, choose = self.parameters.ring["nodes"], self.parameters.ring["choose"]
        ahead = (to - self.number) % nodes
        loads = [sender.load for sender in self.senders]
        if choose == "packet":
            return int(loads[1] < loads[0])
        if 2 * ahead != nodes:
            return int(2 * ahead > nodes)
        if choose == "shortest":
            return self.number % 2  # of two equal ways, half of the nodes take each
        # A flow changes its ring only while none of its packets is on one.
        flow = to, channel
        if not any(sender.live.get(flow) for sender in self.senders):
            self.flows[flow] = int(loads[1] < loads[0])
        return self.flows[flow]


class Model:
    """
    Parameters
    ----------
    parameters : Parameters
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.clock = Clock()
        self.begin = round(1e6 * parameters.run["warmup_us"])
        self.end = self.begin + round(1e6 * parameters.run["measure_us"])
        nodes, rings = parameters.ring["nodes"], parameters.ring["rings"]
        self.nodes = [Node(n, self.clock, parameters, self.begin) for n in range(nodes)]
        self.links = [[LinkCount(self.begin) for _ in range(nodes)] for _ in range(rings)]
        for ring in range(rings):
            self._wire(ring)
        period = parameters.ring["housekeeping_symbols"]
        if period:
            for ring in range(rings):
                self.clock.env.process(self._housekeep(self.nodes[0].stations[ring], period))
        self.counts = [WorkCount(self.begin) for _ in parameters.workloads]
        for number, workload in enumerate(parameters.workloads):
            for source in workload["sources"]:
                seed = f"{parameters.run['seed']}/{number}/{source}"
                count = self.counts[number]
                Work(self.clock, parameters, workload, source, count, self._send, seed).start()

    def _wire(self, ring: int) -> None:
        """Connect the stations of a ring. The second ring's links lie beside those of the first."""
        nodes, hops = self.parameters.ring["nodes"], self.parameters.hop_ps
        for node in self.nodes:
            link = node.number if ring == 0 else (node.number - 1) % nodes
            sender, count = node.senders[ring], self.links[ring][node.number]
            station = Station(node.number, self.clock, sender, count, self.parameters, hops[link])
            station.accept, station.echoed = node.accept(ring), node.echoed(ring)
            sender.offer = station.offer
            node.stations.append(station)
        step = 1 if ring == 0 else -1
        for node in self.nodes:
            node.stations[ring].next = self.nodes[(node.number + step) % nodes].stations[ring]

    def _housekeep(self, station: Station, period: int) -> Iterator[Event]:
        """Node 0 sends two words of housekeeping in each period."""
        symbol = self.parameters.symbol_ps
        while True:
            self.clock.events += 1
            yield self.clock.env.timeout(period * symbol)
            for word in range(2):
                station.put(Housekeeping(0, symbol))

    def _send(self, block: Block, source: int, target: int, channel: int, size: int) -> None:
        self.nodes[source].send(block, target, channel, size)

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run to the end; returns the figures (docs/ring-model.md lists them).

        progress : function(share of the simulated time that is done)
        """
        began = time.process_time()
        for part in range(1, 21):
            self.clock.env.run(self.end * part // 20)
            if progress:
                progress(part / 20)
        return self._figures(time.process_time() - began)

    # Figures --------------------------------------------------------------------------------------

    def _figures(self, seconds: float) -> dict[str, Any]:
        span = self.end - self.begin
        per_mb = 1e6 / span  # picoseconds; 1 byte in 1 ps is 1e6 MB/s
        nodes, channels = self.nodes, range(self.parameters.buffers["channels"])
        links = [
            {"ring": ring, "node": n, **count.figures(span)}
            for ring, counts in enumerate(self.links)
            for n, count in enumerate(counts)
        ]
        received = [sum(node.count.received_bytes) * per_mb for node in nodes]
        sent = [sum(node.count.sent_bytes) * per_mb for node in nodes]
        of_all = [t for node in nodes for c in channels for t in node.count.latencies[c]]
        trips = [t for node in nodes for t in node.count.round_trips]
        return {
            "name": self.parameters.name,
            "nodes": len(nodes),
            "rings": len(self.links),
            "warmup_us": self.parameters.run["warmup_us"],
            "measure_us": self.parameters.run["measure_us"],
            "seed": self.parameters.run["seed"],
            "link_mbps": self.parameters.link_mbps,
            "total": {
                "mbps": sum(received),
                "packets": sum(sum(node.count.received) for node in nodes),
                "jain": figures.jain([sent[s] for s in self._sources()]),
                "refused": sum(sum(node.count.refused) for node in nodes),
                "latency": figures.distribution(of_all),
                "crossing": figures.distribution([t for n in nodes for t in n.count.crossings]),
                "round_trip": figures.distribution(trips),
            },
            "by_workload": [
                {
                    "workload": number,
                    "kind": work["kind"],
                    "pattern": work["pattern"],
                    "block_bytes": work["block_bytes"],
                    "mbps": count.bytes * per_mb,
                    "blocks": len(count.latencies),
                    "latency": figures.distribution(count.latencies),
                }
                for number, (work, count) in enumerate(zip(self.parameters.workloads, self.counts))
            ],
            "by_channel": [
                {
                    "channel": c,
                    "mbps": sum(node.count.received_bytes[c] for node in nodes) * per_mb,
                    "packets": sum(node.count.received[c] for node in nodes),
                    "refused": sum(node.count.refused[c] for node in nodes),
                    "ordered": sum(node.count.ordered[c] for node in nodes),
                    "latency": figures.distribution(
                        [t for node in nodes for t in node.count.latencies[c]]
                    ),
                }
                for c in channels
            ],
            "by_ring": [self._ring(ring, links) for ring in range(len(self.links))],
            "by_node": [
                {
                    "node": node.number,
                    "sent_mbps": sent[node.number],
                    "received_mbps": received[node.number],
                    "refused": sum(node.count.refused),
                    "most_tries": node.count.most_tries,
                    "go_stalls": sum(
                        len(self.links[r][node.number].stalls) for r in range(len(self.links))
                    ),
                    "until_echo": figures.distribution(node.count.until_echo),
                    "latency": figures.distribution(
                        [t for one in node.count.latencies for t in one]
                    ),
                }
                for node in nodes
            ],
            "by_link": links,
            "events": self.clock.events,
            "seconds": seconds,
            "events_per_second": self.clock.events / seconds if seconds else 0.0,
        }

    def _sources(self) -> list[int]:
        return sorted({source for work in self.parameters.workloads for source in work["sources"]})

    def _ring(self, ring: int, links: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        own = [link for link in links if link["ring"] == ring]
        stalls = [t for count in self.links[ring] for t in count.stalls]
        return {
            "ring": ring,
            "use": sum(link["use"] for link in own) / len(own),
            "echoes": sum(link["echoes"] for link in own) / len(own),
            "packets": sum(count.packets for count in self.links[ring]),
            "go_stalls": len(stalls),
            "go_stall": figures.distribution(stalls),
        }
