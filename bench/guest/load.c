/* SPDX-License-Identifier: Apache-2.0
 *
 * A bare-metal load for emulators: five programs of different habits, each between two lines on the serial port, by
 * which whoever watches takes the time. The command line says what the CPU shall record: off, lbr or bts (LBR and BTS);
 * and count, for a performance counter beside it.
 */
#include <stdint.h>

#include "load.h"

/* ---- the programs: each returns a number that depends on all it did ---- */

#define SIEVE_SIZE 1000000
static uint8_t sieve_flags[SIEVE_SIZE];

static uint32_t sieve_run(void)
{
  uint32_t count = 0;

  for (unsigned round = 0; round < 3; round++) {
    for (uint32_t i = 0; i < SIEVE_SIZE; i++)
      sieve_flags[i] = 1;
    for (uint32_t i = 2; i * i < SIEVE_SIZE; i++)
      if (sieve_flags[i])
        for (uint32_t k = i * i; k < SIEVE_SIZE; k += i)
          sieve_flags[k] = 0;
    for (uint32_t i = 2; i < SIEVE_SIZE; i++)
      count += sieve_flags[i];
  }
  return count;
}

#define CRC_SIZE (512 * 1024)
static uint8_t crc_bytes[CRC_SIZE];

static uint32_t crc_run(void)
{
  static uint32_t table[256];

  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;

    for (unsigned bit = 0; bit < 8; bit++)
      value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
    table[i] = value;
  }
  for (uint32_t i = 0; i < CRC_SIZE; i++)
    crc_bytes[i] = (uint8_t)(i * 2654435761u >> 24);
  uint32_t crc = ~0u;
  for (unsigned round = 0; round < 12; round++)
    for (uint32_t i = 0; i < CRC_SIZE; i++)
      crc = crc >> 8 ^ table[(crc ^ crc_bytes[i]) & 0xFF];
  return ~crc;
}

#define SORT_SIZE 150000
static uint32_t sort_values[SORT_SIZE];

static void sort_sift(uint32_t *values, uint32_t at, uint32_t count)
{
  uint32_t value = values[at];

  for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && values[child + 1] > values[child])
      child++;
    if (values[child] <= value)
      break;
    values[at] = values[child];
    at = child;
  }
  values[at] = value;
}

static uint32_t sort_run(void)
{
  uint32_t state = 12345, sum = 0;

  for (uint32_t i = 0; i < SORT_SIZE; i++)
    sort_values[i] = state = state * 1664525u + 1013904223u;
  for (uint32_t i = SORT_SIZE / 2; i-- > 0;)
    sort_sift(sort_values, i, SORT_SIZE);
  for (uint32_t end = SORT_SIZE - 1; end > 0; end--) {
    uint32_t last = sort_values[end];

    sort_values[end] = sort_values[0];
    sort_values[0] = last;
    sort_sift(sort_values, 0, end);
  }
  for (uint32_t i = 0; i < SORT_SIZE; i++)
    sum = sum * 31 + sort_values[i];
  return sum;
}

__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls"))) static uint32_t fibonacci(uint32_t n)
{
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls"))) static uint32_t ackermann(uint32_t m,
                                                                                                    uint32_t n)
{
  if (m == 0)
    return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static uint32_t recursion_run(void)
{
  return fibonacci(29) * 7 + ackermann(2, 900) + ackermann(3, 7);
}

/* A machine of eight instructions, one function each, called through a table. */
struct toy {
  uint32_t accumulator, counter, memory[16];
  const uint8_t *at;
};

typedef void toy_step(struct toy *toy);

static void toy_add(struct toy *toy)
{
  toy->accumulator += toy->memory[toy->counter & 15];
}

static void toy_rotate(struct toy *toy)
{
  toy->accumulator = toy->accumulator << 5 | toy->accumulator >> 27;
}

static void toy_store(struct toy *toy)
{
  toy->memory[toy->counter & 15] = toy->accumulator;
}

static void toy_xor(struct toy *toy)
{
  toy->accumulator ^= toy->memory[toy->counter >> 4 & 15];
}

static void toy_count(struct toy *toy)
{
  toy->counter++;
}

static void toy_skip(struct toy *toy)
{
  if (toy->accumulator & 1)
    toy->at++;
}

static void toy_nothing(struct toy *toy)
{
  (void)toy;
}

static const uint8_t toy_program[];

static void toy_again(struct toy *toy)
{
  toy->at = toy_program;
}

static const uint8_t toy_program[] = {0, 1, 2, 5, 3, 4, 6, 0, 5, 1, 3, 2, 4, 7};

static uint32_t dispatch_run(void)
{
  static toy_step *const steps[] = {toy_add,   toy_rotate, toy_store,   toy_xor,
                                    toy_count, toy_skip,   toy_nothing, toy_again};
  struct toy toy = {.accumulator = 1, .at = toy_program};

  for (uint32_t i = 0; i < 6000000; i++)
    steps[*toy.at++](&toy);
  return toy.accumulator ^ toy.counter;
}

/* ---- all of them ---- */

void load_main(const char *command_line)
{
  static const struct {
    const char *name;
    uint32_t (*run)(void);
  } programs[] = {{"sieve", sieve_run},
                  {"crc", crc_run},
                  {"sort", sort_run},
                  {"recursion", recursion_run},
                  {"dispatch", dispatch_run}};
  load_open();
  load_record(command_line);
  for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
    load_print("begin ");
    load_print(programs[i].name);
    load_print("\n");
    uint32_t sum = programs[i].run();
    load_print("end ");
    load_print(programs[i].name);
    load_print(" ");
    load_print_hex(sum);
    load_print("\n");
  }
  load_print("done\n");
  load_exit();
}
