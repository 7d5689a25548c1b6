/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces from a stranger: whatever the bytes are, reading them must end, without a crash, and all that comes out must
 * keep the reader's promises; lines and numbers are made of it, too. Input that begins with a trace's first byte is
 * read as it stands. Anything else is a list of chunks (type, flags, size in two bytes, contents) that get heads with
 * the right checksums first, since no mutation would guess those.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/trace.h"
#include "report/report.h"
#include "trace/format.h"
#include "trace/trace.h"

#define RECORDS_MAX 2000u /* a few bytes can stand for millions of branches */
#define CHUNKS_MAX 64u
#define WORK_MAX (1u << 18) /* instructions that are decoded: an input of some hundred bytes names millions */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No file is there. Names of code in no file are taken only where symbols are wanted. */
static int file_open(void *data, const char *name, const void **ret_bytes, size_t *ret_size)
{
  (void)data;
  (void)name;
  (void)ret_bytes;
  (void)ret_size;
  return -ENOENT;
}

static void file_warn(void *data, const char *name, const char *why)
{
  (void)data;
  if (!*name || !*why)
    abort();
}

static const struct analysis_files files = {.open = file_open, .warn = file_warn};

static volatile uint64_t sink; /* so that every byte that comes out is read */

static void text_check(const char *text)
{
  if (strlen(text) > LB_TRACE_TEXT_MAX)
    abort();
}

static void bytes_use(const uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++)
    sink += bytes[i];
}

static void branches_check(const struct lb_trace_branches *branches)
{
  if (!branches->count || branches->count > LB_TRACE_BATCH_MAX || branches->stream >= LB_TRACE_STREAMS_MAX)
    abort();
  for (size_t i = 0; i < branches->count; i++) {
    const struct lb_branch *branch = &branches->branches[i];

    if (branch->kind >= LB_BRANCH_KINDS || branch->from_cpl > 3 || branch->to_cpl > 3)
      abort();
    sink += branch->from ^ branch->to ^ branch->from_base ^ branch->to_base ^ branch->flags;
  }
}

static void stamp_check(const struct trace_stamp *stamp)
{
  if (stamp->stream >= LB_TRACE_STREAMS_MAX || stamp->type >= TRACE_STAMP_TYPES ||
      stamp->argument_count > TRACE_ARGUMENTS_MAX)
    abort();
  for (unsigned i = 0; i < 2; i++)
    if (stamp->paths[i] && strlen(stamp->paths[i]) > TRACE_PATH_MAX)
      abort();
  bytes_use((const uint8_t *)stamp->arguments, stamp->argument_count * sizeof(*stamp->arguments));
}

static void record_check(const struct lb_trace_record *record)
{
  if (trace_record_stamp(record)) {
    stamp_check(trace_record_stamp(record));
    return;
  }
  switch (record->type) {
  case LB_TRACE_META:
    text_check(record->meta.key);
    text_check(record->meta.value);
    break;
  case LB_TRACE_MODULE:
    text_check(record->module.name);
    bytes_use(record->module.build_id, record->module.build_id_size);
    break;
  case LB_TRACE_CODE:
    bytes_use(record->code.bytes, record->code.size);
    break;
  case LB_TRACE_STREAM:
    text_check(record->stream.name);
    break;
  case LB_TRACE_BRANCHES:
    branches_check(&record->branches);
    break;
  case LB_TRACE_GAP:
    if (!strcmp(lb_trace_gap_name(record->gap.reason), "?"))
      abort();
    break;
  case LB_TRACE_COUNTED:
    if (record->counted.stream >= LB_TRACE_STREAMS_MAX)
      abort();
    break;
  case LB_TRACE_STOP:
    if (record->stop.stream >= LB_TRACE_STREAMS_MAX)
      abort();
    break;
  }
}

/* What is made of the records. */
struct readers {
  struct analysis_names *names;
  struct report_script *script;
  struct analysis_summary *summary;
  struct text text;
};

