/**
 * libdibber: strided deposits into another machine's memory.
 *
 * A program opens a card, loads the control program, opens an endpoint, registers memory, and puts. One
 * dib_put() or dib_put_strided() is one command in a slot of the card and one doorbell, whatever the
 * number of elements; the library never touches a payload byte.
 *
 * Errors
 *	Functions that can fail return a negative enum dib_error; dib_last_reason() then says in words what
 *	was wrong, in the calling thread. Each says which errors it knows. The library never ends the program. It prints
 *	one thing: why simulated time stands, see dib_open().
 *
 * Nothing
 *	A transfer and a region have at least one byte. One of no bytes (a length, a block or a count of 0, an empty list) is
 *	refused with ARGUMENT, and the reason says so. Nothing of it reaches the card: no completion and no notice comes. A
 *	message of a mailbox may have no bytes, and is delivered. Reading or writing 0 bytes of the
 *	flash or of the control program's memory, or erasing none, changes nothing; the place must be a valid one.
 *
 * Threads
 *	A card may be used by several threads at once. An endpoint (put, poll, wait) belongs to one thread at
 *	a time: give each thread its own, that is what they are for.
 *	Where a simulator keeps the clock, every call takes somebody's simulated time: those on the card its opener's,
 *	those on an endpoint and its regions the endpoint's (own_clock). There they are made by that thread, "any
 *	thread" notwithstanding.
 *
 * Ordering
 *	Puts of one endpoint to one node are executed in order among themselves, and so are inline puts; an inline
 *	put may overtake a put, and gets and atomics have no order. FENCE makes one: such a command starts when
 *	all earlier ones of its endpoint have completed. A completion or event becomes visible after every byte
 *	that it announces. Sends meet receives in the order in which each was posted; completions come in any order.
 *
 * Failures
 *	A completion with another status than OK tells that the transfer ended there. Bytes go in the order of the walks. When the
 *	source fails, the target holds the right bytes up to some place of the transfer, and behind it what it had before. When
 *	the target fails, each packet is judged by itself: packets behind the one that was refused, which were on their way
 *	already, may have been written, as far as they stay in the walk and the region. No byte outside of the target's walk,
 *	or of its region, is ever written, and no byte gets a wrong value. The source is never changed.
 *	BAD_OPCODE, BAD_FLAGS, BAD_LEVELS, BAD_COUNT, BAD_LENGTH, BAD_NODE, REMOTE_BAD_HEADER, TRUNCATED, and FLUSHED of a
 *	command that had not started: nothing was written.
 *	BAD_KEY, NOT_OWNER, NOT_PERMITTED, REMOTE_BAD_KEY, REMOTE_NOT_PERMITTED: nothing was written, unless the region was
 *	withdrawn while the transfer ran; then what came before that was.
 *	BOUNDS, REMOTE_BOUNDS: what lies before the first block that leaves its region may have been written, and of that
 *	block a first part inside the region, up to the edge of a packet. About the target: also packets behind it, see above.
 *	READ_ERROR, READ_TIMEOUT, REMOTE_READ_ERROR: whole packets before the place that could not be read.
 *	BAD_LIST, REMOTE_BAD_LIST: nothing when the list's key or rights are wrong; else what lies before its end.
 *	TIMEOUT, HALTED, FLUSHED of a command that had started: any part, also all of it. With these alone its notice may have
 *	been delivered; with all others it was not.
 *	A status without REMOTE is about this node's side, one with REMOTE about the other's: for a put BOUNDS is about the
 *	source and REMOTE_BOUNDS about the target; for a get, and a receive, it is the other way round.
 *	A key of another endpoint's region is NOT_OWNER for the source of a put or send, and for the target of a get or receive.
 *	BAD_ARGUMENT and IN_USE answer the library's own commands; a call that gets one returns COMMAND. REWOUND never comes.
 *
 * Handles
 *	Cards, endpoints, regions and mailboxes are handles. Each is closed once, by the thread that opened it or one that
 *	takes its place, in any order. Any call on a handle that was closed returns CLOSED, a second close too. NULL is
 *	ARGUMENT, but for calls that close: these succeed. A handle of another kind is ARGUMENT.
 *
 * Owners
 *	Closing a card closes its endpoints, regions and mailboxes. Closing an endpoint closes its mailbox; its regions stay.
 *	Calls on such a handle return CLOSED. It may still be closed, once, which succeeds and does nothing.
 *	No address of a handle is used twice in a process, so an old pointer never names a new handle. That costs 64 bytes
 *	of address space for each region, 576 bytes for each endpoint, 4 KiB for each card, and 192 bytes to 3 KiB for each
 *	mailbox that was ever opened. The memory behind them goes back to the system.
 *
 * Processes
 *	A card, and all that belongs to it, is for the process that opened it. In a child of fork(2) each call on such a
 *	handle returns FORKED, and does nothing; so does a call that closes. The parent's card, clock and registered memory
 *	are not touched, whatever the child does with its handles, and however it ends. The library closes its descriptors
 *	in the child, so that the end of the parent ends the connection. The child may open cards of its own, and allocate.
 *	Memory of dib_alloc() is shared between parent and child. Memory of the library's own, queues say, is not in the
 *	child. A child of vfork(2) may call nothing but exec(3). Every descriptor is closed by exec(3). A child of raw
 *	clone(2) keeps copies of the descriptors until it ends or calls exec(3); its calls return FORKED as well.
 *
 * Halts
 *	Endpoints and regions belong to the control program that runs when they are opened. When that is halted, for it failed
 *	or another is loaded, they are gone on the card. The library finds that out when nothing else happens: within a
 *	millisecond of dib_wait(), after 4,000 looks that found nothing, or in the first one behind an interrupt, which the card
 *	raises then for each endpoint that has a descriptor. Then each command under way completes with status HALTED:
 *	it may have been executed or not, and so may its notice. What had completed before stays to be polled, and events, too.
 *	After that the endpoint's calls return HALTED until it is closed, and opened again when a program runs. dib_unregister()
 *	gives a region back as ever.
 *
 * Lengths, offsets and strides are bytes. Times are nanoseconds unless their name says otherwise.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_DIBBER_H
#define DIBBER_DIBBER_H

#include <stddef.h>
#include <stdint.h>

#include <dibber_interface.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct dib_card;
struct dib_endpoint;
struct dib_region;
struct dib_mailbox;

/* What went wrong. dib_strerror() has a sentence for each. */
enum dib_error {
	DIB_ERR_ARGUMENT       = -1,	/* an argument makes no sense; nothing was done */
	DIB_ERR_NOT_FOUND      = -2,	/* no such card, socket or file; nobody at the end of a route */
	DIB_ERR_IDENTITY       = -3,	/* the device is not a Dibber card */
	DIB_ERR_VERSION        = -4,	/* the other side has another interface version */
	DIB_ERR_PROTOCOL       = -5,	/* the other side sent what it must not; a simulated card is lost then */
	DIB_ERR_LOST           = -6,	/* the card or simulator went away */
	DIB_ERR_AGAIN          = -7,	/* no free command slot: poll completions, then try again */
	DIB_ERR_TIMEOUT        = -8,	/* no answer in time */
	DIB_ERR_NO_MEMORY      = -9,	/* the system has no memory or descriptors left */
	DIB_ERR_FIRMWARE_FILE  = -10,	/* not a control program image, or damaged; the card was not touched */
	DIB_ERR_FIRMWARE_CRC   = -11,	/* what the card holds is not what was written */
	DIB_ERR_FIRMWARE_START = -12,	/* the control program did not publish its identity */
	DIB_ERR_NO_FIRMWARE    = -13,	/* this needs a control program: dib_firmware_load() */
	DIB_ERR_LIMIT          = -14,	/* all regions, endpoints or bus addresses are in use, or all keys used up */
	DIB_ERR_IN_USE         = -15,	/* somebody has it already: the card, the endpoint, the control program */
	DIB_ERR_COMMAND        = -16,	/* the control program refused; the reason has its status */
	DIB_ERR_CLOSED         = -17,	/* the handle was closed, or what it belongs to; of a mailbox: its peer was */
	DIB_ERR_CLOCK          = -18,	/* the simulator's clock refused */
	DIB_ERR_SYSTEM         = -19,	/* a system call failed; the reason has its name and errno */
	DIB_ERR_HALTED         = -20,	/* the control program was halted or loaded anew: close what belonged to it, open it again */
	DIB_ERR_FLASH          = -21,	/* the flash is protected, stays busy, or is none that is known */
	DIB_ERR_FORKED         = -22,	/* another process opened it: this one is a child of that */
};

/**
 * dib_strerror() - what an error code means, in one sentence.
 *
 * Returns a constant string, also for codes that do not exist. Any thread.
 *
 * Errors: none.
 */
const char *dib_strerror(int error);

/**
 * dib_last_reason() - the particulars of the calling thread's last error.
 *
 * Returns a string that is overwritten by this thread's next error; "" before the first one.
 *
 * Errors: none.
 */
const char *dib_last_reason(void);

/**
 * dib_status_name() - the name of an enum dibber_status.
 *
 * Returns a constant string, "REMOTE_BOUNDS" say, or "UNKNOWN". Any thread.
 *
 * Errors: none.
 */
const char *dib_status_name(unsigned int status);

/**
 * dib_status_string() - what an enum dibber_status means, in one sentence.
 *
 * Returns a constant string, also for a status that does not exist. Any thread.
 *
 * Errors: none.
 */
const char *dib_status_string(unsigned int status);

/* Cards ------------------------------------------------------------------------------------------ */

struct dib_card_options {
	uint64_t iova_base;	/* first bus address handed out, a multiple of 4096; 0: below 4 GiB */
	uint32_t observe;	/* 1: watch and administer a card that another program may be driving */
	uint32_t reserved;	/* 0 */
};

struct dib_counter {
	const char *name;	/* "packets_sent"; constant */
	uint32_t value;		/* modulo 2³² */
};

struct dib_card_info {
	uint32_t interface_version;	/* major in 31:16, minor in 15:0 */
	uint32_t interface_hash;
	uint32_t features;
	uint32_t build;			/* CRC-32 of the gateware sources */
	uint32_t clock_hz;
	uint32_t endpoints;
	uint32_t slots;			/* commands that an endpoint can have under way */
	uint32_t regions;
	uint32_t nodes;
	uint32_t data_width;		/* bits */
	uint32_t sram_bytes;		/* of the control program's memory; struct dibber_mcp_shared is its end */
	uint32_t image_limit;		/* bytes of the largest image that the card takes */
	uint32_t node;			/* this card's number */
	uint32_t mcp_state;		/* enum dibber_mcp_state */
	uint32_t mcp_identity;		/* 0: no control program is running */
	uint32_t link_state;		/* enum dibber_link_state */
	uint32_t link_stopped;		/* bit n: the other end stopped channel n */
	uint32_t max_payload;		/* PCIe, bytes */
	uint32_t max_request;		/* PCIe, bytes */
	uint64_t cycles;		/* card's clock */
	uint32_t simulated_clock;	/* 1: the simulator keeps the time of this program */
	uint32_t copies;		/* 1: the card has a copy of what is registered, as dib_open() says of a UART … */
	uint32_t shared_bytes;		/* … and room for so much; 0: for none */
	struct dib_counter counters[DIBBER_COUNTERS];
};

/**
 * dib_open() - open a card.
 * @uri:     "sim:PATH", PATH being the socket of a simulated card; "vfio:ADDRESS", ADDRESS being that of a card
 *           in a PCIe slot ("0000:01:00.0") which has an IOMMU and is bound to the kernel's driver vfio-pci; or
 *           "uart:PORT", PORT being the serial port of a card without PCIe ("/dev/ttyUSB1"); behind it may stand
 *           "?baud=RATE" (1000000), "timeout=MILLISECONDS" that an answer may take (100), or both with '&' between
 * @options: may be NULL
 * @card:    set on success; the caller closes it with dib_close()
 *
 * Checks that the device is a Dibber card with the interface that this library was built for, and lets it
 * master the bus. A card is opened by one process at a time.
 *
 * With @options->observe a simulated card is opened beside that process, as often as one likes, and not reset: registers and
 * the control program's memory can be read and written, and a program be loaded. Endpoints cannot be opened. Such a handle has no
 * part in the clock: time goes on for what it reads, so that a run that is observed is another run. VFIO knows one
 * user only: there such a handle is that of any other program, or IN_USE.
 *
 * On a simulated card the calling thread joins the clock as the card's endpoint 0, for itself and for all endpoints
 * without own_clock. Simulated time 0 is when as many have joined as the simulator waits for; this call waits for that.
 * One thread may open several cards: see "The simulator's clock". It opens them one after the other, so the simulator
 * must not wait for more than one participant ("dibber sim start" waits for none).
 *
 * When a simulator has not answered a call for 10 seconds because its time stands, the library writes a line to
 * stderr. The line names the participant that holds the clock, by card and endpoint, or how many have not joined. The
 * line comes again after each further 10 seconds. The environment variable DIBBER_CLOCK_NOTICE, read by dib_open(), is
 * another number of seconds; 0 turns the line off.
 *
 * Through VFIO the process must be allowed to open the group of the card in /dev/vfio, and to pin what it registers
 * ("ulimit -l").
 *
 * A card behind a UART reaches no memory but its own. What is registered has a copy there, as long as there is room (info.shared_bytes,
 * of which queues take 12 KiB for each endpoint, and each region whole pages and a page between two): else LIMIT. Program and
 * copy are brought to the same state when something is registered, at each command (what the program has written goes to the card), by each
 * dib_poll(), dib_poll_events(), dib_wait(), dib_clock_leave() and dib_clock_enter() of the card (both ways), and by dib_unregister().
 * What the card has written comes all at once and in order: what an entry announces is there. A program must not change bytes of a word
 * (4 bytes, aligned) in which another node changes others at the same time. There are no interrupts. What is damaged on the line is
 * asked for again, up to four times; no register is written twice by that.
 *
 * Errors: ARGUMENT (no such kind of URI), NOT_FOUND (no such socket or device, or no IOMMU or driver for it), IDENTITY,
 * VERSION, IN_USE (another process has the card), PROTOCOL, LOST, CLOCK, NO_MEMORY, SYSTEM.
 */
int dib_open(const char *uri, const struct dib_card_options *options, struct dib_card **card);

/**
 * dib_close() - close a card, NULL being allowed.
 *
 * Endpoints, regions and mailboxes that are still open are closed with it, so that nothing of this program
 * is written or read afterwards. See "Owners" above. Peers of a mailbox are not told.
 * The control program keeps running. No other thread may be inside a call on this card; but one that sleeps at a
 * descriptor of dib_event_fd() is woken. What fails on the way is over with the card, and is no error.
 *
 * Errors: ARGUMENT (a handle of another kind), CLOSED, FORKED.
 */
