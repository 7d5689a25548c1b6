/* SPDX-License-Identifier: Apache-2.0
 *
 * A multiboot kernel. It writes down at 0x2000 what it was given: EAX, EBX, EFLAGS, CR0, x87 control word, SS's base test,
 * then halts. With -DADDRESSES the header has address fields and the file is flat; else it is an ELF file, of 32 or of 64
 * bits: the code is the same.
 */
#define MAGIC 0x1BADB002
#ifdef ADDRESSES
#define FLAGS 0x00010003
#else
#define FLAGS 0x00000003
#endif
  .section .text
  .globl _start
  .balign 4
  .long 0x12345678 /* the header need not be first */
header:
  .long MAGIC, FLAGS, -(MAGIC + FLAGS)
#ifdef ADDRESSES
  .long header, header - 4, edata, end, _start
#endif
  .code32
_start:
  mov %eax, 0x2000
  mov %ebx, 0x2004
  mov $stack, %esp
  pushf
  pop %eax
  mov %eax, 0x2008
  mov %cr0, %eax
  mov %eax, 0x200C
  fnstcw 0x2010
  fnstsw 0x2012
  mov zeros, %eax
  mov %eax, 0x2014
  mov data, %eax
  mov %eax, 0x2018
  mov $0xB8000, %edi
  movl $0x07420741, (%edi)
  cli
  hlt
  jmp .
data:
  .long 0xCAFE
edata:
  .bss
zeros:
  .fill 64, 4, 0
stack:
end:
