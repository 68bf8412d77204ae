/**
 * libdibber: strided deposits into another machine's memory.
 *
 * A program opens a card, loads the control program, opens an endpoint, registers memory, and puts.
 * One dib_put() or dib_put_strided() is one command in a slot of the card and one doorbell,
 * whatever the number of elements. The library never touches a payload byte.
 *
 * Errors
 *	A function that can fail returns a negative enum dib_error. dib_last_reason() then says in
 *	words what was wrong, in the calling thread. The page of each function lists the errors that
 *	it can return. The library never ends the program. It prints one thing only: why simulated
 *	time stands still, see dib_open().
 *
 * Nothing
 *	A transfer and a region have at least one byte. A transfer or region of no bytes (a length,
 *	a block or a count of 0, an empty list) is refused with ARGUMENT, and the reason says so.
 *	The card sees nothing of it: no completion and no notice comes. A message of a mailbox may
 *	have no bytes, and is delivered. Reading or writing 0 bytes of the flash or of the control
 *	program's memory, or erasing none, changes nothing. The address must still be a valid one.
 *
 * Threads
 *	Several threads may use one card at once. An endpoint (put, poll, wait) belongs to one
 *	thread at a time. A card has several endpoints so that each thread can have its own.
 *
 *	Where a simulator keeps the clock, every call takes the simulated time of a participant.
 *	Calls on a card take the time of the thread that opened the card. Calls on an endpoint and
 *	its regions take the time of the endpoint's thread (own_clock). There, only that thread may
 *	make the call, even where a page says "Any thread".
 *
 * Ordering
 *	Puts of one endpoint to one node are executed in their order, and so are inline puts. An
 *	inline put may overtake a put. Gets and atomics have no order. The flag FENCE makes one: a
 *	command with FENCE starts when all earlier commands of its endpoint have completed. A
 *	completion or event becomes visible after every byte that it announces. Sends meet receives
 *	in the order in which each was posted. Completions come in any order.
 *
 * Failures
 *	A completion with a status other than OK says that the transfer ended at some byte. Bytes
 *	are transferred in the order of the walks. If the source fails, the target holds the right
 *	bytes up to some place of the transfer, and its former bytes behind that place. If the
 *	target fails, each packet is judged by itself: packets behind the refused one, which were
 *	already under way, may have been written, as far as they stay inside the walk and the
 *	region. No byte outside the target's walk or region is ever written, and no byte gets a
 *	wrong value. The source is never changed.
 *
 *	BAD_OPCODE, BAD_FLAGS, BAD_LEVELS, BAD_COUNT, BAD_LENGTH, BAD_NODE, REMOTE_BAD_HEADER,
 *	REMOTE_ALIGNMENT (of an atomic), TRUNCATED, and FLUSHED of a command that had not started:
 *	nothing was written.
 *
 *	BAD_KEY, NOT_OWNER, NOT_PERMITTED, REMOTE_BAD_KEY, REMOTE_NOT_PERMITTED: nothing was
 *	written, unless the region was withdrawn while the transfer ran. Then the bytes before that
 *	moment were written.
 *
 *	BOUNDS, REMOTE_BOUNDS: the bytes before the first block that leaves its region may have been
 *	written, and so may a first part of that block inside the region, up to the edge of a
 *	packet. If the target is out of bounds, packets behind that block may have been written too,
 *	as said above.
 *
 *	READ_ERROR, READ_TIMEOUT, REMOTE_READ_ERROR: whole packets before the place that could not
 *	be read may have been written.
 *
 *	BAD_LIST, REMOTE_BAD_LIST: nothing was written if the list's key or rights are wrong.
 *	Otherwise the bytes before the end of the list may have been written.
 *
 *	TIMEOUT, PEER_RESTARTED, HALTED, FLUSHED of a command that had started: any part may have
 *	been written, also all of it. Only with these statuses may the notice have been delivered;
 *	with all others it was not.
 *
 *	A status without REMOTE is about this node's side, a status with REMOTE about the other
 *	node's side. For a put, BOUNDS is about the source and REMOTE_BOUNDS about the target. For a
 *	get and a receive it is the other way round. A key of another endpoint's region is
 *	NOT_OWNER, for the source of a put or send and for the target of a get or receive.
 *
 *	BAD_ARGUMENT and IN_USE answer the library's own commands. A call that gets one of them
 *	returns COMMAND. REWOUND never comes.
 *
 * Handles
 *	Cards, endpoints, regions and mailboxes are handles. Each is closed once, in any order, by
 *	the thread that opened it or by a thread that takes its place. Any call on a closed handle
 *	returns CLOSED, also a second close. NULL is ARGUMENT, except in calls that close: these
 *	succeed. A handle of another kind is ARGUMENT.
 *
 * Owners
 *	Closing a card closes its endpoints, regions and mailboxes. Closing an endpoint closes its
 *	mailbox; its regions stay. Calls on such a handle return CLOSED. It may still be closed,
 *	once, which succeeds and does nothing. No address of a handle is used twice in a process, so
 *	an old pointer never names a new handle. That costs 64 bytes of address space for each
 *	region, 768 bytes for each endpoint, 4 KiB for each card, and 256 bytes to 4 KiB for each
 *	mailbox that was ever opened. The memory behind these addresses goes back to the system.
 *
 * Processes
 *	A card, and all that belongs to it, is for the process that opened it. In a child of fork(2)
 *	each call on such a handle returns FORKED and does nothing, also a call that closes. The
 *	parent's card, clock and registered memory are not touched, whatever the child does with its
 *	handles, and however it ends. The library closes its descriptors in the child, so the end of
 *	the parent ends the connection. The child may open cards of its own, and allocate memory.
 *
 *	Parent and child share memory of dib_alloc(). The child does not have the library's own
 *	memory, for example its queues. A child of vfork(2) may call nothing but exec(3). exec(3)
 *	closes every descriptor. A child of raw clone(2) keeps copies of the descriptors until it
 *	ends or calls exec(3); its calls return FORKED as well.
 *
 * Halts
 *	Endpoints and regions belong to the control program that runs when they are opened. When
 *	that program is halted, because it failed or another one is loaded, they are gone on the
 *	card. The library notices when nothing else happens: within a millisecond of dib_wait(),
 *	after 4,000 empty polls, or in the first empty poll after an interrupt. The card raises that
 *	interrupt for each endpoint that has a descriptor.
 *
 *	Then each command under way completes with status HALTED. It may have been executed or not,
 *	and so may its notice. Completions and events that came before can still be polled. After
 *	that the endpoint's calls return HALTED. Close the endpoint, and open it again when a
 *	program runs. dib_unregister() gives a region back as always.
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

/* Of this header. dib_version() has that of the library which a program has loaded. */
#define DIB_VERSION "0.1.0"

struct dib_card;
struct dib_endpoint;
struct dib_region;
struct dib_mailbox;

/* What went wrong. dib_strerror() has a sentence for each. */
enum dib_error {
	DIB_ERR_ARGUMENT = -1,	/* an argument makes no sense; nothing was done */
	DIB_ERR_NOT_FOUND = -2, /* no such card, socket or file; no node at the end of a route */
	DIB_ERR_IDENTITY = -3,	/* the device is not a Dibber card */
	DIB_ERR_VERSION = -4,	/* the other side has another interface version */
	DIB_ERR_PROTOCOL = -5,	/* the other side broke the protocol; a simulated card is lost */
	DIB_ERR_LOST = -6,	/* the card or simulator went away */
	DIB_ERR_AGAIN = -7,	/* no free command slot: poll completions, then try again */
	DIB_ERR_TIMEOUT = -8,	/* no answer in time */
	DIB_ERR_NO_MEMORY = -9, /* the system has no memory or descriptors left */
	DIB_ERR_FIRMWARE_FILE = -10,  /* no image, or a damaged one; the card was not touched */
	DIB_ERR_FIRMWARE_CRC = -11,   /* the card holds other bytes than were written */
	DIB_ERR_FIRMWARE_START = -12, /* the control program did not publish its identity */
	DIB_ERR_NO_FIRMWARE = -13,    /* this needs a control program: dib_firmware_load() */
	DIB_ERR_LIMIT = -14,   /* all regions, endpoints, bus addresses or keys are used up */
	DIB_ERR_IN_USE = -15,  /* another user has the card, the endpoint or the control program */
	DIB_ERR_COMMAND = -16, /* the control program refused; the reason has its status */
	DIB_ERR_CLOSED = -17,  /* the handle or its owner was closed; of a mailbox: its peer was */
	DIB_ERR_CLOCK = -18,   /* the simulator's clock refused */
	DIB_ERR_SYSTEM = -19,  /* a system call failed; the reason has its name and errno */
	DIB_ERR_HALTED = -20,  /* the control program was halted or replaced: close, open again */
	DIB_ERR_FLASH = -21,   /* the flash is protected, stays busy, or is of no known kind */
	DIB_ERR_FORKED = -22,  /* the handle is the parent's: this process is a child of fork() */
	DIB_ERR_DENIED = -23,  /* an exchange: the other side does not accept the token */
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
 * Returns a string that this thread's next error overwrites; "" before the first error.
 *
 * Errors: none.
 */
const char *dib_last_reason(void);

/**
 * dib_version() - the version of this library and of the interface that it speaks.
 *
 * Returns a constant string, "0.1.0, interface 0.5, hash 1234abcd" for example: the library's
 * version, then major and minor version and CRC-32 of the interface description. A card works with
 * this library when its INTERFACE_VERSION and INTERFACE_HASH are the same. Any thread.
 *
 * Errors: none.
 */
const char *dib_version(void);

/**
 * dib_status_name() - the name of an enum dibber_status.
 *
 * Returns a constant string, for example "REMOTE_BOUNDS", or "UNKNOWN". Any thread.
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

/* Cards ---------------------------------------------------------------------------------------- */

struct dib_card_options {
	uint64_t iova_base; /* first bus address to use, a multiple of 4096; 0: below 4 GiB */
	uint32_t observe;   /* 1: watch and administer a card that another program may drive */
	uint32_t reserved;  /* 0 */
};

struct dib_counter {
	const char *name; /* for example "packets_sent"; constant */
	uint32_t value;	  /* modulo 2³² */
};

struct dib_card_info {
	uint32_t interface_version; /* major in 31:16, minor in 15:0 */
	uint32_t interface_hash;
	uint32_t features;
	uint32_t build; /* CRC-32 of the gateware sources */
	uint32_t clock_hz;
	uint32_t endpoints;
	uint32_t slots; /* commands that an endpoint can have under way */
	uint32_t regions;
	uint32_t nodes;
	uint32_t data_width;	  /* bits */
	uint32_t sram_bytes;	  /* control program's memory; dibber_mcp_shared is its end */
	uint32_t image_limit;	  /* bytes of the largest image that the card takes */
	uint32_t node;		  /* this card's number */
	uint32_t mcp_state;	  /* enum dibber_mcp_state */
	uint32_t mcp_identity;	  /* 0: no control program is running */
	uint32_t link_state;	  /* enum dibber_link_state */
	uint32_t link_stopped;	  /* bit n: the other end stopped channel n */
	uint32_t max_payload;	  /* PCIe, bytes */
	uint32_t max_request;	  /* PCIe, bytes */
	uint64_t cycles;	  /* card's clock */
	uint32_t simulated_clock; /* 1: the simulator keeps the time of this program */
	uint32_t copies; /* 1: the card copies registered memory, see dib_open() about a UART */
	uint32_t shared_bytes; /* room on the card for these copies; 0: the card makes none */
	struct dib_counter counters[DIBBER_COUNTERS];
};

/**
 * dib_open() - open a card.
 * @uri:     "sim:PATH", where PATH is the socket of a simulated card; "vfio:ADDRESS", where ADDRESS
 *           is that of a card in a PCIe slot ("0000:01:00.0") which has an IOMMU and is bound to
 *           the kernel's driver vfio-pci; "/dev/dibberN", a card of the Linux driver dibber.ko
 *           (docs/driver.md); or "uart:PORT", where PORT is the serial port of a card without PCIe
 *           ("/dev/ttyUSB1"). After PORT may follow "?baud=RATE" (1000000),
 *           "?timeout=MILLISECONDS" for an answer (100), or both with '&' between.
 * @options: may be NULL
 * @card:    set on success; the caller closes it with dib_close()
 *
 * Checks that the device is a Dibber card with the interface that this library was built for. Lets
 * the card master the bus. One process at a time opens a card.
 *
 * With @options->observe a simulated card is opened beside that process, as often as one likes, and
 * is not reset. Such a handle reads and writes registers and the control program's memory, and can
 * load a program. It cannot open endpoints. It has no part in the clock: time goes on for its
 * reads, so a run that is observed differs from one that is not. VFIO knows one user only: there
 * such a handle is that of any other program, or IN_USE.
 *
 * On a simulated card the calling thread joins the clock as the card's endpoint 0, for itself and
 * for all endpoints without own_clock. Simulated time 0 is when as many participants have joined as
 * the simulator waits for; this call waits for that. One thread may open several cards: see "The
 * simulator's clock". It opens them one after the other, so the simulator must not wait for more
 * than one participant ("dibber sim start" waits for none).
 *
 * If a simulator has not answered a call for 10 seconds because its time stands still, the library
 * writes a line to stderr. The line names the participant that holds the clock, by card and
 * endpoint, or says how many have not joined. The line comes again after each further 10 seconds.
 * dib_open() reads the environment variable DIBBER_CLOCK_NOTICE, another number of seconds; 0 turns
 * the line off.
 *
 * Through VFIO the process must be allowed to open the group of the card in /dev/vfio, and to pin
 * what it registers ("ulimit -l").
 *
 * On /dev/dibberN many processes share the card, each with endpoints of its own. The driver is the
 * card's administrator: it has loaded the control program and set the node number. There,
 * dib_firmware_load() and dib_node_set() succeed if they change nothing; otherwise they fail with
 * IN_USE. Opening endpoint 0 and writing a register fail with IN_USE too. Closing an endpoint
 * withdraws what was registered for it. dib_register_pages() fails with ARGUMENT. Observers read
 * registers.
 *
 * A card behind a UART reaches no memory but its own. Registered memory has a copy there. The room
 * is info.shared_bytes, of which queues take 12 KiB for each endpoint, and each region whole pages
 * and one page between two. Without room a call returns LIMIT. Bytes that the program has written
 * go to the card at registration and at each command. dib_poll(), dib_poll_events(), dib_wait(),
 * dib_clock_leave() and dib_clock_enter() of the card, and dib_unregister(), copy both ways.
 *
 * Bytes that the card has written come all at once and in order, so the data that an entry
 * announces is there. A program must not change bytes of a word (4 bytes, aligned) while another
 * node changes other bytes of that word. There are no interrupts. A request that is damaged on the
 * line is repeated up to four times; no register is written twice by that.
 *
 * Errors: ARGUMENT (no such kind of URI), NOT_FOUND (no such socket or device, or no IOMMU or
 * driver for it), IDENTITY, VERSION, IN_USE (another process has the card), PROTOCOL, LOST, CLOCK,
 * NO_MEMORY, SYSTEM.
 */
int dib_open(const char *uri, const struct dib_card_options *options, struct dib_card **card);

/**
 * dib_close() - close a card; NULL is allowed.
 *
 * Endpoints, regions and mailboxes that are still open are closed with the card. Afterwards the
 * card neither reads nor writes memory of this program. See "Owners" in dibber(7). Peers of a
 * mailbox are not told. The control program keeps running. No other thread may be inside a call on
 * this card, except that a thread which sleeps at a descriptor of dib_event_fd() is woken. Failures
 * on the way are not reported, because the card is gone afterwards.
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
 * As dib_register_read(). Posted: the call returns before the card has the value. A read waits for
 * the write.
 *
 * Errors: ARGUMENT (no register there), LOST, CLOSED, FORKED.
 */
int dib_register_write(struct dib_card *card, uint32_t offset, uint32_t value);

/**
 * dib_doorbell_read() - read a register of bank `doorbell` of any endpoint, for example the
 * positions of its queues.
 * @endpoint: below info.endpoints; it need not be open
 * @offset:   in the bank, a multiple of 4
 * @value:    set on success
 *
 * For tools that watch the card. Any thread.
 *
 * Errors: ARGUMENT (no such endpoint or register), LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_doorbell_read(struct dib_card *card, unsigned int endpoint, uint32_t offset,
		      uint32_t *value);

/**
 * dib_node_set() - give the card its node number, before the control program is loaded.
 *
 * Any thread.
 *
 * Errors: ARGUMENT (not below info.nodes), IN_USE (the control program runs), LOST, PROTOCOL,
 * SYSTEM, CLOSED, FORKED.
 */
int dib_node_set(struct dib_card *card, unsigned int node);

/**
 * dib_firmware_load() - load and start a control program.
 * @path: file of one or several images, as firmware/image.py makes it
 *
 * Magic, interface version and hash, size, entry and CRC of each image are checked before the card
 * is touched. The card gets the first image that was linked for its amount of SRAM
 * (info.sram_bytes) and needs no feature which the card lacks (info.features). With the processor
 * in reset the library writes the image, reads it back and compares. Then it starts the processor.
 * The call returns when the program has published its identity.
 *
 * The former program is halted first, with the engines that it drives. Endpoints may be open and
 * commands under way, of this program, or of another program if the card was opened to observe: see
 * "Halts" in dibber(7). Commands of other nodes to this node end with PEER_RESTARTED or
 * REMOTE_BAD_KEY there. Later commands of these nodes go to the new program.
 *
 * Errors: ARGUMENT, NOT_FOUND (no such file), FIRMWARE_FILE (damaged, or no image is for this
 * card), VERSION (image of another interface), FIRMWARE_CRC, FIRMWARE_START (with the state it
 * stopped in), LIMIT, NO_MEMORY, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_firmware_load(struct dib_card *card, const char *path);

/**
 * dib_firmware_size() - how many bytes the control program's memory has.
 *
 * The value is known since dib_open(): the call does not ask the card, and takes no simulated time.
 * It is 0 if @card is no open card of this process. The last 8192 bytes of the memory are struct
 * dibber_mcp_shared. Any thread.
 *
 * Errors: none.
 */
uint32_t dib_firmware_size(struct dib_card *card);

/**
 * dib_firmware_read() - read the control program's memory while it runs.
 * @offset: from the start of its SRAM, a multiple of 4
 * @length: a multiple of 4
 *
 * For example to read struct dibber_mcp_shared. A value of more than 32 bits may be torn. Any
 * thread.
 *
 * Errors: ARGUMENT, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_firmware_read(struct dib_card *card, uint32_t offset, void *data, size_t length);

/**
 * dib_firmware_write() - write the control program's memory while it runs.
 *
 * The program does not expect such a write: this is for tests of what happens then. Otherwise as
 * dib_firmware_read().
 *
 * Errors: ARGUMENT, LOST, CLOSED, FORKED.
 */
int dib_firmware_write(struct dib_card *card, uint32_t offset, const void *data, size_t length);

/* Endpoints ------------------------------------------------------------------------------------ */

struct dib_endpoint_options {
	uint32_t cq_entries; /* completion queue: a power of two, at least info.slots; 0: 64 */
	uint32_t eq_entries; /* event queue: a power of two; 0: 256 */
	/* 1: the endpoint takes part in the simulator's clock by itself, because another thread
	 * opens and drives it than the thread that opened the card */
	uint32_t own_clock;
};

/**
 * dib_endpoint_open() - get an endpoint with its queues.
 * @number:   0 … info.endpoints - 1
 * @options:  may be NULL
 * @endpoint: set on success; the caller closes it with dib_endpoint_close()
 *
 * Any thread. After TIMEOUT the library no longer relies on the control program: load it again. A
 * program that another process loaded since this handle was opened serves as well.
 *
 * The library's own commands (for regions and endpoints) go through endpoint 0, whichever thread
 * asks for them. A program can open endpoint 0 as well; the two do not disturb each other. Then it
 * has at most 64 completions and 256 events, and the card's place in the simulator's clock. It has
 * no sends and receives, because these would wait in slots that the library needs.
 *
 * Errors: ARGUMENT, NO_FIRMWARE, IN_USE, COMMAND, TIMEOUT, LIMIT, CLOCK, NO_MEMORY, LOST, PROTOCOL,
 * SYSTEM, CLOSED, FORKED.
 */
int dib_endpoint_open(struct dib_card *card, unsigned int number,
		      const struct dib_endpoint_options *options, struct dib_endpoint **endpoint);

/**
 * dib_endpoint_close() - close an endpoint; NULL is allowed.
 *
 * Commands that have not run are dropped. Commands under way end on the card and are no longer
 * reported. Regions that were registered for the endpoint stay until they are unregistered. A
 * mailbox is closed with its endpoint, and its peers are not told. No other thread may be inside a
 * call on this endpoint, except that a thread which sleeps at its descriptor is woken.
 *
 * Errors: ARGUMENT (a handle of another kind), CLOSED, FORKED.
 */
int dib_endpoint_close(struct dib_endpoint *endpoint);

/* Memory --------------------------------------------------------------------------------------- */

/**
 * dib_alloc() - get memory that a simulated card can reach without messages.
 * @length: bytes
 * @memory: set on success: zeroed, page-aligned; freed with dib_free()
 *
 * Any memory can be registered; a simulated card reaches this memory fastest. Behind a UART there
 * is no difference. Any thread.
 *
 * Errors: ARGUMENT, NO_MEMORY.
 */
int dib_alloc(size_t length, void **memory);

/**
 * dib_free() - free memory of dib_alloc(); NULL is allowed.
 *
 * Unregister the memory first. Any thread.
 *
 * Errors: none.
 */
void dib_free(void *memory);

/**
 * dib_register() - let an endpoint's commands, or other nodes, reach memory.
 * @memory: any readable (and, by its rights, writable) memory of this process; it must stay until
 *          dib_unregister()
 * @length: bytes, > 0, any alignment
 * @rights: what may be done with it, or'ed: DIBBER_RIGHT_LOCAL_READ (1, source of a put or send),
 *          DIBBER_RIGHT_LOCAL_WRITE (2, destination of a get or receive), DIBBER_RIGHT_REMOTE_READ
 *          (4, others may fetch from it; with REMOTE_WRITE also by atomics),
 *          DIBBER_RIGHT_REMOTE_WRITE (8, others may deposit into it)
 * @region: set on success
 *
 * Memory is refused with ARGUMENT if it is not mapped, cannot be read, or cannot be written though
 * LOCAL_WRITE or REMOTE_WRITE is given. The library asks the kernel, so no byte is touched. The
 * check costs three system calls, and none for memory of dib_alloc(). Without /proc nothing is
 * checked.
 *
 * A page may go away later, by munmap(2), by mprotect(2), or because its file became shorter. A
 * card in a slot keeps the pages that it was given. On a simulated card a transfer that reads such
 * a page ends with READ_ERROR or REMOTE_READ_ERROR. A write to such a page is lost, like a PCIe
 * write to an address without a device, and the simulator says so. The process goes on. For a card
 * behind a UART this process copies the memory: there a page that goes away ends the process. Any
 * thread.
 *
 * Errors: ARGUMENT, LIMIT, HALTED, NO_FIRMWARE (after a TIMEOUT), COMMAND, TIMEOUT, CLOCK,
 * NO_MEMORY, CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_register(struct dib_endpoint *endpoint, void *memory, size_t length, unsigned int rights,
		 struct dib_region **region);

/* Pages that make up a region, in its order. They are given by their memory or by their bus
 * addresses; the other list is NULL. A region may begin inside its first page and end inside its
 * last page. */
struct dib_pages {
	/* of this process, each a multiple of 4096; NULL where there is no page */
	void *const *memory;
	/* each a multiple of the page's size below 2⁶³; bit 0 set where there is no page */
	const uint64_t *bus;
	uint64_t length; /* bytes of the region */
	uint32_t count;	 /* pages */
	uint32_t shift;	 /* log2 of a page's bytes, 12 to 30 */
	uint32_t first;	 /* the region's first byte in the first page */
};

/**
 * dib_register_pages() - let an endpoint's commands, or other nodes, reach memory in scattered
 * pages.
 * @pages:  the pages of the region; the lists may go after the call, the pages must stay until
 *          dib_unregister()
 * @rights: what may be done with it, or'ed: DIBBER_RIGHT_LOCAL_READ (1, source of a put or send),
 *          DIBBER_RIGHT_LOCAL_WRITE (2, destination of a get or receive), DIBBER_RIGHT_REMOTE_READ
 *          (4, others may fetch from it; with REMOTE_WRITE also by atomics),
 *          DIBBER_RIGHT_REMOTE_WRITE (8, others may deposit into it)
 * @region: set on success
 *
 * For commands it is one region, as that of dib_register(). The card looks up the pages ahead of
 * their use, in reads of eight entries of the page table. A strided source shares PCIe with these
 * reads; a strided target does not.
 *
 * With `memory` each page is mapped for the card by itself; pages that follow each other in memory
 * are mapped together. With `bus` the library maps nothing: another party has made memory reachable
 * at these addresses, for example memory of another device. Pages by `memory` are checked as by
 * dib_register().
 *
 * A transfer that reaches a place without a page, or whose page table cannot be read, ends with
 * READ_ERROR on the side of the command, and REMOTE_READ_ERROR on the other side. Any thread.
 *
 * Errors: ARGUMENT, LIMIT, HALTED, NO_FIRMWARE (after a TIMEOUT), COMMAND, TIMEOUT, CLOCK,
 * NO_MEMORY, CLOSED, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_register_pages(struct dib_endpoint *endpoint, const struct dib_pages *pages,
		       unsigned int rights, struct dib_region **region);

/**
 * dib_key() - the key that names a region in a walk, here and on other nodes.
 *
 * Returns the key, or 0 if @region is no open region of this process; then dib_last_reason() says
 * why. Any thread.
 *
 * Errors: none.
 */
uint32_t dib_key(const struct dib_region *region);

/**
 * dib_unregister() - withdraw a region; NULL is allowed.
 *
 * Nothing reaches the memory after the call. Commands that still use the key end with BAD_KEY or
 * REMOTE_BAD_KEY. The handle is closed whatever the call returns, except after FORKED. Any thread.
 *
 * Errors: ARGUMENT (a handle of another kind), NO_FIRMWARE (after a TIMEOUT), COMMAND, TIMEOUT,
 * CLOCK, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_unregister(struct dib_region *region);

/* Transfers ------------------------------------------------------------------------------------ */

/* One side of a transfer: blocks of `block` bytes, `count[0]` of them `stride[0]` bytes apart,
 * `count[1]` such rows `stride[1]` bytes apart, and so on. If `levels` is 0, the side is `block`
 * contiguous bytes. */
struct dib_walk {
	uint32_t key;		       /* region */
	uint32_t block;		       /* bytes */
	uint64_t offset;	       /* of the first block from the start of the region, bytes */
	uint32_t levels;	       /* 0 … DIBBER_LEVELS */
	uint32_t count[DIBBER_LEVELS]; /* innermost first */
	int64_t stride[DIBBER_LEVELS]; /* bytes, may be negative */
};

/* Where a transfer goes, and which endpoints are told of it. */
struct dib_delivery {
	uint64_t tag;	  /* comes back in the completion */
	uint16_t node;	  /* target */
	uint8_t endpoint; /* with NOTICE: that gets the event; sends, receives: the other one */
	uint8_t flags;	  /* enum dibber_flag, or'ed */
	uint32_t notice;  /* with NOTICE: the value that the event carries */
};

/**
 * dib_put() - deposit contiguous bytes in another node's memory.
 *
 * The source may be changed when the completion was polled. At most info.slots commands can be
 * under way: a slot is free again when its completion was polled.
 *
 * The card checks keys, rights and bounds, and reports in the completion what is wrong:
 *	BAD_KEY, NOT_OWNER, NOT_PERMITTED, REMOTE_BAD_KEY, REMOTE_NOT_PERMITTED: nothing is written.
 *	BOUNDS, READ_ERROR, READ_TIMEOUT (of the source): bytes before the error may be written.
 *	REMOTE_BOUNDS (of the target): also packets behind the refused one, inside the region.
 *	TIMEOUT, PEER_RESTARTED, HALTED, FLUSHED: any part may be written.
 * "Failures" in dibber(7) has the details, for all calls. OK means that the other card has handed
 * all of it to its host, ahead of all its later writes. A completion here may be seen before the
 * last bytes have arrived in the other host's memory. A program there that wants to read the bytes
 * waits for a notice, because the notice comes behind the data.
 *
 * The other node must not be the card's own node. A put, a get, a send, a receive or an atomic to
 * the own node ends with BAD_NODE and changes nothing, because its packets would leave by the link
 * and no path leads back. Within a node the CPU copies: memcpy(3), and for a notice a flag of the
 * program's own. A word that other nodes change by atomics belongs at a node whose own program
 * leaves it alone, because the card's atomics are not atomic against its CPU.
 *
 * A notice to an endpoint that is closed, or that the other card does not have, is lost. The bytes
 * arrive and the completion is OK all the same. A notice that finds its event queue full is lost
 * too, and `overruns` of the next event counts it. The other card counts both in its counter
 * EVENTS_LOST, which dib_card_info() and `dibber info` show.
 *
 * Errors: ARGUMENT (length 0, an unknown flag, or an endpoint that no card has), AGAIN, CLOSED,
 * HALTED, LOST, FORKED.
 */
int dib_put(struct dib_endpoint *endpoint, const struct dib_delivery *delivery, uint32_t source_key,
	    uint64_t source_offset, uint32_t target_key, uint64_t target_offset, uint32_t length);

/**
 * dib_put_strided() - deposit from one walk to another.
 *
 * As dib_put(). The walks need to agree on the total only.
 *
 * Errors: ARGUMENT (a count or block is 0, the totals differ or pass DIBBER_MAX_LENGTH, unknown
 * flag), AGAIN, CLOSED, HALTED, LOST, FORKED.
 */
int dib_put_strided(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_walk *source, const struct dib_walk *target);

/**
 * dib_put_inline() - deposit a few bytes that travel in the command.
 * @data:   may be changed as soon as the call returns; it need not be registered
 * @length: 1 … DIBBER_INLINE_BYTES
 *
 * The fastest put.
 *
 * Errors: those of dib_put().
 */
int dib_put_inline(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		   const void *data, uint32_t target_key, uint64_t target_offset, uint32_t length);

/**
 * dib_get() - fetch contiguous bytes from another node's memory.
 * @delivery:   node is the node that is read; flags SOLICIT and FENCE; notice and endpoint are not
 *              used
 * @source_key: a region there with the right REMOTE_READ
 * @target_key: a region of this endpoint with the right LOCAL_WRITE
 *
 * The completion says that the bytes are here. A get that fails may have written a part, see
 * "Failures" in dibber(7).
 *
 * The own node is refused with BAD_NODE; dib_put() says why, and what to do instead.
 *
 * Errors: those of dib_put().
 */
int dib_get(struct dib_endpoint *endpoint, const struct dib_delivery *delivery, uint32_t source_key,
	    uint64_t source_offset, uint32_t target_key, uint64_t target_offset, uint32_t length);

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
 * dib_send() - send contiguous bytes to the place that another endpoint's receive names.
 * @delivery:   node and endpoint that receive; flags SOLICIT and FENCE; notice is not used
 * @source_key: a region of this endpoint with the right LOCAL_READ
 *
 * A send meets the oldest receive that the other endpoint has posted for this endpoint. Without
 * such a receive it waits in its slot, and other commands go on. No buffer lies between them, so
 * none can overflow. The completion says that the bytes are in the receiver's memory. If the
 * message has more bytes than the receive takes, both end with TRUNCATED and nothing is written.
 *
 * Neither side waits for ever for a node that cannot be reached. When the card gives up what is
 * under way to that node, or the link is down for 40 ms, sends and receives that wait for it end
 * with TIMEOUT. When an endpoint is closed, what waits for it ends with FLUSHED. When the sender's
 * card was reset or got another control program, the receive ends with PEER_RESTARTED within a few
 * milliseconds.
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
 * @delivery:   node and endpoint that send; flags SOLICIT and FENCE; notice is not used
 * @target_key: a region of this endpoint with the right LOCAL_WRITE
 * @length:     the most that it takes; a shorter message fills its beginning
 *
 * Eight receives of a card can wait at a node at once; later ones wait here, in order. The
 * completion's length is that of the message. dib_send() says how a receive ends otherwise.
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

/* One side of an indexed transfer. With a list, the walk is repeated at each place that the list
 * names. An entry of the list is an int64_t: a signed distance in bytes that is added to
 * walk.offset. Places may repeat and overlap; a byte that is written more than once then has one of
 * the written values. Without a list the side is the walk alone. */
struct dib_side {
	struct dib_walk walk; /* with a list it has at most DIBBER_LIST_LEVELS levels */
	/* of the first entry from the start of the list's region: bytes, a multiple of 8 */
	uint64_t list_offset;
	uint32_t list_key; /* region of the list; 0: no list */
};

/**
 * dib_put_indexed() - deposit from places that a list names, or to such places, or both.
 * @length: bytes of the whole transfer. A list has an entry for each walk.block × counts of these
 *          bytes. The last one may be cut short.
 *
 * As dib_put_strided(), and also one command. A side without a list has @length bytes.
 *
 * A list lies beside the memory that it names: the source's list in this program's memory, the
 * target's list in the memory of the program that owns the target. A program that knows the
 * target's places puts the list there first, and then this command with FENCE. The list's region
 * begins at a multiple of 8 bytes in memory, belongs to the same endpoint as the region of the
 * walk, and has the right LOCAL_READ. The card reads the list while it transfers, so the list must
 * stay unchanged until the completion was polled. A change during the transfer harms this transfer
 * only, because the card checks each place.
 *
 * BAD_LIST in the completion says that the source's list has no such region, may not be read, or
 * ends before the transfer does. REMOTE_BAD_LIST says the same of the target's list. An entry that
 * leads out of the region of its walk is BOUNDS or REMOTE_BOUNDS. Bytes before the mistake may have
 * been written.
 *
 * Errors: ARGUMENT (a count, block or the length is 0, a side without a list has another length,
 * more than DIBBER_LIST_LEVELS levels under a list, a list_offset that is no multiple of 8, unknown
 * flag), AGAIN, CLOSED, HALTED, LOST, FORKED.
 */
int dib_put_indexed(struct dib_endpoint *endpoint, const struct dib_delivery *delivery,
		    const struct dib_side *source, const struct dib_side *target, uint32_t length);

/**
 * dib_get_indexed() - fetch from places that a list names, or to such places, or both.
 *
 * As dib_get() and dib_put_indexed(). The source's list lies on the node that is read, the target's
 * list here. BAD_LIST is about the target's list, REMOTE_BAD_LIST about the source's list.
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

/* An atomic operation on 4 or 8 bytes of another node's memory. An operand of a 4-byte operation is
 * below 2³², or a negative number of 32 bits with its sign. */
struct dib_atomic {
	uint32_t opcode; /* DIBBER_OPCODE_FETCH_ADD, _SWAP, _COMPARE_SWAP or _MASKED_SWAP */
	uint32_t size;	 /* 4 or 8 bytes, naturally aligned in that memory */
	uint32_t key;	 /* region with the rights REMOTE_READ and REMOTE_WRITE */
	uint64_t offset;
	uint64_t operand;
	uint64_t compare; /* COMPARE_SWAP: stored only if the value is this */
	uint64_t mask;	  /* MASKED_SWAP: bits that are stored */
};

/**
 * dib_atomic() - execute an atomic operation on another node's memory.
 * @delivery: flags SOLICIT and FENCE
 *
 * `value` of the completion is the value that was there before.
 *
 * The own node is refused with BAD_NODE; dib_put() says why, and what to do instead.
 *
 * The operation is atomic among the operations of the card that owns the memory, not against its
 * CPU. It is executed exactly once.
 * An operand that is not naturally aligned in that memory ends it with REMOTE_ALIGNMENT.
 *
 * Errors: ARGUMENT (no such operation or size, an operand that does not fit, or an unknown flag),
 * AGAIN, CLOSED, HALTED, LOST, FORKED.
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
	uint64_t cycles; /* card's clock when the command ended */
	uint64_t value;	 /* atomics: the former value; CHECKSUM: the Internet checksum, RFC 1071 */
	uint32_t length; /* of the transfer; receives: of the message, also TRUNCATED; atomics: 0 */
	uint16_t node;
	uint8_t status; /* enum dibber_status */
};

