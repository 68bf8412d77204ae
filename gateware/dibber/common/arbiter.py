"""An arbiter whose grant is a register."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

# Arbiter ------------------------------------------------------------------------------------------

class Arbiter(LiteXModule):
    """Round robin among many clients, with one grant a cycle. The grant is a one-hot register.

    A choice by the number of the last holder would have as many levels of logic as there are
    clients. Here the clients above the last holder are a register, too.

    Parameters
    ----------
    clients   : how many
    favourite : the client that holds the grant when no client requests
    late      : numbers of clients. At most one of these requests in a cycle, and its request
                arrives late in the cycle. The other requests are compared before it arrives

    Attributes
    ----------
    request : Signal(clients), in
    grant   : Signal(clients), out   one-hot: of those that requested in the cycle before, the first
              one behind the former holder, or that holder if it was alone
    """
    def __init__(self, clients, favourite=0, late=()):
        self.request = request = Signal(clients)
        self.grant   = grant   = Signal(clients, reset=1)

        # # #

        # Clients with a higher number than the holder come before those with a lower one.
        above      = Signal(clients, reset=2**clients - 2)
        below      = Signal(clients)
        next_grant = Signal(clients)
        next_above = Signal(clients)
        early      = Signal(clients)  # requests without the late ones

        def first_of(side):
            """Grant the first early request of `side`."""
            found, found_before = Constant(0), []
            for n in range(clients):
                found_before.append(found)
                found = found | (early[n] & side[n])
            return [
                *[next_grant[n].eq(early[n] & side[n] & ~found_before[n]) for n in range(clients)],
                next_above.eq(Cat(*found_before)),
            ]

        self.comb += [
            early.eq(request & sum(1 << n for n in range(clients) if n not in late)),
            below.eq(~(above | grant)),
            If((early & above) != 0,
                *first_of(above)
            ).Elif((early & below) != 0,
                *first_of(below)
            ).Elif((early & grant) != 0,
                next_grant.eq(grant),
                next_above.eq(above)
            ).Else(
                next_grant.eq(1 << favourite),
                next_above.eq(2**clients - (2 << favourite))
            )
        ]

        # Whether a late request would come before all early ones is known when it arrives.
        for n in late:
            leads = Signal(name=f"before{n}")
            self.comb += [
                leads.eq(Mux(above[n],
                    (early & above & (2**n - 1)) == 0,
                    ((early & above) == 0) & ((early & below & Mux(grant[n], 2**clients - 1, 2**n - 1)) == 0))),
                If(request[n] & leads,
                    next_grant.eq(1 << n),
                    next_above.eq(2**clients - (2 << n)),
                ),
            ]
        self.sync += [
            grant.eq(next_grant),
            above.eq(next_above),
        ]
