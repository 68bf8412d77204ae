// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Memory of processes: pinned, given a bus address, entered in the card's region table under a key.
 *
 * Behind an IOMMU the pages become one range of bus addresses. Without one they lie anywhere, and
 * the card gets a page table, with the largest pages that all of the memory is made of.
 */

#include "dibber.h"

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#define ALL_RIGHTS                                                                       \
	(DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE | DIBBER_RIGHT_REMOTE_READ | \
	 DIBBER_RIGHT_REMOTE_WRITE)
#define WRITE_RIGHTS (DIBBER_RIGHT_LOCAL_WRITE | DIBBER_RIGHT_REMOTE_WRITE)

#define PIN_AT_ONCE 512ul /* pages, until it is looked for a signal */
#define PER_LINE    8	  /* entries that the card reads of a page table at a time */
#define ABSENT	    1	  /* an entry of a page table without a page */

static unsigned int user_regions;
module_param(user_regions, uint, 0644);
MODULE_PARM_DESC(user_regions, "regions that one user may have of a card; 0: no limit");

static unsigned long user_pages;
module_param(user_pages, ulong, 0644);
MODULE_PARM_DESC(user_pages, "pages that one user may have pinned for a card; 0: no limit");

/**
 * struct dibber_region - registered memory
 * @list: in dibber_file.regions
 * @key: under which the card knows it
 * @mm: whose pinned pages it counts for
 * @pages: pinned
 * @page_count: of @pages
 * @writable: the card may write there
 * @table: the pages' bus addresses
 * @mapped: @table has bus addresses
 * @entries: the card's page table, or NULL: one range
 * @entry_bytes: of @entries
 * @entries_address: its bus address
 */
struct dibber_region {
	struct list_head list;
	u32 key;
	struct mm_struct *mm;
	struct page **pages;
	unsigned long page_count;
	bool writable;
	struct sg_table table;
	bool mapped;
	u64 *entries;
	size_t entry_bytes;
	dma_addr_t entries_address;
};

/* Keys ----------------------------------------------------------------------------------------- */

/* The card takes this number only if none was drawn since it has power (docs/design.md, section 5).
 */
int dibber_keys_begin(struct dibber_card *card)
{
	u32 first;

	do {
		first = get_random_u32();
	} while (!first);
	dibber_write(card, DIBBER_HOST_KEY_DRAW, first);
	return 0;
}

/* The next number that was never given and whose entry is free. */
static int new_key(struct dibber_card *card, u32 *key)
{
	u32 next = dibber_read(card, DIBBER_HOST_KEY_NEXT);
	u32 left = dibber_read(card, DIBBER_HOST_KEYS_LEFT);
	u32 skipped;

	for (skipped = 0; skipped <= DIBBER_REGIONS && skipped < left; skipped++) {
		u32 number = next + skipped;
		u32 entry = number % DIBBER_REGIONS;

		if (number && entry < card->region_count && !card->regions[entry]) {
			*key = number;
			return 0;
		}
	}
	return -ENOSPC;
}

/* Pages ---------------------------------------------------------------------------------------- */

