/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers and fields of the catalogue: no address twice, the manual's names, and fields where the manual has them.
 */
#include "cpudb_rig.h"

/* ---- registers ---- */

static void no_address_belongs_to_two_registers(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  FOR_EACH_REGISTER(id)
  {
    struct lb_register_range range = lb_cpu_register(cpu, id);

    for (unsigned n = 0; n < range.count; n++) {
      unsigned number = 9999;
      int found;

      /* lb_cpu_register_at gives the first that has the address: of two, the second shows here. */
      found = lb_cpu_register_at(cpu, range.first + n * range.stride, &number);
      if (found != (int)id || number != n)
        fail_msg("%s: %#x belongs to %s and %s", cpu->name, range.first + n * range.stride, lb_register_text(id),
                 found < 0 ? "none" : lb_register_text((enum lb_register)found));
    }
    if (!range.count)
      assert_true(range.first == 0 && range.stride == 0);
  }
}

static void register_names_lead_back(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  FOR_EACH_REGISTER(id)
  {
    struct lb_register_range range = lb_cpu_register(cpu, id);

    for (unsigned n = 0; n < range.count; n++) {
      char name[64], address[16];
      unsigned number = 9999;
      int length = lb_cpu_register_name(cpu, id, n, name, sizeof(name));

      assert_int_equal(length, strlen(name));
      if (lb_cpu_register_find(cpu, name, &number) != (int)id || number != n)
        fail_msg("%s: %s leads elsewhere", cpu->name, name);
      for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
      assert_int_equal(lb_cpu_register_find(cpu, name, &number), id);
      number = 9999;
      snprintf(address, sizeof(address), "0x%x", range.first + n * range.stride);
      assert_int_equal(lb_cpu_register_find(cpu, address, &number), id);
      assert_int_equal(number, n);
    }
  }
}

static void registers_have_the_manual_s_names(void **state)
{
  /* clang-format off */
  static const struct {
    const char *cpu;
    enum lb_register id;
    unsigned number;
    const char *name;
  } known[] = {
    {"p6", LB_REG_DEBUGCTL, 0, "DEBUGCTLMSR"}, {"p6", LB_REG_LBR_FROM, 0, "LastBranchFromIP"},
    {"p6", LB_REG_LER_TO, 0, "LastExceptionToIP"}, {"pentium-m", LB_REG_DEBUGCTL, 0, "MSR_DEBUGCTLB"},
    {"pentium-m", LB_REG_LBR, 5, "MSR_LASTBRANCH_5"}, {"pentium4", LB_REG_DEBUGCTL, 0, "MSR_DEBUGCTLA"},
    {"pentium4", LB_REG_LBR, 3, "MSR_LASTBRANCH_3"}, {"prescott", LB_REG_LBR_FROM, 15, "MSR_LASTBRANCH_15_FROM_LIP"},
    {"yonah", LB_REG_DEBUGCTL, 0, "IA32_DEBUGCTL"}, {"westmere", LB_REG_LBR_TO, 9, "MSR_LASTBRANCH_9_TO_IP"},
    {"skylake", LB_REG_LBR_INFO, 31, "MSR_LBR_INFO_31"},
    {"skylake", LB_REG_GLOBAL_OVF_CTRL, 0, "IA32_PERF_GLOBAL_STATUS_RESET"},
    {"haswell", LB_REG_GLOBAL_OVF_CTRL, 0, "IA32_PERF_GLOBAL_OVF_CTRL"},
    {"sapphirerapids", LB_REG_LBR_FROM, 0, "IA32_LBR_0_FROM_IP"},
    {"sapphirerapids", LB_REG_LBR_INFO, 7, "IA32_LBR_7_INFO"}, {"sapphirerapids", LB_REG_LER_INFO, 0, "IA32_LER_INFO"},
    {"zen2", LB_REG_DEBUGCTL, 0, "DebugCtl"}, {"zen2", LB_REG_LBR_FROM, 0, "LastBranchFromIP"},
    {"zen4", LB_REG_LAST_FROM, 0, "LastBranchFromIP"}, {"zen4", LB_REG_LER_FROM, 0, "LastIntFromIP"},
  };
  /* clang-format on */
  char name[64], small[5];

  (void)state;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    lb_cpu_register_name(cpu_named(known[i].cpu), known[i].id, known[i].number, name, sizeof(name));
    assert_string_equal(name, known[i].name);
  }
  assert_int_equal(lb_cpu_register_name(cpu_named("skylake"), LB_REG_LBR_INFO, 31, small, sizeof(small)), 15);
  assert_string_equal(small, "MSR_");
}

