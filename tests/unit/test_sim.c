/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/sim: what is wrong with a rule file is said with its line, and an expectation that does not hold is
 * found. That rules which do hold come out well is for tests/recorder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sim.h"

/* ---- helpers ---- */

static struct sim *parse(const char *text)
{
  struct sim_error error = {0};
  struct sim *sim = NULL;

  if (sim_parse(text, strlen(text), &error, &sim) < 0)
    fail_msg("line %u: %s\nin:\n%s", error.line, error.text, text);
  return sim;
}

/* Runs on the file's first CPU. */
static struct sim_result run(const char *text, const struct sim_watch *watch)
{
  struct sim *sim = parse(text);
  struct sim_result result = {0};

  assert_non_null(sim_cpu_at(sim, 0));
  assert_int_equal(sim_run(sim, sim_cpu_at(sim, 0), watch, &result), 0);
  sim_free(sim);
  return result;
}

static void assert_holds(const char *text)
{
  struct sim_result result = run(text, NULL);

  if (result.count)
    fail_msg("line %u: expected: %s; got: %s\nin:\n%s", result.failures[0].line, result.failures[0].expected,
             result.failures[0].got, text);
  sim_result_done(&result);
}

/* Exactly one failure, in the last line. */
static void assert_fails(const char *text, const char *got)
{
  struct sim_result result = run(text, NULL);
  unsigned lines = 1;

  for (const char *c = text; *c; c++)
    lines += *c == '\n';
  if (result.count != 1)
    fail_msg("%zu failures in:\n%s", result.count, text);
  assert_int_equal(result.failures[0].line, lines);
  assert_string_equal(result.failures[0].got, got);
  sim_result_done(&result);
}

/* ---- files that cannot be understood ---- */

