/* Memory of this process that the card reaches by message: vfio-user's DMA_READ and DMA_WRITE. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "transport.h"
#include "vfio_user.h"
#include "vfio_user_client.h"
#include "vfio_user_memory.h"
#include "vfio_user_socket.h"

int dib_vfio_enter_mapping(struct vfio_user *v, const struct dib_mapping *mapping)
{
	int rc = 0;

	pthread_mutex_lock(&v->map_lock);
	if (v->map_count == v->map_room) {
		size_t room = v->map_room ? 2 * v->map_room : 16;
		struct dib_mapping *maps = realloc(v->maps, room * sizeof(*maps));

		if (maps) {
			v->maps = maps;
			v->map_room = room;
		} else {
			rc = dib_fail(DIB_ERR_NO_MEMORY, "no memory for a mapping");
		}
	}
	if (!rc)
		v->maps[v->map_count++] = *mapping;
	pthread_mutex_unlock(&v->map_lock);
	return rc;
}

void dib_vfio_remove_mapping(struct vfio_user *v, uint64_t iova)
{
	pthread_mutex_lock(&v->map_lock);
	for (size_t i = 0; i < v->map_count; i++) {
		if (v->maps[i].iova == iova) {
			v->maps[i] = v->maps[--v->map_count];
			break;
		}
	}
	pthread_mutex_unlock(&v->map_lock);
}

/* The caller holds map_lock. Returns NULL unless one mapping holds all of [address, address +
 * count). */
static const struct dib_mapping *find_mapping(struct vfio_user *v, uint64_t address, uint64_t count)
{
	for (size_t i = 0; i < v->map_count; i++) {
		const struct dib_mapping *m = &v->maps[i];

		if (address >= m->iova && address - m->iova <= m->size &&
		    count <= m->size - (address - m->iova))
			return m;
	}
	return NULL;
}

/* Copy between the program's memory and `at` of the payload. The kernel copies, by the file that
 * the payload is, because the memory may be gone by now, or read-only, or the file behind it
 * shorter. Then the kernel returns an error, and no signal comes. Bytes before the missing place
 * have been copied. */
static bool take_memory(struct vfio_user *v, size_t at, const uint8_t *memory, size_t length)
{
	return length == 0 || pwrite(v->payload_fd, memory, length, (off_t)at) == (ssize_t)length;
}

static bool give_memory(struct vfio_user *v, size_t at, uint8_t *memory, size_t length)
{
	return length == 0 || pread(v->payload_fd, memory, length, (off_t)at) == (ssize_t)length;
}

int dib_vfio_serve_request(struct vfio_user *v, const struct vfio_user_header *header,
			   size_t length)
{
	struct vfio_user_dma_access access;
	const struct dib_mapping *m;
	uint8_t *copy = NULL;
	uint32_t error = 0;
	size_t data_length = 0;
	int rc;

	if (header->command != VFIO_USER_DMA_READ && header->command != VFIO_USER_DMA_WRITE) {
		error = ENOSYS;
		goto answer;
	}
	if (length < sizeof(access)) {
		error = EINVAL;
		goto answer;
	}
	memcpy(&access, v->payload, sizeof(access));
	if (access.count > MAX_TRANSFER) {
		error = EINVAL;
		goto answer;
	}
	/* The payload buffer becomes the answer of a read. The bytes of a write lie in it already.
	 */
	copy = v->payload + sizeof(access);
	pthread_mutex_lock(&v->map_lock);
	m = find_mapping(v, access.address, access.count);
	if (!m) {
		error = EFAULT;
	} else if (header->command == VFIO_USER_DMA_READ) {
		if (take_memory(v, sizeof(access), m->memory + (access.address - m->iova),
				access.count))
			data_length = access.count;
		else
			error = EFAULT;
	} else {
		uint64_t offset = access.address - m->iova;

		if (length != sizeof(access) + access.count)
			error = EINVAL;
		else if (offset < m->first || offset + access.count > m->last)
			error = EFAULT;
		else if (!give_memory(v, sizeof(access), m->memory + offset, access.count))
			error = EFAULT;
	}
	pthread_mutex_unlock(&v->map_lock);
answer:
	if (header->flags & VFIO_USER_NO_REPLY)
		return 0;
	if (error)
		rc = dib_vfio_send(v, header->id, header->command,
				   VFIO_USER_REPLY | VFIO_USER_ERROR, error, NULL, 0, NULL, 0, -1);
	else
		rc = dib_vfio_send(v, header->id, header->command, VFIO_USER_REPLY, 0, &access,
				   sizeof(access), copy, data_length, -1);
	return rc;
}
