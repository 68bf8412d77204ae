"""From a strided descriptor to a sequence of (address, length) pieces."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import FAULT_BITS, FAULT_LIST, FAULT_READ, list_base_layout, piece_layout, walk_layout

from dibber.deposit.skip import Skip, start_layout

# Nest ---------------------------------------------------------------------------------------------

def left_bits(address_bits):
    """Of the distance to the region's end: a bit more than a length has, for all that is more."""
    return min(address_bits, 33)

def run_layout(address_bits=64):
    """A block of the walk, or the part of it that belongs to the transfer.

    `joined`: it lies right behind the former one, of the same walk. `inside`: it starts within the
    bounds, and then `left` bytes are there up to `high`, or 2**32 and more: what is above bit 31 is
    bit 32. `fault`: of a walk that ends here, as in `piece_layout`. `room` is the distance to the
    next multiple of `max_piece`, `whole` the longest piece that may start here.
    """
    return stream.EndpointDescription(
        [("address", address_bits), ("length", 32), ("joined", 1), ("inside", 1), ("fault", FAULT_BITS), ("left", left_bits(address_bits)),
         ("room", 13), ("whole", 13)])


class Nest(LiteXModule):
    """The loop nest: one run a cycle, innermost level first, 2 cycles from sink to source.

    All three next addresses are added up at once and the counters pick one, so there is one adder
    and one multiplexer in the loop, and no multiplication. With a list the base of level 2 is
    given; the nest waits for it.

    Whether a run is taken depends on its splitting, and moves all of the state here. So it is heard
    a cycle later: the run that was not taken is held, and the next one waits behind it.

    Parameters
    ----------
    address_bits : that addresses and their sums have

    Attributes
    ----------
    sink      : Endpoint(start_layout), in
    base      : Endpoint(list_base_layout), in
    listed    : Signal(), out     a walk with a list is in here
    source    : Endpoint(run_layout), out    `last` on the last run of a walk
    max_piece : Signal(13), in    bytes, a power of two
    cancel    : Signal(), in      forget the walk that the run at `source` belongs to; with
                `source.ready`
    """
    def __init__(self, address_bits=64):
        self.sink      = sink   = stream.Endpoint(start_layout(address_bits))
        self.source    = source = stream.Endpoint(run_layout(address_bits))
        self.base      = following = stream.Endpoint(list_base_layout(address_bits))
        self.listed    = Signal()
        self.max_piece = Signal(13)
        self.cancel    = Signal()

        # # #

        valid  = Signal()
        state  = Record([(n, w) for n, w in start_layout(address_bits).payload_layout])
        joined = Signal()
        final  = Signal()  # length <= run, known before what it moves
        beyond = Signal(33)
        move   = Signal()
        forget = Signal()
        run    = stream.Endpoint(run_layout(address_bits))
        held   = stream.Endpoint(run_layout(address_bits))
        fields = [name for name, _ in run_layout(address_bits).payload_layout] + ["last"]
        waits  = Signal()  # for the list, before it shows the run that is before that
        go     = Signal()
        # `run` is not valid or moves on: not both of it and `held` are valid
        free   = Signal(reset=1)
        self.comb += [
            self.listed.eq(valid & state.listed),
            waits.eq(state.listed & state.spent & ~state.exhausted),
            following.ready.eq(valid & waits & free),
            # Behind the last run of a walk the nest may be in the next one already.
            forget.eq(self.cancel & ~(held.valid & held.last) & ~(run.valid & run.last)),
            source.valid.eq(held.valid | run.valid),
            *[getattr(source, n).eq(Mux(held.valid, getattr(held, n), getattr(run, n))) for n in fields],
            go.eq(valid & (~waits | following.valid)),
            move.eq(go & free),
            # The last run of a walk waits for no list: the entry of its last byte is the list's
            # last one.
            sink.ready.eq(~valid | (final & free & ~waits)),
            beyond.eq(state.run + state.block),
        ]

        # Next run: the innermost level that is not at its end steps, those below it start again.
        base = [state.base0, state.base1, state.base2]
        left = [state.left0, state.left1, state.left2]
        one  = [state.count0 == 1, state.count1 == 1]
        def begin(level, address):
            return [
                state.address.eq(address),
                *[base[i].eq(address) for i in range(level + 1)],
                *[left[i].eq(getattr(state, f"count{i}") - 1) for i in range(level)],
            ]
        def step(level):
            return [
                *begin(level, base[level] + getattr(state, f"stride{level}")),
                left[level].eq(left[level] - 1),
            ]
        self.sync += [
            If(move,
                state.length.eq(state.length - state.run),
                state.run.eq(state.block),
                final.eq(state.length <= beyond),
                joined.eq(0),
                If(left[0] != 0, *step(0), joined.eq(state.joinable),
                    state.spent.eq((left[0] == 1) & (left[1] == 0))
                ).Elif(left[1] != 0, *step(1),
                    state.spent.eq(one[0] & (left[1] == 1))
                ).Elif(waits, *begin(2, following.base),
                    state.spent.eq(one[0] & one[1]),
                    state.exhausted.eq(following.last),
                    If(following.error, state.over.eq(1), state.fault.eq(FAULT_READ)),
                    *([If(following.far, state.over.eq(1))] if address_bits < 64 else [])
                ).Elif(left[2] != 0, *step(2)
                ).Else(state.over.eq(1), If(state.listed, state.fault.eq(FAULT_LIST))),
                If(final, valid.eq(0))
            ),
            If(sink.valid & sink.ready,
                valid.eq(1),
                joined.eq(0),
                final.eq(sink.length <= sink.run),
                *[getattr(state, n).eq(getattr(sink, n)) for n, _ in start_layout(address_bits).payload_layout],
            ).Elif(forget,
                valid.eq(0)
            )
        ]

        # Run: what the splitter needs is worked out here, off its loop.
        mask  = Signal(12)
        at    = Signal(12)
        room  = Signal(13)
        ahead = Signal(address_bits)
        self.comb += [
            ahead.eq(state.high - state.address),
            mask.eq(self.max_piece - 1),
            at.eq(state.address[:12] & mask),
            room.eq(self.max_piece - at),
        ]
        self.sync += [
            If(~held.valid, *[getattr(held, n).eq(getattr(run, n)) for n in fields]),
            held.valid.eq(source.valid & ~source.ready),
            # Where a walk is forgotten `source` is ready, so that `held` is not valid then.
            free.eq(source.ready | (free & ~(go & source.valid))),
            If(free,
                run.valid.eq(go & ~forget),
            ).Elif(self.cancel & ~held.last,
                run.valid.eq(0)
            ),
            If(free,
                run.last.eq(final),
                run.address.eq(state.address),
                run.length.eq(Mux(final, state.length, state.run)),
                run.joined.eq(joined),
                run.fault.eq(state.fault),
                run.inside.eq(
                    ~state.over & (state.address >= state.low) & (state.address <= state.high)),
                run.left.eq(Cat(ahead[:32], ahead[32:] != 0) if address_bits > 32 else ahead),
                run.room.eq(room),
                # In the last stretch of a 4 KiB page a piece ends with the page. Elsewhere it has
                # no more DWs than max_piece, those that it begins and ends in included.
                run.whole.eq(Mux((state.address[:12] | mask) == 0xfff, room, self.max_piece - state.address[:2])),
            )
        ]

