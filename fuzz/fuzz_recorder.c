/* SPDX-License-Identifier: Apache-2.0
 *
 * Random register writes, branches and events on a recording unit. Two units run side by side and must stay equal: one
 * takes branches the long way and reaches guest memory by callbacks, the other the short way and by pointers. Checked
 * after every step: TOS in range, #GP changes nothing, looking changes nothing, and no write to memory but into the DS
 * buffers and the two index words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lastbranch/error.h"
#include "lastbranch/recorder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_FIRST 0x10000u
#define MEMORY_SIZE 0x8000u

struct guest {
  unsigned char memory[MEMORY_SIZE];
  struct lb_ds_area area; /* as it was before this step */
  uint64_t area_address;
  bool is_area_known;
  uint64_t pmis, messages, traps, pins;
};

static struct guest guests[2];
static struct lb_recorder units[2];

static void check(bool is_true, const char *what)
{
  if (is_true)
    return;
  fprintf(stderr, "fuzz_recorder: %s does not hold on %s\n", what, units[0].cpu->name);
  abort();
}

/* ---- input bytes ---- */

struct input {
  const uint8_t *at;
  size_t left;
};

static uint64_t take(struct input *input, unsigned bytes)
{
  uint64_t value = 0;

  for (unsigned i = 0; i < bytes && input->left; i++, input->left--)
    value |= (uint64_t)*input->at++ << (8 * i);
  return value;
}

/* ---- the host ---- */

static unsigned char *guest_at(struct guest *guest, uint64_t linear, size_t size)
{
  uint64_t offset = linear - MEMORY_FIRST;

  return offset < MEMORY_SIZE && size <= MEMORY_SIZE - offset ? guest->memory + offset : NULL;
}

static bool is_inside(uint64_t linear, size_t size, uint64_t first, uint64_t end)
{
  return linear >= first && linear <= end && end - linear >= size;
}

static bool is_allowed(const struct guest *guest, uint64_t linear, size_t size)
{
  const struct lb_ds_area *area = &guest->area;
  unsigned word = area->is_64 ? 8 : 4;

  if (!guest->is_area_known)
    return false;
  return is_inside(linear, size, area->bts_base, area->bts_maximum) ||
         is_inside(linear, size, area->pebs_base, area->pebs_maximum) ||
         is_inside(linear, size, guest->area_address + word, guest->area_address + 2 * word) ||
         is_inside(linear, size, guest->area_address + 5 * word, guest->area_address + 6 * word);
}

static int guest_read(void *data, uint64_t linear, void *bytes, size_t size)
{
  unsigned char *at = guest_at(data, linear, size);

  if (!at)
    return LB_E_DS_MEMORY;
  memcpy(bytes, at, size);
  return 0;
}

static int guest_write(void *data, uint64_t linear, const void *bytes, size_t size)
{
  unsigned char *at = guest_at(data, linear, size);

  check(is_allowed(data, linear, size), "no write outside the DS buffers");
  if (!at)
    return LB_E_DS_MEMORY;
  memcpy(at, bytes, size);
  return 0;
}

static void *guest_map(void *data, uint64_t linear, size_t size)
{
  check(linear / 4096 == (linear + size - 1) / 4096, "pieces stay within a page");
  return guest_at(data, linear, size);
}

static void guest_pmi(void *data)
{
  ((struct guest *)data)->pmis++;
}

static void guest_bus(void *data, const struct lb_message *message)
{
  ((struct guest *)data)->messages += message->from ^ (message->to << 1);
}

static void guest_pin(void *data, unsigned pin)
{
  ((struct guest *)data)->pins += pin + 1;
}

static void guest_trap(void *data)
{
  ((struct guest *)data)->traps++;
}

