/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of stamps in traces (src/trace): what is written comes back, between the same branches, in chunks of branches
 * and of entries, after gaps, in tails, beside damage; the bytes are those of doc/trace-format.md; and the times of
 * branches are those that were computed by hand.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lastbranch/error.h"
#include "trace/stamp.h"
#include "trace/trace.h"
#include "trace_contents.h"
#include "trace_folder.h"

/* ---- writing ---- */

static struct lb_trace_writer *writer_new(void)
{
  struct lb_trace_writer *writer;
  uint32_t number;

  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  for (unsigned i = 0; i < 2; i++)
    assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "thread"}, &number), 0);
  return writer;
}

static void branches_add(struct lb_trace_writer *writer, uint32_t stream, unsigned count)
{
  const struct lb_branch branch = {.from = 0x1000, .to = 0x2000, .kind = LB_BRANCH_NEAR_REL_JMP};

  for (unsigned i = 0; i < count; i++)
    assert_int_equal(lb_trace_writer_branches(writer, stream, &branch, 1), 0);
}

static void stamp_add(struct lb_trace_writer *writer, uint32_t stream, const struct trace_stamp *stamp)
{
  assert_int_equal(trace_writer_stamp(writer, stream, stamp), 0);
}

static void time_add(struct lb_trace_writer *writer, uint32_t stream, uint64_t time)
{
  stamp_add(writer, stream, &(struct trace_stamp){.type = TRACE_STAMP_TIME, .time = time});
}

static void writer_finish(struct lb_trace_writer *writer)
{
  assert_int_equal(lb_trace_writer_close(writer), 0);
}

/* ---- reading ---- */

static struct lb_trace_reader *reader_new(void)
{
  struct lb_trace_reader *reader;

  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  trace_reader_want_stamps(reader);
  return reader;
}

enum { STAMPS_MAX = 4096 };

/* The stamps of stream 0, and how many of its branches came, each after those before it. */
struct seen {
  struct trace_stamp stamps[STAMPS_MAX];
  size_t count;
  uint64_t branches, next; /* number of the branch that comes next */
  unsigned gaps;
  void (*look)(const struct lb_trace_reader *reader, uint64_t number); /* at each branch; NULL: nothing */
};

static void branches_see(struct seen *seen, const struct lb_trace_reader *reader,
                         const struct lb_trace_branches *branches)
{
  assert_true(branches->count > 0);
  for (size_t i = 0; i < branches->count; i++) {
    assert_int_equal(branches->branches[i].from, 0x1000);
    if (seen->look)
      seen->look(reader, branches->first + i);
  }
  seen->next = branches->first + branches->count;
  seen->branches += branches->count;
}

static void seen_read(struct seen *seen, struct lb_trace_reader *reader)
{
  struct lb_trace_record record;
  int r;

  while ((r = lb_trace_reader_next(reader, &record)) > 0) {
    const struct trace_stamp *stamp = trace_record_stamp(&record);

    if (stamp && stamp->stream == 0) {
      assert_true(seen->count < STAMPS_MAX);
      if (seen->branches)
        assert_int_equal(stamp->number, seen->next);
      seen->stamps[seen->count++] = *stamp;
    } else if (record.type == LB_TRACE_BRANCHES && record.branches.stream == 0) {
      branches_see(seen, reader, &record.branches);
    } else if (record.type == LB_TRACE_GAP) {
      seen->gaps++;
      seen->next = record.gap.first + record.gap.count;
    }
  }
  assert_int_equal(r, 0);
}

static struct seen *seen_new(void)
{
  struct seen *seen = calloc(1, sizeof(*seen));
  struct lb_trace_reader *reader = reader_new();

  assert_non_null(seen);
  seen_read(seen, reader);
  lb_trace_reader_close(reader);
  return seen;
}

static void assert_stamp_equal(const struct trace_stamp *got, const struct trace_stamp *want, uint64_t number)
{
  assert_int_equal(got->type, want->type);
  assert_int_equal(got->number, number);
  assert_int_equal(got->time, want->time);
  assert_int_equal(got->has_cpu, want->has_cpu);
  assert_int_equal(got->cpu, want->cpu);
  assert_int_equal(got->has_used, want->has_used);
  assert_int_equal(got->used, want->used);
  assert_int_equal(got->code, want->code);
  assert_int_equal(got->result, want->result);
  assert_int_equal(got->value, want->value);
  assert_int_equal(got->argument_count, want->argument_count);
  assert_memory_equal(got->arguments, want->arguments, sizeof(got->arguments));
}

