/* SPDX-License-Identifier: Apache-2.0
 *
 * The built guests, as data of the program: lab_FILE to lab_FILE_end.
 */
#include <cet.h> /* the note without which the linker drops that of all other objects */
.macro embed file
  .global lab_\file, lab_\file\()_end
  .balign 16
lab_\file:
  .incbin "\file\().elf"
lab_\file\()_end:
  .byte 0
.endm

#define LAB(file, name, cpu, other, text) embed file

.section .rodata
#include "cli/lab.def"

.section .note.GNU-stack, "", @progbits
