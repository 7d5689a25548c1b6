/* SPDX-License-Identifier: Apache-2.0
 *
 * Into a snippet and out of it again, on the host's own CPU. Registers are taken from and put into the context at
 * HOST_CONTEXT, whose address is absolute, so that no register is needed to reach it.
 */
#include "host_layout.h"

        .macro  each_register action
        \action rax, 0
        \action rcx, 1
        \action rdx, 2
        \action rbx, 3
        \action rbp, 5
        \action rsi, 6
        \action rdi, 7
        \action r8, 8
        \action r9, 9
        \action r10, 10
        \action r11, 11
        \action r12, 12
        \action r13, 13
        \action r14, 14
        \action r15, 15
        \action rsp, 4
        .endm

        .macro  load_one name, number
        movq    HOST_CONTEXT + 8 * \number, %\name
        .endm

        .macro  save_one name, number
        movq    %\name, HOST_CONTEXT + 8 * \number
        .endm

        .macro  keep_host
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsp, HOST_RSP
        .endm

        .text
/* void host_enter_64(void): runs the 64-bit code at HOST_RIP, which ends with a jump through HOST_EXIT. */
        .globl  host_enter_64
host_enter_64:
        keep_host
        pushq   HOST_FLAGS
        popfq
        each_register load_one
        jmp     *HOST_RIP

/* void host_enter_32(void): the same in a 32-bit code segment, by the far pointer at HOST_FAR. */
        .globl  host_enter_32
host_enter_32:
        keep_host
        mov     %ds, HOST_SEGMENTS
        mov     %es, HOST_SEGMENTS + 2
        mov     $HOST_DS, %eax
        mov     %eax, %ds
        mov     %eax, %es
        pushq   HOST_FLAGS
        popfq
        each_register load_one
        ljmpl   *HOST_FAR

/* Where a snippet goes when it is done. */
        .globl  host_leave_64
host_leave_64:
        each_register save_one
        mov     HOST_RSP, %rsp
        pushfq
        popq    HOST_FLAGS
        jmp     host_back

        .globl  host_leave_32
host_leave_32:
        each_register save_one
        mov     HOST_RSP, %rsp
        pushfq
        popq    HOST_FLAGS
/* Where the signal handler sends a snippet that trapped; the registers are in the context already. */
        .globl  host_trapped_32
host_trapped_32:
        mov     HOST_SEGMENTS, %ds
        mov     HOST_SEGMENTS + 2, %es
        .globl  host_trapped_64
host_trapped_64:
        mov     HOST_RSP, %rsp
host_back:
        push    $2
        popfq
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret

        .section .note.GNU-stack, "", @progbits
