"""What gateware, control program, host library, simulator and documentation agree on.

`python -m dibber.interface.generate` turns this file into the C header and the reference page. The
reasons behind the layouts stand in docs/design.md.
"""

# SPDX-License-Identifier: BSD-2-Clause

from dibber.interface.schema import Bank, Enum, Field, Interface, Member, Register, Struct
from dibber.interface.schema import bank, enum, struct

VERSION = (0, 5)

# Constants ----------------------------------------------------------------------------------------

CONSTANTS = (
    ("MAGIC",            0x52424944, "\"DIBR\" read as a little-endian word"),
    ("FIRMWARE_MAGIC",   0x4d424944, "\"DIBM\": a control program image"),
    ("PCI_VENDOR",           0x1209, "pid.codes, the open hardware vendor identity"),
    ("PCI_DEVICE",           0xd1bb, "not registered yet: see docs/design.md"),
    ("PCI_CLASS",          0x028000, "network controller, other"),

    ("BAR0_SIZE",          0x100000, "bytes of BAR 0, the only BAR"),
    ("HOST_BASE",           0x00000, "BAR 0: identity and host registers (bank `host`)"),
    ("FLASH_BUFFER",        0x00800, "BAR 0: what a transfer with the flash sends behind its command; read, what came meanwhile"),
    ("MSIX_TABLE_BASE",     0x01000, "BAR 0: MSI-X table, 16 bytes a vector"),
    ("MSIX_PBA_BASE",       0x01800, "BAR 0: MSI-X pending bits"),
    ("FIRMWARE_BASE",       0x40000, "BAR 0: window on the control program's SRAM, as long as that is; at most SRAM_MAX"),
    ("ENDPOINT_BASE",       0x80000, "BAR 0: first endpoint's pages; up to BAR0_SIZE there is room for 64"),
    ("ENDPOINT_STRIDE",      0x2000, "bytes from one endpoint's pages to the next"),
    ("SLOT_OFFSET",          0x0000, "endpoint pages: command slots"),
    ("DOORBELL_OFFSET",      0x1000, "endpoint pages: the doorbell page (bank `doorbell`)"),

    ("ENDPOINTS",                 8, "endpoints of a card at most: GEOMETRY says how many there are; the administrator's commands come through endpoint 0"),
    ("SLOTS",                    32, "command slots of an endpoint, a power of two"),
    ("SLOT_BYTES",              128, "bytes of a command slot"),
    ("OUTBOX",                    8, "in place of an endpoint: slots that the control program fills with messages"),
    ("INBOX",                     9, "in place of an endpoint: slots in which messages of other nodes lie"),
    ("SLOT_SETS",                10, "endpoints, outbox and inbox: sets of SLOTS slots"),
    ("QUEUES",                   16, "queues in host memory: completions of endpoint n are queue n, its events ENDPOINTS + n"),
    ("VECTORS",                   8, "MSI-X vectors"),
    ("REGIONS",                  64, "entries of the region table, a power of two"),
    ("NODES",                    16, "nodes that a card can talk to, itself included"),
    ("ROUTES",                    4, "routes that the control program keeps to a node"),
    ("ROUTE_HOPS",                7, "switches on a route at most. A route is a word: their number in bits 3:0, then 4 bits for each, first one lowest: what is added to the port by which a packet came in, modulo the switch's ports, to have the one by which it leaves"),
    ("SCOUTS",                    4, "scouts and answers to scouts that can wait for the control program"),
    ("ANYBODY",              0xffff, "target of a scout"),
    ("LEVELS",                    3, "stride levels of a walk"),
    ("LIST",                      4, "in a levels field: an index list is the outermost level, over LIST_LEVELS strides at most: 4 + strides"),
    ("LIST_LEVELS",               2, "stride levels under an index list"),
    ("LIST_ENTRY_BYTES",          8, "bytes of an entry of an index list: an offset, signed, from the walk's `offset`"),
    ("SRAM_MAX",            0x40000, "bytes of the control program's SRAM at most: host register SRAM says how many a card has"),
    ("SRAM_SCARCE",         0x10000, "bytes of that SRAM on cards with little block RAM"),
    ("IMAGE_SCARCE",         0x8c00, "bytes of the largest image for an SRAM of SRAM_SCARCE; a larger SRAM has an image of half its size at most"),
    ("SHARED_FROM_END",      0x2000, "struct mcp_shared begins so many bytes before the end of that SRAM"),
    ("MAX_LENGTH",       0xffffffff, "bytes of the longest transfer"),
    ("MAX_OFFSET",   0xffffffffffff, "highest offset in a region (48 bits travel on the wire)"),

    ("PACKET_PAYLOAD",         4096, "payload bytes of the longest packet"),
    ("BLOCK_BYTES",             256, "payload bytes under one CRC"),
    ("INLINE_BYTES",             64, "bytes that a command can carry in itself"),
    ("MESSAGE_BYTES",           128, "payload of a message: one slot"),
    ("LANES",                     2, "flows to a node: flow number = lane * NODES + node"),
    ("WINDOW",                   64, "packets that may be unacknowledged per flow"),
    ("FAST_PUTS",                31, "puts of a flow that the fast path has under way at most"),
    ("FAST_LENGTH",        0x3fffff, "bytes of the longest put that the fast path takes"),
    ("HEADER_WORDS",              6, "32-bit words of a packet header without extension and CRC"),
    ("CRC_POLYNOMIAL",   0x1edc6f41, "CRC-32C (Castagnoli), RFC 3720, section 12.1"),

    ("FLASH_BYTES",             512, "bytes of that buffer"),
    ("FLASH_KEY",        0x48534c46, "\"FLSH\": what FLASH_UNLOCK wants"),

    ("MCP_REGISTER_BASE", 0x80000000, "control program's address of bank `mcp`"),
    ("MCP_SLOT_BASE",     0x80010000, "control program's address of the slots of all sets, in order, those of endpoints that there are not show anything; only those of the OUTBOX can be written, by whole words"),

    ("TRACE_ENTRIES",           256, "entries of the control program's trace ring"),
    ("QUEUE_ENTRY_BYTES",        32, "bytes of a completion or event"),
    ("QUEUE_MAX_ENTRIES",     65536, "entries of the longest completion or event queue"),

    ("BRIDGED_MEMORY",   0x40000000, "bus address of the memory on a card without PCIe; its BAR 0 is at 0"),
    ("BRIDGE_BASE",      0x60000000, "bus address of bank `bridge`"),
    ("BRIDGE_SIGNATURE", 0x55424944, "\"DIBU\": a card behind a UART"),
    ("BRIDGED_CHUNKS",          256, "parts of that memory, each with a bit in CHANGED"),
    ("FRAME_REQUEST",          0xd1, "first byte of a frame to the card"),
    ("FRAME_REPLY",            0xb1, "first byte of a frame from it"),
    ("FRAME_WORDS",              64, "words that a frame reads or writes at most"),

    ("CLOCK_MESSAGE",        0xd1b0, "vfio-user command number of the simulator's clock extension"),
)

# Enumerations -------------------------------------------------------------------------------------

OPCODE = enum("opcode", 8, "what a command asks for",
    ("NOP",             0x00, "completes at once; for measuring the command path"),
    ("PUT",             0x01, "source walk to destination walk on another node"),
    ("PUT_INLINE",      0x02, "up to INLINE_BYTES in the command itself to contiguous memory of another node"),
    ("GET",             0x03, "source walk on another node to destination walk here"),
    ("SEND",            0x04, "source walk to wherever the target endpoint's next RECEIVE from here says"),
    ("RECEIVE",         0x05, "destination walk for the next SEND of a node's endpoint"),
    ("FETCH_ADD",       0x08, "atomic: add the operand"),
    ("SWAP",            0x09, "atomic: store the operand"),
    ("COMPARE_SWAP",    0x0a, "atomic: store the operand if the value equals `compare`"),
    ("MASKED_SWAP",     0x0b, "atomic: store the operand's bits where `mask` has ones"),
    ("ENDPOINT_OPEN",   0x80, "administrator: give an endpoint its queues"),
    ("ENDPOINT_CLOSE",  0x81, "administrator: take them away"),
    ("REGION_ADD",      0x82, "administrator: enter a region in the table"),
    ("REGION_REMOVE",   0x83, "administrator: take a region out of the table"),
    ("SCOUT",           0x84, "administrator: ask who is at the end of a route"),
    ("ROUTE_SET",       0x85, "administrator: enter a route to a node, or take it out"),
)

