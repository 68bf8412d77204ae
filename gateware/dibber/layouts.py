"""The stream types at the boundaries between layers. docs/design/column.md draws where each one runs.

A *line* is `data_width` bits. Data that has an address lies in its line where the address puts it:
byte `address % (data_width//8)` of memory is byte lane `address % (data_width//8)`, lane 0 in bits
7:0.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import Mux
from migen.genlib.record import DIR_M_TO_S, DIR_S_TO_M, Record

from litex.soc.interconnect.stream import EndpointDescription

from dibber.interface.description import C

# Host side ----------------------------------------------------------------------------------------

def write_layout(data_width):
    """A memory write of consecutive bytes, as lines; becomes exactly one TLP.

    `length` is 1…maximum payload bytes, and the bytes do not cross 4 KiB. The first line holds the
    byte at `address`; lines follow without gaps, the last one marked `last`. When the last beat of
    a TLP with `mark` has been taken by the PHY, the transmitter's `marked` pulses.
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("address", 64), ("length", 13), ("mark", 1)])

def read_layout():
    """A memory read request: 1…maximum request size bytes, not crossing 4 KiB. One TLP."""
    return EndpointDescription([("address", 64), ("length", 13), ("tag", 8)])

def completion_layout(data_width):
    """A completion for one of our reads, as lines.

    `lower` are bits 6:0 of the address of its first byte; `count` is the bytes of the request that
    were outstanding before this completion, its own included (0 stands for 4096); `bytes` is how
    many it carries; `status` is 0 for success (PCIe Base 3.0, 2.2.9), and then there is data;
    otherwise one beat without data.

    `failed`, with a status other than 0: the completion checker refused what the host sent, and the
    read ends here. The host may send more for this tag, so the reader keeps the tag in quarantine
    (`Tags.fail`).
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("tag", 8), ("status", 3), ("lower", 7), ("count", 13), ("bytes", 13), ("failed", 1)])

FLAW_LENGTH, FLAW_STATUS, FLAW_POISON, FLAW_BITS = 1, 2, 3, 2

def raw_completion_layout(data_width):
    """A completion as the host sent it, before the completion checker.

    `count` is 1 to 4096 bytes. `requester` is the ID in it, `modified` its bit BCM (PCIe Base 3.0,
    2.2.9). `flaw` says that it contradicts itself: FLAW_LENGTH, its length is not that of its
    payload, or more than its count; FLAW_STATUS, success without data, or data without success;
    FLAW_POISON, its data are poisoned (2.7.2.2). A completion with a flaw is one beat without data,
    and its `status` is not 0.
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("tag", 8), ("status", 3), ("lower", 7), ("count", 13), ("bytes", 13), ("requester", 16), ("modified", 1),
         ("flaw", FLAW_BITS)])

def ends_read(completions):
    """Whether the line at `completions` is the last one of its read: of the completion that carries
    all that was outstanding, or of one without success.
    """
    return completions.valid & completions.last & (
        (completions.status != 0) | (completions.bytes == Mux(completions.count == 0, 4096, completions.count)))

def post_layout():
    """A queue entry for host memory, and then perhaps an interrupt. Little-endian, 32 bytes."""
    return EndpointDescription(
        [("address", 64), ("dat", 256), ("vector", 8), ("interrupt", 1)])

# Control ------------------------------------------------------------------------------------------

SHOWN = ("NODE_ID", "ADMIN_CQ_LOW", "ADMIN_CQ_HIGH", "ADMIN_CQ_ENTRIES", "ADMIN_VECTOR")

def shown_layout():
    """Host registers that the control program sees: `value` is that of SHOWN which `index` says, in
    the same cycle; `clock_hz` is constant.
    """
    return [("index", (len(SHOWN) - 1).bit_length()), ("value", 32), ("clock_hz", 32)]

def entry_layout():
    """A completion or event on its way to its queue in host memory; `kind` as enum entry, `status`
    as enum status.

    Whoever sends a completion knows that it was owed; an event may find its queue full, and is
    lost.
    """
    return EndpointDescription(
        [("queue", 4), ("cookie", 32), ("length", 32), ("node", 16), ("kind", 8), ("status", 8), ("key", 32),
         ("interrupt", 1)])

def judging_layout():
    """In a cycle with `strobe` the last PSN acknowledged of `flow` may move, and is another one
    from the next cycle on.
    """
    return [("strobe", 1), ("flow", (C.LANES*C.NODES - 1).bit_length())]

def count_layout():
    """A lookup: `count` is that of `endpoint`, in the same cycle."""
    return [("endpoint", (C.ENDPOINTS - 1).bit_length()), ("count", 32)]

