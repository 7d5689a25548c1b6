/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/trace: what is written comes back, whatever the branches; what is missing comes back as a gap, wherever
 * a file was cut or damaged; files get their names when they are done.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "trace/trace.h"
#include "trace_contents.h"

/* ---- helpers ---- */

static char folder[] = "/tmp/test-trace-XXXXXX";
static char path[64], incomplete[80];

static int group_begin(void **state)
{
  (void)state;
  if (!mkdtemp(folder))
    return -1;
  snprintf(path, sizeof(path), "%s/trace", folder);
  snprintf(incomplete, sizeof(incomplete), "%s.incomplete", path);
  return 0;
}

static int group_end(void **state)
{
  (void)state;
  return rmdir(folder);
}

static int files_remove(void **state)
{
  (void)state;
  unlink(path);
  unlink(incomplete);
  return 0;
}

static uint64_t random_state = 1;

static uint64_t random_next(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

static struct lb_trace_writer *writer_new(unsigned streams)
{
  struct lb_trace_writer *writer;
  uint32_t number;

  assert_int_equal(lb_trace_writer_open(path, &writer), 0);
  for (unsigned i = 0; i < streams; i++) {
    struct lb_trace_stream stream = {.space = i % 3, .process = 7, .thread = 100 + i, .name = "thread"};

    assert_int_equal(lb_trace_writer_stream(writer, &stream, &number), 0);
    assert_int_equal(number, i);
  }
  return writer;
}

static void add(struct lb_trace_writer *writer, uint32_t stream, const struct lb_branch *branches, size_t count)
{
  assert_int_equal(lb_trace_writer_branches(writer, stream, branches, count), 0);
}

static void writer_finish(struct lb_trace_writer *writer)
{
  assert_int_equal(lb_trace_writer_close(writer), 0);
}

static struct lb_trace_reader *reader_new(void)
{
  struct lb_trace_reader *reader;

  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  return reader;
}

static void assert_branch_equal(const struct lb_branch *got, const struct lb_branch *want)
{
  assert_int_equal(got->from, want->from);
  assert_int_equal(got->to, want->to);
  assert_int_equal(got->from_base, want->flags & LB_BRANCH_FROM_32 ? want->from_base : 0);
  assert_int_equal(got->to_base, want->flags & LB_BRANCH_TO_32 ? want->to_base : 0);
  assert_int_equal(got->kind, want->kind);
  assert_int_equal(got->flags, want->flags);
  assert_int_equal(got->from_cpl, want->from_cpl);
  assert_int_equal(got->to_cpl, want->to_cpl);
}

/* All branches of a stream, none missing. */
static void assert_stream(uint32_t stream, const struct lb_branch *branches, size_t count)
{
  struct lb_trace_reader *reader = reader_new();
  struct contents contents = contents_read(reader, stream, count);

  assert_int_equal(contents.count, count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(contents.numbers[i], i);
    assert_branch_equal(&contents.branches[i], &branches[i]);
  }
  for (unsigned i = 0; i < LB_TRACE_GAP_REASONS; i++)
    assert_int_equal(contents.gaps[i], 0);
  contents_done(&contents);
  lb_trace_reader_close(reader);
}

static void assert_round_trip(const struct lb_branch *branches, size_t count)
{
  struct lb_trace_writer *writer = writer_new(1);

  add(writer, 0, branches, count);
  writer_finish(writer);
  assert_stream(0, branches, count);
}

/* ---- branches ---- */

static struct lb_branch branch_random(void)
{
  uint64_t bits = random_next();
  struct lb_branch branch = {
    .from = random_next() >> (bits & 63),
    .to = random_next() >> (bits >> 6 & 63),
    .from_base = random_next() >> 40,
    .to_base = random_next() >> 40,
    .kind = (uint8_t)(random_next() % LB_BRANCH_KINDS),
    .flags = (uint8_t)(bits >> 12 & 63),
    .from_cpl = bits >> 20 & 3,
    .to_cpl = bits >> 22 & 3,
  };

  return branch;
}

/* A program: loops inside functions that are called from a few places and return there, now and then interrupted. */
static size_t program_make(struct lb_branch *branches, size_t count)
{
  uint64_t callers[4] = {0x401000, 0x401200, 0x402000, 0x7fff80001000};
  size_t n = 0;

  while (n + 40 < count) {
    unsigned site = random_next() % 4, loops = 1 + random_next() % 20;

    branches[n++] = (struct lb_branch){.from = callers[site], .to = 0x405000, .kind = LB_BRANCH_NEAR_REL_CALL};
    for (unsigned i = 0; i < loops; i++)
      branches[n++] = (struct lb_branch){
        .from = 0x405020, .to = 0x405008, .flags = i + 1 == loops ? LB_BRANCH_MISPREDICTED : 0, .kind = LB_BRANCH_JCC};
    branches[n++] = (struct lb_branch){.from = 0x405040, .to = callers[site] + 5, .kind = LB_BRANCH_NEAR_RET};
    if (random_next() % 50 == 0) {
      branches[n++] = (struct lb_branch){
        .from = callers[site] + 9, .to = 0xffffffff81000000, .kind = LB_BRANCH_INTERRUPT, .from_cpl = 3};
      branches[n++] =
        (struct lb_branch){.from = 0xffffffff81000080, .to = callers[site] + 9, .kind = LB_BRANCH_IRET, .to_cpl = 3};
    }
  }
  return n;
}

static void test_random_branches(void **state)
{
  enum { COUNT = 20000 };
  struct lb_branch *branches = calloc(COUNT, sizeof(*branches));

  (void)state;
  for (size_t i = 0; i < COUNT; i++)
    branches[i] = i > 100 && random_next() % 4 ? branches[random_next() % 100] : branch_random();
  assert_round_trip(branches, COUNT);
  free(branches);
}

static void test_program(void **state)
{
  enum { COUNT = 300000 };
  struct lb_branch *branches = calloc(COUNT, sizeof(*branches));
  size_t count = program_make(branches, COUNT);
  struct stat status;

  (void)state;
  assert_round_trip(branches, count);
  assert_int_equal(stat(path, &status), 0);
  assert_true((uint64_t)status.st_size * 4 < count); /* below two bits each, although loops are of random length */
  free(branches);
}

static void test_great_differences(void **state)
{
  static const uint64_t values[] = {0,    1,          UINT64_MAX, INT64_MAX,         UINT64_C(1) << 63,
                                    0x7f, UINT32_MAX, 0xfffffff0, UINT64_C(1) << 47, 0x80};
  enum { N = sizeof(values) / sizeof(*values) };
  struct lb_branch branches[N * N];

  (void)state;
  for (size_t i = 0; i < (size_t)N * N; i++)
    branches[i] = (struct lb_branch){.from = values[i / N],
                                     .to = values[i % N],
                                     .from_base = values[(i + 1) % N],
                                     .to_base = values[(i + 2) % N],
                                     .kind = LB_BRANCH_FAR_JMP,
                                     .flags = (uint8_t)(i * 7 & 0xff)};
  assert_round_trip(branches, (size_t)N * N);
}

/* More distinct branches, and more branches, than one chunk can have. */
static void test_full_chunks(void **state)
{
  enum { COUNT = 2300000 };
  struct lb_branch *branches = calloc(COUNT, sizeof(*branches));

  (void)state;
  for (size_t i = 0; i < COUNT; i++)
    branches[i] = (struct lb_branch){.from = i < 150000 ? i * 16 : 0x1000, .to = i * (i < 150000) + 64};
  assert_round_trip(branches, COUNT);
  free(branches);
}

static void test_many_streams(void **state)
{
  enum { STREAMS = 100, COUNT = 200 };
  struct lb_branch branches[STREAMS][COUNT];
  struct lb_trace_writer *writer = writer_new(STREAMS);

  (void)state;
  for (unsigned i = 0; i < STREAMS; i++)
    for (unsigned j = 0; j < COUNT; j++)
      branches[i][j] = (struct lb_branch){.from = i * 0x1000u + j % 7, .to = j % 5, .kind = LB_BRANCH_NEAR_IND_JMP};
  for (unsigned j = 0; j < COUNT; j += 20)
    for (unsigned i = 0; i < STREAMS; i++)
      add(writer, i, &branches[i][j], 20);
  assert_int_equal(lb_trace_writer_size(writer).branches, STREAMS * COUNT);
  writer_finish(writer);
  for (unsigned i = 0; i < STREAMS; i += 33)
    assert_stream(i, branches[i], COUNT);
}

static void test_wrong_branches(void **state)
{
  struct lb_branch branches[3] = {{.from = 1}, {.from = 2}, {.from = 3, .kind = LB_BRANCH_KINDS}};
  struct lb_trace_writer *writer = writer_new(1);

  (void)state;
  assert_int_equal(lb_trace_writer_branches(writer, 1, branches, 1), -EINVAL);
  assert_int_equal(lb_trace_writer_branches(writer, 0, branches, 3), -EINVAL);
  branches[2] = (struct lb_branch){.to_cpl = 4};
  assert_int_equal(lb_trace_writer_branches(writer, 0, branches + 2, 1), -EINVAL);
  writer_finish(writer);
  assert_stream(0, branches, 2);
}

/* ---- everything else ---- */

static void test_descriptions(void **state)
{
  static const uint8_t id[20] = {1, 2, 3}, code[3] = {0xeb, 0xfe, 0x90};
  struct lb_trace_module module = {.space = 4,
                                   .address = 0x7fff00000000,
                                   .size = 0x5000,
                                   .offset = 0x1000,
                                   .name = "/bin/\xc3\xa9",
                                   .build_id = id,
                                   .build_id_size = sizeof(id)};
  struct lb_trace_writer *writer = writer_new(1);
  struct lb_trace_reader *reader;
  struct lb_trace_record record;

  (void)state;
  assert_int_equal(lb_trace_writer_meta(writer, &(struct lb_trace_meta){"cpu", "skylake"}), 0);
  assert_int_equal(lb_trace_writer_module(writer, &module), 0);
  assert_int_equal(lb_trace_writer_code(writer, &(struct lb_trace_code){4, 0x8000, code, sizeof(code)}), 0);
  assert_int_equal(lb_trace_writer_module(writer, &(struct lb_trace_module){.is_gone = true, .size = 1}), 0);
  writer_finish(writer);

  reader = reader_new();
  assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  assert_int_equal(record.type, LB_TRACE_STREAM);
  assert_int_equal(record.stream.number, 0);
  assert_int_equal(record.stream.process, 7);
  assert_int_equal(record.stream.thread, 100);
  assert_string_equal(record.stream.name, "thread");
  assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  assert_int_equal(record.type, LB_TRACE_META);
  assert_string_equal(record.meta.key, "cpu");
  assert_string_equal(record.meta.value, "skylake");
  assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  assert_int_equal(record.type, LB_TRACE_MODULE);
  assert_int_equal(record.module.space, 4);
  assert_int_equal(record.module.address, module.address);
  assert_int_equal(record.module.size, module.size);
  assert_int_equal(record.module.offset, module.offset);
  assert_string_equal(record.module.name, module.name);
  assert_int_equal(record.module.build_id_size, sizeof(id));
  assert_memory_equal(record.module.build_id, id, sizeof(id));
  assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  assert_int_equal(record.type, LB_TRACE_CODE);
  assert_int_equal(record.code.address, 0x8000);
  assert_int_equal(record.code.size, sizeof(code));
  assert_memory_equal(record.code.bytes, code, sizeof(code));
  assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  assert_true(record.module.is_gone);
  assert_string_equal(record.module.name, "");
  assert_int_equal(lb_trace_reader_next(reader, &record), 0);
  lb_trace_reader_close(reader);
}

static void test_too_long(void **state)
{
  struct lb_trace_writer *writer = writer_new(0);
  char *text = malloc(LB_TRACE_TEXT_MAX + 2);
  uint32_t number;

  (void)state;
  memset(text, 'x', LB_TRACE_TEXT_MAX + 1);
  text[LB_TRACE_TEXT_MAX + 1] = '\0';
  assert_int_equal(lb_trace_writer_meta(writer, &(struct lb_trace_meta){text, ""}), LB_E_TOO_BIG);
  assert_int_equal(lb_trace_writer_module(writer, &(struct lb_trace_module){.name = text}), LB_E_TOO_BIG);
  assert_int_equal(lb_trace_writer_module(writer, &(struct lb_trace_module){.build_id_size = 65}), LB_E_TOO_BIG);
  assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = text}, &number), LB_E_TOO_BIG);
  text[LB_TRACE_TEXT_MAX] = '\0';
  assert_int_equal(lb_trace_writer_meta(writer, &(struct lb_trace_meta){text, text}), 0);
  writer_finish(writer);
  free(text);
}

