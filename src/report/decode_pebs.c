/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr decode pebs FILE: the records of a PEBS buffer, of fixed size or adaptive. Intel SDM vol. 3 (June 2016) tables
 * 18-23, 18-44, 18-55; Linux events/intel/ds.c for adaptive records, each of which contains its size.
 */
#include <string.h>

#include "lastbranch/recorder.h"
#include "report/decode_area.h"

enum {
  HEAD_SIZE = 8,
  BASIC_SIZE = 32,      /* the group that every adaptive record has */
  RECORD_MAX = 0x10000, /* an adaptive record has 16 bits for its size */
  BRANCH_SIZE = 24,
};

/* The groups of a record, as bits. */
enum group {
  GROUP_GENERAL = 1 << 0,
  GROUP_R8_TO_R15 = 1 << 1,
  GROUP_MEMORY = 1 << 2,
  GROUP_EVENTING = 1 << 3,
  GROUP_TSX = 1 << 4,
  GROUP_TSC = 1 << 5,
  GROUP_STATUS = 1 << 6,
  GROUP_COUNTERS = 1 << 7,
  GROUP_XMM = 1 << 8,
  GROUP_BRANCHES = 1 << 9,
  GROUP_TIMING = 1 << 10,
};

static const struct {
  const char *key;
  size_t place;
  unsigned group;
} words[] = {
#define WORD(name, group_)                                                                                             \
  {                                                                                                                    \
    .key = #name, .place = offsetof(struct lb_registers, name), .group = (group_)                                      \
  }
  WORD(rip, GROUP_GENERAL),           WORD(eventing_ip, GROUP_EVENTING), WORD(tsc, GROUP_TSC),
  WORD(retire_latency, GROUP_TIMING), WORD(data_address, GROUP_MEMORY),  WORD(data_source, GROUP_MEMORY),
  WORD(latency, GROUP_MEMORY),        WORD(tsx_abort, GROUP_TSX),        WORD(rflags, GROUP_GENERAL),
  WORD(rax, GROUP_GENERAL),           WORD(rbx, GROUP_GENERAL),          WORD(rcx, GROUP_GENERAL),
  WORD(rdx, GROUP_GENERAL),           WORD(rsi, GROUP_GENERAL),          WORD(rdi, GROUP_GENERAL),
  WORD(rbp, GROUP_GENERAL),           WORD(rsp, GROUP_GENERAL),          WORD(r8, GROUP_R8_TO_R15),
  WORD(r9, GROUP_R8_TO_R15),          WORD(r10, GROUP_R8_TO_R15),        WORD(r11, GROUP_R8_TO_R15),
  WORD(r12, GROUP_R8_TO_R15),         WORD(r13, GROUP_R8_TO_R15),        WORD(r14, GROUP_R8_TO_R15),
  WORD(r15, GROUP_R8_TO_R15),
#undef WORD
};

/* The Pentium 4 has the first 64-bit format in IA-32e mode (SDM 17.4.9.1). */
unsigned decode_pebs_format(const struct decode_area *area)
{
  unsigned pebs = area->choice.cpu->ds->pebs;

  return pebs == LB_PEBS_P4 && area->is_64 ? LB_PEBS_0 : pebs;
}

/* The offset of the branches in an adaptive record: after the groups that come before them. */
static size_t branches_at(uint64_t head)
{
  return BASIC_SIZE + (head & 1 ? 32u : 0) + (head & 2 ? 144u : 0) + (head & 4 ? 256u : 0);
}

/* Bits 3:0 of the head of an adaptive record are those of MSR_PEBS_DATA_CFG. */
static unsigned adaptive_groups(uint64_t head)
{
  unsigned groups = GROUP_EVENTING | GROUP_TSC | GROUP_COUNTERS;

  groups |= head & 1 ? GROUP_MEMORY | GROUP_TSX : 0;
  groups |= head & 2 ? GROUP_GENERAL | GROUP_R8_TO_R15 : 0;
  groups |= head & 4 ? GROUP_XMM : 0;
  groups |= head & 8 ? GROUP_BRANCHES : 0;
  return groups;
}

static unsigned groups_find(unsigned pebs, uint64_t head)
{
  const unsigned first = GROUP_GENERAL | GROUP_R8_TO_R15;

  switch (pebs) {
  case LB_PEBS_P4:
    return GROUP_GENERAL;
  case LB_PEBS_0:
    return first;
  case LB_PEBS_1:
    return first | GROUP_MEMORY | GROUP_STATUS;
  case LB_PEBS_2:
    return first | GROUP_MEMORY | GROUP_STATUS | GROUP_EVENTING | GROUP_TSX;
  case LB_PEBS_3:
    return first | GROUP_MEMORY | GROUP_COUNTERS | GROUP_EVENTING | GROUP_TSX | GROUP_TSC;
  default:
    return adaptive_groups(head);
  }
}

