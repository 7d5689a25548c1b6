/* SPDX-License-Identifier: Apache-2.0
 *
 * See processor.h. SDM vol. 2, CPUID; AMD APM vol. 3, appendix E.
 */
#include "process/processor.h"

#include <cpuid.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "process/shared.h"

/* LOOP is one operation on AMD's processors from family 17h (Zen) on, and seven on Intel's (Agner Fog, Instruction
 * tables). */
static bool is_loop_fast(const struct processor *processor)
{
  bool is_amd = !memcmp(processor->vendor, "AuthenticAMD", sizeof(processor->vendor)) ||
                !memcmp(processor->vendor, "HygonGenuine", sizeof(processor->vendor));

  return is_amd && (processor->signature >> 8 & 15) + (processor->signature >> 20 & 255) >= 0x17;
}

static struct processor processor_read(void)
{
  struct processor processor = {0};
  unsigned last, a, b, c, d;

  __cpuid(0, last, b, c, d);
  memcpy(processor.vendor, &b, 4);
  memcpy(processor.vendor + 4, &d, 4);
  memcpy(processor.vendor + 8, &c, 4);
  __cpuid(1, processor.signature, b, c, d);
  processor.features = (uint64_t)(c & ~bit_OSXSAVE) << 32 | d;
  if (last >= 7)
    __cpuid_count(7, 0, a, processor.more, c, d);
  if (!getenv("LBR_PLAIN_CODE"))
    processor.options =
      (is_loop_fast(&processor) ? PROCESS_LOOP : 0u) | (processor.more & bit_BMI2 ? PROCESS_RORX : 0u);
  return processor;
}

const struct processor *processor_get(void)
{
  static struct processor processor;

  if (!processor.signature)
    processor = processor_read();
  return &processor;
}
