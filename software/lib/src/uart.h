/* The state of a transport to a card behind a UART: a line that carries frames, and copies of
 * memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_UART_H
#define DIBBER_UART_H

#include <pthread.h>

#include <stdbool.h>

#include "transport.h"

#define UART_CHANGED_WORDS (DIBBER_BRIDGED_CHUNKS / 32u)

/* The line. All of it is used with the card's lock held. */
struct uart_line {
	int fd;
	const char *port;	 /* for reasons */
	unsigned int baud;	 /* bits a second */
	unsigned int timeout_ms; /* for an answer, in addition to the time of its bytes */
	bool opened;		 /* the card has answered once */
	bool lost;
	bool heard;	   /* a byte came since the line was opened */
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
	uint8_t *known;	  /* contents of the card's mapped memory, as far as they are known */
	uint8_t *fetched; /* what was read of it for the next publication */
	char port[];
};

#endif
