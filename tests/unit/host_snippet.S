/* SPDX-License-Identifier: Apache-2.0
 *
 * Snippets of 64-bit code that run natively and in the interpreter: arithmetic, moves, bits and shifts. Each line is a
 * test. What needs a small number in a register makes it so itself. host_flow.S has branches, strings and what faults.
 */
#include "host_macro.S"

/* ---- arithmetic of two operands: every width, every place ---- */

        .irp    op, add, or, adc, sbb, and, sub, xor, cmp
        .irp    form, "%bl, %cl", "%ah, %bl", "%cl, %dh", "%r9b, %sil", "%bx, %cx", "%r8w, %r15w", "%ebx, %ecx", "%r8d, %eax", "%rbx, %rcx", "%rax, %r13"
        snippet "\op \form", "\op \form"
        .endr
        .irp    form, "%bl, (%rsi)", "%cx, 3(%rsi)", "%edx, -8(%rdi)", "%r12, 0x11(%rdi)", "(%rsi), %bl", "(%rsi), %dh", "1(%rsi), %cx", "(%rdi), %r10d", "-0x21(%rdi), %rbp"
        snippet "\op \form", "\op \form"
        .endr
        .irp    form, "b $0x7F, (%rsi)", "w $-1, (%rsi)", "w $0x1234, (%rsi)", "l $0x80, (%rdi)", "l $0x12345678, (%rdi)", "q $-128, (%rdi)", "q $-0x80000000, (%rdi)", "b $0x80, %al", "b $5, %cl", "w $0x8000, %ax", "w $0x7FFF, %dx", "w $-2, %dx", "l $0x80000000, %eax", "l $-3, %r11d", "q $0x7FFFFFFF, %rax", "q $-1, %r14"
        snippet "\op\form", "\op\form"
        .endr
        .endr
        .irp    op, add, or, adc, sbb, and, sub, xor
        snippet "lock \op", "lock \op\()b %cl, (%rsi); lock \op\()w %cx, 9(%rsi); lock \op\()l %ecx, 16(%rsi); lock \op\()q $77, 33(%rsi)"
        .endr
        .irp    form, "%bl, %cl", "%ah, %dl", "%bx, %cx", "%ebx, %ecx", "%r8, %rcx", "%bl, (%rsi)", "%cx, (%rsi)", "%edx, (%rdi)", "%rdx, 5(%rdi)", "$0x81, %al", "$0x81, %r9b", "$0x8001, %ax", "$0x80000001, %eax", "$0x12345678, %rax", "$-4, %r8"
        snippet "test \form", "test \form"
        .endr
        snippet "test memory, immediate", "testb $0x55, (%rsi); setz %al; testw $0x5555, 1(%rsi); setz %ah; testl $0xF0F0F0F0, (%rdi); setz %dl; testq $-0x10000000, (%rdi)"

/* ---- one operand ---- */

        .irp    op, inc, dec, neg, not
        .irp    form, "%cl", "%ah", "%r10b", "%dx", "%r9w", "%ecx", "%r8d", "%rax", "%r15"
        snippet "\op \form", "\op \form"
        .endr
        .irp    form, "b (%rsi)", "w 1(%rsi)", "l -3(%rdi)", "q 7(%rdi)"
        snippet "\op\form", "\op\form"
        snippet "lock \op\form", "lock \op\form"
        .endr
        .endr

