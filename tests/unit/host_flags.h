/* SPDX-License-Identifier: Apache-2.0
 *
 * Flags that instructions leave undefined.
 */
#ifndef HOST_FLAGS_H
#define HOST_FLAGS_H

#include <stddef.h>
#include <stdint.h>

#include "isa/isa.h"

/* Of one instruction. */
uint32_t host_flags_undefined(const struct isa_instruction *instruction);
/* Of one whose count is known, for operands of `width` bits. */
uint32_t host_flags_undefined_by_count(ZydisMnemonic mnemonic, unsigned count, unsigned width);
/* After a piece of code, if they were defined before. */
uint32_t host_flags_left_undefined(const uint8_t *code, const uint8_t *end, unsigned bits);

#endif
