/* Opening, describing and closing a card. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "card.h"

/* PCI Local Bus 3.0, 6.2.2: the command register. */
#define PCI_COMMAND	   0x04
#define PCI_COMMAND_MEMORY 0x02
#define PCI_COMMAND_MASTER 0x04

#define LOCK_PS 1000000u /* simulated time between two attempts to lock */

/* Who has the lock may be waiting for the card, and simulated time stands while a participant of
 * the clock runs: so one that waits for the lock lets time go on. */
static void lock_card(struct dib_card *card, unsigned int participant)
{
	while (pthread_mutex_trylock(&card->lock)) {
		if (card->closed || !card->fixed.simulated_clock || participant == DIB_NOBODY ||
		    dib_clock_watch(card, participant, 0, 0, LOCK_PS) < 0) {
			pthread_mutex_lock(&card->lock);
			return;
		}
	}
}

int dib_card_enter(struct dib_card *card, unsigned int participant)
{
	lock_card(card, participant);
	if (!card->closed)
		return 0;
	pthread_mutex_unlock(&card->lock);
	return dib_fail(DIB_ERR_CLOSED, "the card was closed");
}

void dib_card_leave(struct dib_card *card)
{
	pthread_mutex_unlock(&card->lock);
}

int dib_read_register(struct dib_card *card, uint32_t offset, uint32_t *value)
{
	return card->transport->ops->bar_read(card->transport, offset, value, sizeof(*value));
}

int dib_write_register(struct dib_card *card, uint32_t offset, uint32_t value)
{
	return card->transport->ops->bar_write(card->transport, offset, &value, sizeof(value));
}

static uint32_t field(uint32_t value, unsigned int shift, uint32_t mask)
{
	return value >> shift & mask;
}

#define FIELD(value, name) field(value, DIBBER_HOST_##name##_SHIFT, DIBBER_HOST_##name##_MASK)

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

/* The registers that say what the card is; read once, at open. */
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
	info->endpoints = FIELD(geometry, GEOMETRY_ENDPOINTS);
	info->slots = FIELD(geometry, GEOMETRY_SLOTS);
	info->regions = FIELD(geometry, GEOMETRY_REGIONS);
	info->nodes = FIELD(geometry, GEOMETRY_NODES);
	if (info->endpoints < 2 || info->endpoints > DIBBER_ENDPOINTS || info->regions == 0 ||
	    info->regions > DIBBER_REGIONS || info->slots == 0 || info->slots > DIBBER_SLOTS ||
	    info->slots & (info->slots - 1))
		return dib_fail(DIB_ERR_IDENTITY,
				"the card says that it has %u endpoints of %u slots and %u regions",
				info->endpoints, info->slots, info->regions);
	info->sram_bytes = FIELD(sram, SRAM_SIZE) << 10;
	info->image_limit = FIELD(sram, SRAM_IMAGE) << 10;
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
	bool ready = false, rules;
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

	rc = dib_transport_open(uri, options && options->observe, &card->transport);
	if (rc)
		goto no_transport;
	rules = !card->transport->observes && !dib_is_administered(card->transport);
	rc = dib_clock_join(card, DIB_CARD);
	if (!rc && rules)
		rc = set_bus_master(card, true);
	if (!rc)
		rc = identify(card);
	if (!rc && rules)
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
	dib_handle_end(card);
	return rc;
}

int dib_close(struct dib_card *card)
{
	struct dib_mailbox *mailboxes[DIBBER_ENDPOINTS] = { NULL };
	bool open;
	int rc;

	rc = dib_handle_check_close(card, DIB_KIND_CARD, &open);
	if (!open)
		return rc;
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	/* A card that went away meanwhile has nothing to be told: what fails here is already over.
	 */
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++) {
		if (!card->endpoints[i])
			continue;
		mailboxes[i] = card->endpoints[i]->mailbox;
		/* Nobody is there any more to let time go on for it. */
		dib_endpoint_leave_clock(card, card->endpoints[i]);
		dib_endpoint_withdraw(card, card->endpoints[i]);
	}
	for (unsigned int i = 0; i < DIBBER_REGIONS; i++) {
		if (card->regions[i])
			dib_region_withdraw(card, card->regions[i]);
	}
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++) {
		if (mailboxes[i])
			dib_mailbox_detach(mailboxes[i], DIB_KIND_CARD);
	}
	dib_watch_stop(card);
	if (!card->transport->observes && !dib_is_administered(card->transport))
		set_bus_master(card, false);
	dib_admin_close(card);
	card->transport->ops->close(card->transport);
	card->transport = NULL;
	card->closed = true;
	dib_card_leave(card);
	/* Its locks stay as they are: another thread may have come to one against the rules. */
	dib_handle_end(card);
	return 0;
}

