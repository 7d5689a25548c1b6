/* SPDX-License-Identifier: Apache-2.0
 *
 * PEBS: when a counter overflows, the processor's state goes into the PEBS buffer of the DS area.
 * Intel SDM vol. 3 (June 2016) 17.4.9, 18.4.4, 18.8.1.1, tables 18-23, 18-44, 18-55; Linux events/intel/ds.c for the
 * adaptive layout. The buffer is never circular: when it is full, records are dropped.
 */
#include <string.h>

#include "base/base.h"
#include "recorder/unit.h"

#define REGISTER(field) offsetof(struct lb_registers, field)
#define STATUS_WORD 0xFFFF /* in `order`: the word that names the counters */
#define RECORD_MAX (32 + 32 + 144 + 256 + 24 * 256 + 16 + 8 * (16 + 8 + 2)) /* an adaptive record with every group */

/* Order of the fields in a record. The 32-bit record is the first ten, 4 bytes each; the records of formats 0 to 3 are
 * prefixes of this list. */
static const uint16_t order[] = {
  REGISTER(rflags),      REGISTER(rip),     REGISTER(rax),         REGISTER(rbx),       REGISTER(rcx),
  REGISTER(rdx),         REGISTER(rsi),     REGISTER(rdi),         REGISTER(rbp),       REGISTER(rsp),
  REGISTER(r8),          REGISTER(r9),      REGISTER(r10),         REGISTER(r11),       REGISTER(r12),
  REGISTER(r13),         REGISTER(r14),     REGISTER(r15),         STATUS_WORD,         REGISTER(data_address),
  REGISTER(data_source), REGISTER(latency), REGISTER(eventing_ip), REGISTER(tsx_abort), REGISTER(tsc),
};

/* Groups of an adaptive record, after the basic one; the bits are those of MSR_PEBS_DATA_CFG. */
enum { GROUP_MEMORY = 1, GROUP_GPRS = 2, GROUP_XMM = 4, GROUP_LBRS = 8, GROUP_COUNTERS = 16, GROUP_METRICS = 32 };

/* Which counters MSR_PEBS_DATA_CFG of format 6 asks for. */
#define CONFIG_GENERAL(config) ((config) >> 32 & 0xFFFF)
#define CONFIG_FIXED(config) ((config) >> 48 & 0xFF)

#define HEADER_SIZE 16    /* of the group of counters: which general ones, which fixed ones, metrics, 0 */
#define HEADER_METRICS 3u /* two words follow: the slots and PERF_METRICS */

static const uint16_t memory_order[] = {REGISTER(data_address), REGISTER(data_source), REGISTER(latency),
                                        REGISTER(tsx_abort)};
