/* SPDX-License-Identifier: Apache-2.0
 *
 * Snippets of 64-bit code: conditions, branches, the stack, strings, system instructions that a program may use, and
 * what faults, where the fault is the result.
 */
#include "host_macro.S"

/* ---- conditions ---- */

        .irp    cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
        snippet "set\cc", "set\cc\() %al; set\cc\() 5(%rsi); set\cc\() %r9b; set\cc\() %dh"
        snippet "cmov\cc", "cmov\cc\()w %bx, %cx; cmov\cc\()l %ebx, %edx; cmov\cc\()q %rbx, %r9; cmov\cc\()l (%rsi), %eax; cmov\cc\()q 3(%rdi), %r10; cmov\cc\()w (%rsi), %r11w"
        snippet "j\cc near", "j\cc 1f; not %rax; 1: lea 1(%rbx), %rbx"
        snippet "j\cc far away", "j\cc\().d32 1f; not %rax; .fill 200, 1, 0x90; 1: lea 1(%rbx), %rbx"
        snippet "j\cc after cmp", "cmp %rax, %rbx; j\cc 1f; inc %rcx; 1: cmp %al, %bl; j\cc 2f; inc %rdx; 2: test %ecx, %ecx; j\cc 3f; not %r9; 3: sub %eax, %r10d; j\cc 4f; not %r8; 4: dec %r11w; j\cc 5f; not %r12; 5:"
        snippet "j\cc backwards", "jmp 2f; 1: not %rax; jmp 3f; 2: j\cc 1b; not %rbx; 3:"
        .endr

/* ---- loops, jumps, calls ---- */

        .irp    op, loop, loope, loopne
        snippet "\op", "movzbl %cl, %ecx; inc %ecx; 1: lea 3(%rax), %rax; add $1, %dl; \op 1b"
        snippet "\op, 32-bit count", "movabs $0x500000003, %rcx; 1: inc %rax; cmp $1, %al; addr32 \op 1b"
        .endr
        snippet "jrcxz", "movzbl %cl, %ecx; and $1, %ecx; jrcxz 1f; not %rax; 1: movabs $0x100000000, %rcx; jrcxz 2f; not %rbx; 2: jecxz 3f; not %rdx; 3:"
        snippet "jmp", "jmp 2f; 1: not %rax; jmp 3f; .byte 0x0F, 0x0B; 2: jmp 1b; .byte 0x0F, 0x0B; 3:"
        snippet "jmp register", "lea 1f(%rip), %rbx; jmp *%rbx; ud2; 1: not %rax"
        snippet "jmp memory", "lea 1f(%rip), %rbx; mov %rbx, 5(%rsi); jmp *5(%rsi); ud2; 1: not %rax"
        snippet "jmp table", "and $3, %ecx; lea 5f(%rip), %rbx; movslq (%rbx,%rcx,4), %rdx; add %rbx, %rdx; jmp *%rdx; 1: inc %rax; 2: inc %rax; 3: inc %rax; 4: jmp 6f; 5: .long 1b - 5b, 2b - 5b, 3b - 5b, 4b - 5b; 6:"
        snippet "call and ret", "call 1f; not %rax; jmp 2f; 1: lea 7(%rbx), %rbx; ret; 2:"
        snippet "call register", "lea 1f(%rip), %rdx; call *%rdx; not %rax; jmp 2f; 1: add $7, %rbx; ret; 2:"
        snippet "call memory", "lea 1f(%rip), %rdx; mov %rdx, (%rdi); call *(%rdi); not %rax; jmp 2f; 1: add $7, %rbx; ret $24; 2:"
        snippet "call through the stack pointer", "lea 1f(%rip), %rdx; push %rdx; call *(%rsp); jmp 2f; 1: mov %rsp, %rbx; ret $8; 2:"
        snippet "calls, nested", "and $7, %ecx; call 1f; jmp 3f; 1: test %ecx, %ecx; jz 2f; dec %ecx; add %rcx, %rax; call 1b; call 1b; 2: ret; 3:"
        snippet "ret of a pushed address", "lea 1f(%rip), %rax; push %rax; ret; ud2; 1: not %rbx"

