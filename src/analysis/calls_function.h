/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that calls.c knows, by number, and the function at an address. extent.h defines what a function is.
 */
#ifndef ANALYSIS_CALLS_FUNCTION_H
#define ANALYSIS_CALLS_FUNCTION_H

#include "analysis/analysis.h"
#include "base/base.h"

#define CALLED_MAX (1u << 19) /* functions; further ones are not distinguished */

enum target_flag {
  TARGET_IS_START = 1u << 0,    /* a function begins at the address */
  TARGET_IS_EXACT = 1u << 1,    /* the function comes from a symbol or from unwind tables: no guess */
  TARGET_IS_STUB = 1u << 2,     /* an entry of the PLT */
  TARGET_IS_RESOLVER = 1u << 3, /* the dynamic linker's code that finds the function such an entry stands for */
  TARGET_IS_SETJMP = 1u << 4,
  TARGET_IS_COLD = 1u << 5, /* a part that the compiler put elsewhere */
};

struct called {
  struct analysis_called called;
  uint64_t start; /* as in struct analysis_extent */
  uint8_t flags;  /* enum target_flag, without TARGET_IS_START */
};

struct target {
  uint64_t address;
  uint32_t space, generation; /* 0: the slot is empty */
  uint32_t function;
  uint8_t flags;
};

struct called_list {
  struct analysis_names *names;
  struct called *functions;
  size_t count, capacity;
  struct hash_index index; /* of functions by file, space and start */
  struct target *targets;  /* hash of fixed size: a newer target replaces an older one */
};

/* Returns 0, or -ENOMEM. */
int called_list_init(struct called_list *list, struct analysis_names *names);
void called_list_done(struct called_list *list);

/* Finds the function at a linear address. `is_call`: the address was called; if no function is known there yet, one
 * begins at it. Returns 0, or -ENOMEM. */
int called_list_find(struct called_list *list, uint32_t space, uint64_t address, bool is_call,
                     struct target *ret_target);

/* Is one a part of the other that the compiler put elsewhere? ("f.cold" of "f") */
bool called_is_part(const struct called *part, const struct called *whole);

#endif
