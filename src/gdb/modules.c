/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the modules of a trace to what gdb reads: an auxiliary vector whose entry point tells the program's address,
 * and a list of libraries. Files are untrusted: only those whose build-id is that of the trace are named to gdb.
 */
#include "gdb/modules.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/target.h"
#include "symbol/symbol.h"

#define MODULES_MAX 4096u
#define HEADERS_MAX 64u

/* ---- the files ---- */

static bool is_covered(const struct gdb_module *module, const struct lb_trace_module *by)
{
  return module->address >= by->address && module->address - by->address < by->size;
}

/* A file whose first part is covered by another mapping is gone. */
static void modules_cover(struct gdb_modules *modules, const struct lb_trace_module *by)
{
  size_t kept = 0;

  for (size_t i = 0; i < modules->count; i++) {
    if (is_covered(&modules->list[i], by))
      free(modules->list[i].path);
    else
      modules->list[kept++] = modules->list[i];
  }
  modules->count = kept;
}

static bool modules_have(const struct gdb_modules *modules, const char *path)
{
  for (size_t i = 0; i < modules->count; i++)
    if (!strcmp(modules->list[i].path, path))
      return true;
  return false;
}

/* Whether gdb can be given this path. */
static bool path_is_plain(const char *path)
{
  if (path[0] != '/')
    return false;
  for (size_t length; *path; path += length) {
    length = utf8_size(path);
    if (!length || (unsigned char)*path < ' ' || *path == 0x7F)
      return false;
  }
  return true;
}

int gdb_modules_add(struct gdb_modules *modules, const struct lb_trace_module *module)
{
  struct gdb_module *list;

  modules_cover(modules, module);
  if (module->is_gone || modules->count >= MODULES_MAX || !path_is_plain(module->name) ||
      modules_have(modules, module->name))
    return 0;
  list = array_grow(modules->list, sizeof(*list), modules->count, &modules->capacity);
  if (!list)
    return -ENOMEM;
  modules->list = list;
  list += modules->count;
  *list = (struct gdb_module){
    .path = strdup(module->name), .address = module->address, .size = module->size, .offset = module->offset};
  if (!list->path)
    return -ENOMEM;
  list->build_id_size = module->build_id_size <= sizeof(list->build_id) ? module->build_id_size : 0;
  memcpy(list->build_id, module->build_id, list->build_id_size);
  modules->count++;
  return 0;
}

/* ---- their contents ---- */

/* A program header, at any offset in the file; both ELF classes are converted to one form. */
static bool header_get(const struct gdb_module *module, unsigned number, Elf64_Phdr *ret_header)
{
  const uint8_t *bytes = module->bytes;
  uint64_t offset = module->headers, size = module->is_wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);

  Elf32_Phdr narrow;

  if (number >= module->header_count || number >= HEADERS_MAX || offset > module->bytes_size ||
      (number + 1) * size > module->bytes_size - offset)
    return false;
  bytes += offset + number * size;
  if (module->is_wide) {
    memcpy(ret_header, bytes, sizeof(*ret_header));
    return true;
  }
  memcpy(&narrow, bytes, sizeof(narrow));
  *ret_header = (Elf64_Phdr){.p_type = narrow.p_type,
                             .p_flags = narrow.p_flags,
                             .p_offset = narrow.p_offset,
                             .p_vaddr = narrow.p_vaddr,
                             .p_filesz = narrow.p_filesz};
  return true;
}

/* Reads the head of the file. Returns false if it is not one that runs here. */
static bool file_head(struct gdb_module *module)
{
  const uint8_t *bytes = module->bytes;

  Elf64_Ehdr wide;
  Elf32_Ehdr narrow;

  if (module->bytes_size < sizeof(wide) || memcmp(bytes, ELFMAG, SELFMAG) || bytes[EI_DATA] != ELFDATA2LSB)
    return false;
  module->is_wide = bytes[EI_CLASS] == ELFCLASS64;
  if (module->is_wide) {
    memcpy(&wide, bytes, sizeof(wide));
    module->entry = wide.e_entry;
    module->headers = wide.e_phoff;
    module->header_count = wide.e_phentsize == sizeof(Elf64_Phdr) ? wide.e_phnum : 0;
  } else {
    memcpy(&narrow, bytes, sizeof(narrow));
    module->entry = narrow.e_entry;
    module->headers = narrow.e_phoff;
    module->header_count = narrow.e_phentsize == sizeof(Elf32_Phdr) ? narrow.e_phnum : 0;
  }
  return true;
}

static bool file_is_same(const struct gdb_module *module, const struct symbol_layout *layout)
{
  return module->build_id_size == 0 || (module->build_id_size == layout->build_id_size &&
                                        !memcmp(module->build_id, layout->build_id, layout->build_id_size));
}

