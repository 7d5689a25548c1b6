/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of modules: programs are compiled here, and what is found in them is compared with what addr2line, objdump and
 * the loader of this process say. Debug files in every place, stripped files, and files that are wrong.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbol/symbol.h"

/* Functions inlined into each other, in loops and branches, in two files; one that is not exported, one that is never
 * inlined; calls into a library. */
static const char program_source[] = "#include <stdio.h>\n"
                                     "#include <stdlib.h>\n"
                                     "#include <string.h>\n"
                                     "#include \"part.h\"\n"
                                     "static inline int twice(int x)\n"
                                     "{\n"
                                     "  if (x > 1000)\n"
                                     "    abort();\n"
                                     "  return half(x) * 4;\n"
                                     "}\n"
                                     "static __attribute__((noinline)) int hidden(int x)\n"
                                     "{\n"
                                     "  int sum = 0;\n"
                                     "  for (int i = 0; i < x; i++)\n"
                                     "    sum += twice(i) ^ half(sum);\n"
                                     "  return sum;\n"
                                     "}\n"
                                     "__attribute__((noinline)) int shown(int x, char *text)\n"
                                     "{\n"
                                     "  if (text && strlen(text) > (size_t)x)\n"
                                     "    puts(text);\n"
                                     "  return twice(hidden(x)) + (int)strtol(text ? text : \"1\", NULL, 0);\n"
                                     "}\n"
                                     "int main(int argc, char **argv)\n"
                                     "{\n"
                                     "  return shown(argc, argv[0]);\n"
                                     "}\n";

static const char part_source[] = "static inline int deep(int x)\n"
                                  "{\n"
                                  "  return getenv(\"X\") ? *getenv(\"X\") : x >> 1;\n"
                                  "}\n"
                                  "static inline int half(int x)\n"
                                  "{\n"
                                  "  int y = deep(x);\n"
                                  "  return y > 3 ? deep(y + 1) : y;\n"
                                  "}\n";

/* ---- helpers ---- */

static char folder[4096];

/* Runs a command of the shell in the folder. */
__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
  char command[8192];
  int at = snprintf(command, sizeof(command), "cd '%s' && ", folder);
  va_list list;

  va_start(list, format);
  vsnprintf(command + at, sizeof(command) - (size_t)at, format, list);
  va_end(list);
  if (system(command) != 0)
    fail_msg("%s", command);
}

/* Its output. */
static FILE *run_output(const char *format, const char *name)
{
  char command[8192], rest[1024];

  FILE *output;

  snprintf(rest, sizeof(rest), format, name);
  snprintf(command, sizeof(command), "cd '%s' && %s", folder, rest);
  output = popen(command, "r");
  assert_non_null(output);
  return output;
}

static void put_file(const char *name, const char *text)
{
  char path[4200];

  FILE *file;

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static struct symbol_module *open_named(const char *name)
{
  struct symbol_module *module = NULL;
  char path[4200], root[4200];

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  snprintf(root, sizeof(root), "%s/root", folder);
  assert_int_equal(symbol_module_open(path, root, &module), 0);
  return module;
}

static uint8_t *read_named(const char *name, size_t *ret_size)
{
  uint8_t *bytes = malloc(16 << 20);
  char path[4200];

  FILE *file;

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  file = fopen(path, "rb");
  assert_non_null(file);
  *ret_size = fread(bytes, 1, 16 << 20, file);
  fclose(file);
  return bytes;
}

static int folder_make(void **state)
{
  const char *parent = getenv("TMPDIR");
  char path[4000];

  (void)state;
  snprintf(path, sizeof(path), "%s/test-symbol-XXXXXX", parent ? parent : "/tmp");
  if (!mkdtemp(path) || !realpath(path, folder))
    return -1;
  put_file("program.c", program_source);
  put_file("part.h", part_source);
  return 0;
}

static int folder_remove(void **state)
{
  (void)state;
  run("rm -rf '%s'", folder);
  return 0;
}

/* ---- symbols: as objdump has them ---- */

/* Of the labels that objdump prints before code, "0000000000001030 <puts@plt>:", and the instructions behind them.
 * Files have other symbols too, without a size, from the C library: only those that the test names are compared. */
static bool label_is_ours(const char *label)
{
  static const char *const labels[] = {"main", "shown", "hidden", "shown.cold", "hidden.cold"};

  for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++)
    if (!strcmp(label, labels[i]))
      return true;
  return strlen(label) > 4 && !strcmp(label + strlen(label) - 4, "@plt");
}