/* A piece of code of 2.5 MiB comes back in pieces that join. */
static void test_long_code(void **state)
{
  size_t size = 5u << 19, done = 0;
  uint8_t *code = malloc(size);
  struct lb_trace_writer *writer = writer_new(0);
  struct lb_trace_reader *reader;
  struct lb_trace_record record;

  (void)state;
  for (size_t i = 0; i < size; i++)
    code[i] = (uint8_t)random_next();
  assert_int_equal(lb_trace_writer_code(writer, &(struct lb_trace_code){0, 0x10000, code, size}), 0);
  writer_finish(writer);
  reader = reader_new();
  while (lb_trace_reader_next(reader, &record) > 0) {
    assert_int_equal(record.code.address, 0x10000 + done);
    assert_memory_equal(record.code.bytes, code + done, record.code.size);
    done += record.code.size;
  }
  assert_int_equal(done, size);
  lb_trace_reader_close(reader);
  free(code);
}

static void test_gaps(void **state)
{
  struct lb_branch branches[10] = {{.from = 5}};
  struct lb_trace_writer *writer = writer_new(2);
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  struct contents contents;

  (void)state;
  add(writer, 0, branches, 10);
  assert_int_equal(
    lb_trace_writer_gap(writer, &(struct lb_trace_gap){.stream = 0, .reason = LB_TRACE_LOST, .count = 90}), 0);
  add(writer, 0, branches, 5);
  assert_int_equal(
    lb_trace_writer_gap(writer, &(struct lb_trace_gap){.stream = LB_TRACE_ALL, .reason = LB_TRACE_PAUSED}), 0);
  add(writer, 0, branches, 1);
  assert_int_equal(lb_trace_writer_gap(writer, &(struct lb_trace_gap){.stream = 2}), -EINVAL);
  assert_int_equal(lb_trace_writer_gap(writer, &(struct lb_trace_gap){.reason = LB_TRACE_CUT}), -EINVAL);
  writer_finish(writer);
  reader = reader_new();
  contents = contents_read(reader, 0, 16);
  assert_int_equal(contents.count, 16);
  assert_int_equal(contents.numbers[10], 100);
  assert_int_equal(contents.numbers[15], 105);
  assert_int_equal(contents.missing, 90);
  assert_int_equal(contents.gaps[LB_TRACE_LOST], 1);
  assert_int_equal(contents.gaps[LB_TRACE_PAUSED], 2); /* one for each stream */
  contents_done(&contents);
  lb_trace_reader_rewind(reader);
  for (int i = 0; i < 4; i++)
    assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  assert_int_equal(record.type, LB_TRACE_GAP);
  assert_int_equal(record.gap.stream, 0);
  assert_int_equal(record.gap.first, 10);
  assert_int_equal(record.gap.count, 90);
  lb_trace_reader_close(reader);
  assert_string_equal(lb_trace_gap_name(LB_TRACE_LOST), "lost");
  assert_string_equal(lb_trace_gap_name(LB_TRACE_GAP_REASONS), "?");
}

