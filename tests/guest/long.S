/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: 64-bit mode. Exceptions with their frames at levels 0 and 3, interrupt stacks (IST), 4-level paging with NX and
 * accessed and dirty bits, SYSCALL and SYSRET, compatibility mode, call gates, far returns, FS and GS bases (SDM vol. 3
 * chapters 4, 5 and 6). QEMU checks no limits, and its error codes for gates of the IDT and its exceptions for addresses
 * of stack and code that are not canonical are not the manual's; RF is not compared.
 */
#include "guest64.S"

/* ---- tests ---- */

main:
        say     0, "64-bit mode"
        call    exceptions
        call    paging
        call    stacks
        call    calls
        call    compatible
        call    bases
        say     24, "done"
        jmp     finish

exceptions:
        log     $0x64000001
        try     "xor %ecx, %ecx; pushq $2; popfq; div %rcx"
        try     "ud2"
        try     "int3"
        try     "int $0x31"
        .irp    code, 0x06, 0x27, 0x60, 0xCE, 0xD4
        try     ".byte \code, 0"
        .endr
        try     "movabs $0x8000000000000000, %rbx; mov (%rbx), %eax"
        try     "mov $ABSENT, %eax; mov %eax, %ds"
        try     "mov $ABSENT, %eax; mov %eax, %ss"
        try     "mov $0xFFF8, %eax; mov %eax, %es"
        try     "xor %eax, %eax; mov %eax, %ss; mov %ss, %eax; call log_rax"
        try     "mov $CODE_0, %eax; mov %eax, %ds; mov %ds, %eax; call log_rax"
        try     "mov $0x2B, %eax; mov %eax, %ss"
        try     "pushq $0; pushq $1f; lretq; 1:"
        try     "pushq $DATA_0; pushq $1f; lretq; 1:"
        try     "mov %cr0, %rax; or $8, %rax; mov %rax, %cr0; fnop"
        try     "clts; fninit"
        try     "mov $TSS_0, %eax; ltr %ax"
        try     "mov $TSS_0 + 8, %eax; ltr %ax"
        try     "xor %eax, %eax; lldt %ax; sldt %eax; call log_rax"
        try_3   "ud2"
        try_3   "int3"
        try_3   "int $0x31"
        try_3   "xor %ecx, %ecx; pushq $2; popfq; div %ecx"
        try_3   "hlt"
        try_3   "cli"
        try_3   "in $0x60, %al"
        try_3   "mov %cr0, %rax"
        try_3   "rdmsr"
        try_3   "swapgs"
        try_3   "sysretq"
        try_3   "mov $DATA_0, %eax; mov %eax, %ds"
        try_3   "xor %eax, %eax; mov %eax, %ss"
        try_3   "pushq $CODE_0; pushq $1f; lretq; 1:"
        try_3   "mov $0x800000, %esp; push %rax"
        ret

paging:
        log     $0x64000002
        log     WINDOW
        log     PT
        movl    $1, WINDOW + 0x20
        log     PT
        log     PD + 0x4000
        log     PDPT + 8
        log     PML4
        try     "mov WINDOW + 0x5000, %eax"
        try     "movl $1, WINDOW + 0x5000"
        try     "movl $1, WINDOW + 0x1000"
        try     "mov $WINDOW + 4, %eax; call *%rax"
        try     "mov $WINDOW + 0x3004, %eax; call *%rax"
        try     "mov $WINDOW + 0x210004, %eax; call *%rax"
        try     "mov WINDOW + 0x210004, %eax"
        try     "movabs $0x00007F0000000000, %rbx; mov (%rbx), %eax"
        try     "movabs $0xFFFF800000000000, %rbx; mov %eax, (%rbx)"
        try     "movabs $0xFFFFFFFFFFFFFFFF, %rbx; mov %al, (%rbx)"
        try_3   "mov WINDOW, %eax"
        try_3   "mov %eax, WINDOW + 0x1000"
        try_3   "mov WINDOW + 0x2000, %eax"
        try_3   "mov $WINDOW + 0x3004, %eax; call *%rax"
        try_3   "mov WINDOW + 0x210000, %eax"
        .irp    offset, 0, 8, 16, 24, 32
        log     PT + \offset
        .endr
        log     PD + 0x4008
        ret

/* Stacks of interrupts: aligned, RSP0, IST. */
stacks:
        log     $0x64000003
        mov     %rsp, %rbp
        sub     $3, %rsp
        try     "int $0x31"
        mov     %rbp, %rsp
        gate    49, 0xEE01
        try     "int $0x31"
        try_3   "int $0x31"
        gate    6, 0x8E01
        try     "ud2"
        try_3   "ud2"
        gate    6, 0x8E00
        gate    49, 0xEE00
/* IRETQ within the level restores RSP and SS as well */
        mov     %rsp, %rbp
        pushq   $0
        pushq   $STACK_3 - 0x100
        pushq   $2
        pushq   $CODE_0
        pushq   $1f
        iretq
1:      mov     %rsp, %rax
        mov     %rbp, %rsp
        call    log_rax
        mov     %ss, %eax
        call    log_rax
        call    settle
/* double fault: not a gate for #GP */
        movb    $0x0E, idt + 13 * 16 + 5
        try     "mov $0xFFF8, %eax; mov %eax, %ds"
        gate    13, 0x8E00
        ret

/* SYSCALL, SYSRET, call gates, far returns. */
        .macro  write_msr number, high, low
        mov     $\number, %ecx
        mov     $\high, %edx
        mov     $\low, %eax
        wrmsr
        .endm

