/* SPDX-License-Identifier: Apache-2.0
 *
 * A running machine as gdb's target: points, stops, and continuing, slice after slice, through the same front that runs
 * the machine without gdb.
 */
#include "gdb/target_machine.h"

#include <errno.h>

#define IDLE_MILLISECONDS 50
#define SIGNAL_INTERRUPT 2u
#define SIGNAL_ILLEGAL 4u
#define SIGNAL_TRAP 5u
#define SIGNAL_ABORT 6u

static struct cpu *cpu_of(const struct gdb_machine *gdb)
{
  return machine_cpu(gdb->session->machine);
}

/* ---- state ---- */

static enum gdb_architecture target_architecture(void *data)
{
  static const enum gdb_architecture wanted[] = {
    [MACHINE_I8086] = GDB_I8086, [MACHINE_I386] = GDB_I386, [MACHINE_X86_64] = GDB_X86_64};
  static const enum gdb_architecture modes[4] = {[MODE_16] = GDB_I8086, [MODE_32] = GDB_I386, [MODE_64] = GDB_X86_64};
  struct gdb_machine *gdb = data;

  gdb->told = gdb->wanted ? wanted[gdb->wanted] : modes[cpu_of(gdb)->mode & MODE_BITS];
  return gdb->told;
}

static int target_read_register(void *data, uint64_t thread, enum gdb_register number, uint8_t *bytes)
{
  (void)thread;
  return gdb_machine_read(data, number, bytes);
}

static int target_write_register(void *data, uint64_t thread, enum gdb_register number, const uint8_t *bytes)
{
  (void)thread;
  return gdb_machine_write(data, number, bytes);
}

static size_t target_read_memory(void *data, uint64_t address, uint8_t *bytes, size_t size)
{
  return cpu_peek(cpu_of(data), address, bytes, size);
}

static int target_write_memory(void *data, uint64_t address, const uint8_t *bytes, size_t size)
{
  return cpu_poke(cpu_of(data), address, bytes, size) == size ? 0 : -EFAULT;
}

/* ---- points ---- */

static size_t point_find(const struct gdb_machine *gdb, const struct gdb_machine_point *point)
{
  for (size_t i = 0; i < gdb->point_count; i++)
    if (gdb->points[i].kind == point->kind && gdb->points[i].address == point->address &&
        (gdb->points[i].size == point->size || point->kind <= GDB_POINT_HARDWARE))
      return i;
  return gdb->point_count;
}

static int target_point(void *data, bool is_set, enum gdb_point kind, uint64_t address, uint64_t size)
{
  struct gdb_machine *gdb = data;
  struct gdb_machine_point point = {kind, address, size};
  size_t i = point_find(gdb, &point);

  if (is_set == (i < gdb->point_count))
    return 0;
  if (is_set && gdb->point_count == GDB_POINTS_MAX)
    return -ENOSPC;
  if (is_set)
    gdb->points[gdb->point_count++] = point;
  else
    gdb->points[i] = gdb->points[--gdb->point_count];
  gdb->are_points_new = true;
  return 0;
}

/* The processor's points are in the same order. */
static int points_apply(struct gdb_machine *gdb)
{
  static const uint8_t accesses[GDB_POINTS] = {
    [GDB_POINT_SOFTWARE] = ACCESS_EXECUTE,
    [GDB_POINT_HARDWARE] = ACCESS_EXECUTE,
    [GDB_POINT_WRITE] = ACCESS_WRITE,
    [GDB_POINT_READ] = ACCESS_READ,
    [GDB_POINT_ACCESS] = ACCESS_READ | ACCESS_WRITE,
  };
  struct cpu_point points[GDB_POINTS_MAX];
  int r;

  if (!gdb->are_points_new)
    return 0;
  for (size_t i = 0; i < gdb->point_count; i++)
    points[i] = (struct cpu_point){gdb->points[i].address, gdb->points[i].size, accesses[gdb->points[i].kind]};
  r = cpu_set_points(cpu_of(gdb), points, gdb->point_count);
  gdb->are_points_new = r < 0;
  return r;
}

