/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches around a trigger (lbr record --trigger). The logs of all threads are rings. lbr looks at them now and
 * then, and remembers how far each of them was written at which time. When a thread has reached the trigger
 * (runtime/trigger.c), these times tell which entries are wanted; a drain writes them to the trace. lbr also answers
 * threads that have mapped a file and ask for the triggers in it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "process/drain.h"

enum {
  SAMPLES = 128,          /* that are kept of each thread, */
  SAMPLES_WANTED = 64,    /* and how many lie in the time before a hit */
  PERIOD_LEAST = 1000000, /* nanoseconds between two of them */
  GONE_MOST = 256 << 20,  /* bytes that the logs of threads that have ended may take */
  PATH_MOST = 4096,
};

#define STUCK_SECONDS 0.5 /* after which a note that is not complete is given up */

/* How far a log was written. */
struct ring_sample {
  uint64_t time; /* in nanoseconds */
  uint64_t end;  /* entries since the start of the log */
};

struct ring_thread {
  uint32_t serial;
  uint32_t count; /* samples so far; the last ones are kept */
  struct ring_sample samples[SAMPLES];
};

struct process_ring {
  const struct process *process;
  uint64_t before, period;
  uint64_t sampled; /* time of the last samples */
  double stuck;     /* since when a note is missing; 0: none is */
  char name[17];
  struct ring_thread *threads[PROCESS_THREADS]; /* by page */
  struct drain_window windows[PROCESS_THREADS];
};

struct drain_window *ring_windows(struct process_ring *ring)
{
  return ring->windows;
}

static struct process_control *control_of(const struct process_ring *ring)
{
  return (struct process_control *)(void *)ring->process->memory;
}

static struct process_state *page_of(const struct process_ring *ring, uint32_t slot)
{
  return (struct process_state *)(void *)(ring->process->memory + process_thread_offset(slot));
}

