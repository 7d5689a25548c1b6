/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/report: the two WinDbg prints of Zhang Yinkui's 《软件调试》, chapter 5, byte for byte; the table; JSON.
 * Line breaks that the book's typesetting put inside a line are taken out.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/report.h"

/* ---- helpers ---- */

struct name {
  const char *name;
  uint64_t address;
};

/* The last name at or below the address; the list is sorted and ends with a NULL. */
static bool name_find(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  const struct name *found = NULL;

  for (const struct name *name = data; name->name && name->address <= address; name++)
    found = name;
  if (!found)
    return false;
  *ret_name = found->name;
  *ret_offset = address - found->address;
  return true;
}

static void recorder_make(struct lb_recorder *recorder, const char *name)
{
  const struct lb_cpu *cpu;

  assert_int_equal(lb_cpu_find(name, &cpu), 0);
  assert_int_equal(lb_recorder_init(recorder, cpu, NULL, 0), 0);
  lb_recorder_long_mode(recorder, lb_cpu_has(cpu, LB_FEATURE_LONG_MODE));
}

static void msr_write(struct lb_recorder *recorder, uint32_t msr, uint64_t value)
{
  assert_int_equal(lb_recorder_wrmsr(recorder, msr, value), LB_MSR_OK);
}

static void branch_take(struct lb_recorder *recorder, unsigned kind, uint64_t from, uint64_t to, unsigned flags)
{
  struct lb_branch branch = {.from = from, .to = to, .kind = (uint8_t)kind, .flags = (uint8_t)flags};

  if (!lb_cpu_has(lb_recorder_cpu(recorder), LB_FEATURE_LONG_MODE))
    branch.flags |= LB_BRANCH_FROM_32 | LB_BRANCH_TO_32;
  lb_recorder_branch(recorder, &branch);
}

static struct text print(const struct lb_recorder *recorder, enum report_format format,
                         const struct report_options *options)
{
  struct text text = {0};

  assert_int_equal(report_print(&text, recorder, format, options), 0);
  return text;
}

static void assert_prints(const struct lb_recorder *recorder, enum report_format format,
                          const struct report_options *options, const char *expected)
{
  struct text text = print(recorder, format, options);

  assert_string_equal(text_string(&text), expected);
  text_done(&text);
}

static void assert_holds(const struct text *text, const char *piece)
{
  if (!strstr(text_string(text), piece))
    fail_msg("'%s' is not in:\n%s", piece, text_string(text));
}

static void assert_holds_not(const struct text *text, const char *piece)
{
  if (strstr(text_string(text), piece))
    fail_msg("'%s' is in:\n%s", piece, text_string(text));
}

/* ---- the book: Pentium M ---- */

static const struct name windows_xp[] = {
  {"nt!WRMSR", 0x804FF190},
  {"nt!_SEH_prolog", 0x805374A0},
  {"nt!NtSystemDebugControl", 0x8060D00E},
  {"nt!KdpSysWriteMsr", 0x8065EF52},
  {NULL, 0},
};

static const struct report_symbols windows_xp_symbols = {(void *)windows_xp, name_find};

static const struct report_windbg old_head = {
  .banner = "Access LBR (Last Branch Recording) registers of IA-32 CPU.",
  .version = "Version 1.0.0.2 by Raymond",
};

static const char pentium_m_print[] = "Access LBR (Last Branch Recording) registers of IA-32 CPU.\n"
                                      "Version 1.0.0.2 by Raymond\n"
                                      "MSR_DEBUGCTLB=1\n"
                                      "LBR bit is cleared now.\n"
                                      "MSR_LASTBRANCH_TOS=5\n"
                                      "MSR_LASTBRANCH_5: [804ff190] nt!WRMSR+0\n"
                                      "MSR_LASTBRANCH_5: [8065ef6e] nt!KdpSysWriteMsr+1c\n"
                                      "MSR_LASTBRANCH_4: [8065ef5e] nt!KdpSysWriteMsr+c\n"
                                      "MSR_LASTBRANCH_4: [805374da] nt!_SEH_prolog+3a\n"
                                      "MSR_LASTBRANCH_3: [805374a0] nt!_SEH_prolog+0\n"
                                      "MSR_LASTBRANCH_3: [8065ef59] nt!KdpSysWriteMsr+7\n"
                                      "MSR_LASTBRANCH_2: [8065ef52] nt!KdpSysWriteMsr+0\n"
                                      "MSR_LASTBRANCH_2: [8060d364] nt!NtSystemDebugControl+356\n"
                                      "MSR_LASTBRANCH_1: [8060d356] nt!NtSystemDebugControl+348\n"
                                      "MSR_LASTBRANCH_1: [8060d0c3] nt!NtSystemDebugControl+b5\n"
                                      "MSR_LASTBRANCH_0: [8060d0b6] nt!NtSystemDebugControl+a8\n"
                                      "MSR_LASTBRANCH_0: [8060d0a1] nt!NtSystemDebugControl+93\n"
                                      "MSR_LASTBRANCH_7: [8060d09c] nt!NtSystemDebugControl+8e\n"
                                      "MSR_LASTBRANCH_7: [8060d08d] nt!NtSystemDebugControl+7f\n"
                                      "MSR_LASTBRANCH_6: [8060d089] nt!NtSystemDebugControl+7b\n"
                                      "MSR_LASTBRANCH_6: [8060d082] nt!NtSystemDebugControl+74\n"
                                      "LBR bit is set now.\n";

