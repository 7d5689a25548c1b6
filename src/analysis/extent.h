/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the function that an address is in. Every command uses this answer. A symbol gives the answer; without one, the
 * unwind tables (.eh_frame), which stripped files keep, give it. Where these say nothing either, a function is assumed
 * to reach from one called address to the next, which is a guess.
 */
#ifndef ANALYSIS_EXTENT_H
#define ANALYSIS_EXTENT_H

#include "analysis/location.h"

struct analysis_filter_options;
struct lb_trace_reader;
struct text;

enum analysis_extent_source {
  ANALYSIS_EXTENT_BY_SYMBOL,
  ANALYSIS_EXTENT_BY_UNWIND,  /* start and end are exact, the name is not known */
  ANALYSIS_EXTENT_BY_CALL,    /* a guess: begins at a call target, or after code that symbols or unwind tables cover */
  ANALYSIS_EXTENT_BY_NOTHING, /* the rest of a module, or of code in no module: no function is known to begin before it
                               */
};

struct analysis_extent {
  const char *symbol, *mangled; /* NULL unless by symbol; as in struct analysis_name */
  const char *module;           /* NULL: in no module */
  uint32_t file, space;         /* as in struct analysis_location */
  uint64_t start;               /* address, as that of a location; 0 for ANALYSIS_EXTENT_BY_NOTHING */
  uint64_t end;                 /* address after its last byte; 0: not known */
  uint8_t source;               /* enum analysis_extent_source */
};

/* The function at a location. */
void analysis_extent_find(struct analysis_names *names, const struct analysis_location *location,
                          struct analysis_extent *ret_extent);

/* The same without guesses, for use while it is not known yet where functions begin. Returns false for code that
 * neither symbols nor unwind tables cover: the extent is then ANALYSIS_EXTENT_BY_NOTHING. */
bool analysis_extent_known(struct analysis_names *names, const struct analysis_location *location,
                           struct analysis_extent *ret_extent);

static inline bool analysis_extent_is_guess(const struct analysis_extent *extent)
{
  return extent->source >= ANALYSIS_EXTENT_BY_CALL;
}

#define ANALYSIS_EXTENT_GUESS "?" /* suffix of a function that is a guess */

/* Appends the name of a function without a symbol: "MODULE+0xADDRESS", "0xADDRESS" in no module, "[MODULE]" or "[in no
 * module]" for the rest, and ANALYSIS_EXTENT_GUESS after an address that is a guess. Returns 0, or -ENOMEM. */
int analysis_extent_name(struct text *text, const char *module, uint64_t start, enum analysis_extent_source source);

/* ---- where functions begin that neither symbols nor unwind tables know (starts.c) ---- */

#define ANALYSIS_STARTS_MAX (1u << 19) /* with more starts, such code is not divided further */

/* Kept by `struct analysis_names`. */
struct start_list {
  struct analysis_location *list;
  size_t count, capacity;
  size_t sorted; /* number of entries at the start that are sorted and unique */
};

void start_list_done(struct start_list *starts);

/* Notes that a function begins at a location, unless something better is known about it. Returns 1 if the location is
 * new to the list, 0, or -ENOMEM. */
int analysis_starts_add(struct analysis_names *names, const struct analysis_location *location);

/* Takes note of a taken branch: if functions are entered by branches of its kind, one begins at `to`. Returns as above.
 */
int analysis_starts_jump(struct analysis_names *names, const struct analysis_location *from,
                         const struct analysis_location *to, unsigned kind);

/* Takes only the modules, the code and such branches from a whole trace, and rewinds it. For callers that must know
 * where functions begin before the first branch, or need the code at the end of a trace. Read errors are not reported
 * here: the next reader of the trace meets them again. `tell`, which may be NULL, is called now and then with the
 * number of branches read so far. Returns 0, or -ENOMEM. */
typedef void analysis_progress(void *data, uint64_t branches);
int analysis_starts_read(struct analysis_names *names, struct lb_trace_reader *reader, analysis_progress *tell,
                         void *data);

/* The purpose of reading a trace, as far as it decides whether the starts of functions are needed. */
struct analysis_use {
  const struct analysis_filter_options *filter; /* of branches; NULL: none */
  bool has_calls;                               /* calls are followed */
  bool is_part; /* only a part of the trace is counted; the extent of a function must not depend on the part */
};

/* Must analysis_starts_read be called first? Only this function decides that. */
bool analysis_use_needs_starts(const struct analysis_use *use);

/* The last start at or before a location in the same file or space (0: none), and the first one after it (UINT64_MAX:
 * none). */
void starts_around(struct analysis_names *names, const struct analysis_location *location, uint64_t *ret_before,
                   uint64_t *ret_after);

#endif
