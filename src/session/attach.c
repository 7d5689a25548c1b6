/* SPDX-License-Identifier: Apache-2.0
 *
 * Attaching to running processes and leaving them: attach.h. And the loop of `lbr record -p`.
 */
#include "session/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "session/record.h"
#include "session/relay.h"

#define PATIENCE_SECONDS 1.0 /* before a message tells why it takes so long */

/* ---- the list ---- */

static int number_add(int **list, size_t *count, int number)
{
  for (size_t i = 0; i < *count; i++)
    if ((*list)[i] == number)
      return 0;
  int *grown = realloc(*list, (*count + 1) * sizeof(*grown));
  if (!grown)
    return -ENOMEM;
  *list = grown;
  grown[(*count)++] = number;
  return 1;
}

int attach_list_add(struct attach_list *list, int process)
{
  return number_add(&list->processes, &list->count, process);
}

int attach_list_add_thread(struct attach_list *list, int thread)
{
  return number_add(&list->threads, &list->thread_count, thread);
}

int attach_list_complete(struct attach_list *list)
{
  bool has_processes = list->count > 0;
  int r = 0;

  for (size_t i = 0; i < list->thread_count && !has_processes && r >= 0; i++) {
    int process = process_of_thread(list->threads[i]);

    r = attach_list_add(list, process ? process : list->threads[i]);
  }
  return r < 0 ? r : 0;
}

void attach_list_done(struct attach_list *list)
{
  free(list->processes);
  free(list->threads);
  *list = (struct attach_list){0};
}

/* ---- attaching and leaving ---- */

/* What is told while a thread cannot be stopped. */
struct patience {
  const char *what;
  struct process_drain *drain;
  unsigned signals;
  bool is_told;
};

static bool patience_wait(void *data, int thread, double seconds)
{
  struct patience *patience = data;

  if (patience->drain)
    process_drain_step(patience->drain, 0);
  if (seconds < PATIENCE_SECONDS)
    return true;
  if (!patience->is_told)
    message("waiting for thread %d, which the kernel does not stop now, %s (Ctrl-C: give up)", thread, patience->what);
  patience->is_told = true;
  return relay_count() == patience->signals;
}

/* The kernel applies a limit on file sizes (ulimit -f) to the shared memory. */
static void file_limit(struct rlimit *ret_before, bool is_lifted)
{
  struct rlimit limit;

  if (!is_lifted) {
    setrlimit(RLIMIT_FSIZE, ret_before);
    return;
  }
  getrlimit(RLIMIT_FSIZE, ret_before);
  limit = *ret_before;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_FSIZE, &limit);
}

/* Processes with many busy threads would leave lbr hardly any time, and then wait for lbr. Works for root only. */
static void be_preferred(void)
{
  enum { NICE = -10 };

  if (getpriority(PRIO_PROCESS, 0) > NICE)
    setpriority(PRIO_PROCESS, 0, NICE);
}

int attach_open(const struct process_options *options, const struct attach_list *list, struct process *ret_process)
{
  struct patience patience = {.what = "to attach to it"};
  struct process_options all = *options;
  struct rlimit before;

  all.threads = list->threads;
  all.thread_count = list->thread_count;
  all.has_descendants = list->has_descendants;
  be_preferred();
  file_limit(&before, true);
  int r = process_attach(&all, list->processes, list->count, patience_wait, &patience, ret_process);
  file_limit(&before, false);
  return r;
}

/* What the runtime could not do: it lets lbr leave, or it has ended the process. */
static void error_show(const struct process *process)
{
  uint64_t address = 0;
  unsigned error = process_error(process, NULL, &address, NULL);

  if (error)
    message("%s, at 0x%llx: recording ends there", process_error_text(error), (unsigned long long)address);
}

int attach_close(struct process *process, struct process_drain *drain)
{
  struct patience patience = {.what = "to leave it", .drain = drain, .signals = relay_count()};
  int r = process_detach(process, patience_wait, &patience);

  error_show(process);
  return r < 0 || !process_error(process, NULL, NULL, NULL) ? r : -EIO;
}

/* ---- /proc ---- */

bool attach_is_over(const struct attach_list *list)
{
  for (size_t i = 0; i < list->thread_count; i++)
    if (!process_has_thread_ended(list->threads[i]))
      return false;
  for (size_t i = 0; i < list->count && !list->thread_count; i++)
    if (!process_has_ended(list->processes[i]))
      return false;
  return true;
}

char **attach_words(int process)
{
  enum { MOST = 1 << 16 };
  char path[64], *text = calloc(1, MOST + 2);
  size_t count = 1;

  if (!text)
    return NULL;
  snprintf(path, sizeof(path), "/proc/%d/cmdline", process);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, text, MOST);
  if (fd >= 0)
    close(fd);
  if (size <= 0)
    size = snprintf(text, MOST, "%d", process) + 1;
  for (ssize_t i = 0; i < size; i++)
    count += !text[i];
  char **words = calloc(count + 1, sizeof(*words));
  if (!words) {
    free(text);
    return NULL;
  }
  char *at = text;
  for (size_t i = 0; at < text + size; i++, at += strlen(at) + 1)
    words[i] = at;
  return words;
}
