/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of address spaces: what lies where after many changes, compared with an array that has a place for every page;
 * the address space of this process, compared with what its loader and its memory say; build-ids and limits.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbol/symbol.h"

/* ---- helpers ---- */

static struct symbol_cache *cache_make(void)
{
  struct symbol_cache *cache = NULL;

  assert_int_equal(symbol_cache_new(NULL, &cache), 0);
  return cache;
}

static struct symbol_space *space_make(struct symbol_cache *cache)
{
  struct symbol_space *space = NULL;

  assert_int_equal(symbol_space_new(cache, &space), 0);
  return space;
}

static int add(struct symbol_space *space, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
  return symbol_space_add(space, &(struct symbol_mapping){start, end, offset, path, NULL, 0});
}

static void assert_at(struct symbol_space *space, uint64_t address, const char *path, uint64_t offset)
{
  struct symbol_place place = {0};

  if (!symbol_space_find(space, address, true, &place))
    fail_msg("nothing at %#llx", (unsigned long long)address);
  assert_string_equal(place.module, path);
  assert_null(place.symbol);
  assert_int_equal(place.offset, offset);
  assert_int_equal(place.frame_count, 0);
}

static void assert_nothing(struct symbol_space *space, uint64_t address)
{
  struct symbol_place place = {.offset = 77};
  struct symbol_module *module = NULL;
  uint64_t linked;

  assert_false(symbol_space_find(space, address, true, &place));
  assert_int_equal(place.offset, 77);
  assert_int_equal(symbol_space_module(space, address, &module, &linked), -ENOENT);
  assert_null(module);
}

/* ---- what lies where ---- */

static void test_few(void **state)
{
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache), *copy = NULL;

  (void)state;
  assert_nothing(space, 0);
  assert_int_equal(symbol_space_remove(space, 0, 0), 0);
  assert_int_equal(add(space, 0x1000, 0x5000, 0x100, "/a"), 0);
  assert_nothing(space, 0xfff);
  assert_at(space, 0x1000, "/a", 0x100);
  assert_at(space, 0x4fff, "/a", 0x40ff);
  assert_nothing(space, 0x5000);
  assert_int_equal(symbol_space_copy(space, &copy), 0);
  assert_int_equal(add(copy, 0x2000, 0x3000, 0, "/b"), 0);
  assert_int_equal(symbol_space_remove(copy, 0x1000, 0x1800), 0);
  assert_nothing(copy, 0x17ff);
  assert_at(copy, 0x1800, "/a", 0x900);
  assert_at(copy, 0x2001, "/b", 1);
  assert_at(copy, 0x3000, "/a", 0x2100);
  assert_at(space, 0x2001, "/a", 0x1101); /* the first one stays as it was */
  assert_at(space, 0x1000, "/a", 0x100);
  symbol_space_free(space);
  assert_at(copy, 0x2001, "/b", 1);
  symbol_space_free(copy);
  symbol_cache_free(cache);
}

static void test_ends(void **state)
{
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache);

  (void)state;
  assert_int_equal(add(space, 5, 5, 0, "/a"), -EINVAL);
  assert_int_equal(add(space, 6, 5, 0, "/a"), -EINVAL);
  assert_int_equal(symbol_space_remove(space, 6, 5), -EINVAL);
  assert_int_equal(add(space, UINT64_MAX - 4095, 0, 0, "/last"), 0);
  assert_int_equal(add(space, 0, 1, 3, "/first"), 0);
  assert_at(space, UINT64_MAX, "/last", 4095);
  assert_at(space, 0, "/first", 3);
  assert_nothing(space, 1);
  assert_int_equal(add(space, 0, 0, 7, "/all"), 0);
  assert_at(space, UINT64_MAX, "/all", UINT64_MAX + 7);
  assert_int_equal(symbol_space_remove(space, UINT64_MAX, 0), 0);
  assert_nothing(space, UINT64_MAX);
  assert_at(space, UINT64_MAX - 1, "/all", UINT64_MAX + 6);
  symbol_space_free(space);
  symbol_cache_free(cache);
}

#define PAGES 64u

