/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampled branch stacks on a made-up kernel, up to the trace; and what can go wrong at the start.
 */
#include <errno.h>

#include "source_rig.h"

/* ---- lbr ---- */

static void stack_put(struct fake *fake, uint32_t thread, const struct perf_branch_entry *entries, uint64_t count)
{
  struct {
    uint64_t ip;
    uint32_t process, thread;
    uint64_t time;
    uint32_t cpu, reserved;
    uint64_t count, index;
    struct perf_branch_entry entries[8];
  } body = {0, FAKE_PROCESS, thread, ++fake->now, 1, 0, count, 0, {{0}}};
  bool has_index = fake->attributes.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX;
  uint8_t bytes[sizeof(body)];
  size_t skip = offsetof(__typeof__(body), index), size = skip;

  memcpy(body.entries, entries, count * sizeof(*entries));
  memcpy(bytes, &body, skip + 8);
  size += has_index ? 8 : 0;
  memcpy(bytes + size, body.entries, count * sizeof(*entries));
  assert_true(fake_record(fake, 1, PERF_RECORD_SAMPLE, 0, bytes, size + count * sizeof(*entries), 0, 0));
}

static bool lbr_produce(struct fake *fake)
{
  /* The newest first. The last two are none: one goes to the kernel, one is empty. */
  const struct perf_branch_entry first[] = {{.from = CODE + 6, .to = CODE, .mispred = 1},
                                            {.from = 0x77770000, .to = 0x77780000, .type = PERF_BR_IND},
                                            {.from = 0x77770000, .to = CODE},
                                            {.from = CODE + 4, .to = UINT64_C(0xFFFFFFFF81000000)},
                                            {0}};
  const struct perf_branch_entry second[] = {{.from = CODE + 8, .to = CODE + 16, .predicted = 1},
                                             {.from = CODE + 2, .to = CODE + 8}};

  fake_comm(fake, 0, FAKE_PROCESS, FAKE_PROCESS, "program", true);
  stack_put(fake, FAKE_PROCESS, first, 5);
  fake_task(fake, 2, PERF_RECORD_FORK, FAKE_PROCESS, FAKE_PROCESS + 1, FAKE_PROCESS, FAKE_PROCESS);
  stack_put(fake, FAKE_PROCESS + 1, second, 2);
  stack_put(fake, FAKE_PROCESS, second, 2);
  fake_task(fake, 2, PERF_RECORD_EXIT, FAKE_PROCESS, FAKE_PROCESS + 1, FAKE_PROCESS, FAKE_PROCESS);
  return false;
}

static void test_lbr(void **state)
{
  const struct source_options options = {.kind = SOURCE_LBR, .period = 5000};
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  char sampling[160];
  struct fake fake;

  (void)state;
  fake_init(&fake);
  fake.produce = lbr_produce;
  fake.memory = code_memory;
  fake.ring_start = (512u << 10) - 20; /* records lie over the end of the ring */
  record(&fake, &options, &sink, NULL, sampling);
  assert_string_equal(sampling, "a branch stack every 5000 branches");
  assert_int_equal(fake.attributes.sample_period, 5000);
  assert_true(fake.attributes.branch_sample_type & PERF_SAMPLE_BRANCH_USER);
  assert_false(fake.attributes.branch_sample_type & PERF_SAMPLE_BRANCH_KERNEL);
  assert_string_equal(log.text, "code 0 10000\n"
                                "stream 0 space 0 process 1000 thread 1000 program\n"
                                "stream 1 space 0 process 1000 thread 1001 program\n"
                                "0 77770000 10000 unknown\n"
                                "0 77770000 77780000 jmp_ind\n"
                                "0 10006 10000 jmp missed\n"
                                "gap 0 sampled\n"
                                "1 10002 10008 jcc\n"
                                "1 10008 10010 call\n"
                                "0 10002 10008 jcc\n"
                                "0 10008 10010 call\n");
  fake_done(&fake);
}

