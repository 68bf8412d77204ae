/* The flash that the card's FPGA is configured from. All serial NOR flashes know the commands that
 * are used here. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>
#include <time.h>

#include "card.h"
#include "clock.h"
#include "error.h"
#include "flash_parts.h"
#include "transport.h"

enum command {
	PROGRAM = 0x02,
	READ = 0x03,
	STATUS = 0x05,
	ENABLE = 0x06,
	IDENTITY = 0x9f,
	ERASE = 0xd8,
	PROGRAM4 = 0x12,
	READ4 = 0x13,
	ERASE4 = 0xdc, /* with addresses of 4 bytes */
	NOTHING = 0xff,
};

#define BUSY 1u /* bits of the status register */

#define NARROW	(1u << 24) /* bytes that an address of 3 bytes reaches */
#define LOOKS	100000u	   /* polls of a transfer of at most 513 bytes */
#define LOOK_NS 200000
#define SECONDS 10u /* no flash takes longer to erase a sector */

static const uint8_t wide_command[] = { [PROGRAM] = PROGRAM4, [READ] = READ4, [ERASE] = ERASE4 };

/* Transfers ------------------------------------------------------------------------------------ */

/* Send a command and `length` bytes of the card's buffer. `last` is set to the byte that came last.
 */
static int transfer(struct dib_card *card, unsigned int command, size_t length, uint32_t *last)
{
	uint32_t status;
	int rc;

	rc = dib_write_register(card, DIBBER_HOST_FLASH_TRANSFER,
				command << DIBBER_HOST_FLASH_TRANSFER_COMMAND_SHIFT |
					(uint32_t)length << DIBBER_HOST_FLASH_TRANSFER_BYTES_SHIFT);
	for (unsigned int look = 0; look < LOOKS && !rc; look++) {
		rc = dib_read_register(card, DIBBER_HOST_FLASH_STATUS, &status);
		if (rc || status & 1u << DIBBER_HOST_FLASH_STATUS_BUSY_SHIFT)
			continue;
		if (status & 1u << DIBBER_HOST_FLASH_STATUS_REFUSED_SHIFT)
			return dib_fail(
				DIB_ERR_FLASH,
				"the card did not send command 0x%02x to the flash: it was locked again",
				command);
		if (last)
			*last = status >> DIBBER_HOST_FLASH_STATUS_LAST_SHIFT & 0xff;
		return 0;
	}
	return rc ? rc : dib_fail(DIB_ERR_FLASH, "the transfer with the flash did not end");
}

/* The same, followed by an address and data, together at most a buffer. Returns the place of the
 * data in the buffer, or an error. */
static int transfer_at(struct dib_card *card, unsigned int command, uint32_t address,
		       const uint8_t *data, size_t length)
{
	uint8_t buffer[DIBBER_FLASH_BYTES] = { 0 };
	bool wide = card->flash_bytes > NARROW;
	size_t head = 0;
	int rc;

	for (unsigned int shift = wide ? 32 : 24; shift; shift -= 8)
		buffer[head++] = (uint8_t)(address >> (shift - 8));
	if (data)
		memcpy(buffer + head, data, length);
	rc = card->transport->ops->bar_write(card->transport, DIBBER_FLASH_BUFFER, buffer,
					     ((data ? head + length : head) + 3) / 4 * 4);
	if (!rc)
		rc = transfer(card, wide ? wide_command[command] : command, head + length, NULL);
	return rc ? rc : (int)head;
}

static int read_status(struct dib_card *card, uint32_t *status)
{
	return transfer(card, STATUS, 1, status);
}

static int wait_ready(struct dib_card *card)
{
	const struct timespec pause = { 0, LOOK_NS };
	uint32_t status, now, begin = 0;
	bool begun = false;
	int rc;

	while (!(rc = read_status(card, &status)) && status & BUSY) {
		rc = dib_read_register(card, DIBBER_HOST_CYCLES_LOW, &now);
		if (rc)
			return rc;
		if (!begun)
			begin = now;
		begun = true;
		if (now - begin > (uint64_t)card->fixed.clock_hz * SECONDS)
			return dib_fail(DIB_ERR_FLASH, "the flash is busy for more than %u s",
					SECONDS);
		if (!dib_has_clock(card))
			nanosleep(&pause, NULL);
	}
	return rc;
}

