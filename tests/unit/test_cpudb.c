/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue against itself (no row unused, no name twice, no address twice, no bit both kept and refused) and
 * against numbers that were measured on real processors: those stand here a second time, as literals, with their
 * source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cpudb/cpudb.h"
#include "cpudb/tables.h"
#include "lastbranch/error.h"

#define FOR_EACH_CPU(cpu) for (const struct lb_cpu *cpu = lb_cpu_at(0), *end_ = cpu + CPUDB_CPUS; cpu < end_; cpu++)
#define FOR_EACH_REGISTER(id) for (enum lb_register id = 0; id < LB_REGISTERS; id++)

static const struct lb_cpu *cpu_named(const char *name)
{
  const struct lb_cpu *cpu = NULL;

  if (lb_cpu_find(name, &cpu) != 0)
    fail_msg("no CPU is called %s", name);
  return cpu;
}

static void assert_evidence(const char *kind, const char *name, unsigned basis, const char *evidence)
{
  if (!lb_basis_name(basis))
    fail_msg("%s %s is neither measured nor documented nor inferred", kind, name);
  if (!evidence || strlen(evidence) < 4)
    fail_msg("%s %s has no evidence", kind, name);
}

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

/* ---- what the rows say ---- */

static void debugctl_masks_agree(void **state)
{
  (void)state;
  for (unsigned row = 0; row < DEBUGCTL_ROWS; row++) {
    const struct lb_debugctl *d = &cpudb_debugctls[row];
    uint64_t named = 0, unnamed = 0;

    assert_false(d->kept & d->faults);
    for (unsigned bit = 0; bit < LB_DEBUGCTL_BITS; bit++) {
      if (d->bit[bit] == LB_NO_BIT)
        continue;
      assert_true(d->bit[bit] < 64);
      if (named >> d->bit[bit] & 1)
        fail_msg("%s: two names for bit %u", d->name, d->bit[bit]);
      named |= UINT64_C(1) << d->bit[bit];
    }
    if (named & ~d->kept)
      fail_msg("%s: a named bit is not kept", d->name);
    /* Bits that can be set and mean nothing: Pentium M, and VIA, whose row says why. */
    if (row == DEBUGCTL_PM)
      unnamed = 0x3C00;
    if (row == DEBUGCTL_VIA)
      unnamed = 0x1FC0;
    if ((d->kept & ~named) != unnamed)
      fail_msg("%s: a kept bit has no name", d->name);
  }
}

/* The same bits in CPUID and in DEBUGCTL: SDM vol. 3 (June 2016) 17.4.1. */
static void debugctl_fits_the_features(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  {
    assert_int_equal(lb_cpu_debugctl(cpu, LB_DEBUGCTL_BTS) != 0, cpu->ds->has_bts);
    /* The manual gives Pentium 4 one layout, although its first models do not report DS-CPL. */
    if (cpu->lbr != &cpudb_classes[CLASS_P4A])
      assert_int_equal(lb_cpu_debugctl(cpu, LB_DEBUGCTL_BTS_OFF_OS) != 0, cpu->ds->has_cpl);
    assert_int_equal(lb_cpu_debugctl(cpu, LB_DEBUGCTL_RTM) != 0, lb_cpu_has(cpu, LB_FEATURE_TSX));
    assert_int_equal(lb_cpu_debugctl(cpu, LB_DEBUGCTL_BLD) != 0, lb_cpu_has(cpu, LB_FEATURE_BUS_LOCK_DETECT));
    assert_int_equal(lb_cpu_debugctl(cpu, LB_DEBUGCTL_FREEZE_WHILE_SMM_EN) != 0, cpu->perf_capabilities >> 12 & 1);
    assert_int_equal(lb_cpu_debugctl(cpu, LB_DEBUGCTL_LBR) == 0, lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR));
  }
}

