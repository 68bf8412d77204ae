"""A MAC of 10 Gb/s on 64-bit XGMII, as `attach_mac` needs it."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import xgmii_layout
from dibber.link.ethernet.base_r.receiver import FaultReader, FrameReader, LaneAligner
from dibber.link.ethernet.base_r.sender import FrameSender

class EthernetMAC(LiteXModule):
    """Frames on one side, words of XGMII on the other; pause frames are obeyed.

        sink ─▶ sender ─▶ xgmii_tx
        source ◀─ reader ◀─ aligner ◀─ xgmii_rx ─▶ faults

    Pause frames also come out of the source, where they are frames of others.

    Attributes
    ----------
    sink     : Endpoint(frame_layout), in    see FrameSender
    source   : Endpoint(frame_layout), out   without backpressure
    xgmii_tx : Endpoint(xgmii_layout), out
    xgmii_rx : Endpoint(xgmii_layout), in    without backpressure
    address  : Signal(48), in    own address, byte 0 of the wire in bits 7:0
    signal   : Signal(), out     both ends receive
    underrun : Signal(), out     one cycle for each frame with a hole
    """
    def __init__(self):
        self.sender  = sender  = FrameSender()
        self.aligner = aligner = LaneAligner()
        self.reader  = reader  = FrameReader()
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