static int lock(struct dib_card *card)
{
	return dib_write_register(card, DIBBER_HOST_FLASH_UNLOCK, 0);
}

/* Identity ------------------------------------------------------------------------------------- */

static int identify(struct dib_card *card, uint32_t *jedec)
{
	uint8_t came[4];
	unsigned int code;
	int rc;

	if (!(card->fixed.features & 1u << DIBBER_HOST_FEATURES_FLASH_SHIFT))
		return dib_fail(DIB_ERR_NOT_FOUND, "this card has no access to a flash");
	/* The primitive STARTUPE2 swallows the first clocks. A former user may also have been ended
	 * in the middle of a command. */
	if ((rc = lock(card)) || (rc = transfer(card, NOTHING, 0, NULL)) ||
	    (rc = wait_ready(card)) || (rc = transfer(card, IDENTITY, 3, NULL)) ||
	    (rc = card->transport->ops->bar_read(card->transport, DIBBER_FLASH_BUFFER, came,
						 sizeof(came))))
		return rc;
	*jedec = (uint32_t)came[0] << 16 | (uint32_t)came[1] << 8 | came[2];
	/* Micron's codes continue at 0x20 for 64 MiB. */
	code = came[2] >= 0x20 ? came[2] - 6u : came[2];
	if (*jedec == 0 || *jedec == 0xffffff || code < 0x11 || code > 0x1f)
		return dib_fail(DIB_ERR_FLASH, "the flash answers with identity %06x", *jedec);
	card->flash_bytes = 1u << code;
	card->flash_jedec = *jedec;
	return 0;
}

/* Lock the card, and identify its flash. */
static int enter(struct dib_card *card, uint32_t *jedec)
{
	uint32_t ignored;
	int rc;

	rc = dib_check_card(card);
	if (!rc)
		rc = dib_card_enter(card, DIB_CARD);
	if (rc)
		return rc;
	if (jedec || !card->flash_bytes)
		rc = identify(card, jedec ? jedec : &ignored);
	if (rc)
		dib_card_leave(card);
	return rc;
}

int dib_flash_info(struct dib_card *card, struct dib_flash_info *info)
{
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!info)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the answer given");
	rc = enter(card, &info->jedec);
	if (rc)
		return rc;
	info->bytes = card->flash_bytes;
	rc = read_status(card, &info->status);
	dib_card_leave(card);
	return rc;
}

/* Ranges --------------------------------------------------------------------------------------- */

/* As enter(), and check that the bytes exist. With `allowed`, also check that they may be changed,
 * in units of `unit`. */
static int enter_range(struct dib_card *card, uint32_t address, size_t length, uint32_t unit,
		       bool allowed)
{
	uint64_t end = (uint64_t)address + length;
	int rc = enter(card, NULL);

	if (rc)
		return rc;
	/* Check the length alone first: the sum may exceed 2^64. */
	if (length > card->flash_bytes || end > card->flash_bytes)
		rc = dib_fail(DIB_ERR_ARGUMENT, "the flash has %u bytes: there are no %zu at 0x%x",
			      card->flash_bytes, length, address);
	else if (address % unit || (allowed && unit == DIB_FLASH_SECTOR && length % unit))
		rc = dib_fail(DIB_ERR_ARGUMENT, "%zu bytes at 0x%x are no whole units of %u",
			      length, address, unit);
	else if (allowed && (address < card->flash_first || end > card->flash_last))
		rc = dib_fail(DIB_ERR_ARGUMENT,
			      "%zu bytes at 0x%x are outside of what dib_flash_allow() allowed",
			      length, address);
	if (rc)
		dib_card_leave(card);
	return rc;
}

int dib_flash_allow(struct dib_card *card, uint32_t address, uint32_t length)
{
	int rc = enter_range(card, address, length, DIB_FLASH_SECTOR, false);

	if (rc)
		return rc;
	card->flash_first = address;
	card->flash_last = (uint64_t)address + length;
	dib_card_leave(card);
	return 0;
}

