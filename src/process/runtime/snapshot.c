/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of the cache. A build or a test suite executes the same few programs again and again. A process that ends
 * leaves its cache in the shared memory (snapshot_take.c) and, for later recordings, in a file (store.c). The next
 * process that executes the same program maps either of them privately at the same addresses, and continues with it as
 * a child of fork continues with the cache of its parent.
 *
 * That needs the same addresses, so it works only without address randomisation. A snapshot keeps a unit only if all
 * its code is in one module (module.c), or in modules that the dynamic linker maps before the program begins. A unit of
 * a library that this process has not mapped yet is in the index, but dispatch.c does not look for it before its
 * address can be executed.
 *
 * A snapshot is never changed once it is published, and never freed.
 */
#include <linux/mman.h>

#include "process/runtime/store.h"

enum { SNAPSHOT_MAGIC = 0x3153424C };

static struct file_identity program; /* its file; `changed` 0: no snapshot of it is taken or used */

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

struct fit snapshot_fit(const struct runtime *runtime)
{
  return fit_now(runtime);
}

static bool is_equal(const void *one, const void *other, uint64_t size)
{
  const uint64_t *a = one, *b = other;

  for (uint64_t i = 0; i < size / sizeof(*a); i++)
    if (a[i] != b[i])
      return false;
  return true;
}

_Static_assert(sizeof(struct fit) == 15 * sizeof(uint64_t), "no padding");

uint64_t snapshot_key(const struct runtime *runtime)
{
  const struct fit fit = fit_now(runtime);
  const uint64_t *word = (const uint64_t *)&fit;
  uint64_t key = 0;

  for (unsigned i = 0; i < sizeof(fit) / sizeof(*word); i++)
    key = (key ^ word[i]) * 0x9E3779B97F4A7C15 ^ key >> 29;
  return key | 1;
}

bool snapshot_is_possible(const struct runtime *runtime)
{
  return runtime->is_fixed && program.changed;
}

struct process_snapshot *snapshot_slot(const struct runtime *runtime, bool is_new)
{
  struct process_snapshot *slots = process_snapshots(runtime->control);
  uint64_t key = snapshot_key(runtime);

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

bool snapshot_offer(struct process_snapshot *slot, uint32_t page, uint32_t units)
{
  uint64_t value = page | (uint64_t)units << 32;
  uint64_t old = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);

