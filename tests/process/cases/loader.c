/* SPDX-License-Identifier: Apache-2.0
 *
 * loader CASE PLUGIN...: loads and unloads libraries while it runs; the same addresses hold other code again and again.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include "case.h"

static char **libraries;

static int run(const char *path, int value)
{
  void *library = dlopen(path, RTLD_NOW);
  if (!library) {
    say("%s\n", dlerror());
    return 0;
  }
  int (*function)(int) = (int (*)(int))dlsym(library, "plugin_run");
  int result = function(value) + function(value);
  dlclose(library);
  return result;
}

static int alternate(void)
{
  unsigned sum = 0;
  for (int i = 0; i < 40; i++)
    sum = sum * 3 + (unsigned)run(libraries[i % 2], i);
  say("%u\n", sum);
  return 0;
}

static int keep(void)
{
  void *library = dlopen(libraries[0], RTLD_LAZY | RTLD_GLOBAL);
  int (*function)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "plugin_run");
  Dl_info info;
  say("%d\n", function(1));
  int is_known = dladdr((void *)function, &info) != 0;
  say("%d %s\n", is_known, info.dli_sname);
  say("%d\n", dlclose(library));
  return 0;
}

static int missing(void)
{
  say("%s\n", dlopen("/no/such/library.so", RTLD_NOW) ? "loaded" : dlerror());
  say("%s\n", dlsym(RTLD_DEFAULT, "no_such_symbol") ? "found" : "not found");
  return 0;
}

static int another_space(void)
{
  void *library = dlmopen(LM_ID_NEWLM, libraries[0], RTLD_NOW);
  if (!library) {
    say("%s\n", dlerror());
    return 0;
  }
  int (*function)(int) = (int (*)(int))dlsym(library, "plugin_run");
  say("%d\n", function(2));
  return dlclose(library);
}

static const struct test_case cases[] = {
  {"alternate", alternate}, {"keep", keep}, {"missing", missing}, {"another-space", another_space}};

int main(int argc, char **argv)
{
  static char *names[] = {"./plugin.so", "./plugin2.so"};
  libraries = argc > 3 ? argv + 2 : names;
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
