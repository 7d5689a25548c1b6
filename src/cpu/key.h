/* SPDX-License-Identifier: Apache-2.0
 *
 * Protection keys: four bits of a page-table entry name a key, and PKRU (user pages) or IA32_PKRS (supervisor pages)
 * holds the rights for the pages of each key. Only in 4-level paging. SDM vol. 3, 4.6.2.
 */
#ifndef CPU_KEY_H
#define CPU_KEY_H

#include "cpu/cpu.h"

/* Whether the key of a page forbids a data access of this kind (PAGING_ bits). `entry` is the page's last entry. */
bool key_denies(const struct cpu *cpu, uint64_t entry, bool is_user, unsigned wants);

/* Notes that the page's translation is about to be cached. It is valid while the rights of its key stay the same. */
void key_note(struct cpu *cpu, uint64_t entry, bool is_user);

/* Writes PKRU or IA32_PKRS. */
void key_set_user(struct cpu *cpu, uint32_t rights);
void key_set_supervisor(struct cpu *cpu, uint32_t rights);

#endif
