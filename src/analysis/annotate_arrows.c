/* SPDX-License-Identifier: Apache-2.0
 *
 * The hot edges inside a function, drawn as arrows with few crossings: short arrows are nearest to the code, long ones
 * go around them.
 */
#include "analysis/annotate_arrows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"

#define ARROWS_MAX 24u /* hottest edges, which are drawn */

/* The row at an address, or the number of rows. */
static size_t row_find(const struct analysis_annotation *annotation, uint64_t address)
{
  struct search search = {.end = annotation->row_count};

  while (search_next(&search))
    search_turn(&search, annotation->rows[search.at].at.address < address);
  if (search.first < annotation->row_count && annotation->rows[search.first].at.address == address)
    return search.first;
  return annotation->row_count;
}

static bool kind_is_drawn(unsigned kind)
{
  return kind == LB_BRANCH_JCC || kind == LB_BRANCH_NEAR_REL_JMP || kind == LB_BRANCH_NEAR_IND_JMP;
}

static int arrow_add(struct analysis_annotation *annotation, size_t *capacity, const struct analysis_arrow *arrow)
{
  struct analysis_arrow *added = array_append(&annotation->arrows, &annotation->arrow_count, capacity);

  if (!added)
    return -ENOMEM;
  *added = *arrow;
  return 0;
}

static int arrows_collect(struct analysis_annotation *annotation)
{
  size_t capacity = 0;
  int r = 0;

  for (size_t i = 0; i < annotation->row_count && r >= 0; i++) {
    const struct analysis_annotated *row = &annotation->rows[i];

    for (size_t j = 0; j < row->jump_count && r >= 0; j++) {
      const struct analysis_jump *jump = &row->jumps[j];
      size_t to = annotation->row_count;

      if (!jump->is_passed && kind_is_drawn(jump->kind) && jump->to.file == row->at.file &&
          jump->to.space == row->at.space)
        to = row_find(annotation, jump->to.address);
      if (to < annotation->row_count && to != i)
        r = arrow_add(annotation, &capacity, &(struct analysis_arrow){.from = i, .to = to, .count = jump->count});
    }
  }
  return r;
}

/* ---- lanes ---- */

static size_t arrow_top(const struct analysis_arrow *arrow)
{
  return arrow->from < arrow->to ? arrow->from : arrow->to;
}

static size_t arrow_bottom(const struct analysis_arrow *arrow)
{
  return arrow->from < arrow->to ? arrow->to : arrow->from;
}

static int hot_compare(const void *one, const void *other)
{
  const struct analysis_arrow *a = one, *b = other;

  if (a->count != b->count)
    return a->count < b->count ? 1 : -1;
  return a->from != b->from ? (a->from < b->from ? -1 : 1) : a->to < b->to ? -1 : a->to > b->to;
}

static int short_compare(const void *one, const void *other)
{
  const struct analysis_arrow *a = one, *b = other;
  size_t length = arrow_bottom(a) - arrow_top(a), other_length = arrow_bottom(b) - arrow_top(b);

  return length != other_length ? (length < other_length ? -1 : 1) : hot_compare(one, other);
}

/* Whether two arrows share a row. */
static bool arrows_clash(const struct analysis_arrow *one, const struct analysis_arrow *other)
{
  return arrow_top(one) <= arrow_bottom(other) && arrow_top(other) <= arrow_bottom(one);
}

static unsigned lane_find(const struct analysis_arrow *arrows, size_t count, const struct analysis_arrow *arrow)
{
  unsigned taken = 0, lane = 0;

  for (size_t i = 0; i < count; i++)
    if (arrows_clash(&arrows[i], arrow))
      taken |= 1u << arrows[i].lane;
  while (taken >> lane & 1)
    lane++;
  return lane;
}

int annotation_draw(struct analysis_annotation *annotation)
{
  size_t count, kept = 0;
  struct analysis_arrow *arrows;
  int r = arrows_collect(annotation);

  if (r < 0)
    return r;
  arrows = annotation->arrows;
  count = annotation->arrow_count;
  if (count)
    qsort(arrows, count, sizeof(*arrows), hot_compare);
  annotation->hidden_arrows = count > ARROWS_MAX ? count - ARROWS_MAX : 0;
  count -= annotation->hidden_arrows;
  if (count)
    qsort(arrows, count, sizeof(*arrows), short_compare);
  for (size_t i = 0; i < count; i++) {
    struct analysis_arrow arrow = arrows[i];

    arrow.lane = lane_find(arrows, kept, &arrow);
    if (arrow.lane >= ANALYSIS_LANES_MAX)
      continue;
    annotation->lanes = arrow.lane >= annotation->lanes ? arrow.lane + 1 : annotation->lanes;
    arrows[kept++] = arrow;
  }
  annotation->hidden_arrows += count - kept;
  annotation->arrow_count = kept;
  if (kept)
    qsort(arrows, kept, sizeof(*arrows), hot_compare);
  return 0;
}
