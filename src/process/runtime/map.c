/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls that change mappings. They change which addresses may be executed, which code must be translated again,
 * and what the parent must be told. They must not touch the runtime's own memory.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "process/runtime/runtime.h"

enum { STACK_MOST = 64 << 20 };

/* Shared mappings, executable or not. mprotect may make them executable later, and the same memory may be written
 * through another mapping. If they are too many for the list, all mappings count as shared. Protected by the lock. */
static struct range_list shared;
static bool is_shared_full;

static void shared_set(uint64_t start, uint64_t end, bool is_shared)
{
  if (!is_shared)
    range_remove(&shared, start, end);
  else if (!range_add(&shared, start, end, RANGE_SHARED))
    is_shared_full = true;
}

static bool has_some(const struct range_list *list, uint64_t start, uint64_t end)
{
  for (unsigned i = 0; i < list->count; i++)
    if (list->ranges[i].start < end && list->ranges[i].end > start)
      return true;
  return false;
}

static bool is_shared(uint64_t start, uint64_t end)
{
  return is_shared_full || has_some(&shared, start, end);
}

/* The code at these addresses is gone or may have changed. Returns the flags of the range that was at the start. */
static uint32_t code_remove(struct runtime *runtime, uint64_t start, uint64_t end, bool is_gone)
{
  const struct range *range = range_find(&runtime->executable, start);
  uint32_t flags = range ? range->flags : 0;

  if (range_remove(&runtime->executable, start, end)) {
    page_drop(runtime, start, end);
    module_remove(runtime, start, end);
    if (is_gone)
      trigger_remove(runtime, start, end);
    if (is_gone)
      note_put(runtime, NOTE_UNMAP, runtime->space, start, end, 0, NULL, 0);
  }
  return flags;
}

static void code_put(struct runtime *runtime, uint64_t start, uint64_t end, uint32_t flags)
{
  if (!range_add(&runtime->executable, start, end, flags))
    runtime_fail(PROCESS_E_RANGES_FULL, 0, start);
}

/* Adds code that is in no file, or differs from its file. */
static void code_add(struct runtime *runtime, uint64_t start, uint64_t end, uint32_t flags)
{
  module_add(runtime, start, end, 0, -1, NULL);
  code_put(runtime, start, end, flags);
}

enum { PATH_MOST = 4096 };

/* Tells the parent the path of a file that is mapped as executable. If the file has no path that can be opened, the
 * mapping does not count as one of a file. */
static bool note_file(struct runtime *runtime, uint64_t start, uint64_t end, uint64_t fd, uint64_t offset,
                      char path[PATH_MOST])
{
  static const char gone[] = " (deleted)";
  char link[48], *own = runtime->root ? text_put(path, runtime->root) : path;
  uint64_t before = (uint64_t)(own - path);

  text_put_number(text_put(link, "/proc/self/fd/"), fd);
  int64_t size =
    kernel_call(__NR_readlinkat, (uint64_t)AT_FDCWD, (uint64_t)link, (uint64_t)own, PATH_MOST - 1 - before, 0, 0);
  if (size <= 0 || own[0] != '/')
    return false;
  own[size] = 0;
  if (text_begins(own, "/memfd:") || text_begins(own, "/dev/") ||
      (size > (int64_t)sizeof(gone) && text_is(own + size + 1 - sizeof(gone), gone)))
    return false;
  runtime->map_note =
    note_put(runtime, NOTE_MAP, runtime->space, start, end, offset, path, (uint32_t)(before + (uint64_t)size));
  return true;
}

static void map_code(struct runtime *runtime, const uint64_t argument[6], uint64_t start, uint64_t end)
{
  uint64_t flags = argument[3];
  bool is_file = !(flags & MAP_ANONYMOUS), is_private = (flags & 15) == MAP_PRIVATE;
  uint32_t range = argument[2] & PROT_WRITE ? RANGE_WRITABLE : 0;
  char path[PATH_MOST];

  if (is_file && is_private && !runtime->is_confined && note_file(runtime, start, end, argument[4], argument[5], path))
    range |= RANGE_FILE;
  else if (!is_private)
    range |= RANGE_SHARED;
  module_add(runtime, start, end, argument[5], range == RANGE_FILE ? (int)argument[4] : -1, path);
  code_put(runtime, start, end, range);
}

