/* SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts on the kernel's facilities: perf_event_open with counters, branch stack, BTS and Intel PT, and stepping by
 * branches with ptrace. The reasons follow the errors of perf_event_open(2) and ptrace(2).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "hardware/usable.h"
#include "lastbranch/error.h"

#define ADVICE_PARANOID "as root: sysctl kernel.perf_event_paranoid=2, or run with CAP_PERFMON"
#define ADVICE_PARANOID_BTS "as root: sysctl kernel.perf_event_paranoid=1, or run with CAP_PERFMON"
#define ADVICE_CONTAINER "run outside the container, or give it CAP_PERFMON and a seccomp profile with perf_event_open"
#define ADVICE_PMU_VM "ask for a virtual PMU (QEMU: -cpu host,pmu=on; Xen: vpmu=on), or run on the bare machine"

/* The kernel or a filter refuses the call itself. Returns false if `error` has another meaning. */
static bool perf_is_refused(struct hardware_host *host, enum hardware_facility facility, int error)
{
  if (error == -ENOSYS)
    finding_set(host, facility, HARDWARE_NO, host->has_seccomp ? ADVICE_CONTAINER : "",
                host->has_seccomp ? "a seccomp filter hides perf_event_open" : "this kernel has no perf_event_open");
  else if (error != -EACCES && error != -EPERM)
    return false;
  else if (host->perf_event_paranoid > 2)
    finding_set(host, facility, HARDWARE_NO, ADVICE_PARANOID, "refused: kernel.perf_event_paranoid is %d",
                host->perf_event_paranoid);
  else if (host->has_seccomp)
    finding_set(host, facility, HARDWARE_NO, ADVICE_CONTAINER, "refused by a seccomp filter, probably of a container");
  else if (facility == HARDWARE_PERF_BTS && host->perf_event_paranoid > 1) /* it shows addresses of the kernel */
    finding_set(host, facility, HARDWARE_NO, ADVICE_PARANOID_BTS, "refused: kernel.perf_event_paranoid is %d",
                host->perf_event_paranoid);
  else if (host->is_locked_down)
    finding_set(host, facility, HARDWARE_NO, "boot without lockdown, or without secure boot",
                "refused: the kernel is locked down");
  else
    finding_set(host, facility, HARDWARE_NO, "run as root, or with CAP_PERFMON", "refused: %s", lb_strerror(error));
  return true;
}

static void perf_counter(struct hardware_host *host, int error)
{
  if (error >= 0)
    finding_set(host, HARDWARE_PERF, HARDWARE_YES, "", "a hardware counter can be opened");
  else if (perf_is_refused(host, HARDWARE_PERF, error))
    return;
  else if (error == -ENOENT || error == -ENODEV || error == -EOPNOTSUPP)
    finding_set(host, HARDWARE_PERF, HARDWARE_NO, host->is_virtual ? ADVICE_PMU_VM : "",
                host->is_virtual ? "the kernel found no counters: the hypervisor provides none"
                                 : "the kernel has no driver for the counters of this CPU");
  else
    finding_set(host, HARDWARE_PERF, HARDWARE_NO, "", "%s", lb_strerror(error));
}

static void perf_branch(const struct hardware_system *system, struct hardware_host *host)
{
  enum hardware_verdict verdict = HARDWARE_YES;
  int r;

  r = system->perf_open(system->data, HARDWARE_EVENT_BRANCH_STACK, 0);
  if (r < 0 && host->cpuid[HARDWARE_CPUID_BRS]) {
    r = system->perf_open(system->data, HARDWARE_EVENT_BRANCH_SAMPLE, 0);
    verdict = HARDWARE_PARTLY;
  }
  if (r >= 0 && verdict == HARDWARE_PARTLY)
    finding_set(host, HARDWARE_PERF_BRANCH, verdict, "", "branch sampling: event 0xC4 with a fixed period only");
  else if (r >= 0 && host->kernel_branches > 0)
    finding_set(host, HARDWARE_PERF_BRANCH, verdict, "", "samples can carry %d branches", host->kernel_branches);
  else if (r >= 0)
    finding_set(host, HARDWARE_PERF_BRANCH, verdict, "", "samples can carry the branch stack");
  else if (perf_is_refused(host, HARDWARE_PERF_BRANCH, r))
    return;
  else if (r == -EOPNOTSUPP || r == -EINVAL)
    finding_set(host, HARDWARE_PERF_BRANCH, HARDWARE_NO, "",
                "counters work, but the kernel offers no branch stack on this CPU%s",
                host->is_virtual ? " in this virtual machine" : "");
  else
    finding_set(host, HARDWARE_PERF_BRANCH, HARDWARE_NO, "", "%s", lb_strerror(r));
}

