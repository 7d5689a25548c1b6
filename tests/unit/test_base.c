/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/base: numbers, the growable string, bytes, words, errors, branch kinds.
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
#include "lastbranch/branch.h"
#include "lastbranch/error.h"

/* ---- numbers ---- */

static void assert_number(const char *word, uint64_t expected)
{
  uint64_t value = ~expected;

  assert_int_equal(number_parse(word, &value), 0);
  assert_true(value == expected);
}

static void test_number_good(void **state)
{
  (void)state;
  assert_number("0", 0);
  assert_number("010", 10);
  assert_number("0x1d9", 0x1D9);
  assert_number("0X1D9", 0x1D9);
  assert_number("18446744073709551615", UINT64_MAX);
  assert_number("0xffffffffffffffff", UINT64_MAX);
  assert_number("0x00000000000000000ff", 0xFF);
  assert_number("-1", UINT64_MAX);
  assert_number("-0", 0);
  assert_number("-9223372036854775808", UINT64_C(1) << 63);
}

static void test_number_bad(void **state)
{
  static const char *const words[] = {
    "",
    "-",
    "0x",
    "0X",
    "-0x1",
    "+1",
    " 1",
    "1 ",
    "1x",
    "ff",
    "0xg",
    "--1",
    "1.",
    "1e3",
    "0b1",
    "x10",
    "1,0",
    "18446744073709551616",
    "18446744073709551620",
    "0x10000000000000000",
    "-9223372036854775809",
    "99999999999999999999999",
  };

  (void)state;
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
    uint64_t value = 42;

    assert_int_equal(number_parse(words[i], &value), LB_E_BAD_NUMBER);
    assert_true(value == 42); /* untouched on failure */
  }
}

/* ---- the growable string ---- */

static void test_text_empty(void **state)
{
  struct text text = {0};

  (void)state;
  assert_string_equal(text_string(&text), "");
  text_done(&text);
  text_done(&text);
  text_done(NULL);
}

static void test_text_add(void **state)
{
  struct text text = {0};

  (void)state;
  assert_int_equal(text_add(&text, ""), 0);
  assert_int_equal(text_add(&text, "last"), 0);
  assert_int_equal(text_add_bytes(&text, "branching", 6), 0);
  assert_int_equal(text_addf(&text, " %d %s", 0x1D9, "MSR"), 0);
  assert_string_equal(text_string(&text), "lastbranch 473 MSR");
  assert_int_equal(text.length, strlen(text.data));
  text_done(&text);
  assert_null(text.data);
  assert_int_equal(text_add(&text, "again"), 0);
  assert_string_equal(text_string(&text), "again");
  text_done(&text);
}

/* Every length around the places where the buffer grows. */
static void test_text_growth(void **state)
{
  struct text text = {0};
  char *expected = calloc(1, 5001);

  (void)state;
  assert_non_null(expected);
  for (size_t i = 0; i < 5000; i++) {
    char letter = (char)('a' + i % 26);

    expected[i] = letter;
    assert_int_equal(i % 2 ? text_addf(&text, "%c", letter) : text_add_bytes(&text, &letter, 1), 0);
    assert_int_equal(text.length, i + 1);
    assert_true(text.capacity > text.length);
  }
  assert_string_equal(text.data, expected);
  text_done(&text);
  assert_int_equal(text_addf(&text, "%s", expected), 0); /* many times the least size at once */
  assert_string_equal(text.data, expected);
  text_done(&text);
  free(expected);
}

static void test_text_too_big(void **state)
{
  struct text text = {0};

  (void)state;
  assert_int_equal(text_add(&text, "kept"), 0);
  assert_int_equal(text_add_bytes(&text, "x", SIZE_MAX), -ENOMEM);
  assert_int_equal(text_add_bytes(&text, "x", SIZE_MAX / 2), -ENOMEM);
  assert_string_equal(text_string(&text), "kept");
  assert_int_equal(text.length, 4);
  text_done(&text);
}

static void test_array_grow(void **state)
{
  unsigned *numbers = NULL;
  size_t capacity = 0;

  (void)state;
  for (unsigned i = 0; i < 1000; i++) {
    numbers = array_grow(numbers, sizeof(*numbers), i, &capacity);
    assert_non_null(numbers);
    assert_true(capacity > i);
    numbers[i] = i;
  }
  for (unsigned i = 0; i < 1000; i++)
    assert_int_equal(numbers[i], i);
  free(numbers);
}

static void test_array_at(void **state)
{
  size_t count = 0, capacity = 0;
  uint64_t *numbers = NULL, *found;

  (void)state;
  found = array_at(&numbers, 5, &count, &capacity);
  assert_ptr_equal(found, &numbers[5]);
  assert_int_equal(count, 6);
  for (size_t i = 0; i < count; i++)
    assert_int_equal(numbers[i], 0);
  memset(numbers, 0xFF, capacity * sizeof(*numbers)); /* what is behind the last element is nobody's */
  found = array_at(&numbers, 2, &count, &capacity);
  assert_ptr_equal(found, &numbers[2]);
  assert_int_equal(count, 6);
  found = array_at(&numbers, 999, &count, &capacity);
  assert_ptr_equal(found, &numbers[999]);
  assert_int_equal(count, 1000);
  for (size_t i = 0; i < count; i++)
    assert_true(numbers[i] == (i < 6 ? UINT64_MAX : 0));
  assert_null(array_at(&numbers, SIZE_MAX / 4, &count, &capacity));
  assert_int_equal(count, 1000);
  free(numbers);
}

