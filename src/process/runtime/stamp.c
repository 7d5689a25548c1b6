/* SPDX-License-Identifier: Apache-2.0
 *
 * Stamps in the log: when the thread was there, and which system calls and signals there were. A stamp is an event of
 * kind LB_ENTRY_STAMP, which says nothing of branches; shared.h has its words. Times are readings of the time stamp
 * counter, which lbr converts, or of CLOCK_MONOTONIC where that counter cannot be used.
 */
#include <asm/unistd.h>
#include <linux/prctl.h>

#include "process/runtime/runtime.h"

enum { ARGUMENTS = 6, PIECE = 16, PIECES = 16 };
enum { LONG_CALL = 1 << 16 }; /* ticks of a call after which CPU time is read */

/* The letters of the arguments of each system call. An array of arrays needs no relocation. */
static const char letters[][ARGUMENTS + 1] = {
#define CALL(number, name, arguments) [number] = arguments,
#include "trace/call.def"
#undef CALL
};

enum { CALLS = sizeof(letters) / sizeof(*letters) };

void stamp_init(struct runtime *runtime)
{
  int mode = 0;

  runtime->has_stamps = runtime->mode == PROCESS_ALL || runtime->options & PROCESS_TRIGGER;
  if (!runtime->has_stamps)
    return;
  if (is_failure(kernel_call(__NR_prctl, PR_GET_TSC, (uint64_t)&mode, 0, 0, 0, 0)) || mode == PR_TSC_SIGSEGV)
    runtime->options &= ~(unsigned)PROCESS_TSC;
}

void stamp_stop(struct runtime *runtime, bool is_clock_left)
{
  runtime->options &= ~(unsigned)PROCESS_TSC;
  runtime->has_stamps &= is_clock_left;
}

bool stamp_is_wanted(const struct thread *thread)
{
  const struct runtime *runtime = thread->runtime;

  return runtime->has_stamps && !thread->is_unrecorded && !thread->state->is_unwanted &&
         (runtime->options & PROCESS_TSC || !runtime->is_confined);
}

/* ---- clocks ---- */

static uint64_t counter_read(const struct runtime *runtime, unsigned *cpu)
{
  uint32_t low, high, aux;

  if (runtime->options & PROCESS_TSCP) {
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(aux));
    *cpu = aux & ((1u << PROCESS_CPU_BITS) - 1);
  } else {
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  }
  return (uint64_t)high << 32 | low;
}

/* CPU time of the thread in nanoseconds; 0: it cannot be asked for. */
static uint64_t used_read(const struct runtime *runtime)
{
  enum { THREAD_TIME = 3 };
  int64_t time[2] = {0};

  if (runtime->is_confined || is_failure(kernel_call(__NR_clock_gettime, THREAD_TIME, (uint64_t)time, 0, 0, 0, 0)))
    return 0;
  return (uint64_t)time[0] * 1000000000 + (uint64_t)time[1];
}

/* ---- words ---- */

/* Small numbers of either sign become small numbers. */
static uint64_t fold(uint64_t value)
{
  return value << 1 ^ (0 - (value >> 63));
}

/* No word looks like the beginning of an event: code that begins to read a log in its middle looks for one. */
static void put(struct thread *thread, unsigned type, unsigned cpu, uint64_t first, uint64_t second)
{
  uint64_t values[] = {first, second};
  unsigned changed = 0;

  for (unsigned i = 0; i < 4; i++) {
    uint64_t word = (uint64_t)UINT32_MAX << i % 2 * 32;

    if ((values[i / 2] & word) == word) {
      values[i / 2] &= ~word;
      changed |= 1u << i;
    }
  }
  log_event(thread, LB_ENTRY_STAMP, type | cpu << 8 | changed << (8 + PROCESS_CPU_BITS), values[0], values[1]);
}

/* A moment: the time, and the processor. */
struct moment {
  uint64_t time;
  unsigned cpu;
};

/* Now, with room in the log for two stamps: otherwise the stamp at the start of the next part would be later, and come
 * before this one. */
static struct moment moment_now(struct thread *thread)
{
  const struct runtime *runtime = thread->runtime;
  struct moment moment = {0, PROCESS_NO_CPU};

