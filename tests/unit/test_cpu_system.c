/* SPDX-License-Identifier: Apache-2.0
 *
 * System registers of the interpreter: control and debug registers and what goes with them. Expected values are those
 * of Intel's SDM.
 */
#include "cpu_rig.h"

/* ---- control registers ---- */

static void test_cr0(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  assert_int_equal(mov_cr(&rig, 0, CR0_PG), GP);
  assert_int_equal(mov_cr(&rig, 0, CR0_NW), GP);
  assert_int_equal(mov_cr(&rig, 0, CR0_NE | 0x0FF0), DONE); /* reserved bits are ignored, ET is always 1 */
  assert_int_equal(rig.cpu->cr0, CR0_NE | CR0_ET);
  assert_int_equal(mov_cr(&rig, 1, 0), UD);
  assert_int_equal(mov_cr(&rig, 5, 0), UD);
  rig_free(&rig);
}

static void test_cr0_in_64_bit_mode(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  rig.cpu->r[RAX] = rig.cpu->cr0 | UINT64_C(1) << 32;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x22, 0xC0), GP);
  rig_free(&rig);
  rig_long(&rig, "skylake");
  assert_int_equal(mov_cr(&rig, 0, rig.cpu->cr0 & ~CR0_PG), GP); /* only from compatibility mode */
  rig_free(&rig);
}

/* SDM vol. 3, 9.8.5: the way into IA-32e mode, and what bars it. */
static void test_long_mode_activation(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig_page_tables(&rig);
  assert_int_equal(mov_cr(&rig, 3, TABLES), DONE);
  assert_int_equal(wrmsr(&rig, 0xC0000080, EFER_LME), DONE);
  assert_int_equal(mov_cr(&rig, 0, rig.cpu->cr0 | CR0_PG), GP); /* PAE is 0 */
  assert_int_equal(mov_cr(&rig, 4, CR4_PAE), DONE);
  assert_int_equal(rig.cpu->efer, EFER_LME);
  rig.cpu->idtr = (struct cpu_table){IDT_64, 0xFFF};
  assert_int_equal(mov_cr(&rig, 0, rig.cpu->cr0 | CR0_PG), DONE);
  assert_int_equal(rig.cpu->efer, EFER_LME | EFER_LMA);
  assert_true(lb_recorder_is_long_mode(&rig.cpu->recorder));
  assert_int_equal(msr_of(&rig, 0xC0000080), EFER_LME | EFER_LMA);
  /* now in compatibility mode: PAE must stay, LME must not change, PG may go */
  assert_int_equal(mov_cr(&rig, 0, rig.cpu->cr0 & ~CR0_PG), DONE);
  assert_int_equal(rig.cpu->efer, EFER_LME);
  assert_false(lb_recorder_is_long_mode(&rig.cpu->recorder));
  rig_free(&rig);
}

static void test_long_mode_bars(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  assert_int_equal(mov_cr(&rig, 4, 0), GP);
  rig_free(&rig);
  rig_long(&rig, "skylake");
  assert_int_equal(wrmsr(&rig, 0xC0000080, 0), GP);
  assert_int_equal(wrmsr(&rig, 0xC0000080, EFER_LME | 1u << 9), GP);
  assert_int_equal(wrmsr(&rig, 0xC0000080, EFER_LME | EFER_LMA | EFER_NXE | EFER_SCE), DONE);
  assert_int_equal(rig.cpu->efer, EFER_LME | EFER_LMA | EFER_NXE | EFER_SCE);
  rig_free(&rig);
  rig_protected(&rig, "pentium-m"); /* no 64-bit mode, but NX */
  assert_int_equal(wrmsr(&rig, 0xC0000080, EFER_LME), GP);
  assert_int_equal(wrmsr(&rig, 0xC0000080, EFER_NXE), DONE);
  rig_free(&rig);
  rig_protected(&rig, "p6");
  assert_int_equal(wrmsr(&rig, 0xC0000080, 0), GP); /* no EFER at all */
  rig_free(&rig);
}

static void test_16_bit_tss_bars_long_mode(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig_page_tables(&rig);
  rig.cpu->cr3 = TABLES;
  rig.cpu->cr4 = CR4_PAE;
  rig.cpu->efer = EFER_LME;
  rig.cpu->segment[TR].access = SEGMENT_P | 3;
  assert_int_equal(mov_cr(&rig, 0, rig.cpu->cr0 | CR0_PG), GP);
  rig_free(&rig);
}

