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

/*
 * The card answers a barrier with ones after 10 ms. The control program gives up stores 40 ms after
 * the last progress, so more barriers than this find a card that does not work.
 */
#define BARRIERS 12

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
	/* Its counts began with the control program. With others no load would be answered. */
	if (window->own.producer)
		return -ESTALE;
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
	if (window->scratch_key)
		dibber_own_region_remove(&window->own, window->scratch_key);
	window->scratch_key = 0;
	dibber_own_close(&window->own);
	if (window->scratch)
		dma_free_coherent(&card->pdev->dev, SCRATCH_BYTES, window->scratch,
				  window->scratch_address);
	window->scratch = NULL;
	/* No store waits any more, so pages that were kept can be given again. */
	bitmap_zero(window->used, DIBBER_WINDOW_PAGES);
	window->owners = 0;
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
 * What was stored before arrives under the old entries, or every owner would hear of it. The
 * mappings of the file do not show the pages any more. Returns whether no store waits any more.
 */
static bool wait_for_stores(struct dibber_file *file)
{
	struct dibber_window *window = &file->card->window;
	unsigned int n;

	if (!window->on)
		return true;
	for (n = 0; n < BARRIERS; n++) {
		/* Ones: the barrier was too late, or the card does not answer. */
		if (readl(window->uncached + CONTROL - COMBINED + file->number * SEQUENCE_STRIDE) !=
		    ~0u)
			return true;
		cond_resched();
	}
	dibber_complain(file->card, "stores of endpoint %u do not end: its pages are kept\n",
			file->number);
	return false;
}

/*
 * Withdraw the window that begins at page `first`. If it is not `empty`, stores for it may wait.
 * Then its pages keep their entries, and nobody gets them before the window is closed. The file's
 * share of the card's queue is kept with them.
 */
static void withdraw(struct dibber_file *file, unsigned int first, bool empty)
{
	struct dibber_window *window = &file->card->window;
	unsigned int count = window->count[first], n;
	bool last;

	for (n = 0; empty && n < count; n++)
		write_page(file->card, first + n, 0, 0, 0);
	mutex_lock(&file->map_lock);
	bitmap_clear(file->window, first, count);
	file->windows--;
	last = !file->windows;
	file->keeps_share |= !empty;
	mutex_unlock(&file->map_lock);
	if (empty)
		bitmap_clear(window->used, first, count);
	window->count[first] = 0;
	window->owner[first] = NULL;
	if (!last)
		return;
	dibber_mapping_end_control(file);
	if (!file->keeps_share)
		window->owners--;
	file->keeps_share = false;
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
	bool empty;

	if (!file->windows)
		return;
	empty = wait_for_stores(file);
	for (first = 0; first < DIBBER_WINDOW_PAGES; first++) {
		if (file->card->window.owner[first] == file)
			withdraw(file, first, empty);
	}
}
