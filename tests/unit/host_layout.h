/* SPDX-License-Identifier: Apache-2.0
 *
 * Where snippets and what they touch lie: at the same low addresses in the test's own process and in the guest. Read by
 * C and by the assembler. What lies between the areas is not mapped, on either side.
 */
#ifndef HOST_LAYOUT_H
#define HOST_LAYOUT_H

#define HOST_WINDOW 0x20000000 /* 2 MiB that the guest has too */
#define HOST_WINDOW_SIZE 0x200000
#define HOST_CODE 0x20000000
#define HOST_CODE_SIZE 0x2000
#define HOST_DATA 0x20010000
#define HOST_DATA_SIZE 0x1000
#define HOST_STACK 0x20020000
#define HOST_STACK_SIZE 0x1000
#define HOST_TABLE 0x20100000 /* what exhaustive snippets write; the second half is what they read */
#define HOST_TABLE_SIZE 0x100000
#define HOST_INPUT 0x20180000

/* The process' own: struct host_context. */
#define HOST_CONTEXT 0x20800000
#define HOST_FLAGS (HOST_CONTEXT + 128)
#define HOST_RIP (HOST_CONTEXT + 136)
#define HOST_RSP (HOST_CONTEXT + 144)
#define HOST_EXIT (HOST_CONTEXT + 152)
#define HOST_FAR (HOST_CONTEXT + 160)
#define HOST_SEGMENTS (HOST_CONTEXT + 168)
#define HOST_STUB (HOST_CONTEXT + 256)

/* How many inputs an exhaustive snippet goes through: two bytes and a carry. */
#define HOST_ENTRIES 0x20000

/* Linux' selectors of user programs, which the guest's GDT repeats. */
#define HOST_CS_32 0x23
#define HOST_DS 0x2b
#define HOST_CS_64 0x33

/* Sorts of snippets. */
#define HOST_RANDOM 0
#define HOST_EXHAUSTIVE 1
#define HOST_TABULAR 2 /* goes through the pairs at HOST_INPUT */

#endif
