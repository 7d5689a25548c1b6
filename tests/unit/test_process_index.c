/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of the runtime's cache, src/process/runtime/index.c, against a list: what is found while it grows from its
 * least size, after it was emptied, and when the kernel takes no memory back. A mistake here would not change what is
 * recorded: the runtime would translate the same code again and again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/runtime/runtime.h"

enum { UNITS = 100000, ADDRESSES = 70000, SLOTS_LEAST = 1 << 13, LARGE = 1 << 17 };

static struct runtime *runtime;
static uint32_t newest[ADDRESSES]; /* the model, by address_of: the last unit put there, number + 1 */

/* ---- what the runtime has elsewhere ---- */

int64_t place_map(uint64_t size, int fd, uint64_t offset)
{
  assert_true(fd == -1 && offset == 0);
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? -1 : (int64_t)memory;
}

static const void *saved_start;
static uint64_t saved_size;

void piece_add(struct piece_list *list, const void *start, uint64_t size)
{
  (void)list;
  saved_start = start;
  saved_size = size;
}

/* ---- the model ---- */

/* Neighbours, and addresses that are equal in their lower bits. */
static uint64_t address_of(uint32_t number)
{
  return number % 2 ? 0x401000 + number : (uint64_t)number << 32 | 0x1000;
}

/* xorshift32: the same numbers in each run. */
static uint32_t random_next(uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  return *state ^= *state << 5;
}

static void model_check(void)
{
  uint32_t used = 0;

  for (uint32_t i = 0; i < ADDRESSES; i++) {
    assert_ptr_equal(index_find(runtime, address_of(i)), newest[i] ? &runtime->units[newest[i] - 1] : NULL);
    used += newest[i] != 0;
  }
  assert_int_equal(runtime->counts.index_used, used);
}

/* Whether less than a quarter is taken, and more than an eighth, unless it is the smallest. */
static bool is_right_size(void)
{
  uint64_t used = runtime->counts.index_used, slots = runtime->counts.index_slots;

  return !(slots & (slots - 1)) && used * 4 <= slots && (slots == SLOTS_LEAST || used * 8 >= slots);
}

static void put(uint32_t number, uint32_t address)
{
  runtime->units[number].address = address_of(address);
  index_put(runtime, number);
  newest[address] = number + 1;
  assert_ptr_equal(index_find(runtime, address_of(address)), &runtime->units[number]);
}

/* Units until the index has so many slots. */
static void grow_to(uint32_t slots)
{
  for (uint32_t i = 0; runtime->counts.index_slots < slots; i++) {
    assert_true(i < UNITS);
    put(i, i % ADDRESSES);
  }
}

static bool is_zero(uint32_t slots)
{
  for (uint32_t i = 0; i < slots; i++)
    if (runtime->index[slots + i])
      return false;
  return true;
}

/* ---- tests ---- */

static int setup(void **state)
{
  (void)state;
  runtime = calloc(1, sizeof(*runtime));
  assert_non_null(runtime);
  runtime->units = calloc(UNITS, sizeof(*runtime->units));
  assert_non_null(runtime->units);
  memset(newest, 0, sizeof(newest));
  return index_init(runtime);
}

static int teardown(void **state)
{
  (void)state;
  munmap(runtime->index, index_memory());
  free(runtime->units);
  free(runtime);
  return 0;
}

/* An address is translated anew now and then: its newest unit counts, and takes no other slot. */
static void test_growth(void **state)
{
  uint32_t random = 2463534242, slots = runtime->counts.index_slots;

  (void)state;
  model_check();
  for (uint32_t i = 0; i < UNITS; i++) {
    put(i, random_next(&random) % ADDRESSES);
    assert_true(is_right_size());
    if (runtime->counts.index_slots == slots)
      continue;
    assert_int_equal(runtime->counts.index_slots, 2 * slots);
    model_check();
    assert_true(is_zero(slots)); /* what is not used any more takes no memory */
    slots = runtime->counts.index_slots;
  }
  model_check();
  assert_in_range(slots, 1 << 17, 1 << 19);
}

