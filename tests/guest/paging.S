/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: paging with 32-bit entries (4 KiB, 4 MiB) and with PAE (2 MiB, NX): faults with their error codes, accessed and
 * dirty bits, write protection, global pages, INVLPG, accesses across pages (SDM vol. 3 chapter 4). Left out: reserved
 * bits, whose faults lack P in QEMU; the accessed bit that it sets in PAE's pointers; instructions that read and write a
 * page that is not there, which it calls reads.
 */
        .macro  more_descriptors
        .quad   0
        .endm
#include "guest.S"

        .set    DIRECTORY, FREE         /* tables */
        .set    TABLE, FREE + 0x1000
        .set    POINTERS, FREE + 0x2000
        .set    DIRECTORY_PAE, FREE + 0x3000
        .set    TABLE_PAE, FREE + 0x4000
        .set    PAGES, FREE + 0x10000   /* physical pages that the tests map */
        .set    WINDOW, 0x40000000      /* where they are mapped */

        .set    P, 1
        .set    W, 2
        .set    U, 4
        .set    A, 0x20
        .set    D, 0x40
        .set    PS, 0x80
        .set    G, 0x100

        .macro  log_entry at
        mov     \at, %eax
        call    log_eax
        .endm

/* Puts a mark into each physical page. */
marks_make:
        mov     $PAGES, %edi
        mov     $16, %ecx
1:      mov     %edi, (%edi)
        movl    $0x90909090, 4(%edi)    /* NOPs and a RET: may be called */
        movl    $0xC3909090, 8(%edi)
        mov     %edi, 0xFFC(%edi)
        add     $0x1000, %edi
        loop    1b
        ret

reload:
        mov     %cr3, %eax
        mov     %eax, %cr3
        ret

main:
        say     0, "paging: 32-bit entries, PAE"
        call    marks_make
        call    plain_make
        call    plain
        call    rights
        call    large
        call    pae_make
        call    pae
        mov     %cr0, %eax
        and     $0x7FFFFFFF, %eax
        mov     %eax, %cr0
        say     24, "done"
        jmp     finish

/* ---- 32-bit entries ---- */

/* Identity for the first 8 MiB by 4 MiB pages, and a table at WINDOW. */
plain_make:
        mov     %cr4, %eax
        or      $0x10, %eax             /* PSE */
        mov     %eax, %cr4
        movl    $0 | P | W | U | PS, DIRECTORY
        movl    $0x400000 + (P | W | U | PS), DIRECTORY + 4
        movl    $TABLE + (P | W | U), DIRECTORY + (WINDOW >> 20)
        movl    $PAGES + 0x0000 + (P | W | U), TABLE + 0x00
        movl    $PAGES + 0x1000 + (P | U), TABLE + 0x04
        movl    $PAGES + 0x2000 + (P | W), TABLE + 0x08
        movl    $PAGES + 0x3000 + (P), TABLE + 0x0C
        movl    $PAGES + 0x4000 + (W | U), TABLE + 0x10
        movl    $PAGES + 0x5000 + (P | W | U | G), TABLE + 0x14
        movl    $PAGES + 0x6000 + (P | W | U), TABLE + 0x18
        movl    $PAGES + 0x8000 + (P | W | U), TABLE + 0x1C
        movl    $PAGES + 0x9000 + (P | W | U), TABLE + 0x20
        mov     $DIRECTORY, %eax
        mov     %eax, %cr3
        mov     %cr0, %eax
        or      $0x80000000, %eax
        mov     %eax, %cr0
        jmp     1f
1:      ret

plain:
        log     WINDOW                  /* reads, and what they do to the tables */
        log_entry TABLE
        log_entry DIRECTORY + (WINDOW >> 20)
        movl    $1, WINDOW + 0x20
        log_entry TABLE
        log     WINDOW + 0x6FFE         /* across two pages that do not lie together */
        movl    $0x11223344, WINDOW + 0x6FFD
        log     PAGES + 0x6FFC
        log     PAGES + 0x8000
        log_entry TABLE + 0x18
        log_entry TABLE + 0x1C
        call    *call_to
        log_entry TABLE + 0x20
        try     "mov WINDOW + 0x4000, %eax"
        try     "movb $1, WINDOW + 0x4000"
        try     "mov WINDOW + 0x400000, %eax"
        try     "mov WINDOW + 0x3FFF, %eax"
        try     "movl $5, WINDOW + 0x3FFE"
        log     PAGES + 0x3FFC
        try     "mov $WINDOW + 0x4010, %eax; call *%eax"
        try     "mov $WINDOW + 0x4010, %eax; jmp *%eax"
        try     "mov $0xC0000000, %eax; movl $1, (%eax)"
        ret

/* What levels 0 and 3 may do, without and with CR0.WP. */
        .macro  each_page how
        \how    "mov WINDOW + 0x0000, %eax"
        \how    "mov WINDOW + 0x1000, %eax"
        \how    "mov WINDOW + 0x2000, %eax"
        \how    "mov WINDOW + 0x3000, %eax"
        \how    "mov %eax, WINDOW + 0x0030"
        \how    "mov %eax, WINDOW + 0x1030"
        \how    "mov %eax, WINDOW + 0x2030"
        \how    "mov %eax, WINDOW + 0x3030"
        \how    "addl $1, WINDOW + 0x1040"
        \how    "mov $WINDOW + 0x2004, %eax; call *%eax"
        .endm

        .macro  log_tables
        .irp    offset, 0, 4, 8, 0xC, 0x10, 0x14
        log_entry TABLE + \offset
        .endr
        .endm

