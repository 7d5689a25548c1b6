/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a recording and their memory. Processes that the program starts inherit the events; the kernel allows
 * this for rings only with one event for each processor. The events begin with execve, as the software source does. The
 * rings are shared with the kernel. Nothing in them is trusted, and tests can replace the kernel.
 */
#include "source/perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "source/perf_problem.h"

#define CPUS_MAX 4096u
#define RING_SIZE (512u << 10) /* records of a processor; the size that perf_event_mlock_kb allows every user */
#define RING_LEAST (32u << 10)
#define NORETCOMP_BIT 11 /* of intel_pt, if its format file is missing */

/* ---- the event ---- */

static int number_read(const struct source_kernel *kernel, const char *path, uint64_t *ret_number)
{
  char buffer[32];
  int r = kernel->file_read(kernel->data, path, buffer, sizeof(buffer));

  if (r < 0)
    return r;
  buffer[strcspn(buffer, "\n")] = 0;
  return number_parse(buffer, ret_number);
}

/* "config:11": the bit of the event's config that an option of a PMU has. */
static unsigned format_bit(const struct source_kernel *kernel, const char *path, unsigned otherwise)
{
  char buffer[32];
  unsigned bit;

  if (kernel->file_read(kernel->data, path, buffer, sizeof(buffer)) < 0 || sscanf(buffer, "config:%u", &bit) != 1 ||
      bit > 63)
    return otherwise;
  return bit;
}

/* The attributes that all events have in common. */
static struct perf_event_attr attributes_base(const struct source_options *options)
{
  return (struct perf_event_attr){
    .size = sizeof(struct perf_event_attr),
    .type = PERF_TYPE_SOFTWARE,
    .config = PERF_COUNT_SW_DUMMY,
    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
    .disabled = 1,
    .enable_on_exec = 1,
    .inherit = 1,
    .inherit_thread = options->is_alone,
    .exclude_kernel = 1,
    .exclude_hv = 1,
    .mmap = 1,
    .mmap2 = 1,
    .comm = 1,
    .comm_exec = 1,
    .task = 1,
    .sample_id_all = 1,
    .use_clockid = 1,
    .clockid = CLOCK_MONOTONIC,
    .watermark = 1,
    .wakeup_watermark = RING_SIZE / 4,
  };
}

/* Intel PT sends returns uncompressed: a compressed return refers to the calls since the last PSB, which chunks (pt.h)
 * do not have. Times are not needed. */
static int attributes_pmu(const struct source_kernel *kernel, enum source_kind kind, struct perf_event_attr *attributes)
{
  uint64_t type;
  int r = number_read(kernel,
                      kind == SOURCE_PT ? "/sys/bus/event_source/devices/intel_pt/type"
                                        : "/sys/bus/event_source/devices/intel_bts/type",
                      &type);

  if (r < 0)
    return r;
  attributes->type = (uint32_t)type;
  attributes->config = 0;
  if (kind == SOURCE_PT)
    attributes->config =
      UINT64_C(1) << format_bit(kernel, "/sys/bus/event_source/devices/intel_pt/format/noretcomp", NORETCOMP_BIT);
  return 0;
}