/* The registers cannot be written on this CPU, so the eight branches are taken: after five others, since TOS is 0 after
 * reset and 5 in the print. */
static void pentium_m_fill(struct lb_recorder *recorder)
{
  static const struct {
    unsigned kind;
    uint64_t from, to;
  } taken[] = {
    {LB_BRANCH_JCC, 0x8060D082, 0x8060D089},           {LB_BRANCH_JCC, 0x8060D08D, 0x8060D09C},
    {LB_BRANCH_JCC, 0x8060D0A1, 0x8060D0B6},           {LB_BRANCH_JCC, 0x8060D0C3, 0x8060D356},
    {LB_BRANCH_NEAR_REL_CALL, 0x8060D364, 0x8065EF52}, {LB_BRANCH_NEAR_REL_CALL, 0x8065EF59, 0x805374A0},
    {LB_BRANCH_NEAR_RET, 0x805374DA, 0x8065EF5E},      {LB_BRANCH_NEAR_REL_CALL, 0x8065EF6E, 0x804FF190},
  };

  recorder_make(recorder, "06_0D");
  msr_write(recorder, 0x1D9, 1);
  for (unsigned i = 0; i < 5; i++)
    branch_take(recorder, LB_BRANCH_NEAR_REL_JMP, 0x1000, 0x2000, 0);
  for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
    branch_take(recorder, taken[i].kind, taken[i].from, taken[i].to, 0);
}

static void test_windbg_pentium_m(void **state)
{
  struct report_options options = {.symbols = &windows_xp_symbols, .windbg = &old_head};
  struct lb_recorder recorder;

  (void)state;
  pentium_m_fill(&recorder);
  assert_prints(&recorder, REPORT_WINDBG_OLD, &options, pentium_m_print);
  assert_prints(&recorder, REPORT_WINDBG, &options, pentium_m_print); /* combined registers: the old layout */
}

static void test_windbg_old_defaults(void **state)
{
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  pentium_m_fill(&recorder);
  text = print(&recorder, REPORT_WINDBG_OLD, NULL);
  assert_holds(&text, "registers of IA-32 CPU.\nVersion " LB_VERSION " by lastbranch\nMSR_DEBUGCTLB=1\n");
  assert_holds(&text, "MSR_LASTBRANCH_5: [804ff190]\nMSR_LASTBRANCH_5: [8065ef6e]\n"); /* no symbols */
  text_done(&text);
}

/* ---- the book: Kaby Lake ---- */

static const struct name windows_10[] = {
  {"nt!KdpSysWriteMsr", 0xFFFFF800957E686C},
  {"nt!KdSystemDebugControl", 0xFFFFF80095C666D0},
  {NULL, 0},
};

static const struct report_symbols windows_10_symbols = {(void *)windows_10, name_find};

static void kaby_lake_fill(struct lb_recorder *recorder)
{
  recorder_make(recorder, "06_8E");
  msr_write(recorder, 0x680 + 0xD, 0xFFFFF80095C66D91);
  msr_write(recorder, 0x6C0 + 0xD, 0xFFFFF800957E686C);
  msr_write(recorder, 0xDC0 + 0xD, 28);
  msr_write(recorder, 0x680 + 0xC, 0xFFFFF80095C66D7E);
  msr_write(recorder, 0x6C0 + 0xC, 0xFFFFF80095C66D8A);
  msr_write(recorder, 0xDC0 + 0xC, 0x8000000000000000 | 20);
  msr_write(recorder, 0x1C9, 0xD);
  msr_write(recorder, 0x1D9, 3);
}

