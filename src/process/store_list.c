/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the store: listing and removing them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "process/store.h"
#include "process/store_file.h"
#include "process/store_folder.h"

/* ---- folders ---- */

static bool is_ours(int fd)
{
  struct stat status;

  return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & 022);
}

int folder_open_at(int parent, const char *name, bool is_made)
{
  int fd = -1;

  if (is_made && mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
    return -errno;
  fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  if (is_ours(fd))
    return fd;
  close(fd);
  return -EPERM;
}

/* Opens the parent folder of the path; ~/.cache may be missing. The parent may be a link, but the user must own it:
 * root must not leave files in the home of another user. */
static int parent_open(const char *path, bool is_made)
{
  char parent[STORE_PATH_MOST];
  const char *end = strrchr(path, '/');
  size_t length = end ? (size_t)(end - path) : 0;

  if (!length || length >= sizeof(parent))
    return -EINVAL;
  memcpy(parent, path, length);
  parent[length] = 0;
  if (is_made && mkdir(parent, 0700) < 0 && errno != EEXIST)
    return -errno;
  int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  if (is_ours(fd))
    return fd;
  close(fd);
  return -EPERM;
}

int folder_open(const char *path, bool is_made)
{
  int parent = parent_open(path, is_made);
  int fd = parent < 0 ? parent : folder_open_at(parent, strrchr(path, '/') + 1, is_made);

  if (parent >= 0)
    close(parent);
  return fd;
}

/* ---- files ---- */

static bool ends_with(const char *name, const char *end)
{
  size_t length = strlen(name), size = strlen(end);

  return length >= size && !strcmp(name + length - size, end);
}

/* Calls the function for each name in the folder, which it closes, until the function returns less than 0. */
static int folder_walk(int folder, int (*function)(void *context, int folder, const char *name), void *context)
{
  DIR *directory = fdopendir(folder);
  const struct dirent *entry;
  int r = 0;

  if (!directory) {
    close(folder);
    return -errno;
  }
  while (r >= 0 && (entry = readdir(directory)))
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      r = function(context, dirfd(directory), entry->d_name);
  closedir(directory);
  return r < 0 ? r : 0;
}

struct emptying {
  bool is_all;
  uint64_t freed;
};

static int file_remove(void *context, int folder, const char *name)
{
  struct emptying *emptying = context;
  struct stat status = {0};

  if (!emptying->is_all && !ends_with(name, STORE_SUFFIX) && !ends_with(name, STORE_SUFFIX_NEW))
    return 0;
  fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW);
  if (unlinkat(folder, name, 0) == 0)
    emptying->freed += (uint64_t)status.st_blocks * 512;
  return 0;
}

uint64_t folder_empty(int folder, bool is_all)
{
  struct emptying emptying = {.is_all = is_all};
  int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (copy >= 0)
    folder_walk(copy, file_remove, &emptying);
  return emptying.freed;
}

/* ---- the list ---- */

/* A file and the folder that it is in. */
struct found {
  struct store_file file;
  char folder[64], name[64];
};

struct finding {
  struct found *found;
  size_t count, capacity;
  const char *folder;
};

static void header_take(int folder, const char *name, struct store_file *file)
{
  struct store_header header = {0};
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

  if (fd < 0)
    return;
  if (read(fd, &header, sizeof(header)) == sizeof(header) && header.magic == STORE_MAGIC) {
    header.program[sizeof(header.program) - 1] = 0;
    memcpy(file->program, header.program, sizeof(header.program));
    file->units = header.unit_count;
  }
  close(fd);
}

static int file_find(void *context, int folder, const char *name)
{
  struct finding *finding = context;
  struct stat status;
  bool is_code = ends_with(name, STORE_SUFFIX), is_new = ends_with(name, STORE_SUFFIX_NEW);

  if ((!is_code && !is_new) || strlen(name) >= sizeof(finding->found->name) ||
      fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode))
    return 0;
  struct found *found = array_append(&finding->found, &finding->count, &finding->capacity);
  if (!found)
    return -ENOMEM;
  *found = (struct found){.file = {.size = (uint64_t)status.st_blocks * 512}};
  found->file.used = status.st_atime > status.st_mtime ? status.st_atime : status.st_mtime;
  memcpy(found->folder, finding->folder, strlen(finding->folder) + 1);
  memcpy(found->name, name, strlen(name) + 1);
  if (is_code)
    header_take(folder, name, &found->file);
  return 0;
}