  while (snapshot_units(old) < units)
    if (__atomic_compare_exchange_n(&slot->value, &old, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return true;
  return false;
}

/* Other programs can write to the shared memory: a damaged snapshot must not lead out of it. */
bool snapshot_is_for(const struct runtime *runtime, const struct snapshot *snapshot)
{
  const struct fit fit = fit_now(runtime);

  return is_equal(&snapshot->fit, &fit, sizeof(fit)) && snapshot->modules.count <= MODULES_MOST &&
         snapshot->modules.paths_used <= MODULE_PATHS && snapshot->pieces.count <= PIECES_MOST;
}

/* ---- use ---- */

int64_t snapshot_look(int fd, uint64_t offset, uint64_t size)
{
  return kernel_map(PLACE_REGIONS - page_up(size), size, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_NORESERVE, fd, offset);
}

static void piece_map(const struct piece *piece, int fd, uint64_t offset)
{
  bool is_code = cache_has(&the_runtime, piece->address);
  unsigned rights = PROT_READ | PROT_WRITE | (is_code ? PROT_EXEC : 0);
  int64_t result = kernel_map(piece->address, piece->size, rights, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, offset);

  if (is_failure(result))
    runtime_fail(PROCESS_E_NO_MEMORY, (int)result, 0);
  kernel_call(__NR_madvise, piece->address, piece->size, MADV_DONTDUMP, 0, 0, 0);
}

/* Maps the steps of the earlier process, which stay where they are in the shared memory. */
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

/* Maps the memory of a snapshot. Returns the offset after it. */
static uint64_t memory_map(const struct snapshot *snapshot, int fd, uint64_t offset)
{
  offset += snapshot_header_size();
  for (uint32_t i = 0; i < snapshot->pieces.count; i++) {
    piece_map(&snapshot->pieces.pieces[i], fd, offset);
    offset += snapshot->pieces.pieces[i].size;
  }
  return offset;
}

static void modules_take(struct runtime *runtime, const struct snapshot *snapshot, bool has_ways)
{
  for (uint32_t i = 0; i < snapshot->modules.count; i++) {
    struct module module = snapshot->modules.modules[i];

    module.way_count = has_ways ? module.way_count : 0;
    module_inherit(runtime, &module, module.path < MODULE_PATHS ? snapshot->modules.paths + module.path : "");
  }
}

/* Continues with the snapshot at this offset of the file. Returns false, with nothing changed, if there is no room for
 * it. */
static bool inherit(struct runtime *runtime, const struct snapshot *snapshot, int fd, uint64_t offset)
{
  if (!steps_map(runtime, snapshot) || !cache_reserve(runtime, &snapshot->pool))
    return false;
  offset = memory_map(snapshot, fd, offset);
  bool has_ways = ways_map(runtime, fd, offset, snapshot->ways_size);
  runtime->counts = snapshot->counts;
  profile_inherit(runtime);
  runtime->number_next = snapshot->number_next;
  runtime->index_inherited = runtime->counts.index_slots;
  runtime->units_inherited = runtime->counts.units_made;
  page_inherit(runtime, &snapshot->pages);
  modules_take(runtime, snapshot, has_ways);
  return true;
}

static void use_shared(struct runtime *runtime, uint32_t page)
{
  uint64_t offset = snapshot_offset(runtime, page), size = snapshot_header_size();
  int64_t memory = snapshot_look(runtime->fd, offset, size);

  if (is_failure(memory))
    return;
  const struct snapshot *snapshot = (const struct snapshot *)memory;
  if (snapshot_is_for(runtime, snapshot))
    inherit(runtime, snapshot, runtime->fd, offset);
  kernel_call(__NR_munmap, (uint64_t)memory, size, 0, 0, 0, 0);
}

static uint64_t *sum_of(const struct runtime *runtime, const struct process_snapshot *slot)
{
  return &process_sums(runtime->control)[slot - process_snapshots(runtime->control)];
}

/* The first process of a recording that uses a file checks it and copies its steps. If another file has replaced it
 * since, later processes begin without a snapshot, and the next snapshot takes the slot. */
static bool is_ready(struct runtime *runtime, const struct process_snapshot *slot, const struct stored *file)
{
  if (slot)
    return __atomic_load_n(sum_of(runtime, slot), __ATOMIC_ACQUIRE) == store_sum(file);
  return store_is_whole(file) && snapshot_is_for(runtime, file->snapshot) && store_bring_steps(runtime, file);
}

/* Returns whether it was used. */
static bool use_stored(struct runtime *runtime, const struct process_snapshot *slot)
{
  struct stored file;

  if (!store_open(runtime, &file))
    return false;
  bool is_used = is_ready(runtime, slot, &file) && snapshot_is_for(runtime, file.snapshot) &&
                 inherit(runtime, file.snapshot, file.fd, file.offset);
  struct process_snapshot *taken = is_used && !slot ? snapshot_slot(runtime, true) : NULL;
  if (taken) {
    __atomic_store_n(sum_of(runtime, taken), store_sum(&file), __ATOMIC_RELEASE);
    snapshot_offer(taken, PROCESS_SNAPSHOT_STORED, runtime->units_inherited);
  }
  store_close(&file);
  return is_used;
}

/* The units of a snapshot do not end before a trigger: with one, snapshots are neither used nor left. */
void snapshot_use(struct runtime *runtime)
{
  const struct module *module = module_find(runtime, runtime->entry);

  if (!runtime->is_fixed || !module || runtime->options & PROCESS_TRIGGER)
    return;
  program = module->file;
  struct process_snapshot *slot = snapshot_slot(runtime, false);
  uint64_t value = slot ? __atomic_load_n(&slot->value, __ATOMIC_ACQUIRE) : 0;
  uint32_t page = (uint32_t)value;
  if (!value)
    use_stored(runtime, NULL);
  else if (page == PROCESS_SNAPSHOT_STORED && !use_stored(runtime, slot)) /* free the slot for its own snapshot */
    __atomic_compare_exchange_n(&slot->value, &value, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  else if (page < PROCESS_SNAPSHOTS_SIZE / PROCESS_PAGE)
    use_shared(runtime, page);
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
