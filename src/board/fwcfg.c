/* SPDX-License-Identifier: Apache-2.0
 *
 * fw_cfg, which describes a virtual machine to its guest: a word written to port 0x510 selects an item, and reads of
 * 0x511 return its bytes, then zeros. Test kernels read the number of processors and the size of memory here. Items and
 * their layout: QEMU's docs/specs/fw_cfg. There are no files, no DMA, and items cannot be written.
 */
#include "base/base.h"
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

struct fwcfg {
  uint16_t item;  /* selected */
  uint32_t place; /* next byte of it */
};

static struct fwcfg *fwcfg_of(const struct board *board)
{
  return device_state(board, DEVICE_NUMBER_fwcfg);
}

/* Items are little-endian, except for the number of files, which is 0. */
static uint64_t item_value(const struct board *board, unsigned *ret_size)
{
  switch (fwcfg_of(board)->item) {
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

static uint32_t fwcfg_in(struct board *board, uint16_t port, unsigned size)
{
  struct fwcfg *fwcfg = fwcfg_of(board);
  unsigned bytes;
  uint64_t value = item_value(board, &bytes);

  if (port == PORT_SELECT || size != 1)
    return UINT32_MAX; /* data is read byte by byte */
  if (fwcfg->place >= bytes)
    return 0;
  return (uint32_t)(value >> 8 * fwcfg->place++ & 0xFF);
}

static void fwcfg_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  if (port != PORT_SELECT || size != 2)
    return;
  *fwcfg_of(board) = (struct fwcfg){.item = (uint16_t)value};
}

static void fwcfg_reset(struct board *board)
{
  *fwcfg_of(board) = (struct fwcfg){0};
}

/* ---- saving ---- */

static void fwcfg_archive(struct archive *archive, struct board *board)
{
  struct fwcfg *fwcfg = fwcfg_of(board);

  archive_value(archive, &fwcfg->item);
  archive_value(archive, &fwcfg->place);
}

static const struct port_range fwcfg_ports[] = {
  {0x510, 0x511, PORT_WIDE | PORT_QUIET, fwcfg_in, fwcfg_out},
  {0},
};

const struct device device_fwcfg = {
  DEVICE_STATE(fwcfg),
  .ports = fwcfg_ports,
  .reset = fwcfg_reset,
  .archive = fwcfg_archive,
};
