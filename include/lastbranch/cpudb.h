/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue: the abilities of each processor's branch-recording unit. Everything is constant data, made from the
 * .def files of src/cpudb, which give the evidence beside each number. Bit numbers are those of the manuals.
 */
#ifndef LASTBRANCH_CPUDB_H
#define LASTBRANCH_CPUDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How well something is known. A row of several values has the word of the least certain one; its evidence says more.
 * Measured: seen on silicon (an MSR tried bit by bit, a CPUID dump, a boot message, a published experiment).
 * Documented: a manual says it, a vendor's engineer, or the driver that the vendor wrote.
 * Inferred: concluded from relatives, or a choice where sources are silent. */
enum lb_basis { LB_BASIS_NONE, LB_BASIS_MEASURED, LB_BASIS_DOCUMENTED, LB_BASIS_INFERRED, LB_BASES };
const char *lb_basis_name(unsigned basis); /* "measured", "documented", "inferred"; NULL for any other number */

enum lb_vendor { LB_VENDOR_INTEL, LB_VENDOR_AMD, LB_VENDOR_HYGON, LB_VENDOR_CENTAUR, LB_VENDOR_ZHAOXIN, LB_VENDORS };

/* The layout of a record in its registers. 0 to 7 are IA32_PERF_CAPABILITIES.LBR_FMT. */
enum lb_format {
  LB_FORMAT_32 = 0,         /* one register: 31:0 FROM, 63:32 TO, linear */
  LB_FORMAT_LIP = 1,        /* 64-bit linear addresses */
  LB_FORMAT_EIP = 2,        /* 64-bit offsets in CS */
  LB_FORMAT_EIP_FLAGS = 3,  /* offset; FROM[63] MISPRED */
  LB_FORMAT_EIP_TSX = 4,    /* offset; FROM[63:61] MISPRED, IN_TSX, TSX_ABORT */
  LB_FORMAT_INFO = 5,       /* offset; flags and cycles in the INFO register */
  LB_FORMAT_LIP_CYCLES = 6, /* linear; FROM[63] MISPRED; TO[63:48] cycles */
  LB_FORMAT_LIP_INFO = 7,   /* linear; flags and cycles in the INFO register */
  LB_FORMAT_OFFSET32,       /* P6: 32-bit offset in CS, two registers */
  LB_FORMAT_LINEAR,         /* Pentium 4 model 3+: linear, 63:32 zero outside IA-32e mode */
  LB_FORMAT_ARCH,           /* architectural LBR */
  LB_FORMAT_AMD,            /* K7 to Zen 2: 64-bit address, nothing else */
  LB_FORMAT_AMD_BRS,        /* Zen 3 branch sampling */
  LB_FORMAT_AMD_V2,         /* Zen 4+: FROM[63] mispredict, TO[63:62] VALID, SPEC */
  LB_FORMATS,
};

/* What WRMSR may do to FROM, TO and INFO registers. */
enum lb_write_rule {
  LB_WRITE_NEVER,     /* read-only: #GP */
  LB_WRITE_FREE,      /* every bit is kept */
  LB_WRITE_CANONICAL, /* #GP unless the address part is sign-extended */
  LB_WRITE_FORCED,    /* never faults; the address is made canonical */
};

/* A register-layout class: which registers make up the LBR stack. An address of 0 means that there is none. */
struct lb_lbr_class {
  const char *name;
  uint8_t depth;        /* entries; for ARCH the largest */
  uint8_t stride;       /* MSR distance between entries */
  bool is_combined;     /* FROM and TO share one register */
  bool is_newest_first; /* entry 0 is the newest record; there is no TOS */
  uint8_t write_rule;   /* enum lb_write_rule for FROM, TO, INFO */
  bool ler_is_writable;
  bool tos_is_writable;
  bool tos_excess_faults;  /* WRMSR of bits above the TOS field: #GP (else ignored) */
  uint32_t from, to, info; /* MSR of entry 0 */
  uint32_t tos;
  uint32_t select;                 /* MSR_LBR_SELECT, or AMD's */
  uint32_t select_mask;            /* bits that are kept */
  uint64_t select_ignored;         /* bits that WRMSR ignores; all others #GP */
  uint32_t mirror_from, mirror_to; /* read-only copies of the newest record; AMD Zen 3+: the classic pair */
  uint32_t ler_from, ler_to, ler_info;
  uint8_t basis; /* enum lb_basis */
  const char *evidence;
};

