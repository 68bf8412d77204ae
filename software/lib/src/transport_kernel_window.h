/* Remote windows of the transport /dev/dibberN. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_TRANSPORT_KERNEL_WINDOW_H
#define DIBBER_TRANSPORT_KERNEL_WINDOW_H

#include "transport.h"

/* Functions of the transport: transport.h says what they do. */
int dib_kernel_aperture(struct dib_transport *transport, uint64_t *bytes, uint8_t **memory);
int dib_kernel_window_map(struct dib_transport *transport, unsigned int owner,
			  struct dib_window_request *request);
void dib_kernel_window_unmap(struct dib_transport *transport, unsigned int owner,
			     unsigned int first, unsigned int pages);

#endif
