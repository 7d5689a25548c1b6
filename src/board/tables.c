/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that tell an operating system what is on the board: ACPI's RSDP, RSDT, XSDT, FADT with FACS and DSDT, MADT
 * and HPET (ACPI specification 2.0c, 5.2; IA-PC HPET specification 3.2.4), and those of tables_mp.c.
 */
#include "board/tables.h"
#include "board/state.h"

#define LENGTH_OFFSET 4u
#define SUM_OFFSET 9u
#define RSDP_SIZE 36u
#define TABLES_MAX 4u
#define SPACE_MEMORY 0
#define SPACE_IO 1
#define PM_BLOCK 0x600u
#define IRQ_SCI 9

/* ---- bytes ---- */

void tables_put(struct tables *tables, uint64_t value, unsigned size)
{
  for (unsigned i = 0; i < size; i++) {
    if (tables->used >= tables->size) {
      tables->is_full = true;
      return;
    }
    tables->bytes[tables->used++] = (uint8_t)(i < 8 ? value >> 8 * i : 0);
  }
}

void tables_put_text(struct tables *tables, const char *text, size_t size)
{
  for (size_t i = 0; i < size; i++)
    tables_put(tables, (uint8_t)text[i], 1);
}

uint64_t tables_place(const struct tables *tables)
{
  return tables->address + tables->used;
}

void tables_align(struct tables *tables, unsigned alignment)
{
  while (tables_place(tables) % alignment && !tables->is_full)
    tables_put(tables, 0, 1);
}

void tables_patch(struct tables *tables, size_t offset, uint32_t value)
{
  if (offset + 4 <= tables->used)
    for (unsigned i = 0; i < 4; i++)
      tables->bytes[offset + i] = (uint8_t)(value >> 8 * i);
}

void tables_seal(struct tables *tables, size_t start, size_t size, size_t sum)
{
  uint8_t total = 0;

  if (tables->is_full || start + size > tables->used)
    return;
  tables->bytes[sum] = 0;
  for (size_t i = start; i < start + size; i++)
    total = (uint8_t)(total + tables->bytes[i]);
  tables->bytes[sum] = (uint8_t)-total;
}

/* ---- parts of ACPI tables ---- */

/* Returns the table's offset, for table_end. */
static size_t table_begin(struct tables *tables, const char *signature, unsigned revision)
{
  tables_align(tables, 16);
  size_t start = tables->used;
  tables_put_text(tables, signature, 4);
  tables_put(tables, 0, 4); /* length */
  tables_put(tables, revision, 1);
  tables_put(tables, 0, 1); /* checksum */
  tables_put_text(tables, "LASTBR", 6);
  tables_put_text(tables, "MACHINE ", 8);
  tables_put(tables, 1, 4);
  tables_put_text(tables, "LBR ", 4);
  tables_put(tables, 1, 4);
  return start;
}

/* Returns the table's physical address. */
static uint64_t table_end(struct tables *tables, size_t start)
{
  size_t size = tables->used - start;

  tables_patch(tables, start + LENGTH_OFFSET, (uint32_t)size);
  tables_seal(tables, start, size, start + SUM_OFFSET);
  return tables->address + start;
}

/* Generic address structure (5.2.3.1). */
static void put_address(struct tables *tables, unsigned space, unsigned bits, unsigned access, uint64_t address)
{
  tables_put(tables, space, 1);
  tables_put(tables, bits, 1);
  tables_put(tables, 0, 1);
  tables_put(tables, access, 1);
  tables_put(tables, address, 8);
}

/* ---- FADT, FACS and DSDT ---- */

static uint64_t put_facs(struct tables *tables)
{
  tables_align(tables, 64);
  uint64_t place = tables_place(tables);
  tables_put_text(tables, "FACS", 4);
  tables_put(tables, 64, 4);
  tables_put(tables, 0, 24);
  tables_put(tables, 1, 1); /* version */
  tables_put(tables, 0, 31);
  return place;
}

