/* SPDX-License-Identifier: Apache-2.0
 *
 * A process ends, and leaves a snapshot of its cache: snapshot.c. A process that is killed meanwhile has published
 * nothing.
 */
#include <linux/mman.h>

#include "process/runtime/store.h"

enum {
  UNITS_NEW = 16,      /* a new snapshot has at least this many new units, */
  PART_NEW = 8,        /* and at least one for this many old ones */
  SIZE_MOST = 96 << 20 /* bytes: a larger snapshot takes more time than it saves */
};

/* ---- pieces of memory ---- */

void piece_add(struct piece_list *list, const void *start, uint64_t size)
{
  uint64_t address = page_down((uint64_t)start), end = page_up((uint64_t)start + size);
  struct piece *last = list->count ? &list->pieces[list->count - 1] : NULL;

  if (!size)
    return;
  if (last && address >= last->address && address <= last->address + last->size) {
    if (end > last->address + last->size)
      last->size = end - last->address;
    return;
  }
  if (list->count == PIECES_MOST)
    list->is_full = true;
  else
    list->pieces[list->count++] = (struct piece){address, end - address};
}

uint64_t pieces_size(const struct piece_list *pieces)
{
  uint64_t size = 0;

  for (uint32_t i = 0; i < pieces->count; i++)
    size += pieces->pieces[i].size;
  return size;
}

/* Adds the runtime's private data about the steps of all units. Step numbers grow from unit to unit. */
static void local_save(const struct runtime *runtime, struct piece_list *pieces)
{
  for (uint32_t i = 0; i < runtime->pool->unit_count; i++) {
    uint32_t head = runtime->units[i].head;

    piece_add(pieces, &runtime->local[head], (runtime->steps[head].count + 1ull) * sizeof(*runtime->local));
  }
}

/* ---- the parts ---- */

static void header_fill(struct runtime *runtime, struct snapshot *header)
{
  header->fit = snapshot_fit(runtime);
  header->pieces.count = 0;
  header->pieces.is_full = false;
  cache_save(runtime, &header->pieces);
  local_save(runtime, &header->pieces);
  profile_save(runtime, &header->pieces);
  page_save(runtime, &header->pieces);
  header->counts = runtime->counts;
  header->number_next = runtime->number_next;
  header->pool = *runtime->pool;
  header->pages = page_counts(runtime);
  header->modules = runtime->modules;
}

/* Memory for the header and the ways, which are made for the snapshot. NULL: there is none. */
static struct snapshot *parts_map(uint64_t size)
{
  int64_t memory = kernel_map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  return is_failure(memory) ? NULL : (struct snapshot *)memory;
}

/* ---- in the shared memory ---- */

#define NO_PAGE UINT32_MAX

