/* SPDX-License-Identifier: Apache-2.0
 *
 * --trace: writes every branch of the guest into a trace, with its source, the addresses of the kernel, and at the end
 * the code of every page that the guest's branches came from or went to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/base.h"
#include "session/machine.h"
#include "session/new_file.h"

#define PAGES_MAX (1u << 16)
#define GUEST_PAGE UINT64_C(4096)

/* ---- pages ---- */

/* The slot of a page in the hash table: its own, or an empty one. */
static uint64_t *page_place(uint64_t *pages, size_t capacity, uint64_t page)
{
  size_t i = (size_t)(page * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (capacity - 1);

  while (pages[i] && pages[i] != page + 1)
    i = (i + 1) & (capacity - 1);
  return &pages[i];
}

/* Doubles the hash table. Without memory, further pages are left out of the trace. */
static bool pages_grow(struct machine_pages *pages)
{
  size_t capacity = pages->capacity ? pages->capacity * 2 : 256;
  uint64_t *bigger = calloc(capacity, sizeof(*bigger));

  if (!bigger)
    return false;
  for (size_t i = 0; i < pages->capacity; i++)
    if (pages->pages[i])
      *page_place(bigger, capacity, pages->pages[i] - 1) = pages->pages[i];
  free(pages->pages);
  pages->pages = bigger;
  pages->capacity = capacity;
  return true;
}

static void pages_add(struct machine_pages *pages, uint64_t address)
{
  uint64_t page = address / GUEST_PAGE, *place;

  if (page + 1 == pages->last)
    return;
  pages->last = page + 1;
  if (2 * pages->count >= pages->capacity && (pages->count >= PAGES_MAX || !pages_grow(pages)))
    return;
  place = page_place(pages->pages, pages->capacity, page);
  pages->count += !*place;
  *place = page + 1;
}

/* ---- branches ---- */

/* The last branches, for the report on a guest's death. */
static void last_keep(struct machine_trace *trace)
{
  size_t count = trace->count < TRACE_LAST ? trace->count : TRACE_LAST;

  for (size_t i = trace->count - count; i < trace->count; i++)
    trace->last[(trace->total - trace->count + i) % TRACE_LAST] = trace->buffer[i];
}

static int trace_flush(struct machine_trace *trace)
{
  for (size_t i = 0; i < trace->count; i++) {
    const struct lb_branch *branch = &trace->buffer[i];

    pages_add(&trace->pages, branch->from + (branch->flags & LB_BRANCH_FROM_32 ? branch->from_base : 0));
    pages_add(&trace->pages, branch->to + (branch->flags & LB_BRANCH_TO_32 ? branch->to_base : 0));
  }
  last_keep(trace);
  if (trace->error >= 0)
    trace->error = lb_trace_writer_branches(trace->writer, trace->stream, trace->buffer, trace->count);
  trace->count = 0;
  return trace->error;
}

static void trace_take(void *data, const struct lb_branch *branch)
{
  const struct machine_tap *tap = data;
  struct machine_session *session = tap->session;
  struct machine_trace *trace = &session->trace;

  if (tap->stream != trace->stream) {
    trace_flush(trace);
    trace->stream = tap->stream;
  }
  trace->buffer[trace->count++] = *branch;
  trace->total++;
  if (trace->count == TRACE_BUFFER && trace_flush(trace) < 0)
    machine_stop(session->machine);
}

/* ---- the beginning ---- */

static int meta_put(struct lb_trace_writer *writer, const char *key, const char *value)
{
  return lb_trace_writer_meta(writer, &(struct lb_trace_meta){key, value});
}

static int metas_put(struct machine_session *session, int argc, char **argv)
{
  struct lb_trace_writer *writer = session->trace.writer;
  struct text command = {0}, now = {0};
  struct utsname host;
  int r;

  for (int i = 0; i < argc; i++)
    text_addf(&command, "%s%s", i ? " " : "", argv[i]);
  text_addf(&now, "%lld", (long long)time(NULL));
  r = meta_put(writer, "producer", "lbr " LB_VERSION);
  if (r >= 0)
    r = meta_put(writer, "source", "machine");
  if (r >= 0)
    r = meta_put(writer, "cpu", session->arguments->cpu->name);
  if (r >= 0 && command.length <= LB_TRACE_TEXT_MAX)
    r = meta_put(writer, "command", text_string(&command));
  if (r >= 0 && uname(&host) == 0)
    r = meta_put(writer, "host", host.nodename);
  if (r >= 0)
    r = meta_put(writer, "time", text_string(&now));
  text_done(&command);
  text_done(&now);
  return r;
}

/* The addresses of an ELF kernel: as it is linked, and as it is loaded if that differs. Its path is made absolute, for
 * readers in another directory. */
static int modules_put(struct lb_trace_writer *writer, const struct machine_file *kernel)
{
  struct symbol_layout layout;
  char *name;
  int r = 0;

  if (!kernel->bytes || symbol_layout_read(kernel->bytes, kernel->size, &layout) < 0)
    return 0;
  name = realpath(kernel->name, NULL);
  for (size_t i = 0; i < layout.count && r >= 0; i++) {
    const struct symbol_piece *piece = &layout.pieces[i];
    struct lb_trace_module module = {.address = piece->address,
                                     .size = piece->size,
                                     .offset = piece->offset,
                                     .name = name ? name : kernel->name,
                                     .build_id = layout.build_id,
                                     .build_id_size = layout.build_id_size};

    r = lb_trace_writer_module(writer, &module);
    module.address = piece->physical;
    if (r >= 0 && piece->physical != piece->address)
      r = lb_trace_writer_module(writer, &module);
  }
  free(name);
  return r;
}

static int trace_complain(const char *name, int error)
{
  message("%s: cannot write the trace: %s; %s.incomplete has the branches before that", name, lb_strerror(error), name);
  return error;
}

/* Gives each processor a stream. */
static int streams_put(struct machine_session *session)
{
  struct machine_trace *trace = &session->trace;

  for (unsigned i = 0; i < machine_cpu_count(session->machine); i++) {
    struct machine_tap *tap = &trace->taps[i];
    char name[16];
    int r;

    snprintf(name, sizeof(name), "cpu %u", i);
    tap->session = session;
    r = lb_trace_writer_stream(trace->writer, &(struct lb_trace_stream){.name = name}, &tap->stream);
    if (r < 0)
      return r;
    machine_show(session->machine, i);
    cpu_listen(machine_cpu(session->machine), trace_take, tap);
  }
  machine_show(session->machine, 0);
  trace->stream = trace->taps[0].stream;
  return 0;
}

int machine_trace_open(struct machine_session *session, const struct machine_file *kernel, int argc, char **argv)
{
  struct machine_trace *trace = &session->trace;
  const char *name = session->arguments->trace;
  int r = lb_trace_writer_open(name, &trace->writer);

  if (r < 0) {
    new_file_complain_trace(name, r);
    return r;
  }
  r = metas_put(session, argc, argv);
  if (r >= 0)
    r = modules_put(trace->writer, kernel);
  if (r >= 0)
    r = streams_put(session);
  if (r < 0)
    trace->error = r; /* machine_trace_close reports it */
  return r;
}

/* ---- the end ---- */

static int page_compare(const void *one, const void *other)
{
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

  return a < b ? -1 : a > b;
}

/* Writes the code as it is now. Pages that are no longer mapped are left out. */
static int code_put(struct machine_session *session)
{
  struct machine_pages *pages = &session->trace.pages;
  struct cpu *cpu;
  uint8_t bytes[GUEST_PAGE];

  machine_show(session->machine, 0);
  cpu = machine_cpu(session->machine);
  if (!pages->pages)
    return 0;
  qsort(pages->pages, pages->capacity, sizeof(*pages->pages), page_compare);
  for (size_t i = 0; i < pages->capacity; i++) {
    uint64_t address = (pages->pages[i] - 1) * GUEST_PAGE;
    size_t size = pages->pages[i] ? cpu_peek(cpu, address, bytes, sizeof(bytes)) : 0;
    int r = size ? lb_trace_writer_code(session->trace.writer, &(struct lb_trace_code){0, address, bytes, size}) : 0;

    if (r < 0)
      return r;
  }
  return 0;
}

static int instructions_put(struct machine_session *session)
{
  char count[24];

  snprintf(count, sizeof(count), "%llu", (unsigned long long)machine_retired(session->machine));
  return meta_put(session->trace.writer, "instructions", count);
}

int machine_trace_close(struct machine_session *session)
{
  struct machine_trace *trace = &session->trace;
  int r;

  if (!trace->writer)
    return 0;
  trace_flush(trace);
  if (trace->error >= 0)
    trace->error = code_put(session);
  if (trace->error >= 0)
    trace->error = instructions_put(session);
  if (trace->error >= 0)
    new_file_back_up(session->arguments->trace);
  r = lb_trace_writer_close(trace->writer);
  trace->writer = NULL;
  free(trace->pages.pages);
  r = trace->error < 0 ? trace->error : r;
  return r < 0 ? trace_complain(session->arguments->trace, r) : 0;
}