/* ---- cut and damaged files ---- */

#define SMALL 60

/* A small trace with everything in it, as bytes. */
static uint8_t *small_make(struct lb_branch branches[SMALL], size_t *ret_size)
{
  struct lb_trace_writer *writer = writer_new(2);

  for (unsigned i = 0; i < SMALL; i++)
    branches[i] = (struct lb_branch){.from = 0x1000 + i * 3, .to = 0x2000 + i % 4, .kind = LB_BRANCH_JCC};
  assert_int_equal(lb_trace_writer_meta(writer, &(struct lb_trace_meta){"source", "test"}), 0);
  for (unsigned i = 0; i < SMALL; i += 15) {
    add(writer, 1, branches + i, 15);
    assert_int_equal(lb_trace_writer_flush(writer), 0);
  }
  assert_int_equal(lb_trace_writer_gap(writer, &(struct lb_trace_gap){.stream = 0, .count = 3}), 0);
  writer_finish(writer);
  return file_load(path, ret_size);
}

/* Whatever came out is right, and in order. Returns how many branches. */
static size_t assert_part(const uint8_t *bytes, size_t size, const struct lb_branch *branches,
                          struct contents *contents)
{
  struct lb_trace_reader *reader;

  assert_int_equal(lb_trace_reader_open_bytes(bytes, size, &reader), 0);
  *contents = contents_read(reader, 1, SMALL);
  for (size_t i = 0; i < contents->count; i++) {
    assert_true(contents->numbers[i] < SMALL);
    assert_true(i == 0 || contents->numbers[i] > contents->numbers[i - 1]);
    assert_branch_equal(&contents->branches[i], &branches[contents->numbers[i]]);
  }
  contents_done(contents);
  lb_trace_reader_close(reader);
  return contents->count;
}

