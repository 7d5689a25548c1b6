/* SPDX-License-Identifier: Apache-2.0
 *
 * The counts of one binary, for profiles.
 */
#include "export/binary.h"

#include <errno.h>
#include <string.h>

#include "symbol/symbol.h"

bool binary_kind_is_near(unsigned kind)
{
  switch (kind) {
  case LB_BRANCH_JCC:
  case LB_BRANCH_NEAR_REL_CALL:
  case LB_BRANCH_NEAR_IND_CALL:
  case LB_BRANCH_NEAR_RET:
  case LB_BRANCH_NEAR_IND_JMP:
  case LB_BRANCH_NEAR_REL_JMP:
    return true;
  default:
    return false;
  }
}

/* ---- the file ---- */

const char *binary_name(const struct export_job *job, uint32_t file)
{
  struct analysis_file named;

  return analysis_names_file(job->names, file, &named) ? named.name : "?";
}

/* Without the file, or with another one, the addresses cannot be found in it. */
static int binary_check(struct export_job *job, uint32_t number)
{
  const struct symbol_layout *layout = analysis_names_layout(job->names, number);
  struct analysis_file file = {0};

  analysis_names_file(job->names, number, &file);
  if (!layout)
    return export_fail(job, "%s: %s; this format needs the file", file.name,
                       file.problem ? file.problem : "nothing of it ran in this trace");
  if (layout->is_32)
    return export_fail(job, "%s: 32-bit code: this format is for 64-bit code", file.name);
  if (file.build_id_size &&
      (file.build_id_size != layout->build_id_size || memcmp(file.build_id, layout->build_id, file.build_id_size)))
    return export_fail(job, "%s: not the file that ran (another build-id); this format needs that one", file.name);
  return 0;
}

/* Several files may have been asked for. */
static void others_warn(struct export_job *job, uint32_t number)
{
  struct analysis_file file;

  for (uint32_t i = number + 1; export_module(job) && analysis_names_file(job->names, i, &file); i++)
    if (export_has_file(job, i)) {
      export_warn(job, "the profile is about %s; %s, which was also asked for, needs a separate profile",
                  binary_name(job, number), file.name);
      return;
    }
}

int binary_open(struct export_job *job, uint32_t *ret_file, struct symbol_module **ret_module)
{
  int r = export_file(job, ret_file);

  if (r >= 0)
    r = binary_check(job, *ret_file);
  if (r >= 0) {
    others_warn(job, *ret_file);
    r = symbol_module_open(binary_name(job, *ret_file), NULL, ret_module);
    if (r < 0 && r != -ENOMEM)
      r = export_fail(job, "%s: %s; this format needs the file", binary_name(job, *ret_file), lb_strerror(r));
  }
  return r;
}

bool binary_offset(const struct export_job *job, uint32_t file, uint64_t address, uint64_t *ret_offset)
{
  const struct symbol_layout *layout = analysis_names_layout(job->names, file);

  for (size_t i = 0; layout && i < layout->count; i++)
    if (address - layout->pieces[i].address < layout->pieces[i].size) {
      *ret_offset = layout->pieces[i].offset + (address - layout->pieces[i].address);
      return true;
    }
  return false;
}

int binary_fail(struct export_job *job, uint32_t file)
{
  return export_fail(job, "nothing of %s%s ran in this trace: the profile would be empty", binary_name(job, file),
                     job->filter ? " that matches the options" : "");
}

/* ---- straight code ---- */

static int passed_visit(struct export_job *job, const struct binary_visitor *visitor, uint32_t file)
{
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_all_jumps(job->counts, &count);

  for (size_t i = 0; i < count; i++) {
    int r = jumps[i].is_passed && jumps[i].from.file == file && export_has_location(job, &jumps[i].from)
              ? visitor->passed(job, jumps[i].from.address, jumps[i].to.address, jumps[i].count)
              : 0;

    if (r < 0)
      return r;
  }
  return 0;
}

int binary_straights(struct export_job *job, const struct binary_visitor *visitor)
{
  size_t count, seen = 0;
  const struct analysis_block *blocks = analysis_counts_blocks(job->counts, &count);
  uint32_t file;
  int r = export_file(job, &file);

  if (r >= 0)
    r = binary_check(job, file);
  for (size_t i = 0; i < count && r >= 0; i++) {
    if (blocks[i].first.file != file)
      continue;
    seen++;
    r = visitor->straight(job, blocks[i].first.address, blocks[i].last, blocks[i].executed);
  }
  if (r >= 0 && !seen)
    return binary_fail(job, file);
  return r < 0 || !visitor->passed ? r : passed_visit(job, visitor, file);
}

/* ---- branches ---- */

/* Lists calls by their return addresses. */
static int calls_list(struct export_job *job, uint32_t file, struct tally *calls)
{
  size_t count;
  const struct analysis_block *blocks = analysis_counts_all_blocks(job->counts, &count);
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++)
    if (blocks[i].first.file == file && blocks[i].end &&
        (blocks[i].kind == LB_BRANCH_NEAR_REL_CALL || blocks[i].kind == LB_BRANCH_NEAR_IND_CALL))
      r = tally_add(calls, blocks[i].end, blocks[i].last, 1);
  tally_finish(calls);
  return r;
}

static uint64_t call_before(const struct tally *calls, uint64_t next)
{
  size_t i = tally_seek(calls, next);

  return i < calls->count && calls->items[i].from == next ? calls->items[i].to : 0;
}

static int return_visit(struct export_job *job, const struct binary_visitor *visitor, uint32_t file,
                        const struct binary_branch *branch)
{
  const struct analysis_location call = {.file = file, .address = branch->call};

  if (!branch->call || !visitor->returned || !export_has_location(job, &call))
    return 0;
  return visitor->returned(job, branch->call, branch->to, branch->count);
}

static int jumps_visit(struct export_job *job, const struct binary_visitor *visitor, uint32_t file,
                       const struct tally *calls)
{
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_all_jumps(job->counts, &count);
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    const struct analysis_jump *jump = &jumps[i];
    struct binary_branch branch = {
      .has_from = jump->from.file == file,
      .has_to = jump->to.file == file,
      .from = jump->from.address,
      .to = jump->to.address,
      .kind = jump->kind,
      .count = jump->count,
    };

    if (jump->is_passed || !(branch.has_from || branch.has_to) || !binary_kind_is_near(branch.kind))
      continue;
    if (branch.kind == LB_BRANCH_NEAR_RET && branch.has_to)
      branch.call = call_before(calls, branch.to);
    r = return_visit(job, visitor, file, &branch);
    if (r >= 0 && (!job->filter || analysis_filter_jump(job->filter, jump)))
      r = visitor->branch(job, &branch);
  }
  return r;
}

int binary_branches(struct export_job *job, const struct binary_visitor *visitor)
{
  struct tally calls = {0};
  uint32_t file;
  int r = export_file(job, &file);

  if (r >= 0)
    r = calls_list(job, file, &calls);
  if (r >= 0)
    r = jumps_visit(job, visitor, file, &calls);
  tally_done(&calls);
  return r;
}
