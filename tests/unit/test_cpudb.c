/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue against itself: no row unused, no name twice, no model in two rows, and every row has its evidence.
 */
#include "cpudb_rig.h"

/* ---- the rows ---- */

static void every_row_is_used(void **state)
{
  unsigned classes[CLASS_ROWS] = {0}, debugctls[DEBUGCTL_ROWS] = {0}, pmus[PMU_ROWS] = {0}, dss[DS_ROWS] = {0};
  unsigned formats[LB_FORMATS] = {0};

  (void)state;
  FOR_EACH_CPU(cpu)
  {
    if (cpu->lbr)
      classes[cpu->lbr - cpudb_classes]++;
    debugctls[cpu->debugctl - cpudb_debugctls]++;
    pmus[cpu->pmu - cpudb_pmus]++;
    dss[cpu->ds - cpudb_dss]++;
    formats[cpu->format]++;
  }
  for (unsigned i = 0; i < CLASS_ROWS; i++)
    if (!classes[i])
      fail_msg("class %s is not used", cpudb_classes[i].name);
  for (unsigned i = 0; i < DEBUGCTL_ROWS; i++)
    if (!debugctls[i])
      fail_msg("DEBUGCTL layout %s is not used", cpudb_debugctls[i].name);
  for (unsigned i = 0; i < PMU_ROWS; i++)
    if (!pmus[i])
      fail_msg("PMU %s is not used", cpudb_pmus[i].name);
  for (unsigned i = 0; i < DS_ROWS; i++)
    if (!dss[i])
      fail_msg("DS %s is not used", cpudb_dss[i].name);
  for (unsigned i = 0; i < LB_FORMATS; i++)
    if (!formats[i])
      fail_msg("format %u is not used", i);
}

static void every_quirk_and_feature_is_used(void **state)
{
  uint32_t quirks = 0, features = 0;

  (void)state;
  FOR_EACH_CPU(cpu)
  {
    quirks |= cpu->quirks;
    features |= cpu->features;
  }
  for (unsigned i = 0; i < LB_QUIRKS; i++)
    if (!(quirks >> i & 1))
      fail_msg("no CPU has quirk %s", lb_quirk_name(i));
  for (unsigned i = 0; i < LB_FEATURES; i++)
    if (!(features >> i & 1))
      fail_msg("no CPU has feature %s", lb_feature_name(i));
  assert_false((uint64_t)quirks >> LB_QUIRKS);
  assert_false((uint64_t)features >> LB_FEATURES);
}

static void everything_has_evidence(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  assert_evidence("CPU", cpu->name, cpu->basis, cpu->evidence);
  for (size_t i = 0; lb_model_at(i); i++)
    assert_evidence("a model of", lb_model_at(i)->cpu->name, lb_model_at(i)->basis, lb_model_at(i)->evidence);
  for (unsigned i = 0; i < CLASS_ROWS; i++)
    assert_evidence("class", cpudb_classes[i].name, cpudb_classes[i].basis, cpudb_classes[i].evidence);
  for (unsigned i = 0; i < DEBUGCTL_ROWS; i++)
    assert_evidence("DEBUGCTL", cpudb_debugctls[i].name, cpudb_debugctls[i].basis, cpudb_debugctls[i].evidence);
  for (unsigned i = 0; i < PMU_ROWS; i++)
    assert_evidence("PMU", cpudb_pmus[i].name, cpudb_pmus[i].basis, cpudb_pmus[i].evidence);
  for (unsigned i = 0; i < DS_ROWS; i++)
    assert_evidence("DS", cpudb_dss[i].name, cpudb_dss[i].basis, cpudb_dss[i].evidence);
  for (unsigned i = 0; i < LB_QUIRKS; i++)
    assert_evidence("quirk", lb_quirk_name(i), lb_quirk_basis(i), lb_quirk_evidence(i));
}

