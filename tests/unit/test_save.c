/* SPDX-License-Identifier: Apache-2.0
 *
 * Saved machines. A run that was saved and loaded, at many places one behind the other, ends as the one that never was:
 * the same words, and every byte of the two machines at the end. No field of any state was forgotten. Files that are
 * cut, damaged or foreign are refused with the right code. fuzz_save has the forged ones.
 *
 * Usage: test_save, with the folders of the guests in LB_GUESTS, LB_QEMU_GUESTS and LB_LABS.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../fuzz/seal.h"
#include "board/save.h"
#include "cpu/save.h"
#include "fields.h"
#include "recorder/unit.h"

struct bytes {
  uint8_t *at;
  size_t size, capacity;
};

static int bytes_add(void *data, const void *from, size_t size)
{
  struct bytes *bytes = data;

  if (bytes->size + size > bytes->capacity) {
    bytes->capacity = 2 * (bytes->size + size);
    bytes->at = realloc(bytes->at, bytes->capacity);
    assert_non_null(bytes->at);
  }
  memcpy(bytes->at + bytes->size, from, size);
  bytes->size += size;
  return 0;
}

static void bytes_done(struct bytes *bytes)
{
  free(bytes->at);
  *bytes = (struct bytes){0};
}

static void hear(void *data, uint8_t byte)
{
  bytes_add(data, &byte, 1);
}

/* ---- guests ---- */

enum { KERNEL, FLOPPY, DISK, FLAT };

#define CPUS(n) ((n) << 8)

struct guest {
  const char *folder, *name, *cpu;
  int kind;      /* | CPUS(n) for more than one processor */
  uint64_t end;  /* instructions */
  uint64_t step; /* between two places where it is saved */
  enum predictor_kind predictor;
};

static struct bytes guest_read(const struct guest *guest)
{
  static uint8_t buffer[4 << 20];
  char *path;
  struct bytes bytes = {0};

  assert_true(asprintf(&path, "%s/%s", getenv(guest->folder), guest->name) > 0);
  FILE *file = fopen(path, "rb");
  if (!file)
    fail_msg("%s: %s", path, strerror(errno));
  bytes_add(&bytes, buffer, fread(buffer, 1, sizeof(buffer), file));
  fclose(file);
  free(path);
  return bytes;
}

static struct machine *guest_start(const struct guest *guest, struct bytes *heard)
{
  struct bytes file = guest_read(guest);
  struct machine_image image = {file.at, file.size};
  struct machine_config config = {.cpus = (unsigned)guest->kind >> 8, .ram = 2 << 20, .predictor = guest->predictor};
  struct machine_host host = {.data = heard, .serial = hear, .debug = hear};
  struct machine *machine;

  if ((guest->kind & 0xFF) == FLOPPY || (guest->kind & 0xFF) == DISK)
    *((guest->kind & 0xFF) == FLOPPY ? &config.floppy : &config.disk) = image;
  assert_int_equal(lb_cpu_find(guest->cpu, &config.model), 0);
  assert_int_equal(machine_new(&config, &host, &machine), 0);
  if ((guest->kind & 0xFF) == KERNEL)
    assert_int_equal(machine_load_kernel(machine, &image, "kernel", NULL, NULL, 0, NULL), 0);
  if ((guest->kind & 0xFF) == FLAT)
    assert_int_equal(machine_load_flat(machine, &image, 0x100000), 0);
  bytes_done(&file);
  return machine;
}

static enum machine_stop run_to(struct machine *machine, uint64_t end)
{
  uint64_t done = machine_retired(machine);
  struct machine_limit limit = {.instructions = end - done};

  return done < end ? machine_run(machine, &limit) : MACHINE_STOP_INSTRUCTIONS;
}

/* Saves it, makes another one of the bytes, and throws the first away. */
static struct machine *exchange(struct machine *machine, struct bytes *heard, struct bytes *file)
{
  struct machine_host host = {.data = heard, .serial = hear, .debug = hear};
  struct machine *other = NULL;

  file->size = 0;
  assert_int_equal(machine_save(machine, bytes_add, file), 0);
  int r = machine_restore(file->at, file->size, &host, &other);
  if (r < 0)
    fail_msg("after %llu instructions: %s", (unsigned long long)cpu_retired(machine_cpu(machine)), lb_strerror(r));
  machine_free(machine);
  return other;
}

