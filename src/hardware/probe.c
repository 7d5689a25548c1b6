/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe: identifies the processor (identify.c), reads the kernel settings that explain a refusal, and checks each
 * facility (usable.c, usable_perf.c). It changes nothing on the host.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/hardware.h"
#include "hardware/identify.h"
#include "hardware/usable.h"

static const struct {
  const char *word;
  const char *title;
} facilities[] = {
#define HARDWARE_FACILITY(name, word, title) {word, title},
#include "hardware/facility.def"
#undef HARDWARE_FACILITY
};

const char *hardware_facility_word(unsigned facility)
{
  return facility < HARDWARE_FACILITIES ? facilities[facility].word : "?";
}

const char *hardware_facility_title(unsigned facility)
{
  return facility < HARDWARE_FACILITIES ? facilities[facility].title : "?";
}

const char *hardware_verdict_word(unsigned verdict)
{
  static const char *const words[] = {"yes", "partly", "perhaps", "no"};

  return verdict < sizeof(words) / sizeof(words[0]) ? words[verdict] : "?";
}

void finding_set(struct hardware_host *host, enum hardware_facility facility, enum hardware_verdict verdict,
                 const char *advice, const char *format, ...)
{
  struct hardware_finding *finding = &host->findings[facility];
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(finding->reason, sizeof(finding->reason), format, arguments);
  va_end(arguments);
  finding->verdict = (uint8_t)verdict;
  finding->advice = advice;
}

/* Reads a file that holds one number. Returns `missing` if it cannot be read or holds none. */
static int file_number(const struct hardware_system *system, const char *path, int missing)
{
  char buffer[32];
  char *end;
  long value;

  if (system->file_read(system->data, path, buffer, sizeof(buffer)) < 0)
    return missing;
  value = strtol(buffer, &end, 10);
  return end == buffer || value < INT_MIN || value > INT_MAX ? missing : (int)value;
}

/* /proc/self/status has a line "Seccomp:\t2" when a filter is at work. */
static bool seccomp_is_filtering(const struct hardware_system *system)
{
  char buffer[4096];
  const char *line;

  if (system->file_read(system->data, "/proc/self/status", buffer, sizeof(buffer)) < 0)
    return false;
  line = strstr(buffer, "\nSeccomp:");
  return line && strtol(line + strlen("\nSeccomp:"), NULL, 10) == 2;
}

/* "none [integrity] confidentiality": the one in brackets is in force. */
static bool kernel_is_locked_down(const struct hardware_system *system)
{
  char buffer[64];

  return system->file_read(system->data, "/sys/kernel/security/lockdown", buffer, sizeof(buffer)) > 0 &&
         (strstr(buffer, "[integrity]") || strstr(buffer, "[confidentiality]"));
}

void hardware_probe(const struct hardware_system *system, struct hardware_host *ret_host)
{
  struct hardware_host host = {.vendor = -1};

  host_identify(system, &host);
  host.perf_event_paranoid = file_number(system, "/proc/sys/kernel/perf_event_paranoid", INT_MIN);
  host.kernel_branches = file_number(system, "/sys/bus/event_source/devices/cpu/caps/branches", 0);
  host.has_seccomp = seccomp_is_filtering(system);
  host.is_locked_down = kernel_is_locked_down(system);

  usable_msr_device(system, &host);
  usable_lbr(&host);
  usable_live(system, &host);
  usable_bts(system, &host);
  usable_perf(system, &host);
  usable_block_step(system, &host);
  usable_software(&host);
  *ret_host = host;
}

void hardware_identify(const struct hardware_system *system, struct hardware_host *ret_host)
{
  struct hardware_host host = {.vendor = -1};

  host_identify(system, &host);
  *ret_host = host;
}

const struct lb_cpu *hardware_cpu(const struct hardware_system *system)
{
  struct hardware_host host;

  hardware_identify(system, &host);
  return host.cpu;
}
