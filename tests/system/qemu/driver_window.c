/* The remote window through the driver: driver_window FIRMWARE /dev/dibber0 /dev/dibber1
 * It says `window NAME right` or `wrong` for each test.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <dibber/window.h>

#include "driver_library.h"

#define BYTES	 (4 * DIBBER_APERTURE_PAGE)
#define CARD	 "/dev/dibber0"
#define DEVICE	 "/sys/class/misc/dibber0/device"
#define PAGE	 4096u
#define COMBINED 192u /* pages; the driver's DIBBER_WINDOW_COMBINED */
#define UNCACHED 63u
#define SHARES	 4
#define KILLS	 5
#define BOTH	 (PROT_READ | PROT_WRITE)

static struct end near, far;

static uint8_t *pages(void)
{
	return mmap(NULL, BYTES, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void close_end(struct end *e)
{
	dib_close(e->card);
	munmap(e->memory, BYTES);
}

static struct dib_window_options options_of(uint32_t access, uint64_t length)
{
	return (struct dib_window_options){
		.length = length, .key = dib_key(far.region), .node = 1, .access = access
	};
}

static struct dib_window *map(const struct dib_window_options *options)
{
	struct dib_window *window = NULL;

	succeeds("window", dib_window_map(near.endpoint, options, &window));
	if (!window || !dib_window_pointer(window)) {
		printf("no window\n");
		exit(1);
	}
	return window;
}

/* Plain assignments and calls; more than the process's share of the card's queue. */
static void test_assignments(void)
{
	struct dib_window_options options =
		options_of(DIB_WINDOW_LOAD | DIB_WINDOW_STORE, 2 * DIBBER_APERTURE_PAGE);
	struct dib_window *window = map(&options);
	volatile uint8_t *memory = dib_window_pointer(window);
	static uint8_t bytes[4000], back[100];

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)random();
	memory[1] = 0x11;
	*(volatile uint16_t *)(memory + 2) = 0x2222;
	*(volatile uint32_t *)(memory + 4) = 0x44444444;
	*(volatile uint64_t *)(memory + DIBBER_APERTURE_PAGE + 8) = 0x8888888888888888;
	succeeds("barrier", dib_window_barrier(window));
	expect("1, 2 and 4 bytes", *(uint64_t *)far.memory == 0x4444444422221100, 1);
	expect("8 bytes", far.memory[DIBBER_APERTURE_PAGE + 15], 0x88);
	expect("a load", *(volatile uint32_t *)(memory + 4), 0x44444444);
	succeeds("copy", dib_window_copy(window, 101, bytes, sizeof(bytes)));
	succeeds("barrier", dib_window_barrier(window));
	expect("copied bytes", memcmp(far.memory + 101, bytes, sizeof(bytes)), 0);
	expect("the byte before", far.memory[100], 0);
	expect("the byte behind", far.memory[101 + sizeof(bytes)], 0);
	succeeds("load", dib_window_load(window, 501, back, sizeof(back)));
	expect("loaded bytes", memcmp(back, bytes + 400, sizeof(back)), 0);
	succeeds("unmap", dib_window_unmap(window));
}

static void test_adds(void)
{
	struct dib_window_options options = options_of(DIB_WINDOW_ADD, PAGE);
	struct dib_window *window;
	volatile uint64_t *memory;

	options.offset = 3 * DIBBER_APERTURE_PAGE;
	options.addend = -3;
	*(uint64_t *)(far.memory + options.offset) = 1000;
	window = map(&options);
	memory = dib_window_pointer(window);
	expect("the value before", (long)*memory, 1000);
	expect("the next one", (long)*memory, 997);
	expect("the memory", *(long *)(far.memory + options.offset), 994);
	succeeds("check", dib_window_check(window));
	succeeds("unmap", dib_window_unmap(window));
}

/* The kernel's memory types of BAR 2: most of it write-combined, the rest not. */
static void test_memory_types(void)
{
	unsigned long long start = 0, from, to;
	FILE *file = fopen(DEVICE "/resource", "r");
	int combined = 0, uncached = 0;
	char line[256], type[32];

	for (int bar = 0; bar < 3 && fgets(line, sizeof(line), file); bar++)
		sscanf(line, "%llx", &start);
	fclose(file);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, "");
	file = fopen("/sys/kernel/debug/x86/pat_memtype_list", "r");
	if (!file || !start) {
		printf("no memory types, or no BAR 2\n");
		wrong = 1;
		return;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "PAT: [mem %llx-%llx] %31s", &from, &to, type) != 3)
			continue;
		if (from == start && to - from >= COMBINED * DIBBER_APERTURE_PAGE - 1)
			combined += !strcmp(type, "write-combining");
		if (from == start + COMBINED * DIBBER_APERTURE_PAGE)
			uncached += !strncmp(type, "uncached", 8);
	}
	fclose(file);
	expect("write-combined", combined >= 1, 1);
	expect("uncached", uncached >= 1, 1);
}

