/* SPDX-License-Identifier: Apache-2.0
 *
 * /dev/cpu/N/msr: a read or write of 8 bytes at offset M is RDMSR or WRMSR of M on processor N. #GP becomes EIO. Linux
 * arch/x86/kernel/msr.c.
 */
#include "hardware/device.h"

#include <errno.h>

#include "hardware/hardware.h"

static int device_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  const struct hardware_device *device = data;

  return device->system->msr_pread(device->system->data, device->fd, msr, ret_value);
}

static int device_write(void *data, uint32_t msr, uint64_t value)
{
  const struct hardware_device *device = data;
  int r = device->system->msr_pwrite(device->system->data, device->fd, msr, value);

  return r == -EBADF ? -EACCES : r; /* opened for reading only */
}

int hardware_device_open(const struct hardware_system *system, unsigned number, struct hardware_device *ret_device)
{
  int fd = system->msr_open(system->data, number, true);

  if (fd == -EACCES || fd == -EROFS)
    fd = system->msr_open(system->data, number, false);
  if (fd < 0)
    return fd;
  *ret_device = (struct hardware_device){
    .system = system,
    .fd = fd,
    .number = number,
    .registers = {.data = ret_device, .read = device_read, .write = device_write},
  };
  return 0;
}

void hardware_device_close(struct hardware_device *device)
{
  device->system->msr_close(device->system->data, device->fd);
}
