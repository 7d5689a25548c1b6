/* SPDX-License-Identifier: Apache-2.0
 *
 * One path, from the application's bytes to the cache's. It goes through conditional branches as if they were not
 * taken, through direct jumps and calls to where they lead, and through returns of calls that are in it; it ends with
 * an indirect branch, a system call, or when it is long enough. In the cache:
 *
 *   edge:     of the exit for which the unit is made: logs the step
 *   entry:    the instructions; where the path can be left, a jump
 * and elsewhere, where it does not thin out what runs:
 *   stubs:    of exits that were never taken: leave_direct, with the number of the step. Once taken, they go to an edge
 *   numbers:  return addresses, for PUSH
 */
#include <linux/mman.h>

#include "lastbranch/branch.h"
#include "process/runtime.h"

enum {
  INSTRUCTIONS_MOST = 160,
  INSTRUCTIONS_FIRST = 80, /* while it is not known what is run often */
  STEPS_MOST = 40,
  STEPS_FIRST = 20,
  NUMBERS_MOST = 2 * STEPS_MOST,
  DEPTH_MOST = 8, /* calls in a path that have not returned */
  FOLLOWED_MOST = 16,
  TURNS_MOST = 8, /* of a loop in a path */
  R11_EARLY = 16, /* a path that uses R11 within so many instructions has it, another ends before */
};

/* A place that goes to a stub, and a place that names a number in the cold part. */
struct stub {
  uint8_t *site; /* rel32 */
  uint8_t step;
  bool is_open; /* an indirect branch that went elsewhere than expected */
};

struct number {
  uint8_t *site;
  uint64_t value;
};

/* A path on its way. */
struct translation {
  struct thread *thread;
  struct runtime *runtime;
  struct emitter emitter;
  uint32_t edge_step; /* the exit that leads here, 0: none */
  uint8_t *edge, *entry;
  unsigned instructions_most, steps_most;
  unsigned turns;     /* of the loop so far */
  unsigned self_step; /* the path is a loop: its exit that leads back to its head, from 1 on; its edge is the one here */
  const struct range *range;
  uint64_t start, address; /* of the path, of the next instruction */
  uint64_t limit;          /* code that cannot be read begins here */
  unsigned level;          /* enum page_level */
  bool uses_r11, wants_r11; /* the unit has it; it turned out that it should */
  struct code code;        /* of the instruction */
  uint32_t head;
  unsigned count; /* instructions */
  unsigned step_count, stub_count, number_count, depth, segment_count;
  struct path_step steps[STEPS_MOST + 2];
  struct stub stubs[STEPS_MOST + 2];
  struct number numbers[NUMBERS_MOST];
  uint64_t returns[DEPTH_MOST];
  struct range segments[FOLLOWED_MOST + 1]; /* pieces of the application's code */
  struct place *places;
  unsigned place_count;
};

/* ---- parts ---- */

static struct path_step *add_step(struct translation *translation, unsigned kind, unsigned flags, uint64_t to)
{
  struct path_step *step = &translation->steps[translation->step_count++];
  *step = (struct path_step){.from = translation->address,
                             .to = to,
                             .kind = (uint8_t)kind,
                             .flags = (uint8_t)flags,
                             .length = translation->code.length};
  return step;
}

/* The number that the last step will have. */
static uint32_t last_number(const struct translation *translation)
{
  return translation->head + translation->step_count;
}

static void add_place(struct translation *translation, const uint8_t *code, unsigned spilled)
{
  translation->places[translation->place_count++] = (struct place){
    (uint16_t)(code - translation->entry), translation->code.length, (uint8_t)spilled};
}

/* An instruction that names a number of 8 bytes relative to RIP: its last four bytes so far. */
static void add_number(struct translation *translation, uint64_t value)
{
  emit_u32(&translation->emitter, 0);
  translation->numbers[translation->number_count++] = (struct number){translation->emitter.at - 4, value};
}

/* The rel32 that the emitter has just written. */
static void add_stub(struct translation *translation, bool is_open)
{
  translation->stubs[translation->stub_count++] = (struct stub){
    translation->emitter.at - 4, (uint8_t)translation->step_count, is_open};
}

/* Room for an instruction whose last four bytes are patched while others run it: they lie in one line of the processor's
 * cache. */
static void write_room(struct translation *translation, unsigned before)
{
  while (((uint64_t)translation->emitter.at + before) % 64 > 60)
    emit_byte(&translation->emitter, 0x90);
}

