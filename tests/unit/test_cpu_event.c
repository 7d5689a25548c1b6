/* SPDX-License-Identifier: Apache-2.0
 *
 * Every counter event of every CPU of the catalogue counts a program whose branches are known by construction. What an
 * event should count is read from its name, by the words of the vendors' event lists; nothing of the catalogue but its
 * codes and names is used.
 */
#include <stdio.h>

#include "cpu_rig.h"

enum { DE = 0, SYSTEM_CALL = 0x40, USR = 1 << 16, OS = 1 << 17, EN = 1 << 22, FUNCTION = CODE + 0x800 };

/* ---- the program ---- */

/* How many branches of each kind it has, and how many of these the 2bit predictor gets wrong: a conditional branch is
 * taken for not taken when it is first seen; indirect branches have no target then; the return stack knows no address
 * that was pushed by PUSH. */
static const struct kind {
  char letter;
  unsigned count, wrong;
} kinds[] = {
  {'N', 3 + 1, 1}, /* not taken; one is the end of the loop */
  {'F', 5, 5},     /* taken, forward */
  {'B', 7, 1},     /* taken, backward: the loop */
  {'J', 9, 0},     /* JMP */
  {'I', 11, 11},   /* JMP *EAX */
  {'C', 13, 0},    /* CALL */
  {'D', 17, 17},   /* CALL *EAX */
  {'R', 34, 4},    /* RET: of each call, and 4 of pushed addresses */
  {'X', 19, 0},    /* INT n */
};

enum {
  FAULTS = 2,
  INSTRUCTIONS = 3 * 2 + 5 * 2 + (1 + 8 * 2) + 9 + 11 * 2 + 13 * 2 + 17 * 3 + 4 * 2 + 19, /* in ring 3 */
};

struct program {
  uint8_t bytes[1024];
  unsigned size;
};

static void emit(struct program *program, const void *bytes, unsigned size)
{
  assert_true(program->size + size <= sizeof(program->bytes));
  memcpy(program->bytes + program->size, bytes, size);
  program->size += size;
}

#define EMIT(program, ...) emit(program, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void emit_word(struct program *program, uint32_t value)
{
  emit(program, &value, 4);
}

static uint32_t here(const struct program *program)
{
  return CODE + program->size;
}

static void emit_conditional(struct program *program)
{
  for (unsigned i = 0; i < 3; i++)
    EMIT(program, 0x39, 0xC0, 0x75, 0x00); /* cmp %eax, %eax; jne behind */
  for (unsigned i = 0; i < 5; i++)
    EMIT(program, 0x39, 0xC0, 0x74, 0x01, 0x90);                 /* cmp %eax, %eax; je over nop */
  EMIT(program, 0xB9, 8, 0, 0, 0, 0x83, 0xE9, 0x01, 0x75, 0xFB); /* mov $8, %ecx; sub $1, %ecx; jnz to sub */
}

static void emit_jumps(struct program *program)
{
  for (unsigned i = 0; i < 9; i++)
    EMIT(program, 0xEB, 0x01, 0x90); /* jmp over nop */
  for (unsigned i = 0; i < 11; i++) {
    EMIT(program, 0xB8); /* mov $next, %eax; jmp *%eax */
    emit_word(program, here(program) + 6);
    EMIT(program, 0xFF, 0xE0);
  }
}

static void emit_calls(struct program *program)
{
  for (unsigned i = 0; i < 13; i++) {
    EMIT(program, 0xE8);
    emit_word(program, FUNCTION - (here(program) + 4));
  }
  for (unsigned i = 0; i < 17; i++) {
    EMIT(program, 0xB8); /* mov $FUNCTION, %eax; call *%eax */
    emit_word(program, FUNCTION);
    EMIT(program, 0xFF, 0xD0);
  }
  for (unsigned i = 0; i < 4; i++) {
    EMIT(program, 0x68); /* push $next; ret */
    emit_word(program, here(program) + 5);
    EMIT(program, 0xC3);
  }
}

static void program_build(struct program *program)
{
  program->size = 0;
  emit_conditional(program);
  emit_jumps(program);
  emit_calls(program);
  for (unsigned i = 0; i < 19; i++)
    EMIT(program, 0xCD, SYSTEM_CALL);
  for (unsigned i = 0; i < FAULTS; i++)
    EMIT(program, 0xF6, 0xF7); /* div %bh */
  EMIT(program, 0x0F, 0x0B);   /* ud2 */
}

