/* SPDX-License-Identifier: Apache-2.0
 *
 * Record formats: decodes FROM, TO and INFO, and says which values WRMSR accepts for them. lbr.c encodes them. Intel
 * SDM vol. 3 (June 2016) 17.4.8.1, tables 17-7 to 17-9, 17-14; Linux events/intel/lbr.c, events/amd/lbr.c. The bits
 * that fault were measured on Ivy Bridge, Broadwell and Skylake (VirtualBox CPU profiles).
 */
#include "recorder/unit.h"

static uint64_t sign_extend(uint64_t value, unsigned bits)
{
  return (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
}

static bool is_bit(uint64_t value, unsigned bit)
{
  return value >> bit & 1;
}

/* Whether bits high:47 are all the same. */
static bool is_sign_extended(uint64_t value, unsigned high)
{
  uint64_t mask = unit_mask(high + 1) & ~unit_mask(47);

  return (value & mask) == 0 || (value & mask) == mask;
}

uint64_t format_canonical(uint64_t value)
{
  return sign_extend(value, 48);
}

/* ---- WRMSR ---- */

/* Highest bit of FROM that belongs to the address: the flags above it are free. */
static unsigned from_top(const struct lb_recorder *r)
{
  switch (r->cpu->format) {
  case LB_FORMAT_EIP_FLAGS:
  case LB_FORMAT_LIP_CYCLES:
    return 62;
  case LB_FORMAT_EIP_TSX: /* HSM182, BDM127: with TSX fused off bits 62:61 must be copies of bit 47 */
    return unit_has_tsx(r) ? 60 : 62;
  default:
    return 63;
  }
}

bool format_from_is_legal(const struct lb_recorder *r, uint64_t value)
{
  return r->cpu->lbr->write_rule != LB_WRITE_CANONICAL || is_sign_extended(value, from_top(r));
}

bool format_to_is_legal(const struct lb_recorder *r, uint64_t value)
{
  if (r->cpu->lbr->write_rule != LB_WRITE_CANONICAL || r->cpu->format == LB_FORMAT_LIP_CYCLES)
    return true;
  return is_sign_extended(value, 63);
}

bool format_info_is_legal(const struct lb_recorder *r, uint64_t value)
{
  uint64_t reserved = unit_mask(61) & ~unit_mask(16);

  return r->cpu->lbr->write_rule != LB_WRITE_CANONICAL || !(value & reserved);
}

/* ---- decoding ---- */

static void decode_from_flags(struct lb_record *record, unsigned flags)
{
  record->from = sign_extend(record->raw.from, 64 - flags);
  record->has_mispredicted = true;
  record->is_mispredicted = is_bit(record->raw.from, 63);
}

static void decode_info(const struct lb_cpu *cpu, struct lb_record *record)
{
  uint64_t info = record->raw.info;

  record->has_mispredicted = true;
  record->is_mispredicted = is_bit(info, 63);
  record->has_tsx = lb_cpu_has(cpu, LB_FEATURE_TSX);
  record->is_in_tsx = is_bit(info, 62);
  record->is_tsx_abort = is_bit(info, 61);
  record->has_cycles = true;
  record->cycles = (uint16_t)info;
}

static void decode_arch(const struct lb_cpu *cpu, struct lb_record *record)
{
  decode_info(cpu, record);
  record->has_mispredicted = cpu->leaf_1c[2] & 1;
  record->has_cycles = (cpu->leaf_1c[2] & 2) && is_bit(record->raw.info, 60);
  record->has_type = cpu->leaf_1c[2] & 4;
  record->type = record->raw.info >> 56 & 0xF;
}

/* Not a record: neither retired nor speculative, or, by erratum 1452, one with TO[61]. Linux events/amd/lbr.c. */
static void decode_amd_v2(const struct lb_cpu *cpu, struct lb_record *record)
{
  decode_from_flags(record, 6);
  record->to = sign_extend(record->raw.to, 58);
  record->is_empty =
    !(record->raw.to >> 62) || (lb_cpu_quirk(cpu, LB_QUIRK_ERRATUM_1452) && is_bit(record->raw.to, 61));
}

struct lb_record format_decode(const struct lb_cpu *cpu, unsigned format, const struct lb_raw *raw)
{
  struct lb_record record = {.raw = *raw, .from = raw->from, .to = raw->to, .kind = LB_BRANCH_KINDS};

  record.is_empty = !raw->from && !raw->to && !raw->info;
  switch (format) {
  case LB_FORMAT_EIP_FLAGS:
    decode_from_flags(&record, 1);
    break;
  case LB_FORMAT_EIP_TSX:
    decode_from_flags(&record, 3);
    record.has_tsx = true;
    record.is_in_tsx = is_bit(raw->from, 62);
    record.is_tsx_abort = is_bit(raw->from, 61);
    break;
  case LB_FORMAT_LIP_CYCLES:
    decode_from_flags(&record, 1);
    record.to = sign_extend(raw->to, 48);
    record.has_cycles = true;
    record.cycles = (uint16_t)(raw->to >> 48);
    break;
  case LB_FORMAT_INFO:
  case LB_FORMAT_LIP_INFO:
    decode_info(cpu, &record);
    break;
  case LB_FORMAT_ARCH:
    decode_arch(cpu, &record);
    break;
  case LB_FORMAT_AMD_BRS: /* TO[63:61] are reserved */
    record.to = sign_extend(raw->to, 61);
    break;
  case LB_FORMAT_AMD_V2:
    decode_amd_v2(cpu, &record);
    break;
  default:
    break;
  }
  return record;
}

struct lb_record lb_record_decode(const struct lb_cpu *cpu, const struct lb_raw *raw)
{
  return format_decode(cpu, cpu->format, raw);
}
