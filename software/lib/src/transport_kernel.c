/*
 * The way to a card that the Linux driver dibber.ko has: /dev/dibberN (docs/driver.md).
 *
 * The driver is the card's administrator. So its commands become calls of the driver
 * (administer()), and an open file is opened for each endpoint. Its window and queues are mapped;
 * from then on commands, completions and events go as on a card of VFIO's, without a system call.
 *
 * To the library mapped memory has bus addresses, as on any card. Here they are names only: the
 * driver is told of addresses of this process, and gives the card others.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../driver/dibber_ioctl.h"
#include "descriptors.h"
#include "error.h"
#include "handle.h"
#include "mapped_bar.h"
#include "transport_kernel.h"

#define NAP_NS 50000 /* between two looks at a queue: what a wait adds to a transfer */

/* What the driver's errno means: the table is in docs/driver.md. */
int dib_driver_error(const char *what)
{
	int why = errno;

	switch (why) {
	case EINVAL:
	case EFAULT:
	case ENOENT:
		return dib_fail(DIB_ERR_ARGUMENT, "%s: the driver says '%s'", what, strerror(why));
	case EPERM:
		return dib_fail(DIB_ERR_FORKED, "%s: another process opened the endpoint", what);
	case EBUSY:
		return dib_fail(DIB_ERR_IN_USE, "%s: another open file has it", what);
	case ENOSPC:
		return dib_fail(DIB_ERR_LIMIT, "%s: all of the card's are in use", what);
	case EDQUOT:
		return dib_fail(DIB_ERR_LIMIT, "%s: above the driver's quota for this user", what);
	case ENOMEM:
		return dib_fail(DIB_ERR_NO_MEMORY, "%s: the system pins no more: see 'ulimit -l'",
				what);
	case ESHUTDOWN:
		return dib_fail(DIB_ERR_HALTED, "%s: the control program was halted", what);
	case EOPNOTSUPP:
		return dib_fail(DIB_ERR_NOT_FOUND, "%s: the driver has found no remote window",
				what);
	case ENODEV:
		return dib_fail(DIB_ERR_LOST, "%s: the driver does not have the card any more",
				what);
	case ETIMEDOUT:
		return dib_fail(DIB_ERR_TIMEOUT, "%s: no answer from the control program", what);
	case EPROTO:
		return dib_fail(DIB_ERR_PROTOCOL, "%s: a wrong answer from the control program",
				what);
	case EIO:
		return dib_fail(DIB_ERR_COMMAND,
				"%s: the control program refused; the kernel's log has its status",
				what);
	default:
		return dib_fail(DIB_ERR_SYSTEM, "%s: %s", what, strerror(why));
	}
}

/* Opening -------------------------------------------------------------------------------------- */

static int open_file(const char *path, int flags)
{
	int fd = dib_fd(open(path, flags | O_CLOEXEC));

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
		return dib_fail(DIB_ERR_NOT_FOUND, "%s: %s: is the driver loaded?", path,
				strerror(errno));
	return dib_fail(DIB_ERR_SYSTEM, "%s: %s", path, strerror(errno));
}

/* Whether library and driver were made for each other. */
static int check_driver(int fd, const char *path)
{
	struct dibber_info info;

	if (ioctl(fd, DIBBER_IOC_INFO, &info) < 0)
		return errno == ENODEV ? dib_driver_error(path)
				       : dib_fail(DIB_ERR_IDENTITY, "%s is no Dibber card", path);
	if (info.abi != DIBBER_ABI || info.interface_version != DIBBER_INTERFACE_VERSION ||
	    info.interface_hash != DIBBER_INTERFACE_HASH)
		return dib_fail(
			DIB_ERR_VERSION,
			"the driver has ABI %u and interface hash %08x, this library %u and %08x",
			info.abi, info.interface_hash, DIBBER_ABI, DIBBER_INTERFACE_HASH);
	return 0;
}