/* A user by the driver's own interface. */
struct user {
	struct endpoint e;
	struct dibber_window_map map;
	volatile uint8_t *memory;
};

static struct dibber_window_map request(uint64_t length)
{
	return (struct dibber_window_map){
		.length = length,
		.key = dib_key(far.region),
		.node = 1,
		.access = DIBBER_ACCESS_LOAD | DIBBER_ACCESS_STORE,
	};
}

static void *map_page(int fd, const struct dibber_window_map *map, uint64_t page)
{
	return mmap(NULL, PAGE, BOTH, MAP_SHARED, fd,
		    (off_t)(map->place + page * DIBBER_APERTURE_PAGE));
}

static void expect_no_page(const char *what, int fd, const struct dibber_window_map *map,
			   uint64_t page)
{
	void *memory = map_page(fd, map, page);

	expect(what, memory == MAP_FAILED ? -errno : 0, -EINVAL);
	if (memory != MAP_FAILED)
		munmap(memory, PAGE);
}

static void begin_user_at(struct user *u, uint64_t offset, uint64_t length)
{
	expect("endpoint", open_endpoint(CARD, &u->e), 0);
	u->map = request(length);
	u->map.offset = offset;
	expect("window", call(u->e.fd, DIBBER_IOC_WINDOW_MAP, &u->map), 0);
	u->memory = map_page(u->e.fd, &u->map, u->map.first);
	if (u->memory == MAP_FAILED) {
		printf("a user's window: %m\n");
		exit(1);
	}
}

static void begin_user(struct user *u, uint64_t length)
{
	begin_user_at(u, 0, length);
}

static void end_user(struct user *u)
{
	if (u->memory)
		munmap((void *)u->memory, PAGE);
	close_endpoint(&u->e);
	*u = (struct user){ 0 };
}

static int give_back(struct user *u)
{
	struct dibber_window_unmap unmap = { .first = u->map.first };

	return call(u->e.fd, DIBBER_IOC_WINDOW_UNMAP, &unmap);
}

/* All stores of the user have arrived; its sequence. */
static uint32_t barrier(const struct user *u)
{
	void *page =
		mmap(NULL, PAGE, BOTH, MAP_SHARED, u->e.fd, (off_t)(u->map.place + u->map.control));
	uint32_t sequence = 0;

	expect("the control page", page == MAP_FAILED ? -errno : 0, 0);
	if (page == MAP_FAILED)
		return 0;
	__sync_synchronize();
	sequence = ((volatile uint32_t *)page)[16 * u->e.open.number];
	munmap(page, PAGE);
	return sequence;
}

static void refuse(const char *what, int fd, struct dibber_window_map map, int error)
{
	expect(what, call(fd, DIBBER_IOC_WINDOW_MAP, &map), error);
}