/* ---- what an event counts ---- */

/* The end of an event's name, and the kinds of branches that it means. The first that fits counts. */
static const struct meaning {
  const char *name, *letters;
} meanings[] = {
  {"BR_INST_RETIRED.PRED_NOT_TAKEN", "N"},
  {"BR_INST_RETIRED.MISPRED_NOT_TAKEN", "N"},
  {"BR_INST_RETIRED.PRED_TAKEN", "FBJICDRX"},
  {"BR_INST_RETIRED.MISPRED_TAKEN", "FBJICDRX"},
  {"RETIRED_TAKEN_BRANCH_INSTRUCTIONS", "FBJICDRX"},
  {"RETIRED_FAR_CONTROL_TRANSFERS", "X"},
  {"RETIRED_NEAR_RETURNS", "R"},
  {"RETIRED_UNCONDITIONAL_INDIRECT_BRANCH_INSTRUCTIONS", "ID"},
  {"RETIRED_UNCONDITIONAL_BRANCH_INSTRUCTIONS", "JICDR"},
  {"RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS", "NFB"},
  {"RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH", "NFB"},
  {"RETIRED_INDIRECT_BRANCH_INSTRUCTIONS", "ID"},
  {"RETIRED_INDIRECT_BRANCH_INFO", "ID"},
  {"RETIRED_BRANCH_INSTRUCTIONS", "NFBJICDRX"},
  {"BR_TAKEN_RETIRED", "FBJICDRX"},
  {"BR_MISS_PRED_TAKEN_RET", "FBJICDRX"},
  {"BR_MISS_PRED_RETIRED", "NFBJICDRX"},
  {"BR_INST_DECODED", "NFBJICDRX"},
  {"BR_CND_EXEC", "NFB"},
  {"BR_IND_EXEC", "ID"},
  {"BR_RET_EXEC", "R"},
  {"BR_CALL_EXEC", "CD"},
  {"BR_IND_CALL_EXEC", "D"},
  {"BR_INST_EXEC.NON_CALLS", "NFBJI"},
  {"BR_INST_EXEC.TAKEN", "FBJICDR"}, /* executed: near branches only */
  {"BR_INST_EXEC.ANY", "NFBJICDR"},
  {"BR_INST_EXEC.ALL_BRANCHES", "NFBJICDR"},
  {"BR_INST_EXEC.DIRECT", "J"},
  {"BR_INST_EXEC", "NFBJICDR"},
  {"COND_TAKEN_FWD", "F"},
  {"COND_TAKEN_BWD", "B"},
  {"NONTAKEN_CONDITIONAL", "N"},
  {"TAKEN_CONDITIONAL", "FB"},
  {"COND_TAKEN", "FB"},
  {"TAKEN_JCC", "FB"},
  {"COND_NTAKEN", "N"},
  {"NOT_TAKEN", "N"},
  {"ALL_CONDITIONAL", "NFB"},
  {"CONDITIONAL", "NFB"},
  {"COND", "NFB"},
  {"JCC", "NFB"},
  {"ALL_TAKEN_BRANCHES", "FBJICDRX"},
  {"NEAR_TAKEN", "FBJICDR"},
  {"TAKEN_INDIRECT_JUMP_NON_CALL_RET", "I"},
  {"TAKEN_INDIRECT_NEAR_RETURN", "R"},
  {"TAKEN_RETURN_NEAR", "R"},
  {"TAKEN_DIRECT_NEAR_CALL", "C"},
  {"TAKEN_INDIRECT_NEAR_CALL", "D"},
  {"TAKEN_DIRECT_JUMP", "J"},
  {"TAKEN", "FBJICDRX"},
  {"ALL_BRANCHES", "NFBJICDRX"},
  {"ALL_BRANCHES_PEBS", "NFBJICDRX"},
  {"BR_INST_RETIRED", "NFBJICDRX"},
  {"ANY1", "NFBJICDRX"},
  {"ALL_INDIRECT_JUMP_NON_CALL_RET", "I"},
  {"ALL_INDIRECT_NEAR_RETURN", "R"},
  {"ALL_DIRECT_NEAR_CALL", "C"},
  {"ALL_DIRECT_JMP", "J"},
  {"NEAR_INDIRECT_OR_RETURN", "IDR"},
  {"NEAR_INDIRECT_CALL", "D"},
  {"INDIRECT_NEAR_CALL", "D"},
  {"INDIRECT_CALL", "D"},
  {"IND_CALL", "D"},
  {"NEAR_DIRECT_CALL", "C"},
  {"DIRECT_NEAR_CALL", "C"},
  {"REL_CALL", "C"},
  {"DIR_CALL", "C"},
  {"NEAR_CALLS", "CD"},
  {"NEAR_CALL", "CD"},
  {"CALL", "CD"},
  {"NEAR_RETURN", "R"},
  {"RETURN_NEAR", "R"},
  {"RETURN", "R"},
  {"RET", "R"},
  {"NEAR_INDIRECT_JMP", "I"},
  {"INDIRECT_JMP", "I"},
  {"INDIRECT_NON_CALL", "I"},
  {"NEAR_DIRECT_JMP", "J"},
  {"NEAR_JMP", "JI"},
  {"REL_JMP", "J"},
  {"UNCOND", "J"},
  {"NEAR_INDIRECT", "ID"},
  {"NON_RETURN_IND", "ID"},
  {"INDIRECT", "ID"},
  {"BR_INST_TYPE_RETIRED.IND", "I"},
  {"FAR_BRANCH", "X"},
};

