/* SPDX-License-Identifier: Apache-2.0
 *
 * Attaches to a running process: stops all its threads by ptrace(2), has one of them map the runtime and the shared
 * memory, and lets each thread go on in the code cache from the instruction at which it was stopped. detach.c is the
 * way back. Nothing is changed in a process that is refused; a failure on the way is undone.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "process/attach.h"
#include "process/attachment.h"
#include "process/filter.h"
#include "process/process.h"
#include "process/shared.h"
#include "process/target.h"
#include "process/tracee.h"

#define PLACES_START UINT64_C(0x7E8000000000)

enum {
  HIGH_FD = 900,
  SYSCALL_SIZE = 2,
  MASK_TRAP = 1 << 4,
};

/* One process while lbr attaches to it. */
struct attaching {
  struct process *process;
  struct tracees *tracees;
  struct target_maps maps;
  struct tracee *first; /* the thread that makes the system calls */
  uint64_t scratch;     /* memory in the process: struct attach_info and more; 0: none */
  uint64_t scratch_size;
  uint64_t image_size; /* 0: not mapped */
  const struct attachment *attachment;
  struct filter_verdict filter;
  int fd;         /* of the shared memory, in the process; -1: none */
  bool has_begun; /* the runtime may have mapped memory */
};

/* ---- system calls of the process ---- */

/* Returns the result of the call; -errno also if the thread is gone. */
static int64_t remote(struct attaching *attaching, uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                      uint64_t e, uint64_t f)
{
  const uint64_t argument[6] = {a, b, c, d, e, f};
  int64_t result;
  int r = tracee_call(attaching->tracees, attaching->first, number, argument, &result);

  return r < 0 ? r : result;
}

static bool is_failure(int64_t result)
{
  return result < 0 && result >= -4095;
}

/* The address of a SYSCALL instruction in a mapping, or 0. */
static uint64_t syscall_in(const struct tracees *tracees, const struct target_map *map)
{
  enum { MOST = 4 << 20 };
  size_t size = map->end - map->start < MOST ? (size_t)(map->end - map->start) : MOST;
  uint8_t *bytes = malloc(size), *found = NULL;

  if (bytes && tracees_read(tracees, bytes, map->start, size))
    found = memmem(bytes, size, "\x0F\x05", SYSCALL_SIZE);
  uint64_t at = found ? map->start + (uint64_t)(found - bytes) : 0;
  free(bytes);
  return at;
}

int attach_find_syscall(struct tracees *tracees, const struct target_maps *maps)
{
  for (unsigned pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < maps->count && !tracees->syscall_at; i++) {
      const struct target_map *map = &maps->list[i];

      if (map->is_code && !map->is_writable && (pass == 0) == !strcmp(map->path, "[vdso]"))
        tracees->syscall_at = syscall_in(tracees, map);
    }
  return tracees->syscall_at ? 0 : -ENOEXEC;
}

/* ---- the threads ---- */

static int threads_check(const struct attaching *attaching)
{
  enum { USER_CS = 0x33 };
  int process = attaching->tracees->process;

  for (size_t i = 0; i < attaching->tracees->count; i++) {
    const struct tracee *tracee = &attaching->tracees->list[i];

    if (tracee->is_gone)
      continue;
    if (tracee->registers.cs != USER_CS) {
      message("process %d: thread %d executes 32-bit code; only 64-bit x86 programs can be recorded", process,
              tracee->thread);
      return -EINVAL;
    }
    if (tracee->registers.gs_base || tracee->registers.gs) {
      message("process %d: thread %d uses the GS segment, which the recorder needs for itself", process,
              tracee->thread);
      return -EINVAL;
    }
  }
  return 0;
}

/* ---- filters ---- */

static bool has_wrgsbase(void)
{
  enum { WRGSBASE = 1 << 1 };

  return getauxval(AT_HWCAP2) & WRGSBASE;
}

