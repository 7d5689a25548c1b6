/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates the branches of a path (translate.c): decides where the path continues, which is where the branch mostly
 * goes, or that it ends here.
 */
#include "lastbranch/branch.h"
#include "process/runtime/translate.h"

enum { TURNS_MOST = 8 }; /* turns of a loop that are unrolled into one path */

/* ---- where a path can continue ---- */

static bool is_inside(const struct translation *translation, uint64_t address)
{
  for (unsigned i = 0; i < translation->segment_count; i++)
    if (translation->segments[i].start == address)
      return true;
  return false;
}

/* Whether code of another file can be in the same unit: RIP-relative operands must stay in reach. */
static bool is_like(const struct translation *translation, uint64_t address)
{
  const struct range *range = range_find(&translation->runtime->executable, address);
  int64_t distance = (int64_t)(address - (uint64_t)translation->emitter.at);

  return range && range->flags == RANGE_FILE && translation->range->flags == RANGE_FILE && distance < 1ll << 30 &&
         distance > -(1ll << 30);
}

static bool can_follow(const struct translation *translation, uint64_t address)
{
  return translation->level == PAGE_STEADY && translation->segment_count <= FOLLOWED_MOST &&
         translation->step_count < translation->steps_most && translation->count < translation->instructions_most &&
         !is_inside(translation, address) && (range_has(translation->range, address) || is_like(translation, address));
}

/* Whether a branch back to the head can be followed once more (loop unrolling). */
static bool can_turn(const struct translation *translation, uint64_t address)
{
  unsigned parts = translation->turns + 1;

  return address == translation->start && translation->level == PAGE_STEADY && translation->turns < TURNS_MOST &&
         translation->segment_count <= FOLLOWED_MOST &&
         translation->step_count + translation->step_count / parts < translation->steps_most &&
         translation->count + translation->count / parts < translation->instructions_most;
}

/* ---- conditional branches; these functions and all that follow return whether the path continues ---- */

static uint64_t target_of(const struct code *code, const uint8_t *bytes, uint64_t end)
{
  if (code->imm_size == 1)
    return end + ((bytes[code->imm_offset] ^ 0x80ull) - 0x80); /* sign-extended */
  int32_t distance;
  __builtin_memcpy(&distance, bytes + code->imm_offset, 4);
  return end + (uint64_t)distance;
}

/* Follows the taken side, which is the usual one: the condition is inverted. */
static bool write_taken(struct translation *translation, uint64_t target)
{
  struct emitter *emitter = &translation->emitter;

  translation_write_room(translation, 2);
  translation_add_place(translation, emitter->at, PLACE_BRANCH);
  translation_add_step(translation, LB_BRANCH_JCC, LB_STEP_FOLLOW | LB_STEP_NONE, target);
  emit_byte(emitter, 0x0F);
  emit_byte(emitter, 0x80 | ((translation->code.opcode & 15) ^ 1));
  emit_u32(emitter, 0);
  translation_add_stub(translation, false);
  translation_end_segment(translation);
  translation_begin_segment(translation, target);
  return true;
}

static bool write_jcc(struct translation *translation, uint64_t target)
{
  struct emitter *emitter = &translation->emitter;
  bool is_turn = can_turn(translation, target);

  if (translation->code.flow == CODE_JCC && (is_turn || can_follow(translation, target)) &&
      profile_is_taken(translation->runtime, translation->address)) {
    translation->turns += is_turn;
    return write_taken(translation, target);
  }
  translation_write_room(translation, translation->code.flow == CODE_JCC     ? 2
                                      : translation->code.prefixes & CODE_67 ? 6
                                                                             : 5);
  translation_add_place(translation, emitter->at, PLACE_BRANCH);
  translation_add_step(translation, LB_BRANCH_JCC, 0, target);
  if (translation->code.flow == CODE_JCC) {
    emit_byte(emitter, 0x0F);
    emit_byte(emitter, 0x80 | (translation->code.opcode & 15));
  } else { /* has an 8-bit displacement only: emit a jump to a jump, and a jump over it */
    if (translation->code.prefixes & CODE_67)
      emit_byte(emitter, 0x67);
    emit_byte(emitter, translation->code.opcode);
    emit_bytes(emitter, (const uint8_t[]){0x02, 0xEB, 0x05, 0xE9}, 4);
  }
  emit_u32(emitter, 0);
  translation_add_stub(translation, false);
  return translation_next(translation);
}

/* ---- jumps and calls ---- */

