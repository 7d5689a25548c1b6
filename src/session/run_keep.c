/* SPDX-License-Identifier: Apache-2.0
 *
 * The last branches of each thread, and the address spaces that they are in. Memory grows with the number of threads.
 */
#include "session/run_keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbol/symbol.h"

#define RING_FIRST 64u
#define PIECES_MAX 4096u /* pieces of code outside of files, in a space */

struct keep_piece {
  uint64_t address;
  size_t size;
  uint8_t *bytes;
};

struct keep_space {
  struct symbol_space *symbols;
  char *program;
  struct keep_piece *pieces;
  size_t count, capacity;
};

struct run_keep {
  size_t most;
  struct run_keep_thread *threads;
  size_t count, capacity;
  struct keep_space *spaces;
  size_t space_count, space_capacity;
  struct symbol_cache *cache;
  struct symbol_demangler *demangler; /* NULL: names stay mangled */
  struct analysis_places places;
  bool has_asked, has_symbol;
};

/* ---- branches ---- */

static int keep_stream(void *data, const struct lb_trace_stream *stream, uint32_t *ret_number)
{
  struct run_keep *keep = data;
  struct run_keep_thread *thread = array_append(&keep->threads, &keep->count, &keep->capacity);

  if (!thread)
    return -ENOMEM;
  *thread = (struct run_keep_thread){
    .space = stream->space, .process = stream->process, .thread = stream->thread, .gap = UINT64_MAX};
  strncpy(thread->name, stream->name, sizeof(thread->name) - 1);
  *ret_number = (uint32_t)keep->count - 1;
  return 0;
}

/* The ring grows up to the wanted size, and then wraps around. */
static int ring_put(const struct run_keep *keep, struct run_keep_thread *thread, const struct lb_branch *branch)
{
  if (thread->total == thread->capacity && thread->capacity < keep->most) {
    size_t capacity = thread->capacity ? 2 * thread->capacity : RING_FIRST;
    struct lb_branch *ring;

    if (capacity > keep->most)
      capacity = keep->most;
    ring = realloc(thread->ring, capacity * sizeof(*ring));
    if (!ring)
      return -ENOMEM;
    thread->ring = ring;
    thread->capacity = capacity;
  }
  thread->ring[thread->total++ % thread->capacity] = *branch;
  return 0;
}

static int keep_branches(void *data, uint32_t stream, const struct lb_branch *branches, size_t count)
{
  struct run_keep *keep = data;
  int r = stream < keep->count ? 0 : -EINVAL;

  for (size_t i = 0; i < count && r >= 0; i++)
    r = ring_put(keep, &keep->threads[stream], &branches[i]);
  return r;
}

static int keep_gap(void *data, const struct lb_trace_gap *gap)
{
  struct run_keep *keep = data;

  for (size_t i = 0; i < keep->count; i++)
    if (gap->stream == LB_TRACE_ALL || gap->stream == i)
      keep->threads[i].gap = keep->threads[i].total;
  return 0;
}

static int keep_describe(void *data, uint32_t stream, const char *key, const char *value)
{
  struct run_keep *keep = data;
  struct run_keep_thread *thread = stream < keep->count ? &keep->threads[stream] : NULL;

  if (thread && !strcmp(key, "name"))
    snprintf(thread->name, sizeof(thread->name), "%s", value);
  else if (thread && !strcmp(key, "title"))
    snprintf(thread->command, sizeof(thread->command), "%s", value);
  return 0;
}

const struct run_keep_thread *run_keep_thread(const struct run_keep *keep, size_t number)
{
  return number < keep->count ? &keep->threads[number] : NULL;
}

int run_keep_branches(const struct run_keep *keep, const struct run_keep_thread *thread,
                      struct lb_branch **ret_branches, bool *ret_has_gaps)
{
  size_t count = thread->total < keep->most ? (size_t)thread->total : keep->most;
  struct lb_branch *branches = calloc(count + 1, sizeof(*branches));

  if (!branches)
    return -ENOMEM;
  for (size_t i = 0; i < count; i++)
    branches[i] = thread->ring[(thread->total - count + i) % thread->capacity];
  *ret_branches = branches;
  *ret_has_gaps = thread->gap != UINT64_MAX && thread->gap > thread->total - count;
  return (int)count;
}

/* ---- address spaces ---- */

static struct keep_space *space_get(struct run_keep *keep, uint32_t number)
{
  struct keep_space *space;

  if (number >= LB_TRACE_STREAMS_MAX)
    return NULL;
  space = array_at(&keep->spaces, number, &keep->space_count, &keep->space_capacity);
  if (!space || (!space->symbols && symbol_space_new(keep->cache, &space->symbols) < 0))
    return NULL;
  return space;
}

static int keep_module(void *data, const struct lb_trace_module *module)
{
  struct keep_space *space = space_get(data, module->space);
  const struct symbol_mapping mapping = {.start = module->address,
                                         .end = module->address + module->size,
                                         .offset = module->offset,
                                         .path = module->name,
                                         .build_id = module->build_id,
                                         .build_id_size = module->build_id_size};

  if (!space)
    return 0; /* its addresses get no names */
  if (module->is_gone) {
    symbol_space_remove(space->symbols, mapping.start, mapping.end);
    return 0;
  }
  if (!space->program && module->name[0] == '/')
    space->program = strdup(module->name);
  symbol_space_add(space->symbols, &mapping);
  return 0;
}

