/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that is shared with a program, as a hostile one may fill it: threads, logs, steps and notes. Reading must
 * end, without a crash, and what comes out must keep the readers' promises. An input is the beginning of each of these
 * in turn: control page, two thread pages, notes, steps, the first parts of the logs of both threads.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lastbranch/branch.h"
#include "process/process.h"
#include "process/shared.h"

enum {
  NOTES = 4096,
  STEPS = 128,
  PART = PROCESS_PAGE, /* smaller than any that is used: reading it takes less time */
  THREADS = 2,
  LOG_BYTES = 1024, /* of each part */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

/* ---- the memory ---- */

static struct process process = {.notes_size = NOTES, .step_capacity = STEPS, .part_size = PART};

static void memory_open(void)
{
  if (process.memory)
    return;
  process.memory_size = process_logs_offset(NOTES, STEPS) + (size_t)PROCESS_THREADS * PROCESS_PARTS * PART;
  process.memory =
    mmap(NULL, process.memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (process.memory == MAP_FAILED)
    abort();
}

struct input {
  const uint8_t *data;
  size_t size;
};

/* The next bytes of the input, zeros behind its end. */
static void area_fill(struct input *input, uint64_t offset, size_t size)
{
  size_t have = input->size < size ? input->size : size;

  memcpy(process.memory + offset, input->data, have);
  memset(process.memory + offset + have, 0, size - have);
  input->data += have;
  input->size -= have;
}

static void memory_fill(const uint8_t *data, size_t size)
{
  struct input input = {data, size};

  area_fill(&input, 0, sizeof(struct process_control));
  for (uint32_t slot = 0; slot < THREADS; slot++)
    area_fill(&input, process_thread_offset(slot), sizeof(struct process_state));
  area_fill(&input, process_notes_offset(), NOTES);
  area_fill(&input, process_steps_offset(NOTES), (size_t)STEPS * sizeof(struct lb_step));
  for (uint32_t slot = 0; slot < THREADS; slot++)
    for (uint64_t part = 0; part < PROCESS_PARTS; part++)
      area_fill(&input, process_logs_offset(NOTES, STEPS) + (slot * PROCESS_PARTS + part) * PART, LOG_BYTES);
}

/* ---- what comes out ---- */

static void branches_check(const struct process_branches *list)
{
  for (size_t i = 0; i < list->count; i++) {
    if (list->branches[i].kind >= LB_BRANCH_KINDS || list->branches[i].from_cpl > 3 || list->branches[i].to_cpl > 3)
      abort();
    sink += list->branches[i].from ^ list->branches[i].to ^ list->steps[i];
  }
}

/* The last ones are the end of all. */
static void tail_check(const struct process_thread *thread, const struct process_branches *all, size_t most)
{
  struct process_branches list;

  if (process_rebuild_last(&process, thread, most, &list) < 0)
    abort();
  branches_check(&list);
  if (list.count > most || list.is_damaged || list.count != (all->count < most ? all->count : most))
    abort();
  for (size_t i = 0; i < list.count; i++) {
    const struct lb_branch *one = &list.branches[i], *other = &all->branches[all->count - list.count + i];

    if (one->from != other->from || one->to != other->to || one->kind != other->kind)
      abort();
  }
  process_branches_done(&list);
}

static void place_check(struct process_spaces *spaces, uint32_t space, uint32_t step, uint64_t address)
{
  struct process_module module;
  uint8_t bytes[15];

  if (process_spaces_find(spaces, space, step, address, &module) &&
      (address < module.start || address >= module.end || strlen(module.path) > 4096))
    abort();
  size_t count = process_spaces_code(spaces, space, step, address, bytes, sizeof(bytes));
  if (count > sizeof(bytes))
    abort();
  for (size_t i = 0; i < count; i++)
    sink += bytes[i];
}

static void thread_check(struct process_spaces *spaces, uint32_t slot)
{
  struct process_thread thread;
  struct process_branches all;
  bool is_group;

  if (!process_thread(&process, slot, &thread))
    return;
  sink += process_thread_has_died(&thread) + process_thread_has_exited(&thread, &is_group) + strlen(thread.name);
  int result = process_rebuild(&process, &thread, &all);
  branches_check(&all);
  if (result == 0) {
    tail_check(&thread, &all, 3);
    tail_check(&thread, &all, 1000000);
  } else {
    struct process_branches list;
    if (process_rebuild_last(&process, &thread, 5, &list) < 0)
      abort();
    branches_check(&list);
    process_branches_done(&list);
  }
  for (size_t i = 0; i < all.count && i < 64; i++) {
    place_check(spaces, thread.space, all.steps[i], all.branches[i].from);
    place_check(spaces, thread.space, PROCESS_NOW, all.branches[i].to);
  }
  place_check(spaces, thread.space, PROCESS_NOW, thread.rip);
  sink += strlen(process_spaces_program(spaces, thread.space));
  process_branches_done(&all);
}

static void notes_check(struct process_spaces *spaces)
{
  struct process_note note;
  const uint8_t *bytes;
  uint64_t offset = 0;

  for (uint64_t before = 0; process_note(&process, &offset, &note, &bytes); before = offset) {
    if (offset <= before || offset > NOTES || note.length > offset - before - sizeof(note))
      abort();
    for (uint32_t i = 0; i < note.length; i++)
      sink += bytes[i];
    place_check(spaces, note.space, PROCESS_NOW, note.start);
    place_check(spaces, note.space, note.step, note.end - 1);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct process_spaces *spaces;
  int system_error;
  uint64_t address, number;

  memory_open();
  memory_fill(data, size);
  if (process_spaces_new(&process, &spaces) < 0)
    abort();
  notes_check(spaces);
  uint32_t slots = process_slots(&process);
  for (uint32_t slot = 0; slot < slots && slot < THREADS + 1; slot++)
    thread_check(spaces, slot);
  process_spaces_free(spaces);
  sink += strlen(process_error_text(process_error(&process, &system_error, &address, &number)));
  return 0;
}
