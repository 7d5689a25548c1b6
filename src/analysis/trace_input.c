/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace that a command reads: opens it under either of its names, remembers its errors, and opens the files that
 * its modules name. Nothing in it is trusted.
 */
#include "analysis/trace_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "symbol/symbol.h"
#include "trace/trace.h"

#define INCOMPLETE ".incomplete"
#define FILE_MAX (UINT64_C(2) << 30) /* bytes of a file with symbols */

/* ---- files of the modules ---- */

static int file_map(int fd, const struct stat *status, const void **ret_bytes, size_t *ret_size)
{
  void *bytes;

  if (!S_ISREG(status->st_mode))
    return S_ISDIR(status->st_mode) ? -EISDIR : -ESPIPE;
  if (status->st_size == 0)
    return LB_E_NO_SYMBOLS;
  if ((uint64_t)status->st_size > FILE_MAX)
    return LB_E_TOO_BIG;
  bytes = mmap(NULL, (size_t)status->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED)
    return -errno;
  *ret_bytes = bytes;
  *ret_size = (size_t)status->st_size;
  return 0;
}

int trace_input_map(const struct trace_input *input, int fd, const void **ret_bytes, size_t *ret_size)
{
  struct stat status;
  int r;

  r = fstat(fd, &status) < 0 ? -errno : file_map(fd, &status, ret_bytes, ret_size);
  close(fd);
  return r < 0 ? r : input->time && status.st_mtime > 0 && (uint64_t)status.st_mtime > input->time;
}

static int file_open(void *data, const char *name, const void **ret_bytes, size_t *ret_size)
{
  int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* it may name a pipe or a terminal */

  return fd < 0 ? -errno : trace_input_map(data, fd, ret_bytes, ret_size);
}

static void file_close(void *data, const void *bytes, size_t size)
{
  (void)data;
  munmap((void *)(uintptr_t)bytes, size);
}

static void file_warn(void *data, const char *name, const char *why)
{
  (void)data;
  message("warning: %s: %s", name, why);
}

static int file_module(void *data, const char *name, struct symbol_module **ret_module)
{
  (void)data;
  return symbol_module_open(name, NULL, ret_module);
}

/* ---- the trace ---- */

static const char *open_reason(const char *name, int error)
{
  struct stat status;

  if (error == LB_E_NOT_TRACE && stat(name, &status) == 0 && status.st_size == 0)
    return "the file is empty";
  if (error == -ESPIPE)
    return "not a regular file; copy its contents to a file first";
  return lb_strerror(error);
}

static bool name_is_incomplete(const char *name)
{
  size_t length = strlen(name), end = strlen(INCOMPLETE);

  return length > end && !strcmp(name + length - end, INCOMPLETE);
}

/* Tries NAME.incomplete in place of NAME. Returns the same values as lb_trace_reader_open. */
static int incomplete_open(struct trace_input *input)
{
  char *name;
  int r;

  if (asprintf(&name, "%s" INCOMPLETE, input->name) < 0)
    return -ENOMEM;
  r = lb_trace_reader_open(name, &input->reader);
  if (r == -ENOENT) {
    free(name);
    return r;
  }
  free(input->name);
  input->name = name;
  return r;
}

void trace_input_files(struct trace_input *input)
{
  input->files = (struct analysis_files){input, file_open, file_close, file_warn, file_module};
}

int trace_input_open(struct trace_input *input, const char *name)
{
  struct stat status;
  int r;

  *input = (struct trace_input){.name = strdup(name)};
  trace_input_files(input);
  r = input->name ? lb_trace_reader_open(name, &input->reader) : -ENOMEM;
  if (r == -ENOENT)
    r = incomplete_open(input);
  if (r < 0) {
    message("%s: %s", input->name ? input->name : name, open_reason(input->name ? input->name : name, r));
    free(input->name);
    return r;
  }
  trace_reader_want_names(input->reader);
  input->is_incomplete = name_is_incomplete(input->name);
  if (stat(input->name, &status) == 0)
    input->size = (uint64_t)status.st_size;
  if (input->is_incomplete)
    message("warning: %s: unfinished trace: it is still being written, or its writer was interrupted", input->name);
  return 0;
}

