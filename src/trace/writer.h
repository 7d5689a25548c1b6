/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a writer: streams with the chunks that they are filling (writer.c), of branches or of entries
 * (writer_entries.c); repetition of entries (writer_history.c); the paths that entries name (writer_paths.c); chunks on
 * their way to the file (chunk.c); the index.
 */
#ifndef TRACE_WRITER_H
#define TRACE_WRITER_H

#include <zstd.h>

#include "lastbranch/trace.h"
#include "trace/branches.h"
#include "trace/entries.h"
#include "trace/file.h"
#include "trace/format.h"
#include "trace/stamp.h"

#define WRITER_ENCODERS 32u /* streams that are being filled at the same time: 8 MiB each at most */

#define STAMPS_FULL (1u << 20) /* bytes of stamps that end a chunk */

#define LAST_NONE 0u              /* there was none, or it is not known what it was */
#define LAST_EVENT LB_ENTRY_EVENT /* an event: no path is running */
#define LAST_BAD LB_ENTRY_ENTER   /* an invalid one */

struct writer_stream {
  uint64_t next;     /* number of the branch that comes next */
  uint64_t previous; /* place of its last chunk; 0: none */
  uint32_t chunks;   /* how many there are: the first ones are short */
  uint32_t space;
  uint32_t thread;    /* the system's number; 0: none */
  int8_t encoder;     /* its encoder; -1: none */
  uint32_t last;      /* its last entry that named a path, in the producer's numbers; or one of LAST_* */
  uint8_t event_size; /* words of an event that have arrived, LB_ENTRY_EVENT included */
  uint32_t event[1 + LB_ENTRY_EVENT_WORDS];
  bool has_stamp;      /* it has a stamp so far: */
  uint64_t stamp_time; /* the time of the last one */
};

/* The first chunks of a stream are short, so that a damaged byte in a small trace costs only a part of it: the steps
 * that entries need are written before each chunk. Each is 256 times as long as the one before. */
#define CHUNK_FIRST_BITS 12u
#define CHUNK_MOST_BITS 20u

#define HISTORY_FIRST ENTRIES_ORDER /* place of a chunk's first entry: so many before it are 0 */
#define HISTORY_PLACES_BITS 15u
#define HISTORY_KEY 32u /* entries that must be the same for a repeat */

#define HISTORY_AHEAD (ENTRIES_BLOCK + HISTORY_KEY) /* entries that are looked at before they are taken */
#define HISTORY_SIZE (HISTORY_FIRST + CHUNK_ENTRIES_MAX + HISTORY_AHEAD)

/* Entries of the chunk that is being filled, in the producer's numbers. New entries are compared with them. */
struct writer_history {
  uint32_t count;   /* the place of the next */
  uint32_t follow;  /* the next entries may equal those from this place on; 0: they equal none */
  bool is_followed; /* they are being encoded as a repetition: then even a single further equal entry counts */
  uint32_t places[1u << HISTORY_PLACES_BITS]; /* of the last plain entries, by the key that begins there */
  uint8_t counts[HISTORY_SIZE]; /* branches that each entry makes, including one that is open at the end; not those of
                                   events */
  uint32_t entries[HISTORY_SIZE];
};

struct writer_entries {
  uint64_t branches; /* of all */
  uint64_t before;   /* what comes before them, as in the file */
  bool is_open;      /* a branch was open then */
  uint32_t full;     /* number of entries of the history that fill the chunk, */
  uint32_t enough;   /* and the number from which on a stamp ends it */
  bool is_ended;     /* a stamp has ended it */
  struct entry_encoder encoder;
  struct writer_history history;
};

/* Holds branches or entries, while it is used. */
struct writer_encoder {
  struct encoder *encoder;
  struct writer_entries *entries;
  struct stamp_encoder stamps;
  uint32_t stamps_known; /* stamps at its start that are in an earlier chunk, too */
  bool has_entries;
  uint32_t stream;
  uint64_t used; /* time of the last use, as a number that grows; 0: free */
};

#define PATH_LINKED 0x80u /* it is known which path runs next, or that there is none that counts */

/* The writer's data about a head or step of the producer. */
struct path_info {
  uint32_t number;  /* in the file; 0: not known yet */
  uint8_t branches; /* taken when the path is left here; 0 for a head */
  uint8_t passed;   /* taken when the path continues here */
  uint8_t
    after; /* taken by a silent pass through the path that runs next: for a head its own, else the following one */
  uint8_t flags; /* enum lb_step_flag, and PATH_LINKED */
};

struct writer_paths {
  lb_trace_step_lookup *lookup;
  void *context;
  struct path_info *infos; /* by the producer's numbers; parts where all are unknown take no memory, */
  uint32_t *nexts;         /* likewise: the path that follows, 0: not known yet */
  size_t capacity;         /* a power of two, whose tables are whole pages; 0: there are none */
  uint32_t count;          /* numbers given out in the file */
  struct buffer steps;     /* those that are not in the file yet */
  uint32_t steps_first, steps_count;
  uint64_t address; /* where the last path ended */
  uint32_t space;
  struct buffer links;
  uint32_t links_count, linked; /* the last step that was tied */
};

/* Places of chunks in the file. */
struct writer_places {
  uint64_t *places;
  size_t count, capacity;
};

struct lb_trace_writer {
  struct trace_file file;
  int error; /* the first failure: nothing is written any more */
  ZSTD_CCtx *zstd;
  struct buffer raw;    /* contents of a chunk */
  struct buffer packed; /* the same compressed, after its head */
  struct writer_stream *streams;
  size_t count, capacity;
  struct writer_encoder encoders[WRITER_ENCODERS];
  uint64_t clock;
  uint64_t branches;
  struct writer_places described; /* chunks that describe, */
  struct writer_places paths_at;  /* those of steps and links, */
  struct writer_places names_at;  /* and those of names, for the index */
  struct writer_paths paths;
  trace_stamp_make *stamp_make;
  void *stamp_context;
};

