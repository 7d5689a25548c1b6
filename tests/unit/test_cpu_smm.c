/* SPDX-License-Identifier: Apache-2.0
 *
 * System management mode, INIT and ports. Expected values are those of Intel's SDM.
 */
#include "cpu_rig.h"

/* ---- SMM ---- */

enum { SMBASE = 0x30000, SMM_CODE = SMBASE + 0x8000 };

/* The handler leaves a mark, moves EBX's field on by one if it is told where that is, and returns. */
static void smm_handler(struct rig *rig, uint16_t field)
{
  const uint8_t code[] = {
    0xC6, 0x06, 0x00, 0x90,           0x77,                  /* mov byte [9000h], 77h */
    0x2E, 0xFE, 0x06, (uint8_t)field, (uint8_t)(field >> 8), /* inc byte cs:[field] */
    0x31, 0xC0,                                              /* xor ax, ax */
    0x0F, 0xAA,                                              /* rsm */
  };

  assert_true(memory_write(&rig->memory, SMM_CODE, code, sizeof(code)));
}

static void test_smm_32(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "pentium-m");
  smm_handler(&rig, 0xFFDC); /* EBX */
  rig.cpu->r[RAX] = 0x11112222;
  rig.cpu->r[RBX] = 0x33334444;
  rig.cpu->cr4 = CR4_PSE;
  uint32_t cr0 = rig.cpu->cr0;
  cpu_set_flags(rig.cpu, FLAG_1 | FLAG_CF | FLAG_DF);
  cpu_signal(rig.cpu, CPU_SMI);
  assert_int_equal(EXECUTE(&rig, 0x41), DONE); /* inc ecx */
  assert_int_equal(get(&rig, DATA, 1), 0x77);
  assert_int_equal(rig.cpu->r[RAX], 0x11112222);
  assert_int_equal(rig.cpu->r[RBX], 0x33334445);
  assert_int_equal(rig.cpu->r[RCX], 1);
  assert_int_equal(rig.cpu->cr0, cr0);
  assert_int_equal(rig.cpu->cr4, CR4_PSE);
  assert_true(cpu_flags(rig.cpu) & FLAG_DF);
  assert_int_equal(rig.cpu->segment[DS].limit, UINT32_MAX);
  assert_int_equal(rig.cpu->segment[CS].selector, 8);
  assert_false(rig.cpu->is_in_smm);
  /* what it saw: SDM vol. 3, table 34-1 */
  assert_int_equal(get(&rig, SMBASE + 0xFFFC, 4), cr0);
  assert_int_equal(get(&rig, SMBASE + 0xFFF0, 4), CODE);
  assert_int_equal(get(&rig, SMBASE + 0xFFD0, 4), 0x11112222);
  assert_int_equal(get(&rig, SMBASE + 0xFFAC, 2), 8);
  assert_int_equal(get(&rig, SMBASE + 0xFEFC, 4) >> 16, 3);
  assert_int_equal(get(&rig, SMBASE + 0xFEF8, 4), SMBASE);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0xAA), UD); /* RSM outside SMM */
  rig_free(&rig);
}

static void test_smm_64(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  smm_handler(&rig, 0xFF74); /* RBX */
  rig.cpu->r[RBX] = UINT64_C(0x1122334455667788);
  rig.cpu->r[R15] = UINT64_C(0x8877665544332211);
  rig.cpu->kernel_gs_base = 5;
  cpu_signal(rig.cpu, CPU_SMI);
  assert_int_equal(EXECUTE(&rig, 0xFF, 0xC1), DONE); /* inc ecx */
  assert_int_equal(get(&rig, DATA, 1), 0x77);
  assert_int_equal(rig.cpu->r[RBX], UINT64_C(0x1122334455667789));
  assert_int_equal(rig.cpu->r[R15], UINT64_C(0x8877665544332211));
  assert_int_equal(rig.cpu->efer, EFER_LME | EFER_LMA);
  assert_true(lb_recorder_is_long_mode(&rig.cpu->recorder));
  assert_int_equal(rig.cpu->mode & MODE_BITS, MODE_64);
  /* SDM vol. 3, table 34-3 */
  assert_int_equal(get(&rig, SMBASE + 0xFFD8, 8), CODE);
  assert_int_equal(get(&rig, SMBASE + 0xFFE0, 8), EFER_LME | EFER_LMA);
  assert_int_equal(get(&rig, SMBASE + 0xFFF0, 8), TABLES);
  assert_int_equal(get(&rig, SMBASE + 0xFF1C, 8), UINT64_C(0x8877665544332211));
  assert_int_equal(get(&rig, SMBASE + 0xFE40, 4), CR4_PAE);
  assert_int_equal(get(&rig, SMBASE + 0xFE94, 4), IDT_64);
  rig_free(&rig);
}

