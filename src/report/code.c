/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions between branches, decoded when they are first asked for. Counts are kept in a hash of fixed size: a
 * program runs the same pieces again and again.
 */
#include "report/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"
#include "report/report.h"

#define ANSWERS (1u << 18) /* places of the hash */
#define WINDOW 256u        /* bytes that are fetched at once */

/* How many instructions a piece has. */
struct answer {
  uint64_t first, last;
  uint32_t space;
  uint32_t generation; /* of the names when it was found; 0: the place is empty */
  uint32_t count;
};

struct report_code {
  struct report_names *names;
  /* bytes that were fetched last */
  struct report_location window;
  size_t window_size;
  uint32_t window_generation;
  uint8_t bytes[WINDOW];
  struct answer answers[ANSWERS];
};

int report_code_new(struct report_names *names, struct report_code **ret_code)
{
  struct report_code *code = calloc(1, sizeof(*code));

  if (!code)
    return -ENOMEM;
  code->names = names;
  *ret_code = code;
  return 0;
}

void report_code_free(struct report_code *code)
{
  free(code);
}

/* ---- bytes ---- */

/* The bytes at a location, from the window if they are there. Returns how many; fewer than an instruction may have only
 * if there are no more. */
static size_t bytes_at(struct report_code *code, const struct report_location *location, const uint8_t **ret_bytes)
{
  uint64_t offset = location->address - code->window.address;
  bool is_same = code->window_generation == report_names_generation(code->names) &&
                 code->window.file == location->file && code->window.space == location->space;

  if (!is_same || offset >= code->window_size || code->window_size - offset < ISA_LENGTH_MAX) {
    code->window = *location;
    code->window_generation = report_names_generation(code->names);
    code->window_size = report_names_code(code->names, location, code->bytes, WINDOW);
    offset = 0;
  }
  *ret_bytes = code->bytes + offset;
  return code->window_size - offset;
}

static int decode_at(struct report_code *code, const struct report_location *location,
                     struct isa_instruction *instruction)
{
  const uint8_t *bytes;
  size_t size = bytes_at(code, location, &bytes);

  return size ? isa_decode(ISA_64, false, bytes, size, instruction) : LB_E_NO_INSTRUCTION;
}

/* ---- instructions ---- */

bool report_code_instruction(struct report_code *code, const struct report_location *location,
                             struct report_instruction *ret_instruction)
{
  struct isa_instruction instruction;
  int length = decode_at(code, location, &instruction);
  ZyanU64 target = 0;

  if (length < 0)
    return false;
  *ret_instruction =
    (struct report_instruction){.length = (uint8_t)length, .kind = (int8_t)isa_branch_kind(&instruction)};
  for (unsigned i = 0; i < instruction.code.operand_count_visible && ret_instruction->kind >= 0; i++)
    if (instruction.operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && instruction.operands[i].imm.is_relative &&
        ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&instruction.code, &instruction.operands[i], location->address, &target)))
      ret_instruction->target = target;
  return true;
}

unsigned report_code_text(struct report_code *code, const struct report_location *location, char *text, size_t size)
{
  struct isa_instruction instruction;

  if (decode_at(code, location, &instruction) < 0 || isa_format(&instruction, location->address, text, size) < 0)
    return 0;
  return (unsigned)strlen(text);
}

/* ---- how many ---- */

static unsigned pieces_count(struct report_code *code, uint32_t space, uint64_t first, uint64_t last)
{
  struct report_location location = report_names_locate(code->names, space, first);
  uint64_t end = location.address + (last - first);
  struct isa_instruction instruction;

  for (unsigned count = 1; count <= REPORT_INSTRUCTIONS_MAX; count++) {
    int length;

    if (location.address == end)
      return count;
    length = decode_at(code, &location, &instruction);
    if (length < 0 || (uint64_t)length > end - location.address)
      return 0;
    location.address += (unsigned)length;
  }
  return 0;
}

unsigned report_code_count(struct report_code *code, uint32_t space, uint64_t first, uint64_t last)
{
  uint64_t hash = (first * UINT64_C(0x9E3779B97F4A7C15)) ^ (last * UINT64_C(0xC2B2AE3D27D4EB4F)) ^ space;
  struct answer *answer = &code->answers[(hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15) >> 46];
  uint32_t generation = report_names_generation(code->names);

  if (answer->first == first && answer->last == last && answer->space == space && answer->generation == generation)
    return answer->count;
  *answer = (struct answer){first, last, space, generation, 0};
  if (first <= last && last - first < UINT64_C(16) * REPORT_INSTRUCTIONS_MAX)
    answer->count = pieces_count(code, space, first, last);
  return answer->count;
}
