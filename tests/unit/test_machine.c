/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests of tests/machine in the machine: the screen, memory, and disks.
 */
#include "machine_rig.h"

/* ---- the screen ---- */

static void test_hello(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("hello.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  struct machine_screen screen = machine_screen(machine);
  assert_int_equal(screen.columns, 80);
  assert_int_equal(screen.rows, 25);
  assert_row(&screen, 0, "Hello");
  assert_row(&screen, 1, "from sector 1");
  assert_row(&screen, 3, "     yello");
  assert_int_equal(screen.cells[2 * (3 * 80 + 5) + 1], 0x1E);
  assert_true(screen.has_cursor);
  assert_int_equal(screen.cursor_row, 3);
  assert_int_equal(screen.cursor_column, 10);
  screen = machine_screen_all(machine);
  assert_int_equal(screen.rows, 4);
  machine_free(machine);
}

static void test_screen_beyond(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("halt3.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(machine_screen_all(machine).rows, 0);
  assert_true(memory_write(machine_memory(machine), 0xB8000 + 160 * 100 + 8, "Z", 1));
  struct machine_screen screen = machine_screen_all(machine);
  assert_int_equal(screen.rows, 101);
  assert_row(&screen, 100, "    Z");
  machine_free(machine);
}

static void test_no_boot(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "No bootable device.");
  machine_free(machine);
}

/* A floppy without signature is passed over. */
static void test_second_drive(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  config.floppy = (struct machine_image){(const uint8_t *)"none", 4};
  config.disk = guest_read("hello.bin");
  struct machine *machine = machine_make(&config, NULL);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "Hello");
  guest_free(config.disk);
  machine_free(machine);
}

/* ---- memory ---- */

