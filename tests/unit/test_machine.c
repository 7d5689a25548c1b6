/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/machine: boot sectors and kernels of tests/machine are run, and what they left on the screen and in
 * memory is looked at. LB_GUESTS names the folder of the assembled guests.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/base.h"
#include "lastbranch/error.h"
#include "machine/machine.h"

#define SECOND UINT64_C(1000000000)

/* ---- helpers ---- */

static const struct machine_limit idle = {.until_idle = true, .nanoseconds = 60 * SECOND};

static struct machine_image guest_read(const char *name)
{
  char path[512];
  const char *folder = getenv("LB_GUESTS");
  snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
  FILE *file = fopen(path, "rb");
  if (!file)
    fail_msg("%s cannot be read", path);
  uint8_t *bytes = malloc(1 << 20);
  assert_non_null(bytes);
  size_t size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return (struct machine_image){bytes, size};
}

static void guest_free(struct machine_image image)
{
  free((void *)image.bytes);
}

static struct machine_config config_get(void)
{
  struct machine_config config = {.ram = UINT64_C(16) << 20};
  assert_int_equal(lb_cpu_find("skylake", &config.model), 0);
  return config;
}

static struct machine *machine_make(const struct machine_config *config, const struct machine_host *host)
{
  struct machine *machine = NULL;
  assert_int_equal(machine_new(config, host, &machine), 0);
  return machine;
}

/* A machine with this guest in its floppy drive, or as its disk. */
static struct machine *floppy_machine(const char *name)
{
  struct machine_config config = config_get();
  config.floppy = guest_read(name);
  struct machine *machine = machine_make(&config, NULL);
  guest_free(config.floppy);
  return machine;
}

static struct machine *disk_machine(const char *name)
{
  struct machine_config config = config_get();
  config.disk = guest_read(name);
  struct machine *machine = machine_make(&config, NULL);
  guest_free(config.disk);
  return machine;
}

static uint64_t get(struct machine *machine, uint64_t address, size_t size)
{
  uint64_t value = 0;
  assert_true(memory_read(machine_memory(machine), address, &value, size));
  return value;
}

static void assert_row(const struct machine_screen *screen, unsigned row, const char *text)
{
  char got[256] = {0};
  unsigned length = 0;
  assert_true(row < screen->rows);
  for (unsigned i = 0; i < screen->columns && i < sizeof(got) - 1; i++) {
    got[i] = (char)screen->cells[2 * (row * screen->columns + i)];
    if (got[i] != ' ' && got[i])
      length = i + 1;
  }
  got[length] = '\0';
  assert_string_equal(got, text);
}

static void assert_stop(struct machine *machine, const struct machine_limit *limit, enum machine_stop stop)
{
  enum machine_stop got = machine_run(machine, limit);
  if (got != stop)
    fail_msg("stopped with %d, not %d, at %llx:%llx %s", got, stop,
             (unsigned long long)machine_cpu(machine)->segment[CS].selector,
             (unsigned long long)machine_cpu(machine)->rip, machine_stop_reason(machine));
}

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

/* ---- interrupts, time, keys ---- */

static void test_hook(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("hook.bin");
  static const struct machine_limit limit = {.until_idle = true, .nanoseconds = 2 * SECOND};
  assert_stop(machine, &limit, MACHINE_STOP_TIME); /* its own handler keeps it from being idle */
  assert_int_equal(get(machine, 0x1000, 2), 2);
  assert_in_range(get(machine, 0x1002, 2), 35, 37);
  assert_in_range(get(machine, 0x1008, 4) - get(machine, 0x1004, 4), 9, 10);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "AB");
  assert_in_range(machine_time(machine), 2 * SECOND, 2 * SECOND + 1000);
  machine_free(machine);
}

static void type(struct machine *machine, const char *text)
{
  for (; *text; text++)
    assert_true(machine_type(machine, *text));
}

static void test_keys(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("keys.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE); /* waits for a key */
  type(machine, "aB;~ 1!");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  type(machine, "this is more than fifteen keys\n");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "aB;~ 1!this is more than fifteen keys");
  assert_int_equal(get(machine, 0x1000, 2), 0x1E61);
  assert_int_equal(get(machine, 0x1002, 2), 0x3042);
  assert_int_equal(get(machine, 0x1004, 2), 0x273B);
  assert_int_equal(get(machine, 0x1006, 2), 0x297E);
  unsigned end = 0x1000 + 2 * (7 + 31);
  assert_int_equal(get(machine, end - 2, 2), 0x1C0D);
  assert_int_equal(get(machine, end, 2), 0x40);
  assert_int_equal(get(machine, end + 2, 2), 0);
  assert_true(machine_key(machine, 0xE0) && machine_key(machine, 0x48)); /* the grey arrow */
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, end + 2, 2), 1);
  machine_free(machine);
}

/* A second of questions, and the clock ticks right all the while: 18 ticks of 54.9 ms. The first one may come at once,
 * and 20 more go by until the guest is known to be idle. */
