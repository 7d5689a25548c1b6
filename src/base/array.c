/* SPDX-License-Identifier: Apache-2.0
 *
 * An array that grows by doubling.
 */
#include <errno.h>
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

int array_extend(void *array, size_t size, size_t wanted, size_t *count, size_t *capacity)
{
  void *data;

  memcpy(&data, array, sizeof(data));
  data = array_reserve(data, size, wanted, capacity);
  if (!data)
    return -ENOMEM;
  memset((char *)data + size * *count, 0, size * (wanted - *count));
  memcpy(array, &data, sizeof(data));
  *count = wanted;
  return 0;
}
