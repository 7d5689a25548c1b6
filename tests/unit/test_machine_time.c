/* SPDX-License-Identifier: Apache-2.0
 *
 * Interrupts, keys, idle guests, and how a run ends.
 */
#include "machine_rig.h"

/* ---- interrupts, time, keys ---- */

static void test_hook(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("hook.bin");
  static const struct machine_limit limit = {.until_idle = true, .nanoseconds = 2 * SECOND};
  assert_stop(machine, &limit, MACHINE_STOP_TIME); /* its own handler keeps it from being idle */
  assert_int_equal(get(machine, 0x1000, 2), 2);
  assert_in_range(get(machine, 0x1002, 2), 35, 37);
  assert_in_range(get(machine, 0x1008, 4) - get(machine, 0x1004, 4), 9, 10);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "AB");
  assert_in_range(machine_time(machine), 2 * SECOND, 2 * SECOND + 1000);
  machine_free(machine);
}

static void type(struct machine *machine, const char *text)
{
  for (; *text; text++)
    assert_true(machine_type(machine, *text));
}

static void test_keys(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("keys.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE); /* waits for a key */
  type(machine, "aB;~ 1!");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  type(machine, "this is more than fifteen keys\n");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  struct machine_screen screen = machine_screen(machine);
  assert_row(&screen, 0, "aB;~ 1!this is more than fifteen keys");
  assert_int_equal(get(machine, 0x1000, 2), 0x1E61);
  assert_int_equal(get(machine, 0x1002, 2), 0x3042);
  assert_int_equal(get(machine, 0x1004, 2), 0x273B);
  assert_int_equal(get(machine, 0x1006, 2), 0x297E);
  unsigned end = 0x1000 + 2 * (7 + 31);
  assert_int_equal(get(machine, end - 2, 2), 0x1C0D);
  assert_int_equal(get(machine, end, 2), 0x40);
  assert_int_equal(get(machine, end + 2, 2), 0);
  assert_true(machine_key(machine, 0xE0) && machine_key(machine, 0x48)); /* the grey arrow */
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, end + 2, 2), 1);
  machine_free(machine);
}

/* A second of questions, and the clock ticks right all the while: 18 ticks of 54.9 ms. The first one may come at once,
 * and 20 more go by until the guest is known to be idle. */
static void test_ask(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("ask.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x1000, 2), 1);
  assert_in_range(machine_time(machine), 37 * (SECOND / 1000 * 54), 41 * (SECOND / 1000 * 55));
  assert_true(cpu_retired(machine_cpu(machine)) < 1000000);
  machine_free(machine);
}

/* ---- idle ---- */

static void test_idle(void **state)
{
  (void)state;
  static const struct machine_limit limit = {.until_idle = true, .nanoseconds = 3 * SECOND};
  static const enum machine_stop stops[] = {
    MACHINE_STOP_IDLE, MACHINE_STOP_IDLE, MACHINE_STOP_IDLE, MACHINE_STOP_IDLE,
    MACHINE_STOP_TIME, MACHINE_STOP_TIME, MACHINE_STOP_IDLE, MACHINE_STOP_TIME,
  };
  for (unsigned way = 1; way <= 8; way++) {
    char name[16];

    snprintf(name, sizeof(name), "halt%u.bin", way);
    struct machine *machine = floppy_machine(name);
    enum machine_stop stop = machine_run(machine, &limit);
    if (stop != stops[way - 1])
      fail_msg("%s stopped with %d", name, stop);
    if (way >= 5 && way != 7)
      assert_in_range(get(machine, 0x1000, 2), 53, 55);
    machine_free(machine);
  }
}

static void test_halt(void **state)
{
  (void)state;
  static const struct machine_limit limit = {.until_halt = true, .nanoseconds = 3 * SECOND};
  struct machine *machine = floppy_machine("halt6.bin");
  for (unsigned i = 0; i < 4; i++) {
    assert_stop(machine, &limit, MACHINE_STOP_HALTED);
    assert_int_equal(get(machine, 0x1000, 2), i);
  }
  machine_free(machine);
}

static void test_limits(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("halt5.bin");
  struct machine_limit limit = {.instructions = 100};
  uint64_t before = cpu_retired(machine_cpu(machine));
  assert_stop(machine, &limit, MACHINE_STOP_INSTRUCTIONS);
  assert_in_range(cpu_retired(machine_cpu(machine)) - before, 100, 110);
  machine_stop(machine);
  assert_stop(machine, &limit, MACHINE_STOP_REQUESTED);
  machine_free(machine);
}

/* ---- ends ---- */

struct heard {
  char serial[8], debug[8];
};

static void hear_serial(void *data, uint8_t byte)
{
  struct heard *heard = data;

  heard->serial[strlen(heard->serial)] = (char)byte;
}

static void hear_debug(void *data, uint8_t byte)
{
  struct heard *heard = data;

  heard->debug[strlen(heard->debug)] = (char)byte;
}

static void test_exit(void **state)
{
  (void)state;
  struct heard heard = {0};
  struct machine_host host = {.data = &heard, .serial = hear_serial, .debug = hear_debug};
  struct machine_config config = config_get();
  config.floppy = guest_read("finish.bin");
  struct machine *machine = machine_make(&config, &host);
  assert_stop(machine, &idle, MACHINE_STOP_EXIT);
  assert_int_equal(machine_exit_value(machine), 0x2A);
  assert_string_equal(heard.serial, "sT");
  assert_string_equal(heard.debug, "d");
  assert_int_equal(get(machine, 0x1000, 1), 0);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x1000, 1), 1);
  guest_free(config.floppy);
  machine_free(machine);
}

