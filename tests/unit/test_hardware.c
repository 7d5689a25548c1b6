/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/hardware: made-up machines, each of which must get the right verdicts, and the real one, which must get
 * some. The made-up CPUID fails the test when a leaf is asked for that the machine does not have.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "hardware/hardware.h"

/* ---- made-up machines ---- */

struct leaf {
  uint32_t number;
  uint32_t value[4];
};

struct file {
  const char *path;
  const char *text;
};

struct msr {
  uint32_t address;
  uint64_t value;
};

struct machine {
  const char *vendor;
  uint32_t basic, extended; /* last leaves */
  struct leaf leaves[12];
  struct file files[8];
  int msr_error; /* of opening the device; 0: the registers below can be read, others fault */
  struct msr msrs[5];
  int perf[5]; /* answers by enum hardware_event */
  uint32_t bts_pmu, pt_pmu;
  int step_error;
  unsigned stops;
};

static void fake_cpuid(void *data, uint32_t number, uint32_t subleaf, uint32_t ret_value[4])
{
  const struct machine *machine = data;

  assert_int_equal(subleaf, 0);
  memset(ret_value, 0, 4 * sizeof(ret_value[0]));
  if (number == 0) {
    ret_value[0] = machine->basic;
    memcpy(&ret_value[1], machine->vendor, 4);
    memcpy(&ret_value[3], machine->vendor + 4, 4);
    memcpy(&ret_value[2], machine->vendor + 8, 4);
    return;
  }
  if (number == 0x80000000) {
    ret_value[0] = machine->extended;
    return;
  }
  if (number != 0x40000000)
    assert_true(number <= (number >= 0x80000000 ? machine->extended : machine->basic));
  for (size_t i = 0; i < sizeof(machine->leaves) / sizeof(machine->leaves[0]); i++)
    if (machine->leaves[i].number == number)
      memcpy(ret_value, machine->leaves[i].value, 4 * sizeof(ret_value[0]));
}

static int fake_file_read(void *data, const char *path, char *buffer, size_t size)
{
  const struct machine *machine = data;

  for (size_t i = 0; i < sizeof(machine->files) / sizeof(machine->files[0]); i++)
    if (machine->files[i].path && strcmp(machine->files[i].path, path) == 0) {
      strncpy(buffer, machine->files[i].text, size - 1);
      buffer[size - 1] = '\0';
      return (int)strlen(buffer);
    }
  return -ENOENT;
}

static int fake_msr_read(void *data, uint32_t address, uint64_t *ret_value)
{
  const struct machine *machine = data;

  if (machine->msr_error)
    return machine->msr_error;
  for (size_t i = 0; i < sizeof(machine->msrs) / sizeof(machine->msrs[0]); i++)
    if (machine->msrs[i].address == address) {
      *ret_value = machine->msrs[i].value;
      return 0;
    }
  return -EIO;
}

static int fake_perf_open(void *data, enum hardware_event event, uint32_t pmu)
{
  const struct machine *machine = data;

  if (event == HARDWARE_EVENT_BTS)
    assert_int_equal(pmu, machine->bts_pmu);
  if (event == HARDWARE_EVENT_PT)
    assert_int_equal(pmu, machine->pt_pmu);
  return machine->perf[event];
}

static int fake_block_step(void *data, struct hardware_steps *ret_steps)
{
  const struct machine *machine = data;

  if (machine->step_error)
    return machine->step_error;
  *ret_steps = (struct hardware_steps){.stops = machine->stops, .branches = 7, .instructions = 49};
  return 0;
}

/* Every finding must have a verdict that is one, a reason, and advice that can be printed. */
static void assert_complete(const struct hardware_host *host)
{
  for (unsigned i = 0; i < HARDWARE_FACILITIES; i++) {
    assert_true(host->findings[i].verdict <= HARDWARE_NO);
    assert_int_not_equal(strlen(host->findings[i].reason), 0);
    assert_non_null(host->findings[i].advice);
  }
}

static struct hardware_host probe(struct machine *machine)
{
  const struct hardware_system system = {
    .data = machine,
    .cpuid = fake_cpuid,
    .file_read = fake_file_read,
    .msr_read = fake_msr_read,
    .perf_open = fake_perf_open,
    .block_step = fake_block_step,
  };
  struct hardware_host host;

