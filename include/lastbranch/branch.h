/* SPDX-License-Identifier: Apache-2.0
 *
 * A branch: the value that all parts of this library exchange. Producers (an emulator, a traced process, real hardware)
 * make branches; the recorder keeps them as a given CPU would. Read this header first.
 */
#ifndef LASTBRANCH_BRANCH_H
#define LASTBRANCH_BRANCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum lb_branch_kind {
#define LB_BRANCH_KIND(name, word, class, is_event) LB_BRANCH_##name,
#include "lastbranch/branch_kind.def"
#undef LB_BRANCH_KIND
  LB_BRANCH_KINDS, /* how many there are; also "kind not known" */
};

/* The classes of branches that a branch filter distinguishes. The order is that of MSR_LBR_SELECT's bits 2 to 8. */
enum lb_branch_class {
  LB_CLASS_JCC,
  LB_CLASS_NEAR_REL_CALL,
  LB_CLASS_NEAR_IND_CALL,
  LB_CLASS_NEAR_RET,
  LB_CLASS_NEAR_IND_JMP,
  LB_CLASS_NEAR_REL_JMP,
  LB_CLASS_FAR,
};

/* The outcome of a retired branch, as performance counters distinguish branches. */
enum lb_outcome {
#define LB_OUTCOME(name, word) LB_OUTCOME_##name,
#include "lastbranch/outcome.def"
#undef LB_OUTCOME
  LB_OUTCOMES,
};

enum lb_branch_flag {
  LB_BRANCH_MISPREDICTED = 1u << 0, /* direction or target was predicted wrongly */
  LB_BRANCH_IN_TSX = 1u << 1,       /* taken inside a transaction */
  LB_BRANCH_TF = 1u << 2,           /* EFLAGS.TF was 1 when the instruction began */
  LB_BRANCH_FROM_32 = 1u << 3,      /* `from` ran outside 64-bit mode: 32 address bits */
  LB_BRANCH_TO_32 = 1u << 4,        /* `to` runs outside 64-bit mode */
  LB_BRANCH_TO_NEXT = 1u << 5,      /* the displacement is 0: a call that only pushes the instruction pointer */
};

/* One taken branch, as an instruction makes it. Interrupts and exceptions are `struct lb_event` of recorder.h. `from`
 * is the address of the branch instruction itself. Addresses are offsets into the code segment, as the instruction
 * pointer holds them; linear addresses are offset + base. In 64-bit mode there is no base: each base is used only when
 * the flag of its end says that it ran outside. */
struct lb_branch {
  uint64_t from;
  uint64_t to;
  uint64_t from_base; /* CS.base before the branch, if LB_BRANCH_FROM_32 */
  uint64_t to_base;   /* CS.base after it, if LB_BRANCH_TO_32 */
  uint8_t kind;       /* enum lb_branch_kind */
  uint8_t to_cpl;
  uint8_t flags; /* enum lb_branch_flag */
  uint8_t from_cpl;
};

/* The word for a kind ("jcc", "call_ind"), "?" for a number that is no kind. Never NULL. */
const char *lb_branch_kind_name(unsigned kind);

/* The kind with this word. Returns >= 0, or LB_E_NO_KIND. */
int lb_branch_kind_find(const char *word);

/* enum lb_branch_class of a kind; the kind must be < LB_BRANCH_KINDS. */
enum lb_branch_class lb_branch_kind_class(unsigned kind);

#ifdef __cplusplus
}
#endif
#endif