int dib_flash_read(struct dib_card *card, uint32_t address, void *data, size_t length)
{
	const size_t most = DIBBER_FLASH_BYTES - 4;
	uint8_t *to = data;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!data)
		return dib_fail(DIB_ERR_ARGUMENT, "no place for the data given");
	rc = enter_range(card, address, length, 1, false);
	if (rc)
		return rc;
	for (size_t at = 0; at < length && rc >= 0; at += most) {
		size_t piece = length - at < most ? length - at : most;
		uint8_t buffer[DIBBER_FLASH_BYTES];
		int head = rc = transfer_at(card, READ, (uint32_t)(address + at), NULL, piece);

		size_t end = rc < 0 ? 0 : (size_t)head + piece;

		for (size_t place = 0; place < end && rc >= 0; place += DIB_BAR_READ) {
			size_t left = (end - place + 3) / 4 * 4;

			rc = card->transport->ops->bar_read(
				card->transport, DIBBER_FLASH_BUFFER + place, buffer + place,
				left < DIB_BAR_READ ? left : DIB_BAR_READ);
		}
		if (rc >= 0)
			memcpy(to + at, buffer + head, piece);
	}
	dib_card_leave(card);
	return rc < 0 ? rc : 0;
}

/* Changes -------------------------------------------------------------------------------------- */

/* Run one command that changes the flash, and wait for its end. */
static int change(struct dib_card *card, unsigned int command, uint32_t address,
		  const uint8_t *data, size_t length)
{
	int rc = transfer(card, ENABLE, 0, NULL);

	if (!rc)
		rc = transfer_at(card, command, address, data, length);
	return rc < 0 ? rc : wait_ready(card);
}

static int unlock(struct dib_card *card)
{
	const struct dib_flash_part *part = dib_flash_part(card->flash_jedec);
	uint32_t status;
	int rc = read_status(card, &status);

	if (!rc && status & part->protect)
		rc = dib_fail(
			DIB_ERR_FLASH,
			"the flash (%s, %06x) is protected: its status is 0x%02x, and bits 0x%02x of it protect",
			part->name, card->flash_jedec, status, part->protect);
	return rc ? rc : dib_write_register(card, DIBBER_HOST_FLASH_UNLOCK, DIBBER_FLASH_KEY);
}

/* Write-protect again in any case. The first error is returned. */
static int leave(struct dib_card *card, int rc)
{
	int locked = rc == DIB_ERR_LOST ? 0 : lock(card);

	dib_card_leave(card);
	return rc ? rc : locked;
}

int dib_flash_erase(struct dib_card *card, uint32_t address, uint32_t length)
{
	int rc = enter_range(card, address, length, DIB_FLASH_SECTOR, true);

	if (rc)
		return rc;
	rc = unlock(card);
	for (uint32_t at = 0; at < length && !rc; at += DIB_FLASH_SECTOR)
		rc = change(card, ERASE, address + at, NULL, 0);
	return leave(card, rc);
}

static bool is_erased(const uint8_t *data, size_t length)
{
	while (length && *data == 0xff)
		data++, length--;
	return !length;
}

int dib_flash_write(struct dib_card *card, uint32_t address, const void *data, size_t length)
{
	const uint8_t *from = data;
	int rc;

	rc = dib_check_card(card);
	if (rc)
		return rc;
	if (!data)
		return dib_fail(DIB_ERR_ARGUMENT, "no data given");
	rc = enter_range(card, address, length, DIB_FLASH_PAGE, true);
	if (rc)
		return rc;
	rc = unlock(card);
	for (size_t at = 0; at < length && !rc; at += DIB_FLASH_PAGE) {
		size_t piece = length - at < DIB_FLASH_PAGE ? length - at : DIB_FLASH_PAGE;

		if (!is_erased(from + at, piece))
			rc = change(card, PROGRAM, (uint32_t)(address + at), from + at, piece);
	}
	return leave(card, rc);
}
