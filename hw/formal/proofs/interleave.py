"""Interleaved channels: what the receiver makes of any words, and how long CONTROL waits at the
sender.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import *

from dibber.link.link_receiver import LinkReceiver
from dibber.link.symbols import (FIRST_IS_K, K_COMMA, K_END, K_END_BAD, K_NONCE, K_PING, K_PONG, PONG_REST_WORDS,
    resume_word, start_word)
from dibber.link.link_transmitter import LinkTransmitter

from harness import Harness, Mutant, Property, implies, inner, inner_all
from transmitter import free_inputs

CHANNELS = 4
CONTROL  = 0

# Receiver -----------------------------------------------------------------------------------------

class Framed(Harness):
    """Any symbols, any errors, any alignment, a link that comes and goes; beside it a plain reading
    of the words.

    A channel's packet is open from its START until its END, or until the first thing that cannot
    be.
    """
    def __init__(self):
        super().__init__()
        self.block = block = LinkReceiver(CHANNELS)
        decoder    = block.decoder
        sink       = block.sink
        self.free_all("sink", sink)
        self.comb += [
            decoder.hunt.eq(self.free("hunt")),
            block.up.eq(self.free("up")),
        ]

        # Each word is one thing, and one with an error is wrong.
        names = ("data", "start", "resume", "end", "end_bad", "flow", "nonce", "ping", "pong", "wrong")
        kinds = Signal(len(names))
        error = Signal()
        self.comb += [
            kinds.eq(Cat(*[getattr(decoder, f"is_{name}") for name in names])),
            error.eq(Cat(*[symbol[9] for symbol in inner(decoder, "word")]) != 0),
        ]
        self.prove("one_thing", Mux(decoder.valid, (kinds != 0) & ((kinds & (kinds - 1)) == 0), kinds == 0))
        self.prove("error_is_wrong", implies(self.before(sink.valid & error), decoder.is_wrong))
        self.prove("one_channel", implies(decoder.is_start | decoder.is_resume,
            (decoder.channel != 0) & ((decoder.channel & (decoder.channel - 1)) == 0)))

        # Whose the words are, and which packets are open.
        owner = Signal(CHANNELS)
        open_ = Signal(CHANNELS)
        ends  = Signal()
        odd   = Signal()       # what cannot be
        shut  = Signal(CHANNELS)
        self.comb += [
            ends.eq(decoder.is_end | decoder.is_end_bad),
            odd.eq(~block.up | decoder.is_wrong | (decoder.is_start & ((decoder.channel & open_) != 0))
                | ((decoder.is_data | ends) & (owner == 0) & (open_ != 0))),
            shut.eq(Mux(odd, open_, Mux(ends, open_ & owner, 0))),
        ]
        self.sync += [
            open_.eq((open_ & ~shut) | Mux(decoder.is_start & block.up & ~decoder.routed, decoder.channel, 0)),
            If(decoder.is_start | decoder.is_resume, owner.eq(decoder.channel)).Elif(ends, owner.eq(0)),
        ]

        on, begun, holds, fresh = (inner(block, name) for name in (
            "active", "begun", "holds_word", "is_first"))
        self.lemma("open",  begun == open_)
        self.lemma("owner", on == owner)
        self.lemma("holds", (holds & ~begun) == 0)
        for n, (source, held) in enumerate(zip(block.sources, inner_all(block, "held"))):
            middle = Signal()              # a packet was handed on, but not its last word
            # words of the open packet that came; and that were handed on
            came   = Signal(max=4096)
            given  = Signal(max=4096)
            newest = Signal(32)
            start  = Signal()
            adds   = Signal()
            self.comb += [
                start.eq(decoder.is_start & decoder.channel[n] & block.up & ~decoder.routed),
                adds.eq(decoder.is_data & owner[n] & open_[n] & ~odd),
            ]
            self.sync += [
                If(source.valid, middle.eq(~source.last), given.eq(given + 1)),
                If(adds, came.eq(came + 1), newest.eq(decoder.data)),
                If(start, came.eq(0), given.eq(0)),
            ]
            self.prove(f"framed{n}",    implies(source.valid, source.first == ~middle))
            self.prove(f"of_packet{n}", implies(source.valid, open_[n]))
            self.prove(f"not_merged{n}", implies(start & middle, source.valid & source.last & source.bad))
            self.prove(f"ends{n}",      implies(shut[n] & (middle | (came != 0)), source.valid & source.last))
            self.prove(f"not_early{n}", implies(source.valid & source.last, shut[n]))
            self.prove(f"odd_is_bad{n}", implies(source.valid & source.last & odd, source.bad))
            self.prove(f"good{n}",      implies(source.valid & source.last & ~source.bad,
                ~odd & decoder.is_end & owner[n]))
            # Word by word: it is the newest, and all before it were handed on.
            self.prove(f"the_words{n}", implies(source.valid, (source.data == newest) & ((given + 1)[:12] == came)))
            self.lemma(f"middle{n}",    middle == (begun[n] & ~fresh[n]))
            self.lemma(f"goes_on{n}",   implies(middle, begun[n] & holds[n]))
            self.lemma(f"held{n}",      implies(holds[n], (held == newest) & (came == (given + 1)[:12])))
            self.lemma(f"empty{n}",     implies(begun[n] & ~holds[n], (came == 0) & (given == 0) & fresh[n]))

# Transmitter --------------------------------------------------------------------------------------

# Words that may go before a control packet's turn: the END of the packet that just ended, a nonce,
# a ping, a pong, and a pair of flow words.
SOON    = 6
CHANGES = 7

class Soon(Harness):
    """A packet of CONTROL that is offered, with GO, while the others offer what they like.

    It waits from the cycle behind the one that offers it to its START, or RESUME if it was begun.
    Meanwhile no word of another packet goes, but an END; and so many others do as SOON says, and
    one for each change of the flow state, whatever pings come. One of our own may be asked for.
    """
    def __init__(self):
        super().__init__()
        self.tx     = tx = LinkTransmitter(CHANNELS)
        self.source = source = tx.source
        free_inputs(self, tx, CHANNELS)
        sink    = tx.sinks[CONTROL]
        offered = Signal()
        waits   = Signal()   # it was offered in the cycle before
        # and before that: the word in the output register was made while it waited
        made    = Signal()
        served  = Signal()   # it had its turn
        turn    = Signal()   # the word in the register is that
        is_word = lambda k: (source.k == FIRST_IS_K) & (source.data[0:8] == k)
        self.comb += [
            offered.eq(sink.valid & sink.first & ~sink.ready & tx.go[CONTROL] & tx.up),
            # START says in its second symbol how many prefix words come, and then its CRC is
            # another.
            turn.eq(made & (source.k == FIRST_IS_K)
                & ((source.data[:12] == start_word(CONTROL) & 0xfff) | (source.data == resume_word(CONTROL)))),
        ]
        self.sync += [
            waits.eq(offered),
            made.eq(offered & waits & (~source.valid | source.ready)),
            served.eq(offered & (served | turn)),
        ]

        # What went meanwhile, the word in the register included; and how often the flow state
        # changed.
        def count(condition, bits=4):
            past, now = Signal(bits), Signal(bits)
            self.comb += now.eq(past + condition)
            self.sync += If(offered & waits & ~served & ~turn, past.eq(now)).Else(past.eq(0))
            return now
        end     = is_word(K_END) | is_word(K_END_BAD)
        others  = is_word(K_COMMA) | is_word(K_NONCE) | is_word(K_PING) | is_word(K_PONG)
        ends, nonces, pings, pongs, flows = (count(made & ~served & condition) for condition in (
            end, is_word(K_NONCE), is_word(K_PING), is_word(K_PONG), is_word(K_COMMA)))
        words   = count(made & ~served & ~turn, 5)
        changes = count(waits & (tx.flow != self.before(tx.flow, 8)))
        limit   = Signal(5)
        self.comb += limit.eq(SOON + changes)
        self.assume("one_ping", implies(waits & tx.ping.valid, pings == 0))
        self.assume("changes",  changes <= CHANGES)
        self.prove("no_other_packet", implies(made & ~served, turn | end | others))
        self.prove("one_end",   ends <= 1)
        self.prove("soon",      words <= limit)

        on, ending, lower, held, allowed, greets, rests, rest = (inner(tx, name) for name in (
            "active", "end_due", "higher_priority", "start_held", "allowed", "nonce_due", "pong_blocked", "block_left"))
        schedule = tx.schedule
        age, alone = inner(schedule, "age"), inner(schedule, "singles")
        twin     = Signal()   # a flow word's twin went meanwhile, or goes next
        twins    = Signal()
        late     = Signal(5)
        pending  = Signal(4)
        most     = Signal(4)
        went     = Signal(5)
        self.comb += [
            late.eq(ends + nonces + pings + pongs),
            pending.eq(flows + (schedule.due | (tx.flow != schedule.told))),
            most.eq(1 + changes + twins),
            twins.eq(twin | schedule.twin),
            went.eq(late + flows),
        ]
        self.sync += If(offered & waits & ~served & ~turn, twin.eq(twins)).Else(twin.eq(0))
        yet = waits & ~served & ~turn
        self.lemma("allowed",  implies(waits, allowed[CONTROL]) & ~held[CONTROL])
        self.lemma("lower",    implies((on & ~1) != 0, lower[CONTROL]) & ((on & (on - 1)) == 0))
        self.lemma("ended",    implies(yet & (ends != 0), (on == 0) & ~ending))
        self.lemma("greeted",  implies(yet & (nonces != 0), ~greets))
        self.lemma("few",      implies(yet, (ends <= 1) & (nonces <= 1) & (pings <= 1) & (pongs <= 1)))
        self.lemma("answered", implies(yet & (pongs != 0), rests & (words > PONG_REST_WORDS - 1 - rest)))
        self.lemma("flows",    implies(yet, pending <= most))
        self.lemma("twins",    implies(schedule.twin, schedule.due & (alone == 0)) & implies(yet & twins, alone <= flows))
        self.lemma("age",      implies(yet & (flows != 0), age <= late))
        self.lemma("sum",      implies(yet, words == went))
        self.lemma("made",     implies(made, source.valid))


PROPERTIES = [
    Property("link-framed", "link/link_receiver", "any words: packets whole and in order, or ended as bad, never merged",
        f"{CHANNELS} channels × 32", "Framed", k=1, quick=True, mutants=[
            Mutant("START inside a packet is let pass", "dibber.link.link_receiver",
                "ends_all_bad.eq(decoder.is_wrong | start_clash | stray_word | ~self.up)",
                "ends_all_bad.eq(decoder.is_wrong | stray_word | ~self.up)", depth=10),
            Mutant("words behind an END are let pass", "dibber.link.link_receiver",
                "ends_all_bad.eq(decoder.is_wrong | start_clash | stray_word | ~self.up)",
                "ends_all_bad.eq(decoder.is_wrong | start_clash | ~self.up)", depth=10),
            Mutant("an error ends the channel that is on", "dibber.link.link_receiver",
                "closes.eq(begun[n] & (ends_all_bad | (ends & active[n])))",
                "closes.eq(begun[n] & active[n] & (ends_all_bad | ends))", depth=10),
    ]),
    Property("control-soon", "link/link_transmitter", f"CONTROL goes after {SOON} words at most, and none of another packet",
        f"{CHANNELS} channels", "Soon", k=2, mutants=[
            Mutant("who is on stays on", "dibber.link.link_transmitter",
                "same_channel.eq(((valid & allowed & active) != 0) & ((wants & higher_priority) == 0))",
                "same_channel.eq((valid & allowed & active) != 0)", depth=10),
            Mutant("who is lower is not known", "dibber.link.link_transmitter",
                "*[choice[n + 1:] != 0 for n in all_channels[:-1]]",
                "*[choice[n] for n in all_channels[:-1]]", depth=10),
            Mutant("flow words for ever", "dibber.link.stop_state", "self.due.eq(0),", "", depth=14),
    ]),
]
