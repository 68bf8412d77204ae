"""The blocks of the core that are measured alone, each as a Verilog module.

    python hw/synthesis/blocks.py NAME DATA_WIDTH FOLDER

writes the module into the folder and prints the names of its files, as JSON: sources, memory
contents. The names that signals get depend on what was generated before in the same process, so
each has its own.
"""

# SPDX-License-Identifier: BSD-2-Clause

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "gateware")]

from migen import *
from migen.fhdl.tools import list_signals, list_special_ios, list_targets

from litex.gen import *
from litex.gen.fhdl.verilog import convert

from boards.sim import SimPCIePHY, SourceList
from boards.sim_switch import SimSwitch

from dibber.common.elaboration import elaborate_quickly
from dibber.bridge.root import RootComplex
from dibber.deposit.atomic import AtomicUnit
from dibber.deposit.express_lander import ExpressLander
from dibber.deposit.finder import PageFinder
from dibber.deposit.gather import Gather
from dibber.deposit.reach import FAR
from dibber.deposit.regions import RegionTable
from dibber.deposit.scatter import ScatterEngine
from dibber.deposit.send_engine import SendEngine
from dibber.deposit.walker import Walker
from dibber.endpoint.slots import Slots
from dibber.endpoint.turns import CommandTurns
from dibber.fabric.ring.pair import RingPairPort
from dibber.fabric.ring.port import RingPort
from dibber.fastpath.contexts import Contexts
from dibber.fastpath.fast_commands import FastCommands
from dibber.host.flash import FlashPort, flash_pads
from dibber.host.interface import HostInterface
from dibber.interface.description import C, CHANNEL, COUNTERS
from dibber.layouts import shown_layout
from dibber.link.ethernet.base_r.station import BaseRStation
from dibber.link.ethernet.port import EthernetPort
from dibber.link.ethernet.star import EthernetStar
from dibber.link.port import LinkPort
from dibber.mcp.control_registers import ControlRegisters
from dibber.mcp.host_registers import HostRegisters
from dibber.mcp.processor import SRAM_BYTES, Processor
from dibber.packet.acknowledge import Acknowledger
from dibber.packet.packet_receiver import PacketReceiver
from dibber.packet.packet_transmitter import PacketTransmitter
from dibber.window.window import RemoteWindow

CLOCK_HZ = 125e6  # what the identity block shows
SWITCH_PORTS = 4

# Blocks -------------------------------------------------------------------------------------------


def registers(platform, data_width):
    """The control program's registers; what they show of their neighbours comes from pins."""
    return ControlRegisters(Record(shown_layout()), Signal(64))


def identity(platform, data_width):
    return HostRegisters(
        data_width, CLOCK_HZ, {name: Signal(name=f"pulse_{name.lower()}") for name, _ in COUNTERS}
    )