static void test_parse_errors(void **state)
{
  static const struct {
    const char *text;
    unsigned line;
    const char *said;
  } wrong[] = {
    {"branchh jmp 1 2", 1, "'branchh' is not a statement; did you mean 'branch'?"},
    {"\n# comment\n\t zzzzzzzz", 3, "'zzzzzzzz' is not a statement"},
    {"db now", 1, "usage: db"},
    {"wrmsr DEBUGCTL", 1, "usage: wrmsr REG VALUE [gp|foreign]"},
    {"wrmsr DEBUGCTL x", 1, "'x' is not a number"},
    {"wrmsr DEBUGCTL 0x10000000000000000", 1, "is not a number"},
    {"wrmsr DEBUGCTL 1 np", 1, "'np' is none of: gp foreign"},
    {"wrmsr DEBUGCTLX 1", 1, "no CPU has a register 'DEBUGCTLX'"},
    {"rdmsr 0x100000000", 1, "too large"},
    {"vmentry 0 foreign", 1, "'foreign' is none of: gp"},
    {"cpl 4", 1, "'4' is too large; the maximum is 3"},
    {"mode 8", 1, "'8' is none of: 16 32 compat 64"},
    {"branch fly 1 2", 1, "'fly' is not a kind of branch"},
    {"branch int 1 2", 1, "'int' is an event: write 'event int ...'"},
    {"event jmp 1 2 3", 1, "'jmp' is a branch: write 'branch jmp ...'"},
    {"branch jmp 1 2 cpl=4", 1, "neither 'cpl=N' nor 'cpl=N>N'"},
    {"branch jmp 1 2 cpl=3>0>1", 1, "neither 'cpl=N' nor 'cpl=N>N'"},
    {"branch jmp 1 2 cpl=", 1, "neither 'cpl=N' nor 'cpl=N>N'"},
    {"branch jmp 1 2 length=16", 1, "the maximum is 15"},
    {"branch jmp 1 2 to_mode=8", 1, "none of"},
    {"branch jmp 1 2 3", 1, "'3' is none of"},
    {"progress speed=1", 1, "'speed=1' is none of: instructions="},
    {"progress cpl=4", 1, "the maximum is 3"},
    {"pebs r16=1", 1, "tsc="},
    {"facts gate=16", 1, "the maximum is 15"},
    {"page 0 wet", 1, "'wet' is none of: present"},
    {"memory 0 0", 1, "invalid memory: "},
    {"memory 0xffffffffffffffff 2", 1, "invalid memory: "},
    {"memory 0 0x1000001", 1, "too large"},
    {"poke 0 3 1", 1, "'3' is none of: 1 2 4 8"},
    {"poke 0 1 256", 1, "'256' does not fit"},
    {"poke 0 1 -129", 1, "'-129' does not fit"},
    {"print tabel", 1, "'tabel' is none of"},
    {"title", 1, "usage: title TEXT"},
    {"option fast", 1, "'fast' is not an option"},
    {"db\noption tsx-off", 2, "before the first action"},
    {"cpu westmer", 1, "did you mean 'westmere'?"},
    {"cpu class:XYZ", 1, "no CPU of the catalogue matches 'class:XYZ'"},
    {"cpu pmu:x", 1, "no CPU of the catalogue matches 'pmu:x'"},
    {"cpu pmu:+3", 1, "no CPU of the catalogue matches 'pmu:+3'"},
    {"cpu westmere -westmere", 0, "the rule applies to no CPU"},
    {"cpu westmere\non skylake\nend", 2, "none of the file's CPUs"},
    {"on all\non all\nend\nend", 2, "inside the 'on' of line 1"},
    {"on all\ncpu all\nend", 2, "'cpu' inside 'on'"},
    {"on all\nend\ncpu all", 3, "'cpu' must come before 'on'"},
    {"\non all\ndb\n", 2, "'on' without 'end'"},
    {"end", 1, "'end' without 'on'"},
    {"expect", 1, "usage: expect WHAT..."},
    {"expect usde 1", 1, "did you mean 'used'?"},
    {"expect used", 1, "usage: expect used N"},
    {"expect TOS", 1, "usage: expect TOS VALUE [mask M]"},
    {"expect TOS 1 mask", 1, "only 'mask M' is allowed"},
    {"expect lbr 0 1", 1, "usage: expect lbr"},
    {"expect lbr 0 1 2 wet", 1, "'wet' is none of"},
    {"expect lbr 0 1 2 kind=fly", 1, "'fly' is not a kind of branch"},
    {"expect lbr 0 1 2 cycles=65536", 1, "too large"},
    {"expect bus 1", 1, "usage: expect bus"},
    {"expect pin 4 0", 1, "the maximum is 3"},
    {"expect ds WET", 1, "'WET' is not a rule"},
    {"expect cpuid 1 0 EFX 0 mask 1", 1, "'EFX' is none of"},
    {"expect print tabel", 1, "'tabel' is none of"},
    {"| line", 1, "must follow 'expect print'"},
    {"expect print table\n| a\ndb\n| b", 4, "must follow 'expect print'"},
    {"title \x1B[31m", 1, "a control character (0x1b)"},
    {"db\x7F", 1, "a control character (0x7f)"},
    {"title \xC2\x9B[31m", 1, "a control character (0x9b)"},
    {"# caf\xE9\ndb", 1, "a byte that is not UTF-8 (0xe9)"},
    {"title \xED\xA0\x80", 1, "a byte that is not UTF-8 (0xed)"},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
    struct sim_error error = {.line = 99};
    struct sim *sim = NULL;

    assert_int_equal(sim_parse(wrong[i].text, strlen(wrong[i].text), &error, &sim), LB_E_BAD_SYNTAX);
    assert_null(sim);
    if (error.line != wrong[i].line || !strstr(error.text, wrong[i].said))
      fail_msg("'%s' gives line %u: %s", wrong[i].text, error.line, error.text);
  }
}

static void test_parse_limits(void **state)
{
  struct sim_error error = {0};
  struct sim *sim = NULL;
  size_t size = SIM_BYTES_MAX + 1;
  char *text = malloc(size);

  (void)state;
  assert_non_null(text);
  memset(text, '\n', size);
  assert_int_equal(sim_parse(text, size, &error, &sim), LB_E_TOO_BIG);
  for (size_t i = 0; i < size; i++)
    text[i] = "db\n"[i % 3];
  assert_int_equal(sim_parse(text, 3 * SIM_STATEMENTS_MAX, &error, &sim), 0);
  sim_free(sim);
  sim = NULL;
  assert_int_equal(sim_parse(text, 3 * (SIM_STATEMENTS_MAX + 1), &error, &sim), LB_E_BAD_SYNTAX);
  assert_int_equal(error.line, SIM_STATEMENTS_MAX + 1);
  memset(text, ' ', size);
  for (size_t i = 0; i < 2 * (SIM_WORDS_MAX + 3); i += 2)
    text[i] = 'x';
  memcpy(text, "cpu", 3);
  assert_int_equal(sim_parse(text, size - 1, &error, &sim), LB_E_BAD_SYNTAX);
  assert_non_null(strstr(error.text, "words"));
  assert_int_equal(sim_parse("db\0db", 5, &error, &sim), LB_E_BAD_SYNTAX);
  assert_null(sim);
  free(text);
}

