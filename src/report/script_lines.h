/* SPDX-License-Identifier: Apache-2.0
 *
 * A script while it is made: declarations that its parts share (script.c: records and common lines; script_fields.c:
 * lines of fields that were picked; script_around.c: branches before and after). The text of an address with its name
 * is made once and cached; a line is then a few copies.
 */
#ifndef REPORT_SCRIPT_LINES_H
#define REPORT_SCRIPT_LINES_H

#include "analysis/analysis.h"
#include "base/base.h"
#include "report/report.h"
#include "report/writer.h"

#define PLACES (1u << 14)
#define PLACE_TEXT 104u /* longer texts are not cached */

/* The kinds of text that are cached for an address. */
enum place_what { PLACE_WHOLE, PLACE_SYMBOL, PLACE_MODULE, PLACE_LINE, PLACE_INSTRUCTION, PLACE_WHATS = 8 };

struct place {
  uint64_t address;
  uint32_t space;
  uint32_t tag; /* generation of the modules, and enum place_what; 0: the place is empty */
  uint16_t length;
  char text[PLACE_TEXT];
};

/* A branch that may be wanted later. */
struct kept_branch {
  uint64_t number;
  struct lb_branch branch;
};

/* The newest branches of a stream that were not printed. */
struct kept_branches {
  struct kept_branch *ring; /* options.context of them; NULL: none so far */
  uint32_t next, count;
  uint32_t left;   /* how many of the next branches are still to be printed */
  bool is_dropped; /* some were dropped from the ring since the last printed branch */
};

struct report_script {
  struct report_script_options options;
  struct stream_list streams;
  uint64_t printed, skip;
  uint32_t generation; /* a multiple of PLACE_WHATS */
  /* around: */
  struct analysis_filter *entries; /* branches to the place */
  struct kept_branches *kept;      /* of each stream */
  size_t kept_count, kept_capacity;
  struct analysis_clock *clock; /* NULL: no times are needed */
  struct text event;            /* lines that are not in the output yet */
  struct place places[PLACES];
  struct writer writer;
};

/* ---- script_events.c; return 0, or -ENOMEM ---- */

int script_events_begin(struct report_script *script);
void script_events_done(struct report_script *script);

/* Appends the lines of events that a record ends. To be called before the record is used. */
int script_events_record(struct report_script *script, const struct lb_trace_record *record, struct text *text);
int script_events_end(struct report_script *script, struct text *text);

/* Leaves out the branches that are not in the span of time. */
void script_cut(const struct report_script *script, struct lb_trace_branches *branches);

/* Makes the text of a place and caches it if it is short. */
void script_put_new_place(struct report_script *script, struct place *place, enum place_what what, uint32_t space,
                          uint64_t address);

static inline void script_put_place(struct report_script *script, enum place_what what, uint32_t space,
                                    uint64_t address)
{
  uint64_t hash = (address ^ address >> 14 ^ (uint64_t)what << 9) * 0x9E3779B1u;
  struct place *place = &script->places[hash >> 8 & (PLACES - 1)];

  if (place->address == address && place->space == space && place->tag == (script->generation | what))
    writer_bytes(&script->writer, place->text, place->length);
  else
    script_put_new_place(script, place, what, space, address);
}

static inline void writer_quoted_hex(struct writer *writer, uint64_t value)
{
  writer_bytes(writer, "\"", 1);
  writer_hex(writer, value);
  writer_bytes(writer, "\"", 1);
}

/* A symbol, a module, a line or an instruction alone, or "-"; in JSON a string or null. At most 4 KiB. */
void script_put_part(struct report_script *script, enum place_what what, uint32_t space, uint64_t address);

/* The line of a branch: of the fields that were picked. */
void script_put_fields(struct report_script *script, uint32_t number_of_stream, const struct analysis_stream *stream,
                       uint64_t number, const struct lb_branch *branch);

/* The line of a branch, with room made for it first. Returns 0, or -ENOMEM. */
int script_put_branch(struct report_script *script, uint32_t number_of_stream, const struct analysis_stream *stream,
                      uint64_t number, const struct lb_branch *branch, struct text *text);

/* Prints those of the wanted branches of a record that are around entries. Returns 0, LB_E_TOO_BIG, or -ENOMEM. */
int script_around(struct report_script *script, const struct lb_trace_branches *branches,
                  const struct analysis_stream *stream, const uint16_t *wanted, size_t count, struct text *text);
int script_around_begin(struct report_script *script); /* 0, or -ENOMEM */
void script_around_done(struct report_script *script);

#endif
