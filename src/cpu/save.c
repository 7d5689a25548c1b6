/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the processor's state to bytes and back. Decoded blocks, their links and the recorder's tables are
 * recomputed: they have no visible effect. Cached translations are saved, because a guest may see an old one, if it has
 * changed a page table and not yet flushed, or cleared an accessed bit. The lines that hold decoded code are saved too,
 * because they decide how such a page is written to. The bytes may be forged: a state that a guest could not have
 * reached by itself is refused, as RSM does with a bad state (SDM vol. 3, 34.4.1).
 */
#include "cpu/save.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/access.h"
#include "cpu/block.h"
#include "cpu/control.h"
#include "cpu/flags.h"
#include "cpu/segment.h"
#include "cpu/transfer.h"
#include "cpu/vector.h"
#include "cpu/xsave.h"

#define TIME_MOST (UINT64_C(1) << 61) /* instructions, cycles: the sum of two does not overflow 64 bits */
#define RECORDER_MOST 8192u
#define NO_TAG 1
#define NO_FETCH 2

/* ---- registers ---- */

static void segment_archive(struct archive *archive, struct cpu_segment *segment)
{
  archive_value(archive, &segment->base);
  archive_value(archive, &segment->limit);
  archive_value(archive, &segment->selector);
  archive_value(archive, &segment->access);
}

static void fpu_archive(struct archive *archive, struct fpu *fpu)
{
  archive_bytes(archive, fpu->st, sizeof(fpu->st));
  archive_value(archive, &fpu->control);
  archive_value(archive, &fpu->status);
  archive_most(archive, &fpu->top, 7);
  archive_value(archive, &fpu->tags);
  archive_value(archive, &fpu->opcode);
  archive_value(archive, &fpu->instruction_selector);
  archive_value(archive, &fpu->data_selector);
  archive_value(archive, &fpu->instruction);
  archive_value(archive, &fpu->data);
  archive_most(archive, &fpu->mxcsr, MXCSR_VALID); /* it is loaded into the host's own */
  archive_bytes(archive, fpu->v, sizeof(fpu->v));
}

static void msrs_archive(struct archive *archive, struct cpu *cpu)
{
  uint64_t *const values[] = {
    &cpu->star,           &cpu->lstar,
    &cpu->cstar,          &cpu->fmask,
    &cpu->kernel_gs_base, &cpu->tsc_aux,
    &cpu->tsc_offset,     &cpu->pat,
    &cpu->sysenter_cs,    &cpu->sysenter_esp,
    &cpu->sysenter_eip,   &cpu->tsc_adjust,
    &cpu->misc_enable,    &cpu->hwcr,
    &cpu->syscfg,         &cpu->random,
    &cpu->monitor_sum,    &cpu->monitor_address,
    &cpu->io.rip,         &cpu->io.retired,
  };

  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
    archive_value(archive, values[i]);
  archive_array(archive, cpu->mtrr);
  archive_array(archive, cpu->model_msr);
  archive_value(archive, &cpu->io.what);
  archive_value(archive, &cpu->smbase);
}

/* State between two instructions. */
static void events_archive(struct archive *archive, struct cpu *cpu)
{
  bool *const flags[] = {&cpu->is_nmi_blocked, &cpu->is_in_smm,     &cpu->is_smi_blocked, &cpu->is_spinning,
                         &cpu->had_tf,         &cpu->was_event,     &cpu->progress_is_on, &cpu->counts_cache,
                         &cpu->counts_inserts, &cpu->counts_metrics};

  archive_most(archive, &cpu->activity, CPU_WAIT_SIPI);
  archive_most(archive, &cpu->lines, 1u << CPU_LINE_INTR);
  archive_most(archive, &cpu->signals, CPU_NMI | CPU_SMI | CPU_INIT);
  archive_most(archive, &cpu->startup, STARTUP_WAITS | 0xFF);
  archive_most(archive, &cpu->shadow, SHADOW_STI | SHADOW_MOV_SS);
  for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
    archive_flag(archive, flags[i]);
  archive_most(archive, &cpu->debug_due, DR6_B | DR6_BD | DR6_BS | DR6_BT);
  archive_most(archive, &cpu->watch, WATCH_RECORDER | WATCH_LISTENER | WATCH_COUNTERS | WATCH_FOLLOWER);
}

