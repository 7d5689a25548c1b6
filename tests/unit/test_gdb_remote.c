/* SPDX-License-Identifier: Apache-2.0
 *
 * gdb's remote protocol, packet by packet. Expected bytes are those of the protocol's description in gdb's manual
 * (appendix E): frames, checksums, escapes, acknowledgements; and the order of registers in gdb's own descriptions.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "gdb/gdb.h"

/* ---- a target and the way to it ---- */

struct rig {
  struct gdb_target target;
  struct gdb_io io;
  const char *in;
  size_t left, at_once;
  struct text out;
  uint8_t memory[256];
  uint64_t rax;
  struct gdb_resume resumed;
  bool was_interrupted;
  uint64_t passed;
  struct gdb_stop stop;
  struct gdb_block blocks[3000]; /* the newest first */
  size_t block_count, block_next;
  unsigned begun; /* how often the history was gone through from its end */
  char monitor[64];
};

static ssize_t rig_read(void *data, void *bytes, size_t size)
{
  struct rig *rig = data;

  size = size < rig->left ? size : rig->left;
  size = size < rig->at_once ? size : rig->at_once;
  memcpy(bytes, rig->in, size);
  rig->in += size;
  rig->left -= size;
  return (ssize_t)size;
}

static int rig_write(void *data, const void *bytes, size_t size)
{
  return text_add_bytes(&((struct rig *)data)->out, bytes, size);
}

static bool rig_is_ready(void *data)
{
  return ((struct rig *)data)->left > 0;
}

static int rig_read_register(void *data, uint64_t thread, enum gdb_register number, uint8_t *bytes)
{
  struct rig *rig = data;

  assert_int_equal(thread, 1);
  if (number == GDB_EFLAGS) {
    bytes_put_u32(bytes, 0x246);
    return 1;
  }
  if (number == GDB_RAX || number == GDB_RIP) {
    bytes_put_u64(bytes, number == GDB_RAX ? rig->rax : 0x401000);
    return 1;
  }
  return 0;
}

static int rig_write_register(void *data, uint64_t thread, enum gdb_register number, const uint8_t *bytes)
{
  (void)thread;
  if (number != GDB_RAX)
    return -EINVAL;
  ((struct rig *)data)->rax = bytes_get_u64(bytes);
  return 0;
}

static size_t rig_read_memory(void *data, uint64_t address, uint8_t *bytes, size_t size)
{
  struct rig *rig = data;

  if (address >= sizeof(rig->memory))
    return 0;
  size = size < sizeof(rig->memory) - address ? size : sizeof(rig->memory) - (size_t)address;
  memcpy(bytes, rig->memory + address, size);
  return size;
}

static int rig_write_memory(void *data, uint64_t address, const uint8_t *bytes, size_t size)
{
  struct rig *rig = data;

  if (address > sizeof(rig->memory) || size > sizeof(rig->memory) - address)
    return -EFAULT;
  memcpy(rig->memory + address, bytes, size);
  return 0;
}

static void rig_stop(void *data, struct gdb_stop *ret_stop)
{
  *ret_stop = ((struct rig *)data)->stop;
}

static int rig_resume(void *data, const struct gdb_resume *resume, struct gdb_stop *ret_stop)
{
  struct rig *rig = data;

  rig->resumed = *resume;
  rig->was_interrupted = gdb_session_interrupted(resume->session);
  rig->passed = 0;
  for (unsigned i = 0; i < 64; i++)
    rig->passed |= gdb_session_passes(resume->session, i) ? UINT64_C(1) << i : 0;
  if (!resume->is_step)
    gdb_session_print(resume->session, "Hi");
  *ret_stop = rig->stop;
  return 0;
}

static int rig_monitor(void *data, const char *command, struct text *output)
{
  struct rig *rig = data;

  snprintf(rig->monitor, sizeof(rig->monitor), "%s", command);
  for (unsigned i = 0; i < 10000 && !strcmp(command, "much"); i++)
    assert_int_equal(text_add(output, "x"), 0);
  return text_add(output, "ok\n");
}

