/* SPDX-License-Identifier: Apache-2.0
 *
 * System control, debug ports, and ACPI's fixed registers. power.c.
 */
#ifndef BOARD_POWER_H
#define BOARD_POWER_H

#include <stdbool.h>
#include <stdint.h>

struct board;
struct lapic;

/* ACPI's S3: the machine sleeps, or an event has ended its sleep and the host has not called board_wake yet. */
enum power_sleep { POWER_AWAKE, POWER_ASLEEP, POWER_WAKING };

/* System control ports and ACPI's fixed registers. */
struct power {
  uint8_t control_61;
  uint8_t control_92;
  bool was_init; /* INIT came last, not a reset of everything */
  uint8_t reset; /* port 0xCF9 */
  uint8_t apm[2];
  uint8_t post;
  uint16_t status, enable, control; /* of PM1 */
  uint64_t seen;                    /* ticks of the PM timer */
  enum power_sleep sleep;
};

/* INIT to a processor, or to all of them, from any source: the local APIC is reset, too. */
void power_init_processor(struct board *board, struct lapic *lapic);
void power_init_signal(struct board *board);
uint64_t power_deadline(const struct board *board);
/* The RTC's alarm goes off, and its interrupt is enabled: RTC_STS. */
void power_alarm(struct board *board);

#endif
