/* The transport to a card behind a UART: bus accesses in frames, memory by copies, no interrupts.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "transport.h"
#include "uart.h"
#include "uart_line.h"
#include "uart_memory.h"

#define BAUD	    1000000u /* of the boards' bitstreams */
#define TIMEOUT_MS  100u
#define MEMORY_MOST (1u << 24) /* more than any FPGA has */
#define FRAME_BYTES (4u * DIBBER_FRAME_WORDS)

static struct uart *self(struct dib_transport *transport)
{
	return (struct uart *)transport;
}

/* Opening -------------------------------------------------------------------------------------- */

/* Parse "name=NUMBER" up to '&' or the end, and set `text` behind it. */
static bool option(const char **text, const char *name, unsigned long least, unsigned long most,
		   unsigned int *value)
{
	size_t length = strlen(name);
	unsigned long number;
	char *end;

	if (strncmp(*text, name, length) || (*text)[length] != '=' || (*text)[length + 1] < '0' ||
	    (*text)[length + 1] > '9')
		return false;
	number = strtoul(*text + length + 1, &end, 10);
	if ((*end && *end != '&') || number < least || number > most)
		return false;
	*value = (unsigned int)number;
	*text = *end ? end + 1 : end;
	return true;
}

static int parse(struct uart *u, const char *path)
{
	const char *options = strchr(path, '?');

	memcpy(u->port, path, options ? (size_t)(options - path) : strlen(path));
	u->line.baud = BAUD;
	u->line.timeout_ms = TIMEOUT_MS;
	if (!options)
		return 0;
	options++;
	while (*options) {
		if (!option(&options, "baud", 1200, 100000000, &u->line.baud) &&
		    !option(&options, "timeout", 1, 60000, &u->line.timeout_ms))
			return dib_fail(DIB_ERR_ARGUMENT,
					"'%s': baud=RATE and timeout=MILLISECONDS are known",
					options);
	}
	return 0;
}

static bool is_memory(uint32_t bytes)
{
	return bytes == 0 || (!(bytes & (bytes - 1)) && bytes >= 4u * DIBBER_BRIDGED_CHUNKS &&
			      bytes <= MEMORY_MOST);
}

/* Identify the bridge. Undo what a program that was ended may have left. */
static int greet(struct uart *u)
{
	uint32_t found[2], none = 0, all[UART_CHANGED_WORDS];
	int rc;

	_Static_assert(DIBBER_BRIDGE_MEMORY == DIBBER_BRIDGE_MAGIC + 4, "read in one frame");
	rc = dib_uart_read(&u->line, DIBBER_BRIDGE_BASE + DIBBER_BRIDGE_MAGIC, found, 2);
	if (rc)
		return rc;
	if (found[0] != DIBBER_BRIDGE_SIGNATURE || !is_memory(found[1]))
		return dib_fail(
			DIB_ERR_IDENTITY,
			"behind %s is a bridge with signature 0x%08x and %u bytes, a Dibber card's has "
			"0x%08x",
			u->port, found[0], found[1], DIBBER_BRIDGE_SIGNATURE);
	memset(all, 0xff, sizeof(all));
	if ((rc = dib_uart_write(&u->line, DIBBER_BRIDGE_BASE + DIBBER_BRIDGE_HOLD, &none, 1)) ||
	    (rc = dib_uart_write(&u->line, DIBBER_BRIDGE_BASE + DIBBER_BRIDGE_CHANGED, all,
				 UART_CHANGED_WORDS)))
		return rc;
	u->base.copies = true;
	u->base.shared_bytes = found[1];
	u->base.usable[0] =
		(struct dib_range){ DIBBER_BRIDGED_MEMORY, DIBBER_BRIDGED_MEMORY + found[1] };
	u->base.usable_count = 1;
	u->known = calloc(2, (size_t)found[1] + 1);
	if (!u->known)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a copy of the card's");
	u->fetched = u->known + found[1] + 1;
	return 0;
}

static void uart_close(struct dib_transport *transport)
{
	struct uart *u = self(transport);

	while (u->maps)
		dib_uart_remove(u, u->maps->mapping.iova);
	dib_uart_close(&u->line);
	pthread_mutex_destroy(&u->lock);
	free(u->known);
	free(u);
}

static int uart_open(const char *path, struct dib_transport **transport)
{
	struct uart *u = calloc(1, sizeof(*u) + strlen(path) + 1);
	int rc;

	if (!u)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a card");
	u->base.ops = &dib_transport_uart;
	u->line.fd = -1;
	pthread_mutex_init(&u->lock, NULL);
	if ((rc = parse(u, path)) || (rc = dib_uart_open(&u->line, u->port)) || (rc = greet(u))) {
		uart_close(&u->base);
		return rc;
	}
	*transport = &u->base;
	return 0;
}

