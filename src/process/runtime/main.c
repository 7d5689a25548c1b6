/* SPDX-License-Identifier: Apache-2.0
 *
 * The start of the runtime. lbr, or a recorded program, executed it with argv = {"lbr-runtime", FD, EXE, EXECFN, argv
 * of the program...}: FD is the shared memory (exec.c adds more to this word), EXE the absolute path of the program,
 * EXECFN the path as the caller gave it. The program gets the kernel's stack without those four words. There are four
 * because the stack pointer must stay aligned to 16.
 */
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#include "process/runtime/runtime.h"

enum { OWN_WORDS = 4, START_FLAGS = 0x202, HWCAP2_FSGSBASE = 1 << 1 };

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
  uint32_t none = PROCESS_E_NONE;

  if (the_runtime.attaching)
    attach_fail(error, system_error);
  if (control &&
      __atomic_compare_exchange_n(&control->error, &none, error, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    control->system_error = system_error;
    control->address = address;
    control->error_process = (uint32_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0);
  }
  for (;;)
    kernel_call(__NR_exit_group, status_of(error), 0, 0, 0, 0, 0);
}

__attribute__((noinline)) _Noreturn void runtime_wrong(void)
{
  runtime_fail(PROCESS_E_OWN_BUG, 0, (uint64_t)__builtin_return_address(0));
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
  int64_t address = place_map(size, fd, offset);

  if (is_failure(address))
    runtime_fail(the_runtime.control ? PROCESS_E_NO_MEMORY : PROCESS_E_BAD_START, (int)address, 0);
  return (void *)address;
}

static bool is_control_good(const struct process_control *control)
{
  uint32_t part = control->part_size;

  return control->magic == PROCESS_MAGIC && part >= PROCESS_PART_LEAST && part <= PROCESS_PART_MOST &&
         !(part & (part - 1)) && control->step_capacity && control->step_capacity <= PROCESS_STEPS_MOST &&
         control->notes_size % PROCESS_PAGE == 0;
}

void runtime_open(struct runtime *runtime, int fd)
{
  struct process_control *control = map_shared(fd, 0, PROCESS_PAGE);

  if (!is_control_good(control))
    runtime_fail(PROCESS_E_BAD_START, 0, 0);
  runtime->control = control;
  runtime->fd = fd;
  runtime->mode = control->mode;
  runtime->options = control->options;
  runtime->part_size = control->part_size;
  runtime->step_capacity = control->step_capacity;
  runtime->notes_size = control->notes_size;
  runtime->threads = map_shared(fd, process_thread_offset(0), (uint64_t)PROCESS_THREADS * PROCESS_PAGE);
  share_init(runtime);
  stamp_init(runtime);
  int result = cache_init(runtime);
  if (result >= 0)
    result = page_init(runtime);
  if (result >= 0)
    result = profile_init(runtime);
  if (result < 0)
    runtime_fail(PROCESS_E_NO_MEMORY, result, 0);
  kernel_call(__NR_fcntl, (uint64_t)fd, F_SETFD, FD_CLOEXEC, 0, 0, 0);
}

void runtime_open_space(struct runtime *runtime)
{
  uint64_t process = (uint64_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0);

  if (!runtime->control->first_process)
    runtime->control->first_process = (uint32_t)process;
  runtime->space = __atomic_add_fetch(&runtime->control->space_count, 1, __ATOMIC_RELAXED);
  runtime->space_note =
    note_put(runtime, NOTE_SPACE, runtime->space, process, 0, 0, runtime->exe, (uint32_t)text_length(runtime->exe));
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

static uint64_t auxv_find(const uint64_t *auxv, uint64_t type)
{
  while (auxv[0] != AT_NULL && auxv[0] != type)
    auxv += 2;
  return auxv[0] == AT_NULL ? 0 : auxv[1];
}

/* The vDSO: code that the kernel maps into every process. */
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
    uint64_t end = page_up(start + segment->p_memsz);

    if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
      continue;
    range_add(&runtime->executable, start, end, 0);
    note_put(runtime, NOTE_MAP, runtime->space, start, end, segment->p_offset, "[vdso]", 6);
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

static uint64_t auxv_size(const uint64_t *auxv)
{
  const uint64_t *at = auxv;

  while (at[0] != AT_NULL)
    at += 2;
  return (uint64_t)(at + 2 - auxv) * sizeof(*at);
}

static struct thread *first_thread(struct runtime *runtime, uint64_t *stack)
{
  struct thread *thread = thread_new(runtime, (uint32_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0), 0);

  if (!thread)
    runtime_fail(PROCESS_E_NO_MEMORY, 0, 0);
  thread->state->can_leave = false;
  thread->state->flags = START_FLAGS;
  thread->state->registers[GPR_RSP] = (uint64_t)stack;
  thread_enter(thread);
  runtime->has_thread = true;
  return thread;
}

_Noreturn void runtime_main(uint64_t *stack)
{
  struct runtime *runtime = &the_runtime;
  uint64_t count = stack[0];

  if (count <= OWN_WORDS)
    runtime_fail(PROCESS_E_BAD_START, 0, 0);
  char **words = (char **)(stack + 1);
  const char *name = words[3];
  runtime->exe = words[2];
  runtime_open(runtime, number_of(words[1]));
  exec_arrived(runtime, words[1]);
  runtime_open_space(runtime);

  uint64_t *auxv = find_auxv(stack);
  struct image program, start;
  add_vdso(runtime, auxv);
  runtime->has_wrgsbase = auxv_find(auxv, AT_HWCAP2) & HWCAP2_FSGSBASE;
  load_program(runtime, runtime->exe, &program, &start);
  runtime->entry = program.entry;
  snapshot_use(runtime);
  patch_auxv(auxv, &program, &start, name);
  set_name(name);
  stack += OWN_WORDS;
  stack[0] = count - OWN_WORDS;
  self_set_command(stack, auxv, auxv_size(auxv));
  if (program.has_stack_code)
    map_stack_code(runtime, (uint64_t)stack);
  struct thread *thread = first_thread(runtime, stack);
  signal_init(runtime, thread);
  __atomic_store_n(&thread->state->can_leave, true, __ATOMIC_RELEASE);
  snapshot_publish(thread);
  trigger_ask(thread, runtime->space_note, __atomic_load_n(&runtime->control->notes_used, __ATOMIC_RELAXED));
  thread->state->rip = start.entry;
  stamp_used(thread, STAMP_START);
  dispatch_enter();
}
