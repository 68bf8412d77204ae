/* Fuzz target: a program's whole life with a card behind a UART that does not keep to the protocol.
 *
 * A thread at the other end of a pseudo-terminal models bridge and card well enough for the library
 * to come through, and for each answer asks the input what to do wrong: to the bytes, or to what
 * they say, with a CRC that is right. With an input of zeros all is right. What must hold: no
 * sanitizer has anything to say, every call returns, and nothing is written but memory that was
 * registered for it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dibber/dibber.h>

#include "fuzz.h"
#include "program.h"

#define MEMORY_BYTES 65536u
#define CHUNK	     (MEMORY_BYTES / DIBBER_BRIDGED_CHUNKS)
#define CLOCK_HZ     64000000u
#define CYCLES_STEP  500000u
#define LONGEST	     (sizeof(struct dibber_frame) + 4u * (DIBBER_FRAME_WORDS + 2u))

/* What the card does to an answer, when the input says so: to what it says, then to its bytes. */
enum wrong {
	RIGHT,
	WORD,
	WORDS,
	STATUS,
	CHANGE,
	ENTRY,
	FLIP,
	CUT,
	RUBBISH,
	TWICE,
	HANG_UP,
	WRONGS
};

struct card {
	int line;
	const uint8_t *input;
	size_t left;
	uint32_t cycles, control;
	uint8_t number;
	uint8_t sram[FUZZ_SRAM], memory[MEMORY_BYTES];
	uint32_t changed[DIBBER_BRIDGED_CHUNKS / 32];
	struct dibber_admin_command slots[DIBBER_SLOTS];
	uint32_t queue; /* the administrator's, bus address */
	uint32_t done;
};

static uint32_t next(struct card *c, unsigned int bytes)
{
	uint32_t value = 0;

	while (bytes-- && c->left) {
		value = value << 8 | *c->input++;
		c->left--;
	}
	return value;
}

