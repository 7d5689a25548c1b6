/* SPDX-License-Identifier: Apache-2.0
 *
 * stamp_trace TRACE: writes a trace by hand. Standard input has a line for each branch and stamp, in hexadecimal for
 * addresses and else decimal:
 *
 *   stream NAME                          begins the next stream; they are numbered from 0
 *   call|ret|jmp|syscall STREAM FROM TO
 *   start|time|end STREAM TIME USED      -1: the CPU time is not known
 *   enter STREAM TIME NUMBER PATH A...   a system call: PATH "-" for none, and its arguments
 *   return STREAM TIME USED RESULT
 *   held STREAM TIME DURATION
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lastbranch/branch.h"
#include "trace/trace.h"

static struct lb_trace_writer *writer;

static void check(int r, const char *line)
{
  if (r >= 0)
    return;
  fprintf(stderr, "stamp_trace: %d: %s\n", r, line);
  exit(1);
}

static void branch_put(const char *word, const char *line)
{
  static const struct {
    const char *word;
    uint8_t kind;
  } kinds[] = {{"call", LB_BRANCH_NEAR_REL_CALL},
               {"ret", LB_BRANCH_NEAR_RET},
               {"jmp", LB_BRANCH_NEAR_REL_JMP},
               {"syscall", LB_BRANCH_SYSCALL}};
  struct lb_branch branch = {.from_cpl = 3, .to_cpl = 3};
  unsigned stream = 0, kind = 0;

  while (kind < 4 && strcmp(kinds[kind].word, word) != 0)
    kind++;
  if (kind == 4 || sscanf(line, "%*s %u %" SCNx64 " %" SCNx64, &stream, &branch.from, &branch.to) != 3)
    check(-1, line);
  branch.kind = kinds[kind].kind;
  check(lb_trace_writer_branches(writer, stream, &branch, 1), line);
}

static void used_set(struct trace_stamp *stamp, int64_t used)
{
  stamp->has_used = used >= 0;
  stamp->used = used >= 0 ? (uint64_t)used : 0;
}

static void enter_put(const char *line)
{
  struct trace_stamp stamp = {.type = TRACE_STAMP_CALL};
  char path[256];
  unsigned stream = 0;
  int at = 0, count = sscanf(line, "%*s %u %" SCNu64 " %u %255s%n", &stream, &stamp.time, &stamp.code, path, &at);

  check(count == 4 ? 0 : -1, line);
  if (strcmp(path, "-") != 0)
    stamp.paths[0] = path;
  for (char *end; stamp.argument_count < TRACE_ARGUMENTS_MAX; line = end, at = 0) {
    uint64_t value = strtoull(line + at, &end, 10);

    if (end == line + at)
      break;
    stamp.arguments[stamp.argument_count++] = value;
  }
  check(trace_writer_stamp(writer, stream, &stamp), line);
}

/* Returns false if the line is no stamp. */
static bool stamp_put(const char *word, const char *line)
{
  static const struct {
    const char *word;
    uint8_t type;
  } types[] = {{"start", TRACE_STAMP_START},
               {"time", TRACE_STAMP_TIME},
               {"end", TRACE_STAMP_END},
               {"return", TRACE_STAMP_RETURN},
               {"held", TRACE_STAMP_HELD}};
  struct trace_stamp stamp = {0};
  int64_t values[2] = {-1, 0};
  unsigned stream = 0, type = 0;

  while (type < 5 && strcmp(types[type].word, word) != 0)
    type++;
  if (type == 5)
    return false;
  stamp.type = types[type].type;
  if (sscanf(line, "%*s %u %" SCNu64 " %" SCNd64 " %" SCNd64, &stream, &stamp.time, &values[0], &values[1]) < 3)
    check(-1, line);
  if (stamp.type == TRACE_STAMP_HELD)
    stamp.result = values[0];
  else
    used_set(&stamp, values[0]);
  if (stamp.type == TRACE_STAMP_RETURN)
    stamp.result = values[1];
  check(trace_writer_stamp(writer, stream, &stamp), line);
  return true;
}

int main(int argc, char **argv)
{
  char line[1024], word[16], name[64];
  uint32_t number;

  check(argc == 2 ? lb_trace_writer_open(argv[1], &writer) : -1, "usage: stamp_trace TRACE");
  while (fgets(line, sizeof(line), stdin)) {
    if (sscanf(line, "%15s", word) != 1)
      continue;
    if (!strcmp(word, "stream") && sscanf(line, "%*s %63s", name) == 1)
      check(lb_trace_writer_stream(writer, &(struct lb_trace_stream){.name = name, .space = 1}, &number), line);
    else if (!strcmp(word, "enter"))
      enter_put(line);
    else if (!stamp_put(word, line))
      branch_put(word, line);
  }
  check(lb_trace_writer_close(writer), "close");
  return 0;
}
