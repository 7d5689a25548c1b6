/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the catalogue against each other and against measured numbers: DEBUGCTL, LBR_SELECT, PMUs, PEBS, classes.
 */
#include "cpudb_rig.h"

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

PART(cmocka_unit_test(debugctl_masks_agree), cmocka_unit_test(debugctl_fits_the_features),
     cmocka_unit_test(debugctl_masks_are_the_measured_ones), cmocka_unit_test(select_masks_are_the_measured_ones),
     cmocka_unit_test(write_rules_are_the_measured_ones), cmocka_unit_test(status_masks_are_the_measured_ones),
     cmocka_unit_test(pmus_make_sense), cmocka_unit_test(pebs_enables_are_the_measured_ones),
     cmocka_unit_test(perf_capabilities_are_the_measured_ones), cmocka_unit_test(perf_capabilities_fit_the_row),
     cmocka_unit_test(classes_fit_the_rows), cmocka_unit_test(warm_reset_follows_the_model),
     cmocka_unit_test(depths_are_known));
