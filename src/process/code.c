/* SPDX-License-Identifier: Apache-2.0
 *
 * The length and the parts of an instruction in 64-bit mode: SDM vol. 2, chapter 2 and appendix A. Freestanding. Tables
 * are bit maps of opcodes, a row of sixteen each.
 */
#include "process/process.h"

enum { REX_W = 8 };

/* One-byte opcodes: with ModRM, with an 8-bit and with a 16- or 32-bit immediate, and invalid ones. */
static const uint16_t modrm_1[16] = {0x0F0F, 0x0F0F, 0x0F0F, 0x0F0F, 0,      0,      0x0A08, 0,
                                     0xFFFB, 0,      0,      0,      0x00C3, 0xFF0F, 0,      0xC0C0};
static const uint16_t imm8_1[16] = {0x1010, 0x1010, 0x1010, 0x1010, 0,      0, 0x0C00, 0xFFFF,
                                    0x0009, 0,      0x0100, 0x00FF, 0x2043, 0, 0x08FF, 0};
static const uint16_t immz_1[16] = {0x2020, 0x2020, 0x2020, 0x2020, 0,      0, 0x0300, 0,
                                    0x0002, 0,      0x0200, 0,      0x0080, 0, 0,      0};
static const uint16_t none_1[16] = {0x40C0, 0xC0C0, 0x8080, 0x8080, 0,      0,      0x0007, 0,
                                    0x0004, 0x0400, 0,      0,      0x4000, 0x0070, 0x0400, 0};
/* 0F xx: without ModRM, with an 8-bit immediate. */
static const uint16_t plain_0f[16] = {0x4BE0, 0, 0, 0x00BF, 0, 0, 0, 0x0080, 0xFFFF, 0, 0x0707, 0, 0xFF00, 0, 0, 0};
static const uint16_t imm8_0f[16] = {0x8000, 0, 0, 0, 0, 0, 0, 0x000F, 0, 0, 0x1010, 0x0400, 0x0074, 0, 0, 0};

static bool in_map(const uint16_t map[16], unsigned opcode)
{
  return map[opcode >> 4] >> (opcode & 15) & 1;
}

/* The bytes being decoded. `at` beyond `size` means that there were too few. */
struct cursor {
  const uint8_t *bytes;
  size_t size, at;
};

static uint8_t next(struct cursor *cursor)
{
  uint8_t byte = cursor->at < cursor->size ? cursor->bytes[cursor->at] : 0;
  cursor->at++;
  return byte;
}

static uint8_t peek(const struct cursor *cursor)
{
  return cursor->at < cursor->size ? cursor->bytes[cursor->at] : 0;
}

/* ---- prefixes ---- */

static uint8_t prefix_of(uint8_t byte)
{
  switch (byte) {
  case 0x66:
    return CODE_66;
  case 0x67:
    return CODE_67;
  case 0xF2:
    return CODE_F2;
  case 0xF3:
    return CODE_F3;
  case 0xF0:
    return CODE_LOCK;
  case 0x64:
    return CODE_FS;
  case 0x65:
    return CODE_GS;
  default:
    return 0;
  }
}

static bool is_prefix(uint8_t byte)
{
  return prefix_of(byte) || byte == 0x26 || byte == 0x2E || byte == 0x36 || byte == 0x3E;
}

/* A REX prefix has an effect only right before the opcode. */
static void read_prefixes(struct cursor *cursor, struct code *code)
{
  for (; cursor->at < 15; cursor->at++) {
    bool is_rex = (peek(cursor) & 0xF0) == 0x40;
    if (!is_rex && !is_prefix(peek(cursor)))
      return;
    code->rex = is_rex ? peek(cursor) : 0;
    code->prefixes |= prefix_of(peek(cursor));
  }
}

/* ---- opcode ---- */

/* R, X and B are stored inverted. */
static uint8_t rex_of(uint8_t inverted, bool is_wide)
{
  return (uint8_t)(0x40 | (~inverted >> 5 & 7) | (is_wide ? REX_W : 0));
}

