/* SPDX-License-Identifier: Apache-2.0
 *
 * The model that encoder and decoder of a chunk of branches share: the edges that were seen so far, and a prediction of
 * the next one. Both sides make the same guesses from the same past, so a branch that was guessed right only makes a
 * run longer. That makes chunks compact. A model begins empty with every chunk.
 *
 * There are two guesses: the edge that came last time after the same last few edges; and the edge that came last time
 * after the same edge inside a call from the same place, which predicts returns.
 */
#ifndef TRACE_MODEL_H
#define TRACE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/branch.h"

#define MODEL_BITS 16
#define MODEL_CONTEXTS (1u << MODEL_BITS)
#define MODEL_EDGES_MAX 65535u /* of one chunk; numbers are 16 bits wide, 0 is none */
#define MODEL_CALLS 64u
#define CHUNK_BRANCHES_MAX (1u << 20)

struct model {
  uint16_t by_path[MODEL_CONTEXTS];
  uint16_t by_caller[MODEL_CONTEXTS];
  uint16_t calls[MODEL_CALLS]; /* edges of the calls that have not returned, in a ring */
  uint8_t depth;
  uint16_t path; /* hash of the last few edges */
  uint16_t last;
  uint32_t count; /* edges, including number 0, which equals no branch */
  uint32_t capacity;
  struct lb_branch *edges; /* without LB_BRANCH_MISPREDICTED; a base without its flag is 0 */
};

/* Starts as all zero. model_begin discards the state of the previous chunk. Returns 0 or -ENOMEM. */
int model_begin(struct model *model);
void model_done(struct model *model);

/* Adds an edge; there are fewer than MODEL_EDGES_MAX. Returns its number, or -ENOMEM. */
int model_add(struct model *model, const struct lb_branch *edge);

static inline uint16_t model_caller_context(const struct model *model)
{
  return (uint16_t)((model->last * 0x9E3779B1u ^ model->calls[model->depth % MODEL_CALLS] * 0x85EBCA77u) >> 16);
}

/* The two guesses; 0 for none. */
static inline uint16_t model_guess(const struct model *model)
{
  return model->by_path[model->path];
}

static inline uint16_t model_second_guess(const struct model *model)
{
  return model->by_caller[model_caller_context(model)];
}

/* This edge was taken. */
static inline void model_step(struct model *model, uint16_t edge, unsigned kind)
{
  model->by_path[model->path] = edge;
  model->by_caller[model_caller_context(model)] = edge;
  model->path = (uint16_t)((unsigned)model->path << 5 ^ edge * 0x9E3779B1u >> 16);
  model->last = edge;
  if (kind == LB_BRANCH_NEAR_REL_CALL || kind == LB_BRANCH_NEAR_IND_CALL)
    model->calls[++model->depth % MODEL_CALLS] = edge;
  else if (kind == LB_BRANCH_NEAR_RET)
    model->depth--;
}

#endif
