/* Commands under way, their ends, and barriers. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "shmem.h"

#define BATCH	    16
#define SHORTEST_NS 1000u
#define LONGEST_NS  64000u
/* Simulated time without any sign of the others until a barrier asks whether they are there. */
#define ASK_NS UINT64_C(1000000)

static unsigned int under_way;
static uint64_t patience_ns = SHORTEST_NS, silence_ns;

struct dib_delivery delivery_to(int other, struct operation *operation, uint8_t flags)
{
	const struct seat *seat = &pe.seats[other];

	under_way++;
	return (struct dib_delivery){
		.tag = (uintptr_t)operation,
		.node = (uint16_t)seat->node,
		.endpoint = (uint8_t)seat->endpoint,
		.flags = flags,
	};
}

static int take_ends(void)
{
	struct dib_completion ends[BATCH];
	int count = dib_poll(pe.endpoint, ends, BATCH);

	check(count, "completions");
	for (int i = 0; i < count; i++) {
		struct operation *operation = (struct operation *)(uintptr_t)ends[i].tag;

		under_way--;
		if (ends[i].status != DIBBER_STATUS_OK)
			fail("a transfer with node %u: %s: %s", ends[i].node,
			     dib_status_name(ends[i].status), dib_status_string(ends[i].status));
		if (operation) {
			operation->value = ends[i].value;
			operation->done = true;
		}
	}
	return count;
}

static int take_events(void)
{
	struct dib_event events[BATCH];
	int count = dib_poll_events(pe.endpoint, events, BATCH);

	check(count, "events");
	return count;
}

void progress(void)
{
	int rc;

	if (take_ends() | take_events()) {
		patience_ns = SHORTEST_NS;
		silence_ns = 0;
		return;
	}
	rc = dib_wait(pe.endpoint, patience_ns);
	check(rc, "waiting");
	if (rc)
		return;
	silence_ns += patience_ns;
	if (patience_ns < LONGEST_NS)
		patience_ns *= 2;
}

void dibber_shmem_progress(void)
{
	if (!pe.on)
		fail("waiting before shmem_init");
	progress();
}

void wait_for(const struct operation *operation)
{
	while (!operation->done)
		progress();
}

void shmem_quiet(void)
{
	if (!pe.on)
		fail("shmem_quiet before shmem_init");
	while (under_way)
		progress();
}

/* Puts of one endpoint keep their order, but inline ones may overtake. */
void shmem_fence(void)
{
	shmem_quiet();
}

/* Read a word of a PE: a PE that has ended lets this one end, too. */
static void ask(unsigned int other)
{
	struct control *control = (struct control *)(void *)pe.heap;
	struct operation operation = { 0 };
	struct dib_delivery delivery = delivery_to((int)other, &operation, 0);

	issue(dib_get(pe.endpoint, &delivery, pe.seats[other].key, 0, dib_key(pe.region),
		      (uintptr_t)&control->landing - (uintptr_t)pe.heap, sizeof(uint64_t)),
	      "asking for a PE");
	wait_for(&operation);
}

/* Dissemination barrier (Hensgen, Finkel, Manber 1988): in round r each PE tells the one 2^r
 * further on, and waits for the one 2^r before it. */
void shmem_barrier_all(void)
{
	volatile struct control *control = (struct control *)(void *)pe.heap;
	unsigned int round = 0;

	shmem_quiet();
	pe.barriers++;
	for (unsigned int distance = 1; distance < pe.count; distance *= 2, round++) {
		unsigned int next = (pe.number + distance) % pe.count;
		unsigned int from = (pe.number + pe.count - distance) % pe.count;
		struct dib_delivery delivery = delivery_to((int)next, NULL, DIBBER_FLAG_NOTICE);

		issue(dib_put_inline(pe.endpoint, &delivery, &pe.barriers, pe.seats[next].key,
				     offsetof(struct control, arrived) + 8 * round,
				     sizeof(pe.barriers)),
		      "a barrier");
		silence_ns = 0;
		while (control->arrived[round] < pe.barriers) {
			progress();
			if (silence_ns < ASK_NS)
				continue;
			ask(from);
			silence_ns = 0;
		}
	}
	while (under_way)
		progress();
}

void shmem_sync_all(void)
{
	shmem_barrier_all();
}
