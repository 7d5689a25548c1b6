/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of `lbr cpu`, for cmd_cpu.c, and the pieces of them that `lbr decode` shows too.
 */
#ifndef CLI_CPU_PAGE_H
#define CLI_CPU_PAGE_H

#include "cli/page.h"
#include "hardware/hardware.h"
#include "lastbranch/cpudb.h"

/* Everything that the catalogue has about a CPU. */
void cpu_page_profile(struct page *page, const struct lb_cpu *cpu);

/* What this host is and lets you use. */
void cpu_page_host(struct page *page, const struct hardware_host *host);

/* The families and models that belong to a row, as a list "06_4E, 06_55_0-4". */
void cpu_page_models(struct page *page, const char *key, const struct lb_cpu *cpu);

/* "7" or "15:8", as the manuals write bits. */
void cpu_page_bits(struct page *page, const char *key, unsigned high, unsigned low);

#endif
