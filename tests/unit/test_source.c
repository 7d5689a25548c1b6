/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/source: records by the layouts of <linux/perf_event.h>, whole and broken; branch stacks, BTS and errors
 * on a made-up kernel, up to the trace; and the real kernel with an event that every machine has. What BTS, Intel PT
 * and stepping make of whole programs is test_source.sh's.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "source/bts.h"
#include "source/flow.h"
#include "source/id_table.h"
#include "source/perf.h"
#include "source/step_block.h"
#include "source_fake.h"

static const struct perf_layout plain = {PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU, 0, true};

/* ---- the ring ---- */

static void head_put(uint8_t *ring, size_t size, uint64_t at, uint32_t type, uint16_t length)
{
  struct perf_event_header head = {.type = type, .size = length};

  for (size_t i = 0; i < 8; i++)
    ring[(at + i) % size] = ((const uint8_t *)&head)[i];
}

/* A record lies over the end of the ring, its head too. */
static void test_ring_wraps(void **state)
{
  static uint8_t bytes[4096], buffer[PERF_RECORD_SIZE_MAX];
  const struct perf_ring ring = {bytes, sizeof(bytes)};

  (void)state;
  for (uint64_t start = 10 * 4096 - 40; start <= 10 * 4096; start += 4) {
    uint64_t tail = start;

    for (unsigned i = 8; i < 32; i++)
      bytes[(start + i) % 4096] = (uint8_t)i;
    head_put(bytes, sizeof(bytes), start, PERF_RECORD_EXIT, 32);
    head_put(bytes, sizeof(bytes), start + 32, PERF_RECORD_THROTTLE, 8);
    assert_int_equal(perf_ring_next(&ring, start + 40, &tail, buffer), 32);
    assert_int_equal(tail, start + 32);
    for (unsigned i = 8; i < 32; i++)
      assert_int_equal(buffer[i], i);
    assert_int_equal(perf_ring_next(&ring, start + 40, &tail, buffer), 8);
    assert_int_equal(perf_ring_next(&ring, start + 40, &tail, buffer), 0);
    assert_int_equal(tail, start + 40);
  }
}

static void test_ring_is_not_believed(void **state)
{
  static uint8_t bytes[4096], buffer[PERF_RECORD_SIZE_MAX];
  const struct perf_ring ring = {bytes, sizeof(bytes)};
  static const struct {
    uint16_t size;
    uint64_t left;
  } bad[] = {{0, 64}, {7, 64}, {65, 64}, {UINT16_MAX, 4096}, {8, 4}, {8, 4097}, {8, UINT64_MAX}};

  (void)state;
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    uint64_t tail = 8192, head = 8192 + bad[i].left;

    head_put(bytes, sizeof(bytes), 8192, PERF_RECORD_COMM, bad[i].size);
    assert_int_equal(perf_ring_next(&ring, head, &tail, buffer), -EBADMSG);
    assert_int_equal(tail, head);
  }
  assert_int_equal(perf_ring_copy(&ring, 100, 4097, buffer), -EBADMSG);
  assert_int_equal(perf_ring_copy(&ring, UINT64_MAX - 5, 4096, buffer), 0);
  assert_int_equal(perf_ring_copy(&(struct perf_ring){NULL, 0}, 0, 0, buffer), -EBADMSG);
}

/* ---- records ---- */

struct made {
  uint8_t bytes[512];
  size_t size;
};

static void made_put(struct made *made, const void *bytes, size_t size)
{
  memcpy(made->bytes + made->size, bytes, size);
  made->size += size;
}

/* A record with the body and struct sample_id: process 7, thread 8, time 9, processor 3. */
static struct made make(uint32_t type, uint16_t misc, const void *body, size_t size)
{
  const struct {
    uint32_t process, thread;
    uint64_t time;
    uint32_t cpu, reserved;
  } id = {7, 8, 9, 3, 0};
  struct made made = {.size = 8};

  made_put(&made, body, size);
  if (type != PERF_RECORD_SAMPLE)
    made_put(&made, &id, sizeof(id));
  memcpy(made.bytes, &(struct perf_event_header){.type = type, .misc = misc, .size = (uint16_t)made.size}, 8);
  return made;
}

static struct perf_record parse(const struct made *made)
{
  struct perf_record record;

