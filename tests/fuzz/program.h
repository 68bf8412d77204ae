/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_FUZZ_PROGRAM_H
#define DIBBER_FUZZ_PROGRAM_H

#include <dibber/dibber.h>

#define IDENTITY    0xd1bb0001u /* of the control program that is loaded */
#define IMAGE_BYTES 256u
#define FUZZ_SRAM   0x10000u /* bytes of SRAM that the card says it has */

/* A program's whole life with the card at `uri`; `also` is called with an endpoint and a region
 * registered. */
void live_program(const char *uri, void (*also)(struct dib_endpoint *endpoint));

/* Nothing was written beside what it registered, or abort(). When nobody writes any more. */
void check_program(void);

#endif