static void close_device(struct kernel_device *k)
{
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++) {
		if (k->endpoints[i] >= 0)
			dib_fd_close(k->endpoints[i]);
	}
	if (k->aperture)
		munmap(k->aperture, DIBBER_APERTURE_BYTES);
	if (k->bar)
		munmap(k->bar, DIBBER_BAR0_SIZE);
	if (k->file >= 0)
		dib_fd_close(k->file);
	pthread_mutex_destroy(&k->lock);
	free(k->path);
	free(k);
}

static int open_device(const char *path, int flags, struct dib_transport **transport)
{
	struct kernel_device *k = calloc(1, sizeof(*k));
	void *bar;
	int rc;

	if (!k)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a card");
	k->base.ops = &dib_transport_kernel;
	k->base.usable[0] = (struct dib_range){ 0, UINT64_MAX };
	k->base.usable_count = 1;
	k->file = -1;
	pthread_mutex_init(&k->lock, NULL);
	for (unsigned int i = 0; i < DIBBER_ENDPOINTS; i++)
		k->endpoints[i] = -1;
	k->path = strdup(path);
	/* Where no endpoint is mapped, memory takes what a call on a closed one still writes. */
	bar = mmap(NULL, DIBBER_BAR0_SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!k->path || bar == MAP_FAILED) {
		close_device(k);
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a card");
	}
	k->bar = bar;
	madvise(bar, DIBBER_BAR0_SIZE, MADV_DONTFORK);
	rc = open_file(path, flags);
	if (rc >= 0) {
		k->file = rc;
		rc = check_driver(k->file, path);
	}
	if (rc < 0) {
		close_device(k);
		return rc;
	}
	*transport = &k->base;
	return 0;
}

static int kernel_open(const char *path, struct dib_transport **transport)
{
	return open_device(path, O_RDWR, transport);
}

static int kernel_observe(const char *path, struct dib_transport **transport)
{
	int rc = open_device(path, O_RDONLY, transport);

	if (!rc)
		(*transport)->observes = true;
	return rc;
}

static void kernel_close(struct dib_transport *transport)
{
	close_device(dib_kernel(transport));
}

/* Registers ------------------------------------------------------------------------------------ */

static int kernel_config_read(struct dib_transport *transport, uint64_t offset, void *data,
			      size_t length)
{
	(void)transport;
	(void)offset;
	memset(data, 0xff, length);
	return dib_fail(DIB_ERR_IN_USE, "the configuration space belongs to the driver");
}

static int kernel_config_write(struct dib_transport *transport, uint64_t offset, const void *data,
			       size_t length)
{
	(void)transport;
	(void)offset;
	(void)data;
	(void)length;
	return dib_fail(DIB_ERR_IN_USE, "the configuration space belongs to the driver");
}

/* The endpoint in whose window [offset, offset + length) lies, if it is open here; else 0, which
 * never is. */
static unsigned int window_of(const struct kernel_device *k, uint64_t offset, size_t length)
{
	uint64_t number;

	if (offset < DIBBER_ENDPOINT_BASE)
		return 0;
	number = (offset - DIBBER_ENDPOINT_BASE) / DIBBER_ENDPOINT_STRIDE;
	if (number >= DIBBER_ENDPOINTS || k->endpoints[number] < 0 ||
	    (offset - DIBBER_ENDPOINT_BASE) % DIBBER_ENDPOINT_STRIDE + length >
		    DIBBER_ENDPOINT_STRIDE)
		return 0;
	return (unsigned int)number;
}

static int read_word(struct kernel_device *k, uint64_t offset, void *data)
{
	struct dibber_register access = { .offset = (uint32_t)offset };

	if (ioctl(k->file, DIBBER_IOC_REGISTER, &access) < 0)
		return errno == EACCES
			       ? dib_fail(DIB_ERR_IN_USE,
					  "offset 0x%llx of BAR 0 is not for this user to read",
					  (unsigned long long)offset)
			       : dib_driver_error("reading a register");
	memcpy(data, &access.value, sizeof(access.value));
	return 0;
}

