/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of the recording unit share. A branch comes in through record.c, which hands it to the
 * LBR stack (lbr.c), the bus or the BTS buffer (bts.c) and BTF; counters (pmu.c) and buffers raise the PMI (pmi.c),
 * which freezes the LBR stack and the counters; msr.c is the software's view. Every change of control state ends in
 * unit_update, which computes how later branches are handled.
 */
#ifndef RECORDER_UNIT_H
#define RECORDER_UNIT_H

#include "lastbranch/error.h"
#include "lastbranch/recorder.h"

/* Bits of `armed`: the parts that want taken branches. */
enum armed {
  ARMED_LBR = 1 << 0,     /* the LBR stack */
  ARMED_PAIR = 1 << 1,    /* AMD Zen 3+: the classic pair beside the stack */
  ARMED_BRS = 1 << 2,     /* AMD branch sampling that has begun */
  ARMED_TR = LB_ARMED_TR, /* branch trace messages */
  ARMED_BTF = 1 << 4,     /* single-step on branches */
};

/* Why a PMI is requested. */
enum pmi_cause { PMI_COUNTER = 1 << 0, PMI_PEBS = 1 << 1, PMI_BTS = 1 << 2, PMI_UNCORE = 1 << 3 };

/* Bits of GLOBAL_STATUS. SDM vol. 3 (June 2016) 18.2.4; AMD's are the same two. */
#define STATUS_METRICS (UINT64_C(1) << 48) /* and its enable in GLOBAL_CTRL */
#define STATUS_LBR_FRZ (UINT64_C(1) << 58)
#define STATUS_CTR_FRZ (UINT64_C(1) << 59)
#define STATUS_OVF_UNCORE (UINT64_C(1) << 61)
#define STATUS_OVF_BUFFER (UINT64_C(1) << 62)

/* IA32_LBR_CTL */
#define LBR_CTL_LBREN (UINT64_C(1) << 0)
#define LBR_CTL_OS (UINT64_C(1) << 1)
#define LBR_CTL_USR (UINT64_C(1) << 2)
#define LBR_CTL_CALL_STACK (UINT64_C(1) << 3)

/* MSR_LBR_SELECT; class bits are 2 + enum lb_branch_class */
#define LBR_SELECT_CPL_EQ_0 (UINT64_C(1) << 0)
#define LBR_SELECT_CPL_NEQ_0 (UINT64_C(1) << 1)
#define LBR_SELECT_CLASS(class) (UINT64_C(1) << (2 + (class)))
#define LBR_SELECT_EN_CALLSTACK (UINT64_C(1) << 9)

/* AMD DbgExtnCfg: Zen 3 branch sampling, and the enable of LBR version 2 */
#define EXTN_BRSMEN (UINT64_C(1) << 2)
#define EXTN_MUST_BE_SET (UINT64_C(3) << 3)
#define EXTN_VB (UINT64_C(1) << 5)
#define EXTN_LBRV2EN (UINT64_C(1) << 6)
#define EXTN_MSROFF_SHIFT 16
#define EXTN_MSROFF (UINT64_C(0xF) << EXTN_MSROFF_SHIFT)
#define EXTN_PMC_SHIFT 24
#define EXTN_PMC (UINT64_C(7) << EXTN_PMC_SHIFT)

/* IA32_MISC_ENABLE */
#define MISC_ENABLE_PERFMON (UINT64_C(1) << 7)
#define MISC_ENABLE_BTS_UNAVAILABLE (UINT64_C(1) << 11)
#define MISC_ENABLE_PEBS_UNAVAILABLE (UINT64_C(1) << 12)

/* PERFEVTSEL */
#define EVTSEL_USR (UINT64_C(1) << 16)
#define EVTSEL_OS (UINT64_C(1) << 17)
#define EVTSEL_PC (UINT64_C(1) << 19)
#define EVTSEL_INT (UINT64_C(1) << 20)
#define EVTSEL_EN (UINT64_C(1) << 22)
#define EVTSEL_INV (UINT64_C(1) << 23)
#define EVTSEL_CMASK(select) ((select) >> 24 & 0xFF)
#define EVTSEL_ADAPTIVE (UINT64_C(1) << 34)
#define FIXED_ADAPTIVE(counter) (UINT64_C(1) << (32 + 4 * (counter))) /* the same in FIXED_CTR_CTRL */
#define EVTSEL_EN_LBR_LOG (UINT64_C(1) << 35)
#define EVTSEL_EQ (UINT64_C(1) << 36)
#define EVTSEL_UMASK2 (UINT64_C(0xFF) << 40)

#define CCCR_ENABLE (UINT64_C(1) << 12) /* Pentium 4 */

/* PEBS_ENABLE, where PERF_CAPABILITIES[16] is 1 */
#define PEBS_PMI_EACH (UINT64_C(1) << 60)
#define PEBS_OUTPUT_PT (UINT64_C(1) << 61)

