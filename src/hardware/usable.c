/* SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts on the processor's features and on the msr device: whether each exists and can be used, why not, and what to
 * do. usable_perf.c has perf and ptrace.
 */
#include "hardware/usable.h"

#include <errno.h>
#include <string.h>

#include "lastbranch/error.h"

#define MSR_IA32_MISC_ENABLE 0x1A0
#define MSR_IA32_DEBUGCTL 0x1D9
#define MSR_IA32_PERF_CAPABILITIES 0x345

#define ADVICE_LBR_VM "run on the bare machine, or ask for a virtual PMU with LBR (QEMU: -cpu host,pmu=on,lbr-fmt=N)"
#define ADVICE_BARE "run on the bare machine"

/* ---- the msr device ---- */

static void msr_device_missing(const struct hardware_system *system, struct hardware_host *host)
{
  char buffer[16];

  if (system->file_read(system->data, "/sys/module/msr/parameters/allow_writes", buffer, sizeof(buffer)) < 0)
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "as root: modprobe msr",
                "/dev/cpu/0/msr does not exist: the msr module is not loaded, or this kernel has none");
  else
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "give the device to the container, or run outside it",
                "the msr module is loaded, but /dev/cpu/0/msr does not exist: probably a container");
}

static void msr_device_refused(const struct hardware_system *system, struct hardware_host *host, int error)
{
  switch (error) {
  case -ENOENT:
    msr_device_missing(system, host);
    break;
  case -EACCES:
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "run as root", "only root may open /dev/cpu/0/msr");
    break;
  case -EPERM:
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "run with CAP_SYS_RAWIO, outside a container",
                "opening /dev/cpu/0/msr needs CAP_SYS_RAWIO");
    break;
  case -EIO:
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_NO, host->is_virtual ? ADVICE_BARE : "",
                "the device opens, but reading DEBUGCTL (0x1D9) faults%s",
                host->is_virtual ? ": the hypervisor does not have the register" : "");
    break;
  default:
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "", "/dev/cpu/0/msr: %s", lb_strerror(error));
  }
}

/* Lockdown refuses every write through the device, and so does allow_writes=off; reads still work. */
const char *usable_msr_forbidden(const struct hardware_system *system, const char **ret_advice)
{
  char buffer[64];

  if (system->file_read(system->data, "/sys/kernel/security/lockdown", buffer, sizeof(buffer)) >= 0 &&
      (strstr(buffer, "[integrity]") || strstr(buffer, "[confidentiality]"))) {
    *ret_advice = "turn secure boot off";
    return "the kernel is locked down (secure boot)";
  }
  if (system->file_read(system->data, "/sys/module/msr/parameters/allow_writes", buffer, sizeof(buffer)) >= 0 &&
      strncmp(buffer, "off", 3) == 0) {
    *ret_advice = "as root: echo on > /sys/module/msr/parameters/allow_writes";
    return "the msr module has allow_writes=off";
  }
  return NULL;
}

void usable_msr_device(const struct hardware_system *system, struct hardware_host *host)
{
  const char *forbidden, *advice;
  uint64_t value;
  int r;

  r = system->msr_read(system->data, MSR_IA32_DEBUGCTL, &value);
  if (r < 0) {
    msr_device_refused(system, host, r);
    return;
  }
  forbidden = usable_msr_forbidden(system, &advice);
  if (forbidden)
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_PARTLY, advice, "registers can be read, not written: %s",
                forbidden);
  else
    finding_set(host, HARDWARE_MSR_DEVICE, HARDWARE_YES, "", "registers can be read; DEBUGCTL is 0x%llx",
                (unsigned long long)value);
  if (host->cpuid[HARDWARE_CPUID_PDCM] &&
      system->msr_read(system->data, MSR_IA32_PERF_CAPABILITIES, &host->perf_capabilities) >= 0)
    host->has_perf_capabilities = true;
}

/* ---- the LBR stack, according to CPUID and the catalogue ---- */

