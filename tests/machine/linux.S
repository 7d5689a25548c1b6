/* SPDX-License-Identifier: Apache-2.0
 *
 * A bzImage: the setup header of Linux's boot protocol 2.15, one sector of setup code, and a kernel. The setup code, which is
 * for boot protocols before 2.10, writes down at 0x3000 what it was given (CS, DS, SS, SP, FLAGS, the command line's address, the
 * heap's end, the initrd's address) and switches the machine off. The kernel writes
 * down at 0x2000 what it was given (ESI, EBX, EFLAGS, CR0, its own address, the selectors), loads its segments anew, says OK on the
 * screen, and switches the machine off.
 */
  .code32
  .globl _start
_start:
  .org 0x1F1
  .byte 1            /* setup_sects */
  .word 0            /* root_flags */
  .long (end - kernel) / 16
  .word 0, 0, 0
  .word 0xAA55       /* boot_flag, at 0x1FE */
  .byte 0xEB, header_end - 0x202
  .ascii "HdrS"
  .word 0x020F       /* version */
  .long 0
  .word 0x1000, 0
  .byte 0, 1         /* type_of_loader; loadflags: LOADED_HIGH */
  .word 0x8000
  .long 0x100000     /* code32_start */
  .long 0, 0         /* ramdisk */
  .long 0
  .word 0, 0
  .long 0            /* cmd_line_ptr */
  .long 0x7FFFFFFF   /* initrd_addr_max */
  .long 0x200000     /* kernel_alignment */
  .byte 1, 21        /* relocatable */
  .word 0
  .long 63           /* cmdline_size */
  .long 0, 0, 0
  .long 0, 0         /* payload */
  .quad 0            /* setup_data */
  .quad 0x400000     /* pref_address */
  .long 0x300000     /* init_size */
  .long 0, 0
header_end:
  .code16
setup:
  xor %ax, %ax
  mov %ax, %es
  mov %cs, %es:0x3000
  mov %ds, %es:0x3002
  mov %ss, %es:0x3004
  mov %sp, %es:0x3006
  pushf
  pop %es:0x3008
  mov 0x228, %eax
  mov %eax, %es:0x300C
  mov 0x224, %ax
  mov %ax, %es:0x3010
  mov 0x218, %eax
  mov %eax, %es:0x3014
  mov $0x604, %dx
  mov $0x3400, %ax
  out %ax, %dx
  hlt
  .code32
  .org 0x400
kernel:
  mov %esi, 0x2000
  mov %ebx, 0x2004
  pushf
  popl 0x2008
  mov %cr0, %eax
  mov %eax, 0x200C
  call here
here:
  popl 0x2010
  mov %cs, 0x2014
  mov %ds, 0x2016
  mov %ss, 0x2018
  mov %ds, %eax
  mov %eax, %es
  mov %eax, %ss
  movl $0x074B074F, 0xB8000
  mov $0x604, %edx
  mov $0x3400, %eax
  out %ax, %dx
  hlt
  .balign 16
end:
