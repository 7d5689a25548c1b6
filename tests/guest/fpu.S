/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest: x87 and SSE as a kernel meets them: state after FNINIT, results and flags of arithmetic with all roundings,
 * special values, integers and decimals, the saved images, #NM, #MF, MXCSR. Transcendental functions, whose last bits
 * differ between implementations, are left out; so are SIMD exceptions, denormal operands' flag and faults of the
 * register stack, which QEMU does not have.
 */
        .macro  more_descriptors
        .quad   0
        .endm
#include "guest.S"

        .set    WORK, FREE

/* Ten bytes at WORK, as three words. */
log_80:
        movzwl  WORK + 8, %eax
        call    log_eax
        mov     WORK + 4, %eax
        call    log_eax
        mov     WORK, %eax
        call    log_eax
        ret

/* The status word but for what is undefined: C0, C2, C3 after arithmetic. */
        .macro  log_status mask
        xor     %eax, %eax
        fnstsw  %ax
        and     $\mask, %eax
        call    log_eax
        .endm

main:
        say     0, "x87 and SSE"
        mov     %cr0, %eax
        and     $~0xC, %eax             /* no EM, no TS */
        or      $0x22, %eax             /* NE, MP */
        mov     %eax, %cr0
        mov     %cr4, %eax
        or      $0x600, %eax
        mov     %eax, %cr4
        call    start
        call    arithmetic
        call    conversions
        call    compares
        call    exceptions
        call    sse
        say     24, "done"
        jmp     finish

start:
        fninit
        fnstcw  WORK
        movzwl  WORK, %eax
        call    log_eax
        log_status 0xFFFF
        fnstenv WORK
        mov     WORK + 8, %eax          /* tags */
        and     $0xFFFF, %eax
        call    log_eax
        fld1
        fldz
        fldpi
        fldl2e
        fldlg2
        fldln2
        fldl2t
        .rept   7
        fstpt   WORK
        call    log_80
        .endr
        log_status 0xFFFF
        ret

/* Every pair of values, four operations, four roundings. */
arithmetic:
        xor     %ebp, %ebp              /* rounding */
1:      fninit
        mov     %ebp, %eax
        shl     $10, %eax
        or      $0x37F, %eax
        mov     %eax, WORK + 16
        fldcw   WORK + 16
        mov     $values, %esi
2:      mov     $values, %edi
3:      .irp    op, fadd, fsub, fmul, fdiv
        fnclex
        fldl    (%esi)
        \op\()l (%edi)
        fstpt   WORK
        call    sum_80
        .endr
        add     $8, %edi
        cmp     $values_end, %edi
        jb      3b
        fnclex
        fldl    (%esi)
        fsqrt
        fstpt   WORK
        call    sum_80
        fldl    (%esi)
        frndint
        fstpt   WORK
        call    sum_80
        add     $8, %esi
        cmp     $values_end, %esi
        jb      2b
        log     sum
        inc     %ebp
        cmp     $4, %ebp
        jb      1b
        .irp    control, 0x07F, 0x27F   /* single and double precision */
        fninit
        movw    $\control, WORK + 16
        fldcw   WORK + 16
        fldl    values + 8
        fdivl   values + 16
        fstpt   WORK
        call    log_80
        log_status 0x023D
        .endr
        fninit
        fldl    values + 32             /* exact remainders */
        fldl    values + 24
        fprem
        fstpt   WORK
        call    log_80
        fprem1
        fstpt   WORK
        fninit
        fldl    values + 24
        fxtract
        fstpt   WORK
        call    log_80
        fstpt   WORK
        call    log_80
        fldl    values + 8
        fldl    values + 32
        fscale
        fstpt   WORK
        call    log_80
        ret

/* The result and the exception flags into one number, which is logged from time to time. */
sum_80:
        fnstsw  %ax
        and     $0x3D, %eax             /* QEMU has no DE */
        add     %eax, sum
        roll    $3, sum
        mov     WORK, %eax
        add     %eax, sum
        roll    $3, sum
        mov     WORK + 4, %eax
        add     %eax, sum
        roll    $3, sum
        movzwl  WORK + 8, %eax
        add     %eax, sum
        ret

conversions:
        log     $0xF0000002
        fninit
        mov     $values, %esi
1:      fldl    (%esi)
        fistl   WORK
        log     WORK
        fistpll WORK
        log     WORK
        log     WORK + 4
        fldl    (%esi)
        fstps   WORK
        log     WORK
        fldl    (%esi)
        fisttpl WORK
        log     WORK
        log_status 0x3D
        fnclex
        add     $8, %esi
        cmp     $values_end, %esi
        jb      1b
        fildll  integer
        fstpt   WORK
        call    log_80
        fildl   integer
        fbstp   WORK
        call    log_80
        fbld    WORK
        fstpt   WORK
        call    log_80
        filds   integer
        fchs
        fabs
        fstps   WORK
        log     WORK
        ret

