/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that come at any instruction, a thousand a second and more, while something is computed: the result must be
 * right, and every frame must show an instruction of the program with the registers that the program has there.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

enum { MAPPINGS_MAX = 64 };

static volatile unsigned ticks, bad_places, bad_registers;
static struct {
  uintptr_t start, end;
} mappings[MAPPINGS_MAX];
static unsigned mapping_count;

/* What may be executed, from files and the vdso, as the program sees it when it begins. */
static void mappings_read(void)
{
  char line[512], access[8], name[256];
  FILE *file = fopen("/proc/self/maps", "re");
  unsigned long start, end;
  while (fgets(line, sizeof(line), file) && mapping_count < MAPPINGS_MAX) {
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &start, &end, access, name) == 4 && access[2] == 'x') {
      mappings[mapping_count].start = start;
      mappings[mapping_count++].end = end;
    }
  }
  fclose(file);
}

static int is_mapped(uintptr_t address)
{
  for (unsigned i = 0; i < mapping_count; i++)
    if (address >= mappings[i].start && address < mappings[i].end)
      return 1;
  return 0;
}

static void on_tick(int signal, siginfo_t *info, void *context)
{
  (void)signal, (void)info;
  ticks++;
  bad_places += !is_mapped((uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
}

static void storm_start(void (*handler)(int, siginfo_t *, void *), long microseconds, int flags)
{
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
  mappings_read();
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){.it_interval.tv_usec = microseconds, .it_value.tv_usec = microseconds},
            NULL);
}

static void storm_end(void)
{
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  say("enough signals: %d, at strange places: %u, with wrong registers: %u\n", ticks >= 20, bad_places, bad_registers);
}

/* ---- computing ---- */

static uint32_t mix(uint32_t sum, uint32_t value)
{
  sum ^= value;
  for (int bit = 0; bit < 8; bit++)
    sum = sum & 1 ? sum >> 1 ^ 0xEDB88320 : sum >> 1;
  return sum;
}

static uint32_t add(uint32_t sum, uint32_t value)
{
  return sum * 33 + value;
}

static uint32_t turn(uint32_t sum, uint32_t value)
{
  return (sum << 5 | sum >> 27) ^ value;
}

static uint32_t (*volatile functions[])(uint32_t, uint32_t) = {mix, add, turn};

/* Direct and indirect calls, branches, a library function, until the timer came often enough, each round alike. */
static uint32_t round_sum(void)
{
  uint32_t sum = 1;
  char text[64];
  for (uint32_t i = 0; i < 3000; i++) {
    sum = functions[i % 3](sum, i);
    memset(text, (int)sum & 0x7F, sizeof(text));
    sum += (uint32_t)text[i % 64];
  }
  return sum;
}

static int checksum(void)
{
  uint32_t first = round_sum();
  unsigned wrong = 0;
  storm_start(on_tick, 1000, SA_RESTART);
  while (ticks < 300)
    wrong += round_sum() != first;
  storm_end();
  say("sum %x, wrong %u\n", first, wrong);
  return 0;
}

static int string(void)
{
  static unsigned char from[1 << 20], to[1 << 20];
  unsigned wrong = 0;
  for (unsigned i = 0; i < sizeof(from); i++)
    from[i] = (unsigned char)(i * 31 >> 3);
  storm_start(on_tick, 500, SA_RESTART);
  while (ticks < 200) {
    void *source = from, *target = to;
    size_t count = sizeof(from);
    memset(to, 0, sizeof(to));
    __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count)::"memory");
    wrong += count || memcmp(from, to, sizeof(from));
  }
  storm_end();
  say("wrong %u\n", wrong);
  return 0;
}

static int calls(void)
{
  unsigned wrong = 0;
  pid_t self = getpid();
  int ends[2];
  char byte = 0;
  if (pipe(ends))
    return 1;
  storm_start(on_tick, 500, SA_RESTART);
  while (ticks < 200) {
    wrong += getppid() == self || write(ends[1], "z", 1) != 1 || read(ends[0], &byte, 1) != 1 || byte != 'z';
    byte = 0;
  }
  storm_end();
  say("wrong %u\n", wrong);
  return 0;
}

/* Without SA_RESTART: a call is done or says EINTR, and what says so did nothing. */
static int interrupted_calls(void)
{
  unsigned done = 0, interrupted = 0, wrong = 0;
  storm_start(on_tick, 500, 0);
  while (ticks < 200) {
    struct timespec left = {0};
    if (!nanosleep(&(struct timespec){.tv_nsec = 300000}, &left))
      done++;
    else if (errno == EINTR)
      interrupted++;
    else
      wrong++;
  }
  storm_end();
  say("done %d, interrupted %d, wrong %u\n", done > 0, interrupted > 0, wrong);
  return 0;
}

