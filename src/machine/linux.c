/* SPDX-License-Identifier: Apache-2.0
 *
 * Linux kernels (bzImage): the setup header, the kernel at 1 MiB, the initrd as high as it may lie, boot_params with
 * memory map, command line and ACPI's root, and the processor at the 32-bit entry. An image with a boot protocol before
 * 2.10 is started at its 16-bit entry, as the boot loaders of its time do: other programs of that form (iPXE) have no
 * code at the 32-bit entry. Facts: the kernel's Documentation/arch/x86/boot.rst (header, 16-bit and 32-bit boot
 * protocol) and zero-page.rst (boot_params).
 */
#include <string.h>

#include "base/base.h"
#include "machine/firmware.h"
#include "machine/kernel.h"

/* The setup header, by its place in the file; boot_params has it at the same place. */
enum {
  HEADER_START = 0x1F1,
  SETUP_SECTORS = 0x1F1,
  BOOT_FLAG = 0x1FE,
  HEADER_JUMP = 0x201, /* length of the header after 0x202 */
  HEADER_MAGIC = 0x202,
  VERSION = 0x206,
  LOADER_TYPE = 0x210,
  LOAD_FLAGS = 0x211,
  CODE32_START = 0x214,
  INITRD_ADDRESS = 0x218,
  INITRD_SIZE = 0x21C,
  HEAP_END = 0x224, /* from the setup code's first byte, less 0x200 */
  COMMAND_LINE = 0x228,
  INITRD_LAST = 0x22C,
  ALIGNMENT = 0x230,
  RELOCATABLE = 0x234,
  EXTENDED_FLAGS = 0x236,
  COMMAND_LINE_MAX = 0x238,
  PREFERRED = 0x258,
  INIT_SIZE = 0x260,
  HEADER_END = 0x280, /* boot_params has room for no more */
};

/* The rest of boot_params. */
enum {
  SCREEN_COLUMN = 0x00,
  SCREEN_ROW = 0x01,
  EXTENDED_KIB_16 = 0x02,
  SCREEN_MODE = 0x06,
  SCREEN_COLUMNS = 0x07,
  SCREEN_EGA = 0x0A,
  SCREEN_ROWS = 0x0E,
  SCREEN_IS_VGA = 0x0F,
  SCREEN_POINTS = 0x10,
  ACPI_RSDP = 0x70,
  EXTENDED_KIB = 0x1E0,
  E820_COUNT = 0x1E8,
  E820_TABLE = 0x2D0,
  PARAMS_SIZE = 0x1000,
};

#define MSR_EFER 0xC0000080u
#define MAGIC 0x53726448u /* "HdrS" */
#define LOADED_HIGH 0x01u
#define KERNEL_64 0x01u    /* of the extended flags, since 2.12 */
#define LOADER_OTHER 0xFFu /* no number was given to this loader */
#define CAN_USE_HEAP 0x80u
#define VERSION_LEAST 0x202u
#define VERSION_ROOM 0x20Au         /* the header says how much memory the kernel takes, and where */
#define INITRD_LAST_OLD 0x37FFFFFFu /* before 2.03, which has a field for it */
#define COMMAND_LINE_OLD 255u       /* before 2.06, which has a field for it */

/* Addresses in conventional memory. */
#define PARAMS_AT UINT64_C(0x10000)
#define GDT_AT UINT64_C(0x11000)
#define COMMAND_LINE_AT UINT64_C(0x12000)
#define STACK_AT UINT64_C(0x10000)
/* The same for a 16-bit entry: a segment for the setup code with its heap and stack, and the command line after it. */
#define SETUP_AT UINT64_C(0x10000)
#define SETUP_MAX 0x8000u
#define SETUP_STACK 0xFFF0u
#define HEAP_LAST 0xDE00u /* 8 KiB below the stack */
#define SETUP_LINE_AT UINT64_C(0x20000)
#define BOOT_CS 0x10u
#define BOOT_DS 0x18u

/* The values of the header, and those that follow from them. */
struct linux_plan {
  uint64_t offset, size;   /* of the protected-mode kernel in the file */
  uint64_t address;        /* where it goes */
  uint64_t end;            /* the kernel unpacks itself between `address` and this: nothing else may lie there */
  uint64_t initrd, length; /* length 0: none */
  uint64_t initrd_last;    /* highest address of its bytes */
  uint32_t command_line_max;
  uint32_t header_end;
  bool is_64, is_16;
};

