/* SPDX-License-Identifier: Apache-2.0
 *
 * ACPI and MP tables, which describe the board. Expected values follow from the two specifications.
 */
#include "board_rig.h"

#define TABLES UINT64_C(0x7FF0000)

static uint32_t get32(const uint8_t *bytes)
{
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void assert_sum(const uint8_t *bytes, size_t size)
{
  uint8_t sum = 0;

  for (size_t i = 0; i < size; i++)
    sum = (uint8_t)(sum + bytes[i]);
  assert_int_equal(sum, 0);
}

static const uint8_t *table_at(const uint8_t *bytes, size_t size, uint32_t address, const char *signature)
{
  assert_in_range(address, TABLES, TABLES + size - 36);
  const uint8_t *table = bytes + (address - TABLES);
  assert_memory_equal(table, signature, 4);
  assert_in_range(get32(table + 4), 36, size - (address - TABLES));
  assert_sum(table, get32(table + 4));
  return table;
}

static void tables_of_acpi(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[4096];
  size_t rsdp = SIZE_MAX, size = board_tables(rig->board, TABLES, bytes, sizeof(bytes), &rsdp);

  assert_true(size > 0 && rsdp % 16 == 0);
  assert_memory_equal(bytes + rsdp, "RSD PTR ", 8);
  assert_sum(bytes + rsdp, 20);
  assert_sum(bytes + rsdp, 36);
  const uint8_t *rsdt = table_at(bytes, size, get32(bytes + rsdp + 16), "RSDT");
  const uint8_t *xsdt = table_at(bytes, size, get32(bytes + rsdp + 24), "XSDT");
  assert_int_equal(get32(rsdt + 4), 36 + 3 * 4);
  assert_int_equal(get32(xsdt + 4), 36 + 3 * 8);
  assert_int_equal(get32(rsdt + 40), get32(xsdt + 44));
  const uint8_t *fadt = table_at(bytes, size, get32(rsdt + 36), "FACP");
  assert_int_equal(get32(fadt + 4), 244);
  assert_int_equal(get32(fadt + 56), 0x600);
  assert_int_equal(get32(fadt + 64), 0x604);
  assert_int_equal(get32(fadt + 76), 0x608);
  assert_int_equal(fadt[88] | fadt[89] << 8 | fadt[91] << 16, 0x040204);
  assert_int_equal(fadt[108], 0x32);
  assert_int_equal(get32(fadt + 112) & 0x40, 0); /* FIX_RTC: 0, the alarm shows in PM1 */
  assert_int_equal(get32(fadt + 120), 0xCF9);
  assert_int_equal(get32(fadt + 36) % 64, 0);
  assert_memory_equal(bytes + (get32(fadt + 36) - TABLES), "FACS\x40\0\0", 8);
  const uint8_t *dsdt = table_at(bytes, size, get32(fadt + 40), "DSDT");
  assert_memory_equal(dsdt + 36, "\x08_S3_\x12\x06\x04\x01\x01\0\0", 12);
  assert_memory_equal(dsdt + 48, "\x08_S5_\x12\x08\x04\x0A\x05\x0A\x05\0\0", 14);
  assert_int_equal(get32(fadt + 140), get32(fadt + 40));
  const uint8_t *madt = table_at(bytes, size, get32(rsdt + 40), "APIC");
  assert_int_equal(get32(madt + 36), LAPIC);
  assert_int_equal(get32(madt + 56), IOAPIC);
  const uint8_t *hpet = table_at(bytes, size, get32(rsdt + 44), "HPET");
  assert_int_equal(get32(hpet + 4), 56);
  assert_int_equal(get32(hpet + 44), HPET);
}

static void tables_of_mp(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[4096];
  size_t rsdp, size = board_tables(rig->board, TABLES, bytes, sizeof(bytes), &rsdp), place = 0;

  while (place < size && memcmp(bytes + place, "_MP_", 4))
    place += 16;
  assert_true(place < size);
  assert_sum(bytes + place, 16);
  const uint8_t *table = bytes + (get32(bytes + place + 4) - TABLES);
  assert_memory_equal(table, "PCMP", 4);
  unsigned length = table[4] | table[5] << 8, count = table[34] | table[35] << 8;
  assert_sum(table, length);
  assert_int_equal(get32(table + 36), LAPIC);
  const uint8_t *entry = table + 44;
  for (unsigned i = 0; i < count; i++)
    entry += entry[0] == 0 ? 20 : 8;
  assert_ptr_equal(entry, table + length);
}

static void tables_need_room(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[4096];
  size_t rsdp = 7, size = board_tables(rig->board, TABLES, bytes, sizeof(bytes), &rsdp);

  rsdp = 7;
  for (size_t i = 0; i < size; i++)
    assert_int_equal(board_tables(rig->board, TABLES, bytes, i, &rsdp), 0);
  assert_int_equal(rsdp, 7);
  assert_int_equal(board_tables(rig->board, TABLES, bytes, size, &rsdp), size);
}

PART(TEST(tables_of_acpi), TEST(tables_of_mp), TEST(tables_need_room));
