/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that is made or changed while the program runs, in all the ways in which a program may do that on x86: there the
 * processor sees to it that what was written is what is executed.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

#define PAGE 4096u

typedef unsigned function(unsigned);

/* mov $value, %eax; add %edi, %eax; ret */
static void code_write(unsigned char *place, unsigned value)
{
  unsigned char code[] = {0xB8,
                          (unsigned char)value,
                          (unsigned char)(value >> 8),
                          (unsigned char)(value >> 16),
                          (unsigned char)(value >> 24),
                          0x01,
                          0xF8,
                          0xC3};
  memcpy(place, code, sizeof(code));
}

static unsigned char *page_map(int protection)
{
  return mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static unsigned call(const void *place, unsigned argument)
{
  return ((function *)(uintptr_t)place)(argument);
}

/* Written, then made executable; and back, again and again. */
static int protect(void)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE);
  unsigned sum = 0;
  for (unsigned i = 0; i < 50; i++) {
    code_write(page + i % 3 * 16, i * 1000);
    mprotect(page, PAGE, PROT_READ | PROT_EXEC);
    sum = sum * 3 + call(page + i % 3 * 16, i);
    sum = sum * 3 + call(page + i % 3 * 16, sum);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
  }
  say("%u\n", sum);
  return 0;
}

/* Writable and executable at the same time, rewritten between calls. */
static int in_place(void)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned sum = 0;
  for (unsigned i = 0; i < 300; i++) {
    code_write(page, i);
    sum = sum * 3 + call(page, 1);
    page[1] = (unsigned char)(i + 7); /* one byte of the constant */
    sum = sum * 3 + call(page, 1);
  }
  say("%u\n", sum);
  return 0;
}

/* The same memory at two addresses: written at one, executed at the other. */
static int two_mappings(void)
{
  int file = memfd_create("code", 0);
  if (ftruncate(file, PAGE))
    return 1;
  unsigned char *writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  unsigned char *executable = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  unsigned sum = 0;
  for (unsigned i = 0; i < 100; i++) {
    code_write(writable, i);
    sum = sum * 3 + call(executable, 5);
  }
  say("%u\n", sum);
  return 0;
}

/* By a system call: read into code; and pwrite to the file that is mapped. */
static int by_kernel(void)
{
  int ends[2], file = memfd_create("code", 0);
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned char bytes[8];
  unsigned sum = 0;
  if (pipe(ends) || ftruncate(file, PAGE))
    return 1;
  unsigned char *mapped = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  for (unsigned i = 0; i < 50; i++) {
    code_write(bytes, i);
    if (write(ends[1], bytes, 8) != 8 || read(ends[0], page, 8) != 8 || pwrite(file, bytes, 8, 0) != 8)
      return 1;
    sum = sum * 3 + call(page, 2) + call(mapped, 3);
  }
  say("%u\n", sum);
  return 0;
}

/* Code that changes an instruction a few bytes ahead of itself, in the same page and in the same straight run:
 * movb %dil, 1f+1(%rip); 1: mov $0, %eax; ret */
static int ahead(void)
{
  static const unsigned char code[] = {0x40, 0x88, 0x3D, 0x01, 0, 0, 0, 0xB8, 0, 0, 0, 0, 0xC3};
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned sum = 0;
  memcpy(page + 100, code, sizeof(code));
  for (unsigned i = 0; i < 100; i++)
    sum = sum * 3 + call(page + 100, i);
  say("%u\n", sum);
  return 0;
}

/* A loop that changes its own body in every round:
 * xor %eax, %eax; 1: add $1, %eax; incb 1b+2(%rip); dec %edi; jnz 1b; ret */
static int loop(void)
{
  static const unsigned char code[] = {0x31, 0xC0, 0x83, 0xC0, 0x01, 0xFE, 0x05, 0xF9,
                                       0xFF, 0xFF, 0xFF, 0xFF, 0xCF, 0x75, 0xF3, 0xC3};
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  memcpy(page, code, sizeof(code));
  say("%u\n", call(page, 100));
  return 0;
}

/* Data beside the code, in the same page, written all the time. */
static int data_beside(void)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned sum = 0;
  code_write(page, 11);
  for (unsigned i = 0; i < 20000; i++) {
    page[2048 + i % 2000] = (unsigned char)i;
    sum += call(page, page[2048 + i % 1000]);
  }
  say("%u\n", sum);
  return 0;
}

