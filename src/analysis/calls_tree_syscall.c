/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls of the call tree. Lines that become one line may have different arguments, paths and results: such a
 * line has those that all its calls share. Each different call is kept once, and their number is limited: in a run that
 * never makes the same call twice, most are joined or summed up soon, and then forgotten here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls_tree_inside.h"

#define SYSCALLS_MAX (1u << 16) /* 40 MiB, if all have two paths of the greatest length */
#define ANY 0u                  /* entry of a system call of which nothing is known */

/* ---- the table ---- */

static uint64_t call_hash(const struct tree_syscall *call)
{
  uint64_t hash = hash_start((uint64_t)call->number << 32 | (uint64_t)call->argument_count << 2 |
                             (unsigned)call->has_result << 1 | (unsigned)call->has_returned);

  hash = hash_mix(hash, (uint64_t)call->result);
  for (unsigned i = 0; i < call->argument_count; i++)
    hash = hash_mix(hash, call->arguments[i]);
  for (unsigned i = 0; i < TRACE_CALL_PATHS; i++)
    hash = hash_mix_string(hash, call->paths[i]);
  return hash;
}

static bool is_same_path(const char *one, const char *other)
{
  return one && other ? !strcmp(one, other) : one == other;
}

static bool is_same(const struct tree_syscall *one, const struct tree_syscall *other)
{
  return one->number == other->number && one->argument_count == other->argument_count &&
         one->has_result == other->has_result && one->has_returned == other->has_returned &&
         one->result == other->result &&
         !memcmp(one->arguments, other->arguments, one->argument_count * sizeof(*one->arguments)) &&
         is_same_path(one->paths[0], other->paths[0]) && is_same_path(one->paths[1], other->paths[1]);
}

static int paths_copy(struct tree_syscall *call)
{
  const char *paths[TRACE_CALL_PATHS] = {call->paths[0], call->paths[1]};
  bool is_missing = false;

  for (unsigned i = 0; i < TRACE_CALL_PATHS; i++) {
    call->paths[i] = paths[i] ? strdup(paths[i]) : NULL;
    is_missing |= paths[i] && !call->paths[i];
  }
  return is_missing ? -ENOMEM : 0;
}

static int entry_append(struct tree_syscalls *syscalls, const struct tree_syscall *call)
{
  struct tree_syscall *entry = array_append(&syscalls->entries, &syscalls->count, &syscalls->capacity);

  if (!entry)
    return -ENOMEM;
  *entry = *call;
  if (paths_copy(entry) < 0)
    return -ENOMEM;
  return hash_index_add(&syscalls->index, call_hash(call), syscalls->count - 1) < 0 ? -ENOMEM : 0;
}

static uint32_t entry_find(const struct tree_syscalls *syscalls, const struct tree_syscall *call)
{
  uint64_t hash = call_hash(call);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&syscalls->index, hash, &at)) != HASH_NONE;)
    if (is_same(&syscalls->entries[number], call))
      break;
  return number;
}

/* Finds a call, or adds it; its paths are copied. If there is no room, gives the entry of its number alone, which the
 * table of the known system calls limits, or ANY. Returns 0, or -ENOMEM. */
static int entry_get(struct tree_syscalls *syscalls, const struct tree_syscall *call, uint32_t *ret_entry)
{
  const struct tree_syscall bare = {.number = call->number};
  bool is_full = syscalls->count >= SYSCALLS_MAX;
  const struct tree_syscall *wanted = call;
  uint32_t number;

  if (!syscalls->count && entry_append(syscalls, &(struct tree_syscall){.number = TREE_SMALL - 1}) < 0)
    return -ENOMEM;
  number = entry_find(syscalls, wanted);
  if (number == HASH_NONE && is_full) {
    wanted = &bare;
    number = trace_call_info(bare.number) ? entry_find(syscalls, wanted) : ANY;
  }
  if (number == HASH_NONE) {
    number = (uint32_t)syscalls->count;
    if (entry_append(syscalls, wanted) < 0)
      return -ENOMEM;
  }
  *ret_entry = number;
  return 0;
}

