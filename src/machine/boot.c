/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the machine from boot sectors, flat bytes or kernels (multiboot.c, linux.c); INT 18h, INT 19h and resets.
 * Nothing here runs while the processor runs: services request it, and the run loop does it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "machine/firmware.h"
#include "machine/kernel.h"

#define BOOT_ADDRESS 0x7C00u
#define FLAT_STACK UINT64_C(0x9F000)

/* ---- entering real mode ---- */

void enter_real(struct machine *machine, uint16_t cs, uint16_t ip, uint16_t ss, uint16_t sp)
{
  struct cpu *cpu = machine->cpu;

  memset(cpu->r, 0, sizeof(cpu->r));
  for (unsigned i = ES; i <= GS; i++)
    cpu_load_real_segment(cpu, i, i == CS ? cs : i == SS ? ss : 0);
  cpu->r[RSP] = sp;
  cpu->activity = CPU_RUNNING;
  cpu_set_flags(cpu, FLAG_1 | FLAG_IF);
  cpu_set_rip(cpu, ip);
  cpu_changed(cpu);
}

/* ---- drives ---- */

static bool drive_boot(struct machine *m, const struct drive *drive, uint8_t number)
{
  if (!drive->bytes || drive->bytes[510] != 0x55 || drive->bytes[511] != 0xAA)
    return false;
  memory_write(&m->memory, BOOT_ADDRESS, drive->bytes, SECTOR_SIZE);
  enter_real(m, 0, BOOT_ADDRESS, 0, BOOT_ADDRESS);
  m->cpu->r[RDX] = number;
  return true;
}

void boot_drives(struct machine *machine)
{
  uint32_t vector = 0;

  if (drive_boot(machine, &machine->floppy, 0x00) || drive_boot(machine, &machine->disk, 0x80))
    return;
  vector = guest_get(machine, 4 * 0x18, 4);
  enter_real(machine, (uint16_t)(vector >> 16), (uint16_t)vector, 0, BOOT_ADDRESS);
}

bool firmware_no_boot(struct machine *machine)
{
  machine->has_no_boot = true;
  video_print(machine, "No bootable device.\r\n");
  return false;
}

bool firmware_boot(struct machine *machine)
{
  machine->wants_boot = !(machine->cpu->cr0 & CR0_PE);
  cpu_kick(machine->cpu);
  return false;
}

/* ---- resets ---- */

bool firmware_reset(struct machine *machine)
{
  machine->wants_reset = true;
  machine->wants_cpu_reset |= machine->cpu->cr0 & CR0_PE;
  cpu_kick(machine->cpu);
  return false;
}

bool boot_resume(struct machine *machine)
{
  board_out(machine->board, 0x70, 1, 0x0F);
  uint8_t code = (uint8_t)board_in(machine->board, 0x71, 1);
  if (code != 0x05 && code != 0x0A)
    return false;
  board_out(machine->board, 0x70, 1, 0x0F);
  board_out(machine->board, 0x71, 1, 0);
  if (machine->wants_cpu_reset) /* INIT has left the MSRs unchanged, and a resume through the firmware keeps them */
    cpu_reset(machine->cpu, true);
  machine->wants_reset = machine->wants_cpu_reset = false;
  uint8_t vector[4] = {0};
  memory_read(&machine->memory, BDA_RESET_VECTOR, vector, sizeof(vector));
  uint32_t target = bytes_get_u32(vector);
  enter_real(machine, (uint16_t)(target >> 16), (uint16_t)target, 0, 0x400);
  cpu_set_flags(machine->cpu, FLAG_1);
  if (code == 0x05)
    firmware_eoi_both(machine);
  return true;
}

/* ---- flat bytes ---- */

static void flat_apply(struct machine *m)
{
  const struct start *start = &m->start;

  memory_write(&m->memory, start->address, start->image.bytes, start->image.size);
  if (start->address < EXTENDED_START) {
    bool is_low = start->address < BOOT_ADDRESS; /* then the stack goes to the end of conventional memory */

    enter_real(m, (uint16_t)(start->address >> 4), start->address & 15, is_low ? 0x9000 : 0,
               is_low ? 0xF000 : BOOT_ADDRESS);
    return;
  }
  memset(m->cpu->r, 0, sizeof(m->cpu->r));
  cpu_set_flags(m->cpu, FLAG_1);
  cpu_enter_flat_protected(m->cpu, (uint32_t)start->address);
  m->cpu->r[RSP] = FLAT_STACK;
  cpu_changed(m->cpu);
}

/* ---- what to start with ---- */

static bool image_copy(const struct machine_image *from, struct machine_image *ret_to)
{
  uint8_t *bytes = malloc(from->size ? from->size : 1);

  if (!bytes)
    return false;
  if (from->size)
    memcpy(bytes, from->bytes, from->size);
  *ret_to = (struct machine_image){bytes, from->size};
  return true;
}