static void registers_are_found_by_short_words(void **state)
{
  /* clang-format off */
  static const struct {
    const char *cpu, *word;
    uint32_t msr;
  } known[] = {
    {"p6", "debugctl", 0x1D9}, {"p6", "IA32_DEBUGCTL", 0x1D9}, {"p6", "from", 0x1DB}, {"p6", "last_from", 0x1DB},
    {"p6", "ler_to", 0x1DE}, {"p6", "pmc1", 0xC2}, {"p6", "evtsel0", 0x186}, {"pentium-m", "tos", 0x1C9},
    {"pentium-m", "MSR_LASTBRANCH_5", 0x45}, {"pentium-m", "lbr_5", 0x45}, {"pentium4", "tos", 0x1DA},
    {"pentium4", "lbr3", 0x1DE}, {"prescott", "from_15", 0x68F}, {"prescott", "ler_from", 0x1D7},
    {"prescott", "cccr17", 0x371}, {"prescott", "cru_escr3", 0x3CD}, {"westmere", "from3", 0x683},
    {"westmere", "FROM_3", 0x683}, {"westmere", "to_3", 0x6C3}, {"westmere", "select", 0x1C8},
    {"westmere", "LBR_SELECT", 0x1C8}, {"westmere", "lbr-select", 0x1C8}, {"westmere", "last_to", 0x1DC},
    {"westmere", "global_status", 0x38E}, {"westmere", "fixed0", 0x309}, {"westmere", "fixed_ctrl", 0x38D},
    {"skylake", "info_3", 0xDC3}, {"skylake", "a_pmc3", 0x4C4}, {"skylake", "ler_info", 0x1E0},
    {"skylake", "global_ovf_ctrl", 0x390}, {"alderlake", "from_31", 0x151F}, {"alderlake", "info_0", 0x1200},
    {"alderlake", "MSR_LBR_INFO_0", 0x1200}, {"alderlake", "lbr_ctl", 0x14CE}, {"alderlake", "depth", 0x14CF},
    {"icelake", "pebs_data_cfg", 0x3F2}, {"zen", "from", 0x1DB}, {"zen", "pmc5", 0xC001020B},
    {"zen", "evtsel5", 0xC001020A}, {"k8", "evtsel3", 0xC0010003}, {"zen3", "from_15", 0xC001031E},
    {"zen3", "to_15", 0xC001031F}, {"zen3", "last_from", 0x1DB}, {"zen4", "select", 0xC000010E},
    {"zen4", "global_status", 0xC0000300}, {"zen4", "global_ctrl", 0xC0000301}, {"zen4", "dbg_extn_cfg", 0xC000010F},
  };
  /* clang-format on */
  /* clang-format off */
  static const struct {
    const char *cpu, *word;
  } wrong[] = {
    {"p6", "tos"}, {"p6", "select"}, {"westmere", "from_16"}, {"westmere", "from"}, {"westmere", "info_0"},
    {"alderlake", "from_32"}, {"alderlake", "select"}, {"k8", "evtsel4"}, {"nano", "from_0"}, {"skylake", ""},
    {"skylake", "msr"}, {"skylake", "0x1da"}, {"skylake", "0x"}, {"skylake", "0x1000001d9"}, {"skylake", "473"},
    {"skylake", "debugctldebugctldebugctldebugctldebugctldebugctldebugctldebugctl"},
  };
  /* clang-format on */
  unsigned number;

  (void)state;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    const struct lb_cpu *cpu = cpu_named(known[i].cpu);
    int id = lb_cpu_register_find(cpu, known[i].word, &number);

    if (id < 0)
      fail_msg("%s: %s is not found", known[i].cpu, known[i].word);
    struct lb_register_range range = lb_cpu_register(cpu, (enum lb_register)id);
    if (range.first + number * range.stride != known[i].msr)
      fail_msg("%s: %s is found at %#x", known[i].cpu, known[i].word, range.first + number * range.stride);
  }
  number = 9999;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
    if (lb_cpu_register_find(cpu_named(wrong[i].cpu), wrong[i].word, &number) != LB_E_NO_REGISTER)
      fail_msg("%s: '%s' is found", wrong[i].cpu, wrong[i].word);
  assert_int_equal(number, 9999);
}

