/* A card's part of the remote windows (docs/design/window.md). */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aperture.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "mapped_bar.h"
#include "memory.h"
#include "region.h"
#include "transport.h"

#define WORD		 8u
#define CONTROL_PAGE	 (DIB_APERTURE_PAGES * DIBBER_APERTURE_PAGE)
#define SEQUENCE_STRIDE	 64u
#define SEQUENCE_AT_ONCE 4u
#define ALL_ONES	 0xffffffffu
#define QUICK_LOOKS	 64u /* at ROOM, until the card's clock is read too */

static int read_register(struct dib_card *card, uint32_t offset, uint32_t *value)
{
	return dib_read_register(card, DIBBER_APERTURE_REGISTERS + offset, value);
}

static int write_register(struct dib_card *card, uint32_t offset, uint32_t value)
{
	return dib_write_register(card, DIBBER_APERTURE_REGISTERS + offset, value);
}

/* Faults --------------------------------------------------------------------------------------- */

/* The first kind that has happened gives the error; the reason names all. */
static const struct {
	uint32_t offset;
	int error;
	const char *text;
} kinds[DIB_APERTURE_FAULTS] = {
	{ DIBBER_WINDOW_OVERFLOWS, DIB_ERR_LIMIT,
	  "OVERFLOWS: stores were lost, because the card's queue was full" },
	{ DIBBER_WINDOW_FORBIDDEN, DIB_ERR_COMMAND, "FORBIDDEN: an access without the right" },
	{ DIBBER_WINDOW_REFUSALS, DIB_ERR_COMMAND, "REFUSALS" },
	{ DIBBER_WINDOW_UNMAPPED, DIB_ERR_ARGUMENT, "UNMAPPED: an access outside all windows" },
	{ DIBBER_WINDOW_MISSHAPED, DIB_ERR_ARGUMENT,
	  "MISSHAPED: a load that is too long, crosses 64 bytes or is misaligned" },
	{ DIBBER_WINDOW_LATE, DIB_ERR_TIMEOUT, "LATE: a load was not answered in time" },
};

static int read_faults(struct dib_card *card, uint32_t counts[DIB_APERTURE_FAULTS])
{
	int rc = 0;

	for (unsigned int i = 0; i < DIB_APERTURE_FAULTS && !rc; i++)
		rc = read_register(card, kinds[i].offset, &counts[i]);
	return rc;
}

/* Statuses with which a command ends when the other node does not answer. */
static bool is_gone(uint32_t status)
{
	return status == DIBBER_STATUS_TIMEOUT || status == DIBBER_STATUS_PEER_RESTARTED;
}

int dib_aperture_explain(struct dib_card *card)
{
	struct dib_aperture *a = card->aperture;
	uint32_t counts[DIB_APERTURE_FAULTS], status;
	char reason[400] = "";
	size_t length = 0;
	int error = 0, rc;

	if ((rc = read_faults(card, counts)) ||
	    (rc = read_register(card, DIBBER_WINDOW_LAST, &status)))
		return rc;
	for (unsigned int i = 0; i < DIB_APERTURE_FAULTS; i++) {
		bool refused = kinds[i].offset == DIBBER_WINDOW_REFUSALS;

		if (counts[i] == a->faults[i])
			continue;
		if (!error)
			error = refused && is_gone(status) ? DIB_ERR_TIMEOUT : kinds[i].error;
		length += (size_t)snprintf(reason + length, sizeof(reason) - length, "%s%s%s%s%s%s",
					   length ? "; " : "", kinds[i].text, refused ? ", " : "",
					   refused ? dib_status_name(status) : "",
					   refused ? ": " : "",
					   refused ? dib_status_string(status) : "");
		if (length >= sizeof(reason))
			length = sizeof(reason) - 1;
	}
	memcpy(a->faults, counts, sizeof(a->faults));
	if (!error)
		return dib_fail(
			DIB_ERR_COMMAND,
			"the card tells of a fault that another endpoint's check has named");
	return dib_fail(error, "%s", reason);
}

