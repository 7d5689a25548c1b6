/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: suspend to RAM (ACPI's S3). It sleeps by the tables' own numbers until the RTC's alarm, twice, and logs what it
 * finds at its waking vector: memory is kept, all else is reset.
 */
#include "boot.S"

        .macro  cmos_put register, value
        mov     $\register, %al
        out     %al, $0x70
        mov     $\value, %al
        out     %al, $0x71
        .endm

        .macro  cmos_get register
        mov     $\register, %al
        out     %al, $0x70
        xor     %eax, %eax
        in      $0x71, %al
        .endm

        .macro  log_port port
        xor     %eax, %eax
        in      $\port, %al
        call    log_eax
        .endm

main:
        cli
        call    tables

        log     $0x53300001
        call    sleep
        log     $0x53300002
        call    sleep

        mov     $text, %si
1:      lodsb
        test    %al, %al
        jz      finish
        mov     $0x0E, %ah
        xor     %bx, %bx
        int     $0x10
        jmp     1b
text:   .asciz  "slept"

/* ---- going to sleep ---- */

/* The alarm goes off every second. */
sleep:
        mov     %sp, slept_sp
        cmos_get 0x0C
        cmos_put 0x01, 0xFF
        cmos_put 0x03, 0xFF
        cmos_put 0x05, 0xFF
        cmos_put 0x0F, 0x0A             /* which does not decide: it comes from S3 */
        cmos_get 0x0B
        or      $0x20, %al
        out     %al, $0x71
        mov     pm_event, %dx           /* status: ones clear it */
        mov     $0xFFFF, %ax
        out     %ax, %dx
        add     $2, %dx
        mov     $0x0400, %ax            /* RTC_EN */
        out     %ax, %dx
        mov     pm_control, %dx
        mov     sleep_type, %ax
        shl     $10, %ax
        out     %ax, %dx
        or      $0x2000, %ax
        out     %ax, %dx
1:      jmp     1b

/* ---- the tables ---- */

/* GS reaches all memory: it has the limit of a segment of protected mode. */
big:
        lgdtl   gdtr
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        mov     $8, %bx
        mov     %bx, %gs
        and     $0xFE, %al
        mov     %eax, %cr0
        xor     %bx, %bx
        mov     %bx, %gs
        ret

/* RSDP, RSDT, FADT; from there FACS and DSDT. */
tables:
        call    big
        mov     $0xE0000, %esi
1:      cmpl    $0x20445352, %gs:(%esi) /* "RSD PTR " */
        jne     2f
        cmpl    $0x20525450, %gs:4(%esi)
        je      3f
2:      add     $16, %esi
        jmp     1b
3:      mov     %gs:16(%esi), %esi
        add     $36, %esi
4:      mov     %gs:(%esi), %edi
        add     $4, %esi
        cmpl    $0x50434146, %gs:(%edi) /* "FACP" */
        jne     4b
        mov     %gs:56(%edi), %ax
        mov     %ax, pm_event
        mov     %gs:64(%edi), %ax
        mov     %ax, pm_control
        mov     %gs:112(%edi), %eax
        and     $0x40, %eax             /* FIX_RTC: the RTC's wake status is not in PM1 */
        call    log_eax
        mov     %gs:36(%edi), %ebx
        log     %gs:(%ebx)
        movl    $wake, %gs:12(%ebx)
        mov     %gs:40(%edi), %esi
5:      inc     %esi                    /* Name (_S3_, Package () { */
        cmpl    $0x5F33535F, %gs:(%esi)
        jne     5b
        movzbl  %gs:7(%esi), %eax       /* the first element: 1 is OneOp, 0x0A comes before a byte */
        cmp     $0x0A, %al
        jne     6f
        movzbl  %gs:8(%esi), %eax
6:      mov     %ax, sleep_type
        call    log_eax
        ret

/* ---- waking up ---- */

        .balign 16
        .space  5
wake:                                   /* IP is 5 */
        mov     %eax, %cs:saved_eax - wake + 5
        mov     %ds, %cs:saved_ds - wake + 5
        xor     %ax, %ax
        mov     %ax, %ds
        mov     %ebx, saved_ebx
        mov     %ecx, saved_ecx
        mov     %edx, saved_edx
        mov     %esi, saved_esi
        mov     %edi, saved_edi
        mov     %ebp, saved_ebp
        mov     %es, saved_es
        mov     %cs, saved_cs
        mov     %cr0, %eax
        and     $0x80000001, %eax
        mov     %eax, saved_cr0
        pushf
        pop     %ax
        and     $0x0700, %ax            /* TF, IF, DF */
        mov     %ax, saved_flags
        call    1f
1:      pop     %ax
        sub     $1b - wake, %ax
        mov     %ax, saved_ip
        xor     %ax, %ax
        mov     %ax, %es
        mov     %ax, %ss
        mov     slept_sp, %sp
        ljmp    $0, $awake

awake:
        mov     $saved, %si
        mov     $(saved_end - saved) / 4, %cx
1:      lodsl
        call    log_eax
        loop    1b
        xor     %eax, %eax
        mov     pm_event, %dx
        in      %dx, %ax                /* WAK_STS and RTC_STS; the timer's bit may be set or not */
        and     $0xFFFE, %ax
        call    log_eax
        add     $2, %dx
        in      %dx, %ax
        call    log_eax
        mov     pm_control, %dx
        in      %dx, %ax
        and     $0x3C00, %ax
        call    log_eax
        cmos_get 0x0F
        call    log_eax
        cmos_get 0x0B
        call    log_eax
        cmos_get 0x0C
        and     $0xA0, %al
        call    log_eax
        log_port 0x21
        log_port 0xA1
        log_port 0x92
        call    big
        mov     $0xFEE00000, %esi       /* the local APIC is on, LINT0 lets the 8259A through */
        log     %gs:0xF0(%esi)
        mov     %gs:0x350(%esi), %eax
        and     $0x10700, %eax
        call    log_eax
        mov     $3, %ax                 /* the vectors of the firmware are still there */
        int     $0x10
        cli
        ret

        .balign 4
saved:
saved_eax: .long 0
saved_ebx: .long 0
saved_ecx: .long 0
saved_edx: .long 0
saved_esi: .long 0
saved_edi: .long 0
saved_ebp: .long 0
saved_cs: .long 0
saved_ip: .long 0
saved_ds: .long 0
saved_es: .long 0
saved_cr0: .long 0
saved_flags: .long 0
saved_end:

        .balign 8
gdt:    .quad   0
        .quad   0x00CF93000000FFFF
gdtr:   .word   15
        .long   gdt
pm_event:
        .word   0
pm_control:
        .word   0
sleep_type:
        .word   0
slept_sp:
        .word   0
