// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The remote window: BAR 2, whose loads and stores reach other nodes (docs/design/window.md).
 *
 * The card sends through its last endpoint, which is the driver's. The driver alone writes the
 * page table, and a process can map only the pages that the driver gave to its endpoint.
 */

#include "dibber.h"

#include <linux/bitmap.h>
#include <linux/dma-mapping.h>

#define CONTROL		(DIBBER_WINDOW_PAGES * (unsigned long)DIBBER_APERTURE_PAGE)
#define COMBINED	(DIBBER_WINDOW_COMBINED * (unsigned long)DIBBER_APERTURE_PAGE)
#define SEQUENCE_STRIDE 64
#define OFFSETS		(1ull << 48) /* of a region */
#define SCRATCH_BYTES	4096
#define ALL_ACCESS	(DIBBER_ACCESS_LOAD | DIBBER_ACCESS_STORE | DIBBER_ACCESS_ADD)

/*
 * Stores that a file may have in the card's queue, which loses what it has no room for. So many
 * files as have a share can have windows at once.
 */
#define SHARE 128

/* A barrier that is not answered takes 10 ms. The card's lock is held meanwhile. */
#define BARRIERS 10

static_assert(DIBBER_APERTURE_BYTES == (DIBBER_WINDOW_PAGES + 1) * DIBBER_APERTURE_PAGE,
	      "all pages but the control page can be given");
static_assert(DIBBER_ENDPOINTS * SEQUENCE_STRIDE <= PAGE_SIZE,
	      "the sequences of all owners are in one page of the processor");

bool dibber_window_exists(const struct dibber_card *card)
{
	return card->features & 1u << DIBBER_HOST_FEATURES_WINDOW_SHIFT;
}

static u32 read_register(struct dibber_card *card, u32 offset)
{
	return dibber_read(card, DIBBER_APERTURE_REGISTERS + offset);
}

static void write_register(struct dibber_card *card, u32 offset, u32 value)
{
	dibber_write(card, DIBBER_APERTURE_REGISTERS + offset, value);
}

static void write_page(struct dibber_card *card, unsigned int page, u32 key, u64 offset, u32 access)
{
	write_register(card, DIBBER_WINDOW_PAGE_KEY, key);
	write_register(card, DIBBER_WINDOW_PAGE_OFFSET_LOW, lower_32_bits(offset));
	write_register(card, DIBBER_WINDOW_PAGE_OFFSET_HIGH, upper_32_bits(offset));
	write_register(card, DIBBER_WINDOW_PAGE_ACCESS, access);
	write_register(card, DIBBER_WINDOW_PAGE_WRITE, page);
}

/* The card --------------------------------------------------------------------------------------
 */

/*
 * Map BAR 2 for the kernel, which also makes the processor's memory types of it: a mapping of a
 * process gets the type that the kernel's own mapping has. A card without all of BAR 2 has no
 * window, and works without it.
 */
void dibber_window_create(struct dibber_card *card)
{
	struct dibber_window *window = &card->window;
	struct pci_dev *pdev = card->pdev;

	if (!dibber_window_exists(card))
		return;
	if (pci_resource_len(pdev, 2) < DIBBER_APERTURE_BYTES) {
		dev_warn(&pdev->dev, "no remote window: BAR 2 %pR is too short\n",
			 &pdev->resource[2]);
		return;
	}
	window->start = pci_resource_start(pdev, 2);
	window->combined = pci_iomap_wc_range(pdev, 2, 0, COMBINED);
	window->uncached = pci_iomap_range(pdev, 2, COMBINED, DIBBER_APERTURE_BYTES - COMBINED);
	if (window->combined && window->uncached)
		return;
	dev_warn(&pdev->dev, "no remote window: BAR 2 cannot be mapped\n");
	dibber_window_destroy(card);
}

void dibber_window_destroy(struct dibber_card *card)
{
	struct dibber_window *window = &card->window;

	if (window->combined)
		pci_iounmap(card->pdev, window->combined);
	if (window->uncached)
		pci_iounmap(card->pdev, window->uncached);
	window->combined = NULL;
	window->uncached = NULL;
}

/* The card takes the completions of this endpoint by itself. */
static void no_interrupt(struct dibber_own *own)
{
}

