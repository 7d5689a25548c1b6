/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls and signals as text. The letters of src/trace/call.def choose the format of an argument; the names of
 * signals and of their codes are those of death_signal.c.
 */
#include "report/call_text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "report/death.h"
#include "trace/trace.h"

/* glibc keeps 32 and 33 for itself: this is SIGRTMIN of programs, and not that of the kernel. */
#define SIGNAL_REAL_TIME 34
#define SIGNAL_LAST 64

#define ERRNO_LAST 4095u

/* A text that is being appended to. Remembers its first failure, after which nothing is added any more. */
struct call_printer {
  struct text *text;
  size_t before; /* length that the text had */
  int error;
};

#define call_put(printer, ...) report_put((printer)->text, &(printer)->error, __VA_ARGS__)

static struct call_printer call_begin(struct text *text)
{
  return (struct call_printer){.text = text, .before = text->length};
}

static int call_end(struct call_printer *printer)
{
  struct text *text = printer->text;

  if (printer->error < 0 && text->data) {
    text->length = printer->before;
    text->data[text->length] = '\0';
  }
  return printer->error;
}

/* ---- arguments ---- */

/* Appends an untrusted string in quotes. */
static void put_path(struct call_printer *printer, const char *path, size_t max)
{
  bool is_cut = max && strnlen(path, max + 1) > max;
  char *copy = printable_copy(path, is_cut ? max : strlen(path));

  if (!copy) {
    printer->error = -ENOMEM;
    return;
  }
  call_put(printer, "\"");
  for (const char *at = copy; *at;) {
    size_t plain = strcspn(at, "\"\\");

    call_put(printer, "%.*s", (int)plain, at);
    at += plain;
    if (*at)
      call_put(printer, "\\%c", *at++);
  }
  call_put(printer, is_cut ? "\"..." : "\"");
  free(copy);
}

/* `unknown` precedes the number of a signal without a name. */
static void put_signal(struct call_printer *printer, int signal, const char *unknown)
{
  const char *name = death_signal_name(signal);

  if (signal == SIGNAL_REAL_TIME)
    call_put(printer, "SIGRTMIN");
  else if (signal > SIGNAL_REAL_TIME && signal <= SIGNAL_LAST)
    call_put(printer, "SIGRTMIN+%d", signal - SIGNAL_REAL_TIME);
  else if (name)
    call_put(printer, "SIG%s", name);
  else
    call_put(printer, "%s%d", unknown, signal);
}

static void put_argument(struct call_printer *printer, char letter, uint64_t value)
{
  switch (letter) {
  case 'D':
    if ((int32_t)value == AT_FDCWD) {
      call_put(printer, "AT_FDCWD");
      break;
    }
    /* fall through */
  case 'f':
  case 'i':
  case 'P':
  case 'w':
    call_put(printer, "%d", (int)(int32_t)value);
    break;
  case 'I':
    call_put(printer, "%lld", (long long)value);
    break;
  case 'u':
    call_put(printer, "%u", (unsigned)(uint32_t)value);
    break;
  case 'U':
    call_put(printer, "%llu", (unsigned long long)value);
    break;
  case 'h':
    call_put(printer, "%#x", (unsigned)(uint32_t)value);
    break;
  case 'H':
    call_put(printer, "%#llx", (unsigned long long)value);
    break;
  case 'o':
    call_put(printer, "%#o", (unsigned)(uint32_t)value);
    break;
  case 'S':
    put_signal(printer, (int)(int32_t)value, "");
    break;
  default: /* 'p', 's' */
    call_put(printer, value ? "ptr" : "NULL");
    break;
  }
}

/* Does open with these flags read a file mode? */
static bool open_has_mode(uint64_t flags)
{
  return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
}

static bool fcntl_has_argument(uint64_t command)
{
  switch ((uint32_t)command) {
  case F_GETFD:
  case F_GETFL:
  case F_GETOWN:
  case F_GETSIG:
  case F_GETLEASE:
  case F_GETPIPE_SZ:
  case F_GET_SEALS:
    return false;
  default:
    return true;
  }
}

static unsigned futex_count(uint64_t operation)
{
  switch (operation & FUTEX_CMD_MASK) {
  case FUTEX_WAKE:
    return 3;
  case FUTEX_WAIT:
    return 4;
  default:
    return 6;
  }
}

/* The number of arguments that the kernel reads; registers of further ones hold values that the program did not pass.
 * All of them, if the argument that decides is not `known`. */
