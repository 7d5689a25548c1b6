/* SPDX-License-Identifier: Apache-2.0
 *
 * GDB's interface for just-in-time compilers (the chapter "JIT Compilation Interface" of its manual): the variable
 * __jit_debug_descriptor begins a list of ELF objects in the memory of the process, whose symbols name the code. An
 * object is read once, when it has appeared in the list.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "process/jit.h"

enum {
  ENTRIES_MOST = 1 << 12,
  OBJECT_MOST = 16 << 20, /* bytes */
  SYMBOLS_MOST = 1 << 16, /* of an object */
  SECTIONS_MOST = 1 << 12,
  TABLE_MOST = 256 << 20, /* bytes of the symbols of a file */
  BLOCK_SYMBOLS = 1024,
  PAGE = 4096,
};

#define DESCRIPTOR "__jit_debug_descriptor"

/* The structs of the interface, in a 64-bit process. */
struct descriptor {
  uint32_t version, action;
  uint64_t relevant, first;
};

struct entry {
  uint64_t next, previous, object, size;
};

/* ---- an object in memory ---- */

static bool range_is_in(uint64_t offset, uint64_t count, uint64_t each, size_t size)
{
  return offset <= size && (!each || count <= (size - offset) / each);
}

static bool head_is_good(const Elf64_Ehdr *head)
{
  return !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64 &&
         head->e_ident[EI_DATA] == ELFDATA2LSB && head->e_shentsize == sizeof(Elf64_Shdr) &&
         head->e_shnum <= SECTIONS_MOST;
}

static Elf64_Shdr section_get(const uint8_t *bytes, const Elf64_Ehdr *head, unsigned number)
{
  Elf64_Shdr section = {0};

  if (number < head->e_shnum)
    memcpy(&section, bytes + head->e_shoff + number * sizeof(section), sizeof(section));
  return section;
}

/* In a relocatable object, a symbol's value is an offset in its section, and the section has the address. */
static uint64_t symbol_address(const uint8_t *bytes, const Elf64_Ehdr *head, const Elf64_Sym *symbol)
{
  Elf64_Shdr section = section_get(bytes, head, symbol->st_shndx);

  return head->e_type == ET_REL ? section.sh_addr + symbol->st_value : symbol->st_value;
}

static uint64_t symbol_size(const uint8_t *bytes, const Elf64_Ehdr *head, const Elf64_Sym *symbol)
{
  Elf64_Shdr section = section_get(bytes, head, symbol->st_shndx);

  if (symbol->st_size)
    return symbol->st_size;
  return head->e_type == ET_REL && section.sh_size > symbol->st_value ? section.sh_size - symbol->st_value : 0;
}

static int symbol_take(const uint8_t *bytes, const Elf64_Ehdr *head, const Elf64_Sym *symbol, const char *names,
                       size_t names_size, jit_name_function *function, void *data)
{
  const char *text = symbol->st_name < names_size ? names + symbol->st_name : NULL;
  struct jit_name name = {0};
  char copy[1024];

  if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF || !text)
    return 0;
  name.start = symbol_address(bytes, head, symbol);
  name.size = symbol_size(bytes, head, symbol);
  name.text = copy;
  name.length = jit_text_copy(copy, text, strnlen(text, names_size - symbol->st_name));
  if (!name.start || !name.size || !name.length || name.size > UINT64_MAX - name.start)
    return 0;
  return function(data, &name);
}

static int symbols_take(const uint8_t *bytes, size_t size, const Elf64_Ehdr *head, const Elf64_Shdr *table,
                        jit_name_function *function, void *data)
{
  Elf64_Shdr names = section_get(bytes, head, table->sh_link);
  uint64_t count = table->sh_size / sizeof(Elf64_Sym);
  int r = 0;

  if (names.sh_type != SHT_STRTAB || !range_is_in(table->sh_offset, count, sizeof(Elf64_Sym), size) ||
      !range_is_in(names.sh_offset, names.sh_size, 1, size))
    return 0;
  for (uint64_t i = 0; i < count && i < SYMBOLS_MOST && r >= 0; i++) {
    Elf64_Sym symbol;

    memcpy(&symbol, bytes + table->sh_offset + i * sizeof(symbol), sizeof(symbol));
    r = symbol_take(bytes, head, &symbol, (const char *)bytes + names.sh_offset, names.sh_size, function, data);
  }
  return r;
}