  assert_int_equal(perf_record_parse(&plain, made->bytes, made->size, &record), 0);
  assert_int_equal(record.process, 7);
  assert_int_equal(record.thread, 8);
  assert_int_equal(record.time, 9);
  assert_int_equal(record.cpu, 3);
  return record;
}

/* Every record that is cut says so, or is of a type that has no fields. */
static void assert_cut(const struct made *made, const struct perf_layout *layout)
{
  struct perf_record record;

  for (size_t size = 0; size < made->size; size++) {
    uint8_t *copy = malloc(size + 1); /* of the right size, for the sanitizer */
    memcpy(copy, made->bytes, size);
    int r = perf_record_parse(layout, copy, size, &record);
    free(copy);
    assert_int_equal(r, -EBADMSG);
  }
}

static void test_records(void **state)
{
  struct {
    uint32_t process, thread;
    uint64_t address, size, offset;
    uint32_t device[2];
    uint64_t inode, generation;
    uint32_t protection, flags;
    char path[16];
  } map = {1, 2, 0x400000, 0x2000, 0x1000, {8, 1}, 5, 6, 5, 2, "/bin/program"};
  struct {
    uint32_t process, thread;
    char name[16];
  } comm = {1, 2, "program"};
  const struct {
    uint32_t process, parent, thread, parent_thread;
    uint64_t time;
  } task = {11, 12, 13, 14, 15};
  const uint64_t lost[2] = {77, 5}, aux[3] = {0x123456789, 0x4000, PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL};
  const uint32_t start[2] = {21, 22};
  struct perf_record record;
  struct made made;

  (void)state;
  made = make(PERF_RECORD_MMAP2, 0, &map, sizeof(map));
  record = parse(&made);
  assert_int_equal(record.kind, PERF_MAP);
  assert_int_equal(record.map.process, 1);
  assert_int_equal(record.map.address, 0x400000);
  assert_int_equal(record.map.size, 0x2000);
  assert_int_equal(record.map.offset, 0x1000);
  assert_true(record.map.is_executable);
  assert_string_equal(record.map.path, "/bin/program");
  map.protection = 1;
  made = make(PERF_RECORD_MMAP2, 0, &map, sizeof(map));
  assert_false(parse(&made).map.is_executable);
  memset(map.path, 'x', sizeof(map.path)); /* no end: the time behind it is not a part of the path */
  made = make(PERF_RECORD_MMAP2, 0, &map, sizeof(map));
  assert_int_equal(perf_record_parse(&plain, made.bytes, made.size, &record), -EBADMSG);

  made = make(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &comm, sizeof(comm));
  record = parse(&made);
  assert_int_equal(record.kind, PERF_COMM);
  assert_true(record.comm.is_exec);
  assert_string_equal(record.comm.name, "program");
  made = make(PERF_RECORD_COMM, 0, &comm, sizeof(comm));
  assert_false(parse(&made).comm.is_exec);

  made = make(PERF_RECORD_FORK, 0, &task, sizeof(task));
  record = parse(&made);
  assert_int_equal(record.kind, PERF_FORK);
  assert_int_equal(record.task.process, 11);
  assert_int_equal(record.task.parent, 12);
  assert_int_equal(record.task.thread, 13);
  assert_int_equal(record.task.parent_thread, 14);
  assert_cut(&made, &plain);
  made = make(PERF_RECORD_EXIT, 0, &task, sizeof(task));
  assert_int_equal(parse(&made).kind, PERF_EXIT);

  made = make(PERF_RECORD_LOST, 0, lost, sizeof(lost));
  record = parse(&made);
  assert_int_equal(record.kind, PERF_LOST);
  assert_int_equal(record.lost.count, 5);
  made = make(PERF_RECORD_LOST_SAMPLES, 0, lost + 1, 8);
  assert_int_equal(parse(&made).lost.count, 5);

  made = make(PERF_RECORD_AUX, 0, aux, sizeof(aux));
  record = parse(&made);
  assert_int_equal(record.kind, PERF_AUX);
  assert_int_equal(record.aux.offset, 0x123456789);
  assert_int_equal(record.aux.size, 0x4000);
  assert_int_equal(record.aux.flags, PERF_AUX_TRUNCATED | PERF_AUX_PARTIAL);
  assert_cut(&made, &plain);

  made = make(PERF_RECORD_ITRACE_START, 0, start, sizeof(start));
  record = parse(&made);
  assert_int_equal(record.kind, PERF_START);
  assert_int_equal(record.start.thread, 22);
  made = make(PERF_RECORD_THROTTLE, 0, lost, sizeof(lost));
  assert_int_equal(parse(&made).kind, PERF_THROTTLE);
  made = make(PERF_RECORD_UNTHROTTLE, 0, lost, sizeof(lost));
  assert_int_equal(parse(&made).kind, PERF_UNTHROTTLE);
  made = make(4711, 0, lost, sizeof(lost));
  assert_int_equal(parse(&made).kind, PERF_OTHER);
}

