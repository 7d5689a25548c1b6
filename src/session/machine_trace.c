/* SPDX-License-Identifier: Apache-2.0
 *
 * --trace: writes every branch of the guest into a trace, with its source, the addresses of the kernel, and at the end
 * the code of every page that the guest's branches came from or went to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "session/machine.h"
#include "session/new_file.h"
#include "session/trace_meta.h"
#include "trace/trace.h"

#define PAGES_MAX (1u << 16)
#define GUEST_PAGE UINT64_C(4096)

/* A stamp takes about 7 bytes: after so many branches, that is 0.015 bits for each of them, and the first chunk of a
 * stream, of 4096 branches, ends with a stamp. */
#define STAMP_BRANCHES (4 * TRACE_BUFFER)

/* A processor that stands for so many nanoseconds between two branches has waited: in HLT, say. The turns of the other
 * processors take less. */
#define WAIT_LEAST 100000u

/* ---- pages ---- */

static bool pages_have(const struct machine_pages *pages, uint64_t hash, uint64_t page)
{
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&pages->index, hash, &at)) != HASH_NONE;)
    if (pages->pages[number] == page)
      return true;
  return false;
}

/* A page for which there is no memory is left out of the trace. */
static void pages_add(struct machine_pages *pages, uint64_t address)
{
  uint64_t page = address / GUEST_PAGE, hash, *grown;

  if (page + 1 == pages->last)
    return;
  pages->last = page + 1;
  hash = hash_start(page);
  if (pages->count >= PAGES_MAX || pages_have(pages, hash, page))
    return;
  grown = array_grow(pages->pages, sizeof(*grown), pages->count, &pages->capacity);
  if (!grown)
    return;
  pages->pages = grown;
  if (hash_index_add(&pages->index, hash, pages->count) >= 0)
    grown[pages->count++] = page;
}

static void pages_done(struct machine_pages *pages)
{
  free(pages->pages);
  hash_index_done(&pages->index);
  *pages = (struct machine_pages){0};
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
    trace->error = lb_trace_writer_branches(trace->writer, trace->tap->stream, trace->buffer, trace->count);
  trace->tap->since += (uint32_t)trace->count;
  trace->count = 0;
  return trace->error;
}

/* Puts a stamp after the branches of the buffer, which are those of this processor. Its CPU time is the time without
 * what it has waited. */
static void stamp_put(struct machine_tap *tap, unsigned type, uint64_t time)
{
  struct machine_trace *trace = &tap->session->trace;
  const struct trace_stamp stamp = {.type = (uint8_t)type,
                                    .has_cpu = true,
                                    .cpu = tap->number,
                                    .has_used = true,
                                    .time = time,
                                    .used = time - tap->waited};

  if (trace_flush(trace) >= 0)
    trace->error = trace_writer_stamp(trace->writer, tap->stream, &stamp);
  tap->since = 0;
}

/* Puts stamps around a wait that has ended, if it was one. The instructions since then are too few to count. */
static void wait_put(struct machine_tap *tap)
{
  uint64_t now = cpu_cycles(tap->cpu), waited = tap->cpu->extra_cycles - tap->extra;

  tap->extra += waited;
  if (waited < WAIT_LEAST || (int64_t)waited < 0) /* a debugger may take the machine back */
    return;
  stamp_put(tap, TRACE_STAMP_TIME, now - waited);
  tap->waited += waited;
  stamp_put(tap, TRACE_STAMP_TIME, now);
}

/* The buffer has branches of one processor only. If several take turns, it is seldom full. */
static void tap_choose(struct machine_trace *trace, struct machine_tap *tap)
{
  if (trace->count)
    trace_flush(trace);
  trace->tap = tap;
  if (tap->since >= STAMP_BRANCHES)
    stamp_put(tap, TRACE_STAMP_TIME, cpu_cycles(tap->cpu));
}

static void trace_full(struct machine_trace *trace)
{
  struct machine_tap *tap = trace->tap;

  if (trace_flush(trace) < 0)
    machine_stop(tap->session->machine);
  if (tap->since >= STAMP_BRANCHES)
    stamp_put(tap, TRACE_STAMP_TIME, cpu_cycles(tap->cpu));
}

static void trace_take(void *data, const struct lb_branch *branch)
{
  struct machine_tap *tap = data;
  struct machine_trace *trace = &tap->session->trace;

  if (tap != trace->tap)
    tap_choose(trace, tap);
  if (tap->cpu->extra_cycles != tap->extra)
    wait_put(tap);
  trace->buffer[trace->count++] = *branch;
  trace->total++;
  if (trace->count == TRACE_BUFFER)
    trace_full(trace);
}

/* ---- the beginning ---- */

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
    machine_show(session->machine, i);
    *tap = (struct machine_tap){.session = session, .cpu = machine_cpu(session->machine), .number = (uint16_t)i};
    tap->extra = tap->cpu->extra_cycles;
    r = lb_trace_writer_stream(trace->writer, &(struct lb_trace_stream){.name = name}, &tap->stream);
    if (r < 0)
      return r;
    tap_choose(trace, tap);
    stamp_put(tap, TRACE_STAMP_START, machine_time(session->machine));
    cpu_listen(machine_cpu(session->machine), trace_take, tap);
  }
  machine_show(session->machine, 0);
  return 0;
}

int machine_trace_open(struct machine_session *session, const struct machine_file *kernel, char *const *words)
{
  struct machine_trace *trace = &session->trace;
  const char *name = session->arguments->trace;
  int r = lb_trace_writer_open(name, &trace->writer);

  if (r < 0) {
    new_file_complain_trace(name, r);
    return r;
  }
  r = trace_meta_put_all(trace->writer, "machine", "cpu", session->arguments->cpu->name, words);
  if (r >= 0)
    r = trace_meta_put(trace->writer, "clock", "guest");
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
  if (!pages->count)
    return 0;
  qsort(pages->pages, pages->count, sizeof(*pages->pages), page_compare);
  for (size_t i = 0; i < pages->count; i++) {
    uint64_t address = pages->pages[i] * GUEST_PAGE;
    size_t size = cpu_peek(cpu, address, bytes, sizeof(bytes));
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
  return trace_meta_put(session->trace.writer, "instructions", count);
}

static void ends_put(struct machine_session *session)
{
  struct machine_trace *trace = &session->trace;

  for (unsigned i = 0; i < machine_cpu_count(session->machine); i++) {
    struct machine_tap *tap = &trace->taps[i];

    if (!tap->session)
      continue; /* the trace could not be begun */
    tap_choose(trace, tap);
    wait_put(tap);
    stamp_put(tap, TRACE_STAMP_END, cpu_cycles(tap->cpu));
  }
}

int machine_trace_close(struct machine_session *session)
{
  struct machine_trace *trace = &session->trace;
  int r;

  if (!trace->writer)
    return 0;
  ends_put(session);
  if (trace->error >= 0)
    trace->error = code_put(session);
  if (trace->error >= 0)
    trace->error = instructions_put(session);
  if (trace->error >= 0)
    new_file_back_up(session->arguments->trace);
  r = lb_trace_writer_close(trace->writer);
  trace->writer = NULL;
  pages_done(&trace->pages);
  r = trace->error < 0 ? trace->error : r;
  return r < 0 ? trace_complain(session->arguments->trace, r) : 0;
}
