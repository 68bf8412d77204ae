/* Begin and end: the card, the heap, and the other PEs. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shmem.h"

#define ENDPOINT   1u
#define HEAP_BYTES (1u << 20)
#define MOST_HEAP  (UINT64_C(1) << 40)
#define ATTEMPTS   4u /* scouts to a place that does not answer */
#define SEAT	   "dibber_shmem seat"

struct pe pe;

_Noreturn void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "shmem, PE %u: ", pe.number);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	shmem_global_exit(1);
	abort();
}

void check(int code, const char *what)
{
	if (code < 0)
		fail("%s: %s: %s", what, dib_strerror(code), dib_last_reason());
}

static const char *setting(const char *name, const char *other)
{
	const char *text = getenv(name);

	if ((!text || !*text) && other)
		text = getenv(other);
	return text && *text ? text : NULL;
}

static unsigned int number(const char *name, const char *other, unsigned int most)
{
	const char *text = setting(name, other);
	unsigned long value;
	char *end;

	if (!text)
		fail("%s is not set: start the program with 'dibber run -n N PROGRAM'", name);
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || value > most)
		fail("%s is '%s', not a number from 0 to %u", name, text, most);
	return (unsigned int)value;
}

static uint64_t heap_size(void)
{
	const char *text = setting("SHMEM_SYMMETRIC_SIZE", NULL), *suffixes = "kmgKMG", *suffix;
	unsigned long long value;
	char *end;

	if (!text)
		return HEAP_BYTES;
	errno = 0;
	value = strtoull(text, &end, 10);
	suffix = *end ? strchr(suffixes, *end) : NULL;
	if (errno || *text < '0' || *text > '9' || (*end && (!suffix || end[1])) ||
	    value > MOST_HEAP >> (suffix ? 10 * (1 + (suffix - suffixes) % 3) : 0) || !value)
		fail("SHMEM_SYMMETRIC_SIZE is '%s', not a number of bytes with K, M or G", text);
	return value << (suffix ? 10 * (1 + (suffix - suffixes) % 3) : 0);
}

/* The card ------------------------------------------------------------------------------------- */

/* Lines of FI_DIBBER_ROUTES are `FROM TO PLACE ROUTE`, as `dibber run` writes them. */
static void read_routes(const char *path, uint32_t node)
{
	unsigned int from, to, place, route;
	FILE *file = fopen(path, "re");
	int fields;

	if (!file)
		fail("the file of routes %s cannot be read", path);
	while ((fields = fscanf(file, "%u %u %u %x", &from, &to, &place, &route)) == 4)
		if (from == node)
			check(dib_route_set(pe.card, to, place, route, 1), "a route");
	fclose(file);
	if (fields != EOF)
		fail("the file of routes %s: a line is not four numbers", path);
}

static void find_routes(void)
{
	uint32_t routes[DIB_NETWORK_ROUTES];
	struct dib_network network;

	check(dib_network_map(pe.card, ATTEMPTS, &network), "a map of the network");
	for (unsigned int i = 0; i < pe.count; i++) {
		int count =
			i == pe.number ? 0 : dib_network_routes(&network, pe.seats[i].node, routes);

		for (int k = 0; k < count; k++)
			check(dib_route_set(pe.card, pe.seats[i].node, (unsigned int)k, routes[k],
					    1),
			      "a route");
	}
}

