/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace for gdb. Its description is read once. The last branches of a thread are read when gdb asks for them: a
 * trace may have thousands of threads, and gdb looks at few.
 */
#include "gdb/target_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/trace.h"

/* ---- the description ---- */

static int stream_add(struct gdb_trace *trace, const struct lb_trace_stream *stream)
{
  struct gdb_trace_thread *thread = array_append(&trace->threads, &trace->count, &trace->capacity);

  if (!thread)
    return -ENOMEM;
  *thread = (struct gdb_trace_thread){
    .stream = stream->number, .space = stream->space, .process = stream->process, .thread = stream->thread};
  snprintf(thread->name, sizeof(thread->name), "%s", stream->name);
  return 0;
}

/* Unmapped modules are kept, since some of the branches are older. */
static bool record_is_wanted(const struct lb_trace_record *record)
{
  return record->type != LB_TRACE_MODULE || !record->module.is_gone;
}

/* Reads streams and names. Records about address spaces are read later, when the space is known. */
static int description_read(struct gdb_trace *trace)
{
  struct lb_trace_record record;
  int r = trace_input_tail(&trace->input, LB_TRACE_ALL, 0);

  while (r >= 0 && (r = trace_input_next(&trace->input, &record)) > 0) {
    if (record.type == LB_TRACE_META && !strcmp(record.meta.key, "source"))
      trace->is_process = !strcmp(record.meta.value, "process");
    else if (record.type == LB_TRACE_STREAM)
      r = stream_add(trace, &record.stream);
    if (r >= 0 && record_is_wanted(&record))
      r = analysis_names_record(trace->names, &record);
  }
  return r;
}

static int modules_read(struct gdb_trace *trace, uint32_t space)
{
  struct lb_trace_record record;
  int r = trace_input_tail(&trace->input, LB_TRACE_ALL, 0);

  while (r >= 0 && (r = trace_input_next(&trace->input, &record)) > 0)
    if (record.type == LB_TRACE_MODULE && record.module.space == space && record_is_wanted(&record))
      r = gdb_modules_add(&trace->modules, &record.module);
  if (r >= 0)
    gdb_modules_open(&trace->modules, &trace->input.files);
  return r;
}

/* Code in the trace has priority over the present contents of files. */
size_t gdb_trace_code(void *data, uint64_t address, uint8_t *bytes, size_t size)
{
  struct gdb_trace *trace = data;
  struct analysis_location location = analysis_names_locate(trace->names, trace->threads[0].space, address);
  size_t count = analysis_names_code(trace->names, &location, bytes, size);

  return count ? count : gdb_modules_read(&trace->modules, address, bytes, size);
}

/* ---- branches ---- */

static int record_take(struct gdb_trace *trace, const struct lb_trace_record *record)
{
  int r = 0;

  if (record->type == LB_TRACE_GAP)
    return gdb_blocks_gap(&trace->blocks);
  if (record->type != LB_TRACE_BRANCHES)
    return 0;
  trace->branches += record->branches.count;
  for (size_t i = 0; i < record->branches.count && r >= 0; i++)
    r = gdb_blocks_branch(&trace->blocks, &record->branches.branches[i]);
  return r;
}

/* Reads the last `count` branches of a thread, and its last address. */
static int thread_read(struct gdb_trace *trace, struct gdb_trace_thread *thread, uint64_t count)
{
  struct gdb_blocks *blocks = &trace->blocks;
  struct lb_trace_record record;
  int r = trace_input_tail(&trace->input, thread->stream, count);

  trace->loaded = trace->branches = 0;
  gdb_blocks_clear(blocks);
  if (r < 0)
    return r;
  lb_trace_reader_skip(trace->input.reader);
  while (r >= 0 && (r = trace_input_next(&trace->input, &record)) > 0)
    r = record_take(trace, &record);
  if (r < 0)
    return r;
  thread->is_known = true;
  thread->is_32 = blocks->is_32;
  thread->has_died = trace_reader_end(trace->input.reader, &thread->rip);
  if (!thread->has_died)
    thread->rip = blocks->has_begin ? blocks->begin : 0;
  return gdb_blocks_end(blocks, thread->rip);
}