static uint32_t crc32c(const uint8_t *data, size_t length)
{
	uint32_t crc = ~0u;

	while (length--) {
		crc ^= *data++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

/* The card ------------------------------------------------------------------------------------- */

static void write_memory(struct card *c, uint32_t address, const void *data, uint32_t length)
{
	uint32_t at = address - DIBBER_BRIDGED_MEMORY;

	if (at >= MEMORY_BYTES || length > MEMORY_BYTES - at)
		return;
	memcpy(c->memory + at, data, length);
	for (uint32_t chunk = at / CHUNK; chunk <= (at + length - 1) / CHUNK; chunk++)
		c->changed[chunk / 32] |= 1u << (chunk % 32);
}

static uint32_t read_register(struct card *c, uint32_t offset)
{
	switch (offset) {
	case DIBBER_HOST_MAGIC:
		return DIBBER_MAGIC;
	case DIBBER_HOST_INTERFACE_VERSION:
		return DIBBER_INTERFACE_VERSION;
	case DIBBER_HOST_INTERFACE_HASH:
		return DIBBER_INTERFACE_HASH;
	case DIBBER_HOST_CLOCK_HZ:
		return CLOCK_HZ;
	case DIBBER_HOST_GEOMETRY:
		return DIBBER_ENDPOINTS | DIBBER_SLOTS << 8 | DIBBER_REGIONS << 16 |
		       DIBBER_NODES << 26;
	case DIBBER_HOST_SRAM:
		return FUZZ_SRAM >> 10 | FUZZ_SRAM >> 11 << 16;
	case DIBBER_HOST_MCP_STATE:
		return c->control ? DIBBER_MCP_STATE_IDLE : DIBBER_MCP_STATE_RESET;
	case DIBBER_HOST_MCP_IDENTITY:
		return c->control ? IDENTITY : 0;
	case DIBBER_HOST_CYCLES_LOW:
		return c->cycles += CYCLES_STEP;
	case DIBBER_HOST_KEYS_LEFT:
		return 0xffffffff;
	}
	if (offset >= DIBBER_ENDPOINT_BASE &&
	    (offset - DIBBER_ENDPOINT_BASE) % DIBBER_ENDPOINT_STRIDE ==
		    DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_PROGRAM)
		return c->control ? 1u << DIBBER_DOORBELL_PROGRAM_READY_SHIFT |
					    1u << DIBBER_DOORBELL_PROGRAM_BUS_MASTER_SHIFT
				  : 0;
	return 0;
}

static uint32_t read_word(struct card *c, uint32_t address)
{
	uint32_t word = 0, bank = address - DIBBER_BRIDGE_BASE,
		 at = address - DIBBER_BRIDGED_MEMORY;

	if (bank == DIBBER_BRIDGE_MAGIC)
		return DIBBER_BRIDGE_SIGNATURE;
	if (bank == DIBBER_BRIDGE_MEMORY)
		return MEMORY_BYTES;
	if (bank >= DIBBER_BRIDGE_CHANGED && bank < DIBBER_BRIDGE_CHANGED + sizeof(c->changed))
		return c->changed[(bank - DIBBER_BRIDGE_CHANGED) / 4];
	if (at < MEMORY_BYTES)
		memcpy(&word, c->memory + at, sizeof(word));
	else if (address >= DIBBER_FIRMWARE_BASE &&
		 address - DIBBER_FIRMWARE_BASE < sizeof(c->sram))
		memcpy(&word, c->sram + (address - DIBBER_FIRMWARE_BASE), sizeof(word));
	else
		word = read_register(c, address);
	return word;
}

/* The control program ends an administrator's command: its entry goes into the queue. */
static void complete(struct card *c, uint32_t producer)
{
	struct dibber_queue_entry entry = {
		.cookie = c->slots[(producer - 1) % DIBBER_SLOTS].cookie,
		.kind = DIBBER_ENTRY_COMPLETION,
		.phase = c->done & 64 ? 0 : 1,
		.status = (uint8_t)next(c, 1),
	};

	write_memory(c, c->queue + (c->done++ & 63) * DIBBER_QUEUE_ENTRY_BYTES, &entry,
		     sizeof(entry));
}

static void write_word(struct card *c, uint32_t address, uint32_t word)
{
	uint32_t bank = address - DIBBER_BRIDGE_BASE, at = address - DIBBER_BRIDGED_MEMORY;
	uint32_t slot = address - DIBBER_ENDPOINT_BASE;

	if (bank >= DIBBER_BRIDGE_CHANGED && bank < DIBBER_BRIDGE_CHANGED + sizeof(c->changed))
		c->changed[(bank - DIBBER_BRIDGE_CHANGED) / 4] &= ~word;
	else if (at < MEMORY_BYTES)
		memcpy(c->memory + at, &word, sizeof(word));
	else if (address >= DIBBER_FIRMWARE_BASE &&
		 address - DIBBER_FIRMWARE_BASE < sizeof(c->sram))
		memcpy(c->sram + (address - DIBBER_FIRMWARE_BASE), &word, sizeof(word));
	else if (slot < sizeof(c->slots))
		memcpy((uint8_t *)c->slots + slot, &word, sizeof(word));
	else if (address == DIBBER_HOST_MCP_CONTROL)
		c->control = word;
	else if (address == DIBBER_HOST_ADMIN_CQ_LOW)
		c->queue = word;
	else if (slot == DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_COMMAND_PRODUCER && word)
		complete(c, word);
}

/* The line ------------------------------------------------------------------------------------- */

static bool get_bytes(struct card *c, uint8_t *data, size_t length)
{
	ssize_t n;

	for (; length > 0; data += n, length -= (size_t)n) {
		n = read(c->line, data, length);
		if (n <= 0)
			return false;
	}
	return true;
}

/* What the words of an answer say instead. */
static void lie(struct card *c, enum wrong wrong, uint32_t *words, uint32_t count)
{
	struct dibber_queue_entry entry;
	uint8_t *bytes = (uint8_t *)&entry;

	switch (wrong) {
	case WORD:
		words[next(c, 1) % count] = next(c, 4);
		break;
	case WORDS:
		for (uint32_t i = 0; i < count; i++)
			words[i] = next(c, 1) * 0x01010101u;
		break;
	case STATUS:
		words[count - 1] = next(c, 1);
		break;
	case CHANGE:
		c->changed[next(c, 1) % 8] |= next(c, 4);
		break;
	case ENTRY:
		for (size_t i = 0; i < sizeof(entry); i++)
			bytes[i] = (uint8_t)next(c, 1);
		write_memory(c, c->queue + next(c, 2) % 1024 * DIBBER_QUEUE_ENTRY_BYTES, &entry,
			     sizeof(entry));
		break;
	default:
		break;
	}
}

/* Whether the line is still there. */
static bool reply(struct card *c, const struct dibber_frame *head)
{
	enum wrong wrong = next(c, 1) % WRONGS;
	uint32_t words[DIBBER_FRAME_WORDS + 1], count = 0, crc;
	uint8_t bytes[LONGEST];
	size_t length;

	if (!head->write) {
		for (; count < head->words; count++)
			words[count] = read_word(c, head->address + 4 * count);
	}
	words[count++] = 0;
	lie(c, wrong, words, count);
	memcpy(bytes, head, 4);
	bytes[0] = DIBBER_FRAME_REPLY;
	memcpy(bytes + 4, words, 4 * count);
	length = 4 + 4 * count;
	crc = crc32c(bytes, length);
	memcpy(bytes + length, &crc, 4);
	length += 4;
	if (wrong == FLIP)
		bytes[next(c, 2) % length] ^= (uint8_t)(next(c, 1) | 1);
	if (wrong == CUT)
		length = next(c, 1) % length;
	if (wrong == RUBBISH) {
		for (size_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)next(c, 1);
	}
	for (int times = wrong == TWICE ? 2 : 1; times > 0 && wrong != HANG_UP; times--) {
		if (write(c->line, bytes, length) != (ssize_t)length)
			return false;
	}
	return wrong != HANG_UP;
}

static void *serve(void *argument)
{
	struct card *c = argument;
	uint32_t words[DIBBER_FRAME_WORDS], crc;
	struct dibber_frame head;
	bool there = true;

	while (there && get_bytes(c, (uint8_t *)&head, sizeof(head))) {
		if (head.kind != DIBBER_FRAME_REQUEST || !head.words ||
		    head.words > DIBBER_FRAME_WORDS ||
		    (head.write && !get_bytes(c, (uint8_t *)words, 4u * head.words)) ||
		    !get_bytes(c, (uint8_t *)&crc, 4))
			break;
		for (uint32_t i = 0; head.write && head.number != c->number && i < head.words; i++)
			write_word(c, head.address + 4 * i, words[i]);
		c->number = head.number;
		there = reply(c, &head);
	}
	close(c->line);
	return NULL;
}

/* The program ---------------------------------------------------------------------------------- */

const struct fuzz_form fuzz_form = { .length = 256, .bursts = 6, .burst = 12 };

static void also(struct dib_endpoint *endpoint)
{
	struct dib_event event;

	dib_poll_events(endpoint, &event, 1);
	dib_clock_leave(endpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct card *c = calloc(1, sizeof(*c));
	pthread_t thread;
	char uri[64];
	int other;

	if (!c)
		abort();
	c->input = data;
	c->left = size;
	c->line = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->line < 0 || grantpt(c->line) || unlockpt(c->line))
		abort();
	/* Else the thread would find that nobody has the other end, before the library opens it. */
	other = open(ptsname(c->line), O_RDWR | O_NOCTTY | O_CLOEXEC);
	snprintf(uri, sizeof(uri), "uart:%s?timeout=2", ptsname(c->line));
	if (pthread_create(&thread, NULL, serve, c))
		abort();
	live_program(uri, also);
	close(other);
	pthread_join(thread, NULL);
	check_program();
	free(c);
	return 0;
}
