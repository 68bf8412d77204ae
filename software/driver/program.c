// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Loading the control program. The checks are those of libdibber (software/lib/src/firmware.c). */

#include "dibber.h"
#include "ring_nonce.h"

#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/firmware.h>
#include <linux/random.h>

#define FILE_NAME   "dibber/mcp.dibfw"
#define FILE_BYTES  (8 * (DIBBER_SRAM_MAX + 64)) /* no file of images is longer */
#define START_PARTS 50 /* the program has 1/50 s of the card's time to start */

MODULE_FIRMWARE(FILE_NAME);

/* CRC-32 of IEEE 802.3, of the header's rest, from `entry` on, and of the image. */
static u32 image_crc(const u8 *image, u32 bytes)
{
	const size_t first = offsetof(struct dibber_firmware_header, entry);

	return ~crc32_le(~0, image + first, sizeof(struct dibber_firmware_header) - first + bytes);
}

/* Check the image at `image`, which ends `left` bytes on. Nothing in it is believed before. */
static int check_image(struct device *dev, const u8 *image, size_t left,
		       struct dibber_firmware_header *header)
{
	if (left < sizeof(*header)) {
		dev_err(dev, "%s: %zu bytes are no control program image\n", FILE_NAME, left);
		return -EINVAL;
	}
	memcpy(header, image, sizeof(*header));
	left -= sizeof(*header);
	if (header->magic != DIBBER_FIRMWARE_MAGIC) {
		dev_err(dev, "%s: an image begins with 0x%08x, not 0x%08x\n", FILE_NAME,
			header->magic, DIBBER_FIRMWARE_MAGIC);
		return -EINVAL;
	}
	if (header->version != DIBBER_INTERFACE_VERSION || header->hash != DIBBER_INTERFACE_HASH) {
		dev_err(dev,
			"%s was built for interface %08x (hash %08x), the driver has %08x (hash %08x)\n",
			FILE_NAME, header->version, header->hash, DIBBER_INTERFACE_VERSION,
			DIBBER_INTERFACE_HASH);
		return -EINVAL;
	}
	if (!header->bytes || header->bytes % 4 || header->bytes > DIBBER_SRAM_MAX ||
	    !header->identity || header->entry) {
		dev_err(dev, "%s: %u bytes, identity 0x%x and entry 0x%x cannot be\n", FILE_NAME,
			header->bytes, header->identity, header->entry);
		return -EINVAL;
	}
	if (left < header->bytes) {
		dev_err(dev, "%s is truncated: %u bytes promised, %zu follow\n", FILE_NAME,
			header->bytes, left);
		return -EINVAL;
	}
	if (image_crc(image, header->bytes) != header->crc) {
		dev_err(dev, "%s is damaged: its CRC is wrong\n", FILE_NAME);
		return -EINVAL;
	}
	return 0;
}

/* Check every image of the file; the first one that the card can run is chosen. */
static const u8 *choose_image(struct dibber_card *card, const struct firmware *file,
			      struct dibber_firmware_header *chosen)
{
	struct device *dev = &card->pdev->dev;
	struct dibber_firmware_header header;
	const u8 *body = NULL;
	size_t at = 0;
	int rc;

	if (file->size > FILE_BYTES) {
		dev_err(dev, "%s is too long for control program images\n", FILE_NAME);
		return ERR_PTR(-EINVAL);
	}
	do {
		rc = check_image(dev, file->data + at, file->size - at, &header);
		if (rc)
			return ERR_PTR(rc);
		if (!body && header.sram == card->sram_bytes &&
		    !(header.features & ~card->features)) {
			*chosen = header;
			body = file->data + at + sizeof(header);
		}
		at += sizeof(header) + header.bytes;
	} while (at < file->size);
	if (!body || chosen->bytes > card->image_limit) {
		dev_err(dev, "%s has no image for %u KiB of SRAM and features 0x%x\n", FILE_NAME,
			card->sram_bytes >> 10, card->features);
		return ERR_PTR(-EINVAL);
	}
	return body;
}

/* Images are whole words. */
static u32 word_at(const u8 *body, u32 at)
{
	u32 word;

	memcpy(&word, body + at, sizeof(word));
	return word;
}

