/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines for tests: with a guest of tests/machine in a drive or as a kernel, and what it left on the screen and in
 * memory. LB_GUESTS names the folder of the assembled guests.
 */
#ifndef TESTS_MACHINE_RIG_H
#define TESTS_MACHINE_RIG_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/error.h"
#include "machine/machine.h"
#include "parts.h"

#define SECOND UINT64_C(1000000000)

static const struct machine_limit idle = {.until_idle = true, .nanoseconds = 60 * SECOND};

static inline struct machine_image guest_read(const char *name)
{
  char path[512];
  const char *folder = getenv("LB_GUESTS");

  snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
  FILE *file = fopen(path, "rb");
  if (!file)
    fail_msg("%s cannot be read", path);
  uint8_t *bytes = malloc(1 << 20);
  assert_non_null(bytes);
  size_t size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return (struct machine_image){bytes, size};
}

static inline void guest_free(struct machine_image image)
{
  free((void *)image.bytes);
}

static inline struct machine_config config_get(void)
{
  struct machine_config config = {.ram = UINT64_C(16) << 20};

  assert_int_equal(lb_cpu_find("skylake", &config.model), 0);
  return config;
}

static inline struct machine *machine_make(const struct machine_config *config, const struct machine_host *host)
{
  struct machine *machine = NULL;

  assert_int_equal(machine_new(config, host, &machine), 0);
  return machine;
}

/* A machine with this guest in its floppy drive, or as its disk. */
static inline struct machine *floppy_machine(const char *name)
{
  struct machine_config config = config_get();

  config.floppy = guest_read(name);
  struct machine *machine = machine_make(&config, NULL);
  guest_free(config.floppy);
  return machine;
}

static inline struct machine *disk_machine(const char *name)
{
  struct machine_config config = config_get();

  config.disk = guest_read(name);
  struct machine *machine = machine_make(&config, NULL);
  guest_free(config.disk);
  return machine;
}

static inline uint64_t get(struct machine *machine, uint64_t address, size_t size)
{
  uint64_t value = 0;

  assert_true(memory_read(machine_memory(machine), address, &value, size));
  return value;
}

static inline void assert_row(const struct machine_screen *screen, unsigned row, const char *text)
{
  char got[256] = {0};
  unsigned length = 0;

  assert_true(row < screen->rows);
  for (unsigned i = 0; i < screen->columns && i < sizeof(got) - 1; i++) {
    got[i] = (char)screen->cells[2 * (row * screen->columns + i)];
    if (got[i] != ' ' && got[i])
      length = i + 1;
  }
  got[length] = '\0';
  assert_string_equal(got, text);
}

static inline void assert_stop(struct machine *machine, const struct machine_limit *limit, enum machine_stop stop)
{
  enum machine_stop got = machine_run(machine, limit);

  if (got != stop)
    fail_msg("stopped with %d, not %d, at %llx:%llx %s", got, stop,
             (unsigned long long)machine_cpu(machine)->segment[CS].selector,
             (unsigned long long)machine_cpu(machine)->rip, machine_stop_reason(machine));
}

static inline void assert_string_at(struct machine *machine, uint32_t address, const char *string)
{
  char got[64];

  assert_true(memory_read(machine_memory(machine), address, got, sizeof(got)));
  got[sizeof(got) - 1] = '\0';
  assert_string_equal(got, string);
}

#endif
