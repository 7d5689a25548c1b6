/* SPDX-License-Identifier: Apache-2.0
 *
 * drcov, version 3, as DynamoRIO's tool of that name writes it and disassemblers show it: a table of modules in text,
 * with a row for each mapped part of a file, then the executed blocks as {u32 start, u16 size, u16 module}, where the
 * start is relative to that of the row. Code that is in no file is left out. If several processes ran a file, the row
 * has its first address.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "export/export.h"
#include "symbol/symbol.h"

#define ROWS_MAX 65535u
#define BLOCK_SIZE_MAX 65535u

/* A part of a file that was mapped. */
struct drcov_row {
  uint32_t file;
  uint64_t start, size; /* its addresses */
  uint64_t offset;      /* in the file */
  uint64_t linked;      /* its address in the terms of blocks */
  uint32_t first;       /* the first row of this file */
};

struct drcov {
  struct drcov_row *rows;
  size_t count, capacity;
  uint64_t block_count; /* if `is_counting` is false, they are written */
  bool is_counting;
};

/* ---- modules ---- */

static bool row_is_known(const struct drcov *drcov, const struct drcov_row *row)
{
  for (size_t i = 0; i < drcov->count; i++)
    if (drcov->rows[i].file == row->file && drcov->rows[i].linked < row->linked + row->size &&
        row->linked < drcov->rows[i].linked + drcov->rows[i].size)
      return true;
  return false;
}

static int drcov_record(struct export_job *job, const struct lb_trace_record *record)
{
  const struct lb_trace_module *module = &record->module;
  struct drcov *drcov = job->state;
  struct analysis_location location;
  struct drcov_row row, *added;

  if (record->type != LB_TRACE_MODULE || module->is_gone || !module->size)
    return 0;
  location = analysis_names_locate(job->names, module->space, module->address);
  row = (struct drcov_row){location.file, module->address, module->size, module->offset, location.address, 0};
  if (location.file == ANALYSIS_NO_FILE || drcov->count >= ROWS_MAX || row_is_known(drcov, &row) ||
      !export_has_file(job, location.file))
    return 0;
  added = array_append(&drcov->rows, &drcov->count, &drcov->capacity);
  if (!added)
    return -ENOMEM;
  *added = row;
  return 0;
}

/* Sorts by file and address: readers expect the parts of a file side by side. */
static int row_order(const void *one, const void *other)
{
  const struct drcov_row *a = one, *b = other;

  if (a->file != b->file)
    return a->file < b->file ? -1 : 1;
  return a->linked < b->linked ? -1 : a->linked > b->linked;
}

/* The lowest linked address of the file. */
static uint64_t file_base(const struct export_job *job, uint32_t file)
{
  const struct symbol_layout *layout = analysis_names_layout(job->names, file);
  uint64_t base = layout && layout->count ? UINT64_MAX : 0;

  for (size_t i = 0; layout && i < layout->count; i++)
    if (layout->pieces[i].address < base)
      base = layout->pieces[i].address;
  return base & ~UINT64_C(4095);
}

static void put_modules(struct export_job *job)
{
  struct drcov *drcov = job->state;
  struct analysis_file file = {.name = ""};

  export_print(job, "DRCOV VERSION: 3\nDRCOV FLAVOR: drcov-64\nModule Table: version 5, count %zu\n", drcov->count);
  export_print(job, "Columns: id, containing_id, start, end, entry, offset, preferred_base, path\n");
  for (size_t i = 0; i < drcov->count; i++) {
    const struct drcov_row *row = &drcov->rows[i];
    uint32_t first = i && drcov->rows[i - 1].file == row->file ? drcov->rows[i - 1].first : (uint32_t)i;

    drcov->rows[i].first = first;
    analysis_names_file(job->names, row->file, &file);
    export_print(job, "%3zu, %3u, 0x%016llx, 0x%016llx, 0x%016llx, 0x%016llx, 0x%016llx,  %s\n", i, first,
                 (unsigned long long)row->start, (unsigned long long)(row->start + row->size), 0ull,
                 (unsigned long long)row->offset, (unsigned long long)file_base(job, row->file), file.name);
  }
}

/* ---- blocks ---- */

static const struct drcov_row *row_find(const struct drcov *drcov, const struct analysis_location *location)
{
  struct search search = {.end = drcov->count};
  const struct drcov_row wanted = {.file = location->file, .linked = location->address}, *row;

  while (search_next(&search))
    search_turn(&search, row_order(&drcov->rows[search.at], &wanted) <= 0);
  row = search.first ? &drcov->rows[search.first - 1] : NULL;
  return row && row->file == location->file && location->address - row->linked < row->size ? row : NULL;
}

static void put_block(struct export_job *job, const struct analysis_block *block)
{
  struct drcov *drcov = job->state;
  const struct drcov_row *row = row_find(drcov, &block->first);
  uint64_t end = block->end ? block->end : block->last + 1;
  uint64_t start, size;

  if (!row || !block->executed || end <= block->first.address)
    return;
  start = block->first.address - row->linked;
  size = end - block->first.address;
  for (; size && start <= UINT32_MAX; drcov->block_count++) {
    uint64_t part = size < BLOCK_SIZE_MAX ? size : BLOCK_SIZE_MAX;

    if (!drcov->is_counting) {
      export_u32(job, (uint32_t)start);
      export_u16(job, (unsigned)part);
      export_u16(job, (unsigned)(row - drcov->rows));
    }
    start += part;
    size -= part;
  }
}

static void put_blocks(struct export_job *job, bool is_counting)
{
  struct drcov *drcov = job->state;
  size_t count;
  const struct analysis_block *blocks = analysis_counts_blocks(job->counts, &count);

  drcov->is_counting = is_counting;
  drcov->block_count = 0;
  for (size_t i = 0; i < count; i++)
    put_block(job, &blocks[i]);
}

static int drcov_end(struct export_job *job)
{
  struct drcov *drcov = job->state;

  if (drcov->count)
    qsort(drcov->rows, drcov->count, sizeof(*drcov->rows), row_order);
  put_blocks(job, true);
  if (!drcov->block_count && export_module(job))
    return export_fail(job, "nothing of a module '%s'%s ran; 'lbr stat' lists modules", export_module(job),
                       job->options.filter->function_count ? " that matches the options" : "");
  if (!drcov->block_count && job->filter)
    return export_fail(job, "nothing that matches the options ran");
  if (!drcov->block_count)
    return export_fail(job, "no block that ran in a file is known; blocks of code that is not 64-bit code never are");
  put_modules(job);
  export_print(job, "BB Table: %llu bbs\n", (unsigned long long)drcov->block_count);
  put_blocks(job, false);
  if (analysis_counts_totals(job->counts)->has_forgotten)
    export_warn(job, "too many different blocks ran: some are left out");
  return 0;
}

static void drcov_done(struct export_job *job)
{
  struct drcov *drcov = job->state;

  free(drcov->rows);
}

const struct export_format export_format_drcov = {
  .name = "drcov",
  .what = "blocks that ran, for Lighthouse and other readers of DynamoRIO's coverage",
  .suffix = ".drcov",
  .needs = EXPORT_COUNTS,
  .state_size = sizeof(struct drcov),
  .record = drcov_record,
  .end = drcov_end,
  .done = drcov_done,
};
