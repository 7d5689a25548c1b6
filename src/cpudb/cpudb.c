/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue's tables, made from the .def files, and lookup of a row: by number, by name, by CPUID.
 */
#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "cpudb/cpudb.h"
#include "cpudb/tables.h"
#include "lastbranch/error.h"

/* The words that rows use for their basis. */
#define MEASURED LB_BASIS_MEASURED
#define DOCUMENTED LB_BASIS_DOCUMENTED
#define INFERRED LB_BASIS_INFERRED

const struct lb_lbr_class cpudb_classes[] = {
#define LB_LBR_CLASS(row, ...) [CLASS_##row] = {.name = #row, __VA_ARGS__},
#include "cpudb/lbr_class.def"
#undef LB_LBR_CLASS
};

#define NO LB_NO_BIT
const struct lb_debugctl cpudb_debugctls[] = {
#define LB_DEBUGCTL_LAYOUT(row, kept_, faults_, lbr, btf, pb0, pb1, pb2, pb3, tr, bts, btint, off_os, off_usr, lbrs,   \
                           perfmon, uncore, smm, rtm, bld, basis_, evidence_)                                          \
  [DEBUGCTL_##row] = {                                                                                                 \
    .name = #row,                                                                                                      \
    .kept = kept_,                                                                                                     \
    .faults = faults_,                                                                                                 \
    .bit = {[LB_DEBUGCTL_LBR] = lbr,                                                                                   \
            [LB_DEBUGCTL_BTF] = btf,                                                                                   \
            [LB_DEBUGCTL_PB0] = pb0,                                                                                   \
            [LB_DEBUGCTL_PB1] = pb1,                                                                                   \
            [LB_DEBUGCTL_PB2] = pb2,                                                                                   \
            [LB_DEBUGCTL_PB3] = pb3,                                                                                   \
            [LB_DEBUGCTL_TR] = tr,                                                                                     \
            [LB_DEBUGCTL_BTS] = bts,                                                                                   \
            [LB_DEBUGCTL_BTINT] = btint,                                                                               \
            [LB_DEBUGCTL_BTS_OFF_OS] = off_os,                                                                         \
            [LB_DEBUGCTL_BTS_OFF_USR] = off_usr,                                                                       \
            [LB_DEBUGCTL_FREEZE_LBRS_ON_PMI] = lbrs,                                                                   \
            [LB_DEBUGCTL_FREEZE_PERFMON_ON_PMI] = perfmon,                                                             \
            [LB_DEBUGCTL_UNCORE_PMI_EN] = uncore,                                                                      \
            [LB_DEBUGCTL_FREEZE_WHILE_SMM_EN] = smm,                                                                   \
            [LB_DEBUGCTL_RTM] = rtm,                                                                                   \
            [LB_DEBUGCTL_BLD] = bld},                                                                                  \
    .basis = LB_BASIS_##basis_,                                                                                        \
    .evidence = evidence_,                                                                                             \
  },
#include "cpudb/debugctl.def"
#undef LB_DEBUGCTL_LAYOUT
};

const struct lb_pmu cpudb_pmus[] = {
#define LB_PMU_ROW(row, ...) [PMU_##row] = {.name = #row, __VA_ARGS__},
#include "cpudb/pmu.def"
#undef LB_PMU_ROW
};

const struct lb_ds cpudb_dss[] = {
#define LB_DS_ROW(row, ...) [DS_##row] = {.name = #row, __VA_ARGS__},
#include "cpudb/ds.def"
#undef LB_DS_ROW
};

/* ---- macros for cpu.def ---- */