def flow_event_layout():
    """Something happened to `flow`, in a cycle with `strobe`: whoever wants a bit for each flow
    makes it there.
    """
    return [("strobe", 1), ("flow", (C.LANES*C.NODES - 1).bit_length())]

def acked_layout():
    """A lookup: `psn` is the last one acknowledged of `flow`, in the same cycle."""
    return [("flow", (C.LANES*C.NODES - 1).bit_length()), ("psn", 16)]

def slot_free_layout():
    """The slot of a command may be used again, in a cycle with `strobe`; `tag` is endpoint * SLOTS
    + slot.
    """
    return [("strobe", 1), ("tag", 8)]

def offer_layout():
    """An endpoint's next command, for the fast path to look at. Its slot is free and its completion
    has room.
    """
    return EndpointDescription([("endpoint", 3), ("slot", 5)])

def request_layout():
    """A get or atomic of another node, in a slot of the INBOX; `word` is its message word, or that
    of the reply which lies there.
    """
    return EndpointDescription([("node", 4), ("slot", 5), ("word", 32)])

def verdict_layout():
    """What becomes of an offer, in a cycle with `strobe`.

    `taken`: the fast path has it. `missed`: it is for the control program. Neither: it must wait,
    and may be offered again.
    """
    return [("strobe", 1), ("taken", 1), ("missed", 1), ("endpoint", 3)]

def digest_layout():
    """An inline put in which nothing is wrong, and that missed the fast path, in a cycle with
    `strobe`.
    """
    return [("strobe", 1), ("endpoint", 3), ("slot", 5), ("node", 4), ("solicit", 1), ("length", 7), ("cookie", 32)]

def tag_bits():
    """Of set * SLOTS + slot, whatever the set."""
    return (C.SLOT_SETS*C.SLOTS - 1).bit_length()

def fast_put_layout():
    """A put that was checked, on its way to its flow, or what else `kind` says (enum fast_kind);
    `lane` as enum lane.

    `endpoint` may be the INBOX. `cookie` of what is no command is a message word: of the get that
    is answered, of the reply. `atomic`: the ask is one; `generation` is its context's. `ready` says
    that `taken` and `missed` hold.
    """
    return EndpointDescription([("kind", 2), ("atomic", 1), ("generation", 6), ("lane", 1), ("node", 4), ("endpoint", 4), ("slot", 5), ("cookie", 32),
        ("length", 32), ("solicit", 1)])

def glance_layout():
    """What comes from a slot for one reader is there for all: in a cycle with bit n of `lines` the
    n-th line of `flat_source_lines`, its
    first line with `begin`. `response`: it is another node's get that is answered. A job of it will
    come, or it is told to `drop` it."""
    return [("begin", 1), ("lines", 4), ("drop", 1), ("endpoint", 4), ("slot", 5), ("response", 1)]

def ended_layout():
    """What has left the fast path's flow and is no put; `kind` as enum fast_kind."""
    return EndpointDescription([("kind", 2), ("tag", tag_bits()), ("node", 4)])

def expect_layout():
    """An entry of the table of gets and receives under way; without `granted` none is expected."""
    return EndpointDescription([("context", 16), ("key", 32), ("node", 8), ("granted", 1)])

def answer_layout():
    """An answer that may end an ask of the fast path, to `node` for the command `tag`; the value
    before of an atomic.

    `ready` says that it is known whether it did.
    """
    return EndpointDescription([("node", 4), ("tag", 8), ("generation", 6), ("atomic", 1), ("value", 64)])

def claimed_layout():
    """What a flow had under way when it was claimed: PSN of its next packet, how many, and the
    oldest of them.

    `asks` are acknowledged and wait for their answers: they are shown behind the others. `atomic`
    and `generation` are of an ask.
    """
    return [("psn", 16), ("entries", 8), ("asks", 2), ("entry_psn", 16), ("tag", 10), ("ended", 1), ("solicit", 1), ("kind", 2),
        ("atomic", 1), ("generation", 6), ("cookie", 32), ("length", 32)]

# Deposit ------------------------------------------------------------------------------------------

def far_field(address_bits, name):
    """A bit beside fields that are cut to `address_bits`, 64 or 32: some had more that counts."""
    assert address_bits in (32, 64)
    return [(name, 1)] if address_bits < 64 else []

