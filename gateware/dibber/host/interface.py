"""The host side as one block: TLPs, BAR 0, MSI-X."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *


from dibber.host.aperture import ApertureSplit
from dibber.host.bar import BARDecoder, bar_windows
from dibber.host.master import BusMaster
from dibber.host.posts import PostWriter
from dibber.host.receiver import TLPReceiver
from dibber.host.transmitter import TLPTransmitter
from dibber.interface import C

# Host Interface -----------------------------------------------------------------------------------

class HostInterface(LiteXModule):
    """Everything between a LitePCIe PHY and the rest of the card. docs/design/host.md says what each
    sibling of it promises.

    Parameters
    ----------
    phy        : a LitePCIe PHY. Used are `sink`, `source`, `data_width`, `endianness`,
                 `qword_aligned`, `id`, `bar0_size`, `max_payload_size` and `max_request_size`.
                 Optional are `msix_enable` (Signal; without it only the mask bits hold interrupts
                 back), `bus_master` (Signal; while it is 0 no request leaves, see BusMaster) and
                 `quads` (True: it takes requests with headers of 4 DWs only)
    data_width : 64, 128 or 256, as the PHY's
    sram_bytes : size of the control program's SRAM, which is a window of BAR 0
    address_bits, hold_off : see PostWriter
    patience   : see BusMaster
    aperture   : bytes of BAR 2, the remote window; 0: there is none. The PHY then has `in_aperture`
                 (Signal), 1 while a TLP to BAR 2 is at `source`

    Attributes
    ----------
    writes      : Endpoint(write_layout), in         writes to host memory
    marked      : Signal, out                        the PHY took the last beat of a write with
                  `mark`
    reads       : Endpoint(read_layout), in          reads of host memory
    completions : Endpoint(raw_completion_layout), out   their answers; valid only, `ready` is
                  ignored
    posts       : Endpoint(post_layout), in          queue entries and interrupts
    open        : Record(vector_open_layout), in     a queue was opened with this vector
    halted      : Signal, in                         one cycle: the control program was halted;
                  raises the vectors of all open queues
    hold_off    : Record(hold_off_layout()), in      register HOLD_OFF is written; None without
                  hold-off
    ports       : dict name -> line_port(data_width): "host", "firmware", "endpoints"; "window" with
                  an aperture
    aperture    : ApertureSplit, with an aperture: its stores, loads and their answers
    counters    : dict NAME -> Signal, out           pulses; names as in description.COUNTERS
    max_payload : Signal(16), out                    largest write, in bytes
    max_request : Signal(16), out                    largest read, in bytes
    running     : Signal, in                         the control program runs
    enable, discard, lost : Signal, out              see BusMaster; `enable` is 1 if the PHY has no
                  `bus_master`
    id          : Signal(16), out                    requester ID of the reads
    extended_tags : Signal, out                      more than 32 reads may be in flight; None if
                  the PHY does not say it
    leaving     : Endpoint, out                      what goes to the host, for the counter BUSY_PCIE
    """
    def __init__(self, phy, data_width, sram_bytes, address_bits=64, patience=2**23, aperture=0, hold_off=False):
        assert phy.data_width == data_width
        assert not phy.qword_aligned
        assert phy.bar0_size == C.BAR0_SIZE
        windows = bar_windows(sram_bytes)
        if aperture:
            windows["window"] = (C.APERTURE_REGISTERS, 0x1000)
        self.receiver = receiver = TLPReceiver(data_width, phy.endianness,
            bar_size = phy.bar0_size,
            windows  = list(windows.values()),
            aperture = aperture)
        self.bar         = bar         = BARDecoder(data_width, phy.bar0_size, windows)
        self.msix        = msix        = PostWriter(data_width, address_bits, hold_off)
        self.transmitter = transmitter = TLPTransmitter(data_width, phy.endianness, getattr(phy, "quads", False))

        self.writes      = transmitter.writes
        self.marked      = transmitter.marked
        self.reads       = transmitter.reads
        self.completions = receiver.completions
        self.posts       = msix.sink
        self.open        = msix.open
        self.halted      = msix.halted
        self.hold_off    = msix.hold.set if hold_off else None
        self.ports       = {name: port for name, port in bar.ports.items() if name != "msix"}
        self.counters    = {
            "TLP_UNSUPPORTED" : receiver.unsupported,
            "TLP_MALFORMED"   : receiver.malformed,
            "POSTS"           : msix.posted,
            "INTERRUPTS"      : msix.interrupted,
            "REQUESTS_DROPPED": transmitter.dropped,
        }
        self.max_payload = phy.max_payload_size
        self.max_request = phy.max_request_size
        self.running     = Signal()
        self.enable      = Signal(reset=1)
        self.discard     = Signal()
        self.lost        = Signal()
        self.id          = phy.id
        self.extended_tags = getattr(phy, "extended_tags", None)
        self.leaving     = phy.sink

        # # #

        if aperture:
            self.aperture = split = ApertureSplit(data_width, receiver, bar)
            joined = [
                receiver.in_aperture.eq(phy.in_aperture),
                split.replies.connect(transmitter.replies),
            ]
        else:
            joined = [
                receiver.writes.connect(bar.writes),
                receiver.requests.connect(bar.requests),
                bar.replies.connect(transmitter.replies),
            ]
        self.comb += [
            phy.source.connect(receiver.sink),
            *joined,
            msix.port.adr.eq(bar.ports["msix"].adr),
            msix.port.dat_w.eq(bar.ports["msix"].dat_w),
            msix.port.be.eq(bar.ports["msix"].be),
            msix.port.we.eq(bar.ports["msix"].we),
            msix.port.re.eq(bar.ports["msix"].re),
            bar.ports["msix"].dat_r.eq(msix.port.dat_r),
            msix.source.connect(transmitter.posts),
            transmitter.source.connect(phy.sink),
            transmitter.id.eq(phy.id),
        ]
        if hasattr(phy, "bus_master"):
            self.master = master = BusMaster(patience)
            self.comb += [
                master.allowed.eq(phy.bus_master),
                master.running.eq(self.running),
                master.waits.eq(transmitter.waits),
                self.enable.eq(master.enable),
                self.discard.eq(master.discard),
                self.lost.eq(master.lost),
                transmitter.enable.eq(self.enable),
                transmitter.discard.eq(self.discard),
            ]
        # An MSI-X message is a request, too: its vector stays pending until requests may leave.
        self.comb += msix.enable.eq(self.enable & getattr(phy, "msix_enable", 1))
