/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to gdb. A port is open on 127.0.0.1 only, a Unix socket for its owner only, because the protocol has
 * no passwords.
 */
#include "gdb/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "session/session.h"

#define UNIX "unix:"
#define PORT_MAX 65535u
#define LOOK_MILLISECONDS 200

/* ---- bytes ---- */

/* Whether a signal that would end lbr has arrived and is blocked or caught. */
static bool is_told_to_end(unsigned ends)
{
  sigset_t set;

  return relay_count() != ends || (sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
                                                             sigismember(&set, SIGHUP)));
}

/* Waits until a file is ready. Returns 0, or -ECANCELED. */
static int connection_wait(const struct gdb_connection *connection, int fd, short events)
{
  struct pollfd look = {.fd = fd, .events = events};

  while (poll(&look, 1, LOOK_MILLISECONDS) <= 0)
    if (is_told_to_end(connection->ends))
      return -ECANCELED;
  return 0;
}

static ssize_t connection_read(void *data, void *bytes, size_t size)
{
  const struct gdb_connection *connection = data;
  ssize_t r = connection_wait(connection, connection->in, POLLIN);

  if (r < 0)
    return r;
  do
    r = read(connection->in, bytes, size);
  while (r < 0 && errno == EINTR);
  return r < 0 ? -errno : r;
}