/* Takes pages of the shared memory for `size` bytes. Returns the first one, or NO_PAGE if there are not enough. */
static uint32_t pages_take(const struct runtime *runtime, uint64_t size)
{
  uint32_t used = __atomic_load_n(&runtime->control->snapshots_used, __ATOMIC_RELAXED);
  uint64_t count = size / PROCESS_PAGE, most = PROCESS_SNAPSHOTS_SIZE / PROCESS_PAGE;

  do {
    if (used > most || count > most - used)
      return NO_PAGE;
  } while (!__atomic_compare_exchange_n(&runtime->control->snapshots_used, &used, used + (uint32_t)count, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return used;
}

static uint8_t *put(uint8_t *at, const void *from, uint64_t size)
{
  memcpy(at, from, size);
  return at + size;
}

static void copy_to(uint8_t *at, const struct snapshot_parts *parts)
{
  const struct piece_list *pieces = &parts->header->pieces;

  at = put(at, parts->header, snapshot_header_size());
  for (uint32_t i = 0; i < pieces->count; i++)
    at = put(at, (const void *)pieces->pieces[i].address, pieces->pieces[i].size);
  put(at, parts->ways, parts->header->ways_size);
}

static void share(struct runtime *runtime, int fd, struct process_snapshot *slot, const struct snapshot_parts *parts)
{
  uint32_t page = pages_take(runtime, parts->size);

  if (page == NO_PAGE)
    return;
  int64_t memory = kernel_map(0, parts->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, snapshot_offset(runtime, page));
  if (is_failure(memory))
    return;
  copy_to((uint8_t *)memory, parts);
  kernel_call(__NR_munmap, (uint64_t)memory, parts->size, 0, 0, 0, 0);
  if (runtime->mode == PROCESS_ALL)
    note_put(runtime, NOTE_KEPT, runtime->space, 0, 0, 0, NULL, 0);
  snapshot_offer(slot, page, runtime->counts.units_made);
}

/* ---- when ---- */

/* The first program of a recording is the last to end: no other process of the recording would use what it leaves. */
static bool is_last(const struct thread *thread)
{
  return thread->state->process == thread->runtime->control->first_process;
}

static bool is_wanted(const struct thread *thread)
{
  const struct runtime *runtime = thread->runtime;
  uint32_t made = runtime->counts.units_made - runtime->units_inherited;

  return snapshot_is_possible(runtime) && runtime->age == 1 && !runtime->is_full && !runtime->is_confined &&
         !thread->is_unrecorded && !thread->is_vfork && made >= UNITS_NEW &&
         made > runtime->units_inherited / PART_NEW && (!is_last(thread) || store_is_open(runtime)) &&
         !__atomic_load_n(&runtime->control->is_closed, __ATOMIC_RELAXED);
}

/* Whether another process has published as many units meanwhile. */
static bool is_known(const struct runtime *runtime, const struct process_snapshot *slot)
{
  uint64_t old = snapshot_units(__atomic_load_n(&slot->value, __ATOMIC_RELAXED)), now = runtime->counts.units_made;

  return old && now < old + old / PART_NEW + UNITS_NEW;
}

static void write_out(struct thread *thread, struct process_snapshot *slot, const struct snapshot_parts *parts)
{
  struct runtime *runtime = thread->runtime;

  if (parts->header->pieces.is_full || parts->size > SIZE_MOST)
    return;
  if (!is_last(thread))
    share(runtime, *thread->fd, slot, parts);
  if (store_is_open(runtime))
    store_write(runtime, parts);
}

/* Whether most units come from code in files. Units of code that the program has generated are stale by now. */
static bool is_useful(const struct runtime *runtime)
{
  uint32_t stale = 0;

  for (uint32_t i = 0; i < runtime->pool->unit_count; i++)
    stale += runtime->units[i].is_stale;
  return stale < runtime->pool->unit_count / 2;
}

static void take(struct thread *thread, struct process_snapshot *slot)
{
  struct runtime *runtime = thread->runtime;
  uint64_t header_size = snapshot_header_size();

  page_drop_foreign(runtime);
  if (!is_useful(runtime))
    return;
  uint64_t ways_size = page_up(ways_count(runtime) * sizeof(struct way));
  struct snapshot *header = parts_map(header_size + ways_size);
  if (!header)
    return;
  struct way *ways = (struct way *)((uint8_t *)header + header_size);
  page_hide_protection(runtime, true);
  header_fill(runtime, header);
  header->ways_size = ways_size;
  ways_save(runtime, &header->modules, ways);
  write_out(thread, slot,
            &(struct snapshot_parts){header, ways, header_size + pieces_size(&header->pieces) + ways_size});
  page_hide_protection(runtime, false);
  kernel_call(__NR_munmap, (uint64_t)header, header_size + ways_size, 0, 0, 0, 0);
  runtime->units_inherited = runtime->counts.units_made;
}

void snapshot_take(struct thread *thread)
{
  struct runtime *runtime = thread->runtime;

  if (!is_wanted(thread))
    return;
  runtime_lock(runtime);
  struct process_snapshot *slot = snapshot_slot(runtime, true);
  if (slot && !is_known(runtime, slot) && module_forget_changed(runtime))
    take(thread, slot);
  runtime_unlock(runtime);
}
