/* SPDX-License-Identifier: Apache-2.0
 *
 * perf.data: a head of 104 bytes, the event, records of programs, mappings and samples with branch stacks, and after
 * them perf's features. The layout is that of tools/perf/Documentation/perf.data-file-format.txt and
 * linux/perf_event.h. Readers are strict: without COMM and MMAP2, profiles are empty; a period of 1 would make perf
 * take the samples as another kind of trace; without the (empty) branch stack feature, `perf report` does not show
 * branches. Time is the number of branches so far.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/perf_feed.h"

#define HEAD_SIZE 104u
#define ATTRIBUTE_SIZE 112u /* PERF_ATTR_SIZE_VER5: all readers know it */
#define DATA_OFFSET (HEAD_SIZE + ATTRIBUTE_SIZE + 16u)
#define ROUND 4096u /* samples after which perf may drop what it keeps for sorting */
#define NAME_SIZE 4096u

enum { RECORD_COMM = 3, RECORD_EXIT = 4, RECORD_FORK = 7, RECORD_SAMPLE = 9, RECORD_MMAP2 = 10, RECORD_ROUND = 68 };
enum { MISC_USER = 2, MISC_EXEC = 0x2000, MISC_BUILD_ID = 0x4000, MISC_BUILD_ID_SIZE = 0x8000 };
enum { FEATURE_BUILD_ID = 2, FEATURE_ARCH = 6, FEATURE_BRANCH_STACK = 15 };
enum { SAMPLE_IP = 1, SAMPLE_TID = 2, SAMPLE_TIME = 4, SAMPLE_PERIOD = 0x100, SAMPLE_BRANCH_STACK = 0x800 };

/* A record, or another piece that is built before it is written. */
struct piece {
  uint8_t bytes[NAME_SIZE + 256];
  size_t size;
};

struct perf {
  struct perf_feed feed;
  uint64_t size; /* of the data so far */
  struct piece piece;
};

/* ---- pieces ---- */

static void piece_u16(struct piece *piece, unsigned value)
{
  piece->bytes[piece->size++] = (uint8_t)value;
  piece->bytes[piece->size++] = (uint8_t)(value >> 8);
}

static void piece_u32(struct piece *piece, uint32_t value)
{
  bytes_put_u32(piece->bytes + piece->size, value);
  piece->size += 4;
}

static void piece_u64(struct piece *piece, uint64_t value)
{
  bytes_put_u64(piece->bytes + piece->size, value);
  piece->size += 8;
}

/* Truncates the string to `most` bytes with its terminator, and fills it with zeros to a multiple of `round`. */
static void piece_string(struct piece *piece, const char *string, size_t most, size_t round)
{
  size_t length = strnlen(string, most - 1);
  size_t size = (length + 1 + round - 1) / round * round;

  memcpy(piece->bytes + piece->size, string, length);
  memset(piece->bytes + piece->size + length, 0, size - length);
  piece->size += size;
}

/* ---- records ---- */

static struct piece *record_begin(struct perf *perf, unsigned type, unsigned misc)
{
  perf->piece.size = 0;
  piece_u32(&perf->piece, type);
  piece_u16(&perf->piece, misc);
  piece_u16(&perf->piece, 0);
  return &perf->piece;
}

static void record_end(struct export_job *job)
{
  struct perf *perf = job->state;
  struct piece *piece = &perf->piece;

  piece->bytes[6] = (uint8_t)piece->size;
  piece->bytes[7] = (uint8_t)(piece->size >> 8);
  export_put(job, piece->bytes, piece->size);
  perf->size += piece->size;
}

static uint64_t now(const struct perf *perf)
{
  return perf->feed.branches + 1; /* 0 would mean no time */
}

/* The end of all records except samples. */
static void record_end_with_id(struct export_job *job, uint32_t process, uint32_t thread)
{
  struct perf *perf = job->state;

  piece_u32(&perf->piece, process);
  piece_u32(&perf->piece, thread);
  piece_u64(&perf->piece, now(perf));
  record_end(job);
}

static void put_comm(struct export_job *job, const struct perf_stream *stream, uint32_t thread, bool is_exec)
{
  struct piece *piece = record_begin(job->state, RECORD_COMM, is_exec ? MISC_EXEC : 0);

  piece_u32(piece, stream->process);
  piece_u32(piece, thread);
  piece_string(piece, stream->name, sizeof(stream->name), 8);
  record_end_with_id(job, stream->process, thread);
}

static void put_task(struct export_job *job, const struct perf_stream *stream, unsigned type)
{
  struct piece *piece = record_begin(job->state, type, 0);

  piece_u32(piece, stream->process);
  piece_u32(piece, stream->process);
  piece_u32(piece, stream->thread);
  piece_u32(piece, stream->process);
  piece_u64(piece, now(job->state));
  record_end_with_id(job, stream->process, stream->thread);
}

