/* SPDX-License-Identifier: Apache-2.0
 *
 * C++ names: against what the C++ ABI says of them and names that were made to take all memory. Without a C++ library
 * every name must stay as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "symbol/symbol.h"

static char plain[SYMBOL_NAME_MAX + 1];

static bool has_library(void)
{
  void *library = dlopen("libstdc++.so.6", RTLD_LAZY);

  if (library)
    dlclose(library);
  return library;
}

static void expect(const char *name, const char *wanted)
{
  bool is_made = symbol_demangle(name, plain);

  assert_int_equal(is_made, wanted && has_library());
  if (is_made)
    assert_string_equal(plain, wanted);
}

/* Itanium C++ ABI, 5.1 and 5.2: the examples of the text. */
static void test_names(void **state)
{
  (void)state;
  expect("_Z1fv", "f()");
  expect("_Z1fi", "f(int)");
  expect("_ZN1N1fE", "N::f");
  expect("_ZN1A1fEi", "A::f(int)");
  expect("_ZN5StackIiiE5levelE", "Stack<int, int>::level");
  expect("_ZSt5state", "std::state");
  expect("_ZN1N1fEi@plt", "N::f(int)@plt");
}

static void test_others(void **state)
{
  (void)state;
  expect("main", NULL);
  expect("", NULL);
  expect("i", NULL); /* that would be a type: int */
  expect("_", NULL);
  expect("_Z", NULL);
  expect("_Znonsense", NULL);
  expect("_ZN1A", NULL);
  expect("Z1fv", NULL);
  expect("_ZN\xff\xfe", NULL);
  expect("_Z2\x1b[v", NULL); /* an identifier that would control the terminal */
}

/* A name whose parts name the one before them three times: its text has 3^levels times the letters of the first. */
static void hostile_name(char *name, unsigned levels, unsigned letters)
{
  static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  int at = sprintf(name, "_Z1f%u", letters);

  memset(name + at, 'a', letters);
  at += (int)letters;
  at += sprintf(name + at, "PFS_S_S_E"); /* S_ is the first; S0_ the function, S1_ the pointer */
  for (unsigned level = 1; level < levels; level++) {
    char last[8];
    unsigned number = 2 * level - 1;

    if (number < 36)
      snprintf(last, sizeof(last), "S%c_", digits[number]);
    else
      snprintf(last, sizeof(last), "S%c%c_", digits[number / 36], digits[number % 36]);
    at += sprintf(name + at, "PF%s%s%sE", last, last, last);
  }
}

static void test_hostile(void **state)
{
  (void)state;
  static char name[8192];
  static const unsigned sizes[][2] = {{10, 1}, {14, 1}, {14, 600}, {40, 1}, {40, 400}, {60, 1}, {3, 900}};
  struct timespec begin, end;

  assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &begin), 0);
  for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
    hostile_name(name, sizes[i][0], sizes[i][1]);
    assert_false(symbol_demangle(name, plain)); /* too long in any case */
  }
  assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &end), 0);
  assert_true(end.tv_sec - begin.tv_sec < 20); /* 3^40 letters would take till the end of days */
  hostile_name(name, 2, 3);
  expect(name, "f(aaa, aaa (*)(aaa, aaa), aaa (*(*)(aaa (*)(aaa, aaa), aaa (*)(aaa, aaa)))(aaa, aaa))");
}

/* The longest that fits, and the first that does not: "f(T)" with a T of so many letters. */
static void test_length(void **state)
{
  (void)state;
  char name[2048], wanted[2048];

  for (unsigned letters = SYMBOL_NAME_MAX - 20; letters < SYMBOL_NAME_MAX + 2; letters++) {
    int at = sprintf(name, "_Z1f%u", letters), start = sprintf(wanted, "f(");

    memset(name + at, 'x', letters);
    name[(unsigned)at + letters] = '\0';
    memset(wanted + start, 'x', letters);
    strcpy(wanted + start + letters, ")");
    bool is_fit = strlen(name) <= SYMBOL_NAME_MAX && strlen(wanted) <= SYMBOL_NAME_MAX;
    expect(name, is_fit ? wanted : NULL);
  }
}

/* Names that are mangled and others, asked for twice: the answer is made once, and stays. */
static void test_demangler(void **state)
{
  (void)state;
  struct symbol_demangler *demangler;
  static char names[2000][16];
  const char *made[2000];

  assert_int_equal(symbol_demangler_new(&demangler), 0);
  for (unsigned i = 0; i < 2000; i++) {
    if (i % 3)
      snprintf(names[i], sizeof(names[i]), "_Z5f%04ui", i);
    else
      snprintf(names[i], sizeof(names[i]), "f%04u", i);
    made[i] = symbol_demangler_name(demangler, names[i]);
  }
  for (unsigned i = 0; i < 2000; i++) {
    char wanted[16];

    snprintf(wanted, sizeof(wanted), "f%04u(int)", i);
    assert_ptr_equal(symbol_demangler_name(demangler, names[i]), made[i]);
    if (i % 3 && has_library())
      assert_string_equal(made[i], wanted);
    else
      assert_ptr_equal(made[i], names[i]);
  }
  assert_null(symbol_demangler_name(demangler, NULL));
  assert_ptr_equal(symbol_demangler_name(NULL, names[1]), names[1]);
  symbol_demangler_free(demangler);
  symbol_demangler_free(NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),  cmocka_unit_test(test_others),    cmocka_unit_test(test_hostile),
    cmocka_unit_test(test_length), cmocka_unit_test(test_demangler),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
