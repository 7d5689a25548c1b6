/* SPDX-License-Identifier: Apache-2.0
 *
 * The branch-recording unit of one logical processor: LBR stack, LER, BTM, BTS and the DS area, PEBS, BTF, and the
 * performance counters and PMI that drive them, as the CPU that it was made for has them.
 *
 * The host (an emulator, a hypervisor, a test) owns the storage, gives callbacks, and calls the unit for every event
 * that could concern it. The unit allocates nothing, does no I/O and has no global state, so any number of units can be
 * used side by side. Calls on one recorder must not overlap; callbacks must not call back into the same recorder,
 * except RDMSR and the functions that only look. examples/embed.c shows a whole emulator loop.
 */
#ifndef LASTBRANCH_RECORDER_H
#define LASTBRANCH_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/branch.h"
#include "lastbranch/cpudb.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the host gives ---- */

/* A branch trace message, as a logic analyser on the system bus would see it: linear addresses. */
struct lb_message {
  uint64_t from;
  uint64_t to;
};

/* Any callback may be NULL: its event is then dropped (or there is no memory). */
struct lb_host {
  void *data; /* handed to every callback */
  /* Guest memory for the DS area, by linear address. Returns >= 0, or negative when it cannot be accessed: the record
   * is then lost and counted (lb_recorder_messages). */
  int (*read)(void *data, uint64_t linear, void *bytes, size_t size);
  int (*write)(void *data, uint64_t linear, const void *bytes, size_t size);
  /* Optional fast path: a host pointer through which `size` bytes at `linear` may be read and written, or NULL to be
   * asked through read and write. The pointer must stay good until lb_recorder_flush. The recorder asks for pieces
   * that do not cross a 4 KiB boundary. */
  void *(*map)(void *data, uint64_t linear, size_t size);
  /* The performance-monitoring interrupt is requested at the local APIC's LVT entry. Not repeated until
   * lb_recorder_pmi_delivered; a host that drops the request, because the entry is masked, calls that at once. */
  void (*pmi)(void *data);
  void (*bus)(void *data, const struct lb_message *message);
  /* Pin BPi# (P6, Pentium M, AMD) is asserted for one match, increment or overflow. */
  void (*pin)(void *data, unsigned pin);
  /* BTF: a single-step #DB (DR6.BS) is due after this branch. The host delivers it, calling
   * lb_recorder_debug_exception. */
  void (*trap)(void *data);
};

/* Points where manuals disagree: see option.def and doc/recorder.md. */
enum lb_option {
#define LB_OPTION(name, word, basis, text) LB_OPTION_##name,
#include "lastbranch/option.def"
#undef LB_OPTION
  LB_OPTIONS,
};

const char *lb_option_name(unsigned option); /* "btf-on-events"; NULL past the last */
const char *lb_option_text(unsigned option);
unsigned lb_option_basis(unsigned option); /* enum lb_basis: how well the default is known */
int lb_option_find(const char *word);      /* >= 0, or LB_E_NO_OPTION */

/* ---- the unit itself ---- */

/* Categories of slots in top-down analysis. */
enum lb_metric {
#define LB_METRIC(name, word) LB_METRIC_##name,
#include "lastbranch/metric.def"
#undef LB_METRIC
  LB_METRICS,
  LB_METRICS_LEVEL_1 = LB_METRIC_HEAVY,
};

#define LB_DEPTH_MAX 64
#define LB_COUNTERS_MAX 18
#define LB_FIXED_MAX 7
#define LB_UNMODELLED_MAX 16

/* A record as it lies in the registers. */
struct lb_raw {
  uint64_t from;
  uint64_t to;
  uint64_t info;
};

/* A record inside the unit: of a size and order that make it cheap to write. INFO[55:48], which no format uses, holds
 * the kind of the branch + 1, for display only; software never sees it. */
struct lb_slot {
  uint64_t from, to, unused, info;
};

#define LB_ARMED_TR 8      /* in `armed`: only branch trace messages are wanted */
#define LB_LONG_WAY 0xFFFF /* in `fast`: lb_recorder_record must look at it */

/* Caller's storage; the fields are the recorder's own. The fields before `entries` are computed from the registers
 * whenever these change, for lb_recorder_branch. */
