/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions that the translator adds to those of the application. None touches flags, vector registers or the
 * stack of the application (but for the push of a call); what they borrow they spill to the state that GS points to.
 */
#include "process/runtime.h"

void emit_bytes(struct emitter *emitter, const void *bytes, size_t size)
{
  memcpy(emitter->at, bytes, size);
  emitter->at += size;
}

void emit_byte(struct emitter *emitter, unsigned byte)
{
  *emitter->at++ = (uint8_t)byte;
}

void emit_u32(struct emitter *emitter, uint32_t value)
{
  emit_bytes(emitter, &value, 4);
}

void emit_u64(struct emitter *emitter, uint64_t value)
{
  emit_bytes(emitter, &value, 8);
}

/* MOV between a register and gs:slot. */
static void emit_slot(struct emitter *emitter, unsigned opcode, unsigned reg, uint32_t slot)
{
  const uint8_t bytes[] = {0x65, 0x48, (uint8_t)opcode, (uint8_t)(reg << 3 | 4), 0x25};
  emit_bytes(emitter, bytes, sizeof(bytes));
  emit_u32(emitter, slot);
}

void emit_spill(struct emitter *emitter, unsigned reg, uint32_t slot)
{
  emit_slot(emitter, 0x89, reg, slot);
}

void emit_reload(struct emitter *emitter, unsigned reg, uint32_t slot)
{
  emit_slot(emitter, 0x8B, reg, slot);
}

void emit_address(struct emitter *emitter, unsigned reg, uint64_t address)
{
  emit_byte(emitter, 0x48);
  emit_byte(emitter, 0xB8 | reg);
  emit_u64(emitter, address);
}

/* RCX is spilled. The offset is stored whole: a narrower store than the next block's load would stall it. LEA with a
 * 32-bit destination wraps at 4 GiB, which is where the ring starts over. */
void emit_log(struct emitter *emitter, uint32_t id)
{
  emit_reload(emitter, GPR_RCX, STATE_LOG);
  emit_bytes(emitter, (const uint8_t[]){0x65, 0xC7, 0x81}, 3); /* movl $id, %gs:REGION_RING(%rcx) */
  emit_u32(emitter, REGION_RING);
  emit_u32(emitter, id);
  emit_bytes(emitter, (const uint8_t[]){0x8D, 0x49, 0x04}, 3); /* lea 4(%rcx), %ecx */
  emit_spill(emitter, GPR_RCX, STATE_LOG);
  emit_reload(emitter, GPR_RCX, STATE_SPILL_RCX);
}

/* One store of 8 bytes, whatever the value: the return that loads it must not wait for two. */
void emit_push(struct emitter *emitter, uint64_t value)
{
  if (value <= INT32_MAX) {
    emit_byte(emitter, 0x68);
    emit_u32(emitter, (uint32_t)value);
    return;
  }
  emit_spill(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_address(emitter, GPR_RDX, value);
  emit_byte(emitter, 0x52); /* push %rdx */
  emit_reload(emitter, GPR_RDX, STATE_SPILL_RDX);
}

uint8_t *emit_jump(struct emitter *emitter)
{
  emit_byte(emitter, 0xE9);
  emit_u32(emitter, 0);
  return emitter->at - 4;
}

void emit_patch(uint8_t *site, const uint8_t *to)
{
  int32_t distance = (int32_t)(to - (site + 4));
  memcpy(site, &distance, 4);
}

void emit_lookup(struct emitter *emitter)
{
  emit_spill(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_bytes(emitter, (const uint8_t[]){0x0F, 0xB7, 0xD1}, 3);             /* movzwl %cx, %edx */
  emit_bytes(emitter, (const uint8_t[]){0x65, 0x48, 0x8B, 0x14, 0xD5}, 5); /* mov %gs:FROM(, %rdx, 8), %rdx */
  emit_u32(emitter, REGION_LOOKUP_FROM);
  emit_bytes(emitter, (const uint8_t[]){0x48, 0xF7, 0xD1}, 3);             /* not %rcx */
  emit_bytes(emitter, (const uint8_t[]){0x48, 0x8D, 0x4C, 0x11, 0x01}, 5); /* lea 1(%rcx, %rdx), %rcx */
  emit_bytes(emitter, (const uint8_t[]){0xE3, 0x02, 0xEB, 11}, 4);         /* jrcxz hit; jmp miss */
  emit_bytes(emitter, (const uint8_t[]){0x0F, 0xB7, 0xD2}, 3);             /* hit: movzwl %dx, %edx */
  emit_bytes(emitter, (const uint8_t[]){0x65, 0xFF, 0x24, 0xD5}, 4);       /* jmp *%gs:TO(, %rdx, 8) */
  emit_u32(emitter, REGION_LOOKUP_TO);
}

void emit_exit(struct emitter *emitter, const uint8_t *cache, const struct exit *exit)
{
  enum { CODE_BYTES = 20 };
  uint32_t data = (uint32_t)(emitter->at - cache) + CODE_BYTES;
  emit_bytes(emitter, (const uint8_t[]){0x65, 0xC7, 0x04, 0x25}, 4); /* movl $data, %gs:EXIT */
  emit_u32(emitter, STATE_EXIT);
  emit_u32(emitter, data);
  emit_bytes(emitter, (const uint8_t[]){0x65, 0xFF, 0x24, 0x25}, 4); /* jmp *%gs:LEAVE */
  emit_u32(emitter, STATE_LEAVE);
  emit_bytes(emitter, exit, sizeof(*exit));
}