/* Ends an instruction that refers to an 8-byte number relative to RIP. Its last four bytes are filled in later. */
static void add_number(struct translation *translation, uint64_t value)
{
  emit_u32(&translation->emitter, 0);
  translation->numbers[translation->number_count++] = (struct number){translation->emitter.at - 4, value};
}

/* PUSH of a number that is stored after the stubs. It is one store of 8 bytes, so that the load of the return need not
 * wait for two. */
static void write_push(struct translation *translation, uint64_t value)
{
  struct emitter *emitter = &translation->emitter;

  if (value <= INT32_MAX) {
    emit_byte(emitter, 0x68);
    emit_u32(emitter, (uint32_t)value);
    return;
  }
  emit_byte(emitter, 0xFF);
  emit_byte(emitter, 0x35);
  add_number(translation, value);
}

static bool write_jump(struct translation *translation, uint64_t target, bool is_call)
{
  uint64_t end = translation->address + translation->code.length;
  unsigned kind = is_call ? LB_BRANCH_NEAR_REL_CALL : LB_BRANCH_NEAR_REL_JMP;
  bool is_followed = can_follow(translation, target) && (!is_call || translation->depth < DEPTH_MOST);

  translation_add_place(translation, translation->emitter.at, PLACE_BRANCH);
  if (is_call)
    write_push(translation, end);
  else if (is_followed)
    emit_byte(&translation->emitter, 0x90); /* an instruction to single-step over */
  translation_add_step(translation, kind, is_followed ? LB_STEP_FOLLOW : 0, target);
  translation_end_segment(translation);
  if (!is_followed) {
    translation_write_exit(translation);
    return false;
  }
  if (is_call)
    translation->returns[translation->depth++] = end;
  translation_begin_segment(translation, target);
  return true;
}

/* ---- indirect branches and returns ---- */

/* Continues where an indirect branch mostly goes. RCX holds the target, and is spilled. */
static void write_expected(struct translation *translation, uint64_t expected)
{
  struct emitter *emitter = &translation->emitter;

  emit_check(emitter, translation->runtime->options, expected);
  translation_add_stub(translation, true);
  emit_reload(emitter, GPR_RCX, STATE_SPILL_RCX);
  translation_end_segment(translation);
  translation_begin_segment(translation, expected);
}

static bool write_known_indirect(struct translation *translation, const uint8_t *bytes, uint64_t expected)
{
  struct emitter *emitter = &translation->emitter;
  uint64_t end = translation->address + translation->code.length;
  bool is_call = translation->code.flow == CODE_CALL_IND;

  translation_add_place(translation, emitter->at, PLACE_BRANCH | PLACE_RCX);
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  copy_target(emitter, &translation->code, bytes, translation->address);
  if (is_call)
    write_push(translation, end);
  translation_add_step(translation, is_call ? LB_BRANCH_NEAR_IND_CALL : LB_BRANCH_NEAR_IND_JMP,
                       LB_STEP_FOLLOW | LB_STEP_OPEN, expected);
  write_expected(translation, expected);
  if (is_call)
    translation->returns[translation->depth++] = end;
  return true;
}

