/* SPDX-License-Identifier: Apache-2.0
 *
 * fw_cfg, by which a virtual machine tells its guest what it is made of: a word to port 0x510 selects an item, bytes of
 * it are read at 0x511, zeros behind its end. Test kernels ask here how many processors and how much memory there are.
 * Items and their layout: QEMU's docs/specs/fw_cfg. There are no files, no DMA, and items cannot be written.
 */
#include "board/state.h"

#define PORT_SELECT 0x510

enum {
  ITEM_SIGNATURE = 0x00,
  ITEM_INTERFACES = 0x01,
  ITEM_RAM_SIZE = 0x03,
  ITEM_CPUS = 0x05,
  ITEM_CPUS_MAX = 0x0F,
  ITEM_FILES = 0x19,
};

/* Little-endian but for the number of files, which is 0. */
static uint64_t item_value(const struct board *board, unsigned *ret_size)
{
  switch (board->fwcfg.item) {
  case ITEM_SIGNATURE:
    *ret_size = 4;
    return UINT64_C(0x554D4551); /* "QEMU" */
  case ITEM_INTERFACES:
    *ret_size = 4;
    return 1; /* selector and data */
  case ITEM_RAM_SIZE:
    *ret_size = 8;
    return board->config.ram;
  case ITEM_CPUS:
  case ITEM_CPUS_MAX:
    *ret_size = 2;
    return board->config.cpus;
  case ITEM_FILES:
    *ret_size = 4;
    return 0;
  default:
    *ret_size = 0;
    return 0;
  }
}

uint32_t fwcfg_in(struct board *board, uint16_t port, unsigned size)
{
  struct fwcfg *fwcfg = &board->fwcfg;
  unsigned bytes;
  uint64_t value = item_value(board, &bytes);
  if (port == PORT_SELECT || size != 1)
    return UINT32_MAX; /* data is read byte by byte */
  if (fwcfg->place >= bytes)
    return 0;
  return (uint32_t)(value >> 8 * fwcfg->place++ & 0xFF);
}

void fwcfg_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  if (port != PORT_SELECT || size != 2)
    return;
  board->fwcfg = (struct fwcfg){.item = (uint16_t)value};
}
