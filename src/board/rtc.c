/* SPDX-License-Identifier: Apache-2.0
 *
 * The real-time clock at ports 0x70 and 0x71, Motorola's data sheet of the MC146818A. Seconds are counted from a base;
 * the registers are filled in when they are read. The date follows the Gregorian calendar, and the day of the week
 * follows the date, whatever was written there.
 */
#include <time.h>

#include "base/base.h"
#include "board/state.h"

enum {
  RTC_SECOND,
  RTC_SECOND_ALARM,
  RTC_MINUTE,
  RTC_MINUTE_ALARM,
  RTC_HOUR,
  RTC_HOUR_ALARM,
  RTC_WEEKDAY,
  RTC_DAY,
  RTC_MONTH,
  RTC_YEAR,
  RTC_A,
  RTC_B,
  RTC_C,
  RTC_D,
};

#define A_UPDATING 0x80
#define A_DIVIDER 0x70
#define A_DIVIDER_RESET 0x60
#define A_RATE 0x0F
#define B_SET 0x80
#define B_BINARY 0x04
#define B_24_HOURS 0x02
#define FLAG_PERIODIC 0x40 /* in B: enabled; in C: happened */
#define FLAG_ALARM 0x20
#define FLAG_UPDATE 0x10
#define C_IRQ 0x80
#define D_VALID 0x80
#define HOUR_PM 0x80
#define ALARM_ANY 0xC0 /* both upper bits: every hour, minute, second */

#define IRQ_RTC 8
#define UPDATE_TIME UINT64_C(2228000) /* 244 us of warning and 1984 us of update */
#define DAY_SECONDS 86400
#define YEAR_MAX INT64_C(253402300799) /* end of 9999 */
#define YEAR_MIN INT64_C(-62167219200) /* start of 0 */

/* ---- time ---- */

/* SET stops updates, a divider held in reset stops everything. */
static bool rtc_is_running(const struct rtc *rtc)
{
  return !(rtc->cmos[RTC_B] & B_SET) && (rtc->cmos[RTC_A] & A_DIVIDER_RESET) != A_DIVIDER_RESET;
}

static int64_t rtc_seconds(const struct rtc *rtc, uint64_t now)
{
  int64_t seconds = rtc->seconds + (int64_t)(clock_since(rtc->base, now) / CLOCK_SECOND);

  return seconds > YEAR_MAX ? YEAR_MAX : seconds;
}

static uint8_t rtc_encode(const struct rtc *rtc, int number)
{
  unsigned value = (unsigned)number;

  return (uint8_t)(rtc->cmos[RTC_B] & B_BINARY ? value : value / 10 % 10 << 4 | value % 10);
}

static int rtc_decode(const struct rtc *rtc, uint8_t value)
{
  return rtc->cmos[RTC_B] & B_BINARY ? value : (value >> 4) * 10 + (value & 15);
}

static uint8_t rtc_encode_hour(const struct rtc *rtc, int hour)
{
  if (rtc->cmos[RTC_B] & B_24_HOURS)
    return rtc_encode(rtc, hour);
  uint8_t value = rtc_encode(rtc, hour % 12 ? hour % 12 : 12);
  return (uint8_t)(value | (hour >= 12 ? HOUR_PM : 0));
}

static int rtc_decode_hour(const struct rtc *rtc, uint8_t value)
{
  if (rtc->cmos[RTC_B] & B_24_HOURS)
    return rtc_decode(rtc, value);
  return rtc_decode(rtc, value & (uint8_t)~HOUR_PM) % 12 + (value & HOUR_PM ? 12 : 0);
}

