/* SPDX-License-Identifier: Apache-2.0
 *
 * The boot sector of the load's disk image: reads the load from the sectors behind it (INT 13h, function 42h), puts it
 * at 1 MiB and enters it in protected mode as a multiboot loader does. LOAD_SECTORS is how many there are; the command
 * line is the string at offset 0x1A0, which may be changed in the image.
 */
        .set    BUFFER, 0x10000

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
        mov     $0x7C00, %sp
        ljmp    $0, $1f
1:      sti
        mov     $LOAD_SECTORS, %cx
2:      mov     %cx, %ax                /* at most 32 sectors at a time */
        cmp     $32, %ax
        jbe     3f
        mov     $32, %ax
3:      mov     %ax, packet_count
        push    %cx
        push    %ax
        push    %dx
        mov     $packet, %si
        mov     $0x42, %ah
        int     $0x13
        pop     %dx
        pop     %ax
        pop     %cx
        jc      failed
        add     %ax, packet_sector
        sub     %ax, %cx
        shl     $5, %ax
        add     %ax, packet_segment
        test    %cx, %cx
        jnz     2b
        in      $0x92, %al              /* A20 */
        or      $2, %al
        and     $~1, %al
        out     %al, $0x92
        cli
        lgdtl   gdtr
        mov     %cr0, %eax
        or      $1, %eax
        mov     %eax, %cr0
        ljmpl   $0x08, $entry_32

failed:
        mov     $0x0E46, %ax            /* F: the disk cannot be read */
        mov     $7, %bx
        int     $0x10
4:      hlt
        jmp     4b

        .code32
entry_32:
        mov     $0x10, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $0x7C00, %esp
        mov     $BUFFER, %esi
        mov     $0x100000, %edi
        mov     $LOAD_SECTORS * 128, %ecx
        rep movsl
        mov     $LOAD_BSS, %ecx
        xor     %eax, %eax
        rep stosb
        mov     $0x2BADB002, %eax
        mov     $information, %ebx
        mov     $LOAD_ENTRY, %ecx
        jmp     *%ecx

        .balign 4
packet: .byte   16, 0
packet_count:
        .word   0, 0
packet_segment:
        .word   BUFFER >> 4
packet_sector:
        .quad   1
information:
        .long   4, 0, 0, 0, command_line
        .balign 8
gdt:    .quad   0
        .quad   0x00CF9B000000FFFF
        .quad   0x00CF93000000FFFF
gdtr:   .word   3 * 8 - 1
        .long   gdt
        .org    0x1A0
command_line:
        .asciz  "off"
        .org    0x1BE                   /* no partitions */
        .org    510
        .word   0xAA55