def walk_layout(address_bits=64):
    """One side of a transfer, in bus addresses, ready to be walked.

    `address` is where the walk starts (region base + offset); every byte must lie in
    [`low`, `high`). `length` is the bytes to produce and `skip` the bytes of the whole walk passed
    over before them. Strides are signed. `listed`: the outermost level is an index list over
    `levels` strides, 2 at most; then `stride2` is the bus address of its first entry, and `count2`
    how many its region has from there on.
    """
    return EndpointDescription(
        [("address", address_bits), ("low", address_bits), ("high", address_bits), ("block", 32), ("levels", 2), ("listed", 1),
         ("stride0", address_bits), ("stride1", address_bits), ("stride2", address_bits),
         ("count0", 32), ("count1", 32), ("count2", 32),
         ("length", 32), ("skip", 32)])

def piece_layout(address_bits=64):
    """Consecutive bytes of a walk; `last` on the transfer's final piece.

    `error`: the walk leaves its region here; this piece has no bytes and is the last one. Behind
    the translation it may be any piece, and all that follow it in its transfer have it too.
    `fault`: it is another error, FAULT_READ when a page or an index list could not be read,
    FAULT_LIST when the list has ended.
    """
    return EndpointDescription([("address", address_bits), ("length", 13), ("error", 1), ("fault", FAULT_BITS)])

FAULT_READ, FAULT_LIST, FAULT_BITS = 1, 2, 2

def list_order_layout(address_bits=64):
    """An index list to be read: from the entry at bus address `address` on, `more` entries after
    that one.

    Each is added to `origin`.
    """
    return EndpointDescription([("address", address_bits), ("more", 32), ("origin", address_bits)])

def list_base_layout(address_bits=64):
    """Where an entry of an index list says that its nest stands; `last` on a walk's last one.
    `error`: it could not be read.

    `far`, where addresses are narrow: nothing that this card can name is there.
    """
    return EndpointDescription([("base", address_bits), ("error", 1)] + far_field(address_bits, "far"))

def payload_layout(data_width):
    """Payload of one packet (inside gather: of one transfer), without addresses.

    Every line is full but the `last`, which holds `bytes` bytes in its low lanes (1…data_width//8;
    it is data_width//8 on the others). `error` on the last line: what came since the previous
    `last` is void (sending: the packet ends as bad; receiving: the packet was cut short after good
    blocks, write no more). A packet without payload sends nothing here. Receiving, a block's first
    line comes when all of the block is known to be good, and if it is the packet's last block, the
    packet; the block's other lines follow it without gaps.
    """
    return EndpointDescription([("dat", data_width), ("bytes", 5), ("error", 1)])

def job_layout():
    """A send job from the control program, lane BULK. `skip` is where one of its packets begins.

    `node` and `length` are what the control program checked; the slot's own are not used. `message`
    is the message word of the get or receive that a `response` answers. `indirect`: it is a
    receive, whose walk lies in slot `target` of the INBOX, with `target_levels`.
    """
    return EndpointDescription(
        [("endpoint", 8), ("slot", 8), ("psn", 16), ("incarnation", 8), ("epoch", 4), ("node", 8),
         ("length", 32), ("skip", 32), ("tag", 10), ("response", 1), ("indirect", 1), ("target_levels", 3),
         ("target", 8), ("message", 32)])

def job_done_layout():
    """Its end: `status` as enum status, `psn` the next free one, `checksum` of its bytes (RFC
    1071).
    """
    return EndpointDescription([("tag", 10), ("status", 8), ("psn", 16), ("checksum", 16)])

def job_end_layout():
    """The same, and to whom it went."""
    return EndpointDescription(job_done_layout().payload_layout + [("node", 4)])

def express_layout():
    """A packet of the EXPRESS lane, made from a slot alone: an inline put, or with `message` the
    slot itself.

    `length` are the payload bytes of an inline put; `word` is the message word.
    """
    return EndpointDescription(
        [("endpoint", 8), ("slot", 8), ("psn", 16), ("incarnation", 8), ("epoch", 4), ("node", 8),
         ("length", 8), ("message", 1), ("word", 32)])

def deposit_done_layout():
    """The end of a received packet at the scatter engine: refused, or in memory (handed to the PHY)
    as soon as it is not `open` any more, see `Landing`.

    In the order of the deposits; `node`, `incarnation` and `psn` are the deposit's. A packet that
    was cut short (payload `error`) has none.
    """
    return EndpointDescription(
        [("lane", 1), ("node", 16), ("incarnation", 8), ("psn", 16), ("refused", 1), ("reason", 8)])

