/* SPDX-License-Identifier: Apache-2.0
 *
 * A device for kernels that test processors. testdevice.c.
 */
#ifndef BOARD_TESTDEVICE_H
#define BOARD_TESTDEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define TESTDEVICE_BASE UINT64_C(0xFF000000)
#define TESTDEVICE_SIZE UINT64_C(0x10000)
#define TESTDEVICE_LINES 0x2000u

struct board;

struct testdevice {
  uint32_t latch;
  uint8_t *memory; /* TESTDEVICE_SIZE bytes; NULL: there is no such device */
};

/* Returns 0 or -ENOMEM. */
int testdevice_init(struct board *board);
void testdevice_done(struct board *board);
bool testdevice_owns(const struct board *board, uint64_t address);
uint64_t testdevice_read_memory(const struct board *board, uint64_t address, unsigned size);
void testdevice_write_memory(struct board *board, uint64_t address, unsigned size, uint64_t value);
uint32_t testdevice_in(struct board *board, uint16_t port, unsigned size);
void testdevice_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

#endif
