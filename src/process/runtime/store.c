/* SPDX-License-Identifier: Apache-2.0
 *
 * The store: snapshots in files, for later recordings. Each process reads and writes them with its own rights, so that
 * a program that has given up rights can neither read nor change what others use. A file is written under another name
 * and then renamed; it is never changed. lbr gives each recording numbers for its steps that no other recording gets
 * (src/process/store.c), because translated code has them in it.
 */
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/resource.h>
#include <linux/stat.h>

#include "process/runtime/store.h"

static uint64_t start_size(void)
{
  return page_up(sizeof(struct store_start));
}

/* ---- sums ---- */

typedef uint64_t __attribute__((may_alias)) any_word;

/* Four sums side by side are faster than one. */
struct sum {
  uint64_t lanes[4];
};

/* The size is a multiple of 32, the address of 8. */
static void sum_add(struct sum *sum, const void *bytes, uint64_t size)
{
  const any_word *word = bytes;
  struct sum now = *sum;

  for (const any_word *end = word + size / sizeof(*word); word < end; word += 4)
    for (unsigned i = 0; i < 4; i++)
      now.lanes[i] = (now.lanes[i] ^ word[i]) * 0x9E3779B97F4A7C15 ^ now.lanes[i] >> 29;
  *sum = now;
}

_Static_assert(sizeof(struct store_start) % 32 == 0, "sums are made of 32 bytes at a time");

/* The start is written last, so that it comes last in the sum, too. Its first four words are known. */
static uint64_t sum_end(struct sum *sum, const struct store_start *start)
{
  enum { KNOWN = 32 };
  uint64_t all = 0;

  sum_add(sum, (const uint8_t *)start + KNOWN, sizeof(*start) - KNOWN);
  for (unsigned i = 0; i < 4; i++)
    all = (all ^ sum->lanes[i]) * 0x9E3779B97F4A7C15 ^ all >> 29;
  return all;
}

/* ---- names ---- */

static char *put_hexadecimal(char *at, uint64_t number)
{
  for (int shift = 60; shift >= 0; shift -= 4)
    *at++ = "0123456789abcdef"[number >> shift & 15];
  *at = 0;
  return at;
}

/* Both names have room for it. */
static void names_make(const struct runtime *runtime, char *name, char *name_new)
{
  const char *folder = process_store_path(runtime->control);
  char *at = text_put(name, folder);

  at = put_hexadecimal(text_put(at, "/"), snapshot_key(runtime));
  text_put(at, STORE_SUFFIX);
  if (!name_new)
    return;
  at = put_hexadecimal(text_put(text_put(name_new, folder), "/"), snapshot_key(runtime));
  at = text_put_number(text_put(at, "."), (uint64_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0));
  text_put(at, STORE_SUFFIX_NEW);
}

enum { NAME_MOST = PROCESS_STORE_PATH + 64 };

/* ---- reading ---- */

/* Is there a store, and does this process still run as the user who may use it? */
static bool has_store(const struct runtime *runtime)
{
  const char *path = process_store_path(runtime->control);

  return path[0] == '/' && !path[PROCESS_STORE_PATH - 1] &&
         (uint32_t)kernel_call(__NR_geteuid, 0, 0, 0, 0, 0, 0) == runtime->control->store_user;
}

/* Whether only the user can have written the file. */
static bool is_ours(const struct runtime *runtime, const struct stat *stat)
{
  return (stat->st_mode & S_IFMT) == S_IFREG && !(stat->st_mode & 022) && stat->st_uid == runtime->control->store_user;
}

static bool is_usable(const struct runtime *runtime, const struct store_start *start, uint64_t size)
{
  const struct store_header *header = &start->header;

  return header->magic == STORE_MAGIC && header->size == size && start->steps.count <= PIECES_MOST &&
         header->epoch == runtime->control->store_epoch && header->number_next <= runtime->control->step_base;
}

static uint64_t least_size(void)
{
  return start_size() + snapshot_header_size();
}

void store_close(const struct stored *file)
{
  if (file->start)
    kernel_call(__NR_munmap, (uint64_t)file->start, file->size, 0, 0, 0, 0);
  kernel_call(__NR_close, (uint64_t)file->fd, 0, 0, 0, 0, 0);
}

