"""The stream types at the boundaries between layers. docs/design/column.md draws where each one is used.

A *line* is `data_width` bits. The byte at memory address A is in byte lane A % (data_width//8) of
its line; lane 0 is bits 7:0.
"""

# SPDX-License-Identifier: BSD-2-Clause

from migen import Mux, bits_for, log2_int
from migen.genlib.record import DIR_M_TO_S, DIR_S_TO_M, Record

from litex.soc.interconnect.stream import EndpointDescription

from dibber.interface.description import C

# Of a prefix word (packet/route.py): the turn at a switch, and the number of switches behind it.
TURN_BITS = 4
HOP_BITS  = 3

def count_bits(data_width):
    """Bits of a number of bytes in a line; 5 hold it at 64 bits, too."""
    return max(5, log2_int(data_width//8) + 1)

# Host side ----------------------------------------------------------------------------------------

def write_layout(data_width):
    """A memory write of consecutive bytes, as lines; it becomes exactly one TLP.

    `length` is 1 to the maximum payload, in bytes; the bytes do not cross a 4 KiB boundary. The
    first line holds the byte at `address`. Lines follow without gaps, and the last one has `last`.
    After the PHY takes the last beat of a TLP with `mark`, the transmitter's `marked` pulses.
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("address", 64), ("length", 13), ("mark", 1)])

def read_layout():
    """A memory read: 1 to the maximum read request, in bytes, not crossing 4 KiB. It becomes one
    TLP.

    `tag_phase` tells this use of the tag from the one before (`Tags`). It does not leave the card.
    """
    return EndpointDescription([("address", 64), ("length", 13), ("tag", 8), ("tag_phase", 1)])

def completion_layout(data_width):
    """A completion for one of our reads, as lines (PCIe Base 3.0, 2.2.9).

    lower  : bits 6:0 of the address of its first byte
    count  : bytes that the request still lacked before this completion; 0 stands for 4096
    bytes  : bytes in this completion
    status : 0 is success, with data; every other status comes as one beat without data
    failed : only with a status other than 0. The completion checker refused what the host sent, so
             the read ends here. The host may send more for this tag: the reader keeps the tag in
             quarantine (`Tags.fail`).
    tag_phase : that of the read which the completion was checked against
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("tag", 8), ("status", 3), ("lower", 7), ("count", 13), ("bytes", 13), ("failed", 1),
         ("tag_phase", 1)])

FLAW_LENGTH, FLAW_STATUS, FLAW_POISON, FLAW_BITS = 1, 2, 3, 2

def raw_completion_layout(data_width):
    """A completion as the host sent it, before the completion checker.

    `count` is 1 to 4096 bytes. `requester` is its requester ID and `modified` its BCM bit (PCIe
    Base 3.0, 2.2.9). A completion with a `flaw` is one beat without data, and its `status` is not
    0:

    FLAW_LENGTH : its length differs from its payload, or exceeds its count
    FLAW_STATUS : success without data, or data without success
    FLAW_POISON : its data are poisoned (2.7.2.2)
    """
    return EndpointDescription(
        [("dat", data_width)],
        [("tag", 8), ("status", 3), ("lower", 7), ("count", 13), ("bytes", 13), ("requester", 16),
         ("modified", 1), ("flaw", FLAW_BITS)])

def ends_read(completions):
    """Whether the line at `completions` is the last line of its read: the completion has all bytes
    that were outstanding, or no success.
    """
    return completions.valid & completions.last & (
        (completions.status != 0) | (
            completions.bytes == Mux(completions.count == 0, 4096, completions.count)))

def post_layout():
    """A queue entry for host memory (little-endian, 32 bytes); with `interrupt` an interrupt
    follows.
    """
    return EndpointDescription(
        [("address", 64), ("dat", 256), ("vector", 8), ("interrupt", 1)])

# Control ------------------------------------------------------------------------------------------

SHOWN = ("NODE_ID", "ADMIN_CQ_LOW", "ADMIN_CQ_HIGH", "ADMIN_CQ_ENTRIES", "ADMIN_VECTOR")

def shown_layout():
    """Host registers for the control program: `value` is the register SHOWN[`index`], in the same
    cycle; `clock_hz` is constant.
    """
    return [("index", (len(SHOWN) - 1).bit_length()), ("value", 32), ("clock_hz", 32)]