static bool write_indirect(struct translation *translation, const uint8_t *bytes)
{
  struct emitter *emitter = &translation->emitter;
  bool is_call = translation->code.flow == CODE_CALL_IND;
  uint64_t expected = profile_target(translation->runtime, translation->address);

  if (expected && can_follow(translation, expected) && translation->depth < DEPTH_MOST)
    return write_known_indirect(translation, bytes, expected);
  translation_add_place(translation, emitter->at, PLACE_BRANCH | PLACE_RCX | PLACE_RDX);
  emit_spill(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  copy_target(emitter, &translation->code, bytes, translation->address);
  if (is_call)
    write_push(translation, translation->address + translation->code.length);
  translation_add_step(translation, is_call ? LB_BRANCH_NEAR_IND_CALL : LB_BRANCH_NEAR_IND_JMP, LB_STEP_SILENT, 0);
  translation_end_segment(translation);
  translation_write_take(translation);
  emit_lookup(emitter, translation->runtime->counts.is_wide);
  return false;
}

static unsigned taken_by(const struct translation *translation, const uint8_t *bytes)
{
  uint16_t size = 0;

  if (translation->code.imm_size)
    __builtin_memcpy(&size, bytes + translation->code.imm_offset, 2);
  return size;
}

static void write_pop(struct translation *translation, unsigned taken)
{
  struct emitter *emitter = &translation->emitter;

  translation_add_place(translation, emitter->at, PLACE_BRANCH | PLACE_RCX);
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  emit_byte(emitter, 0x59); /* pop %rcx */
  if (taken) {
    emit_u32(emitter, 0x24A48D48); /* lea taken(%rsp), %rsp */
    emit_u32(emitter, taken);
  }
}

/* A return whose call is in the path, or that mostly goes to one address. */
static bool write_known_return(struct translation *translation, uint64_t expected, unsigned taken)
{
  write_pop(translation, taken);
  translation_add_step(translation, LB_BRANCH_NEAR_RET, LB_STEP_FOLLOW | LB_STEP_OPEN, expected);
  write_expected(translation, expected);
  return true;
}

static bool write_return(struct translation *translation, const uint8_t *bytes)
{
  unsigned taken = taken_by(translation, bytes);
  uint64_t expected = translation->depth ? translation->returns[translation->depth - 1]
                                         : profile_target(translation->runtime, translation->address);

  if (expected && can_follow(translation, expected)) {
    translation->depth -= translation->depth != 0;
    return write_known_return(translation, expected, taken);
  }
  write_pop(translation, taken);
  emit_spill(&translation->emitter, GPR_RDX, STATE_SPILL_RDX);
  translation_add_step(translation, LB_BRANCH_NEAR_RET, LB_STEP_SILENT, 0);
  translation_end_segment(translation);
  translation_write_take(translation);
  emit_lookup(&translation->emitter, translation->runtime->counts.is_wide);
  return false;
}

/* ---- branches that the dispatcher executes, and traps ---- */

static bool write_syscall(struct translation *translation)
{
  struct emitter *emitter = &translation->emitter;

  translation_add_place(translation, emitter->at, PLACE_BRANCH);
  translation_add_step(translation, LB_BRANCH_SYSCALL, 0, translation->address + translation->code.length);
  translation_end_segment(translation);
  translation_write_take(translation);
  emit_exit_number(emitter, translation_last_number(translation));
  emit_leave(emitter, STATE_LEAVE_SYSCALL);
  return false;
}

/* The dispatcher executes the branch. RCX holds the address of its far pointer, if it has one. */
static bool write_far(struct translation *translation, const uint8_t *bytes)
{
  static const uint8_t kinds[] = {LB_BRANCH_FAR_RET, LB_BRANCH_FAR_RET, LB_BRANCH_INT,
                                  LB_BRANCH_INT,     LB_BRANCH_INT,     LB_BRANCH_IRET};
  struct emitter *emitter = &translation->emitter;
  const struct code *code = &translation->code;
  bool is_pointer = code->opcode == 0xFF;
  unsigned kind = is_pointer ? (code->modrm >> 3 & 7) == 3 ? LB_BRANCH_FAR_CALL : LB_BRANCH_FAR_JMP
                             : kinds[(code->opcode - 0xCA) % sizeof(kinds)];

  translation_add_place(translation, emitter->at, PLACE_BRANCH);
  if (is_pointer) {
    emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
    copy_far(emitter, code, bytes, translation->address);
  }
  translation_add_step(translation, kind, LB_STEP_OPEN, 0);
  translation_end_segment(translation);
  translation_write_take(translation);
  emit_exit_number(emitter, translation_last_number(translation));
  emit_leave(emitter, STATE_LEAVE_SYSCALL);
  return false;
}

/* INT n, INT3, UD2 and similar instructions are executed as they are. If the application survives, it continues after
 * them. */
bool branch_write_trap(struct translation *translation, const uint8_t *bytes)
{
  struct emitter *emitter = &translation->emitter;
  bool is_int = translation->code.imm_size == 1 && bytes[translation->code.length - 2] == 0xCD;

  translation_add_place(translation, emitter->at, PLACE_BRANCH);
  emit_bytes(emitter, bytes, translation->code.length);
  translation_add_step(translation, LB_BRANCH_INT, is_int ? 0 : LB_STEP_NONE,
                       translation->address + translation->code.length);
  translation_end_segment(translation);
  translation_write_exit(translation);
  return false;
}

bool branch_write(struct translation *translation, const uint8_t *bytes)
{
  uint64_t end = translation->address + translation->code.length;

  switch (translation->code.flow) {
  case CODE_JCC:
  case CODE_LOOP:
    return write_jcc(translation, target_of(&translation->code, bytes, end));
  case CODE_CALL:
  case CODE_JMP:
    return write_jump(translation, target_of(&translation->code, bytes, end), translation->code.flow == CODE_CALL);
  case CODE_JMP_IND:
  case CODE_CALL_IND:
    return write_indirect(translation, bytes);
  case CODE_RET:
    return write_return(translation, bytes);
  case CODE_SYSCALL:
    return write_syscall(translation);
  case CODE_FAR:
    return write_far(translation, bytes);
  default:
    return branch_write_trap(translation, bytes);
  }
}
