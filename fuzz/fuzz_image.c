/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a machine is started with: the input is tried as a kernel (multiboot or Linux), as a floppy, as a disk and
 * as flat bytes. Checked: a kernel that is refused comes with a sentence and a code of ours, one that is accepted
 * starts in RAM; and what was loaded runs for a few thousand instructions without harm to the host.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lastbranch/error.h"
#include "machine/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true, const char *what)
{
  if (is_true)
    return;
  fprintf(stderr, "fuzz_image: %s does not hold\n", what);
  abort();
}

static struct machine *make(const struct machine_image *floppy, const struct machine_image *disk)
{
  struct machine_config config = {.ram = 2 << 20};
  struct machine *machine = NULL;

  if (floppy)
    config.floppy = *floppy;
  if (disk)
    config.disk = *disk;
  check(lb_cpu_find("westmere", &config.model) >= 0, "there is a CPU");
  return machine_new(&config, NULL, &machine) < 0 ? NULL : machine;
}

static void run(struct machine *machine)
{
  struct machine_limit limit = {.instructions = 2000, .until_idle = true, .nanoseconds = 2000000000};

  machine_run(machine, &limit);
  machine_type(machine, 'x');
  machine_run(machine, &limit);
  struct machine_screen screen = machine_screen(machine);
  check(screen.columns > 0 && screen.rows * screen.columns <= 0x4000, "the screen lies in video memory");
  machine_screen_all(machine);
  machine_ds_facts(machine);
}

static void try_kernel(const struct machine_image *image)
{
  struct machine *machine = make(NULL, NULL);
  const char *why = NULL;

  if (!machine)
    return;
  struct machine_image modules[] = {*image, *image};
  int r = machine_load_kernel(machine, image, "kernel", modules, NULL, 2, &why);
  check(r >= 0 || (why && *why), "a kernel that is refused comes with a sentence");
  check(r >= 0 || r == LB_E_BAD_IMAGE || r == LB_E_TOO_BIG, "it comes with a code of ours");
  bool is_linux = machine_is_linux(image);
  const struct cpu *cpu = machine_cpu(machine);
  check(r < 0 || is_linux || cpu->r[RAX] == 0x2BADB002, "a kernel that is accepted is entered");
  check(r < 0 || !is_linux || (cpu->rip == 0x100000 && cpu->r[RSI]), "a Linux kernel is entered at 1 MiB");
  run(machine);
  machine_free(machine);
}

static void try_drives(const struct machine_image *image)
{
  struct machine *machine = make(image, NULL);

  if (machine)
    run(machine);
  machine_free(machine);
  machine = make(NULL, image);
  if (machine)
    run(machine);
  machine_free(machine);
}

static void try_flat(const struct machine_image *image)
{
  struct machine *machine = make(NULL, NULL);

  if (machine && machine_load_flat(machine, image, 0x10000) >= 0)
    run(machine);
  if (machine && machine_load_flat(machine, image, 0x100000) >= 0)
    run(machine);
  machine_free(machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct machine_image image = {data, size};

  try_kernel(&image);
  try_drives(&image);
  try_flat(&image);
  return 0;
}
