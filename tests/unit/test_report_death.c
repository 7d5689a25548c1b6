/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a program's end: the words for signals, what the instruction wanted with the address, the columns, and
 * the JSON object. Instructions are given as bytes, as GNU as makes them; signals as the kernel delivers them for the
 * same instruction (sigaction(2)).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>

#include "lastbranch/recorder.h"
#include "report/report.h"
#include "symbol/symbol.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

/* ---- a made-up program ---- */

static const uint8_t *code;
static size_t code_size;

#define F UINT64_C(0x401000) /* function f of program, f.c:1... */
#define G UINT64_C(0x402000) /* function g, inline h in it */
#define L UINT64_C(0x7f0000001000)
#define W UINT64_C(0x403000) /* functions with long names */

/* A name of so many letters, of two bytes each: "é" first, "ß" last, "Ω" between. */
static const char *long_name(unsigned letters)
{
  static char name[2 * 300 + 1];

  *name = '\0';
  for (unsigned i = 0; i < letters; i++)
    strcat(name, i == 0 ? "é" : i + 1 < letters ? "Ω" : "ß");
  return name;
}

static bool find(void *data, uint32_t space, uint32_t mark, uint64_t address, struct symbol_place *ret_place)
{
  (void)data;
  assert_int_equal(space, 7);
  assert_true(mark == ANALYSIS_NOW || mark < 100);
  struct symbol_place place = {.module = "/bin/program"};
  if (address - F < 0x100) {
    place.symbol = "f";
    place.offset = address - F;
    place.frame_count = 1;
    place.frames[0] = (struct symbol_frame){.function = "f", .file = "/src/f.c", .line = (unsigned)(1 + address - F)};
  } else if (address - G < 0x100) {
    place.symbol = "g";
    place.offset = address - G;
    place.frame_count = 3;
    place.frames[0] = (struct symbol_frame){.function = "inner", .file = "inner.h", .line = 11};
    place.frames[1] = (struct symbol_frame){.function = "h", .file = "h.h", .line = 22};
    place.frames[2] = (struct symbol_frame){.function = "g", .file = "/src/g.c", .line = 33};
  } else if (address - W < 0x100) {
    place.symbol = long_name((unsigned)(address - W));
    place.mangled = "_Zlong";
    place.offset = 0x12;
    place.frame_count = 1;
    place.frames[0] = (struct symbol_frame){.function = "w", .file = "/src/w.c", .line = 345};
  } else if (address - L < 0x100) {
    place.module = "/lib/library.so";
    place.offset = address - L;
  } else {
    return false;
  }
  *ret_place = place;
  return true;
}

static size_t find_code(void *data, uint32_t space, uint32_t mark, uint64_t address, uint8_t *bytes, size_t size)
{
  (void)data;
  (void)space;
  (void)mark;
  if (address != F && address != G)
    return 0;
  if (size > code_size)
    size = code_size;
  memcpy(bytes, code, size);
  return size;
}

static const struct analysis_places places = {.find = find, .code = find_code};

static const struct lb_branch branches[] = {
  {.from = F, .to = G, .kind = LB_BRANCH_NEAR_REL_CALL},
  {.from = G, .to = L + 4, .kind = LB_BRANCH_NEAR_IND_JMP},
  {.from = L + 8, .to = 0, .kind = LB_BRANCH_NEAR_RET},
};

static const uint32_t marks[] = {1, 2, 3};

static struct analysis_thread thread = {
  .thread = 42, .space = 7, .name = "na\033me", .branches = branches, .marks = marks, .count = 3, .is_cut = true};

static unsigned width; /* of a line */

static char *print(struct analysis_death *death, enum report_format format, bool wants_color)
{
  static struct text text;
  const struct report_death_options options = {
    .format = format, .wants_color = wants_color, .width = width, .places = &places};

  text_done(&text);
  if (!death->program)
    death->program = "/bin/program";
  death->process = 41;
  if (!death->threads) {
    death->threads = &thread;
    death->thread_count = 1;
  }
  assert_int_equal(report_death_print(&text, death, &options), 0);
  return text.data;
}

/* ---- words ---- */

