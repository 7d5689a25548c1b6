/* SPDX-License-Identifier: Apache-2.0
 *
 * How much slower a program is while it is recorded, without a run natively: its threads compute for so long, and wait
 * for us for so long; of that, so much is for what they log and for translating their code. What is left is what they
 * would have computed natively. doc/process.md says how near that comes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "session/record.h"

/* Seconds of an entry in a log and of a step that is translated: fitted over the programs of bench/process, on one
 * processor (AMD Zen 4). */
#define ENTRY_SECONDS 0.9e-9
#define STEP_SECONDS 1.1e-6

#define LEAST_SECONDS 0.2 /* of CPU time, before it is worth an estimate */
#define SLOWEST 10.0      /* what is left of the CPU time is too little for a number beyond that */
#define PROCESSES 256u    /* more than that are not asked for their CPU time */

static double seconds_of(const struct timeval *time)
{
  return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* Of a process and of those that it has waited for; 0 if it is gone. proc(5): fields 14 to 17 of its stat. */
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
  name_end = strrchr(text, ')'); /* the name may hold anything */
  if (!name_end || sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &own,
                          &system, &children, &children_system) != 4)
    return 0;
  return (double)(own + system + children + children_system) / (double)sysconf(_SC_CLK_TCK);
}

/* CPU time of all that is recorded or was; negative: nobody knows. */
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
  native = seconds - ENTRY_SECONDS * (double)costs.entries - STEP_SECONDS * costs.steps;
  if (native * SLOWEST < seconds)
    snprintf(text, RECORD_SLOWDOWN, ", more than %.0f times slower", SLOWEST);
  else
    snprintf(text, RECORD_SLOWDOWN, ", about %.1f times slower", (seconds + costs.waited) / native);
}
