/* SPDX-License-Identifier: Apache-2.0
 *
 * The DS area: where BTS and PEBS store their records in the guest's memory. Decoding what is there, and checking how
 * the guest has set it up. recorder.h includes this header.
 */
#ifndef LASTBRANCH_DS_H
#define LASTBRANCH_DS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lb_recorder;
struct lb_registers;

struct lb_ds_area {
  bool is_64;
  uint64_t bts_base, bts_index, bts_maximum, bts_threshold;
  uint64_t pebs_base, pebs_index, pebs_maximum, pebs_threshold;
  uint64_t pebs_reset[8];
};

/* Decodes the bytes of a management area (0x30 bytes for the 32-bit layout, at least 0x40 for the 64-bit one; counter
 * resets beyond `size` are 0). Returns 0, or LB_E_TRUNCATED. */
int lb_ds_decode(bool is_64, const void *bytes, size_t size, struct lb_ds_area *ret_area);

struct lb_bts_record {
  uint64_t from, to;
  bool is_predicted;
};

/* Decodes one BTS record: 12 or 24 bytes. Returns its size, or LB_E_TRUNCATED. */
int lb_bts_decode(bool is_64, const void *bytes, size_t size, struct lb_bts_record *ret_record);

/* Decodes one PEBS record of format `pebs` (enum lb_pebs). Fields that the record lacks are 0. `ret_status` is the word
 * at 0x90, of adaptive records (LB_PEBS_4 and later) the applicable counters. LB_PEBS_P4 is the 40-byte record; the
 * Pentium 4's 64-bit one is LB_PEBS_0. Returns its size, LB_E_TRUNCATED, or LB_E_NO_FIELD for LB_PEBS_NONE or an
 * adaptive record that contradicts itself. */
int lb_pebs_decode(unsigned pebs, const void *bytes, size_t size, struct lb_registers *ret_registers,
                   uint64_t *ret_status);

/* True when this recorder's DS area has its 64-bit layout now. */
bool lb_recorder_ds_is_64(const struct lb_recorder *recorder);

/* Facts about the guest's set-up that only the host knows, for lb_ds_check. */
struct lb_ds_facts {
  void *data;
  /* About the 4 KiB page of a linear address: LB_DS_PAGE_* bits. NULL: page rules are not checked. */
  unsigned (*page)(void *data, uint64_t linear);
  bool apic_is_enabled;
  uint32_t lvt_perf;  /* local APIC register 0x340 */
  uint8_t gate_type;  /* type field of the IDT gate of that vector: 0xE interrupt gate, 0xF trap gate */
  bool a20_is_masked; /* A20M# is active */
  bool is_shared;     /* another logical processor uses the same area */
};

enum lb_ds_page {
  LB_DS_PAGE_PRESENT = 1 << 0,
  LB_DS_PAGE_ACCESSED = 1 << 1,
  LB_DS_PAGE_DIRTY = 1 << 2,
  LB_DS_PAGE_CODE = 1 << 3,       /* holds code too */
  LB_DS_PAGE_SUPERVISOR = 1 << 4, /* kernel space */
  LB_DS_PAGE_GLOBAL = 1 << 5,     /* same physical page for every CR3 */
};

enum lb_ds_rule {
#define LB_DS_RULE(name, text, source) LB_DS_##name,
#include "lastbranch/ds_rule.def"
#undef LB_DS_RULE
  LB_DS_RULES,
};

const char *lb_ds_rule_name(unsigned rule); /* "BTS_SIZE" */
const char *lb_ds_rule_text(unsigned rule);
const char *lb_ds_rule_source(unsigned rule);

/* Which of the manual's requirements the guest's DS area violates: a bit 1 << enum lb_ds_rule each, 0 if none. `facts`
 * may be NULL: then only the area itself is looked at. Of a buffer's pages the first 4096 are asked about. */
uint32_t lb_ds_check(const struct lb_recorder *recorder, const struct lb_ds_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
