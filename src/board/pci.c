/* SPDX-License-Identifier: Apache-2.0
 *
 * PCI configuration space, mechanism 1: port 0xCF8 holds an address, and port 0xCFC accesses the register at that
 * address. PCI specification 3.0, 3.2.2.3.2. On bus 0 there are a host bridge, a bridge to ISA and an IDE function,
 * with the identities of Intel's 440FX and PIIX3, and no base address registers. Byte 0xCF9 between them is the reset
 * control register of the PIIX3.
 */
#include "base/base.h"
#include "board/state.h"

enum { PCI_HOST, PCI_ISA, PCI_IDE, PCI_FUNCTIONS };

#define ADDRESS_ENABLED UINT32_C(0x80000000)
#define ADDRESS_DEVICE(address) ((address) >> 8 & 0xFFFF) /* bus, device and function */
#define RESET_CPU 0x04
#define RESET_HARD 0x02
#define PORT_ADDRESS 0xCF8
#define PORT_RESET 0xCF9
#define PORT_DATA 0xCFC

/* Bytes `first` to `last` keep all bits that are written into them. */
struct pci_writable {
  uint8_t first, last;
};

static const struct pci_function {
  uint16_t place; /* device and function */
  uint16_t vendor, device, command;
  uint32_t class; /* class, subclass, interface, revision */
  uint8_t header;
  struct pci_writable writable[3];
} functions[PCI_FUNCTIONS] = {
  [PCI_HOST] = {0x00, 0x8086, 0x1237, 0x0006, 0x06000002, 0x00, {{0x50, 0x51}, {0x59, 0x5F}, {0x72, 0x72}}},
  [PCI_ISA] = {0x08, 0x8086, 0x7000, 0x0007, 0x06010000, 0x80, {{0x3C, 0x3C}, {0x4C, 0x4F}, {0x60, 0x63}}},
  [PCI_IDE] = {0x09, 0x8086, 0x7010, 0x0001, 0x01010000, 0x00, {{0x3C, 0x3C}, {0x40, 0x44}, {0x40, 0x40}}},
};

struct pci {
  uint32_t address;
  uint8_t config[PCI_FUNCTIONS][256];
};

static struct pci *pci_of(const struct board *board)
{
  return device_state(board, DEVICE_NUMBER_pci);
}

static int pci_find(const struct pci *pci)
{
  if (!(pci->address & ADDRESS_ENABLED))
    return -1;
  for (unsigned i = 0; i < PCI_FUNCTIONS; i++)
    if (ADDRESS_DEVICE(pci->address) == functions[i].place)
      return (int)i;
  return -1;
}

static bool pci_is_writable(unsigned function, unsigned place)
{
  const struct pci_writable *ranges = functions[function].writable;

  if (place == 0x04) /* the lower command bits; everything else of the header is fixed */
    return true;
  for (unsigned i = 0; i < 3; i++)
    if (place >= ranges[i].first && place <= ranges[i].last)
      return true;
  return false;
}

/* ---- ports ---- */

static uint32_t pci_in_byte(const struct board *board, uint16_t port)
{
  const struct pci *pci = pci_of(board);
  int function = pci_find(pci);

  if (port == PORT_RESET)
    return board->power.reset;
  if (port < PORT_DATA)
    return pci->address >> 8 * (port - PORT_ADDRESS) & 0xFF;
  return function < 0 ? 0xFF : pci->config[function][(pci->address & 0xFC) | (port & 3)];
}

static uint32_t pci_in(struct board *board, uint16_t port, unsigned size)
{
  uint32_t value = 0;

  if (port == PORT_ADDRESS && size == 4)
    return pci_of(board)->address;
  for (unsigned i = 0; i < size; i++)
    value |= (port + i < PORT_DATA + 4 ? pci_in_byte(board, (uint16_t)(port + i)) : 0xFF) << 8 * i;
  return value;
}

/* A rising bit 2 resets the whole machine if bit 1 is set, else only the processors, by INIT. */
static void pci_out_reset(struct board *board, uint8_t value)
{
  bool is_reset = value & ~board->power.reset & RESET_CPU;

  board->power.reset = value & 0x0E;
  if (is_reset && (value & RESET_HARD)) {
    board->power.was_init = false;
    board->host.reset(board->host.data);
  } else if (is_reset)
    power_init_signal(board);
}

static void pci_out_byte(struct board *board, uint16_t port, uint8_t value)
{
  struct pci *pci = pci_of(board);
  int function = pci_find(pci);
  unsigned place = (pci->address & 0xFC) | (port & 3);

  if (port == PORT_RESET)
    pci_out_reset(board, value);
  else if (port >= PORT_DATA && function >= 0 && pci_is_writable((unsigned)function, place))
    pci->config[function][place] = value;
}

static void pci_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  if (port == PORT_ADDRESS && size == 4) {
    pci_of(board)->address = value & 0x80FFFFFC;
    return;
  }
  for (unsigned i = 0; i < size && port + i < PORT_DATA + 4; i++)
    pci_out_byte(board, (uint16_t)(port + i), (uint8_t)(value >> 8 * i));
}

static void pci_reset(struct board *board)
{
  *pci_of(board) = (struct pci){0};
  for (unsigned i = 0; i < PCI_FUNCTIONS; i++) {
    const struct pci_function *function = &functions[i];
    uint8_t *config = pci_of(board)->config[i];

    config[0x00] = (uint8_t)function->vendor;
    config[0x01] = (uint8_t)(function->vendor >> 8);
    config[0x02] = (uint8_t)function->device;
    config[0x03] = (uint8_t)(function->device >> 8);
    config[0x04] = (uint8_t)function->command;
    config[0x07] = 0x02; /* DEVSEL# medium */
    config[0x08] = (uint8_t)function->class;
    config[0x09] = (uint8_t)(function->class >> 8);
    config[0x0A] = (uint8_t)(function->class >> 16);
    config[0x0B] = (uint8_t)(function->class >> 24);
    config[0x0E] = function->header;
  }
  for (unsigned i = 0x60; i < 0x64; i++)
    pci_of(board)->config[PCI_ISA][i] = 0x80;  /* PIRQ routes: none */
  pci_of(board)->config[PCI_IDE][0x41] = 0x80; /* the primary channel is decoded */
}

/* ---- saving ---- */

static void pci_archive(struct archive *archive, struct board *board)
{
  struct pci *pci = pci_of(board);

  archive_value(archive, &pci->address);
  archive_bytes(archive, pci->config, sizeof(pci->config));
}

static const struct port_range pci_ports[] = {
  {0xCF8, 0xCFF, PORT_WIDE | PORT_QUIET, pci_in, pci_out},
  {0},
};

const struct device device_pci = {
  DEVICE_STATE(pci),
  .ports = pci_ports,
  .reset = pci_reset,
  .archive = pci_archive,
};
