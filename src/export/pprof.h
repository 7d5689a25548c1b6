/* SPDX-License-Identifier: Apache-2.0
 *
 * The building blocks of pprof's files: protobuf messages in a gzip file.
 */
#ifndef EXPORT_PPROF_H
#define EXPORT_PPROF_H

#include "export/export.h"

/* ---- gzip (pprof_gzip.c): RFC 1952 and 1951; nothing is compressed ---- */

#define GZIP_BLOCK 32768u

struct gzip {
  uint8_t bytes[GZIP_BLOCK];
  size_t count;
  uint32_t crc, size; /* of all so far */
};

void gzip_begin(struct gzip *gzip, struct export_job *job);
void gzip_put(struct gzip *gzip, struct export_job *job, const void *bytes, size_t size);
void gzip_end(struct gzip *gzip, struct export_job *job);

/* ---- protobuf: fields are appended to a text; a failure is found when the text is written ---- */

struct message {
  struct text text;
  int error; /* 0, or -ENOMEM */
};

void message_varint(struct message *message, uint64_t value);
void message_number(struct message *message, unsigned field, uint64_t value);
void message_bytes(struct message *message, unsigned field, const void *bytes, size_t size);

#endif
