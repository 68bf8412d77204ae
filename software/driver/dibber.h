/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the files of the driver share.
 *
 * Locks, outermost first: dibber_file.lock, mmap_lock, dibber_card.lock, dibber_file.map_lock,
 * dibber_endpoint.lock. Memory of a process is pinned, copied from and copied to without
 * dibber_card.lock, because those take mmap_lock.
 */

#ifndef DIBBER_H
#define DIBBER_H

/* First: a member of a structure there is called as the kernel's macro `current`. */
#include "dibber_interface.h"

#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/eventfd.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/ratelimit.h>
#include <linux/scatterlist.h>
#include <linux/uidgid.h>
#include <linux/wait.h>

#include "dibber_ioctl.h"

#define DIBBER_ADMIN_ENTRIES 64
#define DIBBER_ONES_ORDER    3 /* of dibber_file.ones: log2 of its pages */

/* Pages of BAR 2 that can be given. The first ones are write-combined, the others uncached. */
#define DIBBER_WINDOW_PAGES    (DIBBER_APERTURE_BYTES / DIBBER_APERTURE_PAGE - 1)
#define DIBBER_WINDOW_COMBINED 192

/* A field of a register of bank `host`, or of PROGRAM. */
#define dibber_field(value, name) ((value) >> DIBBER_##name##_SHIFT & DIBBER_##name##_MASK)

/**
 * struct dibber_user - what a user has of a card
 * @list: in dibber_card.users
 * @uid: the user
 * @endpoints: open; the entry is freed with the last one
 * @regions: registered
 * @pages: pinned
 */
struct dibber_user {
	struct list_head list;
	kuid_t uid;
	unsigned int endpoints;
	unsigned int regions;
	unsigned long pages;
};

/**
 * struct dibber_endpoint - an endpoint's interrupt
 * @wait: readers and pollers of the open file
 * @lock: guards what follows; taken in interrupts
 * @interrupts: since they were read last
 * @eventfd: signalled too, or NULL
 * @own: the driver itself has the endpoint, or NULL; changes with dibber_card.lock held too
 * @file: the open file that has the endpoint, or NULL; guarded by dibber_card.lock
 */
struct dibber_endpoint {
	wait_queue_head_t wait;
	spinlock_t lock; /* guards what follows */
	u64 interrupts;
	struct eventfd_ctx *eventfd;
	struct dibber_own *own;
	struct dibber_file *file;
};

/**
 * struct dibber_own - an endpoint that the driver itself uses
 * @card: the card
 * @number: of the endpoint; 0: not open
 * @interrupt: called in interrupts, when a completion or an event may be there
 * @memory: both queues, the completions first
 * @memory_bytes: of @memory
 * @memory_address: its bus address
 * @completions: the completion queue
 * @events: the event queue
 * @producer: commands given, modulo 2³²
 * @rung: @producer as the card last heard
 * @oldest: the first command that has not ended, modulo 2³²
 * @ended: one bit for each slot whose command has ended, from @oldest on
 *
 * Queues and slots have no lock of their own: whoever opens the endpoint has one.
 */
struct dibber_own {
	struct dibber_card *card;
	unsigned int number;
	void (*interrupt)(struct dibber_own *own);
	void *memory;
	size_t memory_bytes;
	dma_addr_t memory_address;
	struct dibber_own_queue {
		const struct dibber_queue_entry *entries;
		u32 count;
		u32 taken;
		u32 told;
		u32 doorbell;
	} completions, events;
	u32 producer;
	u32 rung;
	u32 oldest;
	u32 ended;
};

/**
 * struct dibber_window - a card's remote window
 * @start: bus address of BAR 2
 * @combined: its write-combined pages as memory of the kernel, or NULL: there is no window
 * @uncached: the others, the control page too
 * @own: the card's last endpoint, through which the card sends
 * @scratch: a page where the card writes what loads return
 * @scratch_address: its bus address
 * @scratch_key: its key, or 0
 * @on: pages can be given
 * @shares: how many files can have windows
 * @owners: how many have, with @kept_owners
 * @used: pages that were given, with @kept
 * @count: pages of the window that begins at each page, or 0
 * @owner: the file that has it, or NULL
 * @kept: given pages that no file has any more, because stores to them may still wait in the card
 * @kept_owners: files without a window whose stores may be among these; counted in @owners
 */
struct dibber_window {
	phys_addr_t start;
	void __iomem *combined;
	void __iomem *uncached;
	struct dibber_own own;
	void *scratch;
	dma_addr_t scratch_address;
	u32 scratch_key;
	bool on;
	unsigned int shares;
	unsigned int owners;
	DECLARE_BITMAP(used, DIBBER_WINDOW_PAGES);
	u8 count[DIBBER_WINDOW_PAGES];
	struct dibber_file *owner[DIBBER_WINDOW_PAGES];
	DECLARE_BITMAP(kept, DIBBER_WINDOW_PAGES);
	unsigned int kept_owners;
};