static inline bool unit_option(const struct lb_recorder *r, enum lb_option option)
{
  return (r->options >> option) & 1;
}

/* Whether this DEBUGCTL bit is 1; false on a CPU that lacks the bit. */
static inline bool unit_debugctl(const struct lb_recorder *r, enum lb_debugctl_bit bit)
{
  return r->debugctl & lb_cpu_debugctl(r->cpu, bit);
}

static inline bool unit_is_arch(const struct lb_recorder *r)
{
  return lb_cpu_has(r->cpu, LB_FEATURE_ARCH_LBR);
}

/* AMD Zen 3 and later keep the classic last-branch pair beside a newer stack. */
static inline bool unit_has_pair(const struct lb_recorder *r)
{
  return lb_cpu_has(r->cpu, LB_FEATURE_BRS) || lb_cpu_has(r->cpu, LB_FEATURE_LBR_V2);
}

/* IA32_PERF_CAPABILITIES.PEBS_BASELINE */
static inline bool unit_has_adaptive_pebs(const struct lb_recorder *r)
{
  return r->cpu->perf_capabilities >> 14 & 1;
}

/* IA32_PERF_CAPABILITIES.PERF_METRICS; the big cores of some hybrid parts do not report it. */
static inline bool unit_has_metrics(const struct lb_recorder *r)
{
  return (r->cpu->perf_capabilities >> 15 & 1) || lb_cpu_has(r->cpu, LB_FEATURE_METRICS_UNLISTED);
}

/* IA32_PERF_CAPABILITIES.PEBS_TIMING_INFO */
static inline bool unit_has_timed_pebs(const struct lb_recorder *r)
{
  return r->cpu->perf_capabilities >> 17 & 1;
}

static inline bool unit_is_amd(const struct lb_recorder *r)
{
  return r->cpu->vendor == LB_VENDOR_AMD || r->cpu->vendor == LB_VENDOR_HYGON;
}

/* Whether records count cycles, in INFO or in TO. */
static inline bool unit_has_cycles(const struct lb_recorder *r)
{
  return r->info_cycles | r->to_cycles;
}

/* Whether TSX flags exist and are not fused off. */
static inline bool unit_has_tsx(const struct lb_recorder *r)
{
  return lb_cpu_has(r->cpu, LB_FEATURE_TSX) && !unit_option(r, LB_OPTION_TSX_OFF);
}

/* The kind of a recorded branch is kept in bits of INFO that no format uses. */
#define SLOT_KIND_SHIFT 48
#define SLOT_KIND (UINT64_C(0xFF) << SLOT_KIND_SHIFT)

static inline unsigned slot_kind(const struct lb_slot *slot)
{
  unsigned kind = (unsigned)((slot->info & SLOT_KIND) >> SLOT_KIND_SHIFT);

  return kind ? kind - 1 : LB_BRANCH_KINDS;
}

/* The part of a slot that software may see. */
static inline struct lb_raw slot_raw(const struct lb_slot *slot)
{
  return (struct lb_raw){slot->from, slot->to, slot->info & ~SLOT_KIND};
}

/* The number of the newest entry. */
static inline unsigned lbr_tos(const struct lb_recorder *r)
{
  unsigned next = (unsigned)(r->next / sizeof(struct lb_slot));

  return (next ? next : r->depth) - 1;
}

static inline void lbr_set_tos(struct lb_recorder *r, unsigned tos)
{
  r->next = tos + 1 < r->depth ? (tos + 1) * sizeof(struct lb_slot) : 0;
}

/* The field of `progress` at this offset, as the event tables name it. */
static inline uint64_t progress_get(const struct lb_progress *progress, unsigned offset)
{
  uint64_t count;

  __builtin_memcpy(&count, (const unsigned char *)progress + offset, sizeof(count));
  return count;
}

