/* SPDX-License-Identifier: Apache-2.0
 *
 * No guest keeps the host from its user: whatever it does, a run ends soon after machine_stop, from a signal handler,
 * and after the deadline; and work takes the guest's time too. What is measured is this process' CPU time, so that a
 * busy host does not matter.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <cmocka.h>

#include "machine/machine.h"

#define BOOT_ADDRESS UINT64_C(0x7C00)   /* real mode */
#define FLAT_ADDRESS UINT64_C(0x100000) /* 32-bit protected mode */
#define MILLISECOND UINT64_C(1000000)   /* in nanoseconds */
#define ASKED_AFTER (20 * MILLISECOND)  /* of CPU time, or of the clock */
#define ENDED_AFTER                                                                                                    \
  (2000 * MILLISECOND) /* of CPU time: sanitizers make it slow; none of these ends by itself in 5 s                    \
                        */
#define LAST_ROW 0x18

/* Guests that give the host much to do for each instruction, without end. */
struct storm {
  const char *name;
  uint64_t address;
  uint8_t code[40];
};

static const struct storm storms[] = {
  /* MOV ECX, -1; MOV EDI or ESI, where nobody is; REP ...; again */
  {"REP STOSB", FLAT_ADDRESS, {0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xBF, 0, 0, 0, 0x40, 0xF3, 0xAA, 0xEB, 0xF2}},
  {"REP LODSB", FLAT_ADDRESS, {0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xBE, 0, 0, 0, 0x40, 0xF3, 0xAC, 0xEB, 0xF2}},
  {"REPNE SCASB", FLAT_ADDRESS, {0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xBF, 0, 0, 0, 0x40, 0xB0, 1, 0xF2, 0xAE, 0xEB, 0xF0}},
  {"REPE CMPSB", FLAT_ADDRESS, {0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xBF, 0, 0, 0, 0x40, 0x89, 0xFE, 0xF3, 0xA6, 0xEB, 0xF0}},
  {"REP MOVSB backwards",
   FLAT_ADDRESS,
   {0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xBF, 0, 0, 0, 0x40, 0x89, 0xFE, 0xFD, 0xF3, 0xA4, 0xEB, 0xEF}},
  {"REP OUTSB",
   FLAT_ADDRESS,
   {0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xBE, 0, 0, 0, 0, 0x66, 0xBA, 0x80, 0, 0xF3, 0x6E, 0xEB, 0xEE}},
  {"REP INSB",
   FLAT_ADDRESS,
   {0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xBF, 0, 0, 0x20, 0, 0x66, 0xBA, 0xDA, 3, 0xF3, 0x6C, 0xEB, 0xEE}},
  /* MOV EAX, CR3; MOV CR3, EAX three times; again */
  {"MOV to CR3", FLAT_ADDRESS, {0x0F, 0x20, 0xD8, 0x0F, 0x22, 0xD8, 0x0F, 0x22, 0xD8, 0x0F, 0x22, 0xD8, 0xEB, 0xF2}},
  /* ES:BP = 1000:0, 64 KiB of line feeds; INT 10h AX=1301h BX=7 CX=FFFFh in the last row; again */
  {"INT 10h", BOOT_ADDRESS, {0xB8, 0,    0x10, 0x8E, 0xC0, 0x31, 0xFF,     0xB9, 0,    0x80, 0xB8,
                             0x0A, 0x0A, 0xF3, 0xAB, 0x31, 0xED, 0xB8,     0x01, 0x13, 0xBB, 0x07,
                             0,    0xB9, 0xFF, 0xFF, 0xBA, 0,    LAST_ROW, 0xCD, 0x10, 0xEB, 0xF0}},
};

#define STORMS (sizeof(storms) / sizeof(storms[0]))

