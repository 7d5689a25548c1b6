/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of system calls, and system calls and signals as text. The arguments are those of the calls' manual pages,
 * the signals and their codes those of signal(7) and sigaction(2). test_call.sh compares the names and numbers of the
 * table with the kernel's header.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <asm/unistd_64.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "report/report.h"
#include "trace/call.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the table ---- */

/* The arguments of system calls, from their manual pages. */
static void table_has_arguments(void **state)
{
  static const struct {
    unsigned number, count;
    const char *name;
  } rows[] = {
    {__NR_read, 3, "read"},
    {__NR_mmap, 6, "mmap"},
    {__NR_brk, 1, "brk"},
    {__NR_getpid, 0, "getpid"},
    {__NR_select, 5, "select"},
    {__NR_clone, 5, "clone"},
    {__NR_execve, 3, "execve"},
    {__NR_rename, 2, "rename"},
    {__NR_mount, 5, "mount"},
    {__NR_futex, 6, "futex"},
    {__NR__sysctl, 1, "_sysctl"},
    {__NR_exit_group, 1, "exit_group"},
    {__NR_openat, 4, "openat"},
    {__NR_newfstatat, 4, "newfstatat"},
    {__NR_pselect6, 6, "pselect6"},
    {__NR_prlimit64, 4, "prlimit64"},
    {__NR_statx, 5, "statx"},
    {__NR_rseq, 4, "rseq"},
    {__NR_clone3, 2, "clone3"},
    {__NR_openat2, 4, "openat2"},
    {__NR_futex_waitv, 5, "futex_waitv"},
    {462, 3, "mseal"},
  };

  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    const struct trace_call_info *info = trace_call_info(rows[i].number);

    assert_non_null(info);
    assert_string_equal(info->name, rows[i].name);
    assert_int_equal(info->argument_count, rows[i].count);
  }
}

static void table_is_sound(void **state)
{
  unsigned known = 0;

  (void)state;
  for (uint32_t number = 0; number < 1000; number++) {
    const struct trace_call_info *info = trace_call_info(number);

    assert_int_equal(info != NULL, number <= 334 || (number >= 424 && number <= 462));
    if (!info)
      continue;
    known++;
    assert_int_equal(strlen(info->arguments), info->argument_count);
    assert_true(info->argument_count <= TRACE_CALL_ARGUMENTS);
    assert_int_equal(strspn(info->arguments, "fDspoSiIuUhHPw"), info->argument_count);
    assert_int_equal(trace_call_path(info, TRACE_CALL_PATHS), -1);
  }
  assert_int_equal(known, 335 + 39);
  assert_null(trace_call_info(UINT32_MAX));
}

static void assert_paths(uint32_t number, int first, int second)
{
  const struct trace_call_info *info = trace_call_info(number);

  assert_non_null(info);
  assert_int_equal(trace_call_path(info, 0), first);
  assert_int_equal(trace_call_path(info, 1), second);
}

static void table_has_paths(void **state)
{
  (void)state;
  assert_paths(__NR_write, -1, -1);
  assert_paths(__NR_open, 0, -1);
  assert_paths(__NR_openat, 1, -1);
  assert_paths(__NR_rename, 0, 1);
  assert_paths(__NR_renameat2, 1, 3);
  assert_paths(__NR_symlinkat, 0, 2);
  assert_paths(__NR_mount, 0, 1);
  assert_paths(__NR_quotactl, 1, -1);
  assert_paths(__NR_fanotify_mark, 4, -1);
  assert_paths(__NR_setxattr, 0, -1);
  assert_int_equal(TRACE_CALL_openat, __NR_openat);
}

/* ---- calls ---- */

static void assert_call(const char *expected, uint32_t number, const uint64_t arguments[6], unsigned count,
                        const char *first, const char *second)
{
  struct text text = {0};

  assert_int_equal(call_text(&text, number, arguments, count, (const char *const[2]){first, second}, 0), 0);
  assert_string_equal(text_string(&text), expected);
  text_done(&text);
}