/* Fills in the registers, unless software has stopped them. */
static void rtc_show(struct rtc *rtc, uint64_t now)
{
  time_t seconds = rtc_seconds(rtc, now);
  struct tm date;

  if (!rtc_is_running(rtc) || !gmtime_r(&seconds, &date))
    return;
  int year = date.tm_year + 1900;
  rtc->cmos[RTC_SECOND] = rtc_encode(rtc, date.tm_sec);
  rtc->cmos[RTC_MINUTE] = rtc_encode(rtc, date.tm_min);
  rtc->cmos[RTC_HOUR] = rtc_encode_hour(rtc, date.tm_hour);
  rtc->cmos[RTC_WEEKDAY] = rtc_encode(rtc, date.tm_wday + 1);
  rtc->cmos[RTC_DAY] = rtc_encode(rtc, date.tm_mday);
  rtc->cmos[RTC_MONTH] = rtc_encode(rtc, date.tm_mon + 1);
  rtc->cmos[RTC_YEAR] = rtc_encode(rtc, year % 100);
  rtc->cmos[CMOS_CENTURY] = (uint8_t)(year / 1000 << 4 | year / 100 % 10); /* BCD whatever B says */
}

/* Takes the time from the registers. The fraction of the running second stays. */
static void rtc_take(struct rtc *rtc, uint64_t now)
{
  uint8_t century = rtc->cmos[CMOS_CENTURY];
  struct tm date = {
    .tm_sec = rtc_decode(rtc, rtc->cmos[RTC_SECOND]),
    .tm_min = rtc_decode(rtc, rtc->cmos[RTC_MINUTE]),
    .tm_hour = rtc_decode_hour(rtc, rtc->cmos[RTC_HOUR]),
    .tm_mday = rtc_decode(rtc, rtc->cmos[RTC_DAY]),
    .tm_mon = rtc_decode(rtc, rtc->cmos[RTC_MONTH]) - 1,
    .tm_year = ((century >> 4) * 10 + (century & 15)) * 100 + rtc_decode(rtc, rtc->cmos[RTC_YEAR]) - 1900,
  };
  uint64_t phase = clock_since(rtc->base, now) % CLOCK_SECOND;
  int64_t seconds = timegm(&date);

  rtc->seconds = seconds > YEAR_MAX ? YEAR_MAX : seconds < YEAR_MIN ? YEAR_MIN : seconds;
  rtc->base = now - clock_earlier(phase, now);
}

/* ---- what happens by itself ---- */

/* Ticks of 32768 Hz between two periodic interrupts; 0 for none. */
static uint64_t rtc_period(const struct rtc *rtc)
{
  unsigned rate = rtc->cmos[RTC_A] & A_RATE;

  if (rate == 0 || (rtc->cmos[RTC_A] & A_DIVIDER_RESET) == A_DIVIDER_RESET)
    return 0;
  return UINT64_C(1) << (rate <= 2 ? rate + 6 : rate - 1); /* 1 and 2 stand for 256 and 128 Hz */
}

/* The second after `after` at which the alarm goes off; INT64_MAX for never. Leaps over hours and minutes that differ.
 */
static int64_t rtc_next_alarm(const struct rtc *rtc, int64_t after)
{
  const uint8_t *cmos = rtc->cmos;
  int64_t second = after + 1;

  for (unsigned i = 0; i < 24 + 60 + 60 + 3; i++) {
    int64_t day = ((second % DAY_SECONDS) + DAY_SECONDS) % DAY_SECONDS;

    if (cmos[RTC_HOUR_ALARM] < ALARM_ANY && rtc_decode_hour(rtc, cmos[RTC_HOUR_ALARM]) != day / 3600)
      second += 3600 - day % 3600;
    else if (cmos[RTC_MINUTE_ALARM] < ALARM_ANY && rtc_decode(rtc, cmos[RTC_MINUTE_ALARM]) != day / 60 % 60)
      second += 60 - day % 60;
    else if (cmos[RTC_SECOND_ALARM] < ALARM_ANY && rtc_decode(rtc, cmos[RTC_SECOND_ALARM]) != day % 60)
      second++;
    else
      return second;
  }
  return INT64_MAX;
}

void rtc_signal(struct board *board)
{
  uint8_t *cmos = board->rtc.cmos;
  bool is_on = cmos[RTC_C] & cmos[RTC_B] & (FLAG_PERIODIC | FLAG_ALARM | FLAG_UPDATE);

  cmos[RTC_C] = (uint8_t)((cmos[RTC_C] & ~C_IRQ) | (is_on ? C_IRQ : 0));
  if (!hpet_replaces_legacy(board))
    line_set(board, IRQ_RTC, is_on);
}

