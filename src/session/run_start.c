/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of `lbr run`, from its start to its end.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "session/program.h"
#include "session/relay.h"
#include "session/run.h"

#define PART_LEAST (256u << 10)
#define PART_MOST (256u << 20)
#define ENTRY_BYTES 4u
#define ENTRIES_PER_BRANCH 2u /* at most: a step that was left, and its target */
#define PARTS_KEPT 2u         /* complete ones at any time, also while the program runs */

/* ---- sizes ---- */

uint32_t run_part_size(uint64_t branches)
{
  uint64_t most = (uint64_t)PART_MOST * PARTS_KEPT / ENTRY_BYTES / ENTRIES_PER_BRANCH, size = PART_LEAST;

  if (branches > most)
    message("warning: the log holds at most the last %llu branches, not %llu", (unsigned long long)most,
            (unsigned long long)branches);
  while (size < PART_MOST && size * PARTS_KEPT / ENTRY_BYTES / ENTRIES_PER_BRANCH < branches)
    size *= 2;
  return (uint32_t)size;
}

/* ---- the program ---- */

/* Returns 0 and sets the session's process, or the exit status after a message. */
static int path_start(struct run_session *session, const char *path)
{
  const struct run_arguments *arguments = session->arguments;
  const struct process_options options = {.has_store = !arguments->is_uncached,
                                          .is_alone = arguments->is_alone,
                                          .is_held = arguments->is_gdb,
                                          .part_size = run_part_size(arguments->kept)};

  if (arguments->source != SOURCE_SOFTWARE)
    return run_source_start(session, path);
  return program_launch(&options, path, arguments->program, &session->process) < 0 ? PROGRAM_FAILURE : 0;
}

/* Returns the same values as path_start. */
static int program_start(struct run_session *session)
{
  const struct run_arguments *arguments = session->arguments;
  char *path = NULL;
  int r = program_find(arguments->program[0], &path);

  if (r)
    return r;
  r = program_aslr_set(arguments->aslr, arguments->source, arguments->program[0]);
  if (!r)
    r = path_start(session, path);
  program_aslr_restore();
  free(path);
  return r;
}

int run_session_run(struct run_session *session)
{
  int r = program_start(session), status;

  if (r != 0)
    return r;
  status = run_watch(session);
  if (status < 0) {
    message("cannot wait for the program: %s", strerror(-status));
    process_done(&session->process);
    return PROGRAM_FAILURE;
  }
  if (!session->source)
    program_show_error(&session->process, session->arguments->program[0], status);
  run_report_end(session, status);
  run_source_free(session->source); /* releases the processes that the program left behind */
  session->source = NULL;
  process_done(&session->process);
  relay_restore();
  bool has_failed = session->is_broken && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return has_failed ? 1 : program_pass_on(status);
}