static void test_ask(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("ask.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x1000, 2), 1);
  assert_in_range(machine_time(machine), 37 * (SECOND / 1000 * 54), 41 * (SECOND / 1000 * 55));
  assert_true(cpu_retired(machine_cpu(machine)) < 1000000);
  machine_free(machine);
}

/* ---- idle ---- */

static void test_idle(void **state)
{
  (void)state;
  static const struct machine_limit limit = {.until_idle = true, .nanoseconds = 3 * SECOND};
  static const enum machine_stop stops[] = {
    MACHINE_STOP_IDLE, MACHINE_STOP_IDLE, MACHINE_STOP_IDLE, MACHINE_STOP_IDLE,
    MACHINE_STOP_TIME, MACHINE_STOP_TIME, MACHINE_STOP_IDLE, MACHINE_STOP_TIME,
  };
  for (unsigned way = 1; way <= 8; way++) {
    char name[16];
    snprintf(name, sizeof(name), "halt%u.bin", way);
    struct machine *machine = floppy_machine(name);
    enum machine_stop stop = machine_run(machine, &limit);
    if (stop != stops[way - 1])
      fail_msg("%s stopped with %d", name, stop);
    if (way >= 5 && way != 7)
      assert_in_range(get(machine, 0x1000, 2), 53, 55);
    machine_free(machine);
  }
}

static void test_halt(void **state)
{
  (void)state;
  static const struct machine_limit limit = {.until_halt = true, .nanoseconds = 3 * SECOND};
  struct machine *machine = floppy_machine("halt6.bin");
  for (unsigned i = 0; i < 4; i++) {
    assert_stop(machine, &limit, MACHINE_STOP_HALTED);
    assert_int_equal(get(machine, 0x1000, 2), i);
  }
  machine_free(machine);
}

static void test_limits(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("halt5.bin");
  struct machine_limit limit = {.instructions = 100};
  uint64_t before = cpu_retired(machine_cpu(machine));
  assert_stop(machine, &limit, MACHINE_STOP_INSTRUCTIONS);
  assert_in_range(cpu_retired(machine_cpu(machine)) - before, 100, 110);
  machine_stop(machine);
  assert_stop(machine, &limit, MACHINE_STOP_REQUESTED);
  machine_free(machine);
}

/* ---- ends ---- */

struct heard {
  char serial[8], debug[8];
};

static void hear_serial(void *data, uint8_t byte)
{
  struct heard *heard = data;
  heard->serial[strlen(heard->serial)] = (char)byte;
}

static void hear_debug(void *data, uint8_t byte)
{
  struct heard *heard = data;
  heard->debug[strlen(heard->debug)] = (char)byte;
}

static void test_exit(void **state)
{
  (void)state;
  struct heard heard = {0};
  struct machine_host host = {.data = &heard, .serial = hear_serial, .debug = hear_debug};
  struct machine_config config = config_get();
  config.floppy = guest_read("finish.bin");
  struct machine *machine = machine_make(&config, &host);
  assert_stop(machine, &idle, MACHINE_STOP_EXIT);
  assert_int_equal(machine_exit_value(machine), 0x2A);
  assert_string_equal(heard.serial, "sT");
  assert_string_equal(heard.debug, "d");
  assert_int_equal(get(machine, 0x1000, 1), 0);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x1000, 1), 1);
  guest_free(config.floppy);
  machine_free(machine);
}

/* No interrupt of the firmware's waits when a boot sector begins: a debugger's first step is the guest's own. */
static void test_first_step(void **state)
{
  const struct machine_limit step = {.is_step = true};
  struct machine *machine = floppy_machine("hello.bin");
  (void)state;
  machine_start(machine);
  assert_true(machine_cpu(machine)->eflags & 0x200); /* interrupts are on */
  assert_int_equal(machine_cpu(machine)->rip, 0x7C00);
  assert_stop(machine, &step, MACHINE_STOP_POINT);
  assert_int_equal(machine_cpu(machine)->segment[CS].selector, 0);
  assert_int_equal(machine_cpu(machine)->rip, 0x7C03); /* behind MOV AX, 3 */
  machine_free(machine);
}

static void test_triple_fault(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("triple.bin");
  assert_stop(machine, &idle, MACHINE_STOP_SHUTDOWN);
  assert_non_null(strstr(machine_stop_reason(machine), "triple fault"));
  machine_free(machine);
}