/* ---- bytes ---- */

static void assert_bytes(const struct stamp_encoder *encoder, const uint8_t *bytes, size_t size)
{
  assert_int_equal(encoder->bytes.size, size);
  assert_memory_equal(encoder->bytes.bytes, bytes, size);
}

/* By hand, from the page: type and flags, branches since the stamp before, zigzag of the time since it, and so on. */
static void test_bytes(void **state)
{
  static const uint8_t want[] = {
    0x31, 0x00, 0xC8, 0x01, 0x03, 0x0A,                                           /* 100 ns, CPU 3, used 5 */
    0x02, 0x05, 0x02, 0x01, 0x02, 0x01, 0x0E, 0x04, 'f',  'o',  'o',  0x00,       /* call */
    0x03, 0x00, 0x01, 0x03,                                                       /* one ns back; -2 */
    0x24, 0x80, 0x01, 0x00, 0x01, 0x0B, 0x02, 0xFF, 0x01,                         /* signal */
    0x06, 0x00, 0x00, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, /* held */
    0x05, 0x00, 0x00, 0x06,                                                       /* end */
  };
  struct stamp_encoder encoder = {0};

  (void)state;
  stamp_encoder_begin(&encoder);
  assert_int_equal(
    stamp_encoder_add(&encoder,
                      &(struct trace_stamp){
                        .type = TRACE_STAMP_START, .time = 100, .has_cpu = true, .cpu = 3, .has_used = true, .used = 5},
                      0),
    0);
  assert_int_equal(stamp_encoder_add(&encoder,
                                     &(struct trace_stamp){.type = TRACE_STAMP_CALL,
                                                           .time = 101,
                                                           .code = 1,
                                                           .argument_count = 2,
                                                           .arguments = {(uint64_t)-1, 7},
                                                           .paths = {"foo", NULL}},
                                     5),
                   0);
  assert_int_equal(
    stamp_encoder_add(&encoder, &(struct trace_stamp){.type = TRACE_STAMP_RETURN, .time = 100, .result = -2}, 5), 0);
  assert_int_equal(
    stamp_encoder_add(
      &encoder,
      &(struct trace_stamp){
        .type = TRACE_STAMP_SIGNAL, .time = 100, .has_used = true, .used = 4, .code = 11, .result = 1, .value = 255},
      133),
    0);
  assert_int_equal(
    stamp_encoder_add(&encoder, &(struct trace_stamp){.type = TRACE_STAMP_HELD, .time = 100, .result = INT64_MAX}, 133),
    0);
  assert_int_equal(
    stamp_encoder_add(&encoder, &(struct trace_stamp){.type = TRACE_STAMP_END, .time = 100, .result = 3}, 133), 0);
  assert_bytes(&encoder, want, sizeof(want));
  buffer_done(&encoder.bytes);
}

static void assert_damaged(const char *bytes, size_t size)
{
  static struct stamp_decoder decoder;
  struct trace_stamp stamp;

  stamp_decoder_begin(&decoder, (struct cursor){(const uint8_t *)bytes, (const uint8_t *)bytes + size, false});
  assert_int_equal(stamp_decoder_next(&decoder, &stamp), LB_E_DAMAGED);
  assert_int_equal(stamp_decoder_next(&decoder, &stamp), 0);
}

static void test_bytes_damaged(void **state)
{
  (void)state;
  assert_damaged("\x07\x00\x00", 3);                                  /* no such type */
  assert_damaged("\x40\x00\x00", 3);                                  /* no such flag */
  assert_damaged("\x00\x00", 2);                                      /* it ends too early */
  assert_damaged("\x10\x00\x00\x80\x80\x04", 6);                      /* CPU 65536 */
  assert_damaged("\x02\x00\x00\x00\x07", 5);                          /* seven arguments */
  assert_damaged("\x02\x00\x00\x80\x80\x80\x80\x10\x00\x00\x00", 11); /* call 2^32 */
  assert_damaged("\x02\x00\x00\x00\x00\x03\x61", 7);                  /* a path that is cut */
  assert_damaged("\x02\x00\x00\x00\x00\x02\x00\x00", 8);              /* a zero in a path */
}

