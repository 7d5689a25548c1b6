/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/symbol: which symbol an address belongs to, for ELF files that are made here, for this program's own
 * file, and for map files in every form; and files that are wrong.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbol/symbol.h"

/* ---- helpers ---- */

static struct symbol_table *read_bytes(const void *bytes, size_t size)
{
  struct symbol_table *table = NULL;

  assert_int_equal(symbol_table_read(bytes, size, &table), 0);
  return table;
}

static struct symbol_table *read_map(const char *text)
{
  return read_bytes(text, strlen(text));
}

static void assert_found(const struct symbol_table *table, uint64_t address, const char *want, uint64_t offset)
{
  const char *name;
  uint64_t got;

  if (!symbol_table_find(table, address, &name, &got))
    fail_msg("nothing at %#llx, expected %s", (unsigned long long)address, want);
  assert_string_equal(name, want);
  assert_int_equal(got, offset);
}

static void assert_nothing(const struct symbol_table *table, uint64_t address)
{
  const char *name = "untouched";
  uint64_t offset = 77;

  if (symbol_table_find(table, address, &name, &offset))
    fail_msg("%s+%#llx at %#llx", name, (unsigned long long)offset, (unsigned long long)address);
  assert_string_equal(name, "untouched");
  assert_int_equal(offset, 77);
}

/* ---- maps ---- */

static void test_nm(void **state)
{
  struct symbol_table *table = read_map("0000000000100010 T start\n"
                                        "0000000000100020 t helper\n"
                                        "0000000000100020 T _helper_alias\n"
                                        "                 U printf\n"
                                        "0000000000000003 A CONSTANT\n"
                                        "0000000000100100 D data\r\n");
  uint64_t address;

  (void)state;
  assert_int_equal(symbol_table_count(table), 3);
  assert_nothing(table, 0x10000f);
  assert_nothing(table, 3);
  assert_found(table, 0x100010, "start", 0);
  assert_found(table, 0x10001f, "start", 0xf);
  assert_found(table, 0x100020, "_helper_alias", 0);
  assert_found(table, 0x100104, "data", 4);
  assert_found(table, 0x1000ff + SYMBOL_REACH, "data", SYMBOL_REACH - 1);
  assert_nothing(table, 0x100100 + SYMBOL_REACH);
  assert_true(symbol_table_address(table, "start", &address));
  assert_int_equal(address, 0x100010);
  assert_false(symbol_table_address(table, "none", &address));
  symbol_table_free(table);
}

static void test_other_maps(void **state)
{
  struct symbol_table *table =
    read_map("- NASM Map file ---------------------------------------------------------------\n"
             "\n"
             "Real              Virtual           Name\n"
             "            7C00              7C00  start\n"
             "               0             17C40  start.loop\n"
             "0x8000 plain\n"
             "9000 \xe4\xb8\xad\n"
             "be good\n"
             "0000a000 0000000000000010 t sized\n"
             "ffffffffc0000000 t module_function\t[module]\n");

  (void)state;
  assert_int_equal(symbol_table_count(table), 6);
  assert_found(table, 0x7c05, "start", 5);
  assert_found(table, 0x17c40, "start.loop", 0);
  assert_found(table, 0x8000, "plain", 0);
  assert_found(table, 0x9001, "\xe4\xb8\xad", 1);
  assert_found(table, 0xa00f, "sized", 0xf);
  assert_nothing(table, 0xa010);
  assert_found(table, 0xffffffffc0000001, "module_function", 1);
  symbol_table_free(table);
}

static void test_ends_of_the_address_space(void **state)
{
  struct symbol_table *table = read_map("0x0 zero\nfffffffffffffff0 T last\n");

  (void)state;
  assert_found(table, 0, "zero", 0);
  assert_found(table, 0xfffffffffffffffe, "last", 0xe);
  symbol_table_free(table);
  assert_nothing(NULL, 0);
}

