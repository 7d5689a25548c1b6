/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a script's first line into words, as Linux does (fs/binfmt_script.c). Works without libc.
 */
#ifndef PROCESS_SCRIPT_H
#define PROCESS_SCRIPT_H

#include <stdbool.h>

static inline bool is_blank(char byte)
{
  return byte == ' ' || byte == '\t';
}

static inline char *skip_blanks(char *at, const char *end)
{
  while (at < end && is_blank(*at))
    at++;
  return at;
}

/* A word ends before a blank or a zero. */
static inline char *find_word_end(char *at, const char *end)
{
  while (at < end && *at && !is_blank(*at))
    at++;
  return at;
}

#endif
