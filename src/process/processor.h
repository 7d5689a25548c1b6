/* SPDX-License-Identifier: Apache-2.0
 *
 * Which instructions the runtime's code can use on this processor.
 */
#ifndef PROCESS_PROCESSOR_H
#define PROCESS_PROCESSOR_H

#include <stdint.h>

/* PROCESS_LOOP and PROCESS_RORX of enum process_option, as far as they hold here. LBR_PLAIN_CODE in the environment,
 * for tests: neither. */
uint32_t processor_options(void);

#endif