  hardware_probe(&system, &host);
  assert_complete(&host);
  assert_ptr_equal(hardware_cpu(&system), host.cpu);
  return host;
}

static void assert_finding(const struct hardware_host *host, enum hardware_facility facility,
                           enum hardware_verdict verdict, const char *reason, const char *advice)
{
  const struct hardware_finding *finding = &host->findings[facility];

  if (finding->verdict != verdict || !strstr(finding->reason, reason) || !strstr(finding->advice, advice))
    fail_msg("%s: %s, '%s', '%s'; expected %s, '%s', '%s'", hardware_facility_word(facility),
             hardware_verdict_word(finding->verdict), finding->reason, finding->advice, hardware_verdict_word(verdict),
             reason, advice);
}

/* Core i7-6700K: everything is there, the user is root. */
static struct machine skylake(void)
{
  return (struct machine){
    .vendor = "GenuineIntel",
    .basic = 0x16,
    .extended = 0x80000008,
    .leaves = {{0x1, {0x506E3, 0, 1u << 2 | 1u << 4 | 1u << 15, 1u << 21}},
               {0x7, {0, 1u << 11, 0, 0}},
               {0xA, {0x07300404, 0, 0, 0x603}},
               {0x80000002, {0x65746E49, 0x2952286C, 0x726F4320, 0x4D542865}},
               {0x80000003, {0x37692029, 0, 0, 0}}},
    .files = {{"/proc/sys/kernel/perf_event_paranoid", "2\n"},
              {"/proc/self/status", "Name:\tlbr\nSeccomp:\t0\nSeccomp_filters:\t0\n"},
              {"/sys/bus/event_source/devices/intel_bts/type", "9\n"},
              {"/sys/bus/event_source/devices/cpu/caps/branches", "32\n"},
              {"/sys/module/msr/parameters/allow_writes", "default\n"},
              {"/sys/kernel/security/lockdown", "[none] integrity confidentiality\n"},
              {"/sys/bus/event_source/devices/intel_pt/type", "10\n"}},
    .msrs = {{0x1D9, 0x4000}, {0x1A0, 0x850089}, {0x345, 0x33C5}},
    .bts_pmu = 9,
    .pt_pmu = 10,
    .stops = 7,
  };
}

/* EPYC of the Zen 4 kind as a virtual machine that shows nothing of the machinery. */
static struct machine zen4_guest(void)
{
  return (struct machine){
    .vendor = "AuthenticAMD",
    .basic = 0x10,
    .extended = 0x80000022,
    .leaves = {{0x1, {0x00A10F11, 0, 1u << 31, 0}}, {0x40000000, {0x40000001, 0x4B4D564B, 0x564B4D56, 0x0000004D}}},
    .files = {{"/proc/sys/kernel/perf_event_paranoid", "2\n"}, {"/proc/self/status", "Name:\tlbr\nSeccomp:\t0\n"}},
    .msr_error = -ENOENT,
    .perf = {-ENOENT, -ENOENT, -ENOENT, -ENOENT, -ENOENT},
    .stops = 49,
  };
}

static struct machine stranger(void)
{
  return (struct machine){
    .vendor = "GenuineTest!",
    .basic = 0x1,
    .leaves = {{0x1, {0x00000543, 0, 0, 0}}},
    .msr_error = -EACCES,
    .perf = {-ENODEV, -ENODEV, -ENODEV, -ENODEV, -ENODEV},
    .step_error = -EIO,
  };
}

/* ---- tests ---- */