FLAG = enum("flag", 8, "bits of command.flags",
    ("NOTICE",    1, "the target endpoint gets an event after the last byte is in memory"),
    ("INTERRUPT", 2, "with NOTICE: the event raises the target endpoint's interrupt too"),
    ("SOLICIT",   4, "the completion raises this endpoint's interrupt"),
    ("FENCE",     8, "starts when all earlier commands of this endpoint have completed"),
    ("CHECKSUM", 16, "PUT: the completion's key is the Internet checksum of the bytes (RFC 1071)"),
)

STATUS = enum("status", 8, "why a command ended; also the reason in a refusal",
    ("OK",                   "done: every byte was handed to the target's host"),
    ("BAD_OPCODE",           "no such operation, or not for this endpoint"),
    ("BAD_FLAGS",            "a flag that the operation does not know"),
    ("BAD_LEVELS",           "more than three stride levels, or more than two under an index list"),
    ("BAD_COUNT",            "a count or block of zero in a transfer that has bytes"),
    ("BAD_LENGTH",           "the walk's counts times its block is not the length"),
    ("BAD_NODE",             "no such node, or this node itself: a card has no path to its own memory through the link; copy there with the CPU"),
    ("BAD_KEY",              "source: no region has this key"),
    ("NOT_OWNER",            "source: the region belongs to another endpoint"),
    ("NOT_PERMITTED",        "source: the region may not be read"),
    ("BOUNDS",               "source: the walk leaves the region"),
    ("REMOTE_BAD_KEY",       "destination: no region has this key"),
    ("REMOTE_NOT_PERMITTED", "destination: the region may not be written from the wire"),
    ("REMOTE_BOUNDS",        "destination: the walk leaves the region"),
    ("REMOTE_BAD_HEADER",    "destination: the header contradicts itself"),
    ("READ_ERROR",           "the host answered a read with an error completion"),
    ("READ_TIMEOUT",         "the host did not answer a read in time"),
    ("TIMEOUT",              "no acknowledgement in time: cable, peer or packets lost"),
    ("BAD_ARGUMENT",         "the command names something that cannot be"),
    ("IN_USE",               "the endpoint is open already, the region's entry is taken, or its key was given before"),
    ("FLUSHED",              "the endpoint was closed or the flow reset before this command ran"),
    ("REMOTE_ALIGNMENT",     "destination: an atomic's operand is not naturally aligned, or not 4 or 8 bytes"),
    ("REMOTE_READ_ERROR",    "the other node's host answered a read with an error, or not in time"),
    ("TRUNCATED",            "the message is longer than the receive that it met; nothing was written"),
    ("BAD_LIST",             "source: no region has the list's key, it belongs to another endpoint or may not be read, or the list leaves it"),
    ("REMOTE_BAD_LIST",      "destination: the same"),
    ("REWOUND",              "never in a completion: a send job gave way to the replay of its flow"),
    ("HALTED",               "the control program was halted, or loaded anew, before this command ended; libdibber says so"),
    ("PEER_RESTARTED",       "the peer began anew while this was under way: it was reset or got another control program; executed or not is unknown"),
)

RIGHT = enum("right", 4, "bits of region.rights",
    ("LOCAL_READ",   1, "source of a put or send"),
    ("LOCAL_WRITE",  2, "destination of a get or receive"),
    ("REMOTE_READ",  4, "others may fetch from it; with REMOTE_WRITE also by atomics"),
    ("REMOTE_WRITE", 8, "others may deposit into it"),
)

PACKET = enum("packet", 8, "packet types",
    ("DEPOSIT", 1, "payload and where it belongs"),
    ("ACK",     2, "cumulative acknowledgement, with a refusal where there is one"),
    ("MESSAGE", 3, "a slot for the control program of the target; `key` is the message word. EXPRESS lane only"),
    ("SCOUT",   4, "whoever gets it answers by the route in `offset_low`; `key` is its number. Channel CONTROL, target ANYBODY, outside all flows"),
    ("SCOUT_REPLY", 5, "the answer; `key` is the scout's number. Channel CONTROL"),
    ("QUESTION", 6, "a source that must know which incarnation its target holds; `psn` is a token. Header alone, outside all flows"),
)

PACKET_FLAG = enum("packet_flag", 8, "bits of packet_header.flags",
    ("FIRST",     1, "first packet of an incarnation: PSN 0. ACK: answers a QUESTION, `psn` is its token"),
    ("LAST",      2, "last packet of a transfer"),
    ("NOTICE",    4, "three words of notice follow in the extension"),
    ("REFUSED",   8, "ACK: `psn` was refused for the reason in `key`; later packets are not affected. PEER_RESTARTED: it holds no such flow, `ack` covers nothing"),
    ("NAK",      16, "ACK: a packet after `ack` was lost; everything later was dropped"),
    ("INTERRUPT",32, "the notice raises an interrupt"),
    ("EXPRESS",  64, "of the EXPRESS lane's flow, or about it (ACK)"),
    ("RESPONSE",128, "answers a get or receive: `ack` is its context"),
)

MESSAGE = enum("message", 8, "message word, bits 7:0; bits 15:8 are an endpoint, 31:16 a context of the asking control program: the command's tag below, a generation above",
    ("GET",          1, "a command slot: send what `source` names to where `target` says"),
    ("GET_FAILED",   2, "a reply: the get or receive was not answered to its end"),
    ("ATOMIC",       3, "an atomic command's slot: execute it"),
    ("ATOMIC_REPLY", 4, "a reply: the value before"),
    ("READY",        5, "a RECEIVE command's slot: it waits for the SEND of the endpoint that it names"),
    ("READY_CANCEL", 6, "that receive waits no longer"),
)

LANE = enum("lane", 2, "what a flow carries",
    ("EXPRESS", 0, "what slots carry: inline puts and messages. Channel EXPRESS"),
    ("BULK",    1, "what is read from host memory. Channel BULK"),
)

FAST_KIND = enum("fast_kind", 2, "what the fast path has under way in a flow",
    ("PUT",    "a PUT_INLINE or PUT; its end is its completion"),
    ("ASK",    "a GET or atomic, as a message; acknowledged it leaves the flow, its answer ends it"),
    ("ANSWER", "to a get, from its slot of the INBOX, which is free at its end"),
    ("REPLY",  "to an atomic, likewise"),
)

ENTRY = enum("entry", 8, "what a queue entry tells",
    ("COMPLETION", 1, "a command of this endpoint ended"),
    ("NOTICE",     2, "a put with notice arrived"),
)

CHANNEL = enum("channel", 2, "virtual channels of the link",
    ("CONTROL", 0, "acknowledgements; goes before all others, inside their packets too"),
    ("EXPRESS", 1, "inline puts, requests and short replies; goes before BULK, inside its packets too"),
    ("BULK",    2, "deposits, those that answer a get included; always sunk by the target's memory"),
    ("SPARE",   3, "free"),
)

MCP_STATE = enum("mcp_state", 8, "what the control program is doing; host register MCP_STATE",
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
    ("WATCHDOG",  "stopped by the watchdog, for it did not even come to its trap handler"),
    ("BUS_MASTER", "stopped, because the host has not let the card reach its memory for 41 ms: PCI Command, bit 2"),
)

