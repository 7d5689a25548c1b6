/* SPDX-License-Identifier: Apache-2.0
 *
 * The made-up kernel: it writes rings as kernel/events/ring_buffer.c of Linux does, and never more than the reader has
 * made room for.
 */
#include "source_fake.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

/* ---- events ---- */

static size_t fake_cpus(void *data, int *cpus, size_t room)
{
  (void)data;
  for (size_t i = 0; i < FAKE_CPUS && i < room; i++)
    cpus[i] = (int)i;
  return room < FAKE_CPUS ? room : FAKE_CPUS;
}

static struct fake_task *task_find(struct fake *fake, uint32_t number)
{
  for (unsigned i = 0; i < fake->task_count; i++)
    if (fake->tasks[i].number == number)
      return &fake->tasks[i];
  return NULL;
}

/* An event of one thread alone. */
static int mark_open(struct fake *fake, const struct perf_event_attr *attributes, int process)
{
  struct fake_task *task = task_find(fake, (uint32_t)process);

  if (!task || attributes->inherit || attributes->type != PERF_TYPE_SOFTWARE || !attributes->exclude_kernel)
    return -EINVAL;
  task->is_marked = task->was_marked = true;
  task->like = NULL;
  fake->marked++;
  return FAKE_MARK + (int)(task - fake->tasks);
}

static int fake_open(void *data, struct perf_event_attr *attributes, int process, int cpu)
{
  struct fake *fake = data;

  if (fake->open_error)
    return fake->open_error;
  if (cpu == -1)
    return mark_open(fake, attributes, process);
  if (process != FAKE_PROCESS || cpu < 0 || cpu >= FAKE_CPUS || !attributes->disabled || !attributes->enable_on_exec ||
      !attributes->inherit || !attributes->exclude_kernel || attributes->size != sizeof(*attributes))
    return -EINVAL;
  if (fake->takes_plain_only && (attributes->type != PERF_TYPE_RAW || attributes->config != 0xC4 ||
                                 attributes->branch_sample_type >= PERF_SAMPLE_BRANCH_TYPE_SAVE))
    return -EINVAL;
  fake->attributes = *attributes;
  fake->opened++;
  return 100 + cpu;
}

static void fake_close(void *data, int fd)
{
  struct fake *fake = data;

  if (fd >= FAKE_MARK) {
    fake->tasks[fd - FAKE_MARK].is_marked = false;
    fake->marked--;
    return;
  }
  fake->closed++;
}

static void fake_resume(void *data, int fd)
{
  ((struct fake *)data)->cpus[fd - 100].is_off = false;
}

static int fake_map_memory(void *data, int fd, size_t size, uint64_t offset, void **ret_memory)
{
  struct fake *fake = data;
  struct fake_cpu *cpu = &fake->cpus[fd - 100];
  size_t page = (size_t)sysconf(_SC_PAGESIZE);

  if (fake->map_error)
    return fake->map_error;
  if (offset == 0) {
    cpu->memory = calloc(1, size);
    cpu->ring_size = size - page;
    ((struct perf_event_mmap_page *)(void *)cpu->memory)->data_head = fake->ring_start;
    ((struct perf_event_mmap_page *)(void *)cpu->memory)->data_tail = fake->ring_start;
    *ret_memory = cpu->memory;
  } else {
    const struct perf_event_mmap_page *head = (const void *)cpu->memory;
    if (head->aux_offset != offset || head->aux_size != size)
      return -EINVAL;
    cpu->aux = calloc(1, size);
    cpu->aux_size = size;
    *ret_memory = cpu->aux;
  }
  fake->mapped++;
  return 0;
}

static void fake_unmap(void *data, void *memory, size_t size)
{
  struct fake *fake = data;

  (void)size;
  fake->unmapped++;
  free(memory);
  for (unsigned i = 0; i < FAKE_CPUS; i++)
    if (fake->cpus[i].memory == memory)
      fake->cpus[i].memory = NULL;
}

