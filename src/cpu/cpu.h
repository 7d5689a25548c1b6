/* SPDX-License-Identifier: Apache-2.0
 *
 * One x86 processor: an interpreter over decoded and cached blocks. Every branch is reported to a recorder in one place
 * (transfer.h). This header is the interface for the rest of the machine: the state, the bus, and the functions that
 * run the processor. The folder's other headers are private.
 *
 * The host provides RAM and a struct of callbacks; the processor allocates its block cache and translation caches once
 * and never trusts the guest. Time is counted in cycles of a simple model, so that a run is exactly repeatable.
 */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/cache.h"
#include "cpu/fpu.h"
#include "cpu/memory.h"
#include "cpu/predictor.h"
#include "cpu/registers.h"
#include "lastbranch/recorder.h"

struct insn;
struct block_cache;
struct block_jump;

/* ---- the bus ---- */

enum cpu_access { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_EXECUTE = 4 };

/* Callbacks must not be NULL. They may call cpu_set_line, cpu_signal, cpu_kick and the functions that only read
 * state. */
struct cpu_bus {
  void *data; /* handed to every callback */
  uint32_t (*in)(void *data, uint16_t port, unsigned size);
  void (*out)(void *data, uint16_t port, unsigned size, uint32_t value);
  /* Physical addresses that are neither RAM nor ROM; `size` is 1, 2, 4 or 8. Reads give all ones where there is no
   * device. */
  uint64_t (*mmio_read)(void *data, uint64_t address, unsigned size);
  void (*mmio_write)(void *data, uint64_t address, unsigned size, uint64_t value);
  /* INTR is being taken: returns the vector. */
  uint8_t (*acknowledge)(void *data);
  /* The local APIC's registers: IA32_APIC_BASE (0x1B), TSC deadline (0x6E0), x2APIC (0x800 to 0x8FF), as MSRs; CR8 as
   * msr 0x808 shifted by 4. Return 0, or -1 for #GP(0). */
  int (*apic_read)(void *data, uint32_t msr, uint64_t *ret_value);
  int (*apic_write)(void *data, uint32_t msr, uint64_t value);
  uint8_t (*task_priority)(void *data);                          /* TPR 7:4, as CR8 */
  void (*set_task_priority)(void *data, uint8_t value);          /* 0 to 15 */
  void (*pmi)(void *data);                                       /* LVT performance counter entry; see lb_host.pmi */
  void (*ferr)(void *data);                                      /* FERR#: an unmasked x87 exception with CR0.NE = 0 */
  void (*message)(void *data, const struct lb_message *message); /* a branch trace message on the system bus */
  /* Executes the firmware's instruction (0F 3F nn in ROM), which calls a service of the board in the host's code. `rip`
   * is already past the instruction. */
  void (*service)(void *data, uint8_t number);
  /* A run ends before its next block while this is true: a signal handler or another thread may set it. May be NULL. */
  const atomic_bool *stop;
};

enum cpu_line { CPU_LINE_INTR };

enum cpu_signal { CPU_NMI = 1, CPU_SMI = 2, CPU_INIT = 4 };

/* Receives every taken branch and every event, as the recorder gets them, for a trace. */
typedef void cpu_listener(void *data, const struct lb_branch *branch);

/* ---- the processor ---- */

enum cpu_activity { CPU_RUNNING, CPU_HALTED, CPU_SHUTDOWN, CPU_WAIT_SIPI };

/* Bits of `watch`: the parts that want to be told of branches. */
enum { WATCH_RECORDER = 1, WATCH_LISTENER = 2, WATCH_COUNTERS = 4, WATCH_FOLLOWER = 8 };

