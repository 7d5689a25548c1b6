/* SPDX-License-Identifier: Apache-2.0
 *
 * Protection keys: four bits of a page-table entry name a key, and PKRU (user pages) or IA32_PKRS (supervisor pages)
 * holds the rights for the pages of each key. Only in 4-level paging. SDM vol. 3, 4.6.2.
 */
#ifndef CPU_KEY_H
#define CPU_KEY_H

#include "cpu/cpu.h"

/* Does the key of a page, whose last entry this is, forbid a data access that wants it like this (PAGING_ bits)? */
bool key_denies(const struct cpu *cpu, uint64_t entry, bool is_user, unsigned wants);

/* The page's translation is about to be cached: it holds while the rights of its key stay. */
void key_note(struct cpu *cpu, uint64_t entry, bool is_user);

/* Writes PKRU or IA32_PKRS. */
void key_set_user(struct cpu *cpu, uint32_t rights);
void key_set_supervisor(struct cpu *cpu, uint32_t rights);

#endif
