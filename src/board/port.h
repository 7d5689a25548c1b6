/* SPDX-License-Identifier: Apache-2.0
 *
 * The device at each port (port.c, port.def), and the ports that belong to no device: system control, debug, power
 * (power.c).
 */
#ifndef BOARD_PORT_H
#define BOARD_PORT_H

#include <stdbool.h>
#include <stdint.h>

#define PORT_COUNT 0x2018u /* there is no device beyond */

struct board;
struct lapic;

typedef uint32_t port_in(struct board *board, uint16_t port, unsigned size);
typedef void port_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

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

/* Fills in board->port_owner. */
void port_map(struct board *board);

void power_reset(struct board *board);
/* INIT to a processor, or to all of them, from any source: the local APIC is reset, too. */
void power_init_processor(struct board *board, struct lapic *lapic);
void power_init_signal(struct board *board);
void power_advance(struct board *board, uint64_t now);
uint64_t power_deadline(const struct board *board);
/* The RTC's alarm goes off, and its interrupt is enabled: RTC_STS. */
void power_alarm(struct board *board);

port_in system_in, debug_in, power_in;
port_out system_out, debug_out, power_out;

#endif