static void test_memory_map(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("map.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  unsigned count = (unsigned)get(machine, 0xFF0, 2);
  assert_in_range(count, 6, 9);
  uint64_t end = 0;
  for (unsigned i = 0; i < count; i++) {
    uint64_t start = get(machine, 0x1000 + 24 * i, 8), size = get(machine, 0x1008 + 24 * i, 8);

    assert_true(start >= end && size > 0);
    assert_int_equal(get(machine, 0x1014 + 24 * i, 4), 1);
    end = start + size;
  }
  assert_int_equal(get(machine, 0x1008, 8), 0x9FC00);
  assert_int_equal(get(machine, 0x1010, 4), 1);
  assert_int_equal(get(machine, 0x1028, 4), 2); /* EBDA */
  assert_int_equal(get(machine, 0x1040, 4), 2); /* ROM */
  assert_int_equal(get(machine, 0x1048, 8), 0x100000);
  assert_int_equal(get(machine, 0x1050, 8), 0xF00000 - 0x10000);
  assert_int_equal(get(machine, 0x1070, 4), 3); /* ACPI */
  assert_int_equal(get(machine, 0xFE0, 2), 15 * 1024 - 64);
  assert_int_equal(get(machine, 0xFE2, 2), 0);
  assert_int_equal(get(machine, 0xFE8, 2), 15 * 1024 - 64);
  assert_int_equal(get(machine, 0xFEA, 2), 639);
  assert_int_equal(get(machine, 0xFEC, 2) & 0x33, 0x23);
  assert_int_equal(get(machine, 0xFEE, 2), 0xFFFF);
  machine_free(machine);
}

/* Where in the ROM it is, or 0. */
static uint64_t find_signature(struct machine *machine, const char *signature)
{
  uint8_t rom[0x10000];

  assert_true(memory_read(machine_memory(machine), 0xF0000, rom, sizeof(rom)));
  for (size_t i = 0; i < sizeof(rom); i += 16)
    if (memcmp(rom + i, signature, strlen(signature)) == 0)
      return 0xF0000 + i;
  return 0;
}

static void assert_sum(struct machine *machine, uint64_t address, unsigned size)
{
  unsigned sum = 0;

  for (unsigned i = 0; i < size; i++)
    sum += (unsigned)get(machine, address + i, 1);
  assert_int_equal(sum & 0xFF, 0);
}

static void test_tables(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("halt3.bin");
  assert_true(find_signature(machine, "RSD PTR "));
  uint64_t pointer = find_signature(machine, "_MP_"), table = get(machine, pointer + 4, 4);
  assert_true(pointer);
  assert_sum(machine, pointer, 16);
  assert_in_range(table, 0xF0000, 0xFFFFF); /* the table is in ROM too */
  assert_int_equal(get(machine, table, 4), 0x504D4350);
  assert_sum(machine, table, (unsigned)get(machine, table + 4, 2));
  assert_int_equal(get(machine, 0x40E, 2), 0x9FC0);
  assert_int_equal(get(machine, 0x463, 2), 0x3D4);
  assert_int_equal(get(machine, 0x41A, 2), 0x1E);
  assert_int_equal(get(machine, 0x475, 1), 0);
  machine_free(machine);
}

static void test_gate(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("gate.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x1000, 1), 0x22);
  assert_int_equal(get(machine, 0x1001, 1), 0x11);
  assert_int_equal(get(machine, 0x1002, 1), 0);
  assert_int_equal(get(machine, 0x1003, 1), 1);
  assert_int_equal(get(machine, 0x1004, 1), 0x22);
  assert_true(machine_ds_facts(machine).a20_is_masked);
  machine_free(machine);
}

/* ---- disks ---- */

/* Word pairs CF, AX of tests/machine/disk.S. */
static unsigned disk_cf(struct machine *machine, unsigned call)
{
  return (unsigned)get(machine, 0x1002 + 4 * call, 2);
}

static unsigned disk_ah(struct machine *machine, unsigned call)
{
  return (unsigned)get(machine, 0x1005 + 4 * call, 1);
}

static void assert_disk_common(struct machine *machine, uint8_t number)
{
  assert_int_equal(get(machine, 0x1000, 1), number);
  assert_int_equal(disk_cf(machine, 0), 0);
  assert_int_equal(disk_cf(machine, 1), 0);
  assert_int_equal(get(machine, 0x1008, 1), 1); /* AL: one sector */
  assert_int_equal(get(machine, 0x2000, 4), 0x5A5A5A5A);
  assert_int_equal(get(machine, 0x21FC, 4), 0x5A5A5A5A);
  assert_int_equal(disk_cf(machine, 2), 1);
  assert_int_equal(disk_ah(machine, 2), 1);
  assert_int_equal(disk_ah(machine, 3), 1);
  assert_int_equal(disk_cf(machine, 6), 0);
  assert_int_equal(disk_cf(machine, 7), 0);
  assert_int_equal(get(machine, 0x2400 + 510, 2), 0xAA55);
}

static void test_floppy(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("disk.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_disk_common(machine, 0x00);
  assert_int_equal(disk_cf(machine, 4), 1); /* no extensions */
  assert_int_equal(disk_ah(machine, 4), 1);
  assert_int_equal(disk_cf(machine, 5), 1);
  assert_int_equal(disk_ah(machine, 5), 1);
  assert_int_equal(get(machine, 0x2200, 4), 0);
  assert_int_equal(disk_ah(machine, 8), 1);
  assert_int_equal(get(machine, 0x1100, 2), 0x4F12); /* 80 cylinders, 18 sectors */
  assert_int_equal(get(machine, 0x1102, 2), 0x0101);
  assert_int_equal(get(machine, 0x1104, 1), 4);
  machine_free(machine);
}

static void test_disk(void **state)
{
  (void)state;
  struct machine *machine = disk_machine("disk.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_disk_common(machine, 0x80);
  assert_int_equal(disk_cf(machine, 4), 0);
  assert_int_equal(disk_cf(machine, 5), 0);
  assert_int_equal(get(machine, 0x2200, 4), 0x5A5A5A5A);
  assert_int_equal(disk_ah(machine, 8), 3);
  assert_int_equal(get(machine, 0x1100, 2), 0x003F); /* filled up to one cylinder */
  assert_int_equal(get(machine, 0x1102, 2), 0x0F01);
  machine_free(machine);
}

/* A disk of `size` bytes whose partition table says this. Returns cylinders, heads, sectors as AH=08h does. */
static uint32_t geometry_get(size_t size, const uint8_t partition[16])
{
  struct machine_config config = config_get();
  uint8_t *bytes = calloc(1, size);

  assert_non_null(bytes);
  struct machine_image sector = guest_read("disk.bin");
  memcpy(bytes, sector.bytes, 512);
  guest_free(sector);
  if (partition)
    memcpy(bytes + 446, partition, 16);
  config.disk = (struct machine_image){bytes, size};
  struct machine *machine = machine_make(&config, NULL);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  uint32_t geometry = (uint32_t)get(machine, 0x1100, 4);
  free(bytes);
  machine_free(machine);
  return geometry;
}

static void test_geometry(void **state)
{
  (void)state;
  /* from sector 17 to the end of cylinder 99 of 4 heads and 17 sectors */
  static const uint8_t good[16] = {0x80, 1, 1, 0, 6, 3, 17, 99, 17, 0, 0, 0, 0x7F, 0x1A, 0, 0};
  static const uint8_t bad[16] = {0x80, 1, 1, 0, 6, 3, 17, 99, 18, 0, 0, 0, 0x7F, 0x1A, 0, 0};
  /* the same with a first byte that no partition has, neither 00h nor 80h: a boot sector that goes on there */
  static const uint8_t text[16] = {0x09, 1, 1, 0, 6, 3, 17, 99, 17, 0, 0, 0, 0x7F, 0x1A, 0, 0};
  size_t size = 100 * 4 * 17 * 512;
  assert_int_equal(geometry_get(size, good), 0x03016311);
  assert_int_equal(geometry_get(size, bad), 0x0F01053F);
  assert_int_equal(geometry_get(size, text), 0x0F01053F);
  assert_int_equal(geometry_get(size, NULL), 0x0F01053F);
}

static void test_bad_configuration(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = NULL;
  static uint8_t big[2880 * 1024 + 1];
  config.floppy = (struct machine_image){big, sizeof(big)};
  assert_int_equal(machine_new(&config, NULL, &machine), LB_E_TOO_BIG);
  config.floppy.size = 0;
  assert_int_equal(machine_new(&config, NULL, &machine), LB_E_BAD_IMAGE);
  config.floppy.bytes = NULL;
  config.disk = (struct machine_image){big, 0};
  assert_int_equal(machine_new(&config, NULL, &machine), LB_E_BAD_IMAGE);
  config.disk.bytes = NULL;
  config.ram = 4096;
  assert_int_equal(machine_new(&config, NULL, &machine), LB_E_BAD_RAM);
  assert_null(machine);
}

PART(cmocka_unit_test(test_hello), cmocka_unit_test(test_screen_beyond), cmocka_unit_test(test_no_boot),
     cmocka_unit_test(test_second_drive), cmocka_unit_test(test_memory_map), cmocka_unit_test(test_tables),
     cmocka_unit_test(test_gate), cmocka_unit_test(test_floppy), cmocka_unit_test(test_disk),
     cmocka_unit_test(test_geometry), cmocka_unit_test(test_bad_configuration));
