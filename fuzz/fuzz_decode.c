/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that takes bytes or words from a user apart: DS areas, BTS and PEBS records, raw LBR records, and the
 * names of CPUs, registers, kinds, options and numbers. The same input is tried as all of them. Checked: sizes that are
 * returned fit the input, failure touches no out-parameter, and what a name finds can be found again by the name that
 * it has.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/branch.h"
#include "lastbranch/error.h"
#include "lastbranch/recorder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CANARY 0xA5

static void check(bool is_true, const char *what)
{
  if (is_true)
    return;
  fprintf(stderr, "fuzz_decode: %s does not hold\n", what);
  abort();
}

static bool is_untouched(const void *object, size_t size)
{
  const unsigned char *bytes = object;

  for (size_t i = 0; i < size; i++)
    if (bytes[i] != CANARY)
      return false;
  return true;
}

/* ---- bytes ---- */

static void try_ds(const uint8_t *data, size_t size, bool is_64)
{
  struct lb_ds_area area;
  int r;

  memset(&area, CANARY, sizeof(area));
  r = lb_ds_decode(is_64, data, size, &area);
  if (r < 0) {
    check(size < (is_64 ? 0x40 : 0x30), "a whole DS area can be taken apart");
    check(is_untouched(&area, sizeof(area)), "a failing lb_ds_decode touches nothing");
    return;
  }
  check(area.is_64 == is_64, "a DS area has the layout that was asked for");
  if (!is_64)
    check(((area.bts_base | area.pebs_threshold) >> 32) == 0, "a 32-bit DS area has 32-bit addresses");
}

static void try_bts(const uint8_t *data, size_t size, bool is_64)
{
  struct lb_bts_record record;
  int r;

  memset(&record, CANARY, sizeof(record));
  r = lb_bts_decode(is_64, data, size, &record);
  if (r < 0)
    check(size < (is_64 ? 24 : 12) && is_untouched(&record, sizeof(record)), "a failing lb_bts_decode touches nothing");
  else
    check(r == (is_64 ? 24 : 12), "a BTS record has its size");
}

static void try_pebs(const uint8_t *data, size_t size, unsigned pebs)
{
  struct lb_registers registers;
  uint64_t status;
  int r;

  memset(&registers, CANARY, sizeof(registers));
  memset(&status, CANARY, sizeof(status));
  r = lb_pebs_decode(pebs, data, size, &registers, &status);
  if (r < 0)
    check(is_untouched(&registers, sizeof(registers)) && is_untouched(&status, sizeof(status)),
          "a failing lb_pebs_decode touches nothing");
  else
    check((size_t)r <= size && (lb_pebs_size(pebs) ? (size_t)r == lb_pebs_size(pebs) : r >= 32),
          "a PEBS record has its size");
}

static void try_record(const struct lb_cpu *cpu, const uint8_t *data, size_t size)
{
  struct lb_record record;
  struct lb_raw raw;

  if (size < 24)
    return;
  raw = (struct lb_raw){bytes_get_u64(data), bytes_get_u64(data + 8), bytes_get_u64(data + 16)};
  record = lb_record_decode(cpu, &raw);
  check(record.kind == LB_BRANCH_KINDS && record.index == 0, "a raw record has neither kind nor index");
  check(record.raw.from == raw.from && record.raw.to == raw.to && record.raw.info == raw.info,
        "the raw record is kept");
}

static void try_address(const struct lb_cpu *cpu, const uint8_t *data, size_t size)
{
  struct lb_register_range range;
  unsigned number = 0;
  uint32_t msr;
  int id;

  if (size < 4)
    return;
  msr = bytes_get_u32(data);
  id = lb_cpu_register_at(cpu, msr, &number);
  if (id < 0)
    return;
  check(id < LB_REGISTERS, "an address belongs to a register");
  range = lb_cpu_register(cpu, (enum lb_register)id);
  check(number < range.count && range.first + number * range.stride == msr, "a register lies where it was found");
}

/* ---- words ---- */

static void try_number(const char *word)
{
  char again[32];
  uint64_t value, second;

  if (number_parse(word, &value) < 0)
    return;
  snprintf(again, sizeof(again), "0x%" PRIx64, value);
  check(number_parse(again, &second) == 0 && second == value, "a number in hex is the same number");
  snprintf(again, sizeof(again), "%" PRIu64, value);
  check(number_parse(again, &second) == 0 && second == value, "a number in decimal is the same number");
}

static void try_fields(const struct lb_cpu *cpu, enum lb_register id)
{
  struct lb_field field;
  unsigned count = 0;

  while (lb_cpu_field(cpu, id, count, &field) >= 0) {
    check(field.name && field.meaning && field.high >= field.low && field.high < 64, "a field lies within 64 bits");
    check(++count <= 64, "there are at most 64 fields");
  }
}

static void try_register(const struct lb_cpu *cpu, const char *word)
{
  unsigned number = 99, second = 0;
  char name[64];
  int id = lb_cpu_register_find(cpu, word, &number);

  if (id < 0) {
    check(number == 99, "a failing lb_cpu_register_find touches nothing");
    return;
  }
  check(id < LB_REGISTERS && number < lb_cpu_register(cpu, (enum lb_register)id).count, "a register has its number");
  check(lb_cpu_register_name(cpu, (enum lb_register)id, number, name, sizeof(name)) < (int)sizeof(name),
        "a register's name is short");
  check(lb_cpu_register_find(cpu, name, &second) == id && second == number, "a register's own name finds it");
  try_fields(cpu, (enum lb_register)id);
}

static void try_cpu(const char *word)
{
  const struct lb_cpu *cpu = NULL, *second = NULL;

  if (lb_cpu_find(word, &cpu) < 0) {
    check(!cpu, "a failing lb_cpu_find touches nothing");
    return;
  }
  check(cpu && lb_cpu_find(cpu->name, &second) >= 0 && second == cpu, "a CPU's own name finds it");
}

static void try_words(const char *word)
{
  int r;

  try_number(word);
  try_cpu(word);
  r = lb_branch_kind_find(word);
  check(r < 0 || strcmp(lb_branch_kind_name((unsigned)r), word) == 0, "a kind has the word that found it");
  r = lb_option_find(word);
  check(r < 0 || strcmp(lb_option_name((unsigned)r), word) == 0, "an option has the word that found it");
  check(word_distance(word, word) == 0 || strlen(word) > 64, "a word is as near to itself as can be");
  check(utf8_size(word) <= strlen(word) || !*word, "a letter ends within its word");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const struct lb_cpu *cpu;
  char *word;

  for (unsigned is_64 = 0; is_64 < 2; is_64++) {
    try_ds(data, size, is_64);
    try_bts(data, size, is_64);
  }
  for (unsigned pebs = 0; pebs <= LB_PEBS_NONE + 1; pebs++)
    try_pebs(data, size, pebs);
  word = malloc(size + 1); /* of its own size, so that a sanitizer sees a read past its end */
  if (!word)
    return 0;
  if (size)
    memcpy(word, data, size);
  word[size] = '\0';
  try_words(word);
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    try_register(cpu, word);
    try_record(cpu, data, size);
    try_address(cpu, data, size);
  }
  free(word);
  return 0;
}
