/* The transport to a simulated card: each operation in messages of vfio-user. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "error.h"
#include "transport.h"
#include "vfio_user.h"
#include "vfio_user_client.h"
#include "vfio_user_clock.h"
#include "vfio_user_connection.h"
#include "vfio_user_helper.h"
#include "vfio_user_memory.h"
#include "vfio_user_socket.h"

static struct vfio_user *self(struct dib_transport *transport)
{
	return (struct vfio_user *)transport;
}

/* Ask. For requests whose refusal has no particular meaning. */
static int ask_plainly(struct vfio_user *v, const char *what, uint16_t command, const void *head,
		       size_t head_length, const void *data, size_t data_length, int fd,
		       void *answer, size_t answer_length)
{
	struct waiter w = { .data = answer, .room = answer_length };
	int rc;

	rc = dib_vfio_ask(v, command, head, head_length, data, data_length, fd, &w);
	if (rc)
		return rc;
	if (w.error)
		return dib_fail(DIB_ERR_SYSTEM, "the simulator refused %s: %s", what,
				strerror((int)w.error));
	if (w.length < answer_length)
		return dib_vfio_lose(v, DIB_ERR_PROTOCOL, "the simulator's answer is too short");
	return 0;
}

/* Whether the reply of VERSION offers a capability. The value may be true, or a number that is not
 * 0. */
static bool offered(const char *json, const char *name)
{
	const char *p = strstr(json, name);

	if (!p)
		return false;
	p += strlen(name);
	p += strspn(p, "\" \t\r\n:");
	return *p == 't' || (*p >= '1' && *p <= '9');
}

/* The number that such a capability has, modulo 2³², or 0. */
static uint32_t offered_number(const char *json, const char *name)
{
	const char *p = strstr(json, name);

	if (!p)
		return 0;
	p += strlen(name);
	p += strspn(p, "\" \t\r\n:");
	return (uint32_t)strtoull(p, NULL, 10);
}

/* Whether the server has said that another client has the card: EBUSY, as an answer to VERSION. The
 * server then closes the connection, so sending VERSION may fail before the answer is read. The
 * answer is still in the socket. */
static bool is_busy(struct vfio_user *v)
{
	struct vfio_user_header header;
	ssize_t n = recv(v->socket, &header, sizeof(header), MSG_DONTWAIT);

	return n == (ssize_t)sizeof(header) && header.command == VFIO_USER_VERSION &&
	       header.flags & VFIO_USER_ERROR && header.error == EBUSY;
}

static int negotiate(struct vfio_user *v, const char *path)
{
	static const char capabilities[] =
		"{\"capabilities\":{\"max_msg_fds\":1,\"max_data_xfer_size\":1048576,"
		"\"dibber_clock\":1,\"dibber_preloaded\":0}}";
	struct vfio_user_version version = { .major = 0, .minor = 1 };
	struct {
		struct vfio_user_version version;
		char json[4096];
	} answer;
	struct waiter w = { .data = &answer, .room = sizeof(answer) - 1 };
	int rc;

	rc = dib_vfio_ask(v, VFIO_USER_VERSION, &version, sizeof(version), capabilities,
			  sizeof(capabilities), -1, &w);
	if (rc ? rc == DIB_ERR_LOST && is_busy(v) : w.error == EBUSY)
		return dib_fail(DIB_ERR_IN_USE, "%s: another program has the card", path);
	if (rc)
		return rc;
	if (w.error)
		return dib_fail(DIB_ERR_PROTOCOL, "the simulator refused vfio-user 0.1: %s",
				strerror((int)w.error));
	if (w.length < sizeof(version))
		return dib_fail(DIB_ERR_PROTOCOL, "the simulator's VERSION answer is too short");
	if (answer.version.major != 0)
		return dib_fail(DIB_ERR_PROTOCOL,
				"the simulator speaks vfio-user %u.%u, this library 0.1",
				answer.version.major, answer.version.minor);
	((char *)&answer)[w.length] = 0;
	v->clock = offered(answer.json, "\"dibber_clock\"");
	v->base.random = offered_number(answer.json, "\"dibber_random\"");
	v->base.preloaded = offered_number(answer.json, "\"dibber_preloaded\"");
	return 0;
}

