/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by guest.S and guest64.S: the memory that both kinds of guests use, the multiboot header, and code that is the same
 * in both modes.
 */
        .set    LOG, 0x200000           /* what is compared; zero at first */
        .set    LOG_SIZE, 0x8000
        .set    SCREEN, 0xB8000
        .set    STACK_0, 0x300000       /* ends of stacks */
        .set    STACK_3, 0x310000
        .set    FREE, 0x400000          /* and above: the guest's own use */

        .section .multiboot, "a"
        .balign 4
        .long   0x1BADB002, 0, -0x1BADB002

/* Empties the log and the screen, in 32-bit code. */
        .macro  clear
        mov     $LOG, %edi
        xor     %eax, %eax
        mov     $LOG_SIZE / 4, %ecx
        rep stosl
        mov     $SCREEN, %edi
        mov     $0x07200720, %eax
        mov     $1000, %ecx
        rep stosl
        .endm

/* DATA_0 in the data segments but the last two, which get none. */
        .macro  load_segments
        mov     $DATA_0, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        xor     %eax, %eax
        mov     %eax, %fs
        mov     %eax, %gs
        .endm

/* Done: QEMU stops at the first port (ACPI's power off), this project's machine at the second. */
        .macro  power_off
        mov     $0x604, %dx
        mov     $0x2000, %ax
        out     %ax, %dx
        xor     %eax, %eax
        out     %eax, $0xF4
1:      cli
        hlt
        jmp     1b
        .endm

/* The handler of a vector: with the vector on the stack, above an error code or NO_ERROR, to `caught`. */
        .macro  stub vector, has_error
stub_\vector:
        .if     \has_error == 0
        push    $NO_ERROR
        .endif
        push    $\vector
        jmp     caught
        .endm
