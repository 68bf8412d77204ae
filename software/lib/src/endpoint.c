/* Opening and closing endpoints. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "admin.h"
#include "card.h"
#include "clock.h"
#include "descriptors.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "handle.h"
#include "memory.h"
#include "region.h"
#include "queue.h"
#include "transport.h"
#include "watch.h"

#define CQ_ENTRIES 64u
#define EQ_ENTRIES 256u

_Static_assert(CQ_ENTRIES == DIB_ADMIN_ENTRIES && EQ_ENTRIES == DIB_ADMIN_EVENTS,
	       "endpoint 0 has what is usual");

static bool is_queue_length(uint32_t entries, uint32_t least)
{
	return entries >= least && entries <= DIBBER_QUEUE_MAX_ENTRIES &&
	       !(entries & (entries - 1));
}

static int check_options(const struct dib_card *card, unsigned int number, bool for_window,
			 const struct dib_endpoint_options *options)
{
	if (number >= card->fixed.endpoints)
		return dib_fail(DIB_ERR_ARGUMENT, "endpoint %u: this card has 0 to %u", number,
				card->fixed.endpoints - 1);
	if (number == 0 && (options->own_clock || options->cq_entries != DIB_ADMIN_ENTRIES ||
			    options->eq_entries > DIB_ADMIN_EVENTS))
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"endpoint 0 has %u completions, up to %u events, and the card's place in the clock",
			DIB_ADMIN_ENTRIES, DIB_ADMIN_EVENTS);
	if (number == dib_window_endpoint(card) && !for_window)
		return dib_fail(DIB_ERR_IN_USE, "endpoint %u belongs to the remote window", number);
	if (number == 0 && dib_is_administered(card->transport))
		return dib_fail(DIB_ERR_IN_USE, "endpoint 0 belongs to the driver");
	if (!is_queue_length(options->cq_entries, card->fixed.slots))
		return dib_fail(DIB_ERR_ARGUMENT,
				"a completion queue of %u entries: a power of two from %u to %u",
				options->cq_entries, card->fixed.slots, DIBBER_QUEUE_MAX_ENTRIES);
	if (!is_queue_length(options->eq_entries, 1))
		return dib_fail(DIB_ERR_ARGUMENT,
				"an event queue of %u entries: a power of two up to %u",
				options->eq_entries, DIBBER_QUEUE_MAX_ENTRIES);
	if (card->endpoints[number])
		return dib_fail(DIB_ERR_IN_USE, "endpoint %u is open already", number);
	if (card->transport->observes)
		return dib_fail(
			DIB_ERR_IN_USE,
			"opening an endpoint: this handle observes the card, which another program drives");
	/* A program that another process loaded is noticed when it is asked. */
	if (!card->firmware && !card->behind)
		return dib_fail(DIB_ERR_NO_FIRMWARE,
				"opening an endpoint: load a control program first");
	return 0;
}

/* Endpoint 0: its commands and completions exist already. The caller has locked the card. */
static int open_shared(struct dib_endpoint *endpoint, const struct dib_endpoint_options *options)
{
	struct dib_card *card = endpoint->card;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_OPEN,
		.eq_entries = options->eq_entries,
		.eq_base = card->admin_map->mapping.iova +
			   DIB_ADMIN_ENTRIES * DIBBER_QUEUE_ENTRY_BYTES,
	};
	int rc;

	endpoint->map = card->admin_map;
	endpoint->memory_length = (DIB_ADMIN_ENTRIES + DIB_ADMIN_EVENTS) * DIBBER_QUEUE_ENTRY_BYTES;
	endpoint->events = (struct dib_queue){
		.entries = (struct dibber_queue_entry *)card->admin_memory + DIB_ADMIN_ENTRIES,
		.iova = command.eq_base,
		.count = options->eq_entries,
	};
	memset(endpoint->events.entries, 0, DIB_ADMIN_EVENTS * DIBBER_QUEUE_ENTRY_BYTES);
	dib_admin_share(endpoint);
	rc = dib_write_register(card, dib_doorbell(0, DIBBER_DOORBELL_EQ_CONSUMER), 0);
	if (!rc)
		rc = dib_admin(card, endpoint->participant, &command, "opening an endpoint");
	if (rc)
		return rc;
	endpoint->halts = card->halts;
	card->endpoints[0] = endpoint;
	return 0;
}

