"""Walk a strided descriptor: a sequence of (address, length) pieces."""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from dibber.layouts import FAULT_BITS, FAULT_LIST, FAULT_READ, list_base_layout, piece_layout, walk_layout

from dibber.deposit.skip import Skip, start_layout

# Nest ---------------------------------------------------------------------------------------------

def left_bits(address_bits):
    """Width of the distance to `high`: one bit above a 32-bit length stands for all larger ones."""
    return min(address_bits, 33)

def run_layout(address_bits=64):
    """A run: a block of the walk, or the part of it that belongs to the transfer.

    joined : the run continues the previous one without a gap
    inside : the run starts within [`low`, `high`]
    left   : bytes from its start to `high`; bit 32 stands for all distances of 2**32 and more
    fault  : the walk ends here with this fault, as in `piece_layout`
    room   : bytes from its start to the next multiple of `max_piece`
    whole  : bytes of the longest piece that may start here
    """
    return stream.EndpointDescription(
        [("address", address_bits), ("length", 32), ("joined", 1), ("inside", 1),
         ("fault", FAULT_BITS), ("left", left_bits(address_bits)), ("room", 13), ("whole", 13)])


class Nest(LiteXModule):
    """The loop nest: one run a cycle, innermost level first, 2 cycles from sink to source.

    The next addresses of all three levels are added in parallel, and the counters select one. So
    the loop has one adder and one multiplexer, and no multiplication. With an index list the bases
    of level 2 come from outside, and the nest waits for each.

    `source.ready` is late, and would move all of the state here. So `held` is a skid buffer: it
    keeps a run that was not taken, because the nest sees the stall one cycle later.

    Parameters
    ----------
    address_bits : width of addresses and their sums, 64 or 32

    Attributes
    ----------
    sink      : Endpoint(start_layout), in
    base      : Endpoint(list_base_layout), in    next base of level 2
    listed    : Signal(), out     the nest holds a walk with a list
    source    : Endpoint(run_layout), out    `last` on the last run of a walk
    max_piece : Signal(13), in    bytes, a power of two
    cancel    : Signal(), in      drop the rest of the walk whose run is at `source`; `source.ready`
                must be set too
    """
    def __init__(self, address_bits=64):
        self.sink      = sink   = stream.Endpoint(start_layout(address_bits))
        self.source    = source = stream.Endpoint(run_layout(address_bits))
        self.base      = following = stream.Endpoint(list_base_layout(address_bits))
        self.listed    = Signal()
        self.max_piece = Signal(13)
        self.cancel    = Signal()

        # # #

        valid         = Signal()
        state         = Record([(n, w) for n, w in start_layout(address_bits).payload_layout])
        joined        = Signal()
        final         = Signal()  # this run ends the transfer; compared one run ahead
        next_two_runs = Signal(33)
        move          = Signal()
        forget        = Signal()
        run           = stream.Endpoint(run_layout(address_bits))
        held          = stream.Endpoint(run_layout(address_bits))
        fields        = [name for name, _ in run_layout(address_bits).payload_layout] + ["last"]
        needs_base    = Signal()  # the next run starts at a base of the list
        go            = Signal()
        # `run` may be loaded: it is empty or moves on. `run` and `held` are never both valid.
        free   = Signal(reset=1)
        self.comb += [
            self.listed.eq(valid & state.listed),
            needs_base.eq(state.listed & state.spent & ~state.exhausted),
            following.ready.eq(valid & needs_base & free),
            # If the last run of a walk is at the output, the nest may hold the next walk already.
            forget.eq(self.cancel & ~(held.valid & held.last) & ~(run.valid & run.last)),
            source.valid.eq(held.valid | run.valid),
            *[
                getattr(source, n).eq(Mux(held.valid, getattr(held, n), getattr(run, n)))
                for n in fields],
            go.eq(valid & (~needs_base | following.valid)),
            move.eq(go & free),
            # After its last run a walk needs no base: the list's last entry holds the last byte.
            sink.ready.eq(~valid | (final & free & ~needs_base)),
            next_two_runs.eq(state.run + state.block),
        ]

        # Next run: the innermost unfinished level steps, and the levels below it start again.
        base         = [state.base0, state.base1, state.base2]
        left         = [state.left0, state.left1, state.left2]
        count_is_one = [state.count0 == 1, state.count1 == 1]
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
                final.eq(state.length <= next_two_runs),
                joined.eq(0),
                If(left[0] != 0, *step(0), joined.eq(state.joinable),
                    state.spent.eq((left[0] == 1) & (left[1] == 0))
                ).Elif(left[1] != 0, *step(1),
                    state.spent.eq(count_is_one[0] & (left[1] == 1))
                ).Elif(needs_base, *begin(2, following.base),
                    state.spent.eq(count_is_one[0] & count_is_one[1]),
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
                *[
                    getattr(state, n).eq(getattr(sink, n))
                    for n, _ in start_layout(address_bits).payload_layout],
            ).Elif(forget,
                valid.eq(0)
            )
        ]

        # Run: the values for the splitter are computed here, outside its timing loop.
        mask         = Signal(12)
        piece_offset = Signal(12)
        piece_room   = Signal(13)
        to_high      = Signal(address_bits)
        self.comb += [
            to_high.eq(state.high - state.address),
            mask.eq(self.max_piece - 1),
            piece_offset.eq(state.address[:12] & mask),
            piece_room.eq(self.max_piece - piece_offset),
        ]
        self.sync += [
            If(~held.valid, *[getattr(held, n).eq(getattr(run, n)) for n in fields]),
            held.valid.eq(source.valid & ~source.ready),
            # `cancel` comes with `source.ready`, so `held` is empty in the next cycle.
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
                run.left.eq(Cat(to_high[:32], to_high[32:] != 0) if address_bits > 32 else to_high),
                run.room.eq(piece_room),
                # At the end of a 4 KiB page a piece ends with the page. Elsewhere its DWs, with
                # the partial first and last ones, are at most `max_piece` bytes.
                run.whole.eq(
                    Mux(
                        (state.address[:12] | mask) == 0xfff, piece_room,
                        self.max_piece - state.address[:2])),
            )
        ]

