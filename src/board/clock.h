/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts nanoseconds to the ticks of a device's clock and back. Devices count ticks from time 0, so that nothing
 * drifts however often they are read. The two agree: clock_time is the first nanosecond at which clock_ticks has
 * reached a tick.
 */
#ifndef BOARD_CLOCK_H
#define BOARD_CLOCK_H

#include <stdint.h>

#define CLOCK_SECOND UINT64_C(1000000000)
#define CLOCK_HERTZ_MAX UINT64_C(10000000000) /* beyond, the products below would not fit */
#define CLOCK_NEVER UINT64_MAX

static inline uint64_t clock_ticks(uint64_t time, uint64_t hertz)
{
  return time / CLOCK_SECOND * hertz + time % CLOCK_SECOND * hertz / CLOCK_SECOND;
}

static inline uint64_t clock_time(uint64_t ticks, uint64_t hertz)
{
  uint64_t seconds = ticks / hertz, rest = ticks % hertz;

  if (seconds >= CLOCK_NEVER / CLOCK_SECOND)
    return CLOCK_NEVER;
  return seconds * CLOCK_SECOND + (rest * CLOCK_SECOND + hertz - 1) / hertz;
}

/* Time that has passed. A machine that was reset may count from 0 again: then no time has passed. */
static inline uint64_t clock_since(uint64_t start, uint64_t now)
{
  return now > start ? now - start : 0;
}

static inline uint64_t clock_earlier(uint64_t one, uint64_t other)
{
  return one < other ? one : other;
}

#endif
