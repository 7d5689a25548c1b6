/* SPDX-License-Identifier: Apache-2.0
 *
 * One block, from the application's bytes to the cache's:
 *
 *   indirect:  mov %gs:SPILL_RDX, %rdx; jmp log     for the lookup, which has spilled RCX and RDX
 *   direct:    mov %rcx, %gs:SPILL_RCX
 *   log:       the id into the log
 *              the instructions
 *              the branch, to a patched rel32 or by the lookup
 *              its exits
 */
#include "process/runtime.h"

enum { INSTRUCTIONS_MOST = 128, SITES = 2 };

/* A block on its way. */
struct translation {
  struct runtime *runtime;
  struct emitter emitter;
  struct process_block block;
  struct code code;         /* of the last instruction */
  uint64_t limit;           /* end of the executable range */
  struct exit exits[SITES]; /* to write behind the branch */
  uint8_t *sites[SITES];    /* and the rel32 that lead there */
  unsigned exit_count;
};

/* ---- exits ---- */

static void add_exit(struct translation *translation, uint8_t *site, uint64_t target)
{
  uint32_t offset = (uint32_t)(site - translation->runtime->cache.code);
  translation->sites[translation->exit_count] = site;
  translation->exits[translation->exit_count++] = (struct exit){target, offset, EXIT_DIRECT};
}

static void write_exits(struct translation *translation)
{
  struct emitter *emitter = &translation->emitter;
  for (unsigned i = 0; i < translation->exit_count; i++) {
    emit_patch(translation->sites[i], emitter->at);
    emit_exit(emitter, translation->runtime->cache.code, &translation->exits[i]);
  }
}

/* The block ends by leaving for another reason. */
static void write_leave(struct translation *translation, uint64_t target, enum exit_reason reason)
{
  const struct exit exit = {target, 0, reason};
  emit_exit(&translation->emitter, translation->runtime->cache.code, &exit);
}

static void write_jump(struct translation *translation, uint64_t target)
{
  uint8_t *site = emit_jump(&translation->emitter);
  add_exit(translation, site, target);
}

/* ---- branches ---- */

static uint64_t target_of(const struct code *code, const uint8_t *bytes, uint64_t end)
{
  int32_t wide = 0;
  memcpy(&wide, bytes + code->imm_offset, code->imm_size == 1 ? 1 : 4);
  int64_t distance = code->imm_size == 1 ? (int8_t)wide : wide;
  return end + (uint64_t)distance;
}

static void write_jcc(struct translation *translation)
{
  struct emitter *emitter = &translation->emitter;
  emit_byte(emitter, 0x0F);
  emit_byte(emitter, 0x80 | (translation->code.opcode & 15));
  emit_u32(emitter, 0);
  add_exit(translation, emitter->at - 4, translation->block.target);
  write_jump(translation, translation->block.end);
}

/* They have an 8-bit displacement only: over a jump, to a jump. */
static void write_loop(struct translation *translation)
{
  struct emitter *emitter = &translation->emitter;
  if (translation->code.prefixes & CODE_67)
    emit_byte(emitter, 0x67);
  emit_byte(emitter, translation->code.opcode);
  emit_byte(emitter, 5);
  write_jump(translation, translation->block.end);
  write_jump(translation, translation->block.target);
}

static void write_indirect(struct translation *translation, const uint8_t *bytes)
{
  struct emitter *emitter = &translation->emitter;
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  copy_target(emitter, &translation->code, bytes, translation->block.last);
  if (translation->code.flow == CODE_CALL_IND)
    emit_push(emitter, translation->block.end);
  emit_lookup(emitter);
  write_leave(translation, 0, EXIT_INDIRECT);
}

static void write_return(struct translation *translation, const uint8_t *bytes)
{
  struct emitter *emitter = &translation->emitter;
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  emit_byte(emitter, 0x59); /* pop %rcx */
  if (translation->code.imm_size) {
    uint16_t size;
    memcpy(&size, bytes + translation->code.imm_offset, 2);
    emit_bytes(emitter, (const uint8_t[]){0x48, 0x8D, 0xA4, 0x24}, 4); /* lea size(%rsp), %rsp */
    emit_u32(emitter, size);
  }
  emit_lookup(emitter);
  write_leave(translation, 0, EXIT_INDIRECT);
}