static void readers_init(struct readers *readers, const struct lb_trace_reader *reader, bool is_json, bool has_times)
{
  struct report_script_options options = {.is_json = is_json, .stream = LB_TRACE_ALL, .limit = UINT64_MAX};

  if (has_times) {
    options.reader = reader;
    options.events = REPORT_EVENTS_TOO;
    options.fields[options.field_count++] = REPORT_FIELD_TIME;
    options.fields[options.field_count++] = REPORT_FIELD_CPU;
  }

  *readers = (struct readers){0};
  if (analysis_names_new(&files, &readers->names) < 0)
    abort();
  options.names = readers->names;
  if (report_script_new(&options, &readers->script) < 0 || analysis_summary_new(readers->names, &readers->summary) < 0)
    abort();
}

static void readers_done(struct readers *readers)
{
  struct analysis_function functions[3];
  struct analysis_edge edges[3];

  if (analysis_summary_functions(readers->summary, functions, 3) < 0 ||
      analysis_summary_edges(readers->summary, edges, 3) < 0)
    abort();
  analysis_summary_free(readers->summary);
  report_script_free(readers->script);
  analysis_names_free(readers->names);
  text_done(&readers->text);
}

/* Lines must be whole and fit to be printed. */
static void readers_take(struct readers *readers, const struct lb_trace_record *record)
{
  struct text *text = &readers->text;

  text->length = 0;
  if (report_script_record(readers->script, record, text) < 0 || analysis_summary_record(readers->summary, record) < 0)
    abort();
  for (size_t i = 0; i < text->length; i++)
    if (((unsigned char)text->data[i] < ' ' && text->data[i] != '\n') || text->data[i] == 0x7F)
      abort();
  if (text->length && text->data[text->length - 1] != '\n')
    abort();
}

static void records_read(struct lb_trace_reader *reader, struct readers *readers)
{
  struct lb_trace_record record;

  for (unsigned i = 0; i < RECORDS_MAX; i++) {
    int r = lb_trace_reader_next(reader, &record);

    if (r < 0)
      abort(); /* memory does not fail to be read */
    if (r == 0)
      return;
    record_check(&record);
    if (readers)
      readers_take(readers, &record);
  }
}

/* What is counted is summed up by location. */
static void counts_read(struct lb_trace_reader *reader, uint32_t stream)
{
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_counts *counts;
  struct lb_trace_record record;
  size_t count;

  if (analysis_names_new(&files, &names) < 0 || analysis_code_new(names, &code) < 0 ||
      analysis_counts_new(names, code, &counts) < 0)
    abort();
  analysis_code_allow(code, WORK_MAX);
  analysis_counts_stream(counts, stream);
  lb_trace_reader_count(reader, stream);
  for (unsigned i = 0; i < RECORDS_MAX && lb_trace_reader_next(reader, &record) > 0; i++) {
    record_check(&record);
    if (analysis_counts_record(counts, reader, &record) < 0)
      abort();
  }
  if (analysis_counts_end(counts, reader) < 0)
    abort();
  sink += (uintptr_t)analysis_counts_blocks(counts, &count) + count;
  analysis_counts_free(counts);
  analysis_code_free(code);
  analysis_names_free(names);
}

/* Functions are left in the order in which they were entered, all of them. */
static int call_check(void *data, const struct analysis_call *call)
{
  int64_t *open = data;

  *open += call->is_enter ? 1 : -1;
  if (call->has_moment)
    sink += call->moment.time ^ call->moment.waited ^ call->moment.held;
  if (*open < 0 || call->how > ANALYSIS_CALL_LOST)
    abort();
  return 0;
}

static void calls_read(struct lb_trace_reader *reader)
{
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_calls *calls;
  struct analysis_clock *clock;
  struct lb_trace_record record;
  int64_t open = 0;

  if (analysis_names_new(&files, &names) < 0 || analysis_code_new(names, &code) < 0 ||
      analysis_calls_new(names, code, call_check, &open, &calls) < 0 || analysis_clock_new(NULL, &clock) < 0)
    abort();
  analysis_code_allow(code, WORK_MAX);
  analysis_calls_use_clock(calls, clock, reader);
  lb_trace_reader_rewind(reader);
  for (unsigned i = 0; i < RECORDS_MAX && lb_trace_reader_next(reader, &record) > 0; i++)
    if (analysis_clock_record(clock, &record) < 0 || analysis_calls_record(calls, &record) < 0)
      abort();
  if (analysis_calls_end(calls) < 0 || open || analysis_clock_end(clock) < 0)
    abort();
  analysis_clock_free(clock);
  analysis_calls_free(calls);
  analysis_code_free(code);
  analysis_names_free(names);
}

