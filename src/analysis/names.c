/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the addresses of a trace: its modules say which part of which file is mapped where, and the files have the
 * symbols. A trace is untrusted and may name any number of files, so there are limits, and a file is opened only when a
 * branch leads to it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names_inside.h"
#include "base/base.h"

#define FILES_MAX 1024u
#define NAME_MAX_SIZE 4096u /* a longer name cannot be opened */
#define BASE_MAX_SIZE 255u
#define BYTES_MAX (UINT64_C(4) << 30) /* of all files that are opened */
#define MAPPINGS_MAX 65536u
#define PAGE UINT64_C(4096)

int analysis_names_new(const struct analysis_files *files, struct analysis_names **ret_names)
{
  struct analysis_names *names = calloc(1, sizeof(*names));

  if (!names)
    return -ENOMEM;
  if (symbol_demangler_new(&names->demangler) < 0) {
    free(names);
    return -ENOMEM;
  }
  names->files = files;
  names->generation = 1;
  names->jit.file = ANALYSIS_NO_FILE;
  *ret_names = names;
  return 0;
}

void analysis_names_keep_mangled(struct analysis_names *names)
{
  symbol_demangler_free(names->demangler);
  names->demangler = NULL;
}

bool analysis_names_directories(const struct analysis_names *names, bool (*visit)(void *data, const char *directory),
                                void *data)
{
  const char *directory;

  for (size_t i = 0; i < names->count; i++)
    for (size_t k = 0; names->list[i].module && (directory = symbol_module_directory(names->list[i].module, k)); k++)
      if (visit(data, directory))
        return true;
  return false;
}

static void file_done(struct names_file *file)
{
  free(file->path);
  free(file->name);
  free(file->base);
  free(file->layout);
  eh_table_done(&file->unwind);
  symbol_table_free(file->table);
  symbol_module_close(file->module);
}

void analysis_names_free(struct analysis_names *names)
{
  if (!names)
    return;
  for (size_t i = 0; i < names->count; i++)
    file_done(&names->list[i]);
  free(names->list);
  symbol_demangler_free(names->demangler);
  interval_map_done(&names->map);
  stream_list_done(&names->streams);
  code_store_done(&names->code);
  start_list_done(&names->starts);
  jit_names_done(&names->jit);
  free(names);
}

/* ---- modules ---- */

static bool file_is(const struct names_file *file, const struct lb_trace_module *module)
{
  return file->build_id_size == module->build_id_size &&
         (!file->build_id_size || !memcmp(file->build_id, module->build_id, file->build_id_size)) &&
         !strncmp(file->path, module->name, NAME_MAX_SIZE);
}

static int file_init(struct names_file *file, const struct lb_trace_module *module)
{
  const char *slash = strrchr(module->name, '/');

  *file = (struct names_file){
    .path = strndup(module->name, NAME_MAX_SIZE),
    .name = printable_copy(module->name, NAME_MAX_SIZE),
    .base = printable_copy(slash && slash[1] ? slash + 1 : module->name, BASE_MAX_SIZE),
    .build_id_size = module->build_id_size < LB_TRACE_BUILD_ID_MAX ? module->build_id_size : LB_TRACE_BUILD_ID_MAX,
    .address = module->address,
  };
  if (file->build_id_size)
    memcpy(file->build_id, module->build_id, file->build_id_size);
  if (file->path && file->name && file->base)
    return 0;
  file_done(file);
  return -ENOMEM;
}

/* Adds a file to the list. Returns 0, LB_E_TOO_BIG, or -ENOMEM. */
static int file_add(struct analysis_names *names, const struct lb_trace_module *module, uint32_t *ret_number)
{
  struct names_file *list;
  int r;

  if (names->count >= FILES_MAX)
    return LB_E_TOO_BIG;
  list = array_grow(names->list, sizeof(*list), names->count, &names->capacity);
  if (!list)
    return -ENOMEM;
  names->list = list;
  r = file_init(&list[names->count], module);
  if (r < 0)
    return r;
  *ret_number = (uint32_t)names->count++;
  return 0;
}

/* The file of a module, from the list or new to it. Returns as file_add. */
static int file_get(struct analysis_names *names, const struct lb_trace_module *module, uint32_t *ret_number)
{
  for (size_t i = names->count; i-- > 0;)
    if (!jit_names_is_file(names, (uint32_t)i) && file_is(&names->list[i], module)) {
      *ret_number = (uint32_t)i;
      return 0;
    }
  return file_add(names, module, ret_number);
}

