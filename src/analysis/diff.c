/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when branches of two runs are the same, and where two runs meet again.
 */
#include "analysis/diff.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"

#define ANSWERS (1u << 14)
#define PAGE UINT64_C(4096)
#define NO_FILE_ID 1u

struct answer {
  uint64_t address;
  uint32_t space, generation; /* 0: empty */
  struct analysis_diff_key key;
};

struct analysis_diff_keys {
  struct analysis_names *names;
  const struct analysis_diff_files *other;
  bool is_process;
  const char *by_symbol;
  struct answer answers[ANSWERS];
};

/* ---- files ---- */

static uint64_t hash_add(uint64_t hash, const void *bytes, size_t size)
{
  const uint8_t *byte = bytes;

  for (size_t i = 0; i < size; i++)
    hash = (hash ^ byte[i]) * UINT64_C(0x100000001B3);
  return hash ^ hash >> 29;
}

/* Never one of the small numbers that have a special meaning. */
static uint64_t file_id(const uint8_t *build_id, size_t build_id_size, const char *path)
{
  uint64_t hash = UINT64_C(0xCBF29CE484222325);

  hash = build_id_size ? hash_add(hash + 1, build_id, build_id_size) : hash_add(hash, path, strlen(path));
  return hash | UINT64_C(1) << 63;
}

static bool files_have(const struct analysis_diff_files *files, uint64_t id)
{
  for (size_t i = 0; i < files->count; i++)
    if (files->ids[i] == id)
      return true;
  return false;
}

int analysis_diff_files_record(struct analysis_diff_files *files, const struct lb_trace_record *record)
{
  uint64_t *added, id;

  if (record->type != LB_TRACE_MODULE || record->module.is_gone)
    return 0;
  id = file_id(record->module.build_id, record->module.build_id_size, record->module.name);
  if (files_have(files, id) || files->count >= ANALYSIS_DIFF_FILES_MAX)
    return 0;
  added = array_append(&files->ids, &files->count, &files->capacity);
  if (!added)
    return -ENOMEM;
  *added = id;
  return 0;
}

void analysis_diff_files_done(struct analysis_diff_files *files)
{
  free(files->ids);
  *files = (struct analysis_diff_files){0};
}

/* ---- keys ---- */

int analysis_diff_keys_new(struct analysis_names *names, const struct analysis_diff_files *other, bool is_process,
                           struct analysis_diff_keys **ret_keys)
{
  struct analysis_diff_keys *keys = calloc(1, sizeof(*keys));

  if (!keys)
    return -ENOMEM;
  keys->names = names;
  keys->other = other;
  keys->is_process = is_process;
  *ret_keys = keys;
  return 0;
}

void analysis_diff_keys_free(struct analysis_diff_keys *keys)
{
  free(keys);
}

const char *analysis_diff_keys_by_symbol(const struct analysis_diff_keys *keys)
{
  return keys->by_symbol;
}

static struct analysis_diff_key key_by_symbol(struct analysis_diff_keys *keys, const struct analysis_location *location,
                                              const struct analysis_file *file)
{
  const uint64_t start = UINT64_C(0x84222325CBF29CE4);
  struct analysis_name name;
  const char *word;

  keys->by_symbol = file->name;
  if (!analysis_names_symbol(keys->names, location, &name))
    return (struct analysis_diff_key){NO_FILE_ID, location->address};
  word = name.mangled ? name.mangled : name.symbol ? name.symbol : name.module;
  return (struct analysis_diff_key){hash_add(start, word, strlen(word)) | UINT64_C(1) << 63, name.offset};
}

/* A path that is not printable is not matched here: such a file without a build-id is compared by symbols. */
static struct analysis_diff_key key_make(struct analysis_diff_keys *keys, uint32_t space, uint64_t address)
{
  struct analysis_location location = analysis_names_locate(keys->names, space, address);
  struct analysis_file file;
  uint64_t id;