/* Random changes in a space of 64 pages, and the same in an array. */
static void test_many(void **state)
{
  static const char *const paths[] = {"/a", "/b", "/c"};
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache), *copy;
  struct page {
    const char *path;

    uint64_t offset;
  } pages[PAGES] = {{0}};
  uint64_t random = 4;

  (void)state;
  for (unsigned round = 0; round < 3000; round++) {
    unsigned first, last, what;

    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    first = (unsigned)(random >> 40) % PAGES;
    last = first + (unsigned)(random >> 50) % (PAGES - first) % 16;
    what = (unsigned)(random >> 33) % 4;
    if (what == 3)
      assert_int_equal(symbol_space_remove(space, first * 4096, (last + 1) * 4096), 0);
    else
      assert_int_equal(add(space, first * 4096, (last + 1) * 4096, round * 4096, paths[what]), 0);
    for (unsigned i = first; i <= last; i++)
      pages[i] = (struct page){what == 3 ? NULL : paths[what], (round + i - first) * 4096};
    if (round % 100 == 99) {
      assert_int_equal(symbol_space_copy(space, &copy), 0);
      symbol_space_free(space);
      space = copy;
    }
    for (unsigned i = 0; i < PAGES; i++) {
      if (!pages[i].path) {
        assert_nothing(space, i * 4096 + 1);
        continue;
      }
      assert_at(space, i * 4096, pages[i].path, pages[i].offset);
      assert_at(space, i * 4096 + 4095, pages[i].path, pages[i].offset + 4095);
    }
  }
  symbol_space_free(space);
  symbol_cache_free(cache);
}

static void test_limits(void **state)
{
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache);
  uint8_t build_id[SYMBOL_BUILD_ID_MAX + 1] = {0};
  char path[32];
  int r = 0;

  (void)state;
  assert_int_equal(symbol_space_add(space, &(struct symbol_mapping){0, 1, 0, "/a", build_id, sizeof(build_id)}),
                   LB_E_TOO_BIG);
  for (unsigned i = 0; i < SYMBOL_MODULES_MAX; i++) {
    snprintf(path, sizeof(path), "/%u", i);
    assert_int_equal(add(space, i * 16, i * 16 + 8, 0, path), 0);
  }
  assert_int_equal(add(space, 0, 8, 0, "/one more"), LB_E_TOO_BIG);
  assert_at(space, 0, "/0", 0);
  for (uint64_t i = SYMBOL_MODULES_MAX; r == 0 && i <= SYMBOL_MAPPINGS_MAX; i++)
    r = add(space, i * 16, i * 16 + 8, 0, "/0");
  assert_int_equal(r, LB_E_TOO_BIG);
  assert_at(space, 17, "/1", 1);
  assert_int_equal(symbol_space_remove(space, 0, 0), LB_E_TOO_BIG); /* it might have had to cut one */
  symbol_space_free(space);
  symbol_cache_free(cache);
}

/* ---- the text of /proc/PID/maps ---- */

static void test_maps(void **state)
{
  static const char text[] =
    "00400000-00452000 r-xp 00001000 08:02 173521                             /usr/bin/dbus-daemon\n"
    "00651000-00652000 r--p 00051000 08:02 173521                             /usr/bin/dbus-daemon\n"
    "35b1800000-35b1820000 r-xp 00000000 08:02 135522                         /lib/a name with  blanks.so\n"
    "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n"
    "7f0000002000-7f0000003000 r-xp 00000000 00:05 12                         /memfd:code (deleted)\n"
    "7f0000004000-7f0000005000 r-xp 00000000 08:02 9                          relative\n"
    "7f0000007000-7f0000006000 r-xp 00000000 08:02 9                          /backwards\n"
    "nonsense\n"
    "7fff00000000-7fff00002000 r-xp 00000000 00:00 0                          [vdso]\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
    "7fff10000000-7fff10001000 r-xp 00000000 08:02 7                          /last, without end of line";
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache);

  (void)state;
  assert_int_equal(symbol_space_add_maps(space, text, sizeof(text) - 1, "/no/such/root"), 0);
  assert_at(space, 0x400010, "/no/such/root/usr/bin/dbus-daemon", 0x1010);
  assert_nothing(space, 0x651000); /* not code */
  assert_at(space, UINT64_C(0x35b1800004), "/no/such/root/lib/a name with  blanks.so", 4);
  assert_nothing(space, UINT64_C(0x7f0000000000));
  assert_nothing(space, UINT64_C(0x7f0000002000));
  assert_nothing(space, UINT64_C(0x7f0000004000));
  assert_nothing(space, UINT64_C(0x7f0000006000));
  assert_at(space, UINT64_C(0x7fff00000123), "[vdso]", 0x123);
  assert_nothing(space, UINT64_C(0xffffffffff600000));
  assert_at(space, UINT64_C(0x7fff10000000), "/no/such/root/last, without end of line", 0);
  assert_int_equal(symbol_space_add_maps(space, "", 0, ""), 0);
  symbol_space_free(space);
  symbol_cache_free(cache);
}

