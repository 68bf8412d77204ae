/* Random messages, transfers and atomics between two sides, compared with what they must be.
 *
 *	traffic SEED COUNT PROVIDER_KEYS
 *
 * COUNT is how many of each; PROVIDER_KEYS is 1 for keys of the provider, 0 for keys that the
 * program chooses.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "both.h"

#define TAGS	4
#define LONGEST 9000u
#define WINDOW	20000u

static unsigned int count;
static uint64_t seed;

static uint8_t byte_of(unsigned int message, size_t place)
{
	return (uint8_t)(message * 37 + place * 11 + (place >> 8) + seed);
}

/* Messages ------------------------------------------------------------------------------------- */

struct planned {
	size_t length;
	uint64_t tag;
	int kind; /* 0: send, 1: send with data, 2: inject, 3: until matched */
};

/* Both sides draw the same plan. */
static struct planned *plan(unsigned int from)
{
	static const size_t lengths[] = { 0, 1, 8, 40, 41, 64, 4096, 4097 };
	struct planned *planned = calloc(count, sizeof(*planned));

	state = seed * 1000003 + from + 1;
	for (unsigned int i = 0; i < count; i++) {
		planned[i].length = draw(2) ? lengths[draw(8)] : draw(draw(4) ? 300 : LONGEST);
		planned[i].tag = draw(TAGS);
		planned[i].kind = (int)draw(4);
		if (planned[i].kind == 2 && planned[i].length > info->tx_attr->inject_size)
			planned[i].kind = 0;
	}
	return planned;
}

