/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies instructions into the cache. Only RIP-relative operands change: the displacement if the target is in reach of
 * the new place; otherwise the base, which becomes a borrowed register. SDM vol. 2, chapter 2.
 */
#include "process/runtime/runtime.h"

enum { REX_W = 8, REX_R = 4, REX_X = 2, REX_B = 1 };

static bool is_modrm_reg(const struct code *code)
{
  return code->modrm_offset && code->modrm >> 6 == 3;
}

/* MOV to GS, LFS and LGS, and (F3 0F AE) RDGSBASE and WRGSBASE: they read or change the register that the runtime
 * uses. */
static bool uses_gs(const struct code *code)
{
  unsigned reg = code->modrm >> 3 & 7;

  if (code->encoding)
    return false;
  if (code->map == 0)
    return code->opcode == 0x8E && reg == 5;
  bool is_base = code->opcode == 0xAE && code->prefixes & CODE_F3 && is_modrm_reg(code) && (reg == 1 || reg == 3);
  return code->map == 1 && (code->opcode == 0xB5 || code->opcode == 0xA9 || is_base);
}

/* AMD truncates the target of a near branch with prefix 66 and without REX.W to 16 bits; Intel does not. */
static bool is_short_branch(const struct code *code)
{
  return code->flow != CODE_PLAIN && code->flow <= CODE_RET && code->prefixes & CODE_66 && !(code->rex & REX_W);
}

enum copy_verdict copy_check(const struct code *code, const uint8_t *bytes)
{
  bool is_xbegin = code->map == 0 && !code->encoding && code->opcode == 0xC7 && code->modrm == 0xF8;
  bool is_sysenter = code->flow == CODE_INT && code->map == 1;

  (void)bytes;
  if ((code->prefixes & CODE_GS && code->prefixes & CODE_FS) || uses_gs(code))
    return COPY_GS;
  bool is_far = code->flow == CODE_FAR && (code->prefixes & CODE_66 || code->map);
  if (is_far || is_xbegin || is_sysenter || is_short_branch(code))
    return COPY_REFUSE;
  return COPY_FINE;
}

/* The register in VEX.vvvv, if that field names a general register. */
static unsigned vvvv_of(const struct code *code, const uint8_t *bytes)
{
  const uint8_t *opcode = bytes + code->modrm_offset - 1;

  if (code->encoding == 0x62)
    return ~opcode[-2] >> 3 & 15;
  return code->encoding ? ~opcode[-1] >> 3 & 15 : 16;
}

/* Also true for vector register 11 where its number is in the same bits; this does no harm. */
bool copy_uses_r11(const struct code *code, const uint8_t *bytes)
{
  bool has_b = code->rex & REX_B;

  if (!code->modrm_offset)
    return has_b && (code->opcode & 7) == 3;
  unsigned modrm = code->modrm, rm = modrm & 7;
  if ((code->rex & REX_R && (modrm >> 3 & 7) == 3) || vvvv_of(code, bytes) == 11)
    return true;
  if (modrm >> 6 == 3 || rm != 4)
    return has_b && rm == 3;
  unsigned sib = bytes[code->modrm_offset + 1];
  return (has_b && (sib & 7) == 3) || (code->rex & REX_X && (sib >> 3 & 7) == 3);
}

/* A register that the instruction does not use. The implicit registers of instructions with a memory operand are RAX,
 * RCX and RDX. Of the three candidates only RBX is ever implicit, in CMPXCHG16B; RBX comes last, and CMPXCHG16B names
 * no other register. */
static unsigned free_register(const struct code *code, const uint8_t *bytes)
{
  static const uint8_t candidates[] = {GPR_RSI, GPR_RDI, GPR_RBX};
  unsigned reg = (code->modrm >> 3 & 7) | (code->rex & REX_R ? 8 : 0), vvvv = vvvv_of(code, bytes);
  unsigned i = 0;

  while (candidates[i] == reg || candidates[i] == vvvv)
    i++;
  return candidates[i];
}

