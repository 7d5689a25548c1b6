/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared library for loader.c, with a constructor, a destructor and storage of each thread.
 */
#include <stdio.h>

static __thread int own = 3;
static int loads;

__attribute__((constructor)) static void begin(void)
{
  loads = 1;
}

__attribute__((destructor)) static void end(void)
{
  loads = 0;
}

int plugin_run(int value);

int plugin_run(int value)
{
  own += value;
  return own * 10 + loads;
}
