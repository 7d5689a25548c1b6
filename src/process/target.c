/* SPDX-License-Identifier: Apache-2.0
 *
 * What /proc says about a process that lbr is to attach to: target.h.
 */
#include "process/target.h"
#include "process/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "process/attach.h"
#include "process/rescue.h"

/* ---- files of /proc ---- */

static FILE *proc_open(int process, const char *name)
{
  char path[64];

  snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
  return fopen(path, "re");
}

/* What matters of /proc/PID/status. */
struct status {
  int group, parent, tracer, seccomp, threads;
  int inner;                       /* its number in its own PID namespace, the last of a list */
  unsigned long long capabilities; /* that are effective */
  char state;
  bool has_shadow_stack;
};

static int status_read(int process, struct status *ret_status)
{
  struct status status = {0};

  FILE *file = proc_open(process, "status");
  char line[512];

  if (!file)
    return errno == ENOENT ? -ESRCH : -errno;
  while (fgets(line, sizeof(line), file)) {
    sscanf(line, "State: %c", &status.state);
    sscanf(line, "Tgid: %d", &status.group);
    sscanf(line, "PPid: %d", &status.parent);
    sscanf(line, "CapEff: %llx", &status.capabilities);
    sscanf(line, "TracerPid: %d", &status.tracer);
    sscanf(line, "Seccomp: %d", &status.seccomp);
    sscanf(line, "Threads: %d", &status.threads);
    if (!strncmp(line, "NSpid:", 6) && strrchr(line, '\t'))
      status.inner = (int)strtol(strrchr(line, '\t'), NULL, 10);
    if (!strncmp(line, "x86_Thread_features:", 20))
      status.has_shadow_stack = strstr(line, "shstk");
  }
  fclose(file);
  *ret_status = status;
  return status.group ? 0 : -ESRCH;
}

int target_thread_state(uint32_t process, uint32_t thread)
{
  char path[64], text[512];
  const char *name_end;
  ssize_t size;
  int fd;

  snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", process, thread);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT || errno == ESRCH ? 0 : -1;
  size = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (size <= 0)
    return 0; /* it went away meanwhile */
  text[size] = 0;
  name_end = strrchr(text, ')'); /* the name may hold anything */
  return name_end && name_end[1] == ' ' ? name_end[2] : -1;
}

bool target_has_ended(int process)
{
  struct status status;

  if (status_read(process, &status) < 0)
    return true;
  return status.state == 'X' || (status.state == 'Z' && status.threads <= 1); /* else only its first thread has ended */
}

int target_inner_number(int process)
{
  struct status status;

  return status_read(process, &status) >= 0 && status.inner > 0 ? status.inner : process;
}

int target_process(int thread)
{
  struct status status;

  return status_read(thread, &status) < 0 ? 0 : status.group;
}

int target_parent(int process)
{
  struct status status;

  return status_read(process, &status) < 0 ? 0 : status.parent;
}

/* PTRACE_O_SUSPEND_SECCOMP and PTRACE_SECCOMP_GET_FILTER ask for this. */
bool target_can_suspend(void)
{
  enum { CAP_SYS_ADMIN = 21 };
  struct status status;

  return status_read(getpid(), &status) >= 0 && status.capabilities >> CAP_SYS_ADMIN & 1 && !status.seccomp;
}

bool target_is_elsewhere(int process, const char *type)
{
  char own[64], other[64];
  struct stat one, two;

  snprintf(own, sizeof(own), "/proc/self/ns/%s", type);
  snprintf(other, sizeof(other), "/proc/%d/ns/%s", process, type);
  return stat(own, &one) == 0 && stat(other, &two) == 0 && one.st_ino != two.st_ino;
}

/* ---- mappings ---- */

static int map_add(struct target_maps *maps, const char *line)
{
  struct target_map map = {0};
  unsigned long long start, end, offset, inode;
  char rights[8] = "";
  int path = 0;

  if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &start, &end, rights, &offset, &inode, &path) < 5)
    return 0;
  map.start = start;
  map.end = end;
  map.offset = offset;
  map.inode = inode;
  map.is_writable = rights[1] == 'w';
  map.is_code = rights[2] == 'x';
  map.is_shared = rights[3] == 's';
  map.path = strdup(path ? line + path : "");
  struct target_map *added = map.path ? array_append(&maps->list, &maps->count, &maps->capacity) : NULL;
  if (!added) {
    free(map.path);
    return -ENOMEM;
  }
  *added = map;
  return 0;
}