static void read_vex(struct cursor *cursor, struct code *code, uint8_t first)
{
  code->encoding = first;
  uint8_t byte = next(cursor);
  if (first == 0xC5) {
    code->map = 1;
    code->rex = rex_of(byte | 0x60, false);
  } else {
    uint8_t last = next(cursor);
    code->map = byte & 31;
    code->rex = rex_of(byte, last & 0x80);
  }
  code->opcode = next(cursor);
}

static void read_evex(struct cursor *cursor, struct code *code)
{
  code->encoding = 0x62;
  uint8_t first = next(cursor);
  uint8_t second = next(cursor);
  next(cursor);
  code->map = first & 7;
  code->rex = rex_of(first, second & 0x80);
  code->opcode = next(cursor);
}

static void read_escape(struct cursor *cursor, struct code *code)
{
  uint8_t byte = next(cursor);
  code->map = byte == 0x38 ? 2 : byte == 0x3A ? 3 : 1;
  code->opcode = code->map == 1 ? byte : next(cursor);
}

/* 8F is POP if the reg field of its second byte, read as ModRM, is 0. Otherwise it is XOP, if the map field is valid
 * too. */
static bool is_xop(const struct cursor *cursor)
{
  return (peek(cursor) & 0x38) && (peek(cursor) & 31) >= 8;
}

static void read_opcode(struct cursor *cursor, struct code *code)
{
  uint8_t byte = next(cursor);
  if (byte == 0x0F)
    read_escape(cursor, code);
  else if (byte == 0xC4 || byte == 0xC5)
    read_vex(cursor, code, byte);
  else if (byte == 0x62)
    read_evex(cursor, code);
  else if (byte == 0x8F && is_xop(cursor))
    read_vex(cursor, code, byte);
  else
    code->opcode = byte;
}

/* ---- operands ---- */

static bool has_modrm(const struct code *code)
{
  if (code->encoding)
    return !(code->map == 1 && code->opcode == 0x77 && code->encoding != 0x62);
  switch (code->map) {
  case 0:
    return in_map(modrm_1, code->opcode);
  case 1:
    return !in_map(plain_0f, code->opcode);
  default:
    return true;
  }
}

static void read_modrm(struct cursor *cursor, struct code *code)
{
  code->modrm_offset = (uint8_t)cursor->at;
  code->modrm = next(cursor);
  unsigned mod = code->modrm >> 6, rm = code->modrm & 7;
  if (mod == 3)
    return;
  unsigned base = rm;
  if (rm == 4)
    base = next(cursor) & 7;
  code->is_rip_relative = mod == 0 && rm == 5;
  code->disp_size = mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
  code->disp_offset = (uint8_t)cursor->at;
  cursor->at += code->disp_size;
}

/* MOV between the accumulator and an absolute address. */
static void read_offset(struct cursor *cursor, struct code *code)
{
  code->disp_size = code->prefixes & CODE_67 ? 4 : 8;
  code->disp_offset = (uint8_t)cursor->at;
  cursor->at += code->disp_size;
}

/* MOV to and from control and debug registers ignore the mod field of their ModRM byte. */
static bool ignores_mod(const struct code *code)
{
  return code->map == 1 && !code->encoding && code->opcode >= 0x20 && code->opcode <= 0x23;
}

static unsigned immediate_1(const struct code *code)
{
  unsigned opcode = code->opcode;
  unsigned full = code->prefixes & CODE_66 && !(code->rex & REX_W) ? 2 : 4;
  bool is_test = (code->modrm & 0x30) == 0;
  if (opcode == 0xC8)
    return 3;
  if (opcode == 0xC2 || opcode == 0xCA)
    return 2;
  if (opcode >= 0xB8 && opcode <= 0xBF)
    return code->rex & REX_W ? 8 : full;
  if (opcode == 0xE8 || opcode == 0xE9)
    return 4; /* as on Intel: prefix 66 does not shorten it */
  if (opcode == 0xF6)
    return is_test ? 1 : 0;
  if (opcode == 0xF7)
    return is_test ? full : 0;
  return in_map(imm8_1, opcode) ? 1 : in_map(immz_1, opcode) ? full : 0;
}