static bool has(const char *name, const char *part)
{
  return strstr(name, part) != NULL;
}

static bool is_mispredicts(const char *name)
{
  return has(name, "MISP") || has(name, "MISSP") || has(name, "MISS_PRED");
}

/* The name as its correct twin has it: BR_MISP_EXEC.COND is to BR_INST_EXEC.COND as misses are to branches. */
static void plain_name(const char *name, char *buffer, size_t size)
{
  static const char *const changes[][2] = {
    {"BR_MISP_", "BR_INST_"},
    {"BR_MISSP_TYPE_", "BR_INST_TYPE_"},
    {"BR_MISSP_EXEC", "BR_INST_EXEC"},
    {"_MISSP_EXEC", "_EXEC"},
    {"_MISPREDICTED", ""},
    {".MISPREDICTED", ""},
    {".RETIRED", ""},
    {"_COST", ""},
    {"_TPEBS", ""},
  };

  snprintf(buffer, size, "%s", name);
  if (has(name, "DIRECTION_MISMATCH") || !strcmp(name, "BR_INST_RETIRED"))
    return;
  for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
    char *at = strstr(buffer, changes[i][0]);
    char rest[128];

    if (!at)
      continue;
    snprintf(rest, sizeof(rest), "%s", at + strlen(changes[i][0]));
    snprintf(at, size - (size_t)(at - buffer), "%s%s", changes[i][1], rest);
  }
}

static const char *letters_of(const char *name)
{
  char plain[128];

  plain_name(name, plain, sizeof(plain));
  const char *dot = strrchr(plain, '.');
  for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
    if (!strcmp(plain, meanings[i].name) || (dot && !strcmp(dot + 1, meanings[i].name)))
      return meanings[i].letters;
  fail_msg("the test does not know what %s (%s) counts", name, plain);
  return "";
}

/* How many of them the program has in ring 3. */
static uint64_t branches_wanted(const char *name)
{
  const char *letters = letters_of(name);
  uint64_t wanted = 0;

  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    bool is_right_only = has(name, ".PRED_");
    unsigned count = is_mispredicts(name) ? kinds[i].wrong : kinds[i].count - (is_right_only ? kinds[i].wrong : 0);

    wanted += strchr(letters, kinds[i].letter) ? count : 0;
  }
  return wanted;
}

/* In ring 0: an IRET for each INT n and each fault, and, on AMD, each interrupt or exception itself. */
static uint64_t kernel_wanted(const char *name, bool is_amd)
{
  const char *letters = letters_of(name);

  if (is_mispredicts(name) || !strchr(letters, 'X'))
    return 0;
  return 19 + FAULTS + (is_amd ? FAULTS + 1 : 0);
}

/* ---- running it ---- */

static uint32_t select_msr(const struct lb_cpu *cpu)
{
  return cpu->vendor == LB_VENDOR_AMD || cpu->vendor == LB_VENDOR_HYGON ? 0xC0010000 : 0x186;
}

