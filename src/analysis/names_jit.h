/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of code that is in no file: what just-in-time compilers call their functions. An address may have had several
 * names, one after another. All of this code belongs to one pseudo file, "[jit]".
 */
#ifndef ANALYSIS_NAMES_JIT_H
#define ANALYSIS_NAMES_JIT_H

#include "base/base.h"
#include "trace/trace.h"

struct analysis_location;
struct analysis_name;
struct analysis_names;

/* A function: a name, and the addresses that have it from some place in the trace on. */
struct jit_function {
  uint64_t start, end; /* linear */
  uint64_t place;      /* of its record in the trace */
  uint32_t space;
  uint32_t layer; /* number of the layer that it is in; JIT_NO_LAYER: it was left out */
  char *text;     /* NULL: from then on, the addresses have no name */
};

/* Functions of a space that do not overlap. Functions that overlap are in different layers, the later one above. */
struct jit_layer {
  uint32_t space;
  uint32_t *list; /* numbers of functions by address */
  size_t count, capacity;
};

struct jit_space {
  uint32_t number;
  uint32_t original;  /* the space of which it is a copy, 0: none, */
  uint64_t copied_at; /* and the place in the trace where it began */
  uint32_t *layers;   /* numbers, from the lowest on */
  size_t count, capacity;
};

struct jit_names {
  struct jit_function *functions; /* in the order of the trace */
  size_t count, capacity;
  struct jit_layer *layers;
  size_t layer_count, layer_capacity;
  struct jit_space *spaces;
  size_t space_count, space_capacity;
  struct hash_index space_index;
  size_t bytes;   /* of texts */
  size_t laid;    /* functions that are in the layers */
  uint64_t known; /* records up to this place were taken */
  uint64_t now;   /* records before this place were passed */
  uint32_t file;  /* number of the pseudo file; ANALYSIS_NO_FILE: there is none yet */
  bool is_full;   /* the limit was reached, and that was reported */
};

/* Takes a record of names. Returns 0 or -ENOMEM. */
int jit_names_take(struct analysis_names *names, const struct trace_names *record);

/* Does an address mean something else after this record? */
bool jit_names_displace(struct analysis_names *names, const struct trace_names *record);

/* The location of an address in the pseudo file: the function that had the address at the present place in the trace,
 * or, if none had it by then, the first to get it. Returns false, touching nothing, if there is none. */
bool jit_names_locate(struct analysis_names *names, uint32_t space, uint64_t address,
                      struct analysis_location *ret_location);

/* The number of bytes at an address after which another function may begin. */
uint64_t jit_names_reach(struct analysis_names *names, uint32_t space, uint64_t address);

/* Is this number that of the pseudo file? */
bool jit_names_is_file(const struct analysis_names *names, uint32_t file);

/* Sets the symbol at an address in the pseudo file. Returns false if there is none. */
bool jit_names_symbol(struct analysis_names *names, uint64_t linked, struct analysis_name *name);

/* The same address in the next lower layer, for code bytes that were recorded before the name. Returns false if there
 * is no lower layer. */
bool jit_names_lower(struct analysis_names *names, uint64_t *linked);

void jit_names_done(struct jit_names *jit);

#endif