# Walker -------------------------------------------------------------------------------------------

class Walker(LiteXModule):
    """Turn a strided descriptor into pieces, one a cycle.

    The nest is walked innermost first. Without levels the walk is one run of `length` bytes from
    `address` + `skip`. Blocks of the innermost level that touch (stride 0 equals block) are merged
    into one run. A run leaves whole when its DWs are at most `max_piece` bytes and it does not
    cross 4 KiB; otherwise it is cut at multiples of `max_piece`, so that all pieces but its first
    are aligned.

    A piece that is not within [low, high) is replaced by an error piece, which ends the transfer;
    so is what follows the end of a nest that is shorter than `skip` + `length`. Addresses wrap at
    2**`address_bits`.

    The entries of an index list come from a `ListReader`. They are those of one walk after the
    other, all of which it takes or drops; the next walk's set-up waits for its first one.

    Parameters
    ----------
    address_bits : 64 or 32

    Attributes
    ----------
    sink      : Endpoint(walk_layout), in    length at least 1; counts and block of the levels used
                not 0
    source    : Endpoint(piece_layout), out  `last` on the final piece
    order     : Endpoint(list_order_layout), out   to `ListReader.sink`
    base      : Endpoint(list_base_layout), in     from `ListReader.source`
    drop      : Signal(), out                      to `ListReader.drop`
    max_piece : Signal(13), in   bytes, a power of two from 128 to 4096 (PCIe: maximum payload or
                read request)
    abort     : Signal(), in     end the transfer whose pieces the consumer is taking with an error
                piece

    Cycles: 1 a piece; 5 from sink to the first piece when skip is 0, else `Skip`'s set-up more. The
    set-up of a transfer runs while the former one is walked; with a list the last 5 cycles of it do
    not.
    """
    def __init__(self, address_bits=64):
        self.sink      = stream.Endpoint(walk_layout(address_bits))
        self.source    = source = stream.Endpoint(piece_layout(address_bits))
        self.max_piece = Signal(13)
        self.abort     = Signal()

        # # #

        self.skip = Skip(address_bits)
        self.nest = Nest(address_bits)
        run       = self.nest.source
        self.comb += [
            self.sink.connect(self.skip.sink),
            self.skip.source.connect(self.nest.sink),
            self.nest.max_piece.eq(self.max_piece),
        ]

        # List: whose base comes next. The set-up begins with one when all of the former walk are
        # gone.
        self.order = self.skip.order
        self.base  = base = stream.Endpoint(list_base_layout(address_bits))
        self.drop  = Signal()
        midst      = Signal()  # the base before was not its walk's last
        self.comb += [
            self.drop.eq(midst & ~self.skip.begun & ~self.nest.listed),
            base.connect(self.skip.base, omit={"valid", "ready"}),
            base.connect(self.nest.base, omit={"valid", "ready"}),
            self.skip.base.valid.eq(base.valid & ~midst),
            self.nest.base.valid.eq(base.valid & midst),
            base.ready.eq(Mux(midst, self.nest.base.ready | self.drop, self.skip.base.ready)),
        ]
        self.sync += If(base.valid & base.ready, midst.eq(~base.last))

        # Splitter: the rest of a run, which grows while joined runs follow.
        valid   = Signal()
        address = Signal(address_bits)
        rest    = Signal(32)
        # when less than there are, more than the transfer has
        left    = Signal(left_bits(address_bits))
        inside  = Signal()
        fault   = Signal(FAULT_BITS)
        final   = Signal()
        room    = Signal(13)
        whole   = Signal(13)

        closed  = Signal()  # nothing will be joined to this run any more
        split   = Signal()
        beyond  = Signal()
        abort   = Signal()
        error   = Signal()
        free    = Signal()
        emit    = Signal()
        leave   = Signal()
        drop    = Signal()  # an error piece has just left: so goes the rest of its walk
        cancel  = Signal()
        absorb  = Signal()
        load    = Signal()
        self.comb += [
            closed.eq(final | (run.valid & ~run.joined)),
            split.eq(rest > whole),
            # Side by side: neither comparison waits for the other.
            beyond.eq(Mux(split, room > left, rest > left)),
            # Once a last piece waits at the source this stage is in the next transfer.
            abort.eq(self.abort & ~(source.valid & source.last)),
            error.eq(~inside | beyond | abort),
            free.eq(~source.valid | source.ready),
            emit.eq(valid & ~drop & free & (split | closed | abort)),
            leave.eq(emit & (~split | error)),
            # `error` is late: a run that is taken in its cycle may be of the walk that ends. If it
            # was the walk's last one, `final` tells, and the nest is in the next walk.
            cancel.eq(drop & ~final),
            absorb.eq(run.valid & run.joined & ~drop),
            # A run that is not joined closes the one before it: that leaves without being told to,
            # and waits for nobody's abort.
            load.eq(run.valid & ~run.joined & ~drop & (~valid | (free & ~split))),
            self.nest.cancel.eq(cancel),
            run.ready.eq(absorb | load | cancel),
        ]
        self.sync += [
            drop.eq(emit & error & ~final),
            If(leave | drop, valid.eq(0)),
            If(valid & free & split,
                # The next multiple of max_piece; pieces are aligned from there on.
                address.eq((address | (self.max_piece - 1)) + 1),
                left.eq(left - room),
                room.eq(self.max_piece),
                whole.eq(self.max_piece),
            ),
            rest.eq(Mux(valid & free & split, rest - room, rest) + Mux(absorb, run.length, 0)),
            If(absorb, final.eq(run.last)),
            If(load,
                valid.eq(1),
                address.eq(run.address),
                rest.eq(run.length),
                left.eq(run.left),
                inside.eq(run.inside),
                fault.eq(run.fault),
                final.eq(run.last),
                room.eq(run.room),
                whole.eq(run.whole),
            ),
        ]

        # Piece.
        self.sync += If(free,
            source.valid.eq(emit),
            source.address.eq(address),
            source.length.eq(Mux(error, 0, Mux(split, room, rest))),
            source.error.eq(error),
            source.fault.eq(fault),
            source.last.eq(error | (final & ~split)),
        )
