/* SPDX-License-Identifier: Apache-2.0
 *
 * The descendants of processes that lbr attaches to, found through /proc.
 */
#ifndef PROCESS_RELATIVES_H
#define PROCESS_RELATIVES_H

#include <stddef.h>

/* A descendant of these processes that is not among them, nor among `others`; 0: there is none. -errno. */
int relatives_descendant(const int *processes, size_t count, const int *others, size_t other_count);

#endif