/* The first line, without "lbr: ". */
static void expect_words(struct analysis_death death, const char *instruction, size_t size, const char *words)
{
  code = (const uint8_t *)instruction;
  code_size = size;
  death.ending = ANALYSIS_DIED;
  death.rip = F;
  char *text = print(&death, REPORT_TABLE, false);
  *strchr(text, '\n') = 0;
  assert_string_equal(text, words);
}

#define WORDS(bytes, words, ...)                                                                                       \
  expect_words((struct analysis_death){__VA_ARGS__}, bytes, sizeof(bytes) - 1, "lbr: Segmentation fault: " words)

static void test_memory(void **state)
{
  (void)state;
#define FAULT .signal = SIGSEGV, .code = SEGV_MAPERR
  WORDS("\xc7\x00\x01\x00\x00\x00", "wrote to 0x0, which is not mapped", FAULT);   /* movl $1, (%rax) */
  WORDS("\x8b\x48\x10", "read 0x10, which is not mapped", FAULT, .address = 0x10); /* mov 16(%rax), %ecx */
  WORDS("\x83\x00\x01", "wrote to 0x0, which is not mapped", FAULT);               /* addl $1, (%rax) */
  WORDS("\x8b\x48\x10", "read 0x10, which is mapped, but not for that", .signal = SIGSEGV, .code = SEGV_ACCERR,
        .address = 0x10);
  /* rep movsb: it depends on the address */
  WORDS("\xf3\xa4", "read 0x100, which is not mapped", FAULT, .address = 0x100,
        .registers = {[RSI] = 0x100, [RDI] = 0x200});
  WORDS("\xf3\xa4", "wrote to 0x200, which is not mapped", FAULT, .address = 0x200,
        .registers = {[RSI] = 0x100, [RDI] = 0x200});
  WORDS("\x55", "wrote to 0xff8, which is not mapped", FAULT, .address = 0xff8,
        .registers = {[RSP] = 0x1000});                                                                       /* push */
  WORDS("\x5d", "read 0x1000, which is not mapped", FAULT, .address = 0x1000, .registers = {[RSP] = 0x1000}); /* pop */
  /* push (%rax) reads one and writes the other */
  WORDS("\xff\x30", "read 0x10, which is not mapped", FAULT, .address = 0x10,
        .registers = {[RAX] = 0x10, [RSP] = 0x1000});
  WORDS("\xff\x30", "wrote to 0xff8, which is not mapped", FAULT, .address = 0xff8,
        .registers = {[RAX] = 0x10, [RSP] = 0x1000});
  WORDS("", "accessed 0x10, which is not mapped", FAULT, .address = 0x10);
  /* movl $1, (%rax) with an address that can be none: the kernel does not tell it */
  WORDS("\xc7\x00\x01\x00\x00\x00", "used 0x1234567812345678, which can be no address", .signal = SIGSEGV,
        .code = SI_KERNEL, .registers = {[RAX] = 0x1234567812345678});
  /* ret, call *%rax, jmp *%rax to where nothing can be: #GP, with RIP at the branch (SDM vol. 2, RET, CALL, JMP) */
  WORDS("\xc3", "ret wanted to go to 0x4141414141414141, which can be no address", .signal = SIGSEGV, .code = SI_KERNEL,
        .has_top = true, .top = 0x4141414141414141);
  WORDS("\xff\xd0", "call wanted to go to 0x800000000000, which can be no address", .signal = SIGSEGV,
        .code = SI_KERNEL, .registers = {[RAX] = 0x800000000000});
  WORDS("\xff\xe0", "jmp wanted to go to 0x8000000000000000, which can be no address", .signal = SIGSEGV,
        .code = SI_KERNEL, .registers = {[RAX] = 0x8000000000000000});
  WORDS("\xc3", "a general protection fault", .signal = SIGSEGV, .code = SI_KERNEL);
  WORDS("\xf4", "a general protection fault", .signal = SIGSEGV, .code = SI_KERNEL); /* hlt */
}

static void expect_first_line(const char *line, struct analysis_death death)
{
  code_size = 0;
  char *text = print(&death, REPORT_TABLE, false);
  *strchr(text, '\n') = 0;
  assert_string_equal(text, line);
}

