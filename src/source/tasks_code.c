/* SPDX-License-Identifier: Apache-2.0
 *
 * The code of a process: from the mapped files, or from its memory while it lives. Code that is in no file goes into
 * the trace, too, so that readers have the same bytes. Decoded instructions are cached, because a program runs the same
 * ones again and again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/isa.h"
#include "source/tasks_inside.h"

/* ---- pages ---- */

static const struct task_page *page_find(const struct task_process *process, uint64_t address)
{
  for (size_t i = 0; i < process->page_count; i++)
    if (process->pages[i].address == address)
      return &process->pages[i];
  return NULL;
}

/* Reads a page and puts it into the trace. */
static const struct task_page *page_add(struct tasks *tasks, struct task_process *process, uint64_t address)
{
  struct task_page page = {.address = address}, *added;
  uint8_t bytes[TASKS_PAGE];

  if (process->page_count >= TASKS_PAGES)
    return NULL;
  page.size = (uint32_t)tasks->memory(tasks->memory_data, process->number, address, bytes, sizeof(bytes));
  if (page.size) {
    const struct lb_trace_code code = {process->space, address, bytes, page.size};

    page.bytes = malloc(page.size);
    if (!page.bytes)
      return NULL;
    memcpy(page.bytes, bytes, page.size);
    tasks_fail(tasks, tasks->sink->code(tasks->sink->data, &code));
  }
  added = array_append(&process->pages, &process->page_count, &process->page_capacity);
  if (added)
    *added = page;
  else
    free(page.bytes);
  return added;
}

static size_t page_read(struct tasks *tasks, struct task_process *process, uint64_t address, uint8_t *buffer,
                        size_t size)
{
  uint64_t start = address & ~(uint64_t)(TASKS_PAGE - 1);
  const struct task_page *page = page_find(process, start);
  size_t offset = (size_t)(address - start);

  if (!page)
    page = page_add(tasks, process, start);
  if (!page || offset >= page->size)
    return 0;
  if (size > page->size - offset)
    size = page->size - offset;
  memcpy(buffer, page->bytes + offset, size);
  return size;
}

static void page_drop(struct task_process *process, size_t place)
{
  free(process->pages[place].bytes);
  process->pages[place] = process->pages[--process->page_count];
}

void task_code_forget(struct task_process *process, uint64_t address, uint64_t size)
{
  for (size_t i = 0; i < process->page_count;)
    if (process->pages[i].address + TASKS_PAGE > address && process->pages[i].address < address + size)
      page_drop(process, i);
    else
      i++;
  if (process->instructions)
    memset(process->instructions, 0, TASKS_INSTRUCTIONS * sizeof(*process->instructions));
}

void task_code_clear(struct task_process *process)
{
  while (process->page_count)
    page_drop(process, process->page_count - 1);
  free(process->pages);
  process->pages = NULL;
  process->page_capacity = 0;
  if (process->instructions)
    memset(process->instructions, 0, TASKS_INSTRUCTIONS * sizeof(*process->instructions));
}

/* ---- bytes ---- */

void tasks_live(struct tasks *tasks)
{
  tasks->is_live = !!tasks->memory;
}

void tasks_live_again(struct tasks *tasks)
{
  tasks->line_size = 0;
}

/* Memory is read through the thread, because the first thread of its process may be gone. */
static size_t code_live(struct tasks *tasks, const struct task_thread *thread, uint64_t address, void *buffer,
                        size_t size)
{
  const struct task_process *process = thread->process;
  uint64_t offset = address - tasks->line_address;

  if (tasks->line_process != process->number || offset >= tasks->line_size || size > tasks->line_size - offset) {
    tasks->line_process = process->number;
    tasks->line_address = address;
    tasks->line_size = tasks->memory(tasks->memory_data, thread->number, address, tasks->line, TASKS_LINE);
    offset = 0;
  }
  if (size > tasks->line_size)
    size = tasks->line_size;
  memcpy(buffer, tasks->line + offset, size);
  return size;
}

size_t tasks_code(struct tasks *tasks, const struct task_thread *thread, uint64_t address, void *buffer, size_t size)
{
  struct task_process *process = thread->process;
  uint8_t *bytes = buffer;
  size_t done, more = 1;

  if (tasks->is_live)
    return code_live(tasks, thread, address, buffer, size);
  done = process->symbols ? symbol_space_code(process->symbols, address, buffer, size) : 0;
  while (tasks->memory && done < size && more) {
    more = page_read(tasks, process, address + done, bytes + done, size - done);
    done += more;
  }
  return done;
}

static uint64_t instruction_target(const struct isa_instruction *decoded, uint64_t address)
{
  ZyanU64 target;

  for (unsigned i = 0; i < decoded->code.operand_count_visible; i++)
    if (decoded->operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && decoded->operands[i].imm.is_relative &&
        ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&decoded->code, &decoded->operands[i], address, &target)))
      return target;
  return 0;
}

/* Code that is in no file goes into the trace when it is first seen. */
static void code_note(struct tasks *tasks, struct task_process *process, uint64_t address)
{
  uint8_t byte;

  if (tasks->is_live && (!process->symbols || !symbol_space_code(process->symbols, address, &byte, 1)))
    page_read(tasks, process, address, &byte, 1);
}

static void instruction_decode(const struct task_process *process, struct task_decoded *decoded)
{
  struct task_instruction *instruction = &decoded->instruction;
  enum isa_mode mode = process->is_32 ? ISA_COMPATIBLE_32 : ISA_64;
  struct isa_instruction parts;
  int length = decoded->size ? isa_decode(mode, false, decoded->bytes, decoded->size, &parts) : 0;

  instruction->kind = -1;
  instruction->length = 0;
  instruction->target = 0;
  if (length <= 0)
    return;
  instruction->length = (uint8_t)length;
  instruction->kind = isa_branch_kind(&parts);
  if (instruction->kind >= 0)
    instruction->target = instruction_target(&parts, instruction->address);
}

/* The cached instruction is valid while its bytes are the same; those of files are, until something else is mapped. */
struct task_instruction tasks_instruction(struct tasks *tasks, const struct task_thread *thread, uint64_t address)
{
  struct task_process *process = thread->process;
  size_t place = (size_t)hash_start(address) & (TASKS_INSTRUCTIONS - 1);
  struct task_decoded now = {.instruction = {.address = address, .kind = -1}}, *kept;

  if (!process->instructions)
    process->instructions = calloc(TASKS_INSTRUCTIONS, sizeof(*process->instructions));
  kept = process->instructions ? &process->instructions[place] : &now;
  if (kept != &now && kept->instruction.address == address && kept->instruction.length && !tasks->is_live)
    return kept->instruction;
  now.size = (uint8_t)tasks_code(tasks, thread, address, now.bytes, sizeof(now.bytes));
  if (kept != &now && kept->instruction.address == address && kept->instruction.length &&
      kept->instruction.length <= now.size && !memcmp(kept->bytes, now.bytes, kept->instruction.length))
    return kept->instruction;
  code_note(tasks, process, address);
  instruction_decode(process, &now);
  *kept = now;
  return now.instruction;
}
