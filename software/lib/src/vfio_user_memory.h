/* Memory of this process that the card reaches by message. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_VFIO_USER_MEMORY_H
#define DIBBER_VFIO_USER_MEMORY_H

#include "vfio_user_client.h"

int dib_vfio_enter_mapping(struct vfio_user *v, const struct dib_mapping *mapping);
void dib_vfio_remove_mapping(struct vfio_user *v, uint64_t iova);

/* Execute and answer a request of the card, whose payload is in v->payload. Only the reader calls
 * this. */
int dib_vfio_serve_request(struct vfio_user *v, const struct vfio_user_header *header,
			   size_t length);

#endif
