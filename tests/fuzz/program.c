/* The program that the fuzz targets of the library let live with a card that does not keep to the
 * protocol. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "program.h"

#define GUARD 4096u

static uint8_t store[3 * GUARD]; /* what is registered begins inside, and ends there */

/* An open card, an endpoint, a registered region, the end without an error. */
enum { CARD, ENDPOINT, REGION, END };
struct fuzz_reached fuzz_reached[] = {
	[CARD] = { "card", 0 },
	[ENDPOINT] = { "endpoint", 0 },
	[REGION] = { "region", 0 },
	[END] = { "end", 0 },
	{ NULL, 0 },
};

/* CRC-32 of IEEE 802.3. */
static uint32_t crc32(const void *bytes, size_t length)
{
	const uint8_t *data = bytes;
	uint32_t crc = ~0u;

	while (length--) {
		crc ^= *data++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* The path of a control program image that the library believes; made once, and gone with this
 * process. */
static const char *image(void)
{
	static char path[64];
	struct {
		struct dibber_firmware_header header;
		uint8_t body[IMAGE_BYTES];
	} file = { .header = {
			   .magic = DIBBER_FIRMWARE_MAGIC,
			   .version = DIBBER_INTERFACE_VERSION,
			   .hash = DIBBER_INTERFACE_HASH,
			   .bytes = IMAGE_BYTES,
			   .sram = FUZZ_SRAM,
			   .identity = IDENTITY,
		   } };
	int fd;

	if (!path[0]) {
		const size_t first = offsetof(struct dibber_firmware_header, entry);

		file.header.crc = crc32((uint8_t *)&file + first, sizeof(file) - first);
		fd = memfd_create("image", MFD_CLOEXEC);
		if (fd < 0 || write(fd, &file, sizeof(file)) != sizeof(file))
			abort();
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	return path;
}

/* Whatever fails: what was opened is closed. */
static void live(struct dib_card *card, void (*also)(struct dib_endpoint *endpoint))
{
	struct dib_delivery delivery = { .node = 1 };
	struct dib_completion completion;
	struct dib_endpoint *endpoint;
	struct dib_region *region;
	struct dib_card_info info;

	dib_card_info(card, &info);
	if (dib_firmware_load(card, image()) || dib_endpoint_open(card, 1, NULL, &endpoint))
		return;
	fuzz_reached[ENDPOINT].count++;
	if (dib_register(endpoint, store + GUARD + 3, GUARD - 6,
			 DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_REMOTE_WRITE, &region) == 0) {
		fuzz_reached[REGION].count++;
		dib_put(endpoint, &delivery, dib_key(region), 0, dib_key(region), 64, 8);
		dib_wait(endpoint, 1000);
		dib_poll(endpoint, &completion, 1);
		also(endpoint);
		fuzz_reached[END].count += dib_unregister(region) == 0;
	}
	dib_endpoint_close(endpoint);
}

void live_program(const char *uri, void (*also)(struct dib_endpoint *endpoint))
{
	struct dib_card *card;

	memset(store, 0x55, sizeof(store));
	if (dib_open(uri, NULL, &card) == 0) {
		fuzz_reached[CARD].count++;
		live(card, also);
		dib_close(card);
	}
}

void check_program(void)
{
	for (size_t i = 0; i < sizeof(store); i++) {
		if ((i < GUARD + 3 || i >= 2 * GUARD - 3) && store[i] != 0x55)
			abort();
	}
}
