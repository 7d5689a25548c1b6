/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that `lbr decode` and `lbr encode` share: which register of which CPU the user means, which other CPUs have it,
 * and what a write of a value would do.
 */
#ifndef REPORT_REGISTER_H
#define REPORT_REGISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "cpudb/cpudb.h"
#include "report/page.h"

/* A register that the user named, on the CPU that was named or chosen. */
struct register_choice {
  const struct lb_cpu *cpu;
  const char *chosen_by; /* "--cpu", "this machine", "default" */
  enum lb_register id;
  unsigned number; /* within its run */
  uint32_t msr;
};

/* Chooses the CPU of --cpu or, if that is NULL, this machine's if `fits` accepts it, else Skylake. Sets `cpu` and
 * `chosen_by`. */
void register_choose_cpu(const struct lb_cpu *cpu, bool (*fits)(const struct lb_cpu *cpu, const void *data),
                         const void *data, struct register_choice *ret_choice);

/* The same with a register that the CPU must have. An error message names the CPUs that have it. Returns 0, or
 * LB_E_NO_REGISTER. */
int register_choose(const struct lb_cpu *cpu, const char *register_name, struct register_choice *ret_choice);

/* Prints the CPU that was chosen and, unless the user named it, how it was chosen. */
void register_put_cpu(struct page *page, const struct register_choice *choice);

/* Appends the first few names of the CPUs for which `has` is true, and how many more there are: "a, b, c and 7 more".
 * Appends nothing if there is none. Returns how many there are, or -ENOMEM. */
int register_list_cpus(struct text *text, bool (*has)(const struct lb_cpu *cpu, const void *data), const void *data);

/* Makes the value with the fields that the words name, FIELD or FIELD=VALUE with commas between them, and all others 0.
 * `register_name` is for messages. Returns 0, or negative after a message: LB_E_BAD_SYNTAX and LB_E_BAD_NUMBER if a
 * word is invalid for any register. */
int register_encode(const struct register_choice *choice, const char *register_name, char *const *words, int count,
                    uint64_t *ret_value);

/* ---- writing ---- */

enum write_answer {
  WRITE_KEPT,      /* reads back as written */
  WRITE_CHANGED,   /* no fault, but reads back differently */
  WRITE_FAULTS,    /* #GP */
  WRITE_READ_ONLY, /* #GP on any value */
  WRITE_UNKNOWN,   /* there is no model of this CPU's recording unit */
};

const char *register_answer_word(enum write_answer answer);

/* Asks a recorder of this CPU, fresh from reset, for the answer to WRMSR. `ret_value` is the value that reads back, if
 * nothing faults. */
enum write_answer register_try_write(const struct register_choice *choice, uint64_t value, uint64_t *ret_value);

/* Returns why a value faults for a reason other than a single bit (for example because it is not canonical); NULL if a
 * bit is the reason. */
const char *register_fault_reason(const struct register_choice *choice);

/* The bits of `value` that give #GP when the register has them and is otherwise as after reset. */
uint64_t register_faulting_bits(const struct register_choice *choice, uint64_t value);

/* The effect of a write on one bit that is set: "kept", "ignored", "#GP", ... */
const char *register_bit_write(const struct register_choice *choice, unsigned bit);

#endif
