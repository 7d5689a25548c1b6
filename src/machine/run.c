/* SPDX-License-Identifier: Apache-2.0
 *
 * The run loop. One cycle of the processor is one nanosecond. The processor runs until the next deadline of the board
 * or the keyboard, then these are told the time, and so on; several processors run in turn (turn.c). While the guest
 * waits (HLT, or a jump to itself) time is skipped up to the next moment at which something happens; idle.c detects
 * that nothing will.
 */
#include <time.h>

#include "machine/firmware.h"

#define SLICE_MAX (UINT64_C(1) << 15) /* cycles: how soon a request to stop, or the deadline, is seen */
#define LOOKS_MAX 64u                 /* runs of the processor between two looks at the host's clock */
#define BARREN_MAX (1u << 16)         /* times that time may pass without an instruction before the guest is given up */

/* One call of machine_run. */
struct run {
  const struct machine_limit *limit;
  uint64_t retired;   /* when it began */
  uint64_t last_time; /* when it must end */
  bool was_halted;    /* when it began */
  unsigned looks;     /* runs since the host's clock was last read */
  uint64_t looked_at; /* the guest's time at that reading */
  enum machine_stop stop;
};

static uint64_t run_deadline(const struct machine *m)
{
  uint64_t board = board_deadline(m->board), keys = keyboard_deadline(m);

  return board < keys ? board : keys;
}

/* Tells devices the time. */
static void run_advance(struct machine *m)
{
  uint64_t now = cpu_cycles(m->cpu);

  if (now >= board_deadline(m->board))
    board_advance(m->board, now);
  if (now >= keyboard_deadline(m))
    keyboard_advance(m, now);
}

static bool run_ends(struct run *run, enum machine_stop stop)
{
  run->stop = stop;
  return true;
}

/* ---- before the processor runs ---- */

/* Does what a service or a device requested while the processor ran. Returns false if there was no request. */
static bool run_requests(struct machine *m)
{
  bool is_any = m->wants_reset || !m->is_started || m->wants_boot || board_is_waking(m->board);

  if (m->wants_reset) {
    turn_reset(m);
    if (boot_resume(m))
      return true;
    machine_power_on(m, true);
    start_apply(m);
  } else if (!m->is_started)
    start_apply(m);
  else if (m->wants_boot) {
    m->wants_boot = false;
    boot_drives(m);
  } else if (board_is_waking(m->board))
    sleep_end(m);
  return is_any;
}

/* Returns whether the host's clock has passed the deadline. The clock is not read after every short run. */
static bool run_is_late(const struct machine *m, struct run *run)
{
  struct timespec now;
  uint64_t time = cpu_cycles(m->cpu);

  if (!run->limit->deadline || (++run->looks < LOOKS_MAX && time - run->looked_at < SLICE_MAX))
    return false;
  run->looks = 0;
  run->looked_at = time;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec >= run->limit->deadline;
}

static bool run_is_over(struct machine *m, struct run *run)
{
  const struct machine_limit *limit = run->limit;

  if (m->has_exit) {
    m->has_exit = false;
    return run_ends(run, MACHINE_STOP_EXIT);
  }
  if (m->is_off) {
    m->is_off = false;
    return run_ends(run, MACHINE_STOP_OFF);
  }
  if (atomic_exchange(&m->is_stopping, false))
    return run_ends(run, MACHINE_STOP_REQUESTED);
  if (limit->instructions && machine_retired(m) - run->retired >= limit->instructions)
    return run_ends(run, MACHINE_STOP_INSTRUCTIONS);
  if (cpu_cycles(m->cpu) >= run->last_time)
    return run_ends(run, MACHINE_STOP_TIME);
  if (run_is_late(m, run))
    return run_ends(run, MACHINE_STOP_REQUESTED);
  return false;
}

static uint64_t run_slice(const struct machine *m, const struct run *run)
{
  uint64_t now = cpu_cycles(m->cpu), until = run_deadline(m), slice = SLICE_MAX;

  if (until > run->last_time)
    until = run->last_time;
  if (until <= now)
    return 1;
  if (slice > until - now)
    slice = until - now;
  if (slice > turn_left(m))
    slice = turn_left(m);
  if (run->limit->instructions) {
    uint64_t left = run->limit->instructions - (machine_retired(m) - run->retired);

    if (slice > left)
      slice = left;
  }
  return slice;
}

/* ---- when the guest waits ---- */

/* Lets time pass, at most to the end of the run. */
static void run_pass(struct machine *m, const struct run *run, uint64_t until)
{
  uint64_t now = cpu_cycles(m->cpu);

  m->skip_until = until > run->last_time ? until : 0;
  if (until > run->last_time)
    until = run->last_time;
  if (until > now)
    cpu_idle(m->cpu, until - now);
  turn_renew(m);
}

