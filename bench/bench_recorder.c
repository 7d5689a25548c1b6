/* SPDX-License-Identifier: Apache-2.0
 *
 * What one recorded branch costs: the same loop over the same branches, once storing from and to into a plain C ring,
 * once calling the recorder. Prints ratios of one run; absolute times mean nothing on a busy machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lastbranch/recorder.h"

#define BRANCHES 256
#define ROUNDS 32768
#define TRIES 15
#define DS_AREA 0x1000
#define BTS_BASE 0x2000
#define BTS_SIZE (24 * 1024) /* fits the first-level cache, as the ring does */

static struct lb_branch branches[BRANCHES];
static unsigned char memory[BTS_BASE + BTS_SIZE + 4096];
static struct lb_recorder recorder;

/* ---- the loops ---- */

struct ring {
  uint64_t slots[32][2];
  uint64_t next;
};

static struct ring ring;

/* As in an emulator: the state is behind a pointer, and nothing stays in registers from one branch to the next. */
typedef void loop_function(void *state);
#define SETTLE() __asm__ volatile("" ::: "memory")

/* The ring is a plain one: nothing is checked, but each store happens. */
static void loop_ring(void *state)
{
  struct ring *plain = state;

  for (unsigned i = 0; i < BRANCHES; i++) {
    uint64_t *slot = plain->slots[plain->next];

    slot[0] = branches[i].from;
    slot[1] = branches[i].to;
    plain->next = (plain->next + 1) % 32;
    SETTLE();
  }
}

static void loop_recorder(void *state)
{
  for (unsigned i = 0; i < BRANCHES; i++) {
    lb_recorder_branch(state, &branches[i]);
    SETTLE();
  }
}

__attribute__((noinline)) static void empty_call(void *state, const struct lb_branch *branch)
{
  __asm__ volatile("" ::"r"(state), "r"(branch) : "memory");
}

static void loop_empty(void *state)
{
  for (unsigned i = 0; i < BRANCHES; i++) {
    empty_call(state, &branches[i]);
    SETTLE();
  }
}

/* ---- timing ---- */

