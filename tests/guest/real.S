/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: real mode. Arithmetic and its flags with 16 and 32 bits, decimal instructions, shifts, stack, strings that wrap
 * in their segment, interrupts through the vector table, exceptions, A20, and protected mode and back (SDM vol. 3
 * chapter 20). Limits of segments, which QEMU does not check, are left out.
 */
#include "boot.S"

        .set    ALL, 0x8D5
        .set    NO_AF, 0x8C5
        .set    CARRY, 0x801

/* Every pair of the table through an instruction of two operands, with both carries. */
        .macro  pairs instruction, a, b, size, mask
        mov     $value_table, %si
780:    mov     $value_table, %di
781:    .irp    carry, clc, stc
        mov     (%si), %eax
        mov     (%di), %ebx
        pushw   $0x0002
        popfw
        \carry
        \instruction %\b, %\a
        log_flags \mask
        call    log_eax
        .endr
        add     $4, %di
        cmp     $value_table_end, %di
        jb      781b
        add     $4, %si
        cmp     $value_table_end, %si
        jb      780b
        call    fold
        .endm

/* The log so far becomes one sum, so that there is room for more. */
fold:
        pushal
        push    %es
        pushw   $LOG_SEGMENT
        pop     %es
        mov     fold_from, %si
        xor     %edx, %edx
1:      cmp     log_at, %si
        jae     2f
        rol     $5, %edx
        add     %es:(%si), %edx
        add     $4, %si
        jmp     1b
2:      mov     fold_from, %di
        mov     log_at, %cx
        sub     %di, %cx
        shr     $1, %cx
        xor     %ax, %ax
        rep stosw
        mov     fold_from, %di
        mov     %edx, %es:(%di)
        add     $4, %di
        mov     %di, fold_from
        mov     %di, log_at
        pop     %es
        popal
        ret

main:
        mov     $3, %ax
        int     $0x10
        mov     $text, %si
1:      lodsb
        test    %al, %al
        jz      2f
        mov     $0x0E, %ah
        mov     $7, %bx
        int     $0x10
        jmp     1b
2:      call    arithmetic
        call    decimal
        call    shifts
        call    stack
        call    strings
        call    interrupts
        call    gate_a20
        call    protected
        mov     $0x0E2E, %ax
        mov     $7, %bx
        int     $0x10
        jmp     finish

arithmetic:
        .irp    op, add, adc, sub, sbb, cmp
        pairs   \op, ax, bx, 2, ALL
        pairs   \op, eax, ebx, 4, ALL
        pairs   \op, al, bl, 1, ALL
        .endr
        .irp    op, and, or, xor, test
        pairs   \op, ax, bx, 2, NO_AF
        pairs   \op, eax, ebx, 4, NO_AF
        .endr
        pairs   imul, ax, bx, 2, CARRY
        pairs   imul, eax, ebx, 4, CARRY
        pairs   xadd, eax, ebx, 4, ALL
        pairs   bt, eax, ebx, 4, 1
        pairs   btc, eax, ebx, 4, 1
        .irp    op, inc, dec, neg
        mov     $value_table, %si
1:      mov     (%si), %eax
        stc
        \op     %ax
        log_flags ALL
        call    log_eax
        mov     (%si), %eax
        clc
        \op     %eax
        log_flags ALL
        call    log_eax
        add     $4, %si
        cmp     $value_table_end, %si
        jb      1b
        .endr
        call    fold
        .irp    op, mul, imul
        mov     $value_table, %si
1:      mov     $value_table, %di
2:      mov     (%si), %eax
        mulw    (%di)
        mov     (%si), %eax
        \op\()w (%di)
        log_flags CARRY
        call    log_eax
        log     %edx
        mov     (%si), %eax
        \op\()l (%di)
        log_flags CARRY
        call    log_eax
        log     %edx
        add     $4, %di
        cmp     $value_table_end, %di
        jb      2b
        add     $4, %si
        cmp     $value_table_end, %si
        jb      1b
        call    fold
        .endr
        ret

/* Every AL with every CF and AF. */
decimal:
        .irp    op, daa, das, aaa, aas
        xor     %bx, %bx
1:      movzbl  %bl, %eax
        mov     $0x35, %ah
        mov     %bh, %cl                /* bit 0: CF, bit 1: AF */
        and     $3, %cx
        mov     %cx, %dx
        and     $1, %dx
        and     $2, %cx
        shl     $3, %cx
        or      %dx, %cx
        or      $2, %cx
        push    %cx
        popfw
        \op
        .ifc    \op, daa
        log_flags 0x0D5
        .endif
        .ifc    \op, das
        log_flags 0x0D5
        .endif
        .ifc    \op, aaa
        log_flags 0x011
        .endif
        .ifc    \op, aas
        log_flags 0x011
        .endif
        call    log_eax
        inc     %bx
        cmp     $0x400, %bx
        jb      1b
        call    fold
        .endr
        xor     %ebx, %ebx
