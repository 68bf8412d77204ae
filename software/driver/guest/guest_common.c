/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dibber_interface.h"
#include "guest.h"

static void power_off(void)
{
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	exit(1);
}

void guest_begin(void)
{
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/proc", 0755);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	/* The kernel found no /dev/console in the archive, so nothing is open yet. */
	if (!freopen("/dev/console", "r", stdin) || !freopen("/dev/console", "w", stdout) ||
	    !freopen("/dev/console", "w", stderr))
		power_off();
}

void guest_say(const char *name, unsigned long long value)
{
	printf("guest %s %llx\n", name, value);
	fflush(stdout);
}

void guest_end(void)
{
	printf("guest done\n");
	power_off();
	__builtin_unreachable();
}

void guest_fail(const char *what)
{
	printf("guest failed: %s: %m\n", what);
	power_off();
	__builtin_unreachable();
}

int guest_open(const char *device, const char *name, int flags)
{
	char path[512];

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", device, name);
	return open(path, flags);
}

unsigned long guest_number(const char *device, const char *name)
{
	char text[64] = "";
	int fd = guest_open(device, name, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		guest_fail(name);
	close(fd);
	return strtoul(text, NULL, 16);
}

unsigned int guest_find_cards(char cards[][ADDRESS_ROOM], unsigned int room)
{
	struct dirent **entries;
	unsigned int found = 0;
	int count = scandir(PCI_DEVICES, &entries, NULL, alphasort);

	if (count < 0)
		guest_fail(PCI_DEVICES);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		if (name[0] == '.' || guest_number(name, "vendor") != DIBBER_PCI_VENDOR ||
		    guest_number(name, "device") != DIBBER_PCI_DEVICE)
			continue;
		if (found < room)
			snprintf(cards[found], ADDRESS_ROOM, "%.15s", name);
		found++;
	}
	return found;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

void guest_for_each(const char *folder, void (*action)(const char *path, const char *name))
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_visible, versionsort);
	char path[512];

	if (count < 0)
		guest_fail(folder);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		action(path, entries[i]->d_name);
	}
}

void guest_load_module(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0) < 0)
		guest_fail(path);
	close(fd);
}
