// SPDX-License-Identifier: Apache-2.0
// micro NAME AMOUNT: one construct of control flow, for bench/process: calls and returns, indirect branches,
// conditionals, or a loop of libc. Prints one line, always the same for the same AMOUNT. bench/compare/cases.py
// compiles it without inlining, so that each call below is a call. KEEP() hides a value from the compiler, so that it
// converts no branch to a conditional move.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP(value) __asm__ volatile("" : "+r"(value))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t state = 1;

static inline __attribute__((always_inline)) unsigned random_next(void)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33);
}

/* ---- calls and returns ---- */

static unsigned fib_of(unsigned n)
{
  return n < 2 ? n : fib_of(n - 1) + fib_of(n - 2);
}

/* Recursion: two call sites, whose returns follow a pattern. */
static uint64_t run_fib(unsigned amount)
{
  uint64_t total = 0;

  for (unsigned i = 0; i < amount; i++)
    total += fib_of(24 + i % 2);
  return total;
}

/* A random tree: one node in eight has no children. */
static unsigned tree_walk(unsigned depth, uint64_t hash)
{
  if (depth == 0 || hash >> 61 == 0)
    return 1;
  unsigned left = tree_walk(depth - 1, (hash + 1) * 0x9e3779b97f4a7c15u);
  return left + tree_walk(depth - 1, (hash + 2) * 0xbf58476d1ce4e5b9u);
}

/* Binary recursion, 27 calls deep, whose depth at each place nothing predicts. */
static uint64_t run_tree(unsigned amount)
{
  uint64_t total = 0;

  for (unsigned i = 0; i < amount; i++)
    total += tree_walk(27, ((uint64_t)random_next() << 32) | 1);
  return total;
}

#define LEAF(name, expression)                                                                                         \
  static __attribute__((noipa)) unsigned name(unsigned value)                                                          \
  {                                                                                                                    \
    return (expression);                                                                                               \
  }
LEAF(leaf_add, value + 12345)
LEAF(leaf_xor, value ^ value >> 7)
LEAF(leaf_multiply, value * 69069)
LEAF(leaf_subtract, value - (value >> 3))

/* Three leaf calls in a loop. */
static uint64_t run_leaves(unsigned amount)
{
  unsigned value = 1;

  for (unsigned i = 0; i < amount; i++)
    value = leaf_multiply(leaf_xor(leaf_add(value)));
  return value;
}

/* Functions, each of which calls the next one from four places that random bits choose between. */
#define CHAIN(name, next, bit)                                                                                         \
  static __attribute__((noipa)) unsigned name(unsigned value)                                                          \
  {                                                                                                                    \
    unsigned result;                                                                                                   \
    if (value >> (bit)&1)                                                                                              \
      result = value >> (bit)&2 ? next(value ^ 5) + 1 : next(value + 4) ^ 2;                                           \
    else                                                                                                               \
      result = value >> (bit)&2 ? next(value ^ 3) - 3 : next(value + 2) ^ 4;                                           \
    KEEP(result);                                                                                                      \
    return result;                                                                                                     \
  }
CHAIN(chain_16, leaf_add, 3)
CHAIN(chain_15, chain_16, 4)
CHAIN(chain_14, chain_15, 5)
CHAIN(chain_13, chain_14, 6)
CHAIN(chain_12, chain_13, 7)
CHAIN(chain_11, chain_12, 8)
CHAIN(chain_10, chain_11, 9)
CHAIN(chain_9, chain_10, 10)
CHAIN(chain_8, chain_9, 11)
CHAIN(chain_7, chain_8, 12)
CHAIN(chain_6, chain_7, 13)
CHAIN(chain_5, chain_6, 14)
CHAIN(chain_4, chain_5, 15)
CHAIN(chain_3, chain_4, 16)
CHAIN(chain_2, chain_3, 17)
CHAIN(chain_1, chain_2, 18)

/* A call chain 17 deep, where each function returns to four call sites. The same 256 chains come again and again. */
static uint64_t run_chain(unsigned amount)
{
  unsigned total = 0, values[256];

  for (unsigned i = 0; i < COUNT(values); i++)
    values[i] = random_next();
  for (unsigned i = 0; i < amount; i++)
    total += chain_1(values[i % COUNT(values)]);
  return total;
}

/* ---- indirect branches ---- */