int dib_card_info(struct dib_card *card, struct dib_card_info *info)
{
	static const char *const names[] = { DIBBER_COUNTER_NAMES };
	uint32_t pcie, link, low, high;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!info)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the answer given");
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	*info = card->fixed;
	if ((rc = dib_read_register(card, DIBBER_HOST_NODE_ID, &info->node)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_MCP_STATE, &info->mcp_state)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_MCP_IDENTITY, &info->mcp_identity)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_PCIE_STATUS, &pcie)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_LINK_STATUS, &link)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_CYCLES_LOW, &low)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_CYCLES_HIGH, &high)))
		goto out;
	info->max_payload = FIELD(pcie, PCIE_STATUS_MAX_PAYLOAD);
	info->max_request = FIELD(pcie, PCIE_STATUS_MAX_REQUEST);
	info->link_state = FIELD(link, LINK_STATUS_STATE);
	info->link_stopped = FIELD(link, LINK_STATUS_STOPPED);
	info->cycles = (uint64_t)high << 32 | low;
	for (unsigned int i = 0; i < DIBBER_COUNTERS && !rc; i++) {
		info->counters[i].name = names[i];
		rc = dib_read_register(card, DIBBER_HOST_COUNTERS + 4 * i,
				       &info->counters[i].value);
	}
out:
	dib_card_leave(card);
	return rc;
}

static int enter_registers(struct dib_card *card, uint32_t offset)
{
	int rc = dib_check_card(card);

	if (rc)
		return rc;
	if (offset % 4 || offset >= DIBBER_MSIX_TABLE_BASE)
		return dib_fail(DIB_ERR_ARGUMENT, "offset 0x%x is no register of bank host",
				offset);
	return dib_card_enter(card, DIB_CARD);
}

int dib_register_read(struct dib_card *card, uint32_t offset, uint32_t *value)
{
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!value)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the value given");
	rc = enter_registers(card, offset);
	if (rc)
		return rc;
	rc = dib_read_register(card, offset, value);
	dib_card_leave(card);
	return rc;
}

int dib_register_write(struct dib_card *card, uint32_t offset, uint32_t value)
{
	int rc;

	rc = enter_registers(card, offset);
	if (rc)
		return rc;
	rc = dib_write_register(card, offset, value);
	dib_card_leave(card);
	return rc;
}

int dib_doorbell_read(struct dib_card *card, unsigned int endpoint, uint32_t offset,
		      uint32_t *value)
{
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!value)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the value given");
	if (endpoint >= card->fixed.endpoints || offset % 4 ||
	    offset >= DIBBER_ENDPOINT_STRIDE - DIBBER_DOORBELL_OFFSET)
		return dib_fail(DIB_ERR_ARGUMENT, "endpoint %u of %u has no register at 0x%x",
				endpoint, card->fixed.endpoints, offset);
	rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	rc = dib_read_register(card,
			       DIBBER_ENDPOINT_BASE + endpoint * DIBBER_ENDPOINT_STRIDE +
				       DIBBER_DOORBELL_OFFSET + offset,
			       value);
	dib_card_leave(card);
	return rc;
}

/* Of a card with another administrator, which has set the node number: the same is no change. With
 * the card locked, which ends. */
static int leave_node(struct dib_card *card, unsigned int node)
{
	uint32_t now;
	int rc = dib_read_register(card, DIBBER_HOST_NODE_ID, &now);

	if (!rc && now != node)
		rc = dib_fail(DIB_ERR_IN_USE,
			      "the driver has made this card node %u: see its parameter 'node'",
			      now);
	dib_card_leave(card);
	return rc;
}

int dib_node_set(struct dib_card *card, unsigned int node)
{
	uint32_t state = 0;
	int rc;

	rc = dib_check_card(card);
	if (!rc)
		rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	if (node >= card->fixed.nodes)
		rc = dib_fail(DIB_ERR_ARGUMENT, "node %u: this card knows nodes 0 to %u", node,
			      card->fixed.nodes - 1);
	if (!rc)
		rc = dib_read_register(card, DIBBER_HOST_MCP_STATE, &state);
	if (!rc && dib_is_administered(card->transport))
		return leave_node(card, node);
	if (!rc && (card->firmware || card->transport->observes) && state != DIBBER_MCP_STATE_RESET)
		rc = dib_fail(DIB_ERR_IN_USE,
			      "the control program runs: set the node number before it is loaded");
	if (!rc)
		rc = dib_write_register(card, DIBBER_HOST_NODE_ID, node);
	if (!rc)
		card->fixed.node = node;
	dib_card_leave(card);
	return rc;
}
