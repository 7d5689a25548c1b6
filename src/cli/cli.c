/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the commands share: colours, the width of the output, the form of error messages, and finding the CPU
 * that a user names.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "report/report.h"

#define COLUMNS_USUAL 120 /* of a terminal that does not report its width */
#define GUESSES 3
#define NAME_MAX_LENGTH 64
#define TITLE_MIN_LENGTH 6 /* a shorter word, such as a vendor alone, is part of too many titles */

/* Settings from common_options (options.c). */
static enum cli_color color_wanted;
static bool is_quiet, has_long_names, has_whole_rows;

void cli_set_color(enum cli_color color)
{
  color_wanted = color;
}

void cli_set_quiet(void)
{
  is_quiet = true;
}

bool cli_is_quiet(void)
{
  return is_quiet;
}

void cli_set_long_names(void)
{
  has_long_names = true;
}

bool cli_wants_color_on(int fd)
{
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");

  if (color_wanted != CLI_COLOR_AUTO)
    return color_wanted == CLI_COLOR_ALWAYS;
  if (no_color && *no_color)
    return false;
  return terminal && *terminal && strcmp(terminal, "dumb") != 0 && isatty(fd);
}

bool cli_wants_color(void)
{
  return cli_wants_color_on(STDOUT_FILENO);
}

int cli_columns(void)
{
  struct winsize size;

  if (!isatty(STDOUT_FILENO))
    return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col ? COLUMNS_USUAL : size.ws_col;
}

int cli_name_columns(void)
{
  return has_long_names ? 0 : cli_columns();
}

void cli_set_whole_rows(void)
{
  has_whole_rows = true;
}

struct report_output cli_output(void)
{
  return (struct report_output){
    .file = stdout,
    .columns = cli_columns(),
    .wants_color = cli_wants_color(),
    .has_whole_rows = has_whole_rows,
  };
}

void cli_page_open(struct page *page, bool is_json, bool wants_color)
{
  struct report_output output = cli_output();

  output.wants_color = wants_color;
  page_open(page, &output, is_json);
}

/* Prints messages of the other folders. */
static void message_print(const char *sentence)
{
  cli_error("%s", sentence);
}

void cli_error(const char *format, ...)
{
  va_list arguments;

  fflush(stdout); /* keeps the order if both go to one place */
  fputs("lbr: ", stderr);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

static bool progress_wants(void)
{
  return !cli_is_quiet() && isatty(STDERR_FILENO);
}

/* A line that is overwritten again and again. */
static void progress_show(const char *line)
{
  fprintf(stderr, "\r%s\033[K", line ? line : "");
}

void cli_hear_messages(void)
{
  static const struct trace_progress_listener progress = {progress_wants, progress_show};

  message_listen(message_print);
  trace_progress_listen(&progress);
}

/* ---- suggestions for a CPU name ---- */

/* Copies the text before `stop` without the characters that are ignored in CPU names. Returns the end of it. */
static const char *name_fold(const char *text, char stop, char folded[NAME_MAX_LENGTH])
{
  size_t length = 0;

  for (; *text && *text != stop; text++)
    if (*text != '-' && *text != '_' && *text != ' ' && length < NAME_MAX_LENGTH - 1)
      folded[length++] = *text;
  folded[length] = '\0';
  return text;
}

/* The distance of a folded name from the nearest of several words. A part of a word is nearer than any mistyped
 * word. */
static size_t names_distance(const char *name, const char *words)
{
  char word[NAME_MAX_LENGTH];
  size_t nearest = SIZE_MAX, distance;

  while (*words) {
    words = name_fold(words + strspn(words, " "), ' ', word);
    distance = strlen(name) >= 3 && strcasestr(word, name) ? 0 : word_distance(name, word);
    nearest = distance < nearest ? distance : nearest;
  }
  return nearest;
}

/* The distance of a name from a CPU's name, aliases and title. */
static size_t cpu_distance(const char *name, const struct lb_cpu *cpu)
{
  size_t distance = names_distance(name, cpu->name), alias_distance = names_distance(name, cpu->aliases);
  char title[NAME_MAX_LENGTH];

  name_fold(cpu->title, '\0', title);
  if (strlen(name) >= TITLE_MIN_LENGTH && strcasestr(title, name))
    return 0;
  return alias_distance < distance ? alias_distance : distance;
}

struct guess {
  const struct lb_cpu *cpu;
  size_t distance;
};

/* Keeps the list sorted, nearest first; the worst is dropped. */
static void guess_insert(struct guess guesses[GUESSES], struct guess guess)
{
  for (size_t i = 0; i < GUESSES && guess.cpu; i++)
    if (!guesses[i].cpu || guess.distance < guesses[i].distance) {
      struct guess pushed = guesses[i];

      guesses[i] = guess;
      guess = pushed;
    }
}

static void cpus_guess(const char *name, struct guess guesses[GUESSES])
{
  char folded[NAME_MAX_LENGTH];
  const struct lb_cpu *cpu;

  name_fold(name, '\0', folded);
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    size_t distance = cpu_distance(folded, cpu);

    if (distance <= strlen(folded) / 3)
      guess_insert(guesses, (struct guess){cpu, distance});
  }
}

int cli_find_cpu(const char *name, const struct lb_cpu **ret_cpu)
{
  struct guess guesses[GUESSES] = {{NULL, 0}};
  struct text near = {0};
  int r = lb_cpu_find(name, ret_cpu);

  if (r >= 0)
    return r;
  cpus_guess(name, guesses);
  for (size_t i = 0; i < GUESSES && guesses[i].cpu; i++)
    text_addf(&near, "%s%s", i ? ", " : "near it: ", guesses[i].cpu->name);
  if (near.length)
    cli_error("no CPU '%s' in the catalogue; %s ('lbr cpu --list' shows all)", name, text_string(&near));
  else
    cli_error("no CPU '%s' in the catalogue; 'lbr cpu --list' shows all", name);
  text_done(&near);
  return r;
}

const struct lb_cpu *cli_option_cpu(const char *name)
{
  const struct lb_cpu *cpu;

  if (cli_find_cpu(name, &cpu) < 0)
    exit(CLI_USAGE);
  return cpu;
}