void rtc_advance(struct board *board, uint64_t now)
{
  struct rtc *rtc = &board->rtc;
  uint64_t period = rtc_period(rtc), seen = rtc->seen;
  uint8_t flags = 0;

  if (now <= seen)
    return;
  rtc->seen = now;
  if (period && clock_ticks(now, RTC_HERTZ) / period != clock_ticks(seen, RTC_HERTZ) / period)
    flags |= FLAG_PERIODIC;
  if (rtc_is_running(rtc)) {
    int64_t before = rtc_seconds(rtc, seen), after = rtc_seconds(rtc, now);

    if (before != after)
      flags |= FLAG_UPDATE;
    if (before != after && rtc_next_alarm(rtc, before) <= after)
      flags |= FLAG_ALARM;
  }
  if (flags & rtc->cmos[RTC_B] & FLAG_ALARM)
    power_alarm(board);
  if (!(flags & ~rtc->cmos[RTC_C]))
    return;
  rtc->cmos[RTC_C] |= flags;
  rtc_signal(board);
}

/* When this second begins. The clock stands still at the end of 9999. */
static uint64_t rtc_second_time(const struct rtc *rtc, int64_t second)
{
  uint64_t ahead = (uint64_t)(second - rtc->seconds);

  if (second > YEAR_MAX)
    return CLOCK_NEVER;
  return ahead > (CLOCK_NEVER - rtc->base) / CLOCK_SECOND ? CLOCK_NEVER : rtc->base + ahead * CLOCK_SECOND;
}

uint64_t rtc_alarm_time(const struct board *board)
{
  const struct rtc *rtc = &board->rtc;

  if (!(rtc->cmos[RTC_B] & FLAG_ALARM) || !rtc_is_running(rtc))
    return CLOCK_NEVER;
  int64_t alarm = rtc_next_alarm(rtc, rtc_seconds(rtc, rtc->seen));
  return alarm == INT64_MAX ? CLOCK_NEVER : rtc_second_time(rtc, alarm);
}

static uint64_t rtc_deadline(const struct board *board)
{
  const struct rtc *rtc = &board->rtc;
  uint64_t period = rtc_period(rtc), deadline = CLOCK_NEVER;
  uint8_t enabled = rtc->cmos[RTC_B];

  if ((rtc->cmos[RTC_C] & C_IRQ) || !(enabled & (FLAG_PERIODIC | FLAG_ALARM | FLAG_UPDATE)))
    return CLOCK_NEVER;
  if (hpet_replaces_legacy(board) || !line_reaches(board, IRQ_RTC))
    return CLOCK_NEVER;
  if ((enabled & FLAG_PERIODIC) && period)
    deadline = clock_time((clock_ticks(rtc->seen, RTC_HERTZ) / period + 1) * period, RTC_HERTZ);
  if (!rtc_is_running(rtc))
    return deadline;
  if (enabled & FLAG_UPDATE)
    deadline = clock_earlier(deadline, rtc_second_time(rtc, rtc_seconds(rtc, rtc->seen) + 1));
  return clock_earlier(deadline, rtc_alarm_time(board));
}

/* ---- ports ---- */

static uint8_t rtc_read(struct board *board, unsigned index)
{
  struct rtc *rtc = &board->rtc;
  uint64_t now = board_now(board);

  rtc_advance(board, now);
  rtc_show(rtc, now);
  uint8_t value = rtc->cmos[index];
  if (index == RTC_A && rtc_is_running(rtc) && CLOCK_SECOND - clock_since(rtc->base, now) % CLOCK_SECOND <= UPDATE_TIME)
    value |= A_UPDATING;
  if (index == RTC_C) {
    rtc->cmos[RTC_C] = 0;
    rtc_signal(board);
    board->is_touched = true; /* the next interrupt has a deadline again, even with the line low: the HPET may own it */
  }
  return value;
}

static bool is_time(unsigned index)
{
  return index == RTC_SECOND || index == RTC_MINUTE || index == RTC_HOUR ||
         (index >= RTC_WEEKDAY && index <= RTC_YEAR) || index == CMOS_CENTURY;
}

