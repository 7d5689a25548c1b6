/* SPDX-License-Identifier: Apache-2.0
 *
 * --gdb: listens, and serves one gdb after the other. While one is connected, it decides when the guest runs; the rest
 * of the run (the screen, the serial line, --until) continues.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "gdb/target_machine.h"

#define IDLE_MILLISECONDS 50
#define MSR_FS_BASE 0xC0000100u
#define LINUX_LOAD_FLAGS 0x236u /* bit 0: it has a 64-bit entry point */

/* ---- the connection ---- */

/* While the machine is stopped, the rest of the run continues. */
static ssize_t way_read(void *data, void *bytes, size_t size)
{
  struct gdb_machine *gdb = data;
  const struct gdb_io *io = &gdb->connection.io;

  while (!io->is_ready(io->data))
    if (gdb->front->wait(gdb->front->data, gdb->connection.in, IDLE_MILLISECONDS)) {
      gdb->is_over = true;
      return 0;
    }
  return io->read(io->data, bytes, size);
}

/* A gdb that does not read must delay neither signals nor --until seconds, which is `end`. Returns false if the run is
 * over. */
static bool room_wait(struct gdb_machine *gdb, double end)
{
  struct pollfd look = {.fd = gdb->connection.out, .events = POLLOUT};

  if (poll(&look, 1, IDLE_MILLISECONDS) > 0)
    return true;
  gdb->is_over |= gdb->front->wait(gdb->front->data, -1, 0);
  if (!gdb->is_over && end > 0 && clock_seconds() >= end) {
    gdb->session->end = END_SECONDS;
    gdb->is_over = true;
  }
  return !gdb->is_over;
}

static int way_write(void *data, const void *bytes, size_t size)
{
  struct gdb_machine *gdb = data;
  double limit = gdb->session->arguments->until_seconds;
  double end = limit > 0 ? clock_seconds() + limit - gdb->session->seconds : 0;
  const char *at = bytes;

  while (size) {
    ssize_t r = gdb_connection_put(&gdb->connection, at, size);

    if (r < 0)
      return (int)r;
    at += r;
    size -= (size_t)r;
    if (size && !room_wait(gdb, end))
      return -ECANCELED;
  }
  return 0;
}

static bool way_is_ready(void *data)
{
  const struct gdb_io *io = &((struct gdb_machine *)data)->connection.io;

  return io->is_ready(io->data);
}

/* A gdb that was started with a 64-bit kernel accepts only the description of 64-bit mode, regardless of the mode in
 * which the kernel begins. */
static bool kernel_is_64(const struct machine_session *session, const struct machine_file *kernel)
{
  struct machine_image image = {kernel->bytes, kernel->size};
  uint64_t base;
  bool has_long_mode = cpu_read_msr(machine_cpu(session->machine), MSR_FS_BASE, &base);

  if (!kernel->bytes || kernel->size <= LINUX_LOAD_FLAGS || !has_long_mode)
    return false;
  if (!memcmp(kernel->bytes, "\177ELF", 4))
    return kernel->bytes[4] == 2; /* ELFCLASS64 */
  return machine_is_linux(&image) && (kernel->bytes[LINUX_LOAD_FLAGS] & 1);
}

/* ---- the debugger of the session ---- */

/* Serves the connected gdb. Returns true if the run is over. */
static bool session_serve(struct gdb_machine *gdb)
{
  struct gdb_target target = gdb_machine_target(gdb);
  struct gdb_io io = {gdb, way_read, way_write, way_is_ready};
  int end;

  gdb->is_attached = true;
  end = gdb_serve(&target, &io);
  gdb->is_attached = false;
  gdb_connection_close(&gdb->connection);
  gdb_machine_leave(gdb);
  if (end == GDB_END_STRANGER)
    gdb_listen_refuse();
  if (end == GDB_END_KILLED && !gdb->is_over) {
    gdb->session->end = END_INTERRUPTED;
    gdb->is_over = true;
  }
  return gdb->is_over;
}

static bool debugger_serve(void *data, const struct machine_front *front, bool is_idle)
{
  struct gdb_machine *gdb = data;
  int r;

  gdb->front = front;
  while (gdb->is_waited || is_idle) {
    is_idle = false;
    if (front->wait(front->data, gdb->listener.fd, IDLE_MILLISECONDS))
      return true;
    if (gdb_listener_take(&gdb->listener, 0, &gdb->connection) > 0) {
      gdb->is_waited = false;
      return session_serve(gdb);
    }
  }
  r = gdb_listener_take(&gdb->listener, 0, &gdb->connection);
  return r > 0 && session_serve(gdb);
}

static bool debugger_is_attached(const void *data)
{
  return ((const struct gdb_machine *)data)->is_attached;
}

int gdb_machine_open(struct machine_session *session, const struct machine_file *kernel, struct gdb_machine **ret_gdb)
{
  struct gdb_machine *gdb = calloc(1, sizeof(*gdb));
  int r = gdb ? gdb_listener_open(session->arguments->gdb, &gdb->listener) : -ENOMEM;

  if (!gdb)
    message("no memory for the connection to gdb");
  if (r < 0) {
    free(gdb);
    return r;
  }
  gdb_machine_init(gdb, session, NULL);
  gdb->is_waited = session->arguments->wants_wait;
  gdb->wanted = kernel_is_64(session, kernel) ? MACHINE_X86_64 : MACHINE_AUTO;
  signal(SIGPIPE, SIG_IGN);
  session->debugger = (struct machine_debugger){gdb, debugger_serve, debugger_is_attached};
  machine_start(session->machine);
  gdb_listener_announce(&gdb->listener);
  *ret_gdb = gdb;
  return 0;
}

void gdb_machine_close(struct gdb_machine *gdb)
{
  if (!gdb)
    return;
  gdb->session->debugger = (struct machine_debugger){0};
  gdb_machine_leave(gdb);
  gdb_listener_close(&gdb->listener);
  free(gdb);
}
