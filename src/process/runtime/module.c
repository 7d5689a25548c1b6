/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks which code comes from which file, so that another process can reuse units: the same part of the same unchanged
 * file at the same address has the same translation.
 */
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/time.h>

#include "process/runtime/runtime.h"

/* ---- files ---- */

static uint64_t nanoseconds(uint64_t seconds, uint64_t rest)
{
  return seconds * 1000000000 + rest;
}

/* The kernel's time for files moves on in steps of a few milliseconds. A file that was changed twice within one step
 * looks the same after both changes. A file therefore counts as known only some time after its last change. */
static bool is_settled(uint64_t changed)
{
  enum { STEP_MOST = 20 * 1000 * 1000 };
  int64_t now[2] = {0};

  if (is_failure(kernel_call(__NR_clock_gettime, CLOCK_REALTIME_COARSE, (uint64_t)now, 0, 0, 0, 0)))
    return false;
  return changed + STEP_MOST < nanoseconds((uint64_t)now[0], (uint64_t)now[1]);
}

/* An image of another system may have the same numbers and times. Its first page then has another build ID, or other
 * sizes. */
static uint64_t sum_start(int fd)
{
  uint64_t words[512], sum = 0;
  int64_t size = kernel_call(__NR_pread64, (uint64_t)fd, (uint64_t)words, sizeof(words), 0, 0, 0);

  for (int64_t i = 0; i < size / (int64_t)sizeof(*words); i++)
    sum = (sum ^ words[i]) * 0x9E3779B97F4A7C15 ^ sum >> 29;
  return sum;
}

struct file_identity file_identify(int fd)
{
  struct stat stat = {0};
  struct file_identity file = {0};

  if (fd < 0 || is_failure(kernel_call(__NR_fstat, (uint64_t)fd, (uint64_t)&stat, 0, 0, 0, 0)))
    return file;
  uint64_t changed = nanoseconds((uint64_t)stat.st_ctime, stat.st_ctime_nsec);
  if (!is_settled(changed))
    return file;
  return (struct file_identity){.device = stat.st_dev,
                                .inode = stat.st_ino,
                                .size = (uint64_t)stat.st_size,
                                .modified = nanoseconds((uint64_t)stat.st_mtime, stat.st_mtime_nsec),
                                .content = sum_start(fd),
                                .changed = changed};
}

static bool is_same_file(const struct file_identity *one, const struct file_identity *other)
{
  return one->changed && one->device == other->device && one->inode == other->inode && one->size == other->size &&
         one->modified == other->modified && one->content == other->content && one->changed == other->changed;
}

/* ---- the list ---- */

static void delete_at(struct module_list *list, uint32_t at)
{
  list->modules[at] = list->modules[--list->count];
}

static bool is_over(const struct module *module, uint64_t start, uint64_t end)
{
  return module->start < end && module->end > start;
}

/* Makes units stale that come from modules which an earlier process had mapped there. */
static void cover(struct runtime *runtime, uint64_t start, uint64_t end)
{
  struct module_list *list = &runtime->modules;

  for (uint32_t i = 0; i < list->count;) {
    const struct module *module = &list->modules[i];

    if (module->is_mapped || !is_over(module, start, end)) {
      i++;
      continue;
    }
    page_drop(runtime, module->start, module->end);
    delete_at(list, i);
  }
}

/* The new mapping may be larger, because part of it may be removed again: some libraries are mapped whole before their
 * data is mapped over it. */
static bool is_like(const struct module *module, const struct module *old)
{
  return module->start == old->start && module->end >= old->end && module->offset == old->offset &&
         is_same_file(&module->file, &old->file);
}

static void ways_take(struct module *module, const struct module *old)
{
  module->way_first = old->way_first;
  module->way_count = old->way_count;
}

/* Stores the path, unless it is there. Returns false if there is no room. */
static bool path_keep(struct module_list *list, struct module *module, const char *path)
{
  uint32_t size = (uint32_t)text_length(path) + 1;

  for (uint32_t i = 0; i < list->count; i++)
    if (text_is(list->paths + list->modules[i].path, path)) {
      module->path = list->modules[i].path;
      return true;
    }
  if (size > MODULE_PATHS - list->paths_used)
    return false;
  module->path = list->paths_used;
  memcpy(list->paths + list->paths_used, path, size);
  list->paths_used += size;
  return true;
}

static void keep(struct module_list *list, const struct module *module, const char *path)
{
  struct module added = *module;

  if (module->file.changed && list->count < MODULES_MOST && path_keep(list, &added, path))
    list->modules[list->count++] = added;
}

