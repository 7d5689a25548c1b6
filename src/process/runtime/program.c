/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out what execve(2) would execute at a path: whether it is a program that we can load, and through how many
 * scripts. Everything else is left to the kernel and its errors, so that a refusal here does no harm. The rules for a
 * script's first line are those of Linux (fs/binfmt_script.c).
 */
#include <asm/stat.h>
#include <asm/unistd.h>
#include <elf.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

#include "process/runtime/runtime.h"
#include "process/script.h"

enum { X_OK = 1 };

static const char own_exe[] = "/proc/self/exe";

/* ---- files ---- */

/* The link in /proc by which a descriptor can be opened again. */
static void fd_path(char path[48], int fd)
{
  text_put_number(text_put(path, "/proc/self/fd/"), (uint32_t)fd);
}

static int open_path(int folder, const char *path, unsigned flags)
{
  return (int)kernel_call(__NR_openat, (uint64_t)folder, (uint64_t)path, flags | O_CLOEXEC, 0, 0, 0);
}

static void close_fd(int fd)
{
  if (fd >= 0)
    kernel_call(__NR_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}

static bool is_same(const struct stat *one, const struct stat *other)
{
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static bool stat_path(const char *path, struct stat *ret_stat)
{
  return !is_failure(kernel_call(__NR_stat, (uint64_t)path, (uint64_t)ret_stat, 0, 0, 0, 0));
}

static bool stat_fd(int fd, struct stat *ret_stat)
{
  return !is_failure(kernel_call(__NR_fstat, (uint64_t)fd, (uint64_t)ret_stat, 0, 0, 0, 0));
}

/* O_PATH, because opening a device or a pipe for reading has effects. An application that executes /proc/self/exe,
 * which names the runtime, means its own program. */
static int open_program(const struct runtime *runtime, int folder, const char *path, unsigned flags)
{
  char link[48];
  struct stat stat, own;

  if (!*path && flags & AT_EMPTY_PATH) {
    fd_path(link, folder);
    path = link;
  }
  int fd = open_path(folder, path, O_PATH | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
  if (fd < 0)
    return fd;
  if (stat_fd(fd, &stat) && stat_path(own_exe, &own) && is_same(&stat, &own)) {
    close_fd(fd);
    return open_path(AT_FDCWD, runtime->exe, O_PATH);
  }
  return fd;
}

/* Opens a file that we may execute and read. Returns a descriptor for reading, or a negative number. */
static int open_file(int fd)
{
  char link[48];
  struct stat stat;

  fd_path(link, fd);
  if (!stat_fd(fd, &stat) || !S_ISREG(stat.st_mode) ||
      is_failure(kernel_call(__NR_faccessat, (uint64_t)AT_FDCWD, (uint64_t)link, X_OK, 0, 0, 0)))
    return -1;
  return open_path(AT_FDCWD, link, O_RDONLY);
}

static bool read_at(int fd, void *to, uint64_t size, uint64_t offset)
{
  return kernel_call(__NR_pread64, (uint64_t)fd, (uint64_t)to, size, offset, 0, 0) == (int64_t)size;
}

/* Whether execution would change the rights: set-user-id, set-group-id, capabilities. */
static bool has_rights(int fd)
{
  char link[48];
  struct stat stat;
  uint8_t value[64];

  fd_path(link, fd);
  if (!stat_fd(fd, &stat) || stat.st_mode & S_ISUID || (stat.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
    return true;
  return kernel_call(__NR_getxattr, (uint64_t)link, (uint64_t) "security.capability", (uint64_t)value, sizeof(value), 0,
                     0) > 0;
}

/* ---- ELF ---- */

static bool is_elf(const Elf64_Ehdr *header)
{
  static const uint8_t magic[] = {0x7F, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};

  for (unsigned i = 0; i < sizeof(magic); i++)
    if (header->e_ident[i] != magic[i])
      return false;
  return header->e_machine == EM_X86_64 && (header->e_type == ET_EXEC || header->e_type == ET_DYN) &&
         header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum && header->e_phnum <= PROGRAM_HEADERS;
}

static bool is_elf_file(int fd)
{
  Elf64_Ehdr header;
  return fd >= 0 && read_at(fd, &header, sizeof(header), 0) && is_elf(&header);
}

/* Whether the dynamic linker that the file names exists. */
static bool has_linker(int fd, const Elf64_Phdr *segment)
{
  char path[PROGRAM_PATH];

  if (segment->p_filesz < 2 || segment->p_filesz > sizeof(path) ||
      !read_at(fd, path, segment->p_filesz, segment->p_offset) || path[segment->p_filesz - 1])
    return false;
  int path_fd = open_path(AT_FDCWD, path, O_PATH);
  int linker = path_fd < 0 ? -1 : open_file(path_fd);
  bool is_good = is_elf_file(linker);
  close_fd(linker);
  close_fd(path_fd);
  return is_good;
}

static bool is_loadable(int fd)
{
  Elf64_Ehdr header;
  if (!read_at(fd, &header, sizeof(header), 0) || !is_elf(&header))
    return false;
  bool is_loaded = false;
  for (unsigned i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    if (!read_at(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)))
      return false;
    is_loaded |= segment.p_type == PT_LOAD;
    if (segment.p_type == PT_INTERP)
      return has_linker(fd, &segment);
  }
  return is_loaded;
}

/* ---- scripts ---- */

/* The end of the line. NULL if the interpreter's path may be longer than the bytes that were read. */
static char *line_end(struct script *script)
{
  char *last = script->line + PROGRAM_LINE - 1;

  for (char *at = script->line; at <= last; at++)
    if (*at == '\n')
      return at;
  char *blank = find_word_end(skip_blanks(script->line + 2, last), last);
  return *blank && !is_blank(*blank) ? NULL : last;
}

static bool script_split(struct script *script)
{
  char *end = line_end(script);

  if (!end)
    return false;
  while (is_blank(end[-1]))
    end--;
  *end = 0;
  char *name = skip_blanks(script->line + 2, end);
  if (name >= end)
    return false;
  char *blank = find_word_end(name, end);
  script->interpreter = name;
  script->argument = *blank ? skip_blanks(blank, end) : NULL;
  *blank = 0;
  return *name;
}

static bool script_read(struct script *script, int fd)
{
  memset(script, 0, sizeof(*script));
  int64_t size = kernel_call(__NR_pread64, (uint64_t)fd, (uint64_t)script->line, PROGRAM_LINE, 0, 0, 0);
  return size >= 2 && script->line[0] == '#' && script->line[1] == '!' && script_split(script);
}

/* ---- whole ---- */

/* Finds the path by which the runtime will open the program, if that path still leads to it. */
static bool program_name(struct program *program, int fd)
{
  char link[48];
  struct stat stat, named;

  fd_path(link, fd);
  int64_t size = kernel_call(__NR_readlink, (uint64_t)link, (uint64_t)program->exe, PROGRAM_PATH, 0, 0, 0);
  if (size <= 0 || size >= PROGRAM_PATH)
    return false;
  program->exe[size] = 0;
  return program->exe[0] == '/' && stat_fd(fd, &stat) && stat_path(program->exe, &named) && is_same(&stat, &named);
}

/* Examines one file. A program is the end of the chain. For a script, `*ret_next` is the interpreter's file. */
static bool program_step(const struct runtime *runtime, struct program *program, int fd, int *ret_next)
{
  int file = open_file(fd);
  bool is_good = file >= 0;
  struct script *script = &program->scripts[program->script_count];

  if (is_good && is_loadable(file)) {
    is_good = !has_rights(fd) && program_name(program, fd);
  } else if (is_good) {
    is_good = program->script_count < PROGRAM_SCRIPTS && script_read(script, file);
    *ret_next = is_good ? open_program(runtime, AT_FDCWD, script->interpreter, 0) : -1;
    is_good = *ret_next >= 0;
    program->script_count++;
  }
  close_fd(file);
  return is_good;
}

bool program_find(struct runtime *runtime, int folder, const char *path, unsigned flags, struct program *ret_program)
{
  int fd = open_program(runtime, folder, path, flags);
  bool is_good = fd >= 0;

  ret_program->script_count = 0;
  while (is_good && fd >= 0) {
    int next = -1;

    is_good = program_step(runtime, ret_program, fd, &next);
    close_fd(fd);
    fd = next;
  }
  return is_good;
}
