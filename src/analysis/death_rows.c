/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the branches of a thread that its report shows. A program that aborts, or throws an exception that nothing
 * catches, ends with hundreds of branches in libraries: the last ones in its own code come first.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/death.h"
#include "base/base.h"
#include "symbol/symbol.h"

#define PLT_ENTRY 16u /* bytes */

bool analysis_death_at(const struct analysis_death *death, const struct analysis_thread *thread, uint64_t *ret_address)
{
  if (death->ending == ANALYSIS_DIED && thread == death->threads)
    *ret_address = death->rip;
  else if (thread->count)
    *ret_address = thread->branches[thread->count - 1].to;
  else
    return false;
  return true;
}

/* ---- the program's own code ---- */

static bool path_is_library(const char *path)
{
  static const char *const folders[] = {"/lib/",         "/lib32/",     "/lib64/",     "/libx32/",
                                        "/usr/lib/",     "/usr/lib32/", "/usr/lib64/", "/usr/libx32/",
                                        "/usr/libexec/", "/nix/store/", "/gnu/store/"};

  if (*path == '[') /* [vdso] */
    return true;
  for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
    if (!strncmp(path, folders[i], strlen(folders[i])))
      return true;
  return false;
}

/* The last piece that was found: most branches are in the same piece as the one before. */
struct own_state {
  const struct analysis_death *death;
  const struct analysis_places *places;
  const struct analysis_thread *thread;
  struct analysis_piece piece;
  bool is_own;
};

static bool address_is_own(struct own_state *state, uint32_t mark, uint64_t address)
{
  const struct analysis_places *places = state->places;
  struct analysis_piece piece;

  if (address - state->piece.start < state->piece.size)
    return state->is_own;
  if (!places->piece(places->data, state->thread->space, mark, address, &piece))
    return true;
  state->piece = piece;
  state->is_own = !strcmp(piece.path, state->death->program) || !path_is_library(piece.path);
  return state->is_own;
}

static bool branch_is_own(struct own_state *state, size_t number)
{
  const struct lb_branch *branch = &state->thread->branches[number];

  return address_is_own(state, state->thread->marks[number], branch->from) ||
         address_is_own(state, analysis_thread_to_mark(state->thread, number), branch->to);
}

bool analysis_death_branch_is_own(const struct analysis_death *death, const struct analysis_places *places,
                                  const struct analysis_thread *thread, size_t number)
{
  struct own_state state = {.death = death, .places = places, .thread = thread};

  assert(number < thread->count);
  return !places || !places->piece || branch_is_own(&state, number);
}

/* ---- choosing ---- */

static int row_add(struct analysis_death_rows *rows, size_t number)
{
  size_t *added = array_append(&rows->numbers, &rows->count, &rows->capacity);

  if (!added)
    return -ENOMEM;
  *added = number;
  return 0;
}

/* Adds the last `most` branches before `end`, of any code. */
static int rows_last(struct analysis_death_rows *rows, size_t end, size_t most)
{
  int r = 0;

  for (size_t i = end; i-- > 0 && r >= 0 && end - i <= most;)
    r = row_add(rows, i);
  return r;
}

/* Whether the branch comes from an entry of the PLT or, after one, from the code at the beginning of the PLT. The call
 * to it has the function's name, so these jumps add nothing. */
static bool branch_is_plt(const struct own_state *state, size_t number)
{
  const struct analysis_places *places = state->places;
  const struct analysis_thread *thread = state->thread;
  const struct lb_branch *branch = &thread->branches[number];
  struct symbol_place place;
  const char *at;

  if (branch->kind != LB_BRANCH_NEAR_REL_JMP && branch->kind != LB_BRANCH_NEAR_IND_JMP)
    return false;
  if (places->find(places->data, thread->space, thread->marks[number], branch->from, &place) && place.symbol)
    return (at = strrchr(place.symbol, '@')) && !strcmp(at, "@plt");
  return number && branch->kind == LB_BRANCH_NEAR_IND_JMP &&
         branch->from - thread->branches[number - 1].to < PLT_ENTRY && branch_is_plt(state, number - 1);
}

static int rows_own(struct analysis_death_rows *rows, struct own_state *state, size_t most)
{
  int r = 0;

  for (size_t i = state->thread->count; i-- > 0 && r >= 0 && rows->count < most;)
    if (branch_is_own(state, i) && !branch_is_plt(state, i))
      r = row_add(rows, i);
  return r;
}

/* Adds the branches of libraries after the last branch of the program's own code. */
static int rows_tail(struct analysis_death_rows *rows, const struct analysis_thread *thread, size_t most)
{
  size_t own = rows->count;
  int r;

  assert(own);
  rows->tail_total = thread->count - 1 - rows->numbers[0];
  r = rows_last(rows, thread->count, rows->tail_total < most ? rows->tail_total : most);
  rows->tail_count = rows->count - own;
  rows->count = own;
  return r;
}

int analysis_death_rows_make(const struct analysis_death *death, const struct analysis_places *places,
                             const struct analysis_thread *thread, enum analysis_show show, size_t most,
                             struct analysis_death_rows *ret_rows)
{
  struct own_state state = {.death = death, .places = places, .thread = thread};
  struct analysis_death_rows rows = {0};
  int r = 0;

  if (!most)
    most = SIZE_MAX;
  rows.is_own = show != ANALYSIS_SHOW_ALL && places && places->piece;
  if (rows.is_own)
    r = rows_own(&rows, &state, most);
  if (r >= 0 && rows.is_own && rows.count && show == ANALYSIS_SHOW_OWN_FIRST)
    r = rows_tail(&rows, thread, most);
  if (r >= 0 && !rows.count && show != ANALYSIS_SHOW_OWN) {
    rows.has_no_own = rows.is_own && thread->count;
    rows.is_own = false;
    r = rows_last(&rows, thread->count, most);
  }
  if (r < 0)
    free(rows.numbers);
  else
    *ret_rows = rows;
  return r;
}

void analysis_death_rows_done(struct analysis_death_rows *rows)
{
  free(rows->numbers);
}

bool analysis_death_rows_are_all(const struct analysis_death_rows *rows, const struct analysis_thread *thread)
{
  return (thread->recorder || rows->count + rows->tail_count == thread->count) && !thread->is_cut;
}

bool analysis_death_rows_are_last(const struct analysis_death_rows *rows, const struct analysis_thread *thread)
{
  return !rows->count || thread->count - rows->numbers[rows->count - 1] == rows->count;
}
