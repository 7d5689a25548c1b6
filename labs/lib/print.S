/* SPDX-License-Identifier: Apache-2.0
 *
 * Text on the screen at 0xB8000. It does not scroll: what is written past row 25 stays in the text memory. The characters
 * go through __puts, __putc and __write_char, which INT 0x40 reaches too (service.S).
 */
#include "lab.inc"

.section .text

/* The string at ESI. Keeps all registers. */
.global puts
puts:
  pushad
  call __puts
  popad
  ret

.global println
println:
  push esi
  mov esi, offset newline
  call puts
  pop esi
  ret

.global screen_clear
screen_clear:
  push edi
  mov edi, 0xB8000
  mov ecx, 0x8000 / 4
  mov eax, 0x07200720
  rep stosd
  mov dword ptr [cursor], 0xB8000
  pop edi
  ret

/* AL, AX, EAX, EDX:EAX in hex. Keep all registers. */
.global put_hex8, put_hex16, put_hex32, put_hex64
put_hex64:
  xchg eax, edx
  call put_hex32
  xchg eax, edx
put_hex32:
  ror eax, 16
  call put_hex16
  ror eax, 16
put_hex16:
  ror ax, 8
  call put_hex8
  ror ax, 8
put_hex8:
  ror al, 4
  call put_digit
  ror al, 4
put_digit:
  pushad
  and eax, 15
  mov al, [digits + eax]
  mov ah, 0
  mov [letter], ax
  mov esi, offset letter
  call __puts
  popad
  ret

/* EAX in decimal, at least two places wide. */
.global put_decimal
put_decimal:
  pushad
  mov edi, offset number_end
  mov ecx, 10
1:
  xor edx, edx
  div ecx
  add dl, '0'
  dec edi
  mov [edi], dl
  test eax, eax
  jnz 1b
  cmp edi, offset number_end - 1
  jne 2f
  dec edi
  mov byte ptr [edi], ' '
2:
  mov esi, edi
  call __puts
  popad
  ret

/* ---- what INT 0x40 reaches too ---- */

/* The string at ESI. */
.global __puts, __puts_loop, __puts_jz, __puts_jump, __puts_done
__puts:
  mov edi, esi
__puts_loop:
  mov al, [edi]
  test al, al
__puts_jz:
  jz __puts_done /* taken only once the string has ended */
  mov esi, eax
  call __putc
  inc edi
__puts_jump:
  jmp __puts_loop
__puts_done:
  ret


/* The character in ESI. */
__putc:
  push ebx
  call __write_char
  pop ebx
  ret

/* A character to the screen, a line feed to the next row. */
.global __write_char, __write_char_jump, __write_char_line
__write_char:
  call get_cursor
  and esi, 0xFF
  cmp esi, 10
__write_char_jump:
  je __write_char_line
  or esi, 0x0700
  mov [eax], si
  add eax, 2
  call set_cursor
  ret
__write_char_line:
  sub eax, 0xB8000
  xor edx, edx
  mov ebx, 160
  div ebx
  inc eax
  mul ebx
  add eax, 0xB8000
  call set_cursor
  ret

get_cursor:
  mov eax, [cursor]
  ret

set_cursor:
  mov [cursor], eax
  ret

.section .rodata
digits:
  .ascii "0123456789ABCDEF"
newline:
  .byte 10, 0

.section .data
cursor:
  .long 0xB8000
letter:
  .word 0
number:
  .skip 12
number_end:
  .byte 0