struct dib_event {
	uint64_t cycles; /* card's clock when the event arrived */
	uint32_t notice;
	uint32_t length;   /* of the transfer */
	uint32_t key;	   /* region written */
	uint32_t overruns; /* events lost so far because the queue was full */
	uint16_t node;	   /* that sent it */
};

/**
 * dib_poll() - take completions.
 * @entries: room for @max
 *
 * Returns how many it took, 0 if there are none.
 *
 * Errors: ARGUMENT, CLOSED, HALTED (and nothing is left to be taken), LOST, PROTOCOL (the other
 * side broke the protocol; a completion without a command is skipped), CLOCK, FORKED.
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
 * Returns 1 if there is something, 0 if the time is over.
 *
 * Errors: ARGUMENT, CLOSED, HALTED (and nothing is left to be polled), LOST, PROTOCOL, CLOCK,
 * FORKED.
 */
int dib_wait(struct dib_endpoint *endpoint, uint64_t timeout_ns);

/**
 * dib_event_fd() - a descriptor that tells of an endpoint's interrupts.
 *
 * It is an eventfd(2), not blocking. It becomes readable (POLLIN) when the endpoint's interrupt was
 * raised: by a completion with SOLICIT, by a notice with INTERRUPT, or because the control program
 * failed or was halted by any program. An interrupt may come although there is nothing to poll.
 * Through a UART no interrupt comes: SYSTEM.
 *
 * The caller empties the descriptor with one read(2) of 8 bytes. Then it polls until it finds
 * nothing, with dib_poll(), dib_poll_events() or dib_mailbox_receive(), and sleeps again. In this
 * order no interrupt is missed.
 *
 * The end of the endpoint makes the descriptor readable: the simulator or card goes away, the
 * system wants the card back, the other side breaks the protocol, the control program was halted
 * (as soon as a poll has returned HALTED), or another thread closes endpoint or card. Then the
 * descriptor stays readable: a moment after each read it is readable again, because no interrupt
 * will come any more. The poll returns LOST, PROTOCOL, HALTED or CLOSED. After a close the
 * descriptor's number stays in use until the descriptors of eight more endpoints were closed.
 * POLLHUP and POLLERR never come. If a card in a slot vanishes without a message, the library
 * notices within 100 ms.
 *
 * From now on an empty poll costs a system call, and the first one after an interrupt also reads a
 * register. The first call starts a thread for the card. On a simulated card, leave the clock while
 * sleeping at the descriptor. At least one participant must be inside the library then, because
 * time stands still otherwise.
 *
 * Returns the descriptor, which belongs to the library.
 *
 * Errors: ARGUMENT, SYSTEM, CLOSED, LOST, PROTOCOL, FORKED.
 */