bool store_open(struct runtime *runtime, struct stored *ret_file)
{
  char name[NAME_MOST];
  struct stat stat = {0};

  if (!has_store(runtime))
    return false;
  names_make(runtime, name, NULL);
  int64_t fd = kernel_call(__NR_openat, (uint64_t)AT_FDCWD, (uint64_t)name,
                           O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, 0, 0);
  if (is_failure(fd))
    return false;
  struct stored file = {.fd = (int)fd, .offset = start_size()};
  if (!is_failure(kernel_call(__NR_fstat, (uint64_t)fd, (uint64_t)&stat, 0, 0, 0, 0)) && is_ours(runtime, &stat) &&
      (uint64_t)stat.st_size >= least_size()) {
    int64_t memory = snapshot_look((int)fd, 0, (uint64_t)stat.st_size);

    file.size = (uint64_t)stat.st_size;
    file.start = is_failure(memory) ? NULL : (const struct store_start *)memory;
    file.snapshot = (const struct snapshot *)((const uint8_t *)file.start + start_size());
  }
  if (file.start && is_usable(runtime, file.start, file.size)) {
    *ret_file = file;
    return true;
  }
  store_close(&file);
  return false;
}

bool store_is_whole(const struct stored *file)
{
  uint64_t steps = pieces_size(&file->start->steps), rest = file->size - start_size();
  struct sum sum = {{0}};

  if (steps > file->size - least_size() || file->size % PROCESS_PAGE)
    return false;
  sum_add(&sum, file->snapshot, rest);
  return sum_end(&sum, file->start) == file->start->header.sum;
}

uint64_t store_sum(const struct stored *file)
{
  return file->start->header.sum;
}

/* ---- steps ---- */

static void steps_copy(struct lb_step *to, const struct lb_step *from, uint64_t count, uint32_t space)
{
  memcpy(to, from, count * sizeof(*to));
  for (uint64_t i = 0; i < count; i++)
    to[i].space = space;
}

static uint32_t space_make(struct runtime *runtime, const struct module_list *modules)
{
  uint32_t space = __atomic_add_fetch(&runtime->control->space_count, 1, __ATOMIC_RELAXED);

  for (uint32_t i = 0; i < modules->count; i++)
    if (modules->modules[i].path < MODULE_PATHS)
      note_put_stored(runtime, space, &modules->modules[i], modules->paths + modules->modules[i].path);
  return space;
}

/* Pieces of steps are whole pages below the recording's first number. */
static bool is_step_piece(const struct runtime *runtime, const struct piece *piece)
{
  uint64_t start = (uint64_t)runtime->steps, end = (uint64_t)(runtime->steps + runtime->control->step_base);

  return piece->address >= start && piece->address < end && piece->size && piece->size <= end - piece->address;
}

bool store_bring_steps(struct runtime *runtime, const struct stored *file)
{
  const struct piece_list *pieces = &file->start->steps;
  const uint8_t *from = (const uint8_t *)file->start + file->size - pieces_size(pieces);
  uint32_t space = space_make(runtime, &file->snapshot->modules);

  for (uint32_t i = 0; i < pieces->count; i++) {
    const struct piece *piece = &pieces->pieces[i];
    uint64_t count = piece->size / sizeof(struct lb_step);

    if (!is_step_piece(runtime, piece))
      return false;
    struct lb_step *to = (struct lb_step *)piece->address;
    uint32_t first = (uint32_t)(to - runtime->steps);
    if (!share_steps(runtime, first, first + (uint32_t)count))
      return false;
    steps_copy(to, (const struct lb_step *)from, count, space);
    from += piece->size;
  }
  return true;
}

/* ---- writing ---- */

bool store_is_open(const struct runtime *runtime)
{
  return has_store(runtime) && runtime->number_next <= __atomic_load_n(&runtime->control->step_limit, __ATOMIC_SEQ_CST);
}

/* Whether the file stays within the process's limit (RLIMIT_FSIZE): writing more would kill the program. */
static bool is_within_limit(uint64_t size)
{
  struct rlimit64 limit = {0};

  return !is_failure(kernel_call(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (uint64_t)&limit, 0, 0)) && size < limit.rlim_cur;
}

