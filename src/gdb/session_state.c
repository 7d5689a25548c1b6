/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers, memory, breakpoints and watchpoints.
 */
#include <errno.h>
#include <string.h>

#include "gdb/session.h"

/* ---- registers ---- */

/* Appends a register, with "x" for each digit if its value is unknown. */
static void register_add(struct gdb_session *session, uint64_t thread, enum gdb_register number)
{
  const struct gdb_target *target = session->target;
  unsigned size = gdb_register_size(session->architecture, number);
  uint8_t bytes[GDB_REGISTER_SIZE] = {0};
  int r = target->read_register ? target->read_register(target->data, thread, number, bytes) : 0;

  if (r > 0)
    reply_hex(session, bytes, size);
  else
    reply_add(session, "%.*s", (int)(2 * size), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

void command_read_all(struct gdb_session *session, const char *at)
{
  uint64_t thread = session_thread(session, session->general);
  enum gdb_register number;

  (void)at;
  for (size_t i = 0; register_at(session->architecture, session->target->features, i, &number); i++)
    register_add(session, thread, number);
}

static bool register_take(struct gdb_session *session, const char **at, enum gdb_register *ret_number)
{
  uint64_t index;

  return hex_take(at, &index) &&
         register_at(session->architecture, session->target->features, (size_t)index, ret_number);
}

void command_read_register(struct gdb_session *session, const char *at)
{
  enum gdb_register number;

  if (register_take(session, &at, &number))
    register_add(session, session_thread(session, session->general), number);
  else
    reply_error(session, -EINVAL);
}

/* Writes a register from its digits. "x" leaves it unchanged. Returns 0, or negative. */
static int register_write(struct gdb_session *session, uint64_t thread, enum gdb_register number, const char **at)
{
  const struct gdb_target *target = session->target;
  unsigned size = gdb_register_size(session->architecture, number);
  uint8_t bytes[GDB_REGISTER_SIZE];

  if (**at == 'x' && strspn(*at, "x") >= 2 * (size_t)size) {
    *at += 2 * (size_t)size;
    return 0;
  }
  if (!hex_get(at, bytes, size))
    return -EINVAL;
  return target->write_register ? target->write_register(target->data, thread, number, bytes) : -EROFS;
}

void command_write_register(struct gdb_session *session, const char *at)
{
  enum gdb_register number;
  int r = -EINVAL;

  if (register_take(session, &at, &number) && *at++ == '=')
    r = register_write(session, session_thread(session, session->general), number, &at);
  if (r < 0)
    reply_error(session, r);
  else
    reply_ok(session);
}

void command_write_all(struct gdb_session *session, const char *at)
{
  uint64_t thread = session_thread(session, session->general);
  enum gdb_register number;
  int r = 0;

  for (size_t i = 0; r >= 0 && *at && register_at(session->architecture, session->target->features, i, &number); i++)
    r = register_write(session, thread, number, &at);
  if (r < 0)
    reply_error(session, r);
  else
    reply_ok(session);
}

/* ---- memory ---- */

/* ADDRESS,SIZE */
static bool range_take(const char **at, uint64_t *ret_address, uint64_t *ret_size)
{
  return hex_take(at, ret_address) && *(*at)++ == ',' && hex_take(at, ret_size);
}

void command_read_memory(struct gdb_session *session, const char *at)
{
  const struct gdb_target *target = session->target;
  uint8_t bytes[GDB_PACKET_MAX / 2];
  uint64_t address, size;
  size_t count;

  if (!range_take(&at, &address, &size)) {
    reply_error(session, -EINVAL);
    return;
  }
  size = size < sizeof(bytes) ? size : sizeof(bytes);
  count = target->read_memory && size ? target->read_memory(target->data, address, bytes, (size_t)size) : 0;
  if (count || !size)
    reply_hex(session, bytes, count);
  else
    reply_error(session, -EFAULT);
}

static void memory_write(struct gdb_session *session, uint64_t address, const uint8_t *bytes, size_t size)
{
  const struct gdb_target *target = session->target;
  int r = target->write_memory ? target->write_memory(target->data, address, bytes, size) : -EROFS;

  if (r < 0)
    reply_error(session, r);
  else
    reply_ok(session);
}

void command_write_memory(struct gdb_session *session, const char *at)
{
  uint8_t bytes[GDB_PACKET_MAX / 2];
  uint64_t address, size;

  if (range_take(&at, &address, &size) && *at++ == ':' && size <= sizeof(bytes) && hex_get(&at, bytes, (size_t)size))
    memory_write(session, address, bytes, (size_t)size);
  else
    reply_error(session, -EINVAL);
}

/* Writes memory from raw bytes. gdb tests with no bytes whether the command is supported. */
void command_write_binary(struct gdb_session *session, const char *at)
{
  const char *end = session->remote.packet + session->remote.size;
  uint64_t address, size;

  if (!session->target->write_memory)
    return;
  if (range_take(&at, &address, &size) && at < end && *at++ == ':' && size == (size_t)(end - at))
    memory_write(session, address, (const uint8_t *)at, (size_t)size);
  else
    reply_error(session, -EINVAL);
}

/* ---- breakpoints and watchpoints ---- */

/* KIND,ADDRESS,SIZE */
static void point_change(struct gdb_session *session, const char *at, bool is_set)
{
  const struct gdb_target *target = session->target;
  uint64_t kind, address, size;
  int r;

  if (!target->point)
    return;
  if (!hex_take(&at, &kind) || *at++ != ',' || !range_take(&at, &address, &size)) {
    reply_error(session, -EINVAL);
    return;
  }
  r = kind < GDB_POINTS ? target->point(target->data, is_set, (enum gdb_point)kind, address, size) : -EOPNOTSUPP;
  if (r == 0)
    reply_ok(session);
  else if (r != -EOPNOTSUPP)
    reply_error(session, r);
}

void command_point_set(struct gdb_session *session, const char *at)
{
  point_change(session, at, true);
}

void command_point_remove(struct gdb_session *session, const char *at)
{
  point_change(session, at, false);
}