int dib_close(struct dib_card *card);

/**
 * dib_card_info() - read identity, geometry, state and counters.
 * @info: filled in
 *
 * Any thread.
 *
 * Errors: ARGUMENT, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_card_info(struct dib_card *card, struct dib_card_info *info);

/**
 * dib_register_read() - read a register of bank `host` of the interface reference.
 * @offset: a multiple of 4, below DIBBER_MSIX_TABLE_BASE
 * @value:  set on success
 *
 * For tools that test the card and its link. Any thread.
 *
 * Errors: ARGUMENT (no register there), LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_register_read(struct dib_card *card, uint32_t offset, uint32_t *value);

/**
 * dib_register_write() - write a register of bank `host`.
 *
 * As dib_register_read(). Posted: the call returns before the card has the value. A read waits for it.
 *
 * Errors: ARGUMENT (no register there), LOST, CLOSED, FORKED.
 */
int dib_register_write(struct dib_card *card, uint32_t offset, uint32_t value);

/**
 * dib_doorbell_read() - read a register of bank `doorbell` of any endpoint, open or not: how far its queues are.
 * @endpoint: below info.endpoints
 * @offset:   in the bank, a multiple of 4
 * @value:    set on success
 *
 * For tools that watch the card. Any thread.
 *
 * Errors: ARGUMENT (no such endpoint or register), LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_doorbell_read(struct dib_card *card, unsigned int endpoint, uint32_t offset, uint32_t *value);

/**
 * dib_node_set() - give the card its node number, before the control program is loaded.
 *
 * Any thread.
 *
 * Errors: ARGUMENT (not below info.nodes), IN_USE (the control program runs), LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_node_set(struct dib_card *card, unsigned int node);

/**
 * dib_firmware_load() - load and start a control program.
 * @path: file of one or several images, as firmware/image.py makes it
 *
 * Magic, interface version and hash, size, entry and CRC of each image are checked before the card is touched. The card gets
 * the first image that was linked for as much SRAM as it has (info.sram_bytes), and that needs no features which it
 * lacks (info.features). That image is then written with the processor in reset, read back, compared, and started; the
 * call returns when the program has published its identity.
 *
 * The last program is halted for that, with the engines that it drives. Endpoints may be open and commands under way, of this
 * program or, when the card was opened to observe, of another: see "Halts" above. What other nodes have under way to this
 * one ends with PEER_RESTARTED or REMOTE_BAD_KEY there. What they send after that goes to the new program.
 *
 * Errors: ARGUMENT, NOT_FOUND (no such file), FIRMWARE_FILE (damaged, or no image is for this card), VERSION (image of
 * another interface), FIRMWARE_CRC,
 * FIRMWARE_START (with the state it stopped in), LIMIT, NO_MEMORY, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_firmware_load(struct dib_card *card, const char *path);

/**
 * dib_firmware_size() - how many bytes the control program's memory has.
 *
 * Known since dib_open(): it asks nothing of the card, and takes no simulated time. It is 0 of what
 * is no open card of this process. The last 8192 of them are
 * struct dibber_mcp_shared. Any thread.
 *
 * Errors: none.
 */
uint32_t dib_firmware_size(struct dib_card *card);

/**
 * dib_firmware_read() - read the control program's memory while it runs.
 * @offset: from the start of its SRAM, a multiple of 4
 * @length: a multiple of 4
 *
 * That is where struct dibber_mcp_shared lies, say. A value of more than 32 bits may be torn. Any thread.
 *
 * Errors: ARGUMENT, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_firmware_read(struct dib_card *card, uint32_t offset, void *data, size_t length);

/**
 * dib_firmware_write() - write it while the program runs, which is not asked: for tests of what happens then.
 *
 * As dib_firmware_read().
 *
 * Errors: ARGUMENT, LOST, CLOSED, FORKED.
 */
int dib_firmware_write(struct dib_card *card, uint32_t offset, const void *data, size_t length);

/* Endpoints -------------------------------------------------------------------------------------- */

struct dib_endpoint_options {
	uint32_t cq_entries;		/* completion queue: a power of two, at least info.slots; 0: 64 */
	uint32_t eq_entries;		/* event queue: a power of two; 0: 256 */
	uint32_t own_clock;		/* 1: opened and driven by another thread than the one that opened the card, so
					 * that it takes part in the simulator's clock on its own */
};

/**
 * dib_endpoint_open() - get an endpoint with its queues.
 * @number:  0 … info.endpoints - 1
 * @options: may be NULL
 * @endpoint: set on success; the caller closes it with dib_endpoint_close()
 *
 * Any thread. After TIMEOUT the control program is not relied on any more: load it again. One that another program loaded
 * since this handle was opened is as good as one's own.
 *
 * The library's own commands (regions, endpoints) go through endpoint 0, whichever thread asks for them. A program can have
 * it as an endpoint, too, and the two do not disturb each other; but its completions are 64 and its events 256 at most, it has
 * the card's place in the simulator's clock, and it knows no sends and receives, which would wait in slots that others need.
 *
 * Errors: ARGUMENT, NO_FIRMWARE, IN_USE, COMMAND, TIMEOUT, LIMIT, CLOCK, NO_MEMORY, LOST, PROTOCOL, SYSTEM, CLOSED,
 * FORKED.
 */
int dib_endpoint_open(struct dib_card *card, unsigned int number,
		      const struct dib_endpoint_options *options, struct dib_endpoint **endpoint);

/**
 * dib_endpoint_close() - close an endpoint, NULL being allowed.
 *
 * Commands that have not run are dropped; those under way end on the card but are no longer reported.
 * Regions registered for it stay until they are unregistered. A mailbox is closed with it, and its peers are not told.
 * No other thread may be inside a call on this endpoint; but one that sleeps at its descriptor is woken.
 *
 * Errors: ARGUMENT (a handle of another kind), CLOSED, FORKED.
 */
int dib_endpoint_close(struct dib_endpoint *endpoint);

/* Memory ----------------------------------------------------------------------------------------- */

/**
 * dib_alloc() - get memory that a simulated card can reach without messages.
 * @length: bytes
 * @memory: set on success: zeroed, page-aligned; freed with dib_free()
 *
 * Any memory can be registered; this is the fastest to reach. Behind a UART there is no difference. Any thread.
 *
 * Errors: ARGUMENT, NO_MEMORY.
 */
int dib_alloc(size_t length, void **memory);

/**
 * dib_free() - free what dib_alloc() gave, NULL being allowed.
 *
 * Unregister it first. Any thread.
 *
 * Errors: none.
 */
void dib_free(void *memory);

