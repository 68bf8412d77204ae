/* Remote windows: the calls of dibber/window.h. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include <dibber/window.h>

#include "aperture.h"
#include "card.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "handle.h"

#define OFFSETS	  (1ull << 48) /* of a region */
#define ALL_RIGHT (DIB_WINDOW_LOAD | DIB_WINDOW_STORE | DIB_WINDOW_ADD)

struct dib_window {
	struct dib_handle handle;
	struct dib_card *card;
	const struct dib_endpoint *endpoint;
	unsigned int owner; /* number of the endpoint */
	unsigned int first, pages;
	uint64_t length;
	uint32_t access;
};

static uint64_t start(const struct dib_window *window)
{
	return (uint64_t)window->first * DIBBER_APERTURE_PAGE;
}

/* Take the lock for a call on an open window. */
static int enter(const struct dib_window *window)
{
	int rc = dib_handle_check(window, DIB_KIND_WINDOW);

	if (rc)
		return rc;
	pthread_mutex_lock(&window->card->window_lock);
	/* Another thread may have closed its owner meanwhile. */
	rc = dib_handle_check(window, DIB_KIND_WINDOW);
	if (rc)
		pthread_mutex_unlock(&window->card->window_lock);
	return rc;
}

static void leave(const struct dib_window *window)
{
	pthread_mutex_unlock(&window->card->window_lock);
}

/* Checks --------------------------------------------------------------------------------------- */

/* With the lock. */
static int check(const struct dib_window *window, bool waits)
{
	struct dib_card *card = window->card;
	uint32_t sequence;
	int rc = dib_aperture_sequence(card, window->owner, waits, &sequence);

	if (rc || sequence == card->aperture->known[window->owner])
		return rc;
	card->aperture->known[window->owner] = sequence;
	return dib_aperture_explain(card);
}

static int check_range(const struct dib_window *window, uint64_t offset, const void *data,
		       size_t length, uint32_t access)
{
	if (!data)
		return dib_fail(DIB_ERR_ARGUMENT, "no data given");
	if (length == 0)
		return dib_fail(DIB_ERR_ARGUMENT, "0 bytes: an access has at least one byte");
	if (offset > window->length || length > window->length - offset)
		return dib_fail(DIB_ERR_ARGUMENT,
				"%zu bytes at %llu are unmapped: the window has %llu bytes", length,
				(unsigned long long)offset, (unsigned long long)window->length);
	if (!(window->access & access))
		return dib_fail(DIB_ERR_ARGUMENT, "the window was mapped without the right to %s",
				access & DIB_WINDOW_STORE ? "store" : "load");
	return 0;
}

static int check_aligned(uint64_t offset, size_t length, size_t least)
{
	if (length < least || length > 8 || length & (length - 1) || offset % length)
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"%zu bytes at %llu are misaligned: an aligned word of %s8 bytes is needed",
			length, (unsigned long long)offset, least > 1 ? "4 or " : "1, 2, 4 or ");
	return 0;
}

/* Mapping -------------------------------------------------------------------------------------- */

static int check_options(const struct dib_endpoint *endpoint,
			 const struct dib_window_options *options)
{
	const struct dib_card *card = endpoint->card;

	if (endpoint->participant != DIB_CARD)
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"endpoint %u has own_clock: windows belong to the thread that opened the card",
			endpoint->number);
	if (options->length == 0 || options->length > DIBBER_APERTURE_BYTES)
		return dib_fail(DIB_ERR_ARGUMENT, "a window of %llu bytes: 1 to %u pages of %u",
				(unsigned long long)options->length, DIB_APERTURE_PAGES,
				DIBBER_APERTURE_PAGE);
	if (options->offset > OFFSETS - DIBBER_APERTURE_BYTES - DIBBER_APERTURE_PAGE)
		return dib_fail(DIB_ERR_ARGUMENT, "offset %llu is behind the end of every region",
				(unsigned long long)options->offset);
	if (options->node >= card->fixed.nodes)
		return dib_fail(DIB_ERR_ARGUMENT, "node %u: this card knows 0 to %u", options->node,
				card->fixed.nodes - 1);
	if (options->access == 0 || options->access & ~(uint32_t)ALL_RIGHT)
		return dib_fail(DIB_ERR_ARGUMENT,
				"access 0x%x: 1 to 0x%x, see enum dib_window_access",
				options->access, ALL_RIGHT);
	if (options->addend && !(options->access & DIB_WINDOW_ADD))
		return dib_fail(DIB_ERR_ARGUMENT, "an addend of %d without DIB_WINDOW_ADD",
				options->addend);
	return 0;
}

static int find_pages(const struct dib_aperture *a, unsigned int pages, unsigned int *first)
{
	unsigned int run = 0;

	for (unsigned int page = 0; page < DIB_APERTURE_PAGES; page++) {
		run = a->owner[page] ? 0 : run + 1;
		if (run == pages) {
			*first = page + 1 - pages;
			return 0;
		}
	}
	return dib_fail(DIB_ERR_LIMIT, "no %u pages in a row are left of the card's %u", pages,
			DIB_APERTURE_PAGES);
}