static void test_cr3_and_pdptes(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  rig.cpu->r[RAX] = TABLES | UINT64_C(1) << SYSTEM_PHYSICAL_BITS;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x22, 0xD8), GP);
  rig_free(&rig);
  rig_protected(&rig, "skylake"); /* PAE paging: reserved bits of an entry that is present */
  rig_page_tables(&rig);
  put(&rig, PAE_TABLE, (TABLES + 0x2000) | 1, 8);
  put(&rig, PAE_TABLE + 0x20, (TABLES + 0x2000) | 3, 8);
  rig.cpu->cr3 = PAE_TABLE;
  rig.cpu->cr4 = CR4_PAE;
  assert_int_equal(mov_cr(&rig, 0, rig.cpu->cr0 | CR0_PG), DONE);
  assert_int_equal(rig.cpu->pdpte[0], (TABLES + 0x2000) | 1);
  assert_int_equal(mov_cr(&rig, 3, PAE_TABLE + 0x20), GP);
  assert_int_equal(rig.cpu->cr3, PAE_TABLE);
  rig_free(&rig);
}

static void test_cr4_bits_follow_the_cpu(void **state)
{
  static const struct {
    const char *cpu;
    uint32_t bits;
    int result;
  } rows[] = {
    {"skylake", CR4_SMEP | CR4_SMAP | CR4_FSGSBASE, DONE},
    {"westmere", CR4_SMEP, GP},
    {"ivybridge", CR4_SMEP, DONE},
    {"ivybridge", CR4_SMAP, GP},
    {"p6", CR4_PCE, DONE},
    {"skylake", CR4_PCIDE, GP}, /* outside IA-32e mode */
    {"skylake", 1u << 13 /* VMXE */, GP},
    {"skylake", CR4_UMIP, GP},
    {"icelake", CR4_UMIP, DONE},
    {"skylake", 1u << 31, GP},
    {"skylake", CR4_VME | CR4_PVI | CR4_DE | CR4_PGE, DONE},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct rig rig;

    rig_protected(&rig, rows[i].cpu);
    assert_int_equal(mov_cr(&rig, 4, rows[i].bits), rows[i].result);
    assert_int_equal(rig.cpu->cr4, rows[i].result == DONE ? rows[i].bits : 0);
    rig_free(&rig);
  }
}

static void test_cr8_is_the_task_priority(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  rig.cpu->r[RAX] = 9;
  assert_int_equal(EXECUTE(&rig, 0x44, 0x0F, 0x22, 0xC0, 0x44, 0x0F, 0x20, 0xC3),
                   DONE); /* mov cr8, rax; mov rbx, cr8 */
  assert_int_equal(rig.priority, 9);
  assert_int_equal(rig.cpu->r[RBX], 9);
  rig.cpu->r[RAX] = 16;
  assert_int_equal(EXECUTE(&rig, 0x44, 0x0F, 0x22, 0xC0), GP);
  rig_free(&rig);
}

static void test_privilege(void **state)
{
  static const uint8_t codes[][3] = {
    {0x0F, 0x20, 0xC0},
    {0x0F, 0x22, 0xC0},
    {0x0F, 0x23, 0xC0},
    {0x0F, 0x06},
    {0x0F, 0x09},
    {0x0F, 0x30},
    {0x0F, 0x32},
    {0xF4},
    {0xFA},
    {0xFB},
    {0xEC},
    {0x0F, 0x01, 0x38},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
    struct rig rig;

    rig_protected(&rig, "skylake");
    rig_ring_3(&rig);
    assert_int_equal(execute(&rig, codes[i], 3), GP);
    rig_free(&rig);
  }
}

static void test_lmsw_smsw_clts(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RAX] = CR0_TS | CR0_MP; /* without PE, which stays */
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xF0, 0x0F, 0x01, 0xE3), DONE);
  assert_int_equal(rig.cpu->r[RBX], CR0_PE | CR0_MP | CR0_TS | CR0_ET | (rig.cpu->cr0 & ~0xFFu));
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x06), DONE);
  assert_int_equal(rig.cpu->cr0 & 0xF, CR0_PE | CR0_MP);
  rig_free(&rig);
}

/* ---- descriptor tables, UMIP, XCR0, bases ---- */

