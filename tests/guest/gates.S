/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: call gates, task switches, virtual-8086 mode and debug exceptions (SDM vol. 3 chapters 5, 7, 17 and 20). QEMU lacks general detect.
 */
        .macro  more_descriptors
        .quad   0, 0, 0, 0, 0           /* 0x30 to 0x50: gates, made below */
        .quad   0x0000890000000067      /* 0x58: TSS of task B */
        .quad   0x0000050000580000      /* 0x60: task gate to it, made below */
        .quad   0x00CFBB000000FFFF      /* 0x68: code, DPL 1 */
        .quad   0x00CFB3000000FFFF      /* 0x70: data, DPL 1 */
        .quad   0x000089000000002B      /* 0x78: TSS of task C, 16 bits */
        .quad   0x0000890000000067      /* 0x80: TSS of the double fault task */
        .endm
#include "guest.S"

        .set    TASK_B, 0x58
        .set    TASK_C, 0x78
        .set    TASK_D, 0x80
        .set    GATE_COUNTED, 0x33      /* to level 0, two parameters */
        .set    GATE_PLAIN, 0x3B
        .set    GATE_ABSENT, 0x43
        .set    GATE_TO_1, 0x4B
        .set    GATE_16, 0x53
        .set    TASK_GATE, 0x63

        .macro  call_gate selector, target, code, access, parameters
        mov     $\target, %eax
        mov     %ax, gdt + (\selector & ~7)
        movw    $\code, gdt + (\selector & ~7) + 2
        movw    $\parameters | \access << 8, gdt + (\selector & ~7) + 4
        shr     $16, %eax
        mov     %ax, gdt + (\selector & ~7) + 6
        .endm

main:
        say     0, "protected mode: gates, tasks, virtual-8086 mode, debug exceptions"
        call_gate GATE_COUNTED, counted, CODE_0, 0xEC, 2
        call_gate GATE_PLAIN, plain, CODE_0, 0xEC, 0
        call_gate GATE_ABSENT, plain, CODE_0, 0x6C, 0
        call_gate GATE_TO_1, level_1, 0x68, 0xEC, 0
        call_gate GATE_16, low_gate, CODE_0, 0xE4, 1
        movw    $TASK_B, gdt + 0x62
        movw    $0xE500, gdt + 0x64
        mov     $task_b, %eax
        mov     $TASK_B, %edx
        call    base_set
        mov     $task_c, %eax
        mov     $TASK_C, %edx
        call    base_set
        mov     $task_d, %eax
        mov     $TASK_D, %edx
        call    base_set

        call    call_gates
        call    tasks
        call    virtual
        call    debug
        say     24, "done"
        jmp     finish

/* ---- call gates ---- */

/* Logs what a gate left: selectors, and the stack from the return address on. */
log_stack:
        mov     %cs, %eax
        call    log_eax
        mov     %ss, %eax
        call    log_eax
        mov     $6, %ecx
        lea     4(%esp), %ebx
1:      mov     (%ebx), %eax
        call    log_eax
        add     $4, %ebx
        loop    1b
        ret

counted:
        call    log_stack
        lret    $8

plain:
        call    log_stack
        lret

level_1:
        mov     %cs, %eax
        call    log_eax
        mov     %ss, %eax
        call    log_eax
        lcall   $GATE_PLAIN, $0
        lret

call_gates:
        movl    $STACK_0 - 0x2000, tss + 12
        movl    $0x71, tss + 16
        try_3   "pushl $0x11111111; pushl $0x22222222; lcall $GATE_COUNTED, $0x12345678; mov %esp, %ebx"
        log     %ebx
        try_3   "pushl $0x33333333; lcall $GATE_PLAIN, $0; mov %esp, %ebx"
        log     %ebx
        try_3   "lcall $GATE_ABSENT, $0"
        try_3   "lcall $0x30, $0; mov %esp, %ebx"
        try     "lcall $0x38, $0; mov %esp, %eax; call log_eax"
        try     "pushl $5; pushl $6; lcall $0x30, $0; mov %esp, %eax; call log_eax"
        try_3   "lcall $GATE_TO_1, $0; mov %esp, %ebx; mov %ss, %edx"
        log     %ebx
        log     %edx
        try_3   "ljmp $GATE_PLAIN, $0"
        try     "ljmp $GATE_TO_1, $0"
        call_gate GATE_PLAIN, plain, DATA_0, 0xEC, 0
        try_3   "lcall $GATE_PLAIN, $0"
        call_gate GATE_PLAIN, plain, 0, 0xEC, 0
        try_3   "lcall $GATE_PLAIN, $0"
        call_gate GATE_PLAIN, plain, CODE_0, 0x8C, 0
        try_3   "lcall $GATE_PLAIN, $0"
        call_gate GATE_PLAIN, plain, CODE_0, 0xEC, 0
        ret

low_gate:
        nop

