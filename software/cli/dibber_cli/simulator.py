"""Starting and ending dibber-sim."""

# SPDX-License-Identifier: BSD-2-Clause

import ctypes
import dataclasses
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, BinaryIO, Self

from dibber_cli import paths, signals, topology
from dibber_cli.errors import SimulatorError
from dibber_cli.profile import Profile

TOPOLOGY = "topology.toml"  # in the folder of a simulator that was given one
PREFIX = "dibber-pair-"  # of the folder of a Network
START_SECONDS = 120
LAST_BYTES = 4096  # of a log
ANSWER_SECONDS = 5  # of the simulator, of its clock
ERROR_FLAG = 1 << 5  # of a vfio-user message
PR_SET_PDEATHSIG = 1  # prctl(2)


def command(
    profile: Profile,
    directory: str | Path,
    *,
    participants: int,
    seed: int = 1,
    options: Sequence[str] = (),
) -> list[str]:
    """The command line of a simulator; raises SimulatorError if it is not built."""
    binary = paths.simulator(profile)
    if not binary.exists():
        fabric = f" FABRIC={profile.fabric}" * (profile.fabric != "direct")
        raise SimulatorError(
            f"{binary} is not built", f"run 'make simulator PROFILE={profile.name}{fabric}'"
        )
    return [
        str(binary),
        "--profile",
        profile.path,
        "--socket-dir",
        str(directory),
        "--participants",
        str(participants),
        "--seed",
        str(seed),
        *(["--set", f'link.fabric="{profile.fabric}"'] if profile.fabric != "direct" else []),
        *options,
    ]


def machine(profile: Profile, text: str | None) -> Profile:
    """The profile, with the fabric of the topology with this text; None: a pair."""
    fabric = text and topology.fabric_of(text)
    return dataclasses.replace(profile, fabric=fabric) if fabric else profile