static unsigned immediate_size(const struct code *code)
{
  if (code->encoding == 0x8F)
    return code->map == 8 ? 1 : code->map == 10 ? 4 : 0;
  switch (code->map) {
  case 0:
    return immediate_1(code);
  case 1:
    if (!code->encoding && code->opcode >= 0x80 && code->opcode <= 0x8F)
      return 4;
    if (!code->encoding && code->opcode == 0x78 && (code->prefixes & (CODE_66 | CODE_F2)))
      return 2; /* SSE4A */
    return in_map(imm8_0f, code->opcode) ? 1 : 0;
  case 3:
    return 1;
  default:
    return 0;
  }
}

/* ---- flow ---- */

static uint8_t flow_ff(const struct code *code)
{
  static const uint8_t flows[8] = {CODE_PLAIN,   CODE_PLAIN, CODE_CALL_IND, CODE_FAR,
                                   CODE_JMP_IND, CODE_FAR,   CODE_PLAIN,    CODE_PLAIN};
  return flows[code->modrm >> 3 & 7];
}

static uint8_t flow_0(const struct code *code)
{
  unsigned opcode = code->opcode;
  if (opcode >= 0x70 && opcode <= 0x7F)
    return CODE_JCC;
  switch (opcode) {
  case 0xC2:
  case 0xC3:
    return CODE_RET;
  case 0xCA:
  case 0xCB:
  case 0xCF:
    return CODE_FAR;
  case 0xCC:
  case 0xCD:
  case 0xF1:
    return CODE_INT;
  case 0xE0:
  case 0xE1:
  case 0xE2:
  case 0xE3:
    return CODE_LOOP;
  case 0xE8:
    return CODE_CALL;
  case 0xE9:
  case 0xEB:
    return CODE_JMP;
  case 0xF4:
    return CODE_UD;
  case 0xFF:
    return flow_ff(code);
  default:
    return CODE_PLAIN;
  }
}

static uint8_t flow_1(const struct code *code)
{
  unsigned opcode = code->opcode;
  if (opcode >= 0x80 && opcode <= 0x8F)
    return CODE_JCC;
  switch (opcode) {
  case 0x05:
    return CODE_SYSCALL;
  case 0x34:
    return CODE_INT;
  case 0x07:
  case 0x35:
    return CODE_FAR;
  case 0x0B:
  case 0xB9:
  case 0xFF:
    return CODE_UD;
  default:
    return CODE_PLAIN;
  }
}

/* ---- whole ---- */

unsigned code_decode(const uint8_t *bytes, size_t size, struct code *ret_code)
{
  struct cursor cursor = {bytes, size, 0};
  struct code code = {0};
  read_prefixes(&cursor, &code);
  read_opcode(&cursor, &code);
  if (code.map == 0 && !code.encoding && in_map(none_1, code.opcode))
    return 0;
  if (has_modrm(&code)) {
    read_modrm(&cursor, &code);
    if (ignores_mod(&code)) {
      code.disp_size = 0;
      code.is_rip_relative = false;
      cursor.at = code.modrm_offset + 1u;
    }
  }
  if (code.map == 0 && !code.encoding && code.opcode >= 0xA0 && code.opcode <= 0xA3)
    read_offset(&cursor, &code);
  code.imm_size = (uint8_t)immediate_size(&code);
  code.imm_offset = (uint8_t)cursor.at;
  cursor.at += code.imm_size;
  if (cursor.at > size || cursor.at > 15)
    return 0;
  code.length = (uint8_t)cursor.at;
  code.flow = code.encoding ? CODE_PLAIN : code.map == 0 ? flow_0(&code) : code.map == 1 ? flow_1(&code) : CODE_PLAIN;
  *ret_code = code;
  return code.length;
}