static unsigned count_used(uint32_t number, const struct trace_call_info *info, const uint64_t *arguments,
                           unsigned known)
{
  unsigned all = info->argument_count;

  switch (number) {
  case TRACE_CALL_open:
  case TRACE_CALL_mq_open:
    return known < 2 || open_has_mode(arguments[1]) ? all : 2;
  case TRACE_CALL_openat:
    return known < 3 || open_has_mode(arguments[2]) ? all : 3;
  case TRACE_CALL_fcntl:
    return known < 2 || fcntl_has_argument(arguments[1]) ? all : 2;
  case TRACE_CALL_futex:
    return known < 2 ? all : futex_count(arguments[1]);
  case TRACE_CALL_mremap:
    return known < 4 || arguments[3] & ~(uint64_t)MREMAP_MAYMOVE ? all : 4;
  default:
    return all;
  }
}

int call_text(struct text *text, uint32_t number, const uint64_t *arguments, unsigned argument_count,
              const char *const paths[2], size_t path_max)
{
  const struct trace_call_info *info = trace_call_info(number);
  struct call_printer printer = call_begin(text);

  if (!info) {
    call_put(&printer, "syscall_%u(...)", (unsigned)number);
    return call_end(&printer);
  }
  unsigned count = count_used(number, info, arguments, argument_count), path = 0;
  call_put(&printer, "%s(", info->name);
  for (unsigned i = 0; i < count && i < argument_count; i++) {
    const char *string = info->arguments[i] == 's' && path < TRACE_CALL_PATHS ? paths[path++] : NULL;

    call_put(&printer, i ? ", " : "");
    if (string)
      put_path(&printer, string, path_max);
    else
      put_argument(&printer, info->arguments[i], arguments[i]);
  }
  if (argument_count < count)
    call_put(&printer, argument_count ? ", ..." : "...");
  call_put(&printer, ")");
  return call_end(&printer);
}

/* ---- results ---- */

/* The name of an errno, or NULL. A tracer also sees the codes by which the kernel restarts a call (linux/errno.h); no
 * program gets them. */
static const char *errno_name(int error)
{
  switch (error) {
  case 512:
    return "ERESTARTSYS";
  case 513:
    return "ERESTARTNOINTR";
  case 514:
    return "ERESTARTNOHAND";
  case 516:
    return "ERESTART_RESTARTBLOCK";
  default:
    return strerrorname_np(error);
  }
}

static void put_error(struct call_printer *printer, int error)
{
  const char *name = errno_name(error);

  if (name)
    call_put(printer, " = -1 %s", name);
  else
    call_put(printer, " = -1 errno %d", error);
}

int call_result_text(struct text *text, uint32_t number, uint64_t result)
{
  struct call_printer printer = call_begin(text);

  if (-result - 1 < ERRNO_LAST) {
    put_error(&printer, (int)-result);
    return call_end(&printer);
  }
  switch (number) {
  case TRACE_CALL_brk:
  case TRACE_CALL_map_shadow_stack:
  case TRACE_CALL_mmap:
  case TRACE_CALL_mremap:
  case TRACE_CALL_shmat:
    call_put(&printer, " = %#llx", (unsigned long long)result);
    break;
  case TRACE_CALL_umask:
    call_put(&printer, " = %#llo", (unsigned long long)result);
    break;
  default:
    call_put(&printer, " = %lld", (long long)result);
    break;
  }
  return call_end(&printer);
}

/* ---- signals ---- */

/* siginfo_t has an address: the kernel reports what the program did. */
static bool signal_has_address(int signal, int code)
{
  switch (signal) {
  case SIGBUS:
  case SIGFPE:
  case SIGILL:
  case SIGSEGV:
  case SIGSYS:
  case SIGTRAP:
    return code > 0 && code < SI_KERNEL;
  default:
    return false;
  }
}

/* siginfo_t has the number of a process: the sender, or the child that changed its state. */
static bool signal_has_process(int signal, int code)
{
  switch (code) {
  case SI_MESGQ:
  case SI_QUEUE:
  case SI_TKILL:
  case SI_USER:
    return true;
  default:
    return signal == SIGCHLD && code > 0 && code < SI_KERNEL;
  }
}

int signal_text(struct text *text, int signal, int code, uint64_t value)
{
  struct call_printer printer = call_begin(text);
  const char *name = death_code_name(signal, code);

  put_signal(&printer, signal, "signal ");
  if (name)
    call_put(&printer, " %s", name);
  else
    call_put(&printer, " code %d", code);
  if (signal_has_address(signal, code))
    call_put(&printer, " %#llx", (unsigned long long)value);
  else if (signal_has_process(signal, code))
    call_put(&printer, " from %d", (int)(int32_t)value);
  return call_end(&printer);
}