1:      mov     %bx, %ax
        movzwl  %ax, %eax
        aam     $10
        log_flags 0x0C4
        call    log_eax
        mov     %bx, %ax
        aad     $10
        log_flags 0x0C4
        call    log_eax
        add     $0x0107, %bx
        jnc     1b
        call    fold
        ret

/* Counts 0 to 40; OF only where it is defined. */
shifts:
        .irp    op, rol, ror, rcl, rcr, shl, shr, sar
        mov     $value_table, %si
1:      xor     %cx, %cx
2:      mov     (%si), %eax
        pushw   $0x0003
        popfw
        \op     %cl, %eax
        log_flags 0x0C5
        call    log_eax
        mov     (%si), %eax
        pushw   $0x0002
        popfw
        \op     $1, %ax
        log_flags 0x8C5
        call    log_eax
        inc     %cx
        cmp     $41, %cx
        jb      2b
        add     $4, %si
        cmp     $value_table_end, %si
        jb      1b
        call    fold
        .endr
        .irp    op, shld, shrd
        mov     $value_table, %si
1:      xor     %cx, %cx
2:      mov     (%si), %eax
        mov     4(%si), %ebx
        pushw   $0x0003
        popfw
        \op     %cl, %ebx, %eax
        log_flags 0x0C5
        call    log_eax
        inc     %cx
        cmp     $33, %cx
        jb      2b
        add     $4, %si
        cmp     $value_table_end - 4, %si
        jb      1b
        call    fold
        .endr
        ret

stack:
        log     $0x57AC0001
        mov     %sp, %bp
        pushw   $0x1234
        pushl   $0x12345678
        push    %sp
        push    %cs
        push    %fs
        mov     $7, %cx
1:      sub     $2, %bp
        movzwl  (%bp), %eax
        call    log_eax
        loop    1b
        add     $12, %sp
        mov     %sp, %bp
        enter   $0x10, $0
        movzwl  %sp, %eax
        call    log_eax
        leave
        mov     $0x1111, %ax
        mov     $0x2222, %bx
        pushaw
        pop     %cx
        movzwl  %cx, %eax
        call    log_eax
        add     $14, %sp
        mov     %sp, %dx                /* the stack wraps in its segment */
        mov     $0, %sp
        pushl   $0xABCDEF01
        movzwl  %sp, %eax
        popl    %ebx
        mov     %dx, %sp
        call    log_eax
        log     %ebx
        pushl   $0x00240ED7
        popfl
        pushfl
        pop     %eax
        and     $0x8FF, %eax
        call    log_eax
        pushw   $0x0202
        popfw
        ret

strings:
        log     $0x57120001
        push    %es
        pushw   $0x3000
        pop     %es
        pushw   $0x3000
        pop     %ds
        cld
        xor     %di, %di
        mov     $0x8000, %cx
1:      mov     %di, %ax
        rol     $3, %ax
        stosw
        loop    1b
        mov     $0xFFFB, %si            /* across the end of the segment */
        mov     $0x0102, %di
        mov     $9, %cx
        rep movsb
        mov     $0x0010, %si
        mov     $0xFFFE, %di
        mov     $3, %cx
        rep movsw
        std
        mov     $0x0003, %si
        mov     $0x0203, %di
        mov     $5, %cx
        rep movsb
        cld
        movzwl  %si, %eax
        call    log_eax
        movzwl  %di, %eax
        call    log_eax
        mov     0x0102, %eax
        call    log_eax
        mov     0x0106, %eax
        call    log_eax
        mov     0xFFFC, %eax
        call    log_eax
        mov     0x0000, %eax
        call    log_eax
        mov     0x0200, %eax
        call    log_eax
        mov     $0x77, %al
        movb    %al, 0x345
        xor     %di, %di
        mov     $0xFFFF, %cx
        repne scasb
        log_flags ALL
        movzwl  %di, %eax
        call    log_eax
        xor     %si, %si
        mov     $0x0100, %di
        mov     $0x50, %cx
        repe cmpsw
        log_flags ALL
        movzwl  %cx, %eax
        call    log_eax
        mov     $0x10, %bx
        mov     $0xF3, %al
        xlatb
        movzbl  %al, %eax
        call    log_eax
        les     0x20, %bx
        mov     %es, %ax
        movzwl  %ax, %eax
        call    log_eax
        movzwl  %bx, %eax
        call    log_eax
        xor     %ax, %ax
        mov     %ax, %ds
        pop     %es
        ret

/* ---- interrupts ---- */

        .macro  hook vector, handler
        movw    $\handler, \vector * 4
        movw    $0, \vector * 4 + 2
        .endm

