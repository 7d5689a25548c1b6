/* SPDX-License-Identifier: Apache-2.0
 *
 * A triple fault: no vector at all, and then an interrupt.
 */
  .code16
  .globl _start
_start:
  lidt empty
  int $3
  jmp .
empty:
  .word 0
  .long 0
  .org 510
  .word 0xAA55
