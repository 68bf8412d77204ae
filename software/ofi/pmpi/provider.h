/* The provider that the engine has loaded, as the calls of this library find it. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef PMPI_PROVIDER_H
#define PMPI_PROVIDER_H

#include <stdbool.h>

#include "../src/direct.h"
#include "../src/offer.h"

#define PUBLIC __attribute__((visibility("default")))

extern struct provider {
	__typeof__(&dibber_fi_open) open;
	__typeof__(&dibber_fi_close) close;
	__typeof__(&dibber_fi_move) move;
	__typeof__(&dibber_fi_wait) wait;
	__typeof__(&dibber_fi_hold) hold;
	__typeof__(&dibber_fi_release) release;
	__typeof__(&dibber_fi_get) get;
	__typeof__(&dibber_fi_lost) lost;
	__typeof__(&dibber_fi_poll_only) poll_only;
} provider;

/* Whether the engine has loaded the provider. Its path is in FI_PROVIDER_PATH. */
bool has_provider(void);

#endif