int dib_event_fd(struct dib_endpoint *endpoint);

/* Network -------------------------------------------------------------------------------------- */

#define DIB_NETWORK_SWITCHES 16u /* that a map holds */
#define DIB_NETWORK_PORTS    16u /* of a switch at most */
#define DIB_NETWORK_ROUTES   DIBBER_ROUTES
#define DIB_NETWORK_CHANNELS (DIB_NETWORK_SWITCHES * DIB_NETWORK_PORTS)

enum dib_neighbour_kind {
	DIB_PEER_NONE,
	DIB_PEER_HOST,	 /* `number` is the node */
	DIB_PEER_SWITCH, /* `number` is its index in the map, `port` the port there */
};

#define DIB_LINKS 2u /* of a card, at most */

/* What is at the other end of a cable. */
struct dib_neighbour {
	uint8_t kind; /* enum dib_neighbour_kind */
	uint8_t port; /* of a switch; of a host: which of its links, 0 or 1 */
	uint16_t number;
};

struct dib_switch {
	uint8_t ports; /* 4, 8 or 16 */
	uint8_t level; /* links from switch 0 */
	uint8_t tells; /* 1: it answers dib_switch_ask() */
	uint8_t first; /* if it tells: port 0 of the map by the switch's own count */
	struct dib_neighbour peer[DIB_NETWORK_PORTS];
};