/**
 * dib_register() - let an endpoint's commands, or other nodes, reach memory.
 * @memory: any readable (and, by its rights, writable) memory of this process; it must stay until dib_unregister()
 * @length: bytes, > 0, any alignment
 * @rights: what may be done with it, or'ed: DIBBER_RIGHT_LOCAL_READ (1, source of a put or send), DIBBER_RIGHT_LOCAL_WRITE
 *          (2, destination of a get or receive), DIBBER_RIGHT_REMOTE_READ (4, others may fetch from it; with REMOTE_WRITE
 *          also by atomics), DIBBER_RIGHT_REMOTE_WRITE (8, others may deposit into it)
 * @region: set on success
 *
 * Memory that is not mapped, or cannot be read, or cannot be written though LOCAL_WRITE or REMOTE_WRITE is given, is refused
 * with ARGUMENT. The kernel is asked: no byte is touched. That costs three system calls; none for memory of dib_alloc().
 * Without /proc nothing is checked.
 *
 * A page may go away later, by munmap(2), mprotect(2) or because its file became shorter. A card in a slot keeps the pages that
 * it was given. On a simulated card a transfer that reads such a page ends with READ_ERROR or REMOTE_READ_ERROR; what is written
 * there is lost, as a write to an address that nobody has on PCIe, and the simulator says so. The process goes on.
 * A card behind a UART copies the memory in this process: there a page that goes away ends the process. Any thread.
 *
 * Errors: ARGUMENT, LIMIT, HALTED, NO_FIRMWARE (after a TIMEOUT), COMMAND, TIMEOUT, CLOCK, NO_MEMORY, CLOSED, LOST,
 * PROTOCOL, SYSTEM, FORKED.
 */
int dib_register(struct dib_endpoint *endpoint, void *memory, size_t length, unsigned int rights,
		 struct dib_region **region);

/* Pages that make up a region, in its order: by their place in memory or by their bus addresses, the other being NULL.
 * A region may begin in the middle of the first page and end in that of the last. */
struct dib_pages {
	void *const *memory;	/* of this process, each a multiple of 4096; NULL where there is no page */
	const uint64_t *bus;	/* each a multiple of the page's size below 2⁶³; bit 0 set where there is no page */
	uint64_t length;	/* bytes of the region */
	uint32_t count;		/* pages */
	uint32_t shift;		/* log2 of a page's bytes, 12 to 30 */
	uint32_t first;		/* the region's first byte in the first page */
};

/**
 * dib_register_pages() - let an endpoint's commands, or other nodes, reach memory that lies in pages here and there.
 * @pages:  what the region is made of; the lists may go after the call, the pages must stay until dib_unregister()
 * @rights: what may be done with it, or'ed: DIBBER_RIGHT_LOCAL_READ (1, source of a put or send), DIBBER_RIGHT_LOCAL_WRITE
 *          (2, destination of a get or receive), DIBBER_RIGHT_REMOTE_READ (4, others may fetch from it; with REMOTE_WRITE
 *          also by atomics), DIBBER_RIGHT_REMOTE_WRITE (8, others may deposit into it)
 * @region: set on success
 *
 * To commands it is one region as of dib_register(). The card looks up where pages are, ahead of their use, in reads of
 * eight entries of the page table; a strided source shares PCIe with these reads, a strided target does not.
 *
 * With `memory` each page is mapped for the card on its own, those that follow each other together. With `bus` nothing
 * is: somebody has made memory reachable at these addresses, that of another device, say. Pages by `memory` are checked
 * as dib_register() checks.
 *
 * A transfer that comes to a place without a page, or whose page table cannot be read, ends with READ_ERROR on the
 * side of the command, REMOTE_READ_ERROR on the other. Any thread.
 *
 * Errors: ARGUMENT, LIMIT, HALTED, NO_FIRMWARE (after a TIMEOUT), COMMAND, TIMEOUT, CLOCK, NO_MEMORY, CLOSED, LOST,
 * PROTOCOL, SYSTEM, FORKED.
 */
int dib_register_pages(struct dib_endpoint *endpoint, const struct dib_pages *pages, unsigned int rights,
		       struct dib_region **region);

/**
 * dib_key() - the key that names a region in a walk, here and on other nodes.
 *
 * Returns the key; 0 for what is no open region of this process: dib_last_reason() says why. Any thread.
 *
 * Errors: none.
 */
uint32_t dib_key(const struct dib_region *region);

/**
 * dib_unregister() - withdraw a region, NULL being allowed.
 *
 * Nothing reaches the memory after the call. Commands that still use the key end with BAD_KEY or REMOTE_BAD_KEY.
 * The handle is closed in any case but FORKED. Any thread.
 *
 * Errors: ARGUMENT (a handle of another kind), NO_FIRMWARE (after a TIMEOUT), COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL,
 * SYSTEM, CLOSED, FORKED.
 */
int dib_unregister(struct dib_region *region);

/* Transfers -------------------------------------------------------------------------------------- */

/* One side of a transfer: blocks of `block` bytes, `count[0]` of them `stride[0]` bytes apart, `count[1]` such rows
 * `stride[1]` apart, and so on. With `levels` 0 it is `block` contiguous bytes. */
struct dib_walk {
	uint32_t key;			/* region */
	uint32_t block;			/* bytes */
	uint64_t offset;		/* of the first block from the start of the region, bytes */
	uint32_t levels;		/* 0 … DIBBER_LEVELS */
	uint32_t count[DIBBER_LEVELS];	/* innermost first */
	int64_t stride[DIBBER_LEVELS];	/* bytes, may be negative */
};

/* Where a transfer goes, and who hears of it. */
struct dib_delivery {
	uint64_t tag;			/* comes back in the completion */
	uint16_t node;			/* target */
	uint8_t endpoint;		/* NOTICE: the target endpoint that gets the event; sends, receives: the other one */
	uint8_t flags;			/* enum dibber_flag, or'ed */
	uint32_t notice;		/* NOTICE: the value that the event carries */
};

/**
 * dib_put() - deposit contiguous bytes in another node's memory.
 *
 * The source may be changed when the completion was polled. At most info.slots commands can be under way: a slot is
 * free again when its completion was polled.
 *
 * What is wrong with keys, rights or bounds is found by the card and told in the completion. A transfer that fails may have
 * written a part, see "Failures" in dibber(7). OK means that the other card
 * has handed all of it to its host, in front of whatever it writes after that. A program over there that wants to read it waits for a
 * notice, which comes behind the data; a completion here may be seen before the last writes have arrived in its memory.
 *
 * The other node must not be the card's own one. A put, a get, a send, a receive or an atomic to the own node ends with
 * BAD_NODE and changes nothing, because its packets would leave by the link and no path leads back. Within a node the CPU
 * copies: memcpy(3), and for a notice a flag of the program's own. A word that other nodes change by atomics belongs at a node
 * whose own program leaves it alone, because the card's atomics are not atomic against its CPU.
 *
 * A notice to an endpoint that is closed, or that the other card does not have, is lost. The bytes arrive and the completion
 * is OK all the same. A notice that finds its event queue full is lost, too; `overruns` of the next event counts these. The
 * other card counts both in its counter EVENTS_LOST, which dib_card_info() and `dibber info` show.
 *
 * Errors: ARGUMENT (length 0, an unknown flag, or an endpoint that no card has), AGAIN, CLOSED, HALTED, LOST, FORKED.
 */
int dib_put(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	    uint32_t source_key, uint64_t source_offset,
	    uint32_t target_key, uint64_t target_offset, uint32_t length);

/**
 * dib_put_strided() - deposit from one walk to another.
 *
 * As dib_put(). The walks need agree on the total only.
 *
 * Errors: ARGUMENT (a count or block is 0, the totals differ or pass DIBBER_MAX_LENGTH, unknown flag), AGAIN, CLOSED,
 * HALTED, LOST, FORKED.
 */
int dib_put_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target);