/* A limit holds, and one byte more is too much. */
static void limit_check(const char *before, size_t most, const char *after, const char *said)
{
  struct sim_error error = {0};
  char text[2048];
  struct sim *sim;

  for (size_t size = most; size <= most + 1; size++) {
    memset(text, 'x', sizeof(text));
    memcpy(text, before, strlen(before));
    memcpy(text + strlen(before) + size, after, strlen(after) + 1);
    if (size == most) {
      assert_int_equal(sim_parse(text, strlen(text), &error, &sim), 0);
      sim_free(sim);
    } else
      assert_int_equal(sim_parse(text, strlen(text), &error, &sim), LB_E_BAD_SYNTAX);
  }
  assert_non_null(strstr(error.text, said));
}

static void test_parse_sizes(void **state)
{
  (void)state;
  limit_check("symbol ", SIM_WORD_MAX, " 1", "a word of more than 255 bytes");
  limit_check("title ", SIM_TEXT_MAX, "", "a text of more than 1000 bytes");
  limit_check("banner ", SIM_TEXT_MAX, "\ndb", "a text of more than 1000 bytes");
}

/* A word is cut for the message, but no letter. */
static void test_parse_cut_letter(void **state)
{
  static const char text[] = "cpu aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xC3\xA4\xC3\xA4";
  struct sim_error error = {0};
  struct sim *sim;

  (void)state;
  assert_int_equal(sim_parse(text, strlen(text), &error, &sim), LB_E_BAD_SYNTAX);
  assert_non_null(strstr(error.text, "aaa?'"));
}

static void test_parse_head(void **state)
{
  struct sim *sim = parse("# source: the manual\r\n  title Writes give #GP \t\r\ncpu westmere # nothing else");

  (void)state;
  assert_string_equal(sim_source(sim), "the manual");
  assert_string_equal(sim_title(sim), "Writes give #GP");
  assert_string_equal(sim_cpu_at(sim, 0)->name, "westmere");
  assert_null(sim_cpu_at(sim, 1));
  sim_free(sim);
  sim = parse("");
  assert_string_equal(sim_title(sim), "");
  assert_null(sim_cpu_at(sim, 0));
  sim_free(sim);
}

/* ---- CPUs ---- */

static size_t count_cpus(const char *text, bool (*is_meant)(const struct lb_cpu *cpu))
{
  struct sim *sim = parse(text);
  const struct lb_cpu *cpu;
  size_t count = 0;

  for (; (cpu = sim_cpu_at(sim, count)); count++)
    assert_true(is_meant(cpu));
  sim_free(sim);
  return count;
}

static size_t count_catalogue(bool (*is_meant)(const struct lb_cpu *cpu))
{
  const struct lb_cpu *cpu;
  size_t count = 0;

  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    count += is_meant(cpu);
  return count;
}

static bool is_any(const struct lb_cpu *cpu)
{
  return cpu != NULL;
}

static bool is_nhm(const struct lb_cpu *cpu)
{
  return cpu->lbr && !strcmp(cpu->lbr->name, "NHM");
}

static bool is_amd(const struct lb_cpu *cpu)
{
  return cpu->vendor == LB_VENDOR_AMD;
}

static bool has_tsx(const struct lb_cpu *cpu)
{
  return lb_cpu_has(cpu, LB_FEATURE_TSX);
}

static bool has_aj69(const struct lb_cpu *cpu)
{
  return lb_cpu_quirk(cpu, LB_QUIRK_AJ69);
}

static bool is_version_4(const struct lb_cpu *cpu)
{
  return cpu->pmu->version == 4;
}

static bool is_since_4(const struct lb_cpu *cpu)
{
  return cpu->pmu->version >= 4;
}

static bool is_no_amd(const struct lb_cpu *cpu)
{
  return cpu->vendor != LB_VENDOR_AMD;
}

