/* SPDX-License-Identifier: Apache-2.0
 *
 * The envelope of pprof's files: gzip, RFC 1952 and 1951. Nothing is compressed.
 */
#ifndef EXPORT_PPROF_H
#define EXPORT_PPROF_H

#include "export/export.h"

#define GZIP_BLOCK 32768u

struct gzip {
  uint8_t bytes[GZIP_BLOCK];
  size_t count;
  uint32_t crc, size; /* of all so far */
};

void gzip_begin(struct gzip *gzip, struct export_job *job);
void gzip_put(struct gzip *gzip, struct export_job *job, const void *bytes, size_t size);
void gzip_end(struct gzip *gzip, struct export_job *job);

#endif
