/* SPDX-License-Identifier: Apache-2.0
 *
 * The msr device on made-up machines: every error that it can give, and the one line that tells the user what to do;
 * which row of the catalogue a machine gets. Errors as in Linux' arch/x86/kernel/msr.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "lastbranch/error.h"
#include "live_rig.h"

/* ---- a made-up machine ---- */

struct file {
  const char *path, *text;
};

struct machine {
  struct file files[4];
  int open_error[2]; /* for reading, for reading and writing */
  int write_error;
  int perf_error; /* of intel_bts */
  bool is_read_only;
  struct silicon silicon;
};

static int fake_file_read(void *data, const char *path, char *buffer, size_t size)
{
  const struct machine *machine = data;

  for (size_t i = 0; i < sizeof(machine->files) / sizeof(*machine->files); i++)
    if (machine->files[i].path && !strcmp(machine->files[i].path, path))
      return snprintf(buffer, size, "%s", machine->files[i].text);
  return -ENOENT;
}

static int fake_open(void *data, unsigned number, bool for_writing)
{
  struct machine *machine = data;

  assert_int_equal(number, 1);
  machine->is_read_only = !for_writing;
  return machine->open_error[for_writing] ? machine->open_error[for_writing] : 5;
}

static int fake_pread(void *data, int fd, uint32_t msr, uint64_t *ret_value)
{
  struct machine *machine = data;

  assert_int_equal(fd, 5);
  return silicon_read(&machine->silicon, msr, ret_value);
}

static int fake_pwrite(void *data, int fd, uint32_t msr, uint64_t value)
{
  struct machine *machine = data;

  assert_int_equal(fd, 5);
  if (machine->is_read_only)
    return -EBADF;
  return machine->write_error ? machine->write_error : silicon_write(&machine->silicon, msr, value);
}

static void fake_close(void *data, int fd)
{
  (void)data;
  assert_int_equal(fd, 5);
}

static int fake_perf_open(void *data, enum hardware_event event, uint32_t pmu)
{
  const struct machine *machine = data;

  assert_int_equal(event, HARDWARE_EVENT_BTS);
  assert_int_equal(pmu, 9);
  return machine->perf_error;
}

static struct hardware_system system_of(struct machine *machine)
{
  return (struct hardware_system){
    .data = machine,
    .file_read = fake_file_read,
    .msr_open = fake_open,
    .msr_pread = fake_pread,
    .msr_pwrite = fake_pwrite,
    .msr_close = fake_close,
    .perf_open = fake_perf_open,
  };
}

static void assert_says(const struct hardware_finding *finding, const char *reason, const char *advice)
{
  if (!strstr(finding->reason, reason) || !strstr(finding->advice, advice))
    fail_msg("'%s' (%s) does not say '%s' (%s)", finding->reason, finding->advice, reason, advice);
}

/* ---- opening ---- */

#define PRESENT "/sys/devices/system/cpu/present"
#define ONLINE "/sys/devices/system/cpu/online"
#define ALLOW_WRITES "/sys/module/msr/parameters/allow_writes"
#define LOCKDOWN "/sys/kernel/security/lockdown"

static void test_open_errors(void **state)
{
  static const struct {
    struct file files[4];
    int error;
    const char *reason, *advice;
  } cases[] = {
    {{{PRESENT, "0-3\n"}, {ONLINE, "0-3\n"}}, -ENOENT, "msr module is not loaded", "modprobe msr"},
    {{{PRESENT, "0-3\n"}, {ONLINE, "0-3\n"}, {ALLOW_WRITES, "on\n"}}, -ENOENT, "a container", "container"},
    {{{PRESENT, "0\n"}, {ONLINE, "0\n"}}, -ENOENT, "there is no processor 1: this machine has 0", "--cpu-number"},
    {{{PRESENT, "0,2-4\n"}}, -ENOENT, "there is no processor 1", "--cpu-number"},
    {{{PRESENT, "0-3\n"}, {ONLINE, "0,2-3\n"}}, -ENOENT, "processor 1 is offline (online: 0,2-3)", "echo 1"},
    {{{NULL, NULL}}, -ENOENT, "does not exist", "modprobe msr"},
    {{{PRESENT, "nonsense"}}, -ENOENT, "there is no processor 1", ""},
    {{{NULL, NULL}}, -ENXIO, "processor 1 is offline", "echo 1"},
    {{{NULL, NULL}}, -EACCES, "only root may open", "run as root"},
    {{{NULL, NULL}}, -EPERM, "CAP_SYS_RAWIO", "run as root outside a container"},
    {{{NULL, NULL}}, -EIO, "no model-specific registers", ""},
    {{{NULL, NULL}}, -EMFILE, "Too many open files", ""},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    struct machine machine = {.open_error = {cases[i].error, cases[i].error}};
    struct hardware_system system = system_of(&machine);
    struct hardware_device device;
    struct hardware_finding finding;

    memcpy(machine.files, cases[i].files, sizeof(machine.files));
    assert_int_equal(hardware_device_open(&system, 1, &device), cases[i].error);
    finding = hardware_device_explain(&system, 1, cases[i].error);
    assert_says(&finding, cases[i].reason, cases[i].advice);
  }
}

