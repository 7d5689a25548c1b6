/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a page to a file, which has its name only when it is whole. As a trace it is for its owner to read: it shows
 * what somebody's program did.
 */
#include "cli/view_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

/* "a.html" for "/tmp/a.lbr", "a.lbr.incomplete" and "a". NULL without memory. */
static char *name_make(const char *trace)
{
  static const char *const ends[] = {".incomplete", ".lbr", ".trace"};
  const char *base = strrchr(trace, '/') ? strrchr(trace, '/') + 1 : trace;
  size_t length = strlen(base);
  char *name;

  for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
    size_t end = strlen(ends[i]);

    if (length > end && !strncmp(base + length - end, ends[i], end))
      length -= end;
  }
  return asprintf(&name, "%.*s.html", (int)length, base) < 0 ? NULL : name;
}

struct page_file {
  FILE *file;
  uint64_t size;
};

static int page_write(void *data, const char *bytes, size_t size)
{
  struct page_file *page = data;

  page->size += size;
  return fwrite(bytes, 1, size, page->file) == size ? 0 : errno ? -errno : -EIO;
}

/* Where to write: a device or a pipe itself, else a new file beside the one that is wanted. */
static FILE *file_open(const char *name, char **ret_temporary)
{
  struct stat status;
  char *temporary;
  FILE *file = NULL;
  int fd;

  if (stat(name, &status) == 0 && !S_ISREG(status.st_mode))
    return fopen(name, "we");
  if (asprintf(&temporary, "%s.XXXXXX", name) < 0)
    return NULL;
  fd = mkstemp(temporary);
  if (fd >= 0) {
    file = fdopen(fd, "w");
    if (file) {
      *ret_temporary = temporary;
      return file;
    }
    close(fd);
    unlink(temporary);
  }
  free(temporary);
  return NULL;
}

static int file_write(struct report_view *view, const char *name, uint64_t *ret_size)
{
  char *temporary = NULL;
  struct page_file page = {.file = file_open(name, &temporary)};
  int r = page.file ? report_view_write(view, page_write, &page) : errno ? -errno : -ENOMEM;

  if (page.file && fclose(page.file) != 0 && r >= 0)
    r = -errno;
  if (r >= 0 && temporary && rename(temporary, name) < 0)
    r = -errno;
  if (r < 0 && temporary)
    unlink(temporary);
  free(temporary);
  if (r < 0)
    cli_error("%s: %s", name, lb_strerror(r));
  else
    *ret_size = page.size;
  return r;
}

static void limits_tell(const struct report_view *view, const char *name, uint64_t size)
{
  struct report_view_limits limits;

  report_view_limits(view, &limits);
  printf("%s: %llu calls, %.1f MB; open it in a browser\n", name, (unsigned long long)limits.calls,
         (double)size / (1 << 20));
  if (limits.merge)
    printf("%llu calls of fewer than %llu branches are merged in the timeline, to keep the page small; all counts are "
           "exact. For every call of a part: --from and --to, or --around\n",
           (unsigned long long)limits.merged, (unsigned long long)limits.merge);
}

int view_output_write(struct report_view *view, const char *trace, const char *output)
{
  struct page_file page = {.file = stdout};
  char *name;
  uint64_t size;
  int r;

  if (output && !strcmp(output, "-"))
    return report_view_write(view, page_write, &page);
  name = output ? strdup(output) : name_make(trace);
  if (!name) {
    cli_error("%s", lb_strerror(-ENOMEM));
    return -ENOMEM;
  }
  r = file_write(view, name, &size);
  if (r >= 0)
    limits_tell(view, name, size);
  free(name);
  return r;
}
