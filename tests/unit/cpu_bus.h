/* SPDX-License-Identifier: Apache-2.0
 *
 * A processor's bus with nobody on it, for tests of instructions: reads give all ones, writes are lost, there is no
 * local APIC. A test that needs one of the callbacks copies the bus and replaces that one.
 */
#ifndef TESTS_CPU_BUS_H
#define TESTS_CPU_BUS_H

#include "cpu/cpu.h"

static inline uint32_t idle_in(void *data, uint16_t port, unsigned size)
{
  (void)data, (void)port, (void)size;
  return UINT32_MAX;
}

static inline void idle_out(void *data, uint16_t port, unsigned size, uint32_t value)
{
  (void)data, (void)port, (void)size, (void)value;
}

static inline uint64_t idle_read(void *data, uint64_t address, unsigned size)
{
  (void)data, (void)address, (void)size;
  return UINT64_MAX;
}

static inline void idle_write(void *data, uint64_t address, unsigned size, uint64_t value)
{
  (void)data, (void)address, (void)size, (void)value;
}

static inline uint8_t idle_acknowledge(void *data)
{
  (void)data;
  return 0xFF;
}

static inline int idle_apic_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  (void)data, (void)msr, (void)ret_value;
  return -1;
}

static inline int idle_apic_write(void *data, uint32_t msr, uint64_t value)
{
  (void)data, (void)msr, (void)value;
  return -1;
}

static inline uint8_t idle_priority(void *data)
{
  (void)data;
  return 0;
}

static inline void idle_byte(void *data, uint8_t value)
{
  (void)data, (void)value;
}

static inline void idle_signal(void *data)
{
  (void)data;
}

static inline void idle_message(void *data, const struct lb_message *message)
{
  (void)data, (void)message;
}

static const struct cpu_bus bus_idle = {
  .in = idle_in,
  .out = idle_out,
  .mmio_read = idle_read,
  .mmio_write = idle_write,
  .acknowledge = idle_acknowledge,
  .apic_read = idle_apic_read,
  .apic_write = idle_apic_write,
  .task_priority = idle_priority,
  .set_task_priority = idle_byte,
  .pmi = idle_signal,
  .ferr = idle_signal,
  .message = idle_message,
  .service = idle_byte,
};

#endif
