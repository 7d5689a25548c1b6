/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as people write them on a command line or in a rule file. strtoull is not used: it accepts leading blanks, a
 * plus sign, octal, and negative numbers below -2^63.
 */
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/base.h"

/* A character that is no digit gives a value that is too large for any base. */
static unsigned digit_value(char c)
{
  if (c >= '0' && c <= '9')
    return (unsigned)(c - '0');
  if (c >= 'a' && c <= 'f')
    return (unsigned)(c - 'a' + 10);
  if (c >= 'A' && c <= 'F')
    return (unsigned)(c - 'A' + 10);
  return UINT_MAX;
}

static int digits_parse(const char *digits, unsigned base, uint64_t *ret_value)
{
  uint64_t value = 0;

  if (!*digits)
    return LB_E_BAD_NUMBER;
  for (; *digits; digits++) {
    unsigned digit = digit_value(*digits);

    if (digit >= base || value > (UINT64_MAX - digit) / base)
      return LB_E_BAD_NUMBER;
    value = value * base + digit;
  }
  *ret_value = value;
  return 0;
}

int number_parse(const char *text, uint64_t *ret_value)
{
  bool is_negative = *text == '-';
  uint64_t value;
  int r;

  if (!strncmp(text, "0x", 2) || !strncmp(text, "0X", 2))
    return digits_parse(text + 2, 16, ret_value);
  r = digits_parse(text + is_negative, 10, &value);
  if (r < 0)
    return r;
  if (is_negative && value > (uint64_t)INT64_MAX + 1)
    return LB_E_BAD_NUMBER;
  *ret_value = is_negative ? 0 - value : value;
  return 0;
}
