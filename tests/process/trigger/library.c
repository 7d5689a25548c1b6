/* SPDX-License-Identifier: Apache-2.0
 *
 * A library of program.c, linked or loaded by dlopen(3).
 */
#define PLACE __attribute__((noinline, noclone))

PLACE int NAME(int value);

static PLACE int inside(int value)
{
  __asm__ volatile("" ::: "memory");
  return value * 5;
}

PLACE int NAME(int value)
{
  return inside(value) + 2;
}
