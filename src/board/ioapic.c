/* SPDX-License-Identifier: Apache-2.0
 *
 * The I/O APIC at 0xFEC00000: Intel's data sheet of the 82093AA, with the EOI register of its successors. Lines carry
 * "asserted", so the polarity bit is kept but changes nothing. An edge at a masked pin is lost, as the data sheet says.
 */
#include "base/base.h"
#include "board/state.h"

enum {
  ENTRY_LOGICAL = 0x800,
  ENTRY_REMOTE_IRR = 0x4000,
  ENTRY_LEVEL = 0x8000,
  ENTRY_MASKED = 0x10000,
};

#define ENTRY_WRITABLE UINT64_C(0xFF0000000001AFFF)
#define VERSION (UINT32_C(0x20) | (IOAPIC_PINS - 1) << 16)
#define OFFSET_INDEX 0x00
#define OFFSET_DATA 0x10
#define OFFSET_EOI 0x40

/* ---- delivery ---- */

/* 0xFF addresses all processors, in either mode. */
static uint32_t entry_destination(uint64_t entry)
{
  uint32_t destination = (uint32_t)(entry >> 56);

  return destination == 0xFF ? UINT32_MAX : destination;
}

static uint32_t entry_set(const struct board *board, uint64_t entry)
{
  return lapic_destinations(board, entry_destination(entry), entry & ENTRY_LOGICAL);
}

/* SMI, NMI, INIT and ExtINT are always edges. */
static bool is_level(uint64_t entry)
{
  return (entry & ENTRY_LEVEL) && APIC_MODE(entry) <= MODE_LOWEST;
}

static void ioapic_deliver(struct board *board, unsigned pin)
{
  uint64_t *entry = &board->ioapic.entry[pin];

  if ((*entry & ENTRY_MASKED) || APIC_MODE(*entry) == MODE_STARTUP)
    return;
  uint32_t set = entry_set(board, *entry);
  if (lapic_deliver(board, set, APIC_MODE(*entry), (uint8_t)*entry, is_level(*entry)) && is_level(*entry))
    *entry |= ENTRY_REMOTE_IRR;
}

/* Delivers the interrupt of a level-triggered pin that is high and not yet in service. */
static void ioapic_offer(struct board *board, unsigned pin)
{
  uint64_t entry = board->ioapic.entry[pin];

  if (is_level(entry) && (board->ioapic.lines >> pin & 1) && !(entry & ENTRY_REMOTE_IRR))
    ioapic_deliver(board, pin);
}

void ioapic_set(struct board *board, unsigned pin, bool is_high)
{
  struct ioapic *ioapic = &board->ioapic;
  uint32_t bit = UINT32_C(1) << pin;
  bool is_edge = is_high && !(ioapic->lines & bit);

  ioapic->lines = is_high ? ioapic->lines | bit : ioapic->lines & ~bit;
  if (is_level(ioapic->entry[pin]))
    ioapic_offer(board, pin);
  else if (is_edge)
    ioapic_deliver(board, pin);
}

void ioapic_eoi(struct board *board, uint8_t vector)
{
  struct ioapic *ioapic = &board->ioapic;

  for (unsigned i = 0; i < IOAPIC_PINS; i++) {
    if ((uint8_t)ioapic->entry[i] != vector || !is_level(ioapic->entry[i]))
      continue;
    ioapic->entry[i] &= ~(uint64_t)ENTRY_REMOTE_IRR;
    ioapic_offer(board, i);
  }
}

void ioapic_retry(struct board *board)
{
  for (unsigned i = 0; i < IOAPIC_PINS; i++)
    ioapic_offer(board, i);
}

bool ioapic_reaches(const struct board *board, unsigned pin)
{
  uint64_t entry = board->ioapic.entry[pin];
  bool is_fixed = APIC_MODE(entry) <= MODE_LOWEST;

  if (entry & ENTRY_MASKED)
    return false;
  uint32_t set = entry_set(board, entry);
  for (unsigned i = 0; i < board->config.cpus; i++) {
    const struct lapic *lapic = &board->lapics[i];

    if ((set >> i & 1) && (is_fixed ? lapic_is_enabled(board, lapic) : lapic_is_on(board, lapic)))
      return true;
  }
  return false;
}