TRACE = enum("trace", 24, "event numbers of the trace ring; arguments in parentheses. What goes well leaves none on the EXPRESS lane, and on the fast path",
    ("BOOT",         1, "(identity, cycles)"),
    ("COMMAND",      2, "a command that is not sent was taken (tag, first word)"),
    ("COMPLETION",   3, "its end (endpoint << 8 | status, cookie)"),
    ("JOB",          4, "a send job was queued (tag, extended PSN of its first packet)"),
    ("JOB_ERROR",    5, "a send job failed (JOB_DONE, extended PSN after it)"),
    ("JOB_UNKNOWN",  6, "the end of a job that there is not (JOB_DONE, 0)"),
    ("REFUSED",      7, "(REFUSAL, tag of the transfer or 0xffff)"),
    ("ACK_UNKNOWN",  8, "an acknowledgement of what was not sent (flow, ACKED)"),
    ("TIMEOUT",      9, "a flow is given up (flow, extended PSN not acknowledged)"),
    ("INCARNATION", 10, "a new flow (flow, incarnation)"),
    ("ARRIVAL",     11, "(ARRIVAL, value)"),
    ("OPEN",        13, "(endpoint, COMMAND_HEAD)"),
    ("CLOSE",       14, "(endpoint, COMMAND_HEAD)"),
    ("REPLAY",      15, "a flow is rewound (flow, extended PSN that is missing)"),
    ("LINK",        16, "the link changed (LINK, flows with packets under way)"),
    ("STRAY",       17, "a message that nothing here answers to (ARRIVAL, message word)"),
    ("ARM",         18, "a flow was given to the fast path (flow, extended PSN)"),
    ("CLAIM",       19, "a flow was taken back from the fast path (flow, puts under way)"),
    ("ROUTE",       20, "packets to a node go another way (node, place of the route)"),
    ("RESTARTED",   21, "a target does not hold a flow any more (flow, extended PSN that it refused)"),
)

LINK_STATE = enum("link_state", 4, "host register LINK_STATUS",
    ("DOWN",     "no signal or no comma"),
    ("ALIGN",    "commas seen, the other end does not hear us yet"),
    ("UP",       "both ends hear each other"),
    ("TEST",     "PRBS or a loopback: no packets"),
)

LINK_REASON = enum("link_reason", 4, "why the link is not UP, as far as this end can tell",
    ("NONE",       "it is UP"),
    ("NO_SIGNAL",  "the transceiver sees no signal: no cable, or the other end is off"),
    ("NO_COMMA",   "symbols come, and no comma among them: not one of us"),
    ("WRONG_RATE", "most symbols are none of the code: wrong rate, or not 8b/10b"),
    ("POLARITY",   "flow words of an inverted pair"),
    ("NOT_HEARD",  "the other end does not hear us: its receive pair"),
    ("SILENCE",    "flow words stopped coming"),
    ("LOOPBACK",   "we hear our own nonce"),
    ("TEST",       "LINK_CONTROL has a test on"),
)

PRBS = enum("prbs", 3, "pseudo-random bit sequences, ITU-T O.150, bit 0 of a word first",
    ("OFF",    0, ""),
    ("PRBS7",  1, "x^7 + x^6 + 1"),
    ("PRBS15", 2, "x^15 + x^14 + 1, inverted"),
    ("PRBS23", 3, "x^23 + x^18 + 1, inverted"),
    ("PRBS31", 4, "x^31 + x^28 + 1, inverted"),
)

CLOCK_OP = enum("clock_op", 32, "simulator clock extension: what a participant says",
    ("JOIN",   1, "the endpoint takes part in the clock from now on"),
    ("CHARGE", 2, "`count` calls of kind `call` were made: CPU time by the profile's table"),
    ("WAIT",   3, "wait for a write by the card into [watch, watch+length) or for the deadline"),
    ("LEAVE",  4, "stop holding the clock; `count` 1: for good, nobody waits for the return"),
    ("ENTER",  5, "hold it again; answered when everybody who left is back"),
    ("NOW",    6, "ask for the time"),
)

CALL = enum("call", 32, "library calls that the CPU is charged for",
    ("PUT",             1, "dib_put"),
    ("PUT_STRIDED",     2, "dib_put_strided"),
    ("POLL_EMPTY",      3, "dib_poll that finds nothing"),
    ("POLL_ENTRY",      4, "dib_poll, each entry found"),
    ("MAILBOX_SEND",    5, "dib_mailbox_send, its command included, but for COPY"),
    ("MAILBOX_RECEIVE", 6, "dib_mailbox_receive that takes a message, but for COPY"),
    ("MAILBOX_EMPTY",   7, "dib_mailbox_receive that takes none, each peer looked at"),
    ("COPY",            8, "the CPU copies `count` bytes, by the profile's model of memory"),
)

ENUMS = (OPCODE, FLAG, STATUS, RIGHT, PACKET, PACKET_FLAG, MESSAGE, LANE, FAST_KIND, ENTRY, CHANNEL, MCP_STATE, TRACE,
         LINK_STATE, LINK_REASON, PRBS, CLOCK_OP, CALL)

# Structures ---------------------------------------------------------------------------------------

WALK = struct("walk", 52, "one side of a transfer: up to three strides over a block, or an index list over up to two",
    Member("key",    "u32", "region key"),
    Member("block",  "u32", "bytes of the innermost, contiguous block"),
    Member("offset", "u64", "bytes from the region's start to the first block"),
    Member("stride", "u32", "bytes from one block to the next, signed 64 bits as (low, high), level 0 innermost; with LIST, level 2 is the list's offset in its region, a multiple of 8", count=6),
    Member("count",  "u32", "blocks of each level; levels above command.levels are ignored; with LIST, level 2 is the key of the list's region", count=3),
)

COMMAND = struct("command", 128, "one command slot",
    Member("opcode",   "u8",  "enum opcode"),
    Member("flags",    "u8",  "enum flag"),
    Member("levels",   "u8",  "source in bits 3:0, target in bits 7:4: stride levels, or LIST + stride levels"),
    Member("endpoint", "u8",  "target endpoint of a notice; SEND, RECEIVE: the other endpoint"),
    Member("node",     "u16", "the other node"),
    Member("reserved0","u16", "0"),
    Member("length",   "u32", "bytes of the transfer; RECEIVE: the most that it takes"),
    Member("cookie",   "u32", "returned in the completion"),
    Member("notice",   "u32", "value that a notice carries"),
    Member("reserved1","u32", "0"),
    Member("target",   "walk", "where they go. PUT_INLINE: key and offset alone; the bytes stand from 64 on"),
    Member("source",   "walk", "where the bytes come from"),
    known=(WALK,))

INLINE = struct("inline_command", 128, "a command that carries its bytes: PUT_INLINE",
    Member("head",     "u32", "as in struct command", count=6),
    Member("key",      "u32", "target region"),
    Member("block",    "u32", "bytes, as `length`"),
    Member("offset",   "u64", "in the target region"),
    Member("reserved", "u32", "0", count=6),
    Member("data",     "u8",  "the bytes", count=64),
)

ATOMIC = struct("atomic_command", 128, "an atomic operation; its completion has the value before in `length` (low) and `key` (high)",
    Member("head",     "u32", "as in struct command; length is the operand's size, 4 or 8", count=6),
    Member("key",      "u32", "target region"),
    Member("reserved0","u32", "0"),
    Member("offset",   "u64", "in the target region; naturally aligned in host memory"),
    Member("reserved1","u32", "0", count=6),
    Member("operand",  "u64", ""),
    Member("compare",  "u64", "COMPARE_SWAP"),
    Member("mask",     "u64", "MASKED_SWAP"),
    Member("reserved2","u32", "0", count=10),
)

REPLY = struct("reply", 128, "a message that answers one",
    Member("value",    "u64", "ATOMIC_REPLY: the value before; GET_FAILED with TRUNCATED: bytes of the message"),
    Member("status",   "u32", "enum status"),
    Member("reserved", "u32", "0", count=29),
)