int names_pseudo_file(struct analysis_names *names, uint32_t *number)
{
  const struct lb_trace_module module = {.name = NAMES_JIT};
  int r = file_add(names, &module, number);

  if (r >= 0)
    names->list[*number].is_asked = true;
  return r == LB_E_TOO_BIG ? 0 : r;
}

/* No real program has so many modules. The rest gets no names, and the user is told. */
static int names_full(struct analysis_names *names, const struct lb_trace_module *module)
{
  char *name;

  if (names->is_full || !names->files)
    return 0;
  names->is_full = true;
  name = printable_copy(module->name, NAME_MAX_SIZE);
  if (!name)
    return -ENOMEM;
  names->files->warn(names->files->data, name, "more modules than can be kept; some addresses will have no names");
  free(name);
  return 0;
}

void names_change(struct analysis_names *names)
{
  names->generation += 1 + (names->generation == UINT32_MAX);
}

int analysis_names_module(struct analysis_names *names, const struct lb_trace_module *module)
{
  struct interval mapping = {.space = module->space, .first = module->address, .offset = module->offset};
  int r;

  if (!module->size)
    return 0;
  names_change(names);
  mapping.last = module->address + module->size - 1;
  if (mapping.last < mapping.first)
    mapping.last = UINT64_MAX;
  if (module->is_gone) {
    r = interval_map_clear(&names->map, mapping.space, mapping.first, mapping.last, MAPPINGS_MAX);
    return r == LB_E_TOO_BIG ? names_full(names, module) : r;
  }
  r = file_get(names, module, &mapping.value);
  if (r >= 0)
    r = interval_map_add(&names->map, &mapping, MAPPINGS_MAX);
  if (r >= 0)
    names->list[mapping.value].pieces++;
  return r == LB_E_TOO_BIG ? names_full(names, module) : r;
}

/* ---- files ---- */

static void file_complain(const struct analysis_names *names, struct names_file *file, const char *why)
{
  snprintf(file->problem, sizeof(file->problem), "%s", why);
  names->files->warn(names->files->data, file->name, file->problem);
}

static void hex_put(char *text, const uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size && i < 20; i++) /* a longer one is truncated: it is only shown */
    sprintf(text + 2 * i, "%02x", bytes[i]);
}

/* Whether the file on this disk is the one that ran. A trace without a build-id does not tell. */
static bool file_is_same(const struct analysis_names *names, struct names_file *file)
{
  const struct symbol_layout *layout = file->layout;
  char wanted[41] = "", found[41] = "none";
  char why[sizeof(file->problem)];

  if (!file->build_id_size ||
      (layout->build_id_size == file->build_id_size && !memcmp(layout->build_id, file->build_id, file->build_id_size)))
    return true;
  hex_put(wanted, file->build_id, file->build_id_size);
  hex_put(found, layout->build_id, layout->build_id_size);
  snprintf(why, sizeof(why), "not the file that ran: its build-id is %s, the trace has %s; its symbols are not used",
           found, wanted);
  file_complain(names, file, why);
  return false;
}

static void file_read(const struct analysis_names *names, struct names_file *file, const void *bytes, size_t size,
                      bool is_changed)
{
  int r = -ENOMEM;

  file->layout = calloc(1, sizeof(*file->layout));
  if (file->layout)
    r = symbol_layout_read(bytes, size, file->layout);
  if (r == LB_E_BAD_SYNTAX)
    file_complain(names, file, "not an ELF file: it has no symbols");
  else if (r >= 0 && !file_is_same(names, file)) {
    free(file->layout); /* the layout of another file is useless */
    file->layout = NULL;
    return;
  } else if (r >= 0)
    r = symbol_table_read(bytes, size, &file->table);
  if (r >= 0 && is_changed && !file->build_id_size)
    names->files->warn(names->files->data, file->name,
                       "changed since the recording began, and there is no build-id to compare: names may be wrong");
  if (r == LB_E_NO_SYMBOLS) /* most installed programs have none: no reason to complain */
    snprintf(file->problem, sizeof(file->problem), "%s", lb_strerror(r));
  else if (r < 0 && !*file->problem)
    file_complain(names, file, lb_strerror(r));
  if ((r >= 0 || r == LB_E_NO_SYMBOLS) && names->files->module &&
      names->files->module(names->files->data, file->path, &file->module) < 0)
    file->module = NULL;
}