static unsigned int send_one(const struct planned *p, unsigned int number, uint8_t *bytes)
{
	struct iovec iov[2] = { { bytes, p->length / 3 },
				{ bytes + p->length / 3, p->length - p->length / 3 } };
	struct fi_msg_tagged message = {
		.msg_iov = iov, .iov_count = 2, .addr = peer, .tag = p->tag, .context = bytes
	};

	for (size_t i = 0; i < p->length; i++)
		bytes[i] = byte_of(number, i);
	switch (p->kind) {
	case 0:
		post(fi_tsend(ep, bytes, p->length, NULL, peer, p->tag, bytes));
		return 1;
	case 1:
		post(fi_tsenddata(ep, bytes, p->length, NULL, number, peer, p->tag, bytes));
		return 1;
	case 2:
		post(fi_tinject(ep, bytes, p->length, peer, p->tag));
		memset(bytes, 0xee, p->length);
		return 0;
	default:
		post(fi_tsendmsg(ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		return 1;
	}
}

static void check_message(const struct planned *p, unsigned int number, const uint8_t *bytes,
			  const struct fi_cq_tagged_entry *entry)
{
	need(entry->len == p->length, "message %u has %zu bytes, not %zu", number, entry->len,
	     p->length);
	need(entry->tag == p->tag, "message %u has tag %llu", number,
	     (unsigned long long)entry->tag);
	need(!(entry->flags & FI_REMOTE_CQ_DATA) == (p->kind != 1), "data of message %u", number);
	need(p->kind != 1 || entry->data == number, "data of message %u", number);
	for (size_t i = 0; i < p->length; i++)
		need(bytes[i] == byte_of(number, i), "byte %zu of message %u of %zu", i, number,
		     p->length);
}

/* Receive k of a tag gets message k of that tag. Receives of different tags are posted in an order
 * of their own, before and after the messages have come. */
static void messages(void)
{
	struct planned *mine = plan((unsigned int)side), *theirs = plan((unsigned int)!side);
	uint8_t *out = malloc((size_t)count * LONGEST), *in = malloc((size_t)count * LONGEST);
	unsigned int *order = calloc(count, sizeof(*order)), posted = 0, ended = 0, sent = 0;
	unsigned int expected = 0, next_of_tag[TAGS] = { 0 };
	double begin = now();

	/* The order of receives: a random tag that has messages left, then its next message. */
	state = seed + 77;
	for (unsigned int i = 0; i < count;) {
		unsigned int tag = (unsigned int)draw(TAGS), number = next_of_tag[tag];

		while (number < count && theirs[number].tag != tag)
			number++;
		next_of_tag[tag] = number + 1;
		if (number < count)
			order[i++] = number;
	}
	while (ended < expected || sent < count || posted < count) {
		if (sent < count && (draw(2) || posted == count)) {
			expected += send_one(&mine[sent], sent, out + (size_t)sent * LONGEST);
			sent++;
		} else if (posted < count && posted < sent + 8) {
			unsigned int number = order[posted++];

			/* A side has one peer, so that naming it or none is the same. */
			post(fi_trecv(ep, in + (size_t)number * LONGEST, LONGEST, NULL,
				      draw(2) ? peer : FI_ADDR_UNSPEC, theirs[number].tag, 0,
				      &theirs[number]));
			expected++;
		}
		if (ended < expected && (draw(2) || (sent == count && posted == count))) {
			struct fi_cq_tagged_entry entry;
			int error = try_entry(&entry);

			need(now() - begin < SECONDS, "the messages do not end");
			if (error < 0)
				continue;
			need(!error, "a message failed: %s", fi_strerror(error));
			ended++;
			if (entry.flags & FI_RECV) {
				struct planned *p = entry.op_context;
				unsigned int number = (unsigned int)(p - theirs);

				check_message(p, number, in + (size_t)number * LONGEST, &entry);
			}
		}
	}
	need(fi_cntr_read(receives) == count, "the counter of receives");
	check(fi_cntr_wait(sends, count, SECONDS * 1000));
	meet();
	free(mine), free(theirs), free(out), free(in), free(order);
}

static void multi_receive(void)
{
	static uint8_t room[4096];
	const struct iovec iov = { room, sizeof(room) };
	const struct fi_msg message = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = room
	};
	const size_t least = 1000, length = 900;
	struct fi_cq_tagged_entry entry;
	uint8_t bytes[900];

	check(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
	check(fi_recvmsg(ep, &message, FI_MULTI_RECV | FI_COMPLETION));
	for (unsigned int i = 0; i < 4; i++) {
		memset(bytes, (int)(i + 1), length);
		post(fi_inject(ep, bytes, length, peer));
	}
	/* The fourth message leaves less than `least`. */
	for (unsigned int i = 0; i < 4; i++) {
		need(next_entry(&entry) == 0, "a receive failed");
		need(entry.op_context == room && entry.len == length, "message %u", i);
		need((uint8_t *)entry.buf == room + i * length, "the place of message %u", i);
		need(!(entry.flags & FI_MULTI_RECV) == (i < 3), "the flags of message %u", i);
		for (size_t k = 0; k < length; k++)
			need(((uint8_t *)entry.buf)[k] == i + 1, "bytes of message %u", i);
	}
	meet();
}

static void truncated_and_cancelled(void)
{
	struct fi_cq_tagged_entry entry;
	uint8_t bytes[6000] = { 1, 2, 3 }, room[8] = { 0 };
	int context;

	for (size_t length = 100; length <= sizeof(bytes); length += sizeof(bytes) - 100) {
		post(fi_trecv(ep, room, 2, NULL, peer, 99, 0, room));
		meet();
		post(fi_tsend(ep, bytes, length, NULL, peer, 99, bytes));
		for (int i = 0; i < 2; i++) {
			int error = next_entry(&entry);

			need(error == (entry.op_context == room ? FI_ETRUNC : 0), "%s",
			     fi_strerror(error));
		}
		need(room[0] == 1 && room[1] == 2 && room[2] == 0, "bytes of a cut message");
		meet();
	}
	post(fi_trecv(ep, room, 8, NULL, peer, 98, 0, &context));
	check(fi_cancel(&ep->fid, &context));
	need(next_entry(&entry) == FI_ECANCELED && entry.op_context == &context, "no cancel");
	meet();
}

static void peek(void)
{
	struct fi_msg_tagged message = { .addr = peer, .tag = 55, .context = &message };
	struct fi_cq_tagged_entry entry;
	uint8_t bytes[5000], room[5000];
	struct iovec iov = { room, sizeof(room) };
	double begin = now();

	check(fi_trecvmsg(ep, &message, FI_PEEK | FI_COMPLETION));
	need(next_entry(&entry) == FI_ENOMSG, "a message that nobody sent");
	meet();
	memset(bytes, 5, sizeof(bytes));
	post(fi_tsend(ep, bytes, sizeof(bytes), NULL, peer, 55, bytes));
	for (;;) {
		check(fi_trecvmsg(ep, &message, FI_PEEK | FI_CLAIM | FI_COMPLETION));
		if (next_entry(&entry) == 0)
			break;
		need(now() - begin < SECONDS, "the message does not come");
	}
	need(entry.len == sizeof(bytes) && entry.tag == 55, "what a peek tells");
	message.msg_iov = &iov;
	message.iov_count = 1;
	memset(room, 0, sizeof(room));
	check(fi_trecvmsg(ep, &message, FI_CLAIM | FI_COMPLETION));
	for (int i = 0; i < 2; i++)
		need(next_entry(&entry) == 0, "a claimed message failed");
	need(!memcmp(room, bytes, sizeof(bytes)), "the bytes of a claimed message");
	meet();
}

/* Transfers and atomics ------------------------------------------------------------------------ */

struct window {
	uint64_t key;
	uint8_t *memory, *shadow;
	struct fid_mr *mr;
};

static void open_window(struct window *window, size_t length)
{
	uint64_t key;

	window->memory = calloc(1, length);
	window->shadow = calloc(1, length);
	check(fi_mr_reg(domain, window->memory, length,
			FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE, 0,
			(uint64_t)(1000 + side), 0, &window->mr, NULL));
	key = fi_mr_key(window->mr);
	exchange(&key, &window->key, sizeof(key));
}

static void close_window(struct window *window)
{
	meet();
	check(fi_close(&window->mr->fid));
	free(window->memory);
	free(window->shadow);
}

static size_t some_length(void)
{
	switch (draw(4)) {
	case 0:
		return 1 + draw(64);
	case 1:
		return 1 + draw(4160);
	default:
		return 1 + draw(LONGEST);
	}
}

/* Side 0 writes and reads the window of side 1, and the other way round: each knows what it wrote.
 */
static void transfers(int provider_keys)
{
	struct fid_mr *local;
	struct window window;
	uint8_t *bytes = malloc(LONGEST);
	void *desc;

	open_window(&window, WINDOW);
	check(fi_mr_reg(domain, bytes, LONGEST, FI_READ | FI_WRITE, 0, 7, 0, &local, NULL));
	state = seed * 31 + (uint64_t)side + 5;
	for (unsigned int i = 0; i < count; i++) {
		size_t length = some_length(), place = draw(WINDOW - length);
		struct iovec iov[3] = { { bytes, length / 2 },
					{ bytes + length / 2, length - length / 2 } };

		desc = draw(2) ? fi_mr_desc(local) : NULL;
		if (draw(2)) {
			for (size_t k = 0; k < length; k++)
				bytes[k] = (uint8_t)draw(256);
			memcpy(window.shadow + place, bytes, length);
			if (length <= info->tx_attr->inject_size && !draw(4)) {
				post(fi_inject_write(ep, bytes, length, peer, place, window.key));
				/* Nothing says that it has ended, but another write after it does.
				 */
				post(fi_write(ep, bytes, length, NULL, peer, place, window.key,
					      bytes));
			} else if (!draw(3)) {
				post(fi_writev(ep, iov, NULL, 2, peer, place, window.key, bytes));
			} else {
				post(fi_write(ep, bytes, length, desc, peer, place, window.key,
					      bytes));
			}
			wait_for(bytes);
		} else {
			memset(bytes, 0xee, length);
			if (!draw(3))
				post(fi_readv(ep, iov, NULL, 2, peer, place, window.key, bytes));
			else
				post(fi_read(ep, bytes, length, desc, peer, place, window.key,
					     bytes));
			wait_for(bytes);
			need(!memcmp(bytes, window.shadow + place, length), "a read of %zu bytes",
			     length);
		}
	}
	/* What the target itself sees is what was written. */
	meet();
	{
		uint8_t *theirs = malloc(WINDOW);

		exchange(window.shadow, theirs, WINDOW);
		need(!memcmp(theirs, window.memory, WINDOW), "the memory that was written");
		free(theirs);
	}
	/* A key that nobody has, and a place outside. */
	{
		struct fi_cq_tagged_entry entry;

		post(fi_write(ep, bytes, 8, NULL, peer, 0, provider_keys ? 1 : 4711, bytes));
		need(next_entry(&entry) == FI_ENOKEY, "a write with a key that nobody has");
		post(fi_read(ep, bytes, 8, NULL, peer, WINDOW, window.key, bytes));
		need(next_entry(&entry) == FI_EINVAL, "a read outside");
		/* The entry of the peer's write must not come before that of the read. */
		meet();
		post(fi_writedata(ep, bytes, 8, NULL, 77, peer, 0, window.key, bytes));
		for (int i = 0; i < 2; i++) {
			need(next_entry(&entry) == 0, "a write with data failed");
			if (entry.flags & FI_REMOTE_CQ_DATA)
				need(entry.data == 77 && entry.flags & FI_REMOTE_WRITE, "data");
		}
	}
	meet();
	check(fi_close(&local->fid));
	close_window(&window);
	free(bytes);
}

static void atomics(void)
{
	struct window window;
	uint64_t one = 1, former, compare, value, *own;
	uint32_t words[3], results[3];

	open_window(&window, 4096);
	own = (uint64_t *)(void *)window.memory;
	/* Both sides count in both windows. */
	for (unsigned int i = 0; i < count; i++) {
		post(fi_fetch_atomic(ep, &one, 1, NULL, &former, NULL, peer, 0, window.key,
				     FI_UINT64, FI_SUM, &one));
		wait_for(&one);
		need(former < 2 * (uint64_t)count, "a counter of %llu", (unsigned long long)former);
		post(fi_atomic(ep, &one, 1, NULL, self, 0, fi_mr_key(window.mr), FI_UINT64, FI_SUM,
			       &one));
		wait_for(&one);
	}
	meet();
	need(own[0] == 2 * (uint64_t)count, "%llu counts, not %u", (unsigned long long)own[0],
	     2 * count);
	compare = own[0];
	value = 5;
	post(fi_compare_atomic(ep, &value, 1, NULL, &compare, NULL, &former, NULL, peer, 0,
			       window.key, FI_UINT64, FI_CSWAP, &one));
	wait_for(&one);
	meet();
	need(former == 2 * (uint64_t)count && own[0] == 5, "a compare and swap");
	for (int i = 0; i < 3; i++)
		words[i] = 0xf0f0u + (uint32_t)i;
	post(fi_fetch_atomic(ep, words, 3, NULL, results, NULL, peer, 16, window.key, FI_UINT32,
			     FI_BXOR, &one));
	wait_for(&one);
	post(fi_fetch_atomic(ep, NULL, 3, NULL, results, NULL, peer, 16, window.key, FI_UINT32,
			     FI_ATOMIC_READ, &one));
	wait_for(&one);
	need(!memcmp(words, results, sizeof(words)), "an atomic of three words");
	need(fi_atomic(ep, &one, 1, NULL, peer, 0, window.key, FI_DOUBLE, FI_BXOR, &one) ==
		     -FI_EOPNOTSUPP,
	     "an exclusive or of doubles");
	close_window(&window);
}

static int provider_keys;

static void body(void)
{
	open_endpoint(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_MULTI_RECV,
		      provider_keys ? FI_MR_PROV_KEY : 0);
	messages();
	multi_receive();
	truncated_and_cancelled();
	peek();
	transfers(provider_keys);
	atomics();
	meet();
	close_endpoint();
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	seed = strtoull(argv[1], NULL, 0);
	count = (unsigned int)strtoul(argv[2], NULL, 0);
	provider_keys = atoi(argv[3]);
	return run_both(body);
}