/* RIP-relative addressing ignores REX.B; a base register does not. VEX, EVEX and XOP store the bit inverted. */
static void clear_rex_b(uint8_t *bytes, const struct code *code)
{
  uint8_t *modrm = bytes + code->modrm_offset;

  switch (code->encoding) {
  case 0xC5:
    return;
  case 0xC4:
  case 0x8F:
    modrm[-3] |= 0x20;
    return;
  case 0x62:
    modrm[-4] |= 0x20;
    return;
  default:
    if (code->rex)
      modrm[-1 - (code->map > 1 ? 2 : code->map == 1) - 1] &= (uint8_t)~REX_B;
  }
}

static uint64_t rip_target(const struct code *code, const uint8_t *bytes, uint64_t address)
{
  int32_t displacement;

  memcpy(&displacement, bytes + code->disp_offset, 4);
  uint64_t target = address + code->length + (uint64_t)(int64_t)displacement;
  return code->prefixes & CODE_67 ? (uint32_t)target : target;
}

/* Writes the instruction with another ModRM and no displacement. */
static void copy_rebased(struct emitter *emitter, const struct code *code, const uint8_t *bytes, unsigned base)
{
  uint8_t copy[16];

  memcpy(copy, bytes, code->length);
  clear_rex_b(copy, code);
  copy[code->modrm_offset] = (uint8_t)((code->modrm & 0x38) | base);
  emit_bytes(emitter, copy, code->modrm_offset + 1u);
  emit_bytes(emitter, bytes + code->imm_offset, code->imm_size);
}

static bool in_reach(const struct emitter *emitter, const struct code *code, uint64_t target, int64_t *ret_distance)
{
  *ret_distance = (int64_t)(target - ((uint64_t)emitter->at + code->length));
  return *ret_distance == (int32_t)*ret_distance && !(code->prefixes & CODE_67);
}

/* LEA of 64 bits becomes a load of the address as a constant. */
static bool copy_lea(struct emitter *emitter, const struct code *code, uint64_t target)
{
  if (code->encoding || code->map || code->opcode != 0x8D || !(code->rex & REX_W) || code->prefixes & CODE_66)
    return false;
  emit_byte(emitter, 0x48 | (code->rex & REX_R ? REX_B : 0));
  emit_byte(emitter, 0xB8 | (code->modrm >> 3 & 7));
  emit_u64(emitter, target);
  return true;
}

/* Gathers and tile loads are invalid without a SIB byte, and must stay invalid. */
static bool needs_sib(const struct code *code)
{
  return code->encoding && code->map == 2 && (code->opcode == 0x4B || (code->opcode & 0xFC) == 0x90);
}

/* An address of at most 31 bits needs no base register: ModRM and SIB can express it, in one byte more. */
static bool copy_absolute(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t target)
{
  if (target > INT32_MAX || code->length == 15 || code->rex & REX_X || code->prefixes & CODE_67 ||
      code->encoding == 0x62 || needs_sib(code))
    return false;
  emit_bytes(emitter, bytes, code->modrm_offset);
  emit_byte(emitter, (code->modrm & 0x38) | 4);
  emit_byte(emitter, 0x25);
  emit_u32(emitter, (uint32_t)target);
  emit_bytes(emitter, bytes + code->imm_offset, code->imm_size);
  return true;
}

static unsigned spill_of(unsigned reg)
{
  return reg == GPR_RSI ? PLACE_RSI : reg == GPR_RDI ? PLACE_RDI : PLACE_RBX;
}

static bool is_prefix(uint8_t byte)
{
  return (byte & 0xF0) == 0x40 || (byte & 0xE7) == 0x26 || (byte >= 0x64 && byte <= 0x67) || byte == 0xF0 ||
         byte == 0xF2 || byte == 0xF3;
}

