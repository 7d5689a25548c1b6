/* SPDX-License-Identifier: Apache-2.0
 *
 * A buffer that lines are written into piece by piece, with one check of the room per line. A script spends most of its
 * time here; printf would take longer than reading the trace.
 */
#ifndef REPORT_WRITER_H
#define REPORT_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WRITER_SIZE 65536u
#define WRITER_LINE_MAX 16384u /* bytes of one line: two places (script.c) and a few numbers and words */

struct writer {
  size_t length;
  char bytes[WRITER_SIZE];
};

static inline void writer_bytes(struct writer *writer, const char *bytes, size_t size)
{
  memcpy(writer->bytes + writer->length, bytes, size);
  writer->length += size;
}

static inline void writer_string(struct writer *writer, const char *string)
{
  writer_bytes(writer, string, strlen(string));
}

static inline void writer_decimal(struct writer *writer, uint64_t value)
{
  char digits[20];
  size_t at = sizeof(digits);

  do
    digits[--at] = (char)('0' + value % 10);
  while (value /= 10);
  writer_bytes(writer, digits + at, sizeof(digits) - at);
}

static inline void writer_hex(struct writer *writer, uint64_t value)
{
  char digits[18];
  size_t at = sizeof(digits);

  do
    digits[--at] = "0123456789abcdef"[value & 15];
  while (value >>= 4);
  digits[--at] = 'x';
  digits[--at] = '0';
  writer_bytes(writer, digits + at, sizeof(digits) - at);
}

/* A JSON string, of text that is fit to be printed: at most twice its size and two. */
static inline void writer_quoted(struct writer *writer, const char *string)
{
  writer_bytes(writer, "\"", 1);
  for (; *string; string++) {
    if (*string == '"' || *string == '\\')
      writer_bytes(writer, "\\", 1);
    writer_bytes(writer, string, 1);
  }
  writer_bytes(writer, "\"", 1);
}

#endif
