/* SPDX-License-Identifier: Apache-2.0
 *
 * BTS on a made-up kernel, up to the trace. What BTS makes of whole programs is tested by test_source.sh.
 */
#include "source_rig.h"

#define KERNEL UINT64_C(0xFFFFFFFF81000000)

static void bts_put(struct fake *fake, const uint64_t (*pairs)[2], size_t count, uint64_t flags)
{
  uint64_t records[16][3] = {{0}};

  for (size_t i = 0; i < count; i++)
    memcpy(records[i], pairs[i], 16);
  assert_true(fake_aux(fake, 0, records, count * 24, flags, FAKE_PROCESS, FAKE_PROCESS));
}

static bool bts_produce(struct fake *fake)
{
  /* Without turns into the kernel: the system call is in the straight code. Zeros are what the kernel fills up with. */
  static const uint64_t quiet[][2] = {{CODE + 6, CODE}, {0, 0}, {CODE + 6, CODE}, {CODE + 2, CODE + 8}};
  /* With them: a system call; an interrupt that nobody notices; a signal at CODE, its handler at CODE + 8; the way back
   * by rt_sigreturn; and a branch that cannot be where it is. */
  static const uint64_t loud[][2] = {
    {CODE + 13, CODE + 4}, {CODE + 4, KERNEL}, {KERNEL, CODE + 6}, {CODE + 6, CODE},      {CODE, KERNEL},
    {KERNEL, CODE},        {CODE, KERNEL},     {KERNEL, CODE + 8}, {CODE + 8, CODE + 16}, {CODE + 16, CODE + 17},
    {CODE + 22, KERNEL},   {KERNEL, CODE},     {CODE + 13, CODE}};

  fake_comm(fake, 0, FAKE_PROCESS, FAKE_PROCESS, "program", true);
  bts_put(fake, quiet, 4, 0);
  bts_put(fake, loud, 13, PERF_AUX_FLAG_TRUNCATED);
  bts_put(fake, quiet, 1, 0);
  return false;
}

/* Records what `produce` makes in the place of BTS hardware. */
static void bts_record(struct fake *fake, bool (*produce)(struct fake *fake), void *data, struct log *log)
{
  const struct source_options options = {.kind = SOURCE_BTS, .aux_size = 1u << 16};
  struct source_sink sink = log_sink(log);

  fake_init(fake);
  fake->produce = produce;
  fake->data = data;
  fake->memory = code_memory;
  fake->pmu = "/sys/bus/event_source/devices/intel_bts/type";
  record(fake, &options, &sink, NULL, NULL);
}

static void test_bts(void **state)
{
  struct log log = {0};
  struct fake fake;

  (void)state;
  bts_record(&fake, bts_produce, NULL, &log);
  assert_int_equal(fake.attributes.type, 9);
  assert_string_equal(log.text, "code 0 10000\n"
                                "stream 0 space 0 process 1000 thread 1000 program\n"
                                "0 10006 10000 jmp\n"
                                "0 10004 10006 syscall\n"
                                "0 10006 10000 jmp\n"
                                "0 10002 10008 jcc\n"
                                "gap 0 lost\n" /* from 10008 to 1000d there is a call */
                                "0 1000d 10004 ret\n"
                                "0 10004 10006 syscall\n"
                                "0 10006 10000 jmp\n"
                                "0 10000 10008 interrupt\n"
                                "0 10008 10010 call\n"
                                "0 10010 10011 ret\n"
                                "0 10016 10000 iret\n"
                                "gap 0 lost\n"
                                "0 1000d 10000 ret\n"
                                "gap 0 lost\n" /* truncated */
                                "0 10006 10000 jmp\n");
  fake_done(&fake);
}

static bool times_produce(struct fake *fake)
{
  static const uint64_t pairs[][2] = {{CODE + 6, CODE}, {CODE + 6, CODE}};

  fake->now = 1099;
  fake_comm(fake, 0, FAKE_PROCESS, FAKE_PROCESS, "program", true);
  fake->now = 4999;
  bts_put(fake, pairs, 2, 0);
  fake->now = 6999;
  bts_put(fake, pairs, 1, 0);
  fake->now = 7999;
  fake_task(fake, 2, PERF_RECORD_EXIT, FAKE_PROCESS, FAKE_PROCESS, FAKE_PROCESS, FAKE_PROCESS);
  return false;
}

/* The records of AUX data have the time at which it ends, and so on; the recording starts at 1000. */
static void test_bts_times(void **state)
{
  const struct source_options options = {.kind = SOURCE_BTS, .aux_size = 1u << 16};
  struct log log = {0};
  struct source_sink sink = log_sink_timed(&log);
  struct fake fake;

  (void)state;
  fake_init(&fake);
  fake.produce = times_produce;
  fake.memory = code_memory;
  fake.pmu = "/sys/bus/event_source/devices/intel_bts/type";
  record(&fake, &options, &sink, NULL, NULL);
  assert_string_equal(log.text, "code 0 10000\n"
                                "stream 0 space 0 process 1000 thread 1000 program\n"
                                "0 start 100 cpu 0\n"
                                "0 10006 10000 jmp\n"
                                "0 10004 10006 syscall\n"
                                "0 10006 10000 jmp\n"
                                "0 time 4000 cpu 0\n"
                                "0 10004 10006 syscall\n"
                                "0 10006 10000 jmp\n"
                                "0 time 6000 cpu 0\n"
                                "0 end 7000 cpu 2\n");
  fake_done(&fake);
}