/* Bit positions in DEBUGCTL; LB_NO_BIT where the generation lacks one. */
#define LB_NO_BIT 0xFF
enum lb_debugctl_bit {
#define LB_DEBUGCTL_BIT(name, meaning) LB_DEBUGCTL_##name,
#include "lastbranch/debugctl_bit.def"
#undef LB_DEBUGCTL_BIT
  LB_DEBUGCTL_BITS,
};

struct lb_debugctl {
  const char *name;
  uint64_t kept;   /* bits that stick */
  uint64_t faults; /* bits that give #GP when set; the rest are ignored and read 0 */
  uint8_t bit[LB_DEBUGCTL_BITS];
  uint8_t basis; /* enum lb_basis */
  const char *evidence;
};

enum lb_pmu_kind { LB_PMU_NONE, LB_PMU_P6, LB_PMU_P4, LB_PMU_ARCH, LB_PMU_AMD, LB_PMU_AMD_V2 };

struct lb_pmu {
  const char *name;
  uint8_t kind;     /* enum lb_pmu_kind */
  uint8_t version;  /* architectural perfmon version, 0 if none */
  uint8_t counters; /* general-purpose */
  uint8_t width;    /* bits of a general counter */
  uint8_t fixed;    /* fixed-function counters: the highest number plus 1 */
  uint8_t fixed_width;
  uint8_t fixed_absent;  /* bit n: there is no fixed counter n, although n is below `fixed` */
  uint8_t leaf_counters; /* what CPUID.0AH:EAX[15:8] says where CPUID.23H names more counters; 0: the same number */
  uint8_t leaf_fixed;    /* what CPUID.0AH:EDX[4:0] says there */
  bool has_leaf_23;      /* CPUID.23H names the counters one by one */
  uint8_t pebs_counters; /* how many of the general counters can write PEBS records */
  uint8_t events;        /* length of the CPUID.0AH:EBX vector */
  uint32_t absent;       /* CPUID.0AH:EBX: 1 = this architectural event is missing */
  uint64_t evtsel;       /* bits of an event select, without those that other features add */
  uint64_t pebs_enable;  /* bits of IA32_PEBS_ENABLE that may be 1 */
  bool evtsel_is_lax;    /* WRMSR ignores reserved bits of event selects instead of #GP */
  bool fixed_is_lax;     /* the same for FIXED_CTRn and FIXED_CTR_CTRL */
  bool pebs_is_lax;      /* the same for PEBS_ENABLE */
  uint64_t status_clear; /* bits that a write of GLOBAL_OVF_CTRL accepts */
  uint8_t basis;         /* enum lb_basis */
  const char *evidence;
};

/* Sums that a counter may count: fields of struct lb_progress. */
enum lb_sum {
  LB_SUM_NONE,
  LB_SUM_CYCLES,
  LB_SUM_INSTRUCTIONS,
  LB_SUM_REFERENCE_CYCLES,
  LB_SUM_BRANCHES,
  LB_SUM_TAKEN_BRANCHES,
  LB_SUM_MISPREDICTS,
  LB_SUM_CACHE_REFERENCES,
  LB_SUM_CACHE_MISSES,
  LB_SUM_SLOTS,
  LB_SUM_LBR_INSERTS,
  LB_SUMS,
};

/* A counter event that the model counts: the sum, and the branches with these outcomes. */
struct lb_pmu_event {
  const char *name;  /* "BR_INST_RETIRED.NEAR_TAKEN" */
  uint16_t select;   /* event select; bits 11:8 are AMD's PERFEVTSEL[35:32] */
  uint8_t mask;      /* unit mask, */
  uint8_t mask_2;    /* and its second part: PERFEVTSEL[47:40] of version 6 */
  bool has_mask;     /* false: the event has no unit masks, and the field is ignored */
  bool is_precise;   /* PEBS works with it on this CPU; only lb_cpu_event says so */
  uint8_t sum;       /* enum lb_sum */
  uint32_t outcomes; /* bit per enum lb_outcome; 15:0 predicted branches, 31:16 mispredicted ones */
};

/* What an event select register says, as the manuals of its vendor write it. */
struct lb_event_code {
  uint16_t select;
  uint8_t mask, mask_2;
};

/* Records of the PEBS buffer; the numbers are IA32_PERF_CAPABILITIES.PEBS_FMT. */
enum lb_pebs {
  LB_PEBS_0,
  LB_PEBS_1,
  LB_PEBS_2,
  LB_PEBS_3,
  LB_PEBS_4,
  LB_PEBS_5,
  LB_PEBS_6,
  LB_PEBS_P4,
  LB_PEBS_NONE,
};

