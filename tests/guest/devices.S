/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: what the devices of a PC do whatever their clock: interrupt controllers, timer, keyboard controller, CMOS,
 * serial port, CRTC registers.
 */
        .macro  more_descriptors
        .quad   0
        .endm
#include "guest.S"

        .macro  put port, value
        mov     $\value, %al
        mov     $\port, %dx
        out     %al, %dx
        .endm

        .macro  get port
        mov     $\port, %dx
        xor     %eax, %eax
        in      %dx, %al
        .endm

        .macro  log_port port, mask=0xFF
        get     \port
        and     $\mask, %eax
        call    log_eax
        .endm

main:
        say     0, "devices"
        call    vectors
        call    pic
        call    pit
        call    irqs
        call    keyboard
        call    cmos
        call    serial
        call    crtc
        say     24, "done"
        jmp     finish

/* ---- 8259A ---- */

pic_init:
        put     0x20, 0x11
        put     0x21, 0x20
        put     0x21, 0x04
        put     0x21, 0x01
        put     0xA0, 0x11
        put     0xA1, 0x28
        put     0xA1, 0x02
        put     0xA1, 0x01
        put     0x21, 0xFF
        put     0xA1, 0xFF
        ret

pic:
        call    pic_init
        log     $0x82590001
        .irp    value, 0x00, 0x55, 0xFB, 0xFF
        put     0x21, \value
        log_port 0x21
        put     0xA1, \value
        log_port 0xA1
        .endr
        put     0x20, 0x0B              /* ISR */
        log_port 0x20
        put     0xA0, 0x0B
        log_port 0xA0
        ret

/* ---- 8254 ---- */

pit:
        log     $0x82540001
        put     0x43, 0x36              /* channel 0, mode 3 */
        put     0x40, 0x00
        put     0x40, 0x40
        put     0x43, 0xE2              /* status of channel 0: mode, access */
        log_port 0x40, 0x3F
        put     0x43, 0xB0              /* channel 2, mode 0, gate on: output goes up when it is done */
        get     0x61
        and     $0xFC, %al
        or      $1, %al
        out     %al, %dx
        put     0x42, 0x00
        put     0x42, 0x08
        log_port 0x61, 0x20
1:      get     0x61
        test    $0x20, %al
        jz      1b
        log     $0x82540002
        put     0x43, 0xE8              /* status of channel 2 */
        log_port 0x42, 0xBF
        put     0x43, 0x94              /* channel 2, low byte alone, mode 2 */
        put     0x42, 0x10
        put     0x43, 0xE8
        log_port 0x42, 0x3F
        get     0x61
        and     $0xFC, %al
        out     %al, %dx
        ret

/* ---- interrupts ---- */

        .macro  irq_stub number
irq_\number:
        push    %eax
        push    %edx
        mov     $\number, %eax
        jmp     irq_common
        .endm
        .irp    number, 0, 1, 8, 15
        irq_stub \number
        .endr

/* Logs the number and the ISR at the first time; counts; EOI. */
irq_common:
        incl    irq_count
        cmpl    $1, irq_count
        jne     1f
        call    log_eax
        push    %eax
        put     0x20, 0x0B
        log_port 0x20
        pop     %eax
1:      cmp     $1, %al
        jne     2f
        push    %eax
        log_port 0x60
        pop     %eax
2:      cmp     $8, %al
        jb      3f
        put     0xA0, 0x20
3:      put     0x20, 0x20
        pop     %edx
        pop     %eax
        iret

        .macro  irq_gate vector, number
        mov     $irq_\number, %eax
        mov     $\vector, %edx
        mov     $CODE_0 | 0x8E0000, %ecx
        call    gate_set
        .endm

vectors:
        irq_gate 0x20, 0
        irq_gate 0x21, 1
        irq_gate 0x28, 8
        irq_gate 0x2F, 15
        ret

irqs:
        log     $0x1E000001
        movl    $0, irq_count
        put     0x43, 0x34              /* mode 2, about 1 kHz */
        put     0x40, 0xA9
        put     0x40, 0x04
        put     0x21, 0xFE
        sti
1:      hlt
        cmpl    $5, irq_count
        jb      1b
        cli
        log     $0x1E000002
        put     0x21, 0xFF              /* one that waits while it is masked */
        put     0x20, 0x0A