/* Other code at the same address. */
static int replaced(void)
{
  unsigned sum = 0;
  unsigned char *place = page_map(PROT_READ);
  for (unsigned i = 0; i < 50; i++) {
    munmap(place, PAGE);
    unsigned char *page = mmap(place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    code_write(page, i * 3);
    mprotect(page, PAGE, PROT_READ | PROT_EXEC);
    sum = sum * 3 + call(page, 1);
  }
  say("%u\n", sum);
  for (unsigned i = 0; i < 20; i++) { /* over the old mapping, without munmap */
    mmap(place, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    code_write(place, i * 5);
    sum = sum * 3 + call(place, 1);
  }
  say("%u\n", sum);
  return 0;
}

static int moved(void)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned char *target = page_map(PROT_NONE);
  unsigned sum = 0;
  code_write(page, 21);
  for (int i = 0; i < 20; i++) {
    unsigned char *other = mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    target = page;
    page = other;
    sum = sum * 3 + call(page, 1);
    page[1]++;
    sum = sum * 3 + call(page, 1);
  }
  say("%u\n", sum);
  return 0;
}

static sigjmp_buf back;

static void on_fault(int signal, siginfo_t *info, void *context)
{
  (void)context;
  say("signal %d code %d\n", signal, info->si_code);
  siglongjmp(back, 1);
}

/* What is not executable any more, or gone, must not run. */
static int taken_away(void)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  code_write(page, 1);
  say("%u\n", call(page, 1));
  mprotect(page, PAGE, PROT_READ | PROT_WRITE);
  if (!sigsetjmp(back, 1))
    say("%u\n", call(page, 1));
  mprotect(page, PAGE, PROT_READ | PROT_EXEC);
  say("%u\n", call(page, 1));
  munmap(page, PAGE);
  if (!sigsetjmp(back, 1))
    say("%u\n", call(page, 1));
  return 0;
}

/* Zeroed by madvise: ADD %AL, (%RAX) all over, which faults at 0. */
static int dropped(void)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  code_write(page, 1);
  say("%u\n", call(page, 1));
  madvise(page, PAGE, MADV_DONTNEED);
  if (!sigsetjmp(back, 1))
    say("%u\n", call(page, 1));
  return 0;
}

/* Code on the stack, as for a pointer to a nested function. */
static unsigned apply(function *what, unsigned times)
{
  unsigned sum = 0;
  for (unsigned i = 0; i < times; i++)
    sum = sum * 3 + what(i);
  return sum;
}

static int trampolines(void)
{
  unsigned total = 0;
  for (unsigned factor = 1; factor < 20; factor++) {
    unsigned nested(unsigned value)
    {
      return value * factor + total;
    }
    total += apply(nested, 10);
  }
  say("%u\n", total);
  return 0;
}

/* Across the boundary of two pages, of which the second changes. */
static int boundary(void)
{
  unsigned char *two =
    mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned sum = 0;
  for (unsigned i = 0; i < 30; i++) {
    code_write(two + PAGE - 3, i << 16 | i);
    sum = sum * 3 + call(two + PAGE - 3, 1);
    two[PAGE] ^= 1;
    sum = sum * 3 + call(two + PAGE - 3, 1);
  }
  say("%u\n", sum);
  return 0;
}

/* A page full of functions, all rewritten. */
static int many(void)
{
  unsigned sum = 0;
  unsigned char *pages =
    mmap(NULL, (size_t)64 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (unsigned turns = 0; turns < 3; turns++) {
    for (unsigned i = 0; i < 64 * PAGE / 16; i++)
      code_write(pages + i * 16, i + turns);
    for (unsigned i = 0; i < 64 * PAGE / 16; i++)
      sum = sum * 3 + call(pages + i * 16, turns);
  }
  say("%u\n", sum);
  return 0;
}

/* More often than anybody would keep old translations. */
static int often(void)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned sum = 0;
  code_write(page, 0);
  for (unsigned i = 0; i < 30000; i++) {
    page[1] = (unsigned char)i;
    page[2] = (unsigned char)(i >> 8);
    sum = sum * 3 + call(page, 1);
  }
  say("%u\n", sum);
  return 0;
}

/* call `to`; ret */
static void call_write(unsigned char *place, const unsigned char *to)
{
  int distance = (int)(to - (place + 5));
  place[0] = 0xE8;
  memcpy(place + 1, &distance, sizeof(distance));
  place[5] = 0xC3;
}

