/* SPDX-License-Identifier: Apache-2.0
 *
 * Jitdump files: a head, and records of code that was loaded or moved. The format is that of the file
 * jitdump-specification.txt of Linux's perf. The file grows while it is read: a record is taken when all of it is
 * there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "process/jit.h"
#include "trace/trace.h"

enum {
  HEAD_SIZE = 40, /* magic, version, size, machine, pad, process (u32 each), time stamp, flags (u64 each) */
  HEAD_MOST = 4096,
  PREFIX_SIZE = 16,       /* type u32, size u32, time stamp u64 */
  LOAD_SIZE = 56,         /* prefix; process, thread u32; two addresses, size, number u64; then the name and the code */
  MOVE_SIZE = 64,         /* prefix; process, thread u32; address, old and new address, size, number u64 */
  RECORD_MOST = 64 << 20, /* no function is that long */
  KEPT_MOST = 1 << 20,    /* bytes of a record that are read: of longer code, only the name is used */
};

enum record_type { RECORD_LOAD, RECORD_MOVE, RECORD_LINES, RECORD_CLOSE };

#define MAGIC 0x4A695444u
#define VERSION 1u

void jit_dump_done(struct jit_dump *dump)
{
  free(dump->record);
  *dump = (struct jit_dump){0};
}

/* Returns 1 if all bytes are there, 0 if not, or negative. */
static int bytes_read(jit_read_function *read, void *data, uint64_t offset, void *bytes, size_t size)
{
  size_t done = 0;

  while (done < size) {
    int64_t got = read(data, offset + done, (char *)bytes + done, size - done);

    if (got <= 0)
      return (int)got;
    done += (size_t)got;
  }
  return 1;
}

static int head_take(struct jit_dump *dump, jit_read_function *read, void *read_data)
{
  uint8_t head[HEAD_SIZE];
  int r = bytes_read(read, read_data, 0, head, sizeof(head));
  uint32_t size;

  if (r <= 0)
    return r;
  size = bytes_get_u32(head + 8);
  dump->is_bad =
    bytes_get_u32(head) != MAGIC || bytes_get_u32(head + 4) != VERSION || size < HEAD_SIZE || size > HEAD_MOST;
  dump->offset = size;
  return 1;
}

static int load_take(struct jit_dump *dump, size_t size, uint64_t total, jit_name_function *function, void *data)
{
  const uint8_t *record = dump->record;
  const uint8_t *zero = size > LOAD_SIZE ? memchr(record + LOAD_SIZE, 0, size - LOAD_SIZE) : NULL;
  char text[TRACE_NAME_MAX];
  struct jit_name name;
  size_t used;

  if (!zero) {
    dump->is_bad = true;
    return 0;
  }
  used = (size_t)(zero - record) + 1;
  name = (struct jit_name){.start = bytes_get_u64(record + 32), .size = bytes_get_u64(record + 40), .text = text};
  name.length = jit_text_copy(text, (const char *)record + LOAD_SIZE, (size_t)(zero - record) - LOAD_SIZE);
  if (name.size > total - used || name.size > UINT64_MAX - name.start) {
    dump->is_bad = true;
    return 0;
  }
  if (name.size <= size - used)
    name.code = record + used;
  return name.start && name.size && name.length ? function(data, &name) : 0;
}

static int move_take(const struct jit_dump *dump, size_t size, jit_name_function *function, void *data)
{
  const uint8_t *record = dump->record;
  struct jit_name name = {.text = ""};

  if (size < MOVE_SIZE)
    return 0;
  name.moved = bytes_get_u64(record + 32);
  name.start = bytes_get_u64(record + 40);
  name.size = bytes_get_u64(record + 48);
  if (!name.moved || !name.start || !name.size || name.size > UINT64_MAX - name.start)
    return 0;
  return function(data, &name);
}

static int record_take(struct jit_dump *dump, uint32_t type, size_t size, uint64_t total, jit_name_function *function,
                       void *data)
{
  if (type == RECORD_LOAD)
    return load_take(dump, size, total, function, data);
  if (type == RECORD_MOVE)
    return move_take(dump, size, function, data);
  dump->is_closed |= type == RECORD_CLOSE;
  return 0;
}

static int record_reserve(struct jit_dump *dump, size_t size)
{
  uint8_t *record;

  if (size <= dump->capacity)
    return 0;
  record = realloc(dump->record, size);
  if (!record)
    return -ENOMEM;
  dump->record = record;
  dump->capacity = size;
  return 0;
}

/* Takes the next record. Returns 1; 0: it is not complete yet, or there is none; or negative. */
static int record_next(struct jit_dump *dump, jit_read_function *read, void *read_data, jit_name_function *function,
                       void *data)
{
  uint8_t prefix[PREFIX_SIZE], last;
  uint32_t type, total;
  size_t size;
  int r = bytes_read(read, read_data, dump->offset, prefix, sizeof(prefix));

  if (r <= 0)
    return r;
  type = bytes_get_u32(prefix);
  total = bytes_get_u32(prefix + 4);
  if (total < PREFIX_SIZE || total > RECORD_MOST) {
    dump->is_bad = true;
    return 0;
  }
  r = bytes_read(read, read_data, dump->offset + total - 1, &last, 1);
  if (r <= 0)
    return r;
  size = total < KEPT_MOST ? total : KEPT_MOST;
  if (type == RECORD_LOAD || type == RECORD_MOVE) {
    r = record_reserve(dump, size);
    if (r >= 0)
      r = bytes_read(read, read_data, dump->offset, dump->record, size);
    if (r <= 0)
      return r;
  }
  r = record_take(dump, type, size, total, function, data);
  dump->offset += total;
  return r < 0 ? r : 1;
}

int jit_dump_take(struct jit_dump *dump, uint64_t most, jit_read_function *read, void *read_data,
                  jit_name_function *function, void *data)
{
  uint64_t before;
  int r = dump->offset || dump->is_bad ? 1 : head_take(dump, read, read_data);

  for (before = dump->offset; r > 0 && !dump->is_bad && !dump->is_closed && dump->offset - before < most;)
    r = record_next(dump, read, read_data, function, data);
  return r > 0 && (dump->is_bad || dump->is_closed) ? 0 : r;
}