# Walker -------------------------------------------------------------------------------------------

class Walker(LiteXModule):
    """Turn a strided descriptor into pieces, one a cycle.

    The nest is walked innermost first. Without levels the walk is one run of `length` bytes from
    `address` + `skip`. Touching blocks of the innermost level (stride 0 equals block) merge into
    one run. A run becomes one piece if its DWs are at most `max_piece` bytes and it does not cross
    4 KiB. Otherwise it is cut at multiples of `max_piece`, so all pieces but the first are aligned.

    Example: max_piece 128, one run of 300 bytes from 0x1050: pieces 0x1050 (48), 0x1080 (128) and
    0x1100 (124).

    A piece outside [low, high) becomes an error piece without bytes, which ends the transfer. A
    nest that is shorter than `skip` + `length` ends in the same way. Addresses wrap at
    2**`address_bits`.

    The bases of an index list come from a `ListReader`, walk by walk. The walker takes or drops all
    bases of a walk. The set-up of the next walk waits for the first base of that walk.

    Parameters
    ----------
    address_bits : 64 or 32

    Attributes
    ----------
    sink      : Endpoint(walk_layout), in    length at least 1; block and the counts of the used
                levels not 0
    source    : Endpoint(piece_layout), out  `last` on the final piece
    order     : Endpoint(list_order_layout), out   to `ListReader.sink`
    base      : Endpoint(list_base_layout), in     from `ListReader.source`
    drop      : Signal(), out                      to `ListReader.drop`
    max_piece : Signal(13), in   bytes, a power of two from 128 to 4096 (PCIe: maximum payload or
                read request)
    abort     : Signal(), in     end the transfer that the consumer is taking with an error piece

    Cycles: 1 a piece; 5 from sink to the first piece if skip is 0, otherwise plus the set-up of
    `Skip`. The set-up of a transfer runs during the walk of the previous one. With a list, the last
    5 cycles of the set-up wait for the end of that walk.
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

        # List: bases go to the set-up or to the nest. The set-up takes the first base of a walk
        # after all bases of the previous walk are gone.
        self.order = self.skip.order
        self.base  = base = stream.Endpoint(list_base_layout(address_bits))
        self.drop = Signal()
        mid_walk  = Signal()  # the previous base was not the last one of its walk
        self.comb += [
            self.drop.eq(mid_walk & ~self.skip.begun & ~self.nest.listed),
            base.connect(self.skip.base, omit={"valid", "ready"}),
            base.connect(self.nest.base, omit={"valid", "ready"}),
            self.skip.base.valid.eq(base.valid & ~mid_walk),
            self.nest.base.valid.eq(base.valid & mid_walk),
            base.ready.eq(Mux(mid_walk, self.nest.base.ready | self.drop, self.skip.base.ready)),
        ]
        self.sync += If(base.valid & base.ready, mid_walk.eq(~base.last))

        # Splitter: the remaining bytes of a run; joined runs add to them.
        valid   = Signal()
        address = Signal(address_bits)
        rest    = Signal(32)
        # Bytes to `high`. A saturated value (bit 32) exceeds the longest transfer.
        left    = Signal(left_bits(address_bits))
        inside  = Signal()
        fault   = Signal(FAULT_BITS)
        final   = Signal()
        room    = Signal(13)
        whole   = Signal(13)

        closed       = Signal()  # no other run can join this one
        split        = Signal()
        crosses_high = Signal()
        abort        = Signal()
        error        = Signal()
        free         = Signal()
        emit         = Signal()
        leave        = Signal()
        drop         = Signal()  # an error piece has just left; the rest of its walk is dropped
        cancel       = Signal()
        absorb       = Signal()
        load         = Signal()
        self.comb += [
            closed.eq(final | (run.valid & ~run.joined)),
            split.eq(rest > whole),
            # Both comparisons in parallel, then the multiplexer: the shorter path.
            crosses_high.eq(Mux(split, room > left, rest > left)),
            # If the last piece is at the source, this stage holds the next transfer.
            abort.eq(self.abort & ~(source.valid & source.last)),
            error.eq(~inside | crosses_high | abort),
            free.eq(~source.valid | source.ready),
            emit.eq(valid & ~drop & free & (split | closed | abort)),
            leave.eq(emit & (~split | error)),
            # `drop` comes one cycle after `error`. A run taken in between may belong to the
            # cancelled walk. If it was the walk's last run (`final`), the nest is in the next walk.
            cancel.eq(drop & ~final),
            absorb.eq(run.valid & run.joined & ~drop),
            # A run that is not joined closes the previous run, which then leaves by itself: `load`
            # need not look at `abort`.
            load.eq(run.valid & ~run.joined & ~drop & (~valid | (free & ~split))),
            self.nest.cancel.eq(cancel),
            run.ready.eq(absorb | load | cancel),
        ]
        self.sync += [
            drop.eq(emit & error & ~final),
            If(leave | drop, valid.eq(0)),
            If(valid & free & split,
                # Go to the next multiple of max_piece; pieces are aligned from there on.
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

        # Output register.
        self.sync += If(free,
            source.valid.eq(emit),
            source.address.eq(address),
            source.length.eq(Mux(error, 0, Mux(split, room, rest))),
            source.error.eq(error),
            source.fault.eq(fault),
            source.last.eq(error | (final & ~split)),
        )