static void test_skylake_bare(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host = probe(&machine);
  uint32_t expected;

  (void)state;
  assert_string_equal(host.vendor_text, "GenuineIntel");
  assert_string_equal(host.brand, "Intel(R) Core(TM) i7");
  assert_int_equal(host.vendor, LB_VENDOR_INTEL);
  assert_int_equal(host.family, 0x6);
  assert_int_equal(host.model, 0x5E);
  assert_int_equal(host.stepping, 3);
  assert_false(host.is_virtual);
  assert_non_null(host.cpu);
  assert_string_equal(host.cpu->name, "skylake");
  assert_int_equal(host.cpuid[HARDWARE_CPUID_PMU_VERSION], 4);
  assert_int_equal(host.cpuid[HARDWARE_CPUID_PMU_COUNTERS], 4);
  assert_int_equal(host.cpuid[HARDWARE_CPUID_PMU_FIXED], 3);
  assert_int_equal(host.cpuid[HARDWARE_CPUID_RTM], 1);
  assert_true(hardware_cpuid_expected(&host, HARDWARE_CPUID_PMU_VERSION, &expected));
  assert_int_equal(expected, 4);
  assert_true(host.has_perf_capabilities);
  assert_int_equal(host.perf_capabilities, 0x33C5);
  assert_finding(&host, HARDWARE_LBR, HARDWARE_YES, "32 entries", "");
  assert_finding(&host, HARDWARE_BTS, HARDWARE_YES, "MISC_ENABLE[11] is 0", "");
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_YES, "DEBUGCTL is 0x4000", "");
  assert_finding(&host, HARDWARE_PERF, HARDWARE_YES, "counter can be opened", "");
  assert_finding(&host, HARDWARE_PERF_BRANCH, HARDWARE_YES, "32 branches", "");
  assert_finding(&host, HARDWARE_PERF_BTS, HARDWARE_YES, "intel_bts can be opened", "");
  assert_finding(&host, HARDWARE_PERF_PT, HARDWARE_YES, "intel_pt can be opened", "");
  assert_finding(&host, HARDWARE_BLOCK_STEP, HARDWARE_YES, "7 stops", "");
}

/* What a refusal of BTS and Intel PT can mean. */
static void test_trace_refused(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.perf[HARDWARE_EVENT_BTS] = -EACCES; /* it shows addresses of the kernel: 2 is not enough */
  machine.perf[HARDWARE_EVENT_PT] = -EBUSY;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_PERF_BTS, HARDWARE_NO, "perf_event_paranoid is 2", "perf_event_paranoid=1");
  assert_finding(&host, HARDWARE_PERF_PT, HARDWARE_PARTLY, "busy", "try again");

  machine.files[0].text = "1\n";
  machine.files[5].text = "none [integrity] confidentiality\n";
  machine.perf[HARDWARE_EVENT_PT] = -EPERM;
  host = probe(&machine);
  assert_true(host.is_locked_down);
  assert_finding(&host, HARDWARE_PERF_BTS, HARDWARE_NO, "locked down", "without lockdown");
  assert_finding(&host, HARDWARE_PERF_PT, HARDWARE_NO, "locked down", "without lockdown");

  machine.files[6].path = NULL;
  machine.leaves[0].value[2] |= 1u << 31;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_PERF_PT, HARDWARE_NO, "the hypervisor does not provide it", "bare machine");
}

static void test_zen4_guest(void **state)
{
  struct machine machine = zen4_guest();
  struct hardware_host host = probe(&machine);
  uint32_t expected;

  (void)state;
  assert_int_equal(host.vendor, LB_VENDOR_AMD);
  assert_int_equal(host.family, 0x19);
  assert_int_equal(host.model, 0x11);
  assert_true(host.is_virtual);
  assert_string_equal(host.hypervisor, "KVMKVMKVM");
  assert_string_equal(host.hypervisor_name, "KVM");
  assert_non_null(host.cpu);
  assert_string_equal(host.cpu->name, "zen4");
  assert_int_equal(host.cpuid[HARDWARE_CPUID_AMD_LBR_V2], 0);
  assert_true(hardware_cpuid_expected(&host, HARDWARE_CPUID_AMD_LBR_V2, &expected));
  assert_int_equal(expected, 1);
  assert_finding(&host, HARDWARE_LBR, HARDWARE_NO, "the hypervisor hides them", "bare machine");
  assert_finding(&host, HARDWARE_BTS, HARDWARE_NO, "AMD", "");
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "not loaded", "modprobe msr");
  assert_finding(&host, HARDWARE_PERF, HARDWARE_NO, "hypervisor provides none", "virtual PMU");
  assert_finding(&host, HARDWARE_PERF_BRANCH, HARDWARE_NO, "needs a hardware counter", "virtual PMU");
  assert_finding(&host, HARDWARE_PERF_BTS, HARDWARE_NO, "no intel_bts", "");
  assert_finding(&host, HARDWARE_PERF_PT, HARDWARE_NO, "not Intel's", "");
  assert_finding(&host, HARDWARE_BLOCK_STEP, HARDWARE_NO, "after each of 49 instructions", "bare machine");
}