static void test_signals(void **state)
{
  (void)state;
#define DIED(number, why) (struct analysis_death){.ending = ANALYSIS_DIED, .signal = number, .code = why, .rip = F}
  expect_first_line("lbr: Aborted", DIED(SIGABRT, SI_TKILL));
  expect_first_line("lbr: Floating point exception: an integer was divided by zero, or the quotient was too big",
                    DIED(SIGFPE, FPE_INTDIV));
  expect_first_line("lbr: Illegal instruction: no such instruction", DIED(SIGILL, ILL_ILLOPN));
  expect_first_line("lbr: Trace/breakpoint trap: sent by the kernel", DIED(SIGTRAP, SI_KERNEL));
  expect_first_line("lbr: Terminated: sent by kill(2)", DIED(SIGTERM, SI_USER));
  expect_first_line("lbr: Segmentation fault: sent by kill(2)", DIED(SIGSEGV, SI_USER));
  expect_first_line("lbr: Bad system call: a seccomp filter forbids the system call", DIED(SIGSYS, 1));
  expect_first_line("lbr: Broken pipe", DIED(SIGPIPE, 12345));
  expect_first_line("lbr: Signal 60: sent by kill(2)", DIED(60, SI_USER));
  expect_first_line("lbr: exited with status 3", (struct analysis_death){.ending = ANALYSIS_EXITED, .status = 3});
  expect_first_line("lbr: exited with status 101: a panic of Rust; this is where it began",
                    (struct analysis_death){.ending = ANALYSIS_EXITED, .status = 101, .panic = "Rust"});
  expect_first_line("lbr: timed out after 2.5 s",
                    (struct analysis_death){.ending = ANALYSIS_DIED, .signal = SIGTERM, .timeout = 2.5});
  expect_first_line("lbr: timed out after 3 s, and had to be killed: SIGTERM did not end it",
                    (struct analysis_death){.ending = ANALYSIS_KILLED, .signal = SIGKILL, .timeout = 3});
  expect_first_line("lbr: killed by SIGKILL", (struct analysis_death){.ending = ANALYSIS_KILLED, .signal = SIGKILL});
  expect_first_line("lbr: running", (struct analysis_death){.ending = ANALYSIS_ALIVE});
  expect_first_line("lbr: killed by SIGSEGV, in a program that it had executed and that cannot be recorded",
                    (struct analysis_death){.ending = ANALYSIS_KILLED, .signal = SIGSEGV, .is_native = true});
  expect_first_line("lbr: executed a program that cannot be recorded; how that ended is not known",
                    (struct analysis_death){.ending = ANALYSIS_UNKNOWN, .is_native = true});
}

/* ---- the page ---- */

static void test_table(void **state)
{
  (void)state;
  struct analysis_death death = {.ending = ANALYSIS_DIED, .signal = SIGSEGV, .code = SEGV_MAPERR};

  code = (const uint8_t *)"\xe8\xfb\x0f\x00\x00"; /* call 0x1000 behind itself */
  code_size = 5;
  assert_string_equal(print(&death, REPORT_TABLE, false),
                      "lbr: Segmentation fault: executed 0x0, which is not mapped\n"
                      "  in process 41 (program), thread 42 (na?me)\n"
                      "  at 0x0\n"
                      "\n"
                      "last 3 branches of thread 42 (na?me), newest first:\n"
                      "  #  from                                        to                                          "
                      "kind     instruction\n"
                      "  0  library.so+0x8                              0x0                                         "
                      "ret\n"
                      "  1  g+0x0 inner.h:11 inner < h.h:22 h < g.c:33  library.so+0x4                              "
                      "jmp_ind  call 0x403000\n"
                      "  2  f+0x0 f.c:1                                 g+0x0 inner.h:11 inner < h.h:22 h < g.c:33  "
                      "call     call 0x402000\n");
  death.rip = F;
  death.address = 0xFF8;
  death.registers[RSP] = 0x1000;
  assert_non_null(strstr(print(&death, REPORT_TABLE, false), "\n  at 0x401000 f+0x0 f.c:1: call 0x402000\n"));
  assert_non_null(strstr(print(&death, REPORT_TABLE, true), "lbr: \033[1;31mSegmentation fault: wrote to 0xff8"));
  assert_null(strstr(print(&death, REPORT_TABLE, true), "\033m"));
}