static int keep_code(void *data, const struct lb_trace_code *code)
{
  struct keep_space *space = space_get(data, code->space);
  struct keep_piece *piece;
  uint8_t *bytes;

  if (!space || space->count >= PIECES_MAX)
    return 0;
  bytes = malloc(code->size);
  piece = bytes ? array_append(&space->pieces, &space->count, &space->capacity) : NULL;
  if (!piece) {
    free(bytes);
    return -ENOMEM;
  }
  memcpy(bytes, code->bytes, code->size);
  *piece = (struct keep_piece){code->address, code->size, bytes};
  return 0;
}

/* ---- queries of the report ---- */

static struct keep_space *space_look(const struct run_keep *keep, uint32_t space)
{
  return space < keep->space_count && keep->spaces[space].symbols ? &keep->spaces[space] : NULL;
}

static bool place_find(void *data, uint32_t number, uint32_t mark, uint64_t address, struct symbol_place *ret_place)
{
  struct run_keep *keep = data;
  struct keep_space *space = space_look(keep, number);

  (void)mark;
  if (!space || !symbol_space_find(space->symbols, address, true, ret_place))
    return false;
  if (space->program && !strcmp(ret_place->module, space->program)) {
    keep->has_asked = true;
    keep->has_symbol |= ret_place->symbol || ret_place->frame_count;
  }
  const char *mangled = ret_place->symbol;
  ret_place->symbol = symbol_demangler_name(keep->demangler, mangled);
  ret_place->mangled = ret_place->symbol != mangled ? mangled : NULL;
  return true;
}

static size_t place_code(void *data, uint32_t number, uint32_t mark, uint64_t address, uint8_t *bytes, size_t size)
{
  const struct keep_space *space = space_look(data, number);
  size_t count = space ? symbol_space_code(space->symbols, address, bytes, size) : 0;

  (void)mark;
  for (size_t i = space ? space->count : 0; i-- > 0 && !count;) { /* the newest first */
    const struct keep_piece *piece = &space->pieces[i];

    if (address - piece->address < piece->size) {
      size_t left = piece->size - (size_t)(address - piece->address);

      count = size < left ? size : left;
      memcpy(bytes, piece->bytes + (address - piece->address), count);
    }
  }
  return count;
}

static bool place_piece(void *data, uint32_t number, uint32_t mark, uint64_t address, struct analysis_piece *ret_piece)
{
  const struct keep_space *space = space_look(data, number);
  struct symbol_mapping mapping;

  (void)mark;
  if (!space || !symbol_space_mapping(space->symbols, address, &mapping))
    return false;
  *ret_piece = (struct analysis_piece){mapping.start, mapping.end - mapping.start, mapping.offset, mapping.path};
  return true;
}

/* ---- the whole ---- */

int run_keep_new(size_t most, bool is_mangled, struct run_keep **ret_keep)
{
  struct run_keep *keep = calloc(1, sizeof(*keep));
  int r = -ENOMEM;

  if (!keep)
    return r;
  keep->most = most;
  keep->places = (struct analysis_places){keep, place_find, place_code, place_piece};
  r = symbol_cache_new(NULL, &keep->cache);
  if (r >= 0)
    r = symbol_cache_add_vdso(keep->cache);
  if (r >= 0 && !is_mangled)
    r = symbol_demangler_new(&keep->demangler);
  if (r < 0) {
    run_keep_free(keep);
    return r;
  }
  *ret_keep = keep;
  return 0;
}

void run_keep_free(struct run_keep *keep)
{
  if (!keep)
    return;
  for (size_t i = 0; i < keep->count; i++)
    free(keep->threads[i].ring);
  for (size_t i = 0; i < keep->space_count; i++) {
    for (size_t j = 0; j < keep->spaces[i].count; j++)
      free(keep->spaces[i].pieces[j].bytes);
    free(keep->spaces[i].pieces);
    free(keep->spaces[i].program);
    symbol_space_free(keep->spaces[i].symbols);
  }
  free(keep->threads);
  free(keep->spaces);
  symbol_demangler_free(keep->demangler);
  symbol_cache_free(keep->cache);
  free(keep);
}

struct source_sink run_keep_sink(struct run_keep *keep)
{
  return (struct source_sink){keep, keep_module, keep_code, keep_stream, keep_branches, keep_gap, keep_describe, NULL};
}

const struct analysis_places *run_keep_places(const struct run_keep *keep)
{
  return &keep->places;
}

const char *run_keep_program(const struct run_keep *keep, uint32_t space)
{
  const struct keep_space *found = space_look(keep, space);

  return found && found->program ? found->program : "";
}

bool run_keep_names_are_missing(const struct run_keep *keep)
{
  return keep->has_asked && !keep->has_symbol;
}