/* ---- multiplication and division ---- */

        .irp    op, mul, imul
        .irp    form, "b %cl", "b %ah", "w %cx", "l %r9d", "q %rbx", "q %rdx", "b (%rsi)", "w 1(%rsi)", "l (%rdi)", "q 3(%rdi)"
        snippet "\op\form", "\op\form"
        .endr
        .endr
        .irp    form, "%cx, %dx", "%ecx, %r9d", "%rcx, %rax", "(%rsi), %dx", "(%rsi), %ebx", "(%rdi), %r8", "$-7, %cx, %dx", "$0x1234, %cx, %dx", "$100, %ecx, %edx", "$-0x12345678, %r8d, %edx", "$-100, %r8, %rcx", "$0x7FFFFFFF, %rbx, %rbx", "$3, (%rsi), %bx", "$0x1000, (%rsi), %ebx", "$-9, (%rdi), %rbx"
        snippet "imul \form", "imul \form"
        .endr
        .irp    op, div, idiv
        .irp    form, "b %cl", "b %dh", "w %cx", "l %ecx", "q %rcx", "b (%rsi)", "w (%rsi)", "l (%rdi)", "q (%rdi)"
        snippet "\op\form", "\op\form"
        .endr
        snippet "\op 8, small", "movsbw %al, %ax; or $9, %cl; \op\() %cl"
        snippet "\op 16, small", "movsbl %dl, %edx; and $3, %dx; or $0x1001, %cx; and $0x7FFF, %cx; \op\() %cx"
        snippet "\op 32, small", "and $3, %edx; or $0x1001, %ecx; and $0x7FFFFFFF, %ecx; \op\() %ecx"
        snippet "\op 64, small", "and $0xFF, %edx; bts $40, %rcx; btr $63, %rcx; \op\() %rcx"
        snippet "\op 64, no upper half", "xor %edx, %edx; btr $63, %rax; or $1, %rcx; \op\() %rcx"
        .endr
        snippet "idiv 16, sign", "cwd; or $2, %cx; idiv %cx"
        snippet "idiv 32, sign", "cltd; or $2, %ecx; idiv %ecx"
        snippet "idiv 64, sign", "cqto; or $2, %rcx; idiv %rcx"

/* ---- moves ---- */

        .irp    form, "%bl, %cl", "%ah, %bl", "%bh, %ah", "%r9b, %sil", "%bx, %cx", "%ebx, %ecx", "%rbx, %r12", "%bl, (%rsi)", "%ch, 1(%rsi)", "%cx, 1(%rsi)", "%edx, (%rdi)", "%rdx, 5(%rdi)", "(%rsi), %bl", "(%rsi), %dh", "1(%rsi), %r8w", "(%rdi), %ebx", "(%rdi), %rbx", "$0x81, %al", "$0x81, %r9b", "$0x8001, %cx", "$0x80000001, %eax", "$-2, %rax", "%cs, %eax", "%ss, %ecx", "%cs, %r9", "%ss, %dx", "%cs, (%rsi)", "%ss, 3(%rdi)"
        snippet "mov \form", "mov \form"
        .endr
        snippet "mov memory, immediate", "movb $0x12, (%rsi); movw $0x3456, 1(%rsi); movl $0x789ABCDE, (%rdi); movq $-0x1234567, 8(%rdi)"
        snippet "movabs immediate", "movabs $0x123456789ABCDEF0, %rcx; movabs $0xFEDCBA9876543210, %r11"
        snippet "movabs offset", "movabs DATA, %al; movabs %al, DATA + 9; movabs DATA + 2, %rax; movabs %rax, DATA + 0x20; movabs DATA + 5, %eax; movabs %ax, DATA + 0x33; movabs %eax, DATA + 0x41; movabs DATA + 0x43, %ax"
        snippet "addressing", "movzbl %cl, %ecx; mov (%rsi,%rcx), %eax; mov -1(%rdi,%rcx,2), %ebx; mov 0x40(%rsi,%rcx,4), %rdx; mov DATA(,%rcx,8), %r8; mov DATA + 3, %r9d"
        snippet "addressing, r8 to r15", "movzbl %cl, %r12d; mov %rsi, %r13; mov %rdi, %r8; mov (%r13), %eax; mov (%r13,%r12), %ebx; mov 1(%r8,%r12,4), %rdx; mov %rsi, %r12; mov (%r12), %r9; mov 0x99(%r12), %r10b"
        snippet "addressing, RIP", "lea 1f(%rip), %rax; mov 1f(%rip), %rcx; jmp 2f; 1: .quad 0x1122334455667788; 2:"
        snippet "addressing, stack", "mov -8(%rsp), %rax; mov (%rsp), %ebx; lea -0x80(%rsp), %rbp; mov %rax, (%rbp); mov %al, 3(%rbp); movzbl %cl, %ecx; mov %bl, (%rsp,%rcx)"
        snippet "addressing, 32 bits", "bts $40, %rsi; movabs $0xFFFFFFFF00000000, %rcx; mov (%esi), %eax; mov 4(%esi,%ecx,2), %rbx; lea -1(%ecx), %rdx; lea 5(%esi,%edi,8), %r9; lea (%esi), %r10d"
        .irp    form, "(%rax), %bx", "7(%rax,%rcx,8), %ebx", "-0x12345(%r13,%r12,2), %r9", "(%rax,%rax), %rax", "0x12345678, %rdx", "(,%rbx,4), %ecx"
        snippet "lea \form", "lea \form"
        .endr
        .irp    op, movzb, movsb
        .irp    form, "w %cl, %ax", "l %ah, %ebx", "q %r9b, %rcx", "w (%rsi), %bx", "l (%rsi), %r9d", "q (%rdi), %rdx"
        snippet "\op\form", "\op\form"
        .endr
        .endr
        .irp    form, "movzwl %cx, %eax", "movzwq %r9w, %rax", "movzwl (%rsi), %ebx", "movzwq (%rsi), %rbx", "movswl %cx, %eax", "movswq %r9w, %rax", "movswl (%rsi), %ebx", "movswq (%rsi), %rbx", "movslq %ecx, %rax", "movslq (%rsi), %r9", "movslq %r8d, %r8"
        snippet "\form", "\form"
        .endr
        .irp    form, "%bl, %cl", "%ah, %bl", "%bx, %ax", "%ecx, %eax", "%eax, %eax", "%rbx, %r12", "%rax, %r8", "%bl, (%rsi)", "%cx, 1(%rsi)", "%edx, (%rdi)", "%rdx, 5(%rdi)"
        snippet "xchg \form", "xchg \form"
        .endr
        .irp    form, "%bl, %cl", "%ah, %ah", "%bx, %ax", "%ecx, %edx", "%rbx, %rbx", "%rbx, %r12", "%bl, (%rsi)", "%cx, 1(%rsi)", "%edx, (%rdi)", "%rdx, 5(%rdi)"
        snippet "xadd \form", "xadd \form"
        .endr
