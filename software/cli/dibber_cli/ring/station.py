"""A node's part in one ring: strip or pass, bypass FIFO, and output.

The events are those of whole packets, and times are exact to the symbol. A packet that meets a free
output leaves at once. Otherwise it stands in the bypass FIFO, and leaves when the output is free.

sci.py and dibber.py have the rules of two outputs: what becomes of idles and go bits.
"""

# SPDX-License-Identifier: BSD-2-Clause

from typing import Any

from dibber_cli.ring.clock import Clock
from dibber_cli.ring.items import Echo, Grant, Idle, Packet

PASSING, HOLDING = range(2)  # HOLDING: sending a packet of this node, or in recovery behind it
COPY = Idle(False)  # stands for the idle behind an item that a node puts in: it copies the last one


class Station:
    """
    Parameters
    ----------
    node       : number of the node
    clock      : the Clock
    sender     : the Sender that gives this node's packets
    count      : the LinkCount of the link behind the output
    parameters : Parameters
    hop        : picoseconds from this output to the next one

    Attributes
    ----------
    next   : the next Station
    accept : function(Packet, time of its first symbol, of its last) → what the echo says; set by
             the node, as the next one
    echoed : function(Packet): its echo leaves, or is in the bypass FIFO
    """

    def __init__(self, node, clock: Clock, sender, count, parameters, hop: int) -> None:
        self.node, self.clock, self.env = node, clock, clock.env
        self.sender, self.count, self.hop = sender, count, hop
        symbol = parameters.symbol_ps
        self.separator = parameters.packet["separator_symbols"] * symbol
        self.echo_length = parameters.packet["echo_symbols"] * symbol
        self.turn = round(parameters.node["turn_symbols"] * symbol)
        # The echo takes the place of its packet's last symbols, and the idle behind them.
        self.replaced = parameters.node["turn_symbols"] == -parameters.packet["echo_symbols"]
        self.go_bits = parameters.ring["go_bits"]
        self.next: Station = self
        self.accept = lambda packet, first, last: ""
        self.echoed = lambda packet: None

        self.state = PASSING
        self.free_at = 0  # the output has sent all that it was given
        self.emitted: Any = Idle(True)  # the last idle at the output; None: an item is last
        self.received: Any = Idle(True)  # the same at the input
        self.saved: bool | None = None  # a go bit came since this node began; None: no idle came
        self.absorbed: list[Idle] = []  # the idles behind the items in the bypass FIFO
        self.began = -1  # time when this node began its last packet
        self.watching = False  # an event waits for `free_at`
        self.refused_at: int | None = None  # time of the first chance that lacked a go bit

    # What differs between rings -------------------------------------------------------------------

    def pass_on(self, item, idle: Idle | None) -> None:
        """Send an item on, at once or by the bypass FIFO.

        idle : behind the item; None if no idle is, COPY for an item that this node puts in
        """
        raise NotImplementedError

    def idle(self, idle: Idle) -> None:
        """An idle has come whose go bit may differ from that of the idle before it."""
        raise NotImplementedError

    def settle(self) -> None:
        """This node's packet has left and the bypass FIFO is empty: send the go bits on."""
        raise NotImplementedError

    def strip(self) -> None:
        """An item for this node begins: its symbols become idles."""

    def has_go(self) -> bool:
        """The last symbol that left is an idle with a go bit. The output is free."""
        raise NotImplementedError

    # Input ----------------------------------------------------------------------------------------

    def arrive(self, event) -> None:
        """The first symbol of an item could leave now; or, without an item, an idle came that is
        not the one behind the last item.
        """
        item, idle = event._value
        if item is None:
            self.idle(idle)
        elif item.to != self.node:
            self.pass_on(item, idle)
        else:
            self.strip()
            if type(item) is Packet:
                now = self.env._now
                answer = self.accept(item, now, now + item.length)
                echo = Echo(item, self.echo_length, answer)
                self.clock.after(item.length + self.turn, self._turn, (echo, idle))
                if not self.replaced:
                    self.clock.after(item.length + self.separator, self._stripped, idle)
            else:
                self.clock.after(item.length, self._told, (item, idle))

    def _turn(self, event) -> None:
        """A packet for this node becomes its echo."""
        echo, idle = event._value
        self.pass_on(echo, idle if self.replaced else COPY)
        self.echoed(echo.packet)

    def _told(self, event) -> None:
        """The last symbol of an echo or a grant for this node is here."""
        item, idle = event._value
        if type(item) is Echo:
            self.sender.echoed(item)
        else:
            self.sender.granted(item)
        if idle is not None:
            self.clock.after(self.separator, self._stripped, idle)

    def _stripped(self, event) -> None:
        """Of an item that was taken off the ring, only its idle is left."""
        idle = event._value
        if idle is not None:
            self.idle(idle)

    # Output ---------------------------------------------------------------------------------------

    def put(self, item: Grant) -> None:
        """Send an item of this node that needs no go bit."""
        self.pass_on(item, COPY)

    def leave(self, item, idle: Idle | None, start: int, length: int) -> None:
        """An item that came leaves at `start`, and takes the output for `length`."""
        now = self.env._now
        self.free_at = start + length
        self.count.passed(item, start, start - now)
        self.clock.after(start - now + self.hop, self.next.arrive, (item, idle))
        if self.state != PASSING or self.sender.wants:
            self._watch()

    def _watch(self) -> None:
        """Look again when the output will be free. One such event is under way at most. It comes
        after all others of its time, so an item that arrives just then is there already.
        """
        if not self.watching:
            self.watching = True
            self.clock.after_others(self.free_at - self.env._now, self._freed)

    def _freed(self, event) -> None:
        """The output may be free now."""
        self.watching = False
        if self.free_at > self.env._now:
            if self.state != PASSING or self.sender.wants:
                self._watch()
            return
        if self.state != PASSING:
            self.settle()
        self.offer()

    # This node's packets --------------------------------------------------------------------------

    def offer(self) -> None:
        """The sender has a packet, or the output is free."""
        if self.state == PASSING and self.sender.wants:
            if self.free_at <= self.env._now:
                self.begin()
            else:
                self._watch()

    def begin(self) -> None:
        """Begin a packet if the go bit allows it. The output is free."""
        now = self.env._now
        if self.go_bits and not self.has_go():
            if self.refused_at is None:
                self.refused_at = now
            return
        packet: Packet = self.sender.take()
        if self.refused_at is not None:
            self.count.stalled(now, now - self.refused_at)
            self.refused_at = None
        self.state, self.began = HOLDING, now
        self.saved = self.received is not None and self.received.go
        self.emitted = idle = Idle(False)
        self.free_at = now + packet.length + self.separator
        packet.left = now + packet.length
        self.count.sent(packet, now)
        self.clock.after(self.hop, self.next.arrive, (packet, idle))
        self._watch()