static void test_unknown_cpu(void **state)
{
  struct machine machine = stranger();
  struct hardware_host host = probe(&machine);
  uint32_t expected;

  (void)state;
  assert_true(host.vendor < 0);
  assert_int_equal(host.family, 5);
  assert_int_equal(host.model, 4);
  assert_int_equal(host.stepping, 3);
  assert_null(host.cpu);
  assert_string_equal(host.brand, "");
  assert_int_equal(host.perf_event_paranoid, INT_MIN);
  assert_false(hardware_cpuid_expected(&host, HARDWARE_CPUID_DS, &expected));
  assert_finding(&host, HARDWARE_LBR, HARDWARE_PERHAPS, "not in the catalogue", "");
  assert_finding(&host, HARDWARE_BTS, HARDWARE_NO, "CPUID.1:EDX[21] is 0", "");
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "only root", "run as root");
  assert_finding(&host, HARDWARE_PERF, HARDWARE_NO, "no driver", "");
  assert_finding(&host, HARDWARE_BLOCK_STEP, HARDWARE_NO, "does not support PTRACE_SINGLEBLOCK", "");
}

/* A model that the catalogue does not have, but CPUID announces what it needs. */
static void test_unknown_cpu_with_arch_lbr(void **state)
{
  struct machine machine = stranger();
  struct hardware_host host;

  (void)state;
  machine.basic = 0x1C;
  machine.leaves[1] = (struct leaf){0x7, {0, 0, 0, 1u << 19}};
  machine.leaves[2] = (struct leaf){0x1C, {0x8000000F, 7, 7, 0}};
  host = probe(&machine);
  assert_null(host.cpu);
  assert_finding(&host, HARDWARE_LBR, HARDWARE_YES, "up to 32 entries", "");
}

static void test_container(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.files[1].text = "Name:\tlbr\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n";
  machine.msr_error = -ENOENT;
  machine.perf[HARDWARE_EVENT_CYCLES] = machine.perf[HARDWARE_EVENT_BTS] = -EPERM;
  machine.step_error = -EPERM;
  host = probe(&machine);
  assert_true(host.has_seccomp);
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "container", "give the device");
  assert_finding(&host, HARDWARE_PERF, HARDWARE_NO, "refused by a seccomp filter", "container");
  assert_finding(&host, HARDWARE_PERF_BRANCH, HARDWARE_NO, "needs a hardware counter", "");
  assert_finding(&host, HARDWARE_PERF_BTS, HARDWARE_NO, "seccomp", "container");
  assert_finding(&host, HARDWARE_BLOCK_STEP, HARDWARE_NO, "seccomp", "CAP_SYS_PTRACE");

  machine.perf[HARDWARE_EVENT_CYCLES] = -ENOSYS;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_PERF, HARDWARE_NO, "seccomp filter hides", "container");
}

static void test_kernel_without_perf(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.perf[HARDWARE_EVENT_CYCLES] = -ENOSYS;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_PERF, HARDWARE_NO, "this kernel has no perf_event_open", "");
}

static void test_paranoid(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.files[0].text = "3\n";
  machine.perf[HARDWARE_EVENT_CYCLES] = -EACCES;
  host = probe(&machine);
  assert_int_equal(host.perf_event_paranoid, 3);
  assert_finding(&host, HARDWARE_PERF, HARDWARE_NO, "perf_event_paranoid is 3", "perf_event_paranoid=2");

  machine.files[0].text = "2\n";
  host = probe(&machine);
  assert_finding(&host, HARDWARE_PERF, HARDWARE_NO, "refused: ", "CAP_PERFMON");
}

static void test_perf_without_branch_stack(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.perf[HARDWARE_EVENT_BRANCH_STACK] = -EOPNOTSUPP;
  machine.perf[HARDWARE_EVENT_BTS] = -EBUSY;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_PERF, HARDWARE_YES, "", "");
  assert_finding(&host, HARDWARE_PERF_BRANCH, HARDWARE_NO, "no branch stack", "");
  assert_finding(&host, HARDWARE_PERF_BTS, HARDWARE_PARTLY, "busy", "try again");
}