/* Opens a file on its first use. "[vdso]" and similar names are not files. */
static void file_ask(struct analysis_names *names, struct names_file *file)
{
  const void *bytes;
  size_t size;
  int r;

  file->is_asked = true;
  if (!names->files || !*file->path || *file->path == '[')
    return;
  r = names->files->open(names->files->data, file->path, &bytes, &size);
  if (r < 0) {
    file_complain(names, file, lb_strerror(r));
    return;
  }
  names->bytes += size;
  if (names->bytes > BYTES_MAX)
    file_complain(names, file, "the trace names too many great files: its symbols are not used");
  else
    file_read(names, file, bytes, size, r > 0);
  names->files->close(names->files->data, bytes, size);
}

/* Modules are mapped in whole pages, so they may begin before their segment. */
bool names_file_address(const struct names_file *file, uint64_t offset, uint64_t *ret_address)
{
  assert(file->layout);
  for (uint64_t slack = 1; slack <= PAGE; slack *= PAGE)
    for (size_t i = 0; i < file->layout->count; i++) {
      const struct symbol_piece *piece = &file->layout->pieces[i];
      uint64_t before = piece->offset & (slack - 1);

      if (offset - (piece->offset - before) < piece->size + before) {
        *ret_address = piece->address + (offset - piece->offset);
        return true;
      }
    }
  return false;
}

/* The debug file has more symbols than the file itself. */
bool names_file_find(const struct names_file *file, uint64_t linked, struct analysis_name *name)
{
  struct symbol_place place;

  if (file->module && symbol_module_find(file->module, linked, false, &place) && place.symbol) {
    name->symbol = place.symbol;
    name->offset = place.offset;
    name->size = place.size;
    return true;
  }
  name->size = symbol_table_size(file->table, linked);
  return symbol_table_find(file->table, linked, &name->symbol, &name->offset);
}

void names_demangle(const struct analysis_names *names, struct analysis_name *name)
{
  const char *mangled = name->symbol;

  name->symbol = symbol_demangler_name(names->demangler, mangled);
  name->mangled = name->symbol != mangled ? mangled : NULL;
}

const struct interval *names_mapping(struct analysis_names *names, uint32_t space, uint64_t address)
{
  const struct interval *mapping = interval_map_find(&names->map, space, address);

  if (mapping && !names->list[mapping->value].is_asked)
    file_ask(names, &names->list[mapping->value]);
  return mapping;
}

/* A file with symbols says what it is; anything else that is mapped may hold code that was made while the program ran.
 */
bool names_locate_jit(struct analysis_names *names, const struct interval *mapping, uint32_t space, uint64_t address,
                      struct analysis_location *ret_location)
{
  if (mapping && names->list[mapping->value].layout)
    return false;
  return jit_names_locate(names, space, address, ret_location);
}

bool analysis_names_find(struct analysis_names *names, uint32_t space, uint64_t address, struct analysis_name *ret_name)
{
  const struct interval *mapping = names_mapping(names, space, address);
  struct analysis_name name = {0};
  struct analysis_location location;
  const struct names_file *file;
  uint64_t linked;
  bool is_loaded;

  if (names_locate_jit(names, mapping, space, address, &location))
    return analysis_names_symbol(names, &location, ret_name);
  if (!mapping)
    return false;
  file = &names->list[mapping->value];
  name.module = file->base;
  name.file = mapping->value;
  linked = mapping->offset + (address - mapping->first);
  is_loaded = file->layout && names_file_address(file, linked, &linked);
  name.offset = name.linked = linked;
  if (is_loaded && names_file_has_symbols(file) && names_file_find(file, linked, &name)) {
    name.start = linked - name.offset;
    names_demangle(names, &name);
  }
  *ret_name = name;
  return true;
}

bool analysis_names_file(const struct analysis_names *names, size_t number, struct analysis_file *ret_file)
{
  const struct names_file *file;

  if (number >= names->count)
    return false;
  file = &names->list[number];
  *ret_file = (struct analysis_file){
    .name = file->name,
    .build_id = file->build_id,
    .build_id_size = file->build_id_size,
    .address = file->address,
    .pieces = file->pieces,
    .symbols = jit_names_is_file(names, (uint32_t)number) ? names->jit.count
               : file->table                              ? symbol_table_count(file->table)
                                                          : 0,
    .problem = *file->problem ? file->problem : NULL,
  };
  return true;
}
