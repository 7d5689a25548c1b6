/* SPDX-License-Identifier: Apache-2.0
 *
 * One path, from the application's bytes to the cache's. It goes through conditional branches as if they were not
 * taken, through direct jumps and calls to where they lead, and through returns of calls that are in it; it ends with
 * an indirect branch, a system call, or when it is long enough. In the cache:
 *
 *   edge:     of the exit for which the unit is made: logs the step. Or the way for the indirect branch for which it is
 *             made: compares the target, logs the head
 *   entry:    the instructions; where the path can be left, a jump
 * and elsewhere, so that the code that runs stays dense:
 *   stubs:    of exits that were never taken: leave_direct, with the number of the step. Once taken, they go to an edge
 *   numbers:  return addresses, for PUSH
 */
#include "process/runtime/translate.h"

/* The most that a path may have. */
struct limits {
  uint8_t instructions, steps;
};

enum { ENTRIES_LEAST = 256 }; /* logged for each unit: with fewer, translating the code costs more than running it */

/* ---- the cold part ---- */

static void point(uint8_t *site, const uint8_t *to)
{
  int32_t distance = (int32_t)(to - (site + 4));

  __builtin_memcpy(site, &distance, 4);
}

static void write_stub(const struct translation *translation, struct emitter *emitter, const struct stub *stub)
{
  uint32_t number = translation->head + stub->step;

  if (translation->uses_r11)
    emit_take_r11(emitter);
  if (!stub->is_open) {
    emit_exit_number(emitter, number);
    emit_leave(emitter, STATE_LEAVE_DIRECT);
    translation->runtime->local[number].site = stub->site;
    return;
  }
  emit_spill(emitter, GPR_RDX, STATE_SPILL_RDX);
  emit_log(emitter, number);
  emit_check_undo(emitter, translation->runtime->options, translation->steps[stub->step - 1].to);
  emit_lookup(emitter, translation->runtime->counts.is_wide);
}

static void write_cold(const struct translation *translation, struct area *area)
{
  struct emitter emitter = {area->code + area->cold};

  for (unsigned i = 0; i < translation->number_count; i++) {
    point(translation->numbers[i].site, emitter.at);
    emit_u64(&emitter, translation->numbers[i].value);
  }
  for (unsigned i = 0; i < translation->stub_count; i++) {
    point(translation->stubs[i].site, emitter.at);
    write_stub(translation, &emitter, &translation->stubs[i]);
  }
  area->cold = (uint64_t)(emitter.at - area->code + 7) & ~7ull;
}

/* The parent sees the steps before a log can contain their numbers. */
static void publish_steps(struct translation *translation)
{
  struct runtime *runtime = translation->runtime;
  struct lb_step *steps = runtime->steps + translation->head;

  for (unsigned i = 1; i <= translation->step_count; i++) {
    struct lb_step *step = &translation->steps[i - 1];

    step->head = translation->head;
    step->space = runtime->space;
    steps[i] = *step;
  }
  steps[0] = (struct lb_step){.from = translation->start,
                              .head = translation->head,
                              .flags = LB_STEP_HEAD,
                              .count = (uint8_t)translation->step_count,
                              .space = runtime->space};
}

static void note_code(const struct translation *translation)
{
  if (translation->range->flags & RANGE_FILE)
    return;
  for (unsigned i = 0; i < translation->segment_count; i++) {
    const struct range *segment = &translation->segments[i];
    const void *bytes = translation->level == PAGE_STEADY ? (const void *)segment->start : translation->copy;

    note_put(translation->runtime, NOTE_CODE, translation->runtime->space, segment->start, segment->end, 0, bytes,
             (uint32_t)(segment->end - segment->start));
  }
}

/* The next free place. */
static uint32_t first_place(const struct runtime *runtime)
{
  return (uint32_t)(runtime->pool - runtime->pools) * CACHE_PLACES + runtime->pool->place_count;
}

/* The bytes to compare with are those that were translated. They are stored in the array of places, which has the same
 * lifetime. */
