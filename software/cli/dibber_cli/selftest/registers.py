"""Items that need no control program: identity, PCIe, scratch register, the control program's
memory.
"""

# SPDX-License-Identifier: BSD-2-Clause

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Iterator

import libdibber
from dibber.interface.description import COUNTERS, FIRMWARE_HEADER, INTERFACE, MCP, C
from libdibber import DibberError
from libdibber.late import np

from dibber_cli.link import tester
from dibber_cli.link.status import fields
from dibber_cli.selftest.examinee import Examinee, Wrong

# Counters that must stay 0.
ERRORS = (
    "tlp_malformed",
    *(name.lower() for name, _ in COUNTERS if name.startswith("COMPLETION_")),
)

ENDPOINTS = tuple(2**n for n in range(1, C.ENDPOINTS.bit_length()))  # that a card may have

# Identity and PCIe --------------------------------------------------------------------------------


def identity(self: Examinee) -> str:
    """Open the card; libdibber checks magic and interface. The other values must be possible with
    this interface.
    """
    self.card = libdibber.Card(self.uri)
    info = self.card.info()
    self.clock_hz = info["clock_hz"]
    self.copies = bool(info["copies"])
    if tester.is_tester(info):
        self.card.close()
        self.card = None  # type: ignore[assignment]
        raise Wrong(f"a link tester: {tester.ADVICE}")
    geometry = fields("GEOMETRY", self.card.read_register("GEOMETRY"))
    wanted = {"slots": C.SLOTS, "regions": C.REGIONS, "nodes": C.NODES}
    endpoints = geometry.pop("endpoints")
    if geometry != wanted:
        raise Wrong(f"geometry is {geometry}, of this interface {wanted}")
    if endpoints not in ENDPOINTS:
        raise Wrong(f"{endpoints} endpoints: there are {', '.join(map(str, ENDPOINTS))}")
    if info["data_width"] not in (64, 128):
        raise Wrong(f"data path of {info['data_width']} bits: there are 64 and 128")
    if not 10e6 <= self.clock_hz <= 1e9:
        raise Wrong(f"a clock of {self.clock_hz} Hz cannot be")
    return (
        f"interface {INTERFACE.version_word >> 16}.{INTERFACE.version_word & 0xFFFF}, gateware "
        f"{info['build']:08x}, "
        f"{info['data_width']} bits at {self.clock_hz / 1e6:g} MHz"
    )


def pcie(self: Examinee) -> str:
    """The PHY's negotiated values must be legal: PCIe Base 3.0, 7.8.4, table 7-13."""
    status = fields("PCIE_STATUS", self.card.read_register("PCIE_STATUS"))
    for name, value in status.items():
        if value not in (128, 256, 512, 1024, 2048, 4096):
            raise Wrong(f"{name} of {value} bytes: PCIe knows 128 to 4096, powers of two")
    return f"maximum payload {status['max_payload']}, read request {status['max_request']} bytes"


def pcie_errors(self: Examinee) -> str:
    """At the end: no malformed TLP of the host, no unanswered read, no unexpected completion."""
    counted = self.card.info()["counters"]
    if wrong := [f"{name} {counted[name]}" for name in ERRORS if counted[name]]:
        raise Wrong(", ".join(wrong))
    return f"{', '.join(ERRORS)}: 0"


# Scratch ------------------------------------------------------------------------------------------


def words() -> list[int]:
    """Walking ones, walking zeros, checkerboards."""
    ones = [1 << n for n in range(32)]
    return [*ones, *(~one & 0xFFFFFFFF for one in ones), 0x55555555, 0xAAAAAAAA, 0xFFFFFFFF, 0]