/**
 * dib_put_inline() - deposit a few bytes that travel in the command.
 * @data:   may be changed as soon as the call returns; it need not be registered
 * @length: 1 … DIBBER_INLINE_BYTES
 *
 * The quickest put.
 *
 * Errors: those of dib_put().
 */
int dib_put_inline(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		   const void *data, uint32_t target_key, uint64_t target_offset, uint32_t length);

/**
 * dib_get() - fetch contiguous bytes from another node's memory.
 * @delivery: node is the one that is read; flags SOLICIT and FENCE; notice and endpoint are not used
 * @source_key: a region there with the right REMOTE_READ
 * @target_key: a region of this endpoint with the right LOCAL_WRITE
 *
 * The completion tells that the bytes are here. A get that fails may have written a part, see "Failures" in dibber(7).
 *
 * The own node is refused with BAD_NODE; dib_put() says why, and what to do instead.
 *
 * Errors: those of dib_put().
 */
int dib_get(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	    uint32_t source_key, uint64_t source_offset,
	    uint32_t target_key, uint64_t target_offset, uint32_t length);

/**
 * dib_get_strided() - fetch from a walk there to a walk here.
 *
 * As dib_get().
 *
 * Errors: those of dib_put_strided().
 */
int dib_get_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target);

/**
 * dib_send() - send contiguous bytes to wherever another endpoint's receive says.
 * @delivery: node and endpoint that receive; flags SOLICIT and FENCE; notice is not used
 * @source_key: a region of this endpoint with the right LOCAL_READ
 *
 * A send meets the oldest receive of that endpoint that was posted for this one, or waits for it in its
 * slot; other commands go on meanwhile. There is no buffer on the way, so that none can overflow. The
 * completion tells that the bytes are in the receiver's memory. TRUNCATED: there are more than the receive
 * takes; it ends so too, and nothing is written.
 *
 * Neither side waits for ever for a node that cannot be reached: when what is under way to it is given up, or
 * the link is down for 40 ms, sends and receives that wait for it end as TIMEOUT. Closing an endpoint ends
 * what waits as FLUSHED. A receive whose sender's card was reset, or got another control program, ends with
 * PEER_RESTARTED within a few milliseconds.
 *
 * Errors: those of dib_put().
 */
int dib_send(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	     uint32_t source_key, uint64_t source_offset, uint32_t length);

/**
 * dib_send_strided() - send from a walk.
 *
 * As dib_send().
 *
 * Errors: those of dib_put_strided().
 */
int dib_send_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		     const struct dib_walk *source);

/**
 * dib_receive() - say where the next message of another endpoint goes.
 * @delivery: node and endpoint that send; flags SOLICIT and FENCE; notice is not used
 * @target_key: a region of this endpoint with the right LOCAL_WRITE
 * @length: the most that it takes; a shorter message fills its beginning
 *
 * Eight receives of a card can wait at a node at once; later ones wait here, in order. The completion's length is
 * the message's. What ends it otherwise is told at dib_send().
 *
 * Errors: those of dib_put().
 */
int dib_receive(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		uint32_t target_key, uint64_t target_offset, uint32_t length);

/**
 * dib_receive_strided() - receive into a walk.
 *
 * As dib_receive().
 *
 * Errors: those of dib_put_strided().
 */
int dib_receive_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
			const struct dib_walk *target);

/* One side of an indexed transfer. With a list, what `walk` says stands at each place that the list names: its entries are
 * int64_t, signed distances in bytes that are added to walk.offset. Places may repeat and overlap; then bytes that are
 * written more than once have one of these values. Without a list the walk is all. */
struct dib_side {
	struct dib_walk walk;		/* with a list it has at most DIBBER_LIST_LEVELS levels */
	uint64_t list_offset;		/* of the first entry from the start of the list's region: bytes, a multiple of 8 */
	uint32_t list_key;		/* region of the list; 0: no list */
};

/**
 * dib_put_indexed() - deposit from places that a list names, or to such places, or both.
 * @length: bytes in all; a list has an entry for each walk.block × counts of them, the last of which may be cut short
 *
 * As dib_put_strided(), and one command as well. A side without a list has @length bytes.
 *
 * A list lies beside what it names: a source's in this program's memory, a target's in that of the program which owns the
 * target. Who knows the target's places puts the list there first, and this with FENCE. Its region begins at a multiple
 * of 8 bytes in memory, belongs to the same endpoint as the region of the walk, and has the right LOCAL_READ. The
 * card reads the list while it transfers, so that it stays unchanged until the completion was polled. Whoever writes to it
 * meanwhile harms the transfer alone: each place is checked.
 *
 * BAD_LIST in the completion says that the source's list has no such region, or may not be read, or ends before the
 * transfer does; REMOTE_BAD_LIST says that of the target's. An entry that leads out of the region of its walk is
 * BOUNDS or REMOTE_BOUNDS. What stands before the mistake may have been written.
 *
 * Errors: ARGUMENT (a count, block or the length is 0, a side without a list has another length, more than
 * DIBBER_LIST_LEVELS levels under a list, a list_offset that is no multiple of 8, unknown flag), AGAIN, CLOSED,
 * HALTED, LOST, FORKED.
 */
int dib_put_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_side *source, const struct dib_side *target, uint32_t length);

/**
 * dib_get_indexed() - fetch from places that a list names, or to such places, or both.
 *
 * As dib_get() and dib_put_indexed(). The source's list lies on the node that is read, the target's here; BAD_LIST is of
 * the target's here, REMOTE_BAD_LIST of the source's there.
 *
 * Errors: those of dib_put_indexed().
 */
int dib_get_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_side *source, const struct dib_side *target, uint32_t length);

/**
 * dib_send_indexed() - send from places that a list names.
 *
 * As dib_send() and dib_put_indexed().
 *
 * Errors: those of dib_put_indexed().
 */
int dib_send_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		     const struct dib_side *source, uint32_t length);

/**
 * dib_receive_indexed() - receive into places that a list names.
 * @length: the most that it takes; a shorter message needs fewer entries
 *
 * As dib_receive() and dib_put_indexed().
 *
 * Errors: those of dib_put_indexed().
 */
int dib_receive_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
			const struct dib_side *target, uint32_t length);

/* An atomic operation on 4 or 8 bytes of another node's memory. */
struct dib_atomic {
	uint32_t opcode;		/* DIBBER_OPCODE_FETCH_ADD, _SWAP, _COMPARE_SWAP or _MASKED_SWAP */
	uint32_t size;			/* 4 or 8 bytes, naturally aligned in that memory */
	uint32_t key;			/* region with the rights REMOTE_READ and REMOTE_WRITE */
	uint64_t offset;
	uint64_t operand;		/* of 4 bytes: below 2³², or a negative number of 32 bits with its sign, as the next two */
	uint64_t compare;		/* COMPARE_SWAP: stored only if the value is this */
	uint64_t mask;			/* MASKED_SWAP: bits that are stored */
};

/**
 * dib_atomic() - execute an atomic operation on another node's memory.
 * @delivery: flags SOLICIT and FENCE
 *
 * `value` of the completion is what was there before.
 *
 * The own node is refused with BAD_NODE; dib_put() says why, and what to do instead.
 *
 * Atomic among the operations of the card that owns the memory, not against its CPU. Executed exactly once. An operand that
 * is not naturally aligned in that memory ends it with REMOTE_ALIGNMENT.
 *
 * Errors: ARGUMENT (no such operation or size, an operand that does not fit, or an unknown flag), AGAIN, CLOSED, HALTED, LOST, FORKED.
 */
