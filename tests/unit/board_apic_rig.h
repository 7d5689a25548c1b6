/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers of the local APIC, for the tests of interrupts and timers.
 */
#ifndef TESTS_BOARD_APIC_RIG_H
#define TESTS_BOARD_APIC_RIG_H

#include "board_rig.h"

enum {
  ID = 0x20,
  VERSION = 0x30,
  TPR = 0x80,
  PPR = 0xA0,
  EOI = 0xB0,
  LDR = 0xD0,
  DFR = 0xE0,
  SVR = 0xF0,
  ISR = 0x100,
  TMR = 0x180,
  IRR = 0x200,
  ESR = 0x280,
  CMCI = 0x2F0,
  ICR = 0x300,
  ICR_HIGH = 0x310,
  TIMER = 0x320,
  PERF = 0x340,
  LINT0 = 0x350,
  LINT1 = 0x360,
  ERROR = 0x370,
  INITIAL = 0x380,
  CURRENT = 0x390,
  DIVIDE = 0x3E0,
};

#define MASKED 0x10000u
#define PERIODIC 0x20000u
#define TSC_DEADLINE 0x40000u
#define SELF 0x40000u

static inline void enable(struct rig *rig)
{
  apic_put(rig, SVR, 0x1FF);
}

static inline void self(struct rig *rig, uint8_t vector)
{
  apic_put(rig, ICR, SELF | vector);
}

static inline void to_x2apic(struct rig *rig)
{
  msr_put(rig, 0x1B, LAPIC | 0xD00);
}

static inline void ioapic_put(struct rig *rig, uint8_t index, uint32_t value)
{
  board_write(rig->board, IOAPIC, 4, index);
  board_write(rig->board, IOAPIC + 0x10, 4, value);
}

static inline void ioapic_route(struct rig *rig, unsigned pin, uint32_t low)
{
  ioapic_put(rig, (uint8_t)(0x11 + 2 * pin), 0);
  ioapic_put(rig, (uint8_t)(0x10 + 2 * pin), low);
}

#endif