/* ---- branch stacks ---- */

static void test_branch_flags(void **state)
{
  const struct perf_branch_entry entry = {.from = 0x401000,
                                          .to = 0x402000,
                                          .mispred = 1,
                                          .abort = 1,
                                          .cycles = 0xABCD,
                                          .type = PERF_BR_IND_CALL,
                                          .spec = PERF_BR_SPEC_CORRECT_PATH,
                                          .new_type = PERF_BR_NEW_ARCH_3,
                                          .priv = PERF_BR_PRIV_USER};
  const struct perf_branch_entry other = {.predicted = 1, .in_tx = 1, .cycles = 1, .type = PERF_BR_COND};
  struct perf_branch branch;
  uint8_t bytes[PERF_BRANCH_SIZE];

  (void)state;
  _Static_assert(sizeof(entry) == PERF_BRANCH_SIZE, "");
  memcpy(bytes, &entry, sizeof(bytes));
  branch = perf_branch_get(bytes);
  assert_int_equal(branch.from, 0x401000);
  assert_int_equal(branch.to, 0x402000);
  assert_true(branch.is_mispredicted && !branch.is_predicted && !branch.is_in_tx && branch.is_abort);
  assert_int_equal(branch.cycles, 0xABCD);
  assert_int_equal(branch.type, PERF_BR_IND_CALL);
  assert_int_equal(branch.speculation, PERF_BR_SPEC_CORRECT_PATH);
  assert_int_equal(branch.new_type, PERF_BR_NEW_ARCH_3);
  assert_int_equal(branch.privilege, PERF_BR_PRIV_USER);
  assert_int_equal(perf_branch_kind(&branch), LB_BRANCH_TSX_ABORT);
  memcpy(bytes, &other, sizeof(bytes));
  branch = perf_branch_get(bytes);
  assert_true(!branch.is_mispredicted && branch.is_predicted && branch.is_in_tx && !branch.is_abort);
  assert_int_equal(branch.cycles, 1);
  assert_int_equal(perf_branch_kind(&branch), LB_BRANCH_JCC);
  branch.type = PERF_BR_RET;
  assert_int_equal(perf_branch_kind(&branch), LB_BRANCH_NEAR_RET);
  branch.type = PERF_BR_EXTEND_ABI;
  assert_int_equal(perf_branch_kind(&branch), LB_BRANCH_UNKNOWN);
}

static void test_branch_filter(void **state)
{
  (void)state;
  assert_int_equal(perf_branch_filter(0), PERF_SAMPLE_BRANCH_ANY);
  assert_int_equal(perf_branch_filter(1u << LB_BRANCH_JCC), PERF_SAMPLE_BRANCH_COND);
  assert_int_equal(perf_branch_filter(1u << LB_BRANCH_NEAR_REL_CALL | 1u << LB_BRANCH_NEAR_RET),
                   PERF_SAMPLE_BRANCH_CALL | PERF_SAMPLE_BRANCH_ANY_RETURN);
  assert_int_equal(perf_branch_filter(1u << LB_BRANCH_NEAR_IND_CALL | 1u << LB_BRANCH_NEAR_IND_JMP),
                   PERF_SAMPLE_BRANCH_IND_CALL | PERF_SAMPLE_BRANCH_IND_JUMP);
  /* perf has no filter for direct jumps alone */
  assert_int_equal(perf_branch_filter(1u << LB_BRANCH_JCC | 1u << LB_BRANCH_NEAR_REL_JMP), PERF_SAMPLE_BRANCH_ANY);
}