int dib_atomic(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
	       const struct dib_atomic *atomic);

/**
 * dib_submit() - send a command as it stands, for opcodes that the library does not know.
 * @command: its `cookie` is replaced
 *
 * Errors: ARGUMENT, AGAIN, CLOSED, HALTED, LOST, FORKED.
 */
int dib_submit(struct dib_endpoint *endpoint, const struct dibber_command *command, uint64_t tag);

struct dib_completion {
	uint64_t tag;
	uint64_t cycles;	/* card's clock when it ended */
	uint64_t value;		/* atomics: what was there before; CHECKSUM: the Internet checksum, RFC 1071 */
	uint32_t length;	/* bytes of the transfer; receives: of the message, TRUNCATED too; atomics: 0 */
	uint16_t node;
	uint8_t status;		/* enum dibber_status */
};

struct dib_event {
	uint64_t cycles;	/* card's clock when it arrived */
	uint32_t notice;
	uint32_t length;	/* of the transfer */
	uint32_t key;		/* region written */
	uint32_t overruns;	/* events lost so far because the queue was full */
	uint16_t node;		/* where it came from */
};

/**
 * dib_poll() - take completions.
 * @entries: room for @max
 *
 * Returns how many it took, 0 when there are none.
 *
 * Errors: ARGUMENT, CLOSED, HALTED (and nothing is left to be taken), LOST, PROTOCOL (the other side sent what it
 * must not; a completion of nothing is passed over), CLOCK, FORKED.
 */
int dib_poll(struct dib_endpoint *endpoint, struct dib_completion *entries, int max);

/**
 * dib_poll_events() - take events.
 *
 * As dib_poll().
 *
 * Errors: ARGUMENT, CLOSED, HALTED, LOST, PROTOCOL, CLOCK, FORKED.
 */
int dib_poll_events(struct dib_endpoint *endpoint, struct dib_event *entries, int max);

/**
 * dib_wait() - sleep until a completion or an event can be polled.
 * @timeout_ns: of simulated time where the simulator keeps the clock; UINT64_MAX waits for ever
 *
 * Returns 1 when there is something, 0 when the time is over.
 *
 * Errors: ARGUMENT, CLOSED, HALTED (and nothing is left to be polled), LOST, PROTOCOL, CLOCK, FORKED.
 */
int dib_wait(struct dib_endpoint *endpoint, uint64_t timeout_ns);

/**
 * dib_event_fd() - a descriptor to wait for an endpoint with.
 *
 * It is an eventfd(2), not blocking. It becomes readable (POLLIN) when the endpoint's interrupt was raised: by a completion
 * with SOLICIT or a notice with INTERRUPT; and when the control program was halted, by whomever, or failed. There may be
 * nothing to be found behind an interrupt. Through a UART none comes: SYSTEM.
 *
 * The caller reads the descriptor empty: one read(2) of 8 bytes. Then it looks until nothing is found, with dib_poll(),
 * dib_poll_events() or dib_mailbox_receive(), and sleeps again. In this order no interrupt is missed.
 *
 * Whatever ends the endpoint makes the descriptor readable: the simulator or card goes away, the system wants the card back,
 * the other side breaks the protocol, the control program was halted (as soon as a look has told HALTED), or another
 * thread closes endpoint or card. Then it stays readable: a moment after each read it is so again, because no interrupt will come
 * any more. The look tells LOST, PROTOCOL, HALTED or CLOSED. After a close its number stays in use until the descriptors
 * of eight more endpoints were closed. POLLHUP and POLLERR never come. A card in a slot that vanishes without a word is noticed
 * within 100 ms.
 *
 * A look costs a system call from now on, and the first one behind an interrupt a register's read. The first call starts a
 * thread for the card. On a simulated card, leave its clock while sleeping there, and see that not all who take part are
 * outside then: time would stand.
 *
 * Returns the descriptor, which stays the library's.
 *
 * Errors: ARGUMENT, SYSTEM, CLOSED, LOST, PROTOCOL, FORKED.
 */
int dib_event_fd(struct dib_endpoint *endpoint);

/* Network ---------------------------------------------------------------------------------------- */

#define DIB_NETWORK_SWITCHES 16u	/* that a map holds */
#define DIB_NETWORK_PORTS    16u	/* of a switch at most */
#define DIB_NETWORK_ROUTES   DIBBER_ROUTES

enum dib_neighbour_kind {
	DIB_PEER_NONE,
	DIB_PEER_HOST,			/* `number` is the node */
	DIB_PEER_SWITCH,		/* `number` is its index in the map, `port` the one there */
};

/* What is at the other end of a cable. */
struct dib_neighbour {
	uint8_t kind;			/* enum dib_neighbour_kind */
	uint8_t port;
	uint16_t number;
};

struct dib_switch {
	uint8_t ports;			/* 4, 8 or 16 */
	uint8_t level;			/* links from switch 0 */
	uint8_t reserved[2];
	struct dib_neighbour peer[DIB_NETWORK_PORTS];
};

/* What a card can reach. Switches and ports are numbered by a rule that depends on the network alone, so that all hosts see the same
 * map: switch 0 has the lowest host at its port 0; the others follow breadth first, each entered by its port 0. */
struct dib_network {
	uint16_t own;			/* this card's node */
	uint16_t truncated;		/* 1: there may be more, too far away or too much to be mapped */
	struct dib_neighbour uplink;		/* at the end of this card's cable */
	uint32_t hosts;			/* a bit for each node that was found, this one included */
	uint32_t conflicts;		/* of these, those that were found in two places */
	uint32_t scouts;		/* sent for it */
	uint32_t switches;
	struct dib_switch sw[DIB_NETWORK_SWITCHES];
};

/* What the control program knows of the ways to a node. */
struct dib_routes {
	uint32_t route[DIB_NETWORK_ROUTES];
	uint32_t valid;			/* a bit for each of them */
	uint32_t current;
	uint32_t heard;			/* card's clock, low word, when an acknowledgement of the node was seen last */
	uint32_t changes;		/* how often the current one was given up */
};

/**
 * dib_scout() - ask who is at the end of a route.
 * @route:   the way there, as constant DIBBER_ROUTE_HOPS says; 0 for the other end of the cable
 * @back:    the way from there to here
 * @timeout: card's clock cycles to wait for an answer, 1 … 2^20
 * @node:    who answered; this card's own number when the scout came round to it
 *
 * Nothing is executed at the other end but the answer. Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT (of the route, way back or timeout), NOT_FOUND (nobody answered in time), COMMAND,
 * TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_scout(struct dib_card *card, uint32_t route, uint32_t back, uint32_t timeout, unsigned int *node);

/**
 * dib_network_map() - find out which hosts and switches a card can reach.
 * @attempts: scouts that are sent where nobody answers, 1 … 16; more than 1 where the cable has errors
 * @network:  filled in
 *
 * With nothing but scouts, some microseconds each: a direct cable takes one, a network of four switches of 16 ports about two thousand. Transfers go on meanwhile. Any
 * thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT (attempts), COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_network_map(struct dib_card *card, unsigned int attempts, struct dib_network *network);

/**
 * dib_network_routes() - ways to a node that cannot deadlock, whatever those of other hosts of this map are.
 * @network: as dib_network_map() gave it
 * @node:    the target
 * @routes:  filled in, the best one first: up and down routing over the shortest paths with the fewest common links
 *
 * Returns how many there are, 0 for a node that is not in the map, in conflict, or this card itself. Needs no card. Any
 * thread.
 *
 * Errors: ARGUMENT (no map, or no place for the routes).
 */