static bool put(int fd, const void *bytes, uint64_t size, uint64_t at)
{
  while (size) {
    int64_t written = kernel_call(__NR_pwrite64, (uint64_t)fd, (uint64_t)bytes, size, at, 0, 0);

    if (written == -EINTR)
      continue;
    if (is_failure(written) || !written)
      return false;
    bytes = (const uint8_t *)bytes + written;
    size -= (uint64_t)written;
    at += (uint64_t)written;
  }
  return true;
}

struct writing {
  int fd;
  bool is_bad;
  uint64_t at;
  struct sum sum;
};

static void put_part(struct writing *writing, const void *bytes, uint64_t size)
{
  sum_add(&writing->sum, bytes, size);
  writing->is_bad = writing->is_bad || !put(writing->fd, bytes, size, writing->at);
  writing->at += size;
}

static void put_pieces(struct writing *writing, const struct piece_list *pieces)
{
  for (uint32_t i = 0; i < pieces->count; i++)
    put_part(writing, (const void *)pieces->pieces[i].address, pieces->pieces[i].size);
}

static bool write_all(int fd, struct store_start *start, const struct snapshot_parts *parts)
{
  struct writing writing = {.fd = fd, .at = start_size()};

  put_part(&writing, parts->header, snapshot_header_size());
  put_pieces(&writing, &parts->header->pieces);
  put_part(&writing, parts->ways, parts->header->ways_size);
  put_pieces(&writing, &start->steps);
  start->header.size = writing.at;
  start->header.sum = sum_end(&writing.sum, start);
  return !writing.is_bad && put(fd, start, sizeof(*start), 0);
}

static void steps_list(const struct runtime *runtime, struct piece_list *steps)
{
  for (uint32_t i = 0; i < runtime->pool->unit_count; i++) {
    uint32_t head = runtime->units[i].head;

    piece_add(steps, &runtime->steps[head], (runtime->steps[head].count + 1ull) * sizeof(*runtime->steps));
  }
}

/* Whether the existing file has as many units. */
static bool is_stored(struct runtime *runtime)
{
  struct stored file;

  if (!store_open(runtime, &file))
    return false;
  bool is_as_good = file.start->header.unit_count >= runtime->counts.units_made;
  store_close(&file);
  return is_as_good;
}

static void write_file(struct runtime *runtime, struct store_start *start, const struct snapshot_parts *parts)
{
  char name[NAME_MOST], name_new[NAME_MOST];

  names_make(runtime, name, name_new);
  int64_t fd = kernel_call(__NR_openat, (uint64_t)AT_FDCWD, (uint64_t)name_new,
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
  if (is_failure(fd))
    return;
  bool is_good = write_all((int)fd, start, parts);
  kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);
  if (!is_good || is_failure(kernel_call(__NR_rename, (uint64_t)name_new, (uint64_t)name, 0, 0, 0, 0)))
    kernel_call(__NR_unlink, (uint64_t)name_new, 0, 0, 0, 0, 0);
}

/* Counts this process before it reads the limit. lbr sets the limit to 0 before it reads the count. So either lbr sees
 * a process that writes, or that process sees the limit. */
static bool announce(struct runtime *runtime)
{
  __atomic_fetch_add(&runtime->control->stored, 1, __ATOMIC_SEQ_CST);
  return store_is_open(runtime);
}

void store_write(struct runtime *runtime, const struct snapshot_parts *parts)
{
  static struct store_start start;
  size_t length = text_length(runtime->exe);

  start = (struct store_start){.header = {.magic = STORE_MAGIC,
                                          .epoch = runtime->control->store_epoch,
                                          .number_next = runtime->number_next,
                                          .unit_count = runtime->counts.units_made}};
  memcpy(start.header.program, runtime->exe, length < STORE_PROGRAM ? length : STORE_PROGRAM - 1);
  steps_list(runtime, &start.steps);
  uint64_t size = start_size() + parts->size + pieces_size(&start.steps);
  if (!start.steps.is_full && is_within_limit(size) && !is_stored(runtime) && announce(runtime))
    write_file(runtime, &start, parts);
}
