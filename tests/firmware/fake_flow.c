/* What a test changes in the program itself, because it comes only after a very long time. */

/* SPDX-License-Identifier: BSD-2-Clause */

#include "flows/flow.h"

/* The incarnation of a flow began so many PSNs earlier. */
void fake_age(uint32_t number, uint32_t psns);

void fake_age(uint32_t number, uint32_t psns)
{
	flows[number].start -= psns;
}