/* Returns NULL, or the reason why the file cannot be used. */
static const char *file_look(struct gdb_module *module)
{
  struct symbol_layout layout;

  Elf64_Phdr header;
  uint64_t linked;

  if (symbol_layout_read(module->bytes, module->bytes_size, &layout) < 0 || !file_head(module))
    return "not an ELF file";
  if (!file_is_same(module, &layout))
    return "not the file that ran: its build-id differs";
  if (!symbol_layout_address(&layout, module->offset, &linked))
    return "not the file that ran: it has no code where the trace has some";
  module->bias = module->address - linked;
  for (unsigned i = 0; header_get(module, i, &header); i++)
    if (header.p_type == PT_DYNAMIC)
      module->dynamic = header.p_vaddr;
  return NULL;
}

void gdb_modules_open(struct gdb_modules *modules, const struct analysis_files *files)
{
  modules->files = files;
  for (size_t i = 0; i < modules->count; i++) {
    struct gdb_module *module = &modules->list[i];
    const void *bytes;
    const char *problem;
    int r = files->open(files->data, module->path, &bytes, &module->bytes_size);

    if (r >= 0)
      module->bytes = bytes;
    problem = r < 0 ? lb_strerror(r) : file_look(module);
    if (!problem)
      continue;
    files->warn(files->data, module->path, problem);
    if (r >= 0)
      files->close(files->data, module->bytes, module->bytes_size);
    module->bytes = NULL;
  }
}

void gdb_modules_done(struct gdb_modules *modules)
{
  for (size_t i = 0; i < modules->count; i++) {
    struct gdb_module *module = &modules->list[i];

    if (module->bytes)
      modules->files->close(modules->files->data, module->bytes, module->bytes_size);
    free(module->path);
  }
  free(modules->list);
}

const struct gdb_module *gdb_modules_program(const struct gdb_modules *modules)
{
  return modules->count && modules->list[0].bytes ? &modules->list[0] : NULL;
}

/* ---- for gdb ---- */

static size_t module_read(const struct gdb_module *module, uint64_t address, uint8_t *bytes, size_t size)
{
  Elf64_Phdr header;

  for (unsigned i = 0; header_get(module, i, &header); i++) {
    uint64_t inside = address - module->bias - header.p_vaddr, left;

    if (header.p_type != PT_LOAD || header.p_flags & PF_W || inside >= header.p_filesz ||
        header.p_offset > module->bytes_size || inside >= module->bytes_size - header.p_offset)
      continue;
    left = module->bytes_size - header.p_offset - inside;
    left = left < header.p_filesz - inside ? left : header.p_filesz - inside;
    size = size < left ? size : (size_t)left;
    memcpy(bytes, module->bytes + header.p_offset + inside, size);
    return size;
  }
  return 0;
}

size_t gdb_modules_read(const struct gdb_modules *modules, uint64_t address, uint8_t *bytes, size_t size)
{
  size_t count = 0;

  for (size_t i = 0; i < modules->count && !count; i++)
    if (modules->list[i].bytes)
      count = module_read(&modules->list[i], address, bytes, size);
  return count;
}

static int auxv_add(struct text *text, uint64_t type, uint64_t value)
{
  uint8_t bytes[16];

  bytes_put_u64(bytes, type);
  bytes_put_u64(bytes + 8, value);
  return text_add_bytes(text, (const char *)bytes, sizeof(bytes));
}

/* Only what gdb needs to locate the program: it compares the entry point with the file's. */
int gdb_modules_auxv(const struct gdb_modules *modules, struct text *text)
{
  const struct gdb_module *program = gdb_modules_program(modules);
  int r;

  if (!program || !program->is_wide)
    return -ENOENT;
  r = auxv_add(text, AT_PHENT, sizeof(Elf64_Phdr));
  if (r >= 0)
    r = auxv_add(text, AT_PHNUM, program->header_count);
  if (r >= 0)
    r = auxv_add(text, AT_ENTRY, program->bias + program->entry);
  return r < 0 ? r : auxv_add(text, AT_NULL, 0);
}

/* The addresses of link maps only distinguish the libraries: gdb does not read them. */
static int library_add(const struct gdb_module *module, size_t number, struct text *text)
{
  int r = text_add(text, "<library name=\"");

  if (r >= 0)
    r = gdb_xml_add(text, module->path);
  return r < 0 ? r
               : text_addf(text, "\" lm=\"0x%zx\" lmid=\"0x0\" l_addr=\"0x%" PRIx64 "\" l_ld=\"0x%" PRIx64 "\"/>",
                           number + 1, module->bias, module->bias + module->dynamic);
}

int gdb_modules_libraries(const struct gdb_modules *modules, struct text *text)
{
  int r = text_add(text, "<library-list-svr4 version=\"1.0\" main-lm=\"0x1\">");

  for (size_t i = 1; i < modules->count && r >= 0; i++)
    if (modules->list[i].bytes && modules->list[i].is_wide)
      r = library_add(&modules->list[i], i, text);
  return r < 0 ? r : text_add(text, "</library-list-svr4>");
}