/* The second counter, with a CMASK that its event never reaches, makes the interpreter tell of each instruction. */
static uint64_t counted(struct rig *rig, const struct program *program, uint64_t select, bool is_slow)
{
  const struct lb_cpu *cpu = rig->cpu->model;
  uint32_t msr = select_msr(cpu), counter = msr == 0x186 ? 0xC1 : 0xC0010004;
  uint64_t value = 0;

  rig_flat(rig);
  cpu_changed(rig->cpu);
  assert_int_equal(wrmsr(rig, msr, 0), DONE);
  assert_int_equal(wrmsr(rig, counter, 0), DONE);
  assert_int_equal(wrmsr(rig, msr + 1, is_slow ? UINT64_C(0xFF0000FF) | USR | OS | EN : 0), DONE);
  if (wrmsr(rig, msr, select) != DONE)
    fail_msg("%s refuses event select %llx", cpu->name, (unsigned long long)select);
  predictor_init(&rig->cpu->predictor, PREDICTOR_2BIT);
  assert_int_equal(lb_recorder_rdmsr(&rig->cpu->recorder, counter, &value), LB_MSR_OK);
  uint64_t before = value; /* the WRMSR that enables it counts, where it counts ring 0 */
  assert_true(memory_write(&rig->memory, CODE, program->bytes, program->size));
  put(rig, FUNCTION, 0xC3, 1);
  run_ring_3(rig);
  assert_int_equal(lb_recorder_rdmsr(&rig->cpu->recorder, counter, &value), LB_MSR_OK);
  return value - before;
}

static uint64_t select_of(const struct lb_pmu_event *event)
{
  return (event->select & 0xFFu) | (uint64_t)event->mask << 8 | (uint64_t)(event->select >> 8) << 32 |
         (uint64_t)event->mask_2 << 40;
}

static void check(struct rig *rig, const struct program *program, const struct lb_pmu_event *event, uint64_t privilege,
                  uint64_t wanted)
{
  for (unsigned is_slow = 0; is_slow < 2; is_slow++) {
    uint64_t found = counted(rig, program, select_of(event) | privilege | EN, is_slow);

    if (found != wanted)
      fail_msg("%s: %s counts %llu, not %llu%s%s", rig->cpu->model->name, event->name, (unsigned long long)found,
               (unsigned long long)wanted, privilege == OS ? " in ring 0" : "", is_slow ? ", one by one" : "");
  }
}

static bool is_branch_event(const struct lb_pmu_event *event)
{
  return !strncmp(event->name, "BR_", 3) ||
         (has(event->name, "RETIRED_") && !has(event->name, "RETIRED_INSTRUCTIONS") &&
          !has(event->name, "LBR_INSERTS"));
}

static void check_event(struct rig *rig, const struct program *program, const struct lb_pmu_event *event)
{
  bool is_amd = select_msr(rig->cpu->model) != 0x186;

  if (is_branch_event(event)) {
    check(rig, program, event, USR, branches_wanted(event->name));
    check(rig, program, event, OS, kernel_wanted(event->name, is_amd));
  } else if (has(event->name, "INST_RETIRED") || has(event->name, "RETIRED_INSTRUCTIONS")) {
    check(rig, program, event, USR, INSTRUCTIONS);
  }
}

/* ---- the tests ---- */

static void check_cpu(const struct lb_cpu *cpu, const struct program *program)
{
  struct lb_pmu_event event;
  struct rig rig;

  rig_protected(&rig, cpu->name);
  put(&rig, HANDLERS + 16 * SYSTEM_CALL, 0xCF90, 2);        /* nop; iret */
  put(&rig, HANDLERS + 16 * DE, UINT64_C(0xCF02240483), 5); /* addl $2, (%esp); iret */
  for (unsigned i = 0; lb_cpu_event(cpu, i, &event) == 0; i++)
    check_event(&rig, program, &event);
  rig_free(&rig);
}

static void test_every_event_of_every_cpu(void **state)
{
  struct program program;
  const struct lb_cpu *cpu;

  (void)state;
  program_build(&program);
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    check_cpu(cpu, &program);
}