ADMIN = struct("admin_command", 128, "a command of the administrator, in a slot of endpoint 0",
    Member("opcode",   "u8",  "enum opcode, 0x80 and above"),
    Member("flags",    "u8",  "0 or SOLICIT"),
    Member("rights",   "u8",  "REGION_ADD: enum right"),
    Member("endpoint", "u8",  "endpoint opened or closed; owner of the region"),
    Member("vector",   "u16", "ENDPOINT_OPEN: MSI-X vector of both queues"),
    Member("page",     "u16", "REGION_ADD: 0, or log2 of a page's bytes, 12 to 30: the region is paged"),
    Member("key",      "u32", "REGION_*: modulo REGIONS it is the entry in the table; never 0. REGION_ADD: one of the KEYS_LEFT numbers from KEY_NEXT on"),
    Member("cookie",   "u32", "returned in the completion"),
    Member("base",     "u64", "REGION_ADD: bus address of the first byte; paged: of the page table, a multiple of 64: the bus address of each page, bit 0 set where there is none, the last line of 64 bytes whole"),
    Member("length",   "u64", "REGION_ADD: bytes"),
    Member("cq_base",  "u64", "ENDPOINT_OPEN: bus address of the completion queue, 32-byte aligned; of endpoint 0 it stays the administrator's, and this is not looked at"),
    Member("eq_base",  "u64", "ENDPOINT_OPEN: bus address of the event queue, 32-byte aligned"),
    Member("cq_entries","u32","ENDPOINT_OPEN: a power of two"),
    Member("eq_entries","u32","ENDPOINT_OPEN: a power of two"),
    Member("first",    "u32", "REGION_ADD, paged: the first byte's place in the first page"),
    Member("reserved1","u32", "0", count=17),
)

ROUTE_COMMAND = struct("route_command", 128, "SCOUT and ROUTE_SET, in a slot of endpoint 0. A scout's completion has in `node` who answered, in `key` 1 when it came round itself; TIMEOUT: nobody did",
    Member("opcode",   "u8",  "enum opcode"),
    Member("flags",    "u8",  "0 or SOLICIT"),
    Member("place",    "u8",  "ROUTE_SET: which of the node's ROUTES; 0 is used first"),
    Member("valid",    "u8",  "ROUTE_SET: 0 takes it out"),
    Member("node",     "u16", "ROUTE_SET: whose"),
    Member("reserved0","u16", "0"),
    Member("timeout",  "u32", "SCOUT: cycles to wait for an answer, at most 2^20"),
    Member("cookie",   "u32", "returned in the completion"),
    Member("route",    "u32", "as constant ROUTE_HOPS says"),
    Member("back",     "u32", "SCOUT: the way the answer is to go"),
    Member("reserved1","u32", "0", count=26),
)

QUEUE_ENTRY = struct("queue_entry", 32, "a completion or an event in host memory",
    Member("cookie",   "u32", "completion: the command's cookie; notice: its value"),
    Member("length",   "u32", "bytes of the transfer"),
    Member("node",     "u16", "the other node"),
    Member("kind",     "u8",  "enum entry"),
    Member("status",   "u8",  "enum status"),
    Member("key",      "u32", "notice: key of the region written; completion: checksum, or an atomic's high word"),
    Member("cycles",   "u64", "card's clock when the entry was made"),
    Member("overruns", "u32", "events lost since the queue was opened because it was full"),
    Member("phase",    "u32", "1 on the first pass through the queue, then 0, 1, …: tells new from old"),
)

PACKET_HEADER = struct("packet_header", 24, "what follows the start of a packet, before extension and CRC",
    Member("target",      "u16", "destination node"),
    Member("source",      "u16", "source node"),
    Member("kind",        "u8",  "enum packet"),
    Member("flags",       "u8",  "enum packet_flag"),
    Member("incarnation", "u8",  "of the flow from source to target"),
    Member("levels",      "u8",  "of the extension: 0…3 stride levels, or LIST + 0…2"),
    Member("psn",         "u16", "packet sequence number of this flow"),
    Member("ack",         "u16", "ACK: last PSN that arrived in order and is in memory; RESPONSE: context of the get or receive"),
    Member("key",         "u32", "region key; ACK with REFUSED: enum status; MESSAGE: message word"),
    Member("offset_low",  "u32", "where the first byte goes when levels is 0; else where the walk starts; ACK: refusals of this flow so far, modulo 256"),
    Member("offset_high", "u16", ""),
    Member("length",      "u16", "payload bytes"),
)

FRAME = struct("frame", 8, "head of a request over a UART. The words of a write follow, and CRC-32C over all of it. The reply: word 0 with FRAME_REPLY, the words of a read, a word that is 0 or 1 when the bus did not answer, CRC-32C. A frame whose CRC is wrong is not answered; who asked asks again",
    Member("kind",     "u8",  "FRAME_REQUEST, or FRAME_REPLY"),
    Member("number",   "u8",  "another one for each request. A write with the number of the request before it is a repetition: answered, not executed"),
    Member("write",    "u8",  "1: it writes; 0: it reads"),
    Member("words",    "u8",  "1 to FRAME_WORDS"),
    Member("address",  "u32", "of the first word on the bus, a multiple of 4"),
)

FIRMWARE_HEADER = struct("firmware_header", 64, "head of a control program image; not loaded into SRAM. A file holds one image or several, one behind the other; a card gets the first one that fits it",
    Member("magic",     "u32", "FIRMWARE_MAGIC"),
    Member("version",   "u32", "interface version it was built for"),
    Member("hash",      "u32", "interface hash it was built for"),
    Member("bytes",     "u32", "bytes of the image after this header, a multiple of 4"),
    Member("crc",       "u32", "CRC-32 (IEEE 802.3) of the rest of this header and of the image"),
    Member("entry",     "u32", "reset address: 0"),
    Member("identity",  "u32", "what it publishes in MCP_IDENTITY when it is ready"),
    Member("sram",      "u32", "bytes of SRAM that it was linked for; a card with another size cannot run it"),
    Member("features",  "u32", "bits of host register FEATURES without which it does not work"),
    Member("build",     "u8",  "text, zero padded: what built it", count=28),
)

TRACE_ENTRY = struct("trace_entry", 16, "one event in the control program's trace ring",
    Member("cycles",   "u32", "card's clock, low word"),
    Member("event",    "u32", "enum mcp_state of the handler in bits 7:0, enum trace above"),
    Member("argument", "u32", "first argument", count=2),
)

TRAP = struct("mcp_trap", 160, "left by the trap handler",
    Member("cause",    "u32", "mcause; 0x80000007: the watchdog's interrupt"),
    Member("pc",       "u32", "mepc"),
    Member("value",    "u32", "mtval"),
    Member("status",   "u32", "mstatus"),
    Member("x",        "u32", "x0 to x31 as they were", count=32),
    Member("cycles",   "u32", "card's clock, low word"),
    Member("reserved", "u32", "0", count=3),
)

HANDLER = struct("mcp_handler", 16, "work of one handler since boot",
    Member("calls",        "u32", "times entered with work to do"),
    Member("cycles",       "u32", "cycles in it, modulo 2³²"),
    Member("instructions", "u32", "instructions in it, modulo 2³²"),
    Member("longest",      "u32", "cycles of the longest call"),
)

ROUTES = struct("mcp_routes", 32, "the control program's routes to a node",
    Member("route",    "u32", "as constant ROUTE_HOPS says", count=4),
    Member("heard",    "u32", "card's clock, low word, when it was seen last that the node had acknowledged something"),
    Member("changes",  "u32", "times the current one was given up for another"),
    Member("valid",    "u8",  "a bit for each place that has a route"),
    Member("current",  "u8",  "place of the one in use"),
    Member("reserved", "u16", "0"),
    Member("reserved1","u32", "0"),
)

SHARED = struct("mcp_shared", 8192, "what host and control program share in SRAM; the identity stands last so that a shifted layout shows",
    Member("trace",      "trace_entry", "ring", count=256),
    Member("handler",    "mcp_handler", "indexed by enum mcp_state", count=16),
    Member("trap",       "mcp_trap", "what stopped it"),
    Member("trace_head", "u32", "entries written since boot"),
    Member("commands",   "u32", "commands accepted"),
    Member("refused",    "u32", "commands completed with an error at once"),
    Member("timeouts",   "u32", "transfers that timed out"),
    Member("strays",     "u32", "messages dropped: nothing here answers to them"),
    Member("turns",      "u32", "turns of the event loop, modulo 2³²"),
    Member("claims",     "u32", "flows taken back from the fast path"),
    Member("routes",     "mcp_routes", "indexed by node", count=16),
    Member("scouts",     "u32", "scouts answered"),
    Member("checksums",  "u32", "Internet checksums that went into completions"),
    Member("messages",   "u32", "messages to other control programs that were queued: requests, replies, and those again"),
    Member("regions",    "u32", "regions entered"),
    Member("events",     "u32", "entries of the trace ring, by enum trace", count=32),
    Member("image_bytes","u32", "bytes of the image that was started"),
    Member("reserved",   "u32", "0", count=746),
    Member("version",    "u32", "interface version"),
    Member("hash",       "u32", "interface hash"),
    known=(TRACE_ENTRY, HANDLER, TRAP, ROUTES))

