/* SPDX-License-Identifier: Apache-2.0
 *
 * Branch stacks as `perf script -F brstack` prints them, one sample per line, the newest branch first, and with lines
 * for mappings in the form of --show-mmap-events. llvm-profgen --perfscript and scripts read this format.
 */
#include "export/perf_feed.h"

/* Replaces the control characters of a name, so that no part of it can look like a line. */
static void put_name(struct export_job *job, const char *name)
{
  if (!*name)
    name = "//anon";
  for (; *name; name++)
    export_u8(job, (unsigned char)*name < ' ' ? '?' : (unsigned char)*name);
  export_u8(job, '\n');
}

static void put_module(struct export_job *job, uint32_t process, const struct lb_trace_module *module)
{
  export_print(job, "PERF_RECORD_MMAP2 %u/%u: [%#llx(%#llx) @ %#llx ", process, process,
               (unsigned long long)module->address, (unsigned long long)module->size,
               (unsigned long long)module->offset);
  if (module->build_id_size && module->build_id_size <= PERF_BUILD_ID_SIZE) {
    export_print(job, "<");
    for (size_t i = 0; i < module->build_id_size; i++)
      export_print(job, "%02x", module->build_id[i]);
    export_print(job, ">]: r-xp ");
  } else {
    export_print(job, "00:00 0 0]: r-xp ");
  }
  put_name(job, module->name);
}

static void put_sample(struct export_job *job, const struct perf_stream *stream)
{
  static const char *const types[] = {"",        "COND",   "UNCOND",    "IND",      "CALL", "IND_CALL", "RET",
                                      "SYSCALL", "SYSRET", "COND_CALL", "COND_RET", "ERET", "IRQ"};

  for (size_t i = stream->count; i-- > 0;) {
    const struct perf_branch *branch = &stream->branches[i];

    export_print(job, " 0x%llx/0x%llx/%c/%c/%c/0/%s ", (unsigned long long)branch->from, (unsigned long long)branch->to,
                 branch->is_mispredicted ? 'M'
                 : branch->is_predicted  ? 'P'
                                         : '-',
                 branch->is_in_transaction ? 'X' : '-', branch->is_abort ? 'A' : '-', types[branch->type]);
  }
  export_u8(job, '\n');
}

static int brstack_begin(struct export_job *job)
{
  static const struct perf_writer writer = {.is_single = true, .module = put_module, .sample = put_sample};

  return perf_feed_begin(job->state, &writer);
}

static int brstack_record(struct export_job *job, const struct lb_trace_record *record)
{
  return perf_feed_record(job->state, job, record);
}

static int brstack_branches(struct export_job *job, const struct lb_trace_branches *branches)
{
  return perf_feed_branches(job->state, job, branches);
}

static int brstack_end(struct export_job *job)
{
  return perf_feed_end(job->state, job);
}

static void brstack_done(struct export_job *job)
{
  perf_feed_done(job->state);
}

const struct export_format export_format_brstack = {
  .name = "brstack",
  .what = "branch stacks as perf script prints them, for llvm-profgen --perfscript and scripts",
  .suffix = ".perfscript",
  .needs = EXPORT_BRANCHES,
  .bytes_per_branch = 44,
  .state_size = sizeof(struct perf_feed),
  .begin = brstack_begin,
  .record = brstack_record,
  .branches = brstack_branches,
  .end = brstack_end,
  .done = brstack_done,
};