static int write_pages(const struct dib_window *window, const struct dib_window_options *options)
{
	struct dib_page_entry entry = { 0 };
	int rc = 0;

	for (unsigned int n = 0; n < window->pages && !rc; n++) {
		if (options) {
			bool adds = options->access & DIB_WINDOW_ADD;
			bool loads = adds || options->access & DIB_WINDOW_LOAD;
			bool stores = options->access & DIB_WINDOW_STORE;

			entry.key = options->key;
			entry.offset = options->offset + (uint64_t)n * DIBBER_APERTURE_PAGE;
			entry.access = (uint32_t)options->node |
				       window->owner << DIBBER_WINDOW_PAGE_ACCESS_OWNER_SHIFT |
				       (uint32_t)loads << DIBBER_WINDOW_PAGE_ACCESS_LOAD_SHIFT |
				       (uint32_t)stores << DIBBER_WINDOW_PAGE_ACCESS_STORE_SHIFT |
				       (uint32_t)adds << DIBBER_WINDOW_PAGE_ACCESS_ATOMIC_SHIFT |
				       1u << DIBBER_WINDOW_PAGE_ACCESS_VALID_SHIFT |
				       (uint32_t)(uint16_t)options->addend
					       << DIBBER_WINDOW_PAGE_ACCESS_ADDEND_SHIFT;
		}
		rc = dib_aperture_write_page(window->card, window->first + n, &entry);
	}
	return rc;
}

/* What an owner's sequence is when its windows begin. */
static int know_sequence(const struct dib_window *window)
{
	struct dib_aperture *a = window->card->aperture;

	if (a->windows[window->owner])
		return 0;
	return dib_aperture_sequence(window->card, window->owner, false, &a->known[window->owner]);
}

/* Have another enter the pages. */
static int ask_for_pages(struct dib_window *window, const struct dib_window_options *options)
{
	struct dib_aperture *a = window->card->aperture;
	struct dib_transport *transport = window->card->transport;
	struct dib_window_request request = {
		.offset = options->offset,
		.length = options->length,
		.key = options->key,
		.node = options->node,
		.addend = options->addend,
		.access = options->access,
	};
	int rc = transport->ops->window_map(transport, window->owner, &request);

	if (rc)
		return rc;
	window->first = request.first;
	a->queue = request.queue;
	a->owner_of_share = window->owner;
	rc = know_sequence(window);
	if (rc)
		transport->ops->window_unmap(transport, window->owner, window->first,
					     window->pages);
	return rc;
}

/* Enter the pages in the card's table. */
static int take_pages(struct dib_window *window, const struct dib_window_options *options)
{
	int rc = find_pages(window->card->aperture, window->pages, &window->first);

	/* This finds a control program that was halted, too. */
	if (!rc)
		rc = know_sequence(window);
	if (!rc)
		rc = write_pages(window, options);
	return rc;
}

static bool is_unused(const struct dib_aperture *a)
{
	for (unsigned int n = 0; n < DIBBER_ENDPOINTS; n++) {
		if (a->windows[n])
			return false;
	}
	return true;
}

/* With the lock. What fails does not matter: the card may have gone away. A fault is left for the
 * next check of another window of the endpoint. */
static void withdraw(struct dib_window *window)
{
	struct dib_transport *transport = window->card->transport;
	struct dib_aperture *a = window->card->aperture;
	uint32_t sequence;

	dib_aperture_sequence(window->card, window->owner, true, &sequence);
	if (dib_aperture_is_given(window->card))
		transport->ops->window_unmap(transport, window->owner, window->first,
					     window->pages);
	else
		write_pages(window, NULL);
	for (unsigned int n = 0; n < window->pages; n++)
		a->owner[window->first + n] = NULL;
	a->windows[window->owner]--;
}

static void drop_windows(struct dib_card *card, const struct dib_endpoint *endpoint,
			 enum dib_kind closed)
{
	/* Closing the card's last endpoint, which belongs to the windows, comes here with the lock.
	 */
	if (endpoint && endpoint->number == dib_window_endpoint(card))
		return;
	pthread_mutex_lock(&card->window_lock);
	for (unsigned int page = 0; page < DIB_APERTURE_PAGES && card->aperture; page++) {
		struct dib_window *window = card->aperture->owner[page];

		if (!window || (endpoint && window->endpoint != endpoint))
			continue;
		withdraw(window);
		dib_handle_orphan(window, closed);
	}
	if (!endpoint && card->aperture)
		dib_aperture_close(card);
	pthread_mutex_unlock(&card->window_lock);
}

/* Open the aperture, if it is not open. The endpoint stays open after the last window. After a halt
 * it is opened again. */