static int begin(struct dibber_card *card)
{
	struct dibber_window *window = &card->window;
	u32 number = card->endpoint_count - 1;
	u32 geometry = read_register(card, DIBBER_WINDOW_GEOMETRY);
	unsigned int page;
	int rc;

	window->shares = dibber_field(geometry, WINDOW_GEOMETRY_QUEUE) / SHARE;
	if (dibber_field(geometry, WINDOW_GEOMETRY_ENDPOINT) != number || !window->shares)
		return -ENODEV;
	window->own.interrupt = no_interrupt;
	rc = dibber_own_open(card, &window->own, number, 2 * DIBBER_SLOTS, 1);
	if (rc)
		return rc;
	window->scratch = dma_alloc_coherent(&card->pdev->dev, SCRATCH_BYTES,
					     &window->scratch_address, GFP_KERNEL);
	if (!window->scratch)
		return -ENOMEM;
	rc = dibber_own_region_add(&window->own, window->scratch_address, SCRATCH_BYTES,
				   DIBBER_RIGHT_LOCAL_WRITE, &window->scratch_key);
	if (rc)
		return rc;
	/* No reset reaches the table. */
	for (page = 0; page < DIBBER_WINDOW_PAGES; page++)
		write_page(card, page, 0, 0, 0);
	write_register(card, DIBBER_WINDOW_SCRATCH_LOW, lower_32_bits(window->scratch_address));
	write_register(card, DIBBER_WINDOW_SCRATCH_HIGH, upper_32_bits(window->scratch_address));
	write_register(card, DIBBER_WINDOW_SCRATCH_KEY, window->scratch_key);
	write_register(card, DIBBER_WINDOW_CONTROL, DIBBER_WINDOW_CONTROL_ENABLE_MASK);
	window->on = true;
	return 0;
}

/*
 * Whether all stores that reached the card before have arrived or were given up. The control page
 * answers a barrier with the sequence of an owner, or with ones after 10 ms. A sequence may be ones
 * as well, so two owners are asked in turn.
 */
static bool stores_ended(struct dibber_card *card, unsigned int number, unsigned int barriers)
{
	struct dibber_window *window = &card->window;
	void __iomem *control = window->uncached + CONTROL - COMBINED;
	unsigned int owners[] = { number, card->endpoint_count - 1 };
	unsigned int n;

	if (!window->on || card->gone)
		return true;
	for (n = 0; n < barriers; n++) {
		if (readl(control + owners[n % 2] * SEQUENCE_STRIDE) != U32_MAX)
			return true;
		cond_resched();
	}
	return false;
}

static void withdraw_page(struct dibber_card *card, unsigned int page)
{
	write_page(card, page, 0, 0, 0);
	clear_bit(page, card->window.used);
}

/* Free the kept pages, if the card answers now. With the card locked. */
static void free_kept(struct dibber_card *card)
{
	struct dibber_window *window = &card->window;
	unsigned int page;

	if (bitmap_empty(window->kept, DIBBER_WINDOW_PAGES) || !stores_ended(card, 0, 1))
		return;
	for (page = 0; page < DIBBER_WINDOW_PAGES; page++) {
		if (test_bit(page, window->kept))
			withdraw_page(card, page);
	}
	bitmap_zero(window->kept, DIBBER_WINDOW_PAGES);
	window->owners -= window->kept_owners;
	window->kept_owners = 0;
}

/* Turn the window on, behind a start of the control program. With the card locked. */
void dibber_window_open(struct dibber_card *card)
{
	int rc;

	if (!card->window.combined)
		return;
	rc = begin(card);
	if (!rc)
		return;
	dev_warn(&card->pdev->dev, "no remote window: %d\n", rc);
	dibber_window_close(card);
}

/* No file has a page any more. With the card locked. */
void dibber_window_close(struct dibber_card *card)
{
	struct dibber_window *window = &card->window;

	if (window->on)
		write_register(card, DIBBER_WINDOW_CONTROL, 0);
	window->on = false;
	/* What waits in the card is dropped, and begin() clears the table. */
	bitmap_andnot(window->used, window->used, window->kept, DIBBER_WINDOW_PAGES);
	bitmap_zero(window->kept, DIBBER_WINDOW_PAGES);
	window->owners -= window->kept_owners;
	window->kept_owners = 0;
	if (window->scratch_key)
		dibber_own_region_remove(&window->own, window->scratch_key);
	window->scratch_key = 0;
	dibber_own_close(&window->own);
	if (window->scratch)
		dma_free_coherent(&card->pdev->dev, SCRATCH_BYTES, window->scratch,
				  window->scratch_address);
	window->scratch = NULL;
}

/* Windows of a file ---------------------------------------------------------------------------- */

static int check(struct dibber_card *card, const struct dibber_window_map *map)
{
	if (!map->length || map->length > DIBBER_APERTURE_BYTES ||
	    map->offset > OFFSETS - DIBBER_APERTURE_BYTES - DIBBER_APERTURE_PAGE || !map->access ||
	    map->access & ~ALL_ACCESS || map->reserved ||
	    (map->addend && !(map->access & DIBBER_ACCESS_ADD)) ||
	    map->node >= dibber_field(dibber_read(card, DIBBER_HOST_GEOMETRY), HOST_GEOMETRY_NODES))
		return -EINVAL;
	return 0;
}

/*
 * A processor may read write-combined memory at any time, though no program asked for it. So a
 * window whose loads change something is one of the uncached pages.
 */
static int find_pages(struct dibber_window *window, bool adds, unsigned int count)
{
	unsigned int begin = adds ? DIBBER_WINDOW_COMBINED : 0;
	unsigned int end = adds ? DIBBER_WINDOW_PAGES : DIBBER_WINDOW_COMBINED;
	unsigned long first = bitmap_find_next_zero_area(window->used, end, begin, count, 0);

	return first < end ? (int)first : -ENOSPC;
}