/* What the DS area says now, through the eyes of the unit. */
static void guest_look(struct guest *guest, const struct lb_recorder *unit)
{
  unsigned char bytes[0x40];
  bool is_64 = lb_recorder_ds_is_64(unit);
  uint64_t area = 0;

  guest->is_area_known = lb_recorder_rdmsr(unit, 0x600, &area) == LB_MSR_OK;
  guest->area_address = area;
  for (size_t i = 0; i < sizeof(bytes) && guest->is_area_known; i++) {
    unsigned char *at = guest_at(guest, area + i, 1);

    bytes[i] = at ? *at : 0;
  }
  if (guest->is_area_known)
    lb_ds_decode(is_64, bytes, sizeof(bytes), &guest->area);
}

/* ---- steps ---- */

static uint32_t register_pick(struct input *input, const struct lb_cpu *cpu)
{
  enum lb_register id = (enum lb_register)(take(input, 1) % LB_REGISTERS);
  struct lb_register_range range = lb_cpu_register(cpu, id);
  unsigned number = (unsigned)take(input, 1);

  return range.count ? range.first + range.stride * (number % range.count) : (uint32_t)take(input, 4);
}

static void step_wrmsr(struct input *input)
{
  static struct lb_recorder before;
  uint32_t msr = register_pick(input, units[0].cpu);
  uint64_t value = take(input, (unsigned)(take(input, 1) % 9));

  memcpy(&before, &units[0], sizeof(before)); /* padding too: it is compared */
  enum lb_msr_answer answer = lb_recorder_wrmsr(&units[0], msr, value);
  if (answer != LB_MSR_OK)
    check(!memcmp(&before, &units[0], sizeof(before)), "#GP changes nothing");
  check(lb_recorder_wrmsr(&units[1], msr, value) == answer, "both units give the same answer");
}

static uint8_t cpl_take(struct input *input)
{
  return take(input, 1) & 3;
}

static void step_branch(struct input *input)
{
  struct lb_branch branch = {.kind = (uint8_t)(take(input, 1) % LB_BRANCH_KINDS)};

  branch.flags = (uint8_t)take(input, 1);
  branch.from_cpl = cpl_take(input);
  branch.to_cpl = cpl_take(input);
  branch.from = take(input, 8);
  branch.to = take(input, 8);
  branch.from_base = branch.flags & 0x80 ? take(input, 4) : 0;
  branch.to_base = branch.flags & 0x80 ? take(input, 4) : 0;
  lb_recorder_record(&units[0], &branch); /* the long way */
  lb_recorder_branch(&units[1], &branch); /* the short way, where it may */
}

static void step_event(struct input *input)
{
  struct lb_event event = {.kind = (uint8_t)(LB_BRANCH_INT + take(input, 1) % 8)};

  event.flags = (uint8_t)take(input, 1);
  event.from_cpl = cpl_take(input);
  event.to_cpl = cpl_take(input);
  event.current = take(input, 8);
  event.next = take(input, 8);
  event.handler = take(input, 8);
  for (unsigned i = 0; i < 2; i++)
    lb_recorder_event(&units[i], &event);
}

static void step_progress(struct input *input)
{
  struct lb_progress progress = {.cpl = cpl_take(input)};

  progress.instructions = take(input, 2);
  progress.cycles = take(input, 8);
  progress.branches = take(input, 6);
  progress.taken_branches = take(input, 1);
  progress.mispredicts = take(input, 1);
  progress.reference_cycles = progress.slots = progress.cycles;
  progress.cache_references = progress.cache_misses = progress.mispredicts;
  bool is_due = lb_recorder_progress(&units[0], &progress);
  check(lb_recorder_progress(&units[1], &progress) == is_due, "both units owe a PEBS record");
}

static void step_pebs(struct input *input)
{
  struct lb_registers registers = {.rip = take(input, 8)};

  registers.rax = take(input, 8);
  registers.tsc = take(input, 8);
  int written[2];
  for (unsigned i = 0; i < 2; i++)
    written[i] = lb_recorder_pebs_assist(&units[i], &registers);
  check(written[0] == written[1], "both units write the same PEBS records");
}

