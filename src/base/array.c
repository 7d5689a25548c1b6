/* SPDX-License-Identifier: Apache-2.0
 *
 * An array that grows by doubling.
 */
#include <stdlib.h>

#include "base/base.h"

#define ELEMENTS_LEAST 16u

void *array_reserve(void *data, size_t size, size_t wanted, size_t *capacity)
{
  size_t grown = *capacity ? *capacity : ELEMENTS_LEAST;

  if (wanted <= *capacity)
    return data;
  if (wanted > SIZE_MAX / 2 / size)
    return NULL;
  while (grown < wanted)
    grown *= 2;
  data = reallocarray(data, grown, size);
  if (data)
    *capacity = grown;
  return data;
}
