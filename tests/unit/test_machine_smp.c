/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests of several processors.
 */
#include "machine_rig.h"

static void hear_letter(void *data, uint8_t byte)
{
  char *text = data;
  size_t length = strlen(text);

  if (length < 15)
    text[length] = (char)byte;
}

static struct machine *smp_machine(unsigned cpus, char text[16])
{
  struct machine_config config = config_get();
  struct machine_host host = {.data = text, .debug = hear_letter};
  struct machine_image image = guest_read("smp.bin");

  config.cpus = cpus;
  struct machine *machine = machine_make(&config, &host);
  assert_int_equal(machine_load_flat(machine, &image, 0x100000), 0);
  guest_free(image);
  return machine;
}

/* Far longer than the guest takes. */
static const struct machine_limit hundredth = {.until_idle = true, .nanoseconds = SECOND / 100};

/* The guest says what went as it should: see smp.S. */
static void test_processors(void **state)
{
  static const unsigned counts[] = {2, 3, MACHINE_CPUS};

  (void)state;
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
    char text[16] = "";
    struct machine *machine = smp_machine(counts[i], text);

    assert_int_equal(machine_cpu_count(machine), counts[i]);
    assert_int_equal(machine_run(machine, &hundredth), MACHINE_STOP_EXIT);
    assert_string_equal(text, "ABCDEF");
    assert_int_equal(machine_exit_value(machine), 0);
    for (unsigned k = 0; k < counts[i]; k++) {
      machine_show(machine, k);
      bool has_records = lb_recorder_used(&machine_cpu(machine)->recorder);
      assert_int_equal(has_records, k == 1); /* LBR was on there alone */
    }
    machine_free(machine);
  }
}

/* Turns do not depend on where a run is cut, by instructions or by time; and all clocks are the same. */
static void test_processors_cut(void **state)
{
  static const struct machine_limit limits[] = {{.instructions = 7}, {.nanoseconds = 1301}, {.instructions = 2999}};
  char text[16] = "", cut_text[16] = "";
  struct machine *whole = smp_machine(2, text), *cut = smp_machine(2, cut_text);
  enum machine_stop stop = MACHINE_STOP_TIME;

  (void)state;
  assert_int_equal(machine_run(whole, &hundredth), MACHINE_STOP_EXIT);
  for (unsigned i = 0; stop == MACHINE_STOP_TIME || stop == MACHINE_STOP_INSTRUCTIONS; i++)
    stop = machine_run(cut, &limits[i % 3]);
  assert_int_equal(stop, MACHINE_STOP_EXIT);
  assert_string_equal(text, cut_text);
  assert_int_equal(machine_retired(whole), machine_retired(cut));
  assert_int_equal(machine_time(whole), machine_time(cut));
  for (unsigned k = 0; k < 2; k++) {
    machine_show(whole, k);
    machine_show(cut, k);
    assert_int_equal(cpu_retired(machine_cpu(whole)), cpu_retired(machine_cpu(cut)));
    assert_int_equal(cpu_cycles(machine_cpu(cut)), machine_time(cut));
  }
  machine_free(whole);
  machine_free(cut);
}

/* Alone, the guest waits for the other for ever: the time that it was given ends it. */
static void test_processor_alone(void **state)
{
  char text[16] = "";
  struct machine *machine = smp_machine(1, text);

  (void)state;
  assert_int_equal(machine_run(machine, &(struct machine_limit){.nanoseconds = 100000}), MACHINE_STOP_TIME);
  assert_string_equal(text, "");
  machine_free(machine);
}

static void test_too_many_processors(void **state)
{
  struct machine_config config = config_get();
  struct machine *machine = NULL;

  (void)state;
  config.cpus = MACHINE_CPUS + 1;
  assert_int_equal(machine_new(&config, NULL, &machine), -EINVAL);
}

PART(cmocka_unit_test(test_processors), cmocka_unit_test(test_processors_cut), cmocka_unit_test(test_processor_alone),
     cmocka_unit_test(test_too_many_processors));
