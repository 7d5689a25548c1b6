/* SPDX-License-Identifier: Apache-2.0
 *
 * The real-time clock with its CMOS memory. rtc.c; cmos.c fills in the firmware's values in that memory.
 */
#ifndef BOARD_RTC_H
#define BOARD_RTC_H

#include <stdbool.h>
#include <stdint.h>

#define RTC_HERTZ UINT64_C(32768)
#define CMOS_SIZE 128u
#define CMOS_CENTURY 0x32

struct board;

struct rtc {
  uint8_t index;
  bool nmi_is_masked; /* bit 7 of port 0x70 */
  uint8_t cmos[CMOS_SIZE];
  int64_t seconds; /* since 1970, at `base` */
  uint64_t base;   /* nanoseconds */
  uint64_t seen;   /* the flags of register C include all events up to this time */
};

void rtc_advance(struct board *board, uint64_t now);
/* IRQ 8 follows the flags that are enabled, unless the HPET has it. */
void rtc_signal(struct board *board);
/* The time of the next alarm if its interrupt is enabled, whether or not it reaches a processor. */
uint64_t rtc_alarm_time(const struct board *board);

/* cmos.c: memory sizes, drives, their checksum. */
void cmos_fill(struct board *board);

#endif
