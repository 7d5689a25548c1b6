/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes the outcomes of conditional branches in their order. Between two taken branches of a thread is a span, a
 * straight piece of code whose conditional branches were not taken. The branches of a span are looked up once and
 * cached.
 */
#include "analysis/predict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"

#define BRANCHES_MAX (1u << 20)         /* conditional branches that are kept */
#define STATE_MAX (UINT64_C(192) << 20) /* bytes of the threads' state for them */
#define POOL_MAX (4u << 20)             /* members of spans */
#define SPANS (1u << 18)
#define NO_BRANCH UINT32_MAX

enum outcome { OUTCOME_NONE, OUTCOME_PASSED, OUTCOME_TAKEN };

struct span {
  uint64_t start, from;
  uint32_t space, generation; /* 0: it is empty */
  uint32_t at, count;         /* in the pool: the branches that were passed */
  uint32_t end;               /* the conditional branch that ends it, or NO_BRANCH */
};

struct thread {
  uint64_t at;   /* where it continues; 0 if unknown */
  uint8_t *last; /* enum outcome of each branch */
  size_t last_size;
  void *state; /* of the predictor */
};

struct analysis_predict {
  struct analysis_names *names;
  struct analysis_code *code;
  const struct analysis_predictor *predictor;
  struct analysis_prediction *list;
  size_t count, capacity;
  struct hash_index index; /* of the list by location */
  struct span *spans;
  uint32_t *pool;
  size_t pool_count, pool_capacity;
  struct thread *threads;
  size_t thread_count, thread_capacity;
  uint64_t bytes; /* of all threads */
  bool has_forgotten;
};

int analysis_predict_new(struct analysis_names *names, struct analysis_code *code,
                         const struct analysis_predictor *predictor, struct analysis_predict **ret_predict)
{
  struct analysis_predict *predict = calloc(1, sizeof(*predict));

  if (!predict)
    return -ENOMEM;
  predict->names = names;
  predict->code = code;
  predict->predictor = predictor;
  predict->spans = calloc(SPANS, sizeof(*predict->spans));
  if (!predict->spans) {
    analysis_predict_free(predict);
    return -ENOMEM;
  }
  *ret_predict = predict;
  return 0;
}

void analysis_predict_free(struct analysis_predict *predict)
{
  if (!predict)
    return;
  for (size_t i = 0; i < predict->thread_count; i++) {
    free(predict->threads[i].last);
    free(predict->threads[i].state);
  }
  free(predict->threads);
  free(predict->pool);
  free(predict->spans);
  hash_index_done(&predict->index);
  free(predict->list);
  free(predict);
}

bool analysis_predict_has_forgotten(const struct analysis_predict *predict)
{
  return predict->has_forgotten;
}

/* ---- branches ---- */

static uint64_t branch_hash(const struct analysis_location *from)
{
  return hash_mix(hash_start(from->address), (uint64_t)from->file << 32 | from->space);
}

static uint32_t branch_find(const struct analysis_predict *predict, const struct analysis_location *from)
{
  uint64_t hash = branch_hash(from);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&predict->index, hash, &at)) != HASH_NONE;) {
    const struct analysis_location *known = &predict->list[number].from;

    if (known->address == from->address && known->file == from->file && known->space == from->space)
      break;
  }
  return number;
}

const struct analysis_prediction *analysis_predict_find(const struct analysis_predict *predict,
                                                        const struct analysis_location *from)
{
  uint32_t number = branch_find(predict, from);

  return number != HASH_NONE ? &predict->list[number] : NULL;
}

/* Returns 0 with the branch's number, or NO_BRANCH if there are too many; or -ENOMEM. */
static int branch_number(struct analysis_predict *predict, const struct analysis_location *from, uint32_t *ret_number)
{
  uint32_t number = branch_find(predict, from);
  struct analysis_prediction *added;

  if (number == HASH_NONE && predict->count >= BRANCHES_MAX) {
    predict->has_forgotten = true;
    *ret_number = NO_BRANCH;
    return 0;
  }
  if (number == HASH_NONE) {
    number = (uint32_t)predict->count;
    added = array_append(&predict->list, &predict->count, &predict->capacity);
    if (!added)
      return -ENOMEM;
    *added = (struct analysis_prediction){.from = *from};
    if (hash_index_add(&predict->index, branch_hash(from), number) < 0)
      return -ENOMEM;
  }
  *ret_number = number;
  return 0;
}

/* ---- spans ---- */

static int pool_add(struct analysis_predict *predict, uint32_t number)
{
  uint32_t *added = array_append(&predict->pool, &predict->pool_count, &predict->pool_capacity);

  if (!added)
    return -ENOMEM;
  *added = number;
  return 0;
}

/* Adds the conditional branches before `from`; if the code is unknown from some point on, those before that. */
static int span_walk(struct analysis_predict *predict, struct span *span)
{
  struct analysis_location location = analysis_names_locate(predict->names, span->space, span->start);
  uint64_t at = span->start;
  int r = 0;

  for (unsigned i = 0; i < ANALYSIS_INSTRUCTIONS_MAX && at < span->from && r >= 0; i++) {
    struct analysis_instruction instruction;
    uint32_t number;

    if (!analysis_code_instruction(predict->code, &location, &instruction) || !instruction.length)
      break;
    if (instruction.kind == LB_BRANCH_JCC) {
      r = branch_number(predict, &location, &number);
      if (r >= 0 && number != NO_BRANCH)
        r = pool_add(predict, number);
    }
    at += instruction.length;
    location.address += instruction.length;
  }
  return r;
}

