/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranges of functions according to the unwind tables of a file (.eh_frame_hdr and .eh_frame), which stripped files
 * keep; and a reader for the numbers in such tables.
 */
#ifndef ANALYSIS_EH_FRAME_H
#define ANALYSIS_EH_FRAME_H

#include "analysis/analysis.h"

/* ---- functions ---- */

/* The sorted table of functions of one file. */
struct eh_table {
  bool is_read;
  uint64_t address; /* numbers are relative to it */
  struct eh_entry {
    int32_t start, description;
  } * entries;
  uint32_t *sizes; /* of functions, plus 1; 0: not read yet */
  size_t count;    /* 0: there is no table */
};

void eh_table_done(struct eh_table *table);

struct eh_function {
  uint64_t start, end; /* addresses as the file is linked */
  uint64_t list;       /* of calls that exceptions may come out of (.gcc_except_table); 0: it has none */
};

/* The function that an address of a file is in. Returns 1; 0 if it is in none; -ENOENT if that is not known: no file,
 * no tables, or tables of an unusual form. */
int eh_function_find(struct analysis_names *names, uint32_t file, uint64_t address, struct eh_function *ret_function);

struct eh_range {
  uint64_t start, end;    /* of the function that holds the address, */
  uint64_t before, after; /* or, if none does, the end of the function before and the start of the one after: 0 and
                             UINT64_MAX if there is none */
};

/* Finds only the range, which is faster. Returns false if no function holds the address. */
bool eh_range_find(struct analysis_names *names, uint32_t file, uint64_t address, struct eh_range *ret_range);

/* ---- numbers ---- */

#define EH_FETCH 64u  /* bytes that are read at once */
#define EH_NONE 0xFFu /* as an encoding: there is no such number */

/* Reads bytes of a file, by address, one after another. */
struct eh_cursor {
  struct analysis_names *names;
  uint32_t file;
  uint64_t address;
  bool has_failed;
  uint8_t bytes[EH_FETCH];
  uint64_t first;
  size_t size;
};

/* Past the end of the readable bytes, these return zeros and set `has_failed`. */
uint8_t eh_byte(struct eh_cursor *cursor);
uint64_t eh_number(struct eh_cursor *cursor, unsigned size); /* little-endian */
uint64_t eh_leb(struct eh_cursor *cursor, bool is_signed);   /* LEB128 */

/* A number in one of the DW_EH_PE_ forms: the low four bits are the format, the next three what it is relative to;
 * `data`: the base of those that are relative to a table. */
uint64_t eh_encoded(struct eh_cursor *cursor, uint8_t encoding, uint64_t data);

#endif