static void test_reboot(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("again.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x1000, 2), 4);
  assert_int_equal(get(machine, 0x1004, 2), 0x600D);
  machine_free(machine);
}

/* INIT by port 0x92, with the shutdown code that makes firmware go on at 0040:0067: MSRs are kept (SDM vol. 3, table
 * 9-1), so that what LBR_SELECT held is still there. */
static void test_init_keeps_msrs(void **state)
{
  static const uint8_t code[] = {
    0x66, 0xB9, 0xC8, 0x01, 0x00, 0x00, 0x66, 0xB8, 0x01, 0x00, 0x00, 0x00, 0x66, 0x31, 0xD2, 0x0F, /* wrmsr 0x1C8, 1 */
    0x30, 0xB0, 0x0F, 0xE6, 0x70, 0xB0, 0x0A, 0xE6, 0x71, 0xC7, 0x06, 0x67, 0x04, 0x40, 0x00, 0xC7, /* CMOS 0Fh = 0Ah */
    0x06, 0x69, 0x04, 0x00, 0x01, 0xB0, 0x03, 0xE6, 0x92, 0xFA, 0xF4, 0x00, 0x00, 0x00, 0x00, 0x00, /* to 0100:0040 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
    0x66, 0xB9, 0xC8, 0x01, 0x00, 0x00, 0x0F, 0x32, 0xA3, 0x00, 0x20, 0xE4, 0x92, 0xA2, 0x02, 0x20, /* rdmsr 0x1C8 */
    0xFA, 0xF4,
  };
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image image = {code, sizeof(code)};
  assert_int_equal(machine_load_flat(machine, &image, 0x1000), 0);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(machine_cpu(machine)->rip, 0x52);
  assert_int_equal(get(machine, 0x2000, 2), 1);
  assert_int_equal(get(machine, 0x2002, 1), 3);
  machine_free(machine);
}

/* LOOP and CALL to themselves are work, not waiting. */
static void test_loops_that_end(void **state)
{
  /* mov $0x200000, %ecx; loop .; mov %ecx, 0x2000; mov $0x101000, %esp; call .: as often as was asked for */
  static const uint8_t code[] = {0xB9, 0x00, 0x00, 0x20, 0x00, 0xE2, 0xFE, 0x89, 0x0D, 0x00, 0x20, 0x00,
                                 0x00, 0xBC, 0x00, 0x10, 0x10, 0x00, 0xE8, 0xFB, 0xFF, 0xFF, 0xFF};
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image image = {code, sizeof(code)};
  struct machine_limit limit = {.until_idle = true, .instructions = 0x200000 + 3 + 100};
  assert_int_equal(machine_load_flat(machine, &image, 0x200000), 0);
  assert_int_equal(machine_run(machine, &limit), MACHINE_STOP_INSTRUCTIONS);
  assert_int_equal(get(machine, 0x2000, 4), 0);
  assert_int_equal(machine_cpu(machine)->r[RSP], 0x101000 - 4 * 100);
  machine_free(machine);
}

/* ---- kernels ---- */

static uint32_t info_get(struct machine *machine, uint32_t info, unsigned offset)
{
  return (uint32_t)get(machine, info + offset, 4);
}

static void assert_string_at(struct machine *machine, uint32_t address, const char *string)
{
  char got[64];
  assert_true(memory_read(machine_memory(machine), address, got, sizeof(got)));
  got[sizeof(got) - 1] = '\0';
  assert_string_equal(got, string);
}

static void assert_modules(struct machine *machine, uint32_t info)
{
  assert_int_equal(info_get(machine, info, 20), 2);
  uint32_t list = info_get(machine, info, 24), first = info_get(machine, list, 0), second = info_get(machine, list, 16);
  assert_int_equal(first % 4096, 0);
  assert_int_equal(second % 4096, 0);
  assert_int_equal(info_get(machine, list, 4), first + 3);
  assert_string_at(machine, info_get(machine, list, 8), "one");
  assert_string_at(machine, info_get(machine, list, 24), "two words");
  assert_int_equal(get(machine, first, 3), 0x636261);
  assert_int_equal(get(machine, second, 1), 'd');
}

/* A gzip file of it, for guest_free. */
static struct machine_image packed(const void *bytes, size_t size)
{
  z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (unsigned)size};
  assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  unsigned room = (unsigned)deflateBound(&stream, size);
  uint8_t *file = malloc(room);
  assert_non_null(file);
  stream.next_out = file;
  stream.avail_out = room;
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  assert_int_equal(deflateEnd(&stream), Z_OK);
  return (struct machine_image){file, room - stream.avail_out};
}

static void image_pack(struct machine_image *image)
{
  struct machine_image file = packed(image->bytes, image->size);
  guest_free(*image);
  *image = file;
}

static void assert_kernel(const char *name, bool is_elf, bool is_packed)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read(name);
  struct machine_image modules[] = {{(const uint8_t *)"abc", 3}, {(const uint8_t *)"d", 1}};
  const char *names[] = {"one", "two words"}, *why = "";
  struct machine_image module = packed("abc", 3);
  if (is_packed) {
    image_pack(&kernel);
    modules[0] = module;
  }
  int r = machine_load_kernel(machine, &kernel, "kernel a=b", modules, names, 2, &why);
  if (r < 0)
    fail_msg("%s: %s: %s", name, lb_strerror(r), why);
  guest_free(kernel);
  guest_free(module);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x2000, 4), 0x2BADB002);
  uint32_t info = (uint32_t)get(machine, 0x2004, 4);
  assert_int_equal(get(machine, 0x2008, 4) & 0x20200, 0);    /* neither IF nor VM */
  assert_int_equal(get(machine, 0x200C, 4) & 0x80000001, 1); /* protected, no paging */
  assert_int_equal(get(machine, 0x2010, 4), 0x37F);          /* FNINIT */
  assert_int_equal(get(machine, 0x2014, 4), 0);
  assert_int_equal(get(machine, 0x2018, 4), 0xCAFE);
  assert_int_equal(info_get(machine, info, 0) & 0x24D, 0x24D);
  assert_int_equal(!!(info_get(machine, info, 0) & 0x20), is_elf);
  assert_int_equal(info_get(machine, info, 4), 639);
  assert_int_equal(info_get(machine, info, 8), 15 * 1024 - 64);
  assert_string_at(machine, info_get(machine, info, 16), "kernel a=b");
  assert_modules(machine, info);
  assert_true(info_get(machine, info, 44) >= 6 * 24);
  assert_int_equal(info_get(machine, info_get(machine, info, 48), 0), 20);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "AB");
  machine_free(machine);
}