  log_reserve(thread, 2 * (1 + LB_ENTRY_EVENT_WORDS));
  moment.time = runtime->options & PROCESS_TSC ? counter_read(runtime, &moment.cpu) : nanoseconds_now();
  return moment;
}

static void put_at(struct thread *thread, unsigned type, const struct moment *moment, uint64_t value)
{
  unsigned unit = thread->runtime->options & PROCESS_TSC ? 0 : STAMP_IS_NANOSECONDS;

  put(thread, type | unit, moment->cpu, moment->time, value);
}

static void put_now(struct thread *thread, unsigned type, uint64_t value)
{
  const struct moment moment = moment_now(thread);

  put_at(thread, type, &moment, value);
}

/* ---- stamps ---- */

void stamp_put(struct thread *thread, enum process_stamp type, uint64_t value)
{
  if (stamp_is_wanted(thread))
    put_now(thread, type, fold(value));
}

void stamp_used(struct thread *thread, enum process_stamp type)
{
  if (stamp_is_wanted(thread))
    put_now(thread, type, used_read(thread->runtime));
}

/* Reads 16 bytes of a text, up to its end. Returns how many there are before that, or -1: none can be read. */
static int piece_read(struct thread *thread, uint8_t piece[PIECE], uint64_t address)
{
  uint64_t left = PROCESS_PAGE - address % PROCESS_PAGE;
  int first = left < PIECE ? (int)left : PIECE, size = 0;

  memset(piece, 0, PIECE);
  if (!safe_read(thread, piece, address, (size_t)first))
    return -1;
  while (size < first && piece[size])
    size++;
  if (size == first && first < PIECE &&
      !safe_read(thread, piece + first, address + (uint64_t)first, (size_t)(PIECE - first)))
    return size;
  while (size < PIECE && piece[size])
    size++;
  memset(piece + size, 0, (size_t)(PIECE - size));
  return size;
}

static void path_put(struct thread *thread, unsigned index, uint64_t address)
{
  uint64_t piece[PIECE / 8];
  int size = PIECE;

  for (unsigned i = 0; i < PIECES && size == PIECE; i++) {
    size = piece_read(thread, (uint8_t *)piece, address + (uint64_t)i * PIECE);
    if (size >= 0)
      put(thread, STAMP_PATH, index, piece[0], piece[1]);
  }
}

void stamp_call(struct thread *thread)
{
  const uint64_t *registers = thread->state->registers;
  const uint64_t argument[ARGUMENTS] = {registers[GPR_RDI], registers[GPR_RSI], registers[GPR_RDX],
                                        registers[GPR_R10], registers[GPR_R8],  registers[GPR_R9]};
  uint32_t number = (uint32_t)registers[GPR_RAX]; /* all that the kernel looks at */
  unsigned count = 0, paths = 0;

  if (!stamp_is_wanted(thread))
    return;
  while (number < CALLS && letters[number][count]) {
    if (letters[number][count] == 's' && argument[count])
      path_put(thread, paths, argument[count]);
    paths += letters[number][count] == 's';
    count++;
  }
  for (unsigned i = 0; i < count; i += 2)
    put(thread, STAMP_ARGUMENTS, i, fold(argument[i]), i + 1 < count ? fold(argument[i + 1]) : 0);
  const struct moment moment = moment_now(thread);
  thread->call_time = moment.time;
  put_at(thread, STAMP_CALL, &moment, number);
}

/* The CPU time comes before the return: it tells for how long the thread has waited in the call. */
void stamp_return(struct thread *thread)
{
  if (!stamp_is_wanted(thread))
    return;
  const struct moment moment = moment_now(thread);
  if (moment.time - thread->call_time > LONG_CALL)
    put_at(thread, STAMP_TIME, &moment, used_read(thread->runtime));
  put_at(thread, STAMP_RETURN, &moment, fold(thread->state->registers[GPR_RAX]));
}

void stamp_signal(struct thread *thread, unsigned number, int code, uint64_t value)
{
  if (!stamp_is_wanted(thread))
    return;
  put(thread, STAMP_ARGUMENTS, 0, fold((uint64_t)(int64_t)code), fold(value));
  put_now(thread, STAMP_SIGNAL, number);
}