/* Registers ------------------------------------------------------------------------------------ */

/* There is no configuration space: the bridge's card is always bus master. */
static int uart_config_read(struct dib_transport *transport, uint64_t offset, void *data,
			    size_t length)
{
	(void)transport;
	(void)offset;
	memset(data, 0, length);
	return 0;
}

static int uart_config_write(struct dib_transport *transport, uint64_t offset, const void *data,
			     size_t length)
{
	(void)transport;
	(void)offset;
	(void)data;
	(void)length;
	return 0;
}

/* The library reads and writes whole words only. */
static int uart_bar_read(struct dib_transport *transport, uint64_t offset, void *data,
			 size_t length)
{
	struct uart *u = self(transport);
	uint32_t words[DIBBER_FRAME_WORDS];
	int rc = 0;

	pthread_mutex_lock(&u->lock);
	for (size_t at = 0; at < length && !rc; at += FRAME_BYTES) {
		size_t piece = length - at < FRAME_BYTES ? length - at : FRAME_BYTES;

		rc = dib_uart_read(&u->line, (uint32_t)(offset + at), words, (uint32_t)(piece / 4));
		if (!rc)
			memcpy((uint8_t *)data + at, words, piece);
	}
	pthread_mutex_unlock(&u->lock);
	return rc;
}

/* The caller has the lock. */
static int write_bar(struct uart *u, uint64_t offset, const void *data, size_t length)
{
	uint32_t words[DIBBER_FRAME_WORDS];
	int rc = 0;

	for (size_t at = 0; at < length && !rc; at += FRAME_BYTES) {
		size_t piece = length - at < FRAME_BYTES ? length - at : FRAME_BYTES;

		memcpy(words, (const uint8_t *)data + at, piece);
		rc = dib_uart_write(&u->line, (uint32_t)(offset + at), words,
				    (uint32_t)(piece / 4));
	}
	return rc;
}

/* Any register may be a doorbell: the memory that the card then reads has to be there. */
static int uart_bar_write(struct dib_transport *transport, uint64_t offset, const void *data,
			  size_t length)
{
	struct uart *u = self(transport);
	int rc;

	pthread_mutex_lock(&u->lock);
	rc = dib_uart_push(u);
	if (!rc)
		rc = write_bar(u, offset, data, length);
	pthread_mutex_unlock(&u->lock);
	return rc;
}

static int uart_submit(struct dib_transport *transport, const struct dib_submission *s)
{
	struct uart *u = self(transport);
	int rc;

	pthread_mutex_lock(&u->lock);
	rc = dib_uart_push(u);
	if (!rc)
		rc = write_bar(u, s->slot, s->command, DIBBER_SLOT_BYTES);
	if (!rc)
		rc = write_bar(u, s->doorbell, &s->producer, sizeof(s->producer));
	pthread_mutex_unlock(&u->lock);
	return rc;
}

/* Memory --------------------------------------------------------------------------------------- */

static int uart_map(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct uart *u = self(transport);
	int rc;

	pthread_mutex_lock(&u->lock);
	rc = dib_uart_enter(u, mapping);
	pthread_mutex_unlock(&u->lock);
	return rc;
}

static int uart_unmap(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct uart *u = self(transport);
	int rc;

	pthread_mutex_lock(&u->lock);
	rc = dib_uart_pull(u);
	dib_uart_remove(u, mapping->iova);
	pthread_mutex_unlock(&u->lock);
	return rc;
}

/* Interrupts and waiting ----------------------------------------------------------------------- */

static int uart_set_vector(struct dib_transport *transport, unsigned int vector, int fd)
{
	(void)vector;
	(void)fd;
	return dib_fail(DIB_ERR_SYSTEM, "no interrupt comes through %s: dib_wait() looks by itself",
			self(transport)->port);
}

/* One exchange takes longer than any time that could be waited for between two. */
static int uart_serve(struct dib_transport *transport, int timeout_ms)
{
	struct uart *u = self(transport);
	int rc;

	(void)timeout_ms;
	pthread_mutex_lock(&u->lock);
	rc = dib_uart_pull(u);
	if (!rc)
		rc = dib_uart_push(u);
	pthread_mutex_unlock(&u->lock);
	return rc;
}

const struct dib_transport_ops dib_transport_uart = {
	.scheme = "uart",
	.open = uart_open,
	.close = uart_close,
	.config_read = uart_config_read,
	.config_write = uart_config_write,
	.bar_read = uart_bar_read,
	.bar_write = uart_bar_write,
	.submit = uart_submit,
	.map = uart_map,
	.unmap = uart_unmap,
	.set_vector = uart_set_vector,
	.serve = uart_serve,
};