/* As the kernel's own RDMA does (ib_umem_get()): RLIMIT_MEMLOCK counts what is pinned. */
static int account(struct dibber_region *region, unsigned long count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	s64 pinned = atomic64_add_return(count, &current->mm->pinned_vm);

	if (pinned > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(count, &current->mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(current->mm);
	region->mm = current->mm;
	return 0;
}

static int pin(struct dibber_region *region, unsigned long address, unsigned long count)
{
	unsigned int flags = FOLL_LONGTERM;
	long got;

	if (region->writable)
		flags |= FOLL_WRITE;
#ifdef DIBBER_FORCE_WRITE
	/*
	 * Before Linux 6.2 a page that is pinned for reading is not the process's own yet: its next
	 * write would go to a copy, which the card does not see.
	 */
	else
		flags |= FOLL_WRITE | FOLL_FORCE;
#endif
	while (region->page_count < count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		got = pin_user_pages_fast(address + (region->page_count << PAGE_SHIFT),
					  min(count - region->page_count, PIN_AT_ONCE), flags,
					  region->pages + region->page_count);
		if (got <= 0)
			return got ? got : -EFAULT;
		region->page_count += got;
		cond_resched();
	}
	return 0;
}

/*
 * The largest page, log2 of its bytes, of which the memory is made: within each, bus addresses
 * go on as the process's addresses do. What of the first and of the last page lies outside of the
 * memory is out of the region's bounds, so the card never goes there.
 */
static bool has_pages_of(const u64 *addresses, unsigned long count, unsigned long first_frame,
			 unsigned int shift)
{
	unsigned long frames = 1ul << (shift - PAGE_SHIFT), n;

	for (n = 0; n < count; n++) {
		unsigned long frame = first_frame + n;

		if ((addresses[n] >> PAGE_SHIFT ^ frame) & (frames - 1))
			return false;
		if (n && frame % frames && addresses[n] != addresses[n - 1] + PAGE_SIZE)
			return false;
	}
	return true;
}

static unsigned int largest_page(const u64 *addresses, unsigned long count,
				 unsigned long first_frame)
{
	static const unsigned int shifts[] = { 30, 21, 16 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shifts); i++) {
		if (has_pages_of(addresses, count, first_frame, shifts[i]))
			return shifts[i];
	}
	return PAGE_SHIFT;
}

static int make_page_table(struct device *dev, struct dibber_region *region, unsigned long address,
			   unsigned int *shift)
{
	unsigned long first_frame = address >> PAGE_SHIFT, frames, n, entry_count;
	struct sg_dma_page_iter iterator;
	u64 *addresses;

	addresses = kvmalloc_array(region->page_count, sizeof(*addresses),
				   GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!addresses)
		return -ENOMEM;
	n = 0;
	for_each_sgtable_dma_page(&region->table, &iterator, 0)
		addresses[n++] = sg_page_iter_dma_address(&iterator);
	*shift = largest_page(addresses, n, first_frame);
	frames = 1ul << (*shift - PAGE_SHIFT);
	entry_count = (first_frame + n - 1) / frames - first_frame / frames + 1;
	region->entry_bytes = ALIGN(entry_count, PER_LINE) * sizeof(u64);
	region->entries = dma_alloc_coherent(dev, region->entry_bytes, &region->entries_address,
					     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!region->entries) {
		kvfree(addresses);
		return -ENOMEM;
	}
	memset64(region->entries, ABSENT, region->entry_bytes / sizeof(u64));
	while (n--) {
		unsigned long entry = (first_frame + n) / frames - first_frame / frames;

		region->entries[entry] = addresses[n] & ~(((u64)1 << *shift) - 1);
	}
	kvfree(addresses);
	return 0;
}

/* Give the pages bus addresses, and say in the command where they are. */
static int map(struct dibber_card *card, struct dibber_region *region, unsigned long address,
	       struct dibber_admin_command *command)
{
	struct device *dev = &card->pdev->dev;
	unsigned int shift;
	int rc;

	rc = sg_alloc_table_from_pages(&region->table, region->pages, region->page_count, 0,
				       region->page_count << PAGE_SHIFT, GFP_KERNEL_ACCOUNT);
	if (rc)
		return rc;
	rc = dma_map_sgtable(dev, &region->table,
			     region->writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE, 0);
	if (rc) {
		sg_free_table(&region->table);
		return rc;
	}
	region->mapped = true;
	if (region->table.nents == 1) {
		command->base = sg_dma_address(region->table.sgl) + offset_in_page(address);
		return 0;
	}
	rc = make_page_table(dev, region, address, &shift);
	if (rc)
		return rc;
	command->base = region->entries_address;
	command->page = shift;
	command->first = address & ((1ul << shift) - 1);
	return 0;
}

/* Give everything back that the region has; the card knows it no more. */
static void free_region(struct dibber_card *card, struct dibber_region *region)
{
	struct device *dev = &card->pdev->dev;

	if (region->entries)
		dma_free_coherent(dev, region->entry_bytes, region->entries,
				  region->entries_address);
	if (region->mapped) {
		dma_unmap_sgtable(dev, &region->table,
				  region->writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE, 0);
		sg_free_table(&region->table);
	}
	unpin_user_pages_dirty_lock(region->pages, region->page_count, region->writable);
	kvfree(region->pages);
	if (region->mm)
		mmdrop(region->mm);
	kfree(region);
}

/* Registering ---------------------------------------------------------------------------------- */

static int check(struct dibber_card *card, const struct dibber_region_add *add,
		 unsigned long *count)
{
	u64 end;

	if (add->reserved || !add->rights || add->rights & ~ALL_RIGHTS || !add->length ||
	    add->length > DIBBER_MAX_OFFSET ||
	    check_add_overflow(add->address, add->length, &end) || end > TASK_SIZE) {
		dibber_complain(card, "a region of 0x%llx bytes at 0x%llx with rights 0x%x\n",
				add->length, add->address, add->rights);
		return -EINVAL;
	}
	*count = (PAGE_ALIGN(end) - (add->address & PAGE_MASK)) >> PAGE_SHIFT;
	/* The list of the pages alone would take the memory of all other processes. */
	if (*count > totalram_pages()) {
		dibber_complain(card, "%lu pages are more than the machine has\n", *count);
		return -ENOMEM;
	}
	return 0;
}

static bool over_quota(const struct dibber_user *user, unsigned long count)
{
	if (capable(CAP_SYS_RESOURCE))
		return false;
	return (user_regions && user->regions >= user_regions) ||
	       (user_pages && (count > user_pages || user->pages > user_pages - count));
}

/* With the card locked. */
static int enter(struct dibber_file *file, struct dibber_region *region,
		 struct dibber_region_add *add)
{
	struct dibber_card *card = file->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_REGION_ADD,
		.rights = add->rights,
		.endpoint = file->number,
		.length = add->length,
	};
	int rc = dibber_admin_check(card);

	if (rc)
		return rc;
	if (!file->number)
		return -ENOTCONN;
	if (over_quota(file->user, region->page_count)) {
		dibber_complain(card, "user %u has %u regions and %lu pages, which is the quota\n",
				from_kuid(&init_user_ns, file->user->uid), file->user->regions,
				file->user->pages);
		return -EDQUOT;
	}
	rc = new_key(card, &command.key);
	if (rc)
		return rc;
	rc = map(card, region, add->address, &command);
	if (rc)
		return rc;
	rc = dibber_admin(card, &command);
	if (rc == -ESHUTDOWN && !card->stopped)
		dibber_program_stop(card);
	/* If there was no answer, the card reaches no memory any more. */
	if (rc)
		return rc;
	region->key = command.key;
	card->regions[region->key % DIBBER_REGIONS] = region;
	list_add_tail(&region->list, &file->regions);
	file->user->regions++;
	file->user->pages += region->page_count;
	add->key = region->key;
	add->page = command.page;
	return 0;
}