ssize_t gdb_connection_put(const struct gdb_connection *connection, const void *bytes, size_t size)
{
  bool is_socket = connection->out != STDOUT_FILENO;
  ssize_t r =
    is_socket ? send(connection->out, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) : write(connection->out, bytes, size);

  if (r < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
    return 0;
  return r < 0 ? -errno : r;
}

/* A client that does not read must not keep lbr from ending. */
static int connection_write(void *data, const void *bytes, size_t size)
{
  const struct gdb_connection *connection = data;
  const char *at = bytes;

  while (size) {
    ssize_t r = gdb_connection_put(connection, at, size);

    if (!r)
      r = connection_wait(connection, connection->out, POLLOUT);
    if (r < 0)
      return (int)r;
    at += r;
    size -= (size_t)r;
  }
  return 0;
}

static bool connection_is_ready(void *data)
{
  const struct gdb_connection *connection = data;
  struct pollfd look = {.fd = connection->in, .events = POLLIN};

  return poll(&look, 1, 0) > 0;
}

static void connection_init(struct gdb_connection *connection, int in, int out)
{
  *connection = (struct gdb_connection){.in = in,
                                        .out = out,
                                        .ends = relay_count(),
                                        .io = {connection, connection_read, connection_write, connection_is_ready}};
}

void gdb_connect_stdio(struct gdb_connection *ret_connection)
{
  connection_init(ret_connection, STDIN_FILENO, STDOUT_FILENO);
}

void gdb_connection_close(struct gdb_connection *connection)
{
  if (connection->in != STDIN_FILENO)
    close(connection->in);
}

/* ---- listening ---- */

static bool place_is_unix(const char *place)
{
  return !strncmp(place, UNIX, strlen(UNIX));
}

bool gdb_listen_is_place(const char *place)
{
  uint64_t port;

  if (place_is_unix(place))
    return place[strlen(UNIX)] && strlen(place) - strlen(UNIX) < sizeof(((struct sockaddr_un *)0)->sun_path);
  return number_parse(place, &port) >= 0 && port <= PORT_MAX;
}

/* This and the next function return a listening socket, or -errno. */
static int listen_unix(const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r = 0;
  mode_t mask;

  if (fd < 0)
    return -errno;
  memcpy(address.sun_path, path, strlen(path));
  mask = umask(0177);
  if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
    r = -errno;
  umask(mask);
  if (r < 0)
    close(fd);
  return r < 0 ? r : fd;
}

static int listen_port(uint64_t port)
{
  struct sockaddr_in address = {
    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, r = 0;

  if (fd < 0)
    return -errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
    r = -errno;
  if (r < 0)
    close(fd);
  return r < 0 ? r : fd;
}

/* Port 0 means any free port: reports which one it is. */
void gdb_listener_announce(const struct gdb_listener *listener)
{
  struct sockaddr_in address = {0};
  socklen_t size = sizeof(address);

  if (listener->path) {
    message("waiting for gdb: target remote %s", listener->path);
    return;
  }
  getsockname(listener->fd, (struct sockaddr *)&address, &size);
  message("waiting for gdb: target remote 127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
}

/* Whether the process has ended, or lbr is to end. */
static bool is_in_vain(int pid, unsigned ends)
{
  siginfo_t end = {0};

  if (pid && waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == pid)
    return true;
  return is_told_to_end(ends);
}

/* Returns the socket of the client, or -errno. */
static int client_accept(int listener)
{
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;

  if (fd < 0)
    return -errno;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* fails on a Unix socket, which does no harm */
  return fd;
}

static int ready_wait(int fd, int pid, unsigned ends)
{
  struct pollfd look = {.fd = fd, .events = POLLIN};

  while (poll(&look, 1, LOOK_MILLISECONDS) <= 0)
    if (is_in_vain(pid, ends))
      return -ECANCELED;
  return 0;
}

void gdb_listen_refuse(void)
{
  message("refused a client that is not gdb");
}

/* Reads the first byte of a client. Returns 1 if it is a gdb; 0 if it is not, after a message; or -errno. */
static int client_check(int fd, int pid, unsigned ends)
{
  uint8_t byte;
  int r = ready_wait(fd, pid, ends);

  if (r < 0)
    return r;
  if (recv(fd, &byte, 1, MSG_PEEK) == 1 && gdb_is_first_byte(byte))
    return 1;
  gdb_listen_refuse();
  return 0;
}

/* Waits for a gdb to connect, as long as process `pid` runs (0: forever). Other clients are refused. Returns the
 * socket, or -errno. */
static int client_wait(int listener, int pid)
{
  unsigned ends = relay_count();
  int r, fd;

  for (;;) {
    r = ready_wait(listener, pid, ends);
    fd = r < 0 ? r : client_accept(listener);
    if (fd < 0)
      return fd;
    r = client_check(fd, pid, ends);
    if (r > 0)
      return fd;
    close(fd);
    if (r < 0)
      return r;
  }
}

int gdb_listener_open(const char *place, struct gdb_listener *ret_listener)
{
  const char *path = place_is_unix(place) ? place + strlen(UNIX) : NULL;
  uint64_t port = 0;
  int fd;

  if (!path)
    number_parse(place, &port);
  fd = path ? listen_unix(path) : listen_port(port);
  if (fd < 0) {
    message("cannot listen on %s: %s", place, strerror(-fd));
    return fd;
  }
  *ret_listener = (struct gdb_listener){fd, path};
  return 0;
}

int gdb_listener_take(const struct gdb_listener *listener, int milliseconds, struct gdb_connection *ret_connection)
{
  struct pollfd look = {.fd = listener->fd, .events = POLLIN};
  int fd;

  if (poll(&look, 1, milliseconds) <= 0)
    return 0;
  fd = client_accept(listener->fd);
  if (fd < 0)
    return fd;
  connection_init(ret_connection, fd, fd);
  return 1;
}

void gdb_listener_close(struct gdb_listener *listener)
{
  if (listener->fd >= 0)
    close(listener->fd);
  if (listener->fd >= 0 && listener->path)
    unlink(listener->path);
  listener->fd = -1;
}

int gdb_listener_accept(struct gdb_listener *listener, int pid, struct gdb_connection *ret_connection)
{
  int fd = client_wait(listener->fd, pid);

  gdb_listener_close(listener);
  if (fd < 0) {
    message("gdb did not connect: %s", strerror(-fd));
    return fd;
  }
  connection_init(ret_connection, fd, fd);
  return 0;
}

int gdb_listen(const char *place, struct gdb_connection *ret_connection)
{
  struct gdb_listener listener;
  int r = gdb_listener_open(place, &listener);

  if (r < 0)
    return r;
  gdb_listener_announce(&listener);
  return gdb_listener_accept(&listener, 0, ret_connection);
}