/* ---- showing ---- */

static void put_words(struct page *page, unsigned groups, const struct lb_registers *registers)
{
  uint64_t value;

  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (groups & words[i].group) {
      memcpy(&value, (const char *)registers + words[i].place, sizeof(value));
      page_put_hex(page, words[i].key, value);
    } else {
      page_absent(page, words[i].key);
    }
}

static void put_status(struct page *page, unsigned groups, uint64_t status)
{
  if (groups & GROUP_STATUS)
    page_put_hex(page, "global_status", status);
  else
    page_absent(page, "global_status");
  if (groups & GROUP_COUNTERS)
    page_put_hex(page, "applicable_counters", status);
  else
    page_absent(page, "applicable_counters");
}

static void put_xmm(struct page *page, unsigned groups, const struct lb_registers *registers)
{
  char key[8];

  for (unsigned i = 0; i < 16; i++) {
    snprintf(key, sizeof(key), "xmm%u", i);
    if (groups & GROUP_XMM)
      page_putf(page, key, "0x%016llx%016llx", (unsigned long long)registers->xmm[i][1],
                (unsigned long long)registers->xmm[i][0]);
    else
      page_absent(page, key);
  }
}

static void put_branches(struct page *page, const struct lb_cpu *cpu, const unsigned char *bytes, size_t count)
{
  static const struct page_column columns[] = {{"age", 4}, {"from", 18}, {"to", 18}, {"info", 0}, {NULL, 0}};

  page_table(page, "branches", columns);
  for (size_t i = 0; i < count; i++, bytes += BRANCH_SIZE) {
    const struct lb_raw raw = {bytes_get_u64(bytes), bytes_get_u64(bytes + 8), bytes_get_u64(bytes + 16)};
    struct lb_record record = lb_record_decode(cpu, &raw);

    page_row(page, false);
    page_put_number(page, "age", i);
    page_put_hex(page, "from", record.from);
    page_put_hex(page, "to", record.to);
    page_put_hex(page, "info", raw.info);
    page_row_end(page);
  }
  page_table_end(page);
}

static void put_record(struct decode_area *area, const unsigned char *bytes, const struct lb_registers *registers,
                       uint64_t status)
{
  uint64_t head = bytes_get_u64(bytes);
  unsigned groups = groups_find(decode_pebs_format(area), head);
  size_t branches = (head >> 24 & 0xFF) + 1;
  bool is_timed = area->choice.cpu->perf_capabilities >> 17 & 1;
  struct page *page = &area->page;
  char title[32];

  snprintf(title, sizeof(title), "Record %llu", (unsigned long long)area->records);
  page_section(page, NULL, title);
  put_words(page, groups | (is_timed ? GROUP_TIMING : 0u), registers);
  put_status(page, groups, status);
  put_xmm(page, groups, registers);
  if (groups & GROUP_BRANCHES)
    put_branches(page, area->choice.cpu, bytes + branches_at(head), branches);
  else
    page_absent(page, "branches");
  page_section_end(page);
}

/* ---- reading ---- */

/* Reads the next record; the head of an adaptive record contains its size. Returns the number of bytes, 0 at the end,
 * or -errno. */
static int record_get(struct decode_area *area, unsigned char bytes[RECORD_MAX])
{
  size_t size = lb_pebs_size(decode_pebs_format(area));
  int got, r;

  got = decode_area_get(area, bytes, size ? size : HEAD_SIZE);
  if (got < HEAD_SIZE || size)
    return got;
  size = bytes_get_u64(bytes) >> 48;
  if (size < BASIC_SIZE)
    size = BASIC_SIZE; /* an invalid size; lb_pebs_decode will report it */
  r = decode_area_get(area, bytes + HEAD_SIZE, size - HEAD_SIZE);
  return r < 0 ? r : got + r;
}

int decode_pebs(struct decode_area *area)
{
  unsigned format = decode_pebs_format(area);
  unsigned char bytes[RECORD_MAX];
  struct lb_registers registers;
  uint64_t status;
  int r = 0;

  decode_area_begin(area);
  page_put(&area->page, "format", lb_pebs_text(format));
  page_array(&area->page, "records");
  for (; decode_area_wants(area); area->records++) {
    r = record_get(area, bytes);
    if (r <= 0)
      break;
    r = lb_pebs_decode(format, bytes, (size_t)r, &registers, &status);
    if (r < 0)
      break;
    put_record(area, bytes, &registers, status);
  }
  page_array_end(&area->page);
  return r;
}
