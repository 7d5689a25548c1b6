/* SPDX-License-Identifier: Apache-2.0
 *
 * guest_run OUTPUT [ADDRESS SIZE]... -- kernel|floppy FILE [CPU]: runs a guest in the machine until it ends itself
 * (port 0xF4), then writes these pieces of its physical memory, one behind the other, to OUTPUT. Exit status 1 and a
 * sentence when it ends in another way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lastbranch/cpudb.h"
#include "lastbranch/error.h"
#include "machine/machine.h"

#define INSTRUCTIONS UINT64_C(2000000000) /* more than any guest needs */

static int complain(const char *what, const char *why)
{
  fprintf(stderr, "guest_run: %s: %s\n", what, why);
  return 1;
}

static int file_read(const char *path, struct machine_image *image)
{
  static uint8_t bytes[4 << 20];
  FILE *file = fopen(path, "rb");
  if (!file)
    return -errno;
  *image = (struct machine_image){bytes, fread(bytes, 1, sizeof(bytes), file)};
  fclose(file);
  return 0;
}

static int machine_make(const char *kind, const struct machine_image *image, const char *cpu,
                        struct machine **ret_machine)
{
  static const struct machine_host host;
  struct machine_config config = {.ram = 64 << 20};
  bool is_kernel = !strcmp(kind, "kernel");
  if (!is_kernel)
    config.floppy = *image;
  int r = lb_cpu_find(cpu, &config.model);
  if (r >= 0)
    r = machine_new(&config, &host, ret_machine);
  if (r >= 0 && is_kernel)
    r = machine_load_kernel(*ret_machine, image, NULL, NULL, NULL, 0, NULL);
  return r;
}

/* Pieces of memory, by the numbers before "--". */
static int memory_save(struct machine *machine, const char *path, char **numbers)
{
  static uint8_t bytes[1 << 20];
  FILE *file = fopen(path, "wb");
  int r = file ? 0 : -errno;
  for (; r >= 0 && strcmp(numbers[0], "--"); numbers += 2) {
    size_t size = strtoul(numbers[1], NULL, 0);
    if (size > sizeof(bytes) || !memory_read(machine_memory(machine), strtoul(numbers[0], NULL, 0), bytes, size))
      r = LB_E_TOO_BIG;
    else
      fwrite(bytes, 1, size, file);
  }
  if (file && fclose(file))
    r = -errno;
  return r;
}

int main(int argc, char **argv)
{
  const struct machine_limit limit = {.instructions = INSTRUCTIONS, .until_idle = true};
  struct machine *machine = NULL;
  struct machine_image image;
  int split = 2;
  while (split < argc && strcmp(argv[split], "--"))
    split += 2;
  if (split + 2 >= argc)
    return complain("usage", "guest_run OUTPUT [ADDRESS SIZE]... -- kernel|floppy FILE [CPU]");
  int r = file_read(argv[split + 2], &image);
  if (r >= 0)
    r = machine_make(argv[split + 1], &image, split + 3 < argc ? argv[split + 3] : "skylake", &machine);
  if (r < 0)
    return complain(argv[split + 2], lb_strerror(r));
  enum machine_stop stop = machine_run(machine, &limit);
  r = memory_save(machine, argv[1], argv + 2);
  bool is_good = stop == MACHINE_STOP_EXIT && r >= 0;
  if (r < 0)
    complain(argv[1], lb_strerror(r));
  else if (!is_good)
    fprintf(stderr, "guest_run: %s: stop %d at %#llx %s\n", argv[split + 2], stop,
            (unsigned long long)machine_cpu(machine)->rip, machine_stop_reason(machine));
  machine_free(machine);
  return is_good ? 0 : 1;
}
