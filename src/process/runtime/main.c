/* SPDX-License-Identifier: Apache-2.0
 *
 * The start of the runtime. lbr executed it with argv = {"lbr-runtime", FD, EXE, EXECFN, argv of the program...}: FD is
 * the shared memory, EXE the absolute path of the program, EXECFN the path as it was asked for. The kernel's stack is
 * handed on to the program without those four words; four, because the stack pointer must stay aligned to 16.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <elf.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "process/runtime.h"

enum { OWN_WORDS = 4, START_FLAGS = 0x202 };

extern uint8_t runtime_stack_end[];

struct runtime the_runtime;

static uint8_t status_of(enum process_error error)
{
  static const uint8_t statuses[] = {
#define PROCESS_ERROR(name, status, text) status,
#include "process/error.def"
#undef PROCESS_ERROR
  };
  return statuses[error];
}

_Noreturn void runtime_fail(enum process_error error, int system_error, uint64_t address)
{
  struct process_control *control = the_runtime.control;
  if (control) {
    control->system_error = system_error;
    control->address = address;
    __atomic_store_n(&control->error, error, __ATOMIC_RELEASE);
  }
  for (;;)
    kernel_call(__NR_exit_group, status_of(error), 0, 0, 0, 0, 0);
}

/* ---- memory ---- */

static int number_of(const char *text)
{
  int number = 0;
  for (; *text >= '0' && *text <= '9' && number < 1 << 20; text++)
    number = number * 10 + *text - '0';
  return number;
}

static void *map_shared(int fd, uint64_t offset, uint64_t size)
{
  int64_t address = kernel_map(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  if (is_failure(address))
    runtime_fail(the_runtime.control ? PROCESS_E_NO_MEMORY : PROCESS_E_BAD_START, (int)address, 0);
  return (void *)address;
}

int region_map_ring(const struct runtime *runtime, int fd, uint64_t ring_offset)
{
  uint64_t ring = (uint64_t)runtime->state + REGION_RING;
  for (uint64_t at = 0; at < REGION_SIZE - REGION_RING; at += runtime->ring_size) {
    int64_t result =
      kernel_map(ring + at, runtime->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, ring_offset);
    if (is_failure(result))
      return (int)result;
  }
  return 0;
}

static int region_map(struct runtime *runtime, int fd)
{
  enum { READ_WRITE = PROT_READ | PROT_WRITE };
  int64_t region = kernel_map(0, REGION_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is_failure(region))
    return (int)region;
  uint64_t start = (uint64_t)region;
  int64_t state = kernel_map(start, PROCESS_PAGE, READ_WRITE, MAP_SHARED | MAP_FIXED, fd, PROCESS_STATE_OFFSET);
  if (is_failure(state))
    return (int)state;
  int64_t lookup = kernel_map(start + REGION_LOOKUP_FROM, REGION_RING - REGION_LOOKUP_FROM, READ_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (is_failure(lookup))
    return (int)lookup;
  runtime->state = (struct process_state *)start;
  return region_map_ring(runtime, fd, process_ring_offset(runtime->block_capacity));
}

static bool is_control_good(const struct process_control *control)
{
  uint32_t ring = control->ring_size;
  return control->magic == PROCESS_MAGIC && ring >= PROCESS_RING_LEAST && ring <= PROCESS_RING_MOST &&
         !(ring & (ring - 1)) && control->block_capacity >= 2;
}

static void open_shared(struct runtime *runtime, int fd)
{
  struct process_control *control = map_shared(fd, 0, PROCESS_PAGE);
  if (!is_control_good(control))
    runtime_fail(PROCESS_E_BAD_START, 0, 0);
  runtime->control = control;
  runtime->ring_size = control->ring_size;
  runtime->block_capacity = control->block_capacity;
  uint64_t table_size = process_ring_offset(runtime->block_capacity) - PROCESS_TABLE_OFFSET;
  runtime->table = map_shared(fd, PROCESS_TABLE_OFFSET, table_size);
  int result = region_map(runtime, fd);
  if (result >= 0)
    result = cache_init(&runtime->cache);
  if (result < 0)
    runtime_fail(PROCESS_E_NO_MEMORY, result, 0);
  runtime->next_id = 1;
  cache_flush(runtime);
}

/* ---- the program's stack ---- */

static uint64_t *find_auxv(uint64_t *stack)
{
  uint64_t *at = stack + 1 + *stack + 1;
  while (*at)
    at++;
  return at + 1;
}

static void patch_auxv(uint64_t *auxv, const struct image *program, const struct image *start, const char *name)
{
  for (; auxv[0] != AT_NULL; auxv += 2) {
    switch (auxv[0]) {
    case AT_PHDR:
      auxv[1] = program->headers;
      break;
    case AT_PHENT:
      auxv[1] = program->header_size;
      break;
    case AT_PHNUM:
      auxv[1] = program->header_count;
      break;
    case AT_BASE:
      auxv[1] = start->entry == program->entry ? 0 : start->base;
      break;
    case AT_ENTRY:
      auxv[1] = program->entry;
      break;
    case AT_EXECFN:
      auxv[1] = (uint64_t)name;
      break;
    default:
      break;
    }
  }
}

/* The code that the kernel gives to every process. */
static void add_vdso(struct runtime *runtime, const uint64_t *auxv)
{
  while (auxv[0] != AT_NULL && auxv[0] != AT_SYSINFO_EHDR)
    auxv += 2;
  if (auxv[0] == AT_NULL)
    return;
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)auxv[1];
  const Elf64_Phdr *segment = (const Elf64_Phdr *)(auxv[1] + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; i++, segment++) {
    uint64_t start = auxv[1] + segment->p_offset;
    uint64_t end = (start + segment->p_memsz + PROCESS_PAGE - 1) & ~(uint64_t)(PROCESS_PAGE - 1);
    if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
      range_add(&runtime->executable, start, end);
  }
}

static void set_name(const char *path)
{
  const char *name = path;
  for (const char *at = path; *at; at++)
    if (*at == '/')
      name = at + 1;
  kernel_call(__NR_prctl, PR_SET_NAME, (uint64_t)name, 0, 0, 0, 0);
}

static void start_state(const struct runtime *runtime, uint64_t *stack)
{
  struct process_state *state = runtime->state;
  state->leave = (uint64_t)cache_leave;
  state->stack = (uint64_t)runtime_stack_end;
  state->flags = START_FLAGS;
  state->registers[GPR_RSP] = (uint64_t)stack;
  int64_t result = kernel_call(__NR_arch_prctl, ARCH_SET_GS, (uint64_t)state, 0, 0, 0, 0);
  if (is_failure(result))
    runtime_fail(PROCESS_E_NO_MEMORY, (int)result, 0);
}

_Noreturn void runtime_main(uint64_t *stack)
{
  struct runtime *runtime = &the_runtime;
  uint64_t count = stack[0];
  if (count <= OWN_WORDS)
    runtime_fail(PROCESS_E_BAD_START, 0, 0);
  char **words = (char **)(stack + 1);
  const char *name = words[3];
  int fd = number_of(words[1]);
  runtime->exe = words[2];
  open_shared(runtime, fd);
  kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);

  uint64_t *auxv = find_auxv(stack);
  struct image program, start;
  add_vdso(runtime, auxv);
  load_program(runtime, runtime->exe, &program, &start);
  patch_auxv(auxv, &program, &start, name);
  set_name(name);
  stack += OWN_WORDS;
  stack[0] = count - OWN_WORDS;
  start_state(runtime, stack);
  dispatch_to(runtime, start.entry);
  cache_enter();
}
