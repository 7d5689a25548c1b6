/* SPDX-License-Identifier: Apache-2.0
 *
 * The I/O APIC at 0xFEC00000. ioapic.c.
 */
#ifndef BOARD_IOAPIC_H
#define BOARD_IOAPIC_H

#include <stdbool.h>
#include <stdint.h>

#define IOAPIC_BASE UINT64_C(0xFEC00000)
#define IOAPIC_PINS 24u

struct board;
struct lapic;

struct ioapic {
  uint8_t index, id;
  uint32_t lines;              /* pins that are high */
  uint64_t entry[IOAPIC_PINS]; /* redirection table */
};

void ioapic_set(struct board *board, unsigned pin, bool is_high);
/* Handles the EOI of a local APIC for this vector. */
void ioapic_eoi(struct board *board, uint8_t vector);
/* Offers the refused interrupts of level-triggered pins again. */
void ioapic_retry(struct board *board);
bool ioapic_reaches(const struct board *board, unsigned pin);
/* Is pin 0 set up to pass the 8259A's INT to this processor? */
bool ioapic_passes_extint(const struct board *board, const struct lapic *lapic);

#endif
