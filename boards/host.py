#!/usr/bin/env python3
# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""Speak to a card without PCIe over its UART.

    python boards/host.py /dev/ttyUSB1 info               what the card says of itself and of its link
    python boards/host.py /dev/ttyUSB1 load FILE.dibfw    load a control program and start it
    python boards/host.py /dev/ttyUSB1 read ADDRESS [WORDS]
    python boards/host.py /dev/ttyUSB1 write ADDRESS WORD...

The protocol is that of LiteX's UART bridge, and this uses LiteX's client. Addresses are those of the bus, as the
card itself sees them: BAR 0 at 0, on-card memory at 0x40000000 (dibber/bridge/root.py). Numbers as C has them.
"""

import argparse
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT/"gateware")]

from litex.tools.remote.comm_uart import CommUART

from boards.bridged import BAUDRATE
from dibber.bridge.root import BAR_BASE
from dibber.interface.description import C, FIRMWARE_HEADER, HOST, INTERFACE, LINK_STATE, MCP_STATE

BURST = 128  # words of one read; the bridge can count to 255

# Card ---------------------------------------------------------------------------------------------

class Card:
    """A card behind `comm`, LiteX's client. Errors end the program with what is wrong."""
    def __init__(self, comm):
        self.comm = comm

    def register(self, name):
        return self.comm.read(BAR_BASE + HOST[name].offset)

    def set_register(self, name, value):
        self.comm.write(BAR_BASE + HOST[name].offset, value)

    def check(self):
        """Is this a card, and does it speak this interface?"""
        magic = self.register("MAGIC")
        if magic != C.MAGIC:
            sys.exit(f"no card: MAGIC reads 0x{magic:08x}, not 0x{C.MAGIC:08x}")
        if self.register("INTERFACE_HASH") != INTERFACE.hash:
            sys.exit(f"the card has interface {self.register('INTERFACE_HASH'):08x}, this program {INTERFACE.hash:08x}")

    def info(self):
        """[(what, value)] to be printed."""
        version, link = self.register("INTERFACE_VERSION"), self.register("LINK_STATUS")
        return [
            ("interface", f"{version >> 16}.{version & 0xffff} ({INTERFACE.hash:08x})"),
            ("clock", f"{self.register('CLOCK_HZ')/1e6:g} MHz, {self.register('DATA_WIDTH')} bits"),
            ("program", f"{MCP_STATE.name_of(self.register('MCP_STATE'))}, identity 0x{self.register('MCP_IDENTITY'):08x}"),
            ("link", f"{LINK_STATE.name_of(link & 0xf)}, {'signal' if link & 0x10 else 'no signal'}"),
        ]

    def load(self, image):
        """Load a control program as libdibber does: stop, write, read back, start, wait for its identity."""
        names  = [member.name for member in FIRMWARE_HEADER.members]
        header = dict(zip(names, words(image[:4*names.index("build")])))
        body   = image[FIRMWARE_HEADER.size:]
        if header["magic"] != C.FIRMWARE_MAGIC or header["bytes"] != len(body) or header["crc"] != zlib.crc32(body):
            sys.exit("this is no control program, or it is damaged")
        if header["hash"] != INTERFACE.hash:
            sys.exit(f"it is for interface {header['hash']:08x}, the card has {INTERFACE.hash:08x}")
        self.set_register("MCP_CONTROL", 0)
        self.comm.write(BAR_BASE + C.FIRMWARE_BASE, words(body))
        if self.read(BAR_BASE + C.FIRMWARE_BASE, len(body)//4) != words(body):
            sys.exit("what was written does not read back")
        self.set_register("MCP_CONTROL", 1)
        start = self.register("CYCLES_LOW")
        while self.register("MCP_IDENTITY") != header["identity"]:
            if (self.register("CYCLES_LOW") - start) % 2**32 > 1_000_000:
                sys.exit(f"it does not start: {MCP_STATE.name_of(self.register('MCP_STATE'))}")
        return header["identity"]

    def read(self, address, count):
        return [word for at in range(0, count, BURST)
                for word in self.comm.read(address + 4*at, min(BURST, count - at))]


def words(data):
    return [int.from_bytes(data[n:n + 4], "little") for n in range(0, len(data), 4)]

# Command Line -------------------------------------------------------------------------------------

def main(arguments, connect=lambda port: CommUART(port, BAUDRATE)):
    number   = lambda text: int(text, 0)
    parser   = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", help="of the board's UART")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="what the card says of itself")
    load     = commands.add_parser("load", help="load a control program and start it")
    load.add_argument("file", type=pathlib.Path)
    read     = commands.add_parser("read", help="words at an address of the bus")
    read.add_argument("address", type=number)
    read.add_argument("count", type=number, nargs="?", default=1)
    write    = commands.add_parser("write", help="words to an address of the bus")
    write.add_argument("address", type=number)
    write.add_argument("words", type=number, nargs="+")
    args     = parser.parse_args(arguments)
    card     = Card(connect(args.port))
    card.check()
    if args.command == "info":
        for what, value in card.info():
            print(f"{what:10} {value}")
    if args.command == "load":
        print(f"control program 0x{card.load(args.file.read_bytes()):08x} runs")
    if args.command == "read":
        for n, word in enumerate(card.read(args.address, args.count)):
            print(f"{args.address + 4*n:08x}  {word:08x}")
    if args.command == "write":
        card.comm.write(args.address, args.words)


if __name__ == "__main__":
    main(sys.argv[1:])
