/* SPDX-License-Identifier: Apache-2.0
 *
 * The branch predictor's tables. See predictor.h.
 */
#include "cpu/predictor.h"

void predictor_init(struct predictor *predictor, enum predictor_kind kind)
{
  *predictor = (struct predictor){.kind = (uint8_t)kind};
  for (unsigned i = 0; i < sizeof(predictor->counters); i++)
    predictor->counters[i] = 1; /* weakly not taken */
}

void predictor_call(struct predictor *predictor, uint64_t return_address)
{
  predictor->stack_top = (uint8_t)((predictor->stack_top + 1) % 16);
  predictor->stack[predictor->stack_top] = return_address;
}

bool predictor_return(struct predictor *predictor, uint64_t to)
{
  if (predictor->kind == PREDICTOR_NONE)
    return false;
  bool is_wrong = predictor->stack[predictor->stack_top] != to;
  predictor->stack_top = (uint8_t)((predictor->stack_top + 15) % 16);
  return is_wrong;
}

bool predictor_indirect(struct predictor *predictor, uint64_t from, uint64_t to)
{
  if (predictor->kind == PREDICTOR_NONE)
    return false;
  uint64_t *target = &predictor->targets[(from ^ from >> 10) & 1023];
  bool is_wrong = *target != to;
  *target = to;
  return is_wrong;
}