static void test_windbg_kaby_lake(void **state)
{
  static const char head[] = "Access LBR (Last Branch Recording) registers of IA CPU.\n"
                             "Version 1.2.8 by Raymond\n"
                             "Family 0x6 Model 0x8e detected\n"
                             "LBR stack: count 32, BaseFrom=0x680, BaseTo=0x6c0, BaseInfo=0xdc0, flags 0x4\n"
                             "IA32_PERF_CAPABILITIES = 0x33c5\n"
                             "MSR_DEBUGCTL = 0x3\n"
                             "LBR bit is cleared now.\n"
                             "MSR_LASTBRANCH_TOS=d\n"
                             "MSR_LASTBRANCH_d (info): Cycle Count 28, HIDWORD 0\n"
                             "MSR_LASTBRANCH_d (to): [fffff800957e686c] nt!KdpSysWriteMsr+0\n"
                             "MSR_LASTBRANCH_d (from): [fffff80095c66d91] nt!KdSystemDebugControl+6c1 bMISPRED 0\n"
                             "MSR_LASTBRANCH_c (info): Cycle Count 20, HIDWORD 80000000\n"
                             "MSR_LASTBRANCH_c (to): [fffff80095c66d8a] nt!KdSystemDebugControl+6ba\n"
                             "MSR_LASTBRANCH_c (from): [fffff80095c66d7e] nt!KdSystemDebugControl+6ae bMISPRED 1\n";
  struct report_windbg windbg = {.version = "Version 1.2.8 by Raymond", .family = 6, .model = 0x8E};
  struct report_options options = {.symbols = &windows_10_symbols, .windbg = &windbg};
  struct lb_recorder recorder;
  struct text text;
  unsigned lines = 0;

  (void)state;
  kaby_lake_fill(&recorder);
  text = print(&recorder, REPORT_WINDBG, &options);
  for (const char *c = text_string(&text); *c; c++)
    lines += *c == '\n';
  assert_int_equal(lines, 8 + 3 * 32); /* the tool prints the whole stack */
  assert_int_equal(strncmp(text_string(&text), head, strlen(head)), 0);
  text_done(&text);
}

/* ---- the WinDbg layouts on other CPUs ---- */

static void test_windbg_without_tos(void **state)
{
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  recorder_make(&recorder, "p6");
  msr_write(&recorder, 0x1D9, 1);
  branch_take(&recorder, LB_BRANCH_NEAR_REL_JMP, 0x1000, 0x2000, 0);
  text = print(&recorder, REPORT_WINDBG, NULL);
  assert_holds(&text,
               "LBR stack: count 1, BaseFrom=0x1db, BaseTo=0x1dc, BaseInfo=0x0, flags 0x0\nMSR_DEBUGCTL = 0x1\n");
  assert_holds(&text, "MSR_LASTBRANCH_0 (to): [0000000000002000]\nMSR_LASTBRANCH_0 (from): [0000000000001000]\n");
  assert_holds_not(&text, "TOS");
  assert_holds_not(&text, "MISPRED");
  assert_holds_not(&text, "(info)");
  text_done(&text);
}

static void test_windbg_flag_in_from(void **state)
{
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  recorder_make(&recorder, "westmere");
  msr_write(&recorder, 0x1D9, 1);
  branch_take(&recorder, LB_BRANCH_JCC, 0x1000, 0x2000, LB_BRANCH_MISPREDICTED);
  text = print(&recorder, REPORT_WINDBG, NULL);
  assert_holds(&text, ", flags 0x1\n");
  assert_holds(&text, "MSR_LASTBRANCH_1 (from): [0000000000001000] bMISPRED 1\n");
  text_done(&text);
}

/* ---- the table ---- */

static void test_table_empty(void **state)
{
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  recorder_make(&recorder, "westmere");
  text = print(&recorder, REPORT_TABLE, NULL);
  assert_holds(&text, "Intel Westmere (westmere): recording off, 0 of 16 records\n");
  assert_holds(&text, "\n  last exception       empty\n  empty\n");
  text_done(&text);
}

