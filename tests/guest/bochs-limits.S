/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: what protected mode checks at every access, and QEMU does not: limits and types of segments, alignment,
 * reserved bits, general detect, the EXT bit. What it logs is compared with Bochs.
 */
        .macro  more_descriptors
        .quad   0x004093400000000F      /* 0x30: data at FREE, 16 bytes */
        .quad   0x004091400000FFFF      /* 0x38: read-only */
        .quad   0x00409740000000FF      /* 0x40: expand-down, 0x100 and above, 32 bits */
        .quad   0x00009740000000FF      /* 0x48: the same, up to 0xFFFF */
        .quad   0x00C099000000FFFF      /* 0x50: code, execute-only, limit 256 MiB */
        .quad   0x0040F3400000000F      /* 0x58: as 0x30 for level 3 */
        .quad   0x00409B100000FFFF      /* 0x60: code at 1 MiB, 64 KiB */
        .quad   0x00C0934000000000      /* 0x68: data at FREE, 4 KiB by granularity */
        .endm
#include "guest.S"

        .macro  with_fs selector, body
        try     "mov $\selector, %eax; mov %eax, %fs; mov $0x12345678, %eax; \body"
        .endm

        .macro  with_ss pointer, body
        try_3   "mov $0x5B, %eax; mov %eax, %ss; mov $\pointer, %esp; \body"
        .endm

main:
        say     0, "limits"

/* edges of a segment of 16 bytes */
        .irp    offset, 0x0C, 0x0D, 0x0F, 0x10, 0xFFFFFFFF, 0xFFFFFFFC
        with_fs 0x30, "mov %fs:\offset, %eax"
        with_fs 0x30, "mov %eax, %fs:\offset"
        with_fs 0x30, "mov %fs:\offset, %al"
        with_fs 0x30, "mov %ax, %fs:\offset"
        with_fs 0x30, "addl $1, %fs:\offset"
        .endr
        with_fs 0x68, "mov %fs:0xFFC, %eax"
        with_fs 0x68, "mov %fs:0xFFD, %eax"
        with_fs 0x30, "cmpxchg8b %fs:8"
        with_fs 0x30, "cmpxchg8b %fs:9"
        with_fs 0x30, "btl $5, %fs:0x10"

/* types */
        with_fs 0x38, "mov %fs:0, %eax"
        with_fs 0x38, "mov %eax, %fs:0"
        with_fs 0x38, "incl %fs:0"
        with_fs 0x38, "cmpl $0, %fs:0"
        with_fs 0x50, "mov %fs:0, %eax"
        with_fs 0x08, "mov %fs:0x100000, %eax"
        with_fs 0x08, "mov %eax, %fs:FREE"
        with_fs 0x00, "mov %fs:0, %eax"
        with_fs 0x00, "mov %eax, %fs:0"
        with_fs 0x03, "mov %fs:0, %eax"
        try     "mov %eax, %cs:FREE"
        try     "mov %cs:FREE, %eax"

/* expand-down */
        .irp    offset, 0xFC, 0xFF, 0x100, 0xFFFC, 0xFFFE, 0x10000, 0xFFFFFFFC, 0xFFFFFFFE
        with_fs 0x40, "mov %fs:\offset, %eax"
        with_fs 0x48, "mov %fs:\offset, %eax"
        .endr

/* stacks */
        with_ss 0x10, "push %eax"
        with_ss 0x13, "push %eax"
        with_ss 0x14, "mov (%esp), %ecx"
        with_ss 0x0C, "pop %ecx"
        with_ss 0x0D, "pop %ecx"
        with_ss 0x04, "push %eax; push %eax"
        with_ss 0x13, "call 1f; 1:"
        with_ss 0x0D, "ret"
        with_ss 0x10, "mov $0x10, %ebp; mov (%ebp), %eax"
        with_ss 0x10, "mov $0x10, %ebp; enter $0x20, $0; push %eax"
        with_ss 0x10, "pushal"

/* strings that run into the limit */
        with_fs 0x30, "mov $0x30, %eax; mov %eax, %es; mov $FREE, %esi; mov $8, %edi; mov $20, %ecx; rep movsb"
        log     %ecx
        log     %edi
        log     %esi

/* code */
        try     "ljmp $0x60, $0x10000"
        try     "ljmp $0x60, $0xFFFFF"
        try     "pushl $0x60; pushl $0x10000; lret"
        try     "ljmp $0x60, $1f - 0x100000; 1: mov $0x20000, %eax; jmp *%eax"
        try     "ljmp $0x60, $1f - 0x100000; 1: mov $0x20000, %eax; call *%eax"
        try     "ljmp $0x60, $1f - 0x100000; 1: pushl $0x10000; ret"
        try     "ljmp $0x60, $1f - 0x100000; 1: ljmp $CODE_0, $2f; 2:"

/* tables */
        try     "movw $0x18F, idtr; lidt idtr; int $0x32"
        try     "movw $0x18F, idtr; lidt idtr; int $0x31"
        movw    $0x7FF, idtr
        lidt    idtr
        try     "xor %eax, %eax; ltr %ax"
        try     "mov %cr0, %eax; or $0x80000000, %eax; and $~1, %eax; mov %eax, %cr0"
        try     "mov %cr0, %eax; or $0x20000000, %eax; and $~0x40000000, %eax; mov %eax, %cr0"
        try     "mov $0x80000000, %eax; mov %eax, %cr4"
        try     "movb $0x0E, idt + 6 * 8 + 5; ud2"
        movb    $0x8E, idt + 6 * 8 + 5

/* alignment */
        mov     %cr0, %eax
        or      $0x40000, %eax
        mov     %eax, %cr0
        try     "pushl $0x40002; popfl; mov FREE + 1, %eax"
        try_3   "mov FREE + 1, %eax"
        try_3   "pushl $0x40002; popfl; mov FREE + 1, %eax"
        try_3   "pushl $0x40002; popfl; mov FREE + 1, %ax"
        try_3   "pushl $0x40002; popfl; mov %eax, FREE + 2"
        try_3   "pushl $0x40002; popfl; mov FREE + 4, %eax"
        try_3   "pushl $0x40002; popfl; mov FREE + 1, %al"
        try_3   "pushl $0x40002; popfl; dec %esp; push %eax"
        try_3   "mov $0x5B, %eax; mov %eax, %ds; mov 0x10, %eax"

/* general detect */
        try     "mov $0x2400, %eax; mov %eax, %db7; mov %db0, %eax"
        mov     %db7, %eax
        call    log_eax
        try     "mov $0x400, %eax; mov %eax, %db7; mov %db0, %eax"
        say     24, "done"
        jmp     finish