#define LBR_CLASS(row) &cpudb_classes[CLASS_##row]
#define DEBUGCTL(row) &cpudb_debugctls[DEBUGCTL_##row]
#define PMU_ROW(row) &cpudb_pmus[PMU_##row]
#define DS_ROW(row) &cpudb_dss[DS_##row]
#define Q(quirk) (1u << LB_QUIRK_##quirk)
#define F(feature) (1u << LB_FEATURE_##feature)
#define FEATURES_64 (F(LONG_MODE) | F(PDCM) | F(LER))
/* Bonnell, Nehalem and later: LBR and TR go together (SDM 17.4.4), a warm reset keeps the stack (table 9-2). */
#define FEATURES_2008 (FEATURES_64 | F(LBR_WITH_TR) | F(WARM_RESET_KEEPS))
/* Skylake, Goldmont and later: a deep C-state may clear the stack (SDM 17.10.3). */
#define FEATURES_2015 (FEATURES_2008 | F(DEEP_C_CLEARS))
/* The small cores have load latency from Gracemont on (inferred). */
#define FEATURES_ARCH (FEATURES_2015 | F(ARCH_LBR) | F(LOAD_LATENCY) | F(NO_ANY_THREAD))
#define FEATURES_AMD64 (F(LONG_MODE) | F(LER))

const struct lb_cpu cpudb_cpus[] = {
#define LB_CPU(row, set, ...) [CPUDB_##row] = {__VA_ARGS__},
#include "cpudb/cpu.def"
#include "cpudb/cpu_amd.def"
#undef LB_CPU
};

