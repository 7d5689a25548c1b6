/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a register on one CPU, for decoding and for help. debugctl.def has the layout of DEBUGCTL, field.def
 * that of every other register.
 */
#include "cpudb/cpudb.h"
#include "cpudb/expression.h"
#include "lastbranch/error.h"

/* DEBUGCTL: the named bits in the order of their positions. */
static int debugctl_field(const struct lb_cpu *cpu, unsigned index, struct lb_field *ret_field)
{
  for (unsigned place = 0; place < 64; place++)
    for (unsigned bit = 0; bit < LB_DEBUGCTL_BITS; bit++)
      if (cpu->debugctl->bit[bit] == place && index-- == 0) {
        *ret_field = (struct lb_field){
          .name = lb_debugctl_bit_name(bit),
          .meaning = lb_debugctl_bit_text(bit),
          .high = (uint8_t)place,
          .low = (uint8_t)place,
        };
        return 0;
      }
  return LB_E_NO_FIELD;
}

/* The register under which field.def has the layout of `id`. */
static enum lb_register layout_register(enum lb_register id)
{
  switch (id) {
  case LB_REG_LAST_FROM:
  case LB_REG_LER_FROM:
    return LB_REG_LBR_FROM;
  case LB_REG_LAST_TO:
  case LB_REG_LER_TO:
    return LB_REG_LBR_TO;
  case LB_REG_LER_INFO:
    return LB_REG_LBR_INFO;
  case LB_REG_A_PMC:
  case LB_REG_GP_CTR:
  case LB_REG_RELOAD_PMC:
  case LB_REG_P4_COUNTER:
  case LB_REG_K7_PERFCTR:
  case LB_REG_AMD_PERF_CTR:
    return LB_REG_PMC;
  case LB_REG_FX_CTR:
  case LB_REG_RELOAD_FIXED:
    return LB_REG_FIXED_CTR;
  case LB_REG_GP_CFG_A:
    return LB_REG_PERFEVTSEL;
  case LB_REG_GLOBAL_OVF_CTRL:
  case LB_REG_GLOBAL_STATUS_SET:
    return LB_REG_GLOBAL_STATUS;
  case LB_REG_P4_CRU_ESCR:
  case LB_REG_P4_CRU_ESCR2:
    return LB_REG_P4_FSB_ESCR;
  case LB_REG_AMD_PERF_CTL:
    return LB_REG_K7_EVNTSEL;
  case LB_REG_AMD_GLOBAL_CLR:
  case LB_REG_AMD_GLOBAL_SET:
    return LB_REG_AMD_GLOBAL_STATUS;
  default:
    return id;
  }
}

/* The format of a register's addresses. */
static unsigned address_format(const struct lb_cpu *cpu, enum lb_register id)
{
  bool is_stack = id == LB_REG_LBR_FROM || id == LB_REG_LBR_TO;

  return is_stack ? cpu->format : lb_cpu_pair_format(cpu);
}

static unsigned highest_bit(unsigned value)
{
  unsigned bit = 0;

  while (value >>= 1)
    bit++;
  return bit;
}

/* ---- macros for field.def ---- */

#define FORMAT(f) (format == LB_FORMAT_##f)
#define WHOLE_ADDRESS (FORMAT(LIP) || FORMAT(EIP) || FORMAT(LINEAR) || FORMAT(ARCH) || FORMAT(AMD))
#define SHORT_ADDRESS (FORMAT(EIP_FLAGS) || FORMAT(EIP_TSX) || FORMAT(INFO) || FORMAT(LIP_CYCLES) || FORMAT(LIP_INFO))
#define SELECTS(bit) ((LBR(select_mask) >> (bit)&1) != 0)
#define LEAF_1C(reg, bit) ((cpu->leaf_1c[reg] >> (bit)&1) != 0)
#define PEBS_BIT(bit) ((cpu->pmu->pebs_enable >> (bit)&1) != 0)
#define EVTSEL(bit) ((cpu->pmu->evtsel >> (bit)&1) != 0)
#define PEBS_6 (cpu->ds->pebs == LB_PEBS_6)
#define STATUS(bit) ((cpu->pmu->status_clear >> (bit)&1) != 0)

#define LB_FIELDS(id_)                                                                                                 \
  break;                                                                                                               \
  case LB_REG_##id_:
#define LB_FIELD(condition, high_, low_, name_, meaning_)                                                              \
  if ((condition) && index-- == 0) {                                                                                   \
    *ret_field = (struct lb_field){name_, meaning_, (uint8_t)(high_), (uint8_t)(low_)};                                \
    return 0;                                                                                                          \
  }
#define LB_FIELD_NTH(n, count, low, name, meaning)                                                                     \
  LB_FIELD((unsigned)(count) > (n), (low) + (n), (low) + (n), name #n, meaning " " #n)
#define LB_FIELD_EACH(count, low, name, meaning)                                                                       \
  LB_FIELD_NTH(0, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(1, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(2, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(3, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(4, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(5, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(6, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(7, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(8, count, low, name, meaning)                                                                           \
  LB_FIELD_NTH(9, count, low, name, meaning)
#define HAS_FIXED(n) (FIXED > (n) && !(cpu->pmu->fixed_absent >> (n)&1))
#define LB_FIELD_NTH_FIXED(n, low, name, meaning)                                                                      \
  LB_FIELD(HAS_FIXED(n), (low) + (n), (low) + (n), name #n, meaning " " #n)
#define LB_FIELD_EACH_FIXED(low, name, meaning)                                                                        \
  LB_FIELD_NTH_FIXED(0, low, name, meaning)                                                                            \
  LB_FIELD_NTH_FIXED(1, low, name, meaning)                                                                            \
  LB_FIELD_NTH_FIXED(2, low, name, meaning)                                                                            \
  LB_FIELD_NTH_FIXED(3, low, name, meaning)                                                                            \
  LB_FIELD_NTH_FIXED(4, low, name, meaning)                                                                            \
  LB_FIELD_NTH_FIXED(5, low, name, meaning)                                                                            \
  LB_FIELD_NTH_FIXED(6, low, name, meaning)
#define LB_FIELD_FIXED(n)                                                                                              \
  LB_FIELD(HAS_FIXED(n), 4 * (n), 4 * (n), "EN" #n "_OS", "fixed counter " #n " counts at CPL 0")                      \
  LB_FIELD(HAS_FIXED(n), 4 * (n) + 1, 4 * (n) + 1, "EN" #n "_USR", "fixed counter " #n " counts at CPL 1 to 3")        \
  LB_FIELD(HAS_FIXED(n) && VERSION >= 3 && !HAS(NO_ANY_THREAD), 4 * (n) + 2, 4 * (n) + 2, "ANY" #n,                    \
           "fixed counter " #n " counts for both threads of the core")                                                 \
  LB_FIELD(HAS_FIXED(n), 4 * (n) + 3, 4 * (n) + 3, "PMI" #n, "fixed counter " #n " requests a PMI on overflow")

int lb_cpu_field(const struct lb_cpu *cpu, enum lb_register id, unsigned index, struct lb_field *ret_field)
{
  unsigned format = address_format(cpu, id);
  bool is_linear = lb_cpu_is_linear(cpu);
  const char *from_meaning =
    is_linear ? "where the branch came from: linear address" : "where the branch came from: offset in CS";
  const char *to_meaning = is_linear ? "where it went: linear address" : "where it went: offset in CS";

  if (!lb_cpu_register(cpu, id).count)
    return LB_E_NO_FIELD;
  switch (layout_register(id)) {
  case LB_REG_DEBUGCTL:
    return debugctl_field(cpu, index, ret_field);
  default:
#include "cpudb/field.def"
  }
  return LB_E_NO_FIELD;
}
