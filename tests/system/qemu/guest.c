/* This file is part of Dibber.
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The only program of the test guest: init. It finds the card as any driver would, says on the console
 * what it sees, one `name value` a line with numbers in hexadecimal, and switches the machine off. What
 * is right is decided by test_guest.py, which knows the interface description.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dibber_interface.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

/* PCI Local Bus 3.0, 6.1 and 6.8.2. */
#define PCI_CAPABILITY_POINTER 0x34
#define PCI_CAPABILITY_MSIX    0x11

#define SCRATCH_PATTERN 0x5aa5c33cu

static void say(const char *name, unsigned long long value)
{
	printf("guest %s %llx\n", name, value);
}

static void power_off(void)
{
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
}

static void fail(const char *what)
{
	printf("guest failed: %s: %m\n", what);
	power_off();
	exit(1);
}

/* Open a file of the device at bus address `device`. */
static int device_open(const char *device, const char *name, int flags)
{
	char path[512];

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", device, name);
	return open(path, flags);
}

/* First number in a device's sysfs file. */
static unsigned long device_number(const char *device, const char *name)
{
	char text[64] = "";
	int fd = device_open(device, name, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		fail(name);
	close(fd);
	return strtoul(text, NULL, 16);
}

/* Bus address of the card. `found` says how many there are. */
static const char *find_card(unsigned int *found)
{
	static char card[256];
	struct dirent *entry;
	DIR *devices = opendir(PCI_DEVICES);

	if (!devices)
		fail(PCI_DEVICES);
	*found = 0;
	while ((entry = readdir(devices))) {
		if (entry->d_name[0] == '.')
			continue;
		if (device_number(entry->d_name, "vendor") != DIBBER_PCI_VENDOR ||
		    device_number(entry->d_name, "device") != DIBBER_PCI_DEVICE)
			continue;
		snprintf(card, sizeof(card), "%s", entry->d_name);
		++*found;
	}
	closedir(devices);
	return card;
}

static void show_bar0(const char *card)
{
	unsigned long long start, end, flags;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/resource", card);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llx %llx %llx", &start, &end, &flags) != 3)
		fail(path);
	fclose(file);
	say("bar0_size", start ? end - start + 1 : 0);
}

static void show_msix(const char *card)
{
	uint8_t config[256];
	unsigned int at;
	int fd = device_open(card, "config", O_RDONLY);

	if (fd < 0 || pread(fd, config, sizeof(config), 0) != sizeof(config))
		fail("config");
	close(fd);
	for (at = config[PCI_CAPABILITY_POINTER]; at >= 0x40; at = config[at + 1]) {
		if (config[at] != PCI_CAPABILITY_MSIX)
			continue;
		say("msix_vectors", ((config[at + 2] | config[at + 3] << 8) & 0x7ff) + 1);
		say("msix_table", config[at + 4] | config[at + 5] << 8 | config[at + 6] << 16);
		say("msix_pba", config[at + 8] | config[at + 9] << 8 | config[at + 10] << 16);
	}
}

static void show_registers(const char *card)
{
	volatile uint32_t *bar;
	int fd = device_open(card, "enable", O_WRONLY);

	if (fd < 0 || write(fd, "1", 1) != 1)
		fail("enable");
	close(fd);
	fd = device_open(card, "resource0", O_RDWR);
	if (fd < 0)
		fail("resource0");
	bar = mmap(NULL, DIBBER_BAR0_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bar == MAP_FAILED)
		fail("mmap");

	say("magic", bar[DIBBER_HOST_MAGIC / 4]);
	say("interface_version", bar[DIBBER_HOST_INTERFACE_VERSION / 4]);
	say("interface_hash", bar[DIBBER_HOST_INTERFACE_HASH / 4]);
	say("geometry", bar[DIBBER_HOST_GEOMETRY / 4]);
	say("magic_and_version", *(volatile uint64_t *)(bar + DIBBER_HOST_MAGIC / 4));

	bar[DIBBER_HOST_SCRATCH / 4] = SCRATCH_PATTERN;
	say("scratch", bar[DIBBER_HOST_SCRATCH / 4]);
	bar[DIBBER_HOST_SCRATCH / 4] = ~SCRATCH_PATTERN;
	say("scratch_inverted", bar[DIBBER_HOST_SCRATCH / 4]);
}

int main(void)
{
	const char *card;
	unsigned int found;

	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	/* The kernel found no /dev/console in the archive, so nothing is open yet. */
	if (!freopen("/dev/console", "w", stdout))
		power_off();

	card = find_card(&found);
	say("cards", found);
	if (found) {
		say("class", device_number(card, "class"));
		show_bar0(card);
		show_msix(card);
		show_registers(card);
	}
	printf("guest done\n");
	power_off();
	return 0;
}
