/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: firmware services that do not depend on the machine: text screen, floppy, keyboard buffer, time, A20. What is
 * logged are the registers that interface lists define as results.
 */
#include "boot.S"

        .set    CARRY, 1
        .set    ZERO_FLAG, 0x40

        .macro  log_16 register
        push    %eax
        mov     \register, %ax
        movzwl  %ax, %eax
        call    log_eax
        pop     %eax
        .endm

/* A service: AX and the carry after it. */
        .macro  service vector
        int     $\vector
        log_flags CARRY
        log_16  %ax
        .endm

main:
        call    screen
        call    floppy
        call    keyboard
        call    clock
        call    other
        call    last_words
        jmp     finish

/* ---- INT 10h ---- */

        .macro  log_cursor
        mov     $3, %ah
        mov     $0, %bh
        int     $0x10
        log_16  %dx
        .endm

/* Characters at SI, by teletype output. */
teletype:
        lodsb
        test    %al, %al
        jz      1f
        mov     $0x0E, %ah
        mov     $7, %bx
        int     $0x10
        jmp     teletype
1:      ret

        .macro  type text
        .pushsection .text, 1
790:    .asciz  "\text"
        .popsection
        mov     $790b, %si
        call    teletype
        .endm

        .macro  cursor row, column
        mov     $2, %ah
        mov     $0, %bh
        mov     $\row << 8 | \column, %dx
        int     $0x10
        .endm

screen:
        mov     $3, %ax
        int     $0x10
        log_cursor
        mov     $0x0F, %ah
        int     $0x10
        log_16  %ax
        type    "teletype, then a bell is left out\r\nsecond row\bX"
        log_cursor
        cursor  5, 10
        log_cursor
        mov     $0x0941, %ax            /* character and attribute, five times; the cursor stays */
        mov     $0x001E, %bx
        mov     $5, %cx
        int     $0x10
        log_cursor
        cursor  5, 12
        mov     $0x0A42, %ax            /* character alone */
        mov     $0, %bx
        mov     $1, %cx
        int     $0x10
        mov     $8, %ah
        mov     $0, %bh
        int     $0x10
        log_16  %ax
        cursor  24, 70
        type    "past the end of the last row"
        log_cursor
        mov     $0x0602, %ax            /* a window, two rows up */
        mov     $0x4F, %bh
        mov     $0x0308, %cx
        mov     $0x0614, %dx
        int     $0x10
        mov     $0x0701, %ax            /* one row down */
        mov     $0x2E, %bh
        mov     $0x0A00, %cx
        mov     $0x0C4F, %dx
        int     $0x10
        cursor  12, 0
        type    "in the window"
        mov     $0x0701, %ax
        mov     $0x2E, %bh
        mov     $0x0C00, %cx
        mov     $0x0D09, %dx
        int     $0x10
        mov     $0x0600, %ax            /* clear a window */
        mov     $0x17, %bh
        mov     $0x1405, %cx
        mov     $0x1509, %dx
        int     $0x10
        mov     $1, %ah                 /* shape of the cursor */
        mov     $0x0607, %cx
        int     $0x10
        mov     $3, %ah
        mov     $0, %bh
        int     $0x10
        log_16  %cx
        mov     $0x1301, %ax            /* a string, the cursor moves */
        mov     $0x0007, %bx
        mov     $6, %cx
        mov     $0x0F03, %dx
        push    %bp
        mov     $string, %bp
        int     $0x10
        pop     %bp
        log_cursor
        mov     $0x1303, %ax            /* a long one, each character with its attribute */
        mov     $0x0007, %bx
        mov     $150, %cx
        mov     $0x0A46, %dx
        push    %bp
        mov     $long_string, %bp
        int     $0x10
        pop     %bp
        log_16  %ax
        log_16  %bx
        log_16  %cx
        log_cursor
        mov     $0x1300, %ax            /* a long one that scrolls, the cursor stays */
        mov     $0x0007, %bx            /* the colour of a new row, where firmwares differ */
        mov     $300, %cx
        mov     $0x1700, %dx
        push    %bp
        mov     $long_string, %bp
        int     $0x10
        pop     %bp
        log_cursor
        movzwl  0x44A, %eax             /* columns, cursor and mode in the BIOS data area */
        call    log_eax
        movzwl  0x450, %eax
        call    log_eax
        movzbl  0x449, %eax
        call    log_eax
        movzbl  0x484, %eax
        call    log_eax
        movzwl  0x463, %eax
        call    log_eax
        ret

/* ---- INT 13h, floppy ---- */

        .macro  read_sectors count, cylinder, head, sector
        mov     $0x0200 | \count, %ax
        mov     $\cylinder << 8 | \sector, %cx
        mov     $\head << 8, %dx
        mov     drive, %dl
        mov     $0xC000, %bx
        int     $0x13
        .endm

sum:
        pushaw
        mov     $0xC000, %si
        mov     $256, %cx
        xor     %edx, %edx
