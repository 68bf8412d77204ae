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
import errno
import hmac
import os
import secrets
import selectors
import socket
import struct
import time

MAGIC = 0x58424944  # "DIBX", read as a little-endian word
VERSION = 1
MOST_PARTIES = 64
NAME_BYTES = 63  # of a published name, UTF-8
DATA_BYTES = 1 << 20  # of one published value
ENTRIES = 4096  # that a party may publish
TOKEN_BYTES = 64

HELLO = struct.Struct("<IIII64s")  # magic, version, party, parties, token
REPLY = struct.Struct("<III116s")  # magic, version, error (index of REFUSALS), reason in UTF-8
FRAME = struct.Struct("<IIII")  # kind, party, bytes of the name, bytes of data
PUBLISH, ARRIVED, RELEASED, GONE = range(1, 5)  # kinds of FRAME

REFUSALS = ("", "VERSION", "DENIED", "ARGUMENT", "IN_USE")
GREETING_SECONDS = 5  # until a connection has sent its HELLO
MOST_GREETINGS = 16  # connections that have not sent it
RETRY_SECONDS = 0.1  # from one attempt to connect to the next


class ExchangeError(Exception):
    """An exchange failed.

    name : "TIMEOUT" a party did not answer in time; "LOST" a party has left; "VERSION" the other
           side speaks another version; "DENIED" it does not accept the token; "IN_USE" the name,
           the party's number or the port is taken; "PROTOCOL" the other side is no party of an
           exchange, or broke the protocol; "ARGUMENT" an argument makes no sense; "CLOSED" the
           exchange was closed
    """

    def __init__(self, name, text):
        super().__init__(text)
        self.name = name


# Where --------------------------------------------------------------------------------------------


def _host_and_port(where, listens):
    """("host", port) of "HOST:PORT", "[IPv6]:PORT", or, to listen, "PORT" and ":PORT"."""
    host, _, port = where.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ExchangeError("ARGUMENT", f"{where!r}: write an IPv6 address as [ADDRESS]:PORT")
    if not port.isascii() or not port.isdigit() or int(port) > 65535 or not (host or listens):
        form = "PORT or HOST:PORT" if listens else "HOST:PORT"
        raise ExchangeError("ARGUMENT", f"{where!r} is no {form}, and no file:PATH")
    return host, int(port)


def _listen(host, port):
    """Sockets that listen at all addresses of `host`, with the same port; "": of this machine."""
    listeners = []
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in found:
            with contextlib.suppress(OSError) if listeners else contextlib.nullcontext():
                listener = socket.socket(family, kind, protocol)
                listener.setblocking(False)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                try:
                    listener.bind((address[0], port, *address[2:]))
                    listener.listen()
                except OSError:
                    listener.close()
                    raise
                listeners.append(listener)
                port = listener.getsockname()[1]
    except OSError as error:
        for listener in listeners:
            listener.close()
        raise ExchangeError(
            "IN_USE" if error.errno == errno.EADDRINUSE else "ARGUMENT",
            f"cannot listen at {host or 'all addresses'}, port {port}: {error.strerror}",
        ) from None
    return listeners, port


def _addresses(port):
    """All addresses of this machine, a line each, the most likely first: for a rendezvous file."""
    hosts = {socket.gethostname(), "127.0.0.1"}
    with contextlib.suppress(OSError):
        hosts |= {a[4][0] for a in socket.getaddrinfo(socket.gethostname(), port)}
    hosts = sorted(hosts, key=lambda host: host.startswith("127."))
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts]


def _write_rendezvous(path, port, token):
    """Make the file, readable by this user alone: token, then addresses. It appears whole."""
    partial = f"{path}.{os.getpid()}"
    text = "\n".join((token, *_addresses(port), ""))
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except OSError as error:
        raise ExchangeError("ARGUMENT", f"{path} cannot be made: {error.strerror}") from None


