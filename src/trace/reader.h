/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a reader: bytes from a file or memory, chunks out of them (load.c), records out of these (unpack.c),
 * steps of paths (steps.c) and branches out of the entries that name them (expand.c) or their counts (count.c,
 * count_chunk.c), the order in which they are read (reader.c), and the end of a stream without reading everything
 * before it (tail.c).
 */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <zstd.h>

#include "lastbranch/trace.h"
#include "trace/branches.h"
#include "trace/count_pair.h"
#include "trace/count_step.h"
#include "trace/entries.h"
#include "trace/format.h"
#include "trace/path.h"
#include "trace/stamp.h"
#include "trace/trace.h"

struct reader_stream {
  uint64_t next;       /* number of the branch that comes next if none is missing */
  uint64_t last;       /* place of its last chunk; 0: not known */
  uint64_t lost_until; /* branches before this were missing, and counted as lost */
  uint64_t end;        /* number of branches, from the index; 0: the index was not read */
};

struct reader_places {
  uint64_t *places;
  size_t count, capacity;
};

/* Places of chunks to be read in this order, instead of from front to end. */
struct reader_plan {
  bool is_on;
  bool has_places; /* the parts that do not depend on the stream are known: `described`, `is_file_cut`, the streams'
                      ends */
  bool is_file_cut;
  bool is_broken; /* the walk back through the stream ended too early */
  bool is_cut;    /* the file lacks its end */
  struct reader_places list;
  size_t at;
  size_t described; /* places that come before those of the stream */
  uint64_t skip;    /* branches of the stream's first chunk that were not asked for */
};

/* A step or head, prepared for fast expansion into branches. A path is stored as a whole or not at all. */
struct reader_step {
  uint64_t from, to; /* of a head, `to` is its address space */
  uint32_t head;     /* 0: there is none with this number */
  uint32_t next;
  uint8_t small[4]; /* kind and, third, flags of its branch, as they lie in struct lb_branch; second, how many
                       conditional branches of the path were not taken when it is left here */
  uint8_t flags;    /* enum lb_step_flag */
  uint8_t count;    /* of a head: steps after it; of a step: steps with LB_STEP_FOLLOW before it in its path, */
  uint8_t back;     /* and how far back the last of them is */
  uint8_t length;
};

_Static_assert(sizeof(struct reader_step) == 32, "");

#define READER_WORDS 2048u
#define READER_AHEAD 8u /* words whose steps are fetched before they are needed */

/* Entries that are being read. */
struct reader_entries {
  struct entry_decoder decoder;
  struct path_walker walker;
  struct lb_step step;                         /* for the walker */
  uint32_t words[READER_WORDS + READER_AHEAD]; /* those from `at` to `count` are not yet used */
  size_t at, count;
  uint32_t open;  /* step whose branch is open in the walker, 0: not known which */
  bool is_lost;   /* the last entry was invalid, and was given as a gap */
  bool is_excess; /* there were more branches than the chunk says */
  bool has_stop;  /* an event without a target was taken, and not given yet */
};

/* Branches that were counted instead of given. */
struct reader_counts {
  bool is_on;
  uint32_t stream;          /* this one only, or LB_TRACE_ALL */
  struct count_step *steps; /* by number */
  size_t capacity;
  struct count_pairs pairs;
  struct chunk_counter *counter; /* NULL until there is a chunk that it can count */
};

/* Names, which are given ahead of everything else whenever the reader begins anew. */
struct reader_names {
  bool is_wanted;
  bool is_due;             /* the records of names come next: */
  bool is_begun;           /* the first of them was given, */
  size_t next;             /* and this one follows */
  struct reader_places at; /* all of them */
  struct trace_names record;
  struct trace_name *list; /* of the record */
  size_t capacity;
};

/* The stamps of the open chunk. */
struct reader_stamps {
  bool is_wanted;
  bool has_more;   /* the decoder has more */
  bool has_before; /* a stamp was passed, in this chunk: the last one, */
  bool has_next;   /* and the one that comes next; numbers are those of the stream */
  struct trace_stamp before, next;
  uint64_t from; /* stamps with fewer branches before them were not asked for */
  struct stamp_decoder decoder;
  struct lb_trace_branches held; /* the rest of a batch, after a stamp */
};