static int rig_history_begin(void *data, uint64_t thread, enum gdb_history which)
{
  struct rig *rig = data;

  (void)thread;
  rig->block_next = 0;
  rig->begun++;
  return which == GDB_HISTORY_ALL ? 0 : -EOPNOTSUPP;
}

static int rig_history_next(void *data, struct gdb_block *ret_block)
{
  struct rig *rig = data;

  if (rig->block_next == rig->block_count)
    return 0;
  *ret_block = rig->blocks[rig->block_next++];
  return 1;
}

static int rig_setup(void **state)
{
  struct rig *rig = calloc(1, sizeof(*rig));

  assert_non_null(rig);
  rig->io = (struct gdb_io){rig, rig_read, rig_write, rig_is_ready};
  rig->target = (struct gdb_target){
    .data = rig,
    .read_register = rig_read_register,
    .write_register = rig_write_register,
    .read_memory = rig_read_memory,
    .write_memory = rig_write_memory,
    .stop = rig_stop,
    .resume = rig_resume,
    .monitor = rig_monitor,
  };
  rig->at_once = SIZE_MAX;
  rig->stop = (struct gdb_stop){.kind = GDB_STOPPED, .signal = 11, .thread = 1};
  *state = rig;
  return 0;
}

static int rig_teardown(void **state)
{
  struct rig *rig = *state;

  text_done(&rig->out);
  free(rig);
  return 0;
}

/* Serves these bytes; the answers are in out. */
static int serve_bytes(struct rig *rig, const char *bytes, size_t size)
{
  rig->in = bytes;
  rig->left = size;
  rig->out.length = 0;
  return gdb_serve(&rig->target, &rig->io);
}

/* Serves one packet without acknowledgements in between, and gives the contents of the last packet that came back. */
static const char *ask(struct rig *rig, const char *packet)
{
  static char answer[GDB_PACKET_MAX * 2];
  struct text text = {0};
  unsigned sum = 0;
  char *start, *end;

  for (const char *at = packet; *at; at++)
    sum += (unsigned char)*at;
  assert_true(text_addf(&text, "$QStartNoAckMode#b0+$%s#%02x", packet, sum & 0xFF) >= 0);
  assert_int_equal(serve_bytes(rig, text.data, text.length), GDB_END_GONE);
  text_done(&text);
  start = strrchr(text_string(&rig->out), '$');
  assert_non_null(start);
  snprintf(answer, sizeof(answer), "%s", start + 1);
  end = strrchr(answer, '#');
  assert_non_null(end);
  *end = 0;
  return answer;
}

/* ---- packets ---- */

static void test_frame(void **state)
{
  struct rig *rig = *state;

  /* "OK" sums up to 0x9a; a packet that is not known is answered by an empty one. */
  assert_int_equal(serve_bytes(rig, "$Hg0#df", 7), GDB_END_GONE);
  assert_string_equal(text_string(&rig->out), "+$OK#9a");
  assert_int_equal(serve_bytes(rig, "+$vMustReplyEmpty#3a+", 21), GDB_END_GONE);
  assert_string_equal(text_string(&rig->out), "+$#00");
  rig->at_once = 1;
  assert_int_equal(serve_bytes(rig, "+junk$Hg0#DF", 12), GDB_END_GONE);
  assert_string_equal(text_string(&rig->out), "+$OK#9a");
}

static void test_checksum(void **state)
{
  struct rig *rig = *state;

  serve_bytes(rig, "$Hg0#de$Hg0#df-", 15);
  assert_string_equal(text_string(&rig->out), "-+$OK#9a$OK#9a"); /* and "-" has it sent once more */
  serve_bytes(rig, "$Hg$Hg0#df", 10);
  assert_string_equal(text_string(&rig->out), "+$OK#9a");
  serve_bytes(rig, "$QStartNoAckMode#b0+$Hg0#df", 27);
  assert_string_equal(text_string(&rig->out), "+$OK#9a$OK#9a");
}