static void test_search(void **state)
{
  static const unsigned items[] = {2, 4, 4, 4, 7, 9};

  (void)state;
  for (size_t count = 0; count <= sizeof(items) / sizeof(items[0]); count++)
    for (unsigned wanted = 0; wanted < 11; wanted++) {
      struct search below = {.end = count}, up_to = {.end = count};
      size_t first = 0, behind = 0;

      while (first < count && items[first] < wanted)
        first++;
      while (behind < count && items[behind] <= wanted)
        behind++;
      while (search_next(&below))
        search_turn(&below, items[below.at] < wanted);
      while (search_next(&up_to))
        search_turn(&up_to, items[up_to.at] <= wanted);
      assert_int_equal(below.first, first);
      assert_int_equal(up_to.first, behind);
    }
}

/* ---- bytes ---- */

static void test_bytes(void **state)
{
  static const unsigned char expected[13] = {0xAA, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
                                             0x22, 0x11, 0xAA, 0xAA, 0xAA, 0xAA};
  unsigned char bytes[13];

  (void)state;
  memset(bytes, 0xAA, sizeof(bytes));
  bytes_put_u64(bytes + 1, UINT64_C(0x1122334455667788));
  assert_memory_equal(bytes, expected, sizeof(bytes));
  assert_true(bytes_get_u64(bytes + 1) == UINT64_C(0x1122334455667788));
  assert_true(bytes_get_u32(bytes + 1) == 0x55667788);
  assert_true(bytes_get_u32(bytes + 5) == 0x11223344);
  bytes_put_u32(bytes + 3, 0xFEDCBA98);
  assert_true(bytes_get_u64(bytes + 1) == UINT64_C(0x1122FEDCBA987788));
  assert_true(bytes_get_u32(bytes + 3) == 0xFEDCBA98); /* no sign creeps in */
}

/* ---- words ---- */

static void test_utf8(void **state)
{
  static const struct {
    const char *text;
    size_t size;
  } letters[] = {
    {"", 1},
    {"a", 1},
    {"\x7F", 1},
    {"\xC2\x80", 2},
    {"\xDF\xBFx", 2},
    {"\xE0\xA0\x80", 3},
    {"\xED\x9F\xBF", 3},
    {"\xEF\xBF\xBF", 3},
    {"\xF0\x90\x80\x80", 4},
    {"\xF4\x8F\xBF\xBF", 4},
    {"\x80", 0},
    {"\xC2", 0},
    {"\xC2x", 0},
    {"\xE2\x82", 0},
    {"\xF0\x90\x80", 0},
    {"\xFF", 0},
    {"\xC0\x80", 0},         /* overlong */
    {"\xE0\x9F\xBF", 0},     /* overlong */
    {"\xF0\x8F\xBF\xBF", 0}, /* overlong */
    {"\xED\xA0\x80", 0},     /* a surrogate */
    {"\xF4\x90\x80\x80", 0}, /* past the last one */
  };

  (void)state;
  for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
    if (utf8_size(letters[i].text) != letters[i].size)
      fail_msg("letter %zu has %zu bytes", i, utf8_size(letters[i].text));
}

static void test_word_distance(void **state)
{
  (void)state;
  assert_int_equal(word_distance("", ""), 0);
  assert_int_equal(word_distance("decode", "DECODE"), 0);
  assert_int_equal(word_distance("", "cpu"), 3);
  assert_int_equal(word_distance("cpu", ""), 3);
  assert_int_equal(word_distance("dcode", "decode"), 1);
  assert_int_equal(word_distance("decodde", "decode"), 1);
  assert_int_equal(word_distance("decide", "decode"), 1);
  assert_int_equal(word_distance("deocde", "decode"), 1);
  assert_int_equal(word_distance("edcoed", "decode"), 2);
  assert_int_equal(word_distance("encode", "decode"), 2);
  assert_int_equal(word_distance("kitten", "sitting"), 3);
}

static void test_word_long(void **state)
{
  char word[66];

  (void)state;
  memset(word, 'a', sizeof(word));
  word[64] = '\0';
  assert_int_equal(word_distance(word, word), 0);
  assert_int_equal(word_distance(word, ""), 64);
  word[64] = 'a';
  word[65] = '\0';
  assert_true(word_distance(word, "a") == SIZE_MAX);
  assert_true(word_distance("a", word) == SIZE_MAX);
}

