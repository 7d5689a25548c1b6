/* SPDX-License-Identifier: Apache-2.0
 *
 * names MODE [PAUSE]: a compiler that names its functions, and counts the calls of each. MODE is how it names them: in
 * a perf map ("map"), all at the end ("late"), in a map with lines that are none ("garbage"), in a jitdump file
 * ("dump", in the present folder), or by GDB's interface ("gdb"). It uses the same addresses for several functions, one
 * after another. PAUSE is the time in milliseconds before each change of code. Prints "NAME CALLS" for each function.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define AREA 65536u
#define FUNCTIONS 16u

/* ---- GDB's interface, as its manual has it ---- */

struct jit_code_entry {
  struct jit_code_entry *next_entry, *prev_entry;
  const char *symfile_addr;
  uint64_t symfile_size;
};

struct jit_descriptor {
  uint32_t version, action_flag;
  struct jit_code_entry *relevant_entry, *first_entry;
};

struct jit_descriptor __jit_debug_descriptor = {1, 0, NULL, NULL};

void __jit_debug_register_code(void);
void __jit_debug_register_code(void)
{
  __asm__ volatile("" ::: "memory");
}

/* An object with one function. */
struct object {
  Elf64_Ehdr head;
  Elf64_Shdr sections[4];
  Elf64_Sym symbols[2];
  char names[64];
};

/* ---- functions ---- */

struct function {
  const char *name;
  uint8_t *code;
  size_t size;
  unsigned calls;
  struct jit_code_entry entry;
  struct object object;
};

static struct function functions[FUNCTIONS];
static unsigned count;
static uint8_t *area;
static const char *mode;
static FILE *map, *dump;
static unsigned pause_ms;

static void wait_a_while(void)
{
  struct timespec time = {pause_ms / 1000, pause_ms % 1000 * 1000000L};

  nanosleep(&time, NULL);
}

static void object_register(struct function *function)
{
  struct object *object = &function->object;
  struct jit_code_entry *first = __jit_debug_descriptor.first_entry;

  memcpy(object->head.e_ident, ELFMAG "\2\1\1", 7);
  object->head.e_type = ET_REL;
  object->head.e_machine = EM_X86_64;
  object->head.e_shoff = offsetof(struct object, sections);
  object->head.e_shentsize = sizeof(Elf64_Shdr);
  object->head.e_shnum = 4;
  object->sections[1] =
    (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_addr = (uintptr_t)function->code, .sh_size = function->size};
  object->sections[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                     .sh_offset = offsetof(struct object, symbols),
                                     .sh_size = sizeof(object->symbols),
                                     .sh_link = 3,
                                     .sh_entsize = sizeof(Elf64_Sym)};
  object->sections[3] =
    (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct object, names), .sh_size = sizeof(object->names)};
  object->symbols[1] =
    (Elf64_Sym){.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_size = function->size};
  snprintf(object->names + 1, sizeof(object->names) - 1, "%s", function->name);
  function->entry = (struct jit_code_entry){first, NULL, (const char *)object, sizeof(*object)};
  if (first)
    first->prev_entry = &function->entry;
  __jit_debug_descriptor.first_entry = __jit_debug_descriptor.relevant_entry = &function->entry;
  __jit_debug_descriptor.action_flag = 1;
  __jit_debug_register_code();
}

static void object_unregister(struct function *function)
{
  struct jit_code_entry *entry = &function->entry;

  if (entry->prev_entry)
    entry->prev_entry->next_entry = entry->next_entry;
  else
    __jit_debug_descriptor.first_entry = entry->next_entry;
  if (entry->next_entry)
    entry->next_entry->prev_entry = entry->prev_entry;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_descriptor.action_flag = 2;
  __jit_debug_register_code();
}

/* ---- jitdump ---- */

static void dump_number(uint64_t number, size_t size)
{
  fwrite(&number, size, 1, dump);
}

static void dump_prefix(unsigned type, size_t size)
{
  static uint64_t clock;

  dump_number(type, 4);
  dump_number(16 + size, 4);
  dump_number(++clock, 8);
}

static void dump_open(void)
{
  char path[64];

  snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
  dump = fopen(path, "w+");
  if (!dump)
    exit(2);
  dump_number(0x4A695444, 4);
  dump_number(1, 4);
  dump_number(40, 4);
  dump_number(62, 4);
  dump_number(0, 4);
  dump_number((uint64_t)getpid(), 4);
  dump_number(0, 8);
  dump_number(0, 8);
  fflush(dump);
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
    exit(2);
}

