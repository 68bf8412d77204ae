"""The output of an SCI node.

Bandwidth allocation by go bits (Scott, Goodman, Vernon, "Performance of the SCI Ring", ISCA 1992):

- A node may begin a packet only when its bypass FIFO is empty and the last idle that it sent had a
  go bit. It goes before an item that arrives in the same symbol.
- While it sends its own packet, and until its bypass FIFO is empty again (recovery), it keeps the
  go bits that come in, and the idles that it sends have none. Then it sends on what it kept.
- After an idle with a go bit, all idles up to the next packet have one.

The idle behind each packet goes through the bypass FIFO with it. Other idles do not.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber_cli.ring.items import Idle
from dibber_cli.ring.station import COPY, HOLDING, PASSING, Station


class SciStation(Station):
    """As Station; each item has an idle behind it.

    Attributes
    ----------
    emitted, received     : the idle behind the last item
    run_go, received_go   : an idle with a go bit came behind that one, at the output and the input
    """

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.run_go = self.received_go = False

    def has_go(self) -> bool:
        return self.run_go or self.emitted.go

    def begin(self) -> None:
        ran = self.received_go
        super().begin()
        if self.began == self.env._now:
            self.saved = self.saved or ran
            self.run_go = False

    def pass_on(self, item, idle) -> None:
        now = start = self.env._now
        if self.state != PASSING and self.free_at <= now:
            self.settle()
        if self.sender.wants and self.state == PASSING and self.free_at <= now:
            self.begin()
        if idle is not COPY:
            self.received, self.received_go = idle, False
            if self.began == now:  # no idle was between this node's first symbol and the item
                self.saved = None
        if self.state == PASSING and self.free_at <= now:
            if idle is COPY:
                idle = Idle(self.has_go())
        else:
            if self.state == PASSING:
                self.state, self.saved = HOLDING, False
            if idle is not COPY:
                self.absorbed.append(idle)
            idle = Idle(False)
            start = self.free_at
        self.emitted, self.run_go = idle, False
        self.leave(item, idle, start, item.length + self.separator)

    def _stripped(self, event) -> None:
        self.received, self.received_go = event._value, False
        super()._stripped(event)

    def idle(self, idle: Idle) -> None:
        if not idle.go:
            return
        self.received_go = True
        if self.state != PASSING:
            self.saved = True
        elif self.free_at > self.env._now:
            self.clock.after(self.free_at - self.env._now, self._late, idle)
        elif not self.has_go():
            self.run_go = True
            self.clock.after(self.hop, self.next.arrive, (None, idle))
            self.offer()

    def _late(self, event) -> None:
        self.idle(event._value)

    def settle(self) -> None:
        came = self.saved is not None or self.absorbed
        self.emitted.go = (
            not came
            or bool(self.saved)
            or self.received_go
            or self.received.go
            or any(idle.go for idle in self.absorbed)
        )
        self.absorbed.clear()
        self.state, self.run_go = PASSING, False