#define CALL(expected, name, first, second, ...)                                                                       \
  assert_call(expected, __NR_##name, (const uint64_t[6]){__VA_ARGS__}, 6, first, second)

#define MINUS(value) (-(uint64_t)(value))
#define INT(value) ((uint32_t) - (value)) /* a negative int, as a compiler loads it: the upper half is 0 */

static void calls_have_text(void **state)
{
  (void)state;
  CALL("openat(AT_FDCWD, \"/etc/passwd\", 0x80000)", openat, "/etc/passwd", NULL, INT(100), 0x1000, 0x80000, 0777);
  CALL("openat(5, \"a\", 0x41, 0644)", openat, "a", NULL, 5, 0x1000, O_WRONLY | O_CREAT, 0644);
  CALL("openat(AT_FDCWD, \".\", 0x410001, 0600)", openat, ".", NULL, MINUS(100), 1, O_WRONLY | O_TMPFILE, 0600);
  CALL("open(\"a\", 0)", open, "a", NULL, 1, 0, 0x1234);
  CALL("creat(\"a\", 0)", creat, "a", NULL, 1, 0);
  CALL("read(3, ptr, 4096)", read, NULL, NULL, 3, 0x7fff0000, 4096);
  CALL("write(-1, NULL, 18446744073709551615)", write, NULL, NULL, INT(1), 0, UINT64_MAX);
  CALL("mmap(0, 8192, 0x3, 0x22, -1, 0)", mmap, NULL, NULL, 0, 8192, 3, 0x22, INT(1), 0);
  CALL("munmap(0x7f0012345000, 4096)", munmap, NULL, NULL, 0x7f0012345000, 4096);
  CALL("lseek(3, -10, 2)", lseek, NULL, NULL, 3, MINUS(10), SEEK_END);
  CALL("renameat(AT_FDCWD, \"a\", 4, \"b\")", renameat, "a", "b", MINUS(100), 1, 4, 2);
  CALL("symlinkat(\"a\", AT_FDCWD, \"b\")", symlinkat, "a", "b", 1, MINUS(100), 2);
  CALL("kill(-1, SIGTERM)", kill, NULL, NULL, INT(1), SIGTERM);
  CALL("kill(1234, 0)", kill, NULL, NULL, 1234, 0);
  CALL("tgkill(12, 13, SIGRTMIN+3)", tgkill, NULL, NULL, 12, 13, 37);
  CALL("tgkill(12, 13, 33)", tgkill, NULL, NULL, 12, 13, 33);
  CALL("setresuid(-1, 0, -1)", setresuid, NULL, NULL, INT(1), 0, MINUS(1));
  CALL("ioctl(0, 0x80045430, 0x7ffc0000)", ioctl, NULL, NULL, 0, UINT64_C(0xffffffff80045430), 0x7ffc0000);
  CALL("getpid()", getpid, NULL, NULL, 1, 2, 3);
}

/* Registers of arguments that the call does not read hold anything. */
static void unused_arguments_are_left_out(void **state)
{
  (void)state;
  CALL("fcntl(3, 1)", fcntl, NULL, NULL, 3, F_GETFD, 0x1234);
  CALL("fcntl(3, 2, 0x1)", fcntl, NULL, NULL, 3, F_SETFD, FD_CLOEXEC);
  CALL("futex(ptr, 129, 1)", futex, NULL, NULL, 0x1000, 129, 1, 7, 8, 9);
  CALL("futex(ptr, 128, 2, NULL)", futex, NULL, NULL, 0x1000, 128, 2, 0, 8, 9);
  CALL("futex(ptr, 393, 0, NULL, NULL, 4294967295)", futex, NULL, NULL, 0x1000, 393, 0, 0, 0, UINT32_MAX);
  CALL("mremap(0x1000, 4096, 8192, 0x1)", mremap, NULL, NULL, 0x1000, 4096, 8192, 1, 5);
  CALL("mremap(0x1000, 4096, 8192, 0x3, 0x5000)", mremap, NULL, NULL, 0x1000, 4096, 8192, 3, 0x5000);
}

static void unknown_parts_are_marked(void **state)
{
  static const uint64_t arguments[6] = {MINUS(100), 0x1000, 0x80000};

  (void)state;
  assert_call("syscall_999(...)", 999, arguments, 6, NULL, NULL);
  assert_call("syscall_4294967295(...)", UINT32_MAX, NULL, 0, NULL, NULL);
  assert_call("openat(...)", __NR_openat, NULL, 0, NULL, NULL);
  assert_call("openat(AT_FDCWD, \"a\", ...)", __NR_openat, arguments, 2, "a", NULL);
  assert_call("openat(AT_FDCWD, ptr, 0x80000)", __NR_openat, arguments, 3, NULL, NULL);
  assert_call("getpid()", __NR_getpid, NULL, 0, NULL, NULL);
  CALL("utimensat(3, NULL, ptr, 0)", utimensat, NULL, NULL, 3, 0, 1, 0);
  CALL("rename(ptr, \"b\")", rename, NULL, "b", 1, 2);
}

static void assert_path(const char *expected, const char *path, size_t max)
{
  struct text text = {0};

  assert_int_equal(text_add(&text, "1: "), 0);
  assert_int_equal(call_text(&text, __NR_chdir, (const uint64_t[6]){1}, 6, (const char *const[2]){path, NULL}, max), 0);
  assert_string_equal(text_string(&text), expected);
  text_done(&text);
}

static void paths_are_printable(void **state)
{
  (void)state;
  assert_path("1: chdir(\"\")", "", 0);
  assert_path("1: chdir(\"a?[31mb?c\")", "a\033[31mb\nc", 0);
  assert_path("1: chdir(\"?é??\")", "\xffé\xc2\x9b", 0);
  assert_path("1: chdir(\"a\\\"b\\\\\")", "a\"b\\", 0);
  assert_path("1: chdir(\"%s%n\")", "%s%n", 0);
  assert_path("1: chdir(\"abcd\")", "abcd", 4);
  assert_path("1: chdir(\"abcd\"...)", "abcde", 4);
  assert_path("1: chdir(\"abc\"...)", "abcé", 4); /* no half characters */
}

static void long_path_is_whole(void **state)
{
  static char path[4096], expected[4096 + 32];

  (void)state;
  memset(path, 'x', sizeof(path) - 1);
  stpcpy(stpcpy(stpcpy(expected, "1: chdir(\""), path), "\")");
  assert_path(expected, path, 0);
}

/* ---- results ---- */

static void assert_result(const char *expected, uint32_t number, uint64_t result)
{
  struct text text = {0};

  assert_int_equal(call_result_text(&text, number, result), 0);
  assert_string_equal(text_string(&text), expected);
  text_done(&text);
}

static void results_have_text(void **state)
{
  (void)state;
  assert_result(" = 3", __NR_openat, 3);
  assert_result(" = 0", __NR_close, 0);
  assert_result(" = -1 ENOENT", __NR_openat, MINUS(ENOENT));
  assert_result(" = -1 EPERM", __NR_kill, MINUS(EPERM));
  assert_result(" = -1 EAGAIN", __NR_read, MINUS(EAGAIN));
  assert_result(" = -1 ERESTARTSYS", __NR_read, MINUS(512));
  assert_result(" = -1 errno 4095", __NR_read, MINUS(4095));
  assert_result(" = -4096", __NR_lseek, MINUS(4096));
  assert_result(" = 0x7f0012345000", __NR_mmap, 0x7f0012345000);
  assert_result(" = -1 ENOMEM", __NR_mmap, MINUS(ENOMEM));
  assert_result(" = 0x5555555a9000", __NR_brk, 0x5555555a9000);
  assert_result(" = 022", __NR_umask, 022);
  assert_result(" = -1 ENOSYS", 999, MINUS(ENOSYS));
}

/* ---- signals ---- */

static void assert_signal(const char *expected, int signal, int code, uint64_t value)
{
  struct text text = {0};

  assert_int_equal(signal_text(&text, signal, code, value), 0);
  assert_string_equal(text_string(&text), expected);
  text_done(&text);
}

static void signals_have_text(void **state)
{
  (void)state;
  assert_signal("SIGSEGV SEGV_MAPERR 0x10", SIGSEGV, SEGV_MAPERR, 0x10);
  assert_signal("SIGSEGV SEGV_MAPERR 0", SIGSEGV, SEGV_MAPERR, 0);
  assert_signal("SIGSEGV SI_KERNEL", SIGSEGV, SI_KERNEL, 0);
  assert_signal("SIGSEGV SI_USER from 1234", SIGSEGV, SI_USER, 1234);
  assert_signal("SIGFPE FPE_INTDIV 0x401000", SIGFPE, FPE_INTDIV, 0x401000);
  assert_signal("SIGSYS SYS_SECCOMP 0x401000", SIGSYS, 1, 0x401000);
  assert_signal("SIGALRM SI_TIMER", SIGALRM, SI_TIMER, 5);
  assert_signal("SIGALRM SI_KERNEL", SIGALRM, SI_KERNEL, 0);
  assert_signal("SIGUSR1 SI_USER from 1234", SIGUSR1, SI_USER, 1234);
  assert_signal("SIGABRT SI_TKILL from 7", SIGABRT, SI_TKILL, 7);
  assert_signal("SIGCHLD CLD_EXITED from 99", SIGCHLD, CLD_EXITED, 99);
  assert_signal("SIGPOLL POLL_IN", SIGIO, POLL_IN, 65); /* two names of one signal */
  assert_signal("SIGRTMIN SI_QUEUE from 7", SIGRTMIN, SI_QUEUE, 7);
  assert_signal("SIGRTMIN+3 SI_QUEUE from 7", SIGRTMIN + 3, SI_QUEUE, 7);
  assert_signal("SIGRTMIN+30 SI_TIMER", 64, SI_TIMER, 0);
  assert_signal("signal 33 SI_TKILL from 7", 33, SI_TKILL, 7);
  assert_signal("signal 65 code 77", 65, 77, 1);
  assert_signal("signal -1 code -77", -1, -77, 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(table_has_arguments),
    cmocka_unit_test(table_is_sound),
    cmocka_unit_test(table_has_paths),
    cmocka_unit_test(calls_have_text),
    cmocka_unit_test(unused_arguments_are_left_out),
    cmocka_unit_test(unknown_parts_are_marked),
    cmocka_unit_test(paths_are_printable),
    cmocka_unit_test(long_path_is_whole),
    cmocka_unit_test(results_have_text),
    cmocka_unit_test(signals_have_text),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
