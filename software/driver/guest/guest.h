/* What the inits of the test guests have in common: the machine's beginning and end, its console,
 * its PCI devices. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_GUEST_H
#define DIBBER_GUEST_H

#define PCI_DEVICES  "/sys/bus/pci/devices"
#define ADDRESS_ROOM 16 /* of "0000:01:00.0" */

/* Mount what an init must have, and open the console. */
void guest_begin(void);

/* Say `guest NAME VALUE` on the console, the value in hexadecimal. */
void guest_say(const char *name, unsigned long long value);

/* Say `guest done`, or what failed and why, and switch the machine off. */
void guest_end(void) __attribute__((noreturn));
void guest_fail(const char *what) __attribute__((noreturn));

/* Find Dibber cards, by ascending address; returns how many there are, of which at most `room` are
 * named. */
unsigned int guest_find_cards(char cards[][ADDRESS_ROOM], unsigned int room);

/* Open a file that sysfs has of a PCI device. */
int guest_open(const char *device, const char *name, int flags);

/* The first number, in hexadecimal, in such a file. */
unsigned long guest_number(const char *device, const char *name);

/* Call `action` for each file of a folder, by ascending name; numbers in names ascend as such. */
void guest_for_each(const char *folder, void (*action)(const char *path, const char *name));

/* Load a kernel module from a file. */
void guest_load_module(const char *path, const char *parameters);

#endif
