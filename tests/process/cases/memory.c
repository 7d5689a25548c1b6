/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory as a program may arrange it: fixed places, the heap, deep stacks, limits. The recorder's own memory must be in
 * nobody's way.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#define PAGE 4096u

static void *map_at(uintptr_t address, size_t size, int flags)
{
  return mmap((void *)address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* From the lowest address that is allowed to the highest, at powers of two and beside them. */
static int places(void)
{
  for (unsigned bit = 16; bit < 47; bit++) {
    uintptr_t address = UINT64_C(1) << bit;
    char *page = map_at(address, PAGE, MAP_FIXED_NOREPLACE);
    if (page != (char *)address) {
      say("2^%u: errno %d\n", bit, errno);
      continue;
    }
    page[0] = (char)bit;
    page[PAGE - 1] = (char)bit;
    char *beside = map_at(address + address / 2, PAGE, MAP_FIXED_NOREPLACE);
    say("2^%u: %d %s\n", bit, page[0] == page[PAGE - 1], beside == (char *)address + address / 2 ? "both" : "one");
    munmap(page, PAGE);
    if (beside != MAP_FAILED)
      munmap(beside, PAGE);
  }
  return 0;
}

/* Over whatever is there, where nothing of the program is. */
static int places_taken(void)
{
  for (unsigned bit = 33; bit < 46; bit++) {
    uintptr_t address = UINT64_C(1) << bit;
    char *page = map_at(address, (size_t)16 * PAGE, MAP_FIXED);
    if (page == MAP_FAILED)
      say("2^%u: errno %d\n", bit, errno);
    else
      memset(page, 0xFF, (size_t)16 * PAGE);
  }
  say("%u\n", system("exit 0"));
  return 0;
}

static int low(void)
{
  char *page = map_at(0x10000, (size_t)16 * PAGE, MAP_FIXED);
  memset(page, 0x90, (size_t)16 * PAGE);
  page[PAGE - 1] = (char)0xC3;
  mprotect(page, PAGE, PROT_READ | PROT_EXEC);
  ((void (*)(void))page)();
  say("%p, lower: %d\n", (void *)page, map_at(0, PAGE, MAP_FIXED) == MAP_FAILED ? errno : 0);
  return 0;
}

static int low_32(void)
{
  unsigned good = 0;
  for (int i = 0; i < 100; i++)
    good +=
      (uintptr_t)mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0) >> 31 == 0;
  say("%u below 2 GiB\n", good);
  return 0;
}

/* Address space without memory behind it, as garbage collectors and sanitizers take it. */
static int reserve(void)
{
  for (unsigned bit = 36; bit <= 45; bit++) {
    char *start = mmap(NULL, UINT64_C(1) << bit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    say("2^%u: %s\n", bit, start == MAP_FAILED ? "no" : "yes");
    if (start == MAP_FAILED)
      continue;
    mprotect(start + PAGE, PAGE, PROT_READ | PROT_WRITE);
    start[PAGE] = 1;
    munmap(start, UINT64_C(1) << bit);
  }
  return 0;
}

static int heap(void)
{
  char *start = sbrk(0);
  for (int i = 0; i < 64; i++) {
    char *end = sbrk(1 << 20);
    if (end == (char *)-1) {
      say("at %d MiB: errno %d\n", i, errno);
      return 1;
    }
    memset(end, i, 1 << 20);
  }
  char *end = sbrk(0);
  say("%td bytes\n", end - start);
  if (brk(start))
    return 1;
  say("given back: %d, too much: %d\n", (char *)sbrk(0) == start, sbrk(INTPTR_MAX / 2) == (void *)-1 ? errno : 0);
  return 0;
}

static int allocation(void)
{
  static char *pieces[1000];
  unsigned sum = 0;
  for (unsigned i = 0; i < 20000; i++) {
    unsigned slot = i * 7919 % 1000;
    free(pieces[slot]);
    pieces[slot] = malloc(i * 37 % 40000 + 1);
    memset(pieces[slot], (int)i, i * 37 % 40000 + 1);
    sum += (unsigned char)pieces[slot][0];
  }
  say("%u\n", sum);
  return 0;
}

static unsigned recurse(unsigned depth)
{
  volatile unsigned room[250] = {depth};
  return depth ? recurse(depth - 1) + room[0] : 0;
}

/* 7 of the 8 MiB that are usual, and more after the limit was raised. */
static int deep(void)
{
  struct rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur < 8 << 20)
    return 1;
  say("%u\n", recurse(6500));
  return 0;
}

/* Addresses are limited after the start: what was possible before is not, what is small still is. */
static int limit_space(void)
{
  setrlimit(RLIMIT_AS, &(struct rlimit){UINT64_C(1) << 30, UINT64_C(1) << 30});
  void *small = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  say("100 MiB: %s\n", small == MAP_FAILED ? "no" : "yes");
  void *large = mmap(NULL, (size_t)2 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  say("2 GiB: %s\n", large == MAP_FAILED ? "no" : "yes");
  say("%d\n", WEXITSTATUS(system("exit 6")));
  return 0;
}

/* A program as a small child, before its start: ulimit -v 200000. */
static int limit_child(void)
{
  setrlimit(RLIMIT_AS, &(struct rlimit){UINT64_C(200) << 20, UINT64_C(200) << 20});
  execlp("sh", "sh", "-c", "echo small | cat", NULL);
  return 1;
}

static int limit_files(void)
{
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
  int file = dup(0);
  say("%d errno %d\n", file, file < 0 ? errno : 0);
  pid_t child = fork();
  if (!child)
    _exit(3);
  int status = 0;
  waitpid(child, &status, 0);
  say("%d\n", WEXITSTATUS(status));
  return 0;
}

static int limit_data(void)
{
  setrlimit(RLIMIT_DATA, &(struct rlimit){64 << 20, 64 << 20});
  setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0});
  unsigned sum = recurse(100);
  void *data = sbrk(256 << 20);
  say("%u %s\n", sum, data == (void *)-1 ? "no" : "yes");
  return 0;
}

static int locked(void)
{
  say("%d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
  char *page = map_at(0, PAGE, 0);
  page[0] = 1;
  say("%d\n", munlockall());
  return 0;
}

/* Everything that a mapping can be asked. */
static int inquire(void)
{
  unsigned char there[2];
  char *pages = map_at(0, (size_t)2 * PAGE, 0);
  pages[0] = 1;
  say("%d", mincore(pages, (size_t)2 * PAGE, there));
  say(" %d %d\n", there[0] & 1, there[1] & 1);
  say("%d\n", msync(pages, PAGE, MS_SYNC));
  say("%d\n", madvise(pages, PAGE, MADV_DONTNEED));
  say("%d\n", pages[0]);
  munmap(pages, PAGE);
  errno = 0;
  int result = mprotect(pages, PAGE, PROT_READ);
  say("%d errno %d\n", result, errno);
  char *grown = mremap(pages + PAGE, PAGE, (size_t)100 * PAGE, MREMAP_MAYMOVE);
  grown[99 * PAGE] = 5;
  say("%d\n", grown[99 * PAGE]);
  return 0;
}

static const struct test_case cases[] = {
  {"places", places},
  {"places-taken", places_taken},
  {"low", low},
  {"low-32", low_32},
  {"reserve", reserve},
  {"heap", heap},
  {"allocation", allocation},
  {"deep", deep},
  {"limit-space", limit_space},
  {"limit-child", limit_child},
  {"limit-files", limit_files},
  {"limit-data", limit_data},
  {"locked", locked},
  {"inquire", inquire},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
