/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets of gdb's remote protocol in and out: framing, checksums, escapes, acknowledgements, Ctrl-C. The peer is not
 * trusted; a packet that is too long is read to its end and discarded.
 */
#include "gdb/remote.h"

#include <errno.h>

#define ESCAPE '}'
#define ESCAPE_BIT 0x20
#define CTRL_C 0x03

void remote_init(struct remote *remote, const struct gdb_io *io)
{
  *remote = (struct remote){.io = io};
}

void remote_done(struct remote *remote)
{
  text_done(&remote->sent);
}

/* ---- hexadecimal ---- */

int hex_digit(char letter)
{
  if (letter >= '0' && letter <= '9')
    return letter - '0';
  letter |= 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

bool hex_take(const char **at, uint64_t *ret_value)
{
  uint64_t value = 0;
  unsigned digits = 0;

  for (; hex_digit(**at) >= 0; (*at)++, digits++) {
    if (digits >= 16)
      return false;
    value = value << 4 | (unsigned)hex_digit(**at);
  }
  if (!digits)
    return false;
  *ret_value = value;
  return true;
}

int hex_put(struct text *text, const void *bytes, size_t size)
{
  static const char digits[] = "0123456789abcdef";
  const uint8_t *byte = bytes;
  int r = 0;

  for (size_t i = 0; i < size && r >= 0; i++) {
    const char pair[2] = {digits[byte[i] >> 4], digits[byte[i] & 15]};

    r = text_add_bytes(text, pair, 2);
  }
  return r;
}

bool hex_get(const char **at, uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++, *at += 2) {
    int high = hex_digit((*at)[0]), low = high < 0 ? -1 : hex_digit((*at)[1]);

    if (low < 0)
      return false;
    bytes[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

/* ---- out ---- */

static unsigned char sum(const char *bytes, size_t size)
{
  unsigned char result = 0;

  for (size_t i = 0; i < size; i++)
    result = (unsigned char)(result + (unsigned char)bytes[i]);
  return result;
}

static bool is_special(char letter)
{
  return letter == '$' || letter == '#' || letter == '*' || letter == ESCAPE;
}

/* Adds bytes with escapes, and the plain ones between them at once. */
static int escaped_add(struct text *text, const char *bytes, size_t size)
{
  size_t plain;
  int r = 0;

  while (size && r >= 0) {
    for (plain = 0; plain < size && !is_special(bytes[plain]); plain++)
      ;
    r = plain ? text_add_bytes(text, bytes, plain) : 0;
    bytes += plain;
    size -= plain;
    if (size && r >= 0) {
      const char pair[2] = {ESCAPE, (char)(*bytes++ ^ ESCAPE_BIT)};

      r = text_add_bytes(text, pair, 2);
      size--;
    }
  }
  return r;
}

int remote_send(struct remote *remote, const char *bytes, size_t size)
{
  struct text *sent = &remote->sent;
  int r;

  sent->length = 0;
  r = text_add(sent, "$");
  if (r >= 0)
    r = escaped_add(sent, bytes, size);
  if (r >= 0)
    r = text_addf(sent, "#%02x", sum(sent->data + 1, sent->length - 1));
  return r < 0 ? r : remote->io->write(remote->io->data, sent->data, sent->length);
}

static int resend(struct remote *remote)
{
  struct text *sent = &remote->sent;

  return sent->length ? remote->io->write(remote->io->data, sent->data, sent->length) : 0;
}

static int acknowledge(struct remote *remote, char letter)
{
  return remote->is_quiet ? 0 : remote->io->write(remote->io->data, &letter, 1);
}

/* ---- in ---- */

/* Returns 1; 0 if the connection is closed; or -errno. */
static int input_fill(struct remote *remote)
{
  ssize_t r = remote->is_gone ? 0 : remote->io->read(remote->io->data, remote->input, sizeof(remote->input));

  remote->is_gone |= r == 0;
  remote->at = 0;
  remote->count = r > 0 ? (size_t)r : 0;
  return r > 0 ? 1 : (int)r;
}

/* The next byte; -1 if the connection is closed; other negative numbers are -errno - 1. */
static int byte_get(struct remote *remote)
{
  if (remote->at == remote->count) {
    int r = input_fill(remote);

    if (r <= 0)
      return r - 1;
  }
  return remote->input[remote->at++];
}

static void packet_add(struct remote *remote, int byte, bool *is_escaped)
{
  if (byte == ESCAPE && !*is_escaped) {
    *is_escaped = true;
    return;
  }
  if (remote->size < GDB_PACKET_MAX)
    remote->packet[remote->size] = (char)(*is_escaped ? byte ^ ESCAPE_BIT : byte);
  if (remote->size <= GDB_PACKET_MAX) /* one byte more than fits marks it as too long */
    remote->size++;
  *is_escaped = false;
}

/* Reads the packet between "$" and "#". A "$" starts again: the end of the previous packet was lost. Returns the
 * checksum, or the values of byte_get. */
static int body_get(struct remote *remote)
{
  unsigned char checksum = 0;
  bool is_escaped = false;
  int byte;

  remote->size = 0;
  while ((byte = byte_get(remote)) >= 0 && byte != '#') {
    if (byte == '$') {
      remote->size = 0;
      checksum = 0;
      is_escaped = false;
      continue;
    }
    checksum = (unsigned char)(checksum + byte);
    packet_add(remote, byte, &is_escaped);
  }
  return byte < 0 ? byte : checksum;
}

/* Returns 1 if the packet is valid, 0 if not, or the values of byte_get. */
static int packet_get(struct remote *remote)
{
  int checksum = body_get(remote), high, low;

  if (checksum < 0)
    return checksum;
  high = byte_get(remote);
  low = high < 0 ? high : byte_get(remote);
  if (low < 0)
    return low;
  return hex_digit((char)high) >= 0 && hex_digit((char)low) >= 0 &&
         checksum == (hex_digit((char)high) << 4 | hex_digit((char)low));
}

/* Handles a byte outside of packets. Returns 0, or -errno. */
static int other_take(struct remote *remote, int byte)
{
  return byte == '-' && !remote->is_quiet ? resend(remote) : 0;
}

static int packet_finish(struct remote *remote)
{
  int r = acknowledge(remote, '+');

  if (r < 0)
    return r;
  if (remote->size > GDB_PACKET_MAX)
    return REMOTE_TOO_BIG;
  remote->packet[remote->size] = 0;
  return REMOTE_PACKET;
}

bool gdb_is_first_byte(uint8_t byte)
{
  return byte == '+' || byte == '-' || byte == '$' || byte == CTRL_C;
}

int remote_receive(struct remote *remote)
{
  for (;;) {
    int byte = byte_get(remote), r = 0;

    if (byte >= 0 && !remote->has_begun && !gdb_is_first_byte((uint8_t)byte))
      return REMOTE_STRANGER;
    remote->has_begun |= byte >= 0;
    if (byte == CTRL_C)
      return REMOTE_INTERRUPT;
    if (byte >= 0 && byte != '$')
      r = other_take(remote, byte);
    if (byte == '$') {
      byte = packet_get(remote);
      if (byte > 0)
        return packet_finish(remote);
      r = byte == 0 ? acknowledge(remote, '-') : 0;
    }
    if (byte < 0)
      return byte == -1 ? REMOTE_GONE : byte + 1;
    if (r < 0)
      return r;
  }
}

bool remote_interrupted(struct remote *remote)
{
  while (!remote->is_gone) {
    if (remote->at == remote->count && (!remote->io->is_ready(remote->io->data) || input_fill(remote) <= 0))
      return remote->is_gone;
    if (remote->input[remote->at] != '+' && remote->input[remote->at] != CTRL_C)
      return true; /* it is read after the stop */
    if (remote->input[remote->at++] == CTRL_C)
      return true;
  }
  return true;
}