static void test_too_big(void **state)
{
  struct rig *rig = *state;
  char *packet = malloc(GDB_PACKET_MAX + 100);
  unsigned sum = (GDB_PACKET_MAX + 1) * 'm' & 0xFF;

  assert_non_null(packet);
  packet[0] = '$';
  memset(packet + 1, 'm', GDB_PACKET_MAX + 1);
  sprintf(packet + GDB_PACKET_MAX + 2, "#%02x$Hg0#df", sum);
  serve_bytes(rig, packet, strlen(packet));
  assert_string_equal(text_string(&rig->out), "+$E5a#db+$OK#9a"); /* EMSGSIZE is 90 */
  free(packet);
}

static void test_end(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(serve_bytes(rig, "$D#44$Hg0#df", 12), GDB_END_DETACHED);
  assert_string_equal(text_string(&rig->out), "+$OK#9a");
  assert_int_equal(serve_bytes(rig, "$k#6b", 5), GDB_END_KILLED);
}

/* ---- state ---- */

static void test_registers(void **state)
{
  struct rig *rig = *state;
  const char *all;

  rig->rax = 0x1122334455667788;
  assert_string_equal(ask(rig, "p0"), "8877665544332211");
  assert_string_equal(ask(rig, "p1"), "xxxxxxxxxxxxxxxx"); /* RBX */
  assert_string_equal(ask(rig, "p10"), "0010400000000000");
  assert_string_equal(ask(rig, "p11"), "46020000");
  assert_string_equal(ask(rig, "p39"), "E16");
  all = ask(rig, "g");
  /* 17 of 8 bytes, 7 of 4, 8 of 10, 8 of 4, 16 of 16, MXCSR */
  assert_int_equal(strlen(all), 2 * (17 * 8 + 7 * 4 + 8 * 10 + 8 * 4 + 16 * 16 + 4));
  assert_memory_equal(all, "8877665544332211xxxx", 20);
  assert_memory_equal(all + 2 * 16 * 8, "0010400000000000", 16);
  assert_string_equal(ask(rig, "P0=0100000000000000"), "OK");
  assert_int_equal(rig->rax, 1);
  assert_string_equal(ask(rig, "P1=0100000000000000"), "E16");
  assert_string_equal(ask(rig, "P0=01"), "E16");
}

static void test_memory(void **state)
{
  struct rig *rig = *state;

  for (unsigned i = 0; i < sizeof(rig->memory); i++)
    rig->memory[i] = (uint8_t)i;
  assert_string_equal(ask(rig, "m10,4"), "10111213");
  assert_string_equal(ask(rig, "mfe,4"), "feff"); /* as much as there is */
  assert_string_equal(ask(rig, "m1000,4"), "E0e");
  assert_string_equal(ask(rig, "m10"), "E16");
  assert_string_equal(ask(rig, "M20,2:abcd"), "OK");
  assert_int_equal(rig->memory[0x20], 0xAB);
  assert_int_equal(rig->memory[0x21], 0xCD);
  assert_string_equal(ask(rig, "M20,3:abcd"), "E16");
  assert_string_equal(ask(rig, "X30,4:a}\x03}\x5d}"), "E16"); /* an escape that is cut */
  assert_string_equal(ask(rig, "X30,3:a}\x03}\x5d"), "OK");
  assert_memory_equal(rig->memory + 0x30, "a#}", 3);
}

/* What a page of a browser can send: packets that write, behind the head of HTTP. */
static void test_stranger(void **state)
{
  static const char post[] = "POST / HTTP/1.1\r\nContent-Length: 30\r\n\r\n+$M20,2:abcd#2a$k#6b";
  static const char *const firsts[] = {"GET / HTTP/1.1\r\n", "\x16\x03\x01", "\n+", " $k#6b"};
  struct rig *rig = *state;

  rig->memory[0x20] = 1;
  assert_int_equal(serve_bytes(rig, post, strlen(post)), GDB_END_STRANGER);
  assert_int_equal(rig->memory[0x20], 1);
  assert_int_equal(rig->out.length, 0);
  for (unsigned i = 0; i < sizeof(firsts) / sizeof(*firsts); i++)
    assert_int_equal(serve_bytes(rig, firsts[i], strlen(firsts[i])), GDB_END_STRANGER);
  assert_int_equal(serve_bytes(rig, "+", 1), GDB_END_GONE);
  assert_int_equal(serve_bytes(rig, "-", 1), GDB_END_GONE);
  assert_int_equal(serve_bytes(rig, "\x03", 1), GDB_END_GONE);
  assert_int_equal(serve_bytes(rig, "$k#6b", 5), GDB_END_KILLED);
}

