/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts of functions that have neither a symbol nor an unwind table: targets of calls, signals and interrupts, and of
 * jumps from other files.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/filter.h"
#include "analysis/names_inside.h"
#include "analysis/replay.h"
#include "base/base.h"

#define CALL_SHORT 8u  /* bytes: a call to the next instruction, by which code reads its own address */
#define TAIL_MAX 1024u /* starts that are collected before they are sorted, at least */
#define ALIGNMENT 16u  /* of nearly all functions */

void start_list_done(struct start_list *starts)
{
  free(starts->list);
  *starts = (struct start_list){0};
}

/* ---- the list ---- */

static int start_compare(const void *one, const void *other)
{
  return analysis_location_compare(one, other);
}

static void starts_sort(struct start_list *starts)
{
  size_t kept = 0;

  if (starts->sorted == starts->count)
    return;
  qsort(starts->list, starts->count, sizeof(*starts->list), start_compare);
  for (size_t i = 0; i < starts->count; i++)
    if (!kept || !analysis_location_is(&starts->list[kept - 1], &starts->list[i]))
      starts->list[kept++] = starts->list[i];
  starts->count = starts->sorted = kept;
}

/* The number of sorted starts at or before a location. */
static size_t starts_up_to(const struct start_list *starts, const struct analysis_location *location)
{
  struct search search = {.end = starts->sorted};

  while (search_next(&search))
    search_turn(&search, analysis_location_compare(&starts->list[search.at], location) <= 0);
  return search.first;
}

static bool starts_have(const struct start_list *starts, const struct analysis_location *location)
{
  size_t i = starts_up_to(starts, location);

  return (i && analysis_location_is(&starts->list[i - 1], location)) ||
         (starts->count > starts->sorted && analysis_location_is(&starts->list[starts->count - 1], location));
}

static bool is_same_code(const struct analysis_location *one, const struct analysis_location *other)
{
  return one->file == other->file && one->space == other->space;
}

void starts_around(struct analysis_names *names, const struct analysis_location *location, uint64_t *ret_before,
                   uint64_t *ret_after)
{
  struct start_list *starts = &names->starts;
  size_t i;

  starts_sort(starts);
  assert(starts->sorted == starts->count);
  i = starts_up_to(starts, location);
  *ret_before = i && is_same_code(&starts->list[i - 1], location) ? starts->list[i - 1].address : 0;
  *ret_after = i < starts->count && is_same_code(&starts->list[i], location) ? starts->list[i].address : UINT64_MAX;
}

/* Whether symbols or unwind tables describe the location. The name itself does not matter. */
static bool location_is_known(struct analysis_names *names, const struct analysis_location *location)
{
  struct analysis_name name;
  struct eh_range range;

  if (location->file >= names->count)
    return false;
  if (jit_names_is_file(names, location->file))
    return true;
  return (names_file_has_symbols(&names->list[location->file]) &&
          names_file_find(&names->list[location->file], location->address, &name)) ||
         eh_range_find(names, location->file, location->address, &range);
}

int analysis_starts_add(struct analysis_names *names, const struct analysis_location *location)
{
  struct start_list *starts = &names->starts;
  struct analysis_location *added;

  if (starts_have(starts, location) || location_is_known(names, location))
    return 0;
  if (starts->count - starts->sorted > starts->sorted + TAIL_MAX)
    starts_sort(starts);
  if (starts->count >= ANALYSIS_STARTS_MAX)
    return 0;
  added = array_append(&starts->list, &starts->count, &starts->capacity);
  if (!added)
    return -ENOMEM;
  *added = *location;
  return 1;
}

/* ---- branches ---- */

static bool kind_enters(unsigned kind)
{
  return kind == LB_BRANCH_NEAR_REL_CALL || kind == LB_BRANCH_NEAR_IND_CALL || kind == LB_BRANCH_FAR_CALL ||
         kind == LB_BRANCH_NEAR_IND_JMP || analysis_kind_is_event(kind);
}

/* Whether there is a call right before a location. If so, longjmp led there: setjmp had returned there before. */
static bool is_behind_call(struct analysis_names *names, const struct analysis_location *location)
{
  struct analysis_location at = *location;
  uint8_t bytes[7];

  at.address -= sizeof(bytes);
  if (!(location->address % ALIGNMENT) || analysis_names_code(names, &at, bytes, sizeof(bytes)) < sizeof(bytes))
    return false;
  return bytes[2] == 0xE8 || (bytes[5] == 0xFF && (bytes[6] & 0x38) == 0x10) ||
         (bytes[4] == 0xFF && (bytes[5] & 0x38) == 0x10) || (bytes[1] == 0xFF && (bytes[2] & 0x38) == 0x10);
}