/* Name (\_S3, Package (4) {1, 1, 0, 0}) and Name (\_S5, Package (4) {5, 5, 0, 0}): how to sleep and to switch off.
 * Everything else is found without AML. */
static uint64_t put_dsdt(struct tables *tables)
{
  static const uint8_t aml[] = {0x08, '_', 'S', '3', '_',  0x12, 0x06, 0x04, 0x01, 0x01, 0x00, 0x00, 0x08,
                                '_',  'S', '5', '_', 0x12, 0x08, 0x04, 0x0A, 0x05, 0x0A, 0x05, 0x00, 0x00};
  size_t start = table_begin(tables, "DSDT", 1);

  for (unsigned i = 0; i < sizeof(aml); i++)
    tables_put(tables, aml[i], 1);
  return table_end(tables, start);
}

static void put_fadt_legacy(struct tables *tables, uint64_t facs, uint64_t dsdt)
{
  tables_put(tables, facs, 4);
  tables_put(tables, dsdt, 4);
  tables_put(tables, 0, 1);
  tables_put(tables, 1, 1); /* a desktop */
  tables_put(tables, IRQ_SCI, 2);
  tables_put(tables, 0, 8); /* no SMI command: ACPI mode is always on */
  tables_put(tables, PM_BLOCK, 4);
  tables_put(tables, 0, 4);
  tables_put(tables, PM_BLOCK + 4, 4);
  tables_put(tables, 0, 8);
  tables_put(tables, PM_BLOCK + 8, 4);
  tables_put(tables, 0, 8);
  tables_put(tables, 4, 1); /* lengths: event, control, none, timer, none */
  tables_put(tables, 2, 1);
  tables_put(tables, 0, 1);
  tables_put(tables, 4, 1);
  tables_put(tables, 0, 4);
  tables_put(tables, 0x0FFF, 2); /* neither C2 nor C3 */
  tables_put(tables, 0x0FFF, 2);
  tables_put(tables, 0, 8);
  tables_put(tables, CMOS_CENTURY, 1);
  tables_put(tables, 0x0003, 2); /* there are ISA devices and an 8042 */
  tables_put(tables, 0, 1);
  tables_put(tables, 0x0435, 4); /* WBINVD, C1, no buttons, reset register; the RTC's wake status is in PM1 */
  put_address(tables, SPACE_IO, 8, 1, 0xCF9);
  tables_put(tables, 0x06, 1);
  tables_put(tables, 0, 3);
}

static uint64_t put_fadt(struct tables *tables, uint64_t facs, uint64_t dsdt)
{
  size_t start = table_begin(tables, "FACP", 3);

  put_fadt_legacy(tables, facs, dsdt);
  tables_put(tables, 0, 8); /* the FACS lies below 4 GiB */
  tables_put(tables, dsdt, 8);
  put_address(tables, SPACE_IO, 32, 2, PM_BLOCK);
  put_address(tables, SPACE_IO, 0, 0, 0);
  put_address(tables, SPACE_IO, 16, 2, PM_BLOCK + 4);
  put_address(tables, SPACE_IO, 0, 0, 0);
  put_address(tables, SPACE_IO, 0, 0, 0);
  put_address(tables, SPACE_IO, 32, 3, PM_BLOCK + 8);
  put_address(tables, SPACE_IO, 0, 0, 0);
  put_address(tables, SPACE_IO, 0, 0, 0);
  return table_end(tables, start);
}

/* ---- MADT and HPET ---- */

static void put_override(struct tables *tables, unsigned irq, unsigned pin, unsigned flags)
{
  tables_put(tables, 2, 1);
  tables_put(tables, 10, 1);
  tables_put(tables, 0, 1); /* ISA */
  tables_put(tables, irq, 1);
  tables_put(tables, pin, 4);
  tables_put(tables, flags, 2);
}

