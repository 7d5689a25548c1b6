/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers that every folder may use and that know nothing of x86: parsing of numbers, growable strings and arrays, hash
 * indexes (hash.h), interval maps (interval.h), binary search (search.h), UTF-8, numbers in little-endian bytes, state
 * to and from bytes, checksums, messages for people, a clock, and the distance between two words for "did you mean".
 * lb_strerror and the names of branch kinds are implemented here too; their contracts are in lastbranch/error.h and
 * lastbranch/branch.h.
 *
 * LB_VERSION, a string such as "0.2.0", comes from the build.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <endian.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/interval.h"
#include "base/search.h"
#include "lastbranch/error.h"

/* ---- numbers ---- */

/* Reads a whole word as a number: decimal, 0x hex, or negative decimal as two's complement. No blanks, no plus sign, no
 * octal: "010" is ten. Returns 0; LB_E_BAD_NUMBER if the word is not such a number or does not fit in 64 bits (-2^63 is
 * the least). */
int number_parse(const char *text, uint64_t *ret_value);

/* ---- a growable string ---- */

/* Starts as all zero. `data` is NULL until something is added, and terminated after that: text_string is never NULL. */
struct text {
  char *data;
  size_t length;
  size_t capacity;
};

/* Append. Return 0, or -ENOMEM: the text is then unchanged. text_addf and text_addv return -EINVAL if the format cannot
 * be printed. */
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

/* ---- a growable array ---- */

/* Makes room for `wanted` elements of `size` bytes in the array `data`, which starts as NULL with a capacity of 0. The
 * capacity at least doubles when it changes. Returns the array, which may have moved and which the caller frees; NULL
 * without memory: the array and its capacity are then unchanged. */
void *array_reserve(void *data, size_t size, size_t wanted, size_t *capacity);

/* Makes room for one more element after the `count` that `data` holds. Returns the same values as array_reserve. */
static inline void *array_grow(void *data, size_t size, size_t count, size_t *capacity)
{
  return count < *capacity ? data : array_reserve(data, size, count + 1, capacity);
}

/* Appends an element: array_append(&items, &count, &capacity). Gives a pointer to it, which has the type of `items`,
 * for the caller to fill in: its bytes are undefined. NULL without memory: the array is then unchanged. */
#define array_append(array, count, capacity)                                                                           \
  ((__typeof__(*(array)))array_append_size((array), sizeof(**(array)), (count), (capacity)))

/* Implements array_append. `array` points to the pointer to the elements. */
static inline void *array_append_size(void *array, size_t size, size_t *count, size_t *capacity)
{
  void *data;

  memcpy(&data, array, sizeof(data));
  if (*count >= *capacity) {
    data = array_reserve(data, size, *count + 1, capacity);
    if (!data)
      return NULL;
    memcpy(array, &data, sizeof(data));
  }
  return (char *)data + size * (*count)++;
}

/* Gives a pointer to the element with a number: array_at(&items, number, &count, &capacity). An array that is too short
 * is extended with zeros first. NULL without memory: the array is then unchanged. */
#define array_at(array, number, count, capacity)                                                                       \
  ((__typeof__(*(array)))array_at_size((array), sizeof(**(array)), (number), (count), (capacity)))

/* Appends zeros so that the array has `wanted` elements. Returns 0 or -ENOMEM. */
int array_extend(void *array, size_t size, size_t wanted, size_t *count, size_t *capacity);

/* Implements array_at. */
static inline void *array_at_size(void *array, size_t size, size_t number, size_t *count, size_t *capacity)
{
  void *data;

  if (number >= *count && array_extend(array, size, number + 1, count, capacity) < 0)
    return NULL;
  memcpy(&data, array, sizeof(data));
  return (char *)data + size * number;
}

/* ---- messages ---- */

/* A sentence for the user, without full stop and newline: an error, or a note. The library does not print it but passes
 * it to the function that the program has set with message_listen, before anything else runs. Without such a function
 * it is dropped. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef void message_function(const char *sentence);
void message_listen(message_function *function);

/* ---- time ---- */

/* A monotonic clock, in seconds. */
double clock_seconds(void);

/* ---- words ---- */

/* Bytes of the UTF-8 character that starts here, 1 at the end of a string; 0 if it is invalid (RFC 3629: no overlong
 * forms, no surrogates). */
size_t utf8_size(const char *string);

/* A printable copy of at most `max` bytes of an untrusted string: each byte that is not UTF-8 and each control
 * character becomes a question mark. NULL without memory. */
char *printable_copy(const char *string, size_t max);

/* The number of letters that must be inserted, removed, changed or swapped with their neighbour to turn one word into
 * the other. Case is ignored. SIZE_MAX for words of more than 64 letters. */
size_t word_distance(const char *one, const char *other);

/* Makes a string of the first `size` bytes of a command line as the kernel has it: words, each ended by 0. Words are
 * separated by a blank; zeros at the end are dropped. `to` has room for size + 1 bytes and may be `words`. Returns the
 * length of the string. */
size_t words_join(char *to, const char *words, size_t size);

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

/* ---- state to and from bytes ---- */

/* One walk over the state of an object serves both directions: a function names every field once, and the archive
 * writes the fields one after the other, little-endian and without gaps, or reads and checks them. Input may be forged:
 * a field whose values are limited is passed with its maximum. Nothing is allocated. */
struct archive {
  uint8_t *to;         /* writing: at most `size` bytes; further ones are only counted */
  const uint8_t *from; /* reading; NULL when writing */
  size_t size;
  size_t at;
  int error; /* the first error of reading: LB_E_TRUNCATED, LB_E_DAMAGED. Nothing is changed after it */
};

static inline struct archive archive_writer(void *bytes, size_t size)
{
  return (struct archive){.to = (uint8_t *)bytes, .size = size};
}

/* `bytes` must not be NULL. */
static inline struct archive archive_reader(const void *bytes, size_t size)
{
  return (struct archive){.from = (const uint8_t *)bytes, .size = size};
}

static inline int archive_is_reading(const struct archive *archive)
{
  return archive->from != NULL;
}

/* Reports that the input is impossible. */
void archive_refuse(struct archive *archive);

/* Ends the walk. Returns 0, or the error; LB_E_DAMAGED if there is more input. */
int archive_end(struct archive *archive);

void archive_bytes(struct archive *archive, void *bytes, size_t size);
void archive_number(struct archive *archive, void *place, size_t size, uint64_t most);
void archive_numbers(struct archive *archive, void *places, size_t size, size_t count, uint64_t most);

/* Archive a number of any type (structs and pointers do not compile), a number up to `most`, or an array of either. The
 * maximum of a bool is 1. */
#define archive_value(archive, place) archive_most(archive, place, UINT64_MAX)
#define archive_most(archive, place, most)                                                                             \
  archive_number(archive, place, 0 * sizeof(*(place) | 0) + sizeof(*(place)), most)
#define archive_flag(archive, place) archive_most(archive, place, 1)
#define archive_array(archive, places) archive_array_most(archive, places, UINT64_MAX)
#define archive_array_most(archive, places, most)                                                                      \
  archive_numbers(archive, places, 0 * sizeof((places)[0] | 0) + sizeof((places)[0]),                                  \
                  sizeof(places) / sizeof((places)[0]), most)

/* CRC-32C (Castagnoli), continued from `sum`, which is 0 at the start. */
uint32_t checksum_add(uint32_t sum, const void *bytes, size_t size);

#endif