static void test_msr_device(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.files[5].text = "none [integrity] confidentiality\n";
  host = probe(&machine);
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_PARTLY, "locked down", "secure boot");
  assert_true(host.has_perf_capabilities); /* reading goes on working */

  machine.files[5].text = "[none] integrity confidentiality\n";
  machine.files[4].text = "off\n";
  host = probe(&machine);
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_PARTLY, "allow_writes=off", "echo on");

  machine.msr_error = -EPERM;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "CAP_SYS_RAWIO", "CAP_SYS_RAWIO");
  assert_false(host.has_perf_capabilities);

  machine.msr_error = -ENXIO;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_NO, strerror(ENXIO), "");

  machine.msr_error = -EIO;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_MSR_DEVICE, HARDWARE_NO, "faults", "");
}

/* Whether 'lbr live' can do something: the device, the first register of the stack, and what says that it records. */
static void test_live(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host = probe(&machine);

  (void)state;
  assert_finding(&host, HARDWARE_LIVE, HARDWARE_NO, "reading register 0x680 faults", "");
  machine.msrs[3] = (struct msr){0x680, 0};
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LIVE, HARDWARE_YES, "can read 32 entries, and switch recording on", "");
  machine.files[4].text = "off\n";
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LIVE, HARDWARE_PARTLY, "neither stop recording nor switch it on", "echo on");
  machine.msr_error = -EACCES;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LIVE, HARDWARE_NO, "needs the msr device", "");
  machine = zen4_guest();
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LIVE, HARDWARE_NO, "the hypervisor hides them", "bare machine");
  machine = stranger();
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LIVE, HARDWARE_NO, "not in the catalogue", "--cpu");
  assert_finding(&host, HARDWARE_SOFTWARE, HARDWARE_YES, "'lbr record'", "");
}

static void test_bts_fused_off(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.msrs[1].value |= 1u << 11;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_BTS, HARDWARE_NO, "MISC_ENABLE[11]", "");

  machine.leaves[0].value[3] = 0;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_BTS, HARDWARE_NO, "CPUID.1:EDX[21] is 0", "");
}

/* The model-specific stack has no CPUID bit: PDCM and LBR_FMT are all there is to go by in a virtual machine. */
static void test_skylake_guest(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.leaves[0].value[2] |= 1u << 31;
  host = probe(&machine);
  assert_string_equal(host.hypervisor_name, "unknown");
  assert_finding(&host, HARDWARE_LBR, HARDWARE_YES, "LBR_FMT 5", "");

  machine.msrs[2].value = 0x3000;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LBR, HARDWARE_NO, "LBR_FMT 0 where the CPU has 5", "lbr-fmt");

  machine.msr_error = -EACCES;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LBR, HARDWARE_PERHAPS, "no bit", "lbr-fmt");

  machine.leaves[0].value[2] &= ~(1u << 15);
  host = probe(&machine);
  assert_finding(&host, HARDWARE_LBR, HARDWARE_NO, "hides PERF_CAPABILITIES", "lbr-fmt");
}

static void test_zen4_bare(void **state)
{
  struct machine machine = zen4_guest();
  struct hardware_host host;

  (void)state;
  machine.leaves[0].value[2] = 0;
  machine.leaves[1] = (struct leaf){0x80000022, {7, 16u << 4 | 6, 0, 0}};
  memset(machine.perf, 0, sizeof(machine.perf));
  machine.stops = 7;
  host = probe(&machine);
  assert_false(host.is_virtual);
  assert_int_equal(host.cpuid[HARDWARE_CPUID_AMD_COUNTERS], 6);
  assert_finding(&host, HARDWARE_LBR, HARDWARE_YES, "version 2, 16 entries", "");
  assert_finding(&host, HARDWARE_PERF_BRANCH, HARDWARE_YES, "branch stack", "");
}

