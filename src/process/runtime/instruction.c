/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates a path (translate.c) instruction by instruction: emits the elements that branches (branch.c) are made of,
 * keeps the segments of the application's code that the path covers, and decides which instructions it contains.
 */
#include "lastbranch/branch.h"
#include "process/runtime/translate.h"

/* A path that uses R11 within this many instructions keeps it. Another path ends before the first use. */
enum { R11_EARLY = 16 };

/* ---- elements ---- */

void translation_add_step(struct translation *translation, unsigned kind, unsigned flags, uint64_t to)
{
  translation->steps[translation->step_count++] = (struct lb_step){.from = translation->address,
                                                                   .to = to,
                                                                   .kind = (uint8_t)kind,
                                                                   .flags = (uint8_t)flags,
                                                                   .length = translation->code.length};
}

uint32_t translation_last_number(const struct translation *translation)
{
  return translation->head + translation->step_count;
}

void translation_add_place(struct translation *translation, const uint8_t *code, unsigned spilled)
{
  translation->places[translation->place_count++] =
    (struct place){(uint16_t)(code - translation->entry), translation->code.length, (uint8_t)spilled};
}

void translation_add_stub(struct translation *translation, bool is_open)
{
  translation->stubs[translation->stub_count++] =
    (struct stub){translation->emitter.at - 4, (uint8_t)translation->step_count, is_open};
}

void translation_write_room(struct translation *translation, unsigned before)
{
  static const uint8_t nops[][3] = {{0x90}, {0x66, 0x90}, {0x0F, 0x1F, 0x00}}; /* one instruction: see write_first */
  unsigned place = (unsigned)((uint64_t)translation->emitter.at + before) % 64;

  if (place > 60)
    emit_bytes(&translation->emitter, nops[63 - place], 64 - place);
}

void translation_write_take(struct translation *translation)
{
  if (translation->uses_r11)
    emit_take_r11(&translation->emitter);
}

void translation_write_exit(struct translation *translation)
{
  translation_write_room(translation, 1);
  emit_byte(&translation->emitter, 0xE9);
  emit_u32(&translation->emitter, 0);
  translation_add_stub(translation, false);
}

/* ---- segments ---- */

void translation_end_segment(struct translation *translation)
{
  translation->segments[translation->segment_count - 1].end = translation->address + translation->code.length;
}

void translation_begin_segment(struct translation *translation, uint64_t address)
{
  translation->segments[translation->segment_count++] = (struct range){address, address, 0};
  translation->address = address;
  if (!range_has(translation->range, address))
    translation->range = range_find(&translation->runtime->executable, address);
}

/* Ends the path between two instructions. Nothing of the next one has been written. */
static bool write_cut(struct translation *translation)
{
  translation->code.length = 0;
  translation_add_step(translation, LB_BRANCH_JCC, LB_STEP_NONE, translation->address);
  translation_write_exit(translation);
  return false;
}

/* A unit that is checked has at most COPY_MOST bytes. */
static bool is_copy_full(const struct translation *translation)
{
  return translation->level != PAGE_STEADY && translation->address - translation->start > COPY_MOST - 16;
}

/* A long path ends after its next branch, where straight-line code ends in any case. A very long path ends at once. */
bool translation_next(struct translation *translation)
{
  enum { INSTRUCTIONS_MOST = 256 };
  bool is_long =
    translation->count >= translation->instructions_most || translation->step_count >= translation->steps_most;

  translation_end_segment(translation);
  translation->address += translation->code.length;
  if (translation->level == PAGE_WILD || (is_long && translation->code.flow != CODE_PLAIN) ||
      translation->count >= INSTRUCTIONS_MOST || is_copy_full(translation))
    return write_cut(translation);
  return true;
}

/* ---- instructions ---- */

/* An instruction that cannot run in the cache is an error only when it is reached: it gets a path of its own. */
static bool write_refusal(struct translation *translation, enum copy_verdict verdict)
{
  if (translation->count > 1)
    return write_cut(translation);
  translation_add_place(translation, translation->emitter.at, PLACE_BRANCH);
  translation_add_step(translation, LB_BRANCH_JCC, LB_STEP_NONE, translation->address);
  translation_end_segment(translation);
  translation_write_take(translation);
  emit_exit_number(&translation->emitter, verdict == COPY_GS ? (uint32_t)EXIT_WRITES_GS : EXIT_NO_INSTRUCTION);
  emit_leave(&translation->emitter, STATE_LEAVE_SYSCALL);
  return false;
}