1:      lodsw
        rol     $1, %dx
        add     %ax, %dx
        loop    1b
        log     %edx
        popaw
        ret

floppy:
        log     $0x13000001
        mov     $0, %ah
        mov     drive, %dl
        int     $0x13
        log_flags CARRY
        read_sectors 1, 0, 0, 1
        log_flags CARRY
        log_16  %ax
        call    sum
        read_sectors 3, 0, 1, 2
        log_flags CARRY
        log_16  %ax
        call    sum
        read_sectors 1, 79, 1, 18
        log_flags CARRY
        call    sum
        mov     $1, %ah
        mov     drive, %dl
        int     $0x13
        log_flags CARRY
        mov     $8, %ah
        mov     drive, %dl
        push    %es
        xor     %di, %di
        mov     %di, %es
        int     $0x13
        pop     %es
        log_flags CARRY
        log_16  %cx
        and     $0xFF00, %dx
        log_16  %dx
        and     $0xFF, %bx
        log_16  %bx
        mov     $0x41, %ah              /* extensions: not on a floppy */
        mov     $0x55AA, %bx
        mov     drive, %dl
        int     $0x13
        log_flags CARRY
        mov     $0x42, %ah
        mov     drive, %dl
        mov     $packet, %si
        int     $0x13
        log_flags CARRY
        mov     $0x02, %ah              /* a hard disk that is not there */
        mov     $1, %al
        mov     $1, %cx
        mov     $0x0085, %dx
        mov     $0xC000, %bx
        int     $0x13
        log_flags CARRY
        ret

/* ---- INT 16h ---- */

keyboard:
        log     $0x16000001
        mov     $1, %ah
        int     $0x16
        log_flags ZERO_FLAG
        mov     $2, %ah
        int     $0x16
        and     $0xFF, %ax
        log_16  %ax
        mov     $5, %ah                 /* keys into the buffer */
        mov     $0x1E61, %cx
        int     $0x16
        mov     $5, %ah
        mov     $0x3B00, %cx
        int     $0x16
        mov     $1, %ah
        int     $0x16
        log_flags ZERO_FLAG
        log_16  %ax
        mov     $0, %ah
        int     $0x16
        log_16  %ax
        mov     $0, %ah
        int     $0x16
        log_16  %ax
        mov     $1, %ah
        int     $0x16
        log_flags ZERO_FLAG
        ret

/* ---- INT 1Ah, INT 8 ---- */

clock:
        log     $0x1A000001
        mov     $0, %ah
        int     $0x1A
        and     $0xFF, %ax
        log_16  %ax
        mov     $3, %cx                 /* three ticks */
1:      mov     0x46C, %eax
2:      cmp     0x46C, %eax
        je      2b
        loop    1b
        log     $0x1A000003
        mov     $2, %ah
        int     $0x1A
        log_flags CARRY
        mov     $4, %ah
        int     $0x1A
        log_flags CARRY
        hook_1c = 0x1C * 4
        cli                             /* the user's tick */
        mov     hook_1c, %eax
        push    %eax
        movw    $tick, hook_1c
        movw    $0, hook_1c + 2
        sti
3:      cmpb    $2, ticks
        jb      3b
        cli
        pop     %eax
        mov     %eax, hook_1c
        sti
        log     $0x1C000001
        ret

tick:   incb    %cs:ticks
        iretw

/* ---- INT 15h, unknown functions ---- */

other:
        log     $0x15000001
        mov     $0x2401, %ax
        int     $0x15
        log_flags CARRY
        mov     $0x2402, %ax
        int     $0x15
        log_flags CARRY
        log_16  %ax
        mov     $0xBF77, %ax
        int     $0x15
        log_flags CARRY
        mov     $move_table, %si        /* 87h: 32 words from 0x7C00 to 1 MiB + 0x1000, and back */
        mov     $32, %cx
        mov     $0x87, %ah
        int     $0x15
        log_flags CARRY
        movb    $0x10, move_table + 0x14
        movw    $0x1000, move_table + 0x12
        movb    $0, move_table + 0x1C
        movw    $0xC000, move_table + 0x1A
        mov     $32, %cx
        mov     $0x87, %ah
        mov     $move_table, %si
        int     $0x15
        mov     0xC000, %eax
        call    log_eax
        mov     0xC03C, %eax
        call    log_eax
        ret

last_words:
        cursor  23, 0
        type    "done"
        ret

ticks:  .byte   0
string: .ascii  "string"
long_string:
        .set    letter, 0
        .rept   150
        .byte   0x41 + letter % 26, 0x20 + letter % 80
        .set    letter, letter + 1
        .endr
        .balign 4
packet: .byte   16, 0, 1, 0
        .word   0xC000, 0
        .quad   0
        .balign 8
move_table:
        .quad   0, 0
        .word   0xFFFF, 0x7C00
        .byte   0, 0x93, 0, 0
        .word   0xFFFF, 0x1000
        .byte   0x10, 0x93, 0, 0
        .quad   0, 0