/* Bits of `mode`: state that decoding and handlers rely on. `mode` is part of a block's identity. */
enum {
  MODE_16 = 0,
  MODE_32 = 1,
  MODE_64 = 2,
  MODE_BITS = 3,
  MODE_REAL = 1 << 2, /* real or virtual-8086: decode as such */
  MODE_LONG = 1 << 3, /* EFER.LMA */
  MODE_USER = 1 << 4, /* CPL 3 */
  MODE_ONE = 1 << 5,  /* blocks of one instruction: the run loop must check something after each */
  MODE_STEP = 1 << 6, /* blocks of one instruction for a single step: they ignore points */
  MODE_FLAT = 1 << 7, /* outside 64-bit mode: DS, ES and SS are 4 GiB, readable and writable; ESP is 32 bits */
};

/* ---- breakpoints and watchpoints of a debugger outside the guest ---- */

/* A run ends before the instruction at `address` (ACCESS_EXECUTE; `size` is ignored), or after one that read or wrote
 * any of `size` bytes there (ACCESS_READ, ACCESS_WRITE, or both). Addresses are linear. */
struct cpu_point {
  uint64_t address, size;
  uint8_t access;
};

enum cpu_hit_kind { CPU_HIT_NONE, CPU_HIT_CODE, CPU_HIT_DATA, CPU_HIT_EXCEPTION, CPU_HIT_STEP };

/* Why a run ended with CPU_STOP_POINT. */
struct cpu_hit {
  uint8_t kind;
  uint8_t access;    /* of CODE and DATA */
  uint8_t vector;    /* of EXCEPTION */
  bool is_delivered; /* EXCEPTION: rip is at its handler; else at the instruction, which will raise it again */
  uint32_t error;    /* EXCEPTION: its error code */
  size_t point;      /* DATA: which one */
  uint64_t address;  /* CODE, DATA: linear; DATA: the first byte that is watched */
};

#define TLB_ENTRIES 1024

/* A page that the guest may access without further checks. Tags are linear page addresses; bit 0 set: none. */
struct cpu_tlb_entry {
  uint64_t read, write;
  uintptr_t host;  /* host address = linear + host */
  uint64_t unused; /* makes the size a power of two, so that an entry is found by a shift */
};

#define CPU_MODEL_MSRS 48

/* Features of the processor: bit n % 64 of word n / 64 for number n of enum cpu_feature (system.h). */
#define CPU_FEATURE_WORDS 2u
struct cpu_features {
  uint64_t words[CPU_FEATURE_WORDS];
};

struct cpu {
  /* first, the state that every instruction uses */
  uint64_t r[CPU_REGISTERS];
  struct cpu_lazy lazy;
  const struct insn *at;     /* being executed */
  int64_t budget;            /* instructions left before the run loop checks for events again */
  struct cpu_tlb_entry *tlb; /* the one of the current privilege: tlbs[mode & MODE_USER ? 1 : 0] */
  uint32_t generation;       /* links between blocks are valid while it stays the same */
  uint32_t mode;
  uint64_t code_limit;  /* last offset in CS; in 64-bit mode all ones */
  uint64_t stack_mask;  /* width of the stack pointer: 0xFFFF, 0xFFFFFFFF or all ones */
  uint64_t linear_mask; /* of linear addresses: all ones in 64-bit mode, else 0xFFFFFFFF */
  uint8_t watch;        /* WATCH_ bits: 0 when no part wants to be told of branches */
  uint8_t cpl;
  uint8_t outside; /* of lb_recorder_push: 0 in 64-bit mode, else 3 */
  struct cpu_segment segment[CPU_SEGMENTS];

  uint64_t rip;    /* offset in CS; valid outside blocks. Only transfer.c writes it to jump */
  uint32_t eflags; /* all but the arithmetic flags (lazy); flags_get joins them */
  struct cpu_table gdtr, idtr;
  uint32_t cr0, cr4;
  uint64_t cr2, cr3, efer, xcr0, xss;
  uint32_t pkru, pkrs; /* rights of protection keys, for pages of the user and of the supervisor */
  uint64_t pdpte[4];
  uint64_t dr[8]; /* 4 and 5 unused */
  struct fpu fpu;

