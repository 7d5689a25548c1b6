/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of `lbr cpu`, for cmd_cpu.c, and the pieces (cpu_piece.c) that they and `lbr decode` are made of.
 */
#ifndef REPORT_CPU_PAGE_H
#define REPORT_CPU_PAGE_H

#include <stddef.h>

#include "hardware/hardware.h"
#include "lastbranch/cpudb.h"
#include "report/page.h"

/* Prints everything that the catalogue has about a CPU. */
void cpu_page_profile(struct page *page, const struct lb_cpu *cpu);

/* Prints what this host is and which facilities can be used on it. */
void cpu_page_host(struct page *page, const struct hardware_host *host);

/* ---- pieces ---- */

/* The families and models that belong to a row: "06_4E, 06_55_0-4". */
void cpu_page_models(struct page *page, const struct lb_cpu *cpu);

/* Its other names. */
void cpu_page_aliases(struct page *page, const struct lb_cpu *cpu);

/* The basis of a row: how well it is known, and by which evidence. */
void cpu_page_basis(struct page *page, unsigned basis, const char *evidence);

/* The performance counters. */
void cpu_page_counters(struct page *page, const struct lb_cpu *cpu);

void cpu_page_lbr_fmt(struct page *page, const struct lb_cpu *cpu);

/* "7" or "15:8", as the manuals write bits. */
void cpu_page_bits(struct page *page, const char *key, unsigned high, unsigned low);

/* "0x680 to 0x69f"; of at least one register. */
void cpu_page_range_text(struct lb_register_range range, char *buffer, size_t size);

/* The address of a register, and of a range of like registers; absent when there is none. */
void cpu_page_msr(struct page *page, const char *key, uint32_t msr);
void cpu_page_register_range(struct page *page, const char *key, struct lb_register_range range);

/* A table of a register's fields; with their values if `value` is not NULL. */
void cpu_page_fields(struct page *page, const struct lb_cpu *cpu, enum lb_register id, const uint64_t *value);

#endif