/* The events that a branch recorder is used with; codes from intel/perfmon and AMD's PPRs. */
static void test_codes(void **state)
{
  static const struct {
    const char *cpu;
    uint64_t select;
    const char *name;
  } codes[] = {
    {"skylake", 0x20C4, "BR_INST_RETIRED.NEAR_TAKEN"},
    {"icelake-server", 0x20C4, "BR_INST_RETIRED.NEAR_TAKEN"},
    {"sapphirerapids", 0x20C4, "BR_INST_RETIRED.NEAR_TAKEN"},
    {"gracemont", 0xC0C4, "BR_INST_RETIRED.NEAR_TAKEN"},
    {"pantherlake", 0xFBC4, "BR_INST_RETIRED.NEAR_TAKEN"},
    {"silvermont", 0x80C4, "BR_INST_RETIRED.ALL_TAKEN_BRANCHES"},
    {"skylake", 0x01C4, "BR_INST_RETIRED.CONDITIONAL"},
    {"icelake", 0x01C4, "BR_INST_RETIRED.COND_TAKEN"},
    {"lunarlake", 0x01C4, "BR_INST_RETIRED.COND_TAKEN_BWD"},
    {"lunarlake", UINT64_C(0x100000001C4), "BR_INST_RETIRED.COND_TAKEN"},
    {"skylake", 0x01C0, "INST_RETIRED.PREC_DIST"},
    {"nehalem", 0x7F89, "BR_MISP_EXEC.ANY"},
    {"nehalem", 0x7F88, "BR_INST_EXEC.ANY"},
    {"zen4", 0xC4, "RETIRED_TAKEN_BRANCH_INSTRUCTIONS"},
    {"zen4", 0x77C4, "RETIRED_TAKEN_BRANCH_INSTRUCTIONS"}, /* it has no unit masks */
    {"zen4", UINT64_C(0x1000000C7), "RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
    const struct lb_pmu_event *event = lb_cpu_event_find(cpu_named(codes[i].cpu), codes[i].select);

    if (!event || strcmp(event->name, codes[i].name) != 0)
      fail_msg("%s: %llx is %s", codes[i].cpu, (unsigned long long)codes[i].select, event ? event->name : "nothing");
  }
}

/* A row is found by its own code, on every CPU: no code stands for two events. */
static void test_no_code_twice(void **state)
{
  const struct lb_cpu *cpu;

  (void)state;
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    struct lb_pmu_event event;

    for (unsigned k = 0; lb_cpu_event(cpu, k, &event) == 0; k++) {
      const struct lb_pmu_event *found = lb_cpu_event_find(cpu, select_of(&event));

      if (!found || strcmp(found->name, event.name) != 0)
        fail_msg("%s: %s has the code of %s", cpu->name, event.name, found ? found->name : "nothing");
    }
  }
}

enum { REFERENCES = 0x4F2E, MISSES = 0x412E };

static uint64_t cache_counted(struct rig *rig, uint32_t event, const uint8_t *code, unsigned size, bool is_slow)
{
  struct program program = {.size = 0};

  emit(&program, code, size);
  return counted(rig, &program, event | USR | EN, is_slow);
}

/* 96 lines of 64 bytes are new to the first level, and every second one to the last, which gets lines in pairs; then
 * they are in the first; a line 32 KiB away takes the place of one in the first level only. */
static void test_cache(void **state)
{
  static const uint8_t walk[] = {
    0xB9, 96,   0,  0, 0, /* mov $96, %ecx */
    0xBE, 0,    0,  8, 0, /* mov $0x80000, %esi */
    0x8A, 0x06,           /* mov (%esi), %al */
    0x83, 0xC6, 64,       /* add $64, %esi */
    0x49,                 /* dec %ecx */
    0x75, 0xF8,           /* jnz to mov */
    0x0F, 0x0B,           /* ud2 */
  };
  static const uint8_t conflict[] = {
    0xA0, 0,    0,    9, 0,    /* mov 0x90000, %al: new, in the place of 0x80000 */
    0xA0, 0,    0,    8, 0,    /* mov 0x80000, %al: in the last level */
    0x66, 0xA1, 0x3F, 0, 8, 0, /* mov 0x8003f, %ax: two lines that are there */
    0x0F, 0x0B,                /* ud2 */
  };
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  assert_int_equal(cache_counted(&rig, REFERENCES, walk, sizeof(walk), false), 96);
  assert_int_equal(cache_counted(&rig, REFERENCES, walk, sizeof(walk), false), 0);
  assert_int_equal(cache_counted(&rig, MISSES, walk, sizeof(walk), true), 0);
  assert_int_equal(cache_counted(&rig, REFERENCES, conflict, sizeof(conflict), true), 2);
  rig_free(&rig);
  rig_protected(&rig, "skylake");
  assert_int_equal(cache_counted(&rig, MISSES, walk, sizeof(walk), false), 48);
  assert_int_equal(cache_counted(&rig, MISSES, conflict, sizeof(conflict), false), 1);
  assert_int_equal(cache_counted(&rig, 0xC0, conflict, sizeof(conflict), false), 3);
  assert_false(rig.cpu->counts_cache); /* and so it costs nothing now */
  rig_free(&rig);
}

