/* SPDX-License-Identifier: Apache-2.0
 *
 * The high precision event timer at 0xFED00000: IA-PC HPET specification 1.0a. A 64-bit counter of 100 MHz and three
 * comparators, each one-shot or periodic. Timers 0 and 1 can replace the 8254 and the clock at IRQ 0 and IRQ 8;
 * otherwise a timer goes to the input of the I/O APIC that it names, 16 to 23.
 */
#include "base/base.h"
#include "board/state.h"

enum {
  TIMER_LEVEL = 0x0002,
  TIMER_ENABLED = 0x0004,
  TIMER_PERIODIC = 0x0008,
  TIMER_PERIODIC_CAPABLE = 0x0010,
  TIMER_64_CAPABLE = 0x0020,
  TIMER_SET_VALUE = 0x0040,
  TIMER_32 = 0x0100,
};

#define TIMER_WRITABLE UINT64_C(0x3F4E) /* and the route */
#define TIMER_ROUTE(config) ((unsigned)((config) >> 9 & 31))
#define ROUTES UINT64_C(0x00FF0000)
#define CONFIG_ENABLED 1u
#define CONFIG_LEGACY 2u

struct hpet_timer {
  uint64_t config; /* the bits that software may write */
  uint64_t comparator;
  uint64_t period; /* last value written in periodic mode */
};

struct hpet {
  uint64_t config, status;
  uint64_t counter; /* at `since` */
  uint64_t since;   /* ticks */
  struct hpet_timer timer[HPET_TIMERS];
};

static struct hpet *hpet_of(const struct board *board)
{
  return device_state(board, DEVICE_NUMBER_hpet);
}

bool hpet_replaces_legacy(const struct board *board)
{
  return hpet_of(board)->config & CONFIG_LEGACY;
}

static bool hpet_is_running(const struct hpet *hpet)
{
  return hpet->config & CONFIG_ENABLED;
}

/* ---- the counter ---- */

static uint64_t hpet_counter(const struct hpet *hpet, uint64_t now)
{
  uint64_t ticks = hpet_is_running(hpet) ? clock_since(hpet->since, clock_ticks(now, HPET_HERTZ)) : 0;

  return hpet->counter + ticks;
}

static uint64_t timer_mask(const struct hpet_timer *timer)
{
  return timer->config & TIMER_32 ? UINT32_MAX : UINT64_MAX;
}

/* ---- interrupts ---- */

/* The ISA line of a timer, or its I/O APIC input + 16; -1 when its route leads nowhere. */
static int timer_line(const struct board *board, unsigned number)
{
  unsigned route = TIMER_ROUTE(hpet_of(board)->timer[number].config);

  if (hpet_replaces_legacy(board) && number < 2)
    return number == 0 ? 0 : 8;
  return ROUTES >> route & 1 ? (int)route : -1;
}

static void timer_set_line(struct board *board, unsigned number, bool is_high)
{
  int line = timer_line(board, number);

  if (line >= 16)
    ioapic_set(board, (unsigned)line, is_high);
  else if (line >= 0)
    line_set(board, (unsigned)line, is_high);
  board->is_touched = true;
}

static bool timer_reaches(const struct board *board, unsigned number)
{
  int line = timer_line(board, number);

  if (line < 0 || !(hpet_of(board)->timer[number].config & TIMER_ENABLED))
    return false;
  return line >= 16 ? ioapic_reaches(board, (unsigned)line) : line_reaches(board, (unsigned)line);
}

static void timer_fire(struct board *board, unsigned number)
{
  const struct hpet_timer *timer = &hpet_of(board)->timer[number];

  if (timer->config & TIMER_LEVEL)
    hpet_of(board)->status |= UINT64_C(1) << number;
  if (!(timer->config & TIMER_ENABLED))
    return;
  if (!(timer->config & TIMER_LEVEL))
    timer_set_line(board, number, false);
  timer_set_line(board, number, true);
}

/* ---- comparators ---- */

/* Ticks until the counter reaches the comparator; a full cycle of the counter if the two are equal now. */
static uint64_t timer_ahead(const struct hpet_timer *timer, uint64_t counter)
{
  uint64_t mask = timer_mask(timer), ahead = (timer->comparator - counter) & mask;

  return ahead ? ahead : mask == UINT64_MAX ? UINT64_MAX : mask + 1;
}

