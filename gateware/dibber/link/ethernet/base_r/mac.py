"""A MAC of 10 Gb/s on 64-bit XGMII, as `attach_mac` needs it."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import xgmii_layout
from dibber.link.ethernet.base_r.receiver import (PRIORITIES, FaultReader, FrameReader,
    LaneAligner)
from dibber.link.ethernet.base_r.sender import FrameSender

class EthernetMAC(LiteXModule):
    """Frames on one side, words of XGMII on the other; pause frames are obeyed.

        sink ─▶ sender ─▶ xgmii_tx
        source ◀─ reader ◀─ aligner ◀─ xgmii_rx ─▶ faults

    Pause frames also come out of the source, where they are frames of others. A pause of a priority
    does not stop the sender, because the MAC does not know what a frame's priority is. It is shown
    to the port, which begins no frame of this priority.

    Parameters
    ----------
    by_priority : frames of priority-based flow control are obeyed, too

    Attributes
    ----------
    sink     : Endpoint(frame_layout), in    see FrameSender
    source   : Endpoint(frame_layout), out   without backpressure
    xgmii_tx : Endpoint(xgmii_layout), out
    xgmii_rx : Endpoint(xgmii_layout), in    without backpressure
    address  : Signal(48), in    own address, byte 0 of the wire in bits 7:0
    signal   : Signal(), out     both ends receive
    underrun : Signal(), out     one cycle for each frame with a hole
    paused   : Signal(8), out    with `by_priority`: no frame of this priority may begin
    """
    def __init__(self, by_priority=False):
        self.sender  = sender  = FrameSender()
        self.aligner = aligner = LaneAligner()
        self.reader  = reader  = FrameReader(by_priority)
        self.faults  = faults  = FaultReader()
        self.xgmii_rx = stream.Endpoint(xgmii_layout())
        self.xgmii_tx = sender.source
        self.sink     = sender.sink
        self.source   = reader.source
        self.address  = reader.address
        self.signal   = Signal()
        self.underrun = sender.underrun

        # # #

        self.comb += [
            self.xgmii_rx.connect(aligner.sink, omit={"ready"}),
            self.xgmii_rx.connect(faults.sink, omit={"ready"}),
            aligner.source.connect(reader.sink, omit={"ready"}),
            sender.pauses.eq(reader.pauses),
            sender.quanta.eq(reader.quanta),
            sender.local_fault.eq(faults.local_fault),
            sender.remote_fault.eq(faults.remote_fault),
            self.signal.eq(~faults.local_fault & ~faults.remote_fault),
        ]
        if by_priority:
            self.paused = Signal(PRIORITIES)
            for n, quanta in enumerate(reader.priority_quanta):
                # IEEE 802.3-2018, 31B.2: a quantum is 512 bits, which are eight words.
                left = Signal(19, name=f"left{n}")
                self.comb += self.paused[n].eq(left != 0)
                self.sync += [
                    If(self.xgmii_tx.ready & (left != 0), left.eq(left - 1)),
                    If(reader.priority_pauses[n], left.eq(Cat(Constant(0, 3), quanta))),
                ]
