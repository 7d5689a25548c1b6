/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter against the host's own CPU: snippets (host_*.S) run on both with the same registers and memory, and
 * must leave the same. Start values are fixed, so a failure repeats itself. An argument limits the run to snippets
 * whose names hold it.
 */
#include <cpuid.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "host_flags.h"
#include "host_run.h"

#define RUNS 24          /* with other registers, at each of the two places */
#define REPORTS 20       /* failures that are told in full */
#define POOL_SIZE 0x8000 /* random bytes that memory is filled from */
#define FLAGS_COMPARED (FLAGS_ARITHMETIC | FLAG_DF)

static struct host_guest *guest;
static const char *filter = "";
static const char *why_not; /* the host cannot be used */
static uint8_t pool[POOL_SIZE + HOST_DATA_SIZE];
static uint64_t random_state;
static unsigned failures;

/* ---- random values, the same each time ---- */

static uint64_t random_next(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

static void random_start(uint64_t value)
{
  random_state = value ^ UINT64_C(0x9E3779B97F4A7C15);
  for (unsigned i = 0; i < 8; i++)
    random_next();
}

/* Values on which carries, signs and sizes turn are frequent. */
static uint64_t random_value(void)
{
  uint64_t value = random_next(), choice = random_next() >> 32;
  unsigned shift = (unsigned)(choice >> 8 & 63);

  switch (choice % 8) {
  case 0:
    return value & 0xFF;
  case 1:
    return UINT64_C(1) << shift;
  case 2:
    return (UINT64_C(1) << shift) - 1;
  case 3:
    return ~(UINT64_C(1) << shift);
  case 4:
    return (uint64_t)(int32_t)value;
  case 5:
    return 0 - (value & 0xF);
  default:
    return value;
  }
}

static void state_make(struct host_state *state)
{
  memset(state, 0, sizeof(*state));
  for (unsigned i = 0; i < 16; i++)
    state->r[i] = random_value();
  uint64_t places = random_next();
  state->r[RSI] = HOST_DATA + 0x700 + (places & 0x1FF);
  state->r[RDI] = HOST_DATA + 0x700 + (places >> 16 & 0x1FF);
  state->r[RSP] = HOST_STACK + 0x800 + (places >> 32 & 0xF8);
  state->flags = 2 | (random_next() >> 20 & FLAGS_COMPARED);
}

static void memory_fill(void)
{
  const uint8_t *from = pool + random_next() % POOL_SIZE;

  memcpy(host_memory(HOST_DATA), from, HOST_DATA_SIZE);
  memcpy(host_guest_memory(guest, HOST_DATA), from, HOST_DATA_SIZE);
  memcpy(host_memory(HOST_STACK), from, HOST_STACK_SIZE);
  memcpy(host_guest_memory(guest, HOST_STACK), from, HOST_STACK_SIZE);
}

/* ---- comparing ---- */

static bool same_memory(uint32_t address, size_t size, char *text, size_t text_size)
{
  const uint8_t *here = host_memory(address), *there = host_guest_memory(guest, address);

  if (!memcmp(here, there, size))
    return true;
  size_t at = 0;
  while (here[at] == there[at])
    at++;
  snprintf(text, text_size, "byte at %#zx: %02x, not %02x", address + at, there[at], here[at]);
  return false;
}

static bool same_registers(const struct host_state *want, const struct host_state *got, unsigned bits, char *text,
                           size_t text_size)
{
  uint64_t mask = bits == 32 ? UINT32_MAX : UINT64_MAX;

  for (unsigned i = 0; i < (bits == 32 ? 8u : 16u); i++)
    if ((want->r[i] ^ got->r[i]) & mask) {
      snprintf(text, text_size, "register %u: %#llx, not %#llx", i, (unsigned long long)(got->r[i] & mask),
               (unsigned long long)(want->r[i] & mask));
      return false;
    }
  return true;
}

static bool same_trap(const struct host_state *want, const struct host_state *got, char *text, size_t text_size)
{
  bool has_error = want->trap == 8 || (want->trap >= 10 && want->trap <= 14) || want->trap == 17;

  snprintf(text, text_size, "exception %d at %#llx, error %#llx, address %#llx, not %d at %#llx, %#llx, %#llx",
           got->trap, (unsigned long long)got->rip, (unsigned long long)got->error, (unsigned long long)got->address,
           want->trap, (unsigned long long)want->rip, (unsigned long long)want->error,
           (unsigned long long)want->address);
  return want->trap == got->trap && want->rip == got->rip && (!has_error || want->error == got->error) &&
         (want->trap != 14 || want->address == got->address);
}

/* RF is pushed as 1 by faults, as 0 by traps: it is compared when there was an exception. */
static bool same_flags(const struct host_state *want, const struct host_state *got, uint32_t undefined, char *text,
                       size_t text_size)
{
  uint64_t mask = (FLAGS_COMPARED | (want->trap == HOST_NO_TRAP ? 0 : FLAG_RF)) & ~undefined;

  snprintf(text, text_size, "flags: %#llx, not %#llx", (unsigned long long)(got->flags & mask),
           (unsigned long long)(want->flags & mask));
  return !((want->flags ^ got->flags) & mask);
}

static void report(const struct host_snippet *snippet, const struct host_state *before, const char *text)
{
  if (failures++ >= REPORTS)
    return;
  fprintf(stderr, "%s: %s\n  before:", snippet->name, text);
  for (unsigned i = 0; i < 16; i++)
    fprintf(stderr, " %llx", (unsigned long long)before->r[i]);
  fprintf(stderr, ", flags %llx\n", (unsigned long long)before->flags);
}

/* ---- random snippets ---- */

static size_t snippet_size(const struct host_snippet *snippet)
{
  return (size_t)(snippet->end - snippet->start);
}

/* Where the host lacks LZCNT or TZCNT, it does BSR or BSF in their place. */
static bool host_counts_otherwise(const char *name)
{
  unsigned eax, ebx = 0, ecx = 0, edx;
  bool is_lzcnt = !strncmp(name, "lzcnt", 5), is_tzcnt = !strncmp(name, "tzcnt", 5);

  if (is_lzcnt)
    __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx);
  if (is_tzcnt)
    __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
  return (is_lzcnt && !(ecx & 1u << 5)) || (is_tzcnt && !(ebx & 1u << 3));
}

