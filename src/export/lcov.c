/* SPDX-License-Identifier: Apache-2.0
 *
 * lcov's coverage file: for each file of source its functions (FN, FNDA), branches (BRDA) and lines (DA) with exact
 * counts. A conditional branch of the machine code is a block with two ways: 0 is not taken, 1 is taken. System headers
 * and sources are left out, and also files that cannot be read, because genhtml stops at such a file.
 */
#include "export/lcov.h"

#include <string.h>
#include <unistd.h>

/* The items that are left to write, in the order of the files. */
struct lcov_rest {
  const struct lcov_line *lines;
  const struct lcov_function *functions;
  const struct lcov_branch *branches;
  size_t line_count, function_count, branch_count;
  size_t written, unreadable, system; /* files */
};

bool lcov_is_system(const char *path)
{
  return !strncmp(path, "/usr/", 5) && strncmp(path, "/usr/local/", 11) != 0 && strncmp(path, "/usr/src/", 9) != 0;
}

/* Whether the source file is written. Also counts the others. */
static bool source_is_wanted(const struct export_job *job, struct lcov_rest *rest, const char *path)
{
  bool is_system = lcov_is_system(path), is_readable = *path == '/' && access(path, R_OK) == 0;

  if (job->options.has_all_sources || (!is_system && is_readable))
    return true;
  rest->system += is_system;
  rest->unreadable += !is_system;
  return false;
}

/* ---- a file ---- */

static size_t functions_take(struct lcov_rest *rest, const char *file)
{
  size_t count = 0;

  while (rest->function_count && strcmp(rest->functions->file, file) < 0)
    rest->functions++, rest->function_count--;
  while (count < rest->function_count && !strcmp(rest->functions[count].file, file))
    count++;
  return count;
}

static size_t branches_take(struct lcov_rest *rest, const char *file)
{
  size_t count = 0;

  while (rest->branch_count && strcmp(rest->branches->file, file) < 0)
    rest->branches++, rest->branch_count--;
  while (count < rest->branch_count && !strcmp(rest->branches[count].file, file))
    count++;
  return count;
}

static void put_functions(struct export_job *job, const struct lcov_function *functions, size_t count)
{
  size_t hit = 0;

  for (size_t i = 0; i < count; i++)
    export_print(job, "FN:%u,%s\n", functions[i].line, functions[i].name);
  for (size_t i = 0; i < count; i++) {
    export_print(job, "FNDA:%llu,%s\n", (unsigned long long)functions[i].calls, functions[i].name);
    hit += functions[i].calls > 0;
  }
  export_print(job, "FNF:%zu\nFNH:%zu\n", count, hit);
}

static void put_branch(struct export_job *job, const struct lcov_branch *branch, size_t block, unsigned way,
                       uint64_t count)
{
  export_print(job, "BRDA:%u,%zu,%u,", branch->line, block, way);
  if (branch->taken || branch->passed)
    export_print(job, "%llu\n", (unsigned long long)count);
  else
    export_print(job, "-\n");
}

static void put_branches(struct export_job *job, const struct lcov_branch *branches, size_t count)
{
  size_t hit = 0, block = 0;

  for (size_t i = 0; i < count; i++) {
    block = i && branches[i - 1].line == branches[i].line ? block + 1 : 0;
    put_branch(job, &branches[i], block, 0, branches[i].passed);
    put_branch(job, &branches[i], block, 1, branches[i].taken);
    hit += (branches[i].passed > 0) + (size_t)(branches[i].taken > 0);
  }
  export_print(job, "BRF:%zu\nBRH:%zu\n", 2 * count, hit);
}

static void put_lines(struct export_job *job, const struct lcov_line *lines, size_t count)
{
  size_t hit = 0;

  for (size_t i = 0; i < count; i++) {
    export_print(job, "DA:%u,%llu\n", lines[i].line, (unsigned long long)lines[i].executed);
    hit += lines[i].executed > 0;
  }
  export_print(job, "LF:%zu\nLH:%zu\n", count, hit);
}

static void put_file(struct export_job *job, struct lcov_rest *rest, size_t lines)
{
  const char *path = rest->lines->file;
  size_t functions = functions_take(rest, path), branches = branches_take(rest, path);

  export_print(job, "TN:\nSF:%s\n", path);
  put_functions(job, rest->functions, functions);
  put_branches(job, rest->branches, branches);
  put_lines(job, rest->lines, lines);
  export_print(job, "end_of_record\n");
  rest->written++;
}

static void put_files(struct export_job *job, struct lcov_rest *rest)
{
  while (rest->line_count) {
    const char *path = rest->lines->file;
    size_t count = 1;

    while (count < rest->line_count && !strcmp(rest->lines[count].file, path))
      count++;
    if (source_is_wanted(job, rest, path))
      put_file(job, rest, count);
    rest->lines += count;
    rest->line_count -= count;
  }
}

/* ---- the format ---- */

static int lcov_verdict(struct export_job *job, const struct lcov_rest *rest)
{
  if (!rest->written && !rest->system && !rest->unreadable && job->filter)
    return export_fail(job, "no source line is known for the code that matches the options: it needs debug information "
                            "(-g), or its debug file");
  if (!rest->written && !rest->system && !rest->unreadable)
    return export_fail(job, "no source line is known for the code that ran: it needs debug information (-g), or its "
                            "debug file; the system's programs are left out without --all-sources");
  if (!rest->written)
    return export_fail(job,
                       "%zu source files belong to the system and %zu cannot be read: none is left; --all-sources "
                       "includes them",
                       rest->system, rest->unreadable);
  if (rest->unreadable)
    export_warn(job, "%zu source files cannot be read and are left out; --all-sources includes them", rest->unreadable);
  return 0;
}

static int lcov_end(struct export_job *job)
{
  struct lcov *lcov = job->state;
  struct lcov_rest rest;
  int r = lcov_collect(job, lcov);

  if (r < 0)
    return r;
  rest = (struct lcov_rest){
    .lines = lcov->lines,
    .functions = lcov->functions,
    .branches = lcov->branches,
    .line_count = lcov->line_count,
    .function_count = lcov->function_count,
    .branch_count = lcov->branch_count,
  };
  put_files(job, &rest);
  r = lcov_verdict(job, &rest);
  if (r >= 0 && analysis_counts_totals(job->counts)->has_forgotten)
    export_warn(job, "too many different blocks ran: some are not counted");
  return r;
}

static void lcov_free(struct export_job *job)
{
  lcov_done(job->state);
}

const struct export_format export_format_lcov = {
  .name = "lcov",
  .what = "coverage of source lines, functions and branches, for genhtml",
  .suffix = ".info",
  .needs = EXPORT_COUNTS,
  .state_size = sizeof(struct lcov),
  .end = lcov_end,
  .done = lcov_free,
};
