/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of a struct belong to its fields, and which are padding: by this program's own debug information, so that
 * a test can tell a field that was forgotten from a gap. fields.c.
 */
#ifndef UNIT_FIELDS_H
#define UNIT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets map[i] for each byte of struct `name` that holds something. False: it is not described, or has another size. */
bool fields_of(const char *name, uint8_t *map, size_t size);

#endif
