/* SPDX-License-Identifier: Apache-2.0
 *
 * Points: breakpoints and watchpoints of a debugger outside the guest. Blocks end before a code point, and the block
 * that begins at one is a single instruction that ends the run. Blocks for single steps (MODE_STEP) ignore points. Data
 * points make accesses take the slow path, as the guest's own debug registers do; none of those is touched.
 */
#include "cpu/point.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/block.h"
#include "cpu/fault.h"
#include "cpu/system.h"

/* ---- code ---- */

bool point_is_at(const struct cpu *cpu, uint64_t linear)
{
  for (size_t i = 0; i < cpu->point_count; i++)
    if ((cpu->points[i].access & ACCESS_EXECUTE) && (cpu->points[i].address & cpu->linear_mask) == linear)
      return true;
  return false;
}

/* Restores the shadow and RF that the run loop cleared before the instruction, so that no event can come in between
 * when the instruction is started again. */
static void hold_restore(struct cpu *cpu)
{
  if (!(cpu->mode & MODE_ONE))
    return;
  cpu->shadow = (uint8_t)(cpu->held & (SHADOW_STI | SHADOW_MOV_SS));
  cpu->eflags |= cpu->held & FLAG_RF;
}

const struct insn *point_run(struct cpu *cpu, const struct insn *insn)
{
  uint64_t linear = (cpu->segment[CS].linear_base + insn->rip) & cpu->linear_mask;

  cpu->hit = (struct cpu_hit){.kind = CPU_HIT_CODE, .access = ACCESS_EXECUTE, .address = linear};
  hold_restore(cpu);
  return insn_before(cpu, insn);
}

/* ---- data ---- */

/* Finds the first address that is both accessed and watched. Returns false if there is none. */
static bool point_overlaps(const struct cpu *cpu, const struct cpu_point *point, uint64_t linear, unsigned size,
                           uint64_t *ret_address)
{
  if (((linear - point->address) & cpu->linear_mask) < point->size) {
    *ret_address = linear;
    return true;
  }
  *ret_address = point->address & cpu->linear_mask;
  return point->size && ((point->address - linear) & cpu->linear_mask) < size;
}

void point_access(struct cpu *cpu, uint64_t linear, unsigned size, unsigned access)
{
  uint64_t address;

  for (size_t i = 0; i < cpu->point_count && !cpu->hit.kind; i++)
    if ((cpu->points[i].access & access) && point_overlaps(cpu, &cpu->points[i], linear, size, &address))
      cpu->hit = (struct cpu_hit){.kind = CPU_HIT_DATA, .access = (uint8_t)access, .point = i, .address = address};
}

/* ---- exceptions ---- */

bool point_catches(struct cpu *cpu, unsigned vector)
{
  if (!(cpu->catches >> vector & 1))
    return false;
  cpu->hit = (struct cpu_hit){.kind = CPU_HIT_EXCEPTION, .vector = (uint8_t)vector};
  return true;
}

bool point_is_restartable(const struct cpu *cpu)
{
  return !cpu->was_event && (!cpu->fault.is_delivering || cpu->fault.is_delivering_soft);
}

bool point_catches_fault(struct cpu *cpu)
{
  if (!point_is_restartable(cpu) || !point_catches(cpu, cpu->fault.vector))
    return false;
  cpu->hit.error = cpu->fault.has_error ? cpu->fault.error : 0;
  cpu->fault.is_delivering = cpu->fault.is_delivering_soft = false;
  cpu->debug_due = 0; /* the instruction will raise it again */
  hold_restore(cpu);
  if (cpu->fault.vector != EXCEPTION_DB) /* a breakpoint of the guest that was passed stays passed */
    cpu->eflags |= FLAG_RF;
  return true;
}

void point_delivered(struct cpu *cpu, bool was_restartable)
{
  if (was_restartable || !point_catches(cpu, cpu->fault.delivering))
    return;
  cpu->hit.is_delivered = true;
  cpu->hit.error = cpu->fault.has_error ? cpu->fault.error : 0;
}

/* ---- from outside ---- */

static size_t count_of(const struct cpu_point *points, size_t count, unsigned access)
{
  size_t result = 0;

  for (size_t i = 0; i < count; i++)
    result += (points[i].access & access) != 0;
  return result;
}

static bool is_same_code(const struct cpu *cpu, const struct cpu_point *points, size_t count)
{
  size_t codes = count_of(points, count, ACCESS_EXECUTE), same = 0;

  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; (points[i].access & ACCESS_EXECUTE) && k < cpu->point_count; k++)
      if ((cpu->points[k].access & ACCESS_EXECUTE) && cpu->points[k].address == points[i].address) {
        same++;
        break;
      }
  return same == codes && codes == cpu->code_points;
}

int cpu_set_points(struct cpu *cpu, const struct cpu_point *points, size_t count)
{
  struct cpu_point *copy = count ? malloc(count * sizeof(*copy)) : NULL;

  if (count && !copy)
    return -ENOMEM;
  if (count)
    memcpy(copy, points, count * sizeof(*copy));
  bool is_same = is_same_code(cpu, points, count);
  free(cpu->points);
  cpu->points = copy;
  cpu->point_count = count;
  cpu->code_points = count_of(points, count, ACCESS_EXECUTE);
  if (!is_same)
    block_flush(cpu);
  system_update_debug(cpu);
  return 0;
}

void cpu_catch(struct cpu *cpu, uint32_t vectors)
{
  cpu->catches = vectors;
}

enum cpu_stop cpu_step(struct cpu *cpu)
{
  cpu->is_stepping = true;
  enum cpu_stop stop = cpu_run(cpu, 1);
  cpu->is_stepping = false;
  return stop;
}