static void test_zen3_branch_sampling(void **state)
{
  struct machine machine = zen4_guest();
  struct hardware_host host;

  (void)state;
  machine.extended = 0x80000021;
  machine.leaves[0].value[0] = 0x00A00F11; /* 19_01 */
  machine.leaves[0].value[2] = 0;
  machine.leaves[1] = (struct leaf){0x80000008, {0, 1u << 31, 0, 0}};
  machine.perf[HARDWARE_EVENT_CYCLES] = machine.perf[HARDWARE_EVENT_BRANCH_SAMPLE] = 0;
  machine.perf[HARDWARE_EVENT_BRANCH_STACK] = -EINVAL;
  host = probe(&machine);
  assert_string_equal(host.cpu->name, "zen3");
  assert_finding(&host, HARDWARE_LBR, HARDWARE_PARTLY, "branch sampling", "");
  assert_finding(&host, HARDWARE_PERF_BRANCH, HARDWARE_PARTLY, "0xC4", "");
}

static void test_block_step_oddities(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.stops = 20;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_BLOCK_STEP, HARDWARE_PERHAPS, "20 stops", "");

  machine.stops = 49;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_BLOCK_STEP, HARDWARE_NO, "no effect", "");

  machine.step_error = -ETIMEDOUT;
  host = probe(&machine);
  assert_finding(&host, HARDWARE_BLOCK_STEP, HARDWARE_PERHAPS, "the trial failed", "");
  assert_int_equal(host.steps.stops, 0);
}

/* Text of CPUID is shown to people: nothing in it may move their cursor. */
static void test_odd_brand(void **state)
{
  struct machine machine = skylake();
  struct hardware_host host;

  (void)state;
  machine.vendor = "\033[2J\x80\xff\x01\x02xyzw";
  machine.leaves[3].value[0] = 0x0A1B0741;
  host = probe(&machine);
  assert_true(host.vendor < 0);
  assert_string_equal(host.vendor_text, "?[2J????xyzw");
  assert_memory_equal(host.brand, "A???", 4);
}

static void test_names(void **state)
{
  (void)state;
  for (unsigned i = 0; i < HARDWARE_FACILITIES; i++) {
    assert_int_not_equal(hardware_facility_word(i)[0], '?');
    assert_int_not_equal(hardware_facility_title(i)[0], '?');
  }
  assert_string_equal(hardware_facility_word(HARDWARE_FACILITIES), "?");
  assert_string_equal(hardware_facility_title(HARDWARE_FACILITIES), "?");
  assert_string_equal(hardware_verdict_word(HARDWARE_NO), "no");
  assert_string_equal(hardware_verdict_word(99), "?");
  assert_null(hardware_cpuid_place(HARDWARE_CPUID_FIELDS));
  assert_string_equal(hardware_cpuid_place(HARDWARE_CPUID_DS)->name, "DS");
}

/* Whatever the real host is, it must be seen through, in the same way twice, and no child may be left behind. */
static void test_real_host(void **state)
{
  struct hardware_host first, second;
  unsigned stops;

  (void)state;
  hardware_probe(hardware_system_real(), &first);
  assert_complete(&first);
  hardware_probe(hardware_system_real(), &second);
  assert_string_equal(first.vendor_text, second.vendor_text);
  assert_ptr_equal(first.cpu, second.cpu);
  for (unsigned i = 0; i < HARDWARE_FACILITIES; i++)
    assert_string_equal(first.findings[i].reason, second.findings[i].reason);
  stops = first.steps.stops;
  assert_true(stops == 0 || stops == first.steps.branches || stops == first.steps.instructions);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_skylake_bare),
    cmocka_unit_test(test_zen4_guest),
    cmocka_unit_test(test_unknown_cpu),
    cmocka_unit_test(test_unknown_cpu_with_arch_lbr),
    cmocka_unit_test(test_trace_refused),
    cmocka_unit_test(test_container),
    cmocka_unit_test(test_kernel_without_perf),
    cmocka_unit_test(test_paranoid),
    cmocka_unit_test(test_perf_without_branch_stack),
    cmocka_unit_test(test_msr_device),
    cmocka_unit_test(test_live),
    cmocka_unit_test(test_bts_fused_off),
    cmocka_unit_test(test_skylake_guest),
    cmocka_unit_test(test_zen4_bare),
    cmocka_unit_test(test_zen3_branch_sampling),
    cmocka_unit_test(test_block_step_oddities),
    cmocka_unit_test(test_odd_brand),
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_real_host),
  };

  return cmocka_run_group_tests_name("hardware", tests, NULL, NULL);
}
