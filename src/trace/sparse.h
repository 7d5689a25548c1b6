/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse arrays: untouched parts take no memory.
 */
#ifndef TRACE_SPARSE_H
#define TRACE_SPARSE_H

#include <stddef.h>

/* Makes an array of `size` bytes (NULL: of none) one of `wanted` bytes, more than before; what is new is zero. Returns
 * NULL without memory: the old one stays. */
void *sparse_grow(void *array, size_t size, size_t wanted);

/* Declares that the array will have holes, so that huge pages do not fill them. */
void sparse_scatter(void *array, size_t size);

void sparse_free(void *array, size_t size); /* takes NULL */

#endif
