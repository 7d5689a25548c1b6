/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast traces are written and read: fifty million branches, synthetic ones (a walk through a program of a few
 * thousand edges, with a tenth of its turns at random) and those of the load (guest/load.c) in the machine, each
 * against copying the same records with memcpy in the same run. Then fifty million entries, from synthetic programs of
 * 40 and of 2000 functions: loops that go round as often as last time or not, calls and returns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lastbranch/error.h"
#include "lastbranch/trace.h"
#include "machine/machine.h"
#include "report/report.h"

#define BRANCHES 50000000u
#define WINDOW (2u << 20) /* branches that are made; they are used again and again, and a chunk does not remember */
#define BATCH 1024u       /* given to the writer at once, as lbr machine does */
#define NODES 4096u

static struct lb_branch *window, *copy;
static size_t window_count;

static double seconds_now(void)
{
  struct timespec now;

  return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) ? 0 : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check(int error, const char *what)
{
  if (error >= 0)
    return;
  fprintf(stderr, "bench_trace: %s: %s\n", what, lb_strerror(error));
  exit(1);
}

/* ---- branches ---- */

/* A program is a graph: from each node two ways lead on, and one is taken nine times of ten. */
static void window_synthetic(void)
{
  uint64_t random = 1;
  unsigned node = 0;

  for (window_count = 0; window_count < WINDOW; window_count++) {
    unsigned way, next;

    random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    way = (random >> 33) % 10 == 0;
    next = (node * 5 + 1 + way * 77) % NODES;
    window[window_count] = (struct lb_branch){
      .from = 0x400000 + node * 32 + way * 5,
      .to = 0x400000 + next * 32,
      .kind = way ? LB_BRANCH_NEAR_REL_JMP : LB_BRANCH_JCC,
      .from_cpl = 3,
      .to_cpl = 3,
      .flags = random >> 60 == 0 ? LB_BRANCH_MISPREDICTED : 0,
    };
    node = next;
  }
}

static void window_take(void *data, const struct lb_branch *branch)
{
  struct machine *machine = data;

  if (window_count < WINDOW)
    window[window_count++] = *branch;
  else
    machine_stop(machine);
}

/* The load from its start on, leaving out what comes before its programs take turns. */
static int window_load(const char *path)
{
  static uint8_t bytes[1 << 20];
  struct machine_config config = {.ram = 64 << 20};
  const struct machine_limit before = {.instructions = 100000000};
  const struct machine_limit limit = {.instructions = 1000000000};
  struct machine_image kernel = {.bytes = bytes};
  struct machine *machine = NULL;
  const char *why = "";

  FILE *file = fopen(path, "rb");
  int r;

  if (!file)
    return -errno;
  kernel.size = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  r = lb_cpu_find("skylake", &config.model);
  if (r >= 0)
    r = machine_new(&config, NULL, &machine);
  if (r >= 0)
    r = machine_load_kernel(machine, &kernel, "", NULL, NULL, 0, &why);
  if (r >= 0) {
    machine_run(machine, &before);
    window_count = 0;
    cpu_listen(machine_cpu(machine), window_take, machine);
    machine_run(machine, &limit);
  }
  machine_free(machine);
  return r < 0 ? r : window_count ? 0 : LB_E_BAD_IMAGE;
}

/* ---- what is measured ---- */

static double time_copy(void)
{
  double start = seconds_now();

  for (size_t done = 0; done < BRANCHES; done += BATCH) {
    memcpy(copy + done % window_count / BATCH * BATCH, window + done % window_count / BATCH * BATCH,
           BATCH * sizeof(*copy));
    __asm__ volatile("" ::: "memory");
  }
  return seconds_now() - start;
}