static int ready(struct dib_card *card)
{
	bool on = true;
	int rc = 0;

	if (card->aperture && is_unused(card->aperture)) {
		rc = dib_aperture_is_on(card, &on);
		if (rc)
			return rc;
		if (!on)
			dib_aperture_close(card);
	}
	if (!card->aperture)
		rc = dib_aperture_open(card);
	if (!rc)
		card->drop_windows = drop_windows;
	return rc;
}

/* With the lock; the aperture is open. */
static int map(struct dib_window *window, const struct dib_window_options *options)
{
	struct dib_aperture *a = window->card->aperture;
	int rc;

	window->pages =
		(unsigned int)((options->length + DIBBER_APERTURE_PAGE - 1) / DIBBER_APERTURE_PAGE);
	rc = dib_aperture_is_given(window->card) ? ask_for_pages(window, options)
						 : take_pages(window, options);
	if (rc)
		return rc;
	for (unsigned int n = 0; n < window->pages; n++)
		a->owner[window->first + n] = window;
	a->windows[window->owner]++;
	return 0;
}

int dib_window_map(struct dib_endpoint *endpoint, const struct dib_window_options *options,
		   struct dib_window **out)
{
	struct dib_window *window;
	struct dib_card *card;
	int rc = dib_endpoint_check(endpoint);

	if (!rc && (!options || !out))
		rc = dib_fail(DIB_ERR_ARGUMENT, "no %s given",
			      options ? "place for the window" : "options");
	if (!rc && endpoint->halted)
		rc = dib_halted(endpoint);
	if (!rc)
		rc = check_options(endpoint, options);
	if (rc)
		return rc;
	card = endpoint->card;
	window = dib_handle_new(DIB_KIND_WINDOW, sizeof(*window));
	if (!window)
		return DIB_ERR_NO_MEMORY;
	window->card = card;
	window->endpoint = endpoint;
	window->owner = endpoint->number;
	window->length = options->length;
	window->access = options->access | (options->access & DIB_WINDOW_ADD ? DIB_WINDOW_LOAD : 0);
	pthread_mutex_lock(&card->window_lock);
	rc = ready(card);
	if (!rc)
		rc = map(window, options);
	if (rc) {
		dib_handle_end(window);
	} else {
		window->handle.life = DIB_LIFE_OPEN;
		*out = window;
	}
	pthread_mutex_unlock(&card->window_lock);
	return rc;
}

int dib_window_unmap(struct dib_window *window)
{
	struct dib_card *card;
	bool open;
	int rc = dib_handle_check_close(window, DIB_KIND_WINDOW, &open);

	if (!open)
		return rc;
	card = window->card;
	pthread_mutex_lock(&card->window_lock);
	withdraw(window);
	dib_handle_end(window);
	pthread_mutex_unlock(&card->window_lock);
	return 0;
}

void *dib_window_pointer(const struct dib_window *window)
{
	uint8_t *memory;

	if (enter(window))
		return NULL;
	memory = window->card->aperture->memory;
	leave(window);
	return memory ? memory + start(window) : NULL;
}

/* Accesses ------------------------------------------------------------------------------------- */

int dib_window_store(struct dib_window *window, uint64_t offset, const void *data, size_t length)
{
	int rc = enter(window);

	if (rc)
		return rc;
	rc = check_range(window, offset, data, length, DIB_WINDOW_STORE);
	if (!rc)
		rc = check_aligned(offset, length, 1);
	if (!rc)
		rc = dib_aperture_store(window->card, start(window) + offset, data, length);
	leave(window);
	return rc;
}

int dib_window_copy(struct dib_window *window, uint64_t offset, const void *data, size_t length)
{
	int rc = enter(window);

	if (rc)
		return rc;
	rc = check_range(window, offset, data, length, DIB_WINDOW_STORE);
	if (!rc)
		rc = dib_aperture_store(window->card, start(window) + offset, data, length);
	if (!rc)
		rc = dib_aperture_flush(window->card);
	leave(window);
	return rc;
}

int dib_window_flush(struct dib_window *window)
{
	int rc = enter(window);

	if (rc)
		return rc;
	rc = dib_aperture_flush(window->card);
	leave(window);
	return rc;
}

int dib_window_load(struct dib_window *window, uint64_t offset, void *data, size_t length)
{
	int rc = enter(window);

	if (rc)
		return rc;
	rc = check_range(window, offset, data, length, DIB_WINDOW_LOAD);
	if (!rc && window->access & DIB_WINDOW_ADD)
		rc = check_aligned(offset, length, 4);
	if (!rc)
		rc = dib_aperture_load(window->card, start(window) + offset, data, length);
	/* The bytes may be ones, or the load may have failed. */
	if (rc > 0)
		rc = check(window, false);
	leave(window);
	return rc;
}

int dib_window_barrier(struct dib_window *window)
{
	int rc = enter(window);

	if (rc)
		return rc;
	rc = check(window, true);
	leave(window);
	return rc;
}

int dib_window_check(struct dib_window *window)
{
	int rc = enter(window);

	if (rc)
		return rc;
	rc = check(window, false);
	leave(window);
	return rc;
}
