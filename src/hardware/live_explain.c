/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains why the registers of a processor cannot be accessed, and advises the user. The errors are those of Linux'
 * arch/x86/kernel/msr.c: open gives EPERM without CAP_SYS_RAWIO and ENXIO for a processor that is offline; a read gives
 * EIO for #GP; a write EPERM under lockdown or with allow_writes=off.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/hardware.h"
#include "hardware/usable.h"
#include "lastbranch/error.h"

static struct hardware_finding finding_of(const char *advice, const char *format, ...)
  __attribute__((format(printf, 2, 3)));

static struct hardware_finding finding_of(const char *advice, const char *format, ...)
{
  struct hardware_finding finding = {.verdict = HARDWARE_NO, .advice = advice};
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(finding.reason, sizeof(finding.reason), format, arguments);
  va_end(arguments);
  return finding;
}

/* ---- processors ---- */

/* Whether a number is in a list such as "0-3,5". False if the file cannot be read. */
static bool list_has(const struct hardware_system *system, const char *path, unsigned number, char *list, size_t size)
{
  const char *p = list;

  if (system->file_read(system->data, path, list, size) < 0) {
    *list = '\0';
    return false;
  }
  list[strcspn(list, "\n")] = '\0';
  while (*p) {
    char *end;
    unsigned long first = strtoul(p, &end, 10), last = first;

    if (end == p)
      return false;
    if (*end == '-')
      last = strtoul(end + 1, &end, 10);
    if (number >= first && number <= last)
      return true;
    p = *end == ',' ? end + 1 : end + strlen(end);
  }
  return false;
}

/* ---- opening ---- */

static struct hardware_finding device_missing(const struct hardware_system *system, unsigned number)
{
  char list[64], text[16];

  if (!list_has(system, "/sys/devices/system/cpu/present", number, list, sizeof(list)) && *list)
    return finding_of("choose one of them with --cpu-number", "there is no processor %u: this machine has %s", number,
                      list);
  if (!list_has(system, "/sys/devices/system/cpu/online", number, list, sizeof(list)) && *list)
    return finding_of("as root: echo 1 > /sys/devices/system/cpu/cpuN/online, or choose another processor",
                      "processor %u is offline (online: %s)", number, list);
  if (system->file_read(system->data, "/sys/module/msr/parameters/allow_writes", text, sizeof(text)) >= 0)
    return finding_of("give the device to the container, or run outside it",
                      "the msr module is loaded, but /dev/cpu/%u/msr does not exist: probably a container", number);
  return finding_of("as root: modprobe msr", "/dev/cpu/%u/msr does not exist: the msr module is not loaded", number);
}

struct hardware_finding hardware_device_explain(const struct hardware_system *system, unsigned number, int error)
{
  switch (error) {
  case -ENOENT:
    return device_missing(system, number);
  case -ENXIO:
    return finding_of("as root: echo 1 > /sys/devices/system/cpu/cpuN/online, or choose another processor",
                      "processor %u is offline", number);
  case -EACCES:
    return finding_of("run as root", "only root may open /dev/cpu/%u/msr", number);
  case -EPERM:
    return finding_of("run as root outside a container, or with CAP_SYS_RAWIO",
                      "opening /dev/cpu/%u/msr needs CAP_SYS_RAWIO", number);
  case -EIO:
    return finding_of("", "processor %u has no model-specific registers", number);
  default:
    return finding_of("", "/dev/cpu/%u/msr: %s", number, lb_strerror(error));
  }
}

/* ---- reading and writing ---- */

static struct hardware_finding read_explain(const struct hardware_host *host, const struct hardware_live *live)
{
  const struct hardware_trouble *trouble = &live->trouble;
  const char *title = live->row->cpu.title;