/* An instruction of an extension that the host lacks: it raises #UD, or does something else. */
static bool host_lacks(const struct host_snippet *snippet, const struct host_state *native)
{
  struct isa_instruction instruction;
  size_t offset = native->rip - HOST_CODE;

  if (host_counts_otherwise(snippet->name))
    return true;
  return native->trap == 6 && offset < snippet_size(snippet) &&
         isa_decode(ISA_64, false, snippet->start + offset, snippet_size(snippet) - offset, &instruction) > 0 &&
         instruction.code.meta.isa_ext != ZYDIS_ISA_EXT_BASE;
}

/* One run at HOST_CODE + offset. Returns false when there is no use in more. */
static bool random_run(const struct host_snippet *snippet, unsigned offset, uint32_t undefined)
{
  struct host_state before, native, emulated;
  const char *why = "";
  char text[200];

  state_make(&before);
  memory_fill();
  native = emulated = before;
  host_run(snippet->start, snippet_size(snippet), offset, snippet->bits, &native);
  if (offset == 0 && host_lacks(snippet, &native)) {
    fprintf(stderr, "# skipped, the host has no such instruction: %s\n", snippet->name);
    return false;
  }
  if (!host_guest_run(guest, snippet->start, snippet_size(snippet), offset, snippet->bits, &emulated, &why)) {
    report(snippet, &before, why);
    return false;
  }
  if (same_trap(&native, &emulated, text, sizeof(text)) &&
      same_registers(&native, &emulated, snippet->bits, text, sizeof(text)) &&
      same_flags(&native, &emulated, undefined, text, sizeof(text)) &&
      same_memory(HOST_DATA, HOST_DATA_SIZE, text, sizeof(text)) &&
      same_memory(HOST_STACK, HOST_STACK_SIZE, text, sizeof(text)))
    return true;
  report(snippet, &before, text);
  return false;
}

/* At the start of a page, and so that it lies across two. */
static void random_runs(const struct host_snippet *snippet)
{
  uint32_t undefined = host_flags_left_undefined(snippet->start, snippet->end, snippet->bits);
  unsigned crossing = 0x1000 - (unsigned)(snippet_size(snippet) + 1) / 2;

  random_start((uint64_t)(snippet - __start_snippets) + 1);
  for (unsigned i = 0; i < RUNS; i++)
    if (!random_run(snippet, 0, undefined))
      return;
  for (unsigned i = 0; i < RUNS; i++)
    if (!random_run(snippet, crossing, undefined))
      return;
}

