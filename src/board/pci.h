/* SPDX-License-Identifier: Apache-2.0
 *
 * PCI configuration space through 0xCF8 and 0xCFC. pci.c.
 */
#ifndef BOARD_PCI_H
#define BOARD_PCI_H

#include <stdint.h>

#define PCI_FUNCTIONS 3u

struct board;

struct pci {
  uint32_t address;
  uint8_t config[PCI_FUNCTIONS][256];
};

void pci_reset(struct board *board);
uint32_t pci_in(struct board *board, uint16_t port, unsigned size);
void pci_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

#endif
