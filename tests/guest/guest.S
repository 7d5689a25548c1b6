/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by the 32-bit guests: a multiboot kernel that writes what it sees to a log in memory, and the handlers of all
 * exceptions, which log what was pushed and go on where the test says. A test compares the log and the screen with what
 * another emulator left there.
 *
 * A guest starts at `main` with flat segments, interrupts off, and ends with `jmp finish`.
 */
#include "kernel.S"

        .set    CODE_0, 0x08
        .set    DATA_0, 0x10
        .set    CODE_3, 0x1B
        .set    DATA_3, 0x23
        .set    TSS_0, 0x28
        .set    FIRST_FREE, 0x30        /* first selector that a guest may define, by `more_descriptors` */

        .set    VECTOR_BACK, 0x30       /* from privilege level 3 back to 0 */
        /* RF is not the same everywhere; what else is pushed of the flags is compared. */
        .set    FLAGS_LOGGED, 0xFFFEFFFF
        .set    NO_ERROR, 0xE0E0E0E0

        .text
        .code32
        .globl  _start
_start:
        cli
        cld
        mov     $STACK_0, %esp
        lgdt    gdtr
        lidt    idtr
        ljmp    $CODE_0, $1f
1:      load_segments
        clear
        call    gates_make
        mov     $tss, %eax
        mov     $TSS_0, %edx
        call    base_set
        mov     $TSS_0, %eax
        ltr     %ax
        jmp     main

finish: power_off

/* ---- the log ---- */

/* Appends EAX. Changes nothing else, not even flags. */
log_eax:
        pushf
        push    %edi
        mov     log_at, %edi
        mov     %eax, (%edi)
        addl    $4, log_at
        pop     %edi
        popf
        ret

        .macro  log value:vararg
        push    %eax
        mov     \value, %eax
        call    log_eax
        pop     %eax
        .endm

/* Text at ESI to the screen, at row AH. */
print:
        push    %edi
        push    %eax
        movzbl  %ah, %edi
        imul    $160, %edi
        add     $SCREEN, %edi
1:      lodsb
        test    %al, %al
        jz      2f
        mov     %al, (%edi)
        movb    $0x1F, 1(%edi)
        add     $2, %edi
        jmp     1b
2:      pop     %eax
        pop     %edi
        ret

        .macro  say row, text
        .pushsection .rodata
790:    .asciz  "\text"
        .popsection
        mov     $790b, %esi
        mov     $\row << 8, %eax
        call    print
        .endm

/* ---- exceptions ---- */

/* The test runs `body` at privilege level 0; an exception is logged and ends it. */
        .macro  try body
        movl    $791f, resume
        movl    %esp, resume_esp
        pushl   $2
        popfl
        \body
        log     $0x600D0000             /* nothing happened */
791:    call    settle
        .endm

/* The same at privilege level 3. */
        .macro  try_3 body
        movl    $791f, resume
        movl    %esp, resume_esp
        pushl   $DATA_3
        pushl   $STACK_3
        pushl   $2
        pushl   $CODE_3
        pushl   $792f
        mov     $DATA_3, %eax
        mov     %eax, %ds
        mov     %eax, %es
        iret
792:    \body
        int     $VECTOR_BACK
791:    call    settle
        .endm

/* Segments and flags as tests expect them. */
settle:
        mov     $DATA_0, %eax
        mov     %eax, %ds
        mov     %eax, %es
        xor     %eax, %eax
        mov     %eax, %fs
        mov     %eax, %gs
        pushl   $2
        popfl
        ret

        .irp    vector, 0, 1, 2, 3, 4, 5, 6, 7, 9, 15, 16, 18, 19, 20, 48, 49, 50, 51
        stub    \vector, 0
        .endr
        .irp    vector, 8, 10, 11, 12, 13, 14, 17
        stub    \vector, 1
        .endr

        .macro  pushed offset
        mov     \offset(%esp), %eax
        call    log_eax
        .endm

/* On the stack: vector, error code, EIP, CS, EFLAGS and, from an outer level, ESP and SS (and from virtual-8086 mode ES,
 * DS, FS, GS). */
caught:
        push    %ds
        push    %eax
        mov     $DATA_0, %eax
        mov     %eax, %ds
        pushed  8
        pushed  12
        pushed  16
        movzwl  20(%esp), %eax
        call    log_eax
        mov     24(%esp), %eax
        and     $FLAGS_LOGGED, %eax
        call    log_eax
        testl   $0x20000, 24(%esp)
        jnz     1f
        testb   $3, 20(%esp)
        jz      2f
1:      pushed  28
        movzwl  32(%esp), %eax
        call    log_eax
        testl   $0x20000, 24(%esp)
        jz      2f
        pushed  36
        pushed  40
        pushed  44
        pushed  48
2:      cmpl    $14, 8(%esp)
        jne     3f
        mov     %cr2, %eax
        call    log_eax
3:      cmpl    $1, 8(%esp)
        jne     4f
        mov     %db6, %eax
        call    log_eax
        xor     %eax, %eax
        mov     %eax, %db6
4:      mov     $DATA_0, %eax
        mov     %eax, %ss
        mov     resume_esp, %esp
        jmp     *resume

/* ---- tables ---- */

/* EDX: vector, EAX: handler, ECX: access byte and selector. */
gate_set:
        push    %edi
        lea     idt(,%edx,8), %edi
        mov     %ax, (%edi)
        mov     %cx, 2(%edi)
        shr     $16, %ecx
        movb    $0, 4(%edi)
        mov     %cl, 5(%edi)
        shr     $16, %eax
        mov     %ax, 6(%edi)
        pop     %edi
        ret

/* EDX: selector, EAX: base of its descriptor. */
base_set:
        mov     %ax, gdt + 2(%edx)
        shr     $16, %eax
        mov     %al, gdt + 4(%edx)
        mov     %ah, gdt + 7(%edx)
        ret

        .macro  gate vector, access
        mov     $stub_\vector, %eax
        mov     $\vector, %edx
        mov     $CODE_0 | \access << 16, %ecx
        call    gate_set
        .endm

gates_make:
        .irp    vector, 0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20
        gate    \vector, 0x8E
        .endr
        .irp    vector, 3, 4, 5, 48, 49
        gate    \vector, 0xEE
        .endr
        ret

        .data
        .balign 8
gdt:    .quad   0
        .quad   0x00CF9B000000FFFF      /* CODE_0 */
        .quad   0x00CF93000000FFFF      /* DATA_0 */
        .quad   0x00CFFB000000FFFF      /* CODE_3 */
        .quad   0x00CFF3000000FFFF      /* DATA_3 */
        .quad   0x0000890000000067      /* TSS_0 */
        more_descriptors
gdt_end:
        .balign 8
idt:    .fill   256, 8, 0
idtr:   .word   256 * 8 - 1
        .long   idt
gdtr:   .word   gdt_end - gdt - 1
        .long   gdt
        .balign 4
log_at: .long   LOG
resume: .long   0
resume_esp:
        .long   0
tss:    .long   0
        .long   STACK_0 - 0x1000        /* ESP0: apart from the stack of the tests */
        .long   DATA_0
        .fill   22, 4, 0
        .word   0, 0x68                 /* no I/O bitmap */
        .text