/* ---- tasks ---- */

        .macro  log_task
        str     %eax
        call    log_eax
        pushfl
        pop     %eax
        and     $0x7FFF, %eax
        call    log_eax
        mov     %esp, %eax
        call    log_eax
        smsw    %eax
        and     $0xF, %eax
        call    log_eax
        .endm

        .macro  log_access selector
        mov     gdt + \selector + 4, %eax
        and     $0xFF00, %eax
        call    log_eax
        .endm

/* Task B: reached by JMP, CALL and interrupt; logs, then leaves as it was reached. */
entry_b:
        call    log_eax                 /* EAX of its TSS */
        log     %ebx
        log     %ebp
        log_task
        log     task_b                  /* back link */
        log_access TSS_0
        log_access TASK_B
        mov     $0xB0B, %ebx
        iret
        log     $0xB1                   /* entered again behind IRET */
        log_task
        log_access TSS_0
        log_access TASK_B
        ljmp    $TSS_0, $0
        log     $0xB2
        log_task
        iret
        log     $0xB3
        ud2

tasks:
        push    %ebp
        clts
        mov     $0x1234567, %ebp
        log     $0x7A5C0001
        lcall   $TASK_B, $0
        log_task
        log_access TSS_0
        log_access TASK_B
        log     task_b + 0x20           /* EIP and flags that were saved there */
        log     task_b + 0x24
        log     task_b + 0x34
        log     tss + 0x38              /* EBP of this task */
        clts
        log     $0x7A5C0002
        ljmp    $TASK_B, $0
        log_task
        log_access TSS_0
        log_access TASK_B
        clts
        log     $0x7A5C0003
        lcall   $TASK_GATE & ~3, $0     /* through a gate */
        log_task
        clts
        log     $0x7A5C0004
        try     "ljmp $TSS_0, $0"
        try     "lcall $TSS_0, $0"
        try_3   "lcall $TASK_B, $0"
        try     "pushl $0x4002; popfl; movw $0, tss; iret"
        try     "pushl $0x4002; popfl; movw $TASK_B, tss; iret"
        movw    $0, tss

/* A task gate in the IDT, for #UD: the exception's task has no error code to pop. */
        log     $0x7A5C0005
        movl    $TASK_B << 16, idt + 0x33 * 8
        movl    $0xE500, idt + 0x33 * 8 + 4
        movl    $entry_e, task_b + 0x20
        movl    $STACK_0 - 0x3000, task_b + 0x38
        movl    $2, task_b + 0x24
        int     $0x33
        log_task
        log_access TASK_B
        clts
/* The same for #GP, with an error code on the new task's stack. */
        log     $0x7A5C0006
        movl    $TASK_B << 16, idt + 13 * 8
        movl    $0x8500, idt + 13 * 8 + 4
        movl    $entry_f, task_b + 0x20
        movl    $STACK_0 - 0x3000, task_b + 0x38
        movl    $2, task_b + 0x24
        mov     $0xFFF8, %eax
        mov     %eax, %ds               /* skipped by the task: it changes the saved EIP */
        log_task
        clts
        gate    13, 0x8E

/* A TSS that cannot be entered. */
        log     $0x7A5C0007
        movl    $entry_e, task_b + 0x20
        movl    $0x30, task_b + 0x4C    /* CS: a gate */
        movl    $TASK_D << 16, idt + 10 * 8
        movl    $0x8500, idt + 10 * 8 + 4
        lcall   $TASK_B, $0
behind_d:
        log_task
        clts
        gate    10, 0x8E
        pop     %ebp
        ret

entry_e:
        log     $0xE
        log_task
        log     task_b
        iret

entry_f:
        pop     %eax
        call    log_eax
        log_task
        mov     tss + 0x20, %eax        /* the faulting instruction: MOV to DS, two bytes */
        call    log_eax
        addl    $2, tss + 0x20
        iret

/* #TS in the new task's name: the frame is gone, the task gate of #TS is a third task. */
entry_d:
        pop     %eax
        call    log_eax
        log_task
        log     task_d
        log_access TSS_0
        log_access TASK_B
        movb    $0x89, gdt + TSS_0 + 5  /* back to the first */
        movw    $0, tss
        pushfl
        andl    $~0x4000, (%esp)
        popfl
        movl    $behind_d, tss + 0x20
        ljmp    $TSS_0, $0

/* ---- virtual-8086 mode ---- */

        .set    VIRTUAL, 0x8000         /* where the 16-bit code lies */

        .macro  try_virtual first, last
        movl    $791f, resume
        movl    %esp, resume_esp
        mov     $\first, %esi
        mov     $VIRTUAL, %edi
        mov     $\last - \first, %ecx
        rep movsb
        pushl   $0x44                   /* GS, FS, DS, ES */
        pushl   $0x33
        pushl   $0x22
        pushl   $0x11
        pushl   $0x700                  /* SS:ESP */
        pushl   $0x0FFE
        pushl   virtual_flags
        pushl   $VIRTUAL >> 4
        pushl   $0
        iret
791:    call    settle
        .endm

