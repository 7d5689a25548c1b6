/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that `lbr live --arm` stores for `--disarm`: a small file for each processor, in a directory that does not
 * survive a reboot, as the registers do not. Only files that belong to root are accepted, and hardware_live_adopt
 * checks their contents.
 *
 *   lbr live 1
 *   boot 6f3e...                                  of /proc/sys/kernel/random/boot_id
 *   change 0x1d9 0x1 0x0 0x1                      register, bits, their old value, their new value
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "session/live.h"

#define HEAD "lbr live 1"
#define FILE_MAX 2048
#define NAME_MAX_LENGTH 32

static void state_name(unsigned number, char name[NAME_MAX_LENGTH])
{
  snprintf(name, NAME_MAX_LENGTH, "cpu-%u", number);
}

/* The identity of this boot; "" if the kernel does not tell. */
static void boot_read(char *boot, size_t size)
{
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, boot, size - 1);

  boot[got < 0 ? 0 : got] = '\0';
  boot[strcspn(boot, "\n")] = '\0';
  if (fd >= 0)
    close(fd);
}

/* ---- the text ---- */

/* The next word of a line; "" if there is none. */
static const char *line_word(char **line)
{
  const char *word = strsep(line, " ");

  return word ? word : "";
}

static bool change_parse(char *line, struct hardware_change *change)
{
  uint64_t msr;

  if (strcmp(line_word(&line), "change") != 0 || number_parse(line_word(&line), &msr) < 0 || msr > UINT32_MAX ||
      number_parse(line_word(&line), &change->mask) < 0 || number_parse(line_word(&line), &change->before) < 0 ||
      number_parse(line_word(&line), &change->after) < 0 || line)
    return false;
  change->msr = (uint32_t)msr;
  return !(change->before & ~change->mask) && !(change->after & ~change->mask);
}

int live_state_parse(const char *text, const char *boot, struct hardware_change changes[HARDWARE_CHANGES_MAX])
{
  char copy[FILE_MAX], expected[128], *rest = copy, *line;
  int count = 0;

  if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
    return LB_E_BAD_SYNTAX;
  line = strsep(&rest, "\n");
  if (strcmp(line, HEAD) != 0)
    return LB_E_BAD_SYNTAX;
  snprintf(expected, sizeof(expected), "boot %s", boot);
  line = strsep(&rest, "\n");
  if (!line || strncmp(line, "boot ", strlen("boot ")) != 0)
    return LB_E_BAD_SYNTAX;
  if (strcmp(line, expected) != 0)
    return 0;
  while ((line = strsep(&rest, "\n")) && *line) {
    struct hardware_change change = {0};

    if (count == HARDWARE_CHANGES_MAX || !change_parse(line, &change))
      return LB_E_BAD_SYNTAX;
    changes[count++] = change;
  }
  return count;
}

/* ---- the file ---- */

/* Opens the directory, which no other user may write to. Returns a descriptor, or -errno. */
static int directory_open(const char *path)
{
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;

  if (fd < 0)
    return -errno;
  if (fstat(fd, &status) < 0 || status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH)) {
    close(fd);
    return -EPERM;
  }
  return fd;
}

/* Reads a file, which must be our own and have only this name. */
static int file_read(int directory, const char *name, char *text, size_t size)
{
  int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), r = 0;
  struct stat status;
  ssize_t got = -1;

  if (fd < 0)
    return -errno;
  if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1)
    r = -EPERM;
  else if ((got = read(fd, text, size - 1)) < 0)
    r = -errno;
  close(fd);
  if (r >= 0)
    text[got] = '\0';
  return r;
}

int live_state_read(const char *directory, unsigned number, struct live_state *ret_state)
{
  char name[NAME_MAX_LENGTH], text[FILE_MAX], boot[64];
  struct live_state state = {0};
  int fd = directory_open(directory), r = fd;

  state_name(number, name);
  if (fd >= 0) {
    r = file_read(fd, name, text, sizeof(text));
    close(fd);
  }
  if (r >= 0) {
    boot_read(boot, sizeof(boot));
    r = live_state_parse(text, boot, state.changes);
  }
  if (r > 0) {
    state.exists = true;
    state.count = (unsigned)r;
  }
  if (r < 0 && r != -ENOENT) {
    message("%s/%s: %s; remove it", directory, name, r == -EPERM ? "not owned by root alone" : lb_strerror(r));
    return r;
  }
  *ret_state = state;
  return 0;
}

static int file_write(int directory, const char *name, const char *text)
{
  size_t size = strlen(text);
  int fd, r = 0;

  unlinkat(directory, name, 0); /* from an earlier boot */
  fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    return -errno;
  if (write(fd, text, size) != (ssize_t)size)
    r = -EIO;
  if (close(fd) < 0 && r == 0)
    r = -errno;
  if (r < 0)
    unlinkat(directory, name, 0);
  return r;
}

static int state_text(const struct hardware_undo *undo, struct text *text)
{
  char boot[64];
  int r;

  boot_read(boot, sizeof(boot));
  r = text_addf(text, "%s\nboot %s\n", HEAD, boot);
  for (int i = 0; i < undo->count && r >= 0; i++) {
    const struct hardware_change *change = &undo->changes[i];

    r = text_addf(text, "change 0x%x 0x%llx 0x%llx 0x%llx\n", change->msr, (unsigned long long)change->mask,
                  (unsigned long long)change->before, (unsigned long long)change->after);
  }
  return r;
}

int live_state_write(const char *directory, unsigned number, const struct hardware_undo *undo)
{
  char name[NAME_MAX_LENGTH];
  struct text text = {0};
  int r = state_text(undo, &text), fd = -1;

  state_name(number, name);
  if (r >= 0) {
    (void)mkdir(directory, 0700);
    r = fd = directory_open(directory);
  }
  if (r >= 0)
    r = file_write(fd, name, text_string(&text));
  if (fd >= 0)
    close(fd);
  text_done(&text);
  if (r < 0)
    message("%s: cannot save the old register values (%s); --state-directory names another directory", directory,
            lb_strerror(r));
  return r;
}

void live_state_remove(const char *directory, unsigned number)
{
  char name[NAME_MAX_LENGTH];
  int fd = directory_open(directory);

  if (fd < 0)
    return;
  state_name(number, name);
  unlinkat(fd, name, 0);
  close(fd);
}
