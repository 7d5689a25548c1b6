/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to branches: the reverse of encode.c. The bytes are untrusted: every number is checked, and an inconsistent
 * chunk ends with LB_E_DAMAGED.
 */
#include <errno.h>

#include "base/base.h"
#include "trace/branches.h"

int decoder_begin(struct decoder *decoder, const uint8_t *bytes, size_t size, uint32_t count)
{
  struct cursor cursor = {bytes, bytes + size, false};
  uint64_t sizes[BRANCHES_STRINGS];

  decoder->left = 0;
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++)
    sizes[i] = cursor_varint(&cursor);
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++) {
    const uint8_t *string = cursor_bytes(&cursor, sizes[i]);

    if (!string)
      return LB_E_DAMAGED;
    decoder->strings[i] = (struct cursor){string, string + sizes[i], false};
  }
  if (cursor.is_short || (!cursor_left(&cursor) && !count) || count > CHUNK_BRANCHES_MAX)
    return LB_E_DAMAGED;
  decoder->stamps = cursor;
  decoder->traits = (struct edge_traits){0};
  decoder->to = 0;
  decoder->run = cursor_varint(&decoder->strings[STRING_RUNS]);
  decoder->mark = cursor_left(&decoder->strings[STRING_MARKS]) ? cursor_varint(&decoder->strings[STRING_MARKS]) : 0;
  if (model_begin(&decoder->model) < 0)
    return -ENOMEM;
  decoder->left = count;
  return 0;
}

void decoder_done(struct decoder *decoder)
{
  model_done(&decoder->model);
}

/* Reads the next definition as a new edge. */
static int edge_read(struct decoder *decoder)
{
  struct cursor *cursor = &decoder->strings[STRING_DEFINITIONS];
  struct edge_traits *traits = &decoder->traits;
  struct lb_branch edge = {.kind = cursor_u8(cursor)};
  unsigned what = cursor_u8(cursor);

  if (what & DEFINES_FLAGS)
    traits->flags = cursor_u8(cursor);
  if (what & DEFINES_CPLS)
    traits->cpls = cursor_u8(cursor);
  if (what & DEFINES_BASES) {
    traits->from_base = cursor_varint(cursor);
    traits->to_base = cursor_varint(cursor);
  }
  edge.flags = traits->flags;
  edge.from_cpl = traits->cpls & 3;
  edge.to_cpl = traits->cpls >> 2 & 3;
  edge.from_base = traits->from_base;
  edge.to_base = traits->to_base;
  edge.from = decoder->to + zagzig(cursor_varint(cursor));
  edge.to = edge.from + zagzig(cursor_varint(cursor));
  if (cursor->is_short || edge.kind >= LB_BRANCH_KINDS || what > 7 || traits->cpls > 15 ||
      (edge.flags & LB_BRANCH_MISPREDICTED) || decoder->model.count > MODEL_EDGES_MAX)
    return LB_E_DAMAGED;
  return model_add(&decoder->model, &edge);
}

/* Reads the symbol that replaces the first guess. */
static int symbol_read(struct decoder *decoder)
{
  uint64_t symbol = cursor_varint(&decoder->strings[STRING_SYMBOLS]);
  int edge;

  if (decoder->strings[STRING_SYMBOLS].is_short)
    return LB_E_DAMAGED;
  if (symbol == 1)
    edge = edge_read(decoder);
  else if (symbol == 0)
    edge = model_second_guess(&decoder->model);
  else
    edge = symbol - 1 < decoder->model.count ? (int)(symbol - 1) : 0;
  decoder->run = cursor_varint(&decoder->strings[STRING_RUNS]);
  if (edge == 0 || decoder->strings[STRING_RUNS].is_short)
    return LB_E_DAMAGED;
  return edge;
}

static int mark_read(struct decoder *decoder)
{
  struct cursor *marks = &decoder->strings[STRING_MARKS];

  decoder->mark = cursor_left(marks) ? cursor_varint(marks) : 0;
  return marks->is_short ? LB_E_DAMAGED : 0;
}

static int decoder_next_one(struct decoder *decoder, struct lb_branch *branch)
{
  int edge;

  if (decoder->run) {
    decoder->run--;
    edge = model_guess(&decoder->model);
    if (!edge)
      return LB_E_DAMAGED;
  } else {
    edge = symbol_read(decoder);
    if (edge < 0)
      return edge;
  }
  *branch = decoder->model.edges[edge];
  model_step(&decoder->model, (uint16_t)edge, branch->kind);
  decoder->to = branch->to;
  if (decoder->mark && --decoder->mark == 0) {
    branch->flags |= LB_BRANCH_MISPREDICTED;
    return mark_read(decoder);
  }
  return 0;
}

/* At the end nothing may be left over: the encoder writes no inconsistent strings. */
static int decoder_check_end(const struct decoder *decoder)
{
  for (unsigned i = 0; i < BRANCHES_STRINGS; i++)
    if (cursor_left(&decoder->strings[i]))
      return LB_E_DAMAGED;
  return decoder->run || decoder->mark ? LB_E_DAMAGED : 0;
}

int decoder_next(struct decoder *decoder, struct lb_branch *ret_branches, size_t count)
{
  size_t done = 0;
  int r = 0;

  for (; done < count && decoder->left && r >= 0; done++) {
    r = decoder_next_one(decoder, &ret_branches[done]);
    decoder->left--;
  }
  if (r >= 0 && done && !decoder->left)
    r = decoder_check_end(decoder);
  if (r < 0) {
    decoder->left = 0;
    return r;
  }
  return (int)done;
}
