/* Routes to other nodes: those of a file, or those that the card finds itself. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdbool.h>
#include <stdio.h>

#include "provider.h"
#include "routes.h"

#define ATTEMPTS 2u /* scouts to a place that does not answer */

static bool looked; /* the card's network was mapped */

static const char *named_file(void)
{
	char *path = NULL;

	return !fi_param_get_str(&dfi_provider, "routes", &path) && path && *path ? path : NULL;
}

/* A line of the file is `FROM TO PLACE ROUTE`: two nodes, a place in the table, a hexadecimal
 * number as dib_route_set() takes it. */
int dfi_routes_read(struct dib_card *card, unsigned int node)
{
	const char *path = named_file();
	unsigned int from, to, place, route;
	FILE *file;
	int rc = 0, fields = EOF;

	if (!path)
		return 0;
	file = fopen(path, "re");
	if (!file) {
		FI_WARN(&dfi_provider, FI_LOG_DOMAIN, "the file of routes %s: cannot be read\n",
			path);
		return DIB_ERR_NOT_FOUND;
	}
	while (!rc && (fields = fscanf(file, "%u %u %u %x", &from, &to, &place, &route)) == 4)
		if (from == node)
			rc = dib_route_set(card, to, place, route, 1);
	fclose(file);
	if (rc || fields == EOF)
		return rc;
	FI_WARN(&dfi_provider, FI_LOG_DOMAIN, "the file of routes %s: a line is not four numbers\n",
		path);
	return DIB_ERR_ARGUMENT;
}

static void enter(struct dib_card *card, const struct dib_network *network, unsigned int node)
{
	uint32_t routes[DIB_NETWORK_ROUTES];
	int count = dib_network_routes(network, node, routes);

	for (int i = 0; i < count; i++)
		if (dib_route_set(card, node, (unsigned int)i, routes[i], 1))
			return;
}

void dfi_routes_find(struct dib_card *card, unsigned int own, unsigned int node)
{
	struct dib_routes known;
	struct dib_network network;

	if (looked || node == own || named_file())
		return;
	if (dib_routes_get(card, node, &known) || known.valid)
		return;
	looked = true;
	if (dib_network_map(card, ATTEMPTS, &network)) {
		FI_WARN(&dfi_provider, FI_LOG_DOMAIN, "no map of the network: %s\n",
			dib_last_reason());
		return;
	}
	for (unsigned int to = 0; to < DIBBER_NODES; to++)
		if (to != own && network.hosts >> to & 1)
			enter(card, &network, to);
}

void dfi_routes_forget(void)
{
	looked = false;
}
