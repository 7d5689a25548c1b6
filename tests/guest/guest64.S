/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by the 64-bit guests: a multiboot kernel that enters 64-bit mode, with pages of several kinds at WINDOW, a log in
 * memory, and the handlers of all exceptions, which log what was pushed and go on where the test says. It starts at `main`
 * and ends with `jmp finish`.
 */
        .data
        .balign 8
gdt:    .quad   0
        .quad   0x00CF9B000000FFFF
        .quad   0x00CF93000000FFFF
        .quad   0x00AF9B000000FFFF
        .quad   0x00CFFB000000FFFF
        .quad   0x00CFF3000000FFFF
        .quad   0x00AFFB000000FFFF
        .quad   0x0000890000000067
        .quad   0
        .quad   0, 0                    /* the call gate */
        .quad   0x00CF9B000000FFFF
        .quad   0x00CF13000000FFFF
gdt_end:
        .balign 16
idt:    .fill   512, 8, 0
idtr:   .word   256 * 16 - 1
        .quad   idt
gdtr:   .word   gdt_end - gdt - 1
        .quad   gdt
        .balign 8
log_at: .quad   LOG
resume: .quad   0
resume_rsp:
        .quad   0
saved_rcx:
        .quad   0
saved_rsp:
        .quad   0
tss:    .long   0
        .quad   STACK_RSP0, 0, 0
        .quad   0
        .quad   STACK_IST1, 0, 0, 0, 0, 0, 0
        .quad   0
        .word   0, 0x68

#include "kernel.S"

        .set    NO_ERROR, 0x0E0E0E0E
        .set    STACK_RSP0, 0x2F0000
        .set    STACK_IST1, 0x2E0000
        .set    PML4, FREE
        .set    PDPT, FREE + 0x1000
        .set    PD, FREE + 0x2000
        .set    PT, FREE + 0x3000
        .set    PAGES, FREE + 0x10000
        .set    WINDOW, 0x40000000

        .set    CODE_32, 0x08
        .set    DATA_0, 0x10
        .set    CODE_0, 0x18
        .set    CODE_3_32, 0x23         /* SYSRET's order: 32-bit code, data, 64-bit code */
        .set    DATA_3, 0x2B
        .set    CODE_3, 0x33
        .set    TSS_0, 0x38
        .set    GATE, 0x4B
        .set    CODE_0_32, 0x58
        .set    ABSENT, 0x60

        .text
        .code32
        .globl  _start
_start:
        cli
        cld
        mov     $STACK_0, %esp
        clear
        mov     $FREE, %edi
        xor     %eax, %eax
        mov     $0x20000 / 4, %ecx
        rep stosl
        movl    $PDPT + 7, PML4
        movl    $PD + 7, PDPT
        movl    $PD + 0x4000 + 7, PDPT + 8
        movl    $0x000087, PD
        movl    $0x200087, PD + 8
        movl    $0x400087, PD + 16
        movl    $PT + 7, PD + 0x4000
        movl    $PAGES + 7, PT
        movl    $PAGES + 0x1000 + 5, PT + 8
        movl    $PAGES + 0x2000 + 3, PT + 16
        movl    $PAGES + 0x3000 + 7, PT + 24
        movl    $0x80000000, PT + 28    /* NX */
        movl    $PAGES + 0x4000 + 7, PT + 32
        movl    $0x400083, PD + 0x4008  /* 2 MiB, NX */
        movl    $0x80000000, PD + 0x400C
        movl    $0x90909090, PAGES + 4  /* NOPs, RET */
        movl    $0xC3909090, PAGES + 8
        movl    $0x90909090, PAGES + 0x3004
        movl    $0xC3909090, PAGES + 0x3008
        mov     %cr4, %eax
        or      $0x620, %eax            /* PAE, OSFXSR, OSXMMEXCPT */
        mov     %eax, %cr4
        mov     $PML4, %eax
        mov     %eax, %cr3
        mov     $0xC0000080, %ecx
        rdmsr
        or      $0x901, %eax            /* NXE, LME, SCE */
        wrmsr
        mov     %cr0, %eax
        or      $0x80010000, %eax       /* PG, WP */
        mov     %eax, %cr0
        lgdt    gdtr
        ljmp    $CODE_0, $start_64

        .code64