bool machine_is_linux(const struct machine_image *image)
{
  return image->size >= VERSION + 2 && image->bytes[BOOT_FLAG] == 0x55 && image->bytes[BOOT_FLAG + 1] == 0xAA &&
         bytes_get_u32(image->bytes + HEADER_MAGIC) == MAGIC;
}

/* ---- the header ---- */

/* A field of a header that may be too short to have it. */
static uint64_t header_get(const struct machine_image *image, const struct linux_plan *plan, unsigned at, unsigned size)
{
  const uint8_t *bytes = image->bytes + at;

  if (at + size > plan->header_end)
    return 0;
  return size == 8 ? bytes_get_u64(bytes) : size == 4 ? bytes_get_u32(bytes) : bytes[0];
}

static const char *header_read(const struct machine_image *image, struct linux_plan *plan)
{
  const uint8_t *bytes = image->bytes;

  if (image->size < HEADER_MAGIC + 0x40)
    return "the file ends within Linux's setup header";
  uint32_t version = bytes[VERSION] | (uint32_t)bytes[VERSION + 1] << 8;
  uint32_t sectors = bytes[SETUP_SECTORS] ? bytes[SETUP_SECTORS] : 4;
  plan->header_end = HEADER_MAGIC + bytes[HEADER_JUMP];
  if (plan->header_end > HEADER_END)
    plan->header_end = HEADER_END;
  if (version < VERSION_LEAST)
    return "it is a Linux kernel with a boot protocol older than 2.02";
  if (plan->header_end > image->size || plan->header_end < INITRD_LAST)
    return "its setup header has no such size";
  if (!(bytes[LOAD_FLAGS] & LOADED_HIGH))
    return "it is a zImage, which is loaded below 640 KiB; a bzImage is wanted";
  plan->offset = (sectors + 1) * (uint64_t)SECTOR_SIZE;
  if (plan->offset >= image->size)
    return "the file ends within Linux's setup code";
  plan->size = image->size - plan->offset;
  plan->is_16 = version < VERSION_ROOM;
  if (plan->is_16 && plan->offset > SETUP_MAX)
    return "its setup code has more than 32 KiB";
  plan->initrd_last = version >= 0x203 ? header_get(image, plan, INITRD_LAST, 4) : INITRD_LAST_OLD;
  plan->is_64 = version >= 0x20C && (header_get(image, plan, EXTENDED_FLAGS, 1) & KERNEL_64);
  plan->command_line_max = version >= 0x206 ? (uint32_t)header_get(image, plan, COMMAND_LINE_MAX, 4) : COMMAND_LINE_OLD;
  return NULL;
}

/* Finds the memory in which the kernel unpacks itself. Since 2.10 the header gives its address and size. */
static const char *header_room(const struct machine_image *image, struct linux_plan *plan)
{
  uint64_t alignment = header_get(image, plan, ALIGNMENT, 4), preferred = header_get(image, plan, PREFERRED, 8);
  uint64_t need = header_get(image, plan, INIT_SIZE, 4), start = plan->address;
  bool is_relocatable = header_get(image, plan, RELOCATABLE, 1);

  if (plan->is_16 || plan->header_end < INIT_SIZE + 4) { /* an old kernel: several times its size is enough */
    plan->end = plan->address + 8 * plan->size;
    return NULL;
  }
  if (alignment & (alignment - 1))
    return "the alignment in its setup header is not a power of two";
  if (preferred > UINT32_MAX)
    return "its setup header wants it above 4 GiB";
  if (is_relocatable && alignment)
    start = (start + alignment - 1) & ~(alignment - 1);
  if (!is_relocatable || start < preferred)
    start = preferred;
  plan->end = start + need;
  if (plan->end < plan->address + plan->size)
    plan->end = plan->address + plan->size;
  return NULL;
}

/* ---- the initrd ---- */

/* The initrd is all modules in a row, each at a multiple of four, so that several archives form one. */
static uint64_t initrd_size(const struct start *start)
{
  uint64_t size = 0;

  for (size_t i = 0; i < start->count; i++)
    size = ((size + 3) & ~UINT64_C(3)) + start->modules[i].size;
  return size;
}