static void test_kernels(void **state)
{
  (void)state;
  assert_kernel("kernel32.elf", true, false);
  assert_kernel("kernel64.elf", true, false);
  assert_kernel("kernel_page.elf", true, false); /* its headers are at FF000h, in a segment of their own */
  assert_kernel("kernel.bin", false, false);
}

static void test_packed_kernels(void **state)
{
  (void)state;
  assert_kernel("kernel32.elf", true, true);
  assert_kernel("kernel64.elf", true, true);
  assert_kernel("kernel.bin", false, true);
}

/* As the kernel and as a module of a good kernel; both are refused with the same code. */
static void assert_packed_refused(struct machine_image file, int error, const char *sentence)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf");
  const char *why = "", *name = "extra.gz";
  char named[128];
  assert_int_equal(machine_load_kernel(machine, &file, "", NULL, NULL, 0, &why), error);
  assert_string_equal(why, sentence);
  assert_int_equal(machine_load_kernel(machine, &kernel, "", &file, &name, 1, &why), error);
  snprintf(named, sizeof(named), "module extra.gz: %s", sentence);
  assert_string_equal(why, named);
  assert_int_equal(machine_load_kernel(machine, &kernel, "", NULL, NULL, 0, &why), 0);
  guest_free(kernel);
  machine_free(machine);
}

static void test_bad_packed_kernels(void **state)
{
  (void)state;
  struct machine_image file = guest_read("kernel32.elf");
  image_pack(&file);
  uint8_t *bytes = (uint8_t *)file.bytes;
  for (size_t size = 2; size < file.size; size += 7)
    assert_packed_refused((struct machine_image){bytes, size}, LB_E_BAD_IMAGE, "its gzip data ends too early");
  bytes[file.size - 5] ^= 1; /* of the CRC */
  assert_packed_refused(file, LB_E_BAD_IMAGE, "its gzip data is damaged");
  bytes[file.size - 5] ^= 1;
  bytes[2] = 7; /* no such method */
  assert_packed_refused(file, LB_E_BAD_IMAGE, "its gzip data is damaged");
  guest_free(file);

  struct machine_config config = config_get();
  uint8_t *zeros = calloc(1, config.ram + 1);
  assert_non_null(zeros);
  file = packed(zeros, config.ram + 1);
  assert_packed_refused(file, LB_E_TOO_BIG, "unpacked, it is larger than the guest's memory");
  guest_free(file);
  free(zeros);
}

/* Members are joined and zeros behind them ignored (gzip's manual, ADVANCED USAGE); other bytes are not lost silently.
 */
static void test_packed_members(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf"), one = packed("ab", 2), two = packed("c", 1);
  uint8_t file[256] = {0};
  memcpy(file, one.bytes, one.size);
  memcpy(file + one.size, two.bytes, two.size);
  struct machine_image modules[] = {{file, sizeof(file)}, {(const uint8_t *)"d", 1}};
  const char *names[] = {"one", "two words"}, *why = "";
  assert_int_equal(machine_load_kernel(machine, &kernel, "", modules, names, 2, &why), 0);
  assert_modules(machine, (uint32_t)machine_cpu(machine)->r[RBX]);
  file[255] = 1;
  assert_int_equal(machine_load_kernel(machine, &kernel, "", modules, names, 2, &why), LB_E_BAD_IMAGE);
  assert_string_equal(why, "module one: its gzip data is followed by other bytes");
  guest_free(kernel);
  guest_free(one);
  guest_free(two);
  machine_free(machine);
}

/* Linux unpacks its initrd itself, and itself too: only the file that it comes in may be packed by mistake. */
static void test_packed_linux(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("linux.bin"), initrd = packed("abc", 3);
  const char *why = "";
  assert_int_equal(machine_load_kernel(machine, &kernel, "", &initrd, NULL, 1, &why), 0);
  uint64_t params = machine_cpu(machine)->r[RSI];
  uint32_t at = (uint32_t)get(machine, params + 0x218, 4);
  assert_int_equal(get(machine, params + 0x21C, 4), initrd.size);
  assert_int_equal(get(machine, at, 4), bytes_get_u32(initrd.bytes));
  image_pack(&kernel);
  assert_int_equal(machine_load_kernel(machine, &kernel, "", NULL, NULL, 0, &why), LB_E_BAD_IMAGE);
  assert_string_equal(why, "it is a Linux kernel in a gzip file; unpack it with gunzip first");
  guest_free(kernel);
  guest_free(initrd);
  machine_free(machine);
}