static void test_bad_maps(void **state)
{
  static const char zero[] = "1000 T a\0b\n";
  struct symbol_table *table = NULL;
  char line[2100];

  (void)state;
  assert_int_equal(symbol_table_read("", 0, &table), LB_E_NO_SYMBOLS);
  assert_int_equal(symbol_table_read("hello, world\n", 13, &table), LB_E_NO_SYMBOLS);
  assert_int_equal(symbol_table_read("1000 T \033[2J\n", 12, &table), LB_E_NO_SYMBOLS);
  assert_int_equal(symbol_table_read("1000 T \xc2\x9b\n", 10, &table), LB_E_NO_SYMBOLS);
  assert_int_equal(symbol_table_read("1000 T \xff\n", 9, &table), LB_E_NO_SYMBOLS);
  assert_int_equal(symbol_table_read("1000 T \xe4\xb8", 9, &table), LB_E_NO_SYMBOLS);
  assert_int_equal(symbol_table_read("11112222333344445 T x\n", 22, &table), LB_E_NO_SYMBOLS);
  assert_int_equal(symbol_table_read(zero, sizeof(zero) - 1, &table), LB_E_BAD_SYNTAX);
  assert_null(table);
  memset(line, 'x', sizeof(line));
  memcpy(line, "1000 T ", 7);
  table = read_bytes(line, sizeof(line));
  const char *name;
  uint64_t offset;
  assert_true(symbol_table_find(table, 0x1000, &name, &offset));
  assert_int_equal(strlen(name), SYMBOL_NAME_MAX);
  symbol_table_free(table);
}

/* ---- ELF ---- */

struct piece {
  const char *name;
  uint32_t value, size;
  uint8_t info;
  uint16_t section;
};

/* A 32-bit ELF file with .text at 0xC0100000, loaded at 0x100000, a data section and some symbols. */
struct image {
  Elf32_Ehdr head;
  Elf32_Phdr program;
  Elf32_Shdr sections[5];
  Elf32_Sym symbols[16];
  char names[256];
};

static void image_make(struct image *image, const struct piece *pieces, size_t count)
{
  size_t at = 1;

  memset(image, 0, sizeof(*image));
  memcpy(image->head.e_ident, ELFMAG, SELFMAG);
  image->head.e_ident[EI_CLASS] = ELFCLASS32;
  image->head.e_ident[EI_DATA] = ELFDATA2LSB;
  image->head.e_ident[EI_VERSION] = EV_CURRENT;
  image->head.e_type = ET_EXEC;
  image->head.e_machine = EM_386;
  image->head.e_version = EV_CURRENT;
  image->head.e_ehsize = sizeof(image->head);
  image->head.e_phoff = offsetof(struct image, program);
  image->head.e_phentsize = sizeof(Elf32_Phdr);
  image->head.e_phnum = 1;
  image->head.e_shoff = offsetof(struct image, sections);
  image->head.e_shentsize = sizeof(Elf32_Shdr);
  image->head.e_shnum = 5;
  image->program =
    (Elf32_Phdr){.p_type = PT_LOAD, .p_vaddr = 0xC0100000, .p_paddr = 0x100000, .p_filesz = 0x100, .p_memsz = 0x2000};
  image->sections[1] = (Elf32_Shdr){
    .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0xC0100000, .sh_size = 0x1000};
  image->sections[2] =
    (Elf32_Shdr){.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_addr = 0xC0101000, .sh_size = 0x1000};
  image->sections[3] = (Elf32_Shdr){.sh_type = SHT_SYMTAB,
                                    .sh_offset = offsetof(struct image, symbols),
                                    .sh_size = (Elf32_Word)((count + 1) * sizeof(Elf32_Sym)),
                                    .sh_link = 4,
                                    .sh_entsize = sizeof(Elf32_Sym)};
  image->sections[4] =
    (Elf32_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, names), .sh_size = sizeof(image->names)};
  for (size_t i = 0; i < count; i++) {
    image->symbols[i + 1] = (Elf32_Sym){.st_name = (Elf32_Word)at,
                                        .st_value = pieces[i].value,
                                        .st_size = pieces[i].size,
                                        .st_info = pieces[i].info,
                                        .st_shndx = pieces[i].section};
    strcpy(image->names + at, pieces[i].name);
    at += strlen(pieces[i].name) + 1;
  }
}