/* Notes gaps and other facts of a record that passes. */
static void record_note(struct trace_input *input, const struct lb_trace_record *record)
{
  uint64_t time;

  if (record->type == LB_TRACE_GAP) {
    input->gaps[record->gap.reason]++;
    input->is_sampled |= record->gap.reason == LB_TRACE_SAMPLED;
  } else if (record->type == LB_TRACE_META && !strcmp(record->meta.key, "sampling")) {
    input->is_sampled = true;
  }
  if (record->type == LB_TRACE_META && !strcmp(record->meta.key, "time") &&
      number_parse(record->meta.value, &time) >= 0)
    input->time = time;
}

static int input_fail(struct trace_input *input, int error)
{
  message("%s: cannot read further: %s", input->name, lb_strerror(error));
  input->has_failed = true;
  return error;
}

int trace_input_next(struct trace_input *input, struct lb_trace_record *ret_record)
{
  int r = lb_trace_reader_next(input->reader, ret_record);

  if (r > 0)
    record_note(input, ret_record);
  return r < 0 ? input_fail(input, r) : r;
}

int trace_input_tail(struct trace_input *input, uint32_t stream, uint64_t count)
{
  int r = lb_trace_reader_tail(input->reader, stream, count);

  return r < 0 && r != LB_E_NO_ENTRY ? input_fail(input, r) : r;
}

int trace_input_check_stream(struct trace_input *input, uint32_t stream)
{
  int r = stream == LB_TRACE_ALL ? 0 : trace_input_tail(input, stream, 0);

  if (r == LB_E_NO_ENTRY)
    message("%s: no thread %u; 'lbr stat' lists the threads", input->name, stream);
  if (r >= 0)
    lb_trace_reader_rewind(input->reader);
  return r < 0 ? r : 0;
}

static void starts_tell(void *data, uint64_t branches)
{
  trace_progress_show(data, branches);
}

int trace_input_read_starts(struct trace_input *input, struct analysis_names *names, const struct analysis_use *use)
{
  struct trace_progress progress;
  int r;

  if (!names || !analysis_use_needs_starts(use))
    return 0;
  trace_progress_begin(&progress, input->reader);
  r = analysis_starts_read(names, input->reader, starts_tell, &progress);
  trace_progress_end(&progress);
  return r;
}

bool trace_input_is_whole(const struct trace_input *input)
{
  return !input->has_failed && !input->gaps[LB_TRACE_DAMAGED] && !input->gaps[LB_TRACE_MISSING] &&
         !input->gaps[LB_TRACE_CUT];
}

static void damage_tell(const struct trace_input *input)
{
  char bytes[64] = "", branches[64] = "";
  uint64_t lost_branches, lost_bytes;

  trace_reader_lost(input->reader, &lost_branches, &lost_bytes);
  if (lost_bytes)
    snprintf(bytes, sizeof(bytes), "; %llu bytes could not be read", (unsigned long long)lost_bytes);
  if (lost_branches)
    snprintf(branches, sizeof(branches), "; %llu branches are lost", (unsigned long long)lost_branches);
  message("%s: the trace is damaged%s%s; showing what is before and after, with gaps in place of the rest", input->name,
          bytes, branches);
}

void trace_input_tell_limit(const struct trace_input *input, const struct analysis_code *code)
{
  if (code && analysis_code_is_exhausted(code))
    message(
      "warning: %s: the trace names more code than lbr decodes for a file: some instructions and not-taken branches are not counted; all taken branches are",
      input->name);
}

int trace_input_tell_module(const struct trace_input *input, const struct analysis_names *names, const char *module)
{
  if (analysis_module_is_mapped(names, module))
    message("%s: nothing of '%s' ran", input->name, module);
  else
    message("%s: no file '%s' was mapped; 'lbr report --by module' lists the files whose code ran", input->name,
            module);
  return LB_E_NO_ENTRY;
}

int trace_input_close(struct trace_input *input)
{
  bool is_damaged = input->gaps[LB_TRACE_DAMAGED] || input->gaps[LB_TRACE_MISSING];
  bool is_cut = input->gaps[LB_TRACE_CUT] && !input->is_incomplete; /* for an unfinished trace this was said */

  if (is_damaged)
    damage_tell(input);
  if (is_cut)
    message("%s: truncated: the end marker is missing; showing the branches before the cut", input->name);
  lb_trace_reader_close(input->reader);
  free(input->name);
  return is_damaged || is_cut || input->has_failed ? 1 : 0;
}
