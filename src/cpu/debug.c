/* SPDX-License-Identifier: Apache-2.0
 *
 * Debug registers: MOV to and from DR0 to DR7, and the breakpoints that DR7 switches on. SDM vol. 3, 17.2 and 17.3. The
 * run loop checks code breakpoints; access.c and port.c report data and I/O accesses.
 */
#include "cpu/control.h"
#include "cpu/counter.h"
#include "cpu/instruction.h"
#include "cpu/point.h"
#include "cpu/transfer.h"

#define DR6_WRITABLE (DR6_B | DR6_BD | DR6_BS | DR6_BT)
#define DR7_WRITABLE 0xFFFF23FFu

/* R/W field of DR7. */
enum { BREAK_EXECUTE, BREAK_WRITE, BREAK_IO, BREAK_ACCESS };

/* ---- fields of DR7 ---- */

static unsigned break_type(const struct cpu *cpu, unsigned number)
{
  return (unsigned)(cpu->dr[7] >> (16 + 4 * number)) & 3;
}

static bool break_is_on(const struct cpu *cpu, unsigned number)
{
  return cpu->dr[7] >> (2 * number) & 3;
}

/* The number of watched bytes. A code breakpoint is one byte, whatever LEN is. */
static unsigned break_length(const struct cpu *cpu, unsigned number)
{
  static const uint8_t lengths[4] = {1, 2, 8, 4};

  return lengths[cpu->dr[7] >> (18 + 4 * number) & 3];
}

/* Resets the counts: nothing before this is counted. The instruction that switches counters on is the first one that
 * they count, since it retires after its own effect. The one that switches them off is not counted, for the same
 * reason. */
static void counting_begins(struct cpu *cpu)
{
  uint64_t now = cpu_cycles(cpu);

  lb_recorder_clock(&cpu->recorder, now - cpu->reported);
  cpu->reported = now;
  cpu->reported_retired = cpu_retired(cpu);
  cpu->progress = (struct lb_progress){.cpl = cpu->cpl};
}

void system_update_debug(struct cpu *cpu)
{
  cpu->dr_code = 0;
  cpu->dr_access = cpu->point_count > cpu->code_points ? DR_ACCESS_POINTS : 0;
  for (unsigned i = 0; i < 4; i++) {
    unsigned type = break_type(cpu, i);

    if (!break_is_on(cpu, i) || (type == BREAK_IO && !(cpu->cr4 & CR4_DE)))
      continue;
    if (type == BREAK_EXECUTE)
      cpu->dr_code |= (uint8_t)(1u << i);
    else
      cpu->dr_access |= (uint8_t)(1u << i);
  }
  bool was_on = cpu->progress_is_on;
  cpu->progress_is_on = lb_recorder_is_counting(&cpu->recorder);
  cpu->counts_cache = lb_recorder_counts(&cpu->recorder, LB_SUM_CACHE_REFERENCES) ||
                      lb_recorder_counts(&cpu->recorder, LB_SUM_CACHE_MISSES) ||
                      lb_recorder_counts_metric(&cpu->recorder, LB_METRIC_MEMORY);
  cpu->counts_inserts = lb_recorder_counts(&cpu->recorder, LB_SUM_LBR_INSERTS);
  cpu->counts_metrics = lb_recorder_counts_slots(&cpu->recorder);
  if (cpu->progress_is_on && !was_on)
    counting_begins(cpu);
  transfer_watch(cpu);
}

/* ---- breakpoints ---- */

static uint32_t break_hit(struct cpu *cpu, unsigned number)
{
  lb_recorder_breakpoint_match(&cpu->recorder, number);
  return 1u << number;
}

/* Whether [a, a + size) and the aligned field of a debug register overlap. LEN decides which address bits count. */
static bool break_overlaps(const struct cpu *cpu, unsigned number, uint64_t address, unsigned size, uint64_t mask)
{
  unsigned length = break_length(cpu, number);
  uint64_t first = cpu->dr[number] & mask & ~(uint64_t)(length - 1);

  return ((address - first) & mask) < length || ((first - address) & mask) < size;
}

uint32_t system_code_matches(const struct cpu *cpu, uint64_t linear)
{
  uint32_t bits = 0;

  for (unsigned i = 0; i < 4; i++)
    if ((cpu->dr_code >> i & 1) && (cpu->dr[i] & cpu->linear_mask) == linear)
      bits |= 1u << i;
  return bits;
}

uint32_t system_code_breakpoints(struct cpu *cpu, uint64_t linear)
{
  uint32_t bits = system_code_matches(cpu, linear);

  for (unsigned i = 0; i < 4; i++)
    if (bits >> i & 1)
      break_hit(cpu, i);
  return bits;
}

void system_data_breakpoints(struct cpu *cpu, uint64_t linear, unsigned size, unsigned access)
{
  for (unsigned i = 0; i < 4; i++) {
    unsigned type = break_type(cpu, i);
    bool is_wanted = type == BREAK_ACCESS || (type == BREAK_WRITE && (access & ACCESS_WRITE));

    if ((cpu->dr_access >> i & 1) && is_wanted && break_overlaps(cpu, i, linear, size, cpu->linear_mask))
      cpu->debug_due |= break_hit(cpu, i);
  }
  if (cpu->dr_access & DR_ACCESS_POINTS)
    point_access(cpu, linear, size, access);
}

void system_io_breakpoints(struct cpu *cpu, uint16_t port, unsigned size)
{
  for (unsigned i = 0; i < 4; i++)
    if ((cpu->dr_access >> i & 1) && break_type(cpu, i) == BREAK_IO && break_overlaps(cpu, i, port, size, UINT64_MAX))
      cpu->debug_due |= break_hit(cpu, i);
}

/* ---- MOV ---- */

/* Without CR4.DE, DR4 and DR5 are other names of DR6 and DR7. Order of checks: #UD, privilege, general detect. */
static unsigned debug_check(struct cpu *cpu, unsigned number)
{
  if (number > 7)
    fault_ud(cpu);
  if (number == 4 || number == 5) {
    if (cpu->cr4 & CR4_DE)
      fault_ud(cpu);
    number += 2;
  }
  control_check_privilege(cpu);
  if (cpu->dr[7] & DR7_GD) {
    cpu->debug_due = DR6_BD;
    fault_raise(cpu, EXCEPTION_DB, 0);
  }
  return number;
}

static void debug_set(struct cpu *cpu, unsigned number, uint64_t value)
{
  if (number >= 6 && value >> 32)
    fault_gp(cpu, 0);
  if (number == 6)
    cpu->dr[6] = (value & DR6_WRITABLE) | DR6_FIXED;
  else if (number == 7)
    cpu->dr[7] = (value & DR7_WRITABLE) | DR7_FIXED;
  else
    cpu->dr[number] = value;
  system_update_debug(cpu);
}

const struct insn *control_mov_dr(struct cpu *cpu, const struct insn *insn)
{
  bool is_write = insn_writes_special(insn);
  unsigned number = debug_check(cpu, insn->op[is_write ? 0 : 1]);
  unsigned place = insn->op[is_write ? 1 : 0];
  unsigned size = insn_is_64(cpu) ? 8 : 4;

  if (!is_write) {
    reg_set(cpu, place, size, cpu->dr[number]);
    return insn + 1;
  }
  debug_set(cpu, number, reg_get(cpu, place, size));
  return insn_leave(cpu, insn);
}
