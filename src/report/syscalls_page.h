/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of system calls that `lbr stat --syscalls` prints.
 */
#ifndef REPORT_SYSCALLS_PAGE_H
#define REPORT_SYSCALLS_PAGE_H

#include "analysis/analysis.h"
#include "report/output.h"
#include "report/page.h"

/* The member "name" of a row: the name of a system call. */
void syscalls_put_name(struct page *page, uint32_t number);

/* At most `top` rows. */
void syscalls_page_print(const char *file, const struct analysis_syscalls *syscalls, uint64_t top,
                         const struct report_output *output, bool is_json);

#endif
