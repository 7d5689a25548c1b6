/* SPDX-License-Identifier: Apache-2.0
 *
 * Snippets that go through every pair of bytes and both carries themselves, so that neither side is entered 131072
 * times: AL and BL take all values, AH is 0x5A, the other flags are clear. An entry of the table gets AX and the flags.
 */
#include "host_macro.S"

        .macro  exhaust name, body
        row_begin "all: \name"
        .pushsection snippet_code, "a"
771:    xor     %r8d, %r8d
        mov     $TABLE, %edi
775:    mov     %r8d, %ebx
        mov     $0x5A00, %eax
        mov     %bl, %al
        mov     %bh, %bl
        mov     %r8d, %edx
        shr     $16, %edx
        or      $2, %dl
        push    %rdx
        popfq
772:    \body
773:    pushfq
        pop     %rdx
        mov     %ax, (%rdi)
        mov     %dx, 2(%rdi)
        add     $4, %rdi
        inc     %r8d
        cmp     $ENTRIES, %r8d
        jb      775b
774:
        .popsection
        row_end 64, HOST_EXHAUSTIVE
        .endm

        .macro  exhaust_32 name, body
        row_begin "all, 32: \name"
        .pushsection snippet_code, "a"
        .code32
771:    xor     %ebp, %ebp
        mov     $TABLE, %edi
775:    mov     %ebp, %ebx
        mov     $0x5A00, %eax
        mov     %bl, %al
        mov     %bh, %bl
        mov     %bl, %ah /* AF and AH matter here: AH takes the second byte, AF its lowest bit */
        mov     %ebp, %edx
        shr     $16, %edx
        mov     %bl, %dh
        and     $1, %dh
        shl     $4, %dh
        or      %dh, %dl
        mov     $0, %dh
        or      $2, %dl
        push    %edx
        popfl
772:    \body
773:    pushfl
        pop     %edx
        mov     %ax, (%edi)
        mov     %dx, 2(%edi)
        add     $4, %edi
        inc     %ebp
        cmp     $ENTRIES, %ebp
        jb      775b
774:
        .code64
        .popsection
        row_end 32, HOST_EXHAUSTIVE
        .endm

/* For pairs that a table at INPUT holds: AX and BL. */
        .macro  tabulate name, body
        row_begin "many: \name"
        .pushsection snippet_code, "a"
771:    mov     $INPUT, %esi
        mov     $TABLE, %edi
        mov     $ENTRIES, %ecx
775:    mov     (%rsi), %ax
        mov     2(%rsi), %bl
        push    $2
        popfq
772:    \body
773:    pushfq
        pop     %rdx
        mov     %ax, (%rdi)
        mov     %dx, 2(%rdi)
        add     $4, %rsi
        add     $4, %rdi
        dec     %ecx
        jnz     775b
774:
        .popsection
        row_end 64, HOST_TABULAR
        .endm

        .irp    op, add, adc, sub, sbb, cmp, and, or, xor, test
        exhaust \op, "\op %bl, %al"
        .endr
        .irp    op, inc, dec, neg, not
        exhaust \op, "\op %al"
        .endr
        .irp    op, rol, ror, rcl, rcr, shl, shr, sar
        exhaust \op, "mov %bl, %cl; \op %cl, %al"
        .endr
        exhaust mul, "mul %bl"
        exhaust imul, "imul %bl"
        exhaust xadd, "mov %bl, %cl; xadd %cl, %al; mov %cl, %ah"
        exhaust cmpxchg, "mov %bl, %cl; cmpxchg %cl, %bl; mov %bl, %ah"
        tabulate div, "div %bl"
        tabulate idiv, "idiv %bl"
        .irp    op, daa, das, aaa, aas
        exhaust_32 \op, "\op"
        .endr
        exhaust_32 aad, "aad"
        exhaust_32 aam, "aam"
        exhaust_32 "inc eax", "inc %eax"
        exhaust_32 "dec eax", "dec %eax"
        .section .note.GNU-stack, "", @progbits