/* The slot behind the last one is the first. */
static void test_end(void **state)
{
  enum { LAST = SLOTS_LEAST - 1, COUNT = 3 };
  const uint32_t *table = runtime->index + SLOTS_LEAST;
  uint32_t found[COUNT], count = 0;

  (void)state;
  for (uint32_t i = 0; i < ADDRESSES && count < COUNT; i++) { /* addresses that belong into the last slot */
    put(0, i);
    if (table[LAST])
      found[count++] = i;
    index_clear(runtime);
    newest[i] = 0;
  }
  assert_int_equal(count, COUNT);
  for (uint32_t i = 0; i < COUNT; i++)
    put(i, found[i]);
  assert_true(table[LAST] == 1 && table[0] == 2 && table[1] == 3);
  model_check();
  assert_true(is_zero(2 * SLOTS_LEAST)); /* the next table begins there */
}

/* The largest index takes more than a quarter, since there is no room for another. */
static void test_largest(void **state)
{
  (void)state;
  runtime->counts.index_slots = CACHE_INDEX;
  runtime->counts.index_used = CACHE_INDEX / 4;
  put(0, 1);
  put(1, 2);
  assert_int_equal(runtime->counts.index_slots, CACHE_INDEX);
  assert_int_equal(runtime->counts.index_used, CACHE_INDEX / 4 + 2);
  assert_true(index_memory() >= 2 * (uint64_t)CACHE_INDEX * sizeof(uint32_t));
}

/* It is emptied, and is as large as before. */
static void clear_and_use(uint32_t slots)
{
  index_clear(runtime);
  memset(newest, 0, sizeof(newest));
  model_check();
  assert_int_equal(runtime->counts.index_slots, slots);
  assert_true(is_zero(slots));
  put(3, 5);
  model_check();
}

static void test_clear(void **state)
{
  (void)state;
  grow_to(2 * SLOTS_LEAST);
  clear_and_use(2 * SLOTS_LEAST);
  grow_to(LARGE);
  clear_and_use(LARGE);
}

/* With a filter of the program's, the runtime makes no system calls. */
static void test_confined(void **state)
{
  (void)state;
  runtime->is_confined = true;
  grow_to(LARGE);
  model_check();
  assert_false(is_zero(LARGE / 2)); /* it was not given back */
  clear_and_use(LARGE);
}

/* madvise(2): memory that is locked is not discarded. */
static void test_locked(void **state)
{
  (void)state;
  grow_to(LARGE);
  if (mlock(runtime->index + LARGE, LARGE * sizeof(uint32_t)) < 0)
    skip();
  clear_and_use(LARGE);
}

/* A table that comes from a file has the file's contents again when it is discarded. What is saved has room for as much
 * again. */
static void test_inherited(void **state)
{
  int fd = memfd_create("snapshot", MFD_CLOEXEC);

  (void)state;
  assert_true(fd >= 0);
  grow_to(LARGE);
  index_save(runtime, NULL);
  uint32_t slots = runtime->counts.index_slots;
  assert_true(2 * runtime->counts.index_used <= slots / 4);
  assert_ptr_equal(saved_start, runtime->index + slots);
  assert_int_equal(saved_size, slots * sizeof(uint32_t));
  model_check();
  assert_int_equal(write(fd, saved_start, saved_size), saved_size);
  void *table = mmap(runtime->index + slots, saved_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
  assert_ptr_equal(table, runtime->index + slots);
  runtime->index_inherited = slots;
  model_check();
  clear_and_use(slots);
  close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_growth),   TEST(test_end),    TEST(test_largest),   TEST(test_clear),
    TEST(test_confined), TEST(test_locked), TEST(test_inherited),
  };

  return cmocka_run_group_tests_name("process_index", tests, NULL, NULL);
}