static void test_refusals(void)
{
	struct user a = { 0 }, b = { 0 };
	struct dibber_window_map bad = request(PAGE), far_off;
	struct dibber_endpoint_open open_last;
	struct dibber_register access = { .offset = DIBBER_APERTURE_REGISTERS };
	int none = open(CARD, O_RDWR);

	begin_user(&a, 2 * DIBBER_APERTURE_PAGE);
	begin_user(&b, PAGE);
	refuse("no endpoint", none, bad, -ENOTCONN);
	expect("the window's endpoint", open_number(none, DIBBER_ENDPOINTS - 1, &open_last),
	       -EBUSY);
	expect("its registers", call(none, DIBBER_IOC_REGISTER, &access), 0);
	refuse("0 bytes", a.e.fd, (bad.length = 0, bad), -EINVAL);
	refuse("too many bytes", a.e.fd, (bad.length = DIBBER_APERTURE_BYTES + 1, bad), -EINVAL);
	refuse("more than there are", a.e.fd,
	       (bad.length = DIBBER_APERTURE_BYTES - DIBBER_APERTURE_PAGE, bad), -ENOSPC);
	bad = request(PAGE);
	refuse("offset", a.e.fd, (bad.offset = 1ull << 48, bad), -EINVAL);
	bad = request(PAGE);
	refuse("node", a.e.fd, (bad.node = DIBBER_NODES, bad), -EINVAL);
	bad = request(PAGE);
	refuse("no access", a.e.fd, (bad.access = 0, bad), -EINVAL);
	refuse("access", a.e.fd, (bad.access = 8, bad), -EINVAL);
	bad = request(PAGE);
	refuse("addend", a.e.fd, (bad.addend = 1, bad), -EINVAL);
	bad = request(PAGE);
	refuse("reserved", a.e.fd, (bad.reserved = 1, bad), -EINVAL);
	expect_no_page("a page that nobody has", a.e.fd, &a.map, 100);
	expect_no_page("the other's page", a.e.fd, &a.map, b.map.first);
	expect_no_page("the page by the other's file", b.e.fd, &a.map, a.map.first);
	expect_no_page("behind the window", a.e.fd, &a.map, a.map.first + 2);
	expect_no_page("behind BAR 2", a.e.fd, &a.map, 256);
	far_off = a.map;
	far_off.place += 1ull << 56;
	expect_no_page("an offset that is the same in 32 bits", a.e.fd, &far_off, a.map.first);
	bad = b.map;
	b.map.first = a.map.first;
	expect("the other's window", give_back(&b), -ENOENT);
	b.map = bad;
	b.map.first = DIBBER_APERTURE_BYTES / DIBBER_APERTURE_PAGE;
	expect("no window", give_back(&b), -ENOENT);
	b.map = bad;
	expect("giving back", give_back(&b), 0);
	expect("giving back again", give_back(&b), -ENOENT);
	end_user(&a);
	end_user(&b);
	close(none);
}

static void test_shares(void)
{
	struct user users[SHARES] = { 0 };
	struct endpoint more;

	for (int i = 0; i < SHARES; i++)
		begin_user(&users[i], PAGE);
	expect("endpoint", open_endpoint(CARD, &more), 0);
	refuse("one more file", more.fd, request(PAGE), -ENOSPC);
	expect("giving back", give_back(&users[0]), 0);
	refuse("then", more.fd, request(PAGE), 0);
	close_endpoint(&more);
	for (int i = 0; i < SHARES; i++)
		end_user(&users[i]);
}

/* Pages that are taken back show ones, whoever has them then. */
static void test_revoked(void)
{
	struct user a = { 0 }, b = { 0 };
	volatile uint64_t *old, *new;
	volatile uint32_t *control;

	begin_user(&a, PAGE);
	control = mmap(NULL, PAGE, BOTH, MAP_SHARED, a.e.fd, (off_t)(a.map.place + a.map.control));
	expect("the control page", control == MAP_FAILED ? -errno : 0, 0);
	expect("a sequence", control[16 * a.e.open.number + 1] != UINT32_MAX, 1);
	old = (volatile uint64_t *)a.memory;
	old[0] = 1;
	barrier(&a);
	expect("a store", *(long *)far.memory, 1);
	expect("giving back", give_back(&a), 0);
	expect("no sequence", control[16 * a.e.open.number + 1], UINT32_MAX);
	begin_user(&b, PAGE);
	new = (volatile uint64_t *)b.memory;
	expect("the same page", b.map.first, a.map.first);
	expect("ones", old[0] == UINT64_MAX, 1);
	old[0] = 2;
	expect("the memory", *(long *)far.memory, 1);
	new[0] = 3;
	barrier(&b);
	expect("the new owner's store", *(long *)far.memory, 3);
	munmap((void *)control, PAGE);
	expect("closing", call(b.e.fd, DIBBER_IOC_ENDPOINT_CLOSE, NULL), 0);
	expect("ones behind closing", new[1] == UINT64_MAX, 1);
	new[0] = 4;
	expect("the memory then", *(long *)far.memory, 3);
	end_user(&a);
	end_user(&b);
}

/* Words of the far memory at `offset` that are neither 0 nor `value`. */
static long other_words(uint64_t offset, uint64_t value)
{
	const uint64_t *word = (const uint64_t *)(far.memory + offset);
	long found = 0;

	for (uint64_t n = 0; n < PAGE / sizeof(*word); n++)
		found += word[n] && word[n] != value;
	return found;
}

/*
 * A window ends while the cable is out and its stores wait in the card: more of them than the card
 * has commands. No store reaches another window's memory, and the page can be had again later.
 */