/* Where the unit is left R11 is the log's pointer again. */
static void write_take(struct translation *translation)
{
  if (translation->uses_r11)
    emit_take_r11(&translation->emitter);
}

/* Leaves by the last step. */
static void write_exit(struct translation *translation)
{
  write_room(translation, 1);
  emit_byte(&translation->emitter, 0xE9);
  emit_u32(&translation->emitter, 0);
  add_stub(translation, false);
}

/* ---- segments ---- */

static bool is_inside(const struct translation *translation, uint64_t address)
{
  for (unsigned i = 0; i < translation->segment_count; i++)
    if (translation->segments[i].start == address)
      return true;
  return false;
}

static bool is_in_range(const struct range *range, uint64_t address)
{
  return address >= range->start && address < range->end;
}

/* Another file's code can be in the same unit if what names memory relative to RIP can stay as it is. */
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
         !is_inside(translation, address) &&
         (is_in_range(translation->range, address) || is_like(translation, address));
}

/* Back to the head: once more, if there is room for it. */
static bool can_turn(const struct translation *translation, uint64_t address)
{
  unsigned parts = translation->turns + 1;
  return address == translation->start && translation->level == PAGE_STEADY && translation->turns < TURNS_MOST &&
         translation->segment_count <= FOLLOWED_MOST &&
         translation->step_count + translation->step_count / parts < translation->steps_most &&
         translation->count + translation->count / parts < translation->instructions_most;
}

static void segment_end(struct translation *translation)
{
  translation->segments[translation->segment_count - 1].end = translation->address + translation->code.length;
}

static void segment_begin(struct translation *translation, uint64_t address)
{
  translation->segments[translation->segment_count++] = (struct range){address, address, 0};
  translation->address = address;
  if (!is_in_range(translation->range, address))
    translation->range = range_find(&translation->runtime->executable, address);
}

/* ---- branches: return whether the path goes on ---- */

static uint64_t target_of(const struct code *code, const uint8_t *bytes, uint64_t end)
{
  int64_t distance = (int8_t)bytes[code->imm_offset];
  if (code->imm_size != 1) {
    int32_t wide;
    __builtin_memcpy(&wide, bytes + code->imm_offset, 4);
    distance = wide;
  }
  return end + (uint64_t)distance;
}

/* Ends the path here, between two instructions; nothing of the next one was written. */
static bool write_cut(struct translation *translation)
{
  translation->code.length = 0;
  add_step(translation, LB_BRANCH_JCC, PATH_NONE, translation->address);
  write_exit(translation);
  return false;
}

static bool next_instruction(struct translation *translation)
{
  translation->address += translation->code.length;
  segment_end(translation);
  translation->segments[translation->segment_count - 1].end = translation->address;
  if (translation->level == PAGE_WILD || translation->count >= translation->instructions_most ||
      translation->step_count >= translation->steps_most)
    return write_cut(translation);
  return true;
}

/* Goes through the branch as taken, which it mostly is: the condition is turned round. */
static bool write_taken(struct translation *translation, uint64_t target)
{
  struct emitter *emitter = &translation->emitter;
  write_room(translation, 2);
  add_place(translation, emitter->at, PLACE_BRANCH);
  add_step(translation, LB_BRANCH_JCC, PATH_FOLLOW | PATH_NONE, target);
  emit_byte(emitter, 0x0F);
  emit_byte(emitter, 0x80 | ((translation->code.opcode & 15) ^ 1));
  emit_u32(emitter, 0);
  add_stub(translation, false);
  segment_end(translation);
  segment_begin(translation, target);
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
  write_room(translation, translation->code.flow == CODE_JCC ? 2 : 6);
  add_place(translation, emitter->at, PLACE_BRANCH);
  add_step(translation, LB_BRANCH_JCC, 0, target);
  if (translation->code.flow == CODE_JCC) {
    emit_byte(emitter, 0x0F);
    emit_byte(emitter, 0x80 | (translation->code.opcode & 15));
  } else { /* has 8 bits only: over a jump, to a jump */
    if (translation->code.prefixes & CODE_67)
      emit_byte(emitter, 0x67);
    emit_byte(emitter, translation->code.opcode);
    emit_bytes(emitter, (const uint8_t[]){0x02, 0xEB, 0x05, 0xE9}, 4);
  }
  emit_u32(emitter, 0);
  add_stub(translation, false);
  return next_instruction(translation);
}