static const char *initrd_place(const struct machine *m, const struct start *start, struct linux_plan *plan)
{
  uint64_t last = plan->initrd_last < m->tables - 1 ? plan->initrd_last : m->tables - 1;

  plan->length = initrd_size(start);
  if (!plan->length)
    return NULL;
  if (last < plan->end || last + 1 - plan->end < plan->length)
    return "no room in memory for its initrd; --ram gives it more";
  plan->initrd = (last + 1 - plan->length) & ~PAGE_MASK;
  return plan->initrd < plan->end ? "no room in memory for its initrd; --ram gives it more" : NULL;
}

static void initrd_load(struct machine *m, const struct start *start, uint64_t at)
{
  for (size_t i = 0; i < start->count; i++) {
    at = (at + 3) & ~UINT64_C(3);
    if (start->modules[i].size)
      memory_write(&m->memory, at, start->modules[i].bytes, start->modules[i].size);
    at += start->modules[i].size;
  }
}

/* ---- boot_params ---- */

/* The text screen as the firmware left it. */
static void params_screen(struct machine *m, uint8_t *params)
{
  struct machine_screen screen = machine_screen(m);

  params[SCREEN_COLUMN] = (uint8_t)screen.cursor_column;
  params[SCREEN_ROW] = (uint8_t)screen.cursor_row;
  params[SCREEN_MODE] = 3;
  params[SCREEN_COLUMNS] = (uint8_t)screen.columns;
  params[SCREEN_EGA] = 3; /* 256 KiB of memory, colour */
  params[SCREEN_ROWS] = (uint8_t)screen.rows;
  params[SCREEN_IS_VGA] = 1;
  params[SCREEN_POINTS] = 16;
}

static void params_memory(const struct machine *m, uint8_t *params)
{
  struct map_range ranges[MAP_MAX];
  unsigned count = memory_map(m, ranges);
  uint64_t kib = (m->tables - EXTENDED_START) / 1024;

  for (unsigned i = 0; i < count; i++) {
    uint8_t *entry = params + E820_TABLE + (size_t)20 * i;

    bytes_put_u64(entry, ranges[i].start);
    bytes_put_u64(entry + 8, ranges[i].size);
    bytes_put_u32(entry + 16, ranges[i].type);
  }
  params[E820_COUNT] = (uint8_t)count;
  bytes_put_u32(params + EXTENDED_KIB, (uint32_t)kib);
  params[EXTENDED_KIB_16] = params[EXTENDED_KIB_16 + 1] = kib > 0xFFFF ? 0xFF : 0;
  if (kib <= 0xFFFF) {
    params[EXTENDED_KIB_16] = (uint8_t)kib;
    params[EXTENDED_KIB_16 + 1] = (uint8_t)(kib >> 8);
  }
}

static void params_write(struct machine *m, const struct start *start, const struct linux_plan *plan)
{
  uint8_t params[PARAMS_SIZE] = {0};

  memcpy(params + HEADER_START, start->image.bytes + HEADER_START, plan->header_end - HEADER_START);
  params[LOADER_TYPE] = LOADER_OTHER;
  bytes_put_u32(params + CODE32_START, (uint32_t)plan->address);
  bytes_put_u32(params + INITRD_ADDRESS, (uint32_t)plan->initrd);
  bytes_put_u32(params + INITRD_SIZE, (uint32_t)plan->length);
  bytes_put_u32(params + COMMAND_LINE, (uint32_t)COMMAND_LINE_AT);
  bytes_put_u64(params + ACPI_RSDP, FIRMWARE_START + ROM_RSDP);
  params_screen(m, params);
  params_memory(m, params);
  memory_write(&m->memory, PARAMS_AT, params, sizeof(params));
}

/* ---- into memory, and in ---- */

/* Enters the kernel with flat code and data at the selectors that the protocol names. */
static void enter(struct machine *m, const struct linux_plan *plan)
{
  static const uint64_t gdt[] = {0, 0, UINT64_C(0x00CF9B000000FFFF), UINT64_C(0x00CF93000000FFFF)};
  struct cpu *cpu = m->cpu;

  memory_write(&m->memory, GDT_AT, gdt, sizeof(gdt));
  memset(cpu->r, 0, sizeof(cpu->r));
  cpu_set_flags(cpu, FLAG_1);
  cpu_enter_flat_protected(cpu, (uint32_t)plan->address);
  for (unsigned i = ES; i <= GS; i++)
    cpu->segment[i].selector = i == CS ? BOOT_CS : BOOT_DS;
  cpu->gdtr = (struct cpu_table){.base = GDT_AT, .limit = sizeof(gdt) - 1};
  cpu->r[RSI] = PARAMS_AT;
  cpu->r[RSP] = STACK_AT;
  cpu_changed(cpu);
}

