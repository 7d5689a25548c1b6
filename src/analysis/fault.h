/* SPDX-License-Identifier: Apache-2.0
 *
 * What the instruction did that a signal killed the program for. The kernel tells signal, code and address
 * (sigaction(2)), but not whether the address was read or written, and no address for a general protection fault: both
 * follow from the instruction and the registers.
 */
#ifndef ANALYSIS_FAULT_H
#define ANALYSIS_FAULT_H

#include "analysis/death.h"

enum analysis_access { ANALYSIS_ACCESS_UNKNOWN, ANALYSIS_ACCESS_READ, ANALYSIS_ACCESS_WRITE, ANALYSIS_ACCESS_EXECUTE };

struct analysis_fault {
  enum analysis_access access; /* how the instruction accessed the address of the signal */
  bool has_address;            /* one of the addresses that the instruction used is not canonical: `address` */
  uint64_t address;
  bool has_target; /* a near return, call or jump failed because its target is not canonical; the processor is still at
                      the branch */
  uint64_t target;
  enum lb_branch_kind kind; /* of that branch */
};

/* Of a program that died; `places` may be NULL. What cannot be known is unknown or false. */
struct analysis_fault analysis_fault_find(const struct analysis_death *death, const struct analysis_places *places);

#endif