static int kernel_bar_read(struct dib_transport *transport, uint64_t offset, void *data,
			   size_t length)
{
	const uint64_t program =
		DIBBER_ENDPOINT_BASE + DIBBER_DOORBELL_OFFSET + DIBBER_DOORBELL_PROGRAM;
	struct kernel_device *k = dib_kernel(transport);
	uint32_t magic;
	int rc = 0;

	/* PROGRAM is the same on each page, and asking for it must not wait for other processes. */
	if (offset == program && k->any)
		offset += k->any * DIBBER_ENDPOINT_STRIDE;
	if (window_of(k, offset, length)) {
		if (dib_bar_copy_from(k->bar, offset, data, length) == DIB_GONE)
			rc = read_word(k, DIBBER_HOST_MAGIC, &magic);
		return rc;
	}
	for (size_t at = 0; at < length && !rc; at += sizeof(uint32_t))
		rc = read_word(k, offset + at, (uint8_t *)data + at);
	return rc;
}

static int kernel_bar_write(struct dib_transport *transport, uint64_t offset, const void *data,
			    size_t length)
{
	struct kernel_device *k = dib_kernel(transport);

	if (window_of(k, offset, length)) {
		dib_bar_copy_to(k->bar, offset, data, length);
		return 0;
	}
	/* An endpoint's doorbells before it is opened: the driver sets them. */
	if (offset >= DIBBER_ENDPOINT_BASE + DIBBER_ENDPOINT_STRIDE)
		return 0;
	return dib_fail(DIB_ERR_IN_USE, "only the driver may write to offset 0x%llx of BAR 0",
			(unsigned long long)offset);
}

static int kernel_submit(struct dib_transport *transport, const struct dib_submission *s)
{
	dib_bar_submit(dib_kernel(transport)->bar, s);
	return 0;
}

/* Memory --------------------------------------------------------------------------------------- */

static int kernel_map(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct kernel_device *k = dib_kernel(transport);
	struct named *named = malloc(sizeof(*named));

	if (!named)
		return dib_fail(DIB_ERR_NO_MEMORY, "no memory for a mapping");
	named->mapping = *mapping;
	pthread_mutex_lock(&k->lock);
	named->next = k->names;
	k->names = named;
	pthread_mutex_unlock(&k->lock);
	return 0;
}

static int kernel_unmap(struct dib_transport *transport, const struct dib_mapping *mapping)
{
	struct kernel_device *k = dib_kernel(transport);
	struct named **link, *named;

	pthread_mutex_lock(&k->lock);
	for (link = &k->names; (named = *link) != NULL; link = &named->next) {
		if (named->mapping.iova == mapping->iova) {
			*link = named->next;
			break;
		}
	}
	pthread_mutex_unlock(&k->lock);
	free(named);
	return 0;
}

/* What lies at one of the library's bus addresses, or NULL. With the lock held. */
static uint8_t *find_memory(const struct kernel_device *k, uint64_t iova)
{
	for (const struct named *named = k->names; named; named = named->next) {
		const struct dib_mapping *m = &named->mapping;

		if (iova >= m->iova && iova - m->iova < m->size)
			return m->memory + (iova - m->iova);
	}
	return NULL;
}

/* The administrator's commands: with the lock held --------------------------------------------- */

/* Where an endpoint's window belongs. */
static uint8_t *window_at(const struct kernel_device *k, unsigned int number)
{
	return k->bar + DIBBER_ENDPOINT_BASE + number * DIBBER_ENDPOINT_STRIDE;
}

static void choose_any(struct kernel_device *k)
{
	k->any = 0;
	for (unsigned int i = 1; i < DIBBER_ENDPOINTS; i++) {
		if (k->endpoints[i] >= 0)
			k->any = i;
	}
}