static void test_cut_anywhere(void **state)
{
  struct lb_branch branches[SMALL];
  struct lb_trace_reader *reader;
  struct contents contents;
  size_t size, before = 0;
  uint8_t *bytes = small_make(branches, &size);

  (void)state;
  for (size_t cut = 0; cut < 16; cut++)
    assert_int_equal(lb_trace_reader_open_bytes(bytes, cut, &reader), LB_E_NOT_TRACE);
  for (size_t cut = 16; cut < size; cut++) {
    uint8_t *copy = malloc(cut); /* so that reading past the end shows */
    size_t count;

    memcpy(copy, bytes, cut);
    count = assert_part(copy, cut, branches, &contents);
    assert_true(count >= before && count % 15 == 0);
    assert_int_equal(contents.gaps[LB_TRACE_CUT], 1);
    assert_int_equal(contents.gaps[LB_TRACE_DAMAGED] + contents.gaps[LB_TRACE_MISSING], 0);
    before = count;
    free(copy);
  }
  assert_int_equal(before, SMALL);
  assert_part(bytes, size, branches, &contents);
  assert_int_equal(contents.gaps[LB_TRACE_CUT], 0);
  free(bytes);
}

static void test_damage_anywhere(void **state)
{
  struct lb_branch branches[SMALL];
  struct lb_trace_reader *reader;
  struct contents contents;
  size_t size;
  uint8_t *bytes = small_make(branches, &size);

  (void)state;
  for (size_t at = 0; at < size; at++) {
    bytes[at] ^= (uint8_t)(1u << at % 8);
    if (at < 16) {
      assert_int_equal(lb_trace_reader_open_bytes(bytes, size, &reader), LB_E_NOT_TRACE);
    } else {
      size_t count = assert_part(bytes, size, branches, &contents);

      assert_true(count >= SMALL - 15); /* at most one chunk is lost */
      assert_true(count == SMALL || contents.missing || contents.gaps[LB_TRACE_DAMAGED] || contents.gaps[LB_TRACE_CUT]);
      assert_true(count + contents.missing == SMALL || contents.gaps[LB_TRACE_DAMAGED]);
    }
    bytes[at] ^= (uint8_t)(1u << at % 8);
  }
  free(bytes);
}