/* Behind the end of a function there may be padding, which objdump counts as its own. */
static bool is_padding(const char *text)
{
  return strstr(text, "nop") || strstr(text, "xchg") || strstr(text, "data16") || strstr(text, "int3");
}

/* Returns how many instructions were compared. */
static unsigned compare_symbols(struct symbol_module *module, const char *name, unsigned *ret_entries)
{
  FILE *output = run_output("objdump -d --no-show-raw-insn %s | sed 's/@@Base>/>/'", name);
  unsigned long long address, next, start = 0;
  char line[4096], label[1024] = "", new_label[1024];
  unsigned count = 0;

  while (fgets(line, sizeof(line), output)) {
    struct symbol_place place = {0};
    int end = 0;

    if (sscanf(line, "%llx <%1000[^>]>:", &next, new_label) == 2) {
      start = next;
      strcpy(label, new_label);
      *ret_entries += label_is_ours(label) && strchr(label, '@');
      continue;
    }
    if (sscanf(line, " %llx:\t%n", &address, &end) != 1 || !end || !label_is_ours(label))
      continue;
    if (!symbol_module_find(module, address, false, &place)) {
      if (!is_padding(line))
        fail_msg("%s: nothing at %#llx, expected %s", name, address, label);
      continue;
    }
    assert_string_equal(place.symbol, label);
    assert_int_equal(place.offset, address - start);
    assert_int_equal(place.frame_count, 0);
    count++;
  }
  assert_int_equal(pclose(output), 0);
  return count;
}

/* ---- lines: as addr2line has them ---- */

/* Writes what we know of an address as `addr2line -fia` does. */
static void place_print(FILE *file, struct symbol_module *module, uint64_t address)
{
  struct symbol_place place = {0};

  fprintf(file, "0x%016llx\n", (unsigned long long)address);
  if (!symbol_module_find(module, address, true, &place) || !place.frame_count)
    fprintf(file, "none\n");
  for (size_t i = 0; i < place.frame_count; i++) {
    const struct symbol_frame *frame = &place.frames[i];

    fprintf(file, "%s\n", frame->function ? frame->function : "??");
    if (frame->line)
      fprintf(file, "%s:%u\n", frame->file, frame->line);
    else
      fprintf(file, "%s:?\n", frame->file ? frame->file : "??");
  }
}

/* Takes all instructions of the program's own functions, the padding between them left out: what addr2line says about
 * that is from the symbol table. Expected answers come from the debug information of `reference`. */
static void compare_lines(const char *name, const char *reference, unsigned least)
{
  struct symbol_module *module = open_named(name);

  FILE *addresses, *ours;
  unsigned long long address;
  unsigned count = 0;
  char path[4200];

  run("objdump -d --no-show-raw-insn %s | awk '/^[0-9a-f]+ </ { is = /<(main|shown|hidden)(\\.cold)?>:/ } is && "
      "/^ +[0-9a-f]+:\\t/ && !/nop|xchg|data16|int3/ { sub(\":\", \"\"); print $1 }' >addresses",
      reference);
  run("addr2line -fia -e %s <addresses | sed -E 's/ \\(discriminator [0-9]+\\)//; "
      "s/^(main|shown|hidden)\\.cold$/\\1/; s,/\\./,/,g' >wanted",
      reference);
  addresses = run_output("cat %s", "addresses");
  snprintf(path, sizeof(path), "%s/ours", folder);
  ours = fopen(path, "w");
  while (fscanf(addresses, "%llx", &address) == 1) {
    place_print(ours, module, address);
    count++;
  }
  pclose(addresses);
  fclose(ours);
  symbol_module_close(module);
  if (count < least)
    fail_msg("%s: only %u addresses", reference, count);
  run("diff wanted ours >difference || { echo '# %s'; head -30 difference; exit 1; }", name);
}

