/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr gdb: serves a trace to gdb. gdb sees the branches as its branch trace: it shows the functions and instructions
 * that ran, and steps back through them. Without --listen or --stdio, lbr executes gdb, which starts lbr again at the
 * other end of a pipe.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "gdb/gdb.h"

struct gdb_arguments {
  const char *file;
  struct shared_options shared;
  const char *place; /* to listen on; NULL if none */
  bool is_stdio;
  char **rest; /* for gdb, terminated by NULL */
  int rest_count;
};

/* ---- serving ---- */

/* Explains the warning that gdb will print. */
static void death_tell(struct gdb_trace *trace)
{
  const struct gdb_trace_thread *thread = gdb_trace_find(trace, trace->threads[0].id);
  uint8_t byte;

  if (thread && thread->has_died && !gdb_trace_code(trace, thread->rip, &byte, 1))
    cli_error("it died at 0x%" PRIx64 ", where there is no code: gdb will call the stack corrupted", thread->rip);
}

/* Tells how far back gdb can go. */
static void loaded_tell(struct gdb_trace *trace)
{
  struct gdb_trace_thread *thread = gdb_trace_find(trace, trace->threads[0].id);

  if (!thread || gdb_trace_load(trace, thread) < 0)
    return;
  cli_error("loaded %s%" PRIu64 " branches of thread %u%s", trace->branches >= trace->tail ? "the last " : "all ",
            trace->branches, thread->stream, trace->branches >= trace->tail ? "; --tail N loads more" : "");
}

static int trace_serve(const struct gdb_arguments *arguments)
{
  struct gdb_connection connection;
  struct gdb_trace trace;
  struct gdb_target target;
  int r, status;

  if (gdb_trace_open(&trace, arguments->file, arguments->shared.stream, arguments->shared.tail) < 0)
    return CLI_FAILURE;
  loaded_tell(&trace);
  death_tell(&trace);
  signal(SIGPIPE, SIG_IGN);
  if (arguments->is_stdio) {
    signal(SIGINT, SIG_IGN); /* Ctrl-C at the terminal is for gdb */
    gdb_connect_stdio(&connection);
    r = 0;
  } else {
    r = gdb_listen(arguments->place, &connection);
  }
  if (r >= 0) {
    target = gdb_trace_target(&trace);
    r = gdb_serve(&target, &connection.io);
    gdb_connection_close(&connection);
    if (r < 0)
      cli_error("the connection to gdb broke: %s", lb_strerror(r));
  }
  status = gdb_trace_close(&trace);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- starting gdb ---- */

/* Quotes a word for the shell that gdb starts. */
static int word_quote(struct text *text, const char *word)
{
  int r = text_add(text, "'");

  for (; *word && r >= 0; word++)
    r = *word == '\'' ? text_add(text, "'\\''") : text_add_bytes(text, word, 1);
  return r < 0 ? r : text_add(text, "'");
}

/* "target remote | lbr gdb --stdio ..." */
static int target_command(const struct gdb_arguments *arguments, struct text *text)
{
  char self[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
  int r;

  if (size < 0)
    return -errno;
  self[size] = 0;
  r = text_add(text, "target remote | exec ");
  if (r >= 0)
    r = word_quote(text, self);
  if (r >= 0)
    r = text_addf(text, " gdb --stdio --tail %llu", (unsigned long long)arguments->shared.tail);
  if (r >= 0 && arguments->shared.stream != LB_TRACE_ALL)
    r = text_addf(text, " --thread %u", arguments->shared.stream);
  if (r >= 0)
    r = text_add(text, " -- ");
  if (r >= 0)
    r = word_quote(text, arguments->file);
  return r;
}

/* Opens the trace first, since gdb would only report that there is no answer. */
static int gdb_start(const struct gdb_arguments *arguments)
{
  struct gdb_trace trace;
  struct text target = {0};
  int r;

  if (strpbrk(arguments->file, "\n\r")) {
    cli_error("the name of the trace contains a line break, which gdb cannot take");
    return CLI_FAILURE;
  }
  if (gdb_trace_open(&trace, arguments->file, arguments->shared.stream, 1) < 0)
    return CLI_FAILURE;
  gdb_trace_close(&trace);
  r = target_command(arguments, &target);
  if (r >= 0)
    r = gdb_execute(target.data, arguments->rest, arguments->rest_count);
  text_done(&target);
  gdb_complain(r);
  return CLI_FAILURE;
}

/* ---- the command line ---- */

enum { KEY_LISTEN = 0x100, KEY_STDIO };

static const struct argp_option options[] = {
  {"listen", KEY_LISTEN, "PORT|unix:PATH", 0, "Wait for a gdb there instead of starting one", 0},
  {"stdio", KEY_STDIO, NULL, 0, "Serve on standard input and output, for gdb's `target remote |'", 0},
  {0},
};

static const struct argp_child children[] = {SHARED_TAIL, SHARED_THREAD, SHARED_COMMON, {0}};

static void arguments_check(const struct gdb_arguments *arguments, struct argp_state *state)
{
  if (!arguments->file)
    argp_error(state, "name a trace");
  if (!arguments->shared.tail || arguments->shared.tail > GDB_TAIL_MAX)
    argp_error(state, "--tail wants a number from 1 to %llu", (unsigned long long)GDB_TAIL_MAX);
  if (arguments->place && arguments->is_stdio)
    argp_error(state, "--listen and --stdio exclude each other");
  if ((arguments->place || arguments->is_stdio) && arguments->rest_count)
    argp_error(state, "'%s' is for gdb, which --listen and --stdio do not start", arguments->rest[0]);
}

/* Arguments after the trace and "--" are for gdb. */
static void argument_take(struct gdb_arguments *arguments, char *argument, struct argp_state *state)
{
  if (!arguments->file) {
    arguments->file = argument;
    return;
  }
  if (!state->quoted || state->next - 1 < state->quoted)
    argp_error(state, "name one trace; arguments for gdb come after --");
  arguments->rest = state->argv + state->next - 1;
  arguments->rest_count = state->argc - (state->next - 1);
  state->next = state->argc;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct gdb_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_LISTEN:
    if (!gdb_listen_is_place(argument))
      argp_error(state, "--listen takes a port number or unix:PATH, not '%s'", argument);
    arguments->place = argument;
    return 0;
  case KEY_STDIO:
    arguments->is_stdio = true;
    return 0;
  case ARGP_KEY_ARG:
    argument_take(arguments, argument, state);
    return 0;
  case ARGP_KEY_END:
    arguments_check(arguments, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp gdb_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE [-- ARGUMENT...]",
  .doc =
    "Open a trace in gdb and step backwards through its functions and instructions. Starts gdb with the ARGUMENTs, on the process of the thread that died or else of the first thread; --thread names another.\vIn gdb, use record function-call-history, record instruction-history, reverse-stepi, reverse-next, reverse-continue, record goto begin, and bt after a step back. gdb knows the instruction pointer, the code and constant memory of the past; all else is <unavailable>.\n\nExit status: that of gdb; with --listen or --stdio 0, 1 for a trace that is damaged or cannot be served, 2 for a usage error.",
  .children = children,
};

int cmd_gdb(int argc, char **argv)
{
  struct gdb_arguments arguments = {0};

  shared_options_init(&arguments.shared);
  arguments.shared.tail = GDB_TAIL_DEFAULT;
  arguments.shared.tail_default = "100000";
  argp_parse(&gdb_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(arguments.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  return arguments.place || arguments.is_stdio ? trace_serve(&arguments) : gdb_start(&arguments);
}