struct __attribute__((aligned(16))) lb_recorder {
  uint32_t armed;        /* the parts that want taken branches; 0: none */
  uint32_t depth;        /* entries in use */
  uint64_t next;         /* where in `entries` the next record goes, in bytes */
  uint64_t keep[4][2];   /* address bits of FROM and TO that are recorded, by LB_BRANCH_FROM_32 and _TO_32 */
  struct lb_slot set[2]; /* bits that are set in a record, for predicted and mispredicted branches */
  uint64_t wrap;         /* bytes in use - 1, for depths that are powers of two */
  uint64_t cycles;       /* core cycles since the last LBR update, at most 0xFFFF; 0 where records have none */
  uint16_t fast[4][256]; /* by CPL after the branch and kind: INFO[63:48] of its record, or LB_LONG_WAY */
  uint8_t info_top[32];  /* INFO[63:56] by kind: architectural BR_TYPE and CYC_CNT_VALID */
  uint64_t to_cycles;    /* where a record holds cycles: the bits of TO, */
  uint64_t info_cycles;  /* the bits of INFO */
  uint64_t linear;       /* all ones when records hold linear addresses, else 0 */
  uint32_t lbr_kinds[2]; /* bit per kind that the stack takes, for CPL 0 and for CPL > 0 */
  uint32_t pop_kinds[2]; /* bit per kind that pops it (call-stack mode) */
  struct lb_slot entries[LB_DEPTH_MAX];

  const struct lb_cpu *cpu;
  struct lb_host host;
  uint32_t options;            /* bits 1 << enum lb_option */
  struct lb_recorder *sibling; /* other thread of the core, for registers that they share */

  struct {
    struct lb_slot last; /* AMD Zen 3+: the classic pair beside the stack */
    struct lb_slot ler;
    struct lb_slot executed; /* for LB_OPTION_LER_OF_EXECUTED */
    uint64_t select;
    uint64_t ctl;      /* IA32_LBR_CTL */
    uint64_t extn;     /* AMD DbgExtnCfg */
    uint8_t events[4]; /* occurrences since the last record, for event logging */
    bool cycles_valid;
    bool is_capturing; /* BRS: the counter has overflowed, branches are being taken down */
    bool is_holding;   /* BRS: the interrupt waits for a full buffer */
  } lbr;

  uint64_t debugctl;

  struct {
    uint64_t area;
    uint64_t pebs_enable;
    uint64_t data_cfg;
    uint64_t matrix;
    uint64_t load_latency;
    uint64_t reload[LB_COUNTERS_MAX]; /* of general counters, for PEBS records that go to Intel PT */
    uint64_t reload_fixed[LB_FIXED_MAX];
    uint64_t due;        /* counters whose PEBS record is to be written */
    uint64_t flags[2];   /* of a BTS record, for predicted and mispredicted branches */
    bool is_stopped;     /* machine check: no BTS or PEBS until DEBUGCTL or PEBS_ENABLE is written again */
    unsigned char *page; /* host.map of the page below, NULL if none */
    uint64_t page_address;
    uint64_t page_limit;   /* first offset at which no record fits; 0 without a page */
    unsigned char *header; /* host.map of the management area */
    unsigned char *quick;  /* the same while lb_recorder_bts_quick may use it, else NULL */
    bool stores;           /* messages go to the BTS buffer, not to the bus, */
    bool is_open;          /* which may be written now, */
    bool is_64;            /* has 64-bit records, */
    bool is_circular;      /* starts again at its end, */
    bool off[2];           /* and leaves out CPL 0 or CPL > 0 */
  } ds;

  struct {
    uint64_t counter[LB_COUNTERS_MAX];
    uint64_t select[LB_COUNTERS_MAX];                  /* PERFEVTSEL, or the Pentium 4's CCCR */
    const struct lb_pmu_event *event[LB_COUNTERS_MAX]; /* what `select` names; NULL: nothing that is modelled */
    uint64_t unmodelled[LB_UNMODELLED_MAX];            /* selects that were enabled although they count nothing, */
    uint8_t unmodelled_count;                          /* how many */
    uint64_t fixed[LB_FIXED_MAX];
    uint64_t fixed_ctrl;
    uint64_t escr[6]; /* Pentium 4: FSB 0, 1; CRU 0 to 3 */
    uint64_t status;
    uint64_t ctrl;
    uint64_t metrics;            /* PERF_METRICS, as software wrote it */
    uint64_t shares[LB_METRICS]; /* slots by enum lb_metric, from which PERF_METRICS is computed */
    bool metrics_are_written;    /* no slot was counted since the write */
    bool is_pending;             /* PMI requested, not yet delivered */
    bool is_held;                /* lb_recorder_hold_pmi */
    uint8_t wanted;              /* causes that came while held */
  } pmu;

