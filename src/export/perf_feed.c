/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a trace to samples. A sample ends when it is full, when a branch is missing after it, and when something is
 * mapped, because its addresses refer to the earlier mappings.
 */
#include "export/perf_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The program of a process: the modules of a space. Streams are interleaved, so branches from before an exec may come
 * after the first branches of the new program: then the image changes back and forth. */
struct perf_image {
  uint32_t key; /* process, or 0 for all of them */
  uint32_t space, process;
};

/* ---- branches ---- */

enum perf_type { TYPE_UNKNOWN, COND, UNCOND, IND, CALL, IND_CALL, RET, SYSCALL, SYSRET, ERET = 11, IRQ = 12 };

/* include/uapi/linux/perf_event.h, enum perf_branch_type. */
static uint8_t branch_type(unsigned kind)
{
  static const uint8_t types[LB_BRANCH_KINDS] = {
    [LB_BRANCH_JCC] = COND,          [LB_BRANCH_NEAR_REL_CALL] = CALL, [LB_BRANCH_NEAR_IND_CALL] = IND_CALL,
    [LB_BRANCH_NEAR_RET] = RET,      [LB_BRANCH_NEAR_IND_JMP] = IND,   [LB_BRANCH_NEAR_REL_JMP] = UNCOND,
    [LB_BRANCH_FAR_CALL] = CALL,     [LB_BRANCH_FAR_JMP] = UNCOND,     [LB_BRANCH_FAR_RET] = RET,
    [LB_BRANCH_IRET] = ERET,         [LB_BRANCH_SYSCALL] = SYSCALL,    [LB_BRANCH_SYSENTER] = SYSCALL,
    [LB_BRANCH_SYSRET] = SYSRET,     [LB_BRANCH_SYSEXIT] = SYSRET,     [LB_BRANCH_INT] = IRQ,
    [LB_BRANCH_INT3] = IRQ,          [LB_BRANCH_INTO] = IRQ,           [LB_BRANCH_FAULT] = IRQ,
    [LB_BRANCH_TRAP] = IRQ,          [LB_BRANCH_INTERRUPT] = IRQ,      [LB_BRANCH_NMI] = IRQ,
    [LB_BRANCH_MACHINE_CHECK] = IRQ,
  };

  return kind < LB_BRANCH_KINDS ? types[kind] : TYPE_UNKNOWN;
}

static struct perf_branch branch_make(const struct perf_feed *feed, const struct lb_branch *branch)
{
  bool is_mispredicted = branch->flags & LB_BRANCH_MISPREDICTED;

  return (struct perf_branch){
    .from = analysis_from(branch),
    .to = analysis_to(branch),
    .type = branch_type(branch->kind),
    .is_mispredicted = is_mispredicted,
    .is_predicted = feed->has_predictions && !is_mispredicted,
    .is_in_transaction = branch->flags & LB_BRANCH_IN_TSX,
    .is_abort = branch->kind == LB_BRANCH_TSX_ABORT,
  };
}

/* ---- samples ---- */

static void stream_flush(struct perf_feed *feed, struct export_job *job, struct perf_stream *stream)
{
  if (!stream->count)
    return;
  feed->samples++;
  feed->writer->sample(job, stream);
  stream->count = 0;
}

static void streams_flush(struct perf_feed *feed, struct export_job *job)
{
  for (size_t i = 0; i < feed->pending_count; i++) {
    stream_flush(feed, job, &feed->streams[feed->pending[i]]);
    feed->streams[feed->pending[i]].is_pending = false;
  }
  feed->pending_count = 0;
}

/* Flushes the streams that run in a space. */
static void space_flush(struct perf_feed *feed, struct export_job *job, uint32_t space)
{
  for (size_t i = 0; i < feed->pending_count; i++)
    if (feed->streams[feed->pending[i]].space == space)
      stream_flush(feed, job, &feed->streams[feed->pending[i]]);
}

/* Adds a stream to the list of those that have, or will have, branches that were not given yet. Returns 0, or
 * -ENOMEM. */
static int stream_list(struct perf_feed *feed, struct perf_stream *stream)
{
  uint32_t *added;

  if (stream->is_pending)
    return 0;
  added = array_append(&feed->pending, &feed->pending_count, &feed->pending_capacity);
  if (!added)
    return -ENOMEM;
  *added = (uint32_t)(stream - feed->streams);
  stream->is_pending = true;
  return 0;
}

static struct perf_stream *stream_get(struct perf_feed *feed, uint32_t number)
{
  return array_at(&feed->streams, number, &feed->stream_count, &feed->stream_capacity);
}

/* ---- mappings ---- */

