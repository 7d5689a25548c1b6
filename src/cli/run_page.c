/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the reports of `lbr run`: src/report makes their text, which is written as it grows.
 */
#include "cli/run_page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"

/* ---- the file ---- */

static int stdout_copy(void)
{
  int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);

  return fd < 0 ? -errno : fd;
}

int run_page_open(struct run_page *page, const struct run_show *show)
{
  const char *name = show->output;

  *page = (struct run_page){.show = show, .fd = STDERR_FILENO};
  if (name && !strcmp(name, "-"))
    page->fd = stdout_copy();
  else if (name)
    page->fd = new_file_create(name);
  if (page->fd < 0) {
    cli_error("%s: %s", name, lb_strerror(page->fd));
    return page->fd;
  }
  page->wants_color = cli_wants_color_on(page->fd);
  return 0;
}

/* ---- the text ---- */

static void report_write(struct run_page *page, const struct text *text)
{
  const char *bytes = text_string(text);
  size_t size = text->length;

  while (size && !page->is_broken) {
    ssize_t written = write(page->fd, bytes, size);

    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      page->is_broken = true;
      message("cannot write the report: %s", lb_strerror(-errno));
      return;
    }
    bytes += written;
    size -= (size_t)written;
  }
}

static void report_flush(void *data, struct text *text)
{
  report_write(data, text);
  text->length = 0;
}

/* The width of the terminal that reports go to; 0 if they go elsewhere. */
static unsigned line_width(int fd)
{
  struct winsize size;

  return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Problems with files are ignored here: the report itself says where names are missing. */
static void file_ignore(void *data, const char *name, const char *why)
{
  (void)data, (void)name, (void)why;
}

static int death_print(void *data, const struct analysis_death *death, const struct analysis_places *places)
{
  struct run_page *page = data;
  struct trace_input input = {0};
  struct report_death_options options = {.show = page->show->show,
                                         .last = page->show->last,
                                         .files = &input.files,
                                         .format = page->show->format,
                                         .wants_color = page->wants_color,
                                         .width = line_width(page->fd),
                                         .places = places,
                                         .flush = report_flush,
                                         .data = page};
  struct text text = {0};
  int r = 0;

  trace_input_files(&input);
  input.files.warn = file_ignore;
  if (page->has_reported && options.format != REPORT_JSON)
    r = text_add(&text, "\n");
  if (r >= 0)
    r = report_death_print(&text, death, &options);
  if (r == -ENOMEM)
    message("no memory for the report");
  page->has_reported = true;
  report_write(page, &text);
  text_done(&text);
  return page->is_broken ? -EIO : 0;
}

static int report_no_names(void *data)
{
  struct run_page *page = data;
  struct text text = {0};

  if (page->show->format != REPORT_JSON &&
      text_add(&text, "  no symbols found: do not strip the program to see names; compile it with -g to see lines\n") >=
        0)
    report_write(page, &text);
  text_done(&text);
  return page->is_broken ? -EIO : 0;
}

struct run_reporter run_page_reporter(struct run_page *page)
{
  return (struct run_reporter){page, death_print, report_no_names};
}