int target_maps_read(int process, struct target_maps *ret_maps)
{
  struct target_maps maps = {0};

  FILE *file = proc_open(process, "maps");
  char *line = NULL;
  size_t size = 0;
  ssize_t length;
  int r = 0;

  if (!file)
    return -errno;
  while (r >= 0 && (length = getline(&line, &size, file)) > 0) {
    if (line[length - 1] == '\n')
      line[length - 1] = 0;
    r = map_add(&maps, line);
  }
  free(line);
  fclose(file);
  if (r < 0)
    target_maps_done(&maps);
  else
    *ret_maps = maps;
  return r;
}

void target_maps_done(struct target_maps *maps)
{
  for (size_t i = 0; i < maps->count; i++)
    free(maps->list[i].path);
  free(maps->list);
  *maps = (struct target_maps){0};
}

uint64_t target_image(const struct target_maps *maps)
{
  for (size_t i = 0; i < maps->count; i++)
    if (!strncmp(maps->list[i].path, TARGET_RUNTIME, strlen(TARGET_RUNTIME)))
      return maps->list[i].start;
  return 0;
}

static bool is_deleted(const char *path)
{
  static const char gone[] = " (deleted)";
  size_t length = strlen(path);

  return length >= sizeof(gone) && !strcmp(path + length + 1 - sizeof(gone), gone);
}

/* A link of /proc that leads to the file itself, whatever its path. Only root may follow those of map_files. */
static bool file_link(int process, const struct target_map *map, char path[4200])
{
  char exe[4200];

  snprintf(path, 4200, "/proc/%d/exe", process);
  ssize_t length = readlink(path, exe, sizeof(exe) - 1);
  exe[length > 0 ? length : 0] = 0;
  if (!strcmp(exe, map->path))
    return true;
  snprintf(path, 4200, "/proc/%d/map_files/%llx-%llx", process, (unsigned long long)map->start,
           (unsigned long long)map->end);
  return access(path, R_OK) == 0;
}

/* The kernel gives the path from the root of the mount namespace, which need not be the root of the process. */
bool target_file(int process, const struct target_map *map, bool is_elsewhere, char path[4200])
{
  if (map->path[0] != '/' || !strncmp(map->path, "/memfd:", 7) || !strncmp(map->path, "/dev/", 5))
    return false;
  if (is_deleted(map->path))
    return file_link(process, map, path);
  if (is_elsewhere) {
    snprintf(path, 4200, "/proc/%d/root%s", process, map->path);
    return access(path, R_OK) == 0 || file_link(process, map, path);
  }
  snprintf(path, 4200, "%s", map->path);
  return true;
}

void target_root(int process, char root[32])
{
  struct stat own, other;

  snprintf(root, 32, "/proc/%d/root", process);
  bool is_same = stat("/", &own) == 0 && stat(root, &other) == 0 && own.st_dev == other.st_dev &&
                 own.st_ino == other.st_ino && !target_is_elsewhere(process, "mnt");
  if (is_same)
    root[0] = 0;
}

int process_modules(int process, void (*visit)(void *data, const struct process_module *module), void *data)
{
  bool is_elsewhere = target_is_elsewhere(process, "mnt");
  struct target_maps maps;
  char path[4200];
  int r = target_maps_read(process, &maps);

  if (r < 0)
    return r;
  for (size_t i = 0; i < maps.count; i++) {
    const struct target_map *map = &maps.list[i];
    bool is_vdso = !strcmp(map->path, "[vdso]");

    if (map->is_code && (is_vdso || target_file(process, map, is_elsewhere, path)))
      visit(data, &(struct process_module){map->start, map->end, map->offset, is_vdso ? map->path : path});
  }
  target_maps_done(&maps);
  return 0;
}

/* ---- refusals ---- */

static int yama_scope(void)
{
  FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
  int scope = 0;

  if (file) {
    if (fscanf(file, "%d", &scope) != 1)
      scope = 0;
    fclose(file);
  }
  return scope;
}