/* The parent of a process is unknown: only threads have one. */
static void put_begin(struct export_job *job, const struct perf_stream *stream, bool is_first)
{
  if (is_first)
    put_comm(job, stream, stream->process, true);
  if (stream->thread == stream->process)
    return;
  put_task(job, stream, RECORD_FORK);
  put_comm(job, stream, stream->thread, false);
}

static void piece_build_id(struct piece *piece, const uint8_t *id, size_t size)
{
  uint8_t bytes[PERF_BUILD_ID_SIZE + 4] = {(uint8_t)size};

  memcpy(bytes + 4, id, size);
  memcpy(piece->bytes + piece->size, bytes, sizeof(bytes));
  piece->size += sizeof(bytes);
}

static void put_module(struct export_job *job, uint32_t process, const struct lb_trace_module *module)
{
  bool has_id = module->build_id_size && module->build_id_size <= PERF_BUILD_ID_SIZE;
  struct piece *piece = record_begin(job->state, RECORD_MMAP2, MISC_USER | (has_id ? MISC_BUILD_ID : 0));

  piece_u32(piece, process);
  piece_u32(piece, process);
  piece_u64(piece, module->address);
  piece_u64(piece, module->size);
  piece_u64(piece, module->offset);
  if (has_id)
    piece_build_id(piece, module->build_id, module->build_id_size);
  else
    for (unsigned i = 0; i < 3; i++) /* device, inode and its generation */
      piece_u64(piece, 0);
  piece_u32(piece, 5); /* PROT_READ | PROT_EXEC */
  piece_u32(piece, 2); /* MAP_PRIVATE */
  piece_string(piece, *module->name ? module->name : "//anon", NAME_SIZE, 8);
  record_end_with_id(job, process, process);
}

/* struct perf_branch_entry: bits in the order of their declaration. */
static uint64_t branch_flags(const struct perf_branch *branch)
{
  return (uint64_t)branch->is_mispredicted | (uint64_t)branch->is_predicted << 1 |
         (uint64_t)branch->is_in_transaction << 2 | (uint64_t)branch->is_abort << 3 | (uint64_t)branch->type << 20;
}

static void put_sample(struct export_job *job, const struct perf_stream *stream)
{
  struct perf *perf = job->state;
  struct piece *piece = record_begin(perf, RECORD_SAMPLE, MISC_USER);

  piece_u64(piece, stream->branches[stream->count - 1].to);
  piece_u32(piece, stream->process);
  piece_u32(piece, stream->thread);
  piece_u64(piece, now(perf));
  piece_u64(piece, stream->count);
  piece_u64(piece, stream->count);
  for (size_t i = stream->count; i-- > 0;) {
    piece_u64(piece, stream->branches[i].from);
    piece_u64(piece, stream->branches[i].to);
    piece_u64(piece, branch_flags(&stream->branches[i]));
  }
  record_end(job);
  if (perf->feed.samples % ROUND == 0) {
    record_begin(perf, RECORD_ROUND, 0);
    record_end(job);
  }
}

/* ---- the head ---- */

static void piece_attribute(struct piece *piece, unsigned window)
{
  size_t start = piece->size;

  piece_u32(piece, 0); /* PERF_TYPE_HARDWARE */
  piece_u32(piece, ATTRIBUTE_SIZE);
  piece_u64(piece, 4);                       /* PERF_COUNT_HW_BRANCH_INSTRUCTIONS */
  piece_u64(piece, window > 1 ? window : 2); /* period: 1 would mean a trace without stacks */
  piece_u64(piece, SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_BRANCH_STACK);
  piece_u64(piece, 0);
  /* exclude_kernel, exclude_hv, mmap, comm, task, sample_id_all, exclude_guest, mmap2, comm_exec */
  piece_u64(piece, 1u << 5 | 1u << 6 | 1u << 8 | 1u << 9 | 1u << 13 | 1u << 18 | 1u << 20 | 1u << 23 | 1u << 24);
  piece_u64(piece, 0);
  piece_u64(piece, 0);
  piece_u64(piece, 0);
  piece_u64(piece, 1u << 0 | 1u << 3 | 1u << 16); /* PERF_SAMPLE_BRANCH_USER, _ANY, _TYPE_SAVE */
  memset(piece->bytes + piece->size, 0, ATTRIBUTE_SIZE - (piece->size - start));
  piece->size = start + ATTRIBUTE_SIZE;
}

