/* SPDX-License-Identifier: Apache-2.0
 *
 * The VGA's registers. Its text memory is ordinary RAM at 0xB8000. vga.c.
 */
#ifndef BOARD_VGA_H
#define BOARD_VGA_H

#include <stdbool.h>
#include <stdint.h>

struct board;

struct vga {
  uint8_t crtc_index, crtc[32];
  uint8_t sequencer_index, sequencer[8];
  uint8_t graphics_index, graphics[16];
  uint8_t attribute_index, attribute[32];
  bool is_attribute_data; /* the flip-flop of 0x3C0 */
  uint8_t misc, feature;
  uint8_t dac[256 * 3], dac_mask;
  uint16_t dac_read, dac_write; /* byte that is read or written next */
  bool dac_reads;               /* 0x3C7 was written last */
};

void vga_reset(struct board *board);
uint32_t vga_in(struct board *board, uint16_t port, unsigned size);
void vga_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

#endif