kernel_entry:
        mov     %rcx, saved_rcx
        mov     %rsp, saved_rsp
        mov     $STACK_RSP0, %rsp
        push    %rax
        mov     %rcx, %rax
        call    log_rax
        mov     %r11, %rax
        call    log_rax
        pushfq
        pop     %rax
        call    log_rax
        mov     %cs, %eax
        call    log_rax
        mov     %ss, %eax
        call    log_rax
        pop     %rax
        mov     saved_rsp, %rsp
        mov     saved_rcx, %rcx
        test    %eax, %eax
        jz      1f
        sysretl
1:      sysretq

gate_entry:
        mov     %cs, %eax
        call    log_rax
        mov     %ss, %eax
        call    log_rax
        .irp    offset, 0, 8, 16, 24
        mov     \offset(%rsp), %rax
        call    log_rax
        .endr
        lretq

calls:
        log     $0x64000004
        mov     $0xC0000081, %ecx       /* STAR: SYSRET from 0x20, SYSCALL to CODE_0 */
        mov     $(0x0020 << 16) | CODE_0, %edx
        xor     %eax, %eax
        wrmsr
        write_msr 0xC0000082, 0, kernel_entry
        write_msr 0xC0000083, 0, kernel_entry
        write_msr 0xC0000084, 0, 0xCD5 /* all that QEMU clears anyway */
        try_3   "xor %eax, %eax; pushq $0xAD7; popfq; syscall; mov %cs, %rbx; mov %ss, %rdx"
        log     %rbx
        log     %rdx
        log     %r11
        try_3   "mov $1, %eax; syscall; .code32; mov %cs, %ebx; int $0x30; .code64"
        log     %rbx
        try     "mov $0xC0000080, %ecx; rdmsr; and $~1, %eax; wrmsr; syscall"
        mov     $0xC0000080, %ecx
        rdmsr
        or      $1, %eax
        wrmsr
        mov     $gate_entry, %eax
        mov     %ax, gdt + (GATE & ~7)
        movw    $CODE_0, gdt + (GATE & ~7) + 2
        movw    $0xEC00, gdt + (GATE & ~7) + 4
        shr     $16, %eax
        mov     %ax, gdt + (GATE & ~7) + 6
        movq    $0, gdt + (GATE & ~7) + 8
        movl    $0, FREE + 0x8000
        movw    $GATE, FREE + 0x8004
        try_3   "lcall *FREE + 0x8000; mov %rsp, %rbx"
        log     %rbx
        movw    $GATE & ~3, FREE + 0x8004
        try     "lcall *FREE + 0x8000"
        movb    $0x6C, gdt + (GATE & ~7) + 5
        try     "lcall *FREE + 0x8000"
        movb    $0xEC, gdt + (GATE & ~7) + 5
        movw    $CODE_0_32, gdt + (GATE & ~7) + 2
        try     "lcall *FREE + 0x8000"
        movw    $CODE_0, gdt + (GATE & ~7) + 2
/* level 0 in a 32-bit segment and back */
        movl    $2f, FREE + 0x8000
        movw    $CODE_0_32, FREE + 0x8004
        mov     $DATA_0, %eax
        mov     %eax, %ss
        ljmp    *FREE + 0x8000
        .code32
2:      mov     $-1, %eax
        inc     %eax
        mov     $0x12345678, %ebx
        dec     %ebx
        push    %ebx
        pop     %ecx
        ljmp    $CODE_0, $3f
        .code64
3:      log     %rcx
        call    settle
        ret

/* ---- compatibility mode ---- */

compatible:
        log     $0x64000005
        try_compatible "mov %cs, %ebx; mov %ss, %edx; mov %esp, %esi"
        log     %rbx
        log     %rdx
        log     %rsi
        try_compatible "ud2"
        try_compatible "mov $0x99, %eax; add $0x01, %al; daa; mov %eax, %ebx"
        log     %rbx
        try_compatible "mov $0x7FFFFFFF, %eax; inc %eax; into"
        try_compatible "pushal; popal; mov %esp, %ebx"
        log     %rbx
        try_compatible "mov $DATA_3, %eax; mov %eax, %ds; mov WINDOW + 0x2000, %eax"
        try_compatible "mov $DATA_3, %eax; mov %eax, %ds; mov WINDOW, %ebx"
        log     %rbx
        try_compatible "lcall $GATE, $0; mov %esp, %ebx"
        log     %rbx
        try_compatible "ljmp $CODE_3, $1f; .code64; 1: mov %rsp, %rbx; mov %cs, %edx; int $0x30; .code32"
        log     %rbx
        log     %rdx
        try_compatible "ljmp $TSS_0, $0"
        try_compatible "int $0x31"
        try_compatible "hlt"
        try_compatible ".byte 0x48, 0x40; mov %eax, %ebx"
        try_compatible "pushfl; pop %ebx"
        log     %rbx
        try_compatible "mov $1, %eax; mov $2, %ecx; mov $3, %edx; mov $4, %edi; mov $5, %ebp"
        log     %rcx
        ret

/* ---- FS and GS ---- */

bases:
        log     $0x64000006
        movq    $0x1122334455667788, %rax
        mov     %rax, WINDOW + 0x40
        write_msr 0xC0000100, 0, WINDOW
        write_msr 0xC0000101, 0, 0x12345678
        write_msr 0xC0000102, 0, WINDOW + 0x10
        mov     %fs:0x40, %rax
        call    log_rax
        swapgs
        mov     %gs:0x30, %rax
        call    log_rax
        mov     $0xC0000102, %ecx
        rdmsr
        call    log_rax
        addr32 mov %fs:0x40, %rax
        call    log_rax
        mov     $DATA_3, %eax           /* a selector that is loaded replaces the base */
        mov     %eax, %gs
        mov     $0xC0000101, %ecx
        rdmsr
        call    log_rax
        xor     %eax, %eax
        mov     %eax, %fs
        ret
