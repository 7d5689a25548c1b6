/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue's CPUID bits against dumps of real processors; its texts.
 */
#include "cpudb_rig.h"

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

PART(cmocka_unit_test(cpuid_is_the_dumped_one), cmocka_unit_test(cpuid_owns_its_bits_only),
     cmocka_unit_test(texts_are_there), cmocka_unit_test(pebs_sizes_are_the_manual_s));
