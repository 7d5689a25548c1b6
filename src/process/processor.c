/* SPDX-License-Identifier: Apache-2.0
 *
 * Which instructions the runtime's code can use on this processor.
 */
#include <cpuid.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "process/processor.h"
#include "process/shared.h"

/* LOOP is one operation on AMD's processors from family 17h (Zen) on, and takes seven on Intel's: Agner Fog,
 * Instruction tables. */
static bool is_loop_fast(void)
{
  unsigned a = 0, b = 0, c = 0, d = 0;
  char vendor[12];

  if (!__get_cpuid(0, &a, &b, &c, &d))
    return false;
  memcpy(vendor, &b, 4);
  memcpy(vendor + 4, &d, 4);
  memcpy(vendor + 8, &c, 4);
  if (memcmp(vendor, "AuthenticAMD", 12) != 0 && memcmp(vendor, "HygonGenuine", 12) != 0)
    return false;
  return __get_cpuid(1, &a, &b, &c, &d) && (a >> 8 & 15) + (a >> 20 & 255) >= 0x17;
}

static bool has_rorx(void)
{
  unsigned a = 0, b = 0, c = 0, d = 0;

  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_BMI2;
}

uint32_t processor_options(void)
{
  if (getenv("LBR_PLAIN_CODE")) /* for tests: the code for processors that have neither */
    return 0;
  return (is_loop_fast() ? PROCESS_LOOP : 0u) | (has_rorx() ? PROCESS_RORX : 0u);
}