static int map_endpoint(struct kernel_device *k, int fd, const struct dibber_endpoint_open *o,
			uint8_t *queues)
{
	if (mmap(window_at(k, o->number), DIBBER_ENDPOINT_STRIDE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, (off_t)o->window) == MAP_FAILED ||
	    mmap(queues, o->queue_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)o->queues) ==
		    MAP_FAILED)
		return dib_driver_error("mmap of an endpoint");
	return 0;
}

static void unmap_window(struct kernel_device *k, unsigned int number)
{
	/* It keeps its place: nothing else is ever mapped there. */
	if (mmap(window_at(k, number), DIBBER_ENDPOINT_STRIDE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED)
		madvise(window_at(k, number), DIBBER_ENDPOINT_STRIDE, MADV_DONTFORK);
}

static int open_endpoint(struct kernel_device *k, const struct dibber_admin_command *command)
{
	struct dibber_endpoint_open o = {
		.number = command->endpoint,
		.cq_entries = command->cq_entries,
		.eq_entries = command->eq_entries,
	};
	uint8_t *queues = find_memory(k, command->cq_base);
	int fd, rc;

	if (command->endpoint >= DIBBER_ENDPOINTS || k->endpoints[command->endpoint] >= 0 ||
	    !queues)
		return dib_fail(DIB_ERR_ARGUMENT, "endpoint %u", command->endpoint);
	fd = open_file(k->path, O_RDWR);
	if (fd < 0)
		return fd;
	if (ioctl(fd, DIBBER_IOC_ENDPOINT_OPEN, &o) < 0) {
		rc = dib_driver_error("opening an endpoint");
		dib_fd_close(fd);
		return rc;
	}
	rc = map_endpoint(k, fd, &o, queues);
	if (rc) {
		/* What was mapped would hold the endpoint. */
		ioctl(fd, DIBBER_IOC_ENDPOINT_CLOSE);
		unmap_window(k, o.number);
		dib_fd_close(fd);
		return rc;
	}
	k->endpoints[o.number] = fd;
	choose_any(k);
	return 0;
}

/* The driver withdraws its regions as well. The queues stay mapped until their memory is freed; no
 * entry comes there any more. */
static int close_endpoint(struct kernel_device *k, unsigned int number)
{
	int rc = 0;

	if (number >= DIBBER_ENDPOINTS || k->endpoints[number] < 0)
		return 0;
	if (ioctl(k->endpoints[number], DIBBER_IOC_ENDPOINT_CLOSE) < 0 && errno != ENOTCONN)
		rc = dib_driver_error("closing an endpoint");
	unmap_window(k, number);
	dib_fd_close(k->endpoints[number]);
	k->endpoints[number] = -1;
	choose_any(k);
	for (unsigned int i = 0; i < DIBBER_REGIONS; i++) {
		if (k->owners[i] == number)
			k->keys[i] = k->owners[i] = 0;
	}
	return rc;
}

static int add_region(struct kernel_device *k, struct dibber_admin_command *command)
{
	struct dibber_region_add add = { .length = command->length, .rights = command->rights };
	uint8_t *memory = find_memory(k, command->base);

	if (command->page)
		return dib_fail(DIB_ERR_ARGUMENT,
				"regions of scattered pages are absent behind the driver");
	if (command->endpoint >= DIBBER_ENDPOINTS || k->endpoints[command->endpoint] < 0 || !memory)
		return dib_fail(DIB_ERR_ARGUMENT, "a region of endpoint %u", command->endpoint);
	add.address = (uintptr_t)memory;
	if (ioctl(k->endpoints[command->endpoint], DIBBER_IOC_REGION_ADD, &add) < 0)
		return dib_driver_error("registering memory");
	command->key = add.key;
	k->keys[add.key % DIBBER_REGIONS] = add.key;
	k->owners[add.key % DIBBER_REGIONS] = command->endpoint;
	return 0;
}

static int remove_region(struct kernel_device *k, const struct dibber_admin_command *command)
{
	struct dibber_region_remove remove = { .key = command->key };
	unsigned int entry = command->key % DIBBER_REGIONS;
	unsigned int owner = k->owners[entry];

	/* It has ended with its endpoint. */
	if (k->keys[entry] != command->key || k->endpoints[owner] < 0)
		return 0;
	k->keys[entry] = k->owners[entry] = 0;
	if (ioctl(k->endpoints[owner], DIBBER_IOC_REGION_REMOVE, &remove) < 0)
		return dib_driver_error("unregistering memory");
	return 0;
}

static int kernel_administer(struct dib_transport *transport, struct dibber_admin_command *command)
{
	struct kernel_device *k = dib_kernel(transport);
	int rc;

	pthread_mutex_lock(&k->lock);
	switch (command->opcode) {
	case DIBBER_OPCODE_ENDPOINT_OPEN:
		rc = open_endpoint(k, command);
		break;
	case DIBBER_OPCODE_ENDPOINT_CLOSE:
		rc = close_endpoint(k, command->endpoint);
		break;
	case DIBBER_OPCODE_REGION_ADD:
		rc = add_region(k, command);
		break;
	case DIBBER_OPCODE_REGION_REMOVE:
		rc = remove_region(k, command);
		break;
	default:
		rc = dib_fail(DIB_ERR_IN_USE, "the driver is the card's administrator");
	}
	pthread_mutex_unlock(&k->lock);
	return rc;
}

/* Interrupts and waiting ----------------------------------------------------------------------- */

static int kernel_set_vector(struct dib_transport *transport, unsigned int vector, int fd)
{
	struct dibber_eventfd events = { .fd = fd };
	struct kernel_device *k = dib_kernel(transport);
	int rc = 0;

	pthread_mutex_lock(&k->lock);
	if (vector >= DIBBER_ENDPOINTS || k->endpoints[vector] < 0)
		rc = dib_fail(DIB_ERR_ARGUMENT, "no open endpoint has vector %u", vector);
	else if (ioctl(k->endpoints[vector], DIBBER_IOC_EVENTFD, &events) < 0)
		rc = dib_driver_error("DIBBER_IOC_EVENTFD");
	pthread_mutex_unlock(&k->lock);
	return rc;
}

static unsigned int kernel_ends(struct dib_transport *transport, int fds[DIB_ENDS],
				uint32_t events[DIB_ENDS])
{
	fds[0] = dib_kernel(transport)->file;
	events[0] = EPOLLHUP;
	return 1;
}

static bool kernel_has_ended(struct dib_transport *transport)
{
	struct kernel_device *k = dib_kernel(transport);
	struct pollfd poller = { .fd = k->file };
	bool ended = poll(&poller, 1, 0) > 0 && poller.revents & POLLHUP;

	if (ended)
		__atomic_store_n(&k->ended, true, __ATOMIC_RELAXED);
	return ended;
}

/* The card reaches memory by itself, so that there is only to wait. */
static int kernel_serve(struct dib_transport *transport, int timeout_ms)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (__atomic_load_n(&dib_kernel(transport)->ended, __ATOMIC_RELAXED))
		return dib_fail(DIB_ERR_LOST, "the driver does not have the card any more");
	if (timeout_ms > 0)
		nanosleep(&nap, NULL);
	return 0;
}

const struct dib_transport_ops dib_transport_kernel = {
	.scheme = NULL,
	.open = kernel_open,
	.observe = kernel_observe,
	.close = kernel_close,
	.config_read = kernel_config_read,
	.config_write = kernel_config_write,
	.bar_read = kernel_bar_read,
	.bar_write = kernel_bar_write,
	.aperture = dib_kernel_aperture,
	.window_map = dib_kernel_window_map,
	.window_unmap = dib_kernel_window_unmap,
	.submit = kernel_submit,
	.map = kernel_map,
	.unmap = kernel_unmap,
	.administer = kernel_administer,
	.set_vector = kernel_set_vector,
	.ends = kernel_ends,
	.has_ended = kernel_has_ended,
	.serve = kernel_serve,
};
