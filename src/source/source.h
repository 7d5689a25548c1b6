/* SPDX-License-Identifier: Apache-2.0
 *
 * Records a program by other means than the process recorder: the branch stacks, BTS and Intel PT of the processor
 * through perf_event_open(2), and ptrace(2) that steps from branch to branch. Each source calls the same functions of a
 * sink, which writes the branches to a trace or keeps the last of them.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/hardware.h"
#include "lastbranch/trace.h"

enum source_kind {
#define SOURCE(name, word, is_complete, facility, title) SOURCE_##name,
#include "source/source.def"
#undef SOURCE
  SOURCES,
};

/* "auto", "software", ...; NULL past the last. */
const char *source_word(unsigned kind);
const char *source_title(unsigned kind);

/* The source with this word. Returns >= 0, or -EINVAL. */
int source_find(const char *word);

/* Does it give every branch, as the software source does? */
bool source_is_complete(unsigned kind);

/* Can it be used on this host? Returns true; else false with a sentence that says why, and what to do about it ("":
 * nothing). */
bool source_is_usable(const struct hardware_host *host, unsigned kind, const char **ret_reason,
                      const char **ret_advice);

/* The source that `auto` stands for on this host: the first complete source that is usable and costs less than the
 * software one. */
enum source_kind source_choose(const struct hardware_host *host);

/* ---- where branches go ---- */

struct trace_stamp; /* trace/trace.h */

/* The functions and their return values are those of a trace writer. */
struct source_sink {
  void *data;
  int (*module)(void *data, const struct lb_trace_module *module);
  int (*code)(void *data, const struct lb_trace_code *code);
  int (*stream)(void *data, const struct lb_trace_stream *stream, uint32_t *ret_number);
  int (*branches)(void *data, uint32_t stream, const struct lb_branch *branches, size_t count);
  int (*gap)(void *data, const struct lb_trace_gap *gap);
  /* trace_writer_describe: title and name of a stream. NULL: not wanted. */
  int (*describe)(void *data, uint32_t stream, const char *key, const char *value);
  /* trace_writer_stamp: when a thread was at this place. NULL: not wanted. */
  int (*stamp)(void *data, uint32_t stream, const struct trace_stamp *stamp);
};

/* A sink that is a trace's writer. */
struct source_sink source_sink_trace(struct lb_trace_writer *writer);

/* ---- a recording ---- */

#define SOURCE_PERIOD_DEFAULT 1000003u
#define SOURCE_PERIOD_LEAST 100u
#define SOURCE_AUX_DEFAULT (4u << 20)
#define SOURCE_AUX_LEAST (64u << 10)

struct source_options {
  enum source_kind kind; /* one that records: neither auto nor software */
  uint64_t period;       /* lbr: branches between two samples; 0: SOURCE_PERIOD_DEFAULT */
  uint32_t kinds;        /* lbr: of these kinds only, bits 1 << enum lb_branch_kind; 0: of all */
  uint64_t aux_size;     /* bytes for each processor, a power of two; 0: SOURCE_AUX_DEFAULT */
  bool is_alone;         /* children are not recorded */
  bool wants_deaths;     /* deaths of processes are kept for source_death_next */
  bool steps_singly;     /* block-step, for tests: single steps, up to the next taken branch, stand in for it */
};

#define SOURCE_TITLE_MOST 256u /* bytes of a command line or title that are kept, with the 0 */

/* A process that a signal has killed, as lbr run shows it. */
struct source_death {
  uint32_t process, thread;
  int signal, code;
  uint64_t address, rip, flags, registers[16]; /* in the order of the encoding */
  char command[SOURCE_TITLE_MOST]; /* its words, with blanks between them, or the title that it has set; "": unknown */
};

struct source_state {
  uint32_t process; /* the program */
  bool has_ended;   /* the program itself has ended; `status` is then that of waitpid(2) */
  int status;
  bool is_over; /* no process of the run is left */
  uint64_t processes, threads;
  uint64_t losses; /* gaps */
};

/* A problem, in words for the user. */
struct source_problem {
  char text[256];
  const char *advice; /* "": none */
};

struct source;
struct source_kernel; /* kernel.h */

/* The kernel that lbr runs on. */
const struct source_kernel *source_kernel_real(void);

/* Starts the program at `path`, without a search; recording begins with its first instruction. `sink`, `options` and
 * their data must stay valid. Returns 0; negative with the problem in `ret_problem`; -ENOEXEC, -EACCES or another
 * -errno of execve(2), with an empty text: the program cannot be executed. */
int source_start(const struct source_kernel *kernel, const struct source_options *options, const char *path,
                 char *const arguments[], char *const environment[], const struct source_sink *sink,
                 struct source **ret_source, struct source_problem *ret_problem);

/* Takes the available records, waiting at most `milliseconds`. Returns 0, or negative when nothing can be recorded any
 * more: the program continues to run. */
int source_step(struct source *source, unsigned milliseconds);

const struct source_state *source_state(const struct source *source);

/* Gives the next death that was not given yet. Returns false, touching nothing, if there was none. */
bool source_death_next(struct source *source, struct source_death *ret_death);

/* Takes all remaining records. Returns as source_step. */
int source_finish(struct source *source);
void source_free(struct source *source); /* takes NULL; releases the program */

/* The value of a trace's meta `sampling`; NULL: the source does not sample. Valid as long as the source. */
const char *source_sampling(const struct source *source);

/* The moment of CLOCK_MONOTONIC, in nanoseconds, since which the times of stamps are counted. */
uint64_t source_clock(const struct source *source);

/* Was this build made with libipt? */
bool source_has_pt(void);

#endif
