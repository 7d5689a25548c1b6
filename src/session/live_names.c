/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the addresses of a real processor. Addresses of the upper half belong to the kernel: /proc/kallsyms. Those
 * of the lower half belong to the process that ran, and are named if the user says which one. Both are looked up when
 * the first such address appears.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "session/live.h"
#include "symbol/symbol.h"

#define KALLSYMS_MOST (256u << 20)
#define MAPS_MOST (64u << 20)

struct live_names {
  unsigned process;
  struct symbol_table *kernel;
  const char *kernel_problem;
  bool has_tried_kernel;
  struct symbol_cache *cache;
  struct symbol_space *space; /* NULL: not read yet */
  struct symbol_demangler *demangler;
  bool has_kernel_address, has_user_address; /* in this page, without a name */
};

/* Files of /proc do not report their size. */
static int file_read_all(const char *path, size_t most, struct text *text)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
  char piece[16384];
  ssize_t got = 1;

  if (fd < 0)
    return -errno;
  while (r >= 0 && got > 0) {
    got = read(fd, piece, sizeof(piece));
    if (got < 0)
      r = -errno;
    else if (text->length + (size_t)got > most)
      r = -EFBIG;
    else if (got > 0)
      r = text_add_bytes(text, piece, (size_t)got);
  }
  close(fd);
  return r;
}

/* ---- the kernel ---- */

/* With kptr_restrict every address is 0. */
static bool addresses_are_hidden(const struct text *text)
{
  for (const char *line = text_string(text); *line;) {
    if (line[strspn(line, "0")] != ' ')
      return false;
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  return true;
}

static void kernel_open(struct live_names *names)
{
  struct text text = {0};
  int r = file_read_all("/proc/kallsyms", KALLSYMS_MOST, &text);

  names->has_tried_kernel = true;
  if (r >= 0 && addresses_are_hidden(&text))
    names->kernel_problem =
      "the kernel hides the names of its addresses: run as root, or, as root: sysctl kernel.kptr_restrict=1";
  else if (r >= 0)
    r = symbol_table_read(text_string(&text), text.length, &names->kernel);
  if (r < 0)
    names->kernel_problem = "no names for the kernel's addresses: cannot read /proc/kallsyms";
  text_done(&text);
}

static bool kernel_find(struct live_names *names, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  if (!names->has_tried_kernel)
    kernel_open(names);
  if (symbol_table_find(names->kernel, address, ret_name, ret_offset))
    return true;
  names->has_kernel_address = true;
  return false;
}

/* ---- a process ---- */

static int space_open(struct live_names *names)
{
  char path[64], root[64];
  struct text text = {0};
  int r;

  snprintf(path, sizeof(path), "/proc/%u/maps", names->process);
  snprintf(root, sizeof(root), "/proc/%u/root", names->process);
  r = file_read_all(path, MAPS_MOST, &text);
  if (r >= 0)
    r = symbol_space_new(names->cache, &names->space);
  if (r >= 0)
    r = symbol_space_add_maps(names->space, text_string(&text), text.length, root);
  if (r == LB_E_TOO_BIG)
    r = 0; /* the others have names */
  text_done(&text);
  return r;
}

static bool user_find(struct live_names *names, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  struct symbol_place place;
  const char *slash;

  names->has_user_address = true;
  if (!names->space || !symbol_space_find(names->space, address, false, &place))
    return false;
  slash = place.module ? strrchr(place.module, '/') : NULL;
  *ret_name = place.symbol ? symbol_demangler_name(names->demangler, place.symbol) : slash ? slash + 1 : place.module;
  *ret_offset = place.offset;
  return true;
}

bool live_names_find(void *data, uint64_t address, const char **ret_name, uint64_t *ret_offset)
{
  struct live_names *names = data;

  return address >> 63 ? kernel_find(names, address, ret_name, ret_offset)
                       : user_find(names, address, ret_name, ret_offset);
}

/* ---- from new to free ---- */

int live_names_new(unsigned process, struct live_names **ret_names)
{
  struct live_names *names = calloc(1, sizeof(*names));
  int r = names ? 0 : -ENOMEM;

  if (r >= 0) {
    names->process = process;
    r = symbol_cache_new(NULL, &names->cache);
  }
  if (r >= 0)
    r = symbol_demangler_new(&names->demangler);
  if (r >= 0)
    r = symbol_cache_add_vdso(names->cache);
  if (r >= 0 && process)
    r = space_open(names);
  if (r < 0) {
    if (process && (r == -ENOENT || r == -ESRCH))
      message("no process %u", process);
    else
      message("names: %s", lb_strerror(r));
    live_names_free(names);
    return r;
  }
  *ret_names = names;
  return 0;
}

void live_names_free(struct live_names *names)
{
  if (!names)
    return;
  symbol_space_free(names->space);
  symbol_cache_free(names->cache);
  symbol_demangler_free(names->demangler);
  symbol_table_free(names->kernel);
  free(names);
}

void live_names_refresh(struct live_names *names)
{
  struct symbol_space *before = names->space;

  names->has_kernel_address = names->has_user_address = false;
  if (!names->process)
    return;
  names->space = NULL;
  if (space_open(names) >= 0) {
    symbol_space_free(before);
    return;
  }
  symbol_space_free(names->space); /* the process has ended: its old mappings are still right for what it did */
  names->space = before;
}

const char *live_names_kernel_note(const struct live_names *names)
{
  return names->has_kernel_address ? names->kernel_problem : NULL;
}

const char *live_names_user_note(const struct live_names *names)
{
  return names->has_user_address && !names->process
           ? "the process of addresses in user space is not known: --pid names it"
           : NULL;
}
