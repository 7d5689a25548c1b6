/* SPDX-License-Identifier: Apache-2.0
 *
 * The way between a gdb that sends whatever it likes and the stub, for fuzz targets: input that begins with "!" is
 * bytes as they come; anything else is a list of packets, a line each, that get their frames first. Answers must be
 * whole packets with the right checksum.
 */
#ifndef FUZZ_GDB_WAY_H
#define FUZZ_GDB_WAY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "gdb/gdb.h"

static inline void demand(bool is_so)
{
  if (!is_so)
    abort();
}

struct way {
  const uint8_t *in;
  size_t left;
  struct text out;
};

static inline ssize_t way_read(void *data, void *bytes, size_t size)
{
  struct way *way = data;

  size = size < way->left ? size : way->left;
  size = size < 7 ? size : 7; /* a packet comes in pieces */
  if (size)
    memcpy(bytes, way->in, size);
  way->in += size;
  way->left -= size;
  return (ssize_t)size;
}

static inline int way_write(void *data, const void *bytes, size_t size)
{
  struct way *way = data;

  return text_add_bytes(&way->out, bytes, size);
}

static inline bool way_is_ready(void *data)
{
  (void)data;
  return true;
}

/* Only packets with their checksums come out, and acknowledgements. */
static inline void out_check(const struct text *out)
{
  const char *at = text_string(out), *end = at + out->length;

  while (at < end) {
    unsigned sum = 0, said;

    if (*at == '+' || *at == '-') {
      at++;
      continue;
    }
    demand(*at++ == '$');
    for (; at < end && *at != '#'; at++) {
      demand(*at != '$' && *at != '*');
      sum += (unsigned char)*at;
    }
    demand(end - at >= 3 && sscanf(at, "#%2x", &said) == 1 && said == (sum & 0xFF));
    at += 3;
  }
}

/* Lines as packets. */
static inline void packets_frame(struct text *text, const uint8_t *data, size_t size)
{
  size_t start = 0;

  for (size_t i = 0; i <= size; i++) {
    unsigned sum = 0;

    if (i < size && data[i] != '\n')
      continue;
    for (size_t j = start; j < i; j++)
      sum += data[j];
    demand(text_add(text, "$") >= 0 && text_add_bytes(text, (const char *)data + start, i - start) >= 0 &&
           text_addf(text, "#%02x", sum & 0xFF) >= 0);
    start = i + 1;
  }
}

/* Hands the bytes of an input to `serve`. */
static inline void way_run(const uint8_t *data, size_t size, void (*serve)(const struct gdb_io *io))
{
  struct text text = {0};
  struct way way = {data, size, {0}};
  struct gdb_io io = {&way, way_read, way_write, way_is_ready};

  if (size && data[0] == '!') {
    way.in++;
    way.left--;
  } else {
    packets_frame(&text, data, size);
    way.in = (const uint8_t *)text.data;
    way.left = text.length;
  }
  serve(&io);
  out_check(&way.out);
  text_done(&way.out);
  text_done(&text);
}

#endif