void tree_syscalls_done(struct tree_syscalls *syscalls)
{
  for (size_t i = 0; i < syscalls->count; i++)
    for (unsigned k = 0; k < TRACE_CALL_PATHS; k++)
      free(syscalls->entries[i].paths[k]);
  free(syscalls->entries);
  hash_index_done(&syscalls->index);
  *syscalls = (struct tree_syscalls){0};
}

/* ---- room ---- */

/* Keeps the entries that lines still have. If that frees less than half, it is not tried again. */
static int table_clean(struct calls_tree *tree)
{
  struct tree_syscalls old = tree->syscalls, next = {0};
  int r = 0;

  for (size_t i = 0; i < tree->count && r >= 0; i++)
    for (size_t k = 0; k < tree->streams[i].count && r >= 0; k++) {
      struct tree_line *line = &tree->streams[i].lines[k];

      if (line->how == TREE_SYSCALL)
        r = entry_get(&next, &old.entries[line->entry], &line->entry);
    }
  tree_syscalls_done(&old);
  next.is_full = next.count > SYSCALLS_MAX / 2;
  tree->syscalls = next;
  return r;
}

/* ---- calls ---- */

int tree_syscall_add(struct calls_tree *tree, const struct analysis_syscall *call, uint32_t *ret_entry)
{
  const struct trace_stamp *stamp = &call->call;
  struct tree_syscall entry = {
    .number = stamp->code < TREE_SMALL ? stamp->code : TREE_SMALL - 1,
    .argument_count = stamp->argument_count,
    .has_result = true,
    .has_returned = call->has_returned,
    .result = call->has_returned ? call->result : 0,
    .paths = {(char *)stamp->paths[0], (char *)stamp->paths[1]}, /* which entry_append copies */
  };

  if (entry.argument_count > TRACE_ARGUMENTS_MAX)
    entry.argument_count = TRACE_ARGUMENTS_MAX;
  memcpy(entry.arguments, stamp->arguments, sizeof(entry.arguments));
  if (tree->syscalls.count >= SYSCALLS_MAX && !tree->syscalls.is_full && table_clean(tree) < 0)
    return -ENOMEM;
  return entry_get(&tree->syscalls, &entry, ret_entry);
}

/* Leading arguments that two calls share. A path is the same if its string is. */
static uint8_t arguments_shared(const struct tree_syscall *one, const struct tree_syscall *other)
{
  const struct trace_call_info *info = trace_call_info(one->number);
  unsigned count = one->argument_count < other->argument_count ? one->argument_count : other->argument_count;

  for (unsigned i = 0; info && i < TRACE_CALL_PATHS; i++) {
    int path = trace_call_path(info, i);

    if (path >= 0 && (unsigned)path < count && !is_same_path(one->paths[i], other->paths[i]))
      count = (unsigned)path;
  }
  for (unsigned i = 0; i < count; i++)
    if (one->arguments[i] != other->arguments[i])
      return (uint8_t)i;
  return (uint8_t)count;
}

int tree_syscall_join(struct calls_tree *tree, uint32_t *entry, uint32_t other)
{
  const struct tree_syscall *one = &tree->syscalls.entries[*entry], *two = &tree->syscalls.entries[other];
  struct tree_syscall common = *one;

  if (*entry == other)
    return 0;
  if (one->number != two->number) { /* one of them is ANY */
    *entry = ANY;
    return 0;
  }
  common.argument_count = arguments_shared(one, two);
  for (unsigned i = 0; i < TRACE_CALL_PATHS; i++)
    if (!is_same_path(one->paths[i], two->paths[i]))
      common.paths[i] = NULL;
  common.has_result =
    one->has_result && two->has_result && one->has_returned == two->has_returned && one->result == two->result;
  common.has_returned &= common.has_result;
  common.result = common.has_result ? common.result : 0;
  return entry_get(&tree->syscalls, &common, entry);
}
