/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of host instructions whose last operand is an immediate byte, which must be part of the code: one stub for
 * each of the 256 values, STUB_BYTES apart.
 */
#ifndef CPU_STUB_H
#define CPU_STUB_H

#include <stdint.h>

enum { STUB_BYTES = 8 };

/* Defines the table stub_HOST of stubs "HOST $immediate, operands; ret". The name is a local symbol of the file.
 *
 *   STUBS(pshufd, "%xmm1, %xmm0")
 *
 * gives 256 stubs, the third of which is "pshufd $0x02, %xmm1, %xmm0; ret". */
#define STUBS(host, operands)                                                                                          \
  extern const uint8_t stub_##host[] __attribute__((visibility("hidden")));                                            \
  __asm__(".pushsection .text\n\t.balign 16\nstub_" #host ":\n\t"                                                      \
          ".irp high,0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f\n\t.irp low,0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f\n\t"                  \
          ".balign 8\n\t" #host " $0x\\high\\low, " operands "\n\tret\n\t"                                             \
          ".endr\n\t.endr\n\t.popsection");

#endif
