"""A root complex on the card, which replaces the PCIe PHY on boards without PCIe."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from litepcie.common import get_bar_mask, phy_layout

from dibber.bridge.bridge_registers import BridgeRegisters
from dibber.bridge.requester import BusRequester, RootTransmitter
from dibber.host.bar import BARDecoder
from dibber.host.receiver import TLPReceiver
from dibber.interface import C
from dibber.common.sram import SharedSRAM

# Addresses ----------------------------------------------------------------------------------------

# Addresses are the same on both sides: for a program at the bus and for the card.
BAR_BASE    = 0x00000000  # BAR 0, C.BAR0_SIZE bytes
MEMORY_BASE = C.BRIDGED_MEMORY
SPACE       = 0x80000000  # address bits above are not decoded
BANK_BYTES  = 4096        # at BRIDGE_BASE, only for the bus

MAX_PAYLOAD = 256  # bytes, as in most PCs
MAX_REQUEST = 512

# Root Complex -------------------------------------------------------------------------------------

class RootComplex(LiteXModule):
    """The host's end of PCIe, with memory on the card and a bus in place of a processor.

    To the core this is a LitePCIe PHY. It takes the TLPs that the card sends: writes go to the
    memory, byte-exact, and reads are answered from it. A program at the bus accesses BAR 0 and the
    memory, one word at a time. An access to BAR 0 is a TLP to the card and, for a load, its
    completion. So it is a complete host for the library: doorbells, firmware window, and shared
    memory for queues and data. There are no other interrupts than MSI-X: a vector whose address is
    in the memory is written there.

    A program at a UART is slow, so it works on a copy of the memory. It reads where the card has
    written (CHANGED), and can stop the card's TLPs meanwhile (HOLD). The card answers loads of BAR
    0 by TLPs too, so they must wait until HOLD is cleared.

    It is built from the card's own host layer, with the directions exchanged: the same blocks
    parse, make, check and count TLPs at both ends. Accesses outside the memory are refused: a write
    is dropped, and a read gets Unsupported Request.

    Parameters
    ----------
    data_width   : 64 or 128
    memory_bytes : a power of two, at least 4 KiB

    Attributes
    ----------
    sink, source : Endpoint(phy_layout)          as in LitePCIe's PHYs
    id, bar0_size, bar0_mask, max_payload_size, max_request_size, extended_tags : as the core needs
    them
    bus          : wishbone.Interface, in        32 bits, word addresses; in BAR 0 only whole words.
                   No answer outside of BAR 0, memory and the bank `bridge`
    bad_frame    : Signal, in                    counted in the bank `bridge`
    refused      : Signal, out                   one pulse for each TLP of the card that is refused

    Cycles: a load from the memory 2, a store 1. A read of one line is answered after 15; longer
    ones take 39 for each 128 bytes at 64 bits, 22 at 128.
    """
    endianness    = "little"
    qword_aligned = False

    def __init__(self, data_width, memory_bytes):
        self.data_width       = data_width
        self.sink             = stream.Endpoint(phy_layout(data_width))
        self.source           = stream.Endpoint(phy_layout(data_width))
        self.id               = Signal(16, reset=0x0100)  # bus 1, device 0: behind the root port
        self.bar0_size        = C.BAR0_SIZE
        self.bar0_mask        = get_bar_mask(C.BAR0_SIZE)
        self.max_payload_size = Signal(16, reset=MAX_PAYLOAD)
        self.max_request_size = Signal(16, reset=MAX_REQUEST)
        self.extended_tags    = Signal(reset=1)
        self.bus              = bus = wishbone.Interface(data_width=32, adr_width=30)
        self.bad_frame        = Signal()
        self.refused          = Signal()

        windows          = {"memory": (0, memory_bytes)}
        self.receiver    = receiver    = TLPReceiver(data_width, self.endianness,
            bar_size = memory_bytes,
            bar_base = MEMORY_BASE,
            space    = SPACE,
            windows  = list(windows.values()))
        self.decoder     = decoder     = BARDecoder(data_width, memory_bytes, windows)
        self.memory      = memory      = SharedSRAM(memory_bytes, data_width)
        self.requester   = requester   = BusRequester(data_width)
        self.transmitter = transmitter = RootTransmitter(data_width, self.endianness)
        self.registers   = registers   = BridgeRegisters(memory_bytes)

        # # #

        port = decoder.ports["memory"]
        self.comb += [
            self.sink.connect(receiver.sink, omit={"valid", "ready"}),
            receiver.sink.valid.eq(self.sink.valid & ~registers.hold),
            self.sink.ready.eq(receiver.sink.ready & ~registers.hold),
            registers.changed.eq(port.we),
            registers.chunk.eq(
                port.adr[log2_int(memory_bytes//C.BRIDGED_CHUNKS//(data_width//8)):]),
            registers.bad.eq(self.bad_frame),
            receiver.writes.connect(decoder.writes),
            receiver.requests.connect(decoder.requests),
            receiver.completions.connect(
                requester.completions, omit={"requester", "modified", "flaw"}),
            *[
                getattr(memory.port, name).eq(getattr(port, name))
                for name in ["adr", "dat_w", "be", "we", "re"]],
            port.dat_r.eq(memory.port.dat_r),
            decoder.replies.connect(transmitter.replies),
            requester.source.connect(transmitter.requests),
            requester.marked.eq(transmitter.marked),
            transmitter.source.connect(self.source),
            self.refused.eq(receiver.unsupported | receiver.malformed),
        ]
        self.decode = wishbone.Decoder(bus, [
            (lambda adr: adr[log2_int(C.BAR0_SIZE//4):] == BAR_BASE//C.BAR0_SIZE, requester.bus),
            (lambda adr: adr[log2_int(memory_bytes//4):] == MEMORY_BASE//memory_bytes, memory.dbus),
            (lambda adr: adr[log2_int(BANK_BYTES//4):] == C.BRIDGE_BASE//BANK_BYTES, registers.bus),
        ])