/* ---- stopping ---- */

static void target_stop(void *data, struct gdb_stop *ret_stop)
{
  *ret_stop = ((const struct gdb_machine *)data)->stop;
}

/* These functions return true: the machine is stopped. */
static bool stop_signal(struct gdb_machine *gdb, unsigned signal)
{
  gdb->stop = (struct gdb_stop){.kind = GDB_STOPPED, .signal = signal};
  return true;
}

static bool stop_over(struct gdb_machine *gdb)
{
  struct machine_session *session = gdb->session;
  unsigned value = session->end == END_EXIT ? machine_exit_value(session->machine) << 1 | 1 : 0;

  gdb->is_over = true;
  gdb->stop = (struct gdb_stop){.kind = GDB_EXITED, .signal = value & 0xFF};
  return true;
}

static bool stop_code(struct gdb_machine *gdb, uint64_t address)
{
  struct gdb_machine_point point = {GDB_POINT_HARDWARE, address, 0};
  bool is_hard = point_find(gdb, &point) < gdb->point_count;

  gdb->stop = (struct gdb_stop){
    .kind = GDB_BREAK, .point = is_hard ? GDB_POINT_HARDWARE : GDB_POINT_SOFTWARE, .address = address};
  return true;
}

static bool stop_exception(struct gdb_machine *gdb, struct gdb_session *session, const struct cpu_hit *hit)
{
  struct text text = {0};

  if (text_addf(&text, "lbr: exception %s, error code 0x%x: %s\n", gdb_machine_exception_name(hit->vector), hit->error,
                hit->is_delivered ? "this is its handler" : "continuing delivers it") >= 0)
    gdb_session_print(session, text_string(&text));
  text_done(&text);
  gdb->is_at_exception = !hit->is_delivered;
  return stop_signal(gdb, gdb_machine_exception_signal(hit->vector));
}

static bool stop_dead(struct gdb_machine *gdb, struct gdb_session *session, unsigned signal)
{
  struct text text = {0};

  if (text_addf(&text, "lbr: %s; 'monitor reset' restarts the machine\n", machine_stop_reason(gdb->session->machine)) >=
      0)
    gdb_session_print(session, text_string(&text));
  text_done(&text);
  return stop_signal(gdb, signal);
}

/* ---- continuing ---- */

/* The exceptions that stop the machine: not those whose signals gdb passes on. */
static uint32_t catches_of(const struct gdb_machine *gdb, const struct gdb_session *session)
{
  uint32_t vectors = 0;

  for (unsigned i = 0; i < 32; i++)
    if ((gdb->catches >> i & 1) && !gdb_session_passes(session, gdb_machine_exception_signal(i)))
      vectors |= UINT32_C(1) << i;
  return vectors;
}

/* The processor stopped for the debugger. `is_passing` means that it was just stepped over an exception that was shown
 * before. */
static bool stop_hit(struct gdb_machine *gdb, const struct gdb_resume *resume, bool *is_passing)
{
  struct cpu_hit hit = cpu_of(gdb)->hit;

  switch (hit.kind) {
  case CPU_HIT_CODE:
    return stop_code(gdb, hit.address);
  case CPU_HIT_DATA:
    gdb->stop = (struct gdb_stop){.kind = GDB_WATCH, .point = gdb->points[hit.point].kind, .address = hit.address};
    return true;
  case CPU_HIT_EXCEPTION:
    return stop_exception(gdb, resume->session, &hit);
  default:
    if (resume->is_step)
      return stop_signal(gdb, SIGNAL_TRAP);
    *is_passing = false;
    return false;
  }
}