static bool times_produce(struct fake *fake)
{
  const struct perf_branch_entry branches[] = {{.from = CODE + 8, .to = CODE + 16}, {.from = CODE + 2, .to = CODE + 8}};

  fake_comm(fake, 0, FAKE_PROCESS, FAKE_PROCESS, "program", true);
  fake->now = 1999;
  stack_put(fake, FAKE_PROCESS, branches, 2);
  fake->now = 2499;
  fake_task(fake, 2, PERF_RECORD_FORK, FAKE_PROCESS, FAKE_PROCESS + 1, FAKE_PROCESS, FAKE_PROCESS);
  fake->now = 2999;
  stack_put(fake, FAKE_PROCESS + 1, branches, 1);
  fake->now = 3499;
  stack_put(fake, FAKE_PROCESS, branches, 1);
  fake->now = 3999;
  fake_task(fake, 2, PERF_RECORD_EXIT, FAKE_PROCESS, FAKE_PROCESS + 1, FAKE_PROCESS, FAKE_PROCESS);
  return false;
}

/* All branches of a sample have its time and processor; times are counted from the start, which is at 1000. */
static void test_lbr_times(void **state)
{
  const struct source_options options = {.kind = SOURCE_LBR};
  struct log log = {0};
  struct source_sink sink = log_sink_timed(&log);
  struct fake fake;

  (void)state;
  fake_init(&fake);
  fake.now = 1000;
  fake.produce = times_produce;
  fake.memory = code_memory;
  record(&fake, &options, &sink, NULL, NULL);
  assert_string_equal(log.text, "code 0 10000\n"
                                "stream 0 space 0 process 1000 thread 1000 program\n"
                                "0 start 1000 cpu 1\n"
                                "0 10002 10008 jcc\n"
                                "0 10008 10010 call\n"
                                "0 time 1000 cpu 1\n"
                                "stream 1 space 0 process 1000 thread 1001 program\n"
                                "1 start 2000 cpu 1\n"
                                "1 10008 10010 call\n"
                                "1 time 2000 cpu 1\n"
                                "0 time 2500 cpu 1\n"
                                "gap 0 sampled\n"
                                "0 10008 10010 call\n"
                                "0 time 2500 cpu 1\n"
                                "1 end 3000 cpu 2\n");
  fake_done(&fake);
}

/* A driver that takes only AMD's branch sampling; and kinds that perf cannot filter alone. */
static void test_lbr_choices(void **state)
{
  const struct source_options options = {.kind = SOURCE_LBR, .kinds = 1u << LB_BRANCH_NEAR_REL_CALL};
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  char sampling[160];
  struct fake fake;

  (void)state;
  fake_init(&fake);
  fake.produce = lbr_produce;
  fake.memory = code_memory;
  fake.takes_plain_only = true;
  record(&fake, &options, &sink, NULL, sampling);
  assert_string_equal(sampling, "a branch stack every 1000003 taken branches");
  assert_int_equal(fake.attributes.config, 0xC4);
  assert_int_equal(fake.attributes.branch_sample_type, PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL);
  assert_string_equal(log.text, "code 0 10000\n"
                                "stream 0 space 0 process 1000 thread 1001 program\n"
                                "stream 1 space 0 process 1000 thread 1000 program\n"
                                "0 10008 10010 call\n"
                                "1 10008 10010 call\n");
  fake_done(&fake);
}

/* The same through a trace's writer and reader. */
static void test_lbr_trace(void **state)
{
  const struct source_options options = {.kind = SOURCE_LBR};
  char folder[] = "/tmp/test_source.XXXXXX", name[64];
  struct lb_trace_writer *writer;
  struct lb_trace_reader *reader;
  struct lb_trace_record item;
  struct source_sink sink;
  unsigned gaps = 0, unknown = 0;
  uint64_t branches = 0;
  struct fake fake;

  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(name, sizeof(name), "%s/trace", folder);
  assert_int_equal(lb_trace_writer_open(name, &writer), 0);
  sink = source_sink_trace(writer);
  fake_init(&fake);
  fake.produce = lbr_produce;
  fake.memory = code_memory;
  record(&fake, &options, &sink, NULL, NULL);
  assert_int_equal(lb_trace_writer_close(writer), 0);
  assert_int_equal(lb_trace_reader_open(name, &reader), 0);
  while (lb_trace_reader_next(reader, &item) > 0) {
    if (item.type == LB_TRACE_GAP) {
      assert_int_equal(item.gap.reason, LB_TRACE_SAMPLED);
      gaps++;
    }
    if (item.type == LB_TRACE_BRANCHES) {
      branches += item.branches.count;
      for (size_t i = 0; i < item.branches.count; i++)
        unknown += item.branches.branches[i].kind == LB_BRANCH_UNKNOWN;
    }
  }
  assert_int_equal(gaps, 1);
  assert_int_equal(branches, 7);
  assert_int_equal(unknown, 1);
  lb_trace_reader_close(reader);
  unlink(name);
  rmdir(folder);
  fake_done(&fake);
}

