/* SPDX-License-Identifier: Apache-2.0
 *
 * The history of a chunk of branches: see model.h.
 */
#include "trace/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static int edge_append(struct model *model, const struct lb_branch *edge)
{
  size_t capacity = model->capacity;
  void *edges = array_grow(model->edges, sizeof(*model->edges), model->count, &capacity);

  if (!edges)
    return -ENOMEM;
  model->edges = edges;
  model->capacity = (uint32_t)capacity;
  model->edges[model->count++] = *edge;
  return 0;
}

int model_begin(struct model *model)
{
  static const struct lb_branch none = {.kind = UINT8_MAX};

  memset(model->by_path, 0, sizeof(model->by_path));
  memset(model->by_caller, 0, sizeof(model->by_caller));
  memset(model->calls, 0, sizeof(model->calls));
  model->depth = 0;
  model->path = 0;
  model->last = 0;
  model->count = 0;
  return edge_append(model, &none);
}

void model_done(struct model *model)
{
  free(model->edges);
  model->edges = NULL;
  model->count = 0;
  model->capacity = 0;
}

int model_add(struct model *model, const struct lb_branch *edge)
{
  int number = (int)model->count;

  assert(model->count <= MODEL_EDGES_MAX);
  return edge_append(model, edge) < 0 ? -ENOMEM : number;
}
