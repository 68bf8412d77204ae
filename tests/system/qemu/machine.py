# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A guest in QEMU: one static program as its init, simulated cards as its PCIe devices."""

import json
import pathlib
import stat
import subprocess

LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
MEMORY = "256M"


def build_init(source, out, includes):
    """Compile `source` to a static program at `out`."""
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Werror", "-Os", "-static", f"-I{includes}",
                    "-o", str(out), str(source)], check=True, timeout=60)


def initramfs(init):
    """A newc archive (Documentation/driver-api/early-userspace/buffer-format.rst) that holds `/init` only."""
    def entry(name, mode, data=b""):
        name   = name.encode() + b"\0"
        #         inode mode uid gid links mtime size, device and its own (major, minor), name size, check
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        head   = b"070701" + b"".join(b"%08x" % field for field in fields) + name
        return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
    return entry("init", stat.S_IFREG | 0o755, pathlib.Path(init).read_bytes()) + entry("TRAILER!!!", 0)


def command(qemu, archive, sockets):
    """The command that boots `archive` with a card for each vfio-user socket.

    qemu : pathlib.Path, what fetch.py made
    """
    root = qemu / "root"
    line = [
        # The packages' own loader and libraries: the system's may be older.
        root / LOADER, "--argv0", "qemu-system-x86_64", "--inhibit-cache",
        "--library-path", root / "usr/lib/x86_64-linux-gnu",
        root / "usr/bin/qemu-system-x86_64", "-L", root / "usr/share/qemu", "-L", root / "usr/share/seabios",
        "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio",
        # /dev/kvm may be there and still unable to boot a stock kernel.
        "-accel", "tcg", "-m", MEMORY,
        # share=on: with a private mapping the card's DMA would land in other pages, silently.
        "-object", f"memory-backend-memfd,id=memory,size={MEMORY},share=on",
        "-machine", "q35,memory-backend=memory",
        "-kernel", qemu / "vmlinux", "-initrd", archive, "-append", "console=ttyS0 quiet panic=-1",
    ]
    for number, socket in enumerate(sockets):
        line += ["-device", f"pcie-root-port,id=port{number},chassis={number + 1}"]
        line += ["-device", json.dumps({
            "driver": "vfio-user-pci",
            "bus": f"port{number}",
            # A late answer breaks the stream for good; the watchdog is ours.
            "x-msg-timeout": 600_000,
            "socket": {"type": "unix", "path": str(socket)},
        })]
    return [str(part) for part in line]


def boot(qemu, archive, sockets=(), timeout=80):
    """Run the guest until it switches itself off. Returns what it wrote on its console.

    Raises subprocess.TimeoutExpired when it does not, CalledProcessError when QEMU itself fails.
    """
    done = subprocess.run(command(qemu, archive, sockets), stdin=subprocess.DEVNULL, timeout=timeout,
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace")