/* A load of the control page has returned all ones. */
static int no_sequence(struct dib_card *card, unsigned int owner)
{
	const uint32_t program = DIBBER_ENDPOINT_BASE + owner * DIBBER_ENDPOINT_STRIDE +
				 DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_PROGRAM;
	uint32_t word;
	int rc = dib_read_register(card, program, &word);

	/* Of the endpoint, because it alone may have ended: by a reset of a card that the driver
	 * has. */
	if (!rc && word == DIB_GONE)
		return dib_fail(DIB_ERR_LOST,
				"the card no longer answers this endpoint: all reads return ones");
	if (!rc)
		rc = read_register(card, DIBBER_WINDOW_CONTROL, &word);
	if (rc)
		return rc;
	if (!(word & DIBBER_WINDOW_CONTROL_ENABLE_MASK))
		return dib_halted(card->aperture->endpoint);
	return dib_fail(DIB_ERR_TIMEOUT,
			"LATE: the stores were not acknowledged, or a load not answered, in time");
}

int dib_aperture_sequence(struct dib_card *card, unsigned int owner, bool waits, uint32_t *sequence)
{
	uint64_t at_once = CONTROL_PAGE + SEQUENCE_STRIDE * owner + SEQUENCE_AT_ONCE;
	int rc = dib_aperture_load(card, waits ? at_once - SEQUENCE_AT_ONCE : at_once, sequence,
				   sizeof(*sequence));

	/* A sequence that is all ones, once in 2³² faults, is taken for no answer. */
	if (rc >= 0)
		rc = *sequence == ALL_ONES ? no_sequence(card, owner) : 0;
	if (!rc && waits)
		card->aperture->room = card->aperture->queue;
	return rc;
}

/* Accesses ------------------------------------------------------------------------------------- */

/* Bytes of the next access at `offset`: a power of two, within an aligned word of 8. */
static size_t width(uint64_t offset, size_t length)
{
	size_t bytes = WORD;

	while (bytes > length || offset % bytes)
		bytes /= 2;
	return bytes;
}

static void load_memory(const uint8_t *from, void *data, size_t bytes)
{
	uint64_t word = 0;

	switch (bytes) {
	case 1:
		word = *(const volatile uint8_t *)from;
		break;
	case 2:
		word = *(const volatile uint16_t *)(const void *)from;
		break;
	case 4:
		word = *(const volatile uint32_t *)(const void *)from;
		break;
	case 8:
		word = *(const volatile uint64_t *)(const void *)from;
		break;
	}
	memcpy(data, &word, bytes); /* little-endian, as the card */
}

static void store_memory(uint8_t *to, const void *data, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, data, bytes);
	switch (bytes) {
	case 1:
		*(volatile uint8_t *)to = (uint8_t)word;
		break;
	case 2:
		*(volatile uint16_t *)(void *)to = (uint16_t)word;
		break;
	case 4:
		*(volatile uint32_t *)(void *)to = (uint32_t)word;
		break;
	case 8:
		*(volatile uint64_t *)(void *)to = word;
		break;
	}
}

/* Stores before it leave the processor before loads behind it: also those that wait in
 * write-combining buffers, which a load does not empty (Intel SDM 3A, 11.3.1). */
