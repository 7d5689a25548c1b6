/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of branches in `lbr diff`: source and target, as function+offset and file:line.
 */
#include "report/diff_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "symbol/symbol.h"

#define PLACE_MAX 1400

/* file:line of a place; text output has only the last part of the path. */
static void line_text(char *text, size_t size, const struct symbol_place *place, bool is_whole)
{
  const char *file = place->frame_count ? place->frames[0].file : NULL;
  const char *slash = file && !is_whole ? strrchr(file, '/') : NULL;

  if (file && place->frames[0].line)
    snprintf(text, size, "%.1000s:%u", slash && slash[1] ? slash + 1 : file, place->frames[0].line);
  else
    *text = '\0';
}

static bool place_find(const struct diff_side *side, uint64_t address, struct analysis_name *ret_name,
                       struct symbol_place *ret_place)
{
  struct analysis_location location = analysis_names_locate(side->names, side->space, address);

  return analysis_names_symbol(side->names, &location, ret_name) &&
         analysis_names_place(side->names, &location, ret_place);
}

/* "main+0x17 main.c:12", or an address. */
static void place_text(char *text, size_t size, const struct diff_side *side, uint64_t address)
{
  struct symbol_place place;
  struct analysis_name name;
  char line[1100];

  if (!place_find(side, address, &name, &place)) {
    snprintf(text, size, "0x%llx", (unsigned long long)address);
    return;
  }
  line_text(line, sizeof(line), &place, false);
  snprintf(text, size, "%s+0x%llx%s%s", name.symbol ? name.symbol : name.module, (unsigned long long)name.offset,
           *line ? " " : "", line);
}

static void put_end_json(struct page *page, const struct diff_side *side, const char *key, uint64_t address)
{
  struct symbol_place place;
  struct analysis_name name;
  char line[1100];

  page_section(page, key, NULL);
  page_put_hex(page, "address", address);
  if (place_find(side, address, &name, &place)) {
    line_text(line, sizeof(line), &place, true);
    page_put(page, "symbol", name.symbol);
    page_put(page, "module", name.module);
    page_put_hex(page, "offset", name.offset);
    page_put(page, "line", *line ? line : NULL);
  }
  page_section_end(page);
}

static void put_end(struct page *page, const struct diff_side *side, const char *key, uint64_t address)
{
  char text[PLACE_MAX];

  if (page->is_json) {
    put_end_json(page, side, key, address);
    return;
  }
  place_text(text, sizeof(text), side, address);
  page_put(page, key, text);
}

static void put_branches_json(struct page *page, const struct diff_side *side, const char *key,
                              const struct analysis_diff_branch *branches, size_t count)
{
  page_array(page, key);
  for (size_t i = 0; i < count; i++) {
    page_section(page, NULL, NULL);
    page_put_number(page, "number", branches[i].number);
    put_end(page, side, "from", analysis_from(&branches[i].branch));
    put_end(page, side, "to", analysis_to(&branches[i].branch));
    page_put(page, "kind", lb_branch_kind_name(branches[i].branch.kind));
    page_section_end(page);
  }
  page_array_end(page);
}

void diff_put_branches(struct page *page, const struct diff_side *side, const char *key, const char *title,
                       const struct analysis_diff_branch *branches, size_t count)
{
  static const struct page_column columns[] = {{"number", 12}, {"kind", 10}, {"branch", 0}, {NULL, 0}};

  if (page->is_json) {
    put_branches_json(page, side, key, branches, count);
    return;
  }
  page_heading(page, title);
  page_table(page, key, columns);
  for (size_t i = 0; i < count; i++) {
    char from[PLACE_MAX], to[PLACE_MAX];

    place_text(from, sizeof(from), side, analysis_from(&branches[i].branch));
    place_text(to, sizeof(to), side, analysis_to(&branches[i].branch));
    page_row(page, false);
    page_put_number(page, "number", branches[i].number);
    page_put(page, "kind", lb_branch_kind_name(branches[i].branch.kind));
    page_putf(page, "branch", "%s -> %s", from, to);
    page_row_end(page);
  }
  page_table_end(page);
}

/* "the jcc at main+0x17 main.c:12" */
static void branch_text(char *text, size_t size, const struct diff_side *side,
                        const struct analysis_diff_branch *branch)
{
  char from[PLACE_MAX];

  place_text(from, sizeof(from), side, analysis_from(&branch->branch));
  snprintf(text, size, "the %s at %s", lb_branch_kind_name(branch->branch.kind), from);
}

/* Whether `one` comes first in the code, if both are in the same file. */
static bool is_first(const struct analysis_diff_branch *one, const struct analysis_diff_branch *other)
{
  return !other || (one && (one->from.id != other->from.id || one->from.address <= other->from.address));
}