/* Only the Pentium 4, whose events are not chosen by an event select, may have the empty set. */
static void every_cpu_has_counter_events(void **state)
{
  struct lb_pmu_event event;

  (void)state;
  FOR_EACH_CPU(cpu)
  {
    assert_evidence("the events of", cpu->name, LB_BASIS_DOCUMENTED, lb_cpu_event_source(cpu));
    if ((lb_cpu_event(cpu, 0, &event) == 0) != (cpu->pmu->kind != LB_PMU_P4))
      fail_msg("%s: its set of counter events does not fit its PMU", cpu->name);
  }
}

static void rows_are_ordered_by_vendor(void **state)
{
  unsigned vendor = LB_VENDOR_INTEL;

  (void)state;
  FOR_EACH_CPU(cpu)
  {
    assert_true(cpu->vendor >= vendor);
    vendor = cpu->vendor;
  }
  assert_int_equal(vendor, LB_VENDORS - 1);
  assert_null(lb_cpu_at(CPUDB_CPUS));
}

/* ---- names ---- */

#define WORDS_MAX 1024

static size_t words_gather(char words[WORDS_MAX][64], const struct lb_cpu *owners[WORDS_MAX])
{
  size_t count = 0;

  FOR_EACH_CPU(cpu)
  {
    char list[512];

    snprintf(list, sizeof(list), "%s %s", cpu->name, cpu->aliases);
    for (char *word = strtok(list, " "); word; word = strtok(NULL, " ")) {
      size_t length = 0;

      assert_true(count < WORDS_MAX && strlen(word) < 64);
      for (; *word; word++)
        if (*word != '-' && *word != '_')
          words[count][length++] = (char)tolower((unsigned char)*word);
      words[count][length] = '\0';
      owners[count++] = cpu;
    }
  }
  return count;
}

static void names_are_unique_and_found(void **state)
{
  static char words[WORDS_MAX][64];
  static const struct lb_cpu *owners[WORDS_MAX];
  size_t count = words_gather(words, owners);

  (void)state;
  assert_true(count > CPUDB_CPUS);
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < i; j++)
      if (!strcmp(words[i], words[j]))
        fail_msg("%s stands for %s and for %s", words[i], owners[i]->name, owners[j]->name);
    assert_ptr_equal(cpu_named(words[i]), owners[i]);
  }
}

