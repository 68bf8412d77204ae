/* Frames over a serial line: struct dibber_frame with its words and CRC. The library sends one
 * frame and waits for its answer. If the answer does not come, or comes damaged, it sends the same
 * frame again. The card executes no write twice. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/serial.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"
#include "error.h"
#include "uart.h"
#include "uart_line.h"

#define ATTEMPTS   5u
#define SILENCE_MS 25  /* the card forgets an incomplete frame after 20 ms */
#define BITS	   10u /* bits of a byte on the line: start, 8 data, stop */
#define LONGEST	   (sizeof(struct dibber_frame) + 4u * (DIBBER_FRAME_WORDS + 2u))

/* CRC-32C, RFC 3720. */
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

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* Opening -------------------------------------------------------------------------------------- */

static int set_up(const struct uart_line *line)
{
	struct serial_struct serial;
	struct termios2 t;

	if (ioctl(line->fd, TCGETS2, &t) < 0)
		return dib_fail(DIB_ERR_NOT_FOUND, "%s is no serial port (%s)", line->port,
				strerror(errno));
	if (flock(line->fd, LOCK_EX | LOCK_NB) < 0 || ioctl(line->fd, TIOCEXCL) < 0)
		return dib_fail(DIB_ERR_IN_USE, "%s: another program has it", line->port);
	/* 8N1, no flow control, all bytes unchanged. */
	t.c_iflag = IGNBRK | IGNPAR;
	t.c_oflag = 0;
	t.c_lflag = 0;
	t.c_cflag = CS8 | CREAD | CLOCAL | BOTHER;
	t.c_ispeed = t.c_ospeed = line->baud;
	t.c_cc[VMIN] = 0;
	t.c_cc[VTIME] = 0;
	if (ioctl(line->fd, TCSETS2, &t) < 0)
		return dib_fail(DIB_ERR_SYSTEM, "%s does not do %u baud: %s", line->port,
				line->baud, strerror(errno));
	/* USB adapters may hold received bytes for 16 ms. Those that can are asked not to. */
	if (ioctl(line->fd, TIOCGSERIAL, &serial) == 0) {
		serial.flags |= (int)ASYNC_LOW_LATENCY;
		ioctl(line->fd, TIOCSSERIAL, &serial);
	}
	ioctl(line->fd, TCFLSH, TCIOFLUSH);
	return 0;
}

