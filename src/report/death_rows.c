/* SPDX-License-Identifier: Apache-2.0
 *
 * Which branches of a thread its report shows. A program that aborts, or throws what nobody catches, ends with hundreds
 * of branches in libraries: the last ones in its own code come first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/death.h"

#define PLT_ENTRY 16u /* bytes */

/* ---- whose code ---- */

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

/* The last piece that was asked for: most branches are where the one before was. */
struct own_state {
  const struct death_printer *printer;
  const struct report_thread *thread;
  struct report_piece piece;
  bool is_own;
};

static bool address_is_own(struct own_state *state, uint32_t mark, uint64_t address)
{
  const struct report_places *places = state->printer->options->places;
  struct report_piece piece;

  if (address - state->piece.start < state->piece.size)
    return state->is_own;
  if (!places->piece(places->data, state->thread->space, mark, address, &piece))
    return true;
  state->piece = piece;
  state->is_own = !strcmp(piece.path, state->printer->death->program) || !path_is_library(piece.path);
  return state->is_own;
}

static bool branch_is_own(struct own_state *state, size_t number)
{
  const struct lb_branch *branch = &state->thread->branches[number];

  return address_is_own(state, state->thread->marks[number], branch->from) ||
         address_is_own(state, death_to_mark(state->thread, number), branch->to);
}

bool death_branch_is_own(const struct death_printer *printer, const struct report_thread *thread, size_t number)
{
  struct own_state state = {.printer = printer, .thread = thread};

  return !printer->options->places || !printer->options->places->piece || branch_is_own(&state, number);
}

/* ---- which ---- */

static int row_add(struct death_rows *rows, size_t number)
{
  size_t *grown = array_grow(rows->numbers, sizeof(*grown), rows->count, &rows->capacity);

  if (!grown)
    return -ENOMEM;
  rows->numbers = grown;
  grown[rows->count++] = number;
  return 0;
}

/* The last so many, of any code, that end before `end`. */
static int rows_last(struct death_rows *rows, size_t end, size_t most)
{
  int r = 0;

  for (size_t i = end; i-- > 0 && r >= 0 && end - i <= most;)
    r = row_add(rows, i);
  return r;
}

/* Does the branch come from an entry of the PLT, or, behind one, from the code at the beginning of the PLT? The call to
 * it has the function's name, so that these jumps tell nothing. */
static bool branch_is_plt(const struct own_state *state, size_t number)
{
  const struct report_thread *thread = state->thread;
  const struct lb_branch *branch = &thread->branches[number];
  struct symbol_place place;
  const char *at;

  if (branch->kind != LB_BRANCH_NEAR_REL_JMP && branch->kind != LB_BRANCH_NEAR_IND_JMP)
    return false;
  if (death_place(state->printer, thread, thread->marks[number], branch->from, &place) && place.symbol)
    return (at = strrchr(place.symbol, '@')) && !strcmp(at, "@plt");
  return number && branch->kind == LB_BRANCH_NEAR_IND_JMP &&
         branch->from - thread->branches[number - 1].to < PLT_ENTRY && branch_is_plt(state, number - 1);
}

static int rows_own(struct death_rows *rows, struct own_state *state, size_t most)
{
  int r = 0;

  for (size_t i = state->thread->count; i-- > 0 && r >= 0 && rows->count < most;)
    if (branch_is_own(state, i) && !branch_is_plt(state, i))
      r = row_add(rows, i);
  return r;
}

/* What libraries did behind the last own one. */
static int rows_tail(struct death_rows *rows, const struct report_thread *thread, size_t most)
{
  size_t own = rows->count;
  int r;

  rows->tail_total = thread->count - 1 - rows->numbers[0];
  r = rows_last(rows, thread->count, rows->tail_total < most ? rows->tail_total : most);
  rows->tail_count = rows->count - own;
  rows->count = own;
  return r;
}

int death_rows_make(const struct death_printer *printer, const struct report_thread *thread,
                    struct death_rows *ret_rows)
{
  const struct report_death_options *options = printer->options;
  struct own_state state = {.printer = printer, .thread = thread};
  size_t most = options->last ? options->last : SIZE_MAX;
  struct death_rows rows = {0};
  int r = 0;

  rows.is_own = options->show != REPORT_SHOW_ALL && options->places && options->places->piece;
  if (rows.is_own)
    r = rows_own(&rows, &state, most);
  if (r >= 0 && rows.is_own && rows.count && options->show == REPORT_SHOW_OWN_FIRST)
    r = rows_tail(&rows, thread, most);
  if (r >= 0 && !rows.count && options->show != REPORT_SHOW_OWN) {
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

void death_rows_done(struct death_rows *rows)
{
  free(rows->numbers);
}

bool death_rows_are_all(const struct death_rows *rows, const struct report_thread *thread)
{
  return (thread->recorder || rows->count + rows->tail_count == thread->count) && !thread->is_cut;
}

/* Are these the last ones, one behind the other? Then it need not be said whose they are. */
bool death_rows_are_last(const struct death_rows *rows, const struct report_thread *thread)
{
  return !rows->count || thread->count - rows->numbers[rows->count - 1] == rows->count;
}
