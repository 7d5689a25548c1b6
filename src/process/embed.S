/* SPDX-License-Identifier: Apache-2.0
 *
 * The built runtime, as data of the program: process_runtime to process_runtime_end.
 */
#include <cet.h> /* adds the CET note; without it, the linker drops the note of all other objects */
.section .rodata
.global process_runtime, process_runtime_end
.balign 16
process_runtime:
  .incbin "lbr-runtime"
process_runtime_end:
  .byte 0

.section .note.GNU-stack, "", @progbits