static unsigned arch_depth(uint32_t depths)
{
  unsigned depth = 0;

  for (unsigned i = 0; i < 8; i++)
    if (depths >> i & 1)
      depth = 8 * (i + 1);
  return depth;
}

/* Uses what CPUID itself reports. Returns false if it reports nothing. */
static bool lbr_announced(struct hardware_host *host)
{
  if (host->cpuid[HARDWARE_CPUID_ARCH_LBR])
    finding_set(host, HARDWARE_LBR, HARDWARE_YES, "", "architectural LBR, up to %u entries (CPUID.1CH)",
                arch_depth(host->cpuid[HARDWARE_CPUID_LBR_DEPTHS]));
  else if (host->cpuid[HARDWARE_CPUID_AMD_LBR_V2])
    finding_set(host, HARDWARE_LBR, HARDWARE_YES, "", "AMD LBR version 2, %u entries (CPUID.80000022H)",
                (unsigned)host->cpuid[HARDWARE_CPUID_AMD_LBR_DEPTH]);
  else if (host->cpuid[HARDWARE_CPUID_BRS])
    finding_set(host, HARDWARE_LBR, HARDWARE_PARTLY, "",
                "AMD branch sampling: 16 entries, filled once for each counter interrupt (CPUID.80000008H)");
  else
    return false;
  return true;
}

/* A model-specific stack under a hypervisor: no CPUID bit reports it, at most LBR_FMT does. */
static void lbr_virtual(struct hardware_host *host)
{
  unsigned depth = lb_cpu_depth(host->cpu);
  unsigned lbr_fmt = host->perf_capabilities & 0x3F;

  if (lb_cpu_has(host->cpu, LB_FEATURE_PDCM) && !host->cpuid[HARDWARE_CPUID_PDCM])
    finding_set(host, HARDWARE_LBR, HARDWARE_NO, ADVICE_LBR_VM,
                "%s has %u entries, but the hypervisor hides PERF_CAPABILITIES", host->cpu->title, depth);
  else if (host->has_perf_capabilities && (int)lbr_fmt == host->cpu->lbr_fmt)
    finding_set(host, HARDWARE_LBR, HARDWARE_YES, "", "%u entries; the hypervisor reports LBR_FMT %u", depth, lbr_fmt);
  else if (host->has_perf_capabilities)
    finding_set(host, HARDWARE_LBR, HARDWARE_NO, ADVICE_LBR_VM,
                "%s has %u entries, but the hypervisor reports LBR_FMT %u where the CPU has %d", host->cpu->title,
                depth, lbr_fmt, host->cpu->lbr_fmt);
  else
    finding_set(host, HARDWARE_LBR, HARDWARE_PERHAPS, ADVICE_LBR_VM,
                "%s has %u %s; CPUID has no bit that says whether the hypervisor provides %s", host->cpu->title, depth,
                depth == 1 ? "record" : "entries", depth == 1 ? "it" : "them");
}

/* No known hypervisor passes AMD's stacks through. */
static const char *lbr_advice(const struct hardware_host *host)
{
  if (!host->is_virtual)
    return "look for a firmware setting";
  return host->vendor == LB_VENDOR_INTEL ? ADVICE_LBR_VM : ADVICE_BARE;
}

void usable_lbr(struct hardware_host *host)
{
  const struct lb_cpu *cpu = host->cpu;

  if (lbr_announced(host))
    return;
  if (!cpu)
    finding_set(host, HARDWARE_LBR, HARDWARE_PERHAPS, "",
                "the CPU is not in the catalogue, and CPUID shows neither architectural LBR nor AMD's extensions");
  else if (!cpu->lbr)
    finding_set(host, HARDWARE_LBR, HARDWARE_NO, "", "%s has no branch records", cpu->title);
  else if (lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR) || lb_cpu_has(cpu, LB_FEATURE_LBR_V2) ||
           lb_cpu_has(cpu, LB_FEATURE_BRS))
    finding_set(host, HARDWARE_LBR, HARDWARE_NO, lbr_advice(host), "%s has %u entries, but CPUID does not show them%s",
                cpu->title, lb_cpu_depth(cpu), host->is_virtual ? ": the hypervisor hides them" : "");
  else if (host->is_virtual)
    lbr_virtual(host);
  else
    finding_set(host, HARDWARE_LBR, HARDWARE_YES, "", "%u %s; model-specific, so CPUID has no bit for it",
                lb_cpu_depth(cpu), lb_cpu_depth(cpu) == 1 ? "record" : "entries");
}

