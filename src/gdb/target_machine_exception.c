/* SPDX-License-Identifier: Apache-2.0
 *
 * The processor's exceptions as gdb's signals, and which of them stop a guest. Exceptions that operating systems use in
 * normal operation (#PF, #NM, #BP, #DB, unmasked ones of the FPU) do not stop the guest unless the user asks for them.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "gdb/target_machine.h"

enum { ILLEGAL = 4, TRAP = 5, FLOATING = 8, BUS = 10, SEGMENT = 11 };

static const struct {
  const char *name;
  uint8_t signal;
  bool is_default;
} exceptions[32] = {
  [0] = {"#DE", FLOATING, true},  [1] = {"#DB", TRAP, false},      [3] = {"#BP", TRAP, false},
  [4] = {"#OF", SEGMENT, false},  [5] = {"#BR", SEGMENT, true},    [6] = {"#UD", ILLEGAL, true},
  [7] = {"#NM", FLOATING, false}, [8] = {"#DF", SEGMENT, true},    [10] = {"#TS", SEGMENT, true},
  [11] = {"#NP", BUS, true},      [12] = {"#SS", BUS, true},       [13] = {"#GP", SEGMENT, true},
  [14] = {"#PF", SEGMENT, false}, [16] = {"#MF", FLOATING, false}, [17] = {"#AC", BUS, true},
  [18] = {"#MC", BUS, true},      [19] = {"#XM", FLOATING, false},
};

unsigned gdb_machine_exception_signal(unsigned vector)
{
  return vector < 32 && exceptions[vector].name ? exceptions[vector].signal : TRAP;
}

const char *gdb_machine_exception_name(unsigned vector)
{
  return vector < 32 ? exceptions[vector].name : NULL;
}

uint32_t gdb_machine_exceptions_default(void)
{
  uint32_t vectors = 0;

  for (unsigned i = 0; i < 32; i++)
    vectors |= exceptions[i].is_default ? UINT32_C(1) << i : 0;
  return vectors;
}

static uint32_t exceptions_all(void)
{
  uint32_t vectors = 0;

  for (unsigned i = 0; i < 32; i++)
    vectors |= exceptions[i].name ? UINT32_C(1) << i : 0;
  return vectors;
}

/* The bit of a name of `size` letters, with or without "#"; 0 if there is none. */
static uint32_t exception_find(const char *name, size_t size)
{
  size_t skipped = *name == '#';

  for (unsigned i = 0; i < 32 && size - skipped == 2; i++)
    if (exceptions[i].name && !strncasecmp(exceptions[i].name + 1, name + skipped, 2))
      return UINT32_C(1) << i;
  return 0;
}

int gdb_machine_exceptions_parse(const char *text, uint32_t *ret_vectors)
{
  uint32_t vectors = 0;

  if (!strcmp(text, "all") || !strcmp(text, "none") || !strcmp(text, "default")) {
    *ret_vectors = *text == 'a' ? exceptions_all() : *text == 'd' ? gdb_machine_exceptions_default() : 0;
    return 0;
  }
  for (text += strspn(text, " ,"); *text; text += strspn(text, " ,")) {
    size_t size = strcspn(text, " ,");
    uint32_t bit = exception_find(text, size);

    if (!bit)
      return -EINVAL;
    vectors |= bit;
    text += size;
  }
  *ret_vectors = vectors;
  return 0;
}

int gdb_machine_exceptions_text(uint32_t vectors, struct text *text)
{
  int r = vectors ? 0 : text_add(text, " none");

  for (unsigned i = 0; i < 32 && r >= 0; i++)
    if (vectors >> i & 1)
      r = text_addf(text, " %s", exceptions[i].name);
  return r < 0 ? r : text_add(text, "\n");
}