static void order_loads(void)
{
#if defined(__x86_64__)
	__asm__ volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb osh" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static bool is_ones(const uint8_t *data, size_t bytes)
{
	for (size_t n = 0; n < bytes; n++) {
		if (data[n] != 0xff)
			return false;
	}
	return true;
}

int dib_aperture_load(struct dib_card *card, uint64_t offset, void *data, size_t length)
{
	const struct dib_aperture *a = card->aperture;
	uint8_t *to = data;
	size_t bytes;
	int rc = 0;

	if (a->memory)
		order_loads();
	for (size_t at = 0; at < length && !rc; at += bytes) {
		bytes = length - at < DIB_BAR_READ ? length - at : DIB_BAR_READ;
		if (a->memory) {
			bytes = width(offset + at, length - at);
			load_memory(a->memory + offset + at, to + at, bytes);
		} else {
			rc = card->transport->ops->aperture_read(card->transport, offset + at,
								 to + at, bytes);
		}
	}
	for (size_t at = 0; at < length && !rc; at += bytes) {
		bytes = width(offset + at, length - at);
		rc = is_ones(to + at, bytes);
	}
	return rc;
}

/* Processes share the card's queue, and each has a part of it. A barrier tells that nothing of its
 * own is left there. A barrier gives up after 10 ms; a cable may be away for 40 ms. */
static int take_share(struct dib_card *card)
{
	struct dib_aperture *a = card->aperture;
	uint32_t begun, now, sequence;
	int rc = dib_read_register(card, DIBBER_HOST_CYCLES_LOW, &begun);

	while (!rc) {
		rc = dib_aperture_sequence(card, a->owner_of_share, true, &sequence);
		if (rc != DIB_ERR_TIMEOUT)
			return rc;
		rc = dib_read_register(card, DIBBER_HOST_CYCLES_LOW, &now);
		if (!rc && now - begun > card->fixed.clock_hz)
			rc = dib_fail(DIB_ERR_TIMEOUT, "the card's queue of stores stays full");
	}
	return rc;
}

/* The card has one credit for all posted writes, so it takes every store, and loses those that its
 * queue has no room for. A store takes a place for each aligned word that it touches, or fewer. A
 * queue that stays full for a second belongs to a card that is broken: the control program gives up
 * after 40 ms what cannot be sent. */
static int take_room(struct dib_card *card, uint32_t words)
{
	struct dib_aperture *a = card->aperture;
	/* A look empties the processor's buffers, also in the middle of a line. So looks are few.
	 */
	uint32_t least = a->room < words && !a->shares ? a->queue / 2 : words;
	uint32_t begun = 0, now = 0;
	int rc;

	if (a->shares && a->room < words) {
		rc = take_share(card);
		if (rc)
			return rc;
	}
	for (uint32_t looks = 0; a->room < least; looks++) {
		rc = read_register(card, DIBBER_WINDOW_ROOM, &a->room);
		if (!rc && looks >= QUICK_LOOKS)
			rc = dib_read_register(card, DIBBER_HOST_CYCLES_LOW, &now);
		if (rc) {
			a->room = 0;
			return rc;
		}
		if (a->room > a->queue)
			a->room = a->queue;
		if (looks <= QUICK_LOOKS)
			begun = now;
		else if (now - begun > card->fixed.clock_hz)
			return dib_fail(DIB_ERR_TIMEOUT, "the card's queue of stores stays full");
	}
	a->room -= words;
	return 0;
}

int dib_aperture_store(struct dib_card *card, uint64_t offset, const void *data, size_t length)
{
	const struct dib_aperture *a = card->aperture;
	const uint8_t *from = data;
	size_t most, bytes;
	int rc = 0;

	for (; length > 0 && !rc; offset += most, from += most, length -= most) {
		most = DIB_APERTURE_WRITE - offset % DIB_APERTURE_WRITE;
		if (most > length)
			most = length;
		rc = take_room(card, (uint32_t)((offset + most - 1) / WORD - offset / WORD + 1));
		if (rc)
			break;
		if (!a->memory) {
			rc = card->transport->ops->aperture_write(card->transport, offset, from,
								  most);
			continue;
		}
		dib_order_stores();
		for (size_t at = 0; at < most; at += bytes) {
			bytes = width(offset + at, most - at);
			store_memory(a->memory + offset + at, from + at, bytes);
		}
	}
	return rc;
}

/* A store to the control page is for the card. In the simulator it also stands for the instruction
 * that empties the processor's buffers. */
int dib_aperture_flush(struct dib_card *card)
{
	const uint32_t zero = 0;

#if defined(__x86_64__)
	if (card->aperture->memory)
		__asm__ volatile("sfence" ::: "memory");
#endif
	return dib_aperture_store(card, CONTROL_PAGE, &zero, sizeof(zero));
}

/* Pages ---------------------------------------------------------------------------------------- */

int dib_aperture_write_page(struct dib_card *card, unsigned int page,
			    const struct dib_page_entry *entry)
{
	int rc;

	if ((rc = write_register(card, DIBBER_WINDOW_PAGE_KEY, entry->key)) ||
	    (rc = write_register(card, DIBBER_WINDOW_PAGE_OFFSET_LOW, (uint32_t)entry->offset)) ||
	    (rc = write_register(card, DIBBER_WINDOW_PAGE_OFFSET_HIGH,
				 (uint32_t)(entry->offset >> 32))) ||
	    (rc = write_register(card, DIBBER_WINDOW_PAGE_ACCESS, entry->access)))
		return rc;
	return write_register(card, DIBBER_WINDOW_PAGE_WRITE, page);
}

/* Opening and closing -------------------------------------------------------------------------- */

static int find_aperture(struct dib_card *card, struct dib_aperture *a)
{
	const struct dib_transport_ops *ops = card->transport->ops;
	uint64_t bytes = 0;
	int rc = 0;

	if (dib_window_endpoint(card) == card->fixed.endpoints)
		return dib_fail(DIB_ERR_NOT_FOUND, "this card has no remote window");
	if (ops->aperture)
		rc = ops->aperture(card->transport, &bytes, &a->memory);
	if (!rc && bytes < DIBBER_APERTURE_BYTES)
		rc = dib_fail(DIB_ERR_NOT_FOUND,
			      "the card has a remote window, but nothing leads there on this way");
	return rc;
}

static int begin(struct dib_card *card, struct dib_aperture *a)
{
	const struct dib_page_entry none = { 0 };
	uint64_t scratch = a->region->map->mapping.iova + a->region->map->mapping.first;
	uint32_t geometry;
	int rc;

	if ((rc = read_register(card, DIBBER_WINDOW_GEOMETRY, &geometry)) ||
	    (rc = read_faults(card, a->faults)))
		return rc;
	a->queue =
		geometry >> DIBBER_WINDOW_GEOMETRY_QUEUE_SHIFT & DIBBER_WINDOW_GEOMETRY_QUEUE_MASK;
	if (a->queue / 2 < DIB_APERTURE_WRITE / WORD ||
	    (geometry & DIBBER_WINDOW_GEOMETRY_ENDPOINT_MASK) != dib_window_endpoint(card))
		return dib_fail(DIB_ERR_IDENTITY,
				"the card says that its window queues %u stores for endpoint %u",
				a->queue, geometry & DIBBER_WINDOW_GEOMETRY_ENDPOINT_MASK);
	/* A former program may have left entries: no reset reaches the table. */
	rc = dib_aperture_write_page(card, 0, &none);
	for (unsigned int page = 1; page < DIB_APERTURE_PAGES && !rc; page++)
		rc = write_register(card, DIBBER_WINDOW_PAGE_WRITE, page);
	if (rc || (rc = write_register(card, DIBBER_WINDOW_SCRATCH_LOW, (uint32_t)scratch)) ||
	    (rc = write_register(card, DIBBER_WINDOW_SCRATCH_HIGH, (uint32_t)(scratch >> 32))) ||
	    (rc = write_register(card, DIBBER_WINDOW_SCRATCH_KEY, dib_key(a->region))))
		return rc;
	return write_register(card, DIBBER_WINDOW_CONTROL, DIBBER_WINDOW_CONTROL_ENABLE_MASK);
}

int dib_aperture_is_on(struct dib_card *card, bool *on)
{
	uint32_t word = 0;
	int rc = read_register(card, DIBBER_WINDOW_CONTROL, &word);

	*on = word & DIBBER_WINDOW_CONTROL_ENABLE_MASK;
	return rc;
}

int dib_aperture_open(struct dib_card *card)
{
	struct dib_aperture *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for the remote window");
	card->aperture = a;
	rc = find_aperture(card, a);
	if (!rc && dib_aperture_is_given(card)) {
		a->shares = true;
		rc = read_faults(card, a->faults);
		if (rc)
			dib_aperture_close(card);
		return rc;
	}
	if (!rc)
		rc = dib_endpoint_open_for_window(card, &a->endpoint);
	if (!rc)
		rc = dib_alloc_own(DIB_PAGE, &a->scratch);
	if (!rc)
		rc = dib_register(a->endpoint, a->scratch, DIB_PAGE, DIBBER_RIGHT_LOCAL_WRITE,
				  &a->region);
	if (!rc)
		rc = begin(card, a);
	if (rc)
		dib_aperture_close(card);
	return rc;
}

/* The caller has given up, or has waited for, all that is under way. */
void dib_aperture_close(struct dib_card *card)
{
	struct dib_aperture *a = card->aperture;
	char *reason = strdup(dib_last_reason());

	if (a->region) {
		write_register(card, DIBBER_WINDOW_CONTROL, 0);
		dib_unregister(a->region);
	}
	if (a->endpoint)
		dib_endpoint_close(a->endpoint);
	if (a->scratch)
		dib_free(a->scratch);
	free(a);
	card->aperture = NULL;
	if (reason)
		dib_keep_reason("%s", reason);
	free(reason);
}