static void dump_load(const struct function *function)
{
  size_t name = strlen(function->name) + 1;

  dump_prefix(0, 40 + name + function->size);
  dump_number((uint64_t)getpid(), 4);
  dump_number((uint64_t)getpid(), 4);
  dump_number((uintptr_t)function->code, 8);
  dump_number((uintptr_t)function->code, 8);
  dump_number(function->size, 8);
  dump_number(count, 8);
  fwrite(function->name, name, 1, dump);
  fwrite(function->code, function->size, 1, dump);
  fflush(dump);
}

static void dump_move(const struct function *function, const uint8_t *from)
{
  dump_prefix(1, 48);
  dump_number((uint64_t)getpid(), 4);
  dump_number((uint64_t)getpid(), 4);
  dump_number((uintptr_t)function->code, 8);
  dump_number((uintptr_t)from, 8);
  dump_number((uintptr_t)function->code, 8);
  dump_number(function->size, 8);
  dump_number(count, 8);
  fflush(dump);
}

/* ---- the compiler ---- */

static void name_tell(struct function *function)
{
  if (map)
    fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)function->code, function->size, function->name);
  if (map && strcmp(mode, "late"))
    fflush(map);
  if (dump)
    dump_load(function);
  if (!strcmp(mode, "gdb"))
    object_register(function);
}

/* Writes a function that returns a number of its own: nops, mov $number, %eax; ret. */
static struct function *compile(const char *name, size_t offset, size_t size)
{
  struct function *function = &functions[count++];

  *function = (struct function){.name = name, .code = area + offset, .size = size};
  memset(function->code, 0x90, size);
  memcpy(function->code + size - 6, "\xB8\0\0\0\0\xC3", 6);
  function->code[size - 5] = (uint8_t)count;
  name_tell(function);
  return function;
}

static void call(struct function *function, unsigned calls)
{
  unsigned (*code)(void), expected = function->code[function->size - 5];

  memcpy(&code, &function->code, sizeof(code));
  for (unsigned i = 0; i < calls; i++)
    if (code() != expected)
      exit(3);
  function->calls += calls;
}

static void replace(struct function *function)
{
  wait_a_while();
  if (!strcmp(mode, "gdb")) {
    object_unregister(function);
    wait_a_while();
  }
}

/* Moves code, which keeps its name. A perf map and GDB's interface have another function of that name then. */
static struct function *move(struct function *function, size_t offset)
{
  struct function *moved = &functions[count++];

  *moved = *function;
  moved->code = area + offset;
  moved->calls = 0;
  memcpy(moved->code, function->code, function->size);
  if (dump)
    dump_move(moved, function->code);
  else
    name_tell(moved);
  return moved;
}

static void work(void)
{
  struct function *stay = compile("stay(int, char const*)", 0, 24), *one, *two;
  bool is_late = !strcmp(mode, "late");

  call(stay, 100);
  one = compile("first", 64, 32);
  call(one, 1000);
  call(stay, 10);
  if (!is_late) { /* a map that is written at the end has no names of code that is gone */
    replace(one);
    one = compile("second", 64, 48);
    call(one, 700);
    call(stay, 20);
    replace(one);
    one = compile("third", 64, 20);
    call(one, 300);
    one = compile("wide", 1024, 200);
    call(one, 20);
    replace(one);
    two = compile("inner", 1024 + 70, 40);
    call(two, 30);
  }
  two = compile("mover", 8192, 60);
  call(two, 40);
  two = move(two, 4096);
  call(two, 60);
  call(stay, 3);
  wait_a_while();
}

int main(int argc, char **argv)
{
  char path[64];

  mode = argc > 1 ? argv[1] : "map";
  pause_ms = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  area = mmap(NULL, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED)
    return 2;
  snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
  if (!strcmp(mode, "map") || !strcmp(mode, "late") || !strcmp(mode, "garbage"))
    map = fopen(path, "w");
  if (!strcmp(mode, "garbage"))
    fprintf(map, "not a name\n\x01\x02\n1234 zz bad\n\n%lx 10\n", (unsigned long)(uintptr_t)area);
  if (!strcmp(mode, "dump"))
    dump_open();
  work();
  if (map)
    fclose(map);
  if (dump)
    fclose(dump);
  for (unsigned i = 0; i < count; i++)
    printf("%u %s\n", functions[i].calls, functions[i].name);
  printf("%d\n", (int)getpid());
  return 0;
}