  uint64_t misc_enable;
  struct {
    uint64_t debugctl, ctrl, ctl; /* as they were at the SMI */
    bool is_inside;
  } smm;
  bool is_long_mode; /* IA-32e mode is active (EFER.LMA) */
  bool is_pt_on;     /* Intel PT is tracing */
  uint64_t unstored; /* branch trace messages that did not go to the BTS buffer */
  uint64_t stored;   /* that did */
  uint64_t lost;     /* that should have, but found it full or out of reach */
};

/* Makes `recorder` the unit of this CPU just after a cold reset. `host` is copied; NULL stands for no callbacks.
 * `options` has a bit 1 << enum lb_option for each that is on. Returns 0, or LB_E_NO_UNIT when the CPU has neither
 * records nor DEBUGCTL.
 */
int lb_recorder_init(struct lb_recorder *recorder, const struct lb_cpu *cpu, const struct lb_host *host,
                     uint32_t options);

/* Makes two recorders the threads of one core: they then share what the CPU shares (LBR_SELECT on Nehalem, Westmere),
 * with the values of `one` at first. Both must be of the same CPU. A call on one may then change the other, so the two
 * need one lock, and both must live as long as either is used. */
void lb_recorder_pair(struct lb_recorder *one, struct lb_recorder *other);

/* The state as bytes, for a file or another process; within one, a copy of the struct is a snapshot. Writes at most
 * `size` of them and returns how many there are: a call with a size of 0 tells. */
size_t lb_recorder_save(const struct lb_recorder *recorder, void *bytes, size_t size);

/* Takes the state from such bytes, which may be forged, into a recorder that lb_recorder_init made of the same CPU with
 * the same options; callbacks and sibling stay. Returns 0; LB_E_TRUNCATED, or LB_E_DAMAGED for what no such recorder
 * can have saved: the recorder is then as it was. */
int lb_recorder_load(struct lb_recorder *recorder, const void *bytes, size_t size);

/* ---- RDMSR and WRMSR ---- */

enum lb_msr_answer {
  LB_MSR_OK = 0,
  LB_MSR_GP = 1,      /* raise #GP(0); nothing has changed */
  LB_MSR_FOREIGN = 2, /* not a register of this machinery on this CPU: the host decides */
};

enum lb_msr_answer lb_recorder_rdmsr(const struct lb_recorder *recorder, uint32_t msr, uint64_t *ret_value);
enum lb_msr_answer lb_recorder_wrmsr(struct lb_recorder *recorder, uint32_t msr, uint64_t value);

/* Sets a register to a value from elsewhere, mostly from a real processor: read-only registers too, and without side
 * effects. For DEBUGCTL, GLOBAL_STATUS and the registers of the LBR stack and of LER. The depth, TOS and DbgExtnCfg
 * come before the entries, which lie by them. Bits that the unit has no place for are dropped. Returns LB_MSR_OK;
 * LB_MSR_GP for other registers of the machinery, entries beyond the depth, and a depth that this CPU does not have;
 * LB_MSR_FOREIGN as above. Nothing has changed then. */
enum lb_msr_answer lb_recorder_put(struct lb_recorder *recorder, uint32_t msr, uint64_t value);

/* ---- what happens in the processor ---- */

/* A branch instruction was taken and has retired: call after the last check that could fault. Conditional branches that
 * fall through are not reported. May call host.bus, host.pmi, host.trap and the memory callbacks. Inline
 * (recorder_inline.h).
 */
static inline void lb_recorder_branch(struct lb_recorder *recorder, const struct lb_branch *branch);

/* An interrupt or exception, other than #DB, is delivered through the IDT. The unit chooses FROM by its kind: `current`
 * for faults and INT n, `next` for interrupts and traps. Call it as the handler is entered. A #DB that VM entry injects
 * is reported here too, as LB_BRANCH_TRAP. */
struct lb_event {
  uint64_t current; /* address of the instruction that faulted, trapped or was the last to retire */
  uint64_t next;    /* address that the handler would return to, for faults the same as current */
  uint64_t handler;
  uint64_t from_base;
  uint64_t to_base;
  uint8_t kind; /* an enum lb_branch_kind for which IS_EVENT is 1 */
  uint8_t from_cpl;
  uint8_t to_cpl;
  uint8_t flags; /* enum lb_branch_flag */
};

void lb_recorder_event(struct lb_recorder *recorder, const struct lb_event *event);

/* #DB is delivered, whatever its cause (also INT1): LBR and BTF go off, the transfer is not recorded. */
void lb_recorder_debug_exception(struct lb_recorder *recorder);

/* Debug register `number` matched: drives a BPi# pin if DEBUGCTL.PBi says so. */
void lb_recorder_breakpoint_match(struct lb_recorder *recorder, unsigned number);