/* Do seccomp filters allow what the runtime does? */
static int filters_check(struct attaching *attaching)
{
  const struct tracees *tracees = attaching->tracees;
  struct filter_verdict *filter = &attaching->filter;
  int r = 0;

  if (!tracees->can_suspend)
    return target_check_filter(tracees->process, false);
  filter->has_wrgsbase = has_wrgsbase();
  for (size_t i = 0; i < tracees->count; i++)
    filter->has_rseq |= !tracees->list[i].is_gone && attach_has_rseq(&tracees->list[i]);
  for (size_t i = 0; i < tracees->count && r >= 0; i++)
    r = tracees->list[i].is_gone ? 0 : filter_check(tracees->list[i].thread, filter);
  if (r < 0)
    return r == -EINVAL ? -EIO : r;
  if (!filter->forbidden)
    return 0;
  message("process %d: its filter of system calls (seccomp) forbids %s, which the recorder needs", tracees->process,
          filter->forbidden);
  return -EINVAL;
}

/* PR_SET_MDWE: the kernel itself forbids it. */
static int code_check(struct attaching *attaching)
{
  enum { GET_MDWE = 66, REFUSE_EXEC_GAIN = 1 };
  int64_t result = remote(attaching, SYS_prctl, GET_MDWE, 0, 0, 0, 0, 0);

  if (is_failure(result) || !(result & REFUSE_EXEC_GAIN))
    return 0;
  message("process %d: it may not have memory that is writable and executable (PR_SET_MDWE, or MemoryDenyWriteExecute= "
          "of systemd), which the recorder needs for code: start it without this restriction",
          attaching->tracees->process);
  return -EINVAL;
}

/* ---- memory ---- */

/* Gives the process a descriptor of lbr's, by a pair of sockets that both ends of are in the process: neither needs to
 * have rights on the other's files. Returns the number in the process, or -errno. */
static int descriptor_give(struct attaching *attaching, int fd)
{
  enum { UNIX = 1, DATAGRAM = 2, CLOEXEC = 02000000, MESSAGE = 64, CONTROL = 256, PART = 512, BYTE = 600 };
  uint64_t at = attaching->scratch;
  int32_t pair[2];
  int64_t result = remote(attaching, SYS_socketpair, UNIX, DATAGRAM | CLOEXEC, 0, at, 0, 0);

  if (is_failure(result))
    return (int)result;
  if (!tracees_read(attaching->tracees, pair, at, sizeof(pair)))
    return -EFAULT;
  int process = (int)syscall(SYS_pidfd_open, attaching->tracees->process, 0);
  int own = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, pair[1], 0);
  int error = -errno, given = -EIO;
  if (process >= 0)
    close(process);
  if (own >= 0) {
    union {
      struct cmsghdr header;
      char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {.iov_base = (char[]){0}, .iov_len = 1};
    struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    error = sendmsg(own, &message, 0) < 0 ? -errno : 0;
    close(own);
    struct iovec there = {.iov_base = (void *)(uintptr_t)(at + BYTE), .iov_len = 1};
    struct msghdr reader = {.msg_iov = (struct iovec *)(uintptr_t)(at + PART),
                            .msg_iovlen = 1,
                            .msg_control = (void *)(uintptr_t)(at + CONTROL),
                            .msg_controllen = sizeof(control)};
    if (!error && tracees_write(attaching->tracees, at + PART, &there, sizeof(there)) &&
        tracees_write(attaching->tracees, at + MESSAGE, &reader, sizeof(reader)) &&
        remote(attaching, SYS_recvmsg, (uint64_t)pair[0], at + MESSAGE, MSG_CMSG_CLOEXEC, 0, 0, 0) == 1 &&
        tracees_read(attaching->tracees, &control, at + CONTROL, sizeof(control)))
      memcpy(&given, CMSG_DATA(&control.header), sizeof(given));
  }
  remote(attaching, SYS_close, (uint64_t)pair[0], 0, 0, 0, 0, 0);
  remote(attaching, SYS_close, (uint64_t)pair[1], 0, 0, 0, 0, 0);
  return error < 0 ? error : given;
}