struct lb_trace_reader {
  int fd; /* -1: bytes in memory */
  const uint8_t *bytes;
  uint64_t size;
  uint64_t offset; /* where the next chunk is */
  uint16_t version;
  bool is_over; /* the end was given */
  /* the chunk that was loaded last */
  uint64_t place;
  struct chunk_head head;
  struct chunk_position position;
  struct buffer stored, raw;
  ZSTD_DCtx *zstd;
  /* branches that come out of it */
  struct decoder decoder;
  struct reader_entries *entries; /* NULL until there are any */
  bool has_entries;               /* the chunk that is open is one of entries, and gives more */
  uint64_t number;                /* of the next branch */
  uint64_t skip;
  struct reader_step *steps; /* by their numbers */
  uint32_t step_count;       /* numbers are below this */
  size_t step_capacity;
  bool has_holes;                /* numbers were left out */
  struct reader_places paths_at; /* chunks of steps and links, for a tail */
  bool has_paths;                /* they were read */
  struct reader_names names;
  struct reader_stamps stamps;
  bool is_damaged; /* something could not be read: at the end, the index tells what is missing */
  struct {
    uint64_t branches, bytes;
    uint64_t until; /* bytes before this were counted */
  } lost;
  uint32_t ended;     /* number of streams that were checked for missing branches at the end */
  uint64_t not_taken; /* conditional branches that entries passed so far, */
  bool has_not_taken; /* if there were any entries */
  struct reader_counts counts;
  struct reader_stream *streams;
  size_t count, capacity;
  struct reader_plan plan;
  char texts[2][LB_TRACE_TEXT_MAX + 1];
  struct lb_branch batch[LB_TRACE_BATCH_MAX];
};

/* ---- load.c ---- */

/* Bytes of the file. Returns 0, -errno, or LB_E_TRUNCATED. */
int reader_read(struct lb_trace_reader *reader, uint64_t offset, void *bytes, size_t size);

/* The head of the chunk at `offset`. Returns 0; LB_E_TRUNCATED when the file ends before the chunk does; LB_E_DAMAGED
 * when there is no chunk; -errno. */
int chunk_find(struct lb_trace_reader *reader, uint64_t offset, struct chunk_head *ret_head);

/* The same with its position; LB_E_DAMAGED for a chunk that has none. */
int chunk_find_position(struct lb_trace_reader *reader, uint64_t offset, struct chunk_head *ret_head,
                        struct chunk_position *ret_position);

/* Looks for the next head of a chunk after `offset`. Returns 0, LB_E_TRUNCATED when there is none, or -errno. */
int chunk_search(struct lb_trace_reader *reader, uint64_t offset, uint64_t *ret_offset);

/* Loads the chunk that chunk_find found: head, position, and contents in reader->raw. Returns 0, -errno, -ENOMEM, or
 * LB_E_DAMAGED. */
int chunk_load(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head);

/* ---- unpack.c ---- */

/* Is it a type of chunk that describes the trace, and that this reader knows? */
bool chunk_describes(unsigned type);

/* Unpacks the loaded chunk into a record. Returns 0 or LB_E_DAMAGED. */
int record_unpack(struct lb_trace_reader *reader, struct lb_trace_record *ret_record);
int gap_unpack(struct lb_trace_reader *reader, struct lb_trace_gap *ret_gap);

/* ---- reader_stamps.c ---- */

/* Begins with the stamps of the chunk that is open. */
void stamps_open(struct lb_trace_reader *reader, struct cursor bytes);

/* Forgets the stamps of the chunk. */
void stamps_close(struct lb_trace_reader *reader);

/* Whether the open chunk has stamps, or branches behind a stamp, that were not given. */
bool stamps_are_left(const struct lb_trace_reader *reader);

/* Gives the next stamp, or the branches behind it that were held back. Returns 1; 0: more branches come first. */
int stamps_next(struct lb_trace_reader *reader, struct lb_trace_record *record);

/* Holds back the branches of a record that come after the next stamp. */
void stamps_cut(struct lb_trace_reader *reader, struct lb_trace_branches *branches);

/* ---- reader_names.c ---- */

/* Unpacks the loaded chunk of names. Returns 0, LB_E_DAMAGED, or -ENOMEM. */
int names_unpack(struct lb_trace_reader *reader, struct lb_trace_record *ret_record);

/* Gives the next record of names that is due. Returns 1; 0: there are no more; -ENOMEM or -errno. */
int names_ahead(struct lb_trace_reader *reader, struct lb_trace_record *ret_record);

/* Adds the places of names to those of the plan, in the order of the file. Returns 0 or -ENOMEM. */
int names_plan(struct lb_trace_reader *reader);

/* ---- steps.c ---- */

/* Is it a chunk of steps or links? */
bool chunk_has_paths(unsigned type);

/* Takes the steps or links of the loaded chunk. Those that are known already stay. Returns 0, LB_E_DAMAGED: some or all
 * are left out, or -ENOMEM. */
int paths_unpack(struct lb_trace_reader *reader);

/* ---- expand.c ---- */

/* Begins with the chunk of entries that was loaded. Returns 0, LB_E_DAMAGED, or -ENOMEM. */
int entries_open(struct lb_trace_reader *reader);

/* Reads more words of the chunk into reader->entries if all are used. Returns how many there are, 0 at the end, or
 * LB_E_DAMAGED. */
int entries_read(struct lb_trace_reader *reader);