struct dibber_vector {
	struct dibber_card *card;
	unsigned int number;
};

/**
 * struct dibber_card - a card, from probe() until the last open file is closed
 * @references: of the device, and of each open file
 * @pdev: the device; valid until @gone
 * @misc: /dev/dibberN
 * @number: N
 * @bar: BAR 0
 * @bar_start: its bus address, for mmap()
 * @complaints: one line in the log a second
 * @lock: guards all that follows, and administrator commands
 * @gone: the device is not there any more, or not ours
 * @resetting: its function is being reset, or does not work since; nothing of BAR 0 is read
 * @stopped: the control program was halted by the driver, because it did not answer
 * @halts: as register PROGRAM counts them, when the control program was loaded
 * @identity: of the control program
 * @clock_hz: cycles of the card a second
 * @endpoint_count: that the card has
 * @region_count: entries of the region table
 * @slot_count: slots of an endpoint
 * @sram_bytes: of the control program's memory
 * @image_limit: bytes of the largest image
 * @features: register FEATURES
 * @node: the card's node number
 * @vectors: of MSI-X that it has got
 * @vector: what the interrupts are given
 * @endpoint: the endpoints; endpoint 0 is the administrator's
 * @regions: by entry of the card's region table
 * @users: struct dibber_user
 * @queue: the administrator's completion queue
 * @queue_address: its bus address
 * @queue_taken: entries taken from it, modulo 2³²
 * @queue_told: @queue_taken as the card last heard
 * @producer: administrator commands, modulo 2³²
 * @window: the remote window
 * @net: the network device, or NULL; constant from probe() to remove()
 * @net_was_up: before a reset after which it did not come up; guarded by the device's lock
 */
struct dibber_card {
	struct kref references;
	struct pci_dev *pdev;
	struct miscdevice misc;
	char name[16];
	int number;
	void __iomem *bar;
	phys_addr_t bar_start;
	struct ratelimit_state complaints;

	struct mutex lock; /* guards all that follows */
	bool gone;
	bool resetting;
	bool stopped;
	u32 halts;
	u32 identity;
	u32 clock_hz;
	u32 endpoint_count;
	u32 region_count;
	u32 slot_count;
	u32 sram_bytes;
	u32 image_limit;
	u32 features;
	u32 node;
	int vectors;
	struct dibber_vector vector[DIBBER_VECTORS];
	struct dibber_endpoint endpoint[DIBBER_ENDPOINTS];
	struct dibber_region *regions[DIBBER_REGIONS];
	struct list_head users;

	struct dibber_queue_entry *queue;
	dma_addr_t queue_address;
	u32 queue_taken;
	u32 queue_told;
	u32 producer;

	struct dibber_window window;

	struct net_device *net;
	bool net_was_up;
};

/**
 * struct dibber_file - an open file of /dev/dibberN
 * @card: the card
 * @file: the file
 * @lock: one ENDPOINT_OPEN at a time
 * @notifier: tells when @mm ends
 * @mm: the address space that opened the endpoint first, or NULL; no other one may use the file
 * @number: the endpoint, or 0; guarded by dibber_card.lock
 * @lost: its endpoint ended with the card, or with the card's reset: all calls return ENODEV
 * @user: whose credits it uses; guarded by dibber_card.lock
 * @regions: of the endpoint; guarded by dibber_card.lock
 * @map_lock: guards what follows; taken in page faults
 * @mapped: the endpoint's number while its window and queues may be mapped, or 0
 * @window: pages of BAR 2 that the endpoint has
 * @windows: how many windows it has; changes with dibber_card.lock held too
 * @queues: both queues
 * @queue_bytes: of both, whole pages
 * @queue_address: their bus address
 * @ones: pages of ones, which mappings show behind the endpoint's end
 */
struct dibber_file {
	struct dibber_card *card;
	struct file *file;
	struct mutex lock; /* one ENDPOINT_OPEN at a time */
	struct mmu_notifier notifier;
	struct mm_struct *mm;
	unsigned int number;
	bool lost;
	struct dibber_user *user;
	struct list_head regions;

	struct mutex map_lock; /* guards what follows */
	unsigned int mapped;
	DECLARE_BITMAP(window, DIBBER_WINDOW_PAGES);
	unsigned int windows;
	void *queues;
	size_t queue_bytes;
	dma_addr_t queue_address;
	struct page *ones;
};

static inline u32 dibber_read(struct dibber_card *card, u32 offset)
{
	return readl(card->bar + offset);
}