static int map_locked(struct dibber_file *file, struct dibber_window_map *map)
{
	struct dibber_card *card = file->card;
	struct dibber_window *window = &card->window;
	unsigned int count = DIV_ROUND_UP_ULL(map->length, DIBBER_APERTURE_PAGE);
	bool adds = map->access & DIBBER_ACCESS_ADD;
	u32 access = map->node | file->number << DIBBER_WINDOW_PAGE_ACCESS_OWNER_SHIFT |
		     (u32)(u16)map->addend << DIBBER_WINDOW_PAGE_ACCESS_ADDEND_SHIFT |
		     1u << DIBBER_WINDOW_PAGE_ACCESS_VALID_SHIFT;
	int first, rc;
	unsigned int n;

	if (!file->number)
		return file->lost ? -ENODEV : -ENOTCONN;
	rc = dibber_admin_check(card);
	if (rc)
		return rc;
	if (!window->on)
		return -EOPNOTSUPP;
	free_kept(card);
	if (!file->windows && window->owners == window->shares) {
		dibber_complain(card, "%u files have windows, which is all\n", window->owners);
		return -ENOSPC;
	}
	first = find_pages(window, adds, count);
	if (first < 0)
		return first;
	if (adds || map->access & DIBBER_ACCESS_LOAD)
		access |= 1u << DIBBER_WINDOW_PAGE_ACCESS_LOAD_SHIFT;
	if (map->access & DIBBER_ACCESS_STORE)
		access |= 1u << DIBBER_WINDOW_PAGE_ACCESS_STORE_SHIFT;
	if (adds)
		access |= 1u << DIBBER_WINDOW_PAGE_ACCESS_ATOMIC_SHIFT;
	for (n = 0; n < count; n++)
		write_page(card, first + n, map->key, map->offset + (u64)n * DIBBER_APERTURE_PAGE,
			   access);
	bitmap_set(window->used, first, count);
	window->count[first] = count;
	window->owner[first] = file;
	if (!file->windows)
		window->owners++;
	mutex_lock(&file->map_lock);
	file->windows++;
	bitmap_set(file->window, first, count);
	mutex_unlock(&file->map_lock);
	map->first = first;
	map->place = dibber_mapping_aperture(file->number);
	map->control = CONTROL;
	map->share = SHARE;
	return 0;
}

int dibber_window_map(struct dibber_file *file, struct dibber_window_map *map)
{
	struct dibber_card *card = file->card;
	int rc = mutex_lock_killable(&card->lock);

	if (rc)
		return rc;
	rc = card->gone || card->stopped ? dibber_admin_check(card) : check(card, map);
	if (rc == -EINVAL)
		dibber_complain(card, "a window of %llu bytes, node %u, access 0x%x\n", map->length,
				map->node, map->access);
	if (!rc)
		rc = map_locked(file, map);
	mutex_unlock(&card->lock);
	return rc;
}

/*
 * Withdraw the window that begins at page `first`. The mappings of the file do not show it any
 * more. Its entries and the file's share stay while its stores may wait (`ended` is false): under
 * another entry they would reach other memory.
 */
static void withdraw(struct dibber_file *file, unsigned int first, bool ended)
{
	struct dibber_window *window = &file->card->window;
	unsigned int count = window->count[first], n;

	for (n = 0; ended && n < count; n++)
		withdraw_page(file->card, first + n);
	if (!ended)
		bitmap_set(window->kept, first, count);
	window->count[first] = 0;
	window->owner[first] = NULL;
	mutex_lock(&file->map_lock);
	bitmap_clear(file->window, first, count);
	file->windows--;
	mutex_unlock(&file->map_lock);
	if (file->windows)
		return;
	dibber_mapping_end_control(file);
	if (ended)
		window->owners--;
	else
		window->kept_owners++;
}

/* Whether the file's stores have ended; with a line in the log if not. */
static bool wait_for_stores(struct dibber_file *file)
{
	bool ended = stores_ended(file->card, file->number, BARRIERS);

	if (!ended)
		dibber_complain(file->card,
				"a window ends and its stores wait: its pages are kept\n");
	return ended;
}

int dibber_window_unmap(struct dibber_file *file, u32 first)
{
	struct dibber_card *card = file->card;
	int rc = mutex_lock_killable(&card->lock);

	if (rc)
		return rc;
	if (first >= DIBBER_WINDOW_PAGES || card->window.owner[first] != file) {
		rc = -ENOENT;
	} else {
		dibber_mapping_end_pages(file, first, card->window.count[first]);
		withdraw(file, first, wait_for_stores(file));
	}
	mutex_unlock(&card->lock);
	return rc;
}

/* The endpoint ends, and its mappings have. With the card locked. */
void dibber_window_release(struct dibber_file *file)
{
	unsigned int first;
	bool ended;

	if (!file->windows)
		return;
	ended = wait_for_stores(file);
	for (first = 0; first < DIBBER_WINDOW_PAGES; first++) {
		if (file->card->window.owner[first] == file)
			withdraw(file, first, ended);
	}
}