virtual:
        movl    $0x20002, virtual_flags
        try_virtual v_plain, v_plain_end
        log     %ebx
        try_virtual v_segment, v_segment_end
        log     %ebx
        try_virtual v_cli, v_cli_end
        try_virtual v_pushf, v_pushf_end
        try_virtual v_int, v_int_end
        try_virtual v_int3, v_int3_end
        try_virtual v_hlt, v_hlt_end
        try_virtual v_in, v_in_end
        try_virtual v_lldt, v_lldt_end
        try_virtual v_cr, v_cr_end
        try_virtual v_ud, v_ud_end
        movl    $0x23002, virtual_flags /* IOPL 3 */
        try_virtual v_cli, v_cli_end
        try_virtual v_pushf, v_pushf_end
        log     %ebx
        try_virtual v_int, v_int_end
        try_virtual v_iret, v_iret_end
        log     %ebx
        try_virtual v_in, v_in_end
        ret

        .code16
v_plain:
        mov     %cs, %bx
        shl     $16, %ebx
        mov     %ss, %bx
        int3
v_plain_end:
v_segment:
        mov     $0x900, %ax
        mov     %ax, %ds
        movl    $0x12345678, 0x10
        mov     $0x8FF, %ax
        mov     %ax, %es
        movl    %es:0x20, %ebx
        push    %ds
        pop     %fs
        int3
v_segment_end:
v_cli:  cli
        sti
        int3
v_cli_end:
v_pushf:
        pushfw
        pop     %bx
        int3
v_pushf_end:
v_int:  int     $0x31
        int3
v_int_end:
v_int3: int3
v_int3_end:
v_hlt:  hlt
v_hlt_end:
v_in:   in      $0x60, %al
v_in_end:
v_lldt: .byte   0x0F, 0x00, 0xD0
v_lldt_end:
v_cr:   mov     %cr0, %eax
v_cr_end:
v_ud:   ud2
v_ud_end:
v_iret: pushfw
        push    %cs
        call    1f
1:      pop     %ax
        add     $(2f - 1b), %ax
        push    %ax
        iretw
2:      mov     %sp, %bx
        int3
v_iret_end:
        .code32

/* ---- debug exceptions ---- */

/* #DB with a handler of its own: logs and goes on. */
stub_debug:
        push    %eax
        mov     %db6, %eax
        call    log_eax
        mov     4(%esp), %eax
        call    log_eax
        mov     12(%esp), %eax
        and     $0x100, %eax
        call    log_eax
        xor     %eax, %eax
        mov     %eax, %db6
        orl     $0x10000, 12(%esp)      /* RF */
        pop     %eax
        iret

debug:
        mov     $stub_debug, %eax
        mov     $1, %edx
        mov     $CODE_0 | 0x8E0000, %ecx
        call    gate_set
        xor     %eax, %eax
        mov     %eax, %db6
        log     $0xDB000001             /* single steps */
        pushfl
        orl     $0x100, (%esp)
        popfl
        nop
        mov     $3, %ecx
1:      loop    1b
        call    2f
        jmp     3f
2:      ret
3:      pushfl
        andl    $~0x100, (%esp)
        popfl
        nop
        log     $0xDB000002             /* an instruction */
        mov     $4f, %eax
        mov     %eax, %db0
        mov     $0x402, %eax
        mov     %eax, %db7
        nop
4:      nop
        nop
        log     $0xDB000003             /* data, written and read */
        mov     $FREE + 4, %eax
        mov     %eax, %db1
        mov     $FREE + 0x10, %eax
        mov     %eax, %db2
        mov     $0x7D00428, %eax        /* DR1: write 4 bytes, DR2: read or write 2 bytes */
        mov     %eax, %db7
        mov     FREE + 4, %eax
        movb    $1, FREE + 7
        nop
        mov     FREE + 0x10, %al
        nop
        movb    $1, FREE + 0x11
        nop
        movl    $1, FREE + 0x0C
        movl    $1, FREE + 8
        log     $0xDB000005             /* single steps, the second onto an instruction with a breakpoint */
        mov     $6f, %eax
        mov     %eax, %db0
        mov     $0x402, %eax
        mov     %eax, %db7
        pushfl
        orl     $0x100, (%esp)
        popfl
        nop
        nop
6:      nop
        nop
        pushfl
        andl    $~0x100, (%esp)
        popfl
        nop
        log     $0xDB000004
        mov     $0x400, %eax
        mov     %eax, %db7
        mov     %db7, %eax
        call    log_eax
        mov     %db0, %eax
        call    log_eax
        ret

        .data
        .balign 4
virtual_flags:
        .long   0

        .macro  task name, entry, stack
\name:  .long   0
        .fill   6, 4, 0
        .long   0                       /* CR3 */
        .long   \entry, 2               /* EIP, EFLAGS */
        .long   0xEA0, 0xEC0, 0xED0, 0xEB0, \stack, 0xE50, 0xE51, 0xE5D
        .long   DATA_0, CODE_0, DATA_0, DATA_0, 0, 0
        .long   0                       /* LDT */
        .word   0, 0x68
        .endm
        task    task_b, entry_b, STACK_0-0x3000
        task    task_d, entry_d, STACK_0-0x4000
task_c: .fill   22, 2, 0
        .text
