/* What is done with a message of a peer. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "atomic.h"
#include "dispatch.h"
#include "message.h"
#include "transfer.h"

bool dfi_dispatch(struct domain *domain, struct peer *peer, const struct message *message)
{
	switch (message->kind) {
	case MESSAGE_EAGER:
		return dfi_message_eager(domain, peer, message);
	case MESSAGE_OFFER:
		return dfi_message_offer(domain, peer, message);
	case MESSAGE_FETCHED:
		return dfi_message_fetched(domain, peer, message);
	case MESSAGE_NOTE:
		return dfi_transfer_note(domain, peer, message);
	case MESSAGE_ATOMIC:
		return dfi_atomic_request(domain, peer, message);
	case MESSAGE_RESULT:
		return dfi_atomic_result(domain, peer, message);
	case MESSAGE_ASK_KEY:
		return dfi_transfer_ask_key(domain, peer, message);
	case MESSAGE_TELL_KEY:
		return dfi_transfer_tell_key(domain, peer, message);
	default:
		return false;
	}
}
