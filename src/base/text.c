/* SPDX-License-Identifier: Apache-2.0
 *
 * A string that grows. Reports are built in a string and written in one piece, so that a failure does not leave half a
 * report.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define TEXT_LEAST 256

/* Makes room for `more` further characters and the terminator. */
static int text_reserve(struct text *text, size_t more)
{
  size_t wanted = text->length + more + 1;
  char *data;

  if (more >= SIZE_MAX / 2 - text->length)
    return -ENOMEM;
  data = array_reserve(text->data, 1, wanted < TEXT_LEAST ? TEXT_LEAST : wanted, &text->capacity);
  if (!data)
    return -ENOMEM;
  text->data = data;
  return 0;
}

int text_add_bytes(struct text *text, const char *bytes, size_t size)
{
  int r = text_reserve(text, size);

  if (r < 0)
    return r;
  memcpy(text->data + text->length, bytes, size);
  text->length += size;
  text->data[text->length] = '\0';
  return 0;
}

int text_add(struct text *text, const char *string)
{
  return text_add_bytes(text, string, strlen(string));
}

int text_addv(struct text *text, const char *format, va_list list)
{
  va_list again;
  int length, r;

  va_copy(again, list);
  length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0)
    return -EINVAL;
  r = text_reserve(text, (size_t)length);
  if (r < 0)
    return r;
  vsnprintf(text->data + text->length, (size_t)length + 1, format, list);
  text->length += (size_t)length;
  return 0;
}

int text_addf(struct text *text, const char *format, ...)
{
  va_list list;
  int r;

  va_start(list, format);
  r = text_addv(text, format, list);
  va_end(list);
  return r;
}

void text_done(struct text *text)
{
  if (!text)
    return;
  free(text->data);
  *text = (struct text){0};
}