  if (location.file == ANALYSIS_NO_FILE || !analysis_names_file(keys->names, location.file, &file))
    return (struct analysis_diff_key){NO_FILE_ID, keys->is_process ? address % PAGE : address};
  id = file_id(file.build_id, file.build_id_size, file.name);
  if (files_have(keys->other, id))
    return (struct analysis_diff_key){id, location.address};
  return key_by_symbol(keys, &location, &file);
}

struct analysis_diff_key analysis_diff_key(struct analysis_diff_keys *keys, uint32_t space, uint64_t address)
{
  struct answer *answer = &keys->answers[(address ^ address >> 14) * 0x9E3779B1u >> 8 & (ANSWERS - 1)];
  uint32_t generation = analysis_names_generation(keys->names);

  if (answer->address != address || answer->space != space || answer->generation != generation)
    *answer = (struct answer){address, space, generation, key_make(keys, space, address)};
  return answer->key;
}

/* ---- meeting again ---- */

static uint64_t branch_hash(const struct analysis_diff_branch *branch)
{
  uint64_t hash = branch->from.id * 3 ^ branch->to.id * 5 ^ branch->branch.kind;

  hash = (hash ^ branch->from.address) * UINT64_C(0x9E3779B97F4A7C15);
  hash = (hash ^ hash >> 32 ^ branch->to.address) * UINT64_C(0xD6E8FEB86659FD93);
  return hash ^ hash >> 32;
}

/* For each branch a hash of it and those that follow, if enough branches follow. NULL without memory. */
static uint64_t *hashes_of_runs(const struct analysis_diff_branch *branches, size_t count, size_t run)
{
  uint64_t *hashes = calloc(count + 1, sizeof(*hashes));

  for (size_t i = 0; hashes && i < count; i++)
    hashes[i] = branch_hash(&branches[i]);
  for (size_t i = 0; hashes && i + run <= count; i++) {
    uint64_t hash = 0;

    for (size_t k = 0; k < run; k++)
      hash = (hash ^ hashes[i + k]) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 47);
    hashes[i] = hash;
  }
  return hashes;
}

/* The first position of a hash, or HASH_NONE. */
static uint32_t place_find(const struct hash_index *index, const uint64_t *hashes, uint64_t hash)
{
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(index, hash_start(hash), &at)) != HASH_NONE;)
    if (hashes[number] == hash)
      break;
  return number;
}

static int places_make(struct hash_index *index, const uint64_t *hashes, size_t count)
{
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++)
    if (place_find(index, hashes, hashes[i]) == HASH_NONE)
      r = hash_index_add(index, hash_start(hashes[i]), i);
  return r;
}

static bool runs_are_same(const struct analysis_diff_branch *one, const struct analysis_diff_branch *other, size_t run)
{
  for (size_t i = 0; i < run; i++)
    if (!analysis_diff_is_same(&one[i], &other[i]))
      return false;
  return true;
}

int analysis_diff_rejoin(const struct analysis_diff_branch *one, size_t one_count,
                         const struct analysis_diff_branch *other, size_t other_count, size_t run, size_t *ret_one,
                         size_t *ret_other)
{
  size_t one_runs = one_count >= run ? one_count - run + 1 : 0, best = SIZE_MAX;
  size_t other_runs = other_count >= run ? other_count - run + 1 : 0;
  uint64_t *one_hashes = hashes_of_runs(one, one_count, run), *other_hashes = hashes_of_runs(other, other_count, run);
  struct hash_index places = {0};
  int r = one_hashes && other_hashes ? places_make(&places, one_hashes, one_runs) : -ENOMEM;

  assert(run);
  for (size_t j = 0; r >= 0 && j < other_runs && j < best; j++) {
    uint32_t at = place_find(&places, one_hashes, other_hashes[j]);

    if (at != HASH_NONE && at + j < best && runs_are_same(&one[at], &other[j], run)) {
      best = at + j;
      *ret_one = at;
      *ret_other = j;
    }
  }
  hash_index_done(&places);
  free(one_hashes);
  free(other_hashes);
  return r < 0 ? r : best != SIZE_MAX;
}
