/* The examples for two terminals, through the driver: driver_hosts FIRMWARE /dev/dibber0
 * /dev/dibber1 Each program runs twice, in two network namespaces, with a card each.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "driver.h"
#include "guest_hosts.h"

static const char *const programs[] = { "pingpong", "put_strided", "transpose" };

int main(int argc, char **argv)
{
	int all = 0;

	if (argc != 4)
		return 2;
	setlinebuf(stdout);
	setenv("DIBBER_FIRMWARE", argv[1], 1);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		char path[64];
		unsigned int codes;

		snprintf(path, sizeof(path), "/hosts/%s", programs[i]);
		codes = guest_run_on_hosts(path, argv[2], argv[3]);
		printf("hosts %s %s, exit codes 0x%x\n", programs[i], codes ? "wrong" : "right",
		       codes);
		all |= codes != 0;
	}
	return all;
}