static void compile(const char *compiler, const char *options, const char *name)
{
  run("%s -D_FORTIFY_SOURCE=0 -O2 %s program.c -o %s", compiler, options, name);
}

static void test_lines(void **state)
{
  static const char *const options[] = {
    "-gdwarf-4",
    "-gdwarf-5",
    "-gdwarf-5 -no-pie",
    "-gdwarf-5 -gz",
    "-gdwarf-5 -fPIC -shared",
    "-gdwarf-4 -O3 -ffunction-sections -Wl,--gc-sections",
    "-gdwarf-5 -static",
  };

  (void)state;
  for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
    compile("gcc", options[i], "program");
    compare_lines("program", "program", 50);
  }
}

/* clang writes no .debug_aranges, and other forms. What version 2.40 of addr2line says about its DWARF 5 is not right:
 * the same code with DWARF 4 gives what is expected. */
static void test_lines_clang(void **state)
{
  (void)state;
  if (system("clang --version >/dev/null 2>&1") != 0)
    skip();
  compile("clang", "-gdwarf-4", "four");
  compare_lines("four", "four", 50);
  compile("clang", "-gdwarf-5", "five");
  run("for i in four five; do objdump -d $i | tail -n +4 >$i.code; done; cmp four.code five.code");
  compare_lines("five", "four", 50);
}

/* The chain in words: who was inlined into whom, and where. */
static void test_chain(void **state)
{
  struct symbol_module *module;
  size_t deepest = 0;
  uint64_t start;

  (void)state;
  compile("gcc", "-gdwarf-5 -fno-partial-inlining", "program"); /* which would show a function inside itself */
  module = open_named("program");
  assert_true(symbol_module_address(module, "hidden", &start));
  for (uint64_t at = 0; at < 200; at++) {
    struct symbol_place place = {0};

    if (!symbol_module_find(module, start + at, true, &place) || !place.symbol || strcmp(place.symbol, "hidden") != 0)
      break;
    assert_true(place.frame_count >= 1);
    assert_string_equal(place.frames[place.frame_count - 1].function, "hidden");
    if (place.frame_count < 4)
      continue;
    deepest++;
    assert_string_equal(place.frames[0].function, "deep");
    assert_int_equal(place.frames[0].line, 3);
    assert_string_equal(place.frames[1].function, "half");
    assert_true(place.frames[1].line == 7 || place.frames[1].line == 8);
    assert_string_equal(place.frames[2].function, "twice");
    assert_string_equal(strrchr(place.frames[2].file, '/'), "/program.c");
    assert_int_equal(place.frames[2].line, 9);
    assert_int_equal(place.frames[3].line, 15);
    assert_int_equal(place.frame_count, 4);
  }
  assert_true(deepest > 3);
  symbol_module_close(module);
}

/* A function that the linker threw away says that it lies at 0, where it would cover what has no lines. */
static void test_thrown_away(void **state)
{
  static const char *const options[] = {"", "-Wl,-z,noseparate-code", "-gdwarf-4 -Wl,-z,noseparate-code"};

  (void)state;
  put_file("away.c", "void away(void) { asm volatile(\".skip 0x8000, 0x90\"); }\n");
  for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
    struct symbol_module *module;
    struct symbol_place place = {0};
    uint64_t address = 0;

    run("gcc -g -O2 -ffunction-sections -Wl,--gc-sections %s away.c program.c -o program", options[i]);
    module = open_named("program");
    assert_false(symbol_module_address(module, "away", &address));
    assert_true(symbol_module_address(module, "_start", &address));
    assert_in_range(address, 1, 0x7fff);
    assert_true(symbol_module_find(module, address, true, &place));
    assert_int_equal(place.frame_count, 0);
    assert_true(symbol_module_address(module, "hidden", &address));
    assert_true(symbol_module_find(module, address, true, &place));
    assert_string_equal(place.frames[place.frame_count - 1].function, "hidden");
    symbol_module_close(module);
  }
}

