/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to gdb: a port of this machine, a socket in the file system, or standard input and output.
 */
#ifndef GDB_LISTEN_H
#define GDB_LISTEN_H

#include "gdb/target.h"

struct gdb_connection {
  int in, out;
  unsigned ends;    /* relay_count when it was made: a higher count means that lbr is to end */
  struct gdb_io io; /* for gdb_serve */
};

/* Is this a port number, or unix:PATH? */
bool gdb_listen_is_place(const char *place);

/* Waits for one gdb, on 127.0.0.1:PORT or the socket unix:PATH, and says on stderr where it waits. Only the owner may
 * use the socket, which is removed afterwards. Returns 0, or negative after a message. */
int gdb_listen(const char *place, struct gdb_connection *ret_connection);

/* The same in two steps, for callers that start gdb in between; prints only errors. `gdb_listener_accept` waits as long
 * as the process `pid` runs, and does not reap it; it closes the listener in any case. Both return 0, or negative after
 * a message. */
struct gdb_listener {
  int fd;
  const char *path; /* of a socket in the file system; NULL: none */
};

int gdb_listener_open(const char *place, struct gdb_listener *ret_listener);
/* Says on stderr where it listens. */
void gdb_listener_announce(const struct gdb_listener *listener);
int gdb_listener_accept(struct gdb_listener *listener, int pid, struct gdb_connection *ret_connection);

/* For callers that keep listening: accepts one gdb, if it connects within `milliseconds`. Returns 1; 0: none connected;
 * or -errno. */
int gdb_listener_take(const struct gdb_listener *listener, int milliseconds, struct gdb_connection *ret_connection);
void gdb_listener_close(struct gdb_listener *listener);

/* Says on stderr that the client was refused (GDB_END_STRANGER). */
void gdb_listen_refuse(void);

/* Writes without waiting. Returns how many bytes were taken, 0 if there is no room for any, or -errno. */
ssize_t gdb_connection_put(const struct gdb_connection *connection, const void *bytes, size_t size);

/* Standard input and output. */
void gdb_connect_stdio(struct gdb_connection *ret_connection);

void gdb_connection_close(struct gdb_connection *connection);

#endif
