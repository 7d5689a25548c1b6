/* SPDX-License-Identifier: Apache-2.0
 *
 * The call tree as text: a heading for each thread, a line for each call, and the notes needed to read it.
 */
#include <stdio.h>
#include <string.h>

#include "report/calls_page.h"
#include "report/words.h"

#define INDENT_MAX 60 /* levels; for deeper ones the level is printed as a number */
#define INDENT_LEAST 4
#define ROOM 60  /* columns for numbers and a name, beside the indentation, */
#define TIMES 20 /* and for times */
#define DIM "\033[2m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

static const char *const how_words[] = {"start", "call", "tail", "signal", "return", "unwind", "end", "lost"};

struct printing {
  const struct report_output *output;
  const struct calls_tree *tree;
  unsigned indent_max;
  uint64_t total; /* weight of all threads */
  bool is_known;  /* the weight is known for all code */
  struct text name;
};

unsigned calls_indent_max(const struct report_output *output, bool has_times)
{
  int columns = output->columns, levels = (columns - ROOM - (has_times ? TIMES : 0)) / 2;

  if (!columns || levels > INDENT_MAX)
    return INDENT_MAX;
  return levels < INDENT_LEAST ? INDENT_LEAST : (unsigned)levels;
}

const char *calls_number(const struct report_output *output, uint64_t instructions, bool is_known,
                         char buffer[REPORT_NUMBER_SIZE])
{
  return is_known ? report_number(output, instructions, buffer) : "-";
}

const char *calls_json_number(uint64_t instructions, bool is_known, char buffer[REPORT_NUMBER_SIZE])
{
  snprintf(buffer, REPORT_NUMBER_SIZE, "%llu", (unsigned long long)instructions);
  return is_known ? buffer : "null";
}

const char *calls_share(uint64_t part, uint64_t whole, bool is_known, char buffer[REPORT_NUMBER_SIZE])
{
  snprintf(buffer, REPORT_NUMBER_SIZE, "%.1f%%", whole ? 100.0 * (double)part / (double)whole : 0.0);
  return is_known ? buffer : "-";
}

const char *calls_json_unknown(const struct calls_walk *walk, bool is_known)
{
  if (is_known)
    return "";
  return analysis_code_is_exhausted(walk->code) ? ",\"unknown\":\"decode_limit\"" : ",\"unknown\":\"code\"";
}

static void print_name(struct printing *printing, const struct tree_line *line)
{
  const struct calls_tree *tree = printing->tree;
  char number[REPORT_NUMBER_SIZE];
  int r;

  printing->name.length = 0;
  if (line->function == TREE_SMALL) {
    fprintf(printing->output->file, "%s(%s small call%s)%s", printing->output->wants_color ? DIM : "",
            report_number(printing->output, line->repeats, number), line->repeats == 1 ? "" : "s",
            printing->output->wants_color ? PLAIN : "");
    return;
  }
  r = line->how == TREE_SYSCALL ? calls_tree_syscall_text(tree, line, &printing->name)
                                : calls_name(tree->walk, line->function, &printing->name);
  if (r >= 0)
    fputs(text_string(&printing->name), printing->output->file);
  if (line->repeats > 1)
    fprintf(printing->output->file, " x %s", report_number(printing->output, line->repeats, number));
}

/* A system call runs none of the program's instructions and branches. */
static void print_numbers(const struct printing *printing, const struct tree_line *line)
{
  const struct calls_walk *walk = printing->tree->walk;
  char instructions[REPORT_NUMBER_SIZE] = "", branches[REPORT_NUMBER_SIZE] = "", share[REPORT_NUMBER_SIZE] = "";
  bool is_function = line->how != TREE_SYSCALL, has_share = is_function || walk->options->by >= CALLS_BY_TIME;
  char times[CALLS_TIMES_SIZE];

  fprintf(printing->output->file, "%15s  %6s %13s%s  ",
          is_function ? calls_number(printing->output, line->cost.instructions, !line->cost.unknown, instructions) : "",
          has_share ? calls_share(calls_weight(walk, &line->cost), printing->total, printing->is_known, share) : "",
          is_function ? report_number(printing->output, line->cost.branches, branches) : "",
          calls_times(walk, &line->cost, times));
}

static void print_line(struct printing *printing, const struct tree_line *line)
{
  print_numbers(printing, line);
  if (line->level <= printing->indent_max)
    fprintf(printing->output->file, "%*s", 2 * (int)line->level, "");
  else
    fprintf(printing->output->file, "%*s(level %u) ", 2 * (int)printing->indent_max, "", line->level);
  print_name(printing, line);
  if (line->how != ANALYSIS_CALL_CALL && line->how != TREE_SYSCALL)
    fprintf(printing->output->file, "  [%s]", how_words[line->how]);
  if (line->left != ANALYSIS_CALL_RETURN)
    fprintf(printing->output->file, "  [%s]", how_words[line->left]);
  putc('\n', printing->output->file);
}

/* Whether the command line says more than the name. */
static bool command_tells(const struct analysis_stream *stream)
{
  const char *slash = stream->command ? strrchr(stream->command, '/') : NULL;

  return stream->command && (!stream->name || strcmp(slash ? slash + 1 : stream->command, stream->name) != 0);
}