static void test_descriptor_tables(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  put(&rig, DATA, UINT64_C(0x123456780FFF), 8);
  rig.cpu->r[RSI] = DATA;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0x16, 0x0F, 0x01, 0x46, 0x10), DONE); /* lgdt [esi]; sgdt [esi + 10h] */
  assert_int_equal(rig.cpu->gdtr.base, 0x12345678);
  assert_int_equal(rig.cpu->gdtr.limit, 0xFFF);
  assert_int_equal(get(&rig, DATA + 0x10, 6), UINT64_C(0x123456780FFF));
  rig_free(&rig);
  rig_real(&rig, "skylake"); /* 16-bit operands: 24 bits of base */
  put(&rig, DATA, UINT64_C(0x123456780FFF), 8);
  rig.cpu->r[RSI] = DATA;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0x14), DONE);
  assert_int_equal(rig.cpu->gdtr.base, 0x345678);
  rig_free(&rig);
  rig_long(&rig, "skylake");
  put(&rig, DATA, 0xFFF, 2);
  put(&rig, DATA + 2, UINT64_C(0x0000900000000000), 8);
  rig.cpu->r[RSI] = DATA;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0x16), GP); /* not canonical */
  rig_free(&rig);
}

static void test_umip(void **state)
{
  struct rig rig;

  (void)state;
  for (unsigned is_on = 0; is_on < 2; is_on++) {
    rig_protected(&rig, "icelake");
    rig.cpu->cr4 = is_on ? CR4_UMIP : 0;
    rig_ring_3(&rig);
    rig.cpu->r[RSI] = DATA;
    assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0x06, 0xCC), is_on ? GP : 3); /* sgdt [esi]; int3 */
    rig_free(&rig);
    rig_protected(&rig, "icelake");
    rig.cpu->cr4 = is_on ? CR4_UMIP : 0;
    rig_ring_3(&rig);
    assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xE0, 0xCC), is_on ? GP : 3); /* smsw eax; int3 */
    rig_free(&rig);
  }
}

/* SDM vol. 2, CLWB: #UD where CPUID does not say it, else the checks of a read of one byte. */
static void test_clwb(void **state)
{
  static const char *const names[] = {"skylake", "icelake", "zen+", "skylake-server", "tigerlake", "tremont", "zen2"};
  struct rig rig;

  (void)state;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    int wanted = i < 3 ? UD : DONE;

    rig_protected(&rig, names[i]);
    rig.cpu->r[RSI] = DATA;
    assert_int_equal(EXECUTE(&rig, 0x66, 0x0F, 0xAE, 0x36), wanted); /* clwb [esi] */
    rig_free(&rig);
    rig_protected(&rig, names[i]);
    rig.cpu->r[RSI] = DATA;
    assert_int_equal(EXECUTE(&rig, 0xF0, 0x66, 0x0F, 0xAE, 0x36), UD); /* with LOCK */
    rig_free(&rig);
    rig_protected(&rig, names[i]);
    rig.cpu->r[RSI] = DATA;
    rig.cpu->r[RAX] = 0;
    assert_int_equal(EXECUTE(&rig, 0x8E, 0xD8, 0x66, 0x0F, 0xAE, 0x36), wanted == UD ? UD : GP); /* DS is null */
    rig_free(&rig);
  }
}

static void test_xcr0(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RCX] = 0;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xD0), UD); /* OSXSAVE is 0 */
  rig.cpu->cr4 = CR4_OSXSAVE;
  rig.cpu->r[RAX] = 3;
  rig.cpu->r[RDX] = 0;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xD1, 0x0F, 0x01, 0xD0), DONE);
  assert_int_equal(rig.cpu->xcr0, 3);
  assert_int_equal(rig.cpu->r[RAX], 3);
  rig.cpu->r[RAX] = 2; /* without x87 */
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xD1), GP);
  rig.cpu->r[RAX] = 3 | 1u << 9;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xD1), GP);
  rig.cpu->r[RAX] = 3;
  rig.cpu->r[RCX] = 1;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xD1), GP);
  rig_free(&rig);
}

