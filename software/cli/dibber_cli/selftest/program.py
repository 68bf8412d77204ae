"""Items of one card with its control program: start, clock, queues in host memory, interrupts."""

# SPDX-License-Identifier: BSD-2-Clause

import select
import struct

from dibber.interface.description import COMMAND, FLAG, OPCODE, STATUS, C

from dibber_cli import paths
from dibber_cli.selftest.examinee import Examinee, Impossible, Wrong

NOPS = 150  # more than twice around a completion queue of 64
WAIT_NS = 50_000_000
CLOCK_NS = 200_000  # of simulated time over which the clock is measured …
CLOCK_REAL = 20_000_000  # … and on hardware, where reading the time is not exact …
CLOCK_LINE = 2_000_000_000  # … least of all through a UART
CLOCK_PART = 0.01  # its largest allowed error, as a part

# Start --------------------------------------------------------------------------------------------


def start(self: Examinee) -> str:
    """Load the real control program and open an endpoint of it."""
    self.card.set_node(self.node)
    self.card.load_firmware(str(paths.FIRMWARE))
    self.endpoint = self.card.endpoint(1)
    return f"identity {self.card.info()['mcp_identity']:08x} runs"


def clock(self: Examinee) -> str:
    """The card's cycles beside the time of the program."""
    self.needs_program()
    simulated = self.endpoint.clock().simulated
    cycles, begin = self.card.info()["cycles"], self.now()
    self.sleep(CLOCK_NS if simulated else CLOCK_LINE if self.copies else CLOCK_REAL)
    cycles, spent = self.card.info()["cycles"] - cycles, self.now() - begin
    found = cycles / spent * 1e9
    if abs(found - self.clock_hz) > CLOCK_PART * self.clock_hz:
        raise Wrong(f"{found / 1e6:.2f} MHz, its register says {self.clock_hz / 1e6:g}")
    return f"{found / 1e6:.2f} MHz"


# Queues -------------------------------------------------------------------------------------------


def nop(flags: int = 0) -> bytes:
    """A command that only completes."""
    slot = bytearray(C.SLOT_BYTES)
    struct.pack_into("<BB", slot, COMMAND["opcode"].offset, OPCODE.NOP, flags)
    return bytes(slot)


def queues(self: Examinee) -> str:
    """Commands through all slots, and completions around the queue in host memory: the card writes
    each by DMA.
    """
    self.needs_program()
    sent, got, cycles = 0, 0, 0
    while got < NOPS:
        while sent < NOPS and sent - got < C.SLOTS:
            self.endpoint.submit(nop(), tag=sent)
            sent += 1
        if not self.endpoint.wait(WAIT_NS):
            raise Wrong(
                f"{got} of {NOPS} commands completed, then nothing for {WAIT_NS // 1000000} ms"
            )
        for completion in self.endpoint.poll():
            if (
                completion.tag != got
                or completion.status != STATUS.OK
                or completion.cycles < cycles
            ):
                raise Wrong(
                    f"completion {got} has tag {completion.tag}, status "
                    f"{STATUS.name_of(completion.status)}, "
                    f"cycle {completion.cycles} after {cycles}"
                )
            got, cycles = got + 1, completion.cycles
    return f"{NOPS} commands, each with its completion in host memory, in order"


def interrupts(self: Examinee) -> str:
    """Each endpoint's vector alone: only the requested one is raised."""
    self.needs_program()
    if self.copies:
        raise Impossible("none comes through a UART")
    others = range(2, self.card.info()["endpoints"])
    endpoints = {1: self.endpoint, **{n: self.card.endpoint(n) for n in others}}
    try:
        files = {number: endpoint.event_fd() for number, endpoint in endpoints.items()}
        for number, endpoint in endpoints.items():
            endpoint.submit(nop(FLAG.SOLICIT))
            if not endpoint.wait(WAIT_NS):
                raise Wrong(f"endpoint {number}: its command does not complete")
            endpoint.poll()
            # The interrupt message follows the completion: wait for it.
            endpoint.wait(10_000)
            ready, _, _ = select.select(list(files.values()), [], [], 1)
            if (raised := [n for n, file in files.items() if file in ready]) != [number]:
                raise Wrong(
                    f"endpoint {number} asked for its interrupt, raised: {raised or 'none'}"
                )
            with open(files[number], "rb", buffering=0, closefd=False) as file:
                file.read(8)
    finally:
        for number in others:
            endpoints[number].close()
    return f"{len(endpoints)} vectors, each alone"
