/* SPDX-License-Identifier: Apache-2.0
 *
 * The length and the parts of an instruction in 64-bit mode: SDM vol. 2, chapter 2 and appendix A. Freestanding.
 */
#include "process/process.h"

enum { REX_W = 8 };

/* The bytes that follow an opcode. */
enum opcode_class {
  O,          /* nothing */
  M = 1 << 0, /* a ModRM byte */
  B = 1 << 1, /* an 8-bit immediate */
  Z = 1 << 2, /* a 16- or 32-bit immediate */
  N = 1 << 3, /* it is no opcode of 64-bit mode */
  L = 1 << 4, /* a closer look is needed: a prefix, an escape, or a length that depends on more than this */
  F = 1 << 5, /* it may be a branch */
  MB = M | B,
  MZ = M | Z,
  ML = M | L,
  MBL = M | B | L,
  BF = B | F,
  ZF = Z | F,
};

/* Opcodes of one byte, and those after 0F. */
/* clang-format off */
static const uint8_t class_1[256] = {
  M , M , M , M , B , Z , N , N , M , M , M , M , B , Z , N , L,
  M , M , M , M , B , Z , N , N , M , M , M , M , B , Z , N , N,
  M , M , M , M , B , Z , L , N , M , M , M , M , B , Z , L , N,
  M , M , M , M , B , Z , L , N , M , M , M , M , B , Z , L , N,
  L , L , L , L , L , L , L , L , L , L , L , L , L , L , L , L,
  O , O , O , O , O , O , O , O , O , O , O , O , O , O , O , O,
  N , N , N , M , L , L , L , L , Z , MZ, B , MB, O , O , O , O,
  BF, BF, BF, BF, BF, BF, BF, BF, BF, BF, BF, BF, BF, BF, BF, BF,
  MB, MZ, N , MB, M , M , M , M , M , M , M , M , M , M , M , ML,
  O , O , O , O , O , O , O , O , O , O , N , O , O , O , O , O,
  L , L , L , L , O , O , O , O , B , Z , O , O , O , O , O , O,
  B , B , B , B , B , B , B , B , L , L , L , L , L , L , L , L,
  MB, MB, L , F , L , L , MB, MZ, L , O , L , F , F , BF, N , F,
  M , M , M , M , N , N , N , O , M , M , M , M , M , M , M , M,
  BF, BF, BF, BF, B , B , B , B , ZF, ZF, N , BF, O , O , O , O,
  L , F , L , L , F , O , ML, ML, O , O , O , O , O , O , M , ML
};
static const uint8_t class_0f[256] = {
  M , M , M , M , M , L , O , L , O , O , M , L , M , M , O , MBL,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , M,
  ML, ML, ML, ML, M , M , M , M , M , M , M , M , M , M , M , M,
  O , O , O , O , L , L , M , O , ML, M , ML, M , M , M , M , M,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , M,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , M,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , M,
  MB, MB, MB, MB, M , M , M , O , ML, M , M , M , M , M , M , M,
  ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF, ZF,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , M,
  O , O , O , M , MB, M , M , M , O , O , O , M , MB, M , M , M,
  M , M , M , M , M , M , M , M , M , ML, MB, M , M , M , M , M,
  M , M , MB, M , MB, MB, MB, M , O , O , O , O , O , O , O , O,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , M,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , M,
  M , M , M , M , M , M , M , M , M , M , M , M , M , M , M , ML
};
/* clang-format on */

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
    return class_1[code->opcode] & M;
  case 1:
    return class_0f[code->opcode] & M;
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
  return class_1[opcode] & B ? 1 : class_1[opcode] & Z ? full : 0;
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
    return class_0f[code->opcode] & B ? 1 : 0;
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

/* Decodes the common instructions: no prefix but REX, and nothing that needs a closer look. Returns 0 for any other. At
 * least 15 bytes must be readable. The result is filled in place: a copy would load several bytes at once, and wait
 * until their stores are done. */
static unsigned decode_common(const uint8_t *bytes, struct code *ret_code)
{
  uint8_t rex = (bytes[0] & 0xF0) == 0x40 ? bytes[0] : 0;
  struct cursor cursor = {bytes, 15, rex != 0};
  uint8_t opcode = bytes[cursor.at++], map = opcode == 0x0F;

  if (map)
    opcode = bytes[cursor.at++];
  unsigned class = map ? class_0f[opcode] : class_1[opcode];
  if (class & (L | N))
    return 0;
  *ret_code = (struct code){.rex = rex, .map = map, .opcode = opcode};
  if (class & M)
    read_modrm(&cursor, ret_code);
  ret_code->imm_size = class & B ? 1 : class & Z ? 4 : 0;
  ret_code->imm_offset = (uint8_t)cursor.at;
  if (class & F)
    ret_code->flow = map ? flow_1(ret_code) : flow_0(ret_code);
  return ret_code->length = (uint8_t)(cursor.at + ret_code->imm_size);
}

unsigned code_decode(const uint8_t *bytes, size_t size, struct code *ret_code)
{
  unsigned length = size >= 15 ? decode_common(bytes, ret_code) : 0;

  if (length)
    return length;
  struct cursor cursor = {bytes, size, 0};
  struct code code = {0};
  read_prefixes(&cursor, &code);
  read_opcode(&cursor, &code);
  if (code.map == 0 && !code.encoding && class_1[code.opcode] & N)
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
