/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: protection keys of user pages (PKRU) and of supervisor pages (IA32_PKRS): CPUID, RDPKRU, WRPKRU, what each right
 * forbids at levels 0 and 3 with and without CR0.WP, error codes, that a change of rights works at once, PKRU as a component
 * of XSAVE (SDM vol. 3, 4.6.2; vol. 1 chapter 13).
 */
#include "guest64.S"

        .set    CR4_PKE, 1 << 22
        .set    CR4_PKS, 1 << 24
        .set    PKRS, 0x6E1
        .set    IMAGE, PAGES + 0x8000

        .macro  pkru rights
        xor     %ecx, %ecx
        xor     %edx, %edx
        mov     $\rights, %eax
        wrpkru
        .endm

        .macro  pkrs rights
        mov     $PKRS, %ecx
        xor     %edx, %edx
        mov     $\rights, %eax
        wrmsr
        .endm

        .macro  log_pkru
        xor     %ecx, %ecx
        mov     $-1, %rdx
        rdpkru
        call    log_rax
        mov     %rdx, %rax
        call    log_rax
        .endm

/* Entry of the table at WINDOW: its key is in bits 62:59. */
        .macro  key number, key
        andl    $0x87FFFFFF, PT + 8 * \number + 4
        orl     $\key << 27, PT + 8 * \number + 4
        .endm

        .macro  cr4_set bits
        mov     %cr4, %rax
        or      $\bits, %rax
        mov     %rax, %cr4
        .endm

        .macro  log_leaf_7
        mov     $7, %eax
        xor     %ecx, %ecx
        cpuid
        mov     %ecx, %eax
        and     $0x80000018, %eax       /* PKS, OSPKE, PKU */
        call    log_rax
        .endm

main:
        say     0, "protection keys"
        call    without
        call    registers
        call    user_pages
        call    at_once
        call    supervisor_pages
        call    image
        say     24, "done"
        jmp     finish

without:
        log     $0x6B000001
        log_leaf_7
        try     "xor %ecx, %ecx; rdpkru"
        try     "xor %ecx, %ecx; xor %edx, %edx; xor %eax, %eax; wrpkru"
        try_3   "xor %ecx, %ecx; rdpkru"
        cr4_set CR4_PKE
        log_leaf_7
        ret

registers:
        log     $0x6B000002
        log_pkru
        pkru    0xFFFFFFFC
        log_pkru
        pkru    0
        try     "mov $1, %ecx; rdpkru"
        try     "mov $1, %ecx; xor %edx, %edx; xor %eax, %eax; wrpkru"
        try     "xor %ecx, %ecx; mov $1, %edx; xor %eax, %eax; wrpkru"
        try     "movabs $0x100000000, %rcx; mov %rcx, %rdx; mov $0x50, %eax; wrpkru; rdpkru; call log_rax"
        try_3   "xor %ecx, %ecx; xor %edx, %edx; mov $0xC0, %eax; wrpkru; xor %eax, %eax; rdpkru; mov %eax, %ebx"
        log_pkru
        try_3   "mov $1, %ecx; rdpkru"
        ret

/* Keys: 1 of pages 0 (writable), 1 (read-only), 2 (the supervisor's) and 3 (not executable), 2 of page 4. */
        .macro  each_page how
        .irp    page, 0x0000, 0x1000, 0x2000, 0x3000, 0x4000
        \how    "mov WINDOW + \page, %eax"
        \how    "mov %eax, WINDOW + \page + 0x30"
        .endr
        \how    "mov $WINDOW + 4, %eax; call *%rax"
        \how    "mov $WINDOW + 0x3004, %eax; call *%rax"
        .endm

        .macro  each_right set
        .irp    rights, 0x0, 0x4, 0x8, 0xC, 0x30, 0x55555554
        log     $\rights
        \set    \rights
        each_page try
        each_page try_3
        .endr
        \set    0
        .endm

        .macro  with_and_without_wp set
        each_right \set
        mov     %cr0, %rax
        and     $~0x10000, %rax
        mov     %rax, %cr0
        log     $0x6B0000FF
        .irp    rights, 0x4, 0x8
        log     $\rights
        \set    \rights
        each_page try
        .endr
        \set    0
        mov     %cr0, %rax
        or      $0x10000, %rax
        mov     %rax, %cr0
        .endm

user_pages:
        log     $0x6B000003
        key     0, 1
        key     1, 1
        key     2, 1
        key     3, 1
        key     4, 2
        mov     %cr3, %rax
        mov     %rax, %cr3
        with_and_without_wp pkru
        ret

/* Pages that are cached, with rights that change in between, also by a level that may do less. */
at_once:
        log     $0x6B000004
        .rept   2
        try     "mov %eax, WINDOW + 0x50"
        try_3   "mov %eax, WINDOW + 0x54"
        pkru    8
        try     "mov WINDOW + 0x50, %eax"
        try     "mov %eax, WINDOW + 0x50"
        try_3   "mov %eax, WINDOW + 0x54"
        pkru    4
        try     "mov WINDOW + 0x50, %eax"
        try_3   "mov WINDOW + 0x54, %eax"
        try     "mov %eax, WINDOW + 0x4050"
        pkru    0
        .endr
        ret

supervisor_pages:
        log     $0x6B000005
        try     "mov $PKRS, %ecx; rdmsr; call log_rax"
        try     "mov $PKRS, %ecx; xor %eax, %eax; mov $1, %edx; wrmsr"
        pkrs    0xC
        try     "mov WINDOW + 0x2000, %eax"
        pkrs    0
        cr4_set CR4_PKS
        with_and_without_wp pkrs
        pkrs    0x8
        try     "mov $PKRS, %ecx; rdmsr; call log_rax"
        pkrs    0
        ret

/* XSAVE and XRSTOR with PKRU alone; where it lies is the CPU's. */
image:
        log     $0x6B000006
        cr4_set 0x40000                 /* OSXSAVE */
        mov     $0xD, %eax
        mov     $9, %ecx
        cpuid
        mov     %rbx, %r15
        call    log_rax                 /* its size */
        mov     %rcx, %rax
        call    log_rax
        xor     %ecx, %ecx
        xor     %edx, %edx
        mov     $0x203, %eax
        xsetbv
        mov     $0xD, %eax
        xor     %ecx, %ecx
        cpuid
        mov     %rbx, %rax
        sub     %r15, %rax
        call    log_rax                 /* it ends the image */
        pkru    0x12345670
        xor     %edx, %edx
        mov     $0x200, %eax
        xsave   IMAGE
        log     IMAGE + 512
        mov     IMAGE(%r15), %rax
        call    log_rax
        pkru    0x50
        xor     %edx, %edx
        mov     $0x1, %eax
        xrstor  IMAGE                   /* does not ask for it */
        log_pkru
        xor     %edx, %edx
        mov     $0x200, %eax
        xrstor  IMAGE
        log_pkru
        pkru    0x50
        movq    $0, IMAGE + 512
        xor     %edx, %edx
        mov     $0x200, %eax
        xrstor  IMAGE                   /* as after reset */
        log_pkru
        movq    $0x200, IMAGE + 512     /* what is loaded counts at once */
        movl    $0x4, IMAGE(%r15)
        xor     %edx, %edx
        mov     $0x200, %eax
        xrstor  IMAGE
        try     "mov WINDOW, %eax"
        movq    $0x400, IMAGE + 512
        try     "xor %edx, %edx; mov $0x200, %eax; xrstor IMAGE"
        ret