/* Remembers a failure that leaves the trace without something it should have. Returns the first one. */
int writer_fail(struct lb_trace_writer *writer, int error);

/* Allocates memory for tables that are accessed in random order: in huge pages, if it is large and the system provides
 * them. It is not cleared; free() releases it. Returns NULL if there is none. */
void *table_new(size_t size);

/* How many branches or entries the next chunk of a stream may have. */
uint32_t chunk_size(const struct writer_stream *stream);

/* The slot that this stream is filling, with branches or with entries. Returns NULL after writer_fail. */
struct writer_encoder *encoder_open(struct lb_trace_writer *writer, uint32_t stream, bool has_entries);

/* Writes the chunk that is being filled, and makes the slot free. Returns the writer's error. */
int encoder_close(struct lb_trace_writer *writer, struct writer_encoder *slot);

/* ---- writer_stamps.c ---- */

/* Begins with the stamps of a chunk. Returns 0 or -ENOMEM. */
int stamps_begin(struct lb_trace_writer *writer, struct writer_encoder *slot, uint32_t stream);

/* Whether the chunk has stamps that are in no other. */
static inline bool stamps_are_new(const struct writer_encoder *slot)
{
  return slot->stamps.count > slot->stamps_known;
}

/* Appends the string of stamps to the contents of the chunk. Returns 0 or -ENOMEM. */
int stamps_end(struct writer_encoder *slot, struct buffer *raw);

/* Adds a stamp to the chunk that is being filled, after so many branches of it. Returns 0, -EINVAL or -ENOMEM. */
int stamps_put(struct lb_trace_writer *writer, struct writer_encoder *slot, const struct trace_stamp *stamp,
               uint64_t number);

/* ---- writer_entries.c ---- */

/* Begins an empty chunk of entries of this stream. Returns 0 or -ENOMEM. */
int entries_begin(struct lb_trace_writer *writer, struct writer_encoder *slot, uint32_t stream);

/* Writes the chunk, after the paths that it needs, and adds its branches to the stream's count. Returns the writer's
 * error. */
int entries_end(struct lb_trace_writer *writer, struct writer_encoder *slot);

/* The number of branches so far of the chunk that is being filled. */
uint64_t entries_made(const struct lb_trace_writer *writer, const struct writer_encoder *slot);

/* Notes that entries are missing here. */
void entries_interrupt(struct writer_stream *stream);

void entries_done(struct writer_entries *entries);

/* ---- writer_history.c ---- */

void history_begin(struct writer_history *history);

/* Ends a repetition: the next entries do not repeat earlier ones. */
static inline void history_leave(struct writer_history *history)
{
  history->follow = 0;
  history->is_followed = false;
}

/* Appends entries that, with their counts, are in the arrays already. Returns how many branches they make. */
uint64_t history_add(struct writer_history *history, unsigned count);

/* Searches the next `count` entries, at most HISTORY_AHEAD, for the first that repeats earlier ones. They lie after the
 * last one of the history. Returns how many of them are plain, at most ENTRIES_BLOCK. If those after them are repeated,
 * `follow` is set, and is valid once the plain ones are added. The `infos` of the plain ones, which will soon be
 * needed, are prefetched. */
unsigned history_search(struct writer_history *history, unsigned count, const struct path_info *infos);

/* Appends the new entries that equal those from `follow` on, and returns how many there are, with the number of their
 * branches in `*ret_made`; 0: too few to be worth while, and `follow` ends. The first one makes `first` branches.
 * `*ret_distance` is the distance to the earlier entries. The new entries are only compared: it does no harm if they
 * change meanwhile. `most` is at least 1. */
size_t history_repeat(struct writer_history *history, const uint32_t *entries, size_t most, uint8_t first,
                      uint32_t *ret_distance, uint64_t *ret_made);

/* ---- writer_paths.c ---- */

/* Returns the data about a number of the producer; looks up its path if necessary. Returns all zero if there is none,
 * or after writer_fail. */
struct path_info path_find(struct lb_trace_writer *writer, uint32_t number);

/* The head of the path that follows a step, in the producer's numbers; looks it up if necessary, and puts it into the
 * file, unless leaving the step is an open branch. The step is known. Returns 0 if there is none, or after writer_fail.
 */
uint32_t path_next(struct lb_trace_writer *writer, uint32_t step);

/* Writes the paths that were looked up to the file. Returns the writer's error. */
int paths_write(struct lb_trace_writer *writer);
void paths_done(struct writer_paths *paths);

/* Forgets the producer's numbers from `first` to before `end`. */
void paths_forget(struct writer_paths *paths, uint32_t first, uint32_t end);

/* ---- chunk.c ---- */

/* Writes writer->raw as a chunk; `position` is NULL for the types that have none. It is stored in at least `least`
 * bytes; raw has at least as many. Returns 0 or the writer's error. */
int chunk_write_least(struct lb_trace_writer *writer, enum chunk_type type, const struct chunk_position *position,
                      size_t least);

static inline int chunk_write(struct lb_trace_writer *writer, enum chunk_type type,
                              const struct chunk_position *position)
{
  return chunk_write_least(writer, type, position, 0);
}

/* Appends to writer->raw. Return 0 or -ENOMEM. */
int raw_varint(struct lb_trace_writer *writer, uint64_t value);
int raw_bytes(struct lb_trace_writer *writer, const void *bytes, size_t size); /* after its size */

/* Writes the index and the end marker, after everything else. */
int index_write(struct lb_trace_writer *writer);

#endif
