/* SPDX-License-Identifier: Apache-2.0
 *
 * BOLT's pre-aggregated profile: perf2bolt -pa. Lines "B from to count mispredicted" for taken branches and "F start
 * end count" for straight execution from one instruction to another; addresses are those that the file is linked for,
 * in hex without 0x. An end outside of the binary is X:0.
 *
 * perf has straight pieces only between taken branches. Here they are blocks, plus one from each branch that was not
 * taken, and from each call that returned, to the next instruction: this gives every edge of BOLT's graph its exact
 * count. BOLT has no graph for code outside of functions, such as the procedure linkage table, and for code that falls
 * through from one function into the next. Such pieces would be counted as mismatches, so they are left out or cut.
 */
#include "export/binary.h"

struct bolt {
  uint32_t file;
  struct binary_functions functions;
};

static void put_piece(struct export_job *job, uint64_t first, uint64_t last, uint64_t count)
{
  if (first != last)
    export_print(job, "F %llx %llx %llu\n", (unsigned long long)first, (unsigned long long)last,
                 (unsigned long long)count);
}

/* The last instruction before `end` in a piece that begins at `first`. */
static uint64_t last_before(struct export_job *job, uint64_t first, uint64_t end)
{
  const struct bolt *bolt = job->state;
  struct analysis_location location = {.file = bolt->file, .address = first};
  struct analysis_instruction instruction;

  while (analysis_code_instruction(job->code, &location, &instruction) && instruction.length < end - location.address)
    location.address += instruction.length;
  return location.address;
}

static int put_straight(struct export_job *job, uint64_t first, uint64_t last, uint64_t count)
{
  const struct bolt *bolt = job->state;
  const struct binary_function *function = binary_functions_find(&bolt->functions, first);

  while (function && last >= function->limit) {
    put_piece(job, first, last_before(job, first, function->limit), count);
    first = function->limit;
    function = binary_functions_find(&bolt->functions, first);
  }
  if (function)
    put_piece(job, first, last, count);
  return 0;
}

/* Puts the piece if all of it is in one function. */
static int put_passed(struct export_job *job, uint64_t from, uint64_t next, uint64_t count)
{
  const struct bolt *bolt = job->state;
  const struct binary_function *function = binary_functions_find(&bolt->functions, from);

  if (function && next < function->limit)
    put_piece(job, from, next, count);
  return 0;
}

static void put_end(struct export_job *job, bool is_here, uint64_t address)
{
  if (is_here)
    export_print(job, " %llx", (unsigned long long)address);
  else
    export_print(job, " X:0");
}

/* A return from elsewhere to the instruction after a call is left out: BOLT would take it as another entry of the
 * function. */
static int put_branch(struct export_job *job, const struct binary_branch *branch)
{
  const struct bolt *bolt = job->state;

  if ((branch->call && !branch->has_from) ||
      (branch->has_from && !binary_functions_find(&bolt->functions, branch->from)))
    return 0;
  export_print(job, "B");
  put_end(job, branch->has_from, branch->from);
  put_end(job, branch->has_to, branch->to);
  export_print(job, " %llu 0\n", (unsigned long long)branch->count);
  return 0;
}

static int bolt_end(struct export_job *job)
{
  static const struct binary_visitor visitor = {put_straight, put_passed, put_passed, put_branch};
  struct bolt *bolt = job->state;
  int r = export_file(job, &bolt->file);

  if (r >= 0)
    r = binary_functions_read(job, &bolt->functions);
  if (r >= 0)
    r = binary_straights(job, &visitor);
  return r < 0 ? r : binary_branches(job, &visitor);
}

static void bolt_done(struct export_job *job)
{
  struct bolt *bolt = job->state;

  binary_functions_done(&bolt->functions);
}

const struct export_format export_format_bolt = {
  .name = "bolt",
  .what = "pre-aggregated profile of a binary, for perf2bolt -pa",
  .suffix = ".preagg",
  .needs = EXPORT_COUNTS,
  .state_size = sizeof(struct bolt),
  .end = bolt_end,
  .done = bolt_done,
};