int jit_elf_take(const uint8_t *bytes, size_t size, jit_name_function *function, void *data)
{
  Elf64_Ehdr head;
  int r = 0;

  if (size < sizeof(head))
    return 0;
  memcpy(&head, bytes, sizeof(head));
  if (!head_is_good(&head) || !range_is_in(head.e_shoff, head.e_shnum, sizeof(Elf64_Shdr), size))
    return 0;
  for (unsigned i = 0; i < head.e_shnum && r >= 0; i++) {
    Elf64_Shdr section = section_get(bytes, &head, i);

    if (section.sh_type == SHT_SYMTAB)
      r = symbols_take(bytes, size, &head, &section, function, data);
  }
  return r;
}

/* ---- the descriptor in a file ---- */

static bool file_read(int fd, uint64_t offset, void *bytes, size_t size)
{
  return offset <= INT64_MAX && pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* The linked address of an offset in the code of the file. Mappings begin at a page, maybe before their segment. */
static bool segment_address(int fd, const Elf64_Ehdr *head, uint64_t offset, uint64_t *ret_address)
{
  for (unsigned i = 0; i < head->e_phnum && head->e_phentsize == sizeof(Elf64_Phdr); i++) {
    Elf64_Phdr segment;

    if (!file_read(fd, head->e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
      return false;
    if (segment.p_type == PT_LOAD && segment.p_flags & PF_X && offset + PAGE > segment.p_offset &&
        offset < segment.p_offset + segment.p_filesz) {
      *ret_address = segment.p_vaddr + (offset - segment.p_offset);
      return true;
    }
  }
  return false;
}

/* Where the name of the descriptor is in the strings of a file; 0: nowhere. Only the whole word counts. */
static size_t name_search(const char *names, size_t size)
{
  const char *found;

  for (size_t at = 0; at < size && (found = memmem(names + at, size - at, DESCRIPTOR, sizeof(DESCRIPTOR)));
       at = (size_t)(found - names) + 1)
    if (found > names && !found[-1])
      return (size_t)(found - names);
  return 0;
}

/* Looks for the symbol with this name in a table. */
static bool table_search(int fd, const Elf64_Shdr *table, size_t name, uint64_t *ret_address)
{
  static Elf64_Sym symbols[BLOCK_SYMBOLS];
  uint64_t count = table->sh_size / sizeof(*symbols);

  for (uint64_t i = 0; i < count;) {
    size_t part = count - i < BLOCK_SYMBOLS ? (size_t)(count - i) : BLOCK_SYMBOLS;

    if (!file_read(fd, table->sh_offset + i * sizeof(*symbols), symbols, part * sizeof(*symbols)))
      return false;
    for (size_t k = 0; k < part; k++)
      if (symbols[k].st_name == name && symbols[k].st_shndx != SHN_UNDEF) {
        *ret_address = symbols[k].st_value;
        return true;
      }
    i += part;
  }
  return false;
}

static bool section_search(int fd, const Elf64_Ehdr *head, const Elf64_Shdr *table, uint64_t *ret_address)
{
  Elf64_Shdr strings;
  bool is_found = false;
  size_t name = 0;
  char *names;

  if (table->sh_link >= head->e_shnum ||
      !file_read(fd, head->e_shoff + table->sh_link * sizeof(strings), &strings, sizeof(strings)) ||
      strings.sh_type != SHT_STRTAB || strings.sh_size > TABLE_MOST || table->sh_size > TABLE_MOST)
    return false;
  names = malloc((size_t)strings.sh_size + 1);
  if (names && file_read(fd, strings.sh_offset, names, (size_t)strings.sh_size))
    name = name_search(names, (size_t)strings.sh_size);
  if (name)
    is_found = table_search(fd, table, name, ret_address);
  free(names);
  return is_found;
}

bool jit_elf_descriptor(int fd, uint64_t offset, uint64_t *ret_address, uint64_t *ret_linked)
{
  Elf64_Ehdr head;
  bool is_found = false;

  if (!file_read(fd, 0, &head, sizeof(head)) || !head_is_good(&head))
    return false;
  for (unsigned i = 0; i < head.e_shnum && !is_found; i++) {
    Elf64_Shdr section;

    if (!file_read(fd, head.e_shoff + i * sizeof(section), &section, sizeof(section)))
      return false;
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM)
      is_found = section_search(fd, &head, &section, ret_address);
  }
  return is_found && segment_address(fd, &head, offset, ret_linked);
}

/* ---- the list ---- */

void jit_gdb_done(struct jit_gdb *gdb)
{
  free(gdb->entries);
  *gdb = (struct jit_gdb){0};
}

static bool memory_read(jit_read_function *read, void *data, uint64_t address, void *bytes, size_t size)
{
  return read(data, address, bytes, size) == (int64_t)size;
}

static struct jit_gdb_entry *entry_find(const struct jit_gdb *gdb, uint64_t address, const struct entry *entry)
{
  for (size_t i = gdb->count; i-- > 0;)
    if (gdb->entries[i].address == address && gdb->entries[i].object == entry->object &&
        gdb->entries[i].size == entry->size)
      return &gdb->entries[i];
  return NULL;
}

/* Passes names on, and notes which addresses they cover. */
struct taking {
  struct jit_gdb_entry *entry;
  jit_name_function *function;
  void *data;
};

static int name_pass(void *data, const struct jit_name *name)
{
  struct taking *taking = data;
  struct jit_gdb_entry *entry = taking->entry;

  entry->first = !entry->end || name->start < entry->first ? name->start : entry->first;
  entry->end = name->start + name->size > entry->end ? name->start + name->size : entry->end;
  return taking->function(taking->data, name);
}

static int object_take(struct jit_gdb_entry *entry, jit_read_function *read, void *read_data,
                       jit_name_function *function, void *data)
{
  struct taking taking = {entry, function, data};
  uint8_t *bytes;
  int r = 0;

  if (!entry->size || entry->size > OBJECT_MOST)
    return 0;
  bytes = malloc((size_t)entry->size);
  if (!bytes)
    return -ENOMEM;
  if (memory_read(read, read_data, entry->object, bytes, (size_t)entry->size))
    r = jit_elf_take(bytes, (size_t)entry->size, name_pass, &taking);
  free(bytes);
  return r;
}

/* Drops the entries that the last walk did not find: their code is gone. */
static int entries_drop(struct jit_gdb *gdb, jit_name_function *function, void *data)
{
  size_t kept = 0;
  int r = 0;

  for (size_t i = 0; i < gdb->count; i++) {
    const struct jit_gdb_entry *entry = &gdb->entries[i];

    if (entry->seen == gdb->walks)
      gdb->entries[kept++] = *entry;
    else if (r >= 0 && entry->end > entry->first)
      r = function(data, &(struct jit_name){.start = entry->first, .size = entry->end - entry->first, .text = ""});
  }
  gdb->count = kept;
  return r;
}

/* New objects are at the front of the list, or at its end: all of it is read. */
static int list_take(struct jit_gdb *gdb, uint64_t first, jit_read_function *read, void *read_data,
                     jit_name_function *function, void *data)
{
  size_t known = gdb->count;
  struct entry entry;
  int r = 0;

  gdb->walks++;
  for (uint64_t at = first, i = 0; at && i < ENTRIES_MOST && r >= 0; at = entry.next, i++) {
    struct jit_gdb_entry *found;

    if (!memory_read(read, read_data, at, &entry, sizeof(entry)))
      return 0;
    found = entry_find(gdb, at, &entry);
    if (found) {
      found->seen = gdb->walks;
      continue;
    }
    found = array_append(&gdb->entries, &gdb->count, &gdb->capacity);
    if (!found)
      return -ENOMEM;
    *found = (struct jit_gdb_entry){.address = at, .object = entry.object, .size = entry.size, .seen = gdb->walks};
  }
  if (gdb->count > known || known)
    r = entries_drop(gdb, function, data); /* before the new ones, which may have the same addresses */
  for (size_t i = 0; i < gdb->count && r >= 0; i++)
    if (!gdb->entries[i].end) {
      r = object_take(&gdb->entries[i], read, read_data, function, data);
      gdb->entries[i].end += !gdb->entries[i].end; /* it has no names: it is not read again */
    }
  return r;
}

int jit_gdb_take(struct jit_gdb *gdb, jit_read_function *read, void *read_data, jit_name_function *function, void *data)
{
  struct descriptor descriptor;

  if (!memory_read(read, read_data, gdb->descriptor, &descriptor, sizeof(descriptor)) || descriptor.version != 1)
    return 0;
  if (gdb->is_read && descriptor.first == gdb->first && descriptor.relevant == gdb->relevant &&
      descriptor.action == gdb->action)
    return 0;
  gdb->is_read = true;
  gdb->first = descriptor.first;
  gdb->relevant = descriptor.relevant;
  gdb->action = descriptor.action;
  return list_take(gdb, descriptor.first, read, read_data, function, data);
}