/* Runs a slice. Returns true if the machine has stopped. */
static bool run_slice(struct gdb_machine *gdb, const struct gdb_resume *resume, bool *is_passing)
{
  const struct machine_front *front = gdb->front;
  enum machine_stop stop;
  bool is_over;

  cpu_catch(cpu_of(gdb), *is_passing ? 0 : catches_of(gdb, resume->session));
  is_over = front->slice(front->data, resume->is_step || *is_passing, &stop);
  cpu_catch(cpu_of(gdb), 0);
  if (is_over)
    return stop_over(gdb);
  if (stop == MACHINE_STOP_POINT && stop_hit(gdb, resume, is_passing))
    return true;
  if (stop == MACHINE_STOP_SHUTDOWN)
    return stop_dead(gdb, resume->session, SIGNAL_ABORT);
  if (stop == MACHINE_STOP_UNIMPLEMENTED)
    return stop_dead(gdb, resume->session, SIGNAL_ILLEGAL);
  if (gdb_session_interrupted(resume->session))
    return stop_signal(gdb, SIGNAL_INTERRUPT);
  if (machine_session_is_still(stop) && front->wait(front->data, gdb->connection.in, IDLE_MILLISECONDS))
    return stop_over(gdb);
  return false;
}

static int target_resume(void *data, const struct gdb_resume *resume, struct gdb_stop *ret_stop)
{
  struct gdb_machine *gdb = data;
  bool is_passing = gdb->is_at_exception;
  int r = gdb->is_over ? 0 : points_apply(gdb);

  if (r < 0)
    return r;
  gdb->is_at_exception = false;
  while (!gdb->is_over && !run_slice(gdb, resume, &is_passing))
    ;
  *ret_stop = gdb->stop;
  return 0;
}

/* ---- the rest of the target ---- */

static int target_monitor(void *data, const char *command, struct text *output)
{
  return gdb_machine_monitor(data, command, output);
}

static bool target_history_is_on(void *data, uint64_t thread)
{
  (void)thread;
  return ((const struct gdb_machine *)data)->history.is_on;
}

static int target_history_enable(void *data, uint64_t thread, bool is_on)
{
  (void)thread;
  gdb_machine_history_enable(&((struct gdb_machine *)data)->history, is_on);
  return 0;
}

static int target_history_begin(void *data, uint64_t thread, enum gdb_history which)
{
  static const uint8_t bits[] = {[GDB_X86_64] = MODE_64, [GDB_I386] = MODE_32, [GDB_I8086] = MODE_16};
  struct gdb_machine *gdb = data;

  (void)thread;
  return gdb_machine_history_begin(&gdb->history, which, bits[gdb->told]);
}

static int target_history_next(void *data, struct gdb_block *ret_block)
{
  return gdb_machine_history_next(&((struct gdb_machine *)data)->history, ret_block);
}

struct gdb_target gdb_machine_target(struct gdb_machine *gdb)
{
  return (struct gdb_target){
    .data = gdb,
    .features = GDB_HAS_BASES | GDB_HAS_SYSTEM,
    .osabi = "none",
    .architecture = target_architecture,
    .read_register = target_read_register,
    .write_register = target_write_register,
    .read_memory = target_read_memory,
    .write_memory = target_write_memory,
    .point = target_point,
    .stop = target_stop,
    .resume = target_resume,
    .monitor = target_monitor,
    .history_is_on = target_history_is_on,
    .history_enable = target_history_enable,
    .history_begin = target_history_begin,
    .history_next = target_history_next,
  };
}

void gdb_machine_init(struct gdb_machine *gdb, struct machine_session *session, const struct machine_front *front)
{
  gdb->session = session;
  gdb->front = front;
  gdb->catches = gdb_machine_exceptions_default();
  gdb->history = (struct gdb_machine_history){.cpu = machine_cpu(session->machine), .most = HISTORY_DEFAULT};
  stop_signal(gdb, SIGNAL_TRAP);
}

void gdb_machine_leave(struct gdb_machine *gdb)
{
  gdb->point_count = 0;
  gdb->are_points_new = true;
  points_apply(gdb);
  gdb_machine_history_enable(&gdb->history, false);
  gdb->is_at_exception = false;
  stop_signal(gdb, SIGNAL_TRAP);
}
