/* SPDX-License-Identifier: Apache-2.0
 *
 * The history of the processor: its branches while gdb records, and the blocks between them, as gdb's `record btrace`
 * reads them. An event ends its block at the instruction at which it came, so that the history has the addresses at
 * which single steps would have stopped. gdb reads all code in one mode: code that ran in another mode is a gap.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/target_machine.h"
#include "isa/isa.h"
#include "report/report.h"

#define ROM_START UINT64_C(0xF0000)
#define ROM_END UINT64_C(0x100000)
#define SERVICE_LENGTH 3

/* ---- recording ---- */

static uint8_t bits_now(const struct cpu *cpu)
{
  return cpu->mode & MODE_BITS;
}

/* Drops the older half at once. */
static void history_drop(struct gdb_machine_history *history)
{
  size_t gone = history->count - history->most / 2;
  const struct history_branch *last = &history->list[gone - 1];

  history->begin = last->to;
  history->begin_bits = last->bits;
  memmove(history->list, history->list + gone, (history->count - gone) * sizeof(*history->list));
  history->count -= gone;
  history->dropped += gone;
}

static void history_add(struct gdb_machine_history *history, uint64_t from, uint64_t to)
{
  uint64_t retired = cpu_retired(history->cpu), since = retired - history->retired;
  struct history_branch *list;

  if (history->count >= history->most)
    history_drop(history);
  list = array_grow(history->list, sizeof(*list), history->count, &history->capacity);
  if (!list) { /* without memory, it continues with the present capacity */
    history->most = history->count > 2 ? history->count : 2;
    history->is_short = true;
    if (history->count < 2)
      return;
    history_drop(history);
    list = history->list;
  }
  history->list = list;
  history->retired = retired;
  list[history->count++] =
    (struct history_branch){from, to, since < UINT32_MAX ? (uint32_t)since : UINT32_MAX, bits_now(history->cpu)};
}

static void history_take(void *data, const struct lb_branch *branch)
{
  history_add(data, analysis_from(branch), analysis_to(branch));
}

void gdb_machine_history_enable(struct gdb_machine_history *history, bool is_on)
{
  struct cpu *cpu = history->cpu;
  size_t most = history->most;

  free(history->list);
  *history = (struct gdb_machine_history){.cpu = cpu, .is_on = is_on, .most = most};
  history->begin = gdb_machine_rip(cpu);
  history->begin_bits = bits_now(cpu);
  history->retired = cpu_retired(cpu);
  cpu_follow(cpu, is_on ? history_take : NULL, history);
}

void gdb_machine_history_jump(struct gdb_machine_history *history, uint64_t from)
{
  if (history->is_on)
    history_add(history, from, gdb_machine_rip(history->cpu));
}

void gdb_machine_history_bound(struct gdb_machine_history *history, size_t most)
{
  history->most = most;
  if (history->count > most)
    history_drop(history);
}

/* ---- reading ---- */

static uint64_t history_total(const struct gdb_machine_history *history)
{
  return history->dropped + history->count;
}

/* The block that ends with branch `i`, or at RIP for the one after the last. */
struct piece {
  uint64_t begin, end, count;
  uint8_t bits;
};

static struct piece history_piece(const struct gdb_machine_history *history, size_t i)
{
  const struct history_branch *before = i ? &history->list[i - 1] : NULL;
  const struct history_branch *branch = i < history->count ? &history->list[i] : NULL;

  return (struct piece){
    .begin = before ? before->to : history->begin,
    .end = branch ? branch->from : gdb_machine_rip(history->cpu),
    .count = branch ? branch->count : cpu_retired(history->cpu) - history->retired,
    .bits = before ? before->bits : (uint8_t)history->begin_bits,
  };
}

/* gdb cannot read the firmware's private instruction in ROM (0F 3F and a byte): blocks end with it. Finds the last one
 * in a piece and returns the address after it; 0 if there is none. */
