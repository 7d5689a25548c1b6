/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages about the size of the file that `lbr export` writes: before writing if it is large, and afterwards.
 */
#include "cli/export_size.h"

#include <stdio.h>
#include <sys/statvfs.h>

#include "cli/cli.h"

#define GREAT (UINT64_C(1) << 30) /* bytes: a larger file is announced before it is written */

int export_size_check(const struct export_options *options, struct lb_trace_reader *reader,
                      const struct new_file *output)
{
  const struct export_format *format = options->format;
  uint64_t size = trace_progress_total(reader, options->stream) * format->bytes_per_branch;
  const char *name = output->name ? output->name : "the export";
  bool is_known = format->needs & EXPORT_BRANCHES;
  struct statvfs room;

  if (!analysis_filter_is_empty(options->filter) || size < GREAT)
    return 0;
  if (is_known && output->temporary && fstatvfs(output->fd, &room) == 0 && size / room.f_frsize > room.f_bavail) {
    cli_error(
      "%s: the file will take about %.1f GB, but the disk has less room; --thread, --function and other filters make it smaller",
      name, (double)size / 1e9);
    return -1;
  }
  if (!cli_is_quiet() && is_known)
    cli_error("%s will take about %.1f GB; --thread, --function and other filters make it smaller", name,
              (double)size / 1e9);
  else if (!cli_is_quiet())
    cli_error(
      "%s may take about %.1f GB, much less if functions are seldom called, and up to three times that if there is "
      "little else; --thread, --function and --module make it smaller",
      name, (double)size / 1e9);
  return 0;
}

void export_size_tell(const struct new_file *output)
{
  if (output->size < 1000000)
    fprintf(stderr, "lbr: wrote %s, %llu bytes\n", output->name, (unsigned long long)output->size);
  else
    fprintf(stderr, "lbr: wrote %s, %.1f MB\n", output->name, (double)output->size / 1e6);
}