2:      get     0x20
        test    $1, %al
        jz      2b
        log     $0x1E000003
        movl    $0, irq_count
        sti
        nop
        nop
        log     irq_count
        put     0x21, 0xFE
        nop
        nop
3:      cmpl    $0, irq_count
        je      3b
        cli
        log     $0x1E000004
        put     0x21, 0xFF
        put     0x43, 0x36              /* slow again */
        put     0x40, 0
        put     0x40, 0
        call    pic_init                /* forgets what waits */
        ret

/* ---- 8042 ---- */

kbc_wait_input:
        get     0x64
        test    $2, %al
        jnz     kbc_wait_input
        ret

kbc_read:
        get     0x64
        test    $1, %al
        jz      kbc_read
        get     0x60
        ret

        .macro  kbc_command value
        call    kbc_wait_input
        put     0x64, \value
        .endm

        .macro  kbc_data value
        call    kbc_wait_input
        put     0x60, \value
        .endm

        .macro  kbc_log
        call    kbc_read
        call    log_eax
        .endm

keyboard:
        log     $0x80420001
1:      get     0x64                    /* nothing left from before */
        test    $1, %al
        jz      2f
        get     0x60
        jmp     1b
2:      kbc_command 0xAD
        kbc_command 0xAA                /* self-test */
        kbc_log
        kbc_command 0xAB                /* keyboard line */
        kbc_log
        kbc_command 0x60                /* command byte: no interrupts, translation on */
        kbc_data 0x44
        kbc_command 0x20
        kbc_log
        kbc_command 0xAE
        kbc_data 0xEE                   /* the keyboard: echo */
        kbc_log
        kbc_data 0xED                   /* lamps */
        kbc_log
        kbc_data 0x02
        kbc_log
        kbc_data 0xF2                   /* identify */
        kbc_log
        kbc_log
        kbc_log
        kbc_data 0xF5                   /* no scanning */
        kbc_log
        kbc_data 0xF4
        kbc_log
        log     $0x80420002             /* a byte as if from the keyboard, with IRQ 1 */
        kbc_command 0x60
        kbc_data 0x45
        movl    $0, irq_count
        put     0x21, 0xFD
        sti
        kbc_command 0xD2
        kbc_data 0x1E
3:      cmpl    $0, irq_count
        je      3b
        cli
        put     0x21, 0xFF
        log_port 0x64, 0x03
        ret

/* ---- CMOS and RTC ---- */

        .macro  cmos_select index
        put     0x70, \index
        .endm

cmos:
        log     $0x14680001
        cmos_select 0x50
        put     0x71, 0x5A
        cmos_select 0x51
        put     0x71, 0xA5
        cmos_select 0x50
        log_port 0x71
        cmos_select 0x51
        log_port 0x71
        cmos_select 0x0D                /* the battery is good */
        log_port 0x71, 0x80
        cmos_select 0x0B
        log_port 0x71
        ret

/* ---- 16550 ---- */

serial:
        log     $0x16550001
        put     0x3FF, 0x5A             /* scratch register */
        log_port 0x3FF
        put     0x3FF, 0xA5
        log_port 0x3FF
        put     0x3FB, 0x80             /* divisor */
        put     0x3F8, 0x01
        put     0x3F9, 0x00
        log_port 0x3F8
        log_port 0x3F9
        put     0x3FB, 0x03
        log_port 0x3FB
        log_port 0x3FD, 0x60
        put     0x3F9, 0x00
        log_port 0x3FA, 0x0F
        put     0x3FC, 0x1F             /* loopback: outputs come back as inputs */
        log_port 0x3FE, 0xF0
        put     0x3FC, 0x10
        log_port 0x3FE, 0xF0
        put     0x3F8, 0x42
1:      get     0x3FD
        test    $1, %al
        jz      1b
        log_port 0x3F8
        log_port 0x3FD, 0x01
        put     0x3FC, 0x00
        ret

/* ---- CRTC ---- */

crtc:
        log     $0x68450001
        put     0x3D4, 0x0E
        put     0x3D5, 0x01
        put     0x3D4, 0x0F
        put     0x3D5, 0x23
        log_port 0x3D5
        put     0x3D4, 0x0E
        log_port 0x3D5
        put     0x3D4, 0x0A
        put     0x3D5, 0x0D
        log_port 0x3D5
        ret

        .data
irq_count:
        .long   0
        .text