/* The section headers of kernel32.elf lead to its symbols: one of them is _start. */
static void test_symbols(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf");
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, NULL), 0);
  uint32_t info = (uint32_t)machine_cpu(machine)->r[RBX], count = info_get(machine, info, 28);
  uint32_t headers = info_get(machine, info, 36), names = 0, symbols = 0, size = 0;
  assert_int_equal(info_get(machine, info, 32), 40);
  for (uint32_t i = 0; i < count; i++)
    if (info_get(machine, headers, 40 * i + 4) == 2) {
      symbols = info_get(machine, headers, 40 * i + 12);
      size = info_get(machine, headers, 40 * i + 20);
      names = info_get(machine, headers, 40 * info_get(machine, headers, 40 * i + 24) + 12);
    }
  assert_true(symbols && names);
  bool is_found = false;
  for (uint32_t at = 0; at < size; at += 16) {
    char name[8];
    assert_true(memory_read(machine_memory(machine), names + info_get(machine, symbols, at), name, sizeof(name)));
    if (strncmp(name, "_start", sizeof(name)) == 0)
      is_found = info_get(machine, symbols, at + 4) == machine_cpu(machine)->rip;
  }
  assert_true(is_found);
  guest_free(kernel);
  machine_free(machine);
}

/* Each change makes the kernel unusable, in its own words. */
static void assert_bad_kernel(size_t at, uint32_t value, unsigned size, const char *sentence)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("kernel32.elf");
  const char *why = "";
  memcpy((uint8_t *)kernel.bytes + at, &value, size);
  int r = machine_load_kernel(machine, &kernel, "", NULL, NULL, 0, &why);
  assert_true(r == LB_E_BAD_IMAGE || r == LB_E_TOO_BIG);
  assert_string_equal(why, sentence);
  guest_free(kernel);
  machine_free(machine);
}

static void test_bad_kernels(void **state)
{
  (void)state;
  struct machine_image kernel = guest_read("kernel32.elf");
  size_t header = 0, segment = bytes_get_u32(kernel.bytes + 28);
  while (bytes_get_u32(kernel.bytes + header) != 0x1BADB002)
    header += 4;
  guest_free(kernel);
  assert_bad_kernel(header, 0, 4, "no multiboot header in its first 8192 bytes");
  assert_bad_kernel(header + 8, 0, 4, "no multiboot header in its first 8192 bytes");
  assert_bad_kernel(0, 0, 4, "it has a multiboot header, but is not an ELF file and has no address fields");
  assert_bad_kernel(5, 2, 1, "the ELF file is not little-endian");
  assert_bad_kernel(4, 7, 1, "the ELF file is neither of 32 nor of 64 bits");
  assert_bad_kernel(18, 40, 2, "the ELF file ends within its header or is for another processor");
  assert_bad_kernel(28, 0xFFFFFFF0, 4, "the program headers of the ELF file end behind the end of the file");
  assert_bad_kernel(42, 8, 2, "the program headers of the ELF file are too small");
  assert_bad_kernel(44, 0, 2, "the ELF file has no segment to load");
  assert_bad_kernel(segment + 4, 0x10000000, 4, "a segment of the ELF file ends behind the end of the file");
  assert_bad_kernel(segment + 20, 1, 4, "a segment of the ELF file is longer in the file than in memory");
  assert_bad_kernel(segment + 20, 0xFFFFFFFF, 4,
                    "a part of it does not fit into memory, or lies where the firmware is");
  assert_bad_kernel(segment + 12, 0xF0000, 4, "a part of it does not fit into memory, or lies where the firmware is");
}

/* What an operating system looks at before it uses caching at all. */
static void test_memory_types(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  uint64_t value = 0;
  assert_true(cpu_read_msr(machine_cpu(machine), 0x2FF, &value));
  assert_int_equal(value, 0xC06);
  assert_true(cpu_read_msr(machine_cpu(machine), 0x201, &value));
  assert_int_equal(value, UINT64_C(0xFFC0000800));
  assert_true(cpu_read_msr(machine_cpu(machine), 0x26F, &value));
  assert_int_equal(value, UINT64_C(0x0505050505050505));
  machine_free(machine);
}

/* ---- Linux ---- */

static void assert_e820(struct machine *machine, uint32_t params)
{
  static const uint64_t wanted[][3] = {
    {0, 0x9FC00, 1}, {0x9FC00, 0x400, 2}, {0xF0000, 0x10000, 2}, {0x100000, 0xEF0000, 1}, {0xFF0000, 0x10000, 3}};
  assert_true(get(machine, params + 0x1E8, 1) >= 5);
  for (unsigned i = 0; i < 5; i++) {
    assert_int_equal(get(machine, params + 0x2D0 + 20 * i, 8), wanted[i][0]);
    assert_int_equal(get(machine, params + 0x2D8 + 20 * i, 8), wanted[i][1]);
    assert_int_equal(get(machine, params + 0x2E0 + 20 * i, 4), wanted[i][2]);
  }
}