/* A full AUX area: the kernel switches the event off, and it stays so until it is told. */
static bool full_produce(struct fake *fake)
{
  static const uint64_t pairs[][2] = {{CODE + 6, CODE}};
  bool *is_second = fake->data;

  if (!*is_second)
    fake_comm(fake, 0, FAKE_PROCESS, FAKE_PROCESS, "program", true);
  if (!fake->cpus[0].is_off)
    bts_put(fake, pairs, 1, *is_second ? 0 : PERF_AUX_FLAG_TRUNCATED);
  fake->cpus[0].is_off |= !*is_second;
  return !*is_second && (*is_second = true);
}

static void test_bts_full(void **state)
{
  struct log log = {0};
  bool is_second = false;
  struct fake fake;

  (void)state;
  bts_record(&fake, full_produce, &is_second, &log);
  assert_non_null(strstr(log.text, "0 10006 10000 jmp\ngap 0 lost\n0 10006 10000 jmp\n"));
  fake_done(&fake);
}

/* Hardware that does not say where the kernel goes on: only turns into it are there. */
static size_t bare_memory(void *data, uint32_t process, uint64_t address, void *buffer, size_t size)
{
  (void)data, (void)process;
  return code_memory(NULL, address, buffer, size);
}

static void turns_decode(const uint64_t (*pairs)[2], size_t count, unsigned signals, const char *wanted)
{
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  struct task_thread *thread;
  uint64_t record[3] = {0};
  struct tasks *tasks;

  assert_int_equal(tasks_new(&sink, bare_memory, NULL, &tasks), 0);
  for (unsigned i = 0; i < signals; i++) { /* at the system call; that of another thread counts for nothing */
    tasks_signal(tasks, 8, CODE + 6, CODE);
    tasks_signal(tasks, 7, CODE + 6, CODE + 8);
  }
  thread = tasks_thread(tasks, 7, 7);
  for (size_t i = 0; i < count; i++) {
    memcpy(record, pairs[i], 16);
    assert_int_equal(bts_decode(tasks, thread, (const uint8_t *)record, sizeof(record)), 0);
  }
  assert_int_equal(tasks_flush(tasks), 0);
  assert_non_null(strstr(log.text, "thread 7 \n"));
  assert_string_equal(strstr(log.text, "thread 7 \n") + 10, wanted);
  tasks_free(tasks);
}

#define TURNS(signals, wanted, ...)                                                                                    \
  do {                                                                                                                 \
    static const uint64_t pairs[][2] = {__VA_ARGS__};                                                                  \
    turns_decode(pairs, sizeof(pairs) / sizeof(*pairs), signals, wanted);                                              \
  } while (0)

static void test_bts_turns(void **state)
{
  (void)state;
  /* A system call, and an interrupt behind it. */
  TURNS(0, "0 10006 10000 jmp\n0 10004 10006 syscall\n0 10006 10000 jmp\n", {CODE + 6, CODE}, {CODE + 4, KERNEL},
        {CODE + 6, KERNEL}, {CODE + 6, CODE});
  /* An interrupt right before it. */
  TURNS(0, "0 10006 10000 jmp\n0 10004 10006 syscall\n0 10006 10000 jmp\n", {CODE + 6, CODE}, {CODE + 4, KERNEL},
        {CODE + 4, KERNEL}, {CODE + 6, CODE});
  /* A handler at 10008 that nobody has told of, and the way back. */
  TURNS(0,
        "0 10006 10000 jmp\n0 10004 10006 syscall\ngap 0 lost\n0 10008 10010 call\n0 10010 10011 ret\n"
        "0 10016 10006 iret\n0 10006 10000 jmp\n",
        {CODE + 6, CODE}, {CODE + 4, KERNEL}, {CODE + 8, CODE + 16}, {CODE + 16, CODE + 17}, {CODE + 22, KERNEL},
        {CODE + 6, CODE});
  /* The same with a signal that is known; the call is done again. */
  TURNS(1,
        "0 10006 10000 jmp\n0 10004 10006 syscall\n0 10006 10008 interrupt\n0 10008 10010 call\n0 10010 10011 ret\n"
        "0 10016 10004 iret\n0 10004 10006 syscall\n0 10006 10000 jmp\n",
        {CODE + 6, CODE}, {CODE + 4, KERNEL}, {CODE + 8, CODE + 16}, {CODE + 16, CODE + 17}, {CODE + 22, KERNEL},
        {CODE + 4, KERNEL}, {CODE + 6, CODE});
  /* Two, the second when the first is done. */
  TURNS(2,
        "0 10006 10000 jmp\n0 10004 10006 syscall\n0 10006 10008 interrupt\n0 10008 10010 call\n0 10010 10011 ret\n"
        "0 10016 10006 iret\n0 10006 10008 interrupt\n0 10008 10010 call\n0 10010 10011 ret\n"
        "0 10016 10006 iret\n0 10006 10000 jmp\n",
        {CODE + 6, CODE}, {CODE + 4, KERNEL}, {CODE + 8, CODE + 16}, {CODE + 16, CODE + 17}, {CODE + 22, KERNEL},
        {CODE + 8, CODE + 16}, {CODE + 16, CODE + 17}, {CODE + 22, KERNEL}, {CODE + 6, CODE});
  /* An end of a handler that was never entered. */
  TURNS(0, "0 10010 10011 ret\ngap 0 lost\n0 10006 10000 jmp\n", {CODE + 16, CODE + 17}, {CODE + 22, KERNEL},
        {CODE + 6, CODE});
}