def scratch(self: Examinee) -> str:
    """Every bit of a register alone. In between another register on the same bus is written."""
    before, nonce = self.card.read_register("SCRATCH"), self.card.read_register("LINK_NONCE")
    for word in words():
        self.card.write_register("SCRATCH", word)
        self.card.write_register("LINK_NONCE", ~word & 0xFFFF)
        found = self.card.read_register("SCRATCH")
        if found != word:
            raise Wrong(f"wrote {word:08x}, read {found:08x}: bits {found ^ word:08x} differ")
    self.card.write_register("SCRATCH", before)
    self.card.write_register("LINK_NONCE", nonce)
    return f"{len(words())} words: walking ones and zeros, checkerboards"


# SRAM ---------------------------------------------------------------------------------------------

READY = 0x7E570001  # published by the program of the test image


def _idle_program() -> list[int]:
    """RISC-V words that publish READY and then loop. They write no memory."""
    t0, t1 = 5, 6
    offset = MCP["IDENTITY"].offset
    # lui  t0, bank mcp
    return [
        C.MCP_REGISTER_BASE & 0xFFFFF000 | t0 << 7 | 0x37,
        # lui  t1, READY
        READY & 0xFFFFF000 | t1 << 7 | 0x37,
        # addi t1, t1, READY
        (READY & 0xFFF) << 20 | t1 << 15 | t1 << 7 | 0x13,
        # sw t1, IDENTITY(t0)
        offset >> 5 << 25 | t1 << 20 | t0 << 15 | 2 << 12 | (offset & 31) << 7 | 0x23,
        0x6F,
    ]  # j    .


def patterns(sram_bytes: int) -> Iterator[np.ndarray]:
    """Two contents of an SRAM of so many bytes: all words differ, and each bit is once 0 and once
    1.
    """
    place = np.arange(sram_bytes // 4, dtype=np.uint32)
    for mask in (0, 0xFFFFFFFF):
        content = place * np.uint32(2654435761) ^ np.uint32(mask)
        content[: len(_idle_program())] = _idle_program()
        yield content


def image(content: np.ndarray, sram_bytes: int) -> bytes:
    """A control program image for a card with so much SRAM, as firmware/image.py makes them."""
    body = content.astype("<u4").tobytes()
    header = bytearray(FIRMWARE_HEADER.size)
    for name, value in (
        ("magic", C.FIRMWARE_MAGIC),
        ("version", INTERFACE.version_word),
        ("hash", INTERFACE.hash),
        ("bytes", len(body)),
        ("identity", READY),
        ("sram", sram_bytes),
    ):
        struct.pack_into("<I", header, FIRMWARE_HEADER[name].offset, value)
    crc = zlib.crc32(bytes(header[FIRMWARE_HEADER["entry"].offset :]) + body)
    struct.pack_into("<I", header, FIRMWARE_HEADER["crc"].offset, crc)
    return bytes(header) + body


def sram(self: Examinee) -> str:
    """Fill the SRAM through the firmware window, start a program that leaves it alone, and read all
    of it back.
    """
    size, limit = self.card.sram_bytes, self.card.info()["image_limit"]
    for content in patterns(size):
        # With the processor in reset: first what lies behind the largest image, then an image of
        # that size.
        self.card.write_register("MCP_CONTROL", 0)
        self.card.write_firmware(limit, content[limit // 4 :].astype("<u4").tobytes())
        # A file without a name: nothing is left of it, however this process ends.
        with tempfile.TemporaryFile() as file:
            file.write(image(content[: limit // 4], size))
            file.flush()
            try:
                self.card.load_firmware(f"/proc/self/fd/{file.fileno()}")
                failed = None
            except DibberError as error:
                failed = error
        found = np.frombuffer(self.card.read_firmware(0, size), dtype="<u4")
        wrong = np.flatnonzero(found != content)
        if len(wrong):
            first = int(wrong[0])
            raise Wrong(
                f"{len(wrong)} of {len(content)} words wrong, the first at {4 * first:#06x}: "
                f"wrote {content[first]:08x}, read {found[first]:08x}; "
                f"bits {int(np.bitwise_or.reduce(found[wrong] ^ content[wrong])):08x} differ"
            )
        if failed:
            raise failed
    return f"{size >> 10} KiB, every bit 0 and 1, all addresses apart"
