/* Copies of memory on a card behind a UART. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_UART_MEMORY_H
#define DIBBER_UART_MEMORY_H

#include "uart.h"

/* Copy all of a new mapping to the card. */
int dib_uart_enter(struct uart *u, const struct dib_mapping *mapping);
void dib_uart_remove(struct uart *u, uint64_t iova);
/* Copy what this process has written to the card. */
int dib_uart_push(struct uart *u);
/* Copy what the card has written to this process. */
int dib_uart_pull(struct uart *u);

#endif
