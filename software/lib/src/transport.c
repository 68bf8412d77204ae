/* URI to transport. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "error.h"
#include "transport.h"

static const struct dib_transport_ops *const transports[] = {
	&dib_transport_vfio_user,
	&dib_transport_vfio,
	&dib_transport_uart,
};

int dib_transport_open(const char *uri, bool observe, struct dib_transport **transport)
{
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		size_t length = strlen(transports[i]->scheme);

		if (strncmp(uri, transports[i]->scheme, length) || uri[length] != ':')
			continue;
		if (observe && transports[i]->observe)
			return transports[i]->observe(uri + length + 1, transport);
		return transports[i]->open(uri + length + 1, transport);
	}
	return dib_fail(DIB_ERR_ARGUMENT,
			"'%s' is no card: it must read sim:PATH_OF_SOCKET, vfio:0000:01:00.0 or "
			"uart:/dev/ttyUSB1",
			uri);
}