/* A 32-bit register that is not equal keeps its upper half on AMD's processors. */
        .irp    form, "%bl, %cl", "%ah, %ah", "%bx, %ax", "%rbx, %rbx", "%rbx, %r12", "%bl, (%rsi)", "%cx, 1(%rsi)", "%edx, (%rdi)", "%rdx, 5(%rdi)"
        snippet "cmpxchg \form", "cmpxchg \form"
        .endr
        snippet "cmpxchg %ecx, %edx", "mov %edx, %edx; cmpxchg %ecx, %edx"
        snippet "lock xadd", "lock xaddb %al, (%rsi); lock xaddw %bx, 2(%rsi); lock xaddl %ecx, 5(%rsi); lock xaddq %rdx, (%rdi)"
        snippet "cmpxchg, equal", "mov (%rsi), %rax; lock cmpxchgq %rbx, (%rsi); setz %cl; mov 9(%rsi), %eax; cmpxchgl %edx, 9(%rsi); mov 16(%rsi), %al; lock cmpxchgb %ch, 16(%rsi); mov 18(%rsi), %ax; cmpxchgw %r9w, 18(%rsi)"
        snippet "cmpxchg32 clears upper half", "mov %eax, %ebx; cmpxchgl %ecx, %ebx"
        snippet "cmpxchg8b", "cmpxchg8b (%rsi); setz %cl"
        snippet "cmpxchg8b, equal", "mov 3(%rsi), %eax; mov 7(%rsi), %edx; lock cmpxchg8b 3(%rsi)"
        snippet "cmpxchg16b", "and $-16, %rsi; cmpxchg16b (%rsi); setz %cl"
        snippet "cmpxchg16b, equal", "and $-16, %rsi; mov (%rsi), %rax; mov 8(%rsi), %rdx; lock cmpxchg16b (%rsi)"
        snippet "cmpxchg16b, unaligned", "or $1, %rsi; cmpxchg16b (%rsi)"
        .irp    form, "bswap %eax", "bswap %r9d", "bswap %rcx", "bswap %r15", "cbtw", "cwtl", "cltq", "cwtd", "cltd", "cqto", "lahf", "sahf", "clc", "stc", "cmc", "cld", "std", "nop", "nopl 8(%rax,%rbx)", "nopw (%rcx)", "pause", "endbr64", "xchg %ax, %ax", "xchg %rax, %rax", "lfence", "mfence", "sfence", "prefetcht0 (%rsi)", "prefetcht1 (%rax)", "prefetcht2 (%rax)", "prefetchnta (%rbx)", "prefetchw (%rsi)", "clflush (%rsi)", "clflushopt (%rsi)", "prefetch (%rsi)", "prefetchwt1 (%rsi)", "endbr32", "rdsspd %eax", "rdsspq %rcx", "cldemote (%rsi)"
        snippet "\form", "\form"
        .endr