static void head_make(const struct export_job *job, struct piece *piece, uint64_t data_size)
{
  piece->size = 0;
  memcpy(piece->bytes, "PERFILE2", 8);
  piece->size += 8;
  piece_u64(piece, HEAD_SIZE);
  piece_u64(piece, ATTRIBUTE_SIZE + 16);
  piece_u64(piece, HEAD_SIZE);
  piece_u64(piece, ATTRIBUTE_SIZE + 16);
  piece_u64(piece, DATA_OFFSET);
  piece_u64(piece, data_size);
  piece_u64(piece, 0);
  piece_u64(piece, 0);
  piece_u64(piece, 1u << FEATURE_BUILD_ID | 1u << FEATURE_ARCH | 1u << FEATURE_BRANCH_STACK);
  for (unsigned i = 1; i < 4; i++)
    piece_u64(piece, 0);
  piece_attribute(piece, job->options.window ? job->options.window : PERF_WINDOW);
  piece_u64(piece, DATA_OFFSET); /* numbers of the event: none */
  piece_u64(piece, 0);
}

/* ---- features ---- */

/* Writes the build-ids of all files as records. Returns their size; if `wants_write` is false, only that. */
static uint64_t build_ids_put(struct export_job *job, bool wants_write)
{
  struct perf *perf = job->state;
  struct analysis_file file;
  uint64_t size = 0;

  for (size_t i = 0; analysis_names_file(job->names, i, &file); i++) {
    struct piece *piece = record_begin(perf, 0, MISC_USER | MISC_BUILD_ID_SIZE);

    if (!file.build_id_size || file.build_id_size > PERF_BUILD_ID_SIZE)
      continue;
    piece_u32(piece, UINT32_MAX); /* any process */
    memset(piece->bytes + piece->size, 0, PERF_BUILD_ID_SIZE + 4);
    memcpy(piece->bytes + piece->size, file.build_id, file.build_id_size);
    piece->bytes[piece->size + PERF_BUILD_ID_SIZE] = (uint8_t)file.build_id_size;
    piece->size += PERF_BUILD_ID_SIZE + 4;
    piece_string(piece, file.name, NAME_SIZE - 64, 64);
    piece->bytes[6] = (uint8_t)piece->size;
    piece->bytes[7] = (uint8_t)(piece->size >> 8);
    size += piece->size;
    if (wants_write)
      export_put(job, piece->bytes, piece->size);
  }
  return size;
}

static void features_put(struct export_job *job)
{
  struct perf *perf = job->state;
  uint64_t at = DATA_OFFSET + perf->size + 3 * 16;
  uint64_t ids = build_ids_put(job, false);
  struct piece *piece = &perf->piece;

  piece->size = 0;
  piece_u64(piece, at);
  piece_u64(piece, ids);
  piece_u64(piece, at + ids);
  piece_u64(piece, 4 + 64);
  piece_u64(piece, at + ids + 4 + 64);
  piece_u64(piece, 0);
  export_put(job, piece->bytes, piece->size);
  build_ids_put(job, true);
  piece->size = 0;
  piece_u32(piece, 64);
  piece_string(piece, "x86_64", 64, 64);
  export_put(job, piece->bytes, piece->size);
}

/* ---- the format ---- */

static int perf_begin(struct export_job *job)
{
  static const struct perf_writer writer = {.begin = put_begin, .module = put_module, .sample = put_sample};
  struct perf *perf = job->state;

  if (export_rewrite(job, 0, NULL, 0) < 0)
    return export_fail(job,
                       "perf.data cannot be written to a pipe, because its header is written last: use a file (-o)");
  head_make(job, &perf->piece, 0);
  export_put(job, perf->piece.bytes, perf->piece.size);
  return perf_feed_begin(&perf->feed, &writer);
}

static int perf_record(struct export_job *job, const struct lb_trace_record *record)
{
  struct perf *perf = job->state;

  return perf_feed_record(&perf->feed, job, record);
}

static int perf_branches(struct export_job *job, const struct lb_trace_branches *branches)
{
  struct perf *perf = job->state;

  return perf_feed_branches(&perf->feed, job, branches);
}

static int perf_end(struct export_job *job)
{
  struct perf *perf = job->state;
  int r = perf_feed_end(&perf->feed, job);

  if (r < 0)
    return r;
  for (size_t i = 0; i < perf->feed.stream_count; i++)
    if (perf->feed.streams[i].is_begun)
      put_task(job, &perf->feed.streams[i], RECORD_EXIT);
  features_put(job);
  head_make(job, &perf->piece, perf->size);
  return export_rewrite(job, 0, perf->piece.bytes, perf->piece.size);
}

static void perf_done(struct export_job *job)
{
  struct perf *perf = job->state;

  perf_feed_done(&perf->feed);
}

const struct export_format export_format_perf = {
  .name = "perf",
  .what = "perf.data with branch stacks, for perf report, perf script, perf2bolt and create_llvm_prof",
  .suffix = ".data",
  .needs = EXPORT_BRANCHES,
  .bytes_per_branch = 26,
  .state_size = sizeof(struct perf),
  .begin = perf_begin,
  .record = perf_record,
  .branches = perf_branches,
  .end = perf_end,
  .done = perf_done,
};
