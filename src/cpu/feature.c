/* SPDX-License-Identifier: Apache-2.0
 *
 * The features of a CPU, and the instructions that it supports because of them. feature.def says which generation has
 * which feature, isa_set.def which instructions need it. A feature that the interpreter or the host lacks is never
 * reported.
 */
#include "cpu/control.h"
#include "cpu/generation.h"

_Static_assert(CPU_FEATURES <= 64 * CPU_FEATURE_WORDS, "every feature has a bit of struct cpu_features");

/* ---- features of a CPU ---- */

/* The mnemonics for which there is a handler. */
static const bool is_known[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
  [ZYDIS_MNEMONIC_INVALID] = true,
#define INSTRUCTION(name, function) [ZYDIS_MNEMONIC_##name] = true,
#define INSTRUCTION_FORMS(name, function) [ZYDIS_MNEMONIC_##name] = true,
#include "cpu/instruction.def"
#undef INSTRUCTION
#undef INSTRUCTION_FORMS
};

#define SINCE(row, name) generation_is_since(row, GENERATION_##name)
#define IS(row, name) ((row) == GENERATION_##name)
#define LONG_MODE(model) lb_cpu_has(model, LB_FEATURE_LONG_MODE)
#define HOST(name) (__builtin_cpu_supports(name) != 0)
#define OFF(rule) ((rule) && false)

struct cpu_features system_features(const struct lb_cpu *model)
{
  enum generation_row row = generation_find(model);
  struct cpu_features features = {0};

  __builtin_cpu_init();
#define CPU_FEATURE(name, leaf, subleaf, reg, bit, flag, mnemonic, rule)                                               \
  if ((rule) && is_known[ZYDIS_MNEMONIC_##mnemonic])                                                                   \
    features.words[FEATURE_##name / 64] |= UINT64_C(1) << FEATURE_##name % 64;
#include "cpu/feature.def"
#undef CPU_FEATURE
  return features;
}

/* ---- instructions that they provide ---- */

enum { SET_NEVER, SET_ALWAYS, SET_FEATURE }; /* SET_FEATURE + enum cpu_feature */

static const uint8_t sets[ZYDIS_ISA_SET_MAX_VALUE + 1] = {
#define ISA_SET(set, feature) [ZYDIS_ISA_SET_##set] = SET_FEATURE + FEATURE_##feature,
#define ISA_SET_ALWAYS(set) [ZYDIS_ISA_SET_##set] = SET_ALWAYS,
#include "cpu/isa_set.def"
#undef ISA_SET
#undef ISA_SET_ALWAYS
};

ZydisMnemonic system_mnemonic(const struct cpu *cpu, ZydisMnemonic mnemonic)
{
  switch (mnemonic) {
  case ZYDIS_MNEMONIC_TZCNT: /* a CPU without it ignores the prefix */
    return system_has(cpu, FEATURE_BMI1) ? mnemonic : ZYDIS_MNEMONIC_BSF;
  case ZYDIS_MNEMONIC_LZCNT:
    return system_has(cpu, FEATURE_LZCNT) ? mnemonic : ZYDIS_MNEMONIC_BSR;
  case ZYDIS_MNEMONIC_ENDBR32: /* encodings of NOPs with an operand, 0F 18 to 0F 1F, if the feature is missing */
  case ZYDIS_MNEMONIC_ENDBR64:
  case ZYDIS_MNEMONIC_RDSSPD:
  case ZYDIS_MNEMONIC_RDSSPQ:
  case ZYDIS_MNEMONIC_CLDEMOTE:
  case ZYDIS_MNEMONIC_BNDMK:
  case ZYDIS_MNEMONIC_BNDCL:
  case ZYDIS_MNEMONIC_BNDCU:
  case ZYDIS_MNEMONIC_BNDCN:
  case ZYDIS_MNEMONIC_BNDMOV:
  case ZYDIS_MNEMONIC_BNDLDX:
  case ZYDIS_MNEMONIC_BNDSTX:
    return ZYDIS_MNEMONIC_NOP;
  default:
    return mnemonic;
  }
}

bool system_allows(const struct cpu *cpu, const struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *code = &instruction->code;
  bool is_64 = code->machine_mode == ZYDIS_MACHINE_MODE_LONG_64;
  if (system_mnemonic(cpu, code->mnemonic) != code->mnemonic)
    return true;
  switch (code->mnemonic) {
  case ZYDIS_MNEMONIC_SYSCALL:
  case ZYDIS_MNEMONIC_SYSRET:
    return system_has(cpu, FEATURE_SYSCALL);
  case ZYDIS_MNEMONIC_SYSENTER:
  case ZYDIS_MNEMONIC_SYSEXIT:
    return system_has(cpu, FEATURE_SEP);
  case ZYDIS_MNEMONIC_LAHF:
  case ZYDIS_MNEMONIC_SAHF:
    return !is_64 || system_has(cpu, FEATURE_LAHF64);
  case ZYDIS_MNEMONIC_PREFETCH: /* CPUs with 64-bit mode have them as NOPs: SDM vol. 2, PREFETCHW */
  case ZYDIS_MNEMONIC_PREFETCHW:
  case ZYDIS_MNEMONIC_PREFETCHWT1:
    return system_has(cpu, FEATURE_PREFETCHW) || system_has(cpu, FEATURE_LM);
  default:
    break;
  }
  unsigned set = sets[code->meta.isa_set];
  return set == SET_ALWAYS || (set >= SET_FEATURE && system_has(cpu, (enum cpu_feature)(set - SET_FEATURE)));
}