def _end_with_parent() -> None:
    """In a child: let the system end it when its parent has ended, for any reason."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def launch(
    arguments: Sequence[str], log: BinaryIO, shown: Path | None, outlives_us: bool = False
) -> subprocess.Popen[bytes]:
    """Start a simulator. Its messages go to the file `log`, which is also open for reading. Returns
    the process when its sockets listen.

    shown : the log's name in errors, or None if the log is removed
    """
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
        preexec_fn=None if outlives_us else _end_with_parent,
    )
    try:
        _wait_ready(process, log, shown)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            process.terminate()
            process.wait()
        _stdout(process).close()
        raise
    return process


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """Of a process that launch() has started, where it is a pipe."""
    assert process.stdout is not None
    return process.stdout


def _wait_ready(process: subprocess.Popen[bytes], log: BinaryIO, shown: Path | None) -> None:
    """Wait for the line that a simulator prints when it listens. Raises SimulatorError if it does
    not come.
    """
    deadline = time.monotonic() + START_SECONDS
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([_stdout(process)], [], [], left)[0]:
            process.kill()
            process.wait()
            raise SimulatorError(
                f"the simulator was not ready after {START_SECONDS} s: {last_line(log)}",
                f"its log: {shown}" if shown else "",
            )
        byte = os.read(_stdout(process).fileno(), 1)
        if not byte:
            code = process.wait()
            raise SimulatorError(
                f"the simulator did not start: {last_line(log)}", code=2 if code == 2 else 1
            )
        line += byte


def last_line(log: BinaryIO) -> str:
    """The last line of a log, an open file, for an error message."""
    size = os.fstat(log.fileno()).st_size
    lines = (
        os.pread(log.fileno(), LAST_BYTES, max(0, size - LAST_BYTES))
        .decode(errors="replace")
        .strip()
        .splitlines()
    )
    return lines[-1] if lines else "it said nothing"


def without_folders(text: str) -> str:
    """A text with "simulated card 0" in place of the name of a Network's socket. The socket is
    removed before a user reads the text.
    """
    return re.sub(rf"(sim:)?\S*/{PREFIX}\w+/card(\d+)\.sock(\.admin)?", r"simulated card \2", text)


def socket_uris(folder: Path, cards: int) -> list[str]:
    """URIs of the cards whose sockets are in a folder."""
    return [f"sim:{folder}/card{n}.sock" for n in range(cards)]


class Network:
    """Simulated cards in a `with` statement.

    network      : a name or file of dibber_cli.topology; None for a pair
    participants : time begins when so many have joined; None: one a card

    Attributes
    ----------
    uris  : of the cards
    stats : file to which the simulator writes its statistics when it ends
    """

    def __init__(
        self,
        profile: Profile,
        network: str | None = None,
        *,
        participants: int | None = None,
        seed: int = 1,
        options: Sequence[str] = (),
    ) -> None:
        text, cards = topology.text_of(network) if network else (None, 2)
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        self.directory = Path(self._folder.name)
        self.stats = self.directory / "stats.json"
        self.uris = socket_uris(self.directory, cards)
        if text is not None:
            (self.directory / TOPOLOGY).write_text(text, encoding="utf-8")
            options = [*options, "--topology", str(self.directory / TOPOLOGY)]
        self._log = open(self.directory / "log", "w+b")
        try:
            self.process = launch(
                command(
                    machine(profile, text),
                    self.directory,
                    participants=cards if participants is None else participants,
                    seed=seed,
                    options=[*options, "--stats", str(self.stats)],
                ),
                self._log,
                None,
            )
        except BaseException:
            self._log.close()
            self._folder.cleanup()
            raise

    def __enter__(self) -> Self:
        return self

    def stop(self) -> None:
        """End the simulator, which then writes its statistics. Raises SimulatorError if it had
        failed.
        """
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code:
            raise SimulatorError(f"the simulator ended with code {code}: {last_line(self._log)}")

    def check(self) -> None:
        """Raise SimulatorError if the simulator has ended."""
        if self.process.poll() is not None:
            raise SimulatorError(f"the simulator ended by itself: {last_line(self._log)}")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with signals.held():
            try:
                self.stop()
            except SimulatorError:
                # The caller's own error says more than the end of the simulator after it.
                if kind is None:
                    raise
            finally:
                _stdout(self.process).close()
                self._log.close()
                self._folder.cleanup()


class Pair(Network):
    """Two simulated cards and a cable."""

    def __init__(
        self, profile: Profile, *, participants: int = 2, seed: int = 1, options: Sequence[str] = ()
    ) -> None:
        super().__init__(profile, participants=participants, seed=seed, options=options)


# In the background --------------------------------------------------------------------------------


def running() -> int | None:
    """Process number of the simulator that start() left running, or None."""
    try:
        with paths.RunFolder() as folder:
            pid = int(folder.read("pid"))
        # proc(5): number (name) state …
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return pid if name.startswith("dibber-sim") and rest.split()[0] != "Z" else None


def start(
    profile: Profile,
    network: str | None = None,
    *,
    participants: int,
    seed: int,
    options: Sequence[str] = (),
) -> int:
    """Leave a simulator running in the background; returns its process number.

    network : a name or file of dibber_cli.topology; None for a pair
    """
    text, cards = topology.text_of(network) if network else (None, 2)
    if running():
        raise SimulatorError(
            f"a simulator is running already (process {running()})", "end it with 'dibber sim stop'"
        )
    with paths.RunFolder(create=True) as folder, folder.open("log", "w+b") as log:
        if text is not None:
            folder.write(TOPOLOGY, text.encode())
            options = [*options, "--topology", str(folder.path / TOPOLOGY)]
        process = launch(
            command(
                machine(profile, text),
                folder.path,
                participants=participants,
                seed=seed,
                options=options,
            ),
            log,
            folder.path / "log",
            outlives_us=True,
        )
        _stdout(process).close()
        folder.write("pid", f"{process.pid}\n".encode())
        folder.write("profile", f"{profile.name}\n".encode())
        folder.write("cards", f"{cards}\n".encode())
    return process.pid


def running_uris() -> list[str]:
    """URIs of the cards of the simulator that start() left running; of a pair when none runs."""
    try:
        with paths.RunFolder() as folder:
            cards = int(folder.read("cards"))
    except (FileNotFoundError, ValueError):
        cards = 2
    return socket_uris(paths.run_directory(), cards)


def running_profile() -> str:
    """The name of the profile that start() was given."""
    with paths.RunFolder() as folder:
        return folder.read("profile").decode(errors="replace").strip()


def clock_state() -> str:
    """State of the clock of the simulator in the background: "time goes on", "time stands: …", or
    "unknown".
    """
    with paths.RunFolder() as folder:
        return clock_state_at(Path(folder.path) / "card0.sock.admin")


def clock_state_at(path: str | Path) -> str:
    """Ask on the observers' socket `path` which program holds the clock (hw/sim/vfio/observers.h);
    "unknown" without an answer.
    """
    from dibber.interface.description import C

    HEADER, VERSION, VERSION_0_1 = struct.Struct("<HHIII"), 1, struct.pack("<HH", 0, 1)
    text = b""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(ANSWER_SECONDS)
            client.connect(str(path))
            with client.makefile("rb") as answers:
                for command, payload in ((VERSION, VERSION_0_1), (C.CLOCK_MESSAGE, b"")):
                    client.sendall(
                        HEADER.pack(command, command, HEADER.size + len(payload), 0, 0) + payload
                    )
                    _, _, size, flags, _ = HEADER.unpack(answers.read(HEADER.size))
                    text = answers.read(size - HEADER.size) if not flags & ERROR_FLAG else b""
    except (OSError, struct.error):
        return "unknown"
    return text.decode("ascii", "replace") or "unknown"


def stop() -> int:
    """End the simulator in the background; returns its process number. Raises SimulatorError if
    there is none.
    """
    pid = running()
    if pid is None:
        raise SimulatorError("no simulator is running")
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while running() == pid:
        if time.monotonic() > deadline:
            raise SimulatorError(
                f"process {pid} does not end", f"its log: {paths.run_directory() / 'log'}"
            )
        time.sleep(0.02)
    with paths.RunFolder() as folder:
        folder.unlink("pid")
    return pid