  /* system registers that only some instructions use */
  uint64_t star, lstar, cstar, fmask, kernel_gs_base, tsc_aux, tsc_offset, pat;
  uint64_t sysenter_cs, sysenter_esp, sysenter_eip;
  uint64_t mtrr[2 * 16 + 11 + 2];     /* msr.c's own */
  uint64_t model_msr[CPU_MODEL_MSRS]; /* those of msr_model.def that are kept */
  uint64_t monitor_address;           /* line of 64 bytes; bits: idle.c */
  uint64_t monitor_sum;               /* checksum of the line's contents */
  uint64_t tsc_adjust, misc_enable, hwcr, syscfg, random;
  struct {
    uint64_t rip, retired; /* the last IN or OUT, for SMM's I/O restart */
    uint32_t what;         /* as IO_MISC of the SMM state */
  } io;
  uint32_t smbase;

  /* between instructions */
  uint8_t activity; /* enum cpu_activity */
  uint8_t lines;    /* 1 << enum cpu_line */
  uint8_t signals;  /* pending signals: enum cpu_signal bits */
  uint16_t startup; /* vector of a SIPI that arrived while INIT was pending, | 0x100; or 0 */
  uint8_t shadow;   /* SHADOW_ bits: the next instruction is protected from interrupts */
  bool is_nmi_blocked, is_in_smm, is_smi_blocked;
  bool is_spinning; /* the last instruction jumped to itself */
  bool had_tf;      /* TF was 1 when the instruction began */
  bool was_event;   /* the instruction ended in an interrupt handler: no single-step trap */
  bool is_kicked;
  bool has_paused;     /* PAUSE: other processors may run, if there are any */
  bool is_alone;       /* the next instruction is a block of its own: fault_unless_alone */
  uint32_t debug_due;  /* bits of DR6 for a #DB after this instruction */
  uint8_t dr_access;   /* data or I/O breakpoints are enabled: bit per debug register; DR_ACCESS_POINTS: data points */
  uint8_t dr_code;     /* code breakpoints are enabled: bit per debug register */
  bool progress_is_on; /* counters are programmed: progress is reported to the recorder after each instruction */
  bool counts_blocks;  /* progress is reported only after several blocks */
  bool counts_cache;   /* a counter counts cache references or misses: every access takes the slow path */
  bool counts_inserts; /* a counter counts records of the LBR stack */
  bool counts_metrics; /* a counter counts slots by category */

  /* a debugger outside the guest: point.c */
  struct cpu_point *points;
  size_t point_count, code_points;
  uint32_t catches; /* exceptions: 1 << vector */
  uint32_t held;    /* state that the run loop cleared before the instruction: shadow, RF */
  bool is_stepping;
  struct cpu_hit hit;

  /* the exception that is raised or delivered */
  struct {
    uint8_t vector;
    bool has_error;
    uint32_t error;
    bool is_delivering;      /* an event is being delivered: another fault may become #DF */
    uint8_t delivering;      /* its vector */
    bool is_delivering_soft; /* by INT n, INT3, INTO, INT1: never contributory */
  } fault;
  jmp_buf door;

  unsigned number; /* index among those that share the memory, and initial APIC ID; 0 is the bootstrap processor */
  const struct lb_cpu *model;
  struct cpu_features features;
  struct lb_recorder recorder;
  cpu_listener *listener;
  void *listener_data;
  cpu_listener *follower;
  void *follower_data;
  struct predictor predictor;
  struct cache cache;
  struct cpu_bus bus;
  struct memory *memory;
  struct block_cache *blocks;
  struct block_jump *jumps;      /* the block cache's */
  struct cpu_tlb_entry *tlbs[3]; /* supervisor, user, and one that stays empty: every access takes the slow path */
  uint16_t keys_cached[2];       /* protection keys of the supervisor's and the user's pages in `tlbs` */
  uint8_t tlb_shift;             /* of the largest page with entries in `tlbs`, 0 for none: see access_flush_page */

