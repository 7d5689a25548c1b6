/* SPDX-License-Identifier: Apache-2.0
 *
 * See protobuf.h. A field is a tag, which has its number and the type of its value, and the value: a number in groups
 * of 7 bits, or a size and as many bytes.
 */
#include "export/protobuf.h"

#include <errno.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void message_add(struct message *message, const void *bytes, size_t size)
{
  if (size && text_add_bytes(&message->text, bytes, size) < 0)
    message->error = -ENOMEM;
}

void message_done(struct message *message)
{
  text_done(&message->text);
}

void message_varint(struct message *message, uint64_t value)
{
  uint8_t bytes[10];
  size_t count = 0;

  for (; value >= 0x80; value >>= 7)
    bytes[count++] = (uint8_t)(value | 0x80);
  bytes[count++] = (uint8_t)value;
  message_add(message, bytes, count);
}

void message_number(struct message *message, unsigned field, uint64_t value)
{
  message_varint(message, field << 3 | WIRE_VARINT);
  message_varint(message, value);
}

void message_bytes(struct message *message, unsigned field, const void *bytes, size_t size)
{
  message_varint(message, field << 3 | WIRE_BYTES);
  message_varint(message, size);
  message_add(message, bytes, size);
}

void message_string(struct message *message, unsigned field, const char *string)
{
  message_bytes(message, field, string, strlen(string));
}

void message_take(struct message *message, unsigned field, struct message *part)
{
  message_bytes(message, field, text_string(&part->text), part->text.length);
  if (part->error < 0)
    message->error = part->error;
  part->text.length = 0;
}
