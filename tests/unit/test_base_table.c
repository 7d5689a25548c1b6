/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the containers of src/base: the array that grows, the hash index and the interval map, each against a model
 * that is too simple to be wrong. The linker puts this file between them and the allocator, so that memory can run out.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* ---- memory that runs out ---- */

static bool has_memory = true;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_reallocarray(void *data, size_t count, size_t size);
void *__wrap_reallocarray(void *data, size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
  return has_memory ? __real_calloc(count, size) : NULL;
}

void *__wrap_malloc(size_t size)
{
  return has_memory ? __real_malloc(size) : NULL;
}

void *__wrap_reallocarray(void *data, size_t count, size_t size)
{
  return has_memory ? __real_reallocarray(data, count, size) : NULL;
}

/* xorshift64: the same numbers in each run. */
static uint64_t random_next(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

/* ---- the array ---- */

struct item {
  uint64_t number;
  char name[9];
};

static void test_array_append(void **state)
{
  size_t count = 0, capacity = 0;
  struct item *items = NULL;

  (void)state;
  for (size_t i = 0; i < 1000; i++) {
    struct item *item = array_append(&items, &count, &capacity);

    assert_non_null(item);
    assert_ptr_equal(item, &items[i]);
    assert_true(count == i + 1 && capacity >= count);
    *item = (struct item){.number = i};
  }
  for (size_t i = 0; i < count; i++)
    assert_true(items[i].number == i);
  free(items);
}

static void test_array_no_memory(void **state)
{
  size_t count = 0, capacity = 0;
  struct item *items = NULL, *before;

  (void)state;
  has_memory = false;
  assert_null(array_append(&items, &count, &capacity));
  assert_true(!items && !count && !capacity);
  has_memory = true;
  do
    *array_append(&items, &count, &capacity) = (struct item){.number = count};
  while (count < capacity);
  before = items;
  has_memory = false;
  assert_null(array_append(&items, &count, &capacity));
  has_memory = true;
  assert_true(items == before && count == capacity);
  free(items);
}

static void test_array_reserve(void **state)
{
  size_t capacity = 0;
  void *data = array_reserve(NULL, 4, 1000, &capacity);

  (void)state;
  assert_non_null(data);
  assert_true(capacity >= 1000);
  assert_ptr_equal(array_reserve(data, 4, 1000, &capacity), data);
  assert_null(array_reserve(data, 4, SIZE_MAX, &capacity));
  assert_null(array_reserve(data, 4, SIZE_MAX / 8 + 1, &capacity));
  assert_null(array_reserve(data, 1u << 20, SIZE_MAX >> 18, &capacity));
  assert_true(capacity >= 1000 && capacity < 4096);
  free(data);
}

/* ---- hashes ---- */

enum { SECRETS = 32 };

/* Hashes depend on a secret of the process. Tests that measure hashes set it themselves: a random one is bad now and
 * then, about one in 3000 for test_hash_spread. */
static void secret_set(uint64_t *random)
{
  hash_key[0] = random_next(random);
  hash_key[1] = random_next(random) | 1;
}

/* It must not be the constant that stands in hash.c, or anybody could prepare keys that collide. */
static void test_hash_secret(void **state)
{
  (void)state;
  assert_true(hash_key[0] != UINT64_C(0x9E3779B97F4A7C15) && hash_key[1] != UINT64_C(0xD6E8FEB86659FD93));
  assert_true(hash_key[1] & 1);
}

/* How many of `count` keys that are `step` apart have the most common value of the eight upper bits of their hash. */
static unsigned hash_crowd(uint64_t first, uint64_t step, unsigned count)
{
  unsigned counts[256] = {0}, most = 0;

  for (unsigned i = 0; i < count; i++) {
    unsigned *at = &counts[hash_start(first + i * step) >> 56];

    most = ++*at > most ? *at : most;
  }
  return most;
}

/* Keys that differ in a few bits only, wherever these are, come to different places. 16 for each would be even. By
 * chance the fullest of 256 places has about 31 of 4096. */
static void test_hash_spread(void **state)
{
  uint64_t random = 88172645463325252u;

  (void)state;
  for (unsigned i = 0; i < SECRETS; i++) {
    secret_set(&random);
    for (unsigned bit = 0; bit < 52; bit++) {
      assert_in_range(hash_crowd(0, UINT64_C(1) << bit, 4096), 16, 64);
      assert_in_range(hash_crowd(UINT64_C(0x7FFFF7DD0000), UINT64_C(1) << bit, 4096), 16, 64);
    }
  }
  assert_true(hash_start(0) != hash_start(UINT64_MAX));
  assert_true(hash_mix(hash_start(1), 2) != hash_mix(hash_start(2), 1));
}

static void test_hash_string(void **state)
{
  uint64_t hash = hash_start(0);
  char long_one[] = "a name that is longer than a word", copy[sizeof(long_one)];

  (void)state;
  memcpy(copy, long_one, sizeof(copy));
  assert_true(hash_mix_string(hash, long_one) == hash_mix_string(hash, copy));
  for (size_t i = 0; i + 1 < sizeof(copy); i++) {
    copy[i] ^= 1;
    assert_true(hash_mix_string(hash, long_one) != hash_mix_string(hash, copy));
    copy[i] ^= 1;
  }
  assert_true(hash_mix_string(hash, "") != hash_mix_string(hash, NULL));
  assert_true(hash_mix_string(hash_mix_string(hash, "a"), "bc") != hash_mix_string(hash_mix_string(hash, "ab"), "c"));
}

/* ---- the hash index ---- */

enum { KEYS = 512 };

struct keys {
  uint64_t keys[KEYS]; /* by number */
  bool is_used[KEYS];
  uint64_t (*hash)(uint64_t key);
  struct hash_index index;
};

static uint32_t keys_find(const struct keys *keys, uint64_t key)
{
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&keys->index, keys->hash(key), &at)) != HASH_NONE;)
    if (keys->keys[number] == key)
      break;
  return number;
}

