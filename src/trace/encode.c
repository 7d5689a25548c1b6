/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches to bytes. A branch that the model predicts costs one comparison and an addition. Any other branch takes the
 * slow path. See branches.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/branches.h"

#define BUFFER_LEAST 1024u
#define MISS_BYTES 64u /* more than one branch can add to any string */

int buffer_reserve(struct buffer *buffer, size_t more)
{
  size_t wanted = buffer->size + more;
  uint8_t *bytes;

  if (wanted <= buffer->capacity)
    return 0;
  bytes = array_reserve(buffer->bytes, 1, wanted < BUFFER_LEAST ? BUFFER_LEAST : wanted, &buffer->capacity);
  if (!bytes)
    return -ENOMEM;
  buffer->bytes = bytes;
  return 0;
}

void buffer_done(struct buffer *buffer)
{
  free(buffer->bytes);
  *buffer = (struct buffer){0};
}

static int buffer_varint(struct buffer *buffer, uint64_t value)
{
  if (buffer_reserve(buffer, MISS_BYTES) < 0)
    return -ENOMEM;
  buffer->size = (size_t)(varint_put(buffer->bytes + buffer->size, value) - buffer->bytes);
  return 0;
}

int encoder_begin(struct encoder *encoder, uint32_t most)
{
  memset(encoder->hash, 0, sizeof(encoder->hash));
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++)
    encoder->strings[i].size = 0;
  encoder->traits = (struct edge_traits){0};
  encoder->to = 0;
  encoder->run = 0;
  encoder->count = 0;
  encoder->most = most;
  encoder->marked = 0;
  return model_begin(&encoder->model);
}

void encoder_done(struct encoder *encoder)
{
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++)
    buffer_done(&encoder->strings[i]);
  model_done(&encoder->model);
}

/* ---- edges ---- */

/* The four small members of a branch in one word, without the bits that the model ignores. */
static inline uint32_t edge_word(const struct lb_branch *branch)
{
  uint32_t word;

  _Static_assert(offsetof(struct lb_branch, from_cpl) - offsetof(struct lb_branch, kind) == 3, "four neighbours");
  memcpy(&word, &branch->kind, sizeof(word));
  return word & ~htole32((uint32_t)LB_BRANCH_MISPREDICTED << 16);
}

static inline bool edge_is(const struct lb_branch *edge, const struct lb_branch *branch)
{
  if (edge->from != branch->from || edge->to != branch->to || edge_word(edge) != edge_word(branch))
    return false;
  if ((branch->flags & LB_BRANCH_FROM_32) && edge->from_base != branch->from_base)
    return false;
  return !(branch->flags & LB_BRANCH_TO_32) || edge->to_base == branch->to_base;
}

static struct lb_branch edge_of(const struct lb_branch *branch)
{
  struct lb_branch edge = *branch;

  edge.flags &= (uint8_t)~LB_BRANCH_MISPREDICTED;
  if (!(edge.flags & LB_BRANCH_FROM_32))
    edge.from_base = 0;
  if (!(edge.flags & LB_BRANCH_TO_32))
    edge.to_base = 0;
  return edge;
}

/* Depends on the process's random numbers, like the hashes of base/hash.h, with half as many products: a guest cannot
 * choose edges that collide. */
static uint32_t edge_hash(const struct lb_branch *edge)
{
  uint64_t hash = (edge->from ^ hash_key[0]) * hash_key[1];

  hash = (hash ^ hash >> 29 ^ edge->to) * hash_key[1];
  hash =
    (hash ^ hash >> 32 ^ edge_word(edge) ^ edge->from_base << 8 ^ edge->to_base << 24) * UINT64_C(0x94D049BB133111EB);
  return (uint32_t)(hash >> (64 - BRANCHES_HASH_BITS));
}

/* The slot of an edge in the hash table: that of an equal edge, or an empty one. The table is never full, because it
 * has twice as many slots as edges. */
static uint16_t *edge_place(struct encoder *encoder, const struct lb_branch *edge)
{
  uint32_t mask = (1u << BRANCHES_HASH_BITS) - 1, i = edge_hash(edge);

  while (encoder->hash[i] && !edge_is(&encoder->model.edges[encoder->hash[i]], edge))
    i = (i + 1) & mask;
  return &encoder->hash[i];
}