static uint64_t nanoseconds_now(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int process_ring_new(const struct process *process, uint64_t before, struct process_ring **ret_ring)
{
  struct process_ring *ring = calloc(1, sizeof(*ring));

  if (!ring)
    return -ENOMEM;
  ring->process = process;
  ring->before = before;
  ring->period = before / SAMPLES_WANTED > PERIOD_LEAST ? before / SAMPLES_WANTED : PERIOD_LEAST;
  *ret_ring = ring;
  return 0;
}

void process_ring_free(struct process_ring *ring)
{
  if (!ring)
    return;
  for (uint32_t i = 0; i < PROCESS_THREADS; i++)
    free(ring->threads[i]);
  free(ring);
}

/* ---- questions ---- */

/* The triggers that a note tells of. */
static size_t note_triggers(const struct process_ring *ring, const struct process_note *note, const uint8_t *bytes,
                            uint64_t *addresses, size_t most)
{
  const struct process_trigger *trigger = ring->process->trigger;
  char path[PATH_MOST] = "";
  struct process_module module = {.path = path};

  if (note->type == NOTE_MAP && note->length < sizeof(path)) {
    memcpy(path, bytes, note->length);
    module = (struct process_module){note->start, note->end, note->offset, path};
  }
  bool is_good = note->type == NOTE_SPACE || (*path && note->end > note->start);
  return is_good ? trigger->find(trigger->data, &module, addresses, most) : 0;
}

/* Returns false if a note is not complete yet. */
static bool ask_answer(const struct process_ring *ring, struct process_state *page, bool is_late)
{
  uint64_t at = page->ask_start, end = page->ask_end, addresses[PROCESS_TRIGGERS];
  size_t count = 0;
  struct process_note note;
  const uint8_t *bytes;

  while (at < end && process_note(ring->process, &at, &note, &bytes))
    if (note.space == page->space)
      count += note_triggers(ring, &note, bytes, addresses + count, PROCESS_TRIGGERS - count);
  if (at < end && !is_late)
    return false;
  memcpy(page->triggers, addresses, count * sizeof(*addresses));
  page->trigger_count = (uint32_t)count;
  __atomic_store_n(&page->ask, ASK_ANSWERED, __ATOMIC_RELEASE);
  drain_wake(&page->ask);
  return true;
}

static void asks_answer(struct process_ring *ring)
{
  bool is_late = ring->stuck > 0 && clock_seconds() - ring->stuck > STUCK_SECONDS, is_stuck = false;

  for (uint32_t i = 0; i < process_slots(ring->process); i++) {
    struct process_state *page = page_of(ring, i);

    if (__atomic_load_n(&page->status, __ATOMIC_ACQUIRE) == THREAD_LIVE &&
        __atomic_load_n(&page->ask, __ATOMIC_ACQUIRE) == ASK_OPEN)
      is_stuck |= !ask_answer(ring, page, is_late);
  }
  if (!is_stuck)
    ring->stuck = 0;
  else if (!(ring->stuck > 0))
    ring->stuck = clock_seconds();
}

/* ---- how far the logs are ---- */

/* The first entry from `at` on that is not there yet. The thread has written those from `at` on in its cache, so that
 * none of them is 0, and zeroes follow them. */
static uint64_t part_end(const uint32_t *part, uint64_t at, uint64_t size)
{
  uint64_t end = size;

  while (at < end) {
    uint64_t middle = at + (end - at) / 2;

    if (__atomic_load_n(&part[middle], __ATOMIC_RELAXED))
      at = middle + 1;
    else
      end = middle;
  }
  return at;
}

/* The number of entries that a thread has logged. As process_position, for logs that are long and looked at often. */
static uint64_t log_end(const struct process_ring *ring, uint32_t slot)
{
  const struct process *process = ring->process;
  const struct process_state *page = page_of(ring, slot);
  uint64_t size = process->part_size / sizeof(uint32_t), stride = (uint64_t)process->part_size + PROCESS_PAGE;
  uint64_t written = __atomic_load_n(&page->written, __ATOMIC_ACQUIRE);
  uint64_t offset = __atomic_load_n(&page->log, __ATOMIC_ACQUIRE) - __atomic_load_n(&page->log_start, __ATOMIC_RELAXED);
  uint64_t logs = process_logs_offset(process->notes_size, process->step_capacity);
  uint64_t part = logs + ((uint64_t)slot * PROCESS_PARTS + written % PROCESS_PARTS) * process->part_size;

  if (__atomic_load_n(&page->is_cut, __ATOMIC_ACQUIRE) || offset / stride != written % PROCESS_PARTS ||
      offset % stride > process->part_size)
    return written * size;
  uint64_t end = part_end((const uint32_t *)(const void *)(process->memory + part), offset % stride / 4, size);
  bool has_moved = __atomic_load_n(&page->written, __ATOMIC_ACQUIRE) != written;
  return has_moved ? (written + 1) * size : written * size + end;
}

uint64_t ring_first(const struct process *process, uint32_t slot)
{
  const struct process_state *page = (const void *)(process->memory + process_thread_offset(slot));
  uint64_t written = __atomic_load_n(&page->written, __ATOMIC_ACQUIRE);
  uint64_t whole = __atomic_load_n(&page->is_cut, __ATOMIC_ACQUIRE) == CUT_CLEAN ? PROCESS_PARTS : PROCESS_PARTS - 1;

  return written > whole ? (written - whole) * (process->part_size / sizeof(uint32_t)) : 0;
}

static bool is_recorded(uint32_t status)
{
  return status == THREAD_LIVE || status == THREAD_GONE;
}

static void thread_sample(struct process_ring *ring, uint32_t slot, uint64_t now)
{
  struct ring_thread *thread = ring->threads[slot];
  const struct process_state *page = page_of(ring, slot);

  if (!is_recorded(__atomic_load_n(&page->status, __ATOMIC_ACQUIRE)))
    return;
  if (!thread)
    thread = ring->threads[slot] = calloc(1, sizeof(*thread));
  if (!thread) /* more than wanted will be in the trace */
    return;
  if (thread->serial != page->serial)
    *thread = (struct ring_thread){.serial = page->serial};
  thread->samples[thread->count++ % SAMPLES] = (struct ring_sample){now, log_end(ring, slot)};
}

static void threads_sample(struct process_ring *ring)
{
  uint64_t now = nanoseconds_now();

  if (!ring->before || now - ring->sampled < ring->period)
    return;
  ring->sampled = now;
  for (uint32_t i = 0; i < process_slots(ring->process); i++)
    thread_sample(ring, i, now);
}

/* The last sample that was taken up to that time; the start of the log if there is none. */
static uint64_t sample_at(const struct process_ring *ring, uint32_t slot, uint64_t time)
{
  const struct ring_thread *thread = ring->threads[slot];
  uint32_t kept = !thread ? 0 : thread->count < SAMPLES ? thread->count : SAMPLES;

  if (!thread || thread->serial != page_of(ring, slot)->serial)
    return 0;
  for (uint32_t i = 1; i <= kept; i++) {
    const struct ring_sample *sample = &thread->samples[(thread->count - i) % SAMPLES];

    if (sample->time <= time)
      return sample->end;
  }
  return 0;
}

/* ---- threads that have ended ---- */

static uint64_t log_size(const struct process_ring *ring, uint32_t slot)
{
  uint64_t written = __atomic_load_n(&page_of(ring, slot)->written, __ATOMIC_RELAXED);

  return (written < PROCESS_PARTS ? written + 1 : PROCESS_PARTS) * ring->process->part_size;
}

/* Finds the thread that ended first, and adds up the logs of all that have ended. Returns the page, or PROCESS_THREADS:
 * none has. */
static uint32_t gone_oldest(const struct process_ring *ring, uint64_t *ret_size)
{
  uint32_t now = __atomic_load_n(&control_of(ring)->bell, __ATOMIC_RELAXED), oldest = PROCESS_THREADS, most = 0;
  uint64_t size = 0;

  for (uint32_t i = 0; i < process_slots(ring->process); i++) {
    const struct process_state *page = page_of(ring, i);
    uint32_t age = now - page->ended;

    if (__atomic_load_n(&page->status, __ATOMIC_ACQUIRE) != THREAD_GONE)
      continue;
    size += log_size(ring, i);
    if (age >= most) {
      most = age;
      oldest = i;
    }
  }
  *ret_size = size;
  return oldest;
}

/* Frees the logs of the threads that ended first. A new thread may take such a page at the same time. */
static void gone_free(struct process_ring *ring)
{
  const struct process *process = ring->process;
  uint64_t logs = process_logs_offset(process->notes_size, process->step_capacity), size;
  uint32_t slot, gone;

  while ((slot = gone_oldest(ring, &size)) < PROCESS_THREADS && size > GONE_MOST) {
    struct process_state *page = page_of(ring, slot);

    gone = THREAD_GONE;
    if (!__atomic_compare_exchange_n(&page->status, &gone, THREAD_STARTING, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      continue;
    madvise(process->memory + logs + (uint64_t)slot * PROCESS_PARTS * process->part_size,
            (size_t)PROCESS_PARTS * process->part_size, MADV_REMOVE);
    __atomic_store_n(&page->status, THREAD_FREE, __ATOMIC_SEQ_CST);
  }
}

/* ---- the whole ---- */

static void bell_wait(const struct process_ring *ring, uint32_t heard, unsigned milliseconds)
{
  struct process_control *control = control_of(ring);
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

  __atomic_store_n(&control->is_listening, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &control->bell, FUTEX_WAIT, heard, &time, NULL, 0);
  __atomic_store_n(&control->is_listening, 0, __ATOMIC_SEQ_CST);
}

void process_ring_step(struct process_ring *ring, unsigned milliseconds)
{
  uint32_t heard = __atomic_load_n(&control_of(ring)->bell, __ATOMIC_SEQ_CST);
  struct process_hit hit;

  asks_answer(ring);
  threads_sample(ring);
  if (process_ring_hit(ring, &hit)) {
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
    return;
  }
  gone_free(ring);
  if (ring->before && milliseconds > ring->period / 1000000)
    milliseconds = (unsigned)(ring->period / 1000000);
  bell_wait(ring, heard, ring->stuck > 0 ? 1 : milliseconds);
}

bool process_ring_is_alive(const struct process_ring *ring)
{
  for (uint32_t i = 0; i < process_slots(ring->process); i++) {
    const struct process_state *page = page_of(ring, i);
    uint32_t status = __atomic_load_n(&page->status, __ATOMIC_ACQUIRE);

    if ((status == THREAD_LIVE || status == THREAD_STARTING) && page->end != END_EXEC && page->process &&
        process_is_ours(ring->process, page->process))
      return true;
  }
  return false;
}

/* A thread whose system calls are restricted cannot ask for the time. */
bool process_ring_hit(const struct process_ring *ring, struct process_hit *ret_hit)
{
  struct process_hit_record record;

  if (!__atomic_load_n(&control_of(ring)->hit.is_filled, __ATOMIC_ACQUIRE))
    return false;
  memcpy(&record, &control_of(ring)->hit, sizeof(record));
  *ret_hit = (struct process_hit){record.process, record.thread, record.address,
                                  record.time ? record.time : nanoseconds_now(), record.duration};
  return true;
}

/* All live threads are in the trace, those that have ended only with branches. */
static struct drain_window window_of(const struct process_ring *ring, uint32_t slot, uint64_t from)
{
  const struct process_state *page = page_of(ring, slot);
  struct drain_window window = {.status = __atomic_load_n(&page->status, __ATOMIC_ACQUIRE)};

  if (!is_recorded(window.status))
    return window;
  window.serial = page->serial;
  window.end = log_end(ring, slot);
  window.first = ring_first(ring->process, slot);
  uint64_t wanted = ring->before ? sample_at(ring, slot, from) : 0;
  if (wanted > window.first)
    window.first = wanted;
  if (window.first > window.end)
    window.first = window.end;
  window.is_wanted = window.status == THREAD_LIVE || window.first < window.end;
  window.has_more = window.status == THREAD_LIVE || page->is_cut;
  return window;
}

/* Threads of one process are often neighbours. */
static void windows_check(struct process_ring *ring)
{
  uint32_t process = 0;
  bool is_ours = false;

  for (uint32_t i = 0; i < process_slots(ring->process); i++) {
    uint32_t number = __atomic_load_n(&page_of(ring, i)->process, __ATOMIC_RELAXED);

    if (!ring->windows[i].is_wanted || !number)
      continue;
    if (number != process)
      is_ours = process_is_ours(ring->process, number);
    process = number;
    ring->windows[i].is_ours = is_ours;
  }
}

void process_ring_close(struct process_ring *ring, const struct process_hit *hit)
{
  uint64_t from = hit->time > ring->before ? hit->time - ring->before : 0;

  __atomic_store_n(&control_of(ring)->is_closing, 1, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < process_slots(ring->process); i++)
    ring->windows[i] = window_of(ring, i, from);
  windows_check(ring);
}

const char *process_ring_name(struct process_ring *ring, uint32_t process, uint32_t thread)
{
  for (uint32_t i = 0; i < process_slots(ring->process); i++) {
    const struct process_state *page = page_of(ring, i);

    if (is_recorded(__atomic_load_n(&page->status, __ATOMIC_ACQUIRE)) && page->process == process &&
        page->thread == thread && page->name[0]) {
      memcpy(ring->name, page->name, sizeof(page->name));
      return ring->name;
    }
  }
  return "?";
}