static void test_stop(void **state)
{
  struct rig *rig = *state;

  assert_string_equal(ask(rig, "?"), "T0b10:0010400000000000;thread:1;");
  rig->stop = (struct gdb_stop){.kind = GDB_WATCH, .point = GDB_POINT_READ, .address = 0xABC, .thread = 1};
  assert_string_equal(ask(rig, "?"), "T05rwatch:abc;10:0010400000000000;thread:1;");
  rig->stop = (struct gdb_stop){.kind = GDB_BREAK, .point = GDB_POINT_HARDWARE, .thread = 1};
  assert_string_equal(ask(rig, "?"), "T05hwbreak:;10:0010400000000000;thread:1;");
  rig->stop = (struct gdb_stop){.kind = GDB_ENDED, .signal = 11, .thread = 1};
  assert_string_equal(ask(rig, "?"), "T05replaylog:end;10:0010400000000000;thread:1;");
  rig->stop = (struct gdb_stop){.kind = GDB_EXITED, .signal = 3};
  assert_string_equal(ask(rig, "?"), "W03");
  rig->stop = (struct gdb_stop){.kind = GDB_KILLED, .signal = 9};
  assert_string_equal(ask(rig, "?"), "X09");
}

static void test_resume(void **state)
{
  struct rig *rig = *state;

  assert_string_equal(ask(rig, "vCont?"), "vCont;c;C;s;S");
  ask(rig, "vCont;s:1;c");
  assert_true(rig->resumed.is_step);
  assert_int_equal(rig->resumed.thread, 1);
  ask(rig, "vCont;C0b");
  assert_false(rig->resumed.is_step);
  assert_int_equal(rig->resumed.signal, 11);
  assert_int_equal(rig->resumed.thread, 0);
  assert_false(rig->was_interrupted);
  assert_string_equal(ask(rig, "vCont;s:7"), "E16");
  assert_string_equal(ask(rig, "vCont;x"), "E16");
  /* What it prints comes before why it stopped: "Hi" is 4869. */
  serve_bytes(rig, "$c#63", 5);
  assert_string_equal(text_string(&rig->out), "+$O4869#2a$T0b10:0010400000000000;thread:1;#df");
}

/* Ctrl-C behind the packet that has it run, or another packet; what comes then is not lost. */
static void test_interrupt(void **state)
{
  struct rig *rig = *state;

  serve_bytes(rig, "$s#73+\003$Hg0#df", 14);
  assert_true(rig->was_interrupted);
  assert_non_null(strstr(text_string(&rig->out), "+$OK#9a"));
  serve_bytes(rig, "$s#73$Hg0#df", 12);
  assert_true(rig->was_interrupted);
  assert_non_null(strstr(text_string(&rig->out), "+$OK#9a"));
}

/* ---- questions ---- */

static void test_description(void **state)
{
  struct rig *rig = *state;
  const char *text = ask(rig, "qXfer:features:read:target.xml:0,4000");

  assert_int_equal(text[0], 'l');
  assert_non_null(strstr(text, "<architecture>i386:x86-64</architecture>"));
  assert_non_null(strstr(text, "name=\"rax\" bitsize=\"64\""));
  assert_true(strstr(text, "\"rax\"") < strstr(text, "\"rbx\"") && strstr(text, "\"rbx\"") < strstr(text, "\"rcx\""));
  assert_null(strstr(text, "cr0"));
  rig->target.features = GDB_HAS_SYSTEM | GDB_HAS_BASES;
  text = ask(rig, "qXfer:features:read:target.xml:0,4000");
  assert_non_null(strstr(text, "\"cr0\""));
  assert_non_null(strstr(text, "\"fs_base\""));
}

static enum gdb_architecture narrow(void *data)
{
  (void)data;
  return GDB_I386;
}

