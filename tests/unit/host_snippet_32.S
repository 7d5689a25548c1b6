/* SPDX-License-Identifier: Apache-2.0
 *
 * Snippets of 32-bit code: what 64-bit mode lacks or does in another way.
 */
#include "host_macro.S"

        .irp    form, "daa", "das", "aaa", "aas", "aam", "aad", "aam $7", "aad $0xF0", "aam $0"
        snippet_32 "32: \form", "\form"
        .endr
        .irp    op, inc, dec
        .irp    reg, ax, bx, cx, dx, bp, eax, ebx, ecx, edx, ebp
        snippet_32 "32: \op \reg", "\op %\reg"
        .endr
        .endr
        snippet_32 "32: pusha", "pushal; mov %esp, %eax"
        snippet_32 "32: popa", "popal"
        snippet_32 "32: pushaw", "pushaw"
        snippet_32 "32: popaw", "popaw"
        .irp    form, "%eax", "%esp", "%cx", "$5", "$0x12345678", "(%esi)"
        snippet_32 "32: push \form", "push \form"
        .endr
/* Intel's processors write two bytes of the four, AMD's all. */
        .irp    form, "%cs", "%ds", "%ss", "%es"
        snippet_32 "32: push \form", "push \form; movw $0, 2(%esp)"
        .endr
        .irp    form, "%eax", "%esp", "%cx", "(%esi)", "4(%esp)"
        snippet_32 "32: pop \form", "pop \form"
        .endr
        snippet_32 "32: push and pop ds, es, ss", "push %ds; pop %es; push %ss; pop %ds; push %ds; pop %ss; pushw %ds; popw %es"
        snippet_32 "32: les and lds", "movw $0x2b, 4(%esi); les (%esi), %eax; movw $0x2b, 14(%esi); lds 10(%esi), %ebx; movw $0x2b, 22(%esi); les 20(%esi), %cx"
        snippet_32 "32: lss", "mov %esp, (%esi); movw $0x2b, 4(%esi); lss (%esi), %esp"
        snippet_32 "32: les of a bad selector", "movw $0x10, 4(%esi); les (%esi), %eax"
        snippet_32 "32: bound, inside", "and $0x7F, %eax; movl $0, (%esi); movl $0x7F, 4(%esi); bound %eax, (%esi)"
        snippet_32 "32: bound", "bound %eax, (%esi)"
        snippet_32 "32: bound 16", "bound %ax, (%esi)"
        snippet_32 "32: into", "into"
        snippet_32 "32: arpl", "arpl %ax, %bx; setz %cl; arpl %dx, (%esi)"
        snippet_32 "32: salc", ".byte 0xD6"
        snippet_32 "32: addressing 16", "addr16 lea 5(%bx,%si), %eax; addr16 lea (%bp,%di), %ecx; addr16 lea 0x1234(%bx), %edx"
        snippet_32 "32: addressing", "movzbl %cl, %ecx; mov (%esi,%ecx), %eax; mov -1(%edi,%ecx,2), %ebx; mov DATA(,%ecx,4), %edx; mov %al, 4(%esp)"
        snippet_32 "32: mov offset", "mov DATA, %al; mov %eax, DATA + 7; mov DATA + 9, %ax; mov %al, DATA + 0x31"
        snippet_32 "32: call and ret", "call 1f; not %eax; jmp 2f; 1: lea 7(%ebx), %ebx; ret $4; 2: sub $4, %esp"
        snippet_32 "32: call memory", "call 1f; 1: pop %eax; lea 2f - 1b(%eax), %eax; mov %eax, (%esi); call *(%esi); jmp 3f; 2: inc %ebx; ret; 3:"
        snippet_32 "32: far call and retf", "call 1f; 1: pop %eax; lea 2f - 1b(%eax), %eax; mov %eax, (%esi); movw $0x23, 4(%esi); lcall *(%esi); jmp 3f; 2: mov %esp, %ebx; lret; 3:"
        snippet_32 "32: iret", "mov %eax, %ebx; and $0xCD5, %ebx; or $0x200, %ebx; push %ebx; push %cs; movw $0, 2(%esp); call 1f; 1: addl $(2f - 1b), (%esp); iret; 2:"
        .irp    op, loop, loope, loopne
        snippet_32 "32: \op", "movzbl %cl, %ecx; inc %ecx; 1: lea 3(%eax), %eax; add $1, %dl; \op 1b"
        snippet_32 "32: \op, 16-bit count", "mov $0x50003, %ecx; 1: inc %eax; cmp $1, %al; addr16 \op 1b"
        .endr
        snippet_32 "32: jecxz", "and $1, %ecx; jecxz 1f; not %eax; 1: mov $0x10000, %ecx; jcxz 2f; not %ebx; 2: jecxz 3f; not %edx; 3:"
        snippet_32 "32: enter", "mov %esp, %ebp; enter $0x10, $3; mov %ebp, %eax; leave"
        snippet_32 "32: pushf and popf", "pushfl; pop %ebx; mov %eax, %ecx; and $0xCD5, %ecx; push %ecx; popfl; mov $0, %ebx"
        snippet_32 "32: strings", "and $31, %ecx; rep movsb; mov $9, %ecx; repne scasl; lodsw; stosl; cmpsb"
        snippet_32 "32: rep movsw, 16-bit count", "mov $0x70005, %ecx; cld; rep movsw; mov %ecx, %eax"
        snippet_32 "32: cmpxchg8b", "cmpxchg8b (%esi); mov (%esi), %eax; mov 4(%esi), %edx; lock cmpxchg8b (%esi)"
        snippet_32 "32: shifts", "shld %cl, %eax, %ebx; shrd $3, %edx, (%esi); rcl %cl, %dx; sar $31, %eax"
        snippet_32 "32: page fault", "mov DATA_END - 2, %eax"
        snippet_32 "32: aliases of opcode 80", ".byte 0x82, 0xC3, 0x81; adc $0, %eax"
        .section .note.GNU-stack, "", @progbits
