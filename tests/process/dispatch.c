/* SPDX-License-Identifier: Apache-2.0
 *
 * Indirect branches of compiled code: a large switch, a sparse one, a table of functions, computed gotos, tail calls,
 * qsort calling back.
 */
#include <stdlib.h>

static int add(int state, int value)
{
  return state + value;
}

static int multiply(int state, int value)
{
  return state * value;
}

static int negate(int state, int value)
{
  return value - state;
}

static int (*volatile const functions[])(int, int) = {add, multiply, negate};

/* Ends with a jump: through the table, or to itself. */
static int tail(int state, int n)
{
  if (n > 2)
    return tail(state + 1, n - 1);
  return functions[n](state, n);
}

/* Twelve cases in a row. */
static int dense(int state, int operation)
{
  switch (operation) {
  case 0:
    return add(state, 1);
  case 1:
    return multiply(state, 3);
  case 2:
    return negate(state, 7);
  case 3:
    return tail(state, 5);
  case 4:
    state ^= 0x55; /* falls through */
  case 5:
    return functions[0](state, 2);
  case 6:
    return functions[1](state, 2);
  case 7:
    return functions[2](state, 2);
  case 8:
    return state >> 1;
  case 9:
    return state & 0xFF;
  case 10:
    return add(multiply(state, 2), 1);
  case 11:
    return tail(state, 1);
  default:
    return 0;
  }
}

static int sparse(int state)
{
  switch (state & 0xFFF) {
  case 3:
    return 1;
  case 70:
    return add(state, 4);
  case 800:
    return multiply(state, 2);
  case 900:
    return negate(state, 1);
  case 4000:
    return tail(state, 3);
  default:
    return state;
  }
}

/* An interpreter whose instructions find the next one themselves. */
static int threaded(const unsigned char *code, int state)
{
  static const void *const labels[] = {&&increment, &&twice, &&skip_if_odd, &&end};
  __extension__({ goto *labels[*code]; });
increment:
  state++;
  __extension__({ goto *labels[*++code]; });
twice:
  state *= 2;
  __extension__({ goto *labels[*++code]; });
skip_if_odd:
  code += 1 + (state & 1);
  __extension__({ goto *labels[*code]; });
end:
  return state;
}

static int compare(const void *left, const void *right)
{
  return *(const int *)left - *(const int *)right;
}

int main(void)
{
  static const unsigned char code[] = {0, 1, 2, 0, 0, 2, 1, 1, 3};
  int numbers[] = {5, 3, 9, 1, 7, 2};
  int state = 1;
  for (int i = 0; i < 13; i++)
    state = dense(state, i) + i;
  for (int i = 0; i < 5; i++)
    state += sparse((const int[]){3, 70, 800, 4000, 1}[i]);
  state += threaded(code, 1);
  qsort(numbers, 6, sizeof(*numbers), compare);
  return (state + numbers[0]) & 0x3F;
}
