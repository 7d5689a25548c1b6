/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse arrays: untouched parts take no memory.
 */
#ifndef TRACE_SPARSE_H
#define TRACE_SPARSE_H

#include <stddef.h>

/* Grows an array from `size` bytes (NULL: from none) to a larger size, `wanted` bytes. The new part is zero. Returns
 * NULL without memory: the old array stays. */
void *sparse_grow(void *array, size_t size, size_t wanted);

/* Declares that the array will have holes, so that huge pages do not fill them. */
void sparse_scatter(void *array, size_t size);

void sparse_free(void *array, size_t size); /* takes NULL */

#endif
