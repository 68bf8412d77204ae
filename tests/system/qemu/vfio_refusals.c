/* What dib_open() says of devices that it cannot have:  vfio_refusals FIRMWARE URI URI */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dibber/dibber.h>

#define BRIDGE "vfio:0000:00:1f.0" /* of q35: a device, but no card and not vfio-pci's */

static int wrong;

static void expect(const char *what, int rc, int error, const char *reason)
{
	if (rc == error && strstr(dib_last_reason(), reason))
		return;
	printf("%s: %d for %d: %s\n", what, rc, error, dib_last_reason());
	wrong = 1;
}

int main(int argc, char **argv)
{
	const struct rlimit no_pinned = { 0, 0 };
	struct dib_card *card, *other;
	uint32_t value;
	pid_t child;
	int status;

	if (argc != 4)
		return 2;
	expect("no address", dib_open("vfio:1:2", NULL, &card), DIB_ERR_ARGUMENT, "0000:01:00.0");
	expect("no device", dib_open("vfio:0000:fe:00.0", NULL, &card), DIB_ERR_NOT_FOUND,
	       "no PCI device");
	expect("no driver", dib_open(BRIDGE, NULL, &card), DIB_ERR_NOT_FOUND,
	       "not bound to vfio-pci");

	expect("open", dib_open(argv[2], NULL, &card), 0, "");
	expect("twice", dib_open(argv[2], NULL, &other), DIB_ERR_IN_USE, "another process");
	expect("register", dib_register_read(card, DIBBER_HOST_MAGIC, &value), 0, "");
	if (value != DIBBER_MAGIC)
		wrong = 1;
	dib_close(card);
	expect("again", dib_open(argv[2], NULL, &card), 0, "");
	dib_close(card);

	/* As an ordinary user may find it: nothing can be pinned. Root may always, so that it is
	 * another user here. */
	child = fork();
	if (child == 0) {
		if (dib_open(argv[3], NULL, &card) || setrlimit(RLIMIT_MEMLOCK, &no_pinned) ||
		    setuid(1))
			return 1;
		expect("pinning", dib_firmware_load(card, argv[1]), DIB_ERR_NO_MEMORY, "ulimit -l");
		dib_close(card);
		return wrong;
	}
	waitpid(child, &status, 0);
	return wrong || status;
}