void registers_archive(struct archive *archive, struct cpu *cpu)
{
  archive_numbers(archive, cpu->r, sizeof(cpu->r[0]), ZERO, UINT64_MAX);
  archive_value(archive, &cpu->rip);
  for (unsigned i = 0; i < CPU_SEGMENTS; i++)
    segment_archive(archive, &cpu->segment[i]);
  archive_value(archive, &cpu->gdtr.base);
  archive_most(archive, &cpu->gdtr.limit, 0xFFFF);
  archive_value(archive, &cpu->idtr.base);
  archive_most(archive, &cpu->idtr.limit, 0xFFFF);
  archive_value(archive, &cpu->cr0);
  archive_value(archive, &cpu->cr2);
  archive_value(archive, &cpu->cr3);
  archive_value(archive, &cpu->cr4);
  archive_value(archive, &cpu->efer);
  archive_value(archive, &cpu->xcr0);
  archive_value(archive, &cpu->xss);
  archive_value(archive, &cpu->pkru);
  archive_value(archive, &cpu->pkrs);
  archive_array(archive, cpu->pdpte);
  archive_array(archive, cpu->dr);
  fpu_archive(archive, &cpu->fpu);
  msrs_archive(archive, cpu);
  events_archive(archive, cpu);
}

void predictor_archive(struct archive *archive, struct predictor *predictor)
{
  archive_most(archive, &predictor->kind, PREDICTOR_GSHARE);
  archive_most(archive, &predictor->stack_top, 15);
  archive_most(archive, &predictor->history, 4095);
  archive_array_most(archive, predictor->counters, 3);
  archive_array(archive, predictor->targets);
  archive_array(archive, predictor->stack);
}

void cache_archive(struct archive *archive, struct cache *cache)
{
  archive_array(archive, cache->first);
  archive_array(archive, cache->last);
}

/* ---- time ---- */

/* Between runs the budget is used up: the base is the number of retired instructions. */
void clock_archive(struct archive *archive, struct cpu *cpu)
{
  uint64_t retired = cpu_retired(cpu);

  archive_most(archive, &retired, TIME_MOST);
  if (archive_is_reading(archive)) {
    cpu->retired_base = retired;
    cpu->budget = cpu->budget_start = cpu->budget_held = 0;
  }
  archive_most(archive, &cpu->extra_cycles, TIME_MOST);
  archive_most(archive, &cpu->reported, retired + cpu->extra_cycles);
  archive_most(archive, &cpu->reported_retired, retired);
  archive_value(archive, &cpu->spins);
  archive_value(archive, &cpu->spin_retired);
  archive_value(archive, &cpu->eventing_ip);
  archive_value(archive, &cpu->progress.instructions);
  archive_value(archive, &cpu->progress.cycles);
  archive_value(archive, &cpu->progress.reference_cycles);
  archive_value(archive, &cpu->progress.branches);
  archive_value(archive, &cpu->progress.taken_branches);
  archive_value(archive, &cpu->progress.mispredicts);
  archive_value(archive, &cpu->progress.cache_references);
  archive_value(archive, &cpu->progress.cache_misses);
  archive_value(archive, &cpu->progress.slots);
  archive_array(archive, cpu->progress.metrics);
  archive_value(archive, &cpu->progress.lbr_inserts);
  archive_array(archive, cpu->progress.predicted);
  archive_array(archive, cpu->progress.mispredicted);
  archive_most(archive, &cpu->progress.cpl, 3);
}

static void flags_archive(struct archive *archive, struct cpu *cpu)
{
  uint32_t flags = flags_get(cpu);

  archive_value(archive, &flags);
  if (archive_is_reading(archive))
    flags_set(cpu, flags);
}

static void recorder_archive(struct archive *archive, struct cpu *cpu)
{
  uint8_t bytes[RECORDER_MOST];
  uint32_t size = (uint32_t)lb_recorder_save(&cpu->recorder, bytes, sizeof(bytes)), expected = size;

  archive_most(archive, &size, expected);
  archive_bytes(archive, bytes, size);
  if (archive_is_reading(archive) && archive->error == 0)
    archive->error = lb_recorder_load(&cpu->recorder, bytes, size);
}

