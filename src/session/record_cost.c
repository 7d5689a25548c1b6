/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates how much slower a program is while it is recorded, without running it natively. The CPU time of its threads
 * and their waiting time for lbr are known. The costs of logging, of translating and of starting are subtracted. The
 * rest is the CPU time of a native run. doc/process.md tells how accurate this is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "session/record.h"

/* Seconds for a log entry, a translated step, and a process or a program that it executes: fitted over the programs of
 * bench/process and three that start many processes, on one processor (AMD Zen 4). */
#define ENTRY_SECONDS 1.0e-9
#define STEP_SECONDS 0.6e-6
#define PROCESS_SECONDS 0.3e-3

#define LEAST_SECONDS 0.2 /* of CPU time: less is not worth an estimate */
#define SLOWEST 10.0      /* beyond this, too little remains for an estimate, or too much was spent waiting */
#define PROCESSES 256u    /* the CPU time of further ones is not read */

static double seconds_of(const struct timeval *time)
{
  return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* The CPU time of a process and of the children that it has waited for; 0 if it is gone. proc(5): fields 14 to 17 of
 * its stat. */
static double process_seconds(uint32_t process)
{
  unsigned long long own, system, children, children_system;
  char path[64], text[512];
  const char *name_end;
  ssize_t size;
  int fd;

  snprintf(path, sizeof(path), "/proc/%u/stat", process);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  size = read(fd, text, sizeof(text) - 1);
  close(fd);
  text[size > 0 ? size : 0] = '\0';
  name_end = strrchr(text, ')'); /* the name may contain any character */
  if (!name_end || sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &own,
                          &system, &children, &children_system) != 4)
    return 0;
  return (double)(own + system + children + children_system) / (double)sysconf(_SC_CLK_TCK);
}

/* CPU time of all processes that are or were recorded; negative if unknown. */
static double program_seconds(const struct record_session *session)
{
  uint32_t processes[PROCESSES];
  size_t count = process_drain_processes(session->drain, processes, PROCESSES);
  struct rusage usage;
  double seconds;

  if (count == PROCESSES || getrusage(RUSAGE_CHILDREN, &usage) != 0)
    return -1;
  seconds = seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
  for (size_t i = 0; i < count; i++)
    seconds += process_seconds(processes[i]);
  return seconds;
}

void record_slowdown(const struct record_session *session, char text[RECORD_SLOWDOWN])
{
  double seconds = program_seconds(session), native;
  struct process_costs costs;

  *text = '\0';
  if (seconds < LEAST_SECONDS)
    return;
  process_drain_costs(session->drain, &costs);
  native =
    seconds - ENTRY_SECONDS * (double)costs.entries - STEP_SECONDS * costs.steps - PROCESS_SECONDS * costs.processes;
  if (native * SLOWEST < seconds + costs.waited)
    snprintf(text, RECORD_SLOWDOWN, ", more than %.0f times slower", SLOWEST);
  else
    snprintf(text, RECORD_SLOWDOWN, ", about %.1f times slower", (seconds + costs.waited) / native);
}
