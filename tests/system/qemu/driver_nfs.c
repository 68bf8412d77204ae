/* NFS over the network device: the kernel's own server in one network namespace exports a folder,
 * the kernel's own client in the other one mounts it. A tree is copied there, the mount is
 * taken away and made anew, and the tree is read back and compared.
 *
 * No program of nfs-utils runs. The server is set up by the files that those programs write:
 * /proc/fs/nfsd and the caches of /proc/net/rpc (Documentation/filesystems/nfs/rpc-cache.rst). The
 * protocol is NFS 4.2, which needs neither mountd nor rpcbind. It says `nfs NAME right` or `wrong`:
 * driver_nfs FIRMWARE /dev/dibber0 /dev/dibber1 [SEED BYTES]
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <dirent.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "driver_net.h"

#define SERVER	"/server"  /* the folder that is exported */
#define MOUNT	"/mounted" /* where the client has it */
#define TREE	"/tree"	   /* what is copied */
#define LONGEST 300000u
#define FOLDERS 5u

/* Of include/uapi/linux/nfsd/export.h: NFSEXP_INSECURE_PORT, _ASYNC, _NOSUBTREECHECK, _FSID. */
#define EXPORT_FLAGS (0x0002 | 0x0010 | 0x0400 | 0x2000)
#define FOR_EVER     "2147483647"

/* Of the tree. */
static size_t total = 2 << 20;
static unsigned int files;

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		printf("%s: '%s': %m\n", path, text);
		wrong = 1;
	}
	if (fd >= 0)
		close(fd);
}

static void make_folder(const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		fatal(path);
}

/* The tree ---------------------------------------------------------------------------------------
 */

/* A file whose bytes follow from its number. */
static void fill(uint8_t *bytes, size_t length, unsigned int number)
{
	uint32_t state = number * 2654435761u + 1;

	for (size_t i = 0; i < length; i++) {
		state = state * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(state >> 24);
	}
}

/* Sizes at the boundaries of pages and of NFS, the rest by chance; an empty one too. */
static size_t length_of(unsigned int number, size_t left)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 65536, 131071, 262144, 262145 };
	size_t length = number < sizeof(sizes) / sizeof(sizes[0]) ? sizes[number]
								  : (size_t)random() % LONGEST;

	return length < left ? length : left;
}

static void path_of(char *path, size_t room, const char *root, unsigned int number)
{
	snprintf(path, room, "%s/folder_%u/below/file_%u", root, number % FOLDERS, number);
}

static void make_folders(const char *root)
{
	char path[128];

	make_folder(root);
	for (unsigned int i = 0; i < FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s/folder_%u", root, i);
		make_folder(path);
		strcat(path, "/below");
		make_folder(path);
	}
}

static void make_tree(void)
{
	static uint8_t bytes[LONGEST];
	size_t left = total;
	char path[128];

	make_folders(TREE);
	for (files = 0; left; files++) {
		size_t length = length_of(files, left);
		int fd;

		path_of(path, sizeof(path), TREE, files);
		fd = open(path, O_WRONLY | O_CREAT, 0644);
		fill(bytes, length, files);
		if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
			fatal(path);
		close(fd);
		left -= length;
	}
	printf("nfs tree of %u files, %zu bytes\n", files, total);
}

static size_t read_all(const char *path, uint8_t *bytes, size_t room)
{
	int fd = open(path, O_RDONLY);
	size_t length = 0;
	ssize_t step;

	if (fd < 0) {
		printf("%s: %m\n", path);
		wrong = 1;
		return 0;
	}
	while ((step = read(fd, bytes + length, room - length)) > 0)
		length += (size_t)step;
	expect("reading", step, 0);
	close(fd);
	return length;
}

static void copy_tree(const char *to)
{
	static uint8_t bytes[LONGEST];
	char path[128];

	make_folders(to);
	for (unsigned int number = 0; number < files; number++) {
		size_t length;
		int fd;

		path_of(path, sizeof(path), TREE, number);
		length = read_all(path, bytes, sizeof(bytes));
		path_of(path, sizeof(path), to, number);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0640);
		if (fd < 0)
			fatal(path);
		expect("write", write(fd, bytes, length), (long)length);
		expect("close", close(fd) ? -errno : 0, 0);
	}
}