static void step_poke(struct input *input)
{
  uint64_t offset = take(input, 2) % (MEMORY_SIZE - 8);
  uint64_t value = take(input, (unsigned)(take(input, 1) % 9));

  for (unsigned i = 0; i < 2; i++)
    memcpy(guests[i].memory + offset, &value, sizeof(value));
}

/* A DS area that makes sense, so that the buffers are reached often. */
static void step_area(struct input *input)
{
  uint64_t base = MEMORY_FIRST + 0x1000 + take(input, 2) % 0x3000;
  uint64_t bts = 24 * (1 + take(input, 1) % 16);

  bts += take(input, 1) & 1;
  uint64_t pebs = 200 * (1 + take(input, 1) % 8);
  uint64_t words[8] = {base, base, base + bts, base + take(input, 2) % 512, base + 0x1000, base + 0x1000};
  words[6] = base + 0x1000 + pebs;
  words[7] = base + 0x1000 + take(input, 2) % 2048;
  bool is_64 = lb_recorder_ds_is_64(&units[0]);
  for (unsigned i = 0; i < 2; i++) {
    for (unsigned word = 0; word < 8; word++)
      memcpy(guests[i].memory + (is_64 ? 8 : 4) * word, &words[word], is_64 ? 8 : 4);
    lb_recorder_wrmsr(&units[i], 0x600, MEMORY_FIRST);
  }
}

/* Writes a register if the CPU has it, whatever the answer. */
static void register_write(enum lb_register id, unsigned number, uint64_t value)
{
  struct lb_register_range range = lb_cpu_register(units[0].cpu, id);

  for (unsigned i = 0; i < 2 && number < range.count; i++)
    lb_recorder_wrmsr(&units[i], range.first + range.stride * number, value);
}

/* Recording that is switched on, by whatever register the CPU has for it. */
static void step_switches(struct input *input)
{
  uint64_t wanted = take(input, 3), debugctl = 0;
  bool is_call_stack = take(input, 1) & 1;

  for (unsigned bit = 0; bit < LB_DEBUGCTL_BITS; bit++)
    if (wanted >> bit & 1)
      debugctl |= lb_cpu_debugctl(units[0].cpu, (enum lb_debugctl_bit)bit);
  register_write(LB_REG_LBR_SELECT, 0, is_call_stack ? 0x3C4 : 0);
  register_write(LB_REG_LBR_CTL, 0, is_call_stack ? 0x7F000F : 0x7F0007);
  register_write(LB_REG_AMD_DBG_EXTN_CFG, 0, lb_cpu_has(units[0].cpu, LB_FEATURE_BRS) ? 0x1C : 0x40);
  register_write(LB_REG_PEBS_DATA_CFG, 0, (wanted >> 16 & 0xF) | take(input, 1) << 24);
  register_write(LB_REG_DEBUGCTL, 0, debugctl);
}

