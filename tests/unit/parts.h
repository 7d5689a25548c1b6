/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program of several source files: each file ends in a PART, which lists its tests, and parts.c has the main
 * that runs all of them. One program takes less time to link than several.
 */
#ifndef TESTS_PARTS_H
#define TESTS_PARTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct part {
  const struct CMUnitTest *tests;
  size_t count;
  struct part *next;
};

void part_add(struct part *part);

/* The tests of this file: cmocka_unit_test(name), and so on. */
#define PART(...)                                                                                                      \
  static const struct CMUnitTest part_tests[] = {__VA_ARGS__};                                                         \
  static __attribute__((constructor)) void part_register(void)                                                         \
  {                                                                                                                    \
    static struct part part = {part_tests, sizeof(part_tests) / sizeof(part_tests[0]), NULL};                          \
    part_add(&part);                                                                                                   \
  }                                                                                                                    \
  struct part

#endif
