/* The only program of a test guest: init. It finds the card as any driver would, says on the
 * console what it sees, one `name value` a line with numbers in hexadecimal, and switches the
 * machine off. What is right is decided by test_guest.py, which knows the interface description.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dibber_interface.h"
#include "guest.h"

/* PCI Local Bus 3.0, 6.1 and 6.8.2. */
#define PCI_CAPABILITY_POINTER 0x34
#define PCI_CAPABILITY_MSIX    0x11

#define SCRATCH_PATTERN 0x5aa5c33cu

static void show_bar0(const char *card)
{
	unsigned long long start, end, flags;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/resource", card);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llx %llx %llx", &start, &end, &flags) != 3)
		guest_fail(path);
	fclose(file);
	guest_say("bar0_size", start ? end - start + 1 : 0);
}

static void show_msix(const char *card)
{
	uint8_t config[256];
	unsigned int at;
	int fd = guest_open(card, "config", O_RDONLY);

	if (fd < 0 || pread(fd, config, sizeof(config), 0) != sizeof(config))
		guest_fail("config");
	close(fd);
	for (at = config[PCI_CAPABILITY_POINTER]; at >= 0x40; at = config[at + 1]) {
		if (config[at] != PCI_CAPABILITY_MSIX)
			continue;
		guest_say("msix_vectors", ((config[at + 2] | config[at + 3] << 8) & 0x7ff) + 1);
		guest_say("msix_table",
			  config[at + 4] | config[at + 5] << 8 | config[at + 6] << 16);
		guest_say("msix_pba", config[at + 8] | config[at + 9] << 8 | config[at + 10] << 16);
	}
}

static void show_registers(const char *card)
{
	volatile uint32_t *bar;
	int fd = guest_open(card, "enable", O_WRONLY);

	if (fd < 0 || write(fd, "1", 1) != 1)
		guest_fail("enable");
	close(fd);
	fd = guest_open(card, "resource0", O_RDWR);
	if (fd < 0)
		guest_fail("resource0");
	bar = mmap(NULL, DIBBER_BAR0_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bar == MAP_FAILED)
		guest_fail("mmap");

	guest_say("magic", bar[DIBBER_HOST_MAGIC / 4]);
	guest_say("interface_version", bar[DIBBER_HOST_INTERFACE_VERSION / 4]);
	guest_say("interface_hash", bar[DIBBER_HOST_INTERFACE_HASH / 4]);
	guest_say("geometry", bar[DIBBER_HOST_GEOMETRY / 4]);
	guest_say("magic_and_version", *(volatile uint64_t *)(bar + DIBBER_HOST_MAGIC / 4));

	bar[DIBBER_HOST_SCRATCH / 4] = SCRATCH_PATTERN;
	guest_say("scratch", bar[DIBBER_HOST_SCRATCH / 4]);
	bar[DIBBER_HOST_SCRATCH / 4] = ~SCRATCH_PATTERN;
	guest_say("scratch_inverted", bar[DIBBER_HOST_SCRATCH / 4]);
}

int main(void)
{
	char card[1][ADDRESS_ROOM];
	unsigned int found;

	guest_begin();
	found = guest_find_cards(card, 1);
	guest_say("cards", found);
	if (found) {
		guest_say("class", guest_number(card[0], "class"));
		show_bar0(card[0]);
		show_msix(card[0]);
		show_registers(card[0]);
	}
	guest_end();
}