static void test_cpu_words(void **state)
{
  static const struct {
    const char *text;
    bool (*is_meant)(const struct lb_cpu *cpu);
  } words[] = {
    {"cpu all", is_any},
    {"cpu class:NHM", is_nhm},
    {"cpu vendor:amd", is_amd},
    {"cpu feature:TSX", has_tsx},
    {"cpu quirk:AJ69", has_aj69},
    {"cpu pmu:4", is_version_4},
    {"cpu pmu:4+", is_since_4},
    {"cpu -vendor:amd", is_no_amd},
    {"cpu all -vendor:amd", is_no_amd},
    {"cpu class:NHM\ncpu class:NHM westmere", is_nhm},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
    assert_int_equal(count_cpus(words[i].text, words[i].is_meant), count_catalogue(words[i].is_meant));
    assert_true(count_catalogue(words[i].is_meant) > 0);
  }
}

static void test_on(void **state)
{
  struct sim *sim = parse("cpu nehalem sandybridge\non sandybridge\nexpect used 7\nend\nexpect used 0");
  struct sim_result result;

  (void)state;
  assert_int_equal(sim_run(sim, sim_cpu_at(sim, 0), NULL, &result), 0);
  assert_int_equal(result.count, 0);
  sim_result_done(&result);
  assert_int_equal(sim_expectations(sim, sim_cpu_at(sim, 0)), 1);
  assert_int_equal(sim_run(sim, sim_cpu_at(sim, 1), NULL, &result), 0);
  assert_int_equal(result.count, 1);
  sim_result_done(&result);
  assert_int_equal(sim_expectations(sim, sim_cpu_at(sim, 1)), 2);
  sim_free(sim);
}

/* ---- expectations that do not hold ---- */

#define ONE_BRANCH "cpu westmere\nwrmsr DEBUGCTL 1\nbranch jmp 0x1000 0x2000 mispred\n"
#define ONE_BTS                                                                                                        \
  "cpu westmere\nmemory 0x10000 0x2000\npoke 0x10000 8 0x11000 0x11000 0x11030 0x11018\n"                              \
  "wrmsr DS_AREA 0x10000\nwrmsr DEBUGCTL 0x1c0\nbranch jmp 0x1000 0x2000\n"