int analysis_starts_jump(struct analysis_names *names, const struct analysis_location *from,
                         const struct analysis_location *to, unsigned kind)
{
  if (!kind_enters(kind))
    return 0;
  if (kind == LB_BRANCH_NEAR_IND_JMP) { /* jumps of the loader to the program, and of stubs of the PLT */
    if (from->file == to->file || is_behind_call(names, to))
      return 0;
  } else if (is_same_code(from, to) && to->address - from->address < CALL_SHORT) {
    return 0;
  }
  return analysis_starts_add(names, to);
}

/* ---- a whole trace ---- */

#define SEEN (1u << 12) /* hash of branches that need not be checked again */

struct seen {
  uint64_t from, to;
  uint32_t space, generation;
};

struct starts_reading {
  struct analysis_names *names;
  struct lb_trace_reader *reader;
  bool has_counted;  /* the reader has counts that were not fetched yet */
  uint64_t branches; /* number of branches read */
  struct seen seen[SEEN];
};

/* `count` is where the branch is from, if it was counted; else NULL. */
static int branch_take(struct starts_reading *reading, uint32_t space, uint64_t from, uint64_t to, unsigned kind,
                       const struct lb_trace_count *count)
{
  uint64_t hash = (from ^ to << 1 ^ (uint64_t)space << 40) * UINT64_C(0x9E3779B97F4A7C15);
  struct seen *seen = &reading->seen[hash >> 52];
  uint32_t generation = analysis_names_generation(reading->names);
  struct analysis_location one, other;

  if (seen->from == from && seen->to == to && seen->space == space && seen->generation == generation)
    return 0;
  *seen = (struct seen){from, to, space, generation};
  one = analysis_names_locate(reading->names, space, from);
  other = count ? analysis_names_target(reading->names, count) : analysis_names_locate(reading->names, space, to);
  return analysis_starts_jump(reading->names, &one, &other, kind);
}

static int count_take(void *context, const struct lb_trace_count *count)
{
  int r = count->taken && kind_enters(count->kind)
            ? branch_take(context, count->space, count->from, count->to, count->kind, count)
            : 0;

  return r < 0 ? r : 0;
}

static int branches_take(struct starts_reading *reading, const struct lb_trace_branches *batch)
{
  uint32_t space = analysis_names_space(reading->names, batch->stream);

  for (size_t i = 0; i < batch->count; i++) {
    const struct lb_branch *branch = &batch->branches[i];

    if (kind_enters(branch->kind) &&
        branch_take(reading, space, analysis_from(branch), analysis_to(branch), branch->kind, NULL) < 0)
      return -ENOMEM;
  }
  return 0;
}

static int counts_take(struct starts_reading *reading)
{
  bool has_any = reading->has_counted;

  reading->has_counted = false;
  return has_any ? lb_trace_reader_counts(reading->reader, count_take, reading) : 0;
}

static int record_take(struct starts_reading *reading, const struct lb_trace_record *record)
{
  int r = 0;

  if (record->type == LB_TRACE_BRANCHES) {
    reading->branches += record->branches.count;
    return branches_take(reading, &record->branches);
  }
  if (record->type == LB_TRACE_COUNTED) {
    reading->branches += record->counted.count;
    reading->has_counted = true;
  }
  if (analysis_names_displaces(reading->names, record))
    r = counts_take(reading);
  return r < 0 ? r : analysis_names_record(reading->names, record);
}

int analysis_starts_read(struct analysis_names *names, struct lb_trace_reader *reader, analysis_progress *tell,
                         void *data)
{
  struct starts_reading *reading = calloc(1, sizeof(*reading));
  struct lb_trace_record record;
  int r = reading ? 0 : -ENOMEM;

  if (reading) {
    reading->names = names;
    reading->reader = reader;
    lb_trace_reader_rewind(reader);
    lb_trace_reader_count(reader, LB_TRACE_ALL);
  }
  while (r >= 0 && lb_trace_reader_next(reader, &record) > 0) {
    r = record_take(reading, &record);
    if (tell)
      tell(data, reading->branches);
  }
  if (r >= 0)
    r = counts_take(reading);
  lb_trace_reader_rewind(reader);
  free(reading);
  return r < 0 ? r : 0;
}

/* ---- users ---- */

bool analysis_use_needs_starts(const struct analysis_use *use)
{
  return use->has_calls || use->is_part || (use->filter && analysis_filter_needs_starts(use->filter));
}