/* Three generations on one processor, each in its loop. The second is let go on when the source has seen it stop. */
static bool family_produce(struct fake *fake)
{
  if (fake->task_count == 1) {
    fake_comm(fake, 0, FAKE_PROCESS, FAKE_PROCESS, "program", true);
    fake_jump(fake, CODE + 6, CODE);
    fake_fork(fake, 1001);
    return true;
  }
  fake_switch(fake, 1001);
  if (fake->task_count == 2) {
    fake_jump(fake, CODE + 16, CODE + 8);
    fake_fork(fake, 1002);
    return true;
  }
  fake_switch(fake, 1002);
  fake_jump(fake, CODE + 13, CODE);
  fake_jump(fake, CODE + 2, CODE + 8);
  fake_switch(fake, FAKE_PROCESS);
  fake_jump(fake, CODE + 6, CODE);
  fake_switch(fake, 1001);
  fake_jump(fake, CODE + 8, CODE + 16);
  fake_switch(fake, 0);
  return false;
}

/* A change from one thread to another shows in AUX data only if their events are not alike: a mark sees to it. */
static void test_bts_threads(void **state)
{
  struct log log = {0};
  struct fake fake;

  (void)state;
  bts_record(&fake, family_produce, NULL, &log);
  assert_null(strstr(log.text, "gap"));
  assert_non_null(strstr(log.text, "stream 0 space 0 process 1000 thread 1000 program\n"));
  assert_non_null(strstr(log.text, "0 10006 10000 jmp\n0 10004 10006 syscall\n0 10006 10000 jmp\n"));
  assert_non_null(strstr(log.text, "stream 1 space 1 process 1001 thread 1001 program\n"));
  assert_non_null(strstr(log.text, "1 10010 10008 ret\n1 10008 10010 call\n"));
  assert_non_null(strstr(log.text, "stream 2 space 2 process 1002 thread 1002 program\n"));
  assert_non_null(strstr(log.text, "2 1000d 10000 ret\n2 10002 10008 jcc\n"));
  for (unsigned i = 0; i < 3; i++)
    assert_true(fake.tasks[i].was_marked && !fake.tasks[i].is_marked);
  fake_done(&fake);
}

/* AUX records that lie; a rest that is no record; lost records. */
static bool liar_produce(struct fake *fake)
{
  static const uint64_t one[][2] = {{CODE + 6, CODE}};
  static const uint64_t bodies[][3] = {{0, 1u << 20, 0}, {UINT64_MAX - 8, 64, 0}, {1u << 30, 24, 0}};
  static const uint8_t rest[30] = {6, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
  static const uint64_t lost[2] = {1, 3};

  fake_comm(fake, 0, FAKE_PROCESS, FAKE_PROCESS, "program", true);
  bts_put(fake, one, 1, 0);
  for (unsigned i = 0; i < 3; i++)
    fake_record(fake, 0, PERF_RECORD_AUX, 0, bodies[i], sizeof(bodies[i]), FAKE_PROCESS, FAKE_PROCESS);
  fake_aux(fake, 0, rest, sizeof(rest), 0, FAKE_PROCESS, FAKE_PROCESS);
  fake_record(fake, 0, PERF_RECORD_LOST, 0, lost, sizeof(lost), FAKE_PROCESS, FAKE_PROCESS);
  return false;
}

static void test_bts_liar(void **state)
{
  struct log log = {0};
  struct fake fake;

  (void)state;
  bts_record(&fake, liar_produce, NULL, &log);
  assert_string_equal(log.text, "code 0 10000\n"
                                "stream 0 space 0 process 1000 thread 1000 program\n"
                                "0 10006 10000 jmp\n"
                                "gap 0 lost\n"
                                "gap 0 lost\n"
                                "gap 0 lost\n"
                                "0 10006 10000 jmp\n"
                                "gap 0 lost\n"
                                "gap -1 lost\n");
  fake_done(&fake);
}

PART(cmocka_unit_test(test_bts), cmocka_unit_test(test_bts_times), cmocka_unit_test(test_bts_threads),
     cmocka_unit_test(test_bts_turns), cmocka_unit_test(test_bts_full), cmocka_unit_test(test_bts_liar));