static void perf_bts(const struct hardware_system *system, struct hardware_host *host)
{
  char buffer[16];
  int r;

  r = system->file_read(system->data, "/sys/bus/event_source/devices/intel_bts/type", buffer, sizeof(buffer));
  if (r < 0) {
    finding_set(host, HARDWARE_PERF_BTS, HARDWARE_NO, "", "the kernel has no intel_bts%s",
                host->findings[HARDWARE_BTS].verdict == HARDWARE_NO ? ", since the CPU shows no BTS" : "");
    return;
  }
  r = system->perf_open(system->data, HARDWARE_EVENT_BTS, (uint32_t)strtoul(buffer, NULL, 10));
  if (r >= 0)
    finding_set(host, HARDWARE_PERF_BTS, HARDWARE_YES, "", "intel_bts can be opened");
  else if (r == -EBUSY)
    finding_set(host, HARDWARE_PERF_BTS, HARDWARE_PARTLY, "try again when Intel PT or other LBR use has ended",
                "intel_bts is busy: PT, LBR and BTS exclude each other");
  else if (!perf_is_refused(host, HARDWARE_PERF_BTS, r))
    finding_set(host, HARDWARE_PERF_BTS, HARDWARE_NO, "", "intel_bts: %s", lb_strerror(r));
}

static void perf_pt(const struct hardware_system *system, struct hardware_host *host)
{
  char buffer[16];
  int r;

  r = system->file_read(system->data, "/sys/bus/event_source/devices/intel_pt/type", buffer, sizeof(buffer));
  if (r < 0) {
    finding_set(host, HARDWARE_PERF_PT, HARDWARE_NO,
                host->vendor == LB_VENDOR_INTEL && host->is_virtual ? "run on the bare machine" : "",
                "the kernel has no intel_pt%s",
                host->vendor == LB_VENDOR_INTEL ? host->is_virtual ? ": the hypervisor does not provide it" : ""
                                                : ", since the CPU is not Intel's");
    return;
  }
  r = system->perf_open(system->data, HARDWARE_EVENT_PT, (uint32_t)strtoul(buffer, NULL, 10));
  if (r >= 0)
    finding_set(host, HARDWARE_PERF_PT, HARDWARE_YES, "", "intel_pt can be opened");
  else if (r == -EBUSY)
    finding_set(host, HARDWARE_PERF_PT, HARDWARE_PARTLY, "try again when BTS or other LBR use has ended",
                "intel_pt is busy: PT, LBR and BTS exclude each other");
  else if (!perf_is_refused(host, HARDWARE_PERF_PT, r))
    finding_set(host, HARDWARE_PERF_PT, HARDWARE_NO, "", "intel_pt: %s", lb_strerror(r));
}

void usable_perf(const struct hardware_system *system, struct hardware_host *host)
{
  perf_counter(host, system->perf_open(system->data, HARDWARE_EVENT_CYCLES, 0));
  if (host->findings[HARDWARE_PERF].verdict == HARDWARE_NO)
    finding_set(host, HARDWARE_PERF_BRANCH, HARDWARE_NO, host->findings[HARDWARE_PERF].advice,
                "needs a hardware counter: %.160s", host->findings[HARDWARE_PERF].reason);
  else
    perf_branch(system, host);
  perf_bts(system, host);
  perf_pt(system, host);
}

/* ---- stepping by branches ---- */

static void block_step_failed(struct hardware_host *host, int error)
{
  if (error == -EPERM || error == -EACCES)
    finding_set(host, HARDWARE_BLOCK_STEP, HARDWARE_NO,
                host->has_seccomp ? "run outside the container, or give it CAP_SYS_PTRACE"
                                  : "do not run under a debugger",
                "ptrace is refused%s", host->has_seccomp ? ", probably by a seccomp filter" : "");
  else if (error == -EIO || error == -EINVAL || error == -ENOSYS)
    finding_set(host, HARDWARE_BLOCK_STEP, HARDWARE_NO, "", "the kernel does not support PTRACE_SINGLEBLOCK here");
  else
    finding_set(host, HARDWARE_BLOCK_STEP, HARDWARE_PERHAPS, "", "the trial failed: %s", lb_strerror(error));
}

void usable_block_step(const struct hardware_system *system, struct hardware_host *host)
{
  struct hardware_steps steps;
  int r;

  r = system->block_step(system->data, &steps);
  if (r < 0) {
    block_step_failed(host, r);
    return;
  }
  host->steps = steps;
  if (steps.stops == steps.branches)
    finding_set(host, HARDWARE_BLOCK_STEP, HARDWARE_YES, "",
                "steps from branch to branch: %u stops in a loop with %u taken", steps.stops, steps.branches);
  else if (steps.stops == steps.instructions)
    finding_set(host, HARDWARE_BLOCK_STEP, HARDWARE_NO, host->is_virtual ? "run on the bare machine" : "",
                "accepted, but stops after each of %u instructions: DEBUGCTL.BTF has no effect%s", steps.instructions,
                host->is_virtual ? " in this virtual machine" : "");
  else
    finding_set(host, HARDWARE_BLOCK_STEP, HARDWARE_PERHAPS, "",
                "%u stops in a loop of %u instructions and %u taken branches", steps.stops, steps.instructions,
                steps.branches);
}
