/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a machine: a head, sections with their checksums, and a checksum over all of it at the end. Memory and drives
 * are written page by page, zeros left out. See save.h.
 */
#include "machine/save.h"

#include <errno.h>
#include <stdlib.h>

#define BUFFER_SIZE (1u << 16)

struct output {
  machine_writer *write;
  void *data;
  uint32_t sum; /* of everything so far */
  int error;
  size_t used;
  uint8_t buffer[BUFFER_SIZE];
};

static void output_flush(struct output *output)
{
  if (output->error >= 0 && output->used)
    output->error = output->write(output->data, output->buffer, output->used);
  output->used = 0;
}

static void output_put(struct output *output, const void *bytes, size_t size)
{
  output->sum = checksum_add(output->sum, bytes, size);
  if (size > BUFFER_SIZE - output->used)
    output_flush(output);
  if (size > BUFFER_SIZE) {
    if (output->error >= 0)
      output->error = output->write(output->data, bytes, size);
    return;
  }
  memcpy(output->buffer + output->used, bytes, size);
  output->used += size;
}

static void section_begin(struct output *output, enum save_section section, uint64_t length, uint32_t sum)
{
  uint8_t head[SAVE_SECTION_SIZE] = {0};

  memcpy(head, save_names[section], SAVE_NAME_SIZE);
  bytes_put_u64(head + 8, length);
  bytes_put_u32(head + 16, sum);
  bytes_put_u32(head + 20, checksum_add(0, head, 20));
  output_put(output, head, sizeof(head));
}

/* ---- sections of fields ---- */

typedef size_t section_writer(struct machine *m, void *bytes, size_t size);

static size_t write_machine(struct machine *m, void *bytes, size_t size)
{
  struct archive archive = archive_writer(bytes, size);
  struct save_plan plan = {
    .cpus = m->cpu_count,
    .ram = m->memory.size,
    .recorder_options = m->config.recorder_options,
    .has_test_device = m->config.has_test_device,
    .wall_clock = m->config.wall_clock,
    .floppy = m->floppy,
    .disk = m->disk,
  };

  strncpy(plan.cpu, m->config.model->name, sizeof(plan.cpu) - 1);
  plan_archive(&archive, &plan);
  machine_archive(&archive, m);
  return archive.at;
}

static size_t write_start(struct machine *m, void *bytes, size_t size)
{
  struct archive archive = archive_writer(bytes, size);

  start_archive(&archive, &m->start);
  return archive.at;
}

static size_t write_board(struct machine *m, void *bytes, size_t size)
{
  return board_save(m->board, bytes, size);
}

/* Writes the processor that machine_show has chosen. */
static size_t write_cpu(struct machine *m, void *bytes, size_t size)
{
  return cpu_save(machine_cpu(m), bytes, size);
}

static void section_put(struct output *output, enum save_section section, struct machine *m, section_writer *writer)
{
  size_t size = writer(m, NULL, 0);
  uint8_t *bytes = malloc(size);

  if (!bytes) {
    output->error = output->error < 0 ? output->error : -ENOMEM;
    return;
  }
  writer(m, bytes, size);
  section_begin(output, section, size, checksum_add(0, bytes, size));
  output_put(output, bytes, size);
  free(bytes);
}

/* ---- sections of pages ---- */

static bool is_zero(const uint8_t *bytes, size_t size)
{
  return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Packs a page with its number into `bytes`, which has room for it. Returns the size, 0 for a page of zeros. */
static size_t page_pack(uint8_t *bytes, const uint8_t *from, uint64_t size, uint64_t page)
{
  size_t part = sparse_size(size, page);

  if (is_zero(from + page * SPARSE_PAGE, part))
    return 0;
  bytes_put_u64(bytes, page);
  memcpy(bytes + 8, from + page * SPARSE_PAGE, part);
  return 8 + part;
}

/* Packs all pages twice: once for the length and the checksum, which come first, and once to write them. */
static void pages_put(struct output *output, enum save_section section, const uint8_t *from, uint64_t size)
{
  uint64_t pages = (size + SPARSE_PAGE - 1) / SPARSE_PAGE, length = 0;
  uint8_t bytes[8 + SPARSE_PAGE];
  uint32_t sum = 0;

  for (uint64_t i = 0; i < pages; i++) {
    size_t part = page_pack(bytes, from, size, i);

    sum = checksum_add(sum, bytes, part);
    length += part;
  }
  section_begin(output, section, length, sum);
  for (uint64_t i = 0; i < pages; i++) {
    size_t part = page_pack(bytes, from, size, i);

    if (part)
      output_put(output, bytes, part);
  }
}

/* ---- the file ---- */

static void head_put(struct output *output)
{
  uint8_t head[SAVE_HEAD_SIZE] = SAVE_MAGIC;

  bytes_put_u32(head + 8, SAVE_VERSION);
  bytes_put_u32(head + 12, checksum_add(0, head, 12));
  output_put(output, head, sizeof(head));
}

static void end_put(struct output *output)
{
  uint8_t bytes[4];

  bytes_put_u32(bytes, output->sum);
  section_begin(output, SAVE_END, sizeof(bytes), checksum_add(0, bytes, sizeof(bytes)));
  output_put(output, bytes, sizeof(bytes));
}

int machine_save(struct machine *machine, machine_writer *write, void *data)
{
  struct output *output = malloc(sizeof(*output));

  if (!output)
    return -ENOMEM;
  *output = (struct output){.write = write, .data = data};
  head_put(output);
  section_put(output, SAVE_MACHINE, machine, write_machine);
  section_put(output, SAVE_START, machine, write_start);
  pages_put(output, SAVE_FLOPPY, machine->floppy.bytes, machine->floppy.size);
  pages_put(output, SAVE_DISK, machine->disk.bytes, machine->disk.size);
  pages_put(output, SAVE_MEMORY, machine->memory.ram, machine->memory.size);
  section_put(output, SAVE_BOARD, machine, write_board);
  unsigned shown = machine->shown;
  for (unsigned i = 0; i < machine->cpu_count; i++) {
    machine_show(machine, i);
    section_put(output, SAVE_CPU, machine, write_cpu);
  }
  machine->shown = shown;
  end_put(output);
  output_flush(output);
  int error = output->error;
  free(output);
  return error < 0 ? error : 0;
}