static void keep_bytes(struct translation *translation, struct unit *unit)
{
  struct runtime *runtime = translation->runtime;
  uint64_t size = translation->segments[0].end - translation->start;

  if (translation->level == PAGE_STEADY)
    return;
  uint8_t *bytes = (uint8_t *)(runtime->places + first_place(runtime));
  memcpy(bytes, translation->copy, size);
  runtime->pool->place_count += (uint32_t)(size + sizeof(struct place) - 1) / sizeof(struct place);
  unit->is_checked = 1;
  unit->bytes = bytes;
  unit->byte_count = (uint32_t)size;
}

/* Step numbers are shared by all processes. Each process takes a block at a time, and twice as many the next time. A
 * child of fork takes its own. */
static uint32_t take_numbers(struct runtime *runtime, uint64_t address)
{
  enum { FIRST = PROCESS_STEPS_UNIT, MOST = PROCESS_STEPS_GIVEN };
  bool is_ours = runtime->number_space == runtime->space;

  if (!is_ours || runtime->number_end - runtime->number_next < STEPS_MOST + 3) {
    uint32_t count = is_ours && runtime->number_count < MOST ? runtime->number_count * 2 : is_ours ? MOST : FIRST;
    uint32_t first = __atomic_fetch_add(&runtime->control->step_count, count, __ATOMIC_RELAXED);

    if (first > runtime->step_capacity - count || !share_steps(runtime, first, first + count))
      runtime_fail(PROCESS_E_TABLE_FULL, 0, address);
    runtime->number_space = runtime->space;
    runtime->number_count = count;
    runtime->number_next = first;
    runtime->number_end = first + count;
    if (runtime->mode == PROCESS_ALL)
      note_put(runtime, NOTE_STEPS, runtime->space, first, first + count, 0, NULL, 0);
  }
  return runtime->number_next;
}

static int64_t translate_all(void *argument)
{
  struct translation *translation = argument;

  translation_begin_segment(translation, translation->start);
  while (translate_instruction(translation))
    ;
  return 0;
}

/* Begins after the room for the jump that a stale unit needs. The entry is at an even address, because its first two
 * bytes are changed at once. */
static void translation_begin(struct translation *translation, struct area *area)
{
  struct runtime *runtime = translation->runtime;
  struct emitter *emitter = &translation->emitter;

  translation->edge = (uint8_t *)(((uint64_t)area->code + area->used + CACHE_ROOM + 3) & ~3ull);
  emitter->at = translation->edge;
  translation->way = NULL;
  if (translation->self_step) {
    translation_write_take(translation);
    emit_log(emitter, translation->head + translation->self_step);
  } else if (translation->approach->step) {
    cache_write_edge(runtime, emitter, translation->approach->step, 0);
  } else if (translation->approach->is_indirect) {
    uint64_t next = cache_slot(translation->thread, translation->start, translation->approach->is_wide);

    translation->way =
      cache_write_way(runtime, emitter, &(struct way_parts){translation->start, translation->head, next});
  }
  if ((uint64_t)emitter->at % 2)
    emit_byte(emitter, 0x90);
  translation->entry = emitter->at;
  translation->places = runtime->places + first_place(runtime);
  translation->count = translation->step_count = translation->stub_count = 0;
  for (unsigned i = 0; i <= translation->steps_most + 2; i++) /* a failed attempt may have left values */
    runtime->local[translation->head + i].site = NULL;
  translation->number_count = translation->depth = translation->segment_count = translation->place_count = 0;
  translation->turns = 0;
  translation->page = 0;
}

/* Finds an exit that leads back to the head. Returns 0 if there is none. */
static unsigned find_self(const struct translation *translation)
{
  for (unsigned i = 1; i <= translation->step_count; i++) {
    const struct lb_step *step = &translation->steps[i - 1];
    bool has_exit = translation->stub_count && !(step->flags & (LB_STEP_FOLLOW | LB_STEP_SILENT | LB_STEP_OPEN));

    for (unsigned j = 0; has_exit && j < translation->stub_count; j++)
      if (translation->stubs[j].step == i && step->to == translation->start)
        return i;
  }
  return 0;
}