/* The 32-bit entry of the boot protocol, and boot_params: places are those of the kernel's documentation. */
static void test_linux(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("linux.bin");
  struct machine_image modules[] = {{(const uint8_t *)"abcde", 5}, {(const uint8_t *)"fg", 2}};
  const char *why = "";
  assert_true(machine_is_linux(&kernel));
  int r = machine_load_kernel(machine, &kernel, "console=ttyS0 a=b", modules, NULL, 2, &why);
  if (r < 0)
    fail_msg("%s: %s", lb_strerror(r), why);
  assert_stop(machine, &idle, MACHINE_STOP_OFF);
  uint32_t params = (uint32_t)get(machine, 0x2000, 4);
  assert_int_equal(get(machine, 0x2004, 4), 0);
  assert_int_equal(get(machine, 0x2008, 4) & 0x20200, 0);
  assert_int_equal(get(machine, 0x200C, 4) & 0x80000001, 1);
  assert_in_range(get(machine, 0x2010, 4), 0x100000, 0x100040);
  assert_int_equal(get(machine, 0x2014, 2), 0x10);
  assert_int_equal(get(machine, 0x2016, 2), 0x18);
  assert_int_equal(get(machine, 0x2018, 2), 0x18);
  assert_string_at(machine, (uint32_t)get(machine, params + 0x228, 4), "console=ttyS0 a=b");
  assert_int_equal(get(machine, params + 0x1EF, 1), 0); /* the sentinel */
  assert_int_equal(get(machine, params + 0x202, 4), 0x53726448);
  assert_int_equal(get(machine, params + 0x206, 2), 0x20F);
  assert_int_not_equal(get(machine, params + 0x210, 1), 0);
  uint32_t initrd = (uint32_t)get(machine, params + 0x218, 4), rsdp = (uint32_t)get(machine, params + 0x70, 4);
  assert_int_equal(initrd, 0xFEF000); /* the last page that is free */
  assert_int_equal(get(machine, params + 0x21C, 4), 10);
  assert_int_equal(get(machine, initrd, 8), UINT64_C(0x6564636261));
  assert_int_equal(get(machine, initrd + 8, 2), 0x6766);
  assert_int_equal(get(machine, rsdp, 8), UINT64_C(0x2052545020445352)); /* "RSD PTR " */
  assert_e820(machine, params);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "OK");
  guest_free(kernel);
  machine_free(machine);
}

/* Without a module and in a machine that is only just big enough. */
static void test_linux_in_little_memory(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine_image kernel = guest_read("linux.bin"), module = {(const uint8_t *)"abc", 3};
  const char *why = "";
  config.ram = UINT64_C(0x700000) + 0x10000;
  struct machine *machine = machine_make(&config, NULL);
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, &why), 0);
  assert_int_equal(get(machine, machine_cpu(machine)->r[RSI] + 0x218, 8), 0);
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, &module, NULL, 1, &why), LB_E_TOO_BIG);
  assert_string_equal(why, "no room in memory for its initrd; --ram gives it more");
  machine_free(machine);
  config.ram -= 0x1000;
  machine = machine_make(&config, NULL);
  assert_int_equal(machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, &why), LB_E_TOO_BIG);
  assert_string_equal(why, "it needs more memory to unpack itself than there is; --ram gives it more");
  machine_free(machine);
  guest_free(kernel);
}

/* The 16-bit entry, for protocols before 2.10, whose header ends earlier: what stands behind it is code. */
static void test_linux_in_real_mode(void **state)
{
  (void)state;
  for (uint16_t version = 0x203; version < 0x20A; version += 2) {
    struct machine_config config = config_get();
    struct machine *machine = machine_make(&config, NULL);
    struct machine_image kernel = guest_read("linux.bin"), module = {(const uint8_t *)"abc", 3};
    const char *why = "";
    memcpy((uint8_t *)kernel.bytes + 0x206, &version, 2);
    memset((uint8_t *)kernel.bytes + 0x258, 0xFF, 12); /* no pref_address, no init_size */
    int r = machine_load_kernel(machine, &kernel, "a=b", &module, NULL, 1, &why);
    if (r < 0)
      fail_msg("%s: %s", lb_strerror(r), why);
    assert_stop(machine, &idle, MACHINE_STOP_OFF);
    uint64_t segment = get(machine, 0x3002, 2), pointer = get(machine, 0x3006, 2);
    assert_int_equal(get(machine, 0x3000, 2), segment + 0x20);
    assert_int_equal(get(machine, 0x3004, 2), segment);
    assert_int_equal(get(machine, 0x3008, 2) & 0x200, 0); /* interrupts are off */
    assert_string_at(machine, (uint32_t)get(machine, 0x300C, 4), "a=b");
    assert_in_range(get(machine, 0x3010, 2) + 0x200, 0x400, pointer - 0x200);
    assert_int_equal(get(machine, get(machine, 0x3014, 4), 3), 0x636261);
    assert_int_equal(get(machine, segment * 16 + 0x21C, 4), 3);
    assert_int_equal(get(machine, segment * 16 + 0x211, 1), 0x81); /* LOADED_HIGH, CAN_USE_HEAP */
    assert_int_equal(get(machine, 0x100000, 4), bytes_get_u32(kernel.bytes + 0x400));
    guest_free(kernel);
    machine_free(machine);
  }
}