static void test_fs_and_gs_bases(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  rig.cpu->r[RAX] = UINT64_C(0xFFFF800000001000);
  assert_int_equal(EXECUTE(&rig, 0xF3, 0x48, 0x0F, 0xAE, 0xD8), UD); /* wrgsbase rax, CR4.FSGSBASE is 0 */
  rig.cpu->cr4 |= CR4_FSGSBASE;
  assert_int_equal(EXECUTE(&rig, 0xF3, 0x48, 0x0F, 0xAE, 0xD8, 0x0F, 0x01, 0xF8), DONE); /* and swapgs */
  assert_int_equal(rig.cpu->kernel_gs_base, UINT64_C(0xFFFF800000001000));
  assert_int_equal(rig.cpu->segment[GS].base, 0);
  assert_int_equal(msr_of(&rig, 0xC0000102), UINT64_C(0xFFFF800000001000));
  rig.cpu->r[RAX] = UINT64_C(0x0000800000001000);
  assert_int_equal(EXECUTE(&rig, 0xF3, 0x48, 0x0F, 0xAE, 0xD0), GP); /* wrfsbase */
  rig_free(&rig);
  rig_long(&rig, "sandybridge");
  assert_int_equal(EXECUTE(&rig, 0xF3, 0x48, 0x0F, 0xAE, 0xD8), UD); /* came with Ivy Bridge */
  rig_free(&rig);
}

static void test_invpcid(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  rig.cpu->r[RSI] = DATA;
  rig.cpu->r[RAX] = 2;
  assert_int_equal(EXECUTE(&rig, 0x66, 0x0F, 0x38, 0x82, 0x06), DONE);
  rig.cpu->r[RAX] = 4;
  assert_int_equal(EXECUTE(&rig, 0x66, 0x0F, 0x38, 0x82, 0x06), GP);
  put(&rig, DATA, 1, 8); /* a PCID although CR4.PCIDE is 0 */
  rig.cpu->r[RAX] = 1;
  assert_int_equal(EXECUTE(&rig, 0x66, 0x0F, 0x38, 0x82, 0x06), GP);
  assert_int_equal(mov_cr(&rig, 4, rig.cpu->cr4 | CR4_PCIDE), DONE);
  rig.cpu->r[RSI] = DATA;
  rig.cpu->r[RAX] = 1;
  assert_int_equal(EXECUTE(&rig, 0x66, 0x0F, 0x38, 0x82, 0x06), DONE);
  rig_free(&rig);
}

/* SDM vol. 3, 4.10.1 and vol. 2, MOV to control registers. */
static void test_pcid(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  uint64_t cr3 = rig.cpu->cr3, keep = UINT64_C(1) << 63;
  assert_int_equal(mov_cr(&rig, 3, cr3 | keep), GP); /* reserved without CR4.PCIDE */
  assert_int_equal(mov_cr(&rig, 3, cr3 | 0x18), DONE);
  assert_int_equal(mov_cr(&rig, 4, rig.cpu->cr4 | CR4_PCIDE), GP); /* CR3 bits 11:0 must be 0 */
  assert_int_equal(mov_cr(&rig, 3, cr3), DONE);
  assert_int_equal(mov_cr(&rig, 4, rig.cpu->cr4 | CR4_PCIDE), DONE);
  assert_int_equal(mov_cr(&rig, 3, cr3 | keep | 0x123), DONE);
  assert_int_equal(rig.cpu->cr3, cr3 | 0x123); /* bit 63 is not kept */
  assert_int_equal(mov_cr(&rig, 4, rig.cpu->cr4 & ~CR4_PCIDE), DONE);
  rig_free(&rig);
  rig_long(&rig, "westmere");
  assert_int_equal(mov_cr(&rig, 4, rig.cpu->cr4 | CR4_PCIDE), GP);
  rig_free(&rig);
}

/* ---- the interrupt flag ---- */

static void test_sti_shadow(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  cpu_set_line(rig.cpu, CPU_LINE_INTR, true);
  /* sti; inc ax; inc ax: the interrupt comes behind the first INC */
  rig.cpu->r[RAX] = 0;
  assert_int_equal(EXECUTE(&rig, 0xFB, 0x40, 0x40), 0x20);
  assert_int_equal(rig.cpu->r[RAX], 1);
  rig_free(&rig);
}

