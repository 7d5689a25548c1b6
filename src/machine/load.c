/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a saved machine. The bytes are hostile: first all checksums are checked, then the machine is made from its
 * plan and filled section by section. Anything invalid ends the load, and nothing is left of the machine. See save.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "machine/firmware.h"
#include "machine/save.h"

struct sections {
  struct machine_image at[SAVE_SECTIONS];
  struct machine_image cpus[MACHINE_CPUS];
  unsigned cpu_count;
};

/* ---- checksums ---- */

static int head_check(const uint8_t *bytes, size_t size)
{
  if (size < SAVE_MAGIC_SIZE || memcmp(bytes, SAVE_MAGIC, SAVE_MAGIC_SIZE) != 0)
    return size && size < SAVE_MAGIC_SIZE && !memcmp(bytes, SAVE_MAGIC, size) ? LB_E_TRUNCATED : LB_E_NOT_MACHINE;
  if (size < SAVE_HEAD_SIZE)
    return LB_E_TRUNCATED;
  if (bytes_get_u32(bytes + 12) != checksum_add(0, bytes, 12))
    return LB_E_DAMAGED;
  return bytes_get_u32(bytes + 8) == SAVE_VERSION ? 0 : LB_E_MACHINE_VERSION;
}

static int section_find(const uint8_t *bytes, size_t size, size_t *at, enum save_section section,
                        struct machine_image *ret_contents)
{
  const uint8_t *head = bytes + *at;

  if (size - *at < SAVE_SECTION_SIZE)
    return LB_E_TRUNCATED;
  if (bytes_get_u32(head + 20) != checksum_add(0, head, 20) || memcmp(head, save_names[section], SAVE_NAME_SIZE) != 0)
    return LB_E_DAMAGED;
  uint64_t length = bytes_get_u64(head + 8);
  *at += SAVE_SECTION_SIZE;
  if (length > size - *at)
    return LB_E_TRUNCATED;
  *ret_contents = (struct machine_image){bytes + *at, (size_t)length};
  *at += (size_t)length;
  return bytes_get_u32(head + 16) == checksum_add(0, ret_contents->bytes, ret_contents->size) ? 0 : LB_E_DAMAGED;
}

static bool is_next(const uint8_t *bytes, size_t size, size_t at, enum save_section section)
{
  return size - at >= SAVE_NAME_SIZE && memcmp(bytes + at, save_names[section], SAVE_NAME_SIZE) == 0;
}

/* Finds the sections of all processors. Their number is checked against the plan later. */
static int cpus_find(const uint8_t *bytes, size_t size, size_t *at, struct sections *sections)
{
  int error = 0;

  sections->cpu_count = 0;
  do
    error = section_find(bytes, size, at, SAVE_CPU, &sections->cpus[sections->cpu_count++]);
  while (error >= 0 && sections->cpu_count < MACHINE_CPUS && is_next(bytes, size, *at, SAVE_CPU));
  return error;
}

static int sections_find(const uint8_t *bytes, size_t size, struct sections *ret_sections)
{
  size_t at = SAVE_HEAD_SIZE, end = at;
  int error = head_check(bytes, size);

  for (unsigned i = 0; error >= 0 && i < SAVE_SECTIONS; i++) {
    end = at;
    error = i == SAVE_CPU ? cpus_find(bytes, size, &at, ret_sections)
                          : section_find(bytes, size, &at, (enum save_section)i, &ret_sections->at[i]);
  }
  if (error < 0)
    return error;
  const struct machine_image *last = &ret_sections->at[SAVE_END];
  bool is_whole = at == size && last->size == 4 && bytes_get_u32(last->bytes) == checksum_add(0, bytes, end);
  return is_whole ? 0 : LB_E_DAMAGED;
}

/* ---- filling ---- */

static int pages_load(const struct machine_image *contents, uint8_t *to, uint64_t size)
{
  const uint8_t *at = contents->bytes, *end = at + contents->size;
  uint64_t pages = (size + SPARSE_PAGE - 1) / SPARSE_PAGE, next = 0;

  while (at < end) {
    if (end - at < 8)
      return LB_E_DAMAGED;
    uint64_t page = bytes_get_u64(at);
    if (page < next || page >= pages || (size_t)(end - at) - 8 < sparse_size(size, page))
      return LB_E_DAMAGED;
    memcpy(to + page * SPARSE_PAGE, at + 8, sparse_size(size, page));
    at += 8 + sparse_size(size, page);
    next = page + 1;
  }
  return 0;
}