/* SDM vol. 2, CLFLUSH: the line leaves every level. The instruction itself asks for no data. */
static void test_cache_flush(void **state)
{
  static const uint8_t flush[] = {
    0x0F, 0xAE, 0x3D, 0, 0, 8, 0, /* clflush 0x80000, which no level has */
    0xA0, 0,    0,    8, 0,       /* mov 0x80000, %al: new */
    0xA0, 1,    0,    8, 0,       /* mov 0x80001, %al: there */
    0x0F, 0xAE, 0x3D, 8, 0, 8, 0, /* clflush 0x80008 */
    0xA0, 0,    0,    8, 0,       /* mov 0x80000, %al: new again */
    0x0F, 0xAE, 0x3D, 0, 0, 8, 0, /* for the next run */
    0x0F, 0x0B,                   /* ud2 */
  };
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  assert_int_equal(cache_counted(&rig, REFERENCES, flush, sizeof(flush), false), 2);
  assert_int_equal(cache_counted(&rig, MISSES, flush, sizeof(flush), false), 2);
  rig_free(&rig);
}

/* Records of the LBR stack: of the 98 near branches that are taken, and 19 INT n and 21 IRETs and 3 exceptions, with
 * LBR_SELECT for all, and for near returns of ring 3 only. */
static void test_lbr_inserts(void **state)
{
  struct program program;
  struct rig rig;

  (void)state;
  program_build(&program);
  rig_protected(&rig, "skylake");
  put(&rig, HANDLERS + 16 * SYSTEM_CALL, 0xCF90, 2);
  put(&rig, HANDLERS + 16 * DE, UINT64_C(0xCF02240483), 5);
  assert_int_equal(counted(&rig, &program, 0x20CC | USR | OS | EN, false), 0);
  rig_flat(&rig);
  cpu_changed(&rig.cpu[0]);
  assert_int_equal(wrmsr(&rig, 0x1D9, 1), DONE);
  assert_int_equal(counted(&rig, &program, 0x20CC | USR | OS | EN, false), 5 + 7 + 9 + 11 + 13 + 17 + 34 + 19 + 21 + 3);
  rig_flat(&rig);
  cpu_changed(rig.cpu);
  assert_int_equal(wrmsr(&rig, 0x1C8, 0x1DD), DONE); /* all but RET and CPL > 0 */
  assert_int_equal(counted(&rig, &program, 0x20CC | USR | OS | EN, true), 34);
  rig_free(&rig);
}

/* An event that is not modelled is noted once, when a counter is enabled for it. */
static void test_unmodelled(void **state)
{
  uint64_t select = 0;
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  const struct lb_recorder *recorder = &rig.cpu->recorder;
  assert_int_equal(wrmsr(&rig, 0x186, 0x0151), DONE); /* L1D.REPLACEMENT, but not enabled */
  assert_int_equal(wrmsr(&rig, 0x187, 0x20C4 | USR | EN), DONE);
  assert_true(lb_recorder_unmodelled(recorder, 0, &select) < 0);
  assert_int_equal(wrmsr(&rig, 0x186, 0x0151 | USR | EN), DONE);
  assert_int_equal(wrmsr(&rig, 0x188, 0x0151 | OS | EN), DONE);
  assert_int_equal(lb_recorder_unmodelled(recorder, 0, &select), 0);
  assert_int_equal(select, 0x0151);
  assert_true(lb_recorder_unmodelled(recorder, 1, &select) < 0);
  for (unsigned i = 0; i < 2 * LB_UNMODELLED_MAX; i++)
    assert_int_equal(wrmsr(&rig, 0x186, 0xEE | i << 8 | USR | EN), DONE);
  assert_int_equal(lb_recorder_unmodelled(recorder, LB_UNMODELLED_MAX - 1, &select), 0);
  assert_true(lb_recorder_unmodelled(recorder, LB_UNMODELLED_MAX, &select) < 0);
  rig_free(&rig);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_codes),
    cmocka_unit_test(test_no_code_twice),
    cmocka_unit_test(test_every_event_of_every_cpu),
    cmocka_unit_test(test_cache),
    cmocka_unit_test(test_cache_flush),
    cmocka_unit_test(test_lbr_inserts),
    cmocka_unit_test(test_unmodelled),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
