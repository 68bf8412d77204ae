"""The interface of gateware, control program, host library, simulator and documentation.

`python -m dibber.interface.generate` turns this file into the C header and the reference page.
docs/design explains the layouts. The interface hash covers names and layouts, but no texts.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.schema import Field, Interface, Member, Register
from dibber.interface.schema import bank, enum, struct
from dibber.interface.ethernet import (
    ETHERNET_CONSTANTS, ETHERNET_COUNTER, ETHERNET_ENUMS, ETHERNET_STRUCTS)
from dibber.interface.sizes import (
    ENDPOINT_BITS, ENDPOINTS, FLOW_WORDS, MORE_ENDPOINTS, MORE_NODES, NODE_BITS, NODES)
from dibber.interface.switch import SWITCH, SWITCH_CONSTANTS, SWITCH_COUNTER, SWITCH_DROP
from dibber.interface.two_cables import two_cables
from dibber.interface.window import WINDOW, WINDOW_CONSTANTS

VERSION = (0, 5)

# EVENTS has 32 bits: a wide node number leaves room for two events fewer, a wide endpoint number
# for one fewer. Then one bit stands for events that one handler serves.
EVENT_BITS = 31 - 7 - 1 - NODE_BITS - 5 - ENDPOINT_BITS

# Constants ----------------------------------------------------------------------------------------

CONSTANTS = (
    ("MAGIC",            0x52424944, "\"DIBR\" read as a little-endian word"),
    ("FIRMWARE_MAGIC",   0x4d424944,
        "\"DIBM\", read as a little-endian word: a control program image"),
    ("PCI_VENDOR",           0x1209, "pid.codes, vendor identity for open hardware"),
    ("PCI_DEVICE",           0xd1bb, "not registered yet: see docs/design/column.md"),
    ("PCI_CLASS",          0x028000, "network controller, other"),

    ("BAR0_SIZE",          0x100000, "bytes of BAR 0, the only BAR"),
    ("HOST_BASE",           0x00000, "BAR 0: identity and host registers (bank `host`)"),
    ("FLASH_BUFFER",        0x00800,
        "BAR 0: write: the bytes that a flash transfer sends after its command; read: the bytes "
        "that came meanwhile"),
    ("MSIX_TABLE_BASE",     0x01000, "BAR 0: MSI-X table, 16 bytes a vector"),
    ("MSIX_PBA_BASE",       0x01800, "BAR 0: MSI-X pending bits"),
    ("FIRMWARE_BASE",       0x40000,
        "BAR 0: window of the control program's SRAM, as long as the SRAM; at most SRAM_MAX"),
    ("ENDPOINT_BASE",       0x80000,
        "BAR 0: pages of endpoint 0; there is room for 64 endpoints up to BAR0_SIZE"),
    ("ENDPOINT_STRIDE",      0x2000, "bytes from one endpoint's pages to the next"),
    ("SLOT_OFFSET",          0x0000, "endpoint pages: command slots"),
    ("DOORBELL_OFFSET",      0x1000, "endpoint pages: the doorbell page (bank `doorbell`)"),

    ("ENDPOINTS",         ENDPOINTS,
        "largest number of endpoints of a card, see GEOMETRY; the administrator's commands come "
        "through endpoint 0"),
    ("SLOTS",                    32, "command slots of an endpoint, a power of two"),
    ("SLOT_BYTES",              128, "bytes of a command slot"),
    ("OUTBOX",            ENDPOINTS,
        "number in place of an endpoint: the slots that the control program fills with messages "
        "to send"),
    ("INBOX",         ENDPOINTS + 1,
        "number in place of an endpoint: the slots that hold messages from other nodes"),
    ("SLOT_SETS",     ENDPOINTS + 2, "sets of SLOTS slots: endpoints, outbox and inbox"),
    ("QUEUES",          2*ENDPOINTS,
        "queues in host memory: queue n has the completions of endpoint n, queue ENDPOINTS + n "
        "its events"),
    ("VECTORS",           ENDPOINTS, "MSI-X vectors"),
    ("HOLD_OFF_UNIT",           128, "cycles of a unit of HOLD_OFF.time"),
    ("REGIONS",                  64, "entries of the region table, a power of two"),
    ("NODES",                 NODES, "number of nodes in a network, this card included"),
    ("ROUTES",                    4, "routes to a node that the control program stores"),
    ("ROUTE_HOPS",                7,
        "largest number of switches on a route. A route is one word: bits 3:0 are the number of "
        "switches; each switch has 4 more bits, the first one lowest. A switch adds its 4 bits "
        "to the number of the port by which the packet came, modulo its ports, and sends the "
        "packet from that port. With two links, bit 3 is the link that the route begins at"),
    ("ROUTE_LINK",                8, "this bit of a route"),
    ("SCOUTED_TWO",               4,
        "word of a card that a scout came to: this bit says that it has two links, ROUTE_LINK is "
        "the link that the scout came by, and 31:8 are its clock when its program began"),
    ("SCOUTS",                    4,
        "scouts and their answers that can wait for the control program"),
    ("ANYBODY",              0xffff,
        "target of a scout: the node at the end of its route, whatever its number"),
    ("LEVELS",                    3, "stride levels of a walk"),
    ("LIST",                      4,
        "value in a levels field: the outermost level is an index list over at most LIST_LEVELS "
        "strides; the field is 4 + strides"),
    ("LIST_LEVELS",               2, "stride levels under an index list"),
    ("LIST_ENTRY_BYTES",          8,
        "bytes of an entry of an index list: a signed offset, added to the walk's `offset`"),
    ("SRAM_MAX",            0x40000,
        "bytes of the largest control program SRAM; host register SRAM has the size of this "
        "card's"),
    ("SRAM_SCARCE",         0x10000,
        "bytes of the control program SRAM on cards with little block RAM"),
    ("IMAGE_SCARCE",         0x8c00,
        "bytes of the largest image for an SRAM of SRAM_SCARCE; for a larger SRAM it is half the "
        "SRAM"),
    ("SHARED_FROM_END",      0x2000,
        "distance in bytes from the start of struct mcp_shared to the end of the SRAM"),
    ("MAX_LENGTH",       0xffffffff, "bytes of the longest transfer"),
    ("MAX_OFFSET",   0xffffffffffff, "highest offset in a region (a packet carries 48 bits)"),

    ("PACKET_PAYLOAD",         4096, "payload bytes of the longest packet"),
    ("BLOCK_BYTES",             256, "payload bytes that one CRC covers"),
    ("INLINE_BYTES",             64, "largest payload in a command itself, in bytes"),
    ("MESSAGE_BYTES",           128, "payload bytes of a message: one slot"),
    ("LANES",                     2, "lanes to each node; flow number = lane * NODES + node"),
    ("WINDOW",                   64, "packets of a flow that may be sent and not yet acknowledged"),
    ("FAST_PUTS",                31,
        "largest number of puts of a flow that the fast path has under way"),
    ("FAST_LENGTH",        0x3fffff, "bytes of the longest put that the fast path takes"),
    ("HEADER_WORDS",              6, "32-bit words of a packet header, without extension and CRC"),
    ("CRC_POLYNOMIAL",   0x1edc6f41, "CRC-32C (Castagnoli), RFC 3720, section 12.1"),

    ("FLASH_BYTES",             512, "bytes of FLASH_BUFFER"),
    ("FLASH_KEY",        0x48534c46, "\"FLSH\", the value that unlocks FLASH_UNLOCK"),

    ("MCP_REGISTER_BASE", 0x80000000, "address of bank `mcp` for the control program"),
    ("MCP_SLOT_BASE",     0x80010000,
        "address of the slots for the control program: all sets in order. Sets of missing "
        "endpoints read as anything. Only the OUTBOX can be written, in whole words"),

    ("EVENTS_HOLD",            4096,
        "a load of EVENTS_HELD waits for an event until the card's clock is a multiple of so many "
        "cycles"),
    ("TRACE_ENTRIES",           256, "entries of the control program's trace ring"),
    ("QUEUE_ENTRY_BYTES",        32, "bytes of a completion or event"),
    ("QUEUE_MAX_ENTRIES",     65536, "entries of the longest completion or event queue"),

    ("BRIDGED_MEMORY",   0x40000000,
        "bus address of the memory of a card without PCIe; BAR 0 is at bus address 0"),
    ("BRIDGE_BASE",      0x60000000, "bus address of bank `bridge`"),
    ("BRIDGE_SIGNATURE", 0x55424944, "\"DIBU\": a card behind a UART"),
    ("BRIDGED_CHUNKS",          256, "parts of this memory, each with a bit in CHANGED"),
    ("FRAME_REQUEST",          0xd1, "first byte of a frame to the card"),
    ("FRAME_REPLY",            0xb1, "first byte of a frame from the card"),
    ("FRAME_WORDS",              64, "largest number of words that a frame reads or writes"),

    ("CLOCK_MESSAGE",        0xd1b0, "vfio-user command number of the simulator's clock extension"),
    *SWITCH_CONSTANTS,
    *ETHERNET_CONSTANTS,
    *WINDOW_CONSTANTS,
)

# Enumerations -------------------------------------------------------------------------------------

OPCODE = enum("opcode", 8, "what a command asks for",
    ("NOP",             0x00, "completes at once; to measure the command path"),
    ("PUT",             0x01, "source walk to destination walk on another node"),
    ("PUT_INLINE",      0x02,
        "up to INLINE_BYTES in the command itself to contiguous memory of another node"),
    ("GET",             0x03, "source walk on another node to destination walk here"),
    ("SEND",            0x04,
        "source walk to the destination of the target endpoint's next RECEIVE from this endpoint"),
    ("RECEIVE",         0x05, "destination walk for the next SEND of a node's endpoint"),
    ("FETCH_ADD",       0x08, "atomic: add the operand"),
    ("SWAP",            0x09, "atomic: store the operand"),
    ("COMPARE_SWAP",    0x0a, "atomic: store the operand if the value equals `compare`"),
    ("MASKED_SWAP",     0x0b, "atomic: store the operand's bits where `mask` has ones"),
    ("ENDPOINT_OPEN",   0x80, "administrator: give an endpoint its queues"),
    ("ENDPOINT_CLOSE",  0x81, "administrator: close an endpoint and its queues"),
    ("REGION_ADD",      0x82, "administrator: enter a region into the table"),
    ("REGION_REMOVE",   0x83, "administrator: remove a region from the table"),
    ("SCOUT",           0x84, "administrator: ask which node is at the end of a route"),
    ("ROUTE_SET",       0x85, "administrator: set or remove a route to a node"),
)

FLAG = enum("flag", 8, "bits of command.flags",
    ("NOTICE",    1, "the target endpoint gets an event when all bytes are in memory"),
    ("INTERRUPT", 2, "with NOTICE: the event raises the target endpoint's interrupt too"),
    ("SOLICIT",   4, "the completion raises this endpoint's interrupt"),
    ("FENCE",     8,
        "the command starts after all earlier commands of this endpoint have completed"),
    ("CHECKSUM", 16, "PUT: the completion's key is the Internet checksum of the bytes (RFC 1071)"),
)

STATUS = enum("status", 8, "why a command ended; also the reason in a refusal",
    ("OK",                   "done: every byte was handed to the target's host"),
    ("BAD_OPCODE",           "unknown operation, or not allowed for this endpoint"),
    ("BAD_FLAGS",            "a flag that the operation does not have"),
    ("BAD_LEVELS",           "more than three stride levels, or more than two under an index list"),
    ("BAD_COUNT",            "a count or block of zero in a transfer with bytes"),
    ("BAD_LENGTH",           "the counts times the block differ from the length"),
    ("BAD_NODE",             "no such node, or this node itself: a card has no path to its own"
                             " memory through the link; copy there with the CPU"),
    ("BAD_KEY",              "source: no region has this key"),
    ("NOT_OWNER",            "source: the region belongs to another endpoint"),
    ("NOT_PERMITTED",        "source: the region may not be read"),
    ("BOUNDS",               "source: the walk leaves the region"),
    ("REMOTE_BAD_KEY",       "destination: no region has this key"),
    ("REMOTE_NOT_PERMITTED", "destination: the region may not be written from the wire"),
    ("REMOTE_BOUNDS",        "destination: the walk leaves the region"),
    ("REMOTE_BAD_HEADER",    "destination: the header contradicts itself"),
    ("READ_ERROR",           "the host answered a read with an error"),
    ("READ_TIMEOUT",         "the host did not answer a read in time"),
    ("TIMEOUT",              "no acknowledgement in time: cable, peer or packets lost"),
    ("BAD_ARGUMENT",         "an argument is out of range"),
    ("IN_USE",
        "the endpoint is already open, the region's table entry is in use, or its key was given "
        "out before"),
    ("FLUSHED",              "the endpoint was closed or the flow reset before this command ran"),
    ("REMOTE_ALIGNMENT",
        "destination: an atomic's operand is not naturally aligned, or its size is not 4 or 8 "
        "bytes"),
    ("REMOTE_READ_ERROR",    "the other node's host answered a read with an error, or not in time"),
    ("TRUNCATED",            "the message is longer than its receive; nothing was written"),
    ("BAD_LIST",
        "source: the index list's key is unknown, its region belongs to another endpoint or may "
        "not be read, or the list leaves its region"),
    ("REMOTE_BAD_LIST",
        "destination: an index list's key is unknown, its region belongs to another endpoint or "
        "may not be read, or the list leaves its region"),
    ("REWOUND",
        "never in a completion: a send job was stopped, because its flow is sent again"),
    ("HALTED",
        "the control program was halted or reloaded before this command ended; reported by "
        "libdibber"),
    ("PEER_RESTARTED",
        "the peer was reset or got a new control program during the command; it is unknown "
        "whether the command was executed"),
)

RIGHT = enum("right", 4, "bits of region.rights",
    ("LOCAL_READ",   1, "source of a put or send"),
    ("LOCAL_WRITE",  2, "destination of a get or receive"),
    ("REMOTE_READ",  4, "remote nodes may get from it; with REMOTE_WRITE also atomics"),
    ("REMOTE_WRITE", 8, "remote nodes may put into it"),
)

PACKET = enum("packet", 8, "packet types",
    ("DEPOSIT", 1, "payload and its destination"),
    ("ACK",     2, "cumulative acknowledgement, or a refusal"),
    ("MESSAGE", 3,
        "a slot for the target's control program; `key` is the message word. Only in lane "
        "EXPRESS"),
    ("SCOUT",   4,
        "the receiver answers by the route in `offset_low`; `key` is the scout's number. Channel "
        "CONTROL, target ANYBODY, in no flow"),
    ("SCOUT_REPLY", 5, "the answer to a scout; `key` is the scout's number. Channel CONTROL"),
    ("QUESTION", 6,
        "asks which incarnation of a flow the target holds; `psn` is a token. Only a header, in "
        "no flow"),
)

PACKET_FLAG = enum("packet_flag", 8, "bits of packet_header.flags",
    ("FIRST",     1,
        "first packet of an incarnation: PSN 0. ACK: it answers a QUESTION, and `psn` is its "
        "token"),
    ("LAST",      2, "last packet of a transfer"),
    ("NOTICE",    4, "the extension ends with three words of notice"),
    ("REFUSED",   8,
        "ACK: `psn` was refused for the reason in `key`; later packets are not affected. With "
        "PEER_RESTARTED the target does not hold the flow, and `ack` acknowledges nothing"),
    ("NAK",      16, "ACK: a packet after `ack` was lost, and all later ones were dropped"),
    ("INTERRUPT",32, "the notice raises an interrupt"),
    ("EXPRESS",  64, "the packet belongs to the flow of lane EXPRESS; ACK: it is about this flow"),
    ("RESPONSE",128, "answers a get or receive, whose context is in `ack`"),
)

MESSAGE = enum("message", 8,
    "message word, bits 7:0. Bits 15:8 are an endpoint. Bits 31:16 are a context of the "
    "requesting control program: the command's tag, below its generation",
    ("GET",          1,
        "a command slot: send what `source` describes to the destination in `target`"),
    ("GET_FAILED",   2, "a reply: the get or receive was not completed"),
    ("ATOMIC",       3, "the slot of an atomic command: execute it"),
    ("ATOMIC_REPLY", 4, "a reply: the value before the atomic"),
    ("READY",        5,
        "the slot of a RECEIVE command: it waits for the SEND of the endpoint that it names"),
    ("READY_CANCEL", 6, "this receive does not wait any more"),
    ("LATE",         7, "a question about a get: its answer is late. Is it still to come?"),
    ("LATE_REPLY",   8, "the reply to LATE: the send engine is at work, so the get waits longer"),
)

LANE = enum("lane", 2, "kinds of flows",
    ("EXPRESS", 0, "packets made from slots: inline puts and messages. Channel EXPRESS"),
    ("BULK",    1, "packets with payload from host memory. Channel BULK"),
)

FAST_KIND = enum("fast_kind", 2, "kinds of packets that the fast path has under way in a flow",
    ("PUT",    "a PUT_INLINE or PUT; it ends with its completion"),
    ("ASK",
        "a GET or atomic, sent as a message (request). It leaves the flow when it is "
        "acknowledged, and ends with its answer"),
    ("ANSWER",
        "the answer to a GET, sent from the request's slot of the INBOX, which is free when it "
        "ends"),
    ("REPLY",
        "the reply to an atomic, sent from the request's slot of the INBOX, which is free when "
        "it ends"),
)

ENTRY = enum("entry", 8, "kinds of queue entries",
    ("COMPLETION", 1, "a command of this endpoint ended"),
    ("NOTICE",     2, "a put with notice arrived"),
)

CHANNEL = enum("channel", 2, "virtual channels of the link",
    ("CONTROL", 0,
        "acknowledgements; has priority over all other channels, also within their packets"),
    ("EXPRESS", 1,
        "inline puts, requests and short replies; has priority over BULK, also within its "
        "packets"),
    ("BULK",    2, "deposits, including answers to gets; the target's memory always accepts them"),
    ("SPARE",   3, "unused"),
)

MCP_STATE = enum("mcp_state", 8,
    "what the control program is doing; shown in host register MCP_STATE",
    ("RESET",     "held in reset"),
    ("BOOT",      "started, not yet ready"),
    ("IDLE",      "waiting for an event"),
    ("COMMAND",   "handling a command"),
    ("SEND_DONE", "handling the end of a send job"),
    ("ACK",       "handling acknowledgements"),
    ("ARRIVAL",   "handling an arrival"),
    ("TIMER",     "handling the timer"),
    ("TRAP",      "stopped by an exception: see mcp_shared.trap"),
    ("SCOUT",     "handling a scout or its answer"),
    ("WATCHDOG",  "stopped by the watchdog, because it did not even reach its trap handler"),
    ("BUS_MASTER",
        "stopped, because the host has not allowed access to its memory for 41 ms: PCI Command, "
        "bit 2"),
)

TRACE = enum("trace", 24,
    "event numbers of the trace ring, with their two arguments in parentheses. Successful work "
    "leaves no events on the EXPRESS lane and on the fast path",
    ("BOOT",         1, "(identity, cycles)"),
    ("COMMAND",      2, "a command that sends nothing was taken (tag, first word)"),
    ("COMPLETION",   3, "such a command ended (endpoint << 8 | status, cookie)"),
    ("JOB",          4, "a send job was queued (tag, extended PSN of its first packet)"),
    ("JOB_ERROR",    5, "a send job failed (JOB_DONE, extended PSN after it)"),
    ("JOB_UNKNOWN",  6, "the end of an unknown job (JOB_DONE, 0)"),
    ("REFUSED",      7, "(REFUSAL, tag of the transfer or 0xffff)"),
    ("ACK_UNKNOWN",  8, "an acknowledgement of a packet that was not sent (flow, ACKED)"),
    ("TIMEOUT",      9, "a flow was given up (flow, extended PSN that is not acknowledged)"),
    ("INCARNATION", 10, "a new flow (flow, incarnation)"),
    ("ARRIVAL",     11, "(ARRIVAL, value)"),
    ("OPEN",        13, "(endpoint, COMMAND_HEAD)"),
    ("CLOSE",       14, "(endpoint, COMMAND_HEAD)"),
    ("REPLAY",      15, "a flow was rewound (flow, extended PSN that is missing)"),
    ("LINK",        16, "the link changed (LINK, flows 31:0 with packets under way)"),
    ("STRAY",       17, "a message that matches no command here (ARRIVAL, message word)"),
    ("ARM",         18, "a flow was given to the fast path (flow, extended PSN)"),
    ("CLAIM",       19, "a flow was taken back from the fast path (flow, puts under way)"),
    ("ROUTE",       20, "packets to a node take another route (node, place of the route)"),
    ("RESTARTED",   21,
        "a target does not hold a flow any more (flow, extended PSN that it refused)"),
)

LINK_STATE = enum("link_state", 4, "host register LINK_STATUS",
    ("DOWN",     "no signal or no comma"),
    ("ALIGN",    "commas are received; the other end does not receive us yet"),
    ("UP",       "both ends receive each other"),
    ("TEST",     "PRBS or a loopback is on: no packets"),
)

LINK_REASON = enum("link_reason", 4, "why the link is not UP, as far as this end can tell",
    ("NONE",       "no reason: the link is UP"),
    ("NO_SIGNAL",  "the transceiver detects no signal: no cable, or the other end is off"),
    ("NO_COMMA",   "symbols are received, but no comma: the other end is no Dibber"),
    ("WRONG_RATE", "most symbols are no valid code: wrong rate, or not 8b/10b"),
    ("POLARITY",   "inverted flow words: the two wires of a pair are exchanged"),
    ("NOT_HEARD",  "the other end does not receive us: check its receive pair"),
    ("SILENCE",    "flow words stopped"),
    ("LOOPBACK",   "our own nonce is received"),
    ("TEST",       "a test is on in LINK_CONTROL"),
    ("NO_HELLO",   "over Ethernet: no STATUS frame of another card is received"),
)

PRBS = enum("prbs", 3, "pseudo-random bit sequences of ITU-T O.150; bit 0 of a word is sent first",
    ("OFF",    0, ""),
    ("PRBS7",  1, "x^7 + x^6 + 1"),
    ("PRBS15", 2, "x^15 + x^14 + 1, inverted"),
    ("PRBS23", 3, "x^23 + x^18 + 1, inverted"),
    ("PRBS31", 4, "x^31 + x^28 + 1, inverted"),
)

CLOCK_OP = enum("clock_op", 32, "simulator clock extension: requests of a participant",
    ("JOIN",   1, "the endpoint takes part in the clock from now on"),
    ("CHARGE", 2,
        "`count` calls of kind `call` were made: charge CPU time from the profile's table"),
    ("WAIT",   3, "wait for a write by the card into [watch, watch+length) or for the deadline"),
    ("LEAVE",  4,
        "do not hold the clock; with `count` 1 for good, so that no participant waits for this "
        "one's return; with `count` 2 as a pause, which no participant waits for either"),
    ("ENTER",  5,
        "hold the clock again; answered when all participants that left temporarily have "
        "returned, and at once after a pause"),
    ("NOW",    6, "ask for the time"),
)

CALL = enum("call", 32, "library calls whose CPU time is charged",
    ("PUT",             1, "dib_put"),
    ("PUT_STRIDED",     2, "dib_put_strided"),
    ("POLL_EMPTY",      3, "dib_poll that finds nothing"),
    ("POLL_ENTRY",      4, "dib_poll, each entry found"),
    ("MAILBOX_SEND",    5, "dib_mailbox_send with its command, without COPY"),
    ("MAILBOX_RECEIVE", 6, "dib_mailbox_receive that takes a message, without COPY"),
    ("MAILBOX_EMPTY",   7, "dib_mailbox_receive that takes none, for each peer that it checks"),
    ("COPY",            8, "the CPU copies `count` bytes, by the profile's model of memory"),
)

ENUMS = (OPCODE, FLAG, STATUS, RIGHT, PACKET, PACKET_FLAG, MESSAGE, LANE, FAST_KIND, ENTRY,
         CHANNEL, MCP_STATE, TRACE, LINK_STATE, LINK_REASON, PRBS, CLOCK_OP, CALL,
         SWITCH_DROP, SWITCH_COUNTER, *ETHERNET_ENUMS)

# Structures ---------------------------------------------------------------------------------------

WALK = struct("walk", 52,
    "one side of a transfer: up to three strides over a block, or an index list over up to two",
    Member("key",    "u32", "region key"),
    Member("block",  "u32", "bytes of the innermost, contiguous block"),
    Member("offset", "u64", "bytes from the region's start to the first block"),
    Member("stride", "u32",
        "bytes from one block to the next, signed 64 bits as (low, high), level 0 "
        "innermost; with LIST, level 2 is the list's offset in its region, a multiple "
        "of 8", count=6),
    Member("count",  "u32",
        "blocks of each level; levels above command.levels are ignored; with LIST, "
        "level 2 is the key of the list's region", count=3),
)

COMMAND = struct("command", 128, "one command slot",
    Member("opcode",   "u8",  "enum opcode"),
    Member("flags",    "u8",  "enum flag"),
    Member("levels",   "u8",
        "source in bits 3:0, target in bits 7:4: stride levels, or LIST + stride levels"),
    Member("endpoint", "u8",
        "target endpoint of a notice; SEND and RECEIVE: the endpoint at the other node"),
    Member("node",     "u16", "the other node"),
    Member("reserved0","u16", "0"),
    Member("length",   "u32",
        "bytes of the transfer; RECEIVE: the largest message that it accepts"),
    Member("cookie",   "u32", "returned in the completion"),
    Member("notice",   "u32", "value of the notice"),
    Member("reserved1","u32", "0"),
    Member("target",   "walk",
        "destination walk. PUT_INLINE has only key and offset; its bytes start at byte 64"),
    Member("source",   "walk", "source walk"),
    known=(WALK,))

INLINE = struct("inline_command", 128, "PUT_INLINE: a command that carries its bytes",
    Member("head",     "u32", "as in struct command", count=6),
    Member("key",      "u32", "target region"),
    Member("block",    "u32", "bytes, as `length`"),
    Member("offset",   "u64", "in the target region"),
    Member("reserved", "u32", "0", count=6),
    Member("data",     "u8",  "the bytes", count=64),
)

ATOMIC = struct("atomic_command", 128,
    "an atomic operation; its completion has the value before the operation, in `length` (low) "
    "and `key` (high)",
    Member("head",     "u32",
        "as in struct command; length is the operand's size, 4 or 8", count=6),
    Member("key",      "u32", "target region"),
    Member("reserved0","u32", "0"),
    Member("offset",   "u64", "in the target region; naturally aligned in host memory"),
    Member("reserved1","u32", "0", count=6),
    Member("operand",  "u64", ""),
    Member("compare",  "u64", "COMPARE_SWAP"),
    Member("mask",     "u64", "MASKED_SWAP"),
    Member("reserved2","u32", "0", count=10),
)

REPLY = struct("reply", 128, "a message that answers a message",
    Member("value",    "u64",
        "ATOMIC_REPLY: the value before the atomic; GET_FAILED with TRUNCATED: bytes of the "
        "message"),
    Member("status",   "u32", "enum status"),
    Member("reserved", "u32", "0", count=29),
)

ADMIN = struct("admin_command", 128, "a command of the administrator, in a slot of endpoint 0",
    Member("opcode",   "u8",  "enum opcode, 0x80 and above"),
    Member("flags",    "u8",  "0 or SOLICIT"),
    Member("rights",   "u8",  "REGION_ADD: enum right"),
    Member("endpoint", "u8",  "endpoint to open or close; owner of the region"),
    Member("vector",   "u16", "ENDPOINT_OPEN: MSI-X vector of both queues"),
    Member("page",     "u16",
        "REGION_ADD: 0, or for a paged region log2 of the page size in bytes, 12 to 30"),
    Member("key",      "u32",
        "REGION_*: the key, never 0; key modulo REGIONS is the table entry. REGION_ADD: one of "
        "the KEYS_LEFT numbers from KEY_NEXT on"),
    Member("cookie",   "u32", "returned in the completion"),
    Member("base",     "u64",
        "REGION_ADD: bus address of the first byte. Paged: bus address of the page table, a "
        "multiple of 64. It has the bus address of each page, with bit 0 set if the page is "
        "absent, and fills its last 64-byte line"),
    Member("length",   "u64", "REGION_ADD: bytes"),
    Member("cq_base",  "u64",
        "ENDPOINT_OPEN: bus address of the completion queue, 32-byte aligned; ignored for "
        "endpoint 0, which keeps the administrator's queue"),
    Member("eq_base",  "u64", "ENDPOINT_OPEN: bus address of the event queue, 32-byte aligned"),
    Member("cq_entries","u32","ENDPOINT_OPEN: a power of two"),
    Member("eq_entries","u32","ENDPOINT_OPEN: a power of two"),
    Member("first",    "u32", "REGION_ADD, paged: offset of the first byte in the first page"),
    Member("reserved1","u32", "0", count=17),
)

ROUTE_COMMAND = struct("route_command", 128,
    "SCOUT and ROUTE_SET, in a slot of endpoint 0. The completion of a scout has in `node` the "
    "node that answered, and in `key` 1 if the scout itself came back, or 2 if a switch answered. "
    "Then `length` is the switch's word, otherwise as SCOUTED_TWO says; 0: a program without this "
    "answered, or one link. Without an answer its status is TIMEOUT",
    Member("opcode",   "u8",  "enum opcode"),
    Member("flags",    "u8",  "0 or SOLICIT"),
    Member("place",    "u8",
        "ROUTE_SET: index of the route among the node's ROUTES; 0 is used first"),
    Member("valid",    "u8",  "ROUTE_SET: 0 removes the route"),
    Member("node",     "u16", "ROUTE_SET: the node"),
    Member("reserved0","u16", "0"),
    Member("timeout",  "u32", "SCOUT: cycles to wait for an answer, at most 2^20"),
    Member("cookie",   "u32", "returned in the completion"),
    Member("route",    "u32", "the route; format at constant ROUTE_HOPS"),
    Member("back",     "u32", "SCOUT: the route of the answer"),
    Member("question", "u32",
        "SCOUT: for a switch at the end of the route: bits SWITCH_ASK_WORD and SWITCH_ASK_WRITE, "
        "and what is written in 31:16; 0 asks for its MAGIC"),
    Member("reserved1","u32", "0", count=25),
)

QUEUE_ENTRY = struct("queue_entry", 32, "a completion or an event in host memory",
    Member("cookie",   "u32", "completion: the command's cookie; notice: its value"),
    Member("length",   "u32", "bytes of the transfer"),
    Member("node",     "u16", "the other node"),
    Member("kind",     "u8",  "enum entry"),
    Member("status",   "u8",  "enum status"),
    Member("key",      "u32",
        "notice: key of the written region; completion: checksum, or upper word of an atomic's "
        "value"),
    Member("cycles",   "u64", "card's clock at the time of the entry"),
    Member("overruns", "u32",
        "events that were lost because the queue was full, since the queue was opened"),
    Member("phase",    "u32",
        "1 on the first pass through the queue, then 0, 1, …; it tells new entries from old ones"),
)

PACKET_HEADER = struct("packet_header", 24, "start of a packet, before extension and CRC",
    Member("target",      "u16", "destination node"),
    Member("source",      "u16", "source node"),
    Member("kind",        "u8",  "enum packet"),
    Member("flags",       "u8",  "enum packet_flag"),
    Member("incarnation", "u8",  "of the flow from source to target"),
    Member("levels",      "u8",  "of the extension: 0…3 stride levels, or LIST + 0…2"),
    Member("psn",         "u16", "packet sequence number of this flow"),
    Member("ack",         "u16",
        "ACK: last PSN that arrived in order and is in memory; RESPONSE: context of the get or "
        "receive"),
    Member("key",         "u32",
        "region key; ACK with REFUSED: enum status; MESSAGE: message word"),
    Member("offset_low",  "u32",
        "levels 0: offset of the first byte; otherwise start of the walk; ACK: number of "
        "refusals of this flow, modulo 256"),
    Member("offset_high", "u16", ""),
    Member("length",      "u16", "payload bytes"),
)

FRAME = struct("frame", 8,
    "head of a request over a UART. The words of a write follow, then CRC-32C over all of them. "
    "The reply has word 0 with FRAME_REPLY, the words of a read, a word that is 1 if the bus did "
    "not answer (otherwise 0), and CRC-32C. A frame with a wrong CRC gets no reply; the requester "
    "repeats it",
    Member("kind",     "u8",  "FRAME_REQUEST, or FRAME_REPLY"),
    Member("number",   "u8",
        "a new number for each request. A write with the number of the previous request is a "
        "repetition: it is answered, but not executed again"),
    Member("write",    "u8",  "1: write; 0: read"),
    Member("words",    "u8",  "1 to FRAME_WORDS"),
    Member("address",  "u32", "bus address of the first word, a multiple of 4"),
)

FIRMWARE_HEADER = struct("firmware_header", 64,
    "head of a control program image; not loaded into SRAM. A file holds one or several images, "
    "one after the other; a card gets the first one that fits",
    Member("magic",     "u32", "FIRMWARE_MAGIC"),
    Member("version",   "u32", "interface version it was built for"),
    Member("hash",      "u32", "interface hash it was built for"),
    Member("bytes",     "u32", "bytes of the image after this header, a multiple of 4"),
    Member("crc",       "u32", "CRC-32 (IEEE 802.3) of the rest of this header and of the image"),
    Member("entry",     "u32", "reset address: 0"),
    Member("identity",  "u32", "value that it writes to MCP_IDENTITY when it is ready"),
    Member("sram",      "u32",
        "bytes of the SRAM for which it was linked; it cannot run on a card with another size"),
    Member("features",  "u32", "bits of host register FEATURES that it needs"),
    Member("build",     "u8",  "text, zero padded: the build that made it", count=28),
)

TRACE_ENTRY = struct("trace_entry", 16, "one event in the control program's trace ring",
    Member("cycles",   "u32", "card's clock, low word"),
    Member("event",    "u32", "bits 7:0: enum mcp_state of the handler; above: enum trace"),
    Member("argument", "u32", "first argument", count=2),
)

TRAP = struct("mcp_trap", 160, "left by the trap handler",
    Member("cause",    "u32", "mcause; 0x80000007: the watchdog's interrupt"),
    Member("pc",       "u32", "mepc"),
    Member("value",    "u32", "mtval"),
    Member("status",   "u32", "mstatus"),
    Member("x",        "u32", "x0 to x31 at the trap", count=32),
    Member("cycles",   "u32", "card's clock, low word"),
    Member("reserved", "u32", "0", count=3),
)

HANDLER = struct("mcp_handler", 16, "statistics of one handler since boot",
    Member("calls",        "u32", "times entered with work to do"),
    Member("cycles",       "u32", "cycles in it, modulo 2³²"),
    Member("instructions", "u32", "instructions in it, modulo 2³²"),
    Member("longest",      "u32", "cycles of the longest call"),
)

ROUTES = struct("mcp_routes", 32, "the control program's routes to a node",
    Member("route",    "u32", "the routes; format at constant ROUTE_HOPS", count=4),
    Member("heard",    "u32",
        "card's clock, low word, when an acknowledgement of the node was last seen"),
    Member("changes",  "u32", "number of changes from a failed route to another one"),
    Member("valid",    "u8",  "one bit for each route that is set"),
    Member("current",  "u8",  "index of the route in use"),
    Member("reserved", "u16", "0"),
    Member("reserved1","u32", "0"),
)

SHARED = struct("mcp_shared", 8192,
    "memory that host and control program share in SRAM; the identity is last, so that a shifted "
    "layout is noticed",
    Member("trace",      "trace_entry", "ring", count=256),
    Member("handler",    "mcp_handler", "indexed by enum mcp_state", count=16),
    Member("trap",       "mcp_trap", "the trap that stopped the program"),
    Member("trace_head", "u32", "entries written since boot"),
    Member("commands",   "u32", "commands accepted"),
    Member("refused",    "u32", "commands that completed with an error at once"),
    Member("timeouts",   "u32", "transfers that timed out"),
    Member("strays",     "u32", "messages dropped because they match no command here"),
    Member("turns",      "u32", "turns of the event loop, modulo 2³²"),
    Member("claims",     "u32", "flows taken back from the fast path"),
    Member("routes",     "mcp_routes", "indexed by node", count=NODES),
    Member("scouts",     "u32", "scouts that were answered"),
    Member("checksums",  "u32", "Internet checksums that were put into completions"),
    Member("messages",   "u32",
        "messages queued to other control programs: requests, replies and their repetitions"),
    Member("regions",    "u32", "regions added"),
    Member("events",     "u32", "number of trace events, by enum trace", count=32),
    Member("image_bytes","u32", "bytes of the image that was started"),
    Member("reserved",   "u32", "0", count=746 - 8*(NODES - 16)),
    Member("version",    "u32", "interface version"),
    Member("hash",       "u32", "interface hash"),
    known=(TRACE_ENTRY, HANDLER, TRAP, ROUTES))

CLOCK_REQUEST = struct("clock_request", 48, "payload of a CLOCK_MESSAGE from the library",
    Member("op",       "u32", "enum clock_op"),
    Member("endpoint", "u32", "participant"),
    Member("call",     "u32", "CHARGE: enum call, or 0 for instructions of the program's own"),
    Member("count",    "u32",
        "CHARGE: number of calls, or of instructions; COPY: bytes; LEAVE: 1 for good, 2 for a "
        "pause, otherwise 0"),
    Member("watch",    "u64", "WAIT: bus address"),
    Member("length",   "u64", "WAIT: bytes, 0 for none"),
    Member("deadline", "u64", "WAIT: picoseconds from now, all ones for none"),
    Member("thread",   "u64",
        "number of the calling thread among all clients; 0: as in the previous request"),
)

CLOCK_REPLY = struct("clock_reply", 32, "answer to a clock_request",
    Member("now",      "u64", "picoseconds of simulated time since the run started"),
    Member("woken",    "u32", "WAIT: 1 if the memory was written, 0 if the deadline came"),
    Member("error",    "u32", "0, or an errno: the request was invalid"),
    Member("cpu",      "u64", "picoseconds of CPU time charged to this participant so far"),
    Member("free",     "u32",
        "1 if a client without the extension takes part: results are not repeatable"),
    Member("reserved", "u32", "0"),
)

STRUCTS = (WALK, COMMAND, INLINE, ATOMIC, REPLY, ADMIN, ROUTE_COMMAND, QUEUE_ENTRY, PACKET_HEADER,
           FRAME, FIRMWARE_HEADER, TRACE_ENTRY, TRAP, HANDLER, ROUTES, SHARED, CLOCK_REQUEST,
           CLOCK_REPLY, *ETHERNET_STRUCTS)

# Counters -----------------------------------------------------------------------------------------

# Those of a link. With two links they are of link 0, and LINK1_<NAME> is of link 1.
LINK_COUNTERS = (
    "CODE_ERRORS", "DISPARITY_ERRORS", "SLACK_OVERFLOW", "STOPS_SENT", "STOPS_RECEIVED",
    "STOPPED_CYCLES", "STOPPING_CYCLES", "LINK_TRAINED", "LINK_LOST", "WORDS_RECEIVED",
    "PACKET_MISROUTED")

# Each is a 32-bit counter of one-cycle pulses, which the host reads as COUNT_<NAME>. A block gives
# its pulses these names.
COUNTERS = (
    ("TLP_UNSUPPORTED",        "requests of the host that the card does not support"),
    ("TLP_MALFORMED",          "TLPs that contradict themselves"),
    ("REQUESTS_DROPPED",
        "requests to host memory that were dropped, because bus mastering was off and no control "
        "program ran"),
    ("COMPLETION_UNEXPECTED",  "completions without a read in flight"),
    ("COMPLETION_ERROR",       "reads that the host answered with an error"),
    ("COMPLETION_TIMEOUT",     "reads that the host did not answer in time"),
    ("COMPLETION_BAD_REQUESTER", "reads that failed: a completion with another requester ID"),
    ("COMPLETION_BAD_COUNT",
        "reads that failed: a completion whose byte count is not what was outstanding"),
    ("COMPLETION_BAD_ADDRESS",
        "reads that failed: a completion whose lower address is not that of the next byte"),
    ("COMPLETION_BAD_LENGTH",
        "reads that failed: a completion whose length contradicts its byte count, its payload, "
        "or where it must end"),
    ("COMPLETION_BAD_STATUS",
        "reads that failed: a completion of success without data, or of data without success"),
    ("COMPLETION_POISONED",    "reads that failed: a completion with poisoned data"),
    ("DOORBELLS",              "writes of COMMAND_PRODUCER"),
    ("FAST_COMMANDS",          "commands that the fast path took"),
    ("FAST_COMPLETIONS",       "of these, completed without the control program"),
    ("FAST_ANSWERS",           "gets of other nodes that the fast path took"),
    ("FAST_REPLIES",           "atomics of other nodes to which the fast path replied"),
    ("FAST_EVENTS",            "notices that became events without the control program"),
    ("POSTS",                  "queue entries written to host memory"),
    ("EVENTS_LOST",            "events lost because their queue was full or closed"),
    ("INTERRUPTS",             "MSI-X messages sent"),
    ("PACKETS_SENT",           "packets sent, acknowledgements included"),
    ("PACKETS_RECEIVED",       "whole, good packets received"),
    ("BYTES_SENT",             "payload bytes sent, in units of 4"),
    ("BYTES_RECEIVED",         "payload bytes accepted, in units of 4"),
    ("ACKS_SENT",              "acknowledgements sent"),
    ("HEADER_CRC_ERROR",       "packets dropped: header CRC"),
    ("PAYLOAD_CRC_ERROR",      "packets cut short: payload CRC"),
    ("PACKET_TRUNCATED",
        "packets shorter or longer than their header says, ended as bad, or with a header that "
        "contradicts itself"),
    ("PACKET_WRONG_NODE",      "packets dropped: for another node, or from a node out of range"),
    ("PACKET_STALE",           "packets dropped: stale incarnation"),
    ("PACKET_DUPLICATE",       "packets dropped: sequence number already executed"),
    ("PACKET_GAP",             "packets dropped: an earlier one is missing"),
    ("PACKET_REFUSED",         "packets refused by region table or bounds"),
    ("CODE_ERRORS",            "8b/10b code errors"),
    ("DISPARITY_ERRORS",       "8b/10b disparity errors"),
    ("SLACK_OVERFLOW",         "packets dropped because the slack buffer was full"),
    ("STOPS_SENT",             "changes from GO to STOP that we sent to the other end"),
    ("STOPS_RECEIVED",         "changes from GO to STOP that the other end sent to us"),
    ("STOPPED_CYCLES",         "cycles in which a packet waited for GO"),
    ("STOPPING_CYCLES",        "cycles in which we stopped a channel of the other end"),
    ("LINK_TRAINED",           "times the link came UP"),
    ("LINK_LOST",              "times the link left UP"),
    ("WORDS_RECEIVED",         "words of four symbols received, except in DOWN"),
    ("NAKS_SENT",              "acknowledgements sent that reported a missing packet"),
    ("NAKS_RECEIVED",          "acknowledgements received that reported a missing packet"),
    ("PACKETS_WITHDRAWN",
        "packets dropped before the link, because their flow was reset or rewound"),
    ("MESSAGE_NO_ROOM",        "messages dropped because the inbox was full; they are sent again"),
    ("ATOMICS",                "atomic operations executed"),
    ("PACKET_MISROUTED",       "packets dropped: their route did not end here"),
    ("SCOUT_NO_ROOM",
        "scouts and answers dropped because SCOUTS of them waited for the control program"),
    ("BUSY_REQUEST",
        "cycles in which a read request waited for, or entered, the PCIe transmitter"),
    ("BUSY_PACKET",            "cycles in which payload waited for, or entered, the packet layer"),
    ("BUSY_LINK",              "cycles in which a word of BULK waited for, or entered, the link"),
    ("BUSY_SCATTER",
        "cycles in which payload waited for, or entered, the scatter engine"),
    ("BUSY_WRITE",
        "cycles in which a write waited for, or entered, the PCIe transmitter"),
    ("BUSY_PCIE",              "cycles in which a TLP waited for, or entered, the PCIe PHY"),
)

# Registers ----------------------------------------------------------------------------------------

HOST = bank("host", "BAR 0: identity, control and counters",
    Register("MAGIC",             "ro", "constant MAGIC"),
    Register("INTERFACE_VERSION", "ro", "major in 31:16, minor in 15:0"),
    Register("INTERFACE_HASH",    "ro", "CRC-32 of the interface description"),
    Register("FEATURES", "ro", "optional features of this card", (
        Field("flash", 1, "access to the flash from which the FPGA is configured: FLASH_*"),
        Field("window", 1, "the remote window: BAR 2 and bank `window`"),
        Field("ethernet", 1, "the link is Ethernet: it has no bit sequences and no loopback"),
        Field("hold_off", 1, "interrupts can be held: HOLD_OFF"),
        Field("ring", 1, "the link is a node of a ring: LINK_PEER has its place"),
        Field("pair", 1, "the link is a pair of rings with two cables: LINK_CABLES"),
        Field("two_links", 1, "the card has two links: LINK1_*"))),
    Register("BUILD",             "ro", "CRC-32 of the gateware's code; comments do not count"),
    Register("BOARD",             "ro",
        "name of the board in ASCII, as in hw/openocd/boards.toml, padded with zeros; "
        "empty if unknown", count=4),
    Register("CLOCK_HZ",          "ro", "frequency of the card's clock"),
    Register("GEOMETRY", "ro", "sizes", (
        Field("endpoints",   8,
            "number of endpoints, from 0 on: a power of two, at most ENDPOINTS. Pages of other "
            "endpoints read as 0 and ignore writes"),
        Field("slots",       8, "constant SLOTS"),
        Field("regions",     9 if MORE_NODES else 10, "constant REGIONS"),
        Field("nodes",       7 if MORE_NODES else 6, "constant NODES"))),
    Register("DATA_WIDTH",        "ro", "bits of the data path: 64, 128 or 256"),
    Register("SCRATCH",           "rw", "for the host's own tests"),
    Register("NODE_ID",           "rw", "this card's node number, 0…NODES-1"),
    Register("MCP_CONTROL", "rw", "the control program's reset", (
        Field("run", 1, "0 holds the processor and the engines in reset"),)),
    Register("MCP_STATE",         "ro", "enum mcp_state; RESET while MCP_CONTROL.run is 0"),
    Register("FAST_PATH", "rw",
        "what hardware may do without the control program; host and control program "
        "(FAST_OPCODES) must both allow it", (
        Field("put_inline", 1, "take PUT_INLINE"),
        Field("put",        1, "take PUT"),
        Field("event",      1, "make events from notices"),
        Field("get",        1, "take GET, and answer gets of other nodes"),
        Field("atomic",     1, "take atomics, and reply to atomics of other nodes")), reset=31),
    Register("MCP_IDENTITY",      "ro", "0 until the control program is ready, then its identity"),
    Register("CYCLES_LOW",        "ro", "card's clock"),
    Register("CYCLES_HIGH",       "ro",
        "upper word of the card's clock, held at the last read of CYCLES_LOW"),
    Register("ADMIN_CQ_LOW",      "rw", "bus address of the administrator's completion queue"),
    Register("ADMIN_CQ_HIGH",     "rw", ""),
    Register("ADMIN_CQ_ENTRIES",  "rw",
        "entries of the administrator's completion queue, a power of two; written last. 0: no "
        "queue, and the administrator's commands are dropped"),
    Register("ADMIN_VECTOR",      "rw", "MSI-X vector of the administrator's completion queue"),
    Register("PCIE_STATUS", "ro", "settings of the PCIe PHY", (
        Field("max_payload", 16, "bytes"),
        Field("max_request", 16, "bytes"))),
    Register("KEY_DRAW", "wo",
        "a random number from the host, at which KEY_NEXT starts. Only the first write after "
        "power-on counts"),
    Register("KEY_NEXT", "ro",
        "the first region key that was never given out. REGION_ADD with a key gives out this key "
        "and all before it. Only a power cycle clears this register and KEYS_LEFT"),
    Register("KEYS_LEFT", "ro",
        "keys that can be given out, from KEY_NEXT on, modulo 2³². If it is 0, no region can be "
        "added until a power cycle"),
    Register("LINK_STATUS", "ro", "the link", (
        Field("state",   4, "enum link_state"),
        Field("signal",  1, "the transceiver detects a signal"),
        Field("stopped", 4, "channels that the other end has stopped"),
        Field("reason",  4, "enum link_reason"),
        Field("prbs",    1, "the PRBS checker is locked"),
        Field("absent",  1, "this build has no transceiver for the link: PHY loopback only"))),
    Register("LINK_CONTROL", "rw",
        "tests of the link; while one is on, the link carries no packets", (
        Field("transmit", 3, "enum prbs: sequence that is sent instead of words"),
        Field("check",    3, "enum prbs: sequence that is expected; a change clears LINK_PRBS_*"),
        Field("near",     1, "near-end loopback: words to send come back before the PHY"),
        Field("far",      1, "far-end loopback: received words are sent back unchanged"),
        Field("phy",      1, "loopback within the PHY, if it has one"))),
    Register("LINK_COMMAND", "wo", "actions, done once for each write", (
        Field("error",    1, "invert one bit of the next word"),
        Field("retrain",  1, "go DOWN and train again"),
        Field("ping",     1, "measure LINK_ROUND_TRIP"))),
    Register("LINK_NONCE",       "rw",
        "16 bits that are sent to the other end; different for each card, so that a loopback is "
        "noticed"),
    Register("LINK_PEER",        "ro",
        "the other end; on a ring the last other node that was heard", (
        Field("nonce",   16, "its LINK_NONCE"),
        Field("known",    1, "it was received since the link came up"),
        Field("address",  4, "of this node on its ring; of all these, 0 without a ring"),
        Field("nodes",    5, "of the ring; 0: not known"),
        Field("scrubber", 1, "this node is the ring's scrubber"))),
    Register("LINK_ROUND_TRIP",  "ro",
        "cycles from ping to pong, without the time within both ends; 0: not measured"),
    Register("LINK_PRBS_WORDS",  "ro",
        "words checked; both counters stop when this one is all ones, or at 2³¹ wrong symbols"),
    Register("LINK_PRBS_ERRORS", "ro",
        "wrong symbols among them; while errors are rare, one for each bit error of the line"),
    Register("LINK_SLACK_HIGH",  "ro",
        "highest level of each channel's slack buffer since the link came UP, in units of 4 "
        "words", (
        Field("channel0", 8, ""), Field("channel1", 8, ""), Field("channel2", 8, ""),
        Field("channel3", 8, ""))),
    Register("FLASH_STATUS", "ro", "state of the flash port", (
        Field("busy",     1,
            "a transfer is in progress; writes of FLASH_TRANSFER are ignored meanwhile"),
        Field("unlocked", 1, "all commands are allowed"),
        Field("refused",  1,
            "the last command was not sent, because it does more than read and the port is "
            "locked"),
        Field("last",     8, "the last received byte"))),
    Register("FLASH_TRANSFER", "wo",
        "select the flash, send a command and bytes of FLASH_BUFFER, deselect it. FLASH_BUFFER "
        "then holds the received bytes", (
        Field("command", 8,
            "first byte. While locked only 03, 13 (read), 05 (status), 9f (identity) and ff "
            "(nothing) are sent"),
        Field("bytes",   10, "bytes after the command, 0…FLASH_BYTES"))),
    Register("FLASH_UNLOCK",      "wo",
        "constant FLASH_KEY allows all commands; every other value allows only commands that "
        "read"),
    *(Register(f"COUNT_{name}", "ro", doc) for name, doc in COUNTERS),
    Register("SRAM", "ro", "the control program's memory", (
        Field("size",  16, "KiB of the SRAM: a power of two, at most SRAM_MAX"),
        Field("image", 16,
            "KiB of the largest image, which is the size of the instruction cache"))),
    *(Register(name, "ro", f"with FEATURES.ethernet, else 0: {doc}")
        for name, _, doc in ETHERNET_COUNTER.values),
    Register("HOLD_OFF", "wo",
        "hold-off of a vector's interrupts; ignored without FEATURES.hold_off. A write sends what "
        "is held. A queue that is opened with the vector ends its hold-off", (
        Field("vector",  8, "MSI-X vector; ignored from VECTORS on"),
        Field("count",   8,
            "the interrupt with this number is sent at once, and stands for those that are held; "
            "0: no limit"),
        Field("time",   12,
            "units of HOLD_OFF_UNIT cycles: an interrupt is held no longer; 0: no hold-off"))),
    *two_cables(LINK_COUNTERS),
)

DOORBELL = bank("doorbell",
    "an endpoint's doorbell page; written by its owner, read back as written",
    Register("COMMAND_PRODUCER", "rw", "commands written so far, modulo 2³²"),
    Register("CQ_CONSUMER",      "rw", "completions read so far, modulo 2³²"),
    Register("EQ_CONSUMER",      "rw", "events read so far, modulo 2³²"),
    Register("COMMAND_HEAD",     "ro", "commands that the card has taken, modulo 2³²"),
    Register("PROGRAM", "ro", "state of the control program, the same on each page", (
        Field("halts", 8,
            "number of halts since power-up, by a host, the watchdog or a debugger, modulo 256. "
            "Queues and regions from before the last halt are invalid"),
        Field("ready", 1, "a program runs, and MCP_IDENTITY is not 0"),
        Field("bus_master", 1,
            "the host allows the card to access its memory: PCI Command, bit 2"))),
)

if MORE_NODES:
    REPLAY_EVENTS = (Field("replay", 1, "NAKED, LINK_CHANGED or GIVEN is not 0"),)
elif MORE_ENDPOINTS:
    REPLAY_EVENTS = (Field("replay", 1, "NAKED or LINK_CHANGED is not 0"),)
else:
    REPLAY_EVENTS = (
        Field("nak",     1, "NAKED is not 0"),
        Field("link",    1, "LINK_CHANGED is not 0"))

MCP = bank("mcp", "the control program's registers",
    Register("EVENTS", "ro", "pending work", (
        Field("command", 1, "COMMAND_PENDING is not 0"),
        Field("job_done",1, "JOB_DONE is valid"),
        Field("ack",     1, "ACKED_CHANGED is not 0"),
        Field("refusal", 1, "REFUSAL is valid"),
        Field("arrival", 1, "ARRIVAL is valid"),
        Field("timer",   1, "CYCLES_LOW has reached TIMER"),
        *REPLAY_EVENTS,
        Field("atomic",  1, "ATOMIC_DONE is valid"),
        *(() if MORE_NODES else (Field("given", 1, "GIVEN is not 0"),)),
        Field("scout",   1, "SCOUT is valid"),
        Field("length",  7, "with put: payload bytes"),
        Field("solicit", 1, "with put: flag SOLICIT"),
        Field("node",    NODE_BITS, "with put: target node"),
        Field("slot",    5, "with put: slot number"),
        Field("endpoint",ENDPOINT_BITS, "with put: endpoint number"),
        Field("put",     1,
            "the next command of an endpoint is a valid inline put, and EXPRESS_SPACE is not "
            "0: PUT_START sends it, PUT_PASS skips it"))),
    Register("CYCLES_LOW",   "ro", "card's clock, its low word"),
    Register("TIMER",        "wk", "next timer event; writing it clears the event"),
    Register("WATCHDOG",     "wk",
        "cycles from this write to the watchdog's interrupt, and the same again to the halt; 0: "
        "off"),
    Register("STATE",        "rw", "shown to the host as MCP_STATE"),
    Register("IDENTITY",     "wk", "shown to the host as MCP_IDENTITY"),
    Register("NODE_ID",      "ro", "host register"),
    Register("ADMIN_CQ_LOW", "ro", "host register"),
    Register("ADMIN_CQ_HIGH","ro", "host register"),
    Register("ADMIN_CQ_ENTRIES", "ro", "host register"),
    Register("ADMIN_VECTOR", "ro", "host register"),
    Register("CLOCK_HZ",     "ro", "host register"),

    Register("COMMAND_PENDING", "ro",
        "one bit for each endpoint whose next command is for the control program: its slot is "
        "free, its completion has room, and it is not among the commands that EVENTS.put offers "
        "in turns"),
    Register("PRODUCER",     "ro", "doorbell COMMAND_PRODUCER of each endpoint", count=ENDPOINTS),
    Register("HEAD",         "ro", "commands taken, shown as COMMAND_HEAD", count=ENDPOINTS),
    Register("COMMAND_TAKE", "wo",
        "the value is an endpoint: take its next command. HEAD is incremented, the slot is in "
        "use, and a completion is owed"),
    Register("PUT_START", "wo",
        "take the inline put in EVENTS, as COMMAND_TAKE does, and queue its packet, as "
        "EXPRESS_START does", (
        Field("psn",        16, "its PSN"),
        Field("incarnation", 8, "of the flow"),
        Field("epoch",       4, "of the flow"),
        Field("endpoint", ENDPOINT_BITS,
            "endpoint number; with 8 endpoints at the same position as in EVENTS"))),
    Register("PUT_PASS",     "wo",
        "let EVENTS show the inline put of another endpoint, if there is one"),
    Register("COMMAND_SKIP", "wo",
        "the value is an endpoint: set its HEAD to PRODUCER; no completion is owed"),
    Register("SLOT_FREE", "wo", "the slot of a command that was taken is free again", (
        Field("slot",     8, "slot number"),
        Field("endpoint", 8, "endpoint number"))),
    Register("QUEUE_ROOM",   "ro",
        "one bit for each endpoint: its completion queue has room for more than the owed "
        "completions"),

    Register("FAST_OPCODES", "wk",
        "what hardware may do without this program; bits as in host register FAST_PATH", (
        Field("put_inline", 1, ""),
        Field("put",        1, ""),
        Field("event",      1, ""),
        Field("get",        1, ""),
        Field("atomic",     1, ""))),
    Register("FAST_ENDPOINTS", "wk",
        "one bit for each endpoint whose commands are offered to hardware first"),
    Register("FAST_BUSY",    "ro",
        "one bit for each endpoint: puts that hardware took have not ended, nor come back by "
        "CLAIM_POP; or inline puts of PUT_START have not ended by POST_PUT"),
    Register("GENERATION", "ro",
        "generation, 6 bits, of the contexts in gets and atomics that hardware sends"),
    Register("GENERATION_NEXT", "wo",
        "start the next generation. Only a power cycle clears the count; after it KEY_DRAW sets "
        "the start"),
    Register("FAST_ACTIVE",  "ro",
        "one bit for each armed flow with anything under way: puts, and gets and atomics until "
        "their answers", count=FLOW_WORDS),
    Register("FAST_MOVED",   "w1c",
        "one bit for each armed flow. Lane BULK: its ACKED moved. Lane EXPRESS: something ended; "
        "while gets and atomics wait for answers, one of these. Write ones to clear",
        count=FLOW_WORDS),
    Register("PEER_WORKS",   "w1c",
        "one bit for each flow. Lane BULK: its target is still storing a packet. Lane EXPRESS: "
        "payload of lane BULK from this node is being stored here. Write ones to clear",
        count=FLOW_WORDS),
    Register("SEND_MOVED",   "w1c",
        "1: the send engine has delivered payload or ended a job since this bit was cleared"),
    Register("GIVEN",        "w1c",
        "one bit for each flow that was disarmed because a job failed; write ones to clear",
        count=FLOW_WORDS),
    Register("ARM_PLACE", "wk", "next flow to be armed", (
        Field("psn",        16, "PSN of its next packet; all earlier ones are acknowledged"),
        Field("incarnation", 8, "of the flow"),
        Field("node",        8, "target node"))),
    Register("FLOW_ARM", "wo",
        "arm the flow: hardware may send puts on it and completes them. Commands that hardware "
        "did not take because the flow was not armed are offered again", (
        Field("flow",  8, "flow number"),
        Field("epoch", 4, "of the flow"))),
    Register("FLOW_CLAIM",   "wo",
        "the value is a flow: claim it back for this program. ACKED_CHANGED and JOB_DONE report "
        "it again, and CLAIM_* show what was under way"),
    Register("CLAIM_STATE", "ro", "the flow that was claimed last", (
        Field("psn",        16, "PSN of its next packet"),
        Field("entries",     8, "number of its packets under way that were not popped"),
        Field("asks",        2,
            "gets and atomics that are acknowledged and not answered; they are shown after the "
            "packets"),
        Field("generation",  6, "kind ASK: generation of its context"))),
    Register("CLAIM_ENTRY", "ro", "the oldest packet or request under way", (
        Field("psn",        16, "PSN after its last packet"),
        Field("tag",        10, "set * SLOTS + slot: of a command or the INBOX"),
        Field("ended",       1, "its job ended successfully; always 1 on lane EXPRESS"),
        Field("solicit",     1, "flag SOLICIT of the command"),
        Field("kind",        2, "enum fast_kind"),
        Field("atomic",      1, "kind ASK: it is an atomic"))),
    Register("CLAIM_COOKIE", "ro",
        "its cookie; of an answer, the message word of its request; of a reply, its own message "
        "word"),
    Register("CLAIM_LENGTH", "ro", "its bytes"),
    Register("CLAIM_POP",    "wo",
        "drop this entry: this program is responsible for it from now on"),

    Register("LINK",         "ro", "links of the card", (
        Field("up",  2, "one bit for each link: it is UP"),
        Field("two", 1, "the card has two links"))),
    Register("LINK_CHANGED", "w1c",
        "one bit for each link: its state has changed since this bit was cleared"),

    Register("JOB_SLOT", "wk", "next send job, lane BULK: its command", (
        Field("slot",     7, "slot number"),
        Field("endpoint", 8, "endpoint number, or INBOX"),
        Field("epoch",    4, "of the flow, see FLOW_REWIND"),
        Field("response", 1,
            "the job answers a get or receive: its packets have the flag RESPONSE, and the last "
            "one is a notice. The source of a get is read with the right REMOTE_READ, from a "
            "region of any owner"),
        Field("indirect", 1,
            "with response: it answers a receive. The source is that of a put; the target's walk "
            "is in another slot"),
        Field("target_levels", 3, "indirect: levels of that walk, as in a command"),
        Field("target",   8, "indirect: slot of the INBOX with that walk"))),
    Register("JOB_FLOW", "wk", "next send job: its place in the flow", (
        Field("psn",        16, "PSN of the first packet"),
        Field("incarnation", 8, "of the flow"),
        Field("node",        8, "target node"))),
    Register("JOB_MESSAGE",  "wk",
        "next send job: message word of the get or receive that it answers; sent as context and "
        "notice"),
    Register("JOB_LENGTH",   "wk",
        "next send job: bytes of the whole transfer. Node and length are not read from the slot, "
        "because its owner may change it after the check"),
    Register("JOB_SKIP",     "wk",
        "next send job: bytes of the transfer to skip; a multiple of PACKET_PAYLOAD, where a "
        "packet starts"),
    Register("JOB_START",    "wo",
        "queue the job; the value is its tag, 10 bits, returned in JOB_DONE"),
    Register("JOB_SPACE",    "ro", "jobs that can be queued now"),
    Register("JOB_DONE", "ro",
        "oldest job that failed, or whose last packet is in the send buffer", (
        Field("tag",   10, "tag from JOB_START"),
        Field("status", 6, "enum status; REWOUND: its flow was rewound before its end"),
        Field("psn",   16, "PSN after its last packet"))),
    Register("JOB_CHECKSUM", "ro", "Internet checksum of that job's bytes, from JOB_SKIP on"),
    Register("JOB_DONE_POP", "wo", "drop that entry"),

    Register("EXPRESS_FLOW", "wk", "next packet of the EXPRESS lane: its place in the flow", (
        Field("psn",        16, "its PSN"),
        Field("incarnation", 8, "of the flow"),
        Field("node",        8, "target node"))),
    Register("EXPRESS_MESSAGE", "wk", "next packet: message word"),
    Register("EXPRESS_START", "wo", "queue the packet", (
        Field("slot",     8, "slot with its contents; in use until the packet is acknowledged"),
        Field("endpoint", 8, "endpoint number, OUTBOX, or INBOX"),
        Field("length",   8, "bytes of an inline put, 0…INLINE_BYTES"),
        Field("epoch",    4, "of the flow"),
        Field("message",  1, "send the whole slot as a MESSAGE"))),
    Register("EXPRESS_SPACE", "ro", "packets that can be queued now"),

    Register("ACKED_CHANGED","w1c","one bit for each flow whose ACKED moved; write ones to clear",
        count=FLOW_WORDS),
    Register("NAKED",        "w1c",
        "one bit for each flow with a missing packet; write ones to clear", count=FLOW_WORDS),
    Register("ACKED", "ro", "for each flow", (
        Field("psn",    16, "last acknowledged PSN"),
        Field("refusal", 1,
            "REFUSAL is valid, or will be at once: a refusal that `psn` covers is "
            "there")), count=2*NODES),
    Register("LEFT", "ro",
        "for each flow: the last packet that has completely left the card since the flow was "
        "reset or rewound", (
        Field("psn",    16, "its PSN"),
        Field("valid",   1, "a packet has left"),
        Field("vain",    1,
            "packets were dropped, because the target did not answer a question")), count=2*NODES),
    Register("FLOW_RESET", "wo",
        "start a new incarnation of a flow: its ACKED becomes 0xffff and its epoch 0. Waiting "
        "packets of other incarnations are dropped, and their acknowledgements ignored", (
        Field("flow",        8, "flow number"),
        Field("incarnation", 8, "of the new flow"))),
    Register("FLOW_REWIND", "wo",
        "start a new epoch of a flow: waiting packets and jobs of other epochs are dropped, and "
        "a job under way ends as REWOUND. The flow's other state does not change", (
        Field("flow",  8, "flow number"),
        Field("epoch", 4, "epoch of the packets from now on"))),
    Register("REFUSAL", "ro", "oldest refusal", (
        Field("psn",    16, "PSN that was refused"),
        Field("reason",  8, "enum status"),
        Field("flow",    8, "flow number"))),
    Register("REFUSAL_POP",  "wo", "drop that entry"),

    Register("ARRIVAL", "ro", "oldest notice or message, valid if EVENTS.arrival is set", (
        Field("node",      8, "source node"),
        Field("endpoint",  8, "notice: target endpoint"),
        Field("slot",      8, "message: slot of the inbox"),
        Field("interrupt", 1, "notice: it requests an interrupt"),
        Field("message",   1, "it is a message"),
        Field("response",  1, "end of the answer to a get or receive"),
        Field("again",     1, "message: it is shown again after ARRIVAL_AGAIN"))),
    Register("ARRIVAL_VALUE",  "ro", "the notice's value; message and response: the message word"),
    Register("ARRIVAL_LENGTH", "ro", "bytes of the transfer"),
    Register("ARRIVAL_KEY",    "ro", "key of the written region"),
    Register("ARRIVAL_POP",    "wo", "drop that entry"),
    Register("ARRIVAL_AGAIN",  "wo",
        "the arrival is a GET: offer it to hardware again; if hardware does not answer it, it is "
        "shown again"),
    Register("INBOX_FREE",     "wo", "the value is a slot of the inbox: it is free again"),

    Register("EXPECT_KEY",   "wk",
        "next entry of the table of gets and receives under way: destination region"),
    Register("EXPECT_WRITE", "wo", "write the entry", (
        Field("context", 16, "endpoint * SLOTS + slot of the command in 9:0, its generation above"),
        Field("node",     8, "the node that answers"),
        Field("valid",    1, "0: clear the entry"))),

    Register("ATOMIC_DONE", "ro",
        "an atomic of another node that was executed or refused, and to which hardware did not "
        "reply; valid if EVENTS.atomic is set", (
        Field("node", 8, "source node"),
        Field("slot", 8, "slot of the inbox that holds the reply, to be sent as a message"),
        Field("again", 1, "it is shown again after ATOMIC_AGAIN"))),
    Register("ATOMIC_WORD",  "ro", "message word of the reply"),
    Register("ATOMIC_POP",   "wo", "drop it"),
    Register("ATOMIC_AGAIN", "wo",
        "offer the reply to hardware again; if hardware does not send it, it is shown again"),

    Register("QUEUE_BASE_LOW",  "wk",
        "next queue to be opened: bus address of entry 0, 32-byte aligned"),
    Register("QUEUE_BASE_HIGH", "wk", ""),
    Register("QUEUE_OPEN", "wo",
        "open the queue, empty; its count starts at CQ_CONSUMER or EQ_CONSUMER of its endpoint", (
        Field("queue",   8, "queue number"),
        Field("size",    8, "entries are 2^size, at most QUEUE_MAX_ENTRIES"),
        Field("vector",  8, "MSI-X vector"))),
    Register("QUEUE_CLOSE",  "wo",
        "the value is a queue: drop entries for it from now on, and count events as lost"),
    Register("POST_COOKIE",  "wk", "next queue entry; hardware adds cycles, overruns and phase"),
    Register("POST_LENGTH",  "wk", ""),
    Register("POST_WHAT", "wk", "", (
        Field("node",   16, "the other node"),
        Field("kind",    8, "enum entry"),
        Field("status",  8, "enum status"))),
    Register("POST_KEY",     "wk", ""),
    Register("POST_START", "wo",
        "queue the entry, then its interrupt. A completion has room, because it was owed; an "
        "event that finds its queue full is lost and counted", (
        Field("queue",     8, "queue number"),
        Field("slot",      8, "with free: slot number"),
        Field("interrupt", 1, "raise it"),
        Field("free",      1, "also free the slot of this endpoint, as SLOT_FREE does"))),
    Register("POST_PUT", "wo",
        "queue the completion of an inline put of PUT_START, and free its slot. The value is "
        "the word that EVENTS showed for it, with a status in place of the events. Hardware "
        "knows the cookie", (
        Field("status",   8, "enum status"),
        Field("reserved", EVENT_BITS - 8, "any"),
        Field("length",   7, "payload bytes"),
        Field("solicit",  1, "raise the queue's interrupt"),
        Field("node",     NODE_BITS, "the other node"),
        Field("slot",     5, "slot number"),
        Field("endpoint", ENDPOINT_BITS, "endpoint number"))),
    Register("POST_SPACE",   "ro", "posts that can be queued now"),

    Register("ROUTE", "wk", "next entry of the route table; format at constant ROUTE_HOPS"),
    Register("ROUTE_WRITE", "wo",
        "the value is a node: packets to it use this route from now on. Initially 0, a cable "
        "without switches. A reset of this program keeps it, because acknowledgements continue"),
    Register("SCOUT_ROUTE",  "wk", "next scout or answer: its route"),
    Register("SCOUT_BACK",   "wk", "next scout: the route of its answer"),
    Register("SCOUT_NUMBER", "wk", "next scout or answer: its number"),
    Register("SCOUT_START", "wo", "queue it", (
        Field("target", 16, "node, or ANYBODY"),
        Field("reply",   1, "it is an answer"))),
    Register("SCOUT_SPACE",  "ro", "scouts and answers that can be queued now"),
    Register("SCOUT", "ro", "oldest scout or answer that was received", (
        Field("source", 16, "its sender; this node itself if a scout came back"),
        Field("reply",   1, "it is an answer"))),
    Register("SCOUT_CAME_NUMBER", "ro", "number of this scout or answer"),
    Register("SCOUT_CAME_BACK",   "ro", "scout: the route of its answer"),
    Register("SCOUT_POP",    "wo", "drop that entry"),

    Register("REGION_KEY",         "wk", "next region entry"),
    Register("REGION_BASE_LOW",    "wk", ""),
    Register("REGION_BASE_HIGH",   "wk", ""),
    Register("REGION_LENGTH_LOW",  "wk", ""),
    Register("REGION_LENGTH_HIGH", "wk", ""),
    Register("REGION_TABLE_LOW",   "wk", "paged: bus address of its page table, a multiple of 64"),
    Register("REGION_TABLE_HIGH",  "wk", ""),
    Register("REGION_ACCESS", "wk", "", (
        Field("rights", 4, "enum right"),
        Field("owner",  8, "endpoint"),
        Field("valid",  1, "0: the entry is empty"),
        Field("page",   5,
            "paged: log2 of the page size in bytes, 12 to 30. REGION_BASE then has bit 63 set, "
            "the index in 62:57, and the offset of the first byte in the first page"))),
    Register("REGION_WRITE", "wo", "the value is the index: write the entry"),
    Register("REGION_FRESH", "ro",
        "1: the key in REGION_KEY was never given out since power-on. REGION_WRITE with any "
        "other key makes an entry that is never found"),
    Register("REGION_BUSY",  "ro",
        "1: an operation is under way that looked up a region before the last REGION_WRITE"),

    Register("SRAM_WRITTEN", "w1c",
        "1: the host wrote to the SRAM since this bit was cleared; the processor's instruction "
        "cache may be stale"),
    Register("ENDPOINTS",    "ro", "number of endpoints, as in host register GEOMETRY"),
    Register("EVENTS_HELD",  "ro",
        "the same as EVENTS. A load by the processor waits while EVENTS is 0, but not longer than "
        "constant EVENTS_HOLD says, and not while a debugger is connected"),
)

BRIDGE = bank("bridge", "host side of a card behind a UART",
    Register("MAGIC",      "ro", "constant BRIDGE_SIGNATURE"),
    Register("MEMORY",     "ro", "bytes of the memory at BRIDGED_MEMORY; 0: no memory"),
    Register("BAD_FRAMES", "ro",
        "frames that were dropped: wrong CRC, invalid head, or incomplete"),
    Register("HOLD",       "rw", "1: writes and reads of the card wait"),
    Register("CHANGED",    "w1c",
        "one bit for each of BRIDGED_CHUNKS equal parts of the memory: the card has "
        "written there; write ones to clear", count=8),
)

BANKS = (HOST, DOORBELL, MCP, BRIDGE, WINDOW, SWITCH)

INTERFACE = Interface(VERSION, CONSTANTS, ENUMS, STRUCTS, BANKS)


class Constants:
    """The constants as attributes: `C.PACKET_PAYLOAD`."""

for _name, _value, _ in CONSTANTS:
    setattr(Constants, _name, _value)

C = Constants

def image_limit(sram_bytes):
    """Bytes of the largest control program image for a card with so much SRAM."""
    return C.IMAGE_SCARCE if sram_bytes == C.SRAM_SCARCE else sram_bytes//2