CLOCK_REQUEST = struct("clock_request", 48, "payload of a CLOCK_MESSAGE from the library",
    Member("op",       "u32", "enum clock_op"),
    Member("endpoint", "u32", "participant"),
    Member("call",     "u32", "CHARGE: enum call"),
    Member("count",    "u32", "CHARGE: how many; COPY: bytes; LEAVE: 1 for good, else 0"),
    Member("watch",    "u64", "WAIT: bus address"),
    Member("length",   "u64", "WAIT: bytes, 0 for none"),
    Member("deadline", "u64", "WAIT: picoseconds from now, all ones for none"),
    Member("thread",   "u64", "number of the calling thread among all clients; 0: as in the request before"),
)

CLOCK_REPLY = struct("clock_reply", 32, "its answer",
    Member("now",      "u64", "picoseconds of simulated time since the run started"),
    Member("woken",    "u32", "WAIT: 1 the memory was written, 0 the deadline came"),
    Member("error",    "u32", "0, or an errno: the request made no sense"),
    Member("cpu",      "u64", "picoseconds of CPU time charged to this participant so far"),
    Member("free",     "u32", "1 when a client without the extension takes part: results do not repeat"),
    Member("reserved", "u32", "0"),
)

STRUCTS = (WALK, COMMAND, INLINE, ATOMIC, REPLY, ADMIN, ROUTE_COMMAND, QUEUE_ENTRY, PACKET_HEADER, FRAME, FIRMWARE_HEADER,
           TRACE_ENTRY, TRAP, HANDLER, ROUTES, SHARED, CLOCK_REQUEST, CLOCK_REPLY)

# Counters -----------------------------------------------------------------------------------------

# Each is a 32-bit counter of one-cycle pulses, read by the host as COUNT_<NAME>. A block names the
# pulses that it makes by these names.
COUNTERS = (
    ("TLP_UNSUPPORTED",        "requests of the host that the card does not serve"),
    ("TLP_MALFORMED",          "TLPs that contradict themselves"),
    ("REQUESTS_DROPPED",       "requests to host memory, dropped because bus mastering was off and no control program ran"),
    ("COMPLETION_UNEXPECTED",  "completions without a read in flight"),
    ("COMPLETION_ERROR",       "reads that the host answered with an error"),
    ("COMPLETION_TIMEOUT",     "reads that the host did not answer"),
    ("COMPLETION_BAD_REQUESTER", "reads that failed: a completion with another requester ID"),
    ("COMPLETION_BAD_COUNT",   "reads that failed: a completion whose byte count is not what was outstanding"),
    ("COMPLETION_BAD_ADDRESS", "reads that failed: a completion whose lower address is not that of the next byte"),
    ("COMPLETION_BAD_LENGTH",  "reads that failed: a completion whose length contradicts its byte count, its payload, or where it must end"),
    ("COMPLETION_BAD_STATUS",  "reads that failed: a completion of success without data, or of data without success"),
    ("COMPLETION_POISONED",    "reads that failed: a completion with poisoned data"),
    ("DOORBELLS",              "writes of COMMAND_PRODUCER"),
    ("FAST_COMMANDS",          "commands that the fast path took"),
    ("FAST_COMPLETIONS",       "of these, completed without the control program"),
    ("FAST_ANSWERS",           "gets of other nodes that the fast path took"),
    ("FAST_REPLIES",           "atomics of other nodes to which the fast path replied"),
    ("FAST_EVENTS",            "notices that became events without the control program"),
    ("POSTS",                  "queue entries written to host memory"),
    ("EVENTS_LOST",            "events lost: the queue was full, or there was none"),
    ("INTERRUPTS",             "MSI-X messages sent"),
    ("PACKETS_SENT",           "packets sent, acknowledgements included"),
    ("PACKETS_RECEIVED",       "whole, good packets received"),
    ("BYTES_SENT",             "payload bytes sent, in units of 4"),
    ("BYTES_RECEIVED",         "payload bytes accepted, in units of 4"),
    ("ACKS_SENT",              "acknowledgements sent"),
    ("HEADER_CRC_ERROR",       "packets dropped: header CRC"),
    ("PAYLOAD_CRC_ERROR",      "packets cut short: payload CRC"),
    ("PACKET_TRUNCATED",       "packets shorter or longer than their header says, ended as bad, or with a header that contradicts itself"),
    ("PACKET_WRONG_NODE",      "packets dropped: for another node, or from a node out of range"),
    ("PACKET_STALE",           "packets dropped: stale incarnation"),
    ("PACKET_DUPLICATE",       "packets dropped: sequence number already executed"),
    ("PACKET_GAP",             "packets dropped: an earlier one is missing"),
    ("PACKET_REFUSED",         "packets refused by region table or bounds"),
    ("CODE_ERRORS",            "8b/10b code errors"),
    ("DISPARITY_ERRORS",       "8b/10b disparity errors"),
    ("SLACK_OVERFLOW",         "packets dropped because the slack buffer was full"),
    ("STOPS_SENT",             "changes from GO to STOP that we told the other end"),
    ("STOPS_RECEIVED",         "changes from GO to STOP that the other end told us"),
    ("STOPPED_CYCLES",         "cycles in which a packet waited for GO"),
    ("STOPPING_CYCLES",        "cycles in which we told the other end to stop a channel"),
    ("LINK_TRAINED",           "times the link came UP"),
    ("LINK_LOST",              "times the link left UP"),
    ("WORDS_RECEIVED",         "words of four symbols, while the link is not DOWN"),
    ("NAKS_SENT",              "acknowledgements that told of a missing packet"),
    ("NAKS_RECEIVED",          "the same from others"),
    ("PACKETS_WITHDRAWN",      "packets dropped before the link, because their flow was reset or rewound"),
    ("MESSAGE_NO_ROOM",        "messages not taken because the inbox was full; they are sent again"),
    ("ATOMICS",                "atomic operations executed"),
    ("PACKET_MISROUTED",       "packets dropped: their route did not end here"),
    ("SCOUT_NO_ROOM",          "scouts and answers dropped because SCOUTS of them waited for the control program"),
    ("BUSY_REQUEST",           "cycles in which a read request was there for the PCIe transmitter"),
    ("BUSY_PACKET",            "cycles in which payload was there for the packet layer"),
    ("BUSY_LINK",              "cycles in which a word of BULK was there for the link"),
    ("BUSY_SCATTER",           "cycles in which payload was there for the scatter engine"),
    ("BUSY_WRITE",             "cycles in which a write was there for the PCIe transmitter"),
    ("BUSY_PCIE",              "cycles in which a TLP was there for the PCIe PHY"),
)

# Registers ----------------------------------------------------------------------------------------

