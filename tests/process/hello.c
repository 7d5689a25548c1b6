/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest program with a libc: what comes before and after main.
 */
#include <stdio.h>

int main(void)
{
  return puts("hello") < 0;
}
