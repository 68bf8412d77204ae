"""Where the parties of an exchange meet: a host and port, or a rendezvous file."""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import errno
import os
import socket

from libdibber.exchange_wire import ExchangeError


def host_and_port(where: str, listens: bool) -> tuple[str, int]:
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


def open_listeners(host: str, port: int) -> tuple[list[socket.socket], int]:
    """Sockets that listen at all addresses of `host`, with the same port; "": of this machine."""
    listeners: list[socket.socket] = []
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


def addresses(port: int) -> list[str]:
    """All addresses of this machine, a line each, the most likely first: for a rendezvous file."""
    hosts = {socket.gethostname(), "127.0.0.1"}
    with contextlib.suppress(OSError):
        hosts |= {str(a[4][0]) for a in socket.getaddrinfo(socket.gethostname(), port)}
    ordered = sorted(hosts, key=lambda host: host.startswith("127."))
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in ordered]


def write_rendezvous(path: str, port: int, token: str) -> None:
    """Make the file, readable by this user alone: token, then addresses. It appears whole."""
    partial = f"{path}.{os.getpid()}"
    text = "\n".join((token, *addresses(port), ""))
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except OSError as error:
        raise ExchangeError("ARGUMENT", f"{path} cannot be made: {error.strerror}") from None


def read_rendezvous(path: str) -> tuple[str, list[str]] | None:
    """(token, addresses) of the file; None when it is not there yet."""
    try:
        # Without O_NONBLOCK a FIFO of this name would stop the program.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, encoding="utf-8", errors="replace") as file:
            token, *places = file.read(4096).splitlines()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ExchangeError("ARGUMENT", f"{path} cannot be read: {error}") from None
    return token, places