void module_add(struct runtime *runtime, uint64_t start, uint64_t end, uint64_t offset, int fd, const char *path)
{
  struct module_list *list = &runtime->modules;
  struct module added = {.start = start, .end = end, .offset = offset, .file = file_identify(fd), .is_mapped = true};

  for (uint32_t i = 0; i < list->count && fd >= 0; i++)
    if (!list->modules[i].is_mapped && is_like(&added, &list->modules[i])) {
      ways_take(&added, &list->modules[i]);
      delete_at(list, i);
      break;
    }
  cover(runtime, start, end);
  keep(list, &added, path);
  if (added.way_count)
    ways_publish(thread_self(), &added);
}

/* Also drops the part of a module that lies after the removed range: such a part is rare. */
void module_remove(struct runtime *runtime, uint64_t start, uint64_t end)
{
  struct module_list *list = &runtime->modules;

  for (uint32_t i = 0; i < list->count;) {
    struct module *module = &list->modules[i];

    if (!module->is_mapped || !is_over(module, start, end))
      i++;
    else if (module->start < start)
      module->end = start;
    else
      delete_at(list, i);
  }
}

/* Discards a snapshot's units of an early module that this process has not mapped. Units of other modules may lead into
 * them. */
void module_enter(struct runtime *runtime)
{
  struct module_list *list = &runtime->modules;

  runtime->has_entered = true;
  for (uint32_t i = 0; i < list->count;) {
    struct module *module = &list->modules[i];

    if (module->is_mapped || !module->is_early) {
      module->is_early = module->is_mapped;
      i++;
      continue;
    }
    page_drop(runtime, module->start, module->end);
    delete_at(list, i);
  }
}

const struct module *module_find(const struct runtime *runtime, uint64_t address)
{
  for (uint32_t i = 0; i < runtime->modules.count; i++)
    if (is_over(&runtime->modules.modules[i], address, address + 1))
      return &runtime->modules.modules[i];
  return NULL;
}

static bool is_code(const struct runtime *runtime, uint64_t start, uint64_t end)
{
  for (unsigned i = 0; i < runtime->executable.count; i++)
    if (runtime->executable.ranges[i].start < end && runtime->executable.ranges[i].end > start)
      return true;
  return false;
}

void module_inherit(struct runtime *runtime, const struct module *module, const char *path)
{
  struct module_list *list = &runtime->modules;

  for (uint32_t i = 0; i < list->count; i++)
    if (list->modules[i].is_mapped && is_like(&list->modules[i], module)) {
      ways_take(&list->modules[i], module);
      return;
    }
  struct module added = *module;
  uint32_t count = list->count;
  added.is_mapped = false;
  if (!is_code(runtime, module->start, module->end))
    keep(list, &added, path);
  if (list->count == count)
    page_drop(runtime, module->start, module->end);
}

/* ---- changed memory ---- */

/* The kernel's Documentation/admin-guide/mm/pagemap.rst: a page that is there, or swapped out, and is not of the file
 * is a private copy. */
static bool is_copy(uint64_t entry)
{
  const uint64_t present = 1ull << 63, swapped = 1ull << 62, of_file = 1ull << 61;

  return (entry & present && !(entry & of_file)) || entry & swapped;
}

/* Returns false also if the kernel does not tell. */
static bool is_unchanged(const struct module *module, int pagemap)
{
  enum { AT_ONCE = 256 };
  uint64_t entries[AT_ONCE];

  for (uint64_t page = module->start / PROCESS_PAGE, end = module->end / PROCESS_PAGE; page < end; page += AT_ONCE) {
    uint64_t count = end - page < AT_ONCE ? end - page : AT_ONCE, size = count * sizeof(*entries);

    if (kernel_call(__NR_pread64, (uint64_t)pagemap, (uint64_t)entries, size, page * sizeof(*entries), 0, 0) !=
        (int64_t)size)
      return false;
    for (uint64_t i = 0; i < count; i++)
      if (is_copy(entries[i]))
        return false;
  }
  return true;
}

bool module_forget_changed(struct runtime *runtime)
{
  struct module_list *list = &runtime->modules;
  int64_t fd =
    kernel_call(__NR_openat, (uint64_t)AT_FDCWD, (uint64_t) "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0, 0, 0);

  if (is_failure(fd))
    return false;
  for (uint32_t i = 0; i < list->count;)
    if (list->modules[i].is_mapped && !is_unchanged(&list->modules[i], (int)fd))
      delete_at(list, i);
    else
      i++;
  kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);
  return true;
}
