/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue's words: names and one-line texts of vendors, formats, DEBUGCTL bits, quirks and features. An invalid
 * number gives "?".
 */
#include "cpudb/cpudb.h"

#define TABLE_GET(table, index) ((index) < sizeof(table) / sizeof((table)[0]) ? (table)[index] : "?")

const char *lb_vendor_name(unsigned vendor)
{
  static const char *const names[LB_VENDORS] = {
    [LB_VENDOR_INTEL] = "Intel",     [LB_VENDOR_AMD] = "AMD",         [LB_VENDOR_HYGON] = "Hygon",
    [LB_VENDOR_CENTAUR] = "Centaur", [LB_VENDOR_ZHAOXIN] = "Zhaoxin",
  };

  return TABLE_GET(names, vendor);
}

/* SDM vol. 3 (June 2016) 17.4.8.1 for formats 0 to 6. */
const char *lb_format_text(unsigned format)
{
  static const char *const texts[LB_FORMATS] = {
    [LB_FORMAT_32] = "one register: FROM in 31:0, TO in 63:32, linear addresses",
    [LB_FORMAT_LIP] = "64-bit linear addresses, no flags",
    [LB_FORMAT_EIP] = "64-bit offsets in CS, no flags",
    [LB_FORMAT_EIP_FLAGS] = "offsets in CS; FROM[63] mispredicted",
    [LB_FORMAT_EIP_TSX] = "offsets in CS; FROM[63:61] mispredicted, in a transaction, abort",
    [LB_FORMAT_INFO] = "offsets in CS; flags and cycles in the INFO register",
    [LB_FORMAT_LIP_CYCLES] = "linear addresses; FROM[63] mispredicted, TO[63:48] cycles",
    [LB_FORMAT_LIP_INFO] = "linear addresses; flags and cycles in the INFO register",
    [LB_FORMAT_OFFSET32] = "32-bit offsets in CS, no flags",
    [LB_FORMAT_LINEAR] = "linear addresses, 63:32 zero outside IA-32e mode",
    [LB_FORMAT_ARCH] = "architectural: addresses; type, flags and cycles in the INFO register",
    [LB_FORMAT_AMD] = "64-bit addresses, no flags",
    [LB_FORMAT_AMD_BRS] = "64-bit addresses, no flags; TO[63:61] reserved",
    [LB_FORMAT_AMD_V2] = "58-bit addresses; FROM[63] mispredicted, TO[63:62] valid, speculative",
  };

  return TABLE_GET(texts, format);
}

const char *lb_pebs_text(unsigned pebs)
{
  static const char *const texts[] = {
    [LB_PEBS_0] = "format 0: 144 bytes, flags and registers",
    [LB_PEBS_1] = "format 1: 176 bytes, adds status, data address, source and latency",
    [LB_PEBS_2] = "format 2: 192 bytes, adds the eventing IP and TSX information",
    [LB_PEBS_3] = "format 3: 200 bytes, adds the time stamp",
    [LB_PEBS_4] = "format 4: adaptive, groups chosen by MSR_PEBS_DATA_CFG",
    [LB_PEBS_5] = "format 5: adaptive, with resets for 32 general and 16 fixed counters",
    [LB_PEBS_6] = "format 6: as format 5, with a group of counters",
    [LB_PEBS_P4] = "Pentium 4: 40 bytes, flags and 32-bit registers",
    [LB_PEBS_NONE] = "none",
  };

  return TABLE_GET(texts, pebs);
}

const char *lb_basis_name(unsigned basis)
{
  static const char *const names[LB_BASES] = {
    [LB_BASIS_MEASURED] = "measured",
    [LB_BASIS_DOCUMENTED] = "documented",
    [LB_BASIS_INFERRED] = "inferred",
  };

  return basis < LB_BASES ? names[basis] : NULL;
}

size_t lb_pebs_size(unsigned pebs)
{
  switch (pebs) {
  case LB_PEBS_0:
    return 144;
  case LB_PEBS_1:
    return 176;
  case LB_PEBS_2:
    return 192;
  case LB_PEBS_3:
    return 200;
  case LB_PEBS_P4:
    return 40;
  default:
    return 0;
  }
}

const char *lb_debugctl_bit_name(unsigned bit)
{
  static const char *const names[] = {
#define LB_DEBUGCTL_BIT(name, meaning) #name,
#include "lastbranch/debugctl_bit.def"
#undef LB_DEBUGCTL_BIT
  };

  return TABLE_GET(names, bit);
}

const char *lb_debugctl_bit_text(unsigned bit)
{
  static const char *const texts[] = {
#define LB_DEBUGCTL_BIT(name, meaning) meaning,
#include "lastbranch/debugctl_bit.def"
#undef LB_DEBUGCTL_BIT
  };

  return TABLE_GET(texts, bit);
}

static const struct {
  const char *name, *id;
  bool is_modelled;
  const char *text;
  uint8_t basis;
  const char *evidence;
} quirks[LB_QUIRKS] = {
#define LB_QUIRK(name_, id_, modelled, text_, basis_, evidence_)                                                       \
  {#name_, id_, modelled, text_, LB_BASIS_##basis_, evidence_},
#include "lastbranch/quirk.def"
#undef LB_QUIRK
};

const char *lb_quirk_name(unsigned quirk)
{
  return quirk < LB_QUIRKS ? quirks[quirk].name : "?";
}

const char *lb_quirk_id(unsigned quirk)
{
  return quirk < LB_QUIRKS ? quirks[quirk].id : "?";
}

const char *lb_quirk_text(unsigned quirk)
{
  return quirk < LB_QUIRKS ? quirks[quirk].text : "?";
}

unsigned lb_quirk_basis(unsigned quirk)
{
  return quirk < LB_QUIRKS ? quirks[quirk].basis : LB_BASIS_NONE;
}

const char *lb_quirk_evidence(unsigned quirk)
{
  return quirk < LB_QUIRKS ? quirks[quirk].evidence : "?";
}

bool lb_quirk_is_modelled(unsigned quirk)
{
  return quirk < LB_QUIRKS && quirks[quirk].is_modelled;
}

const char *lb_feature_name(unsigned feature)
{
  static const char *const names[] = {
#define LB_FEATURE(name, text) #name,
#include "lastbranch/feature.def"
#undef LB_FEATURE
  };

  return TABLE_GET(names, feature);
}

const char *lb_feature_text(unsigned feature)
{
  static const char *const texts[] = {
#define LB_FEATURE(name, text) text,
#include "lastbranch/feature.def"
#undef LB_FEATURE
  };

  return TABLE_GET(texts, feature);
}