static inline void dibber_write(struct dibber_card *card, u32 offset, u32 value)
{
	writel(value, card->bar + offset);
}

static inline u32 dibber_doorbell(unsigned int endpoint, u32 offset)
{
	return DIBBER_ENDPOINT_BASE + endpoint * DIBBER_ENDPOINT_STRIDE + DIBBER_DOORBELL_OFFSET +
	       offset;
}

static inline u32 dibber_slot(unsigned int endpoint, u32 slot)
{
	return DIBBER_ENDPOINT_BASE + endpoint * DIBBER_ENDPOINT_STRIDE + DIBBER_SLOT_OFFSET +
	       slot * DIBBER_SLOT_BYTES;
}

/* main.c */

/* Say why something was refused: one line in the log a second. */
__printf(2, 3) void dibber_complain(struct dibber_card *card, const char *format, ...);
void dibber_put(struct dibber_card *card);

/* program.c */
int dibber_program_load(struct dibber_card *card);
void dibber_program_stop(struct dibber_card *card);

/* admin.c: with the card locked */
int dibber_admin_create(struct dibber_card *card);
void dibber_admin_destroy(struct dibber_card *card);
void dibber_admin_tell(struct dibber_card *card);
int dibber_admin_check(struct dibber_card *card);
int dibber_admin(struct dibber_card *card, struct dibber_admin_command *command);
/* The same, with the completion; its status is not looked at. */
int dibber_admin_ask(struct dibber_card *card, struct dibber_admin_command *command,
		     struct dibber_queue_entry *answer);

/* region.c */
int dibber_keys_begin(struct dibber_card *card);
int dibber_region_add(struct dibber_file *file, struct dibber_region_add *add);
int dibber_region_remove(struct dibber_file *file, u32 key);
/* With the card locked. */
void dibber_regions_release(struct dibber_file *file);
int dibber_own_region_add(struct dibber_own *own, dma_addr_t base, u64 length, u8 rights, u32 *key);
void dibber_own_region_remove(struct dibber_own *own, u32 key);

/* endpoint.c */
int dibber_endpoint_open(struct dibber_file *file, struct dibber_endpoint_open *open);
/* With the card locked; again: nothing. */
void dibber_endpoint_close(struct dibber_file *file);
int dibber_endpoint_eventfd(struct dibber_file *file, int fd);
void dibber_endpoint_interrupt(struct dibber_endpoint *endpoint);

/* own.c: with the card locked */
int dibber_own_open(struct dibber_card *card, struct dibber_own *own, unsigned int number,
		    u32 cq_entries, u32 eq_entries);
void dibber_own_close(struct dibber_own *own);
/* own.c: with the lock of the endpoint's user */
u32 dibber_own_room(const struct dibber_own *own);
u32 dibber_own_give(struct dibber_own *own, struct dibber_command *command);
void dibber_own_ring(struct dibber_own *own);
bool dibber_own_completion(struct dibber_own *own, struct dibber_queue_entry *entry);
bool dibber_own_event(struct dibber_own *own, struct dibber_queue_entry *entry);

/* window.c */
/* Whether the card has one, which owns the card's last endpoint. */
bool dibber_window_exists(const struct dibber_card *card);
void dibber_window_create(struct dibber_card *card);
void dibber_window_destroy(struct dibber_card *card);
int dibber_window_map(struct dibber_file *file, struct dibber_window_map *map);
int dibber_window_unmap(struct dibber_file *file, u32 first);
/* With the card locked. */
void dibber_window_open(struct dibber_card *card);
void dibber_window_close(struct dibber_card *card);
void dibber_window_release(struct dibber_file *file);

/* netdev.c */
void dibber_net_add(struct dibber_card *card);
void dibber_net_remove(struct dibber_card *card);
/* Around a reset, without the card's lock. Returns whether the interface was up. */
bool dibber_net_down(struct dibber_card *card);
void dibber_net_up(struct dibber_card *card);

/* mapping.c */
int dibber_mmap(struct file *filp, struct vm_area_struct *vma);
loff_t dibber_mapping_window(unsigned int number);
loff_t dibber_mapping_queues(unsigned int number);
loff_t dibber_mapping_aperture(unsigned int number);
/* From now on the endpoint's mappings show ones. */
void dibber_mapping_end(struct dibber_file *file);
/* The same of pages of BAR 2. With the card locked. */
void dibber_mapping_end_pages(struct dibber_file *file, unsigned int first, unsigned int count);
/* The control page shows ones until the file has a window again. With the card locked. */
void dibber_mapping_end_control(struct dibber_file *file);

/* file.c */
extern const struct file_operations dibber_file_operations;

#endif