def entry_layout():
    """A completion or event on its way to its queue in host memory; `kind` as enum entry, `status`
    as enum status.

    A completion always has room, because the queue reserves it with the command. An event that
    finds its queue full is lost.
    """
    return EndpointDescription(
        [("queue", (C.QUEUES - 1).bit_length()), ("cookie", 32), ("length", 32), ("node", 16), ("kind", 8), ("status", 8),
         ("key", 32), ("interrupt", 1)])

def judging_layout():
    """In a cycle with `strobe` the last acknowledged PSN of `flow` may move; the new value is
    visible from the next cycle on.
    """
    return [("strobe", 1), ("flow", (C.LANES*C.NODES - 1).bit_length())]

def count_layout():
    """A lookup: `count` belongs to `endpoint`, in the same cycle."""
    return [("endpoint", (C.ENDPOINTS - 1).bit_length()), ("count", 32)]

def flow_event_layout():
    """An event of `flow`, in a cycle with `strobe`. The receiver decodes it to one bit a flow if
    needed.
    """
    return [("strobe", 1), ("flow", (C.LANES*C.NODES - 1).bit_length())]

def acked_layout():
    """A lookup: `psn` is the last acknowledged PSN of `flow`, in the same cycle."""
    return [("flow", (C.LANES*C.NODES - 1).bit_length()), ("psn", 16)]

def slot_free_layout():
    """A command's slot becomes free, in a cycle with `strobe`; `tag` is endpoint * SLOTS + slot."""
    return [("strobe", 1), ("tag", 8)]

def offer_layout():
    """An endpoint's next command, offered to the fast path. Its slot is free and its completion has
    room.
    """
    return EndpointDescription([("endpoint", endpoint_bits()), ("slot", 5)])

def request_layout():
    """A get or atomic from another node, in a slot of the INBOX. `word` is its message word; if the
    slot holds a reply, the word of this reply.
    """
    return EndpointDescription([("node", node_bits()), ("slot", 5), ("word", 32)])

def verdict_layout():
    """The fast path's answer to an offer, in a cycle with `strobe`.

    `taken`: the fast path executes it. `missed`: the control program must execute it. Neither: the
    command must wait, and may be offered again.
    """
    return [("strobe", 1), ("taken", 1), ("missed", 1), ("endpoint", endpoint_bits())]

def digest_layout():
    """A valid inline put that the fast path did not take, in a cycle with `strobe`."""
    return [
        ("strobe", 1), ("endpoint", endpoint_bits()), ("slot", 5), ("node", node_bits()), ("solicit", 1),
        ("length", 7), ("cookie", 32)]

def node_bits():
    """Width of a node's number where it goes with a tag; four bits also if there are fewer nodes.
    """
    return max(4, (C.NODES - 1).bit_length())

def endpoint_bits():
    """Width of the number of an endpoint."""
    return (C.ENDPOINTS - 1).bit_length()

def set_bits():
    """Width of the number of a slot set: an endpoint, the outbox or the inbox."""
    return (C.SLOT_SETS - 1).bit_length()

def tag_bits():
    """Width of a tag, which is set * SLOTS + slot, over all slot sets."""
    return (C.SLOT_SETS*C.SLOTS - 1).bit_length()

def fast_put_layout():
    """A checked put on its way to its flow, or another packet as `kind` says (enum fast_kind).

    `lane` as enum lane. `endpoint` may be the INBOX. `cookie` is the command's; for an answer it is
    the message word of its get, for a reply the word of the reply. `atomic`: the request is an
    atomic, and `generation` is that of its context. `taken` and `missed` are valid while `ready` is
    1.
    """
    return EndpointDescription(
        [("kind", 2), ("atomic", 1), ("generation", 6), ("lane", 1), ("node", node_bits()), ("endpoint", set_bits()),
         ("slot", 5), ("cookie", 32), ("length", 32), ("solicit", 1)])

def glance_layout():
    """A slot that one reader reads, shown to all readers, so that they need not read it again.

    In a cycle with bit n of `lines`, line n of `flat_source_lines` is on the slots' data; the first
    line has `begin`. `response`: the slot answers a get of another node. Afterwards either a job
    for this slot follows, or `drop` says that none will.
    """
    return [("begin", 1), ("lines", 4), ("drop", 1), ("endpoint", set_bits()), ("slot", 5),
        ("response", 1)]

def ended_layout():
    """A packet other than a put that has left the fast path's flow; `kind` as enum fast_kind."""
    return EndpointDescription([("kind", 2), ("tag", tag_bits()), ("node", node_bits())])

