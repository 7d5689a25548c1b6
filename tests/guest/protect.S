/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: segments and exceptions of 32-bit protected mode, at privilege levels 0 and 3, with error codes and pushed
 * frames (SDM vol. 3 chapters 3, 5 and 6). Left out is what QEMU does not check: limits and types of segments at data
 * accesses, #AC, reserved bits of control registers, the EXT bit of error codes, LTR of a null selector.
 */
        .macro  more_descriptors
        .quad   0x00CF13000000FFFF      /* 0x30: data, not present */
        .quad   0x00CF91000000FFFF      /* 0x38: data, read-only */
        .quad   0x00CF99000000FFFF      /* 0x40: code, execute-only */
        .quad   0x00CF97000000FFFF      /* 0x48: data, expand-down */
        .quad   0x004093000000FFFF      /* 0x50: data, limit 64 KiB in bytes */
        .quad   0x00CF9F000000FFFF      /* 0x58: code, conforming */
        .quad   0x00CF1B000000FFFF      /* 0x60: code, not present */
        .quad   0x00CFB3000000FFFF      /* 0x68: data, DPL 1 */
        .quad   0x000082000000000F      /* 0x70: LDT */
        .quad   0x00000200000000FF      /* 0x78: LDT, not present */
        .quad   0x0000090000000067      /* 0x80: TSS, not present */
        .quad   0x008F93400000FFFF      /* 0x88: data, base 0x400000, 16-bit */
        .quad   0x00CFDF000000FFFF      /* 0x90: code, conforming, DPL 2 */
        .endm
#include "guest.S"

/* Every selector through an instruction that only looks. */
        .macro  look instruction
        xor     %ebx, %ebx
780:    mov     $0xAAAAAAAA, %ecx
        pushl   $2
        popfl
        \instruction
        pushf
        mov     %ecx, %eax
        and     $~0xF0000, %eax         /* LAR leaves them undefined */
        call    log_eax
        pop     %eax
        and     $0x40, %eax
        call    log_eax
        add     $4, %ebx
        cmp     $0xA8, %ebx
        jb      780b
        .endm

main:
        say     0, "protected mode: segments and exceptions"

/* exceptions of instructions, level 0 */
        try     "xor %edx, %edx; mov $5, %eax; xor %ecx, %ecx; pushl $2; popfl; div %ecx"
        try     "mov $0x80000000, %eax; cltd; mov $-1, %ecx; pushl $2; popfl; idiv %ecx"
        try     "mov $0x1234, %ax; mov $1, %bl; div %bl"
        try     "ud2"
        try     ".byte 0x0F, 0xFF, 0xC0"
        try     ".byte 0xF0, 0x90"
        try     "int3"
        try     ".byte 0xCD, 3"
        try     "mov $0x7FFFFFFF, %eax; inc %eax; into"
        try     "into"
        try     "mov $FREE, %ebx; movl $-5, (%ebx); movl $5, 4(%ebx); mov $6, %eax; bound %eax, (%ebx)"
        try     "mov $FREE, %ebx; mov $-5, %eax; bound %eax, (%ebx)"
        try     "mov $FREE, %ebx; mov $-6, %eax; bound %eax, (%ebx)"
        try     "mov %cr0, %eax; or $8, %eax; mov %eax, %cr0; fnop"
        try     "clts; fninit"
        try     "mov %cr0, %eax; or $4, %eax; mov %eax, %cr0; fnop"
        try     "mov %cr0, %eax; and $~0xC, %eax; mov %eax, %cr0; fnop"
        try     "int $0x31"
        try     "int $0x32"
        try     "int $0xFF"

/* the same at level 3, and what is forbidden there */
        try_3   "xor %ecx, %ecx; pushl $2; popfl; div %ecx"
        try_3   "ud2"
        try_3   "int3"
        try_3   "pushl $0x802; popfl; into"
        try_3   "mov $FREE, %ebx; mov $6, %eax; bound %eax, (%ebx)"
        try_3   "int $0x31"
        try_3   "int $0x20"
        try_3   "int $13"
        try_3   "int $0x32"
        try_3   "hlt"
        try_3   "cli"
        try_3   "sti"
        try_3   "in $0x60, %al"
        try_3   "out %al, $0x80"
        try_3   "mov $0x3F8, %dx; insb"
        try_3   "mov %cr0, %eax"
        try_3   "mov %eax, %cr3"
        try_3   "mov %eax, %db7"
        try_3   "lgdt gdtr"
        try_3   "lidt idtr"
        try_3   "lldt %ax"
        try_3   "ltr %ax"
        try_3   "lmsw %ax"
        try_3   "clts"
        try_3   "invlpg (%eax)"
        try_3   "wbinvd"
        try_3   "rdmsr"
        try_3   "mov $0x10, %eax; mov %eax, %ds"
        try_3   "mov $0x13, %eax; mov %eax, %ds"
        try_3   "mov $0x6B, %eax; mov %eax, %ds"
        try_3   "mov $0x10, %eax; mov %eax, %ss"
        try_3   "mov $0x20, %eax; mov %eax, %ss"
        try_3   "mov $0x58, %eax; mov %eax, %ds; mov %ds, %ebx"
        try_3   "ljmp $0x08, $1f; 1:"
        try_3   "ljmp $0x0B, $1f; 1:"
        try_3   "ljmp $0x5B, $1f; 1: mov %cs, %eax"
        try_3   "ljmp $0x93, $1f; 1: mov %cs, %eax"
        try_3   "pushl $0x08; pushl $1f; lret; 1:"
        try_3   "pushfl; pushl $0x08; pushl $1f; iret; 1:"
        try_3   "pushl $0x3FFFFF & ~0x20100; popfl; pushfl; pop %eax; and $0x3200, %eax; mov %eax, %ebx"