struct lb_ds {
  const char *name;
  bool has_bts;
  bool is_64;         /* DTES64: 64-bit layout in every mode */
  bool has_cpl;       /* DS-CPL: BTS_OFF_OS, BTS_OFF_USR */
  bool has_predicted; /* bit 4 of a BTS record's flags is implemented */
  bool area_is_32;    /* DS_AREA ignores bits 63:32 */
  uint8_t pebs;       /* enum lb_pebs */
  uint8_t basis;      /* enum lb_basis */
  const char *evidence;
};

/* Differences and errata by name: one bit each. */
enum lb_quirk {
#define LB_QUIRK(name, id, modelled, text, basis, evidence) LB_QUIRK_##name,
#include "lastbranch/quirk.def"
#undef LB_QUIRK
  LB_QUIRKS,
};

enum lb_feature {
#define LB_FEATURE(name, text) LB_FEATURE_##name,
#include "lastbranch/feature.def"
#undef LB_FEATURE
  LB_FEATURES,
};

/* One row of the catalogue: a microarchitecture. */
struct lb_cpu {
  const char *name;               /* as on the command line: "westmere" */
  const char *title;              /* "Intel Westmere" */
  const char *aliases;            /* separated by blanks, "" if none */
  uint8_t vendor;                 /* enum lb_vendor */
  uint8_t format;                 /* enum lb_format: the real layout of records */
  int8_t lbr_fmt;                 /* LBR_FMT as reported; -1: no PERF_CAPABILITIES */
  const struct lb_lbr_class *lbr; /* NULL: no branch records at all */
  const struct lb_debugctl *debugctl;
  const struct lb_pmu *pmu;
  const struct lb_ds *ds;
  uint32_t perf_capabilities; /* 0 if there is none */
  uint32_t quirks;            /* bits 1 << enum lb_quirk */
  uint32_t features;          /* bits 1 << enum lb_feature */
  uint32_t leaf_1c[3];        /* CPUID.1CH:EAX, EBX, ECX; zero if not architectural */
  uint8_t basis;              /* enum lb_basis */
  const char *evidence;
};

/* One family/model/stepping range that belongs to a row. */
struct lb_model {
  uint8_t vendor;
  uint16_t family, first_model, last_model;
  uint8_t first_stepping, last_stepping;
  const struct lb_cpu *cpu;
  uint8_t basis; /* enum lb_basis */
  const char *evidence;
};

static inline bool lb_cpu_has(const struct lb_cpu *cpu, enum lb_feature feature)
{
  return (cpu->features >> feature) & 1;
}

static inline bool lb_cpu_quirk(const struct lb_cpu *cpu, enum lb_quirk quirk)
{
  return (cpu->quirks >> quirk) & 1;
}

/* Mask of a DEBUGCTL bit on this CPU, 0 where it has none. */
static inline uint64_t lb_cpu_debugctl(const struct lb_cpu *cpu, enum lb_debugctl_bit bit)
{
  return cpu->debugctl->bit[bit] == LB_NO_BIT ? 0 : UINT64_C(1) << cpu->debugctl->bit[bit];
}

/* Entries of the LBR stack; for architectural LBR the largest that CPUID.1CH allows. 0: no stack. */
unsigned lb_cpu_depth(const struct lb_cpu *cpu);

/* True when its branch records hold linear addresses, false when they hold offsets in the code segment. */
bool lb_cpu_is_linear(const struct lb_cpu *cpu);

/* enum lb_format of the registers beside the stack: last exception, and the mirrors or the classic pair. As the
 * stack's, except that AMD keeps plain addresses there. */
unsigned lb_cpu_pair_format(const struct lb_cpu *cpu);

/* Rows 0, 1, ... of the catalogue, oldest first by vendor; NULL past the end. */
const struct lb_cpu *lb_cpu_at(size_t index);

/* Models 0, 1, ...; NULL past the end. */
const struct lb_model *lb_model_at(size_t index);

/* A CPU by name, alias (any case; '-', '_' and ' ' do not count) or by "06_8E" (DisplayFamily_DisplayModel, Intel
 * first; "amd:19_21" names the vendor; "06_55_7" a stepping too).
 * Returns 0, or LB_E_NO_CPU.
 */
int lb_cpu_find(const char *name, const struct lb_cpu **ret_cpu);

/* A CPU by the values of CPUID. `vendor` is an enum lb_vendor; family and model as DisplayFamily and DisplayModel.
 * Returns 0, or LB_E_NO_CPU. */
int lb_cpu_find_model(unsigned vendor, unsigned family, unsigned model, unsigned stepping,
                      const struct lb_cpu **ret_cpu);

const char *lb_vendor_name(unsigned vendor);
const char *lb_format_text(unsigned format); /* one line that describes the layout */
const char *lb_pebs_text(unsigned pebs);
size_t lb_pebs_size(unsigned pebs); /* bytes of a record; 0: none, or variable */
const char *lb_debugctl_bit_name(unsigned bit);
const char *lb_debugctl_bit_text(unsigned bit);
const char *lb_quirk_name(unsigned quirk); /* "NHM_SELECT" */
const char *lb_quirk_id(unsigned quirk); /* the erratum's number, or the generation that it belongs to: "AJ69", "NHM" */
const char *lb_quirk_text(unsigned quirk);
unsigned lb_quirk_basis(unsigned quirk); /* enum lb_basis */
const char *lb_quirk_evidence(unsigned quirk);
bool lb_quirk_is_modelled(unsigned quirk);     /* false: named, but the recorder does not model it */
const char *lb_feature_name(unsigned feature); /* "TSX" */
const char *lb_feature_text(unsigned feature);

/* The registers of the machinery. One id may stand for a run of them (FROM 0 to 15). */
enum lb_register {
#define LB_REGISTER(id, name, first, count, stride, text) LB_REG_##id,
#include "lastbranch/register.def"
#undef LB_REGISTER
  LB_REGISTERS,
};

struct lb_register_range {
  uint32_t first; /* MSR address of number 0; count 0: this CPU has none */
  uint32_t count;
  uint32_t stride;
};

/* Where the registers of this id are on this CPU. */
struct lb_register_range lb_cpu_register(const struct lb_cpu *cpu, enum lb_register id);

/* Which register has this address. Returns the enum lb_register and sets the number within its run, or
 * LB_E_NO_REGISTER. */
int lb_cpu_register_at(const struct lb_cpu *cpu, uint32_t msr, unsigned *ret_number);

/* A register by name, in the manual's spelling (with or without IA32_ or MSR_, any case: "debugctl",
 * "MSR_LASTBRANCH_3_FROM_IP", "from_3", "pmc0") or address ("0x1d9"). Returns the id and number, or LB_E_NO_REGISTER.
 */
int lb_cpu_register_find(const struct lb_cpu *cpu, const char *name, unsigned *ret_number);

/* Writes the name of number `number` of a register, as this CPU's manual has it. Always terminated; returns the length
 * it has in full. */
int lb_cpu_register_name(const struct lb_cpu *cpu, enum lb_register id, unsigned number, char *buffer, size_t size);

/* What a register is for, in a few words. */
const char *lb_register_text(enum lb_register id);

/* A field of a register as it is laid out on one CPU. */
struct lb_field {
  const char *name;    /* "FREEZE_LBRS_ON_PMI" */
  const char *meaning; /* of the field; for flags, of 1 */
  uint8_t high, low;   /* bits high:low */
};

/* Field 0, 1, ... of a register on this CPU, lowest bit first. Returns 0, or LB_E_NO_FIELD past the last one. */
int lb_cpu_field(const struct lb_cpu *cpu, enum lb_register id, unsigned index, struct lb_field *ret_field);

/* Event 0, 1, ... that the model counts on this CPU. Returns 0, or LB_E_NO_FIELD past the last one. The Pentium 4 has
 * none here: its counters are programmed by two registers each. */
int lb_cpu_event(const struct lb_cpu *cpu, unsigned index, struct lb_pmu_event *ret_event);

/* The event that this value of an event select register counts; NULL when the model does not count it. Event 0 is none.
 */
const struct lb_pmu_event *lb_cpu_event_find(const struct lb_cpu *cpu, uint64_t select);
struct lb_event_code lb_cpu_event_code(const struct lb_cpu *cpu, uint64_t select);

/* Where the list of events comes from. */
const char *lb_cpu_event_source(const struct lb_cpu *cpu);

/* CPUID as the CPU reports it for this machinery. `mask` holds the bits that belong to it: an emulator merges
 * (its & ~mask) | value. Leaves 1, 7, 0xA, 0x1C, 0x23, 0x80000008, 0x80000022; on any other both are 0.
 */
struct lb_cpuid {
  uint32_t value[4]; /* EAX, EBX, ECX, EDX */
  uint32_t mask[4];
};

struct lb_cpuid lb_cpu_cpuid(const struct lb_cpu *cpu, uint32_t leaf, uint32_t subleaf);

#ifdef __cplusplus
}
#endif
#endif