static int region_size(struct vfio_user *v, uint32_t region, uint64_t *bytes)
{
	struct vfio_user_region_info info = { .argsz = sizeof(info), .index = region };
	int rc;

	rc = ask_plainly(v, "region information", VFIO_USER_DEVICE_GET_REGION_INFO, &info,
			 sizeof(info), NULL, 0, -1, &info, sizeof(info));
	*bytes = info.size;
	return rc;
}

static int check_bar(struct vfio_user *v)
{
	uint64_t bytes;
	int rc = region_size(v, VFIO_USER_REGION_BAR0, &bytes);

	if (rc)
		return rc;
	if (bytes < DIBBER_BAR0_SIZE)
		return dib_fail(DIB_ERR_IDENTITY, "BAR 0 has %llu bytes, a Dibber card has %u",
				(unsigned long long)bytes, DIBBER_BAR0_SIZE);
	return 0;
}

static void vfio_user_close(struct dib_transport *transport)
{
	struct vfio_user *v = self(transport);

	dib_vfio_end_helper(v);
	dib_vfio_fini(v);
	free(v);
}

static int vfio_user_open(const char *path, struct dib_transport **transport)
{
	struct vfio_user *v = calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a card");
	v->base.ops = &dib_transport_vfio_user;
	v->base.usable[0] = (struct dib_range){ 0, UINT64_MAX };
	v->base.usable_count = 1;
	v->socket = -1;
	rc = dib_vfio_init(v);
	if (rc) {
		free(v);
		return rc;
	}
	if ((rc = dib_vfio_connect(path, &v->socket)) || (rc = negotiate(v, path)) ||
	    (rc = check_bar(v))) {
		vfio_user_close(&v->base);
		return rc;
	}
	strcpy(v->path, path);
	dib_vfio_set_patience(v);
	*transport = &v->base;
	return 0;
}

static int vfio_user_observe(const char *path, struct dib_transport **transport)
{
	char longer[sizeof(((struct sockaddr_un *)NULL)->sun_path) + sizeof(OBSERVERS)];
	int rc;

	if (strlen(path) + sizeof(OBSERVERS) > sizeof(longer))
		return vfio_user_open(path, transport);
	strcat(strcpy(longer, path), OBSERVERS);
	/* A server that is not ours knows one client only. */
	if (access(longer, F_OK))
		return vfio_user_open(path, transport);
	rc = vfio_user_open(longer, transport);
	if (!rc)
		(*transport)->observes = true;
	return rc;
}

static int region_read(struct vfio_user *v, uint32_t region, uint64_t offset, void *data,
		       size_t length)
{
	struct vfio_user_region_access access = { offset, region, (uint32_t)length };
	struct {
		struct vfio_user_region_access access;
		uint8_t data[DIB_BAR_READ];
	} answer;
	int rc;

	rc = ask_plainly(v, "a read", VFIO_USER_REGION_READ, &access, sizeof(access), NULL, 0, -1,
			 &answer, sizeof(access) + length);
	if (rc)
		return rc;
	memcpy(data, answer.data, length);
	return 0;
}

static int vfio_user_config_read(struct dib_transport *transport, uint64_t offset, void *data,
				 size_t length)
{
	return region_read(self(transport), VFIO_USER_REGION_CONFIG, offset, data, length);
}

static int vfio_user_config_write(struct dib_transport *transport, uint64_t offset,
				  const void *data, size_t length)
{
	struct vfio_user_region_access access = { offset, VFIO_USER_REGION_CONFIG,
						  (uint32_t)length };

	return ask_plainly(self(transport), "a configuration write", VFIO_USER_REGION_WRITE,
			   &access, sizeof(access), data, length, -1, NULL, 0);
}

static int vfio_user_bar_read(struct dib_transport *transport, uint64_t offset, void *data,
			      size_t length)
{
	return region_read(self(transport), VFIO_USER_REGION_BAR0, offset, data, length);
}

static int region_write(struct vfio_user *v, uint32_t region, uint64_t offset, const void *data,
			size_t length)
{
	struct vfio_user_region_access access = { offset, region, (uint32_t)length };

	return dib_vfio_post(v, VFIO_USER_REGION_WRITE, &access, sizeof(access), data, length);
}