/* A function that is only called from another page, where nothing else was executed before. */
static int called(void)
{
  unsigned char *pages =
    mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char *function = pages + PAGE + PAGE / 2;
  unsigned sum = 0;
  call_write(pages, function);
  for (unsigned i = 0; i < 10; i++) {
    code_write(function, i * 1000);
    sum = sum * 3 + call(pages, i);
  }
  say("%u\n", sum);
  return 0;
}

/* Functions in so many pages that not each of them can be watched. */
static int many_pages(void)
{
  enum { PAGES = 20000, FIRST = 1000 };
  unsigned char *pages =
    mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned sum = 0;
  for (unsigned i = 0; i < PAGES; i++)
    code_write(pages + (size_t)i * PAGE, i);
  for (unsigned i = 0; i < PAGES; i++)
    sum = sum * 3 + call(pages + (size_t)i * PAGE, 1);
  for (unsigned i = FIRST; i < PAGES; i += FIRST - 1) {
    code_write(pages + (size_t)i * PAGE, i + 1);
    sum = sum * 3 + call(pages + (size_t)i * PAGE, 1);
  }
  say("%u\n", sum);
  return 0;
}

/* Phases in which a page is written to often, and longer ones in which it is not. */
static unsigned phases_sum(unsigned count, unsigned calls)
{
  unsigned char *page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned sum = 0;
  code_write(page, 0);
  code_write(page + 64, 7);
  for (unsigned i = 0; i < count; i++) {
    for (unsigned j = 0; j < 40; j++) {
      page[1] = (unsigned char)(i + j);
      sum = sum * 3 + call(page, j);
    }
    for (unsigned j = 0; j < calls; j++)
      sum = sum * 3 + call(page + j % 2 * 64, j);
  }
  return sum;
}

static int phases(void)
{
  say("%u\n", phases_sum(12, 20000));
  return 0;
}

static int few_phases(void)
{
  say("%u\n", phases_sum(2, 2500));
  return 0;
}

/* ---- changed by others ---- */

struct exchange {
  volatile unsigned asked, answered, result;
  unsigned char *page;
};

static void serialize(void)
{
  unsigned leaf = 0;
  __asm__ volatile("cpuid" : "+a"(leaf)::"ebx", "ecx", "edx", "memory");
}

/* Calls what was written, each time it is asked to; until it is asked for UINT32_MAX. */
static void *answer(void *argument)
{
  struct exchange *exchange = argument;
  for (unsigned seen = 0; seen != UINT32_MAX;) {
    while (exchange->asked == seen)
      sched_yield();
    seen = exchange->asked;
    serialize(); /* as the manual wants it of who executes what another processor has written */
    exchange->result = call(exchange->page, 5);
    exchange->answered = seen;
  }
  return NULL;
}

static unsigned ask(struct exchange *exchange, unsigned char *writable, unsigned count)
{
  unsigned wrong = 0;
  for (unsigned i = 1; i <= count; i++) {
    code_write(writable, i * 77);
    exchange->asked = i == count ? UINT32_MAX : i;
    while (exchange->answered != exchange->asked)
      sched_yield();
    wrong += exchange->result != i * 77 + 5;
  }
  return wrong;
}

static int by_thread(void)
{
  pthread_t thread;
  struct exchange exchange = {.page = page_map(PROT_READ | PROT_WRITE | PROT_EXEC)};
  pthread_create(&thread, NULL, answer, &exchange);
  say("wrong %u\n", ask(&exchange, exchange.page, 300));
  pthread_join(thread, NULL);
  return 0;
}

static int by_process(void)
{
  int file = memfd_create("code", 0);
  if (ftruncate(file, (off_t)2 * PAGE))
    return 1;
  struct exchange *exchange = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, PAGE);
  exchange->page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  unsigned char *writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  pid_t child = fork();
  if (!child) {
    answer(exchange);
    _exit(0);
  }
  say("wrong %u\n", ask(exchange, writable, 300));
  waitpid(child, NULL, 0);
  return 0;
}

/* Many threads run functions in pages that another thread writes to, elsewhere in the page: again and again several of
 * them are in the old translation of a function at the same time, and leave it together. */
enum { CROWD = 8, CROWD_PAGES = 12, CROWD_WRITES = 15 };

struct crowd {
  unsigned char *pages;
  volatile unsigned page; /* CROWD_PAGES: it is over */
};

static unsigned char *crowd_page(const struct crowd *crowd, unsigned page)
{
  return crowd->pages + (size_t)page * PAGE;
}

