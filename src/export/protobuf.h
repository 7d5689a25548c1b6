/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of protobuf, which formats of other tools consist of. Fields are appended one by one, so a message that is a
 * field of another one is made first, in a struct of its own. A failure is kept: callers look at `error` when the
 * message is complete.
 */
#ifndef EXPORT_PROTOBUF_H
#define EXPORT_PROTOBUF_H

#include "base/base.h"

/* Starts as all zero. */
struct message {
  struct text text;
  int error; /* 0, or -ENOMEM */
};

void message_done(struct message *message);

/* A bare number: an element of a packed field. */
void message_varint(struct message *message, uint64_t value);

/* Fields. A negative number of the types int32, int64 and enum is given as its two's complement. */
void message_number(struct message *message, unsigned field, uint64_t value);
void message_bytes(struct message *message, unsigned field, const void *bytes, size_t size);
void message_string(struct message *message, unsigned field, const char *string);

/* Appends `part` as a field, with its error, and empties it. */
void message_take(struct message *message, unsigned field, struct message *part);

#endif