/* ---- code that changes itself ---- */

        snippet "changed ahead", "mov %cl, 1f+1(%rip); nop; 1: mov $0, %al; not %rbx"
        snippet "changed behind", "mov $3, %edx; 1: mov $0x11, %al; add %al, %bl; mov %dl, 1b+1(%rip); dec %edx; jnz 1b"
        snippet "changed by rep stosb", "cld; lea 1f(%rip), %rdi; mov $0x90, %al; mov $2, %ecx; rep stosb; 1: not %ebx; mov $0, %ecx"
        snippet "changed, a called function", "call 2f; movb $0x90, 2f(%rip); call 2f; jmp 3f; 2: nop; inc %eax; ret; 3:"
        snippet "changed, both ways", "mov $4, %ecx; 1: xorb $8, 2f+1(%rip); 2: inc %eax; loop 1b"

/* ---- stack ---- */

        .irp    form, "%rax", "%r12", "%rsp", "%cx", "%r9w", "$5", "$-0x1234567", "(%rsi)", "-8(%rdi)", "(%rsp)", "%fs", "%gs"
        snippet "push \form", "push \form"
        .endr
        snippet "push 16", "pushw $0x1234; pushw (%rsi); pushw $-3; mov %rsp, %rax"
        .irp    form, "%rax", "%r12", "%rsp", "%cx", "%r9w", "(%rsi)", "-8(%rdi)", "(%rsp)", "8(%rsp)"
        snippet "pop \form", "pop \form"
        .endr
        snippet "pop 16", "popw (%rsi); popw %ax"
        snippet "pop into fs", "push $0; pop %gs; push $0x2b; mov %rsp, %rax; mov $0, %ecx"
        snippet "pushf", "pushfq; pushfw; pop %ax; pop %rbx; and $0xCD5, %eax"
        snippet "popf", "mov %eax, %ebx; and $0xCD5, %ebx; push %rbx; popfq; pushfq; pop %rcx; and $0xCD5, %ecx; mov %ecx, %edx; xor $0x8D5, %dx; pushw %dx; popfw"
        snippet "popf, what a program may not change", "mov $0x3FC0D7 ^ 0x40100, %ebx; push %rbx; popfq; pushfq; pop %rcx; push $0x202; popfq; btr $19, %ecx; btr $20, %ecx"
        snippet "enter and leave", "enter $0x20, $0; mov %rax, -8(%rbp); mov %rsp, %rbx; leave"
        snippet "enter 1", "mov %rsp, %rbp; enter $0x18, $1"
        snippet "enter 5", "mov %rsp, %rbp; enter $0x47, $5; mov %rbp, %rax; leave"
        snippet "enter 31", "mov %rsp, %rbp; sub $0x80, %rbp; enter $8, $31"
        snippet "enter 16", "mov %rsp, %rbp; .byte 0x66; enter $8, $2"
        snippet "leave 16", "mov %rsp, %rbp; .byte 0x66; leave"

/* ---- strings ---- */

        .irp    op, movs, cmps, scas, lods, stos
        .irp    width, b, w, l, q
        snippet "\op\width", "\op\width; \op\width; pushf; pop %rbx; and $0xCD5, %ebx"
        snippet "rep \op\width", "and $63, %ecx; rep \op\width"
        snippet "rep \op\width, none", "xor %ecx, %ecx; rep \op\width"
        snippet "\op\width, 32-bit addresses", "bts $35, %rsi; bts $36, %rdi; and $7, %ecx; inc %ecx; bts $39, %rcx; addr32 rep \op\width"
        /* What becomes of the upper halves differs between processors: test_cpu_integer.c. */
        snippet "\op\width, 32-bit addresses, none", "xor %ecx, %ecx; bts $39, %rcx; addr32 rep \op\width; mov %ecx, %ecx; mov %esi, %esi; mov %edi, %edi"
        .endr
        .endr
        .irp    op, cmps, scas
        .irp    width, b, w, l, q
        snippet "repne \op\width", "and $63, %ecx; repne \op\width"
        snippet "repe \op\width, alike", "cld; and $63, %ecx; mov %ecx, %edx; mov %rsi, %rbx; mov %rdi, %r8; xor %eax, %eax; rep stosb; mov %edx, %ecx; shr $3, %ecx; mov %r8, %rdi; lea 16(%rdi), %rsi; repe \op\width"
        .endr
        .endr
        snippet "rep movsb, overlapping", "cld; lea 1(%rsi), %rdi; mov $50, %ecx; rep movsb"
        snippet "rep movsq, overlapping", "cld; lea 3(%rsi), %rdi; mov $20, %ecx; rep movsq"
        snippet "rep movsb, backwards", "std; lea -1(%rsi), %rdi; mov $50, %ecx; rep movsb; cld"
        snippet "rep movsl, backwards", "std; lea 5(%rsi), %rdi; mov $50, %ecx; rep movsl; cld"
        snippet "rep movsb, long", "cld; mov $DATA, %esi; mov $DATA + 0x7F1, %edi; mov $0x700, %ecx; rep movsb"
        snippet "rep stosq, long", "cld; mov $DATA + 9, %edi; mov $0x1F0, %ecx; rep stosq"
        snippet "strlen", "cld; movb $0, 100(%rdi); xor %eax, %eax; mov $-1, %rcx; repne scasb; not %rcx; dec %rcx"
        snippet "repne movsb repeats, too", "and $15, %ecx; .byte 0xF2; movsb"
        snippet "movsb, segment prefix", ".byte 0x2E; movsb; .byte 0x36; lodsb"

