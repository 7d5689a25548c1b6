/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration device of virtual machines at ports 0x510 and 0x511. fwcfg.c.
 */
#ifndef BOARD_FWCFG_H
#define BOARD_FWCFG_H

#include <stdint.h>

struct board;

struct fwcfg {
  uint16_t item;  /* selected */
  uint32_t place; /* next byte of it */
};

uint32_t fwcfg_in(struct board *board, uint16_t port, unsigned size);
void fwcfg_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

#endif
