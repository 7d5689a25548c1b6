/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports 510h and 511h, by which QEMU tells its firmware and test kernels what machine they are in: an item is selected
 * by its number and read byte by byte. QEMU's docs/specs/fw_cfg. Items that are not here read as zeros: memory and one
 * processor are what bare kernels ask for.
 */
#include "base/base.h"
#include "machine/state.h"

enum { ITEM_SIGNATURE = 0x00, ITEM_REVISION = 0x01, ITEM_RAM = 0x03, ITEM_CPUS = 0x05, ITEM_CPUS_MAX = 0x0F };
enum { PORT_SELECT = 0x510, PORT_DATA = 0x511 };

static uint64_t item_get(const struct machine *m, uint16_t item)
{
  switch (item) {
  case ITEM_SIGNATURE:
    return bytes_get_u32("QEMU");
  case ITEM_RAM:
    return m->memory.size;
  case ITEM_REVISION:
  case ITEM_CPUS:
  case ITEM_CPUS_MAX:
    return 1;
  default:
    return 0;
  }
}

bool config_port_in(struct machine *machine, uint16_t port, uint32_t *ret_value)
{
  struct config_port *config = &machine->config_port;
  if (port != PORT_DATA)
    return false;
  *ret_value = config->at < 8 ? (uint8_t)(item_get(machine, config->item) >> 8 * config->at) : 0;
  if (config->at < 8)
    config->at++;
  return true;
}

bool config_port_out(struct machine *machine, uint16_t port, uint32_t value)
{
  if (port != PORT_SELECT)
    return false;
  machine->config_port = (struct config_port){.item = (uint16_t)value};
  return true;
}
