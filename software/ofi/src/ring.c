/* Messages between peers: puts into a ring of slots at the receiver. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "coalesce.h"
#include "dispatch.h"
#include "domain.h"
#include "errors.h"
#include "pool.h"
#include "ring.h"

#define LONGEST (PAYLOAD_BYTES + 24u)
#define SHORT	128u /* bytes of a message whose memory is kept */

_Static_assert(LONGEST <= BUFFER_BYTES, "the longest message fits into a slot");

struct outgoing {
	struct list place;
	struct peer *peer;
	sent_t done;
	void *owner;
	uint32_t length;
	uint8_t bytes[];
};

static struct pool shorts;

static struct outgoing *outgoing_new(uint32_t length)
{
	return length <= SHORT ? pool_get(&shorts, sizeof(struct outgoing) + SHORT)
			       : malloc(sizeof(struct outgoing) + length);
}

static void outgoing_free(struct outgoing *out)
{
	if (out->length <= SHORT)
		pool_put(&shorts, out);
	else
		free(out);
}

uint64_t dfi_ring_credit(unsigned int index)
{
	return (uint64_t)PEERS * RING_BYTES + (uint64_t)index * 8u;
}

uint64_t dfi_ring_memory(void)
{
	return dfi_ring_credit(PEERS);
}

static unsigned int own_index(const struct domain *domain)
{
	return dfi_peer_index(domain->card.node, domain->number);
}

static unsigned int index_of(const struct domain *domain, const struct peer *peer)
{
	return (unsigned int)(peer - domain->peers);
}

/* Words that the card may write meanwhile are read once. */
static uint64_t read_word(const void *place)
{
	return *(const volatile uint64_t *)place;
}

/* Sending -------------------------------------------------------------------------------------- */

static void sent(struct domain *domain, struct command *command, int status)
{
	struct outgoing *out = command->owner;
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);

	if (error && !out->peer->error)
		dfi_peer_lost(domain, out->peer, error);
	if (out->done)
		out->done(out->owner, error);
	outgoing_free(out);
}

static uint32_t padded(const struct message *message)
{
	return (message->length + 7u) & ~7u;
}

/* Bytes of a message in its slot. */
static uint32_t length_of(const struct message *message)
{
	return padded(message) + (message->flags & MESSAGE_TAG ? 8u : 0) +
	       (message->flags & MESSAGE_DATA ? 8u : 0) + 8u;
}

/* A message as it lies in its slot, but for its number. */
static void lay_out(uint8_t *at, const struct message *message)
{
	uint64_t trailer =
		message->kind | (uint64_t)message->flags << 8 | (uint64_t)message->length << 16;

	memset(at, 0, 8);
	at += padded(message) - message->length;
	if (message->length)
		memcpy(at, message->payload, message->length);
	at += message->length;
	if (message->flags & MESSAGE_DATA) {
		memcpy(at, &message->data, 8);
		at += 8;
	}
	if (message->flags & MESSAGE_TAG) {
		memcpy(at, &message->tag, 8);
		at += 8;
	}
	memcpy(at, &trailer, 8);
}

/* Send a command that holds a message into its slot. */
static void put_into_slot(struct domain *domain, struct command *command, uint32_t number)
{
	uint64_t slot = (number - 1) % RING_SLOTS;

	command->flags = DIBBER_FLAG_NOTICE;
	command->notice = own_index(domain);
	command->remote_key = command->peer->key;
	command->remote_offset = own_index(domain) * (uint64_t)RING_BYTES +
				 (slot + 1) * BUFFER_BYTES - command->length;
	command->peer->sent = number;
	dfi_command_issue(domain, command);
}

/* The same of a message, or of credit, that nobody waits for. */
static void told(struct domain *domain, struct command *command, int status)
{
	int error = status < 0 ? -status : dfi_status_error((unsigned int)status);

	if (error && !command->peer->error)
		dfi_peer_lost(domain, command->peer, error);
}

