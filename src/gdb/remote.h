/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets: "$" bytes "#" checksum, acknowledged with "+" or "-" until both sides have agreed to do without.
 */
#ifndef GDB_REMOTE_H
#define GDB_REMOTE_H

#include "base/base.h"
#include "gdb/target.h"

enum remote_event {
  REMOTE_GONE,      /* the other side has closed */
  REMOTE_PACKET,    /* is in `packet` */
  REMOTE_INTERRUPT, /* Ctrl-C */
  REMOTE_STRANGER,  /* gdb does not begin with such a byte: nothing more is read */
  REMOTE_TOO_BIG,   /* a packet of more than GDB_PACKET_MAX bytes was skipped */
};

struct remote {
  const struct gdb_io *io;
  bool is_quiet; /* "+" and "-" are no longer sent */
  bool is_gone;
  bool has_begun;      /* the first byte was one of gdb's */
  uint8_t input[4096]; /* bytes received; those not used yet: */
  size_t at, count;
  char packet[GDB_PACKET_MAX + 1]; /* the last packet, without escapes; ended by a zero */
  size_t size;
  struct text sent; /* the last packet that was sent, in case gdb asks for it again */
};

void remote_init(struct remote *remote, const struct gdb_io *io);
void remote_done(struct remote *remote);

/* Waits for the next event. Returns enum remote_event, or -errno. */
int remote_receive(struct remote *remote);

/* Sends a packet. Returns 0; -errno; -ENOMEM. */
int remote_send(struct remote *remote, const char *bytes, size_t size);

/* Has Ctrl-C or a packet arrived, or has the other side closed? Does not wait. */
bool remote_interrupted(struct remote *remote);

/* The value of a hexadecimal digit, or -1. */
int hex_digit(char letter);

/* Takes a hexadecimal number at `*at`, which then points after it. Returns false if there is none, or it has more than
 * 16 digits. */
bool hex_take(const char **at, uint64_t *ret_value);

/* Bytes as two digits each. `hex_get` takes `size` bytes and returns false if there are not as many digits. */
int hex_put(struct text *text, const void *bytes, size_t size);
bool hex_get(const char **at, uint8_t *bytes, size_t size);

#endif
