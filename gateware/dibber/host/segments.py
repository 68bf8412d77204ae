"""Segmented RAM between the engines' lines and Corundum's DMA engine.

A segmented RAM of S segments of W bits is S memories side by side. Byte A of it is in segment
(A // (W/8)) % S, at address A // (S*W/8) of this segment. Each segment has its own address and its
own handshake, so that the DMA engine can start at any byte and still move S*W/2 bits a cycle.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

# Address ------------------------------------------------------------------------------------------

class Shape:
    """How a line's number is split: lane in a segment's word, segment, address in the segment.

    Parameters
    ----------
    data_width    : bits of a line
    segments      : a power of two, at least 2
    segment_width : bits, a power of two, at least `data_width`
    size          : bytes, a power of two
    """
    def __init__(self, data_width, segments, segment_width, size):
        assert segment_width >= data_width and segments >= 2
        self.lanes = segment_width//data_width
        self.depth = size*8//(segments*segment_width)
        self.lines = size*8//data_width
        self.bits  = (log2_int(self.lanes), log2_int(segments), log2_int(self.depth))

    def split(self, line):
        """(lane, segment, address) of a line; a lane of a single one is the constant 0."""
        lane, segment, _ = self.bits
        return line[:lane] if lane else Constant(0), line[lane:lane + segment], line[lane + segment:sum(self.bits)]

# Departure RAM ------------------------------------------------------------------------------------

class DepartureRAM(LiteXModule):
    """Lines of the engines, which the DMA engine reads to write them to host memory.

    Parameters
    ----------
    data_width, segments, segment_width, size : see Shape

    Attributes
    ----------
    we, adr, dat : Signal, in                                 store `dat` as line `adr`
    commands     : list of Endpoint([("addr", …)]), in        of each segment
    responses    : list of Endpoint([("data", …)]), out       in the order of its commands

    Cycles: 1 from command to response, a word a cycle in each segment.
    """
    def __init__(self, data_width, segments, segment_width, size):
        shape = Shape(data_width, segments, segment_width, size)
        self.we        = Signal()
        self.adr       = Signal(max=shape.lines)
        self.dat       = Signal(data_width)
        self.commands  = [stream.Endpoint([("addr", shape.bits[2])]) for _ in range(segments)]
        self.responses = [stream.Endpoint([("data", segment_width)]) for _ in range(segments)]

        # # #

        lane, segment, address = shape.split(self.adr)
        for n, (command, response) in enumerate(zip(self.commands, self.responses)):
            memory = Memory(segment_width, shape.depth, name=f"departures{n}")
            store  = memory.get_port(write_capable=True, we_granularity=data_width if shape.lanes > 1 else 0)
            fetch  = memory.get_port(has_re=True, mode=READ_FIRST)
            self.specials += memory, store, fetch
            self.comb += [
                store.adr.eq(address),
                store.dat_w.eq(Replicate(self.dat, shape.lanes)),
                If(self.we & (segment == n), store.we.eq(1 << lane if shape.lanes > 1 else 1)),
                # The output register of the memory is the response: it keeps its word in a stall.
                command.ready.eq(~response.valid | response.ready),
                fetch.adr.eq(command.addr),
                fetch.re.eq(command.valid & command.ready),
                response.data.eq(fetch.dat_r),
            ]
            self.sync += If(command.ready, response.valid.eq(command.valid))

# Arrival RAM --------------------------------------------------------------------------------------

class ArrivalRAM(LiteXModule):
    """What the DMA engine has read from host memory, which leaves as lines.

    Parameters
    ----------
    data_width, segments, segment_width, size : see Shape

    Attributes
    ----------
    commands : list of Endpoint([("addr", …), ("data", …), ("be", …)]), in   of each segment; always
               ready
    done     : Signal(segments), out   one cycle for each command: its bytes are stored
    adr      : Signal, in              a line
    dat      : Signal, out             its content 2 cycles later

    Cycles: 1 from command to `done`, a word a cycle in each segment.
    """
    def __init__(self, data_width, segments, segment_width, size):
        shape = Shape(data_width, segments, segment_width, size)
        self.commands = [stream.Endpoint([("addr", shape.bits[2]), ("data", segment_width), ("be", segment_width//8)])
            for _ in range(segments)]
        self.done     = Signal(segments)
        self.adr      = Signal(max=shape.lines)
        self.dat      = Signal(data_width)

        # # #

        lane, segment, address = shape.split(self.adr)
        words = []
        for n, command in enumerate(self.commands):
            memory = Memory(segment_width, shape.depth, name=f"arrivals{n}")
            store  = memory.get_port(write_capable=True, we_granularity=8, mode=READ_FIRST)
            fetch  = memory.get_port(mode=READ_FIRST)
            self.specials += memory, store, fetch
            self.comb += [
                command.ready.eq(1),
                store.adr.eq(command.addr),
                store.dat_w.eq(command.data),
                If(command.valid, store.we.eq(command.be)),
                fetch.adr.eq(address),
            ]
            self.sync += self.done[n].eq(command.valid)
            words.append(fetch.dat_r)
        place = Signal(shape.bits[0] + shape.bits[1])  # lane and segment of the line in `words`
        self.sync += [
            place.eq(self.adr),
            Case(place, {
                n: self.dat.eq(words[n//shape.lanes][n%shape.lanes*data_width:(n%shape.lanes + 1)*data_width])
                for n in range(segments*shape.lanes)}),
        ]