/* The two machines as they are: all memory, registers, records, devices, cached translations. */
static void compare(struct machine *one, struct machine *other, const char *name)
{
  struct bytes first = {0}, second = {0};

  assert_int_equal(machine_save(one, bytes_add, &first), 0);
  assert_int_equal(machine_save(other, bytes_add, &second), 0);
  if (first.size != second.size || memcmp(first.at, second.at, first.size) != 0)
    fail_msg("%s: the machines differ: %llu and %llu instructions, %zu and %zu bytes", name,
             (unsigned long long)cpu_retired(machine_cpu(one)), (unsigned long long)cpu_retired(machine_cpu(other)),
             first.size, second.size);
  bytes_done(&first);
  bytes_done(&second);
}

static void guest_check(const struct guest *guest)
{
  struct bytes heard = {0}, again = {0}, file = {0};
  struct machine *whole = guest_start(guest, &heard), *broken = guest_start(guest, &again);
  enum machine_stop stop = run_to(whole, guest->end), stop_again = MACHINE_STOP_INSTRUCTIONS;

  for (uint64_t at = 1; stop_again == MACHINE_STOP_INSTRUCTIONS && at < guest->end; at += guest->step) {
    stop_again = run_to(broken, at);
    broken = exchange(broken, &again, &file);
  }
  if (stop_again == MACHINE_STOP_INSTRUCTIONS)
    stop_again = run_to(broken, guest->end);
  assert_int_equal(stop, stop_again);
  assert_int_equal(heard.size, again.size);
  if (heard.size)
    assert_memory_equal(heard.at, again.at, heard.size);
  compare(whole, broken, guest->name);
  machine_free(whole);
  machine_free(broken);
  bytes_done(&heard);
  bytes_done(&again);
  bytes_done(&file);
}

#define MANY UINT64_C(100000000)

static void test_labs_go_on(void **state)
{
  static const struct guest guests[] = {
    {"LB_LABS", "bts_interrupt.elf", "westmere", KERNEL, MANY, 997, PREDICTOR_2BIT},
    {"LB_LABS", "bts_64.elf", "skylake", KERNEL, MANY, 1499, PREDICTOR_GSHARE},
    {"LB_LABS", "bts_ring.elf", "pentium4", KERNEL, MANY, 1499, PREDICTOR_NONE},
    {"LB_LABS", "bts_cpl.elf", "haswell", KERNEL, MANY, 1999, PREDICTOR_2BIT},
    {"LB_LABS", "pebs.elf", "nehalem", KERNEL, MANY, 499, PREDICTOR_2BIT},
    {"LB_LABS", "pebs.elf", "skylake", KERNEL, MANY, 503, PREDICTOR_2BIT},
    {"LB_LABS", "smm.elf", "sandybridge", KERNEL, MANY, 1999, PREDICTOR_2BIT},
    {"LB_LABS", "freeze_new.elf", "skylake", KERNEL, MANY, 997, PREDICTOR_2BIT},
    {"LB_LABS", "freeze_old.elf", "westmere", KERNEL, MANY, 997, PREDICTOR_2BIT},
    {"LB_LABS", "calls.elf", "haswell", KERNEL, MANY, 997, PREDICTOR_2BIT},
    {"LB_LABS", "arch.elf", "alderlake", KERNEL, MANY, 1999, PREDICTOR_2BIT},
    {"LB_LABS", "btf.elf", "p6", KERNEL, MANY, 997, PREDICTOR_2BIT},
    {"LB_LABS", "ex14_1.elf", "zen4", KERNEL, MANY, 997, PREDICTOR_2BIT},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++)
    guest_check(&guests[i]);
}

static void test_guests_go_on(void **state)
{
  static const struct guest guests[] = {
    {"LB_QEMU_GUESTS", "long.elf", "skylake", KERNEL, MANY, 47, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "protect.elf", "skylake", KERNEL, MANY, 199, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "gates.elf", "skylake", KERNEL, MANY, 83, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "paging.elf", "skylake", KERNEL, MANY, 83, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "fpu.elf", "haswell", KERNEL, MANY, 997, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "devices.elf", "skylake", KERNEL, MANY, 99991, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "real.img", "skylake", FLOPPY, MANY, 29989, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "bios.img", "skylake", FLOPPY, UINT64_C(4000000), 299993, PREDICTOR_2BIT},
    {"LB_QEMU_GUESTS", "sleep.img", "skylake", FLOPPY, MANY, 53, PREDICTOR_2BIT},
    {"LB_GUESTS", "hello.bin", "skylake", FLOPPY, 300000, 7001, PREDICTOR_2BIT},
    {"LB_GUESTS", "hook.bin", "skylake", FLOPPY, 300000, 7001, PREDICTOR_2BIT},
    {"LB_GUESTS", "halt5.bin", "skylake", FLOPPY, 300000, 7001, PREDICTOR_2BIT},
    {"LB_GUESTS", "disk.bin", "skylake", DISK, 300000, 3, PREDICTOR_2BIT},
    {"LB_GUESTS", "again.bin", "skylake", DISK, 300000, 3, PREDICTOR_2BIT},
    {"LB_GUESTS", "finish.bin", "skylake", FLOPPY, 300000, 3, PREDICTOR_2BIT},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++)
    guest_check(&guests[i]);
}

