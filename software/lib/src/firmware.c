/* Loading and reading the control program. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin_queue.h"
#include "card.h"
#include "error.h"
#include "halt.h"
#include "transport.h"

#include "../../driver/ring_nonce.h"

#define LINE		    64u		 /* bytes written at once: a write-combined line */
#define READ		    DIB_BAR_READ /* bytes read at once; the library waits for each read */
#define FILE_BYTES	    (8u * (DIBBER_SRAM_MAX + 64u)) /* no file of images is longer */
#define START_CYCLES_PER_HZ 50u /* the control program has 1/50 s of the card's time to start */

/* CRC-32 of IEEE 802.3, as in zlib. */
static uint32_t crc32(const uint8_t *data, size_t length)
{
	uint32_t crc = ~0u;

	while (length--) {
		crc ^= *data++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* Read a whole file. The caller frees it. */
static int read_file(const char *path, size_t limit, uint8_t **data, size_t *length)
{
	/* Without O_NONBLOCK a pipe of this name would stop the program. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat found;
	uint8_t *buffer;
	FILE *file;

	if (fd >= 0 && !fstat(fd, &found) && !S_ISREG(found.st_mode)) {
		close(fd);
		return dib_fail(DIB_ERR_FIRMWARE_FILE, "%s is not a file", path);
	}
	file = fd < 0 ? NULL : fdopen(fd, "rb");
	if (!file) {
		int why = errno;

		if (fd >= 0)
			close(fd);
		return dib_fail(why == EMFILE || why == ENFILE || why == ENOMEM ? DIB_ERR_NO_MEMORY
										: DIB_ERR_NOT_FOUND,
				"%s: %s", path, strerror(why));
	}
	buffer = malloc(limit + 1);
	if (!buffer) {
		fclose(file);
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for %s", path);
	}
	*length = fread(buffer, 1, limit + 1, file);
	if (ferror(file)) {
		int why = errno;

		fclose(file);
		free(buffer);
		return dib_fail(DIB_ERR_FIRMWARE_FILE, "%s: %s", path, strerror(why));
	}
	fclose(file);
	*data = buffer;
	return 0;
}

/* An image in a file: its header, and what goes into SRAM. */
struct image {
	struct dibber_firmware_header header;
	const uint8_t *body;
};

/* The CRC of a header covers the header from `entry` on, and the image. */
static uint32_t image_crc(const uint8_t *file, uint32_t bytes)
{
	const size_t first = offsetof(struct dibber_firmware_header, entry);

	return crc32(file + first, sizeof(struct dibber_firmware_header) - first + bytes);
}

/* Check the image that begins at `at` of a file of `length` bytes. No value is used before it is
 * checked. */
static int check_image(const char *path, const uint8_t *file, size_t at, size_t length,
		       struct image *image)
{
	struct dibber_firmware_header *header = &image->header;
	size_t left = length - at;
	uint32_t crc;

	if (left < sizeof(*header))
		return at ? dib_fail(DIB_ERR_FIRMWARE_FILE,
				     "%s is too long: %zu bytes follow its last image", path, left)
			  : dib_fail(DIB_ERR_FIRMWARE_FILE,
				     "%s: %zu bytes are no control program image", path, left);
	memcpy(header, file + at, sizeof(*header));
	left -= sizeof(*header);
	image->body = file + at + sizeof(*header);
	if (header->magic != DIBBER_FIRMWARE_MAGIC)
		return dib_fail(
			DIB_ERR_FIRMWARE_FILE,
			"%s has 0x%08x at byte %zu, a control program image begins with 0x%08x",
			path, header->magic, at, DIBBER_FIRMWARE_MAGIC);
	if (header->version != DIBBER_INTERFACE_VERSION || header->hash != DIBBER_INTERFACE_HASH)
		return dib_fail(
			DIB_ERR_VERSION,
			"%s was built for interface %u.%u (hash %08x), card and library have %u.%u (hash %08x)",
			path, header->version >> 16, header->version & 0xffff, header->hash,
			DIBBER_INTERFACE_VERSION >> 16, DIBBER_INTERFACE_VERSION & 0xffff,
			DIBBER_INTERFACE_HASH);
	if (header->bytes == 0 || header->bytes % 4 || header->bytes > DIBBER_SRAM_MAX ||
	    header->identity == 0)
		return dib_fail(DIB_ERR_FIRMWARE_FILE, "%s: %u bytes and identity 0x%x cannot be",
				path, header->bytes, header->identity);
	if (left < header->bytes)
		return dib_fail(DIB_ERR_FIRMWARE_FILE,
				"%s is truncated: a header promises %u bytes, %zu follow", path,
				header->bytes, left);
	if (header->entry)
		return dib_fail(DIB_ERR_FIRMWARE_FILE,
				"%s has its entry at 0x%x: a processor begins at 0", path,
				header->entry);
	crc = image_crc(file + at, header->bytes);
	if (crc != header->crc)
		return dib_fail(DIB_ERR_FIRMWARE_FILE,
				"%s is damaged: CRC %08x, its header says %08x", path, crc,
				header->crc);
	return 0;
}

/* Check each image of a file, and choose the first one that this card can run. */
static int choose_image(struct dib_card *card, const char *path, const uint8_t *file, size_t length,
			struct image *chosen)
{
	const struct dib_card_info *here = &card->fixed;
	uint32_t missing = 0;
	struct image image;
	char sizes[64] = "";
	size_t at = 0;
	bool found = false;
	int rc;

	do {
		rc = check_image(path, file, at, length, &image);
		if (rc)
			return rc;
		at += sizeof(image.header) + image.header.bytes;
		if (strlen(sizes) + 20 < sizeof(sizes))
			sprintf(sizes + strlen(sizes), "%s%.10g", sizes[0] ? ", " : "",
				image.header.sram / 1024.);
		if (image.header.sram != here->sram_bytes || found)
			continue;
		missing = image.header.features & ~here->features;
		found = !missing;
		*chosen = image;
	} while (at < length);
	if (!found && missing)
		return dib_fail(
			DIB_ERR_FIRMWARE_FILE,
			"%s has an image for %u KiB of SRAM that needs features 0x%x, which this card "
			"does not have",
			path, here->sram_bytes >> 10, missing);
	if (!found)
		return dib_fail(DIB_ERR_FIRMWARE_FILE,
				"%s has images for cards with %s KiB of SRAM, this card has %u KiB",
				path, sizes, here->sram_bytes >> 10);
	if (chosen->header.bytes > here->image_limit)
		return dib_fail(DIB_ERR_FIRMWARE_FILE,
				"%s has an image of %u bytes, this card takes %u at most", path,
				chosen->header.bytes, here->image_limit);
	return 0;
}

static int write_sram(struct dib_card *card, uint32_t offset, const uint8_t *data, size_t length)
{
	int rc = 0;

	for (size_t at = 0; at < length && !rc; at += LINE)
		rc = card->transport->ops->bar_write(card->transport,
						     DIBBER_FIRMWARE_BASE + offset + at, data + at,
						     length - at < LINE ? length - at : LINE);
	return rc;
}

static int read_sram(struct dib_card *card, uint32_t offset, uint8_t *data, size_t length)
{
	int rc = 0;

	for (size_t at = 0; at < length && !rc; at += READ)
		rc = card->transport->ops->bar_read(card->transport,
						    DIBBER_FIRMWARE_BASE + offset + at, data + at,
						    length - at < READ ? length - at : READ);
	return rc;
}

static int compare_image(struct dib_card *card, const struct image *image)
{
	uint32_t bytes = image->header.bytes;
	uint8_t *found = malloc(bytes);
	int rc;

	if (!found)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory to read the image back");
	rc = read_sram(card, 0, found, bytes);
	if (!rc && memcmp(found, image->body, bytes))
		rc = dib_fail(DIB_ERR_FIRMWARE_CRC, "read back with CRC %08x, written with %08x",
			      crc32(found, bytes), crc32(image->body, bytes));
	free(found);
	return rc;
}

static int start(struct dib_card *card, uint32_t expected)
{
	static const char *const states[] = { DIBBER_MCP_STATE_NAMES };
	uint32_t begin, now, state, identity;
	int rc;

	if ((rc = dib_write_register(card, DIBBER_HOST_MCP_CONTROL,
				     1u << DIBBER_HOST_MCP_CONTROL_RUN_SHIFT)) ||
	    (rc = dib_read_register(card, DIBBER_HOST_CYCLES_LOW, &begin)))
		return rc;
	do {
		if ((rc = dib_read_register(card, DIBBER_HOST_MCP_IDENTITY, &identity)) ||
		    (rc = dib_read_register(card, DIBBER_HOST_MCP_STATE, &state)) ||
		    (rc = dib_read_register(card, DIBBER_HOST_CYCLES_LOW, &now)))
			return rc;
		if (identity == expected)
			return 0;
	} while (identity == 0 && state != DIBBER_MCP_STATE_TRAP &&
		 state != DIBBER_MCP_STATE_WATCHDOG && state != DIBBER_MCP_STATE_BUS_MASTER &&
		 now - begin < card->fixed.clock_hz / START_CYCLES_PER_HZ);
	return dib_fail(DIB_ERR_FIRMWARE_START,
			"after %u cycles its identity is 0x%08x, not 0x%08x, and its state %s",
			now - begin, identity, expected,
			state < sizeof(states) / sizeof(states[0]) ? states[state] : "unknown");
}

/* Another program drives the card. Clear the commands that lie there: they are not for the control
 * program that starts now, until the driver has noticed the change. */
static int forget_administrator(struct dib_card *card)
{
	static const uint8_t nothing[LINE];
	int rc = dib_write_register(card, DIBBER_HOST_ADMIN_CQ_ENTRIES, 0);

	for (uint32_t at = 0; at < DIBBER_SLOTS * DIBBER_SLOT_BYTES && !rc; at += LINE)
		rc = card->transport->ops->bar_write(card->transport, dib_slot(0, 0) + at, nothing,
						     LINE);
	return rc;
}

/* Of a card with another administrator, which has loaded a program: the same is as good as loaded.
 */
static int compare_with_running(struct dib_card *card, const struct image *image)
{
	uint32_t identity;
	int rc = dib_read_register(card, DIBBER_HOST_MCP_IDENTITY, &identity);

	if (!rc && identity != image->header.identity)
		rc = dib_fail(DIB_ERR_IN_USE,
			      "the driver has loaded a program with identity 0x%08x, not 0x%08x",
			      identity, image->header.identity);
	return rc;
}

/* Give a node of a ring its nonce, if it has none: a ring without a nonce elects no scrubber, and
 * two equal ones are not told apart (docs/design/ring.md). The number that the card drew for its
 * keys keeps those of two cards apart whose node numbers are the same. */
static int join_ring(struct dib_card *card)
{
	uint32_t nonce;
	int rc;

	if (!(card->fixed.features & 1u << DIBBER_HOST_FEATURES_RING_SHIFT))
		return 0;
	rc = dib_read_register(card, DIBBER_HOST_LINK_NONCE, &nonce);
	if (rc || nonce & 0xffff)
		return rc;
	return dib_write_register(card, DIBBER_HOST_LINK_NONCE,
				  dibber_ring_nonce(card->next_key ^ card->next_key >> 12,
						    card->fixed.node));
}

static int load(struct dib_card *card, const struct image *image)
{
	/* A simulated card may have the image since its reset. It is used once: a program writes
	 * into its data. */
	bool there = card->transport->preloaded == image->header.crc;
	bool ready;
	int rc;

	if (dib_is_administered(card->transport))
		return compare_with_running(card, image);
	card->firmware = card->behind = false;
	card->transport->preloaded = 0;
	if ((rc = dib_write_register(card, DIBBER_HOST_MCP_CONTROL, 0)) ||
	    (!there && (rc = write_sram(card, 0, image->body, image->header.bytes))) ||
	    (rc = dib_program(card, DIB_CARD, &card->halts, &ready)) ||
	    (!there && (rc = compare_image(card, image))) || (rc = join_ring(card)) ||
	    (rc = card->transport->observes ? forget_administrator(card) : dib_admin_open(card)) ||
	    (rc = start(card, image->header.identity)))
		return rc;
	card->firmware = !card->transport->observes;
	return 0;
}

int dib_firmware_load(struct dib_card *card, const char *path)
{
	struct image image = { 0 };
	uint8_t *file;
	size_t length;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!path)
		return dib_fail(DIB_ERR_ARGUMENT, "no file given");
	rc = read_file(path, FILE_BYTES, &file, &length);
	if (rc)
		return rc;
	rc = length > FILE_BYTES ? dib_fail(DIB_ERR_FIRMWARE_FILE,
					    "%s is too long for control program images", path)
				 : choose_image(card, path, file, length, &image);
	if (!rc)
		rc = dib_card_enter(card, DIB_CARD);
	if (!rc) {
		rc = load(card, &image);
		dib_card_leave(card);
	}
	free(file);
	return rc;
}

uint32_t dib_firmware_size(struct dib_card *card)
{
	return dib_check_card(card) ? 0 : card->fixed.sram_bytes;
}

/* Check a copy between memory and SRAM, in either direction, and lock the card. */
static int enter_sram(struct dib_card *card, uint32_t offset, const void *data, size_t length)
{
	int rc = dib_check_card(card);

	if (rc)
		return rc;
	if (!data)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the data given");
	if (offset % 4 || length % 4 || offset > card->fixed.sram_bytes ||
	    length > card->fixed.sram_bytes - offset)
		return dib_fail(
			DIB_ERR_ARGUMENT,
			"%zu bytes at 0x%x are not whole words of the SRAM, which has %u bytes",
			length, offset, card->fixed.sram_bytes);
	return dib_card_enter(card, DIB_CARD);
}

int dib_firmware_read(struct dib_card *card, uint32_t offset, void *data, size_t length)
{
	int rc = enter_sram(card, offset, data, length);

	if (rc)
		return rc;
	rc = read_sram(card, offset, data, length);
	dib_card_leave(card);
	return rc;
}

int dib_firmware_write(struct dib_card *card, uint32_t offset, const void *data, size_t length)
{
	int rc = enter_sram(card, offset, data, length);

	if (rc)
		return rc;
	card->transport->preloaded = 0;
	rc = write_sram(card, offset, data, length);
	dib_card_leave(card);
	return rc;
}
