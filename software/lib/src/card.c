/* A card: its lock, its registers, its description. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "card.h"
#include "clock.h"
#include "error.h"
#include "transport.h"

#define LOCK_PS 1000000u /* simulated time between two attempts to lock */

/* The thread that has the lock may wait for the card, and simulated time stands still while a
 * participant runs. So a thread that waits for the lock lets time go on. */
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
	info->max_payload = DIB_FIELD(pcie, PCIE_STATUS_MAX_PAYLOAD);
	info->max_request = DIB_FIELD(pcie, PCIE_STATUS_MAX_REQUEST);
	info->link_state = DIB_FIELD(link, LINK_STATUS_STATE);
	info->link_stopped = DIB_FIELD(link, LINK_STATUS_STOPPED);
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
