/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that smashes its own stack. A packet says how long it is, and is believed: copying it runs over the return
 * address and everything behind it, so that a debugger has no way back. `make demo` runs this.
 *
 *   gcc -g -O1 -fno-stack-protector examples/smash.c -o smash
 *   lbr run ./smash
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct packet {
  size_t count; /* of words */
  uint64_t words[8];
};

static void copy(uint64_t *to, const uint64_t *from, size_t count)
{
  for (size_t i = 0; i < count; i++)
    to[i] = from[i];
}

/* Has room for two words, and does not ask how many there are. */
__attribute__((noinline)) static uint64_t sum_one(const struct packet *packet)
{
  uint64_t words[2];
  copy(words, packet->words, packet->count);
  return words[0] + words[1];
}

__attribute__((noinline)) static uint64_t sum_all(const struct packet *packets, size_t count)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += sum_one(&packets[i]);
  return sum;
}

int main(void)
{
  static const struct packet packets[] = {{2, {10, 11}}, {2, {20, 22}}, {8, {30, 33}}};
  printf("the sum is %llu\n", (unsigned long long)sum_all(packets, 3));
  return 0;
}
