/* A program assigns to memory of the other machine, and reads it back. Needs cards with the remote
 * window. Where the processor does not reach the card by itself (a simulated card), calls take the
 * place of assignments. A notice tells the other program. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include <dibber/window.h>

#include "two_sides.h"

#define WORDS  512u /* of 8 bytes; so many stores may be under way */
#define STRIDE 8u   /* words */
#define BYTES  (WORDS * sizeof(uint64_t))

static void put_word(struct dib_window *window, volatile uint64_t *memory, uint32_t n,
		     uint64_t value)
{
	if (memory)
		memory[n] = value;
	else
		check(dib_window_store(window, n * sizeof(value), &value, sizeof(value)), "store");
}

static uint64_t get_word(struct dib_window *window, volatile uint64_t *memory, uint32_t n)
{
	uint64_t value;

	if (memory)
		return memory[n];
	check(dib_window_load(window, n * sizeof(value), &value, sizeof(value)), "load");
	return value;
}

/* Values of all widths in one line. */
static void put_letters(struct dib_window *window, volatile uint8_t *memory, uint32_t offset)
{
	static const char text[] = "stores of 1, 2 and 4 bytes";
	const uint16_t two = 0x3232;
	const uint32_t four = 0x34343434;

	for (uint32_t n = 0; n < sizeof(text); n++) {
		if (memory)
			memory[offset + n] = (uint8_t)text[n];
		else
			check(dib_window_store(window, offset + n, &text[n], 1), "store");
	}
	if (memory) {
		*(volatile uint16_t *)(volatile void *)(memory + offset + 32) = two;
		*(volatile uint32_t *)(volatile void *)(memory + offset + 36) = four;
	} else {
		check(dib_window_store(window, offset + 32, &two, sizeof(two)), "store");
		check(dib_window_store(window, offset + 36, &four, sizeof(four)), "store");
	}
}

static void assign(struct side *s)
{
	struct dib_window_options options = {
		.key = exchange_keys(s),
		.node = 1,
		.length = BYTES,
		.access = DIB_WINDOW_LOAD | DIB_WINDOW_STORE,
	};
	struct dib_delivery delivery = {
		.node = 1, .endpoint = 1, .flags = DIBBER_FLAG_NOTICE, .notice = 7
	};
	struct dib_window *window;
	volatile uint64_t *memory;
	uint64_t sum = 0, last;

	check(dib_window_map(s->endpoint, &options, &window), "window");
	memory = dib_window_pointer(window);
	for (uint32_t n = 0; n < WORDS; n += STRIDE)
		put_word(window, memory, n, n);
	put_letters(window, (volatile uint8_t *)memory, sizeof(uint64_t));
	check(dib_window_barrier(window), "barrier");
	for (uint32_t n = 0; n < WORDS; n += STRIDE)
		sum += get_word(window, memory, n);
	printf("by %s: sum %llu\n", memory ? "assignments" : "calls", (unsigned long long)sum);
	last = get_word(window, memory, WORDS - STRIDE);
	check(dib_put_inline(s->endpoint, &delivery, &last, options.key,
			     (WORDS - STRIDE) * sizeof(last), sizeof(last)),
	      "put");
	completed(s);
	check(dib_window_check(window), "check");
	check(dib_window_unmap(window), "window");
}

static void look(struct side *s)
{
	const uint64_t *words = s->memory;
	const char *text = (const char *)&words[1];
	struct dib_event event;
	uint32_t right = 0;
	uint16_t two;
	uint32_t four;

	exchange_keys(s);
	check(dib_wait(s->endpoint, PATIENCE), "waiting for the notice");
	if (check(dib_poll_events(s->endpoint, &event, 1), "poll") != 1) {
		fprintf(stderr, "no notice came\n");
		exit(1);
	}
	for (uint32_t n = 0; n < WORDS; n += STRIDE)
		right += words[n] == n;
	memcpy(&two, text + 32, sizeof(two));
	memcpy(&four, text + 36, sizeof(four));
	printf("%u words are there; '%s', 0x%x, 0x%x\n", right, text, two, four);
}

int main(int argc, char **argv)
{
	return run_two_sides(argc, argv, BYTES,
			     DIBBER_RIGHT_REMOTE_READ | DIBBER_RIGHT_REMOTE_WRITE, assign, look);
}
