/* Messages by mailbox: one side asks questions without waiting for the answers. The last answer is
 * longer than any buffer of the other side. No side posts receives, registers memory or counts
 * slots. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "two_sides.h"

#define WORDS 32      /* more than fit at once: sending meets a full ring */
#define INDEX 200000u /* bytes of the long answer */

static struct dib_mailbox *open_mailbox(struct side *s)
{
	const struct dib_mailbox_options options = { .slots = 8, .slot_bytes = 256 };
	struct dib_mailbox_address ours, theirs;
	struct dib_mailbox *mailbox;

	check(dib_mailbox_open(s->endpoint, &options, &mailbox), "mailbox");
	check(dib_mailbox_address(mailbox, 0, &ours), "address");
	exchange(s, &ours, &theirs, sizeof(ours));
	check(dib_mailbox_connect(mailbox, 0, &theirs), "connect");
	return mailbox;
}

/* Send, and wait for room if there is none. */
static void send_message(struct dib_mailbox *mailbox, const void *data, uint32_t length)
{
	int rc;

	while ((rc = dib_mailbox_send(mailbox, 0, data, length)) == DIB_ERR_AGAIN)
		check(dib_mailbox_wait(mailbox, DIB_MAILBOX_ROOM, PATIENCE), "waiting for room");
	check(rc, "send");
}

/* Wait for the next message. Returns its length. */
static uint32_t next_message(struct dib_mailbox *mailbox, void *data, uint32_t room)
{
	struct dib_message message;
	int rc;

	while ((rc = dib_mailbox_receive(mailbox, data, room, &message)) == 0)
		check(dib_mailbox_wait(mailbox, DIB_MAILBOX_MESSAGE, PATIENCE),
		      "waiting for a message");
	check(rc, "receive");
	return message.length;
}

static uint8_t entry(uint32_t place)
{
	return (uint8_t)(place * 7 + place / 251);
}

/* Take an answer if there is one. Returns 0 if it is right, 1 if it is wrong, -1 if there is none.
 */
static int take_answer(struct dib_mailbox *mailbox, uint8_t *answer, int number)
{
	struct dib_message message;
	char word[16];

	if (check(dib_mailbox_receive(mailbox, answer, INDEX, &message), "receive") == 0)
		return -1;
	snprintf(word, sizeof(word), "WORD %d", number);
	return message.length != strlen(word) + 1 || memcmp(answer, word, message.length);
}

static void ask(struct side *s)
{
	struct dib_mailbox *mailbox = open_mailbox(s);
	int asked = 0, answered = 0, wrong = 0, rc;
	uint8_t *answer = s->memory;
	struct dib_message message;
	char word[16];

	/* Take answers while asking. Otherwise this side would wait for room, and the other side
	 * would wait for room for an answer. */
	while (answered < WORDS) {
		snprintf(word, sizeof(word), "word %d", asked);
		if (asked < WORDS &&
		    (rc = dib_mailbox_send(mailbox, 0, word, (uint32_t)strlen(word) + 1)) !=
			    DIB_ERR_AGAIN) {
			check(rc, "send");
			asked++;
		} else if ((rc = take_answer(mailbox, answer, answered)) < 0) {
			check(dib_mailbox_wait(mailbox, DIB_MAILBOX_MESSAGE | DIB_MAILBOX_ROOM,
					       PATIENCE),
			      "waiting");
		} else {
			wrong += rc;
			answered++;
		}
	}
	send_message(mailbox, NULL, 0);
	wrong += next_message(mailbox, answer, INDEX) != INDEX;
	for (uint32_t i = 0; i < INDEX; i++)
		wrong += answer[i] != entry(i);
	check(dib_mailbox_wait(mailbox, DIB_MAILBOX_MESSAGE, PATIENCE), "waiting for the end");
	if (dib_mailbox_receive(mailbox, answer, INDEX, &message) == DIB_ERR_CLOSED)
		printf("asked for %d words, %s; the other side has closed its mailbox\n", WORDS,
		       wrong ? "and answers are wrong" : "all answers are right");
	dib_mailbox_close(mailbox);
}

static void answer(struct side *s)
{
	struct dib_mailbox *mailbox = open_mailbox(s);
	uint8_t *index = s->memory;
	uint32_t length;
	char word[16];
	int words = 0;

	while ((length = next_message(mailbox, word, sizeof(word))) != 0) {
		memcpy(word, "WORD", 4);
		send_message(mailbox, word, length);
		words++;
	}
	for (uint32_t i = 0; i < INDEX; i++)
		index[i] = entry(i);
	send_message(mailbox, index, INDEX);
	printf("answered: %d words and the %u bytes of the index\n", words, INDEX);
	/* The long answer is still here: dib_mailbox_close() waits until it was fetched. */
	dib_mailbox_close(mailbox);
}

int main(int argc, char **argv)
{
	return run_two_sides(argc, argv, INDEX, DIBBER_RIGHT_LOCAL_READ, ask, answer);
}
