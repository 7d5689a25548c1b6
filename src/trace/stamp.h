/* SPDX-License-Identifier: Apache-2.0
 *
 * The stamps of a chunk of branches or entries, as bytes: the last string of its contents. A stamp takes a few bytes,
 * most of them differences to the stamp before.
 */
#ifndef TRACE_STAMP_H
#define TRACE_STAMP_H

#include "trace/branches.h"
#include "trace/format.h"
#include "trace/trace.h"

/* The state that encoder and decoder share. Starts as all zero. */
struct stamp_model {
  uint64_t number; /* of the last stamp; here, branches of the chunk before it */
  uint64_t time, used;
};

struct stamp_encoder {
  struct stamp_model model;
  struct buffer bytes;
  uint32_t count;
};

/* Begins a chunk. */
void stamp_encoder_begin(struct stamp_encoder *encoder);

/* Appends a stamp with `number` branches of the chunk before it. Returns 0, -EINVAL: it has no such type, or -ENOMEM.
 */
int stamp_encoder_add(struct stamp_encoder *encoder, const struct trace_stamp *stamp, uint64_t number);

struct stamp_decoder {
  struct stamp_model model;
  struct cursor cursor;
  char paths[2][TRACE_PATH_MAX + 1];
};

void stamp_decoder_begin(struct stamp_decoder *decoder, struct cursor bytes);

/* Reads the next stamp. Its paths stay valid until the next call; its `number` is as of stamp_encoder_add. Returns 1; 0
 * at the end; LB_E_DAMAGED. */
int stamp_decoder_next(struct stamp_decoder *decoder, struct trace_stamp *ret_stamp);

#endif
