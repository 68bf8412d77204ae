/* Fuzz target: a program's whole life with a card whose simulator does not keep to the protocol.
 *
 * A server in a thread of its own models a card well enough for the library to come through, and
 * for each message asks the input what to do wrong. With an input of zeros all is right. What must
 * hold: no sanitizer has anything to say, every call returns, and nothing is written but memory
 * that was registered for it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <dibber/dibber.h>

#include "fuzz.h"
#include "program.h"
#include "vfio_user.h"

#define LONGEST	    (1u << 20)	       /* bytes of a message's payload */
#define FLOOD_BYTES (LONGEST + 65536u) /* more than the client announced that it takes */
#define CYCLES_STEP 500000u	       /* the card's clock moves on by that at each look */
#define CLOCK_HZ    125000000u

/* What the server does to a message, when the input says so. */
enum wrong {
	RIGHT,
	FLIP,
	CUT,
	STRETCH,
	WRONG_SIZE,
	WRONG_ID,
	REFUSE,
	TWICE,
	DMA_READ,
	DMA_WRITE,
	UNKNOWN,
	RUBBISH,
	FLOOD,
	HANG_UP,
	WRONGS
};

struct server {
	int listener, socket;
	const uint8_t *input;
	size_t left;
	bool over;	/* hang up after this message: the client may wait for more otherwise */
	bool distorted; /* VERSION was: whether there is a clock is unknown */
	uint32_t cycles, control;
	uint8_t sram[FUZZ_SRAM];
	struct dibber_admin_command slots[DIBBER_SLOTS];
	uint64_t queue; /* the administrator's, bus address */
	uint32_t done;
	uint64_t mapped, mapped_size; /* the last mapping */
	uint8_t *buffer;
};

static uint32_t next(struct server *s, unsigned int bytes)
{
	uint32_t value = 0;

	while (bytes-- && s->left) {
		value = value << 8 | *s->input++;
		s->left--;
	}
	return value;
}

static void put_bytes(struct server *s, const void *data, size_t length)
{
	const uint8_t *p = data;
	ssize_t n;

	for (; length > 0; p += n, length -= (size_t)n) {
		n = send(s->socket, p, length, MSG_NOSIGNAL);
		if (n <= 0) {
			s->over = true;
			return;
		}
	}
}

static bool get_bytes(struct server *s, void *data, size_t length)
{
	char control[CMSG_SPACE(4 * sizeof(int))];
	uint8_t *p = data;
	ssize_t n;

	for (; length > 0; p += n, length -= (size_t)n) {
		struct iovec piece = { p, length };
		struct msghdr message = {
			.msg_iov = &piece,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};

		n = recvmsg(s->socket, &message, MSG_CMSG_CLOEXEC);
		if (n <= 0)
			return false;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
			close(*(int *)CMSG_DATA(c));
	}
	return true;
}

/* Ask the client for its memory: where it is, or nearly, or somewhere. */
static void access_memory(struct server *s, uint16_t command)
{
	struct {
		struct vfio_user_header header;
		struct vfio_user_dma_access access;
		uint8_t data[256];
	} m;
	uint32_t way = next(s, 1), count = next(s, 1);

	memset(&m, 0xdd, sizeof(m));
	m.access.address =
		(way & 1 ? s->mapped : 0) + (way & 2 ? next(s, 2) : 0) - (way & 4 ? next(s, 1) : 0);
	if (way & 8)
		m.access.address += s->mapped_size;
	m.access.count = way & 16 ? (uint64_t)next(s, 4) << (way & 32) : count;
	m.header = (struct vfio_user_header){
		.id = (uint16_t)way,
		.command = command,
		.flags = way & 64 ? VFIO_USER_NO_REPLY : 0,
		.size = (uint32_t)(sizeof(m.header) + sizeof(m.access) +
				   (command == VFIO_USER_DMA_WRITE ? count : 0)),
	};
	if (way & 128)
		m.header.size -= (uint32_t)(next(s, 1) % sizeof(m.access));
	put_bytes(s, &m, m.header.size);
}