/* ---- selectors ---- */

        snippet "lar, lsl, verr, verw", "xor %ecx, %ecx; xor %edx, %edx; mov $0x2b, %eax; lar %eax, %ecx; lsl %eax, %edx; mov $0x33, %ebx; lar %ebx, %r8d; verr %ax; setz %r9b; verw %bx; setz %r10b; and $0xF0FF00, %ecx; and $0xF0FF00, %r8d; verr %bx"
        snippet "lar, bad selectors", "mov $0x10, %eax; lar %eax, %ecx; setz %r8b; xor %eax, %eax; lsl %eax, %ecx; setz %r9b; mov $0xFFF8, %eax; verr %ax; setz %r10b; verw %ax; mov $0x40, %eax; lsl %eax, %edx"
        snippet "mov to ds and es", "mov $0x2b, %eax; mov %eax, %ds; mov %eax, %es; mov %ds, %ebx; xor %eax, %eax; mov %eax, %ds; mov %eax, %es; mov %es, %ecx; mov $3, %eax; mov %eax, %ds; mov %ds, %edx; xor %eax, %eax; mov %eax, %ds"
        snippet "mov to ss", "mov $0x2b, %eax; mov %eax, %ss; mov %ss, %ebx"
        snippet "far jmp and retf", "lea 1f(%rip), %rax; push $0x33; push %rax; lretq; ud2; 1: lea 2f(%rip), %rax; mov %eax, (%rsi); movw $0x33, 4(%rsi); ljmpl *(%rsi); ud2; 2:"
        snippet "far call", "lea 1f(%rip), %rax; mov %eax, (%rsi); movw $0x33, 4(%rsi); lcall *(%rsi); jmp 2f; 1: mov %rsp, %rbx; lretl; 2:"
        snippet "iretq", "mov %rsp, %rcx; push $0x2b; push %rcx; mov %eax, %ebx; and $0xCD5, %ebx; or $0x200, %ebx; push %rbx; push $0x33; lea 1f(%rip), %rdx; push %rdx; iretq; ud2; 1:"

