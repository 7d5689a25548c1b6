/* SPDX-License-Identifier: Apache-2.0
 *
 * The real host: CPUID, small files of /proc and /sys, the msr device, perf_event_open. usable.c has the verdicts. Only
 * live.c writes registers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define HAS_CPUID 1
#endif

#include "hardware/blockstep.h"
#include "hardware/hardware.h"

static void real_cpuid(void *data, uint32_t leaf, uint32_t subleaf, uint32_t ret_value[4])
{
  (void)data;
#ifdef HAS_CPUID
  __cpuid_count(leaf, subleaf, ret_value[0], ret_value[1], ret_value[2], ret_value[3]);
#else
  (void)leaf, (void)subleaf;
  memset(ret_value, 0, 4 * sizeof(ret_value[0]));
#endif
}

/* Reads some bytes of a file. Returns their number, or -errno. */
static int bytes_read(const char *path, off_t offset, void *bytes, size_t size)
{
  ssize_t got;
  int error;
  int fd;

  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  got = pread(fd, bytes, size, offset);
  error = errno;
  close(fd);
  return got < 0 ? -error : (int)got;
}

static int real_file_read(void *data, const char *path, char *buffer, size_t size)
{
  int got = bytes_read(path, 0, buffer, size - 1);

  (void)data;
  if (got >= 0)
    buffer[got] = '\0';
  return got;
}

static int real_msr_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  uint64_t value = 0;
  int got = bytes_read("/dev/cpu/0/msr", (off_t)msr, &value, sizeof(value));

  (void)data;
  if (got < 0)
    return got;
  if (got != sizeof(value))
    return -EIO;
  *ret_value = value;
  return 0;
}

static int real_msr_open(void *data, unsigned number, bool for_writing)
{
  char path[32];
  int fd;

  (void)data;
  snprintf(path, sizeof(path), "/dev/cpu/%u/msr", number);
  fd = open(path, (for_writing ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

/* Also called from signal handlers: errno is preserved. */
static int real_msr_pread(void *data, int fd, uint32_t msr, uint64_t *ret_value)
{
  int before = errno, r = 0;
  uint64_t value = 0;
  ssize_t got = pread(fd, &value, sizeof(value), (off_t)msr);

  (void)data;
  if (got != sizeof(value))
    r = got < 0 ? -errno : -EIO;
  else
    *ret_value = value;
  errno = before;
  return r;
}

static int real_msr_pwrite(void *data, int fd, uint32_t msr, uint64_t value)
{
  int before = errno, r = 0;
  ssize_t done = pwrite(fd, &value, sizeof(value), (off_t)msr);

  (void)data;
  if (done != sizeof(value))
    r = done < 0 ? -errno : -EIO;
  errno = before;
  return r;
}

static void real_msr_close(void *data, int fd)
{
  (void)data;
  close(fd);
}

/* User mode only: perf_event_paranoid = 2, the kernel's default, allows that to every user. */
static struct perf_event_attr event_attributes(enum hardware_event event, uint32_t pmu)
{
  struct perf_event_attr attributes = {
    .size = sizeof(attributes),
    .type = PERF_TYPE_HARDWARE,
    .config = PERF_COUNT_HW_CPU_CYCLES,
    .disabled = 1,
    .exclude_kernel = 1,
    .exclude_hv = 1,
  };

  if (event == HARDWARE_EVENT_BTS || event == HARDWARE_EVENT_PT) {
    attributes.type = pmu;
    attributes.config = 0;
    return attributes;
  }
  if (event == HARDWARE_EVENT_CYCLES)
    return attributes;
  attributes.sample_period = 1000003;
  attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
  attributes.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
  if (event == HARDWARE_EVENT_BRANCH_SAMPLE) {
    attributes.type = PERF_TYPE_RAW; /* AMD's branch sampling works with this event and a fixed period only */
    attributes.config = 0xC4;
  }
  return attributes;
}

static int real_perf_open(void *data, enum hardware_event event, uint32_t pmu)
{
  struct perf_event_attr attributes = event_attributes(event, pmu);
  long fd;

  (void)data;
  fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0)
    return -errno;
  close((int)fd);
  return 0;
}

static int real_block_step(void *data, struct hardware_steps *ret_steps)
{
  (void)data;
  return blockstep_try(ret_steps);
}

const struct hardware_system *hardware_system_real(void)
{
  static const struct hardware_system system = {
    .cpuid = real_cpuid,
    .file_read = real_file_read,
    .msr_read = real_msr_read,
    .msr_open = real_msr_open,
    .msr_pread = real_msr_pread,
    .msr_pwrite = real_msr_pwrite,
    .msr_close = real_msr_close,
    .perf_open = real_perf_open,
    .block_step = real_block_step,
  };

  return &system;
}
