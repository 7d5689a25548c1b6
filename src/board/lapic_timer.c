/* SPDX-License-Identifier: Apache-2.0
 *
 * The local APIC's timer: one-shot, periodic and TSC-deadline. SDM vol. 3, 10.5.4. It counts the divided bus clock of
 * 100 MHz whether or not its interrupt is masked; a periodic timer that fell behind interrupts once.
 */
#include "board/state.h"

#define BUS_HERTZ UINT64_C(100000000)

enum { TIMER_ONE_SHOT, TIMER_PERIODIC, TIMER_TSC_DEADLINE };

static unsigned timer_mode(const struct lapic *lapic)
{
  return LVT_TIMER_MODE(lapic->lvt[LVT_TIMER]);
}

static uint64_t timer_tick(const struct board *board)
{
  return clock_ticks(board_now(board), BUS_HERTZ);
}

/* Bits 3, 1 and 0: 2 to 128, and 1 for 111 (figure 10-10). */
static uint64_t timer_divisor(const struct lapic_timer *timer)
{
  unsigned code = (timer->divide & 3) | (timer->divide >> 1 & 4);

  return code == 7 ? 1 : UINT64_C(2) << code;
}

/* ---- counting ---- */

static uint64_t timer_elapsed(const struct lapic_timer *timer, uint64_t tick)
{
  return clock_since(timer->since, tick) / timer_divisor(timer);
}

/* The count has reached 0, perhaps many times. */
static void timer_expire(struct lapic_timer *timer, uint64_t elapsed, bool is_periodic)
{
  if (!is_periodic || timer->initial == 0) {
    timer->is_counting = false;
    return;
  }
  uint64_t times = (elapsed - timer->count) / timer->initial;
  timer->since += (timer->count + times * timer->initial) * timer_divisor(timer);
  timer->count = timer->initial;
}

static void timer_advance(struct board *board, struct lapic *lapic, uint64_t now)
{
  struct lapic_timer *timer = &lapic->timer;

  if (timer->is_counting) {
    uint64_t elapsed = timer_elapsed(timer, clock_ticks(now, BUS_HERTZ));

    if (elapsed < timer->count)
      return;
    timer_expire(timer, elapsed, timer_mode(lapic) == TIMER_PERIODIC);
  } else if (timer->tsc_deadline && now >= timer->tsc_due)
    timer->tsc_deadline = 0;
  else
    return;
  lapic_raise_lvt(board, lapic, LVT_TIMER);
}

void lapic_timer_advance(struct board *board, uint64_t now)
{
  for (unsigned i = 0; i < board->config.cpus; i++)
    timer_advance(board, &board->lapics[i], now);
}

static uint64_t timer_deadline(const struct board *board, const struct lapic *lapic)
{
  const struct lapic_timer *timer = &lapic->timer;

  if (!lapic_is_on(board, lapic) || (lapic->lvt[LVT_TIMER] & LVT_MASKED))
    return CLOCK_NEVER;
  if (timer->is_counting)
    return clock_time(timer->since + timer->count * timer_divisor(timer), BUS_HERTZ);
  return timer->tsc_deadline ? timer->tsc_due : CLOCK_NEVER;
}

uint64_t lapic_timer_deadline(const struct board *board)
{
  uint64_t deadline = CLOCK_NEVER;

  for (unsigned i = 0; i < board->config.cpus; i++)
    deadline = clock_earlier(deadline, timer_deadline(board, &board->lapics[i]));
  return deadline;
}

uint32_t lapic_timer_count(const struct board *board, const struct lapic *lapic)
{
  const struct lapic_timer *timer = &lapic->timer;

  if (!timer->is_counting)
    return 0;
  uint64_t elapsed = timer_elapsed(timer, timer_tick(board));
  return elapsed < timer->count ? timer->count - (uint32_t)elapsed : 0;
}

/* ---- programming; the caller has brought the timer to now ---- */

void lapic_timer_set_initial(struct board *board, struct lapic *lapic, uint32_t value)
{
  struct lapic_timer *timer = &lapic->timer;

  if (timer_mode(lapic) == TIMER_TSC_DEADLINE)
    return; /* ignored in this mode */
  timer->initial = timer->count = value;
  timer->since = timer_tick(board);
  timer->is_counting = value != 0;
}

void lapic_timer_set_divide(struct board *board, struct lapic *lapic, uint32_t value)
{
  struct lapic_timer *timer = &lapic->timer;
  uint32_t count = lapic_timer_count(board, lapic);

  timer->divide = value;
  timer->since = timer_tick(board);
  timer->count = count;
  timer->is_counting = timer->is_counting && count;
}

/* A change between one-shot and periodic mode keeps the count. A change to or from TSC-deadline mode disarms the
 * timer. */
void lapic_timer_change_mode(struct lapic *lapic, uint32_t entry)
{
  struct lapic_timer *timer = &lapic->timer;
  bool was_deadline = timer_mode(lapic) == TIMER_TSC_DEADLINE;

  if (was_deadline == (LVT_TIMER_MODE(entry) == TIMER_TSC_DEADLINE))
    return;
  timer->is_counting = false;
  timer->initial = timer->count = 0;
  timer->tsc_deadline = 0;
}

/* ---- TSC-deadline ---- */

static void timer_plan_deadline(struct board *board, struct lapic *lapic)
{
  struct lapic_timer *timer = &lapic->timer;
  uint64_t hertz = board->config.tsc_per_second, ticks = clock_ticks(board_now(board), hertz);
  uint64_t ahead = timer->tsc_deadline > ticks ? timer->tsc_deadline - ticks : 0;

  timer->tsc_due = ahead > CLOCK_NEVER - ticks ? CLOCK_NEVER : clock_time(ticks + ahead, hertz);
}

void lapic_timer_set_deadline(struct board *board, struct lapic *lapic, uint64_t value)
{
  if (timer_mode(lapic) != TIMER_TSC_DEADLINE)
    return;
  lapic->timer.tsc_deadline = value;
  timer_plan_deadline(board, lapic);
  timer_advance(board, lapic, board_now(board)); /* a deadline in the past is due at once */
}

void lapic_timer_reset(struct board *board, struct lapic *lapic)
{
  lapic->timer = (struct lapic_timer){.since = timer_tick(board)};
}
