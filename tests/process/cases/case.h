/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs of this folder share: each is a list of cases, `PROGRAM CASE` runs one of them, `PROGRAM` alone
 * prints their names. A case prints what must be the same in every run, natively and recorded, and returns the exit
 * status.
 */
#ifndef CASE_H
#define CASE_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

struct test_case {
  const char *name;
  int (*run)(void);
};

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Straight to descriptor 1: nothing is buffered that a fork could double, no other call is made. */
__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
  char text[8192];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof(text))
    length = (int)sizeof(text) - 1;
  if (length > 0 && write(1, text, (size_t)length) < 0)
    _exit(97);
}

/* The beginning of a file of /proc/PROCESS/task/THREAD; "" if it cannot be read. */
static inline void task_read(pid_t process, pid_t thread, const char *file, char text[256])
{
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)process, (int)thread, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, text, 255);
  if (fd >= 0)
    close(fd);
  text[size > 0 ? size : 0] = 0;
}

/* Waits until a thread is in a state, as proc(5) has its letter, and if that is S, in this system call; -1: any. Not
 * for ever: then what is wrong shows in what the case prints. */
static inline void await_task(pid_t process, pid_t thread, char state, long call)
{
  char text[256];
  for (int i = 0; i < 60000; i++) {
    task_read(process, thread, "stat", text);
    const char *end = strrchr(text, ')'); /* of the name */
    if (end && end[1] == ' ' && end[2] == state) {
      task_read(process, thread, "syscall", text);
      if (state != 'S' || call < 0 || !*text || strtol(text, NULL, 10) == call)
        return;
    }
    usleep(1000);
  }
}

static inline int case_list(const struct test_case *cases, size_t count)
{
  for (size_t i = 0; i < count; i++)
    puts(cases[i].name);
  return 0;
}

/* Returns the exit status; 99: no such case. */
static inline int case_main(const struct test_case *cases, size_t count, int argc, char **argv)
{
  if (argc < 2)
    return case_list(cases, count);
  for (size_t i = 0; i < count; i++)
    if (!strcmp(cases[i].name, argv[1]))
      return cases[i].run();
  fprintf(stderr, "no case %s\n", argv[1]);
  return 99;
}

#endif