static void *crowd_call(void *argument)
{
  const struct crowd *crowd = argument;
  uintptr_t wrong = 0;
  for (unsigned page, i = 0; (page = crowd->page) < CROWD_PAGES; i++)
    wrong += call(crowd_page(crowd, page), i) != page + i;
  return (void *)wrong;
}

/* The mapping, which the kernel fills, keeps the recorder's lock busy. */
static void crowd_write(struct crowd *crowd, unsigned page)
{
  enum { SIZE = 1 << 20 };
  crowd->page = page;
  for (unsigned i = 0; i < CROWD_WRITES; i++) {
    crowd_page(crowd, page)[PAGE / 2] = (unsigned char)i;
    void *filled = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    munmap(filled, SIZE);
  }
}

static int by_crowd(void)
{
  pthread_t threads[CROWD];
  struct crowd crowd = {0};
  size_t wrong = 0;
  crowd.pages =
    mmap(NULL, (size_t)CROWD_PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (unsigned page = 0; page < CROWD_PAGES; page++)
    code_write(crowd_page(&crowd, page), page);
  for (unsigned i = 0; i < CROWD; i++)
    pthread_create(&threads[i], NULL, crowd_call, &crowd);
  for (unsigned page = 0; page < CROWD_PAGES; page++)
    crowd_write(&crowd, page);
  crowd.page = CROWD_PAGES;
  for (unsigned i = 0; i < CROWD; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (uintptr_t)result;
  }
  say("wrong %zu\n", wrong);
  return 0;
}

/* A thread changes the target of a call, whose four bytes are aligned, while another one executes it, as compilers of
 * virtual machines do: a call that begins after the change goes to the new target, and none goes anywhere else. */
enum { PATCH_SIZE = 64 << 20, PATCH_NEAR = 0x1000, PATCH_FAR = 0x2345670, PATCHES = 20000 };

struct patch {
  unsigned char *code;
  volatile unsigned begun, done; /* changes; an even number: the near target */
  volatile unsigned calls;
};

static void *patch_write(void *argument)
{
  struct patch *patch = argument;
  volatile int *distance = (volatile int *)(void *)(patch->code + 4);
  for (unsigned i = 1; i <= PATCHES; i++) {
    patch->begun = i;
    __sync_synchronize();
    *distance = (i % 2 ? PATCH_FAR : PATCH_NEAR) - 8;
    __sync_synchronize();
    patch->done = i;
    for (volatile unsigned delay = i * 2654435761u >> 20; delay; delay--) /* up to some microseconds, at random */
      ;
    for (unsigned calls = patch->calls; i % 2 && patch->calls - calls < 2;)
      sched_yield();
  }
  return NULL;
}

static int patched(void)
{
  pthread_t thread;
  struct patch patch = {0};
  unsigned wrong = 0;
  patch.code =
    mmap(NULL, PATCH_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  code_write(patch.code + PATCH_NEAR, 0);
  code_write(patch.code + PATCH_FAR, 1);
  memset(patch.code, 0x90, 3);
  call_write(patch.code + 3, patch.code + PATCH_NEAR);
  for (unsigned i = 0; i < 40; i++) { /* so many changes that one more is nothing special */
    patch.code[PAGE / 2] = (unsigned char)i;
    wrong += call(patch.code, 0) != 0;
  }
  pthread_create(&thread, NULL, patch_write, &patch);
  while (patch.done < PATCHES) {
    unsigned done = patch.done;
    serialize();
    unsigned result = call(patch.code, 0);
    wrong += result > 1 || (patch.begun == done && result != done % 2);
    patch.calls++;
  }
  pthread_join(thread, NULL);
  say("wrong %u\n", wrong);
  return 0;
}

static const struct test_case cases[] = {
  {"protect", protect},
  {"in-place", in_place},
  {"two-mappings", two_mappings},
  {"by-kernel", by_kernel},
  {"ahead", ahead},
  {"loop", loop},
  {"data-beside", data_beside},
  {"replaced", replaced},
  {"moved", moved},
  {"taken-away", taken_away},
  {"dropped", dropped},
  {"trampolines", trampolines},
  {"boundary", boundary},
  {"many", many},
  {"often", often},
  {"called", called},
  {"many-pages", many_pages},
  {"phases", phases},
  {"few-phases", few_phases},
  {"by-thread", by_thread},
  {"by-process", by_process},
  {"by-crowd", by_crowd},
  {"patched", patched},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