def expect_layout():
    """A new entry for the table of gets and receives under way; without `granted` the entry is
    cleared.
    """
    return EndpointDescription([("context", 16), ("key", 32), ("node", 8), ("granted", 1)])

def answer_layout():
    """An answer to a request (get or atomic) of the fast path, from `node` for the command `tag`.

    `value` is the value before the atomic. While `ready` is 1, it is known whether the answer has
    completed the command.
    """
    return EndpointDescription(
        [("node", node_bits()), ("tag", 8), ("generation", 6), ("atomic", 1), ("value", 64)])

def claimed_layout():
    """The state of a flow when the control program claims it from the fast path.

    psn       : of the flow's next packet
    entries   : packets under way
    asks      : requests that are acknowledged and wait for their answers; shown after the packets
    entry_psn, tag, ended, solicit, kind, cookie, length : of the oldest packet
    atomic, generation : of a request
    """
    return [
        ("psn", 16), ("entries", 8), ("asks", 2), ("entry_psn", 16), ("tag", 10), ("ended", 1),
        ("solicit", 1), ("kind", 2),
        ("atomic", 1), ("generation", 6), ("cookie", 32), ("length", 32)]

# Deposit ------------------------------------------------------------------------------------------

def far_field(address_bits, name):
    """A flag beside fields that are cut to `address_bits` (64 or 32): a cut-off bit was
    significant.
    """
    assert address_bits in (32, 64)
    return [(name, 1)] if address_bits < 64 else []

def walk_layout(address_bits=64):
    """One side of a transfer, in bus addresses, ready to be walked.

    address   : start of the walk: region base + offset
    low, high : every byte must lie in [`low`, `high`)
    length    : bytes to produce
    skip      : bytes of the whole walk to skip before them
    stride*   : signed, in bytes
    listed    : the outermost level is an index list, over at most 2 strided `levels`. Then
                `stride2` is the bus address of its first entry, and `count2` the entries from there
                to the end of its region
    """
    return EndpointDescription(
        [("address", address_bits), ("low", address_bits), ("high", address_bits), ("block", 32),
         ("levels", 2), ("listed", 1), ("stride0", address_bits), ("stride1", address_bits),
         ("stride2", address_bits), ("count0", 32), ("count1", 32), ("count2", 32), ("length", 32),
         ("skip", 32)])

def piece_layout(address_bits=64):
    """Consecutive bytes of a walk; `last` on the transfer's final piece.

    `error`: the walk leaves its region here. This piece has no bytes and is the last one. After
    address translation any piece may have `error`; then all later pieces of its transfer have it
    too. `fault` tells other errors: FAULT_READ, a page or index list could not be read; FAULT_LIST,
    the index list has ended.
    """
    return EndpointDescription(
        [("address", address_bits), ("length", 13), ("error", 1), ("fault", FAULT_BITS)])

FAULT_READ, FAULT_LIST, FAULT_BITS = 1, 2, 2

def list_order_layout(address_bits=64):
    """An order to read an index list: the entry at bus address `address` and `more` entries after
    it.

    Each entry is added to `origin`.
    """
    return EndpointDescription([("address", address_bits), ("more", 32), ("origin", address_bits)])

def list_base_layout(address_bits=64):
    """The base address from one entry of an index list; `last` on the last entry of a walk.

    `error`: the entry could not be read. `far` (only with narrow addresses): the base is beyond the
    card's addresses.
    """
    return EndpointDescription(
        [("base", address_bits), ("error", 1)] + far_field(address_bits, "far"))

def payload_layout(data_width):
    """Payload of one packet (inside gather: of one transfer), without addresses.

    Every line is full except the `last` one: this has `bytes` bytes in its low lanes (1 to
    data_width//8). On the other lines `bytes` is data_width//8. A packet without payload has no
    line.

    `error` on the last line: the data since the previous `last` is void. Sending: the packet ends
    as bad. Receiving: the packet was cut short after good blocks; write no more of it.

    Receiving, the first line of a block comes when the whole block is known to be good; for the
    last block, when the whole packet is good. The other lines of the block follow without gaps.
    """
    return EndpointDescription([("dat", data_width), ("bytes", count_bits(data_width)), ("error", 1)])