static void test_virtual_interrupt_flag(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig_ring_3(&rig); /* IOPL 0 */
  assert_int_equal(EXECUTE(&rig, 0xFB, 0xCC), GP);
  rig_free(&rig);
  rig_protected(&rig, "skylake");
  rig.cpu->cr4 = CR4_PVI;
  rig_ring_3(&rig);
  assert_int_equal(EXECUTE(&rig, 0xFB, 0xCC), 3);
  assert_int_equal(get(&rig, rig.cpu->r[RSP] + 8, 4) & (FLAG_IF | FLAG_VIF), FLAG_VIF);
  rig_free(&rig);
  rig_protected(&rig, "skylake");
  rig.cpu->cr4 = CR4_PVI;
  cpu_set_flags(rig.cpu, FLAG_VIP | FLAG_1);
  rig_ring_3(&rig);
  assert_int_equal(EXECUTE(&rig, 0xFB, 0xCC), GP); /* an interrupt is pending */
  rig_free(&rig);
}

static void test_mwait(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RAX] = DATA;
  rig.cpu->r[RCX] = rig.cpu->r[RDX] = 0;
  /* monitor; mwait; nop: waits in MWAIT */
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xC8, 0x0F, 0x01, 0xC9, 0x90), RUNAWAY);
  assert_int_equal(rig.cpu->activity, CPU_HALTED);
  assert_int_equal(rig.cpu->rip, CODE + 6);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xC9), DONE); /* not armed: does not wait */
  /* monitor; a store to the line; mwait does not wait */
  rig.cpu->r[RAX] = DATA;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xC8, 0xFE, 0x00, 0x0F, 0x01, 0xC9), DONE);
  rig.cpu->r[RCX] = 2;
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xC9), GP);
  rig_free(&rig);
  rig_protected(&rig, "pentium4");
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x01, 0xC8), UD);
  rig_free(&rig);
}

/* ---- debug registers ---- */

static void test_debug_registers(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  assert_int_equal(mov_dr(&rig, 6, 0xFFFFFFFF), DONE);
  assert_int_equal(rig.cpu->dr[6], 0xFFFFEFFF);
  assert_int_equal(mov_dr(&rig, 4, 0), DONE); /* DE is 0: the same register */
  assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF0);
  assert_int_equal(mov_dr(&rig, 7, 0), DONE);
  assert_int_equal(rig.cpu->dr[7], 0x400);
  rig.cpu->cr4 = CR4_DE;
  assert_int_equal(mov_dr(&rig, 4, 0), UD);
  assert_int_equal(mov_dr(&rig, 7, DR7_GD), DONE);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x21, 0xC0), DB); /* general detect, and GD is off in the handler */
  assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF0 | DR6_BD);
  assert_int_equal(rig.cpu->dr[7] & DR7_GD, 0);
  assert_int_equal(get(&rig, rig.cpu->r[RSP], 4), CODE); /* a fault */
  rig_free(&rig);
  rig_long(&rig, "skylake");
  assert_int_equal(mov_dr(&rig, 7, UINT64_C(1) << 32), GP);
  rig_free(&rig);
}

static void test_code_breakpoint(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->dr[1] = CODE + 2;
  rig.cpu->dr[7] = 0x400 | 1u << 3; /* G1, execute */
  rig.cpu->r[RAX] = 0;
  assert_int_equal(EXECUTE(&rig, 0x40, 0x40, 0x40, 0x40), DB);
  assert_int_equal(rig.cpu->r[RAX], 2);
  assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF0 | 2);
  assert_int_equal(get(&rig, rig.cpu->r[RSP], 4), CODE + 2);
  assert_false(get(&rig, rig.cpu->r[RSP] + 8, 4) & FLAG_RF); /* of all faults this one alone: SDM vol. 3, 17.3.1.1 */
  rig_free(&rig);
}