/* Writes register A or B, which may stop or restart the clock. */
static void rtc_write_control(struct rtc *rtc, unsigned index, uint8_t value, uint64_t now)
{
  bool was_running = rtc_is_running(rtc), was_reset = (rtc->cmos[RTC_A] & A_DIVIDER_RESET) == A_DIVIDER_RESET;

  rtc->cmos[index] = value;
  if (index == RTC_B && (value & B_SET))
    rtc->cmos[RTC_B] &= (uint8_t)~FLAG_UPDATE; /* SET clears UIE */
  if (was_running || !rtc_is_running(rtc))
    return;
  if (was_reset) /* the first update comes half a second after the divider's reset ends */
    rtc->base = now - clock_earlier(now, CLOCK_SECOND / 2);
  rtc_take(rtc, now);
}

static void rtc_write(struct board *board, unsigned index, uint8_t value)
{
  struct rtc *rtc = &board->rtc;
  uint64_t now = board_now(board);

  rtc_advance(board, now);
  rtc_show(rtc, now);
  switch (index) {
  case RTC_A:
    rtc_write_control(rtc, RTC_A, value & (uint8_t)~A_UPDATING, now);
    break;
  case RTC_B:
    rtc_write_control(rtc, RTC_B, value, now);
    rtc_signal(board);
    break;
  case RTC_C:
  case RTC_D:
    break; /* read-only */
  default:
    rtc->cmos[index] = value;
    if (is_time(index) && rtc_is_running(rtc))
      rtc_take(rtc, now);
    break;
  }
}

static uint32_t rtc_in(struct board *board, uint16_t port, unsigned size)
{
  (void)size;
  return port & 1 ? rtc_read(board, board->rtc.index) : 0xFF; /* the index cannot be read */
}

static void rtc_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  (void)size;
  if (port & 1) {
    rtc_write(board, board->rtc.index, (uint8_t)value);
    return;
  }
  board->rtc.index = value & (CMOS_SIZE - 1);
  board->rtc.nmi_is_masked = value & 0x80;
}

/* RESET# clears the enables and flags, not the time, the modes or the memory. */
static void rtc_reset(struct board *board)
{
  struct rtc *rtc = &board->rtc;
  uint64_t now = board_now(board);

  if (now < rtc->seen) { /* the machine's time starts again */
    rtc->seconds = rtc_seconds(rtc, rtc->seen);
    rtc->base = 0;
  }
  rtc->cmos[RTC_B] &= B_SET | B_BINARY | B_24_HOURS;
  rtc->cmos[RTC_C] = 0;
  rtc->index = RTC_D;
  rtc->nmi_is_masked = false;
  rtc->seen = now;
}

static void rtc_power_on(struct board *board)
{
  struct rtc *rtc = &board->rtc;
  int64_t seconds = board->config.wall_clock;

  *rtc = (struct rtc){.seconds = seconds > YEAR_MAX ? YEAR_MAX : seconds < YEAR_MIN ? YEAR_MIN : seconds};
  rtc->cmos[RTC_A] = 0x26; /* 32768 Hz, 1024 interrupts in a second: as a PC's firmware leaves it */
  rtc->cmos[RTC_B] = B_24_HOURS;
  rtc->cmos[RTC_D] = D_VALID;
  cmos_fill(board);
}

/* ---- saving ---- */

static void rtc_archive(struct archive *archive, struct board *board)
{
  struct rtc *rtc = &board->rtc;

  archive_most(archive, &rtc->index, CMOS_SIZE - 1);
  archive_flag(archive, &rtc->nmi_is_masked);
  archive_array(archive, rtc->cmos);
  archive_value(archive, &rtc->seconds);
  archive_value(archive, &rtc->base);
  archive_value(archive, &rtc->seen);
  if (rtc->seconds > YEAR_MAX || rtc->seconds < YEAR_MIN)
    archive_refuse(archive);
}

static const struct port_range rtc_ports[] = {
  {0x070, 0x071, 0, rtc_in, rtc_out},
  {0},
};

const struct device device_rtc = {
  .ports = rtc_ports,
  .power_on = rtc_power_on,
  .reset = rtc_reset,
  .advance = rtc_advance,
  .deadline = rtc_deadline,
  .runs_asleep = true,
  .archive = rtc_archive,
};