/* ---- values ---- */

static void test_types(void **state)
{
  static const struct trace_stamp stamps[] = {
    {.type = TRACE_STAMP_START, .time = 7, .has_cpu = true, .cpu = UINT16_MAX, .has_used = true, .used = UINT64_MAX},
    {.type = TRACE_STAMP_TIME, .time = UINT64_MAX - 1, .has_used = true, .used = 0},
    {.type = TRACE_STAMP_CALL,
     .time = 3,
     .code = UINT32_MAX,
     .argument_count = 6,
     .arguments = {0, 1, UINT64_MAX, (uint64_t)INT64_MIN, INT64_MAX, 0xFFFFFFFF}},
    {.type = TRACE_STAMP_RETURN, .time = 3, .result = INT64_MIN},
    {.type = TRACE_STAMP_SIGNAL, .time = 4, .code = 64, .result = -6, .value = UINT64_MAX},
    {.type = TRACE_STAMP_HELD, .time = 5, .result = INT64_MAX},
    {.type = TRACE_STAMP_END, .time = 6, .result = -1},
  };
  enum { COUNT = sizeof(stamps) / sizeof(*stamps) };
  struct lb_trace_writer *writer = writer_new();
  struct seen *seen;

  (void)state;
  for (unsigned i = 0; i < COUNT; i++) {
    branches_add(writer, 0, i);
    stamp_add(writer, 0, &stamps[i]);
    stamp_add(writer, 1, &stamps[COUNT - 1 - i]);
  }
  writer_finish(writer);
  seen = seen_new();
  assert_int_equal(seen->count, COUNT);
  assert_int_equal(seen->branches, COUNT * (COUNT - 1) / 2);
  for (unsigned i = 0; i < COUNT; i++)
    assert_stamp_equal(&seen->stamps[i], &stamps[i], i * (i + 1) / 2);
  free(seen);
}

static void test_refused(void **state)
{
  struct lb_trace_writer *writer = writer_new();

  (void)state;
  assert_int_equal(trace_writer_stamp(writer, 0, &(struct trace_stamp){.type = TRACE_STAMP_TYPES}), -EINVAL);
  assert_int_equal(trace_writer_stamp(writer, 2, &(struct trace_stamp){0}), -EINVAL);
  assert_int_equal(trace_writer_stamp(writer, 0, &(struct trace_stamp){.type = TRACE_STAMP_CALL, .argument_count = 7}),
                   -EINVAL);
  writer_finish(writer);
}

static void path_check(const char *one, const char *other)
{
  struct lb_trace_writer *writer = writer_new();
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  const struct trace_stamp *stamp = NULL;

  stamp_add(writer, 0, &(struct trace_stamp){.type = TRACE_STAMP_CALL, .paths = {one, other}});
  writer_finish(writer);
  reader = reader_new();
  while (!stamp && lb_trace_reader_next(reader, &record) > 0)
    stamp = trace_record_stamp(&record);
  assert_non_null(stamp);
  for (unsigned i = 0; i < 2; i++) {
    const char *want = i ? other : one;

    assert_int_equal(!stamp->paths[i], !want);
    if (want)
      assert_int_equal(strlen(stamp->paths[i]), strlen(want) < 255 ? strlen(want) : 255);
    if (want)
      assert_memory_equal(stamp->paths[i], want, strlen(stamp->paths[i]));
  }
  lb_trace_reader_close(reader);
}

static void test_paths(void **state)
{
  char name[301];

  (void)state;
  memset(name, 'n', 300);
  name[300] = 0;
  path_check(name, NULL);
  path_check(NULL, name);
  name[255] = 0;
  path_check(name, "");
  path_check("", "\xFF\n\"");
  path_check(NULL, NULL);
}

/* ---- times of branches ---- */

static uint64_t times[64];

static void time_note(const struct lb_trace_reader *reader, uint64_t number)
{
  if (number < 64)
    times[number] = trace_reader_time(reader, number);
}

static void times_read(void)
{
  struct seen *seen = calloc(1, sizeof(*seen));
  struct lb_trace_reader *reader = reader_new();

  assert_non_null(seen);
  memset(times, 0, sizeof(times));
  seen->look = time_note;
  seen_read(seen, reader);
  lb_trace_reader_close(reader);
  free(seen);
}