int dibber_region_add(struct dibber_file *file, struct dibber_region_add *add)
{
	struct dibber_card *card = file->card;
	struct dibber_region *region;
	unsigned long count;
	int rc;

	rc = check(card, add, &count);
	if (rc)
		return rc;
	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return -ENOMEM;
	region->writable = add->rights & WRITE_RIGHTS;
	rc = account(region, count);
	if (rc) {
		dibber_complain(card, "%lu pages more are above RLIMIT_MEMLOCK\n", count);
		kfree(region);
		return rc;
	}
	rc = -ENOMEM;
	region->pages =
		kvmalloc_array(count, sizeof(*region->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (region->pages)
		rc = pin(region, add->address & PAGE_MASK, count);
	if (!rc)
		rc = mutex_lock_killable(&card->lock);
	if (!rc) {
		rc = enter(file, region, add);
		if (rc) {
			struct mm_struct *mm = region->mm;

			/* With the lock: the device is there to unmap for, or remove() waits. */
			atomic64_sub(count, &mm->pinned_vm);
			free_region(card, region);
		}
		mutex_unlock(&card->lock);
		return rc;
	}
	atomic64_sub(count, &region->mm->pinned_vm);
	free_region(card, region);
	return rc;
}

/*
 * The command completes when nothing is under way any more that had found the region. When it
 * fails, the card loses its right to reach memory at all.
 */
static void withdraw(struct dibber_file *file, struct dibber_region *region)
{
	struct dibber_card *card = file->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_REGION_REMOVE,
		.key = region->key,
	};
	int rc = dibber_admin(card, &command);

	if (rc && !card->stopped)
		dibber_program_stop(card);
	card->regions[region->key % DIBBER_REGIONS] = NULL;
	list_del(&region->list);
	file->user->regions--;
	file->user->pages -= region->page_count;
	atomic64_sub(region->page_count, &region->mm->pinned_vm);
	free_region(card, region);
}

int dibber_region_remove(struct dibber_file *file, u32 key)
{
	struct dibber_card *card = file->card;
	struct dibber_region *region;
	int rc;

	rc = mutex_lock_killable(&card->lock);
	if (rc)
		return rc;
	rc = -ENOENT;
	list_for_each_entry(region, &file->regions, list) {
		if (region->key != key)
			continue;
		withdraw(file, region);
		rc = 0;
		break;
	}
	mutex_unlock(&card->lock);
	return rc;
}

void dibber_regions_release(struct dibber_file *file)
{
	struct dibber_region *region, *next;

	list_for_each_entry_safe(region, next, &file->regions, list)
		withdraw(file, region);
}

/* The driver's own memory ---------------------------------------------------------------------- */

/* Stands in the table of entries for each region of the driver. */
static struct dibber_region own_region;

/*
 * Enter memory of the driver, one range of bus addresses, for an endpoint of the driver. With the
 * card locked.
 */
int dibber_own_region_add(struct dibber_own *own, dma_addr_t base, u64 length, u8 rights, u32 *key)
{
	struct dibber_card *card = own->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_REGION_ADD,
		.rights = rights,
		.endpoint = own->number,
		.base = base,
		.length = length,
	};
	int rc = dibber_admin_check(card);

	if (!rc)
		rc = new_key(card, &command.key);
	if (!rc)
		rc = dibber_admin(card, &command);
	if (rc)
		return rc;
	card->regions[command.key % DIBBER_REGIONS] = &own_region;
	*key = command.key;
	return 0;
}

/* The card does not reach the memory any more when this returns. With the card locked. */
void dibber_own_region_remove(struct dibber_own *own, u32 key)
{
	struct dibber_card *card = own->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_REGION_REMOVE,
		.key = key,
	};

	if (dibber_admin(card, &command) && !card->stopped)
		dibber_program_stop(card);
	card->regions[key % DIBBER_REGIONS] = NULL;
}
