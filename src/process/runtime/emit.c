/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions that the translator adds to those of the application. None touches flags, vector registers or the
 * stack of the application (except for the push of a call); registers that they borrow are spilled to the state that GS
 * points to.
 */
#include "process/runtime/runtime.h"

/* MOV between a register and gs:slot. */
static void emit_slot(struct emitter *emitter, unsigned opcode, unsigned reg, uint32_t slot)
{
  emit_u32(emitter, 0x4865u | opcode << 16 | (reg << 3 | 4) << 24);
  emit_byte(emitter, 0x25);
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

/* After the last entry of a part there is a page that faults. signal.c then points R11 to the next part, and the store
 * is executed again. */
void emit_log(struct emitter *emitter, uint32_t entry)
{
  emit_bytes(emitter, (const uint8_t[]){0x41, 0xC7, 0x03}, 3); /* movl $entry, (%r11) */
  emit_u32(emitter, entry);
  emit_u32(emitter, 0x045B8D4D); /* lea 4(%r11), %r11 */
}

/* MOV between R11 and gs:slot. */
static void emit_r11(struct emitter *emitter, unsigned opcode, uint32_t slot)
{
  emit_u32(emitter, 0x1C004C65u | opcode << 16);
  emit_byte(emitter, 0x25);
  emit_u32(emitter, slot);
}

void emit_take_r11(struct emitter *emitter)
{
  emit_r11(emitter, 0x89, STATE_R11);
  emit_r11(emitter, 0x8B, STATE_LOG);
}

void emit_give_r11(struct emitter *emitter)
{
  emit_r11(emitter, 0x89, STATE_LOG);
  emit_r11(emitter, 0x8B, STATE_R11);
}

void emit_patch(uint8_t *site, const uint8_t *to)
{
  int32_t distance = (int32_t)(to - (site + 4));

  __atomic_store_n((int32_t *)site, distance, __ATOMIC_RELEASE);
}

void emit_jump(struct emitter *emitter, const uint8_t *to)
{
  emit_byte(emitter, 0xE9);
  emit_u32(emitter, (uint32_t)(to - (emitter->at + 4)));
}

void emit_leave(struct emitter *emitter, uint32_t slot)
{
  emit_u32(emitter, 0x2524FF65); /* jmp *%gs:slot */
  emit_u32(emitter, slot);
}

void emit_exit_number(struct emitter *emitter, uint32_t number)
{
  emit_u32(emitter, 0x2504C765); /* movl $number, %gs:EXIT */
  emit_u32(emitter, STATE_EXIT);
  emit_u32(emitter, number);
}

void emit_lookup(struct emitter *emitter, bool is_wide)
{
  if (is_wide) {
    emit_bytes(emitter, (const uint8_t[]){0x0F, 0xB7, 0xD1}, 3); /* movzwl %cx, %edx */
    emit_u32(emitter, 0xD524FF65);                               /* jmp *%gs:WIDE(, %rdx, 8) */
    emit_u32(emitter, REGION_WIDE);
    return;
  }
  emit_bytes(emitter, (const uint8_t[]){0x8D, 0x14, 0xCD, 0, 0, 0, 0}, 7); /* lea 0(, %rcx, 8), %edx */
  emit_bytes(emitter, (const uint8_t[]){0x0F, 0xB7, 0xD2}, 3);             /* movzwl %dx, %edx */
  emit_bytes(emitter, (const uint8_t[]){0x65, 0xFF, 0xA2}, 3);             /* jmp *%gs:NARROW(%rdx) */
  emit_u32(emitter, REGION_NARROW);
}

/* ---- comparing ---- */

/* Without flags, RCX can be compared only with 0, by JRCXZ, or with 1, by LOOP, which decrements it first. So a
 * constant is added that makes it 0 or 1 if it holds the address. JRCXZ jumps if it is equal, LOOP if it is not. */

/* LEA value(%rcx), %rcx; several of them if the value is large. */
static void emit_add(struct emitter *emitter, int64_t value)
{
  int32_t part = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;

  emit_bytes(emitter, (const uint8_t[]){0x48, 0x8D, 0x89}, 3);
  emit_u32(emitter, (uint32_t)part);
  if (part != value)
    emit_add(emitter, value - part);
}

/* Moves the upper half of RCX, whose lower half is 0, to the lower half: RORX $32, or BSWAP. The second function
 * returns what becomes of the value of that half. */
static void emit_turn(struct emitter *emitter, unsigned options)
{
  if (options & PROCESS_RORX)
    emit_bytes(emitter, (const uint8_t[]){0xC4, 0xE3, 0xFB, 0xF0, 0xC9, 0x20}, 6);
  else
    emit_bytes(emitter, (const uint8_t[]){0x48, 0x0F, 0xC9}, 3);
}

static uint32_t turned(uint32_t half, unsigned options)
{
  return options & PROCESS_RORX ? half : __builtin_bswap32(half);
}

/* An address is added in two halves: adding low_of makes the lower half of the address 0, and rest_of is the upper half
 * of the sum. */
static int32_t low_of(uint64_t address)
{
  return (int32_t)(0 - (uint32_t)address);
}

static int64_t rest_of(uint64_t address, unsigned options)
{
  return turned((uint32_t)((address + (uint64_t)(int64_t)low_of(address)) >> 32), options);
}

/* LOOP skips the first three bytes of a NOP of eight bytes. The other five are the jump: if LOOP is not taken, they are
 * the address of the NOP's operand, and execution continues after them. */
void emit_check(struct emitter *emitter, unsigned options, uint64_t address)
{
  int64_t equal = options & PROCESS_LOOP ? 1 : 0;

  if (address <= INT32_MAX) {
    emit_add(emitter, equal - (int64_t)address);
  } else {
    emit_add(emitter, low_of(address));
    emit_turn(emitter, options);
    emit_add(emitter, equal - rest_of(address, options));
  }
  if (options & PROCESS_LOOP)
    emit_bytes(emitter, (const uint8_t[]){0xE2, 0x03, 0x0F, 0x1F, 0x84, 0xE9}, 6); /* loop miss; nopl; miss: jmp */
  else
    emit_bytes(emitter, (const uint8_t[]){0xE3, 0x05, 0xE9}, 3); /* jrcxz hit; jmp */
  emit_u32(emitter, 0);
}

void emit_check_undo(struct emitter *emitter, unsigned options, uint64_t address)
{
  if (address <= INT32_MAX) {
    emit_add(emitter, (int64_t)address);
    return;
  }
  emit_add(emitter, rest_of(address, options));
  emit_turn(emitter, options);
  emit_add(emitter, -(int64_t)low_of(address));
}

/* LEA to RCX of RCX less the value. Destroys RDX. */
static void emit_subtract(struct emitter *emitter, uint64_t value)
{
  if (value <= INT32_MAX) {
    emit_add(emitter, -(int64_t)value);
    return;
  }
  emit_address(emitter, GPR_RDX, 0 - value);
  emit_u32(emitter, 0x110C8D48); /* lea (%rcx, %rdx), %rcx */
}

void emit_check_near(struct emitter *emitter, unsigned options, uint64_t address, const uint8_t *miss)
{
  emit_subtract(emitter, options & PROCESS_LOOP ? address - 1 : address);
  if (options & PROCESS_LOOP)
    emit_byte(emitter, 0xE2); /* loop miss */
  else
    emit_bytes(emitter, (const uint8_t[]){0xE3, 0x02, 0xEB}, 3); /* jrcxz hit; jmp miss */
  emit_byte(emitter, (unsigned)(miss - (emitter->at + 1)));
}
