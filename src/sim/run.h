/* SPDX-License-Identifier: Apache-2.0
 *
 * A rule file while it runs on one CPU: one or two recorders, the guest's memory, and the callbacks that the host has
 * received.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/statement.h"

/* ---- guest memory (memory.c) ---- */

struct areas {
  struct {
    uint64_t address;
    size_t size;
    unsigned char *bytes;
  } pieces[SIM_PIECES_MAX];
  unsigned count;
  size_t total;
};

/* Adds a piece of memory with at least one byte, all zeros, that does not reach past the last address. Returns 0;
 * -EEXIST if it overlaps another; LB_E_TOO_BIG past the limits; -ENOMEM. */
int areas_add(struct areas *memory, uint64_t address, size_t size);
void areas_done(struct areas *memory);

/* The host address of `size` bytes that are all in one piece; NULL if they are not. */
unsigned char *areas_at(const struct areas *memory, uint64_t address, size_t size);

/* A little-endian number of 1, 2, 4 or 8 bytes. */
uint64_t areas_get(const unsigned char *bytes, unsigned size);
void areas_put(unsigned char *bytes, unsigned size, uint64_t value);

/* The attributes of pages, for lb_ds_check. */
struct pages {
  struct {
    uint64_t number;
    unsigned attributes;
  } page[SIM_PAGES_MAX];
  unsigned count;
};

/* Returns 0, or LB_E_TOO_BIG. */
int pages_set(struct pages *pages, uint64_t address, unsigned attributes);
unsigned pages_get(const struct pages *pages, uint64_t address);

/* ---- a thread of the core (thread.c) ---- */

struct tally {
  uint64_t seen;  /* since the beginning */
  uint64_t asked; /* of these, before `expect` last asked */
};

struct thread {
  struct run *run;
  struct lb_recorder recorder;
  bool is_made;
  enum code_mode mode;
  uint64_t cpl, base;
  bool tf;
  bool is_pebs_due; /* answer of the last `progress` */
  struct tally pmi, trap, pin[4], bus;
  struct lb_message *messages; /* all of them */
  size_t capacity;
};

/* Makes the unit, in its state after a cold reset. Returns 0, or LB_E_NO_UNIT. */
int thread_make(struct thread *thread, bool has_map);
void thread_done(struct thread *thread);

/* Changes the code mode. */
void thread_set_mode(struct thread *thread, enum code_mode mode);

/* ---- the run (run.c) ---- */

struct run {
  const struct sim *sim;
  const struct lb_cpu *cpu;
  size_t index; /* of the CPU in the catalogue */
  bool has_map;
  const struct sim_watch *watch;
  struct thread threads[2];
  struct thread *thread; /* the one that statements drive */
  struct areas memory;
  struct pages pages;
  struct told_facts facts;
  const struct statement *symbols[SIM_SYMBOLS_MAX];
  size_t symbol_count;
  struct report_symbols report_symbols;
  struct report_windbg windbg;
  struct report_options options;
  struct text effect; /* of the running statement, for the watcher */
  struct sim_result result;
  int error; /* 0, or negative as sim_run returns it: the run is over */
};

/* Notes a failure: an expectation of the statement does not hold. */
void run_fail(struct run *run, const struct statement *statement, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* The same, for one of the lines after `expect print`. */
void run_fail_line(struct run *run, unsigned line, const char *expected, const char *got);

/* Tells the watcher of an effect. Costs nothing without a watcher. */
void run_note(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- registers (msr.c) ---- */

void run_wrmsr(struct run *run, const struct statement *statement);
void run_rdmsr(struct run *run, const struct statement *statement);
void run_vmentry(struct run *run, const struct statement *statement);
void expect_register(struct run *run, const struct statement *statement);

/* ---- stimuli (guest.c) ---- */

void run_thread(struct run *run, const struct statement *statement);
void run_mode(struct run *run, const struct statement *statement);
void run_cpl(struct run *run, const struct statement *statement);
void run_base(struct run *run, const struct statement *statement);
void run_tf(struct run *run, const struct statement *statement);
void run_branch(struct run *run, const struct statement *statement);
void run_event(struct run *run, const struct statement *statement);
void run_db(struct run *run, const struct statement *statement);
void run_match(struct run *run, const struct statement *statement);
void run_smi(struct run *run, const struct statement *statement);
void run_rsm(struct run *run, const struct statement *statement);
void run_init(struct run *run, const struct statement *statement);
void run_reset(struct run *run, const struct statement *statement);
void run_vmexit(struct run *run, const struct statement *statement);
void run_sleep(struct run *run, const struct statement *statement);
void run_pt(struct run *run, const struct statement *statement);
void run_progress(struct run *run, const struct statement *statement);
void run_pebs(struct run *run, const struct statement *statement);
void run_pmi_delivered(struct run *run, const struct statement *statement);
void run_uncore(struct run *run, const struct statement *statement);
void run_hold(struct run *run, const struct statement *statement);
void run_release(struct run *run, const struct statement *statement);
void run_flush(struct run *run, const struct statement *statement);

/* ---- surroundings and printing (setting.c) ---- */

void run_memory(struct run *run, const struct statement *statement);
void run_poke(struct run *run, const struct statement *statement);
void run_facts(struct run *run, const struct statement *statement);
void run_page(struct run *run, const struct statement *statement);
void run_symbol(struct run *run, const struct statement *statement);
void run_banner(struct run *run, const struct statement *statement);
void run_version(struct run *run, const struct statement *statement);
void run_print(struct run *run, const struct statement *statement);
void expect_print(struct run *run, const struct statement *statement);

/* For struct report_symbols; `data` is the run. */
bool run_find_symbol(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset);

/* ---- expectations (expect.c) ---- */

void expect_record(struct run *run, const struct statement *statement);
void expect_used(struct run *run, const struct statement *statement);
void expect_ler(struct run *run, const struct statement *statement);
void expect_bus(struct run *run, const struct statement *statement);
void expect_pmi(struct run *run, const struct statement *statement);
void expect_trap(struct run *run, const struct statement *statement);
void expect_pin(struct run *run, const struct statement *statement);
void expect_memory(struct run *run, const struct statement *statement);
void expect_recording(struct run *run, const struct statement *statement);
void expect_undefined(struct run *run, const struct statement *statement);
void expect_stepping(struct run *run, const struct statement *statement);
void expect_pebs_due(struct run *run, const struct statement *statement);
void expect_generated(struct run *run, const struct statement *statement);
void expect_stored(struct run *run, const struct statement *statement);
void expect_lost(struct run *run, const struct statement *statement);
void expect_rules(struct run *run, const struct statement *statement);
void expect_cpuid(struct run *run, const struct statement *statement);

/* ---- comparing (compare.c) ---- */

/* Compares two runs of one file on one CPU, which must not differ: a difference is a failure of `run`. */
void run_compare(struct run *run, const struct run *other);

#endif