void target_complain(int process, int error)
{
  struct status status;
  int scope = yama_scope();

  if (error == -ESRCH) {
    message("process %d: it does not exist, or has just ended", process);
  } else if (error != -EPERM && error != -EACCES) {
    message("process %d: cannot stop it: %s", process, strerror(-error));
  } else if (status_read(process, &status) >= 0 && status.tracer) {
    message("process %d: process %d traces it already (a debugger, strace or another lbr); end that first", process,
            status.tracer);
  } else if (scope == 3) {
    message("process %d: this system forbids ptrace(2) (kernel.yama.ptrace_scope is 3) until it is rebooted", process);
  } else if (scope && geteuid()) {
    message("process %d: only root may attach here (kernel.yama.ptrace_scope is %d): use sudo, or, until the next "
            "reboot, sudo sysctl kernel.yama.ptrace_scope=0",
            process, scope);
  } else if (geteuid()) {
    message("process %d: no permission to trace it: it belongs to another user, or has privileges that you lack; "
            "use sudo",
            process);
  } else {
    message("process %d: no permission to trace it, not even as root: in a container, CAP_SYS_PTRACE is missing "
            "(docker run --cap-add SYS_PTRACE), or a security module forbids it",
            process);
  }
}

static int refuse(int process, const char *reason)
{
  message("process %d: %s", process, reason);
  return -EINVAL;
}

static int check_program(int process)
{
  unsigned char ident[EI_NIDENT] = {0};

  FILE *file = proc_open(process, "exe");

  if (!file && errno == ENOENT)
    return refuse(process, "it has no program: it is a thread of the kernel");
  if (!file) {
    target_complain(process, -errno);
    return -EPERM;
  }
  size_t size = fread(ident, 1, sizeof(ident), file);
  fclose(file);
  if (size == sizeof(ident) && ident[EI_CLASS] == ELFCLASS32)
    return refuse(process, "it is a 32-bit program; only 64-bit x86 programs can be recorded");
  return 0;
}

static int check_maps(int process)
{
  struct target_maps maps;
  bool has_recorder = false, is_occupied = false;
  int r = target_maps_read(process, &maps);

  if (r < 0) {
    target_complain(process, r);
    return r;
  }
  for (size_t i = 0; i < maps.count; i++) {
    has_recorder |= !strncmp(maps.list[i].path, "/memfd:lbr-", 11);
    is_occupied |= maps.list[i].start < ATTACH_PLACES_END && maps.list[i].end > ATTACH_IMAGE;
  }
  target_maps_done(&maps);
  if (has_recorder)
    return rescue_check(process);
  return is_occupied ? refuse(process, "it uses the addresses that the recorder needs") : 0;
}

/* The seccomp mode of the process: that of its first thread, or of another one that has one. */
static int filter_of(int process)
{
  char path[64];
  const struct dirent *entry;
  int mode = 0;

  snprintf(path, sizeof(path), "/proc/%d/task", process);
  DIR *folder = opendir(path);
  while (folder && !mode && (entry = readdir(folder))) {
    struct status thread;
    int number = (int)strtol(entry->d_name, NULL, 10);

    if (number > 0 && status_read(number, &thread) >= 0)
      mode = thread.seccomp;
  }
  if (folder)
    closedir(folder);
  return mode;
}

int target_check_filter(int process, bool can_suspend)
{
  enum { STRICT = 1 };
  int mode = filter_of(process);

  if (mode == STRICT)
    return refuse(process, "a thread may only read, write and end (seccomp), which is too little for the recorder");
  if (mode && !can_suspend)
    return refuse(process, "it has a filter of system calls (seccomp), which only root can read and suspend: use sudo");
  return 0;
}

int target_check(int process)
{
  struct status status;
  int r = status_read(process, &status);

  if (r < 0) {
    target_complain(process, r);
    return r;
  }
  if (status.group != process) {
    message("%d is a thread of process %d: give that number, or -t to record this thread alone", process, status.group);
    return -EINVAL;
  }
  if (process == getpid())
    return refuse(process, "lbr cannot attach to itself");
  if (target_has_ended(process))
    return refuse(process, "it has ended already; its parent has not asked for its status yet");
  if (status.tracer) {
    target_complain(process, -EPERM);
    return -EPERM;
  }
  if (status.has_shadow_stack)
    return refuse(process, "it has a shadow stack, which the recorder's code would not keep in step");
  r = target_check_filter(process, target_can_suspend());
  if (r >= 0)
    r = check_program(process);
  return r < 0 ? r : check_maps(process);
}