/* ---- pages ---- */

/* Lists end with an impossible page. */
#define LIST_END UINT64_MAX

static uint64_t memory_pages(const struct cpu *cpu)
{
  return cpu->memory->size / PAGE_SIZE;
}

static void code_archive(struct archive *archive, struct cpu *cpu)
{
  uint64_t *code = cpu->memory->code, page = LIST_END;

  if (!archive_is_reading(archive)) {
    for (uint64_t i = 0; i < memory_pages(cpu); i++)
      if (code[i]) {
        archive_value(archive, &i);
        archive_value(archive, &code[i]);
      }
    archive_value(archive, &page);
    return;
  }
  for (;;) {
    archive_value(archive, &page);
    if (archive->error < 0 || page == LIST_END)
      return;
    if (page >= memory_pages(cpu)) {
      archive_refuse(archive);
      return;
    }
    archive_value(archive, &code[page]);
  }
}

/* A translation: the RAM page of a linear page, and whether it may be written directly. */
struct translation {
  uint64_t linear, page;
  bool is_writable;
};

static void translation_archive(struct archive *archive, struct translation *translation)
{
  archive_value(archive, &translation->linear);
  if (translation->linear == LIST_END)
    return;
  archive_value(archive, &translation->page);
  archive_flag(archive, &translation->is_writable);
}

static void tlb_write(struct archive *archive, const struct cpu *cpu, const struct cpu_tlb_entry *tlb)
{
  struct translation end = {.linear = LIST_END};

  for (unsigned i = 0; i < TLB_ENTRIES; i++) {
    const struct cpu_tlb_entry *entry = &tlb[i];
    struct translation translation = {
      .linear = entry->read,
      .page = (entry->read + entry->host - (uintptr_t)cpu->memory->ram) / PAGE_SIZE,
      .is_writable = entry->write == entry->read,
    };

    if (entry->read != NO_TAG)
      translation_archive(archive, &translation);
  }
  translation_archive(archive, &end);
}

static bool translation_is_possible(const struct cpu *cpu, const struct translation *translation)
{
  uint64_t page = translation->page;

  if ((translation->linear & PAGE_MASK) || page >= memory_pages(cpu))
    return false;
  return !translation->is_writable || (!cpu->memory->code[page] && !memory_is_rom(cpu->memory, page * PAGE_SIZE));
}

static void tlb_read(struct archive *archive, struct cpu *cpu, struct cpu_tlb_entry *tlb)
{
  for (;;) {
    struct translation translation = {.linear = LIST_END};

    translation_archive(archive, &translation);
    if (archive->error < 0 || translation.linear == LIST_END)
      return;
    if (!translation_is_possible(cpu, &translation)) {
      archive_refuse(archive);
      return;
    }
    uint64_t linear = translation.linear;
    tlb[linear / PAGE_SIZE % TLB_ENTRIES] = (struct cpu_tlb_entry){
      .read = linear,
      .write = translation.is_writable ? linear : NO_TAG,
      .host = (uintptr_t)cpu->memory->ram + translation.page * PAGE_SIZE - linear,
    };
  }
}

/* Bit 0 of an entry is the privilege. */
static void fetches_archive(struct archive *archive, struct cpu *cpu)
{
  struct fetch *fetches = block_fetches(cpu), end = {.linear = LIST_END};

  for (unsigned i = 0; !archive_is_reading(archive) && i < FETCH_SIZE; i++)
    if (!(fetches[i].linear & NO_FETCH)) {
      archive_value(archive, &fetches[i].linear);
      archive_value(archive, &fetches[i].physical);
    }
  archive_value(archive, &end.linear);
  while (archive_is_reading(archive) && archive->error == 0 && end.linear != LIST_END) {
    archive_value(archive, &end.physical);
    if ((end.linear & PAGE_MASK & ~UINT64_C(1)) || (end.physical & PAGE_MASK))
      archive_refuse(archive);
    else
      fetches[end.linear / PAGE_SIZE % FETCH_SIZE] = end;
    end.linear = LIST_END;
    archive_value(archive, &end.linear);
  }
}

