# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""The checks that every packet's header must pass before anything of it is believed."""

from migen import *

from litex.gen import *

from dibber.interface.description import C
from dibber.packet.crc import CRC32C
from dibber.packet.header import NOTICE, flag, header_fields, position_after

class HeaderChecker(LiteXModule):
    """Watch a channel's words, keep each packet's header, and judge it at its CRC.

    It drives nothing of the stream. A word without `first` where a packet should begin is the rest
    of one whose beginning was lost to a reset, and is passed over.

    Parameters
    ----------
    word     : Endpoint(word_layout), watched
    extended : whether the headers of this channel may have an extension

    Attributes
    ----------
    node_id   : Signal(16), in
    malformed : Signal(), in   the receiver's opinion of `fields`: they contradict themselves
    fields    : dict of header fields, valid with `at_crc` and until the next packet
    extension : dict position -> Signal(32), likewise; positions as in header.py
    at_crc    : Signal(), out  the word in the stream is the header's CRC
    good      : Signal(), out  and it is being taken, and header and node are right; then the packet
                               goes on exactly if its length is not 0
    header_crc: Signal(32), out  CRC over header and extension
    inside    : Signal(), out  the stream is behind the header
    crc_error, truncated, wrong_node : Signal(), out  one cycle: why the packet is not good
    """
    def __init__(self, word, extended):
        self.node_id    = Signal(16)
        self.malformed  = Signal()
        self.at_crc     = Signal()
        self.good       = Signal()
        self.header_crc = Signal(32)
        self.inside     = Signal()
        self.crc_error  = Signal()
        self.truncated  = Signal()
        self.wrong_node = Signal()

        # # #

        words          = [Signal(32, name=f"header{n}") for n in range(C.HEADER_WORDS)]
        self.fields    = fields = header_fields(words)
        self.extension = {}
        if extended:
            self.extension = {p: Signal(32, name=f"extension{p}") for p in range(C.HEADER_WORDS, NOTICE + 3)}

        # Where the header ends.
        position = Signal(max=NOTICE + 3)
        levels, notice = Signal(2), Signal()
        follow, ends, walk = position_after(position, levels, notice)
        if extended:
            self.comb += [
                levels.eq(fields["levels"][:2]),
                notice.eq(flag(fields["flags"], "NOTICE")),
            ]
        taken   = Signal()
        begins  = Signal()
        header  = Signal()  # a header word or its CRC is being taken
        self.crc = crc = CRC32C()
        self.comb += [
            walk,
            taken.eq(word.valid & word.ready),
            begins.eq((position == 0) & ~self.at_crc),
            header.eq(taken & ~self.inside & (word.first | ~begins)),
            crc.word.eq(word.data),
            crc.seed.eq(0xffffffff),
            crc.step.eq(header),
            crc.load.eq(taken & (word.last | self.at_crc)),
            self.header_crc.eq(crc.value),
        ]
        self.sync += [
            If(header & ~self.at_crc,
                Case(position, {p: register.eq(word.data) for p, register in
                                [*enumerate(words), *self.extension.items()]}),
                position.eq(follow),
                If(ends, position.eq(0), self.at_crc.eq(1)),
            ),
            If(header & self.at_crc,
                self.at_crc.eq(0),
                self.inside.eq(1),
            ),
            If(taken & word.last,
                position.eq(0),
                self.at_crc.eq(0),
                self.inside.eq(0),
            ),
        ]

        # Verdict.
        judge      = Signal()
        cut        = Signal()
        bad_crc    = Signal()
        not_for_us = Signal()
        self.comb += [
            judge.eq(header & self.at_crc),
            # A packet that goes on behind its header must have payload, and one with payload must go on.
            cut.eq(word.last & (word.bad | (fields["length"] != 0)) | (~word.last & (fields["length"] == 0))),
            bad_crc.eq(word.data != crc.value),
            not_for_us.eq((fields["target"] != self.node_id) | (fields["source"] >= C.NODES)),
            self.crc_error.eq(judge & bad_crc),
            self.wrong_node.eq(judge & ~bad_crc & not_for_us),
            self.truncated.eq((judge & ~bad_crc & ~not_for_us & (cut | self.malformed))
                | (header & ~self.at_crc & word.last)),
            self.good.eq(judge & ~bad_crc & ~not_for_us & ~cut & ~self.malformed),
        ]
