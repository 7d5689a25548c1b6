/* SPDX-License-Identifier: Apache-2.0
 *
 * Learns from the log where branches go. From time to time a full part of the log is counted: how often each
 * conditional branch was taken, and where each indirect one mostly went. Then the cache is begun anew, and translate.c
 * makes paths along the directions that are mostly taken: a thread that stays in a path logs nothing.
 *
 * Threads that are still in the old translations continue there, and move when a part of their own log is full.
 */
#include "lastbranch/branch.h"
#include "process/runtime/runtime.h"

enum {
  HABITS = 1 << 14,     /* slots of the hash table */
  FILTER = 1 << 16,     /* bits that say which addresses may be in it */
  SAMPLE = 4096,        /* entries that are examined */
  PAUSE_PART = 8,       /* the next sample comes after this part of the run so far, */
  PAUSE_MOST = 256,     /* but samples are at most this many parts of the log apart */
  TAKEN_LEAST = 12,     /* fewer are not enough evidence */
  COUNT_MOST = 1 << 12, /* counts are halved beyond this, so that old ones weigh less */
  LOOP_STEPS = 6,       /* a loop in a path with more steps has been unrolled, or cannot be */
  SPREAD = 8,           /* entries per different branch that make a sample a hot loop */
  PATIENCE_MOST = 13, /* after each new generation, twice as many parts must be filled before the next, up to 2^this */
  UNITS_A_PART = 16,  /* units translated per part filled: what a new generation may cost */
  RECENT = 8,         /* a branch that was in none of this many samples is strange */
  STRANGE_PART = 32,  /* fewer than this part of its branches are strange: the sample is steady */
  STEADY_LEAST = 2,   /* steady samples, one after another, which tell that the program does the same for some time */
  BRANCHES_A_PART = 12, /* branches in such a sample per part filled: what a new generation may cost then */
};

/* The behaviour of a branch. */
struct habit {
  uint64_t address; /* of the branch, 0: free */
  uint32_t taken, passed;
  uint64_t target; /* the usual target of an indirect branch */
  uint32_t votes, all;
  uint32_t sample; /* number of the last sample that it was in */
  uint32_t unused;
};

/* An examination of a part of the log. */
struct sample {
  struct runtime *runtime;
  uint32_t entries;
  uint32_t branches; /* different ones, */
  uint32_t strange;  /* and how many of them were in none of the last samples */
  uint32_t misfits;  /* entries that would not exist if paths followed their branches */
};

/* A bit for each address that may have a habit: the translator asks for every branch, and most have none. */
static uint64_t *filter_word(const struct runtime *runtime, uint64_t address, uint64_t *ret_bit)
{
  uint64_t at = address * 0x9E3779B97F4A7C15 >> 48 & (FILTER - 1);

  *ret_bit = 1ull << at % 64;
  return &runtime->habit_filter[at / 64];
}

static bool filter_has(const struct runtime *runtime, uint64_t address)
{
  uint64_t bit;

  return *filter_word(runtime, address, &bit) & bit;
}

static struct habit *habit_slot(const struct runtime *runtime, uint64_t address)
{
  uint64_t at = address * 0x9E3779B97F4A7C15 >> 50 & (HABITS - 1);

  for (unsigned tries = 0; tries < 16; tries++, at = (at + 1) & (HABITS - 1))
    if (runtime->habits[at].address == address || !runtime->habits[at].address)
      return &runtime->habits[at];
  return NULL;
}

int profile_init(struct runtime *runtime)
{
  int64_t memory = place_map(HABITS * sizeof(struct habit) + FILTER / 8, -1, 0);

  if (is_failure(memory))
    return (int)memory;
  runtime->habits = (struct habit *)memory;
  runtime->habit_filter = (uint64_t *)(runtime->habits + HABITS);
  runtime->counts.next_profile = 1;
  return 0;
}

/* The profile of earlier processes lasts for as long as they ran. Another profile would fit each phase of the program
 * better, but translating all of it for each phase in each process costs more than it gains. */
void profile_inherit(struct runtime *runtime)
{
  if (!runtime->counts.generation)
    return;
  runtime->counts.patience = runtime->counts.turns;
  runtime->counts.generation_turn = runtime->counts.turns;
}

void profile_save(const struct runtime *runtime, struct piece_list *pieces)
{
  if (runtime->counts.habit_count)
    piece_add(pieces, runtime->habits, HABITS * sizeof(struct habit) + FILTER / 8);
}

