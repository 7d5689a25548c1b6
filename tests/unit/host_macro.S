/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by the files of snippets: puts their code and a row of the table (struct host_snippet) where the test finds
 * them. A snippet finds RSI and RDI in the middle of the data page, a stack, and anything in the other registers and
 * flags, DF among them.
 */
#include "host_layout.h"

        .set    DATA, HOST_DATA
        .set    DATA_END, HOST_DATA + HOST_DATA_SIZE
        .set    STACK, HOST_STACK
        .set    TABLE, HOST_TABLE
        .set    INPUT, HOST_INPUT
        .set    ENTRIES, HOST_ENTRIES

        .macro  row_begin name
        .pushsection .rodata
770:    .asciz  "\name"
        .popsection
        .endm

        .macro  row_end bits, sort
        .pushsection snippets, "aw"
        .balign 8
        .quad   770b, 771b, 774b, 772b, 773b
        .long   \bits, \sort
        .popsection
        .endm

/* snippet NAME, "INSTRUCTIONS": 64-bit code that runs once for each set of random registers. */
        .macro  snippet name, body
        row_begin "\name"
        .pushsection snippet_code, "a"
771:
772:
        \body
773:
774:
        .popsection
        row_end 64, HOST_RANDOM
        .endm

/* The same in 32-bit code. */
        .macro  snippet_32 name, body
        row_begin "\name"
        .pushsection snippet_code, "a"
        .code32
771:
772:
        \body
773:
774:
        .code64
        .popsection
        row_end 32, HOST_RANDOM
        .endm
