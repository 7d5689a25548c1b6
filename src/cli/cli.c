/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands share: colours or not, how complaints look, and the CPU that a user names.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

#define GUESSES 3
#define NAME_MAX_LENGTH 64

bool cli_wants_color(void)
{
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");

  if (no_color && *no_color)
    return false;
  return terminal && *terminal && strcmp(terminal, "dumb") != 0 && isatty(STDOUT_FILENO);
}

void cli_error(const char *format, ...)
{
  va_list arguments;

  fflush(stdout); /* so that the two come in order when both go to one place */
  fputs("lbr: ", stderr);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

/* ---- the CPU that was meant ---- */

/* Copies one word without the characters that do not count in CPU names. Returns where the word ends. */
static const char *name_fold(const char *word, char folded[NAME_MAX_LENGTH])
{
  size_t length = 0;

  for (; *word && *word != ' '; word++)
    if (*word != '-' && *word != '_' && length < NAME_MAX_LENGTH - 1)
      folded[length++] = *word;
  folded[length] = '\0';
  return word;
}

/* How far a folded name is from the nearest of several words. A part of a word is nearer than any mistyped one. */
static size_t names_distance(const char *name, const char *words)
{
  char word[NAME_MAX_LENGTH];
  size_t nearest = SIZE_MAX, distance;

  while (*words) {
    words = name_fold(words + strspn(words, " "), word);
    distance = strlen(name) >= 3 && strcasestr(word, name) ? 0 : word_distance(name, word);
    nearest = distance < nearest ? distance : nearest;
  }
  return nearest;
}

struct guess {
  const struct lb_cpu *cpu;
  size_t distance;
};

/* Keeps the list sorted, nearest first; the worst falls off its end. */
static void guess_insert(struct guess guesses[GUESSES], struct guess guess)
{
  for (size_t i = 0; i < GUESSES; i++) {
    if (!guesses[i].cpu || guess.distance < guesses[i].distance) {
      struct guess pushed = guesses[i];

      guesses[i] = guess;
      guess = pushed;
    }
    if (!guess.cpu)
      return;
  }
}

static void cpus_guess(const char *name, struct guess guesses[GUESSES])
{
  char folded[NAME_MAX_LENGTH] = "";
  size_t limit, distance, alias_distance;
  const struct lb_cpu *cpu;

  for (const char *part = name; *part; part += strspn(part, " ")) {
    char word[NAME_MAX_LENGTH];

    part = name_fold(part, word);
    strncat(folded, word, sizeof(folded) - strlen(folded) - 1);
  }
  limit = strlen(folded) / 3;
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    distance = names_distance(folded, cpu->name);
    alias_distance = names_distance(folded, cpu->aliases);
    distance = alias_distance < distance ? alias_distance : distance;
    if (distance <= limit)
      guess_insert(guesses, (struct guess){cpu, distance});
  }
}

int cli_find_cpu(const char *name, const struct lb_cpu **ret_cpu)
{
  struct guess guesses[GUESSES] = {{NULL, 0}};
  char near[GUESSES * (NAME_MAX_LENGTH + 4)] = "";
  size_t length = 0;
  int r = lb_cpu_find(name, ret_cpu);

  if (r >= 0)
    return r;
  cpus_guess(name, guesses);
  for (size_t i = 0; i < GUESSES && guesses[i].cpu; i++)
    length += (size_t)snprintf(near + length, sizeof(near) - length, "%s%.*s", i ? ", " : "", NAME_MAX_LENGTH,
                               guesses[i].cpu->name);
  if (length > 0)
    cli_error("no CPU '%s' in the catalogue; near it: %s ('lbr cpu --list' shows all)", name, near);
  else
    cli_error("no CPU '%s' in the catalogue; 'lbr cpu --list' shows all", name);
  return r;
}