static void test_data_breakpoints(void **state)
{
  static const struct {
    uint32_t dr7;     /* type and length of breakpoint 0 */
    uint64_t address; /* of DR0 */
    uint8_t code[3];  /* with ESI at DATA */
    int result;
  } rows[] = {
    {1u << 16 | 3u << 18, DATA, {0x89, 0x06, 0x90}, DB},     /* mov [esi], eax; 4 bytes, write */
    {1u << 16 | 3u << 18, DATA, {0x8B, 0x06, 0x90}, DONE},   /* a read does not count */
    {3u << 16 | 3u << 18, DATA, {0x8B, 0x06, 0x90}, DB},     /* read or write */
    {1u << 16, DATA + 3, {0x89, 0x06, 0x90}, DB},            /* one byte, the last that is written */
    {1u << 16, DATA + 4, {0x89, 0x06, 0x90}, DONE},          /* the one behind */
    {1u << 16 | 1u << 18, DATA + 5, {0x88, 0x46, 0x04}, DB}, /* two bytes: the low address bit does not count */
    {1u << 16 | 2u << 18, DATA + 7, {0x88, 0x46, 0x01}, DB}, /* eight bytes */
    {1u << 16 | 3u << 18, DATA + 8, {0x88, 0x46, 0x01}, DONE},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct rig rig;

    rig_protected(&rig, "skylake");
    rig.cpu->r[RSI] = DATA;
    rig.cpu->dr[0] = rows[i].address;
    rig.cpu->dr[7] = 0x400 | 1 | rows[i].dr7;
    int result = execute(&rig, rows[i].code, 3);
    if (result != rows[i].result)
      print_error("row %zu\n", i);
    assert_int_equal(result, rows[i].result);
    if (result == DB) { /* a trap: behind the instruction */
      assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF0 | 1);
      assert_int_equal(get(&rig, rig.cpu->r[RSP], 4), CODE + (rows[i].code[2] == 0x90 ? 2 : 3));
    }
    rig_free(&rig);
  }
}

static void test_io_breakpoint(void **state)
{
  struct rig rig;

  (void)state;
  for (unsigned has_de = 0; has_de < 2; has_de++) {
    rig_protected(&rig, "skylake");
    rig.cpu->cr4 = has_de ? CR4_DE : 0;
    rig.cpu->dr[3] = 0x81;
    rig.cpu->dr[7] = 0x400 | 1u << 6 | 2u << 28;
    assert_int_equal(EXECUTE(&rig, 0xE7, 0x80, 0x90), has_de ? DB : DONE); /* out 80h, eax: ports 80h to 83h */
    assert_int_equal(rig.writes, 1);
    if (has_de)
      assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF0 | 8);
    rig_free(&rig);
  }
}

static void test_single_step(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  cpu_set_flags(rig.cpu, FLAG_TF | FLAG_1);
  assert_int_equal(EXECUTE(&rig, 0x40, 0x40), DB);
  assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF0 | DR6_BS);
  assert_int_equal(get(&rig, rig.cpu->r[RSP], 4), CODE + 1);
  rig_free(&rig);
  rig_protected(&rig, "skylake"); /* BTF: only behind a branch */
  assert_int_equal(wrmsr(&rig, 0x1D9, 2), DONE);
  cpu_set_flags(rig.cpu, FLAG_TF | FLAG_1);
  assert_int_equal(EXECUTE(&rig, 0x40, 0x40, 0xEB, 0x01, 0x90, 0x40, 0x40), DB);
  assert_int_equal(rig.cpu->dr[6], 0xFFFF0FF0 | DR6_BS);
  assert_int_equal(get(&rig, rig.cpu->r[RSP], 4), CODE + 5);
  assert_int_equal(msr_of(&rig, 0x1D9), 0); /* #DB clears BTF */
  rig_free(&rig);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cr0),
    cmocka_unit_test(test_cr0_in_64_bit_mode),
    cmocka_unit_test(test_long_mode_activation),
    cmocka_unit_test(test_long_mode_bars),
    cmocka_unit_test(test_16_bit_tss_bars_long_mode),
    cmocka_unit_test(test_cr3_and_pdptes),
    cmocka_unit_test(test_cr4_bits_follow_the_cpu),
    cmocka_unit_test(test_cr8_is_the_task_priority),
    cmocka_unit_test(test_privilege),
    cmocka_unit_test(test_lmsw_smsw_clts),
    cmocka_unit_test(test_descriptor_tables),
    cmocka_unit_test(test_umip),
    cmocka_unit_test(test_clwb),
    cmocka_unit_test(test_xcr0),
    cmocka_unit_test(test_fs_and_gs_bases),
    cmocka_unit_test(test_invpcid),
    cmocka_unit_test(test_pcid),
    cmocka_unit_test(test_sti_shadow),
    cmocka_unit_test(test_virtual_interrupt_flag),
    cmocka_unit_test(test_mwait),
    cmocka_unit_test(test_debug_registers),
    cmocka_unit_test(test_code_breakpoint),
    cmocka_unit_test(test_data_breakpoints),
    cmocka_unit_test(test_io_breakpoint),
    cmocka_unit_test(test_single_step),
  };

  return cmocka_run_group_tests_name("cpu_system", tests, NULL, NULL);
}