/* PUSH of a number behind the stubs: one store of 8 bytes, so that the return that loads it need not wait for two. */
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
  add_place(translation, translation->emitter.at, PLACE_BRANCH);
  if (is_call)
    write_push(translation, end);
  else if (is_followed)
    emit_byte(&translation->emitter, 0x90); /* something to be single-stepped */
  add_step(translation, kind, is_followed ? PATH_FOLLOW : 0, target);
  segment_end(translation);
  if (!is_followed) {
    write_exit(translation);
    return false;
  }
  if (is_call)
    translation->returns[translation->depth++] = end;
  segment_begin(translation, target);
  return true;
}

/* Goes on where an indirect branch mostly goes: RCX holds the target, it and RDX are spilled. */
static void write_expected(struct translation *translation, uint64_t expected)
{
  struct emitter *emitter = &translation->emitter;
  emit_compare(emitter, expected);
  emit_bytes(emitter, (const uint8_t[]){0xE3, 0x05, 0xE9}, 3); /* jrcxz hit; jmp stub */
  emit_u32(emitter, 0);
  add_stub(translation, true);
  emit_reload(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_reload(emitter, GPR_RCX, STATE_SPILL_RCX);
  segment_end(translation);
  segment_begin(translation, expected);
}

static bool write_known_indirect(struct translation *translation, const uint8_t *bytes, uint64_t expected)
{
  struct emitter *emitter = &translation->emitter;
  uint64_t end = translation->address + translation->code.length;
  bool is_call = translation->code.flow == CODE_CALL_IND;
  add_place(translation, emitter->at, PLACE_BRANCH | PLACE_RCX | PLACE_RDX);
  emit_spill(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  copy_target(emitter, &translation->code, bytes, translation->address);
  if (is_call)
    write_push(translation, end);
  add_step(translation, is_call ? LB_BRANCH_NEAR_IND_CALL : LB_BRANCH_NEAR_IND_JMP, PATH_FOLLOW | PATH_OPEN, expected);
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
  add_place(translation, emitter->at, PLACE_BRANCH | PLACE_RCX | PLACE_RDX);
  emit_spill(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  copy_target(emitter, &translation->code, bytes, translation->address);
  if (is_call)
    write_push(translation, translation->address + translation->code.length);
  add_step(translation, is_call ? LB_BRANCH_NEAR_IND_CALL : LB_BRANCH_NEAR_IND_JMP, PATH_SILENT, 0);
  segment_end(translation);
  write_take(translation);
  emit_lookup(emitter);
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
  add_place(translation, emitter->at, PLACE_BRANCH | PLACE_RCX);
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  emit_byte(emitter, 0x59); /* pop %rcx */
  if (taken) {
    emit_u32(emitter, 0x24A48D48); /* lea taken(%rsp), %rsp */
    emit_u32(emitter, taken);
  }
  emit_spill(emitter, GPR_RDX, STATE_SPILL_RDX);
}

/* The call is in the path, or it mostly goes there. */
static bool write_known_return(struct translation *translation, uint64_t expected, unsigned taken)
{
  write_pop(translation, taken);
  add_step(translation, LB_BRANCH_NEAR_RET, PATH_FOLLOW | PATH_OPEN, expected);
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
  add_step(translation, LB_BRANCH_NEAR_RET, PATH_SILENT, 0);
  segment_end(translation);
  write_take(translation);
  emit_lookup(&translation->emitter);
  return false;
}

static bool write_syscall(struct translation *translation)
{
  struct emitter *emitter = &translation->emitter;
  add_place(translation, emitter->at, PLACE_BRANCH);
  add_step(translation, LB_BRANCH_SYSCALL, 0, translation->address + translation->code.length);
  segment_end(translation);
  write_take(translation);
  emit_exit_number(emitter, last_number(translation));
  emit_leave(emitter, STATE_LEAVE_SYSCALL);
  return false;
}

/* The dispatcher does it; RCX says where its far pointer is, if it has one. */
static bool write_far(struct translation *translation, const uint8_t *bytes)
{
  static const uint8_t kinds[] = {LB_BRANCH_FAR_RET, LB_BRANCH_FAR_RET, LB_BRANCH_INT, LB_BRANCH_INT, LB_BRANCH_INT,
                                  LB_BRANCH_IRET};
  struct emitter *emitter = &translation->emitter;
  const struct code *code = &translation->code;
  bool is_pointer = code->opcode == 0xFF;
  unsigned kind = is_pointer ? (code->modrm >> 3 & 7) == 3 ? LB_BRANCH_FAR_CALL : LB_BRANCH_FAR_JMP
                             : kinds[(code->opcode - 0xCA) % sizeof(kinds)];
  add_place(translation, emitter->at, PLACE_BRANCH);
  if (is_pointer) {
    emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
    copy_far(emitter, code, bytes, translation->address);
  }
  add_step(translation, kind, PATH_OPEN, 0);
  segment_end(translation);
  write_take(translation);
  emit_exit_number(emitter, last_number(translation));
  emit_leave(emitter, STATE_LEAVE_SYSCALL);
  return false;
}

/* INT n, INT3, UD2 and their like do what they do; who survives them goes on behind. */
static bool write_trap(struct translation *translation, const uint8_t *bytes)
{
  struct emitter *emitter = &translation->emitter;
  bool is_int = translation->code.imm_size == 1 && bytes[translation->code.length - 2] == 0xCD;
  add_place(translation, emitter->at, PLACE_BRANCH);
  emit_bytes(emitter, bytes, translation->code.length);
  add_step(translation, LB_BRANCH_INT, is_int ? 0 : PATH_NONE, translation->address + translation->code.length);
  segment_end(translation);
  write_exit(translation);
  return false;
}

static bool write_branch(struct translation *translation, const uint8_t *bytes)
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
    return write_trap(translation, bytes);
  }
}

/* ---- instructions ---- */

/* What cannot run in the cache is an error only when it is reached: it gets a path of its own. */
static bool write_refusal(struct translation *translation, enum copy_verdict verdict)
{
  if (translation->count > 1)
    return write_cut(translation);
  add_place(translation, translation->emitter.at, PLACE_BRANCH);
  add_step(translation, LB_BRANCH_JCC, PATH_NONE, translation->address);
  segment_end(translation);
  write_take(translation);
  emit_exit_number(&translation->emitter, verdict == COPY_GS ? UINT32_MAX : 0);
  emit_leave(&translation->emitter, STATE_LEAVE_SYSCALL);
  return false;
}

/* Bytes that are no instruction do what UD2 does. */
static bool write_bad_bytes(struct translation *translation)
{
  if (translation->count > 1)
    return write_cut(translation);
  translation->code = (struct code){.length = 1};
  return write_trap(translation, (const uint8_t[]){0x06}); /* PUSH ES, which 64-bit mode does not have */
}

/* What makes a unit stale is two bytes at its entry, between which nobody may be. */
static void write_first(struct translation *translation)
{
  const struct code *code = &translation->code;
  if (translation->uses_r11)
    emit_give_r11(&translation->emitter);
  else if (code->length == 1 || code->flow == CODE_JMP)
    emit_bytes(&translation->emitter, (const uint8_t[]){0x66, 0x90}, 2);
}

/* Returns whether the path goes on. */
static bool translate_instruction(struct translation *translation)
{
  uint64_t address = translation->address;
  const uint8_t *bytes = (const uint8_t *)address;
  uint64_t end = translation->limit < translation->range->end ? translation->limit : translation->range->end;
  if (address >= end)
    return write_cut(translation);
  unsigned level = page_level(translation->runtime, translation->range, address + 15 < end ? address + 15 : address);
  if (level > translation->level && translation->count)
    return write_cut(translation);
  if (level > translation->level)
    translation->level = level;
  translation->count++;
  if (address % PROCESS_PAGE < 16 || translation->count == 1) /* a page may have been entered */
    page_protect(translation->runtime, translation->range, address);
  if (address % PROCESS_PAGE > PROCESS_PAGE - 16 && address + 16 < end)
    page_protect(translation->runtime, translation->range, address + 16);
  struct code *code = &translation->code;
  if (!code_decode(bytes, end - address < 15 ? end - address : 15, code))
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
    return write_branch(translation, bytes);
  uint8_t *at = translation->emitter.at;
  add_place(translation, at, 0);
  translation->places[translation->place_count - 1].spilled =
    (uint8_t)copy_plain(&translation->emitter, code, bytes, address);
  return next_instruction(translation);
}

/* ---- the unit ---- */

static void point(uint8_t *site, const uint8_t *to)
{
  int32_t distance = (int32_t)(to - (site + 4));
  __builtin_memcpy(site, &distance, 4);
}

static void write_stub(const struct translation *translation, struct emitter *emitter, const struct stub *stub)
{
  uint32_t number = translation->head + stub->step;
  if (translation->uses_r11)
    emit_take_r11(emitter);
  if (!stub->is_open) {
    emit_exit_number(emitter, number);
    emit_leave(emitter, STATE_LEAVE_DIRECT);
    translation->runtime->local[number] = (uint64_t)stub->site;
    return;
  }
  emit_log(emitter, number);
  emit_address(emitter, GPR_RDX, translation->steps[stub->step - 1].to);
  emit_u32(emitter, 0x110C8D48); /* lea (%rcx, %rdx), %rcx: the target again */
  emit_lookup(emitter);
}

static void write_cold(const struct translation *translation, struct area *area)
{
  struct emitter emitter = {area->code + area->cold};
  for (unsigned i = 0; i < translation->number_count; i++) {
    point(translation->numbers[i].site, emitter.at);
    emit_u64(&emitter, translation->numbers[i].value);
  }
  for (unsigned i = 0; i < translation->stub_count; i++) {
    point(translation->stubs[i].site, emitter.at);
    write_stub(translation, &emitter, &translation->stubs[i]);
  }
  area->cold = (uint64_t)(emitter.at - area->code + 7) & ~7ull;
}

/* The parent sees the steps before their numbers can be in a log. */
static void publish_steps(struct translation *translation)
{
  struct runtime *runtime = translation->runtime;
  struct path_step *steps = runtime->steps + translation->head;
  for (unsigned i = 1; i <= translation->step_count; i++) {
    struct path_step *step = &translation->steps[i - 1];
    step->head = translation->head;
    step->space = runtime->space;
    steps[i] = *step;
  }
  steps[0] = (struct path_step){.from = translation->start,
                                .head = translation->head,
                                .flags = PATH_HEAD,
                                .count = (uint8_t)translation->step_count,
                                .space = runtime->space};
}

static void note_code(const struct translation *translation)
{
  if (translation->range->flags & RANGE_FILE)
    return;
  for (unsigned i = 0; i < translation->segment_count; i++) {
    const struct range *segment = &translation->segments[i];
    note_put(translation->runtime, NOTE_CODE, translation->runtime->space, segment->start, segment->end, 0,
             (const void *)segment->start, (uint32_t)(segment->end - segment->start));
  }
}

/* Bytes to compare with are kept in the places, which are as long-lived. */
static void keep_bytes(struct translation *translation, struct unit *unit)
{
  struct runtime *runtime = translation->runtime;
  uint64_t size = translation->segments[0].end - translation->start;
  if (translation->level == PAGE_STEADY)
    return;
  uint8_t *bytes = (uint8_t *)(runtime->places + runtime->place_count);
  memcpy(bytes, (const void *)translation->start, size);
  runtime->place_count += (uint32_t)(size + sizeof(struct place) - 1) / sizeof(struct place);
  unit->is_checked = 1;
  unit->bytes = bytes;
  unit->byte_count = (uint32_t)size;
}

/* Numbers are shared by all processes: each takes some at a time, and twice as many the next time. A child of fork takes
 * its own. */
static uint32_t take_numbers(struct runtime *runtime, uint64_t address)
{
  enum { FIRST = 256, MOST = 4096 };
  bool is_ours = runtime->number_space == runtime->space;
  if (!is_ours || runtime->number_end - runtime->number_next < STEPS_MOST + 3) {
    uint32_t count = is_ours && runtime->number_count < MOST ? runtime->number_count * 2 : is_ours ? MOST : FIRST;
    uint32_t first = __atomic_fetch_add(&runtime->control->step_count, count, __ATOMIC_RELAXED);
    if (first > runtime->step_capacity - count)
      runtime_fail(PROCESS_E_TABLE_FULL, 0, address);
    runtime->number_space = runtime->space;
    runtime->number_count = count;
    runtime->number_next = first;
    runtime->number_end = first + count;
  }
  return runtime->number_next;
}

static int64_t translate_all(void *argument)
{
  struct translation *translation = argument;
  segment_begin(translation, translation->start);
  while (translate_instruction(translation))
    ;
  return 0;
}

/* Behind room for what makes the unit stale. Its entry is even: the two bytes there are changed at once. */
static void translation_begin(struct translation *translation, struct area *area)
{
  struct runtime *runtime = translation->runtime;
  struct emitter *emitter = &translation->emitter;
  translation->edge = (uint8_t *)(((uint64_t)area->code + area->used + CACHE_ROOM + 3) & ~3ull);
  emitter->at = translation->edge;
  if (translation->self_step) {
    write_take(translation);
    emit_log(emitter, translation->head + translation->self_step);
  } else if (translation->edge_step) {
    cache_write_edge(runtime, emitter, translation->edge_step, 0);
  }
  if ((uint64_t)emitter->at % 2)
    emit_byte(emitter, 0x90);
  translation->entry = emitter->at;
  translation->places = runtime->places + runtime->place_count;
  translation->count = translation->step_count = translation->stub_count = 0;
  for (unsigned i = 0; i <= STEPS_MOST + 2; i++) /* an attempt that failed may have left something */
    runtime->local[translation->head + i] = 0;
  translation->number_count = translation->depth = translation->segment_count = translation->place_count = 0;
  translation->turns = 0;
}

/* An exit that leads back to the head, or 0. */
static unsigned find_self(const struct translation *translation)
{
  for (unsigned i = 1; i <= translation->step_count; i++) {
    const struct path_step *step = &translation->steps[i - 1];
    bool has_exit = translation->stub_count && !(step->flags & (PATH_FOLLOW | PATH_SILENT | PATH_OPEN));
    for (unsigned j = 0; has_exit && j < translation->stub_count; j++)
      if (translation->stubs[j].step == i && step->to == translation->start)
        return i;
  }
  return 0;
}

static void tie_self(struct translation *translation)
{
  if (!translation->self_step)
    return;
  translation->steps[translation->self_step - 1].next = translation->head;
  uint8_t *site = (uint8_t *)translation->runtime->local[translation->head + translation->self_step];
  point(site, translation->edge);
}

static struct unit *translation_end(struct translation *translation, struct area *area)
{
  struct runtime *runtime = translation->runtime;
  struct unit unit = {.address = translation->start,
                      .code = translation->entry,
                      .edge = translation->edge,
                      .size = (uint32_t)(translation->emitter.at - translation->entry),
                      .head = translation->head,
                      .uses_r11 = translation->uses_r11,
                      .is_for_edge = translation->edge_step && !translation->self_step,
                      .place = runtime->place_count,
                      .place_count = (uint16_t)translation->place_count};
  write_cold(translation, area);
  tie_self(translation);
  publish_steps(translation);
  runtime->place_count += translation->place_count;
  runtime->number_next += 1 + translation->step_count;
  keep_bytes(translation, &unit);
  if (runtime->place_count > CACHE_PLACES - 8192)
    runtime_fail(PROCESS_E_CACHE_FULL, 0, translation->start);
  note_code(translation);
  area->used = (uint64_t)(translation->emitter.at - area->code);
  struct unit *kept = cache_add(runtime, area, &unit);
  for (unsigned i = 0; i < translation->segment_count; i++)
    for (uint64_t at = translation->segments[i].start & ~(uint64_t)(PROCESS_PAGE - 1);
         at < translation->segments[i].end; at += PROCESS_PAGE)
      page_add_unit(runtime, at, (uint32_t)(kept - runtime->units));
  return kept;
}

static int64_t translate_again(struct translation *translation, struct area *area)
{
  translation_begin(translation, area);
  return recover_call(translate_all, translation, &translation->thread->recover);
}

struct unit *translate(struct thread *thread, uint64_t address, uint32_t edge_step)
{
  struct runtime *runtime = thread->runtime;
  struct translation translation = {
    .thread = thread, .runtime = runtime, .start = address, .limit = UINT64_MAX, .edge_step = edge_step};
  translation.instructions_most = runtime->generation ? INSTRUCTIONS_MOST : INSTRUCTIONS_FIRST;
  translation.steps_most = runtime->generation ? STEPS_MOST : STEPS_FIRST;
  translation.range = range_find(&runtime->executable, address);
  translation.level = page_level(runtime, translation.range, address);
  translation.head = take_numbers(runtime, address);
  struct area *area = cache_area(runtime, address);
  translation_begin(&translation, area);
  int64_t result = recover_call(translate_all, &translation, &thread->recover);
  if (result == 0 && translation.wants_r11) {
    translation.uses_r11 = true;
    result = translate_again(&translation, area);
  }
  if (result < 0 && translation.count > 1) {
    translation.limit = translation.address; /* up to what could be read */
    result = translate_again(&translation, area);
  }
  translation.self_step = result == 0 && translation.level == PAGE_STEADY ? find_self(&translation) : 0;
  if (translation.self_step)
    result = translate_again(&translation, area);
  return result < 0 ? NULL : translation_end(&translation, area);
}