def slot_port(data_width):
    """A read port of the command slots, shared by turns.

    `adr` counts lines of `data_width` bits: ((endpoint*SLOTS + slot)*SLOT_BYTES)//(data_width//8) +
    line of the slot. Accepted in a cycle with `valid` and `ready`; `dat_r` is valid exactly 2
    cycles later.
    """
    return Record([
        ("valid", 1, DIR_M_TO_S), ("ready", 1, DIR_S_TO_M), ("adr", 16, DIR_M_TO_S),
        ("dat_r", data_width, DIR_S_TO_M)])

def slot_write_port(data_width):
    """A write port of the slots, shared by turns; `adr` as in slot_port, a bit of `be` for each
    byte.
    """
    return Record([
        ("valid", 1, DIR_M_TO_S), ("ready", 1, DIR_S_TO_M), ("adr", 16, DIR_M_TO_S),
        ("dat_w", data_width, DIR_M_TO_S), ("be", data_width//8, DIR_M_TO_S)])

def region_layout():
    """The answer of the region table."""
    return [("found", 1), ("base", 64), ("length", 64), ("rights", 4), ("owner", 8)]

# Packet -------------------------------------------------------------------------------------------

def send_layout():
    """A packet to send whose payload, if any, follows.

    The destination's walk is read from the command slot (`endpoint`, `slot`) while the header
    leaves, so it is not carried here. `skip` is the packet's place in the transfer, in bytes. With
    the flag RESPONSE the context is `message[16:]`, and the value of the notice `message`.
    `indirect`: the walk is read from slot `target` of the INBOX.
    """
    return EndpointDescription(
        [("node", 16), ("incarnation", 8), ("epoch", 4), ("psn", 16), ("flags", 8), ("levels", 3),
         ("endpoint", 8), ("slot", 8), ("indirect", 1), ("target", 8), ("skip", 32), ("length", 13),
         ("message", 32)])

def deposit_layout(address_bits=64):
    """A received packet whose header is good, in order, and for this node: a deposit, or with
    `is_message` a message.

    `context` is that of a RESPONSE. A message has its word in `key`. `levels` as in the packet:
    with LIST, level 2 is the list's offset and key. Where addresses are narrow, offset and strides
    are cut to them: `far` says that one of them was larger, `list_far` that the list's offset was.
    """
    return EndpointDescription(
        [("source", 16), ("incarnation", 8), ("flags", 8), ("psn", 16), ("levels", 3),
         ("is_message", 1), ("context", 16), ("key", 32), ("offset", min(48, address_bits)),
         ("skip", 32), ("block", 32),
         ("stride0", address_bits), ("stride1", address_bits), ("stride2", address_bits),
         ("count0", 32), ("count1", 32), ("count2", 32),
         ("length", 13),
         ("notice", 32), ("notice_length", 32), ("notice_endpoint", 8)] +
        far_field(address_bits, "far") + far_field(address_bits, "list_far"))

def ack_layout():
    """An acknowledgement of a flow, sent or received. `flags` as in enum packet_flag, EXPRESS
    telling the lane.

    `refusals` are those of the flow up to `ack`, modulo 256.
    """
    return EndpointDescription(
        [("node", 16), ("incarnation", 8), ("ack", 16), ("psn", 16), ("flags", 8), ("reason", 8),
         ("refusals", 8)])

def arrival_layout():
    """A notice or message on its way to the control program; every byte before it has been handed
    to the PHY.

    `is_message`: it lies in the inbox's `slot`, `value` is the message word. `response`: the answer
    to a get has ended, `value` is its message word.
    """
    return EndpointDescription(
        [("node", 16), ("endpoint", 8), ("interrupt", 1), ("value", 32), ("length", 32), ("key", 32),
         ("is_message", 1), ("response", 1), ("slot", 8)])

# Link ---------------------------------------------------------------------------------------------

def word_layout():
    """A packet as 32-bit words, byte 0 of the wire in bits 7:0. `bad` on `last`: drop it.

    `prefix`: how many of its words are prefix, of use where it starts.
    """
    return EndpointDescription([("data", 32), ("bad", 1)], [("channel", 2), ("prefix", 3)])

def scout_layout():
    """A scout or the answer to one. Sent: `node` is the target and `route` the way; received:
    `node` sent it.
    """
    return EndpointDescription([("node", 16), ("reply", 1), ("number", 32), ("back", 32), ("route", 32)])

def serial_tx_layout():
    """To the transceiver: four symbols a word, `k` flags; `ready` paces it."""
    return EndpointDescription([("data", 32), ("k", 4)])

def serial_rx_layout():
    """From the transceiver, no back-pressure: `ready` is ignored. Errors are per symbol."""
    return EndpointDescription([("data", 32), ("k", 4), ("code_error", 4), ("disparity_error", 4)])
