/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of `lbr machine`: images and kernels that go in, and text that comes out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "session/machine.h"

#define MULTIBOOT_MAGIC 0x1BADB002u
#define MULTIBOOT_SEARCH 8192u /* the header is within the first bytes (multiboot specification 3.1) */

static int file_complain(const char *name, const char *what)
{
  message("%s: %s", name, what);
  return -EINVAL;
}

int machine_file_open(struct machine_file *file, const char *name)
{
  int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not make us wait */
  struct stat status;
  void *bytes = MAP_FAILED;
  int r = 0;

  if (fd < 0 || fstat(fd, &status) < 0)
    r = file_complain(name, strerror(errno));
  else if (S_ISDIR(status.st_mode))
    r = file_complain(name, "a directory, not an image or a kernel");
  else if (!S_ISREG(status.st_mode))
    r = file_complain(name, "not a regular file; copy its contents to a file first");
  else if (status.st_size == 0)
    r = file_complain(name, "the file is empty");
  if (r >= 0) {
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
      r = file_complain(name, strerror(errno));
  }
  if (fd >= 0)
    close(fd);
  if (r >= 0)
    *file = (struct machine_file){name, bytes, (size_t)status.st_size};
  return r;
}

void machine_file_close(struct machine_file *file)
{
  if (file->bytes)
    munmap((void *)(uintptr_t)file->bytes, file->size);
  *file = (struct machine_file){0};
}

bool machine_file_is_text(const struct machine_file *file)
{
  for (size_t i = 0; i < file->size; i++) {
    uint8_t byte = file->bytes[i];

    if ((byte < ' ' && !strchr("\t\n\f\r", byte)) || byte == 0 || byte == 0x7F)
      return false;
  }
  return file->size && file->bytes[file->size - 1] == '\n';
}

static bool has_multiboot_header(const struct machine_file *file)
{
  size_t end = file->size < MULTIBOOT_SEARCH ? file->size : MULTIBOOT_SEARCH;

  for (size_t i = 0; i + 12 <= end; i += 4) {
    uint32_t magic = bytes_get_u32(file->bytes + i), flags = bytes_get_u32(file->bytes + i + 4);

    if (magic == MULTIBOOT_MAGIC && magic + flags + bytes_get_u32(file->bytes + i + 8) == 0)
      return true;
  }
  return false;
}

enum image_sort machine_file_sort(const struct machine_file *file)
{
  static const size_t floppies[] = {163840, 184320, 327680, 368640, 655360, 737280, 1228800, 1474560, 1720320, 2949120};
  bool is_boot_sector = file->size >= 512 && file->bytes[510] == 0x55 && file->bytes[511] == 0xAA;

  if (file->size >= 4 && !memcmp(file->bytes, "\177ELF", 4))
    return IMAGE_KERNEL;
  for (size_t i = 0; i < sizeof(floppies) / sizeof(*floppies); i++)
    if (file->size == floppies[i])
      return IMAGE_FLOPPY;
  if (machine_is_linux(&(struct machine_image){file->bytes, file->size}))
    return IMAGE_KERNEL;
  return !is_boot_sector && has_multiboot_header(file) ? IMAGE_KERNEL : IMAGE_DISK;
}

/* ---- output ---- */

int machine_output_open(const char *name, FILE *console, FILE **ret_file)
{
  FILE *file;
  int fd;

  if (!strcmp(name, "-")) {
    *ret_file = console;
    return 0;
  }
  fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
  file = fd < 0 ? NULL : fdopen(fd, "w");
  if (!file) {
    file_complain(name, errno == ELOOP ? "a symbolic link; name the file itself" : strerror(errno));
    if (fd >= 0)
      close(fd);
    return -EIO;
  }
  *ret_file = file;
  return 0;
}

int machine_output_close(const char *name, const FILE *console, FILE *file)
{
  bool is_bad;

  if (!file)
    return 0;
  errno = 0;
  is_bad = ferror(file);
  if (file != console)
    is_bad |= fclose(file) != 0;
  if (!is_bad)
    return 0;
  message("%s: cannot write: %s", name, errno ? lb_strerror(-errno) : "an earlier write failed");
  return -EIO;
}