/* Send a message, or what the input makes of it. */
static void deliver(struct server *s, struct vfio_user_header header, const void *payload,
		    size_t length)
{
	enum wrong wrong = next(s, 1) % WRONGS;
	uint8_t *m = s->buffer;
	size_t size = sizeof(header) + length, at;

	switch (wrong) {
	case REFUSE:
		header.flags |= VFIO_USER_ERROR;
		header.error = next(s, 1);
		break;
	case WRONG_ID:
		header.id ^= (uint16_t)(next(s, 2) | 1);
		break;
	case DMA_READ:
		access_memory(s, VFIO_USER_DMA_READ);
		break;
	case DMA_WRITE:
		access_memory(s, VFIO_USER_DMA_WRITE);
		break;
	case UNKNOWN:
		access_memory(s, (uint16_t)next(s, 2));
		break;
	case CUT:
		size -= next(s, 1) % (length + 1);
		break;
	case STRETCH:
		memset(m + size, 0xee, 64);
		size += next(s, 1) % 64;
		break;
	default:
		break;
	}
	s->distorted |= header.command == VFIO_USER_VERSION && wrong != RIGHT;
	header.size = (uint32_t)size;
	memcpy(m, &header, sizeof(header));
	memmove(m + sizeof(header), payload, length);
	if (wrong == WRONG_SIZE) {
		header.size = next(s, 4);
		memcpy(m, &header, sizeof(header));
	}
	if (wrong == FLIP) {
		at = next(s, 2) % size;
		m[at] ^= (uint8_t)(next(s, 1) | 1);
		s->over |= at < sizeof(header);
	}
	if (wrong == RUBBISH) {
		for (at = 0; at < size; at++)
			m[at] = (uint8_t)next(s, 1);
	}
	if (wrong == FLOOD) {
		size = FLOOD_BYTES;
		header.size = FLOOD_BYTES;
		memcpy(m, &header, sizeof(header));
	}
	s->over |= wrong == WRONG_SIZE || wrong == RUBBISH || wrong == FLOOD || wrong == HANG_UP ||
		   wrong == WRONG_ID;
	if (wrong != HANG_UP)
		put_bytes(s, m, size);
	if (wrong == TWICE)
		put_bytes(s, m, size);
}

/* The card ------------------------------------------------------------------------------------- */

static uint32_t read_register(struct server *s, uint64_t offset)
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
		return s->control ? DIBBER_MCP_STATE_IDLE : DIBBER_MCP_STATE_RESET;
	case DIBBER_HOST_MCP_IDENTITY:
		return s->control ? IDENTITY : 0;
	case DIBBER_HOST_CYCLES_LOW:
		return s->cycles += CYCLES_STEP;
	case DIBBER_HOST_KEYS_LEFT:
		return 0xffffffff;
	}
	if (offset >= DIBBER_ENDPOINT_BASE &&
	    (offset - DIBBER_ENDPOINT_BASE) % DIBBER_ENDPOINT_STRIDE ==
		    DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_PROGRAM)
		return s->control ? 1u << DIBBER_DOORBELL_PROGRAM_READY_SHIFT |
					    1u << DIBBER_DOORBELL_PROGRAM_BUS_MASTER_SHIFT
				  : 0;
	return 0;
}

static void read_bar(struct server *s, uint64_t offset, uint8_t *data, size_t length)
{
	uint32_t value;

	memset(data, 0, length);
	if (offset >= DIBBER_FIRMWARE_BASE && offset - DIBBER_FIRMWARE_BASE < sizeof(s->sram) &&
	    length <= sizeof(s->sram) - (offset - DIBBER_FIRMWARE_BASE)) {
		memcpy(data, s->sram + (offset - DIBBER_FIRMWARE_BASE), length);
	} else {
		value = read_register(s, offset);
		memcpy(data, &value, length < sizeof(value) ? length : sizeof(value));
	}
}

/* The control program ends an administrator's command: its entry goes into the queue. */
static void complete(struct server *s, const struct dibber_admin_command *command)
{
	struct {
		struct vfio_user_dma_access access;
		struct dibber_queue_entry entry;
	} m = { .entry = {
			.cookie = command->cookie,
			.kind = DIBBER_ENTRY_COMPLETION,
			.phase = s->done & 64 ? 0 : 1,
			.status = (uint8_t)next(s, 1),
		} };
	struct vfio_user_header header = { .command = VFIO_USER_DMA_WRITE,
					   .flags = VFIO_USER_NO_REPLY };

	m.access = (struct vfio_user_dma_access){
		s->queue + (s->done++ & 63) * DIBBER_QUEUE_ENTRY_BYTES,
		sizeof(m.entry),
	};
	deliver(s, header, &m, sizeof(m.access) + sizeof(m.entry));
}

static void write_bar(struct server *s, uint64_t offset, const uint8_t *data, size_t length)
{
	uint32_t value = 0;

	memcpy(&value, data, length < sizeof(value) ? length : sizeof(value));
	if (offset >= DIBBER_FIRMWARE_BASE && offset - DIBBER_FIRMWARE_BASE < sizeof(s->sram) &&
	    length <= sizeof(s->sram) - (offset - DIBBER_FIRMWARE_BASE)) {
		memcpy(s->sram + (offset - DIBBER_FIRMWARE_BASE), data, length);
	} else if (offset == DIBBER_HOST_MCP_CONTROL) {
		s->control = value;
	} else if (offset == DIBBER_HOST_ADMIN_CQ_LOW) {
		s->queue = value;
	} else if (offset >= DIBBER_ENDPOINT_BASE &&
		   offset < DIBBER_ENDPOINT_BASE + sizeof(s->slots) &&
		   length == sizeof(s->slots[0])) {
		memcpy(&s->slots[(offset - DIBBER_ENDPOINT_BASE) / sizeof(s->slots[0])], data,
		       length);
	} else if (offset == DIBBER_ENDPOINT_BASE + DIBBER_DOORBELL_OFFSET +
				     DIBBER_DOORBELL_COMMAND_PRODUCER &&
		   value) {
		s->over |= s->distorted;
		complete(s, &s->slots[(value - 1) % DIBBER_SLOTS]);
	}
}