/* Measured on hardware, from the CPU profiles of VirtualBox. */
static void debugctl_masks_are_the_measured_ones(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature;
    uint64_t kept, faults;
  } measured[] = {
    {"0F_04", 0x7F, 0xFFFFFFFFFFFFFF80}, {"06_0D", 0x3DFF, 0}, {"06_0E", 0x1C3, 0xFFFFFFFFFFFFFE3C},
    {"06_0F", 0x1FC3, 0xFFFFFFFFFFFFE03C}, {"06_17", 0x5FC3, 0xFFFFFFFFFFFFA03C},
    {"06_1C_2", 0x1FC3, 0xFFFFFFFFFFFFE03C}, {"06_37", 0x5FC3, 0xFFFFFFFFFFFFA03C},
    {"06_2A", 0x7FC3, 0xFFFFFFFFFFFF803C}, {"06_2D", 0x7FC3, 0xFFFFFFFFFFFF803C}, {"06_3A", 0x7FC3, 0xFFFFFFFFFFFF803C},
    {"06_3D", 0xFFC3, 0xFFFFFFFFFFFF003C}, {"06_5E", 0xFFC3, 0xFFFFFFFFFFFF003C}, {"amd:0F_04", 0x3F, 0x40},
    {"amd:10_0A", 0x3F, 0x40}, {"amd:15_01", 0x3F, 0x40}, {"amd:17_01", 0x3F, 0x40}, {"hygon:18_00", 0x3F, 0x40},
    {"centaur:06_0F", 0x1FC3, 0xFFFFFFFFFFFFE03C}, {"zhaoxin:07_0B", 0x1FC3, 0xFFFFFFFFFFFFE03C},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
    const struct lb_debugctl *d = cpu_named(measured[i].signature)->debugctl;

    if (d->kept != measured[i].kept || d->faults != measured[i].faults)
      fail_msg("%s: DEBUGCTL keeps %#jx, refuses %#jx", measured[i].signature, (uintmax_t)d->kept,
               (uintmax_t)d->faults);
  }
}

/* LBR_SELECT: WRMSR refuses all but kept and ignored bits. Profiles of i7-3960X, i5-3570, i7-5600U, i7-6700K, N3530. */
static void select_masks_are_the_measured_ones(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature;
    uint64_t kept, refused;
  } measured[] = {
    {"06_2D", 0x1FF, 0xFFFFFFFFFFFFFE00}, {"06_3A", 0x1FF, 0xFFFFFFFFFFFFFE00}, {"06_3D", 0x3FF, 0xFFFFFFFFFFFFFC00},
    {"06_5E", 0x3FF, 0xFFFFFFFFFFFFFC00}, {"06_37", 0x1FF, 0xFFFFFFFFFFFFFC00},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
    const struct lb_lbr_class *lbr = cpu_named(measured[i].signature)->lbr;

    assert_int_equal(lbr->select_mask, measured[i].kept);
    assert_true(~(uint64_t)(lbr->select_mask | lbr->select_ignored) == measured[i].refused);
  }
  for (unsigned i = 0; i < CLASS_ROWS; i++) {
    const struct lb_lbr_class *lbr = &cpudb_classes[i];

    assert_false(lbr->select_mask & lbr->select_ignored);
    assert_int_equal(lbr->select == 0, lbr->select_mask == 0);
    if (lbr->select)
      assert_true(lbr->select_mask == 0x1FF || lbr->select_mask == 0x3FF);
  }
}