/* loading segment registers */
        .irp    selector, 0, 3, 0x08, 0x10, 0x13, 0x1B, 0x23, 0x28, 0x30, 0x38, 0x40, 0x48, 0x50, 0x58, 0x68, 0x6A, 0x70, 0x98, 0xFFF8, 0x14
        try     "mov $\selector, %eax; mov %eax, %ds; mov %ds, %ebx; mov $DATA_0, %eax; mov %eax, %ds; mov %ebx, %eax; call log_eax"
        try     "mov $\selector, %eax; mov %eax, %ss; mov %ss, %ebx; mov $DATA_0, %eax; mov %eax, %ss"
        .endr
        try     "pushl $0x30; pop %es"
        try     "pushl $0x30; pop %fs"
        try     "pushl $0x30; pop %ss"
        try     "movl $0, FREE; movw $0x30, FREE + 4; lgs FREE, %eax"
        try     "movl $STACK_0 - 64, FREE; movw $0x30, FREE + 4; lss FREE, %esp"

/* far transfers that are refused */
        .irp    selector, 0, 3, 0x10, 0x28, 0x30, 0x40, 0x60, 0x70, 0x80, 0x0B, 0x1B, 0x98, 0xFFF8
        try     "ljmp $\selector, $1f; 1: mov %cs, %eax; call log_eax; ljmp $CODE_0, $2f; 2:"
        .endr
        try     "ljmp $0x58, $1f; 1: mov %cs, %eax; call log_eax; ljmp $CODE_0, $2f; 2:"
        try     "lcall $0x10, $1f; 1:"
        try     "lcall $0, $1f; 1:"
        try     "pushl $0; pushl $1f; lret; 1:"
        try     "pushl $0x10; pushl $1f; lret; 1:"
        try     "pushl $0x60; pushl $1f; lret; 1:"
        try     "pushfl; pushl $0x10; pushl $1f; iret; 1:"
        try     "pushl $0; pushl $STACK_3; pushfl; pushl $CODE_3; pushl $1f; iret; 1:"
        try     "pushl $DATA_0; pushl $STACK_3; pushfl; pushl $CODE_3; pushl $1f; iret; 1:"
        try     "pushl $0x33; pushl $STACK_3; pushfl; pushl $CODE_3; pushl $1f; iret; 1:"

/* LDT and TR */
        try     "mov $0x70, %eax; lldt %ax; sldt %ebx; mov %ebx, %eax; call log_eax"
        try     "mov $0x04, %eax; mov %eax, %es"
        try     "mov $0x14, %eax; mov %eax, %es"
        try     "mov $0x74, %eax; lldt %ax"
        try     "mov $0x78, %eax; lldt %ax"
        try     "mov $0x10, %eax; lldt %ax"
        try     "xor %eax, %eax; lldt %ax; sldt %eax; call log_eax"
        try     "mov $0x28, %eax; ltr %ax"
        try     "mov $0x80, %eax; ltr %ax"
        try     "mov $0x10, %eax; ltr %ax"
        try     "str %eax; call log_eax"
        try     "mov $0xFFF0, %eax; lldt %ax"

/* looking at descriptors */
        look    "lar %ebx, %ecx"
        look    "lsl %ebx, %ecx"
        look    "verr %bx"
        look    "verw %bx"
        log     $0xA9910000
        mov     $0x20, %eax
        mov     $0x1B, %ecx
        arpl    %cx, %ax
        pushf
        call    log_eax
        pop     %eax
        and     $0x40, %eax
        call    log_eax

/* control registers */
        try     "smsw %eax; and $0xF, %eax; call log_eax"
        try     ".byte 0x0F, 0x20, 0xC8"
        try     ".byte 0x8E, 0xC8"
        try     ".byte 0x8E, 0xF0"

/* gates that are not there or are bad */
        try     "movb $0x0E, idt + 0x32 * 8 + 5; int $0x32"
        try     "movl $0x00100000, idt + 0x32 * 8; movl $0x8E00, idt + 0x32 * 8 + 4; int $0x32"
        try     "movl $0x00000000, idt + 0x32 * 8; movl $0x8E00, idt + 0x32 * 8 + 4; int $0x32"
        try     "movl $0x00600000, idt + 0x32 * 8; movl $0x8E00, idt + 0x32 * 8 + 4; int $0x32"
        try     "movl $0x00080000, idt + 0x32 * 8; movl $0x8400, idt + 0x32 * 8 + 4; int $0x32"
        try     "movl $0x001B0000, idt + 0x32 * 8; movl $0x8E00, idt + 0x32 * 8 + 4; int $0x32"

/* double fault: #GP whose gate is not present gives #NP, both contributory */
        try     "movb $0x0E, idt + 13 * 8 + 5; mov $0x13, %eax; mov %eax, %ss"
        movb    $0x8E, idt + 13 * 8 + 5
        try     "movb $0x0E, idt + 5; xor %ecx, %ecx; pushl $2; popfl; div %ecx"
        movb    $0x8E, idt + 5

        say     24, "done"
        jmp     finish
