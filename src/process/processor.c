/* SPDX-License-Identifier: Apache-2.0
 *
 * See processor.h. SDM vol. 2, CPUID; AMD APM vol. 3, appendix E.
 */
#include "process/processor.h"

#include <cpuid.h>
#include <stdbool.h>
#include <stdio.h>
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

/* Linux uses the time stamp counter itself, or a hypervisor's clock that is made from it, only if it is the same on all
 * processors and never stops. */
static bool is_counter_steady(void)
{
  static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  static const char *const good[] = {"tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n"};
  char name[64] = "";

  FILE *file = fopen(path, "re");
  bool is_read = file && fgets(name, sizeof(name), file);

  if (file)
    fclose(file);
  for (size_t i = 0; is_read && i < sizeof(good) / sizeof(*good); i++)
    if (!strcmp(name, good[i]))
      return true;
  return false;
}

/* Leaf 80000001h, EDX bit 27: RDTSCP. LBR_SYSTEM_CLOCK in the environment, for tests: the counter is not used. */
static unsigned clock_options(void)
{
  unsigned a, b, c, d;

  if (getenv("LBR_SYSTEM_CLOCK") || !is_counter_steady())
    return 0;
  __cpuid(0x80000001, a, b, c, d);
  return PROCESS_TSC | (d >> 27 & 1 ? PROCESS_TSCP : 0u);
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
  processor.options |= clock_options();
  return processor;
}

const struct processor *processor_get(void)
{
  static struct processor processor;

  if (!processor.signature)
    processor = processor_read();
  return &processor;
}