/* What WRMSR may do to records, LER and TOS: VirtualBox profiles; 06_25 by SDM vol. 3 (June 2016) table 35-13. */
static void write_rules_are_the_measured_ones(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature;
    unsigned rule;
    bool ler, tos, tos_excess_faults;
    uint32_t from, to, tos_msr, ler_msr;
  } measured[] = {
    {"0F_04", LB_WRITE_FREE, false, true, false, 0x680, 0x6C0, 0x1DA, 0x1D7},
    {"06_0D", LB_WRITE_NEVER, false, false, false, 0x40, 0x40, 0x1C9, 0x1DD},
    {"06_0E", LB_WRITE_FREE, true, true, false, 0x40, 0x40, 0x1C9, 0x1DD},
    {"06_17", LB_WRITE_FREE, true, true, false, 0x40, 0x60, 0x1C9, 0x1DD},
    {"06_1C_2", LB_WRITE_FREE, true, true, true, 0x40, 0x60, 0x1C9, 0x1DD},
    {"06_37", LB_WRITE_FREE, true, true, true, 0x40, 0x60, 0x1C9, 0x1DD},
    {"06_25", LB_WRITE_CANONICAL, false, true, true, 0x680, 0x6C0, 0x1C9, 0x1DD},
    {"06_3A", LB_WRITE_CANONICAL, true, true, true, 0x680, 0x6C0, 0x1C9, 0x1DD},
    {"06_3D", LB_WRITE_CANONICAL, true, true, true, 0x680, 0x6C0, 0x1C9, 0x1DD},
    {"06_5E", LB_WRITE_CANONICAL, true, true, true, 0x680, 0x6C0, 0x1C9, 0x1DD},
    {"amd:17_01", LB_WRITE_NEVER, false, false, false, 0x1DB, 0x1DC, 0, 0x1DD},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
    const struct lb_lbr_class *lbr = cpu_named(measured[i].signature)->lbr;

    if (lbr->write_rule != measured[i].rule || lbr->ler_is_writable != measured[i].ler ||
        lbr->tos_is_writable != measured[i].tos || lbr->tos_excess_faults != measured[i].tos_excess_faults)
      fail_msg("%s: class %s has other write rules", measured[i].signature, lbr->name);
    if (lbr->from != measured[i].from || lbr->to != measured[i].to || lbr->tos != measured[i].tos_msr ||
        lbr->ler_from != measured[i].ler_msr || lbr->ler_to != measured[i].ler_msr + 1)
      fail_msg("%s: class %s is elsewhere", measured[i].signature, lbr->name);
  }
}

/* IA32_PERF_GLOBAL_OVF_CTRL: bits that WRMSR takes, from the profiles. */
static void status_masks_are_the_measured_ones(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature;
    uint64_t accepted;
  } measured[] = {
    {"06_1C_2", 0xC000000700000003}, {"06_37", 0xC000000700000003}, {"06_2A", 0xE00000070000000F},
    {"06_2D", 0xE00000070000000F}, {"06_3A", 0xE00000070000000F}, {"06_3D", 0xE08000070000000F},
    {"06_5E", 0xFC8000070000000F},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
    assert_true(cpu_named(measured[i].signature)->pmu->status_clear == measured[i].accepted);
}

static void pmus_make_sense(void **state)
{
  (void)state;
  for (unsigned i = 0; i < PMU_ROWS; i++) {
    const struct lb_pmu *pmu = &cpudb_pmus[i];
    uint64_t fixed = ((UINT64_C(1) << pmu->fixed) - 1) & ~(uint64_t)pmu->fixed_absent;
    uint64_t counters = ((UINT64_C(1) << pmu->counters) - 1) | fixed << 32;

    assert_true(pmu->counters && (pmu->width == 40 || pmu->width == 48));
    assert_true(pmu->pebs_counters <= pmu->counters);
    assert_int_equal(pmu->version != 0, pmu->kind == LB_PMU_ARCH);
    assert_int_equal(pmu->fixed != 0, pmu->version >= 2);
    assert_int_equal(pmu->fixed != 0, pmu->fixed_width != 0);
    assert_false(pmu->fixed_absent >> pmu->fixed);
    assert_int_equal(pmu->leaf_counters != 0, pmu->has_leaf_23);
    assert_int_equal(pmu->leaf_fixed != 0, pmu->has_leaf_23);
    assert_true(pmu->leaf_counters <= pmu->counters && pmu->leaf_fixed <= pmu->fixed);
    assert_true(pmu->version < 6 || pmu->has_leaf_23);
    assert_int_equal(pmu->events != 0, pmu->version != 0);
    assert_false(pmu->absent >> pmu->events);
    if (pmu->version >= 2 || pmu->kind == LB_PMU_AMD_V2)
      assert_true((pmu->status_clear & 0x000000FFFFFFFFFF) == counters);
    else
      assert_true(pmu->status_clear == 0);
    assert_int_equal(pmu->status_clear >> 58 & 1, pmu->version >= 4 || pmu->kind == LB_PMU_AMD_V2); /* LBR_Frz */
  }
}