static void fake_wait(void *data, const int *fds, size_t count, unsigned milliseconds)
{
  struct fake *fake = data;

  (void)fds, (void)count, (void)milliseconds;
  if (!fake->is_done && (!fake->produce || !fake->produce(fake)))
    fake->is_done = true;
}

static uint64_t fake_clock(void *data)
{
  return ((struct fake *)data)->now;
}

static int fake_file_read(void *data, const char *path, char *buffer, size_t size)
{
  const struct fake *fake = data;

  if (!fake->pmu || strcmp(path, fake->pmu) != 0 || size < 4)
    return -ENOENT;
  memcpy(buffer, "9\n", 3);
  return 2;
}

/* ---- the program ---- */

static int fake_launch(void *data, const char *path, char *const arguments[], char *const environment[],
                       int *ret_process)
{
  (void)data, (void)path, (void)arguments, (void)environment;
  *ret_process = FAKE_PROCESS;
  return 0;
}

static int fake_go(void *data, int process)
{
  (void)process;
  return ((struct fake *)data)->go_error;
}

static void fake_drop(void *data, int process)
{
  (void)data, (void)process;
}

static int fake_reap(void *data, int *ret_process, int *ret_status)
{
  struct fake *fake = data;

  for (unsigned i = 0; i < fake->task_count; i++)
    if (fake->tasks[i].stop) {
      *ret_process = (int)fake->tasks[i].number;
      *ret_status = fake->tasks[i].stop;
      fake->tasks[i].stop = 0;
      return 1;
    }
  if (!fake->is_done)
    return 0;
  if (fake->status < 0)
    return -ECHILD;
  *ret_process = FAKE_PROCESS;
  *ret_status = fake->status;
  fake->status = -1;
  return 1;
}

static size_t fake_memory(void *data, uint32_t process, uint64_t address, void *buffer, size_t size)
{
  struct fake *fake = data;

  (void)process;
  return fake->memory ? fake->memory(fake, address, buffer, size) : 0;
}

void fake_init(struct fake *fake)
{
  *fake = (struct fake){.now = 1000, .tasks = {{.number = FAKE_PROCESS}}, .task_count = 1};
  fake->running = fake->tasks;
  fake->kernel = (struct source_kernel){
    .data = fake,
    .cpus = fake_cpus,
    .open = fake_open,
    .close = fake_close,
    .resume = fake_resume,
    .map = fake_map_memory,
    .unmap = fake_unmap,
    .wait = fake_wait,
    .clock = fake_clock,
    .file_read = fake_file_read,
    .launch = fake_launch,
    .go = fake_go,
    .drop = fake_drop,
    .reap = fake_reap,
    .memory = fake_memory,
  };
}

void fake_done(struct fake *fake)
{
  for (unsigned i = 0; i < FAKE_CPUS; i++)
    free(fake->cpus[i].memory);
}

/* ---- rings ---- */

static void ring_put(struct fake_cpu *cpu, uint64_t at, const void *bytes, size_t size)
{
  uint8_t *ring = cpu->memory + sysconf(_SC_PAGESIZE);

  for (size_t i = 0; i < size; i++)
    ring[(at + i) % cpu->ring_size] = ((const uint8_t *)bytes)[i];
}

bool fake_record(struct fake *fake, unsigned number, uint32_t type, uint16_t misc, const void *body, size_t size,
                 uint32_t process, uint32_t thread)
{
  struct fake_cpu *cpu = &fake->cpus[number];
  struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)(void *)cpu->memory;
  bool has_id = type != PERF_RECORD_SAMPLE;

  struct {
    uint32_t process, thread;
    uint64_t time;
    uint32_t cpu, reserved;
  } id = {process, thread, ++fake->now, number, 0};
  size_t padded = (size + 7) / 8 * 8, whole = 8 + padded + (has_id ? sizeof(id) : 0);
  struct perf_event_header head = {.type = type, .misc = misc, .size = (uint16_t)whole};
  static const uint8_t zeros[8];

  if (page->data_head - page->data_tail + whole > cpu->ring_size)
    return false;
  ring_put(cpu, page->data_head, &head, 8);
  ring_put(cpu, page->data_head + 8, body, size);
  ring_put(cpu, page->data_head + 8 + size, zeros, padded - size);
  if (has_id)
    ring_put(cpu, page->data_head + 8 + padded, &id, sizeof(id));
  page->data_head += whole;
  return true;
}