/* The guest that is made for it: cut behind every instruction, and now and then. */
static void test_every_instruction(void **state)
{
  static const struct guest guests[] = {
    {"LB_GUESTS", "cut.bin", "skylake", FLAT, 700, 1, PREDICTOR_2BIT},
    {"LB_GUESTS", "cut.bin", "westmere", FLAT, 20000, 97, PREDICTOR_GSHARE},
    {"LB_GUESTS", "cut.bin", "alderlake", FLAT, 20000, 1009, PREDICTOR_2BIT},
    {"LB_GUESTS", "cut.bin", "zen4", FLAT, 20000, 7919, PREDICTOR_NONE},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++)
    guest_check(&guests[i]);
}

/* Several processors: in the middle of turns, IPIs on their way. */
static void test_processors_go_on(void **state)
{
  static const struct guest guests[] = {
    {"LB_GUESTS", "smp.bin", "skylake", FLAT | CPUS(2), MANY, 97, PREDICTOR_2BIT},
    {"LB_GUESTS", "smp.bin", "haswell", FLAT | CPUS(3), MANY, 1009, PREDICTOR_NONE},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(guests) / sizeof(guests[0]); i++)
    guest_check(&guests[i]);
}

/* Ended by time, in the middle of waiting (HLT, a jump to itself), again and again. */
static void test_waiting_goes_on(void **state)
{
  static const char *const names[] = {"hello.bin", "hook.bin", "halt1.bin", "halt2.bin", "halt5.bin", "halt6.bin"};

  (void)state;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    struct guest guest = {"LB_GUESTS", names[i], "skylake", FLOPPY, 0, 0, PREDICTOR_2BIT};
    struct bytes heard = {0}, file = {0};
    struct machine *whole = guest_start(&guest, &heard), *broken = guest_start(&guest, &heard);
    uint64_t end = UINT64_C(700000000), step = UINT64_C(29999993);
    struct machine_limit limit = {.nanoseconds = end};

    machine_run(whole, &limit);
    for (uint64_t left = end; left;) {
      uint64_t before = machine_time(broken);

      limit.nanoseconds = left < step ? left : step;
      machine_run(broken, &limit);
      uint64_t passed = machine_time(broken) - before;
      left -= passed < left ? passed : left;
      broken = exchange(broken, &heard, &file);
    }
    compare(whole, broken, names[i]);
    machine_free(whole);
    machine_free(broken);
    bytes_done(&heard);
    bytes_done(&file);
  }
}

/* Keys on their way, and what the machine was started with, are kept. */
static void test_keys_and_restart(void **state)
{
  struct guest guest = {"LB_GUESTS", "keys.bin", "skylake", FLOPPY, 0, 0, PREDICTOR_2BIT};
  struct bytes heard = {0}, file = {0};
  struct machine *whole = guest_start(&guest, &heard), *broken = guest_start(&guest, &heard);

  (void)state;
  for (const char *key = "abc\n"; *key; key++) {
    machine_type(whole, *key);
    machine_type(broken, *key);
  }
  run_to(whole, 3000);
  for (uint64_t at = 100; at <= 3000; at += 100) {
    run_to(broken, at);
    broken = exchange(broken, &heard, &file);
  }
  compare(whole, broken, "keys");
  board_out(whole->board, 0xCF9, 1, 0x02);
  board_out(whole->board, 0xCF9, 1, 0x06);
  board_out(broken->board, 0xCF9, 1, 0x02);
  board_out(broken->board, 0xCF9, 1, 0x06);
  assert_true(broken->wants_reset);
  broken = exchange(broken, &heard, &file);
  run_to(whole, 9000);
  run_to(broken, 9000);
  compare(whole, broken, "keys after a reset");
  machine_free(whole);
  machine_free(broken);
  bytes_done(&heard);
  bytes_done(&file);
}

