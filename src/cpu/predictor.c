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
