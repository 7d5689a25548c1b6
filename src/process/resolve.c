/* SPDX-License-Identifier: Apache-2.0
 *
 * Scripts and set-user-id programs: the work that execve(2) does before it reaches an ELF file. The runtime loads ELF
 * only. A script's first line is read as Linux reads it (fs/binfmt_script.c): 256 bytes, a path, one argument that may
 * hold blanks. A program that execve would give more rights than lbr has is refused, because it would not get them
 * here.
 */
#include "process/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "process/script.h"
#include "process/shared.h"

/* ---- the first line of a script ---- */

/* The end of the line. NULL if the interpreter's path may be longer than the bytes that were read. */
static char *find_line_end(char *line)
{
  char *end = line + RESOLVE_LINE, *newline = memchr(line, '\n', RESOLVE_LINE);

  if (newline)
    return newline;
  char *name = skip_blanks(line + 2, end);
  return find_word_end(name, end) < end ? end - 1 : NULL;
}

/* Cuts the line, which begins with "#!", into the interpreter and an argument, NULL if there is none. Returns false if
 * it names no interpreter. */
static bool line_split(char *line, char **ret_interpreter, char **ret_argument)
{
  char *end = find_line_end(line);

  if (!end)
    return false;
  while (end > line + 2 && is_blank(end[-1]))
    end--;
  *end = 0;
  char *name = skip_blanks(line + 2, end);
  if (name == end || !*name)
    return false;
  char *behind = find_word_end(name, end), *argument = NULL;
  if (is_blank(*behind)) {
    argument = skip_blanks(behind, end);
    *behind = 0;
  }
  *ret_interpreter = name;
  *ret_argument = argument && *argument ? argument : NULL;
  return true;
}

/* ---- files ---- */

static void resolution_fail(struct resolution *resolution, unsigned error, int system_error)
{
  resolution->error = error;
  resolution->system_error = system_error;
}

/* A missing interpreter has another error code than a missing program. */
static void fail_open(struct resolution *resolution, int error)
{
  bool is_missing = error == ENOENT || error == ENOTDIR;

  if (is_missing && resolution->count)
    resolution_fail(resolution, PROCESS_E_NO_SCRIPT, -error);
  else
    resolution_fail(resolution, is_missing ? PROCESS_E_NOT_FOUND : PROCESS_E_NO_ACCESS, -error);
}

/* Whether the kernel would run the program with rights that we do not have. */
static bool is_privileged(int fd, const struct stat *status)
{
  struct statvfs system;
  bool is_user = status->st_mode & S_ISUID && status->st_uid != geteuid();
  bool is_group = (status->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status->st_gid != getegid();
  bool has_capability = geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;

  if (!is_user && !is_group && !has_capability)
    return false;
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
    return false;
  return fstatvfs(fd, &system) < 0 || !(system.f_flag & ST_NOSUID);
}

/* Reads the beginning of a program that may be executed. Returns the number of bytes, or -1 after a failure. */
static ssize_t program_read(const char *path, struct resolution *resolution, char *line)
{
  struct stat status;
  ssize_t size = -1;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

  if (fd < 0) {
    fail_open(resolution, errno);
    return -1;
  }
  if (fstat(fd, &status) < 0)
    resolution_fail(resolution, PROCESS_E_NO_ACCESS, -errno);
  else if (!S_ISREG(status.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
    resolution_fail(resolution, PROCESS_E_NO_ACCESS, -EACCES);
  else if ((size = pread(fd, line, RESOLVE_LINE, 0)) < 0)
    resolution_fail(resolution, PROCESS_E_NO_ACCESS, -errno);
  else if (size >= 2 && memcmp(line, "#!", 2) && is_privileged(fd, &status)) /* not of scripts, as in Linux */
    resolution_fail(resolution, PROCESS_E_SET_ID, 0);
  close(fd);
  return resolution->error ? -1 : size;
}

/* Words are filled from the end, because each level is put before the existing words. */
static void word_put(struct resolution *resolution, const char *word)
{
  if (!word)
    return;
  resolution->words[--resolution->first] = word;
  resolution->count++;
}

/* Adds one interpreter. The path of its script replaces the first argument. */
static void level_put(struct resolution *resolution, const char *path, const char *interpreter, const char *argument)
{
  if (resolution->count) { /* the first word is the interpreter of the previous level, which is `path` */
    resolution->first++;
    resolution->count--;
  }
  word_put(resolution, path);
  word_put(resolution, argument);
  word_put(resolution, interpreter);
}

static void exe_set(struct resolution *resolution, const char *path)
{
  if (strlen(path) >= sizeof(resolution->exe))
    resolution_fail(resolution, PROCESS_E_NO_ACCESS, -ENAMETOOLONG);
  else if (!realpath(path, resolution->exe))
    memcpy(resolution->exe, path, strlen(path) + 1);
}

void resolve_program(const char *path, struct resolution *ret_resolution)
{
  struct resolution *resolution = ret_resolution;
  char scratch[RESOLVE_LINE];

  *resolution = (struct resolution){.first = 3 * RESOLVE_LEVELS};
  for (unsigned level = 0;; level++) {
    char *line = level < RESOLVE_LEVELS ? resolution->lines[level] : scratch, *interpreter, *argument;

    memset(line, 0, RESOLVE_LINE);
    ssize_t size = program_read(path, resolution, line);
    if (size < 2 || memcmp(line, "#!", 2))
      break;
    if (level == RESOLVE_LEVELS)
      resolution_fail(resolution, PROCESS_E_NO_SCRIPT, -ELOOP);
    else if (!line_split(line, &interpreter, &argument))
      resolution_fail(resolution, PROCESS_E_NOT_ELF, -ENOEXEC);
    if (resolution->error)
      break;
    level_put(resolution, path, interpreter, argument);
    path = interpreter;
  }
  exe_set(resolution, path);
}