static bool is_wanted(const struct host_snippet *snippet, unsigned bits, unsigned sort)
{
  return snippet->bits == bits && snippet->sort == sort && strstr(snippet->name, filter);
}

static void test_begin(void)
{
  if (why_not) {
    fprintf(stderr, "# skipped: %s\n", why_not);
    skip();
  }
  assert_int_equal(host_catch(), 0);
  failures = 0;
}

static void test_random(unsigned bits)
{
  test_begin();
  if (bits == 32 && !host_has_32()) {
    fprintf(stderr, "# skipped: this kernel has no 32-bit code segment for 64-bit programs\n");
    skip();
  }
  for (const struct host_snippet *snippet = __start_snippets; snippet < __stop_snippets; snippet++)
    if (is_wanted(snippet, bits, HOST_RANDOM))
      random_runs(snippet);
  assert_int_equal(failures, 0);
}

static void test_random_64(void **state)
{
  (void)state;
  test_random(64);
}

static void test_random_32(void **state)
{
  (void)state;
  test_random(32);
}

/* ---- all bytes ---- */

struct entry {
  uint16_t ax, flags;
};

static struct entry entry_at(const uint8_t *table, size_t index)
{
  struct entry entry;

  memcpy(&entry, table + index * sizeof(entry), sizeof(entry));
  return entry;
}

/* The instruction that an exhaustive snippet is about: the last of its body but MOV. */
static ZydisMnemonic snippet_mnemonic(const struct host_snippet *snippet)
{
  struct isa_instruction instruction;

  ZydisMnemonic found = ZYDIS_MNEMONIC_INVALID;
  for (const uint8_t *at = snippet->body; at < snippet->body_end; at += instruction.code.length) {
    if (isa_decode(snippet->bits == 32 ? ISA_COMPATIBLE_32 : ISA_64, false, at, (size_t)(snippet->body_end - at),
                   &instruction) <= 0)
      break;
    if (instruction.code.mnemonic != ZYDIS_MNEMONIC_MOV)
      found = instruction.code.mnemonic;
  }
  return found;
}

static void table_compare(const struct host_snippet *snippet, const struct host_state *before)
{
  ZydisMnemonic mnemonic = snippet_mnemonic(snippet);
  const uint8_t *want = host_memory(HOST_TABLE), *got = host_guest_memory(guest, HOST_TABLE);
  char text[200];
  for (size_t i = 0; i < HOST_ENTRIES; i++) {
    struct entry w = entry_at(want, i), g = entry_at(got, i);
    unsigned undefined = host_flags_undefined_by_count(mnemonic, i >> 8 & 0xFF, 8);
    unsigned mask = FLAGS_COMPARED & ~undefined;

    if (w.ax == g.ax && (w.flags & mask) == (g.flags & mask))
      continue;
    snprintf(text, sizeof(text), "entry %#zx: AX %04x, flags %03x, not %04x, %03x", i, g.ax, g.flags & mask, w.ax,
             w.flags & mask);
    report(snippet, before, text);
    return;
  }
}

static void table_run(const struct host_snippet *snippet)
{
  struct host_state before, native, emulated;
  const char *why = "";
  char text[200];

  random_start(1);
  state_make(&before);
  before.flags = 2;
  native = emulated = before;
  memset(host_memory(HOST_TABLE), 0, HOST_INPUT - HOST_TABLE);
  memset(host_guest_memory(guest, HOST_TABLE), 0, HOST_INPUT - HOST_TABLE);
  host_run(snippet->start, snippet_size(snippet), 0, snippet->bits, &native);
  if (!host_guest_run(guest, snippet->start, snippet_size(snippet), 0, snippet->bits, &emulated, &why))
    report(snippet, &before, why);
  else if (!same_trap(&native, &emulated, text, sizeof(text)))
    report(snippet, &before, text);
  else
    table_compare(snippet, &before);
}

