"""What programs on several hosts tell each other before and after they use their cards.

    with Exchange.listen("7471", token="secret") as exchange:           # on one host
        exchange.publish("target", key.to_bytes(4, "little"))
        exchange.barrier()

    with Exchange.connect("host-a:7471", token="secret") as exchange:   # on the other one
        key = int.from_bytes(exchange.look_up(0, "target"), "little")
        exchange.barrier()

The parties talk by TCP. Party 0 listens; the others connect to it, and it passes on what each of
them publishes. Party 0 does so only inside a call of its own. A transfer between cards needs none
of this: an exchange belongs before and after the part of a program that is measured.

On the wire each message is a header of 16 bytes, then a name, then data. Numbers are little-endian.
The token keeps mistakes and strangers out. It is sent as it is, so it does not help against
somebody who reads the network.
"""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import hmac
import os
import secrets
import selectors
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from libdibber.exchange_where import (
    host_and_port,
    open_listeners,
    read_rendezvous,
    write_rendezvous,
)
from libdibber.exchange_wire import (
    ARRIVED,
    DATA_BYTES,
    ENTRIES,
    GONE,
    HELLO,
    MAGIC,
    MOST_PARTIES,
    NAME_BYTES,
    PUBLISH,
    REFUSALS,
    RELEASED,
    REPLY,
    TOKEN_BYTES,
    VERSION,
    ExchangeError,
    Link,
    padded_token,
    sleep_on,
)

GREETING_SECONDS = 5  # until a connection has sent its HELLO
MOST_GREETINGS = 80  # connections that have not sent it: all parties at once, and some strangers
RETRY_SECONDS = 0.1  # from one attempt to connect to the next