static int vfio_user_bar_write(struct dib_transport *transport, uint64_t offset, const void *data,
			       size_t length)
{
	return region_write(self(transport), VFIO_USER_REGION_BAR0, offset, data, length);
}

/* The simulator's memory is not the processor's, so all goes by message. */
static int vfio_user_aperture(struct dib_transport *transport, uint64_t *bytes, uint8_t **memory)
{
	*memory = NULL;
	return region_size(self(transport), VFIO_USER_REGION_BAR2, bytes);
}

static int vfio_user_aperture_read(struct dib_transport *transport, uint64_t offset, void *data,
				   size_t length)
{
	return region_read(self(transport), VFIO_USER_REGION_BAR2, offset, data, length);
}

static int vfio_user_aperture_write(struct dib_transport *transport, uint64_t offset,
				    const void *data, size_t length)
{
	return region_write(self(transport), VFIO_USER_REGION_BAR2, offset, data, length);
}

/* The three messages of a command leave together. */
struct command_messages {
	struct {
		struct vfio_user_header header;
		struct dibber_clock_request request;
	} charge;
	struct {
		struct vfio_user_header header;
		struct vfio_user_region_access access;
		struct dibber_command command;
	} slot;
	struct {
		struct vfio_user_header header;
		struct vfio_user_region_access access;
		uint32_t producer;
	} doorbell;
};

#define DOORBELL_BYTES                                                              \
	(sizeof(struct vfio_user_header) + sizeof(struct vfio_user_region_access) + \
	 sizeof(uint32_t))

_Static_assert(offsetof(struct command_messages, slot) ==
		       sizeof(struct vfio_user_header) + sizeof(struct dibber_clock_request),
	       "the charge ends where the slot begins");
_Static_assert(offsetof(struct command_messages, doorbell) -
			       offsetof(struct command_messages, slot) ==
		       sizeof(struct vfio_user_header) + sizeof(struct vfio_user_region_access) +
			       DIBBER_SLOT_BYTES,
	       "the slot ends where the doorbell begins");

static int vfio_user_submit(struct dib_transport *transport, const struct dib_submission *s)
{
	struct vfio_user *v = self(transport);
	struct command_messages m;
	uint8_t *first = (uint8_t *)&m.slot;

	if (v->clock) {
		first = (uint8_t *)&m.charge;
		m.charge.header = (struct vfio_user_header){
			.command = DIBBER_CLOCK_MESSAGE,
			.size = sizeof(m.charge),
			.flags = VFIO_USER_NO_REPLY,
		};
		m.charge.request = (struct dibber_clock_request){
			.op = DIBBER_CLOCK_OP_CHARGE,
			.endpoint = s->participant,
			.call = s->call,
			.count = 1,
		};
	}
	m.slot.header = (struct vfio_user_header){
		.command = VFIO_USER_REGION_WRITE,
		.size = sizeof(m.slot),
		.flags = VFIO_USER_NO_REPLY,
	};
	m.slot.access = (struct vfio_user_region_access){ s->slot, VFIO_USER_REGION_BAR0,
							  DIBBER_SLOT_BYTES };
	m.slot.command = *s->command;
	m.doorbell.header = (struct vfio_user_header){
		.command = VFIO_USER_REGION_WRITE,
		.size = DOORBELL_BYTES,
		.flags = VFIO_USER_NO_REPLY,
	};
	m.doorbell.access = (struct vfio_user_region_access){
		s->doorbell,
		VFIO_USER_REGION_BAR0,
		sizeof(s->producer),
	};
	m.doorbell.producer = s->producer;
	return dib_vfio_send_bytes(v, first,
				   (size_t)((uint8_t *)&m.doorbell - first) + DOORBELL_BYTES);
}