/* ---- nothing is forgotten ---- */

/* Bytes that are no state: of the host, or worked out from others. */
struct exempt {
  size_t offset, size;
};

#define EXEMPT(type, field)                                                                                            \
  {                                                                                                                    \
    offsetof(type, field), sizeof(((type *)NULL)->field)                                                               \
  }
#define PATTERN_ONE 0xA5
#define PATTERN_OTHER 0x5A

static bool is_exempt(const struct exempt *list, size_t count, size_t offset)
{
  for (size_t i = 0; i < count; i++)
    if (offset - list[i].offset < list[i].size)
      return true;
  return false;
}

/* A byte of a field that kept both patterns was not read. */
static void covered(const char *type, const void *one, const void *other, size_t size, const struct exempt *list,
                    size_t count)
{
  uint8_t *map = calloc(1, size);

  assert_non_null(map);
  assert_true(fields_of(type, map, size));
  for (size_t i = 0; i < size; i++) {
    bool is_untouched = ((const uint8_t *)one)[i] == PATTERN_ONE && ((const uint8_t *)other)[i] == PATTERN_OTHER;

    if (is_untouched && map[i] && !is_exempt(list, count, i))
      fail_msg("struct %s: the byte at offset %zu is neither saved nor on the list of what is not", type, i);
  }
  free(map);
}