static void test_smm_halt_restart_and_smbase(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  smm_handler(&rig, 0xFEFA); /* third byte of SMBASE: 30000h becomes 40000h */
  put(&rig, CODE, 0xF4, 1);
  cpu_set_rip(rig.cpu, CODE);
  cpu_changed(rig.cpu);
  assert_int_equal(cpu_run(rig.cpu, 10), CPU_STOP_HALTED);
  cpu_signal(rig.cpu, CPU_SMI);
  assert_int_equal(cpu_run(rig.cpu, 100), CPU_STOP_HALTED); /* back in HLT */
  assert_int_equal(get(&rig, SMBASE + 0xFF02, 2), 1);
  assert_int_equal(rig.cpu->rip, CODE + 1);
  assert_int_equal(rig.cpu->smbase, 0x40000);
  rig_free(&rig);
}

static void test_smm_io_restart(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  /* dec byte cs:[ff00]: the restart field from 0 to FFh; then the SMI is not raised again */
  const uint8_t code[] = {0x2E, 0xFE, 0x0E, 0x00, 0xFF, 0x0F, 0xAA};
  assert_true(memory_write(&rig.memory, SMM_CODE, code, sizeof(code)));
  rig.raises_smi = true;
  rig.cpu->r[RAX] = 0x5A;
  assert_true(memory_write(&rig.memory, CODE, (const uint8_t[]){0xE6, 0xB2, 0xF4}, 3)); /* out b2h, al; hlt */
  cpu_set_rip(rig.cpu, CODE);
  cpu_changed(rig.cpu);
  cpu_run(rig.cpu, 1);
  rig.raises_smi = false;
  assert_int_equal(cpu_run(rig.cpu, 100), CPU_STOP_HALTED);
  assert_int_equal(get(&rig, SMBASE + 0xFFA4, 4), 0xB2u << 16 | 8u << 4 | 1u << 1 | 1);
  assert_int_equal(rig.writes, 2);
  rig_free(&rig);
}

/* AMD APM vol. 2, 13.1.6: SMI and RSM are control transfers, which DebugCtl.LBR records, with offsets in CS. */
static void test_smm_is_recorded_on_amd(void **state)
{
  struct rig rig;
  uint64_t value;

  (void)state;
  rig_real(&rig, "zen");
  assert_true(memory_write(&rig.memory, SMM_CODE, (const uint8_t[]){0x90, 0x0F, 0xAA}, 3)); /* nop; rsm */
  put(&rig, CODE, 0xF4, 1);
  cpu_set_rip(rig.cpu, CODE);
  cpu_changed(rig.cpu);
  assert_true(system_write_msr(rig.cpu, 0x1D9, 1));
  cpu_signal(rig.cpu, CPU_SMI);
  cpu_run(rig.cpu, 0);
  assert_true(rig.cpu->is_in_smm);
  assert_true(system_read_msr(rig.cpu, 0x1DB, &value) && value == CODE);
  assert_true(system_read_msr(rig.cpu, 0x1DC, &value) && value == 0x8000);
  assert_int_equal(cpu_run(rig.cpu, 100), CPU_STOP_HALTED);
  assert_true(system_read_msr(rig.cpu, 0x1DB, &value) && value == 0x8001);
  assert_true(system_read_msr(rig.cpu, 0x1DC, &value) && value == CODE);
  rig_free(&rig);
}

static void test_smm_bad_state_shuts_down(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  smm_handler(&rig, 0xFE42); /* CR4 gets bit 16: fine; then a reserved one */
  const uint8_t code[] = {0x2E, 0xC6, 0x06, 0x43, 0xFE, 0x80, 0x0F, 0xAA}; /* mov byte cs:[fe43h], 80h; rsm */
  assert_true(memory_write(&rig.memory, SMM_CODE, code, sizeof(code)));
  cpu_signal(rig.cpu, CPU_SMI);
  assert_int_equal(EXECUTE(&rig, 0x90), RUNAWAY);
  assert_int_equal(rig.cpu->activity, CPU_SHUTDOWN);
  rig_free(&rig);
}

static void test_init(void **state)
{
  struct rig rig;

  (void)state;
  rig_long(&rig, "skylake");
  rig.cpu->r[RBX] = 5;
  rig.cpu->pat = 0x606060606060606;
  cpu_signal(rig.cpu, CPU_INIT);
  cpu_run(rig.cpu, 0);
  assert_int_equal(rig.cpu->rip, 0xFFF0);
  assert_int_equal(rig.cpu->segment[CS].base, 0xFFFF0000);
  assert_int_equal(rig.cpu->r[RBX], 0);
  assert_int_equal(rig.cpu->r[RDX], 0x506E3);
  assert_int_equal(rig.cpu->cr0 & (CR0_PE | CR0_PG), 0);
  assert_int_equal(rig.cpu->efer, 0);
  assert_int_equal(rig.cpu->pat, 0x606060606060606);
  assert_false(lb_recorder_is_long_mode(&rig.cpu->recorder));
  rig_free(&rig);
}

/* ---- ports ---- */