static void test_threads(void **state)
{
  (void)state;
  struct analysis_thread threads[] = {thread, thread};
  struct analysis_death death = {.ending = ANALYSIS_KILLED, .signal = SIGKILL, .threads = threads, .thread_count = 2};

  threads[1].thread = 43;
  threads[1].count = 0;
  threads[1].name = "";
  threads[0].is_cut = false;
  threads[0].is_damaged = true;
  char *text = print(&death, REPORT_TABLE, false);
  assert_non_null(
    strstr(text, "last 3 branches of thread 42 (na?me), newest first, with gaps: parts of the log make no sense:"));
  assert_non_null(strstr(text, "\n  that is all: the thread began there\n\nlast 0 branches of thread 43:\n  none\n"));
}

/* Letters of a string, and where a word is in it, in letters. */
static size_t letters_of(const char *string, size_t size)
{
  size_t count = 0;

  for (size_t i = 0; i < size; i++)
    count += ((unsigned char)string[i] & 0xC0) != 0x80;
  return count;
}

/* Names of 1 to 255 letters, the long ones also behind the rows that are measured: every kind stands below its title,
 * and what is cut has its beginning and its end. `most`: the widest line, but for the instruction. */
static void expect_columns(unsigned line_width, size_t most)
{
  enum { ROWS = 700 };
  static struct lb_branch rows[ROWS];
  static uint32_t row_marks[ROWS];
  struct analysis_thread with = thread;
  struct analysis_death death = {.ending = ANALYSIS_EXITED, .threads = &with, .thread_count = 1};
  size_t column = 0, count = 0;

  for (unsigned i = 0; i < ROWS; i++)
    rows[i] = (struct lb_branch){.from = W + i % 256,
                                 .to = i < 300 ? W + i % 251 : F, /* the long ones are the oldest */
                                 .kind = i < 10 ? LB_BRANCH_NEAR_IND_CALL : LB_BRANCH_JCC};
  with.branches = rows;
  with.marks = row_marks;
  with.count = ROWS;
  code_size = 0;
  width = line_width;
  char *line = strstr(print(&death, REPORT_TABLE, false), "\n  #");
  width = 0;
  assert_non_null(line);
  for (char *next; (next = strchr(++line, '\n')); line = next) {
    *next = '\0';
    const char *kind = strstr(line, count ? "  call_ind" : "  kind");
    if (!kind)
      kind = strstr(line, "  jcc");
    assert_non_null(kind);
    size_t at = letters_of(line, (size_t)(kind - line));
    column = column ? column : letters_of(line, (size_t)(strstr(line, "  kind") - line));
    while (at < column && kind[0] == ' ') { /* more blanks than two */
      kind++;
      at++;
    }
    if (at != column || column > most)
      fail_msg("column %zu, not %zu, most %zu: %s", at, column, most, line);
    count++;
  }
  assert_int_equal(count, ROWS + 1);
}

static void test_columns(void **state)
{
  (void)state;
  expect_columns(0, 200);
  expect_columns(150, 150);
  expect_columns(80, 100); /* two places have 40 letters each in any case */
  expect_columns(1000, 600);
}

static void test_cut(void **state)
{
  (void)state;
  const struct lb_branch branch = {.from = W + 200, .to = F, .kind = LB_BRANCH_NEAR_RET};
  struct analysis_thread with = thread;
  struct analysis_death death = {.ending = ANALYSIS_EXITED, .threads = &with, .thread_count = 1};

  with.branches = &branch;
  with.count = 1;
  code_size = 0;
  width = 80;
  const char *text = print(&death, REPORT_TABLE, false);
  width = 0;
  /* the other place has 11 of the 80 letters that both have */
  const char *row = strstr(text, "\n  0  éΩ");
  assert_non_null(row);
  assert_non_null(strstr(row, "Ω...ΩΩΩΩΩ"));
  assert_non_null(strstr(row, "ß+0x12 w.c:345  f+0x0 f.c:1  ret\n"));
  row += strlen("\n  0  ");
  assert_int_equal(letters_of(row, (size_t)(strstr(row, "  f+0x0") - row)), 80 - strlen("f+0x0 f.c:1"));
  text = print(&death, REPORT_JSON, false);
  assert_non_null(strstr(text, long_name(200)));
  assert_non_null(strstr(text, "ß\", \"mangled\": \"_Zlong\", \"offset\": \"0x12\""));
}