def job_layout():
    """A send job from the control program, in lane BULK. `skip` is the start of one of its packets.

    `node` and `length` are the checked values of the control program; those in the slot are not
    used. `response`: the job answers a get or receive, and `message` is its message word.
    `indirect`: it answers a receive, whose walk is in slot `target` of the INBOX, with
    `target_levels`.
    """
    return EndpointDescription(
        [("endpoint", 8), ("slot", 8), ("psn", 16), ("incarnation", 8), ("epoch", 4), ("node", 8),
         ("length", 32), ("skip", 32), ("tag", 10), ("response", 1), ("indirect", 1),
         ("target_levels", 3),
         ("target", 8), ("message", 32)])

def job_done_layout():
    """The end of a job: `status` as enum status, `psn` the next free PSN, `checksum` of its bytes
    (RFC 1071).
    """
    return EndpointDescription([("tag", 10), ("status", 8), ("psn", 16), ("checksum", 16)])

def job_end_layout():
    """The end of a job, with the node that it was sent to."""
    return EndpointDescription(job_done_layout().payload_layout + [("node", node_bits())])

def express_layout():
    """A packet of the EXPRESS lane, made from a slot alone: an inline put, or with `message` the
    slot itself.

    `length` is the payload of an inline put, in bytes; `word` is the message word.
    """
    return EndpointDescription(
        [("endpoint", 8), ("slot", 8), ("psn", 16), ("incarnation", 8), ("epoch", 4), ("node", 8),
         ("length", 8), ("message", 1), ("word", 32)])

def deposit_done_layout():
    """The end of a received packet at the scatter engine: refused, or in memory.

    In memory means handed to the PHY. The packet is there when `open` is 0, see `Landing`. Ends
    come in the order of the deposits; `node`, `incarnation` and `psn` are the deposit's. A packet
    that was cut short (payload `error`) has no end.
    """
    return EndpointDescription(
        [("lane", 1), ("node", 16), ("incarnation", 8), ("psn", 16), ("refused", 1), ("reason", 8)])

def slot_port(data_width):
    """A read port of the command slots, behind an arbiter.

    `adr` counts lines of `data_width` bits: ((endpoint*SLOTS + slot)*SLOT_BYTES)//(data_width//8) +
    line of the slot. A read is accepted in a cycle with `valid` and `ready`; `dat_r` is valid
    exactly 2 cycles later.
    """
    return Record([
        ("valid", 1, DIR_M_TO_S), ("ready", 1, DIR_S_TO_M), ("adr", 16, DIR_M_TO_S),
        ("dat_r", data_width, DIR_S_TO_M)])