/* System management interrupt taken, and return from it. `entry` leads from the instruction that would have run next to
 * the handler, `resumed` from the RSM to where the program goes on; their kinds do not matter. AMD records both, and
 * architectural LBR the second. */
void lb_recorder_smi(struct lb_recorder *recorder, const struct lb_branch *entry);
void lb_recorder_rsm(struct lb_recorder *recorder, const struct lb_branch *resumed);

/* INIT: control goes from the next instruction to the reset or SIPI vector; the kind does not matter. */
void lb_recorder_init_signal(struct lb_recorder *recorder, const struct lb_branch *transfer);
void lb_recorder_reset_cold(struct lb_recorder *recorder);
void lb_recorder_reset_warm(struct lb_recorder *recorder);

/* VMX: a VM exit clears DEBUGCTL. VM entry loads it: LB_MSR_GP means that the entry fails on reserved bits. */
void lb_recorder_vm_exit(struct lb_recorder *recorder);
enum lb_msr_answer lb_recorder_vm_entry(struct lb_recorder *recorder, uint64_t debugctl);

/* MWAIT into a C-state deeper than C1. */
void lb_recorder_deep_sleep(struct lb_recorder *recorder);

/* RTIT_CTL.TraceEn changes. */
void lb_recorder_pt_trace(struct lb_recorder *recorder, bool is_on);

/* EFER.LMA changes: the DS area has its 64-bit layout while IA-32e mode is active, or always with DTES64. */
void lb_recorder_long_mode(struct lb_recorder *recorder, bool is_active);

/* Forget host.map pointers: call when the guest's address translation or the host's memory changes. */
void lb_recorder_flush(struct lb_recorder *recorder);

/* ---- counters, PMI, PEBS ---- */

/* What the processor did since the last call, at one privilege level. Branches are told apart by their outcome; a host
 * that cannot do so reports them by the three sums instead. Events that count all branches count both. */
struct lb_progress {
  uint64_t instructions;
  uint64_t cycles;
  uint64_t clocked; /* of these, cycles that lb_recorder_clock was told of already */
  uint64_t reference_cycles;
  uint64_t branches; /* retired, taken or not: those that are not among the outcomes below */
  uint64_t taken_branches;
  uint64_t mispredicts;
  uint64_t cache_references;
  uint64_t cache_misses;
  uint64_t slots;
  uint64_t metrics[LB_METRICS];       /* slots by enum lb_metric */
  uint64_t lbr_inserts;               /* records that the LBR stack took */
  uint64_t predicted[LB_OUTCOMES];    /* branches by enum lb_outcome */
  uint64_t mispredicted[LB_OUTCOMES]; /* and those that were mispredicted */
  uint8_t cpl;
};

/* Feeds the counters. Returns true when a counter with PEBS enabled has overflowed: the host then calls
 * lb_recorder_pebs_assist at the next instruction boundary. */
bool lb_recorder_progress(struct lb_recorder *recorder, const struct lb_progress *progress);

/* True while a counter is enabled, even if a freeze stops it for now: only then must the host report progress. */
bool lb_recorder_is_counting(const struct lb_recorder *recorder);

/* The host may gather progress and report it later while nothing in it exceeds this number: no counter overflows by it,
 * and the counters need only the sums. 0: report each instruction by itself. */
uint64_t lb_recorder_progress_room(const struct lb_recorder *recorder);

/* True while an enabled general counter counts this sum: a host may leave out sums that no counter counts. */
bool lb_recorder_counts(const struct lb_recorder *recorder, enum lb_sum sum);

/* True while PERF_METRICS counts the slots of this category. */
bool lb_recorder_counts_metric(const struct lb_recorder *recorder, enum lb_metric metric);

/* True when a counter may count slots by category: lb_progress.metrics is then needed. */
bool lb_recorder_counts_slots(const struct lb_recorder *recorder);

/* General counter `index`: its event select register (Pentium 4: CCCR) and its count. Returns 0, or LB_E_NO_FIELD past
 * the last one. */
int lb_recorder_counter(const struct lb_recorder *recorder, unsigned index, uint64_t *ret_select, uint64_t *ret_count);

/* True when the LBR stack takes a branch of this kind that ends at this privilege level. */
bool lb_recorder_takes(const struct lb_recorder *recorder, unsigned kind, unsigned to_cpl);

/* Event 0, 1, ... that software enabled a counter for although the model does not count it, in all the time since
 * lb_recorder_init: such a counter stands still. The value is that of the event select register (Pentium 4: CCCR[15:13]
 * in bits 34:32, ESCR in 31:0). Returns 0, or LB_E_NO_FIELD past the last one; at most LB_UNMODELLED_MAX are
 * remembered. */