/* ---- reading and writing ---- */

struct bench {
  struct machine machine;
  struct hardware_system system;
  struct hardware_host host;
  struct hardware_device device;
  struct hardware_row row;
  struct hardware_live live;
};

static void bench_open(struct bench *bench, const char *name)
{
  memset(bench, 0, sizeof(*bench));
  bench->system = system_of(&bench->machine);
  bench->host.hypervisor_name = "KVM";
  assert_int_equal(lb_cpu_find(name, &bench->host.cpu), 0);
  silicon_init(&bench->machine.silicon, bench->host.cpu);
  hardware_row_of(bench->host.cpu, &bench->row);
  assert_int_equal(hardware_device_open(&bench->system, 1, &bench->device), 0);
  hardware_live_begin(&bench->live, &bench->row, &bench->device.registers);
}

static void bench_says(struct bench *bench, const char *reason, const char *advice)
{
  struct hardware_finding finding = hardware_live_explain(&bench->system, &bench->host, &bench->live);

  assert_says(&finding, reason, advice);
}

static void test_whole_way(void **state)
{
  const struct hardware_filter filter = {0};
  const struct lb_branch branch = {.from = 0x401000, .to = 0x402000, .kind = LB_BRANCH_JCC};
  struct hardware_reading reading;
  struct lb_recorder read;
  struct lb_record record;
  struct bench bench;

  (void)state;
  bench_open(&bench, "skylake");
  assert_int_equal(hardware_live_arm(&bench.live, &filter), 0);
  lb_recorder_branch(&bench.machine.silicon.unit, &branch);
  assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), 0);
  assert_int_equal(lb_recorder_entry(&read, 0, &record), 0);
  assert_true(record.from == 0x401000 && record.to == 0x402000);
  assert_int_equal(hardware_live_end(&bench.live), 0);
  hardware_device_close(&bench.device);
}

/* A virtual machine whose stack is not there. */
static void test_virtual(void **state)
{
  struct hardware_reading reading;
  struct lb_recorder read;
  struct bench bench;

  (void)state;
  bench_open(&bench, "skylake");
  assert_int_equal(lb_cpu_find("zen", &bench.machine.silicon.unit.cpu), 0); /* has DEBUGCTL, and no 0x680 */
  assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), -EIO);
  bench_says(&bench, "faults: this is not the register layout of Intel Skylake", "--cpu");
  bench.host.is_virtual = true;
  bench_says(&bench, "this virtual machine (KVM) has no LBR", "run on the bare machine");
}

static void test_writes(void **state)
{
  static const struct {
    struct file files[4];
    int error;
    const char *reason, *advice;
  } cases[] = {
    {{{LOCKDOWN, "none [integrity] confidentiality\n"}}, -EPERM, "the kernel is locked down", "secure boot"},
    {{{LOCKDOWN, "[none] integrity\n"}, {ALLOW_WRITES, "off\n"}}, -EPERM, "allow_writes=off", "echo on >"},
    {{{ALLOW_WRITES, "on\n"}}, -EPERM, "the kernel refuses it", "the kernel's log"},
    {{{NULL, NULL}}, -EIO, "writing register 0x1c8 faults", "--cpu"},
    {{{NULL, NULL}}, -ENXIO, "writing register 0x1c8", ""},
  };
  const struct hardware_filter filter = {0};

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    struct bench bench;

    bench_open(&bench, "skylake");
    memcpy(bench.machine.files, cases[i].files, sizeof(cases[i].files));
    bench.machine.write_error = cases[i].error;
    assert_int_equal(hardware_live_arm(&bench.live, &filter), cases[i].error);
    bench_says(&bench, cases[i].reason, cases[i].advice);
  }
}

/* Where the device can only be read, reading works as long as nothing must be stopped. */
static void test_read_only(void **state)
{
  const struct hardware_filter filter = {0};
  struct hardware_reading reading;
  struct lb_recorder read;
  struct bench bench;

  (void)state;
  bench_open(&bench, "skylake");
  bench.machine.open_error[true] = -EACCES;
  assert_int_equal(hardware_device_open(&bench.system, 1, &bench.device), 0);
  assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), 0);
  assert_int_equal(hardware_live_arm(&bench.live, &filter), -EACCES);
  bench_says(&bench, "opened for reading only", "run as root");
}

