/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program sees of itself: arguments, environment, auxiliary vector, /proc/self, its descriptors. `view all`
 * prints its arguments; addresses are not printed but checked against each other.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "case.h"

extern char **environ;
extern const ElfW(Ehdr) __ehdr_start;
extern void _start(void);

static int environment(void)
{
  unsigned count = 0;
  for (char **word = environ; *word; word++, count++)
    if (count < 50)
      say("%s\n", *word);
  char *first = environ[0];
  say("%u words, %s\n", count, first && first > program_invocation_name ? "behind the arguments" : "elsewhere");
  return 0;
}

static ssize_t file_read(const char *path, char *bytes, size_t size)
{
  int file = open(path, O_RDONLY);
  ssize_t length = 0;
  for (ssize_t got; (got = read(file, bytes + length, size - 1 - (size_t)length)) > 0;)
    length += got;
  close(file);
  bytes[length] = 0;
  return file < 0 ? -1 : length;
}

static int command_line(void)
{
  static char bytes[65536];
  ssize_t size = file_read("/proc/self/cmdline", bytes, sizeof(bytes));
  for (ssize_t i = 0; i < size; i++)
    say("%c", bytes[i] ? bytes[i] : '\n');
  size = file_read("/proc/self/comm", bytes, sizeof(bytes));
  say("comm %s", bytes);
  char name[17] = "";
  prctl(PR_GET_NAME, name);
  say("name %s\n", name);
  size = file_read("/proc/self/environ", bytes, sizeof(bytes));
  say("environ %zd bytes, begins with %.20s\n", size, bytes);
  return 0;
}

static int executable(void)
{
  char path[4096] = "";
  struct stat first, second;
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  say("%zd %s\n", length, path);
  char name[64];
  snprintf(name, sizeof(name), "/proc/%d/exe", getpid());
  length = readlinkat(AT_FDCWD, name, path, sizeof(path) - 1);
  path[length] = 0;
  say("%s\n", path);
  stat("/proc/self/exe", &first);
  stat(path, &second);
  say("the same file: %d\n", first.st_ino == second.st_ino && first.st_dev == second.st_dev);
  unsigned char magic[4] = "";
  int file = open("/proc/self/exe", O_RDONLY);
  ElfW(Ehdr) header;
  say("read %zd", read(file, &header, sizeof(header)));
  memcpy(magic, header.e_ident, 4);
  say(" %x %c%c%c, header %s\n", magic[0], magic[1], magic[2], magic[3],
      memcmp(&header, &__ehdr_start, sizeof(header)) ? "of another" : "of this program");
  return 0;
}

static int auxiliary(void)
{
  const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
  ElfW(Addr) base = getauxval(AT_BASE);
  say("AT_EXECFN %s\n", (const char *)getauxval(AT_EXECFN));
  say("AT_ENTRY %s\n", getauxval(AT_ENTRY) == (unsigned long)_start ? "is _start" : "is not _start");
  say("AT_PHDR %s, %lu of %lu bytes\n",
      (const char *)headers == (const char *)&__ehdr_start + __ehdr_start.e_phoff ? "right" : "wrong",
      getauxval(AT_PHNUM), getauxval(AT_PHENT));
  say("AT_BASE %s\n", !base ? "none" : !memcmp((const void *)base, ELFMAG, SELFMAG) ? "an ELF file" : "wrong");
  const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
  say("vdso %s\n", vdso && !memcmp(vdso, ELFMAG, SELFMAG) ? "an ELF file" : "none");
  say("page %lu clock %lu secure %lu platform %s\n", getauxval(AT_PAGESZ), getauxval(AT_CLKTCK), getauxval(AT_SECURE),
      (const char *)getauxval(AT_PLATFORM));
  say("uid %lu %lu gid %lu %lu\n", getauxval(AT_UID), getauxval(AT_EUID), getauxval(AT_GID), getauxval(AT_EGID));
  say("hwcap %lx %lx\n", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
  say("random %s\n", getauxval(AT_RANDOM) ? "given" : "missing");
  return 0;
}

/* The vector itself: its types, in their order. */
static int vector(void)
{
  char **word = environ;
  while (*word++)
    ;
  for (ElfW(auxv_t) *entry = (void *)word; entry->a_type != AT_NULL; entry++)
    say("%lu ", entry->a_type);
  say("\n");
  static char bytes[4096];
  ssize_t size = file_read("/proc/self/auxv", bytes, sizeof(bytes));
  say("/proc/self/auxv %s\n", size > 0 && !memcmp(bytes, word, 64) ? "the same" : "different");
  return 0;
}

/* The lines of the program's own file, without addresses; those of libraries; how the rest lies. */
static int maps(void)
{
  char line[5000], access[8], name[4096], self[4096] = "";
  unsigned long start, end, offset, below = 0;
  unsigned heap = 0, stack = 0, vdso = 0, code = 0;
  FILE *file = fopen("/proc/self/maps", "re");
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
    return 1;
  void *piece = malloc(100);
  while (fgets(line, sizeof(line), file)) {
    name[0] = 0;
    sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, access, &offset, name);
    if (start < below)
      say("not in order\n");
    below = end;
    if (!strcmp(name, self) || strstr(name, ".so"))
      say("%lx %s %lx %s\n", end - start, access, offset, strrchr(name, '/'));
    heap += !strcmp(name, "[heap]");
    stack += !strcmp(name, "[stack]") && (unsigned long)&line >= start && (unsigned long)&line < end;
    vdso += !strcmp(name, "[vdso]") && start == getauxval(AT_SYSINFO_EHDR);
    code += (unsigned long)maps >= start && (unsigned long)maps < end && access[2] == 'x';
  }
  say("heap %u stack %u vdso %u code %u\n", heap, stack, vdso, code);
  free(piece);
  fclose(file);
  return 0;
}