/* ---- symbols and linkage tables ---- */

static void test_symbols(void **state)
{
  static const char *const options[] = {
    "",
    "-no-pie",
    "-Wl,-z,now",
    "-fcf-protection=full -Wl,-z,ibtplt",
    "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now -no-pie",
    "-fPIC -shared",
  };

  (void)state;
  for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
    struct symbol_module *module;
    unsigned entries = 0;

    compile("gcc", options[i], "program");
    module = open_named("program");
    assert_true(compare_symbols(module, "program", &entries) > 50);
    if (entries < 5) /* abort, getenv, puts, strlen, strtol, some of which the compiler may do without */
      fail_msg("%s: %u entries of linkage tables", options[i], entries);
    symbol_module_close(module);
  }
}

/* With a table of jumps of its own (.plt.sec), the first one only pushes numbers: readelf has the names in their
 * order. */
static void test_pushing_entries(void **state)
{
  unsigned long long address;
  struct symbol_module *module;
  unsigned count = 0, number;
  char line[4096];

  FILE *output;

  (void)state;
  compile("gcc", "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy", "program");
  module = open_named("program");
  run("readelf -rW program | sed -n '/\\.rela\\.plt/,$ s/.*JUMP_SLO[^ ]* *[0-9a-f]* //p' | sed 's/[@ ].*//' >names");
  output = run_output("objdump -d --no-show-raw-insn -j .plt %s", "program");
  while (fgets(line, sizeof(line), output)) {
    struct symbol_place place = {0};

    if (sscanf(line, " %llx: push $%x", &address, &number) != 2)
      continue;
    assert_true(symbol_module_find(module, address, false, &place));
    assert_int_equal(place.offset, 4); /* behind ENDBR64 */
    run("test \"$(sed -n %up names)@plt\" = '%s'", number + 1, place.symbol);
    count++;
  }
  pclose(output);
  assert_true(count >= 4);
  symbol_module_close(module);
}

/* A static program calls some functions of the C library through slots, too, into which its start puts the one that is
 * best for the processor. objdump shows the slot, readelf who picks for it, nm the names of that. */
static void test_static_entries(void **state)
{
  unsigned long long address, slot;
  struct symbol_module *module;
  unsigned count = 0;
  char line[4096];

  FILE *output;

  (void)state;
  compile("gcc", "-static", "program");
  module = open_named("program");
  run("readelf -rW program | awk '/IRELATIV/ { print $1, $4 }' >pickers; nm program >names");
  output = run_output("objdump -d --no-show-raw-insn -j .plt %s", "program");
  while (fgets(line, sizeof(line), output)) {
    struct symbol_place place = {0};
    int length;

    if (sscanf(line, " %llx: %*s %*s # %llx <", &address, &slot) != 2)
      continue;
    assert_true(symbol_module_find(module, address, false, &place));
    assert_int_equal(place.offset, 0);
    length = (int)strlen(place.symbol) - 4;
    assert_true(length > 0);
    assert_string_equal(place.symbol + length, "@plt");
    run("grep -q \"^0*$(sed -n 's/^0*%llx //p' pickers) i %.*s$\" names", slot, length, place.symbol);
    count++;
  }
  pclose(output);
  assert_true(count > 5);
  symbol_module_close(module);
}

/* A stripped program has names for what it exports and for what it calls. */
static void test_stripped(void **state)
{
  struct symbol_module *module;
  struct symbol_place place;
  unsigned entries = 0;
  uint64_t hidden, main_address, address;

  (void)state;
  compile("gcc", "-rdynamic", "program");
  module = open_named("program");
  assert_true(symbol_module_address(module, "hidden", &hidden));
  assert_true(symbol_module_address(module, "main", &main_address));
  symbol_module_close(module);
  run("strip program");
  module = open_named("program");
  assert_true(compare_symbols(module, "program", &entries) > 20);
  assert_true(entries >= 5);
  assert_false(symbol_module_address(module, "hidden", &address));
  assert_false(symbol_module_find(module, hidden, true, &place));
  assert_true(symbol_module_find(module, main_address + 1, true, &place));
  assert_string_equal(place.symbol, "main");
  assert_int_equal(place.offset, 1);
  assert_int_equal(place.frame_count, 0);
  symbol_module_close(module);
}