/* The model: one look at each. */
static uint32_t keys_look(const struct keys *keys, uint64_t key)
{
  for (uint32_t i = 0; i < KEYS; i++)
    if (keys->is_used[i] && keys->keys[i] == key)
      return i;
  return HASH_NONE;
}

static void keys_step(struct keys *keys, uint64_t *random)
{
  uint32_t number = random_next(random) % KEYS, other = random_next(random) % KEYS;
  uint64_t key = random_next(random) % 1024 << 40;

  if (random_next(random) % 4096 == 0) {
    hash_index_clear(&keys->index);
    memset(keys->is_used, 0, sizeof(keys->is_used));
  } else if (keys->is_used[number] && !keys->is_used[other] && random_next(random) % 8 == 0) {
    hash_index_renumber(&keys->index, keys->hash(keys->keys[number]), number, other);
    keys->keys[other] = keys->keys[number];
    keys->is_used[other] = true;
    keys->is_used[number] = false;
  } else if (keys->is_used[number]) {
    hash_index_remove(&keys->index, keys->hash(keys->keys[number]), number);
    keys->is_used[number] = false;
  } else if (keys_look(keys, key) == HASH_NONE) {
    assert_int_equal(hash_index_add(&keys->index, keys->hash(key), number), 0);
    keys->keys[number] = key;
    keys->is_used[number] = true;
  }
  assert_int_equal(keys_find(keys, key), keys_look(keys, key));
}

static void keys_try(uint64_t (*hash)(uint64_t key))
{
  static struct keys keys;
  uint64_t random = 88172645463325252u;
  size_t count = 0;

  keys = (struct keys){.hash = hash};
  for (unsigned i = 0; i < 40000; i++)
    keys_step(&keys, &random);
  for (uint32_t i = 0; i < KEYS; i++) {
    if (keys.is_used[i])
      assert_int_equal(keys_find(&keys, keys.keys[i]), i);
    count += keys.is_used[i];
  }
  assert_int_equal(keys.index.count, count);
  hash_index_done(&keys.index);
}

static uint64_t hash_usual(uint64_t key)
{
  return hash_start(key);
}

/* As if an attacker had the key: all the same, all in the last slots so that they go on at the first, a few only. */
static uint64_t hash_same(uint64_t key)
{
  (void)key;
  return 0;
}

static uint64_t hash_last(uint64_t key)
{
  return ~(key >> 40 << 32);
}

static uint64_t hash_few(uint64_t key)
{
  return (key >> 40) % 5 << 62;
}

static void test_index_model(void **state)
{
  (void)state;
  keys_try(hash_usual);
  keys_try(hash_same);
  keys_try(hash_last);
  keys_try(hash_few);
}

