/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/base.h"

double clock_seconds(void)
{
  struct timespec now;

  return clock_gettime(CLOCK_MONOTONIC, &now) ? 0 : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
