/* SPDX-License-Identifier: Apache-2.0
 *
 * told [WORD...]: says which signals it gets, for test_relay.py. "ready NUMBER", its process number, and then "got
 * NAME" for each; SIGTERM ends it with status 7. Words: "+NAME" catches a signal (SIGTERM always is), "-NAME" ignores
 * one, "group=NAME" sends one to its own process group, "open" unblocks all, "stop" stops itself, "list" prints which
 * signals are ignored and which are blocked, and ends.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void line_put(const char *word, const char *value)
{
  char line[64];
  int size = snprintf(line, sizeof(line), "%s %s\n", word, value);

  if (write(STDOUT_FILENO, line, (size_t)size) != size)
    _exit(9);
}

static void name_of(int number, char name[16])
{
  const char *known = number < SIGRTMIN ? sigabbrev_np(number) : NULL;

  if (known)
    snprintf(name, 16, "%s", known);
  else
    snprintf(name, 16, "%d", number);
}

static int number_of(const char *word)
{
  for (int number = 1; number < SIGRTMIN; number++)
    if (sigabbrev_np(number) && !strcmp(sigabbrev_np(number), word))
      return number;
  return atoi(word);
}

static void handler(int number, siginfo_t *info, void *context)
{
  char name[16], value[40];

  (void)context;
  name_of(number, name);
  snprintf(value, sizeof(value), "%s %d", name, info->si_value.sival_int);
  line_put("got", info->si_code == SI_QUEUE ? value : name);
  if (number == SIGTERM)
    _exit(7);
}

static void list_print(void)
{
  struct sigaction action;
  sigset_t blocked;
  char name[16];

  sigprocmask(SIG_SETMASK, NULL, &blocked);
  for (int number = 1; number < 65; number++) {
    name_of(number, name);
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
      line_put("ignored", name);
    if (sigismember(&blocked, number) == 1)
      line_put("blocked", name);
  }
}

static void catch_one(const char *word)
{
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

  sigfillset(&action.sa_mask);
  sigaction(number_of(word), &action, NULL);
}

static void word_before(const char *word)
{
  if (*word == '+')
    catch_one(word + 1);
  else if (*word == '-')
    signal(number_of(word + 1), SIG_IGN);
}

static void mask_open(void)
{
  sigset_t none;

  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static void word_after(const char *word)
{
  if (!strncmp(word, "group=", 6))
    kill(0, number_of(word + 6));
  else if (!strcmp(word, "open"))
    mask_open();
  else if (!strcmp(word, "stop"))
    raise(SIGSTOP);
}

int main(int count, char **words)
{
  char number[16];

  if (count > 1 && !strcmp(words[1], "list")) {
    list_print();
    return 0;
  }
  catch_one("TERM");
  for (int i = 1; i < count; i++)
    word_before(words[i]);
  snprintf(number, sizeof(number), "%d", (int)getpid());
  line_put("ready", number);
  for (int i = 1; i < count; i++)
    word_after(words[i]);
  for (;;)
    pause();
}
