/* SPDX-License-Identifier: Apache-2.0
 *
 * The call stack at the end of a thread, computed from its branches (analysis/backtrace.c). Each row is the address at
 * which a function was left, as in debuggers; functions that were inlined there have rows of their own.
 */
#include <string.h>

#include "report/death.h"

static void put_line(struct death_printer *printer, const struct symbol_frame *frame)
{
  if (frame->file && frame->line)
    death_put(printer, " %s:%u", death_base(frame->file), frame->line);
  else if (frame->file)
    death_put(printer, " %s", death_base(frame->file));
}

/* Why a function is on the stack although it did not call the one above it. */
static const char *kind_note(int kind)
{
  switch (kind) {
  case ANALYSIS_FRAME_HERE:
  case LB_BRANCH_NEAR_REL_CALL:
  case LB_BRANCH_NEAR_IND_CALL:
    return "";
  case LB_BRANCH_NEAR_RET:
    return "  (left by a return to where nothing called it from)";
  case LB_BRANCH_JCC:
  case LB_BRANCH_NEAR_REL_JMP:
  case LB_BRANCH_NEAR_IND_JMP:
    return "  (left by a jump: inferred)";
  default:
    return "  (a signal was delivered here)";
  }
}

static void put_frame(struct death_printer *printer, const struct analysis_thread *thread,
                      const struct analysis_frame *frame, size_t *row)
{
  struct symbol_place place;
  bool is_known = death_place(printer, thread, frame->mark, frame->address, &place);

  for (size_t i = 0; is_known && i + 1 < place.frame_count; i++) {
    const char *function = place.frames[i].function;

    death_put(printer, "  #%-3zu %s (inlined)", (*row)++, function ? function : "?");
    put_line(printer, &place.frames[i]);
    death_put(printer, "\n");
  }
  death_put(printer, "  #%-3zu ", (*row)++);
  if (!is_known || (!place.symbol && !place.module))
    death_put(printer, "0x%llx", (unsigned long long)frame->address);
  else
    death_put(printer, "%s+0x%llx", place.symbol ? place.symbol : death_base(place.module),
              (unsigned long long)place.offset);
  if (is_known && place.frame_count)
    put_line(printer, &place.frames[place.frame_count - 1]);
  death_put(printer, "%s\n", kind_note(frame->kind));
}

/* How many frames from number `at` on equal the one before them. */
static size_t frames_repeat(const struct analysis_backtrace *backtrace, size_t at)
{
  const struct analysis_frame *frames = backtrace->frames;
  size_t end = at;

  while (at && end < backtrace->count && frames[end].address == frames[at - 1].address &&
         frames[end].kind == frames[at - 1].kind)
    end++;
  return end - at;
}

/* The next frame from number `at` on that is shown: of a recursion the first and the last, of a deep stack its two
 * ends. */
static size_t frames_skip(const struct analysis_backtrace *backtrace, size_t at)
{
  size_t repeated = frames_repeat(backtrace, at);

  if (repeated > 2)
    return at + repeated - 1;
  while (at < backtrace->count && !death_frame_is_shown(at, backtrace->count))
    at++;
  return at;
}

static void put_frames(struct death_printer *printer, const struct analysis_thread *thread,
                       const struct analysis_backtrace *backtrace)
{
  size_t row = 0, next;

  for (size_t i = 0; i < backtrace->count && printer->error >= 0; i = next) {
    next = frames_skip(backtrace, i);
    if (next > i) {
      death_put(printer, "  ... %zu more%s\n", next - i, frames_repeat(backtrace, i) ? " of the same" : "");
      row += next - i;
      continue;
    }
    put_frame(printer, thread, &backtrace->frames[i], &row);
    next = i + 1;
  }
  if (!backtrace->is_complete)
    death_put(printer, "  ... older frames are not in the record\n");
}

void death_put_stack(struct death_printer *printer, const struct analysis_thread *thread)
{
  struct analysis_backtrace backtrace;

  if (printer->error < 0)
    return;
  printer->error = death_stack_make(printer, thread, &backtrace);
  if (printer->error >= 0 && backtrace.count) {
    death_put_color(printer, DEATH_BOLD);
    death_put(printer, "call stack of thread %u, from its branches%s:", thread->thread,
              thread->is_damaged ? "; it may be wrong, since parts of the log make no sense" : "");
    death_put_color(printer, DEATH_PLAIN);
    death_put(printer, "\n");
    put_frames(printer, thread, &backtrace);
    death_put(printer, "\n");
  }
  if (printer->error >= 0)
    analysis_backtrace_done(&backtrace);
}
