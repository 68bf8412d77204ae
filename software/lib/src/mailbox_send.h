/* Sending by mailbox. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_MAILBOX_SEND_H
#define DIBBER_MAILBOX_SEND_H

#include "mailbox.h"

/* Whether a message that was refused to some peer could go now. */
bool dib_mailbox_has_room(struct dib_mailbox *mailbox);

#endif
