/* SPDX-License-Identifier: Apache-2.0
 *
 * Untrusted strings as data of a page. They are in a script element that the browser does not run. Characters that
 * could end that element, or begin another, are written as JSON's \u escapes, and the page's script shows strings as
 * text only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/view_page.h"

#define STRING_MAX 1000u /* bytes: longer ones are truncated */

static int character_add(struct text *text, const char *at, size_t size)
{
  char escape[8];

  if (!size)
    return text_add(text, "?");
  if (size > 1) { /* U+2028 and U+2029 end lines in older scripts */
    if (size == 3 && !memcmp(at, "\xE2\x80", 2) && ((uint8_t)at[2] & 0xFE) == 0xA8)
      return text_add(text, "?");
    return text_add_bytes(text, at, size);
  }
  if ((uint8_t)*at >= ' ' && *at != '"' && *at != '\\' && *at != '<' && *at != '>' && *at != '&' && *at != 0x7F)
    return text_add_bytes(text, at, 1);
  snprintf(escape, sizeof(escape), "\\u%04x", (uint8_t)*at);
  return text_add(text, escape);
}

int view_quote(struct text *text, const char *string)
{
  const char *end = string + STRING_MAX;
  int r = text_add(text, "\"");

  while (r >= 0 && *string && string < end) {
    size_t size = utf8_size(string);

    r = character_add(text, string, size);
    string += size ? size : 1;
  }
  if (r >= 0 && *string)
    r = text_add(text, "...");
  return r < 0 ? r : text_add(text, "\"");
}

int view_quote_place(struct text *text, struct analysis_names *names, const struct analysis_location *location,
                     bool has_offset)
{
  struct analysis_name name;
  char *string = NULL;
  int r;

  if (!analysis_names_symbol(names, location, &name))
    r = asprintf(&string, "0x%llx", (unsigned long long)location->address);
  else if (!name.symbol)
    r = asprintf(&string, "%s+0x%llx", name.module, (unsigned long long)name.offset);
  else if (has_offset)
    r = asprintf(&string, "%s+0x%llx", name.symbol, (unsigned long long)name.offset);
  else
    r = asprintf(&string, "%s", name.symbol);
  if (r < 0)
    return -ENOMEM;
  r = view_quote(text, string);
  free(string);
  return r;
}
