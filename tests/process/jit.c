/* SPDX-License-Identifier: Apache-2.0
 *
 * A tiny compiler: sums of a few numbers, as code in a page that is writable and executable, in one that is either, and
 * in one that is mapped twice. Each page is filled again and again with code of another shape.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

/* mov $0, %eax; then for each number add $n, %eax; jmp over a UD2; ret. Returns what it adds up to. */
static unsigned compile(uint8_t *code, unsigned numbers)
{
  unsigned sum = 0;
  memcpy(code, "\xB8\0\0\0\0", 5);
  code += 5;
  for (unsigned n = 1; n <= numbers; n++) {
    memcpy(code, "\x83\xC0\0\xEB\x02\x0F\x0B", 7);
    code[2] = (uint8_t)n;
    code += 7;
    sum += n;
  }
  *code = 0xC3;
  return sum;
}

static int code_run(void *code, unsigned sum)
{
  unsigned (*function)(void);
  memcpy(&function, &code, sizeof(function));
  return function() == sum;
}

static int one_page(void)
{
  uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int good = code != MAP_FAILED;
  for (unsigned i = 0; good && i < 4; i++)
    good = code_run(code, compile(code, i));
  return good;
}

static int either_or(void)
{
  uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int good = code != MAP_FAILED;
  for (unsigned i = 1; good && i < 3; i++) {
    mprotect(code, PAGE, PROT_READ | PROT_WRITE);
    unsigned sum = compile(code, i);
    mprotect(code, PAGE, PROT_READ | PROT_EXEC);
    good = code_run(code, sum);
  }
  munmap(code, PAGE);
  return good;
}

static int two_mappings(void)
{
  int file = memfd_create("code", 0);
  if (file < 0 || ftruncate(file, PAGE))
    return 0;
  uint8_t *written = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  uint8_t *executed = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  int good = written != MAP_FAILED && executed != MAP_FAILED;
  for (unsigned i = 2; good && i < 5; i++)
    good = code_run(executed, compile(written, i));
  return good;
}

int main(void)
{
  return !(one_page() && either_or() && either_or() && two_mappings());
}
