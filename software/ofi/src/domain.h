/* A domain: an endpoint of the card with its command slots, the memory that peers write, and all
 * that its one fid_ep has under way.
 */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DFI_DOMAIN_H
#define DFI_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <dibber/dibber.h>

#include "card.h"
#include "list.h"
#include "peer.h"
#include "provider.h"

struct coalescer;
struct command;
struct endpoint;

#define PEERS (DIBBER_NODES * DIBBER_ENDPOINTS)

struct domain {
	struct fid_domain fid;
	struct list place; /* among the domains of this process */
	struct dfi_card card;
	struct dib_endpoint *endpoint;
	unsigned int number; /* of the card's endpoint */
	bool user_keys;	     /* the program chooses the keys of its regions (mr_mode 0) */
	unsigned int users;  /* objects of libfabric that belong to this domain */
	int broken;	     /* the positive FI_ number of what ended the endpoint, or 0 */

	/* Memory that peers write and read: a ring for each peer, then a word of credit for each.
	 */
	uint8_t *inbox;
	struct dib_region *inbox_region;
	/* Memory of this side's commands: a buffer for each command, then a word for each probe. */
	uint8_t *staging;
	struct dib_region *staging_region;
	uint32_t staging_used; /* bit n: buffer n belongs to a command */

	/* Commands: those on the card are counted, others wait for a slot or a buffer. */
	unsigned int under_way;
	struct list on_card, waiting;
	struct coalescer *coalescer; /* NULL: switched off */
	/* Operations that wait until a region of the card is free. */
	struct list short_of_regions;
	unsigned int regions; /* that operations have registered for their time */

	struct peer peers[PEERS];
	struct list kept;	     /* registrations of the cache */
	uint64_t active[PEERS / 64]; /* bit n: peer n has sent or may send */
	uint32_t overruns;	     /* events lost so far */

	struct list regions_of_program; /* struct region */
	struct list known_keys;		/* of peers, where the program chooses them */
	uint64_t next_empty_key;

	unsigned int direct; /* transfers of direct.h that are under way */

	struct endpoint *ep; /* the one fid_ep, or NULL */

	/* Progress that finds nothing waits for the card, longer each time. */
	uint64_t patience_ns;
	uint64_t quiet_ns; /* simulated time since the peers were asked whether they are there */
	bool busy;	   /* it has exchanged messages */
	uint8_t skipped;   /* looks that were left out since the last one */
	bool in_progress;
};

/* The operation `domain` of a fabric. */
int dfi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context);

/* The fid_ep ends: close the card's endpoint, so that all of its commands end. */
void dfi_domain_stop(struct domain *domain);

/* The domains of this process, one after the other: the first one after NULL, NULL after the last.
 */
struct domain *dfi_domain_next(const struct domain *domain);

static inline struct domain *domain_of(struct fid_domain *fid)
{
	return member_of(fid, struct domain, fid);
}

#endif
