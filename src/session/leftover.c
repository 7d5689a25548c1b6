/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes temporary files when a signal ends lbr. The signal then has its usual effect, so that the caller sees which
 * signal ended lbr.
 */
#include "session/leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define LEFTOVERS 4 /* files that are written at the same time; further ones are not removed */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const char *volatile names[LEFTOVERS];

static void signal_handler(int number)
{
  int error = errno;

  for (unsigned i = 0; i < LEFTOVERS; i++)
    if (names[i])
      unlink(names[i]);
  raise(number); /* the handler is reset already */
  errno = error;
}

/* Does not touch signals that nohup(1) has set to be ignored, and those that a command handles itself. */
static void signals_catch(void)
{
  static bool is_caught;
  struct sigaction action;

  for (size_t i = 0; !is_caught && i < sizeof(signals) / sizeof(*signals); i++)
    if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
      action = (struct sigaction){.sa_handler = signal_handler, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
      sigaction(signals[i], &action, NULL);
    }
  is_caught = true;
}

static void name_add(const char *name)
{
  for (unsigned i = 0; i < LEFTOVERS; i++)
    if (!names[i]) {
      names[i] = name;
      return;
    }
}

/* No signal is handled between the creation of the file and its entry in the list. */
int leftover_create(char *name)
{
  sigset_t set, before;
  int fd;

  signals_catch();
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
    sigaddset(&set, signals[i]);
  sigprocmask(SIG_BLOCK, &set, &before);
  fd = mkostemp(name, O_CLOEXEC);
  if (fd >= 0)
    name_add(name);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return fd;
}

void leftover_forget(const char *name)
{
  for (unsigned i = 0; name && i < LEFTOVERS; i++)
    if (names[i] == name)
      names[i] = NULL;
}
