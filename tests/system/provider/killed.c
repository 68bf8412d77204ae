/* Side 1 is killed while side 0 waits for its message, has a long message for it, and writes. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <signal.h>

/* A command to a card whose process was killed ends after 40 ms of simulated time. */
#define SECONDS 1200
#include "both.h"

static void body(void)
{
	static uint8_t bytes[20000], room[64];
	int received = 0, sent = 0;
	double begin;
	ssize_t rc;

	open_endpoint(FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV, FI_MR_PROV_KEY);
	if (side) {
		post(fi_tsend(ep, bytes, 8, NULL, peer, 1, bytes));
		wait_for(bytes);
		meet();
		for (;;)
			pause();
	}
	post(fi_trecv(ep, room, sizeof(room), NULL, peer, 1, 0, room));
	wait_for(room);
	meet();
	post(fi_trecv(ep, room, sizeof(room), NULL, peer, 2, 0, room));
	post(fi_tsend(ep, bytes, sizeof(bytes), NULL, peer, 3, bytes));
	kill(child, SIGKILL);
	while (!received || !sent) {
		struct fi_cq_tagged_entry entry;
		int error = next_entry(&entry);

		need(error > 0, "an operation succeeded");
		received += entry.op_context == room;
		sent += entry.op_context == bytes;
	}
	need(received == 1 && sent == 1, "%d receives and %d sends", received, sent);
	/* Later calls fail at once. */
	begin = now();
	rc = fi_tsend(ep, bytes, 8, NULL, peer, 1, bytes);
	need(rc < 0 && rc != -FI_EAGAIN, "a send to a lost peer: %zd", rc);
	post(fi_trecv(ep, room, sizeof(room), NULL, FI_ADDR_UNSPEC, 2, 0, room));
	check(fi_cancel(&ep->fid, room));
	need(now() - begin < SECONDS, "calls that wait");
	close_endpoint();
	/* run_both() expects that the child has ended well. */
	waitpid(child, NULL, 0);
	exit(0);
}

int main(void)
{
	return run_both(body);
}
