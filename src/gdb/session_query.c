/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries and settings (q and Q packets), and objects that gdb reads piece by piece (qXfer).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/session.h"

#define OUTPUT_MAX 4096u /* bytes in a packet */

/* ---- XML ---- */

/* One character of `size` bytes. */
static int letter_add(struct text *text, const char *letter, size_t size)
{
  switch (*letter) {
  case '<':
    return text_add(text, "&lt;");
  case '&':
    return text_add(text, "&amp;");
  case '"':
    return text_add(text, "&quot;");
  default:
    return size && (unsigned char)*letter >= ' ' && *letter != 0x7F ? text_add_bytes(text, letter, size)
                                                                    : text_add(text, "?");
  }
}

int gdb_xml_add(struct text *text, const char *string)
{
  int r = 0;

  while (*string && r >= 0) {
    size_t size = utf8_size(string);

    r = letter_add(text, string, size);
    string += size ? size : 1;
  }
  return r;
}

static int threads_make(struct gdb_session *session, struct text *text)
{
  struct gdb_thread thread;
  int r = text_add(text, "<threads>");

  for (size_t i = 0; r >= 0 && session_thread_at(session, i, &thread); i++) {
    r = text_addf(text, "<thread id=\"%" PRIx64 "\" name=\"", thread.id);
    if (r >= 0)
      r = gdb_xml_add(text, thread.name);
    if (r >= 0)
      r = text_add(text, "\"/>");
  }
  return r < 0 ? r : text_add(text, "</threads>");
}

static int description_make(struct gdb_session *session, struct text *text)
{
  const struct gdb_target *target = session->target;

  if (target->architecture)
    session->architecture = target->architecture(target->data);
  return register_describe(session->architecture, target->features, target->osabi, text);
}

/* ---- objects ---- */

/* `object` is enum gdb_object if there is no function to make it. */
static const struct transfer {
  const char *name;
  enum gdb_object object;
  int (*make)(struct gdb_session *session, struct text *text);
} transfers[] = {
  {"features", GDB_OBJECTS, description_make},
  {"threads", GDB_OBJECTS, threads_make},
  {"btrace-conf", GDB_OBJECTS, btrace_configuration},
  {"auxv", GDB_AUXV, NULL},
  {"exec-file", GDB_EXEC_FILE, NULL},
  {"libraries-svr4", GDB_LIBRARIES, NULL},
  {"memory-map", GDB_MEMORY_MAP, NULL},
};

#define TRANSFERS (sizeof(transfers) / sizeof(transfers[0]))

static bool transfer_is_there(const struct gdb_session *session, const struct transfer *transfer)
{
  const struct gdb_target *target = session->target;

  if (transfer->make == btrace_configuration)
    return target->history_begin;
  return transfer->make || (target->object && target->objects & 1u << transfer->object);
}

/* Makes the object again when gdb reads its start; gdb reads one object after the other. */
static int transfer_make(struct gdb_session *session, const struct transfer *transfer)
{
  const struct gdb_target *target = session->target;

  session->object.length = 0;
  return transfer->make ? transfer->make(session, &session->object)
                        : target->object(target->data, transfer->object, &session->object);
}

static void transfer_read(struct gdb_session *session, const struct transfer *transfer, uint64_t offset, uint64_t size)
{
  const struct text *object = &session->object;
  int r = offset ? 0 : transfer_make(session, transfer);

  if (r < 0) {
    reply_error(session, r);
    return;
  }
  offset = offset < object->length ? offset : object->length;
  size = size < object->length - offset ? size : object->length - offset;
  reply_add(session, offset + size < object->length ? "m" : "l");
  if (size)
    session_check(session, text_add_bytes(&session->reply, object->data + offset, (size_t)size));
}

/* The word up to the next colon, which is replaced by a terminator. */
static char *field_take(char **at)
{
  char *start = *at, *colon = strchr(start, ':');

  if (!colon)
    return NULL;
  *colon = 0;
  *at = colon + 1;
  return start;
}

/* OBJECT:read:ANNEX:OFFSET,SIZE */
static void query_transfer(struct gdb_session *session, const char *at)
{
  char *rest = session->remote.packet + (at - session->remote.packet);
  const char *name = field_take(&rest), *operation = name ? field_take(&rest) : NULL;
  const char *annex = operation ? field_take(&rest) : NULL, *numbers = rest;
  uint64_t offset, size;

  if (!annex || strcmp(operation, "read"))
    return;
  if (!hex_take(&numbers, &offset) || *numbers++ != ',' || !hex_take(&numbers, &size)) {
    reply_error(session, -EINVAL);
    return;
  }
  size = size < GDB_PACKET_MAX / 2 ? size : GDB_PACKET_MAX / 2; /* each byte may need an escape */
  if (!strcmp(name, "btrace") && session->target->history_begin) {
    btrace_read(session, annex, offset, size);
    return;
  }
  for (size_t i = 0; i < TRANSFERS; i++)
    if (!strcmp(name, transfers[i].name) && transfer_is_there(session, &transfers[i]))
      transfer_read(session, &transfers[i], offset, size);
}