int dib_uart_open(struct uart_line *line, const char *port)
{
	int rc;

	line->port = port;
	line->fd = dib_fd(open(port, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
	if (line->fd < 0 && errno == EACCES)
		return dib_fail(DIB_ERR_SYSTEM,
				"%s may not be opened: is the user in its group ('ls -l %s')?",
				port, port);
	if (line->fd < 0)
		return dib_fail(errno == EBUSY ? DIB_ERR_IN_USE : DIB_ERR_NOT_FOUND,
				"no port %s (%s)", port, strerror(errno));
	rc = set_up(line);
	if (rc)
		dib_uart_close(line);
	return rc;
}

void dib_uart_close(struct uart_line *line)
{
	if (line->fd >= 0) {
		ioctl(line->fd, TIOCNXCL);
		dib_fd_close(line->fd);
	}
	line->fd = -1;
}

/* Bytes ---------------------------------------------------------------------------------------- */

static int gone(struct uart_line *line, const char *why)
{
	line->lost = true;
	return dib_fail(DIB_ERR_LOST, "%s is gone (%s): was it unplugged?", line->port, why);
}

/* Wait until the port is ready. Returns 1, 0 when the time is over, or an error. */
static int ready(struct uart_line *line, short what, uint64_t end)
{
	struct pollfd wait = { .fd = line->fd, .events = what };
	uint64_t now = now_ms();
	int n = poll(&wait, 1, now < end ? (int)(end - now) : 0);

	if (n < 0 && errno != EINTR)
		return gone(line, strerror(errno));
	if (n > 0 && !(wait.revents & what))
		return gone(line, "hung up");
	return n > 0;
}

/* Send all bytes. Returns as ready(). */
static int send_bytes(struct uart_line *line, const uint8_t *data, size_t length, uint64_t end)
{
	while (length > 0) {
		int rc = ready(line, POLLOUT, end);
		ssize_t n;

		if (rc < 0 || (!rc && now_ms() >= end))
			return rc;
		n = write(line->fd, data, length);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return gone(line, strerror(errno));
		if (n > 0) {
			data += n;
			length -= (size_t)n;
		}
	}
	return 1;
}

/* Receive all bytes. Returns as ready(). There is a limit of time also for a line on which bytes
 * never stop. */
static int receive_bytes(struct uart_line *line, uint8_t *data, size_t length, uint64_t end)
{
	while (length > 0) {
		int rc = ready(line, POLLIN, end);
		ssize_t n;

		if (rc < 0)
			return rc;
		if (now_ms() >= end)
			return 0;
		n = read(line->fd, data, length);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return gone(line, strerror(errno));
		if (n == 0 && rc)
			return gone(line, "end of file");
		if (n > 0) {
			line->heard = true;
			data += n;
			length -= (size_t)n;
		}
	}
	return 1;
}

/* Drop incoming bytes until none come for a while. Give up on a line where they never stop. */
static int settle(struct uart_line *line)
{
	uint64_t end = now_ms() + 8 * SILENCE_MS;
	uint8_t rest[256];
	int rc;

	do {
		rc = ready(line, POLLIN, now_ms() + SILENCE_MS);
		if (rc > 0 && read(line->fd, rest, sizeof(rest)) == 0)
			return gone(line, "end of file");
	} while (rc > 0 && now_ms() < end);
	return rc < 0 ? rc : 0;
}

/* Frames --------------------------------------------------------------------------------------- */

/* Read until the answer to the frame has come, with `length` bytes after the first word. Bytes
 * before it are skipped. */
static int answer(struct uart_line *line, const uint8_t head[4], uint8_t *reply, size_t length,
		  uint64_t end)
{
	static const size_t first = 4;
	uint8_t wanted[4];
	uint32_t crc;
	int rc;

	memcpy(wanted, head, sizeof(wanted));
	wanted[0] = DIBBER_FRAME_REPLY;
	rc = receive_bytes(line, reply, first, end);
	while (rc > 0 && memcmp(reply, wanted, first)) {
		memmove(reply, reply + 1, first - 1);
		rc = receive_bytes(line, reply + first - 1, 1, end);
	}
	if (rc > 0)
		rc = receive_bytes(line, reply + first, length, end);
	if (rc <= 0)
		return rc;
	memcpy(&crc, reply + first + length - sizeof(crc), sizeof(crc));
	return crc == crc32c(reply, first + length - sizeof(crc));
}

static int give_up(struct uart_line *line)
{
	line->lost = true;
	if (line->opened)
		return dib_fail(
			DIB_ERR_LOST,
			"the card behind %s no longer answers; %u frames were sent again so far",
			line->port, line->repeated);
	if (line->heard)
		return dib_fail(
			DIB_ERR_IDENTITY,
			"the bytes from %s at %u baud are no frames of a Dibber card: another rate "
			"(?baud=), or something else is there",
			line->port, line->baud);
	return dib_fail(
		DIB_ERR_NOT_FOUND,
		"nothing answers at %s at %u baud: another port, another rate (?baud=), or no "
		"bitstream is loaded",
		line->port, line->baud);
}

/* Send a frame until it is answered. Copy `words` words of the answer to `data`, unless NULL. */
static int transact(struct uart_line *line, const uint8_t *frame, size_t length, uint32_t *data,
		    uint32_t words)
{
	uint8_t reply[LONGEST];
	size_t back = 4u * ((data ? words : 0) + 2u);
	/* One byte more than the line can carry in that time. */
	uint64_t patience =
		line->timeout_ms + (length + back + 5u) * BITS * 1000u / line->baud + 1u;
	uint32_t status;

	for (unsigned int attempt = 0; attempt < ATTEMPTS; attempt++) {
		uint64_t end;
		int rc;

		line->repeated += attempt > 0;
		rc = attempt ? settle(line) : 0;
		if (rc < 0)
			return rc;
		end = now_ms() + patience;
		rc = send_bytes(line, frame, length, end);
		if (rc > 0)
			rc = answer(line, frame, reply, back, end);
		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		line->opened = true;
		if (data)
			memcpy(data, reply + 4, 4u * words);
		memcpy(&status, reply + 4 + back - 8, sizeof(status));
		if (status == 0)
			return 0;
		return dib_fail(DIB_ERR_LOST, "the card behind %s does not answer its own host",
				line->port);
	}
	return give_up(line);
}

static int request(struct uart_line *line, uint32_t address, const uint32_t *written,
		   uint32_t *data, uint32_t words)
{
	uint8_t frame[LONGEST];
	struct dibber_frame head = {
		.kind = DIBBER_FRAME_REQUEST,
		.number = ++line->number,
		.write = written != NULL,
		.words = (uint8_t)words,
		.address = address,
	};
	size_t length = sizeof(head);
	uint32_t crc;

	if (line->lost)
		return dib_fail(DIB_ERR_LOST, "the card behind %s was lost", line->port);
	memcpy(frame, &head, sizeof(head));
	if (written) {
		memcpy(frame + length, written, 4u * words);
		length += 4u * words;
	}
	crc = crc32c(frame, length);
	memcpy(frame + length, &crc, sizeof(crc));
	return transact(line, frame, length + sizeof(crc), data, words);
}

int dib_uart_read(struct uart_line *line, uint32_t address, uint32_t *data, uint32_t words)
{
	return request(line, address, NULL, data, words);
}

int dib_uart_write(struct uart_line *line, uint32_t address, const uint32_t *data, uint32_t words)
{
	return request(line, address, data, NULL, words);
}