/* IA32_PEBS_ENABLE: bits that can be 1, from the profiles; on 06_17 and 0F_04 the others are ignored, elsewhere #GP. */
static void pebs_enables_are_the_measured_ones(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature;
    uint64_t bits;
  } measured[] = {
    {"0F_04", 0x7FFFFFF}, {"06_17", 1}, {"06_1C_2", 1}, {"06_37", 1}, {"06_2A", 0x8000000F0000000F},
    {"06_3A", 0x8000000F0000000F}, {"06_3D", 0xF0000000F}, {"06_5E", 0xF0000000F}, {"06_0E", 0}, {"amd:17_01", 0},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
    assert_true(cpu_named(measured[i].signature)->pmu->pebs_enable == measured[i].bits);
  FOR_EACH_CPU(cpu)
  {
    assert_int_equal(cpu->pmu->pebs_enable != 0, cpu->ds->pebs != LB_PEBS_NONE);
    if (cpu->pmu->kind == LB_PMU_ARCH) /* one bit for each counter that can do PEBS */
      assert_true((cpu->pmu->pebs_enable & UINT32_MAX) == (UINT64_C(1) << cpu->pmu->pebs_counters) - 1);
  }
}

/* PERF_CAPABILITIES as measured: VirtualBox profiles; the last is Zhang Yinkui's 06_8E. */
static void perf_capabilities_are_the_measured_ones(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature;
    uint32_t value;
    int lbr_fmt;
    unsigned pebs;
  } measured[] = {
    {"06_0E", 0, 0, LB_PEBS_NONE}, {"06_0F", 0x82, 2, LB_PEBS_0}, {"06_17", 0x10C2, 2, LB_PEBS_0},
    {"06_1C_2", 0xC1, 1, LB_PEBS_0}, {"06_37", 0x32C1, 1, LB_PEBS_2}, {"06_2A", 0x31C3, 3, LB_PEBS_1},
    {"06_3A", 0x31C3, 3, LB_PEBS_1}, {"06_3D", 0x32C4, 4, LB_PEBS_2}, {"06_5E", 0x33C5, 5, LB_PEBS_3},
    {"06_8E", 0x33C5, 5, LB_PEBS_3},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
    const struct lb_cpu *cpu = cpu_named(measured[i].signature);

    assert_int_equal(cpu->perf_capabilities, measured[i].value);
    assert_int_equal(cpu->lbr_fmt, measured[i].lbr_fmt);
    assert_int_equal(cpu->ds->pebs, measured[i].pebs);
  }
}

static void perf_capabilities_fit_the_row(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  {
    unsigned pebs_fmt = cpu->perf_capabilities >> 8 & 0xF;

    if (!lb_cpu_has(cpu, LB_FEATURE_PDCM)) {
      assert_int_equal(cpu->perf_capabilities, 0);
      assert_int_equal(cpu->lbr_fmt, -1);
      continue;
    }
    assert_int_equal(cpu->lbr_fmt, cpu->perf_capabilities & 0x3F);
    if (cpu->ds->pebs != LB_PEBS_NONE)
      assert_int_equal(pebs_fmt, cpu->ds->pebs);
    assert_int_equal(cpu->perf_capabilities >> 14 & 1, cpu->ds->pebs >= LB_PEBS_4 && cpu->ds->pebs <= LB_PEBS_6);
    assert_int_equal(cpu->lbr_fmt == 0x3F, lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR));
    if (cpu->lbr_fmt != 0x3F && !lb_cpu_quirk(cpu, LB_QUIRK_KNL_FORMAT))
      assert_int_equal(cpu->format, cpu->lbr_fmt);
  }
}

