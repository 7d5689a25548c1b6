/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats numbers for an output.
 */
#include "report/output.h"

const char *report_number(const struct report_output *output, uint64_t value, char buffer[REPORT_NUMBER_SIZE])
{
  char digits[REPORT_NUMBER_SIZE];
  size_t length = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value), at = 0;

  for (size_t i = 0; i < length; i++) {
    if (output->columns && i && (length - i) % 3 == 0)
      buffer[at++] = ',';
    buffer[at++] = digits[i];
  }
  buffer[at] = '\0';
  return buffer;
}
