"""The output of a node of Dibber's ring (docs/design/ring.md).

- A node may begin a packet if nothing passes and the last word that it sent is an idle with GO. An
  item that arrives in the same cycle goes before it.
- The bypass FIFO takes no idles in. While it holds words, the node sends no idle, but for the one
  behind its own packet, which has no GO then. When the FIFO is empty, it sends an idle if no word
  comes just then. This idle has GO if one that came since had GO.
- Other idles have the same GO as the last one that came.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber_cli.ring.items import Idle
from dibber_cli.ring.station import COPY, HOLDING, PASSING, Station


class DibberStation(Station):
    """As Station; an item may have no idle behind it.

    Attributes
    ----------
    last   : the last idle that left before an item without one
    queued : items were in the bypass FIFO since this node began its packet
    """

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.last = Idle(True)
        self.queued = False

    def has_go(self) -> bool:
        return self.emitted is not None and self.emitted.go

    def begin(self) -> None:
        before = self.began
        super().begin()
        if self.began != before:
            self.queued = False

    def pass_on(self, item, idle) -> None:
        now = start = self.env._now
        if self.state != PASSING and self.free_at <= now and not self.queued:
            self.settle()
        if idle is not COPY:
            self.received = idle
            if self.began == now:  # no idle was between this node's first word and the item
                self.saved = None
        length = item.length
        if self.state == PASSING and self.free_at <= now:
            if idle is COPY:
                idle = Idle((self.emitted or self.last).go)
            if idle is not None:
                length += self.separator
        else:
            if self.state == PASSING:
                self.state, self.saved = HOLDING, None
            if idle is not None and idle is not COPY:
                self.absorbed.append(idle)
            idle = None
            start = max(now, self.free_at)
            self.queued = True
        if self.emitted is not None and self.state == PASSING:
            self.last = self.emitted
        self.emitted = idle
        self.leave(item, idle, start, length)

    def strip(self) -> None:
        """If no idle was behind the item before, those in place of this one repeat the last GO."""
        now = self.env._now
        if self.emitted is None and self.state == PASSING and self.free_at <= now:
            self.emitted = self.last
            self.free_at = now + self.separator
            self.clock.after(self.hop + self.separator, self.next.arrive, (None, self.emitted))
            self.offer()

    def idle(self, idle: Idle) -> None:
        self.received = idle
        if self.state != PASSING:
            self.saved = bool(self.saved or idle.go)
        elif self.free_at > self.env._now:
            self.clock.after(self.free_at - self.env._now, self._late, idle)
        elif self.emitted is None or self.emitted.go != idle.go:
            self.emitted = idle
            self.clock.after(self.hop, self.next.arrive, (None, idle))
            self.offer()

    def _late(self, event) -> None:
        if self.received is event._value:
            self.idle(event._value)

    def settle(self) -> None:
        came = self.saved is not None or self.absorbed
        if came:
            go = (
                bool(self.saved)
                or (self.received is not None and self.received.go)
                or any(idle.go for idle in self.absorbed)
            )
        else:
            go = True if self.began >= 0 else self.last.go
        self.absorbed.clear()
        self.state = PASSING
        if self.queued:
            self.emitted = Idle(go)
            self.free_at = self.env._now + self.separator
            self.clock.after(self.separator + self.hop, self.next.arrive, (None, self.emitted))
            if self.sender.wants:
                self._watch()
        else:
            self.emitted.go = go
        self.queued = False
        if go and not (self.received is not None and self.received.go):
            self.clock.after(
                self.free_at - self.env._now + self.separator, self._follow, self.emitted
            )

    def _follow(self, event) -> None:
        """The idle behind one that gave what was kept has the GO of the last one that came."""
        now, idle = self.env._now, self.received
        if self.emitted is event._value and self.state == PASSING and self.free_at <= now:
            if idle is not None and not idle.go:
                self.idle(idle)
