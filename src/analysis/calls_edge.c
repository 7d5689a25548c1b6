/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out what a branch means: whether it stays in its function, calls, returns or jumps, by its kind and by the
 * functions at its ends.
 */
#include "analysis/calls_edge.h"

#include <errno.h>
#include <stdlib.h>

int calls_edges_init(struct calls_edges *edges, struct analysis_names *names, struct analysis_code *code,
                     struct called_list *called)
{
  *edges = (struct calls_edges){
    .names = names,
    .code = code,
    .called = called,
    .known = calloc((size_t)1 << (64 - EDGES_SHIFT), sizeof(*edges->known)),
    .generation = 1,
  };
  return edges->known ? 0 : -ENOMEM;
}

void calls_edges_done(struct calls_edges *edges)
{
  free(edges->known);
}

static enum edge_action action_of(unsigned kind)
{
  switch (kind) {
  case LB_BRANCH_NEAR_REL_CALL:
  case LB_BRANCH_NEAR_IND_CALL:
    return EDGE_CALL;
  case LB_BRANCH_NEAR_RET:
    return EDGE_RETURN;
  case LB_BRANCH_JCC:
  case LB_BRANCH_NEAR_REL_JMP:
    return EDGE_JUMP;
  case LB_BRANCH_FAR_CALL:
  case LB_BRANCH_SYSCALL:
  case LB_BRANCH_SYSENTER:
  case LB_BRANCH_EENTER:
    return EDGE_FAR_CALL;
  case LB_BRANCH_FAR_RET:
  case LB_BRANCH_IRET:
  case LB_BRANCH_SYSRET:
  case LB_BRANCH_SYSEXIT:
  case LB_BRANCH_EEXIT:
  case LB_BRANCH_RSM:
    return EDGE_FAR_RETURN;
  case LB_BRANCH_INT:
  case LB_BRANCH_INT3:
  case LB_BRANCH_INTO:
  case LB_BRANCH_FAULT:
  case LB_BRANCH_TRAP:
  case LB_BRANCH_INTERRUPT:
  case LB_BRANCH_NMI:
  case LB_BRANCH_MACHINE_CHECK:
    return EDGE_EVENT;
  default:
    return EDGE_JUMP_INDIRECT;
  }
}

/* Whether the instruction at which a signal or interrupt arrived was executed: only if it requested the event. */
static bool is_run(unsigned kind)
{
  return kind != LB_BRANCH_FAULT && kind != LB_BRANCH_TRAP && kind != LB_BRANCH_INTERRUPT && kind != LB_BRANCH_NMI &&
         kind != LB_BRANCH_MACHINE_CHECK;
}

static uint32_t piece_count(struct calls_edges *edges, const struct lb_branch *branch, struct edge_known *edge)
{
  bool is_64 = !(branch->flags & LB_BRANCH_FROM_32);
  unsigned count;

  if (!edges->code || !edge->start)
    return 0;
  count =
    is_64 || edge->start == edge->from ? analysis_code_count(edges->code, edge->space, edge->start, edge->from) : 0;
  edge->is_unknown = !count;
  edges->has_unknown |= edge->is_unknown;
  if (!count) /* but the branch itself ran */
    count = 1;
  return is_run(edge->kind) ? count : count - 1;
}

static uint8_t call_length(const struct calls_edges *edges, const struct edge_known *edge)
{
  struct analysis_instruction instruction;
  struct analysis_location location;

  if (!edges->code)
    return 0;
  location = analysis_names_locate(edges->names, edge->space, edge->from);
  return analysis_code_instruction(edges->code, &location, &instruction) && instruction.kind == (int8_t)edge->kind
           ? instruction.length
           : 0;
}

/* A jump stays if it leads into its own function and is not a jump out of a PLT. */
static bool jump_stays(const struct target *from, const struct target *to)
{
  return !((from->flags | to->flags) & (TARGET_IS_STUB | TARGET_IS_COLD)) && from->function == to->function;
}

static uint8_t edge_judge(const struct lb_branch *branch, const struct edge_known *edge, const struct target *from,
                          const struct target *to)
{
  enum edge_action action = action_of(edge->kind);
  bool is_next = edge->to - edge->from - 1 < INSTRUCTION_MAX; /* to the next instruction */

  if (action == EDGE_CALL && (branch->flags & LB_BRANCH_TO_NEXT || edge->to - edge->from == 5) && is_next &&
      !(to->flags & TARGET_IS_START && to->flags & TARGET_IS_EXACT))
    return EDGE_STAY; /* the call only reads the instruction pointer */
  if ((action == EDGE_JUMP || action == EDGE_JUMP_INDIRECT) && jump_stays(from, to))
    return EDGE_STAY;
  if (edge->kind == LB_BRANCH_SYSCALL && branch->from_cpl == branch->to_cpl)
    return is_next ? EDGE_STAY : EDGE_FAR_RETURN; /* in a program: a return of the system, or a sigreturn */
  return (uint8_t)action;
}

int calls_edges_learn(struct calls_edges *edges, const struct lb_branch *branch, struct edge_known *edge)
{
  bool is_call = action_of(edge->kind) == EDGE_CALL && !(branch->flags & LB_BRANCH_TO_NEXT);
  struct target start, from, to;

  if (called_list_find(edges->called, edge->space, edge->from, false, &from) < 0 ||
      called_list_find(edges->called, edge->space, edge->start ? edge->start : edge->from, false, &start) < 0 ||
      called_list_find(edges->called, edge->space, edge->to, is_call, &to) < 0)
    return -ENOMEM;
  edge->instructions = piece_count(edges, branch, edge);
  edge->function = to.function;
  edge->flags = to.flags;
  edge->action = edge_judge(branch, edge, &from, &to);
  edge->length = edge->action == EDGE_CALL ? call_length(edges, edge) : 0;
  edge->is_falling = start.function != from.function &&
                     edges->called->functions[from.function].called.source != ANALYSIS_EXTENT_BY_NOTHING;
  calls_edges_check(edges);
  edge->generation = edges->generation;
  return 0;
}
