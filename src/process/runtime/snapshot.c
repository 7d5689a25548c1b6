/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of the cache. A build or a test suite executes the same few programs again and again. A process that ends
 * leaves its cache in the shared memory. The next process that executes the same file maps that memory privately at the
 * same addresses, and continues with it as a child of fork continues with the cache of its parent.
 *
 * That needs the same addresses, so that it works only without address randomisation. Units stay only if all their code
 * is of one module (module.c), or of modules that the dynamic linker maps before the program begins. A unit of a
 * library that this process has not mapped yet is in the index, but dispatch.c does not look for it before its address
 * can be executed.
 *
 * A snapshot is never changed once it is published, and never freed. A process that is killed while it writes one has
 * published nothing.
 */
#include <linux/mman.h>

#include "process/runtime/runtime.h"

enum {
  SNAPSHOT_MAGIC = 0x3153424C,
  UNITS_NEW = 16,      /* a new snapshot has at least so many new units, */
  PART_NEW = 8,        /* and one for so many old ones */
  SIZE_MOST = 96 << 20 /* a snapshot that is larger takes more time than it saves */
};

/* What must be equal for a snapshot to be of use. All members are words, since they are compared and hashed as such. */
struct fit {
  uint64_t magic, runtime; /* where the runtime lies: translated code leads there */
  uint64_t area_size;
  uint64_t units, places, index, local, pages, habits; /* addresses of the memory */
  struct file_identity file;                           /* the program's */
};

/* The first bytes of a snapshot. The memory follows in the order of the pieces, from the next page on. */
struct snapshot {
  struct fit fit;
  struct cache_counts counts;
  uint32_t number_next; /* higher than the numbers of all its steps */
  struct pool pool;
  struct page_counts pages;
  struct module_list modules;
  struct piece_list pieces;
  uint64_t ways_size; /* bytes of the list of ways, behind the memory */
};

static struct file_identity program; /* its file; `changed` 0: no snapshot of it is taken or used */

static uint64_t header_size(void)
{
  return page_up(sizeof(struct snapshot));
}

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

/* ---- which snapshot ---- */

static struct fit fit_now(const struct runtime *runtime)
{
  return (struct fit){.magic = SNAPSHOT_MAGIC,
                      .runtime = (uint64_t)__executable_start,
                      .area_size = runtime->area_size,
                      .units = (uint64_t)runtime->units,
                      .places = (uint64_t)runtime->places,
                      .index = (uint64_t)runtime->index,
                      .local = (uint64_t)runtime->local,
                      .pages = (uint64_t)runtime->pages,
                      .habits = (uint64_t)runtime->habits,
                      .file = program};
}

static bool is_equal(const void *one, const void *other, uint64_t size)
{
  const uint64_t *a = one, *b = other;

  for (uint64_t i = 0; i < size / sizeof(*a); i++)
    if (a[i] != b[i])
      return false;
  return true;
}

_Static_assert(sizeof(struct fit) == 14 * sizeof(uint64_t), "no padding");

/* Never 0. */
static uint64_t key_now(const struct runtime *runtime)
{
  const struct fit fit = fit_now(runtime);
  const uint64_t *word = (const uint64_t *)&fit;
  uint64_t key = 0;

  for (unsigned i = 0; i < sizeof(fit) / sizeof(*word); i++)
    key = (key ^ word[i]) * 0x9E3779B97F4A7C15 ^ key >> 29;
  return key | 1;
}

/* The program's slot; if it is for a snapshot to be written, a free one is taken. NULL: there is none. */
static struct process_snapshot *program_slot(const struct runtime *runtime, bool is_new)
{
  struct process_snapshot *slots = process_snapshots(runtime->control);
  uint64_t key = key_now(runtime);