/* Give a message the next slot and send it. */
static int put(struct domain *domain, struct outgoing *out)
{
	struct peer *peer = out->peer;
	struct command *command = dfi_command_new(COMMAND_PUT, peer, sent, out);
	uint32_t number = peer->sent + 1;
	int rc;

	if (!command)
		return -FI_ENOMEM;
	memcpy(out->bytes + out->length - 4, &number, sizeof(number));
	rc = dfi_command_copy(command, out->bytes, out->length);
	if (rc)
		return rc;
	put_into_slot(domain, command, number);
	return 0;
}

static bool has_room(const struct peer *peer)
{
	return peer->sent - peer->taken < RING_SLOTS;
}

bool dfi_ring_is_open(const struct peer *peer)
{
	return list_empty(&peer->outgoing) && has_room(peer);
}

/* A message whose end nobody waits for goes from the command itself, where it fits. Returns whether
 * it was sent. */
static bool put_at_once(struct domain *domain, struct peer *peer, const struct message *message)
{
	uint32_t length = length_of(message), number = peer->sent + 1;
	struct command *command;

	if (length > DIBBER_INLINE_BYTES || !dfi_ring_is_open(peer))
		return false;
	command = dfi_command_new(COMMAND_INLINE, peer, told, NULL);
	if (!command)
		return false;
	lay_out(command->data, message);
	memcpy(command->data + length - 4, &number, sizeof(number));
	command->length = length;
	put_into_slot(domain, command, number);
	return true;
}

static void push(struct domain *domain, struct peer *peer)
{
	while (!list_empty(&peer->outgoing) && has_room(peer) && !peer->error) {
		struct outgoing *out = member_of(peer->outgoing.next, struct outgoing, place);

		/* Without memory the message waits for the next look. */
		if (put(domain, out))
			return;
		list_remove(&out->place);
	}
}

static int append(struct domain *domain, struct peer *peer, const struct message *message,
		  sent_t done, void *owner)
{
	uint32_t length = length_of(message);
	struct outgoing *out = outgoing_new(length);

	(void)domain;
	if (!out)
		return -FI_ENOMEM;
	*out = (struct outgoing){ .peer = peer, .done = done, .owner = owner, .length = length };
	lay_out(out->bytes, message);
	dfi_charge_copy(message->length);
	list_append(&peer->outgoing, &out->place);
	return 0;
}

static int greet(struct domain *domain, struct peer *peer)
{
	uint8_t address[ADDRESS_BYTES];
	const struct message hello = { .kind = MESSAGE_HELLO,
				       .length = sizeof(address),
				       .payload = address };
	int rc;

	dfi_address_pack(address, domain->card.node, domain->number, dib_key(domain->inbox_region));
	rc = append(domain, peer, &hello, NULL, NULL);
	peer->greeted = rc == 0;
	return rc;
}

int dfi_ring_send(struct domain *domain, struct peer *peer, const struct message *message,
		  sent_t done, void *owner)
{
	unsigned int index = index_of(domain, peer);
	int rc;

	if (peer->error)
		return -peer->error;
	if (domain->broken)
		return -domain->broken;
	dfi_coalesce_flush(domain);
	domain->active[index / 64] |= UINT64_C(1) << index % 64;
	if (!peer->greeted && (rc = greet(domain, peer)))
		return rc;
	if (!done && put_at_once(domain, peer, message))
		return 0;
	rc = append(domain, peer, message, done, owner);
	if (!rc)
		push(domain, peer);
	return rc;
}

void dfi_ring_drop(struct domain *domain, struct peer *peer)
{
	(void)domain;
	while (!list_empty(&peer->outgoing)) {
		struct outgoing *out = member_of(peer->outgoing.next, struct outgoing, place);

		list_remove(&out->place);
		if (out->done)
			out->done(out->owner, peer->error);
		outgoing_free(out);
	}
}

/* Credit --------------------------------------------------------------------------------------- */

