# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The endpoints' pages in BAR 0: command slots and doorbells."""

from functools import reduce
from math import log2
from operator import or_

from migen import *

from litex.gen import *

from dibber.interface.description import C, DOORBELL
from dibber.interface.registers import RegisterBank, line_port

# Endpoint Pages -----------------------------------------------------------------------------------

class EndpointPages(LiteXModule):
    """Divide the endpoints' window into the slot page and the doorbell page of each endpoint.

    A doorbell is an index, not an event: ringing it twice before anybody looked leaves the later
    value and loses nothing, so that a doorbell write needs no queue and never waits.

    Parameters
    ----------
    data_width : bits of a line
    endpoints  : how many, a power of two; the pages of others are nothing

    Attributes
    ----------
    port        : line_port(data_width)       the window, from the first endpoint's first page
    slots       : line_port(data_width), out  to `Slots.port`
    producer    : list of Signal(32), out     COMMAND_PRODUCER of each endpoint
    cq_consumer : list of Signal(32), out
    eq_consumer : list of Signal(32), out
    head        : list of Signal(32), in      shown as COMMAND_HEAD
    program     : Record, in                  the fields of PROGRAM
    doorbells   : the module that holds what was rung: to be reset when the control program is
    counters    : DOORBELLS

    Cycles: as line_port. What lies in neither page reads as 0 and ignores writes. PROGRAM is no part of `doorbells`: a
    program that has stopped is what it tells of.
    """
    def __init__(self, data_width, endpoints=C.ENDPOINTS):
        self.port        = port  = line_port(data_width)
        self.slots       = slots = line_port(data_width)
        self.producer    = []
        self.cq_consumer = []
        self.eq_consumer = []
        self.head        = [Signal(32, name=f"head{n}") for n in range(endpoints)]
        self.program     = Record([(f.name, f.bits) for f in DOORBELL["PROGRAM"].fields])
        self.doorbells   = LiteXModule()
        self.counters    = {"DOORBELLS": Signal()}

        # # #

        line          = int(log2(data_width//8))
        stride_bits   = int(log2(C.ENDPOINT_STRIDE)) - line
        page_bits     = int(log2(C.DOORBELL_OFFSET)) - line
        endpoint_bits = int(log2(endpoints))
        endpoint      = port.adr[stride_bits:stride_bits + endpoint_bits]
        beyond        = port.adr[stride_bits + endpoint_bits:] != 0
        in_page       = port.adr[:page_bits]
        doorbell      = Signal()
        assert C.ENDPOINT_STRIDE == 2*C.DOORBELL_OFFSET and C.SLOT_OFFSET == 0
        assert C.SLOTS*C.SLOT_BYTES == C.DOORBELL_OFFSET

        # Slots ------------------------------------------------------------------------------------

        self.comb += [
            doorbell.eq(port.adr[page_bits]),
            slots.adr.eq(Cat(in_page, endpoint)),
            slots.dat_w.eq(port.dat_w),
            slots.be.eq(port.be),
            slots.we.eq(port.we & ~doorbell & ~beyond),
            slots.re.eq(port.re & ~doorbell & ~beyond),
        ]

        # Doorbells --------------------------------------------------------------------------------

        rung, answers = [], []
        for n in range(endpoints):
            bank = RegisterBank(DOORBELL, data_width)
            hit  = Signal()
            self.doorbells.add_module(f"doorbell{n}", bank)
            self.comb += [
                hit.eq(doorbell & (endpoint == n) & ~beyond),
                bank.port.adr.eq(in_page),
                bank.port.dat_w.eq(port.dat_w),
                bank.port.be.eq(port.be),
                bank.port.we.eq(port.we & hit),
                bank.port.re.eq(port.re & hit),
                bank.status["COMMAND_HEAD"][0].eq(self.head[n]),
            ]
            self.producer    += bank.storage["COMMAND_PRODUCER"]
            self.cq_consumer += bank.storage["CQ_CONSUMER"]
            self.eq_consumer += bank.storage["EQ_CONSUMER"]
            rung             += bank.strobe["COMMAND_PRODUCER"]
            answers.append(bank.port.dat_r)
        self.sync += self.counters["DOORBELLS"].eq(reduce(or_, rung))

        # Answers ----------------------------------------------------------------------------------

        # PROGRAM has a line of its own, and one answer for all.
        assert DOORBELL["PROGRAM"].offset % (data_width//8) == 0 and DOORBELL["PROGRAM"] is DOORBELL.registers[-1]
        program = in_page == DOORBELL["PROGRAM"].offset//(data_width//8)

        # The memory or PROGRAM was read two cycles ago; a bank that was not shows 0.
        where = [Cat(program & doorbell & ~beyond, ~doorbell & ~beyond) & Replicate(port.re, 2)]
        for _ in range(2):
            later = Signal(2)
            self.sync += later.eq(where[-1])
            where.append(later)
        chosen = where[-1]
        self.comb += port.dat_r.eq(reduce(or_, [*answers, Mux(chosen[0], self.program.raw_bits(), 0), Mux(chosen[1], slots.dat_r, 0)]))