/* ---- registers ---- */

extern const char count_0[], count_1[], count_2[], count_3[], count_4[], count_5[], count_6[], count_7[], count_8[],
  count_end[];

/* Which counters are one ahead follows from the instruction: behind the first four all are the same. */
static void on_count(int signal, siginfo_t *info, void *context)
{
  static const char *const places[] = {count_0, count_1, count_2, count_3, count_4, count_5, count_6, count_7, count_8};
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  uintptr_t rip = (uintptr_t)registers[REG_RIP];
  unsigned passed = 0, count = ARRAY_LENGTH(places);
  on_tick(signal, info, context);
  if (rip < (uintptr_t)count_0 || rip >= (uintptr_t)count_end)
    return;
  while (passed < count && rip != (uintptr_t)places[passed])
    passed++;
  greg_t values[] = {registers[REG_RAX], registers[REG_RBX], registers[REG_RCX], registers[REG_RDX]};
  unsigned wrong = passed == count || !(registers[REG_EFL] & 1) || registers[REG_RDI] != 0x123456789;
  for (unsigned i = 1; i < 4; i++)
    wrong += values[i] != values[0] - (passed >= 1 && i >= passed);
  bad_registers += wrong != 0;
}

static int registers(void)
{
  uint64_t results[4];
  storm_start(on_count, 1000, 0);
  while (ticks < 200) {
    uint64_t left = 1000000;
    __asm__ volatile(
      "mov %[left], %%r9; push %%rbx; xor %%eax, %%eax; xor %%ebx, %%ebx; xor %%ecx, %%ecx; xor %%edx, %%edx\n"
      "movabs $0x123456789, %%rdi; lea count_0(%%rip), %%r8; stc\n"
      "count_0: inc %%rax\n"
      "count_1: inc %%rbx\n"
      "count_2: inc %%rcx\n"
      "count_3: inc %%rdx\n"
      "count_4: dec %%r9\n"
      "count_5: jz count_end\n"
      "count_6: call count_8\n"
      "count_7: jmp *%%r8\n"
      "count_8: ret\n"
      "count_end: mov %%rbx, %%rsi; pop %%rbx"
      : "=&a"(results[0]), "=&S"(results[1]), "=&c"(results[2]), "=&d"(results[3])
      : [left] "m"(left)
      : "rdi", "r8", "r9", "cc", "memory");
    if (results[0] != 1000000 || results[0] != results[1] || results[0] != results[2] || results[0] != results[3])
      return 1;
  }
  storm_end();
  return 0;
}

/* ---- leaving ---- */

static sigjmp_buf back;
static volatile unsigned jumps;

static void on_leave(int signal, siginfo_t *info, void *context)
{
  on_tick(signal, info, context);
  jumps++;
  siglongjmp(back, 1);
}

/* Out of the middle of whatever it is, again and again. */
static int leave(void)
{
  storm_start(on_leave, 1000, 0);
  sigsetjmp(back, 1);
  while (jumps < 200)
    functions[0](1, 2);
  storm_end();
  say("first %x\n", round_sum());
  return 0;
}

/* ---- threads ---- */

static volatile int is_over;

static void *compute(void *argument)
{
  uint32_t first = round_sum();
  uintptr_t wrong = 0;
  (void)argument;
  while (!is_over)
    wrong += round_sum() != first;
  return (void *)wrong;
}

static int threads(void)
{
  pthread_t made[4];
  uintptr_t wrong = 0;
  void *result;
  storm_start(on_tick, 1000, SA_RESTART);
  for (int i = 0; i < 4; i++)
    pthread_create(&made[i], NULL, compute, NULL);
  while (ticks < 200)
    for (int i = 0; i < 4; i++) {
      pthread_kill(made[i], SIGALRM);
      usleep(200);
    }
  is_over = 1;
  for (int i = 0; i < 4; i++) {
    pthread_join(made[i], &result);
    wrong += (uintptr_t)result;
  }
  storm_end();
  say("wrong %zu\n", (size_t)wrong);
  return 0;
}

static const struct test_case cases[] = {
  {"checksum", checksum},   {"string", string}, {"calls", calls},     {"interrupted-calls", interrupted_calls},
  {"registers", registers}, {"leave", leave},   {"threads", threads},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
