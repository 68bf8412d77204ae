/* URI to transport. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "error.h"
#include "transport.h"

/* The URI of a card that the Linux driver has is its path. */
#define DRIVER_PATH "/dev/dibber"

static const struct dib_transport_ops *const transports[] = {
	&dib_transport_vfio_user,
	&dib_transport_vfio,
	&dib_transport_uart,
};

static int open_by(const struct dib_transport_ops *ops, const char *path, bool observe,
		   struct dib_transport **transport)
{
	return observe && ops->observe ? ops->observe(path, transport) : ops->open(path, transport);
}

int dib_transport_open(const char *uri, bool observe, struct dib_transport **transport)
{
	if (!strncmp(uri, DRIVER_PATH, strlen(DRIVER_PATH)))
		return open_by(&dib_transport_kernel, uri, observe, transport);
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		size_t length = strlen(transports[i]->scheme);

		if (strncmp(uri, transports[i]->scheme, length) || uri[length] != ':')
			continue;
		return open_by(transports[i], uri + length + 1, observe, transport);
	}
	return dib_fail(DIB_ERR_ARGUMENT,
			"'%s' is no card: it must read sim:PATH_OF_SOCKET, /dev/dibber0, "
			"vfio:0000:01:00.0 or uart:/dev/ttyUSB1",
			uri);
}
