/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays indexed by numbers that come from a file. They are mapped pages, so that growing moves an array without
 * touching it, and unused numbers cost address space only.
 */
#include "trace/sparse.h"

#include <stddef.h>
#include <sys/mman.h>

#define HUGE_LEAST (4u << 20) /* bytes: an array of that size is looked up faster in large pages */

void *sparse_grow(void *array, size_t size, size_t wanted)
{
  void *grown = array ? mremap(array, size, wanted, MREMAP_MAYMOVE)
                      : mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  if (grown == MAP_FAILED)
    return NULL;
  if (wanted >= HUGE_LEAST)
    (void)madvise(grown, wanted, MADV_HUGEPAGE);
  return grown;
}

void sparse_scatter(void *array, size_t size)
{
  if (array)
    (void)madvise(array, size, MADV_NOHUGEPAGE);
}

void sparse_free(void *array, size_t size)
{
  if (array)
    (void)munmap(array, size);
}