static int vfio_user_map(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct vfio_user *v = self(transport);
	struct vfio_user_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_USER_MAP_READ |
			 (mapping->last > mapping->first ? VFIO_USER_MAP_WRITE : 0),
		.offset = mapping->fd_offset,
		.address = mapping->iova,
		.size = mapping->size,
	};
	int rc;

	if (mapping->fd < 0) {
		rc = dib_vfio_start_helper(v);
		if (rc)
			return rc;
	}
	rc = dib_vfio_enter_mapping(v, mapping);
	if (rc)
		return rc;
	rc = ask_plainly(v, "a mapping", VFIO_USER_DMA_MAP, &map, sizeof(map), NULL, 0, mapping->fd,
			 NULL, 0);
	if (rc)
		dib_vfio_remove_mapping(v, mapping->iova);
	return rc;
}

static int vfio_user_unmap(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct vfio_user *v = self(transport);
	struct vfio_user_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.address = mapping->iova,
		.size = mapping->size,
	};
	int rc;

	rc = ask_plainly(v, "taking a mapping away", VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap),
			 NULL, 0, -1, NULL, 0);
	/* The memory is the program's again, whatever the server answered. */
	dib_vfio_remove_mapping(v, mapping->iova);
	return rc;
}

static int vfio_user_set_vector(struct dib_transport *transport, unsigned int vector, int fd)
{
	struct vfio_user_irq_set set = {
		.argsz = sizeof(set),
		.flags = VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_TRIGGER,
		.index = VFIO_USER_IRQ_MSIX,
		.start = vector,
		.count = 1,
	};

	return ask_plainly(self(transport), "an interrupt", VFIO_USER_DEVICE_SET_IRQS, &set,
			   sizeof(set), NULL, 0, fd, NULL, 0);
}

/* The end of the socket: dib_vfio_lose() shuts it down, too. */
static unsigned int vfio_user_ends(struct dib_transport *transport, int fds[DIB_ENDS],
				   uint32_t events[DIB_ENDS])
{
	fds[0] = self(transport)->socket;
	events[0] = EPOLLRDHUP;
	return 1;
}

static bool vfio_user_has_ended(struct dib_transport *transport)
{
	struct pollfd end = { .fd = self(transport)->socket, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0;
}

static int vfio_user_serve_card(struct dib_transport *transport, int timeout_ms)
{
	return dib_vfio_serve(self(transport), timeout_ms);
}

static bool vfio_user_has_clock(struct dib_transport *transport)
{
	return self(transport)->clock;
}

static int vfio_user_clock(struct dib_transport *transport,
			   const struct dibber_clock_request *request,
			   struct dibber_clock_reply *reply)
{
	struct vfio_user *v = self(transport);
	struct dibber_clock_request told = *request;
	struct waiter w = { .data = reply, .room = sizeof(*reply) };
	int rc;

	if (!reply)
		return dib_vfio_post(v, DIBBER_CLOCK_MESSAGE, request, sizeof(*request), NULL, 0);
	told.thread = dib_vfio_thread();
	rc = dib_vfio_ask(v, DIBBER_CLOCK_MESSAGE, &told, sizeof(told), NULL, 0, -1, &w);
	if (rc)
		return rc;
	if (w.error)
		return dib_fail(DIB_ERR_CLOCK, "clock operation %u: %s", request->op,
				strerror((int)w.error));
	if (w.length < sizeof(*reply))
		return dib_vfio_lose(v, DIB_ERR_PROTOCOL,
				     "the simulator's clock answer is too short");
	if (reply->error)
		return dib_fail(DIB_ERR_CLOCK, "clock operation %u: %s", request->op,
				strerror((int)reply->error));
	return 0;
}

const struct dib_transport_ops dib_transport_vfio_user = {
	.scheme = "sim",
	.open = vfio_user_open,
	.observe = vfio_user_observe,
	.close = vfio_user_close,
	.config_read = vfio_user_config_read,
	.config_write = vfio_user_config_write,
	.bar_read = vfio_user_bar_read,
	.bar_write = vfio_user_bar_write,
	.aperture = vfio_user_aperture,
	.aperture_read = vfio_user_aperture_read,
	.aperture_write = vfio_user_aperture_write,
	.submit = vfio_user_submit,
	.map = vfio_user_map,
	.unmap = vfio_user_unmap,
	.set_vector = vfio_user_set_vector,
	.ends = vfio_user_ends,
	.has_ended = vfio_user_has_ended,
	.serve = vfio_user_serve_card,
	.has_clock = vfio_user_has_clock,
	.clock = vfio_user_clock,
};