/* ---- queries ---- */

static void query_supported(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_add(session, "PacketSize=%x;QStartNoAckMode+;QPassSignals+;vContSupported+;swbreak+;hwbreak+", GDB_PACKET_MAX);
  for (size_t i = 0; i < TRANSFERS; i++)
    if (transfer_is_there(session, &transfers[i]))
      reply_add(session, ";qXfer:%s:read+", transfers[i].name);
  if (session->target->history_begin)
    reply_add(session, ";qXfer:btrace:read+;Qbtrace:bts+;Qbtrace:off+;Qbtrace-conf:bts:size+");
}

static void query_thread(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_add(session, "QC%" PRIx64, session_thread(session, session->general));
}

/* As many as fit in a packet. gdb 13 reads the list as an object; this is for other versions. */
static void query_threads(struct gdb_session *session, const char *at)
{
  struct gdb_thread thread;

  (void)at;
  for (size_t i = 0; session->reply.length < GDB_PACKET_MAX - 32 && session_thread_at(session, i, &thread); i++)
    reply_add(session, "%c%" PRIx64, i ? ',' : 'm', thread.id);
}

static void query_more_threads(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_add(session, "l");
}

static void query_attached(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_add(session, "1"); /* the process existed before gdb: gdb detaches when it leaves */
}

static void query_symbol(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_ok(session);
}

/* Output that does not fit in the answer is sent before it, as output of the program. */
static void output_send(struct gdb_session *session, struct text *output)
{
  size_t done = 0;

  for (; output->length - done > OUTPUT_MAX; done += OUTPUT_MAX) {
    char piece[OUTPUT_MAX + 1] = {0};

    memcpy(piece, output->data + done, OUTPUT_MAX);
    gdb_session_print(session, piece);
  }
  reply_hex(session, output->data + done, output->length - done);
}

/* The command and the output are in hexadecimal. A failure without output is an error. */
static void query_monitor(struct gdb_session *session, const char *at)
{
  const struct gdb_target *target = session->target;
  size_t length = strlen(at) / 2;
  uint8_t *command = calloc(1, length + 1);
  struct text output = {0};
  int r = command ? -EINVAL : -ENOMEM;

  if (command && target->monitor && hex_get(&at, command, length))
    r = target->monitor(target->data, (const char *)command, &output);
  if (output.length)
    output_send(session, &output);
  else if (r < 0)
    reply_error(session, r);
  else
    reply_ok(session);
  text_done(&output);
  free(command);
}

static void set_quiet(struct gdb_session *session, const char *at)
{
  (void)at;
  reply_ok(session);
  session->remote.is_quiet = true;
}

/* SIGNAL;SIGNAL...: replaces the earlier list. */
static void set_passed(struct gdb_session *session, const char *at)
{
  uint64_t signal;

  session->passed = 0;
  while (hex_take(&at, &signal)) {
    session->passed |= signal < 64 ? UINT64_C(1) << signal : 0;
    at += *at == ';';
  }
  reply_ok(session);
}

struct word {
  const char *word;
  session_command *run;
};

/* Runs the command that the next word of the packet names. */
static void word_find(struct gdb_session *session, const char *at, const struct word *words, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    size_t length = strlen(words[i].word);

    if (!strncmp(at, words[i].word, length) &&
        (!at[length] || strchr(":,=", words[i].word[length - 1]) || at[length] == ':' || at[length] == ';')) {
      words[i].run(session, at + length);
      return;
    }
  }
}

void command_query(struct gdb_session *session, const char *at)
{
  static const struct word words[] = {
    {"Supported", query_supported}, {"Xfer:", query_transfer},           {"C", query_thread},
    {"fThreadInfo", query_threads}, {"sThreadInfo", query_more_threads}, {"Attached", query_attached},
    {"Rcmd,", query_monitor},       {"Symbol:", query_symbol},
  };

  word_find(session, at, words, sizeof(words) / sizeof(words[0]));
}

void command_set(struct gdb_session *session, const char *at)
{
  static const struct word words[] = {
    {"StartNoAckMode", set_quiet},
    {"PassSignals:", set_passed},
    {"btrace:", command_btrace},
    {"btrace-conf:bts:size=", command_btrace_size},
  };

  word_find(session, at, words, sizeof(words) / sizeof(words[0]));
}
