/* SPDX-License-Identifier: Apache-2.0
 *
 * What every folder may use and what knows nothing of x86: numbers as people write them, strings and arrays that grow,
 * UTF-8, numbers in little-endian bytes, and the distance between two words for "did you mean". lb_strerror and the
 * names of branch kinds are implemented here too; their contracts stand in lastbranch/error.h and lastbranch/branch.h.
 *
 * LB_VERSION, a string such as "0.1.0", comes from the build.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <endian.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lastbranch/error.h"

/* ---- numbers ---- */

/* Reads a whole word as a number: decimal, 0x hex, or negative decimal as two's complement. No blanks, no plus sign, no
 * octal: "010" is ten. Returns 0; LB_E_BAD_NUMBER when the word is not such a number or does not fit 64 bits (-2^63 is
 * the least).
 */
int number_parse(const char *text, uint64_t *ret_value);

/* ---- a string that grows ---- */

/* Starts as all zero. `data` is NULL until something is added, and terminated after that: text_string is never NULL. */
struct text {
  char *data;
  size_t length;
  size_t capacity;
};

/* Append. Return 0, or -ENOMEM: the text is then as it was before. text_addf and text_addv return -EINVAL when the
 * format cannot be printed. */
int text_add(struct text *text, const char *string);
int text_add_bytes(struct text *text, const char *bytes, size_t size);
int text_addf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int text_addv(struct text *text, const char *format, va_list list) __attribute__((format(printf, 2, 0)));

/* Frees; the text is then empty and may be used again. Takes NULL. */
void text_done(struct text *text);

static inline const char *text_string(const struct text *text)
{
  return text->data ? text->data : "";
}

/* ---- an array that grows ---- */

/* Makes room for one more element of `size` bytes behind the `count` that `data` holds, which starts as NULL with a
 * capacity of 0. Returns the array, which may have moved and which the caller frees; NULL without memory: the array and
 * its capacity are then as before. */
void *array_grow(void *data, size_t size, size_t count, size_t *capacity);

/* ---- words ---- */

/* Bytes of the UTF-8 character that starts here, 1 at the end of a string; 0 if it is none (RFC 3629: no overlong
 * forms, no surrogates). */
size_t utf8_size(const char *string);

/* How many letters must be put in, taken out, changed or swapped with their neighbour to make one word the other,
 * whatever their case. SIZE_MAX for words of more than 64 letters. */
size_t word_distance(const char *one, const char *other);

/* ---- little-endian bytes, at any alignment ---- */

static inline uint32_t bytes_get_u32(const void *bytes)
{
  uint32_t value;
  memcpy(&value, bytes, sizeof(value));
  return le32toh(value);
}

static inline uint64_t bytes_get_u64(const void *bytes)
{
  uint64_t value;
  memcpy(&value, bytes, sizeof(value));
  return le64toh(value);
}

static inline void bytes_put_u32(void *bytes, uint32_t value)
{
  value = htole32(value);
  memcpy(bytes, &value, sizeof(value));
}

static inline void bytes_put_u64(void *bytes, uint64_t value)
{
  value = htole64(value);
  memcpy(bytes, &value, sizeof(value));
}

#endif
