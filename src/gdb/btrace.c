/* SPDX-License-Identifier: Apache-2.0
 *
 * The branch trace as gdb reads it: XML with one <block> for each straight piece of code, the newest first. gdb asks
 * for 4096 bytes at a time, and a trace may have millions. Bytes that were read are dropped, and the next ones are made
 * on demand.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "gdb/session.h"

#define BUFFER_SIZE 0x10000u /* the buffer size that gdb is told, although there is no buffer */

/* ---- switching ---- */

void command_btrace(struct gdb_session *session, const char *at)
{
  const struct gdb_target *target = session->target;
  bool is_on = !strcmp(at, "bts");
  int r = -EOPNOTSUPP;

  if (!target->history_begin)
    return;
  if (target->history_enable && (is_on || !strcmp(at, "off")))
    r = target->history_enable(target->data, session_thread(session, session->general), is_on);
  if (r < 0)
    reply_add(session, "E.Branch tracing cannot be switched so");
  else
    reply_ok(session);
}

/* The target decides how much is kept. */
void command_btrace_size(struct gdb_session *session, const char *at)
{
  (void)at;
  if (session->target->history_begin)
    reply_ok(session);
}

int btrace_configuration(struct gdb_session *session, struct text *text)
{
  const struct gdb_target *target = session->target;
  uint64_t thread = session_thread(session, session->general);
  bool is_on = target->history_is_on && target->history_is_on(target->data, thread);
  int r = text_add(text, "<!DOCTYPE btrace-conf SYSTEM \"btrace-conf.dtd\"><btrace-conf version=\"1.0\">");

  if (r >= 0 && is_on)
    r = text_addf(text, "<bts size=\"0x%x\"/>", BUFFER_SIZE);
  return r < 0 ? r : text_add(text, "</btrace-conf>");
}

/* ---- reading ---- */

static int btrace_begin(struct gdb_session *session, enum gdb_history which)
{
  const struct gdb_target *target = session->target;
  struct btrace *btrace = &session->btrace;
  uint64_t thread = session_thread(session, session->general);
  int r = target->history_begin(target->data, thread, which);

  btrace->is_begun = false;
  if (r < 0)
    return r;
  btrace->which = which;
  btrace->thread = thread;
  btrace->is_over = false;
  btrace->start = 0;
  btrace->window.length = 0;
  r = text_add(&btrace->window, "<!DOCTYPE btrace SYSTEM \"btrace.dtd\"><btrace version=\"1.0\">");
  btrace->is_begun = r >= 0;
  return r;
}

/* Adds one more block, or the end. */
static int btrace_more(struct gdb_session *session)
{
  const struct gdb_target *target = session->target;
  struct btrace *btrace = &session->btrace;
  struct gdb_block block;
  int r = target->history_next(target->data, &block);

  if (r < 0)
    return r;
  btrace->is_over = r == 0;
  return r == 0 ? text_add(&btrace->window, "</btrace>")
                : text_addf(&btrace->window, "<block begin=\"0x%" PRIx64 "\" end=\"0x%" PRIx64 "\"/>", block.begin,
                            block.end);
}

/* Drops the bytes before an offset that is in the window, or right after it. */
static void window_drop(struct btrace *btrace, uint64_t offset)
{
  size_t count = (size_t)(offset - btrace->start);

  if (!count)
    return;
  memmove(btrace->window.data, btrace->window.data + count, btrace->window.length - count);
  btrace->window.length -= count;
  btrace->start = offset;
}

/* Moves the window to `offset`, with `size` bytes and one more, as far as they exist. */
static int window_fill(struct gdb_session *session, uint64_t offset, uint64_t size)
{
  struct btrace *btrace = &session->btrace;
  int r = 0;

  while (r >= 0) {
    uint64_t end = btrace->start + btrace->window.length;

    if (btrace->start < offset)
      window_drop(btrace, end < offset ? end : offset);
    if (btrace->is_over || end > offset + size)
      return 0;
    r = btrace_more(session);
  }
  return r;
}

static int history_find(const char *annex, enum gdb_history *ret_which)
{
  static const char *const words[] = {"all", "new", "delta"};

  for (unsigned i = 0; i < 3; i++)
    if (!strcmp(annex, words[i])) {
      *ret_which = (enum gdb_history)i;
      return 0;
    }
  return -EINVAL;
}

/* Whether reading can continue at this offset. */
static bool btrace_is_at(struct gdb_session *session, enum gdb_history which, uint64_t offset)
{
  const struct btrace *btrace = &session->btrace;

  return offset && btrace->is_begun && btrace->which == which && btrace->start <= offset &&
         btrace->thread == session_thread(session, session->general);
}

void btrace_read(struct gdb_session *session, const char *annex, uint64_t offset, uint64_t size)
{
  struct btrace *btrace = &session->btrace;
  enum gdb_history which;
  int r = history_find(annex, &which);

  if (r >= 0 && !btrace_is_at(session, which, offset))
    r = btrace_begin(session, which);
  if (r >= 0)
    r = offset > UINT64_MAX - size ? -EINVAL : window_fill(session, offset, size);
  if (r < 0) {
    btrace->is_begun = false;
    if (r == -ENOMEM)
      session_check(session, r);
    reply_error(session, r);
    return;
  }
  if (btrace->start < offset) { /* the data ends before it */
    reply_add(session, "l");
    return;
  }
  size = size < btrace->window.length ? size : btrace->window.length;
  reply_add(session, size < btrace->window.length || !btrace->is_over ? "m" : "l");
  if (size)
    session_check(session, text_add_bytes(&session->reply, btrace->window.data, (size_t)size));
}