  /* time */
  uint64_t retired_base; /* instructions retired before the current budget was given */
  int64_t budget_start;
  int64_t budget_held;   /* withheld until the run loop has checked for events */
  uint64_t extra_cycles; /* cycles beyond one per instruction: mispredictions and idle time */
  uint64_t reported;     /* cycles that were reported to the recorder */
  uint64_t reported_retired;
  uint64_t spins, spin_retired; /* consecutive jumps to itself, and when the last one was */
  uint64_t eventing_ip;         /* linear address of the instruction that is running, while counters run */
  struct lb_progress progress;  /* of the instruction that is running */

  /* why a run ended */
  char reason[96];
};

/* Reasons why an instruction may be protected from interrupts. */
enum { SHADOW_STI = 1, SHADOW_MOV_SS = 2 };

#define STARTUP_WAITS 0x100u /* in `startup` */

/* Reasons why cpu_run returns. */
enum cpu_stop {
  CPU_STOP_BUDGET,        /* the budget of instructions is used up, or cpu_kick was called */
  CPU_STOP_HALTED,        /* HLT, MWAIT: waits for an interrupt */
  CPU_STOP_SPINNING,      /* jumps to itself: waits for an interrupt */
  CPU_STOP_SHUTDOWN,      /* triple fault; `reason` says how it arose */
  CPU_STOP_UNIMPLEMENTED, /* an instruction that this interpreter lacks; `reason` names it; rip is at it */
  CPU_STOP_POINT,         /* a debugger's point or step: `hit` says why */
};

/* Makes a processor of the catalogue, in its reset state. `memory` and the bus' data must outlive it. Several
 * processors may share a memory if they run in turns: the first is the bootstrap processor, the others wait for a
 * startup IPI after a reset. Returns 0, -ENOMEM, -E2BIG for more than MEMORY_CPUS of them, or LB_E_NO_UNIT when the CPU
 * has no recording unit. */
int cpu_new(const struct lb_cpu *model, struct memory *memory, const struct cpu_bus *bus, uint32_t recorder_options,
            struct cpu **ret_cpu);
void cpu_free(struct cpu *cpu);

/* Between two runs, cpu_save writes the processor's state, including its recorder, predictor and cached translations,
 * to at most `size` bytes, and returns how many bytes the state has. cpu_load loads such bytes, which may be forged,
 * into a processor that the same cpu_new has just made, after its memory was filled. The caller saves RAM, lines and
 * time of the rest of the machine. Decoded blocks are not saved: code is decoded again. cpu_load returns 0;
 * LB_E_TRUNCATED; LB_E_DAMAGED; LB_E_OTHER_HOST when the processor has other instructions on this host. After a failure
 * it may only be freed. */
size_t cpu_save(struct cpu *cpu, void *bytes, size_t size);
int cpu_load(struct cpu *cpu, const void *bytes, size_t size);

/* Power-on, or RESET# when `is_warm`. */
void cpu_reset(struct cpu *cpu, bool is_warm);

/* Runs until about `instructions` have retired or something else ends it. */
enum cpu_stop cpu_run(struct cpu *cpu, uint64_t instructions);

/* Runs one instruction, or one element of a repeated string instruction, and ignores a code point there. If an
 * interrupt or exception comes instead, it runs up to its handler. Returns CPU_STOP_POINT with CPU_HIT_STEP or another
 * reason for the stop, or CPU_STOP_HALTED if the processor waits. */
enum cpu_stop cpu_step(struct cpu *cpu);

/* Between runs: cpu_set_points replaces the points and returns 0 or -ENOMEM. cpu_catch sets the exceptions, as bits
 * 1 << vector, before whose delivery a run ends. */
int cpu_set_points(struct cpu *cpu, const struct cpu_point *points, size_t count);
void cpu_catch(struct cpu *cpu, uint32_t vectors);

/* From callbacks: ends the run soon, because the host's schedule has changed. */
void cpu_kick(struct cpu *cpu);