static uint64_t put_madt(const struct board *board, struct tables *tables)
{
  size_t start = table_begin(tables, "APIC", 1);

  tables_put(tables, board->lapics[0].base & ~UINT64_C(0xFFF), 4);
  tables_put(tables, 1, 4); /* two 8259A are there too */
  for (unsigned i = 0; i < board->config.cpus; i++) {
    tables_put(tables, 0, 1); /* processor: its ID, its APIC's, usable */
    tables_put(tables, 8, 1);
    tables_put(tables, i, 1);
    tables_put(tables, i, 1);
    tables_put(tables, 1, 4);
  }
  tables_put(tables, 1, 1); /* I/O APIC: its ID follows theirs, its inputs begin at 0 */
  tables_put(tables, 12, 1);
  tables_put(tables, board->config.cpus, 2);
  tables_put(tables, IOAPIC_BASE, 4);
  tables_put(tables, 0, 4);
  put_override(tables, 0, 2, 0);
  put_override(tables, IRQ_SCI, IRQ_SCI, 0x000D); /* high, level */
  tables_put(tables, 4, 1);                       /* NMI at LINT1 of all */
  tables_put(tables, 6, 1);
  tables_put(tables, 0xFF, 1);
  tables_put(tables, 0, 2);
  tables_put(tables, 1, 1);
  return table_end(tables, start);
}

static uint64_t put_hpet(struct tables *tables)
{
  size_t start = table_begin(tables, "HPET", 1);

  tables_put(tables, HPET_CAPABILITIES & UINT32_MAX, 4);
  put_address(tables, SPACE_MEMORY, 64, 0, HPET_BASE);
  tables_put(tables, 0, 1);
  tables_put(tables, 1000, 2); /* shortest period: 10 us */
  tables_put(tables, 0, 1);
  return table_end(tables, start);
}

/* ---- the roots ---- */

static uint64_t put_root(struct tables *tables, const char *signature, const uint64_t *places, unsigned count,
                         unsigned size)
{
  size_t start = table_begin(tables, signature, 1);

  for (unsigned i = 0; i < count; i++)
    tables_put(tables, places[i], size);
  return table_end(tables, start);
}

/* Fills in the RSDP at `start`, where room was left for it. */
static void put_rsdp(struct tables *tables, size_t start, uint64_t rsdt, uint64_t xsdt)
{
  struct tables head = *tables;

  head.used = start;
  tables_put_text(&head, "RSD PTR ", 8);
  tables_put(&head, 0, 1); /* checksum of the first 20 bytes */
  tables_put_text(&head, "LASTBR", 6);
  tables_put(&head, 2, 1);
  tables_put(&head, rsdt, 4);
  tables_put(&head, RSDP_SIZE, 4);
  tables_put(&head, xsdt, 8);
  tables_put(&head, 0, 4);
  tables_seal(&head, start, 20, start + 8);
  tables_seal(&head, start, RSDP_SIZE, start + 32);
}

size_t board_tables(const struct board *board, uint64_t address, uint8_t *bytes, size_t size, size_t *ret_rsdp)
{
  struct tables tables = {.bytes = bytes, .size = size, .address = address};
  uint64_t places[TABLES_MAX];
  unsigned count = 0;

  tables_align(&tables, 16);
  size_t rsdp = tables.used;
  tables_put(&tables, 0, RSDP_SIZE);
  uint64_t facs = put_facs(&tables), dsdt = put_dsdt(&tables);
  places[count++] = put_fadt(&tables, facs, dsdt);
  if (board->config.has_apic)
    places[count++] = put_madt(board, &tables);
  places[count++] = put_hpet(&tables);
  uint64_t rsdt = put_root(&tables, "RSDT", places, count, 4);
  uint64_t xsdt = put_root(&tables, "XSDT", places, count, 8);
  if (board->config.has_apic)
    tables_put_mp(board, &tables);
  if (tables.is_full)
    return 0;
  put_rsdp(&tables, rsdp, rsdt, xsdt);
  *ret_rsdp = rsdp;
  return tables.used;
}