static void test_recorder(void **state)
{
  (void)state;
  static struct lb_recorder recorder;
  const struct lb_cpu *cpu;
  struct analysis_thread with = thread;
  struct analysis_death death = {.ending = ANALYSIS_EXITED, .threads = &with, .thread_count = 1};

  assert_int_equal(lb_cpu_find("skylake", &cpu), 0);
  assert_int_equal(lb_recorder_init(&recorder, cpu, NULL, 0), 0);
  assert_int_equal(lb_recorder_wrmsr(&recorder, 0x1D9, 1), LB_MSR_OK);
  for (unsigned i = 0; i < 3; i++) {
    struct lb_branch branch = branches[i];

    branch.from_cpl = branch.to_cpl = 3;
    lb_recorder_branch(&recorder, &branch);
  }
  with.recorder = &recorder;
  char *text = print(&death, REPORT_TABLE, false);
  assert_non_null(strstr(text, "0x401000 f+0x0"));
  assert_non_null(strstr(text, "0x7f0000001008 library.so+0x8"));
  text = print(&death, REPORT_WINDBG, false);
  assert_non_null(strstr(text, "(from): [0000000000401000] f+0"));
  text = print(&death, REPORT_JSON, false);
  assert_non_null(strstr(text, "\"branches\": [], \"lbr\": {\n  \"cpu\": \"skylake\""));
}

static void test_json(void **state)
{
  (void)state;
  struct analysis_death death = {
    .ending = ANALYSIS_DIED, .signal = SIGSEGV, .code = SEGV_MAPERR, .rip = F, .program = "a\"b\xff"};

  code = (const uint8_t *)"\xc7\x00\x01\x00\x00\x00";
  code_size = 6;
  char *text = print(&death, REPORT_JSON, false);
  static const char *const parts[] = {
    "\"ending\": \"died\"",
    "\"program\": \"a\\\"b\\ufffd\"",
    "\"signal\": {\"number\": 11, \"name\": \"SIGSEGV\", \"text\": \"Segmentation fault: wrote to 0x0, which is not "
    "mapped\", \"code\": \"SEGV_MAPERR\", \"address\": \"0x0\", \"access\": \"write\", \"target\": null}",
    "\"instruction\": \"mov dword ptr [rax], 0x1\"",
    "\"rip\": \"0x401000\"",
    "\"status\": null, \"panic\": null, \"native\": false",
    "\"name\": \"na\\u001bme\", \"complete\": false",
    "{\"number\": 1, \"from\": {\"address\": \"0x402000\", \"symbol\": \"g\", \"offset\": \"0x0\", \"module\": "
    "\"/bin/program\", \"file\": \"inner.h\", \"line\": 11, \"inlines\": [{\"function\": \"inner\", \"file\": \"h.h\", "
    "\"line\": 22}, {\"function\": \"h\", \"file\": \"/src/g.c\", \"line\": 33}]}",
    "\"to\": {\"address\": \"0x0\", \"symbol\": null, \"offset\": null, \"module\": null, \"file\": null, \"line\": null, "
    "\"inlines\": []}, \"kind\": \"ret\", \"instruction\": null, \"own\": true}",
    "\"lbr\": null, \"stack_complete\": false, \"stack\": []}",
  };
  for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
    if (!strstr(text, parts[i]))
      fail_msg("not in the object: %s\n%s", parts[i], text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory),   cmocka_unit_test(test_signals), cmocka_unit_test(test_table),
    cmocka_unit_test(test_threads),  cmocka_unit_test(test_columns), cmocka_unit_test(test_cut),
    cmocka_unit_test(test_recorder), cmocka_unit_test(test_json),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