#define COVERED(type, one, other, list)                                                                                \
  covered(#type, one, other, sizeof(struct type), list, sizeof(list) / sizeof((list)[0]))

static struct machine *some_machine(void)
{
  struct machine_config config = {.cpus = MACHINE_CPUS, .ram = 2 << 20, .has_test_device = true};
  struct machine *machine;

  assert_int_equal(lb_cpu_find("skylake", &config.model), 0);
  assert_int_equal(machine_new(&config, NULL, &machine), 0);
  return machine;
}

/* Reads what `write` wrote into two things of different patterns. */
#define READ_TWICE(bytes, size, function, one, other)                                                                  \
  do {                                                                                                                 \
    struct archive archive = archive_reader(bytes, size);                                                              \
    function(&archive, one);                                                                                           \
    assert_int_equal(archive_end(&archive), 0);                                                                        \
    archive = archive_reader(bytes, size);                                                                             \
    function(&archive, other);                                                                                         \
    assert_int_equal(archive_end(&archive), 0);                                                                        \
  } while (0)

static void processor_archive(struct archive *archive, struct cpu *cpu)
{
  registers_archive(archive, cpu);
  clock_archive(archive, cpu);
  predictor_archive(archive, &cpu->predictor);
  cache_archive(archive, &cpu->cache);
}

static void test_processor_is_whole(void **state)
{
  static const struct exempt list[] = {
    /* not between two runs */
    EXEMPT(struct cpu, held), EXEMPT(struct cpu, hit), EXEMPT(struct cpu, is_stepping), EXEMPT(struct cpu, at),
    EXEMPT(struct cpu, is_alone), EXEMPT(struct cpu, counts_blocks), EXEMPT(struct cpu, progress.clocked),
    EXEMPT(struct cpu, is_kicked), EXEMPT(struct cpu, has_paused), EXEMPT(struct cpu, fault), EXEMPT(struct cpu, door),
    EXEMPT(struct cpu, reason),
    /* save.c has its own ways for these: flags as one number, the recorder, cached pages */
    EXEMPT(struct cpu, lazy), EXEMPT(struct cpu, eflags), EXEMPT(struct cpu, recorder), EXEMPT(struct cpu, tlbs),
    EXEMPT(struct cpu, tlb_shift), EXEMPT(struct cpu, keys_cached),
    /* worked out: cpu_changed; linear_base, ease and bounded of segments are below */
    EXEMPT(struct cpu, r[ZERO]), EXEMPT(struct cpu, tlb), EXEMPT(struct cpu, generation), EXEMPT(struct cpu, mode),
    EXEMPT(struct cpu, code_limit), EXEMPT(struct cpu, stack_mask), EXEMPT(struct cpu, linear_mask),
    EXEMPT(struct cpu, cpl), EXEMPT(struct cpu, outside), EXEMPT(struct cpu, counts_blocks),
    EXEMPT(struct cpu, dr_access), EXEMPT(struct cpu, dr_code),
    /* what it is made of, and who looks at it */
    EXEMPT(struct cpu, points), EXEMPT(struct cpu, point_count), EXEMPT(struct cpu, code_points),
    EXEMPT(struct cpu, catches), EXEMPT(struct cpu, follower), EXEMPT(struct cpu, follower_data),
    EXEMPT(struct cpu, number), EXEMPT(struct cpu, model), EXEMPT(struct cpu, features), EXEMPT(struct cpu, listener),
    EXEMPT(struct cpu, listener_data), EXEMPT(struct cpu, bus), EXEMPT(struct cpu, memory), EXEMPT(struct cpu, jumps),
    EXEMPT(struct cpu, blocks),
#define SEGMENT(i)                                                                                                     \
  EXEMPT(struct cpu, segment[i].linear_base), EXEMPT(struct cpu, segment[i].ease),                                     \
    EXEMPT(struct cpu, segment[i].bounded)
    SEGMENT(0), SEGMENT(1), SEGMENT(2), SEGMENT(3), SEGMENT(4), SEGMENT(5), SEGMENT(6), SEGMENT(7)};
  static uint8_t bytes[1 << 16];
  struct machine *machine = some_machine();
  struct archive writer = archive_writer(bytes, sizeof(bytes));
  size_t room = (sizeof(struct cpu) + 63) & ~(size_t)63;
  struct cpu *one = aligned_alloc(64, room), *other = aligned_alloc(64, room);

  (void)state;
  processor_archive(&writer, machine_cpu(machine));
  assert_true(writer.at < sizeof(bytes) && one && other);
  memset(one, PATTERN_ONE, sizeof(*one));
  memset(other, PATTERN_OTHER, sizeof(*other));
  one->at = other->at = NULL; /* looked at to know how many have retired */
  READ_TWICE(bytes, writer.at, processor_archive, one, other);
  COVERED(cpu, one, other, list);
  free(one);
  free(other);
  machine_free(machine);
}

static void test_recorder_is_whole(void **state)
{
#define DERIVED(field) EXEMPT(struct lb_recorder, field)
  static const struct exempt list[] = {
    DERIVED(armed),
    DERIVED(keep),
    DERIVED(set),
    DERIVED(wrap),
    DERIVED(fast),
    DERIVED(info_top),
    DERIVED(to_cycles),
    DERIVED(info_cycles),
    DERIVED(linear),
    DERIVED(lbr_kinds),
    DERIVED(pop_kinds),
    DERIVED(pmu.event),
    DERIVED(cpu),
    DERIVED(host),
    DERIVED(options),
    DERIVED(sibling),
    DERIVED(ds.flags),
    DERIVED(ds.page),
    DERIVED(ds.page_address),
    DERIVED(ds.page_limit),
    DERIVED(ds.header),
    DERIVED(ds.quick),
    DERIVED(ds.stores),
    DERIVED(ds.is_open),
    DERIVED(ds.is_64),
    DERIVED(ds.is_circular),
    DERIVED(ds.off),
    DERIVED(lbr.last.unused),
    DERIVED(lbr.ler.unused),
    DERIVED(lbr.executed.unused),
  };
  static uint8_t bytes[1 << 16];
  static struct lb_recorder recorder, one, other;
  const struct lb_cpu *cpu;
  struct archive writer = archive_writer(bytes, sizeof(bytes));
  (void)state;
  assert_int_equal(lb_cpu_find("skylake", &cpu), 0);
  assert_int_equal(lb_recorder_init(&recorder, cpu, NULL, 0), 0);
  unit_archive(&writer, &recorder);
  assert_true(writer.at < sizeof(bytes));
  memset(&one, PATTERN_ONE, sizeof(one));
  memset(&other, PATTERN_OTHER, sizeof(other));
  one.cpu = other.cpu = cpu;
  READ_TWICE(bytes, writer.at, unit_archive, &one, &other);
  for (unsigned i = 0; i < LB_DEPTH_MAX; i++)
    one.entries[i].unused = other.entries[i].unused = 0;
  COVERED(lb_recorder, &one, &other, list);
}

static void devices_new(struct board *board, uint8_t pattern)
{
  for (unsigned i = 0; i < DEVICE_COUNT; i++) {
    board->state[i] = malloc(devices[i]->state_size + 1);
    assert_non_null(board->state[i]);
    memset(board->state[i], pattern, devices[i]->state_size);
  }
}

/* The private state of every device, by the descriptor's name of its struct. */
static void devices_are_whole(struct board *one, struct board *other)
{
  for (unsigned i = 0; i < DEVICE_COUNT; i++) {
    if (devices[i]->state_size)
      covered(devices[i]->state_name, one->state[i], other->state[i], devices[i]->state_size, NULL, 0);
    free(one->state[i]);
    free(other->state[i]);
  }
}

static void test_board_is_whole(void **state)
{
  static const struct exempt list[] = {
    EXEMPT(struct board, config),       EXEMPT(struct board, host),
    EXEMPT(struct board, is_advancing),                              /* only while it is told the time */
    EXEMPT(struct board, asking),       EXEMPT(struct board, state), /* devices_are_whole */
    EXEMPT(struct board, ranges),       EXEMPT(struct board, port_owner),
  };
  static uint8_t bytes[1 << 18];
  static struct board one, other;
  struct machine *machine = some_machine();
  struct archive writer = archive_writer(bytes, sizeof(bytes));

  (void)state;
  board_archive(&writer, machine->board);
  assert_true(writer.at < sizeof(bytes));
  memset(&one, PATTERN_ONE, sizeof(one));
  memset(&other, PATTERN_OTHER, sizeof(other));
  one.config.cpus = other.config.cpus = BOARD_CPUS;
  one.config.has_test_device = other.config.has_test_device = true;
  devices_new(&one, PATTERN_ONE);
  devices_new(&other, PATTERN_OTHER);
  READ_TWICE(bytes, writer.at, board_archive, &one, &other);
  COVERED(board, &one, &other, list);
  devices_are_whole(&one, &other);
  machine_free(machine);
}

static void test_machine_is_whole(void **state)
{
  static const struct exempt list[] = {
    /* sections of their own, and the plan */
    EXEMPT(struct machine, memory),
    EXEMPT(struct machine, cpu),
    EXEMPT(struct machine, cpus),
    EXEMPT(struct machine, cpu_count),
    EXEMPT(struct machine, wires),
    EXEMPT(struct machine, shown), /* who looks at it */
    EXEMPT(struct machine, board),
    EXEMPT(struct machine, config),
    EXEMPT(struct machine, floppy),
    EXEMPT(struct machine, disk),
    EXEMPT(struct machine, start),
    /* of the host, and worked out */
    EXEMPT(struct machine, host),
    EXEMPT(struct machine, refusal),
    EXEMPT(struct machine, is_stopping),
    EXEMPT(struct machine, service_cycles), /* 0 between two instructions */
    EXEMPT(struct machine, tables),
  };
  static const struct exempt drives[] = {EXEMPT(struct save_plan, floppy.bytes), EXEMPT(struct save_plan, disk.bytes)};
  static uint8_t bytes[1 << 16];
  static struct machine one, other;
  static struct save_plan plan, plan_one, plan_other;
  struct machine *machine = some_machine();
  struct archive writer = archive_writer(bytes, sizeof(bytes));

  (void)state;
  machine_archive(&writer, machine);
  memset(&one, PATTERN_ONE, sizeof(one));
  memset(&other, PATTERN_OTHER, sizeof(other));
  READ_TWICE(bytes, writer.at, machine_archive, &one, &other);
  COVERED(machine, &one, &other, list);
  writer = archive_writer(bytes, sizeof(bytes));
  plan.ram = 2 << 20;
  plan.cpus = 1;
  plan_archive(&writer, &plan);
  memset(&plan_one, PATTERN_ONE, sizeof(plan_one));
  memset(&plan_other, PATTERN_OTHER, sizeof(plan_other));
  READ_TWICE(bytes, writer.at, plan_archive, &plan_one, &plan_other);
  COVERED(save_plan, &plan_one, &plan_other, drives);
  machine_free(machine);
}

static void test_start_is_whole(void **state)
{
  static const struct exempt none[] = {{0, 0}};
  static uint8_t bytes[1 << 16];
  struct machine_image modules[] = {{(const uint8_t *)"one", 3}, {(const uint8_t *)"", 0}};
  char *names[] = {"first", ""};
  static struct start one, other; /* named, so that they are described */
  struct start start = {START_KERNEL, {(const uint8_t *)"kernel", 6}, 7, "command", modules, names, 2};
  struct archive writer = archive_writer(bytes, sizeof(bytes));

  (void)state;
  start_archive(&writer, &start);
  memset(&one, PATTERN_ONE, sizeof(one));
  memset(&other, PATTERN_OTHER, sizeof(other));
  READ_TWICE(bytes, writer.at, start_archive, &one, &other);
  COVERED(start, &one, &other, none);
  assert_int_equal(one.count, 2);
  assert_string_equal(one.command_line, "command");
  assert_string_equal(one.names[0], "first");
  assert_memory_equal(one.modules[0].bytes, "one", 3);
  assert_memory_equal(one.image.bytes, "kernel", 6);
  start_done(&one);
  start_done(&other);
}

/* ---- what is refused ---- */

/* A machine of a few KiB: without firmware, and before its first instruction. */
static struct bytes small_file(void)
{
  struct guest guest = {"LB_GUESTS", "hello.bin", "westmere", FLOPPY, 0, 0, PREDICTOR_NONE};
  struct bytes file = {0}, heard = {0};
  struct machine *machine = guest_start(&guest, &heard);

  memset(machine->memory.ram, 0, machine->memory.size);
  assert_int_equal(machine_save(machine, bytes_add, &file), 0);
  machine_free(machine);
  return file;
}

static int restore(const uint8_t *bytes, size_t size)
{
  struct machine *machine = NULL;
  int r = machine_restore(bytes, size, NULL, &machine);

  assert_true((r >= 0) == (machine != NULL));
  machine_free(machine);
  return r;
}

static void test_cut_files(void **state)
{
  struct bytes file = small_file();

  (void)state;
  assert_int_equal(restore(file.at, file.size), 0);
  assert_int_equal(restore(file.at, 0), LB_E_NOT_MACHINE);
  for (size_t size = 1; size < file.size; size++) {
    uint8_t *copy = malloc(size); /* of its own size, so that a sanitizer sees what lies outside */

    assert_non_null(copy);
    memcpy(copy, file.at, size);
    assert_int_equal(restore(copy, size), LB_E_TRUNCATED);
    free(copy);
  }
  bytes_add(&file, "", 1);
  assert_int_equal(restore(file.at, file.size), LB_E_DAMAGED);
  bytes_done(&file);
}

static void test_damaged_files(void **state)
{
  struct bytes file = small_file();

  (void)state;
  for (size_t i = 0; i < file.size; i++) {
    uint8_t bit = (uint8_t)(1u << i % 8);

    file.at[i] ^= bit;
    int r = restore(file.at, file.size);
    if (r != LB_E_DAMAGED && r != (i < SAVE_MAGIC_SIZE ? LB_E_NOT_MACHINE : LB_E_TRUNCATED))
      fail_msg("bit %zu of byte %zu: %d", i % 8, i, r);
    file.at[i] ^= bit;
  }
  bytes_done(&file);
}

/* The contents of a section. */
static uint8_t *section(struct bytes *file, enum save_section number, size_t *ret_size)
{
  size_t at = SAVE_HEAD_SIZE;

  for (unsigned i = 0; i < number; i++)
    at += SAVE_SECTION_SIZE + (size_t)bytes_get_u64(file->at + at + 8);
  *ret_size = (size_t)bytes_get_u64(file->at + at + 8);
  return file->at + at + SAVE_SECTION_SIZE;
}

static int restore_sealed(struct bytes *file)
{
  seal(file->at, file->size);
  return restore(file->at, file->size);
}

static void test_foreign_files(void **state)
{
  struct bytes file = small_file();
  size_t size;

  (void)state;
  assert_int_equal(restore((const uint8_t *)"\x7F"
                                            "ELF, or what it may be",
                           22),
                   LB_E_NOT_MACHINE);
  file.at[8]++;
  assert_int_equal(restore_sealed(&file), LB_E_MACHINE_VERSION);
  file.at[8]--;
  assert_int_equal(restore_sealed(&file), 0);
  section(&file, SAVE_MACHINE, &size)[0] = 'x';
  assert_int_equal(restore_sealed(&file), LB_E_NO_CPU);
  section(&file, SAVE_MACHINE, &size)[0] = 'w';
  section(&file, SAVE_CPU, &size)[0] ^= 1;
  assert_int_equal(restore_sealed(&file), LB_E_OTHER_HOST);
  bytes_done(&file);
}

/* Checksums are right, but no machine can be like this. */
static void test_forged_fields(void **state)
{
  static const struct {
    enum save_section section;
    size_t offset;
    uint8_t value;
  } rows[] = {
    {SAVE_MACHINE, 31, 'x'},  /* the CPU's name does not end */
    {SAVE_MACHINE, 32, 0},    /* no processor */
    {SAVE_MACHINE, 32, 2},    /* two, of which one is there */
    {SAVE_MACHINE, 43, 0x40}, /* RAM of exabytes */
    {SAVE_MACHINE, 37, 1},    /* RAM that is no page */
    {SAVE_MACHINE, 48, 7},    /* has_test_device */
    {SAVE_BOARD, 0, 2},       /* is_touched */
    {SAVE_BOARD, 13, 1},      /* lines */
    {SAVE_CPU, 138, 0x80},    /* CS */
    {SAVE_START, 0, 3},       /* kind */
    {SAVE_FLOPPY, 7, 1},      /* a page outside */
    {SAVE_MEMORY, 7, 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct bytes file = small_file();
    size_t size;
    uint8_t *contents = section(&file, rows[i].section, &size);

    if (size > rows[i].offset) {
      contents[rows[i].offset] = rows[i].value;
      int r = restore_sealed(&file);
      if (r != LB_E_DAMAGED && rows[i].section != SAVE_CPU)
        fail_msg("row %zu: %d", i, r);
    }
    bytes_done(&file);
  }
}

static int fail_to_write(void *data, const void *bytes, size_t size)
{
  (void)bytes;
  (void)size;
  ++*(unsigned *)data;
  return -ENOSPC;
}

static void test_writer_fails(void **state)
{
  struct guest guest = {"LB_GUESTS", "hello.bin", "westmere", FLOPPY, 0, 0, PREDICTOR_NONE};
  struct bytes heard = {0};
  struct machine *machine = guest_start(&guest, &heard);
  unsigned calls = 0;

  (void)state;
  assert_int_equal(machine_save(machine, fail_to_write, &calls), -ENOSPC);
  assert_int_equal(calls, 1);
  machine_free(machine);
}

/* ---- the recorder alone ---- */

static void test_recorder_alone(void **state)
{
  static struct lb_recorder one, other;
  uint8_t bytes[8192], again[8192];
  const struct lb_cpu *cpu;

  (void)state;
  assert_int_equal(lb_cpu_find("westmere", &cpu), 0);
  assert_int_equal(lb_recorder_init(&one, cpu, NULL, 0), 0);
  assert_int_equal(lb_recorder_init(&other, cpu, NULL, 0), 0);
  assert_int_equal(lb_recorder_wrmsr(&one, 0x1D9, 1), LB_MSR_OK);
  for (unsigned i = 0; i < 20; i++) {
    struct lb_branch branch = {.from = 0x1000 + i, .to = 0x2000 + i, .kind = LB_BRANCH_NEAR_REL_JMP};

    lb_recorder_branch(&one, &branch);
  }
  size_t size = lb_recorder_save(&one, NULL, 0);
  assert_true(size > 64 && size <= sizeof(bytes));
  assert_int_equal(lb_recorder_save(&one, bytes, sizeof(bytes)), size);
  assert_int_equal(lb_recorder_load(&other, bytes, size - 1), LB_E_TRUNCATED);
  assert_int_equal(lb_recorder_load(&other, bytes, size + 1), LB_E_DAMAGED);
  assert_false(lb_recorder_is_recording(&other));
  assert_int_equal(lb_recorder_load(&other, bytes, size), 0);
  assert_true(lb_recorder_is_recording(&other));
  assert_int_equal(lb_recorder_save(&other, again, sizeof(again)), size);
  assert_memory_equal(bytes, again, size);
  struct lb_branch branch = {.from = 0x3000, .to = 0x4000, .kind = LB_BRANCH_NEAR_REL_JMP};
  lb_recorder_branch(&one, &branch);
  lb_recorder_branch(&other, &branch);
  lb_recorder_save(&one, bytes, sizeof(bytes));
  lb_recorder_save(&other, again, sizeof(again));
  assert_memory_equal(bytes, again, size);
  bytes[4] = 99; /* the depth */
  assert_int_equal(lb_recorder_load(&other, bytes, size), LB_E_DAMAGED);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_labs_go_on),         cmocka_unit_test(test_guests_go_on),
    cmocka_unit_test(test_every_instruction),  cmocka_unit_test(test_processors_go_on),
    cmocka_unit_test(test_waiting_goes_on),    cmocka_unit_test(test_keys_and_restart),
    cmocka_unit_test(test_processor_is_whole), cmocka_unit_test(test_recorder_is_whole),
    cmocka_unit_test(test_board_is_whole),     cmocka_unit_test(test_machine_is_whole),
    cmocka_unit_test(test_start_is_whole),     cmocka_unit_test(test_cut_files),
    cmocka_unit_test(test_damaged_files),      cmocka_unit_test(test_foreign_files),
    cmocka_unit_test(test_forged_fields),      cmocka_unit_test(test_writer_fails),
    cmocka_unit_test(test_recorder_alone),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