/* Bounds are not switched on: nothing happens. */
        .irp    form, "bndcl (%rsi), %bnd0", "bndcn %rax, %bnd1", "bndcu %rbx, %bnd2", "bndmk (%rax,%rbx), %bnd0", "bndmov %bnd0, %bnd1", "bndldx (%rsi,%rbx), %bnd0", "bndstx %bnd0, (%rsi,%rbx)"
        snippet "\form", "\form"
        .endr
        snippet "movnti", "movntil %eax, 1(%rsi); movntiq %rbx, (%rdi)"
        .irp    form, "(%rsi), %bx", "(%rsi), %ebx", "3(%rdi), %r8", "%bx, (%rsi)", "%ebx, 1(%rsi)", "%r11, (%rdi)"
        snippet "movbe \form", "movbe \form"
        .endr
        snippet "xlat", "mov %rsi, %rbx; xlatb; mov %rax, %rcx; xlatb"

/* ---- shifts ---- */

        .irp    op, rol, ror, rcl, rcr, shl, shr, sar
        .irp    form, "b $1, %bl", "b $1, %ah", "w $1, %cx", "l $1, %r9d", "q $1, %rcx", "b $3, %bl", "b $9, %dl", "w $5, %bx", "w $17, %bx", "l $31, %ebx", "l $7, %r10d", "q $63, %rbx", "q $33, %rbx", "b %cl, %bl", "b %cl, %cl", "w %cl, %bx", "l %cl, %ebx", "l %cl, %ecx", "q %cl, %rbx", "b $1, (%rsi)", "w $1, 1(%rsi)", "l $1, (%rdi)", "q $1, (%rdi)", "b %cl, (%rsi)", "w %cl, 1(%rsi)", "l %cl, (%rdi)", "q %cl, 5(%rdi)", "w $11, (%rsi)", "q $0, %rbx", "l $0x20, %ebx", "l $0, (%rsi)"
        snippet "\op\form", "\op\form"
        .endr
        .endr
        .irp    op, shld, shrd
        .irp    form, "w $5, %bx, %dx", "w $1, %bx, (%rsi)", "l $1, %ebx, %edx", "l $13, %r8d, %edx", "l $31, %ebx, (%rdi)", "q $1, %rbx, %rdx", "q $47, %r8, %rdx", "q $63, %rbx, (%rdi)", "l %cl, %ebx, %edx", "q %cl, %r8, %rdx", "l %cl, %ebx, 1(%rsi)", "q %cl, %rbx, (%rdi)", "l $0, %ebx, %edx"
        snippet "\op\form", "\op\form"
        .endr
        snippet "\op 16 by cl", "and $15, %cl; \op\() %cl, %bx, %dx; \op\() %cl, %dx, 2(%rsi)"
        .endr