/* What a card can reach. The numbers of switches and ports depend on the network alone, so that all
 * hosts see the same map. Switch 0 has the host of the lowest number at its port 0. The other
 * switches follow breadth first; the search enters each one by its port 0. Switches that are joined
 * to these by hosts with two links alone follow by the same rule, from a level 0 of their own. */
struct dib_network {
	uint16_t own;	    /* this card's node */
	uint16_t truncated; /* 1: there may be more, too far away or too much for a map */
	struct dib_neighbour uplink[DIB_LINKS]; /* at the end of each cable of this card */
	uint32_t links;				/* that this card has */
	uint64_t hosts;	    /* a bit for each node that was found, also this one */
	uint64_t conflicts; /* of these, the numbers that more than one card has */
	uint32_t scouts;    /* sent to make the map */
	uint32_t switches;
	struct dib_switch sw[DIB_NETWORK_SWITCHES];
};

/* A route between two nodes of a map. */
struct dib_way {
	uint16_t source;
	uint16_t target;
	uint32_t route;
};

/* The ways to a node that the control program knows. */
struct dib_routes {
	uint32_t route[DIB_NETWORK_ROUTES];
	uint32_t valid; /* a bit for each of them */
	uint32_t current;
	uint32_t heard;	  /* card's clock, low word, at the node's last acknowledgement */
	uint32_t changes; /* how often the control program gave up the current one */
};