/* ---- this process ---- */

static void maps_read(struct symbol_space *space)
{
  FILE *maps = fopen("/proc/self/maps", "r");
  unsigned long long start, end, offset;
  char line[5000], path[4200], access[5];

  assert_non_null(maps);
  while (fgets(line, sizeof(line), maps))
    if (sscanf(line, "%llx-%llx %4s %llx %*s %*u %4195[^\n]", &start, &end, access, &offset, path) == 5)
      assert_int_equal(add(space, start, end, offset, path), 0);
  fclose(maps);
}

__attribute__((noinline)) int test_symbol_space_here(int x);
int test_symbol_space_here(int x)
{
  return x * 3 + 1;
}

/* An address of a function that the loader knows: the module, the symbol and the bytes. */
static void assert_known(struct symbol_space *space, const char *name, void *function)
{
  struct symbol_module *module = NULL;
  struct symbol_place place = {0};
  uint64_t address = (uint64_t)(uintptr_t)function, linked = 0, symbol = 0;
  uint8_t code[32];

  Dl_info info;

  assert_non_null(function);
  assert_int_not_equal(dladdr(function, &info), 0);
  assert_int_equal(symbol_space_module(space, address, &module, &linked), 0);
  assert_int_equal(linked, address - (uintptr_t)info.dli_fbase); /* all of these are linked for 0 */
  assert_true(symbol_module_address(module, name, &symbol));
  assert_int_equal(symbol, linked);
  assert_true(symbol_space_find(space, address + 1, false, &place));
  assert_int_equal(place.address, linked + 1);
  assert_int_equal(place.offset, 1);
  assert_string_equal(place.symbol, name);
  assert_int_equal(symbol_space_code(space, address, code, sizeof(code)), sizeof(code));
  assert_memory_equal(code, function, sizeof(code));
}

static void test_self(void **state)
{
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache);
  struct symbol_module *module;
  struct symbol_place place = {0};
  int variable = test_symbol_space_here(1);
  void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_GLOBAL); /* and libelf, which it needs */
  uint64_t linked;

  Dl_info info;

  (void)state;
  assert_non_null(library);
  maps_read(space);
  assert_known(space, "hcreate_r", dlsym(RTLD_DEFAULT, "hcreate_r")); /* one that no sanitizer puts itself before */
  assert_known(space, "elf_begin", dlsym(RTLD_DEFAULT, "elf_begin"));
  assert_known(space, "dwarf_begin_elf", dlsym(RTLD_DEFAULT, "dwarf_begin_elf"));
  assert_int_not_equal(dladdr((void *)(uintptr_t)test_symbol_space_here, &info), 0);
  assert_true(symbol_space_find(space, (uintptr_t)test_symbol_space_here + 1, false, &place));
  assert_string_equal(place.symbol, "test_symbol_space_here");
  assert_int_equal(place.offset, 1);
  assert_int_equal(symbol_space_module(space, (uintptr_t)&variable, &module, &linked), -ENOENT); /* the stack's */
  symbol_space_free(space);
  symbol_cache_free(cache);
  dlclose(library);
}

