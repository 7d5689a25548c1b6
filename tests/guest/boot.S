/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by the guests that boot from a floppy: the boot sector, which loads the rest of the first cylinder behind
 * itself, and a log at 0x20000. A guest starts at `main` in real mode, with DS, ES and SS 0, and ends with `jmp finish`.
 */
        .set    LOG_SEGMENT, 0x2000
        .set    STACK, 0x7C00

        .text
        .code16
        .globl  _start
_start:
        cli
        cld
        xor     %ax, %ax
        mov     %ax, %ds
        mov     %ax, %es
        mov     %ax, %ss
        mov     $STACK, %sp
        ljmp    $0, $1f
1:      mov     %dl, drive
        sti
        mov     $0x0211, %ax            /* 17 sectors from the second on: all of the first track */
        mov     $0x0002, %cx
        mov     $0, %dh
        mov     $0x7E00, %bx
        int     $0x13
        jc      2f
        mov     $0x0212, %ax            /* and 18 of the other side */
        mov     $0x0001, %cx
        mov     $1, %dh
        mov     $0xA000, %bx
        int     $0x13
        jc      2f
        call    log_clear
        jmp     main
2:      mov     $0x0E46, %ax            /* F: no sectors */
        int     $0x10
        jmp     finish

finish:
        cli
        mov     $0x604, %dx
        mov     $0x2000, %ax
        out     %ax, %dx
        xor     %ax, %ax
        out     %ax, $0xF4
1:      hlt
        jmp     1b

log_clear:
        pushaw
        push    %es
        mov     $LOG_SEGMENT, %ax
        mov     %ax, %es
        xor     %di, %di
        xor     %ax, %ax
        mov     $0x4000, %cx
        rep stosw
        pop     %es
        popaw
        ret

/* Appends EAX. Changes nothing else, not even flags. */
log_eax:
        pushf
        push    %es
        push    %di
        pushw   $LOG_SEGMENT
        pop     %es
        mov     %cs:log_at, %di
        mov     %eax, %es:(%di)
        addw    $4, %cs:log_at
        pop     %di
        pop     %es
        popf
        ret

        .macro  log value:vararg
        push    %eax
        mov     \value, %eax
        call    log_eax
        pop     %eax
        .endm

/* AX, and the flags that are defined. */
        .macro  log_flags mask
        pushf
        push    %eax
        push    %bp
        mov     %sp, %bp
        movzwl  6(%bp), %eax
        and     $\mask, %eax
        call    log_eax
        pop     %bp
        pop     %eax
        popf
        .endm

drive:  .byte   0
        .balign 2
log_at: .word   0
        .org    510
        .word   0xAA55
