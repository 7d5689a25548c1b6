/* SPDX-License-Identifier: Apache-2.0
 *
 * COM1, a 16550A. serial.c.
 */
#ifndef BOARD_SERIAL_H
#define BOARD_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

#define UART_FIFO 16u
#define UART_POLLS 16u

struct board;

struct uart {
  uint8_t fifo[UART_FIFO]; /* received; one byte when FIFOs are off */
  uint8_t first, count;
  uint8_t ier, fcr, lcr, mcr, msr, scratch;
  uint8_t errors; /* of LSR, until it is read */
  bool is_sent;   /* THR became empty, and the guest has not been told */
  uint16_t divisor;
  uint64_t timeout; /* time at which bytes below the trigger level cause a timeout interrupt */
  bool has_timed_out;
  uint8_t polls; /* reads of LSR or of no data in a row, up to UART_POLLS: the guest waits for a byte */
};

void uart_reset(struct board *board);
void uart_advance(struct board *board, uint64_t now);
uint64_t uart_deadline(const struct board *board);
uint32_t uart_in(struct board *board, uint16_t port, unsigned size);
void uart_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

#endif
