/* SPDX-License-Identifier: Apache-2.0
 *
 * The processor as a whole: creation, reset, access from outside, and the connection to its recorder. See cpu.h.
 */
#include "cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/access.h"
#include "cpu/block.h"
#include "cpu/decode.h"
#include "cpu/flags.h"
#include "cpu/paging.h"
#include "cpu/segment.h"
#include "cpu/system.h"
#include "cpu/transfer.h"
#include "isa/isa.h"
#include "lastbranch/error.h"

/* ---- callbacks of the recorder ---- */

/* The DS area is accessed with supervisor rights and without faults: data for an unreachable page is lost. */
static uint8_t *ds_page(struct cpu *cpu, uint64_t linear, bool is_write)
{
  uint64_t physical;
  unsigned bits;

  linear &= cpu->efer & EFER_LMA ? UINT64_MAX : 0xFFFFFFFF;
  if (!paging_look(cpu, linear, &physical, &bits) || (is_write && (bits & PAGING_LOOK_READ_ONLY)))
    return NULL;
  if (is_write && memory_is_rom(cpu->memory, physical))
    return NULL;
  uint8_t *at = memory_at(cpu->memory, physical);
  if (at && is_write)
    block_invalidate(cpu, physical & ~PAGE_MASK, PAGE_SIZE);
  return at;
}

static int ds_copy(struct cpu *cpu, uint64_t linear, uint8_t *bytes, size_t size, bool is_write)
{
  while (size) {
    size_t part = PAGE_SIZE - (linear & PAGE_MASK);

    part = part < size ? part : size;
    uint8_t *at = ds_page(cpu, linear, is_write);
    if (!at)
      return -EFAULT;
    memcpy(is_write ? at : bytes, is_write ? bytes : at, part);
    linear += part;
    bytes += part;
    size -= part;
  }
  return 0;
}

static int ds_read(void *data, uint64_t linear, void *bytes, size_t size)
{
  return ds_copy(data, linear, bytes, size, false);
}

static int ds_write(void *data, uint64_t linear, const void *bytes, size_t size)
{
  uint8_t copy[512];

  if (size > sizeof(copy))
    return -EINVAL;
  memcpy(copy, bytes, size);
  return ds_copy(data, linear, copy, size, true);
}

static void *ds_map(void *data, uint64_t linear, size_t size)
{
  struct cpu *cpu = data;

  return (linear & PAGE_MASK) + size <= PAGE_SIZE ? ds_page(cpu, linear, true) : NULL;
}

static void on_pmi(void *data)
{
  struct cpu *cpu = data;

  cpu->bus.pmi(cpu->bus.data);
}

static void on_message(void *data, const struct lb_message *message)
{
  struct cpu *cpu = data;

  cpu->bus.message(cpu->bus.data, message);
}

static void on_trap(void *data)
{
  cpu_trap(data, DR6_BS);
}

/* ---- creation ---- */

static int allocate(struct cpu *cpu, struct memory *memory)
{
  for (unsigned i = 0; i < 3; i++) {
    cpu->tlbs[i] = malloc(TLB_ENTRIES * sizeof(struct cpu_tlb_entry));
    if (!cpu->tlbs[i])
      return -ENOMEM;
    for (unsigned k = 0; k < TLB_ENTRIES; k++)
      cpu->tlbs[i][k] = (struct cpu_tlb_entry){.read = 1, .write = 1};
  }
  cpu->tlb = cpu->tlbs[0];
  int r = block_cache_new(memory, &cpu->blocks);
  if (r >= 0)
    cpu->jumps = block_cache_jumps(cpu->blocks);
  return r;
}

/* Its number is its index in the list. */
static void join_memory(struct cpu *cpu, struct memory *memory)
{
  cpu->number = memory->cpu_count;
  memory->cpus[memory->cpu_count++] = cpu;
}

static void leave_memory(struct cpu *cpu)
{
  struct memory *memory = cpu->memory;
  unsigned kept = 0;

  for (unsigned i = 0; i < memory->cpu_count; i++)
    if (memory->cpus[i] != cpu)
      memory->cpus[kept++] = memory->cpus[i];
  memory->cpu_count = kept;
}

int cpu_new(const struct lb_cpu *model, struct memory *memory, const struct cpu_bus *bus, uint32_t recorder_options,
            struct cpu **ret_cpu)
{
  if (memory->cpu_count == MEMORY_CPUS)
    return -E2BIG;
  struct cpu *cpu = aligned_alloc(64, (sizeof(*cpu) + 63) & ~(size_t)63);
  if (!cpu)
    return -ENOMEM;
  memset(cpu, 0, sizeof(*cpu));
  cpu->model = model;
  cpu->memory = memory;
  cpu->bus = *bus;
  cpu->generation = 1;
  struct lb_host host = {
    .data = cpu,
    .read = ds_read,
    .write = ds_write,
    .map = ds_map,
    .pmi = on_pmi,
    .bus = on_message,
    .trap = on_trap,
  };
  int error = allocate(cpu, memory);
  if (error >= 0)
    error = lb_recorder_init(&cpu->recorder, model, &host, recorder_options);
  if (error < 0) {
    cpu_free(cpu);
    return error;
  }
  cpu->features = system_features(model);
  join_memory(cpu, memory);
  predictor_init(&cpu->predictor, PREDICTOR_2BIT);
  cpu_reset(cpu, false);
  *ret_cpu = cpu;
  return 0;
}