static int heap_place(void)
{
  extern char end[];
  uintptr_t start = ((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095;
  say("heap %s the program\n", start >= (uintptr_t)end ? "behind" : "before");
  return 0;
}

static int number_order(const void *left, const void *right)
{
  return *(const int *)left - *(const int *)right;
}

static int descriptors(void)
{
  int numbers[64], count = 0;
  DIR *folder = opendir("/proc/self/fd");
  for (struct dirent *entry; (entry = readdir(folder)) && count < 64;)
    if (entry->d_name[0] != '.')
      numbers[count++] = atoi(entry->d_name);
  qsort(numbers, (size_t)count, sizeof(numbers[0]), number_order);
  for (int i = 0; i < count; i++)
    say("%d%s ", numbers[i], numbers[i] == dirfd(folder) ? " (this)" : "");
  say("\nnext %d\n", dup(0));
  return 0;
}

static int status(void)
{
  static char bytes[65536];
  file_read("/proc/self/status", bytes, sizeof(bytes));
  static const char *const names[] = {"Name:",   "Threads:", "SigQ:",    "SigPnd:",     "ShdPnd:", "SigBlk:",
                                      "SigIgn:", "SigCgt:",  "Seccomp:", "NoNewPrivs:", "CapEff:", "Uid:"};
  for (unsigned i = 0; i < ARRAY_LENGTH(names); i++) {
    char *line = strstr(bytes, names[i]);
    if (line && strcmp(names[i], "SigQ:"))
      say("%.*s\n", (int)strcspn(line, "\n"), line);
  }
  struct rlimit limit;
  for (int i = 0; i < 16; i++)
    if (!getrlimit(i, &limit))
      say("%d: %lld %lld\n", i, (long long)limit.rlim_cur, (long long)limit.rlim_max);
  return 0;
}

static int identity(void)
{
  struct utsname system;
  char folder[4096];
  uname(&system);
  say("%s %s\n", system.sysname, system.machine);
  say("%s\n", getcwd(folder, sizeof(folder)));
  say("dumpable %d, personality %lx, umask %o\n", prctl(PR_GET_DUMPABLE),
      syscall(SYS_personality, 0xFFFFFFFF) & ~0x40000ul, umask(0));
  say("%d %d\n", getpid() == gettid(), getsid(0) != getpid());
  return 0;
}

static int on_object(struct dl_phdr_info *info, size_t size, void *argument)
{
  (void)size, (void)argument;
  const char *name = strrchr(info->dlpi_name, '/');
  say("%s %u\n", name ? name : info->dlpi_name, info->dlpi_phnum);
  return 0;
}

static int objects(void)
{
  return dl_iterate_phdr(on_object, NULL);
}

/* An unknown system call, and one with a bad address. */
static int calls(void)
{
  errno = 0;
  long result = syscall(9999);
  say("%ld errno %d\n", result, errno);
  result = syscall(SYS_read, 0, 8, -1);
  say("%ld errno %d\n", result, errno == EFAULT || errno == EBADF || !errno ? 0 : errno);
  result = syscall(SYS_mmap, 1, 4096, 3, 0x32, -1, 0);
  say("%ld errno %d\n", result, errno);
  result = syscall(SYS_rt_sigprocmask, 0, NULL, NULL, 4);
  say("%ld errno %d\n", result, errno);
  result = syscall(SYS_arch_prctl, 0x9999, 0);
  say("%ld errno %d\n", result, errno);
  return 0;
}

static const struct test_case cases[] = {
  {"environment", environment}, {"command-line", command_line},
  {"executable", executable},   {"auxiliary", auxiliary},
  {"vector", vector},           {"maps", maps},
  {"heap-place", heap_place},   {"descriptors", descriptors},
  {"status", status},           {"identity", identity},
  {"objects", objects},         {"calls", calls},
};

int main(int argc, char **argv)
{
  if (argc > 1 && !strcmp(argv[1], "all")) {
    for (int i = 0; i <= argc; i++)
      say("%s\n", argv[i] ? argv[i] : "(end)");
    return 0;
  }
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
