/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out what this host is and which of its real branch-recording facilities can be used, from CPUID, the kernel's
 * files, perf_event_open and ptrace. This switches nothing on and writes no register. live.h uses the facilities: it
 * reads the LBR stack through the msr device, and switches it on. All access to the system goes through struct
 * hardware_system, so that a test can simulate any machine.
 */
#ifndef HARDWARE_HARDWARE_H
#define HARDWARE_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/device.h"    /* IWYU pragma: export */
#include "hardware/lbr_setup.h" /* IWYU pragma: export */
#include "hardware/live.h"      /* IWYU pragma: export */
#include "hardware/registers.h" /* IWYU pragma: export */
#include "lastbranch/cpudb.h"

/* ---- the way to the system ---- */

/* The event that perf_open of struct hardware_system tries to open. */
enum hardware_event {
  HARDWARE_EVENT_CYCLES,        /* a hardware counter, user mode only */
  HARDWARE_EVENT_BRANCH_STACK,  /* the same, each sample with a branch stack */
  HARDWARE_EVENT_BRANCH_SAMPLE, /* AMD Zen 3: retired taken branches with a branch stack */
  HARDWARE_EVENT_BTS,           /* the PMU of type `pmu` */
  HARDWARE_EVENT_PT,            /* likewise */
};

/* The stops of a tracee in the trial loop of blockstep.c. */
struct hardware_steps {
  unsigned stops;        /* seen */
  unsigned branches;     /* taken branches in the loop: the number of stops if stepping by branches works */
  unsigned instructions; /* instructions in the loop: the number of stops when stepping by instructions */
};

struct hardware_system {
  void *data; /* passed to every function */
  /* CPUID: EAX, EBX, ECX, EDX. Not called for leaves past the last one that the CPU has. */
  void (*cpuid)(void *data, uint32_t leaf, uint32_t subleaf, uint32_t ret_value[4]);
  /* The first bytes of a small text file, as a string. Returns its length, or -errno. */
  int (*file_read)(void *data, const char *path, char *buffer, size_t size);
  /* RDMSR on processor 0 through the msr device. Returns 0, or -errno: that of open, or -EIO when the read faults. */
  int (*msr_read)(void *data, uint32_t msr, uint64_t *ret_value);
  /* The msr device of a processor: open it, and RDMSR and WRMSR by it. Return a descriptor or 0, or -errno: -EIO when
   * RDMSR or WRMSR faults. Only live.h's functions use these. */
  int (*msr_open)(void *data, unsigned number, bool for_writing);
  int (*msr_pread)(void *data, int fd, uint32_t msr, uint64_t *ret_value);
  int (*msr_pwrite)(void *data, int fd, uint32_t msr, uint64_t value);
  void (*msr_close)(void *data, int fd);
  /* Opens a counter for the calling thread and closes it again. Returns 0, or -errno. */
  int (*perf_open)(void *data, enum hardware_event event, uint32_t pmu);
  /* Steps a child through the trial loop with PTRACE_SINGLEBLOCK. Returns 0, or -errno. */
  int (*block_step)(void *data, struct hardware_steps *ret_steps);
};

/* The host that lbr runs on. */
const struct hardware_system *hardware_system_real(void);

/* ---- what was found ---- */

enum hardware_facility {
#define HARDWARE_FACILITY(name, word, title) HARDWARE_##name,
#include "hardware/facility.def"
#undef HARDWARE_FACILITY
  HARDWARE_FACILITIES,
};

const char *hardware_facility_word(unsigned facility);
const char *hardware_facility_title(unsigned facility);

enum hardware_verdict {
  HARDWARE_YES,
  HARDWARE_PARTLY,  /* usable with the limits that `reason` gives */
  HARDWARE_PERHAPS, /* cannot be determined */
  HARDWARE_NO,
};

const char *hardware_verdict_word(unsigned verdict); /* "yes", "partly", "perhaps", "no" */

struct hardware_finding {
  uint8_t verdict; /* enum hardware_verdict */
  char reason[192];
  const char *advice; /* what the user can do about it; "" if nothing needs to, or can, be done */
};

enum hardware_cpuid_field {
#define HARDWARE_CPUID(name, leaf, register, high, low, meaning) HARDWARE_CPUID_##name,
#include "hardware/cpuid.def"
#undef HARDWARE_CPUID
  HARDWARE_CPUID_FIELDS,
};

/* The position of a field of CPUID. */
struct hardware_cpuid_place {
  const char *name;
  const char *meaning;
  uint32_t leaf;
  uint8_t reg; /* 0 to 3: EAX, EBX, ECX, EDX */
  uint8_t high, low;
};

const struct hardware_cpuid_place *hardware_cpuid_place(unsigned field);

struct hardware_host {
  char vendor_text[13];             /* CPUID.0: "GenuineIntel" */
  char brand[49];                   /* CPUID.80000002H to 80000004H, "" if none */
  int vendor;                       /* enum lb_vendor, or negative for an unknown vendor */
  unsigned family, model, stepping; /* DisplayFamily, DisplayModel */
  bool is_virtual;                  /* CPUID.1:ECX[31] */
  char hypervisor[13];              /* CPUID.40000000H, "" if none */
  const char *hypervisor_name;      /* in plain words; "unknown" */
  const struct lb_cpu *cpu;         /* row of the catalogue, NULL if it has none */
  uint32_t cpuid[HARDWARE_CPUID_FIELDS];
  int perf_event_paranoid;    /* sysctl; INT_MIN when it cannot be read */
  bool has_seccomp;           /* a seccomp filter applies to this process: mostly in a container */
  bool is_locked_down;        /* the kernel restricts even root (lockdown) */
  int kernel_branches;        /* entries of the branch stack that the kernel's driver offers; 0 if none */
  bool has_perf_capabilities; /* IA32_PERF_CAPABILITIES could be read */
  uint64_t perf_capabilities;
  struct hardware_steps steps; /* all 0 when the trial could not run */
  struct hardware_finding findings[HARDWARE_FACILITIES];
};

/* Probes the host. Takes a few milliseconds, needs no privilege and cannot fail: a missing facility is a finding. */
void hardware_probe(const struct hardware_system *system, struct hardware_host *ret_host);

/* Only identifies the processor: no findings, nothing about the kernel. */
void hardware_identify(const struct hardware_system *system, struct hardware_host *ret_host);

/* Only the row of the catalogue that this host is, NULL if it has none. */
const struct lb_cpu *hardware_cpu(const struct hardware_system *system);

/* The value that the catalogue's row has for a field of CPUID. Returns false when there is no row, or it says nothing
 * about it. */
bool hardware_cpuid_expected(const struct hardware_host *host, unsigned field, uint32_t *ret_value);

#endif