void cpu_free(struct cpu *cpu)
{
  if (!cpu)
    return;
  leave_memory(cpu);
  block_cache_free(cpu->blocks);
  free(cpu->points);
  for (unsigned i = 0; i < 3; i++)
    free(cpu->tlbs[i]);
  free(cpu);
}

void cpu_reset(struct cpu *cpu, bool is_warm)
{
  if (is_warm)
    lb_recorder_reset_warm(&cpu->recorder);
  else
    lb_recorder_reset_cold(&cpu->recorder);
  system_reset_registers(cpu, is_warm);
  cpu->activity = cpu->number ? CPU_WAIT_SIPI : CPU_RUNNING;
  cpu->signals = cpu->lines = cpu->shadow = 0;
  cpu->is_nmi_blocked = cpu->is_in_smm = cpu->is_smi_blocked = cpu->is_spinning = false;
  cpu->debug_due = 0;
  cpu->startup = 0;
  cpu->reason[0] = '\0';
  cpu_changed(cpu);
}

void cpu_changed(struct cpu *cpu)
{
  block_flush(cpu);
  access_flush(cpu, true);
  segment_update(cpu);
  system_update_debug(cpu);
  transfer_watch(cpu);
}

/* ---- from outside ---- */

uint64_t cpu_flags(const struct cpu *cpu)
{
  return flags_get(cpu);
}

void cpu_set_flags(struct cpu *cpu, uint64_t flags)
{
  flags_set(cpu, (uint32_t)flags);
}

void cpu_listen(struct cpu *cpu, cpu_listener *listener, void *data)
{
  cpu->listener = listener;
  cpu->listener_data = data;
  transfer_watch(cpu);
}

void cpu_follow(struct cpu *cpu, cpu_listener *follower, void *data)
{
  cpu->follower = follower;
  cpu->follower_data = data;
  transfer_watch(cpu);
}

void cpu_set_rip(struct cpu *cpu, uint64_t rip)
{
  transfer_set(cpu, rip);
}

uint64_t cpu_translate(struct cpu *cpu, uint64_t linear, unsigned *ret_bits)
{
  uint64_t physical;
  unsigned bits;

  if (!paging_look(cpu, linear, &physical, &bits))
    return UINT64_MAX;
  const uint8_t *at = memory_at(cpu->memory, physical);
  bool has_code = at && cpu->memory->code[(uint64_t)(at - cpu->memory->ram) / PAGE_SIZE];
  if (ret_bits)
    *ret_bits = (bits & 0xFFFF) | (has_code ? LB_DS_PAGE_CODE : 0);
  return physical;
}

/* Host address of a linear address, for a debugger. */
static uint8_t *peek_at(struct cpu *cpu, uint64_t linear)
{
  uint64_t physical;

  return paging_look(cpu, linear, &physical, NULL) ? memory_at(cpu->memory, physical) : NULL;
}

size_t cpu_peek(struct cpu *cpu, uint64_t linear, void *bytes, size_t size)
{
  size_t done = 0;

  for (; done < size; done++) {
    const uint8_t *at = peek_at(cpu, (linear + done) & cpu->linear_mask);

    if (!at)
      break;
    ((uint8_t *)bytes)[done] = *at;
  }
  return done;
}

size_t cpu_poke(struct cpu *cpu, uint64_t linear, const void *bytes, size_t size)
{
  size_t done = 0;

  for (; done < size; done++) {
    uint8_t *at = peek_at(cpu, (linear + done) & cpu->linear_mask);

    if (!at)
      break;
    *at = ((const uint8_t *)bytes)[done];
  }
  block_flush(cpu);
  return done;
}

int cpu_disassemble(struct cpu *cpu, uint64_t rip, char *text, size_t size)
{
  uint8_t bytes[ISA_LENGTH_MAX];
  size_t have = cpu_peek(cpu, cpu->segment[CS].linear_base + rip, bytes, sizeof(bytes));
  struct isa_instruction instruction;
  int length = isa_decode(decode_mode(cpu), cpu->model->vendor == LB_VENDOR_AMD, bytes, have, &instruction);

  if (length < 0)
    return length;
  int error = isa_format(&instruction, rip, text, size);
  return error < 0 ? error : length;
}
