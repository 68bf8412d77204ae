"""A guest in QEMU: a static program as its init, simulated cards as its PCIe devices."""

# SPDX-License-Identifier: BSD-2-Clause

import contextlib
import json
import select
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dibber_cli import paths, topology
from dibber_cli import profile as profiles

LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
MEMORY = "256M"
ROOT = Path(__file__).resolve().parents[3]
# QEMU and its kernel serve builds for any number of nodes.
QEMU = ROOT / "build/qemu"
BUILD = paths.BUILD
DRIVER = BUILD / "driver/dibber.ko"
# Sources that programs in a guest have in common.
GUEST = ROOT / "software/driver/guest"

START_SECONDS = 120


@contextlib.contextmanager
def simulator(
    directory: Path, seed: int, cards: int, profile: str = "gen2x4", program: Path | None = None
) -> Iterator[list[Path]]:
    """So many simulated cards; yields their sockets. Raises AssertionError when it does not live to
    the end.

    cards   : 1 or 2; or more, an even number: pairs, each with a cable
    profile : name of a profile, or the path of one
    program : the simulator, if it is not the one of the profile
    """
    chosen = profiles.load(profile)
    which: list[str | Path] = ["--cards", str(cards)]
    if cards > 2:
        network = directory / "topology.toml"
        network.write_text(topology.pairs(cards // 2).toml("pairs"), encoding="utf-8")
        which = ["--topology", network]
    command: list[str | Path] = [
        program or paths.simulator(chosen),
        "--profile",
        chosen.path,
        *which,
        "--participants",
        str(cards),
        "--seed",
        str(seed),
        "--socket-dir",
        directory,
    ]
    with open(directory / "stderr", "w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        readable, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if readable else ""
        assert line == "ready\n", (directory / "stderr").read_text(encoding="utf-8")
        yield [directory / f"card{n}.sock" for n in range(cards)]
        assert process.poll() is None, (directory / "stderr").read_text(encoding="utf-8")
        process.terminate()
        assert process.wait(timeout=60) == 0, (directory / "stderr").read_text(encoding="utf-8")
    finally:
        process.kill()
        process.wait()


def build(out: Path, sources: Iterable[Path], *options: str | Path) -> None:
    """Compile a static program."""
    subprocess.run(
        [
            "gcc",
            "-std=gnu11",
            "-Wall",
            "-Werror",
            "-Os",
            "-static",
            "-o",
            str(out),
            *map(str, sources),
            *map(str, options),
        ],
        check=True,
        timeout=600,
    )


def initramfs(files: Mapping[str, Path | None]) -> bytes:
    """A newc archive (Documentation/driver-api/early-userspace/buffer-format.rst).

    files : {name: path of a file here, None for a folder}, folders before what is in them
    """

    def entry(name: str, mode: int, data: bytes = b"") -> bytes:
        ended = name.encode() + b"\0"
        #         inode mode uid gid links mtime size, device and its own (major, minor), name size,
        # check
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(ended), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + ended
        return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)

    return b"".join(
        entry(name, stat.S_IFREG | 0o755, Path(path).read_bytes())
        if path
        else entry(name, stat.S_IFDIR | 0o755)
        for name, path in files.items()
    ) + entry("TRAILER!!!", 0)


def command(qemu: Path, archive: Path, sockets: Sequence[Path], iommu: bool) -> list[str]:
    """The command that boots `archive` with a card for each vfio-user socket.

    qemu  : pathlib.Path, what fetch.py made
    iommu : an emulated one stands between the cards and memory, and remaps their interrupts
    """
    root = qemu / "root"
    # no_timer_check: on a busy host the timer's interrupt comes too late for the kernel's test,
    # which then panics.
    # iomem=relaxed: root may write a register of a card that a driver has.
    append = "console=ttyS0 quiet panic=-1 no_timer_check iomem=relaxed"
    append += " intel_iommu=on" if iommu else ""
    line = [
        # The packages' own loader and libraries: the system's may be older.
        root / LOADER,
        "--argv0",
        "qemu-system-x86_64",
        "--inhibit-cache",
        "--library-path",
        root / "usr/lib/x86_64-linux-gnu",
        root / "usr/bin/qemu-system-x86_64",
        "-L",
        root / "usr/share/qemu",
        "-L",
        root / "usr/share/seabios",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-serial",
        "stdio",
        # /dev/kvm may be there and still unable to boot a stock kernel.
        "-accel",
        "tcg",
        "-m",
        MEMORY,
        # share=on: with a private mapping the card's DMA would land in other pages, silently.
        "-object",
        f"memory-backend-memfd,id=memory,size={MEMORY},share=on",
        "-machine",
        "q35,memory-backend=memory",
        "-kernel",
        qemu / "vmlinux",
        "-initrd",
        archive,
        "-append",
        append,
    ]
    if iommu:
        # caching-mode: the guest tells of each new translation, which vfio-user-pci passes on to
        # the card.
        line += ["-device", "intel-iommu,intremap=on,caching-mode=on"]
    for number, socket in enumerate(sockets):
        line += ["-device", f"pcie-root-port,id=port{number},chassis={number + 1}"]
        line += [
            "-device",
            json.dumps(
                {
                    "driver": "vfio-user-pci",
                    "bus": f"port{number}",
                    # A late answer breaks the stream for good; the watchdog is ours.
                    "x-msg-timeout": 600_000,
                    "socket": {"type": "unix", "path": str(socket)},
                }
            ),
        ]
    return [str(part) for part in line]


def boot(
    qemu: Path,
    archive: Path,
    sockets: Sequence[Path] = (),
    timeout: float = 600,
    iommu: bool = False,
) -> str:
    """Run the guest until it switches itself off. Returns what it wrote on its console.

    Raises subprocess.TimeoutExpired when it does not, CalledProcessError when QEMU itself fails.
    """
    done = subprocess.run(
        command(qemu, archive, sockets, iommu),
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout.decode(errors="replace")


def said(console: str) -> dict[str, int]:
    """{name: value} that a guest said; AssertionError with all of its console when it did not come
    to its end.
    """
    lines = [line.split()[1:] for line in console.splitlines() if line.startswith("guest ")]
    assert lines and lines[-1] == ["done"], console
    return {name: int(value, 16) for name, value in lines[:-1]}


def boot_with_driver(
    directory: Path,
    seed: int,
    programs: Mapping[str, Sequence[Path]],
    files: Mapping[str, Path] | None = None,
    iommu: bool = False,
    timeout: float = 1800,
    profile: str = "gen2x4",
    program: Path | None = None,
    cards: int = 2,
) -> str:
    """What a guest wrote that has dibber.ko and simulated cards, and runs `programs` one behind
    the other, as software/driver/guest/guest_driver.c says.

    directory : pathlib.Path of an empty folder for the guest's files
    programs  : {name: list of sources}; the guest runs them by ascending name
    files     : {name in the guest: pathlib.Path}, more files
    timeout   : seconds of the wall clock
    program   : the simulator, if it is not the one of the profile
    cards     : 2, or 4 in two pairs: 0 and 1, 2 and 3
    """
    built: dict[str, Sequence[Path]] = {
        "init": [GUEST / "guest_driver.c", GUEST / "guest_common.c"]
    }
    built.update({f"tests/{name}": sources for name, sources in programs.items()})
    contents: dict[str, Path | None] = {
        "lib": None,
        "lib/firmware": None,
        "lib/firmware/dibber": None,
        "lib/firmware/dibber/mcp.dibfw": BUILD / "firmware/mcp.dibfw",
        "dibber.ko": DRIVER,
        "arguments": None,
        "tests": None,
        "modules": None,
    }
    for module in sorted((QEMU / "driver-modules").glob("*.ko")):
        contents[f"modules/{module.name}"] = module
    contents.update(files or {})
    for name, sources in built.items():
        contents[name] = made = directory / Path(name).name
        build(
            made,
            [*sources, BUILD / "lib/libdibber.a"],
            f"-I{ROOT}/software/lib/include",
            f"-I{BUILD}/generated",
            f"-I{ROOT}/software/driver",
            f"-I{GUEST}",
            "-pthread",
        )
    archive = directory / "initramfs"
    archive.write_bytes(initramfs(contents))
    with simulator(directory, seed, cards, profile, program) as sockets:
        console = boot(QEMU, archive, sockets, iommu=iommu, timeout=timeout)
    (directory / "console").write_text(console, encoding="utf-8")
    return console