static void write_branch(struct translation *translation, const uint8_t *bytes)
{
  struct process_block *block = &translation->block;
  switch (translation->code.flow) {
  case CODE_JCC:
    write_jcc(translation);
    break;
  case CODE_LOOP:
    write_loop(translation);
    break;
  case CODE_CALL:
    emit_push(&translation->emitter, block->end);
    write_jump(translation, block->target);
    break;
  case CODE_JMP:
    write_jump(translation, block->target);
    break;
  case CODE_JMP_IND:
  case CODE_CALL_IND:
    write_indirect(translation, bytes);
    break;
  case CODE_RET:
    write_return(translation, bytes);
    break;
  case CODE_SYSCALL:
    write_leave(translation, block->end, EXIT_SYSCALL);
    break;
  default: /* INT3, UD2 and their like do what they do; who survives them goes on behind */
    emit_bytes(&translation->emitter, bytes, translation->code.length);
    write_jump(translation, block->end);
  }
}

static bool has_target(unsigned flow)
{
  return flow == CODE_JCC || flow == CODE_LOOP || flow == CODE_JMP || flow == CODE_CALL;
}

/* ---- instructions ---- */

static void end_before(struct translation *translation, uint64_t address)
{
  translation->block.end = address;
  translation->block.flow = CODE_PLAIN;
  write_jump(translation, address);
}

/* What cannot run in the cache is an error only when it is reached: it gets a block of its own. */
static bool end_with_error(struct translation *translation, uint64_t address, enum exit_reason reason)
{
  if (address != translation->block.start) {
    end_before(translation, address);
  } else {
    translation->block.last = translation->block.end = address;
    translation->block.flow = CODE_UD;
    write_leave(translation, address, reason);
  }
  return false;
}

/* Bytes that are no instruction do what UD2 does. */
static bool end_with_bad_bytes(struct translation *translation, uint64_t address)
{
  if (address != translation->block.start) {
    end_before(translation, address);
  } else {
    translation->block.last = translation->block.end = address;
    translation->block.flow = CODE_UD;
    emit_bytes(&translation->emitter, (const uint8_t[]){0x0F, 0x0B}, 2);
  }
  return false;
}

/* Returns whether the block goes on. */
static bool translate_instruction(struct translation *translation, uint64_t address)
{
  const uint8_t *bytes = (const uint8_t *)address;
  struct code *code = &translation->code;
  uint64_t size = translation->limit - address;
  if (address >= translation->limit) {
    end_before(translation, address);
    return false;
  }
  if (!code_decode(bytes, size < 15 ? size : 15, code))
    return end_with_bad_bytes(translation, address);
  enum exit_reason reason = copy_check(code, bytes);
  if (reason != EXIT_DIRECT)
    return end_with_error(translation, address, reason);
  struct process_block *block = &translation->block;
  block->last = address;
  block->end = address + code->length;
  if (code->flow == CODE_PLAIN) {
    copy_plain(&translation->emitter, code, bytes, address);
    return true;
  }
  block->flow = code->flow;
  block->target = has_target(code->flow) ? target_of(code, bytes, block->end) : 0;
  write_branch(translation, bytes);
  return false;
}

/* ---- the block ---- */

static void write_entries(struct translation *translation, struct cache_entry *entry)
{
  struct emitter *emitter = &translation->emitter;
  const uint8_t *cache = translation->runtime->cache.code;
  entry->indirect = (uint32_t)(emitter->at - cache);
  emit_reload(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_byte(emitter, 0xEB);
  emit_byte(emitter, 9); /* over the spill */
  entry->direct = (uint32_t)(emitter->at - cache);
  emit_spill(emitter, GPR_RCX, STATE_SPILL_RCX);
  emit_log(emitter, translation->block.id);
}

/* The parent sees the entry before its id can be in the log. A child of a fork has no part in the table. */
static void publish_block(struct runtime *runtime, const struct process_block *block)
{
  if (runtime->is_child)
    return;
  runtime->table[block->id] = *block;
  __atomic_store_n(&runtime->control->block_count, block->id + 1, __ATOMIC_RELEASE);
}

const struct cache_entry *translate_block(struct runtime *runtime, uint64_t address)
{
  cache_make_room(runtime);
  struct cache *cache = &runtime->cache;
  if (runtime->next_id >= runtime->block_capacity && !runtime->is_child)
    runtime_fail(PROCESS_E_TABLE_FULL, 0, address);
  struct translation translation = {.runtime = runtime,
                                    .emitter = {cache->code + cache->used},
                                    .block = {.start = address, .id = runtime->next_id++},
                                    .limit = range_end(&runtime->executable, address)};
  struct cache_entry entry = {.address = address};
  write_entries(&translation, &entry);
  unsigned count = 0;
  while (count < INSTRUCTIONS_MOST && translate_instruction(&translation, count ? translation.block.end : address))
    count++;
  if (count == INSTRUCTIONS_MOST)
    end_before(&translation, translation.block.end);
  write_exits(&translation);
  cache->used = (uint32_t)(translation.emitter.at - cache->code + 15) & ~15u;
  cache_add(cache, &entry);
  publish_block(runtime, &translation.block);
  return cache_find(cache, address);
}