/* ---- what can go wrong ---- */

static void test_problems(void **state)
{
  static const struct {
    enum source_kind kind;
    int open, map, go;
    const char *text, *advice;
  } cases[] = {
    {SOURCE_LBR, -EACCES, 0, 0, "does not permit", "perf_event_paranoid"},
    {SOURCE_LBR, -ENOENT, 0, 0, "no such device", "--source software"},
    {SOURCE_LBR, -EOPNOTSUPP, 0, 0, "does not offer", "--source software"},
    {SOURCE_LBR, -ENOSYS, 0, 0, "seccomp", "--source software"},
    {SOURCE_LBR, -EMFILE, 0, 0, "too many files", "ulimit -n"},
    {SOURCE_LBR, -EBUSY, 0, 0, "in use", "try again"},
    {SOURCE_LBR, 0, -EPERM, 0, "locked memory", "ulimit -l"},
    {SOURCE_PT, 0, 0, 0, "no such device", "--source software"},
    {SOURCE_BTS, 0, 0, 0, "no such device", "--source software"},
    {SOURCE_LBR, 0, 0, -ENOEXEC, "", ""},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    const struct source_options options = {.kind = cases[i].kind};
    struct log log = {0};
    struct source_sink sink = log_sink(&log);
    struct source_problem problem;
    struct fake fake;

    fake_init(&fake);
    fake.open_error = cases[i].open;
    fake.map_error = cases[i].map;
    fake.go_error = cases[i].go;
    assert_true(record(&fake, &options, &sink, &problem, NULL) < 0);
    if (!strstr(problem.text, cases[i].text) || !strstr(problem.advice, cases[i].advice))
      fail_msg("case %zu: '%s', '%s'", i, problem.text, problem.advice);
    assert_int_equal(!*problem.text, cases[i].go != 0);
    assert_int_equal(fake.opened, fake.closed);
    assert_int_equal(fake.mapped, fake.unmapped);
    fake_done(&fake);
  }
}

static void test_names(void **state)
{
  static struct hardware_host host;
  const char *reason, *advice;

  (void)state;
  for (unsigned i = 0; i < SOURCES; i++)
    assert_int_equal(source_find(source_word(i)), i);
  assert_int_equal(source_find("lbR"), -EINVAL);
  assert_null(source_word(SOURCES));
  assert_false(source_is_complete(SOURCE_LBR));
  assert_true(source_is_complete(SOURCE_PT));
  for (unsigned i = 0; i < HARDWARE_FACILITIES; i++)
    host.findings[i] = (struct hardware_finding){HARDWARE_YES, "good", ""};
  assert_true(source_is_usable(&host, SOURCE_SOFTWARE, &reason, &advice));
  assert_true(source_is_usable(&host, SOURCE_LBR, &reason, &advice));
  assert_int_equal(source_is_usable(&host, SOURCE_PT, &reason, &advice), source_has_pt());
  assert_int_equal(source_choose(&host), source_has_pt() ? SOURCE_PT : SOURCE_SOFTWARE);
  host.findings[HARDWARE_PERF_PT] = (struct hardware_finding){HARDWARE_NO, "not there", "buy one"};
  assert_false(source_is_usable(&host, SOURCE_PT, &reason, &advice));
  assert_string_equal(reason, "not there");
  assert_string_equal(advice, "buy one");
  assert_int_equal(source_choose(&host), SOURCE_SOFTWARE); /* BTS is there, but costs more */
}

PART(cmocka_unit_test(test_lbr), cmocka_unit_test(test_lbr_times), cmocka_unit_test(test_lbr_choices),
     cmocka_unit_test(test_lbr_trace), cmocka_unit_test(test_problems), cmocka_unit_test(test_names));
