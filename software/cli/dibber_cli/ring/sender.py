"""A node's packets for one ring: what waits, what awaits its echo, and what has to go again."""

# SPDX-License-Identifier: BSD-2-Clause

from collections import deque
from collections.abc import Mapping
from typing import Any

from dibber_cli.ring.clock import Clock, Event
from dibber_cli.ring.figures import NodeCount
from dibber_cli.ring.items import ACCEPTED, ORDER, Echo, Grant, Packet
from dibber_cli.ring.parameters import Parameters

Flow = tuple[int, int]  # target, channel


class Sender:
    """The packets of a channel take turns with those of other channels. A packet takes a send
    buffer before the client writes it, and keeps it until its echo says ACCEPTED.

    For a source, target and channel the order holds. If a packet is refused, those behind it that
    were sent will be refused too. Until their echoes are there, no later packet leaves.

    Parameters
    ----------
    clock      : the Clock
    parameters : Parameters
    count      : the NodeCount

    Attributes
    ----------
    wants : a packet may begin now, as far as this class knows
    load  : picoseconds of packets that wait or await their echo
    offer : function() that tells the station that `wants` is true
    written : function(channel): the client has written a packet
    freed : function(): a send buffer is free
    """

    def __init__(self, clock: Clock, parameters: Parameters, count: NodeCount) -> None:
        self.clock, self.count = clock, count
        buffers, client = parameters.buffers, parameters.client
        self.channels = range(buffers["channels"])
        self.buffers, self.grants = buffers["send"], buffers["reservation"] == "grant"
        self.limit = parameters.limit
        symbol = parameters.symbol_ps
        self.pause = round(parameters.node["retry_symbols"] * symbol)
        self.launch = round(parameters.node["launch_symbols"] * symbol)
        self.fill_ns = client["send_ns"]
        self.fill_mbps = client["send_mbps"]
        self.waiting: list[deque[Packet]] = [deque() for _ in self.channels]
        self.filled: list[deque[Packet]] = [deque() for _ in self.channels]
        self.again: list[list[Packet]] = [[] for _ in self.channels]  # refused
        self.held = [0 for _ in self.channels]  # send buffers in use
        self.filling = [False for _ in self.channels]
        self.sent = [0 for _ in self.channels]  # packets that await their echo
        self.out: dict[Flow, int] = {}  # the same by flow
        self.marked: dict[Flow, int] = {}  # of these, the ones that will be refused
        self.numbers: dict[Flow, int] = {}
        self.live: dict[Flow, int] = {}  # packets that were not accepted yet
        self.limits: dict = {}
        self.accepted: dict = {}
        self.last = self.channels[-1]  # the channel that was served last
        self.wants = False
        self.load = 0
        self.offer = lambda: None
        self.written = lambda channel: None
        self.freed = lambda: None

    # Send buffers ---------------------------------------------------------------------------------

    def add(self, packet: Packet) -> None:
        """A packet of the client."""
        flow = packet.to, packet.channel
        packet.number = self.numbers.get(flow, 0)
        self.numbers[flow] = packet.number + 1
        self.live[flow] = self.live.get(flow, 0) + 1
        self.waiting[packet.channel].append(packet)
        self.load += packet.length
        self._fill(packet.channel)

    def full(self, channel: int) -> bool:
        """All send buffers of the channel are in use."""
        return self.held[channel] >= self.buffers

    def _fill(self, channel: int) -> None:
        """Let the client write the next packet into a free send buffer."""
        while self.waiting[channel] and self.held[channel] < self.buffers:
            if self.filling[channel]:
                return
            packet = self.waiting[channel].popleft()
            self.held[channel] += 1
            time = 1e3 * self.fill_ns
            if self.fill_mbps:
                time += 1e6 * packet.bytes / self.fill_mbps
            if time:
                self.filling[channel] = True
                self.clock.after(round(time), self._written, packet)
            else:
                self._launch(packet)

    def _written(self, event: Event) -> None:
        packet = event._value
        self.filling[packet.channel] = False
        self._launch(packet)
        self._fill(packet.channel)
        self.written(packet.channel)

    def _launch(self, packet: Packet) -> None:
        packet.written = self.clock.env.now
        if self.launch:
            self.clock.after(self.launch, self._launched, packet)
        else:
            self.filled[packet.channel].append(packet)
            self._changed()

    def _launched(self, event: Event) -> None:
        packet = event._value
        self.filled[packet.channel].append(packet)
        self._changed()

    # Choice ---------------------------------------------------------------------------------------

    def _ready(self, channel: int) -> Packet | None:
        """The packet of a channel that may begin, or None."""
        if self.limit and self.limit["each"] == "channel" and self._over(self.limit, channel):
            return None
        stopped = set()
        for packet in self.again[channel]:
            flow = packet.to, channel
            if flow not in stopped:
                if packet.label is None:
                    if not self.marked.get(flow):
                        return packet
                elif packet.granted or not self.grants:
                    return packet
                stopped.add(flow)
        if not self.filled[channel]:
            return None
        packet = self.filled[channel][0]
        flow = packet.to, channel
        if flow in stopped or self.marked.get(flow):
            return None
        if self.limit and self.limit["each"] == "flow" and self._over(self.limit, flow):
            return None
        return packet

    def _over(self, limit: Mapping[str, Any], key: Flow | int) -> bool:
        """`key`: a flow, or a channel, as limit["each"] says."""
        sent = self.sent[key] if isinstance(key, int) else self.out.get(key, 0)
        return sent >= self.limits.get(key, limit["most"])

    def _changed(self) -> None:
        before = self.wants
        self.wants = any(self._ready(channel) is not None for channel in self.channels)
        if self.wants and not before:
            self.offer()

    def take(self) -> Packet:
        """The packet that begins now."""
        channels = len(self.channels)
        for step in range(1, channels + 1):
            channel = (self.last + step) % channels
            packet = self._ready(channel)
            if packet is not None:
                break
        assert packet is not None  # `wants` says so
        self.last = channel
        if packet.tries:
            self.again[channel].remove(packet)
        else:
            self.filled[channel].popleft()
        flow = packet.to, channel
        self.out[flow] = self.out.get(flow, 0) + 1
        self.sent[channel] += 1
        packet.tries += 1
        packet.granted = False
        self.wants = any(self._ready(channel) is not None for channel in self.channels)
        return packet

    # Echoes ---------------------------------------------------------------------------------------

    def echoed(self, echo: Echo) -> None:
        """An echo came back: the packet is done, or has to go again."""
        packet = echo.packet
        channel, flow = packet.channel, (packet.to, packet.channel)
        self.count.echoed(packet, echo.answer, self.clock.env.now)
        self.out[flow] -= 1
        self.sent[channel] -= 1
        if self.marked.get(flow):
            self.marked[flow] -= 1
        elif echo.answer != ACCEPTED:
            self.marked[flow] = self.out[flow]
        if echo.answer == ACCEPTED:
            self.held[channel] -= 1
            self.load -= packet.length
            self.live[flow] -= 1
            self._raise(flow)
            self._changed()
            self._fill(channel)
            self.freed()
            return
        packet.label = None if echo.answer == ORDER else echo.answer
        self._lower(flow)
        if self.pause:
            self.clock.after(self.pause, self._retry, packet)
        else:
            self.again[channel].append(packet)
            self._changed()

    def _retry(self, event: Event) -> None:
        packet = event._value
        self.again[packet.channel].append(packet)
        self._changed()

    def granted(self, grant: Grant) -> None:
        """There is room for the first packet to this target that was refused."""
        for packet in self.again[grant.channel]:
            if packet.to == grant.target and packet.label is not None:
                packet.granted = True
                break
        self._changed()

    # Adaptive limit -------------------------------------------------------------------------------

    def _raise(self, flow: Flow) -> None:
        if self.limit:
            key = flow if self.limit["each"] == "flow" else flow[1]
            self.accepted[key] = self.accepted.get(key, 0) + 1
            if self.accepted[key] >= self.limit["raise_after"]:
                self.accepted[key] = 0
                limit = self.limits.get(key, self.limit["most"])
                self.limits[key] = min(self.limit["most"], limit + 1)

    def _lower(self, flow: Flow) -> None:
        if self.limit:
            key = flow if self.limit["each"] == "flow" else flow[1]
            self.accepted[key] = 0
            limit = self.limits.get(key, self.limit["most"])
            self.limits[key] = max(self.limit["least"], limit // 2)