static uint64_t clock_now(clockid_t clock)
{
  struct timespec now;

  assert_int_equal(clock_gettime(clock, &now), 0);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct machine *machine_with(const uint8_t *code, size_t size, uint64_t address)
{
  struct machine_config config = {.ram = UINT64_C(16) << 20};
  struct machine_image image = {code, size};
  struct machine *machine = NULL;

  assert_int_equal(lb_cpu_find("skylake", &config.model), 0);
  assert_int_equal(machine_new(&config, NULL, &machine), 0);
  assert_int_equal(machine_load_flat(machine, &image, address), 0);
  return machine;
}

static struct machine *storm_machine(const struct storm *storm)
{
  return machine_with(storm->code, sizeof(storm->code), storm->address);
}

static void assert_soon(const struct storm *storm, uint64_t start)
{
  uint64_t taken = clock_now(CLOCK_PROCESS_CPUTIME_ID) - start;

  if (taken > ENDED_AFTER)
    fail_msg("%s: the run took %llu ms of CPU time", storm->name, (unsigned long long)(taken / MILLISECOND));
}

/* ---- the two ways to end a run ---- */

static struct machine *stopped;

static void stop(int signal)
{
  (void)signal;
  machine_stop(stopped);
}

static void test_stop_is_seen(void **state)
{
  struct itimerval timer = {.it_value.tv_usec = ASKED_AFTER / 1000};

  (void)state;
  signal(SIGVTALRM, stop);
  for (size_t i = 0; i < STORMS; i++) {
    stopped = storm_machine(&storms[i]);
    uint64_t start = clock_now(CLOCK_PROCESS_CPUTIME_ID);
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &timer, NULL), 0);
    assert_int_equal(machine_run(stopped, &(struct machine_limit){0}), MACHINE_STOP_REQUESTED);
    assert_soon(&storms[i], start);
    machine_free(stopped);
  }
  signal(SIGVTALRM, SIG_DFL);
}

static void test_deadline_is_seen(void **state)
{
  (void)state;
  for (size_t i = 0; i < STORMS; i++) {
    struct machine *machine = storm_machine(&storms[i]);
    uint64_t start = clock_now(CLOCK_PROCESS_CPUTIME_ID);
    struct machine_limit limit = {.deadline = clock_now(CLOCK_MONOTONIC) + ASKED_AFTER};

    assert_int_equal(machine_run(machine, &limit), MACHINE_STOP_REQUESTED);
    assert_true(clock_now(CLOCK_MONOTONIC) >= limit.deadline);
    assert_soon(&storms[i], start);
    machine_free(machine);
  }
}

/* ---- work takes time ---- */

static uint64_t time_to_halt(struct machine *machine)
{
  assert_int_equal(machine_run(machine, &(struct machine_limit){.until_halt = true}), MACHINE_STOP_HALTED);
  uint64_t time = machine_time(machine);
  machine_free(machine);
  return time;
}

/* doc/machine.md: a cycle, which is a nanosecond, for each element, or for each 64 bytes that are filled at once. */
static void test_repeating_takes_time(void **state)
{
  /* MOV ECX, 100000h; MOV EDI; REP STOSB; HLT */
  static const uint8_t device[] = {0xB9, 0, 0, 0x10, 0, 0xBF, 0, 0, 0, 0x40, 0xF3, 0xAA, 0xF4};
  static const uint8_t ram[] = {0xB9, 0, 0, 0x10, 0, 0xBF, 0, 0, 0x20, 0, 0xF3, 0xAA, 0xF4};
  uint64_t slow = time_to_halt(machine_with(device, sizeof(device), FLAT_ADDRESS));
  uint64_t fast = time_to_halt(machine_with(ram, sizeof(ram), FLAT_ADDRESS));
  (void)state;
  assert_in_range(slow, 0x100000, 0x100000 + 0x1000);
  assert_in_range(fast, 0x100000 / 64, 0x100000 / 64 + 0x1000);
}

/* A service reads each character, and moves 24 rows where it scrolls. */
static void test_services_take_time(void **state)
{
  struct storm text = storms[STORMS - 1];

  (void)state;
  text.code[31] = 0xF4; /* HLT instead of the jump */
  uint64_t scrolls = time_to_halt(storm_machine(&text));
  text.code[11] = text.code[12] = '\r';
  uint64_t moves = time_to_halt(storm_machine(&text));
  assert_true(moves >= 65535);
  assert_true(scrolls >= 24 * UINT64_C(65535));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_stop_is_seen),
    cmocka_unit_test(test_deadline_is_seen),
    cmocka_unit_test(test_repeating_takes_time),
    cmocka_unit_test(test_services_take_time),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