bool profile_is_taken(const struct runtime *runtime, uint64_t address)
{
  const struct habit *habit = filter_has(runtime, address) ? habit_slot(runtime, address) : NULL;

  return habit && habit->address && habit->taken >= TAKEN_LEAST && habit->taken > 2 * habit->passed;
}

uint64_t profile_target(const struct runtime *runtime, uint64_t address)
{
  const struct habit *habit = filter_has(runtime, address) ? habit_slot(runtime, address) : NULL;
  bool is_steady = habit && habit->address && habit->all >= TAKEN_LEAST && habit->votes > habit->all / 8 * 7;

  return is_steady ? habit->target : 0;
}

/* ---- counting ---- */

static struct habit *habit_get(struct sample *sample, uint64_t address)
{
  struct runtime *runtime = sample->runtime;
  struct habit *habit = habit_slot(runtime, address);

  if (!habit)
    return NULL;
  runtime->counts.habit_count += !habit->address;
  habit->address = address;
  uint64_t bit;
  *filter_word(runtime, address, &bit) |= bit;
  uint32_t now = runtime->counts.samples;
  sample->branches += habit->sample != now;
  sample->strange += !habit->sample || habit->sample + RECENT < now;
  habit->sample = now;
  if (habit->taken + habit->passed > COUNT_MOST) {
    habit->taken /= 2;
    habit->passed /= 2;
  }
  if (habit->all > COUNT_MOST) {
    habit->all /= 2;
    habit->votes /= 2;
  }
  return habit;
}

static void count_branch(struct sample *sample, const struct lb_step *step, bool is_left)
{
  bool is_turned = step->flags & LB_STEP_FOLLOW, is_taken = is_left != is_turned;

  if (step->kind != LB_BRANCH_JCC || (step->flags & LB_STEP_NONE && !is_turned))
    return;
  struct habit *habit = habit_get(sample, step->from);
  if (!habit)
    return;
  habit->taken += is_taken;
  habit->passed += !is_taken;
  const struct lb_step *head = &sample->runtime->steps[step->head];
  bool is_long_loop = step->next == step->head && step - head > LOOP_STEPS;
  sample->misfits += is_left && !is_turned && !is_long_loop && profile_is_taken(sample->runtime, step->from);
}

/* Majority vote: a target that has the majority wins. */
static void count_target(struct sample *sample, const struct lb_step *step, uint64_t target)
{
  struct habit *habit = habit_get(sample, step->from);

  if (!habit)
    return;
  habit->all++;
  if (habit->target == target) {
    habit->votes++;
  } else if (habit->votes) {
    habit->votes--;
  } else {
    habit->target = target;
    habit->votes = 1;
  }
  sample->misfits += !(step->flags & LB_STEP_OPEN) && profile_target(sample->runtime, step->from) == target;
}

/* Counts the steps of a path before `end`, which were passed. */
static void count_path(struct sample *sample, uint32_t head, uint32_t end)
{
  for (uint32_t number = head + 1; number < end; number++) {
    const struct lb_step *step = &sample->runtime->steps[number];

    count_branch(sample, step, false);
    if (step->flags & LB_STEP_OPEN)
      count_target(sample, step, step->to);
  }
}

/* Walks like src/trace/path.c. Our own log is as trustworthy as our own memory. Steps that are not mapped are still
 * left out, because this runs in the handler of SIGSEGV, where a fault ends the program. */
static void count_entries(struct sample *sample, const uint32_t *entries)
{
  const struct lb_step *steps = sample->runtime->steps;
  uint32_t running = 0, open = 0;

  for (uint32_t i = 0; i < sample->entries; i++) {
    uint32_t entry = entries[i], number = entry & ~LB_ENTRY_ENTER;

    if (entry == LB_ENTRY_EVENT) {
      bool is_stamp = i + 1 < sample->entries && (entries[i + 1] & 0xFF) == LB_ENTRY_STAMP;

      i += LB_ENTRY_EVENT_WORDS;
      if (is_stamp)
        continue;
      running = open = 0;
    }
    if (!number || !share_has_step(sample->runtime, number))
      continue;
    const struct lb_step *step = &steps[number];
    if (!(step->flags & LB_STEP_HEAD)) {
      count_path(sample, step->head, number);
      count_branch(sample, step, true);
      running = step->next;
      open = step->flags & LB_STEP_OPEN ? number : 0;
      continue;
    }
    uint32_t end = running && !(entry & LB_ENTRY_ENTER) ? running + steps[running].count : 0;
    if (!(entry & LB_ENTRY_ENTER) && !open && end)
      count_path(sample, running, end);
    if (!(entry & LB_ENTRY_ENTER) && (open || end))
      count_target(sample, &steps[open ? open : end], step->from);
    running = number;
    open = 0;
  }
}

