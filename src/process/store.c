/* SPDX-License-Identifier: Apache-2.0
 *
 * The store, as a recording sees it. Its folder has one subfolder for each runtime and processor. The subfolder has one
 * file for each program (runtime/store.c), and the file "numbers", which says which step numbers were given out.
 *
 * Translated code has the numbers of its steps in it. So each recording gets numbers that no other recording gets, and
 * uses only files whose numbers were given out before it began. When the numbers are used up, a new epoch begins, and
 * the files of the old one can no longer be used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "process/process.h"
#include "process/processor.h"
#include "process/shared.h"
#include "process/store_folder.h"

_Static_assert((int)STORE_PATH_MOST <= (int)PROCESS_STORE_PATH, "the control page has room for it");

enum {
  NUMBERS_MAGIC = 0x4E53424C,
  NUMBERS_MOST = 1 << 26, /* then a new epoch begins */
  NUMBERS_TAKEN = 1 << 23 /* by one recording, which gives back those that it does not need */
};

struct numbers {
  uint64_t magic, epoch, next;
};

/* ---- folders ---- */

bool store_path(char ret_path[STORE_PATH_MOST])
{
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  bool is_set = cache && cache[0] == '/';
  int size = is_set ? snprintf(ret_path, STORE_PATH_MOST, "%s/" STORE_NAME, cache)
                    : snprintf(ret_path, STORE_PATH_MOST, "%s/.cache/" STORE_NAME, home ? home : "");

  return (is_set || (home && home[0] == '/')) && size < STORE_PATH_MOST;
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
  return (sum ^ word) * 0x9E3779B97F4A7C15 ^ sum >> 29;
}

/* Translations depend on every byte of the runtime, and on the instructions that it can use. They are not known to
 * depend on anything else of the processor, but including it costs nothing. */
static uint64_t version(void)
{
  uint64_t sum = 0, word = 0;
  const struct processor *processor = processor_get();

  for (const uint8_t *at = process_runtime; at < process_runtime_end; at += sizeof(word)) {
    size_t left = (size_t)(process_runtime_end - at);

    word = 0;
    memcpy(&word, at, left < sizeof(word) ? left : sizeof(word));
    sum = mix(sum, word);
  }
  sum = mix(mix(sum, processor->signature), processor->features);
  return mix(mix(sum, processor->more), processor->options);
}

void store_version(char *ret_name, size_t size)
{
  snprintf(ret_name, size, STORE_FOLDER "%016llx", (unsigned long long)version());
}

/* Opens the folder for this runtime and processor. Returns a descriptor, or -errno. */
static int current_open(char path[STORE_PATH_MOST])
{
  char name[32];
  int store = folder_open(path, true), folder;

  if (store < 0)
    return store;
  if (faccessat(store, STORE_DISABLED, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    close(store);
    return -EPERM;
  }
  store_version(name, sizeof(name));
  size_t length = strlen(path);
  folder = length + 1 + strlen(name) < STORE_PATH_MOST ? folder_open_at(store, name, true) : -ENAMETOOLONG;
  close(store);
  if (folder >= 0)
    snprintf(path + length, STORE_PATH_MOST - length, "/%s", name);
  return folder;
}

/* ---- numbers ---- */

/* Another recording holds the lock for a moment only. */
static bool lock(int fd)
{
  enum { TRIES = 50 };
  const struct timespec moment = {.tv_nsec = 1000 * 1000};

  for (unsigned i = 0; i < TRIES; i++) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
      return true;
    nanosleep(&moment, NULL);
  }
  return false;
}

/* Returns a descriptor with the lock, or -1. */
static int numbers_open(int folder)
{
  struct stat status;
  int fd = openat(folder, "numbers", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

  if (fd < 0)
    return -1;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && lock(fd))
    return fd;
  close(fd);
  return -1;
}

static bool numbers_read(int fd, struct numbers *numbers)
{
  return pread(fd, numbers, sizeof(*numbers), 0) == sizeof(*numbers) && numbers->magic == NUMBERS_MAGIC &&
         numbers->next >= PROCESS_STEPS_UNIT && numbers->next % PROCESS_STEPS_UNIT == 0 &&
         numbers->next <= NUMBERS_MOST;
}

static bool numbers_write(int fd, const struct numbers *numbers)
{
  return pwrite(fd, numbers, sizeof(*numbers), 0) == sizeof(*numbers);
}

static bool epoch_begin(int folder, struct numbers *numbers)
{
  *numbers = (struct numbers){.magic = NUMBERS_MAGIC, .next = PROCESS_STEPS_UNIT};
  folder_empty(folder, false);
  return getrandom(&numbers->epoch, sizeof(numbers->epoch), 0) == sizeof(numbers->epoch);
}

static bool numbers_take(int folder, struct store *store)
{
  struct numbers numbers = {0};
  int fd = numbers_open(folder);

  if (fd < 0)
    return false;
  bool is_good = numbers_read(fd, &numbers) && numbers.next + NUMBERS_TAKEN <= NUMBERS_MOST;
  if (!is_good)
    is_good = epoch_begin(folder, &numbers);
  store->base = (uint32_t)numbers.next;
  store->limit = store->base + NUMBERS_TAKEN;
  store->epoch = numbers.epoch;
  numbers.next = store->limit;
  is_good = is_good && numbers_write(fd, &numbers);
  close(fd);
  return is_good;
}

/* Whether code in files of the folder cannot be executed. */
static bool is_noexec(int folder)
{
  struct statvfs status;

  return fstatvfs(folder, &status) < 0 || status.f_flag & ST_NOEXEC;
}

void store_begin(struct store *ret_store, uint32_t most)
{
  struct store store = {.folder = ""};
  int folder = most > NUMBERS_MOST && store_path(store.folder) ? current_open(store.folder) : -1;

  if (folder < 0 || is_noexec(folder) || !numbers_take(folder, &store))
    store = (struct store){.folder = ""};
  if (folder >= 0)
    close(folder);
  *ret_store = store;
}

/* Gives back the numbers from `next` on, unless another recording has taken numbers since. */
static void numbers_give_back(int folder, const struct store *store, uint64_t next)
{
  struct numbers numbers;
  int fd = numbers_open(folder);

  if (fd < 0)
    return;
  if (numbers_read(fd, &numbers) && numbers.epoch == store->epoch && numbers.next == store->limit) {
    numbers.next = next;
    numbers_write(fd, &numbers);
  }
  close(fd);
}

void store_end(const struct store *store, uint32_t used, bool has_stored)
{
  char path[STORE_PATH_MOST];
  uint64_t next = (used + (uint64_t)PROCESS_STEPS_UNIT - 1) / PROCESS_STEPS_UNIT * PROCESS_STEPS_UNIT;
  int folder = store->folder[0] ? folder_open(store->folder, false) : -1;

  if (folder < 0)
    return;
  if (next < store->limit)
    numbers_give_back(folder, store, has_stored && next > store->base ? next : store->base);
  close(folder);
  if (has_stored && store_path(path))
    store_trim(path, store_size_most());
}