static void test_words_join(void **state)
{
  char text[16], words[] = "a\0bc\0\0d\0\0";

  (void)state;
  assert_int_equal(words_join(text, "ls\0-l\0/", 8), 7);
  assert_string_equal(text, "ls -l /");
  assert_int_equal(words_join(text, "ls\0-l", 4), 4); /* no more than `size` bytes */
  assert_string_equal(text, "ls -");
  assert_int_equal(words_join(text, "\0\0\0", 3), 0);
  assert_string_equal(text, "");
  assert_int_equal(words_join(text, "", 0), 0);
  assert_int_equal(words_join(words, words, sizeof(words) - 1), 7);
  assert_string_equal(words, "a bc  d");
}

/* ---- errors ---- */

static void test_strerror(void **state)
{
  (void)state;
#define LB_ERROR(name, number, text) assert_string_equal(lb_strerror(-(number)), text);
#include "lastbranch/error.def"
#undef LB_ERROR
  assert_string_equal(lb_strerror(-ENOENT), strerror(ENOENT));
  assert_string_equal(lb_strerror(-ENOMEM), strerror(ENOMEM));
  assert_string_equal(lb_strerror(-4095), "unknown error");
  assert_string_equal(lb_strerror(-1000000), "unknown error");
  assert_string_equal(lb_strerror(INT32_MIN), "unknown error");
  assert_string_equal(lb_strerror(ENOENT), "unknown error");
}

/* The sentences stand in the middle of messages, so they have no full stop; and each error has its own. */
static void test_error_sentences(void **state)
{
  static const char *const sentences[] = {
#define LB_ERROR(name, number, text) text,
#include "lastbranch/error.def"
#undef LB_ERROR
  };

  (void)state;
  for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
    assert_true(strlen(sentences[i]) > 3);
    assert_true(sentences[i][strlen(sentences[i]) - 1] != '.');
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal(sentences[i], sentences[j]);
  }
}

/* ---- branch kinds ---- */

static void test_kind_words(void **state)
{
  (void)state;
  for (unsigned kind = 0; kind < LB_BRANCH_KINDS; kind++)
    assert_int_equal(lb_branch_kind_find(lb_branch_kind_name(kind)), kind);
  assert_string_equal(lb_branch_kind_name(LB_BRANCH_JCC), "jcc");
  assert_string_equal(lb_branch_kind_name(LB_BRANCH_NEAR_IND_CALL), "call_ind");
  assert_string_equal(lb_branch_kind_name(LB_BRANCH_RSM), "rsm");
  assert_string_equal(lb_branch_kind_name(LB_BRANCH_KINDS), "?");
  assert_string_equal(lb_branch_kind_name(UINT32_MAX), "?");
  assert_int_equal(lb_branch_kind_find(""), LB_E_NO_KIND);
  assert_int_equal(lb_branch_kind_find("?"), LB_E_NO_KIND);
  assert_int_equal(lb_branch_kind_find("JCC"), LB_E_NO_KIND);
  assert_int_equal(lb_branch_kind_find("jc"), LB_E_NO_KIND);
}

/* Each near kind has a class of its own; everything from the first far one on is FAR. */
static void test_kind_classes(void **state)
{
  (void)state;
  assert_int_equal(lb_branch_kind_class(LB_BRANCH_JCC), LB_CLASS_JCC);
  assert_int_equal(lb_branch_kind_class(LB_BRANCH_NEAR_REL_CALL), LB_CLASS_NEAR_REL_CALL);
  assert_int_equal(lb_branch_kind_class(LB_BRANCH_NEAR_IND_CALL), LB_CLASS_NEAR_IND_CALL);
  assert_int_equal(lb_branch_kind_class(LB_BRANCH_NEAR_RET), LB_CLASS_NEAR_RET);
  assert_int_equal(lb_branch_kind_class(LB_BRANCH_NEAR_IND_JMP), LB_CLASS_NEAR_IND_JMP);
  assert_int_equal(lb_branch_kind_class(LB_BRANCH_NEAR_REL_JMP), LB_CLASS_NEAR_REL_JMP);
  for (unsigned kind = LB_BRANCH_FAR_CALL; kind < LB_BRANCH_UNKNOWN; kind++)
    assert_int_equal(lb_branch_kind_class(kind), LB_CLASS_FAR);
  assert_int_equal(lb_branch_kind_class(LB_BRANCH_UNKNOWN), LB_CLASS_NEAR_IND_JMP);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_number_good), cmocka_unit_test(test_number_bad),    cmocka_unit_test(test_text_empty),
    cmocka_unit_test(test_text_add),    cmocka_unit_test(test_text_growth),   cmocka_unit_test(test_text_too_big),
    cmocka_unit_test(test_bytes),       cmocka_unit_test(test_word_distance), cmocka_unit_test(test_word_long),
    cmocka_unit_test(test_words_join),  cmocka_unit_test(test_strerror),      cmocka_unit_test(test_error_sentences),
    cmocka_unit_test(test_kind_words),  cmocka_unit_test(test_kind_classes),  cmocka_unit_test(test_array_grow),
    cmocka_unit_test(test_array_at),    cmocka_unit_test(test_search),        cmocka_unit_test(test_utf8),
  };

  return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