/* Calls through a table of four functions, in turn. */
static uint64_t run_table(unsigned amount)
{
  static unsigned (*const table[])(unsigned) = {leaf_add, leaf_xor, leaf_multiply, leaf_subtract};
  unsigned value = 1;
  for (unsigned i = 0; i < amount; i++)
    value = table[i % COUNT(table)](value);
  return value;
}

struct shape;
struct shape_type {
  unsigned (*area)(const struct shape *shape);
  unsigned (*edge)(const struct shape *shape);
};
struct shape {
  const struct shape_type *type;
  unsigned width, height;
};

#define SHAPE(name, area, edge)                                                                                        \
  static unsigned name##_area(const struct shape *shape)                                                               \
  {                                                                                                                    \
    return (area);                                                                                                     \
  }                                                                                                                    \
  static unsigned name##_edge(const struct shape *shape)                                                               \
  {                                                                                                                    \
    return (edge);                                                                                                     \
  }                                                                                                                    \
  static const struct shape_type name = {name##_area, name##_edge};
SHAPE(square, shape->width * shape->width, shape->width * 4)
SHAPE(rectangle, shape->width * shape->height, (shape->width + shape->height) * 2)
SHAPE(triangle, shape->width * shape->height / 2, shape->width * 2 + shape->height)
SHAPE(circle, shape->width * shape->width * 3, shape->width * 6)
SHAPE(stripe, shape->height, shape->height * 2 + 2)
SHAPE(point, shape->width & 1, shape->height & 1)

/* Virtual calls: 1000 objects of six types, in random order. */
static uint64_t run_virtual(unsigned amount)
{
  static const struct shape_type *const types[] = {&square, &rectangle, &triangle, &circle, &stripe, &point};
  struct shape shapes[1000];
  uint64_t total = 0;

  for (unsigned i = 0; i < COUNT(shapes); i++)
    shapes[i] = (struct shape){types[random_next() % COUNT(types)], random_next() % 100, random_next() % 100};
  for (unsigned i = 0; i < amount; i++) {
    const struct shape *shape = &shapes[i % COUNT(shapes)];

    KEEP(shape);
    total += shape->type->area(shape) + shape->type->edge(shape);
  }
  return total;
}

/* ---- interpreters ---- */

enum { OP_ADD, OP_SUBTRACT, OP_XOR, OP_MULTIPLY, OP_SHIFT, OP_SWAP, OP_INCREMENT, OP_SKIP, OP_LOOP };

/* A loop of 200 random operations; the last one is behind it so that OP_SKIP cannot jump over it. */
static void code_make(unsigned char code[202])
{
  for (unsigned i = 0; i < 200; i++)
    code[i] = (unsigned char)(random_next() % OP_LOOP);
  code[200] = code[201] = OP_LOOP;
}

/* The nine operations, for both interpreters. The loop takes one of eight ways through them. `next` goes to the
 * following one, `last` ends. */
#define OPERATIONS(op, next, last)                                                                                     \
  op(OP_ADD) a += b;                                                                                                   \
  next;                                                                                                                \
  op(OP_SUBTRACT) a -= b >> 1;                                                                                         \
  next;                                                                                                                \
  op(OP_XOR) a ^= b;                                                                                                   \
  next;                                                                                                                \
  op(OP_MULTIPLY) b *= 69069;                                                                                          \
  next;                                                                                                                \
  op(OP_SHIFT) a = a << 5 | a >> 27;                                                                                   \
  next;                                                                                                                \
  op(OP_SWAP) b = b ^ a >> 9;                                                                                          \
  next;                                                                                                                \
  op(OP_INCREMENT) b++;                                                                                                \
  next;                                                                                                                \
  op(OP_SKIP) at += a & 1;                                                                                             \
  next;                                                                                                                \
  op(OP_LOOP) total += a;                                                                                              \
  if (--amount == 0)                                                                                                   \
    last;                                                                                                              \
  at = code, a = amount % 8, b = 2;                                                                                    \
  next;

/* An interpreter by computed goto: an indirect jump behind each operation. */
static uint64_t run_goto(unsigned amount)
{
  static const void *const labels[] = {&&OP_ADD,  &&OP_SUBTRACT,  &&OP_XOR,  &&OP_MULTIPLY, &&OP_SHIFT,
                                       &&OP_SWAP, &&OP_INCREMENT, &&OP_SKIP, &&OP_LOOP};
  unsigned char code[202];
  unsigned a = 1, b = 2, total = 0;

  code_make(code);
  const unsigned char *at = code;
#define LABEL(name)                                                                                                    \
  name:
#define NEXT goto *labels[*at++]
  NEXT;
  OPERATIONS(LABEL, NEXT, return total)
}

/* An interpreter by switch: one indirect jump for all operations. */
static uint64_t run_switch(unsigned amount)
{
  unsigned char code[202];
  unsigned a = 1, b = 2, total = 0;

  code_make(code);
#define CASE(name) case name:
  for (const unsigned char *at = code;;)
    switch (*at++) {
      OPERATIONS(CASE, break, return total)
    default:
      __builtin_unreachable();
    }
}

/* ---- conditionals ---- */

#define CONDITIONAL(bits, bit)                                                                                         \
  if ((bits) >> (bit)&1) {                                                                                             \
    total += 3 + (bit);                                                                                                \
    KEEP(total);                                                                                                       \
  } else {                                                                                                             \
    total ^= 5;                                                                                                        \
    KEEP(total);                                                                                                       \
  }

/* Four conditionals of a pattern that repeats every 16 rounds. */
static uint64_t run_steady(unsigned amount)
{
  uint64_t total = 0;

  for (unsigned i = 0; i < amount; i++) {
    CONDITIONAL(i, 0)
    CONDITIONAL(i, 1)
    CONDITIONAL(i, 2)
    CONDITIONAL(i, 3)
  }
  return total;
}

/* The same four on random bits. */
static uint64_t run_random(unsigned amount)
{
  uint64_t total = 0;

  for (unsigned i = 0; i < amount; i++) {
    unsigned bits = random_next();

    CONDITIONAL(bits, 10)
    CONDITIONAL(bits, 13)
    CONDITIONAL(bits, 16)
    CONDITIONAL(bits, 19)
  }
  return total;
}

/* ---- libc ---- */

static int int_compare(const void *one, const void *other)
{
  int a = *(const int *)one, b = *(const int *)other;

  return (a > b) - (a < b);
}

/* qsort() of random integers: a callback from libc. */
static uint64_t run_qsort(unsigned amount)
{
  int *numbers = calloc(amount, sizeof(*numbers));

  if (!numbers)
    abort();
  for (unsigned i = 0; i < amount; i++)
    numbers[i] = (int)random_next();
  qsort(numbers, amount, sizeof(*numbers), int_compare);
  uint64_t result = (uint64_t)numbers[0] * 3 + (uint64_t)numbers[amount / 2];
  free(numbers);
  return result;
}

/* memcpy() of 0 to 1023 bytes, most of them short. */
static uint64_t run_memcpy(unsigned amount)
{
  static unsigned char from[2048], to[2048];
  uint64_t total = 0;

  for (unsigned i = 0; i < sizeof(from); i++)
    from[i] = (unsigned char)random_next();
  for (unsigned i = 0; i < amount; i++) {
    unsigned bits = random_next();
    size_t size = (bits & 1023) >> (bits >> 10) % 8;

    KEEP(size); /* else the compiler, which sees that it is small, copies inline */
    memcpy(to + (bits >> 13) % 64, from + (bits >> 19) % 64, size);
    total += to[64] + size;
  }
  return total;
}

/* ---- memory ---- */

/* Works a little, then waits for the end of its standard input: others look at its memory meanwhile. */
static uint64_t run_idle(unsigned amount)
{
  uint64_t total = run_qsort(amount) + run_chain(amount);

  puts("ready");
  fflush(stdout);
  while (getchar() != EOF)
    continue;
  return total;
}

static const struct {
  const char *name;
  uint64_t (*run)(unsigned amount);
} constructs[] = {
  {"fib", run_fib},       {"tree", run_tree},     {"leaves", run_leaves}, {"chain", run_chain},
  {"table", run_table},   {"goto", run_goto},     {"switch", run_switch}, {"virtual", run_virtual},
  {"steady", run_steady}, {"random", run_random}, {"qsort", run_qsort},   {"memcpy", run_memcpy},
  {"idle", run_idle},
};

int main(int argc, char **argv)
{
  for (unsigned i = 0; argc == 3 && i < COUNT(constructs); i++)
    if (strcmp(argv[1], constructs[i].name) == 0) {
      unsigned amount = (unsigned)strtoul(argv[2], NULL, 10);

      printf("%s %llu\n", argv[1], (unsigned long long)constructs[i].run(amount ? amount : 1));
      return 0;
    }
  fputs("usage: micro NAME AMOUNT\n", stderr);
  return 2;
}
