/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages about debug files that are fetched from servers.
 */
#include "cli/fetch.h"

#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "symbol/symbol.h"

static void fetch_begin(void *data, const char *path)
{
  (void)data;
  if (isatty(STDERR_FILENO) && !cli_is_quiet())
    cli_error("fetching debug information of %s (DEBUGINFOD_URLS)", path);
}

static void fetch_fail(void *data, const char *path, int error)
{
  (void)data;
  if (error == -ELIBACC)
    cli_error("warning: DEBUGINFOD_URLS is set, but there is no libdebuginfod.so.1 (Debian: libdebuginfod1)");
  else if (error == -ENOTSUP)
    cli_error(
      "warning: DEBUGINFOD_URLS is set, but this lbr is a static program, which cannot load libdebuginfod.so.1: "
      "no debug information is fetched");
  else
    cli_error("warning: no debug information of %s from DEBUGINFOD_URLS: %s; nothing more is fetched", path,
              lb_strerror(error));
}

void fetch_allow(void)
{
  symbol_fetch_enable(&(struct symbol_fetch){.begin = fetch_begin, .fail = fetch_fail});
}
