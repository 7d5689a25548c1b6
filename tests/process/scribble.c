/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that writes over the memory that it shares with its recorder. `scribble WAY [NUMBER]`: "used" claims that
 * all notes are used, "truncate" makes the file empty, "punch" gives back a part of it, "flip" writes random bytes into
 * a part of it, "fill" random bytes over all of a part; NUMBER chooses which, always the same. Then it computes for a
 * while, or, with a third word, until a signal ends it; it prints "ready" before that. Its status is 7.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS = 4096, DESCRIPTORS = 1024, USED_AT = 40, STATUS = 7 };

static uint64_t random_state;

static uint64_t random_next(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/* The recorder's descriptor, which a program can find, and which is lower where few are allowed. Returns -1: it is not
 * recorded. */
static int shared_find(void)
{
  struct stat status;
  for (int fd = 3; fd < DESCRIPTORS; fd++)
    if (fstat(fd, &status) == 0 && status.st_size > PAGE * THREADS)
      return fd;
  return -1;
}

/* A part of the shared memory: control page, first pages of threads, notes, steps, logs. */
struct part {
  uint64_t start, size;
};

static struct part part_choose(int fd)
{
  uint64_t control[8] = {0}, notes = PAGE * (1 + (uint64_t)THREADS), steps, logs;
  if (pread(fd, control, sizeof(control), 0) < 0)
    exit(1);
  steps = notes + control[2];
  logs = steps + (uint32_t)control[4] * UINT64_C(32);
  const struct part parts[] = {{0, 128}, {PAGE, 512}, {notes, 65536}, {steps + 8192, 65536}, {logs, 4 << 20}};
  return parts[random_next() % 5];
}

static void flip(int fd, unsigned count)
{
  struct part part = part_choose(fd);
  for (unsigned i = 0; i < count; i++) {
    uint64_t value = random_next();
    uint64_t at = part.start + random_next() % part.size / 4 * 4;
    if (pwrite(fd, &value, random_next() % 4 ? 4 : 1, (off_t)at) < 0)
      exit(1);
  }
}

static void fill(int fd)
{
  struct part part = part_choose(fd);
  uint64_t bytes[PAGE / 8];
  for (uint64_t at = 0; at < part.size; at += PAGE) {
    for (unsigned i = 0; i < PAGE / 8; i++)
      bytes[i] = random_next();
    if (pwrite(fd, bytes, part.size < PAGE ? part.size : PAGE, (off_t)(part.start + at)) < 0)
      exit(1);
  }
}

static void scribble(int fd, const char *way)
{
  uint64_t used = UINT64_C(1) << 34;
  struct part part;
  if (!strcmp(way, "used") && pwrite(fd, &used, sizeof(used), USED_AT) < 0)
    exit(1);
  if (!strcmp(way, "truncate"))
    printf("%s\n", ftruncate(fd, 0) == 0 ? "done" : errno == EPERM ? "refused" : "failed");
  if (!strcmp(way, "punch")) {
    part = part_choose(fd);
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)part.start, (off_t)(part.size + PAGE));
  }
  if (!strcmp(way, "flip"))
    flip(fd, 1 + (unsigned)(random_next() % 64));
  if (!strcmp(way, "fill"))
    fill(fd);
}

/* Enough branches for several parts of a log. */
static unsigned compute(unsigned rounds)
{
  unsigned sum = 1;
  for (unsigned i = 0; i < rounds; i++)
    sum = sum & 1 ? sum * 5 + 3 : sum >> 1 ^ i;
  return sum;
}

int main(int argc, char **argv)
{
  volatile unsigned sum = compute(100000);
  int fd = shared_find();
  if (argc < 2)
    return 2;
  random_state = UINT64_C(0x9E3779B97F4A7C15) * (argc > 2 ? strtoul(argv[2], NULL, 0) + 1 : 1);
  random_next();
  if (fd >= 0)
    scribble(fd, argv[1]);
  puts("ready");
  fflush(stdout);
  do
    sum += compute(4000000);
  while (argc > 3);
  return STATUS;
}