/**
 * dib_scout() - ask which node is at the end of a route.
 * @route:   the way there, as constant DIBBER_ROUTE_HOPS says; 0 for the other end of the cable
 * @back:    the way from there to here
 * @timeout: card's clock cycles to wait for an answer, 1 … 2^20
 * @node:    the node that answered; this card's own number if the scout came back to this card
 *
 * The other end does nothing but answer. Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT (of the route, way back or timeout), NOT_FOUND (no answer in time),
 * COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_scout(struct dib_card *card, uint32_t route, uint32_t back, uint32_t timeout,
	      unsigned int *node);

/**
 * dib_switch_ask() - read a word of a switch's register bank, or write it first.
 * @route:    the way to the switch; 0 for the other end of the cable. It does not pass the switch
 * @back:     the way from the switch to here
 * @question: the word, as constant DIBBER_SWITCH_ASK_WORD says: offset in bank `switch` / 4. With
 *            DIBBER_SWITCH_ASK_WRITE, bits 31:16 are written before the word is read
 * @word:     filled in
 *
 * A scout asks, so it may be lost: ask again. If the answer to a write is lost, the word may have
 * been written. Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT (of the route, way back or question), NOT_FOUND (no answer within
 * 20 µs, or the route ends at a node), COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, CLOSED,
 * FORKED.
 */
int dib_switch_ask(struct dib_card *card, uint32_t route, uint32_t back, uint32_t question,
		   uint32_t *word);

/**
 * dib_network_map() - find out which hosts and switches a card can reach.
 * @attempts: scouts that are sent where no node answers, 1 … 16; more than 1 where the cable has
 *            errors
 * @network:  filled in
 *
 * The call sends scouts only, some microseconds each. A direct cable takes one scout. A switch that
 * answers takes four, and one for each port. A network of four switches of 16 ports that do not
 * answer takes about two thousand. Transfers go on meanwhile. Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT (attempts), COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM,
 * CLOSED, FORKED.
 */
int dib_network_map(struct dib_card *card, unsigned int attempts, struct dib_network *network);

/**
 * dib_network_routes() - ways to a node that cannot deadlock, whichever ways other hosts of this
 * map take.
 * @network: as dib_network_map() gave it
 * @node:    the target
 * @routes:  filled in, the best one first: up/down routing over the shortest paths with the fewest
 *           common links. Of several shortest paths, the first one depends on the target, so that
 *           flows are spread over parallel links and over both links of a card
 *
 * Returns how many there are, 0 for a node that is not in the map, in conflict, or this card
 * itself. Needs no card. Any thread.
 *
 * Errors: ARGUMENT (no map, or no place for the routes).
 */
int dib_network_routes(const struct dib_network *network, unsigned int node,
		       uint32_t routes[DIB_NETWORK_ROUTES]);

/**
 * dib_network_circle() - find out whether routes can deadlock as a whole.
 * @network: as dib_network_map() gave it
 * @ways:    the routes; NULL: all that dib_network_routes() gives to all nodes of the map
 * @count:   how many ways there are
 * @circle:  if there is a circle, outputs of switches that can wait for one another: `number` is
 *           the switch and `port` its output. The last one waits for the first one. May be NULL
 *
 * Returns the number of outputs in the circle; 0 if these routes cannot deadlock: there is no
 * circle in the channel dependency graph (Dally and Seitz, 1987). Needs no card. Any thread.
 *
 * Errors: ARGUMENT (no map, or a way that does not lead to its target in this map).
 */
int dib_network_circle(const struct dib_network *network, const struct dib_way *ways,
		       unsigned int count, struct dib_neighbour circle[DIB_NETWORK_CHANNELS]);

/**
 * dib_route_set() - enter a way to a node in the control program's table, or remove it.
 * @place: below DIB_NETWORK_ROUTES; the lowest valid one is used until its packets are lost
 * @valid: 0: remove it
 *
 * Packets that have started stay on their way. Nothing is lost if routes change during transfers.
 * Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT, COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_route_set(struct dib_card *card, unsigned int node, unsigned int place, uint32_t route,
		  int valid);

/**
 * dib_routes_get() - the ways to a node that the control program knows, and the one that it uses.
 *
 * Any thread.
 *
 * Errors: NO_FIRMWARE, ARGUMENT (no such node), LOST, PROTOCOL, SYSTEM, CLOSED, FORKED.
 */
int dib_routes_get(struct dib_card *card, unsigned int node, struct dib_routes *routes);