/* ---- debug files ---- */

static bool has_everything(const char *name)
{
  struct symbol_module *module = open_named(name);
  struct symbol_place place = {0};
  uint64_t hidden;
  bool has_symbol = symbol_module_address(module, "hidden", &hidden);
  bool has_line = has_symbol && symbol_module_find(module, hidden, true, &place) && place.frame_count &&
                  !strcmp(place.frames[place.frame_count - 1].function, "hidden");

  assert_int_equal(has_symbol, has_line);
  symbol_module_close(module);
  return has_line;
}

static void split(const char *options)
{
  compile("gcc", options, "whole");
  run("rm -rf root .debug program.debug; mkdir -p root .debug");
  run("objcopy --only-keep-debug whole program.debug && strip -o program whole && "
      "objcopy --add-gnu-debuglink=program.debug program");
}

static void test_debuglink(void **state)
{
  static const char *const options[] = {"-g -Wl,--build-id=none", "-gdwarf-4 -Wl,--build-id=sha1"};

  (void)state;
  for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
    split(options[i]);
    assert_true(has_everything("program"));
    compare_lines("program", "whole", 50);
    run("mv program.debug .debug");
    assert_true(has_everything("program"));
    run("mkdir -p root'%s' && mv .debug/program.debug root'%s'", folder, folder);
    assert_true(has_everything("program"));
    run("ln -s program linked; mkdir -p elsewhere; mv linked elsewhere; ln -sf ../program elsewhere/linked");
    assert_true(has_everything("elsewhere/linked"));
    run("rm -rf root elsewhere");
    assert_false(has_everything("program"));
  }
}

static void test_debug_by_build_id(void **state)
{
  (void)state;
  split("-gdwarf-5 -Wl,--build-id=0x0123456789abcdef");
  run("objcopy --remove-section .gnu_debuglink program; mkdir -p root/.build-id/01");
  assert_false(has_everything("program"));
  run("mv program.debug root/.build-id/01/23456789abcdef.debug");
  assert_true(has_everything("program"));
  compare_lines("program", "whole", 50);
}

/* The debug file of another build is not used. */
static void test_wrong_debug_file(void **state)
{
  (void)state;
  split("-g -Wl,--build-id=none");
  run("printf x >>program.debug");
  assert_false(has_everything("program"));
  split("-g -Wl,--build-id=sha1");
  compile("gcc", "-g -O1 -Wl,--build-id=sha1", "other");
  run("objcopy --only-keep-debug other program.debug");
  assert_false(has_everything("program"));
  run("cp program program.debug"); /* without anything in it */
  assert_false(has_everything("program"));
  run("ln -sf program program.debug");
  assert_false(has_everything("program"));
  run("rm program.debug; mkfifo program.debug");
  assert_false(has_everything("program"));
  run("rm program.debug");
}

/* ---- bytes, offsets, build-ids ---- */

static int first_object(struct dl_phdr_info *info, size_t size, void *data)
{
  (void)size;
  *(uint64_t *)data = info->dlpi_addr;
  return 1;
}

/* This program's own code, as the file has it and as it lies in memory. */
static void test_code(void **state)
{
  struct symbol_module *module;
  struct symbol_place place = {0};
  uint64_t bias = 0, address;
  uint8_t code[64];

  (void)state;
  dl_iterate_phdr(first_object, &bias);
  assert_int_equal(symbol_module_open("/proc/self/exe", NULL, &module), 0);
  assert_true(symbol_module_address(module, "main", &address));
  assert_true(symbol_module_find(module, address, false, &place));
  assert_string_equal(place.symbol, "main");
  assert_int_equal(symbol_module_code(module, address, code, sizeof(code)), sizeof(code));
  assert_memory_equal(code, (const void *)(uintptr_t)(bias + address), sizeof(code));
  assert_int_equal(symbol_module_code(module, UINT64_MAX - 3, code, sizeof(code)), 0);
  symbol_module_close(module);
}