static void test_in_use(void **state)
{
  struct hardware_reading reading;
  struct lb_recorder read;
  struct bench bench;

  (void)state;
  bench_open(&bench, "skylake");
  assert_int_equal(lb_recorder_wrmsr(&bench.machine.silicon.unit, 0x1D9, 1), LB_MSR_OK);
  assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), -EBUSY);
  bench_says(&bench, "recording is on, and not by 'lbr live --arm'", "--no-stop");
  assert_int_equal(hardware_event_is_open(&bench.system), 0);
  bench.machine.files[0] = (struct file){"/sys/bus/event_source/devices/intel_bts/type", "9\n"};
  assert_int_equal(hardware_event_is_open(&bench.system), 0);
  bench.machine.perf_error = -EBUSY;
  assert_int_equal(hardware_event_is_open(&bench.system), 1);
}

/* ---- rows ---- */

static void row_refused(const struct hardware_host *host, int error, const char *reason)
{
  struct hardware_finding finding;
  struct hardware_row row;

  assert_int_equal(hardware_row_find(host, &row), error);
  finding = hardware_row_explain(host, error);
  assert_says(&finding, reason, "");
}

static void test_rows(void **state)
{
  struct hardware_host host = {.vendor_text = "GenuineIntel", .family = 6, .model = 0xFE, .hypervisor_name = "KVM"};
  struct hardware_row row;

  (void)state;
  row_refused(&host, LB_E_NO_CPU, "GenuineIntel 06_FE) is not in the catalogue");
  host.cpuid[HARDWARE_CPUID_ARCH_LBR] = 1;
  row_refused(&host, -ENODEV, "CPUID does not show them"); /* no depth at all */
  host.cpuid[HARDWARE_CPUID_LBR_DEPTHS] = 0x3;
  host.cpuid[HARDWARE_CPUID_LBR_FILTERS] = 0x7;
  assert_int_equal(hardware_row_find(&host, &row), 0);
  assert_int_equal(lb_cpu_depth(&row.cpu), 16);
  assert_non_null(strstr(row.cpu.title, "06_FE, not in the catalogue"));
  host.cpuid[HARDWARE_CPUID_ARCH_LBR] = 0;
  host.cpuid[HARDWARE_CPUID_AMD_LBR_V2] = 1;
  host.cpuid[HARDWARE_CPUID_AMD_LBR_DEPTH] = 8;
  assert_int_equal(hardware_row_find(&host, &row), 0);
  assert_int_equal(lb_cpu_depth(&row.cpu), 8);
  assert_int_equal(lb_cpu_register(&row.cpu, LB_REG_LBR_FROM).count, 8);

  memset(host.cpuid, 0, sizeof(host.cpuid));
  assert_int_equal(lb_cpu_find("zen4", &host.cpu), 0);
  row_refused(&host, -ENODEV, "has 16 entries, but CPUID does not show them");
  host.is_virtual = true;
  row_refused(&host, -ENODEV, "the hypervisor hides them");
  assert_int_equal(lb_cpu_find("nano", &host.cpu), 0);
  row_refused(&host, LB_E_NO_UNIT, "has no branch records");
  assert_int_equal(lb_cpu_find("skylake", &host.cpu), 0);
  assert_int_equal(hardware_row_find(&host, &row), 0);
  assert_int_equal(lb_cpu_depth(&row.cpu), 32);
}

/* ---- this machine ---- */

/* Looks only: it is not ours to switch anything on here. */
static void test_real(void **state)
{
  const struct hardware_system *system = hardware_system_real();
  struct hardware_reading reading;
  struct hardware_finding finding;
  struct hardware_device device;
  struct hardware_host host;
  struct hardware_live live;
  struct hardware_row row;
  struct lb_recorder read;
  int r;

  (void)state;
  hardware_identify(system, &host);
  r = hardware_device_open(system, 0, &device);
  if (r < 0) {
    finding = hardware_device_explain(system, 0, r);
    print_message("# not read: %s\n", finding.reason);
    skip();
  }
  r = hardware_row_find(&host, &row);
  if (r < 0) {
    finding = hardware_row_explain(&host, r);
    hardware_device_close(&device);
    print_message("# not read: %s\n", finding.reason);
    skip();
  }
  hardware_live_begin(&live, &row, &device.registers);
  r = hardware_live_read(&live, true, &read, &reading);
  hardware_device_close(&device);
  if (r < 0) {
    finding = hardware_live_explain(system, &host, &live);
    print_message("# not read: %s\n", finding.reason);
    skip();
  }
  assert_true(lb_recorder_used(&read) <= lb_cpu_depth(&row.cpu));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_open_errors), cmocka_unit_test(test_whole_way), cmocka_unit_test(test_virtual),
    cmocka_unit_test(test_writes),      cmocka_unit_test(test_read_only), cmocka_unit_test(test_in_use),
    cmocka_unit_test(test_rows),        cmocka_unit_test(test_real),
  };

  return cmocka_run_group_tests_name("live_device", tests, NULL, NULL);
}
