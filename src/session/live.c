/* SPDX-License-Identifier: Apache-2.0
 *
 * The processor whose registers `lbr live` reads: its identity, the device, whether lbr has switched recording on,
 * --arm and --disarm. Between live_session_open and live_session_close, a signal first restores the registers.
 */
#include "session/live.h"

#include <errno.h>
#include <sched.h>

#include "base/base.h"

static int finding_complain(const struct hardware_finding *finding, int error)
{
  message("%s%s%s", finding->reason, *finding->advice ? "; " : "", finding->advice);
  return error < 0 ? error : -EIO;
}

int live_session_complain(struct live_session *session)
{
  struct hardware_finding finding = hardware_live_explain(session->system, &session->host, &session->live);

  return finding_complain(&finding, session->live.trouble.error);
}

/* ---- the processor that lbr runs on ---- */

/* Reads CPUID on the processor itself, because others may be of another kind. If lbr cannot be moved there, it reads
 * CPUID where it runs. */
static void processor_identify(struct live_session *session, unsigned number)
{
  cpu_set_t before, there;
  bool has_moved = false;

  if (number < CPU_SETSIZE && sched_getaffinity(0, sizeof(before), &before) == 0) {
    CPU_ZERO(&there);
    CPU_SET(number, &there);
    has_moved = sched_setaffinity(0, sizeof(there), &there) == 0;
  }
  hardware_identify(session->system, &session->host);
  if (has_moved)
    (void)sched_setaffinity(0, sizeof(before), &before);
}

/* Code of lbr must not fill the stack that it reads: moves lbr away from that processor, if there is another. Returns
 * whether lbr runs elsewhere then. */
static bool processor_leave(unsigned number)
{
  cpu_set_t set;

  if (number >= CPU_SETSIZE || sched_getaffinity(0, sizeof(set), &set) < 0)
    return true; /* with that many processors lbr is hardly on this one */
  CPU_CLR(number, &set);
  return CPU_COUNT(&set) && sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* ---- opening ---- */

static int row_open(struct live_session *session)
{
  struct hardware_finding finding;
  int r;

  processor_identify(session, session->arguments->number);
  if (session->arguments->cpu && session->arguments->cpu->lbr) {
    hardware_row_of(session->arguments->cpu, &session->row);
    return 0;
  }
  if (session->arguments->cpu)
    session->host.cpu = session->arguments->cpu;
  r = hardware_row_find(&session->host, &session->row);
  if (r >= 0)
    return 0;
  finding = hardware_row_explain(&session->host, r);
  return finding_complain(&finding, r);
}

/* Finds out whether lbr has switched recording on. */
static int state_open(struct live_session *session)
{
  const struct live_arguments *arguments = session->arguments;
  int r = live_state_read(arguments->state_directory, arguments->number, &session->state);

  if (r < 0 || !session->state.exists)
    return r;
  r = hardware_live_is_as_left(&session->live, session->state.changes, session->state.count);
  if (r < 0)
    return live_session_complain(session);
  session->live.is_ours = r;
  return 0;
}

int live_session_open(struct live_session *session, const struct live_arguments *arguments)
{
  struct hardware_finding finding;
  int r;

  *session = (struct live_session){.arguments = arguments, .system = hardware_system_real()};
  r = hardware_device_open(session->system, arguments->number, &session->device);
  if (r < 0) {
    hardware_identify(session->system, &session->host);
    finding = hardware_device_explain(session->system, arguments->number, r);
    return finding_complain(&finding, r);
  }
  r = row_open(session);
  if (r >= 0) {
    hardware_live_begin(&session->live, &session->row, &session->device.registers);
    r = state_open(session);
  }
  if (r < 0) {
    hardware_device_close(&session->device);
    return r;
  }
  session->is_here = !processor_leave(arguments->number);
  hardware_guard_begin(&session->live.undo, arguments->wants_watch);
  return 0;
}

int live_session_close(struct live_session *session)
{
  int r = hardware_live_end(&session->live);

  if (r < 0)
    message("cannot restore the registers of processor %u: %s", session->arguments->number, lb_strerror(r));
  hardware_guard_end();
  hardware_device_close(&session->device);
  live_names_free(session->names);
  return r;
}

/* ---- on and off ---- */

/* Checks that no other program uses the stack. Returns 0 or negative. */
static int in_use_check(struct live_session *session)
{
  int is_on = hardware_live_is_on(&session->live);

  if (is_on < 0)
    return live_session_complain(session);
  if (session->arguments->is_forced)
    return 0;
  if (is_on && !session->live.is_ours) {
    message("recording is on, and not by 'lbr live --arm': perf or a debugger uses it; end it, or take it over with "
            "--force");
    return -EBUSY;
  }
  if (hardware_event_is_open(session->system)) {
    message("perf has an event with a branch stack or Intel PT open; end it, or take it over with --force");
    return -EBUSY;
  }
  return 0;
}

int live_session_switch_on(struct live_session *session)
{
  struct lbr_setup setup = session->arguments->setup;
  struct hardware_filter filter = {0};
  int r;

  setup.cpu = &session->row.cpu;
  r = lbr_setup_filter(&setup, session->arguments->rings, &filter.value);
  if (r >= 0)
    r = in_use_check(session);
  if (r < 0)
    return r;
  r = hardware_live_arm(&session->live, &filter);
  return r < 0 ? live_session_complain(session) : 0;
}

/* Undoes the changes of an earlier --arm, which has stored the old values. */
static int state_undo(struct live_session *session)
{
  int r = hardware_live_adopt(&session->live, session->state.changes, session->state.count);

  if (r < 0) {
    message("the state of an earlier --arm is of another CPU: remove it from %s", session->arguments->state_directory);
    return r;
  }
  r = hardware_live_end(&session->live);
  if (r < 0)
    return live_session_complain(session);
  live_state_remove(session->arguments->state_directory, session->arguments->number);
  session->state.exists = false;
  return 0;
}

int live_session_arm(struct live_session *session, unsigned *ret_counters)
{
  const struct live_arguments *arguments = session->arguments;
  int r = in_use_check(session);

  if (r >= 0 && session->state.exists)
    r = state_undo(session);
  if (r >= 0)
    r = live_session_switch_on(session);
  if (r >= 0)
    r = live_state_write(arguments->state_directory, arguments->number, &session->live.undo);
  if (r < 0)
    return r; /* live_session_close undoes it */
  hardware_undo_forget(&session->live.undo);
  *ret_counters = hardware_live_counters(&session->live);
  return 0;
}

int live_session_disarm(struct live_session *session)
{
  bool is_forced = session->arguments->is_forced;
  int is_on = hardware_live_is_on(&session->live), r = 0;

  if (is_on < 0)
    return live_session_complain(session);
  if (!session->state.exists && !is_forced) {
    message("processor %u was not armed by 'lbr live --arm'%s", session->arguments->number,
            is_on ? "; --force switches it off, even if perf or a debugger uses it" : ", and does not record");
    return -ENOENT;
  }
  if (is_on && session->state.exists && !session->live.is_ours && !is_forced) {
    message(
      "the registers have changed since 'lbr live --arm': perf or a debugger uses them; --force restores them nevertheless");
    return -EBUSY;
  }
  if (session->state.exists)
    return state_undo(session);
  r = hardware_live_disarm(&session->live);
  return r < 0 ? live_session_complain(session) : 0;
}
