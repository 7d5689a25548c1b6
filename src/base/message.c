/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages from the folders below src/cli to the user.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

static message_function *listener; /* NULL: messages are dropped */

void message_listen(message_function *function)
{
  listener = function;
}

void message(const char *format, ...)
{
  va_list list;
  char *sentence;
  int length;

  if (!listener)
    return;
  va_start(list, format);
  length = vasprintf(&sentence, format, list);
  va_end(list);
  listener(length < 0 ? "no memory for a message" : sentence);
  if (length >= 0)
    free(sentence);
}