/* Maps the runtime's ELF file at its address. */
static int image_map(struct attaching *attaching, int fd)
{
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)process_runtime;
  const Elf64_Phdr *segment = (const Elf64_Phdr *)(const void *)(process_runtime + header->e_phoff);

  for (unsigned i = 0; i < header->e_phnum; i++, segment++) {
    if (segment->p_type != PT_LOAD)
      continue;
    uint64_t page = PROCESS_PAGE - 1, start = (ATTACH_IMAGE + segment->p_vaddr) & ~page;
    uint64_t file_end = ATTACH_IMAGE + segment->p_vaddr + segment->p_filesz;
    uint64_t mapped_end = (file_end + page) & ~page,
             end = (ATTACH_IMAGE + segment->p_vaddr + segment->p_memsz + page) & ~page;
    uint64_t rights = (segment->p_flags & PF_R ? PROT_READ : 0u) | (segment->p_flags & PF_W ? PROT_WRITE : 0u) |
                      (segment->p_flags & PF_X ? PROT_EXEC : 0u);
    int64_t result = remote(attaching, SYS_mmap, start, mapped_end - start, rights, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
                            (uint64_t)fd, segment->p_offset & ~page);
    if (result == (int64_t)start && end > mapped_end)
      result = remote(attaching, SYS_mmap, mapped_end, end - mapped_end, rights,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX, 0);
    if (is_failure(result))
      return (int)result;
    attaching->image_size = end - ATTACH_IMAGE;
    char zeroes[PROCESS_PAGE] = {0};
    if (segment->p_flags & PF_W && mapped_end > file_end &&
        !tracees_write(attaching->tracees, file_end, zeroes, mapped_end - file_end))
      return -EFAULT;
  }
  return 0;
}

static int scratch_map(struct attaching *attaching, uint64_t size)
{
  int64_t result =
    remote(attaching, SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);

  if (is_failure(result))
    return (int)result;
  attaching->scratch = (uint64_t)result;
  attaching->scratch_size = size;
  return 0;
}

