/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources by name, and whether each can be used. This file is separate, for code that needs nothing else.
 */
#include <errno.h>
#include <string.h>

#include "source/source.h"

static const struct {
  const char *word, *title;
  unsigned facility;
  bool is_complete;
} sources[SOURCES] = {
#define SOURCE(name, word, is_complete, facility, title) {word, title, facility, is_complete},
#include "source/source.def"
#undef SOURCE
};

const char *source_word(unsigned kind)
{
  return kind < SOURCES ? sources[kind].word : NULL;
}

const char *source_title(unsigned kind)
{
  return kind < SOURCES ? sources[kind].title : NULL;
}

int source_find(const char *word)
{
  for (int kind = 0; kind < SOURCES; kind++)
    if (!strcmp(sources[kind].word, word))
      return kind;
  return -EINVAL;
}

bool source_is_complete(unsigned kind)
{
  return kind < SOURCES && sources[kind].is_complete;
}

bool source_is_usable(const struct hardware_host *host, unsigned kind, const char **ret_reason, const char **ret_advice)
{
  const struct hardware_finding *finding;

  *ret_reason = *ret_advice = "";
  if (kind >= SOURCES)
    return false;
  if (sources[kind].facility == HARDWARE_FACILITIES)
    return true;
  finding = &host->findings[sources[kind].facility];
  *ret_reason = finding->reason;
  *ret_advice = finding->advice;
  if (kind == SOURCE_PT && finding->verdict <= HARDWARE_PARTLY && !source_has_pt()) {
    *ret_reason = "this lbr was built without libipt, which decodes it";
    *ret_advice = "build it with libipt (Debian: libipt-dev)";
    return false;
  }
  return finding->verdict <= HARDWARE_PARTLY;
}

/* BTS interrupts the processor for each branch and is many times slower than the software source. Stepping is slower
 * still. Samples are not a complete recording. */
enum source_kind source_choose(const struct hardware_host *host)
{
  const char *reason, *advice;

  return source_is_usable(host, SOURCE_PT, &reason, &advice) ? SOURCE_PT : SOURCE_SOFTWARE;
}

bool source_has_pt(void)
{
#ifdef LB_HAS_IPT
  return true;
#else
  return false;
#endif
}