#define FUNC ELF32_ST_INFO(STB_GLOBAL, STT_FUNC)
#define LABEL ELF32_ST_INFO(STB_LOCAL, STT_NOTYPE)

static const struct piece kernel[] = {
  {"entry", 0xC0100000, 0, LABEL, 1},
  {"main", 0xC0100020, 0x40, FUNC, 1},
  {"inner", 0xC0100030, 8, LABEL, 1},
  {"main_label", 0xC0100020, 0, LABEL, 1},
  {"variable", 0xC0101000, 4, ELF32_ST_INFO(STB_GLOBAL, STT_OBJECT), 2},
  {"data_label", 0xC0101004, 0, LABEL, 2},
  {"CONSTANT", 0xC0100010, 0, LABEL, SHN_ABS},
  {"file.c", 0, 0, ELF32_ST_INFO(STB_LOCAL, STT_FILE), SHN_ABS},
  {"elsewhere", 0, 0, FUNC, SHN_UNDEF},
  {"last", 0xC0100100, 0x10, FUNC, 1},
};

static void test_elf(void **state)
{
  struct image image;
  struct symbol_table *table;

  (void)state;
  image_make(&image, kernel, sizeof(kernel) / sizeof(*kernel));
  table = read_bytes(&image, sizeof(image));
  assert_int_equal(symbol_table_count(table), 4);
  assert_found(table, 0xC010001f, "entry", 0x1f);
  assert_found(table, 0xC0100021, "main", 1);
  assert_found(table, 0xC0100037, "inner", 7);
  assert_found(table, 0xC0100038, "main", 0x18); /* behind the label, still inside the function */
  assert_nothing(table, 0xC0100060);
  assert_nothing(table, 0xC0101000);
  assert_found(table, 0x100021, "main", 1); /* before paging */
  assert_nothing(table, 0x102021);
  symbol_table_free(table);
}

/* Of several names the one for people, without its version; a label without a size ends with its section. */
static void test_best_name(void **state)
{
  static const struct piece pieces[] = {
    {"_visible", 0xC0100000, 8, FUNC, 1},
    {"visible", 0xC0100000, 8, ELF32_ST_INFO(STB_WEAK, STT_FUNC), 1},
    {"local", 0xC0100010, 8, ELF32_ST_INFO(STB_LOCAL, STT_FUNC), 1},
    {"_global", 0xC0100010, 8, FUNC, 1},
    {"label", 0xC0100020, 8, LABEL, 1},
    {"_picker", 0xC0100020, 8, ELF32_ST_INFO(STB_LOCAL, STT_GNU_IFUNC), 1},
    {"versioned@@LIB_1.2", 0xC0100030, 8, FUNC, 1},
    {"@odd", 0xC0100040, 8, FUNC, 1},
    {"end", 0xC0100FF0, 0, LABEL, 1},
  };
  struct symbol_table *table;
  struct image image;

  (void)state;
  image_make(&image, pieces, sizeof(pieces) / sizeof(*pieces));
  table = read_bytes(&image, sizeof(image));
  assert_found(table, 0xC0100000, "visible", 0);
  assert_found(table, 0xC0100010, "_global", 0);
  assert_found(table, 0xC0100020, "_picker", 0);
  assert_found(table, 0xC0100030, "versioned", 0);
  assert_found(table, 0xC0100040, "@odd", 0);
  assert_found(table, 0xC0100FFF, "end", 15);
  assert_nothing(table, 0xC0101000);
  symbol_table_free(table);
}