/* ---- faults ---- */

        .irp    form, "ud2", "ud0 %eax, %ecx", "ud1 (%rsi), %rax", "int3", "hlt", "cli", "sti", "in %dx, %al", "out %eax, %dx", "in $0x60, %eax", "insb", "outsl", "int $0x20", "int $13", "clts", "invd", "wbinvd", "rdmsr", "wrmsr", "mov %cr0, %rax", "mov %rax, %cr3", "mov %db7, %rax", "lgdt (%rsi)", "lidt (%rsi)", "lldt %ax", "ltr %ax", "invlpg (%rsi)", "lmsw %ax", "swapgs", ".byte 0xF0; mov %eax, (%rsi)", ".byte 0xF0; add %eax, %ebx", ".byte 0xF0; bt %eax, (%rsi)", ".byte 0xF0; cmp %eax, (%rsi)", ".byte 0xF0, 0x90", "sysretq"
        snippet "\form", "not %rax; \form"
        .endr
        .irp    code, "0x06", "0x0E", "0x1E", "0x27", "0x2F", "0x37", "0x3F", "0x60", "0x61", "0x9A, 0, 0, 0, 0, 0, 0", "0xEA, 0, 0, 0, 0, 0, 0", "0xD4, 10", "0xD5, 10", "0xCE", "0xD6", "0x0F, 0x24, 0xC0", "0x0F, 0x04", "0x0F, 0xFF, 0xC0", "0x8D, 0xC0", "0xC7, 0xC8, 0, 0, 0, 0", "0xFF, 0xF8", "0xFE, 0xD0", "0x8F, 0xC8, 0x60", "0x8C, 0xF0", "0x8E, 0xC8", "0x8E, 0xF0", "0x0F, 0xBA, 0xC0, 1", "0x0F, 0xC7, 0xC8"
        snippet "bytes \code", ".byte \code"
        .endr
        snippet "15 bytes", ".fill 13, 1, 0x66; inc %eax"
        snippet "16 bytes", ".fill 14, 1, 0x66; .byte 0x83, 0xC0, 1; nop"
        .irp    form, "mov DATA_END, %al", "mov %al, DATA_END", "mov DATA_END - 3, %eax", "mov %rax, DATA_END - 1", "add %rbx, DATA_END - 4", "xchg %rbx, DATA_END - 5", "push DATA_END", "pop DATA_END", "pop DATA_END - 7", "cmpxchg %ebx, DATA_END", "xadd %ebx, DATA_END - 2", "btsl $5, DATA_END", "incl DATA - 1", "mov DATA - 2, %r8", "movb $1, DATA - 1", "sete DATA_END", "cmove DATA_END, %eax", "call *DATA_END - 4", "jmp *DATA - 4", "shll $3, DATA_END", "shldl $3, %eax, DATA_END - 1", "movzbl DATA_END, %eax", "idivl DATA_END", "test %al, DATA_END", "notl DATA_END - 3", "movbe %eax, DATA_END - 3"
        snippet "page fault: \form", "\form"
        .endr
        snippet "page fault: stack", "mov $STACK + 4, %esp; push %rax"
        snippet "page fault: call", "mov $STACK + 3, %esp; call 1f; 1:"
        snippet "page fault: ret", "mov $STACK - 8, %esp; ret"
        snippet "page fault: enter", "mov $STACK + 0x10, %esp; mov %rsp, %rbp; enter $16, $1"
        snippet "page fault: leave", "mov $STACK - 0x10, %ebp; leave"
        snippet "page fault: fetch", "mov $DATA_END, %eax; jmp *%rax"
        snippet "page fault: fetch across the end", "movb $0xB8, DATA_END - 1; mov $DATA_END - 1, %eax; jmp *%rax"
        snippet "page fault: rep movsb", "cld; mov $DATA + 8, %esi; mov $DATA_END - 20, %edi; mov $40, %ecx; rep movsb"
        snippet "page fault: rep movsl, backwards", "std; mov $DATA + 41, %esi; mov $DATA + 0x100, %edi; mov $40, %ecx; rep movsl"
        snippet "page fault: rep stosq", "cld; mov $DATA_END - 21, %edi; mov $40, %ecx; rep stosq"
        /* Equal elements give the flags that CMP gives before: which of them a fault leaves differs (test_cpu_integer.c). */
        snippet "page fault: rep cmpsb", "cld; mov $DATA_END - 5, %esi; mov %esi, %edi; mov $9, %ecx; cmp %eax, %eax; repe cmpsb"
        snippet "page fault: scasw", "cld; mov $DATA_END - 1, %edi; scasw"
        snippet "not canonical", "movabs $0x8000000000000000, %rbx; mov (%rbx), %eax"
        snippet "not canonical, push", "movabs $0x8000000000000000, %rsp; push %rax"
        snippet "not canonical, rbp", "movabs $0x0001000000000000, %rbp; mov %eax, 8(%rbp)"
        snippet "not canonical, jmp", "movabs $0x8000000000000000, %rbx; jmp *%rbx"
        snippet "not canonical, ret", "movabs $0x8000000000000000, %rbx; push %rbx; ret"
        /* Some processors have stored the return address by then, below the stack. */
        snippet "not canonical, call", "lea 1f(%rip), %rbx; mov %rbx, -8(%rsp); movabs $0x8000000000000000, %rbx; call *%rbx; 1:"
        snippet "mov to ss of a null selector", "xor %eax, %eax; mov %eax, %ss"
        snippet "mov to ds of a supervisor's selector", "mov $0x10, %eax; mov %eax, %ds"
        snippet "mov to ds beyond the table", "mov $0xFFF8, %eax; mov %eax, %ds"
        snippet "retf to a null selector", "push $0; push $0; lretq"
        snippet "iretq to the supervisor", "push $0x18; push %rsp; push $2; push $0x10; lea 1f(%rip), %rdx; push %rdx; iretq; 1:"
        .section .note.GNU-stack, "", @progbits
