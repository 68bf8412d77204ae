/* Opening and closing a card, with all that belongs to it: the top of the library. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "admin_queue.h"
#include "card.h"
#include "clock.h"
#include "endpoint.h"
#include "error.h"
#include "halt.h"
#include "handle.h"
#include "memory.h"
#include "region.h"
#include "transport.h"
#include "watch.h"

/* PCI Local Bus 3.0, 6.2.2: the command register. */
#define PCI_COMMAND	   0x04
#define PCI_COMMAND_MEMORY 0x02
#define PCI_COMMAND_MASTER 0x04

/* Whether this library rules the card: no observer's handle, and no driver that administers it. */
static bool rules(const struct dib_card *card)
{
	return !card->transport->observes && !dib_is_administered(card->transport);
}

static int set_bus_master(struct dib_card *card, bool on)
{
	const struct dib_transport_ops *ops = card->transport->ops;
	uint16_t command;
	int rc;

	rc = ops->config_read(card->transport, PCI_COMMAND, &command, sizeof(command));
	if (rc)
		return rc;
	command |= PCI_COMMAND_MEMORY;
	if (on)
		command |= PCI_COMMAND_MASTER;
	else
		command &= (uint16_t)~PCI_COMMAND_MASTER;
	return ops->config_write(card->transport, PCI_COMMAND, &command, sizeof(command));
}

/* Read the registers that describe the card. They never change. */
static int identify(struct dib_card *card)
{
	struct dib_card_info *info = &card->fixed;
	uint32_t magic, geometry, sram;
	int rc;

	rc = dib_read_register(card, DIBBER_HOST_MAGIC, &magic);
	if (rc)
		return rc;
	if (magic != DIBBER_MAGIC)
		return dib_fail(DIB_ERR_IDENTITY,
				"BAR 0 begins with 0x%08x, a Dibber card with 0x%08x", magic,
				DIBBER_MAGIC);
	if ((rc = dib_read_register(card, DIBBER_HOST_INTERFACE_VERSION,
				    &info->interface_version)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_INTERFACE_HASH, &info->interface_hash)))
		return rc;
	if (info->interface_version != DIBBER_INTERFACE_VERSION ||
	    info->interface_hash != DIBBER_INTERFACE_HASH)
		return dib_fail(
			DIB_ERR_VERSION,
			"the card has interface %u.%u (hash %08x), this library %u.%u (hash %08x)",
			info->interface_version >> 16, info->interface_version & 0xffff,
			info->interface_hash, DIBBER_INTERFACE_VERSION >> 16,
			DIBBER_INTERFACE_VERSION & 0xffff, DIBBER_INTERFACE_HASH);
	if ((rc = dib_read_register(card, DIBBER_HOST_FEATURES, &info->features)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_BUILD, &info->build)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_CLOCK_HZ, &info->clock_hz)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_GEOMETRY, &geometry)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_DATA_WIDTH, &info->data_width)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_SRAM, &sram)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_NODE_ID, &info->node)))
		return rc;
	info->endpoints = DIB_FIELD(geometry, GEOMETRY_ENDPOINTS);
	info->slots = DIB_FIELD(geometry, GEOMETRY_SLOTS);
	info->regions = DIB_FIELD(geometry, GEOMETRY_REGIONS);
	info->nodes = DIB_FIELD(geometry, GEOMETRY_NODES);
	if (info->endpoints < 2 || info->endpoints > DIBBER_ENDPOINTS || info->regions == 0 ||
	    info->regions > DIBBER_REGIONS || info->slots == 0 || info->slots > DIBBER_SLOTS ||
	    info->slots & (info->slots - 1))
		return dib_fail(DIB_ERR_IDENTITY,
				"the card says that it has %u endpoints of %u slots and %u regions",
				info->endpoints, info->slots, info->regions);
	info->sram_bytes = DIB_FIELD(sram, SRAM_SIZE) << 10;
	info->image_limit = DIB_FIELD(sram, SRAM_IMAGE) << 10;
	if (info->sram_bytes > DIBBER_SRAM_MAX || info->sram_bytes <= DIBBER_SHARED_FROM_END ||
	    info->image_limit == 0 || info->image_limit > info->sram_bytes - DIBBER_SHARED_FROM_END)
		return dib_fail(DIB_ERR_IDENTITY,
				"the card says that it has %u KiB of SRAM for images of %u KiB",
				info->sram_bytes >> 10, info->image_limit >> 10);
	return 0;
}