static void test_own_file(void **state)
{
  FILE *file = fopen("/proc/self/exe", "rb");
  size_t size, room = 64 << 20;
  char *bytes = malloc(room);
  struct symbol_table *table;
  uint64_t address = 0;

  (void)state;
  assert_non_null(file);
  size = fread(bytes, 1, room, file);
  fclose(file);
  table = read_bytes(bytes, size);
  assert_true(symbol_table_address(table, "main", &address));
  assert_found(table, address + 3, "main", 3);
  symbol_table_free(table);
  free(bytes);
}

static void test_layout(void **state)
{
  struct symbol_layout layout;
  struct image image;

  (void)state;
  image_make(&image, kernel, 1);
  assert_int_equal(symbol_layout_read(&image, sizeof(image), &layout), 0);
  assert_int_equal(layout.count, 1);
  assert_int_equal(layout.pieces[0].address, 0xC0100000);
  assert_int_equal(layout.pieces[0].physical, 0x100000);
  assert_int_equal(layout.pieces[0].size, 0x100);
  assert_int_equal(layout.build_id_size, 0);
  assert_int_equal(symbol_layout_read("no", 2, &layout), LB_E_BAD_SYNTAX);
  layout.pieces[0].offset = 0x1180;
  uint64_t address = 77;
  assert_true(symbol_layout_address(&layout, 0x1185, &address));
  assert_int_equal(address, 0xC0100005);
  assert_true(symbol_layout_address(&layout, 0x1000, &address)); /* the page before it is mapped with it */
  assert_int_equal(address, 0xC00FFE80);
  assert_false(symbol_layout_address(&layout, 0x1280, &address));
  assert_false(symbol_layout_address(&layout, 0xFFF, &address));
  assert_int_equal(address, 0xC00FFE80);
  struct {
    Elf32_Nhdr head;
    char name[4];
    uint8_t id[8];
  } note = {{4, 8, NT_GNU_BUILD_ID}, "GNU", {1, 2, 3, 4, 5, 6, 7, 8}};
  memcpy(image.names, &note, sizeof(note));
  image.program =
    (Elf32_Phdr){.p_type = PT_NOTE, .p_offset = offsetof(struct image, names), .p_filesz = sizeof(note), .p_align = 4};
  assert_int_equal(symbol_layout_read(&image, sizeof(image), &layout), 0);
  assert_int_equal(layout.count, 0);
  assert_int_equal(layout.build_id_size, 8);
  assert_memory_equal(layout.build_id, note.id, 8);
}

/* Every byte wrong in turn, and the file cut everywhere: nothing breaks. */
static void test_bad_elf(void **state)
{
  struct image good, image;
  struct symbol_layout layout;
  struct symbol_table *table;
  uint8_t *bytes = (uint8_t *)&image;

  (void)state;
  image_make(&good, kernel, sizeof(kernel) / sizeof(*kernel));
  for (size_t i = 4; i < sizeof(image); i++)
    for (unsigned value = 0xff; value; value >>= 4) {
      image = good;
      bytes[i] ^= (uint8_t)value;
      if (symbol_table_read(bytes, sizeof(image), &table) >= 0)
        symbol_table_free(table);
      (void)symbol_layout_read(bytes, sizeof(image), &layout);
    }
  for (size_t i = 0; i < sizeof(image); i++) {
    uint8_t *copy = malloc(i ? i : 1);

    memcpy(copy, &good, i);
    if (symbol_table_read(copy, i, &table) >= 0)
      symbol_table_free(table);
    free(copy);
  }
  assert_int_equal(symbol_table_read("\177ELF", 4, &table), LB_E_BAD_SYNTAX);
  image = good;
  image.head.e_shnum = 3;
  assert_int_equal(symbol_table_read(&image, sizeof(image), &table), LB_E_NO_SYMBOLS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_nm),
    cmocka_unit_test(test_other_maps),
    cmocka_unit_test(test_ends_of_the_address_space),
    cmocka_unit_test(test_bad_maps),
    cmocka_unit_test(test_elf),
    cmocka_unit_test(test_best_name),
    cmocka_unit_test(test_own_file),
    cmocka_unit_test(test_layout),
    cmocka_unit_test(test_bad_elf),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