void map_adopt(struct runtime *runtime, const struct attach_range *range, const char *path)
{
  bool is_shared = range->flags & ATTACH_SHARED;
  uint32_t flags = (range->flags & ATTACH_WRITABLE ? RANGE_WRITABLE : 0) | (is_shared ? RANGE_SHARED : 0);

  if (is_shared)
    shared_set(range->start, range->end, true);
  if (!(range->flags & ATTACH_CODE))
    return;
  if (path)
    note_put(runtime, NOTE_MAP, runtime->space, range->start, range->end, range->offset, path,
             (uint32_t)text_length(path));
  if (path && !is_shared && path[0] == '/')
    flags |= RANGE_FILE;
  code_put(runtime, range->start, range->end, flags);
}

/* The lock covers both the kernel's change and ours: no thread may translate between the two. The application does not
 * know the address before triggers were looked for. */
static int64_t call_mmap(struct thread *thread, const uint64_t argument[6])
{
  struct runtime *runtime = thread->runtime;

  runtime_lock(runtime);
  runtime->map_note = 0;
  int64_t result = syscall_pass(__NR_mmap, argument);
  if (!is_failure(result)) {
    uint64_t start = (uint64_t)result, end = start + page_up(argument[1]);

    code_remove(runtime, start, end, true);
    shared_set(start, end, (argument[3] & 15) != MAP_PRIVATE);
    if (argument[2] & PROT_EXEC)
      map_code(runtime, argument, start, end);
  }
  uint64_t note = runtime->map_note;
  runtime_unlock(runtime);
  if (note)
    trigger_ask(thread, note, note + 1);
  return result;
}

static bool is_one_range(const struct runtime *runtime, uint64_t start, uint64_t end)
{
  const struct range *range = range_find(&runtime->executable, start);

  return range && range->end >= end;
}

/* PROT_GROWSDOWN applies down to the end of a stack. A call that fails at a gap has already changed the pages before
 * the gap: code there is treated as possibly changed. */
static int64_t call_mprotect(struct runtime *runtime, uint64_t number, const uint64_t argument[6])
{
  uint64_t start = argument[0], end = start + page_up(argument[1]), rights = argument[2];

  runtime_lock(runtime);
  int64_t result = syscall_pass(number, argument);
  bool is_code = rights & PROT_EXEC;
  if (!is_failure(result) || (result == -ENOMEM && is_code)) {
    if (rights & PROT_GROWSDOWN)
      start -= STACK_MOST;
    uint32_t flags = rights & PROT_WRITE ? RANGE_WRITABLE : 0;
    if (is_code && is_shared(start, end))
      flags |= RANGE_SHARED;
    bool is_one = is_one_range(runtime, start, end);
    uint32_t kept = code_remove(runtime, start, end, false);
    if (is_code)
      code_add(runtime, start, end, flags | (is_one ? kept & RANGE_FILE : 0));
  }
  runtime_unlock(runtime);
  return result;
}

static int64_t call_munmap(struct runtime *runtime, const uint64_t argument[6])
{
  runtime_lock(runtime);
  int64_t result = syscall_pass(__NR_munmap, argument);
  if (!is_failure(result)) {
    code_remove(runtime, argument[0], argument[0] + page_up(argument[1]), true);
    shared_set(argument[0], argument[0] + page_up(argument[1]), false);
  }
  runtime_unlock(runtime);
  return result;
}