static int folder_find(void *context, int store, const char *name)
{
  struct finding *finding = context;

  if (strncmp(name, STORE_FOLDER, strlen(STORE_FOLDER)) != 0 || strlen(name) >= sizeof(finding->found->folder))
    return 0;
  int folder = folder_open_at(store, name, false);
  finding->folder = name;
  return folder < 0 ? 0 : folder_walk(folder, file_find, finding);
}

/* Returns 0 or -errno. The caller frees finding->found in any case. */
static int find_all(const char *path, struct finding *finding)
{
  int store = folder_open(path, false);

  if (store < 0)
    return store == -ENOENT ? 0 : store;
  return folder_walk(store, folder_find, finding);
}

static int compare_size(const void *one, const void *other)
{
  const struct store_file *a = one, *b = other;

  return a->size != b->size ? (a->size < b->size) - (a->size > b->size) : strcmp(a->program, b->program);
}

int store_list(const char *path, struct store_list *ret_list)
{
  struct finding finding = {0};
  struct store_list list = {0};
  char current[64];
  int r = find_all(path, &finding);

  store_version(current, sizeof(current));
  list.files = calloc(finding.count + 1, sizeof(*list.files));
  if (!list.files)
    r = -ENOMEM;
  for (size_t i = 0; i < finding.count && list.files; i++) {
    list.files[i] = finding.found[i].file;
    list.files[i].is_old = strcmp(finding.found[i].folder, current) != 0;
    list.size += list.files[i].size;
  }
  list.count = list.files ? finding.count : 0;
  free(finding.found);
  if (list.count)
    qsort(list.files, list.count, sizeof(*list.files), compare_size);
  if (r < 0)
    store_list_done(&list);
  *ret_list = list;
  return r;
}

void store_list_done(struct store_list *list)
{
  free(list->files);
  *list = (struct store_list){0};
}

/* ---- removing ---- */

static int compare_used(const void *one, const void *other)
{
  const struct found *a = one, *b = other;

  return a->file.used != b->file.used ? (a->file.used > b->file.used) - (a->file.used < b->file.used)
                                      : strcmp(a->name, b->name);
}

static void found_remove(int store, const struct found *found)
{
  int folder = folder_open_at(store, found->folder, false);

  if (folder < 0)
    return;
  unlinkat(folder, found->name, 0);
  close(folder);
}

void store_trim(const char *path, uint64_t size_most)
{
  struct finding finding = {0};
  uint64_t size = 0;
  int store = folder_open(path, false);

  if (find_all(path, &finding) >= 0 && store >= 0) {
    if (finding.count)
      qsort(finding.found, finding.count, sizeof(*finding.found), compare_used);
    for (size_t i = 0; i < finding.count; i++)
      size += finding.found[i].file.size;
    for (size_t i = 0; i < finding.count && size > size_most; i++) {
      found_remove(store, &finding.found[i]);
      size -= finding.found[i].file.size;
    }
  }
  if (store >= 0)
    close(store);
  free(finding.found);
}

static int folder_clear(void *context, int store, const char *name)
{
  uint64_t *freed = context;
  int folder;

  if (strncmp(name, STORE_FOLDER, strlen(STORE_FOLDER)) != 0)
    return 0;
  folder = folder_open_at(store, name, false);
  if (folder < 0)
    return folder;
  *freed += folder_empty(folder, true);
  close(folder);
  return unlinkat(store, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY ? -errno : 0;
}

int64_t store_clear(const char *path)
{
  uint64_t freed = 0;
  int store = folder_open(path, false);

  if (store < 0)
    return store == -ENOENT ? 0 : store;
  int r = folder_walk(store, folder_clear, &freed);
  return r < 0 ? r : (int64_t)freed;
}

/* ---- settings ---- */

bool store_is_disabled(const char *path)
{
  int store = folder_open(path, false);
  bool is_disabled = store >= 0 && faccessat(store, STORE_DISABLED, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

  if (store >= 0)
    close(store);
  return is_disabled;
}

int store_set_disabled(const char *path, bool is_disabled)
{
  int store = folder_open(path, true), r = 0;

  if (store < 0)
    return store;
  if (is_disabled) {
    int fd = openat(store, STORE_DISABLED, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    r = fd < 0 ? -errno : 0;
    if (fd >= 0)
      close(fd);
  } else if (unlinkat(store, STORE_DISABLED, 0) < 0 && errno != ENOENT) {
    r = -errno;
  }
  close(store);
  return r;
}

uint64_t store_size_most(void)
{
  const char *text = getenv("LBR_CACHE_LIMIT");
  uint64_t size = 0;

  return text && number_parse(text, &size) == 0 ? size : STORE_SIZE_MOST;
}