static int copy_image(struct dibber_card *card, const u8 *body, u32 bytes)
{
	void __iomem *sram = card->bar + DIBBER_FIRMWARE_BASE;
	u32 at;

	for (at = 0; at + 8 <= bytes; at += 8) {
		writeq((u64)word_at(body, at + 4) << 32 | word_at(body, at), sram + at);
		cond_resched();
	}
	if (at < bytes)
		writel(word_at(body, at), sram + at);
	for (at = 0; at < bytes; at += 8) {
		u64 found = at + 8 <= bytes ? readq(sram + at) : readl(sram + at);
		u64 wanted = word_at(body, at);

		if (at + 8 <= bytes)
			wanted |= (u64)word_at(body, at + 4) << 32;
		if (found != wanted) {
			dev_err(&card->pdev->dev, "SRAM does not hold what was written at 0x%x\n",
				at);
			return -EIO;
		}
		cond_resched();
	}
	return 0;
}

static int start(struct dibber_card *card, u32 expected)
{
	u32 begin, now, identity, state;

	dibber_write(card, DIBBER_HOST_MCP_CONTROL, 1u << DIBBER_HOST_MCP_CONTROL_RUN_SHIFT);
	begin = dibber_read(card, DIBBER_HOST_CYCLES_LOW);
	do {
		usleep_range(50, 100);
		identity = dibber_read(card, DIBBER_HOST_MCP_IDENTITY);
		state = dibber_read(card, DIBBER_HOST_MCP_STATE);
		now = dibber_read(card, DIBBER_HOST_CYCLES_LOW);
		if (identity == expected)
			return 0;
	} while (!identity && state != DIBBER_MCP_STATE_TRAP &&
		 state != DIBBER_MCP_STATE_WATCHDOG && state != DIBBER_MCP_STATE_BUS_MASTER &&
		 now - begin < card->clock_hz / START_PARTS);
	dev_err(&card->pdev->dev, "the control program does not run: identity 0x%08x, state %u\n",
		identity, state);
	return -EIO;
}

/* Give a node of a ring its nonce, if it has none, as the library does (docs/design/ring.md). */
static void join_ring(struct dibber_card *card)
{
	if (card->features & 1u << DIBBER_HOST_FEATURES_RING_SHIFT &&
	    !(dibber_read(card, DIBBER_HOST_LINK_NONCE) & 0xffff))
		dibber_write(card, DIBBER_HOST_LINK_NONCE,
			     dibber_ring_nonce(get_random_u32(), card->node));
}

/* Load the program of the firmware file and start it. Nothing on the card changes before the file
 * was checked.
 */
int dibber_program_load(struct dibber_card *card)
{
	struct dibber_firmware_header header;
	const struct firmware *file;
	const u8 *body;
	u32 program;
	int rc;

	rc = request_firmware(&file, FILE_NAME, &card->pdev->dev);
	if (rc)
		return dev_err_probe(&card->pdev->dev, rc, "no %s\n", FILE_NAME);
	body = choose_image(card, file, &header);
	if (IS_ERR(body)) {
		rc = PTR_ERR(body);
		goto out;
	}
	dibber_write(card, DIBBER_HOST_MCP_CONTROL, 0);
	dibber_write(card, DIBBER_HOST_NODE_ID, card->node);
	join_ring(card);
	rc = copy_image(card, body, header.bytes);
	if (rc)
		goto out;
	program = dibber_read(card, dibber_doorbell(0, DIBBER_DOORBELL_PROGRAM));
	card->halts = dibber_field(program, DOORBELL_PROGRAM_HALTS);
	dibber_admin_tell(card);
	rc = start(card, header.identity);
	card->identity = header.identity;
	card->stopped = rc;
out:
	release_firmware(file);
	return rc;
}

/*
 * Halt the program, which empties the region table, and take the card's right to reach memory: what
 * lies in its engines is dropped (docs/design.md, section 4, Bus mastering). The pause is far more
 * than what had begun needs.
 */
void dibber_program_stop(struct dibber_card *card)
{
	card->stopped = true;
	dibber_write(card, DIBBER_HOST_MCP_CONTROL, 0);
	dibber_read(card, DIBBER_HOST_MCP_CONTROL);
	pci_clear_master(card->pdev);
	usleep_range(1000, 2000);
}