static unsigned int entries_of(const char *path)
{
	DIR *folder = opendir(path);
	unsigned int count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

/* Each file has its bytes, its length and its mode, and there are no others. */
static void compare_tree(const char *root)
{
	static uint8_t bytes[LONGEST], wanted[LONGEST];
	unsigned int entries = 0;
	struct stat status;
	char path[128];

	for (unsigned int number = 0; number < files; number++) {
		size_t length, original;

		path_of(path, sizeof(path), TREE, number);
		original = read_all(path, wanted, sizeof(wanted));
		path_of(path, sizeof(path), root, number);
		length = read_all(path, bytes, sizeof(bytes));
		expect("length", (long)length, (long)original);
		expect("bytes", memcmp(bytes, wanted, original) != 0, 0);
		expect("status", stat(path, &status) ? -errno : 0, 0);
		expect("mode", status.st_mode, S_IFREG | 0640);
	}
	for (unsigned int i = 0; i < FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s/folder_%u/below", root, i);
		entries += entries_of(path) - 2;
	}
	expect("files", entries, files);
}

/* Server and client ------------------------------------------------------------------------------
 */

/* In the far namespace. An answer to each question that the server would ask mountd stands in its
 * caches: the client's name, the export, and the handle of the root (fsid 0).
 */
static void begin_server(void)
{
	char line[256];

	make_folder(SERVER);
	if (mount("tmpfs", SERVER, "tmpfs", 0, "mode=755"))
		fatal("mount");
	enter(FAR);
	/* The folder shows the server of the namespace in which it was mounted. */
	if (mount("nfsd", "/proc/fs/nfsd", "nfsd", 0, NULL))
		fatal("nfsd");
	write_text("/proc/thread-self/net/rpc/auth.unix.ip/channel",
		   "nfsd 10.34.0.1 " FOR_EVER " client\n");
	snprintf(line, sizeof(line), "client " SERVER " " FOR_EVER " %d 0 0 0\n", EXPORT_FLAGS);
	write_text("/proc/thread-self/net/rpc/nfsd.export/channel", line);
	write_text("/proc/thread-self/net/rpc/nfsd.fh/channel",
		   "client 1 \\x00000000 " FOR_EVER " " SERVER "\n");
	write_text("/proc/fs/nfsd/versions", "-2 -3 +4 +4.1 +4.2\n");
	/* Seconds, the fewest that there are. Former clients could claim their files so long, and
	 * the server does not know that there are none: no file is opened before. */
	write_text("/proc/fs/nfsd/nfsv4gracetime", "10\n");
	write_text("/proc/fs/nfsd/nfsv4leasetime", "10\n");
	write_text("/proc/fs/nfsd/portlist", "tcp 2049\n");
	write_text("/proc/fs/nfsd/threads", "2\n");
	enter(NEAR);
}

static void end_server(void)
{
	enter(FAR);
	write_text("/proc/fs/nfsd/threads", "0\n");
	enter(NEAR);
	umount2("/proc/fs/nfsd", 0);
}

static int mount_it(void)
{
	return mount("10.34.0.2:/", MOUNT, "nfs4", 0,
		     "vers=4.2,proto=tcp,port=2049,addr=10.34.0.2,clientaddr=10.34.0.1,sec=sys")
		       ? -errno
		       : 0;
}

static void test_copy(void)
{
	unsigned long long sent, received;

	begin_server();
	make_folder(MOUNT);
	make_tree();
	sent = statistic(NEAR, "dib0", "tx_bytes");
	expect("mount", mount_it(), 0);
	if (wrong)
		return;
	copy_tree(MOUNT "/copy");
	expect("unmount", umount(MOUNT) ? -errno : 0, 0);
	sent = statistic(NEAR, "dib0", "tx_bytes") - sent;
	/* What the server has, without the network. */
	compare_tree(SERVER "/copy");
	/* A new mount has nothing in its caches. */
	received = statistic(NEAR, "dib0", "rx_bytes");
	expect("mount", mount_it(), 0);
	compare_tree(MOUNT "/copy");
	expect("unmount", umount(MOUNT) ? -errno : 0, 0);
	received = statistic(NEAR, "dib0", "rx_bytes") - received;
	printf("measured nfs: %llu bytes out and %llu bytes back over dib0\n", sent, received);
	expect("the tree went over dib0", sent >= total, 1);
	expect("the tree came back over dib0", received >= total, 1);
	end_server();
}

int main(int argc, char **argv)
{
	int all;

	if (argc < 4 || !argv[3])
		return 2;
	if (argc > 5) {
		srandom((unsigned int)atoi(argv[4]));
		total = (size_t)atol(argv[5]);
	}
	setlinebuf(stdout);
	begin_networks();
	begin_interfaces();
	/* The server asks a portmapper of its own machine, and is told at once that there is none.
	 */
	set_flags(FAR, "lo", 1);
	set_flags(NEAR, "lo", 1);
	expect("carrier", wait_running(NEAR, "dib0", 1) && wait_running(FAR, "dib1", 1), 1);
	all = wrong;
	all |= RUN_TEST("nfs", copy);
	set_flags(NEAR, "dib0", 0);
	set_flags(FAR, "dib1", 0);
	return all;
}