/* The application's GS base is 0 and ours is not. The GS prefix becomes a DS prefix, which has no effect. */
static const uint8_t *without_gs(const struct code *code, const uint8_t *bytes, uint8_t copy[16])
{
  enum { PREFIX_GS = 0x65, PREFIX_DS = 0x3E };

  if (!(code->prefixes & CODE_GS))
    return bytes;
  memcpy(copy, bytes, code->length);
  for (unsigned i = 0; i < code->length && is_prefix(copy[i]); i++)
    if (copy[i] == PREFIX_GS)
      copy[i] = PREFIX_DS;
  return copy;
}

unsigned copy_plain(struct emitter *emitter, const struct code *code, const uint8_t *original, uint64_t address)
{
  uint8_t copy[16];
  const uint8_t *bytes = without_gs(code, original, copy);

  if (!code->is_rip_relative) {
    emit_bytes(emitter, bytes, code->length);
    return 0;
  }
  uint64_t target = rip_target(code, bytes, address);
  int64_t distance;
  if (in_reach(emitter, code, target, &distance)) {
    uint8_t *at = emitter->at;

    emit_bytes(emitter, bytes, code->length);
    int32_t narrow = (int32_t)distance;
    __builtin_memcpy(at + code->disp_offset, &narrow, 4);
    return 0;
  }
  if (copy_lea(emitter, code, target) || copy_absolute(emitter, code, bytes, target))
    return 0;
  unsigned base = free_register(code, bytes);
  emit_spill(emitter, base, STATE_SPILL);
  emit_address(emitter, base, target);
  copy_rebased(emitter, code, bytes, base);
  emit_reload(emitter, base, STATE_SPILL);
  return spill_of(base);
}

/* LEA of the address of a far pointer (FF /3 and FF /5). */
void copy_far(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address)
{
  if (code->is_rip_relative) {
    emit_address(emitter, GPR_RCX, rip_target(code, bytes, address));
    return;
  }
  if (code->prefixes & CODE_67)
    emit_byte(emitter, 0x67);
  emit_byte(emitter, 0x48 | (code->rex & 3));
  emit_byte(emitter, 0x8D);
  emit_byte(emitter, (code->modrm & 0xC7) | GPR_RCX << 3);
  emit_bytes(emitter, bytes + code->modrm_offset + 1, code->length - code->modrm_offset - 1u);
}

/* Loads RCX from a slot that the application reaches relative to RIP: in the same way, if it is in reach. */
static void copy_slot(struct emitter *emitter, uint64_t slot, bool has_fs)
{
  enum { LENGTH = 7 }; /* without the prefix */
  int64_t distance = (int64_t)(slot - ((uint64_t)emitter->at + LENGTH + has_fs));
  bool is_near = distance < CACHE_REACH && distance > -CACHE_REACH;

  if (!is_near)
    emit_address(emitter, GPR_RCX, slot);
  if (has_fs)
    emit_byte(emitter, 0x64);
  emit_bytes(emitter, (const uint8_t[]){0x48, 0x8B, is_near ? 0x0D : 0x09}, 3); /* mov slot(%rip) or (%rcx), %rcx */
  if (is_near)
    emit_u32(emitter, (uint32_t)distance);
}

/* FF /2 and FF /4 become 8B /r: a MOV of 64 bits into RCX with the same operand. Both ignore the prefixes F2 and F3. */
void copy_target(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address)
{
  if (code->is_rip_relative) {
    copy_slot(emitter, rip_target(code, bytes, address), code->prefixes & CODE_FS);
    return;
  }
  if (code->prefixes & CODE_FS)
    emit_byte(emitter, 0x64);
  if (code->prefixes & CODE_67)
    emit_byte(emitter, 0x67);
  emit_byte(emitter, 0x48 | (code->rex & 3));
  emit_byte(emitter, 0x8B);
  emit_byte(emitter, (code->modrm & 0xC7) | GPR_RCX << 3);
  emit_bytes(emitter, bytes + code->modrm_offset + 1, code->length - code->modrm_offset - 1u);
}
