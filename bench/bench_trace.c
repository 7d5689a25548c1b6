/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast traces are written and read: fifty million branches, synthetic ones (a walk through a program of a few
 * thousand edges, with a tenth of its turns at random) and those of the load (guest/load.c) in the machine, each
 * against copying the same records with memcpy in the same run.
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

int main(void)
{
  const char *folder = getenv("TMPDIR");
  char place[4096], path[4096 + 16];
  int r;

  snprintf(place, sizeof(place), "%s/bench-trace-XXXXXX", folder && *folder ? folder : "/tmp");
  window = calloc(WINDOW, sizeof(*window));
  copy = calloc(WINDOW, sizeof(*copy));
  if (!window || !copy || !mkdtemp(place))
    check(errno ? -errno : -ENOMEM, place);
  snprintf(path, sizeof(path), "%s/trace", place);
  window_synthetic();
  measure("synthetic", path);
  r = window_load(LB_LOADS "/load-64.elf");
  if (r >= 0)
    measure("the load in the machine", path);
  else
    printf("the load in the machine: left out: %s\n", lb_strerror(r));
  rmdir(place);
  free(window);
  free(copy);
  return 0;
}