compares:
        log     $0xF0000003
        fninit
        mov     $values, %esi
1:      mov     $values, %edi
2:      fldl    (%edi)
        fldl    (%esi)
        fcom    %st(1)
        fnstsw  %ax
        and     $0x4500, %eax
        call    log_eax
        fucomip %st(1), %st
        pushf
        pop     %eax
        and     $0x45, %eax
        call    log_eax
        fxam
        fnstsw  %ax
        and     $0x4700, %eax
        call    log_eax
        fstp    %st(0)
        add     $24, %edi
        cmp     $values_end, %edi
        jb      2b
        add     $16, %esi
        cmp     $values_end, %esi
        jb      1b
        ret

exceptions:
        log     $0xF0000004
        fninit
        try     "mov %cr0, %eax; or $8, %eax; mov %eax, %cr0; fld1"
        try     "movaps %xmm0, %xmm1"
        try     "clts; fld1; movaps %xmm0, %xmm1"
        fninit
        movw    $0x37B, WORK            /* division by zero is not masked */
        fldcw   WORK
        fld1
        fldz
        fdivrp
        try     "fwait"
        log_status 0x00BD
        fninit
        fnsave  WORK
        mov     WORK, %eax
        and     $0xFFFF, %eax
        call    log_eax
        fld1
        fldpi
        fnsave  WORK
        mov     WORK + 4, %eax
        and     $0xFFFF, %eax
        call    log_eax
        mov     WORK + 8, %eax
        and     $0xFFFF, %eax
        call    log_eax
        mov     WORK + 28, %eax
        call    log_eax
        frstor  WORK
        fstpt   WORK + 0x80
        log     WORK + 0x80
        fninit
        fld1
        fxsave  WORK
        log     WORK
        movzbl  WORK + 4, %eax
        call    log_eax
        log     WORK + 24
        log     WORK + 32
        ret

sse:
        log     $0x55E00001
        movl    $0x1F80, WORK
        ldmxcsr WORK
        movups  singles, %xmm1
        movups  singles + 16, %xmm2
        .irp    op, addps, subps, mulps, divps, minps, maxps, andps, orps, xorps, unpcklps, cvtdq2ps, cvtps2dq, sqrtps
        movaps  %xmm1, %xmm0
        \op     %xmm2, %xmm0
        movups  %xmm0, WORK
        .irp    offset, 0, 4, 8, 12
        log     WORK + \offset
        .endr
        .endr
        stmxcsr WORK
        log     WORK
        .irp    rounding, 0, 0x2000, 0x4000, 0x6000
        movl    $0x1F80 | \rounding, WORK
        ldmxcsr WORK
        movsd   values + 8, %xmm0
        divsd   values + 16, %xmm0
        movsd   %xmm0, WORK + 16
        log     WORK + 16
        log     WORK + 20
        cvtsd2si %xmm0, %eax
        call    log_eax
        cvttsd2si values + 24, %eax
        call    log_eax
        cvtsd2ss %xmm0, %xmm1
        movss   %xmm1, WORK + 16
        log     WORK + 16
        .endr
        stmxcsr WORK
        log     WORK
        movsd   values, %xmm0
        .irp    offset, 8, 16, 24, 40, 48, 56
        ucomisd values + \offset, %xmm0
        pushf
        pop     %eax
        and     $0x8D5, %eax
        call    log_eax
        .endr
        .irp    op, paddb, paddsw, psubusb, pmullw, pmaddwd, pcmpgtd, packssdw, punpckhbw, pavgb, psadbw, pshufb, pabsd, pmulhrsw, phaddw, pminsd, pmulld
        movups  integers, %xmm0
        movups  integers + 16, %xmm1
        \op     %xmm1, %xmm0
        movups  %xmm0, WORK
        .irp    offset, 0, 4, 8, 12
        log     WORK + \offset
        .endr
        .endr
        try     "movaps singles + 4, %xmm0"
        ret

        .data
        .balign 16
singles:
        .float  1.5, -2.25, 1e30, 3.0
        .float  0.1, 7.0, 1e10, -0.0
integers:
        .long   0x12345678, 0x80FF7F01, 0xFFFFFFFF, 0x00010002
        .long   0x9ABCDEF0, 0x0F80FF7F, 0x00000001, 0x80000000
values: .double 0.0, 1.0, 3.0, -7.25, 1234567.890625
        .quad   0x7FF0000000000000      /* infinity */
        .quad   0x7FF8000000000001      /* quiet NaN */
        .quad   0x8000000000000000      /* -0 */
        .quad   0x0000000000000001      /* smallest denormal */
        .quad   0x7FEFFFFFFFFFFFFF      /* greatest */
        .double -0.5, 2.5, 1e-300
values_end:
integer:
        .quad   -123456789012345
sum:    .long   0
        .text
