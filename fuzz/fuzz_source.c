/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel hands out, from a stranger: rings of records, BTS records, Intel PT packets. Whatever the bytes are,
 * what comes out are branches that a trace can hold, or gaps; it ends, and memory is bounded. The first byte says what
 * it is.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "source/bts.h"
#include "source/perf.h"
#include "source/pt.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The code that all of it runs in: jcc, syscall, jmp, call, ret, indirect jumps, sigreturn. */
#define CODE UINT64_C(0x10000)
static const uint8_t code[] = {0x31, 0xC0, 0x74, 0x04, 0x0F, 0x05, 0xEB, 0xF8, 0xE8, 0x03, 0,    0,    0,
                               0xC3, 0x90, 0x90, 0xC3, 0xB8, 15,   0,    0,    0,    0x0F, 0x05, 0xFF, 0xE0,
                               0xFF, 0xD0, 0xEB, 0xFE, 0xE2, 0xFE, 0xCC, 0xCD, 0x80, 0x0F, 0x0B};

static size_t memory_read(void *context, uint32_t process, uint64_t address, void *buffer, size_t size)
{
  (void)context, (void)process;
  if (address < CODE || address - CODE >= sizeof(code))
    return 0;
  if (size > sizeof(code) - (address - CODE))
    size = sizeof(code) - (size_t)(address - CODE);
  memcpy(buffer, code + (address - CODE), size);
  return size;
}

/* ---- the sink ---- */

enum { STREAMS_SEEN = 64 };

static uint32_t streams;
static uint64_t times[STREAMS_SEEN]; /* of their last stamps */

static int sink_module(void *context, const struct lb_trace_module *module)
{
  (void)context;
  if (!module->name || module->size > UINT64_MAX - module->address || strlen(module->name) > LB_TRACE_TEXT_MAX)
    abort();
  return 0;
}

static int sink_code(void *context, const struct lb_trace_code *piece)
{
  (void)context;
  if (!piece->bytes || !piece->size)
    abort();
  return 0;
}

static int sink_stream(void *context, const struct lb_trace_stream *stream, uint32_t *ret_number)
{
  (void)context;
  if (strlen(stream->name) > 16)
    abort();
  *ret_number = streams++;
  if (*ret_number < STREAMS_SEEN)
    times[*ret_number] = 0;
  return 0;
}

static int sink_branches(void *context, uint32_t stream, const struct lb_branch *branches, size_t count)
{
  (void)context;
  if (stream >= streams || !count)
    abort();
  for (size_t i = 0; i < count; i++)
    if (branches[i].kind >= LB_BRANCH_KINDS || branches[i].from_cpl != 3 || branches[i].to_cpl != 3)
      abort();
  return 0;
}

static int sink_gap(void *context, const struct lb_trace_gap *gap)
{
  (void)context;
  if (gap->reason >= LB_TRACE_GAP_REASONS || (gap->stream != LB_TRACE_ALL && gap->stream >= streams))
    abort();
  return 0;
}

/* Times never go back in a stream. */
static int sink_stamp(void *context, uint32_t stream, const struct trace_stamp *stamp)
{
  (void)context;
  if (stream >= streams || stamp->type >= TRACE_STAMP_TYPES || (stream < STREAMS_SEEN && stamp->time < times[stream]))
    abort();
  if (stream < STREAMS_SEEN)
    times[stream] = stamp->time;
  return 0;
}

static const struct source_sink sink = {NULL,          sink_module, sink_code, sink_stream,
                                        sink_branches, sink_gap,    NULL,      sink_stamp};

/* ---- the three ---- */

static int item_take(void *context, const struct perf_item *item)
{
  return perf_feed(context, item);
}

/* One byte: which source; one: where the tail is. The rest is the ring, and its first bytes are AUX data, too. */
static void ring_try(struct tasks *tasks, const uint8_t *data, size_t size)
{
  static const enum source_kind kinds[] = {SOURCE_LBR, SOURCE_BTS, SOURCE_PT, SOURCES};
  struct perf_cpu cpu = {0};
  struct perf_session session = {.tasks = tasks, .cpus = &cpu, .count = 1};
  uint8_t *buffer = malloc(PERF_RECORD_SIZE_MAX);
  struct perf_ring ring;
  uint64_t tail, head;
  int length;

  if (size < 10 || !buffer) {
    free(buffer);
    return;
  }
  session.kind = kinds[data[0] & 3];
  session.kinds = data[0] & 4 ? 1u << LB_BRANCH_JCC : 0;
  session.layout = (struct perf_layout){PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IP,
                                        data[0] & 8 ? PERF_SAMPLE_BRANCH_HW_INDEX : 0, !(data[0] & 16)};
  if (!(data[0] & 32))
    session.layout.sample_type |= PERF_SAMPLE_BRANCH_STACK;
  ring = (struct perf_ring){data + 2, size - 2};
  tail = data[1];
  head = tail + ring.size;
  while ((length = perf_ring_next(&ring, head, &tail, buffer)) > 0) {
    struct perf_record record;
    struct perf_item item = {.size = (size_t)length};

    if (perf_record_parse(&session.layout, buffer, (size_t)length, &record) >= 0) {
      item.time = record.time;
      if (record.kind == PERF_AUX)
        item.aux_size = (size_t)(record.aux.size % 512);
    }
    if (perf_queue_add(&session.queue, &item, buffer, &ring, 0) < 0)
      abort();
  }
  (void)perf_queue_take(&session.queue, UINT64_MAX, item_take, &session);
  perf_queue_done(&session.queue);
  free(buffer);
}

/* Chunks of two threads in turn: one byte has the size of each. */
static void chunks_try(struct tasks *tasks, const uint8_t *data, size_t size, bool is_pt)
{
  struct pt_state state = {0};
  const struct pt_model model = {0};

  for (unsigned i = 0; size > 1; i++) {
    struct task_thread *thread = tasks_thread(tasks, 1, 1 + (i & 1));
    size_t length = (size_t)data[0] + 1 < size - 1 ? (size_t)data[0] + 1 : size - 1;
    int r =
      is_pt ? pt_decode(tasks, thread, &model, &state, data + 1, length) : bts_decode(tasks, thread, data + 1, length);

    if (r < 0 && source_has_pt())
      abort();
    data += 1 + length;
    size -= 1 + length;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct tasks *tasks;

  if (!size || size > 65536 || tasks_new(&sink, memory_read, NULL, &tasks) < 0)
    return 0;
  streams = 0;
  if (data[0] % 3 == 0)
    ring_try(tasks, data + 1, size - 1);
  else
    chunks_try(tasks, data + 1, size - 1, data[0] % 3 == 2);
  if (tasks_flush(tasks) < 0)
    abort();
  tasks_free(tasks);
  return 0;
}