/* ---- the LBR stack through the msr device ---- */

/* The first register of the stack tells whether the others exist. */
void usable_live(const struct hardware_system *system, struct hardware_host *host)
{
  const struct hardware_finding *device = &host->findings[HARDWARE_MSR_DEVICE];
  struct hardware_row row;
  uint64_t value;
  int r = hardware_row_find(host, &row);

  if (r < 0) {
    host->findings[HARDWARE_LIVE] = hardware_row_explain(host, r);
    return;
  }
  if (device->verdict == HARDWARE_NO) {
    finding_set(host, HARDWARE_LIVE, HARDWARE_NO, "", "needs the msr device");
    return;
  }
  r = system->msr_read(system->data, row.lbr.from, &value);
  if (r < 0)
    finding_set(host, HARDWARE_LIVE, HARDWARE_NO, host->is_virtual ? ADVICE_LBR_VM : "",
                "reading register 0x%X faults%s", row.lbr.from,
                host->is_virtual ? ": the hypervisor does not have it" : "");
  else if (device->verdict == HARDWARE_PARTLY)
    finding_set(host, HARDWARE_LIVE, HARDWARE_PARTLY, device->advice,
                "'lbr live' can read the stack, but neither stop recording nor switch it on");
  else if (host->findings[HARDWARE_LBR].verdict == HARDWARE_NO)
    finding_set(host, HARDWARE_LIVE, HARDWARE_PERHAPS, "try it: lbr live --arm",
                "the registers can be read, but it is unknown whether they record");
  else
    finding_set(host, HARDWARE_LIVE, HARDWARE_YES, "", "'lbr live' can read %u %s, and switch recording on",
                lb_cpu_depth(&row.cpu), lb_cpu_depth(&row.cpu) == 1 ? "record" : "entries");
}

/* ---- without any of it ---- */

void usable_software(struct hardware_host *host)
{
#if defined(__x86_64__)
  finding_set(host, HARDWARE_SOFTWARE, HARDWARE_YES, "",
              "'lbr run' and 'lbr record' need no hardware and no privilege");
#else
  finding_set(host, HARDWARE_SOFTWARE, HARDWARE_NO, "", "'lbr run' and 'lbr record' are for x86-64");
#endif
}

/* ---- BTS ---- */

void usable_bts(const struct hardware_system *system, struct hardware_host *host)
{
  uint64_t misc_enable;

  if (host->vendor == LB_VENDOR_AMD || host->vendor == LB_VENDOR_HYGON)
    finding_set(host, HARDWARE_BTS, HARDWARE_NO, "", "AMD processors have no BTS");
  else if (!host->cpuid[HARDWARE_CPUID_DS])
    finding_set(host, HARDWARE_BTS, HARDWARE_NO, host->is_virtual ? ADVICE_BARE : "",
                "CPUID.1:EDX[21] is 0: no debug store%s", host->is_virtual ? "; the hypervisor may hide it" : "");
  else if (system->msr_read(system->data, MSR_IA32_MISC_ENABLE, &misc_enable) < 0)
    finding_set(host, HARDWARE_BTS, HARDWARE_YES, "",
                "CPUID shows the debug store (MISC_ENABLE[11] could not be read)");
  else if (misc_enable >> 11 & 1)
    finding_set(host, HARDWARE_BTS, HARDWARE_NO, host->is_virtual ? ADVICE_BARE : "",
                "CPUID shows the debug store, but MISC_ENABLE[11] says that BTS is unavailable");
  else
    finding_set(host, HARDWARE_BTS, HARDWARE_YES, "", "CPUID shows the debug store, and MISC_ENABLE[11] is 0");
}