static double time_write(const char *path, struct lb_trace_size *ret_size)
{
  struct lb_trace_writer *writer;
  double start = seconds_now();
  uint32_t stream;

  check(lb_trace_writer_open(path, &writer), path);
  check(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "bench"}, &stream), "stream");
  for (size_t done = 0; done < BRANCHES; done += BATCH)
    check(lb_trace_writer_branches(writer, stream, window + done % window_count / BATCH * BATCH, BATCH), "branches");
  check(lb_trace_writer_flush(writer), "flush");
  *ret_size = lb_trace_writer_size(writer);
  check(lb_trace_writer_close(writer), path);
  return seconds_now() - start;
}

/* Reads it all; `take` is called with each record. */
static double time_read(const char *path, void (*take)(void *data, const struct lb_trace_record *record), void *data)
{
  struct lb_trace_record record;
  struct lb_trace_reader *reader;
  double start = seconds_now();
  uint64_t count = 0;
  int r;

  check(lb_trace_reader_open(path, &reader), path);
  while ((r = lb_trace_reader_next(reader, &record)) > 0) {
    count += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
    if (take)
      take(data, &record);
  }
  check(r, path);
  lb_trace_reader_close(reader);
  if (count < BRANCHES)
    check(LB_E_TRUNCATED, path);
  return seconds_now() - start;
}

static void take_stat(void *data, const struct lb_trace_record *record)
{
  check(analysis_summary_record(data, record), "stat");
}

struct lines {
  struct report_script *script;
  struct text text;
};

static void take_script(void *data, const struct lb_trace_record *record)
{
  struct lines *lines = data;

  lines->text.length = 0;
  check(report_script_record(lines->script, record, &lines->text), "script");
}

static void show(const char *name, double seconds, double base)
{
  printf("  %-12s %7.1f million branches a second, %6.1fx memcpy\n", name, BRANCHES / seconds / 1e6, seconds / base);
}

static void measure(const char *title, const char *path)
{
  const struct report_script_options options = {.stream = LB_TRACE_ALL, .limit = UINT64_MAX};
  struct analysis_summary *summary;
  struct lb_trace_size size;
  struct lines lines = {0};
  double base;

  check(analysis_summary_new(NULL, &summary), "stat");
  check(report_script_new(&options, &lines.script), "script");
  window_count -= window_count % BATCH;
  time_copy(); /* memory that is touched for the first time costs more */
  base = time_copy();
  printf("%s: %.0f million branches of %zu bytes; memcpy %.0f million a second\n", title, BRANCHES / 1e6, sizeof(*copy),
         BRANCHES / base / 1e6);
  show("write", time_write(path, &size), base);
  show("read", time_read(path, NULL, NULL), base);
  show("stat", time_read(path, take_stat, summary), base);
  show("script", time_read(path, take_script, &lines), base);
  printf("  %.2f bits a branch in the file\n", 8 * (double)size.bytes / (double)size.branches);
  unlink(path);
  analysis_summary_free(summary);
  report_script_free(lines.script);
  text_done(&lines.text);
}

/* ---- entries ---- */

#define ENTRIES 50000000u
#define ENTRY_WINDOW (8u << 20)  /* entries that are made; they are used again and again */
#define ENTRY_BATCH (256u << 10) /* given to the writer at once, as a drainer of logs does */
#define FUNCTIONS_MAX 2000u
#define LOOPS 2u
#define DEPTH 6u
#define FUNCTION_STEPS (LOOPS * 14 + 2)

/* A loop of a function: heads of its paths, and what it did last. */
struct loop {
  uint32_t body;  /* a jcc to `other`; a jcc back to `body`; the end */
  uint32_t other; /* a jmp that is followed; a jcc back to `body`; the end */
  uint32_t call;  /* a jcc to `after`; a call that is followed; a jmp to the first loop of what is called */
  uint32_t after; /* a jmp to the next loop, or the return */
  unsigned turns;
  unsigned ways; /* bits: is `other` run? */
};

static struct function {
  struct loop loops[LOOPS];
  uint32_t end; /* a return */
} functions[FUNCTIONS_MAX];

