/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspend to RAM in the machine: ACPI specification 4.8.3 (PM1), 5.2.10 (the waking vector: real mode, CS = address >>
 * 4) and SDM vol. 3 table 9-1 (registers after power-up). What the firmware leaves is compared with QEMU and SeaBIOS by
 * tests/guest/sleep.S.
 */
#include "machine_rig.h"

#define RAM (UINT64_C(16) << 20)
/* As nap.S has them. */
#define EVENTS 0x1000u
#define STARTS 0x1004u
#define KEPT 0x1008u
#define AFTER 0x100Cu
#define FOUND 0x1010u
#define RTC_EN 0x400u

static void put(struct machine *machine, uint64_t address, uint32_t value)
{
  assert_true(memory_write(machine_memory(machine), address, &value, sizeof(value)));
}

static uint64_t facs_find(struct machine *machine)
{
  for (uint64_t address = 0; address < RAM; address += 64)
    if (get(machine, address, 4) == 0x53434146)
      return address;
  fail_msg("there is no FACS");
  return 0;
}

/* The guest, with the events that wake it and, if `has_vector`, its waking vector. Returns the physical address of
 * that. */
static uint32_t nap_make(unsigned cpus, uint32_t events, bool has_vector, struct machine **ret_machine)
{
  struct machine_config config = config_get();

  config.cpus = cpus;
  config.floppy = guest_read("nap.bin");
  *ret_machine = machine_make(&config, NULL);
  const uint8_t *bytes = config.floppy.bytes, *place = memmem(bytes, config.floppy.size, "WAKE", 4);
  assert_non_null(place);
  uint32_t vector = (uint32_t)(0x7C00 + (place - 2 - bytes));
  guest_free(config.floppy);
  put(*ret_machine, EVENTS, events);
  put(*ret_machine, STARTS, 0);
  put(*ret_machine, facs_find(*ret_machine) + 12, has_vector ? vector : 0);
  return vector;
}

/* What the guest has found at its waking vector; `status` is of PM1. */
static void assert_woken(struct machine *machine, uint32_t vector, uint16_t status)
{
  assert_int_equal(machine_exit_value(machine), 0x2A);
  assert_false(machine_is_asleep(machine));
  assert_int_equal(get(machine, STARTS, 4), 1);
  assert_int_equal(get(machine, KEPT, 4), 0x11223344);
  assert_int_equal(get(machine, AFTER, 4), 0);
  assert_int_equal(get(machine, FOUND, 4), 0);               /* EBP */
  assert_int_equal(get(machine, FOUND + 4, 2), vector >> 4); /* CS */
  assert_int_equal(get(machine, FOUND + 6, 2), 0x9FC0);      /* SS: memory that E820h reserves */
  assert_int_equal(get(machine, FOUND + 10, 2) & 0x600, 0);  /* IF, DF */
  assert_int_equal(get(machine, FOUND + 12, 2) & 0xFFFE, status);
  assert_int_equal(get(machine, FOUND + 16, 4), 0); /* IA32_DEBUGCTL */
  assert_int_equal(get(machine, FOUND + 20, 4), 0); /* the record of the JMP */
  assert_int_equal(get(machine, FOUND + 24, 4) & 0x80000001, 0);
  machine_free(machine);
}

static void test_alarm_wakes(void **state)
{
  struct machine *machine;

  (void)state;
  for (unsigned cpus = 1; cpus <= 3; cpus += 2) {
    uint32_t vector = nap_make(cpus, RTC_EN, true, &machine);

    assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_EXIT);
    assert_in_range(machine_time(machine), SECOND, SECOND + SECOND / 1000);
    for (unsigned i = 1; i < cpus; i++) {
      machine_show(machine, i);
      assert_int_equal(machine_cpu(machine)->activity, CPU_WAIT_SIPI);
    }
    assert_woken(machine, vector, 0x8400); /* WAK_STS, RTC_STS */
  }
}

/* Time passes for the board, but nobody executes anything. */
static void test_time_limit(void **state)
{
  const struct machine_limit tenth = {.nanoseconds = SECOND / 10};
  struct machine *machine;
  uint32_t vector = nap_make(1, RTC_EN, true, &machine);

  (void)state;
  assert_int_equal(machine_run(machine, &tenth), MACHINE_STOP_TIME);
  assert_true(machine_is_asleep(machine));
  uint64_t retired = machine_retired(machine);
  for (unsigned i = 2; i < 10; i++) {
    assert_int_equal(machine_run(machine, &tenth), MACHINE_STOP_TIME);
    assert_in_range(machine_time(machine), i * SECOND / 10, i * SECOND / 10 + SECOND / 1000);
    assert_int_equal(machine_retired(machine), retired);
  }
  assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_EXIT);
  assert_woken(machine, vector, 0x8400);
}

