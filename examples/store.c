/* SPDX-License-Identifier: Apache-2.0
 *
 * A small key-value server with a rare slow path: after every 5000 changes the thread that makes the last of them saves
 * the table to a file, and holds the lock meanwhile. Requests of other connections then wait for the lock. doc/tour.md
 * asks with lbr why some requests are slow.
 *
 *   gcc -g -O1 -pthread examples/store.c -o store
 *   ./store serve store.socket &
 *   ./store load store.socket 20000
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 1024, SAVE_EVERY = 5000, CLIENTS = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char table[KEYS][64];
static unsigned changes;
static const char *path;
static unsigned wanted; /* requests of each client */

/* ---- the server ---- */

__attribute__((noinline)) static void save(void)
{
  FILE *file = tmpfile();

  if (!file)
    return;
  for (unsigned round = 0; round < 64; round++)
    fwrite(table, sizeof(table), 1, file);
  fflush(file);
  fsync(fileno(file));
  fclose(file);
}

__attribute__((noinline)) static void set(unsigned key, const char *value)
{
  pthread_mutex_lock(&lock);
  snprintf(table[key], sizeof(table[key]), "%s", value);
  if (++changes % SAVE_EVERY == 0)
    save();
  pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void get(unsigned key, char *value, size_t size)
{
  pthread_mutex_lock(&lock);
  snprintf(value, size, "%s", table[key]);
  pthread_mutex_unlock(&lock);
}

/* A request is "get KEY" or "set KEY VALUE". */
__attribute__((noinline)) static size_t request(const char *line, char *answer, size_t size)
{
  unsigned key = (unsigned)strtoul(line + 4, NULL, 10) % KEYS;
  const char *value = strchr(line + 4, ' ');

  if (!strncmp(line, "set ", 4) && value)
    set(key, value + 1);
  get(key, answer, size);
  return strlen(answer);
}

static void *serve(void *data)
{
  int connection = (int)(intptr_t)data;
  char line[128], answer[65];
  ssize_t size;

  while ((size = read(connection, line, sizeof(line) - 1)) > 0) {
    line[size] = 0;
    size_t length = request(line, answer, sizeof(answer) - 1);
    answer[length] = '\n';
    if (write(connection, answer, length + 1) < 0)
      break;
  }
  close(connection);
  return NULL;
}

static int server(const struct sockaddr_un *address)
{
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);

  unlink(path);
  if (fd < 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 || listen(fd, CLIENTS) < 0)
    return perror(path), 1;
  for (;;) {
    int connection = accept(fd, NULL, NULL);
    pthread_t thread;

    if (connection < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)connection))
      return perror("accept"), 1;
    pthread_detach(thread);
  }
}

/* ---- the load ---- */

static double now(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the longest time that a request took, in microseconds. */
static void *client(void *data)
{
  const struct sockaddr_un *address = data;
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  double *longest = calloc(1, sizeof(*longest));
  char line[128];

  if (!longest || fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
    return perror(path), free(longest), NULL;
  for (unsigned i = 0; i < wanted; i++) {
    int size = snprintf(line, sizeof(line), i % 2 ? "get %u" : "set %u value-%u", i % KEYS, i);
    double start = now();

    if (write(fd, line, (size_t)size) < 0 || read(fd, line, sizeof(line)) <= 0)
      return perror(path), free(longest), NULL;
    if (now() - start > *longest)
      *longest = now() - start;
  }
  close(fd);
  return longest;
}

static int load(struct sockaddr_un *address)
{
  pthread_t threads[CLIENTS];
  double longest = 0;

  for (unsigned i = 0; i < CLIENTS; i++)
    if (pthread_create(&threads[i], NULL, client, address))
      return perror("thread"), 1;
  for (unsigned i = 0; i < CLIENTS; i++) {
    void *result;

    pthread_join(threads[i], &result);
    if (!result)
      return 1;
    longest = *(double *)result > longest ? *(double *)result : longest;
    free(result);
  }
  printf("%u requests, the longest took %.0f us\n", CLIENTS * wanted, 1e6 * longest);
  return 0;
}

int main(int argc, char **argv)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int is_server = argc == 3 && !strcmp(argv[1], "serve"), is_load = argc == 4 && !strcmp(argv[1], "load");

  if (!is_server && !is_load)
    return fputs("usage: store serve SOCKET | store load SOCKET REQUESTS\n", stderr), 2;
  path = argv[2];
  snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
  wanted = is_load ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
  return is_server ? server(&address) : load(&address);
}