static const uint16_t gpr_order[] = {
  REGISTER(rflags), REGISTER(rip), REGISTER(rax), REGISTER(rcx), REGISTER(rdx), REGISTER(rbx),
  REGISTER(rsp),    REGISTER(rbp), REGISTER(rsi), REGISTER(rdi), REGISTER(r8),  REGISTER(r9),
  REGISTER(r10),    REGISTER(r11), REGISTER(r12), REGISTER(r13), REGISTER(r14), REGISTER(r15),
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A record being written, or being read. */
struct cursor {
  unsigned char *at;
  unsigned word; /* bytes of a field */
};

static void put(struct cursor *cursor, uint64_t value)
{
  if (cursor->word == 8)
    bytes_put_u64(cursor->at, value);
  else
    bytes_put_u32(cursor->at, (uint32_t)value);
  cursor->at += cursor->word;
}

static uint64_t *field_of(const struct lb_registers *registers, unsigned offset)
{
  return (uint64_t *)(void *)((unsigned char *)(uintptr_t)registers + offset);
}

static void put_fields(struct cursor *cursor, const struct lb_registers *registers, const uint16_t *fields, size_t n)
{
  for (size_t i = 0; i < n; i++)
    put(cursor, *field_of(registers, fields[i]));
}

/* ---- the record of this CPU ---- */

static unsigned record_format(const struct lb_recorder *r)
{
  unsigned pebs = r->cpu->ds->pebs;

  return pebs == LB_PEBS_P4 && lb_recorder_ds_is_64(r) ? LB_PEBS_0 : pebs;
}

static bool is_adaptive(unsigned format)
{
  return format >= LB_PEBS_4 && format <= LB_PEBS_6;
}

/* Does not use __builtin_popcountll, which calls into libgcc: the unit needs nothing but memcpy and similar
 * functions. */
static unsigned ones(uint64_t bits)
{
  unsigned count = 0;

  for (; bits; bits &= bits - 1)
    count++;
  return count;
}

/* The size without the group of counters, which is the last one. */
static size_t adaptive_head_size(uint64_t config)
{
  size_t size = 32;

  size += config & GROUP_MEMORY ? 8 * LENGTH(memory_order) : 0;
  size += config & GROUP_GPRS ? 8 * LENGTH(gpr_order) : 0;
  size += config & GROUP_XMM ? 256 : 0;
  size += config & GROUP_LBRS ? 24 * ((config >> 24 & 0xFF) + 1) : 0;
  return size;
}

static size_t adaptive_size(uint64_t config)
{
  size_t size = adaptive_head_size(config);

  if (!(config & (GROUP_COUNTERS | GROUP_METRICS)))
    return size;
  size += HEADER_SIZE;
  size += config & GROUP_COUNTERS ? 8 * (size_t)(ones(CONFIG_GENERAL(config)) + ones(CONFIG_FIXED(config))) : 0;
  size += config & GROUP_METRICS ? 16 : 0;
  return size;
}

/* If MSR_PEBS_DATA_CFG asks for more branches than there are, the rest of the group is zero. */
static void put_lbrs(struct lb_recorder *r, struct cursor *cursor, unsigned count)
{
  for (unsigned age = 0; age < count; age++) {
    struct lb_raw raw = {0};

    if (age < r->depth)
      raw = slot_raw(&r->entries[lbr_index(r, age)]);
    put(cursor, raw.from);
    put(cursor, raw.to);
    put(cursor, raw.info);
  }
}

/* Linux perf_event.h, struct pebs_cntr_header; events/intel/ds.c, __setup_pebs_counter_group. */
static void put_counters(const struct lb_recorder *r, struct cursor *cursor, uint64_t config)
{
  uint64_t general = config & GROUP_COUNTERS ? CONFIG_GENERAL(config) : 0;
  uint64_t fixed = config & GROUP_COUNTERS ? CONFIG_FIXED(config) : 0;

  put(cursor, general | fixed << 32);
  put(cursor, config & GROUP_METRICS ? HEADER_METRICS : 0);
  for (unsigned i = 0; i < r->cpu->pmu->counters; i++)
    if (general >> i & 1)
      put(cursor, r->pmu.counter[i]);
  for (unsigned i = 0; i < r->cpu->pmu->fixed; i++)
    if (fixed >> i & 1)
      put(cursor, r->pmu.fixed[i]);
  if (config & GROUP_METRICS) {
    put(cursor, r->pmu.fixed[3]);
    put(cursor, metrics_get(r));
  }
}

/* MSR_PEBS_DATA_CFG without the counters that do not exist. */
static uint64_t data_config(const struct lb_recorder *r)
{
  return r->ds.data_cfg & (UINT32_MAX | unit_mask(r->cpu->pmu->counters) << 32 | (pmu_fixed_mask(r) & 0xFF) << 48);
}

/* The groups of a record for these counters. MSR_PEBS_DATA_CFG applies only if one of them asks for it. */
static uint64_t record_config(const struct lb_recorder *r, uint64_t counters)
{
  for (unsigned i = 0; i < r->cpu->pmu->counters; i++)
    if (counters >> i & 1 && r->pmu.select[i] & EVTSEL_ADAPTIVE)
      return data_config(r);
  for (unsigned i = 0; i < r->cpu->pmu->fixed; i++)
    if (counters >> (32 + i) & 1 && r->pmu.fixed_ctrl & FIXED_ADAPTIVE(i))
      return data_config(r);
  return 0;
}

size_t pebs_record_size(const struct lb_recorder *r, uint64_t counters)
{
  unsigned format = record_format(r);

  return is_adaptive(format) ? adaptive_size(record_config(r, counters)) : lb_pebs_size(format);
}

/* The basic group has the address of the instruction that caused the event; the next one is in the registers' group. */
static void put_adaptive(struct lb_recorder *r, struct cursor *cursor, const struct lb_registers *registers,
                         uint64_t counters)
{
  uint64_t config = record_config(r, counters);
  uint64_t latency = unit_has_timed_pebs(r) ? registers->retire_latency & 0xFFFF : 0;

  put(cursor, (config & UINT32_MAX) | latency << 32 | (uint64_t)adaptive_size(config) << 48);
  put(cursor, registers->eventing_ip);
  put(cursor, counters);
  put(cursor, registers->tsc);
  if (config & GROUP_MEMORY)
    put_fields(cursor, registers, memory_order, LENGTH(memory_order));
  if (config & GROUP_GPRS)
    put_fields(cursor, registers, gpr_order, LENGTH(gpr_order));
  for (unsigned i = 0; i < 32 && config & GROUP_XMM; i++)
    put(cursor, registers->xmm[i / 2][i % 2]);
  if (config & GROUP_LBRS)
    put_lbrs(r, cursor, (config >> 24 & 0xFF) + 1);
  if (config & (GROUP_COUNTERS | GROUP_METRICS))
    put_counters(r, cursor, config);
}

static void put_fixed(struct cursor *cursor, const struct lb_registers *registers, size_t size, uint64_t status)
{
  for (size_t i = 0; i < size / cursor->word; i++)
    put(cursor, order[i] == STATUS_WORD ? status : *field_of(registers, order[i]));
}

/* Writes the record that is due to `bytes`; returns its size. */
static size_t record_pack(struct lb_recorder *r, unsigned char *bytes, const struct lb_registers *registers)
{
  unsigned format = record_format(r);
  struct cursor cursor = {.at = bytes, .word = format == LB_PEBS_P4 ? 4 : 8};

  if (is_adaptive(format)) {
    put_adaptive(r, &cursor, registers, r->ds.due);
  } else {
    /* 0x90: GLOBAL_STATUS, from format 3 on only the counters that the record is for */
    uint64_t status = format == LB_PEBS_3 ? r->ds.due : r->pmu.status | r->ds.due;
    put_fixed(&cursor, registers, lb_pebs_size(format), status);
  }
  return (size_t)(cursor.at - bytes);
}

/* ---- the buffer ---- */

/* Bits 35:32 of PEBS_ENABLE are fixed counters, except on the big cores before Ice Lake, where they are load
 * latency. */
uint64_t pebs_samplers(const struct lb_recorder *r)
{
  const struct lb_pmu *pmu = r->cpu->pmu;
  bool is_latency = lb_cpu_has(r->cpu, LB_FEATURE_LOAD_LATENCY) && pmu->version < 5;
  uint64_t fixed = is_latency ? 0 : pmu->pebs_enable & unit_mask(pmu->fixed) << 32;

  return unit_mask(pmu->pebs_counters) | fixed;
}

/* Offset of a fixed counter's reset. Linux intel_ds.h: eight general counters come before them, 32 from format 5 on. */
static unsigned fixed_resets(const struct lb_recorder *r)
{
  return r->cpu->ds->pebs >= LB_PEBS_5 ? 0x140 : 0x80;
}

/* Including the counters' resets: figures 17-5, 17-8, 18-22. */
size_t pebs_area_size(const struct lb_recorder *r)
{
  const struct lb_pmu *pmu = r->cpu->pmu;

  if (!lb_recorder_ds_is_64(r))
    return 0x30;
  if (pebs_samplers(r) >> 32)
    return fixed_resets(r) + 8 * (size_t)pmu->fixed;
  return pmu->pebs_counters > 1 ? 0x40 + 8 * (size_t)pmu->pebs_counters : 0x50;
}

static int reset_read(struct lb_recorder *r, unsigned offset, unsigned width, uint64_t *counter)
{
  unsigned char bytes[8];
  int result = ds_access(r, r->ds.area + offset, bytes, sizeof(bytes), false);

  if (result >= 0)
    *counter = bytes_get_u64(bytes) & unit_mask(width);
  return result;
}

/* Reloads each counter that was due from its reset field. The Pentium 4 has one such field, for its one PEBS counter.
 */
static int counters_reload(struct lb_recorder *r)
{
  const struct lb_pmu *pmu = r->cpu->pmu;
  unsigned resets = ds_layout(lb_recorder_ds_is_64(r))->resets;
  int result = 0;

  for (unsigned i = 0; i < pmu->counters && result >= 0; i++)
    if (r->ds.due >> i & 1)
      result = reset_read(r, resets + (pmu->kind == LB_PMU_P4 ? 0 : 8 * i), pmu->width, &r->pmu.counter[i]);
  for (unsigned i = 0; i < pmu->fixed && result >= 0; i++)
    if (r->ds.due >> (32 + i) & 1)
      result = reset_read(r, fixed_resets(r) + 8 * i, pmu->fixed_width, &r->pmu.fixed[i]);
  return result;
}

/* PEBS_ENABLE.OUTPUT: the record becomes part of the Intel PT trace, which is not modelled, and the counters are
 * reloaded from registers. Linux events/intel/ds.c, intel_pmu_pebs_via_pt_enable. */
static bool output_is_pt(const struct lb_recorder *r)
{
  return r->cpu->perf_capabilities >> 16 & 1 && r->ds.pebs_enable & PEBS_OUTPUT_PT;
}

static void record_to_pt(struct lb_recorder *r)
{
  uint64_t due = r->ds.due;
  bool interrupts = r->ds.pebs_enable & PEBS_PMI_EACH;

  for (unsigned i = 0; i < r->cpu->pmu->counters; i++)
    if (due >> i & 1)
      r->pmu.counter[i] = r->ds.reload[i];
  for (unsigned i = 0; i < r->cpu->pmu->fixed; i++)
    if (due >> (32 + i) & 1)
      r->pmu.fixed[i] = r->ds.reload_fixed[i];
  r->pmu.status &= ~due;
  r->ds.due = 0;
  if (interrupts)
    pmi_request(r, PMI_PEBS);
}

static int index_write(struct lb_recorder *r, uint64_t index)
{
  bool is_64 = lb_recorder_ds_is_64(r);
  unsigned word = ds_layout(is_64)->word;
  unsigned char bytes[8];

  bytes_put_u64(bytes, index);
  return ds_access(r, r->ds.area + 5 * word, bytes, word, true);
}

/* Returns 1 when the record went into the buffer, 0 when there was no room. */
static int record_store(struct lb_recorder *r, struct lb_ds_area *area, const struct lb_registers *registers)
{
  unsigned char bytes[RECORD_MAX];
  size_t size = record_pack(r, bytes, registers);
  uint64_t index = area->pebs_index;

  if (index < area->pebs_base || index > area->pebs_maximum || area->pebs_maximum - index < size) {
    if (lb_cpu_quirk(r->cpu, LB_QUIRK_PEBS_BOUNDS_STATUS)) /* SDM 18.7.1.3 */
      pmi_buffer_overflow(r);
    return 0;
  }
  int result = ds_access(r, index, bytes, size, true);
  if (result < 0)
    return result;
  area->pebs_index = index + size;
  result = index_write(r, area->pebs_index);
  return result < 0 ? result : 1;
}

int lb_recorder_pebs_assist(struct lb_recorder *r, const struct lb_registers *registers)
{
  struct lb_ds_area area;
  int written = 0;
  bool interrupts = false;

  if (!r->ds.due || !ds_is_available(r))
    goto out;
  if (output_is_pt(r)) {
    record_to_pt(r);
    return 0;
  }
  written = ds_area_read(r, &area);
  if (written >= 0)
    written = record_store(r, &area, registers);
  if (written < 0 || counters_reload(r) < 0) {
    written = LB_E_DS_MEMORY;
    goto out;
  }
  r->pmu.status &= ~r->ds.due;
  interrupts = written && area.pebs_index >= area.pebs_threshold;
out:
  r->ds.due = 0;
  if (interrupts) {
    pmi_buffer_overflow(r);
    pmi_request(r, PMI_PEBS);
  }
  return written;
}

/* ---- decoding ---- */

static int decode_fixed(unsigned pebs, const unsigned char *bytes, size_t size, struct lb_registers *registers,
                        uint64_t *status)
{
  unsigned word = pebs == LB_PEBS_P4 ? 4 : 8;
  size_t length = lb_pebs_size(pebs);

  if (size < length)
    return LB_E_TRUNCATED;
  for (size_t i = 0; i < length / word; i++) {
    uint64_t value = word == 8 ? bytes_get_u64(bytes + 8 * i) : bytes_get_u32(bytes + 4 * i);

    *(order[i] == STATUS_WORD ? status : field_of(registers, order[i])) = value;
  }
  return (int)length;
}

static const unsigned char *get_fields(const unsigned char *at, struct lb_registers *registers, const uint16_t *fields,
                                       size_t n)
{
  for (size_t i = 0; i < n; i++, at += 8)
    *field_of(registers, fields[i]) = bytes_get_u64(at);
  return at;
}

/* Size of the group of counters at `at`, of which `left` bytes are available. Returns 0 if the bytes end before its
 * header does. */
static size_t counters_size(const unsigned char *at, size_t left)
{
  if (left < HEADER_SIZE)
    return 0;
  uint64_t counters = bytes_get_u64(at);
  bool has_metrics = bytes_get_u32(at + 8) == HEADER_METRICS;
  return HEADER_SIZE + 8 * (size_t)ones(counters) + (has_metrics ? 16 : 0);
}

static int decode_adaptive(const unsigned char *bytes, size_t size, struct lb_registers *registers, uint64_t *status)
{
  if (size < 32)
    return LB_E_TRUNCATED;
  uint64_t head = bytes_get_u64(bytes);
  size_t length = head >> 48, expected = adaptive_head_size(head & UINT32_MAX);
  if (head & (GROUP_COUNTERS | GROUP_METRICS)) {
    if (expected + HEADER_SIZE > size)
      return LB_E_TRUNCATED;
    expected += counters_size(bytes + expected, size - expected);
  }
  if (length != expected)
    return LB_E_NO_FIELD;
  if (size < length)
    return LB_E_TRUNCATED;
  registers->retire_latency = head >> 32 & 0xFFFF;
  registers->eventing_ip = bytes_get_u64(bytes + 8);
  *status = bytes_get_u64(bytes + 16);
  registers->tsc = bytes_get_u64(bytes + 24);
  const unsigned char *at = bytes + 32;
  if (head & GROUP_MEMORY)
    at = get_fields(at, registers, memory_order, LENGTH(memory_order));
  if (head & GROUP_GPRS)
    at = get_fields(at, registers, gpr_order, LENGTH(gpr_order));
  for (unsigned i = 0; i < 32 && head & GROUP_XMM; i++, at += 8)
    registers->xmm[i / 2][i % 2] = bytes_get_u64(at);
  return (int)length;
}

int lb_pebs_decode(unsigned pebs, const void *bytes, size_t size, struct lb_registers *ret_registers,
                   uint64_t *ret_status)
{
  struct lb_registers registers = {0};
  uint64_t status = 0;
  int result = LB_E_NO_FIELD;

  if (is_adaptive(pebs))
    result = decode_adaptive(bytes, size, &registers, &status);
  else if (pebs < LB_PEBS_NONE)
    result = decode_fixed(pebs, bytes, size, &registers, &status);
  if (result < 0)
    return result;
  *ret_registers = registers;
  *ret_status = status;
  return result;
}