static void test_chunk_taken_out(void **state)
{
  struct lb_branch branches[SMALL];
  struct contents contents;
  size_t size, at = 16;
  uint8_t *bytes = small_make(branches, &size);

  (void)state;
  for (unsigned i = 0; i < 4; i++) /* two streams, meta, the first branches */
    at += 24 + bytes_get_u32(bytes + at + 8);
  memset(bytes + at, 0, 24 + bytes_get_u32(bytes + at + 8));
  assert_int_equal(assert_part(bytes, size, branches, &contents), SMALL - 15);
  assert_int_equal(contents.gaps[LB_TRACE_DAMAGED], 1);
  assert_int_equal(contents.gaps[LB_TRACE_MISSING], 1);
  assert_int_equal(contents.missing, 15);
  free(bytes);
}

static void names_put(struct lb_trace_writer *writer, uint64_t address, uint64_t size, const char *text)
{
  struct trace_name name = {address, size, text, strlen(text)};

  assert_int_equal(trace_writer_names(writer, 1, &name, 1, true), 0);
}

/* Takes the next record, which must be names: at the beginning, ahead, or in their place. */
static void names_next(struct lb_trace_reader *reader, bool is_begin, bool is_ahead, uint64_t address, const char *text)
{
  struct lb_trace_record record;
  const struct trace_names *names;

  assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  names = trace_record_names(&record);
  assert_non_null(names);
  assert_int_equal(names->is_begin, is_begin);
  assert_int_equal(names->is_ahead, is_ahead);
  assert_int_equal(names->count, !is_begin);
  if (is_begin)
    return;
  assert_int_equal(names->space, 1);
  assert_int_equal(names->names[0].address, address);
  assert_int_equal(names->names[0].length, strlen(text));
  assert_memory_equal(names->names[0].text, text, strlen(text));
}

