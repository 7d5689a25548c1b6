/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows in the margin of `lbr annotate`. Each has a lane of two columns; the first lane is the one nearest to the
 * code.
 */
#include "report/annotate_page.h"

enum cell {
  CELL_EMPTY,
  CELL_DOWN,
  CELL_ACROSS,
  CELL_TOP,
  CELL_BOTTOM,
  CELL_TEE_TOP,
  CELL_TEE_BOTTOM,
  CELL_CROSS,
  CELL_HEAD
};

#define CELLS_MAX (2 * ANALYSIS_LANES_MAX + 1)

unsigned margin_width(const struct analysis_annotation *annotation)
{
  return annotation->lanes ? 2 * annotation->lanes + 1 : 0;
}

static size_t arrow_top(const struct analysis_arrow *arrow)
{
  return arrow->from < arrow->to ? arrow->from : arrow->to;
}

static size_t arrow_bottom(const struct analysis_arrow *arrow)
{
  return arrow->from < arrow->to ? arrow->to : arrow->from;
}

/* An end of an arrow: a corner in its lane, and from there to the code. */
static void end_draw(const struct analysis_annotation *annotation, const struct analysis_arrow *arrow, size_t row,
                     enum cell cells[CELLS_MAX])
{
  unsigned column = 2 * (annotation->lanes - 1 - arrow->lane), width = margin_width(annotation);
  bool is_top = row == arrow_top(arrow);

  if (cells[column] == CELL_ACROSS)
    cells[column] = is_top ? CELL_TEE_TOP : CELL_TEE_BOTTOM;
  else
    cells[column] = is_top ? CELL_TOP : CELL_BOTTOM;
  for (unsigned i = column + 1; i < width; i++)
    if (cells[i] == CELL_EMPTY)
      cells[i] = CELL_ACROSS;
    else if (cells[i] == CELL_TOP)
      cells[i] = CELL_TEE_TOP;
    else if (cells[i] == CELL_BOTTOM)
      cells[i] = CELL_TEE_BOTTOM;
  if (row == arrow->to)
    cells[width - 1] = CELL_HEAD;
}

/* The lines of arrows that pass this row. */
static void line_draw(const struct analysis_annotation *annotation, const struct analysis_arrow *arrow,
                      enum cell cells[CELLS_MAX])
{
  unsigned column = 2 * (annotation->lanes - 1 - arrow->lane);

  cells[column] = cells[column] == CELL_ACROSS ? CELL_CROSS : cells[column] == CELL_EMPTY ? CELL_DOWN : cells[column];
}

int margin_add(struct text *text, const struct analysis_annotation *annotation, size_t row, bool is_before,
               bool has_utf8)
{
  static const char *const fine[] = {" ", "│", "─", "╭", "╰", "┬", "┴", "┼", "▶"};
  static const char *const plain[] = {" ", "|", "-", "+", "+", "+", "+", "|", ">"};
  enum cell cells[CELLS_MAX] = {CELL_EMPTY};
  int r = 0;

  for (size_t i = 0; i < annotation->arrow_count && !is_before; i++)
    if (annotation->arrows[i].from == row || annotation->arrows[i].to == row)
      end_draw(annotation, &annotation->arrows[i], row, cells);
  for (size_t i = 0; i < annotation->arrow_count; i++)
    if (arrow_top(&annotation->arrows[i]) < row && arrow_bottom(&annotation->arrows[i]) + is_before > row)
      line_draw(annotation, &annotation->arrows[i], cells);
  for (unsigned i = 0; i < margin_width(annotation) && r >= 0; i++)
    r = text_add(text, has_utf8 ? fine[cells[i]] : plain[cells[i]]);
  return r;
}
