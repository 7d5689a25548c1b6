/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts branches to the form that gdb reads: straight pieces of code that ran one after the other.
 */
#ifndef GDB_BLOCKS_H
#define GDB_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdb/target.h"
#include "lastbranch/branch.h"

/* The bytes of code at an address. Returns how many there are, at most `size`. */
typedef size_t gdb_code_function(void *data, uint64_t address, uint8_t *bytes, size_t size);

struct gdb_blocks {
  gdb_code_function *code;
  void *data;             /* passed to `code` */
  struct gdb_block *list; /* in their order */
  size_t count, capacity;
  bool has_begin; /* a block has begun, */
  uint64_t begin; /* here */
  bool is_32;     /* outside 64-bit mode */
  /* the read position of gdb: */
  size_t next; /* blocks before this index are still to be read */
  bool is_delta;
};

/* Removes all blocks. */
void gdb_blocks_clear(struct gdb_blocks *blocks);
void gdb_blocks_done(struct gdb_blocks *blocks);

/* Add to the blocks: a branch was taken; branches were lost; the thread stands at `rip`. Return 0, or -ENOMEM. */
int gdb_blocks_branch(struct gdb_blocks *blocks, const struct lb_branch *branch);
int gdb_blocks_gap(struct gdb_blocks *blocks);
int gdb_blocks_end(struct gdb_blocks *blocks, uint64_t rip);

/* history_begin and history_next of a target that does not move; `is_read`: gdb has read them before. */
int gdb_blocks_read(struct gdb_blocks *blocks, enum gdb_history which, bool is_read);
int gdb_blocks_next(struct gdb_blocks *blocks, struct gdb_block *ret_block);

#endif