static const struct lb_model models[] = {
#define LB_MODEL(vendor_, family_, first, last, first_step, last_step, row, basis_, evidence_)                         \
  {LB_VENDOR_##vendor_,      family_,           first,    last, first_step, last_step,                                 \
   &cpudb_cpus[CPUDB_##row], LB_BASIS_##basis_, evidence_},
#include "cpudb/model.def"
#undef LB_MODEL
};

#define MODELS (sizeof(models) / sizeof(models[0]))

/* ---- by number ---- */

const struct lb_cpu *lb_cpu_at(size_t index)
{
  return index < CPUDB_CPUS ? &cpudb_cpus[index] : NULL;
}

enum cpudb_cpu cpudb_row(const struct lb_cpu *cpu)
{
  assert(cpu >= cpudb_cpus && cpu < cpudb_cpus + CPUDB_CPUS);
  return (enum cpudb_cpu)(cpu - cpudb_cpus);
}

const struct lb_model *lb_model_at(size_t index)
{
  return index < MODELS ? &models[index] : NULL;
}

bool lb_cpu_is_linear(const struct lb_cpu *cpu)
{
  switch (cpu->format) {
  case LB_FORMAT_32:
  case LB_FORMAT_LIP:
  case LB_FORMAT_LIP_CYCLES:
  case LB_FORMAT_LIP_INFO:
  case LB_FORMAT_LINEAR:
    return true;
  case LB_FORMAT_ARCH:
    return cpu->leaf_1c[0] >> 31;
  default: /* AMD too: APM vol. 2, 13.1.6.1. Knights Landing's LBR_FMT, 1, means linear. */
    return lb_cpu_quirk(cpu, LB_QUIRK_KNL_FORMAT);
  }
}

unsigned lb_cpu_pair_format(const struct lb_cpu *cpu)
{
  bool is_plain = cpu->format == LB_FORMAT_AMD_BRS || cpu->format == LB_FORMAT_AMD_V2;

  return is_plain ? LB_FORMAT_AMD : cpu->format;
}

unsigned lb_cpu_depth(const struct lb_cpu *cpu)
{
  unsigned most = 0;

  if (!cpu->lbr)
    return 0;
  if (!lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR))
    return cpu->lbr->depth;
  for (unsigned n = 0; n < 8; n++) /* CPUID.1CH:EAX, bit n: depth 8(n+1) */
    if (cpu->leaf_1c[0] >> n & 1)
      most = 8 * (n + 1);
  return most;
}

/* ---- by CPUID ---- */

#define ANY_STEPPING UINT32_MAX

static bool model_matches(const struct lb_model *model, unsigned vendor, unsigned family, unsigned number,
                          unsigned stepping)
{
  if (model->vendor != vendor || model->family != family || number < model->first_model || number > model->last_model)
    return false;
  return stepping == ANY_STEPPING || (stepping >= model->first_stepping && stepping <= model->last_stepping);
}

static int find_number(unsigned vendor, unsigned family, unsigned number, unsigned stepping,
                       const struct lb_cpu **ret_cpu)
{
  for (size_t i = 0; i < MODELS; i++)
    if (model_matches(&models[i], vendor, family, number, stepping)) {
      *ret_cpu = models[i].cpu;
      return 0;
    }
  return LB_E_NO_CPU;
}

int lb_cpu_find_model(unsigned vendor, unsigned family, unsigned model, unsigned stepping,
                      const struct lb_cpu **ret_cpu)
{
  if (stepping == ANY_STEPPING)
    return LB_E_NO_CPU;
  return find_number(vendor, family, model, stepping, ret_cpu);
}

/* ---- by name ---- */

/* Whether the first word of `list` is `name`. Case is ignored, and so are '-', '_' and, in `name`, ' '. */
static bool word_is(const char *list, const char *name)
{
  for (;; list++, name++) {
    list += strspn(list, "-_");
    name += strspn(name, "-_ ");
    if (!*list || *list == ' ' || !*name)
      return (!*list || *list == ' ') && !*name;
    if (tolower((unsigned char)*list) != tolower((unsigned char)*name))
      return false;
  }
}

static bool list_has(const char *list, const char *name)
{
  while (*list) {
    if (word_is(list, name))
      return true;
    list += strcspn(list, " ");
    list += strspn(list, " ");
  }
  return false;
}

/* Reads one to four hex digits. Returns where they end, or NULL if there are none or too many. */
static const char *hex_read(const char *p, unsigned *ret_value)
{
  unsigned value = 0;
  const char *start = p;

  for (; isxdigit((unsigned char)*p); p++) {
    if (p - start == 4)
      return NULL;
    value = value * 16 + (isdigit((unsigned char)*p) ? (unsigned)(*p - '0') : (unsigned)((*p | 0x20) - 'a' + 10));
  }
  if (p == start)
    return NULL;
  *ret_value = value;
  return p;
}

/* Reads "06_8E" or "06_55_7". Returns whether it is one. */
static bool signature_read(const char *p, unsigned *ret_family, unsigned *ret_model, unsigned *ret_stepping)
{
  unsigned family, model, stepping = ANY_STEPPING;

  p = hex_read(p, &family);
  if (!p || *p++ != '_')
    return false;
  p = hex_read(p, &model);
  if (p && *p == '_')
    p = hex_read(p + 1, &stepping);
  if (!p || *p)
    return false;
  *ret_family = family;
  *ret_model = model;
  *ret_stepping = stepping;
  return true;
}

/* Removes "amd:" from the front of a name. Returns the vendor, LB_VENDORS if none is named, or LB_E_NO_CPU. */
static int vendor_read(const char **name)
{
  const char *colon = strchr(*name, ':');

  if (!colon)
    return LB_VENDORS;
  for (int vendor = 0; vendor < LB_VENDORS; vendor++) {
    const char *word = lb_vendor_name((unsigned)vendor);

    if (strlen(word) == (size_t)(colon - *name) && !strncasecmp(word, *name, strlen(word))) {
      *name = colon + 1;
      return vendor;
    }
  }
  return LB_E_NO_CPU;
}

static int find_signature(const char *name, const struct lb_cpu **ret_cpu)
{
  unsigned family, model, stepping;
  int named = vendor_read(&name);

  if (named < 0 || !signature_read(name, &family, &model, &stepping))
    return LB_E_NO_CPU;
  for (int vendor = 0; vendor < LB_VENDORS; vendor++)
    if ((named == LB_VENDORS || named == vendor) &&
        find_number((unsigned)vendor, family, model, stepping, ret_cpu) == 0)
      return 0;
  return LB_E_NO_CPU;
}

int lb_cpu_find(const char *name, const struct lb_cpu **ret_cpu)
{
  for (size_t i = 0; i < CPUDB_CPUS; i++)
    if (word_is(cpudb_cpus[i].name, name) || list_has(cpudb_cpus[i].aliases, name)) {
      *ret_cpu = &cpudb_cpus[i];
      return 0;
    }
  return find_signature(name, ret_cpu);
}