static void tell(struct domain *domain, struct peer *peer, uint32_t closed)
{
	const uint32_t words[2] = { peer->received, closed };
	struct command *command;

	if (!peer->known || peer->error)
		return;
	command = dfi_command_new(COMMAND_INLINE, peer, told, NULL);
	/* Without memory the next look tells it. */
	if (!command || dfi_command_copy(command, words, sizeof(words)))
		return;
	/* The end must not overtake messages that another lane of the card carries. */
	command->flags = (uint8_t)(DIBBER_FLAG_NOTICE | (closed ? DIBBER_FLAG_FENCE : 0u));
	command->notice = own_index(domain);
	command->remote_key = peer->key;
	command->remote_offset = dfi_ring_credit(own_index(domain));
	peer->returned = peer->received;
	dfi_command_issue(domain, command);
}

void dfi_ring_close(struct domain *domain, struct peer *peer)
{
	tell(domain, peer, 1);
}

/* Returns whether the peer has closed. */
static bool look_at_credit(struct domain *domain, struct peer *peer)
{
	uint64_t word = read_word(domain->inbox + dfi_ring_credit(index_of(domain, peer)));
	uint32_t taken = (uint32_t)word;

	if (taken - peer->taken > peer->sent - peer->taken || word >> 33) {
		dfi_peer_lost(domain, peer, FI_EIO);
		return false;
	}
	if (taken != peer->taken)
		peer->heard = true;
	peer->taken = taken;
	return word >> 32;
}

/* Receiving ------------------------------------------------------------------------------------ */

/* Returns whether the slot's bytes can be those of a message. */
static bool parse(const uint8_t *end, uint64_t trailer, struct message *message)
{
	const uint8_t *at = end - 8;

	*message = (struct message){
		.kind = (uint8_t)trailer,
		.flags = (uint8_t)(trailer >> 8),
		.length = (uint16_t)(trailer >> 16),
	};
	if (message->length > PAYLOAD_BYTES || message->flags & ~(MESSAGE_TAG | MESSAGE_DATA))
		return false;
	if (message->flags & MESSAGE_TAG) {
		at -= 8;
		memcpy(&message->tag, at, 8);
	}
	if (message->flags & MESSAGE_DATA) {
		at -= 8;
		memcpy(&message->data, at, 8);
	}
	message->payload = at - message->length;
	return true;
}

static bool hello(struct peer *peer, const struct message *message)
{
	uint8_t ours[ADDRESS_BYTES], theirs[ADDRESS_BYTES];
	uint32_t key;

	if (message->kind != MESSAGE_HELLO || message->length != ADDRESS_BYTES)
		return false;
	memcpy(theirs, message->payload, sizeof(theirs));
	memcpy(&key, theirs + 4, sizeof(key));
	dfi_address_pack(ours, peer->node, peer->endpoint, key);
	if (memcmp(ours, theirs, sizeof(ours)) || (peer->known && peer->key != key))
		return false;
	dfi_peer_learn(peer, key);
	return true;
}

/* Returns whether there was a message. */
static bool take(struct domain *domain, struct peer *peer)
{
	uint32_t number = peer->received + 1;
	const uint8_t *end = domain->inbox + index_of(domain, peer) * (uint64_t)RING_BYTES +
			     ((uint64_t)((number - 1) % RING_SLOTS) + 1) * BUFFER_BYTES;
	uint64_t trailer = read_word(end - 8);
	struct message message;
	bool good;

	if ((uint32_t)(trailer >> 32) != number || peer->error == FI_EIO)
		return false;
	dfi_charge(CHARGE_MESSAGE, 1);
	good = parse(end, trailer, &message) &&
	       (number == 1 ? hello(peer, &message) : dfi_dispatch(domain, peer, &message));
	if (!good) {
		dfi_peer_lost(domain, peer, FI_EIO);
		return false;
	}
	peer->received = number;
	peer->heard = true;
	return true;
}

void dfi_ring_look(struct domain *domain, struct peer *peer)
{
	bool closed;

	while (take(domain, peer))
		;
	if (peer->received - peer->returned >= RING_SLOTS / 2)
		tell(domain, peer, 0);
	if (peer->error)
		return;
	closed = look_at_credit(domain, peer);
	/* A peer that closed has sent all of its messages before, some of them since the loop
	 * above. */
	while (closed && take(domain, peer))
		;
	if (closed)
		dfi_peer_lost(domain, peer, FI_ESHUTDOWN);
	push(domain, peer);
}