/* All ones in the low `bits` bits. */
static inline uint64_t unit_mask(unsigned bits)
{
  return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* recorder.c: after any change of control state */
void unit_update(struct lb_recorder *r);

/* save.c: every field that is state and not computed from others */
struct archive;
void unit_archive(struct archive *archive, struct lb_recorder *r);

/* lbr.c */
bool lbr_is_on(const struct lb_recorder *r);
void lbr_filter(struct lb_recorder *r); /* recomputes which kinds of branches the stack takes */
void lbr_format(struct lb_recorder *r); /* once: where the parts of a record go */
void lbr_take(struct lb_recorder *r, const struct lb_branch *branch);
void lbr_pair_take(struct lb_recorder *r, const struct lb_branch *branch);
void lbr_brs_take(struct lb_recorder *r, const struct lb_branch *branch);
void lbr_brs_begin(struct lb_recorder *r, bool wants_pmi); /* the sampling counter overflowed */
void lbr_ler_update(struct lb_recorder *r);
void lbr_share_select(struct lb_recorder *r); /* gives the other thread of the core this one's LBR_SELECT */
void lbr_clear(struct lb_recorder *r);        /* entries and TOS to 0 */
unsigned lbr_index(const struct lb_recorder *r, unsigned age);
const struct lb_slot *lbr_newest(const struct lb_recorder *r); /* the record that LER copies and the mirrors show */

/* format.c: decodes records, and says which values WRMSR accepts (false: #GP) */
struct lb_record format_decode(const struct lb_cpu *cpu, unsigned format, const struct lb_raw *raw);
bool format_from_is_legal(const struct lb_recorder *r, uint64_t value);
bool format_to_is_legal(const struct lb_recorder *r, uint64_t value);
bool format_info_is_legal(const struct lb_recorder *r, uint64_t value);
uint64_t format_canonical(uint64_t value);

#define DS_PAGE 4096u           /* host.map is never asked across such a boundary */
#define BTS_PREDICTED (1u << 4) /* flag of a BTS record: the reverse of MISPRED */

/* ds.c: guest memory, and the layout of the management area */
struct ds_layout {
  uint8_t word;   /* bytes of a field */
  uint8_t bts;    /* bytes of a BTS record */
  uint8_t resets; /* offset of the first counter reset */
};
const struct ds_layout *ds_layout(bool is_64);
uint64_t ds_word(bool is_64, const unsigned char *bytes, unsigned index); /* word `index` of a layout */
int ds_area_read(const struct lb_recorder *r, struct lb_ds_area *ret_area);
int ds_access(const struct lb_recorder *r, uint64_t linear, void *bytes, size_t size, bool is_write);
bool ds_is_available(const struct lb_recorder *r); /* neither in SMM nor after a machine check */

/* bts.c */
void bts_message(struct lb_recorder *r, const struct lb_branch *branch);
void bts_update(struct lb_recorder *r); /* recomputes how messages are handled */

/* pmu.c */
void pmu_reset(struct lb_recorder *r);
uint64_t pmu_enables(const struct lb_recorder *r);     /* bits of GLOBAL_CTRL that exist */
uint64_t pmu_fixed_mask(const struct lb_recorder *r);  /* a bit for each fixed counter that exists */
uint64_t pmu_status_bits(const struct lb_recorder *r); /* bits of GLOBAL_STATUS that can be cleared and set */
uint64_t pmu_in_use(const struct lb_recorder *r);
uint64_t pmu_evtsel_bits(const struct lb_recorder *r, unsigned counter); /* bits that exist */
bool pmu_has_status(const struct lb_recorder *r);
void pmu_update(struct lb_recorder *r); /* finds the events that the selects name */
void pmu_select(struct lb_recorder *r, unsigned i, uint64_t select);
void pmu_note_unmodelled(struct lb_recorder *r, uint64_t select);
uint64_t pmu_outcomes(const struct lb_progress *progress, uint32_t outcomes); /* as in struct lb_pmu_event */
void pmu_advance(struct lb_recorder *r, unsigned i, uint64_t count, uint64_t *overflowed);

/* pmu_metrics.c: RDMSR of PERF_METRICS */
uint64_t metrics_get(const struct lb_recorder *r);
/* WRMSR of PERF_METRICS; false: #GP */
bool metrics_set(struct lb_recorder *r, uint64_t value);
/* Counts the slots of each category. Returns STATUS_METRICS on overflow, or 0. */
uint64_t metrics_progress(struct lb_recorder *r, const struct lb_progress *progress);

/* pmu_p4.c: WRMSR of a CCCR; always returns true */
bool pmu_p4_cccr(struct lb_recorder *r, unsigned counter, uint64_t value);
/* Advances the Pentium 4's counters. Returns a bit for each counter whose overflow interrupts. */
uint64_t pmu_p4_progress(struct lb_recorder *r, const struct lb_progress *progress);

/* pebs.c: counters that can write records, as bits of GLOBAL_CTRL */
uint64_t pebs_samplers(const struct lb_recorder *r);
size_t pebs_record_size(const struct lb_recorder *r, uint64_t counters); /* of a record for these counters */
size_t pebs_area_size(const struct lb_recorder *r);                      /* of the management area */

/* msr_pmu.c: the DS area and the counters; WRMSR returns false for #GP */
uint64_t msr_read_pmu(const struct lb_recorder *r, unsigned id, unsigned number);
bool msr_write_ds(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value);
bool msr_write_pmu(struct lb_recorder *r, unsigned id, unsigned number, uint64_t value);

static inline bool msr_write_masked(uint64_t *place, uint64_t value, uint64_t allowed)
{
  if (value & ~allowed)
    return false;
  *place = value;
  return true;
}

/* pmi.c */
void pmi_request(struct lb_recorder *r, unsigned causes);
void pmi_buffer_overflow(struct lb_recorder *r); /* a DS buffer reached its threshold: GLOBAL_STATUS[62] */

#endif
