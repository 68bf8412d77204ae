/* Address vectors. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "av.h"
#include "domain.h"
#include "routes.h"

struct peer *dfi_av_peer(const struct av *av, fi_addr_t address)
{
	return address < av->count ? av->peers[address] : NULL;
}

static struct av *av_of(struct fid_av *fid)
{
	return member_of(fid, struct av, fid);
}

static int append(struct av *av, struct peer *peer, fi_addr_t *address)
{
	if (av->count == av->room) {
		size_t room = av->room ? 2 * av->room : 16;
		struct peer **peers = realloc(av->peers, room * sizeof(*peers));

		if (!peers)
			return -FI_ENOMEM;
		av->peers = peers;
		av->room = room;
	}
	*address = av->count;
	av->peers[av->count++] = peer;
	if (peer->address == FI_ADDR_NOTAVAIL)
		peer->address = *address;
	return 0;
}

static int av_insert(struct fid_av *fid, const void *addresses, size_t count, fi_addr_t *out,
		     uint64_t flags, void *context)
{
	struct av *av = av_of(fid);
	const uint8_t *bytes = addresses;
	int inserted = 0;

	if (flags & ~(uint64_t)(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	dfi_enter();
	for (size_t i = 0; i < count; i++, bytes += ADDRESS_BYTES) {
		struct peer *peer = dfi_peer_of_address(av->domain, bytes);
		fi_addr_t address = FI_ADDR_NOTAVAIL;
		int rc = peer ? append(av, peer, &address) : -FI_EHOSTUNREACH;

		if (!rc)
			dfi_routes_find(av->domain->card.card, av->domain->card.node, peer->node);
		if (rc)
			FI_WARN(&dfi_provider, FI_LOG_AV,
				"node %u endpoint %u cannot be reached from node %u endpoint %u\n",
				bytes[0], bytes[2], av->domain->card.node, av->domain->number);
		if (flags & FI_SYNC_ERR)
			((int *)context)[i] = -rc;
		if (out)
			out[i] = address;
		inserted += !rc;
	}
	dfi_leave();
	return inserted;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addresses, size_t count, uint64_t flags)
{
	struct av *av = av_of(fid);

	if (flags)
		return -FI_EBADFLAGS;
	dfi_enter();
	for (size_t i = 0; i < count; i++) {
		struct peer *peer = dfi_av_peer(av, addresses[i]);

		if (!peer)
			continue;
		av->peers[addresses[i]] = NULL;
		if (peer->address == addresses[i])
			peer->address = FI_ADDR_NOTAVAIL;
	}
	dfi_leave();
	return 0;
}

static int av_lookup(struct fid_av *fid, fi_addr_t address, void *out, size_t *length)
{
	struct av *av = av_of(fid);
	uint8_t bytes[ADDRESS_BYTES];
	struct peer *peer;

	dfi_enter();
	peer = dfi_av_peer(av, address);
	if (peer)
		dfi_address_pack(bytes, peer->node, peer->endpoint, peer->key);
	dfi_leave();
	if (!peer)
		return -FI_EINVAL;
	memcpy(out, bytes, *length < sizeof(bytes) ? *length : sizeof(bytes));
	*length = sizeof(bytes);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *address, char *buffer, size_t *length)
{
	const uint8_t *bytes = address;
	int needed = snprintf(buffer, *length, "dibber://%u/%u/%02x%02x%02x%02x",
			      bytes[0] | (unsigned int)bytes[1] << 8, bytes[2], bytes[7], bytes[6],
			      bytes[5], bytes[4]);

	(void)fid;
	*length = (size_t)needed + 1;
	return buffer;
}

static int no_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *out,
			uint64_t flags, void *context)
{
	(void)fid, (void)node, (void)service, (void)out, (void)flags, (void)context;
	return -FI_ENOSYS;
}

static int no_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service,
			size_t services, fi_addr_t *out, uint64_t flags, void *context)
{
	(void)fid, (void)node, (void)nodes, (void)service, (void)services, (void)out, (void)flags,
		(void)context;
	return -FI_ENOSYS;
}

static int av_close(struct fid *fid)
{
	struct av *av = member_of(fid, struct av, fid.fid);

	dfi_enter();
	av->domain->users--;
	for (unsigned int i = 0; i < PEERS; i++)
		av->domain->peers[i].address = FI_ADDR_NOTAVAIL;
	dfi_leave();
	free(av->peers);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid, (void)flags;
	/* An event queue of inserts, which need none: they are done when they return. */
	return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = av_close,
	.bind = av_bind,
	.control = dfi_no_control,
	.ops_open = dfi_no_ops_open,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(av_ops),
	.insert = av_insert,
	.insertsvc = no_insertsvc,
	.insertsym = no_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
};

int dfi_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	struct av *av;

	if (!attr)
		return -FI_EINVAL;
	/* Neither shared by name, nor with receive contexts, nor with events. */
	if (attr->name || attr->rx_ctx_bits || attr->flags & ~(uint64_t)FI_SYMMETRIC)
		return -FI_ENOSYS;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_TABLE;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &fid_ops;
	av->fid.ops = &av_ops;
	av->domain = domain_of(fid);
	dfi_enter();
	av->domain->users++;
	dfi_leave();
	*out = &av->fid;
	return 0;
}
