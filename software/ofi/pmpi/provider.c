/* The provider that the engine has loaded. */

/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define PROVIDER "libdibber-fi.so"

struct provider provider;

static const struct {
	const char *name;
	size_t place;
} symbols[] = {
	{ "dibber_fi_open", offsetof(struct provider, open) },
	{ "dibber_fi_close", offsetof(struct provider, close) },
	{ "dibber_fi_move", offsetof(struct provider, move) },
	{ "dibber_fi_wait", offsetof(struct provider, wait) },
	{ "dibber_fi_hold", offsetof(struct provider, hold) },
	{ "dibber_fi_release", offsetof(struct provider, release) },
	{ "dibber_fi_get", offsetof(struct provider, get) },
	{ "dibber_fi_lost", offsetof(struct provider, lost) },
	{ "dibber_fi_poll_only", offsetof(struct provider, poll_only) },
};

bool has_provider(void)
{
	const char *folder = getenv("FI_PROVIDER_PATH");
	struct provider found;
	char path[4096];
	void *handle;

	if (provider.wait)
		return true;
	if (!folder || strlen(folder) + sizeof("/" PROVIDER) > sizeof(path))
		return false;
	strcpy(path, folder);
	strcat(path, "/" PROVIDER);
	handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (!handle)
		return false;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		if (!symbol)
			return false;
		memcpy((char *)&found + symbols[i].place, &symbol, sizeof(symbol));
	}
	provider = found;
	return true;
}