/* Enters the setup code, whose header is filled in, in real mode. */
static void enter_setup(struct machine *m, const struct start *start, const struct linux_plan *plan)
{
  struct cpu *cpu = m->cpu;
  uint8_t setup[SETUP_MAX] = {0};

  memcpy(setup, start->image.bytes, plan->offset);
  setup[LOADER_TYPE] = LOADER_OTHER;
  setup[LOAD_FLAGS] |= CAN_USE_HEAP;
  bytes_put_u32(setup + CODE32_START, (uint32_t)plan->address);
  bytes_put_u32(setup + INITRD_ADDRESS, (uint32_t)plan->initrd);
  bytes_put_u32(setup + INITRD_SIZE, (uint32_t)plan->length);
  setup[HEAP_END] = (uint8_t)(HEAP_LAST & 0xFF);
  setup[HEAP_END + 1] = (uint8_t)(HEAP_LAST >> 8);
  bytes_put_u32(setup + COMMAND_LINE, (uint32_t)SETUP_LINE_AT);
  memory_write(&m->memory, SETUP_AT, setup, plan->offset);
  memset(cpu->r, 0, sizeof(cpu->r));
  for (unsigned i = ES; i <= GS; i++)
    cpu_load_real_segment(cpu, i, (uint16_t)(SETUP_AT >> 4) + (i == CS ? 0x20 : 0));
  cpu->r[RSP] = SETUP_STACK;
  cpu_set_flags(cpu, FLAG_1);
  cpu_set_rip(cpu, 0);
  cpu_changed(cpu);
}

/* A 64-bit kernel needs 64-bit mode before it could report that the mode is missing. */
static bool has_64_bit_mode(struct cpu *cpu)
{
  uint64_t efer = 0;
  bool has = cpu_read_msr(cpu, MSR_EFER, &efer) && cpu_write_msr(cpu, MSR_EFER, efer | EFER_LME);

  if (has)
    cpu_write_msr(cpu, MSR_EFER, efer);
  return has;
}

static const char *plan_make(const struct machine *m, const struct start *start, struct linux_plan *plan)
{
  const char *why = header_read(&start->image, plan);

  if (!why && plan->is_64 && !has_64_bit_mode(m->cpu))
    why = "it is a kernel of 64 bits, and this processor has no 64-bit mode";
  plan->address = EXTENDED_START;
  return why ? why : header_room(&start->image, plan);
}

static const char *plan_fit(const struct machine *m, const struct start *start, struct linux_plan *plan)
{
  size_t length = start->command_line ? strlen(start->command_line) : 0;

  if (!machine_is_free(m, plan->address, plan->end - plan->address))
    return "it needs more memory to unpack itself than there is; --ram gives it more";
  if (length > plan->command_line_max || length >= EBDA_START - (plan->is_16 ? SETUP_LINE_AT : COMMAND_LINE_AT))
    return "its command line is longer than it can take";
  return initrd_place(m, start, plan);
}

int linux_load(struct machine *machine, const struct start *start, const char **ret_why)
{
  struct linux_plan plan = {0};
  const char *why = plan_make(machine, start, &plan), *line = start->command_line ? start->command_line : "";
  int r = why ? LB_E_BAD_IMAGE : 0;

  if (!why) {
    why = plan_fit(machine, start, &plan);
    r = why ? LB_E_TOO_BIG : 0;
  }
  if (why) {
    if (ret_why)
      *ret_why = why;
    return r;
  }
  memory_write(&machine->memory, plan.address, start->image.bytes + plan.offset, plan.size);
  initrd_load(machine, start, plan.initrd);
  memory_write(&machine->memory, plan.is_16 ? SETUP_LINE_AT : COMMAND_LINE_AT, line, strlen(line) + 1);
  if (plan.is_16) {
    enter_setup(machine, start, &plan);
    return 0;
  }
  params_write(machine, start, &plan);
  enter(machine, &plan);
  return 0;
}
