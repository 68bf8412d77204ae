/* What the files of the transport to a card behind a UART share: a line that carries frames, and
 * copies of memory. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_UART_H
#define DIBBER_UART_H

#include <pthread.h>

#include "error.h"
#include "handle.h"
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

/* uart_line.c */

/* Open a port for frames. */
int dib_uart_open(struct uart_line *line, const char *port);
void dib_uart_close(struct uart_line *line);
/* At most DIBBER_FRAME_WORDS words. What is not answered is asked again, a few times. */
int dib_uart_read(struct uart_line *line, uint32_t address, uint32_t *data, uint32_t words);
int dib_uart_write(struct uart_line *line, uint32_t address, const uint32_t *data, uint32_t words);

/* uart_memory.c */

/* The card gets all of a new mapping. */
int dib_uart_enter(struct uart *u, const struct dib_mapping *mapping);
void dib_uart_remove(struct uart *u, uint64_t iova);
/* What this process has written goes to the card. */
int dib_uart_push(struct uart *u);
/* What the card has written comes to this process. */
int dib_uart_pull(struct uart *u);

#endif
