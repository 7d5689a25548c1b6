/* SPDX-License-Identifier: Apache-2.0
 *
 * What CPUID tells of this processor. In a virtual machine CPUID is slow, so it is asked once.
 */
#ifndef PROCESS_PROCESSOR_H
#define PROCESS_PROCESSOR_H

#include <stdint.h>

struct processor {
  char vendor[12];
  uint32_t signature; /* family, model, stepping: leaf 1, EAX */
  uint64_t features;  /* leaf 1, ECX and EDX, without OSXSAVE */
  uint32_t more;      /* leaf 7, EBX; 0 if there is no such leaf */
  uint32_t options;   /* instructions that the runtime's code can use: PROCESS_LOOP, PROCESS_RORX,
                         PROCESS_TSC and PROCESS_TSCP of enum process_option. LBR_PLAIN_CODE in the environment, for
                         tests: neither of the first two */
};

const struct processor *processor_get(void);

#endif
