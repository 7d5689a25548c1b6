/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of code that is in no file, for the last branches of a program: those that are valid when they are first asked
 * for.
 */
#ifndef SESSION_RUN_JIT_H
#define SESSION_RUN_JIT_H

#include "process/process.h"
#include "symbol/symbol.h"

/* Names of all address spaces. Starts as all zero. */
struct run_jit {
  struct run_jit_space *spaces;
  size_t count, capacity;
};

/* Sets module, symbol and offset for an address. Strings are valid until run_jit_done. Returns false if there is no
 * name. */
bool run_jit_find(struct run_jit *jit, struct process_spaces *spaces, uint32_t space, uint64_t address,
                  struct symbol_place *place);
void run_jit_done(struct run_jit *jit);

#endif