static double seconds_of(loop_function *loop, void *state)
{
  struct timespec start, end;

  __asm__ volatile("" : "+r"(loop), "+r"(state)); /* the compiler must not know which */
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (unsigned i = 0; i < ROUNDS; i++)
    loop(state);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

static int by_value(const void *one, const void *other)
{
  double difference = *(const double *)one - *(const double *)other;

  return (difference > 0) - (difference < 0);
}

/* Median of the ratios of neighbouring runs: both see the same weather. */
static void compare(const char *name, loop_function *base, double limit)
{
  double ratios[TRIES];
  double fastest = 1e9;

  for (unsigned i = 0; i < TRIES; i++) {
    double ours = seconds_of(loop_recorder, &recorder);

    ratios[i] = ours / seconds_of(base, &ring);
    fastest = ours < fastest ? ours : fastest;
  }
  qsort(ratios, TRIES, sizeof(ratios[0]), by_value);
  char wanted[32] = "no limit";
  if (limit > 0)
    snprintf(wanted, sizeof(wanted), "at most %.1fx", limit);
  printf("%-32s %6.2fx   (%s)   about %.2f ns\n", name, ratios[TRIES / 2], wanted,
         fastest * 1e9 / ((double)ROUNDS * BRANCHES));
}

/* ---- the units ---- */

static void *memory_map(void *data, uint64_t linear, size_t size)
{
  (void)data;
  return linear + size <= sizeof(memory) ? memory + linear : NULL;
}

static int memory_read(void *data, uint64_t linear, void *bytes, size_t size)
{
  (void)data;
  if (linear + size > sizeof(memory))
    return -1;
  memcpy(bytes, memory + linear, size);
  return 0;
}

static int memory_write(void *data, uint64_t linear, const void *bytes, size_t size)
{
  (void)data;
  if (linear + size > sizeof(memory))
    return -1;
  memcpy(memory + linear, bytes, size);
  return 0;
}

static void unit_make(const char *name, const struct lb_host *host)
{
  const struct lb_cpu *cpu;

  if (lb_cpu_find(name, &cpu) < 0 || lb_recorder_init(&recorder, cpu, host, 0) < 0) {
    fprintf(stderr, "bench_recorder: no recording unit for %s\n", name);
    exit(1);
  }
}

static void msr_write(const char *name, uint64_t value)
{
  unsigned number;
  int id = lb_cpu_register_find(lb_recorder_cpu(&recorder), name, &number);

  if (id < 0 ||
      lb_recorder_wrmsr(&recorder, lb_cpu_register(lb_recorder_cpu(&recorder), (enum lb_register)id).first, value)) {
    fprintf(stderr, "bench_recorder: cannot write %s\n", name);
    exit(1);
  }
}

/* A circular BTS buffer of 1024 records, the threshold above its end. */
static void bts_make(const struct lb_host *host)
{
  const uint64_t area[4] = {BTS_BASE, BTS_BASE, BTS_BASE + BTS_SIZE, BTS_BASE + BTS_SIZE + 24};

  memcpy(memory + DS_AREA, area, sizeof(area));
  unit_make("skylake", host);
  msr_write("DS_AREA", DS_AREA);
  msr_write("DEBUGCTL", 0xC0); /* TR, BTS */
}

static void branches_make(uint8_t flags)
{
  static const uint8_t kinds[] = {LB_BRANCH_JCC,           LB_BRANCH_JCC,      LB_BRANCH_JCC,
                                  LB_BRANCH_NEAR_REL_CALL, LB_BRANCH_NEAR_RET, LB_BRANCH_NEAR_REL_JMP,
                                  LB_BRANCH_NEAR_IND_CALL, LB_BRANCH_JCC};
  uint64_t seed = 1;

  for (unsigned i = 0; i < BRANCHES; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    branches[i].from = 0x400000 + (seed >> 44);
    branches[i].to = 0x400000 + (seed >> 20 & 0xFFFFF);
    branches[i].kind = kinds[i % sizeof(kinds)];
    branches[i].from_cpl = branches[i].to_cpl = 3;
    branches[i].flags = flags | (seed >> 60 == 0 ? LB_BRANCH_MISPREDICTED : 0);
  }
}

int main(void)
{
  const struct lb_host mapped = {.read = memory_read, .write = memory_write, .map = memory_map};
  const struct lb_host called = {.read = memory_read, .write = memory_write};
  static const char *const cpus[] = {"westmere", "haswell", "skylake", "goldmont", "zen4"};

  branches_make(0);
  printf("one branch against a plain ring of (from, to); median of %d ratios\n", TRIES);
  for (unsigned i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
    char name[64];

    unit_make(cpus[i], NULL);
    if (lb_recorder_cpu(&recorder)->vendor == LB_VENDOR_AMD)
      msr_write("DBG_EXTN_CFG", 0x40);
    else
      msr_write("DEBUGCTL", 1);
    snprintf(name, sizeof(name), "LBR, %s", lb_recorder_cpu(&recorder)->title);
    compare(name, loop_ring, 3);
  }
  unit_make("sapphirerapids", NULL);
  msr_write("LBR_CTL", 0x7F0007);
  compare("LBR, architectural", loop_ring, 3);
  branches_make(LB_BRANCH_FROM_32 | LB_BRANCH_TO_32);
  unit_make("westmere", NULL);
  msr_write("DEBUGCTL", 1);
  compare("LBR, 32-bit code", loop_ring, 3);
  branches_make(0);
  bts_make(&mapped);
  compare("BTS to memory", loop_ring, 5);
  msr_write("DEBUGCTL", 0xC1);
  compare("LBR and BTS together", loop_ring, 0);
  bts_make(&called);
  compare("BTS, memory by callbacks only", loop_ring, 0);
  printf("recording off against an empty call\n");
  unit_make("skylake", NULL);
  compare("off", loop_empty, 1.2);
  return 0;
}