/* The caller has locked the card. */
static int open_queues(struct dib_endpoint *endpoint, const struct dib_endpoint_options *options)
{
	struct dib_card *card = endpoint->card;
	size_t cq_bytes = (size_t)options->cq_entries * DIBBER_QUEUE_ENTRY_BYTES;
	size_t eq_bytes = (size_t)options->eq_entries * DIBBER_QUEUE_ENTRY_BYTES;
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_OPEN,
		.endpoint = (uint8_t)endpoint->number,
		.vector = (uint16_t)endpoint->number,
		.cq_entries = options->cq_entries,
		.eq_entries = options->eq_entries,
	};
	int rc;

	endpoint->memory_length = cq_bytes + eq_bytes;
	rc = dib_alloc_own(endpoint->memory_length, &endpoint->memory);
	if (rc)
		return rc;
	rc = dib_map_queues(card, endpoint->memory, endpoint->memory_length, &endpoint->map);
	if (rc)
		goto no_map;
	endpoint->completions = (struct dib_queue){
		.entries = endpoint->memory,
		.iova = endpoint->map->mapping.iova,
		.count = options->cq_entries,
	};
	endpoint->events = (struct dib_queue){
		.entries = (void *)((uint8_t *)endpoint->memory + cq_bytes),
		.iova = endpoint->map->mapping.iova + cq_bytes,
		.count = options->eq_entries,
	};
	command.cq_base = endpoint->completions.iova;
	command.eq_base = endpoint->events.iova;
	if ((rc = dib_write_register(
		     card, dib_doorbell(endpoint->number, DIBBER_DOORBELL_CQ_CONSUMER), 0)) ||
	    (rc = dib_write_register(
		     card, dib_doorbell(endpoint->number, DIBBER_DOORBELL_EQ_CONSUMER), 0)) ||
	    (rc = dib_read_register(
		     card, dib_doorbell(endpoint->number, DIBBER_DOORBELL_COMMAND_PRODUCER),
		     &endpoint->producer)) ||
	    (rc = dib_admin(card, endpoint->participant, &command, "opening an endpoint")))
		goto no_endpoint;
	/* Until now another process may have had it. */
	if (dib_is_administered(card->transport)) {
		rc = dib_read_register(
			card, dib_doorbell(endpoint->number, DIBBER_DOORBELL_COMMAND_PRODUCER),
			&endpoint->producer);
		if (rc)
			goto no_endpoint;
	}
	endpoint->halts = card->halts;
	card->endpoints[endpoint->number] = endpoint;
	return 0;

no_endpoint:
	dib_unmap(card, endpoint->map);
no_map:
	dib_free(endpoint->memory);
	return rc;
}

static int open_endpoint(struct dib_card *card, unsigned int number, bool for_window,
			 const struct dib_endpoint_options *options, struct dib_endpoint **out)
{
	struct dib_endpoint_options chosen = { 0 };
	struct dib_endpoint *endpoint;
	int rc;

	if (options)
		chosen = *options;
	if (chosen.cq_entries == 0)
		chosen.cq_entries = CQ_ENTRIES;
	if (chosen.eq_entries == 0)
		chosen.eq_entries = EQ_ENTRIES;
	endpoint = dib_handle_new(DIB_KIND_ENDPOINT, sizeof(*endpoint));
	if (!endpoint)
		return DIB_ERR_NO_MEMORY;
	endpoint->card = card;
	endpoint->number = number;
	endpoint->participant = chosen.own_clock ? number : DIB_CARD;
	endpoint->event_fd = endpoint->edges = -1;
	endpoint->patience = DIB_PATIENCE;

	/* The endpoint joins the clock while the card is locked. */
	rc = dib_card_enter(card, chosen.own_clock ? DIB_NOBODY : DIB_CARD);
	if (rc) {
		dib_handle_end(endpoint);
		return rc;
	}
	rc = check_options(card, number, for_window, &chosen);
	if (!rc && chosen.own_clock)
		rc = dib_clock_join(card, endpoint->participant);
	if (!rc) {
		rc = number ? open_queues(endpoint, &chosen) : open_shared(endpoint, &chosen);
		if (rc && chosen.own_clock)
			dib_clock_part(card, endpoint->participant);
	}
	if (rc) {
		dib_handle_end(endpoint);
	} else {
		endpoint->handle.life = DIB_LIFE_OPEN;
		dib_endpoint_update(endpoint);
		*out = endpoint;
	}
	dib_card_leave(card);
	return rc;
}

int dib_endpoint_open(struct dib_card *card, unsigned int number,
		      const struct dib_endpoint_options *options, struct dib_endpoint **out)
{
	int rc = dib_check_card(card);

	if (rc)
		return rc;
	if (!out)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the endpoint given");
	return open_endpoint(card, number, false, options, out);
}

int dib_endpoint_open_for_window(struct dib_card *card, struct dib_endpoint **out)
{
	return open_endpoint(card, dib_window_endpoint(card), true, NULL, out);
}