static int memory_give(struct attaching *attaching, int runtime_fd, int shared_fd)
{
  int fd = descriptor_give(attaching, runtime_fd), r;

  if (fd < 0)
    return fd;
  r = image_map(attaching, fd);
  remote(attaching, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
  if (r < 0)
    return r;
  fd = descriptor_give(attaching, shared_fd);
  if (fd < 0)
    return fd;
  int64_t high = remote(attaching, SYS_fcntl, (uint64_t)fd, 1030 /* F_DUPFD_CLOEXEC */, HIGH_FD, 0, 0, 0);
  if (!is_failure(high))
    remote(attaching, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
  attaching->fd = is_failure(high) ? fd : (int)high;
  return 0;
}

/* ---- what the runtime must know ---- */

struct blob {
  uint8_t *bytes;
  size_t size, capacity;
};

/* Appends bytes, at a multiple of 8. Returns their offset, or 0: no memory. */
static uint64_t blob_add(struct blob *blob, const void *bytes, size_t size)
{
  size_t at = (blob->size + 7) & ~(size_t)7, end = at + size;

  if (end > blob->capacity) {
    size_t capacity = 2 * end + 4096;
    uint8_t *grown = realloc(blob->bytes, capacity);

    if (!grown)
      return 0;
    blob->bytes = grown;
    blob->capacity = capacity;
  }
  memset(blob->bytes + blob->size, 0, at - blob->size);
  if (bytes)
    memcpy(blob->bytes + at, bytes, size);
  else
    memset(blob->bytes + at, 0, size);
  blob->size = end;
  return at;
}

static uint64_t blob_add_text(struct blob *blob, const char *text)
{
  return blob_add(blob, text, strlen(text) + 1);
}

static bool range_fill(const struct attaching *attaching, struct blob *blob, const struct target_map *map,
                       bool is_elsewhere, struct attach_range *ret_range)
{
  char path[4200];
  struct attach_range range = {.start = map->start,
                               .end = map->end,
                               .offset = map->offset,
                               .flags = (map->is_code ? ATTACH_CODE : 0u) | (map->is_writable ? ATTACH_WRITABLE : 0u) |
                                        (map->is_shared ? ATTACH_SHARED : 0u)};

  if (!strcmp(map->path, "[vsyscall]") || !(range.flags & (ATTACH_CODE | ATTACH_SHARED)))
    return false;
  if (map->is_code && !strcmp(map->path, "[vdso]"))
    range.path = blob_add_text(blob, map->path);
  else if (map->is_code && target_file(attaching->tracees->process, map, is_elsewhere, path))
    range.path = blob_add_text(blob, path);
  *ret_range = range;
  return true;
}

/* The triggers of all mappings. */
static void triggers_fill(const struct attaching *attaching, struct blob *blob, const struct attach_range *ranges,
                          struct attach_info *info)
{
  const struct process_trigger *trigger = attaching->process->trigger;
  uint64_t addresses[PROCESS_TRIGGERS];
  size_t count = 0;

  if (!trigger)
    return;
  count = trigger->find(trigger->data, &(struct process_module){.path = ""}, addresses, PROCESS_TRIGGERS);
  for (uint32_t i = 0; i < info->range_count; i++) {
    const struct process_module module = {ranges[i].start, ranges[i].end, ranges[i].offset,
                                          (const char *)blob->bytes + ranges[i].path};

    if (ranges[i].path && ranges[i].flags & ATTACH_CODE)
      count += trigger->find(trigger->data, &module, addresses + count, PROCESS_TRIGGERS - count);
  }
  info->triggers = blob_add(blob, addresses, count * sizeof(*addresses));
  info->trigger_count = info->triggers ? count : 0;
}

static int blob_fill(const struct attaching *attaching, struct blob *blob)
{
  int process = attaching->tracees->process;
  bool is_elsewhere = target_is_elsewhere(process, "mnt");
  char link[64], exe[4096], root[32];
  struct attach_info info = {.fd = attaching->fd,
                             .has_wrgsbase = has_wrgsbase(),
                             .has_filter = attaching->filter.has_filter,
                             .is_code_fixed = attaching->filter.forbids_code,
                             .numbering = target_is_elsewhere(process, "pid") ? UINT32_MAX : 0};

  snprintf(link, sizeof(link), "/proc/%d/exe", process);
  ssize_t length = readlink(link, exe, sizeof(exe) - 1);
  exe[length > 0 ? length : 0] = 0;
  blob_add(blob, NULL, sizeof(info));
  info.exe = blob_add_text(blob, exe);
  target_root(process, root);
  info.root = blob_add_text(blob, root);
  struct attach_thread *threads = calloc(attaching->tracees->count + 1, sizeof(*threads));
  struct attach_range *ranges = calloc(attaching->maps.count + 1, sizeof(*ranges));
  if (threads && ranges) {
    for (size_t i = 0; i < attaching->tracees->count; i++)
      if (!attaching->tracees->list[i].is_gone)
        attach_thread_fill(attaching->tracees, attaching->attachment, &attaching->tracees->list[i],
                           &threads[info.thread_count++]);
    for (size_t i = 0; i < attaching->maps.count; i++)
      info.range_count +=
        range_fill(attaching, blob, &attaching->maps.list[i], is_elsewhere, &ranges[info.range_count]);
    info.threads = blob_add(blob, threads, (info.thread_count + 1) * sizeof(*threads));
    info.ranges = blob_add(blob, ranges, (info.range_count + 1) * sizeof(*ranges));
    triggers_fill(attaching, blob, ranges, &info);
  }
  free(threads);
  free(ranges);
  if (!info.threads || !info.ranges)
    return -ENOMEM;
  memcpy(blob->bytes, &info, sizeof(info));
  return 0;
}

/* ---- the start ---- */

/* Runs the runtime in the first thread. Afterwards the blob has its answers. */
static int runtime_begin(struct attaching *attaching, const struct attachment *attachment, struct blob *blob)
{
  struct user_regs_struct registers = attaching->first->registers;
  struct attach_info info;
  uint64_t answer;
  int r = blob_fill(attaching, blob);

  if (r < 0)
    return r;
  uint64_t old = attaching->scratch, old_size = attaching->scratch_size;
  r = scratch_map(attaching, blob->size + PROCESS_PAGE);
  remote(attaching, SYS_munmap, old, old_size, 0, 0, 0, 0);
  if (r < 0)
    return r;
  if (!tracees_write(attaching->tracees, attaching->scratch, blob->bytes, blob->size))
    return -EFAULT;
  registers.rip = attachment->process_entry;
  registers.rdi = attaching->scratch;
  registers.orig_rax = UINT64_MAX;
  registers.eflags = 0x202;
  attaching->has_begun = true;
  r = tracee_run(attaching->tracees, attaching->first, &registers, &answer);
  if (r < 0)
    return r;
  struct attach_info before;
  memcpy(&before, blob->bytes, sizeof(before));
  if (answer != attaching->scratch || !tracees_read(attaching->tracees, blob->bytes, attaching->scratch, blob->size))
    return -EFAULT;
  memcpy(&info, blob->bytes, sizeof(info));
  if (info.threads != before.threads || info.thread_count != before.thread_count)
    return -EFAULT; /* another process has written there */
  if (info.error) {
    message("process %d: %s", attaching->tracees->process, process_error_text((unsigned)info.error));
    return info.system_error < 0 ? info.system_error : -EINVAL;
  }
  return 0;
}

/* Sets each thread to enter the cache when it is let go. */
static void threads_begin(const struct attaching *attaching, const struct attachment *attachment,
                          const struct blob *blob)
{
  struct attach_info info;
  size_t number = 0;

  memcpy(&info, blob->bytes, sizeof(info));
  const struct attach_thread *threads = (const struct attach_thread *)(const void *)(blob->bytes + info.threads);
  for (size_t i = 0; i < attaching->tracees->count; i++) {
    struct tracee *tracee = &attaching->tracees->list[i];

    if (tracee->is_gone)
      continue;
    tracee->is_changed = true;
    tracee->registers.rip = attachment->thread_entry;
    tracee->registers.rdi = threads[number].thread;
    tracee->registers.gs_base = threads[number].state;
    tracee->registers.orig_rax = UINT64_MAX;
    tracee->registers.eflags = 0x202;
    tracee->mask = ~(uint64_t)MASK_TRAP;
    number++;
  }
}

/* A failure: what was mapped is unmapped, and the threads go on as they were. */
static void undo(struct attaching *attaching)
{
  if (!attaching->first || attaching->first->is_gone)
    return;
  if (attaching->has_begun)
    remote(attaching, SYS_munmap, PLACES_START, ATTACH_PLACES_END - PLACES_START, 0, 0, 0, 0);
  if (attaching->fd >= 0)
    remote(attaching, SYS_close, (uint64_t)attaching->fd, 0, 0, 0, 0, 0);
  if (attaching->image_size)
    remote(attaching, SYS_munmap, ATTACH_IMAGE, attaching->image_size, 0, 0, 0, 0);
}

static int attach_stopped(struct attaching *attaching, const struct attachment *attachment, int runtime_fd,
                          int shared_fd)
{
  struct tracees *tracees = attaching->tracees;
  struct blob blob = {0};
  int r = threads_check(attaching);

  for (size_t i = 0; i < tracees->count && !attaching->first; i++)
    attaching->first = tracees->list[i].is_gone ? NULL : &tracees->list[i];
  if (r >= 0 && !attaching->first)
    r = -ESRCH;
  if (r >= 0)
    r = target_maps_read(tracees->process, &attaching->maps);
  if (r >= 0)
    r = attach_find_syscall(tracees, &attaching->maps);
  if (r >= 0)
    r = filters_check(attaching);
  for (size_t i = 0; i < tracees->count && r >= 0; i++)
    r = tracees->list[i].is_gone ? 0 : tracee_block(&tracees->list[i], ~(uint64_t)MASK_TRAP);
  if (r >= 0)
    r = code_check(attaching);
  if (r >= 0)
    r = scratch_map(attaching, PROCESS_PAGE);
  if (r >= 0)
    r = memory_give(attaching, runtime_fd, shared_fd);
  if (r >= 0)
    r = runtime_begin(attaching, attachment, &blob);
  if (r < 0)
    undo(attaching);
  if (attaching->scratch)
    remote(attaching, SYS_munmap, attaching->scratch, attaching->scratch_size, 0, 0, 0, 0);
  if (r >= 0)
    threads_begin(attaching, attachment, &blob);
  free(blob.bytes);
  filter_verdict_done(&attaching->filter);
  target_maps_done(&attaching->maps);
  return r;
}

int attachment_begin(struct attachment *attachment, struct process *process, int pid, int runtime_fd, int shared_fd)
{
  struct tracees tracees;
  struct attaching attaching = {.process = process, .tracees = &tracees, .attachment = attachment, .fd = -1};
  double start = clock_seconds();

  attachment_place(attachment, ATTACH_IMAGE);
  int r = tracees_stop(&tracees, pid, attachment->breakpoint, attachment->wait, attachment->data);

  if (r < 0) {
    if (r != -EINTR)
      target_complain(pid, r);
    return r;
  }
  r = attach_stopped(&attaching, attachment, runtime_fd, shared_fd);
  tracees_free(&tracees);
  attachment->stopped = clock_seconds() - start;
  if (r < 0 && r != -EINVAL)
    message("process %d: cannot attach to it: %s", pid, strerror(-r));
  return r;
}