/* Returns whether the counter, `ticks` after `before`, has reached the comparator. A periodic comparator skips all
 * periods that have passed. */
static bool timer_passes(struct hpet_timer *timer, uint64_t before, uint64_t ticks)
{
  uint64_t ahead = timer_ahead(timer, before);

  if (ticks < ahead)
    return false;
  if ((timer->config & TIMER_PERIODIC) && timer->period)
    timer->comparator = (timer->comparator + ((ticks - ahead) / timer->period + 1) * timer->period) & timer_mask(timer);
  return true;
}

static void hpet_advance(struct board *board, uint64_t now)
{
  struct hpet *hpet = hpet_of(board);
  uint64_t tick = clock_ticks(now, HPET_HERTZ), ticks = clock_since(hpet->since, tick), before = hpet->counter;

  if (!hpet_is_running(hpet) || ticks == 0)
    return;
  hpet->counter += ticks;
  hpet->since = tick;
  for (unsigned i = 0; i < HPET_TIMERS; i++)
    if (timer_passes(&hpet->timer[i], before, ticks))
      timer_fire(board, i);
}

static uint64_t hpet_deadline(const struct board *board)
{
  const struct hpet *hpet = hpet_of(board);
  uint64_t deadline = CLOCK_NEVER;

  if (!hpet_is_running(hpet))
    return deadline;
  for (unsigned i = 0; i < HPET_TIMERS; i++) {
    uint64_t ahead = timer_ahead(&hpet->timer[i], hpet->counter);

    if (ahead <= CLOCK_NEVER - hpet->since && timer_reaches(board, i))
      deadline = clock_earlier(deadline, clock_time(hpet->since + ahead, HPET_HERTZ));
  }
  return deadline;
}

/* ---- registers ---- */

static uint64_t hpet_read(struct board *board, unsigned offset)
{
  const struct hpet *hpet = hpet_of(board);
  unsigned number = (offset - 0x100) / 0x20;

  switch (offset) {
  case 0x00:
    return HPET_CAPABILITIES;
  case 0x10:
    return hpet->config;
  case 0x20:
    return hpet->status;
  case 0xF0:
    return hpet_counter(hpet, board_now(board));
  default:
    break;
  }
  if (offset < 0x100 || number >= HPET_TIMERS)
    return 0;
  if ((offset & 0x1F) == 0)
    return hpet->timer[number].config | TIMER_PERIODIC_CAPABLE | TIMER_64_CAPABLE | ROUTES << 32;
  return (offset & 0x1F) == 8 ? hpet->timer[number].comparator : 0;
}

static uint64_t hpet_read_memory(struct board *board, uint64_t address, unsigned size)
{
  unsigned offset = (unsigned)(address & 0xFFF), shift = 8 * (offset & 7);

  (void)size;
  hpet_advance(board, board_now(board));
  return hpet_read(board, offset & ~7u) >> shift;
}

/* Takes IRQ 0 and 8 away from the 8254 and the RTC, or gives them back. The RTC's line is high until its interrupt is
 * served. */
static void legacy_changed(struct board *board)
{
  if (hpet_replaces_legacy(board)) {
    line_set(board, 0, false);
    line_set(board, 8, false);
  } else
    rtc_signal(board);
}

/* Starting and stopping keep the count. The timers release lines 0 and 8 before the lines change their owner. */
static void hpet_write_config(struct board *board, uint64_t value)
{
  struct hpet *hpet = hpet_of(board);
  bool changes_legacy = (hpet->config ^ value) & CONFIG_LEGACY;

  if (changes_legacy) {
    timer_set_line(board, 0, false);
    timer_set_line(board, 1, false);
  }
  hpet->config = value & (CONFIG_ENABLED | CONFIG_LEGACY);
  if (changes_legacy)
    legacy_changed(board);
  hpet->since = clock_ticks(board_now(board), HPET_HERTZ);
}

static void hpet_write_status(struct board *board, uint64_t value)
{
  for (unsigned i = 0; i < HPET_TIMERS; i++)
    if ((value & hpet_of(board)->status) >> i & 1) {
      hpet_of(board)->status &= ~(UINT64_C(1) << i);
      timer_set_line(board, i, false);
    }
}

