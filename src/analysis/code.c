/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions between branches, decoded on first use. Counts are cached in a hash table of fixed size, because a
 * program runs the same pieces again and again. Pieces that overlap share what was decoded: a grain covers 64 bytes of
 * code, has a bit for each instruction in them, and is found by the address of the first instruction.
 */
#include "analysis/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "isa/isa.h"

#define ANSWERS (1u << 18) /* slots of the hash table */
#define WINDOW 256u        /* bytes that are fetched at once */
#define GRAINS (1u << 16)  /* slots of the hash table of grains */
#define GRAIN 64u          /* bytes: one for each bit of a mask */
#define GRAINS_FREE 2u     /* grains of a piece without charge; further ones are charged */
#define LEAVE_FIRST (INT64_C(1) << 25)
#define LEAVE_PIECE 32u /* work that each piece adds */
#define GRAIN_BAD UINT8_MAX

/* The number of instructions of a piece. */
struct answer {
  uint64_t first, last;
  uint32_t space;
  uint32_t generation; /* of the names when it was found; 0: the slot is empty */
  uint32_t count;
};

/* The instructions that begin in 64 bytes, for execution that enters at a certain byte. */
struct grain {
  uint64_t place; /* address / GRAIN */
  uint32_t file, space;
  uint32_t generation; /* 0: the slot is empty */
  uint8_t entry;       /* first byte of the first instruction */
  uint8_t exit;        /* byte of the next grain where the last instruction ends; GRAIN_BAD: the last one is unknown */
  uint64_t starts;     /* bit for each first byte of an instruction */
  uint64_t jccs;       /* and of a conditional branch */
};

struct analysis_code {
  struct analysis_names *names;
  int64_t leave;        /* work that is allowed beyond the usual */
  unsigned piece_leave; /* work that each piece adds */
  unsigned grains_free; /* grains of a piece without charge; further ones are charged */
  bool is_exhausted;
  /* the bytes fetched last */
  struct analysis_location window;
  size_t window_size;
  uint32_t window_generation;
  uint8_t bytes[WINDOW];
  struct answer answers[ANSWERS];
  struct grain grains[GRAINS];
};

int analysis_code_new(struct analysis_names *names, struct analysis_code **ret_code)
{
  struct analysis_code *code = calloc(1, sizeof(*code));

  if (!code)
    return -ENOMEM;
  code->names = names;
  code->leave = LEAVE_FIRST;
  code->piece_leave = LEAVE_PIECE;
  code->grains_free = GRAINS_FREE;
  *ret_code = code;
  return 0;
}

void analysis_code_free(struct analysis_code *code)
{
  free(code);
}

/* ---- bytes ---- */

/* Gets the bytes at a location, from the window if they are in it. Returns their number, which is less than the longest
 * instruction only if there are no more. */
static size_t bytes_at(struct analysis_code *code, const struct analysis_location *location, const uint8_t **ret_bytes)
{
  uint64_t offset = location->address - code->window.address;
  bool is_same = code->window_generation == analysis_names_generation(code->names) &&
                 code->window.file == location->file && code->window.space == location->space;

  if (!is_same || offset >= code->window_size || code->window_size - offset < ISA_LENGTH_MAX) {
    code->window = *location;
    code->window_generation = analysis_names_generation(code->names);
    code->window_size = analysis_names_code(code->names, location, code->bytes, WINDOW);
    offset = 0;
  }
  *ret_bytes = code->bytes + offset;
  return code->window_size - offset;
}

static int decode_at(struct analysis_code *code, const struct analysis_location *location,
                     struct isa_instruction *instruction)
{
  const uint8_t *bytes;
  size_t size = bytes_at(code, location, &bytes);

  return size ? isa_decode(ISA_64, false, bytes, size, instruction) : LB_E_NO_INSTRUCTION;
}

/* ---- instructions ---- */

bool analysis_code_instruction(struct analysis_code *code, const struct analysis_location *location,
                               struct analysis_instruction *ret_instruction)
{
  struct isa_instruction instruction;
  int length = decode_at(code, location, &instruction);

  ZyanU64 target = 0;

  if (length < 0)
    return false;
  *ret_instruction =
    (struct analysis_instruction){.length = (uint8_t)length, .kind = (int8_t)isa_branch_kind(&instruction)};
  for (unsigned i = 0; i < instruction.code.operand_count_visible && ret_instruction->kind >= 0; i++)
    if (instruction.operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && instruction.operands[i].imm.is_relative &&
        ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&instruction.code, &instruction.operands[i], location->address, &target)))
      ret_instruction->target = target;
  return true;
}

unsigned analysis_code_text(struct analysis_code *code, const struct analysis_location *location, char *text,
                            size_t size)
{
  struct isa_instruction instruction;

  if (decode_at(code, location, &instruction) < 0 || isa_format(&instruction, location->address, text, size) < 0)
    return 0;
  return (unsigned)strlen(text);
}

/* ---- grains ---- */

bool analysis_code_charge(struct analysis_code *code, unsigned work)
{
  code->leave -= work;
  code->is_exhausted |= code->leave < 0;
  return code->leave >= 0;
}

void analysis_code_allow(struct analysis_code *code, uint32_t work)
{
  code->leave = work;
  code->piece_leave = 0;
  code->grains_free = 0;
}

bool analysis_code_is_exhausted(const struct analysis_code *code)
{
  return code->is_exhausted;
}

