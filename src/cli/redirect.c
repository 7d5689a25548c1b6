/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard output as a file. Commands can end in many ways, including argp's exit, so the file gets its name at exit.
 */
#include "cli/redirect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "session/session.h"

static struct new_file redirected;

static int file_finish(struct new_file *file)
{
  int had_error = ferror(stdout), r = fflush(stdout) < 0 ? -errno : had_error ? -EIO : 0;
  struct stat status;
  bool is_empty = file->temporary && fstat(file->fd, &status) == 0 && !status.st_size;

  if (r >= 0 && is_empty) {
    (void)new_file_close(file, -ENODATA);
    return 0;
  }
  return new_file_close(file, r);
}

/* Runs before main's check of standard output, which was registered first. */
static void redirect_finish(void)
{
  int r = file_finish(&redirected);

  if (r >= 0)
    return;
  cli_error("%s: %s", redirected.name, lb_strerror(r));
  _exit(CLI_FAILURE);
}

int redirect_stdout(const char *name)
{
  int r = new_file_open(&redirected, NULL, name, NULL);

  if (r < 0 || !redirected.name)
    return r;
  if (dup2(redirected.fd, STDOUT_FILENO) < 0 || atexit(redirect_finish) != 0) {
    cli_error("%s: %s", name, lb_strerror(-errno));
    return new_file_close(&redirected, -EIO);
  }
  return 0;
}
