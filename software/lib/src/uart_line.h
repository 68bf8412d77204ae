/* The line to a card behind a UART. The caller has locked the card's line. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_UART_LINE_H
#define DIBBER_UART_LINE_H

#include "uart.h"

/* Open a port for frames. */
int dib_uart_open(struct uart_line *line, const char *port);
void dib_uart_close(struct uart_line *line);
/* At most DIBBER_FRAME_WORDS words. A request without an answer is repeated a few times. */
int dib_uart_read(struct uart_line *line, uint32_t address, uint32_t *data, uint32_t words);
int dib_uart_write(struct uart_line *line, uint32_t address, const uint32_t *data, uint32_t words);

#endif