static void open_card(void)
{
	const char *list = setting("FI_DIBBER_CARD", NULL), *end;
	struct dib_card_info info;
	char uri[4096];

	for (unsigned int i = 0; list && i < pe.number; i++) {
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	if (!list)
		fail("FI_DIBBER_CARD names no card for this PE");
	end = strchr(list, ',');
	snprintf(uri, sizeof(uri), "%.*s", (int)(end ? end - list : (ptrdiff_t)strlen(list)), list);
	check(dib_open(uri, NULL, &pe.card), uri);
	check(dib_card_info(pe.card, &info), uri);
	if (!info.mcp_identity) {
		const char *firmware = setting("FI_DIBBER_FIRMWARE", NULL);

		check(dib_node_set(pe.card, pe.number), "the node number");
		check(dib_firmware_load(pe.card, firmware ? firmware : ""), "FI_DIBBER_FIRMWARE");
		check(dib_card_info(pe.card, &info), uri);
	}
	check(dib_endpoint_open(pe.card, ENDPOINT, NULL, &pe.endpoint), "an endpoint");
	pe.seats[pe.number] = (struct seat){ .node = info.node, .endpoint = ENDPOINT };
}

/* The others ----------------------------------------------------------------------------------- */

static void meet(void)
{
	const struct dib_exchange_options options = {
		.party = pe.number,
		.parties = pe.count,
		.endpoint = pe.endpoint,
	};
	const char *where = setting("DIBBER_MEETING", NULL);

	if (pe.count < 2)
		return;
	if (!where)
		fail("DIBBER_MEETING is not set: start the program with 'dibber run -n N PROGRAM'");
	check(pe.number ? dib_exchange_connect(where, &options, &pe.exchange)
			: dib_exchange_listen(where, &options, &pe.exchange),
	      where);
	check(dib_exchange_publish(pe.exchange, SEAT, &pe.seats[pe.number], sizeof(pe.seats[0])),
	      "the exchange");
	check(dib_exchange_barrier(pe.exchange), "the exchange");
	for (unsigned int i = 0; i < pe.count; i++) {
		check(dib_exchange_look_up(pe.exchange, i, SEAT, &pe.seats[i], sizeof(pe.seats[i]),
					   NULL),
		      "the exchange");
		if (pe.seats[i].heap_bytes != pe.heap_bytes)
			fail("PE %u has a heap of %llu bytes, this one of %llu", i,
			     (unsigned long long)pe.seats[i].heap_bytes,
			     (unsigned long long)pe.heap_bytes);
	}
}

void shmem_init(void)
{
	void *memory;
	const char *routes = setting("FI_DIBBER_ROUTES", NULL);

	if (pe.on)
		return;
	pe.count = number("DIBBER_PES", "OMPI_COMM_WORLD_SIZE", MOST_PES);
	pe.number = number("DIBBER_PE", "OMPI_COMM_WORLD_RANK", MOST_PES);
	if (pe.number >= pe.count)
		fail("DIBBER_PE is not below DIBBER_PES, which is %u", pe.count);
	pe.heap_bytes = (sizeof(struct control) + 63) / 64 * 64 + heap_size();
	open_card();
	check(dib_alloc(pe.heap_bytes, &memory), "the symmetric heap");
	pe.heap = memory;
	check(dib_register(pe.endpoint, memory, pe.heap_bytes,
			   DIBBER_RIGHT_LOCAL_READ | DIBBER_RIGHT_LOCAL_WRITE |
				   DIBBER_RIGHT_REMOTE_READ | DIBBER_RIGHT_REMOTE_WRITE,
			   &pe.region),
	      "the symmetric heap");
	pe.seats[pe.number].key = dib_key(pe.region);
	pe.seats[pe.number].heap_bytes = pe.heap_bytes;
	heap_open();
	meet();
	if (routes)
		read_routes(routes, pe.seats[pe.number].node);
	else if (pe.count > 1)
		find_routes();
	pe.on = true;
	if (pe.exchange)
		check(dib_exchange_barrier(pe.exchange), "the exchange");
}

void shmem_finalize(void)
{
	if (!pe.on)
		return;
	shmem_barrier_all();
	/* A card that closes takes what others still send to it. */
	if (pe.exchange) {
		check(dib_exchange_barrier(pe.exchange), "the exchange");
		check(dib_exchange_close(pe.exchange), "the exchange");
	}
	check(dib_close(pe.card), "the card");
	dib_free(pe.heap);
	pe = (struct pe){ .number = pe.number, .count = pe.count };
}

/* The others find the exchange closed, or their transfers end with an error. */
void shmem_global_exit(int status)
{
	dib_close(pe.card);
	exit(status);
}

int shmem_my_pe(void)
{
	return (int)pe.number;
}

int shmem_n_pes(void)
{
	return (int)pe.count;
}

double dibber_shmem_seconds(void)
{
	struct dib_clock clock;

	if (!pe.on)
		fail("dibber_shmem_seconds before shmem_init");
	check(dib_clock_now(pe.endpoint, &clock), "the clock");
	return (double)clock.now_ps * 1e-12;
}