start_64:
        load_segments
        lidt    idtr
        call    gates_make
        mov     $tss, %eax
        mov     %ax, gdt + TSS_0 + 2
        shr     $16, %eax
        mov     %al, gdt + TSS_0 + 4
        mov     %ah, gdt + TSS_0 + 7
        mov     $TSS_0, %eax
        ltr     %ax
        jmp     main

finish: power_off

log_rax:
        pushfq
        push    %rdi
        mov     log_at, %rdi
        mov     %rax, (%rdi)
        addq    $8, log_at
        pop     %rdi
        popfq
        ret

        .macro  log value:vararg
        push    %rax
        mov     \value, %rax
        call    log_rax
        pop     %rax
        .endm

        .macro  say row, text
        .pushsection .rodata
790:    .asciz  "\text"
        .popsection
        mov     $790b, %esi
        mov     $SCREEN + \row * 160, %edi
        call    print
        .endm

print:  lodsb
        test    %al, %al
        jz      1f
        stosb
        mov     $0x1F, %al
        stosb
        jmp     print
1:      ret

/* ---- exceptions ---- */

        .macro  try body
        movq    $791f, resume
        mov     %rsp, resume_rsp
        pushq   $2
        popfq
        \body
        log     $0x600D0000
791:    call    settle
        .endm

        .macro  try_at_3 code, body
        movq    $791f, resume
        mov     %rsp, resume_rsp
        pushq   $DATA_3
        pushq   $STACK_3
        pushq   $2
        pushq   $\code
        pushq   $792f
        iretq
        .if     \code == CODE_3_32
        .code32
        .endif
792:    \body
        int     $0x30
        .code64
791:    call    settle
        .endm

        .macro  try_3 body
        try_at_3 CODE_3, "\body"
        .endm

        .macro  try_compatible body
        try_at_3 CODE_3_32, "\body"
        .endm

settle:
        load_segments
        pushq   $2
        popfq
        ret

        .irp    vector, 0, 1, 2, 3, 4, 5, 6, 7, 16, 19, 48, 49, 50
        stub    \vector, 0
        .endr
        .irp    vector, 8, 10, 11, 12, 13, 14, 17
        stub    \vector, 1
        .endr

/* Vector, error code, RIP, CS, RFLAGS, RSP, SS; then the stack pointer, and CR2 of page faults. */
caught:
        push    %rax
        push    %rbx
        lea     16(%rsp), %rbx
        .irp    offset, 0, 8, 16, 24, 32, 40, 48
        mov     \offset(%rbx), %rax
        .if     \offset == 32
        and     $~0x10000, %rax
        .endif
        call    log_rax
        .endr
        mov     %rbx, %rax
        call    log_rax
        cmpl    $14, (%rbx)
        jne     1f
        mov     %cr2, %rax
        call    log_rax
1:      mov     8(%rsp), %rax
        mov     (%rsp), %rbx
        mov     resume_rsp, %rsp
        jmp     *resume

/* EDX: vector, EAX: handler, ECX: access byte << 8 | IST. */
gate_set:
        push    %rdi
        shl     $4, %edx
        lea     idt(%rdx), %edi
        mov     %ax, (%rdi)
        movw    $CODE_0, 2(%rdi)
        mov     %cx, 4(%rdi)
        shr     $16, %eax
        mov     %ax, 6(%rdi)
        movq    $0, 8(%rdi)
        pop     %rdi
        ret

        .macro  gate vector, access
        mov     $stub_\vector, %eax
        mov     $\vector, %edx
        mov     $\access, %ecx
        call    gate_set
        .endm

gates_make:
        .irp    vector, 0, 1, 2, 6, 7, 8, 10, 11, 12, 13, 14, 16, 17, 19
        gate    \vector, 0x8E00
        .endr
        .irp    vector, 3, 4, 5, 48, 49
        gate    \vector, 0xEE00
        .endr
        ret
