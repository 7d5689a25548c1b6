/* SPDX-License-Identifier: Apache-2.0
 *
 * Panics of Rust and Go end a program without a signal: by exit, with a certain status, long after the panicking
 * function was left. They are recognised by a function of the language's runtime that nothing else calls. The report
 * then shows the moment when that function was entered.
 */
#include <errno.h>
#include <string.h>

#include "session/run.h"
#include "symbol/symbol.h"

static const struct panic {
  const char *language;
  int status;
  const char *proof; /* if this was entered, the program did not recover from the panic */
  const char *start; /* entered before it: the place that is shown */
} panics[] = {
  {"Rust", 101, "rust_panic", "rust_begin_unwind"},
  {"Rust", 101, "rust_panic", "rust_panic"},
  {"Go", 2, "runtime.fatalpanic", "runtime.gopanic"},
  {"Go", 2, "runtime.fatalthrow", "runtime.throw"},
};

enum { PANICS = sizeof(panics) / sizeof(panics[0]) };

bool run_panic_is_likely(int status)
{
  for (unsigned i = 0; i < PANICS; i++)
    if (panics[i].status == status)
      return true;
  return false;
}

/* ---- offsets of the functions ---- */

#define NOWHERE UINT64_MAX

struct panic_search {
  const struct symbol_layout *layout;
  uint64_t proof[PANICS], start[PANICS]; /* offsets in the file, or NOWHERE */
};

/* Rust's name may be mangled: "_RNvCs1_7___rustc10rust_panic", "_ZN3std9panicking10rust_panic17h0123E". */
static bool name_is(const char *name, const char *function)
{
  const char *found = strstr(name, function);
  size_t length = strlen(function);

  return found && (found == name || !strncmp(name, "_R", 2) || !strncmp(name, "_ZN", 3)) &&
         (!found[length] || !strncmp(found + length, "17h", 3));
}

static uint64_t file_offset(const struct symbol_layout *layout, uint64_t address)
{
  for (size_t i = 0; i < layout->count; i++)
    if (address - layout->pieces[i].address < layout->pieces[i].size)
      return layout->pieces[i].offset + (address - layout->pieces[i].address);
  return NOWHERE;
}

static int entry_look(void *data, const struct symbol_entry *entry)
{
  struct panic_search *search = data;

  for (unsigned i = 0; entry->name && entry->is_function && i < PANICS; i++) {
    if (name_is(entry->name, panics[i].proof))
      search->proof[i] = file_offset(search->layout, entry->address);
    if (name_is(entry->name, panics[i].start))
      search->start[i] = file_offset(search->layout, entry->address);
  }
  return 0;
}

/* Returns 0, or negative if the program has no symbols. */
static int functions_find(const char *program, struct panic_search *search)
{
  struct symbol_module *module;
  int r = symbol_module_open(program, NULL, &module);

  memset(search->proof, 0xFF, sizeof(search->proof));
  memset(search->start, 0xFF, sizeof(search->start));
  if (r < 0)
    return r;
  search->layout = symbol_module_layout(module);
  r = symbol_module_entries(module, entry_look, search);
  symbol_module_close(module);
  search->layout = NULL;
  return r;
}

/* ---- the branch that entered the function ---- */

/* Returns the number of the newest branch before `end` that leads to an offset in the program's file, or SIZE_MAX. */
static size_t branch_find(const struct analysis_thread *thread, const struct analysis_places *places,
                          const char *program, uint64_t offset, size_t end)
{
  struct analysis_piece piece = {0};
  bool is_program = false;

  for (size_t i = end; i-- > thread->first;) {
    uint64_t to = thread->branches[i].to;

    if (to - piece.start >= piece.size) {
      if (!places->piece(places->data, thread->space, thread->marks[i], to, &piece)) {
        piece = (struct analysis_piece){0};
        continue;
      }
      is_program = !strcmp(piece.path, program);
    }
    if (is_program && piece.offset + (to - piece.start) == offset)
      return i;
  }
  return SIZE_MAX;
}

const char *run_panic_find(const struct analysis_thread *thread, const struct analysis_places *places,
                           const char *program, int status, size_t *ret_count)
{
  struct panic_search search = {0};

  if (functions_find(program, &search) < 0)
    return NULL;
  for (unsigned i = 0; i < PANICS; i++) {
    size_t proof = SIZE_MAX, start = SIZE_MAX;

    if (panics[i].status == status && search.proof[i] != NOWHERE && search.start[i] != NOWHERE)
      proof = branch_find(thread, places, program, search.proof[i], thread->count);
    if (proof != SIZE_MAX)
      start = branch_find(thread, places, program, search.start[i], proof + 1);
    if (start != SIZE_MAX) {
      *ret_count = start + 1;
      return panics[i].language;
    }
  }
  return NULL;
}