static void test_sample(void **state)
{
  struct perf_layout layout = plain;
  struct {
    uint64_t ip;
    uint32_t process, thread;
    uint64_t time;
    uint32_t cpu, reserved;
    uint64_t count, index;
    struct perf_branch_entry entries[3];
  } body = {0x401234, 7, 8, 9, 3, 0, 3, 17, {{.from = 1}, {.from = 2}, {.from = 3}}};
  struct perf_record record;
  struct made made = make(PERF_RECORD_SAMPLE, 0, &body, sizeof(body));

  (void)state;
  layout.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
  layout.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
  assert_int_equal(perf_record_parse(&layout, made.bytes, made.size, &record), 0);
  assert_int_equal(record.kind, PERF_SAMPLE);
  assert_int_equal(record.thread, 8);
  assert_int_equal(record.time, 9);
  assert_int_equal(record.sample.ip, 0x401234);
  assert_int_equal(record.sample.stack.count, 3);
  assert_int_equal(record.sample.stack.hardware_index, 17);
  assert_int_equal(perf_branch_get(record.sample.stack.entries + 48).from, 3);
  assert_cut(&made, &layout);

  layout.branch_sample_type = 0; /* then the index is the first entry's first word */
  assert_int_equal(perf_record_parse(&layout, made.bytes, made.size, &record), 0);
  assert_int_equal(record.sample.stack.hardware_index, UINT64_MAX);
  assert_int_equal(perf_branch_get(record.sample.stack.entries).from, 17);

  static const uint64_t counts[] = {4, 1u << 20, UINT64_MAX, UINT64_C(0x0AAAAAAAAAAAAAAB), UINT64_C(1) << 61};
  layout.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
  for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
    body.count = counts[i];
    made = make(PERF_RECORD_SAMPLE, 0, &body, sizeof(body));
    assert_int_equal(perf_record_parse(&layout, made.bytes, made.size, &record), -EBADMSG);
  }
  body.count = 0;
  made = make(PERF_RECORD_SAMPLE, 0, &body, sizeof(body));
  assert_int_equal(perf_record_parse(&layout, made.bytes, made.size, &record), 0);
  assert_int_equal(record.sample.stack.count, 0);
}

/* ---- a made-up kernel, up to the trace ---- */

/* The code of the made-up program, in no file: at 0x10000
 *   10000 xor eax,eax    10002 jz 10008    10004 syscall    10006 jmp 10000    10008 call 10010    1000d ret
 *   10010 ret            10011 mov eax,15  10016 syscall    10018 ud2 */
#define CODE UINT64_C(0x10000)
static const uint8_t code[] = {0x31, 0xC0, 0x74, 0x04, 0x0F, 0x05, 0xEB, 0xF8, 0xE8, 0x03, 0,    0,    0,
                               0xC3, 0x90, 0x90, 0xC3, 0xB8, 15,   0,    0,    0,    0x0F, 0x05, 0x0F, 0x0B};

static size_t code_memory(struct fake *fake, uint64_t address, void *buffer, size_t size)
{
  uint8_t page[4096] = {0};

  (void)fake;
  if (address < CODE || address >= CODE + sizeof(page))
    return 0;
  memcpy(page, code, sizeof(code));
  if (size > CODE + sizeof(page) - address)
    size = (size_t)(CODE + sizeof(page) - address);
  memcpy(buffer, page + (address - CODE), size);
  return size;
}

/* What came to the sink, as lines. */
struct log {
  char text[4096];
  size_t length;
  unsigned streams;
};

static void log_add(struct log *log, const char *format, ...)
{
  va_list arguments;

  va_start(arguments, format);
  log->length += (size_t)vsnprintf(log->text + log->length, sizeof(log->text) - log->length, format, arguments);
  va_end(arguments);
  assert_true(log->length < sizeof(log->text));
}

static int log_module(void *data, const struct lb_trace_module *module)
{
  log_add(data, "module %u %llx+%llx %s\n", module->space, (unsigned long long)module->address,
          (unsigned long long)module->size, module->is_gone ? "gone" : module->name);
  return 0;
}

static int log_code(void *data, const struct lb_trace_code *piece)
{
  log_add(data, "code %u %llx\n", piece->space, (unsigned long long)piece->address);
  return 0;
}