static void test_cable(void)
{
	struct user a = { 0 }, b = { 0 }, c = { 0 };
	volatile uint64_t *old, *new;
	int tries = 0;

	memset(far.memory, 0, 3 * DIBBER_APERTURE_PAGE);
	begin_user(&a, PAGE);
	old = (volatile uint64_t *)a.memory;
	write_register("dibber0", DIBBER_HOST_LINK_CONTROL,
		       1u << DIBBER_HOST_LINK_CONTROL_NEAR_SHIFT);
	for (int n = 0; n < 120; n++)
		old[4 * n] = 0xa;
	expect("giving back", give_back(&a), 0);
	begin_user_at(&b, DIBBER_APERTURE_PAGE, PAGE);
	expect("another page", b.map.first != a.map.first, 1);
	write_register("dibber0", DIBBER_HOST_LINK_CONTROL, 0);
	while (barrier(&b) == UINT32_MAX && tries < 100)
		tries++;
	new = (volatile uint64_t *)b.memory;
	new[1] = 0xb;
	barrier(&b);
	expect("the new window's store", (long)new[1], 0xb);
	begin_user_at(&c, 2 * DIBBER_APERTURE_PAGE, PAGE);
	expect("the page can be had again", c.map.first, a.map.first);
	expect("wrong words in the old window", other_words(0, 0xa), 0);
	expect("wrong words in the new window", other_words(DIBBER_APERTURE_PAGE, 0xb), 0);
	expect("wrong words in the last window", other_words(2 * DIBBER_APERTURE_PAGE, 0), 0);
	end_user(&a);
	end_user(&b);
	end_user(&c);
}

/* One owner's faults are not another's. */
static void test_keys(void)
{
	struct dib_window_options options = options_of(DIB_WINDOW_STORE, PAGE);
	struct dib_window *window = map(&options);
	struct user stranger = { 0 };
	uint32_t before;

	begin_user(&stranger, PAGE);
	expect("giving back", give_back(&stranger), 0);
	munmap((void *)stranger.memory, PAGE);
	stranger.map = request(PAGE);
	stranger.map.key += DIBBER_REGIONS; /* the same entry, another life */
	expect("window", call(stranger.e.fd, DIBBER_IOC_WINDOW_MAP, &stranger.map), 0);
	stranger.memory = map_page(stranger.e.fd, &stranger.map, stranger.map.first);
	before = barrier(&stranger);
	*(volatile uint64_t *)stranger.memory = 5;
	expect("the fault is told", barrier(&stranger) != before, 1);
	expect("the memory", *(long *)far.memory != 5, 1);
	succeeds("the other owner's check", dib_window_check(window));
	end_user(&stranger);
	succeeds("unmap", dib_window_unmap(window));
}

static void store_for_ever(void)
{
	struct dib_window_options options = options_of(DIB_WINDOW_STORE, BYTES);
	struct dib_window *window;
	struct dib_card *card;
	struct dib_endpoint *endpoint;
	static uint8_t bytes[4096];

	if (dib_open(CARD, NULL, &card) || dib_endpoint_open(card, 3, NULL, &endpoint) ||
	    dib_window_map(endpoint, &options, &window))
		exit(1);
	for (;;)
		if (dib_window_copy(window, DIBBER_APERTURE_PAGE, bytes, sizeof(bytes)))
			exit(1);
}

/* Processes that die while they store leave all pages to others, and nobody hears of it. */
static void test_kills(void)
{
	struct dib_window_options options = options_of(DIB_WINDOW_LOAD | DIB_WINDOW_STORE, PAGE);
	struct dib_window *window = map(&options), *all = NULL, *rest = NULL;
	uint64_t word = 0x123456789abcdef0;

	for (int i = 0; i < KILLS; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0)
			store_for_ever();
		usleep(50000 + (useconds_t)random() % 400000);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		expect("a child until then", WIFSIGNALED(status), 1);
	}
	succeeds("store", dib_window_store(window, 8, &word, sizeof(word)));
	succeeds("barrier", dib_window_barrier(window));
	expect("bytes", memcmp(far.memory + 8, &word, sizeof(word)), 0);
	succeeds("unmap", dib_window_unmap(window));
	options.length = COMBINED * DIBBER_APERTURE_PAGE;
	succeeds("all pages", dib_window_map(near.endpoint, &options, &all));
	options.access |= DIB_WINDOW_ADD;
	options.length = UNCACHED * DIBBER_APERTURE_PAGE;
	succeeds("the rest", dib_window_map(near.endpoint, &options, &rest));
	options.length = 1;
	fails("one more", dib_window_map(near.endpoint, &options, &window), DIB_ERR_LIMIT);
	dib_window_unmap(all);
	dib_window_unmap(rest);
}

/* A child has no part of it. */
static void test_children(void)
{
	struct dib_window_options options = options_of(DIB_WINDOW_LOAD, PAGE);
	struct dib_window *window = map(&options);
	volatile uint8_t *memory = dib_window_pointer(window);
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(memory[0]);
	waitpid(child, &status, 0);
	expect("a child's load", WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGSEGV);
	succeeds("unmap", dib_window_unmap(window));
}

