/* SPDX-License-Identifier: Apache-2.0
 *
 * Contracts of a timeline and of the page of `lbr view` that shows it: blocks that are merged until they fit and lose
 * no call, the calls that run at a time, strings that stay strings, and digests as FIPS 180-4 has them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* cmocka wants these before it */
#include <cmocka.h>

#include "analysis/timeline_inside.h"
#include "report/view_page.h"

/* ---- blocks ---- */

static uint64_t random_state = 0x2545F4914F6CDD1D;

static uint32_t random_number(uint32_t below)
{
  random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (uint32_t)(random_state >> 33) % below;
}

static struct timeline_block block_make(uint32_t stream, unsigned depth, uint64_t start, uint64_t end,
                                        uint32_t function)
{
  return (struct timeline_block){.start = start,
                                 .end = end,
                                 .start_count = 5 * start,
                                 .end_count = 5 * end,
                                 .busy = end - start,
                                 .weight = end - start,
                                 .calls = 1,
                                 .stream = stream,
                                 .depth = (uint16_t)depth,
                                 .function = function};
}

/* Adds a call with what it calls, as it would be left: what is inside first. Returns where it ends. */
static uint64_t calls_add(struct timeline_store *store, uint32_t stream, unsigned depth, uint64_t start,
                          uint64_t *calls)
{
  uint64_t at = start + 1;
  struct timeline_block block;

  for (uint32_t i = depth < 12 ? random_number(4) : 0; i > 0; i--)
    at = calls_add(store, stream, depth + 1, at + random_number(3), calls);
  block = block_make(stream, depth, start, at + 1, random_number(7));
  assert_int_equal(timeline_store_add(store, &block), 0);
  ++*calls;
  return at + 1;
}

static uint64_t store_calls(const struct timeline_store *store, uint64_t *ret_merged)
{
  uint64_t calls = 0, merged = 0;

  for (size_t i = 0; i < store->count; i++) {
    calls += store->blocks[i].calls;
    merged += store->blocks[i].calls > 1 ? store->blocks[i].calls : 0;
  }
  *ret_merged = merged;
  return calls;
}

/* By stream, depth and start, without overlaps; what is merged is short and not of the tail. */
static void store_check(const struct timeline_store *store)
{
  for (size_t i = 0; i < store->count; i++) {
    const struct timeline_block *block = &store->blocks[i], *before = i ? block - 1 : NULL;

    assert_true(block->start <= block->end && block->busy <= block->end - block->start);
    if (block->calls > 1) {
      assert_true(block->end - block->start < store->merge);
      assert_false(block->flags & TIMELINE_IS_TAIL);
    }
    if (!before || before->stream < block->stream)
      continue;
    assert_int_equal(before->stream, block->stream);
    assert_true(before->depth < block->depth || (before->depth == block->depth && before->end <= block->start));
  }
}

static void test_store_fits(void **state)
{
  struct timeline_store store;
  uint64_t calls = 0, at[3] = {0}, merged;

  (void)state;
  timeline_store_init(&store, 20000, 0);
  while (calls < 300000) {
    uint32_t stream = random_number(3);

    at[stream] = calls_add(&store, stream, 0, at[stream], &calls);
    assert_true(store.count <= 20000);
  }
  assert_int_equal(timeline_store_end(&store), 0);
  assert_true(store.count <= 20000 && store.merge > 0);
  store_check(&store);
  assert_int_equal(store_calls(&store, &merged), calls);
  assert_int_equal(merged, store.merged);
  for (size_t before = store.count; store.merge < 1000000; before = store.count) {
    assert_true(timeline_store_shrink(&store));
    assert_true(store.count <= before);
    store_check(&store);
  }
  assert_int_equal(store_calls(&store, &merged), calls);
  assert_int_equal(merged, store.merged);
  timeline_store_done(&store);
}

static void test_store_tail(void **state)
{
  struct timeline_store store;
  size_t whole = 0;

  (void)state;
  timeline_store_init(&store, 20000, 1000);
  for (uint32_t i = 0; i < 50000; i++) {
    struct timeline_block block = block_make(0, 0, 3 * (uint64_t)i, 3 * (uint64_t)i + 2, 1);

    assert_int_equal(timeline_store_add(&store, &block), 0);
  }
  assert_int_equal(timeline_store_end(&store), 0);
  store_check(&store);
  for (size_t i = 0; i < store.count; i++)
    whole += store.blocks[i].calls == 1;
  assert_int_equal(whole, TIMELINE_TAIL);
  assert_int_equal(store.blocks[store.count - 1].start, 3 * 49999);
  timeline_store_done(&store);
}

/* All that there is to see are rows that cannot be merged: the deepest go. */
static void test_store_rows(void **state)
{
  struct timeline_store store;

  (void)state;
  timeline_store_init(&store, 1000, 0);
  for (uint32_t i = 0; i < 5000; i++) {
    struct timeline_block block = block_make(i / 50, i % 50, 0, 10, 0);

    assert_int_equal(timeline_store_add(&store, &block), 0);
  }
  assert_int_equal(timeline_store_end(&store), 0);
  assert_true(store.count > 0 && store.count <= 1000 && store.has_deeper && store.depth_max < 50);
  timeline_store_done(&store);
}