static int log_stream(void *data, const struct lb_trace_stream *stream, uint32_t *ret_number)
{
  struct log *log = data;

  *ret_number = log->streams++;
  log_add(log, "stream %u space %u process %u thread %u %s\n", *ret_number, stream->space, stream->process,
          stream->thread, stream->name);
  return 0;
}

static int log_branches(void *data, uint32_t stream, const struct lb_branch *branches, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(branches[i].from_cpl, 3);
    assert_int_equal(branches[i].to_cpl, 3);
    log_add(data, "%u %llx %llx %s%s\n", stream, (unsigned long long)branches[i].from,
            (unsigned long long)branches[i].to, lb_branch_kind_name(branches[i].kind),
            branches[i].flags & LB_BRANCH_MISPREDICTED ? " missed" : "");
  }
  return 0;
}

static int log_gap(void *data, const struct lb_trace_gap *gap)
{
  log_add(data, "gap %d %s\n", gap->stream == LB_TRACE_ALL ? -1 : (int)gap->stream, lb_trace_gap_name(gap->reason));
  return 0;
}

static struct source_sink log_sink(struct log *log)
{
  return (struct source_sink){log, log_module, log_code, log_stream, log_branches, log_gap, NULL};
}

static char *const words[] = {(char *)(uintptr_t) "program", NULL};

/* Records with the fake until it is over; `problem` NULL: it must start. Returns what source_start does. */
static int record(struct fake *fake, const struct source_options *options, const struct source_sink *sink,
                  struct source_problem *problem, char sampling[160])
{
  struct source_problem none;
  struct source *source;
  int r = source_start(&fake->kernel, options, "program", words, words, sink, &source, problem ? problem : &none);

  if (problem)
    return r;
  assert_int_equal(r, 0);
  if (sampling)
    snprintf(sampling, 160, "%s", source_sampling(source) ? source_sampling(source) : "");
  while (!source_state(source)->is_over)
    assert_int_equal(source_step(source, 1), 0);
  assert_int_equal(source_finish(source), 0);
  source_free(source);
  assert_int_equal(fake->opened, FAKE_CPUS);
  assert_int_equal(fake->closed, FAKE_CPUS);
  assert_int_equal(fake->mapped, fake->unmapped);
  return r;
}

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

/* ---- bts ---- */

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

/* ---- what can go wrong ---- */

