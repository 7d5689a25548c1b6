/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs say about the code that they make: perf maps, jitdump files, and ELF objects of GDB's interface. The
 * first byte says which; the rest is the file or object, which arrives in pieces. Every name that comes out must be fit
 * for the trace, and no reader may hang or read past its input.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process/jit.h"
#include "trace/trace.h"

#define NAMES_MAX 4096u
#define ENTRY_BASE UINT64_C(0x1000) /* address of the input as memory */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* so that every byte that comes out is read */

struct input {
  const uint8_t *bytes;
  size_t size; /* that has arrived */
  unsigned names;
};

static int name_check(void *data, const struct jit_name *name)
{
  struct input *input = data;

  if (!name->size || name->size > UINT64_MAX - name->start || name->length > TRACE_NAME_MAX)
    abort();
  for (size_t i = 0; i < name->length; i++)
    if ((unsigned char)name->text[i] < ' ' || name->text[i] == 0x7F)
      abort();
  for (uint64_t i = 0; name->code && i < name->size; i++)
    sink += name->code[i];
  return ++input->names < NAMES_MAX ? 0 : -1;
}

static int64_t input_read(void *data, uint64_t offset, void *bytes, size_t size)
{
  const struct input *input = data;
  size_t left = offset < input->size ? input->size - (size_t)offset : 0;

  size = size < left ? size : left;
  if (size)
    memcpy(bytes, input->bytes + offset, size);
  return (int64_t)size;
}

static int64_t memory_read(void *data, uint64_t address, void *bytes, size_t size)
{
  return address < ENTRY_BASE ? 0 : input_read(data, address - ENTRY_BASE, bytes, size);
}

static void map_read(struct input *input, size_t size)
{
  struct jit_map map = {0};

  for (size_t at = 0, part = 1; at < size; at += part, part = part * 2 < size - at ? part * 2 : 1)
    if (jit_map_take(&map, (const char *)input->bytes + at, part < size - at ? part : size - at, name_check, input) < 0)
      return;
}

static void dump_read(struct input *input, size_t size)
{
  struct jit_dump dump = {0};
  int r = 0;

  for (unsigned i = 1; i <= 4 && r >= 0; i++) {
    input->size = size * i / 4;
    while ((r = jit_dump_take(&dump, 4096, input_read, input, name_check, input)) > 0)
      ;
  }
  jit_dump_done(&dump);
}

static void memory_take(struct input *input, size_t size)
{
  struct jit_gdb gdb = {.descriptor = ENTRY_BASE};

  for (unsigned i = 1; i <= 2; i++) {
    input->size = size * i / 2;
    if (jit_gdb_take(&gdb, memory_read, input, name_check, input) < 0)
      break;
  }
  jit_gdb_done(&gdb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct input input = {0};

  if (!size)
    return 0;
  input.bytes = data + 1;
  input.size = size - 1;
  switch (*data) {
  case 'm':
    map_read(&input, size - 1);
    break;
  case 'd':
    dump_read(&input, size - 1);
    break;
  case 'g':
    memory_take(&input, size - 1);
    break;
  case 'e':
    (void)jit_elf_take(input.bytes, input.size, name_check, &input);
    break;
  default:
    break;
  }
  return 0;
}