/* Our write protection must not move with the mapping. An old size of 0 makes a second mapping of shared memory. */
static int64_t call_mremap(struct runtime *runtime, const uint64_t argument[6])
{
  uint64_t from = argument[0];

  runtime_lock(runtime);
  page_release_range(runtime, from, from + page_up(argument[1]));
  bool is_of_shared = is_shared(from, from + 1);
  const struct range *range = range_find(&runtime->executable, from);
  bool is_executable = range;
  int64_t result = syscall_pass(__NR_mremap, argument);
  if (!is_failure(result)) {
    uint64_t to = (uint64_t)result;
    uint32_t flags = code_remove(runtime, from, from + page_up(argument[1]), true);

    code_remove(runtime, to, to + page_up(argument[2]), true);
    shared_set(from, from + page_up(argument[1]), false);
    shared_set(to, to + page_up(argument[2]), is_of_shared);
    if (is_executable)
      code_add(runtime, to, to + page_up(argument[2]), flags & ~(uint32_t)RANGE_FILE);
  }
  runtime_unlock(runtime);
  return result;
}

/* madvise: pages become empty, or return to the contents of their file, with the same rights. */
static int64_t call_madvise(struct runtime *runtime, const uint64_t argument[6])
{
  uint64_t start = argument[0], end = start + page_up(argument[1]);
  bool is_lost = argument[2] == MADV_DONTNEED || argument[2] == MADV_REMOVE || argument[2] == MADV_FREE;

  runtime_lock(runtime);
  int64_t result = syscall_pass(__NR_madvise, argument);
  if (is_lost && has_some(&runtime->executable, start, end)) {
    page_release_range(runtime, start, end);
    page_drop(runtime, start, end);
  }
  runtime_unlock(runtime);
  return result;
}

/* ---- our own memory ---- */

static bool is_over(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
  return start < to && end > from;
}

bool map_is_ours(const struct runtime *runtime, uint64_t start, uint64_t size)
{
  uint64_t end = start + page_up(size);

  if (is_over(start, end, PLACE_START, place_end()) || is_over(start, end, PLACE_REGIONS, thread_regions_end()) ||
      is_over(start, end, (uint64_t)__executable_start, (uint64_t)interpreter_place) ||
      is_over(start, end, (uint64_t)interpreter_place + INTERPRETER_PLACE, (uint64_t)_end))
    return true;
  for (const struct area *area = runtime->pools[0].areas; area < runtime->pools[0].areas + CACHE_AREAS; area++)
    if (area->code && is_over(start, end, (uint64_t)area->code, (uint64_t)area->code + CACHE_POOLS * CACHE_AREA_SIZE))
      return true;
  return false;
}

int64_t map_call(struct thread *thread, uint64_t number, const uint64_t argument[6])
{
  struct runtime *runtime = thread->runtime;
  bool is_fixed = number != __NR_mmap || (argument[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED;
  bool is_moved = number == __NR_mremap && argument[3] & MREMAP_FIXED;

  if ((is_fixed && map_is_ours(runtime, argument[0], argument[1])) ||
      (is_moved && map_is_ours(runtime, argument[4], argument[2])))
    return -ENOMEM;
  switch (number) {
  case __NR_mmap:
    return call_mmap(thread, argument);
  case __NR_munmap:
    return call_munmap(runtime, argument);
  case __NR_mremap:
    return call_mremap(runtime, argument);
  case __NR_madvise:
    return call_madvise(runtime, argument);
  default:
    return call_mprotect(runtime, number, argument);
  }
}

/* The program needs an executable stack: PT_GNU_STACK. */
void map_stack_code(struct runtime *runtime, uint64_t stack)
{
  uint64_t page = page_down(stack), top = page;
  unsigned rights = PROT_READ | PROT_WRITE | PROT_EXEC;

  if (kernel_call(__NR_mprotect, page, PROCESS_PAGE, rights | PROT_GROWSDOWN, 0, 0, 0))
    return;
  while (kernel_call(__NR_mprotect, top, PROCESS_PAGE, rights, 0, 0, 0) == 0)
    top += PROCESS_PAGE;
  code_add(runtime, page - STACK_MOST, top, RANGE_WRITABLE);
}
