/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the records at the beginning of a trace that describe its origin.
 */
#include "session/trace_meta.h"

#include <sys/utsname.h>
#include <time.h>

#include "base/base.h"

int trace_meta_put(struct lb_trace_writer *writer, const char *key, const char *value)
{
  return lb_trace_writer_meta(writer, &(struct lb_trace_meta){key, value});
}

int trace_meta_put_all(struct lb_trace_writer *writer, const char *source, const char *key, const char *value,
                       char *const *words)
{
  struct text command = {0}, now = {0};
  struct utsname host;
  int r;

  for (size_t i = 0; words[i]; i++)
    text_addf(&command, "%s%s", i ? " " : "", words[i]);
  if (command.length > LB_TRACE_TEXT_MAX)
    command.data[LB_TRACE_TEXT_MAX] = 0;
  text_addf(&now, "%lld", (long long)time(NULL));
  r = trace_meta_put(writer, "producer", "lbr " LB_VERSION);
  if (r >= 0)
    r = trace_meta_put(writer, "source", source);
  if (r >= 0)
    r = trace_meta_put(writer, key, value);
  if (r >= 0)
    r = trace_meta_put(writer, "command", text_string(&command));
  if (r >= 0 && uname(&host) == 0)
    r = trace_meta_put(writer, "host", host.nodename);
  if (r >= 0)
    r = trace_meta_put(writer, "time", text_string(&now));
  text_done(&command);
  text_done(&now);
  return r;
}
