/* SPDX-License-Identifier: Apache-2.0
 *
 * The data that counting needs for each step and head, by number, with its count. It takes 16 bytes, half of a step of
 * the reader, since a program with much code has more steps than a cache holds.
 */
#ifndef TRACE_COUNT_STEP_H
#define TRACE_COUNT_STEP_H

#include <stdint.h>

/* All zero: there is none with this number. */
struct count_step {
  uint64_t left;     /* how often its path was left there */
  uint32_t running;  /* path that runs after it; 0: not known */
  uint16_t branches; /* of an entry that is this step */
  uint8_t not_taken; /* conditional branches of that entry */
  uint8_t index;     /* its place in the path; 0: a head */
};

_Static_assert(sizeof(struct count_step) == 16, "");

/* Replaces the number of a path if only the entry before and this one together tell which path runs. */
#define COUNT_RUNNING_OTHER UINT32_MAX

#endif
