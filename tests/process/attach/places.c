/* SPDX-License-Identifier: Apache-2.0
 *
 * places LIBRARY LATER: a process whose code lies in files of which the test changes the place: the program, a library
 * that is loaded at the start, and one that is loaded when the byte 'l' comes on standard input. It says "ready". Each
 * other byte calls the functions of the program and of the libraries, and the answer is how many there were.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

enum { STEPS = 20000 };

typedef unsigned compute_function(unsigned steps);

static __attribute__((noinline)) unsigned program_compute(unsigned steps)
{
  unsigned value = 7;

  for (unsigned i = 0; i < steps; i++)
    value = value & 4 ? value * 1664525 + 1013904223 : value / 3 + 12345;
  return value;
}

/* The library's only function. */
static compute_function *load(const char *path, const char *name)
{
  void *library = dlopen(path, RTLD_NOW);

  return library ? (compute_function *)dlsym(library, name) : NULL;
}

int main(int argc, char **argv)
{
  compute_function *functions[3] = {program_compute, argc > 1 ? load(argv[1], "first_compute") : NULL, NULL};
  char byte;

  printf("ready\n");
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) == 1) {
    unsigned count = 0, sum = 0;

    if (byte == 'l' && argc > 2)
      functions[2] = load(argv[2], "later_compute");
    for (unsigned i = 0; i < 3; i++)
      if (functions[i]) {
        sum += functions[i](STEPS);
        count++;
      }
    printf("%u functions %s\n", count, sum ? "" : "0");
    fflush(stdout);
  }
  return 0;
}
