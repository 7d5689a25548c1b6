/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning of a branch for the stack of its stream. Nearly all branches stay in their function. The meaning of a
 * branch, and the number of instructions before it, are cached in a hash table by three addresses: the target of the
 * previous branch, the branch, and its target. A branch that stays in its function costs one lookup.
 */
#ifndef ANALYSIS_CALLS_EDGE_H
#define ANALYSIS_CALLS_EDGE_H

#include "analysis/calls_function.h"
#include "analysis/code.h"

#define EDGES_SHIFT 48u     /* the bits of a hash from this one on are the number of a slot */
#define INSTRUCTION_MAX 15u /* bytes of an instruction */

enum edge_action {
  EDGE_STAY, /* stays in its function */
  EDGE_CALL,
  EDGE_RETURN,
  EDGE_JUMP,
  EDGE_JUMP_INDIRECT,
  EDGE_EVENT,      /* a signal or interrupt */
  EDGE_FAR_CALL,   /* into the system, or another segment */
  EDGE_FAR_RETURN, /* out of it, or from a signal */
};

struct edge_known {
  uint64_t start, from, to;
  uint32_t space, generation; /* 0: the slot is empty */
  uint32_t instructions;      /* from `start` on, including the branch */
  uint32_t function;          /* of `to` */
  uint8_t kind;
  uint8_t action;  /* enum edge_action */
  uint8_t flags;   /* enum target_flag, of `to` */
  uint8_t length;  /* of a call; 0 if unknown */
  bool is_unknown; /* `instructions` counts only the branch */
  bool is_falling; /* a function begins between `start` and `from` */
};

struct calls_edges {
  struct analysis_names *names;
  struct analysis_code *code; /* NULL: instructions are not counted */
  struct called_list *called;
  struct edge_known *known; /* the hash table; a new edge replaces the old one of its slot */
  uint32_t generation;      /* of the edges */
  uint32_t of_names;        /* generation of the names that they were made from */
  bool has_unknown;         /* code ran whose instructions are not known */
};

/* Returns 0, or -ENOMEM; calls_edges_done in either case. */
int calls_edges_init(struct calls_edges *edges, struct analysis_names *names, struct analysis_code *code,
                     struct called_list *called);
void calls_edges_done(struct calls_edges *edges);

/* To be called when the mappings or the starts of functions may have changed. */
static inline void calls_edges_check(struct calls_edges *edges)
{
  if (edges->of_names != analysis_names_generation(edges->names)) {
    edges->of_names = analysis_names_generation(edges->names);
    edges->generation++;
  }
}

/* The slot of an edge. */
static inline struct edge_known *calls_edges_place(const struct calls_edges *edges, uint64_t start, uint64_t from,
                                                   uint64_t to)
{
  uint64_t hash = (from + 3 * start) * UINT64_C(0x9E3779B97F4A7C15) ^ to * UINT64_C(0xC2B2AE3D27D4EB4F);

  return &edges->known[(hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15) >> EDGES_SHIFT];
}

/* Fills in an edge whose start, from, to, space and kind are set. Returns 0, or -ENOMEM. */
int calls_edges_learn(struct calls_edges *edges, const struct lb_branch *branch, struct edge_known *edge);

#endif