void start_done(struct start *start)
{
  free((void *)start->image.bytes);
  free(start->command_line);
  for (size_t i = 0; i < start->count; i++) {
    free((void *)start->modules[i].bytes);
    free(start->names[i]);
  }
  free(start->modules);
  free(start->names);
  *start = (struct start){0};
}

static int kernel_load(struct machine *m, const struct start *start, const char **ret_why)
{
  return machine_is_linux(&start->image) ? linux_load(m, start, ret_why) : multiboot_load(m, start, ret_why);
}

void start_apply(struct machine *machine)
{
  machine->is_started = true;
  machine->has_no_boot = false;
  switch (machine->start.kind) {
  case START_KERNEL:
    if (kernel_load(machine, &machine->start, NULL) < 0)
      boot_drives(machine); /* the kernel was loaded before: only memory for its list of modules can be missing */
    break;
  case START_FLAT:
    flat_apply(machine);
    break;
  default:
    boot_drives(machine);
  }
}

/* Restores the machine's state just after machine_new. */
static void machine_refresh(struct machine *m)
{
  if (m->is_started)
    machine_power_on(m, false);
  m->is_started = false;
}

/* Copies an image. Unpacks a compressed one if the caller asks for it. */
static int image_take(const struct machine_image *from, uint64_t limit, bool unpacks, struct machine_image *ret_to,
                      const char **ret_why)
{
  if (unpacks && gzip_is(from))
    return gzip_unpack(from, limit, ret_to, ret_why);
  return image_copy(from, ret_to) ? 0 : -ENOMEM;
}

static int kernel_take(struct machine *m, const struct machine_image *kernel, struct start *start, const char **ret_why)
{
  int r = image_take(kernel, m->memory.size, !machine_is_linux(kernel), &start->image, ret_why);

  if (r < 0 || machine_is_linux(kernel) || !machine_is_linux(&start->image))
    return r;
  *ret_why = "it is a Linux kernel in a gzip file; unpack it with gunzip first";
  return LB_E_BAD_IMAGE;
}

/* Modules share the guest's memory: each may unpack to at most what the earlier ones have left. */
static int module_take(struct machine *m, const struct machine_image *module, const char *name, struct start *start,
                       const char **ret_why)
{
  uint64_t limit = m->memory.size;

  for (size_t i = 0; i < start->count; i++)
    limit -= start->modules[i].size < limit ? start->modules[i].size : limit;
  int r = image_take(module, limit, !machine_is_linux(&start->image), &start->modules[start->count], ret_why);
  if (r >= 0) {
    start->names[start->count] = strdup(name ? name : "");
    return start->names[start->count++] ? 0 : -ENOMEM;
  }
  text_done(&m->refusal);
  if (r != -ENOMEM && text_addf(&m->refusal, "module %s: %s", name ? name : "(no name)", *ret_why) >= 0)
    *ret_why = text_string(&m->refusal);
  return r;
}

static int start_init_kernel(struct start *start, const char *command_line, size_t count)
{
  *start = (struct start){.kind = START_KERNEL};
  start->command_line = strdup(command_line ? command_line : "");
  start->modules = calloc(count + 1, sizeof(*start->modules));
  start->names = calloc(count + 1, sizeof(*start->names));
  return start->command_line && start->modules && start->names ? 0 : -ENOMEM;
}

int machine_load_kernel(struct machine *machine, const struct machine_image *kernel, const char *command_line,
                        const struct machine_image *modules, const char *const *module_names, size_t count,
                        const char **ret_why)
{
  struct start start;
  const char *why = NULL;

  machine_refresh(machine);
  int r = start_init_kernel(&start, command_line, count);
  if (r >= 0)
    r = kernel_take(machine, kernel, &start, &why);
  for (size_t i = 0; r >= 0 && i < count; i++)
    r = module_take(machine, &modules[i], module_names ? module_names[i] : NULL, &start, &why);
  if (r >= 0)
    r = kernel_load(machine, &start, &why);
  if (r < 0) {
    if (ret_why && why)
      *ret_why = why;
    start_done(&start);
    return r;
  }
  start_done(&machine->start);
  machine->start = start;
  machine->is_started = true;
  return 0;
}

int machine_load_flat(struct machine *machine, const struct machine_image *image, uint64_t address)
{
  struct start start = {.kind = START_FLAT, .address = address};

  if (image->size == 0)
    return LB_E_BAD_IMAGE;
  if (address > UINT32_MAX || !machine_is_free(machine, address, image->size))
    return LB_E_TOO_BIG;
  if (!image_copy(image, &start.image))
    return -ENOMEM;
  machine_refresh(machine);
  start_done(&machine->start);
  machine->start = start;
  start_apply(machine);
  return 0;
}