static void names_are_forgiving(void **state)
{
  const struct lb_cpu *cpu = NULL;

  (void)state;
  assert_string_equal(cpu_named("Sandy Bridge")->name, "sandybridge");
  assert_string_equal(cpu_named("SANDY-BRIDGE")->name, "sandybridge");
  assert_string_equal(cpu_named("core_i7_920")->name, "nehalem");
  assert_string_equal(cpu_named("zen+")->name, "zen+");
  assert_string_equal(cpu_named("zen")->name, "zen");
  static const char *const wrong[] = {
    "",          "-",     " ",        "nehal",  "nehalemm",  "nhm wsm",     "06",      "06_",   "_8E",    "06_8E_",
    "06_8E_1_2", "06_GG", "00006_8E", "intel:", "arm:06_8E", "intel:19_21", "06_55_8", "06_00", "0x06_8E"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
    if (lb_cpu_find(wrong[i], &cpu) != LB_E_NO_CPU)
      fail_msg("'%s' is a CPU", wrong[i]);
  assert_null(cpu);
}

static void signatures_are_found(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature, *name;
  } known[] = {
    {"06_01", "p6"}, {"06_0D", "pentium-m"}, {"06_0E", "yonah"}, {"0F_02", "pentium4"}, {"0F_04", "prescott"},
    {"06_0F", "merom"}, {"06_17", "penryn"}, {"06_1C_2", "bonnell-early"}, {"06_1C_9", "bonnell-early"},
    {"06_1C_A", "bonnell"}, {"06_1C", "bonnell"}, {"06_25", "westmere"}, {"06_2a", "sandybridge"},
    {"06_37", "silvermont"}, {"06_5E", "skylake"}, {"06_55_4", "skylake-server"}, {"06_55", "skylake-server"},
    {"06_55_5", "cascadelake"}, {"06_55_7", "cascadelake"}, {"06_55_B", "cooperlake"}, {"06_8E", "kabylake"},
    {"06_8E_A", "coffeelake"}, {"06_8E_C", "whiskeylake"}, {"intel:06_9E", "kabylake"}, {"06_7A", "goldmontplus"},
    {"06_8F", "sapphirerapids"}, {"06_BE", "gracemont"}, {"06_DD", "clearwaterforest"}, {"6_8e", "kabylake"},
    {"amd:06_08", "k7"}, {"amd:0F_04", "k8"}, {"10_02", "k10"}, {"17_08", "zen+"}, {"17_71", "zen2"},
    {"amd:19_01", "zen3"}, {"amd:19_21", "zen3-client"}, {"19_61", "zen4"}, {"AMD:1a_44", "zen5"}, {"18_00", "dhyana"},
    {"hygon:18_00", "dhyana"}, {"centaur:06_0F", "nano"}, {"07_0B", "wudaokou"}, {"zhaoxin:07_0B", "wudaokou"},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    assert_string_equal(cpu_named(known[i].signature)->name, known[i].name);
}

static void models_do_not_overlap(void **state)
{
  (void)state;
  for (size_t i = 0; lb_model_at(i); i++) {
    const struct lb_model *a = lb_model_at(i);

    assert_true(a->first_model <= a->last_model && a->first_stepping <= a->last_stepping && a->last_stepping <= 0xF);
    for (size_t j = 0; j < i; j++) {
      const struct lb_model *b = lb_model_at(j);

      if (a->vendor == b->vendor && a->family == b->family && a->first_model <= b->last_model &&
          b->first_model <= a->last_model && a->first_stepping <= b->last_stepping &&
          b->first_stepping <= a->last_stepping)
        fail_msg("models of %s and %s overlap at %02X_%02X", a->cpu->name, b->cpu->name, a->family, a->first_model);
    }
  }
}

static void every_model_finds_its_row(void **state)
{
  unsigned models[CPUDB_CPUS] = {0};
  const struct lb_cpu *cpu = NULL;

  (void)state;
  for (size_t i = 0; lb_model_at(i); i++) {
    const struct lb_model *m = lb_model_at(i);

    for (unsigned model = m->first_model; model <= m->last_model; model++)
      for (unsigned stepping = m->first_stepping; stepping <= m->last_stepping; stepping++) {
        assert_int_equal(lb_cpu_find_model(m->vendor, m->family, model, stepping, &cpu), 0);
        assert_ptr_equal(cpu, m->cpu);
      }
    models[m->cpu - cpudb_cpus]++;
  }
  FOR_EACH_CPU(row) /* all rows have a model, except the one that is no silicon */
  assert_int_equal(models[row - cpudb_cpus] == 0, !strcmp(row->name, "arch-max"));
  cpu = NULL;
  assert_int_equal(lb_cpu_find_model(LB_VENDOR_INTEL, 6, 0x55, 8, &cpu), LB_E_NO_CPU);
  assert_int_equal(lb_cpu_find_model(LB_VENDOR_INTEL, 6, 0x55, UINT32_MAX, &cpu), LB_E_NO_CPU);
  assert_int_equal(lb_cpu_find_model(LB_VENDORS, 6, 0x55, 4, &cpu), LB_E_NO_CPU);
  assert_null(cpu);
}

PART(cmocka_unit_test(every_row_is_used), cmocka_unit_test(every_quirk_and_feature_is_used),
     cmocka_unit_test(everything_has_evidence), cmocka_unit_test(every_cpu_has_counter_events),
     cmocka_unit_test(rows_are_ordered_by_vendor), cmocka_unit_test(names_are_unique_and_found),
     cmocka_unit_test(names_are_forgiving), cmocka_unit_test(signatures_are_found),
     cmocka_unit_test(models_do_not_overlap), cmocka_unit_test(every_model_finds_its_row));
