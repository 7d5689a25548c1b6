/* SPDX-License-Identifier: Apache-2.0
 *
 * Forged machines. The input is a file whose checksums are made right (first byte 0), or changes to one of three real
 * ones: section, offset, bytes. What is accepted must run for a few thousand instructions without harm to the host, and
 * whatever state that leads to can be saved and loaded again, as the same bytes.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASES 3u
#define FILE_MOST (1u << 20) /* of an input that is a file */
#define CHANGE_MOST 8u       /* bytes of one change */
#define NANOSECONDS 100000u  /* of a run: a guest in which every instruction faults takes so many exceptions */

extern const uint8_t lab_bts_interrupt[], lab_bts_interrupt_end[], lab_bts_64[], lab_bts_64_end[];

struct bytes {
  uint8_t *at;
  size_t size, capacity;
};

static void check(bool is_true, const char *what)
{
  if (is_true)
    return;
  fprintf(stderr, "fuzz_save: %s does not hold\n", what);
  abort();
}

static int bytes_add(void *data, const void *from, size_t size)
{
  struct bytes *bytes = data;

  if (bytes->size + size > bytes->capacity) {
    bytes->capacity = 2 * (bytes->size + size);
    bytes->at = realloc(bytes->at, bytes->capacity);
    check(bytes->at, "there is memory");
  }
  if (size)
    memcpy(bytes->at + bytes->size, from, size);
  bytes->size += size;
  return 0;
}

/* ---- real ones ---- */

/* Waits for a key with interrupts on, the clock ticking: STI, INT 16h, again. */
static const uint8_t sector[512] = {0xFB, 0x31, 0xC0, 0xCD, 0x16,         0xB4, 0x0E,
                                    0xCD, 0x10, 0xEB, 0xF5, [510] = 0x55, 0xAA};

static struct bytes base_make(const char *cpu, const struct machine_image *kernel, uint64_t instructions)
{
  struct machine_config config = {
    .cpus = kernel ? 1 : 2, .ram = 2 << 20, .predictor = PREDICTOR_2BIT, .has_test_device = !kernel};
  struct machine_limit limit = {.instructions = instructions};
  struct bytes file = {0};
  struct machine *machine;

  if (!kernel)
    config.floppy = config.disk = (struct machine_image){sector, sizeof(sector)};
  check(lb_cpu_find(cpu, &config.model) >= 0, "there is a CPU");
  check(machine_new(&config, NULL, &machine) >= 0, "there is a machine");
  if (kernel)
    check(machine_load_kernel(machine, kernel, "lab", NULL, NULL, 0, NULL) >= 0, "a lab can be started");
  machine_type(machine, 'x');
  machine_run(machine, &limit);
  machine_save(machine, bytes_add, &file);
  machine_free(machine);
  return file;
}

static const struct bytes *base_get(unsigned number)
{
  static struct bytes bases[BASES];
  struct machine_image interrupt = {lab_bts_interrupt, (size_t)(lab_bts_interrupt_end - lab_bts_interrupt)};
  struct machine_image wide = {lab_bts_64, (size_t)(lab_bts_64_end - lab_bts_64)};

  if (!bases[0].at) {
    bases[0] = base_make("alderlake", NULL, 2000);
    bases[1] = base_make("westmere", &interrupt, 3000);
    bases[2] = base_make("skylake", &wide, 4000);
  }
  return &bases[number];
}

/* Applies changes to a file: which section, where in it (head included), how many bytes, and these. */
static void changes_apply(struct bytes *file, const uint8_t *at, size_t left)
{
  while (left >= 6) {
    size_t place = SAVE_HEAD_SIZE, count = 1 + at[4] % CHANGE_MOST;
    uint32_t offset = bytes_get_u32(at) >> 8;

    for (unsigned i = at[0] % SAVE_SECTIONS; i && file->size - place >= SAVE_SECTION_SIZE; i--) {
      uint64_t length = bytes_get_u64(file->at + place + 8);

      if (length > file->size - place - SAVE_SECTION_SIZE)
        break;
      place += SAVE_SECTION_SIZE + (size_t)length;
    }
    at += 5;
    left -= 5;
    for (size_t i = 0; i < count && left; i++, at++, left--)
      if (offset + i < file->size - place)
        file->at[place + offset + i] = *at;
  }
}

/* ---- what must hold ---- */

static void look(struct machine *machine)
{
  struct machine_screen screen = machine_screen(machine);
  struct lb_ds_facts facts = machine_ds_facts(machine);
  struct lb_recorder *recorder = &machine_cpu(machine)->recorder;
  struct lb_record record;
  uint64_t value;

  check(screen.columns > 0 && screen.rows * screen.columns <= 0x4000, "the screen lies in video memory");
  machine_screen_all(machine);
  lb_ds_check(recorder, &facts);
  for (unsigned age = 0; lb_recorder_entry(recorder, age, &record) >= 0; age++)
    check(lb_branch_kind_name(record.kind) != NULL, "a kind has a name");
  for (uint32_t msr = 0x100; msr < 0x800; msr++)
    lb_recorder_rdmsr(recorder, msr, &value);
}

static void run(struct machine *machine)
{
  struct machine_limit limit = {.instructions = 3000, .until_idle = true, .nanoseconds = NANOSECONDS};

  machine_run(machine, &limit);
  machine_type(machine, 'y');
  machine_serial_receive(machine, 'z');
  machine_run(machine, &limit);
  look(machine);
}

/* What a machine has come to can be saved, and loaded as what it was. */
static void again(struct machine *machine)
{
  struct bytes file = {0}, other = {0};
  struct machine *restored = NULL;

  machine_save(machine, bytes_add, &file);
  check(machine_restore(file.at, file.size, NULL, &restored) == 0, "what was saved can be loaded");
  machine_save(restored, bytes_add, &other);
  check(file.size == other.size && !memcmp(file.at, other.at, file.size), "what was loaded is what was saved");
  machine_free(restored);
  free(file.at);
  free(other.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct bytes file = {0};
  struct machine *machine = NULL;

  if (size == 0 || size > FILE_MOST)
    return 0;
  if (data[0] == 0)
    bytes_add(&file, data + 1, size - 1);
  else {
    const struct bytes *base = base_get(data[0] % BASES);

    bytes_add(&file, base->at, base->size);
    changes_apply(&file, data + 1, size - 1);
  }
  if (!file.at)
    return 0;
  seal(file.at, file.size);
  int r = machine_restore(file.at, file.size, NULL, &machine);
  check((r >= 0) == (machine != NULL), "a machine comes with success only");
  free(file.at);
  if (r < 0)
    return 0;
  run(machine);
  if (machine_cpu(machine)->activity != CPU_SHUTDOWN)
    again(machine);
  machine_free(machine);
  return 0;
}
