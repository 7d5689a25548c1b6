/* SPDX-License-Identifier: Apache-2.0
 *
 * Landing pads, from a program's own tables: the description of a function (eh_frame.h) leads to its list of calls
 * (.gcc_except_table), whose form is that of the C++ ABI for Itanium, "Exception Handling Tables". The file is
 * untrusted: any inconsistency ends the search.
 */
#include "analysis/calls_landing.h"

#include <errno.h>

#include "analysis/eh_frame.h"

#define CALLS_MAX 8192u /* of a function */

static int list_search(struct eh_cursor *cursor, uint64_t list, uint64_t start, uint64_t address, uint64_t *ret_landing)
{
  uint64_t base = start, end;
  uint8_t encoding;

  cursor->address = list;
  encoding = eh_byte(cursor);
  if (encoding != EH_NONE)
    base = eh_encoded(cursor, encoding, 0);
  if (eh_byte(cursor) != EH_NONE)
    eh_leb(cursor, false);
  encoding = eh_byte(cursor);
  end = eh_leb(cursor, false);
  end += cursor->address;
  for (unsigned i = 0; i < CALLS_MAX && cursor->address < end && !cursor->has_failed; i++) {
    uint64_t first = start + eh_encoded(cursor, encoding, 0);
    uint64_t size = eh_encoded(cursor, encoding, 0);
    uint64_t landing = eh_encoded(cursor, encoding, 0);

    eh_leb(cursor, false);
    if (address - first >= size)
      continue;
    *ret_landing = base + landing;
    return cursor->has_failed ? -ENOENT : landing != 0;
  }
  return cursor->has_failed ? -ENOENT : 0;
}

int landing_find(struct analysis_names *names, const struct analysis_location *location, uint64_t *ret_address)
{
  struct eh_cursor cursor = {.names = names, .file = location->file};
  struct eh_function function;
  int r = eh_function_find(names, location->file, location->address, &function);

  if (r <= 0 || !function.list)
    return r < 0 ? r : 0;
  return list_search(&cursor, function.list, function.start, location->address, ret_address);
}
