/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of libc, linked statically and dynamically: memory, sorting through a pointer, formatting, the path of
 * itself, and a status that depends on its arguments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void *one, const void *other)
{
  return *(const int *)one - *(const int *)other;
}

int main(int argc, char **argv)
{
  enum { COUNT = 40 };
  int *numbers = malloc(COUNT * sizeof(*numbers));
  unsigned state = 1;
  for (int i = 0; i < COUNT; i++) {
    state = state * 1103515245 + 12345;
    numbers[i] = (int)(state >> 20);
  }
  qsort(numbers, COUNT, sizeof(*numbers), compare);
  char path[256];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  path[length < 0 ? 0 : length] = 0;
  const char *name = strrchr(path, '/');
  printf("%d %d %.3f %s %s\n", numbers[0], numbers[COUNT - 1], numbers[COUNT / 2] / 7.0, argc > 1 ? argv[1] : "-",
         name ? name + 1 : "?");
  free(numbers);
  return argc;
}