int dib_open(const char *uri, const struct dib_card_options *options, struct dib_card **out)
{
	struct dib_card *card;
	bool ready = false;
	int rc;

	if (!uri || !out)
		return dib_fail(DIB_ERR_ARGUMENT, "no %s given",
				uri ? "place for the card" : "URI");
	if (options && options->iova_base % DIB_PAGE)
		return dib_fail(DIB_ERR_ARGUMENT, "iova_base 0x%llx is not a multiple of %u",
				(unsigned long long)options->iova_base, DIB_PAGE);
	card = dib_handle_new(DIB_KIND_CARD, sizeof(*card));
	if (!card)
		return DIB_ERR_NO_MEMORY;
	card->iova_base = options ? options->iova_base : 0;
	pthread_mutex_init(&card->lock, NULL);
	pthread_mutex_init(&card->admin_lock, NULL);
	pthread_mutex_init(&card->window_lock, NULL);

	rc = dib_transport_open(uri, options && options->observe, &card->transport);
	if (rc)
		goto no_transport;
	rc = dib_clock_join(card, DIB_CARD);
	if (!rc && rules(card))
		rc = set_bus_master(card, true);
	if (!rc)
		rc = identify(card);
	if (!rc && rules(card))
		rc = dib_keys_begin(card);
	if (!rc)
		rc = dib_program(card, DIB_CARD, &card->halts, &ready);
	if (rc)
		goto no_card;
	card->behind = !ready;
	card->firmware = ready && dib_is_administered(card->transport);
	card->fixed.simulated_clock = dib_has_clock(card);
	card->fixed.copies = card->transport->copies;
	card->fixed.shared_bytes = card->transport->shared_bytes;
	card->handle.life = DIB_LIFE_OPEN;
	*out = card;
	return 0;

no_card:
	card->transport->ops->close(card->transport);
no_transport:
	pthread_mutex_destroy(&card->lock);
	pthread_mutex_destroy(&card->admin_lock);
	pthread_mutex_destroy(&card->window_lock);
	dib_handle_end(card);
	return rc;
}

int dib_close(struct dib_card *card)
{
	struct dib_endpoint *endpoints[DIBBER_ENDPOINTS];
	bool open;
	int rc;

	rc = dib_handle_check_close(card, DIB_KIND_CARD, &open);
	if (!open)
		return rc;
	if (card->drop_windows)
		card->drop_windows(card, NULL, DIB_KIND_CARD);
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	/* What fails here does not matter: the card may have gone away meanwhile. */
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++) {
		endpoints[i] = card->endpoints[i];
		if (!endpoints[i])
			continue;
		/* No thread lets time go on in its place any more. */
		dib_endpoint_leave_clock(card, card->endpoints[i]);
		dib_endpoint_withdraw(card, card->endpoints[i]);
	}
	for (unsigned int i = 0; i < DIBBER_REGIONS; i++) {
		if (card->regions[i])
			dib_region_withdraw(card, card->regions[i]);
	}
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++) {
		if (endpoints[i])
			dib_endpoint_detach(endpoints[i], DIB_KIND_CARD);
	}
	dib_watch_stop(card);
	if (rules(card))
		set_bus_master(card, false);
	dib_admin_close(card);
	card->transport->ops->close(card->transport);
	card->transport = NULL;
	card->closed = true;
	dib_card_leave(card);
	/* Its locks are not destroyed: another thread may have come to one, against the rules. */
	dib_handle_end(card);
	return 0;
}
