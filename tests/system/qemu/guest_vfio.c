/* Init of a test guest with an IOMMU: gives both cards to vfio-pci and runs each program of /tests
 * on them, as `PROGRAM FIRMWARE URI URI`. What a program says is on the console; its exit code is
 * told by its name. Then it runs each program of /hosts twice, as on two hosts (guest_hosts.h).
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "guest_hosts.h"

#define CARDS	 2
#define MODULES	 "/modules"
#define TESTS	 "/tests"
#define HOSTS	 "/hosts"
#define FIRMWARE "/mcp.dibfw"
#define PROBE	 "/sys/bus/pci/drivers_probe"

static void write_to(int fd, const char *text, const char *what)
{
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		guest_fail(what);
	close(fd);
}

static void bind(const char *card)
{
	write_to(guest_open(card, "driver_override", O_WRONLY), "vfio-pci", "driver_override");
	write_to(open(PROBE, O_WRONLY), card, PROBE);
}

static void load_module(const char *path, const char *name)
{
	(void)name;
	guest_load_module(path, "");
}

static char uris[CARDS][ADDRESS_ROOM + sizeof("vfio:")];

static void run(const char *path, const char *name)
{
	int status = -1;
	pid_t child = fork();

	if (child < 0)
		guest_fail("fork");
	if (child == 0) {
		execl(path, path, FIRMWARE, uris[0], uris[1], (char *)NULL);
		guest_fail(path);
	}
	waitpid(child, &status, 0);
	guest_say(name, (unsigned int)status);
}

static void run_on_hosts(const char *path, const char *name)
{
	char told[64];

	snprintf(told, sizeof(told), "hosts_%s", name);
	guest_say(told, guest_run_on_hosts(path, uris[0], uris[1]));
}

int main(void)
{
	char cards[CARDS][ADDRESS_ROOM];

	guest_begin();
	if (guest_find_cards(cards, CARDS) != CARDS)
		guest_fail("two cards");
	guest_for_each(MODULES, load_module);
	for (int i = 0; i < CARDS; i++) {
		bind(cards[i]);
		snprintf(uris[i], sizeof(uris[i]), "vfio:%.15s", cards[i]);
	}
	guest_for_each(TESTS, run);
	setenv("DIBBER_FIRMWARE", FIRMWARE, 1);
	guest_for_each(HOSTS, run_on_hosts);
	guest_end();
}