static void test_vdso(void **state)
{
  uint64_t start = getauxval(AT_SYSINFO_EHDR), linked = 0, address = 0;
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache);
  struct symbol_module *module, *same = NULL;
  struct symbol_place place = {0};
  uint8_t code[16];

  Dl_info info;

  (void)state;
  if (!start)
    skip();
  assert_int_equal(add(space, start, start + 4096, 0, "[vdso]"), 0);
  assert_at(space, start + 100, "[vdso]", 100);
  symbol_space_free(space);
  symbol_cache_free(cache);
  cache = cache_make();
  space = space_make(cache);
  assert_int_equal(symbol_cache_add_vdso(cache), 0);
  assert_int_equal(symbol_cache_add_vdso(cache), 0);
  assert_int_equal(add(space, start, start + 4096, 0, "[vdso]"), 0);
  assert_int_equal(symbol_space_module(space, start + 100, &module, &linked), 0);
  assert_int_equal(linked, 100);
  assert_int_equal(symbol_cache_module(cache, "[vdso]", &same), 0);
  assert_ptr_equal(same, module);
  assert_true(symbol_module_address(module, "__vdso_gettimeofday", &address) ||
              symbol_module_address(module, "gettimeofday", &address));
  assert_int_not_equal(dladdr((void *)(uintptr_t)(start + address), &info), 0);
  assert_non_null(info.dli_sname); /* of two names of one address, the loader may take the other one */
  assert_int_equal((uintptr_t)info.dli_saddr, start + address);
  assert_true(symbol_space_find(space, start + address, true, &place));
  assert_non_null(place.symbol);
  assert_int_equal(place.offset, 0);
  assert_int_equal(symbol_space_code(space, start + address, code, sizeof(code)), sizeof(code));
  assert_memory_equal(code, (const void *)(uintptr_t)(start + address), sizeof(code));
  symbol_space_free(space);
  symbol_cache_free(cache);
}

/* ---- build-ids, files that cannot be opened ---- */

static void test_build_id(void **state)
{
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache);
  struct symbol_module *module;
  struct symbol_layout layout;
  struct symbol_place place = {0};
  uint64_t qsort_address = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "qsort"), linked;

  Dl_info info;
  char path[4096];

  (void)state;
  assert_int_not_equal(dladdr((void *)(uintptr_t)qsort_address, &info), 0);
  assert_non_null(realpath(info.dli_fname, path));
  qsort_address -= (uint64_t)(uintptr_t)info.dli_fbase;
  assert_int_equal(symbol_module_open(path, NULL, &module), 0);
  layout = *symbol_module_layout(module);
  symbol_module_close(module);
  if (!layout.build_id_size)
    skip();
  for (uint64_t i = 0; i < 2; i++) { /* the true one, then another one */
    struct symbol_mapping mapping = {i << 32, (i + 1) << 32, 0, path, layout.build_id, layout.build_id_size};

    assert_int_equal(symbol_space_add(space, &mapping), 0);
    layout.build_id[0] ^= 1;
  }
  assert_true(symbol_space_find(space, qsort_address, false, &place));
  assert_non_null(place.symbol);
  assert_string_equal(place.module, path);
  assert_int_equal(symbol_space_module(space, (UINT64_C(1) << 32) + qsort_address, &module, &linked), LB_E_NO_SYMBOLS);
  assert_at(space, (UINT64_C(1) << 32) + qsort_address, path, qsort_address);
  assert_int_equal(symbol_space_code(space, (UINT64_C(1) << 32) + qsort_address, path, 16), 0);
  assert_int_equal(symbol_space_module(space, (UINT64_C(1) << 32) - 1, &module, &linked), LB_E_NO_ENTRY);
  symbol_space_free(space);
  symbol_cache_free(cache);
}

static void test_bad_files(void **state)
{
  static const struct {
    const char *path;
    int error;
  } files[] = {
    {"/nowhere/at all", -ENOENT}, {"relative", -ENOENT}, {"[heap]", -ENOENT}, {"", -ENOENT}, {"/dev", -EISDIR},
    {"/dev/null", -ESPIPE},
  };
  struct symbol_cache *cache = cache_make();
  struct symbol_space *space = space_make(cache);
  struct symbol_module *module = NULL;
  uint64_t linked;

  (void)state;
  for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
    assert_int_equal(add(space, i * 16, i * 16 + 16, 0, files[i].path), 0);
    for (unsigned again = 0; again < 2; again++)
      assert_int_equal(symbol_space_module(space, i * 16, &module, &linked), files[i].error);
    assert_at(space, i * 16 + 3, files[i].path, 3);
    assert_int_equal(symbol_cache_module(cache, files[i].path, &module), files[i].error);
  }
  assert_null(module);
  symbol_space_free(space);
  symbol_cache_free(cache);
  symbol_space_free(NULL);
  symbol_cache_free(NULL);
  symbol_module_close(NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_few),    cmocka_unit_test(test_ends),     cmocka_unit_test(test_many),
    cmocka_unit_test(test_limits), cmocka_unit_test(test_maps),     cmocka_unit_test(test_self),
    cmocka_unit_test(test_vdso),   cmocka_unit_test(test_build_id), cmocka_unit_test(test_bad_files),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