/* ---- bits ---- */

        .irp    op, bt, bts, btr, btc
        .irp    form, "w $3, %bx", "w $0x1F, %bx", "l $31, %ebx", "l $0x55, %r9d", "q $63, %rbx", "q $0x81, %r9", "w %ax, %bx", "l %eax, %r10d", "q %rax, %rbx", "w $9, (%rsi)", "l $33, (%rsi)", "q $61, 1(%rdi)"
        snippet "\op\form", "\op\form"
        .endr
        snippet "\op 16 in a string", "movsbw %al, %ax; \op\()w %ax, (%rsi)"
        snippet "\op 32 in a string", "movsbl %al, %eax; \op\()l %eax, 1(%rsi)"
        snippet "\op 64 in a string", "movswq %ax, %rax; sar $3, %rax; \op\()q %rax, 3(%rsi)"
        .endr
        .irp    op, bts, btr, btc
        snippet "lock \op", "movsbl %al, %eax; lock \op\()l %eax, (%rsi); lock \op\()q $5, (%rdi)"
        .endr
        .irp    op, bsf, bsr
        snippet "\op 16", "or $0x20, %bx; \op\()w %bx, %ax"
        snippet "\op 32", "or $0x200, %ebx; \op\()l %ebx, %r9d"
        snippet "\op 64", "bts $33, %rbx; \op\()q %rbx, %rcx"
        snippet "\op memory", "orb $1, 1(%rsi); \op\()w (%rsi), %ax; \op\()l 1(%rsi), %ecx; \op\()q -1(%rsi), %rdx"
        snippet "\op of nothing sets ZF", "xor %ebx, %ebx; \op\()q %rbx, %rcx; setz %al; xor %ecx, %ecx"
        .endr
        .irp    op, lzcnt, tzcnt, popcnt
        .irp    form, "w %bx, %ax", "l %ebx, %r9d", "q %rbx, %rcx", "w (%rsi), %ax", "l (%rsi), %eax", "q 3(%rdi), %rax"
        snippet "\op\form", "\op\form"
        .endr
        .endr
        .irp    form, "b %bl, %ecx", "b %ah, %ecx", "w %bx, %ecx", "l %ebx, %ecx", "q %rbx, %rcx", "b %bl, %rcx", "b (%rsi), %eax", "w (%rsi), %eax", "l (%rsi), %eax", "q 3(%rdi), %rax"
        snippet "crc32\form", "crc32\form"
        .endr

/* ---- BMI1, BMI2, ADX ---- */

        .irp    form, "%ebx, %ecx, %edx", "%rbx, %rcx, %r9", "(%rsi), %ecx, %edx", "(%rdi), %r8, %rdx"
        .irp    op, andn, pdep, pext, mulx
        snippet "\op \form", "\op \form"
        .endr
        .endr
        .irp    op, bextr, bzhi, sarx, shlx, shrx
        .irp    form, "%ebx, %ecx, %edx", "%rbx, %rcx, %r9", "%ebx, (%rsi), %edx", "%r8, (%rdi), %rdx"
        snippet "\op \form", "\op \form"
        .endr
        .endr
        snippet "bextr, inside", "and $0x1F1F, %ebx; bextr %ebx, %ecx, %edx; bextr %rbx, %r9, %r10"
        snippet "bzhi, inside", "and $0x3F, %ebx; bzhi %ebx, %ecx, %edx; bzhi %rbx, %r9, %r10"
        .irp    op, blsi, blsmsk, blsr
        .irp    form, "%ebx, %ecx", "%r9, %rcx", "(%rsi), %eax", "(%rdi), %rdx"
        snippet "\op \form", "\op \form"
        .endr
        .endr
        .irp    form, "$5, %ebx, %ecx", "$33, %ebx, %ecx", "$61, %r9, %rcx", "$1, (%rsi), %eax", "$17, (%rdi), %rdx"
        snippet "rorx \form", "rorx \form"
        .endr
        .irp    op, adcx, adox
        .irp    form, "%ebx, %ecx", "%r9, %rcx", "(%rsi), %eax", "(%rdi), %rdx"
        snippet "\op \form", "\op \form"
        .endr
        .endr
        .section .note.GNU-stack, "", @progbits
