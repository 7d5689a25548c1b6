/* SPDX-License-Identifier: Apache-2.0
 *
 * Two 8259A interrupt controllers, the second connected to input 2 of the first. pic.c.
 */
#ifndef BOARD_PIC_H
#define BOARD_PIC_H

#include <stdbool.h>
#include <stdint.h>

struct board;

struct pic_chip {
  uint8_t irr, isr, imr;
  uint8_t lines;  /* inputs that are high */
  uint8_t level;  /* ELCR: inputs that are level triggered */
  uint8_t base;   /* ICW2 */
  uint8_t lowest; /* input of the lowest priority: 7 unless rotated */
  uint8_t step;   /* number of the ICW that comes next, 0 when none */
  bool is_ready;  /* was programmed since reset */
  bool is_single, needs_icw4, is_auto_eoi, rotates_on_auto_eoi, has_special_mask, has_special_nesting;
  bool reads_isr, polls;
};

struct pic {
  struct pic_chip chip[2];
};

void pic_set(struct pic *pic, unsigned irq, bool is_high);
/* INT of the first chip. */
bool pic_output(const struct pic *pic);
/* Performs the two INTA cycles and returns the vector: that of IRQ 7 or 15 if the request was withdrawn meanwhile. */
uint8_t pic_acknowledge(struct pic *pic);
/* Can this input reach INT with the current masks? */
bool pic_reaches(const struct pic *pic, unsigned irq);

#endif