static void westmere_fill(struct lb_recorder *recorder)
{
  struct lb_event event = {
    .current = 0xFFFFF80000003000, .next = 0xFFFFF80000003000, .handler = 0x4000, .kind = LB_BRANCH_FAULT};

  recorder_make(recorder, "westmere");
  msr_write(recorder, 0x1C8, 0x28);
  msr_write(recorder, 0x1D9, 3);
  branch_take(recorder, LB_BRANCH_JCC, 0x1000, 0xFFFFF80000002000, LB_BRANCH_MISPREDICTED);
  lb_recorder_event(recorder, &event);
}

static void test_table_records(void **state)
{
  static const struct name names[] = {{"main", 0x1000}, {"handler", 0x4000}, {NULL, 0}};
  struct report_symbols symbols = {(void *)names, name_find};
  struct report_options options = {.symbols = &symbols};
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  westmere_fill(&recorder);
  text = print(&recorder, REPORT_TABLE, NULL);
  assert_holds(&text, "recording on, 2 of 16 records\n  IA32_DEBUGCTL        0x3 LBR BTF\n");
  assert_holds(&text, "  MSR_LBR_SELECT       0x28 NEAR_REL_CALL NEAR_RET\n");
  assert_holds(&text, "  last exception       0x1000 -> 0xfffff80000002000\n");
  assert_holds(&text, "  age  register  from                to                  kind   flags\n"
                      "  0    2         0xfffff80000003000  0x4000              fault\n"
                      "  1    1         0x1000              0xfffff80000002000  jcc    mispred\n");
  assert_holds_not(&text, " \n");
  assert_holds_not(&text, "\033");
  text_done(&text);
  text = print(&recorder, REPORT_TABLE, &options);
  assert_holds(&text, " 0x4000 handler+0x0 ");
  text_done(&text);
}

static void test_table_letters(void **state)
{
  static const struct name names[] = {{"\xE7\xA8\x8B", 0x1000}, {NULL, 0}}; /* one letter of three bytes */
  struct report_symbols symbols = {(void *)names, name_find};
  struct report_options options = {.symbols = &symbols};
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  recorder_make(&recorder, "westmere");
  msr_write(&recorder, 0x1D9, 1);
  branch_take(&recorder, LB_BRANCH_JCC, 0x1000, 0x800, 0);
  branch_take(&recorder, LB_BRANCH_JCC, 0x800, 0x1000, 0);
  text = print(&recorder, REPORT_TABLE, &options);
  assert_holds(&text, "  age  register  from          to            kind\n"
                      "  0    2         0x800         0x1000 \xE7\xA8\x8B+0x0  jcc\n"
                      "  1    1         0x1000 \xE7\xA8\x8B+0x0  0x800         jcc\n");
  text_done(&text);
}

static void test_table_color(void **state)
{
  struct report_options options = {.wants_color = true};
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  westmere_fill(&recorder);
  text = print(&recorder, REPORT_TABLE, &options);
  assert_holds(&text, "\033[31m  1    1  ");
  assert_holds(&text, "mispred\033[0m\n");
  text_done(&text);
}

static void test_table_cycles(void **state)
{
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  kaby_lake_fill(&recorder);
  text = print(&recorder, REPORT_TABLE, NULL);
  assert_holds(&text, "kind  flags    cycles\n");
  assert_holds(&text, "  ?              28\n");
  assert_holds(&text, "  ?     mispred  20\n");
  text_done(&text);
}

static void test_every_cpu(void **state)
{
  const struct lb_cpu *cpu;

  (void)state;
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    for (unsigned format = 0; format < REPORT_FORMATS; format++) {
      struct lb_recorder recorder;
      struct text text;

      recorder_make(&recorder, cpu->name);
      text = print(&recorder, (enum report_format)format, NULL);
      assert_true(text.length > 0 && text.data[text.length - 1] == '\n');
      assert_holds_not(&text, " \n");
      text_done(&text);
    }
}

/* ---- JSON ---- */