static void test_problems(void **state)
{
  static const struct {
    enum source_kind kind;
    int open, map, go;
    const char *text, *advice;
  } cases[] = {
    {SOURCE_LBR, -EACCES, 0, 0, "refuses", "perf_event_paranoid"},
    {SOURCE_LBR, -ENOENT, 0, 0, "no such device", "--source software"},
    {SOURCE_LBR, -EOPNOTSUPP, 0, 0, "does not offer", "--source software"},
    {SOURCE_LBR, -ENOSYS, 0, 0, "seccomp", "--source software"},
    {SOURCE_LBR, -EMFILE, 0, 0, "too many files", "ulimit -n"},
    {SOURCE_LBR, -EBUSY, 0, 0, "somebody else", "try again"},
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

/* ---- items by number ---- */

#define ITEMS 1000u

static void test_id_table(void **state)
{
  struct id_table table = {0};

  (void)state;
  assert_null(id_table_find(&table, 7));
  id_table_drop(&table, 7);
  for (uint32_t i = 0; i < ITEMS; i++) {
    uint32_t *item = id_table_get(&table, i * 4096, sizeof(*item));

    assert_non_null(item);
    assert_int_equal(*item, 0);
    *item = i + 1;
  }
  for (uint32_t i = 0; i < ITEMS; i += 3)
    id_table_drop(&table, i * 4096);
  for (uint32_t i = 0; i < ITEMS; i++) {
    const uint32_t *item = id_table_find(&table, i * 4096);

    assert_int_equal(item ? *item : 0, i % 3 ? i + 1 : 0);
    if (item)
      assert_ptr_equal(id_table_get(&table, i * 4096, sizeof(*item)), item);
  }
  assert_int_equal(table.count, ITEMS - (ITEMS + 2) / 3);
  id_table_done(&table);
  assert_null(id_table_find(&table, 4096));
}

/* ---- blocks ---- */

static void test_conditions(void **state)
{
  static const uint8_t jz[] = {0x74, 0}, ja[] = {0x0F, 0x87, 0, 0, 0, 0}, jle[] = {0x3E, 0x7E, 0}, loop[] = {0xE2, 0},
                       loopne[] = {0xE0, 0}, jecxz[] = {0x67, 0xE3, 0}, jrcxz[] = {0xE3, 0};

  (void)state;
  assert_true(step_is_taken(jz, 2, 0x40, 0));
  assert_false(step_is_taken(jz, 2, 0x1, 0));
  assert_true(step_is_taken(ja, 6, 0, 0));
  assert_false(step_is_taken(ja, 6, 0x1, 0));
  assert_false(step_is_taken(ja, 6, 0x40, 0));
  assert_true(step_is_taken(jle, 3, 0x80, 0));
  assert_false(step_is_taken(jle, 3, 0x880, 0));
  assert_true(step_is_taken(jle, 3, 0x8C0, 0));
  assert_true(step_is_taken(loop, 2, 0, 2));
  assert_false(step_is_taken(loop, 2, 0, 1));
  assert_true(step_is_taken(loopne, 2, 0, 2));
  assert_false(step_is_taken(loopne, 2, 0x40, 2));
  assert_true(step_is_taken(jrcxz, 2, 0, 0));
  assert_false(step_is_taken(jrcxz, 2, 0, UINT64_C(1) << 32));
  assert_true(step_is_taken(jecxz, 3, 0, UINT64_C(1) << 32));
  assert_false(step_is_taken(jz, 0, 0x40, 0));
}

static uint8_t block_bytes[64];

static size_t block_memory(void *data, uint32_t process, uint64_t address, void *buffer, size_t size)
{
  (void)data, (void)process;
  if (address < CODE || address - CODE >= sizeof(block_bytes))
    return 0;
  if (size > sizeof(block_bytes) - (address - CODE))
    size = sizeof(block_bytes) - (size_t)(address - CODE);
  memcpy(buffer, block_bytes + (address - CODE), size);
  return size;
}

/* Which ways out of code there are; by the bytes of Jcc (74), JMP (EB), JMP RAX (FF E0), RET and SYSCALL. */
static void test_blocks(void **state)
{
  static const struct {
    uint8_t bytes[16];
    unsigned count;
    bool is_ambiguous;
  } cases[] = {
    {{0x90, 0x74, 0x10, 0xEB, 0x20}, 2, false},
    {{0x90, 0x74, 0x10, 0x90, 0x74, 0x0D, 0xEB, 0x20}, 3, true}, /* both to 13 */
    {{0x74, 0x02, 0x0F, 0x05}, 2, true},                         /* over SYSCALL, to where it returns */
    {{0x74, 0x10, 0x0F, 0x05}, 2, false},
    {{0x74, 0x10, 0xFF, 0xE0}, 2, true}, /* an indirect jump may go there, too */
    {{0x90, 0xFF, 0xE0}, 1, false},
    {{0x74, 0x10, 0xC3}, 2, false},
    {{0xCC}, 1, true},
  };
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  struct task_thread *thread;
  struct tasks *tasks;
  struct step_block block;

  (void)state;
  assert_int_equal(tasks_new(&sink, block_memory, NULL, &tasks), 0);
  tasks_live(tasks);
  thread = tasks_thread(tasks, 1, 1);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    memset(block_bytes, 0x90, sizeof(block_bytes));
    memcpy(block_bytes, cases[i].bytes, sizeof(cases[i].bytes));
    tasks_live_again(tasks);
    step_block_read(tasks, thread, CODE, &block);
    if (block.count != cases[i].count || block.is_ambiguous != cases[i].is_ambiguous)
      fail_msg("case %zu: %zu exits, %d", i, block.count, block.is_ambiguous);
  }
  memcpy(block_bytes, cases[0].bytes, sizeof(cases[0].bytes));
  tasks_live_again(tasks);
  step_block_read(tasks, thread, CODE, &block);
  assert_int_equal(step_block_find(&block, CODE + 0x13)->from, CODE + 1);
  assert_int_equal(step_block_find(&block, CODE + 0x25)->from, CODE + 3);
  assert_null(step_block_find(&block, CODE + 7));
  step_block_read(tasks, thread, CODE + 1000, &block); /* nothing there */
  assert_true(block.is_ambiguous);
  tasks_free(tasks);
}

/* ---- the real kernel ---- */

/* A dummy event: the same rings, and MMAP2, COMM, FORK and EXIT records as of the hardware's events. */
static void test_real_kernel(void **state)
{
  const struct source_options options = {0};
  const struct source_kernel *kernel = source_kernel_real();
  char *const arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                             (char *)(uintptr_t) "/bin/true; :", NULL};
  struct perf_session session = {.kernel = kernel, .kind = SOURCES};
  struct source_problem problem;
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  int process, status, r;

  (void)state;
  assert_int_equal(tasks_new(&sink, NULL, NULL, &session.tasks), 0);
  assert_int_equal(kernel->launch(kernel->data, "/bin/sh", arguments, environ, &process), 0);
  r = perf_session_open(&session, process, &options, &problem);
  if (r == -EACCES || r == -EPERM || r == -ENOSYS || r == -ENOENT) {
    kernel->drop(kernel->data, process);
    perf_session_close(&session);
    tasks_free(session.tasks);
    print_message("perf_event_open is not permitted here: %s\n", problem.text);
    skip();
  }
  assert_int_equal(r, 0);
  assert_int_equal(kernel->go(kernel->data, process), 0);
  while (waitpid(process, &status, WNOHANG) == 0)
    assert_int_equal(perf_session_step(&session, 20, false), 0);
  assert_int_equal(perf_session_step(&session, 0, true), 0);
  assert_int_equal(WEXITSTATUS(status), 0);
  /* The shell, its copy for the child, and what that executes: three address spaces. */
  assert_non_null(strstr(log.text, "module 0 "));
  assert_non_null(strstr(log.text, "module 1 "));
  assert_non_null(strstr(log.text, "module 2 "));
  assert_non_null(strstr(log.text, "/true\n"));
  assert_non_null(strstr(log.text, "sh\n"));
  assert_non_null(strstr(log.text, "[vdso]\n"));
  assert_null(strstr(log.text, "gap"));
  perf_session_close(&session);
  tasks_free(session.tasks);
}