# name: function of a platform and the data width
BLOCKS = {
    "walker": lambda platform, dw: Walker(),
    "gather": lambda platform, dw: Gather(dw, tags=FAR.gather.tags),
    "send": lambda platform, dw: SendEngine(dw, tags=FAR.gather.tags),
    "scatter": lambda platform, dw: ScatterEngine(dw),
    "finder": lambda platform, dw: PageFinder(dw, ports=4),
    "lander": lambda platform, dw: ExpressLander(dw),
    "atomic": lambda platform, dw: AtomicUnit(dw),
    "transmitter": lambda platform, dw: PacketTransmitter(dw),
    "transmitter_wide": lambda platform, dw: PacketTransmitter(dw, bulk_width=64),
    "receiver": lambda platform, dw: PacketReceiver(dw),
    "receiver_wide": lambda platform, dw: PacketReceiver(dw, bulk_width=64),
    "acknowledger": lambda platform, dw: Acknowledger(),
    "link": lambda platform, dw: LinkPort(channels=4, sunk=(CHANNEL.CONTROL, CHANNEL.SPARE)),
    "ethernet": lambda platform, dw: EthernetPort(),
    "ethernet_wide": lambda platform, dw: EthernetPort(bulk_width=64),
    "ethernet_star": lambda platform, dw: EthernetStar(4),
    "base_r": lambda platform, dw: BaseRStation(),
    "ring": lambda platform, dw: RingPort(),
    "ring_pair": lambda platform, dw: RingPairPort(),
    "host": lambda platform, dw: HostInterface(SimPCIePHY(dw), dw, SRAM_BYTES),
    "held_host": lambda platform, dw: HostInterface(SimPCIePHY(dw), dw, SRAM_BYTES, hold_off=True),
    "slots": lambda platform, dw: Slots(dw, readers=7, writers=3, favourite=5),
    "regions": lambda platform, dw: RegionTable(C.REGIONS, ports=4),
    "turns": lambda platform, dw: CommandTurns(),
    "commands": lambda platform, dw: FastCommands(dw),
    "contexts": lambda platform, dw: Contexts(),
    "registers": registers,
    "identity": identity,
    "flash": lambda platform, dw: FlashPort(dw, CLOCK_HZ, flash_pads()),
    "processor": Processor,
    "switch": lambda platform, dw: SimSwitch(SWITCH_PORTS, CLOCK_HZ),
    "bridge": lambda platform, dw: RootComplex(dw, 64 * 1024),
    "window": lambda platform, dw: RemoteWindow(dw, C.ENDPOINTS - 1),
}

# Outputs that the core uses, of parts that a block shows as they are.
PARTS = {
    "transmitter": lambda block: [block.flows],
    "acknowledger": lambda block: block.lanes,
    "transmitter_wide": lambda block: [block.flows],
    "receiver": lambda block: block.lanes,
    "receiver_wide": lambda block: block.lanes,
}

# Verilog ------------------------------------------------------------------------------------------


def interface(value):
    """The signals of an attribute: a Signal, a Record, or a collection of such."""
    if isinstance(value, Signal):
        return {value}
    if isinstance(value, Record):
        return set(value.flatten())
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return set()
    return set().union(*map(interface, value))


def public(module):
    return set().union(
        *[interface(value) for name, value in vars(module).items() if not name.startswith("_")]
    )


def pins(fragment, shown):
    """The signals of a block that become ports: what it reads and does not drive, what it drives
    and shows.
    """
    driven = list_targets(fragment) | list_special_ios(fragment, False, True, True)
    used = list_signals(fragment) | list_special_ios(fragment, True, True, True)
    return (used - driven) | (shown & driven)


def generate(name, data_width, folder):
    """Write block `name` into `folder` as Verilog module `name`; the names of its sources and of
    memory contents.
    """
    platform = SourceList()
    block = BLOCKS[name](platform, data_width)
    shown = [public(part) for part in [block, *PARTS.get(name, lambda block: [])(block)]]
    fragment = block.get_fragment()
    if hasattr(block, "ios"):
        # A whole design says itself what its pins are.
        ios = block.ios
    else:
        clock = ClockDomain("sys")
        fragment.clock_domains.append(clock)
        ios = pins(fragment, set().union(*shown)) | {clock.clk, clock.rst}
    output = convert(fragment, ios, name=name, regular_comb=False)
    # LiteX dates its output.
    text = "\n".join(
        line for line in output.main_source.splitlines() if not line.lstrip().startswith("//")
    )
    (folder / f"{name}.v").write_text(text + "\n")
    for file, contents in output.data_files.items():
        (folder / file).write_text(contents)
    for source in map(pathlib.Path, platform.sources):
        (folder / source.name).write_bytes(source.read_bytes())
    return [f"{name}.v", *[pathlib.Path(source).name for source in platform.sources]], sorted(
        output.data_files
    )


if __name__ == "__main__":
    elaborate_quickly()
    print(json.dumps(generate(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]))))