/* Invalid bytes fault in the same way as UD2. */
static bool write_bad_bytes(struct translation *translation)
{
  if (translation->count > 1)
    return write_cut(translation);
  translation->code = (struct code){.length = 1};
  return branch_write_trap(translation, (const uint8_t[]){0x06}); /* PUSH ES, which 64-bit mode does not have */
}

/* A unit is made stale by a change of the first two bytes at its entry. They must belong to one instruction, so that no
 * thread can be between them. */
static void write_first(struct translation *translation)
{
  const struct code *code = &translation->code;

  if (translation->uses_r11)
    emit_give_r11(&translation->emitter);
  else if (code->length == 1 || code->flow == CODE_JMP)
    emit_bytes(&translation->emitter, (const uint8_t[]){0x66, 0x90}, 2);
}

/* Protects the pages that the next instruction may be on, and returns the stricter of their levels: enum page_level. */
static unsigned level_at(struct translation *translation, uint64_t end)
{
  struct runtime *runtime = translation->runtime;
  uint64_t first = translation->address, last = first + 15 < end ? first + 15 : first;

  for (unsigned i = 0; i < 2; i++) {
    uint64_t at = i ? last : first;

    if (page_down(at) != translation->page)
      page_protect(runtime, translation->range, at);
    translation->page = page_down(at);
  }
  unsigned level = page_level(runtime, translation->range, first);
  unsigned level_last = page_level(runtime, translation->range, last);
  return level > level_last ? level : level_last;
}

/* Copies code that another thread may change at the same time. Changes of aligned words are seen whole or not at all,
 * as by the processor. */
static void copy_code(uint8_t *to, uint64_t from, uint64_t size)
{
  uint64_t word = 0;

  for (uint64_t i = 0; i < size; i++) {
    unsigned byte = (from + i) % 8;

    if (i == 0 || byte == 0)
      word = *(const volatile uint64_t *)(from + i - byte);
    to[i] = (uint8_t)(word >> 8 * byte);
  }
}

/* Decodes the next instruction, whose code ends at `end` at the latest. Code that may change is copied first, and from
 * the next page only what is needed. Returns its bytes; NULL: they are invalid. */
static const uint8_t *decode(struct translation *translation, uint64_t end)
{
  uint64_t address = translation->address, most = end - address < 15 ? end - address : 15;
  struct code *code = &translation->code;

  if (translation->level == PAGE_STEADY)
    return code_decode((const uint8_t *)address, most, code) ? (const uint8_t *)address : NULL;
  uint8_t *bytes = translation->copy + (address - translation->start);
  uint64_t in_page = PROCESS_PAGE - address % PROCESS_PAGE, size = in_page < most ? in_page : most;
  copy_code(bytes, address, size);
  if (code_decode(bytes, size, code))
    return bytes;
  copy_code(bytes + size, address + size, most - size);
  return size < most && code_decode(bytes, most, code) ? bytes : NULL;
}

bool translate_instruction(struct translation *translation)
{
  uint64_t address = translation->address;
  uint64_t end = translation->limit < translation->range->end ? translation->limit : translation->range->end;

  if (address >= end || (translation->count && trigger_is_at(translation->runtime, address)))
    return write_cut(translation);
  unsigned level = level_at(translation, end);
  if (level > translation->level && translation->count)
    return write_cut(translation);
  if (level > translation->level)
    translation->level = level;
  translation->count++;
  const struct code *code = &translation->code;
  const uint8_t *bytes = decode(translation, end);
  if (!bytes || (code->flow != CODE_PLAIN && code->prefixes & CODE_LOCK)) /* no branch may have a LOCK prefix */
    return write_bad_bytes(translation);
  if (!translation->uses_r11 && copy_uses_r11(code, bytes)) {
    translation->wants_r11 = translation->count <= R11_EARLY;
    return translation->wants_r11 ? false : write_cut(translation);
  }
  if (translation->count == 1)
    write_first(translation);
  enum copy_verdict verdict = copy_check(code, bytes);
  if (verdict != COPY_FINE)
    return write_refusal(translation, verdict);
  if (code->flow != CODE_PLAIN)
    return branch_write(translation, bytes);
  translation_add_place(translation, translation->emitter.at, 0);
  translation->places[translation->place_count - 1].spilled =
    (uint8_t)copy_plain(&translation->emitter, code, bytes, address);
  return translation_next(translation);
}
