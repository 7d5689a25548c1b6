/* SPDX-License-Identifier: Apache-2.0
 *
 * The interrupt lines of the ISA bus: each goes to an input of the 8259A and to one of the I/O APIC, and either may
 * lead to the processor, as masks and modes stand.
 */
#include "board/state.h"

#define LINES 16u

void line_set(struct board *board, unsigned irq, bool is_high)
{
  uint32_t bit = UINT32_C(1) << irq;
  if (!(board->lines & bit) == !is_high)
    return;
  board->lines ^= bit;
  pic_set(&board->pic, irq, is_high);
  ioapic_set(board, irq, is_high);
  if (irq == 0)
    ioapic_set(board, 2, is_high);
  lapic_set_pin(board, 0, pic_output(&board->pic));
  board->is_touched = true;
}

bool line_reaches(const struct board *board, unsigned irq)
{
  if (irq < LINES && pic_reaches(&board->pic, irq) && lapic_hears_pic(board))
    return true;
  return ioapic_reaches(board, irq) || (irq == 0 && ioapic_reaches(board, 2));
}