int dib_endpoint_refuse(const struct dib_endpoint *endpoint, const char *whose)
{
	int rc = dib_endpoint_check(endpoint);

	if (rc)
		return rc;
	return endpoint->mailbox
		       ? dib_fail(DIB_ERR_IN_USE, "the endpoint's %s belong to its mailbox", whose)
		       : dib_halted(endpoint);
}

void dib_endpoint_leave_clock(struct dib_card *card, struct dib_endpoint *endpoint)
{
	if (endpoint->participant == DIB_CARD)
		return;
	dib_clock_part(card, endpoint->participant);
	for (unsigned int i = 0; i < DIBBER_REGIONS; i++) {
		if (card->regions[i] && card->regions[i]->participant == endpoint->participant)
			card->regions[i]->participant = DIB_CARD;
	}
	endpoint->participant = DIB_CARD;
}

static void close_descriptors(struct dib_card *card, struct dib_endpoint *endpoint)
{
	dib_watch_remove(card, endpoint);
	if (endpoint->edges >= 0)
		dib_fd_close(endpoint->edges);
	/* Another thread may sleep at this descriptor. */
	if (endpoint->event_fd >= 0)
		dib_fd_retire(endpoint->event_fd);
	endpoint->event_fd = endpoint->edges = -1;
}

/* Open the program's descriptor, and an epoll descriptor that tells the library of each interrupt,
 * even one that the program has read already. It reports edges, and one edge also for the state at
 * the start. */
static int open_descriptors(struct dib_endpoint *endpoint)
{
	struct epoll_event event = { .events = EPOLLET | EPOLLIN | EPOLLOUT };

	endpoint->event_fd = dib_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (endpoint->event_fd < 0)
		return dib_fail(DIB_ERR_SYSTEM, "eventfd: %s", strerror(errno));
	endpoint->edges = dib_fd(epoll_create1(EPOLL_CLOEXEC));
	if (endpoint->edges < 0)
		return dib_fail(DIB_ERR_SYSTEM, "epoll_create1: %s", strerror(errno));
	if (epoll_ctl(endpoint->edges, EPOLL_CTL_ADD, endpoint->event_fd, &event) < 0)
		return dib_fail(DIB_ERR_SYSTEM, "epoll_ctl: %s", strerror(errno));
	return 0;
}

int dib_endpoint_withdraw(struct dib_card *card, struct dib_endpoint *endpoint)
{
	struct dibber_admin_command command = {
		.opcode = DIBBER_OPCODE_ENDPOINT_CLOSE,
		.endpoint = (uint8_t)endpoint->number,
	};
	int rc = dib_admin_of(card, endpoint->participant, endpoint->halts, &command,
			      "closing an endpoint");

	if (rc == DIB_ERR_HALTED)
		rc = 0;
	dib_endpoint_leave_clock(card, endpoint);
	if (endpoint->number) {
		dib_unmap(card, endpoint->map);
		dib_free(endpoint->memory);
	}
	close_descriptors(card, endpoint);
	card->endpoints[endpoint->number] = NULL;
	dib_handle_orphan(endpoint, DIB_KIND_CARD);
	endpoint->ready = false;
	return rc;
}

int dib_endpoint_close(struct dib_endpoint *endpoint)
{
	struct dib_card *card;
	bool open;
	int rc;

	rc = dib_handle_check_close(endpoint, DIB_KIND_ENDPOINT, &open);
	if (!open)
		return rc;
	card = endpoint->card;
	if (card->drop_windows)
		card->drop_windows(card, endpoint, DIB_KIND_ENDPOINT);
	dib_endpoint_detach(endpoint, DIB_KIND_ENDPOINT);
	rc = dib_card_enter(card, endpoint->participant);
	if (rc)
		return rc;
	dib_endpoint_withdraw(card, endpoint);
	dib_handle_end(endpoint);
	dib_card_leave(card);
	return 0;
}

int dib_event_fd(struct dib_endpoint *endpoint)
{
	struct dib_transport *transport;
	int rc;

	rc = dib_endpoint_check(endpoint);
	if (!rc)
		rc = dib_card_enter(endpoint->card, endpoint->participant);
	if (rc)
		return rc;
	if (endpoint->event_fd < 0) {
		transport = endpoint->card->transport;
		rc = open_descriptors(endpoint);
		if (!rc)
			rc = transport->ops->set_vector(transport, endpoint->number,
							endpoint->event_fd);
		if (!rc)
			rc = dib_watch_add(endpoint->card, endpoint);
		if (rc)
			close_descriptors(endpoint->card, endpoint);
	}
	dib_card_leave(endpoint->card);
	return rc ? rc : endpoint->event_fd;
}
