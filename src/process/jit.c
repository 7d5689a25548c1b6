/* SPDX-License-Identifier: Apache-2.0
 *
 * The files and the memory in which a process names the code that it makes. A file is read if it is a regular file that
 * belongs to the user of the process, to the user of lbr, or to root, and, for a perf map, if it was written since the
 * process began: nobody deletes these files, and numbers of processes are used again. The folder of the map stays open,
 * because some programs write the map when they end.
 */
#include "process/jit.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "process/target.h"

enum {
  DUMPS_MOST = 4,
  MODULES_MOST = 512,  /* that are searched for the descriptor of GDB's interface */
  READ_MOST = 1 << 20, /* bytes of a file at a time */
  BLOCK = 64 << 10,
};

#define FILE_MOST (UINT64_C(1) << 30) /* bytes of a map or dump that are read in all */
#define OLD_SECONDS 1                 /* a map may be that much older than the process: clocks are coarse */

struct jit_file {
  int fd; /* -1: not open */
  uint64_t device, inode, offset;
};

struct process_jit {
  uint32_t process;
  uint32_t number; /* of the process, as it sees itself */
  uid_t user;
  int64_t since; /* when the process began, in seconds since 1970; 0: not known */
  int folder;    /* that of the map; -1: none */
  struct jit_file map_file;
  struct jit_map map;
  bool is_map_old; /* the map is that of an earlier process, as far as is known */
  struct {
    struct jit_file file;
    struct jit_dump dump;
  } dumps[DUMPS_MOST];
  unsigned dump_count;
  int memory; /* of the process; -1: not open */
  struct jit_gdb gdb;
  unsigned modules; /* that were searched for the descriptor */
  bool has_told;    /* that a file is damaged */
};

/* ---- the process ---- */

/* Reads a file of /proc into a string. Returns false if there is nothing. */
static bool proc_read(uint32_t process, const char *name, char *text, size_t size)
{
  char path[64];
  ssize_t got;
  int fd;

  snprintf(path, sizeof(path), "/proc/%u/%s", process, name);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  got = read(fd, text, size - 1);
  close(fd);
  text[got > 0 ? got : 0] = 0;
  return got > 0;
}

/* The second field of the line is the name, in parentheses, and may hold anything. */
static int64_t process_since(uint32_t process)
{
  struct timespec now, running;
  char text[4096], *at;
  long hertz = sysconf(_SC_CLK_TCK);
  unsigned long long start;

  if (!proc_read(process, "stat", text, sizeof(text)) || !(at = strrchr(text, ')')) || hertz <= 0)
    return 0;
  for (unsigned i = 2; i < 22 && at; i++) {
    at = strchr(at, ' ');
    at += !!at;
  }
  if (!at)
    return 0;
  start = strtoull(at, NULL, 10);
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &running);
  return now.tv_sec - running.tv_sec + (int64_t)(start / (unsigned long long)hertz);
}

int process_jit_new(uint32_t process, struct process_jit **ret_jit)
{
  struct process_jit *jit = calloc(1, sizeof(*jit));
  struct stat status;
  char path[64];

  if (!jit)
    return -ENOMEM;
  jit->process = process;
  jit->number = (uint32_t)target_inner_number((int)process);
  jit->since = process_since(process);
  if (!jit->since) /* it has ended; what we record began after us */
    jit->since = process_since((uint32_t)getpid());
  jit->map_file.fd = jit->memory = -1;
  snprintf(path, sizeof(path), "/proc/%u", process);
  jit->user = stat(path, &status) < 0 ? geteuid() : status.st_uid;
  snprintf(path, sizeof(path), "/proc/%u/root/tmp", process);
  jit->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (jit->folder < 0)
    jit->folder = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
  *ret_jit = jit;
  return 0;
}

static void file_close(struct jit_file *file)
{
  if (file->fd >= 0)
    close(file->fd);
  *file = (struct jit_file){.fd = -1};
}

void process_jit_free(struct process_jit *jit)
{
  if (!jit)
    return;
  for (unsigned i = 0; i < jit->dump_count; i++) {
    file_close(&jit->dumps[i].file);
    jit_dump_done(&jit->dumps[i].dump);
  }
  file_close(&jit->map_file);
  jit_gdb_done(&jit->gdb);
  if (jit->folder >= 0)
    close(jit->folder);
  if (jit->memory >= 0)
    close(jit->memory);
  free(jit);
}

/* ---- files ---- */

static bool status_is_good(const struct process_jit *jit, const struct stat *status)
{
  return S_ISREG(status->st_mode) && (status->st_uid == jit->user || status->st_uid == geteuid() || !status->st_uid);
}

/* Opens a file if it may be read. Returns false if not. */
static bool file_open(const struct process_jit *jit, int folder, const char *path, struct jit_file *file,
                      struct stat *ret_status)
{
  int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

  if (fd < 0)
    return false;
  if (fstat(fd, ret_status) < 0 || !status_is_good(jit, ret_status)) {
    close(fd);
    return false;
  }
  *file = (struct jit_file){.fd = fd, .device = ret_status->st_dev, .inode = ret_status->st_ino};
  return true;
}

static void damage_tell(struct process_jit *jit, const char *what)
{
  if (jit->has_told)
    return;
  jit->has_told = true;
  message("warning: process %u: %s; some of its code may have no names", jit->process, what);
}

/* ---- the perf map ---- */

static void map_restart(struct process_jit *jit)
{
  file_close(&jit->map_file);
  jit->map = (struct jit_map){0};
}

