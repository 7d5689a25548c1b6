/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: 64-bit mode. Exceptions with their frames at levels 0 and 3, interrupt stacks (IST), 4-level paging with NX and
 * accessed and dirty bits, SYSCALL and SYSRET, compatibility mode, call gates, far returns, FS and GS bases (SDM vol. 3
 * chapters 4, 5 and 6). QEMU checks no limits, and its error codes for gates of the IDT and its exceptions for addresses
 * of stack and code that are not canonical are not the manual's; RF is not compared.
 */
        .set    LOG, 0x200000
        .set    LOG_SIZE, 0x8000
        .set    SCREEN, 0xB8000
        .set    STACK_0, 0x300000
        .set    STACK_RSP0, 0x2F0000
        .set    STACK_IST1, 0x2E0000
        .set    STACK_3, 0x310000
        .set    FREE, 0x400000
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

        .section .multiboot, "a"
        .balign 4
        .long   0x1BADB002, 0, -0x1BADB002

        .text
        .code32
        .globl  _start
_start:
        cli
        cld
        mov     $STACK_0, %esp
        mov     $LOG, %edi
        xor     %eax, %eax
        mov     $LOG_SIZE / 4, %ecx
        rep stosl
        mov     $SCREEN, %edi
        mov     $0x07200720, %eax
        mov     $1000, %ecx
        rep stosl
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
        mov     $DATA_0, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        xor     %eax, %eax
        mov     %eax, %fs
        mov     %eax, %gs
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

finish:
        mov     $0x604, %dx
        mov     $0x2000, %ax
        out     %ax, %dx
        xor     %eax, %eax
        out     %eax, $0xF4
1:      cli
        hlt
        jmp     1b

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
        mov     $DATA_0, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        xor     %eax, %eax
        mov     %eax, %fs
        mov     %eax, %gs
        pushq   $2
        popfq
        ret

        .macro  stub vector, has_error
stub_\vector:
        .if     \has_error == 0
        pushq   $0x0E0E0E0E
        .endif
        pushq   $\vector
        jmp     caught
        .endm

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