/* Both ran on from the same place: the branch that comes first in the code was taken by only one of them. */
static void straight_text(char *text, size_t size, const struct analysis_diff_branch *one,
                          const struct analysis_diff_branch *other, const char *what_one, const char *what_other)
{
  bool is_one = is_first(one, other), is_event = analysis_kind_is_event((is_one ? one : other)->branch.kind);

  snprintf(text, size, "%c %s %s; %c %s", is_one ? 'A' : 'B', is_event ? "is interrupted by" : "takes",
           is_one ? what_one : what_other, is_one ? 'B' : 'A', is_event ? "is not" : "goes past it");
}

/* Without a filter, or with one for a whole module or function, no branch is missing between the last common branch and
 * the next of each. With any other filter, it is unknown how a run came from one branch to the next. */
static void parting_text(char *text, size_t size, const struct diff_side sides[2],
                         const struct analysis_diff_branch *one, const struct analysis_diff_branch *other)
{
  bool has_all = !sides[0].filter || sides[0].is_region, is_piece = one->from.id == other->from.id;
  bool is_outside = one->from.id == ANALYSIS_DIFF_OUTSIDE_ID || other->from.id == ANALYSIS_DIFF_OUTSIDE_ID;
  char what[2][PLACE_MAX + 32], to[2][PLACE_MAX];

  branch_text(what[0], sizeof(what[0]), &sides[0], one);
  branch_text(what[1], sizeof(what[1]), &sides[1], other);
  place_text(to[0], sizeof(to[0]), &sides[0], analysis_to(&one->branch));
  place_text(to[1], sizeof(to[1]), &sides[1], analysis_to(&other->branch));
  if (is_piece && !is_outside && one->from.address == other->from.address)
    snprintf(text, size, "%s goes to %s in A and to %s in B", what[0], to[0], to[1]);
  else if (is_piece && !is_outside && has_all)
    straight_text(text, size, one, other, what[0], what[1]);
  else if (is_piece && is_outside)
    snprintf(text, size, "other code comes back to %s in A, by %s, and to %s in B, by %s", to[0], what[0], to[1],
             what[1]);
  else if (has_all)
    snprintf(text, size, "A takes %s to %s, B %s to %s", what[0], to[0], what[1], to[1]);
  else
    snprintf(text, size, "the next such branch is %s to %s in A, and %s to %s in B", what[0], to[0], what[1], to[1]);
}

/* One of them has no more branches. */
static void end_text(char *text, size_t size, const struct diff_side *side, const struct analysis_diff_branch *branch,
                     char ended, char other)
{
  char what[PLACE_MAX + 32];

  branch_text(what, sizeof(what), side, branch);
  if (side->filter)
    snprintf(text, size, "%c has no more such branches; %c takes %s", ended, other, what);
  else
    snprintf(text, size, "%c ends; %c goes on", ended, other);
}

void diff_put_parting(struct page *page, const struct diff_side sides[2], const struct analysis_diff_branch *one,
                      const struct analysis_diff_branch *other)
{
  char text[5 * PLACE_MAX];

  if (one && other)
    parting_text(text, sizeof(text), sides, one, other);
  else if (one)
    end_text(text, sizeof(text), &sides[0], one, 'B', 'A');
  else
    end_text(text, sizeof(text), &sides[1], other, 'A', 'B');
  page_put(page, "why", text);
}

void diff_parting_brief(char *text, size_t size, const struct diff_side sides[2],
                        const struct analysis_diff_branch *one, const struct analysis_diff_branch *other)
{
  bool is_one = is_first(one, other);
  const struct diff_side *side = &sides[!is_one];
  uint64_t address = analysis_from(&(is_one ? one : other)->branch);
  struct analysis_location location = analysis_names_locate(side->names, side->space, address);
  struct analysis_name name;
  char where[300] = "", numbers[80];

  if (analysis_names_symbol(side->names, &location, &name))
    snprintf(where, sizeof(where), " in %.200s", name.symbol ? name.symbol : name.module);
  if (one && other && one->number == other->number)
    snprintf(numbers, sizeof(numbers), "they part at branch %" PRIu64, one->number);
  else if (one && other)
    snprintf(numbers, sizeof(numbers), "they part at branch %" PRIu64 " of A, %" PRIu64 " of B", one->number,
             other->number);
  else
    snprintf(numbers, sizeof(numbers), "%s %s; %c goes on at branch %" PRIu64, one ? "B" : "A",
             side->filter ? "has no more such branches" : "ends", one ? 'A' : 'B', (one ? one : other)->number);
  snprintf(text, size, "%s%s", numbers, where);
}

void diff_thread_text(char *text, size_t size, const struct diff_side *side, uint32_t number)
{
  struct analysis_stream stream;

  if (side->names && analysis_names_stream(side->names, number, &stream) && *stream.name)
    snprintf(text, size, "thread %u (%.200s)", number, stream.name);
  else
    snprintf(text, size, "thread %u", number);
}

void diff_put_function(struct page *page, const char *symbol, const char *module)
{
  if (page->is_json) {
    page_put(page, "function", symbol);
    page_put(page, "module", module);
  } else if (symbol) {
    page_put(page, "function", symbol);
  } else {
    page_putf(page, "function", "[%s]", module ? module : "no file");
  }
}
