/* Whether memory may be read or written. The kernel is asked, so that no byte of it is touched. A
 * mapping may change after the answer. Code that copies from or to the memory has to expect that
 * (vfio_user_memory.c). */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "error.h"
#include "protection.h"

#define MAPS "/proc/self/maps"

/* Linux 6.11, include/uapi/linux/fs.h: a query of one mapping, without the text of all. */
struct query {
	uint64_t size, flags, address;
	uint64_t start, end, rights, page_size, offset, inode;
	uint32_t device_major, device_minor, name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY	       _IOWR('f', 17, struct query)
#define QUERY_READABLE 1u
#define QUERY_WRITABLE 2u

static int refuse(uint64_t at, bool writable)
{
	return dib_fail(DIB_ERR_ARGUMENT, "memory at 0x%llx cannot be %s", (unsigned long long)at,
			writable ? "written, as the rights would allow" : "read");
}

/* `*why` is ENOTTY if the kernel does not know the query. */
static int ask(int fd, uint64_t begin, uint64_t end, bool writable, int *why)
{
	uint64_t needed = QUERY_READABLE | (writable ? QUERY_WRITABLE : 0);

	*why = 0;
	for (uint64_t at = begin; at < end;) {
		struct query query = { .size = sizeof(query), .address = at };

		if (ioctl(fd, QUERY, &query) < 0) {
			*why = errno;
			return *why == ENOENT ? refuse(at, writable) : 0;
		}
		if ((query.rights & needed) != needed)
			return refuse(at, writable);
		at = query.end;
	}
	return 0;
}

/* The text has a line for each mapping, in ascending order: "7f0000000000-7f0000001000 rw-p …"
 * (proc_pid_maps(5)). */
static int read_text(int fd, uint64_t begin, uint64_t end, bool writable)
{
	unsigned long long first, last;
	FILE *file = fdopen(fd, "r");
	char line[512], rights[5];
	uint64_t at = begin;
	bool whole = true;

	if (!file) {
		close(fd);
		return dib_fail(DIB_ERR_NO_MEMORY, MAPS ": %s", strerror(errno));
	}
	while (at < end && fgets(line, sizeof(line), file)) {
		bool head = whole;

		/* A path may be longer than `line`. */
		whole = strchr(line, '\n') != NULL;
		if (!head || sscanf(line, "%llx-%llx %4s", &first, &last, rights) != 3 ||
		    last <= at)
			continue;
		if (first > at || rights[0] != 'r' || (writable && rights[1] != 'w'))
			break;
		at = last;
	}
	fclose(file);
	return at < end ? refuse(at, writable) : 0;
}

int dib_check_memory(const void *memory, uint64_t length, bool writable)
{
	uint64_t begin = (uintptr_t)memory, end = begin + length;
	int fd = open(MAPS, O_RDONLY | O_CLOEXEC), why, rc;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return dib_fail(DIB_ERR_NO_MEMORY, MAPS ": %s", strerror(errno));
	/* Without /proc nothing can be checked. */
	if (fd < 0)
		return 0;
	rc = ask(fd, begin, end, writable, &why);
	if (rc || !why) {
		close(fd);
		return rc;
	}
	return read_text(fd, begin, end, writable);
}