def slot_write_port(data_width):
    """A write port of the slots, behind an arbiter; `adr` as in slot_port, `be` has one bit a byte.
    """
    return Record([
        ("valid", 1, DIR_M_TO_S), ("ready", 1, DIR_S_TO_M), ("adr", 16, DIR_M_TO_S),
        ("dat_w", data_width, DIR_M_TO_S), ("be", data_width//8, DIR_M_TO_S)])

def region_layout():
    """The region table's answer; `found` is 0 if no region has this key."""
    return [("found", 1), ("base", 64), ("length", 64), ("rights", 4), ("owner", 8)]

# Packet -------------------------------------------------------------------------------------------

def send_layout():
    """A packet to send; its payload, if any, follows.

    The destination's walk is not carried here: it is read from the command slot (`endpoint`,
    `slot`) while the header leaves. `skip` is the packet's position in the transfer, in bytes. With
    the flag RESPONSE, the context is `message[16:]` and the notice's value is `message`.
    `indirect`: the walk is read from slot `target` of the INBOX.
    """
    return EndpointDescription(
        [("node", 16), ("incarnation", 8), ("epoch", 4), ("psn", 16), ("flags", 8), ("levels", 3),
         ("endpoint", 8), ("slot", 8), ("indirect", 1), ("target", 8), ("skip", 32), ("length", 13),
         ("message", 32)])

def deposit_layout(address_bits=64):
    """A received packet with a good header, in order, for this node: a deposit, or with
    `is_message` a message.

    context  : of a RESPONSE
    key      : of the region; of a message, its word
    levels   : as in the packet: with LIST, level 2 holds the list's offset and key
    far      : only with narrow addresses: the offset or a stride had bits that were cut off
    list_far : the same of the list's offset
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
    """An acknowledgement of a flow, sent or received.

    `flags` as in enum packet_flag; EXPRESS is the flow's lane. `refusals` counts the flow's refused
    packets up to `ack`, modulo 256.
    """
    return EndpointDescription(
        [("node", 16), ("incarnation", 8), ("ack", 16), ("psn", 16), ("flags", 8), ("reason", 8),
         ("refusals", 8)])

def arrival_layout():
    """A notice or message for the control program; all bytes before it have been handed to the PHY.

    `is_message`: it is in `slot` of the inbox, and `value` is its message word. `response`: the
    answer to a get is complete, and `value` is its message word.
    """
    return EndpointDescription(
        [("node", 16), ("endpoint", 8), ("interrupt", 1), ("value", 32), ("length", 32),
         ("key", 32), ("is_message", 1), ("response", 1), ("slot", 8)])

# Link ---------------------------------------------------------------------------------------------

def word_layout(width=32):
    """A packet as 32-bit words, byte 0 of the wire in bits 7:0. `bad` on `last`: drop the packet.

    `prefix`: the number of prefix words, valid on the first word.

    With a `width` of 64, two words go at once, the first in the low half. With `half` there is only
    the low one. Between layers only prefix words and the last word of a packet have `half`.
    """
    return EndpointDescription(
        [("data", width), ("bad", 1)] + ([("half", 1)] if width == 64 else []),
        [("channel", 2), ("prefix", 3)])

def scout_layout():
    """A scout or the answer to one. Sent: `node` is the target and `route` the route to it.
    Received: `node` is its sender.
    """
    return EndpointDescription(
        [("node", 16), ("reply", 1), ("number", 32), ("back", 32), ("route", 32)])

def serial_tx_layout():
    """To the transceiver: four symbols a word, with their `k` flags; `ready` sets the pace."""
    return EndpointDescription([("data", 32), ("k", 4)])

def serial_rx_layout():
    """From the transceiver, without backpressure: `ready` is ignored. Each symbol has its error
    flags.
    """
    return EndpointDescription([("data", 32), ("k", 4), ("code_error", 4), ("disparity_error", 4)])

def block_layout():
    """A block of 64b/66b of one lane: its synchronisation header and 64 bits.

    `data`: the first bit on the wire is lowest. `header`: the number as IEEE 802.3 prints it, so its
    high bit leaves first.
    """
    return EndpointDescription([("header", 2), ("data", 64)])

def row_layout(lanes):
    """A block of each lane, side by side; lane 0 lowest."""
    return EndpointDescription([("header", 2*lanes), ("data", 64*lanes)])

def line_layout(data_width):
    """A line of a packet. `words`: how many of its 32-bit words count, from the low end on. `seal`:
    the header or a block ends behind them. Each `last` line has `seal`, too. `bad` on `last`: the
    packet must be dropped.
    """
    return [("data", data_width), ("words", bits_for(data_width//32)), ("seal", 1), ("bad", 1)]

def chunk_layout():
    """The words of a packet in one row of the bonded link, moved to the low end: 7 or 8 of them, and
    in the `last` row 0 to 7. What stands above them has no meaning.

    `bad` on `last`: drop the packet.
    """
    return EndpointDescription([("data", 256), ("words", 4), ("bad", 1)])

# Ethernet -----------------------------------------------------------------------------------------

def frame_layout():
    """A frame of a MAC, from the destination address on, without FCS; byte 0 of the wire in bits
    7:0.

    bytes : on `last`, how many bytes the word has, from its low end; 8 on all other words
    error : with `last`, received: the FCS is wrong, or the MAC cut the frame off
    """
    return EndpointDescription([("data", 64), ("bytes", 4), ("error", 1)])

def xgmii_layout():
    """Eight characters of XGMII, the first in `data` 7:0 and `control` 0: IEEE 802.3-2018, 46.3."""
    return EndpointDescription([("data", 64), ("control", 8)])

def unit_layout():
    """Eight bytes of a frame, moved so that its header is one unit. `whole`: all eight came."""
    return EndpointDescription([("data", 64), ("whole", 1), ("error", 1)])

def stored_layout():
    """A unit of a channel's payload. With `half`, only its low 32 bits are the packet's."""
    return EndpointDescription([("data", 64), ("half", 1), ("bad", 1)])

def fragment_layout(targets=0):
    """What a DATA frame carries: enum ethernet_control's bits, and its length in units. With
    `targets`, also one-hot where it goes.
    """
    return EndpointDescription(
        [("units", 12), ("half", 1), ("starts", 1), ("ends", 1), ("bad", 1)] +
        ([("target", targets)] if targets else []))