static int count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	int lines = 0, byte;

	while (file && (byte = fgetc(file)) != EOF)
		lines += byte == '\n';
	if (file)
		fclose(file);
	return lines;
}

static void limit_mappings(int count)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "w");

	if (!file || fprintf(file, "%d\n", count) < 0 || fclose(file))
		printf("max_map_count: %m\n");
}

/* A window that could not be mapped as a whole leaves no page that takes stores. */
static void test_no_room(void)
{
	struct dib_window_options options = options_of(DIB_WINDOW_LOAD | DIB_WINDOW_STORE, PAGE);
	struct dib_window *window = map(&options);
	volatile uint8_t *memory = dib_window_pointer(window);
	int pipes[2], failed = 0, most = count_mappings(), rc = 0;

	succeeds("unmap", dib_window_unmap(window));
	expect("pipe", pipe(pipes), 0);
	for (int count = most - 4; count <= most + 4; count++) {
		limit_mappings(count);
		rc = dib_window_map(near.endpoint, &options, &window);
		limit_mappings(65530);
		if (rc) {
			failed++;
			expect("what is left", write(pipes[1], (const void *)memory, 1), -1);
		} else {
			succeeds("unmap", dib_window_unmap(window));
		}
	}
	expect("it failed, and then not", failed > 0 && !rc, 1);
	close(pipes[0]);
	close(pipes[1]);
}

/* The function is reset under the window. It ends by name, and a new one works. */
static void test_reset(void)
{
	struct dib_window_options options = options_of(DIB_WINDOW_LOAD | DIB_WINDOW_STORE, PAGE);
	struct dib_window *window = map(&options);
	volatile uint64_t *memory = dib_window_pointer(window);
	struct dibber_register access = { .offset = DIBBER_HOST_MAGIC };
	int door = open(CARD, O_RDONLY), fd = open(DEVICE "/reset", O_WRONLY), status = 0, rc;
	pid_t reader = fork();

	/* Meanwhile the card is looked at: that it works, or that it does not, and nothing else. */
	while (reader == 0) {
		access.value = 0;
		rc = call(door, DIBBER_IOC_REGISTER, &access);
		if (rc ? rc != -ESHUTDOWN : access.value != DIBBER_MAGIC)
			_exit(1);
	}
	memory[0] = 7;
	succeeds("barrier", dib_window_barrier(window));
	expect("reset", (long)write(fd, "1", 1), 1);
	close(fd);
	expect("the reader goes on", waitpid(reader, &status, WNOHANG), 0);
	kill(reader, SIGKILL);
	waitpid(reader, &status, 0);
	close(door);
	expect("ones", memory[0] == UINT64_MAX, 1);
	/* No word of a lost page is taken for a sequence. */
	for (unsigned int n = 0; n < PAGE / sizeof(*memory); n++)
		memory[n] = 0;
	expect("the memory", *(long *)far.memory, 7);
	fails("check", dib_window_check(window), DIB_ERR_LOST);
	fails("barrier", dib_window_barrier(window), DIB_ERR_LOST);
	dib_close(near.card);
	munmap(near.memory, BYTES);
	open_end(&near, CARD, 0, 1, pages(), BYTES);
	window = map(&options);
	memory = dib_window_pointer(window);
	memory[0] = 9;
	succeeds("barrier", dib_window_barrier(window));
	expect("the memory then", *(long *)far.memory, 9);
	succeeds("unmap", dib_window_unmap(window));
	/* Pages that were kept for stores under way (test_cable) are free again. */
	options.length = COMBINED * DIBBER_APERTURE_PAGE;
	window = map(&options);
	succeeds("unmap", dib_window_unmap(window));
}

int main(int argc, char **argv)
{
	int all;

	if (argc != 4)
		return 2;
	setlinebuf(stdout);
	firmware = argv[1];
	open_end(&near, argv[2], 0, 1, pages(), BYTES);
	open_end(&far, argv[3], 1, 1, pages(), BYTES);
	all = wrong;
#define TEST(name) all |= RUN_TEST("window", name)
	TEST(assignments);
	TEST(adds);
	TEST(memory_types);
	TEST(refusals);
	TEST(shares);
	TEST(revoked);
	TEST(cable);
	TEST(keys);
	TEST(kills);
	TEST(children);
	TEST(no_room);
	TEST(reset);
	wrong = 0;
	close_end(&near);
	close_end(&far);
	return all | wrong;
}