/* Sums of system calls: at most as many calls and errors as there are in all. */
static void syscalls_read(struct lb_trace_reader *reader)
{
  char name[] = "trace";
  struct trace_input input = {.name = name, .reader = reader};
  struct analysis_syscalls syscalls;
  uint64_t calls = 0;

  if (analysis_syscalls_read(&input, LB_TRACE_ALL, &syscalls) < 0)
    return;
  for (size_t i = 0; i < syscalls.count; i++) {
    if (syscalls.rows[i].errors > syscalls.rows[i].calls || !syscalls.rows[i].calls)
      abort();
    calls += syscalls.rows[i].calls;
  }
  if (calls > syscalls.all.calls)
    abort();
  analysis_syscalls_done(&syscalls);
}

static void trace_read(const uint8_t *bytes, size_t size)
{
  struct lb_trace_reader *reader;
  struct readers readers;
  bool has_times = (size & 12) != 12;

  if (lb_trace_reader_open_bytes(bytes, size, &reader) < 0)
    return;
  trace_reader_want_names(reader);
  if (has_times)
    trace_reader_want_stamps(reader);
  readers_init(&readers, reader, size & 1, has_times);
  records_read(reader, &readers);
  readers_done(&readers);
  for (uint32_t stream = 0; stream < 3; stream++)
    if (lb_trace_reader_tail(reader, stream, 100) >= 0)
      records_read(reader, NULL);
  if (lb_trace_reader_tail(reader, LB_TRACE_ALL, 0) >= 0)
    records_read(reader, NULL);
  lb_trace_reader_rewind(reader);
  records_read(reader, NULL);
  counts_read(reader, size & 2 ? LB_TRACE_ALL : 0);
  calls_read(reader);
  if (has_times)
    syscalls_read(reader);
  lb_trace_reader_close(reader);
}

/* The head of a chunk around `stored` bytes that are in place already. */
static void head_put(uint8_t *file, size_t offset, unsigned type, unsigned flags, size_t stored)
{
  size_t before = chunk_has_position(type) ? POSITION_SIZE : 0;
  struct chunk_head head = {
    .type = (uint16_t)type,
    .flags = (uint16_t)flags,
    .stored = (uint32_t)stored,
    .raw = (uint32_t)(stored > before ? stored - before : 0),
    .checksum = checksum_add(0, file + offset + CHUNK_HEAD_SIZE, stored),
  };

  if (flags & CHUNK_ZSTD)
    head.raw *= 16;
  chunk_head_put(&head, offset, file + offset);
}

static void chunks_read(const uint8_t *data, size_t size)
{
  uint8_t *file = calloc(1, TRACE_HEAD_SIZE + size + (size_t)CHUNKS_MAX * CHUNK_HEAD_SIZE);
  size_t offset = TRACE_HEAD_SIZE;

  if (!file)
    return;
  memcpy(file, TRACE_MAGIC, TRACE_MAGIC_SIZE);
  file[TRACE_MAGIC_SIZE] = TRACE_VERSION;
  bytes_put_u32(file + 12, checksum_add(0, file, 12));
  for (unsigned i = 0; i < CHUNKS_MAX && size >= 4; i++) {
    size_t stored = data[2] | (size_t)data[3] << 8;

    stored = stored < size - 4 ? stored : size - 4;
    memcpy(file + offset + CHUNK_HEAD_SIZE, data + 4, stored);
    head_put(file, offset, data[0] & 15, data[1], stored);
    offset += CHUNK_HEAD_SIZE + stored;
    data += 4 + stored;
    size -= 4 + stored;
  }
  trace_read(file, offset);
  free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size && data[0] == (uint8_t)TRACE_MAGIC[0])
    trace_read(data, size);
  else
    chunks_read(data, size);
  return 0;
}
