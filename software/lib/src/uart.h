/* What the files of the transport to a card behind a UART share: a line that carries frames, and
 * copies of memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_UART_H
#define DIBBER_UART_H

#include <pthread.h>

#include <stdbool.h>

#include "transport.h"

#define UART_CHANGED_WORDS (DIBBER_BRIDGED_CHUNKS / 32u)

/* The line: all of it with the card's lock held. */
struct uart_line {
	int fd;
	const char *port;	 /* for reasons */
	unsigned int baud;	 /* bits a second */
	unsigned int timeout_ms; /* for an answer, beside what its bytes take */
	bool opened;		 /* the card has answered once */
	bool lost;
	bool heard;	   /* any byte, since it was opened */
	uint8_t number;	   /* of the last frame */
	uint32_t repeated; /* frames that were sent again */
};

/* Memory of this process that has a place in the card's. */
struct uart_map {
	struct dib_mapping mapping;
	struct uart_map *next;
};

struct uart {
	struct dib_transport base;
	pthread_mutex_t lock; /* guards what follows */
	struct uart_line line;
	struct uart_map *maps;
	uint8_t *known; /* what the card's memory holds, as far as it is mapped and was heard of */
	uint8_t *fetched; /* what was read of it for the next publication */
	char port[];
};

#endif
