/* SPDX-License-Identifier: Apache-2.0
 *
 * The call tree of a page, from which its left-heavy order and its sandwich view are drawn. Only the stacks that ran
 * most are listed. The others are added to the rest of their nearest listed caller.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "report/view_page.h"

#define STACKS_LISTED 20000u
#define STACK_BYTES 48u /* approximate size of a stack in the page; all of them get an eighth of it */
#define NOT_LISTED UINT32_MAX
#define RESTS 4u

struct listing {
  const struct analysis_stacks *stacks;
  size_t count, room;
  bool by_branches;  /* instructions are unknown */
  uint64_t *weights; /* of a stack with everything that it called */
  uint32_t *numbers; /* in the page, of a stack or of its nearest listed caller */
  uint64_t *rests;   /* by number in the page, RESTS of them: instructions, branches, time, waiting */
  bool has_times;
};

static uint64_t stack_own(const struct listing *listing, size_t i)
{
  const struct analysis_stack *stack = analysis_stacks_get(listing->stacks, i);

  return listing->by_branches ? stack->branches : stack->instructions;
}

/* A caller has a lower number than what it calls. */
static void weights_add_up(struct listing *listing)
{
  listing->by_branches = true;
  for (size_t i = 0; i < listing->count && listing->by_branches; i++)
    listing->by_branches = analysis_stacks_get(listing->stacks, i)->instructions == 0;
  for (size_t i = listing->count; i-- > 0;) {
    uint32_t caller = analysis_stacks_get(listing->stacks, i)->caller;

    listing->weights[i] += stack_own(listing, i);
    if (caller != ANALYSIS_STACK_NONE)
      listing->weights[caller] += listing->weights[i];
  }
}

static int weight_compare(const void *one, const void *other)
{
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

  return a < b ? 1 : a > b ? -1 : 0;
}

/* The weight above which stacks are listed. Returns 0, or -ENOMEM. */
static int weight_least(const struct listing *listing, uint64_t *ret_least)
{
  uint64_t *sorted;

  *ret_least = 0;
  if (listing->count <= listing->room)
    return 0;
  sorted = malloc(listing->count * sizeof(*sorted));
  if (!sorted)
    return -ENOMEM;
  memcpy(sorted, listing->weights, listing->count * sizeof(*sorted));
  qsort(sorted, listing->count, sizeof(*sorted), weight_compare);
  *ret_least = sorted[listing->room - 1];
  free(sorted);
  return 0;
}

static void rest_add(uint64_t rest[RESTS], const struct analysis_stack *stack)
{
  rest[0] += stack->instructions;
  rest[1] += stack->branches;
  rest[2] += stack->time;
  rest[3] += stack->waited;
}

/* A stack weighs no more than its caller and comes after it, so the caller of a listed stack is listed, too. */
static size_t stacks_choose(struct listing *listing, uint64_t least)
{
  size_t listed = 0, heavier = 0, ties;

  for (size_t i = 0; i < listing->count; i++)
    heavier += listing->weights[i] > least;
  ties = listing->room > heavier ? listing->room - heavier : 0;
  for (size_t i = 0; i < listing->count; i++) {
    const struct analysis_stack *stack = analysis_stacks_get(listing->stacks, i);
    uint32_t above = stack->caller == ANALYSIS_STACK_NONE ? NOT_LISTED : listing->numbers[stack->caller];
    bool is_tie = listing->weights[i] == least;

    if (listing->weights[i] > least || (is_tie && ties)) {
      ties -= is_tie;
      listing->numbers[i] = (uint32_t)listed++;
      continue;
    }
    listing->numbers[i] = above;
    if (above != NOT_LISTED)
      rest_add(&listing->rests[RESTS * (size_t)above], stack);
  }
  return listed;
}

/* Whether the stack itself is listed: then its number is not that of its caller. */
static bool is_listed(const struct listing *listing, size_t i, const struct analysis_stack *stack)
{
  if (listing->numbers[i] == NOT_LISTED)
    return false;
  return stack->caller == ANALYSIS_STACK_NONE || listing->numbers[stack->caller] != listing->numbers[i];
}

static int put_stack(const struct listing *listing, size_t i, struct text *text)
{
  const struct analysis_stack *stack = analysis_stacks_get(listing->stacks, i);
  const uint64_t *rest;
  int r;

  if (!is_listed(listing, i, stack))
    return 0;
  rest = &listing->rests[RESTS * (size_t)listing->numbers[i]];
  r = text_addf(text, "%s[%lld,%u,%llu,%llu,%llu,%llu,%llu", text->data[text->length - 1] == '[' ? "" : ",",
                stack->caller == ANALYSIS_STACK_NONE ? -1LL : (long long)listing->numbers[stack->caller],
                stack->function, (unsigned long long)stack->calls, (unsigned long long)stack->branches,
                (unsigned long long)stack->instructions, (unsigned long long)rest[1], (unsigned long long)rest[0]);
  if (r >= 0 && listing->has_times)
    r = text_addf(text, ",%llu,%llu,%llu,%llu", (unsigned long long)stack->time, (unsigned long long)stack->waited,
                  (unsigned long long)rest[2], (unsigned long long)rest[3]);
  return r < 0 ? r : text_add(text, "]");
}

static int put_listing(struct listing *listing, struct text *text)
{
  uint64_t least;
  int r;

  weights_add_up(listing);
  r = weight_least(listing, &least);
  if (r < 0)
    return r;
  r = text_addf(text, "\"stacksLeftOut\":%zu,\"stacks\":[", listing->count - stacks_choose(listing, least));
  for (size_t i = 0; i < listing->count && r >= 0; i++)
    r = put_stack(listing, i, text);
  return r < 0 ? r : text_add(text, "]");
}

int view_put_stacks(struct report_view *view, struct text *text)
{
  struct listing listing = {.stacks = view->timeline.stacks,
                            .count = analysis_stacks_count(view->timeline.stacks),
                            .has_times = view->timeline.has_times};
  uint64_t room = view->options.size / 8 / STACK_BYTES;
  int r = -ENOMEM;

  listing.room = room < STACKS_LISTED ? (size_t)room : STACKS_LISTED;
  listing.weights = calloc(listing.count + 1, sizeof(*listing.weights));
  listing.numbers = calloc(listing.count + 1, sizeof(*listing.numbers));
  listing.rests = calloc(RESTS * (listing.room + 1), sizeof(*listing.rests));
  if (listing.weights && listing.numbers && listing.rests)
    r = put_listing(&listing, text);
  free(listing.weights);
  free(listing.numbers);
  free(listing.rests);
  return r;
}