static void timer_write_config(struct board *board, unsigned number, uint64_t value)
{
  struct hpet_timer *timer = &hpet_of(board)->timer[number];
  uint64_t config = value & TIMER_WRITABLE;
  bool is_same = timer->config && !((timer->config ^ config) & (TIMER_WRITABLE & ~(uint64_t)TIMER_SET_VALUE));

  if (!is_same && timer->config)
    timer_set_line(board, number, false);
  timer->config = config;
  if (config & TIMER_32) {
    timer->comparator &= UINT32_MAX;
    timer->period &= UINT32_MAX;
  }
  if ((hpet_of(board)->status >> number & 1) && (config & TIMER_LEVEL) && (config & TIMER_ENABLED))
    timer_set_line(board, number, true);
}

/* In periodic mode a write sets the period, and also the comparator if TIMER_SET_VALUE was set just before (2.3.9.2.2).
 * Every write clears that bit, even a write of one half. */
static void timer_write_comparator(struct hpet_timer *timer, uint64_t value, uint64_t bits)
{
  bool is_periodic = timer->config & TIMER_PERIODIC;

  bits &= timer_mask(timer);
  if (!is_periodic || (timer->config & TIMER_SET_VALUE))
    timer->comparator = (timer->comparator & ~bits) | (value & bits);
  if (is_periodic)
    timer->period = (timer->period & ~bits) | (value & bits);
  timer->config &= ~(uint64_t)TIMER_SET_VALUE;
}

static void hpet_write(struct board *board, unsigned offset, uint64_t value, uint64_t bits)
{
  struct hpet *hpet = hpet_of(board);
  uint64_t whole = (hpet_read(board, offset) & ~bits) | (value & bits);
  unsigned number = (offset - 0x100) / 0x20;

  if (offset == 0x10)
    hpet_write_config(board, whole);
  else if (offset == 0x20)
    hpet_write_status(board, value & bits);
  else if (offset == 0xF0) {
    hpet->counter = whole;
    hpet->since = clock_ticks(board_now(board), HPET_HERTZ);
  } else if (offset >= 0x100 && number < HPET_TIMERS) {
    if ((offset & 0x1F) == 0)
      timer_write_config(board, number, whole);
    else if ((offset & 0x1F) == 8)
      timer_write_comparator(&hpet->timer[number], value, bits);
  }
}

/* Accepts writes of a whole register or of one half. */
static void hpet_write_memory(struct board *board, uint64_t address, unsigned size, uint64_t value)
{
  unsigned offset = (unsigned)(address & 0xFFF), shift = 8 * (offset & 7);

  if (size == 8 && shift == 0)
    hpet_write(board, offset, value, UINT64_MAX);
  else if (size == 4 && (shift == 0 || shift == 32))
    hpet_write(board, offset & ~7u, value << shift, UINT64_C(0xFFFFFFFF) << shift);
}

static void hpet_reset(struct board *board)
{
  *hpet_of(board) = (struct hpet){.since = clock_ticks(board_now(board), HPET_HERTZ)};
  for (unsigned i = 0; i < HPET_TIMERS; i++)
    hpet_of(board)->timer[i].comparator = UINT64_MAX;
}

static bool hpet_owns(const struct board *board, uint64_t address)
{
  (void)board;
  return address >> 12 == HPET_BASE >> 12;
}

/* ---- saving ---- */

static void hpet_archive(struct archive *archive, struct board *board)
{
  struct hpet *hpet = hpet_of(board);

  archive_value(archive, &hpet->config);
  archive_value(archive, &hpet->status);
  archive_value(archive, &hpet->counter);
  archive_value(archive, &hpet->since);
  for (unsigned i = 0; i < HPET_TIMERS; i++) {
    archive_value(archive, &hpet->timer[i].config);
    archive_value(archive, &hpet->timer[i].comparator);
    archive_value(archive, &hpet->timer[i].period);
  }
}

const struct device device_hpet = {
  DEVICE_STATE(hpet), .reset = hpet_reset,      .advance = hpet_advance,    .deadline = hpet_deadline,
  .owns = hpet_owns,  .read = hpet_read_memory, .write = hpet_write_memory, .archive = hpet_archive,
};
