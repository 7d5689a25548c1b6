/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that call themselves and each other, deeper than any hardware's stack of return addresses.
 */
static unsigned is_odd(unsigned n);

static unsigned fibonacci(unsigned n)
{
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static unsigned ackermann(unsigned m, unsigned n)
{
  if (m == 0)
    return n + 1;
  return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

static unsigned is_even(unsigned n)
{
  volatile unsigned rest = n; /* work after the call: no tail call */
  unsigned result = n == 0 ? 1 : is_odd(rest - 1);
  rest = 0;
  return result + rest;
}

static unsigned is_odd(unsigned n)
{
  volatile unsigned rest = n;
  unsigned result = n == 0 ? 0 : is_even(rest - 1);
  rest = 0;
  return result + rest;
}

int main(int argc, char **argv)
{
  (void)argv;
  unsigned one = (unsigned)argc; /* not known to the compiler */
  return !(fibonacci(9 + one) == 55 && ackermann(1 + one, 2) == 7 && is_even(99 + one) == 1);
}
