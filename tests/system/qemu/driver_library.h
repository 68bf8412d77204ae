/* What the programs that test libdibber on /dev/dibberN have in common. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_TEST_DRIVER_LIBRARY_H
#define DIBBER_TEST_DRIVER_LIBRARY_H

#include <dibber/dibber.h>

#include "driver.h"

/* A card with a program, an endpoint, and memory that is registered with all rights. */
struct end {
	struct dib_card *card;
	struct dib_endpoint *endpoint;
	struct dib_region *region;
	uint8_t *memory;
};

static const char *firmware;

static inline void succeeds(const char *what, int rc)
{
	if (rc >= 0)
		return;
	printf("%s: %s: %s\n", what, dib_strerror(rc), dib_last_reason());
	wrong = 1;
}

static inline void fails(const char *what, int rc, int error)
{
	if (rc == error)
		return;
	printf("%s: %d for %d: %s\n", what, rc, error, rc < 0 ? dib_last_reason() : "success");
	wrong = 1;
}

static inline void open_end(struct end *e, const char *uri, unsigned int node, unsigned int number,
			    uint8_t *memory, size_t bytes)
{
	succeeds("open", dib_open(uri, NULL, &e->card));
	succeeds("node", dib_node_set(e->card, node));
	succeeds("program", dib_firmware_load(e->card, firmware));
	succeeds("endpoint", dib_endpoint_open(e->card, number, NULL, &e->endpoint));
	e->memory = memory;
	succeeds("region", dib_register(e->endpoint, memory, bytes, ALL_RIGHTS, &e->region));
}

#endif