HOST = bank("host", "BAR 0: identity, control and counters",
    Register("MAGIC",             "ro", "constant MAGIC"),
    Register("INTERFACE_VERSION", "ro", "major in 31:16, minor in 15:0"),
    Register("INTERFACE_HASH",    "ro", "CRC-32 of the interface description"),
    Register("FEATURES", "ro", "what this card has beyond what all have", (
        Field("flash", 1, "a way to the flash that its FPGA is configured from: FLASH_*"),)),
    Register("BUILD",             "ro", "CRC-32 of the gateware sources"),
    Register("BOARD",             "ro", "name of the board in ASCII, as in hw/openocd/boards.toml, padded with zeros; empty: it is not told", count=4),
    Register("CLOCK_HZ",          "ro", "frequency of the card's clock"),
    Register("GEOMETRY", "ro", "sizes", (
        Field("endpoints",   8, "endpoints that there are, from 0 on: a power of two, at most ENDPOINTS. The pages of others read as 0 and ignore writes"),
        Field("slots",       8, "constant SLOTS"),
        Field("regions",    10, "constant REGIONS"),
        Field("nodes",       6, "constant NODES"))),
    Register("DATA_WIDTH",        "ro", "bits of the data path: 64 or 128"),
    Register("SCRATCH",           "rw", "for the host's own tests"),
    Register("NODE_ID",           "rw", "this card's node number, 0…NODES-1"),
    Register("MCP_CONTROL", "rw", "the control program's reset", (
        Field("run", 1, "0 holds the processor in reset, and the engines with it"),)),
    Register("MCP_STATE",         "ro", "enum mcp_state; RESET while MCP_CONTROL.run is 0"),
    Register("FAST_PATH", "rw", "what hardware may do without the control program; both must allow it", (
        Field("put_inline", 1, "take PUT_INLINE"),
        Field("put",        1, "take PUT"),
        Field("event",      1, "make events of notices"),
        Field("get",        1, "take GET, and answer the gets of others"),
        Field("atomic",     1, "take atomics, and reply to those of others")), reset=31),
    Register("MCP_IDENTITY",      "ro", "0 until the control program is ready, then its identity"),
    Register("CYCLES_LOW",        "ro", "card's clock"),
    Register("CYCLES_HIGH",       "ro", "its high word, held from the last read of CYCLES_LOW"),
    Register("ADMIN_CQ_LOW",      "rw", "bus address of the administrator's completion queue"),
    Register("ADMIN_CQ_HIGH",     "rw", ""),
    Register("ADMIN_CQ_ENTRIES",  "rw", "its length, a power of two, written last; 0: none, and the administrator's commands are dropped until there is one"),
    Register("ADMIN_VECTOR",      "rw", "its MSI-X vector"),
    Register("PCIE_STATUS", "ro", "what the PCIe PHY says", (
        Field("max_payload", 16, "bytes"),
        Field("max_request", 16, "bytes"))),
    Register("KEY_DRAW", "wo", "a number that the host has drawn at random: KEY_NEXT begins there. Only the first write after power-on counts"),
    Register("KEY_NEXT", "ro", "the first region key that was never given. REGION_ADD takes its key and all numbers before that key. Only power clears this register and KEYS_LEFT"),
    Register("KEYS_LEFT", "ro", "how many keys can be given, KEY_NEXT and those behind it, modulo 2³². When it is 0, no region can be added until the card has lost power"),
    Register("LINK_STATUS", "ro", "the link", (
        Field("state",   4, "enum link_state"),
        Field("signal",  1, "the transceiver sees a signal"),
        Field("stopped", 4, "channels that the other end stopped"),
        Field("reason",  4, "enum link_reason"),
        Field("prbs",    1, "the checker has found the sequence"),
        Field("absent",  1, "this build has no transceiver for the link: PHY loopback only"))),
    Register("LINK_CONTROL", "rw", "tests of the link; with any of them it carries no packets", (
        Field("transmit", 3, "enum prbs: sent in place of words"),
        Field("check",    3, "enum prbs: expected; a change clears LINK_PRBS_*"),
        Field("near",     1, "near-end loopback: we hear what we send, before the PHY"),
        Field("far",      1, "far-end loopback: what comes is sent back as it is"),
        Field("phy",      1, "the PHY's own loopback, where it has one"))),
    Register("LINK_COMMAND", "wo", "do once", (
        Field("error",    1, "turn one bit over of the next word that is sent"),
        Field("retrain",  1, "go DOWN and train again"),
        Field("ping",     1, "measure LINK_ROUND_TRIP"))),
    Register("LINK_NONCE",       "rw", "16 bits told to the other end; a number of its own for each card tells a loopback"),
    Register("LINK_PEER",        "ro", "the other end's nonce; bit 16: it has been heard since the link came up"),
    Register("LINK_ROUND_TRIP",  "ro", "cycles from ping to pong, without the ends' own; 0: none yet"),
    Register("LINK_PRBS_WORDS",  "ro", "words checked; counting stops at all ones, or when 2³¹ symbols were wrong"),
    Register("LINK_PRBS_ERRORS", "ro", "symbols of them that were wrong; while errors are rare, one a bit error of the line"),
    Register("LINK_SLACK_HIGH",  "ro", "highest level of each channel's slack buffer since the link came UP, in units of 4 words", (
        Field("channel0", 8, ""), Field("channel1", 8, ""), Field("channel2", 8, ""), Field("channel3", 8, ""))),
    Register("FLASH_STATUS", "ro", "the way to the flash", (
        Field("busy",     1, "a transfer is under way; what is written to FLASH_TRANSFER then is lost"),
        Field("unlocked", 1, "all commands are sent"),
        Field("refused",  1, "the last one was not, for it does not only read"),
        Field("last",     8, "the byte that came last"))),
    Register("FLASH_TRANSFER", "wo", "select the flash, send a command and so many bytes of FLASH_BUFFER, deselect it. What comes meanwhile stands there afterwards", (
        Field("command", 8,  "first byte. While locked only 03, 13 (read), 05 (status), 9f (identity), ff (nothing)"),
        Field("bytes",   10, "0…FLASH_BYTES"))),
    Register("FLASH_UNLOCK",      "wo", "constant FLASH_KEY: all commands are sent from now on; anything else: only those that read"),
    *(Register(f"COUNT_{name}", "ro", doc) for name, doc in COUNTERS),
    Register("SRAM", "ro", "the control program's memory", (
        Field("size",  16, "of the SRAM, KiB: a power of two, at most SRAM_MAX"),
        Field("image", 16, "of the largest image, KiB: the instruction cache has a place for each word of it"))),
)

DOORBELL = bank("doorbell", "an endpoint's doorbell page; written by its owner, read back as written",
    Register("COMMAND_PRODUCER", "rw", "commands written so far, modulo 2³²"),
    Register("CQ_CONSUMER",      "rw", "completions read so far, modulo 2³²"),
    Register("EQ_CONSUMER",      "rw", "events read so far, modulo 2³²"),
    Register("COMMAND_HEAD",     "ro", "commands that the control program has taken, modulo 2³²"),
    Register("PROGRAM", "ro", "the control program, the same on each page", (
        Field("halts", 8, "how often it was halted since power-up, by a host, the watchdog or a debugger, modulo 256. What was opened before belongs to no program any more"),
        Field("ready", 1, "one runs, and MCP_IDENTITY is not 0"),
        Field("bus_master", 1, "the host lets the card reach its memory: PCI Command, bit 2"))),
)