/* Expands the next word, with the walker, into `branches`, which has room for PATH_BRANCHES_MAX. Returns the number of
 * branches; -EBADMSG if the word is invalid. */
int entries_walk(struct lb_trace_reader *reader, struct lb_branch *branches, size_t room);

/* The address of execution before the next entry; 0: not known. */
uint64_t entries_start(const struct lb_trace_reader *reader);

/* Skips an invalid word: the next one is treated as the first. Returns false if the word right before it was invalid,
 * too: several in a row are one loss. */
bool entries_lose(struct lb_trace_reader *reader);

/* Expands more entries of the chunk into reader->batch. Returns the number of branches; 0 at the end, if all was valid;
 * -EBADMSG: something was invalid and was left out, there may be more; LB_E_DAMAGED: there is no more. */
int entries_next(struct lb_trace_reader *reader);

/* ---- count.c ---- */

/* Makes room to count all steps that there are. Returns 0, or -ENOMEM. */
int counts_reserve(struct lb_trace_reader *reader);

/* Prepares to count the numbers from `first` to below `end`, after their path was stored or a step of it was linked. */
void counts_learn(struct lb_trace_reader *reader, size_t first, size_t end);

/* Counts words of the open chunk as long as they are passes over paths. Returns how many words it took, with the number
 * of branches that they stand for in `*ret_branches`, and the address of execution after them in `*ret_at`, 0: not
 * known yet. */
size_t counts_take(struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_at);

/* Prepares the walker to continue after a word, with this path running and the branch of this step open; 0: none.
 * Returns the address of execution, 0: not known yet. */
uint64_t counts_stop(struct lb_trace_reader *reader, uint32_t running, uint32_t open, uint32_t word);

/* ---- count_arc.c ---- */

/* The same after an entry, a step or a head, whatever came before it. */
uint64_t counts_stop_after(struct lb_trace_reader *reader, uint32_t entry);

/* Adds the counts of all arcs to the counts of the reader. */
void counts_flush(struct lb_trace_reader *reader);

/* The same for the arcs that begin with this step, before it is linked to a path. */
void counts_forget(struct lb_trace_reader *reader, uint32_t step);

/* ---- count_chunk.c ---- */

/* Takes the chunk with this offset and head if it was loaded ahead, as chunk_load would. Returns false if not. */
bool ahead_take(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head);

void chunk_counter_free(struct chunk_counter *counter); /* takes NULL */

/* Counts all of the open chunk, of which nothing was read yet. Returns false when it must be counted word by word;
 * else the same as counts_take. */
bool counts_chunk(struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_at);

void counts_done(struct lb_trace_reader *reader);

/* ---- tail.c ---- */

/* Finds the places of all chunks that belong to no stream, once. Returns 0, -errno or -ENOMEM. */
int places_find(struct lb_trace_reader *reader);

/* Sets the `end` of each stream from the index that was loaded. Returns 0, LB_E_DAMAGED, or -ENOMEM. */
int index_ends(struct lb_trace_reader *reader);

/* ---- reader_branches.c; all return 1 with a record ---- */

int give_gap(struct lb_trace_record *record, struct lb_trace_gap gap);

/* Bytes that could not be read. */
int give_damage(struct lb_trace_reader *reader, struct lb_trace_record *record, uint64_t offset, uint64_t bytes);

/* A gap of one stream that damage made. Missing branches are counted once, however often a file is read. */
int give_loss(struct lb_trace_reader *reader, struct lb_trace_record *record, struct lb_trace_gap gap);

/* A chunk of a stream was loaded: are branches missing before it? If so, the gap is given, and the caller must look at
 * the chunk again. Returns 0 if not; or negative. */
int position_check(struct lb_trace_reader *reader, struct lb_trace_record *record);

/* Begin with the chunk of branches, entries or a gap that was loaded. Return 0 when it gives no record (yet); or
 * negative. */
int branches_open(struct lb_trace_reader *reader, struct lb_trace_record *record);
int gap_open(struct lb_trace_reader *reader, struct lb_trace_record *record);

/* The next branches of the chunk that is open, if any. Returns 0 when it gives no more, or negative. */
int branches_next(struct lb_trace_reader *reader, struct lb_trace_record *record);

/* Is this stream counted? If one stream is counted, the others are skipped. */
bool position_is_wanted(const struct lb_trace_reader *reader, uint32_t stream);

/* ---- reader.c ---- */

/* As lb_trace_reader_rewind, but puts only this stream back to its start; LB_TRACE_ALL: all streams. */
void reader_rewind(struct lb_trace_reader *reader, uint32_t stream);

/* The stream with this number, as long as numbers are in range: LB_E_DAMAGED, or -ENOMEM. */
int stream_get(struct lb_trace_reader *reader, uint32_t number, struct reader_stream **ret_stream);

#endif