/* Lets time pass until something happens. Returns false if nothing ever will. */
static bool run_skip(struct machine *m, const struct run *run)
{
  uint64_t until = run_deadline(m), retired = machine_retired(m);

  if (!turn_is_interruptible(m) || until == UINT64_MAX)
    return false;
  if (!board_can_wake(m->board) && keyboard_deadline(m) == UINT64_MAX)
    return false;
  m->idle.barren = m->idle.retired == retired ? m->idle.barren + 1 : 0;
  m->idle.retired = retired;
  if (m->idle.barren > BARREN_MAX)
    return false;
  run_pass(m, run, until);
  return true;
}

/* If the last run ended while time passed, lets it continue to pass without a check of the guest, because the result
 * must not depend on the number of runs. Input that has arrived since then ends this. */
static void run_go_on(struct machine *m, const struct run *run)
{
  uint64_t until = run_deadline(m);
  bool is_disturbed = turn_is_disturbed(m) || until == UINT64_MAX;

  if (m->skip_until && !is_disturbed)
    run_pass(m, run, until < m->skip_until ? until : m->skip_until);
  else
    m->skip_until = 0;
}

static bool run_wait(struct machine *m, struct run *run, enum cpu_stop stop)
{
  bool is_new = !run->was_halted || machine_retired(m) != run->retired;

  if (stop == CPU_STOP_HALTED && run->limit->until_halt && is_new && !idle_waits_for_key(m))
    return run_ends(run, MACHINE_STOP_HALTED);
  if (run->limit->until_idle && cpu_is_interruptible(m->cpu) && turn_others_sleep(m) && idle_is_forever(m, stop))
    return run_ends(run, MACHINE_STOP_IDLE);
  return run_skip(m, run) ? false : run_ends(run, MACHINE_STOP_IDLE);
}

/* In ACPI's S3, time passes up to the event that ends it, or to the end of the run. */
static bool run_sleep(struct machine *m, struct run *run)
{
  uint64_t until = run_deadline(m);

  if (board_is_waking(m->board))
    return false;
  if (until == UINT64_MAX)
    return run_ends(run, MACHINE_STOP_ASLEEP);
  cpu_stand(m->cpu, until < run->last_time ? until : run->last_time);
  return false;
}

/* True when the run is over. */
static bool run_step(struct machine *m, struct run *run)
{
  bool all_wait = true;

  if (board_is_asleep(m->board))
    return run_sleep(m, run);
  enum cpu_stop stop = run->limit->is_step ? cpu_step(m->cpu) : turn_run(m, run_slice(m, run), &all_wait);
  bool is_asked = m->wants_reset || m->wants_boot || m->has_exit || m->is_off;
  switch (stop) {
  case CPU_STOP_HALTED:
  case CPU_STOP_SPINNING:
    return is_asked || !all_wait ? false : run_wait(m, run, stop);
  case CPU_STOP_SHUTDOWN:
    machine_show(m, m->turn.number);
    return run_ends(run, MACHINE_STOP_SHUTDOWN);
  case CPU_STOP_UNIMPLEMENTED:
    machine_show(m, m->turn.number);
    return run_ends(run, MACHINE_STOP_UNIMPLEMENTED);
  case CPU_STOP_POINT:
    return run_ends(run, MACHINE_STOP_POINT);
  default:
    return false;
  }
}

/* A reset or boot in place of an instruction counts as a step. */
static bool run_is_stepped(struct machine *m, struct run *run)
{
  if (!run->limit->is_step)
    return false;
  m->cpu->hit = (struct cpu_hit){.kind = CPU_HIT_STEP};
  return run_ends(run, MACHINE_STOP_POINT);
}

enum machine_stop machine_run(struct machine *machine, const struct machine_limit *limit)
{
  machine_start(machine);
  uint64_t now = cpu_cycles(machine->cpu);
  struct run run = {.limit = limit, .retired = machine_retired(machine), .last_time = UINT64_MAX, .looked_at = now};
  if (limit->nanoseconds && limit->nanoseconds < UINT64_MAX - now)
    run.last_time = now + limit->nanoseconds;
  run.was_halted = machine->cpu->activity == CPU_HALTED;
  run_go_on(machine, &run);
  do {
    if (run_requests(machine) && run_is_stepped(machine, &run))
      break;
    run_advance(machine);
  } while (!run_is_over(machine, &run) && !run_step(machine, &run));
  turn_settle(machine);
  if (run.stop == MACHINE_STOP_IDLE)
    machine->idle = (struct idle){0}; /* the caller may have changed the guest */
  return run.stop;
}

void machine_start(struct machine *machine)
{
  if (!machine->is_started)
    start_apply(machine);
}

void machine_reset(struct machine *machine)
{
  machine_power_on(machine, false);
  start_apply(machine);
}

void machine_stop(struct machine *machine)
{
  atomic_store(&machine->is_stopping, true);
}