static uint64_t piece_cut(const struct gdb_machine_history *history, uint64_t begin, uint64_t end)
{
  uint64_t cut = 0;

  while (begin < end && begin >= ROM_START && end < ROM_END && history->bits == MODE_16) {
    struct isa_instruction instruction;
    uint8_t bytes[ISA_LENGTH_MAX];
    size_t size = cpu_peek(history->cpu, begin, bytes, sizeof(bytes));
    bool is_service = size >= SERVICE_LENGTH && bytes[0] == 0x0F && bytes[1] == 0x3F;
    int length = is_service ? SERVICE_LENGTH : isa_decode(ISA_REAL, false, bytes, size, &instruction);

    if (length <= 0)
      break;
    begin += (uint64_t)length;
    if (is_service && begin <= end)
      cut = begin;
  }
  return cut;
}

/* Whether gdb can follow the piece. If it is too long for its instructions, it contains a change of RIP that was not a
 * branch: a reset, or the entry to or exit from SMM. */
static bool piece_is_straight(const struct gdb_machine_history *history, const struct piece *piece)
{
  return piece->bits == history->bits && piece->begin <= piece->end &&
         piece->end - piece->begin <= (piece->count + 1) * ISA_LENGTH_MAX;
}

static bool history_has_delta(const struct gdb_machine_history *history)
{
  struct piece piece;

  if (!history->is_read || history->read_count < history->dropped)
    return false;
  piece = history_piece(history, (size_t)(history->read_count - history->dropped));
  return piece.bits == history->bits && piece.end >= history->read_at &&
         piece.end - history->read_at <= (piece.count + 1) * ISA_LENGTH_MAX;
}

int gdb_machine_history_begin(struct gdb_machine_history *history, enum gdb_history which, uint8_t bits)
{
  uint64_t rip = gdb_machine_rip(history->cpu), total = history_total(history);
  bool is_new = !history->is_read || history->read_count != total || history->read_at != rip;

  if (!history->is_on)
    return -EINVAL;
  history->bits = bits;
  if (which == GDB_HISTORY_DELTA && !history_has_delta(history))
    return -EOPNOTSUPP;
  history->is_delta = which == GDB_HISTORY_DELTA;
  history->last = history->is_delta ? (size_t)(history->read_count - history->dropped) : 0;
  history->first_begin = history->read_at;
  history->next = which == GDB_HISTORY_NEW && !is_new ? 0 : history->count + 1;
  history->is_gap = history->is_cut = false;
  history->end_count = total;
  history->end_at = rip;
  return 0;
}

/* The piece that gdb reads next, without the part that was already read. */
static struct piece piece_next(struct gdb_machine_history *history)
{
  struct piece piece = history_piece(history, history->next - 1);

  if (history->is_delta && history->next - 1 == history->last)
    piece.begin = history->first_begin;
  if (history->is_cut)
    piece.end = history->cut_end;
  return piece;
}

int gdb_machine_history_next(struct gdb_machine_history *history, struct gdb_block *ret_block)
{
  while (history->next > history->last) {
    struct piece piece = piece_next(history);
    bool is_gap = !piece_is_straight(history, &piece), was_gap = history->is_gap;
    uint64_t cut = is_gap ? 0 : piece_cut(history, piece.begin, piece.end);

    history->is_gap = is_gap;
    history->is_cut = cut;
    history->cut_end = cut - SERVICE_LENGTH;
    if (!cut)
      history->next--;
    if (is_gap && (was_gap || piece.end == UINT64_MAX))
      continue;
    *ret_block = (struct gdb_block){is_gap ? piece.end + 1 : cut ? cut : piece.begin, piece.end};
    if (history->is_delta && history->next == history->last)
      ret_block->begin = 0;
    return 1;
  }
  history->is_read = true; /* gdb may have stopped reading before */
  history->read_count = history->end_count;
  history->read_at = history->end_at;
  return 0;
}