/* No interrupt of the firmware's waits when a boot sector begins: a debugger's first step is the guest's own. */
static void test_first_step(void **state)
{
  const struct machine_limit step = {.is_step = true};
  struct machine *machine = floppy_machine("hello.bin");

  (void)state;
  machine_start(machine);
  assert_true(machine_cpu(machine)->eflags & 0x200); /* interrupts are on */
  assert_int_equal(machine_cpu(machine)->rip, 0x7C00);
  assert_stop(machine, &step, MACHINE_STOP_POINT);
  assert_int_equal(machine_cpu(machine)->segment[CS].selector, 0);
  assert_int_equal(machine_cpu(machine)->rip, 0x7C03); /* behind MOV AX, 3 */
  machine_free(machine);
}

static void test_triple_fault(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("triple.bin");
  assert_stop(machine, &idle, MACHINE_STOP_SHUTDOWN);
  assert_non_null(strstr(machine_stop_reason(machine), "triple fault"));
  machine_free(machine);
}

static void test_reboot(void **state)
{
  (void)state;
  struct machine *machine = floppy_machine("again.bin");
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(get(machine, 0x1000, 2), 4);
  assert_int_equal(get(machine, 0x1004, 2), 0x600D);
  machine_free(machine);
}

/* INIT by port 0x92, with the shutdown code that makes firmware go on at 0040:0067: MSRs are kept (SDM vol. 3, table
 * 9-1), so that what LBR_SELECT held is still there. */
static void test_init_keeps_msrs(void **state)
{
  static const uint8_t code[] = {
    0x66, 0xB9, 0xC8, 0x01, 0x00, 0x00, 0x66, 0xB8, 0x01, 0x00, 0x00, 0x00, 0x66, 0x31, 0xD2, 0x0F, /* wrmsr 0x1C8, 1 */
    0x30, 0xB0, 0x0F, 0xE6, 0x70, 0xB0, 0x0A, 0xE6, 0x71, 0xC7, 0x06, 0x67, 0x04, 0x40, 0x00, 0xC7, /* CMOS 0Fh = 0Ah */
    0x06, 0x69, 0x04, 0x00, 0x01, 0xB0, 0x03, 0xE6, 0x92, 0xFA, 0xF4, 0x00, 0x00, 0x00, 0x00, 0x00, /* to 0100:0040 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
    0x66, 0xB9, 0xC8, 0x01, 0x00, 0x00, 0x0F, 0x32, 0xA3, 0x00, 0x20, 0xE4, 0x92, 0xA2, 0x02, 0x20, /* rdmsr 0x1C8 */
    0xFA, 0xF4,
  };

  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image image = {code, sizeof(code)};
  assert_int_equal(machine_load_flat(machine, &image, 0x1000), 0);
  assert_stop(machine, &idle, MACHINE_STOP_IDLE);
  assert_int_equal(machine_cpu(machine)->rip, 0x52);
  assert_int_equal(get(machine, 0x2000, 2), 1);
  assert_int_equal(get(machine, 0x2002, 1), 3);
  machine_free(machine);
}

/* LOOP and CALL to themselves are work, not waiting. */
static void test_loops_that_end(void **state)
{
  /* mov $0x200000, %ecx; loop .; mov %ecx, 0x2000; mov $0x101000, %esp; call .: as often as was asked for */
  static const uint8_t code[] = {0xB9, 0x00, 0x00, 0x20, 0x00, 0xE2, 0xFE, 0x89, 0x0D, 0x00, 0x20, 0x00,
                                 0x00, 0xBC, 0x00, 0x10, 0x10, 0x00, 0xE8, 0xFB, 0xFF, 0xFF, 0xFF};
  (void)state;
  struct machine_config config = config_get();
  struct machine *machine = machine_make(&config, NULL);
  struct machine_image image = {code, sizeof(code)};
  struct machine_limit limit = {.until_idle = true, .instructions = 0x200000 + 3 + 100};
  assert_int_equal(machine_load_flat(machine, &image, 0x200000), 0);
  assert_int_equal(machine_run(machine, &limit), MACHINE_STOP_INSTRUCTIONS);
  assert_int_equal(get(machine, 0x2000, 4), 0);
  assert_int_equal(machine_cpu(machine)->r[RSP], 0x101000 - 4 * 100);
  machine_free(machine);
}

PART(cmocka_unit_test(test_hook), cmocka_unit_test(test_keys), cmocka_unit_test(test_ask), cmocka_unit_test(test_idle),
     cmocka_unit_test(test_halt), cmocka_unit_test(test_limits), cmocka_unit_test(test_exit),
     cmocka_unit_test(test_first_step), cmocka_unit_test(test_triple_fault), cmocka_unit_test(test_reboot),
     cmocka_unit_test(test_init_keeps_msrs), cmocka_unit_test(test_loops_that_end));