/* The same as a source, which is asked how processes die: a shell that starts another program, handles a signal, and is
 * killed by the next. */
static void test_real_death(void **state)
{
  const struct source_options options = {.kind = SOURCES, .wants_deaths = true};
  char *const arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                             (char *)(uintptr_t) "/bin/true & wait; trap : USR1; kill -USR1 $$; kill -SEGV $$", NULL};
  struct source_problem problem;
  struct source_death death;
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  struct source *source;
  unsigned deaths = 0;
  pid_t child;
  int r;

  (void)state;
  child = fork(); /* all children of this process are waited for */
  if (child == 0) {
    r = source_start(source_kernel_real(), &options, "/bin/sh", arguments, environ, &sink, &source, &problem);
    if (r < 0)
      _exit(77);
    while (!source_state(source)->is_over)
      source_step(source, 20);
    while (source_death_next(source, &death))
      deaths +=
        death.signal == SIGSEGV && death.process == source_state(source)->process && death.code == 0 && death.rip;
    r = source_state(source)->status;
    source_free(source);
    _exit(deaths == 1 && WIFSIGNALED(r) && WTERMSIG(r) == SIGSEGV ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &r, 0), child);
  if (WIFEXITED(r) && WEXITSTATUS(r) == 77)
    skip();
  assert_true(WIFEXITED(r));
  assert_int_equal(WEXITSTATUS(r), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ring_wraps),    cmocka_unit_test(test_ring_is_not_believed),
    cmocka_unit_test(test_records),       cmocka_unit_test(test_branch_flags),
    cmocka_unit_test(test_branch_filter), cmocka_unit_test(test_sample),
    cmocka_unit_test(test_lbr),           cmocka_unit_test(test_lbr_choices),
    cmocka_unit_test(test_lbr_trace),     cmocka_unit_test(test_bts),
    cmocka_unit_test(test_bts_threads),   cmocka_unit_test(test_bts_turns),
    cmocka_unit_test(test_bts_full),      cmocka_unit_test(test_bts_liar),
    cmocka_unit_test(test_problems),      cmocka_unit_test(test_names),
    cmocka_unit_test(test_id_table),      cmocka_unit_test(test_conditions),
    cmocka_unit_test(test_blocks),        cmocka_unit_test(test_real_kernel),
    cmocka_unit_test(test_real_death),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
