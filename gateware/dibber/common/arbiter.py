"""An arbiter whose grant is a register."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Arbiter ---------------------------------------------------------------------------------------------

class Arbiter(LiteXModule):
    """Whose turn it is, among many: a register with a bit for each, and each cycle the next one who
    asks.

    Parameters
    ----------
    clients   : how many
    favourite : the one whose turn it is when nobody asks
    late      : clients of whom one at most asks in a cycle, and it late in that: what the others
                ask for is compared before

    Attributes
    ----------
    request : Signal(clients), in
    grant   : Signal(clients), out   one bit is set: of the one behind the last who asked in the
              cycle before, or else of the last, if he did

    A choice by the number of the last would have as many levels as there are clients; here those
    behind the last are a register, too.
    """
    def __init__(self, clients, favourite=0, late=()):
        self.request = request = Signal(clients)
        self.grant   = grant   = Signal(clients, reset=1)

        # # #

        # those behind the last; who comes round behind them is below
        above     = Signal(clients, reset=2**clients - 2)
        following = Signal(clients)
        behind    = Signal(clients)
        others    = Signal(clients)  # those who ask, but for the late ones

        def first(sides):
            """The first of those who ask, and all behind it."""
            found, asked = Constant(0), []
            for n in range(clients):
                asked.append(found)
                found = found | (others[n] & sides[n])
            return [following[n].eq(others[n] & sides[n] & ~asked[n]) for n in range(clients)] + [behind.eq(Cat(*asked))]

        below = Signal(clients)
        self.comb += [
            others.eq(request & sum(1 << n for n in range(clients) if n not in late)),
            below.eq(~(above | grant)),
            If((others & above) != 0,
                *first(above)
            ).Elif((others & below) != 0,
                *first(below)
            ).Elif((others & grant) != 0,
                following.eq(grant),
                behind.eq(above)
            ).Else(
                following.eq(1 << favourite),
                behind.eq(2**clients - (2 << favourite))
            )
        ]

        # A late one: whether it would be before all of them is known when it asks.
        for n in late:
            before = Signal(name=f"before{n}")
            self.comb += [
                before.eq(Mux(above[n],
                    (others & above & (2**n - 1)) == 0,
                    ((others & above) == 0) & ((others & below & Mux(grant[n], 2**clients - 1, 2**n - 1)) == 0))),
                If(request[n] & before,
                    following.eq(1 << n),
                    behind.eq(2**clients - (2 << n)),
                ),
            ]
        self.sync += [
            grant.eq(following),
            above.eq(behind),
        ]