int gdb_trace_load(struct gdb_trace *trace, struct gdb_trace_thread *thread)
{
  int r;

  if (trace->loaded == thread->id)
    return 0;
  r = thread_read(trace, thread, trace->tail);
  if (r >= 0)
    trace->loaded = thread->id;
  return r;
}

struct gdb_trace_thread *gdb_trace_find(struct gdb_trace *trace, uint64_t id)
{
  for (size_t i = 0; i < trace->count; i++) {
    struct gdb_trace_thread *thread = &trace->threads[i];

    if (thread->id == id)
      return thread->is_known || thread_read(trace, thread, 1) >= 0 ? thread : NULL;
  }
  return NULL;
}

/* ---- which threads ---- */

/* Moves the thread with the number to the front; for LB_TRACE_ALL the last one that died. Returns false if there is
 * none. */
static bool thread_choose(struct gdb_trace *trace, uint32_t stream)
{
  size_t chosen = 0;
  bool is_found = stream == LB_TRACE_ALL && trace->count;

  for (size_t i = 0; i < trace->count; i++) {
    struct gdb_trace_thread *thread = &trace->threads[i];
    bool is_it =
      stream == LB_TRACE_ALL ? thread_read(trace, thread, 1) >= 0 && thread->has_died : thread->stream == stream;

    if (!is_it)
      continue;
    is_found = true;
    chosen = i;
  }
  if (is_found && chosen) {
    struct gdb_trace_thread first = trace->threads[0];

    trace->threads[0] = trace->threads[chosen];
    trace->threads[chosen] = first;
  }
  return is_found;
}

/* Keeps the threads of the chosen one's address space. The system's numbers are their ids, unless they are 0. */
static void threads_select(struct gdb_trace *trace)
{
  size_t kept = 0;
  bool is_unique = true;

  for (size_t i = 0; i < trace->count; i++)
    if (trace->threads[i].space == trace->threads[0].space)
      trace->threads[kept++] = trace->threads[i];
  trace->count = kept;
  for (size_t i = 0; i < kept; i++) {
    is_unique &= trace->threads[i].thread != 0;
    for (size_t j = 0; j < i && is_unique; j++)
      is_unique = trace->threads[i].thread != trace->threads[j].thread;
  }
  for (size_t i = 0; i < kept; i++)
    trace->threads[i].id = is_unique ? trace->threads[i].thread : (uint64_t)trace->threads[i].stream + 1;
}

/* ---- the trace ---- */

static int trace_prepare(struct gdb_trace *trace, uint32_t stream)
{
  int r = analysis_names_new(&trace->input.files, &trace->names);

  if (r >= 0)
    r = description_read(trace);
  if (r < 0)
    return r;
  if (!thread_choose(trace, stream))
    return LB_E_NO_ENTRY;
  threads_select(trace);
  return modules_read(trace, trace->threads[0].space);
}

int gdb_trace_open(struct gdb_trace *trace, const char *name, uint32_t stream, uint64_t tail)
{
  int r;

  *trace = (struct gdb_trace){.tail = tail, .blocks = {.code = gdb_trace_code, .data = trace}};
  if (trace_input_open(&trace->input, name) < 0)
    return -EIO;
  r = trace_prepare(trace, stream);
  if (r == LB_E_NO_ENTRY && stream == LB_TRACE_ALL)
    message("%s: the trace has no threads", name);
  else if (r == LB_E_NO_ENTRY)
    message("%s: no thread %u", name, stream);
  else if (r < 0 && !trace->input.has_failed)
    message("%s: %s", name, lb_strerror(r));
  if (r < 0)
    gdb_trace_close(trace);
  return r;
}

int gdb_trace_close(struct gdb_trace *trace)
{
  gdb_modules_done(&trace->modules);
  analysis_names_free(trace->names);
  free(trace->threads);
  gdb_blocks_done(&trace->blocks);
  return trace_input_close(&trace->input);
}
