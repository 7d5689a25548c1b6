/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds the modules and then the branches of one thread to calls.c, as a trace with one stream. The backtrace is that
 * of the thread's end. A file that was unmapped is therefore used only if no other file was mapped at its place later.
 */
#include "analysis/backtrace.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "analysis/calls.h"
#include "analysis/code.h"
#include "base/base.h"

#define PIECES_MAX 4096u

/* ---- files ---- */

/* The pieces that were asked for and found; the search starts with the last one found. */
struct piece_list {
  struct analysis_piece *pieces;
  size_t count, capacity, last;
};

static bool piece_list_has(struct piece_list *list, uint64_t address)
{
  for (size_t i = 0; i < list->count; i++) {
    size_t at = (list->last + i) % list->count;

    if (list->pieces[at].start <= address && address - list->pieces[at].start < list->pieces[at].size) {
      list->last = at;
      return true;
    }
  }
  return false;
}

/* Adds the files at an address of a branch. Returns 0 or -ENOMEM. */
static int address_add(struct piece_list *list, struct analysis_calls *calls, const struct analysis_thread *thread,
                       const struct analysis_places *places, uint32_t mark, uint64_t address)
{
  struct lb_trace_record record = {.type = LB_TRACE_MODULE};
  struct analysis_piece *added, piece;

  if (list->count >= PIECES_MAX || piece_list_has(list, address) ||
      !places->piece(places->data, thread->space, mark, address, &piece))
    return 0;
  added = array_append(&list->pieces, &list->count, &list->capacity);
  if (!added)
    return -ENOMEM;
  *added = piece;
  record.module = (struct lb_trace_module){
    .address = piece.start, .size = piece.size, .offset = piece.offset, .name = piece.path, .build_id = NULL};
  return analysis_calls_record(calls, &record);
}

static int files_add(struct analysis_calls *calls, const struct analysis_thread *thread,
                     const struct analysis_places *places, size_t first, size_t end)
{
  struct piece_list list = {0};
  int r = 0;

  for (size_t i = end; i-- > first && r >= 0;) {
    r = address_add(&list, calls, thread, places, thread->marks[i], thread->branches[i].from);
    if (r >= 0)
      r = address_add(&list, calls, thread, places, thread->marks[i], thread->branches[i].to);
  }
  free(list.pieces);
  return r;
}

/* ---- frames ---- */

static int frame_add(struct analysis_backtrace *backtrace, uint64_t address, uint32_t mark, int kind)
{
  struct analysis_frame *added = array_append(&backtrace->frames, &backtrace->count, &backtrace->capacity);

  if (!added)
    return -ENOMEM;
  *added = (struct analysis_frame){address, mark, kind};
  return 0;
}

static int frame_add_branch(struct analysis_backtrace *backtrace, const struct analysis_thread *thread, uint64_t number)
{
  const struct lb_branch *branch = &thread->branches[number];

  return frame_add(backtrace, branch->from, thread->marks[number], branch->kind);
}

static bool is_call(int kind)
{
  return kind == LB_BRANCH_NEAR_REL_CALL || kind == LB_BRANCH_NEAR_IND_CALL;
}

/* Removes frames that jumped to the oldest function, because nothing returns to them: the dynamic linker, which started
 * the program. */
static void bottom_cut(struct analysis_backtrace *backtrace)
{
  while (backtrace->count > 1 && !is_call(backtrace->frames[backtrace->count - 1].kind))
    backtrace->count--;
}

static int frames_take(struct analysis_backtrace *backtrace, const struct analysis_thread *thread,
                       const struct analysis_calls *calls)
{
  struct analysis_open_call call = {0};
  bool is_whole = false;
  int r = 0;

  for (size_t i = 0; r >= 0 && analysis_calls_open(calls, 0, i, &call); i++) {
    is_whole = call.how == ANALYSIS_CALL_START && call.branch == 0 && !thread->is_cut;
    if (call.how != ANALYSIS_CALL_START && call.branch < thread->count)
      r = frame_add_branch(backtrace, thread, call.branch);
  }
  backtrace->is_complete = is_whole && !thread->is_damaged;
  if (backtrace->is_complete)
    bottom_cut(backtrace);
  return r;
}

/* ---- the whole backtrace ---- */

/* Whether the last branch led to an address without code. Nothing ran there then, and the branch itself is the end. */
static bool ends_nowhere(const struct analysis_thread *thread, uint64_t at, const struct analysis_places *places)
{
  uint8_t byte;

  return thread->count > thread->first && thread->branches[thread->count - 1].to == at &&
         !places->code(places->data, thread->space, ANALYSIS_NOW, at, &byte, 1);
}

static int branches_feed(struct analysis_calls *calls, const struct analysis_thread *thread,
                         const struct analysis_places *places, size_t end)
{
  const struct lb_trace_record stream = {.type = LB_TRACE_STREAM, .stream = {.name = ""}};
  const struct lb_trace_record branches = {
    .type = LB_TRACE_BRANCHES,
    .branches = {.first = thread->first, .count = end - thread->first, .branches = thread->branches + thread->first}};
  int r = analysis_calls_record(calls, &stream);

  if (r >= 0)
    r = files_add(calls, thread, places, thread->first, end);
  return r < 0 ? r : analysis_calls_record(calls, &branches);
}

static int no_call(void *data, const struct analysis_call *call)
{
  (void)data, (void)call;
  return 0;
}

static int stack_make(const struct analysis_thread *thread, uint64_t at, const struct analysis_places *places,
                      const struct analysis_files *files, struct analysis_backtrace *backtrace)
{
  bool is_nowhere = ends_nowhere(thread, at, places);
  struct analysis_names *names = NULL;
  struct analysis_code *code = NULL;
  struct analysis_calls *calls = NULL;
  int r = analysis_names_new(files, &names);

  if (r >= 0)
    r = analysis_code_new(names, &code);
  if (r >= 0)
    r = analysis_calls_new(names, code, no_call, NULL, &calls);
  if (r >= 0)
    r = branches_feed(calls, thread, places, thread->count - is_nowhere);
  if (r >= 0)
    r = frame_add(backtrace, at, ANALYSIS_NOW, ANALYSIS_FRAME_HERE);
  if (r >= 0 && is_nowhere)
    r = frame_add_branch(backtrace, thread, thread->count - 1);
  if (r >= 0)
    r = frames_take(backtrace, thread, calls);
  analysis_calls_free(calls);
  analysis_code_free(code);
  analysis_names_free(names);
  return r;
}

int analysis_backtrace_make(const struct analysis_death *death, const struct analysis_places *places,
                            const struct analysis_thread *thread, const struct analysis_files *files,
                            struct analysis_backtrace *ret_backtrace)
{
  struct analysis_backtrace backtrace = {0};
  uint64_t at;
  int r = 0;

  assert(thread->first <= thread->count);
  if (places && places->piece && thread->count && analysis_death_at(death, thread, &at))
    r = stack_make(thread, at, places, files, &backtrace);
  if (r < 0)
    analysis_backtrace_done(&backtrace);
  else
    *ret_backtrace = backtrace;
  return r;
}

void analysis_backtrace_done(struct analysis_backtrace *backtrace)
{
  free(backtrace->frames);
  *backtrace = (struct analysis_backtrace){0};
}
