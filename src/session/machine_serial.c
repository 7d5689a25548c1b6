/* SPDX-License-Identifier: Apache-2.0
 *
 * The guest's serial output for a terminal that is not connected to the guest: text only. Control characters and bytes
 * that are not UTF-8 become question marks, so that no guest can send the terminal an escape sequence.
 */
#include "base/base.h"
#include "session/machine.h"

/* The length of a character that begins with this byte; 0 if none does. */
static unsigned character_size(uint8_t byte)
{
  return byte < 0x80 ? 1 : byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0;
}

/* U+0080 to U+009F are control characters too. */
static bool is_control(const char *character)
{
  uint8_t first = (uint8_t)character[0], second = (uint8_t)character[1];

  if (first < 0x80)
    return (first < ' ' && first != '\n' && first != '\r' && first != '\t') || first == 0x7F;
  return first == 0xC2 && second < 0xA0;
}

void serial_text_end(struct serial_text *text, FILE *file)
{
  if (text->count)
    fputc('?', file);
  text->count = 0;
}

void serial_text_put(struct serial_text *text, uint8_t byte, FILE *file)
{
  bool goes_on = (byte & 0xC0) == 0x80;
  size_t size;

  if (text->count && !goes_on)
    serial_text_end(text, file);
  if (!text->count && !character_size(byte)) {
    fputc('?', file);
    return;
  }
  text->bytes[text->count++] = (char)byte;
  text->bytes[text->count] = '\0';
  size = character_size((uint8_t)text->bytes[0]);
  if (text->count < size)
    return;
  if ((text->count > 1 && utf8_size(text->bytes) != size) || is_control(text->bytes))
    fputc('?', file);
  else
    fwrite(text->bytes, 1, size, file);
  text->count = 0;
}
