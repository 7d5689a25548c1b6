/* SPDX-License-Identifier: Apache-2.0
 *
 * Mapping a processor that lies in a file. Pointers in it are of the process that made it: they are made good first.
 */
#include "silicon_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct silicon_file *silicon_open(const char *path, const char *cpu)
{
  int fd = open(path, O_RDWR | O_CLOEXEC | (cpu ? O_CREAT | O_TRUNC : 0), 0600);
  const struct lb_cpu *row = NULL;
  struct silicon_file *file;

  if (fd < 0)
    return NULL;
  if (cpu && ftruncate(fd, sizeof(*file)) < 0)
    return NULL;
  file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (file == MAP_FAILED)
    return NULL;
  if (cpu)
    snprintf(file->cpu, sizeof(file->cpu), "%s", cpu);
  if (lb_cpu_find(file->cpu, &row) < 0) {
    errno = EINVAL;
    return NULL;
  }
  if (cpu && lb_recorder_init(&file->unit, row, NULL, 0) < 0)
    return NULL;
  file->unit.cpu = row;
  lb_recorder_long_mode(&file->unit, lb_cpu_has(row, LB_FEATURE_LONG_MODE));
  return file;
}