static struct lb_step path_steps[FUNCTIONS_MAX * FUNCTION_STEPS + 4];
static uint32_t path_number, function_count, top; /* top: a head, behind it an indirect call */
static uint32_t *entry_window;
static size_t entry_count;
static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((random_state >> 33) % limit);
}

static uint32_t path_make(unsigned count)
{
  uint32_t head = path_number;

  path_steps[head] = (struct lb_step){
    .from = 0x400000 + head * 16, .head = head, .flags = LB_STEP_HEAD, .count = (uint8_t)count, .space = 1};
  for (uint32_t i = 1; i <= count; i++)
    path_steps[head + i] = (struct lb_step){.from = 0x400000 + (head + i) * 16, .head = head, .length = 5, .space = 1};
  path_number += 1 + count;
  return head;
}

static void step_set(uint32_t number, unsigned kind, unsigned flags, uint32_t next)
{
  struct lb_step *step = &path_steps[number];

  step->kind = (uint8_t)kind;
  step->flags = (uint8_t)flags;
  step->to = path_steps[next].from;
  step->next = flags & LB_STEP_FOLLOW ? 0 : next;
}

static void loop_tie(const struct loop *loop, uint32_t callee, uint32_t next)
{
  step_set(loop->body + 1, LB_BRANCH_JCC, 0, loop->other);
  step_set(loop->body + 2, LB_BRANCH_JCC, 0, loop->body);
  step_set(loop->body + 3, LB_BRANCH_JCC, LB_STEP_NONE, loop->call);
  step_set(loop->other + 1, LB_BRANCH_NEAR_REL_JMP, LB_STEP_FOLLOW, loop->body);
  step_set(loop->other + 2, LB_BRANCH_JCC, 0, loop->body);
  step_set(loop->other + 3, LB_BRANCH_JCC, LB_STEP_NONE, loop->call);
  step_set(loop->call + 1, LB_BRANCH_JCC, 0, loop->after);
  step_set(loop->call + 2, LB_BRANCH_NEAR_REL_CALL, LB_STEP_FOLLOW, callee);
  step_set(loop->call + 3, LB_BRANCH_NEAR_REL_JMP, 0, callee);
  step_set(loop->after + 1, LB_BRANCH_NEAR_REL_JMP, 0, next);
}

static uint32_t callee_of(uint32_t function, unsigned loop)
{
  return (function * 3 + loop * 7 + 1) % function_count;
}

static void functions_make(uint32_t count)
{
  path_number = 1;
  function_count = count;
  random_state = 1;
  for (uint32_t i = 0; i < count; i++) {
    for (unsigned j = 0; j < LOOPS; j++)
      functions[i].loops[j] = (struct loop){path_make(3), path_make(3), path_make(3), path_make(1), 1, 0};
    functions[i].end = path_make(1);
    step_set(functions[i].end + 1, LB_BRANCH_NEAR_RET, LB_STEP_SILENT, 0);
  }
  for (uint32_t i = 0; i < count; i++)
    for (unsigned j = 0; j < LOOPS; j++)
      loop_tie(&functions[i].loops[j], functions[callee_of(i, j)].loops[0].body,
               j + 1 < LOOPS ? functions[i].loops[j + 1].body : functions[i].end);
  top = path_make(1);
  step_set(top + 1, LB_BRANCH_NEAR_IND_CALL, LB_STEP_SILENT, 0);
}

static void entry_log(uint32_t entry)
{
  if (entry_count < ENTRY_WINDOW)
    entry_window[entry_count++] = entry;
}

/* One time in ten a loop is of another length than last time, and one of its ways another. */
static void loop_run(struct loop *loop)
{
  if (random_below(10) == 0)
    loop->turns = 1 + random_below(12);
  if (random_below(10) == 0)
    loop->ways ^= 1u << random_below(12);
  for (unsigned i = 0; i < loop->turns; i++) {
    uint32_t path = loop->body;

    if (loop->ways >> i & 1) {
      entry_log(path + 1);
      path = loop->other;
    }
    entry_log(path + (i + 1 < loop->turns ? 2 : 3));
  }
}