static void test_interpolation(void **state)
{
  /* Stamps before branches 2, 6, 7 and 10: at 100, 200, 150 (back) and 153. */
  static const uint64_t want[12] = {100, 100, 100, 125, 150, 175, 200, 150, 151, 152, 153, 153};
  struct lb_trace_writer *writer = writer_new();

  (void)state;
  branches_add(writer, 0, 2);
  time_add(writer, 0, 100);
  branches_add(writer, 0, 4);
  time_add(writer, 0, 200);
  branches_add(writer, 0, 1);
  time_add(writer, 0, 150);
  branches_add(writer, 0, 3);
  time_add(writer, 0, 153);
  branches_add(writer, 0, 2);
  writer_finish(writer);
  times_read();
  assert_memory_equal(times, want, sizeof(want));
}

/* The largest span that there is, and what is in its middle. */
static void test_interpolation_far(void **state)
{
  struct lb_trace_writer *writer = writer_new();

  (void)state;
  time_add(writer, 0, 0);
  branches_add(writer, 0, 4);
  time_add(writer, 0, UINT64_MAX - 1);
  writer_finish(writer);
  times_read();
  assert_int_equal(times[0], 0);
  assert_int_equal(times[1], UINT64_C(1) << 62);
  assert_int_equal(times[2], UINT64_C(1) << 63);
  assert_int_equal(times[3], UINT64_C(3) << 62);
}

static void no_time(const struct lb_trace_reader *reader, uint64_t number)
{
  assert_true(trace_reader_time(reader, number) == TRACE_NO_TIME);
}

static void test_no_times(void **state)
{
  struct lb_trace_writer *writer = writer_new();
  struct lb_trace_reader *reader;
  struct seen *seen = calloc(1, sizeof(*seen));

  (void)state;
  assert_non_null(seen);
  branches_add(writer, 0, 10);
  time_add(writer, 1, 5);
  writer_finish(writer);
  reader = reader_new();
  seen->look = no_time;
  seen_read(seen, reader);
  assert_int_equal(seen->branches, 10);
  lb_trace_reader_close(reader);
  /* A reader that was not asked gives the branches in one piece, and nothing that the public header does not have. */
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  *seen = (struct seen){.look = no_time};
  seen_read(seen, reader);
  assert_int_equal(seen->count, 0);
  assert_int_equal(seen->branches, 10);
  lb_trace_reader_close(reader);
  free(seen);
}

/* ---- chunks ---- */

/* A stamp before each thousandth branch, at ten times its number. */
static void thousands_write(unsigned thousands)
{
  struct lb_trace_writer *writer = writer_new();

  for (unsigned i = 0; i < thousands; i++) {
    time_add(writer, 0, UINT64_C(10000) * i);
    branches_add(writer, 0, 1000);
  }
  time_add(writer, 0, UINT64_C(10000) * thousands);
  writer_finish(writer);
}

/* A chunk begins at the time of the last stamp before it, and from its last stamp on, the time is that of the stamp. */
static void time_near(const struct lb_trace_reader *reader, uint64_t number)
{
  uint64_t time = trace_reader_time(reader, number);

  assert_true(time <= 10 * number && time >= number / 1000 * 10000);
}

static void test_chunks(void **state)
{
  struct seen *seen = calloc(1, sizeof(*seen));
  struct lb_trace_reader *reader;

  (void)state;
  assert_non_null(seen);
  thousands_write(2200);
  reader = reader_new();
  for (unsigned again = 0; again < 2; again++) {
    *seen = (struct seen){.look = time_near};
    lb_trace_reader_rewind(reader);
    seen_read(seen, reader);
    assert_int_equal(seen->count, 2201);
    assert_int_equal(seen->branches, 2200000);
    for (unsigned i = 0; i <= 2200; i++)
      assert_int_equal(seen->stamps[i].number, 1000 * i);
  }
  lb_trace_reader_close(reader);
  free(seen);
}

