/* The provider as libfabric sees it: its entry, its parameters, its fabric. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdlib.h>

#include "domain.h"
#include "events.h"
#include "info.h"
#include "provider.h"

int dfi_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid, (void)other, (void)flags;
	return -FI_ENOSYS;
}

int dfi_no_control(struct fid *fid, int command, void *argument)
{
	(void)fid, (void)command, (void)argument;
	return -FI_ENOSYS;
}

int dfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

/* The fabric ----------------------------------------------------------------------------------- */

static int fabric_close(struct fid *fid)
{
	free(member_of(fid, struct fid_fabric, fid));
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = fabric_close,
	.bind = dfi_no_bind,
	.control = dfi_no_control,
	.ops_open = dfi_no_ops_open,
};

static int no_passive(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		      void *context)
{
	(void)fabric, (void)info, (void)pep, (void)context;
	return -FI_ENOSYS;
}

static int no_wait(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set)
{
	(void)fabric, (void)attr, (void)set;
	return -FI_ENOSYS;
}

/* There are no wait objects, so no reason not to wait in a call. */
static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	(void)fabric, (void)fids, (void)count;
	return 0;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(fabric_ops),
	.domain = dfi_domain_open,
	.passive_ep = no_passive,
	.eq_open = dfi_events_open,
	.wait_open = no_wait,
	.trywait = fabric_trywait,
};

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	struct fid_fabric *fabric = calloc(1, sizeof(*fabric));

	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.context = context;
	fabric->fid.ops = &fid_ops;
	fabric->ops = &fabric_ops;
	fabric->api_version = attr->api_version;
	*out = fabric;
	return 0;
}

/* Entry ---------------------------------------------------------------------------------------- */

static void cleanup(void)
{
}

struct fi_provider dfi_provider = {
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "dibber",
	.getinfo = dfi_getinfo,
	.fabric = fabric_open,
	.cleanup = cleanup,
};

/* libfabric 2.x declares it nowhere. */
struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	/* A program may ask for the version of the libfabric that it runs with, and that one
	 * refuses providers of older headers. Within a major version structures grow at their ends,
	 * tables of operations have their sizes, and fi_info is the library's own. */
	if (FI_MAJOR(fi_version()) == FI_MAJOR_VERSION)
		dfi_provider.fi_version = fi_version();
	fi_param_define(
		&dfi_provider, "card", FI_PARAM_STRING,
		"cards of this host, \"sim:PATH\", \"vfio:ADDRESS\" or \"/dev/dibberN\", with a "
		"comma between two. A process takes the card of its place on the host, as its "
		"launcher tells it, or the first that is free (default: no card)");
	fi_param_define(
		&dfi_provider, "firmware", FI_PARAM_STRING,
		"control program for a card on which none runs. Such a card gets its place in "
		"the list of cards as its node number");
	fi_param_define(
		&dfi_provider, "cache", FI_PARAM_BOOL,
		"whether registrations of the program's memory are kept until it goes away, "
		"where the kernel has userfaultfd (default: yes)");
	fi_param_define(&dfi_provider, "charge", FI_PARAM_BOOL,
			"whether the simulator's clock counts the CPU time of provider and engine "
			"(default: yes)");
	fi_param_define(
		&dfi_provider, "engine", FI_PARAM_STRING,
		"the program above libfabric whose instructions are charged: openmpi (default: "
		"none)");
	fi_param_define(&dfi_provider, "coalesce", FI_PARAM_BOOL,
			"whether short writes or reads at a constant distance become one strided "
			"command (default: yes)");
	fi_param_define(
		&dfi_provider, "routes", FI_PARAM_STRING,
		"file of routes between switches, lines of FROM TO PLACE ROUTE: two nodes, a place "
		"in the card's table, the route in hexadecimal digits (default: the card looks)");
	return &dfi_provider;
}
