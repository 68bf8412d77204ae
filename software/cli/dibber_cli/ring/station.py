"""A node's part in one ring: strip or pass, bypass FIFO, output, and bandwidth allocation.

The events are those of whole packets, and times are exact to the symbol. An item (packet, echo or
grant) that meets a free output leaves at once. Otherwise it stands in the bypass FIFO, and leaves
when the output is free. An idle is behind each item, except behind housekeeping in the bypass FIFO.

Bandwidth allocation by go bits (Scott, Goodman, Vernon, "Performance of the SCI Ring", ISCA 1992;
docs/design/ring.md):

- A node may begin a packet only when its bypass FIFO is empty and the last idle that it sent had a
  go bit. Then it goes before an item that arrives in the same symbol.
- While it sends its own packet, and until its bypass FIFO is empty again (recovery), it keeps the
  go bits that come in, and the idles that it sends have none. Then it sends on what it kept. If no
  idle came, it still has the go bit that it began with.
- After an idle with a go bit, all idles up to the next item have one.
- The idles in place of an item that is taken off bring no go bit. They repeat the last one.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections import deque

from dibber_cli.ring.clock import Clock, Event
from dibber_cli.ring.figures import LinkCount
from dibber_cli.ring.items import Echo, Grant, Housekeeping, Idle, Item, Packet
from dibber_cli.ring.parameters import Parameters
from dibber_cli.ring.sender import Sender

PASSING, HOLDING = range(2)  # HOLDING: sending an item of this node, or in recovery behind it


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

    def __init__(
        self,
        node: int,
        clock: Clock,
        sender: Sender,
        count: LinkCount,
        parameters: Parameters,
        hop: int,
    ) -> None:
        self.node, self.clock, self.env = node, clock, clock.env
        self.sender, self.count, self.hop = sender, count, hop
        symbol = parameters.symbol_ps
        self.separator = parameters.packet["separator_symbols"] * symbol
        self.echo_length = parameters.packet["echo_symbols"] * symbol
        self.go_bits = parameters.ring["go_bits"]
        self.next: Station = self
        self.accept = lambda packet, first, last: ""
        self.echoed = lambda packet: None

        self.state = PASSING
        self.free_at = 0  # the output has sent all that it was given
        self.emitted = Idle(True)  # the idle behind the last item at the output
        self.run_go = False  # an idle with a go bit left behind that one
        self.received = Idle(True)  # the same at the input
        self.received_go = False
        self.strips_until = 0  # an item is taken off until this time
        self.saved: bool | None = None  # a go bit came since this node began; None: no idle came
        self.before, self.before_go = self.emitted, True  # the last idle that left before that
        self.bare = False  # no idle is behind the last item
        self.absorbed: list[Idle] = []  # the idles behind the items in the bypass FIFO
        self.began = -1  # time when this node began its last packet
        self.controls: deque[Grant | Housekeeping] = deque()
        self.watching = False  # an event waits for `free_at`
        self.refused_at: int | None = None  # time of the first chance that lacked a go bit

    # Input ----------------------------------------------------------------------------------------

    def arrive(self, event: Event) -> None:
        """The first symbol of an item could leave now; or, without an item, an idle with a go bit
        came behind one without.
        """
        item, idle = event._value
        if item is None:
            self._go()
        elif item.to != self.node:
            self._pass(item, idle)
        else:
            self._strip(item, idle)

    def _strip(self, item: Item, idle: Idle | None) -> None:
        now = self.env._now
        self.strips_until = now + item.length
        if self.began == now:  # no idle was between this node's first symbol and the item
            self.saved = None
        if type(item) is Packet:
            # The echo takes the place of the packet's last symbols, and the idle behind them.
            echo = Echo(item, self.echo_length, self.accept(item, now, now + item.length))
            self.clock.after(item.length - echo.length, self._turn, (echo, idle))
        else:
            self.clock.after(item.length, self._told, (item, idle))

    def _turn(self, event: Event) -> None:
        """A packet for this node becomes its echo."""
        echo, idle = event._value
        self._pass(echo, idle)
        self.echoed(echo.packet)

    def _told(self, event: Event) -> None:
        """The last symbol of an echo, grant or housekeeping for this node is here."""
        item, idle = event._value
        if type(item) is Echo:
            self.sender.echoed(item)
        elif type(item) is Grant:
            self.sender.granted(item)
        if idle is not None:
            self.clock.before_others(self.separator, self._stripped, idle)

    def _stripped(self, event: Event) -> None:
        """Of an item that was taken off the ring, only its idle is left."""
        idle = event._value
        self.received, self.received_go = idle, False
        if idle.go:
            self._go()
        elif self.state != PASSING:
            self.saved = bool(self.saved)

    def _go(self) -> None:
        """An idle with a go bit has come that is not the one behind an item."""
        self.received_go = True
        if self.state != PASSING:
            self.saved = True
        elif not self._has_go():
            self.run_go = True
            self._tell()
            self.offer()

    def _tell(self) -> None:
        """Tell the next station of an idle with a go bit. An idle has ended when an item begins, so
        it comes before an item of the same time.
        """
        self.clock.before_others(self.hop, self.next.arrive, (None, None))

    # Output ---------------------------------------------------------------------------------------

    def put(self, item: Grant | Housekeeping) -> None:
        """Send an item that needs no go bit. It goes before packets of this node."""
        self.controls.append(item)
        self.offer()

    def _has_go(self) -> bool:
        return self.run_go or self.emitted.go

    def _pass(self, item: Item, idle: Idle | None) -> None:
        """Send an item on, at once or by the bypass FIFO, with an idle behind it or without."""
        now = start = self.env._now
        if self.state != PASSING and self.free_at <= now:
            self._settle()
        if self.state == PASSING and self._wants():
            self._begin(now)
        if idle is not None:
            self.received, self.received_go = idle, False
        if self.began == now:
            self.saved = None
        if self.state != PASSING:
            start = self.free_at
            if idle is not None:
                self.absorbed.append(idle)
            # Between two items an idle stays. Behind housekeeping none needs to be.
            idle = None if type(item) is Housekeeping else Idle(False)
        self.free_at = start + item.length
        self.bare = idle is None
        if idle is not None:
            self.emitted, self.run_go = idle, False
            self.free_at += self.separator
        self.count.passed(item, start, start - now)
        self.clock.after(start - now + self.hop, self.next.arrive, (item, idle))
        if self.state != PASSING or self._wants():
            self._watch()

    def _watch(self) -> None:
        """Look again when the output will be free. One such event is under way at most. It comes
        after all others of its time, so an item that arrives just then is there already.
        """
        if not self.watching:
            self.watching = True
            self.clock.after_others(self.free_at - self.env._now, self._freed)

    def _freed(self, event: Event) -> None:
        """The output may be free now."""
        self.watching = False
        if self.free_at > self.env._now:
            if self.state != PASSING or self._wants():
                self._watch()
            return
        if self.state != PASSING:
            self._settle()
        self.offer()

    def _settle(self) -> None:
        """This node's packet has left and the bypass FIFO is empty: send the go bits on."""
        came = self.saved is not None or self.absorbed
        kept = bool(self.saved) or any(idle.go for idle in self.absorbed)
        go = kept if came else self.before_go or self.before.go
        self.absorbed.clear()
        self.state, self.run_go = PASSING, False
        if self.bare:
            self.emitted = Idle(go)
            if go:
                self._tell()
        else:
            self.emitted.go = go

    # This node's items ----------------------------------------------------------------------------

    def _wants(self) -> bool:
        return self.sender.wants or bool(self.controls)

    def offer(self) -> None:
        """This node has something to send, or the output is free."""
        if self.state == PASSING and self._wants():
            if self.free_at <= self.env._now:
                self._begin(self.env._now)
            else:
                self._watch()

    def _begin(self, now: int) -> None:
        """Begin an item of this node: a packet only if the go bit allows it. The output is free."""
        if self.controls:
            self._send(self.controls.popleft(), now)
            return
        if self.go_bits and not self._has_go():
            if self.refused_at is None:
                self.refused_at = now
            return
        packet: Packet = self.sender.take()
        if self.refused_at is not None:
            self.count.stalled(now, now - self.refused_at)
            self.refused_at = None
        packet.left = now + packet.length
        self._send(packet, now)

    def _send(self, item: Item, now: int) -> None:
        self.state, self.began = HOLDING, now
        self.saved = None if now < self.strips_until else self.received_go or self.received.go
        self.before, self.before_go = self.emitted, self.run_go
        self.emitted, self.run_go, self.bare = Idle(False), False, False
        self.free_at = now + item.length + self.separator
        self.count.sent(item, now)
        self.clock.after(self.hop, self.next.arrive, (item, self.emitted))
        self._watch()
