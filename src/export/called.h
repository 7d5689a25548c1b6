/* SPDX-License-Identifier: Apache-2.0
 *
 * Information about a function, for timelines and profiles of calls.
 */
#ifndef EXPORT_CALLED_H
#define EXPORT_CALLED_H

#include "export/export.h"

struct called {
  const char *symbol; /* as it is shown, even for a function without a symbol; valid until the next call */
  const char *source; /* the file that it is declared in; NULL: not known */
  const char *module; /* NULL: it is in none */
  unsigned line;      /* 0: not known */
  struct analysis_location location;
};

/* The function with a number of analysis_calls; `name` is the caller's, for the symbol. Returns 0; LB_E_NO_ENTRY past
 * the last; -ENOMEM. */
int called_get(const struct export_job *job, uint32_t function, struct text *name, struct called *ret_called);

/* To be called at the end: warns if instructions that the file shows were not counted, or (`stacks` not NULL) stacks
 * are incomplete. */
void called_warn(struct export_job *job, const struct analysis_stacks *stacks);

/* Fails because there is no call, or none that was asked for. Returns LB_E_NO_ENTRY, after export_fail. */
int called_fail(struct export_job *job);

/* The name of a thread in words: "sh (thread 0)". Empties `text` first. Returns 0, or -ENOMEM. */
int called_thread(const struct export_job *job, uint32_t stream, struct text *text);

#endif