static void classes_fit_the_rows(void **state)
{
  (void)state;
  FOR_EACH_CPU(cpu)
  {
    const struct lb_lbr_class *lbr = cpu->lbr;
    unsigned depth = lb_cpu_depth(cpu);

    assert_int_equal(lb_cpu_has(cpu, LB_FEATURE_LER), lbr && lbr->ler_from);
    if (!lbr) {
      assert_int_equal(depth, 0);
      continue;
    }
    assert_true(depth >= 1 && depth <= 64);
    assert_true((depth & (depth - 1)) == 0 || depth % 8 == 0);
    if (lbr->tos) /* TOS wraps by masking */
      assert_true((depth & (depth - 1)) == 0);
    assert_int_equal(lbr->is_combined, cpu->format == LB_FORMAT_32);
    assert_int_equal(lbr->info != 0, cpu->format == LB_FORMAT_INFO || cpu->format == LB_FORMAT_LIP_INFO ||
                                       cpu->format == LB_FORMAT_ARCH);
    assert_int_equal(lbr->info != 0, lbr->ler_info != 0);
    assert_int_equal(lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR), lbr == &cpudb_classes[CLASS_ARCH]);
    assert_int_equal(lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR), cpu->leaf_1c[0] != 0);
    assert_int_equal(lb_cpu_has(cpu, LB_FEATURE_BRS), lbr == &cpudb_classes[CLASS_AMD_BRS]);
    assert_int_equal(lb_cpu_has(cpu, LB_FEATURE_LBR_V2), lbr == &cpudb_classes[CLASS_AMD_V2]);
    if (lb_cpu_quirk(cpu, LB_QUIRK_NHM_SELECT))
      assert_true(lbr->select != 0);
    if (lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR)) /* leaf 1CH says so itself */
      assert_int_equal(cpu->leaf_1c[0] >> 30 & 1, lb_cpu_has(cpu, LB_FEATURE_DEEP_C_CLEARS));
  }
}

/* SDM vol. 3 (June 2016) table 9-2: 06_1A, 06_1C and every family 6 model above 1D keep the stack over a warm reset. */
static void warm_reset_follows_the_model(void **state)
{
  (void)state;
  for (size_t i = 0; lb_model_at(i); i++) {
    const struct lb_model *m = lb_model_at(i);
    bool keeps = m->vendor == LB_VENDOR_INTEL && m->family == 6 &&
                 (m->first_model == 0x1A || m->first_model == 0x1C || m->first_model > 0x1D);

    assert_int_equal(lb_cpu_has(m->cpu, LB_FEATURE_WARM_RESET_KEEPS), keeps);
  }
}

