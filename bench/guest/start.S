/* SPDX-License-Identifier: Apache-2.0
 *
 * The load's entry, from any multiboot loader or from boot.S: flat 32-bit protected mode, EBX points to the boot
 * information. Built for 64 bits, it first maps 4 GiB one to one by 2 MiB pages and enters long mode.
 */
        .section .multiboot, "a"
        .balign 4
        .long   0x1BADB002, 0, -0x1BADB002

        .text
        .code32
        .globl  _start
_start:
        cli
        cld
        mov     $stack_end, %esp
        lgdt    gdtr
        ljmp    $0x08, $1f
1:      mov     $0x10, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $empty, %esi            /* the command line, if there is one */
        test    %ebx, %ebx
        jz      2f
        testb   $4, (%ebx)
        jz      2f
        mov     16(%ebx), %esi
2:
#ifndef __x86_64__
        push    %esi
        call    load_main
#else
        mov     $tables, %edi
        movl    $tables + 0x1003, (%edi)
        xor     %ecx, %ecx
3:      lea     0x2003(%edi), %eax      /* four directories */
        mov     %ecx, %edx
        shl     $12, %edx
        add     %edx, %eax
        mov     %eax, 0x1000(%edi,%ecx,8)
        inc     %ecx
        cmp     $4, %ecx
        jb      3b
        xor     %ecx, %ecx
4:      mov     %ecx, %eax
        shl     $21, %eax
        or      $0x83, %eax
        mov     %eax, 0x2000(%edi,%ecx,8)
        inc     %ecx
        cmp     $2048, %ecx
        jb      4b
        mov     %cr4, %eax
        or      $0x20, %eax
        mov     %eax, %cr4
        mov     %edi, %cr3
        mov     $0xC0000080, %ecx
        rdmsr
        or      $0x100, %eax
        wrmsr
        mov     %cr0, %eax
        or      $0x80000000, %eax
        mov     %eax, %cr0
        ljmp    $0x18, $5f
        .code64
5:      mov     %esi, %edi
        call    load_main
#endif

        .data
        .balign 8
gdt:    .quad   0
        .quad   0x00CF9B000000FFFF
        .quad   0x00CF93000000FFFF
        .quad   0x00AF9B000000FFFF
gdtr:   .word   4 * 8 - 1
        .long   gdt
empty:  .byte   0
        .bss
        .balign 4096
tables: .skip   0x6000
        .skip   0x100000                /* ackermann goes deep */
stack_end:
        .section .note.GNU-stack, "", @progbits
