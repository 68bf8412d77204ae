"""Which processes talk over a Unix socket: who uses a simulated card.

The kernel tells which socket is connected to which (sock_diag(7), NETLINK_SOCK_DIAG with
UNIX_DIAG_NAME and UNIX_DIAG_PEER), and /proc tells which process has a socket open.
"""

# SPDX-License-Identifier: BSD-2-Clause

import os
import socket
import struct
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 2, 3
UDIAG_SHOW_NAME, UDIAG_SHOW_PEER = 1, 4
UNIX_DIAG_NAME, UNIX_DIAG_PEER = 0, 2
ALL_STATES = 0xFFFFFFFF
HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
REQUEST = struct.Struct("=BBHIIIII")  # unix_diag_req: family, protocol, pad, states, inode, …
ANSWER = struct.Struct("=BBBBIII")  # unix_diag_msg: family, type, state, pad, inode, cookie
ATTRIBUTE = struct.Struct("=HH")  # nlattr: length, type


def _aligned(size: int) -> int:
    return size + 3 & ~3


def _attributes(data: bytes) -> dict[int, bytes]:
    """{type: bytes} of a message's attributes."""
    found: dict[int, bytes] = {}
    at = 0
    while at + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if length < ATTRIBUTE.size:
            break
        found[kind] = data[at + ATTRIBUTE.size : at + length]
        at += _aligned(length)
    return found


def sockets() -> dict[int, tuple[str, int | None]]:
    """All Unix sockets of this machine: {inode: (path or "", inode of the peer or None)}. Empty
    where the kernel has no unix_diag.
    """
    found: dict[int, tuple[str, int | None]] = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(2)
            payload = REQUEST.pack(
                socket.AF_UNIX,
                0,
                0,
                ALL_STATES,
                0,
                UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
                *[ALL_STATES] * 2,
            )
            netlink.send(
                HEADER.pack(
                    HEADER.size + len(payload),
                    SOCK_DIAG_BY_FAMILY,
                    NLM_F_REQUEST | NLM_F_DUMP,
                    1,
                    0,
                )
                + payload
            )
            while True:
                data, at = netlink.recv(1 << 16), 0
                while at + HEADER.size <= len(data):
                    length, kind, *_ = HEADER.unpack_from(data, at)
                    if kind in (NLMSG_DONE, NLMSG_ERROR) or length < HEADER.size:
                        return found
                    _, _, _, _, inode, _, _ = ANSWER.unpack_from(data, at + HEADER.size)
                    more = _attributes(data[at + HEADER.size + ANSWER.size : at + length])
                    peer = more.get(UNIX_DIAG_PEER)
                    path = os.fsdecode(more.get(UNIX_DIAG_NAME, b"").rstrip(b"\0"))
                    found[inode] = (path, struct.unpack("=I", peer)[0] if peer else None)
                    at += _aligned(length)
    except (OSError, struct.error):
        return found


def owners(wanted: Collection[str], proc: Path = Path("/proc")) -> dict[str, set[int]]:
    """{target of a descriptor: {process numbers}} of the wanted targets, such as "/dev/dibber0" or
    "socket:[1234]". Processes of other users are seen by root only.
    """
    found: defaultdict[str, set[int]] = defaultdict(set)
    for folder in proc.glob("[0-9]*/fd"):
        try:
            links = list(os.scandir(folder))
        except OSError:
            continue
        for link in links:
            try:
                target = os.readlink(link.path)
            except OSError:
                continue
            if target in wanted:
                found[target].add(int(folder.parent.name))
    return found


def clients(paths: Collection[str]) -> dict[str, set[int]]:
    """{path: process numbers that are connected to the Unix socket of that name}."""
    known = sockets()
    peer_of = {peer: path for path, peer in known.values() if path in paths and peer}
    holders = owners({f"socket:[{inode}]" for inode in peer_of})
    found: dict[str, set[int]] = {path: set() for path in paths}
    for inode, path in peer_of.items():
        found[path] |= holders[f"socket:[{inode}]"]
    return found
