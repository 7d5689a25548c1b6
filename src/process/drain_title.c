/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of threads and the command lines of their processes, which tell processes of one program apart. Both can
 * change while a program runs. A process that ends by itself puts its command line, or the title that it has set, into
 * its page. For other processes, both are read from /proc while the process lives.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process/command.h"
#include "process/drain.h"

#define LOOK_SECONDS 1.0 /* between two reads */

/* Reads a file of /proc. Returns the number of bytes; the rest of the buffer is 0. */
static size_t proc_read(const char *path, char *buffer, size_t size)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? 0 : read(fd, buffer, size - 1);

  if (fd >= 0)
    close(fd);
  got = got < 0 ? 0 : got;
  memset(buffer + got, 0, size - (size_t)got);
  return (size_t)got;
}

/* ---- titles ---- */

/* The command line is the runtime's own until the runtime has replaced it by the program's, or for ever where the
 * kernel does not allow that. The runtime's own command line is ignored. */
static void title_set(struct drain_slot *slot, const char words[PROCESS_COMMAND_MOST])
{
  char title[PROCESS_COMMAND_MOST] = ""; /* zeroed to its end, so that it can serve as words again */

  words_join(title, words, sizeof(title) - 1);
  if (!*title || !strncmp(title, COMMAND_NAME, strlen(COMMAND_NAME)) || !strcmp(title, slot->title))
    return;
  memcpy(slot->title, title, sizeof(title));
  slot->has_title_news = true;
}

static void title_read(struct drain_slot *slot)
{
  char path[64], words[PROCESS_COMMAND_MOST];

  snprintf(path, sizeof(path), "/proc/%u/cmdline", slot->process);
  if (proc_read(path, words, sizeof(words)))
    title_set(slot, words);
}

/* A thread without a title of its own gets that of its process: from another thread of it, or from the page of one that
 * has ended. */
static void title_share(const struct process_drain *drain, struct drain_slot *slot)
{
  char words[PROCESS_COMMAND_MOST];

  for (uint32_t i = 0; i < drain->high && !*slot->title; i++) {
    const struct drain_slot *other = &drain->slots[i];
    const struct process_state *page = drain_page(drain, i);

    if (other->is_open && other->process == slot->process && other->space == slot->space)
      title_set(slot, other->title);
    if (__atomic_load_n(&page->process, __ATOMIC_RELAXED) == slot->process &&
        __atomic_load_n(&page->space, __ATOMIC_RELAXED) == slot->space) {
      memcpy(words, page->command, sizeof(words));
      title_set(slot, words);
    }
  }
  if (!*slot->title && slot->is_visible)
    title_read(slot);
}

static int title_put(struct process_drain *drain, struct drain_slot *slot)
{
  if (!slot->has_title_news)
    return 0;
  slot->has_title_news = false;
  return trace_writer_describe(drain->writer, slot->stream, "title", slot->title);
}

/* ---- names ---- */

static int name_put(struct process_drain *drain, struct drain_slot *slot, const char name[sizeof(slot->name)])
{
  if (!*name || !strcmp(name, slot->name))
    return 0;
  memcpy(slot->name, name, sizeof(slot->name));
  return trace_writer_describe(drain->writer, slot->stream, "name", name);
}

/* The kernel appends a line feed to the name. */
static int name_read(struct process_drain *drain, struct drain_slot *slot)
{
  char path[64], name[sizeof(slot->name)];
  size_t size;

  snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", slot->process, slot->thread);
  size = proc_read(path, name, sizeof(name));
  if (!size)
    return 0;
  name[size - 1] = 0;
  return name_put(drain, slot, name);
}

/* ---- from outside ---- */

void drain_title_begins(struct drain_slot *slot)
{
  if (slot->is_visible && slot->process == slot->thread)
    title_read(slot);
}

int drain_title_ends(struct process_drain *drain, uint32_t number)
{
  const struct process_state *page = drain_page(drain, number);
  struct drain_slot *slot = &drain->slots[number];
  char words[PROCESS_COMMAND_MOST], name[sizeof(slot->name)] = "";
  int r = 0;

  if (!slot->is_open || slot->is_ignored)
    return 0;
  memcpy(words, page->command, sizeof(words));
  memcpy(name, page->name, sizeof(page->name));
  title_set(slot, words);
  title_share(drain, slot);
  if (!slot->is_dead)
    r = name_put(drain, slot, name);
  return r < 0 ? r : title_put(drain, slot);
}

static int slot_look_title(struct process_drain *drain, struct drain_slot *slot)
{
  int r = 0;

  if (slot->is_visible && slot->process == slot->thread)
    title_read(slot);
  else
    title_share(drain, slot);
  if (slot->is_visible)
    r = name_read(drain, slot);
  return r < 0 ? r : title_put(drain, slot);
}

int drain_titles_look(struct process_drain *drain, bool is_now)
{
  int r = 0;

  if (!is_now && drain->now - drain->titles_looked < LOOK_SECONDS)
    return 0;
  drain->titles_looked = drain->now;
  for (uint32_t i = 0; i < drain->high && r >= 0; i++) {
    struct drain_slot *slot = &drain->slots[i];

    if (slot->is_open && !slot->is_ignored && !slot->is_dead)
      r = slot_look_title(drain, slot);
  }
  return r;
}