static void print_heading(const struct printing *printing, const struct analysis_summary *summary, size_t number)
{
  struct analysis_stream stream = {0};

  fprintf(printing->output->file, "%sthread %zu", printing->output->wants_color ? BOLD : "", number);
  if (analysis_summary_stream(summary, number, &stream) && stream.is_described && stream.process)
    fprintf(printing->output->file, ": process %u, thread %u", stream.process, stream.thread);
  if (stream.name && *stream.name)
    fprintf(printing->output->file, ", %s", stream.name);
  if (command_tells(&stream))
    fprintf(printing->output->file, ", %s", stream.command);
  fprintf(printing->output->file, "%s\n%15s  %6s %13s%s  call\n", printing->output->wants_color ? PLAIN : "",
          "instructions", "share", "branches", calls_times_heading(printing->tree->walk));
}

static void print_left_out(const struct printing *printing)
{
  const struct calls_tree *tree = printing->tree;
  char number[REPORT_NUMBER_SIZE] = "";

  if (!tree->left_cost.unknown)
    snprintf(number, sizeof(number), "%llu", (unsigned long long)tree->left_cost.instructions);
  if (tree->left_out)
    fprintf(
      printing->output->file,
      "\n%zu more thread%s, which ran less: %s%s%llu branches in all. 'lbr stat' lists them, --thread\nshows one, --top shows more.\n",
      tree->left_out, tree->left_out == 1 ? "" : "s", number, *number ? " instructions and " : "",
      (unsigned long long)tree->left_cost.branches);
}

/* Prints the limit below which calls are summed up. */
static void print_least(const struct printing *printing, bool has_times)
{
  const struct calls_tree *tree = printing->tree;
  enum calls_by by = tree->walk->options->by;
  char buffer[WORDS_NUMBER_SIZE];

  if (by >= CALLS_BY_TIME)
    fprintf(printing->output->file, "Calls that %s less than %s are summed up, ",
            by == CALLS_BY_TIME ? "took" : "ran for", words_duration(buffer, tree->threshold));
  else
    fprintf(printing->output->file, "Calls with fewer than %llu %s%s are summed up, ",
            (unsigned long long)tree->threshold, by == CALLS_BY_BRANCHES ? "branches" : "instructions",
            has_times ? " (and nanoseconds in system calls)" : "");
}

/* Explains why calls are summed up, and how to see them. */
static void print_threshold(const struct printing *printing)
{
  const struct calls_walk *walk = printing->tree->walk;
  bool has_times = calls_walk_has_times(walk), has_limit = walk->options->limit < TREE_LINES_MOST;

  print_least(printing, has_times);
  if (has_limit)
    fprintf(printing->output->file, "to fit in %llu lines:%s", (unsigned long long)walk->options->limit,
            has_times ? "\n--top shows more, " : " --top shows more, ");
  else
    fprintf(printing->output->file, "because there are too many to keep:%s", has_times ? "\n" : " ");
  fputs(has_times ? "--function, --between and --time show a part, --all shows every call.\n"
                  : "--function and --between\nshow a part, --all shows every call.\n",
        printing->output->file);
}

static void print_remarks(const struct calls_page *page, const struct printing *printing)
{
  const struct calls_walk *walk = printing->tree->walk;

  fputs("\nEvery number is an exact count. 'x N': N equal calls, one after another or in turn.\n",
        printing->output->file);
  calls_times_remark(page);
  if (printing->tree->threshold)
    print_threshold(printing);
  if (analysis_code_is_exhausted(walk->code))
    fputs(
      "'-' for instructions: the trace names more code than lbr decodes for a file. --by branches gives the\nshares of branches, which are known.\n",
      printing->output->file);
  else if (analysis_calls_has_unknown(walk->calls))
    fputs(
      "'-' for instructions: some of the code that ran there is not known, or not 64-bit code. --by branches gives the\nshares of branches, which are known.\n",
      printing->output->file);
}

static uint64_t tree_total(const struct calls_tree *tree)
{
  uint64_t total = calls_weight(tree->walk, &tree->left_cost);

  for (size_t i = 0; i < tree->count; i++)
    for (size_t k = 0; k < tree->streams[i].count; k++)
      if (!tree->streams[i].lines[k].level)
        total += calls_weight(tree->walk, &tree->streams[i].lines[k].cost);
  return total;
}

int calls_tree_print(const struct calls_page *page, const struct calls_tree *tree)
{
  struct printing printing = {
    .output = &page->output,
    .tree = tree,
    .indent_max = calls_indent_max(&page->output, calls_walk_has_times(tree->walk)),
    .is_known = tree->walk->options->by != CALLS_BY_INSTRUCTIONS || !analysis_calls_has_unknown(tree->walk->calls),
    .total = tree_total(tree),
  };
  bool is_first = true;

  for (size_t i = 0; i < tree->count; i++) {
    if (!tree->streams[i].count)
      continue;
    if (!is_first)
      putc('\n', page->output.file);
    is_first = false;
    print_heading(&printing, page->summary, i);
    for (size_t k = 0; k < tree->streams[i].count; k++)
      print_line(&printing, &tree->streams[i].lines[k]);
  }
  print_left_out(&printing);
  if (!is_first)
    print_remarks(page, &printing);
  text_done(&printing.name);
  return 0;
}