static void test_step(void **state)
{
  const struct machine_limit step = {.is_step = true};
  struct machine *machine;
  uint32_t vector = nap_make(1, RTC_EN, true, &machine);

  (void)state;
  while (!machine_is_asleep(machine))
    assert_int_equal(machine_run(machine, &step), MACHINE_STOP_POINT);
  assert_int_equal(machine_run(machine, &step), MACHINE_STOP_POINT);
  assert_false(machine_is_asleep(machine));
  assert_int_equal(machine_cpu(machine)->segment[CS].selector, vector >> 4);
  assert_int_equal(machine_cpu(machine)->rip, vector & 15);
  assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_EXIT);
  assert_woken(machine, vector, 0x8400);
}

static void test_nothing_wakes(void **state)
{
  struct machine *machine;

  (void)state;
  nap_make(1, 0, true, &machine);
  assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_ASLEEP);
  assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_ASLEEP);
  assert_false(machine_serial_is_awaited(machine));
  assert_false(machine_serial_receive(machine, 'x'));
  machine_stop(machine);
  assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_REQUESTED);
  machine_reset(machine);
  assert_false(machine_is_asleep(machine));
  assert_int_equal(get(machine, STARTS, 4), 1);
  assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_ASLEEP);
  assert_int_equal(get(machine, STARTS, 4), 2);
  machine_free(machine);
}

/* Both are the power button to PM1, as with QEMU. */
static void test_outside_wakes(void **state)
{
  struct machine *machine;

  (void)state;
  for (unsigned by_key = 0; by_key < 2; by_key++) {
    uint32_t vector = nap_make(1, 0, true, &machine);

    machine_wake(machine); /* awake: nothing happens */
    assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_ASLEEP);
    if (by_key)
      assert_true(machine_key(machine, 0x1E));
    else
      machine_wake(machine);
    assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_EXIT);
    assert_woken(machine, vector, 0x8100);
  }
}

/* SeaBIOS restarts a machine whose FACS has no vector. */
static void test_no_vector(void **state)
{
  struct machine *machine;

  (void)state;
  nap_make(1, RTC_EN, false, &machine);
  assert_int_equal(machine_run(machine, &(struct machine_limit){.nanoseconds = 2 * SECOND + SECOND / 2}),
                   MACHINE_STOP_TIME);
  assert_int_equal(get(machine, STARTS, 4), 3);
  machine_free(machine);
}

/* The guest has broken the table, or written an address that real mode does not reach. */
static void test_bad_vector(void **state)
{
  static const uint32_t places[][2] = {{0, 0x12345678}, {12, 0x100000}, {12, UINT32_MAX}};
  struct machine *machine;

  (void)state;
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    nap_make(1, RTC_EN, true, &machine);
    put(machine, facs_find(machine) + places[i][0], places[i][1]);
    assert_int_equal(machine_run(machine, &(struct machine_limit){.nanoseconds = SECOND + SECOND / 2}),
                     MACHINE_STOP_TIME);
    assert_int_equal(get(machine, STARTS, 4), 2);
    machine_free(machine);
  }
}

static int save_write(void *data, const void *bytes, size_t size)
{
  return text_add_bytes(data, bytes, size);
}

/* A machine that was saved asleep goes on asleep. */
static void test_saved_asleep(void **state)
{
  struct machine *machine, *loaded = NULL;
  struct text text = {0};
  uint32_t vector = nap_make(2, RTC_EN, true, &machine);

  (void)state;
  assert_int_equal(machine_run(machine, &(struct machine_limit){.nanoseconds = SECOND / 2}), MACHINE_STOP_TIME);
  assert_int_equal(machine_save(machine, save_write, &text), 0);
  assert_int_equal(machine_restore(text.data, text.length, NULL, &loaded), 0);
  assert_true(machine_is_asleep(loaded));
  assert_int_equal(machine_run(machine, &idle), MACHINE_STOP_EXIT);
  assert_int_equal(machine_run(loaded, &idle), MACHINE_STOP_EXIT);
  assert_int_equal(machine_time(loaded), machine_time(machine));
  text_done(&text);
  assert_woken(loaded, vector, 0x8400);
  machine_free(machine);
}

PART(cmocka_unit_test(test_alarm_wakes), cmocka_unit_test(test_time_limit), cmocka_unit_test(test_step),
     cmocka_unit_test(test_nothing_wakes), cmocka_unit_test(test_outside_wakes), cmocka_unit_test(test_no_vector),
     cmocka_unit_test(test_bad_vector), cmocka_unit_test(test_saved_asleep));