static void test_tail(void **state)
{
  struct seen *seen = calloc(1, sizeof(*seen));
  struct lb_trace_reader *reader;

  (void)state;
  assert_non_null(seen);
  thousands_write(60);
  reader = reader_new();
  for (unsigned count = 1; count < 60000; count += 1499) {
    unsigned first = 60000 - count;

    *seen = (struct seen){.look = time_near};
    assert_int_equal(lb_trace_reader_tail(reader, 0, count), 0);
    seen_read(seen, reader);
    assert_int_equal(seen->branches, count);
    assert_int_equal(seen->count, 60 - (first + 999) / 1000 + 1);
    assert_int_equal(seen->stamps[0].number, (first + 999) / 1000 * 1000);
  }
  lb_trace_reader_close(reader);
  free(seen);
}

/* A chunk ends at each flush; stamps alone make chunks, too. */
static void test_flush(void **state)
{
  struct lb_trace_writer *writer = writer_new();
  struct seen *seen;

  (void)state;
  for (unsigned i = 0; i < 20; i++) {
    assert_int_equal(lb_trace_writer_flush(writer), 0);
    time_add(writer, 0, i);
    assert_int_equal(lb_trace_writer_flush(writer), 0);
    time_add(writer, 0, i);
    branches_add(writer, 0, i % 3);
  }
  assert_int_equal(lb_trace_writer_flush(writer), 0);
  assert_int_equal(lb_trace_writer_flush(writer), 0);
  writer_finish(writer);
  seen = seen_new();
  assert_int_equal(seen->count, 40);
  assert_int_equal(seen->branches, 19);
  for (unsigned i = 0; i < 40; i++)
    assert_int_equal(seen->stamps[i].time, i / 2);
  free(seen);
}

static void test_gap(void **state)
{
  struct lb_trace_writer *writer = writer_new();
  struct seen *seen;

  (void)state;
  branches_add(writer, 0, 3);
  time_add(writer, 0, 30);
  assert_int_equal(
    lb_trace_writer_gap(writer, &(struct lb_trace_gap){.stream = 0, .reason = LB_TRACE_LOST, .count = 5}), 0);
  time_add(writer, 0, 80);
  branches_add(writer, 0, 2);
  time_add(writer, 0, 100);
  writer_finish(writer);
  seen = seen_new();
  assert_int_equal(seen->gaps, 1);
  assert_int_equal(seen->count, 3);
  assert_int_equal(seen->stamps[0].number, 3);
  assert_int_equal(seen->stamps[1].number, 8);
  assert_int_equal(seen->stamps[2].number, 10);
  times_read();
  assert_int_equal(times[2], 30);
  assert_int_equal(times[8], 80);
  assert_int_equal(times[9], 90);
  free(seen);
}

/* A chunk in the middle is damaged: its stamps are missing, and all others are at their places. */
static void test_damage(void **state)
{
  struct lb_trace_reader *reader;
  struct seen *seen = calloc(1, sizeof(*seen));
  uint8_t *bytes;
  size_t size;

  (void)state;
  assert_non_null(seen);
  thousands_write(60);
  bytes = file_load(path, &size);
  bytes[size / 2] ^= 1;
  assert_int_equal(lb_trace_reader_open_bytes(bytes, size, &reader), 0);
  trace_reader_want_stamps(reader);
  seen->look = time_near;
  seen_read(seen, reader);
  assert_true(seen->gaps > 0 && seen->count > 0 && seen->count < 61);
  for (size_t i = 0; i < seen->count; i++)
    assert_int_equal(seen->stamps[i].time, 10 * seen->stamps[i].number);
  lb_trace_reader_close(reader);
  free(bytes);
  free(seen);
}

/* ---- entries ---- */

/* One path with one step, which jumps to the path's beginning: each entry is a branch. */
static bool loop_lookup(void *context, uint32_t number, struct lb_step *ret_step)
{
  static const struct lb_step steps[2] = {
    {.from = 0x1000, .head = 1, .flags = LB_STEP_HEAD, .count = 1},
    {.from = 0x1000, .to = 0x1000, .head = 1, .next = 1, .kind = LB_BRANCH_NEAR_REL_JMP, .length = 2},
  };

  (void)context;
  if (number < 1 || number > 2)
    return false;
  *ret_step = steps[number - 1];
  return true;
}