int dib_network_routes(const struct dib_network *network, unsigned int node, uint32_t routes[DIB_NETWORK_ROUTES]);

/**
 * dib_route_set() - enter a way to a node in the control program's table, or take it out.
 * @place: below DIB_NETWORK_ROUTES; the lowest that is valid is used until its packets are lost
 * @valid: 0: take it out
 *
 * Packets that have started go the way that they began. Nothing is lost when routes change under transfers. Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT, COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_route_set(struct dib_card *card, unsigned int node, unsigned int place, uint32_t route, int valid);

/**
 * dib_routes_get() - the ways to a node that the control program knows, and which it uses.
 *
 * Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT (no such node), LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_routes_get(struct dib_card *card, unsigned int node, struct dib_routes *routes);

/* The flash -------------------------------------------------------------------------------------- */

#define DIB_FLASH_SECTOR 65536u		/* bytes that are erased together */
#define DIB_FLASH_PAGE   256u		/* bytes that are programmed together */

struct dib_flash_info {
	uint32_t jedec;			/* maker in 23:16, kind in 15:8, capacity in 7:0 */
	uint32_t bytes;
	uint32_t status;		/* its status register; bits 4:2 are not 0: protected */
};

/**
 * dib_flash_info() - what flash the card's FPGA is configured from.
 * @info: filled in
 *
 * The card goes on, whatever is written there: a new image is started when the FPGA is configured again. Any thread; calls on the
 * flash hold the card, erasing for a second or so.
 *
 * Errors: ARGUMENT, NOT_FOUND (this card has no way to its flash), FLASH, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_flash_info(struct dib_card *card, struct dib_flash_info *info);

/**
 * dib_flash_allow() - say which part of the flash may be changed by this handle.
 * @address: a multiple of DIB_FLASH_SECTOR
 * @length:  0 for nothing, as it is when the card is opened
 *
 * So that a mistake in an address does not reach the image that the FPGA falls back to. Any thread.
 *
 * Errors: ARGUMENT, NOT_FOUND, FLASH, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_flash_allow(struct dib_card *card, uint32_t address, uint32_t length);

/**
 * dib_flash_read() - read the flash.
 * @data: where its bytes are copied to
 *
 * Any thread.
 *
 * Errors: ARGUMENT (there are no such bytes), NOT_FOUND, FLASH, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_flash_read(struct dib_card *card, uint32_t address, void *data, size_t length);

/**
 * dib_flash_erase() - erase sectors: each of their bytes becomes 0xff.
 * @address: a multiple of DIB_FLASH_SECTOR, as is @length
 *
 * A flash whose sectors are larger erases those whole: let the part that is allowed begin and end with one, and erase before
 * anything is written. Any thread.
 *
 * Errors: ARGUMENT (not whole sectors, or not allowed), NOT_FOUND, FLASH, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_flash_erase(struct dib_card *card, uint32_t address, uint32_t length);

/**
 * dib_flash_write() - program what was erased.
 * @address: a multiple of DIB_FLASH_PAGE
 *
 * Bytes that were not erased get the bits that are 1 in both. Nothing is compared: read it back. Any thread.
 *
 * Errors: ARGUMENT (not at a page, or not allowed), NOT_FOUND, FLASH, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_flash_write(struct dib_card *card, uint32_t address, const void *data, size_t length);

/* The simulator's clock -------------------------------------------------------------------------- */

/*
 * Simulated time stands while a thread that takes part runs outside the library.
 *
 * A participant is a card with its endpoints, or an endpoint with own_clock. It belongs to the thread that made the last
 * call for it which waits for an answer. A thread may have several participants, those of two cards for example. It
 * has one time, that of the last answer from the simulator: what a put or a poll is charged for one card delays the calls for
 * the other card from the next call on that waits for an answer, as dib_wait() does. While it is in a call for one
 * participant, or has left the clock with one, its other participants do not hold time either.
 *
 * Another thread may take the place of the one that opened the cards: with its first such call for one of them it takes over
 * the other ones too. If several threads drive a card each, each opens its own card, or an endpoint with own_clock. Otherwise
 * time may go on before all of them have made their first call, and the run does not repeat.
 */

/**
 * dib_clock_leave() - stop holding the simulator's clock.
 *
 * Simulated time stands while a participant runs outside the library. Before a program blocks on something else (a
 * pipe, another process) it leaves the clock, and enters it again afterwards. On hardware both do nothing and succeed; but behind a
 * UART both bring memory up to date, so that the other process meets what was written before.
 *
 * Errors: ARGUMENT, CLOCK, CLOSED, LOST, PROTOCOL, FORKED.
 */
int dib_clock_leave(struct dib_endpoint *endpoint);

/**
 * dib_clock_enter() - hold the simulator's clock again.
 *
 * Returns when everybody who left is back.
 *
 * Errors: those of dib_clock_leave().
 */
int dib_clock_enter(struct dib_endpoint *endpoint);

/**
 * dib_clock_act_for() - make calls in the place of another thread.
 * @thread: gettid(2) of a thread of this process; 0: the calling thread makes calls for itself, as at its start
 *
 * The simulator's clock takes the calls of this thread for those of the other one. A binding uses it when a thread of
 * its own makes a call that the program's thread waits for. The two must not compute at the same time. On hardware it
 * changes nothing. Any thread.
 *
 * Errors: none.
 */
void dib_clock_act_for(int thread);

struct dib_clock {
	uint64_t now_ps;	/* picoseconds since the run started; on hardware, of the system's monotonic clock */
	uint64_t cpu_ps;	/* CPU time charged to this participant so far; 0 on hardware */
	uint32_t simulated;	/* 1: now_ps is simulated time */
	uint32_t free;		/* 1: a client without the clock takes part, so the run does not repeat */
};

/**
 * dib_clock_now() - ask for the time.
 * @clock: filled in
 *
 * Costs no simulated time. On hardware it is that of the system's monotonic clock.
 *
 * Errors: those of dib_clock_leave().
 */
int dib_clock_now(struct dib_endpoint *endpoint, struct dib_clock *clock);

/* Mailboxes -------------------------------------------------------------------------------------- */

/* Sizes; both ends of a connection have the same, but for `peers`. 0 stands for the default. */
struct dib_mailbox_options {
	uint32_t peers;			/* mailboxes that it can be connected with, 1 … 32; default 1 */
	uint32_t slots;			/* messages from each that can wait here: a power of two, 2 … 256; default 16 */
	uint32_t slot_bytes;		/* a multiple of 64, 128 … 131072; default 32832, 64 more than 32 KiB. Longer messages than
					 * slot_bytes - 8 wait at the sender, two from each */
	uint32_t max_length;		/* bytes of the longest message, below 2³⁰; default 1 MiB */
};

/* What another program must know to connect with a peer of a mailbox; told by whatever way the programs have. */
struct dib_mailbox_address {
	uint32_t key;
	uint16_t node;
	uint16_t endpoint;
	uint32_t slots, slot_bytes, max_length;
};

struct dib_message {
	uint32_t peer;			/* who sent it */
	uint32_t length;		/* bytes */
};

