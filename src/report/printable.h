/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings from strangers that are to be printed.
 */
#ifndef REPORT_PRINTABLE_H
#define REPORT_PRINTABLE_H

#include <stddef.h>

/* A copy of at most `max` bytes in which a question mark stands for each byte that is no UTF-8 and each control
 * character. NULL without memory. */
char *printable_copy(const char *string, size_t max);

#endif