static void tie_self(struct translation *translation)
{
  if (!translation->self_step)
    return;
  translation->steps[translation->self_step - 1].next = translation->head;
  uint8_t *site = translation->runtime->local[translation->head + translation->self_step].site;
  point(site, translation->edge);
}

static struct unit *translation_end(struct translation *translation, struct area *area)
{
  struct runtime *runtime = translation->runtime;
  struct unit unit = {.address = translation->start,
                      .code = translation->entry,
                      .edge = translation->edge,
                      .size = (uint32_t)(translation->emitter.at - translation->entry),
                      .head = translation->head,
                      .uses_r11 = translation->uses_r11,
                      .is_for_edge = translation->approach->step && !translation->self_step,
                      .place = first_place(runtime),
                      .place_count = (uint16_t)translation->place_count};

  write_cold(translation, area);
  tie_self(translation);
  publish_steps(translation);
  runtime->pool->place_count += translation->place_count;
  note_code(translation); /* its steps are not counted yet: they are later than the note */
  runtime->number_next += 1 + translation->step_count;
  keep_bytes(translation, &unit);
  unit.is_checked |= trigger_is_at(runtime, translation->start);
  area->used = (uint64_t)(translation->emitter.at - area->code);
  struct unit *kept = cache_add(runtime, area, &unit);
  if (translation->way && !kept->is_checked) {
    cache_publish_own(translation->thread, kept, translation->way, translation->approach->is_wide);
    translation->approach->is_published = true;
  }
  for (unsigned i = 0; i < translation->segment_count; i++)
    for (uint64_t at = page_down(translation->segments[i].start); at < translation->segments[i].end; at += PROCESS_PAGE)
      page_add_unit(runtime, at, (uint32_t)(kept - runtime->units));
  return kept;
}

static int64_t translate_again(struct translation *translation, struct area *area)
{
  translation_begin(translation, area);
  return recover_call(translate_all, translation, &translation->thread->recover);
}

/* A program that runs most of its code a few times only, such as a short one, gets short paths: little of a long path
 * would ever run. Paths are longest once it is known which way branches mostly go. */
static struct limits limits_choose(const struct runtime *runtime)
{
  uint64_t entries = (uint64_t)__atomic_load_n(&runtime->counts.turns, __ATOMIC_RELAXED) * (runtime->part_size / 4);

  if (runtime->counts.generation)
    return (struct limits){160, STEPS_MOST};
  if (entries >= (uint64_t)runtime->counts.units_made * ENTRIES_LEAST)
    return (struct limits){80, 20};
  return (struct limits){24, 6};
}

/* Leaves the arrays uninitialised: clearing them would take longer than translating a short path. */
static void translation_init(struct translation *translation, struct thread *thread, uint64_t address)
{
  struct runtime *runtime = thread->runtime;
  struct limits limits = limits_choose(runtime);

  cache_lookup_grow(runtime);
  translation->thread = thread;
  translation->runtime = runtime;
  translation->start = address;
  translation->limit = UINT64_MAX;
  translation->instructions_most = limits.instructions;
  translation->steps_most = limits.steps;
  translation->self_step = 0;
  translation->uses_r11 = translation->wants_r11 = false;
  translation->range = range_find(&runtime->executable, address);
  translation->level = page_level(runtime, translation->range, address);
  translation->head = take_numbers(runtime, address);
}

struct unit *translate(struct thread *thread, uint64_t address, struct approach *approach, struct area *area)
{
  struct translation translation;

  translation_init(&translation, thread, address);
  translation.approach = approach;
  translation_begin(&translation, area);
  int64_t result = recover_call(translate_all, &translation, &thread->recover);
  if (result == 0 && translation.wants_r11) {
    translation.uses_r11 = true;
    result = translate_again(&translation, area);
  }
  if (result < 0 && translation.count > 1) {
    translation.limit = translation.address; /* up to the last readable byte */
    result = translate_again(&translation, area);
  }
  bool can_tie = result == 0 && translation.level == PAGE_STEADY && !trigger_is_at(thread->runtime, address);
  translation.self_step = can_tie ? find_self(&translation) : 0;
  if (translation.self_step)
    result = translate_again(&translation, area);
  return result < 0 ? NULL : translation_end(&translation, area);
}
