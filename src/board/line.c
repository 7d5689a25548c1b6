/* SPDX-License-Identifier: Apache-2.0
 *
 * The interrupt lines of the ISA bus: each goes to an input of the 8259A and to one of the I/O APIC, and either may
 * lead to a processor, as masks and modes stand.
 */
#include "board/state.h"

#define LINES 16u

void line_set(struct board *board, unsigned irq, bool is_high)
{
  uint32_t bit = UINT32_C(1) << irq;

  if (!(board->lines & bit) == !is_high || board_is_asleep(board)) /* interrupt controllers have no power in S3 */
    return;
  board->lines ^= bit;
  pic_set(&board->pic, irq, is_high);
  ioapic_set(board, irq, is_high);
  if (irq == 0)
    ioapic_set(board, 2, is_high);
  lapic_set_pic(board);
  board->is_touched = true;
}

static bool is_pic_heard(const struct board *board)
{
  for (unsigned i = 0; i < board->config.cpus; i++)
    if (lapic_hears_pic(board, &board->lapics[i]))
      return true;
  return false;
}

bool line_reaches(const struct board *board, unsigned irq)
{
  if (irq < LINES && pic_reaches(&board->pic, irq) && is_pic_heard(board))
    return true;
  return ioapic_reaches(board, irq) || (irq == 0 && ioapic_reaches(board, 2));
}
