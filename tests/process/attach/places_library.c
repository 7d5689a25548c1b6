/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with one function, whose name is given when it is compiled: -DNAME=first_compute.
 */
unsigned NAME(unsigned steps);

unsigned NAME(unsigned steps)
{
  unsigned value = 5;

  for (unsigned i = 0; i < steps; i++)
    value = value & 8 ? value * 1103515245 + 12345 : value / 5 + 54321;
  return value;
}
