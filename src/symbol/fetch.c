/* SPDX-License-Identifier: Apache-2.0
 *
 * Debug files from debuginfod servers, by elfutils' own client, which keeps them in its cache (debuginfod(8),
 * debuginfod_find_debuginfo(3)). The library is loaded when it is first needed: it depends on an HTTP client and some
 * twenty libraries that nothing else here needs. The network is not used unless DEBUGINFOD_URLS is set and the program
 * has allowed it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "symbol/elf.h"
#include "symbol/loader.h"

#define LIBRARY "libdebuginfod.so.1"
#define URLS "DEBUGINFOD_URLS"
#define STALL_SECONDS 10 /* without a byte; then the server is given up */

/* The functions of the library that are used, as its manual declares them. */
struct library {
  void *(*begin)(void);
  void (*end)(void *client);
  int (*find)(void *client, const unsigned char *build_id, int size, char **ret_path);
  void (*watch)(void *client, int (*function)(void *client, long done, long all));
};

static struct {
  struct symbol_fetch hooks;
  bool is_enabled;
  bool is_tried; /* loading was tried */
  int loaded;    /* result of loading: 0, or -errno */
  bool is_over;  /* no further requests: a server does not answer, or there is no library */
  struct library library;
  /* the file that is being fetched */
  const char *path;
  bool is_told;
  long done;
  double since; /* the last byte */
  bool is_stalled;
} fetcher;

void symbol_fetch_enable(const struct symbol_fetch *hooks)
{
  fetcher.is_enabled = hooks != NULL;
  if (hooks)
    fetcher.hooks = *hooks;
}

/* ---- the library ---- */

/* Returns 0, or the error of loader_find. */
static int library_load(void)
{
  struct library *library = &fetcher.library;

  if (!fetcher.is_tried) {
    fetcher.is_tried = true;
    fetcher.loaded = loader_find(LIBRARY, "debuginfod_begin", &library->begin);
    if (!fetcher.loaded)
      fetcher.loaded = loader_find(LIBRARY, "debuginfod_end", &library->end);
    if (!fetcher.loaded)
      fetcher.loaded = loader_find(LIBRARY, "debuginfod_set_progressfn", &library->watch);
    if (!fetcher.loaded)
      fetcher.loaded = loader_find(LIBRARY, "debuginfod_find_debuginfo", &library->find);
  }
  return fetcher.loaded;
}

/* ---- one file ---- */

/* Called about once a second, and when bytes arrive. `all` is above 0 once a server has begun to send the file; before
 * that, `done` is meaningless. */
static int fetch_watch(void *client, long done, long all)
{
  (void)client;
  if (!fetcher.is_told) {
    fetcher.is_told = true;
    fetcher.hooks.begin(fetcher.hooks.data, fetcher.path);
  }
  if (all > 0 && done != fetcher.done) {
    fetcher.done = done;
    fetcher.since = clock_seconds();
  }
  fetcher.is_stalled = clock_seconds() - fetcher.since >= STALL_SECONDS;
  return fetcher.is_stalled || (all > 0 && (uint64_t)all > ELF_FILE_MAX);
}

/* A server without such a file has still answered. The client returns the same error for a file that fetch_watch has
 * given up. */
static void fetch_failed(int error)
{
  if (!fetcher.is_stalled && (error == -ENOENT || error == -ENOSYS))
    return;
  fetcher.is_over = true;
  fetcher.hooks.fail(fetcher.hooks.data, fetcher.path, fetcher.is_stalled ? -ETIMEDOUT : error);
}

int debug_fetch(const struct symbol_layout *layout, const char *path, char **ret_path)
{
  const char *urls = getenv(URLS);
  void *client;
  int r;

  if (!fetcher.is_enabled || fetcher.is_over || !urls || !*urls || !layout->build_id_size)
    return -ENOENT;
  fetcher.path = path;
  fetcher.is_told = fetcher.is_stalled = false;
  fetcher.done = 0;
  fetcher.since = clock_seconds();
  r = library_load();
  client = r == 0 ? fetcher.library.begin() : NULL;
  if (!client) {
    fetch_failed(r < 0 ? r : -ELIBACC);
    return -ENOENT;
  }
  fetcher.library.watch(client, fetch_watch);
  r = fetcher.library.find(client, layout->build_id, (int)layout->build_id_size, ret_path);
  fetcher.library.end(client);
  if (r < 0)
    fetch_failed(r);
  else
    close(r);
  return r < 0 ? -ENOENT : 0;
}