static void grain_decode(struct analysis_code *code, struct analysis_location location, struct grain *grain)
{
  unsigned at = grain->entry;

  while (at < GRAIN) {
    struct isa_instruction instruction;
    int length = decode_at(code, &location, &instruction);

    grain->starts |= UINT64_C(1) << at;
    if (length <= 0) {
      grain->exit = GRAIN_BAD;
      return;
    }
    if (isa_branch_kind(&instruction) == LB_BRANCH_JCC)
      grain->jccs |= UINT64_C(1) << at;
    at += (unsigned)length;
    location.address += (unsigned)length;
  }
  grain->exit = (uint8_t)(at - GRAIN);
}

/* The grain for an instruction at a location. `seen` is the number of grains of the piece before it. Returns NULL if
 * the allowed work is used up. */
static const struct grain *grain_get(struct analysis_code *code, const struct analysis_location *location,
                                     unsigned seen)
{
  uint64_t place = location->address / GRAIN;
  uint8_t entry = location->address % GRAIN;
  uint64_t hash = (place ^ (uint64_t)location->file << 40 ^ (uint64_t)location->space << 20 ^ (uint64_t)entry << 58) *
                  UINT64_C(0x9E3779B97F4A7C15);
  struct grain *grain = &code->grains[hash >> 48];
  uint32_t generation = analysis_names_generation(code->names);
  bool is_there = grain->generation == generation && grain->place == place && grain->entry == entry &&
                  grain->file == location->file && grain->space == location->space;

  if (seen >= code->grains_free &&
      !analysis_code_charge(code, is_there ? (unsigned)__builtin_popcountll(grain->starts) : GRAIN))
    return NULL;
  if (!is_there) {
    *grain = (struct grain){
      .place = place, .file = location->file, .space = location->space, .generation = generation, .entry = entry};
    grain_decode(code, *location, grain);
  }
  return grain;
}

/* The bits of a grain below an address, which may lie after the grain. */
static uint64_t mask_below(uint64_t base, uint64_t address)
{
  return address - base < GRAIN ? (UINT64_C(1) << (address - base)) - 1 : UINT64_MAX;
}

static unsigned highest(uint64_t mask)
{
  return 63u - (unsigned)__builtin_clzll(mask);
}

enum analysis_stop analysis_code_follow(struct analysis_code *code, const struct analysis_location *location,
                                        uint64_t end, uint64_t *ret_at)
{
  struct analysis_location at = *location;
  uint64_t last = location->address;

  for (unsigned seen = 0; at.address <= end; seen++) {
    const struct grain *grain = grain_get(code, &at, seen);
    uint64_t base = at.address & ~(uint64_t)(GRAIN - 1), below;

    if (!grain)
      return ANALYSIS_STOP_UNKNOWN;
    below = mask_below(base, end);
    if (grain->jccs & below) {
      *ret_at = base + (unsigned)__builtin_ctzll(grain->jccs & below);
      return ANALYSIS_STOP_JCC;
    }
    if (grain->starts & below)
      last = base + highest(grain->starts & below);
    if (end - base < GRAIN) {
      if (!(grain->starts >> (end - base) & 1))
        return ANALYSIS_STOP_UNKNOWN;
      *ret_at = last;
      return ANALYSIS_STOP_END;
    }
    if (grain->exit == GRAIN_BAD || base > UINT64_MAX - 2 * GRAIN)
      return ANALYSIS_STOP_UNKNOWN;
    at.address = base + GRAIN + grain->exit;
  }
  return ANALYSIS_STOP_UNKNOWN;
}

/* ---- counts ---- */

static unsigned pieces_count(struct analysis_code *code, uint32_t space, uint64_t first, uint64_t last)
{
  struct analysis_location at = analysis_names_locate(code->names, space, first);
  uint64_t end = at.address + (last - first);
  unsigned count = 0;

  code->leave += code->piece_leave;
  for (unsigned seen = 0; at.address <= end && count <= ANALYSIS_INSTRUCTIONS_MAX; seen++) {
    const struct grain *grain = grain_get(code, &at, seen);
    uint64_t base = at.address & ~(uint64_t)(GRAIN - 1);

    if (!grain)
      return 0;
    count += (unsigned)__builtin_popcountll(grain->starts & mask_below(base, end));
    if (end - base < GRAIN)
      return grain->starts >> (end - base) & 1 && count < ANALYSIS_INSTRUCTIONS_MAX ? count + 1 : 0;
    if (grain->exit == GRAIN_BAD || base > UINT64_MAX - 2 * GRAIN)
      return 0;
    at.address = base + GRAIN + grain->exit;
  }
  return 0;
}

unsigned analysis_code_count(struct analysis_code *code, uint32_t space, uint64_t first, uint64_t last)
{
  uint64_t hash = (first * UINT64_C(0x9E3779B97F4A7C15)) ^ (last * UINT64_C(0xC2B2AE3D27D4EB4F)) ^ space;
  struct answer *answer = &code->answers[(hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15) >> 46];
  uint32_t generation = analysis_names_generation(code->names);

  if (answer->first == first && answer->last == last && answer->space == space && answer->generation == generation)
    return answer->count;
  *answer = (struct answer){first, last, space, generation, 0};
  if (first <= last && last - first < UINT64_C(16) * ANALYSIS_INSTRUCTIONS_MAX)
    answer->count = pieces_count(code, space, first, last);
  return answer->count;
}