  if (trouble->error == -ENXIO)
    return finding_of("choose another processor", "the processor went offline");
  if (trouble->error == -ERANGE)
    return finding_of("", "IA32_LBR_DEPTH (0x%x) holds a depth that this CPU does not have", trouble->msr);
  if (trouble->error != -EIO)
    return finding_of("", "reading register 0x%x: %s", trouble->msr, lb_strerror(trouble->error));
  if (host->is_virtual)
    return finding_of("run on the bare machine, or ask for a virtual PMU with LBR (QEMU: -cpu host,pmu=on,lbr-fmt=N)",
                      "reading register 0x%x faults: this virtual machine (%s) has no LBR", trouble->msr,
                      host->hypervisor_name);
  return finding_of("choose another CPU with --cpu",
                    "reading register 0x%x faults: this is not the register layout of %s", trouble->msr, title);
}

static struct hardware_finding write_explain(const struct hardware_system *system, const struct hardware_host *host,
                                             const struct hardware_trouble *trouble)
{
  const char *advice = "", *forbidden = usable_msr_forbidden(system, &advice);

  switch (trouble->error) {
  case -EPERM:
    if (forbidden)
      return finding_of(advice, "register 0x%x may not be written: %s", trouble->msr, forbidden);
    return finding_of("look into the kernel's log; --no-stop reads without writing",
                      "register 0x%x may not be written: the kernel refuses it", trouble->msr);
  case -EACCES:
    return finding_of("run as root; --no-stop reads without writing",
                      "register 0x%x may not be written: the device could be opened for reading only", trouble->msr);
  case -EOPNOTSUPP:
    return finding_of(host->is_virtual ? "run on the bare machine" : "",
                      "recording does not stay on: the bit in register 0x%x is cleared again%s", trouble->msr,
                      host->is_virtual ? ", the hypervisor does not record branches" : "");
  case -EIO:
    return finding_of(host->is_virtual ? "run on the bare machine" : "choose another CPU with --cpu",
                      "writing register 0x%x faults%s", trouble->msr,
                      host->is_virtual ? ": the hypervisor does not allow the write" : "");
  default:
    return finding_of("", "writing register 0x%x: %s", trouble->msr, lb_strerror(trouble->error));
  }
}

struct hardware_finding hardware_live_explain(const struct hardware_system *system, const struct hardware_host *host,
                                              const struct hardware_live *live)
{
  if (live->trouble.error == -EBUSY)
    return finding_of("end that program, or read without stopping it (--no-stop)",
                      "recording is on, and not by 'lbr live --arm': perf (record -b, --call-graph lbr) or a debugger "
                      "uses it");
  return live->trouble.is_write ? write_explain(system, host, &live->trouble) : read_explain(host, live);
}

/* ---- the CPU ---- */

struct hardware_finding hardware_row_explain(const struct hardware_host *host, int error)
{
  if (error == LB_E_NO_CPU)
    return finding_of("choose a similar CPU of the catalogue with --cpu NAME ('lbr cpu --list' shows them)",
                      "this CPU (%s %02X_%02X) is not in the catalogue, and CPUID describes no branch records",
                      host->vendor_text, host->family, host->model);
  if (error == LB_E_NO_UNIT)
    return finding_of("", "%s has no branch records", host->cpu->title);
  return finding_of(host->is_virtual ? "run on the bare machine" : "look for a firmware setting",
                    "%s has %u entries, but CPUID does not show them%s", host->cpu ? host->cpu->title : "this CPU",
                    host->cpu ? lb_cpu_depth(host->cpu) : 0, host->is_virtual ? ": the hypervisor hides them" : "");
}

int hardware_event_is_open(const struct hardware_system *system)
{
  char buffer[16];

  if (system->file_read(system->data, "/sys/bus/event_source/devices/intel_bts/type", buffer, sizeof(buffer)) < 0)
    return 0;
  return system->perf_open(system->data, HARDWARE_EVENT_BTS, (uint32_t)strtoul(buffer, NULL, 10)) == -EBUSY;
}