/* Events that can have a branch stack: the first is the preferred one, the last is AMD's branch sampling. */
static const struct {
  uint32_t type;
  uint64_t config;
  const char *name;
} stack_events[] = {
  {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches"},
  {PERF_TYPE_RAW, 0xC4, "taken branches"},
  {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles"},
};

static const uint64_t stack_extras[] = {PERF_SAMPLE_BRANCH_TYPE_SAVE | PERF_SAMPLE_BRANCH_HW_INDEX,
                                        PERF_SAMPLE_BRANCH_TYPE_SAVE, 0};

#define ARRAY_SIZE(array) (sizeof(array) / sizeof(*(array)))

/* Tries what this processor's driver accepts. Returns a descriptor or the -errno of the first try. */
static int stack_open(struct perf_session *session, int process, int cpu, const struct source_options *options)
{
  struct perf_event_attr *attributes = &session->attributes;
  uint64_t filters[] = {perf_branch_filter(options->kinds), PERF_SAMPLE_BRANCH_ANY};
  int first = 0;

  attributes->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
  attributes->sample_period = options->period ? options->period : SOURCE_PERIOD_DEFAULT;
  for (size_t event = 0; event < ARRAY_SIZE(stack_events); event++)
    for (size_t filter = filters[0] == filters[1]; filter < ARRAY_SIZE(filters); filter++)
      for (size_t extra = 0; extra < ARRAY_SIZE(stack_extras); extra++) {
        attributes->type = stack_events[event].type;
        attributes->config = stack_events[event].config;
        attributes->branch_sample_type = PERF_SAMPLE_BRANCH_USER | filters[filter] | stack_extras[extra];
        int fd = session->kernel->open(session->kernel->data, attributes, process, cpu);
        if (fd >= 0) {
          snprintf(session->sampling, sizeof(session->sampling), "a branch stack every %llu %s",
                   (unsigned long long)attributes->sample_period, stack_events[event].name);
          return fd;
        }
        first = first ? first : fd;
        if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS || fd == -EMFILE)
          return fd;
      }
  return first;
}

/* The first event finds the attributes that are accepted; the others use the same. */
static int event_open(struct perf_session *session, size_t place, int process, const struct source_options *options)
{
  struct perf_event_attr *attributes = &session->attributes;

  if (place == 0 && session->kind == SOURCE_LBR)
    return stack_open(session, process, session->cpus[place].cpu, options);
  return session->kernel->open(session->kernel->data, attributes, process, session->cpus[place].cpu);
}

/* ---- its memory ---- */

/* Maps the ring, as large as the limit on locked memory allows. */
static int ring_map(struct perf_session *session, struct perf_cpu *cpu)
{
  const struct source_kernel *kernel = session->kernel;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *memory = NULL;
  int r = -EPERM;

  for (size_t size = RING_SIZE; r == -EPERM && size >= RING_LEAST; size /= 2) {
    r = kernel->map(kernel->data, cpu->fd, page + size, 0, &memory);
    cpu->map_size = page + size;
  }
  if (r < 0)
    return r;
  cpu->page = memory;
  cpu->ring = (struct perf_ring){(const uint8_t *)memory + page, cpu->map_size - page};
  return 0;
}

static int aux_map(struct perf_session *session, struct perf_cpu *cpu, const struct source_options *options)
{
  const struct source_kernel *kernel = session->kernel;
  int r = -EPERM;

  cpu->page->aux_offset = cpu->map_size;
  for (size_t size = (size_t)(options->aux_size ? options->aux_size : SOURCE_AUX_DEFAULT);
       (r == -EPERM || r == -ENOMEM) && size >= SOURCE_AUX_LEAST; size /= 2) {
    cpu->page->aux_size = size;
    r = kernel->map(kernel->data, cpu->fd, size, cpu->map_size, &cpu->aux);
    cpu->aux_size = r < 0 ? 0 : size;
  }
  return r;
}

static int cpu_open(struct perf_session *session, size_t place, int process, const struct source_options *options,
                    struct source_problem *ret_problem)
{
  struct perf_cpu *cpu = &session->cpus[place];
  int r = event_open(session, place, process, options);

  if (r < 0)
    return perf_problem(ret_problem, session->kind, PERF_PROBLEM_OPEN, r);
  cpu->fd = session->fds[place] = r;
  r = ring_map(session, cpu);
  if (r < 0)
    return perf_problem(ret_problem, session->kind, PERF_PROBLEM_RING, r);
  if (session->kind == SOURCE_BTS || session->kind == SOURCE_PT)
    r = aux_map(session, cpu, options);
  return r < 0 ? perf_problem(ret_problem, session->kind, PERF_PROBLEM_AUX, r) : 0;
}

static int cpus_find(struct perf_session *session)
{
  int *cpus = calloc(CPUS_MAX, sizeof(*cpus));
  size_t count = cpus ? session->kernel->cpus(session->kernel->data, cpus, CPUS_MAX) : 0;

  session->cpus = calloc(count + 1, sizeof(*session->cpus));
  session->fds = calloc(count + 1, sizeof(*session->fds));
  if (cpus && session->cpus && session->fds)
    session->count = count;
  for (size_t i = 0; i < session->count; i++)
    session->cpus[i] = (struct perf_cpu){.cpu = cpus[i], .fd = -1};
  free(cpus);
  return session->count ? 0 : -ENOMEM;
}

int perf_session_open(struct perf_session *session, int process, const struct source_options *options,
                      struct source_problem *ret_problem)
{
  int r = cpus_find(session);

  session->kinds = options->kinds;
  session->attributes = attributes_base(options);
  if (r >= 0 && (session->kind == SOURCE_BTS || session->kind == SOURCE_PT)) {
    uint64_t aux = options->aux_size ? options->aux_size : SOURCE_AUX_DEFAULT;

    session->attributes.aux_watermark = (uint32_t)(aux / 4);
    r = attributes_pmu(session->kernel, session->kind, &session->attributes);
  }
  if (r < 0)
    return perf_problem(ret_problem, session->kind, r == -ENOMEM ? PERF_PROBLEM_MEMORY : PERF_PROBLEM_PMU, r);
  for (size_t i = 0; i < session->count && r >= 0; i++)
    r = cpu_open(session, i, process, options, ret_problem);
  if (r >= 0 && session->attributes.aux_watermark)
    perf_mark_add(session, process); /* without it, there will be gaps */
  session->layout = (struct perf_layout){session->attributes.sample_type, session->attributes.branch_sample_type, true};
  return r < 0 ? r : 0;
}

void perf_session_close(struct perf_session *session)
{
  const struct source_kernel *kernel = session->kernel;

  for (size_t i = 0; i < session->count; i++) {
    struct perf_cpu *cpu = &session->cpus[i];

    if (cpu->aux_size)
      kernel->unmap(kernel->data, cpu->aux, cpu->aux_size);
    if (cpu->page)
      kernel->unmap(kernel->data, cpu->page, cpu->map_size);
    if (cpu->fd >= 0)
      kernel->close(kernel->data, cpu->fd);
  }
  while (session->mark_count)
    perf_mark_drop(session, session->marks[session->mark_count - 1].thread);
  free(session->marks);
  free(session->cpus);
  free(session->fds);
  perf_queue_done(&session->queue);
}

/* ---- reading ---- */

/* Whether the AUX data of a record is still available: `head` is how far the kernel has written. */
static bool aux_is_there(const struct perf_cpu *cpu, uint64_t head, const struct perf_record *record)
{
  return record->aux.size <= cpu->aux_size && head - record->aux.offset <= cpu->aux_size &&
         record->aux.size <= head - record->aux.offset;
}

static int record_queue(struct perf_session *session, struct perf_cpu *cpu, const uint8_t *bytes, size_t size,
                        uint64_t *aux_tail)
{
  const struct perf_ring aux = {cpu->aux, cpu->aux_size};
  struct perf_item item = {.size = size, .place = (uint32_t)(cpu - session->cpus)};
  struct perf_record record = {0};
  uint64_t head;

  if (perf_record_parse(&session->layout, bytes, size, &record) < 0)
    record.kind = PERF_OTHER; /* perf_feed detects and reports it, too */
  item.time = record.time;
  if (record.kind == PERF_AUX) {
    head = __atomic_load_n(&cpu->page->aux_head, __ATOMIC_ACQUIRE);
    item.is_lost = !aux_is_there(cpu, head, &record);
    item.aux_size = item.is_lost ? 0 : (size_t)record.aux.size;
    *aux_tail = item.is_lost ? head : record.aux.offset + record.aux.size;
    cpu->is_full |= item.is_lost || record.aux.flags & PERF_AUX_TRUNCATED;
  }
  return perf_queue_add(&session->queue, &item, bytes, &aux, record.kind == PERF_AUX ? record.aux.offset : 0);
}

/* Reads all records of a processor. Invalid ones are lost, and an empty item marks the loss. */
static int cpu_read(struct perf_session *session, struct perf_cpu *cpu, uint8_t *buffer)
{
  uint64_t head = __atomic_load_n(&cpu->page->data_head, __ATOMIC_ACQUIRE), tail = cpu->page->data_tail;
  uint64_t aux_tail = cpu->aux_size ? cpu->page->aux_tail : 0;
  int size, r = 0;

  while (r >= 0 && (size = perf_ring_next(&cpu->ring, head, &tail, buffer)) != 0)
    r = size > 0 ? record_queue(session, cpu, buffer, (size_t)size, &aux_tail)
                 : perf_queue_add(&session->queue,
                                  &(struct perf_item){.is_lost = true, .place = (uint32_t)(cpu - session->cpus)},
                                  buffer, NULL, 0);
  __atomic_store_n(&cpu->page->data_tail, tail, __ATOMIC_RELEASE);
  if (cpu->aux_size)
    __atomic_store_n(&cpu->page->aux_tail, aux_tail, __ATOMIC_RELEASE);
  if (cpu->is_full)
    session->kernel->resume(session->kernel->data, cpu->fd);
  cpu->is_full = false;
  return r;
}

void perf_session_wait(struct perf_session *session, unsigned milliseconds, int fd)
{
  session->fds[session->count] = fd;
  session->kernel->wait(session->kernel->data, session->fds, session->count + 1, milliseconds);
}

int perf_session_step(struct perf_session *session, unsigned milliseconds, bool is_all)
{
  const struct source_kernel *kernel = session->kernel;
  uint8_t *buffer = malloc(PERF_RECORD_SIZE_MAX);
  uint64_t now;
  int r = buffer ? 0 : -ENOMEM;

  if (milliseconds)
    kernel->wait(kernel->data, session->fds, session->count, milliseconds);
  now = kernel->clock(kernel->data);
  for (size_t i = 0; i < session->count && r >= 0; i++)
    r = cpu_read(session, &session->cpus[i], buffer);
  free(buffer);
  if (r < 0)
    return r;
  /* A record may be written a little later than its time stamp: only those of the last round are safe. */
  is_all |= session->queue.bytes > PERF_QUEUE_BYTES;
  r = perf_queue_take(&session->queue, is_all ? UINT64_MAX : session->before, perf_feed, session);
  session->before = now;
  return r < 0 ? r : 0;
}
