/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a machine that are its own, to and from bytes. See save.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "machine/save.h"

#define MODULES_MOST 4096u
#define DISK_MOST (UINT64_C(8) << 30)
#define FLOPPY_MOST (UINT64_C(2880) * 1024)
#define RAM_LEAST (UINT64_C(2) << 20)
#define RAM_MOST (UINT64_C(64) << 30)

const char save_names[SAVE_SECTIONS][SAVE_NAME_SIZE + 1] = {
  [SAVE_MACHINE] = "machine", [SAVE_START] = "start", [SAVE_FLOPPY] = "floppy", [SAVE_DISK] = "disk",
  [SAVE_MEMORY] = "memory",   [SAVE_BOARD] = "board", [SAVE_CPU] = "cpu",       [SAVE_END] = "end",
};

/* ---- what a machine is made of ---- */

/* Every address that INT 13h accepts must lie on the drive: its size has room for the geometry. */
static void drive_archive(struct archive *archive, struct drive *drive, uint64_t most)
{
  archive_most(archive, &drive->size, most);
  archive_most(archive, &drive->cylinders, 1024);
  archive_most(archive, &drive->heads, 255);
  archive_most(archive, &drive->sectors, 63);
  archive_most(archive, &drive->type, 6);
  uint64_t places = UINT64_C(1) * drive->cylinders * drive->heads * drive->sectors;
  if (drive->size % SECTOR_SIZE || places > drive->size / SECTOR_SIZE || (drive->size && places == 0))
    archive_refuse(archive);
}

void plan_archive(struct archive *archive, struct save_plan *plan)
{
  archive_bytes(archive, plan->cpu, sizeof(plan->cpu));
  archive_most(archive, &plan->cpus, MACHINE_CPUS);
  archive_value(archive, &plan->ram);
  archive_value(archive, &plan->recorder_options);
  archive_flag(archive, &plan->has_test_device);
  archive_value(archive, &plan->wall_clock);
  drive_archive(archive, &plan->floppy, FLOPPY_MOST);
  drive_archive(archive, &plan->disk, DISK_MOST);
  if (plan->cpu[sizeof(plan->cpu) - 1] || plan->ram < RAM_LEAST || plan->ram > RAM_MOST || plan->ram & PAGE_MASK)
    archive_refuse(archive);
  if (plan->recorder_options >> LB_OPTIONS || plan->cpus == 0)
    archive_refuse(archive);
}

/* ---- what happens in it ---- */

void machine_archive(struct archive *archive, struct machine *machine)
{
  archive_flag(archive, &machine->is_started);
  archive_flag(archive, &machine->wants_reset);
  archive_flag(archive, &machine->wants_boot);
  archive_flag(archive, &machine->wants_cpu_reset);
  archive_flag(archive, &machine->has_exit);
  archive_flag(archive, &machine->has_no_boot);
  archive_flag(archive, &machine->is_off);
  archive_value(archive, &machine->exit_value);
  archive_array(archive, machine->keys.codes);
  archive_most(archive, &machine->keys.first, KEYS_MAX - 1);
  archive_most(archive, &machine->keys.count, KEYS_MAX);
  archive_value(archive, &machine->keys.next);
  archive_value(archive, &machine->idle.quiet);
  archive_flag(archive, &machine->idle.is_foreign);
  archive_value(archive, &machine->idle.barren);
  archive_value(archive, &machine->idle.retired);
  archive_value(archive, &machine->wait_until);
  archive_value(archive, &machine->skip_until);
  archive_value(archive, &machine->key_wait);
  archive_value(archive, &machine->string.stack);
  archive_value(archive, &machine->string.done);
  archive_value(archive, &machine->string.row);
  archive_value(archive, &machine->string.column);
  archive_most(archive, &machine->turn.number, machine->cpu_count - 1);
  archive_most(archive, &machine->turn.waiting, machine->cpu_count - 1);
  archive_value(archive, &machine->turn.until);
  archive_value(archive, &machine->turn.retired);
}

/* ---- what it was started with ---- */

/* The size of the bytes that follow. A size beyond the input is refused before anything is allocated. */
static size_t size_archive(struct archive *archive, size_t size)
{
  uint64_t value = size;

  archive_value(archive, &value);
  if (!archive_is_reading(archive))
    return size;
  if (archive->error == 0 && value > archive->size - archive->at)
    archive->error = LB_E_TRUNCATED;
  return archive->error < 0 ? 0 : (size_t)value;
}

static void image_archive(struct archive *archive, struct machine_image *image)
{
  image->size = size_archive(archive, image->size);
  if (archive_is_reading(archive)) {
    image->bytes = malloc(image->size ? image->size : 1);
    if (!image->bytes && archive->error == 0)
      archive->error = -ENOMEM;
  }
  if (image->bytes)
    archive_bytes(archive, (void *)image->bytes, image->size);
}

static void string_archive(struct archive *archive, char **string)
{
  size_t length = size_archive(archive, !archive_is_reading(archive) && *string ? strlen(*string) : 0);

  if (archive_is_reading(archive)) {
    *string = calloc(1, length + 1);
    if (!*string && archive->error == 0)
      archive->error = -ENOMEM;
  }
  if (*string)
    archive_bytes(archive, *string, length);
}

static void modules_archive(struct archive *archive, struct start *start)
{
  uint64_t count = start->count;

  archive_most(archive, &count, MODULES_MOST);
  if (archive_is_reading(archive)) {
    start->count = 0;
    start->modules = calloc(count + 1, sizeof(*start->modules));
    start->names = calloc(count + 1, sizeof(*start->names));
    if (!start->modules || !start->names)
      archive->error = -ENOMEM;
  }
  for (size_t i = 0; i < count && archive->error == 0; i++) {
    image_archive(archive, &start->modules[i]);
    string_archive(archive, &start->names[i]);
    start->count = i + 1;
  }
}

void start_archive(struct archive *archive, struct start *start)
{
  archive_most(archive, &start->kind, START_FLAT);
  archive_most(archive, &start->address, UINT32_MAX);
  if (archive->error == 0)
    image_archive(archive, &start->image);
  if (archive->error == 0)
    string_archive(archive, &start->command_line);
  if (archive->error == 0)
    modules_archive(archive, start);
  if (start->kind != START_DRIVES && start->image.size == 0)
    archive_refuse(archive);
}