/* Logs what an interrupt pushed; goes on at `resume` if that is not 0. */
caught:
        push    %bp
        mov     %sp, %bp
        movzwl  2(%bp), %eax
        call    log_eax
        movzwl  4(%bp), %eax
        call    log_eax
        movzwl  6(%bp), %eax
        and     $0xFFD5, %eax
        call    log_eax
        pushf
        pop     %ax
        movzwl  %ax, %eax
        and     $0x300, %eax
        call    log_eax
        mov     resume, %ax
        test    %ax, %ax
        jz      1f
        mov     %ax, 2(%bp)
1:      pop     %bp
        iretw

        .macro  try body
        movw    $791f, resume
        pushw   $0x0202
        popfw
        \body
        log     $0x600D0000
791:
        .endm

interrupts:
        .irp    vector, 0, 3, 4, 5, 6
        mov     \vector * 4, %eax
        push    %eax
        hook    \vector, caught
        .endr
        hook    0x60, caught
        try     "xor %cx, %cx; pushw $0x202; popfw; div %cx"
        try     "mov $0x1000, %ax; mov $2, %bl; div %bl"
        try     "ud2"
        try     "int3"
        try     "mov $0x7FFF, %ax; inc %ax; into"
        try     "into"
        try     "int $0x60"
        try     "mov $7, %ax; bound %ax, bounds"
        try     "mov $3, %ax; bound %ax, bounds"
        try     ".byte 0x0F, 0x00, 0xD0" /* LLDT */
        try     "arpl %ax, %bx"
        movw    $0, resume
        int     $0x60
        log     $0x1E7
        push    $0                      /* far calls */
        lcall   $0, $far
        lcall   *far_pointer
        add     $2, %sp
        .irp    vector, 6, 5, 4, 3, 0
        pop     %eax
        mov     %eax, \vector * 4
        .endr
        ret

far:    push    %bp
        mov     %sp, %bp
        movzwl  2(%bp), %eax
        call    log_eax
        movzwl  4(%bp), %eax
        call    log_eax
        pop     %bp
        lret

/* ---- A20 ---- */

gate_a20:
        log     $0xA2000001
        pushw   $0xFFFF
        pop     %fs
        .irp    value, 2, 0, 2
        in      $0x92, %al
        and     $~3, %al
        or      $\value, %al
        out     %al, $0x92
        movl    $0x11110000 + \value, 0x500
        movl    $0x22220000 + \value, %fs:0x510
        mov     0x500, %eax
        call    log_eax
        mov     %fs:0x510, %eax
        call    log_eax
        .endr
        ret

/* ---- protected mode and back ---- */

protected:
        log     $0x9807EC7D
        cli
        lgdtl   gdtr
        mov     %cr0, %eax
        or      $1, %eax
        mov     %eax, %cr0
        ljmp    $0x08, $1f
1:      mov     $0x10, %ax
        mov     %ax, %fs
        mov     $0x100500, %ebx
        mov     %fs:(%ebx), %eax
        call    log_protected
        ljmpl   $0x18, $2f
        .code32
2:      mov     $0x10, %eax
        mov     %eax, %ds
        mov     %eax, %ss
        movzwl  %sp, %esp
        pushl   $0x55AA1234
        pop     %edx
        ljmp    $0x08, $3f
        .code16
3:      mov     $0x20, %ax
        mov     %ax, %ds
        mov     %ax, %ss
        mov     %ax, %fs
        mov     %cr0, %eax
        and     $~1, %al
        mov     %eax, %cr0
        ljmp    $0, $4f
4:      xor     %ax, %ax
        mov     %ax, %ds
        mov     %ax, %ss
        mov     %ax, %fs
        sti
        log     %edx
        smsw    %ax
        movzwl  %ax, %eax
        and     $1, %eax
        call    log_eax
        ret

/* As log_eax, where segments are descriptors. */
log_protected:
        mov     log_at, %di
        movzwl  %di, %edi
        mov     %eax, %fs:LOG_SEGMENT * 16(%edi)
        addw    $4, log_at
        ret

        .balign 8
gdt:    .quad   0
        .quad   0x00009B000000FFFF      /* 16-bit code */
        .quad   0x00CF93000000FFFF
        .quad   0x00CF9B000000FFFF
        .quad   0x000093000000FFFF
gdtr:   .word   5 * 8 - 1
        .long   gdt
resume: .word   0
fold_from:
        .word   0
bounds: .word   -5, 5
far_pointer:
        .word   far, 0
        .balign 4
value_table:
        .long   0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x12345678, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xA5A55A5A
value_table_end:
text:   .asciz  "real mode"
        .org    36 * 512 - 1
        .byte   0