bool fake_aux(struct fake *fake, unsigned number, const void *bytes, size_t size, uint64_t flags, uint32_t process,
              uint32_t thread)
{
  struct fake_cpu *cpu = &fake->cpus[number];
  struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)(void *)cpu->memory;
  uint64_t body[3] = {cpu->aux_head, size, flags};

  if (cpu->aux_head - page->aux_tail + size > cpu->aux_size)
    return false;
  for (size_t i = 0; i < size; i++)
    cpu->aux[(cpu->aux_head + i) % cpu->aux_size] = ((const uint8_t *)bytes)[i];
  if (!fake_record(fake, number, PERF_RECORD_AUX, 0, body, sizeof(body), process, thread))
    return false;
  cpu->aux_head += size;
  page->aux_head = cpu->aux_head;
  return true;
}

bool fake_map(struct fake *fake, unsigned cpu, uint32_t process, uint64_t address, uint64_t size, uint64_t offset,
              const char *path)
{
  struct {
    uint32_t process, thread;
    uint64_t address, size, offset;
    uint32_t major, minor;
    uint64_t inode, generation;
    uint32_t protection, flags;
    char path[256];
  } body = {process, process, address, size, offset, 0, 0, 0, 0, 5 /* PROT_READ | PROT_EXEC */, 2, ""};

  strncpy(body.path, path, sizeof(body.path) - 1);
  return fake_record(fake, cpu, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &body,
                     sizeof(body) - sizeof(body.path) + strlen(body.path) + 1, process, process);
}

bool fake_comm(struct fake *fake, unsigned cpu, uint32_t process, uint32_t thread, const char *name, bool is_exec)
{
  struct {
    uint32_t process, thread;
    char name[16];
  } body = {process, thread, ""};

  strncpy(body.name, name, sizeof(body.name) - 1);
  return fake_record(fake, cpu, PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0, &body, sizeof(body),
                     process, thread);
}

bool fake_task(struct fake *fake, unsigned cpu, uint32_t type, uint32_t process, uint32_t thread, uint32_t parent,
               uint32_t parent_thread)
{
  struct {
    uint32_t process, parent, thread, parent_thread;
    uint64_t time;
  } body = {process, parent, thread, parent_thread, fake->now};

  return fake_record(fake, cpu, type, 0, &body, sizeof(body), parent, parent_thread);
}

/* ---- threads ---- */

void fake_jump(struct fake *fake, uint64_t from, uint64_t to)
{
  uint64_t record[3] = {from, to, 0};

  memcpy(fake->branches + fake->branches_size, record, sizeof(record));
  fake->branches_size += sizeof(record);
}

void fake_fork(struct fake *fake, uint32_t number)
{
  const struct fake_task *parent = fake->running;
  struct fake_task *task = &fake->tasks[fake->task_count++];

  *task = (struct fake_task){.number = number, .stop = PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7F};
  if (!parent->is_marked)
    task->like = parent->like ? parent->like : parent;
  fake_task(fake, 0, PERF_RECORD_FORK, number, number, parent->number, parent->number);
}

void fake_switch(struct fake *fake, uint32_t number)
{
  const struct fake_task *from = fake->running, *to = task_find(fake, number);
  bool are_alike = to && (from->like == to || to->like == from || (from->like && from->like == to->like));

  if (!are_alike && fake->branches_size) {
    fake_aux(fake, 0, fake->branches, fake->branches_size, 0, from->number, from->number);
    fake->branches_size = 0;
  }
  if (to)
    fake->running = to;
}
