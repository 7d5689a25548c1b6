/* SPDX-License-Identifier: Apache-2.0
 *
 * INT 1Ah AH=B1h, in real mode: detects the PCI bus, finds devices, and accesses configuration space. PCI BIOS
 * Specification 2.1. Only bus 0 is searched.
 */
#include "machine/firmware.h"

enum { PCI_OK = 0, PCI_UNSUPPORTED = 0x81, PCI_NOT_FOUND = 0x86, PCI_BAD_REGISTER = 0x87 };

/* `function`: bus 15:8, device 7:3, function 2:0. */
static void pci_select(struct machine *m, uint16_t function, uint8_t index)
{
  board_out(m->board, 0xCF8, 4, UINT32_C(0x80000000) | (uint32_t)function << 8 | (index & 0xFCu));
}

static uint32_t pci_get(struct machine *m, uint16_t function, uint8_t index, unsigned size)
{
  pci_select(m, function, index);
  return board_in(m->board, (uint16_t)(0xCFC + (index & 3)), size);
}

/* The SI-th function whose register at `index` has this value after a shift. */
static uint8_t pci_find(struct machine *m, uint8_t index, unsigned shift, uint32_t value)
{
  unsigned left = get16(m, RSI);

  for (uint16_t function = 0; function < 256; function++) {
    if ((pci_get(m, function, 0, 4) & 0xFFFF) == 0xFFFF || pci_get(m, function, index, 4) >> shift != value)
      continue;
    if (left-- == 0) {
      set16(m, RBX, function);
      return PCI_OK;
    }
  }
  return PCI_NOT_FOUND;
}

static uint8_t pci_present(struct machine *m)
{
  set32(m, RDX, 0x20494350); /* "PCI " */
  set16(m, RBX, 0x0210);     /* version 2.1 */
  set_low(m, RCX, 0);        /* last bus */
  set_low(m, RAX, 0x01);     /* configuration mechanism 1 */
  return PCI_OK;
}

/* BX: function; DI: register; ECX: value. AL 08h to 0Ah read 1, 2, 4 bytes, 0Bh to 0Dh write them. */
static uint8_t pci_access(struct machine *m, uint8_t function)
{
  unsigned size = 1u << (function - 8) % 3;
  uint16_t index = get16(m, RDI);

  if (index > 0xFF || index % size)
    return PCI_BAD_REGISTER;
  if (function >= 0x0B) {
    pci_select(m, get16(m, RBX), (uint8_t)index);
    board_out(m->board, (uint16_t)(0xCFC + (index & 3)), size, get32(m, RCX));
    return PCI_OK;
  }
  uint32_t value = pci_get(m, get16(m, RBX), (uint8_t)index, size);
  if (size == 1)
    set_low(m, RCX, (uint8_t)value);
  else if (size == 2)
    set16(m, RCX, (uint16_t)value);
  else
    set32(m, RCX, value);
  return PCI_OK;
}

static uint8_t pci_function(struct machine *m, uint8_t function)
{
  switch (function) {
  case 0x01:
    return pci_present(m);
  case 0x02: /* by device CX and vendor DX */
    return pci_find(m, 0, 0, (uint32_t)get16(m, RCX) << 16 | get16(m, RDX));
  case 0x03: /* by class ECX */
    return pci_find(m, 8, 8, get32(m, RCX) & 0xFFFFFF);
  case 0x08:
  case 0x09:
  case 0x0A:
  case 0x0B:
  case 0x0C:
  case 0x0D:
    return pci_access(m, function);
  default:
    return PCI_UNSUPPORTED;
  }
}

bool firmware_pci(struct machine *machine)
{
  uint8_t status = pci_function(machine, get_low(machine, RAX));

  if (status == PCI_OK)
    guest_succeed(machine, PCI_OK);
  else
    guest_fail(machine, status);
  return false;
}