static void test_store_vote(void **state)
{
  struct timeline_store store;

  (void)state;
  timeline_store_init(&store, 400, 1000); /* too few for a tail */
  for (uint32_t i = 0; i < 50; i++) {     /* function 7 has three of five branches */
    uint64_t at = 10 * (uint64_t)i;
    struct timeline_block one = block_make(0, 0, at, at + 4, i), other = block_make(0, 0, at + 4, at + 10, 7);

    assert_int_equal(timeline_store_add(&store, &one), 0);
    assert_int_equal(timeline_store_add(&store, &other), 0);
  }
  assert_int_equal(timeline_store_end(&store), 0);
  assert_int_equal(store.count, 1);
  assert_int_equal(store.blocks[0].calls, 100);
  assert_int_equal(store.blocks[0].busy, 500);
  assert_int_equal(store.blocks[0].function, 7);
  timeline_store_done(&store);
}

/* One long call is ahead at first; many short ones of another function are more together. */
static void test_store_vote_late(void **state)
{
  struct timeline_store store;
  struct timeline_block block = block_make(0, 0, 0, 100, 1);

  (void)state;
  timeline_store_init(&store, 400, 1000);
  assert_int_equal(timeline_store_add(&store, &block), 0);
  for (uint64_t at = 100; at < 280; at += 3) {
    block = block_make(0, 0, at, at + 3, 7);
    assert_int_equal(timeline_store_add(&store, &block), 0);
  }
  assert_int_equal(timeline_store_end(&store), 0);
  assert_int_equal(store.count, 1);
  assert_int_equal(store.blocks[0].function, 7);
  timeline_store_done(&store);
}

/* ---- calls that run at a time ---- */

static void test_active(void **state)
{
  struct timeline_active active = {0};
  int counts[40][50] = {0};

  (void)state;
  for (unsigned i = 0; i < 400000; i++) {
    uint32_t stream = random_number(40), function = random_number(50);
    int *count = &counts[stream][function];

    if (random_number(100) < 48) {
      assert_int_equal(timeline_active_add(&active, stream, function, 1), *count + 1);
      ++*count;
    } else if (*count > 0) {
      assert_int_equal(timeline_active_add(&active, stream, function, -1), *count);
      --*count;
    } else
      assert_int_equal(timeline_active_add(&active, stream, function, -1), 0);
  }
  /* Functions that run no more take no memory. */
  for (uint32_t stream = 100; stream < 100000; stream++) {
    assert_int_equal(timeline_active_add(&active, stream, 1, 1), 1);
    assert_int_equal(timeline_active_add(&active, stream, 1, -1), 1);
  }
  assert_true(active.count <= 40 * 50 * 2);
  for (uint32_t stream = 0; stream < 40; stream++)
    for (uint32_t function = 0; function < 50; function++)
      assert_int_equal(timeline_active_add(&active, stream, function, -1), counts[stream][function]);
  timeline_active_done(&active);
}

/* ---- strings ---- */

static void quote_check(const char *string, const char *wanted)
{
  struct text text = {0};

  assert_int_equal(view_quote(&text, string), 0);
  assert_string_equal(text_string(&text), wanted);
  text_done(&text);
}

static void test_quote(void **state)
{
  char longest[3000];
  struct text text = {0};

  (void)state;
  quote_check("", "\"\"");
  quote_check("operator<(a, b)", "\"operator\\u003c(a, b)\"");
  quote_check("</script><!--", "\"\\u003c/script\\u003e\\u003c!--\"");
  quote_check("a\"b\\c&d\n\x7F", "\"a\\u0022b\\u005cc\\u0026d\\u000a\\u007f\"");
  quote_check("gr\xC3\xBC\xC3\x9F", "\"gr\xC3\xBC\xC3\x9F\"");
  quote_check("\xFF\xC0\x80x", "\"???x\"");
  quote_check("\xE2\x80\xA8\xE2\x80\xA9", "\"??\"");
  memset(longest, 'x', sizeof(longest));
  longest[sizeof(longest) - 1] = 0;
  assert_int_equal(view_quote(&text, longest), 0);
  assert_true(text.length < 1100);
  text_done(&text);
}

/* ---- digests ---- */

static void digest_check(const char *bytes, const char *wanted)
{
  char text[VIEW_DIGEST_SIZE];

  view_digest(bytes, strlen(bytes), text);
  assert_string_equal(text, wanted);
}

/* The examples of FIPS 180-4: "abc" and 448 bits, and nothing at all; in base64. */
static void test_digest(void **state)
{
  (void)state;
  digest_check("", "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  digest_check("abc", "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  digest_check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
               "sha256-JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_store_fits), cmocka_unit_test(test_store_tail),      cmocka_unit_test(test_store_rows),
    cmocka_unit_test(test_store_vote), cmocka_unit_test(test_store_vote_late), cmocka_unit_test(test_active),
    cmocka_unit_test(test_quote),      cmocka_unit_test(test_digest),
  };

  return cmocka_run_group_tests_name("timeline_store", tests, NULL, NULL);
}