int lb_recorder_unmodelled(const struct lb_recorder *recorder, unsigned index, uint64_t *ret_select);

/* Reports that so many core cycles have passed, for records that hold cycles. For a host that counts nothing else and
 * so does not call lb_recorder_progress, which does this too. Inline (recorder_inline.h). */
static inline void lb_recorder_clock(struct lb_recorder *recorder, uint64_t cycles);

/* The processor state that a PEBS record holds. */
struct lb_registers {
  uint64_t rflags, rip, rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15;
  uint64_t data_address, data_source, latency;
  uint64_t eventing_ip;
  uint64_t tsx_abort;
  uint64_t tsc;
  uint64_t retire_latency; /* cycles since the previous instruction retired; 16 bits, timed PEBS only */
  uint64_t xmm[16][2];     /* low half first; adaptive PEBS only */
};

/* Writes the PEBS records that are due, reloads their counters and requests the PMI at the threshold.
 * Returns how many were written, or LB_E_DS_MEMORY when guest memory failed. Does nothing when none is due. */
int lb_recorder_pebs_assist(struct lb_recorder *recorder, const struct lb_registers *registers);

/* The PMI that host.pmi requested was delivered: the next one may be requested. */
void lb_recorder_pmi_delivered(struct lb_recorder *recorder);

/* The uncore raises a PMI. Returns true when DEBUGCTL.UNCORE_PMI_EN lets this processor take it. */
bool lb_recorder_uncore_pmi(struct lb_recorder *recorder);

/* Between hold and release PMI requests are gathered: an instruction that triggers both PEBS and BTS gets one
 * interrupt, after both records are written. */
void lb_recorder_hold_pmi(struct lb_recorder *recorder);
void lb_recorder_release_pmi(struct lb_recorder *recorder);

/* ---- looking ---- */

/* The CPU that the recorder was made for. */
static inline const struct lb_cpu *lb_recorder_cpu(const struct lb_recorder *recorder)
{
  return recorder->cpu;
}

/* As lb_recorder_long_mode set it. */
static inline bool lb_recorder_is_long_mode(const struct lb_recorder *recorder)
{
  return recorder->is_long_mode;
}

/* True while EFLAGS.TF means "step on branches": the host must then not trap after other instructions. */
static inline bool lb_recorder_steps_branches(const struct lb_recorder *recorder)
{
  return recorder->debugctl & lb_cpu_debugctl(recorder->cpu, LB_DEBUGCTL_BTF);
}

/* One record, decoded. */
struct lb_record {
  unsigned index; /* number of the register */
  struct lb_raw raw;
  uint64_t from, to; /* addresses without flags, sign-extended */
  bool is_mispredicted, has_mispredicted;
  bool is_in_tsx, is_tsx_abort, has_tsx;
  bool has_cycles, has_type;
  uint16_t cycles;
  uint8_t type;  /* architectural BR_TYPE */
  uint8_t kind;  /* enum lb_branch_kind; LB_BRANCH_KINDS: not known */
  bool is_empty; /* never written: all zero, or marked not valid */
};

/* Decodes a raw record of this CPU. `index`, `kind` are set to 0 and LB_BRANCH_KINDS. */
struct lb_record lb_record_decode(const struct lb_cpu *cpu, const struct lb_raw *raw);

/* The `age`-th newest record, 0 being the newest. Returns 0, or LB_E_NO_ENTRY for age >= depth. */
int lb_recorder_entry(const struct lb_recorder *recorder, unsigned age, struct lb_record *ret_record);

/* How many entries hold a record. */
unsigned lb_recorder_used(const struct lb_recorder *recorder);

/* The last-exception record. Returns 0, or LB_E_NO_ENTRY on a CPU without. */
int lb_recorder_ler(const struct lb_recorder *recorder, struct lb_record *ret_record);

/* True while the manual calls the LBR contents undefined: TR and LBR both set on a CPU that forbids it; on P6 TR alone.
 */
bool lb_recorder_is_undefined(const struct lb_recorder *recorder);

/* Branch trace messages since init: generated in all, and of these stored in the BTS buffer or lost on the way to it.
 */
struct lb_messages {
  uint64_t generated, stored, lost;
};

struct lb_messages lb_recorder_messages(const struct lb_recorder *recorder);

/* True while branches go into the LBR stack (on Zen 3 into the sampling buffer). */
bool lb_recorder_is_recording(const struct lb_recorder *recorder);

#include "lastbranch/ds.h"              /* IWYU pragma: export */
#include "lastbranch/recorder_inline.h" /* IWYU pragma: export */

#ifdef __cplusplus
}
#endif
#endif
