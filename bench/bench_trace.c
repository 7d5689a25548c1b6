/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast traces are written and read: fifty million branches, synthetic ones (a walk through a program of a few
 * thousand edges, with a tenth of its turns at random) and those of the load (guest/load.c) in the machine, each
 * against copying the same records with memcpy in the same run. Then fifty million entries, from synthetic programs of
 * a few hundred and of twenty thousand paths: loops that go round as often as last time or not, calls and returns.
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
  check(report_summary_record(data, record), "stat");
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
  struct report_summary *summary;
  struct lb_trace_size size;
  struct lines lines = {0};
  double base;

  check(report_summary_new(NULL, &summary), "stat");
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
  report_summary_free(summary);
  report_script_free(lines.script);
  text_done(&lines.text);
}

/* ---- entries ---- */

#define ENTRIES 50000000u
#define ENTRY_WINDOW (8u << 20)  /* entries that are made; they are used again and again */
#define ENTRY_BATCH (256u << 10) /* given to the writer at once, as a drainer of logs does */
#define PATHS_MAX 20000u
#define PATH_STEPS 8u /* of a path at most */

static struct lb_trace_step path_steps[PATHS_MAX * (1 + PATH_STEPS) + 1];
static uint32_t path_heads[PATHS_MAX], path_number, path_count;
static uint32_t *entry_window;
static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((random_state >> 33) % limit);
}

/* A path of jccs, with jumps and calls between them that are followed; four of ten end with a return. */
static void path_make(uint32_t path)
{
  uint32_t head = path_number++, steps = 2 + random_below(PATH_STEPS - 1);
  uint64_t address = 0x400000 + (uint64_t)path * 256;

  path_heads[path] = head;
  path_steps[head] = (struct lb_trace_step){
    .from = address, .head = head, .flags = LB_TRACE_STEP_HEAD, .count = (uint8_t)steps, .space = 1};
  for (uint32_t i = 1; i <= steps; i++) {
    bool is_followed = i < steps && random_below(5) < 2;
    struct lb_trace_step *step = &path_steps[path_number++];

    *step = (struct lb_trace_step){.from = address + i * 12, .head = head, .length = 5, .space = 1};
    step->kind = is_followed ? LB_BRANCH_NEAR_REL_CALL : LB_BRANCH_JCC;
    step->flags = is_followed ? LB_TRACE_STEP_FOLLOW : 0;
    step->to = is_followed ? step->from + 8 : 0;
    if (i == steps && random_below(10) < 4) {
      step->flags = LB_TRACE_STEP_SILENT;
      step->kind = LB_BRANCH_NEAR_RET;
    }
  }
}

/* Jccs are tied to paths not far from their own, as code is. */
static void paths_make(uint32_t count)
{
  path_count = count;
  path_number = 1;
  random_state = 1;
  for (uint32_t i = 0; i < count; i++)
    path_make(i);
  for (uint32_t i = 0, path = 0; i < path_number; i++) {
    struct lb_trace_step *step = &path_steps[i];

    path += i && i != 1 && (step->flags & LB_TRACE_STEP_HEAD) ? 1 : 0;
    if (!i || (step->flags & (LB_TRACE_STEP_HEAD | LB_TRACE_STEP_FOLLOW | LB_TRACE_STEP_SILENT)))
      continue;
    step->next = path_heads[(path + count + random_below(16) - 6) % count];
    step->to = path_steps[step->next].from;
  }
}

/* Where a path is left: mostly where it was last time, until its loop ends; that is after as many turns as last time,
 * or, one time in ten, some others. */
static uint32_t path_leave(uint32_t head, uint8_t *turns, uint8_t *loop)
{
  uint32_t count = path_steps[head].count, step = head + 1 + head % count;

  if (++*turns < *loop)
    return step;
  *turns = 0;
  if (!*loop || random_below(10) == 0)
    *loop = (uint8_t)(1 + random_below(12));
  return head + 1 + (head + 1 + random_below(20) / 17) % count;
}

static void entries_make(void)
{
  static uint8_t turns[sizeof(path_steps) / sizeof(*path_steps)], loops[sizeof(turns)];
  uint32_t running = path_heads[0], caller = 0;

  memset(turns, 0, sizeof(turns));
  memset(loops, 0, sizeof(loops));
  entry_window[0] = LB_TRACE_ENTER | running;
  for (size_t i = 1; i < ENTRY_WINDOW; i++) {
    uint32_t step = path_leave(running, &turns[running], &loops[running]);

    while (path_steps[step].flags & LB_TRACE_STEP_FOLLOW)
      step++;
    if (path_steps[step].flags & LB_TRACE_STEP_SILENT) {
      /* back to where the last but one jcc led, or, one time in twenty, somewhere */
      running =
        random_below(20) ? path_heads[(caller * 7 + running) % path_count] : path_heads[random_below(path_count)];
      entry_window[i] = running;
    } else {
      caller = step;
      running = path_steps[step].next;
      entry_window[i] = step;
    }
  }
}

static bool path_lookup_step(void *context, uint32_t number, struct lb_trace_step *ret_step)
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

static void measure_entries(uint32_t paths, const char *path)
{
  struct lb_trace_size size;
  double seconds;

  paths_make(paths);
  entries_make();
  seconds = time_entries(path, &size);
  printf("entries of %u paths: %.0f million, %.2f branches each\n", paths, ENTRIES / 1e6,
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
  measure_entries(300, path);
  measure_entries(PATHS_MAX, path);
  rmdir(place);
  free(window);
  free(copy);
  free(entry_window);
  return 0;
}