/* Makes a #DB with these bits of DR6 due after the current instruction. */
void cpu_trap(struct cpu *cpu, uint32_t bits);

void cpu_set_line(struct cpu *cpu, enum cpu_line line, bool is_high);
void cpu_signal(struct cpu *cpu, enum cpu_signal signal);
void cpu_start(struct cpu *cpu, uint8_t vector); /* SIPI */

/* The current time in cycles and the retired instructions, also in the middle of a run. cpu_idle advances the time
 * while nothing runs. */
uint64_t cpu_cycles(const struct cpu *cpu);
uint64_t cpu_retired(const struct cpu *cpu);
void cpu_idle(struct cpu *cpu, uint64_t cycles);
/* From callbacks: makes the current instruction take this many more cycles. */
void cpu_work(struct cpu *cpu, uint64_t cycles);
/* Advances the time of a processor that did not run while others ran up to `until`. Its counters and the clock of
 * records do not advance. */
void cpu_stand(struct cpu *cpu, uint64_t until);
/* Ends an MWAIT if another agent wrote the monitored line, or if a masked interrupt ends the wait. */
void cpu_look_at_monitor(struct cpu *cpu);

/* Whether an interrupt could wake the processor: IF is 1, a signal that cannot be masked is pending, or MWAIT ignores
 * the mask. */
bool cpu_is_interruptible(const struct cpu *cpu);

/* Recomputes everything that depends on registers; to be called after a loader or a debugger changed them. */
void cpu_changed(struct cpu *cpu);

/* All of RFLAGS. */
uint64_t cpu_flags(const struct cpu *cpu);
void cpu_set_flags(struct cpu *cpu, uint64_t flags);

/* Sets the function that is told of every branch; NULL: none. */
void cpu_listen(struct cpu *cpu, cpu_listener *listener, void *data);
/* Sets a second such function, for a debugger's branch history. It is told of #DB, too. */
void cpu_follow(struct cpu *cpu, cpu_listener *follower, void *data);

/* For a debugger, between runs: do the same as MOV to CR0, CR2, CR3, CR4 and CR8, loads of ES, SS, DS, FS and GS (of CS
 * in real mode), RDMSR and WRMSR at CPL 0. Return 0 or true. If the instruction would fault, they return -EINVAL or
 * false and change nothing. */
int cpu_set_control(struct cpu *cpu, unsigned number, uint64_t value);
int cpu_load_segment(struct cpu *cpu, unsigned number, uint16_t selector);
bool cpu_read_msr(struct cpu *cpu, uint32_t msr, uint64_t *ret_value);
bool cpu_write_msr(struct cpu *cpu, uint32_t msr, uint64_t value);

/* Read and write guest memory by linear address as a debugger does: no faults, no accessed bits. Return the bytes
 * done. */
size_t cpu_peek(struct cpu *cpu, uint64_t linear, void *bytes, size_t size);
size_t cpu_poke(struct cpu *cpu, uint64_t linear, const void *bytes, size_t size);

/* Translates a linear address by paging. Returns its physical address, or -1. `ret_bits`, which may be NULL, gets
 * LB_DS_PAGE_ bits. */
uint64_t cpu_translate(struct cpu *cpu, uint64_t linear, unsigned *ret_bits);

/* Loads a segment register as real mode does; for loaders and firmware. */
void cpu_load_real_segment(struct cpu *cpu, unsigned number, uint16_t selector);
/* Enters protected mode with flat segments, the state in which a multiboot loader starts a kernel. */
void cpu_enter_flat_protected(struct cpu *cpu, uint32_t eip);
/* Sets RIP, as the board's power-on does. This is not a branch. */
void cpu_set_rip(struct cpu *cpu, uint64_t rip);

/* Disassembles the instruction at `rip` to one line of text, for reports. Returns its length, or negative. */
int cpu_disassemble(struct cpu *cpu, uint64_t rip, char *text, size_t size);

#endif