static int feed_module(struct perf_feed *feed, struct export_job *job, const struct lb_trace_module *module)
{
  if (!module->size)
    return 0;
  space_flush(feed, job, module->space);
  for (size_t i = 0; i < feed->image_count && !module->is_gone; i++)
    if (feed->images[i].space == module->space)
      feed->writer->module(job, feed->images[i].process, module);
  return perf_modules_take(&feed->modules, module);
}

/* ---- threads ---- */

static int feed_stream(struct perf_feed *feed, const struct lb_trace_stream *record)
{
  struct perf_stream *stream = stream_get(feed, record->number);

  if (!stream)
    return -ENOMEM;
  stream->space = record->space;
  stream->process = record->process;
  stream->thread = record->thread;
  strncpy(stream->name, record->name, sizeof(stream->name) - 1);
  return 0;
}

static struct perf_image *image_get(struct perf_feed *feed, uint32_t key)
{
  struct perf_image *image;

  for (size_t i = feed->image_count; i-- > 0;)
    if (feed->images[i].key == key)
      return &feed->images[i];
  image = array_append(&feed->images, &feed->image_count, &feed->image_capacity);
  if (image)
    *image = (struct perf_image){.key = key, .space = UINT32_MAX};
  return image;
}

/* A branch of the stream comes: announces its thread, and its program if that differs from the process's current one.
 * Returns 0, or -ENOMEM. */
static int stream_begin(struct perf_feed *feed, struct export_job *job, struct perf_stream *stream)
{
  struct perf_image *image = image_get(feed, feed->writer->is_single ? 0 : stream->process);
  bool is_first;

  if (!image)
    return -ENOMEM;
  is_first = image->space != stream->space || image->process != stream->process;
  if (stream->is_begun && !is_first)
    return 0;
  if (is_first)
    space_flush(feed, job, image->space);
  *image = (struct perf_image){image->key, stream->space, stream->process};
  stream->is_begun = true;
  if (feed->writer->begin)
    feed->writer->begin(job, stream, is_first);
  for (const struct perf_module *module = is_first ? perf_modules_first(&feed->modules, stream->space) : NULL; module;
       module = perf_modules_next(&feed->modules, module))
    feed->writer->module(job, stream->process, &module->module);
  return 0;
}

int perf_feed_branches(struct perf_feed *feed, struct export_job *job, const struct lb_trace_branches *branches)
{
  struct perf_stream *stream = stream_get(feed, branches->stream);
  unsigned window = job->options.window ? job->options.window : PERF_WINDOW;

  if (!stream || stream_begin(feed, job, stream) < 0 || stream_list(feed, stream) < 0)
    return -ENOMEM;
  if (!stream->branches)
    stream->branches = calloc(window, sizeof(*stream->branches));
  if (!stream->branches)
    return -ENOMEM;
  if (stream->next != branches->first)
    stream_flush(feed, job, stream);
  for (size_t i = 0; i < branches->count; i++) {
    stream->branches[stream->count++] = branch_make(feed, &branches->branches[i]);
    feed->branches++;
    if (stream->count == window)
      stream_flush(feed, job, stream);
  }
  stream->next = branches->first + branches->count;
  return 0;
}

/* ---- all of it ---- */

int perf_feed_begin(struct perf_feed *feed, const struct perf_writer *writer)
{
  feed->writer = writer;
  return 0;
}

int perf_feed_record(struct perf_feed *feed, struct export_job *job, const struct lb_trace_record *record)
{
  switch (record->type) {
  case LB_TRACE_META:
    if (!strcmp(record->meta.key, "source"))
      feed->has_predictions = !strcmp(record->meta.value, "machine");
    return 0;
  case LB_TRACE_MODULE:
    return feed_module(feed, job, &record->module);
  case LB_TRACE_STREAM:
    return feed_stream(feed, &record->stream);
  case LB_TRACE_GAP:
    if (record->gap.stream == LB_TRACE_ALL)
      streams_flush(feed, job);
    else if (record->gap.stream < feed->stream_count)
      stream_flush(feed, job, &feed->streams[record->gap.stream]);
    return 0;
  default:
    return 0;
  }
}

int perf_feed_end(struct perf_feed *feed, struct export_job *job)
{
  streams_flush(feed, job);
  if (feed->samples && feed->modules.is_full)
    export_warn(job, "the trace has too many modules: some samples have no file");
  if (feed->samples)
    return 0;
  return export_fail(job, "the trace has no branches that could be written");
}

void perf_feed_done(struct perf_feed *feed)
{
  for (size_t i = 0; i < feed->stream_count; i++)
    free(feed->streams[i].branches);
  perf_modules_done(&feed->modules);
  free(feed->streams);
  free(feed->pending);
  free(feed->images);
}