bool ioapic_passes_extint(const struct board *board, const struct lapic *lapic)
{
  uint64_t entry = board->ioapic.entry[0];

  return !(entry & ENTRY_MASKED) && APIC_MODE(entry) == MODE_EXTINT &&
         lapic_is_destination(lapic, entry_destination(entry), entry & ENTRY_LOGICAL);
}

/* ---- registers ---- */

static uint32_t ioapic_read(const struct ioapic *ioapic)
{
  unsigned index = ioapic->index;

  switch (index) {
  case 0:
  case 2: /* arbitration ID: the same */
    return (uint32_t)ioapic->id << 24;
  case 1:
    return VERSION;
  default:
    if (index < 0x10 || index >= 0x10 + 2 * IOAPIC_PINS)
      return 0;
    return (uint32_t)(ioapic->entry[(index - 0x10) / 2] >> 32 * (index & 1));
  }
}

/* An entry that becomes edge triggered loses its remote IRR. Software ends interrupts this way on chips without an EOI
 * register. */
static void ioapic_write(struct board *board, uint32_t value)
{
  struct ioapic *ioapic = &board->ioapic;
  unsigned index = ioapic->index, shift = 32 * (index & 1);

  if (index == 0)
    ioapic->id = value >> 24 & 0x0F;
  if (index < 0x10 || index >= 0x10 + 2 * IOAPIC_PINS)
    return;
  unsigned pin = (index - 0x10) / 2;
  uint64_t writable = ENTRY_WRITABLE & UINT64_C(0xFFFFFFFF) << shift;
  uint64_t entry = (ioapic->entry[pin] & ~writable) | ((uint64_t)value << shift & writable);
  if (!(entry & ENTRY_LEVEL))
    entry &= ~(uint64_t)ENTRY_REMOTE_IRR;
  ioapic->entry[pin] = entry;
  ioapic_offer(board, pin);
}

static uint64_t ioapic_read_memory(struct board *board, uint64_t address, unsigned size)
{
  unsigned offset = (unsigned)(address & 0xFF);

  (void)size;
  if (offset == OFFSET_INDEX)
    return board->ioapic.index;
  if (offset != OFFSET_DATA)
    return 0;
  board_catch_up(board);
  return ioapic_read(&board->ioapic);
}

static void ioapic_write_memory(struct board *board, uint64_t address, unsigned size, uint64_t value)
{
  unsigned offset = (unsigned)(address & 0xFF);

  if (offset == OFFSET_INDEX)
    board->ioapic.index = (uint8_t)value;
  else if (offset == OFFSET_DATA && size == 4)
    ioapic_write(board, (uint32_t)value);
  else if (offset == OFFSET_EOI)
    ioapic_eoi(board, (uint8_t)value);
}

static void ioapic_reset(struct board *board)
{
  board->ioapic = (struct ioapic){.id = (uint8_t)board->config.cpus};
  for (unsigned i = 0; i < IOAPIC_PINS; i++)
    board->ioapic.entry[i] = ENTRY_MASKED;
}

static bool ioapic_owns(const struct board *board, uint64_t address)
{
  return board->config.has_apic && address >> 12 == IOAPIC_BASE >> 12;
}

/* ---- saving ---- */

static void ioapic_archive(struct archive *archive, struct board *board)
{
  struct ioapic *ioapic = &board->ioapic;

  archive_value(archive, &ioapic->index);
  archive_value(archive, &ioapic->id);
  archive_most(archive, &ioapic->lines, (UINT32_C(1) << IOAPIC_PINS) - 1);
  archive_array(archive, ioapic->entry);
}

const struct device device_ioapic = {
  .reset = ioapic_reset,
  .owns = ioapic_owns,
  .read = ioapic_read_memory,
  .write = ioapic_write_memory,
  .archive = ioapic_archive,
};
