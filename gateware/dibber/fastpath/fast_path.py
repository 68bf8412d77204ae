"""The fast path as one block: commands and requests that hardware completes."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from dibber.common.places import BlockFIFO
from dibber.fastpath.answers import Answers
from dibber.fastpath.asks import ExpectWriter
from dibber.fastpath.contexts import Contexts
from dibber.fastpath.fast_commands import FastCommands
from dibber.fastpath.orders import OrderQueue
from dibber.fastpath.replies import Replies
from dibber.fastpath.requests import Requests
from dibber.interface.description import C
from dibber.layouts import express_layout, job_layout

class FastPath(LiteXModule):
    """Executes what needs no control program: puts, gets and atomics of this card's endpoints, and
    the requests of other nodes.

    A command that `commands` finds without a fault becomes an order of `contexts`, which gives it
    the next PSN of its flow and completes it when it is acknowledged. What is not taken goes on to
    the control program as it came.

    `orders` and `arrivals` pass through here, because the control program and the fast path share
    them. The whole block is in reset while the control program is halted.

    Parameters
    ----------
    data_width : bits of a line of the slots
    endpoints  : of the card

    Attributes
    ----------
    commands  : FastCommands    reads the slot of an offered command and judges it
    contexts  : Contexts        the flows: takes puts, gives them their PSNs, completes them
    answers   : Answers         ends gets and atomics by their answers
    requests  : Requests        offers the gets and atomics of other nodes
    replies   : Replies         sends what atomics of other nodes found
    expects   : ExpectWriter    the one way into the table of gets under way
    expresses : OrderQueue      orders of lane EXPRESS, of the control program too
    jobs      : OrderQueue      orders of lane BULK, of the control program too
    fast      : Signal(endpoints), in   a bit for each endpoint whose commands may be taken
    enable    : Record, in      opcodes that may be taken: `put_inline`, `put`, `get`, `atomic`
    counters  : dict of pulses by their names in the interface description
    """
    def __init__(self, data_width, endpoints=C.ENDPOINTS):
        self.commands  = commands  = FastCommands(data_width, endpoints)
        self.contexts  = contexts  = Contexts(endpoints)
        self.answers   = answers   = Answers(data_width)
        self.requests  = requests  = Requests()
        self.replies   = replies   = Replies()
        self.expects   = expects   = ExpectWriter()
        self.expresses = expresses = OrderQueue(express_layout(), program=2*endpoints, fast=2*endpoints)
        self.jobs      = jobs      = OrderQueue(job_layout(), program=8, fast=8, fifo=BlockFIFO)

        self.fast     = Signal(endpoints)
        self.enable   = commands.enable
        self.counters = contexts.counters

        # # #

        # Commands and replies to contexts.
        self.comb += [
            commands.fast.eq(self.fast),
            contexts.fast.eq(self.fast),
            commands.put.connect(replies.commands),
            replies.put.connect(contexts.put),
            replies.enable.eq(self.enable.atomic),
            replies.taken.eq(contexts.taken),
            commands.taken.eq(contexts.taken),
            commands.missed.eq(contexts.missed),
            commands.full.eq(contexts.full),
            contexts.coming.eq(commands.coming),
            replies.coming.eq(commands.coming),
        ]

        # Gets of other nodes are judged as commands are.
        self.comb += [
            requests.offer.connect(commands.request),
            requests.taken.eq(commands.answered),
        ]

        # Gets under way, and what ends them.
        self.comb += [
            commands.expect.connect(expects.enter),
            expects.forget.eq(contexts.forget),
            answers.answer.connect(contexts.answer),
            answers.mine.eq(contexts.mine),
            *[getattr(answers.enable, name).eq(getattr(self.enable, name)) for name in ["get", "atomic"]],
        ]

        # Orders.
        self.comb += [
            contexts.express.connect(expresses.fast),
            contexts.job.connect(jobs.fast),
        ]