static void test_offsets(void **state)
{
  unsigned long long offset, address, size;
  const struct symbol_layout *layout;
  struct symbol_module *module, *in_memory;
  uint64_t linked = 0;
  char buffer[16];
  size_t file_size;
  uint8_t *bytes;

  FILE *output;
  unsigned count = 0;

  (void)state;
  compile("gcc", "-Wl,--build-id=0x00112233445566778899", "program");
  module = open_named("program");
  bytes = read_named("program", &file_size);
  assert_int_equal(symbol_module_open_bytes(bytes, file_size, &in_memory), 0);
  layout = symbol_module_layout(module);
  assert_int_equal(layout->build_id_size, 10);
  assert_memory_equal(layout->build_id, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99", 10);
  output = run_output("readelf -lW %s | sed -n 's/^ *LOAD *//p'", "program");
  while (fscanf(output, "%llx %llx %*x %llx %*[^\n]", &offset, &address, &size) == 3) {
    assert_true(symbol_layout_address(layout, offset + size / 2, &linked));
    assert_int_equal(linked, address + size / 2);
    assert_true(count < layout->count);
    assert_int_equal(layout->pieces[count].address, address);
    assert_int_equal(symbol_module_code(module, address + size - 8, buffer, 16), 8);
    assert_memory_equal(buffer, bytes + offset + size - 8, 8);
    assert_int_equal(symbol_module_code(in_memory, address + size - 8, buffer, 16), 8);
    assert_memory_equal(buffer, bytes + offset + size - 8, 8);
    count++;
  }
  pclose(output);
  assert_true(count >= 2);
  assert_int_equal(count, layout->count);
  linked = 77;
  assert_false(symbol_layout_address(layout, file_size + 8192, &linked));
  assert_int_equal(linked, 77);
  symbol_module_close(in_memory);
  symbol_module_close(module);
  free(bytes);
}

/* ---- files that are wrong ---- */

static void test_bad_files(void **state)
{
  struct symbol_module *module = NULL;
  char path[4200];

  (void)state;
  run("mkdir -p directory; rm -f pipe; mkfifo pipe; : >empty; echo text >text; printf '\\177ELF' >short");
  assert_int_equal(symbol_module_open("/nowhere/at/all", NULL, &module), -ENOENT);
  snprintf(path, sizeof(path), "%s/directory", folder);
  assert_int_equal(symbol_module_open(path, NULL, &module), -EISDIR);
  snprintf(path, sizeof(path), "%s/pipe", folder);
  assert_int_equal(symbol_module_open(path, NULL, &module), -ESPIPE);
  snprintf(path, sizeof(path), "%s/empty", folder);
  assert_int_equal(symbol_module_open(path, NULL, &module), LB_E_BAD_SYNTAX);
  snprintf(path, sizeof(path), "%s/text", folder);
  assert_int_equal(symbol_module_open(path, NULL, &module), LB_E_BAD_SYNTAX);
  snprintf(path, sizeof(path), "%s/short", folder);
  assert_int_equal(symbol_module_open(path, NULL, &module), LB_E_BAD_SYNTAX);
  assert_int_equal(symbol_module_open_bytes("", 0, &module), LB_E_BAD_SYNTAX);
  assert_null(module);
}

/* A file that is cut while it is open. */
static void test_cut_file(void **state)
{
  struct symbol_module *module;
  struct symbol_place place = {0};
  char code[16], path[4200];
  uint64_t address;

  (void)state;
  compile("gcc", "-g", "program");
  module = open_named("program");
  assert_true(symbol_module_address(module, "hidden", &address));
  snprintf(path, sizeof(path), "%s/program", folder);
  assert_int_equal(truncate(path, 700), 0);
  assert_int_equal(symbol_module_code(module, address, code, sizeof(code)), 0);
  assert_true(symbol_module_find(module, address, true, &place));
  assert_int_equal(place.frame_count, 0);
  symbol_module_close(module);
}

/* Sections that are all the whole file; a name in .gnu_debugaltlink that would make a reader wait. */
static void test_hostile_sections(void **state)
{
  struct symbol_module *module;

  ElfW(Ehdr) head;
  uint8_t *bytes;
  size_t size;

  (void)state;
  compile("gcc", "-g", "program");
  bytes = read_named("program", &size);
  memcpy(&head, bytes, sizeof(head));
  for (unsigned i = 1; i < head.e_shnum; i++) {
    ElfW(Shdr) section;

    memcpy(&section, bytes + head.e_shoff + i * sizeof(section), sizeof(section));
    section.sh_offset = 0;
    section.sh_size = size;
    memcpy(bytes + head.e_shoff + i * sizeof(section), &section, sizeof(section));
  }
  assert_int_equal(symbol_module_open_bytes(bytes, size, &module), LB_E_TOO_BIG);
  free(bytes);
  run("rm -f pipe; mkfifo pipe; { printf pipe; printf '\\0'; printf 01234567890123456789; } >link; "
      "objcopy --add-section .gnu_debugaltlink=link program");
  module = open_named("program");
  uint64_t address;
  struct symbol_place place = {0};
  assert_true(symbol_module_address(module, "hidden", &address));
  assert_true(symbol_module_find(module, address, true, &place));
  assert_int_equal(place.frame_count, 0);
  symbol_module_close(module);
}

static void place_check(const struct symbol_place *place)
{
  assert_true(place->frame_count <= SYMBOL_FRAMES_MAX);
  for (size_t i = 0; i < place->frame_count; i++) {
    const char *texts[] = {place->frames[i].function, place->frames[i].file};

    for (size_t j = 0; j < 2; j++)
      for (const char *at = texts[j]; at && *at; at++)
        assert_false((unsigned char)*at < ' ' || *at == 127);
  }
}

/* Random bytes changed in the sections that libdw reads: nothing breaks, and nothing that cannot be printed comes out.
 */
static void test_changed_bytes(void **state)
{
  uint64_t random = 20260101;
  size_t size;
  uint8_t *good, *bytes;
  unsigned answers = 0;

  (void)state;
  compile("gcc", "-gdwarf-5 -nostartfiles -Wl,-e,main", "program");
  good = read_named("program", &size);
  bytes = malloc(size);
  for (unsigned round = 0; round < 1500; round++) {
    struct symbol_module *module;

    memcpy(bytes, good, size);
    for (unsigned i = 0; i <= round % 4; i++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      bytes[64 + (random >> 33) % (size - 64)] = (uint8_t)(random >> 25);
    }
    if (symbol_module_open_bytes(bytes, size, &module) < 0)
      continue;
    for (uint64_t address = 0x1000; address < 0x1200; address += 3) {
      struct symbol_place place = {0};

      if (symbol_module_find(module, address, true, &place)) {
        place_check(&place);
        answers += place.frame_count > 0;
      }
    }
    symbol_module_close(module);
  }
  assert_true(answers > 10000);
  free(bytes);
  free(good);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lines),
    cmocka_unit_test(test_lines_clang),
    cmocka_unit_test(test_chain),
    cmocka_unit_test(test_thrown_away),
    cmocka_unit_test(test_symbols),
    cmocka_unit_test(test_pushing_entries),
    cmocka_unit_test(test_static_entries),
    cmocka_unit_test(test_stripped),
    cmocka_unit_test(test_debuglink),
    cmocka_unit_test(test_debug_by_build_id),
    cmocka_unit_test(test_wrong_debug_file),
    cmocka_unit_test(test_code),
    cmocka_unit_test(test_offsets),
    cmocka_unit_test(test_bad_files),
    cmocka_unit_test(test_cut_file),
    cmocka_unit_test(test_hostile_sections),
    cmocka_unit_test(test_changed_bytes),
  };

  return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
