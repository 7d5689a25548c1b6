/* SPDX-License-Identifier: Apache-2.0
 *
 * A rule file after parsing: a list of statements, each with the verb that says how to run it. The verbs are the rows
 * of statement.def and expect.def.
 */
#ifndef SIM_STATEMENT_H
#define SIM_STATEMENT_H

#include "sim/sim.h"

#define SIM_CPUS_MAX 256
#define SIM_ADDRESSES_MAX 8

struct parser;
struct run;
struct statement;

/* A set of CPUs, by their index in the catalogue. */
struct cpu_set {
  uint64_t bits[SIM_CPUS_MAX / 64];
};

/* A verb: one row of a table. */
struct verb {
  const char *word;
  unsigned least, most; /* number of words after it */
  int (*parse)(struct parser *parser, struct statement *statement);
  void (*run)(struct run *run, const struct statement *statement); /* NULL: done when it is parsed */
  const char *choices; /* the words that parse_choice takes, separated by blanks */
  uint64_t limit;      /* the greatest number that parse_number takes */
  const char *usage;   /* of the words after it */
};

/* A register as the file names it. A name means another address, or none, on another CPU. */
struct named_register {
  const char *name;
  bool is_address; /* the name is a number: `addresses[0]` */
  unsigned count;
  uint32_t addresses[SIM_ADDRESSES_MAX]; /* its addresses on the CPUs of the catalogue */
};

enum code_mode { CODE_16, CODE_32, CODE_COMPAT, CODE_64 }; /* in the order of the words of `mode` */

/* A branch or event. Values that the file does not give are taken from the thread when it runs. */
struct jump {
  uint64_t address[3]; /* from and to; or current, next and handler */
  uint64_t base, to_base;
  uint8_t kind, flags, length;
  uint8_t from_cpl, to_cpl, to_mode;
  bool has_base, has_to_base, has_cpl, has_to_mode;
};

/* Properties of an expected record, besides its addresses. */
struct wanted_record {
  uint64_t age, from, to;
  bool is_empty;
  int8_t is_mispredicted, is_in_tsx, is_tsx_abort, has_cycles; /* -1: not said */
  uint64_t cycles, type, index;                                /* UINT64_MAX: not said */
  int kind;                                                    /* -1: not said */
};

struct counted_progress {
  struct lb_progress did;
  uint64_t cpl; /* UINT64_MAX: that of the machine */
};

struct told_facts {
  uint64_t apic, lvt, gate, a20, shared; /* UINT64_MAX: not said */
};

struct statement {
  const struct verb *verb;
  unsigned line;
  bool is_for_all;
  struct cpu_set cpus; /* if not for all */
  union {
    const char *text;
    uint64_t number;  /* a number, or which of the verb's choices */
    uint64_t pair[2]; /* from and to, or the like */
    struct {
      struct named_register reg;
      uint64_t value, mask;
      enum lb_msr_answer answer;
    } msr;
    struct jump jump;
    struct counted_progress progress;
    struct lb_registers registers;
    struct told_facts facts;
    struct {
      uint64_t address, size;
      unsigned attributes; /* of a page */
    } memory;
    struct {
      uint64_t address;
      unsigned size, count;
      uint64_t values[SIM_VALUES_MAX];
    } values;
    struct {
      const char *name;
      uint64_t address;
    } symbol;
    struct wanted_record record;
    struct {
      uint32_t leaf, subleaf, value, mask;
      unsigned reg;
    } cpuid;
    struct {
      unsigned format;
      size_t first, count; /* in sim.printed */
    } print;
  };
};

struct sim {
  char *words;        /* the text, cut into words in place */
  char *text;         /* the text, cut into lines */
  const char **lines; /* line n is lines[n - 1] */
  size_t line_count;
  const char *title;
  const char *source;
  struct cpu_set cpus;
  struct { /* as given by a word like 06_8E, 0 if there was none */
    unsigned family, model;
  } models[SIM_CPUS_MAX];
  struct cpu_set options[LB_OPTIONS]; /* the CPUs for which each is on */
  struct statement *statements;
  size_t count, capacity;
  struct printed {
    const char *text;
    unsigned line;
  } * printed; /* the lines that begin with "| " */
  size_t printed_count, printed_capacity;
};

/* ---- tables (statement.c) ---- */

/* The verb with this word; NULL if there is none. */
const struct verb *verb_find(const char *word);

/* The same for the word after `expect`. */
const struct verb *verb_find_expect(const char *word);

/* The nearest verb, for "did you mean"; NULL if none is near. */
const struct verb *verb_guess(const char *word);
const struct verb *verb_guess_expect(const char *word);

/* True for `expect ...`. */
bool verb_is_expect(const struct verb *verb);

/* True for verbs that take any text up to the end of the line. */
bool verb_is_text(const struct verb *verb);

/* Whether the statement is run on the CPU with this index. */
bool statement_is_for(const struct statement *statement, size_t cpu);

/* ---- sets of CPUs (select.c) ---- */

/* The index of a CPU in the catalogue. It must be in the catalogue. */
size_t cpu_index(const struct lb_cpu *cpu);
bool cpu_set_has(const struct cpu_set *set, size_t index);

#endif
