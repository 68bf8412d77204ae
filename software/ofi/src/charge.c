/* CPU time of the provider's calls, and of the engine between them. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdint.h>
#include <string.h>

#include <dibber/dibber.h>

#include "charge.h"
#include "provider.h"

#define LINE 64u /* bytes */

struct engine {
	const char *name;
	uint16_t instructions[CHARGES];
};

#define CHARGE(kind, provider, openmpi) provider,
static const uint16_t own[CHARGES] = {
#include "charges.h"
};
#undef CHARGE

#define CHARGE(kind, provider, openmpi) openmpi,
static const struct engine engines[] = {
	{ "openmpi",
	  {
#include "charges.h"
	  } },
};
#undef CHARGE

/* What is owed to the clock. All of it is of this process, whose domains have one place there. */
static struct {
	bool on;
	const struct engine *engine; /* NULL: none is charged */
	uint64_t instructions, copied;
} owed;

int dfi_charge_begin(void)
{
	int wanted = 1;
	char *name = NULL;

	fi_param_get_bool(&dfi_provider, "charge", &wanted);
	owed.on = wanted;
	owed.engine = NULL;
	if (fi_param_get_str(&dfi_provider, "engine", &name) || !name || !*name)
		return 0;
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (!strcmp(engines[i].name, name))
			owed.engine = &engines[i];
	if (owed.engine)
		return 0;
	FI_WARN(&dfi_provider, FI_LOG_DOMAIN, "FI_DIBBER_ENGINE: %s is not known\n", name);
	return -FI_EINVAL;
}

bool dfi_charges(void)
{
	return owed.on;
}

void dfi_charge(enum charge kind, unsigned int count)
{
	if (!owed.on)
		return;
	owed.instructions += (uint64_t)own[kind] * count;
	if (owed.engine)
		owed.instructions += (uint64_t)owed.engine->instructions[kind] * count;
}

void dfi_charge_copy(size_t bytes)
{
	if (owed.on && bytes > LINE)
		owed.copied += bytes;
}

static uint32_t part(uint64_t *sum)
{
	uint32_t most = *sum < UINT32_MAX ? (uint32_t)*sum : UINT32_MAX;

	*sum -= most;
	return most;
}

void dfi_charge_pay(struct dib_endpoint *endpoint)
{
	while (owed.instructions || owed.copied) {
		uint32_t instructions = part(&owed.instructions);

		if (dib_clock_charge(endpoint, instructions, part(&owed.copied)))
			return;
	}
}