def _read_rendezvous(path):
    """(token, addresses) of the file; None when it is not there yet."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            token, *places = file.read(4096).splitlines()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ExchangeError("ARGUMENT", f"{path} cannot be read: {error}") from None
    return token, places


# Connections --------------------------------------------------------------------------------------


class _Link:
    """A connection with its bytes on both ways, none of which ever blocks.

    party : number of the other end
    name  : its address, in messages
    lost  : why it is gone, or None
    """

    def __init__(self, connection, party=None):
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection, self.party, self.lost = connection, party, None
        self.name = ""
        self.received, self.unsent = bytearray(), bytearray()

    def move(self):
        """Send and receive what goes without waiting."""
        try:
            while self.unsent:
                del self.unsent[: self.connection.send(self.unsent)]
        except BlockingIOError:
            pass
        except OSError as error:
            self.lost = self.lost or error.strerror
        try:
            while data := self.connection.recv(1 << 16):
                self.received += data
                if len(self.received) > 4 * DATA_BYTES:
                    return
            self.lost = self.lost or "it closed the connection"
        except BlockingIOError:
            pass
        except OSError as error:
            self.lost = self.lost or error.strerror

    def take(self, size):
        """The first `size` bytes that came, or None when there are fewer."""
        if len(self.received) < size:
            return None
        taken = bytes(self.received[:size])
        del self.received[:size]
        return taken

    def frame(self):
        """The next whole message: (kind, party, name, data), or None. Raises ExchangeError."""
        if len(self.received) < FRAME.size:
            return None
        kind, party, name_bytes, data_bytes = FRAME.unpack_from(self.received)
        if not PUBLISH <= kind <= GONE or name_bytes > NAME_BYTES or data_bytes > DATA_BYTES:
            raise ExchangeError("PROTOCOL", f"party {self.party} sent no message of an exchange")
        whole = self.take(FRAME.size + name_bytes + data_bytes)
        if whole is None:
            return None
        name = whole[FRAME.size : FRAME.size + name_bytes].decode(errors="replace")
        return kind, party, name, whole[FRAME.size + name_bytes :]

    def send(self, kind, party, name="", data=b""):
        encoded = name.encode()
        self.unsent += FRAME.pack(kind, party, len(encoded), len(data)) + encoded + data
        self.move()


def _token(text):
    encoded = text.encode()
    if len(encoded) > TOKEN_BYTES or b"\0" in encoded:
        raise ExchangeError("ARGUMENT", f"a token has at most {TOKEN_BYTES} bytes, none of them 0")
    return encoded.ljust(TOKEN_BYTES, b"\0")


# Exchange -----------------------------------------------------------------------------------------


class Exchange:
    """A number of programs that publish values by name, look them up, and meet at barriers.

    Made by Exchange.listen() and Exchange.connect(). It belongs to one thread. `timeout` is in
    seconds, for each call that waits. With an `endpoint`, a call that waits leaves the simulator's
    clock of that endpoint meanwhile, so that simulated time does not stand still.

    Attributes
    ----------
    party, parties : this program's number, and how many programs there are
    where          : what the others give to connect(), at the one that listens
    """

    def __init__(self, party, parties, timeout, endpoint):
        if not 2 <= parties <= MOST_PARTIES or not 0 <= party < parties:
            raise ExchangeError(
                "ARGUMENT", f"party {party} of {parties}: there are 2 … {MOST_PARTIES} parties"
            )
        self.party, self.parties, self.timeout = party, parties, timeout
        self.where, self._endpoint = None, endpoint
        self._links = {}  # party: _Link; party 0 has one to each other, the others to party 0
        self._values = {}  # (party, name): data
        self._counts = [0] * parties  # values that each party published
        self._arrived = [0] * parties  # barriers that each party has come to; known to party 0
        self._released = 0  # barriers that are over
        self._gone = {}  # party: why
        self._closed = False

    @classmethod
    def listen(cls, where, parties=2, token="", timeout=60, endpoint=None):
        """Be party 0, and wait until all others have connected.

        where : "PORT", "HOST:PORT", "[IPv6]:PORT", or "file:PATH", a rendezvous file that is made,
                and removed when all are there. Port 0 takes a free one.
        """
        self = cls(0, parties, timeout, endpoint)
        path = where.removeprefix("file:") if where.startswith("file:") else None
        if path and not token:
            token = secrets.token_hex(TOKEN_BYTES // 4)
        listeners, port = _listen(*(("", 0) if path else _host_and_port(where, True)))
        self.where = where if path else f"{socket.gethostname()}:{port}"
        try:
            wanted = _token(token)
            if path:
                _write_rendezvous(path, port, token)
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
    def connect(cls, where, party=1, parties=2, token="", timeout=60, endpoint=None):
        """Be a party from 1 on: connect to the one that listens, as soon as it does.

        where : "HOST:PORT", "[IPv6]:PORT", or "file:PATH", which listen() makes
        """
        if party == 0:
            raise ExchangeError("ARGUMENT", "party 0 is the one that listens")
        self = cls(party, parties, timeout, endpoint)
        self.where = where
        path = where.removeprefix("file:") if where.startswith("file:") else None
        if not path:
            _host_and_port(where, False)
        _token(token)
        try:
            with self._outside_clock():
                self._reach(where, path, token)
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        """Send what is still to be sent, and leave. The others can use what was published."""
        if self._closed:
            return
        with contextlib.suppress(ExchangeError), self._outside_clock():
            self._wait(lambda: not any(l.unsent and not l.lost for l in self._links.values()), "")
        self._closed = True
        for link in self._links.values():
            link.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Beginning ------------------------------------------------------------------------------------

    def _gather(self, listeners, token):
        """Party 0: accept the others. Whatever else connects is turned away, and counted."""
        greetings, refused, last = {}, 0, ""  # _Link: when it must have sent its HELLO
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
                    with contextlib.suppress(OSError):
                        connection, address = listener.accept()
                        link = _Link(connection)
                        link.name = f"{address[0]}:{address[1]}"
                        if len(greetings) < MOST_GREETINGS:
                            greetings[link] = now + GREETING_SECONDS
                            selector.register(connection, selectors.EVENT_READ)
                        else:
                            connection.close()
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

    def _judge(self, link, hello, token):
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

    def _reach(self, where, path, token):
        """Other parties: connect to party 0, again and again until it listens."""
        end = time.monotonic() + self.timeout
        why = f"there is no {path}" if path else "not tried"
        while True:
            found = _read_rendezvous(path) if path else (token, [where])
            for place in found[1] if found else ():
                left = max(end - time.monotonic(), 0.01)
                try:
                    connection = socket.create_connection(
                        _host_and_port(place, False), min(left, GREETING_SECONDS)
                    )
                except OSError as error:
                    why = f"{place}: {error.strerror or error}"
                    continue
                link = _Link(connection, 0)
                link.unsent += HELLO.pack(
                    MAGIC, VERSION, self.party, self.parties, _token(token or found[0])
                )
                self._greet(link, place, end)
                self._links[0] = link
                return
            if time.monotonic() >= end:
                raise ExchangeError(
                    "TIMEOUT", f"nobody listens at {where} after {self.timeout:g} s ({why})"
                )
            time.sleep(min(RETRY_SECONDS, max(end - time.monotonic(), 0)))

    def _greet(self, link, place, end):
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
                _sleep_on([link], until - time.monotonic())
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

    def _outside_clock(self):
        return self._endpoint.outside_clock() if self._endpoint else contextlib.nullcontext()

    def _wait(self, done, what, timeout=None):
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
            _sleep_on([l for l in self._links.values() if not l.lost], left)

    def _handle(self):
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

    def _lose(self, party, why):
        self._gone.setdefault(party, why)
        if self.party == 0:
            self._pass_on(party, GONE, "", why.encode()[:256])

    def _pass_on(self, party, kind, name, data):
        """Party 0: send what came from a party to all others."""
        for other, link in self._links.items():
            if other != party and other not in self._gone:
                link.send(kind, party, name, data)

    def _take(self, sender, kind, party, name, data):
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

    def _keep(self, party, name, data):
        if self._counts[party] == ENTRIES or (party, name) in self._values:
            raise ExchangeError("PROTOCOL", f"party {party} published too much, or {name!r} twice")
        self._counts[party] += 1
        self._values[party, name] = data

    def _release(self):
        """Party 0: end the barrier that all have come to."""
        while min(self._arrived) > self._released:
            self._released += 1
            for party, link in self._links.items():
                if party not in self._gone:
                    link.send(RELEASED, 0)

    # Calls ----------------------------------------------------------------------------------------

    def publish(self, name, data):
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

    def look_up(self, party, name, timeout=None):
        """The bytes that a party has published, as soon as they are here.

        Raises ExchangeError: TIMEOUT, or LOST when that party left without it.
        """
        if not 0 <= party < self.parties:
            raise ExchangeError("ARGUMENT", f"party {party} of {self.parties}")

        def done():
            return (party, name) in self._values or self._lost((party,))

        with self._outside_clock():
            self._wait(done, f"party {party} has not published {name!r}", timeout)
        if (party, name) not in self._values:
            self._raise_lost((party,), f"it did not publish {name!r}")
        return self._values[party, name]

    def barrier(self, timeout=None):
        """Wait until all parties have come here."""
        if self._closed:
            raise ExchangeError("CLOSED", "the exchange was closed")
        number = self._arrived[self.party] + 1
        self._arrived[self.party] = number
        if self.party == 0:
            self._release()
        else:
            self._links[0].send(ARRIVED, self.party)
        everybody = range(self.parties)

        def done():
            return self._released >= number or self._lost(everybody)

        with self._outside_clock():
            self._wait(done, f"not all parties came to barrier {number}", timeout)
        if self._released < number:
            self._raise_lost(everybody, f"it did not come to barrier {number}")

    def _lost(self, parties):
        """Whether one of these is gone, or, with party 0, the way to all of them."""
        return (self.party != 0 and 0 in self._gone) or any(p in self._gone for p in parties)

    def _raise_lost(self, parties, what):
        party = next((p for p in parties if p in self._gone), 0)
        raise ExchangeError("LOST", f"party {party} has left ({self._gone[party]}): {what}")


def _sleep_on(links, seconds):
    """Sleep until a link can receive, or send what waits, for at most so many seconds."""
    with selectors.DefaultSelector() as selector:
        for link in links:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.unsent else 0)
            selector.register(link.connection, events)
        selector.select(max(min(seconds, 0.5), 0))