/* ---- fields ---- */

static void fields_are_ordered_and_apart(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  FOR_EACH_REGISTER(id)
  {
    struct lb_field field = {0};
    uint64_t seen = 0;
    unsigned index = 0, next = 0;

    for (; lb_cpu_field(cpu, id, index, &field) == 0; index++) {
      assert_true(field.low <= field.high && field.high < 64);
      if (field.low < next)
        fail_msg("%s: field %s of '%s' is out of order", cpu->name, field.name, lb_register_text(id));
      next = field.high + 1u;
      assert_true(*field.name && *field.meaning);
      for (unsigned bit = field.low; bit <= field.high; bit++) {
        assert_false(seen >> bit & 1);
        seen |= UINT64_C(1) << bit;
      }
    }
    /* Every register has fields where it exists, and none where it does not. */
    if ((index != 0) != (lb_cpu_register(cpu, id).count != 0))
      fail_msg("%s: '%s' has %u fields", cpu->name, lb_register_text(id), index);
    assert_int_equal(lb_cpu_field(cpu, id, index + 1, &field), LB_E_NO_FIELD);
  }
}

static const struct lb_field *field_named(const char *cpu, enum lb_register id, const char *name)
{
  static struct lb_field field;

  for (unsigned index = 0; lb_cpu_field(cpu_named(cpu), id, index, &field) == 0; index++)
    if (!strcmp(field.name, name))
      return &field;
  return NULL;
}

