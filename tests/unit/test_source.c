/* SPDX-License-Identifier: Apache-2.0
 *
 * Rings, records and branch stacks by the layouts of <linux/perf_event.h>, whole and broken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "source/perf.h"
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

PART(cmocka_unit_test(test_ring_wraps), cmocka_unit_test(test_ring_is_not_believed), cmocka_unit_test(test_records),
     cmocka_unit_test(test_branch_flags), cmocka_unit_test(test_branch_filter), cmocka_unit_test(test_sample));