static void depths_are_known(void **state)
{
  /* clang-format off */
  static const struct {
    const char *name;
    unsigned depth;
  } known[] = {
    {"p6", 1}, {"pentium4", 4}, {"prescott", 16}, {"pentium-m", 8}, {"merom", 4}, {"bonnell", 8}, {"silvermont", 8},
    {"westmere", 16}, {"haswell", 16}, {"knightslanding", 8}, {"goldmont", 32}, {"skylake", 32}, {"alderlake", 32},
    {"arch-max", 64}, {"zen", 1}, {"zen3", 16}, {"zen4", 16}, {"nano", 0},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    assert_int_equal(lb_cpu_depth(cpu_named(known[i].name)), known[i].depth);
}

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

/* ---- CPUID ---- */

/* Values of whole leaves from VirtualBox profiles and InstLatx64 dumps, in the bits that the catalogue owns. */
static void cpuid_is_the_dumped_one(void **state)
{
  /* clang-format off */
  static const struct {
    const char *signature;
    uint32_t leaf, eax, ebx, ecx, edx;
  } dumped[] = {
    {"06_0E", 0x1, 0, 0, 0x8000, 0x200000}, {"06_0D", 0x1, 0, 0, 0, 0x200000}, {"06_5E", 0x1, 0, 0, 0x8014, 0x200000},
    {"0F_04", 0x1, 0, 0, 0x14, 0x200000}, {"amd:17_01", 0x1, 0, 0, 0, 0}, {"06_8F", 0x7, 0, 0x800, 0x1000000, 0x80000},
    {"06_97", 0x7, 0, 0, 0, 0x80000}, {"06_7E", 0x7, 0, 0, 0, 0}, {"amd:1A_44", 0x7, 0, 0, 0x1000000, 0},
    {"06_0E", 0xA, 0x07280201, 0, 0, 0}, {"06_17", 0xA, 0x07280202, 0, 0, 0x503},
    {"06_1E", 0xA, 0x07300403, 0x44, 0, 0x603}, {"06_2C", 0xA, 0x07300403, 0x04, 0, 0x603},
    {"06_3D", 0xA, 0x07300403, 0, 0, 0x603}, {"06_5E", 0xA, 0x07300404, 0, 0, 0x603},
    {"06_7A", 0xA, 0x07300404, 0, 0, 0x8603}, {"06_7E", 0xA, 0x08300805, 0, 0xF, 0x8604},
    {"06_96", 0xA, 0x07300405, 0, 0x7, 0x8603}, {"06_BD", 0xA, 0x0D300806, 0x280, 0x7, 0x8603},
    {"06_01", 0xA, 0, 0, 0, 0}, {"amd:19_61", 0xA, 0, 0, 0, 0}, {"centaur:06_0F", 0xA, 0x06280202, 0, 0, 0x503},
    {"06_8F", 0x1C, 0x4000000B, 0x7, 0x7, 0}, {"06_BE", 0x1C, 0xC000000B, 0x7, 0x7, 0},
    {"06_C6", 0x1C, 0x4000000B, 0x7, 0xF0007, 0}, {"06_5E", 0x1C, 0, 0, 0, 0},
    {"amd:19_01", 0x80000008, 0, 0x80000000, 0, 0}, {"amd:19_21", 0x80000008, 0, 0, 0, 0},
    {"amd:19_11", 0x80000022, 0x7, 0x106, 0, 0}, {"amd:1A_02", 0x80000022, 0x7, 0x106, 0, 0},
    {"amd:19_01", 0x80000022, 0, 0, 0, 0},
  };
  /* clang-format on */

  (void)state;
  for (size_t i = 0; i < sizeof(dumped) / sizeof(dumped[0]); i++) {
    struct lb_cpuid c = lb_cpu_cpuid(cpu_named(dumped[i].signature), dumped[i].leaf, 0);

    if (c.value[0] != dumped[i].eax || c.value[1] != dumped[i].ebx || c.value[2] != dumped[i].ecx ||
        c.value[3] != dumped[i].edx)
      fail_msg("%s: leaf %X is %08X %08X %08X %08X", dumped[i].signature, dumped[i].leaf, c.value[0], c.value[1],
               c.value[2], c.value[3]);
  }
}

static void cpuid_owns_its_bits_only(void **state)
{
  /* clang-format off */
  static const struct {
    uint32_t leaf, subleaf, mask[4];
  } owned[] = {
    {0x1, 0, {0, 0, 0x8014, 0x200000}}, {0x7, 0, {0, 0x800, 0x1000000, 0x80000}}, {0x7, 1, {0x100, 0, 0, 0}},
    {0xA, 0, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
    {0x1C, 0, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}}, {0x1C, 1, {0, 0, 0, 0}},
    {0x23, 0, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
    {0x23, 1, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
    {0x80000008, 0, {0, 0x80000000, 0, 0}}, {0x80000022, 0, {0x7, 0x3FF, 0, 0}}, {0x0, 0, {0, 0, 0, 0}},
    {0x80000001, 0, {0, 0, 0, 0}},
  };
  /* clang-format on */

  (void)state;
  FOR_EACH_CPU(cpu)
  for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
    struct lb_cpuid c = lb_cpu_cpuid(cpu, owned[i].leaf, owned[i].subleaf);

    for (unsigned reg = 0; reg < 4; reg++) {
      assert_int_equal(c.mask[reg], owned[i].mask[reg]);
      assert_false(c.value[reg] & ~c.mask[reg]);
    }
  }
}

/* ---- texts ---- */

static void texts_are_there(void **state)
{
  (void)state;
  for (unsigned i = 0; i < LB_VENDORS; i++)
    assert_string_not_equal(lb_vendor_name(i), "?");
  for (unsigned i = 0; i < LB_FORMATS; i++)
    assert_string_not_equal(lb_format_text(i), "?");
  for (unsigned i = 0; i <= LB_PEBS_NONE; i++)
    assert_string_not_equal(lb_pebs_text(i), "?");
  for (unsigned i = 0; i < LB_DEBUGCTL_BITS; i++)
    assert_true(strlen(lb_debugctl_bit_name(i)) >= 2 && strlen(lb_debugctl_bit_text(i)) > 2);
  for (unsigned i = 0; i < LB_FEATURES; i++)
    assert_true(strlen(lb_feature_name(i)) > 2 && strlen(lb_feature_text(i)) > 2);
  assert_string_equal(lb_vendor_name(LB_VENDORS), "?");
  assert_string_equal(lb_format_text(LB_FORMATS), "?");
  assert_string_equal(lb_pebs_text(LB_PEBS_NONE + 1), "?");
  assert_string_equal(lb_debugctl_bit_name(LB_DEBUGCTL_BITS), "?");
  assert_string_equal(lb_debugctl_bit_text(LB_DEBUGCTL_BITS), "?");
  assert_string_equal(lb_quirk_name(LB_QUIRKS), "?");
  assert_string_equal(lb_quirk_text(LB_QUIRKS), "?");
  assert_string_equal(lb_quirk_evidence(LB_QUIRKS), "?");
  assert_string_equal(lb_feature_name(LB_FEATURES), "?");
  assert_string_equal(lb_feature_text(LB_FEATURES), "?");
  assert_string_equal(lb_register_text(LB_REGISTERS), "?");
  assert_string_equal(lb_quirk_name(LB_QUIRK_NHM_SELECT), "NHM_SELECT");
  assert_true(lb_quirk_is_modelled(LB_QUIRK_NHM_SELECT));
  assert_false(lb_quirk_is_modelled(LB_QUIRK_AJ67));
  assert_false(lb_quirk_is_modelled(LB_QUIRKS));
}

/* SDM vol. 3 (June 2016) figures 17-7 and 17-10, tables 18-23, 18-44, 18-55. */
static void pebs_sizes_are_the_manual_s(void **state)
{
  (void)state;
  assert_int_equal(lb_pebs_size(LB_PEBS_P4), 40);
  assert_int_equal(lb_pebs_size(LB_PEBS_0), 144);
  assert_int_equal(lb_pebs_size(LB_PEBS_1), 176);
  assert_int_equal(lb_pebs_size(LB_PEBS_2), 192);
  assert_int_equal(lb_pebs_size(LB_PEBS_3), 200);
  assert_int_equal(lb_pebs_size(LB_PEBS_4), 0);
  assert_int_equal(lb_pebs_size(LB_PEBS_5), 0);
  assert_int_equal(lb_pebs_size(LB_PEBS_6), 0);
  assert_int_equal(lb_pebs_size(LB_PEBS_NONE), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_is_used),
    cmocka_unit_test(every_quirk_and_feature_is_used),
    cmocka_unit_test(everything_has_evidence),
    cmocka_unit_test(every_cpu_has_counter_events),
    cmocka_unit_test(rows_are_ordered_by_vendor),
    cmocka_unit_test(names_are_unique_and_found),
    cmocka_unit_test(names_are_forgiving),
    cmocka_unit_test(signatures_are_found),
    cmocka_unit_test(models_do_not_overlap),
    cmocka_unit_test(every_model_finds_its_row),
    cmocka_unit_test(debugctl_masks_agree),
    cmocka_unit_test(debugctl_fits_the_features),
    cmocka_unit_test(debugctl_masks_are_the_measured_ones),
    cmocka_unit_test(select_masks_are_the_measured_ones),
    cmocka_unit_test(write_rules_are_the_measured_ones),
    cmocka_unit_test(status_masks_are_the_measured_ones),
    cmocka_unit_test(pmus_make_sense),
    cmocka_unit_test(pebs_enables_are_the_measured_ones),
    cmocka_unit_test(perf_capabilities_are_the_measured_ones),
    cmocka_unit_test(perf_capabilities_fit_the_row),
    cmocka_unit_test(classes_fit_the_rows),
    cmocka_unit_test(warm_reset_follows_the_model),
    cmocka_unit_test(depths_are_known),
    cmocka_unit_test(no_address_belongs_to_two_registers),
    cmocka_unit_test(register_names_lead_back),
    cmocka_unit_test(registers_have_the_manual_s_names),
    cmocka_unit_test(registers_are_found_by_short_words),
    cmocka_unit_test(fields_are_ordered_and_apart),
    cmocka_unit_test(fields_lie_where_the_manual_has_them),
    cmocka_unit_test(select_texts_tell_the_quirk),
    cmocka_unit_test(cpuid_is_the_dumped_one),
    cmocka_unit_test(cpuid_owns_its_bits_only),
    cmocka_unit_test(texts_are_there),
    cmocka_unit_test(pebs_sizes_are_the_manual_s),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