/* What dib_mailbox_wait() waits for. */
enum dib_mailbox_news {
	DIB_MAILBOX_MESSAGE = 1,	/* dib_mailbox_receive() has something: a message, or an error */
	DIB_MAILBOX_ROOM    = 2,	/* a dib_mailbox_send() that was refused with AGAIN can go now */
};

/**
 * dib_mailbox_open() - give an endpoint a mailbox: messages that are sent at any time and wait where they arrive.
 * @options: may be NULL
 * @mailbox: set on success; the caller closes it with dib_mailbox_close()
 *
 * Each peer has a ring of slots in memory of the library's, registered for it alone: what one peer does, by mistake or
 * with intent, harms nobody's messages but its own. peers × (slots × slot_bytes × 2 + max_length × 2) + max_length bytes
 * are registered, in peers + 1 regions.
 *
 * The endpoint's commands, completions and events are the mailbox's as long as it is open: calls that use them
 * return IN_USE. Memory can be registered and the clock used as before. Like the endpoint, its mailbox belongs to one
 * thread at a time; when the endpoint or card is closed, so is the mailbox. When the control program was
 * halted they return HALTED, as soon as that is found out: close it, and connect a new one.
 *
 * Errors: ARGUMENT, IN_USE (the endpoint has a mailbox, or commands under way), LIMIT, HALTED, NO_FIRMWARE (after a
 * TIMEOUT), COMMAND, TIMEOUT, CLOCK, NO_MEMORY, CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_mailbox_open(struct dib_endpoint *endpoint, const struct dib_mailbox_options *options,
		     struct dib_mailbox **mailbox);

/**
 * dib_mailbox_close() - close a mailbox, NULL being allowed, and tell its peers.
 *
 * Messages that were sent still arrive; for those that wait here to be fetched this call waits for up to 100 ms.
 * What was not received is lost.
 *
 * Errors: ARGUMENT (a handle of another kind), CLOSED, FORKED.
 */
int dib_mailbox_close(struct dib_mailbox *mailbox);

/**
 * dib_mailbox_address() - what the program at the other end must give to its dib_mailbox_connect().
 * @peer:    below options.peers
 * @address: filled in
 *
 * An address serves one connection. When a peer was given up, another one can be connected in its place: then this call
 * returns a new address, of which the former peer does not know the key. It waits, at most 80 ms, for commands to the
 * former peer that are under way.
 *
 * Errors: ARGUMENT, CLOSED, HALTED, AGAIN (commands to the former peer have not ended), LIMIT (all keys are used up),
 * NO_FIRMWARE, COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_mailbox_address(struct dib_mailbox *mailbox, uint32_t peer, struct dib_mailbox_address *address);

/**
 * dib_mailbox_connect() - say where the messages to a peer go.
 * @peer:    below options.peers
 * @address: dib_mailbox_address() of the other end, for the peer that this program is there
 *
 * Both ends connect before either sends: what comes from a peer is not looked at before. A peer is connected once.
 *
 * When a call has returned the error of a peer, that peer was given up and can be connected again, with the same program
 * or another one. Ask dib_mailbox_address() again before that, because this end's address may have changed too. What the
 * former peer sent and was not received, and what was sent to it, is lost. Messages are counted from the beginning.
 *
 * Errors: ARGUMENT (no such peer, or a mailbox of other sizes), IN_USE (connected already), CLOSED, HALTED, AGAIN (commands to the
 * former peer have not ended), LIMIT (all keys are used up), NO_FIRMWARE, COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_mailbox_connect(struct dib_mailbox *mailbox, uint32_t peer, const struct dib_mailbox_address *address);

/**
 * dib_mailbox_send() - send a message, whether or not anybody waits for it.
 * @data:   any memory, which may be changed as soon as the call returns; NULL for no bytes
 * @length: up to options.max_length
 *
 * Messages to a peer arrive in order. One of up to slot_bytes - 8 bytes is put into the next slot there: inline when it has up
 * to 56, else from a copy. A longer one stays here in a copy, and the receiver gets it when it wants it.
 *
 * AGAIN: as many messages as there are slots were sent and not received, or two long ones, or the card has as many commands
 * as it takes. Receive, or wait for DIB_MAILBOX_ROOM, and try again.
 *
 * A peer that could not be reached, closed its mailbox, or sent what it must not is not talked to any more: each
 * send to it fails in the same way, and dib_mailbox_receive() tells it once. dib_mailbox_connect() can replace it.
 *
 * The card of a peer takes messages as long as it runs, also when the peer's process has ended. So a call that has no
 * room asks whether the peer is there, as dib_mailbox_wait() does, and a later call returns the error.
 *
 * Errors: ARGUMENT (no such peer, or too long), AGAIN, TIMEOUT (the peer cannot be reached), CLOSED (it closed its
 * mailbox; or the card or endpoint was closed), HALTED, COMMAND (it refused; the reason has the status), LOST,
 * PROTOCOL (it sent what it must not), CLOCK, FORKED.
 */
int dib_mailbox_send(struct dib_mailbox *mailbox, uint32_t peer, const void *data, uint32_t length);

/**
 * dib_mailbox_receive() - take the next message of any peer.
 * @data:    where its bytes are copied to
 * @room:    bytes there
 * @message: set when there is one, when it is longer than @room, and (its peer) when the error is one of a peer
 *
 * Peers take turns. A long message is fetched first, one at a time, which takes some calls of this or dib_mailbox_wait();
 * messages of other peers go on meanwhile.
 *
 * Returns 1 when a message was taken, 0 when there is none.
 *
 * What happened to a peer is told once, after its last message; the others go on. A peer that stops without closing its
 * mailbox is found out as by dib_mailbox_wait(), when 256 calls have found nothing.
 *
 * Errors: ARGUMENT (there is one longer than @room: it stays), TIMEOUT (the peer cannot be reached), CLOSED (it
 * closed its mailbox; or the card or endpoint was closed), HALTED, COMMAND (it refused; the reason has the status),
 * LOST, PROTOCOL (it sent what it must not), CLOCK, FORKED.
 */
int dib_mailbox_receive(struct dib_mailbox *mailbox, void *data, uint32_t room, struct dib_message *message);

/**
 * dib_mailbox_wait() - sleep until there is news.
 * @news:       enum dib_mailbox_news, or'ed
 * @timeout_ns: of simulated time where the simulator keeps the clock; UINT64_MAX: as long as a peer can be reached
 *
 * A peer of which nothing has come for 1 ms is asked whether it is there: this call reads 8 bytes of its memory. It asks
 * again after 2, 4, and then each 8 ms. The read of a process that has ended fails at once: the peer's error is CLOSED. When
 * the peer's card cannot be reached, the read ends as every transfer does, 40 ms later: the error is TIMEOUT. A peer that
 * lives and does not receive is no error. A card behind a UART has its host's memory on the card, so there a process that
 * has ended is not found out before the card is opened again.
 *
 * Returns 1 when there is news, 0 when the time is over. The error of a peer is news: dib_mailbox_receive() or
 * dib_mailbox_send() returns it. When all connected peers were given up, this call returns the error of one of them,
 * because nothing can come any more.
 *
 * Errors: ARGUMENT, CLOSED, HALTED, LOST, PROTOCOL, CLOCK, TIMEOUT (all peers were given up), COMMAND
 * (likewise), FORKED.
 */
int dib_mailbox_wait(struct dib_mailbox *mailbox, unsigned int news, uint64_t timeout_ns);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