static void test_linux_wants_64_bits(void **state)
{
  (void)state;
  struct machine_config config = config_get();
  struct machine_image kernel = guest_read("linux.bin");
  ((uint8_t *)kernel.bytes)[0x236] = 1; /* XLF_KERNEL_64 */
  for (unsigned i = 0; i < 4; i++) {
    static const char *const names[] = {"skylake", "p6", "yonah", "k8"};
    const char *why = "";
    assert_int_equal(lb_cpu_find(names[i], &config.model), 0);
    struct machine *machine = machine_make(&config, NULL);
    int r = machine_load_kernel(machine, &kernel, NULL, NULL, NULL, 0, &why);
    assert_int_equal(r, i == 1 || i == 2 ? LB_E_BAD_IMAGE : 0);
    assert_string_equal(why, r < 0 ? "it is a kernel of 64 bits, and this processor has no 64-bit mode" : "");
    assert_int_equal(machine_cpu(machine)->efer, 0);
    machine_free(machine);
  }
  guest_free(kernel);
}

static void assert_bad_linux(size_t at, uint32_t value, unsigned size, const char *sentence)
{
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image kernel = guest_read("linux.bin"), module = {(const uint8_t *)"abc", 3};
  const char *why = "";
  memcpy((uint8_t *)kernel.bytes + at, &value, size);
  int r = machine_load_kernel(machine, &kernel, "console=ttyS0", &module, NULL, 1, &why);
  assert_true(r == LB_E_BAD_IMAGE || r == LB_E_TOO_BIG);
  assert_string_equal(why, sentence);
  kernel.size = 0x402;
  for (size_t end = 0; end < kernel.size; end += 3) { /* cut anywhere, it is refused in some words */
    struct machine_image part = {kernel.bytes, end};
    why = NULL;
    assert_true(machine_load_kernel(machine, &part, "", NULL, NULL, 0, &why) < 0 || end > 0x400);
    assert_true(why || end > 0x400);
  }
  guest_free(kernel);
  machine_free(machine);
}

static void test_bad_linux(void **state)
{
  (void)state;
  static const char *const no_initrd = "no room in memory for its initrd; --ram gives it more";
  static const char *const no_room = "it needs more memory to unpack itself than there is; --ram gives it more";
  assert_bad_linux(0x1F1, 2, 1, "the file ends within Linux's setup code");
  assert_bad_linux(0x1F1, 255, 1, "the file ends within Linux's setup code");
  assert_bad_linux(0x201, 0x10, 1, "its setup header has no such size");
  assert_bad_linux(0x206, 0x201, 2, "it is a Linux kernel with a boot protocol older than 2.02");
  assert_bad_linux(0x211, 0, 1, "it is a zImage, which is loaded below 640 KiB; a bzImage is wanted");
  assert_bad_linux(0x22C, 0x3FFFFF, 4, no_initrd); /* initrd_addr_max */
  assert_bad_linux(0x22C, 0, 4, no_initrd);
  assert_bad_linux(0x230, 0x200001, 4, "the alignment in its setup header is not a power of two");
  assert_bad_linux(0x230, 0x80000000, 4, no_room);
  assert_bad_linux(0x238, 12, 4, "its command line is longer than it can take");
  assert_bad_linux(0x25C, 1, 4, "its setup header wants it above 4 GiB");
  assert_bad_linux(0x258, 0xFFFFFFFF, 4, no_room);
  assert_bad_linux(0x260, 0xFFFFFFFF, 4, no_room);
}

static void test_flat(void **state)
{
  (void)state;
  static const uint8_t real[] = {0x8C, 0xC8, 0xA3, 0x00, 0x20, 0xFA, 0xF4};       /* mov %cs, %ax; mov %ax, 0x2000 */
  static const uint8_t flat[] = {0x8C, 0xC8, 0xA3, 0x00, 0x20, 0, 0, 0xFA, 0xF4}; /* the same in 32 bits */
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image image = {real, sizeof(real)};
  assert_int_equal(machine_load_flat(machine, &image, 0x12345), 0);
  assert_int_equal(machine_cpu(machine)->rip, 5);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x2000, 2), 0x1234);
  image = (struct machine_image){flat, sizeof(flat)};
  assert_int_equal(machine_load_flat(machine, &image, 0x200000), 0);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_not_equal(get(machine, 0x2000, 2), 0x1234);
  assert_int_equal(machine_load_flat(machine, &image, 0xFFFFF), LB_E_TOO_BIG);
  assert_int_equal(machine_load_flat(machine, &image, UINT64_MAX - 2), LB_E_TOO_BIG);
  image.size = 0;
  assert_int_equal(machine_load_flat(machine, &image, 0x1000), LB_E_BAD_IMAGE);
  machine_free(machine);
}

/* ---- several processors ---- */

static void hear_letter(void *data, uint8_t byte)
{
  char *text = data;
  size_t length = strlen(text);
  if (length < 15)
    text[length] = (char)byte;
}

static struct machine *smp_machine(unsigned cpus, char text[16])
{
  struct machine_config config = config_get();
  struct machine_host host = {.data = text, .debug = hear_letter};
  struct machine_image image = guest_read("smp.bin");
  config.cpus = cpus;
  struct machine *machine = machine_make(&config, &host);
  assert_int_equal(machine_load_flat(machine, &image, 0x100000), 0);
  guest_free(image);
  return machine;
}