static void test_io_permission(void **state)
{
  static const struct {
    uint16_t port;
    uint8_t denied; /* byte of the bitmap for ports 80h to 87h */
    uint16_t limit;
    int result;
  } rows[] = {
    {0x80, 0x00, 0x2067, 3}, {0x80, 0x01, 0x2067, GP},
    {0x82, 0x01, 0x2067, 3}, {0x80, 0x08, 0x2067, GP}, /* a dword covers four bits */
    {0x80, 0x00, 0x79, 3},                             /* 68h + 10h + 1: the byte behind is inside */
    {0x80, 0x00, 0x78, GP},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct rig rig;

    rig_protected(&rig, "skylake");
    put(&rig, TSS + 102, 0x68, 2);
    put(&rig, TSS + 0x68 + 0x10, rows[i].denied, 1);
    rig.cpu->segment[TR].limit = rows[i].limit;
    rig_ring_3(&rig);
    rig.cpu->r[RDX] = rows[i].port;
    int result = EXECUTE(&rig, 0xEF, 0xCC); /* out dx, eax; int3 */
    if (result != rows[i].result)
      print_error("row %zu\n", i);
    assert_int_equal(result, rows[i].result);
    assert_int_equal(rig.writes, result == 3);
    rig_free(&rig);
  }
}

static void test_ports(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RAX] = UINT64_C(0xFFFFFFFFFFFFFFFF);
  assert_int_equal(EXECUTE(&rig, 0xE4, 0xF0), DONE); /* in al, f0h */
  assert_int_equal(rig.cpu->r[RAX], UINT64_C(0xFFFFFFFFFFFFFF11));
  assert_int_equal(rig.port, 0xF0);
  rig.cpu->r[RDX] = 0x1234;
  assert_int_equal(EXECUTE(&rig, 0xED), DONE); /* in eax, dx */
  assert_int_equal(rig.cpu->r[RAX], 0x44332212);
  rig.cpu->r[RDI] = DATA;
  rig.cpu->r[RCX] = 100;
  rig.reads = 0;
  assert_int_equal(EXECUTE(&rig, 0xF3, 0x6C), DONE); /* rep insb */
  assert_int_equal(rig.reads, 100);
  assert_int_equal(rig.cpu->r[RDI], DATA + 100);
  assert_int_equal(rig.cpu->r[RCX], 0);
  assert_int_equal(get(&rig, DATA + 99, 1), 0x11 + 99);
  rig.cpu->r[RSI] = DATA + 10;
  rig.cpu->r[RCX] = 3;
  cpu_set_flags(rig.cpu, FLAG_1 | FLAG_DF);
  assert_int_equal(EXECUTE(&rig, 0xF3, 0x6E), DONE); /* rep outsb, downwards */
  assert_int_equal(rig.writes, 3);
  assert_int_equal(rig.log[2], 0x11 + 8);
  assert_int_equal(rig.cpu->r[RSI], DATA + 7);
  rig_free(&rig);
}

/* An INS whose store faults must not have asked the device. */
static void test_ins_checks_memory_first(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->segment[ES].limit = DATA;
  rig.cpu->segment[ES].access &= (uint16_t)~SEGMENT_G;
  rig.cpu->r[RDI] = DATA - 1;
  rig.cpu->r[RCX] = 5;
  assert_int_equal(EXECUTE(&rig, 0xF3, 0x6C), GP);
  assert_int_equal(rig.reads, 2);
  assert_int_equal(rig.cpu->r[RCX], 3);
  assert_int_equal(rig.cpu->r[RDI], DATA + 1);
  rig_free(&rig);
}

/* The firmware's own instruction exists in ROM alone. */
static void test_service(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  rig.memory.rom_start = 0xF0000;
  assert_true(memory_write(&rig.memory, 0xF1000, (const uint8_t[]){0x0F, 0x3F, 0x42, 0xF4}, 4));
  cpu_load_real_segment(rig.cpu, CS, 0xF000);
  cpu_set_rip(rig.cpu, 0x1000);
  cpu_changed(rig.cpu);
  assert_int_equal(cpu_run(rig.cpu, 10), CPU_STOP_HALTED);
  assert_int_equal(rig.service, 0x42);
  assert_int_equal(rig.cpu->rip, 0x1004);
  cpu_load_real_segment(rig.cpu, CS, 0);
  assert_int_equal(EXECUTE(&rig, 0x0F, 0x3F, 0x42), UD);
  rig_free(&rig);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_smm_32),
    cmocka_unit_test(test_smm_64),
    cmocka_unit_test(test_smm_halt_restart_and_smbase),
    cmocka_unit_test(test_smm_io_restart),
    cmocka_unit_test(test_smm_is_recorded_on_amd),
    cmocka_unit_test(test_smm_bad_state_shuts_down),
    cmocka_unit_test(test_init),
    cmocka_unit_test(test_io_permission),
    cmocka_unit_test(test_ports),
    cmocka_unit_test(test_service),
    cmocka_unit_test(test_ins_checks_memory_first),
  };

  return cmocka_run_group_tests_name("cpu_smm", tests, NULL, NULL);
}