static void test_expect_fails(void **state)
{
  static const char record[] = "0x1000 0x2000 mispred kind=jmp index=1";

  (void)state;
  assert_fails(ONE_BRANCH "expect TOS 2", "0x1");
  assert_fails(ONE_BRANCH "expect TOS 3 mask 2", "0x1");
  assert_fails(ONE_BRANCH "expect LBR_CTL 0", "this CPU has no such register");
  assert_fails(ONE_BRANCH "expect 0x123 0", "not a register of the recording unit");
  assert_fails(ONE_BRANCH "expect lbr 0 0x1001 0x2000", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2001", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2000 predicted", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2000 tsx", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2000 abort", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2000 cycles=0", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2000 type=0", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2000 kind=jcc", record);
  assert_fails(ONE_BRANCH "expect lbr 0 0x1000 0x2000 index=0", record);
  assert_fails(ONE_BRANCH "expect lbr 0 empty", record);
  assert_fails(ONE_BRANCH "expect lbr 1 0 0", "empty");
  assert_fails(ONE_BRANCH "expect lbr 16 empty", "no such record");
  assert_fails(ONE_BRANCH "expect used 2", "1");
  assert_fails(ONE_BRANCH "expect ler 1 2", "0x0 0x0");
  assert_fails(ONE_BRANCH "expect bus 0x1000 0x2000", "none");
  assert_fails(ONE_BRANCH "expect trap 1", "0");
  assert_fails(ONE_BRANCH "expect recording no", "yes");
  assert_fails(ONE_BRANCH "expect undefined yes", "no");
  assert_fails(ONE_BRANCH "expect stepping yes", "no");
  assert_fails(ONE_BRANCH "expect pebs-due yes", "no");
  assert_fails(ONE_BRANCH "expect generated 1", "0");
  assert_fails(ONE_BTS "expect stored 2", "1");
  assert_fails(ONE_BTS "expect lost 1", "0");
  assert_fails(ONE_BTS "expect pmi 2", "1");
  assert_fails(ONE_BTS "expect memory 0x11000 8 0x1000 0x2001", "0x2000 at 0x11008");
  assert_fails(ONE_BTS "expect memory 0x12000 1 0", "no memory there");
  assert_fails(ONE_BTS "facts apic=0\nexpect ds ok", "NO_APIC");
  assert_fails(ONE_BTS "expect ds NO_APIC", "ok");
  assert_fails("cpu westmere\nexpect cpuid 1 0 EDX 0 mask 0x200000", "0x200000");
  assert_fails("cpu p6\nmatch 0\nexpect pin 0 1", "0");
}

static void test_expect_holds(void **state)
{
  (void)state;
  assert_holds(ONE_BRANCH "expect TOS 3 mask 1\nexpect lbr 0 0x1000 0x2000 mispred no-tsx no-abort no-cycles kind=jmp "
                          "index=1\nexpect lbr 1 empty\nexpect used 1\nexpect bus none\nexpect recording yes");
  assert_holds(ONE_BTS "expect stored 1\nexpect pmi 1\nexpect pmi 0\nexpect memory 0x11000 8 0x1000 0x2000");
  assert_holds("cpu westmere\nwrmsr DEBUGCTL 0x40\nbranch jmp 1 2\nbranch jmp 3 4\nexpect bus 1 2\nexpect bus 3 4\n"
               "expect bus none");
}

static void test_guest_fails(void **state)
{
  (void)state;
  assert_fails("cpu westmere\nwrmsr DEBUGCTL 4", "#GP");
  assert_fails("cpu westmere\nwrmsr DEBUGCTL 1 gp", "success");
  assert_fails("cpu westmere\nrdmsr DEBUGCTL foreign", "success");
  assert_fails("cpu westmere\nrdmsr LBR_CTL", "this CPU has no such register");
  assert_fails("cpu westmere\nvmentry 1 gp", "the entry succeeded");
  assert_fails("cpu westmere\nvmentry 4", "the entry failed");
  assert_fails("cpu westmere\nuncore yes", "it is not taken");
  assert_fails("cpu p6\nmode 64", "this CPU has no IA-32e mode");
  assert_fails("cpu westmere\nmemory 0x1000 16\nmemory 0x100f 1", "it overlaps other memory");
  assert_fails("cpu westmere\nmemory 0x1000 16\npoke 0x100c 8 1", "no memory there");
  assert_holds("cpu westmere\nrdmsr LBR_CTL foreign\nrdmsr 0x14ce foreign\nwrmsr DEBUGCTL 4 gp\nvmentry 4 gp");
}

static void test_print_fails(void **state)
{
  struct sim_result result = run("cpu westmere\nexpect print windbg-old\n| ...\n| LBR bit is cleared now.\n| x", NULL);

  (void)state;
  assert_int_equal(result.count, 1);
  assert_int_equal(result.failures[0].line, 5);
  assert_string_equal(result.failures[0].expected, "x");
  assert_string_equal(result.failures[0].got, "MSR_LASTBRANCH_TOS=0");
  sim_result_done(&result);
  assert_fails("cpu westmere\nexpect print windbg-old\n| ...\n| no such line here", "no such line");
  assert_holds("cpu westmere\nexpect print windbg-old\n| ...\n| LBR bit is set now.");
  result = run("cpu westmere\nexpect print windbg-old\n| ...\n| LBR bit is cleared now.", NULL);
  assert_int_equal(result.count, 1);
  assert_string_equal(result.failures[0].expected, "the end");
  sim_result_done(&result);
}

static void test_failures_are_cut(void **state)
{
  struct text text = {0};
  struct sim_result result;

  (void)state;
  assert_int_equal(text_add(&text, "cpu westmere\n"), 0);
  for (unsigned i = 0; i < SIM_FAILURES_MAX + 1; i++)
    assert_int_equal(text_add(&text, "expect used 1\n"), 0);
  result = run(text_string(&text), NULL);
  assert_int_equal(result.count, SIM_FAILURES_MAX);
  assert_true(result.is_cut);
  sim_result_done(&result);
  text_done(&text);
}

/* ---- the state of a thread ---- */

static void test_threads(void **state)
{
  (void)state;
  assert_holds("cpu westmere\nwrmsr DEBUGCTL 0x41\nbranch jmp 1 2\nthread 1\nexpect used 0\nexpect bus none\n"
               "thread 0\nexpect used 1\nexpect bus 1 2");
}

static void test_bases(void **state)
{
  (void)state;
  /* linear addresses in messages: 64-bit code has no base */
  assert_holds("cpu westmere\nwrmsr DEBUGCTL 0x40\nbase 0x10000\nbranch jmp 1 2\nexpect bus 1 2\nmode 32\n"
               "branch jmp 1 2\nexpect bus 0x10001 0x10002\nbranch jmp 1 2 base=0x100 to_base=0x200\n"
               "expect bus 0x101 0x202\nbranch jmp 1 2 to_base=0x200\nexpect bus 0x10001 0x202");
}

static void test_cpl_stays_changed(void **state)
{
  (void)state;
  assert_holds("cpu westmere\nwrmsr LBR_SELECT 2\nwrmsr DEBUGCTL 1\nbranch sysret 1 2 cpl=0>3\nbranch jmp 3 4\n"
               "expect used 0\nevent fault 5 5 6 cpl=3>0\nbranch jmp 7 8\nexpect used 2\n"
               "cpl 3\nbranch jmp 9 10\nexpect used 2");
}

static void test_options(void **state)
{
  static const char text[] = "cpu nehalem westmere\non westmere\noption btf-on-events\nend\nwrmsr DEBUGCTL 2\ntf 1\n"
                             "event interrupt 1 2 3\nexpect trap 1";
  struct sim *sim = parse(text);
  struct sim_result result;

  (void)state;
  assert_int_equal(sim_run(sim, sim_cpu_at(sim, 0), NULL, &result), 0);
  assert_int_equal(result.count, 1);
  sim_result_done(&result);
  assert_int_equal(sim_run(sim, sim_cpu_at(sim, 1), NULL, &result), 0);
  assert_int_equal(result.count, 0);
  sim_result_done(&result);
  sim_free(sim);
}

/* ---- who looks on ---- */

struct seen {
  struct text steps, prints;
  unsigned ends;
};

static void see_step(void *data, unsigned line, const char *statement, const char *effect)
{
  struct seen *seen = data;

  assert_int_equal(text_addf(&seen->steps, "%u:%s:%s\n", line, statement, effect), 0);
}

static void see_print(void *data, unsigned line, const char *output)
{
  struct seen *seen = data;

  assert_int_equal(text_addf(&seen->prints, "%u:%.20s\n", line, output), 0);
}

static void see_end(void *data, unsigned thread, const struct lb_recorder *recorder,
                    const struct report_options *options)
{
  struct seen *seen = data;
  const char *name;
  uint64_t offset;

  assert_int_equal(thread, seen->ends++);
  assert_string_equal(lb_recorder_cpu(recorder)->name, "westmere");
  assert_true(options->symbols->find(options->symbols->data, 0x1001, &name, &offset));
  assert_string_equal(name, "main");
  assert_int_equal(offset, 1);
  assert_false(options->symbols->find(options->symbols->data, 0xFFF, &name, &offset));
  assert_false(options->symbols->find(options->symbols->data, 0x1000 + (1 << 20), &name, &offset));
}

static void test_watch(void **state)
{
  struct seen seen = {0};
  struct sim_watch watch = {&seen, see_step, see_print, see_end};
  struct sim_result result = run("cpu westmere\nsymbol main 0x1000\n  wrmsr DEBUGCTL 1 # on\nbranch jmp 1 2\n"
                                 "print json\nthread 1\n",
                                 &watch);

  (void)state;
  assert_int_equal(result.count, 0);
  assert_string_equal(text_string(&seen.steps), "2:symbol main 0x1000:\n3:wrmsr DEBUGCTL 1:\n"
                                                "4:branch jmp 1 2:newest record: 1, 0x1 -> 0x2\n"
                                                "5:print json:\n6:thread 1:\n");
  assert_string_equal(text_string(&seen.prints), "5:{\n  \"cpu\": \"westmere\n");
  assert_int_equal(seen.ends, 2);
  text_done(&seen.steps);
  text_done(&seen.prints);
  sim_result_done(&result);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_parse_errors),
    cmocka_unit_test(test_parse_limits),
    cmocka_unit_test(test_parse_sizes),
    cmocka_unit_test(test_parse_cut_letter),
    cmocka_unit_test(test_parse_head),
    cmocka_unit_test(test_cpu_words),
    cmocka_unit_test(test_on),
    cmocka_unit_test(test_expect_fails),
    cmocka_unit_test(test_expect_holds),
    cmocka_unit_test(test_guest_fails),
    cmocka_unit_test(test_print_fails),
    cmocka_unit_test(test_failures_are_cut),
    cmocka_unit_test(test_threads),
    cmocka_unit_test(test_bases),
    cmocka_unit_test(test_cpl_stays_changed),
    cmocka_unit_test(test_options),
    cmocka_unit_test(test_watch),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