/* The flash ------------------------------------------------------------------------------------ */

#define DIB_FLASH_SECTOR 65536u /* bytes that are erased together */
#define DIB_FLASH_PAGE	 256u	/* bytes that are programmed together */

struct dib_flash_info {
	uint32_t jedec; /* maker in 23:16, kind in 15:8, capacity in 7:0 */
	uint32_t bytes;
	uint32_t status; /* its status register; bits 4:2 are not 0: protected */
};

/**
 * dib_flash_info() - what flash the card's FPGA is configured from.
 * @info: filled in
 *
 * The card keeps running whatever is written to the flash: a new image starts when the FPGA is
 * configured again. Any thread. Calls on the flash hold the card; erasing holds it for about a
 * second.
 *
 * Errors: ARGUMENT, NOT_FOUND (this card has no access to its flash), FLASH, LOST, PROTOCOL,
 * SYSTEM, CLOSED, FORKED.
 */
int dib_flash_info(struct dib_card *card, struct dib_flash_info *info);

/**
 * dib_flash_allow() - say which part of the flash this handle may change.
 * @address: a multiple of DIB_FLASH_SECTOR
 * @length:  0 for nothing, as it is when the card is opened
 *
 * This protects the image that the FPGA falls back to from a mistake in an address. Any thread.
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
 * Errors: ARGUMENT (there are no such bytes), NOT_FOUND, FLASH, LOST, PROTOCOL, SYSTEM, CLOSED,
 * FORKED.
 */
int dib_flash_read(struct dib_card *card, uint32_t address, void *data, size_t length);

/**
 * dib_flash_erase() - erase sectors: each of their bytes becomes 0xff.
 * @address: a multiple of DIB_FLASH_SECTOR, as is @length
 *
 * A flash with larger sectors erases those as a whole. So let the allowed part begin and end with
 * such a sector, and erase before anything is written. Any thread.
 *
 * Errors: ARGUMENT (not whole sectors, or not allowed), NOT_FOUND, FLASH, LOST, PROTOCOL, SYSTEM,
 * CLOSED, FORKED.
 */
int dib_flash_erase(struct dib_card *card, uint32_t address, uint32_t length);

/**
 * dib_flash_write() - program bytes that were erased.
 * @address: a multiple of DIB_FLASH_PAGE
 *
 * If a byte was not erased, each of its bits becomes 1 only where both the old and the new byte
 * have 1. Nothing is compared: read the bytes back. Any thread.
 *
 * Errors: ARGUMENT (not at a page, or not allowed), NOT_FOUND, FLASH, LOST, PROTOCOL, SYSTEM,
 * CLOSED, FORKED.
 */
int dib_flash_write(struct dib_card *card, uint32_t address, const void *data, size_t length);

/* The simulator's clock ------------------------------------------------------------------------ */

/*
 * Simulated time stands still while a thread that takes part runs outside the library.
 *
 * A participant is a card with its endpoints, or an endpoint with own_clock. It belongs to the
 * thread that made the last call for it which waits for an answer. A thread may have several
 * participants, for example those of two cards. The thread has one time, that of the last answer
 * from the simulator. A put or a poll on one card charges this time. So it delays calls on the
 * other card, from the next call on that waits for an answer, as dib_wait() does. While it is in a
 * call for one participant, or has left the clock with one, its other participants do not hold time
 * either.
 *
 * Another thread may take the place of the one that opened the cards. Its first such call for one
 * card takes over the others too. If several threads drive a card each, each thread opens its own
 * card, or an endpoint with own_clock. Otherwise time may go on before all of them have made their
 * first call, and the run does not repeat.
 */

/**
 * dib_clock_leave() - stop holding the simulator's clock.
 *
 * Simulated time stands still while a participant runs outside the library. Before a program blocks
 * on something else (a pipe, another process) it leaves the clock, and enters it again afterwards.
 * On hardware both calls do nothing and succeed. Behind a UART both bring memory up to date, so
 * that the other process finds what was written before.
 *
 * Errors: ARGUMENT, CLOCK, CLOSED, LOST, PROTOCOL, FORKED.
 */
int dib_clock_leave(struct dib_endpoint *endpoint);

/**
 * dib_clock_pause() - stop holding the simulator's clock, so that no participant waits for this
 * one.
 *
 * As dib_clock_leave(), for a program that does not know what it waits for, or for how long.
 * Simulated time goes on for the others meanwhile, so a run with pauses need not repeat. Between
 * the two calls nothing else may be called for this participant. Another thread may make both calls
 * in the place of the participant's thread, see dib_clock_act_for().
 *
 * Errors: those of dib_clock_leave().
 */
int dib_clock_pause(struct dib_endpoint *endpoint);

/**
 * dib_clock_enter() - hold the simulator's clock again.
 *
 * The call returns when all participants that left are back. After dib_clock_pause() it returns at
 * once.
 *
 * Errors: those of dib_clock_leave().
 */
int dib_clock_enter(struct dib_endpoint *endpoint);

/**
 * dib_clock_act_for() - make calls in the place of another thread.
 * @thread: gettid(2) of a thread of this process; 0: the calling thread makes calls for itself, as
 *          at its start
 *
 * The simulator's clock takes the calls of this thread for those of the other one. A binding uses
 * this when a thread of its own makes a call that the program's thread waits for. The two must not
 * compute at the same time. On hardware it changes nothing. Any thread.
 *
 * Errors: none.
 */
void dib_clock_act_for(int thread);

struct dib_clock {
	/* picoseconds since the run started; on hardware, of the system's monotonic clock */
	uint64_t now_ps;
	uint64_t cpu_ps;    /* CPU time charged to this participant so far; 0 on hardware */
	uint32_t simulated; /* 1: now_ps is simulated time */
	uint32_t free;	    /* 1: a client without the clock takes part: the run does not repeat */
};

/**
 * dib_clock_now() - ask for the time.
 * @clock: filled in
 *
 * The call takes no simulated time. On hardware it reads the system's monotonic clock.
 *
 * Errors: those of dib_clock_leave().
 */
int dib_clock_now(struct dib_endpoint *endpoint, struct dib_clock *clock);

/**
 * dib_clock_charge() - let the simulator's clock count the program's own work.
 * @instructions: that the program has executed; the simulator's CPU takes 1 ns for 4.5 of them
 * @copied: bytes that the program has copied in one piece, by the model of the CPU's memory
 *
 * Calls of the library are charged by themselves. What a program does between two calls takes no
 * simulated time, unless it says so by this call. The call does not wait: the participant's later
 * calls are made that much later. On hardware and behind a UART it does nothing and succeeds.
 *
 * Errors: ARGUMENT, CLOSED, LOST, FORKED.
 */
int dib_clock_charge(struct dib_endpoint *endpoint, uint32_t instructions, uint32_t copied);

/* Mailboxes ------------------------------------------------------------------------------------ */

/* Sizes. Both ends of a connection have the same, except for `peers`. 0 stands for the default. */
struct dib_mailbox_options {
	uint32_t peers; /* mailboxes that it can be connected with, 1 … 32; default 1 */
	uint32_t slots; /* messages from each that can wait here: 2ⁿ, 2 … 256; default 16 */
	/* a multiple of 64, 128 … 131072; default 32832, 64 more than 32 KiB. Messages longer than
	 * slot_bytes - 8 wait at the sender, two from each sender */
	uint32_t slot_bytes;
	uint32_t max_length; /* bytes of the longest message, below 2³⁰; default 1 MiB */
};

/* What another program must know to connect with a peer of a mailbox. The programs exchange it by
 * their own means. */
struct dib_mailbox_address {
	uint32_t key;
	uint16_t node;
	uint16_t endpoint;
	uint32_t slots, slot_bytes, max_length;
};

struct dib_message {
	uint32_t peer;	 /* that sent it */
	uint32_t length; /* bytes */
};