static int span_make(struct analysis_predict *predict, struct span *span, unsigned kind)
{
  struct analysis_location from;
  int r = 0;

  if (predict->pool_count > POOL_MAX) { /* starts again: spans are looked up again when needed */
    struct span made = *span;

    memset(predict->spans, 0, SPANS * sizeof(*predict->spans));
    predict->pool_count = 0;
    *span = made;
  }
  span->at = (uint32_t)predict->pool_count;
  span->end = NO_BRANCH;
  if (span->start && span->start < span->from)
    r = span_walk(predict, span);
  span->count = (uint32_t)(predict->pool_count - span->at);
  if (r >= 0 && kind == LB_BRANCH_JCC) {
    from = analysis_names_locate(predict->names, span->space, span->from);
    r = branch_number(predict, &from, &span->end);
  }
  if (r < 0)
    *span = (struct span){0};
  return r;
}

static int span_get(struct analysis_predict *predict, const struct span *wanted, unsigned kind, struct span **ret_span)
{
  uint64_t hash =
    (wanted->start * UINT64_C(0x9E3779B97F4A7C15)) ^ (wanted->from * UINT64_C(0xC2B2AE3D27D4EB4F)) ^ wanted->space;
  struct span *span = &predict->spans[(hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15) >> 46];

  *ret_span = span;
  if (span->start == wanted->start && span->from == wanted->from && span->space == wanted->space &&
      span->generation == wanted->generation && (kind == LB_BRANCH_JCC) == (span->end != NO_BRANCH))
    return 0;
  *span = *wanted;
  return span_make(predict, span, kind);
}

/* ---- outcomes ---- */

static struct thread *thread_get(struct analysis_predict *predict, uint32_t number)
{
  return array_at(&predict->threads, number, &predict->thread_count, &predict->thread_capacity);
}

/* Makes room for a thread's state of the branches so far. Returns false without memory. */
static bool thread_grow(struct analysis_predict *predict, struct thread *thread)
{
  size_t size = predict->capacity;
  uint8_t *last;

  if (predict->bytes + size - thread->last_size > STATE_MAX || !(last = realloc(thread->last, size))) {
    predict->has_forgotten = true;
    return false;
  }
  memset(last + thread->last_size, OUTCOME_NONE, size - thread->last_size);
  predict->bytes += size - thread->last_size;
  thread->last = last;
  thread->last_size = size;
  return true;
}

/* The same for the state of the predictor. */
static bool thread_predicts(struct analysis_predict *predict, struct thread *thread)
{
  const struct analysis_predictor *predictor = predict->predictor;

  if (!predictor || thread->state)
    return predictor;
  if (predict->bytes + predictor->size > STATE_MAX || !(thread->state = malloc(predictor->size))) {
    predict->has_forgotten = true;
    return false;
  }
  predict->bytes += predictor->size;
  predictor->init(thread->state);
  return true;
}

static void outcome_take(struct analysis_predict *predict, struct thread *thread, uint32_t number, bool is_taken)
{
  struct analysis_prediction *branch = &predict->list[number];
  uint8_t outcome = is_taken ? OUTCOME_TAKEN : OUTCOME_PASSED;

  branch->taken += is_taken;
  branch->passed += !is_taken;
  if (number < thread->last_size || thread_grow(predict, thread)) {
    branch->flips += thread->last[number] != OUTCOME_NONE && thread->last[number] != outcome;
    thread->last[number] = outcome;
  }
  if (thread_predicts(predict, thread))
    branch->mispredicted += predict->predictor->conditional(thread->state, branch->from.address, is_taken);
}

static int branches_take(struct analysis_predict *predict, const struct lb_trace_branches *batch)
{
  struct thread *thread = thread_get(predict, batch->stream);
  struct span wanted = {.space = analysis_names_space(predict->names, batch->stream),
                        .generation = analysis_names_generation(predict->names)};
  struct span *span;
  int r = thread ? 0 : -ENOMEM;

  for (size_t i = 0; i < batch->count && r >= 0; i++) {
    const struct lb_branch *branch = &batch->branches[i];

    wanted.start = thread->at;
    wanted.from = analysis_from(branch);
    r = span_get(predict, &wanted, branch->kind, &span);
    if (r < 0)
      break;
    for (uint32_t k = 0; k < span->count; k++)
      outcome_take(predict, thread, predict->pool[span->at + k], false);
    if (span->end != NO_BRANCH) {
      outcome_take(predict, thread, span->end, true);
      predict->list[span->end].flagged += !!(branch->flags & LB_BRANCH_MISPREDICTED);
    }
    thread->at = analysis_to(branch);
  }
  return r;
}

/* The code that ran in a gap is unknown: the next branch begins a new span. */
static void gap_take(struct analysis_predict *predict, const struct lb_trace_gap *gap)
{
  for (size_t i = 0; i < predict->thread_count; i++)
    if (gap->stream == LB_TRACE_ALL || gap->stream == i)
      predict->threads[i].at = 0;
}

int analysis_predict_record(struct analysis_predict *predict, const struct lb_trace_record *record)
{
  int r = analysis_names_record(predict->names, record);

  if (r < 0)
    return r;
  if (record->type == LB_TRACE_GAP)
    gap_take(predict, &record->gap);
  return record->type == LB_TRACE_BRANCHES ? branches_take(predict, &record->branches) : 0;
}