/* Far longer than the guest takes. */
static const struct machine_limit hundredth = {.until_idle = true, .nanoseconds = SECOND / 100};

/* The guest says what went as it should: see smp.S. */
static void test_processors(void **state)
{
  static const unsigned counts[] = {2, 3, MACHINE_CPUS};
  (void)state;
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
    char text[16] = "";
    struct machine *machine = smp_machine(counts[i], text);
    assert_int_equal(machine_cpu_count(machine), counts[i]);
    assert_int_equal(machine_run(machine, &hundredth), MACHINE_STOP_EXIT);
    assert_string_equal(text, "ABCDEF");
    assert_int_equal(machine_exit_value(machine), 0);
    for (unsigned k = 0; k < counts[i]; k++) {
      machine_show(machine, k);
      bool has_records = lb_recorder_used(&machine_cpu(machine)->recorder);
      assert_int_equal(has_records, k == 1); /* LBR was on there alone */
    }
    machine_free(machine);
  }
}

/* Turns do not depend on where a run is cut, by instructions or by time; and all clocks are the same. */
static void test_processors_cut(void **state)
{
  static const struct machine_limit limits[] = {{.instructions = 7}, {.nanoseconds = 1301}, {.instructions = 2999}};
  char text[16] = "", cut_text[16] = "";
  struct machine *whole = smp_machine(2, text), *cut = smp_machine(2, cut_text);
  enum machine_stop stop = MACHINE_STOP_TIME;
  (void)state;
  assert_int_equal(machine_run(whole, &hundredth), MACHINE_STOP_EXIT);
  for (unsigned i = 0; stop == MACHINE_STOP_TIME || stop == MACHINE_STOP_INSTRUCTIONS; i++)
    stop = machine_run(cut, &limits[i % 3]);
  assert_int_equal(stop, MACHINE_STOP_EXIT);
  assert_string_equal(text, cut_text);
  assert_int_equal(machine_retired(whole), machine_retired(cut));
  assert_int_equal(machine_time(whole), machine_time(cut));
  for (unsigned k = 0; k < 2; k++) {
    machine_show(whole, k);
    machine_show(cut, k);
    assert_int_equal(cpu_retired(machine_cpu(whole)), cpu_retired(machine_cpu(cut)));
    assert_int_equal(cpu_cycles(machine_cpu(cut)), machine_time(cut));
  }
  machine_free(whole);
  machine_free(cut);
}

/* Alone, the guest waits for the other for ever: the time that it was given ends it. */
static void test_processor_alone(void **state)
{
  char text[16] = "";
  struct machine *machine = smp_machine(1, text);
  (void)state;
  assert_int_equal(machine_run(machine, &(struct machine_limit){.nanoseconds = 100000}), MACHINE_STOP_TIME);
  assert_string_equal(text, "");
  machine_free(machine);
}

static void test_too_many_processors(void **state)
{
  struct machine_config config = config_get();
  struct machine *machine = NULL;
  (void)state;
  config.cpus = MACHINE_CPUS + 1;
  assert_int_equal(machine_new(&config, NULL, &machine), -EINVAL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hello),
    cmocka_unit_test(test_screen_beyond),
    cmocka_unit_test(test_no_boot),
    cmocka_unit_test(test_second_drive),
    cmocka_unit_test(test_memory_map),
    cmocka_unit_test(test_tables),
    cmocka_unit_test(test_gate),
    cmocka_unit_test(test_floppy),
    cmocka_unit_test(test_disk),
    cmocka_unit_test(test_geometry),
    cmocka_unit_test(test_bad_configuration),
    cmocka_unit_test(test_hook),
    cmocka_unit_test(test_keys),
    cmocka_unit_test(test_ask),
    cmocka_unit_test(test_idle),
    cmocka_unit_test(test_halt),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_exit),
    cmocka_unit_test(test_first_step),
    cmocka_unit_test(test_triple_fault),
    cmocka_unit_test(test_reboot),
    cmocka_unit_test(test_init_keeps_msrs),
    cmocka_unit_test(test_loops_that_end),
    cmocka_unit_test(test_kernels),
    cmocka_unit_test(test_packed_kernels),
    cmocka_unit_test(test_bad_packed_kernels),
    cmocka_unit_test(test_packed_members),
    cmocka_unit_test(test_packed_linux),
    cmocka_unit_test(test_symbols),
    cmocka_unit_test(test_bad_kernels),
    cmocka_unit_test(test_memory_types),
    cmocka_unit_test(test_linux),
    cmocka_unit_test(test_linux_in_little_memory),
    cmocka_unit_test(test_linux_in_real_mode),
    cmocka_unit_test(test_linux_wants_64_bits),
    cmocka_unit_test(test_bad_linux),
    cmocka_unit_test(test_flat),
    cmocka_unit_test(test_processors),
    cmocka_unit_test(test_processors_cut),
    cmocka_unit_test(test_processor_alone),
    cmocka_unit_test(test_too_many_processors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