/* A reader that asks for names gets all of them first, whenever it begins, and each in its place; another one gets
 * none. */
static void test_code_names(void **state)
{
  struct lb_trace_writer *writer = writer_new(0);
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  struct trace_name longest = {1, 1, NULL, TRACE_NAME_MAX + 1};

  (void)state;
  assert_int_equal(trace_writer_names(writer, 1, &longest, 1, false), LB_E_TOO_BIG);
  names_put(writer, 0x1000, 16, "one");
  assert_int_equal(lb_trace_writer_meta(writer, &(struct lb_trace_meta){"key", "value"}), 0);
  names_put(writer, 0x1008, 16, "");
  writer_finish(writer);
  assert_int_equal(lb_trace_reader_open(path, &reader), 0);
  assert_int_equal(lb_trace_reader_next(reader, &record), 1);
  assert_int_equal(record.type, LB_TRACE_META);
  assert_null(trace_record_names(&record));
  assert_int_equal(lb_trace_reader_next(reader, &record), 0);
  trace_reader_want_names(reader);
  for (unsigned i = 0; i < 3; i++) {
    if (i == 2)
      assert_int_equal(lb_trace_reader_tail(reader, LB_TRACE_ALL, 0), 0);
    names_next(reader, true, false, 0, "");
    names_next(reader, false, true, 0x1000, "one");
    names_next(reader, false, true, 0x1008, "");
    names_next(reader, false, false, 0x1000, "one");
    assert_int_equal(lb_trace_reader_next(reader, &record), 1);
    assert_int_equal(record.type, LB_TRACE_META);
    names_next(reader, false, false, 0x1008, "");
    assert_int_equal(lb_trace_reader_next(reader, &record), 0);
    lb_trace_reader_rewind(reader);
  }
  lb_trace_reader_close(reader);
}

/* Other versions, and ours. */
static void test_versions(void **state)
{
  /* Version, least version of a reader. Checksums by another implementation of CRC-32C. */
  static const uint8_t bad[2][16] = {
    {0x89, 'L', 'B', 'R', '\r', '\n', 0x1a, '\n', 6, 0, 6, 0, 0xd9, 0xa6, 0xdd, 0xe4}, /* newer */
    {0x89, 'L', 'B', 'R', '\r', '\n', 0x1a, '\n', 2, 0, 2, 0, 0xf6, 0xf6, 0x75, 0xd1}, /* of an early version */
  };
  static const uint8_t good[4][16] = {
    {0x89, 'L', 'B', 'R', '\r', '\n', 0x1a, '\n', 5, 0, 5, 0, 0x79, 0x87, 0x18, 0xb2},
    {0x89, 'L', 'B', 'R', '\r', '\n', 0x1a, '\n', 4, 0, 3, 0, 0xf3, 0x7c, 0x92, 0x06},
    {0x89, 'L', 'B', 'R', '\r', '\n', 0x1a, '\n', 3, 0, 3, 0, 0x39, 0xc4, 0x92, 0x1f},
    {0x89, 'L', 'B', 'R', '\r', '\n', 0x1a, '\n', 1, 0, 0, 0, 0x21, 0x4f, 0x12, 0x94},
  };
  struct lb_trace_reader *reader;
  size_t size;
  uint8_t *bytes;

  (void)state;
  for (unsigned i = 0; i < 2; i++)
    assert_int_equal(lb_trace_reader_open_bytes(bad[i], sizeof(bad[i]), &reader), LB_E_TRACE_VERSION);
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal(lb_trace_reader_open_bytes(good[i], sizeof(good[i]), &reader), 0);
    lb_trace_reader_close(reader);
  }
  writer_finish(writer_new(0));
  bytes = file_load(path, &size);
  assert_memory_equal(bytes, good[0], sizeof(good[0]));
  free(bytes);
}