/* Opens the map, or notices that it was replaced. */
static void map_look(struct process_jit *jit)
{
  struct stat status;
  char name[32];

  if (jit->folder < 0)
    return;
  snprintf(name, sizeof(name), "perf-%u.map", jit->number);
  if (jit->map_file.fd >= 0 && fstatat(jit->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      (status.st_ino != jit->map_file.inode || status.st_dev != jit->map_file.device))
    map_restart(jit);
  if (jit->map_file.fd >= 0 || !file_open(jit, jit->folder, name, &jit->map_file, &status))
    return;
  if (jit->since && status.st_mtim.tv_sec + OLD_SECONDS < jit->since)
    file_close(&jit->map_file);
}

static int map_read(struct process_jit *jit, jit_name_function *function, void *data)
{
  struct jit_file *file = &jit->map_file;
  static char block[BLOCK];
  struct stat status;
  int r = 0;

  if (file->fd < 0 || fstat(file->fd, &status) < 0)
    return 0;
  if ((uint64_t)status.st_size < file->offset) { /* it is being written anew */
    file->offset = 0;
    jit->map = (struct jit_map){0};
  }
  for (size_t done = 0; r >= 0 && done < READ_MOST; done += BLOCK) {
    ssize_t got = file->offset < FILE_MOST ? pread(file->fd, block, sizeof(block), (off_t)file->offset) : 0;

    if (got <= 0)
      break;
    file->offset += (uint64_t)got;
    r = jit_map_take(&jit->map, block, (size_t)got, function, data);
  }
  if (jit->map.bad)
    damage_tell(jit, "its perf map has lines that are no names");
  return r < 0 ? r : file->offset < FILE_MOST && file->offset < (uint64_t)status.st_size;
}

/* ---- jitdump ---- */

static bool path_is_dump(const char *path)
{
  const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;

  if (strncmp(at, "jit-", 4) || !isdigit((unsigned char)at[4]))
    return false;
  at += 4;
  return !strcmp(at + strspn(at, "0123456789"), ".dump");
}

static void dump_open(struct process_jit *jit, const char *path)
{
  struct jit_file file;
  struct stat status;
  char rooted[4200];

  snprintf(rooted, sizeof(rooted), "/proc/%u/root%s", jit->process, path);
  if (jit->dump_count >= DUMPS_MOST ||
      (!file_open(jit, AT_FDCWD, rooted, &file, &status) && !file_open(jit, AT_FDCWD, path, &file, &status)))
    return;
  for (unsigned i = 0; i < jit->dump_count; i++)
    if (jit->dumps[i].file.inode == file.inode && jit->dumps[i].file.device == file.device) {
      close(file.fd);
      return;
    }
  jit->dumps[jit->dump_count].file = file;
  jit->dumps[jit->dump_count++].dump = (struct jit_dump){0};
}

static int64_t descriptor_read(void *data, uint64_t offset, void *bytes, size_t size)
{
  const int *fd = data;
  ssize_t got = offset < INT64_MAX ? pread(*fd, bytes, size, (off_t)offset) : 0;

  return got < 0 ? 0 : got;
}

static int dumps_read(struct process_jit *jit, jit_name_function *function, void *data)
{
  bool has_more = false;
  int r = 0;

  for (unsigned i = 0; i < jit->dump_count && r >= 0; i++) {
    struct jit_dump *dump = &jit->dumps[i].dump;

    if (dump->is_bad || dump->offset >= FILE_MOST)
      continue;
    r = jit_dump_take(dump, READ_MOST, descriptor_read, &jit->dumps[i].file.fd, function, data);
    has_more |= r > 0;
    if (dump->is_bad)
      damage_tell(jit, "its jitdump file is damaged, or of another version");
  }
  return r < 0 ? r : has_more;
}

/* ---- GDB's interface ---- */

static void gdb_look(struct process_jit *jit, const char *path, uint64_t start, uint64_t offset)
{
  uint64_t address, linked;
  struct stat status;
  char rooted[4200];
  int fd;

  if (jit->gdb.descriptor || jit->modules >= MODULES_MOST)
    return;
  jit->modules++;
  snprintf(rooted, sizeof(rooted), "/proc/%u/root%s", jit->process, path);
  fd = open(rooted, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0)
    return;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && jit_elf_descriptor(fd, offset, &address, &linked))
    jit->gdb.descriptor = address + (start - linked);
  close(fd);
}

void process_jit_module(struct process_jit *jit, const char *path, uint64_t start, uint64_t offset)
{
  if (*path != '/')
    return;
  if (path_is_dump(path))
    dump_open(jit, path);
  else
    gdb_look(jit, path, start, offset);
}

static int gdb_read(struct process_jit *jit, jit_name_function *function, void *data)
{
  char path[64];

  if (!jit->gdb.descriptor)
    return 0;
  if (jit->memory < 0) {
    snprintf(path, sizeof(path), "/proc/%u/mem", jit->process);
    jit->memory = open(path, O_RDONLY | O_CLOEXEC);
  }
  return jit->memory < 0 ? 0 : jit_gdb_take(&jit->gdb, descriptor_read, &jit->memory, function, data);
}

/* ---- all ---- */

int process_jit_read(struct process_jit *jit, bool is_whole, jit_name_function *function, void *data)
{
  int r, more;

  if (is_whole || jit->map_file.fd < 0)
    map_look(jit);
  r = map_read(jit, function, data);
  more = r;
  if (r >= 0)
    r = dumps_read(jit, function, data);
  more |= r;
  if (r >= 0)
    r = gdb_read(jit, function, data);
  return r < 0 ? r : more > 0;
}
