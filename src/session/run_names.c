/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and code for the addresses of a recorded program. Its address spaces (process/process.h) say which part of
 * which file was mapped at the time; the files have the rest (symbol/symbol.h). Each file is queried by offset: it is
 * at address 0 of a space of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "session/run.h"
#include "session/run_jit.h"
#include "symbol/symbol.h"

#define CODE_SIZE 15 /* bytes of an instruction */
#define PLACES 4096u /* cached: a program takes the same branches again and again */

struct names_file {
  const char *path;
  struct symbol_space *space;
};

struct names_place {
  bool is_used, is_known, has_code;
  uint8_t code_size;
  uint32_t space, mark;
  uint64_t address;
  uint8_t code[CODE_SIZE];
  struct symbol_place place;
};

struct run_names {
  struct process_spaces *spaces;
  struct symbol_cache *cache;
  struct symbol_demangler *demangler; /* NULL: names stay mangled */
  struct names_file *files;
  size_t count, capacity;
  struct names_place *places;
  struct analysis_places functions;
  struct run_jit jit;
  bool has_asked, has_symbol;
};

/* ---- files ---- */

static struct symbol_space *file_space(struct run_names *names, const char *path)
{
  const struct symbol_mapping mapping = {.path = path};
  struct names_file *file;
  struct symbol_space *space;

  for (size_t i = 0; i < names->count; i++)
    if (names->files[i].path == path) /* each path exists once */
      return names->files[i].space;
  if (symbol_space_new(names->cache, &space) < 0)
    return NULL;
  file = array_append(&names->files, &names->count, &names->capacity);
  if (!file || symbol_space_add(space, &mapping) < 0) {
    symbol_space_free(space);
    space = NULL;
  }
  if (file)
    *file = (struct names_file){path, space};
  return space;
}

/* The file at an address, and the offset in it. */
static struct symbol_space *address_space(struct run_names *names, uint32_t space, uint32_t mark, uint64_t address,
                                          uint64_t *ret_offset)
{
  struct process_module module;

  if (!process_spaces_find(names->spaces, space, mark, address, &module) || !*module.path)
    return NULL;
  *ret_offset = module.offset + (address - module.start);
  return file_space(names, module.path);
}

/* ---- queries of the report ---- */

/* The cache slot for an address, emptied if it held another. */
static struct names_place *place_get(const struct run_names *names, uint32_t space, uint32_t mark, uint64_t address)
{
  uint64_t hash = (address ^ (uint64_t)space << 40 ^ (uint64_t)mark << 20) * UINT64_C(0x9E3779B97F4A7C15);
  struct names_place *place = &names->places[hash >> 52 & (PLACES - 1)];

  if (place->space != space || place->mark != mark || place->address != address) {
    place->is_used = place->has_code = false;
    place->space = space;
    place->mark = mark;
    place->address = address;
  }
  return place;
}

static void place_demangle(const struct run_names *names, struct symbol_place *place)
{
  const char *mangled = place->symbol;

  place->symbol = symbol_demangler_name(names->demangler, mangled);
  place->mangled = place->symbol != mangled ? mangled : NULL;
}

static bool place_find(void *data, uint32_t space, uint32_t mark, uint64_t address, struct symbol_place *ret_place)
{
  struct run_names *names = data;
  struct names_place *place = place_get(names, space, mark, address);
  uint64_t offset;

  if (!place->is_used) {
    struct symbol_space *file = address_space(names, space, mark, address, &offset);

    place->is_used = true;
    place->is_known = file && symbol_space_find(file, offset, true, &place->place);
    if (!place->is_known)
      place->is_known = run_jit_find(&names->jit, names->spaces, space, address, &place->place);
    if (place->is_known)
      place_demangle(names, &place->place);
  }
  if (!place->is_known)
    return false;
  if (!strcmp(place->place.module, process_spaces_program(names->spaces, space))) {
    names->has_asked = true;
    names->has_symbol |= place->place.symbol || place->place.frame_count;
  }
  *ret_place = place->place;
  return true;
}

static size_t place_code(void *data, uint32_t space, uint32_t mark, uint64_t address, uint8_t *bytes, size_t size)
{
  struct run_names *names = data;
  struct names_place *place = place_get(names, space, mark, address);
  uint64_t offset;

  if (!place->has_code) {
    struct symbol_space *file = address_space(names, space, mark, address, &offset);
    size_t count = file ? symbol_space_code(file, offset, place->code, CODE_SIZE) : 0;

    if (!count)
      count = process_spaces_code(names->spaces, space, mark, address, place->code, CODE_SIZE);
    place->code_size = (uint8_t)count;
    place->has_code = true;
  }
  if (size > place->code_size)
    size = place->code_size;
  memcpy(bytes, place->code, size);
  return size;
}

static bool place_piece(void *data, uint32_t space, uint32_t mark, uint64_t address, struct analysis_piece *ret_piece)
{
  const struct run_names *names = data;
  struct process_module module;

  if (!process_spaces_find(names->spaces, space, mark, address, &module) || !*module.path)
    return false;
  *ret_piece = (struct analysis_piece){module.start, module.end - module.start, module.offset, module.path};
  return true;
}

/* ---- the whole ---- */

int run_names_new(const struct process *process, bool is_mangled, struct run_names **ret_names)
{
  struct run_names *names = calloc(1, sizeof(*names));
  int r = -ENOMEM;

  if (!names)
    return r;
  names->functions = (struct analysis_places){names, place_find, place_code, place_piece};
  names->places = calloc(PLACES, sizeof(*names->places));
  if (names->places)
    r = process_spaces_new(process, &names->spaces);
  if (r >= 0)
    r = symbol_cache_new(NULL, &names->cache);
  if (r >= 0)
    r = symbol_cache_add_vdso(names->cache);
  if (r >= 0 && !is_mangled)
    r = symbol_demangler_new(&names->demangler);
  if (r < 0) {
    run_names_free(names);
    return r;
  }
  *ret_names = names;
  return 0;
}

void run_names_free(struct run_names *names)
{
  if (!names)
    return;
  for (size_t i = 0; i < names->count; i++)
    symbol_space_free(names->files[i].space);
  free(names->files);
  symbol_demangler_free(names->demangler);
  symbol_cache_free(names->cache);
  run_jit_done(&names->jit);
  process_spaces_free(names->spaces);
  free(names->places);
  free(names);
}

const struct analysis_places *run_names_places(const struct run_names *names)
{
  return &names->functions;
}

const char *run_names_program(struct run_names *names, uint32_t space)
{
  return process_spaces_program(names->spaces, space);
}

bool run_names_are_missing(const struct run_names *names)
{
  return names->has_asked && !names->has_symbol;
}
