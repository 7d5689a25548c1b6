/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers as the user names them: on which CPU, which CPUs have them, how WRMSR responds.
 */
#include "report/register.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "hardware/hardware.h"
#include "lastbranch/recorder.h"

#define NAMES_SHOWN 4

/* ---- CPUs that have it ---- */

int register_list_cpus(struct text *text, bool (*has)(const struct lb_cpu *cpu, const void *data), const void *data)
{
  const struct lb_cpu *cpu;
  int count = 0;
  int r = 0;

  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    if (!has(cpu, data))
      continue;
    if (count < NAMES_SHOWN)
      r = text_addf(text, "%s%s", count ? ", " : "", cpu->name);
    if (r < 0)
      return r;
    count++;
  }
  if (count > NAMES_SHOWN)
    r = text_addf(text, " and %d more", count - NAMES_SHOWN);
  return r < 0 ? r : count;
}

static bool cpu_has_register(const struct lb_cpu *cpu, const void *data)
{
  unsigned number;

  return lb_cpu_register_find(cpu, data, &number) >= 0;
}

/* ---- choosing a CPU and a register ---- */

void register_choose_cpu(const struct lb_cpu *cpu, bool (*fits)(const struct lb_cpu *cpu, const void *data),
                         const void *data, struct register_choice *ret_choice)
{
  int r;

  ret_choice->chosen_by = "--cpu";
  if (!cpu) {
    cpu = hardware_cpu(hardware_system_real());
    ret_choice->chosen_by = "this machine";
    if (!cpu || !fits(cpu, data)) {
      r = lb_cpu_find("skylake", &cpu);
      assert(r >= 0);
      ret_choice->chosen_by = "default";
    }
  }
  ret_choice->cpu = cpu;
}

/* A register's name without its optional prefixes. */
static const char *name_bare(const char *name)
{
  if (strncmp(name, "IA32_", 5) == 0)
    return name + 5;
  return strncmp(name, "MSR_", 4) == 0 ? name + 4 : name;
}

/* Guesses what the user meant: an address without its 0x, a register whose name begins with the word, or the nearest
 * name. */
static bool register_guess(const struct lb_cpu *cpu, const char *name, char *buffer, size_t size)
{
  size_t nearest = strlen(name) / 3 + 1, distance;
  char candidate[64];
  unsigned number;
  bool is_found = false;

  snprintf(buffer, size, "0x%s", name);
  if (lb_cpu_register_find(cpu, buffer, &number) >= 0)
    return true;
  for (unsigned id = 0; id < LB_REGISTERS && nearest > 0; id++) {
    if (!lb_cpu_register(cpu, (enum lb_register)id).count)
      continue;
    lb_cpu_register_name(cpu, (enum lb_register)id, 0, candidate, sizeof(candidate));
    distance = word_distance(name, name_bare(candidate));
    if (strlen(name) >= 3 && strncasecmp(name_bare(candidate), name, strlen(name)) == 0)
      distance = 0;
    if (distance >= nearest)
      continue;
    nearest = distance;
    is_found = true;
    snprintf(buffer, size, "%s", name_bare(candidate));
  }
  return is_found;
}

static void register_complain(const struct lb_cpu *cpu, const char *name)
{
  struct text names = {0};
  char guess[64];
  int count;

  count = register_list_cpus(&names, cpu_has_register, name);
  if (count > 0)
    message("%s has no register '%s'; %s %s it", cpu->title, name, text_string(&names), count == 1 ? "has" : "have");
  else if (register_guess(cpu, name, guess, sizeof(guess)))
    message("no CPU has a register '%s'; did you mean %s? 'lbr cpu %s' lists them", name, guess, cpu->name);
  else
    message("no CPU has a register '%s'; 'lbr cpu %s' lists those of %s", name, cpu->name, cpu->title);
  text_done(&names);
}