/* The server ----------------------------------------------------------------------------------- */

static void answer(struct server *s, const struct vfio_user_header *header, uint8_t *payload,
		   size_t length)
{
	static const char version[] = "\0\0\1\0{\"capabilities\":{\"dibber_clock\":1}}";
	struct vfio_user_header reply = { .id = header->id,
					  .command = header->command,
					  .flags = VFIO_USER_REPLY };
	struct vfio_user_region_access access;
	struct vfio_user_region_info info;
	struct dibber_clock_reply clock = { 0 };
	struct vfio_user_dma_map map;

	switch (header->command) {
	case VFIO_USER_VERSION:
		return deliver(s, reply, version, sizeof(version));
	case VFIO_USER_DEVICE_GET_REGION_INFO:
		info = (struct vfio_user_region_info){ .argsz = sizeof(info),
						       .size = DIBBER_BAR0_SIZE };
		return deliver(s, reply, &info, sizeof(info));
	case VFIO_USER_DMA_MAP:
		memcpy(&map, payload, sizeof(map));
		s->mapped = map.address;
		s->mapped_size = map.size;
		return deliver(s, reply, payload, 0);
	case VFIO_USER_REGION_READ:
	case VFIO_USER_REGION_WRITE:
		memcpy(&access, payload, sizeof(access));
		if (header->command == VFIO_USER_REGION_READ)
			read_bar(s, access.offset, payload + sizeof(access), access.count);
		else if (access.region == VFIO_USER_REGION_BAR0)
			write_bar(s, access.offset, payload + sizeof(access),
				  length - sizeof(access));
		if (!(header->flags & VFIO_USER_NO_REPLY))
			deliver(s, reply, payload,
				sizeof(access) + (header->command == VFIO_USER_REGION_READ
							  ? access.count
							  : 0));
		return;
	case DIBBER_CLOCK_MESSAGE:
		if (!(header->flags & VFIO_USER_NO_REPLY))
			deliver(s, reply, &clock, sizeof(clock));
		return;
	}
	deliver(s, reply, payload, length);
}

static void *serve(void *argument)
{
	struct server *s = argument;
	struct vfio_user_header header;
	uint8_t *payload;

	s->socket = accept(s->listener, NULL, NULL);
	if (s->socket < 0)
		return NULL;
	payload = malloc(LONGEST + 4096);
	s->buffer = calloc(1, FLOOD_BYTES);
	while (payload && s->buffer && !s->over && get_bytes(s, &header, sizeof(header)) &&
	       header.size >= sizeof(header) && header.size - sizeof(header) <= LONGEST &&
	       get_bytes(s, payload, header.size - sizeof(header))) {
		if (!(header.flags & VFIO_USER_REPLY))
			answer(s, &header, payload, header.size - sizeof(header));
	}
	close(s->socket);
	free(s->buffer);
	free(payload);
	return NULL;
}

static char folder[] = "/tmp/dibber-fuzz-XXXXXX";

static void remove_folder(void)
{
	rmdir(folder);
}

/* In a folder of its own, because nobody may have made it before. */
static void listen_at(struct server *s, struct sockaddr_un *address)
{
	static bool made;

	if (!made) {
		if (!mkdtemp(folder))
			abort();
		atexit(remove_folder);
		made = true;
	}
	snprintf(address->sun_path, sizeof(address->sun_path), "%s/card", folder);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s->listener, (struct sockaddr *)address, sizeof(*address)) ||
	    listen(s->listener, 1))
		abort();
}

/* The program ---------------------------------------------------------------------------------- */

const struct fuzz_form fuzz_form = { .length = 192, .bursts = 8, .burst = 12 };

static void also(struct dib_endpoint *endpoint)
{
	struct dib_clock clock;

	dib_event_fd(endpoint);
	dib_clock_now(endpoint, &clock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct server *s = calloc(1, sizeof(*s));
	char uri[sizeof(address.sun_path) + 4];
	pthread_t thread;

	if (!s)
		abort();
	s->input = data;
	s->left = size;
	listen_at(s, &address);
	if (pthread_create(&thread, NULL, serve, s))
		abort();
	snprintf(uri, sizeof(uri), "sim:%s", address.sun_path);
	live_program(uri, also);
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(s->listener);
	unlink(address.sun_path);
	check_program();
	free(s);
	return 0;
}