/* Its end is silent: told by the head that comes next. */
static void function_run(uint32_t number, unsigned depth)
{
  struct function *function = &functions[number];

  for (unsigned i = 0; i < LOOPS; i++) {
    struct loop *loop = &function->loops[i];

    loop_run(loop);
    if (depth == DEPTH || random_below(20) == 0) {
      entry_log(loop->call + 1);
    } else {
      entry_log(loop->call + 3);
      function_run(callee_of(number, i), depth + 1);
      entry_log(loop->after);
    }
    entry_log(loop->after + 1);
  }
}

static void entries_make(void)
{
  entry_count = 0;
  entry_log(LB_ENTRY_ENTER | top);
  while (entry_count < ENTRY_WINDOW) {
    uint32_t function = random_below(1 + random_below(function_count));

    entry_log(functions[function].loops[0].body);
    function_run(function, 1);
    entry_log(top);
  }
}

static bool path_lookup_step(void *context, uint32_t number, struct lb_step *ret_step)
{
  (void)context;
  if (!number || number >= path_number)
    return false;
  *ret_step = path_steps[number];
  return true;
}

static double time_entries(const char *path, struct lb_trace_size *ret_size)
{
  struct lb_trace_writer *writer;
  double start = seconds_now();
  uint32_t stream;

  check(lb_trace_writer_open(path, &writer), path);
  check(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = "bench"}, &stream), "stream");
  lb_trace_writer_paths(writer, path_lookup_step, NULL);
  for (size_t done = 0; done < ENTRIES; done += ENTRY_BATCH)
    check(lb_trace_writer_entries(writer, stream, entry_window + done % ENTRY_WINDOW, ENTRY_BATCH), "entries");
  check(lb_trace_writer_flush(writer), "flush");
  *ret_size = lb_trace_writer_size(writer);
  check(lb_trace_writer_close(writer), path);
  return seconds_now() - start;
}

static void measure_entries(uint32_t count, const char *path)
{
  struct lb_trace_size size;
  double seconds;

  functions_make(count);
  entries_make();
  seconds = time_entries(path, &size);
  printf("entries of %u functions: %.0f million, %.2f branches each\n", count, ENTRIES / 1e6,
         (double)size.branches / ENTRIES);
  printf("  write        %7.2f ns an entry, %.1f million branches a second\n", seconds * 1e9 / ENTRIES,
         (double)size.branches / seconds / 1e6);
  seconds = time_read(path, NULL, NULL);
  printf("  read         %7.2f ns an entry, %.1f million branches a second\n", seconds * 1e9 / ENTRIES,
         (double)size.branches / seconds / 1e6);
  printf("  %.2f bits an entry, %.2f bits a branch in the file\n", 8 * (double)size.bytes / ENTRIES,
         8 * (double)size.bytes / (double)size.branches);
  unlink(path);
}

int main(void)
{
  const char *folder = getenv("TMPDIR");
  char place[4096], path[4096 + 16];
  int r;

  snprintf(place, sizeof(place), "%s/bench-trace-XXXXXX", folder && *folder ? folder : "/tmp");
  window = calloc(WINDOW, sizeof(*window));
  copy = calloc(WINDOW, sizeof(*copy));
  entry_window = calloc(ENTRY_WINDOW, sizeof(*entry_window));
  if (!window || !copy || !entry_window || !mkdtemp(place))
    check(errno ? -errno : -ENOMEM, place);
  snprintf(path, sizeof(path), "%s/trace", place);
  window_synthetic();
  measure("synthetic", path);
  r = window_load(LB_LOADS "/load-64.elf");
  if (r >= 0)
    measure("the load in the machine", path);
  else
    printf("the load in the machine: left out: %s\n", lb_strerror(r));
  measure_entries(40, path);
  measure_entries(FUNCTIONS_MAX, path);
  rmdir(place);
  free(window);
  free(copy);
  free(entry_window);
  return 0;
}