int register_choose(const struct lb_cpu *cpu, const char *register_name, struct register_choice *ret_choice)
{
  struct register_choice choice = {0};
  struct lb_register_range range;
  int r;

  register_choose_cpu(cpu, cpu_has_register, register_name, &choice);
  r = lb_cpu_register_find(choice.cpu, register_name, &choice.number);
  if (r < 0) {
    register_complain(choice.cpu, register_name);
    return r;
  }
  choice.id = (enum lb_register)r;
  range = lb_cpu_register(choice.cpu, choice.id);
  choice.msr = range.first + choice.number * range.stride;
  *ret_choice = choice;
  return 0;
}

void register_put_cpu(struct page *page, const struct register_choice *choice)
{
  if (page->is_json) {
    page_put(page, "cpu", choice->cpu->name);
    page_put(page, "cpu_chosen_by", choice->chosen_by);
  } else if (strcmp(choice->chosen_by, "--cpu") == 0) {
    page_put(page, "cpu", choice->cpu->title);
  } else {
    page_putf(page, "cpu", "%s (%s; --cpu chooses another)", choice->cpu->title, choice->chosen_by);
  }
}

/* ---- writing ---- */

const char *register_answer_word(enum write_answer answer)
{
  static const char *const words[] = {"kept", "changed", "#GP", "read-only", "unknown"};

  return words[answer];
}

static enum lb_msr_answer write_fresh(const struct register_choice *choice, uint64_t value, uint64_t *ret_value)
{
  struct lb_recorder recorder;
  enum lb_msr_answer answer;

  if (lb_recorder_init(&recorder, choice->cpu, NULL, 0) < 0)
    return LB_MSR_FOREIGN;
  answer = lb_recorder_wrmsr(&recorder, choice->msr, value);
  if (answer == LB_MSR_OK && ret_value)
    lb_recorder_rdmsr(&recorder, choice->msr, ret_value);
  return answer;
}

static uint64_t reset_value(const struct register_choice *choice)
{
  struct lb_recorder recorder;
  uint64_t value = 0;

  if (lb_recorder_init(&recorder, choice->cpu, NULL, 0) >= 0)
    lb_recorder_rdmsr(&recorder, choice->msr, &value);
  return value;
}

enum write_answer register_try_write(const struct register_choice *choice, uint64_t value, uint64_t *ret_value)
{
  uint64_t got = 0;

  switch (write_fresh(choice, value, &got)) {
  case LB_MSR_OK:
    *ret_value = got;
    return got == value ? WRITE_KEPT : WRITE_CHANGED;
  case LB_MSR_GP: /* a register that refuses its own value is read-only */
    return write_fresh(choice, reset_value(choice), NULL) == LB_MSR_GP ? WRITE_READ_ONLY : WRITE_FAULTS;
  case LB_MSR_FOREIGN:
    break;
  }
  return WRITE_UNKNOWN;
}

const char *register_fault_reason(const struct register_choice *choice)
{
  switch (choice->id) {
  case LB_REG_LBR_FROM:
  case LB_REG_LBR_TO:
  case LB_REG_LAST_FROM:
  case LB_REG_LAST_TO:
  case LB_REG_LER_FROM:
  case LB_REG_LER_TO:
  case LB_REG_DS_AREA:
    return "the address is not canonical";
  case LB_REG_LBR_DEPTH:
    return "the CPU does not have this depth";
  default:
    return NULL;
  }
}

uint64_t register_faulting_bits(const struct register_choice *choice, uint64_t value)
{
  uint64_t reset = reset_value(choice), faulting = 0;

  for (uint64_t bit = 1; bit; bit <<= 1)
    if ((value ^ reset) & bit && write_fresh(choice, reset ^ bit, NULL) == LB_MSR_GP)
      faulting |= bit;
  return faulting;
}

const char *register_bit_write(const struct register_choice *choice, unsigned bit)
{
  uint64_t got = 0;
  enum write_answer answer = register_try_write(choice, reset_value(choice) | UINT64_C(1) << bit, &got);

  return answer == WRITE_CHANGED && !(got >> bit & 1) ? "ignored" : register_answer_word(answer);
}