static int drive_load(struct drive *drive, const struct drive *plan, const struct machine_image *contents)
{
  if (plan->size == 0)
    return contents->size ? LB_E_DAMAGED : 0;
  *drive = *plan;
  drive->bytes = calloc(1, plan->size);
  return drive->bytes ? pages_load(contents, drive->bytes, drive->size) : -ENOMEM;
}

static int start_load(struct machine *m, const struct machine_image *contents)
{
  struct archive archive = archive_reader(contents->bytes, contents->size);

  start_archive(&archive, &m->start);
  int error = archive_end(&archive);
  if (error >= 0 && m->start.kind == START_FLAT && !machine_is_free(m, m->start.address, m->start.image.size))
    error = LB_E_DAMAGED;
  return error;
}

/* The plan comes first, then the machine's own fields. */
static int plan_load(const struct machine_image *contents, struct save_plan *plan, struct archive *ret_rest)
{
  *ret_rest = archive_reader(contents->bytes, contents->size);
  plan_archive(ret_rest, plan);
  return ret_rest->error;
}

/* After a run, the clocks of all processors show the same time. */
static bool clocks_agree(const struct machine *m)
{
  for (unsigned i = 1; i < m->cpu_count; i++)
    if (cpu_cycles(m->cpus[i]) != cpu_cycles(m->cpus[0]))
      return false;
  return true;
}

/* INTR of each processor must agree with the board's. Devices are loaded first: opening A20 makes a processor drop its
 * translations. */
static int parts_load(struct machine *m, const struct sections *sections)
{
  const struct machine_image *board = &sections->at[SAVE_BOARD];
  int error = pages_load(&sections->at[SAVE_MEMORY], m->memory.ram, m->memory.size);

  if (error >= 0)
    error = board_load(m->board, board->bytes, board->size);
  for (unsigned i = 0; error >= 0 && i < m->cpu_count; i++) {
    error = cpu_load(m->cpus[i], sections->cpus[i].bytes, sections->cpus[i].size);
    if (error >= 0 && board_intr(m->board, i) != !!(m->cpus[i]->lines & 1u << CPU_LINE_INTR))
      error = LB_E_DAMAGED;
  }
  return error >= 0 && !clocks_agree(m) ? LB_E_DAMAGED : error;
}

static int machine_fill(struct machine *m, const struct sections *sections)
{
  struct save_plan plan = {0};
  struct archive rest;
  int error = plan_load(&sections->at[SAVE_MACHINE], &plan, &rest);

  if (error >= 0)
    error = lb_cpu_find(plan.cpu, &m->config.model);
  if (error >= 0)
    error = drive_load(&m->floppy, &plan.floppy, &sections->at[SAVE_FLOPPY]);
  if (error >= 0)
    error = drive_load(&m->disk, &plan.disk, &sections->at[SAVE_DISK]);
  if (error < 0)
    return error;
  if (plan.cpus != sections->cpu_count)
    return LB_E_DAMAGED;
  m->config.cpus = plan.cpus;
  m->config.ram = plan.ram;
  m->config.recorder_options = plan.recorder_options;
  m->config.has_test_device = plan.has_test_device;
  m->config.wall_clock = plan.wall_clock;
  error = machine_assemble(m);
  if (error >= 0)
    error = parts_load(m, sections);
  if (error >= 0)
    error = start_load(m, &sections->at[SAVE_START]);
  if (error < 0)
    return error;
  machine_archive(&rest, m);
  error = archive_end(&rest);
  if (error < 0)
    return error;
  m->cpu = m->cpus[m->turn.number];
  m->config.predictor = (enum predictor_kind)m->cpu->predictor.kind;
  return 0;
}

int machine_restore(const void *bytes, size_t size, const struct machine_host *host, struct machine **ret_machine)
{
  struct sections sections = {0};
  int error = sections_find(bytes, size, &sections);

  if (error < 0)
    return error;
  struct machine *m = calloc(1, sizeof(*m));
  if (!m)
    return -ENOMEM;
  if (host)
    m->host = *host;
  error = machine_fill(m, &sections);
  if (error < 0) {
    machine_free(m);
    return error;
  }
  *ret_machine = m;
  return 0;
}