static void test_json(void **state)
{
  static const char expected[] =
    "{\n"
    "  \"cpu\": \"westmere\",\n"
    "  \"title\": \"Intel Westmere\",\n"
    "  \"recording\": true,\n"
    "  \"undefined\": false,\n"
    "  \"depth\": 16,\n"
    "  \"used\": 2,\n"
    "  \"tos\": 2,\n"
    "  \"debugctl\": {\"value\": \"0x3\", \"bits\": [\"LBR\", \"BTF\"]},\n"
    "  \"select\": {\"value\": \"0x28\", \"bits\": [\"NEAR_REL_CALL\", \"NEAR_RET\"]},\n"
    "  \"lbr_ctl\": null,\n"
    "  \"entries\": [\n"
    "    {\"age\": 0, \"index\": 2, \"kind\": \"fault\", \"from\": \"0xfffff80000003000\", \"from_symbol\": null, "
    "\"to\": \"0x4000\", \"to_symbol\": null, \"mispredicted\": false, \"in_tsx\": null, \"tsx_abort\": null, "
    "\"cycles\": null, \"type\": null, \"raw\": {\"from\": \"0x7ffff80000003000\", \"to\": \"0x4000\", "
    "\"info\": \"0x0\"}},\n"
    "    {\"age\": 1, \"index\": 1, \"kind\": \"jcc\", \"from\": \"0x1000\", \"from_symbol\": null, "
    "\"to\": \"0xfffff80000002000\", \"to_symbol\": null, \"mispredicted\": true, \"in_tsx\": null, "
    "\"tsx_abort\": null, \"cycles\": null, \"type\": null, \"raw\": {\"from\": \"0x8000000000001000\", "
    "\"to\": \"0xfffff80000002000\", \"info\": \"0x0\"}}\n"
    "  ],\n"
    "  \"last_exception\": {\"from\": \"0x1000\", \"from_symbol\": null, \"to\": \"0xfffff80000002000\", "
    "\"to_symbol\": null, \"mispredicted\": true, \"in_tsx\": null, \"tsx_abort\": null, \"cycles\": null, "
    "\"type\": null, \"raw\": {\"from\": \"0x8000000000001000\", \"to\": \"0xfffff80000002000\", \"info\": \"0x0\"}}\n"
    "}\n";
  struct lb_recorder recorder;

  (void)state;
  westmere_fill(&recorder);
  assert_prints(&recorder, REPORT_JSON, NULL, expected);
}

static void test_json_strings(void **state)
{
  static const struct name names[] = {{"a\"b\\c\x01\xE7\xA8\x8B\xFF\xED\xA0\x80z", 0x1000}, {NULL, 0}};
  struct report_symbols symbols = {(void *)names, name_find};
  struct report_options options = {.symbols = &symbols};
  struct lb_recorder recorder;
  struct text text;

  (void)state;
  westmere_fill(&recorder);
  text = print(&recorder, REPORT_JSON, &options);
  assert_holds(&text, "\"name\": \"a\\\"b\\\\c\\u0001\xE7\xA8\x8B\\ufffd\\ufffd\\ufffd\\ufffdz\", \"offset\": \"0x0\"");
  text_done(&text);
}

/* ---- the rest ---- */

static void test_formats(void **state)
{
  (void)state;
  for (unsigned i = 0; i < REPORT_FORMATS; i++)
    assert_int_equal(report_format_find(report_format_name(i)), i);
  assert_string_equal(report_format_name(REPORT_WINDBG_OLD), "windbg-old");
  assert_null(report_format_name(REPORT_FORMATS));
  assert_int_equal(report_format_find("Table"), -EINVAL);
  assert_int_equal(report_format_find(""), -EINVAL);
}

static void test_print_appends(void **state)
{
  struct lb_recorder recorder;
  struct text text = {0};

  (void)state;
  recorder_make(&recorder, "westmere");
  assert_int_equal(text_add(&text, "before\n"), 0);
  assert_int_equal(report_print(&text, &recorder, REPORT_TABLE, NULL), 0);
  assert_int_equal(strncmp(text_string(&text), "before\nIntel Westmere", 21), 0);
  text_done(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_windbg_pentium_m),    cmocka_unit_test(test_windbg_old_defaults),
    cmocka_unit_test(test_windbg_kaby_lake),    cmocka_unit_test(test_windbg_without_tos),
    cmocka_unit_test(test_windbg_flag_in_from), cmocka_unit_test(test_table_empty),
    cmocka_unit_test(test_table_records),       cmocka_unit_test(test_table_letters),
    cmocka_unit_test(test_table_color),         cmocka_unit_test(test_table_cycles),
    cmocka_unit_test(test_every_cpu),           cmocka_unit_test(test_json),
    cmocka_unit_test(test_json_strings),        cmocka_unit_test(test_formats),
    cmocka_unit_test(test_print_appends),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