/* A stamp of these words: those whose time is odd are not complete. */
static const struct trace_stamp *words_make(void *context, uint32_t stream, const uint32_t words[LB_ENTRY_EVENT_WORDS])
{
  struct trace_stamp *stamp = context;

  assert_int_equal(stream, 0);
  assert_int_equal(words[0] & 0xFF, LB_ENTRY_STAMP);
  *stamp = (struct trace_stamp){.type = TRACE_STAMP_TIME, .time = words[1]};
  return words[1] % 2 ? NULL : stamp;
}

static void entries_write(unsigned count, unsigned between)
{
  const uint32_t step = 2;
  struct lb_trace_writer *writer = writer_new();
  struct trace_stamp stamp;

  lb_trace_writer_paths(writer, loop_lookup, NULL);
  trace_writer_stamps(writer, words_make, &stamp);
  assert_int_equal(lb_trace_writer_entries(writer, 0, (uint32_t[]){LB_ENTRY_ENTER | 1}, 1), 0);
  for (unsigned i = 0; i < count; i++) {
    const uint32_t event[] = {LB_ENTRY_EVENT, LB_ENTRY_STAMP, i * 10, 0, 0, 0};

    assert_int_equal(lb_trace_writer_entries(writer, 0, event, i % 5), 0);
    assert_int_equal(lb_trace_writer_entries(writer, 0, event + i % 5, 6 - i % 5), 0);
    assert_int_equal(lb_trace_writer_entries(writer, 0, (uint32_t[]){LB_ENTRY_EVENT, LB_ENTRY_STAMP, 1, 0, 0, 0}, 6),
                     0);
    for (unsigned j = 0; j < between; j++)
      assert_int_equal(lb_trace_writer_entries(writer, 0, &step, 1), 0);
  }
  writer_finish(writer);
}

static void time_of_entry(const struct lb_trace_reader *reader, uint64_t number)
{
  uint64_t time = trace_reader_time(reader, number);

  assert_true(time <= number * 10 / 300 && time >= number / 300 * 10);
}

static void test_entries(void **state)
{
  struct seen *seen = calloc(1, sizeof(*seen));
  struct lb_trace_reader *reader;

  (void)state;
  assert_non_null(seen);
  entries_write(1000, 300);
  reader = reader_new();
  seen->look = time_of_entry;
  seen_read(seen, reader);
  assert_int_equal(seen->branches, 300000);
  assert_int_equal(seen->count, 1000);
  for (unsigned i = 0; i < 1000; i++) {
    assert_int_equal(seen->stamps[i].number, 300 * i);
    assert_int_equal(seen->stamps[i].time, 10 * i);
  }
  *seen = (struct seen){.look = time_of_entry};
  assert_int_equal(lb_trace_reader_tail(reader, 0, 1000), 0);
  seen_read(seen, reader);
  assert_int_equal(seen->branches, 1000);
  assert_int_equal(seen->count, 3);
  assert_int_equal(seen->stamps[0].number, 299100);
  lb_trace_reader_close(reader);
  free(seen);
}

/* Counted branches: all stamps come, after the counts of their chunks. */
static void test_counted(void **state)
{
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  uint64_t counted = 0, stamps = 0;

  (void)state;
  entries_write(1000, 300);
  reader = reader_new();
  lb_trace_reader_count(reader, LB_TRACE_ALL);
  while (lb_trace_reader_next(reader, &record) > 0) {
    counted += record.type == LB_TRACE_COUNTED ? record.counted.count : 0;
    counted += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
    if (trace_record_stamp(&record)) {
      assert_int_equal(trace_record_stamp(&record)->time, 10 * stamps);
      stamps++;
    }
  }
  assert_int_equal(counted, 300000);
  assert_int_equal(stamps, 1000);
  lb_trace_reader_close(reader);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bytes),
    cmocka_unit_test(test_bytes_damaged),
    cmocka_unit_test(test_types),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_paths),
    cmocka_unit_test(test_interpolation),
    cmocka_unit_test(test_interpolation_far),
    cmocka_unit_test(test_no_times),
    cmocka_unit_test(test_chunks),
    cmocka_unit_test(test_tail),
    cmocka_unit_test(test_flush),
    cmocka_unit_test(test_gap),
    cmocka_unit_test(test_damage),
    cmocka_unit_test(test_entries),
    cmocka_unit_test(test_counted),
  };

  return cmocka_run_group_tests(tests, group_begin, group_end);
}