static void test_description_32(void **state)
{
  struct rig *rig = *state;
  const char *text;

  rig->target.architecture = narrow;
  text = ask(rig, "qXfer:features:read:target.xml:0,4000");
  assert_non_null(strstr(text, "<architecture>i386</architecture>"));
  assert_true(strstr(text, "\"eax\"") < strstr(text, "\"ecx\"") && strstr(text, "\"ecx\"") < strstr(text, "\"edx\""));
  assert_null(strstr(text, "\"r8\""));
  assert_string_equal(ask(rig, "p8"), "00104000"); /* EIP */
  /* 8 general, EIP, EFLAGS, 6 segments, x87, 8 of SSE, MXCSR */
  assert_int_equal(strlen(ask(rig, "g")), 2 * (16 * 4 + 8 * 10 + 8 * 4 + 8 * 16 + 4));
}

static void test_monitor(void **state)
{
  struct rig *rig = *state;

  assert_string_equal(ask(rig, "qRcmd,6c6272"), "6f6b0a");
  assert_string_equal(rig->monitor, "lbr");
  assert_string_equal(ask(rig, "qRcmd,6"), "6f6b0a");
  /* what fits no packet comes in several: 10000 letters and 3 */
  serve_bytes(rig, "$qRcmd,6d756368#00", 18);
  assert_int_equal(rig->out.length, 1 + 2 * (5 + 2 * 4096) + 4 + 2 * (10003 - 8192));
  assert_non_null(strstr(text_string(&rig->out), "78786f6b0a#"));
  rig->target.monitor = NULL;
  assert_string_equal(ask(rig, "qRcmd,6c6272"), "E16");
}

/* The architecture is asked for anew with the description; registers follow it. */
static enum gdb_architecture told;

static enum gdb_architecture changing(void *data)
{
  (void)data;
  return told;
}

static void test_description_changes(void **state)
{
  static const char read[] = "qXfer:features:read:target.xml:0,4000", frame[] = "$%s#%02x$p10#d1$p8#a8";
  struct rig *rig = *state;
  char packets[128];
  unsigned sum = 0;

  rig->target.architecture = changing;
  told = GDB_I8086;
  assert_non_null(strstr(ask(rig, read), "<architecture>i8086</architecture>"));
  assert_string_equal(ask(rig, "p8"), "00104000");
  told = GDB_X86_64;
  for (size_t i = 0; i < sizeof(read) - 1; i++)
    sum += (unsigned char)read[i];
  snprintf(packets, sizeof(packets), frame, read, sum & 0xFF);
  serve_bytes(rig, packets, strlen(packets));
  assert_non_null(strstr(text_string(&rig->out), "$0010400000000000#")); /* RIP */
}

static void test_pass_signals(void **state)
{
  struct rig *rig = *state;

  assert_non_null(strstr(ask(rig, "qSupported"), "QPassSignals+"));
  serve_bytes(rig, "$QPassSignals:b;e;ffffffff#60$c#63", 34);
  assert_non_null(strstr(text_string(&rig->out), "+$OK#9a"));
  assert_int_equal(rig->passed, 1u << 11 | 1u << 14);
  serve_bytes(rig, "$QPassSignals:#f3$c#63", 22);
  assert_int_equal(rig->passed, 0);
}

static void test_xml(void **state)
{
  struct text text = {0};

  (void)state;
  assert_int_equal(gdb_xml_add(&text, "a<b>&\"\x01\xFF\xC3\xA4"), 0);
  assert_string_equal(text_string(&text), "a&lt;b>&amp;&quot;??\xC3\xA4");
  text_done(&text);
}

static void test_signals(void **state)
{
  (void)state;
  /* Linux's SIGSEGV, SIGBUS, SIGUSR1, SIGSYS as include/gdb/signals.def numbers them */
  assert_int_equal(gdb_signal(11), 11);
  assert_int_equal(gdb_signal(7), 10);
  assert_int_equal(gdb_signal(10), 30);
  assert_int_equal(gdb_signal(31), 12);
  assert_int_equal(gdb_signal(-1), 143);
  assert_int_equal(gdb_signal(1000), 143);
}