/* ---- the tail ---- */

static void assert_tail(struct lb_trace_reader *reader, uint64_t asked, const struct lb_branch *branches, size_t count)
{
  struct contents contents;
  size_t want = asked < count ? (size_t)asked : count;

  assert_int_equal(lb_trace_reader_tail(reader, 1, asked), 0);
  contents = contents_read(reader, 1, count);
  assert_int_equal(contents.count, want);
  assert_int_equal(contents.described, 3);
  for (size_t i = 0; i < want; i++) {
    assert_int_equal(contents.numbers[i], count - want + i);
    assert_branch_equal(&contents.branches[i], &branches[count - want + i]);
  }
  assert_int_equal(contents.gaps[LB_TRACE_DAMAGED] + contents.gaps[LB_TRACE_MISSING], 0);
  contents_done(&contents);
}

/* With the index, without it, and in a file that was cut. */
static void test_tail(void **state)
{
  static const uint64_t asked[] = {0, 1, 5, 14, 15, 16, 59, 60, 61, UINT64_MAX};
  struct lb_branch branches[SMALL];
  struct lb_trace_reader *reader;
  struct contents contents;
  size_t size;
  uint8_t *bytes = small_make(branches, &size);

  (void)state;
  for (size_t cut = 0; cut < 40; cut += 32) {
    assert_int_equal(lb_trace_reader_open_bytes(bytes, size - cut, &reader), 0);
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
      assert_tail(reader, asked[i], branches, SMALL);
    assert_int_equal(lb_trace_reader_tail(reader, 1, 5), 0);
    lb_trace_reader_skip(reader);
    contents = contents_read(reader, 1, 5);
    assert_int_equal(contents.described, 0);
    assert_int_equal(contents.count, 5);
    contents_done(&contents);
    assert_int_equal(lb_trace_reader_tail(reader, 2, 1), LB_E_NO_ENTRY);
    assert_int_equal(lb_trace_reader_tail(reader, LB_TRACE_ALL, 1), 0);
    contents = contents_read(reader, 1, 0);
    assert_int_equal(contents.described, 3);
    assert_int_equal(contents.gaps[LB_TRACE_CUT], cut > 0);
    contents_done(&contents);
    lb_trace_reader_rewind(reader);
    contents = contents_read(reader, 1, SMALL);
    assert_int_equal(contents.count, SMALL);
    contents_done(&contents);
    lb_trace_reader_close(reader);
  }
  free(bytes);
}

/* A tail that begins deep inside a long chunk, or some chunks back. */
static void test_tail_of_long_stream(void **state)
{
  enum { COUNT = 2200000 };
  static const uint64_t asked[] = {5, 5000, 102848, 102849, 1200000};
  struct lb_branch *branches = calloc(COUNT, sizeof(*branches));
  struct lb_trace_writer *writer = writer_new(2);
  struct lb_trace_reader *reader;

  (void)state;
  for (size_t i = 0; i < COUNT; i++)
    branches[i] = (struct lb_branch){.from = i / 1000, .to = i % 3};
  assert_int_equal(lb_trace_writer_meta(writer, &(struct lb_trace_meta){"source", "test"}), 0);
  add(writer, 1, branches, COUNT);
  writer_finish(writer);
  reader = reader_new();
  for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
    assert_tail(reader, asked[i], branches, COUNT);
  lb_trace_reader_close(reader);
  free(branches);
}

static void test_tail_of_damage(void **state)
{
  struct lb_branch branches[SMALL];
  struct lb_trace_reader *reader;
  struct contents contents;
  size_t size;
  uint8_t *bytes = small_make(branches, &size);

  (void)state;
  for (size_t at = 16; at < size; at++) {
    bytes[at] ^= 0x10;
    assert_int_equal(lb_trace_reader_open_bytes(bytes, size, &reader), 0);
    if (lb_trace_reader_tail(reader, 1, 50) >= 0) {
      contents = contents_read(reader, 1, SMALL);
      assert_true(contents.count == 50 || contents.gaps[LB_TRACE_DAMAGED] || contents.gaps[LB_TRACE_MISSING]);
      contents_done(&contents);
    }
    lb_trace_reader_close(reader);
    bytes[at] ^= 0x10;
  }
  free(bytes);
}