static void test_exhaustive(void **state)
{
  (void)state;
  test_begin();
  for (const struct host_snippet *snippet = __start_snippets; snippet < __stop_snippets; snippet++)
    if (is_wanted(snippet, 64, HOST_EXHAUSTIVE) || (host_has_32() && is_wanted(snippet, 32, HOST_EXHAUSTIVE)))
      table_run(snippet);
  assert_int_equal(failures, 0);
}

/* ---- division: pairs that do not fault ---- */

static bool division_is_good(uint16_t ax, uint8_t by, bool is_signed)
{
  if (!by)
    return false;
  if (!is_signed)
    return ax / by <= 0xFF;
  int quotient = (int16_t)ax / (int8_t)by;
  return quotient >= -128 && quotient <= 127;
}

/* Every 61st of the 2^24 pairs, from another start each time, as far as the table holds them. */
static void pairs_make(bool is_signed, unsigned start)
{
  uint32_t pair = start;

  for (size_t i = 0; i < HOST_ENTRIES; i++) {
    do
      pair = (pair + 61) & 0xFFFFFF;
    while (!division_is_good((uint16_t)pair, (uint8_t)(pair >> 16), is_signed));
    memcpy(host_memory((uint32_t)(HOST_INPUT + 4 * i)), &pair, 4);
    memcpy(host_guest_memory(guest, (uint32_t)(HOST_INPUT + 4 * i)), &pair, 4);
  }
}

static void test_division(void **state)
{
  (void)state;
  test_begin();
  for (const struct host_snippet *snippet = __start_snippets; snippet < __stop_snippets; snippet++)
    for (unsigned start = 0; start < 4 && is_wanted(snippet, 64, HOST_TABULAR); start++) {
      pairs_make(snippet_mnemonic(snippet) == ZYDIS_MNEMONIC_IDIV, start * 0x3C0000);
      table_run(snippet);
    }
  assert_int_equal(failures, 0);
}

/* ---- is every instruction there? ---- */

static const uint16_t listed[] = {
#define INSTRUCTION(name, function) ZYDIS_MNEMONIC_##name,
#define INSTRUCTION_FORMS(name, function) ZYDIS_MNEMONIC_##name,
#include "cpu/integer.def"
#undef INSTRUCTION
#undef INSTRUCTION_FORMS
  ZYDIS_MNEMONIC_NOP, /* so that it is never empty */
};

static const char *const exempt[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#define EXEMPT(name, why) [ZYDIS_MNEMONIC_##name] = (why),
#include "host_exempt.def"
#undef EXEMPT
};

static void snippet_mark(const struct host_snippet *snippet, bool *is_hit)
{
  struct isa_instruction instruction;
  const uint8_t *at = snippet->start;

  while (at < snippet->end) {
    int length = isa_decode(snippet->bits == 32 ? ISA_COMPATIBLE_32 : ISA_64, false, at, (size_t)(snippet->end - at),
                            &instruction);

    if (length > 0)
      is_hit[instruction.code.mnemonic] = true;
    at += length > 0 ? length : 1;
  }
}

static void test_every_instruction(void **state)
{
  static bool is_hit[ZYDIS_MNEMONIC_MAX_VALUE + 1];
  unsigned missing = 0;

  (void)state;
  for (const struct host_snippet *snippet = __start_snippets; snippet < __stop_snippets; snippet++)
    snippet_mark(snippet, is_hit);
  for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++) {
    if (is_hit[listed[i]] || exempt[listed[i]])
      continue;
    fprintf(stderr, "no snippet has %s\n", ZydisMnemonicGetString((ZydisMnemonic)listed[i]));
    missing++;
  }
  assert_int_equal(missing, 0);
}

/* ---- all of it ---- */

static int set_up(void **state)
{
  static char text[200];
  const char *why;

  (void)state;
  random_start(0);
  for (size_t i = 0; i < sizeof(pool); i++)
    pool[i] = (uint8_t)(random_next() >> 56);
  if (host_init(&why) < 0) {
    snprintf(text, sizeof(text), "%s", why);
    why_not = text;
    return 0;
  }
  guest = host_guest_new("skylake");
  return guest ? 0 : -1;
}

static int tear_down(void **state)
{
  (void)state;
  host_guest_free(guest);
  return 0;
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_exhaustive), cmocka_unit_test(test_division),          cmocka_unit_test(test_random_64),
    cmocka_unit_test(test_random_32),  cmocka_unit_test(test_every_instruction),
  };

  if (argc > 1)
    filter = argv[1];
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
