/* SPDX-License-Identifier: Apache-2.0
 *
 * llvm-profgen's unsymbolized profile (--unsymbolized-profile): the number of straight pieces, and "from-to:count" for
 * each; the number of branches, and "from->to:count" for each. Addresses are in hex, relative to the first executable
 * segment; an end outside of the binary is address 1, as in llvm-profgen itself.
 */
#include "export/binary.h"

#include "symbol/symbol.h"

#define ELSEWHERE UINT64_C(1)

struct profgen {
  uint64_t base;
  bool is_counting; /* first pass: only counts them */
  uint64_t count;
};

static int put_straight(struct export_job *job, uint64_t first, uint64_t last, uint64_t count)
{
  struct profgen *profgen = job->state;

  profgen->count++;
  if (!profgen->is_counting)
    export_print(job, "%llx-%llx:%llu\n", (unsigned long long)(first - profgen->base),
                 (unsigned long long)(last - profgen->base), (unsigned long long)count);
  return 0;
}

static int put_branch(struct export_job *job, const struct binary_branch *branch)
{
  struct profgen *profgen = job->state;
  uint64_t from = branch->has_from ? branch->from : ELSEWHERE;
  uint64_t to = branch->has_to ? branch->to : ELSEWHERE;

  profgen->count++;
  if (!profgen->is_counting)
    export_print(job, "%llx->%llx:%llu\n", (unsigned long long)(from - profgen->base),
                 (unsigned long long)(to - profgen->base), (unsigned long long)branch->count);
  return 0;
}

static const struct binary_visitor visitor = {.straight = put_straight, .branch = put_branch};

/* Writes the number of lines, then the lines. */
static int list_put(struct export_job *job, int (*walk)(struct export_job *, const struct binary_visitor *))
{
  struct profgen *profgen = job->state;
  int r;

  profgen->count = 0;
  profgen->is_counting = true;
  r = walk(job, &visitor);
  export_print(job, "%llu\n", (unsigned long long)profgen->count);
  profgen->is_counting = false;
  return r < 0 ? r : walk(job, &visitor);
}

/* The start of the first executable segment, rounded down to its page. */
static bool base_find(const struct export_job *job, uint32_t file, uint64_t *ret_base)
{
  const struct symbol_layout *layout = analysis_names_layout(job->names, file);

  for (size_t i = 0; layout && i < layout->count; i++)
    if (layout->pieces[i].is_executed) {
      *ret_base = layout->pieces[i].address & ~UINT64_C(0xFFF);
      return true;
    }
  return false;
}

static int profgen_end(struct export_job *job)
{
  struct profgen *profgen = job->state;
  struct symbol_module *module = NULL;
  bool is_separate;
  uint32_t file;
  int r = binary_open(job, &file, &module);

  if (r < 0)
    return r;
  if (!symbol_module_dwarf(module, &is_separate))
    r = export_fail(job, "%s has no debug information: llvm-profgen needs it; compile it with -g",
                    binary_name(job, file));
  else if (is_separate)
    export_warn(job,
                "the debug information of %s is in a separate file: name that to llvm-profgen with "
                "--debug-binary",
                binary_name(job, file));
  symbol_module_close(module);
  if (r >= 0 && !base_find(job, file, &profgen->base))
    r = export_fail(job, "%s has no executable segment", binary_name(job, file));
  if (r >= 0)
    r = list_put(job, binary_straights);
  return r < 0 ? r : list_put(job, binary_branches);
}

const struct export_format export_format_profgen = {
  .name = "profgen",
  .what = "unsymbolized profile of a binary, for llvm-profgen --unsymbolized-profile",
  .suffix = ".profgen",
  .needs = EXPORT_COUNTS,
  .state_size = sizeof(struct profgen),
  .end = profgen_end,
};