  for (unsigned i = 0; i < PROCESS_SNAPSHOTS; i++) {
    uint64_t found = __atomic_load_n(&slots[i].key, __ATOMIC_ACQUIRE);

    if (!found && is_new &&
        __atomic_compare_exchange_n(&slots[i].key, &found, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return &slots[i];
    if (found == key)
      return &slots[i];
    if (!found)
      return NULL;
  }
  return NULL;
}

static uint32_t value_units(uint64_t value)
{
  return (uint32_t)(value >> 32);
}

static uint64_t value_offset(const struct runtime *runtime, uint64_t value)
{
  return process_snapshots_offset(runtime->control) + (value & UINT32_MAX) * PROCESS_PAGE;
}

/* ---- use ---- */

static void piece_map(const struct runtime *runtime, const struct piece *piece, uint64_t offset)
{
  bool is_code = cache_has(&the_runtime, piece->address);
  unsigned rights = PROT_READ | PROT_WRITE | (is_code ? PROT_EXEC : 0);
  int64_t result =
    kernel_map(piece->address, piece->size, rights, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, runtime->fd, offset);

  if (is_failure(result))
    runtime_fail(PROCESS_E_NO_MEMORY, (int)result, 0);
  kernel_call(__NR_madvise, piece->address, piece->size, MADV_DONTDUMP, 0, 0, 0);
}

/* The steps of the earlier process are read where they are. */
static bool steps_map(struct runtime *runtime, const struct snapshot *snapshot)
{
  uint64_t start = (uint64_t)runtime->local, end = (uint64_t)(runtime->local + runtime->step_capacity);

  for (uint32_t i = 0; i < snapshot->pieces.count; i++) {
    const struct piece *piece = &snapshot->pieces.pieces[i];

    if (piece->address >= start && piece->address < end &&
        !share_steps(runtime, (uint32_t)((piece->address - start) / sizeof(*runtime->local)),
                     (uint32_t)((piece->address + piece->size - start) / sizeof(*runtime->local))))
      return false;
  }
  return true;
}

/* Returns the offset behind it. */
static uint64_t memory_map(struct runtime *runtime, const struct snapshot *snapshot, uint64_t offset)
{
  offset += header_size();
  for (uint32_t i = 0; i < snapshot->pieces.count; i++) {
    piece_map(runtime, &snapshot->pieces.pieces[i], offset);
    offset += snapshot->pieces.pieces[i].size;
  }
  return offset;
}

static void inherit(struct runtime *runtime, const struct snapshot *snapshot, uint64_t offset)
{
  if (!steps_map(runtime, snapshot) || !cache_reserve(runtime, &snapshot->pool))
    return;
  offset = memory_map(runtime, snapshot, offset);
  bool has_ways = ways_map(runtime, offset, snapshot->ways_size);
  runtime->counts = snapshot->counts;
  runtime->number_next = snapshot->number_next;
  runtime->index_inherited = runtime->counts.index_slots;
  runtime->units_inherited = runtime->counts.units_made;
  page_inherit(runtime, &snapshot->pages);
  for (uint32_t i = 0; i < snapshot->modules.count; i++) {
    struct module module = snapshot->modules.modules[i];

    module.way_count = has_ways ? module.way_count : 0;
    module_inherit(runtime, &module);
  }
}

/* Other programs can write to the shared memory: a damaged snapshot must not lead out of it. */
static bool is_good(const struct runtime *runtime, const struct snapshot *snapshot)
{
  const struct fit fit = fit_now(runtime);

  return is_equal(&snapshot->fit, &fit, sizeof(fit)) && snapshot->modules.count <= MODULES_MOST &&
         snapshot->pieces.count <= PIECES_MOST;
}

void snapshot_use(struct runtime *runtime)
{
  const struct module *module = module_find(runtime, runtime->entry);

  if (!runtime->is_fixed || !module)
    return;
  program = module->file;
  const struct process_snapshot *slot = program_slot(runtime, false);
  uint64_t value = slot ? __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE) : 0;
  if (!value || (value & UINT32_MAX) >= PROCESS_SNAPSHOTS_SIZE / PROCESS_PAGE)
    return;
  uint64_t offset = value_offset(runtime, value);
  int64_t memory = kernel_map(0, header_size(), PROT_READ, MAP_PRIVATE, runtime->fd, offset);
  if (is_failure(memory))
    return;
  const struct snapshot *snapshot = (const struct snapshot *)memory;
  if (is_good(runtime, snapshot))
    inherit(runtime, snapshot, offset);
  kernel_call(__NR_munmap, (uint64_t)memory, header_size(), 0, 0, 0, 0);
}

void snapshot_publish(struct thread *thread)
{
  const struct module_list *modules = &thread->runtime->modules;

  if (!thread->runtime->units_inherited)
    return;
  cache_lookup_init(thread);
  for (uint32_t i = 0; i < modules->count; i++)
    if (modules->modules[i].is_mapped)
      ways_publish(thread, &modules->modules[i]);
}

/* ---- take ---- */

/* The first program of a recording is the last to end: nobody would use what it leaves. */
static bool is_wanted(const struct thread *thread)
{
  const struct runtime *runtime = thread->runtime;
  uint32_t made = runtime->counts.units_made - runtime->units_inherited;

  return program.changed && runtime->age == 1 && !runtime->is_full && !runtime->is_confined && !thread->is_unrecorded &&
         !thread->is_vfork && made >= UNITS_NEW && made > runtime->units_inherited / PART_NEW &&
         thread->state->process != runtime->control->first_process &&
         !__atomic_load_n(&runtime->control->is_closed, __ATOMIC_RELAXED);
}

/* What the runtime knows of the steps of all units. Their numbers grow from unit to unit. */
static void local_save(const struct runtime *runtime, struct piece_list *pieces)
{
  for (uint32_t i = 0; i < runtime->pool->unit_count; i++) {
    uint32_t head = runtime->units[i].head;

    piece_add(pieces, &runtime->local[head], (runtime->steps[head].count + 1ull) * sizeof(*runtime->local));
  }
}

static uint64_t pieces_size(const struct piece_list *pieces)
{
  uint64_t size = 0;

  for (uint32_t i = 0; i < pieces->count; i++)
    size += pieces->pieces[i].size;
  return size;
}

/* The first page of as many free ones; UINT32_MAX: there are not enough. */
static uint32_t pages_take(const struct runtime *runtime, uint64_t size)
{
  uint32_t used = __atomic_load_n(&runtime->control->snapshots_used, __ATOMIC_RELAXED);
  uint64_t count = size / PROCESS_PAGE, most = PROCESS_SNAPSHOTS_SIZE / PROCESS_PAGE;

  do {
    if (used > most || count > most - used)
      return UINT32_MAX;
  } while (!__atomic_compare_exchange_n(&runtime->control->snapshots_used, &used, used + (uint32_t)count, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return used;
}

static void fill(const struct runtime *runtime, struct snapshot *snapshot, const struct piece_list *pieces,
                 uint64_t ways_size)
{
  uint8_t *at = (uint8_t *)snapshot + header_size();

  snapshot->fit = fit_now(runtime);
  snapshot->counts = runtime->counts;
  snapshot->number_next = runtime->number_next;
  snapshot->pool = *runtime->pool;
  snapshot->pages = page_counts(runtime);
  snapshot->modules = runtime->modules;
  snapshot->pieces = *pieces;
  for (uint32_t i = 0; i < pieces->count; i++) {
    memcpy(at, (const void *)pieces->pieces[i].address, pieces->pieces[i].size);
    at += pieces->pieces[i].size;
  }
  snapshot->ways_size = ways_size;
  ways_save(runtime, &snapshot->modules, (struct way *)at);
}

/* Other processes may publish snapshots of the same program: the one with the most units stays. */
static void publish(const struct runtime *runtime, struct process_snapshot *slot, uint32_t page)
{
  uint64_t value = page | (uint64_t)runtime->counts.units_made << 32;
  uint64_t old = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);

  while (value_units(old) < value_units(value) &&
         !__atomic_compare_exchange_n(&slot->value, &old, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    ;
}

static void write_out(struct runtime *runtime, int fd, struct process_snapshot *slot, const struct piece_list *pieces)
{
  uint64_t ways_size = page_up(ways_count(runtime) * sizeof(struct way));
  uint64_t size = header_size() + pieces_size(pieces) + ways_size;
  uint32_t page = pieces->is_full || size > SIZE_MOST ? UINT32_MAX : pages_take(runtime, size);

  if (page == UINT32_MAX)
    return;
  int64_t memory = kernel_map(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, value_offset(runtime, page));
  if (is_failure(memory))
    return;
  fill(runtime, (struct snapshot *)memory, pieces, ways_size);
  kernel_call(__NR_munmap, (uint64_t)memory, size, 0, 0, 0, 0);
  if (runtime->mode == PROCESS_ALL)
    note_put(runtime, NOTE_KEPT, runtime->space, 0, 0, 0, NULL, 0);
  publish(runtime, slot, page);
}

/* Whether another process has published as many units meanwhile. */
static bool is_known(const struct runtime *runtime, const struct process_snapshot *slot)
{
  uint64_t old = value_units(__atomic_load_n(&slot->value, __ATOMIC_RELAXED)), now = runtime->counts.units_made;

  return old && now < old + old / PART_NEW + UNITS_NEW;
}

static void take(struct runtime *runtime, int fd, struct process_snapshot *slot)
{
  static struct piece_list pieces;

  page_drop_foreign(runtime);
  pieces.count = 0;
  pieces.is_full = false;
  cache_save(runtime, &pieces);
  local_save(runtime, &pieces);
  profile_save(runtime, &pieces);
  page_save(runtime, &pieces);
  page_hide_protection(runtime, true);
  write_out(runtime, fd, slot, &pieces);
  page_hide_protection(runtime, false);
  runtime->units_inherited = runtime->counts.units_made;
}

void snapshot_take(struct thread *thread)
{
  struct runtime *runtime = thread->runtime;

  if (!is_wanted(thread))
    return;
  runtime_lock(runtime);
  struct process_snapshot *slot = program_slot(runtime, true);
  if (slot && !is_known(runtime, slot) && module_forget_changed(runtime))
    take(runtime, *thread->fd, slot);
  runtime_unlock(runtime);
}
