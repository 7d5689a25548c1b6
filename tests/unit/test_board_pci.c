/* SPDX-License-Identifier: Apache-2.0
 *
 * PCI configuration space. Expected values follow from the PCI specification; the functions are those of the 440FX
 * and the PIIX3.
 */
#include "board_rig.h"

static uint32_t pci_get(struct rig *rig, unsigned function, unsigned place, unsigned size)
{
  board_out(rig->board, 0xCF8, 4, 0x80000000u | function << 8 | (place & 0xFC));
  return board_in(rig->board, (uint16_t)(0xCFC + (place & 3)), size);
}

static void pci_has_three_functions(void **state)
{
  struct rig *rig = *state;
  unsigned found = 0;

  for (unsigned i = 0; i < 0x10000; i++)
    found += pci_get(rig, i, 0, 2) != 0xFFFF;
  assert_int_equal(found, 3);
  assert_int_equal(pci_get(rig, 0x00, 0x00, 4), 0x12378086);
  assert_int_equal(pci_get(rig, 0x00, 0x0A, 2), 0x0600);
  assert_int_equal(pci_get(rig, 0x08, 0x0A, 2), 0x0601);
  assert_int_equal(pci_get(rig, 0x08, 0x0E, 1), 0x80); /* more functions */
  assert_int_equal(pci_get(rig, 0x09, 0x0A, 2), 0x0101);
}

static void pci_has_no_base_addresses(void **state)
{
  struct rig *rig = *state;

  for (unsigned place = 0x10; place < 0x28; place += 4) {
    pci_get(rig, 0x09, place, 4);
    board_out(rig->board, 0xCFC, 4, UINT32_MAX);
    assert_int_equal(pci_get(rig, 0x09, place, 4), 0);
  }
  pci_get(rig, 0x09, 0x3C, 4);
  board_out(rig->board, 0xCFC, 1, 14);
  assert_int_equal(pci_get(rig, 0x09, 0x3C, 1), 14);
  board_out(rig->board, 0xCF8, 4, 0); /* not enabled */
  assert_int_equal(board_in(rig->board, 0xCFC, 4), UINT32_MAX);
}

PART(TEST(pci_has_three_functions), TEST(pci_has_no_base_addresses));