/* ---- files ---- */

static void test_names(void **state)
{
  struct lb_trace_writer *writer, *other;
  struct stat status;

  FILE *old = fopen(path, "w");

  (void)state;
  fputs("old", old);
  fclose(old);
  writer = writer_new(1);
  assert_int_equal(stat(incomplete, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0600);
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_size, 3);
  assert_int_equal(lb_trace_writer_open(path, &other), -EEXIST);
  writer_finish(writer);
  assert_int_equal(stat(incomplete, &status), -1);
  assert_int_equal(stat(path, &status), 0);
  assert_true(status.st_size > 3);
}

static void test_links(void **state)
{
  struct lb_trace_writer *writer;
  struct stat status;

  (void)state;
  assert_int_equal(symlink("/nowhere/at/all", incomplete), 0);
  assert_int_equal(lb_trace_writer_open(path, &writer), -EEXIST);
  unlink(incomplete);
  assert_int_equal(symlink("/dev/null", path), 0);
  assert_int_equal(lb_trace_writer_open(path, &writer), -ELOOP);
  unlink(path);
  assert_int_equal(symlink("elsewhere", path), 0);
  writer_finish(writer_new(0));
  assert_int_equal(lstat(path, &status), 0);
  assert_true(S_ISREG(status.st_mode));
}

static void test_unwritable(void **state)
{
  struct lb_trace_writer *writer;
  struct lb_trace_reader *reader;
  char below[96];

  (void)state;
  assert_int_equal(lb_trace_writer_open("/nonexistent/trace", &writer), -ENOENT);
  assert_int_equal(lb_trace_writer_open(folder, &writer), -EISDIR);
  writer_finish(writer_new(0));
  snprintf(below, sizeof(below), "%s/below", path);
  assert_int_equal(lb_trace_writer_open(below, &writer), -ENOTDIR);
  assert_int_equal(lb_trace_reader_open("/nonexistent/trace", &reader), -ENOENT);
  assert_int_equal(lb_trace_reader_open(folder, &reader), -EISDIR);
  assert_int_equal(lb_trace_reader_open("/dev/null", &reader), -ESPIPE);
  assert_int_equal(lb_trace_reader_open("/proc/self/status", &reader), LB_E_NOT_TRACE);
  if (geteuid() != 0) {
    assert_int_equal(chmod(folder, 0500), 0);
    assert_int_equal(lb_trace_writer_open(below, &writer), -EACCES);
    assert_int_equal(chmod(folder, 0700), 0);
  }
}

static void test_full_disk(void **state)
{
  struct lb_branch branch = {.from = 1};
  struct lb_trace_writer *writer;
  uint32_t number = 0;

  (void)state;
  assert_int_equal(lb_trace_writer_open("/dev/full", &writer), 0);
  assert_int_equal(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "x"}, &number), -ENOSPC);
  assert_int_equal(lb_trace_writer_branches(writer, number, &branch, 1), -ENOSPC);
  assert_int_equal(lb_trace_writer_flush(writer), -ENOSPC);
  assert_int_equal(lb_trace_writer_close(writer), -ENOSPC);
  assert_int_equal(access("/dev/full.incomplete", F_OK), -1);
  assert_int_equal(lb_trace_writer_close(NULL), 0);
  lb_trace_reader_close(NULL);
}

#define CASE(name) cmocka_unit_test_teardown(name, files_remove)

int main(void)
{
  const struct CMUnitTest tests[] = {
    CASE(test_random_branches),
    CASE(test_program),
    CASE(test_great_differences),
    CASE(test_full_chunks),
    CASE(test_many_streams),
    CASE(test_wrong_branches),
    CASE(test_descriptions),
    CASE(test_too_long),
    CASE(test_long_code),
    CASE(test_gaps),
    CASE(test_cut_anywhere),
    CASE(test_damage_anywhere),
    CASE(test_chunk_taken_out),
    CASE(test_code_names),
    CASE(test_versions),
    CASE(test_tail),
    CASE(test_tail_of_long_stream),
    CASE(test_tail_of_damage),
    CASE(test_names),
    CASE(test_links),
    CASE(test_unwritable),
    CASE(test_full_disk),
  };

  return cmocka_run_group_tests(tests, group_begin, group_end);
}