/* Counters that are switched on and about to overflow, so that PMI and PEBS are reached often. */
static void step_counters(struct input *input)
{
  static const uint16_t events[] = {0xC0, 0x3C, 0x13C, 0x4F2E, 0x412E, 0xC4, 0xC5, 0x1A4, 0x79, 0xC9, 0x76, 0xC2, 0xC3};
  static const enum lb_register selects[] = {LB_REG_PERFEVTSEL, LB_REG_K7_EVNTSEL, LB_REG_AMD_PERF_CTL};
  static const enum lb_register counters[] = {LB_REG_PMC, LB_REG_K7_PERFCTR, LB_REG_AMD_PERF_CTR, LB_REG_FIXED_CTR,
                                              LB_REG_P4_COUNTER};
  static const enum lb_register escrs[] = {LB_REG_P4_FSB_ESCR, LB_REG_P4_CRU_ESCR, LB_REG_P4_CRU_ESCR2};
  unsigned number = (unsigned)take(input, 1) % 18;
  uint64_t event = events[take(input, 1) % (sizeof(events) / sizeof(events[0]))];
  uint64_t start = UINT64_MAX - take(input, 1);
  uint64_t escr = take(input, 1);

  for (unsigned i = 0; i < sizeof(selects) / sizeof(selects[0]); i++)
    register_write(selects[i], number, 0x530000 | event); /* EN, INT, OS, USR */
  for (unsigned i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
    register_write(counters[i], number, start);
  for (unsigned i = 0; i < sizeof(escrs) / sizeof(escrs[0]); i++)
    register_write(escrs[i], number & 1, (escr & 0x3F) << 25 | 0xC);                       /* event, OS, USR */
  register_write(LB_REG_P4_CCCR, number, 1u << 26 | (4 + escr / 64 % 3) << 13 | 1u << 12); /* OVF_PMI, ESCR, ENABLE */
  register_write(LB_REG_FIXED_CTR_CTRL, 0, 0xBBB);
  register_write(LB_REG_GLOBAL_CTRL, 0, 0x700000003);
  register_write(LB_REG_AMD_GLOBAL_CTL, 0, 0x3F);
  register_write(LB_REG_PEBS_ENABLE, 0,
                 lb_cpu_register(units[0].cpu, LB_REG_P4_CCCR).count ? 1u << 25 : 1u << number % 4);
}

static void smi(struct lb_recorder *unit)
{
  struct lb_branch entry = {.from = 0x1000, .to = 0x8000, .from_cpl = 3, .flags = LB_BRANCH_TO_32};

  lb_recorder_smi(unit, &entry);
}

static void step_call(struct input *input)
{
  static void (*const calls[])(struct lb_recorder *) = {
    lb_recorder_debug_exception, smi,
    lb_recorder_reset_cold,      lb_recorder_reset_warm,
    lb_recorder_vm_exit,         lb_recorder_deep_sleep,
    lb_recorder_pmi_delivered,   lb_recorder_hold_pmi,
    lb_recorder_release_pmi,     lb_recorder_flush,
  };
  unsigned what = (unsigned)take(input, 1) % (sizeof(calls) / sizeof(calls[0]));
  for (unsigned i = 0; i < 2; i++)
    calls[what](&units[i]);
}

static uint64_t unit_tell(struct lb_recorder *unit, unsigned what, uint64_t value)
{
  struct lb_branch place = {.from = value, .to = value, .to_cpl = value & 3, .flags = value >> 8 & 0x18};

  switch (what) {
  case 0:
    lb_recorder_breakpoint_match(unit, (unsigned)value);
    return 0;
  case 1:
    lb_recorder_rsm(unit, &place);
    return 0;
  case 2:
    lb_recorder_init_signal(unit, &place);
    return 0;
  case 3:
    return lb_recorder_vm_entry(unit, value);
  case 4:
    lb_recorder_pt_trace(unit, value & 1);
    return 0;
  case 5:
    lb_recorder_long_mode(unit, value & 1);
    return 0;
  default:
    return lb_recorder_uncore_pmi(unit);
  }
}

static void step_tell(struct input *input)
{
  unsigned what = (unsigned)take(input, 1) % 7;
  uint64_t value = take(input, 4);
  uint64_t answer = unit_tell(&units[0], what, value);

  check(unit_tell(&units[1], what, value) == answer, "both units answer the same");
}

/* ---- what must hold ---- */

static void read_all(const struct lb_recorder *unit, uint64_t *sum)
{
  for (unsigned id = 0; id < LB_REGISTERS; id++) {
    struct lb_register_range range = lb_cpu_register(unit->cpu, (enum lb_register)id);

    for (unsigned i = 0; i < range.count; i++) {
      uint64_t value = 0;
      enum lb_msr_answer answer = lb_recorder_rdmsr(unit, range.first + range.stride * i, &value);

      check(answer != LB_MSR_FOREIGN, "a register of the catalogue is a register of the unit");
      *sum = *sum * 31 + value + answer;
    }
  }
}

static unsigned page_attributes(void *data, uint64_t linear)
{
  (void)data;
  return linear >> 12 & 0x3F;
}

/* Everything that only looks. */
static void look_check(const struct lb_recorder *unit)
{
  struct lb_ds_facts facts = {.page = page_attributes, .apic_is_enabled = true, .lvt_perf = 0xFE, .gate_type = 0xE};
  struct lb_register_range tos = lb_cpu_register(unit->cpu, LB_REG_LBR_TOS);
  struct lb_record record;
  unsigned depth = 0;
  uint64_t value;

  while (lb_recorder_entry(unit, depth, &record) == 0) {
    check(record.kind <= LB_BRANCH_KINDS, "a record has a kind");
    depth++;
  }
  check(depth <= lb_cpu_depth(unit->cpu) && lb_recorder_used(unit) <= depth, "no more records than entries");
  if (tos.count)
    check(lb_recorder_rdmsr(unit, tos.first, &value) == LB_MSR_OK && (value & 0xFF) < depth, "TOS in range");
  check(lb_recorder_ler(unit, &record) <= 0 && lb_ds_check(unit, &facts) >> LB_DS_RULES == 0, "looking gives answers");
  lb_ds_check(unit, NULL);
}

static void kinds_check(void)
{
  struct lb_record one, other;

  for (unsigned age = 0; lb_recorder_entry(&units[0], age, &one) == 0; age++)
    check(lb_recorder_entry(&units[1], age, &other) == 0 && one.kind == other.kind, "both units know the same kinds");
}

static void state_check(void)
{
  static struct lb_recorder before;
  uint64_t sums[2] = {0};

  memcpy(&before, &units[0], sizeof(before)); /* padding too: it is compared */
  for (unsigned i = 0; i < 2; i++)
    read_all(&units[i], &sums[i]);
  look_check(&units[0]);
  check(!memcmp(&before, &units[0], sizeof(before)), "looking changes nothing");
  check(sums[0] == sums[1], "both units hold the same registers");
  kinds_check();
  check(!memcmp(guests[0].memory, guests[1].memory, MEMORY_SIZE), "both guests hold the same memory");
  check(guests[0].pmis == guests[1].pmis && guests[0].messages == guests[1].messages &&
          guests[0].traps == guests[1].traps && guests[0].pins == guests[1].pins,
        "both hosts heard the same");
}

static bool units_make(struct input *input)
{
  size_t rows = 0;

  while (lb_cpu_at(rows))
    rows++;
  const struct lb_cpu *cpu = lb_cpu_at(take(input, 1) % rows);
  uint32_t options = (uint32_t)take(input, 3);
  struct lb_host host = {
    .read = guest_read, .write = guest_write, .pmi = guest_pmi, .bus = guest_bus, .pin = guest_pin, .trap = guest_trap};
  memset(guests, 0, sizeof(guests));
  for (unsigned i = 0; i < 2; i++) {
    host.data = &guests[i];
    host.map = i ? guest_map : NULL;
    if (lb_recorder_init(&units[i], cpu, &host, options) < 0)
      return false;
  }
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static void (*const steps[])(struct input *) = {step_wrmsr,    step_branch, step_event, step_progress,
                                                  step_pebs,     step_poke,   step_area,  step_switches,
                                                  step_counters, step_call,   step_tell};
  struct input input = {data, size};
  if (!units_make(&input))
    return 0;
  for (unsigned i = 0; input.left && i < 512; i++) {
    for (unsigned unit = 0; unit < 2; unit++)
      guest_look(&guests[unit], &units[unit]);
    steps[take(&input, 1) % (sizeof(steps) / sizeof(steps[0]))](&input);
    state_check();
  }
  return 0;
}
