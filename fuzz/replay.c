/* SPDX-License-Identifier: Apache-2.0
 *
 * The main() that a fuzz target gets in ordinary builds: it feeds the target the empty input and every file of the
 * folders and files named on the command line, so that what fuzzing once found stays found. With the sanitizers on,
 * each input lies in a block of its own size: a read past its end shows.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int input_read(FILE *file, size_t size, uint8_t **ret_data)
{
  uint8_t *data = malloc(size ? size : 1);

  if (!data)
    return -ENOMEM;
  if (fread(data, 1, size, file) != size) {
    free(data);
    return -EIO;
  }
  *ret_data = data;
  return 0;
}

static int file_replay(const char *path, size_t size)
{
  FILE *file = fopen(path, "rb");
  uint8_t *data;
  int r;

  if (!file)
    return -errno;
  r = input_read(file, size, &data);
  fclose(file);
  if (r < 0)
    return r;
  LLVMFuzzerTestOneInput(data, size);
  free(data);
  return 1;
}

static int path_replay(const char *path);

static int entry_replay(const char *folder, const char *name)
{
  char *path;
  int r;

  if (asprintf(&path, "%s/%s", folder, name) < 0)
    return -ENOMEM;
  r = path_replay(path);
  free(path);
  return r;
}

/* Returns how many inputs it fed, or -errno. */
static int folder_replay(const char *path)
{
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, alphasort);
  int total = 0, r;

  if (count < 0)
    return -errno;
  for (int i = 0; i < count; i++) {
    if (total >= 0 && entries[i]->d_name[0] != '.') {
      r = entry_replay(path, entries[i]->d_name);
      total = r < 0 ? r : total + r;
    }
    free(entries[i]);
  }
  free(entries);
  return total;
}

static int path_replay(const char *path)
{
  struct stat status;

  if (stat(path, &status) < 0)
    return -errno;
  return S_ISDIR(status.st_mode) ? folder_replay(path) : file_replay(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
  static const uint8_t nothing[1];
  int total = 0, r;

  LLVMFuzzerTestOneInput(nothing, 0);
  for (int i = 1; i < argc; i++) {
    r = path_replay(argv[i]);
    if (r < 0) {
      fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
      return 1;
    }
    total += r;
  }
  printf("%d inputs\n", total);
  return total > 0 ? 0 : 1; /* a corpus that vanished must not look like success */
}
