/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a chunk of branches: encoder and decoder. Four strings of bytes, each after its size: runs, symbols,
 * definitions, marks. A run says how many branches in a row the model's first guess predicted. The symbol after it
 * tells the next branch: 0 the second guess, 1 a new edge, which is the next of the definitions, n the edge n - 1.
 * Marks are the distances between mispredicted branches, which the model ignores.
 */
#ifndef TRACE_BRANCHES_H
#define TRACE_BRANCHES_H

#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"
#include "trace/model.h"

/* Bytes that grow. */
struct buffer {
  uint8_t *bytes;
  size_t size, capacity;
};

/* Makes room for `more` further bytes. Returns 0 or -ENOMEM. */
int buffer_reserve(struct buffer *buffer, size_t more);
void buffer_done(struct buffer *buffer);

/* Members that a definition leaves out if they are the same as in the definition before. */
struct edge_traits {
  uint8_t flags, cpls;
  uint64_t from_base, to_base;
};

enum { DEFINES_FLAGS = 1, DEFINES_CPLS = 2, DEFINES_BASES = 4 };

#define BRANCHES_HASH_BITS 17

/* The strings in their order. */
enum { STRING_RUNS, STRING_SYMBOLS, STRING_DEFINITIONS, STRING_MARKS, BRANCHES_STRINGS };

struct encoder {
  struct model model;
  uint16_t hash[1u << BRANCHES_HASH_BITS]; /* edges by their contents */
  struct buffer strings[BRANCHES_STRINGS];
  struct edge_traits traits; /* of the last definition */
  uint64_t to;               /* of the last branch */
  uint32_t run;              /* guessed so far */
  uint32_t count;            /* branches in all */
  uint32_t most;             /* branches that fill it */
  uint32_t marked;           /* branches up to and including the last mark */
};

/* Starts as all zero. `most`: branches of the chunk, up to CHUNK_BRANCHES_MAX. Returns 0 or -ENOMEM. */
int encoder_begin(struct encoder *encoder, uint32_t most);
void encoder_done(struct encoder *encoder);

static inline int encoder_is_full(const struct encoder *encoder)
{
  return encoder->count >= encoder->most || encoder->model.count > MODEL_EDGES_MAX;
}

/* Adds branches until all are added or the chunk is full. Returns how many it took; -EINVAL when the first is no
 * branch; -ENOMEM: the chunk is then unusable. */
int encoder_add(struct encoder *encoder, const struct lb_branch *branches, size_t count);

/* Appends the contents of the chunk. Returns 0 or -ENOMEM. */
int encoder_end(struct encoder *encoder, struct buffer *raw);

struct decoder {
  struct model model;
  struct cursor strings[BRANCHES_STRINGS];
  struct edge_traits traits;
  uint64_t to;
  uint64_t run;
  uint64_t mark; /* branches until the next mark; 0: none follows */
  uint32_t left; /* branches */
  struct cursor stamps;
};

/* Starts as all zero. `bytes` must stay good while branches are read. Returns 0, LB_E_DAMAGED, or -ENOMEM. */
int decoder_begin(struct decoder *decoder, const uint8_t *bytes, size_t size, uint32_t count);
void decoder_done(struct decoder *decoder);

/* The next branches, at most `count`. Returns how many, 0 at the end, LB_E_DAMAGED, or -ENOMEM; after a failure the
 * chunk gives no more. */
int decoder_next(struct decoder *decoder, struct lb_branch *ret_branches, size_t count);

#endif