/* Defines a new edge: its kind, the differences from the previous edge, and addresses as differences. */
static int edge_define(struct encoder *encoder, const struct lb_branch *edge)
{
  struct buffer *buffer = &encoder->strings[STRING_DEFINITIONS];
  struct edge_traits *traits = &encoder->traits;
  struct edge_traits now = {edge->flags, (uint8_t)(edge->from_cpl | edge->to_cpl << 2), edge->from_base, edge->to_base};
  uint8_t *at, *what;

  if (buffer_reserve(buffer, MISS_BYTES) < 0)
    return -ENOMEM;
  at = buffer->bytes + buffer->size;
  *at++ = edge->kind;
  what = at++;
  *what = 0;
  if (now.flags != traits->flags) {
    *what |= DEFINES_FLAGS;
    *at++ = now.flags;
  }
  if (now.cpls != traits->cpls) {
    *what |= DEFINES_CPLS;
    *at++ = now.cpls;
  }
  if (now.from_base != traits->from_base || now.to_base != traits->to_base) {
    *what |= DEFINES_BASES;
    at = varint_put(varint_put(at, now.from_base), now.to_base);
  }
  at = varint_put(at, zigzag(edge->from - encoder->to));
  at = varint_put(at, zigzag(edge->to - edge->from));
  buffer->size = (size_t)(at - buffer->bytes);
  *traits = now;
  return 0;
}

/* ---- branches ---- */

/* The first guess was wrong: ends the run and writes a symbol for the branch that came. Returns the edge, or
 * -ENOMEM. */
static int encoder_miss(struct encoder *encoder, const struct lb_branch *branch)
{
  uint16_t number = model_second_guess(&encoder->model);
  struct lb_branch edge;
  uint16_t *place;
  int r;

  if (buffer_varint(&encoder->strings[STRING_RUNS], encoder->run) < 0)
    return -ENOMEM;
  encoder->run = 0;
  if (edge_is(&encoder->model.edges[number], branch))
    return buffer_varint(&encoder->strings[STRING_SYMBOLS], 0) < 0 ? -ENOMEM : number;
  edge = edge_of(branch);
  place = edge_place(encoder, &edge);
  if (*place)
    return buffer_varint(&encoder->strings[STRING_SYMBOLS], *place + 1u) < 0 ? -ENOMEM : *place;
  if (buffer_varint(&encoder->strings[STRING_SYMBOLS], 1) < 0 || edge_define(encoder, &edge) < 0)
    return -ENOMEM;
  r = model_add(&encoder->model, &edge);
  if (r > 0)
    *place = (uint16_t)r;
  return r;
}

static int encoder_mark(struct encoder *encoder)
{
  uint32_t distance = encoder->count + 1 - encoder->marked;

  encoder->marked = encoder->count + 1;
  return buffer_varint(&encoder->strings[STRING_MARKS], distance);
}

/* Returns 0, -EINVAL or -ENOMEM. */
static inline int encoder_add_one(struct encoder *encoder, const struct lb_branch *branch)
{
  int edge = model_guess(&encoder->model);

  if (edge_is(&encoder->model.edges[edge], branch)) {
    encoder->run++;
  } else {
    if (branch->kind >= LB_BRANCH_KINDS || branch->from_cpl > 3 || branch->to_cpl > 3)
      return -EINVAL;
    edge = encoder_miss(encoder, branch);
    if (edge < 0)
      return edge;
  }
  if ((branch->flags & LB_BRANCH_MISPREDICTED) && encoder_mark(encoder) < 0)
    return -ENOMEM;
  model_step(&encoder->model, (uint16_t)edge, branch->kind);
  encoder->to = branch->to;
  encoder->count++;
  return 0;
}

int encoder_add(struct encoder *encoder, const struct lb_branch *branches, size_t count)
{
  size_t done = 0;

  for (; done < count && !encoder_is_full(encoder); done++) {
    int r = encoder_add_one(encoder, &branches[done]);

    if (r == -ENOMEM || (r < 0 && !done))
      return r;
    if (r < 0)
      break;
  }
  return (int)done;
}

int encoder_end(struct encoder *encoder, struct buffer *raw)
{
  size_t size = BRANCHES_STRINGS * VARINT_MAX;

  if (buffer_varint(&encoder->strings[STRING_RUNS], encoder->run) < 0)
    return -ENOMEM;
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++)
    size += encoder->strings[i].size;
  if (buffer_reserve(raw, size) < 0)
    return -ENOMEM;
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++)
    raw->size = (size_t)(varint_put(raw->bytes + raw->size, encoder->strings[i].size) - raw->bytes);
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++) {
    if (encoder->strings[i].size)
      memcpy(raw->bytes + raw->size, encoder->strings[i].bytes, encoder->strings[i].size);
    raw->size += encoder->strings[i].size;
  }
  return 0;
}
