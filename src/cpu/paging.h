/* SPDX-License-Identifier: Apache-2.0
 *
 * Translation from linear to physical addresses: no paging, 32-bit (with PSE), PAE and 4-level tables; SDM vol. 3
 * chapter 4.
 */
#ifndef CPU_PAGING_H
#define CPU_PAGING_H

#include "cpu/cpu.h"

/* Properties of an access. */
enum {
  PAGING_WRITE = 1u << 1, /* the bits of #PF's error code */
  PAGING_USER = 1u << 2,
  PAGING_FETCH = 1u << 4,
  PAGING_IMPLICIT = 1u << 8, /* descriptor tables and the like: supervisor whatever AC says */
};

struct paging_page {
  uint64_t physical; /* of the page, A20 applied */
  bool is_writable;  /* with these rights, and its dirty bit is set */
  bool is_guarded;   /* a user page that SMAP allows only at present: must not be cached */
  uint8_t shift;     /* its size is 1 << shift */
};

/* Translates, setting accessed and dirty bits. Raises #PF (CR2 set). */
struct paging_page paging_translate(struct cpu *cpu, uint64_t linear, unsigned wants);

/* The same without faults and without changing anything. Returns false when there is no page. `ret_bits` (may be NULL)
 * gets LB_DS_PAGE_ bits and PAGING_LOOK_READ_ONLY. */
enum { PAGING_LOOK_READ_ONLY = 1u << 16 };
bool paging_look(struct cpu *cpu, uint64_t linear, uint64_t *ret_physical, unsigned *ret_bits);

/* Loads the PDPTEs of PAE paging after a change of CR3, CR0.PG or CR4.PAE. Returns false for reserved bits (#GP). */
bool paging_load_pdptes(struct cpu *cpu, uint64_t cr3);

#endif