static void pages_archive(struct archive *archive, struct cpu *cpu)
{
  code_archive(archive, cpu);
  for (unsigned which = 0; which < 2; which++)
    if (archive_is_reading(archive))
      tlb_read(archive, cpu, cpu->tlbs[which]);
    else
      tlb_write(archive, cpu, cpu->tlbs[which]);
  archive_most(archive, &cpu->tlb_shift, 30);
  archive_array(archive, cpu->keys_cached);
  fetches_archive(archive, cpu);
}

/* ---- whole state ---- */

static bool control_is_possible(const struct cpu *cpu)
{
  uint64_t efer = (system_has(cpu, FEATURE_SYSCALL) ? EFER_SCE : 0u) | (system_has(cpu, FEATURE_NX) ? EFER_NXE : 0u) |
                  (system_has(cpu, FEATURE_LM) ? EFER_LME | EFER_LMA : 0u);
  bool has_paging = cpu->cr0 & CR0_PG, is_long = has_paging && (cpu->efer & EFER_LME);
  bool is_bad = (cpu->cr4 & ~system_cr4_bits(cpu)) || (cpu->efer & ~efer) || is_long != !!(cpu->efer & EFER_LMA);

  is_bad |= has_paging && !(cpu->cr0 & CR0_PE);
  is_bad |= (cpu->cr0 & CR0_NW) && !(cpu->cr0 & CR0_CD);
  is_bad |= is_long && !(cpu->cr4 & CR4_PAE);
  is_bad |= (cpu->eflags & FLAG_VM) && (is_long || !(cpu->cr0 & CR0_PE));
  is_bad |= is_long != lb_recorder_is_long_mode(&cpu->recorder);
  return !is_bad;
}

static bool others_are_possible(const struct cpu *cpu)
{
  uint64_t xcr0 = cpu->xcr0;
  bool is_bad = (xcr0 & ~system_xcr0_bits(cpu)) || !(xcr0 & 1) || (xcr0 & 6) == 4;

  is_bad |= (cpu->xss & ~xsave_xss_bits(cpu)) != 0;
  is_bad |= (cpu->dr[6] | cpu->dr[7]) >> 32 || !(cpu->dr[7] & DR7_FIXED);
  return !is_bad;
}

static void cpu_archive(struct archive *archive, struct cpu *cpu)
{
  struct cpu_features features = cpu->features;

  archive_array(archive, features.words);
  if (memcmp(&features, &cpu->features, sizeof(features)) != 0 && archive->error == 0)
    archive->error = LB_E_OTHER_HOST;
  registers_archive(archive, cpu);
  flags_archive(archive, cpu);
  clock_archive(archive, cpu);
  recorder_archive(archive, cpu);
  predictor_archive(archive, &cpu->predictor);
  cache_archive(archive, &cpu->cache);
}

size_t cpu_save(struct cpu *cpu, void *bytes, size_t size)
{
  struct archive archive = archive_writer(bytes, size);

  cpu_archive(&archive, cpu);
  pages_archive(&archive, cpu);
  return archive.at;
}

/* The run loop rarely checks again whether counters run and which parts watch branches, so the saved values are
 * kept. */
static void cpu_settle(struct cpu *cpu)
{
  bool counts = cpu->progress_is_on, cache = cpu->counts_cache, inserts = cpu->counts_inserts;
  bool metrics = cpu->counts_metrics;
  uint8_t watch = cpu->watch & (WATCH_RECORDER | WATCH_COUNTERS);

  cpu->progress_is_on = true; /* so that counting does not begin now */
  cpu_changed(cpu);
  cpu->progress_is_on = counts;
  cpu->counts_cache = cache;
  cpu->counts_inserts = inserts;
  cpu->counts_metrics = metrics;
  cpu->watch = (uint8_t)(watch | (cpu->watch & (WATCH_LISTENER | WATCH_FOLLOWER)));
}

int cpu_load(struct cpu *cpu, const void *bytes, size_t size)
{
  struct archive archive = archive_reader(bytes, size);

  cpu_archive(&archive, cpu);
  if (archive.error == 0 && (!control_is_possible(cpu) || !others_are_possible(cpu)))
    archive_refuse(&archive);
  if (archive.error < 0)
    return archive.error;
  cpu_settle(cpu);
  pages_archive(&archive, cpu);
  return archive_end(&archive);
}
