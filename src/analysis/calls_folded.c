/* SPDX-License-Identifier: Apache-2.0
 *
 * The stacks of a run with their costs. A stack is a path of functions that call each other, from the outermost one.
 */
#include "analysis/calls_folded.h"

#include <errno.h>

static int folded_enter(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  struct calls_folded *folded = data;
  struct calls_node *node = &nodes[count - 1];
  uint32_t caller = node->level ? nodes[count - 2].mark : ANALYSIS_STACK_NONE;

  (void)stream;
  if (!folded->stacks && analysis_stacks_new(&folded->stacks) < 0)
    return -ENOMEM;
  if (analysis_stacks_enter(folded->stacks, caller, node->function, &node->mark) < 0)
    return -ENOMEM;
  if (node->mark != caller) /* without room, it counts as part of its caller */
    analysis_stacks_called(folded->stacks, node->mark, 1);
  return 0;
}

static int folded_leave(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  struct calls_folded *folded = data;
  const struct calls_node *node = &nodes[count - 1];
  struct analysis_cost own = calls_cost_own(node);

  (void)stream;
  analysis_stacks_add(folded->stacks, node->mark, &own);
  return 0;
}

/* ---- all of it ---- */

void calls_folded_begin(struct calls_folded *folded, struct calls_walk *walk)
{
  *folded = (struct calls_folded){.walk = walk};
  walk->view = (struct calls_view){folded_enter, folded_leave, folded, NULL};
}

void calls_folded_done(struct calls_folded *folded)
{
  analysis_stacks_free(folded->stacks);
}
