/* SPDX-License-Identifier: Apache-2.0
 *
 * The MultiProcessor specification's floating pointer and configuration table (version 1.4, chapter 4): the
 * processors, the ISA bus, the I/O APIC, and which interrupt goes to which of its inputs.
 */
#include "board/state.h"
#include "board/tables.h"

enum { ENTRY_PROCESSOR, ENTRY_BUS, ENTRY_IOAPIC, ENTRY_INTERRUPT, ENTRY_LOCAL };
enum { TYPE_INT, TYPE_NMI, TYPE_SMI, TYPE_EXTINT };

#define BUS_ISA 0
#define EVERY_LAPIC 0xFF

static void put_processor(const struct board *board, struct tables *tables, unsigned number)
{
  tables_put(tables, ENTRY_PROCESSOR, 1);
  tables_put(tables, number, 1); /* APIC ID */
  tables_put(tables, board->config.apic_version, 1);
  tables_put(tables, number ? 0x01 : 0x03, 1); /* usable; the boot processor */
  tables_put(tables, 0x600, 4);                /* family 6; CPUID has the rest */
  tables_put(tables, 0x201, 4);                /* FPU, APIC */
  tables_put(tables, 0, 8);
}

static void put_interrupt(struct tables *tables, unsigned entry, unsigned type, unsigned irq, unsigned apic,
                          unsigned pin)
{
  tables_put(tables, entry, 1);
  tables_put(tables, type, 1);
  tables_put(tables, 0, 2); /* polarity and trigger as the bus has them */
  tables_put(tables, BUS_ISA, 1);
  tables_put(tables, irq, 1);
  tables_put(tables, apic, 1);
  tables_put(tables, pin, 1);
}

/* Returns how many entries. */
static unsigned put_entries(const struct board *board, struct tables *tables)
{
  unsigned count = board->config.cpus + 2 + 16 + 2; /* processors, bus, I/O APIC; interrupts; LINT0 and LINT1 */
  unsigned ioapic = board->config.cpus;             /* its ID follows those of the processors */

  for (unsigned i = 0; i < board->config.cpus; i++)
    put_processor(board, tables, i);
  tables_put(tables, ENTRY_BUS, 1);
  tables_put(tables, BUS_ISA, 1);
  tables_put_text(tables, "ISA   ", 6);
  tables_put(tables, ENTRY_IOAPIC, 1);
  tables_put(tables, ioapic, 1);
  tables_put(tables, 0x20, 1);
  tables_put(tables, 1, 1); /* usable */
  tables_put(tables, IOAPIC_BASE, 4);
  put_interrupt(tables, ENTRY_INTERRUPT, TYPE_EXTINT, 0, ioapic, 0);
  put_interrupt(tables, ENTRY_INTERRUPT, TYPE_INT, 0, ioapic, 2);
  for (unsigned irq = 1; irq < 16; irq++)
    if (irq != 2)
      put_interrupt(tables, ENTRY_INTERRUPT, TYPE_INT, irq, ioapic, irq);
  put_interrupt(tables, ENTRY_LOCAL, TYPE_EXTINT, 0, EVERY_LAPIC, 0);
  put_interrupt(tables, ENTRY_LOCAL, TYPE_NMI, 0, EVERY_LAPIC, 1);
  return count;
}

static void put_header(const struct board *board, struct tables *tables)
{
  tables_put_text(tables, "PCMP", 4);
  tables_put(tables, 0, 2); /* length, below */
  tables_put(tables, 4, 1); /* version 1.4 */
  tables_put(tables, 0, 1); /* checksum, below */
  tables_put_text(tables, "LASTBRAN", 8);
  tables_put_text(tables, "MACHINE     ", 12);
  tables_put(tables, 0, 4 + 2);
  tables_put(tables, 0, 2); /* entries, below */
  tables_put(tables, board->lapics[0].base & ~UINT64_C(0xFFF), 4);
  tables_put(tables, 0, 4);
}

void tables_put_mp(const struct board *board, struct tables *tables)
{
  tables_align(tables, 16);
  size_t pointer = tables->used, table = pointer + 16;
  tables_put_text(tables, "_MP_", 4);
  tables_put(tables, tables->address + table, 4);
  tables_put(tables, 1, 1); /* in 16 bytes */
  tables_put(tables, 4, 1);
  tables_put(tables, 0, 6); /* checksum, below; a table is there; virtual wire mode */
  tables_seal(tables, pointer, 16, pointer + 10);
  put_header(board, tables);
  unsigned count = put_entries(board, tables);
  uint32_t size = (uint32_t)(tables->used - table);
  tables_patch(tables, table + 4, size | 4u << 16);
  tables_patch(tables, table + 32, count << 16);
  tables_seal(tables, table, size, table + 7);
}
