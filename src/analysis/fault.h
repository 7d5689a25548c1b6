/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out what the fatal instruction did. The kernel reports signal, code and address (sigaction(2)), but not whether
 * the address was read or written, and no address for a general protection fault. Both follow from the instruction and
 * the registers.
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

/* Examines a program that died; `places` may be NULL. Members that cannot be determined are unknown or false. */
struct analysis_fault analysis_fault_find(const struct analysis_death *death, const struct analysis_places *places);

#endif