/* ---- a new generation ---- */

/* Counts the steady samples. A new generation translates again all code that runs from now on. In a program whose
 * samples are steady, that is about the branches of a sample; in any other program, it may be all code that was
 * translated before. */
static bool is_steady(struct runtime *runtime, const struct sample *sample)
{
  struct cache_counts *counts = &runtime->counts;

  counts->steady = sample->strange * STRANGE_PART < sample->branches ? counts->steady + 1 : 0;
  return counts->steady >= STEADY_LEAST;
}

/* Whether a new generation is worth its cost: the code is hot or runs for some time, its paths do not follow its
 * branches, and the last new generation is long enough ago. */
static bool is_worth_while(struct runtime *runtime, const struct sample *sample)
{
  const struct cache_counts *counts = &runtime->counts;
  uint32_t made = counts->units_made - counts->generation_units;
  uint32_t pause = 1u << (counts->generation < PATIENCE_MOST ? counts->generation : PATIENCE_MOST);
  uint32_t age = counts->turns - counts->generation_turn;
  bool is_hot =
    sample->branches * SPREAD < sample->entries && sample->strange * 4 < sample->branches && age > made / UNITS_A_PART;
  bool is_settled = is_steady(runtime, sample) && age > sample->branches / BRANCHES_A_PART;

  return (is_hot || is_settled) && sample->misfits * 4 > sample->entries && age > pause && age > counts->patience;
}

/* Returns where the last entries of a part begin, at most SAMPLE, but not within an event. If these entries contain
 * events, the search walks from the start of the part, where an entry begins, because a word of an event may look like
 * any entry. */
static uint32_t sample_start(const struct thread *thread, const uint32_t *entries, uint32_t count)
{
  uint32_t at = count > SAMPLE ? count - SAMPLE : 0;
  uint64_t end = thread->event_end;

  if (end <= (uint64_t)(entries + at) || end > (uint64_t)(entries + count))
    return at;
  at = 0;
  while (at < count && count - at > SAMPLE)
    at += entries[at] == LB_ENTRY_EVENT ? 1 + LB_ENTRY_EVENT_WORDS : 1;
  return at < count ? at : count;
}

static void look(const struct thread *thread, const uint32_t *entries, uint32_t count)
{
  struct runtime *runtime = thread->runtime;
  uint32_t start = sample_start(thread, entries, count);
  struct sample sample = {.runtime = runtime, .entries = count - start};
  uint32_t pause = runtime->counts.turns / PAUSE_PART + 1;

  runtime->counts.samples++;
  runtime->counts.next_profile = runtime->counts.turns + (pause < PAUSE_MOST ? pause : PAUSE_MOST);
  if (runtime->counts.habit_count > HABITS / 4 * 3) {
    memset(runtime->habits, 0, HABITS * sizeof(struct habit) + FILTER / 8);
    runtime->counts.habit_count = 0;
  }
  count_entries(&sample, entries + start);
  if (!is_worth_while(runtime, &sample))
    return;
  runtime->counts.generation_units = runtime->counts.units_made;
  runtime->counts.generation_turn = runtime->counts.turns;
  runtime->counts.generation++;
  runtime->counts.patience = 0;
  cache_forget(runtime);
}

bool profile_turn(struct thread *thread, const uint32_t *entries, uint32_t count)
{
  struct runtime *runtime = thread->runtime;

  if (__atomic_add_fetch(&runtime->counts.turns, 1, __ATOMIC_RELAXED) >= runtime->counts.next_profile) {
    runtime_lock(runtime);
    if (runtime->counts.turns >= runtime->counts.next_profile)
      look(thread, entries, count);
    runtime_unlock(runtime);
  }
  if (thread->generation == runtime->counts.generation)
    return false;
  thread->generation = runtime->counts.generation;
  cache_lookup_init(thread);
  return true;
}