class Exchange:
    """A number of programs that publish values by name, look them up, and meet at barriers.

    Made by Exchange.listen() and Exchange.connect(). It belongs to one thread. `timeout` is in
    seconds, for each call that waits.

    With an `endpoint`, listen(), connect() and barrier() leave the simulator's clock of that
    endpoint while they wait. A program comes back to the clock only when all that left it are back,
    so all leave and come back together, and a run repeats. look_up() and close() wait alone. They
    pause instead (Endpoint.outside_clock): simulated time goes on for the others meanwhile. A value
    that was published before the last barrier is here already, and costs no pause.

    Attributes
    ----------
    party, parties : this program's number, and how many programs there are
    where          : what the others give to connect(), at the one that listens
    """

    def __init__(self, party: int, parties: int, timeout: float, endpoint: Any):
        if not 2 <= parties <= MOST_PARTIES or not 0 <= party < parties:
            raise ExchangeError(
                "ARGUMENT", f"party {party} of {parties}: there are 2 … {MOST_PARTIES} parties"
            )
        self.party, self.parties, self.timeout = party, parties, timeout
        self.where, self._endpoint = "", endpoint
        self._links: dict[
            int, Link
        ] = {}  # party: Link; party 0 has one to each other, the others to party 0
        self._values: dict[tuple[int, str], bytes] = {}  # (party, name): data
        self._counts = [0] * parties  # values that each party published
        self._arrived = [0] * parties  # barriers that each party has come to; known to party 0
        self._released = 0  # barriers that are over
        self._gone: dict[int, str] = {}  # party: why
        self._closed = False

    @classmethod
    def listen(
        cls,
        where: str,
        parties: int = 2,
        token: str = "",
        timeout: float = 60,
        endpoint: Any = None,
    ) -> "Exchange":
        """Be party 0, and wait until all others have connected.

        where : "PORT", "HOST:PORT", "[IPv6]:PORT", or "file:PATH", a rendezvous file that is made,
                and removed when all are there. Port 0 takes a free one.
        """
        self = cls(0, parties, timeout, endpoint)
        path = where.removeprefix("file:") if where.startswith("file:") else None
        if path and not token:
            token = secrets.token_hex(TOKEN_BYTES // 4)
        listeners, port = open_listeners(*(("", 0) if path else host_and_port(where, True)))
        self.where = where if path else f"{socket.gethostname()}:{port}"
        try:
            wanted = padded_token(token)
            if path:
                write_rendezvous(path, port, token)
            try:
                with self._outside_clock():
                    self._gather(listeners, wanted)
            finally:
                if path:
                    with contextlib.suppress(OSError):
                        os.unlink(path)
        except BaseException:
            self.close()
            raise
        finally:
            for listener in listeners:
                listener.close()
        return self

    @classmethod
    def connect(
        cls,
        where: str,
        party: int = 1,
        parties: int = 2,
        token: str = "",
        timeout: float = 60,
        endpoint: Any = None,
    ) -> "Exchange":
        """Be a party from 1 on: connect to the one that listens, as soon as it does.

        where : "HOST:PORT", "[IPv6]:PORT", or "file:PATH", which listen() makes
        """
        if party == 0:
            raise ExchangeError("ARGUMENT", "party 0 is the one that listens")
        self = cls(party, parties, timeout, endpoint)
        self.where = where
        path = where.removeprefix("file:") if where.startswith("file:") else None
        if not path:
            host_and_port(where, False)
        padded_token(token)
        try:
            with self._outside_clock():
                self._reach(where, path, token)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Send what is still to be sent, and leave. The others can use what was published."""
        if self._closed:
            return
        done = lambda: not any(l.unsent and not l.lost for l in self._links.values())
        with contextlib.suppress(ExchangeError):
            self._handle()
            if not done():
                with self._outside_clock(pause=True):
                    self._wait(done, "")
        self._closed = True
        for link in self._links.values():
            link.connection.close()

    def __enter__(self) -> "Exchange":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Beginning ------------------------------------------------------------------------------------

    def _gather(self, listeners: list[socket.socket], token: bytes) -> None:
        """Party 0: accept the others. Whatever else connects is turned away, and counted."""
        greetings: dict[Link, float] = {}  # until when each must have sent its HELLO
        refused, last = 0, ""
        end = time.monotonic() + self.timeout
        with selectors.DefaultSelector() as selector:
            for listener in listeners:
                selector.register(listener, selectors.EVENT_READ)
            while len(self._links) < self.parties - 1:
                now = time.monotonic()
                if now >= end:
                    missing = sorted(set(range(1, self.parties)) - set(self._links))
                    others = f"; {refused} connections were refused, the last: {last}"
                    raise ExchangeError(
                        "TIMEOUT",
                        f"party {missing[0]} did not connect to {self.where} in {self.timeout:g} s"
                        + (others if refused else ""),
                    )
                selector.select(min(end - now, 0.2))
                for listener in listeners:
                    # Connections for which there is no room wait in the listener's queue.
                    if len(greetings) == MOST_GREETINGS:
                        time.sleep(0.01)
                        break
                    with contextlib.suppress(OSError):
                        connection, address = listener.accept()
                        link = Link(connection)
                        link.name = f"{address[0]}:{address[1]}"
                        greetings[link] = now + GREETING_SECONDS
                        selector.register(connection, selectors.EVENT_READ)
                for link, until in list(greetings.items()):
                    link.move()
                    hello = link.take(HELLO.size)
                    if hello is None and not link.lost and now < until:
                        continue
                    selector.unregister(link.connection)
                    del greetings[link]
                    why = self._judge(link, hello, token)
                    if why:
                        refused, last = refused + 1, f"{link.name}: {why}"
                        link.connection.close()
            for link in greetings:
                link.connection.close()

    def _judge(self, link: Link, hello: bytes | None, token: bytes) -> str:
        """Take a connection as a party, or say why not."""
        magic, version, party, parties, theirs = HELLO.unpack(hello) if hello else (0,) * 4 + (b"",)
        if magic != MAGIC:
            return "it is no party of an exchange"
        if version != VERSION:
            error, why = "VERSION", f"it speaks version {version}, this side {VERSION}"
        elif not hmac.compare_digest(theirs, token):
            error, why = "DENIED", "wrong token"
        elif parties != self.parties or not 0 < party < parties:
            error, why = "ARGUMENT", f"party {party} of {parties}: there are {self.parties} parties"
        elif party in self._links:
            error, why = "IN_USE", f"party {party} is there already"
        else:
            error, why = "", ""
        link.unsent += REPLY.pack(MAGIC, VERSION, REFUSALS.index(error), why.encode()[:116])
        link.move()
        if not why:
            link.party = party
            self._links[party] = link
        return why

    def _reach(self, where: str, path: str | None, token: str) -> None:
        """Other parties: connect to party 0, again and again until it listens."""
        end = time.monotonic() + self.timeout
        why = f"there is no {path}" if path else "not tried"
        while True:
            found = read_rendezvous(path) if path else (token, [where])
            word, places = found or (token, [])
            for place in places:
                left = max(end - time.monotonic(), 0.01)
                try:
                    connection = socket.create_connection(
                        host_and_port(place, False), min(left, GREETING_SECONDS)
                    )
                except OSError as error:
                    why = f"{place}: {error.strerror or error}"
                    continue
                link = Link(connection, 0)
                link.unsent += HELLO.pack(
                    MAGIC, VERSION, self.party, self.parties, padded_token(token or word)
                )
                self._greet(link, place, end)
                self._links[0] = link
                return
            if time.monotonic() >= end:
                raise ExchangeError(
                    "TIMEOUT", f"nobody listens at {where} after {self.timeout:g} s ({why})"
                )
            time.sleep(min(RETRY_SECONDS, max(end - time.monotonic(), 0)))

    def _greet(self, link: Link, place: str, end: float) -> None:
        """Have party 0 take this party."""
        try:
            until = min(end, time.monotonic() + GREETING_SECONDS)
            while True:
                link.move()
                reply = link.take(REPLY.size)
                if reply is not None:
                    break
                if link.lost or time.monotonic() >= until:
                    raise ExchangeError(
                        "PROTOCOL",
                        f"{place} does not answer as an exchange: {link.lost or 'no reply'}",
                    )
                sleep_on([link], until - time.monotonic())
            magic, version, error, why = REPLY.unpack(reply)
            if magic != MAGIC or error >= len(REFUSALS):
                raise ExchangeError("PROTOCOL", f"{place} is no exchange")
            if error:
                text = why.rstrip(b"\0").decode(errors="replace")
                if REFUSALS[error] == "VERSION":
                    text = f"it speaks version {version}, this side {VERSION}"
                raise ExchangeError(REFUSALS[error], f"{place} refused: {text}")
        except BaseException:
            link.connection.close()
            raise

    # Messages -------------------------------------------------------------------------------------

    def _outside_clock(self, pause: bool = False) -> contextlib.AbstractContextManager[Any]:
        return self._endpoint.outside_clock(pause) if self._endpoint else contextlib.nullcontext()

    def _wait(self, done: Callable[[], bool], what: str, timeout: float | None = None) -> None:
        """Handle messages until done() is true. Raises ExchangeError: TIMEOUT, with `what`."""
        if self._closed:
            raise ExchangeError("CLOSED", "the exchange was closed")
        timeout = self.timeout if timeout is None else timeout
        end = time.monotonic() + timeout
        while True:
            self._handle()
            if done():
                return
            left = end - time.monotonic()
            if left <= 0:
                raise ExchangeError("TIMEOUT", f"{what} after {timeout:g} s")
            sleep_on([l for l in self._links.values() if not l.lost], left)

    def _handle(self) -> None:
        """Move bytes on all links, and handle what came whole."""
        for party, link in self._links.items():
            if party in self._gone:
                continue
            link.move()
            try:
                while (frame := link.frame()) is not None:
                    self._take(party, *frame)
            except ExchangeError as error:
                link.lost = str(error)
            if link.lost:
                link.connection.close()
                self._lose(party, link.lost)

    def _lose(self, party: int, why: str) -> None:
        self._gone.setdefault(party, why)
        if self.party == 0:
            self._pass_on(party, GONE, "", why.encode()[:256])

    def _pass_on(self, party: int, kind: int, name: str, data: bytes) -> None:
        """Party 0: send what came from a party to all others."""
        for other, link in self._links.items():
            if other != party and other not in self._gone:
                link.send(kind, party, name, data)

    def _take(self, sender: int, kind: int, party: int, name: str, data: bytes) -> None:
        """A message that came over the link to `sender`, about `party`."""
        if party >= self.parties or (self.party == 0 and party != sender):
            raise ExchangeError("PROTOCOL", f"party {sender} spoke for party {party}")
        if kind == PUBLISH:
            self._keep(party, name, data)
            if self.party == 0:
                self._pass_on(party, PUBLISH, name, data)
        elif kind == ARRIVED and self.party == 0:
            self._arrived[party] += 1
            if self._arrived[party] > self._released + 1:
                raise ExchangeError("PROTOCOL", f"party {party} came to a barrier twice")
            self._release()
        elif kind == RELEASED and self.party:
            self._released += 1
        elif kind == GONE and self.party:
            self._gone.setdefault(party, data.decode(errors="replace"))
        else:
            raise ExchangeError("PROTOCOL", f"party {sender} sent a message of kind {kind}")

    def _keep(self, party: int, name: str, data: bytes) -> None:
        if self._counts[party] == ENTRIES or (party, name) in self._values:
            raise ExchangeError("PROTOCOL", f"party {party} published too much, or {name!r} twice")
        self._counts[party] += 1
        self._values[party, name] = data

    def _release(self) -> None:
        """Party 0: end the barrier that all have come to."""
        while min(self._arrived) > self._released:
            self._released += 1
            for party, link in self._links.items():
                if party not in self._gone:
                    link.send(RELEASED, 0)

    # Calls ----------------------------------------------------------------------------------------

    def publish(self, name: str, data: bytes) -> None:
        """Give a value to all parties. It does not wait.

        name : at most 63 bytes of UTF-8, once for each party
        data : bytes, at most 1 MiB
        """
        if self._closed:
            raise ExchangeError("CLOSED", "the exchange was closed")
        data, size = bytes(data), len(name.encode())
        if not 0 < size <= NAME_BYTES or len(data) > DATA_BYTES:
            raise ExchangeError(
                "ARGUMENT",
                f"a name has 1 … {NAME_BYTES} bytes and a value at most {DATA_BYTES}, not {size} "
                f"and {len(data)}",
            )
        if (self.party, name) in self._values:
            raise ExchangeError("IN_USE", f"this party has published {name!r} already")
        if self._counts[self.party] == ENTRIES:
            raise ExchangeError("ARGUMENT", f"a party publishes at most {ENTRIES} values")
        self._keep(self.party, name, data)
        for party, link in self._links.items():
            if party not in self._gone:
                link.send(PUBLISH, self.party, name, data)

    def look_up(self, party: int, name: str, timeout: float | None = None) -> bytes:
        """The bytes that a party has published, as soon as they are here.

        Raises ExchangeError: TIMEOUT, or LOST when that party left without it.
        """
        if not 0 <= party < self.parties:
            raise ExchangeError("ARGUMENT", f"party {party} of {self.parties}")

        def done() -> bool:
            return (party, name) in self._values or self._lost((party,))

        if not self.has(party, name):
            with self._outside_clock(pause=True):
                self._wait(done, f"party {party} has not published {name!r}", timeout)
        if (party, name) not in self._values:
            self._raise_lost((party,), f"it did not publish {name!r}")
        return self._values[party, name]

    def has(self, party: int, name: str) -> bool:
        """Whether look_up() would not wait: the value is here, or can no longer come."""
        if self._closed:
            raise ExchangeError("CLOSED", "the exchange was closed")
        self._handle()
        return (party, name) in self._values or self._lost((party,))

    def fileno(self) -> int:
        """A descriptor for select(2): readable when has() may have changed. Of two parties only."""
        if self.parties != 2:
            raise ExchangeError("ARGUMENT", f"{self.parties} parties have no single descriptor")
        return self._links[1 - self.party].connection.fileno()

    def barrier(self, timeout: float | None = None) -> None:
        """Wait until all parties have come here."""
        if self._closed:
            raise ExchangeError("CLOSED", "the exchange was closed")
        number = self._arrived[self.party] + 1
        everybody = range(self.parties)

        def done() -> bool:
            return self._released >= number or self._lost(everybody)

        # The others may go on as soon as they hear of this party. So it has left the clock by then:
        # their return waits for its own.
        with self._outside_clock():
            self._arrived[self.party] = number
            if self.party == 0:
                self._release()
            else:
                self._links[0].send(ARRIVED, self.party)
            self._wait(done, f"not all parties came to barrier {number}", timeout)
        if self._released < number:
            self._raise_lost(everybody, f"it did not come to barrier {number}")

    def _lost(self, parties: Iterable[int]) -> bool:
        """Whether one of these is gone, or, with party 0, the way to all of them."""
        return (self.party != 0 and 0 in self._gone) or any(p in self._gone for p in parties)

    def _raise_lost(self, parties: Iterable[int], what: str) -> NoReturn:
        party = next((p for p in parties if p in self._gone), 0)
        raise ExchangeError("LOST", f"party {party} has left ({self._gone[party]}): {what}")
