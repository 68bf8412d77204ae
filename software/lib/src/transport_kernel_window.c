/* Remote windows of a card that the Linux driver dibber.ko has: the driver writes the page table,
 * and pages of BAR 2 are mapped by the endpoint that has them.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include "transport_kernel_window.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include "../../driver/dibber_ioctl.h"
#include "driver_error.h"
#include "error.h"
#include "kernel_device.h"
#include "memory.h"

/* Where nothing is given, an access ends the program: what a stale pointer stores must not be
 * lost without a word. */
static int reserve(uint8_t *at, size_t length, uint8_t **out)
{
	void *memory =
		mmap(at, length, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);

	if (memory == MAP_FAILED)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for the remote window");
	madvise(memory, length, MADV_DONTFORK);
	if (out)
		*out = memory;
	return 0;
}

/* Take pages of a window away. The kernel may have no room for one more mapping, but it always has
 * for other rights of a whole one. */
static void hide_pages(struct kernel_device *k, uint64_t first, uint64_t pages)
{
	uint8_t *at = k->aperture + first * DIBBER_APERTURE_PAGE;
	size_t length = (size_t)(pages * DIBBER_APERTURE_PAGE);

	if (reserve(at, length, NULL))
		mprotect(at, length, PROT_NONE);
}

int dib_kernel_aperture(struct dib_transport *transport, uint64_t *bytes, uint8_t **memory)
{
	struct kernel_device *k = dib_kernel(transport);
	int rc = 0;

	pthread_mutex_lock(&k->lock);
	if (!k->aperture)
		rc = reserve(NULL, DIBBER_APERTURE_BYTES, &k->aperture);
	*bytes = DIBBER_APERTURE_BYTES;
	*memory = k->aperture;
	pthread_mutex_unlock(&k->lock);
	return rc;
}

static int show_pages(struct kernel_device *k, unsigned int owner,
		      const struct dibber_window_map *map, uint64_t offset, uint64_t length)
{
	if (mmap(k->aperture + offset, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 k->endpoints[owner], (off_t)(map->place + offset)) == MAP_FAILED)
		return dib_driver_error("mmap of a remote window");
	return 0;
}

static int enter_window(struct kernel_device *k, unsigned int owner,
			struct dib_window_request *request)
{
	struct dibber_window_map map = {
		.offset = request->offset,
		.length = request->length,
		.key = request->key,
		.node = request->node,
		.addend = request->addend,
		.access = request->access,
	};
	struct dibber_window_unmap unmap = { 0 };
	uint64_t pages = (request->length + DIBBER_APERTURE_PAGE - 1) / DIBBER_APERTURE_PAGE;
	int rc;

	if (ioctl(k->endpoints[owner], DIBBER_IOC_WINDOW_MAP, &map) < 0)
		return dib_driver_error("a remote window");
	rc = show_pages(k, owner, &map, (uint64_t)map.first * DIBBER_APERTURE_PAGE,
			pages * DIBBER_APERTURE_PAGE);
	/* Any endpoint with a window shows the sequences of all. */
	if (!rc)
		rc = show_pages(k, owner, &map, map.control, DIB_PAGE);
	if (rc) {
		unmap.first = map.first;
		ioctl(k->endpoints[owner], DIBBER_IOC_WINDOW_UNMAP, &unmap);
		hide_pages(k, map.first, pages);
		return rc;
	}
	k->windows[owner]++;
	k->place[owner] = map.place;
	k->control = map.control;
	request->first = map.first;
	request->queue = map.share;
	return 0;
}

/* The page of sequences goes with its endpoint's last window. */
static void show_sequences(struct kernel_device *k)
{
	for (unsigned int i = 1; i < DIBBER_ENDPOINTS; i++) {
		struct dibber_window_map map = { .place = k->place[i] };

		if (k->endpoints[i] >= 0 && k->windows[i] &&
		    !show_pages(k, i, &map, k->control, DIB_PAGE))
			return;
	}
}

int dib_kernel_window_map(struct dib_transport *transport, unsigned int owner,
			  struct dib_window_request *request)
{
	struct kernel_device *k = dib_kernel(transport);
	int rc;

	pthread_mutex_lock(&k->lock);
	rc = enter_window(k, owner, request);
	pthread_mutex_unlock(&k->lock);
	return rc;
}

/* What fails does not matter: the endpoint may have ended. */
void dib_kernel_window_unmap(struct dib_transport *transport, unsigned int owner,
			     unsigned int first, unsigned int pages)
{
	struct dibber_window_unmap unmap = { .first = first };
	struct kernel_device *k = dib_kernel(transport);

	pthread_mutex_lock(&k->lock);
	hide_pages(k, first, pages);
	k->windows[owner]--;
	/* Before the driver takes it away: another thread may be at its barrier. */
	if (!k->windows[owner])
		show_sequences(k);
	ioctl(k->endpoints[owner], DIBBER_IOC_WINDOW_UNMAP, &unmap);
	pthread_mutex_unlock(&k->lock);
}