/* Keys that a trace may hold: one page apart, equal in their lower bits. A chain of slots stays short. */
static void test_index_hostile(void **state)
{
  struct hash_index index = {0};
  size_t chain = 0, longest = 0;
  uint64_t random = 88172645463325252u;

  (void)state;
  secret_set(&random);
  for (uint64_t i = 0; i < 100000; i++)
    assert_int_equal(hash_index_add(&index, hash_start(i << 44), i), 0);
  for (size_t i = 0; i < index.capacity; i++) {
    chain = index.slots[i].number ? chain + 1 : 0;
    longest = chain > longest ? chain : longest;
  }
  assert_in_range(longest, 1, 400);
  assert_true(2 * index.count <= index.capacity);
  hash_index_done(&index);
}

static void test_index_bounds(void **state)
{
  static const uint64_t edges[] = {0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
  struct hash_index index = {0};
  size_t at = 0;

  (void)state;
  assert_int_equal(hash_index_next(&index, 0, &at), HASH_NONE);
  hash_index_clear(&index);
  for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
    assert_int_equal(hash_index_add(&index, edges[i], INT32_MAX - i), 0);
    at = 0;
    while (hash_index_next(&index, edges[i], &at) != INT32_MAX - i)
      assert_true(at < index.capacity);
  }
  assert_int_equal(hash_index_add(&index, 0, (size_t)INT32_MAX + 1), -ENOMEM);
  assert_int_equal(index.count, 6);
  hash_index_done(&index);
  hash_index_done(&index);
}

static void test_index_no_memory(void **state)
{
  struct hash_index index = {0};
  uint32_t count = 0;
  size_t at;

  (void)state;
  has_memory = false;
  assert_int_equal(hash_index_add(&index, hash_start(1), 0), -ENOMEM);
  assert_true(!index.slots && !index.count);
  has_memory = true;
  do
    assert_int_equal(hash_index_add(&index, hash_start(count), count), 0);
  while (2 * (++count + 1) <= index.capacity);
  has_memory = false;
  assert_int_equal(hash_index_add(&index, hash_start(count), count), -ENOMEM);
  has_memory = true;
  assert_int_equal(index.count, count);
  for (uint32_t i = 0; i < count; i++)
    for (at = 0; hash_index_next(&index, hash_start(i), &at) != i;)
      assert_true(at < index.capacity);
  hash_index_done(&index);
}

/* ---- the interval map ---- */

enum { SPACES = 3, CELLS = 96 };

/* The model: what lies at each address. The last cell of a space is its last address. */
struct cells {
  struct cell {
    bool is_used;
    uint32_t value;
    uint64_t offset;
  } cells[SPACES][CELLS];
};

static uint64_t cell_address(unsigned cell)
{
  return cell < CELLS / 2 ? cell : UINT64_MAX - (CELLS - 1 - cell);
}

static void map_check(const struct interval_map *map, const struct cells *cells)
{
  for (uint32_t space = 0; space < SPACES; space++)
    for (unsigned i = 0; i < CELLS; i++) {
      uint64_t address = cell_address(i);
      const struct interval *found = interval_map_find(map, space, address);
      const struct cell *cell = &cells->cells[space][i];

      assert_int_equal(found != NULL, cell->is_used);
      assert_int_equal(interval_map_overlaps(map, space, address, address), cell->is_used);
      if (!found)
        continue;
      assert_true(found->space == space && found->value == cell->value);
      assert_true(found->offset + (address - found->first) == cell->offset);
    }
  for (size_t i = 1; i < map->count; i++) {
    const struct interval *one = &map->list[i - 1], *other = &map->list[i];

    assert_true(one->space < other->space || (one->space == other->space && one->last < other->first));
  }
}

static bool cells_overlap(const struct cells *cells, uint32_t space, unsigned first, unsigned last)
{
  for (unsigned i = first; i <= last; i++)
    if (cells->cells[space][i].is_used)
      return true;
  return false;
}

/* Intervals that have something else on both sides of the middle would have addresses that no cell stands for: these
 * are covered, too, and asked for by none. */
