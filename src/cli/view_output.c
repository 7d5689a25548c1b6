/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a page to a file and reports what was written.
 */
#include "cli/view_output.h"

#include <stdio.h>

#include "base/base.h"
#include "cli/cli.h"
#include "session/session.h"

static int page_write(void *data, const char *bytes, size_t size)
{
  return new_file_write(data, bytes, size);
}

static void limits_tell(const struct report_view *view, const char *name, uint64_t size)
{
  struct report_view_limits limits;

  report_view_limits(view, &limits);
  printf("%s: %llu calls, %.1f MB; open it in a browser\n", name, (unsigned long long)limits.calls,
         (double)size / (1 << 20));
  if (limits.merge)
    printf(
      "%llu calls of fewer than %llu branches are merged in the timeline, to keep the page small; all counts are exact. --between or --around shows every call of a part\n",
      (unsigned long long)limits.merged, (unsigned long long)limits.merge);
}

int view_output_write(struct report_view *view, const char *trace, const char *output)
{
  struct new_file file;
  int r = new_file_open(&file, trace, output, ".html");

  if (r >= 0) {
    r = new_file_close(&file, report_view_write(view, page_write, &file));
    if (r < 0)
      cli_error("%s: %s", file.name ? file.name : "standard output", lb_strerror(r));
    else if (file.name && !cli_is_quiet())
      limits_tell(view, file.name, file.size);
  }
  new_file_done(&file);
  return r;
}