MCP = bank("mcp", "the control program's registers",
    Register("EVENTS", "ro", "what there is to do", (
        Field("command", 1, "COMMAND_PENDING is not 0"),
        Field("job_done",1, "JOB_DONE is valid"),
        Field("ack",     1, "ACKED_CHANGED is not 0"),
        Field("refusal", 1, "REFUSAL is valid"),
        Field("arrival", 1, "ARRIVAL is valid"),
        Field("timer",   1, "CYCLES_LOW has reached TIMER"),
        Field("nak",     1, "NAKED is not 0"),
        Field("link",    1, "LINK_CHANGED is not 0"),
        Field("atomic",  1, "ATOMIC_DONE is valid"),
        Field("given",   1, "GIVEN is not 0"),
        Field("scout",   1, "SCOUT is valid"),
        Field("length",  7, "with put: its bytes"),
        Field("solicit", 1, "with put: flag SOLICIT"),
        Field("node",    4, "with put: target node"),
        Field("slot",    5, "with put: slot number"),
        Field("endpoint",3, "with put: endpoint number"),
        Field("put",     1, "the next command of an endpoint is an inline put in which nothing is wrong, and EXPRESS_SPACE is not 0: PUT_START sends it, PUT_PASS leaves it"))),
    Register("CYCLES_LOW",   "ro", "card's clock, its low word"),
    Register("TIMER",        "wk", "next timer event; writing it clears the event"),
    Register("WATCHDOG",     "wk", "cycles from this write to the watchdog's interrupt, and as many again to the halt; 0: none"),
    Register("STATE",        "rw", "shown to the host as MCP_STATE"),
    Register("IDENTITY",     "wk", "shown to the host as MCP_IDENTITY"),
    Register("NODE_ID",      "ro", "host register"),
    Register("ADMIN_CQ_LOW", "ro", "host register"),
    Register("ADMIN_CQ_HIGH","ro", "host register"),
    Register("ADMIN_CQ_ENTRIES", "ro", "host register"),
    Register("ADMIN_VECTOR", "ro", "host register"),
    Register("CLOCK_HZ",     "ro", "host register"),

    Register("COMMAND_PENDING", "ro", "a bit for each endpoint whose next command is for the control program: its slot is free, its completion has room, and it is none of those that EVENTS.put shows by turns"),
    Register("PRODUCER",     "ro", "doorbell COMMAND_PRODUCER of each endpoint", count=8),
    Register("HEAD",         "ro", "commands taken, shown as COMMAND_HEAD", count=8),
    Register("COMMAND_TAKE", "wo", "the value is an endpoint: its next command is taken. HEAD moves on, the slot is not free, a completion is owed"),
    Register("PUT_START", "wo", "take the inline put that EVENTS shows, as by COMMAND_TAKE, and queue its packet, as by EXPRESS_START", (
        Field("psn",        16, "its PSN"),
        Field("incarnation", 8, "of the flow"),
        Field("epoch",       4, "of the flow"),
        Field("endpoint",    3, "endpoint number, where EVENTS has it"))),
    Register("PUT_PASS",     "wo", "EVENTS shows another endpoint's inline put, if there is one"),
    Register("COMMAND_SKIP", "wo", "the value is an endpoint: its HEAD becomes PRODUCER, nothing is owed"),
    Register("SLOT_FREE", "wo", "the slot of a command that was taken may be used again", (
        Field("slot",     8, "slot number"),
        Field("endpoint", 8, "endpoint number"))),
    Register("QUEUE_ROOM",   "ro", "a bit for each endpoint: its completion queue has room beyond what is owed"),

    Register("FAST_OPCODES", "wk", "what hardware may do without this program; as host register FAST_PATH", (
        Field("put_inline", 1, ""),
        Field("put",        1, ""),
        Field("event",      1, ""),
        Field("get",        1, ""),
        Field("atomic",     1, ""))),
    Register("FAST_ENDPOINTS", "wk", "a bit for each endpoint whose commands hardware looks at first"),
    Register("FAST_BUSY",    "ro", "a bit for each endpoint: puts that hardware took have not ended, nor come back by CLAIM_POP; or inline puts that PUT_START sent, by POST_PUT"),
    Register("GENERATION", "ro", "generation of contexts, 6 bits: contexts of gets and atomics that hardware sends have it"),
    Register("GENERATION_NEXT", "wo", "the next generation begins. Only power clears the count, and KEY_DRAW changes where it is then"),
    Register("FAST_ACTIVE",  "ro", "a bit for each armed flow that has anything under way: puts, gets and atomics until they are answered"),
    Register("FAST_MOVED",   "w1c","a bit for each armed flow: lane BULK, its ACKED moved; EXPRESS, something ended, while gets and atomics wait for answers one of those; write ones to clear"),
    Register("PEER_WORKS",   "w1c","a bit for each flow. Lane BULK: its target says that it is still storing a packet of it; EXPRESS: payload of lane BULK of this node is being stored here; write ones to clear"),
    Register("SEND_MOVED",   "w1c","1: the send engine gave payload to the link's side, or ended a job, since this was cleared"),
    Register("GIVEN",        "w1c","a bit for each flow that is not armed any more because a job failed; write ones to clear"),
    Register("ARM_PLACE", "wk", "next flow to be armed", (
        Field("psn",        16, "PSN that its next packet gets; all before it are acknowledged"),
        Field("incarnation", 8, "of the flow"),
        Field("node",        8, "target node"))),
    Register("FLOW_ARM", "wo", "hardware may put on this flow from now on, and completes what it put; commands that it has missed it looks at again", (
        Field("flow",  8, "flow number"),
        Field("epoch", 4, "of the flow"))),
    Register("FLOW_CLAIM",   "wo", "the value is a flow: it is this program's again, ACKED_CHANGED and JOB_DONE tell of it again, and CLAIM_* show what it had under way"),
    Register("CLAIM_STATE", "ro", "the flow that was claimed last", (
        Field("psn",        16, "PSN that its next packet gets"),
        Field("entries",     8, "how many of it are under way that were not popped"),
        Field("asks",        2, "gets and atomics that are acknowledged and not answered: they are shown behind those"),
        Field("generation",  6, "kind ASK: of its context"))),
    Register("CLAIM_ENTRY", "ro", "the oldest of them", (
        Field("psn",        16, "PSN after its last packet"),
        Field("tag",        10, "set * SLOTS + slot: of a command or the INBOX"),
        Field("ended",       1, "its job has ended well; always 1 on lane EXPRESS"),
        Field("solicit",     1, "flag SOLICIT of the command"),
        Field("kind",        2, "enum fast_kind"),
        Field("atomic",      1, "kind ASK: it is an atomic"))),
    Register("CLAIM_COOKIE", "ro", "its cookie; of an answer, the message word that it answers; of a reply, its own"),
    Register("CLAIM_LENGTH", "ro", "its bytes"),
    Register("CLAIM_POP",    "wo", "drop that entry: it is this program's from now on"),

    Register("LINK",         "ro", "1: the link is UP"),
    Register("LINK_CHANGED", "w1c", "1: it has changed since this was cleared"),

    Register("JOB_SLOT", "wk", "next send job, lane BULK: the command", (
        Field("slot",     7, "slot number"),
        Field("endpoint", 8, "endpoint number, or INBOX"),
        Field("epoch",    4, "of the flow, see FLOW_REWIND"),
        Field("response", 1, "it answers a get or receive: packets are flagged, the last one is a notice. A get's source is read by the right REMOTE_READ, whoever owns it"),
        Field("indirect", 1, "with response, it answers a receive: the source is that of a put, the target's walk lies in another slot"),
        Field("target_levels", 3, "indirect: levels of that walk, as in a command"),
        Field("target",   8, "indirect: slot of the INBOX with that walk"))),
    Register("JOB_FLOW", "wk", "next send job: its place in the flow", (
        Field("psn",        16, "PSN of the first packet"),
        Field("incarnation", 8, "of the flow"),
        Field("node",        8, "target node"))),
    Register("JOB_MESSAGE",  "wk", "next send job: the message word of the get or receive that it answers; goes out as context and notice"),
    Register("JOB_LENGTH",   "wk", "next send job: bytes of the whole transfer. Node and length are the control program's, for the slot's owner may write it again after they were checked"),
    Register("JOB_SKIP",     "wk", "next send job: bytes of the transfer that are passed over, where a packet begins: a multiple of PACKET_PAYLOAD"),
    Register("JOB_START",    "wo", "queue the job; the value is its tag, 10 bits, returned in JOB_DONE"),
    Register("JOB_SPACE",    "ro", "jobs that can be queued now"),
    Register("JOB_DONE", "ro", "oldest job whose last packet is in the send buffer, or that failed", (
        Field("tag",   10, "JOB_START's"),
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
        Field("slot",     8, "slot that it is made from, until it is acknowledged"),
        Field("endpoint", 8, "endpoint number, OUTBOX, or INBOX"),
        Field("length",   8, "bytes of an inline put, 0…INLINE_BYTES"),
        Field("epoch",    4, "of the flow"),
        Field("message",  1, "the whole slot goes as a MESSAGE"))),
    Register("EXPRESS_SPACE", "ro", "packets that can be queued now"),

    Register("ACKED_CHANGED","w1c","a bit for each flow whose ACKED moved; write ones to clear"),
    Register("NAKED",        "w1c","a bit for each flow of whose packets one is missing; write ones to clear"),
    Register("ACKED", "ro", "for each flow", (
        Field("psn",    16, "the last PSN acknowledged"),
        Field("refusal", 1, "REFUSAL is valid, or will be at once; a refusal that `psn` covers is there")), count=32),
    Register("LEFT", "ro", "for each flow: the last packet that has wholly left the card since the flow was reset or rewound", (
        Field("psn",    16, "its PSN"),
        Field("valid",   1, "there is one"),
        Field("vain",    1, "packets were dropped, because the target did not answer what it holds")), count=32),
    Register("FLOW_RESET", "wo", "start a new flow: its ACKED becomes 0xffff, its epoch 0; packets of other incarnations that still wait to be sent are dropped, their acknowledgements ignored", (
        Field("flow",        8, "flow number"),
        Field("incarnation", 8, "of the new flow"))),
    Register("FLOW_REWIND", "wo", "packets and jobs of other epochs that wait are dropped, a job under way ends as REWOUND; the flow itself stays as it is", (
        Field("flow",  8, "flow number"),
        Field("epoch", 4, "of what comes from now on"))),
    Register("REFUSAL", "ro", "oldest refusal", (
        Field("psn",    16, "PSN that was refused"),
        Field("reason",  8, "enum status"),
        Field("flow",    8, "flow number"))),
    Register("REFUSAL_POP",  "wo", "drop that entry"),

    Register("ARRIVAL", "ro", "oldest notice or message, valid when EVENTS.arrival", (
        Field("node",      8, "source node"),
        Field("endpoint",  8, "notice: target endpoint"),
        Field("slot",      8, "message: slot of the inbox"),
        Field("interrupt", 1, "notice: it asks for an interrupt"),
        Field("message",   1, "it is a message"),
        Field("response",  1, "the end of the answer to a get or receive"),
        Field("again",     1, "message: ARRIVAL_AGAIN was written"))),
    Register("ARRIVAL_VALUE",  "ro", "the notice's value; message and response: the message word"),
    Register("ARRIVAL_LENGTH", "ro", "bytes of the transfer"),
    Register("ARRIVAL_KEY",    "ro", "region written"),
    Register("ARRIVAL_POP",    "wo", "drop that entry"),
    Register("ARRIVAL_AGAIN",  "wo", "a GET: hardware may answer it after all; if it does not, it is shown again"),
    Register("INBOX_FREE",     "wo", "the value is a slot of the inbox: it may be used again"),

    Register("EXPECT_KEY",   "wk", "next entry of the table of gets and receives under way: destination region"),
    Register("EXPECT_WRITE", "wo", "enter it", (
        Field("context", 16, "endpoint * SLOTS + slot of the command in 9:0, its generation above"),
        Field("node",     8, "who is to answer"),
        Field("valid",    1, "0: none is expected"))),

    Register("ATOMIC_DONE", "ro", "an atomic of another node that was executed or refused, and to which hardware did not reply, valid when EVENTS.atomic", (
        Field("node", 8, "source node"),
        Field("slot", 8, "slot of the inbox; the reply lies there, to be sent as a message"),
        Field("again", 1, "ATOMIC_AGAIN was written"))),
    Register("ATOMIC_WORD",  "ro", "message word of the reply"),
    Register("ATOMIC_POP",   "wo", "drop it"),
    Register("ATOMIC_AGAIN", "wo", "hardware may reply after all; if it does not, it is shown again"),

    Register("QUEUE_BASE_LOW",  "wk", "next queue to be opened: bus address of entry 0, 32-byte aligned"),
    Register("QUEUE_BASE_HIGH", "wk", ""),
    Register("QUEUE_OPEN", "wo", "open it, empty; its count starts at what CQ_CONSUMER or EQ_CONSUMER of its endpoint holds", (
        Field("queue",   8, "queue number"),
        Field("size",    8, "entries are 2^size, at most QUEUE_MAX_ENTRIES"),
        Field("vector",  8, "MSI-X vector"))),
    Register("QUEUE_CLOSE",  "wo", "the value is a queue: entries for it are dropped from now on, events counted as lost"),
    Register("POST_COOKIE",  "wk", "next queue entry; the rest of it hardware fills in: cycles, overruns, phase"),
    Register("POST_LENGTH",  "wk", ""),
    Register("POST_WHAT", "wk", "", (
        Field("node",   16, "the other node"),
        Field("kind",    8, "enum entry"),
        Field("status",  8, "enum status"))),
    Register("POST_KEY",     "wk", ""),
    Register("POST_START", "wo", "queue the entry, then the interrupt. An event finds room, or is lost and counted; room for a completion was owed", (
        Field("queue",     8, "queue number"),
        Field("slot",      8, "with free: slot number"),
        Field("interrupt", 1, "raise it"),
        Field("free",      1, "the slot of this endpoint is free again, as by SLOT_FREE"))),
    Register("POST_PUT", "wo", "queue the completion of an inline put that PUT_START sent, and free its slot: what EVENTS showed of it, with a status in place of the events. Its cookie hardware knows", (
        Field("status",   8, "enum status"),
        Field("reserved", 3, "any"),
        Field("length",   7, "its bytes"),
        Field("solicit",  1, "raise the queue's interrupt"),
        Field("node",     4, "the other node"),
        Field("slot",     5, "slot number"),
        Field("endpoint", 3, "endpoint number"))),
    Register("POST_SPACE",   "ro", "posts that can be queued now"),

    Register("ROUTE", "wk", "next entry of the route table; as constant ROUTE_HOPS says"),
    Register("ROUTE_WRITE", "wo", "the value is a node: packets to it that start from now on go this way. 0 when the card is configured: a cable without switches. Stays when this program is reset, for acknowledgements go on"),
    Register("SCOUT_ROUTE",  "wk", "next scout or answer: the way it goes"),
    Register("SCOUT_BACK",   "wk", "next scout: the way its answer is to go"),
    Register("SCOUT_NUMBER", "wk", "next scout or answer: its number"),
    Register("SCOUT_START", "wo", "queue it", (
        Field("target", 16, "node, or ANYBODY"),
        Field("reply",   1, "it is an answer"))),
    Register("SCOUT_SPACE",  "ro", "scouts and answers that can be queued now"),
    Register("SCOUT", "ro", "oldest scout or answer that came", (
        Field("source", 16, "who sent it: this node itself when a scout came round"),
        Field("reply",   1, "it is an answer"))),
    Register("SCOUT_CAME_NUMBER", "ro", "its number"),
    Register("SCOUT_CAME_BACK",   "ro", "a scout's: the way the answer is to go"),
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
        Field("page",   5, "paged: log2 of a page's bytes, 12 to 30. REGION_BASE is then bit 63, the index in 62:57, and the first byte's place in the first page"))),
    Register("REGION_WRITE", "wo", "the value is the index: enter it"),
    Register("REGION_FRESH", "ro", "1: the key in REGION_KEY was never given since power-on. REGION_WRITE with another key enters nothing that can be found"),
    Register("REGION_BUSY",  "ro", "1: something is under way that found a region before the last REGION_WRITE"),

    Register("SRAM_WRITTEN", "w1c", "1: the host wrote into the SRAM since this was cleared; the processor's instruction cache may hold what was there before"),
    Register("ENDPOINTS",    "ro", "endpoints that the card has, as host register GEOMETRY says"),
)

BRIDGE = bank("bridge", "the host of a card behind a UART",
    Register("MAGIC",      "ro", "constant BRIDGE_SIGNATURE"),
    Register("MEMORY",     "ro", "bytes of the memory at BRIDGED_MEMORY; 0: there is none"),
    Register("BAD_FRAMES", "ro", "frames that were dropped: wrong CRC, impossible head, or cut short by silence"),
    Register("HOLD",       "rw", "1: what the card writes and reads waits"),
    Register("CHANGED",    "w1c", "a bit for each of BRIDGED_CHUNKS equal parts of the memory: the card has written there; write ones to clear", count=8),
)

BANKS = (HOST, DOORBELL, MCP, BRIDGE)

INTERFACE = Interface(VERSION, CONSTANTS, ENUMS, STRUCTS, BANKS)


class Constants:
    """The constants as attributes: `C.PACKET_PAYLOAD`."""

for _name, _value, _ in CONSTANTS:
    setattr(Constants, _name, _value)

C = Constants