static void map_step(struct interval_map *map, struct cells *cells, uint64_t *random, uint32_t number)
{
  unsigned first = random_next(random) % CELLS, last = first + random_next(random) % (CELLS - first);
  uint32_t space = random_next(random) % SPACES;
  struct interval interval = {space, number, cell_address(first), cell_address(last), random_next(random)};
  bool is_clear = random_next(random) % 3 == 0;
  size_t most = random_next(random) % 4 ? SIZE_MAX : map->count;
  struct interval_map before = {0};
  int r;

  assert_int_equal(interval_map_copy(map, &before), 0);
  if (first < CELLS / 2 || last >= CELLS / 2)
    assert_int_equal(interval_map_overlaps(map, space, interval.first, interval.last),
                     cells_overlap(cells, space, first, last));
  r = is_clear ? interval_map_clear(map, space, interval.first, interval.last, most)
               : interval_map_add(map, &interval, most);
  assert_true(r == 0 || (r == LB_E_TOO_BIG && most != SIZE_MAX));
  assert_true(map->count <= most);
  if (r < 0)
    assert_true(map->count == before.count && !memcmp(map->list, before.list, map->count * sizeof(*map->list)));
  for (unsigned i = first; r == 0 && i <= last; i++)
    cells->cells[space][i] = (struct cell){!is_clear, number, interval.offset + (cell_address(i) - interval.first)};
  interval_map_done(&before);
}

static void test_map_model(void **state)
{
  static struct cells cells;
  struct interval_map map = {0};
  uint64_t random = 88172645463325252u;

  (void)state;
  for (uint32_t i = 0; i < 4000; i++) {
    map_step(&map, &cells, &random, i);
    map_check(&map, &cells);
  }
  interval_map_done(&map);
  interval_map_done(&map);
  assert_null(interval_map_find(&map, 0, 0));
}

static void test_map_bounds(void **state)
{
  const struct interval all = {7, 1, 0, UINT64_MAX, 100}, last = {7, 2, UINT64_MAX, UINT64_MAX, 5};
  struct interval_map map = {0}, copy = {0};

  (void)state;
  assert_int_equal(interval_map_clear(&map, 7, 0, UINT64_MAX, 0), 0);
  assert_int_equal(interval_map_copy(&map, &copy), 0);
  assert_int_equal(interval_map_add(&map, &all, 0), LB_E_TOO_BIG);
  assert_int_equal(interval_map_add(&map, &all, 1), 0);
  assert_int_equal(interval_map_add(&map, &last, 1), LB_E_TOO_BIG);
  assert_int_equal(interval_map_add(&map, &last, 2), 0);
  assert_int_equal(interval_map_find(&map, 7, UINT64_MAX)->value, 2);
  assert_true(interval_map_find(&map, 7, UINT64_MAX - 1)->last == UINT64_MAX - 1);
  assert_null(interval_map_find(&map, 6, 0));
  assert_int_equal(interval_map_clear(&map, 7, 0, 0, 2), 0);
  assert_null(interval_map_find(&map, 7, 0));
  assert_true(interval_map_find(&map, 7, 1)->offset == 101);
  assert_int_equal(interval_map_clear(&map, 7, 0, UINT64_MAX, 0), 0);
  assert_int_equal(map.count, 0);
  interval_map_done(&map);
}

static void test_map_no_memory(void **state)
{
  struct interval_map map = {0}, copy = {0};
  uint64_t at = 0;

  (void)state;
  has_memory = false;
  assert_int_equal(interval_map_add(&map, &(struct interval){.last = 9}, SIZE_MAX), -ENOMEM);
  has_memory = true;
  do {
    assert_int_equal(interval_map_add(&map, &(struct interval){.first = at, .last = at + 9}, SIZE_MAX), 0);
    at += 10;
  } while (map.count < map.capacity);
  has_memory = false;
  assert_int_equal(interval_map_clear(&map, 0, 4, 5, SIZE_MAX), -ENOMEM);
  assert_int_equal(interval_map_copy(&map, &copy), -ENOMEM);
  has_memory = true;
  assert_true(!copy.list && !copy.count);
  assert_true(map.count == map.capacity && interval_map_find(&map, 0, 4)->last == 9);
  interval_map_done(&map);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_array_append),  cmocka_unit_test(test_array_no_memory),
    cmocka_unit_test(test_array_reserve), cmocka_unit_test(test_hash_secret),
    cmocka_unit_test(test_hash_spread),   cmocka_unit_test(test_hash_string),
    cmocka_unit_test(test_index_model),   cmocka_unit_test(test_index_hostile),
    cmocka_unit_test(test_index_bounds),  cmocka_unit_test(test_index_no_memory),
    cmocka_unit_test(test_map_model),     cmocka_unit_test(test_map_bounds),
    cmocka_unit_test(test_map_no_memory),
  };

  return cmocka_run_group_tests_name("base_table", tests, NULL, NULL);
}