/* ---- the branch trace ---- */

static void history_give(struct rig *rig, size_t count)
{
  rig->target.history_begin = rig_history_begin;
  rig->target.history_next = rig_history_next;
  rig->block_count = count;
  for (size_t i = 0; i < count; i++)
    rig->blocks[i] = (struct gdb_block){0x1000 * i, 0x1000 * i + 7};
}

static void test_history(void **state)
{
  struct rig *rig = *state;

  assert_string_equal(ask(rig, "qXfer:btrace:read:all:0,1000"), "");
  history_give(rig, 2);
  assert_non_null(strstr(ask(rig, "qSupported:x+"), "qXfer:btrace:read+;Qbtrace:bts+"));
  assert_string_equal(
    ask(rig, "qXfer:btrace:read:all:0,1000"),
    "l<!DOCTYPE btrace SYSTEM \"btrace.dtd\"><btrace version=\"1.0\"><block begin=\"0x0\" end=\"0x7\"/>"
    "<block begin=\"0x1000\" end=\"0x1007\"/></btrace>");
  assert_string_equal(ask(rig, "qXfer:btrace:read:delta:0,1000"), "E5f");
  assert_string_equal(ask(rig, "qXfer:btrace:read:other:0,1000"), "E16");
  assert_string_equal(ask(rig, "qXfer:btrace:read:all:100000,1000"), "l");
}

/* In pieces of any size it is the same, and the history is gone through once. */
static void test_history_pieces(void **state)
{
  struct rig *rig = *state;
  struct text packets = {0}, whole = {0};
  const char *at;
  size_t piece = 0x123, total;

  history_give(rig, 3000);
  assert_true(text_add(&packets, "$QStartNoAckMode#b0+") >= 0);
  for (size_t offset = 0; offset < 130000; offset += piece) {
    char packet[64];
    unsigned sum = 0;

    snprintf(packet, sizeof(packet), "qXfer:btrace:read:all:%zx,%zx", offset, piece);
    for (const char *letter = packet; *letter; letter++)
      sum += (unsigned char)*letter;
    assert_true(text_addf(&packets, "$%s#%02x", packet, sum & 0xFF) >= 0);
  }
  serve_bytes(rig, packets.data, packets.length);
  assert_int_equal(rig->begun, 1);
  at = strstr(text_string(&rig->out), "$OK#9a") + 6;
  for (total = 0; *at; total++) {
    const char *end = strchr(at, '#');

    assert_int_equal(at[0], '$');
    assert_true(at[1] == 'm' || at[1] == 'l');
    assert_true(text_add_bytes(&whole, at + 2, (size_t)(end - at - 2)) >= 0);
    at = end + 3;
  }
  at = strstr(text_string(&whole), "<block");
  for (size_t i = 0; i < 3000; i++) {
    char want[64];
    int length = snprintf(want, sizeof(want), "<block begin=\"0x%zx\" end=\"0x%zx\"/>", 0x1000 * i, 0x1000 * i + 7);

    assert_memory_equal(at, want, (size_t)length);
    at += length;
  }
  assert_string_equal(at, "</btrace>");
  text_done(&packets);
  text_done(&whole);
}

#define RIG_TEST(function) cmocka_unit_test_setup_teardown(function, rig_setup, rig_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
    RIG_TEST(test_frame),
    RIG_TEST(test_checksum),
    RIG_TEST(test_too_big),
    RIG_TEST(test_end),
    RIG_TEST(test_registers),
    RIG_TEST(test_memory),
    RIG_TEST(test_stop),
    RIG_TEST(test_resume),
    RIG_TEST(test_interrupt),
    RIG_TEST(test_description),
    RIG_TEST(test_monitor),
    RIG_TEST(test_description_32),
    RIG_TEST(test_description_changes),
    RIG_TEST(test_stranger),
    RIG_TEST(test_pass_signals),
    RIG_TEST(test_history),
    RIG_TEST(test_history_pieces),
    cmocka_unit_test(test_xml),
    cmocka_unit_test(test_signals),
  };

  return cmocka_run_group_tests_name("gdb_remote", tests, NULL, NULL);
}