rights:
        log     $0x516A0001
        each_page try
        each_page try_3
        log_tables
        mov     %cr0, %eax
        or      $0x10000, %eax
        mov     %eax, %cr0
        log     $0x516A0002
        each_page try
        each_page try_3
        log_tables
        mov     %cr0, %eax
        and     $~0x10000, %eax
        mov     %eax, %cr0
        log     $0x516A0003             /* the directory's entry restricts, too */
        andl    $~U, DIRECTORY + (WINDOW >> 20)
        call    reload
        try_3   "mov WINDOW, %eax"
        orl     $U, DIRECTORY + (WINDOW >> 20)
        andl    $~W, DIRECTORY + (WINDOW >> 20)
        call    reload
        try_3   "mov %eax, WINDOW"
        try_3   "mov WINDOW, %eax"
        orl     $W, DIRECTORY + (WINDOW >> 20)
        call    reload
        log     $0x516A0004             /* INVLPG */
        mov     WINDOW, %eax
        movl    $PAGES + 0x9000 + (P | W | U), TABLE
        invlpg  WINDOW
        log     WINDOW
        movl    $PAGES + 0x0000 + (P | W | U), TABLE
        invlpg  WINDOW
        log     WINDOW
        log     $0x516A0005             /* a frame that is pushed across a page that is not there */
        try     "mov WINDOW + 0x5000, %eax; mov %cr4, %eax; or $0x80, %eax; mov %eax, %cr4; call reload; mov WINDOW + 0x5000, %eax"
        log_entry TABLE + 0x14
        ret

/* 4 MiB pages. */
large:
        log     $0x516A0010
        movl    $0x400000 + (P | W | PS), DIRECTORY + (WINDOW >> 20) + 4
        log     WINDOW + 0x400000 + PAGES - FREE
        log_entry DIRECTORY + (WINDOW >> 20) + 4
        movl    $0x77, WINDOW + 0x400000 + PAGES - FREE + 0x50
        log_entry DIRECTORY + (WINDOW >> 20) + 4
        log     PAGES + 0x50
        try_3   "mov WINDOW + 0x400000, %eax"
        ret

/* ---- PAE ---- */

pae_make:
        mov     %cr0, %eax
        and     $0x7FFFFFFF, %eax
        mov     %eax, %cr0
        movl    $DIRECTORY_PAE + P, POINTERS
        movl    $DIRECTORY_PAE + P, POINTERS + 8
        movl    $0 | P | W | U | PS, DIRECTORY_PAE
        movl    $0x200000 + (P | W | U | PS), DIRECTORY_PAE + 8
        movl    $0x400000 + (P | W | U | PS), DIRECTORY_PAE + 16
        movl    $TABLE_PAE + (P | W | U), DIRECTORY_PAE + 0x800
        movl    $PAGES + (P | W | U), TABLE_PAE
        movl    $PAGES + 0x1000 + (P | U), TABLE_PAE + 8
        movl    $PAGES + 0x2000 + (P | W), TABLE_PAE + 16
        movl    $PAGES + 0x3000 + (P | W | U), TABLE_PAE + 24
        movl    $0x80000000, TABLE_PAE + 28 /* NX */
        mov     %cr4, %eax
        or      $0x20, %eax
        mov     %eax, %cr4
        mov     $POINTERS, %eax
        mov     %eax, %cr3
        mov     $0xC0000080, %ecx
        rdmsr
        or      $0x800, %eax            /* NXE */
        wrmsr
        mov     %cr0, %eax
        or      $0x80000000, %eax
        mov     %eax, %cr0
        jmp     1f
1:      ret

        .set    WINDOW_PAE, 0x20000000  /* entry 0x100 of the directory */

pae:
        log     $0x0AE00001
        log     WINDOW_PAE
        log     WINDOW_PAE + WINDOW     /* through the second pointer */
        log_entry TABLE_PAE
        log_entry DIRECTORY_PAE + 0x800
        movl    $1, WINDOW_PAE + 0x20
        log_entry TABLE_PAE
        try     "mov WINDOW_PAE + 0x3000, %eax"
        try     "mov $WINDOW_PAE + 0x3004, %eax; call *%eax"
        try_3   "mov $WINDOW_PAE + 0x3004, %eax; call *%eax"
        try     "mov $WINDOW_PAE + 0x0004, %eax; call *%eax"
        try_3   "mov %eax, WINDOW_PAE + 0x1000"
        try_3   "mov WINDOW_PAE + 0x2000, %eax"
        try     "mov WINDOW_PAE + 0x5000, %eax"
        try     "mov 0x80000000, %eax"
        try     "mov WINDOW_PAE + 0x200000, %eax"
        movl    $0x400000 + (P | W | PS), DIRECTORY_PAE + 0x808
        movl    $0x80000000, DIRECTORY_PAE + 0x80C
        log     WINDOW_PAE + 0x200000 + PAGES - FREE
        try     "mov $WINDOW_PAE + 0x200000 + PAGES - FREE + 4, %eax; call *%eax"
        log_entry DIRECTORY_PAE + 0x808
        log_entry DIRECTORY_PAE + 0x80C
        ret

        .data
call_to:
        .long   WINDOW + 0x8004
        .text
