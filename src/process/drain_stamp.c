/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes stamps of the words that the runtime has put into the logs (runtime/stamp.c), and nanoseconds of readings of
 * the time stamp counter. The words are untrusted: a program that overwrites its log gets wrong stamps, and no more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "process/drain.h"

/* ---- clocks ---- */

static uint64_t clock_read(clockid_t clock)
{
  struct timespec time = {0};

  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Reads both clocks at the same moment: the best of a few tries. */
static void clocks_read(uint64_t *ret_time, uint64_t *ret_tick)
{
  enum { TRIES = 4 };
  uint64_t best = UINT64_MAX;

  for (unsigned i = 0; i < TRIES; i++) {
    uint64_t before = __rdtsc(), time = clock_read(CLOCK_MONOTONIC), after = __rdtsc();

    if (after - before < best) {
      best = after - before;
      *ret_time = time;
      *ret_tick = before + best / 2;
    }
  }
}

void process_clock_begin(struct process_clock *clock)
{
  clocks_read(&clock->start, &clock->start_tick);
  clock->wall = clock_read(CLOCK_REALTIME);
  clock->last = clock->start;
  clock->last_tick = clock->start_tick;
}

/* A reading of the counter lies between two moments at which both clocks were read. The longer these are apart, the
 * better the rate is known; readings soon after the start need no good one. */
static uint64_t tick_time(struct process_clock *clock, uint64_t tick)
{
  enum { RATE_LEAST = 1 << 20 }; /* ticks for a rate */
  uint64_t ticks, passed = tick - clock->start_tick;

  if ((int64_t)passed <= 0)
    return 0;
  if ((int64_t)(tick - clock->last_tick) > 0 || clock->last_tick - clock->start_tick < RATE_LEAST)
    clocks_read(&clock->last, &clock->last_tick);
  ticks = clock->last_tick - clock->start_tick;
  if (passed > ticks)
    passed = ticks;
  return ticks ? (uint64_t)((double)passed * ((double)(clock->last - clock->start) / (double)ticks)) : 0;
}

static uint64_t stamp_time(struct process_clock *clock, uint64_t value, bool is_nanoseconds)
{
  if (!is_nanoseconds)
    return tick_time(clock, value);
  return (int64_t)(value - clock->start) > 0 ? value - clock->start : 0;
}

/* ---- words ---- */

static uint64_t unfold(uint64_t value)
{
  return value >> 1 ^ (0 - (value & 1));
}

static void arguments_take(struct drain_stamp *parts, unsigned index, uint64_t first, uint64_t second)
{
  if (index + 2 > TRACE_ARGUMENTS_MAX)
    return;
  parts->arguments[index] = unfold(first);
  parts->arguments[index + 1] = unfold(second);
  parts->argument_count = (uint8_t)(index + 2);
}

static void path_take(struct drain_stamp *parts, unsigned index, const uint64_t values[2])
{
  enum { PIECE = 16 };
  char piece[PIECE + 1] = "";
  size_t size;

  if (index > 1)
    return;
  memcpy(piece, values, PIECE);
  size = strlen(piece);
  if (size > TRACE_PATH_MAX - parts->path_sizes[index])
    size = TRACE_PATH_MAX - parts->path_sizes[index];
  memcpy(parts->paths[index] + parts->path_sizes[index], piece, size);
  parts->path_sizes[index] = (uint16_t)(parts->path_sizes[index] + size);
  parts->paths[index][parts->path_sizes[index]] = 0;
  parts->has_path[index] = true;
}

/* Only plain values go into the trace: of a pointer, whether it is NULL. */
static uint64_t argument_value(char letter, uint64_t value)
{
  switch (letter) {
  case 's':
  case 'p':
    return value != 0;
  case 'u':
  case 'h':
  case 'o':
    return (uint32_t)value;
  case 'I':
  case 'U':
  case 'H':
    return value;
  default:
    return (uint64_t)(int64_t)(int32_t)value;
  }
}

static void call_fill(struct trace_stamp *stamp, const struct drain_stamp *parts, uint64_t number)
{
  const struct trace_call_info *info = trace_call_info((uint32_t)number);

  stamp->code = (uint32_t)number;
  for (unsigned i = 0; info && i < info->argument_count && i < parts->argument_count; i++) {
    stamp->arguments[i] = argument_value(info->arguments[i], parts->arguments[i]);
    stamp->argument_count++;
  }
  for (unsigned i = 0; i < 2; i++)
    stamp->paths[i] = parts->has_path[i] ? parts->paths[i] : NULL;
}

static void value_fill(struct trace_stamp *stamp, struct drain_stamp *parts, unsigned type, uint64_t value)
{
  enum { END_BITS = 8 };

  switch (type) {
  case STAMP_CALL:
    call_fill(stamp, parts, value);
    break;
  case STAMP_SIGNAL:
    stamp->code = (uint32_t)value;
    stamp->result = (int64_t)parts->arguments[0];
    stamp->value = parts->arguments[1];
    break;
  case STAMP_RETURN:
  case STAMP_HELD:
    stamp->result = (int64_t)unfold(value);
    break;
  case STAMP_END:
    stamp->result = (int64_t)(unfold(value) >> END_BITS);
    break;
  default:
    stamp->has_used = value != 0;
    stamp->used = value;
    break;
  }
}

/* A value of two words, those of which that are 0xFFFFFFFF were written as 0. */
static uint64_t value_join(const uint32_t *words, unsigned changed)
{
  uint64_t low = changed & 1 ? UINT32_MAX : words[0], high = changed & 2 ? UINT32_MAX : words[1];

  return high << 32 | low;
}

static const struct trace_stamp *stamp_make(void *context, uint32_t stream, const uint32_t words[LB_ENTRY_EVENT_WORDS])
{
  static const uint8_t types[] = {
    [STAMP_TIME] = TRACE_STAMP_TIME,     [STAMP_START] = TRACE_STAMP_START,   [STAMP_CALL] = TRACE_STAMP_CALL,
    [STAMP_RETURN] = TRACE_STAMP_RETURN, [STAMP_SIGNAL] = TRACE_STAMP_SIGNAL, [STAMP_END] = TRACE_STAMP_END,
    [STAMP_HELD] = TRACE_STAMP_HELD,
  };
  struct process_drain *drain = context;
  struct drain_stamp *parts = &drain->giving->stamp;
  unsigned type = words[0] >> 8 & 0x7F, cpu = words[0] >> 16 & PROCESS_NO_CPU, changed = words[0] >> 28;
  uint64_t first = value_join(words + 1, changed), second = value_join(words + 3, changed >> 2);

  (void)stream;
  if (type == STAMP_ARGUMENTS)
    arguments_take(parts, cpu, first, second);
  else if (type == STAMP_PATH)
    path_take(parts, cpu, (const uint64_t[]){first, second});
  if (type >= STAMP_ARGUMENTS)
    return NULL;
  drain->stamp = (struct trace_stamp){
    .type = types[type],
    .time = stamp_time(&drain->process->clock, first, words[0] >> 8 & STAMP_IS_NANOSECONDS),
    .has_cpu = cpu != PROCESS_NO_CPU,
    .cpu = (uint16_t)cpu,
  };
  value_fill(&drain->stamp, parts, type, second);
  parts->argument_count = 0;
  parts->path_sizes[0] = parts->path_sizes[1] = 0;
  parts->has_path[0] = parts->has_path[1] = false;
  return &drain->stamp;
}

int drain_stamps_begin(struct process_drain *drain)
{
  const struct process_clock *clock = &drain->process->clock;
  bool is_counter = drain_control(drain)->options & PROCESS_TSC;
  char value[96];

  trace_writer_stamps(drain->writer, stamp_make, drain);
  snprintf(value, sizeof(value), "%s monotonic %" PRIu64 " realtime %" PRIu64, is_counter ? "tsc" : "system",
           clock->start, clock->wall);
  return lb_trace_writer_meta(drain->writer, &(struct lb_trace_meta){"clock", value});
}
