/* Two processes with an endpoint of libfabric each: opening, addresses, waiting.
 *
 * The parent is side 0 and the child side 1. They exchange what they must know of each other
 * through a socket, as a launcher would do for them.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef BOTH_H
#define BOTH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#ifndef SECONDS
#define SECONDS 100 /* until a wait has failed */
#endif

static int side, other_side; /* the number of this side, and the socket to the other one */
static pid_t child;	     /* side 1 */
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_cntr *sends, *receives;
static fi_addr_t peer, self;

#define need(condition, ...)                                                   \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "side %d, line %d: ", side, __LINE__); \
			fprintf(stderr, __VA_ARGS__);                          \
			fprintf(stderr, "\n");                                 \
			exit(1);                                               \
		}                                                              \
	} while (0)

#define check(call)                                                      \
	do {                                                             \
		ssize_t rc_ = (call);                                    \
		need(rc_ >= 0, "%s: %s", #call, fi_strerror((int)-rc_)); \
	} while (0)

/* xorshift64*, Vigna 2016. */
static uint64_t state;

__attribute__((unused)) static uint64_t draw(uint64_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * UINT64_C(2685821657736338717) >> 16) % below;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Progress is manual: the other side may need this side's while this side waits for it. */
static void exchange(const void *mine, void *theirs, size_t length)
{
	double begin = now();
	size_t got = 0;

	need(write(other_side, mine, length) == (ssize_t)length, "write to the other side");
	while (got < length) {
		ssize_t rc =
			recv(other_side, (char *)theirs + got, length - got, cq ? MSG_DONTWAIT : 0);

		need(rc != 0, "the other side has ended");
		if (rc > 0)
			got += (size_t)rc;
		else if (cq)
			fi_cq_read(cq, NULL, 0);
		need(now() - begin < SECONDS, "the other side does not come");
	}
}

static void meet(void)
{
	char mine = 0, theirs;

	exchange(&mine, &theirs, 1);
}

/* An entry, if there is one. Returns 0, the positive FI_ number of a failed operation, or -1. */
static int try_entry(struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_err_entry error = { 0 };
	ssize_t rc = fi_cq_read(cq, entry, 1);

	if (rc == 1)
		return 0;
	if (rc == -FI_EAVAIL) {
		check(fi_cq_readerr(cq, &error, 0));
		entry->op_context = error.op_context;
		entry->flags = error.flags;
		entry->len = error.len;
		return error.err;
	}
	need(rc == -FI_EAGAIN, "fi_cq_read: %s", fi_strerror((int)-rc));
	return -1;
}

/* The next entry. Returns 0, or the positive FI_ number of a failed operation. */
static int next_entry(struct fi_cq_tagged_entry *entry)
{
	double begin = now();
	int error;

	while ((error = try_entry(entry)) < 0)
		need(now() - begin < SECONDS, "no entry came");
	return error;
}

__attribute__((unused)) static void wait_for(void *context)
{
	struct fi_cq_tagged_entry entry;
	int error = next_entry(&entry);

	need(!error, "an operation failed: %s", fi_strerror(error));
	need(entry.op_context == context, "the entry of another operation");
}

/* Repeat a call while the provider has no room. */
#define post(call)                                                       \
	do {                                                             \
		ssize_t rc_;                                             \
                                                                         \
		while ((rc_ = (call)) == -FI_EAGAIN)                     \
			;                                                \
		need(rc_ == 0, "%s: %s", #call, fi_strerror((int)-rc_)); \
	} while (0)

static void open_endpoint(uint64_t caps, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	uint8_t mine[8], theirs[8];
	size_t length = sizeof(mine);

	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->fabric_attr->prov_name = strdup("dibber");
	check(fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	need((info->domain_attr->mr_mode & ~mr_mode) == 0, "another mr_mode");
	check(fi_fabric(info->fabric_attr, &fabric, NULL));
	check(fi_domain(fabric, info, &domain, NULL));
	check(fi_endpoint(domain, info, &ep, NULL));
	check(fi_av_open(domain, &av_attr, &av, NULL));
	check(fi_cq_open(domain, &cq_attr, &cq, NULL));
	check(fi_cntr_open(domain, &cntr_attr, &sends, NULL));
	check(fi_cntr_open(domain, &cntr_attr, &receives, NULL));
	check(fi_ep_bind(ep, &av->fid, 0));
	check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	check(fi_ep_bind(ep, &sends->fid, FI_SEND));
	check(fi_ep_bind(ep, &receives->fid, FI_RECV));
	check(fi_enable(ep));
	check(fi_getname(&ep->fid, mine, &length));
	need(length == sizeof(mine), "an address of %zu bytes", length);
	exchange(mine, theirs, sizeof(mine));
	need(fi_av_insert(av, theirs, 1, &peer, 0, NULL) == 1, "the other side's address");
	need(fi_av_insert(av, mine, 1, &self, 0, NULL) == 1, "the own address");
}

static void close_endpoint(void)
{
	check(fi_close(&ep->fid));
	check(fi_close(&sends->fid));
	check(fi_close(&receives->fid));
	check(fi_close(&cq->fid));
	check(fi_close(&av->fid));
	check(fi_close(&domain->fid));
	check(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

/* Run `body` on both sides. Returns the exit code. */
static int run_both(void (*body)(void))
{
	int ends[2], status = 1;

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
	child = fork();
	need(child >= 0, "fork");
	side = child == 0;
	other_side = ends[side];
	close(ends[!side]);
	/* What a launcher says of the place on this host. */
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", side ? "1" : "0", 1);
	body();
	if (side)
		return 0;
	need(waitpid(child, &status, 0) == child, "waitpid");
	return status != 0;
}

#endif
