/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory that threads of a test fill as the runtime does, and a drain that turns it into a trace. What the
 * threads did they can do again, since it is random from a known start; that is compared with what a reader finds in
 * the trace. drain_rig.c.
 */
#ifndef TESTS_DRAIN_RIG_H
#define TESTS_DRAIN_RIG_H

#include <pthread.h>

#include "lastbranch/trace.h"
#include "parts.h"
#include "process/process.h"
#include "process/shared.h"

enum {
  LOG_PART = PROCESS_PART_LEAST,
  PART_ENTRIES = LOG_PART / 4,
  NOTES = 1 << 20,
  STEPS = 4096,
  PATHS = 8,
  PATH_NUMBERS = 3, /* a head and two steps */
};

struct player {
  uint32_t slot;
  uint64_t random;
  unsigned generation, path;
  uint64_t count; /* branches */
  bool is_killed;
};

struct found {
  uint64_t branches, gaps;
  uint32_t streams;
};

struct map {
  bool is_there[4][3]; /* by space and generation of paths */
  char names[4][3][64];
};

extern struct process process;
extern char folder[64], trace_name[128];
extern struct lb_trace_writer *writer;
extern struct process_drain *drain;

struct process_control *control(void);
struct process_state *page_of(uint32_t slot);
struct lb_step *step_of(uint32_t number);
uint64_t path_start(unsigned generation, unsigned path);
/* Paths of two steps: a conditional branch that is mostly not taken, and a jump. Each is tied to the path it leads to,
 * but for the first steps of odd ones. */
void paths_make(unsigned generation, uint32_t space);
int memory_begin(void **state);
int memory_end(void **state);
uint64_t random_next(uint64_t *random);
struct player player_make(uint32_t slot, uint64_t start, uint64_t count);
void entries_log(uint32_t slot, const uint32_t *entries, unsigned count);
void thread_begin(uint32_t slot, uint32_t space, uint32_t thread);
void thread_end(uint32_t slot);
void player_play(struct player *player, uint64_t count);
void player_enter(const struct player *player);
void *player_run(void *data);
void note_put(unsigned type, uint32_t space, uint64_t start, uint64_t end, const char *path);
void drain_begin(uint64_t limit);
void drain_end(int error);
double seconds_now(void);
void drain_for(double seconds);
/* Steps until this many threads have ended and their pages are free, or it takes too long. */
void drain_until_free(uint32_t slots);
/* Steps while a thread plays, which may not have begun yet, and until its page is free. */
void drain_until_joined(pthread_t thread);
/* Reads the trace; the branches of stream i must be those of player i, from its beginning. */
struct found trace_compare(struct player *players, uint32_t count);
/* The module that a branch lies in must be there when it comes. */
uint64_t modules_check(struct map *map, uint32_t *ret_spaces);

#define TEST(name) cmocka_unit_test_setup_teardown(name, memory_begin, memory_end)

#endif