/* What dib_mailbox_wait() waits for. */
enum dib_mailbox_news {
	DIB_MAILBOX_MESSAGE = 1, /* dib_mailbox_receive() has a message or an error */
	DIB_MAILBOX_ROOM = 2,	 /* a dib_mailbox_send() that was refused with AGAIN can go now */
};

/**
 * dib_mailbox_open() - give an endpoint a mailbox: messages that are sent at any time and wait
 * where they arrive.
 * @options: may be NULL
 * @mailbox: set on success; the caller closes it with dib_mailbox_close()
 *
 * Each peer has a ring of slots in the library's memory, registered for this peer alone. What one
 * peer does, by mistake or on purpose, harms no other peer's messages. The library registers peers
 * × (slots × slot_bytes × 2 + max_length × 2) + max_length bytes, in peers + 1 regions.
 *
 * The mailbox uses the endpoint's commands, completions and events as long as it is open: other
 * calls that use them return IN_USE. Memory can be registered and the clock used as before. Like
 * its endpoint, a mailbox belongs to one thread at a time. It is closed with its endpoint or card.
 * After a halt of the control program its calls return HALTED, as soon as the library has noticed:
 * close it, and connect a new one.
 *
 * Errors: ARGUMENT, IN_USE (the endpoint has a mailbox, or commands under way), LIMIT, HALTED,
 * NO_FIRMWARE (after a TIMEOUT), COMMAND, TIMEOUT, CLOCK, NO_MEMORY, CLOSED, LOST, PROTOCOL,
 * SYSTEM, FORKED.
 */
int dib_mailbox_open(struct dib_endpoint *endpoint, const struct dib_mailbox_options *options,
		     struct dib_mailbox **mailbox);

/**
 * dib_mailbox_close() - close a mailbox and tell its peers; NULL is allowed.
 *
 * Messages that were sent still arrive. The call waits up to 100 ms for peers to fetch the messages
 * that wait here. Messages that were not received are lost.
 *
 * Errors: ARGUMENT (a handle of another kind), CLOSED, FORKED.
 */
int dib_mailbox_close(struct dib_mailbox *mailbox);

/**
 * dib_mailbox_address() - what the program at the other end must give to its dib_mailbox_connect().
 * @peer:    below options.peers
 * @address: filled in
 *
 * An address serves one connection. When a peer was given up, another one can be connected in its
 * place. Then this call returns a new address, with a key that the former peer does not know. It
 * waits, at most 80 ms, for commands to the former peer that are under way.
 *
 * Errors: ARGUMENT, CLOSED, HALTED, AGAIN (commands to the former peer have not ended), LIMIT (all
 * keys are used up), NO_FIRMWARE, COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_mailbox_address(struct dib_mailbox *mailbox, uint32_t peer,
			struct dib_mailbox_address *address);

/**
 * dib_mailbox_connect() - say where the messages to a peer go.
 * @peer:    below options.peers
 * @address: dib_mailbox_address() of the other end, for the peer that this program is there
 *
 * Both ends connect before either sends: the library does not read a peer's messages before. A peer
 * is connected once.
 *
 * When a call has returned the error of a peer, that peer was given up. It can be connected again,
 * with the same program or another one. Ask dib_mailbox_address() again before that, because this
 * end's address may have changed too. Messages to the former peer, and messages of it that were not
 * received, are lost. Messages are counted from the beginning.
 *
 * Errors: ARGUMENT (no such peer, or a mailbox of other sizes), IN_USE (connected already), CLOSED,
 * HALTED, AGAIN (commands to the former peer have not ended), LIMIT (all keys are used up),
 * NO_FIRMWARE, COMMAND, TIMEOUT, CLOCK, LOST, PROTOCOL, SYSTEM, FORKED.
 */
int dib_mailbox_connect(struct dib_mailbox *mailbox, uint32_t peer,
			const struct dib_mailbox_address *address);

/**
 * dib_mailbox_send() - send a message, whether or not the peer waits for one.
 * @data:   any memory, which may be changed as soon as the call returns; NULL for no bytes
 * @length: up to options.max_length
 *
 * Messages to a peer arrive in order. A message of up to slot_bytes - 8 bytes is put into the next
 * slot there: inline if it has up to 56 bytes, else from a copy. A longer message stays here in a
 * copy, and the receiver fetches it.
 *
 * AGAIN: as many messages as there are slots were sent and not received, or two long ones, or the
 * card has as many commands as it takes. Receive, or wait for DIB_MAILBOX_ROOM, and try again.
 *
 * A peer is given up if it could not be reached, closed its mailbox, or broke the protocol. Each
 * send to it then fails in the same way, and dib_mailbox_receive() returns the error once.
 * dib_mailbox_connect() can replace it.
 *
 * The card of a peer takes messages as long as it runs, even when the peer's process has ended. So
 * a call that has no room asks whether the peer is there, as dib_mailbox_wait() does, and a later
 * call returns the error.
 *
 * Errors: ARGUMENT (no such peer, or too long), AGAIN, TIMEOUT (the peer cannot be reached), CLOSED
 * (it closed its mailbox; or the card or endpoint was closed), HALTED, COMMAND (it refused; the
 * reason has the status), LOST, PROTOCOL (the peer broke the protocol), CLOCK, FORKED.
 */
int dib_mailbox_send(struct dib_mailbox *mailbox, uint32_t peer, const void *data, uint32_t length);

/**
 * dib_mailbox_receive() - take the next message of any peer.
 * @data:    where its bytes are copied to
 * @room:    bytes there
 * @message: set when there is a message, also when it is longer than @room; its peer is set when
 *           the error is one of a peer
 *
 * Peers take turns. A long message is fetched first, one at a time, which takes some calls of this
 * function or of dib_mailbox_wait(). Messages of other peers go on meanwhile.
 *
 * Returns 1 if a message was taken, 0 if there is none.
 *
 * The error of a peer is returned once, after its last message; the other peers go on. A peer that
 * stops without closing its mailbox is noticed as by dib_mailbox_wait(), after 256 calls that found
 * nothing.
 *
 * Errors: ARGUMENT (there is one longer than @room: it stays), TIMEOUT (the peer cannot be
 * reached), CLOSED (it closed its mailbox; or the card or endpoint was closed), HALTED, COMMAND (it
 * refused; the reason has the status), LOST, PROTOCOL (the peer broke the protocol), CLOCK, FORKED.
 */
int dib_mailbox_receive(struct dib_mailbox *mailbox, void *data, uint32_t room,
			struct dib_message *message);

/**
 * dib_mailbox_wait() - sleep until there is news.
 * @news:       enum dib_mailbox_news, or'ed
 * @timeout_ns: of simulated time where the simulator keeps the clock; UINT64_MAX: as long as a peer
 *              can be reached
 *
 * If nothing has come from a peer for 1 ms, the call asks whether the peer is there: it reads 8
 * bytes of the peer's memory. It asks again after 2, 4, and then each 8 ms. The read fails at once
 * if the peer's process has ended: the peer's error is CLOSED. If the peer's card cannot be
 * reached, the read ends as every transfer does, 40 ms later: the error is TIMEOUT. A peer that
 * lives and does not receive is no error. A card behind a UART has its host's memory on the card.
 * There a process that has ended is noticed only when the card is opened again.
 *
 * Returns 1 if there is news, 0 if the time is over. The error of a peer is news:
 * dib_mailbox_receive() or dib_mailbox_send() returns it. If all connected peers were given up,
 * this call returns the error of one of them, because nothing can come any more.
 *
 * Errors: ARGUMENT, CLOSED, HALTED, LOST, PROTOCOL, CLOCK, TIMEOUT (all peers were given up),
 * COMMAND (likewise), FORKED.
 */
int dib_mailbox_wait(struct dib_mailbox *mailbox, unsigned int news, uint64_t timeout_ns);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