static void fields_lie_where_the_manual_has_them(void **state)
{
  /* clang-format off */
  static const struct {
    const char *cpu;
    enum lb_register id;
    const char *name;
    int high, low; /* -1: has no such field */
  } known[] = {
    {"pentium4", LB_REG_DEBUGCTL, "TR", 2, 2}, {"westmere", LB_REG_DEBUGCTL, "TR", 6, 6},
    {"p6", LB_REG_DEBUGCTL, "PB3", 5, 5}, {"alderlake", LB_REG_DEBUGCTL, "LBR", -1, -1},
    {"sapphirerapids", LB_REG_DEBUGCTL, "BLD", 2, 2}, {"westmere", LB_REG_LBR_SELECT, "FAR_BRANCH", 8, 8},
    {"westmere", LB_REG_LBR_SELECT, "EN_CALLSTACK", -1, -1}, {"haswell", LB_REG_LBR_SELECT, "EN_CALLSTACK", 9, 9},
    {"silvermont", LB_REG_LBR_SELECT, "EN_CALLSTACK", -1, -1}, {"pentium-m", LB_REG_LBR, "TO", 63, 32},
    {"pentium-m", LB_REG_LER_FROM, "FROM", 31, 0}, {"p6", LB_REG_LBR_FROM, "FROM", 31, 0},
    {"merom", LB_REG_LBR_FROM, "FROM", 63, 0}, {"ivybridge", LB_REG_LBR_FROM, "SIGN", 62, 48},
    {"ivybridge", LB_REG_LAST_FROM, "MISPRED", 63, 63}, {"haswell", LB_REG_LBR_FROM, "TSX_ABORT", 61, 61},
    {"skylake", LB_REG_LBR_FROM, "MISPRED", -1, -1}, {"skylake", LB_REG_LBR_INFO, "IN_TSX", 62, 62},
    {"goldmont", LB_REG_LBR_TO, "CYC_CNT", 63, 48}, {"goldmont", LB_REG_LBR_FROM, "MISPRED", 63, 63},
    {"alderlake", LB_REG_LBR_INFO, "BR_TYPE", 59, 56}, {"alderlake", LB_REG_LBR_INFO, "PMC1_CNT", -1, -1},
    {"lunarlake", LB_REG_LBR_INFO, "PMC1_CNT", 35, 34}, {"zen4", LB_REG_LBR_TO, "VALID", 63, 63},
    {"zen4", LB_REG_LAST_TO, "TO", 63, 0}, {"zen3", LB_REG_AMD_DBG_EXTN_CFG, "MSROFF", 19, 16},
    {"zen4", LB_REG_AMD_DBG_EXTN_CFG, "LBRV2EN", 6, 6}, {"westmere", LB_REG_LBR_TOS, "TOS", 3, 0},
    {"skylake", LB_REG_LBR_TOS, "TOS", 4, 0}, {"yonah", LB_REG_LBR_TOS, "TOS", 2, 0},
    {"yonah", LB_REG_LBR_TOS, "BIT_27", 27, 27}, {"skylake", LB_REG_GLOBAL_STATUS, "LBR_FRZ", 58, 58},
    {"broadwell", LB_REG_GLOBAL_STATUS, "LBR_FRZ", -1, -1},
    {"broadwell", LB_REG_GLOBAL_OVF_CTRL, "TRACE_TOPA_PMI", 55, 55},
    {"icelake", LB_REG_GLOBAL_CTRL, "EN_FIXED3", 35, 35}, {"icelake", LB_REG_FIXED_CTR_CTRL, "PMI3", 15, 15},
    {"icelake", LB_REG_FIXED_CTR_CTRL, "ANY3", -1, -1}, {"skylake", LB_REG_FIXED_CTR_CTRL, "ANY1", 6, 6},
    {"sandybridge", LB_REG_PEBS_ENABLE, "PS_EN", 63, 63}, {"skylake", LB_REG_PEBS_ENABLE, "PS_EN", -1, -1},
    {"skylake", LB_REG_PEBS_ENABLE, "LL_EN_PMC3", 35, 35}, {"silvermont", LB_REG_PEBS_ENABLE, "EN_PMC1", -1, -1},
    {"goldmontplus", LB_REG_PEBS_ENABLE, "EN_FIXED2", 34, 34}, {"icelake", LB_REG_PEBS_ENABLE, "EN_FIXED3", 35, 35},
    {"icelake", LB_REG_PEBS_ENABLE, "LL_EN_PMC0", -1, -1}, {"prescott", LB_REG_PEBS_ENABLE, "UOP_TAG", 24, 24},
    {"pentium-m", LB_REG_DS_AREA, "ADDRESS", 31, 0}, {"k8", LB_REG_K7_EVNTSEL, "EVENT_HIGH", -1, -1},
    {"k10", LB_REG_K7_EVNTSEL, "EVENT_HIGH", 35, 32}, {"nano", LB_REG_DEBUGCTL, "TR", -1, -1},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    const struct lb_field *field = field_named(known[i].cpu, known[i].id, known[i].name);

    if ((field != NULL) != (known[i].high >= 0))
      fail_msg("%s: field %s %s", known[i].cpu, known[i].name, field ? "is there" : "is missing");
    if (field && (field->high != known[i].high || field->low != known[i].low))
      fail_msg("%s: field %s is %u:%u", known[i].cpu, known[i].name, field->high, field->low);
  }
}

/* Deng Zhi, experiment 14-4: on the quirk CPUs a jump bit leaves out more than jumps, and the text must say so. */
static void select_texts_tell_the_quirk(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  {
    const struct lb_field *field;

    if (!cpu->lbr || !cpu->lbr->select)
      continue;
    field = field_named(cpu->name, LB_REG_LBR_SELECT, "NEAR_IND_JMP");
    assert_non_null(field);
    assert_int_equal(strstr(field->meaning, "near returns") != NULL, lb_cpu_quirk(cpu, LB_QUIRK_NHM_SELECT));
    assert_int_equal(strstr(field->meaning, "indirect calls") != NULL, lb_cpu_quirk(cpu, LB_QUIRK_NHM_SELECT));
    field = field_named(cpu->name, LB_REG_LBR_SELECT, "NEAR_REL_JMP");
    assert_non_null(field);
    assert_int_equal(strstr(field->meaning, "relative calls") != NULL, lb_cpu_quirk(cpu, LB_QUIRK_NHM_SELECT));
  }
}

PART(cmocka_unit_test(no_address_belongs_to_two_registers), cmocka_unit_test(register_names_lead_back),
     cmocka_unit_test(registers_have_the_manual_s_names), cmocka_unit_test(registers_are_found_by_short_words),
     cmocka_unit_test(fields_are_ordered_and_apart), cmocka_unit_test(fields_lie_where_the_manual_has_them),
     cmocka_unit_test(select_texts_tell_the_quirk));
